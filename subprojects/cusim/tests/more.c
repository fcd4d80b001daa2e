/* Mappings, variables, conditional nodes, per-thread entries, images that cannot be used. */
#include "test.h"

static CUstream s;

/* ---- mappings ------------------------------------------------------------------------------------------------------ */

#define UNIT (2ull << 20)

static unsigned long long backing(size_t bytes)
{
    cusim_mem_prop prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    unsigned long long h = 0;

    OK(cu.cuMemCreate(&h, bytes, &prop, 0));
    return h;
}

static void map(CUdeviceptr at, size_t bytes, unsigned long long h)
{
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    OK(cu.cuMemMap(at, bytes, 0, h, 0));
    OK(cu.cuMemSetAccess(at, bytes, &access, 1));
}

static void mappings(void)
{
    unsigned long long a = backing(UNIT), b = backing(UNIT), again = 0;
    CUdeviceptr range = 0, alias = 0;
    size_t before = 0, after = 0, total;

    OK(cu.cuMemGetInfo_v2(&before, &total));
    OK(cu.cuMemAddressReserve(&range, 2 * UNIT, 0, 0, 0));
    OK(cu.cuMemAddressReserve(&alias, UNIT, 0, 0, 0));
    map(range, UNIT, a);
    map(range + UNIT, UNIT, b);
    map(alias, UNIT, a);
    OK(cu.cuMemGetInfo_v2(&after, &total));
    CHECK(before == after); /* The memory was taken by cuMemCreate. */
    OK(launch_inc(range, 1, s));
    OK(launch_inc(alias, 1, s));
    OK(cu.cuStreamSynchronize(s));
    CHECK(value(range) == value(alias));
    /* A copy across two mappings. */
    OK(cu.cuMemsetD8_v2(range + UNIT - 4, 7, 8));
    CODE(1, cu.cuMemUnmap(range, UNIT / 2));
    CODE(1, cu.cuMemAddressFree(range, 2 * UNIT));
    OK(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(alias + 100)));
    CHECK(again == a);
    OK(cu.cuMemRelease(again));
    OK(cu.cuMemRelease(a));
    OK(cu.cuMemRelease(b));
    CODE(1, cu.cuMemRelease(b));
    OK(cu.cuMemUnmap(range, 2 * UNIT));
    CHECK(value(alias) != -1);
    CODE(1, cu.cuMemcpyDtoD_v2(alias, range, 4));
    OK(cu.cuMemUnmap(alias, UNIT));
    OK(cu.cuMemAddressFree(range, 2 * UNIT));
    OK(cu.cuMemAddressFree(alias, UNIT));
    OK(cu.cuMemGetInfo_v2(&after, &total));
    CHECK(after == before + 2 * UNIT);
}

/* ---- modules ------------------------------------------------------------------------------------------------------- */

static void variables(void)
{
    CUdeviceptr at = 0, out = memory(64);
    size_t bytes = 0;
    int table[4];
    void *args[] = {&out};

    /* One that the pack has: its kernels see what is written. */
    OK(cu.cuModuleGetGlobal_v2(&at, &bytes, module, "variable"));
    CHECK(bytes == 4);
    CHECK(value(at) == 2.5f);
    OK(cu.cuMemsetD32_v2(at, 0x40800000, 1));
    OK(cu.cuLaunchKernel(function("from_variable"), 1, 1, 1, 1, 1, 1, 0, s, args, NULL));
    OK(cu.cuStreamSynchronize(s));
    CHECK(value(out) == 4);
    /* One that it has not. */
    OK(cu.cuModuleGetGlobal_v2(&at, &bytes, module, "table"));
    CHECK(bytes == sizeof table);
    OK(cu.cuMemcpyDtoH_v2(table, at, sizeof table));
    CHECK(table[0] == 1 && table[1] == -2 && table[2] == 3 && table[3] == 0);
    CODE(1, cu.cuMemFree_v2(at));
    CODE(500, cu.cuModuleGetGlobal_v2(&at, &bytes, module, "nothing"));
    OK(cu.cuMemFree_v2(out));
}

static void not_ptx(void)
{
    CUmodule m = NULL;

    CODE(200, cu.cuModuleLoadData(&m, "\177ELF and so on"));
    CODE(200, cu.cuModuleLoadData(&m, "P\xed\x55\xba"));
    CODE(200, cu.cuModuleLoadData(&m, "words"));
    CODE(218, cu.cuModuleLoadData(&m, ".version 8.0\n.target sm_75\n.visible .entry broken(.param"));
    OK(cu.cuModuleLoadData(&m, ".version 8.0\n.target sm_75\n.global .texref t;\n.global .align 8 .b8 raw[];\n"));
    OK(cu.cuModuleUnload(m));
}

