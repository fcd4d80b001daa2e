/* Two recordings compared: each value that a replay would freeze, planted on purpose; other forms of a step; recording through a
 * callback. */
#include "../entry_names.h"
#include "findings.h"

/* Between the steps of a host that keeps its memory in place by other means. */
enum { LOOSE = STEPGRAPH_STEP_ALLOW_UNREGISTERED };

static CUdeviceptr pin_of(stepgraph_role role, uint64_t bytes, const char *name)
{
    return stepgraph_pin_address(pin_make(session, role, bytes, name));
}

/* ---- pointers that move ---------------------------------------------------------------------------------------------- */

START_TEST(k03_parameter_that_moves_every_step_is_named)
{
    CUdeviceptr w = pin_of(STEPGRAPH_ROLE_STATE, 4, "layer0.weight"), fresh = device_make(4096);
    stepgraph_step *a = recording("step 0", LOOSE), *b;
    stepgraph_audit *report;
    stepgraph_finding f;

    OK(stepgraph_step_mark(a, "optimizer"));
    axpb(stream, w, w, 1);
    ready(a);
    b = recording("step 1", LOOSE);
    axpb(stream, w, fresh, 1);
    ready(b);
    report = compared(a, b, NULL);
    HOLDS(report, 1, 1);
    f = FOUND(report, MOVED_POINTER, 0, "axpb", 1, 0, "commit the new value", "node 0", "axpb", "arg 1 +0", "moved pointer",
              "state 'layer0.weight'", "4096 bytes that no pin covers");
    ck_assert_uint_eq(f.before, w);
    ck_assert_uint_eq(f.after, fresh);
    ck_assert_uint_eq(f.bytes, 8);
    ck_assert_str_eq(f.stage, "optimizer");
    ck_assert_ptr_nonnull(
        strstr(stepgraph_audit_text(report), "step 'step 0', compared with 'step 1', cannot be replayed: 1 fault"));
}
END_TEST

/* Two buffers that change places. */
static stepgraph_step *ping_pong(CUdeviceptr x, CUdeviceptr y, unsigned k)
{
    stepgraph_step *step = recording("step", LOOSE);

    axpb(stream, k % 2 ? x : y, k % 2 ? y : x, 1);
    ready(step);
    return step;
}

START_TEST(k03_buffers_that_change_places_are_named)
{
    CUdeviceptr x = device_make(64), y = device_make(64);
    stepgraph_audit *report = compared(ping_pong(x, y, 0), ping_pong(x, y, 1), NULL);
    stepgraph_finding f;

    HOLDS(report, 2, 2);
    f = FOUND(report, MOVED_POINTER, 0, "axpb", 0, 0, "pin it", "64 bytes that no pin covers");
    ck_assert_uint_eq(f.before, y);
    ck_assert_uint_eq(f.after, x);
    f = FOUND(report, MOVED_POINTER, 0, "axpb", 1, 0, "pin it", "64 bytes that no pin covers");
    ck_assert_uint_eq(f.before, x);
    ck_assert_uint_eq(f.after, y);
    /* Two steps apart nothing shows. */
    CLEAN(compared(ping_pong(x, y, 0), ping_pong(x, y, 2), NULL));
}
END_TEST

/* Batches in two feeds by turns, states that change places, and a batch somewhere else in a data set each time: all of it is pinned already, and what
 * moves is which of it the step uses. */
START_TEST(k03_step_that_moves_among_its_pins_is_told_to_stay)
{
    CUdeviceptr feeds[2] = {pin_of(STEPGRAPH_ROLE_FEED, 64, "batch 0"), pin_of(STEPGRAPH_ROLE_FEED, 64, "batch 1")}, w = pin_of(STEPGRAPH_ROLE_STATE, 64, "w");
    CUdeviceptr data = pin_of(STEPGRAPH_ROLE_CONST, 4096, "data"), v = pin_of(STEPGRAPH_ROLE_STATE, 64, "v"), fresh = pin_of(STEPGRAPH_ROLE_SCRATCH, 64, "fresh");
    stepgraph_pin *pins[] = {stepgraph_session_pin(session, "w"), stepgraph_session_pin(session, "v")};
    stepgraph_step *steps[2];
    stepgraph_audit *report;

    for (unsigned k = 0; k < 2; k++) {
        steps[k] = recording("step", 0);
        axpb(stream, w, feeds[k], 1);
        copyf(stream, fresh, data + 256 * k);
        CU(MemcpyDtoDAsync(fresh, data + 256 * k, 64, stream));
        axpb(stream, k ? v : w, k ? w : v, 1);
        axpb(stream, k ? fresh : w, w, 1); /* Of what is scratch nobody knows what it is. */
        OK(stepgraph_pin_commit_many(session, 2, pins, (uint64_t[]){feeds[k], fresh}));
        CLEAN(ready(steps[k]));
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 7, 7);
    FOUND(report, MOVED_POINTER, 0, "axpb", 1, 0, "use the same place of the same pin in every step", "feed 'batch 0'", "feed 'batch 1'");
    FOUND(report, MOVED_POINTER, 1, "copyf", 1, 0, "use the same place of the same pin in every step", "const 'data'", "const 'data' + 256");
    FOUND(report, MOVED_POINTER, 2, "copy", NOWHERE, 0, "use the same place of the same pin in every step", "const 'data'", "const 'data' + 256");
    FOUND(report, MOVED_POINTER, 3, "axpb", 0, 0, "use the same place of the same pin in every step", "state 'w'", "state 'v'");
    FOUND(report, MOVED_POINTER, 3, "axpb", 1, 0, "use the same place of the same pin in every step", "state 'v'", "state 'w'");
    FOUND(report, MOVED_POINTER, 4, "axpb", 0, 0, "pin it", "state 'w'", "scratch 'fresh'");
    FOUND(report, MOVED_POINTER, NOWHERE, "", NOWHERE, 0, "use the same place of the same pin in every step", "the commit of pin 'w'", "feed 'batch 1'");
}
END_TEST

START_TEST(k03_buffer_that_moves_now_and_then_is_named_where_the_steps_straddle_it)
{
    CUdeviceptr places[2] = {device_make(64), device_make(64)};
    stepgraph_step *steps[4];

    for (unsigned i = 0; i < 4; i++) { /* Steps 18 to 21. */
        steps[i] = recording("step", LOOSE);
        inc(stream, places[(18 + i) / 20], 1);
        ready(steps[i]);
    }
    CLEAN(compared(steps[0], steps[1], NULL));
    FOUND(compared(steps[1], steps[2], NULL), MOVED_POINTER, 0, "inc", 0, 0, "pin it", "moved pointer");
    CLEAN(compared(steps[2], steps[3], NULL));
}
END_TEST

/* A host that makes each new parameter in an arena, or in a pool whose blocks it notes. */
static struct {
    stepgraph_arena *arena; /* NULL: the pool, */
    CUdeviceptr pool;       /* of which the next block is here. */
} blocks;

static CUdeviceptr block_make(const char *label)
{
    uint64_t made = 0;

    if (blocks.arena != NULL) {
        OK(stepgraph_arena_alloc(blocks.arena, 256, label, &made));
        return made;
    }
    made = blocks.pool;
    blocks.pool += 256;
    OK(stepgraph_arena_note_alloc(session, made, 256, label));
    return made;
}

static void block_drop(CUdeviceptr block)
{
    if (blocks.arena != NULL)
        OK(stepgraph_arena_free(blocks.arena, block));
    else
        OK(stepgraph_arena_note_free(session, block));
}

/* new w = w - 1, by way of a temporary. */
static CUdeviceptr functional_step(CUdeviceptr w)
{
    CUdeviceptr t = block_make("t"), fresh;

    axpb(stream, t, w, -2);
    fresh = block_make("w");
    block_drop(w);
    axpb(stream, fresh, t, 1);
    block_drop(t);
    return fresh;
}

static void blocks_open(int arena)
{
    stepgraph_arena_config config = STEPGRAPH_ARENA_CONFIG_INIT;
    CUdeviceptr memory;

    blocks.arena = NULL;
    config.bytes = 65536;
    if (arena) {
        OK(stepgraph_arena_create(session, &config, &blocks.arena));
        return;
    }
    memory = device_make(65536);
    pin_adopt(session, STEPGRAPH_ROLE_SCRATCH, memory, 65536, "arena");
    blocks.pool = memory;
}

static void blocks_close(CUdeviceptr last)
{
    block_drop(last);
    if (blocks.arena != NULL)
        OK(stepgraph_arena_destroy(blocks.arena));
}

/* Scratch, but older than the step: a replay reads the same weights for ever. */
START_TEST(k03_parameter_that_moves_within_an_arena_is_named)
{
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    CUdeviceptr first, w;
    stepgraph_finding f;
    char move[160];
    float fresh;

    blocks_open(_i);
    w = block_make("w");
    setv(stream, w, 10);
    w = functional_step(functional_step(w));
    fresh = float_at(w);
    block_drop(w);

    first = w = block_make("w");
    setv(stream, w, 10);
    for (int k = 0; k < 2; k++) {
        steps[k] = recording("step", 0);
        w = functional_step(w);
        CLEAN(ready(steps[k]));
    }
    report = compared(steps[0], steps[1], NULL);
    ck_assert_uint_eq(summary_of(report).faults, 1);
    f = FOUND(report, MOVED_POINTER, 0, "axpb", 1, 0, "pin it", "arg 1 +0", "moved pointer");
    ck_assert_uint_eq(f.before, first);
    snprintf(move, sizeof move, "0x%llx (block 'w' of scratch 'arena' + 0) -> 0x%llx (block 'w' of scratch 'arena' + 0)", (unsigned long long)f.before,
             (unsigned long long)f.after);
    ck_assert_msg(strstr(f.text, move) != NULL, "'%s' lacks '%s'", f.text, move);
    /* It is one: two replays are one step. */
    OK(stepgraph_step_replay(steps[0]));
    OK(stepgraph_step_replay(steps[0]));
    ck_assert_float_ne(float_at(f.after), fresh);
    for (int k = 0; k < 2; k++)
        drop_step(steps[k]);
    blocks_close(w);
}
END_TEST

