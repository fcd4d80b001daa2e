/* Loading, lookup, errors, streams, events, memory, modules and launches. */
#include "test.h"

#include <stdatomic.h>
#include <time.h>

static void lookups(void)
{
    CUdriverProcAddressQueryResult status;
    void *fn;

    fn = (void *)1;
    OK(cu.cuGetProcAddress_v2("", &fn, 0, 0, &status));
    CHECK(fn == NULL && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    OK(cu.cuGetProcAddress_v2("cuMemAlloc", &fn, 12000, 0, &status));
    CHECK(fn == *(void **)&cu.cuMemAlloc_v2 && status == 0);
    OK(cu.cuGetProcAddress_v2("cuMemAlloc_v2", &fn, 12000, 0, &status));
    CHECK(fn == NULL && status == 1);
    OK(cu.cuGetProcAddress_v2("cuFuncGetParamInfo", &fn, 12000, 0, &status));
    CHECK(fn == NULL && status == 2);
    fn = (void *)1;
    CODE(1, cu.cuGetProcAddress_v2("cuInit", &fn, 99000, 0, NULL));
    CODE(1, cu.cuGetProcAddress_v2("cuInit", &fn, 12000, 16, NULL));
    CHECK(fn == (void *)1);
    OK(cu.cuGetProcAddress_v2("cuStreamGetCaptureInfo", &fn, 11030, 1, NULL));
    CHECK(fn == *(void **)&cu.cuStreamGetCaptureInfo_v2);
    OK(cu.cuGetProcAddress_v2("cuStreamGetCaptureInfo", &fn, 12030, 1, NULL));
    CHECK(fn == *(void **)&cu.cuStreamGetCaptureInfo_v3);
    OK(cu.cuGetProcAddress_v2("cuStreamGetCaptureInfo", &fn, -1, 0, NULL));
    CHECK(fn == *(void **)&cu.cuStreamGetCaptureInfo_v3);
    OK(cu.cuGetProcAddress_v2("cuGraphInstantiate", &fn, 10000, 0, NULL));
    CHECK(fn == *(void **)&cu.cuGraphInstantiate);
    cu.set_version(12030);
    OK(cu.cuGetProcAddress_v2("cuFuncGetParamInfo", &fn, 12030, 0, &status));
    CHECK(fn == NULL && status == 1);
    cu.set_version(13000);
}

static void before_init(void)
{
    int n = -7;

    CODE(3, cu.cuDeviceGetCount(&n));
    CHECK(n == -7);
    OK(cu.cuDriverGetVersion(&n));
    CHECK(n == 13000);
    CODE(1, cu.cuInit(1));
    cu.set_stub(1);
    n = -7;
    CODE(34, cu.cuDriverGetVersion(&n));
    CHECK(n == -7);
    cu.set_stub(0);
}

static void errors(void)
{
    const char *text;
    CUdeviceptr p;

    OK(cu.cuGetErrorName(CUDA_ERROR_STREAM_CAPTURE_MERGE, &text));
    CHECK(strcmp(text, "CUDA_ERROR_STREAM_CAPTURE_MERGE") == 0);
    OK(cu.cuGetErrorString(CUDA_ERROR_ILLEGAL_STATE, &text));
    CHECK(strcmp(text, "the operation cannot be performed in the present state") == 0);
    CODE(1, cu.cuGetErrorName((CUresult)12345, &text));
    CHECK(text == NULL);

    CHECK(cu.fail("cuNothing", 1, 2) == -1);
    CHECK(cu.fail("cuMemAlloc", 2, 2) == 0);
    unsigned long before = cu.calls("cuMemAlloc");
    OK(cu.cuMemAlloc_v2(&p, 64));
    OK(cu.cuMemFree_v2(p));
    CODE(2, cu.cuMemAlloc_v2(&p, 64));
    OK(cu.cuMemAlloc_v2(&p, 64));
    OK(cu.cuMemFree_v2(p));
    CHECK(cu.calls("cuMemAlloc") == before + 3 && cu.calls("cuMemAlloc_v2") == before + 3);
}

static void contexts(void)
{
    CUcontext other, now;
    CUdeviceptr p;

    OK(cu.cuCtxCreate_v2(&other, 0, 0));
    OK(cu.cuCtxGetCurrent(&now));
    CHECK(now == other && other != ctx);
    OK(cu.cuMemAlloc_v2(&p, 64));
    OK(cu.cuCtxDestroy_v2(other));
    OK(cu.cuCtxGetCurrent(&now));
    CHECK(now == ctx);
    CODE(1, cu.cuMemFree_v2(p));
    OK(cu.cuCtxPushCurrent_v2(ctx));
    OK(cu.cuCtxPopCurrent_v2(&now));
    CHECK(now == ctx);
    OK(cu.cuCtxSetCurrent(NULL));
    CODE(201, cu.cuMemAlloc_v2(&p, 64));
    OK(cu.cuCtxSetCurrent(ctx));
}

static void addresses(void)
{
    CUdeviceptr a, b, c, d, start = 77;
    unsigned long long id[4];
    unsigned type = 9;
    size_t size = 77;

    CODE(1, cu.cuMemAlloc_v2(&a, 0));
    OK(cu.cuMemAlloc_v2(&a, 4096));
    OK(cu.cuMemAlloc_v2(&b, 4096));
    OK(cu.cuMemAlloc_v2(&c, 4096));
    CHECK(b == a + 4096 && c == b + 4096);
    OK(cu.cuPointerGetAttribute(&id[0], CU_POINTER_ATTRIBUTE_BUFFER_ID, a + 100));
    OK(cu.cuPointerGetAttribute(&id[1], CU_POINTER_ATTRIBUTE_BUFFER_ID, b));
    CHECK(id[1] > id[0]);
    OK(cu.cuMemFree_v2(b));
    OK(cu.cuMemFree_v2(a));
    CODE(1, cu.cuMemFree_v2(a));
    CODE(1, cu.cuPointerGetAttribute(&id[2], CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
    OK(cu.cuMemAlloc_v2(&d, 4000));
    CHECK(d == a);
    OK(cu.cuPointerGetAttribute(&id[2], CU_POINTER_ATTRIBUTE_BUFFER_ID, d));
    CHECK(id[2] > id[1]);
    CODE(1, cu.cuMemFree_v2(d + 8));

    /* An unknown address: everything zero but start and size. */
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *out[] = {&type, &id[3], &start, &size};
    id[3] = 5;
    OK(cu.cuPointerGetAttributes(4, which, out, b));
    CHECK(type == 0 && id[3] == 0 && start == 77 && size == 77);
    OK(cu.cuPointerGetAttributes(4, which, out, d + 1));
    CHECK(type == CU_MEMORYTYPE_DEVICE && id[3] == id[2] && start == d && size == 4000);
    CODE(500, cu.cuMemGetAddressRange_v2(&start, &size, b));
    OK(cu.cuMemFree_v2(d));
    OK(cu.cuMemFree_v2(c));

    CHECK(cu.policy("never") == 0);
    OK(cu.cuMemAlloc_v2(&a, 512));
    OK(cu.cuMemFree_v2(a));
    OK(cu.cuMemAlloc_v2(&b, 512));
    CHECK(b != a);
    OK(cu.cuMemFree_v2(b));
    CHECK(cu.policy("reuse") == 0 && cu.policy("odd") == -1);

    cu.set_memory(1 << 20);
    CODE(2, cu.cuMemAlloc_v2(&a, 2 << 20));
    cu.set_memory(1ull << 34);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Work that is not done before the test says so, however slow or busy the machine is. A call that waits for it shows as late. */
static atomic_int gate_open, gate_late;

static void wait_at_gate(void *unused)
{
    double until = seconds() + 10;

    (void)unused;
    while (!gate_open && seconds() < until)
        nanosleep(&(struct timespec){0, 200000}, NULL);
    gate_late |= !gate_open;
}

static void hold(CUstream s)
{
    gate_open = gate_late = 0;
    OK(cu.cuLaunchHostFunc(s, wait_at_gate, NULL));
}

static void let_go(void)
{
    gate_open = 1;
    CHECK(!gate_late);
}

static void streams(void)
{
    CUstream a = stream(CU_STREAM_NON_BLOCKING), b = stream(0);
    CUdeviceptr p = memory(4), q = memory(4);
    CUevent e, f;
    float ms = 0;

    CODE(1, cu.cuStreamCreate(&(CUstream){0}, 2));
    OK(cu.cuEventCreate(&e, 0));
    OK(cu.cuEventCreate(&f, 0));
    OK(cu.cuEventQuery(e));
    CODE(400, cu.cuEventElapsedTime(&ms, e, f));

    /* Deferred: the call returns before the work is done. */
    double t = seconds();
    OK(cu.cuEventRecord(e, a));
    hold(a);
    OK(launch_spin(50000000, a));
    OK(launch_inc(p, 1, a));
    OK(cu.cuEventRecord(f, a));
    CODE(600, cu.cuStreamQuery(a));
    CODE(600, cu.cuEventQuery(f));
    OK(cu.cuStreamWaitEvent(b, f, 0));
    OK(launch_inc(p, 2, b));
    let_go();
    OK(cu.cuStreamSynchronize(b));
    CHECK(value(p) == 3 && seconds() - t >= 0.05);
    OK(cu.cuEventElapsedTime(&ms, e, f));
    CHECK(ms >= 49 && ms <= 1e3 * (seconds() - t));

    /* The legacy stream comes after the blocking streams and before what follows in them; it ignores the others. */
    OK(launch_spin(30000000, b));
    OK(launch_inc(p, 1, b));
    CHECK(value(p) == 4);
    hold(a);
    CHECK(value(p) == 4);
    CODE(600, cu.cuStreamQuery(a));
    let_go();
    OK(cu.cuStreamSynchronize(a));
    hold(NULL);
    OK(launch_spin(20000000, NULL));
    OK(launch_inc(p, 1, NULL));
    OK(cu.cuMemcpyDtoDAsync_v2(q, p, 4, b));
    CODE(600, cu.cuStreamQuery(NULL));
    CODE(600, cu.cuStreamQuery(b));
    let_go();
    OK(cu.cuStreamSynchronize(b));
    CHECK(value(q) == 5);
    OK(cu.cuCtxSynchronize());
    OK(cu.cuStreamQuery(a));

    /* Destroyed with work in it: the work is done. */
    OK(launch_spin(20000000, a));
    OK(launch_inc(p, 1, a));
    OK(cu.cuStreamDestroy_v2(a));
    CODE(400, cu.cuStreamDestroy_v2(a));
    CODE(400, cu.cuStreamDestroy_v2(NULL));
    OK(cu.cuCtxSynchronize());
    CHECK(value(p) == 6);
    OK(cu.cuStreamDestroy_v2(b));
    OK(cu.cuEventDestroy_v2(e));
    OK(cu.cuEventDestroy_v2(f));
    OK(cu.cuMemFree_v2(p));
    OK(cu.cuMemFree_v2(q));
}

static int host_result;

static void host_function(void *data)
{
    CUdeviceptr p;

    host_result = *(int *)data;
    CODE(800, cu.cuMemAlloc_v2(&p, 64));
    OK(cu.cuDriverGetVersion(&(int){0}));
}

static void copies(void)
{
    CUstream s = stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = memory(256), q = memory(256);
    float in[4] = {1, 2, 3, 4}, out[4] = {0}, *pinned;
    int seven = 7;

    /* Pageable memory is read during the call, page-locked memory when the copy runs. */
    hold(s);
    OK(cu.cuMemcpyHtoDAsync_v2(p, in, sizeof in, s));
    in[0] = 99;
    let_go();
    OK(cu.cuMemcpyDtoDAsync_v2(q, p, sizeof in, s));
    OK(cu.cuMemcpyDtoHAsync_v2(out, q, sizeof out, s));
    CHECK(out[0] == 1 && out[3] == 4);
    OK(cu.cuMemHostAlloc((void **)&pinned, 64, 0));
    pinned[0] = 5;
    hold(s);
    OK(cu.cuMemcpyHtoDAsync_v2(p, pinned, 4, s));
    pinned[0] = 6;
    let_go();
    OK(cu.cuLaunchHostFunc(s, host_function, &seven));
    OK(cu.cuStreamSynchronize(s));
    CHECK(value(p) == 6 && host_result == 7);
    OK(cu.cuMemFreeHost(pinned));

    OK(cu.cuMemsetD32_v2(p, 0x3f800000, 4));
    CHECK(value(p + 12) == 1);
    OK(cu.cuMemsetD2D8_v2(p, 64, 0, 4, 2));
    CHECK(value(p) == 0 && value(p + 4) == 1);
    CODE(1, cu.cuMemcpyDtoD_v2(p, q, 257));
    CODE(1, cu.cuMemcpyHtoD_v2(0, in, 4));

    /* All rows lie within the plane. */
    CUDA_MEMCPY3D planes = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = q, .srcPitch = 8, .srcHeight = 3, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = p, .dstPitch = 12, .dstHeight = 3, .dstY = 1, .WidthInBytes = 4, .Height = 2, .Depth = 1};
    OK(cu.cuMemcpy3DAsync_v2(&planes, s));
    planes.dstHeight = 2;
    CODE(1, cu.cuMemcpy3DAsync_v2(&planes, s));
    planes.Height = 1;
    OK(cu.cuMemcpy3DAsync_v2(&planes, s));
    OK(cu.cuStreamSynchronize(s));
    OK(cu.cuMemcpyHtoD_v2(p, in, 0));

    /* Stream-ordered memory. */
    CUdeviceptr a, b;
    OK(cu.cuMemAllocAsync(&a, 4096, s));
    OK(launch_inc(a, 1, s));
    OK(cu.cuMemFreeAsync(a, s));
    OK(cu.cuMemAllocAsync(&b, 4096, s));
    CHECK(b == a);
    OK(cu.cuMemFreeAsync(b, s));
    OK(cu.cuStreamSynchronize(s));
    CODE(1, cu.cuMemFreeAsync(b, s));
    OK(cu.cuMemFree_v2(p));
    OK(cu.cuMemFree_v2(q));
    OK(cu.cuStreamDestroy_v2(s));
}

static void modules(void)
{
    CUmodule m;
    CUlibrary l;
    CUkernel k;
    CUfunction f;
    size_t offset = 5, size = 5;
    const char *name;
    CUdeviceptr p = memory(4096), n = memory(8);
    char *text = ptx();

    CODE(200, cu.cuModuleLoadData(&m, "\177ELF..."));
    CODE(218, cu.cuModuleLoadData(&m, ".version 8.0 .entry"));
    CODE(500, cu.cuModuleGetFunction(&f, module, "nobody"));
    CODE(500, cu.cuModuleGetFunction(&f, module, "bodiless"));
    OK(cu.cuFuncGetParamInfo(function("inc"), 1, &offset, &size));
    CHECK(offset == 8 && size == 4);
    CODE(1, cu.cuFuncGetParamInfo(function("inc"), 2, &offset, &size));
    CODE(1, cu.cuFuncGetParamInfo(function("inc"), (size_t)-1, &offset, &size));
    CHECK(offset == 8 && size == 4);
    OK(cu.cuFuncGetParamInfo(function("wide"), 0, &offset, &size));
    CHECK(offset == 48 && size == 128);
    OK(cu.cuFuncGetParamInfo(function("wide"), 1, &offset, &size));
    CHECK(offset == 176 && size == 8);
    OK(cu.cuFuncGetParamInfo(function("packed"), 0, &offset, NULL));
    CHECK(offset == 0);
    OK(cu.cuFuncGetParamInfo(function("packed"), 1, &offset, &size));
    CHECK(offset == 24 && size == 8);

    OK(cu.cuLibraryLoadData(&l, text, NULL, NULL, 0, NULL, NULL, 0));
    free(text);
    OK(cu.cuLibraryGetKernel(&k, l, "addn"));
    OK(cu.cuKernelGetName(&name, k));
    CHECK(strcmp(name, "addn") == 0);
    CODE(400, cu.cuFuncGetParamInfo((CUfunction)(void *)k, 0, &offset, &size));
    OK(cu.cuKernelGetParamInfo(k, 2, &offset, &size));
    CHECK(offset == 12 && size == 4);
    float v = 2;
    int count = 1000;
    void *args[] = {&p, &v, &count};
    OK(cu.cuLaunchKernel((CUfunction)(void *)k, 4, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
    CHECK(value(p) == 2 && value(p + 999 * 4) == 2 && value(p + 1000 * 4) == 0);
    OK(cu.cuLibraryUnload(l));

    double doubles[16] = {[15] = 42};
    void *wide[] = {doubles, &p};
    OK(cu.cuLaunchKernel(function("wide"), 1, 1, 1, 1, 1, 1, 0, NULL, wide, NULL));
    CHECK(value(p) == 42);

    /* The `extra` form; too few bytes pass, too many do not. */
    struct {
        CUdeviceptr p;
        float v;
    } buffer = {p, 8};
    size_t bytes = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    OK(cu.cuLaunchKernel(function("inc"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    CHECK(value(p) == 50);
    bytes = 13;
    CODE(701, cu.cuLaunchKernel(function("inc"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    CODE(1, cu.cuLaunchKernel(function("inc"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CODE(400, cu.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CODE(1, cu.cuLaunchKernel(function("nop"), 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL));

    void *counter[] = {&n};
    unsigned long long total;
    OK(cu.cuLaunchKernel(function("count"), 3, 4, 5, 8, 4, 2, 0, NULL, counter, NULL));
    OK(cu.cuMemcpyDtoH_v2(&total, n, 8));
    CHECK(total == 3 * 4 * 5 * 8 * 4 * 2);
    OK(cu.cuMemFree_v2(p));
    OK(cu.cuMemFree_v2(n));
}

/* Last: the context is of no use afterwards. */
static void fault(void)
{
    CUstream s = stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = memory(4096);
    CUstreamCaptureStatus status;

    OK(cu.cuMemFree_v2(p));
    OK(launch_inc(p, 1, s));
    CODE(700, cu.cuStreamSynchronize(s));
    CODE(700, cu.cuMemAlloc_v2(&p, 64));
    CODE(700, cu.cuStreamIsCapturing(s, &status));
    OK(cu.cuCtxSetCurrent(ctx));
}

int main(void)
{
    setenv("CUSIM_KERNELS", CUSIM_PACK_FILE, 1);
    load();
    before_init();
    start();
    lookups();
    errors();
    contexts();
    addresses();
    streams();
    copies();
    modules();
    fault();
    return finish();
}
