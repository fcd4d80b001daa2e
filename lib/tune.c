#include "tune.h"

#include <stdlib.h>

#include "launchable.h"
#include "relax_p.h"
#include "structs.h"

/* Not all blocks were launched yet. */
static bool is_launching(const sg__tuning *tuning)
{
    return tuning->launched < tuning->n * SG__TUNE_BLOCK;
}

/* ---- the end of it ----------------------------------------------------------------------------------------------- */

/* Only one executable is left, and step->exec is it. */
static void keep(stepgraph_step *step, uint32_t chosen)
{
    sg__tuning *tuning = step->tuning;

    for (uint32_t i = 0; i < tuning->n * SG__TUNE_BLOCK; i++) {
        sg__bury(step->session, SG__GRAVE_EVENT, (uintptr_t)tuning->starts[i]);
        sg__bury(step->session, SG__GRAVE_EVENT, (uintptr_t)tuning->ends[i]);
    }
    for (uint32_t i = 0; i < tuning->n; i++)
        if (i != chosen)
            sg__bury(step->session, SG__GRAVE_EXEC, (uintptr_t)tuning->execs[i]);
    tuning->chosen = chosen;
    step->exec = tuning->execs[chosen];
    step->trying = 0;
}

void sg__tune_drop(stepgraph_step *step)
{
    if (step->trying > 0)
        keep(step, 0);
    free(step->tuning);
    step->tuning = NULL;
}

/* With words in the thread's error record. */
static void give_up(stepgraph_step *step)
{
    (void)sg__log_failure(step->session, sg__fail_prefix(STEPGRAPH_ERR_DRIVER, "step '%s' is not tuned: ", step->name));
    sg__error_clear();
    sg__tune_drop(step);
}

static void choose(stepgraph_step *step)
{
    sg__tuning *tuning = step->tuning;
    uint32_t chosen = 0;

    for (uint32_t i = 1; i < tuning->n; i++)
        if (sg__series_median(&tuning->us[i]) < sg__series_median(&tuning->us[chosen]))
            chosen = i;
    keep(step, chosen);
    sg__log(step->session, STEPGRAPH_LOG_INFO, "step '%s': of %u executables one is kept that takes %.1f us a replay, the first one took %.1f", step->name,
            tuning->n, sg__series_median(&tuning->us[chosen]), sg__series_median(&tuning->us[0]));
}

/* ---- replays ----------------------------------------------------------------------------------------------------- */

/* Take the times of what is over. The context is current. */
static stepgraph_status take_times(stepgraph_step *step)
{
    sg__tuning *tuning = step->tuning;

    while (tuning->timed < tuning->launched) {
        float ms;
        CUresult code = step->session->driver->EventElapsedTime(&ms, tuning->starts[tuning->timed], tuning->ends[tuning->timed]);
        if (code == CUDA_ERROR_NOT_READY)
            return STEPGRAPH_OK;
        if (code != CUDA_SUCCESS)
            return sg__fail_driver(step->session->driver, "cuEventElapsedTime", code);
        sg__series_add(&tuning->us[tuning->timed / SG__TUNE_BLOCK], (double)ms * 1000.0);
        tuning->timed++;
    }
    return STEPGRAPH_OK;
}

/* Go on with the blocks. When all are launched, the first executable goes on until their times are there, which is not asked before: each question costs
 * the host a microsecond. The context is current. */
static stepgraph_status begin_turn(stepgraph_step *step)
{
    sg__tuning *tuning = step->tuning;
    stepgraph_status status;

    if (is_launching(tuning)) {
        step->exec = tuning->execs[tuning->launched / SG__TUNE_BLOCK];
        SG__CU(step->session->driver, EventRecord, tuning->starts[tuning->launched], step->session->stream);
        return STEPGRAPH_OK;
    }
    step->exec = tuning->execs[0];
    status = take_times(step);
    if (status == STEPGRAPH_OK && tuning->timed == tuning->launched)
        choose(step);
fail:
    return status;
}