/* What the step has made and dropped itself may lie where the old parameter lay. */
START_TEST(temporary_where_an_older_block_was_is_no_fault)
{
    CUdeviceptr out = pin_of(STEPGRAPH_ROLE_STATE, 4, "out"), old, t;
    stepgraph_step *steps[2];
    stepgraph_audit *report;

    blocks_open(1);
    for (int k = 0; k < 2; k++) {
        old = block_make("old");
        if (k > 0)
            (void)block_make("aside"); /* So that it comes to lie elsewhere. */
        steps[k] = recording("step", 0);
        inc(stream, out, 1);
        block_drop(old);
        t = block_make("t");
        if (k == 0)
            ck_assert_uint_eq(t, old);
        setv(stream, t, 3);
        axpb(stream, out, t, 1);
        if (k > 0)
            block_drop(t);
        ready(steps[k]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 0, 2);
    NOTED(report, MOVED_POINTER, 1, "setv", 0, 0, "nothing in scratch 'arena'", "moved pointer");
    NOTED(report, MOVED_POINTER, 2, "axpb", 1, 0, "nothing in scratch 'arena'", "moved pointer");
    for (int k = 0; k < 2; k++)
        drop_step(steps[k]);
    OK(stepgraph_arena_destroy(blocks.arena));
}
END_TEST

/* But not what one recording has made itself, where another has an older block. */
START_TEST(older_block_in_place_of_a_temporary_is_named)
{
    CUdeviceptr out = pin_of(STEPGRAPH_ROLE_STATE, 4, "out"), t, old;
    stepgraph_step *steps[2];

    blocks_open(1);
    steps[0] = recording("step", 0);
    t = block_make("t");
    axpb(stream, out, t, 1);
    block_drop(t);
    ready(steps[0]);
    (void)block_make("aside"); /* So that it comes to lie elsewhere. */
    old = block_make("old");
    ck_assert_uint_ne(old, t);
    steps[1] = recording("step", 0);
    axpb(stream, out, old, 1);
    ready(steps[1]);
    ck_assert_uint_eq(FOUND(compared(steps[_i], steps[1 - _i], NULL), MOVED_POINTER, 0, "axpb", 1, 0, "pin it", "scratch 'arena'").before,
                      _i == 0 ? t : old);
    for (int k = 0; k < 2; k++)
        drop_step(steps[k]);
    blocks_close(old);
}
END_TEST

START_TEST(workspace_that_grew_is_named)
{
    CUdeviceptr w = pin_of(STEPGRAPH_ROLE_STATE, 4, "w"), small = device_make(4096), large = device_make(65536);
    stepgraph_step *a = recording("a", LOOSE), *b;

    axpb(stream, w, small + 16, 1);
    ready(a);
    b = recording("b", LOOSE);
    axpb(stream, w, large + 16, 1);
    ready(b);
    FOUND(compared(a, b, NULL), MOVED_POINTER, 0, "axpb", 1, 0, "pin it", "4096 bytes that no pin covers",
          "65536 bytes that no pin covers");
}
END_TEST

START_TEST(k04_batch_that_is_made_anew_is_named)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 64, "x");
    static char batches[2][64];
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    stepgraph_finding f;

    for (int i = 0; i < 2; i++) {
        CUdeviceptr batch = device_make(64);
        steps[i] = recording("step", LOOSE | STEPGRAPH_STEP_ALLOW_HOST_MEMORY);
        CU(MemcpyHtoDAsync(batch, batches[i], 64, stream));
        CU(MemcpyDtoDAsync(x, batch, 64, stream));
        CU(MemsetD8Async(batch, 0, 64, stream));
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 4, 4);
    for (uint32_t i = 0; i < 4; i++) {
        f = (stepgraph_finding)STEPGRAPH_FINDING_INIT;
        OK(stepgraph_audit_get(report, i, &f));
        ck_assert_uint_eq(f.kind, STEPGRAPH_FINDING_MOVED_POINTER);
        ck_assert_uint_eq(f.argument, NOWHERE);
    }
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "node 0  copy  source   moved pointer"));
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "node 0  copy  destination   moved pointer"));
    f = FOUND(report, MOVED_POINTER, 1, "copy", NOWHERE, 0, "FEED", "source", "64 bytes that no pin covers");
    FOUND(report, MOVED_POINTER, 2, "set", NOWHERE, 0, "pin it", "destination");
}
END_TEST

START_TEST(optional_pointer_that_appears_is_named)
{
    struct Views views = {.n = 1};
    stepgraph_step *steps[2];
    stepgraph_finding f;

    views.out = views.in = pin_of(STEPGRAPH_ROLE_STATE, 4, "x");
    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", 0);
        launch(stream, made_for.views, 1, (void *[]){&views});
        ready(steps[i]);
        views.bias = pin_of(STEPGRAPH_ROLE_STATE, 4, i ? "other" : "bias");
    }
    f = FOUND(compared(steps[0], steps[1], NULL), MOVED_POINTER, 0, "views", 0, 16, "same pin in every step", "arg 0 +16", "state 'bias'");
    ck_assert_uint_eq(f.before, 0);
}
END_TEST

