/* Reading graphs, and handles that are none. */
#include "conformance.h"

static CUstream s;
static CUdeviceptr d;

static float argument(CUgraphNode n)
{
    CUDA_KERNEL_NODE_PARAMS k;

    memset(&k, 0, sizeof k);
    MUST(GraphKernelNodeGetParams, n, &k);
    return *(float *)k.kernelParams[1];
}

enum { ROUNDS = 100, ALL = 600 };

/* A fork now and then, so that order is not a matter of course. Returns the number of launches, their arguments in order. */
static size_t forked_step(CUstream s2, CUevent out, CUevent back, float *order)
{
    size_t n = 0;

    for (int i = 0; i < ROUNDS; i++) {
        MUST_LAUNCH(launch_inc(d, (float)i, s));
        order[n++] = (float)i;
        if (i % 7 != 3)
            continue;
        MUST(EventRecord, out, s);
        MUST(StreamWaitEvent, s2, out, 0);
        MUST_LAUNCH(launch_inc(d, 1000.0f + (float)i, s2));
        order[n++] = 1000.0f + (float)i;
        MUST_LAUNCH(launch_inc(d, 2000.0f + (float)i, s));
        order[n++] = 2000.0f + (float)i;
        MUST(EventRecord, back, s2);
        MUST(StreamWaitEvent, s, back, 0);
    }
    return n;
}

static void node_order(int unused)
{
    CUstream s2 = stream_nb();
    CUevent out = event_new(), back = event_new();
    float order[ALL];
    CUgraphNode nodes[ALL], clones[ALL];
    CUgraph g[2], clone = NULL;
    size_t n = 0, k;
    CUgraphNode found = NULL;

    (void)unused;
    s = stream_nb();
    d = device_new(64);
    fact("graph.order.of_the_calls");
    for (int c = 0; c < 2; c++) {
        bool same = true;

        must_begin(s, GLOBAL);
        n = forked_step(s2, out, back, order);
        g[c] = must_end(s);
        equal((long long)node_count(g[c]), (long long)n, "nodes");
        k = ALL;
        MUST(GraphGetNodes, g[c], nodes, &k);
        for (size_t i = 0; i < n && i < k; i++)
            same = same && argument(nodes[i]) == order[i];
        yes(same, "capture %d lists them in the order of the calls", c + 1);
    }
    fact("graph.order.of_a_clone");
    code(CU(GraphClone)(&clone, g[1]), 0, "cuGraphClone");
    k = ALL;
    MUST(GraphGetNodes, clone, clones, &k);
    {
        bool same = k == n, own = true;

        for (size_t i = 0; i < n && same; i++) {
            same = argument(clones[i]) == order[i];
            own = own && clones[i] != nodes[i];
        }
        yes(same, "the same order");
        yes(own, "handles of its own");
    }
    fact("graph.order.find_in_clone");
    code(CU(GraphNodeFindInClone)(&found, nodes[5], clone), 0, "cuGraphNodeFindInClone");
    yes(found == clones[5], "node 5 is node 5");
}

static void get_nodes(int unused)
{
    CUgraphNode a[8];
    CUgraph g, empty;
    size_t n;

    (void)unused;
    s = stream_nb();
    must_begin(s, GLOBAL);
    for (int i = 0; i < 4; i++)
        MUST_LAUNCH(launch_nop(s));
    g = must_end(s);
    must_begin(s, GLOBAL);
    empty = must_end(s);
    fact("graph.get_nodes.smaller");
    n = 2;
    code(CU(GraphGetNodes)(g, a, &n), 0, "cuGraphGetNodes(array of 2, 4 nodes)");
    yes(a[0] == node_at(g, 0) && a[1] == node_at(g, 1), "the first two");
    fact("graph.get_nodes.larger");
    memset(a, 0xee, sizeof a);
    n = 8;
    code(CU(GraphGetNodes)(g, a, &n), 0, "cuGraphGetNodes(array of 8, 4 nodes)");
    equal((long long)n, 4, "n");
    yes(a[4] == NULL && a[7] == NULL, "the rest NULL");
    fact("graph.get_nodes.array_of_0");
    n = 0;
    code(CU(GraphGetNodes)(g, a, &n), 1, "cuGraphGetNodes(array, n = 0)");
    n = 0;
    code(CU(GraphGetNodes)(empty, a, &n), 1, "empty graph");
    fact("graph.get_nodes.null_count");
    code(CU(GraphGetNodes)(g, a, NULL), 1, "cuGraphGetNodes(count NULL)");
    fact("graph.get_nodes.empty");
    n = 5;
    code(CU(GraphGetNodes)(empty, NULL, &n), 0, "count of an empty graph");
    equal((long long)n, 0, "n");
}

