/* Graphs: capture, replay, read back, update, memory nodes. */
#include "test.h"

#include <time.h>

static CUstream s;
static CUdeviceptr p, q;

static CUgraphExec instantiate(CUgraph g)
{
    CUgraphExec x = NULL;

    OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
    return x;
}

static void run(CUgraphExec x)
{
    OK(cu.cuGraphLaunch(x, s));
    OK(cu.cuStreamSynchronize(s));
}

static void begin(void)
{
    OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static CUgraph end(void)
{
    CUgraph g = NULL;

    OK(cu.cuStreamEndCapture(s, &g));
    return g;
}

static void set(CUdeviceptr at, float v)
{
    OK(cu.cuMemcpyHtoD_v2(at, &v, 4));
}

static CUgraph one_inc(CUdeviceptr at, float v)
{
    begin();
    OK(launch_inc(at, v, s));
    return end();
}

/* Argument bytes are those of the call; replays run them again, an exec is independent of its graph. */
static void replay(void)
{
    CUDA_KERNEL_NODE_PARAMS k;
    CUgraphNode n;
    size_t count = 1;
    CUgraph g = one_inc(p, 2);

    set(p, 0);
    CHECK(value(p) == 0);
    CUgraphExec x = instantiate(g);
    run(x);
    run(x);
    CHECK(value(p) == 4);

    OK(cu.cuGraphGetNodes(g, &n, &count));
    OK(cu.cuGraphKernelNodeGetParams_v2(n, &k));
    CHECK(k.func == function("inc") && k.kern == NULL && k.ctx == ctx && k.extra == NULL && k.gridDimX == 1);
    CHECK(*(CUdeviceptr *)k.kernelParams[0] == p && *(float *)k.kernelParams[1] == 2);

    /* One node of the exec; what is queued keeps its arguments; the graph keeps its own. */
    float five = 5;
    void *args[] = {&p, &five};
    OK(launch_spin(20000000, s));
    OK(cu.cuGraphLaunch(x, s));
    k.kernelParams = args;
    OK(cu.cuGraphExecKernelNodeSetParams_v2(x, n, &k));
    OK(cu.cuGraphLaunch(x, s));
    OK(cu.cuStreamSynchronize(s));
    CHECK(value(p) == 11);
    OK(cu.cuGraphKernelNodeGetParams_v2(n, &k));
    CHECK(*(float *)k.kernelParams[1] == 2);
    OK(cu.cuGraphNodeSetEnabled(x, n, 0));
    run(x);
    CHECK(value(p) == 11);
    OK(cu.cuGraphNodeSetEnabled(x, n, 3));

    /* The whole of it. */
    CUgraph other = one_inc(q, 1);
    CUgraphExecUpdateResultInfo info;
    OK(cu.cuGraphExecUpdate_v2(x, other, &info));
    CHECK(info.result == 0);
    set(q, 0);
    run(x);
    CHECK(value(p) == 11 && value(q) == 1);
    begin();
    OK(cu.cuMemsetD32Async(q, 7, 1, s));
    CUgraph wrong = end();
    size_t one = 1;
    CUgraphNode bad;
    OK(cu.cuGraphGetNodes(wrong, &bad, &one));
    CODE(910, cu.cuGraphExecUpdate_v2(x, wrong, &info));
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode == bad && info.errorFromNode == NULL);
    run(x);
    CHECK(value(q) == 2);

    /* Destroyed in flight. */
    OK(launch_spin(20000000, s));
    OK(cu.cuGraphLaunch(x, s));
    OK(cu.cuGraphDestroy(g));
    OK(cu.cuGraphExecDestroy(x));
    CODE(1, cu.cuGraphLaunch(x, s));
    OK(cu.cuStreamSynchronize(s));
    CHECK(value(q) == 3);
    OK(cu.cuGraphDestroy(other));
    OK(cu.cuGraphDestroy(wrong));
}

