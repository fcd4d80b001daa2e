/* Side streams of a step: forked from the session's stream and joined to it again, by events. */
#include <stdlib.h>
#include <string.h>

#include "step_p.h"

static sg__side *find(const stepgraph_step *step, CUstream stream)
{
    sg__side *side = step->sides;

    while (side != NULL && side->stream != stream)
        side = side->next;
    return side;
}

const sg__side *sg__step_unjoined(const stepgraph_step *step)
{
    const sg__side *side = step->sides;

    while (side != NULL && !side->open)
        side = side->next;
    return side;
}

void sg__sides_close(stepgraph_step *step)
{
    for (sg__side *side = step->sides; side != NULL; side = side->next)
        side->open = false;
}

static void free_side(stepgraph_session *session, sg__side *side)
{
    sg__bury(session, SG__GRAVE_EVENT, (uintptr_t)side->fork);
    sg__bury(session, SG__GRAVE_EVENT, (uintptr_t)side->join);
    free(side->name);
    free(side);
}

void sg__sides_free(stepgraph_step *step)
{
    while (step->sides != NULL) {
        sg__side *side = step->sides;
        step->sides = side->next;
        free_side(step->session, side);
    }
}

static stepgraph_status make_side(stepgraph_step *step, CUstream stream, sg__side **side_out)
{
    sg__side *side = calloc(1, sizeof *side);
    stepgraph_status status;

    if (side == NULL)
        return sg__fail_memory("host", sizeof *side);
    side->stream = stream;
    SG__CU(step->session->driver, EventCreate, &side->fork, CU_EVENT_DISABLE_TIMING);
    SG__CU(step->session->driver, EventCreate, &side->join, CU_EVENT_DISABLE_TIMING);
    side->next = step->sides;
    step->sides = side;
    *side_out = side;
    return STEPGRAPH_OK;

fail:
    free_side(step->session, side);
    return status;
}

static stepgraph_status check(const stepgraph_step *step, CUstream stream, const char *name, const char *what)
{
    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no step to %s from: the pointer is NULL", what);
    if (step->state != STEPGRAPH_STEP_CAPTURING && step->stages.open == 0)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' neither records nor runs: %s between stepgraph_step_capture() and stepgraph_step_end(), or "
                                             "between stepgraph_step_run_begin() and stepgraph_step_run_end()",
                        step->name, what);
    if (stream == NULL || stream == CU_STREAM_LEGACY || stream == step->session->stream)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "step '%s': stream '%s' cannot %s: a side stream is another one than the session's, and not the legacy stream", step->name,
                        name != NULL ? name : "?", what);
    return STEPGRAPH_OK;
}

/* A failure while recording breaks the recording. */
static stepgraph_status leave(stepgraph_step *step, stepgraph_status status)
{
    sg__leave(step->session);
    if (status != STEPGRAPH_OK && step->state == STEPGRAPH_STEP_CAPTURING)
        sg__step_break(step);
    return sg__log_failure(step->session, status);
}

stepgraph_status stepgraph_step_fork(stepgraph_step *step, struct CUstream_st *stream, const char *name)
{
    const sg__driver *driver;
    stepgraph_status status = check(step, stream, name, "fork");
    sg__side *side;
    char *copy;

    if (status == STEPGRAPH_OK)
        status = sg__name_check("side stream", name);
    if (status != STEPGRAPH_OK)
        return status;
    driver = step->session->driver;
    side = find(step, stream);
    if (side != NULL && side->open)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "step '%s': stream '%s' is forked already; join it first", step->name, side->name);
    name = name != NULL ? name : "side stream";
    copy = strdup(name);
    if (copy == NULL)
        return sg__fail_memory("host", strlen(name) + 1);

    status = sg__enter(step->session);
    if (status != STEPGRAPH_OK) {
        free(copy);
        return status;
    }
    if (side == NULL) {
        status = make_side(step, stream, &side);
        if (status != STEPGRAPH_OK) {
            free(copy);
            return leave(step, status);
        }
    }
    free(side->name);
    side->name = copy;
    SG__CU(driver, EventRecord, side->fork, step->session->stream);
    SG__CU(driver, StreamWaitEvent, stream, side->fork, CU_EVENT_WAIT_DEFAULT);
    side->open = true;
    return leave(step, STEPGRAPH_OK);

fail:
    return leave(step, status);
}

stepgraph_status stepgraph_step_join(stepgraph_step *step, struct CUstream_st *stream)
{
    const sg__driver *driver;
    stepgraph_status status = check(step, stream, NULL, "join");
    sg__side *side;

    if (status != STEPGRAPH_OK)
        return status;
    driver = step->session->driver;
    side = find(step, stream);
    if (side == NULL || !side->open)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "step '%s': stream %s%s%s is not forked", step->name, side != NULL ? "'" : "",
                        side != NULL ? side->name : "", side != NULL ? "'" : "");
    status = sg__enter(step->session);
    if (status != STEPGRAPH_OK)
        return status;
    SG__CU(driver, EventRecord, side->join, stream);
    SG__CU(driver, StreamWaitEvent, step->session->stream, side->join, CU_EVENT_WAIT_DEFAULT);
    side->open = false;
    return leave(step, STEPGRAPH_OK);

fail:
    return leave(step, status);
}
