/* Beginning and ending a capture, and threads. */
#include <pthread.h>

#include "conformance.h"

static CUdeviceptr counter;

static void add_one(CUstream s)
{
    MUST_LAUNCH(launch_inc(counter, 1, s));
}

/* ---- begin ------------------------------------------------------------------------------------------------------- */

static void begin_streams(int unused)
{
    (void)unused;
    for (int m = 0; m < 3; m++) {
        fact("capture.begin.null_stream.%s", mode_name[m]);
        code(begin(NULL, m), 900, "cuStreamBeginCapture(NULL)");
    }
    fact("capture.begin.legacy_handle");
    code(begin(CU_STREAM_LEGACY, RELAXED), 900, "cuStreamBeginCapture(CU_STREAM_LEGACY)");
    fact("capture.begin.per_thread");
    code(begin(CU_STREAM_PER_THREAD, GLOBAL), 0, "cuStreamBeginCapture(CU_STREAM_PER_THREAD)");
    state("it is", CU_STREAM_PER_THREAD, ACTIVE);
    told_end("end", CU_STREAM_PER_THREAD, 0, "");
}

static void begin_bad_mode(int unused)
{
    CUstream s = stream_nb();

    (void)unused;
    code(begin(s, 3), 1, "cuStreamBeginCapture(mode 3)");
    state("stream", s, NONE);
    code(begin(s, -1), 1, "cuStreamBeginCapture(mode -1)");
    state("stream", s, NONE);
}

static void begin_twice(int unused)
{
    CUstream s = stream_nb();

    (void)unused;
    counter = device_new(64);
    for (int m = 0; m < 3; m++) {
        fact("capture.begin.twice.%s", mode_name[m]);
        must_begin(s, m);
        add_one(s);
        code(begin(s, m), 401, "second cuStreamBeginCapture");
        state("capture", s, ACTIVE);
        add_one(s);
        told_end("end", s, 0, "kernel=2");
    }
}

static void begin_forked(int unused)
{
    CUstream s = stream_nb(), fork = stream_nb();

    (void)unused;
    counter = device_new(64);
    must_begin(s, GLOBAL);
    add_one(s);
    fork_to(s, fork);
    state("fork", fork, ACTIVE);
    code(begin(fork, GLOBAL), 401, "cuStreamBeginCapture(fork)");
    state("origin", s, ACTIVE);
    told_end("end(origin)", s, 0, "kernel=1");
    state("fork", fork, NONE);
}

static void begin_invalidated(int unused)
{
    CUstream s = stream_nb();

    (void)unused;
    must_begin(s, GLOBAL);
    code(call_alloc(NULL), 900, "cuMemAlloc");
    code(begin(s, GLOBAL), 401, "cuStreamBeginCapture");
    state("capture", s, DEAD);
    told_end("end", s, 901, "NULL");
}

static void begin_second(int unused)
{
    CUstream a = stream_nb(), b = stream_nb();

    (void)unused;
    must_begin(a, GLOBAL);
    code(begin(b, GLOBAL), 0, "a second capture on another stream");
    state("B", b, ACTIVE);
    code(end(b), 0, "end(B)");
    state("A", a, ACTIVE);
    code(end(a), 0, "end(A)");
}

/* Instantiating what the first gave kills the second. */
static void second_dies_of_instantiate(int unused)
{
    CUstream a = stream_nb(), b = stream_nb();
    CUgraph g;
    CUgraphExec x;

    (void)unused;
    must_begin(a, GLOBAL);
    must_begin(b, GLOBAL);
    g = must_end(b);
    code(CU(GraphInstantiateWithFlags)(&x, g, 0), 900, "instantiate B's graph");
    state("A", a, DEAD);
    code(end(a), 901, "end(A)");
    code(CU(GraphInstantiateWithFlags)(&x, g, 0), 0, "instantiate afterwards");
}

/* ---- end --------------------------------------------------------------------------------------------------------- */

