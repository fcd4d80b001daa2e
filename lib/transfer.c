/* Reading and writing pins from the host. */
#include "feed.h"
#include "pin_p.h"
#include "step_p.h"

static stepgraph_status check(const stepgraph_pin *pin, const void *data, uint64_t bytes, const char *what)
{
    if (pin == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a pin cannot be %s: the pointer is NULL", what);
    if (data == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' cannot be %s: the data is NULL", pin->name, what);
    if (bytes > pin->bytes)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' has %llu bytes, and %llu were to be %s", pin->name, (unsigned long long)pin->bytes,
                        (unsigned long long)bytes, what);
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_pin_read(stepgraph_pin *pin, void *data, uint64_t bytes)
{
    stepgraph_session *session;
    stepgraph_status status;

    sg__error_clear();
    status = check(pin, data, bytes, "read");
    if (status != STEPGRAPH_OK)
        return status;
    session = pin->session;
    status = sg__not_capturing(session, "a pin cannot be read, since nothing has run,");
    if (status != STEPGRAPH_OK)
        return status;
    for (const stepgraph_step *step = session->steps; pin->role == STEPGRAPH_ROLE_OUTPUT && step != NULL; step = step->next)
        if (step->outputs_stale && sg__step_uses(step, pin))
            return sg__fail(STEPGRAPH_ERR_STATE,
                            "pin '%s' is an output of step '%s', which was recorded and has not run: replay it once before reading", pin->name,
                            step->name);

    status = sg__enter(session);
    if (status != STEPGRAPH_OK)
        return status;
    if (bytes > 0)
        SG__CU(session->driver, MemcpyDtoHAsync, data, pin->address, bytes, session->stream);
    status = sg__session_wait(session);
fail:
    sg__leave(session);
    return sg__log_failure(session, status);
}

stepgraph_status stepgraph_pin_write(stepgraph_pin *pin, const void *data, uint64_t bytes)
{
    stepgraph_session *session;
    stepgraph_status status;

    sg__error_clear();
    status = check(pin, data, bytes, "written");
    if (status != STEPGRAPH_OK)
        return status;
    session = pin->session;
    if (pin->bank != NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' is a FEED or a CELL: use stepgraph_pin_feed()", pin->name);
    if (bytes != pin->bytes)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' has %llu bytes, and %llu were to be written", pin->name,
                        (unsigned long long)pin->bytes, (unsigned long long)bytes);
    status = sg__not_capturing(session, "a pin cannot be written");
    if (status != STEPGRAPH_OK)
        return status;

    status = sg__enter(session);
    if (status != STEPGRAPH_OK)
        return status;
    SG__CU(session->driver, MemcpyHtoDAsync, pin->address, data, bytes, session->stream);
    /* The data may be page-locked memory, which is read when the copy runs. */
    status = sg__session_wait(session);
fail:
    sg__leave(session);
    return sg__log_failure(session, status);
}
