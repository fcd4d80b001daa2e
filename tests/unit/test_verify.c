/*
 * Verifying: programs that touch what they do not declare, each planted on purpose, and clean ones that must not be accused.
 *
 * What a relaxed step takes its nodes to touch is put into it by the test, which leaves out or falsifies what it is about.
 */
#include "support.h"

#include "graph/single.h"
#include "relax_p.h"
#include "memory.h"

#include "hidden_kernels_ptx.h"

enum { NODES = 32, ACCESSES = 128, COUNT = 24 };

/* ---- a step and what it declares --------------------------------------------------------------------------------- */

static struct {
    stepgraph_step *step;
    CUmodule module;
    uint32_t index[NODES], kinds[NODES];
    uint8_t reasons[NODES];
    sg__access accesses[ACCESSES];
    sg__touch touches[ACCESSES];
    sg__graph_edges recorded;
    sg__relaxed relaxed;
    CUgraphExec exec;   /* As recorded. */
    CUgraphExec own[16]; /* Made here. */
    unsigned n_own;
    CUgraphExec other; /* The relaxed one. */
    stepgraph_verify_config config;
    stepgraph_verify *report;
    stepgraph_verify_summary summary;
} t;

static void made(void)
{
    memset(&t, 0, sizeof t);
    CU(ModuleLoadData(&t.module, hidden_kernels_ptx));
    t.config = (stepgraph_verify_config)STEPGRAPH_VERIFY_CONFIG_INIT;
    t.config.steps = 3;
    t.config.repeats = 2;
}

static void dropped(void)
{
    stepgraph_verify_destroy(t.report);
    for (unsigned i = 0; i < t.n_own; i++)
        t.step->session->driver->GraphExecDestroy(t.own[i]);
    sg__graph_edges_free(&t.recorded);
    sg__order_free(&t.relaxed.needed);
    CU(ModuleUnload(t.module));
}

static CUfunction hidden(const char *name)
{
    CUfunction function = NULL;

    CU(ModuleGetFunction(&function, t.module, name));
    return function;
}

/* The next node is enqueued now; what it declares follows. */
static void next(void)
{
    t.index[t.relaxed.footprint.n] = t.relaxed.footprint.n;
    t.relaxed.footprint.n++;
}

static void node(CUfunction function, unsigned threads, void **arguments)
{
    next();
    launch(stream, function, threads, arguments);
}

static void declare(uint16_t argument, CUdeviceptr start, uint64_t bytes, bool write)
{
    size_t i = t.relaxed.footprint.n_accesses++;

    t.touches[i] = (sg__touch){.place = SG__WORD_ARGUMENT, .argument = argument, .block = UINT32_MAX};
    t.accesses[i] = (sg__access){.node = t.relaxed.footprint.n - 1, .start = start, .bytes = bytes, .write = write};
}

static void writes(uint16_t argument, const stepgraph_pin *pin)
{
    declare(argument, stepgraph_pin_address(pin), stepgraph_pin_bytes(pin), true);
}

static void reads(uint16_t argument, const stepgraph_pin *pin)
{
    declare(argument, stepgraph_pin_address(pin), stepgraph_pin_bytes(pin), false);
}

static void begin_with(uint32_t flags)
{
    t.step = step_make(session, "train", flags | STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    begin_recording(t.step);
}

static void begin(void)
{
    begin_with(0);
}

/* While the step is relaxed as the test wants it. */
static void wear(bool on)
{
    t.step->relaxed = on ? &t.relaxed : NULL;
    t.step->exec = on ? t.other : t.exec;
}

static CUgraphExec own_executable(const sg__graph_edge *edges, size_t n)
{
    wear(true);
    t.own[t.n_own] = NULL;
    OK(sg__relax_executables(t.step, edges, n, 1, &t.own[t.n_own]));
    wear(false);
    return t.own[t.n_own++];
}

static void end(void)
{
    sg__footprint *footprint = &t.relaxed.footprint;
    sg__order_input input;

    OK(stepgraph_step_end(t.step));
    ck_assert_uint_eq(t.step->read.n_nodes, footprint->n);
    OK(sg__graph_edges_read(t.step->session->driver, &t.step->read, &t.recorded));
    footprint->index = t.index;
    footprint->kinds = t.kinds;
    footprint->reasons = t.reasons;
    footprint->recorded = t.recorded.items;
    footprint->n_recorded = t.recorded.n;
    footprint->accesses = t.accesses;
    footprint->touches = t.touches;
    input = (sg__order_input){.n = footprint->n, .recorded = t.recorded.items, .n_recorded = t.recorded.n, .accesses = t.accesses,
                              .n_accesses = footprint->n_accesses, .kinds = t.kinds};
    OK(sg__order_build(&input, &t.relaxed.needed));
    t.exec = t.relaxed.recorded = t.step->exec;
    t.other = own_executable(t.relaxed.needed.edges, t.relaxed.needed.n_edges);
}

static stepgraph_status try(void)
{
    stepgraph_status status;

    wear(true);
    status = stepgraph_step_verify(t.step, &t.config, &t.report);
    wear(false);
    return status;
}

static void summarised(void)
{
    t.summary = (stepgraph_verify_summary)STEPGRAPH_VERIFY_SUMMARY_INIT;
    OK(stepgraph_verify_get_summary(t.report, &t.summary));
    if (getenv("SHOW") != NULL)
        puts(stepgraph_verify_text(t.report));
}

static void verify(void)
{
    stepgraph_verify_destroy(t.report);
    t.report = NULL;
    OK(try());
    summarised();
}

static stepgraph_verify_finding finding(uint32_t index)
{
    stepgraph_verify_finding found = STEPGRAPH_VERIFY_FINDING_INIT;

    OK(stepgraph_verify_get(t.report, index, &found));
    return found;
}

/* How many findings there are of a kind, and the first. */
static unsigned of_kind(stepgraph_verify_kind kind, stepgraph_verify_finding *first)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < t.summary.kept; i++) {
        stepgraph_verify_finding found = finding(i);
        if (found.kind == (uint32_t)kind && n++ == 0)
            *first = found;
    }
    return n;
}

#define VERDICT(want)                                                                                                            \
    ck_assert_msg(t.summary.verdict == (want), "%s instead of %s:\n%s", stepgraph_verify_verdict_name(t.summary.verdict),        \
                  stepgraph_verify_verdict_name(want), stepgraph_verify_text(t.report))

/* All that is found is one fault: of this kind, of this node, in the bytes of this memory, from an offset on, in which two values differ. */
static void only(stepgraph_verify_kind kind, uint32_t of_node, const char *memory, uint64_t offset, float before, float after, uint32_t argument)
{
    const unsigned char *x = (const unsigned char *)&before, *y = (const unsigned char *)&after;
    stepgraph_verify_finding found;
    uint64_t bytes = 0;

    for (unsigned i = 0; i < sizeof before; i++)
        if (x[i] != y[i] && bytes++ == 0)
            offset += i;

    VERDICT(STEPGRAPH_FAULTS_FOUND);
    ck_assert_msg(t.summary.findings == 1, "more was found:\n%s", stepgraph_verify_text(t.report));
    found = finding(0);
    ck_assert_msg(found.kind == (uint32_t)kind, "another kind:\n%s", found.text);
    ck_assert_uint_eq(found.fault, 1);
    ck_assert_uint_eq(found.node, of_node);
    ck_assert_str_eq(found.memory, memory);
    ck_assert_uint_eq(found.offset, offset);
    ck_assert_uint_eq(found.bytes, bytes);
    ck_assert_uint_eq(found.argument, argument);
    ck_assert_ptr_nonnull(strstr(found.text, memory));
    ck_assert_ptr_nonnull(strstr(stepgraph_verify_text(t.report), found.text));
    ck_assert_ptr_nonnull(strstr(stepgraph_verify_text(t.report), "faults found"));
    ck_assert_str_ne(found.advice, "");
}

