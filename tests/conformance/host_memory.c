/* When a replay reads and writes the host's memory. Facts of order, told by values wherever a value can tell. */
#include "conformance.h"

enum memory { PAGEABLE, PINNED, REGISTERED_LATE };

static CUstream s;

static float *memory_new(enum memory m, size_t bytes)
{
    return m == PINNED ? pinned_new(bytes) : pages_new(bytes < 4096 ? 4096 : bytes);
}

/*
 * A copy from the host behind a busy kernel: the host writes 33, launches, and writes 44 at once. 33 arrives if the launch call
 * read the buffer, 44 if the copy did.
 */
static void read_when(enum memory m, size_t bytes, bool second_node, float want)
{
    CUdeviceptr d = device_new(bytes);
    float *h = memory_new(m, bytes);
    size_t last = bytes / 4 - 1;
    CUgraph g;
    CUgraphExec x;

    h[0] = h[last] = 11;
    must_begin(s, GLOBAL);
    if (second_node)
        MUST_LAUNCH(launch_spin(60, s));
    MUST(MemcpyHtoDAsync, d, h, bytes, s);
    g = must_end(s);
    if (m == REGISTERED_LATE)
        MUST(MemHostRegister, h, bytes < 4096 ? 4096 : bytes, 0);
    x = must_instantiate(g);
    h[0] = h[last] = 22;
    must_run(x, s);
    value(peek(d), 22, "every launch reads anew:");
    if (!second_node)
        MUST_LAUNCH(launch_spin(60, s));
    h[0] = h[last] = 33;
    code(CU(GraphLaunch)(x, s), 0, "launch");
    h[0] = h[last] = 44;
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(d), want, "33 at the launch, 44 right after it: first");
    value(peek(d + 4 * last), want, "last");
}

static void read_pageable(int unused)
{
    static const size_t sizes[] = {4, 64, 4096, 65536, 65540, 1u << 20, 16u << 20};

    (void)unused;
    s = stream_nb();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fact("host.read.pageable.%zu", sizes[i]);
        read_when(PAGEABLE, sizes[i], false, 33);
    }
    fact("host.read.pageable.second_node");
    read_when(PAGEABLE, 4096, true, 33);
}

static void read_pinned(int unused)
{
    static const size_t sizes[] = {64, 4096, 1u << 20, 16u << 20};

    (void)unused;
    s = stream_nb();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fact("host.read.pinned.%zu", sizes[i]);
        read_when(PINNED, sizes[i], false, 44);
    }
    fact("host.read.pinned.second_node");
    read_when(PINNED, 4096, true, 44);
}

/* Pageable at capture stays pageable. */
static void read_registered_late(int unused)
{
    CUdeviceptr d;
    float *h;
    CUgraphExec x;

    (void)unused;
    s = stream_nb();
    fact("host.read.registered_before_instantiate");
    read_when(REGISTERED_LATE, 4096, false, 33);

    fact("host.read.registered_before_launch");
    d = device_new(64);
    h = pages_new(4096);
    must_begin(s, GLOBAL);
    MUST(MemcpyHtoDAsync, d, h, 4, s);
    x = must_instantiate(must_end(s));
    must_run(x, s);
    MUST(MemHostRegister, h, 4096, 0);
    MUST_LAUNCH(launch_spin(60, s));
    *h = 33;
    code(CU(GraphLaunch)(x, s), 0, "launch");
    *h = 44;
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(d), 33, "33 at the launch, 44 right after it:");
}

static void read_eager(int unused)
{
    CUdeviceptr d;
    float v = 1;

    (void)unused;
    s = stream_nb();
    d = device_new(64);
    MUST_LAUNCH(launch_spin(60, s));
    code(CU(MemcpyHtoDAsync)(d, &v, sizeof v, s), 0, "cuMemcpyHtoDAsync(pageable) behind a busy kernel");
    v = 2;
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(d), 1, "1 at the call, 2 right after it:");
}

/* A pageable target is written before the launch call returns, so the call waits. */
static void written(int bytes)
{
    CUdeviceptr d;
    float *h;
    CUgraphExec x;
    double start;

    s = stream_nb();
    d = device_new((size_t)bytes);
    h = pages_new((size_t)bytes < 4096 ? 4096 : (size_t)bytes);
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_inc(d, 1, s));
    MUST(MemcpyDtoHAsync, h, d, (size_t)bytes, s);
    x = must_instantiate(must_end(s));
    MUST_LAUNCH(launch_spin(60, s));
    start = now_ms();
    code(CU(GraphLaunch)(x, s), 0, "launch behind a kernel of 60 ms");
    start = now_ms() - start;
    value(*(volatile float *)h, 1, "right after it the target holds");
    yes(start > 40, "the call waited (%.1f ms)", start);
    code(CU(StreamSynchronize)(s), 0, "sync");
}

