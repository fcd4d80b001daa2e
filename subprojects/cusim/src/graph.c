/* Graphs as structures: nodes, edges, copies. */
#include "core.h"

/* ---- sets of nodes ------------------------------------------------------------------------------------------------- */

void cs_deps_set(struct cs_deps *d, const CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count)
{
    d->count = 0;
    for (size_t i = 0; i < count; i++)
        cs_deps_add(d, nodes[i], edges ? edges[i] : (CUgraphEdgeData){0});
}

static void deps_push(struct cs_deps *d, CUgraphNode node, CUgraphEdgeData edge)
{
    size_t room = d->room;

    d->nodes = cs_grow(d->nodes, &d->room, d->count + 1, sizeof *d->nodes);
    d->edges = cs_grow(d->edges, &room, d->count + 1, sizeof *d->edges);
    d->nodes[d->count] = node;
    d->edges[d->count++] = edge;
}

static size_t deps_find(const struct cs_deps *d, CUgraphNode node)
{
    size_t i = 0;

    while (i < d->count && d->nodes[i] != node)
        i++;
    return i;
}

void cs_deps_add(struct cs_deps *d, CUgraphNode node, CUgraphEdgeData edge)
{
    if (deps_find(d, node) == d->count)
        deps_push(d, node, edge);
}

static bool deps_remove(struct cs_deps *d, CUgraphNode node)
{
    size_t i = deps_find(d, node);

    if (i == d->count)
        return false;
    memmove(d->nodes + i, d->nodes + i + 1, (d->count - i - 1) * sizeof *d->nodes);
    memmove(d->edges + i, d->edges + i + 1, (d->count - i - 1) * sizeof *d->edges);
    d->count--;
    return true;
}

void cs_deps_free(struct cs_deps *d)
{
    free(d->nodes);
    free(d->edges);
    *d = (struct cs_deps){0};
}

/* ---- work that nodes hold ------------------------------------------------------------------------------------------ */

size_t cs_work_graphs(struct cs_work *w, CUgraph **list)
{
    if (w->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        *list = &w->child;
        return 1;
    }
    if (w->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
        *list = w->conditional.bodies;
        return w->conditional.size;
    }
    *list = NULL;
    return 0;
}

static void conditional_put(struct cs_conditional *c)
{
    if (--c->refs > 0)
        return;
    cs_handle_remove(c);
    free(c);
}

void cs_work_copy(struct cs_work *to, const struct cs_work *from, bool share)
{
    *to = *from;
    switch (from->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        to->kernel.image->refs++;
        if (!share)
            to->kernel.args = cs_args_clone(from->kernel.args);
        else if (to->kernel.args)
            to->kernel.args->refs++;
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        to->copy.staged = NULL;
        break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        to->event->refs++;
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        to->batch->refs++;
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        to->alloc.memory->refs++;
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        to->free->refs++;
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        to->conditional.handle->refs++;
        to->conditional.bodies = cs_alloc_bytes(from->conditional.size * sizeof(CUgraph));
        break;
    default:
        break;
    }
}

void cs_work_release(struct cs_work *w)
{
    switch (w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        cs_args_put(w->kernel.args);
        cs_image_put(w->kernel.image);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        free(w->copy.staged);
        break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        cs_event_put(w->event);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        if (--w->batch->refs == 0)
            free(w->batch);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        w->alloc.memory->refs--;
        cs_graph_alloc_put(w->alloc.memory);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        w->free->refs--;
        cs_graph_alloc_put(w->free);
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        if (w->child)
            cs_graph_free(w->child);
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        for (unsigned i = 0; i < w->conditional.size; i++)
            if (w->conditional.bodies[i])
                cs_graph_free(w->conditional.bodies[i]);
        free(w->conditional.bodies);
        conditional_put(w->conditional.handle);
        break;
    default:
        break;
    }
    w->type = CS_WORK_NOTHING;
}

/* ---- graphs -------------------------------------------------------------------------------------------------------- */

CUgraph cs_graph_new(bool handle)
{
    CUgraph g = cs_alloc_bytes(sizeof *g);

    g->id = cs_id();
    g->exec = !handle;
    if (handle)
        cs_handle_add(g, CS_GRAPH);
    return g;
}

