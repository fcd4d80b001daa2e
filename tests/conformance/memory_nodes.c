/* Allocations that a graph owns. */
#include "conformance.h"

enum { MIB = 1 << 20 };

static CUstream s;

static long long graph_mem(CUgraphMem_attribute which)
{
    cuuint64_t v = 0;

    MUST(DeviceGetGraphMemAttribute, env.device, which, &v);
    return (long long)v;
}

static CUgraph unpaired(CUdeviceptr *p, size_t bytes)
{
    must_begin(s, GLOBAL);
    MUST(MemAllocAsync, p, bytes, s);
    MUST_LAUNCH(launch_inc(*p, 1, s));
    return must_end(s);
}

static void restrictions(int unused)
{
    CUdeviceptr p = 0;
    CUgraph g, clone, parent = NULL;
    CUgraphExec x, y;
    CUgraphNode n0, n1, child;
    CUDA_MEM_ALLOC_NODE_PARAMS a;

    (void)unused;
    s = stream_nb();
    g = unpaired(&p, 4 * MIB);
    fact("memory.unpaired.instantiate");
    holds("graph", g, "kernel=1 mem_alloc=1");
    code(CU(GraphInstantiateWithFlags)(&x, g, 0), 0, "instantiate");
    code(CU(GraphInstantiateWithFlags)(&y, g, 0), 801, "a second time");
    fact("memory.unpaired.clone");
    code(CU(GraphClone)(&clone, g), 801, "cuGraphClone");
    fact("memory.unpaired.as_child");
    MUST(GraphCreate, &parent, 0);
    code(CU(GraphAddChildGraphNode)(&child, parent, NULL, 0, g), 801, "cuGraphAddChildGraphNode");
    fact("memory.unpaired.remove");
    n0 = node_at(g, 0);
    n1 = node_at(g, 1);
    code(CU(GraphDestroyNode)(n1), 801, "cuGraphDestroyNode of the kernel");
    code(CU(GraphRemoveDependencies)(g, &n0, &n1, NULL, 1), 801, "cuGraphRemoveDependencies");
    fact("memory.unpaired.params");
    memset(&a, 0, sizeof a);
    code(CU(GraphMemAllocNodeGetParams)(n0, &a), 0, "cuGraphMemAllocNodeGetParams");
    yes(a.dptr == p, "the address");
    equal((long long)a.bytesize, 4 * MIB, "bytes");
    equal((int)a.poolProps.location.type, CU_MEM_LOCATION_TYPE_DEVICE, "location");
}