static void read_back(void)
{
    struct {
        CUdeviceptr p;
        float v;
    } buffer = {p, 1};
    size_t bytes = 12, n = 3, big = 5;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CUgraphNode nodes[5];
    CUDA_KERNEL_NODE_PARAMS k;
    CUDA_MEMCPY3D c;
    CUDA_MEMSET_NODE_PARAMS m;
    float host[2] = {0};

    begin();
    OK(cu.cuLaunchKernel(function("inc"), 1, 1, 1, 1, 1, 1, 0, s, NULL, extra));
    OK(cu.cuMemcpyAsync(q, (CUdeviceptr)(uintptr_t)host, 8, s));
    OK(cu.cuMemsetD16Async(q, 3, 5, s));
    OK(cu.cuMemcpyDtoDAsync_v2(p, q, 0, s));
    CUgraph g = end();
    CODE(1, cu.cuGraphGetNodes(g, nodes, &(size_t){0}));
    OK(cu.cuGraphGetNodes(g, nodes, &n));
    CHECK(n == 3);
    OK(cu.cuGraphGetNodes(g, nodes, &big));
    CHECK(big == 3 && nodes[4] == NULL);
    OK(cu.cuGraphKernelNodeGetParams_v2(nodes[0], &k));
    CHECK(k.kernelParams == NULL && k.extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && *(size_t *)k.extra[1] == 12 &&
          k.extra[2] == CU_LAUNCH_PARAM_BUFFER_POINTER && memcmp(k.extra[3], &buffer, 12) == 0 && k.extra[4] == NULL);
    OK(cu.cuGraphMemcpyNodeGetParams(nodes[1], &c));
    CHECK(c.srcMemoryType == CU_MEMORYTYPE_UNIFIED && c.dstMemoryType == CU_MEMORYTYPE_UNIFIED);
    CHECK(c.srcDevice == (CUdeviceptr)(uintptr_t)host && c.dstDevice == q && c.WidthInBytes == 8 && c.Height == 1 &&
          c.srcPitch == 0);
    OK(cu.cuGraphMemsetNodeGetParams(nodes[2], &m));
    CHECK(m.dst == q && m.elementSize == 2 && m.value == 3 && m.width == 5 && m.height == 1 && m.pitch == 0);
    CODE(1, cu.cuGraphMemsetNodeGetParams(nodes[1], &m));

    /* A pageable source is read anew inside each launch. */
    CUgraphExec x = instantiate(g);
    CUdeviceptr at = q + 4;
    host[1] = 1;
    OK(cu.cuGraphDestroyNode(nodes[2]));
    CUgraphExec y = instantiate(g);
    OK(launch_spin(20000000, s));
    OK(cu.cuGraphLaunch(y, s));
    host[1] = 2;
    OK(cu.cuStreamSynchronize(s));
    CHECK(value(at) == 1);
    run(y);
    CHECK(value(at) == 2);
    OK(cu.cuGraphExecDestroy(x));
    OK(cu.cuGraphExecDestroy(y));
    OK(cu.cuGraphDestroy(g));
}

static void built_by_hand(void)
{
    float three = 3;
    void *args[] = {&p, &three};
    CUDA_KERNEL_NODE_PARAMS k = {function("inc"), 1, 1, 1, 1, 1, 1, 0, args, NULL, NULL, NULL};
    CUgraphInstantiateResult result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0, NULL, NULL, result};
    CUgraphNode a, b, c, found;
    CUgraph g, child, clone, inside, other;
    CUgraphExec x;

    OK(cu.cuGraphCreate(&child, 0));
    OK(cu.cuGraphAddKernelNode_v2(&a, child, NULL, 0, &k));
    OK(cu.cuGraphCreate(&g, 0));
    OK(cu.cuGraphAddChildGraphNode(&a, g, NULL, 0, child));
    OK(cu.cuGraphAddEmptyNode(&b, g, &a, 1));
    OK(cu.cuGraphAddKernelNode_v2(&c, g, &b, 1, &k));
    CODE(1, cu.cuGraphAddDependencies(g, &a, &b, 1));
    OK(cu.cuGraphChildGraphNodeGetGraph(a, &inside));
    OK(cu.cuGraphCreate(&other, 0));
    CODE(801, cu.cuGraphAddChildGraphNode(&found, other, NULL, 0, inside)); /* It belongs to its node. */
    OK(cu.cuGraphDestroy(other));
    set(p, 0);
    OK(cu.cuGraphClone(&clone, g));
    OK(cu.cuGraphNodeFindInClone(&found, c, clone));
    CHECK(found != c);
    x = instantiate(clone);
    run(x);
    CHECK(value(p) == 6);
    CODE(1, cu.cuGraphExecKernelNodeSetParams_v2(x, c, &k));
    OK(cu.cuGraphExecKernelNodeSetParams_v2(x, found, &k));
    OK(cu.cuGraphExecDestroy(x));
    OK(cu.cuGraphAddDependencies(g, &c, &a, 1));
    CODE(1, cu.cuGraphInstantiateWithParams(&x, g, &params));
    CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE && params.hErrNode_out != NULL);
    OK(cu.cuGraphDestroy(g));
    OK(cu.cuGraphDestroy(child));
    OK(cu.cuGraphDestroy(clone));
}

static int destroyed;

static void destructor(void *data)
{
    CUdeviceptr at;

    CODE(800, cu.cuMemAlloc_v2(&at, 64));
    destroyed += *(int *)data;
}

