/* More than one context, no context, a destroyed one, and a green one. */
#include "conformance.h"

/* A second context with a stream, memory and a kernel of its own; the first is current again. */
static struct {
    CUcontext ctx;
    CUstream stream;
    CUdeviceptr d;
    CUfunction inc;
} second;

static void second_new(void)
{
    CUmodule m = NULL;

    MUST(CtxCreate, &second.ctx, NULL, 0, env.device);
    MUST(ModuleLoadData, &m, env.ptx);
    MUST(ModuleGetFunction, &second.inc, m, "inc");
    second.stream = stream_nb();
    second.d = device_new(64);
    MUST(CtxSetCurrent, env.ctx);
}

static CUresult launch_second(CUstream s)
{
    float v = 1;
    void *args[] = {&second.d, &v};

    return launch(second.inc, s, args);
}

static void foreign_kernel(int unused)
{
    CUstream s = stream_nb();
    CUdeviceptr d = device_new(64);

    (void)unused;
    second_new();
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_inc(d, 1, s));
    code(launch_second(s), 400, "kernel of context 2 into a capturing stream of context 1");
    state("capture", s, ACTIVE);
    told_end("end", s, 0, "kernel=1");
}

static void fork_across(int unused)
{
    CUstream s = stream_nb();
    CUdeviceptr d = device_new(64);
    CUevent e = event_new(), e2;
    CUgraph g;
    CUgraphExec x = NULL;
    CUDA_KERNEL_NODE_PARAMS k;

    (void)unused;
    second_new();
    fact("context.fork.captured");
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_inc(d, 1, s));
    MUST(EventRecord, e, s);
    code(CU(StreamWaitEvent)(second.stream, e, 0), 0, "fork into a stream of context 2");
    state("fork", second.stream, ACTIVE);
    code(launch_second(second.stream), 0, "launch there");
    MUST(CtxSetCurrent, second.ctx);
    e2 = event_new();
    code(CU(EventRecord)(e2, second.stream), 0, "record there");
    MUST(CtxSetCurrent, env.ctx);
    code(CU(StreamWaitEvent)(s, e2, 0), 0, "join");
    g = must_end(s);
    holds("graph", g, "kernel=2");
    memset(&k, 0, sizeof k);
    MUST(GraphKernelNodeGetParams, node_at(g, 0), &k);
    yes(k.ctx == env.ctx, "node 0 is of context 1");
    MUST(GraphKernelNodeGetParams, node_at(g, 1), &k);
    yes(k.ctx == second.ctx, "node 1 is of context 2");
    yes(first_form_agrees(node_at(g, 0)) && first_form_agrees(node_at(g, 1)), "the first form tells the same of both");

    fact("context.fork.replayed");
    if (!code(CU(GraphInstantiateWithFlags)(&x, g, 0), 0, "instantiate"))
        return;
    code(CU(GraphLaunch)(x, s), 0, "launch in context 1");
    code(CU(StreamSynchronize)(s), 0, "sync");
    code(CU(GraphLaunch)(x, second.stream), 0, "launch in context 2's stream");
    code(CU(StreamSynchronize)(second.stream), 0, "sync");
    value(peek(d), 2, "context 1's kernel made");
    MUST(CtxSetCurrent, second.ctx);
    value(peek(second.d), 2, "context 2's");
}

static void update_across(int unused)
{
    CUstream s = stream_nb();
    CUdeviceptr d = device_new(64);
    CUgraph g, h;
    CUgraphExec x;
    CUgraphExecUpdateResultInfo info;
    CUDA_KERNEL_NODE_PARAMS k;

    (void)unused;
    second_new();
    g = inc_graph(d, 1, s);
    MUST(CtxSetCurrent, second.ctx);
    must_begin(second.stream, GLOBAL);
    MUST_LAUNCH(launch_second(second.stream));
    h = must_end(second.stream);
    MUST(CtxSetCurrent, env.ctx);
    x = must_instantiate(g);
    fact("context.update");
    memset(&info, 0, sizeof info);
    code(CU(GraphExecUpdate)(x, h, &info), 910, "cuGraphExecUpdate to a kernel of another context");
    equal((int)info.result, 7, "result");
    fact("context.set_params");
    memset(&k, 0, sizeof k);
    MUST(GraphKernelNodeGetParams, node_at(h, 0), &k);
    code(CU(GraphExecKernelNodeSetParams)(x, node_at(g, 0), &k), 1, "SetParams to a function of another context");
    must_run(x, s);
    value(peek(d), 1, "a replay makes");
}

/* ---- a thread without one ----------------------------------------------------------------------------------------------- */

static CUstream stream;
static CUgraphExec exec;
static struct {
    CUresult begin, launch, end, instantiate, run, sync, upload, destroy, alloc, event;
    CUgraph graph;
} r;

