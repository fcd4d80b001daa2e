/* Changing a graph that was captured, by way of a clone: nodes replaced, edges taken away and put elsewhere. */
#include "conformance.h"

enum { MOST = 16 };

static CUstream s;
static CUdeviceptr a, b;

static void begin_facts(void)
{
    s = stream_nb();
    a = device_new(4096);
    b = device_new(4096);
}

static CUgraph clone_of(CUgraph g)
{
    CUgraph clone = NULL;

    MUST(GraphClone, &clone, g);
    return clone;
}

static CUgraphNode in_clone(CUgraph g, size_t index, CUgraph clone)
{
    CUgraphNode n = NULL;

    MUST(GraphNodeFindInClone, &n, node_at(g, index), clone);
    return n;
}

/* A graph's edges, as "0>1 1>2": indices as the nodes are listed, by the later node. */
static void told_edges(const char *what, CUgraph g, const char *want)
{
    CUgraphNode from[MOST], to[MOST];
    CUgraphEdgeData data[MOST];
    char text[256] = "";
    size_t n = MOST, used = 0;

    MUST(GraphGetEdges, g, from, to, data, &n);
    for (int j = 0; j < MOST; j++)
        for (int i = 0; i < MOST; i++)
            for (size_t k = 0; k < n; k++)
                if (node_index(g, from[k]) == i && node_index(g, to[k]) == j)
                    used += (size_t)snprintf(text + used, sizeof text - used, "%s%d>%d", used ? " " : "", i, j);
    yes(strcmp(text, want) == 0, "%s {%s}", what, text);
}

static void params_inc(CUDA_KERNEL_NODE_PARAMS *k, void **arguments)
{
    memset(k, 0, sizeof *k);
    k->func = kernel("inc");
    k->gridDimX = k->gridDimY = k->gridDimZ = k->blockDimX = k->blockDimY = k->blockDimZ = 1;
    k->kernelParams = arguments;
    k->ctx = env.ctx;
}

static void launch_with(CUlaunchAttributeID id, const void *what, size_t bytes, unsigned grid)
{
    CUlaunchConfig c;
    CUlaunchAttribute at;
    float v = 1;
    void *args[] = {&a, &v};

    memset(&c, 0, sizeof c);
    memset(&at, 0, sizeof at);
    at.id = id;
    memcpy(at.value.pad, what, bytes);
    c.gridDimX = grid;
    c.gridDimY = c.gridDimZ = c.blockDimX = c.blockDimY = c.blockDimZ = 1;
    c.hStream = s;
    c.attrs = &at;
    c.numAttrs = 1;
    must(CU(LaunchKernelEx)(&c, kernel("inc"), args, NULL), "cuLaunchKernelEx", __FILE__, __LINE__);
}

/* ---- clones ------------------------------------------------------------------------------------------------------- */

static int attribute(CUgraphNode n, CUlaunchAttributeID id)
{
    CUlaunchAttributeValue v;

    memset(&v, 0, sizeof v);
    MUST(GraphKernelNodeGetAttribute, n, id, &v);
    return v.priority; /* They all begin with an int. */
}

static void clone_attributes(int unused)
{
    int priority = -2, on = 1;
    unsigned cluster[3] = {2, 1, 1};
    CUgraph g, clone;

    (void)unused;
    begin_facts();
    must_begin(s, RELAXED);
    MUST_LAUNCH(launch_inc(a, 1, s));
    launch_with(CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority, sizeof priority, 1);
    launch_with(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &on, sizeof on, 1);
    launch_with(CF_ATTRIBUTE_CLUSTER_DIMENSION, cluster, sizeof cluster, 2);
    g = must_end(s);
    fact("rewrite.attribute.captured");
    equal(attribute(node_at(g, 0), CU_LAUNCH_ATTRIBUTE_COOPERATIVE), 0, "cooperative of a plain launch");
    equal(attribute(node_at(g, 1), CU_LAUNCH_ATTRIBUTE_PRIORITY), -2, "priority");
    equal(attribute(node_at(g, 2), CU_LAUNCH_ATTRIBUTE_COOPERATIVE), 1, "cooperative");
    equal(attribute(node_at(g, 3), CF_ATTRIBUTE_CLUSTER_DIMENSION), 2, "cluster");
    fact("rewrite.clone.attributes");
    code(CU(GraphClone)(&clone, g), 0, "cuGraphClone");
    equal(attribute(in_clone(g, 1, clone), CU_LAUNCH_ATTRIBUTE_PRIORITY), -2, "priority");
    equal(attribute(in_clone(g, 2, clone), CU_LAUNCH_ATTRIBUTE_COOPERATIVE), 1, "cooperative");
    equal(attribute(in_clone(g, 3, clone), CF_ATTRIBUTE_CLUSTER_DIMENSION), 2, "cluster");
    told_edges("edges", clone, "0>1 1>2 2>3");
    told_run(clone);
    yes(peek(a) >= 4, "it computes"); /* The two blocks of a cluster may both read before either writes. */
}