static void wrong_type(int unused)
{
    CUgraphNode set, kern;
    CUDA_KERNEL_NODE_PARAMS k;
    CUDA_MEMCPY3D c;
    CUDA_MEMSET_NODE_PARAMS m;
    CUDA_HOST_NODE_PARAMS h;
    CUDA_MEM_ALLOC_NODE_PARAMS a;
    CUdeviceptr p;
    CUevent e;

    (void)unused;
    s = stream_nb();
    d = device_new(64);
    must_begin(s, GLOBAL);
    MUST(MemsetD8Async, d, 0, 4, s);
    set = node_at(must_end(s), 0);
    kern = node_at(nop_graph(s), 0);
    code(CU(GraphMemsetNodeGetParams)(set, &m), 0, "memset node: memset");
    code(CU(GraphKernelNodeGetParams)(set, &k), 1, "kernel");
    code(CU(GraphMemcpyNodeGetParams)(set, &c), 1, "memcpy");
    code(CU(GraphHostNodeGetParams)(set, &h), 1, "host");
    code(CU(GraphEventRecordNodeGetEvent)(set, &e), 1, "event record");
    code(CU(GraphMemAllocNodeGetParams)(set, &a), 1, "alloc");
    code(CU(GraphMemFreeNodeGetParams)(set, &p), 1, "free");
    code(CU(GraphMemsetNodeGetParams)(kern, &m), 1, "kernel node: memset");
    code(CU(GraphMemcpyNodeGetParams)(kern, &c), 1, "memcpy");
}

static void priority(int unused)
{
    CUlaunchAttributeValue v;
    CUstream high = NULL;
    int least = 0, greatest = 0;

    (void)unused;
    MUST(CtxGetStreamPriorityRange, &least, &greatest);
    MUST(StreamCreateWithPriority, &high, CU_STREAM_NON_BLOCKING, greatest);
    must_begin(high, GLOBAL);
    MUST_LAUNCH(launch_nop(high));
    memset(&v, 0, sizeof v);
    code(CU(GraphKernelNodeGetAttribute)(node_at(must_end(high), 0), CU_LAUNCH_ATTRIBUTE_PRIORITY, &v), 0,
         "cuGraphKernelNodeGetAttribute(PRIORITY)");
    equal(v.priority, greatest, "the stream's priority");
}

static void null_handles(int unused)
{
    CUgraph g;
    CUgraphExec x, y = NULL;
    CUgraphExecUpdateResultInfo info;
    CUgraphNodeType type;
    CUDA_KERNEL_NODE_PARAMS k;
    CUdeviceptr p;
    size_t n = 0;

    (void)unused;
    s = stream_nb();
    g = nop_graph(s);
    x = must_instantiate(g);
    fact("handle.null.graph");
    code(CU(GraphLaunch)(NULL, s), 1, "cuGraphLaunch(NULL)");
    code(CU(GraphUpload)(NULL, s), 1, "cuGraphUpload(NULL)");
    code(CU(GraphExecDestroy)(NULL), 1, "cuGraphExecDestroy(NULL)");
    code(CU(GraphDestroy)(NULL), 1, "cuGraphDestroy(NULL)");
    code(CU(GraphInstantiateWithFlags)(&y, NULL, 0), 1, "instantiate NULL");
    code(CU(GraphInstantiateWithFlags)(NULL, g, 0), 1, "instantiate into NULL");
    code(CU(GraphGetNodes)(NULL, NULL, &n), 1, "cuGraphGetNodes(NULL)");
    code(CU(GraphNodeGetType)(NULL, &type), 1, "cuGraphNodeGetType(NULL)");
    code(CU(GraphKernelNodeGetParams)(NULL, &k), 1, "cuGraphKernelNodeGetParams(NULL)");
    code(CU(GraphExecUpdate)(NULL, g, &info), 1, "cuGraphExecUpdate(NULL exec)");
    code(CU(GraphExecUpdate)(x, NULL, &info), 1, "cuGraphExecUpdate(NULL graph)");
    fact("handle.null.event_and_stream");
    code(CU(EventDestroy)(NULL), 400, "cuEventDestroy(NULL)");
    code(CU(StreamDestroy)(NULL), 400, "cuStreamDestroy(NULL)");
    code(CU(StreamDestroy)(CU_STREAM_LEGACY), 400, "cuStreamDestroy(CU_STREAM_LEGACY)");

    fact("handle.memory");
    code(CU(MemFree)(0), 0, "cuMemFree(0)");
    code(CU(MemFreeAsync)(0, s), 0, "cuMemFreeAsync(0)");
    code(CU(MemAlloc)(&p, 0), 1, "cuMemAlloc(0 bytes)");
    code(CU(MemFree)(0x1234), 1, "cuMemFree(bad)");
    p = device_new(64);
    code(CU(MemFree)(p + 4), 1, "cuMemFree(interior)");
    code(CU(MemFree)(p), 0, "cuMemFree");
    code(CU(MemFree)(p), 1, "again");
    fact("handle.memory.crosswise");
    p = device_new(64);
    code(CU(MemFreeAsync)(p, s), 0, "cuMemFreeAsync(cuMemAlloc memory)");
    MUST(MemAllocAsync, &p, 64, s);
    code(CU(MemFree)(p), 0, "cuMemFree(pool memory)");
}

