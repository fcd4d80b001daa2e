/* Kernel arguments: when they are read, how they are read back, how large they may be. */
#include "conformance.h"

static CUstream s;
static CUdeviceptr d;

static void begin_facts(void)
{
    s = stream_nb();
    d = device_new(64);
}

static CUgraphNode first(CUgraph g)
{
    return node_at(g, 0);
}

static CUDA_KERNEL_NODE_PARAMS read_back(CUgraphNode n)
{
    CUDA_KERNEL_NODE_PARAMS k;

    memset(&k, 0, sizeof k);
    MUST(GraphKernelNodeGetParams, n, &k);
    return k;
}

static float scalar(const CUDA_KERNEL_NODE_PARAMS *k)
{
    float v = -1;

    if (k->kernelParams)
        memcpy(&v, k->kernelParams[1], sizeof v);
    return v;
}

static float replay_adds(CUgraphExec x)
{
    poke(d, 0);
    must_run(x, s);
    return peek(d);
}

/* ---- when ---------------------------------------------------------------------------------------------------------- */

static void copied_at_the_call(int unused)
{
    float v = 1;
    void *args[] = {&d, &v};
    CUgraph g;
    CUgraphExec x;

    (void)unused;
    begin_facts();
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch(kernel("inc"), s, args));
    v = 100;
    g = must_end(s);
    x = must_instantiate(g);
    v = 1000;
    value(replay_adds(x), 1, "1 at the call, 100 before the end, 1000 before the launch: a replay adds");
}

static void copied_at_set_params(int unused)
{
    float nv = 7;
    void *nargs[] = {&d, &nv};
    CUgraph g;
    CUgraphExec x;
    CUgraphNode n;
    CUDA_KERNEL_NODE_PARAMS k;

    (void)unused;
    begin_facts();
    g = inc_graph(d, 1, s);
    x = must_instantiate(g);
    n = first(g);
    k = read_back(n);

    fact("arguments.copied.exec_set_params");
    k.kernelParams = nargs;
    code(CU(GraphExecKernelNodeSetParams)(x, n, &k), 0, "cuGraphExecKernelNodeSetParams(7)");
    nv = 500;
    value(replay_adds(x), 7, "a replay adds");
    k = read_back(n);
    value(scalar(&k), 1, "the graph's node says");

    fact("arguments.copied.node_set_params");
    nv = 9;
    k.kernelParams = nargs;
    code(CU(GraphKernelNodeSetParams)(n, &k), 0, "cuGraphKernelNodeSetParams(9)");
    nv = 500;
    k = read_back(n);
    value(scalar(&k), 9, "the graph's node says");
    value(replay_adds(x), 7, "the exec made before adds");
    value(replay_adds(must_instantiate(g)), 9, "a new exec adds");
}

static void copied_at_add_node(int unused)
{
    float v = 5;
    void *args[] = {&d, &v};
    CUDA_KERNEL_NODE_PARAMS k;
    CUgraph g = NULL;
    CUgraphNode n;

    (void)unused;
    begin_facts();
    memset(&k, 0, sizeof k);
    k.func = kernel("inc");
    k.gridDimX = k.gridDimY = k.gridDimZ = 1;
    k.blockDimX = k.blockDimY = k.blockDimZ = 1;
    k.kernelParams = args;
    MUST(GraphCreate, &g, 0);
    fact("arguments.add_kernel_node.copied");
    code(CU(GraphAddKernelNode)(&n, g, NULL, 0, &k), 0, "cuGraphAddKernelNode(5)");
    v = 50;
    value(replay_adds(must_instantiate(g)), 5, "a replay adds");

    fact("arguments.add_kernel_node.refused");
    k.gridDimX = 0;
    code(CU(GraphAddKernelNode)(&n, g, NULL, 0, &k), 1, "grid 0");
    k.gridDimX = 1;
    k.blockDimX = 4096;
    code(CU(GraphAddKernelNode)(&n, g, NULL, 0, &k), 1, "4,096 threads");
    k.blockDimX = 1;
    k.kernelParams = NULL;
    code(CU(GraphAddKernelNode)(&n, g, NULL, 0, &k), 1, "without the arguments");
}

/* ---- how ----------------------------------------------------------------------------------------------------------- */