static stepgraph_pin *filled(stepgraph_role role, const char *name, float first)
{
    stepgraph_pin *pin = pin_make(session, role, COUNT * 4, name);
    float v[COUNT];

    for (int i = 0; i < COUNT; i++)
        v[i] = first + (float)i;
    put_bytes(stepgraph_pin_address(pin), v, sizeof v);
    return pin;
}

static stepgraph_pin *table_of(const char *name, CUdeviceptr first, CUdeviceptr second)
{
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_CONST, 16, name);

    put_bytes(stepgraph_pin_address(pin), (CUdeviceptr[2]){first, second}, 16);
    return pin;
}

/* Nodes that touch what they say. */
static void plain_add(stepgraph_pin *pin, float v)
{
    CUdeviceptr p = stepgraph_pin_address(pin);
    int n = COUNT;

    node(kernels.addn, COUNT, (void *[]){&p, &v, &n});
    writes(0, pin);
}

static void plain_copy(stepgraph_pin *to, stepgraph_pin *from)
{
    CUdeviceptr d = stepgraph_pin_address(to), s = stepgraph_pin_address(from);

    node(kernels.copyf, 1, (void *[]){&d, &s});
    writes(0, to);
    reads(1, from);
}

/* ---- clean steps ------------------------------------------------------------------------------------------------- */

static stepgraph_pin *a, *b, *c;

static void three(void)
{
    a = filled(STEPGRAPH_ROLE_STATE, "a", 1);
    b = filled(STEPGRAPH_ROLE_STATE, "b", 100);
    c = filled(STEPGRAPH_ROLE_OUTPUT, "c", 1000);
}

/* Nodes that write or read where a table points, which nothing says. */
static void to_table(const stepgraph_pin *table, const stepgraph_pin *from)
{
    CUdeviceptr p = stepgraph_pin_address(table), s = stepgraph_pin_address(from);

    node(hidden("to_table"), 1, (void *[]){&p, &s});
    reads(0, table);
    reads(1, from);
}

static void from_table(const stepgraph_pin *into, const stepgraph_pin *table)
{
    CUdeviceptr p = stepgraph_pin_address(into), q = stepgraph_pin_address(table);

    node(hidden("from_table"), 1, (void *[]){&p, &q});
    writes(0, into);
    reads(1, table);
}

static void clean_step(void)
{
    three();
    begin();
    plain_add(a, 1);
    plain_add(b, 2);
    plain_copy(c, a);
    plain_copy(a, b);
    plain_add(b, 3);
    end();
}

START_TEST(clean_step_is_not_accused)
{
    float before[3][COUNT], after[3][COUNT];
    stepgraph_pin *pins[3];

    clean_step();
    pins[0] = a, pins[1] = b, pins[2] = c;
    for (int i = 0; i < 3; i++)
        bytes_at(stepgraph_pin_address(pins[i]), before[i], sizeof before[i]);
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
    ck_assert_uint_eq(t.summary.findings, 0);
    ck_assert_uint_eq(t.summary.nodes, 5);
    ck_assert_uint_eq(t.summary.nodes_run, 5);
    ck_assert_uint_eq(t.summary.nodes_isolated, 5);
    ck_assert_uint_eq(t.summary.bytes, 3 * COUNT * 4);
    ck_assert_uint_eq(t.summary.ranges, 3);
    ck_assert_uint_eq(t.summary.orders, 4);
    ck_assert_uint_eq(t.summary.repeats, 2);
    ck_assert_uint_eq(t.summary.steps, 3);
    ck_assert_uint_eq(t.summary.software, unit_has_controls() != 0);
    ck_assert_ptr_nonnull(strstr(stepgraph_verify_text(t.report), "no fault found on this data"));
    ck_assert_ptr_nonnull(strstr(stepgraph_verify_json(t.report), "\"verdict\": \"NO_FAULT_FOUND\""));
    for (int i = 0; i < 3; i++) {
        bytes_at(stepgraph_pin_address(pins[i]), after[i], sizeof after[i]);
        ck_assert_mem_eq(before[i], after[i], sizeof after[i]);
    }
    ck_assert_uint_eq(step_stats(t.step).replays, 0);
}
END_TEST

/* A library counts its calls: what it holds is neither put back nor compared. */
START_TEST(memory_of_a_library_is_left_alone)
{
    stepgraph_pin *library;
    float before[COUNT], after[COUNT];

    three();
    library = filled(STEPGRAPH_ROLE_LIBRARY, "library", 0);
    begin();
    plain_add(a, 1);
    plain_add(library, 1);
    plain_copy(c, a);
    plain_add(b, 2);
    plain_add(library, 1);
    end();
    bytes_at(stepgraph_pin_address(library), before, sizeof before);
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
    ck_assert_uint_eq(t.summary.bytes, 3 * COUNT * 4);
    ck_assert_uint_eq(t.summary.ranges, 3);
    bytes_at(stepgraph_pin_address(library), after, sizeof after);
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_gt(after[i], before[i] + 2);
}
END_TEST

/* Copies, sets and memory that only an argument leads to, several ranges of one pin, and a node without any. */
START_TEST(all_kinds_of_nodes_run_alone)
{
    CUdeviceptr other = device_make(64), p;

    three();
    begin();
    plain_add(a, 1);
    p = stepgraph_pin_address(a);
    CU(MemcpyDtoDAsync(other, p, 64, stream));
    next();
    declare(1, p, 64, false);
    declare(0, other, 64, true);
    CU(MemsetD8Async(p + 16, 7, 16, stream));
    next();
    declare(0, p + 16, 16, true);
    node(kernels.nop, 1, NULL);
    p = stepgraph_pin_address(b) + 8;
    node(kernels.copyf, 1, (void *[]){&p, &other});
    declare(0, p, 4, true);
    declare(1, other, 64, false);
    end();
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
    ck_assert_uint_eq(t.summary.nodes_isolated, 5);
    ck_assert_uint_eq(t.summary.bytes, 3 * COUNT * 4 + 64);
    ck_assert_uint_eq(t.summary.ranges, 4 + 3 + 1 + 1); /* a is cut at 16, 32 and 64, b at 8 and 12. */
}
END_TEST

static stepgraph_pin *fed;

/* How often each of the steps 7, 8 and 9 was fed. */
static stepgraph_status feed_step(void *user, stepgraph_step *step, uint64_t k)
{
    float v = (float)k;

    ck_assert_ptr_eq(step, t.step);
    ck_assert(k >= 7 && k < 10);
    ((unsigned *)user)[k - 7]++;
    return stepgraph_pin_feed(fed, &v, sizeof v);
}

/* Afterwards nothing was fed: neither the value nor the account of it is another. */
START_TEST(steps_are_fed_and_feeds_put_back)
{
    unsigned calls[3] = {0};
    stepgraph_pin *first, *last;
    float before = 42;

    three();
    first = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "first");
    fed = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "rate");
    last = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "last");
    OK(stepgraph_pin_feed(fed, &before, sizeof before));
    begin_with(STEPGRAPH_STEP_STRICT_FEEDS);
    plain_copy(c, fed);
    plain_add(a, 1);
    end();
    OK(stepgraph_step_replay(t.step));
    t.config.feed = feed_step;
    t.config.user = calls;
    t.config.first = 7;
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
    /* A control, three more, four orders and two relaxed runs; and twice one step, node by node. */
    ck_assert_uint_eq(calls[0], 10 + 2);
    ck_assert_uint_eq(calls[1], 10);
    ck_assert_uint_eq(calls[2], 10);
    ck_assert(pin_float(fed) == 42);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(t.step), "rate");
    /* What lies between two that are fed travels along with them. */
    OK(stepgraph_pin_feed(first, &before, sizeof before));
    OK(stepgraph_pin_feed(last, &before, sizeof before));
    OK(stepgraph_session_flush(session));
    ck_assert(pin_float(fed) == 42);
    /* And what was fed before it still counts. */
    OK(stepgraph_pin_feed(fed, &before, sizeof before));
    verify();
    OK(stepgraph_step_replay(t.step));
}
END_TEST