/* ---- conditional nodes --------------------------------------------------------------------------------------------- */

static CUgraph conditional(CUgraph g, int type, unsigned size, unsigned initial, cuuint64_t *handle, CUgraph *bodies)
{
    cusim_node_params p;
    CUgraphNode n = NULL;

    OK(cu.cuGraphConditionalHandleCreate(handle, g, ctx, initial, 1));
    memset(&p, 0, sizeof p);
    p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    p.conditional.handle = *handle;
    p.conditional.type = type;
    p.conditional.size = size;
    p.conditional.ctx = ctx;
    OK(cu.cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &p));
    CODE(1, cu.cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &p));
    for (unsigned i = 0; i < size; i++)
        bodies[i] = p.conditional.phGraph_out[i];
    return g;
}

static void add_kernel(CUgraph g, const char *name, void **args)
{
    CUDA_KERNEL_NODE_PARAMS k = {.func = function(name),
                                 .gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 1,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .kernelParams = args};
    CUgraphNode n;

    OK(cu.cuGraphAddKernelNode_v2(&n, g, NULL, 0, &k));
}

static void add_inc(CUgraph g, CUdeviceptr p, float v)
{
    add_kernel(g, "inc", (void *[]){&p, &v});
}

static void run(CUgraph g, int times)
{
    CUgraphExec x = NULL;

    OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cu.cuGraphDestroy(g));
    for (int i = 0; i < times; i++)
        OK(cu.cuGraphLaunch(x, s));
    OK(cu.cuStreamSynchronize(s));
    OK(cu.cuGraphExecDestroy(x));
}

static void conditionals(void)
{
    CUdeviceptr p = memory(64), n = memory(64);
    CUgraph g, bodies[3];
    cuuint64_t handle;

    /* One of two. */
    for (unsigned v = 0; v < 2; v++) {
        OK(cu.cuGraphCreate(&g, 0));
        conditional(g, 0, 2, v, &handle, bodies);
        CODE(1, cu.cuGraphDestroy(bodies[0]));
        add_inc(bodies[0], p, 1);
        add_inc(bodies[1], p, 10);
        run(g, 2);
        CHECK(value(p) == (v ? 22 : 20));
    }
    /* One of three, or none. */
    for (unsigned v = 0; v < 4; v++) {
        OK(cu.cuMemsetD8_v2(p, 0, 64));
        OK(cu.cuGraphCreate(&g, 0));
        conditional(g, 2, 3, v, &handle, bodies);
        for (int i = 0; i < 3; i++)
            add_inc(bodies[i], p, (float)(i + 1));
        run(g, 1);
        CHECK(value(p) == (v < 3 ? (float)v + 1 : 0));
    }
    /* As often as the kernel says. */
    OK(cu.cuMemsetD8_v2(p, 0, 64));
    OK(cu.cuMemsetD32_v2(n, 5, 1));
    OK(cu.cuGraphCreate(&g, 0));
    conditional(g, 1, 1, 1, &handle, bodies);
    add_inc(bodies[0], p, 1);
    add_kernel(bodies[0], "countdown", (void *[]){&handle, &n});
    run(g, 1);
    CHECK(value(p) == 5);
    OK(cu.cuMemFree_v2(p));
    OK(cu.cuMemFree_v2(n));
}

/* ---- the thread's own stream --------------------------------------------------------------------------------------- */

static void per_thread(void)
{
    CUresult (*begin)(CUstream, CUstreamCaptureMode) = NULL;
    CUresult (*end)(CUstream, CUgraph *) = NULL;
    CUresult (*synchronize)(CUstream) = NULL;
    CUgraph g = NULL;

    OK(cu.cuGetProcAddress_v2("cuStreamBeginCapture", (void **)&begin, 12000, 2, NULL));
    OK(cu.cuGetProcAddress_v2("cuStreamEndCapture", (void **)&end, 12000, 2, NULL));
    OK(cu.cuGetProcAddress_v2("cuStreamSynchronize", (void **)&synchronize, 12000, 2, NULL));
    CHECK(begin != cu.cuStreamBeginCapture_v2);
    /* NULL is a stream that can be captured, and the legacy stream is another. */
    OK(begin(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(state(CU_STREAM_PER_THREAD) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(end(NULL, &g));
    OK(synchronize(NULL));
    CODE(900, cu.cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cu.cuGraphDestroy(g));
}

int main(void)
{
    start();
    s = stream(CU_STREAM_NON_BLOCKING);
    mappings();
    variables();
    not_ptx();
    conditionals();
    per_thread();
    return finish();
}
