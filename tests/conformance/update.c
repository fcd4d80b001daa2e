/* The whole update of an executable graph. */
#include "conformance.h"

/* What the captured steps work on. */
static CUstream s, s2;
static CUdeviceptr a, b;
static void *pinned, *pinned2, *pages;
static CUevent e1, e2;
static CUfunction other_inc;
static CUgraph child1, child2;

typedef CUresult (*step)(void);

static void begin_facts(void)
{
    s = stream_nb();
    s2 = stream_nb();
    a = device_new(4096);
    b = device_new(4096);
    pinned = pinned_new(4096);
    pinned2 = pinned_new(4096);
    pages = pages_new(4096);
    e1 = event_new();
    e2 = event_new();
}

/* Captured RELAXED, so that a step may do what it likes. */
static CUgraph capture(step f)
{
    must_begin(s, RELAXED);
    must(f(), "the captured step", __FILE__, __LINE__);
    return must_end(s);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* One call after another, up to the first that fails. Not a function: its arguments would have no order. */
#define THEN(r, next) ((r) != CUDA_SUCCESS ? (r) : (next))

static CUresult inc_shaped(unsigned grid, unsigned block, unsigned shared)
{
    float v = 1;
    void *args[] = {&a, &v};

    return CU(LaunchKernel)(kernel("inc"), grid, 1, 1, block, 1, 1, shared, s, args, NULL);
}

static CUresult k_inc(void)
{
    return launch_inc(a, 1, s);
}

static CUresult k_inc9(void)
{
    return launch_inc(a, 9, s);
}

static CUresult k_inc_b(void)
{
    return launch_inc(b, 1, s);
}

static CUresult k_set(void)
{
    return launch_set(a, 50, s);
}

static CUresult k_addn(void)
{
    float v = 6;
    int n = 1;
    void *args[] = {&a, &v, &n};

    return launch(kernel("addn"), s, args);
}

static CUresult k_nop(void)
{
    return launch_nop(s);
}

static CUresult k_shape(void)
{
    return inc_shaped(4, 64, 0);
}

static CUresult k_shared(void)
{
    return inc_shaped(1, 1, 16384);
}

static CUresult k_other_module(void)
{
    float v = 3;
    void *args[] = {&a, &v};

    return launch(other_inc, s, args);
}

static CUresult k_extra(void)
{
    char buffer[12];
    float v = 4;
    size_t size = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};

    memcpy(buffer, &a, 8);
    memcpy(buffer + 8, &v, 4);
    return CU(LaunchKernel)(kernel("inc"), 1, 1, 1, 1, 1, 1, 0, s, NULL, extra);
}

static CUresult k_cooperative(void)
{
    float v = 1;
    void *args[] = {&a, &v};

    return CU(LaunchCooperativeKernel)(kernel("inc"), 1, 1, 1, 1, 1, 1, 0, s, args);
}

static CUresult with_attribute(unsigned grid, unsigned block, const CUlaunchAttribute *at)
{
    CUlaunchConfig c;
    CUlaunchAttribute copy = *at;
    float v = 1;
    void *args[] = {&a, &v};

    memset(&c, 0, sizeof c);
    c.gridDimX = grid;
    c.gridDimY = c.gridDimZ = 1;
    c.blockDimX = block;
    c.blockDimY = c.blockDimZ = 1;
    c.hStream = s;
    c.attrs = &copy;
    c.numAttrs = 1;
    return CU(LaunchKernelEx)(&c, kernel("inc"), args, NULL);
}

static CUresult k_priority(void)
{
    CUlaunchAttribute at;

    memset(&at, 0, sizeof at);
    at.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    at.value.priority = -2;
    return with_attribute(1, 1, &at);
}

static CUresult k_cluster(void)
{
    CUlaunchAttribute at;
    unsigned dims[3] = {2, 1, 1};

    memset(&at, 0, sizeof at);
    at.id = CF_ATTRIBUTE_CLUSTER_DIMENSION;
    memcpy(at.value.pad, dims, sizeof dims);
    return with_attribute(2, 32, &at);
}