static void clone_forms(int unused)
{
    char buffer[12];
    float v = 4;
    size_t size = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    CUDA_KERNEL_NODE_PARAMS k;
    CUgraph g, clone;
    CUgraphNode n;

    (void)unused;
    begin_facts();
    memcpy(buffer, &a, 8);
    memcpy(buffer + 8, &v, 4);
    must_begin(s, GLOBAL);
    must(CU(LaunchKernel)(kernel("inc"), 1, 1, 1, 1, 1, 1, 0, s, NULL, extra), "cuLaunchKernel", __FILE__, __LINE__);
    MUST_LAUNCH(launch_inc(a, 1, s));
    g = must_end(s);
    fact("rewrite.clone.arguments");
    code(CU(GraphClone)(&clone, g), 0, "cuGraphClone");
    n = in_clone(g, 0, clone);
    MUST(GraphKernelNodeGetParams, n, &k);
    yes(k.kernelParams == NULL && k.extra != NULL, "launched through extra, it is so in the clone");
    MUST(GraphKernelNodeGetParams, in_clone(g, 1, clone), &k);
    yes(k.kernelParams != NULL && k.extra == NULL, "the other through kernelParams");
    yes(k.ctx == env.ctx, "the context");
    fact("rewrite.clone.outlives_the_graph");
    code(CU(GraphDestroy)(g), 0, "cuGraphDestroy of what it was cloned from");
    told_run(clone);
    value(peek(a), 5, "the clone computes");
}

static void host_nothing(void *unused)
{
    (void)unused;
}

static void clone_kinds(int unused)
{
    CUgraph child, g, clone, inner = NULL, inner_clone = NULL;
    CUgraphNode nodes[2], found = NULL;

    (void)unused;
    begin_facts();
    must_begin(s, GLOBAL);
    MUST(MemsetD32Async, a, 1, 4, s);
    MUST(MemcpyDtoDAsync, b, a, 16, s);
    MUST(LaunchHostFunc, s, host_nothing, NULL);
    g = must_end(s);
    fact("rewrite.clone.kinds");
    code(CU(GraphClone)(&clone, g), 0, "cuGraphClone of a set, a copy and a host function");
    holds("clone", clone, "memcpy=1 memset=1 host=1");
    told_run(clone);

    child = inc_graph(a, 1, s);
    MUST(GraphCreate, &g, 0);
    MUST(GraphAddEmptyNode, &nodes[0], g, NULL, 0);
    MUST(GraphAddChildGraphNode, &nodes[1], g, &nodes[0], 1, child);
    fact("rewrite.clone.child");
    code(CU(GraphClone)(&clone, g), 0, "cuGraphClone of a graph with a child graph");
    code(CU(GraphNodeFindInClone)(&found, nodes[1], clone), 0, "the child graph's node is found");
    MUST(GraphChildGraphNodeGetGraph, nodes[1], &inner);
    MUST(GraphChildGraphNodeGetGraph, found, &inner_clone);
    yes(inner != inner_clone, "with a graph of its own");
    told_run(clone);
}

static void find(int unused)
{
    CUgraph g, other, clone;
    CUgraphNode found = NULL;

    (void)unused;
    begin_facts();
    must_begin(s, GLOBAL);
    for (int i = 0; i < 4; i++)
        MUST_LAUNCH(launch_inc(a, (float)(1 << i), s));
    g = must_end(s);
    other = inc_graph(a, 1, s);
    clone = clone_of(g);
    fact("rewrite.find.foreign");
    code(CU(GraphNodeFindInClone)(&found, node_at(other, 0), clone), 1, "a node of another graph");
    code(CU(GraphNodeFindInClone)(&found, node_at(clone, 0), clone), 1, "a node of the clone itself");
    fact("rewrite.destroy.bridges_nothing");
    code(CU(GraphDestroyNode)(in_clone(g, 1, clone)), 0, "cuGraphDestroyNode in the clone");
    told_edges("edges", clone, "1>2");
    fact("rewrite.find.after_destroy");
    code(CU(GraphNodeFindInClone)(&found, node_at(g, 3), clone), 0, "a later node is found");
    equal(node_index(clone, found), 2, "its index");
    code(CU(GraphNodeFindInClone)(&found, node_at(g, 1), clone), 1, "the one that is gone");
    told_edges("the recorded edges stay", g, "0>1 1>2 2>3");
}