static void instantiate(int unused)
{
    CUgraph g, h = NULL;
    CUgraphExec x = NULL;
    CUgraphNode a, b;
    CUDA_KERNEL_NODE_PARAMS k;
    CUDA_GRAPH_INSTANTIATE_PARAMS p;

    (void)unused;
    s = stream_nb();
    g = nop_graph(s);
    fact("graph.instantiate.flags");
    code(CU(GraphInstantiateWithFlags)(&x, g, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD), 1, "UPLOAD through WithFlags");
    code(CU(GraphInstantiateWithFlags)(&x, g, 1u << 20), 1, "an unknown flag");
    code(CU(GraphInstantiateWithFlags)(
             &x, g, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH),
         1, "DEVICE_LAUNCH with AUTO_FREE");

    memset(&k, 0, sizeof k);
    k.func = kernel("nop");
    k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
    MUST(GraphCreate, &h, 0);
    MUST(GraphAddKernelNode, &a, h, NULL, 0, &k);
    MUST(GraphAddKernelNode, &b, h, &a, 1, &k);
    fact("graph.duplicate_edge");
    code(CU(GraphAddDependencies)(h, &a, &b, NULL, 1), 1, "cuGraphAddDependencies");
    fact("graph.cycle");
    code(CU(GraphAddDependencies)(h, &b, &a, NULL, 1), 0, "cuGraphAddDependencies making a cycle");
    memset(&p, 0, sizeof p);
    code(CU(GraphInstantiateWithParams)(&x, h, &p), 1, "cuGraphInstantiateWithParams");
    equal((int)p.result_out, 2, "result");
    yes(p.hErrNode_out != NULL, "the node is named");
}

static void device_launch(int unused)
{
    CUgraph g;
    CUgraphExec x = NULL;

    (void)unused;
    s = stream_nb();
    g = nop_graph(s);
    code(CU(GraphInstantiateWithFlags)(&x, g, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH), 0, "instantiate DEVICE_LAUNCH");
}

/* Wrong calls outside of a capture, told without an expectation. */
static void eager_errors(int unused)
{
    CUdeviceptr p = device_new(64);

    (void)unused;
    s = stream_nb();
    code(CU(LaunchKernel)(kernel("nop"), 0, 1, 1, 1, 1, 1, 0, s, NULL, NULL), ANY, "grid 0");
    code(CU(LaunchKernel)(kernel("nop"), 1, 1, 1, 4096, 1, 1, 0, s, NULL, NULL), ANY, "4,096 threads");
    code(CU(LaunchKernel)(kernel("nop"), 1, 1, 1, 1, 1, 1, 1u << 20, s, NULL, NULL), ANY, "1 MiB of shared memory");
    code(CU(LaunchKernel)(NULL, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL), ANY, "NULL function");
    code(CU(MemcpyDtoDAsync)(0x10, 0x20, 64, s), ANY, "copy of bad addresses");
    code(CU(MemcpyDtoDAsync)(p, p + 64, 1u << 20, s), ANY, "copy past the end");
    code(CU(MemsetD8Async)(0x10, 0, 4, s), ANY, "set of a bad address");
    code(CU(LaunchHostFunc)(s, NULL, NULL), ANY, "NULL host function");
}

const struct job graph_jobs[] = {
    {.id = "graph.order", .run = node_order},
    {.id = "graph.get_nodes", .run = get_nodes},
    {.id = "graph.wrong_type", .run = wrong_type},
    {.id = "graph.priority", .run = priority},
    {.id = "graph", .run = instantiate},
    {.id = "graph.device_launch", .run = device_launch},
    {.id = "graph.eager_errors", .run = eager_errors},
    {.id = "handle", .run = null_handles},
    {.id = NULL},
};
