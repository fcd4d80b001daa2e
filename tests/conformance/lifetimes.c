/* What lives how long: executable graphs, graphs, streams, modules, and memory that a graph names. */
#include "conformance.h"

static CUstream s;
static CUdeviceptr counter;

struct step {
    CUgraph graph;
    CUgraphExec exec;
};

/* A kernel that takes a while, then one that adds 1. */
static struct step slow_step(double ms)
{
    struct step t;

    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_spin(ms, s));
    MUST_LAUNCH(launch_inc(counter, 1, s));
    t.graph = must_end(s);
    t.exec = must_instantiate(t.graph);
    return t;
}

static void in_flight(int unused)
{
    struct step t;
    CUstream other;

    (void)unused;
    s = stream_nb();
    counter = device_new(64);
    fact("lifetime.exec_destroyed_in_flight");
    t = slow_step(60);
    MUST(GraphLaunch, t.exec, s);
    code(CU(GraphExecDestroy)(t.exec), 0, "cuGraphExecDestroy");
    code(CU(StreamQuery)(s), 600, "cuStreamQuery");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(counter), 1, "the launch was completed:");

    fact("lifetime.graph_destroyed_in_flight");
    poke(counter, 0);
    t = slow_step(60);
    MUST(GraphLaunch, t.exec, s);
    code(CU(GraphDestroy)(t.graph), 0, "cuGraphDestroy");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(counter), 1, "the launch was completed:");
    code(CU(GraphLaunch)(t.exec, s), 0, "another launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(counter), 2, "then");

    fact("lifetime.stream_destroyed_in_flight");
    poke(counter, 0);
    t = slow_step(60);
    other = stream_nb();
    MUST(GraphLaunch, t.exec, other);
    code(CU(StreamDestroy)(other), 0, "cuStreamDestroy");
    sync_all();
    value(peek(counter), 1, "the launch was completed:");

    fact("lifetime.two_launches_one_stream");
    poke(counter, 0);
    t = slow_step(20);
    code(CU(GraphLaunch)(t.exec, s), 0, "launch");
    code(CU(GraphLaunch)(t.exec, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(counter), 2, "then");
}

static void capture_stream_destroyed(int unused)
{
    CUstream other;
    CUgraphExec x;

    (void)unused;
    s = stream_nb();
    other = stream_nb();
    counter = device_new(64);
    x = must_instantiate(inc_graph(counter, 1, s));
    code(CU(StreamDestroy)(s), 0, "cuStreamDestroy of the stream that captured");
    code(CU(GraphLaunch)(x, other), 0, "launch on another");
    code(CU(StreamSynchronize)(other), 0, "sync");
    value(peek(counter), 1, "then");
}

/* What looks at the counter while something runs: made before, and waiting for nothing. */
static CUstream beside;
static float *found;

static bool counter_becomes(float want)
{
    double until = now_ms() + 2000;

    do {
        MUST(MemcpyDtoHAsync, found, counter, sizeof *found, beside);
        MUST(StreamSynchronize, beside);
    } while (*found != want && now_ms() < until);
    return *found == want;
}

struct meeting {
    CUresult first, second;
    double took;
    bool together;
};

/* Two execs of one graph, which adds 1 and then keeps the device busy. Together: the second was seen to have begun while the first
 * still ran. */
static struct meeting meet(CUstream other, double ms)
{
    struct meeting m;
    CUgraph g;
    CUgraphExec first, second;

    poke(counter, 0);
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_inc(counter, 1, s));
    MUST_LAUNCH(launch_spin(ms, s));
    g = must_end(s);
    first = must_instantiate(g);
    second = must_instantiate(g);
    MUST(GraphUpload, first, s);
    MUST(GraphUpload, second, other);
    sync_all();
    m.took = now_ms();
    m.first = CU(GraphLaunch)(first, s);
    m.together = counter_becomes(1); /* So that the two additions do not meet. */
    m.second = CU(GraphLaunch)(second, other);
    m.together = counter_becomes(2) && m.together && CU(StreamQuery)(s) == CUDA_ERROR_NOT_READY;
    sync_all();
    m.took = now_ms() - m.took;
    return m;
}