/* Nor by the account of another step that reads the same. */
START_TEST(feeds_of_other_steps_are_put_back)
{
    unsigned calls[3] = {0};
    stepgraph_step *other;
    float before = 42;

    three();
    fed = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "rate");
    OK(stepgraph_pin_feed(fed, &before, sizeof before));
    other = step_make(session, "evaluate", STEPGRAPH_STEP_STRICT_FEEDS);
    begin_recording(other);
    copyf(stream, stepgraph_pin_address(b), stepgraph_pin_address(fed));
    OK(stepgraph_step_end(other));
    begin();
    plain_copy(c, fed);
    plain_add(a, 1);
    end();
    OK(stepgraph_step_replay(other));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(other), "rate");
    t.config.feed = feed_step;
    t.config.user = calls;
    t.config.first = 7;
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(other), "rate");
    drop_step(other);
}
END_TEST

static stepgraph_pin *late;

static stepgraph_status feed_late(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    if (late == NULL)
        late = pin_make(session, STEPGRAPH_ROLE_FEED, 4096, "late");
    return stepgraph_pin_feed_f32(fed, (float)k);
}

/* A pin that the callback makes was fed nothing when it began. */
START_TEST(feeds_are_put_back_where_the_callback_makes_another)
{
    stepgraph_pin *beside;
    float rate = 45;

    three();
    late = NULL;
    beside = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "beside");
    fed = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "rate");
    OK(stepgraph_pin_feed_f32(fed, 42));
    OK(stepgraph_pin_feed_f32(beside, 43));
    begin();
    plain_copy(c, fed);
    plain_add(a, 1);
    end();
    t.config.feed = feed_late;
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
    ck_assert(pin_float(fed) == 42);
    /* What lies between two that are fed travels along with them. */
    OK(stepgraph_pin_feed_f32(beside, 44));
    OK(stepgraph_pin_feed(late, &rate, sizeof rate));
    OK(stepgraph_session_flush(session));
    ck_assert(pin_float(fed) == 42);
}
END_TEST

START_TEST(nodes_to_isolate_are_chosen_evenly)
{
    three();
    begin();
    for (int i = 0; i < 12; i++)
        plain_add(i % 2 == 0 ? a : b, 1);
    end();
    t.config.nodes = 5;
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
    ck_assert_uint_eq(t.summary.nodes_run, 12);
    ck_assert_uint_eq(t.summary.nodes_isolated, 5);
}
END_TEST

START_TEST(parts_can_be_left_out)
{
    clean_step();
    t.config.flags = STEPGRAPH_VERIFY_NO_ISOLATION | STEPGRAPH_VERIFY_NO_ORDERS;
    verify();
    ck_assert_uint_eq(t.summary.nodes_run, 5);
    ck_assert_uint_eq(t.summary.nodes_isolated, 0);
    ck_assert_uint_eq(t.summary.orders, 0);
    ck_assert_uint_eq(t.summary.repeats, 2);
    t.config.flags = STEPGRAPH_VERIFY_NO_WRITES | STEPGRAPH_VERIFY_NO_ISOLATION | STEPGRAPH_VERIFY_NO_REPLAYS;
    verify();
    ck_assert_uint_eq(t.summary.nodes_run, 0);
    ck_assert_uint_eq(t.summary.orders, 4);
    ck_assert_uint_eq(t.summary.repeats, 0);
    t.config.flags = 1u << 4;
    FAILS(STEPGRAPH_ERR_ARGUMENT, try(), "unknown verify flags");
    t.config.flags = 0;
    t.config.steps = 65;
    FAILS(STEPGRAPH_ERR_ARGUMENT, try(), "65 steps", "at most 64");
}
END_TEST

/* As they were recorded: a cooperative kernel is one alone, too. */
START_TEST(node_alone_keeps_its_attributes)
{
    CUresult (*set)(CUgraphNode, CUlaunchAttributeID, const CUlaunchAttributeValue *);
    CUresult (*get)(CUgraphNode, CUlaunchAttributeID, CUlaunchAttributeValue *);
    CUlaunchAttributeValue value = {.cooperative = 1}, found = {.cooperative = 0};
    const sg__driver *driver;
    CUgraph alone = NULL;
    CUgraphNode only_one;
    size_t n = 1;

    three();
    begin();
    plain_add(a, 1);
    end();
    driver = t.step->session->driver;
    *(void **)&set = stepgraph_session_symbol(session, "cuGraphKernelNodeSetAttribute", 11000);
    *(void **)&get = stepgraph_session_symbol(session, "cuGraphKernelNodeGetAttribute", 11000);
    ck_assert_int_eq(set(t.step->read.nodes[0].handle, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value), CUDA_SUCCESS);
    OK(sg__single_make(driver, stepgraph_session_context(session), t.step->graph, CU_GRAPH_NODE_TYPE_KERNEL, t.step->read.nodes[0].handle, &alone));
    ck_assert_int_eq(driver->GraphGetNodes(alone, &only_one, &n), CUDA_SUCCESS);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(get(only_one, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &found), CUDA_SUCCESS);
    ck_assert_int_eq(found.cooperative, 1);
    ck_assert_int_eq(driver->GraphDestroy(alone), CUDA_SUCCESS);
}
END_TEST

/* ---- accesses that are hidden ------------------------------------------------------------------------------------ */

START_TEST(write_through_a_table_is_found)
{
    stepgraph_pin *table;

    three();
    table = table_of("table", stepgraph_pin_address(b) + 20, 0);
    begin();
    plain_add(a, 1);
    to_table(table, a);
    plain_add(c, 1);
    end();
    verify();
    only(STEPGRAPH_VERIFY_HIDDEN_WRITE, 1, "state 'b'", 20, 105, 2, UINT32_MAX);
    ck_assert_ptr_nonnull(strstr(finding(0).text, "to_table"));
}
END_TEST

/* On this data it leaves every byte as it was. */
START_TEST(write_of_the_same_bytes_is_found_over_filled_memory)
{
    stepgraph_pin *table;
    float same, unfilled;

    three();
    table = table_of("table", stepgraph_pin_address(b) + 20, 0);
    same = 105; /* b[5] */
    memset(&unfilled, 0xff, sizeof unfilled);
    put_bytes(stepgraph_pin_address(a), &same, sizeof same);
    begin();
    to_table(table, a);
    plain_add(c, 1);
    end();
    verify();
    only(STEPGRAPH_VERIFY_HIDDEN_WRITE, 0, "state 'b'", 20, unfilled, 105, UINT32_MAX);
    ck_assert_ptr_nonnull(strstr(finding(0).text, "filled with 0xff"));
    t.config.flags = STEPGRAPH_VERIFY_NO_ISOLATION;
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
}
END_TEST

/* Far inside of memory that is read piece by piece. */
START_TEST(write_of_the_same_bytes_is_found_far_behind)
{
    enum { AT = 40004 };
    stepgraph_pin *big = pin_make(session, STEPGRAPH_ROLE_STATE, 65536, "big"), *table;
    float unfilled;

    three();
    table = table_of("table", stepgraph_pin_address(big) + AT, 0);
    memset(&unfilled, 0xff, sizeof unfilled);
    put_bytes(stepgraph_pin_address(a), &(float){0}, sizeof(float));
    begin();
    to_table(table, a);
    plain_add(c, 1);
    end();
    verify();
    only(STEPGRAPH_VERIFY_HIDDEN_WRITE, 0, "state 'big'", AT, unfilled, 0, UINT32_MAX);
}
END_TEST

/* What a kernel makes of a number and of memory that is filled. */
static float nan_sum(float v)
{
    CUdeviceptr p = device_make(4), filled_with = device_make(4), table = device_make(8);

    put_float(p, v);
    put_bytes(filled_with, &(unsigned){UINT32_MAX}, 4);
    put_bytes(table, &filled_with, 8);
    launch(stream, hidden("from_table"), 1, (void *[]){&p, &table});
    return float_at(p);
}

START_TEST(read_through_a_table_is_found)
{
    stepgraph_pin *table;

    three();
    table = table_of("table", stepgraph_pin_address(b) + 8, 0);
    begin();
    plain_add(c, 1);
    from_table(a, table);
    plain_add(a, 1);
    plain_add(c, 1);
    end();
    verify();
    only(STEPGRAPH_VERIFY_HIDDEN_READ, 1, "state 'a'", 0, 1 + 102, nan_sum(1), 0);
    ck_assert_uint_eq(t.summary.nodes_isolated, 4);
}
END_TEST