void sg__tune_before(stepgraph_step *step)
{
    stepgraph_session *session = step->session;
    stepgraph_status status = STEPGRAPH_OK;

    SG__CU(session->driver, CtxPushCurrent, session->context);
    status = begin_turn(step);
    sg__leave(session);
fail:
    if (status != STEPGRAPH_OK)
        give_up(step);
}

void sg__tune_after(stepgraph_step *step)
{
    stepgraph_session *session = step->session;
    stepgraph_status status = STEPGRAPH_OK;

    if (step->trying == 0 || !is_launching(step->tuning))
        return;
    SG__CU_STREAM(session, EventRecord, step->tuning->ends[step->tuning->launched], session->stream);
    step->tuning->launched++;
fail:
    if (status != STEPGRAPH_OK)
        give_up(step);
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

/* The context is current. */
static stepgraph_status make_candidates(stepgraph_step *step, uint32_t n)
{
    const sg__driver *driver = step->session->driver;
    stepgraph_status status;
    sg__tuning *tuning = calloc(1, sizeof *tuning);

    if (tuning == NULL)
        return sg__fail_memory("host", sizeof *tuning);
    step->tuning = tuning;
    step->trying = n;
    tuning->n = n;
    tuning->execs[0] = step->exec;
    for (uint32_t i = 0; i < n * SG__TUNE_BLOCK; i++) {
        SG__CU(driver, EventCreate, &tuning->starts[i], CU_EVENT_DEFAULT);
        SG__CU(driver, EventCreate, &tuning->ends[i], CU_EVENT_DEFAULT);
    }
    if (step->relaxed != NULL)
        status = sg__relax_executables(step, step->relaxed->lanes.edges, step->relaxed->lanes.n_edges, n - 1, &tuning->execs[1]);
    else
        status = sg__step_executables(step, n - 1, &tuning->execs[1]);
    if (status != STEPGRAPH_OK)
        goto fail;
    step->instantiations += n - 1;
    return STEPGRAPH_OK;

fail:
    sg__tune_drop(step);
    return sg__fail_prefix(status, "step '%s' is not tuned: ", step->name);
}

stepgraph_status stepgraph_step_tune(stepgraph_step *step, uint32_t executables)
{
    stepgraph_session *session;
    stepgraph_status status;

    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "stepgraph_step_tune(): the step is NULL");
    if (executables == 0)
        executables = STEPGRAPH_TUNE_MOST;
    if (executables < 2 || executables > STEPGRAPH_TUNE_MOST)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "step '%s' cannot be tuned with %u executables: 2 to %d can be tried", step->name, executables,
                        STEPGRAPH_TUNE_MOST);
    session = step->session;
    status = sg__not_capturing(session, "a step cannot be tuned");
    if (status == STEPGRAPH_OK && step->state != STEPGRAPH_STEP_READY)
        status = sg__fail(STEPGRAPH_ERR_STATE, "step '%s' cannot be tuned: it is not READY; record it first", step->name);
    if (status == STEPGRAPH_OK)
        status = sg__step_kernels_alive(step, "be tuned");
    if (status == STEPGRAPH_OK)
        status = sg__enter(session);
    if (status != STEPGRAPH_OK)
        return sg__log_failure(session, status);
    sg__tune_drop(step);
    status = sg__step_check_room(step, executables - 1, "is not tuned");
    if (status == STEPGRAPH_OK)
        status = make_candidates(step, executables);
    sg__leave(session);
    return sg__log_failure(session, status);
}

stepgraph_status stepgraph_step_get_tuning(const stepgraph_step *step, stepgraph_tuning *tuning_out)
{
    stepgraph_tuning said = STEPGRAPH_TUNING_INIT;
    const sg__tuning *tuning;

    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no step to ask: the pointer is NULL");
    tuning = step->tuning;
    if (tuning != NULL) {
        said.executables = tuning->n;
        said.chosen = tuning->chosen;
        said.done = step->trying == 0 ? 1 : 0;
        said.replays = tuning->timed;
    }
    for (uint32_t i = 0; i < said.executables; i++)
        said.us[i] = sg__series_median(&tuning->us[i]);
    return sg__struct_write(tuning_out, &said, sizeof said, sizeof said, "stepgraph_tuning");
}