static void read_back_params(int unused)
{
    float v = 3;
    void *args[] = {&d, &v};
    CUgraph g;
    CUgraphNode n;
    CUDA_KERNEL_NODE_PARAMS k, again;

    (void)unused;
    begin_facts();
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch(kernel("inc"), s, args));
    g = must_end(s);
    n = first(g);
    fact("arguments.read_back.kernel_params");
    k = read_back(n);
    again = read_back(n);
    yes(k.func == kernel("inc"), "func is the launched handle");
    yes(k.kern == NULL, "kern NULL");
    yes(k.ctx == env.ctx, "ctx the context");
    yes(k.kernelParams && !k.extra, "kernelParams set, extra NULL");
    yes(k.kernelParams == again.kernelParams, "the same array on every call");
    yes(k.kernelParams && k.kernelParams[0] != (void *)&d, "not the caller's variables");
    yes(k.kernelParams && memcmp(k.kernelParams[0], &d, sizeof d) == 0, "the address");
    value(scalar(&k), 3, "the scalar");
    equal(k.gridDimX, 1, "grid");
    equal(k.blockDimX, 1, "block");

    fact("arguments.read_back.no_parameters");
    g = nop_graph(s);
    memset(&k, 0xee, sizeof k);
    code(CU(GraphKernelNodeGetParams)(first(g), &k), 0, "cuGraphKernelNodeGetParams");
    yes(!k.kernelParams && !k.extra, "kernelParams and extra NULL");

    fact("arguments.read_back.null_output");
    code(CU(GraphKernelNodeGetParams)(first(g), NULL), 1, "cuGraphKernelNodeGetParams(node, NULL)");
}

static void read_back_extra(int unused)
{
    char buffer[16];
    float v = 3;
    size_t size = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    CUgraph g;
    CUDA_KERNEL_NODE_PARAMS k;

    (void)unused;
    begin_facts();
    memcpy(buffer, &d, 8);
    memcpy(buffer + 8, &v, 4);
    must_begin(s, GLOBAL);
    code(CU(LaunchKernel)(kernel("inc"), 1, 1, 1, 1, 1, 1, 0, s, NULL, extra), 0, "launch through extra (12 bytes)");
    g = must_end(s);
    memset(buffer, 0, sizeof buffer);
    k = read_back(first(g));
    yes(!k.kernelParams && k.extra, "kernelParams NULL, extra set");
    if (k.extra) {
        yes(k.extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && k.extra[2] == CU_LAUNCH_PARAM_BUFFER_POINTER &&
                k.extra[4] == CU_LAUNCH_PARAM_END,
            "tags: size, pointer, end");
        if (k.extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && k.extra[2] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            equal((long long)*(size_t *)k.extra[1], 12, "size");
            memcpy(&v, (char *)k.extra[3] + 8, 4);
            value(v, 3, "scalar");
            yes(memcmp(k.extra[3], &d, 8) == 0, "the address");
        }
    }
    value(replay_adds(must_instantiate(g)), 3, "a replay adds");
}

static CUkernel library_kernel(const char *name)
{
    CUlibrary l = NULL;
    CUkernel k = NULL;

    MUST(LibraryLoadData, &l, env.ptx, NULL, NULL, 0, NULL, NULL, 0);
    MUST(LibraryGetKernel, &k, l, name);
    return k;
}

/* A CUkernel that is launched in place of a function. */
static void read_back_kernel_handle(int unused)
{
    CUkernel h = NULL;
    float v = 1;
    void *args[] = {&d, &v};
    CUgraph g;
    CUgraphNode n;
    CUgraphExec x;
    CUDA_KERNEL_NODE_PARAMS k;
    CUfunction f = NULL;
    size_t offset = 0, size = 0;

    (void)unused;
    begin_facts();
    h = library_kernel("inc");
    must_begin(s, GLOBAL);
    code(launch((CUfunction)h, s, args), 0, "captured launch of a CUkernel");
    g = must_end(s);
    n = first(g);
    k = read_back(n);
    MUST(KernelGetFunction, &f, h);
    yes(k.func == f, "func is the context's function of it");
    yes(k.kern == h, "kern is the kernel");
    yes(k.ctx == env.ctx, "ctx the context");
    code(CU(FuncGetParamInfo)(k.func, 1, &offset, &size), 0, "cuFuncGetParamInfo(func, 1)");
    x = must_instantiate(g);
    code(CU(GraphExecKernelNodeSetParams)(x, n, &k), 0, "SetParams as read");
    k.func = NULL;
    code(CU(GraphExecKernelNodeSetParams)(x, n, &k), 0, "func NULL, kern set");
    k.ctx = NULL;
    code(CU(GraphExecKernelNodeSetParams)(x, n, &k), 0, "and ctx NULL");
    value(replay_adds(x), 1, "a replay adds");
}