/* Where many nodes read something, the first are compared byte by byte and the others by hash. A node that is none of them is not accused. */
START_TEST(many_hidden_reads_are_all_found)
{
    enum { READERS = 20 };
    unsigned exact = 0, drifting = 0;
    CUdeviceptr p;
    stepgraph_pin *table;

    three();
    table = table_of("table", stepgraph_pin_address(b) + 8, 0);
    begin();
    for (int i = 0; i < READERS; i++)
        from_table(a, table);
    p = stepgraph_pin_address(c);
    node(hidden("drift"), 1, (void *[]){&p});
    declare(0, p, 4, true);
    end();
    t.config.steps = 1;
    verify();
    VERDICT(STEPGRAPH_FAULTS_FOUND);
    ck_assert_uint_eq(t.summary.faults, READERS);
    for (uint32_t i = 0; i < t.summary.kept; i++) {
        stepgraph_verify_finding found = finding(i);
        if (found.fault == 0) {
            drifting += found.kind == STEPGRAPH_VERIFY_UNSTEADY_NODE && found.node == READERS;
            continue;
        }
        ck_assert_uint_eq(found.kind, STEPGRAPH_VERIFY_HIDDEN_READ);
        ck_assert_uint_eq(found.node, i);
        ck_assert_str_eq(found.memory, "state 'a'");
        exact += found.bytes > 0;
    }
    ck_assert_uint_eq(exact, 16);
    ck_assert_uint_eq(drifting, 1);
    ck_assert_ptr_nonnull(strstr(finding(READERS - 1).text, "some bytes of state 'a'"));
}
END_TEST

START_TEST(read_and_write_through_a_table_are_both_found)
{
    stepgraph_verify_finding found;
    stepgraph_pin *table;
    CUdeviceptr p;
    float v = 3;

    three();
    table = table_of("table", stepgraph_pin_address(a), stepgraph_pin_address(b));
    begin();
    p = stepgraph_pin_address(table);
    node(hidden("through_table"), 1, (void *[]){&p, &v});
    reads(0, table);
    plain_add(c, 1);
    end();
    verify();
    VERDICT(STEPGRAPH_FAULTS_FOUND);
    ck_assert_uint_eq(of_kind(STEPGRAPH_VERIFY_HIDDEN_WRITE, &found), 1);
    ck_assert_str_eq(found.memory, "state 'b'");
    ck_assert_uint_eq(found.node, 0);
    ck_assert_uint_eq(of_kind(STEPGRAPH_VERIFY_HIDDEN_READ, &found), 1);
    ck_assert_str_eq(found.memory, "state 'b'"); /* Where the result is another. */
    ck_assert_uint_eq(t.summary.findings, 2);
}
END_TEST

/* The two tensors are views of one buffer; the kernel is given the first and goes on into the second. */
START_TEST(view_that_a_kernel_leaves_is_found)
{
    CUdeviceptr flat = device_make(2 * 16 * 4), p = flat;
    float v = 1;
    int n = 20;
    stepgraph_pin *first = pin_adopt(session, STEPGRAPH_ROLE_STATE, flat, 64, "first"),
                  *second = pin_adopt(session, STEPGRAPH_ROLE_STATE, flat + 64, 64, "second");

    three();
    begin();
    node(hidden("add_all"), 20, (void *[]){&p, &v, &n});
    writes(0, first);
    plain_add(a, 1);
    p = flat + 64;
    n = 16;
    node(hidden("add_all"), 16, (void *[]){&p, &v, &n});
    writes(0, second);
    end();
    verify();
    VERDICT(STEPGRAPH_FAULTS_FOUND);
    ck_assert_uint_eq(finding(0).kind, STEPGRAPH_VERIFY_HIDDEN_WRITE);
    ck_assert_uint_eq(finding(0).node, 0);
    ck_assert_str_eq(finding(0).memory, "state 'second'");
    ck_assert_uint_lt(finding(0).offset, 4);
    ck_assert_uint_ge(finding(0).bytes, 4);
    ck_assert_uint_le(finding(0).bytes, 16);
}
END_TEST

START_TEST(false_read_declaration_is_found)
{
    CUdeviceptr p, q;

    three();
    begin();
    plain_add(a, 1);
    p = stepgraph_pin_address(b) + 12;
    q = stepgraph_pin_address(a);
    node(kernels.copyf, 1, (void *[]){&p, &q});
    reads(0, b);
    reads(1, a);
    plain_add(c, 1);
    end();
    verify();
    only(STEPGRAPH_VERIFY_FALSE_READ, 1, "state 'b'", 12, 103, 2, 0);
}
END_TEST

/* What a barrier touches does not matter: everything waits for it. */
START_TEST(barrier_may_touch_anything)
{
    stepgraph_pin *table;
    CUdeviceptr p;
    float v = 3;

    three();
    table = table_of("table", stepgraph_pin_address(a), stepgraph_pin_address(b));
    begin();
    plain_add(a, 1);
    p = stepgraph_pin_address(table);
    node(hidden("through_table"), 1, (void *[]){&p, &v});
    t.kinds[1] = SG__ORDER_BARRIER;
    plain_add(b, 1);
    plain_add(c, 1);
    end();
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
    ck_assert_uint_eq(t.summary.nodes_run, 3);
    ck_assert_uint_eq(t.summary.nodes_isolated, 3);
}
END_TEST

/*
 * Two reductions share a counter that each sets back to zero. Declared as what it is, they wait for each other. Declared read-only it
 * escapes, whatever is done to single nodes or to their order: only overlapping ones go wrong, which a card may show and cusim does not.
 */
static void counters(bool as_written)
{
    stepgraph_pin *counter = pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4, "counter");
    CUdeviceptr out, x, count = stepgraph_pin_address(counter);
    int n = COUNT;

    three();
    put_bytes(count, &(unsigned){0}, 4);
    begin();
    out = stepgraph_pin_address(c);
    x = stepgraph_pin_address(a);
    node(hidden("last_adds"), COUNT, (void *[]){&out, &x, &count, &n});
    declare(0, out, 4, true);
    reads(1, a);
    declare(2, count, 4, as_written);
    out += 4;
    x = stepgraph_pin_address(b);
    node(hidden("last_adds"), COUNT, (void *[]){&out, &x, &count, &n});
    declare(0, out, 4, true);
    reads(1, b);
    declare(2, count, 4, as_written);
    end();
}

START_TEST(counter_that_goes_back_to_zero_is_ordered_as_a_write)
{
    counters(true);
    ck_assert_uint_eq(t.relaxed.needed.n_edges, 1);
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
}
END_TEST

START_TEST(counter_that_goes_back_to_zero_escapes_as_a_read)
{
    counters(false);
    ck_assert_uint_eq(t.relaxed.needed.n_edges, 0);
    t.config.flags = STEPGRAPH_VERIFY_NO_REPLAYS;
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
}
END_TEST

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* Both nodes write `c` through tables, and nothing says so: the edge between them is missing. */
static void missing_edge(void)
{
    stepgraph_pin *table;

    three();
    table = table_of("table", stepgraph_pin_address(c), 0);
    begin();
    to_table(table, a);
    to_table(table, b);
    end();
    ck_assert_uint_eq(t.relaxed.needed.n_edges, 0);
}

START_TEST(missing_edge_shows_in_another_order)
{
    stepgraph_verify_finding found;

    missing_edge();
    t.config.flags = STEPGRAPH_VERIFY_NO_WRITES | STEPGRAPH_VERIFY_NO_ISOLATION | STEPGRAPH_VERIFY_NO_REPLAYS;
    t.config.orders = 20; /* One in two has them the other way round. */
    verify();
    VERDICT(STEPGRAPH_FAULTS_FOUND);
    ck_assert_uint_gt(of_kind(STEPGRAPH_VERIFY_REORDERED, &found), 2);
    ck_assert_uint_lt(of_kind(STEPGRAPH_VERIFY_REORDERED, &found), 19); /* No order is like all others. */
    ck_assert_uint_eq(found.seed, 0);
    ck_assert_uint_eq(found.step, 0);
    ck_assert_str_eq(found.memory, "output 'c'");
    ck_assert_uint_eq(found.offset, 0 + (found.address - stepgraph_pin_address(c)));
    ck_assert_uint_gt(found.bytes, 0);
    ck_assert_uint_eq(t.summary.orders, 21);
}
END_TEST