static void not_cloned(int unused)
{
    CUgraph g, clone = NULL;
    CUgraphNode node;
    cf_conditional handle;
    cf_node_params p;

    (void)unused;
    begin_facts();
    MUST(GraphCreate, &g, 0);
    MUST(GraphConditionalHandleCreate, &handle, g, env.ctx, 1, CF_COND_ASSIGN_DEFAULT);
    memset(&p, 0, sizeof p);
    p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    p.conditional.handle = handle;
    p.conditional.type = CF_COND_TYPE_IF;
    p.conditional.size = 1;
    p.conditional.ctx = env.ctx;
    MUST(GraphAddNode, &node, g, NULL, NULL, 0, &p);
    code(CU(GraphClone)(&clone, g), 801, "cuGraphClone of a graph with a conditional node");
}

/* ---- edges -------------------------------------------------------------------------------------------------------- */

/* inc(a, 1) inc(b, 1) set(a, 10) inc(b, 2) as a chain. */
static CUgraph four(void)
{
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_inc(a, 1, s));
    MUST_LAUNCH(launch_inc(b, 1, s));
    MUST_LAUNCH(launch_set(a, 10, s));
    MUST_LAUNCH(launch_inc(b, 2, s));
    return must_end(s);
}

static void edges(int unused)
{
    CUgraph g, clone;
    CUgraphNode n[4], from[8], to[8];

    (void)unused;
    begin_facts();
    g = four();
    clone = clone_of(g);
    for (size_t i = 0; i < 4; i++)
        n[i] = in_clone(g, i, clone);
    for (size_t i = 0; i < 3; i++) {
        from[i] = n[i];
        to[i] = n[i + 1];
    }
    fact("rewrite.edges.none");
    code(CU(GraphRemoveDependencies_10000)(clone, NULL, NULL, 0), 0, "cuGraphRemoveDependencies of none");
    code(CU(GraphAddDependencies_10000)(clone, NULL, NULL, 0), 0, "cuGraphAddDependencies of none");
    fact("rewrite.edges.removed");
    code(CU(GraphRemoveDependencies_10000)(clone, from, to, 3), 0, "cuGraphRemoveDependencies of all");
    told_edges("edges", clone, "");
    code(CU(GraphRemoveDependencies_10000)(clone, from, to, 1), 1, "of one that is gone");
    told_edges("recorded ones stay", g, "0>1 1>2 2>3");
    fact("rewrite.edges.lanes");
    from[0] = n[0], to[0] = n[2];
    from[1] = n[1], to[1] = n[3];
    code(CU(GraphAddDependencies_10000)(clone, from, to, 2), 0, "cuGraphAddDependencies of two lanes");
    told_edges("edges", clone, "0>2 1>3");
    told_run(clone);
    value(peek(a), 10, "a");
    value(peek(b), 3, "b");
    fact("rewrite.edges.twice_in_one_call");
    from[0] = from[1] = n[0], to[0] = to[1] = n[1];
    code(CU(GraphAddDependencies_10000)(clone, from, to, 2), 1, "cuGraphAddDependencies, one edge twice");
    fact("rewrite.edges.to_itself");
    from[0] = to[0] = n[1];
    code(CU(GraphAddDependencies_10000)(clone, from, to, 1), 1, "cuGraphAddDependencies");
    fact("rewrite.edges.of_another_graph");
    from[0] = node_at(g, 0), to[0] = n[1];
    code(CU(GraphAddDependencies_10000)(clone, from, to, 1), 1, "cuGraphAddDependencies from a node of another graph");
}

