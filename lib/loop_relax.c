/*
 * Relaxing as an option of the loop: a graph that was proven is relaxed, and proven again. Whatever speaks against it puts it back to what was
 * recorded, which is then proven once more.
 */
#include "loop_p.h"

#include "relax_p.h"

void sg__lane_note(stepgraph_loop *loop, sg__lane *lane)
{
    if (!loop->relaxes)
        return;
    /* What speaks against it now is said when it is tried. */
    (void)sg__relax_note(lane->step, &loop->relax);
    sg__error_clear();
}

/* The report that there is from now on: why not. */
static void report(sg__lane *lane, int32_t identical, const char *why)
{
    stepgraph_relax_destroy(lane->relax);
    lane->relax = sg__relax_report(lane->step);
    if (lane->relax == NULL)
        return;
    lane->relax->summary.identical = identical;
    if (sg__relax_write_refusal(lane->relax, why) != STEPGRAPH_OK) {
        stepgraph_relax_destroy(lane->relax);
        lane->relax = NULL;
    }
}

static void cannot(stepgraph_loop *loop, sg__lane *lane)
{
    stepgraph_error_info why;

    sg__error_get(&why);
    loop->stats.relax_refused++;
    report(lane, -1, why.message);
    sg__log(loop->session, STEPGRAPH_LOG_WARNING, "loop '%s', key %llu: the graph is replayed as it was recorded: %s", loop->name,
            (unsigned long long)lane->key, why.message);
}

bool sg__lane_relax(stepgraph_loop *loop, sg__lane *lane)
{
    stepgraph_relax *found = NULL;
    stepgraph_status status;

    if (!loop->relaxes || lane->relax_tried)
        return false;
    lane->relax_tried = true;
    status = stepgraph_step_relax(lane->step, &loop->relax, &found);
    if (status != STEPGRAPH_OK) {
        const bool failed = stepgraph_step_state(lane->step) == STEPGRAPH_STEP_FAILED; /* What it has run is not undone. */
        if (failed)
            sg__error_get(&loop->spoiled);
        cannot(loop, lane);
        if (failed)
            sg__lane_failed(loop, lane, STEPGRAPH_WHY_REPLAY, NULL);
        return false;
    }
    stepgraph_relax_destroy(lane->relax);
    lane->relax = found;
    if (lane->step->relaxed == NULL)
        sg__log(loop->session, STEPGRAPH_LOG_INFO, "loop '%s', key %llu: the graph is replayed as it was recorded, relaxed it is not faster", loop->name,
                (unsigned long long)lane->key);
    return lane->step->relaxed != NULL;
}

stepgraph_status sg__loop_spoiled(stepgraph_loop *loop)
{
    const stepgraph_status status = sg__error_set(&loop->spoiled);

    loop->spoiled = (stepgraph_error_info)STEPGRAPH_ERROR_INFO_INIT;
    return sg__fail_prefix(status, "loop '%s', step %llu: ", loop->name, (unsigned long long)loop->k);
}

bool sg__lane_unrelax(stepgraph_loop *loop, sg__lane *lane, bool differs, const char *words)
{
    if (lane->step->relaxed == NULL || stepgraph_step_unrelax(lane->step) != STEPGRAPH_OK)
        return false;
    loop->stats.relax_diverged += differs ? 1 : 0;
    loop->stats.relax_refused += differs ? 0 : 1;
    report(lane, differs ? 0 : -1, words);
    sg__log(loop->session, STEPGRAPH_LOG_WARNING, "loop '%s', key %llu, step %llu: the graph is replayed as it was recorded again, relaxed it %s: %s",
            loop->name, (unsigned long long)lane->key, (unsigned long long)loop->k, differs ? "goes wrong" : "cannot be checked", words);
    lane->phase = SG__PHASE_CHECK;
    lane->checks_left = loop->config.check_steps;
    return true;
}
