/* Copies, sets and the other calls of a stream: what they are recorded as, and what happens to the synchronous ones inside a
 * capture. */
#include "conformance.h"

static CUstream s;
static CUdeviceptr a, b, managed, managed2, pool;
static char *pinned, *pinned2, *pages, *pages2, *registered;

static void begin_facts(void)
{
    s = stream_nb();
    a = device_new(65536);
    b = device_new(65536);
    pinned = pinned_new(4096);
    pinned2 = pinned_new(4096);
    pages = pages_new(65536);
    pages2 = pages_new(65536);
}

static const char *memory_name(int type)
{
    return type == CU_MEMORYTYPE_HOST      ? "HOST"
           : type == CU_MEMORYTYPE_DEVICE  ? "DEVICE"
           : type == CU_MEMORYTYPE_UNIFIED ? "UNIFIED"
           : type == CU_MEMORYTYPE_ARRAY   ? "ARRAY"
                                           : "?";
}

/* What the node must say: the types, and where the addresses stand. */
struct want {
    int from, to; /* memory types */
    CUdeviceptr source, target;
    size_t width, height, depth, source_pitch, target_pitch, source_height, target_height, source_x;
};

static struct want plain(int from, CUdeviceptr source, int to, CUdeviceptr target, size_t bytes)
{
    return (struct want){from, to, source, target, bytes, 1, 1, 0, 0, 0, 0, 0};
}

/* The capture holds one copy: end it, read the node, run it. */
static void told_copy(CUresult r, const struct want *want, bool run)
{
    CUgraph g = NULL;
    CUgraphExec x = NULL;
    CUDA_MEMCPY3D p;
    bool ok;

    code(r, 0, "the call");
    if (!code(CU(StreamEndCapture)(s, &g), 0, "end") || !g || !holds("graph", g, "memcpy=1"))
        return;
    memset(&p, 0xee, sizeof p);
    if (!code(CU(GraphMemcpyNodeGetParams)(node_at(g, 0), &p), 0, "cuGraphMemcpyNodeGetParams"))
        return;
    ok = (int)p.srcMemoryType == want->from && (int)p.dstMemoryType == want->to;
    yes(ok, "%s to %s (it says %s to %s)", memory_name(want->from), memory_name(want->to), memory_name((int)p.srcMemoryType),
        memory_name((int)p.dstMemoryType));
    if (want->from == CU_MEMORYTYPE_HOST)
        yes(address(p.srcHost) == want->source, "srcHost is the source");
    else
        yes(p.srcDevice == want->source, "srcDevice is the source");
    if (want->to == CU_MEMORYTYPE_HOST)
        yes(address(p.dstHost) == want->target, "dstHost is the target");
    else
        yes(p.dstDevice == want->target, "dstDevice is the target");
    equal((long long)p.WidthInBytes, (long long)want->width, "width");
    equal((long long)p.Height, (long long)want->height, "height");
    equal((long long)p.Depth, (long long)want->depth, "depth");
    equal((long long)p.srcPitch, (long long)want->source_pitch, "source pitch");
    equal((long long)p.dstPitch, (long long)want->target_pitch, "target pitch");
    equal((long long)p.srcHeight, (long long)want->source_height, "source height");
    equal((long long)p.dstHeight, (long long)want->target_height, "target height");
    equal((long long)p.srcXInBytes, (long long)want->source_x, "source x");
    if (run && code(CU(GraphInstantiateWithFlags)(&x, g, 0), 0, "instantiate")) {
        code(CU(GraphLaunch)(x, s), 0, "launch");
        code(CU(StreamSynchronize)(s), 0, "sync");
    }
}

enum { HOST = CU_MEMORYTYPE_HOST, DEVICE = CU_MEMORYTYPE_DEVICE, UNIFIED = CU_MEMORYTYPE_UNIFIED };