static void node_free(CUgraphNode n)
{
    if (!n->graph->exec)
        cs_handle_remove(n);
    if (n->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || n->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        n->graph->memory_nodes--;
    cs_work_release(&n->work);
    cs_deps_free(&n->in);
    cs_deps_free(&n->out);
    free(n);
}

void cs_graph_free(CUgraph g)
{
    if (!g->exec)
        cs_handle_remove(g);
    for (size_t i = 0; i < g->count; i++)
        node_free(g->nodes[i]);
    while (g->conditionals) {
        struct cs_conditional *c = g->conditionals;
        g->conditionals = c->next;
        c->graph = NULL;
        conditional_put(c);
    }
    cs_users_put(g->users);
    free(g->nodes);
    free(g);
}

bool cs_graph_has_memory(CUgraph g)
{
    if (g->memory_nodes)
        return true;
    for (size_t i = 0; i < g->count; i++) {
        CUgraph *inside;
        size_t n = cs_work_graphs(&g->nodes[i]->work, &inside);
        for (size_t k = 0; k < n; k++)
            if (cs_graph_has_memory(inside[k]))
                return true;
    }
    return false;
}

CUresult cs_graph_add(CUgraph g, struct cs_work *w, const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t count,
                      CUgraphNode *out)
{
    CUgraphNode n = cs_alloc_bytes(sizeof *n);
    CUgraph *inside;
    size_t num_inside;

    n->id = cs_id();
    n->graph = g;
    n->work = *w;
    n->index = g->count;
    num_inside = cs_work_graphs(&n->work, &inside);
    for (size_t i = 0; i < num_inside; i++)
        inside[i]->owner = n;
    if (w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || w->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        g->memory_nodes++;
    for (size_t i = 0; i < count; i++) {
        CUgraphEdgeData edge = edges ? edges[i] : (CUgraphEdgeData){0};
        deps_push(&n->in, deps[i], edge);
        deps_push(&deps[i]->out, n, edge);
    }
    g->nodes = cs_grow(g->nodes, &g->room, g->count + 1, sizeof *g->nodes);
    g->nodes[g->count++] = n;
    if (!g->exec)
        cs_handle_add(n, CS_NODE);
    *out = n;
    return CUDA_SUCCESS;
}

CUgraph cs_graph_copy(CUgraph from, bool exec)
{
    CUgraph g = cs_graph_new(!exec);

    g->source = from->id;
    g->users = cs_users_copy(from->users);
    for (size_t i = 0; i < from->count; i++) {
        CUgraphNode old = from->nodes[i], n;
        struct cs_work w;

        cs_work_copy(&w, &old->work, false);
        CUgraph *inside, *olds;
        size_t num_inside = cs_work_graphs(&w, &inside);
        cs_work_graphs(&old->work, &olds);
        for (size_t k = 0; k < num_inside; k++)
            inside[k] = cs_graph_copy(olds[k], exec);
        cs_graph_add(g, &w, NULL, NULL, 0, &n);
        n->source = old->id;
    }
    for (size_t i = 0; i < from->count; i++)
        for (size_t k = 0; k < from->nodes[i]->in.count; k++) {
            CUgraphNode d = g->nodes[from->nodes[i]->in.nodes[k]->index];
            deps_push(&g->nodes[i]->in, d, from->nodes[i]->in.edges[k]);
            deps_push(&d->out, g->nodes[i], from->nodes[i]->in.edges[k]);
        }
    return g;
}

/* The order of the calls serves unless edges were added against it, or one that they allow is drawn. */
CUgraphNode *cs_graph_order(CUgraph g, bool drawn, CUgraphNode *cycle)
{
    CUgraphNode *order = cs_alloc_bytes((g->count + 1) * sizeof *order);
    bool plain = true;
    size_t head = 0, n = 0;

    for (size_t i = 0; i < g->count; i++) {
        order[i] = g->nodes[i];
        g->nodes[i]->mark = g->nodes[i]->in.count;
        for (size_t k = 0; k < g->nodes[i]->in.count; k++)
            plain = plain && g->nodes[i]->in.nodes[k]->index < i;
    }
    if (plain && !drawn)
        return order;
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i]->mark == 0)
            order[n++] = g->nodes[i];
    for (; head < n; head++) {
        if (drawn && n - head > 1) {
            size_t pick = head + cs_turn_draw(n - head);
            CUgraphNode first = order[pick];
            order[pick] = order[head];
            order[head] = first;
        }
        for (size_t k = 0; k < order[head]->out.count; k++)
            if (--order[head]->out.nodes[k]->mark == 0)
                order[n++] = order[head]->out.nodes[k];
    }
    if (n == g->count)
        return order;
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i]->mark) {
            *cycle = g->nodes[i];
            break;
        }
    free(order);
    return NULL;
}