/* The same of two pins without a gap between them: each is a finding of its own. */
START_TEST(neighbours_that_differ_are_told_one_by_one)
{
    CUdeviceptr memory = device_make(2 * sizeof(float));
    stepgraph_pin *tables[2];
    unsigned both = 0, n[2] = {0};

    three();
    for (unsigned i = 0; i < 2; i++) {
        pin_adopt(session, STEPGRAPH_ROLE_OUTPUT, memory + i * sizeof(float), sizeof(float), i == 0 ? "x" : "y");
        tables[i] = table_of(i == 0 ? "of x" : "of y", memory + i * sizeof(float), 0);
    }
    begin();
    for (unsigned i = 0; i < 2; i++) {
        to_table(tables[i], a);
        to_table(tables[i], b);
    }
    end();
    t.config.flags = STEPGRAPH_VERIFY_NO_WRITES | STEPGRAPH_VERIFY_NO_ISOLATION | STEPGRAPH_VERIFY_NO_REPLAYS;
    t.config.orders = 20;
    verify();
    VERDICT(STEPGRAPH_FAULTS_FOUND);
    for (uint32_t i = 0; i < t.summary.kept; i++) {
        stepgraph_verify_finding found = finding(i);
        ck_assert_uint_eq(found.kind, STEPGRAPH_VERIFY_REORDERED);
        ck_assert_uint_le(found.bytes, sizeof(float));
        n[strcmp(found.memory, "output 'y'") == 0]++;
        both += i > 0 && finding(i - 1).seed == found.seed ? 1 : 0;
    }
    ck_assert_uint_gt(both, 0);
    ck_assert_uint_gt(n[0], both);
    ck_assert_uint_gt(n[1], both);
}
END_TEST

START_TEST(relaxed_step_that_differs_is_found)
{
    const sg__graph_edge wrong = {.from = 1, .to = 0};
    stepgraph_verify_finding found;

    missing_edge();
    t.other = own_executable(&wrong, 1);
    t.config.flags = STEPGRAPH_VERIFY_NO_WRITES | STEPGRAPH_VERIFY_NO_ISOLATION | STEPGRAPH_VERIFY_NO_ORDERS;
    t.config.first = 5;
    verify();
    VERDICT(STEPGRAPH_FAULTS_FOUND);
    ck_assert_uint_eq(of_kind(STEPGRAPH_VERIFY_RELAXED, &found), 1);
    ck_assert_uint_eq(found.step, 5);
    ck_assert_str_eq(found.memory, "output 'c'");
    ck_assert_uint_eq(t.summary.findings, 1);
    ck_assert_uint_eq(t.summary.repeats, 1);
}
END_TEST

/* Replays show it only where they have the luck to run in another order: on cusim, one that is drawn. */
START_TEST(missing_edge_shows_in_replays_with_luck)
{
    enum { SEEDS = 8 };
    stepgraph_verify_finding found;
    unsigned shown = 0;

    missing_edge();
    t.config.flags = STEPGRAPH_VERIFY_NO_WRITES | STEPGRAPH_VERIFY_NO_ISOLATION | STEPGRAPH_VERIFY_NO_ORDERS;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        driver_seed(seed);
        t.other = own_executable(NULL, 0); /* An executable keeps the order that was drawn for it. */
        verify();
        shown += t.summary.verdict == STEPGRAPH_FAULTS_FOUND;
        if (t.summary.verdict == STEPGRAPH_FAULTS_FOUND)
            ck_assert_uint_eq(of_kind(STEPGRAPH_VERIFY_RELAXED, &found), 1);
    }
    ck_assert_uint_gt(shown, 0);
    ck_assert_uint_lt(shown, SEEDS);
}
END_TEST

/* What is held against it is another graph than that of the nodes: as where nodes work together while they run. */
START_TEST(nodes_that_do_something_else_alone_are_found)
{
    const sg__graph_edge wrong = {.from = 1, .to = 0};
    stepgraph_verify_finding found;

    missing_edge();
    t.relaxed.recorded = own_executable(&wrong, 1);
    t.config.flags = STEPGRAPH_VERIFY_NO_ISOLATION | STEPGRAPH_VERIFY_NO_ORDERS | STEPGRAPH_VERIFY_NO_REPLAYS;
    verify();
    VERDICT(STEPGRAPH_FAULTS_FOUND);
    ck_assert_uint_eq(of_kind(STEPGRAPH_VERIFY_ONE_BY_ONE, &found), 1);
    ck_assert_str_eq(found.memory, "output 'c'");
}
END_TEST

/* ---- what cannot be compared ------------------------------------------------------------------------------------- */

START_TEST(step_that_does_not_repeat_itself_is_not_comparable)
{
    stepgraph_verify_finding found;
    CUdeviceptr p;

    three();
    begin();
    plain_add(a, 1);
    p = stepgraph_pin_address(c) + 4;
    node(hidden("drift"), 1, (void *[]){&p});
    writes(0, c);
    plain_add(b, 1);
    end();
    verify();
    VERDICT(STEPGRAPH_NOT_COMPARABLE);
    ck_assert_uint_eq(t.summary.faults, 0);
    ck_assert_uint_ge(of_kind(STEPGRAPH_VERIFY_UNSTEADY, &found), 1);
    ck_assert_str_eq(found.memory, "output 'c'");
    ck_assert(found.offset >= 4 && found.offset < 8);
    ck_assert_uint_eq(found.fault, 0);
    ck_assert_uint_eq(of_kind(STEPGRAPH_VERIFY_UNSTEADY_NODE, &found), 1);
    ck_assert_uint_eq(found.node, 1);
    ck_assert_uint_eq(t.summary.bytes_unsteady, COUNT * 4);
    ck_assert_ptr_nonnull(strstr(stepgraph_verify_text(t.report), "could not be compared"));
}
END_TEST

/* More is unsteady than is kept, and what is found then is kept all the same. */
START_TEST(fault_behind_a_thousand_unsteady_pins_is_told)
{
    enum { PINS = 1024 };
    CUdeviceptr memory = device_make(4 * PINS), p = memory;
    stepgraph_verify_finding found;
    stepgraph_pin *table;
    char name[16];

    three();
    for (CUdeviceptr i = 0; i < PINS; i++) {
        snprintf(name, sizeof name, "pin %u", (unsigned)i);
        pin_adopt(session, STEPGRAPH_ROLE_STATE, memory + 4 * i, 4, name);
    }
    table = table_of("table", stepgraph_pin_address(b) + 20, 0);
    begin();
    node(hidden("drift"), 1, (void *[]){&p});
    declare(0, memory, 4, true);
    for (uint64_t bytes = 4; bytes < 4 * PINS; bytes *= 2) {
        CU(MemcpyDtoDAsync(memory + bytes, memory, bytes, stream));
        next();
        declare(0, memory + bytes, bytes, true);
        declare(1, memory, bytes, false);
    }
    to_table(table, a);
    end();
    t.config.steps = 1;
    verify();
    VERDICT(STEPGRAPH_FAULTS_FOUND);
    ck_assert_uint_gt(t.summary.findings, t.summary.kept);
    ck_assert_uint_eq(of_kind(STEPGRAPH_VERIFY_HIDDEN_WRITE, &found), 1);
    ck_assert_str_eq(found.memory, "state 'b'");
    ck_assert_uint_eq(finding(0).fault, 1);
    ck_assert_ptr_nonnull(strstr(stepgraph_verify_text(t.report), found.text));
}
END_TEST

