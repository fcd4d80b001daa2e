/* Tuning as an option of the loop: once a graph is replayed and the verdict known, whether it is worth while to try other executables of it. */
#include "launchable.h"
#include "loop_p.h"

#define EXECUTABLES_DEFAULT 4u
/* Where the device takes longer for a node, on average, executables hardly differ. */
#define SHORT_NODE_US 10.0
/* The driver keeps what executables took. Of what is free it must be less than this part, where the host has not asked for it. */
#define SMALL_PART 100u

/* Unasked: whether it gains something, at a price that nobody notices. */
static stepgraph_status is_worth_while(const stepgraph_loop *loop, const sg__lane *lane, double replay_us, bool *yes)
{
    const uint64_t nodes = lane->step->stats.nodes_total;
    uint64_t left;
    stepgraph_status status;

    *yes = replay_us < SHORT_NODE_US * (double)nodes;
    if (!*yes)
        return STEPGRAPH_OK;
    status = sg__enter(loop->session);
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__device_left(loop->session, &left);
    sg__leave(loop->session);
    if (status == STEPGRAPH_OK && (EXECUTABLES_DEFAULT - 1) * nodes * SG__NODE_BYTES > left / SMALL_PART)
        return sg__fail(STEPGRAPH_ERR_MEMORY, "they would take more than %.0f %% of the %llu bytes of device memory that are free", 100.0 / SMALL_PART,
                        (unsigned long long)left);
    return status;
}

void sg__lane_tune(stepgraph_loop *loop, sg__lane *lane, double replay_us)
{
    uint32_t executables = loop->config.executables;
    stepgraph_status status = STEPGRAPH_OK;
    stepgraph_error_info why;
    bool yes = true;

    if (executables == 1 || !sg__loop_has_clock(loop))
        return;
    if (executables == 0) {
        executables = EXECUTABLES_DEFAULT;
        status = is_worth_while(loop, lane, replay_us, &yes);
    }
    if (status == STEPGRAPH_OK && yes)
        status = stepgraph_step_tune(lane->step, executables);
    if (status == STEPGRAPH_OK)
        return;
    sg__error_get(&why);
    sg__log(loop->session, STEPGRAPH_LOG_INFO, "loop '%s', key %llu: its first executable is replayed, others were not tried: %s", loop->name,
            (unsigned long long)lane->key, why.message);
    sg__error_clear();
}
