/* Programs that nothing is wrong with must not be accused: neither by end nor by comparing two of their steps. */
#include "findings.h"

/* Of all recordings: everything is tried by words, and byte by byte. */
static uint32_t flags;

static void by_words(void)
{
    flags = 0;
}

static void by_bytes(void)
{
    flags = STEPGRAPH_STEP_SCAN_BYTES;
}

static CUdeviceptr pin_of(stepgraph_role role, uint64_t bytes, const char *name)
{
    return stepgraph_pin_address(pin_make(session, role, bytes, name));
}

/* Record steps 0, 1 and 1 once more; none has a finding, nor have they compared. */
static void must_be_clean(void (*enqueue)(stepgraph_step *step, int k))
{
    stepgraph_step *steps[3];

    for (int i = 0; i < 3; i++) {
        steps[i] = recording("step", flags);
        enqueue(steps[i], i < 2 ? i : 1);
        CLEAN(ready(steps[i]));
    }
    CLEAN(compared(steps[0], steps[1], NULL));
    CLEAN(compared(steps[0], steps[1], steps[2]));
    ck_assert_uint_gt(summary_of(compared(steps[0], steps[1], steps[2])).bytes, 0);
    for (int i = 0; i < 2; i++)
        OK(stepgraph_step_replay(steps[i]));
    OK(stepgraph_session_wait(session));
}

/* Two steps, of which the second has values that the first had not: what is found is no pointer. */
static stepgraph_audit *two(void (*enqueue)(stepgraph_step *step, int k))
{
    stepgraph_step *steps[2];

    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", flags);
        enqueue(steps[i], i);
        CLEAN(ready(steps[i]));
    }
    return compared(steps[0], steps[1], NULL);
}

/* ---- a whole step ------------------------------------------------------------------------------------------------------ */

static stepgraph_pin *x, *y, *rate, *seed, *w[3], *loss, *table, *pool;

static void whole_step(stepgraph_step *step, int k)
{
    CUdeviceptr p[3], s = stepgraph_pin_address(pool);
    uint64_t fresh[3] = {s, s + 256, s + 512};
    int one = 1;

    for (int i = 0; i < 3; i++)
        p[i] = stepgraph_pin_address(w[i]);
    OK(stepgraph_pin_feed_f32(x, (float)k));
    OK(stepgraph_pin_feed_f32(y, (float)k + 1));
    OK(stepgraph_pin_feed_f32(rate, 1.0f / (float)(k + 1)));
    OK(stepgraph_pin_feed_u64(seed, (uint64_t)k * 77));
    OK(stepgraph_step_mark(step, "forward"));
    CU(MemsetD8Async(s, 0, 1024, stream));
    update(stream, s, p[0], stepgraph_pin_address(x), stepgraph_pin_address(rate), one);
    axpb(stream, stepgraph_pin_address(loss), stepgraph_pin_address(table) + 4, 1);
    OK(stepgraph_step_mark(step, "optimizer"));
    for (int i = 0; i < 3; i++)
        update(stream, fresh[i], p[i], stepgraph_pin_address(y), stepgraph_pin_address(rate), one);
    OK(stepgraph_pin_commit_many(session, 2, w, fresh));
    OK(stepgraph_pin_commit(w[2], fresh[2]));
    copyf(stream, s + 768, stepgraph_pin_address(seed));
}

START_TEST(step_over_pins_of_every_role_is_clean)
{
    x = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "x");
    y = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "y");
    rate = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "rate");
    seed = pin_make(session, STEPGRAPH_ROLE_CELL, 8, "seed");
    w[0] = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w0");
    w[1] = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w1");
    w[2] = pin_adopt(session, STEPGRAPH_ROLE_STATE, device_make(64), 4, "w2");
    loss = pin_make(session, STEPGRAPH_ROLE_OUTPUT, 4, "loss");
    table = pin_make(session, STEPGRAPH_ROLE_CONST, 64, "table");
    pool = pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4096, "pool");
    must_be_clean(whole_step);
}
END_TEST

/* ---- numbers that look like addresses ------------------------------------------------------------------------------------ */

static CUdeviceptr out;

