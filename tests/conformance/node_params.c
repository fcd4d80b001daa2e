/* Changing one node of an executable graph. */
#include "conformance.h"

enum { MIB = 1 << 20 };

static CUstream s;
static CUdeviceptr a, b, big, big2, pool, vmm;
static void *pinned, *pinned2, *pages;

static void begin_facts(void)
{
    s = stream_nb();
    a = device_new(4096);
    b = device_new(4096);
    big = device_new(8 * MIB);
    big2 = device_new(8 * MIB);
    pinned = pinned_new(4096);
    pinned2 = pinned_new(4096);
    pages = pages_new(4096);
}

static void with_classes(void)
{
    MUST(MemAllocAsync, &pool, 4096, s);
    MUST(StreamSynchronize, s);
    vmm = vmm_reserve(2 * MIB);
    vmm_map(vmm, 2 * MIB, vmm_create(2 * MIB));
}

/* One node under test. */
static struct {
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
} t;

static void taken(void)
{
    t.graph = must_end(s);
    t.node = node_at(t.graph, 0);
    t.exec = must_instantiate(t.graph);
}

static void told_replay(void)
{
    code(CU(GraphLaunch)(t.exec, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
}

/* ---- copies --------------------------------------------------------------------------------------------------------- */

static CUDA_MEMCPY3D copy;

static void take_copy(CUresult r)
{
    must(r, "the captured copy", __FILE__, __LINE__);
    taken();
    memset(&copy, 0, sizeof copy);
    MUST(GraphMemcpyNodeGetParams, t.node, &copy);
}

/* Changes the node, runs it if the change is accepted, and puts it back. */
static void told_copy(const char *id, const CUDA_MEMCPY3D *changed, int want)
{
    CUresult r;

    fact("set_params.memcpy.%s", id);
    r = CU(GraphExecMemcpyNodeSetParams)(t.exec, t.node, changed, env.ctx);
    code(r, want, "cuGraphExecMemcpyNodeSetParams");
    if ((int)r == want)
        told_replay();
    CU(GraphExecMemcpyNodeSetParams)(t.exec, t.node, &copy, env.ctx);
}

static void copies(int unused)
{
    CUDA_MEMCPY3D c;
    CUdeviceptr freed;

    (void)unused;
    begin_facts();
    must_begin(s, GLOBAL);
    take_copy(CU(MemcpyDtoDAsync)(a, b, 64, s));

#define CHANGED(id, want, ...)                                                                                                   \
    do {                                                                                                                         \
        c = copy;                                                                                                                \
        __VA_ARGS__;                                                                                                             \
        told_copy(id, &c, want);                                                                                                 \
    } while (0)
    CHANGED("DtoD.unchanged", 0, (void)0);
    CHANGED("DtoD.target", 0, c.dstDevice = big);
    CHANGED("DtoD.source", 0, c.srcDevice = big2);
    CHANGED("DtoD.larger", 0, c.WidthInBytes = 128);
    CHANGED("DtoD.smaller", 0, c.WidthInBytes = 4);
    CHANGED("DtoD.1_MiB", 0, c.WidthInBytes = MIB; c.dstDevice = big; c.srcDevice = big2);
    CHANGED("DtoD.target_pinned_as_device", 0, c.dstDevice = address(pinned));
    CHANGED("DtoD.target_host", 1, c.dstMemoryType = CU_MEMORYTYPE_HOST; c.dstHost = pinned; c.dstDevice = 0);
    CHANGED("DtoD.source_host", 1, c.srcMemoryType = CU_MEMORYTYPE_HOST; c.srcHost = pinned; c.srcDevice = 0);
    CHANGED("DtoD.source_unified", 1, c.srcMemoryType = CU_MEMORYTYPE_UNIFIED; c.srcDevice = big2);
    CHANGED("DtoD.no_bytes", 1, c.WidthInBytes = 0);
    CHANGED("DtoD.two_rows", 1, c.Height = 2);
    CHANGED("DtoD.target_unmapped", 1, c.dstDevice = 0x1000);
    CHANGED("DtoD.past_the_end", 1, c.WidthInBytes = 64 * MIB);
    freed = device_new(4096);
    MUST(MemFree, freed);
    CHANGED("DtoD.target_freed", 1, c.dstDevice = freed);

    fact("set_params.memcpy.DtoD.moved");
    poke(big2 + 4096, 123);
    c = copy;
    c.srcDevice = big2 + 4096;
    c.dstDevice = big + 8192;
    code(CU(GraphExecMemcpyNodeSetParams)(t.exec, t.node, &c, env.ctx), 0, "both operands to other allocations");
    told_replay();
    value(peek(big + 8192), 123, "it copies");
    fact("set_params.memcpy.DtoD.null_context");
    code(CU(GraphExecMemcpyNodeSetParams)(t.exec, t.node, &copy, NULL), 0, "cuGraphExecMemcpyNodeSetParams(ctx NULL)");
}

static void copy_classes(int unused)
{
    CUDA_MEMCPY3D c;

    (void)unused;
    begin_facts();
    with_classes();
    must_begin(s, GLOBAL);
    take_copy(CU(MemcpyDtoDAsync)(a, b, 64, s));
    CHANGED("class.plain_to_pool", 1, c.dstDevice = pool);
    CHANGED("class.plain_to_vmm", 1, c.dstDevice = vmm);
    must_begin(s, GLOBAL);
    take_copy(CU(MemcpyDtoDAsync)(pool, b, 64, s));
    CHANGED("class.pool_to_vmm", 0, c.dstDevice = vmm);
    CHANGED("class.pool_to_plain", 1, c.dstDevice = a);
}

static void copy_class_managed(int unused)
{
    CUDA_MEMCPY3D c;
    CUdeviceptr managed = 0;

    (void)unused;
    begin_facts();
    MUST(MemAllocManaged, &managed, 4096, CF_ATTACH_GLOBAL);
    must_begin(s, GLOBAL);
    take_copy(CU(MemcpyDtoDAsync)(a, b, 64, s));
    CHANGED("class_managed.plain_to_managed", 0, c.dstDevice = managed);
}

static void host_copies(int unused)
{
    CUDA_MEMCPY3D c;

    (void)unused;
    begin_facts();
    *(float *)pinned = 1;
    *(float *)pinned2 = 2;
    *(float *)pages = 3;
    must_begin(s, GLOBAL);
    take_copy(CU(MemcpyHtoDAsync)(a, pinned, 64, s));
    CHANGED("HtoD.other_pinned", 0, c.srcHost = pinned2);
    value(peek(a), 2, "it copies");
    CHANGED("HtoD.pageable", 0, c.srcHost = pages);
    value(peek(a), 3, "it copies");
    CHANGED("HtoD.other_target", 0, c.dstDevice = big);
    value(peek(big), 1, "it copies");
    CHANGED("HtoD.device_source", 1, c.srcMemoryType = CU_MEMORYTYPE_DEVICE; c.srcDevice = b; c.srcHost = NULL);

    must_begin(s, GLOBAL);
    take_copy(CU(MemcpyHtoDAsync)(a, pages, 64, s));
    CHANGED("HtoD.pageable_to_pinned", 0, c.srcHost = pinned2);
    value(peek(a), 2, "it copies");
#undef CHANGED
}

/* ---- sets ----------------------------------------------------------------------------------------------------------- */

static CUDA_MEMSET_NODE_PARAMS set;

static void take_set(CUresult r)
{
    must(r, "the captured set", __FILE__, __LINE__);
    taken();
    memset(&set, 0, sizeof set);
    MUST(GraphMemsetNodeGetParams, t.node, &set);
}

static void told_set(const char *id, const CUDA_MEMSET_NODE_PARAMS *changed, int want)
{
    CUresult r;

    fact("set_params.memset.%s", id);
    r = CU(GraphExecMemsetNodeSetParams)(t.exec, t.node, changed, env.ctx);
    code(r, want, "cuGraphExecMemsetNodeSetParams");
    if ((int)r == want)
        told_replay();
    CU(GraphExecMemsetNodeSetParams)(t.exec, t.node, &set, env.ctx);
}

static void sets(int unused)
{
    CUDA_MEMSET_NODE_PARAMS c;
    CUDA_KERNEL_NODE_PARAMS k;

    (void)unused;
    begin_facts();
    must_begin(s, GLOBAL);
    take_set(CU(MemsetD32Async)(a, 0x3f800000, 4, s));

#define CHANGED(id, want, ...)                                                                                                   \
    do {                                                                                                                         \
        c = set;                                                                                                                 \
        __VA_ARGS__;                                                                                                             \
        told_set(id, &c, want);                                                                                                  \
    } while (0)
    CHANGED("unchanged", 0, (void)0);
    CHANGED("target", 0, c.dst = big);
    CHANGED("target_pinned", 0, c.dst = address(pinned));
    CHANGED("value", 0, c.value = 7);
    CHANGED("width", 0, c.width = 8);
    CHANGED("width_1_Mi", 0, c.dst = big; c.width = MIB);
    CHANGED("element_1", 0, c.elementSize = 1; c.value = 1);
    CHANGED("element_2", 0, c.elementSize = 2; c.value = 1);
    CHANGED("no_width", 1, c.width = 0);
    CHANGED("element_3", 1, c.elementSize = 3);
    CHANGED("two_rows", 1, c.height = 2; c.pitch = 64);
    CHANGED("target_bad", 1, c.dst = 0x1000);
    CHANGED("past_the_end", 1, c.width = 64 * MIB);

    fact("set_params.memset.moved");
    c = set;
    c.dst = big + 256;
    c.value = 0x40a00000;
    code(CU(GraphExecMemsetNodeSetParams)(t.exec, t.node, &c, env.ctx), 0, "to another allocation, 5.0");
    told_replay();
    value(peek(big + 256), 5, "it writes");
    fact("set_params.memset.null_context");
    code(CU(GraphExecMemsetNodeSetParams)(t.exec, t.node, &set, NULL), 0, "cuGraphExecMemsetNodeSetParams(ctx NULL)");
    fact("set_params.memset.through_the_kernel_call");
    memset(&k, 0, sizeof k);
    k.func = kernel("nop");
    k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
    code(CU(GraphExecKernelNodeSetParams)(t.exec, t.node, &k), 1, "cuGraphExecKernelNodeSetParams(memset node)");
}

static void set_rows(int unused)
{
    CUDA_MEMSET_NODE_PARAMS c;

    (void)unused;
    begin_facts();
    must_begin(s, GLOBAL);
    take_set(CU(MemsetD2D8Async)(a, 64, 1, 16, 4, s));
    CHANGED("2d.unchanged", 0, (void)0);
    CHANGED("2d.value", 0, c.value = 9);
    CHANGED("2d.target", 0, c.dst = big);
    CHANGED("2d.width", 1, c.width = 32);
}

static void set_classes(int unused)
{
    CUDA_MEMSET_NODE_PARAMS c;

    (void)unused;
    begin_facts();
    with_classes();
    must_begin(s, GLOBAL);
    take_set(CU(MemsetD32Async)(a, 1, 4, s));
    CHANGED("class.pool", 0, c.dst = pool);
    CHANGED("class.vmm", 0, c.dst = vmm);
}

static void set_class_managed(int unused)
{
    CUDA_MEMSET_NODE_PARAMS c;
    CUdeviceptr managed = 0;

    (void)unused;
    begin_facts();
    MUST(MemAllocManaged, &managed, 4096, CF_ATTACH_GLOBAL);
    must_begin(s, GLOBAL);
    take_set(CU(MemsetD32Async)(a, 1, 4, s));
    CHANGED("class_managed", 0, c.dst = managed);
#undef CHANGED
}

/* ---- kernels -------------------------------------------------------------------------------------------------------- */

static CUDA_KERNEL_NODE_PARAMS params;

static void take_kernel(void)
{
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_inc(a, 1, s));
    taken();
    memset(&params, 0, sizeof params);
    MUST(GraphKernelNodeGetParams, t.node, &params);
}

/* Refused, the node keeps what it had. */
static void told_kernel(const char *id, const CUDA_KERNEL_NODE_PARAMS *changed, int want, float adds)
{
    CUresult r;

    fact("set_params.kernel.%s", id);
    r = CU(GraphExecKernelNodeSetParams)(t.exec, t.node, changed);
    code(r, want, "cuGraphExecKernelNodeSetParams");
    if ((int)r == want) {
        poke(a, 0);
        told_replay();
        value(peek(a), adds, "a replay makes");
    }
    MUST(GraphExecKernelNodeSetParams, t.exec, t.node, &params);
}

static void kernels(int unused)
{
    CUDA_KERNEL_NODE_PARAMS c;
    float two = 2, six = 6;
    int one = 1;
    char buffer[12];
    size_t size = sizeof buffer;
    void *args[] = {&a, &two};
    void *args3[] = {&a, &six, &one};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    void *empty[] = {CU_LAUNCH_PARAM_END};

    (void)unused;
    begin_facts();
    take_kernel();
    memcpy(buffer, &a, 8);
    memcpy(buffer + 8, &six, 4);

#define CHANGED(id, want, adds, ...)                                                                                             \
    do {                                                                                                                         \
        c = params;                                                                                                              \
        c.kernelParams = args;                                                                                                   \
        __VA_ARGS__;                                                                                                             \
        told_kernel(id, &c, want, adds);                                                                                         \
    } while (0)
    CHANGED("argument", 0, 2, (void)0);
    CHANGED("function", 0, 2, c.func = kernel("setv"));
    CHANGED("function_3_parameters", 0, 6, c.func = kernel("addn"); c.kernelParams = args3);
    CHANGED("block", 0, 6, c.func = kernel("addn"); c.kernelParams = args3; c.blockDimX = 64);
    CHANGED("extra", 0, 6, c.kernelParams = NULL; c.extra = extra);
    CHANGED("extra_empty_and_kernel_params", 0, 2, c.extra = empty);
    CHANGED("grid_0", 1, 1, c.gridDimX = 0);
    CHANGED("block_4096", 1, 1, c.blockDimX = 4096);
    CHANGED("shared_1_MiB", 1, 1, c.sharedMemBytes = MIB);
    CHANGED("no_arguments", 1, 1, c.kernelParams = NULL);
    CHANGED("no_function", 400, 1, c.func = NULL; c.kern = NULL);
#undef CHANGED

    fact("set_params.kernel.graph_keeps_its_own");
    c = params;
    c.kernelParams = args;
    code(CU(GraphExecKernelNodeSetParams)(t.exec, t.node, &c), 0, "cuGraphExecKernelNodeSetParams(2)");
    memset(&c, 0, sizeof c);
    MUST(GraphKernelNodeGetParams, t.node, &c);
    value(*(float *)c.kernelParams[1], 1, "the graph's node says");
}

static void handles(int unused)
{
    CUgraph first, clone = NULL;
    CUgraphNode node, other, in_clone = NULL;
    CUgraphExec exec;
    CUDA_KERNEL_NODE_PARAMS c;

    (void)unused;
    begin_facts();
    take_kernel();
    c = params;
    first = t.graph;
    node = t.node;
    exec = t.exec;
    other = node_at(inc_graph(a, 1, s), 0);
    fact("set_params.handle.of_another_graph");
    code(CU(GraphExecKernelNodeSetParams)(exec, other, &c), 1, "node of another graph of the same shape");
    fact("set_params.handle.of_a_clone");
    MUST(GraphClone, &clone, first);
    MUST(GraphNodeFindInClone, &in_clone, node, clone);
    code(CU(GraphExecKernelNodeSetParams)(exec, in_clone, &c), 1, "node of a clone");
    fact("set_params.handle.destroyed_node");
    {
        /* The parameters belong to the node: keep arguments of our own. */
        float v = 1;
        void *args[] = {&a, &v};

        c.kernelParams = args;
        code(CU(GraphDestroyNode)(node), 0, "cuGraphDestroyNode in the source graph");
        code(CU(GraphExecKernelNodeSetParams)(exec, node, &c), 1, "SetParams with it");
        poke(a, 0);
        must_run(exec, s);
        value(peek(a), 1, "a replay adds");
    }
}

static void source_destroyed(int unused)
{
    float v = 2;
    void *args[] = {&a, &v};
    CUDA_KERNEL_NODE_PARAMS c;

    (void)unused;
    begin_facts();
    take_kernel();
    c = params;
    c.kernelParams = args;
    code(CU(GraphDestroy)(t.graph), 0, "cuGraphDestroy");
    code(CU(GraphExecKernelNodeSetParams)(t.exec, t.node, &c), 1, "SetParams with a node of it");
    poke(a, 0);
    told_replay();
    value(peek(a), 1, "a replay adds");
}

const struct job node_param_jobs[] = {
    {.id = "set_params.memcpy", .run = copies},
    {.id = "set_params.memcpy.class", .run = copy_classes},
    {.id = "set_params.memcpy.class_managed", .run = copy_class_managed},
    {.id = "set_params.memcpy.HtoD", .run = host_copies},
    {.id = "set_params.memset", .run = sets},
    {.id = "set_params.memset.2d", .run = set_rows},
    {.id = "set_params.memset.class", .run = set_classes},
    {.id = "set_params.memset.class_managed", .run = set_class_managed},
    {.id = "set_params.kernel", .run = kernels},
    {.id = "set_params.handle", .run = handles},
    {.id = "set_params.handle.source_destroyed", .run = source_destroyed},
    {.id = NULL},
};