START_TEST(pointers_through_extra_and_in_child_graphs_are_compared)
{
    CUdeviceptr places[2] = {device_make(64), device_make(64)};
    stepgraph_step *steps[2];
    stepgraph_audit *report;

    for (int i = 0; i < 2; i++) {
        struct {
            CUdeviceptr p;
            float v;
        } packed = {places[i], 1.5f + (float)i};
        size_t bytes = 12;
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
        CUstream other = stream_make(CU_STREAM_NON_BLOCKING);
        CUstreamCaptureStatus status;
        const CUgraphNode *dependencies;
        CUgraph child, graph;
        CUgraphNode node;
        size_t n;

        MORE(StreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        setv(other, places[i], (float)i);
        MORE(StreamEndCapture(other, &child));
        steps[i] = recording("step", LOOSE);
        CU(LaunchKernel(kernels.inc, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
        MORE(StreamGetCaptureInfo(stream, &status, NULL, &graph, &dependencies, &n));
        MORE(GraphAddChildGraphNode(&node, graph, dependencies, n, child));
        MORE(StreamUpdateCaptureDependencies(stream, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
        MORE(GraphDestroy(child));
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 4, 4);
    FOUND(report, MOVED_POINTER, 0, "inc", 0, 0, "pin it", "moved pointer");
    FOUND(report, CHANGING_SCALAR, 0, "inc", 1, 0, "CELL", "as float 1.5 -> 2.5");
    FOUND(report, MOVED_POINTER, 2, "setv", 0, 0, "pin it", "moved pointer");
    FOUND(report, CHANGING_SCALAR, 2, "setv", 1, 0, "CELL", "as float 0 -> 1");
}
END_TEST

/* What only one recording passes, of an argument that both pass in part, says nothing. */
START_TEST(bytes_that_one_recording_passes_alone_are_not_compared)
{
    enum { PASSED = offsetof(struct Inner, tail[1]), MORE_PASSED = offsetof(struct Inner, tail[2]) };
    stepgraph_step *steps[2];

    for (int i = 0; i < 2; i++) {
        struct Inner *in = calloc(1, MORE_PASSED); /* No byte more than is passed. */
        size_t bytes = i == _i ? MORE_PASSED : PASSED;
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, in, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
        const uint64_t last = 0x1234567812345678u;

        ck_assert_ptr_nonnull(in);
        memcpy((char *)in + PASSED, &last, sizeof last);
        steps[i] = recording("step", LOOSE);
        CU(LaunchKernel(made_for.inner, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
        ready(steps[i]);
        free(in);
    }
    CLEAN(compared(steps[0], steps[1], NULL));
}
END_TEST

/* An optimizer that works out of place, with pins: the new value is committed from another place in each step. */
START_TEST(new_values_that_move_are_named_by_their_pin)
{
    stepgraph_pin *pins[2] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b")};
    CUdeviceptr fresh[3] = {device_make(64), device_make(64), device_make(64)};
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    stepgraph_finding f;

    for (int i = 0; i < 2; i++) {
        uint64_t from[2] = {fresh[0], fresh[1 + i]};
        steps[i] = recording("step", LOOSE);
        OK(stepgraph_pin_commit_many(session, 2, pins, from));
        OK(stepgraph_pin_commit(pins[1], fresh[i]));
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 2, 2);
    f = FOUND(report, MOVED_POINTER, NOWHERE, "", NOWHERE, 0, "arena", "commit of pin 'b'", "64 bytes that no pin covers");
    ck_assert_uint_eq(f.before, fresh[1]);
    ck_assert_uint_eq(f.after, fresh[2]);
    FOUND(report, MOVED_POINTER, 1, "copy", NOWHERE, 0, "pin it", "source");
}
END_TEST

START_TEST(fewer_new_values_are_told)
{
    stepgraph_pin *pins[3] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b"),
                              pin_make(session, STEPGRAPH_ROLE_STATE, 4, "c")};
    CUdeviceptr fresh = device_make(64);
    stepgraph_step *steps[2];
    stepgraph_audit *report;

    for (unsigned i = 0; i < 2; i++) {
        uint64_t from[3] = {fresh, fresh + 16, fresh + 32};
        steps[i] = recording("step", LOOSE);
        OK(stepgraph_pin_commit_many(session, 3 - i, pins, from));
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 1, 1);
    FOUND(report, CHANGING_SCALAR, NOWHERE, "", NOWHERE, 0, "in every step", "commits 3 new values", "the second 2");
}
END_TEST

START_TEST(earlier_place_of_a_state_is_named_by_its_pin)
{
    stepgraph_pin *w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "layer0.weight");
    CUdeviceptr old = device_make(64), fresh = device_make(64);
    stepgraph_step *a, *b;

    OK(stepgraph_pin_commit(w, old));
    a = recording("a", LOOSE | STEPGRAPH_STEP_ALLOW_FORMER_STATE);
    inc(stream, old, 1);
    ready(a);
    b = recording("b", LOOSE);
    inc(stream, fresh, 1);
    ready(b);
    FOUND(compared(a, b, NULL), MOVED_POINTER, 0, "inc", 0, 0, "address of pin 'layer0.weight'",
          "from where state 'layer0.weight' was last committed");
}
END_TEST

/* ---- values that change ---------------------------------------------------------------------------------------------- */

static uint32_t bits(float v)
{
    uint32_t b;

    memcpy(&b, &v, sizeof b);
    return b;
}

START_TEST(k01_rate_correction_and_step_count_by_value_are_named)
{
    CUdeviceptr w = pin_of(STEPGRAPH_ROLE_STATE, 4, "w"), g = pin_of(STEPGRAPH_ROLE_SCRATCH, 4, "g");
    stepgraph_step *a = recording("a", 0), *b;
    stepgraph_audit *report;
    stepgraph_finding f;

    launch(stream, kernels.nop, 1, NULL);
    adam(w, g, 0.1f, 0.9f, 7);
    CLEAN(ready(a));
    b = recording("b", 0);
    launch(stream, kernels.nop, 1, NULL);
    adam(w, g, 0.01f, 0.81f, 8);
    CLEAN(ready(b));
    report = compared(a, b, NULL);
    HOLDS(report, 3, 3);
    f = FOUND(report, CHANGING_SCALAR, 1, "adam", 2, 0, "CELL", "node 1", "arg 2 +0", "changing scalar", "4 bytes",
              "as float 0.100000001 -> 0.00999999978");
    ck_assert_uint_eq(f.before, bits(0.1f));
    ck_assert_uint_eq(f.after, bits(0.01f));
    ck_assert_uint_eq(f.bytes, 4);
    FOUND(report, CHANGING_SCALAR, 1, "adam", 3, 0, "CELL", "as float 0.899999976 -> 0.810000002");
    f = FOUND(report, CHANGING_SCALAR, 1, "adam", 4, 0, "CELL", "as integer 7 -> 8");
    ck_assert_uint_eq(f.before, 7);
    ck_assert_uint_eq(f.after, 8);
}
END_TEST

START_TEST(k02_seed_by_value_is_named)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_SCRATCH, 4, "x");
    uint64_t seeds[2] = {0x9e3779b97f4a7c15ull, 0x3c6ef372fe94f82aull};
    stepgraph_step *steps[2];
    stepgraph_finding f;

    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", 0);
        launch(stream, made_for.dropout, 1, (void *[]){&x, &seeds[i]});
        CLEAN(ready(steps[i]));
    }
    f = FOUND(compared(steps[0], steps[1], NULL), CHANGING_SCALAR, 0, "dropout", 1, 0, "CELL",
              "8 bytes 9e3779b97f4a7c15 -> 3c6ef372fe94f82a");
    ck_assert_uint_eq(f.before, seeds[0]);
    ck_assert_uint_eq(f.after, seeds[1]);
    ck_assert_uint_eq(f.bytes, 8);
}
END_TEST

static stepgraph_step *with_struct(CUdeviceptr w, const struct Adam *values)
{
    stepgraph_step *step = recording("step", 0);
    struct Adam copy = *values;

    launch(stream, made_for.adam_struct, 1, (void *[]){&copy, &w});
    CLEAN(ready(step));
    return step;
}

START_TEST(values_in_a_struct_are_named_by_their_byte)
{
    CUdeviceptr w = pin_of(STEPGRAPH_ROLE_STATE, 4, "w");
    struct Adam values = {0.1f, 0.9f, 7, 0.01f};
    stepgraph_step *a = with_struct(w, &values);
    stepgraph_audit *report;
    stepgraph_finding f;

    values.step++;
    report = compared(a, with_struct(w, &values), NULL);
    HOLDS(report, 1, 1);
    f = FOUND(report, CHANGING_SCALAR, 0, "adam_struct", 0, 8, "CELL", "arg 0 +8", "4 bytes", "as integer 7 -> 8");
    ck_assert_uint_eq(f.bytes, 4);
    ck_assert_uint_eq(f.before, 7);

    values.correction = 0.81f;
    values.decay = 0.02f;
    report = compared(a, with_struct(w, &values), NULL);
    HOLDS(report, 2, 2);
    FOUND(report, CHANGING_SCALAR, 0, "adam_struct", 0, 4, "CELL", "arg 0 +4", "as float 0.899999976 -> 0.810000002");
    f = FOUND(report, CHANGING_SCALAR, 0, "adam_struct", 0, 8, "CELL", "arg 0 +8", "8 bytes"); /* Both values of the word. */
    ck_assert_uint_eq(f.before, 7 | (uint64_t)bits(0.01f) << 32);
    ck_assert_uint_eq(f.after, 8 | (uint64_t)bits(0.02f) << 32);
}
END_TEST

START_TEST(two_values_in_eight_bytes_are_named)
{
    CUdeviceptr w = pin_of(STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_step *steps[2];
    stepgraph_finding f;

    for (int i = 0; i < 2; i++) {
        struct Hyper values = {i ? 0.05f : 0.1f, 3 + i};
        steps[i] = recording("step", 0);
        launch(stream, made_for.hyper, 1, (void *[]){&values, &w});
        CLEAN(ready(steps[i]));
    }
    f = FOUND(compared(steps[0], steps[1], NULL), CHANGING_SCALAR, 0, "hyper", 0, 0, "CELL", "8 bytes");
    ck_assert_uint_eq(f.before, bits(0.1f) | (uint64_t)3 << 32);
    ck_assert_uint_eq(f.after, bits(0.05f) | (uint64_t)4 << 32);
}
END_TEST

/* What the scan for addresses does not see does show when it changes. */
START_TEST(pointer_in_a_packed_struct_shows_when_it_moves)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 4, "x");
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    stepgraph_finding f = STEPGRAPH_FINDING_INIT;

    for (int i = 0; i < 2; i++) {
        struct Packed in = {.tag = 1, .s = 2};
        in.a = x;
        in.b = i ? x + 0x1100 : x; /* Anywhere; nobody runs it. */
        steps[i] = recording("step", 0);
        launch(stream, made_for.packed, 1, (void *[]){&in, &x});
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    ck_assert_uint_ge(summary_of(report).faults, 1);
    OK(stepgraph_audit_get(report, 0, &f));
    ck_assert_uint_eq(f.kind, STEPGRAPH_FINDING_CHANGING_SCALAR);
    ck_assert_str_eq(f.node_name, "packed");
    ck_assert_uint_eq(f.argument, 0);
    ck_assert_uint_ge(f.offset + f.bytes, 15);
    ck_assert_uint_lt(f.offset, 22);
}
END_TEST

/* Byte by byte it is named as what it is, once, and a value that shares a word with it as well. */
START_TEST(pointer_in_a_packed_struct_is_named_byte_by_byte)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 4, "x"), places[2] = {device_make(0x20000), device_make(4096)};
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    stepgraph_finding f;

    for (int i = 0; i < 2; i++) {
        struct Packed in = {.tag = 1 + (_i == 1 && i), .a = x, .s = (short)(2 + (_i == 2 && i)), .b = places[i]};
        steps[i] = recording("step", STEPGRAPH_STEP_SCAN_BYTES | LOOSE);
        for (int n = 0; n < (_i == 3 ? 2 : 1); n++) /* In the same place of the next node. */
            launch(stream, made_for.packed, 1, (void *[]){&in, &x});
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, _i ? 2 : 1, _i ? 2 : 1);
    f = FOUND(report, MOVED_POINTER, 0, "packed", 0, 14, "pin it", "arg 0 +14", "131072 bytes", "4096 bytes");
    ck_assert_uint_eq(f.before, places[0]);
    ck_assert_uint_eq(f.after, places[1]);
    if (_i == 1)
        FOUND(report, CHANGING_SCALAR, 0, "packed", 0, 0, "CELL", "as integer 1 -> 2");
    if (_i == 2)
        FOUND(report, CHANGING_SCALAR, 0, "packed", 0, 12, "CELL", "changing scalar");
}
END_TEST

START_TEST(values_and_extents_of_sets_and_copies_are_compared)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 64, "x");
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    stepgraph_finding f;

    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", 0);
        CU(MemsetD8Async(x, (unsigned char)(3 + i), 16, stream));
        MORE(MemsetD32Async(x, 5, (size_t)(4 + i), stream));
        CU(MemcpyDtoDAsync(x, x + 32, (size_t)(8 + 8 * i), stream));
        CLEAN(ready(steps[i]));
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 3, 3);
    f = FOUND(report, CHANGING_SCALAR, 0, "set", NOWHERE, 0, "record again", "value");
    ck_assert_uint_eq(f.before, 3);
    ck_assert_uint_eq(f.after, 4);
    f = FOUND(report, CHANGING_SCALAR, 1, "set", NOWHERE, 0, "record again", "extent", "16 -> 20");
    ck_assert_uint_eq(f.before, 16);
    f = FOUND(report, CHANGING_SCALAR, 2, "copy", NOWHERE, 0, "record again", "extent", "8 -> 16");
    ck_assert_uint_eq(f.after, 16);
}
END_TEST

/* A workspace's address is the driver's affair; its size is not, nor is which part of it a kernel uses. */
START_TEST(size_and_use_of_a_workspace_are_compared)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 64, "x"), workspace;
    stepgraph_step *steps[2];
    stepgraph_audit *report;

    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", 0);
        MORE(MemAllocAsync(&workspace, 4096 + 4096 * (size_t)i, stream));
        axpb(stream, x, workspace + 16, 1);
        axpb(stream, x, workspace + 16 * (CUdeviceptr)i, 1);
        MORE(MemFreeAsync(workspace, stream));
        CLEAN(ready(steps[i]));
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 2, 2);
    FOUND(report, CHANGING_SCALAR, 0, "allocation", NOWHERE, 0, "record again", "extent", "4096 -> 8192");
    FOUND(report, MOVED_POINTER, 2, "axpb", 1, 0, "pin it", "memory of the graph's own");
}
END_TEST

static void one(void *unused)
{
    (void)unused;
}

static void another(void *given)
{
    *(int *)given = 1;
}

START_TEST(host_functions_and_their_arguments_are_compared)
{
    static int logs[2];
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    stepgraph_finding f;

    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS);
        CU(LaunchHostFunc(stream, one, &logs[i]));
        CU(LaunchHostFunc(stream, i ? another : one, &logs[0]));
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 2, 2);
    f = FOUND(report, MOVED_POINTER, 0, "host function", NOWHERE, 0, "host function the same argument", "its argument",
              "moved pointer");
    ck_assert_uint_eq(f.before, (uintptr_t)&logs[0]);
    ck_assert_uint_eq(f.after, (uintptr_t)&logs[1]);
    FOUND(report, TOPOLOGY, 1, "host function", NOWHERE, 0, "record one graph", "another host function");
}
END_TEST

/* Only where both recordings may have such arguments, and never another function. */
START_TEST(arguments_of_host_functions_that_are_made_for_each_recording_are_no_fault_where_allowed)
{
    const uint32_t flags[] = {STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS | STEPGRAPH_STEP_ALLOW_HOST_ARGUMENTS,
                              STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS};
    static int logs[3];
    stepgraph_step *steps[4];

    for (int i = 0; i < 4; i++) {
        steps[i] = recording("step", flags[i == 2]);
        CU(LaunchHostFunc(stream, i == 3 ? another : one, &logs[i % 3]));
        ready(steps[i]);
    }
    NOTED(compared(steps[0], steps[1], NULL), MOVED_POINTER, 0, "host function", NOWHERE, 0, "STEPGRAPH_STEP_ALLOW_HOST_ARGUMENTS",
          "its argument", "moved pointer");
    FOUND(compared(steps[0], steps[2], NULL), MOVED_POINTER, 0, "host function", NOWHERE, 0, "STEPGRAPH_STEP_ALLOW_HOST_ARGUMENTS",
          "its argument", "moved pointer");
    FOUND(compared(steps[0], steps[3], NULL), TOPOLOGY, 0, "host function", NOWHERE, 0, "record one graph", "another host function");
}
END_TEST