static void wide(unsigned long long a, double b, int low, int high)
{
    int pair[2] = {low, high};

    launch(stream, made_for.wide, 1, (void *[]){&out, &a, &b, pair});
}

/* Near memory that there is, and never in it. */
static void numbers(stepgraph_step *step, int k)
{
    uint64_t far = out ^ (uint64_t)1 << 45;

    (void)step;
    (void)k;
    wide(far, 1e-310, 4096, 0x7f20);
    wide(UINT64_MAX, -1.5, -1, -1);
    wide((uint64_t)1 << 56, 5e-324, 0, 1);
    wide(0x7fffdeadbeef0000ull, 1e308, (int)(uint32_t)far, (int)(far >> 32));
    wide(0x10000, 0x1p-1022, 0x10000, 0);
    wide(65535, 0, 65535, 0);
}

START_TEST(numbers_that_look_like_addresses_are_clean)
{
    out = pin_of(STEPGRAPH_ROLE_OUTPUT, 4, "out");
    must_be_clean(numbers);
}
END_TEST

static void numbers_that_change(stepgraph_step *step, int k)
{
    uint64_t far = out ^ (uint64_t)1 << 45;

    (void)step;
    wide(far + 8 * (unsigned)k, 1e-310 * (1 + k), 4096 + k, 0x7f20);
}

START_TEST(numbers_that_look_like_addresses_and_change_are_numbers)
{
    stepgraph_audit *report;

    out = pin_of(STEPGRAPH_ROLE_OUTPUT, 4, "out");
    report = two(numbers_that_change);
    HOLDS(report, 3, 3);
    FOUND(report, CHANGING_SCALAR, 0, "wide", 1, 0, "CELL", "8 bytes");
    FOUND(report, CHANGING_SCALAR, 0, "wide", 2, 0, "CELL", "as double");
    FOUND(report, CHANGING_SCALAR, 0, "wide", 3, 0, "CELL", "8 bytes");
}
END_TEST

/* ---- pointers that are none of the usual ---------------------------------------------------------------------------------- */

static void optional(stepgraph_step *step, int k)
{
    struct Views views = {.out = out, .in = out, .n = 3};
    CUdeviceptr none = 0;

    (void)step;
    (void)k;
    launch(stream, made_for.views, 1, (void *[]){&views});
    views.bias = out + 4;
    launch(stream, made_for.views, 1, (void *[]){&views});
    launch(stream, made_for.fill, 1, (void *[]){&none, &none, (float[]){1}});
}

START_TEST(optional_pointers_are_clean)
{
    out = pin_of(STEPGRAPH_ROLE_STATE, 8, "out");
    must_be_clean(optional);
}
END_TEST

static CUdeviceptr begin, end;

static void a_range(stepgraph_step *step, int k)
{
    (void)step;
    (void)k;
    launch(stream, made_for.fill, 1, (void *[]){&begin, &end, (float[]){1}});
}

static void range_over_pins_of(stepgraph_role role, unsigned n, const uint64_t *bytes)
{
    for (unsigned i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%u", i);
        begin = pin_of(role, bytes[i], name);
        end = begin + bytes[i];
        must_be_clean(a_range);
    }
}

START_TEST(range_that_ends_where_a_pin_ends_is_clean)
{
    static const uint64_t bytes[] = {4, 12, 252, 260, 508, 4100, 65532};

    range_over_pins_of(_i ? STEPGRAPH_ROLE_FEED : STEPGRAPH_ROLE_STATE, sizeof bytes / sizeof *bytes, bytes);
}
END_TEST

/* Whole grains of the driver's: what follows is memory of the library's, or none. On a card it may be anybody's. */
START_TEST(range_that_ends_where_a_pin_and_its_memory_end_is_clean)
{
    static const uint64_t bytes[] = {256, 512, 4096, 65536};

    range_over_pins_of(_i ? STEPGRAPH_ROLE_FEED : STEPGRAPH_ROLE_STATE, sizeof bytes / sizeof *bytes, bytes);
}
END_TEST