static void end_without_begin(int unused)
{
    (void)unused;
    fact("capture.end.without_begin");
    told_end("cuStreamEndCapture(idle stream)", stream_nb(), 401, "NULL");
    fact("capture.end.without_begin.null_stream");
    told_end("cuStreamEndCapture(NULL stream)", NULL, 401, "NULL");
}

static void end_other_stream(int unused)
{
    CUstream s = stream_nb(), idle = stream_nb();

    (void)unused;
    counter = device_new(64);
    must_begin(s, GLOBAL);
    add_one(s);
    told_end("cuStreamEndCapture(another idle stream)", idle, 401, "NULL");
    state("capture", s, ACTIVE);
    told_end("end", s, 0, "kernel=1");
}

static void end_on_fork(int unused)
{
    CUstream s = stream_nb(), fork = stream_nb();

    (void)unused;
    counter = device_new(64);
    fact("capture.end.on_fork");
    must_begin(s, GLOBAL);
    add_one(s);
    fork_to(s, fork);
    add_one(fork);
    code(end(fork), 903, "cuStreamEndCapture(fork)");
    state("origin", s, DEAD);
    told_end("end(origin)", s, 901, "NULL");
    state("fork", fork, NONE);

    fact("capture.end.on_fork.invalidated");
    must_begin(s, GLOBAL);
    add_one(s);
    fork_to(s, fork);
    add_one(fork);
    code(call_alloc(NULL), 900, "cuMemAlloc");
    state("fork", fork, DEAD);
    code(launch_nop(fork), 901, "launch on the fork");
    code(end(fork), 903, "cuStreamEndCapture(fork)");
    state("origin", s, DEAD);
    told_end("end(origin)", s, 901, "NULL");
    state("fork", fork, NONE);
    code(launch_nop(fork), 0, "launch on the fork afterwards");
    code(CU(StreamSynchronize)(fork), 0, "sync");
}

static void end_null_output(int unused)
{
    CUstream s = stream_nb();

    (void)unused;
    must_begin(s, GLOBAL);
    code(CU(StreamEndCapture)(s, NULL), 0, "cuStreamEndCapture(s, NULL)");
    state("stream", s, NONE);
    code(end(s), 401, "end again");
}

static void end_twice(int unused)
{
    CUstream s = stream_nb();

    (void)unused;
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_nop(s));
    code(end(s), 0, "cuStreamEndCapture");
    told_end("again", s, 401, "NULL");
}