/* ---- padding ----------------------------------------------------------------------------------------------------------- */

static uint64_t garbage;

/* A struct whose holes hold garbage, other garbage each time. */
static stepgraph_step *with_padding(CUdeviceptr p, char tag, double by, short n)
{
    stepgraph_step *step = recording("step", 0);
    struct Padded in;

    random_bytes(&garbage, &in, sizeof in);
    ((unsigned char *)&in)[1] = (unsigned char)(garbage += 0x1111111111111111ull); /* Never the same twice. */
    ((unsigned char *)&in)[18] = (unsigned char)garbage;
    in.tag = tag;
    in.scale = by;
    in.n = n;
    in.p = p;
    launch(stream, made_for.padded, 1, (void *[]){&in, &p});
    CLEAN(ready(step));
    return step;
}

START_TEST(padding_is_told_from_values_by_a_third_recording)
{
    CUdeviceptr p = pin_of(STEPGRAPH_ROLE_STATE, 4, "p");
    stepgraph_audit *report;

    garbage = (uint64_t)_i;
    report = compared(with_padding(p, 1, 0.5, 3), with_padding(p, 1, 0.5, 3), with_padding(p, 1, 0.5, 3));
    HOLDS(report, 0, 2);
    NOTED(report, UNCLASSIFIED, 0, "padded", 0, 0, "", "unclassified", "padding");
    NOTED(report, UNCLASSIFIED, 0, "padded", 0, 16, "", "unclassified", "padding");
}
END_TEST

START_TEST(without_a_third_recording_padding_is_accused)
{
    CUdeviceptr p = pin_of(STEPGRAPH_ROLE_STATE, 4, "p");

    garbage = 1;
    HOLDS(compared(with_padding(p, 1, 0.5, 3), with_padding(p, 1, 0.5, 3), NULL), 2, 2);
}
END_TEST

START_TEST(values_beside_padding_are_named)
{
    CUdeviceptr p = pin_of(STEPGRAPH_ROLE_STATE, 4, "p");
    stepgraph_audit *report;
    stepgraph_finding f;

    garbage = 1;
    report = compared(with_padding(p, 1, 0.5, 300), with_padding(p, 2, 0.25, 301), with_padding(p, 2, 0.25, 301));
    HOLDS(report, 3, 3);
    f = FOUND(report, CHANGING_SCALAR, 0, "padded", 0, 0, "CELL", "1 bytes 1 -> 2");
    ck_assert_uint_eq(f.bytes, 1);
    FOUND(report, CHANGING_SCALAR, 0, "padded", 0, 12, "CELL", "4 bytes",
          "or of the double at +8: 0.5 -> 0.25"); /* Its other half is 0. */
    f = FOUND(report, CHANGING_SCALAR, 0, "padded", 0, 16, "CELL", "2 bytes 12c -> 12d");
    ck_assert_uint_eq(f.bytes, 2);
    ck_assert_uint_eq(f.before, 300);
    ck_assert_uint_eq(f.after, 301);
}
END_TEST

/* ---- other forms of a step ----------------------------------------------------------------------------------------------- */

START_TEST(one_node_more_is_explained)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 64, "x");
    stepgraph_step *a = recording("a", 0), *b;
    stepgraph_audit *report;

    inc(stream, x, 1);
    ready(a);
    b = recording("b", 0);
    inc(stream, x, 1);
    setv(stream, x, 2);
    ready(b);
    report = compared(a, b, NULL);
    HOLDS(report, 1, 1);
    FOUND(report, TOPOLOGY, 1, "", NOWHERE, 0, "record one graph for each form",
          "the first recording has 1 nodes and the second 2", "node 1", "'setv'", "in the second only");
    report = compared(b, a, NULL);
    HOLDS(report, 1, 1);
    FOUND(report, TOPOLOGY, 1, "setv", NOWHERE, 0, "record one graph for each form", "in the first only");
}
END_TEST

START_TEST(other_kernel_is_explained)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 64, "x");
    stepgraph_step *a = recording("a", 0), *b;
    stepgraph_audit *report;

    inc(stream, x, 1);
    ready(a);
    b = recording("b", 0);
    setv(stream, x, 2);
    ready(b);
    report = compared(a, b, NULL);
    HOLDS(report, 1, 1);
    FOUND(report, TOPOLOGY, 0, "inc", NOWHERE, 0, "record one graph for each form", "node 0", "'inc' in the first",
          "'setv' in the second");
}
END_TEST

START_TEST(other_kind_of_node_is_explained)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 64, "x");
    stepgraph_step *a = recording("a", 0), *b;
    stepgraph_audit *report;

    inc(stream, x, 1);
    CU(MemsetD8Async(x, 0, 4, stream));
    ready(a);
    b = recording("b", 0);
    inc(stream, x, 1);
    CU(MemcpyDtoDAsync(x, x + 8, 4, stream));
    ready(b);
    report = compared(a, b, NULL);
    HOLDS(report, 1, 1);
    FOUND(report, TOPOLOGY, 1, "set", NOWHERE, 0, "record one graph for each form", "node 1", "'set' in the first",
          "'copy' in the second");
}
END_TEST

START_TEST(other_grid_is_explained)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 64, "x");
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    stepgraph_finding f;
    float v = 1;

    for (unsigned i = 0; i < 2; i++) {
        steps[i] = recording("step", 0);
        CU(LaunchKernel(kernels.setv, 2 + i, 1, 1, 32, 1 + i, 1, 64 * i, stream, (void *[]){&x, &v}, NULL));
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 3, 3);
    for (uint32_t i = 0; i < 3; i++) {
        f = (stepgraph_finding)STEPGRAPH_FINDING_INIT;
        OK(stepgraph_audit_get(report, i, &f));
        ck_assert_uint_eq(f.kind, STEPGRAPH_FINDING_CHANGING_SCALAR);
        ck_assert_uint_eq(f.argument, NOWHERE);
        ck_assert_str_eq(f.node_name, "setv");
        ck_assert_ptr_nonnull(strstr(f.advice, "record again"));
    }
    ck_assert_ptr_nonnull(
        strstr(stepgraph_audit_text(report), "node 0  setv  grid x   changing scalar   4 bytes 00000002 -> 00000003"));
    ck_assert_ptr_nonnull(
        strstr(stepgraph_audit_text(report), "node 0  setv  block y   changing scalar   4 bytes 00000001 -> 00000002"));
    ck_assert_ptr_nonnull(
        strstr(stepgraph_audit_text(report), "node 0  setv  shared memory   changing scalar   4 bytes 00000000 -> 00000040"));
}
END_TEST

/* Rows, planes, and where in them a copy begins. */
START_TEST(other_rows_and_planes_are_told)
{
    enum { PITCH = 64, ROWS = 4, PLANES = 4, SPACE = PITCH * ROWS * PLANES };
    CUresult (*set)(CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream);
    CUresult (*copy)(const CUDA_MEMCPY3D *, CUstream);
    CUdeviceptr from = pin_of(STEPGRAPH_ROLE_STATE, SPACE, "from"), to = pin_of(STEPGRAPH_ROLE_STATE, SPACE, "to");
    stepgraph_step *steps[2];

    *(void **)&set = stepgraph_session_symbol(session, "cuMemsetD2D8Async", 3020);
    *(void **)&copy = stepgraph_session_symbol(session, "cuMemcpy3DAsync", 3020);
    ck_assert(set != NULL && copy != NULL);
    for (unsigned i = 0; i < 2; i++) {
        CUDA_MEMCPY3D x = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from, .srcPitch = PITCH, .srcHeight = ROWS,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to, .dstPitch = PITCH, .dstHeight = ROWS,
                           .WidthInBytes = 16, .Height = 2, .Depth = 2};
        size_t rows = 2;
        size_t *const changes[] = {&rows, &x.Depth, &x.Height, &x.srcZ, &x.srcY, &x.dstZ, &x.dstY};
        *changes[_i] += i;
        steps[i] = recording("step", 0);
        ck_assert_int_eq(set(to, PITCH, 0, 16, rows, stream), CUDA_SUCCESS);
        ck_assert_int_eq(copy(&x, stream), CUDA_SUCCESS);
        ready(steps[i]);
    }
    if (_i < 3)
        FOUND(compared(steps[0], steps[1], NULL), CHANGING_SCALAR, _i == 0 ? 0 : 1, _i == 0 ? "set" : "copy", NOWHERE, 0, "record again", "00000002 -> ");
    else
        FOUND(compared(steps[0], steps[1], NULL), MOVED_POINTER, 1, "copy", NOWHERE, 0, "same place of the same pin", "moved pointer");
}
END_TEST

/* How far rows lie apart where there is one, and planes: whatever the host's struct holds there. */
START_TEST(distance_of_a_single_row_or_plane_is_no_fault)
{
    enum { PITCH = 64, ROWS = 4, SPACE = 1024 };
    CUresult (*copy)(const CUDA_MEMCPY3D *, CUstream);
    CUdeviceptr from = pin_of(STEPGRAPH_ROLE_STATE, SPACE, "from"), to = pin_of(STEPGRAPH_ROLE_STATE, SPACE, "to");
    stepgraph_step *steps[2];

    *(void **)&copy = stepgraph_session_symbol(session, "cuMemcpy3DAsync", 3020);
    ck_assert(copy != NULL);
    for (unsigned i = 0; i < 2; i++) {
        CUDA_MEMCPY3D x = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from, .srcPitch = PITCH, .srcHeight = ROWS,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to, .dstPitch = PITCH, .dstHeight = ROWS,
                           .WidthInBytes = 16, .Height = _i < 2 ? 1 : 2, .Depth = 1};
        size_t *const changes[] = {&x.srcPitch, &x.dstPitch, &x.srcHeight, &x.dstHeight};
        *changes[_i] += 16 * i;
        steps[i] = recording("step", 0);
        ck_assert_int_eq(copy(&x, stream), CUDA_SUCCESS);
        ready(steps[i]);
    }
    CLEAN(compared(steps[0], steps[1], NULL));
}
END_TEST