/* Between pins that the host has side by side. */
START_TEST(range_that_ends_where_the_next_pin_begins_is_clean)
{
    begin = device_make(8192);
    end = begin + 4096;
    pin_adopt(session, STEPGRAPH_ROLE_STATE, begin, 4096, "first");
    pin_adopt(session, STEPGRAPH_ROLE_STATE, end, 4096, "second");
    must_be_clean(a_range);
}
END_TEST

/* The byte behind an adopted pin may be another buffer of the host's, which a kernel may well have been given: an end cannot be
 * told from it. So it is accused, and the words say what it may be. */
START_TEST(end_of_an_adopted_pin_is_accused_where_memory_goes_on)
{
    stepgraph_step *step;

    begin = device_make(8192);
    end = begin + 4096;
    pin_adopt(session, STEPGRAPH_ROLE_STATE, begin, 4096, "first");
    step = recording("step", flags);
    a_range(step, 0);
    FOUND(refused(step), UNREGISTERED, 0, "fill", 1, 0, "pin it", "right behind pin 'first'");
}
END_TEST

/* ---- memory of the graph's own ----------------------------------------------------------------------------------------------
 */

static CUdeviceptr workspaces[3];
static int n_workspaces;

static void workspace(stepgraph_step *step, int k)
{
    CUdeviceptr a, b;

    (void)step;
    (void)k;
    MORE(MemAllocAsync(&a, 65536, stream));
    setv(stream, a + 1024, 1);
    MORE(MemAllocAsync(&b, 4096, stream));
    axpb(stream, b, a + 1024, 1);
    axpb(stream, out, b, 1);
    MORE(MemFreeAsync(b, stream));
    MORE(MemFreeAsync(a, stream));
    workspaces[n_workspaces++] = a;
}

START_TEST(workspaces_that_the_graph_allocates_are_clean)
{
    out = pin_of(STEPGRAPH_ROLE_STATE, 4, "out");
    n_workspaces = 0;
    must_be_clean(workspace);
    ck_assert_uint_ne(workspaces[0], workspaces[1]); /* All of them live, so each stands elsewhere. */
}
END_TEST

/* ---- scratch ------------------------------------------------------------------------------------------------------------------
 */

static CUdeviceptr scratch;

static void activations(stepgraph_step *step, int k)
{
    (void)step;
    (void)k;
    setv(stream, scratch + 256, 2);
    axpb(stream, scratch + 512, scratch + 256, 1);
    axpb(stream, out, scratch + 512, 1);
}

START_TEST(scratch_that_is_used_alike_is_clean)
{
    out = pin_of(STEPGRAPH_ROLE_STATE, 4, "out");
    scratch = pin_of(STEPGRAPH_ROLE_SCRATCH, 65536, "pool");
    must_be_clean(activations);
}
END_TEST

/* An allocator hands out other blocks in each step. Nothing in scratch outlives a step, so each graph is right in itself. */
START_TEST(activations_that_move_within_scratch_are_no_fault)
{
    stepgraph_step *steps[2];
    stepgraph_pin *target = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "out");
    stepgraph_audit *report;

    out = stepgraph_pin_address(target);
    scratch = pin_of(STEPGRAPH_ROLE_SCRATCH, 65536, "pool");
    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", flags);
        activations(steps[i], 0);
        OK(stepgraph_pin_commit(target, scratch + 512));
        CLEAN(ready(steps[i]));
        scratch += 4096;
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 0, 5);
    NOTED(report, MOVED_POINTER, 0, "setv", 0, 0, "nothing in scratch 'pool'", "scratch 'pool' + 256", "scratch 'pool' + 4352");
    for (int i = 0; i < 2; i++) {
        OK(stepgraph_step_replay(steps[i]));
        ck_assert_float_eq(float_at(out), 3);
    }
}
END_TEST

static stepgraph_arena *arena;

static void with_arena(stepgraph_step *step, int k)
{
    uint64_t a, b;

    (void)step;
    (void)k;
    OK(stepgraph_arena_alloc(arena, 1024, "hidden", &a));
    setv(stream, a, 2);
    OK(stepgraph_arena_alloc(arena, 64, "logits", &b));
    axpb(stream, b, a, 1);
    OK(stepgraph_arena_free(arena, a));
    axpb(stream, out, b, 1);
    OK(stepgraph_arena_free(arena, b));
}