/* The form of the question that every driver has: it knows neither the kernel handle nor the context. */
static void read_back_first_form(int unused)
{
    CUDA_KERNEL_NODE_PARAMS_v1 k;
    char buffer[16];
    float v = 3;
    size_t bytes = 12;
    void *args[] = {&d, &v}, *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CUkernel h;
    CUgraph g;

    (void)unused;
    begin_facts();
    h = library_kernel("inc");
    memcpy(buffer, &d, 8);
    memcpy(buffer + 8, &v, 4);
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch(kernel("inc"), s, args));
    MUST_LAUNCH(CU(LaunchKernel)(kernel("inc"), 1, 1, 1, 1, 1, 1, 0, s, NULL, extra));
    MUST_LAUNCH(launch((CUfunction)h, s, args));
    MUST(MemsetD8Async, d, 0, 4, s);
    g = must_end(s);
    fact("arguments.read_back.first_form");
    yes(first_form_agrees(node_at(g, 0)), "of a function");
    yes(first_form_agrees(node_at(g, 1)), "through extra");
    yes(first_form_agrees(node_at(g, 2)), "of a CUkernel");
    memset(&k, 0xee, sizeof k);
    code(CU(GraphKernelNodeGetParams_10000)(node_at(g, 3), &k), 1, "of a set");
    code(CU(GraphKernelNodeGetParams_10000)(NULL, &k), 1, "of no node");
    code(CU(GraphKernelNodeGetParams_10000)(node_at(g, 0), NULL), 1, "with no place for it");
}

/* When both are set the function counts. */
static void func_wins(int unused)
{
    CUkernel h = NULL;
    float v = 1;
    void *args[] = {&d, &v};
    CUgraph g;
    CUgraphNode n;
    CUgraphExec x;
    CUDA_KERNEL_NODE_PARAMS k;

    (void)unused;
    begin_facts();
    h = library_kernel("inc");
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch((CUfunction)h, s, args));
    g = must_end(s);
    n = first(g);
    x = must_instantiate(g);
    k = read_back(n);
    k.func = kernel("setv");
    code(CU(GraphExecKernelNodeSetParams)(x, n, &k), 0, "SetParams: func changed to another kernel, kern left as read");
    poke(d, 40);
    must_run(x, s);
    value(peek(d), 1, "on 40 the replay makes");
}

/* ---- the lists of parameters ------------------------------------------------------------------------------------------ */

struct param {
    size_t offset, size;
};

static void layout(const char *name, const struct param *want, size_t n)
{
    CUfunction f = kernel(name);
    size_t offset = 77, size = 77;

    fact("arguments.layout.%s", name);
    for (size_t i = 0; i < n; i++) {
        offset = size = 77;
        if (!code(CU(FuncGetParamInfo)(f, i, &offset, &size), 0, "cuFuncGetParamInfo(%s, %zu)", name, i))
            continue;
        equal((long long)offset, (long long)want[i].offset, "offset");
        equal((long long)size, (long long)want[i].size, "size");
    }
    offset = size = 77;
    code(CU(FuncGetParamInfo)(f, n, &offset, &size), 1, "past the end");
    yes(offset == 77 && size == 77, "outputs left");
}

static void layouts(int unused)
{
    static const struct param inc[] = {{0, 8}, {8, 4}};
    static const struct param inner[] = {{0, 40}, {40, 8}, {48, 4}, {52, 1}, {56, 8}};
    static const struct param packed[] = {{0, 22}, {24, 8}};
    static const struct param big[] = {{0, 8}, {8, 4088}};

    (void)unused;
    layout("inc", inc, 2);
    layout("inner", inner, 5);
    layout("packed", packed, 2);
    layout("nop", NULL, 0);
    layout("big4096", big, 2);
}

/* The first parameter is not at 0 there: its alignment counts from where the parameters lie, which is not a multiple of 64. */
static void layout_aligned(int unused)
{
    static const struct param aligned[] = {{48, 128}, {176, 8}};

    (void)unused;
    layout("aligned", aligned, 2);
}