START_TEST(chain_and_fork_of_the_same_nodes_are_told_apart)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 64, "x");
    CUstream side = stream_make(CU_STREAM_NON_BLOCKING);
    stepgraph_step *a = recording("a", 0), *b;
    stepgraph_audit *report;

    inc(stream, x, 1);
    inc(stream, x + 16, 1);
    inc(stream, x + 32, 1);
    ready(a);
    b = recording("b", 0);
    OK(stepgraph_step_fork(b, side, "side"));
    inc(stream, x, 1);
    inc(side, x + 16, 1);
    OK(stepgraph_step_join(b, side));
    inc(stream, x + 32, 1);
    ready(b);
    report = compared(a, b, NULL);
    HOLDS(report, 1, 1);
    FOUND(report, TOPOLOGY, 1, "inc", NOWHERE, 0, "record one graph for each form", "the same nodes in another order", "node 1",
          "after node 0", "in the first recording only");
    FOUND(compared(b, a, NULL), TOPOLOGY, 1, "inc", NOWHERE, 0, "record one graph", "in the second recording only");
}
END_TEST

/* Four kernels, the second of which may begin early: 1: the third is on a side stream, 2: no kernel begins early. */
static stepgraph_step *early(CUdeviceptr x, CUstream side, int form)
{
    stepgraph_step *step = recording("early", 0);

    inc(stream, x, 1);
    if (form == 2)
        inc(stream, x, 1);
    else
        inc_early(stream, x, 1);
    if (form == 1)
        OK(stepgraph_step_fork(step, side, "side"));
    inc(form == 1 ? side : stream, x + 16, 1);
    inc(stream, x + 32, 1);
    if (form == 1)
        OK(stepgraph_step_join(step, side));
    ready(step);
    return step;
}

START_TEST(order_beside_programmatic_launches_is_compared)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 64, "x");
    CUstream side = stream_make(CU_STREAM_NON_BLOCKING);
    stepgraph_step *a = early(x, side, 0);

    CLEAN(compared(a, early(x, side, 0), NULL));
    FOUND(compared(a, early(x, side, 1), NULL), TOPOLOGY, 3, "inc", NOWHERE, 0, "record one graph", "the same nodes in another order");
    FOUND(compared(a, early(x, side, 2), NULL), TOPOLOGY, UINT32_MAX, "", NOWHERE, 0, "record one graph", "other programmatic launches in the second");
}
END_TEST

static void nothing(void *user)
{
    (void)user;
}

/* A node of each kind, with something that changes. */
static stepgraph_step *of_every_kind(CUdeviceptr x, void *locked, int k)
{
    stepgraph_step *step = recording("kinds", STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS | STEPGRAPH_STEP_ALLOW_HOST_MEMORY);
    struct Padded padded = {.tag = 1, .scale = 2, .n = 3, .p = x};
    struct Big big = {{1}};
    CUdeviceptr workspace;

    big.words[1] = (uintptr_t)&big + 8 * (unsigned)k; /* Left over. */
    big.words[2] = 5 + (unsigned)k;
    MORE(MemAllocAsync(&workspace, 4096, stream));
    axpb(stream, workspace, x, (float)k);
    MORE(MemFreeAsync(workspace, stream));
    launch(stream, made_for.padded, 1, (void *[]){&padded, &x});
    launch(stream, made_for.big4096, 1, (void *[]){&x, &big});
    CU(MemsetD8Async(x + 16, (unsigned char)k, 8, stream));
    CU(MemcpyDtoDAsync(x, x + 32 + 4 * (CUdeviceptr)k, 4, stream));
    MORE(MemcpyDtoHAsync(locked, x, 4, stream));
    CU(LaunchHostFunc(stream, nothing, (char *)locked + k));
    inc_early(stream, x, (float)k);
    inc(stream, x, 1);
    ready(step);
    return step;
}

/* It is told, or the report is the same without it. */
START_TEST(failed_question_changes_no_comparison)
{
    const char *entry = entries[_i];
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 64, "x");
    void *locked = page_locked(64);
    stepgraph_step *a = of_every_kind(x, locked, 0), *b = of_every_kind(x, locked, 1);
    unsigned long before = driver_calls(entry), calls;
    CUcontext context;
    char wanted[8192];

    snprintf(wanted, sizeof wanted, "%s", stepgraph_audit_text(compared(a, b, NULL)));
    calls = driver_calls(entry) - before;
    for (unsigned nth = 1; nth <= calls; nth++) {
        stepgraph_audit *report = NULL;
        stepgraph_status status;
        driver_fails(entry, nth, CUDA_ERROR_UNKNOWN);
        status = stepgraph_audit_compare(a, b, NULL, &report);
        no_driver_fails();
        if (strcmp(entry, "cuCtxPopCurrent") == 0) /* Undoing cannot be undone. */
            CU(CtxPopCurrent(&context));
        if (status == STEPGRAPH_OK)
            ck_assert_msg(strcmp(stepgraph_audit_text(keep_report(report)), wanted) == 0, "call %u of %s: %s instead of %s", nth, entry,
                          stepgraph_audit_text(report), wanted);
        else
            ck_assert_msg(strstr(last_words(), entry) != NULL && report == NULL, "call %u of %s: %s", nth, entry, last_words());
    }
}
END_TEST

/* ---- what may be compared ------------------------------------------------------------------------------------------------- */

static stepgraph_step *plain(stepgraph_session *of, const char *name)
{
    stepgraph_step *step = step_make(of, name, 0);

    begin_recording(step);
    launch((CUstream)stepgraph_session_stream(of), kernels.nop, 1, NULL);
    OK(stepgraph_step_end(step));
    return step;
}

START_TEST(steps_that_are_not_ready_are_refused_by_name)
{
    stepgraph_step *a = plain(session, "one"), *b = step_make(session, "another", 0);
    stepgraph_audit *report = (stepgraph_audit *)&stream;

    FAILS(STEPGRAPH_ERR_STATE, stepgraph_audit_compare(a, b, NULL, &report), "another", "record it first");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_audit_compare(b, a, NULL, &report), "another");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_audit_compare(a, a, b, &report), "another");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_compare(NULL, a, NULL, &report), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_compare(a, NULL, NULL, &report), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_compare(a, a, NULL, NULL), "audit_out");
    ck_assert_ptr_eq(report, (stepgraph_audit *)&stream);
    /* One with itself would be equal, whatever it has frozen. */
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_compare(a, a, NULL, &report), "one", "given twice");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_compare(a, plain(session, "two"), a, &report), "one", "given twice");
    CLEAN(compared(a, plain(session, "three"), NULL));
}
END_TEST

START_TEST(steps_of_two_sessions_are_refused_by_name)
{
    stepgraph_audit *report = NULL;

    FAILS(STEPGRAPH_ERR_ARGUMENT,
          stepgraph_audit_compare(plain(session, "here"), plain(session_make(NULL), "there"), NULL, &report), "here", "there",
          "different sessions");
}
END_TEST

/* Comparing reads the graphs and runs nothing: each step is still to be run, and can be. */
START_TEST(compared_steps_can_be_replayed)
{
    stepgraph_pin *x = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "x");
    stepgraph_step *a = recording("a", 0), *b;

    inc(stream, stepgraph_pin_address(x), 1);
    ready(a);
    b = recording("b", 0);
    inc(stream, stepgraph_pin_address(x), 10);
    ready(b);
    compared(a, b, NULL);
    ck_assert_float_eq(pin_float(x), 0);
    OK(stepgraph_step_replay(a));
    OK(stepgraph_step_replay(b));
    ck_assert_float_eq(pin_float(x), 11);
}
END_TEST

/* ---- through a callback -----------------------------------------------------------------------------------------------------
 */

/* A host as the callback sees it. */
static struct {
    CUdeviceptr w, g;
    uint64_t asked[10];
    int n, counter, fails_at, wrong;
    float rate; /* Of step k it is rate / k. */
} host;

static stepgraph_status enqueue(void *user, stepgraph_step *step, uint64_t k)
{
    ck_assert_ptr_eq(user, &host);
    STATE_IS(step, STEPGRAPH_STEP_CAPTURING);
    host.asked[host.n++] = k;
    host.counter++;
    if (host.n == host.fails_at)
        return host.wrong < 0 ? (stepgraph_status)host.wrong : stepgraph_step_mark(step, NULL);
    adam(host.w, host.g, host.rate / (float)k, 1, 3);
    return STEPGRAPH_OK;
}

static stepgraph_audit_config host_config(void)
{
    stepgraph_audit_config config = STEPGRAPH_AUDIT_CONFIG_INIT;

    memset(&host, 0, sizeof host);
    host.w = pin_of(STEPGRAPH_ROLE_STATE, 4, "w");
    host.g = device_make(64);
    host.rate = 1;
    config.first = 5;
    config.enqueue = enqueue;
    config.user = &host;
    return config;
}

START_TEST(callback_is_recorded_twice_for_each_step_and_compared)
{
    stepgraph_audit_config config = host_config();
    stepgraph_audit *report = NULL;
    stepgraph_finding f;

    OK(stepgraph_audit_record(session, &config, &report));
    keep_report(report);
    ck_assert_int_eq(host.n, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(host.asked[i], i == 0 || i == 3 ? 5 : 6);
    HOLDS(report, 1, 1);
    f = FOUND(report, CHANGING_SCALAR, 0, "adam", 2, 0, "CELL", "as float 0.200000003 -> 0.166666672");
    ck_assert_uint_eq(f.before, bits(1.0f / 5));
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "step 'step 5', compared with 'step 6'"));
    ck_assert_float_eq(float_at(host.w), 0);       /* Nothing ran. */
    drop_pin(stepgraph_session_pin(session, "w")); /* No step is left that uses it. */
}
END_TEST

START_TEST(steady_callback_has_no_fault)
{
    stepgraph_audit_config config = host_config();
    stepgraph_audit *report = NULL;

    host.rate = 0;
    OK(stepgraph_audit_record(session, &config, &report));
    CLEAN(keep_report(report));
    ck_assert_uint_gt(summary_of(report).bytes, 0);
    ck_assert_uint_eq(summary_of(report).nodes, 1);
}
END_TEST

/* A host that counts its steps itself, or draws its seeds, gives another value in all four recordings. That is no padding. */
static stepgraph_status enqueue_counting(void *user, stepgraph_step *step, uint64_t k)
{
    static uint64_t seed;
    struct Adam values = {0.1f, 0.9f, 0, 0.01f};

    (void)user;
    (void)step;
    (void)k;
    values.step = ++host.counter;
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    launch(stream, made_for.dropout, 1, (void *[]){&host.w, &seed});
    adam(host.w, host.w, 0.1f, 1, host.counter);
    launch(stream, made_for.adam_struct, 1, (void *[]){&values, &host.w});
    return STEPGRAPH_OK;
}