CUresult cuGraphCreate(CUgraph *out, unsigned flags)
{
    ENTER(cuGraphCreate);
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *out = cs_graph_new(true);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph g)
{
    ENTER(cuGraphDestroy);
    if (!cs_is(g, CS_GRAPH) || g->owner)
        return CUDA_ERROR_INVALID_VALUE;
    if (g->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    cs_graph_free(g);
    return CUDA_SUCCESS;
}

static bool has_conditional(CUgraph g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i]->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            return true;
    return false;
}

CUresult cuGraphClone(CUgraph *out, CUgraph g)
{
    ENTER(cuGraphClone);
    if (!out || !cs_is(g, CS_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    if (cs_graph_has_memory(g) || has_conditional(g))
        return CUDA_ERROR_NOT_SUPPORTED;
    *out = cs_graph_copy(g, false);
    return CUDA_SUCCESS;
}

/* ---- lists --------------------------------------------------------------------------------------------------------- */

/* How every list comes out: no array, the count; a short array, its first ones; a long one, the rest NULL. */
static CUresult list_check(const void *array, const size_t *count)
{
    return !count || (array && *count == 0) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static void list_out(CUgraphNode *array, CUgraphEdgeData *edges, size_t *count, const CUgraphNode *from,
                     const CUgraphEdgeData *data, size_t n)
{
    if (!array) {
        *count = n;
        return;
    }
    for (size_t i = 0; i < *count; i++) {
        array[i] = i < n ? from[i] : NULL;
        if (edges)
            edges[i] = i < n && data ? data[i] : (CUgraphEdgeData){0};
    }
    if (n < *count)
        *count = n;
}

static bool edges_plain(const CUgraphEdgeData *edges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (edges[i].type || edges[i].from_port || edges[i].to_port)
            return false;
    return true;
}

CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *count)
{
    ENTER(cuGraphGetNodes);
    if (!cs_is(g, CS_GRAPH) || list_check(nodes, count))
        return CUDA_ERROR_INVALID_VALUE;
    list_out(nodes, NULL, count, g->nodes, NULL, g->count);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetRootNodes(CUgraph g, CUgraphNode *nodes, size_t *count)
{
    struct cs_deps roots = {0};

    ENTER(cuGraphGetRootNodes);
    if (!cs_is(g, CS_GRAPH) || list_check(nodes, count))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i]->in.count == 0)
            deps_push(&roots, g->nodes[i], (CUgraphEdgeData){0});
    list_out(nodes, NULL, count, roots.nodes, NULL, roots.count);
    cs_deps_free(&roots);
    return CUDA_SUCCESS;
}

static CUresult get_edges(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count)
{
    struct cs_deps f = {0}, t = {0};
    CUresult r = CUDA_SUCCESS;

    if (!cs_is(g, CS_GRAPH) || list_check(from, count) || !from != !to)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < g->count; i++)
        for (size_t k = 0; k < g->nodes[i]->in.count; k++) {
            deps_push(&f, g->nodes[i]->in.nodes[k], g->nodes[i]->in.edges[k]);
            deps_push(&t, g->nodes[i], g->nodes[i]->in.edges[k]);
        }
    if (from && !edges && !edges_plain(f.edges, f.count)) {
        r = CUDA_ERROR_LOSSY_QUERY;
    } else {
        size_t n = *count;
        list_out(from, edges, count, f.nodes, f.edges, f.count);
        if (to)
            list_out(to, NULL, &n, t.nodes, NULL, t.count);
    }
    cs_deps_free(&f);
    cs_deps_free(&t);
    return r;
}

CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    ENTER(cuGraphGetEdges);
    return get_edges(g, from, to, NULL, count);
}

CUresult cuGraphGetEdges_v2(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count)
{
    ENTER(cuGraphGetEdges_v2);
    return get_edges(g, from, to, edges, count);
}

