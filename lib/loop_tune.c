/* Tuning as an option of the loop: once a graph is replayed and the verdict known, whether it is worth while to try other executables of it. */
#include "launchable.h"
#include "loop_p.h"

/* Where the device takes longer for a node, on average, executables hardly differ. */
#define SHORT_NODE_US 10.0
/* The driver keeps what executables took. Of what is free it must be less than this part, where the host has not asked for it. */
#define SMALL_PART 512u

/* Unasked: how many, if it gains something, at a price that nobody notices. 1: none but the first. */
static stepgraph_status how_many(const stepgraph_loop *loop, const sg__lane *lane, double replay_us, uint32_t *executables)
{
    const uint64_t nodes = lane->step->stats.nodes_total;
    uint64_t left, more;
    stepgraph_status status;

    *executables = 1;
    /* A budget is for the graphs of other keys. */
    if (nodes == 0 || replay_us < 0 || replay_us >= SHORT_NODE_US * (double)nodes || loop->config.graph_bytes != 0)
        return STEPGRAPH_OK;
    status = sg__enter(loop->session);
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__device_left(loop->session, &left);
    sg__leave(loop->session);
    if (status != STEPGRAPH_OK)
        return status;
    more = left / SMALL_PART / (nodes * SG__NODE_BYTES);
    if (more == 0)
        return sg__fail(STEPGRAPH_ERR_MEMORY, "one more would take more than 1/%u of the %llu bytes of device memory that are free", SMALL_PART,
                        (unsigned long long)left);
    *executables = more < STEPGRAPH_TUNE_MOST ? 1 + (uint32_t)more : STEPGRAPH_TUNE_MOST;
    return STEPGRAPH_OK;
}

void sg__lane_tune(stepgraph_loop *loop, sg__lane *lane, double replay_us)
{
    uint32_t executables = loop->config.executables;
    stepgraph_status status = STEPGRAPH_OK;
    stepgraph_error_info why;

    if (executables == 1 || !sg__loop_has_clock(loop))
        return;
    if (executables == 0)
        status = how_many(loop, lane, replay_us, &executables);
    if (status == STEPGRAPH_OK && executables > 1)
        status = stepgraph_step_tune(lane->step, executables);
    if (status == STEPGRAPH_OK)
        return;
    sg__error_get(&why);
    sg__log(loop->session, STEPGRAPH_LOG_INFO, "loop '%s', key %llu: its first executable is replayed, others were not tried: %s", loop->name,
            (unsigned long long)lane->key, why.message);
    sg__error_clear();
}