START_TEST(nodes_that_wait_for_their_like_are_not_run_alone)
{
    stepgraph_verify_finding found;

    three();
    begin();
    plain_add(a, 1);
    plain_add(b, 1);
    t.kinds[1] = SG__ORDER_COLLECTIVES;
    end();
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
    ck_assert_uint_eq(of_kind(STEPGRAPH_VERIFY_SKIPPED, &found), 1);
    ck_assert_uint_eq(found.node, 1);
    ck_assert_uint_eq(t.summary.nodes_run, 0);
    ck_assert_uint_eq(t.summary.orders, 4);
}
END_TEST

/* ---- through the public calls only ------------------------------------------------------------------------------- */

/* A step of four kernels: a += 1, the planted one, c += 1, b += 1; relaxed on four lanes, and verified. */
static stepgraph_relax_config relax_config;

static void planted(void (*body)(void))
{
    float one = 1;
    int n = COUNT;
    CUdeviceptr p;

    t.step = step_make(session, "train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    begin_recording(t.step);
    for (int i = 0; i < 3; i++) {
        p = stepgraph_pin_address(i == 0 ? a : i == 1 ? c : b);
        launch(stream, kernels.addn, COUNT, (void *[]){&p, &one, &n});
        if (i == 0)
            body();
    }
    OK(stepgraph_step_end(t.step));
    relax_config.lanes = 4;
    OK(stepgraph_step_relax(t.step, &relax_config, NULL));
    OK(stepgraph_step_verify(t.step, &t.config, &t.report));
    summarised();
}

static stepgraph_pin *plant_table;

static void table_between(void)
{
    CUdeviceptr p = stepgraph_pin_address(plant_table);
    float v = 3;

    launch(stream, hidden("through_table"), 1, (void *[]){&p, &v});
}

static void public_made(void)
{
    made();
    three();
    relax_config = (stepgraph_relax_config)STEPGRAPH_RELAX_CONFIG_INIT;
    plant_table = table_of("table", stepgraph_pin_address(a), stepgraph_pin_address(b));
}

START_TEST(pointer_table_is_found_and_a_barrier_helps)
{
    static const stepgraph_relax_kernel barrier = {.pattern = "through_*", .argument = UINT32_MAX};
    stepgraph_verify_finding found;

    planted(table_between);
    VERDICT(STEPGRAPH_FAULTS_FOUND);
    ck_assert_uint_eq(of_kind(STEPGRAPH_VERIFY_HIDDEN_WRITE, &found), 1);
    ck_assert_uint_eq(found.node, 1);
    ck_assert_str_eq(found.node_name, "through_table");
    ck_assert_str_eq(found.memory, "state 'b'");
    ck_assert_uint_eq(of_kind(STEPGRAPH_VERIFY_HIDDEN_READ, &found), 1);
    ck_assert_uint_eq(found.node, 1);

    stepgraph_verify_destroy(t.report);
    t.report = NULL;
    relax_config.barriers = &barrier;
    relax_config.n_barriers = 1;
    planted(table_between);
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
    ck_assert_uint_eq(t.summary.nodes, 4);
    ck_assert_uint_eq(t.summary.nodes_isolated, 3);
}
END_TEST

static void copy_between(void)
{
    CUdeviceptr d = stepgraph_pin_address(b), s = stepgraph_pin_address(a);

    launch(stream, kernels.copyf, 1, (void *[]){&d, &s});
}

START_TEST(false_declaration_of_an_argument_is_found)
{
    static const stepgraph_relax_kernel reads_all = {.pattern = "copyf", .argument = UINT32_MAX};
    stepgraph_verify_finding found;

    relax_config.reads = &reads_all;
    relax_config.n_reads = 1;
    planted(copy_between);
    VERDICT(STEPGRAPH_FAULTS_FOUND);
    ck_assert_uint_eq(of_kind(STEPGRAPH_VERIFY_FALSE_READ, &found), 1);
    ck_assert_uint_eq(found.node, 1);
    ck_assert_uint_eq(found.argument, 0);
    ck_assert_str_eq(found.memory, "state 'b'");
}
END_TEST

static stepgraph_pin *half[2];

static void over_both(void)
{
    CUdeviceptr p = stepgraph_pin_address(half[0]);
    float v = 1;
    int n = 20;

    launch(stream, hidden("add_all"), 20, (void *[]){&p, &v, &n});
}

START_TEST(views_of_a_flat_buffer_are_found)
{
    CUdeviceptr flat = device_make(128);
    stepgraph_verify_finding found;

    half[0] = pin_adopt(session, STEPGRAPH_ROLE_STATE, flat, 64, "first");
    half[1] = pin_adopt(session, STEPGRAPH_ROLE_STATE, flat + 64, 64, "second");
    planted(over_both);
    VERDICT(STEPGRAPH_FAULTS_FOUND);
    ck_assert_uint_ge(of_kind(STEPGRAPH_VERIFY_HIDDEN_WRITE, &found), 1);
    ck_assert_uint_eq(found.node, 1);
    ck_assert_str_eq(found.memory, "state 'second'");
}
END_TEST

START_TEST(clean_step_of_the_public_calls_is_not_accused)
{
    stepgraph_verify *report = NULL;

    planted(copy_between);
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
    ck_assert_uint_eq(t.summary.findings, 0);
    ck_assert_uint_eq(t.summary.nodes_isolated, 4);
    /* What is replayed afterwards is the relaxed step. */
    OK(stepgraph_step_replay(t.step));
    OK(stepgraph_step_unrelax(t.step));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_verify(t.step, NULL, &report), "'train'", "as it was recorded", "stepgraph_step_relax()");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_verify(NULL, NULL, &report), "the step is NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_verify(t.step, NULL, NULL), "verify_out is NULL");
    OK(stepgraph_step_reset(t.step));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_verify(t.step, NULL, &report), "'train'", "record one first");
    ck_assert_ptr_null(report);
}
END_TEST

START_TEST(structs_of_other_sizes_are_read_and_filled)
{
    LONGER(stepgraph_verify_config, 16) longer;
    LONGER(stepgraph_verify_summary, 16) summary;
    stepgraph_verify_finding found = STEPGRAPH_VERIFY_FINDING_INIT;
    stepgraph_verify *report = NULL;

    planted(copy_between);
    memset(&longer, 0, sizeof longer);
    longer.known = t.config;
    longer.known.size = sizeof longer;
    OK(stepgraph_step_verify(t.step, &longer.known, &report));
    stepgraph_verify_destroy(report);
    report = NULL;
    longer.known.reserved = 1;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_verify(t.step, &longer.known, &report), "reserved");
    longer.known.reserved = 0;
    longer.bytes[sizeof longer - 1] = 1;
    FAILS(STEPGRAPH_ERR_ABI, stepgraph_step_verify(t.step, &longer.known, &report), "stepgraph_verify_config");
    t.config.size = 4;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_verify(t.step, &t.config, &report), "stepgraph_verify_config");

    memset(&summary, 0xaa, sizeof summary);
    summary.known.size = sizeof summary;
    OK(stepgraph_verify_get_summary(t.report, &summary.known));
    ck_assert_uint_eq(summary.bytes[sizeof summary - 1], 0xaa);
    summary.known.size = 4;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_verify_get_summary(t.report, &summary.known), "stepgraph_verify_summary");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_verify_get_summary(NULL, &summary.known), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_verify_get(t.report, 0, &found), "no finding 0");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_verify_get(NULL, 0, &found), "NULL");
    ck_assert_str_eq(stepgraph_verify_text(NULL), "");
    ck_assert_str_eq(stepgraph_verify_json(NULL), "{}");
    ck_assert_str_eq(stepgraph_verify_verdict_name(STEPGRAPH_NO_FAULT_FOUND), "NO_FAULT_FOUND");
    ck_assert_str_eq(stepgraph_verify_verdict_name(99), "unknown verdict");
    stepgraph_verify_destroy(NULL);
}
END_TEST

/* ---- what ends it early ------------------------------------------------------------------------------------------ */

static int32_t stop_in(void *user, const char *phase, uint64_t done, uint64_t total)
{
    ck_assert_uint_le(done, total);
    return strcmp(phase, user) == 0;
}