static void one_dimension(int unused)
{
    struct want w;

    (void)unused;
    begin_facts();
    fact("copy.node.HtoD.pageable");
    must_begin(s, GLOBAL);
    w = plain(HOST, address(pages), DEVICE, a, 256);
    told_copy(CU(MemcpyHtoDAsync)(a, pages, 256, s), &w, true);

    fact("copy.node.HtoD.pinned");
    must_begin(s, GLOBAL);
    w = plain(HOST, address(pinned), DEVICE, a, 256);
    told_copy(CU(MemcpyHtoDAsync)(a, pinned, 256, s), &w, true);

    fact("copy.node.HtoD.registered");
    registered = pages_new(4096);
    MUST(MemHostRegister, registered, 4096, 0);
    must_begin(s, GLOBAL);
    w = plain(HOST, address(registered), DEVICE, a, 256);
    told_copy(CU(MemcpyHtoDAsync)(a, registered, 256, s), &w, true);

    fact("copy.node.HtoD.device_pointer_as_host");
    must_begin(s, GLOBAL);
    w = plain(HOST, a, DEVICE, b, 256);
    told_copy(CU(MemcpyHtoDAsync)(b, (void *)(uintptr_t)a, 256, s), &w, false);

    fact("copy.node.DtoH.pageable");
    must_begin(s, GLOBAL);
    w = plain(DEVICE, a, HOST, address(pages), 256);
    told_copy(CU(MemcpyDtoHAsync)(pages, a, 256, s), &w, true);

    fact("copy.node.DtoH.pinned");
    must_begin(s, GLOBAL);
    w = plain(DEVICE, a, HOST, address(pinned), 256);
    told_copy(CU(MemcpyDtoHAsync)(pinned, a, 256, s), &w, true);

    fact("copy.node.DtoD");
    must_begin(s, GLOBAL);
    w = plain(DEVICE, a, DEVICE, b, 256);
    told_copy(CU(MemcpyDtoDAsync)(b, a, 256, s), &w, true);

    fact("copy.node.DtoD.interior");
    must_begin(s, GLOBAL);
    w = plain(DEVICE, a + 512, DEVICE, b + 256, 256);
    told_copy(CU(MemcpyDtoDAsync)(b + 256, a + 512, 256, s), &w, true);

    fact("copy.node.DtoD.pinned_source");
    must_begin(s, GLOBAL);
    w = plain(DEVICE, address(pinned), DEVICE, b, 256);
    told_copy(CU(MemcpyDtoDAsync)(b, address(pinned), 256, s), &w, false);

    fact("copy.node.DtoD.pageable_source");
    must_begin(s, GLOBAL);
    code(CU(MemcpyDtoDAsync)(b, address(pages), 256, s), 1, "cuMemcpyDtoDAsync(pageable source)");
    state("capture", s, ACTIVE);
    told_end("end", s, 0, "");
}

static void pool_source(int unused)
{
    struct want w;

    (void)unused;
    begin_facts();
    MUST(MemAllocAsync, &pool, 4096, s);
    MUST(StreamSynchronize, s);
    must_begin(s, GLOBAL);
    w = plain(DEVICE, pool, DEVICE, b, 256);
    told_copy(CU(MemcpyDtoDAsync)(b, pool, 256, s), &w, true);
}

/* cuMemcpyAsync: unified on both sides, whatever it is given. */
static void unified(int unused)
{
    (void)unused;
    begin_facts();
    const struct {
        const char *name;
        CUdeviceptr source, target;
    } cases[] = {
        {"device_device", a, b},
        {"pageable_device", address(pages), a},
        {"pinned_device", address(pinned), a},
        {"device_pageable", a, address(pages)},
        {"device_pinned", a, address(pinned)},
        {"pinned_pinned", address(pinned), address(pinned2)},
        {"pageable_pageable", address(pages), address(pages2)},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct want w = plain(UNIFIED, cases[i].source, UNIFIED, cases[i].target, 256);

        fact("copy.node.unified.%s", cases[i].name);
        must_begin(s, GLOBAL);
        told_copy(CU(MemcpyAsync)(cases[i].target, cases[i].source, 256, s), &w, true);
    }
}

static void managed_copies(int unused)
{
    struct want w;

    (void)unused;
    begin_facts();
    MUST(MemAllocManaged, &managed, 4096, CF_ATTACH_GLOBAL);
    MUST(MemAllocManaged, &managed2, 4096, CF_ATTACH_GLOBAL);
    fact("copy.node.managed.unified_device");
    must_begin(s, GLOBAL);
    w = plain(UNIFIED, managed, UNIFIED, a, 256);
    told_copy(CU(MemcpyAsync)(a, managed, 256, s), &w, true);
    fact("copy.node.managed.unified_managed");
    must_begin(s, GLOBAL);
    w = plain(UNIFIED, managed, UNIFIED, managed2, 256);
    told_copy(CU(MemcpyAsync)(managed2, managed, 256, s), &w, true);
    fact("copy.node.managed.HtoD");
    must_begin(s, GLOBAL);
    w = plain(HOST, managed, DEVICE, b, 256);
    told_copy(CU(MemcpyHtoDAsync)(b, (void *)(uintptr_t)managed, 256, s), &w, true);
}