static void against_the_order(int unused)
{
    CUgraph g, clone;
    CUgraphNode from[2], to[2];

    (void)unused;
    begin_facts();
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_inc(a, 1, s));
    MUST_LAUNCH(launch_set(a, 10, s));
    g = must_end(s);
    clone = clone_of(g);
    from[0] = in_clone(g, 0, clone), to[0] = in_clone(g, 1, clone);
    code(CU(GraphRemoveDependencies_10000)(clone, from, to, 1), 0, "cuGraphRemoveDependencies");
    code(CU(GraphAddDependencies_10000)(clone, to, from, 1), 0, "cuGraphAddDependencies the other way");
    told_edges("edges", clone, "1>0");
    told_run(clone);
    value(peek(a), 11, "set, then incremented");
}

static void programmatic(int unused)
{
    CUgraph g, clone = NULL;
    CUgraphNode n[4], list[MOST], from[MOST], to[MOST];
    CUgraphEdgeData data[MOST];
    size_t k;
    int on = 1;

    (void)unused;
    begin_facts();
    must_begin(s, RELAXED);
    MUST(MemsetD32Async, a, 0, 1, s);
    MUST_LAUNCH(launch_inc(a, 1, s));
    launch_with(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, &on, sizeof on, 1);
    MUST_LAUNCH(launch_inc(b, 1, s));
    g = must_end(s);
    for (size_t i = 0; i < 4; i++)
        n[i] = node_at(g, i);
    fact("rewrite.programmatic.queries");
    k = MOST;
    code(CU(GraphNodeGetDependencies_10000)(n[1], list, &k), 0, "what the node before such an edge comes after");
    k = MOST;
    code(CU(GraphNodeGetDependentNodes_10000)(n[0], list, &k), 0, "what comes after the first node");
    k = MOST;
    code(CU(GraphNodeGetDependentNodes_10000)(n[1], list, &k), 402, "what comes after, by such an edge");
    k = MOST;
    code(CU(GraphNodeGetDependencies_10000)(n[2], list, &k), 402, "what comes before, by such an edge");
    k = MOST;
    code(CU(GraphNodeGetDependencies_10000)(n[3], list, &k), 0, "what the last node comes after");
    k = 0;
    code(CU(GraphNodeGetDependencies_10000)(n[2], NULL, &k), 0, "their number");
    equal((long long)k, 1, "number");
    fact("rewrite.programmatic.clone");
    code(CU(GraphClone)(&clone, g), 0, "cuGraphClone");
    k = MOST;
    memset(data, 0, sizeof data);
    MUST(GraphGetEdges, clone, from, to, data, &k);
    equal((long long)k, 3, "edges");
    for (size_t i = 0; i < k; i++)
        if (node_index(clone, to[i]) == 2)
            equal(data[i].type, 1, "type of the one");
    fact("rewrite.programmatic.removed_without_data");
    from[0] = in_clone(g, 1, clone), to[0] = in_clone(g, 2, clone);
    code(CU(GraphRemoveDependencies_10000)(clone, from, to, 1), 0, "cuGraphRemoveDependencies of it, without its data");
    told_edges("edges", clone, "0>1 2>3");
    told_run(clone);
}

static void memory(int unused)
{
    CUgraph g;
    CUgraphNode n0, n2;
    CUdeviceptr p;
    float v = 1;
    void *args[] = {&p, &v};

    (void)unused;
    begin_facts();
    must_begin(s, GLOBAL);
    MUST(MemAllocAsync, &p, 4096, s);
    MUST_LAUNCH(launch(kernel("inc"), s, args));
    MUST_LAUNCH(launch_inc(a, 1, s));
    MUST(MemFreeAsync, p, s);
    g = must_end(s);
    n0 = node_at(g, 0);
    n2 = node_at(g, 2);
    code(CU(GraphAddDependencies_10000)(g, &n0, &n2, 1), 0, "cuGraphAddDependencies in a graph that allocates");
}

/* ---- replacing ---------------------------------------------------------------------------------------------------- */

/* The memset at `index` becomes inc(a, v), with its edges. */
static void replace(CUgraph clone, CUgraphNode old, float v)
{
    CUgraphNode before[MOST], after[MOST], from[MOST], made = NULL;
    size_t n_before = MOST, n_after = MOST;
    CUDA_KERNEL_NODE_PARAMS k;
    void *args[] = {&a, &v};

    params_inc(&k, args);
    MUST(GraphNodeGetDependencies_10000, old, before, &n_before);
    MUST(GraphNodeGetDependentNodes_10000, old, after, &n_after);
    MUST(GraphAddKernelNode, &made, clone, n_before ? before : NULL, n_before, &k);
    for (size_t i = 0; i < n_after; i++)
        from[i] = made;
    if (n_after)
        MUST(GraphAddDependencies_10000, clone, from, after, n_after);
    MUST(GraphDestroyNode, old);
}