START_TEST(progress_can_stop_it_and_all_is_put_back)
{
    static const char *const phases[] = {"control", "writes", "isolation", "orders", "replays"};
    float before[COUNT], after[COUNT];

    clean_step();
    bytes_at(stepgraph_pin_address(a), before, sizeof before);
    t.config.progress = stop_in;
    t.config.user = (void *)(uintptr_t)phases[_i];
    FAILS(STEPGRAPH_ERR_REFUSED, try(), "stopped", phases[_i]);
    ck_assert_ptr_null(t.report);
    bytes_at(stepgraph_pin_address(a), after, sizeof after);
    ck_assert_mem_eq(before, after, sizeof after);
    t.config.progress = NULL;
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
}
END_TEST

START_TEST(copies_go_to_host_memory_where_the_device_is_short)
{
    stepgraph_pin *table;

    three();
    table = table_of("table", stepgraph_pin_address(b) + 8, 0);
    begin();
    from_table(a, table);
    end();
    t.config.device_bytes = 1;
    verify();
    only(STEPGRAPH_VERIFY_HIDDEN_READ, 0, "state 'a'", 0, 1 + 102, nan_sum(1), 0);
    t.config.host_bytes = 1;
    FAILS(STEPGRAPH_ERR_MEMORY, try(), "'train'", "two copies", "room for 0 of them");
}
END_TEST

static stepgraph_status refuse(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    return k < 2 ? STEPGRAPH_OK : STEPGRAPH_ERR_UNSUPPORTED;
}

static unsigned refusals;

/* Whatever would take away what the verification goes on with. */
static stepgraph_status meddle(void *user, stepgraph_step *step, uint64_t k)
{
    stepgraph_verify *another = NULL;

    (void)user;
    (void)k;
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_unrelax(step), "'train' cannot be unrelaxed", "verification");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_relax(step, NULL, NULL), "'train' cannot be relaxed", "verification");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_reset(step), "'train' cannot be reset", "verification");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_verify(step, NULL, &another), "'train' cannot be verified", "verification");
    refusals++;
    return STEPGRAPH_OK;
}

START_TEST(callbacks_cannot_take_the_graph_away)
{
    refusals = 0;
    clean_step();
    t.config.feed = meddle;
    verify();
    VERDICT(STEPGRAPH_NO_FAULT_FOUND);
    ck_assert_uint_gt(refusals, 0);
    OK(stepgraph_step_unrelax(t.step));
}
END_TEST

START_TEST(feed_that_fails_is_passed_on)
{
    clean_step();
    t.config.feed = refuse;
    FAILS(STEPGRAPH_ERR_UNSUPPORTED, try(), "feed callback for step 2");
}
END_TEST

START_TEST(hanging_node_is_named_and_nothing_waits)
{
    unsigned long long ns = 400000000;
    CUdeviceptr p, q;
    stepgraph_pin *table;

    three();
    put_bytes(stepgraph_pin_address(b), &(unsigned){0}, 4);
    table = table_of("table", stepgraph_pin_address(b), 0);
    begin();
    plain_add(c, 1);
    p = stepgraph_pin_address(a);
    q = stepgraph_pin_address(table);
    node(hidden("stall"), 1, (void *[]){&p, &q, &ns});
    writes(0, a);
    reads(1, table);
    end();
    t.config.timeout_ns = 100000000;
    FAILS(STEPGRAPH_ERR_LOST, try(), "node 1", "stall", "filled with 0xff", "did not come to an end");
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_session_wait(session), "hangs", "train");
    CU(CtxSynchronize());
    OK(stepgraph_session_wait(session));
}
END_TEST

/*
 * It takes an address from where it finds 0xff. That loses the context, so this one has a process to itself: the program with an argument.
 */
START_TEST(node_that_follows_a_hidden_address_is_named)
{
    CUdeviceptr p, q, last;
    stepgraph_pin *table;

    three();
    last = stepgraph_pin_address(a);
    put_bytes(stepgraph_pin_address(b), &last, sizeof last);
    table = table_of("table", stepgraph_pin_address(b), 0);
    begin();
    plain_add(a, 1);
    p = stepgraph_pin_address(c);
    q = stepgraph_pin_address(table);
    node(hidden("chase"), 1, (void *[]){&p, &q});
    writes(0, c);
    reads(1, table);
    end();
    FAILS(STEPGRAPH_ERR_LOST, try(), "'train'", "node 1", "chase", "filled with 0xff", "CUDA_ERROR_");
}
END_TEST

/* ---- driver calls that fail -------------------------------------------------------------------------------------- */

static const char *const entries[] = {
    "cuMemGetInfo", "cuMemAlloc", "cuMemHostAlloc", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuModuleLoadData", "cuModuleGetFunction",
    "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemsetD8Async", "cuLaunchKernel", "cuGraphLaunch", "cuGraphCreate", "cuGraphAddKernelNode",
    "cuGraphAddMemcpyNode", "cuGraphAddMemsetNode", "cuGraphKernelNodeCopyAttributes", "cuGraphKernelNodeGetParams", "cuGraphMemcpyNodeGetParams",
    "cuGraphMemsetNodeGetParams", "cuGraphInstantiateWithParams", "cuGraphClone", "cuGraphNodeFindInClone", "cuGraphAddDependencies",
    "cuGraphRemoveDependencies", "cuCtxPushCurrent", "cuMemFree", "cuMemFreeHost", "cuEventDestroy", "cuGraphExecDestroy", "cuGraphDestroy",
    "cuModuleUnload",
};
enum { ENTRIES = sizeof entries / sizeof *entries };

static size_t device_left(void)
{
    size_t left = 0, total;

    CU(MemGetInfo(&left, &total));
    return left;
}

/* It ends with a status and words, or says what it says otherwise; nothing leaks, all is put back, and the next one is right. */
START_TEST(each_driver_call_fails_once)
{
    const char *entry = entries[_i];
    /* Undoing reports nothing, and what it cannot undo stays. */
    bool destroys = strstr(entry, "Destroy") || strstr(entry, "Free") || strstr(entry, "Unload") || strstr(entry, "Push");
    float before[COUNT], after[COUNT];
    stepgraph_pin *table;
    CUdeviceptr p, s;
    unsigned long calls;
    size_t left;

#ifdef __SANITIZE_ADDRESS__
    if (destroys)
        return; /* What is not undone would count as leaked. */
#endif
    three();
    table = table_of("table", stepgraph_pin_address(b) + 20, 0);
    begin();
    plain_add(a, 1);
    p = stepgraph_pin_address(c);
    CU(MemsetD8Async(p, 7, 16, stream));
    next();
    declare(0, p, 16, true);
    s = stepgraph_pin_address(a);
    CU(MemcpyDtoDAsync(p + 32, s, 16, stream));
    next();
    declare(0, p + 32, 16, true);
    declare(1, s, 16, false);
    to_table(table, a);
    end();
    t.config.orders = 1;
    t.config.steps = 2;
    verify();
    bytes_at(stepgraph_pin_address(a), before, sizeof before);
    left = device_left();
    calls = driver_calls(entry);
    verify();
    calls = driver_calls(entry) - calls;
    ck_assert_msg(calls > 0, "%s is not called", entry);
    ck_assert_uint_eq(device_left(), left);

    for (unsigned nth = 1; nth <= calls; nth += nth > 8 ? 1 + (unsigned)calls / 10 : 1) {
        stepgraph_status status;

        stepgraph_verify_destroy(t.report);
        t.report = NULL;
        driver_fails(entry, nth, 999);
        status = try();
        if (status != STEPGRAPH_OK) {
            ck_assert_msg(last_words()[0] != '\0', "%s %u: no words", entry, nth);
            ck_assert_ptr_null(t.report);
        } else {
            OK(stepgraph_verify_get_summary(t.report, &t.summary));
            VERDICT(STEPGRAPH_FAULTS_FOUND);
        }
        no_driver_fails();
        bytes_at(stepgraph_pin_address(a), after, sizeof after);
        if (status == STEPGRAPH_OK && !destroys)
            ck_assert_msg(memcmp(before, after, sizeof before) == 0, "%s %u: the state was not put back", entry, nth);
        if (!destroys)
            ck_assert_msg(device_left() == left, "%s %u: %zu bytes of the device are lost", entry, nth, left - device_left());
        left = device_left();
        put_bytes(stepgraph_pin_address(a), before, sizeof before);
        verify();
        VERDICT(STEPGRAPH_FAULTS_FOUND);
    }
}
END_TEST