static void param_info_arguments(int unused)
{
    size_t offset = 77, size = 77;
    CUmodule m = NULL;
    CUfunction f = NULL;
    CUkernel h = NULL;

    (void)unused;
    fact("arguments.param_info.null_size");
    code(CU(FuncGetParamInfo)(kernel("inc"), 0, &offset, NULL), 0, "cuFuncGetParamInfo(size NULL)");
    fact("arguments.param_info.index_minus_1");
    offset = 77;
    code(CU(FuncGetParamInfo)(kernel("inc"), (size_t)-1, &offset, &size), 1, "cuFuncGetParamInfo(index -1)");
    yes(offset == 77 && size == 77, "outputs left");
    fact("arguments.param_info.null_function");
    code(CU(FuncGetParamInfo)(NULL, 0, &offset, &size), 1, "cuFuncGetParamInfo(NULL)");
    yes(offset == 77 && size == 77, "outputs left");

    fact("arguments.param_info.unloaded_kernel");
    h = library_kernel("packed");
    code(CU(KernelGetParamInfo)(h, 0, &offset, &size), 0, "cuKernelGetParamInfo(unloaded, 0)");
    equal((long long)size, 22, "size");
    code(CU(KernelGetParamInfo)(h, 2, &offset, &size), 1, "past the end");
    code(CU(FuncGetParamInfo)((CUfunction)h, 0, &offset, &size), 400, "cuFuncGetParamInfo(CUkernel as CUfunction)");

    fact("arguments.param_info.dead_module");
    MUST(ModuleLoadData, &m, env.ptx);
    MUST(ModuleGetFunction, &f, m, "inc");
    MUST(ModuleUnload, m);
    code(CU(FuncGetParamInfo)(f, 0, &offset, &size), 400, "cuFuncGetParamInfo(function of an unloaded module)");

    fact("arguments.param_info.name");
    {
        const char *name = NULL;

        code(CU(FuncGetName)(&name, kernel("inc")), 0, "cuFuncGetName");
        yes(name && strcmp(name, "inc") == 0, "'inc'");
    }
}

/* ---- too few, too many, both ------------------------------------------------------------------------------------------ */

static void extra_sizes(int unused)
{
    char buffer[64] = {0};
    float v = 3;
    size_t size = 12;
    void *args[] = {&d, &v};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    void *empty[] = {CU_LAUNCH_PARAM_END};
    CUgraph g;
    CUgraphNode n;
    CUgraphExec x;
    CUDA_KERNEL_NODE_PARAMS k;

    (void)unused;
    begin_facts();
    memcpy(buffer, &d, 8);
    memcpy(buffer + 8, &v, 4);
    g = inc_graph(d, v, s);
    n = first(g);
    x = must_instantiate(g);
    k = read_back(n);

    fact("arguments.extra.fewer_bytes");
    size = 8;
    code(CU(LaunchKernel)(kernel("inc"), 1, 1, 1, 1, 1, 1, 0, s, NULL, extra), 0, "eager launch, 8 of 12 bytes");
    code(CU(StreamSynchronize)(s), 0, "sync");
    k.kernelParams = NULL;
    k.extra = extra;
    code(CU(GraphExecKernelNodeSetParams)(x, n, &k), 0, "SetParams, 8 of 12 bytes");

    fact("arguments.extra.more_bytes");
    size = 32;
    code(CU(LaunchKernel)(kernel("inc"), 1, 1, 1, 1, 1, 1, 0, s, NULL, extra), 701, "eager launch, 32 for 12 bytes");
    code(CU(GraphExecKernelNodeSetParams)(x, n, &k), 1, "SetParams, 32 for 12 bytes");

    fact("arguments.extra.and_kernel_params");
    size = 12;
    code(CU(LaunchKernel)(kernel("inc"), 1, 1, 1, 1, 1, 1, 0, s, args, extra), 1, "eager launch with both");
    k.kernelParams = args;
    k.extra = empty;
    code(CU(GraphExecKernelNodeSetParams)(x, n, &k), 0, "SetParams with both, extra empty");

    fact("arguments.extra.missing");
    code(launch(kernel("inc"), s, NULL), 1, "eager launch without the arguments");
    k.kernelParams = NULL;
    k.extra = NULL;
    code(CU(GraphExecKernelNodeSetParams)(x, n, &k), 1, "SetParams without the arguments");
}

/* ---- large ones ------------------------------------------------------------------------------------------------------- */