/* Small pageable sources do not hold the call up, one of 16 MiB does; page-locked ones never do. */
static void blocks(int unused)
{
    static const struct {
        const char *name;
        enum memory memory;
        size_t bytes;
        bool blocks;
    } cases[] = {
        {"pageable_4_KiB", PAGEABLE, 4096, false},
        {"pageable_1_MiB", PAGEABLE, 1u << 20, false},
        {"pageable_16_MiB", PAGEABLE, 16u << 20, true},
        {"pinned_16_MiB", PINNED, 16u << 20, false},
    };

    (void)unused;
    s = stream_nb();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CUdeviceptr d = device_new(cases[i].bytes);
        float *h = memory_new(cases[i].memory, cases[i].bytes);
        CUgraphExec x;
        double start;

        fact("host.launch_waits.%s", cases[i].name);
        must_begin(s, GLOBAL);
        MUST(MemcpyHtoDAsync, d, h, cases[i].bytes, s);
        x = must_instantiate(must_end(s));
        must_run(x, s);
        MUST_LAUNCH(launch_spin(60, s));
        start = now_ms();
        code(CU(GraphLaunch)(x, s), 0, "launch behind a kernel of 60 ms");
        start = now_ms() - start;
        if (cases[i].blocks)
            yes(start > 40, "the call waited (%.1f ms)", start);
        else
            yes(start < 40, "the call did not wait (%.1f ms)", start);
        code(CU(StreamSynchronize)(s), 0, "sync");
    }
}

/* ---- host nodes ------------------------------------------------------------------------------------------------------- */

static struct {
    int runs;
    CUresult alloc, query, event, info, version, attribute;
    CUevent recorded;
    CUdeviceptr d;
} host;

static void host_function(void *unused)
{
    CUdeviceptr p = 0;
    size_t a, b;
    int v;
    unsigned long long id;

    (void)unused;
    host.runs++;
    host.alloc = CU(MemAlloc)(&p, 64);
    host.query = CU(StreamQuery)(s);
    host.event = CU(EventQuery)(host.recorded);
    host.info = CU(MemGetInfo)(&a, &b);
    host.version = CU(DriverGetVersion)(&v);
    host.attribute = CU(PointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, host.d);
}

static void host_node(int unused)
{
    CUgraph g;
    CUgraphExec x;
    CUDA_HOST_NODE_PARAMS p;

    (void)unused;
    s = stream_nb();
    host.recorded = event_new();
    host.d = device_new(64);
    must_begin(s, GLOBAL);
    MUST(LaunchHostFunc, s, host_function, &host);
    g = must_end(s);
    fact("host.node.params");
    code(CU(GraphHostNodeGetParams)(node_at(g, 0), &p), 0, "cuGraphHostNodeGetParams");
    yes(p.fn == host_function && p.userData == &host, "function and data");
    x = must_instantiate(g);
    fact("host.node.runs");
    for (int i = 0; i < 3; i++)
        MUST(GraphLaunch, x, s);
    MUST(StreamSynchronize, s);
    equal(host.runs, 3, "after three launches it ran");
    fact("host.node.calls_inside");
    code(host.alloc, 800, "cuMemAlloc");
    code(host.info, 800, "cuMemGetInfo");
    code(host.attribute, 800, "cuPointerGetAttribute");
    code(host.query, 600, "cuStreamQuery");
    code(host.event, 0, "cuEventQuery");
    code(host.version, 0, "cuDriverGetVersion");
}

const struct job host_memory_jobs[] = {
    {.id = "host.read.pageable", .run = read_pageable, .flags = JOB_ALONE},
    {.id = "host.read.pinned", .run = read_pinned, .flags = JOB_ALONE},
    {.id = "host.read", .run = read_registered_late, .flags = JOB_ALONE},
    {.id = "host.read.eager", .run = read_eager, .flags = JOB_ALONE},
    {.id = "host.written.4", .run = written, .arg = 4, .flags = JOB_ALONE},
    {.id = "host.written.4_MiB", .run = written, .arg = 4 << 20, .flags = JOB_ALONE},
    {.id = "host.launch_waits", .run = blocks, .flags = JOB_ALONE},
    {.id = "host.node", .run = host_node},
    {.id = NULL},
};