/* Launches of one exec come one after the other, across streams too; two execs of one graph run side by side. */
static void overlap(int unused)
{
    struct step t;
    struct meeting m;
    CUstream other;
    double start, ms = 40;

    (void)unused;
    s = stream_nb();
    other = stream_nb();
    counter = device_new(64);
    t = slow_step(ms);
    MUST(GraphUpload, t.exec, s);
    sync_all();
    fact("lifetime.overlap.one_exec_two_streams");
    start = now_ms();
    code(CU(GraphLaunch)(t.exec, s), 0, "launch");
    code(CU(GraphLaunch)(t.exec, other), 0, "launch on another stream");
    sync_all();
    start = now_ms() - start;
    yes(start > 76, "one after the other (%.0f ms for 2 x 40)", start);
    value(peek(counter), 2, "then");

    fact("lifetime.overlap.two_execs_two_streams");
    beside = stream_nb();
    found = pinned_new(sizeof *found);
    /* Where the machine is too busy for the second to begin in time, the first runs longer. */
    m = meet(other, ms);
    while (!m.together && ms < 1000)
        m = meet(other, ms *= 2);
    code(m.first, 0, "launch");
    code(m.second, 0, "launch of another exec on another stream");
    yes(m.together, "side by side (%.0f ms for 2 x %.0f)", m.took, ms);
}

static void module_unloaded(int unused)
{
    CUmodule m = NULL;
    CUfunction f = NULL;
    CUgraphExec x;
    float v = 1;
    void *args[] = {&counter, &v};

    (void)unused;
    s = stream_nb();
    counter = device_new(64);
    MUST(ModuleLoadData, &m, env.ptx);
    MUST(ModuleGetFunction, &f, m, "inc");
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch(f, s, args));
    x = must_instantiate(must_end(s));
    must_run(x, s);
    code(CU(ModuleUnload)(m), 0, "cuModuleUnload under an exec");
    code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(counter), 2, "then");
    code(CU(GraphExecDestroy)(x), 0, "cuGraphExecDestroy");
}

/* ---- user objects --------------------------------------------------------------------------------------------------- */

static volatile int destroyed;
static CUresult code_inside;

static void destructor(void *unused)
{
    CUdeviceptr p = 0;

    (void)unused;
    code_inside = CU(MemAlloc)(&p, 64);
    destroyed++;
}

static bool destroyed_within(double ms)
{
    double until = now_ms() + ms;

    while (!destroyed && now_ms() < until)
        (void)CU(DriverGetVersion)(&(int){0});
    return destroyed != 0;
}