static void memory_nodes(void)
{
    CUdeviceptr a;
    CUgraphExec x, y;
    CUuserObject o;
    unsigned long long id;
    cuuint64_t used;
    int one = 1;

    OK(cu.cuDeviceGraphMemTrim(0));
    begin();
    OK(cu.cuMemAllocAsync(&a, 4 << 20, s));
    OK(cu.cuMemsetD32Async(a, 0x3f800000, 16, s));
    CUgraph g = end();
    CODE(1, cu.cuUserObjectCreate(&o, &one, destructor, 1, 0));
    OK(cu.cuUserObjectCreate(&o, &one, destructor, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cu.cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
    x = instantiate(g);
    CODE(801, cu.cuGraphInstantiateWithFlags(&y, g, 0));
    CODE(801, cu.cuGraphClone(&(CUgraph){0}, g));
    CODE(1, cu.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
    CODE(1, cu.cuMemFreeAsync(a, s));
    run(x);
    OK(cu.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
    CHECK(value(a + 4) == 1);
    OK(cu.cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    CHECK(used == 32 << 20);
    CODE(1, cu.cuGraphLaunch(x, s));
    OK(cu.cuMemFreeAsync(a, s));
    run(x);
    OK(cu.cuGraphDestroy(g));
    CHECK(destroyed == 0);
    OK(cu.cuGraphExecDestroy(x));
    CHECK(destroyed == 1);
    CHECK(value(a) == 1);
    OK(cu.cuMemFreeAsync(a, s));
    CODE(1, cu.cuMemFreeAsync(a, s));
    OK(cu.cuStreamSynchronize(s));
    OK(cu.cuDeviceGraphMemTrim(0));
    OK(cu.cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    CHECK(used == 0);

    /* A pair: launched as often as one likes. */
    begin();
    OK(cu.cuMemAllocAsync(&a, 4096, s));
    OK(launch_inc(a, 1, s));
    OK(cu.cuMemFreeAsync(a, s));
    CODE(1, cu.cuMemFreeAsync(a, s));
    g = end();
    x = instantiate(g);
    OK(cu.cuGraphLaunch(x, s));
    run(x);
    OK(cu.cuGraphExecDestroy(x));
    OK(cu.cuGraphDestroy(g));
}

static void events(void)
{
    CUevent a, b;
    float ms = 0;

    OK(cu.cuEventCreate(&a, 0));
    OK(cu.cuEventCreate(&b, 0));
    begin();
    OK(cu.cuEventRecordWithFlags(a, s, CU_EVENT_RECORD_EXTERNAL));
    OK(launch_spin(20000000, s));
    OK(cu.cuEventRecordWithFlags(b, s, CU_EVENT_RECORD_EXTERNAL));
    CUgraph g = end();
    CUgraphExec x = instantiate(g);
    OK(cu.cuGraphLaunch(x, s));
    CODE(600, cu.cuEventQuery(b));
    OK(cu.cuEventSynchronize(b));
    OK(cu.cuEventElapsedTime(&ms, a, b));
    CHECK(ms >= 19.9f && ms < 500);
    OK(cu.cuStreamSynchronize(s));
    OK(cu.cuGraphExecDestroy(x));
    OK(cu.cuGraphDestroy(g));
    OK(cu.cuEventDestroy_v2(a));
    OK(cu.cuEventDestroy_v2(b));
}

/* Launches of one executable graph come one after another, whatever the streams. */
static void serialised(void)
{
    CUstream other = stream(CU_STREAM_NON_BLOCKING);
    struct timespec t0, t1;

    begin();
    OK(launch_spin(30000000, s));
    CUgraph g = end();
    CUgraphExec x = instantiate(g);
    clock_gettime(CLOCK_MONOTONIC, &t0);
    OK(cu.cuGraphLaunch(x, s));
    OK(cu.cuGraphLaunch(x, other));
    OK(cu.cuStreamSynchronize(s));
    CODE(600, cu.cuStreamQuery(other));
    OK(cu.cuStreamSynchronize(other));
    clock_gettime(CLOCK_MONOTONIC, &t1);
    CHECK((double)(t1.tv_sec - t0.tv_sec) * 1e3 + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-6 >= 60);
    OK(cu.cuGraphExecDestroy(x));
    OK(cu.cuGraphDestroy(g));
    OK(cu.cuStreamDestroy_v2(other));
}

/* Last: a copy whose pinned operand is gone leaves the context in error. */
static void freed_operand(void)
{
    float *pinned;

    OK(cu.cuMemAllocHost_v2((void **)&pinned, 4096));
    begin();
    OK(cu.cuMemcpyHtoDAsync_v2(p, pinned, 4, s));
    CUgraph g = end();
    CUgraphExec x = instantiate(g);
    pinned[0] = 12;
    run(x);
    CHECK(value(p) == 12);
    OK(cu.cuMemFreeHost(pinned));
    CODE(700, cu.cuGraphLaunch(x, s));
    CODE(700, cu.cuStreamSynchronize(s));
    OK(cu.cuGraphExecDestroy(x));
    OK(cu.cuGraphDestroy(g));
}

int main(void)
{
    start();
    s = stream(CU_STREAM_NON_BLOCKING);
    p = memory(4096);
    q = memory(4096);
    replay();
    read_back();
    built_by_hand();
    memory_nodes();
    events();
    serialised();
    freed_operand();
    return finish();
}