static void relaunch(int unused)
{
    CUstream s2;
    CUdeviceptr p = 0;
    CUgraph g;
    CUgraphExec x, y;
    CUgraphExecUpdateResultInfo info;

    (void)unused;
    s = stream_nb();
    s2 = stream_nb();
    g = unpaired(&p, 4 * MIB);
    x = must_instantiate(g);
    fact("memory.relaunch.while_live");
    code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(GraphLaunch)(x, s), 1, "again");
    code(CU(StreamSynchronize)(s), 0, "sync");
    code(CU(GraphLaunch)(x, s), 1, "after the sync");
    code(CU(GraphLaunch)(x, s2), 1, "on another stream");

    fact("memory.relaunch.after_free_async");
    code(CU(MemFreeAsync)(p, s), 0, "cuMemFreeAsync");
    code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(GraphLaunch)(x, s), 1, "again");

    fact("memory.relaunch.after_free");
    code(CU(MemFree)(p), 0, "cuMemFree");
    code(CU(GraphLaunch)(x, s), 0, "launch");

    fact("memory.relaunch.upload_and_update_while_live");
    code(CU(GraphUpload)(x, s), 0, "cuGraphUpload while live");
    code(CU(StreamSynchronize)(s), 0, "sync");
    code(CU(GraphExecUpdate)(x, g, &info), 0, "cuGraphExecUpdate with its own graph");

    fact("memory.relaunch.new_exec");
    code(CU(GraphExecDestroy)(x), 0, "cuGraphExecDestroy with a live allocation");
    code(CU(GraphInstantiateWithFlags)(&y, g, 0), 0, "instantiate again");
    code(CU(GraphLaunch)(y, s), 1, "launch of the new exec");
    code(CU(MemFreeAsync)(p, s), 0, "cuMemFreeAsync");
    code(CU(GraphLaunch)(y, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");

    fact("memory.relaunch.free_twice");
    code(CU(MemFreeAsync)(p, s), 0, "cuMemFreeAsync");
    code(CU(MemFreeAsync)(p, s), 1, "again");
    code(CU(StreamSynchronize)(s), 0, "sync");
    code(CU(GraphExecDestroy)(y), 0, "cuGraphExecDestroy");
}

static void auto_free(int unused)
{
    CUdeviceptr p = 0;
    CUgraph g;
    CUgraphExec x = NULL;
    cuuint64_t flags = 0;

    (void)unused;
    s = stream_nb();
    g = unpaired(&p, 4 * MIB);
    fact("memory.auto_free.relaunch");
    code(CU(GraphInstantiateWithFlags)(&x, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH), 0, "instantiate AUTO_FREE");
    for (int i = 0; i < 3; i++)
        code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
    code(CU(GraphExecGetFlags)(x, &flags), 0, "cuGraphExecGetFlags");
    equal((long long)flags, 1, "flags");
    code(CU(MemFreeAsync)(p, s), 0, "cuMemFreeAsync");
    code(CU(GraphLaunch)(x, s), 0, "launch after an explicit free");
    code(CU(StreamSynchronize)(s), 0, "sync");

    fact("memory.auto_free.outlives_exec_and_graph");
    MUST_LAUNCH(launch_set(p, 7, s));
    sync_all();
    code(CU(GraphExecDestroy)(x), 0, "cuGraphExecDestroy");
    code(CU(GraphDestroy)(g), 0, "cuGraphDestroy");
    value(peek(p), 7, "the allocation still says");
    code(CU(MemFreeAsync)(p, s), 0, "cuMemFreeAsync");
    code(CU(MemFreeAsync)(p, s), 1, "again");
    code(CU(StreamSynchronize)(s), 0, "sync");
    code(CU(DeviceGraphMemTrim)(env.device), 0, "cuDeviceGraphMemTrim");
    equal(graph_mem(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0, "reserved");
}

static void accounting(int unused)
{
    CUdeviceptr p = 0;
    CUgraph g;
    CUgraphExec x;

    (void)unused;
    s = stream_nb();
    g = unpaired(&p, 4 * MIB);
    equal(graph_mem(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0, "captured: used");
    x = must_instantiate(g);
    equal(graph_mem(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0, "instantiated: used");
    must_run(x, s);
    equal(graph_mem(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 32 * MIB, "launched: used");
    equal(graph_mem(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 32 * MIB, "reserved");
    MUST(MemFreeAsync, p, s);
    MUST(StreamSynchronize, s);
    MUST(GraphExecDestroy, x);
    equal(graph_mem(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 32 * MIB, "freed: used");
    MUST(DeviceGraphMemTrim, env.device);
    equal(graph_mem(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0, "trimmed: used");
    equal(graph_mem(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0, "reserved");
}

static void before_launch(int unused)
{
    CUdeviceptr p = 0;
    CUgraph g;
    CUgraphExec x;

    (void)unused;
    s = stream_nb();
    fact("memory.before_launch.unknown");
    g = unpaired(&p, 4096);
    yes(buffer_id(p) == 0, "captured: no buffer id");
    x = must_instantiate(g);
    yes(buffer_id(p) == 0, "instantiated: no buffer id");
    fact("memory.before_launch.free");
    code(CU(MemFreeAsync)(p, s), 1, "cuMemFreeAsync");
    fact("memory.before_launch.known_once_launched");
    must_run(x, s);
    yes(buffer_id(p) != 0, "launched: a buffer id");
    MUST(MemFreeAsync, p, s);
    MUST(StreamSynchronize, s);
    yes(buffer_id(p) == 0, "freed: no buffer id");
}

static void before_launch_copy(int unused)
{
    CUdeviceptr p = 0;
    float v = 0;

    (void)unused;
    s = stream_nb();
    unpaired(&p, 4096);
    code(CU(MemcpyDtoH)(&v, p, sizeof v), 1, "cuMemcpyDtoH");
}

/* An eager kernel on memory that is not there yet: 700. */
static void before_launch_kernel(int unused)
{
    CUdeviceptr p = 0;

    (void)unused;
    s = stream_nb();
    must_instantiate(unpaired(&p, 4096));
    code(launch_inc(p, 1, s), 0, "eager launch on the address of an allocation never launched");
    code(CU(StreamSynchronize)(s), 700, "sync");
}

static CUgraph balanced(CUdeviceptr out, float v, size_t bytes, CUdeviceptr *first, CUdeviceptr *second)
{
    must_begin(s, GLOBAL);
    MUST(MemAllocAsync, first, bytes, s);
    MUST_LAUNCH(launch_set(*first, v, s));
    MUST_LAUNCH(launch_copy(out, *first, s));
    MUST(MemFreeAsync, *first, s);
    MUST(MemAllocAsync, second, MIB, s);
    MUST_LAUNCH(launch_set(*second, 4, s));
    MUST(MemFreeAsync, *second, s);
    return must_end(s);
}

static void paired(int unused)
{
    CUdeviceptr out, p = 0, q = 0, p2 = 0, q2 = 0;
    CUgraph g, g2;
    CUgraphExec x, y;
    CUgraphExecUpdateResultInfo info;

    (void)unused;
    s = stream_nb();
    out = device_new(64);
    g = balanced(out, 3, MIB, &p, &q);
    fact("memory.paired.share_an_address");
    holds("graph", g, "kernel=3 mem_alloc=2 mem_free=2");
    yes(p == q, "disjoint lifetimes have one address");
    fact("memory.paired.relaunch");
    x = must_instantiate(g);
    code(CU(GraphInstantiateWithFlags)(&y, g, 0), 801, "instantiate a second time");
    for (int i = 0; i < 3; i++)
        code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(out), 3, "computes");

    fact("memory.paired.second_capture_moves");
    g2 = balanced(out, 33, MIB, &p2, &q2);
    yes(p2 != p, "another capture of the step has another address");
    fact("memory.paired.update_from_second_capture");
    memset(&info, 0xee, sizeof info);
    code(CU(GraphExecUpdate)(x, g2, &info), 0, "cuGraphExecUpdate");
    equal((int)info.result, 0, "result");
    code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(out), 33, "computes");
    fact("memory.paired.update_to_another_size");
    g2 = balanced(out, 34, 2 * MIB, &p2, &q2);
    code(CU(GraphExecUpdate)(x, g2, &info), 0, "cuGraphExecUpdate from 1 to 2 MiB");
    equal((int)info.result, 0, "result");
}

static CUgraph one_pair(size_t bytes)
{
    CUdeviceptr p = 0;

    must_begin(s, GLOBAL);
    MUST(MemAllocAsync, &p, bytes, s);
    MUST(MemsetD8Async, p, 1, bytes, s);
    MUST(MemFreeAsync, p, s);
    return must_end(s);
}

static void much_larger(int unused)
{
    CUgraph g, h;
    CUgraphExec x;
    CUgraphExecUpdateResultInfo info;

    (void)unused;
    s = stream_nb();
    g = one_pair(MIB);
    x = must_instantiate(g);
    must_run(x, s);
    h = one_pair((size_t)256 * MIB);
    memset(&info, 0, sizeof info);
    code(CU(GraphExecUpdate)(x, h, &info), 910, "cuGraphExecUpdate from 1 to 256 MiB");
    equal((int)info.result, 1, "result");
    code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
}

static void freed_in_another_graph(int unused)
{
    CUdeviceptr out, p = 0;
    CUgraph g, h = NULL;
    CUgraphExec x, z;

    (void)unused;
    s = stream_nb();
    out = device_new(64);
    g = unpaired(&p, MIB);
    x = must_instantiate(g);
    fact("memory.freed_in_another_graph.captured");
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_copy(out, p, s));
    code(CU(MemFreeAsync)(p, s), 0, "cuMemFreeAsync in a second capture, the first never launched");
    code(CU(StreamEndCapture)(s, &h), 0, "end");
    holds("graph", h, "kernel=1 mem_free=1");
    fact("memory.freed_in_another_graph.replayed");
    z = must_instantiate(h);
    for (int i = 0; i < 2; i++) {
        code(CU(GraphLaunch)(x, s), 0, "launch the producer");
        code(CU(GraphLaunch)(z, s), 0, "launch the consumer");
    }
    code(CU(GraphLaunch)(z, s), 1, "the consumer a third time");
    code(CU(StreamSynchronize)(s), 0, "sync");
}

static void consumer_first(int unused)
{
    CUdeviceptr out, p = 0;
    CUgraphExec z;

    (void)unused;
    s = stream_nb();
    out = device_new(64);
    must_instantiate(unpaired(&p, MIB));
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_copy(out, p, s));
    MUST(MemFreeAsync, p, s);
    z = must_instantiate(must_end(s));
    code(CU(GraphLaunch)(z, s), 1, "launch the consumer with no producer before it");
}

const struct job memory_node_jobs[] = {
    {.id = "memory.unpaired", .run = restrictions},
    {.id = "memory.relaunch", .run = relaunch},
    {.id = "memory.auto_free", .run = auto_free},
    {.id = "memory.accounting", .run = accounting},
    {.id = "memory.before_launch", .run = before_launch},
    {.id = "memory.before_launch.copy", .run = before_launch_copy},
    {.id = "memory.before_launch.eager_kernel", .run = before_launch_kernel},
    {.id = "memory.paired", .run = paired},
    {.id = "memory.paired.much_larger", .run = much_larger},
    {.id = "memory.freed_in_another_graph", .run = freed_in_another_graph},
    {.id = "memory.freed_in_another_graph.consumer_first", .run = consumer_first},
    {.id = NULL},
};