static CUuserObject object_new(void)
{
    CUuserObject o = NULL;

    destroyed = 0;
    MUST(UserObjectCreate, &o, NULL, destructor, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    return o;
}

static void user_objects(int unused)
{
    CUuserObject o = NULL;
    CUgraph g, h;
    CUgraphExec older, younger;
    CUgraphExecUpdateResultInfo info;

    (void)unused;
    s = stream_nb();
    fact("lifetime.user_object.flags_0");
    code(CU(UserObjectCreate)(&o, NULL, destructor, 1, 0), 1, "cuUserObjectCreate(flags 0)");

    fact("lifetime.user_object.kept_by_a_younger_exec");
    g = nop_graph(s);
    older = must_instantiate(g);
    o = object_new();
    code(CU(GraphRetainUserObject)(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE), 0, "cuGraphRetainUserObject(MOVE)");
    younger = must_instantiate(g);
    MUST(GraphExecDestroy, older);
    MUST(GraphDestroy, g);
    yes(!destroyed_within(100), "graph and older exec are gone, the object lives");
    MUST_LAUNCH(launch_spin(60, s));
    MUST(GraphLaunch, younger, s);
    MUST(GraphExecDestroy, younger);
    yes(!destroyed, "the younger exec is destroyed in flight, the object lives");
    MUST(StreamSynchronize, s);
    yes(destroyed_within(2000), "after the last launch it is destroyed");
    code(code_inside, 800, "cuMemAlloc in the destructor");

    fact("lifetime.user_object.dropped_by_an_update");
    g = nop_graph(s);
    h = nop_graph(s);
    o = object_new();
    MUST(GraphRetainUserObject, g, o, 1, CU_GRAPH_USER_OBJECT_MOVE);
    older = must_instantiate(g);
    MUST(GraphDestroy, g);
    code(CU(GraphExecUpdate)(older, h, &info), 0, "cuGraphExecUpdate with a graph that lacks the object");
    yes(destroyed_within(2000), "it is destroyed");

    fact("lifetime.user_object.of_an_invalidated_capture");
    o = object_new();
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_nop(s));
    code(CU(GraphRetainUserObject)(captured_graph(s), o, 1, CU_GRAPH_USER_OBJECT_MOVE), 0, "retain on the graph under capture");
    code(call_alloc(NULL), 900, "cuMemAlloc");
    code(end(s), 901, "end");
    yes(destroyed_within(2000), "it is destroyed");
}

/* ---- freed operands -------------------------------------------------------------------------------------------------- */

/* One copy, set or kernel; its operands; and a live buffer to move to. */
static struct {
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUdeviceptr from, into, live;
    float *host, *host2;
} f;

static void take(CUresult r)
{
    must(r, "the captured call", __FILE__, __LINE__);
    f.graph = must_end(s);
    f.node = node_at(f.graph, 0);
    f.exec = must_instantiate(f.graph);
    must_run(f.exec, s);
}

enum kind { KERNEL, DTOD, MEMSET, HTOD, DTOH };

static void take_kind(enum kind k, size_t bytes)
{
    s = stream_nb();
    f.from = device_new(bytes);
    f.into = device_new(bytes);
    f.live = device_new(bytes);
    f.host = pinned_new(4096);
    f.host2 = pinned_new(4096);
    poke(f.from, 7);
    *f.host = 5;
    *f.host2 = 66;
    must_begin(s, GLOBAL);
    if (k == KERNEL)
        take(launch_copy(f.into, f.from, s));
    else if (k == DTOD)
        take(CU(MemcpyDtoDAsync)(f.into, f.from, bytes > 4096 ? bytes : 64, s));
    else if (k == MEMSET)
        take(CU(MemsetD32Async)(f.into, 0x40400000, 16, s));
    else if (k == HTOD)
        take(CU(MemcpyHtoDAsync)(f.into, f.host, 64, s));
    else
        take(CU(MemcpyDtoHAsync)(f.host, f.from, 64, s));
}

/* The launch, or at the latest the wait for it, must give an error, if the process survives it. */
static void told_loud(void)
{
    CUresult r, sync;

    about("cuGraphLaunch");
    r = CU(GraphLaunch)(f.exec, s);
    sync = CU(StreamSynchronize)(s);
    code(r, ANY, "it returned");
    code(sync, ANY, "sync");
    yes(r != CUDA_SUCCESS || sync != CUDA_SUCCESS, "an error is given");
}

/* The card runs on what is left there. */
static void told_silent(void)
{
    static const int either[] = {0, 700, -1};
    CUresult r;

    about("cuGraphLaunch");
    r = CU(GraphLaunch)(f.exec, s);
    code_of(r, either, "it returned");
    code_of(CU(StreamSynchronize)(s), either, "sync");
}

static void silent(int kind)
{
    take_kind((enum kind)kind, 4096);
    MUST(MemFree, kind == KERNEL ? f.from : f.into);
    told_silent();
}