/* set(a, 5) memset(a) inc(a, v) */
static CUgraph with_set(float v)
{
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_set(a, 5, s));
    MUST(MemsetD32Async, a, 0, 1, s);
    MUST_LAUNCH(launch_inc(a, v, s));
    return must_end(s);
}

static void replaced(int unused)
{
    CUgraph g, clone, second, second_clone;
    CUgraphExecUpdateResultInfo info;
    CUgraphExec x;

    (void)unused;
    begin_facts();
    g = with_set(1);
    clone = clone_of(g);
    fact("rewrite.replaced");
    replace(clone, in_clone(g, 1, clone), 100);
    holds("clone", clone, "kernel=3");
    told_edges("edges, the new node last", clone, "2>1 0>2");
    x = must_instantiate(clone);
    must_run(x, s);
    value(peek(a), 106, "it computes");
    fact("rewrite.replaced.exec_outlives_the_clone");
    code(CU(GraphDestroy)(clone), 0, "cuGraphDestroy of the clone");
    must_run(x, s);
    value(peek(a), 106, "it computes");
    fact("rewrite.replaced.update");
    second = with_set(2);
    second_clone = clone_of(second);
    replace(second_clone, in_clone(second, 1, second_clone), 200);
    code(CU(GraphExecUpdate)(x, second_clone, &info), 0, "cuGraphExecUpdate by another recording, written likewise");
    must_run(x, s);
    value(peek(a), 207, "it computes");
    fact("rewrite.replaced.update_by_what_was_recorded");
    code(CU(GraphExecUpdate)(x, second, &info), 910, "cuGraphExecUpdate by the recording itself");
    seen("result %d", (int)info.result);
    yes(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED || info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
        "other nodes or edges");
    must_run(x, s);
    value(peek(a), 207, "as it was");
}

static void lanes_updated(int unused)
{
    CUgraphExecUpdateResultInfo info;
    CUgraph g[2], clone[2];
    CUgraphExec x;

    (void)unused;
    begin_facts();
    for (int k = 0; k < 2; k++) {
        CUgraphNode n[4], from[3], to[3];
        g[k] = four();
        clone[k] = clone_of(g[k]);
        for (size_t i = 0; i < 4; i++)
            n[i] = in_clone(g[k], i, clone[k]);
        for (size_t i = 0; i < 3; i++) {
            from[i] = n[i];
            to[i] = n[i + 1];
        }
        MUST(GraphRemoveDependencies_10000, clone[k], from, to, 3);
        from[k] = n[0], to[k] = n[2];
        from[!k] = n[1], to[!k] = n[3];
        MUST(GraphAddDependencies_10000, clone[k], from, to, 2);
    }
    x = must_instantiate(clone[0]);
    code(CU(GraphExecUpdate)(x, clone[1], &info), 0, "cuGraphExecUpdate, the same edges put there in another order");
    code(CU(GraphExecUpdate)(x, g[1], &info), 910, "by the recording");
    equal((int)info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, "result");
    must_run(x, s);
    value(peek(a), 10, "a");
    value(peek(b), 3, "b");
}

static void enabled(int unused)
{
    CUgraph g, clone;
    CUgraphExec x;

    (void)unused;
    begin_facts();
    g = four();
    clone = clone_of(g);
    x = must_instantiate(clone);
    code(CU(GraphNodeSetEnabled)(x, in_clone(g, 2, clone), 0), 0, "cuGraphNodeSetEnabled of the clone's node");
    code(CU(GraphNodeSetEnabled)(x, node_at(g, 0), 0), 1, "of the recorded one");
    must_run(x, s);
    value(peek(a), 1, "without it");
}

/* ---- sets by hand -------------------------------------------------------------------------------------------------- */

static void told_set(const char *what, const CUDA_MEMSET_NODE_PARAMS *p, int want, bool run)
{
    unsigned char bytes[64];
    CUgraphNode n;
    CUresult r;
    CUgraph g;

    MUST(GraphCreate, &g, 0);
    r = CU(GraphAddMemsetNode)(&n, g, NULL, 0, p, env.ctx);
    code(r, want, "%s", what);
    if (r != CUDA_SUCCESS || !run)
        return;
    MUST(MemsetD32Async, a, 0, 16, s);
    must_run(must_instantiate(g), s);
    MUST(MemcpyDtoH, bytes, a, sizeof bytes);
    seen("bytes %02x%02x%02x%02x %02x%02x%02x%02x", bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]);
}

