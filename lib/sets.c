#include "sets.h"

#include <stdio.h>

/* Why a set stays one: what the graph says, and what the memory says. */
enum { KEPT_MEMORY = SG__FIXED_REASONS, KEPT_SHAPE, KEPT_REASONS };

static const char *kept_words(int reason)
{
    switch (reason) {
    case KEPT_MEMORY:
        return "their memory is not known to be of this device and context";
    case KEPT_SHAPE:
        return "they are of a form that no call makes";
    default:
        return sg__fixed_words((sg__fixed)reason);
    }
}

/* The driver knows a set's context and whether its target can be written from there. The kernel runs in the session's. */
static stepgraph_status ask_memory(const stepgraph_session *session, CUdeviceptr address, bool *ours)
{
    sg__allocation item;
    stepgraph_status status = sg__allocation_ask(session->driver, address, &item);

    *ours = status == STEPGRAPH_OK && item.type == CU_MEMORYTYPE_DEVICE && item.device == session->device &&
            (item.context == NULL || item.context == session->context);
    return status;
}

static stepgraph_status rewrite_set(const stepgraph_step *step, sg__rewrite *rewrite, uint32_t node, int *reason)
{
    const stepgraph_session *session = step->session;
    CUDA_MEMSET_NODE_PARAMS set = {0};
    sg__fixed fixed = SG__FIXED_NOT;
    stepgraph_status status;
    sg__set_launch launch;
    bool ours;

    SG__CU(session->driver, GraphMemsetNodeGetParams, step->read.nodes[node].handle, &set);
    status = ask_memory(session, set.dst, &ours);
    *reason = !ours ? KEPT_MEMORY : !sg__kernels_can_set(&set) ? KEPT_SHAPE : SG__FIXED_NOT;
    if (status != STEPGRAPH_OK || *reason != SG__FIXED_NOT)
        return status;
    sg__kernels_set(&session->kernels, session->context, &set, &launch);
    status = sg__rewrite_replace(rewrite, node, &launch.params, &fixed);
    *reason = (int)fixed;
    return status;

fail:
    return status;
}

/* kept: how many stay, by reason; those that do not count as none. */
static stepgraph_status rewrite_sets(const stepgraph_step *step, sg__rewrite *rewrite, uint64_t *kept)
{
    sg__fixed fixed = SG__FIXED_NOT;
    stepgraph_status status = sg__rewrite_open(step->session->driver, &step->read, rewrite, &fixed);

    for (uint32_t i = 0; i < step->read.n_nodes && status == STEPGRAPH_OK; i++) {
        int reason = (int)fixed;
        if (step->read.nodes[i].type != CU_GRAPH_NODE_TYPE_MEMSET)
            continue;
        if (fixed == SG__FIXED_NOT)
            status = rewrite_set(step, rewrite, i, &reason);
        kept[reason]++;
    }
    return status;
}

/* One line for each reason. */
static void say_kept(const stepgraph_step *step, const uint64_t *kept)
{
    for (int i = SG__FIXED_NOT + 1; i < KEPT_REASONS; i++)
        if (kept[i] > 0)
            sg__log(step->session, STEPGRAPH_LOG_INFO,
                    "step '%s': %llu of %llu sets stay memset nodes, which cost the host time at each replay: %s", step->name,
                    (unsigned long long)kept[i], (unsigned long long)step->stats.nodes[STEPGRAPH_KIND_SET], kept_words(i));
}

void sg__sets_rewrite(stepgraph_step *step, sg__rewrite *out)
{
    uint64_t kept[KEPT_REASONS] = {0};

    *out = (sg__rewrite){0};
    step->stats.sets_as_kernels = 0;
    if (step->stats.nodes[STEPGRAPH_KIND_SET] == 0 || step->again || (step->flags & STEPGRAPH_STEP_AS_RECORDED) != 0)
        return;
    if (rewrite_sets(step, out, kept) != STEPGRAPH_OK) {
        (void)sg__log_failure(step->session, sg__fail_prefix(STEPGRAPH_ERR_DRIVER, "the graph of step '%s' is launched as it was recorded: ", step->name));
        sg__error_clear();
    } else {
        step->stats.sets_as_kernels = kept[SG__FIXED_NOT];
    }
    say_kept(step, kept);
    if (step->stats.sets_as_kernels == 0)
        sg__rewrite_close(out);
}

stepgraph_status sg__sets_rewrite_again(const stepgraph_step *step, sg__rewrite *out)
{
    uint64_t kept[KEPT_REASONS] = {0};
    sg__fixed fixed = SG__FIXED_NOT;
    stepgraph_status status;

    if (step->rewritten)
        return rewrite_sets(step, out, kept);
    status = sg__rewrite_open(step->session->driver, &step->read, out, &fixed);
    if (status == STEPGRAPH_OK && fixed != SG__FIXED_NOT)
        status = sg__fail(STEPGRAPH_ERR_REFUSED, "%s", sg__fixed_words(fixed));
    return status;
}