START_TEST(counters_and_seeds_of_the_host_are_no_padding)
{
    stepgraph_audit_config config = host_config();
    stepgraph_audit *report = NULL;

    config.enqueue = enqueue_counting;
    OK(stepgraph_audit_record(session, &config, &report));
    keep_report(report);
    HOLDS(report, 3, 3);
    FOUND(report, CHANGING_SCALAR, 0, "dropout", 1, 0, "CELL", "8 bytes");
    FOUND(report, CHANGING_SCALAR, 1, "adam", 4, 0, "CELL", "as integer 1 -> 2");
    FOUND(report, CHANGING_SCALAR, 2, "adam_struct", 0, 8, "CELL", "as integer 1 -> 2");
}
END_TEST

/* What stands in a place of a large struct, call by call. */
static uint64_t large_word[10];

static stepgraph_status enqueue_large(void *user, stepgraph_step *step, uint64_t k)
{
    struct Big in = {{0}};

    (void)user;
    (void)step;
    ck_assert_int_lt(host.n, 10);
    host.asked[host.n] = k;
    in.words[12] = large_word[host.n++];
    launch(stream, made_for.big4096, 1, (void *[]){&host.w, &in});
    return STEPGRAPH_OK;
}

START_TEST(doubtful_value_of_a_callback_is_recorded_five_times)
{
    static const uint64_t left_over[10] = {3, 4, 4, 3, 4, 3, 3, 4, 4, 4}, value[10] = {7, 8, 8, 7, 8, 7, 7, 8, 8, 7}, still[10] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
    static const uint64_t steps[10] = {5, 6, 6, 5, 6, 5, 5, 6, 6, 5};
    stepgraph_audit_config config = host_config();
    stepgraph_audit *report = NULL;

    config.enqueue = enqueue_large;
    memcpy(large_word, _i == 0 ? left_over : _i == 1 ? value : still, sizeof large_word);
    OK(stepgraph_audit_record(session, &config, &report));
    keep_report(report);
    ck_assert_int_eq(host.n, _i == 2 ? 4 : 10);
    for (int i = 0; i < host.n; i++)
        ck_assert_uint_eq(host.asked[i], steps[i]);
    if (_i == 0) {
        HOLDS(report, 0, 1);
        NOTED(report, UNCLASSIFIED, 0, "big4096", 1, 96, "", "padding");
    } else if (_i == 1) {
        HOLDS(report, 1, 1);
        FOUND(report, CHANGING_SCALAR, 0, "big4096", 1, 96, "CELL", "7 -> 8");
    } else {
        CLEAN(report);
    }
}
END_TEST

START_TEST(failing_callback_is_passed_on)
{
    stepgraph_audit_config config = host_config();
    stepgraph_audit *report = (stepgraph_audit *)&stream;

    host.fails_at = 1 + _i;
    host.wrong = STEPGRAPH_ERR_MEMORY;
    FAILS(STEPGRAPH_ERR_MEMORY, stepgraph_audit_record(session, &config, &report), "enqueue", _i == 0 || _i == 3 ? "step 5" : "step 6",
          "STEPGRAPH_ERR_MEMORY");
    ck_assert_ptr_eq(report, (stepgraph_audit *)&stream);
    ck_assert_int_eq(host.n, 1 + _i);
    /* Everything is unwound. */
    host.fails_at = host.n = 0;
    OK(stepgraph_audit_record(session, &config, &report));
    keep_report(report);
}
END_TEST

START_TEST(callback_that_fails_in_the_library_keeps_its_words)
{
    stepgraph_audit_config config = host_config();
    stepgraph_audit *report = NULL;

    host.fails_at = 3;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_record(session, &config, &report), "step 6", "a name");
}
END_TEST

static stepgraph_status enqueue_waiting(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)k;
    inc(stream, host.w, 1);
    OK(stepgraph_step_mark(step, "reading"));
    ck_assert_int_ne(cu.StreamSynchronize(stream), CUDA_SUCCESS);
    return STEPGRAPH_ERR_ARGUMENT;
}

START_TEST(callback_that_breaks_the_recording_is_told_where)
{
    stepgraph_audit_config config = host_config();
    stepgraph_audit *report = NULL;

    config.enqueue = enqueue_waiting;
    FAILS(STEPGRAPH_ERR_CAPTURE, stepgraph_audit_record(session, &config, &report), "step 5", "reading");
    config.enqueue = enqueue;
    OK(stepgraph_audit_record(session, &config, &report));
    keep_report(report);
}
END_TEST

static stepgraph_status enqueue_nothing(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    (void)k;
    return STEPGRAPH_OK;
}

static stepgraph_status enqueue_pageable(void *user, stepgraph_step *step, uint64_t k)
{
    static char batch[64];

    (void)user;
    (void)step;
    (void)k;
    CU(MemcpyHtoDAsync(host.w, batch, 4, stream));
    return STEPGRAPH_OK;
}

START_TEST(what_end_refuses_is_passed_on_and_flags_are_too)
{
    stepgraph_audit_config config = host_config();
    stepgraph_audit *report = NULL;

    config.enqueue = enqueue_nothing;
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_audit_record(session, &config, &report), "step 5", "nothing was recorded");
    config.enqueue = enqueue_pageable;
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_audit_record(session, &config, &report), "pageable");
    config.flags = STEPGRAPH_STEP_ALLOW_HOST_MEMORY;
    OK(stepgraph_audit_record(session, &config, &report));
    CLEAN(keep_report(report));
    config.flags = 1u << 31;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_record(session, &config, &report), "flags");
}
END_TEST

START_TEST(nothing_to_record_is_refused)
{
    stepgraph_audit_config config = host_config();
    LONGER(stepgraph_audit_config, 8) longer;
    stepgraph_audit *report = NULL;
    stepgraph_step *other;

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_record(NULL, &config, &report), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_record(session, NULL, &report), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_record(session, &config, NULL), "NULL");
    config.enqueue = NULL;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_record(session, &config, &report), "enqueue");
    config.enqueue = enqueue;
    config.reserved = 1;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_record(session, &config, &report), "reserved");
    config.reserved = 0;
    config.size = 8;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_record(session, &config, &report), "size");
    config.size = sizeof config;
    memset(&longer, 0, sizeof longer);
    longer.known = config;
    longer.known.size = sizeof longer;
    longer.bytes[sizeof config] = 1;
    FAILS(STEPGRAPH_ERR_ABI, stepgraph_audit_record(session, &longer.known, &report), "");
    other = recording("other", 0);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_audit_record(session, &config, &report), "other");
    OK(stepgraph_step_reset(other));
    ck_assert_int_eq(host.n, 0);
}
END_TEST

static CUdeviceptr counted_out;

/* ---- what was missed once ---------------------------------------------------------------------------------------------------------- */

/* The same new values, committed into other pins. */
START_TEST(other_pins_of_a_commit_are_named)
{
    stepgraph_pin *pins[3] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b"),
                              pin_make(session, STEPGRAPH_ROLE_STATE, 4, "c")};
    uint64_t from[2] = {device_make(64), device_make(64)};
    stepgraph_step *steps[2];

    for (int i = 0; i < 2; i++) {
        stepgraph_pin *to[2] = {pins[0], pins[1 + i]};
        steps[i] = recording("step", LOOSE);
        OK(stepgraph_pin_commit_many(session, 2, to, from));
        ready(steps[i]);
    }
    ck_assert_uint_ge(summary_of(compared(steps[0], steps[1], NULL)).faults, 1);
}
END_TEST

/* Rows of a set that lie farther apart; and the same bytes, set in other units. */
START_TEST(pitch_and_unit_of_sets_are_compared)
{
    CUresult (*set8)(CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream);
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 1024, "x");
    stepgraph_step *steps[2];

    *(void **)&set8 = stepgraph_session_symbol(session, "cuMemsetD2D8Async", 3020);
    ck_assert(set8 != NULL);
    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", 0);
        if (_i == 0)
            ck_assert_int_eq(set8(x, (size_t)(64 + 64 * i), 1, 16, 4, stream), CUDA_SUCCESS);
        else if (i == 0)
            CU(MemsetD8Async(x, 1, 16, stream)); /* 01 01 01 01 */
        else
            MORE(MemsetD32Async(x, 1, 4, stream)); /* 01 00 00 00 */
        ready(steps[i]);
    }
    ck_assert_uint_ge(summary_of(compared(steps[0], steps[1], NULL)).faults, 1);
}
END_TEST

/* Two pointers of a packed struct that move within scratch. */
START_TEST(two_packed_pointers_that_move_within_scratch_are_no_fault)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 4, "x"), s = pin_of(STEPGRAPH_ROLE_SCRATCH, 1 << 20, "s");
    stepgraph_step *steps[2];
    stepgraph_audit *report;

    for (int i = 0; i < 2; i++) {
        struct Packed in = {.tag = 1, .a = s + (i ? 0x1100 : 0), .s = 2, .b = s + 0x20000 + (i ? 0x1100 : 0)};
        steps[i] = recording("step", STEPGRAPH_STEP_SCAN_BYTES);
        launch(stream, made_for.packed, 1, (void *[]){&in, &x});
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 0, 2);
}
END_TEST

/* A workspace of the graph's own has another address in each recording: no fault in a packed struct either. */
START_TEST(packed_pointer_to_a_workspace_is_no_fault)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 4, "x"), workspace, first = 0;
    stepgraph_step *steps[2];

    for (int i = 0; i < 2; i++) {
        struct Packed in = {.tag = 1, .a = x, .s = 2};
        steps[i] = recording("step", STEPGRAPH_STEP_SCAN_BYTES);
        MORE(MemAllocAsync(&workspace, 4096, stream));
        in.b = workspace;
        launch(stream, made_for.packed, 1, (void *[]){&in, &x});
        MORE(MemFreeAsync(workspace, stream));
        CLEAN(ready(steps[i]));
        if (i == 0)
            first = workspace;
    }
    ck_assert_uint_ne(first, workspace);
    CLEAN(compared(steps[0], steps[1], NULL));
}
END_TEST

/* A report that is full of doubts names a fault all the same. */
START_TEST(fault_behind_a_thousand_doubts_is_named)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 4, "x"), places[2] = {device_make(0x200000), device_make(0x200000)};
    static struct Big large;
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    stepgraph_finding f = STEPGRAPH_FINDING_INIT;

    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", LOOSE);
        for (int k = 0; k < 3; k++) {
            for (int w = 0; w < 400; w++)
                large.words[w] = places[i] + 256 * (uint64_t)w;
            launch(stream, made_for.big4096, 1, (void *[]){&x, &large});
        }
        inc(stream, x, (float)(1 + i)); /* The learning rate. */
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    ck_assert_uint_eq(summary_of(report).faults, 1);
    OK(stepgraph_audit_get(report, 0, &f));
    ck_assert_msg(f.fault == 1, "the first finding is no fault: %s", f.text);
}
END_TEST