/* A pointer, then words; the kernel writes the first and the last word to where the pointer points. */
static void large(CUfunction f, size_t bytes)
{
    size_t words = (bytes - 8) / 4;
    int *w = calloc(words, 4), out[2] = {0, 0};
    char *buffer = calloc(1, bytes);
    void *args[] = {&d, w};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CUgraph g;
    CUgraphExec x;
    CUDA_KERNEL_NODE_PARAMS k;

    fact("arguments.large.%zu.eager", bytes);
    w[0] = 11;
    w[words - 1] = 21;
    code(launch(f, s, args), 0, "launch of %zu bytes", bytes);
    code(CU(StreamSynchronize)(s), 0, "sync");
    MUST(MemcpyDtoH, out, d, sizeof out);
    equal(out[0], 11, "first");
    equal(out[1], 21, "last");

    fact("arguments.large.%zu.extra", bytes);
    w[0] = 12;
    w[words - 1] = 22;
    memcpy(buffer, &d, 8);
    memcpy(buffer + 8, w, bytes - 8);
    code(CU(LaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, extra), 0, "launch through extra");
    code(CU(StreamSynchronize)(s), 0, "sync");
    MUST(MemcpyDtoH, out, d, sizeof out);
    equal(out[0], 12, "first");
    equal(out[1], 22, "last");

    fact("arguments.large.%zu.captured", bytes);
    w[0] = 100;
    w[words - 1] = 200;
    must_begin(s, GLOBAL);
    code(launch(f, s, args), 0, "captured launch");
    g = must_end(s);
    w[0] = w[words - 1] = 0;
    x = must_instantiate(g);
    must_run(x, s);
    MUST(MemcpyDtoH, out, d, sizeof out);
    equal(out[0], 100, "replay: first");
    equal(out[1], 200, "last");
    k = read_back(first(g));
    if (k.kernelParams) {
        equal(((int *)k.kernelParams[1])[0], 100, "read back: first");
        equal(((int *)k.kernelParams[1])[words - 1], 200, "last");
    } else {
        yes(false, "kernelParams set");
    }
}

static void large_in_pack(int unused)
{
    (void)unused;
    begin_facts();
    large(kernel("big4096"), 4096);
}

/*
 * More than 4,352 bytes need a PTX version that the test kernels do not ask for, hence one of its own. A software driver finds
 * the body by name in the pack of the test kernels.
 */
static void large_own(int bytes)
{
    char ptx[2048], name[32];
    CUmodule m = NULL;
    CUfunction f = NULL;
    CUresult r;
    int words = (bytes - 8) / 4;

    begin_facts();
    snprintf(ptx, sizeof ptx,
             ".version 8.1\n.target sm_75\n.address_size 64\n"
             ".visible .entry large%d(.param .u64 large%d_param_0, .param .align 4 .b8 large%d_param_1[%d])\n"
             "{\n"
             "    .reg .b32 %%r<3>;\n    .reg .b64 %%rd<3>;\n"
             "    ld.param.u64 %%rd1, [large%d_param_0];\n"
             "    ld.param.u32 %%r1, [large%d_param_1];\n"
             "    ld.param.u32 %%r2, [large%d_param_1+%d];\n"
             "    cvta.to.global.u64 %%rd2, %%rd1;\n"
             "    st.global.u32 [%%rd2], %%r1;\n"
             "    st.global.u32 [%%rd2+4], %%r2;\n"
             "    ret;\n"
             "}\n",
             bytes, bytes, bytes, bytes - 8, bytes, bytes, bytes, 4 * (words - 1));
    snprintf(name, sizeof name, "large%d", bytes);
    r = CU(ModuleLoadData)(&m, ptx);
    if (r != CUDA_SUCCESS)
        skip("this driver does not compile PTX of %d parameter bytes (%d)", bytes, (int)r);
    r = CU(ModuleGetFunction)(&f, m, name);
    if (r != CUDA_SUCCESS)
        skip("this driver has no body for the kernel '%s' (%d)", name, (int)r);
    large(f, (size_t)bytes);
}

const struct job argument_jobs[] = {
    {.id = "arguments.copied.at_the_call", .run = copied_at_the_call},
    {.id = "arguments.copied", .run = copied_at_set_params},
    {.id = "arguments.add_kernel_node", .run = copied_at_add_node},
    {.id = "arguments.read_back", .run = read_back_params},
    {.id = "arguments.read_back.extra", .run = read_back_extra},
    {.id = "arguments.read_back.kernel_handle", .run = read_back_kernel_handle},
    {.id = "arguments.read_back.first_form", .run = read_back_first_form},
    {.id = "arguments.func_wins", .run = func_wins},
    {.id = "arguments.layout", .run = layouts},
    {.id = "arguments.layout.aligned", .run = layout_aligned},
    {.id = "arguments.param_info", .run = param_info_arguments},
    {.id = "arguments.extra", .run = extra_sizes},
    {.id = "arguments.large.4096", .run = large_in_pack},
    {.id = "arguments.large.4100", .run = large_own, .arg = 4100},
    {.id = "arguments.large.8192", .run = large_own, .arg = 8192},
    {.id = "arguments.large.32764", .run = large_own, .arg = 32764},
    {.id = NULL},
};