static CUresult get_deps(CUgraphNode n, bool out, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)
{
    if (!cs_is(n, CS_NODE) || list_check(nodes, count))
        return CUDA_ERROR_INVALID_VALUE;
    const struct cs_deps *d = out ? &n->out : &n->in;
    if (nodes && !edges && !edges_plain(d->edges, d->count))
        return CUDA_ERROR_LOSSY_QUERY;
    list_out(nodes, edges, count, d->nodes, d->edges, d->count);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode n, CUgraphNode *nodes, size_t *count)
{
    ENTER(cuGraphNodeGetDependencies);
    return get_deps(n, false, nodes, NULL, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode n, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)
{
    ENTER(cuGraphNodeGetDependencies_v2);
    return get_deps(n, false, nodes, edges, count);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode n, CUgraphNode *nodes, size_t *count)
{
    ENTER(cuGraphNodeGetDependentNodes);
    return get_deps(n, true, nodes, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode n, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)
{
    ENTER(cuGraphNodeGetDependentNodes_v2);
    return get_deps(n, true, nodes, edges, count);
}

CUresult cuGraphNodeGetType(CUgraphNode n, CUgraphNodeType *type)
{
    ENTER(cuGraphNodeGetType);
    if (!cs_is(n, CS_NODE) || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = (CUgraphNodeType)n->work.type;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode n, CUgraph clone)
{
    ENTER(cuGraphNodeFindInClone);
    if (!out || !cs_is(n, CS_NODE) || !cs_is(clone, CS_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    /* In its own place, or, since nodes before it were destroyed, a little further in front. */
    for (size_t i = n->index < clone->count ? n->index + 1 : clone->count; i-- > 0;)
        if (clone->nodes[i]->source == n->id) {
            *out = clone->nodes[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

/* ---- changing edges ------------------------------------------------------------------------------------------------ */

/* Cycles are found at instantiation. */
static CUresult add_edges(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count)
{
    if (!cs_is(g, CS_GRAPH) || (count && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!cs_is(from[i], CS_NODE) || !cs_is(to[i], CS_NODE) || from[i]->graph != g || to[i]->graph != g || from[i] == to[i] ||
            deps_find(&to[i]->in, from[i]) != to[i]->in.count)
            return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        CUgraphEdgeData edge = edges ? edges[i] : (CUgraphEdgeData){0};
        if (deps_find(&to[i]->in, from[i]) != to[i]->in.count)
            return CUDA_ERROR_INVALID_VALUE; /* Twice in this call. */
        deps_push(&to[i]->in, from[i], edge);
        deps_push(&from[i]->out, to[i], edge);
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    ENTER(cuGraphAddDependencies);
    return add_edges(g, from, to, NULL, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges,
                                   size_t count)
{
    ENTER(cuGraphAddDependencies_v2);
    return add_edges(g, from, to, edges, count);
}

static CUresult remove_edges(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    if (!cs_is(g, CS_GRAPH) || (count && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    if (cs_graph_has_memory(g))
        return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < count; i++)
        if (!cs_is(from[i], CS_NODE) || !cs_is(to[i], CS_NODE) || from[i]->graph != g || to[i]->graph != g ||
            deps_find(&to[i]->in, from[i]) == to[i]->in.count)
            return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        deps_remove(&to[i]->in, from[i]);
        deps_remove(&from[i]->out, to[i]);
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphRemoveDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    ENTER(cuGraphRemoveDependencies);
    return remove_edges(g, from, to, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges,
                                      size_t count)
{
    ENTER(cuGraphRemoveDependencies_v2);
    (void)edges;
    return remove_edges(g, from, to, count);
}

CUresult cuGraphDestroyNode(CUgraphNode n)
{
    ENTER(cuGraphDestroyNode);
    if (!cs_is(n, CS_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraph g = n->graph;
    if (g->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (cs_graph_has_memory(g))
        return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < n->in.count; i++)
        deps_remove(&n->in.nodes[i]->out, n);
    for (size_t i = 0; i < n->out.count; i++)
        deps_remove(&n->out.nodes[i]->in, n);
    memmove(g->nodes + n->index, g->nodes + n->index + 1, (g->count - n->index - 1) * sizeof *g->nodes);
    g->count--;
    for (size_t i = n->index; i < g->count; i++)
        g->nodes[i]->index = i;
    node_free(n);
    return CUDA_SUCCESS;
}

CUresult cuGraphConditionalHandleCreate(cuuint64_t *handle, CUgraph g, CUcontext ctx, unsigned initial, unsigned flags)
{
    ENTER(cuGraphConditionalHandleCreate);
    if (!handle || !cs_is(g, CS_GRAPH) || (flags & ~1u))
        return CUDA_ERROR_INVALID_VALUE;
    if (ctx ? !cs_is(ctx, CS_CONTEXT) : !cs_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    struct cs_conditional *c = cs_alloc_bytes(sizeof *c);
    c->initial = c->value = initial;
    c->assign = flags != 0;
    c->refs = 1;
    c->graph = g;
    c->next = g->conditionals;
    g->conditionals = c;
    cs_handle_add(c, CS_CONDITIONAL);
    *handle = (cuuint64_t)(uintptr_t)c;
    return CUDA_SUCCESS;
}