/* The same at the end of one recording. */
START_TEST(fault_behind_a_thousand_doubts_is_named_by_end)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 4, "x"), place = device_make(0x200000), fresh = device_make(64);
    static struct Big large;
    stepgraph_step *step = recording("step", 0);
    stepgraph_audit *report = NULL;
    stepgraph_finding f = STEPGRAPH_FINDING_INIT;

    for (int k = 0; k < 3; k++) {
        for (int w = 0; w < 400; w++)
            large.words[w] = place + 256 * (uint64_t)(400 * k + w);
        launch(stream, made_for.big4096, 1, (void *[]){&x, &large});
    }
    axpb(stream, x, fresh, 1);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "1 fault", "node 3", "axpb");
    OK(stepgraph_audit_step(step, &report));
    keep_report(report);
    OK(stepgraph_audit_get(report, 0, &f));
    ck_assert_msg(f.fault == 1, "the first finding is no fault: %s", f.text);
}
END_TEST

/* What nobody reads, as the host says after it has recorded the first step. */
START_TEST(unread_bytes_said_between_recordings)
{
    static const stepgraph_unread unread = {.pattern = "*", .argument = UINT32_MAX, .argument_bytes = sizeof(struct Inner), .offset = 24, .bytes = 8};
    stepgraph_step *steps[3];
    stepgraph_audit *report;
    int k = 1;
    char byte = 1;

    counted_out = pin_of(STEPGRAPH_ROLE_OUTPUT, 64, "out");
    for (int i = 0; i < 3; i++) {
        struct Inner small = {.p = counted_out, .n = 1};
        small.tail[1] = (const uint64_t[]){0x3f81234511223344u, 0x7777000155667788u, 0xc1d2e3f40badcafeu}[i];
        if (i == 1 && _i)
            OK(stepgraph_session_set_unread(session, &unread, 1));
        steps[i] = recording("step", LOOSE);
        launch(stream, made_for.inner, 1, (void *[]){&small, &counted_out, &k, &byte, &counted_out});
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], steps[2]);
    ck_assert_msg(summary_of(report).faults == 0, "%s", stepgraph_audit_text(report));
}
END_TEST

/* Events that another stream waits for, recorded as nodes. */
START_TEST(other_event_is_named)
{
    CUresult (*record_event)(CUevent, CUstream, unsigned);
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 4, "x");
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    CUevent e[2];

    *(void **)&record_event = stepgraph_session_symbol(session, "cuEventRecordWithFlags", 11010);
    ck_assert(record_event != NULL);
    for (int i = 0; i < 2; i++)
        CU(EventCreate(&e[i], 0));
    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", 0);
        inc(stream, x, 1);
        ck_assert_int_eq(record_event(e[i], stream, 1), CUDA_SUCCESS);
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    ck_assert_uint_eq(summary_of(report).doubtful, 1);
    DOUBTED(report, TOPOLOGY, 1, "event record", UINT32_MAX, 0, "same event", "records another event in the second recording");
    for (int i = 0; i < 2; i++) {
        drop_step(steps[i]);
        CU(EventDestroy(e[i]));
    }
}
END_TEST

/* A pointer that stays within scratch in one other recording, and leaves it in the next. */
START_TEST(pointer_that_leaves_scratch_in_a_later_recording_is_named)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 4, "x"), s = pin_of(STEPGRAPH_ROLE_SCRATCH, 4096, "s"), w = device_make(4096);
    const CUdeviceptr places[3] = {s, s + 256, w};
    stepgraph_step *steps[3];
    stepgraph_audit *report;

    for (int i = 0; i < 3; i++) {
        steps[i] = recording("step", LOOSE);
        axpb(stream, x, places[i], 1);
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], steps[2]);
    HOLDS(report, 1, 1);
    ck_assert_uint_eq(FOUND(report, MOVED_POINTER, 0, "axpb", 1, 0, "pin it", "scratch 's'", "4096 bytes that no pin covers").after, w);
}
END_TEST

/* The same of new values. */
START_TEST(new_value_that_leaves_scratch_in_a_later_recording_is_named)
{
    stepgraph_pin *pins[2] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b")};
    CUdeviceptr s = pin_of(STEPGRAPH_ROLE_SCRATCH, 4096, "s"), w = device_make(4096);
    const CUdeviceptr places[3] = {s, s + 256, w};
    stepgraph_step *steps[3];

    for (int i = 0; i < 3; i++) {
        uint64_t from[2] = {places[i], s + 1024};
        steps[i] = recording("step", LOOSE);
        OK(stepgraph_pin_commit_many(session, 2, pins, from));
        ready(steps[i]);
    }
    ck_assert_uint_eq(summary_of(compared(steps[0], steps[1], steps[2])).faults, 1);
}
END_TEST

/* Copies of one call run side by side: in which order they are given is all the same. */
START_TEST(order_of_the_pins_of_a_commit_is_no_fault)
{
    stepgraph_pin *pins[2] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b")};
    uint64_t from[2] = {device_make(64), device_make(64)};
    stepgraph_step *steps[2];

    for (int i = 0; i < 2; i++) {
        stepgraph_pin *to[2] = {pins[i], pins[1 - i]};
        uint64_t of[2] = {from[i], from[1 - i]};
        steps[i] = recording("step", LOOSE);
        OK(stepgraph_pin_commit_many(session, 2, to, of));
        ready(steps[i]);
    }
    CLEAN(compared(steps[0], steps[1], NULL));
}
END_TEST

/* Texts are whole characters, whatever names are cut off. */
START_TEST(texts_are_utf_8_whatever_names_are)
{
    char name[STEPGRAPH_NAME_MOST + 1], quoted[4096];
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    stepgraph_finding f = STEPGRAPH_FINDING_INIT;
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 64, "x"), w;

    memset(name, 'x', sizeof name);
    for (int i = _i; i + 2 < (int)sizeof name; i += 2)
        memcpy(&name[i], "\xc3\xa4", 3);
    name[sizeof name - 1] = '\0';
    w = pin_of(STEPGRAPH_ROLE_STATE, 64, name);
    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", LOOSE);
        axpb(stream, x, w + 16 * (CUdeviceptr)i, 1);
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    OK(stepgraph_audit_get(report, 0, &f));
    snprintf(quoted, sizeof quoted, "\"%s\"", f.text);
    ck_assert_msg(json_fault(quoted) == NULL, "no UTF-8: %s", f.text);
    ck_assert_msg(strstr(f.text, "+ 16") != NULL, "the places look alike: %s", f.text);
}
END_TEST

/* The caller's context stays current, on all ways out. */
START_TEST(context_stack_is_left_as_it_was)
{
    static char *heap;
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 4, "x");
    stepgraph_step *steps[2];
    stepgraph_audit *report = NULL;
    CUcontext other, now;

    if (heap == NULL)
        heap = malloc(1 << 20);
    for (int i = 0; i < 2; i++) {
        uint64_t word = (uintptr_t)heap + 4096 * (uint64_t)(i + 1);
        steps[i] = recording("step", LOOSE);
        launch(stream, made_for.dropout, 1, (void *[]){&x, &word});
        inc(stream, x, (float)i);
        ready(steps[i]);
    }
    CU(CtxCreate(&other, 0, 0));
    if (_i == 1)
        driver_fails("cuPointerGetAttributes", 1, 999);
    if (_i == 2)
        driver_fails("cuGraphKernelNodeGetParams", 3, 999);
    ck_assert_int_eq(stepgraph_audit_compare(steps[0], steps[1], NULL, &report) == STEPGRAPH_OK, _i != 2);
    no_driver_fails();
    CU(CtxGetCurrent(&now));
    ck_assert_ptr_eq(now, other);
    CU(CtxDestroy(other));
    stepgraph_audit_destroy(report);
}
END_TEST

/* A graph may give the same address to allocations that follow each other: each has to be freed. */
START_TEST(second_allocation_at_an_address_is_named)
{
    CUdeviceptr x = pin_of(STEPGRAPH_ROLE_STATE, 4, "x"), one, two;
    stepgraph_step *step = recording("step", 0);

    MORE(MemAllocAsync(&one, 4096, stream));
    axpb(stream, x, one, 1);
    MORE(MemFreeAsync(one, stream));
    MORE(MemAllocAsync(&two, 4096, stream));
    axpb(stream, x, two, 1);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "allocation", "nothing in the graph frees");
}
END_TEST

static stepgraph_audit *in_order(stepgraph_step *(*with)(uint64_t), uint64_t base, uint64_t by)
{
    stepgraph_step *a[2], *b[2];
    stepgraph_audit *report = NULL;

    a[0] = with(base); /* k, k + 1, k + 1, k */
    b[0] = with(base + by);
    b[1] = with(base + 2 * by);
    a[1] = with(base + 3 * by);
    OK(stepgraph_audit_compare_many(2, a, 2, b, &report));
    return keep_report(report);
}

static stepgraph_step *with_seed(uint64_t seed)
{
    stepgraph_step *step = recording("step", LOOSE);

    launch(stream, made_for.dropout, 1, (void *[]){&counted_out, &seed});
    ready(step);
    return step;
}

static stepgraph_step *with_small_counter(uint64_t count)
{
    stepgraph_step *step = recording("step", LOOSE);
    struct Packed in = {.tag = 1, .s = 2};
    uint16_t n = (uint16_t)count;

    memcpy((char *)&in + 20, &n, sizeof n);
    launch(stream, made_for.packed, 1, (void *[]){&in, &counted_out});
    ready(step);
    return step;
}

static stepgraph_step *with_member(uint64_t count)
{
    stepgraph_step *step = recording("step", LOOSE);
    struct Adam in = {.rate = 1, .correction = 1, .step = (int)count, .decay = 1};

    launch(stream, made_for.adam_struct, 1, (void *[]){&in, &counted_out});
    ready(step);
    return step;
}

/* The offset of a generator goes on by 1,024 with each recording. */
START_TEST(counter_that_goes_on_by_whole_bytes_is_a_fault)
{
    static const uint64_t by[] = {4, 0x100, 0x400, 0x10000};

    counted_out = pin_of(STEPGRAPH_ROLE_OUTPUT, 64, "out");
    HOLDS(in_order(with_seed, 0x404, by[_i]), 1, 1);
}
END_TEST