START_TEST(steps_over_an_arena_have_no_fault)
{
    stepgraph_arena_config config = STEPGRAPH_ARENA_CONFIG_INIT;
    stepgraph_step *steps[2];
    uint64_t kept;

    out = pin_of(STEPGRAPH_ROLE_STATE, 4, "out");
    config.bytes = 1 << 20;
    config.quarantine_bytes = 1 << 16;
    OK(stepgraph_arena_create(session, &config, &arena));
    OK(stepgraph_arena_alloc(arena, 1024, "kept for a while", &kept));
    for (int i = 0; i < 2; i++) {
        if (i == _i) /* Before both recordings, or between them: then the blocks of the second one stand elsewhere. */
            OK(stepgraph_arena_free(arena, kept));
        steps[i] = recording("step", flags);
        with_arena(steps[i], 0);
        CLEAN(ready(steps[i]));
    }
    ck_assert_uint_eq(summary_of(compared(steps[0], steps[1], NULL)).faults, 0);
    ck_assert_uint_eq(summary_of(compared(steps[0], steps[1], NULL)).findings, _i ? 4 : 0);
    for (int i = 0; i < 2; i++) {
        OK(stepgraph_step_replay(steps[i]));
        ck_assert_float_eq(float_at(out), 4);
        drop_step(steps[i]);
    }
    OK(stepgraph_arena_destroy(arena));
}
END_TEST

/* ---- other shapes
 * --------------------------------------------------------------------------------------------------------------- */

static CUstream side;

static void fork_and_join(stepgraph_step *step, int k)
{
    (void)k;
    inc(stream, out, 1);
    OK(stepgraph_step_fork(step, side, "side"));
    inc(side, out + 16, 1);
    inc(stream, out + 32, 1);
    inc(side, out + 16, 1);
    OK(stepgraph_step_join(step, side));
    inc(stream, out, 1);
}

START_TEST(fork_and_join_are_clean)
{
    out = pin_of(STEPGRAPH_ROLE_STATE, 64, "out");
    side = stream_make(CU_STREAM_NON_BLOCKING);
    must_be_clean(fork_and_join);
}
END_TEST

static void many_nodes(stepgraph_step *step, int k)
{
    (void)step;
    (void)k;
    for (int i = 0; i < 1000; i++)
        inc(stream, out + 4 * (CUdeviceptr)(i % 16), (float)i);
}

START_TEST(two_recordings_of_the_same_step_are_clean)
{
    out = pin_of(STEPGRAPH_ROLE_STATE, 64, "out");
    must_be_clean(many_nodes);
    ck_assert_uint_eq(summary_of(two(many_nodes)).nodes, 1000);
    ck_assert_uint_ge(summary_of(two(many_nodes)).bytes, 12000);
}
END_TEST

/* Commits of one and of many, from places that stay; and a step without any change to commit. */
static void commits(stepgraph_step *step, int k)
{
    uint64_t fresh[3] = {scratch, scratch + 256, stepgraph_pin_address(w[2])};

    (void)step;
    (void)k;
    setv(stream, scratch, 1);
    OK(stepgraph_pin_commit(w[0], scratch));
    OK(stepgraph_pin_commit_many(session, 3, w, fresh));
    OK(stepgraph_pin_commit(w[2], stepgraph_pin_address(w[2])));
}

START_TEST(commits_are_clean)
{
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        w[i] = pin_make(session, STEPGRAPH_ROLE_STATE, 4, name);
    }
    scratch = pin_of(STEPGRAPH_ROLE_SCRATCH, 4096, "pool");
    must_be_clean(commits);
}
END_TEST

/* A host that works out of place before it records, and over the pins while it does. */
static void in_place(stepgraph_step *step, int k)
{
    (void)step;
    (void)k;
    inc(stream, out, 1);
}

START_TEST(state_that_stood_elsewhere_before_is_clean)
{
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    CUdeviceptr old = device_make(64);

    out = stepgraph_pin_address(pin);
    for (int i = 0; i < 3; i++)
        OK(stepgraph_pin_commit(pin, old));
    must_be_clean(in_place);
}
END_TEST