static void sets(int unused)
{
    CUDA_MEMSET_NODE_PARAMS p = {.dst = 0, .value = 0x12345678, .elementSize = 1, .width = 6, .height = 1};

    (void)unused;
    begin_facts();
    fact("rewrite.set.value_too_large");
    p.dst = a;
    told_set("0x12345678 for elements of 1 byte", &p, ANY, true);
    p.elementSize = 2, p.width = 3;
    told_set("0x12345678 for elements of 2 bytes", &p, ANY, true);
    fact("rewrite.set.misaligned");
    p = (CUDA_MEMSET_NODE_PARAMS){.dst = a + 1, .value = 0x12345678, .elementSize = 4, .width = 1, .height = 1};
    told_set("4 bytes at an odd address", &p, 1, false);
    fact("rewrite.set.odd_pitch");
    p = (CUDA_MEMSET_NODE_PARAMS){.dst = a, .value = 0x12345678, .elementSize = 4, .pitch = 9, .width = 2, .height = 3};
    told_set("rows 9 bytes apart of 2 elements of 4 bytes", &p, 1, false);
    p.pitch = 4;
    told_set("rows 4 bytes apart of 8", &p, 1, false);
    fact("rewrite.set.no_height");
    p = (CUDA_MEMSET_NODE_PARAMS){.dst = a, .value = 1, .elementSize = 1, .width = 2, .height = 0};
    told_set("height 0", &p, 1, false);
    fact("rewrite.set.one_row_with_a_pitch");
    p = (CUDA_MEMSET_NODE_PARAMS){.dst = a, .value = 1, .elementSize = 1, .pitch = 64, .width = 2, .height = 1};
    told_set("one row, pitch 64", &p, 0, true);
}

/* ---- while something records --------------------------------------------------------------------------------------- */

static void while_recording(int unused)
{
    CUgraph g, clone = NULL;
    CUgraphNode n = NULL, from, to, made = NULL;
    CUDA_KERNEL_NODE_PARAMS k;
    CUstream other;
    float v = 1;
    void *args[] = {&a, &v};

    (void)unused;
    begin_facts();
    other = stream_nb();
    g = four();
    params_inc(&k, args);
    must_begin(other, GLOBAL);
    MUST_LAUNCH(launch_inc(b, 1, other));
    code(CU(GraphClone)(&clone, g), 0, "cuGraphClone");
    code(CU(GraphNodeFindInClone)(&n, node_at(g, 1), clone), 0, "cuGraphNodeFindInClone");
    from = node_at(clone, 0);
    to = node_at(clone, 1);
    code(CU(GraphRemoveDependencies_10000)(clone, &from, &to, 1), 0, "cuGraphRemoveDependencies");
    code(CU(GraphAddDependencies_10000)(clone, &from, &to, 1), 0, "cuGraphAddDependencies");
    code(CU(GraphAddKernelNode)(&made, clone, &to, 1, &k), 0, "cuGraphAddKernelNode");
    code(CU(GraphDestroyNode)(made), 0, "cuGraphDestroyNode");
    code(CU(GraphDestroy)(clone), 0, "cuGraphDestroy");
    state("capture", other, ACTIVE);
    code(end(other), 0, "end");
}

const struct job rewrite_jobs[] = {
    {.id = "rewrite.clone", .run = clone_attributes},
    {.id = "rewrite.clone", .run = clone_forms},
    {.id = "rewrite.clone", .run = clone_kinds},
    {.id = "rewrite.find", .run = find},
    {.id = "rewrite.not_cloned.conditional", .run = not_cloned},
    {.id = "rewrite.edges", .run = edges},
    {.id = "rewrite.against_the_order", .run = against_the_order},
    {.id = "rewrite.programmatic", .run = programmatic},
    {.id = "rewrite.memory.edge_added", .run = memory},
    {.id = "rewrite.replaced", .run = replaced},
    {.id = "rewrite.lanes_updated", .run = lanes_updated},
    {.id = "rewrite.enabled", .run = enabled},
    {.id = "rewrite.set", .run = sets},
    {.id = "rewrite.while_recording", .run = while_recording},
    {.id = NULL},
};
