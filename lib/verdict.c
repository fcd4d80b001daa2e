/* Does the graph pay? From measured values only. */
#include "step_p.h"
#include "structs.h"

static double larger(double a, double b)
{
    return a < 0 || b < 0 ? -1 : a > b ? a : b;
}

static uint32_t missing(const stepgraph_step *step, const stepgraph_verdict *v)
{
    const sg__stages *stages = &step->stages;
    uint32_t bits = 0;

    if (sg__exactness(step->session) == STEPGRAPH_NOT_INSTRUMENTED)
        bits |= STEPGRAPH_MISSING_COUNTER;
    if (stages->warm_runs < 2)
        bits |= STEPGRAPH_MISSING_RUNS;
    else if (stages->launches != stages->launches_before)
        bits |= STEPGRAPH_MISSING_UNSTEADY;
    if (v->device_us_fresh < 0 || (stages->timed_replays > 0 && v->device_us_replay < 0))
        bits |= STEPGRAPH_MISSING_DEVICE;
    if (stages->timed_replays == 0)
        bits |= STEPGRAPH_MISSING_REPLAYS;
    if (stages->deferred)
        bits |= STEPGRAPH_MISSING_EXACT;
    return bits;
}

void sg__step_judge(const stepgraph_step *step, stepgraph_verdict *v)
{
    const sg__stages *stages = &step->stages;

    if (sg__exactness(step->session) != STEPGRAPH_NOT_INSTRUMENTED && stages->warm_runs > 0)
        v->launches = (int64_t)stages->launches;
    if (step->state == STEPGRAPH_STEP_READY)
        v->pin_launches = (int64_t)step->stats.pin_nodes;
    v->pin_bytes = step->stats.pin_bytes;
    v->warm_runs = stages->warm_runs;
    v->timed_replays = stages->timed_replays;
    v->host_us_fresh = sg__series_median(&stages->host_us);
    v->host_us_replay = sg__series_median(&stages->replay_host_us);
    v->device_us_fresh = sg__series_median(&stages->device_us);
    v->device_us_replay = sg__series_median(&stages->replay_device_us);
    if (v->launches > 0 && v->host_us_fresh >= 0)
        v->host_us_launch = v->host_us_fresh / (double)v->launches;
    v->step_us_fresh = larger(v->host_us_fresh, v->device_us_fresh);
    v->step_us_replay = larger(v->host_us_replay, v->device_us_replay);

    if (v->launches >= 0 && v->pin_launches >= 0)
        v->rule_launches = v->pin_launches < v->launches - 1;
    if (v->step_us_fresh >= 0 && v->step_us_replay >= 0)
        v->rule_time = v->step_us_replay < v->step_us_fresh;
    v->missing = missing(step, v);
    if (v->missing == 0 && v->rule_launches >= 0 && v->rule_time >= 0)
        v->answer = v->rule_launches == 1 && v->rule_time == 1 ? STEPGRAPH_WIN : STEPGRAPH_NULL;
}

stepgraph_status stepgraph_step_get_verdict(stepgraph_step *step, stepgraph_verdict *verdict_out)
{
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    stepgraph_status status;

    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no step to judge: the pointer is NULL");
    status = sg__stages_ask(step, "a step cannot be judged");
    if (status != STEPGRAPH_OK)
        return status;
    sg__step_judge(step, &verdict);
    return sg__struct_write(verdict_out, &verdict, sizeof verdict, offsetof(stepgraph_verdict, launches), "stepgraph_verdict");
}