static void more_dimensions(int unused)
{
    CUDA_MEMCPY2D c;
    CUDA_MEMCPY3D c3;
    struct want w;

    (void)unused;
    begin_facts();
    memset(&c, 0, sizeof c);
    c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = a;
    c.dstDevice = b;
    c.srcPitch = c.dstPitch = 128;
    c.WidthInBytes = 64;
    c.Height = 8;
    w = plain(DEVICE, a, DEVICE, b, 64);
    w.height = 8;
    w.source_pitch = w.target_pitch = 128;
    fact("copy.node.nd.2d.DtoD");
    must_begin(s, GLOBAL);
    told_copy(CU(Memcpy2DAsync)(&c, s), &w, true);

    fact("copy.node.nd.2d.HtoD");
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = pages;
    w.from = HOST;
    w.source = address(pages);
    must_begin(s, GLOBAL);
    told_copy(CU(Memcpy2DAsync)(&c, s), &w, true);

    fact("copy.node.nd.2d.unified_source");
    c.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    c.srcHost = NULL;
    c.srcDevice = a;
    w.from = UNIFIED;
    w.source = a;
    must_begin(s, GLOBAL);
    told_copy(CU(Memcpy2DAsync)(&c, s), &w, true);

    fact("copy.node.nd.2d.one_row_from_x_16");
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.Height = 1;
    c.srcXInBytes = 16;
    w.from = DEVICE;
    w.height = 1;
    w.source_x = 16;
    must_begin(s, GLOBAL);
    told_copy(CU(Memcpy2DAsync)(&c, s), &w, true);

    fact("copy.node.nd.3d.DtoD");
    memset(&c3, 0, sizeof c3);
    c3.srcMemoryType = c3.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c3.srcDevice = a;
    c3.dstDevice = b;
    c3.srcPitch = c3.dstPitch = 128;
    c3.srcHeight = c3.dstHeight = 8;
    c3.WidthInBytes = 64;
    c3.Height = 4;
    c3.Depth = 3;
    w = (struct want){DEVICE, DEVICE, a, b, 64, 4, 3, 128, 128, 8, 8, 0};
    must_begin(s, GLOBAL);
    told_copy(CU(Memcpy3DAsync)(&c3, s), &w, true);
}

static void add_node(int unused)
{
    CUDA_MEMCPY3D c;
    CUgraph g = NULL;
    CUgraphNode n;

    (void)unused;
    begin_facts();
    memset(&c, 0, sizeof c);
    c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = a;
    c.dstDevice = b;
    c.WidthInBytes = 64;
    c.Height = c.Depth = 1;
    MUST(GraphCreate, &g, 0);
    code(CU(GraphAddMemcpyNode)(&n, g, NULL, 0, &c, NULL), 0, "cuGraphAddMemcpyNode(ctx NULL)");
    code(CU(GraphAddMemcpyNode)(&n, g, NULL, 0, &c, env.ctx), 0, "cuGraphAddMemcpyNode");
    c.WidthInBytes = 0;
    code(CU(GraphAddMemcpyNode)(&n, g, NULL, 0, &c, env.ctx), 1, "0 bytes");
    holds("graph", g, "memcpy=2");
}

/* ---- sets --------------------------------------------------------------------------------------------------------- */

static void told_set(CUresult r, CUdeviceptr target, size_t pitch, unsigned v, unsigned element, size_t width, size_t height,
                     int instantiate)
{
    CUgraph g = NULL;
    CUgraphExec x = NULL;
    CUDA_MEMSET_NODE_PARAMS p;

    code(r, 0, "the call");
    if (!code(CU(StreamEndCapture)(s, &g), 0, "end") || !g || !holds("graph", g, "memset=1"))
        return;
    memset(&p, 0xee, sizeof p);
    if (!code(CU(GraphMemsetNodeGetParams)(node_at(g, 0), &p), 0, "cuGraphMemsetNodeGetParams"))
        return;
    yes(p.dst == target, "the target");
    equal((long long)p.pitch, (long long)pitch, "pitch");
    equal(p.value, v, "value");
    equal(p.elementSize, element, "element");
    equal((long long)p.width, (long long)width, "width");
    equal((long long)p.height, (long long)height, "height");
    if (!code(CU(GraphInstantiateWithFlags)(&x, g, 0), instantiate, "instantiate") || instantiate)
        return;
    code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
}