static CUresult contextless(void *unused)
{
    CUdeviceptr p = 0;
    CUevent e;
    CUgraphExec x = NULL;

    (void)unused;
    MUST(CtxSetCurrent, NULL);
    r.begin = begin(stream, GLOBAL);
    r.launch = launch_nop(stream);
    r.end = CU(StreamEndCapture)(stream, &r.graph);
    r.instantiate = CU(GraphInstantiateWithFlags)(&x, r.graph, 0);
    r.alloc = CU(MemAlloc)(&p, 64);
    r.event = CU(EventCreate)(&e, 0);
    r.run = CU(GraphLaunch)(exec, stream);
    r.sync = CU(StreamSynchronize)(stream);
    r.upload = CU(GraphUpload)(exec, stream);
    r.destroy = CU(GraphExecDestroy)(exec);
    return CUDA_SUCCESS;
}

static void no_context(int unused)
{
    (void)unused;
    stream = stream_nb();
    exec = must_instantiate(nop_graph(stream));
    in_thread(contextless, NULL);
    fact("context.none.works");
    code(r.begin, 0, "cuStreamBeginCapture");
    code(r.launch, 0, "cuLaunchKernel");
    code(r.end, 0, "cuStreamEndCapture");
    code(r.run, 0, "cuGraphLaunch");
    code(r.sync, 0, "cuStreamSynchronize");
    code(r.upload, 0, "cuGraphUpload");
    code(r.destroy, 0, "cuGraphExecDestroy");
    fact("context.none.refused");
    code(r.instantiate, 201, "cuGraphInstantiateWithFlags");
    code(r.alloc, 201, "cuMemAlloc");
    code(r.event, 201, "cuEventCreate");
}

/* ---- calls that name their stream ----------------------------------------------------------------------------------------- */

/* They go to the stream's context, whatever the thread's current one is. */
static struct {
    CUresult in, across, set, record, query, kernel, run, sync;
} enqueued;
static unsigned char *locked;
static CUdeviceptr there;
static CUevent mark;

static CUresult enqueuing(void *current)
{
    MUST(CtxSetCurrent, current);
    memset(locked, current == NULL ? 'n' : 'o', 16);
    enqueued.in = CU(MemcpyHtoDAsync)(there, locked, 16, stream);
    enqueued.across = CU(MemcpyDtoDAsync)(there + 16, there, 16, stream);
    enqueued.set = CU(MemsetD8Async)(there + 32, 's', 16, stream);
    enqueued.kernel = launch_nop(stream);
    enqueued.run = CU(GraphLaunch)(exec, stream);
    enqueued.record = CU(EventRecord)(mark, stream);
    enqueued.sync = CU(StreamSynchronize)(stream);
    enqueued.query = CU(EventQuery)(mark);
    return CUDA_SUCCESS;
}

static void other_context(int none)
{
    unsigned char seen_there[48], wanted[48];

    second_new();
    stream = stream_nb();
    mark = event_new();
    there = device_new(48);
    locked = pinned_new(16);
    exec = must_instantiate(nop_graph(stream));
    in_thread(enqueuing, none ? NULL : second.ctx);
    fact(none ? "context.none.enqueues" : "context.other.enqueues");
    code(enqueued.in, 0, "cuMemcpyHtoDAsync");
    code(enqueued.across, 0, "cuMemcpyDtoDAsync");
    code(enqueued.set, 0, "cuMemsetD8Async");
    code(enqueued.kernel, 0, "cuLaunchKernel");
    code(enqueued.run, 0, "cuGraphLaunch");
    code(enqueued.record, 0, "cuEventRecord");
    code(enqueued.sync, 0, "cuStreamSynchronize");
    code(enqueued.query, 0, "cuEventQuery");
    memset(wanted, none ? 'n' : 'o', 32);
    memset(wanted + 32, 's', 16);
    MUST(MemcpyDtoH, seen_there, there, 48);
    yes(memcmp(seen_there, wanted, 48) == 0, "all bytes arrived");
}

/* ---- a destroyed one ---------------------------------------------------------------------------------------------------- */

/* A context that is destroyed takes its thread's current context with it. What becomes of its handles is undefined and not asked.
 */
static void destroyed(int unused)
{
    CUdeviceptr p = 0;
    CUcontext c = NULL;

    (void)unused;
    fact("context.destroyed.not_current");
    second_new();
    code(CU(CtxDestroy)(second.ctx), 0, "cuCtxDestroy");
    code(call_alloc(NULL), 0, "cuMemAlloc in the other");

    fact("context.destroyed.current");
    MUST(CtxCreate, &c, NULL, 0, env.device);
    seen("cuCtxDestroy(current) gives %d", (int)CU(CtxDestroy)(c));
    seen("cuMemAlloc then gives %d", (int)CU(MemAlloc)(&p, 64));
    MUST(CtxSetCurrent, env.ctx);
    code(call_alloc(NULL), 0, "cuMemAlloc in the other");
}