/* ---- hashes ------------------------------------------------------------------------------------------------------ */

/* Any byte that changes in any range is seen, whatever its place, and nothing else is. */
START_TEST(every_byte_that_changes_is_seen)
{
    static const uint64_t sizes[] = {1, 3, 8, 15, 16, 17, 4096, 16384, 16385, 40001};
    enum { N = sizeof sizes / sizeof *sizes };
    sg__access ranges[N];
    sg__memory memory;
    CUdeviceptr at = device_make(1 << 17);
    unsigned char marks[N] = {0}, byte;
    uint64_t seed = 3;
    unsigned char *random = malloc(1 << 17);

    random_bytes(&seed, random, 1 << 17);
    put_bytes(at, random, 1 << 17);
    free(random);
    for (size_t i = 0; i < N; i++) {
        ranges[i] = (sg__access){.start = at + 5 * i, .bytes = sizes[i]};
        at += sizes[i] + 100; /* At all offsets from 16. */
    }
    OK(sg__memory_make(&memory, session, ranges, N, false, 1, 2, 1 << 20, 0));
    ck_assert_uint_eq(memory.n, N);
    OK(sg__memory_hash(&memory, 0));
    for (size_t i = 0; i < N; i++)
        for (uint64_t k = 0; k < sizes[i]; k += k < 20 || k + 20 > sizes[i] ? 1 : 997) {
            bytes_at(ranges[i].start + k, &byte, 1);
            byte ^= (unsigned char)(1u << (k % 8));
            put_bytes(ranges[i].start + k, &byte, 1);
            OK(sg__memory_hash(&memory, 1));
            OK(sg__memory_judge(&memory, 1, 0, marks, 1));
            OK(stepgraph_session_wait(session));
            ck_assert_uint_eq(sg__memory_judged(&memory).changed, 1);
            for (size_t j = 0; j < N; j++)
                ck_assert_uint_eq(sg__memory_hits(&memory)[j], i == j);
            byte ^= (unsigned char)(1u << (k % 8));
            put_bytes(ranges[i].start + k, &byte, 1);
        }
    OK(sg__memory_hash(&memory, 1));
    OK(sg__memory_judge(&memory, 1, 0, marks, 1));
    OK(stepgraph_session_wait(session));
    ck_assert_uint_eq(sg__memory_judged(&memory).changed, 0);
    ck_assert_uint_eq(sg__memory_judged(&memory).sum, 0);
    sg__memory_free(&memory);
}
END_TEST

/* Words that change places change the hash, and so do zeros against nothing. */
START_TEST(hash_depends_on_the_place)
{
    sg__access range = {.start = device_make(64), .bytes = 64};
    unsigned char mark = SG__RANGE_READ;
    uint64_t words[8] = {1, 2, 3, 4, 0, 0, 7, 8}, sums[3];
    sg__memory memory;

    OK(sg__memory_make(&memory, session, &range, 1, false, 1, 2, 1 << 20, 0));
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            words[0] = 2, words[1] = 1;
        if (i == 2)
            words[0] = 0, words[1] = 0;
        put_bytes(range.start, words, sizeof words);
        OK(sg__memory_hash(&memory, 0));
        OK(sg__memory_judge(&memory, 0, 0, &mark, 0));
        OK(stepgraph_session_wait(session));
        sums[i] = sg__memory_judged(&memory).sum;
        for (int k = 0; k < i; k++)
            ck_assert_uint_ne(sums[i], sums[k]);
    }
    sg__memory_free(&memory);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("verify");
    TCase *clean = unit_case(suite, "clean"), *planted = unit_case(suite, "planted"), *order = unit_case(suite, "order"),
          *early = unit_case(suite, "early"), *fails = unit_case(suite, "fails"), *hashes = unit_case(suite, "hashes"),
          *public_calls = unit_case(suite, "public calls");
    TCase *const all[] = {clean, planted, order, early, fails};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tcase_add_checked_fixture(all[i], made, dropped);
    tcase_add_test(clean, clean_step_is_not_accused);
    tcase_add_test(clean, memory_of_a_library_is_left_alone);
    tcase_add_test(clean, all_kinds_of_nodes_run_alone);
    tcase_add_test(clean, node_alone_keeps_its_attributes);
    tcase_add_test(clean, steps_are_fed_and_feeds_put_back);
    tcase_add_test(clean, feeds_of_other_steps_are_put_back);
    tcase_add_test(clean, feeds_are_put_back_where_the_callback_makes_another);
    tcase_add_test(clean, nodes_to_isolate_are_chosen_evenly);
    tcase_add_test(clean, parts_can_be_left_out);
    tcase_add_test(planted, write_through_a_table_is_found);
    tcase_add_test(planted, write_of_the_same_bytes_is_found_over_filled_memory);
    tcase_add_test(planted, write_of_the_same_bytes_is_found_far_behind);
    tcase_add_test(planted, read_through_a_table_is_found);
    tcase_add_test(planted, many_hidden_reads_are_all_found);
    tcase_add_test(planted, read_and_write_through_a_table_are_both_found);
    tcase_add_test(planted, view_that_a_kernel_leaves_is_found);
    tcase_add_test(planted, false_read_declaration_is_found);
    tcase_add_test(planted, barrier_may_touch_anything);
    tcase_add_test(planted, counter_that_goes_back_to_zero_is_ordered_as_a_write);
    tcase_add_test(planted, counter_that_goes_back_to_zero_escapes_as_a_read);
    tcase_add_test(order, missing_edge_shows_in_another_order);
    tcase_add_test(order, neighbours_that_differ_are_told_one_by_one);
    tcase_add_test(order, relaxed_step_that_differs_is_found);
    add_controlled_test(order, missing_edge_shows_in_replays_with_luck);
    tcase_add_test(order, nodes_that_do_something_else_alone_are_found);
    tcase_add_test(order, step_that_does_not_repeat_itself_is_not_comparable);
    tcase_add_test(order, fault_behind_a_thousand_unsteady_pins_is_told);
    tcase_add_test(order, nodes_that_wait_for_their_like_are_not_run_alone);
    tcase_add_checked_fixture(public_calls, public_made, dropped);
    tcase_add_test(public_calls, pointer_table_is_found_and_a_barrier_helps);
    tcase_add_test(public_calls, false_declaration_of_an_argument_is_found);
    tcase_add_test(public_calls, views_of_a_flat_buffer_are_found);
    tcase_add_test(public_calls, clean_step_of_the_public_calls_is_not_accused);
    tcase_add_test(public_calls, structs_of_other_sizes_are_read_and_filled);
    tcase_add_loop_test(early, progress_can_stop_it_and_all_is_put_back, 0, 5);
    tcase_add_test(early, copies_go_to_host_memory_where_the_device_is_short);
    tcase_add_test(early, callbacks_cannot_take_the_graph_away);
    tcase_add_test(early, feed_that_fails_is_passed_on);
    tcase_add_test(early, hanging_node_is_named_and_nothing_waits);
    tcase_set_timeout(fails, 120);
    add_controlled_loop_test(fails, each_driver_call_fails_once, 0, ENTRIES);
    tcase_add_test(hashes, every_byte_that_changes_is_seen);
    tcase_add_test(hashes, hash_depends_on_the_place);
    return suite;
}

static Suite *make_lost(void)
{
    Suite *suite = suite_create("verify lost");
    TCase *lost = unit_case(suite, "lost");

    tcase_add_checked_fixture(lost, made, NULL);
    tcase_add_test(lost, node_that_follows_a_hidden_address_is_named);
    return suite;
}

int main(int argc, char **argv)
{
    (void)argv;
    return unit_main(argc > 1 ? make_lost : make);
}
