#include "launchable.h"

#include <stdio.h>
#include <string.h>

#include "sets.h"

/* ---- what it takes ----------------------------------------------------------------------------------------------- */

uint64_t sg__step_device_bytes(const stepgraph_step *step)
{
    uint64_t executables = (step->relaxed != NULL ? 2 : 1) + (step->trying > 0 ? step->trying - 1 : 0);
    uint64_t bytes = executables * step->stats.nodes_total * SG__NODE_BYTES + sg__table_bytes(step->tables);

    for (size_t i = 0; i < step->read.n_owned; i++)
        bytes += step->read.owned[i].bytes;
    return bytes;
}

uint64_t sg__step_host_bytes(const stepgraph_step *step)
{
    return sizeof *step + step->read.n_nodes * sizeof *step->read.nodes +
           step->n_used * (sizeof *step->used + sizeof *step->used_feeds) + step->n_sources * sizeof *step->sources +
           step->allocations.n * sizeof *step->allocations.items + step->n_looks * sizeof *step->looks + sg__table_bytes(step->tables);
}

stepgraph_status sg__step_check_room(const stepgraph_step *step, uint32_t more, const char *what)
{
    uint64_t bytes = more * step->stats.nodes_total * SG__NODE_BYTES, taken = sg__step_device_bytes(step);

    if (step->device_limit == 0 || taken + bytes <= step->device_limit)
        return STEPGRAPH_OK;
    return sg__fail(STEPGRAPH_ERR_MEMORY, "step '%s' %s: %u more executable%s would need about %llu bytes of device memory, and %llu are left of the budget",
                    step->name, what, more, more != 1 ? "s" : "", (unsigned long long)bytes,
                    (unsigned long long)(step->device_limit > taken ? step->device_limit - taken : 0));
}

static stepgraph_status check_limit(const stepgraph_step *step)
{
    uint64_t bytes = sg__step_device_bytes(step);

    if (step->device_limit == 0 || bytes <= step->device_limit)
        return STEPGRAPH_OK;
    return sg__fail(
        STEPGRAPH_ERR_MEMORY,
        "the graph of step '%s' (%llu nodes) would need about %llu bytes of device memory, and %llu are left of the budget",
        step->name, (unsigned long long)step->stats.nodes_total, (unsigned long long)bytes,
        (unsigned long long)step->device_limit);
}

/* ---- update in place --------------------------------------------------------------------------------------------- */

static const char *result_words(CUgraphExecUpdateResult result)
{
    switch (result) {
    case CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED:
        return "TOPOLOGY_CHANGED: the recording has more or fewer nodes than the one before, or other dependencies";
    case CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED:
        return "NODE_TYPE_CHANGED: a node does something of another kind";
    case CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED:
        return "FUNCTION_CHANGED: a node launches another kernel";
    case CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED:
        return "PARAMETERS_CHANGED: a copy or a set has operands of another kind";
    case CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED:
        return "NOT_SUPPORTED: a node of this kind cannot be updated";
    case CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE:
        return "UNSUPPORTED_FUNCTION_CHANGE: a kernel of another context";
    case CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED:
        return "ATTRIBUTES_CHANGED: a kernel has other launch attributes";
    default:
        return "ERROR: for a reason that it does not tell";
    }
}

/* The node that the driver names belongs to the graph it was given; what it stands for, to the recording. */
static void describe_refusal(stepgraph_step *step, const sg__rewrite *rewrite, const CUgraphExecUpdateResultInfo *info)
{
    size_t i = 0;

    if (rewrite->graph != NULL)
        i = sg__rewrite_index(rewrite, info->errorNode);
    else
        while (i < step->read.n_nodes && step->read.nodes[i].handle != info->errorNode)
            i++;
    if (info->errorNode != NULL && i < step->read.n_nodes)
        snprintf(step->refusal, sizeof step->refusal, "%s (node %zu, '%.100s')", result_words(info->result), i,
                 sg__node_name(&step->read.nodes[i]));
    else
        snprintf(step->refusal, sizeof step->refusal, "%s", result_words(info->result));
}

/* What an executable is made from. */
static CUgraph launched(const stepgraph_step *step, const sg__rewrite *rewrite)
{
    return rewrite->graph != NULL ? rewrite->graph : step->graph;
}