/* ---- a green one --------------------------------------------------------------------------------------------------------- */

static void green(int unused)
{
    cf_dev_resource all, part[1], rest;
    cf_dev_resource_desc desc = NULL;
    cf_green gc = NULL;
    CUcontext gctx = NULL, of_stream = NULL;
    CUstream gs = NULL, s = stream_nb();
    CUdeviceptr d = device_new(64);
    CUgraph g, h;
    CUgraphExec x, xh;
    CUgraphNode n;
    CUDA_KERNEL_NODE_PARAMS k;
    CUgraphExecUpdateResultInfo info;
    unsigned groups = 1;

    (void)unused;
    memset(&all, 0, sizeof all);
    MUST(DeviceGetDevResource, env.device, &all, CF_DEV_RESOURCE_SM);
    MUST(DevSmResourceSplitByCount, part, &groups, &all, &rest, 0, 16);
    MUST(DevResourceGenerateDesc, &desc, part, 1);
    MUST(GreenCtxCreate, &gc, desc, env.device, CF_GREEN_DEFAULT_STREAM);
    fact("context.green.streams");
    code(CU(GreenCtxStreamCreate)(&gs, gc, CU_STREAM_DEFAULT, 0), 1, "cuGreenCtxStreamCreate(DEFAULT)");
    code(CU(GreenCtxStreamCreate)(&gs, gc, CU_STREAM_NON_BLOCKING, 0), 0, "cuGreenCtxStreamCreate(NON_BLOCKING)");
    MUST(CtxFromGreenCtx, &gctx, gc);
    code(CU(StreamGetCtx)(gs, &of_stream), 0, "cuStreamGetCtx");
    yes(of_stream == gctx, "the green context");

    fact("context.green.captured");
    must_begin(gs, GLOBAL);
    code(launch_inc(d, 1, gs), 0, "launch");
    g = must_end(gs);
    n = node_at(g, 0);
    memset(&k, 0, sizeof k);
    MUST(GraphKernelNodeGetParams, n, &k);
    yes(k.ctx == gctx && k.func == kernel("inc"), "ctx is the green context, func as launched");
    yes(first_form_agrees(n), "the first form tells the same");
    x = must_instantiate(g);
    code(CU(GraphLaunch)(x, gs), 0, "launch in the green stream");
    code(CU(StreamSynchronize)(gs), 0, "sync");
    code(CU(GraphLaunch)(x, s), 0, "launch in a primary stream");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(d), 2, "then");

    fact("context.green.set_params");
    code(CU(GraphExecKernelNodeSetParams)(x, n, &k), 1, "SetParams as read, primary context current");
    MUST(CtxSetCurrent, gctx);
    code(CU(GraphExecKernelNodeSetParams)(x, n, &k), 0, "SetParams as read, green context current");
    MUST(CtxSetCurrent, env.ctx);

    fact("context.green.update");
    h = inc_graph(d, 1, s);
    memset(&info, 0, sizeof info);
    code(CU(GraphExecUpdate)(x, h, &info), 910, "green to primary");
    equal((int)info.result, 7, "result");
    xh = must_instantiate(h);
    code(CU(GraphExecUpdate)(xh, g, &info), 910, "primary to green");
    equal((int)info.result, 7, "result");
    code(CU(GraphLaunch)(xh, gs), 0, "primary exec in the green stream");
    code(CU(StreamSynchronize)(gs), 0, "sync");

    fact("context.green.null_stream");
    MUST(CtxSetCurrent, gctx);
    code(begin(NULL, GLOBAL), 0, "cuStreamBeginCapture(NULL), green context current");
    code(launch_inc(d, 1, NULL), 0, "launch");
    code(end(NULL), 0, "end");
    must_begin(gs, GLOBAL);
    code(launch_inc(d, 1, NULL), 0, "launch on NULL beside a green capture");
    state("capture", gs, ACTIVE);
    code(end(gs), 0, "end");
    MUST(CtxSetCurrent, env.ctx);

    fact("context.green.destroyed");
    code(CU(GreenCtxDestroy)(gc), 0, "cuGreenCtxDestroy with execs alive");
    code(CU(GraphLaunch)(x, s), 0, "launch of the green exec");
    code(CU(StreamSynchronize)(s), 0, "sync");
}

const struct job context_jobs[] = {
    {.id = "context.foreign_kernel", .run = foreign_kernel},
    {.id = "context.fork", .run = fork_across},
    {.id = "context", .run = update_across},
    {.id = "context.none", .run = no_context},
    {.id = "context.none.enqueues", .run = other_context, .arg = 1},
    {.id = "context.other.enqueues", .run = other_context, .arg = 0},
    {.id = "context.destroyed", .run = destroyed},
    {.id = "context.green",
     .run = green,
     .flags = JOB_CARD_ONLY,
     .deviation = "green contexts divide a card's multiprocessors; a software driver has none to divide"},
    {.id = NULL},
};
