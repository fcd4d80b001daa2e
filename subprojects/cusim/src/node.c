/* Nodes added by hand, and their parameters read and set. */
#include "core.h"

/* ---- from parameters to work --------------------------------------------------------------------------------------- */

CUresult cs_node_kernel(struct cs_work *w, const CUDA_KERNEL_NODE_PARAMS *p)
{
    struct cs_launch_config c = {{p->gridDimX, p->gridDimY, p->gridDimZ},
                                 {p->blockDimX, p->blockDimY, p->blockDimZ},
                                 p->sharedMemBytes,
                                 p->kernelParams,
                                 p->extra,
                                 NULL,
                                 0,
                                 false};
    CUcontext ctx = p->ctx;
    bool kills;

    if (ctx && !cs_is(ctx, CS_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!ctx)
        ctx = cs_current();
    if (!ctx && cs_is(p->func, CS_FUNCTION))
        ctx = p->func->module->ctx;
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    return cs_kernel_work(w, p->func, p->kern, ctx, &c, true, &kills);
}

static CUresult context_or_current(CUcontext *ctx)
{
    if (!*ctx)
        *ctx = cs_current();
    return cs_is(*ctx, CS_CONTEXT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cs_node_copy(struct cs_work *w, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    CUresult r = context_or_current(&ctx);

    if (r)
        return r;
    if (p->WidthInBytes == 0 || p->Height == 0 || p->Depth == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((r = cs_copy_check(p, true)) != CUDA_SUCCESS)
        return r;
    memset(w, 0, sizeof *w);
    w->type = CU_GRAPH_NODE_TYPE_MEMCPY;
    w->copy.p = *p;
    w->copy.ctx = ctx;
    cs_copy_note(&w->copy);
    return CUDA_SUCCESS;
}

CUresult cs_node_set(struct cs_work *w, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
    CUresult r = context_or_current(&ctx);

    if (r || (r = cs_set_check(p, true)) != CUDA_SUCCESS)
        return r;
    if (p->dst % p->elementSize || (p->height > 1 && p->pitch % p->elementSize))
        return CUDA_ERROR_INVALID_VALUE;
    memset(w, 0, sizeof *w);
    w->type = CU_GRAPH_NODE_TYPE_MEMSET;
    w->set.p = *p;
    w->set.ctx = ctx;
    cs_set_note(&w->set);
    return CUDA_SUCCESS;
}

CUresult cs_node_batch(struct cs_work *w, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    CUcontext ctx = p->ctx;
    CUresult r = context_or_current(&ctx);

    if (r)
        return r;
    if (p->count == 0 || p->count > 256 || !p->paramArray)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < p->count; i++) {
        CUstreamBatchMemOpType t = p->paramArray[i].operation;
        size_t bytes = t == CU_STREAM_MEM_OP_WAIT_VALUE_64 || t == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 8 : 4;

        if (t != CU_STREAM_MEM_OP_WAIT_VALUE_32 && t != CU_STREAM_MEM_OP_WRITE_VALUE_32 && t != CU_STREAM_MEM_OP_WAIT_VALUE_64 &&
            t != CU_STREAM_MEM_OP_WRITE_VALUE_64)
            return CUDA_ERROR_INVALID_VALUE;
        if (p->paramArray[i].writeValue.address % bytes != 0 ||
            (!cs_find(p->paramArray[i].writeValue.address, bytes) && !cs_find_graph(p->paramArray[i].writeValue.address, bytes)))
            return CUDA_ERROR_INVALID_VALUE;
    }
    memset(w, 0, sizeof *w);
    w->type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    w->batch = cs_alloc_bytes(sizeof *w->batch + p->count * sizeof w->batch->ops[0]);
    w->batch->refs = 1;
    w->batch->ctx = ctx;
    w->batch->flags = p->flags;
    w->batch->count = p->count;
    memcpy(w->batch->ops, p->paramArray, p->count * sizeof w->batch->ops[0]);
    return CUDA_SUCCESS;
}

/* How often a graph allocates a piece of memory, less how often it frees it; `last`, if given, is its last free. */
static int outstanding(CUgraph g, const struct cs_alloc *a, CUgraphNode *last)
{
    int n = 0;

    for (size_t i = 0; i < g->count; i++) {
        const struct cs_work *w = &g->nodes[i]->work;
        n += w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && w->alloc.memory == a;
        if (w->type == CU_GRAPH_NODE_TYPE_MEM_FREE && w->free == a) {
            n--;
            if (last)
                *last = g->nodes[i];
        }
    }
    return n;
}

/* Once for each time it is allocated here; once if that is done elsewhere. */
bool cs_graph_may_free(CUgraph g, const struct cs_alloc *a)
{
    CUgraphNode last = NULL;
    int n = outstanding(g, a, &last);

    return n > 0 || (n == 0 && !last);
}

static bool comes_after(CUgraph g, const CUgraphNode *deps, size_t count, CUgraphNode node)
{
    CUgraphNode *todo = cs_alloc_bytes((g->count + count + 1) * sizeof *todo);
    size_t n = 0;
    bool found = false;

    for (size_t i = 0; i < g->count; i++)
        g->nodes[i]->mark = 0;
    for (size_t i = 0; i < count; i++)
        todo[n++] = deps[i];
    while (n > 0 && !found) {
        CUgraphNode at = todo[--n];
        found = at == node;
        for (size_t i = 0; i < at->in.count; i++)
            if (!at->in.nodes[i]->mark) {
                at->in.nodes[i]->mark = 1;
                todo[n++] = at->in.nodes[i];
            }
    }
    free(todo);
    return found;
}

/* Memory that the graph has freed before the new node, of the same size. With checks on, none: a late use would not show. */
static struct cs_alloc *recycle(CUgraph g, const CUgraphNode *deps, size_t count, size_t bytes, int device)
{
    for (size_t i = 0; i < g->count && cs.check == CS_CHECK_OFF; i++) {
        struct cs_work *w = &g->nodes[i]->work;
        CUgraphNode last = NULL;

        if (w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && w->alloc.memory->size == bytes && w->alloc.memory->device == device &&
            outstanding(g, w->alloc.memory, &last) == 0 && last && comes_after(g, deps, count, last))
            return w->alloc.memory;
    }
    return NULL;
}

CUresult cs_graph_alloc_work(struct cs_work *w, CUgraph g, const CUgraphNode *deps, size_t count,
                             const CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    struct cs_alloc *a;
    CUresult r;

    if (p->bytesize == 0 || p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE || cs_device_check(p->poolProps.location.id))
        return CUDA_ERROR_INVALID_VALUE;
    a = recycle(g, deps, count, p->bytesize, p->poolProps.location.id);
    if (!a && (r = cs_device_alloc(CS_MEM_GRAPH, p->bytesize, NULL, p->poolProps.location.id, &a)) != CUDA_SUCCESS)
        return r;
    memset(w, 0, sizeof *w);
    w->type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    w->alloc.memory = a;
    w->alloc.p = *p;
    w->alloc.p.dptr = a->base;
    w->alloc.p.accessDescs = NULL;
    w->alloc.p.accessDescCount = 0;
    a->refs++;
    return CUDA_SUCCESS;
}

static CUresult host_work(struct cs_work *w, const CUDA_HOST_NODE_PARAMS *p)
{
    if (!p->fn)
        return CUDA_ERROR_INVALID_VALUE;
    memset(w, 0, sizeof *w);
    w->type = CU_GRAPH_NODE_TYPE_HOST;
    w->host = *p;
    return CUDA_SUCCESS;
}

static CUresult event_work(struct cs_work *w, int type, CUevent e)
{
    if (!cs_is(e, CS_EVENT))
        return CUDA_ERROR_INVALID_VALUE;
    memset(w, 0, sizeof *w);
    w->type = type;
    w->event = e;
    e->refs++;
    return CUDA_SUCCESS;
}

static CUresult free_work(struct cs_work *w, CUgraph g, CUdeviceptr address)
{
    struct cs_alloc *a = cs_find_graph(address, 1);

    if (!a || a->base != address || !cs_graph_may_free(g, a))
        return CUDA_ERROR_INVALID_VALUE;
    memset(w, 0, sizeof *w);
    w->type = CU_GRAPH_NODE_TYPE_MEM_FREE;
    w->free = a;
    a->refs++;
    return CUDA_SUCCESS;
}

static CUresult child_work(struct cs_work *w, CUgraph g, CUgraph child)
{
    if (!cs_is(child, CS_GRAPH) || child == g)
        return CUDA_ERROR_INVALID_VALUE;
    if (cs_graph_has_memory(child) || child->owner != NULL)
        return CUDA_ERROR_NOT_SUPPORTED;
    memset(w, 0, sizeof *w);
    w->type = CU_GRAPH_NODE_TYPE_GRAPH;
    w->child = cs_graph_copy(child, false);
    return CUDA_SUCCESS;
}

/* ---- adding -------------------------------------------------------------------------------------------------------- */

static CUresult add_check(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count)
{
    if (!out || !cs_is(g, CS_GRAPH) || (count && !deps))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (!cs_is(deps[i], CS_NODE) || deps[i]->graph != g)
            return CUDA_ERROR_INVALID_VALUE;
        for (size_t k = 0; k < i; k++)
            if (deps[k] == deps[i])
                return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

#define ADD(...)                                                                                                                 \
    do {                                                                                                                         \
        struct cs_work w;                                                                                                        \
        CUresult r = add_check(out, g, deps, count);                                                                             \
        if (r || (r = (__VA_ARGS__)) != CUDA_SUCCESS)                                                                            \
            return r;                                                                                                            \
        return cs_graph_add(g, &w, deps, NULL, count, out);                                                                      \
    } while (0)

static CUDA_KERNEL_NODE_PARAMS from_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS q;

    memset(&q, 0, sizeof q);
    memcpy(&q, p, sizeof *p);
    return q;
}

CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS q;

    ENTER(cuGraphAddKernelNode);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    q = from_v1(p);
    ADD(cs_node_kernel(&w, &q));
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *p)
{
    ENTER(cuGraphAddKernelNode_v2);
    ADD(p ? cs_node_kernel(&w, p) : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count, const CUDA_MEMCPY3D *p,
                              CUcontext ctx)
{
    ENTER(cuGraphAddMemcpyNode);
    ADD(p ? cs_node_copy(&w, p, ctx) : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
    ENTER(cuGraphAddMemsetNode);
    ADD(p ? cs_node_set(&w, p, ctx) : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count, const CUDA_HOST_NODE_PARAMS *p)
{
    ENTER(cuGraphAddHostNode);
    ADD(p ? host_work(&w, p) : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count)
{
    ENTER(cuGraphAddEmptyNode);
    ADD((memset(&w, 0, sizeof w), w.type = CU_GRAPH_NODE_TYPE_EMPTY, CUDA_SUCCESS));
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count, CUgraph child)
{
    ENTER(cuGraphAddChildGraphNode);
    ADD(child_work(&w, g, child));
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count, CUevent e)
{
    ENTER(cuGraphAddEventRecordNode);
    ADD(event_work(&w, CU_GRAPH_NODE_TYPE_EVENT_RECORD, e));
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count, CUevent e)
{
    ENTER(cuGraphAddEventWaitNode);
    ADD(event_work(&w, CU_GRAPH_NODE_TYPE_WAIT_EVENT, e));
}

static CUresult alloc_work(struct cs_work *w, CUgraph g, const CUgraphNode *deps, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    CUresult r = cs_graph_alloc_work(w, g, deps, count, p);

    if (!r)
        p->dptr = w->alloc.p.dptr;
    return r;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    ENTER(cuGraphAddMemAllocNode);
    ADD(p ? alloc_work(&w, g, deps, count, p) : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count, CUdeviceptr address)
{
    ENTER(cuGraphAddMemFreeNode);
    ADD(free_work(&w, g, address));
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    ENTER(cuGraphAddBatchMemOpNode);
    ADD(p ? cs_node_batch(&w, p) : CUDA_ERROR_INVALID_VALUE);
}

static CUDA_MEMSET_NODE_PARAMS memset_v1(const cusim_memset_params_v2 *p)
{
    CUDA_MEMSET_NODE_PARAMS q;

    memcpy(&q, p, sizeof q);
    return q;
}

static CUresult conditional_work(struct cs_work *w, CUgraph g, cusim_node_params *p)
{
    struct cs_conditional *c = (struct cs_conditional *)(uintptr_t)p->conditional.handle;
    CUcontext ctx = p->conditional.ctx;
    unsigned size = p->conditional.size;
    CUresult r = context_or_current(&ctx);

    if (r)
        return r;
    if (!cs_is(c, CS_CONDITIONAL) || c->graph != g || c->used || size == 0 || (unsigned)p->conditional.type > CS_COND_SWITCH ||
        (p->conditional.type == CS_COND_IF && size > 2) || (p->conditional.type == CS_COND_WHILE && size > 1))
        return CUDA_ERROR_INVALID_VALUE;
    memset(w, 0, sizeof *w);
    w->type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    c->used = true;
    c->refs++;
    w->conditional.handle = c;
    w->conditional.type = p->conditional.type;
    w->conditional.size = size;
    w->conditional.ctx = ctx;
    w->conditional.bodies = cs_alloc_bytes(size * sizeof(CUgraph));
    for (unsigned i = 0; i < size; i++)
        w->conditional.bodies[i] = cs_graph_new(true);
    p->conditional.phGraph_out = w->conditional.bodies;
    return CUDA_SUCCESS;
}

static CUresult any_work(struct cs_work *w, CUgraph g, const CUgraphNode *deps, size_t count, cusim_node_params *p)
{
    CUDA_MEMSET_NODE_PARAMS set;

    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return cs_node_kernel(w, &p->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return cs_node_copy(w, &p->memcpy.copyParams, p->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        set = memset_v1(&p->memset);
        return cs_node_set(w, &set, p->memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
        return host_work(w, &p->host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return child_work(w, g, p->child.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        memset(w, 0, sizeof *w);
        w->type = CU_GRAPH_NODE_TYPE_EMPTY;
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return event_work(w, (int)p->type, p->event.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return alloc_work(w, g, deps, count, &p->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return free_work(w, g, p->free.dptr);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return cs_node_batch(w, &p->memop);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return conditional_work(w, g, p);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuGraphAddNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t count, cusim_node_params *p)
{
    ENTER(cuGraphAddNode);
    ADD(p ? any_work(&w, g, deps, count, p) : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t count,
                           cusim_node_params *p)
{
    struct cs_work w;
    CUresult r;

    ENTER(cuGraphAddNode_v2);
    if ((r = add_check(out, g, deps, count)) != CUDA_SUCCESS ||
        (r = p ? any_work(&w, g, deps, count, p) : CUDA_ERROR_INVALID_VALUE) != CUDA_SUCCESS)
        return r;
    return cs_graph_add(g, &w, deps, edges, count, out);
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

#define NEED(n, kind)                                                                                                            \
    do {                                                                                                                         \
        if (!cs_is(n, CS_NODE) || n->work.type != (kind))                                                                        \
            return CUDA_ERROR_INVALID_VALUE;                                                                                     \
    } while (0)
#define GET(symbol, n, out, kind)                                                                                                \
    ENTER(symbol);                                                                                                               \
    NEED(n, kind);                                                                                                               \
    if (!out)                                                                                                                    \
    return CUDA_ERROR_INVALID_VALUE

static void kernel_out(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p)
{
    struct cs_kernel *k = &n->work.kernel;

    memset(p, 0, sizeof *p);
    p->func = k->func;
    p->gridDimX = k->grid[0];
    p->gridDimY = k->grid[1];
    p->gridDimZ = k->grid[2];
    p->blockDimX = k->block[0];
    p->blockDimY = k->block[1];
    p->blockDimZ = k->block[2];
    p->sharedMemBytes = k->shared;
    p->kern = k->kern;
    p->ctx = k->ctx;
    if (k->args && k->args->form == CS_ARGS_POINTERS)
        p->kernelParams = k->args->pointers;
    else if (k->args)
        p->extra = k->args->extra;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS q;

    GET(cuGraphKernelNodeGetParams, n, p, CU_GRAPH_NODE_TYPE_KERNEL);
    kernel_out(n, &q);
    memcpy(p, &q, sizeof *p);
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p)
{
    GET(cuGraphKernelNodeGetParams_v2, n, p, CU_GRAPH_NODE_TYPE_KERNEL);
    kernel_out(n, p);
    return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode n, CUDA_MEMCPY3D *p)
{
    GET(cuGraphMemcpyNodeGetParams, n, p, CU_GRAPH_NODE_TYPE_MEMCPY);
    *p = n->work.copy.p;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode n, CUDA_MEMSET_NODE_PARAMS *p)
{
    GET(cuGraphMemsetNodeGetParams, n, p, CU_GRAPH_NODE_TYPE_MEMSET);
    *p = n->work.set.p;
    return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode n, CUDA_HOST_NODE_PARAMS *p)
{
    GET(cuGraphHostNodeGetParams, n, p, CU_GRAPH_NODE_TYPE_HOST);
    *p = n->work.host;
    return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode n, CUgraph *g)
{
    GET(cuGraphChildGraphNodeGetGraph, n, g, CU_GRAPH_NODE_TYPE_GRAPH);
    *g = n->work.child;
    return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode n, CUevent *e)
{
    GET(cuGraphEventRecordNodeGetEvent, n, e, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    *e = n->work.event;
    return CUDA_SUCCESS;
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode n, CUevent *e)
{
    GET(cuGraphEventWaitNodeGetEvent, n, e, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    *e = n->work.event;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode n, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    GET(cuGraphMemAllocNodeGetParams, n, p, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    *p = n->work.alloc.p;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode n, CUdeviceptr *p)
{
    GET(cuGraphMemFreeNodeGetParams, n, p, CU_GRAPH_NODE_TYPE_MEM_FREE);
    *p = n->work.free->base;
    return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode n, CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    GET(cuGraphBatchMemOpNodeGetParams, n, p, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    memset(p, 0, sizeof *p);
    p->ctx = n->work.batch->ctx;
    p->count = n->work.batch->count;
    p->paramArray = n->work.batch->ops;
    p->flags = n->work.batch->flags;
    return CUDA_SUCCESS;
}

/* ---- setting ------------------------------------------------------------------------------------------------------- */

/* The attributes stay; only what the parameters say changes. */
static CUresult replace(CUgraphNode n, struct cs_work *w)
{
    if (w->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        struct cs_kernel *from = &n->work.kernel, *to = &w->kernel;

        if (to->ctx != from->ctx) {
            cs_work_release(w);
            return CUDA_ERROR_INVALID_VALUE;
        }
        to->priority = from->priority;
        to->cooperative = from->cooperative;
        to->serialization = from->serialization;
        memcpy(to->cluster, from->cluster, sizeof to->cluster);
    }
    cs_work_release(&n->work);
    n->work = *w;
    return CUDA_SUCCESS;
}

#define SET(n, kind, p, ...)                                                                                                     \
    do {                                                                                                                         \
        struct cs_work w;                                                                                                        \
        CUresult r;                                                                                                              \
        NEED(n, kind);                                                                                                           \
        if (!(p))                                                                                                                \
            return CUDA_ERROR_INVALID_VALUE;                                                                                     \
        r = (__VA_ARGS__);                                                                                                       \
        return r ? r : replace(n, &w);                                                                                           \
    } while (0)

CUresult cuGraphKernelNodeSetParams(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS q;

    ENTER(cuGraphKernelNodeSetParams);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    q = from_v1(p);
    SET(n, CU_GRAPH_NODE_TYPE_KERNEL, p, cs_node_kernel(&w, &q));
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p)
{
    ENTER(cuGraphKernelNodeSetParams_v2);
    SET(n, CU_GRAPH_NODE_TYPE_KERNEL, p, cs_node_kernel(&w, p));
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode n, const CUDA_MEMCPY3D *p)
{
    ENTER(cuGraphMemcpyNodeSetParams);
    SET(n, CU_GRAPH_NODE_TYPE_MEMCPY, p, cs_node_copy(&w, p, n->work.copy.ctx));
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *p)
{
    ENTER(cuGraphMemsetNodeSetParams);
    SET(n, CU_GRAPH_NODE_TYPE_MEMSET, p, cs_node_set(&w, p, n->work.set.ctx));
}

CUresult cuGraphHostNodeSetParams(CUgraphNode n, const CUDA_HOST_NODE_PARAMS *p)
{
    ENTER(cuGraphHostNodeSetParams);
    SET(n, CU_GRAPH_NODE_TYPE_HOST, p, host_work(&w, p));
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode n, CUevent e)
{
    ENTER(cuGraphEventRecordNodeSetEvent);
    SET(n, CU_GRAPH_NODE_TYPE_EVENT_RECORD, e, event_work(&w, CU_GRAPH_NODE_TYPE_EVENT_RECORD, e));
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode n, CUevent e)
{
    ENTER(cuGraphEventWaitNodeSetEvent);
    SET(n, CU_GRAPH_NODE_TYPE_WAIT_EVENT, e, event_work(&w, CU_GRAPH_NODE_TYPE_WAIT_EVENT, e));
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode n, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    ENTER(cuGraphBatchMemOpNodeSetParams);
    SET(n, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, p, cs_node_batch(&w, p));
}

CUresult cuGraphNodeSetParams(CUgraphNode n, cusim_node_params *p)
{
    ENTER(cuGraphNodeSetParams);
    if (!p || p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || p->type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
        p->type == CU_GRAPH_NODE_TYPE_GRAPH || p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return CUDA_ERROR_INVALID_VALUE;
    SET(n, (int)p->type, p, any_work(&w, n->graph, NULL, 0, p));
}

/* ---- attributes of kernel nodes ------------------------------------------------------------------------------------ */

static CUresult attribute_get(const struct cs_kernel *k, CUlaunchAttributeID id, CUlaunchAttributeValue *v)
{
    memset(v, 0, sizeof *v);
    switch ((int)id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        v->cooperative = k->cooperative;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        v->priority = k->priority;
        return CUDA_SUCCESS;
    case 1: /* access policy window */
        return CUDA_SUCCESS;
    case 4:
        memcpy(v->pad, k->cluster, sizeof k->cluster);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult attribute_set(struct cs_kernel *k, CUlaunchAttributeID id, const CUlaunchAttributeValue *v)
{
    switch ((int)id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        k->cooperative = v->cooperative;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        k->priority = v->priority;
        return CUDA_SUCCESS;
    case 1:
        return CUDA_SUCCESS;
    case 4:
        memcpy(k->cluster, v->pad, sizeof k->cluster);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode n, CUlaunchAttributeID id, CUlaunchAttributeValue *v)
{
    GET(cuGraphKernelNodeGetAttribute, n, v, CU_GRAPH_NODE_TYPE_KERNEL);
    return attribute_get(&n->work.kernel, id, v);
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode n, CUlaunchAttributeID id, const CUlaunchAttributeValue *v)
{
    GET(cuGraphKernelNodeSetAttribute, n, v, CU_GRAPH_NODE_TYPE_KERNEL);
    return attribute_set(&n->work.kernel, id, v);
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
    ENTER(cuGraphKernelNodeCopyAttributes);
    NEED(to, CU_GRAPH_NODE_TYPE_KERNEL);
    NEED(from, CU_GRAPH_NODE_TYPE_KERNEL);
    to->work.kernel.priority = from->work.kernel.priority;
    to->work.kernel.cooperative = from->work.kernel.cooperative;
    memcpy(to->work.kernel.cluster, from->work.kernel.cluster, sizeof to->work.kernel.cluster);
    return CUDA_SUCCESS;
}