static CUresult k_two(void)
{
    CUresult r = k_inc();

    return THEN(r, launch_set(b, 2, s));
}

static CUresult k_two_swapped(void)
{
    CUresult r = launch_set(b, 2, s);

    return THEN(r, k_inc());
}

static CUresult k_two_100(void)
{
    CUresult r = launch_inc(a, 100, s);

    return THEN(r, launch_set(b, 2, s));
}

static CUresult k_two_other_type(void)
{
    CUresult r = launch_inc(a, 1000, s);

    return THEN(r, CU(MemsetD8Async)(b, 0, 4, s));
}

static CUresult k_chain(void)
{
    CUresult r = k_two();

    r = THEN(r, k_nop());
    return THEN(r, k_nop());
}

static CUresult k_fork(void)
{
    CUresult r = k_inc();

    r = THEN(r, CU(EventRecord)(e1, s));
    r = THEN(r, CU(StreamWaitEvent)(s2, e1, 0));
    r = THEN(r, launch_set(b, 2, s2));
    r = THEN(r, k_nop());
    r = THEN(r, CU(EventRecord)(e2, s2));
    r = THEN(r, CU(StreamWaitEvent)(s, e2, 0));
    return THEN(r, k_nop());
}

static CUresult nothing(void)
{
    return CUDA_SUCCESS;
}

static CUresult m_set_kernel(void)
{
    return CU(MemsetD32Async)(a, 0x3f800000, 1, s);
}

static CUresult c_dtod(void)
{
    return CU(MemcpyDtoDAsync)(a, b, 64, s);
}

static CUresult c_dtod_128(void)
{
    return CU(MemcpyDtoDAsync)(a, b, 128, s);
}

static CUresult c_dtod_swapped(void)
{
    return CU(MemcpyDtoDAsync)(b, a, 64, s);
}

static CUresult c_htod(void)
{
    return CU(MemcpyHtoDAsync)(a, pinned, 64, s);
}

static CUresult c_htod2(void)
{
    return CU(MemcpyHtoDAsync)(a, pinned2, 64, s);
}

static CUresult c_htod_pageable(void)
{
    return CU(MemcpyHtoDAsync)(a, pages, 64, s);
}

static CUresult c_dtoh(void)
{
    return CU(MemcpyDtoHAsync)(pinned, a, 64, s);
}

static CUresult m_4(void)
{
    return CU(MemsetD32Async)(a, 1, 4, s);
}

static CUresult m_value(void)
{
    return CU(MemsetD32Async)(a, 2, 4, s);
}

static CUresult m_width(void)
{
    return CU(MemsetD32Async)(a, 1, 8, s);
}

static CUresult m_target(void)
{
    return CU(MemsetD32Async)(b, 1, 4, s);
}

static CUresult m_bytes(void)
{
    return CU(MemsetD8Async)(a, 1, 16, s);
}

static CUresult m_2d(void)
{
    return CU(MemsetD2D8Async)(a, 64, 1, 16, 4, s);
}

static CUresult m_2d_wider(void)
{
    return CU(MemsetD2D8Async)(a, 64, 1, 32, 4, s);
}

static void host1(void *p)
{
    (void)p;
}

static void host2(void *p)
{
    (void)p;
}

static CUresult h_1(void)
{
    return CU(LaunchHostFunc)(s, host1, NULL);
}

static CUresult h_2(void)
{
    return CU(LaunchHostFunc)(s, host2, (void *)8);
}

static CUresult r_1(void)
{
    return CU(EventRecordWithFlags)(e1, s, CU_EVENT_RECORD_EXTERNAL);
}

static CUresult r_2(void)
{
    return CU(EventRecordWithFlags)(e2, s, CU_EVENT_RECORD_EXTERNAL);
}

static CUresult w_a(void)
{
    return CU(StreamWriteValue32)(s, a, 1, 0);
}

static CUresult w_b(void)
{
    return CU(StreamWriteValue32)(s, b, 2, 0);
}

static CUresult pair(void)
{
    CUdeviceptr p = 0;
    CUresult r = CU(MemAllocAsync)(&p, 4096, s);

    r = THEN(r, launch_inc(p, 1, s));
    return THEN(r, CU(MemFreeAsync)(p, s));
}