/* Update the spare executable. Not being able to is no failure: step->exec is then still NULL, and the spare is gone. */
static stepgraph_status update(stepgraph_step *step, const sg__rewrite *rewrite)
{
    stepgraph_session *session = step->session;
    CUgraphExecUpdateResultInfo info = {CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL};
    CUstreamCaptureMode before = sg__relax(session);
    CUresult code = session->driver->GraphExecUpdate(step->spare, launched(step, rewrite), &info);

    sg__unrelax(session, before);
    step->refusal[0] = '\0';
    if (code == CUDA_SUCCESS) {
        step->exec = step->spare;
        step->spare = NULL;
        step->updates++;
        return STEPGRAPH_OK;
    }
    if (code == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
        describe_refusal(step, rewrite, &info);
    else
        snprintf(step->refusal, sizeof step->refusal, "%s", sg__driver_code_name(session->driver, code));
    step->updates_refused++;
    sg__log(session, STEPGRAPH_LOG_WARNING, "step '%s': its executable cannot be updated in place and is made anew, %s",
            step->name, step->refusal);
    return sg__step_drop_spare(step);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static stepgraph_status instantiate(stepgraph_step *step, const sg__rewrite *rewrite)
{
    stepgraph_status status = check_limit(step);

    if (status != STEPGRAPH_OK)
        return status;
    status = sg__instantiate(step->session, launched(step, rewrite), &step->exec);
    if (status == STEPGRAPH_OK) {
        step->instantiations++;
        return STEPGRAPH_OK;
    }
    return sg__fail_prefix(status == STEPGRAPH_ERR_MEMORY ? STEPGRAPH_ERR_MEMORY : STEPGRAPH_ERR_CAPTURE,
                           "the graph of step '%s' (%llu nodes) cannot be made launchable: ", step->name,
                           (unsigned long long)step->stats.nodes_total);
}

stepgraph_status sg__step_executables(stepgraph_step *step, uint32_t n, CUgraphExec *execs)
{
    stepgraph_session *session = step->session;
    stepgraph_status status = STEPGRAPH_OK;
    sg__rewrite rewrite = {0};

    if (step->rewritten)
        status = sg__sets_rewrite_again(step, &rewrite);
    for (uint32_t i = 0; i < n && status == STEPGRAPH_OK; i++) {
        status = sg__instantiate(session, launched(step, &rewrite), &execs[i]);
        if (status == STEPGRAPH_OK)
            SG__CU(session->driver, GraphUpload, execs[i], session->stream);
    }
fail:
    sg__rewrite_close(&rewrite);
    return status;
}

/* Lists that will be overwritten by the next recording are fenced by an event. */
static stepgraph_status send_lists(stepgraph_step *step)
{
    stepgraph_session *session = step->session;
    stepgraph_status status = sg__table_send(session, step->tables);

    step->lists_pending = status == STEPGRAPH_OK && sg__table_used(step->tables);
    if (status != STEPGRAPH_OK || !step->lists_pending || !step->again)
        return status;
    if (step->lists_sent == NULL)
        SG__CU(session->driver, EventCreate, &step->lists_sent, CU_EVENT_DISABLE_TIMING);
    SG__CU(session->driver, EventRecord, step->lists_sent, session->stream);
    return STEPGRAPH_OK;

fail:
    return status;
}

stepgraph_status sg__step_make_launchable(stepgraph_step *step)
{
    stepgraph_session *session = step->session;
    stepgraph_status status = STEPGRAPH_OK;
    sg__rewrite rewrite;
    bool made;

    sg__sets_rewrite(step, &rewrite);
    if (step->spare != NULL && step->rewritten == (rewrite.graph != NULL))
        status = update(step, &rewrite);
    else if (step->spare != NULL)
        status = sg__step_drop_spare(step); /* It has other nodes. */
    step->rewritten = rewrite.graph != NULL;
    made = status == STEPGRAPH_OK && step->exec == NULL;
    if (made)
        status = instantiate(step, &rewrite);
    sg__rewrite_close(&rewrite);
    if (status == STEPGRAPH_OK)
        status = send_lists(step);
    if (status != STEPGRAPH_OK)
        return status;
    /* So that the first replay pays for no upload. An updated one is launched at once, upload or not. */
    if (made)
        SG__CU(session->driver, GraphUpload, step->exec, session->stream);
    return STEPGRAPH_OK;

fail:
    return status;
}

stepgraph_status sg__step_lists_again(stepgraph_step *step)
{
    stepgraph_session *session = step->session;
    CUstreamCaptureMode before;
    CUresult code;

    if (step->lists_pending && step->lists_sent != NULL) {
        before = sg__relax(session);
        code = session->driver->EventSynchronize(step->lists_sent);
        sg__unrelax(session, before);
        if (code != CUDA_SUCCESS)
            return sg__fail_driver(session->driver, "cuEventSynchronize", code);
    } else if (step->lists_pending) {
        stepgraph_status status = sg__session_wait(session);
        if (status != STEPGRAPH_OK)
            return status;
    }
    step->lists_pending = false;
    return sg__table_renew(session, &step->tables);
}