static void end_empty(int unused)
{
    CUstream s = stream_nb();

    (void)unused;
    must_begin(s, GLOBAL);
    told_end("cuStreamEndCapture", s, 0, "");
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

struct ending {
    CUstream stream;
    CUgraph graph;
};

static CUresult call_end(void *p)
{
    struct ending *e = p;

    e->graph = (CUgraph)1;
    return CU(StreamEndCapture)(e->stream, &e->graph);
}

static CUresult call_begin_global(void *p)
{
    return begin(*(CUstream *)p, GLOBAL);
}

static void end_other_thread(int unused)
{
    (void)unused;
    counter = device_new(64);
    for (int m = 0; m < 3; m++)
        for (int thread = -1; thread < 3; thread++) {
            struct ending e = {stream_nb(), NULL};

            fact("capture.end.other_thread.%s.thread_%s", mode_name[m], thread < 0 ? "default" : mode_name[thread]);
            must_begin(e.stream, m);
            add_one(e.stream);
            code(in_thread_mode(call_end, &e, thread), m == RELAXED ? 0 : 908, "cuStreamEndCapture from another thread");
            holds("graph", e.graph, m == RELAXED ? "kernel=1" : "NULL");
            state("stream", e.stream, NONE);
            code(launch_nop(e.stream), 0, "launch on it");
            code(end(e.stream), 401, "end by the thread that began");
            code(call_alloc(NULL), 0, "cuMemAlloc");
            code(in_thread(call_alloc, NULL), 0, "cuMemAlloc elsewhere");
            code(begin(e.stream, m), 0, "begin again");
            code(end(e.stream), 0, "end again");
        }
}

static void end_mode_changed(int unused)
{
    CUstream s = stream_nb();

    (void)unused;
    for (int m = 0; m < 3; m++) {
        CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

        fact("capture.end.thread_mode_changed.%s", mode_name[m]);
        must_begin(s, m);
        MUST_LAUNCH(launch_nop(s));
        MUST(ThreadExchangeStreamCaptureMode, &relaxed);
        code(end(s), 0, "cuStreamEndCapture with the thread RELAXED by then");
        MUST(ThreadExchangeStreamCaptureMode, &relaxed);
    }
}

static void thread_exits(int unused)
{
    CUstream s = stream_nb();

    (void)unused;
    fact("capture.thread_exits");
    code(in_thread(call_begin_global, &s), 0, "a thread begins a GLOBAL capture and exits");
    state("capture", s, ACTIVE);
    code(launch_nop(s), 0, "launch into it from here");
    told_end("end from here", s, 908, "NULL");
    state("stream", s, NONE);
    code(call_alloc(NULL), 0, "cuMemAlloc");

    fact("capture.thread_exits.goes_on_forbidding");
    code(in_thread(call_begin_global, &s), 0, "a thread begins a GLOBAL capture and exits");
    code(call_alloc(NULL), 900, "cuMemAlloc here");
    state("capture", s, DEAD);
    told_end("end from here", s, 901, "NULL");
    code(call_alloc(NULL), 0, "cuMemAlloc");
}

static void exchange_not_checked(int unused)
{
    CUstreamCaptureMode m = (CUstreamCaptureMode)7;

    (void)unused;
    code(CU(ThreadExchangeStreamCaptureMode)(&m), 0, "cuThreadExchangeStreamCaptureMode(7)");
    equal((int)m, GLOBAL, "it was");
    m = CU_STREAM_CAPTURE_MODE_GLOBAL;
    code(CU(ThreadExchangeStreamCaptureMode)(&m), 0, "cuThreadExchangeStreamCaptureMode(GLOBAL)");
    equal((int)m, 7, "it was");
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static void is_capturing(int unused)
{
    CUstream s = stream_nb(), b = stream_bl();
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)9;

    (void)unused;
    fact("capture.status.null_output");
    code(CU(StreamIsCapturing)(s, NULL), 1, "cuStreamIsCapturing(s, NULL)");
    fact("capture.status.null_stream");
    code(CU(StreamIsCapturing)(NULL, &status), 0, "cuStreamIsCapturing(NULL stream), nothing captures");
    equal((int)status, NONE, "status");
    fact("capture.status.null_stream.blocking_captures");
    must_begin(b, RELAXED);
    status = (CUstreamCaptureStatus)9;
    code(CU(StreamIsCapturing)(NULL, &status), 906, "cuStreamIsCapturing(NULL stream) while a blocking stream captures");
    equal((int)status, 9, "status left");
    state("capture", b, ACTIVE);
    code(CU(StreamGetCaptureInfo)(NULL, &status, NULL, NULL, NULL, NULL, NULL), 906, "cuStreamGetCaptureInfo(NULL stream)");
    state("capture", b, ACTIVE);
    told_end("end", b, 0, "");
}

struct info {
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph;
    const CUgraphNode *deps;
    size_t count;
};

static CUresult get_info(CUstream s, struct info *i)
{
    *i = (struct info){(CUstreamCaptureStatus)9, 77, (CUgraph)1, (const CUgraphNode *)1, 77};
    return CU(StreamGetCaptureInfo)(s, &i->status, &i->id, &i->graph, &i->deps, NULL, &i->count);
}

static bool untouched(const struct info *i)
{
    return i->id == 77 && i->graph == (CUgraph)1 && i->deps == (const CUgraphNode *)1 && i->count == 77;
}

static void capture_info(int unused)
{
    CUstream s = stream_nb();
    struct info i;
    CUgraph g = NULL;
    cuuint64_t first;

    (void)unused;
    counter = device_new(64);
    fact("capture.info.idle");
    code(get_info(s, &i), 0, "cuStreamGetCaptureInfo(idle)");
    equal((int)i.status, NONE, "status");
    yes(untouched(&i), "the rest is left");

    fact("capture.info.active");
    must_begin(s, GLOBAL);
    add_one(s);
    code(get_info(s, &i), 0, "cuStreamGetCaptureInfo(capturing)");
    equal((int)i.status, ACTIVE, "status");
    equal((long long)i.count, 1, "dependencies");
    holds("graph", i.graph, "kernel=1");
    first = i.id;
    code(CU(StreamEndCapture)(s, &g), 0, "end");
    yes(g == i.graph, "end returns the same handle");

    fact("capture.info.ids_rise");
    must_begin(s, GLOBAL);
    code(get_info(s, &i), 0, "the next capture");
    yes(i.id > first, "its id is greater");
    code(end(s), 0, "end");

    fact("capture.info.invalidated");
    must_begin(s, GLOBAL);
    code(call_alloc(NULL), 900, "cuMemAlloc");
    code(get_info(s, &i), 0, "cuStreamGetCaptureInfo(invalidated)");
    equal((int)i.status, DEAD, "status");
    yes(untouched(&i), "the rest is left");
    code(end(s), 901, "end");
}

static void update_dependencies(int unused)
{
    CUstream s = stream_nb();
    CUgraph g = NULL;
    size_t edges = 99;

    (void)unused;
    counter = device_new(64);
    fact("capture.dependencies.idle");
    code(CU(StreamUpdateCaptureDependencies)(s, NULL, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES), 401,
         "cuStreamUpdateCaptureDependencies(idle)");
    fact("capture.dependencies.dropped");
    must_begin(s, GLOBAL);
    add_one(s);
    code(CU(StreamUpdateCaptureDependencies)(s, NULL, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES), 0,
         "cuStreamUpdateCaptureDependencies(n = 0, SET)");
    add_one(s);
    code(CU(StreamEndCapture)(s, &g), 0, "end");
    holds("graph", g, "kernel=2");
    code(CU(GraphGetEdges)(g, NULL, NULL, NULL, &edges), 0, "cuGraphGetEdges");
    equal((long long)edges, 0, "edges");
}

/* ---- into a graph of the caller ----------------------------------------------------------------------------------- */

static void to_graph(int unused)
{
    CUstream s = stream_nb(), s2 = stream_nb();
    CUgraph g = NULL, out = NULL;
    CUgraphNode node = NULL;
    CUgraphExec x;

    (void)unused;
    fact("capture.to_graph.empty_target");
    MUST(GraphCreate, &g, 0);
    code(CU(StreamBeginCaptureToGraph)(s, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL), 0, "cuStreamBeginCaptureToGraph");
    MUST_LAUNCH(launch_nop(s));
    code(CU(GraphAddEmptyNode)(&node, g, NULL, 0), 0, "add an empty node to the target");
    code(CU(GraphDestroy)(g), 401, "cuGraphDestroy(target)");
    code(CU(StreamBeginCaptureToGraph)(s2, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL), 401, "a second capture into it");
    state("capture", s, ACTIVE);
    code(CU(StreamEndCapture)(s, &out), 0, "end");
    yes(out == g, "end returns the target's handle");
    holds("graph", g, "kernel=1 empty=1");

    fact("capture.to_graph.appended");
    node = node_at(g, 0);
    code(CU(StreamBeginCaptureToGraph)(s, g, &node, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL), 0, "append behind node 0");
    MUST_LAUNCH(launch_nop(s));
    told_end("end", s, 0, "kernel=2 empty=1");

    fact("capture.to_graph.instantiate.RELAXED");
    code(CU(StreamBeginCaptureToGraph)(s, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED), 0, "cuStreamBeginCaptureToGraph");
    MUST_LAUNCH(launch_nop(s));
    code(CU(GraphInstantiateWithFlags)(&x, g, 0), 0, "instantiate the target");
    state("capture", s, ACTIVE);
    code(CU(StreamEndCapture)(s, &out), 0, "end");
    holds("graph", g, "kernel=3 empty=1");

    fact("capture.to_graph.instantiate.GLOBAL");
    code(CU(StreamBeginCaptureToGraph)(s, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL), 0, "cuStreamBeginCaptureToGraph");
    code(CU(GraphInstantiateWithFlags)(&x, g, 0), 900, "instantiate the target");
    state("capture", s, DEAD);
    code(end(s), 901, "end");
}

/* The caller's graph goes with its capture. Its handle is dead then; asking is what the fact is about. */
static void to_graph_invalidated(int unused)
{
    CUstream s = stream_nb();
    CUgraph g = NULL, out = (CUgraph)1;
    CUgraphNode node;
    size_t n = 0;

    (void)unused;
    MUST(GraphCreate, &g, 0);
    MUST(GraphAddEmptyNode, &node, g, NULL, 0);
    MUST(StreamBeginCaptureToGraph, s, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST_LAUNCH(launch_nop(s));
    code(call_alloc(NULL), 900, "cuMemAlloc");
    code(CU(StreamEndCapture)(s, &out), 901, "end");
    yes(out == NULL, "graph NULL");
    code(CU(GraphGetNodes)(g, NULL, &n), 1, "cuGraphGetNodes(the caller's graph)");
    code(CU(GraphDestroy)(g), 1, "cuGraphDestroy(the caller's graph)");
}

/* The same holds for the handle that cuStreamGetCaptureInfo gave. */
static void info_graph_invalidated(int unused)
{
    CUstream s = stream_nb();
    CUgraph g;
    size_t n = 0;

    (void)unused;
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_nop(s));
    g = captured_graph(s);
    code(call_alloc(NULL), 900, "cuMemAlloc");
    code(end(s), 901, "end");
    code(CU(GraphGetNodes)(g, NULL, &n), 1, "cuGraphGetNodes(graph that was under capture)");
}

const struct job capture_end_jobs[] = {
    {.id = "capture.begin", .run = begin_streams},
    {.id = "capture.begin.bad_mode", .run = begin_bad_mode},
    {.id = "capture.begin.twice", .run = begin_twice},
    {.id = "capture.begin.forked", .run = begin_forked},
    {.id = "capture.begin.invalidated", .run = begin_invalidated},
    {.id = "capture.begin.second", .run = begin_second},
    {.id = "capture.begin.second_dies_of_instantiate", .run = second_dies_of_instantiate},
    {.id = "capture.end.without_begin", .run = end_without_begin},
    {.id = "capture.end.other_stream", .run = end_other_stream},
    {.id = "capture.end.on_fork", .run = end_on_fork},
    {.id = "capture.end.null_output", .run = end_null_output},
    {.id = "capture.end.twice", .run = end_twice},
    {.id = "capture.end.empty", .run = end_empty},
    {.id = "capture.end.other_thread", .run = end_other_thread},
    {.id = "capture.end.thread_mode_changed", .run = end_mode_changed},
    {.id = "capture.thread_exits", .run = thread_exits},
    {.id = "capture.thread_mode.not_checked", .run = exchange_not_checked},
    {.id = "capture.status", .run = is_capturing},
    {.id = "capture.info", .run = capture_info},
    {.id = "capture.dependencies", .run = update_dependencies},
    {.id = "capture.to_graph", .run = to_graph},
    {.id = "capture.to_graph.invalidated", .run = to_graph_invalidated},
    {.id = "capture.info.invalidated_graph_is_dead", .run = info_graph_invalidated},
    {.id = NULL},
};
