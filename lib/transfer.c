/* Reading and writing pins from the host: the copies of one call are enqueued together, and waited for once. */
#include "pin_p.h"
#include "step_p.h"

static stepgraph_status check(const stepgraph_session *session, const stepgraph_pin *pin, const void *data, const char *what)
{
    if (pin == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a pin cannot be %s: the pointer is NULL", what);
    if (data == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' cannot be %s: the data is NULL", pin->name, what);
    if (pin->session != session)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' cannot be %s: it belongs to another session", pin->name, what);
    return STEPGRAPH_OK;
}

/* Copies that were enqueued use the caller's memory until they have run, whatever became of the others. */
static stepgraph_status finish(stepgraph_session *session, stepgraph_status status)
{
    CUstreamCaptureMode before;

    if (status == STEPGRAPH_OK) {
        status = sg__session_wait(session);
    } else {
        before = sg__relax(session);
        session->driver->StreamSynchronize(session->stream);
        sg__unrelax(session, before);
    }
    sg__leave(session);
    return sg__log_failure(session, status);
}

static stepgraph_status failed(const stepgraph_pin *pin, const char *what, const char *call, CUresult code)
{
    return sg__fail_prefix(sg__fail_driver(pin->session->driver, call, code), "pin '%s' is not %s, %llu bytes at 0x%llx: ", pin->name, what,
                           (unsigned long long)pin->bytes, pin->address);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Another step that writes it has run since this one was recorded, or the host launches this one right now. */
static bool written_since(const stepgraph_step *step, const stepgraph_pin *pin)
{
    if (step->session->running == step)
        return true;
    for (const stepgraph_step *other = step->session->steps; other != NULL; other = other->next)
        if (other != step && other->ran_at >= step->serial && sg__step_uses(other, pin))
            return true;
    return false;
}

static stepgraph_status check_ran(const stepgraph_session *session, const stepgraph_pin *pin)
{
    for (const stepgraph_step *step = session->steps; pin->role == STEPGRAPH_ROLE_OUTPUT && step != NULL; step = step->next)
        if (step->outputs_stale && sg__step_uses(step, pin) && !written_since(step, pin))
            return sg__fail(STEPGRAPH_ERR_STATE,
                            "pin '%s' is an output of step '%s', which was recorded and has not run: replay it once before reading", pin->name,
                            step->name);
    return STEPGRAPH_OK;
}

/* What was checked. bytes NULL: all of each. */
static stepgraph_status read_pins(stepgraph_session *session, size_t n, stepgraph_pin *const *pins, void *const *data, const uint64_t *bytes)
{
    stepgraph_status status = sg__not_capturing(session, "a pin cannot be read, since nothing has run,");

    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++)
        status = check_ran(session, pins[i]);
    if (status == STEPGRAPH_OK)
        status = sg__enter(session);
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__pins_check(n, pins);
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++) {
        const uint64_t count = bytes != NULL ? bytes[i] : pins[i]->bytes;
        CUresult code = CUDA_SUCCESS;
        if (count > 0)
            code = session->driver->MemcpyDtoHAsync(data[i], pins[i]->address, count, session->stream);
        if (code != CUDA_SUCCESS)
            status = failed(pins[i], "read", "cuMemcpyDtoHAsync", code);
    }
    return finish(session, status);
}

stepgraph_status stepgraph_pin_read(stepgraph_pin *pin, void *data, uint64_t bytes)
{
    stepgraph_status status;

    sg__error_clear();
    status = check(pin != NULL ? pin->session : NULL, pin, data, "read");
    if (status != STEPGRAPH_OK)
        return status;
    if (bytes > pin->bytes)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' has %llu bytes, and %llu were to be read", pin->name, (unsigned long long)pin->bytes,
                        (unsigned long long)bytes);
    return read_pins(pin->session, 1, &pin, &data, &bytes);
}

stepgraph_status stepgraph_pin_read_many(stepgraph_session *session, size_t n, stepgraph_pin *const *pins, void *const *data)
{
    stepgraph_status status = STEPGRAPH_OK;

    sg__error_clear();
    if (session == NULL || (n > 0 && (pins == NULL || data == NULL)))
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing to read: the session, the pins or the data are NULL");
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++)
        status = check(session, pins[i], data[i], "read");
    return status == STEPGRAPH_OK && n > 0 ? read_pins(session, n, pins, data, NULL) : status;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static stepgraph_status check_write(const stepgraph_session *session, const stepgraph_pin *pin, const void *data)
{
    stepgraph_status status = check(session, pin, data, "written");

    if (status == STEPGRAPH_OK && pin->bank != NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' is a FEED or a CELL: use stepgraph_pin_feed()", pin->name);
    return status;
}

static stepgraph_status write_pins(stepgraph_session *session, size_t n, stepgraph_pin *const *pins, const void *const *data)
{
    stepgraph_status status = sg__not_capturing(session, "a pin cannot be written");

    if (status == STEPGRAPH_OK)
        status = sg__enter(session);
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__pins_check(n, pins);
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++) {
        CUresult code = session->driver->MemcpyHtoDAsync(pins[i]->address, data[i], pins[i]->bytes, session->stream);
        if (code != CUDA_SUCCESS)
            status = failed(pins[i], "written", "cuMemcpyHtoDAsync", code);
    }
    return finish(session, status);
}

stepgraph_status stepgraph_pin_write(stepgraph_pin *pin, const void *data, uint64_t bytes)
{
    stepgraph_status status;

    sg__error_clear();
    status = check_write(pin != NULL ? pin->session : NULL, pin, data);
    if (status != STEPGRAPH_OK)
        return status;
    if (bytes != pin->bytes)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' has %llu bytes, and %llu were to be written", pin->name,
                        (unsigned long long)pin->bytes, (unsigned long long)bytes);
    return write_pins(pin->session, 1, &pin, &data);
}

stepgraph_status stepgraph_pin_write_many(stepgraph_session *session, size_t n, stepgraph_pin *const *pins, const void *const *data)
{
    stepgraph_status status = STEPGRAPH_OK;

    sg__error_clear();
    if (session == NULL || (n > 0 && (pins == NULL || data == NULL)))
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing to write: the session, the pins or the data are NULL");
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++)
        status = check_write(session, pins[i], data[i]);
    return status == STEPGRAPH_OK && n > 0 ? write_pins(session, n, pins, data) : status;
}