static void sets(int unused)
{
    (void)unused;
    begin_facts();
    fact("set.node.D8");
    must_begin(s, GLOBAL);
    told_set(CU(MemsetD8Async)(a, 0xab, 100, s), a, 0, 0xab, 1, 100, 1, 0);
    fact("set.node.D16");
    must_begin(s, GLOBAL);
    told_set(CU(MemsetD16Async)(a, 0xabcd, 100, s), a, 0, 0xabcd, 2, 100, 1, 0);
    fact("set.node.D32");
    must_begin(s, GLOBAL);
    told_set(CU(MemsetD32Async)(a, 0x12345678, 100, s), a, 0, 0x12345678, 4, 100, 1, 0);
    fact("set.node.D2D8");
    must_begin(s, GLOBAL);
    told_set(CU(MemsetD2D8Async)(a, 128, 1, 64, 8, s), a, 128, 1, 1, 64, 8, 0);
    fact("set.node.zero_bytes");
    must_begin(s, GLOBAL);
    code(CU(MemsetD8Async)(a, 1, 0, s), 0, "cuMemsetD8Async(0 bytes)");
    told_end("end", s, 0, "");
    fact("set.node.pinned_target");
    must_begin(s, GLOBAL);
    told_set(CU(MemsetD8Async)(address(pinned), 1, 64, s), address(pinned), 0, 1, 1, 64, 1, 0);
    fact("set.node.pageable_target");
    must_begin(s, GLOBAL);
    told_set(CU(MemsetD8Async)(address(pages), 1, 64, s), address(pages), 0, 1, 1, 64, 1, 1);
}

/* ---- other nodes -------------------------------------------------------------------------------------------------- */

static void batch_mem_op(int unused)
{
    CUgraph g;
    CUDA_BATCH_MEM_OP_NODE_PARAMS p;

    (void)unused;
    begin_facts();
    must_begin(s, RELAXED);
    MUST(StreamWriteValue32, s, a, 9, 0);
    g = must_end(s);
    memset(&p, 0, sizeof p);
    if (!code(CU(GraphBatchMemOpNodeGetParams)(node_at(g, 0), &p), 0, "cuGraphBatchMemOpNodeGetParams"))
        return;
    equal(p.count, 1, "count");
    yes(p.ctx == env.ctx, "ctx the context");
    equal((int)p.paramArray[0].operation, CU_STREAM_MEM_OP_WRITE_VALUE_32, "operation");
    yes(p.paramArray[0].writeValue.address == a, "the address");
    equal(p.paramArray[0].writeValue.value, 9, "value");
    must_run(must_instantiate(g), s);
    {
        int v = 0;

        MUST(MemcpyDtoH, &v, a, sizeof v);
        equal(v, 9, "a replay writes");
    }
}

static void programmatic_edges(int unused)
{
    CUlaunchConfig c;
    CUlaunchAttribute at;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph g;
    const CUgraphNode *deps;
    const CUgraphEdgeData *edges;
    CUgraphNode from[8], to[8];
    CUgraphEdgeData data[8];
    size_t n;

    (void)unused;
    begin_facts();
    memset(&c, 0, sizeof c);
    memset(&at, 0, sizeof at);
    memset(data, 0, sizeof data);
    at.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    at.value.programmaticStreamSerializationAllowed = 1;
    c.gridDimX = c.gridDimY = c.gridDimZ = 1;
    c.blockDimX = c.blockDimY = c.blockDimZ = 1;
    c.hStream = s;
    c.attrs = &at;
    c.numAttrs = 1;
    must_begin(s, RELAXED);
    MUST_LAUNCH(launch_nop(s));
    code(CU(LaunchKernelEx)(&c, kernel("nop"), NULL, NULL), 0, "cuLaunchKernelEx(programmatic stream serialization)");
    seen("cuStreamGetCaptureInfo without a place for edges gives %d",
         (int)CU(StreamGetCaptureInfo)(s, &status, &id, &g, &deps, NULL, &n));
    code(CU(StreamGetCaptureInfo)(s, &status, &id, &g, &deps, &edges, &n), 0, "cuStreamGetCaptureInfo with one");
    g = must_end(s);
    holds("graph", g, "kernel=2");
    n = 8;
    code(CU(GraphGetEdges)(g, from, to, NULL, &n), 402, "cuGraphGetEdges without a place for edge data");
    n = 8;
    code(CU(GraphGetEdges)(g, from, to, data, &n), 0, "cuGraphGetEdges with one");
    equal((long long)n, 1, "edges");
    equal(data[0].type, 1, "type");
    equal(data[0].from_port, 1, "from port");
    equal(data[0].to_port, 0, "to port");
    n = 8;
    code(CU(GraphGetEdges_10000)(g, from, to, &n), 402, "the first version");
    n = 0;
    code(CU(GraphGetEdges_10000)(g, NULL, NULL, &n), 0, "its count query");
    equal((long long)n, 1, "edges");
    told_run(g);
}