static CUresult add_child(CUgraph c)
{
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph g;
    const CUgraphNode *deps;
    size_t n;
    CUgraphNode node;
    CUresult r = CU(StreamGetCaptureInfo)(s, &status, &id, &g, &deps, NULL, &n);

    r = THEN(r, CU(GraphAddChildGraphNode)(&node, g, deps, n, c));
    return THEN(r, CU(StreamUpdateCaptureDependencies)(s, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

static CUresult ch_1(void)
{
    return add_child(child1);
}

static CUresult ch_2(void)
{
    return add_child(child2);
}

/* ---- what changes, and what comes of it --------------------------------------------------------------------------- */

enum { NO_NODE = -1, NO_VALUE = -9999 };

static void need_module(void)
{
    CUmodule m = NULL;

    MUST(ModuleLoadData, &m, env.ptx);
    MUST(ModuleGetFunction, &other_inc, m, "inc");
}

static void need_children(void)
{
    child1 = capture(k_inc);
    child2 = capture(k_inc9);
}

static const struct change {
    const char *id;
    step from, to;
    int code, result;
    int node;  /* index of errorNode in the updating graph */
    int value; /* what one launch then makes of 0 in a */
    unsigned flags;
    void (*need)(void);
} changes[] = {
    {"identical", k_inc, k_inc, 0, 0, NO_NODE, 1, 0, NULL},
    {"scalar", k_inc, k_inc9, 0, 0, NO_NODE, 9, 0, NULL},
    {"pointer", k_inc, k_inc_b, 0, 0, NO_NODE, 0, 0, NULL},
    {"function", k_inc, k_set, 0, 0, NO_NODE, 50, 0, NULL},
    {"function_more_parameters", k_inc, k_addn, 0, 0, NO_NODE, 6, 0, NULL},
    {"function_fewer_parameters", k_addn, k_inc, 0, 0, NO_NODE, 1, 0, NULL},
    {"function_without_parameters", k_inc, k_nop, 0, 0, NO_NODE, 0, 0, NULL},
    {"function_with_parameters", k_nop, k_inc, 0, 0, NO_NODE, 1, 0, NULL},
    {"function_of_another_module", k_inc, k_other_module, 0, 0, NO_NODE, 3, 0, need_module},
    {"arguments_through_extra", k_inc, k_extra, 0, 0, NO_NODE, 4, 0, NULL},
    {"grid_and_block", k_inc, k_shape, 0, 0, NO_NODE, NO_VALUE, 0, NULL},
    {"dynamic_shared_memory", k_inc, k_shared, 0, 0, NO_NODE, 1, 0, NULL},
    {"priority_added", k_inc, k_priority, 0, 0, NO_NODE, 1, 0, NULL},
    {"cluster_dimension_added", k_shape, k_cluster, 0, 0, NO_NODE, NO_VALUE, 0, NULL},
    {"two_nodes_swapped", k_two, k_two_swapped, 0, 0, NO_NODE, 1, 0, NULL},
    {"fork_identical", k_fork, k_fork, 0, 0, NO_NODE, 1, 0, NULL},
    {"copy_size", c_dtod, c_dtod_128, 0, 0, NO_NODE, NO_VALUE, 0, NULL},
    {"copy_operands", c_dtod, c_dtod_swapped, 0, 0, NO_NODE, NO_VALUE, 0, NULL},
    {"copy_other_pinned", c_htod, c_htod2, 0, 0, NO_NODE, NO_VALUE, 0, NULL},
    {"copy_pinned_to_pageable", c_htod, c_htod_pageable, 0, 0, NO_NODE, NO_VALUE, 0, NULL},
    {"copy_pageable_to_pinned", c_htod_pageable, c_htod, 0, 0, NO_NODE, NO_VALUE, 0, NULL},
    {"set_value", m_4, m_value, 0, 0, NO_NODE, NO_VALUE, 0, NULL},
    {"set_width", m_4, m_width, 0, 0, NO_NODE, NO_VALUE, 0, NULL},
    {"set_target", m_4, m_target, 0, 0, NO_NODE, 0, 0, NULL},
    {"set_element_size", m_4, m_bytes, 0, 0, NO_NODE, NO_VALUE, 0, NULL},
    {"host_function", h_1, h_2, 0, 0, NO_NODE, 0, 0, NULL},
    {"external_event", r_1, r_2, 0, 0, NO_NODE, 0, 0, NULL},
    {"batch_mem_op", w_a, w_b, 0, 0, NO_NODE, 0, 0, NULL},
    {"alloc_free_pair", pair, pair, 0, 0, NO_NODE, 0, 0, NULL},
    {"child_argument", ch_1, ch_2, 0, 0, NO_NODE, 9, 0, need_children},
    {"auto_free_exec", k_inc, k_inc, 0, 0, NO_NODE, 1, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, NULL},

    {"one_node_more", k_inc, k_two, 910, 2, NO_NODE, 1, 0, NULL},
    {"one_node_fewer", k_two, k_inc, 910, 2, NO_NODE, 1, 0, NULL},
    {"from_empty", nothing, k_inc, 910, 2, NO_NODE, 0, 0, NULL},
    {"to_empty", k_inc, nothing, 910, 2, NO_NODE, 1, 0, NULL},
    {"chain_to_fork", k_chain, k_fork, 910, 2, 3, 1, 0, NULL},
    {"fork_to_chain", k_fork, k_chain, 910, 2, 3, 1, 0, NULL},
    {"kernel_to_set", k_inc, m_set_kernel, 910, 3, 0, 1, 0, NULL},
    {"set_to_copy", m_4, c_dtod, 910, 3, 0, NO_VALUE, 0, NULL},
    {"kernel_to_host", k_inc, h_1, 910, 3, 0, 1, 0, NULL},
    {"DtoD_to_HtoD", c_dtod, c_htod, 910, 5, 0, NO_VALUE, 0, NULL},
    {"HtoD_to_DtoH", c_htod, c_dtoh, 910, 5, 0, NO_VALUE, 0, NULL},
    {"set_1d_to_2d", m_bytes, m_2d, 910, 5, 0, NO_VALUE, 0, NULL},
    {"set_2d_width", m_2d, m_2d_wider, 910, 5, 0, NO_VALUE, 0, NULL},
    {"to_cooperative", k_inc, k_cooperative, 910, 8, 0, 1, 0, NULL},
    {"from_cooperative", k_cooperative, k_inc, 910, 8, 0, 1, 0, NULL},
    {"priority_with_node_priority", k_inc, k_priority, 910, 8, 0, 1, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, NULL},
};

static void change(const struct change *c)
{
    CUgraph from, into;
    CUgraphExec x = NULL;
    CUgraphExecUpdateResultInfo info;

    begin_facts();
    if (c->need)
        c->need();
    from = capture(c->from);
    into = capture(c->to);
    code(CU(GraphInstantiateWithFlags)(&x, from, c->flags), 0, "instantiate");
    memset(&info, 0xee, sizeof info);
    code(CU(GraphExecUpdate)(x, into, &info), c->code, "cuGraphExecUpdate");
    equal((int)info.result, c->result, "result");
    if (c->code) {
        equal(info.errorNode ? node_index(into, info.errorNode) : NO_NODE, c->node, "errorNode");
        yes(info.errorFromNode == NULL, "errorFromNode NULL");
    }
    poke(a, 0);
    code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
    if (c->value != NO_VALUE)
        value(peek(a), c->value, "a replay makes");
}

/* ---- around an update ----------------------------------------------------------------------------------------------- */

static float replayed(CUgraphExec x)
{
    poke(a, 0);
    must_run(x, s);
    return peek(a);
}

static void nothing_applied(int unused)
{
    CUgraphExec x;
    CUgraph g;
    CUgraphExecUpdateResultInfo info;

    (void)unused;
    begin_facts();
    fact("update.around.failed_applies_nothing");
    x = must_instantiate(capture(k_two));
    g = capture(k_two_other_type);
    code(CU(GraphExecUpdate)(x, g, &info), 910, "node 0 changes validly, node 1 its type");
    equal((int)info.result, 3, "result");
    equal(node_index(g, info.errorNode), 1, "errorNode");
    value(replayed(x), 1, "a replay adds");
    fact("update.around.valid_after_failed");
    g = capture(k_two_100);
    code(CU(GraphExecUpdate)(x, g, &info), 0, "cuGraphExecUpdate");
    value(replayed(x), 100, "a replay adds");
    fact("update.around.null_info");
    code(CU(GraphExecUpdate)(x, g, NULL), 0, "cuGraphExecUpdate(info NULL)");
}

static void source_destroyed(int unused)
{
    CUgraphExec x;
    CUgraph g, from;
    CUgraphExecUpdateResultInfo info;
    CUDA_KERNEL_NODE_PARAMS k;

    (void)unused;
    begin_facts();
    from = capture(k_two);
    x = must_instantiate(from);
    MUST(GraphDestroy, from);
    fact("update.source_destroyed");
    g = capture(k_two_100);
    code(CU(GraphExecUpdate)(x, g, &info), 0, "cuGraphExecUpdate after its source graph was destroyed");
    value(replayed(x), 100, "a replay adds");
    fact("update.source_destroyed.node_of_the_updating_graph");
    memset(&k, 0, sizeof k);
    MUST(GraphKernelNodeGetParams, node_at(g, 0), &k);
    code(CU(GraphExecKernelNodeSetParams)(x, node_at(g, 0), &k), 1, "SetParams with a node of the updating graph");
}

/* A launch that is queued already keeps its arguments. */
static void queued_launch(int unused)
{
    CUgraphExec x;
    CUgraph g;
    CUgraphExecUpdateResultInfo info;

    (void)unused;
    begin_facts();
    x = must_instantiate(capture(k_two_100));
    must_run(x, s);
    g = capture(k_two);
    poke(a, 0);
    MUST_LAUNCH(launch_spin(40, s));
    MUST(GraphLaunch, x, s);
    code(CU(GraphExecUpdate)(x, g, &info), 0, "cuGraphExecUpdate while a launch waits behind a kernel of 40 ms");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(a), 100, "the queued launch added");
    must_run(x, s);
    value(peek(a), 101, "the next one made it");
}

static void disabled(int unused)
{
    CUgraphExec x;
    CUgraph g;
    CUgraphNode n;
    CUgraphExecUpdateResultInfo info;
    unsigned on = 9;

    (void)unused;
    begin_facts();
    g = capture(k_inc);
    n = node_at(g, 0);
    x = must_instantiate(g);
    code(CU(GraphNodeSetEnabled)(x, n, 0), 0, "cuGraphNodeSetEnabled(0)");
    code(CU(GraphExecUpdate)(x, capture(k_inc9), &info), 0, "cuGraphExecUpdate");
    code(CU(GraphNodeGetEnabled)(x, n, &on), 0, "cuGraphNodeGetEnabled");
    equal(on, 0, "enabled");
    value(replayed(x), 0, "a replay adds");
    code(CU(GraphNodeSetEnabled)(x, n, 1), 0, "cuGraphNodeSetEnabled(1)");
    value(replayed(x), 9, "a replay adds");
    code(CU(GraphNodeSetEnabled)(x, n, 0), 0, "off");
    code(CU(GraphNodeSetEnabled)(x, n, 2), 0, "cuGraphNodeSetEnabled(2)");
    value(replayed(x), 9, "a replay adds");
}

static void enabled_types(int unused)
{
    static const struct {
        const char *name;
        step f;
        int code;
    } types[] = {
        {"kernel", k_inc, 0}, {"memcpy", c_dtod, 0},    {"memset", m_4, 0},     {"host", h_1, 1},
        {"event", r_1, 1},    {"batch_mem_op", w_a, 1}, {"mem_alloc", pair, 1},
    };

    (void)unused;
    begin_facts();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        CUgraph g = capture(types[i].f);

        fact("update.enabled.%s", types[i].name);
        code(CU(GraphNodeSetEnabled)(must_instantiate(g), node_at(g, 0), 0), types[i].code, "cuGraphNodeSetEnabled(%s node)",
             types[i].name);
    }
    fact("update.enabled.child");
    need_children();
    {
        CUgraph g = capture(ch_1);

        code(CU(GraphNodeSetEnabled)(must_instantiate(g), node_at(g, 0), 0), 1, "cuGraphNodeSetEnabled(child graph node)");
    }
    fact("update.enabled.node_of_another_graph");
    code(CU(GraphNodeSetEnabled)(must_instantiate(capture(k_inc)), node_at(capture(k_inc), 0), 0), 1, "cuGraphNodeSetEnabled");
}

/* ---- operands of copies move within a class of memory only ----------------------------------------------------------- */

static CUdeviceptr target_now;

static CUresult c_to(void)
{
    return CU(MemcpyDtoDAsync)(target_now, b, 64, s);
}

/* From a copy into cuMemAlloc memory, or into pool memory, to one into another class. */
static void told_move(const char *from_name, CUdeviceptr from, const char *to_name, CUdeviceptr target, bool same_class)
{
    CUgraphExec x;
    CUgraph g;
    CUgraphExecUpdateResultInfo info;

    fact("update.copy_class.%s_to_%s", from_name, to_name);
    target_now = from;
    x = must_instantiate(capture(c_to));
    target_now = target;
    g = capture(c_to);
    memset(&info, 0, sizeof info);
    code(CU(GraphExecUpdate)(x, g, &info), same_class ? 0 : 910, "cuGraphExecUpdate");
    equal((int)info.result, same_class ? 0 : 5, "result");
    if (!same_class)
        equal(node_index(g, info.errorNode), 0, "errorNode");
    code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
}

static void copy_classes(int unused)
{
    CUdeviceptr pool = 0, pool2 = 0, vmm;

    (void)unused;
    begin_facts();
    MUST(MemAllocAsync, &pool, 4096, s);
    MUST(MemAllocAsync, &pool2, 4096, s);
    MUST(StreamSynchronize, s);
    vmm = vmm_reserve(2 << 20);
    vmm_map(vmm, 2 << 20, vmm_create(2 << 20));
    told_move("plain", a, "plain", device_new(4096), true);
    told_move("plain", a, "pinned", address(pinned), true);
    told_move("plain", a, "pool", pool, false);
    told_move("plain", a, "vmm", vmm, false);
    told_move("pool", pool, "pool", pool2, true);
    told_move("pool", pool, "vmm", vmm, true);
    told_move("pool", pool, "plain", a, false);
    told_move("vmm", vmm, "pool", pool, true);
    told_move("vmm", vmm, "plain", a, false);
}

static void copy_class_managed(int unused)
{
    CUdeviceptr managed = 0;

    (void)unused;
    begin_facts();
    MUST(MemAllocManaged, &managed, 4096, CF_ATTACH_GLOBAL);
    told_move("plain", a, "managed", managed, true);
    told_move("managed", managed, "plain", a, true);
}

static const char *change_id(int unused, int cell)
{
    static char id[96];

    (void)unused;
    snprintf(id, sizeof id, "update.change.%s", changes[cell].id);
    return id;
}

static void all_changes(int unused)
{
    for (int i = resume_at(); i < (int)(sizeof changes / sizeof *changes); i++) {
        at_cell(i);
        if (!wanted("%s", change_id(unused, i)))
            continue;
        fact("%s", change_id(unused, i));
        change(&changes[i]);
    }
}

const struct job update_jobs[] = {
    {.id = "update.change", .run = all_changes, .cells = sizeof changes / sizeof *changes, .cell = change_id},
    {.id = "update.around", .run = nothing_applied},
    {.id = "update.source_destroyed", .run = source_destroyed},
    {.id = "update.queued_launch", .run = queued_launch},
    {.id = "update.disabled", .run = disabled},
    {.id = "update.enabled", .run = enabled_types},
    {.id = "update.copy_class", .run = copy_classes},
    {.id = "update.copy_class.managed", .run = copy_class_managed},
    {.id = NULL},
};
