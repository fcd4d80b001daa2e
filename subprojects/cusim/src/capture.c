/* The capture state machine: which calls are refused, which captures die of it, and how forks come and go. */
#include "core.h"

/* ---- the rules ----------------------------------------------------------------------------------------------------- */

void cs_capture_kill(struct cs_capture *c)
{
    c->dead = true;
}

/* Does this capture forbid unsafe calls to the calling thread? */
static bool forbids(const struct cs_capture *c)
{
    if (cs_me.mode == CU_STREAM_CAPTURE_MODE_RELAXED || c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    if (c->thread == cs_thread_id())
        return true;
    return cs_me.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult cs_unsafe(void)
{
    CUresult r = CUDA_SUCCESS;

    for (struct cs_capture *c = cs.captures; c; c = c->next)
        if (forbids(c)) {
            cs_capture_kill(c);
            r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return r;
}

CUresult cs_never(CUstream s)
{
    cs_capture_kill(s->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static bool has_blocking(const struct cs_capture *c, CUcontext ctx)
{
    for (CUstream s = c->members; s; s = s->capture_next)
        if (s->ctx == ctx && !(s->flags & CU_STREAM_NON_BLOCKING))
            return true;
    return false;
}

static bool legacy_blocked(CUcontext ctx)
{
    for (struct cs_capture *c = cs.captures; c; c = c->next)
        if (has_blocking(c, ctx))
            return true;
    return false;
}

CUresult cs_legacy(CUcontext ctx)
{
    CUresult r = CUDA_SUCCESS;

    for (struct cs_capture *c = cs.captures; c; c = c->next)
        if (has_blocking(c, ctx)) {
            cs_capture_kill(c);
            r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    return r;
}

struct cs_capture *cs_capture_by_id(uint64_t id)
{
    for (struct cs_capture *c = cs.captures; c; c = c->next)
        if (c->id == id)
            return c;
    return NULL;
}

/* ---- members ------------------------------------------------------------------------------------------------------- */

static void join(struct cs_capture *c, CUstream s, const struct cs_deps *deps)
{
    s->capture = c;
    s->capture_next = c->members;
    c->members = s;
    s->captured_work = false;
    if (deps)
        cs_deps_set(&s->deps, deps->nodes, deps->edges, deps->count);
    else
        cs_deps_set(&s->deps, NULL, NULL, 0);
}

/* All streams are idle again, and the graph is the caller's of this function. */
static CUgraph capture_end(struct cs_capture *c)
{
    CUgraph graph = c->graph;

    while (c->members) {
        CUstream s = c->members;
        c->members = s->capture_next;
        s->capture = NULL;
        s->capture_next = NULL;
        cs_deps_free(&s->deps);
    }
    for (struct cs_capture **p = &cs.captures; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            break;
        }
    graph->capture = NULL;
    cs_deps_free(&c->left);
    free(c);
    return graph;
}

/* A stream is destroyed. With the origin the capture vanishes without trace. */
void cs_capture_leave(CUstream s)
{
    struct cs_capture *c = s->capture;

    if (!c)
        return;
    if (c->origin == s) {
        bool borrowed = c->borrowed;
        CUgraph graph = capture_end(c);
        if (!borrowed)
            cs_graph_free(graph);
        return;
    }
    for (CUstream *p = &c->members; *p; p = &(*p)->capture_next)
        if (*p == s) {
            *p = s->capture_next;
            break;
        }
    for (size_t i = 0; s->captured_work && i < s->deps.count; i++)
        cs_deps_add(&c->left, s->deps.nodes[i], s->deps.edges[i]);
    s->capture = NULL;
}

/* Is every node that a forked stream recorded before something that the origin waits for? */
static bool joined(struct cs_capture *c)
{
    CUgraph g = c->graph;
    CUgraphNode *todo = cs_alloc_bytes((g->count + 1) * sizeof *todo);
    size_t n = 0;
    bool ok = true;

    for (size_t i = 0; i < g->count; i++)
        g->nodes[i]->mark = 0;
    for (size_t i = 0; i < c->origin->deps.count; i++)
        if (!c->origin->deps.nodes[i]->mark) {
            c->origin->deps.nodes[i]->mark = 1;
            todo[n++] = c->origin->deps.nodes[i];
        }
    while (n > 0) {
        CUgraphNode node = todo[--n];
        for (size_t i = 0; i < node->in.count; i++)
            if (!node->in.nodes[i]->mark) {
                node->in.nodes[i]->mark = 1;
                todo[n++] = node->in.nodes[i];
            }
    }
    free(todo);
    for (CUstream s = c->members; s; s = s->capture_next)
        for (size_t i = 0; s != c->origin && s->captured_work && i < s->deps.count; i++)
            ok = ok && s->deps.nodes[i]->mark;
    for (size_t i = 0; i < c->left.count; i++)
        ok = ok && c->left.nodes[i]->mark;
    return ok;
}

/* ---- recording ----------------------------------------------------------------------------------------------------- */

CUresult cs_capture_work(CUstream s, struct cs_work *w)
{
    CUgraphEdgeData edge = {0};
    CUgraphNode node;
    CUresult r;

    if (s->capture->dead) {
        cs_work_release(w);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (w->type == CU_GRAPH_NODE_TYPE_KERNEL && w->kernel.serialization)
        for (size_t i = 0; i < s->deps.count; i++)
            if (s->deps.nodes[i]->work.type == CU_GRAPH_NODE_TYPE_KERNEL) {
                s->deps.edges[i].type = 1;
                s->deps.edges[i].from_port = 1;
            }
    r = cs_graph_add(s->capture->graph, w, s->deps.nodes, s->deps.edges, s->deps.count, &node);
    if (r)
        return r;
    cs_deps_set(&s->deps, &node, &edge, 1);
    s->captured_work = true;
    return CUDA_SUCCESS;
}

CUresult cs_capture_record(CUstream s, CUevent e, unsigned flags)
{
    if (s->capture->dead)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags & CU_EVENT_RECORD_EXTERNAL) {
        struct cs_work w = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};

        w.event = e;
        e->refs++;
        return cs_capture_work(s, &w);
    }
    cs_fence_put(e->fence);
    e->fence = NULL;
    e->capture = s->capture->id;
    cs_deps_set(&e->deps, s->deps.nodes, s->deps.edges, s->deps.count);
    return CUDA_SUCCESS;
}

/* cuStreamWaitEvent where the stream captures or the event is a captured one. */
CUresult cs_capture_wait(CUstream s, CUevent e, unsigned flags)
{
    struct cs_capture *mine = s->capture, *theirs = e->capture ? cs_capture_by_id(e->capture) : NULL;

    if (!mine) {
        if (flags & CU_EVENT_WAIT_EXTERNAL)
            return CUDA_ERROR_ILLEGAL_STATE;
        if (!theirs || theirs->dead)
            return CUDA_ERROR_INVALID_VALUE;
        if (s->legacy) {
            cs_capture_kill(theirs);
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
        join(theirs, s, &e->deps);
        return CUDA_SUCCESS;
    }
    if (mine->dead)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags & CU_EVENT_WAIT_EXTERNAL) {
        struct cs_work w = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};

        w.event = e;
        e->refs++;
        return cs_capture_work(s, &w);
    }
    if (!e->capture) {
        if (!e->fence)
            return CUDA_SUCCESS;
        cs_capture_kill(mine);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (!theirs || theirs->dead) {
        cs_capture_kill(mine);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (theirs != mine) {
        cs_capture_kill(mine);
        cs_capture_kill(theirs);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    for (size_t i = 0; i < e->deps.count; i++)
        cs_deps_add(&s->deps, e->deps.nodes[i], e->deps.edges[i]);
    return CUDA_SUCCESS;
}

/* ---- begin and end ------------------------------------------------------------------------------------------------- */

static CUresult begin_check(CUstream handle, CUstreamCaptureMode mode, CUstream *s)
{
    CUresult r = cs_stream(handle, s);

    if (r)
        return r;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if ((*s)->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return (*s)->capture ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

static struct cs_capture *begin(CUstream s, CUstreamCaptureMode mode, CUgraph graph)
{
    struct cs_capture *c = cs_alloc_bytes(sizeof *c);

    c->id = cs_id();
    c->mode = (int)mode;
    c->thread = cs_thread_id();
    c->origin = s;
    c->graph = graph;
    graph->capture = c;
    c->next = cs.captures;
    cs.captures = c;
    join(c, s, NULL);
    return c;
}

static CUresult begin_new(CUstream handle, CUstreamCaptureMode mode)
{
    CUstream s;
    CUresult r = begin_check(handle, mode, &s);

    if (!r)
        begin(s, mode, cs_graph_new(true));
    return r;
}

/* The first binary interface has no mode. */
CUresult cuStreamBeginCapture(CUstream s)
{
    ENTER(cuStreamBeginCapture);
    return begin_new(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode)
{
    ENTER(cuStreamBeginCapture_v2);
    return begin_new(s, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                                     size_t count, CUstreamCaptureMode mode)
{
    CUstream s;
    CUresult r;

    ENTER(cuStreamBeginCaptureToGraph);
    if ((r = begin_check(handle, mode, &s)) != CUDA_SUCCESS)
        return r;
    if (!cs_is(graph, CS_GRAPH) || (count && !deps))
        return CUDA_ERROR_INVALID_VALUE;
    if (graph->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    for (size_t i = 0; i < count; i++)
        if (!cs_is(deps[i], CS_NODE) || deps[i]->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    begin(s, mode, graph)->borrowed = true;
    cs_deps_set(&s->deps, deps, edges, count);
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *out)
{
    CUstream s;
    CUresult r;

    ENTER(cuStreamEndCapture);
    if (out)
        *out = NULL;
    if ((r = cs_stream(handle, &s)) != CUDA_SUCCESS)
        return r;
    struct cs_capture *c = s->capture;
    if (!c)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != s) {
        cs_capture_kill(c);
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (c->dead)
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (c->thread != cs_thread_id() && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    else if (!joined(c))
        r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    bool borrowed = c->borrowed;
    CUgraph graph = capture_end(c);
    /* A failed capture takes its graph with it, the caller's own as well. */
    if (r || (!out && !borrowed))
        cs_graph_free(graph);
    else if (out)
        *out = graph;
    return r;
}

/* ---- questions ----------------------------------------------------------------------------------------------------- */

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    ENTER(cuThreadExchangeStreamCaptureMode);
    /* Not validated, as on a card. */
    int old = cs_me.mode;
    cs_me.mode = (int)*mode;
    *mode = (CUstreamCaptureMode)old;
    return CUDA_SUCCESS;
}

static CUresult status_of(CUstream handle, CUstream *s, CUstreamCaptureStatus *status)
{
    CUresult r = cs_stream(handle, s);

    if (r)
        return r;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    if ((*s)->legacy && legacy_blocked((*s)->ctx))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = !(*s)->capture        ? CU_STREAM_CAPTURE_STATUS_NONE
              : (*s)->capture->dead ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                    : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    CUstream s;

    ENTER(cuStreamIsCapturing);
    return status_of(handle, &s, status);
}

static CUresult info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps,
                     const CUgraphEdgeData **edges, size_t *count)
{
    CUstreamCaptureStatus now;
    CUstream s;
    CUresult r = status_of(handle, &s, status ? &now : NULL);

    if (r)
        return r;
    /* Idle or invalidated: the status alone is written. */
    if (now == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        for (size_t i = 0; deps && !edges && i < s->deps.count; i++)
            if (s->deps.edges[i].type || s->deps.edges[i].from_port || s->deps.edges[i].to_port)
                return CUDA_ERROR_LOSSY_QUERY;
        if (id)
            *id = s->capture->id;
        if (graph)
            *graph = s->capture->graph;
        if (deps)
            *deps = s->deps.nodes;
        if (edges)
            *edges = s->deps.edges;
        if (count)
            *count = s->deps.count;
    }
    *status = now;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    ENTER(cuStreamGetCaptureInfo);
    return info(s, status, id, NULL, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **deps, size_t *count)
{
    ENTER(cuStreamGetCaptureInfo_v2);
    return info(s, status, id, graph, deps, NULL, count);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **deps, const CUgraphEdgeData **edges, size_t *count)
{
    ENTER(cuStreamGetCaptureInfo_v3);
    return info(s, status, id, graph, deps, edges, count);
}

static CUresult update_deps(CUstream handle, CUgraphNode *deps, const CUgraphEdgeData *edges, size_t count, unsigned flags)
{
    CUstream s;
    CUresult r = cs_stream(handle, &s);

    if (r)
        return r;
    if (!s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (s->capture->dead)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !deps))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!cs_is(deps[i], CS_NODE) || deps[i]->graph != s->capture->graph)
            return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        cs_deps_set(&s->deps, deps, edges, count);
    } else {
        for (size_t i = 0; i < count; i++)
            cs_deps_add(&s->deps, deps[i], edges ? edges[i] : (CUgraphEdgeData){0});
    }
    return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies(CUstream s, CUgraphNode *deps, size_t count, unsigned flags)
{
    ENTER(cuStreamUpdateCaptureDependencies);
    return update_deps(s, deps, NULL, count, flags);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream s, CUgraphNode *deps, const CUgraphEdgeData *edges, size_t count,
                                              unsigned flags)
{
    ENTER(cuStreamUpdateCaptureDependencies_v2);
    return update_deps(s, deps, edges, count, flags);
}