START_TEST(member_that_goes_on_by_whole_bytes_is_a_fault)
{
    static const uint64_t by[] = {4, 0x100, 0x400, 0x10000};

    counted_out = pin_of(STEPGRAPH_ROLE_OUTPUT, 64, "out");
    HOLDS(in_order(with_member, 0x404, by[_i]), 1, 1);
}
END_TEST

START_TEST(counter_of_two_bytes_at_the_end_is_a_fault)
{
    counted_out = pin_of(STEPGRAPH_ROLE_OUTPUT, 64, "out");
    HOLDS(in_order(with_small_counter, 5, 1), 1, 1);
}
END_TEST

/* As every other call answers then. */
START_TEST(recordings_of_a_context_that_is_gone_are_not_read)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    struct unit_kernels of_other;
    stepgraph_session *mine;
    stepgraph_step *steps[2];
    stepgraph_audit *report = NULL;
    CUcontext other, before;
    stepgraph_pin *x;
    CUdevice device;

    unit_leaves_objects(1);
    CU(CtxGetCurrent(&before));
    CU(DeviceGet(&device, 0));
    CU(CtxCreate(&other, 0, device));
    kernels_load(&of_other);
    config.context = other;
    mine = session_make(&config);
    x = pin_make(mine, STEPGRAPH_ROLE_STATE, 4, "x");
    for (int i = 0; i < 2; i++) {
        CUdeviceptr p = stepgraph_pin_address(x);
        float v = (float)i;
        steps[i] = step_make(mine, "step", 0);
        begin_recording(steps[i]);
        launch((CUstream)stepgraph_session_stream(mine), of_other.inc, 1, (void *[]){&p, &v});
        OK(stepgraph_step_end(steps[i]));
    }
    CU(CtxDestroy(other));
    CU(CtxSetCurrent(before));
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_audit_compare(steps[0], steps[1], NULL, &report), "context");
    drop_step(steps[0]);
    drop_step(steps[1]);
    drop_pin(x);
    drop_session(mine);
}
END_TEST

/* A step count as the first member of a struct: goes on by more than one with each recording. */
START_TEST(first_member_that_goes_on_is_a_fault)
{
    stepgraph_step *a[2], *b[2];
    stepgraph_audit *report = NULL;

    counted_out = pin_of(STEPGRAPH_ROLE_OUTPUT, 64, "out");
    for (int i = 0; i < 4; i++) {
        struct Packed in = {.tag = 4 + 4 * i, .s = 2};
        stepgraph_step *step = recording("step", LOOSE);
        launch(stream, made_for.packed, 1, (void *[]){&in, &counted_out});
        ready(step);
        (i == 0 || i == 3 ? a : b)[i == 0 || i == 1 ? 0 : 1] = step;
    }
    OK(stepgraph_audit_compare_many(2, a, 2, b, &report));
    keep_report(report);
    HOLDS(report, 1, 1);
}
END_TEST

/* A block of an older step in place of a temporary, in a later recording only. */
START_TEST(older_block_in_a_later_recording_is_named)
{
    stepgraph_arena_config config = STEPGRAPH_ARENA_CONFIG_INIT;
    CUdeviceptr out = pin_of(STEPGRAPH_ROLE_STATE, 4, "out");
    stepgraph_arena *arena = NULL;
    stepgraph_step *steps[3] = {NULL};
    uint64_t t = 0, aside, old = 0;
    stepgraph_audit *report;

    config.bytes = 1 << 16;
    OK(stepgraph_arena_create(session, &config, &arena));
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            OK(stepgraph_arena_alloc(arena, 256, "aside", &aside)); /* So that temporaries come to lie elsewhere. */
        if (i == 2)
            OK(stepgraph_arena_alloc(arena, 256, "old", &old));
        steps[i] = recording("step", 0);
        if (i < 2)
            OK(stepgraph_arena_alloc(arena, 256, "t", &t));
        axpb(stream, out, i < 2 ? t : old, 1);
        if (i < 2)
            OK(stepgraph_arena_free(arena, t));
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], steps[2]);
    ck_assert_msg(summary_of(report).faults == 1, "%s", stepgraph_audit_text(report));
    for (int i = 0; i < 3; i++)
        drop_step(steps[i]);
    OK(stepgraph_arena_destroy(arena));
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("audit_compare");
    TCase *tc = audit_case(suite, "a: moved");

    tcase_add_test(tc, k03_parameter_that_moves_every_step_is_named);
    tcase_add_test(tc, k03_buffers_that_change_places_are_named);
    tcase_add_test(tc, k03_step_that_moves_among_its_pins_is_told_to_stay);
    tcase_add_test(tc, k03_buffer_that_moves_now_and_then_is_named_where_the_steps_straddle_it);
    tcase_add_loop_test(tc, k03_parameter_that_moves_within_an_arena_is_named, 0, 2);
    tcase_add_test(tc, temporary_where_an_older_block_was_is_no_fault);
    tcase_add_loop_test(tc, older_block_in_place_of_a_temporary_is_named, 0, 2);
    tcase_add_test(tc, workspace_that_grew_is_named);
    tcase_add_test(tc, k04_batch_that_is_made_anew_is_named);
    tcase_add_test(tc, optional_pointer_that_appears_is_named);
    tcase_add_test(tc, pointers_through_extra_and_in_child_graphs_are_compared);
    tcase_add_loop_test(tc, bytes_that_one_recording_passes_alone_are_not_compared, 0, 2);
    tcase_add_test(tc, new_values_that_move_are_named_by_their_pin);
    tcase_add_test(tc, fewer_new_values_are_told);
    tcase_add_test(tc, earlier_place_of_a_state_is_named_by_its_pin);

    tc = audit_case(suite, "b: values");
    tcase_add_test(tc, k01_rate_correction_and_step_count_by_value_are_named);
    tcase_add_test(tc, k02_seed_by_value_is_named);
    tcase_add_test(tc, values_in_a_struct_are_named_by_their_byte);
    tcase_add_test(tc, two_values_in_eight_bytes_are_named);
    tcase_add_test(tc, pointer_in_a_packed_struct_shows_when_it_moves);
    tcase_add_loop_test(tc, pointer_in_a_packed_struct_is_named_byte_by_byte, 0, 4);
    tcase_add_test(tc, values_and_extents_of_sets_and_copies_are_compared);
    tcase_add_test(tc, size_and_use_of_a_workspace_are_compared);
    tcase_add_test(tc, host_functions_and_their_arguments_are_compared);
    tcase_add_test(tc, arguments_of_host_functions_that_are_made_for_each_recording_are_no_fault_where_allowed);
    tcase_add_loop_test(tc, padding_is_told_from_values_by_a_third_recording, 1, 21);
    tcase_add_test(tc, without_a_third_recording_padding_is_accused);
    tcase_add_test(tc, values_beside_padding_are_named);

    tc = audit_case(suite, "c: forms");
    tcase_add_test(tc, one_node_more_is_explained);
    tcase_add_test(tc, other_kernel_is_explained);
    tcase_add_test(tc, other_kind_of_node_is_explained);
    tcase_add_test(tc, other_grid_is_explained);
    tcase_add_loop_test(tc, other_rows_and_planes_are_told, 0, 7);
    tcase_add_loop_test(tc, distance_of_a_single_row_or_plane_is_no_fault, 0, 4);
    tcase_add_test(tc, chain_and_fork_of_the_same_nodes_are_told_apart);
    tcase_add_test(tc, order_beside_programmatic_launches_is_compared);
    add_controlled_loop_test(tc, failed_question_changes_no_comparison, 0, ENTRIES);

    tc = audit_case(suite, "d: states");
    tcase_add_test(tc, steps_that_are_not_ready_are_refused_by_name);
    tcase_add_test(tc, steps_of_two_sessions_are_refused_by_name);
    tcase_add_test(tc, compared_steps_can_be_replayed);

    tc = audit_case(suite, "e: callback");
    tcase_add_test(tc, callback_is_recorded_twice_for_each_step_and_compared);
    tcase_add_test(tc, steady_callback_has_no_fault);
    tcase_add_test(tc, counters_and_seeds_of_the_host_are_no_padding);
    tcase_add_loop_test(tc, doubtful_value_of_a_callback_is_recorded_five_times, 0, 3);
    tcase_add_loop_test(tc, failing_callback_is_passed_on, 0, 4);
    tcase_add_test(tc, callback_that_fails_in_the_library_keeps_its_words);
    tcase_add_test(tc, callback_that_breaks_the_recording_is_told_where);
    tcase_add_test(tc, what_end_refuses_is_passed_on_and_flags_are_too);
    tcase_add_test(tc, nothing_to_record_is_refused);
    tc = audit_case(suite, "what is easily missed");
    tcase_add_test(tc, other_pins_of_a_commit_are_named);
    tcase_add_loop_test(tc, pitch_and_unit_of_sets_are_compared, 0, 2);
    tcase_add_test(tc, two_packed_pointers_that_move_within_scratch_are_no_fault);
    tcase_add_test(tc, packed_pointer_to_a_workspace_is_no_fault);
    tcase_add_test(tc, fault_behind_a_thousand_doubts_is_named);
    tcase_add_test(tc, fault_behind_a_thousand_doubts_is_named_by_end);
    tcase_add_loop_test(tc, unread_bytes_said_between_recordings, 0, 2);
    tcase_add_test(tc, other_event_is_named);
    tcase_add_test(tc, pointer_that_leaves_scratch_in_a_later_recording_is_named);
    tcase_add_test(tc, new_value_that_leaves_scratch_in_a_later_recording_is_named);
    tcase_add_test(tc, order_of_the_pins_of_a_commit_is_no_fault);
    tcase_add_loop_test(tc, context_stack_is_left_as_it_was, 0, 1);
    add_controlled_loop_test(tc, context_stack_is_left_as_it_was, 1, 3);
    tcase_add_test(tc, second_allocation_at_an_address_is_named);
    tcase_add_test(tc, counter_of_two_bytes_at_the_end_is_a_fault);
    tcase_add_loop_test(tc, counter_that_goes_on_by_whole_bytes_is_a_fault, 0, 4);
    tcase_add_loop_test(tc, member_that_goes_on_by_whole_bytes_is_a_fault, 0, 4);
    tcase_add_test(tc, recordings_of_a_context_that_is_gone_are_not_read);
    tcase_add_test(tc, first_member_that_goes_on_is_a_fault);
    tcase_add_test(tc, older_block_in_a_later_recording_is_named);
    tcase_add_loop_test(tc, texts_are_utf_8_whatever_names_are, 0, 2);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