/* Memory that earlier steps used and that is gone is nobody's concern any more. */
START_TEST(memory_of_earlier_steps_is_forgotten_once_it_is_registered)
{
    stepgraph_step *step;
    CUdeviceptr old = device_make(4096);

    step = recording("earlier", flags | STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    inc(stream, old, 1);
    ready(step);
    drop_step(step);
    device_drop(old);
    out = device_make(4096); /* Perhaps at the same address. */
    pin_adopt(session, STEPGRAPH_ROLE_STATE, out, 4096, "new");
    must_be_clean(in_place);
}
END_TEST

/* ---- what stands beside addresses ------------------------------------------------------------------------------------ */

static CUdeviceptr beside[4];

/* Addresses between numbers of all sizes, and side by side, in a struct that is set in part: none of the eight bytes that begin between them is one. */
static void crowd(stepgraph_step *step, int k)
{
    static unsigned char bytes[sizeof(struct Big)];
    CUdeviceptr first = beside[0];
    uint64_t random = 12345;
    struct Views in = {.out = beside[0], .in = beside[1], .bias = beside[2], .n = 3};

    (void)step;
    (void)k;
    for (size_t at = 0; at + 8 <= sizeof bytes; at += 8) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t value = at % 24 == 0 ? random >> 60 : at % 56 == 8 ? random >> 33 : at % 88 == 16 ? (uintptr_t)&bytes[random % 64] : beside[random >> 62];
        memcpy(&bytes[at], &value, 8);
    }
    launch(stream, made_for.views, 1, (void *[]){&in});
    launch(stream, made_for.big4096, 1, (void *[]){&first, bytes});
}

START_TEST(numbers_between_addresses_are_clean)
{
    for (int i = 0; i < 4; i++) {
        char name[] = "0";
        name[0] = (char)('0' + i);
        beside[i] = pin_of(STEPGRAPH_ROLE_STATE, (uint64_t)256 << 3 * i, name);
    }
    (void)device_make(1 << 20); /* Memory of others is not far. */
    must_be_clean(crowd);
}
END_TEST

static TCase *clean_case(Suite *suite, const char *name, void (*how)(void))
{
    TCase *tc = audit_case(suite, name);

    tcase_add_checked_fixture(tc, how, NULL);
    return tc;
}

static void add_all(Suite *suite, void (*how)(void))
{
    TCase *tc = clean_case(suite, "a: whole", how);

    tcase_add_test(tc, step_over_pins_of_every_role_is_clean);
    tcase_add_test(tc, two_recordings_of_the_same_step_are_clean);
    tcase_add_test(tc, fork_and_join_are_clean);
    tcase_add_test(tc, commits_are_clean);

    tc = clean_case(suite, "b: numbers", how);
    tcase_add_test(tc, numbers_that_look_like_addresses_are_clean);
    tcase_add_test(tc, numbers_that_look_like_addresses_and_change_are_numbers);
    tcase_add_test(tc, numbers_between_addresses_are_clean);

    tc = clean_case(suite, "c: pointers", how);
    tcase_add_test(tc, optional_pointers_are_clean);
    tcase_add_loop_test(tc, range_that_ends_where_a_pin_ends_is_clean, 0, 2);
    add_controlled_loop_test(tc, range_that_ends_where_a_pin_and_its_memory_end_is_clean, 0, 2);
    tcase_add_test(tc, range_that_ends_where_the_next_pin_begins_is_clean);
    tcase_add_test(tc, end_of_an_adopted_pin_is_accused_where_memory_goes_on);

    tc = clean_case(suite, "d: memory", how);
    tcase_add_test(tc, workspaces_that_the_graph_allocates_are_clean);
    tcase_add_test(tc, scratch_that_is_used_alike_is_clean);
    tcase_add_test(tc, activations_that_move_within_scratch_are_no_fault);
    tcase_add_loop_test(tc, steps_over_an_arena_have_no_fault, 0, 2);
    tcase_add_test(tc, state_that_stood_elsewhere_before_is_clean);
    tcase_add_test(tc, memory_of_earlier_steps_is_forgotten_once_it_is_registered);
}

static Suite *make(void)
{
    Suite *suite = suite_create("audit_clean");

    add_all(suite, by_words);
    add_all(suite, by_bytes);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
