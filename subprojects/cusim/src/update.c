/* Changing an executable graph: the whole of it from another graph, or one node. */
#include "core.h"

static size_t blocks(size_t bytes)
{
    return (bytes + CS_GRAPH_BLOCK - 1) / CS_GRAPH_BLOCK;
}

static bool flat(const CUDA_MEMSET_NODE_PARAMS *p)
{
    return p->height == 1;
}

/* ---- the whole graph ----------------------------------------------------------------------------------------------- */

static bool same_place(CUgraphNode a, CUgraphNode b)
{
    if (a->in.count != b->in.count)
        return false;
    for (size_t i = 0; i < a->in.count; i++) {
        bool found = false;
        for (size_t k = 0; k < b->in.count; k++)
            found |= a->in.nodes[i]->index == b->in.nodes[k]->index;
        if (!found)
            return false;
    }
    return true;
}

static CUgraphExecUpdateResult compare_work(const struct cs_work *a, const struct cs_work *b, unsigned long long flags)
{
    switch (a->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        if (a->kernel.ctx != b->kernel.ctx)
            return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
        if (!a->kernel.cooperative != !b->kernel.cooperative ||
            ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) && a->kernel.priority != b->kernel.priority))
            return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (a->copy.p.srcMemoryType != b->copy.p.srcMemoryType || a->copy.p.dstMemoryType != b->copy.p.dstMemoryType ||
            a->copy.src_class != b->copy.src_class || a->copy.dst_class != b->copy.dst_class)
            return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (flat(&a->set.p) != flat(&b->set.p) || (!flat(&a->set.p) && a->set.p.width != b->set.p.width))
            return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        if (blocks(b->alloc.memory->span) > blocks(a->alloc.memory->span))
            return CU_GRAPH_EXEC_UPDATE_ERROR;
        break;
    default:
        break;
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUgraphExecUpdateResult compare(CUgraph a, CUgraph b, unsigned long long flags, CUgraphNode *error)
{
    CUgraphExecUpdateResult r;

    if (a->count != b->count)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < a->count; i++)
        if (a->nodes[i]->work.type != b->nodes[i]->work.type) {
            *error = b->nodes[i];
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        }
    for (size_t i = a->count; i-- > 0;)
        if (!same_place(a->nodes[i], b->nodes[i])) {
            *error = b->nodes[i];
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        }
    for (size_t i = 0; i < a->count; i++) {
        CUgraph *as, *bs;
        size_t n = cs_work_graphs(&a->nodes[i]->work, &as), m = cs_work_graphs(&b->nodes[i]->work, &bs);

        r = n == m ? compare_work(&a->nodes[i]->work, &b->nodes[i]->work, flags) : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
        for (size_t k = 0; k < n && !r; k++)
            r = compare(as[k], bs[k], flags, error);
        if (r) {
            if (!*error)
                *error = b->nodes[i];
            return r;
        }
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static void apply(CUgraph to, CUgraph from)
{
    for (size_t i = 0; i < to->count; i++) {
        struct cs_work w;

        CUgraph *inside, *news;
        size_t n = cs_work_graphs(&to->nodes[i]->work, &inside);

        cs_work_graphs(&from->nodes[i]->work, &news);
        for (size_t k = 0; k < n; k++)
            apply(inside[k], news[k]);
        if (n > 0)
            continue;
        cs_work_copy(&w, &from->nodes[i]->work, false);
        cs_work_release(&to->nodes[i]->work);
        to->nodes[i]->work = w;
    }
}

static CUresult update(CUgraphExec x, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
    *info = (CUgraphExecUpdateResultInfo){CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL};
    if (!cs_is(x, CS_EXEC) || !cs_is(g, CS_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    info->result = compare(x->graph, g, x->flags, &info->errorNode);
    if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    apply(x->graph, g);
    cs_program_refresh(x, NULL);
    struct cs_user_ref *old = x->users;
    x->users = cs_users_copy(g->users);
    cs_users_put(old);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec x, CUgraph g, CUgraphNode *node, CUgraphExecUpdateResult *result)
{
    CUgraphExecUpdateResultInfo info;
    CUresult r;

    ENTER(cuGraphExecUpdate);
    r = update(x, g, &info);
    if (node)
        *node = info.errorNode;
    if (result)
        *result = info.result;
    return r;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec x, CUgraph g, CUgraphExecUpdateResultInfo *out)
{
    CUgraphExecUpdateResultInfo info;
    CUresult r;

    ENTER(cuGraphExecUpdate_v2);
    r = update(x, g, &info);
    if (out)
        *out = info;
    return r;
}

/* ---- one node ------------------------------------------------------------------------------------------------------ */

/* Nodes keep the order of their ids, so the copy is found by halving. */
static CUgraphNode find(CUgraph g, uint64_t source)
{
    size_t low = 0, high = g->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (g->nodes[middle]->source < source)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < g->count && g->nodes[low]->source == source)
        return g->nodes[low];
    for (size_t i = 0; i < g->count; i++) {
        CUgraph *inside;
        size_t count = cs_work_graphs(&g->nodes[i]->work, &inside);
        for (size_t k = 0; k < count; k++) {
            CUgraphNode n = find(inside[k], source);
            if (n)
                return n;
        }
    }
    return NULL;
}

/* What stands in the executable graph for a node of the graph it was made from; NULL for any other node. */
static CUgraphNode exec_node(CUgraphExec x, CUgraphNode n)
{
    if (!cs_is(x, CS_EXEC) || !cs_is(n, CS_NODE))
        return NULL;
    return find(x->graph, n->id);
}

static CUresult exchange(CUgraphExec x, CUgraphNode n, struct cs_work *w)
{
    cs_work_release(&n->work);
    n->work = *w;
    cs_program_refresh(x, n);
    return CUDA_SUCCESS;
}

static CUresult set_kernel(CUgraphExec x, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
{
    CUgraphNode n = exec_node(x, node);
    struct cs_work w;
    CUresult r;

    if (!n || n->work.type != CU_GRAPH_NODE_TYPE_KERNEL || !p)
        return CUDA_ERROR_INVALID_VALUE;
    if ((r = cs_node_kernel(&w, p)) != CUDA_SUCCESS)
        return r;
    if (w.kernel.ctx != n->work.kernel.ctx) {
        cs_work_release(&w);
        return CUDA_ERROR_INVALID_VALUE;
    }
    w.kernel.priority = n->work.kernel.priority;
    w.kernel.cooperative = n->work.kernel.cooperative;
    memcpy(w.kernel.cluster, n->work.kernel.cluster, sizeof w.kernel.cluster);
    return exchange(x, n, &w);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec x, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS q;

    ENTER(cuGraphExecKernelNodeSetParams);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    memset(&q, 0, sizeof q);
    memcpy(&q, p, sizeof *p);
    return set_kernel(x, node, &q);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec x, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
{
    ENTER(cuGraphExecKernelNodeSetParams_v2);
    return set_kernel(x, node, p);
}

/* A class of 0 is no class: an operand that was freed may be replaced by any. */
static bool class_fits(int old, int new)
{
    return old == new || old == 0;
}

static CUresult set_copy(CUgraphExec x, CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    CUgraphNode n = exec_node(x, node);
    struct cs_work w;
    CUresult r;

    if (!n || n->work.type != CU_GRAPH_NODE_TYPE_MEMCPY || !p)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY3D *old = &n->work.copy.p;
    if (p->srcMemoryType != old->srcMemoryType || p->dstMemoryType != old->dstMemoryType || old->Height != 1 || old->Depth != 1 ||
        p->Height != 1 || p->Depth != 1)
        return CUDA_ERROR_INVALID_VALUE;
    if ((r = cs_node_copy(&w, p, ctx)) != CUDA_SUCCESS)
        return r;
    if (!class_fits(n->work.copy.src_class, w.copy.src_class) || !class_fits(n->work.copy.dst_class, w.copy.dst_class))
        return CUDA_ERROR_INVALID_VALUE;
    return exchange(x, n, &w);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec x, CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    ENTER(cuGraphExecMemcpyNodeSetParams);
    return set_copy(x, node, p, ctx);
}

static CUresult set_set(CUgraphExec x, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
    CUgraphNode n = exec_node(x, node);
    struct cs_work w;
    CUresult r;

    if (!n || n->work.type != CU_GRAPH_NODE_TYPE_MEMSET || !p)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMSET_NODE_PARAMS *old = &n->work.set.p;
    if (flat(p) != flat(old) || (!flat(p) && p->width != old->width))
        return CUDA_ERROR_INVALID_VALUE;
    if ((r = cs_node_set(&w, p, ctx)) != CUDA_SUCCESS)
        return r;
    return exchange(x, n, &w);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec x, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
    ENTER(cuGraphExecMemsetNodeSetParams);
    return set_set(x, node, p, ctx);
}

static CUresult set_host(CUgraphExec x, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p)
{
    CUgraphNode n = exec_node(x, node);
    struct cs_work w = {.type = CU_GRAPH_NODE_TYPE_HOST};

    if (!n || n->work.type != CU_GRAPH_NODE_TYPE_HOST || !p || !p->fn)
        return CUDA_ERROR_INVALID_VALUE;
    w.host = *p;
    return exchange(x, n, &w);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec x, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p)
{
    ENTER(cuGraphExecHostNodeSetParams);
    return set_host(x, node, p);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec x, CUgraphNode node, CUgraph child)
{
    CUgraphNode error = NULL;

    ENTER(cuGraphExecChildGraphNodeSetParams);
    CUgraphNode n = exec_node(x, node);
    if (!n || n->work.type != CU_GRAPH_NODE_TYPE_GRAPH || !cs_is(child, CS_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    if (compare(n->work.child, child, x->flags, &error) != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    apply(n->work.child, child);
    cs_program_refresh(x, NULL);
    return CUDA_SUCCESS;
}

static CUresult set_event(CUgraphExec x, CUgraphNode node, int type, CUevent e)
{
    CUgraphNode n = exec_node(x, node);
    struct cs_work w = {.type = type};

    if (!n || n->work.type != type || !cs_is(e, CS_EVENT))
        return CUDA_ERROR_INVALID_VALUE;
    w.event = e;
    e->refs++;
    return exchange(x, n, &w);
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec x, CUgraphNode node, CUevent e)
{
    ENTER(cuGraphExecEventRecordNodeSetEvent);
    return set_event(x, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, e);
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec x, CUgraphNode node, CUevent e)
{
    ENTER(cuGraphExecEventWaitNodeSetEvent);
    return set_event(x, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, e);
}

static CUresult set_batch(CUgraphExec x, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    CUgraphNode n = exec_node(x, node);
    struct cs_work w;
    CUresult r;

    if (!n || n->work.type != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP || !p)
        return CUDA_ERROR_INVALID_VALUE;
    r = cs_node_batch(&w, p);
    return r ? r : exchange(x, n, &w);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec x, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    ENTER(cuGraphExecBatchMemOpNodeSetParams);
    return set_batch(x, node, p);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec x, CUgraphNode node, cusim_node_params *p)
{
    CUDA_MEMSET_NODE_PARAMS set;

    ENTER(cuGraphExecNodeSetParams);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return set_kernel(x, node, &p->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return set_copy(x, node, &p->memcpy.copyParams, p->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        memcpy(&set, &p->memset, sizeof set);
        return set_set(x, node, &set, p->memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
        return set_host(x, node, &p->host);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return set_event(x, node, (int)p->type, p->event.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return set_batch(x, node, &p->memop);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static bool can_be_disabled(int type)
{
    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec x, CUgraphNode node, unsigned enabled)
{
    ENTER(cuGraphNodeSetEnabled);
    CUgraphNode n = exec_node(x, node);
    if (!n || !can_be_disabled(n->work.type))
        return CUDA_ERROR_INVALID_VALUE;
    n->disabled = enabled == 0;
    cs_program_refresh(x, n);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec x, CUgraphNode node, unsigned *enabled)
{
    ENTER(cuGraphNodeGetEnabled);
    CUgraphNode n = exec_node(x, node);
    if (!n || !can_be_disabled(n->work.type) || !enabled)
        return CUDA_ERROR_INVALID_VALUE;
    *enabled = !n->disabled;
    return CUDA_SUCCESS;
}