static void conditional(int unused)
{
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph g, body, out = NULL;
    const CUgraphNode *deps;
    size_t n;
    cf_conditional handle;
    cf_node_params p;
    CUgraphNode node;
    CUstream inner = NULL;

    (void)unused;
    begin_facts();
    inner = stream_nb();
    must_begin(s, RELAXED);
    MUST_LAUNCH(launch_nop(s));
    MUST(StreamGetCaptureInfo, s, &status, &id, &g, &deps, NULL, &n);
    code(CU(GraphConditionalHandleCreate)(&handle, g, env.ctx, 1, CF_COND_ASSIGN_DEFAULT), 0, "cuGraphConditionalHandleCreate");
    memset(&p, 0, sizeof p);
    p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    p.conditional.handle = handle;
    p.conditional.type = CF_COND_TYPE_IF;
    p.conditional.size = 1;
    p.conditional.ctx = env.ctx;
    if (!code(CU(GraphAddNode)(&node, g, deps, NULL, n, &p), 0, "cuGraphAddNode(conditional)"))
        return;
    code(CU(StreamUpdateCaptureDependencies)(s, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES), 0, "dependencies");
    body = p.conditional.graphs_out[0];
    code(CU(StreamBeginCaptureToGraph)(inner, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED), 0,
         "cuStreamBeginCaptureToGraph(body)");
    code(launch_inc(a, 1, inner), 0, "launch");
    code(CU(StreamEndCapture)(inner, &out), 0, "end(body)");
    yes(out == body, "end returns the body's handle");
    told_end("end", s, 0, "kernel=1 conditional=1");
    seen("a replay adds %g", peek(a));
}

/* ---- synchronous copies inside the window ---------------------------------------------------------------------------- */

/* Accepted beside a non-blocking capture stream in every mode, done at once, not recorded. */
static void synchronous(int unused)
{
    (void)unused;
    begin_facts();
    for (int m = 0; m < 3; m++) {
        float out = -1, in = 5;

        fact("copy.synchronous.done_at_once.%s", mode_name[m]);
        poke(a, 2);
        must_begin(s, m);
        MUST_LAUNCH(launch_inc(a, 1, s));
        code(CU(MemcpyDtoH)(&out, a, sizeof out), 0, "cuMemcpyDtoH");
        value(out, 2, "it reads the value from before the captured work:");
        code(CU(MemcpyHtoD)(a, &in, sizeof in), 0, "cuMemcpyHtoD(5)");
        code(CU(MemcpyDtoD)(b, a, 4), 0, "cuMemcpyDtoD");
        code(CU(MemsetD8)(a + 64, 1, 4), 0, "cuMemsetD8");
        value(peek(b), 5, "the copy was done:"); /* This waits for it: a copy between device memory does not. */
        state("capture", s, ACTIVE);
        told_end("end", s, 0, "kernel=1");
        value(peek(a), 6, "the replay adds to");
        value(peek(b), 5, "the copy was not done again:");
    }
}

/* Launches elsewhere run at once and are missing from the graph. */
static void escaped_launches(int unused)
{
    (void)unused;
    begin_facts();
    for (int m = 0; m < 3; m++) {
        CUgraph g;
        CUgraphExec x;

        fact("copy.escaped_launch.%s", mode_name[m]);
        poke(a, 0);
        must_begin(s, m);
        MUST_LAUNCH(launch_inc(a, 1, s));
        code(launch_inc(a, 10, NULL), 0, "launch on the NULL stream");
        MUST_LAUNCH(launch_inc(a, 1, s));
        g = must_end(s);
        holds("graph", g, "kernel=2");
        sync_all();
        value(peek(a), 10, "before any replay there is");
        x = must_instantiate(g);
        must_run(x, s);
        must_run(x, s);
        value(peek(a), 14, "after two replays");
    }
}

const struct job copy_jobs[] = {
    {.id = "copy.node", .run = one_dimension},
    {.id = "copy.node.DtoD.pool", .run = pool_source},
    {.id = "copy.node.unified", .run = unified},
    {.id = "copy.node.managed", .run = managed_copies},
    {.id = "copy.node.nd", .run = more_dimensions},
    {.id = "copy.node.added", .run = add_node},
    {.id = "copy.synchronous", .run = synchronous},
    {.id = "copy.escaped_launch", .run = escaped_launches},
    {.id = "set.node", .run = sets},
    {.id = "node.batch_mem_op", .run = batch_mem_op},
    {.id = "node.programmatic_edges", .run = programmatic_edges},
    {.id = "node.conditional", .run = conditional},
    {.id = NULL},
};