/* Large allocations leave the address space: the fault shows. */
static void big_freed(int kind)
{
    take_kind((enum kind)kind, 64u << 20);
    MUST(MemFree, kind == DTOD ? f.into : f.from);
    code(CU(GraphLaunch)(f.exec, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 700, "sync");
}

/* Somebody else has the address by then. Not for an error: this is what makes it dangerous. */
static void new_owner(int kind)
{
    CUdeviceptr p;

    take_kind((enum kind)kind, 4096);
    if (kind == KERNEL) {
        MUST(MemFree, f.from);
        p = device_new(4096);
        yes(p == f.from, "the address comes back");
        poke(p, 77);
    } else {
        MUST(MemFree, f.into);
        p = device_new(4096);
        yes(p == f.into, "the address comes back");
    }
    code(CU(GraphLaunch)(f.exec, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
    if (kind == KERNEL)
        value(peek(f.into), 77, "it reads the new owner's");
    else
        value(peek(p), 7, "it overwrites the new owner's with");
}

static void loud_device_side(int unused)
{
    (void)unused;
    take_kind(HTOD, 4096);
    MUST(MemFree, f.into);
    told_loud();
}

static void loud_host_side(int kind)
{
    take_kind((enum kind)kind, 4096);
    MUST(MemFreeHost, f.host);
    told_loud();
}

static void unregistered(int unused)
{
    CUdeviceptr d;
    float *pages;

    (void)unused;
    s = stream_nb();
    d = device_new(64);
    pages = pages_new(4096);
    MUST(MemHostRegister, pages, 4096, 0);
    must_begin(s, GLOBAL);
    take(CU(MemcpyHtoDAsync)(d, pages, 64, s));
    MUST(MemHostUnregister, pages);
    told_loud();
}

/* Looking at a node does no harm, and neither does cloning, updating with itself or destroying. */
static void look(int kind)
{
    CUDA_MEMCPY3D c;
    CUDA_MEMSET_NODE_PARAMS m;
    CUgraphExecUpdateResultInfo info;
    CUgraph clone;

    take_kind((enum kind)kind, 4096);
    if (kind == HTOD)
        MUST(MemFreeHost, f.host);
    else
        MUST(MemFree, f.into);
    if (kind == MEMSET) {
        code(CU(GraphMemsetNodeGetParams)(f.node, &m), 0, "cuGraphMemsetNodeGetParams");
        yes(m.dst == f.into, "the old address");
    } else if (kind != KERNEL) {
        code(CU(GraphMemcpyNodeGetParams)(f.node, &c), 0, "cuGraphMemcpyNodeGetParams");
        yes(kind == HTOD ? c.srcHost == f.host : c.dstDevice == f.into, "the old address");
    }
    if (kind == DTOD)
        code(CU(GraphClone)(&clone, f.graph), 0, "cuGraphClone");
    if (kind != HTOD)
        code(CU(GraphExecUpdate)(f.exec, f.graph, &info), 0, "cuGraphExecUpdate with its own graph");
    code(CU(GraphExecDestroy)(f.exec), 0, "cuGraphExecDestroy");
    if (kind == MEMSET)
        code(CU(GraphInstantiateWithFlags)(&f.exec, f.graph, 0), 1, "instantiate again");
    if (kind == KERNEL)
        code(CU(GraphInstantiateWithFlags)(&f.exec, f.graph, 0), 0, "instantiate again");
    code(CU(GraphDestroy)(f.graph), 0, "cuGraphDestroy");
}

/* Moving the operand to live memory repairs the exec. */
static void told_repaired(CUdeviceptr where, float want)
{
    code(CU(GraphLaunch)(f.exec, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(where), want, "it writes");
}

static void repaired_by_set_params(int kind)
{
    CUDA_MEMCPY3D c;
    CUDA_MEMSET_NODE_PARAMS m;

    take_kind((enum kind)kind, 4096);
    if (kind == MEMSET) {
        MUST(MemFree, f.into);
        MUST(GraphMemsetNodeGetParams, f.node, &m);
        m.dst = f.live;
        code(CU(GraphExecMemsetNodeSetParams)(f.exec, f.node, &m, env.ctx), 0, "SetParams to a live target");
        told_repaired(f.live, 3);
        return;
    }
    if (kind == HTOD)
        MUST(MemFreeHost, f.host);
    else
        MUST(MemFree, f.into);
    MUST(GraphMemcpyNodeGetParams, f.node, &c);
    if (kind == HTOD)
        c.srcHost = f.host2;
    else
        c.dstDevice = f.live;
    code(CU(GraphExecMemcpyNodeSetParams)(f.exec, f.node, &c, env.ctx), 0, "SetParams to live memory");
    told_repaired(kind == HTOD ? f.into : f.live, kind == HTOD ? 66 : 7);
}

static void repaired_by_update(int kind)
{
    CUgraphExecUpdateResultInfo info;
    CUgraph g;

    take_kind((enum kind)kind, 4096);
    MUST(MemFree, f.into);
    must_begin(s, GLOBAL);
    if (kind == DTOD)
        MUST(MemcpyDtoDAsync, f.live, f.from, 64, s);
    else
        MUST(MemcpyHtoDAsync, f.live, f.host, 64, s);
    g = must_end(s);
    code(CU(GraphExecUpdate)(f.exec, g, &info), 0, "cuGraphExecUpdate with a capture into live memory");
    told_repaired(f.live, kind == DTOD ? 7 : 5);
}

/* ---- after a fault ---------------------------------------------------------------------------------------------------- */

static void after_fault(int unused)
{
    CUdeviceptr p = 0;
    CUevent e;
    CUstream made;
    CUgraphExec x;
    CUgraphExecUpdateResultInfo info;
    CUstreamCaptureStatus status;
    size_t a, b, n = 0;
    unsigned long long id;

    (void)unused;
    take_kind(KERNEL, 64u << 20);
    kernel("nop"); /* looked up while that works */
    MUST(MemFree, f.from);
    MUST(GraphLaunch, f.exec, s);
    fact("lifetime.after_fault.sticks");
    code(CU(StreamSynchronize)(s), 700, "sync");
    code(CU(GraphLaunch)(f.exec, s), 700, "cuGraphLaunch");
    code(CU(MemAlloc)(&p, 64), 700, "cuMemAlloc");
    code(CU(MemGetInfo)(&a, &b), 700, "cuMemGetInfo");
    code(CU(MemFree)(f.into), 700, "cuMemFree");
    code(CU(StreamIsCapturing)(s, &status), 700, "cuStreamIsCapturing");
    code(begin(s, GLOBAL), 700, "cuStreamBeginCapture");
    code(CU(EventCreate)(&e, 0), 700, "cuEventCreate");
    code(CU(StreamCreate)(&made, CU_STREAM_NON_BLOCKING), 700, "cuStreamCreate");
    code(launch_nop(s), 700, "cuLaunchKernel");
    code(CU(GraphInstantiateWithFlags)(&x, f.graph, 0), 700, "cuGraphInstantiateWithFlags");
    code(CU(StreamQuery)(s), 700, "cuStreamQuery");
    code(CU(CtxSynchronize)(), 700, "cuCtxSynchronize");
    fact("lifetime.after_fault.still_work");
    code(CU(PointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, f.into), 0, "cuPointerGetAttribute");
    code(CU(GraphExecUpdate)(f.exec, f.graph, &info), 0, "cuGraphExecUpdate");
    code(CU(GraphGetNodes)(f.graph, NULL, &n), 0, "cuGraphGetNodes");
    code(CU(GraphExecDestroy)(f.exec), 0, "cuGraphExecDestroy");
    code(CU(GraphDestroy)(f.graph), 0, "cuGraphDestroy");
    fact("lifetime.after_fault.destroy");
    code(CU(StreamDestroy)(s), 700, "cuStreamDestroy");
    code(CU(ModuleUnload)(env.module), 700, "cuModuleUnload");
    code(CU(CtxSetCurrent)(env.ctx), 0, "cuCtxSetCurrent");
    code(CU(DevicePrimaryCtxRelease)(env.device), 0, "cuDevicePrimaryCtxRelease");
}

#define LOUD                                                                                                                     \
    "undefined use: the card dies of SIGSEGV in the launch; a software driver may report it instead, but must not pass it"
#define SILENT "undefined use: the card runs silently over what is left there; a software driver may report 700"

const struct job lifetime_jobs[] = {
    {.id = "lifetime", .run = in_flight},
    {.id = "lifetime.capture_stream_destroyed", .run = capture_stream_destroyed},
    {.id = "lifetime.overlap", .run = overlap, .flags = JOB_ALONE},
    {.id = "lifetime.module_unloaded", .run = module_unloaded},
    {.id = "lifetime.user_object", .run = user_objects},
    {.id = "lifetime.freed.kernel", .run = silent, .arg = KERNEL, .flags = JOB_MAY_DIE, .deviation = SILENT},
    {.id = "lifetime.freed.DtoD", .run = silent, .arg = DTOD, .flags = JOB_MAY_DIE, .deviation = SILENT},
    {.id = "lifetime.freed.memset", .run = silent, .arg = MEMSET, .flags = JOB_MAY_DIE, .deviation = SILENT},
    {.id = "lifetime.freed.big_kernel", .run = big_freed, .arg = KERNEL},
    {.id = "lifetime.freed.big_DtoD", .run = big_freed, .arg = DTOD},
    {.id = "lifetime.freed.HtoD_device_side", .run = loud_device_side, .flags = JOB_MAY_DIE, .deviation = LOUD},
    {.id = "lifetime.freed.HtoD_pinned_side", .run = loud_host_side, .arg = HTOD, .flags = JOB_MAY_DIE, .deviation = LOUD},
    {.id = "lifetime.freed.DtoH_pinned_side", .run = loud_host_side, .arg = DTOH, .flags = JOB_MAY_DIE, .deviation = LOUD},
    {.id = "lifetime.freed.HtoD_unregistered",
     .run = unregistered,
     .flags = JOB_MAY_DIE | JOB_CARD_ONLY,
     .deviation =
         "the card gives 719 when the copy runs from memory that is no longer page-locked; it is valid memory, and a software "
         "driver that runs on the same memory sees no fault"},
    {.id = "lifetime.new_owner.kernel", .run = new_owner, .arg = KERNEL},
    {.id = "lifetime.new_owner.DtoD", .run = new_owner, .arg = DTOD},
    {.id = "lifetime.look.kernel", .run = look, .arg = KERNEL},
    {.id = "lifetime.look.DtoD", .run = look, .arg = DTOD},
    {.id = "lifetime.look.memset", .run = look, .arg = MEMSET},
    {.id = "lifetime.look.HtoD", .run = look, .arg = HTOD},
    {.id = "lifetime.repaired_by_set_params.DtoD", .run = repaired_by_set_params, .arg = DTOD},
    {.id = "lifetime.repaired_by_set_params.memset", .run = repaired_by_set_params, .arg = MEMSET},
    {.id = "lifetime.repaired_by_set_params.HtoD", .run = repaired_by_set_params, .arg = HTOD},
    {.id = "lifetime.repaired_by_update.DtoD", .run = repaired_by_update, .arg = DTOD},
    {.id = "lifetime.repaired_by_update.HtoD", .run = repaired_by_update, .arg = HTOD},
    {.id = "lifetime.after_fault", .run = after_fault},
    {.id = NULL},
};
