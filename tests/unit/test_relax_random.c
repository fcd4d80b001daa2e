/*
 * Relaxing steps that are drawn from seeds: on every number of lanes replays leave the bytes that launches leave.
 */
#include "relaxing.h"

/* What three replays leave. */
static void drawn_replayed(stepgraph_step *step, unsigned char *to)
{
    drawn_fill();
    replayed(step, 3);
    drawn_bytes(to);
}

START_TEST(relaxed_replays_give_what_launches_give)
{
    static const uint32_t lanes[] = {1, 2, 4, 8, 16, 0};
    unsigned char wanted[PINS * BYTES], got[PINS * BYTES];
    stepgraph_step *step = begin("drawn", 0);
    stepgraph_relax_summary s;

    drawn_make(1 + (uint64_t)_i, _i % 2 == 0 ? 0 : 1 << 16);
    drawn_fill();
    for (int k = 0; k < 3; k++)
        drawn_body();
    drawn_bytes(wanted);

    begin_recording(step);
    drawn_body();
    OK(stepgraph_step_end(step));
    drawn_replayed(step, got);
    ck_assert_msg(memcmp(got, wanted, sizeof got) == 0, "the step as it was recorded is not what was launched");
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        s = relax_to(step, lanes[i]);
        if (lanes[i] != 0)
            ck_assert_uint_eq(s.lanes, lanes[i]);
        else
            ck_assert_int_eq(s.identical, 1);
        ck_assert_uint_le(s.path_unused, s.path_needed);
        ck_assert_uint_le(s.path_needed, s.path_recorded);
        drawn_replayed(step, got);
        for (size_t k = 0; k < sizeof got; k++)
            if (got[k] != wanted[k])
                ck_abort_msg("on %u lanes byte %zu is %02x instead of %02x", lanes[i], k, got[k], wanted[k]);
    }
    ck_assert_uint_eq(step_stats(step).replays, 3 + 3 * sizeof lanes / sizeof *lanes);
}
END_TEST

/* ---- what holds of any step ------------------------------------------------------------------------------------------ */

/* On a card what has no order runs as it comes. */
static void order_is(unsigned long long seed)
{
    if (unit_has_controls())
        driver_seed(seed);
}

/* With what the kernels only read declared. */
static stepgraph_relax *relaxed_reading(stepgraph_step *step, uint32_t lanes)
{
    static const stepgraph_relax_kernel reads[] = {{"axpb", 1, 0}, {"copyf", 1, 0}, {"update", 1, 0}, {"update", 2, 0}, {"update", 3, 0}, {"packed", 0, 0}};
    stepgraph_relax_config config = on_lanes(lanes);

    config.reads = reads;
    config.n_reads = sizeof reads / sizeof *reads;
    return relaxed(step, &config);
}

/* Whatever the order of what has none: two replays leave these bytes. */
static void kept_apart(stepgraph_step *step, void (*fill)(void), void (*read)(unsigned char *), const unsigned char *wanted, size_t bytes)
{
    const uint32_t lanes = step_stats(step).lanes;
    unsigned char *got = malloc(bytes);

    for (unsigned k = 0; k < 4; k++) {
        order_is(1 + 4 * lanes + k);
        fill();
        replayed(step, 2);
        read(got);
        order_is(0);
        for (size_t at = 0; at < bytes; at++)
            if (got[at] != wanted[at])
                ck_abort_msg("on %u lanes byte %zu of place %zu is %02x instead of %02x", lanes, at % BYTES, at / BYTES, got[at], wanted[at]);
    }
    free(got);
}

/* What is declared truly is not accused, and all is put back: so many bytes. */
static void verified(stepgraph_step *step, void (*fill)(void), void (*read)(unsigned char *), size_t bytes)
{
    stepgraph_verify_config verification = STEPGRAPH_VERIFY_CONFIG_INIT;
    stepgraph_verify_summary found = STEPGRAPH_VERIFY_SUMMARY_INIT;
    unsigned char *before = malloc(bytes), *after = malloc(bytes);
    stepgraph_verify *report = NULL;

    fill();
    read(before);
    verification.steps = 2;
    verification.repeats = 2;
    order_is(5);
    OK(stepgraph_step_verify(step, &verification, &report));
    order_is(0);
    OK(stepgraph_verify_get_summary(report, &found));
    ck_assert_msg(found.verdict == STEPGRAPH_NO_FAULT_FOUND, "%s", stepgraph_verify_text(report));
    stepgraph_verify_destroy(report);
    read(after);
    ck_assert_msg(memcmp(before, after, bytes) == 0, "something is not as it was");
    free(before);
    free(after);
}

/* ---- memory that stands close together ------------------------------------------------------------------------------- */

/* Memory of every sort that stands close together, and side streams that have parts of it to themselves while they are forked. */
enum { PLACES = 18, SIDES = 2 };
static struct {
    uint64_t seed;
    CUdeviceptr at[PLACES], rate, fixed;
    CUdeviceptr views;
    CUstream sides[SIDES];
    stepgraph_pin *states[4];
    CUresult (*set_2d_16)(CUdeviceptr, size_t, unsigned short, size_t, size_t, CUstream);
    CUresult (*set_2d_8)(CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream);
} close_by;

static void close_by_make(uint64_t seed)
{
    static const char *const names[] = {"first", "second", "third", "fourth"};
    CUdeviceptr neighbours = device_make(4 * BYTES), pool = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_SCRATCH, 8 * BYTES, "pool"));

    close_by.seed = seed;
    for (int i = 0; i < 4; i++) {
        close_by.at[i] = neighbours + (CUdeviceptr)i * BYTES;
        close_by.states[i] = pin_adopt(session, STEPGRAPH_ROLE_STATE, close_by.at[i], BYTES, names[i]);
    }
    for (int i = 0; i < 4; i++) { /* One behind the other; half of the pool is not noted. */
        close_by.at[4 + i] = pool + (CUdeviceptr)i * BYTES;
        OK(stepgraph_arena_note_alloc(session, close_by.at[4 + i], BYTES, "block"));
        close_by.at[8 + i] = pool + (CUdeviceptr)(4 + i) * BYTES;
    }
    close_by.views = device_make(4 * BYTES);
    for (int i = 0; i < 2; i++)
        close_by.at[12 + i] = close_by.views + (CUdeviceptr)(2 * i) * BYTES;
    for (int i = 14; i < PLACES; i++)
        close_by.at[i] = device_make(BYTES);
    close_by.rate = pin(STEPGRAPH_ROLE_CELL, "rate");
    close_by.fixed = pin(STEPGRAPH_ROLE_CONST, "fixed");
    for (int i = 0; i < SIDES; i++)
        close_by.sides[i] = stream_make(CU_STREAM_NON_BLOCKING);
    *(void **)&close_by.set_2d_8 = stepgraph_session_symbol(session, "cuMemsetD2D8Async", 3020);
    *(void **)&close_by.set_2d_16 = stepgraph_session_symbol(session, "cuMemsetD2D16Async", 3020);
}

static void close_by_fill(void)
{
    float values[FLOATS];

    for (int i = 0; i < PLACES; i++) {
        for (int k = 0; k < FLOATS; k++)
            values[k] = (float)((i * 5 + k * 3) % 13);
        put_bytes(close_by.at[i], values, sizeof values);
    }
}

static void close_by_bytes(unsigned char *to)
{
    OK(stepgraph_session_wait(session));
    for (int i = 0; i < PLACES; i++)
        bytes_at(close_by.at[i], to + i * BYTES, BYTES);
}

/* step: NULL: all on one stream. Forked, each stream has the places to itself whose number leaves its own. */
static void close_by_body(stepgraph_step *step)
{
    uint64_t s = close_by.seed;
    int forked = 0;

    for (int i = 0; i < 70; i++) {
        const int lane = forked ? (int)(unit_random(&s) % (SIDES + 1)) : 0, n = forked ? PLACES / (SIDES + 1) : PLACES;
        const CUstream on = step != NULL && lane > 0 ? close_by.sides[lane - 1] : stream;
        CUdeviceptr at[4];
        for (int k = 0; k < 4; k++)
            at[k] = close_by.at[forked ? (int)(unit_random(&s) % (unsigned)n) * (SIDES + 1) + lane : (int)(unit_random(&s) % (unsigned)n)];
        switch (unit_random(&s) % 12) {
        case 0:
            if (unit_random(&s) % 3 != 0)
                break;
            for (int k = 0; step != NULL && k < SIDES; k++)
                OK(forked ? stepgraph_step_join(step, close_by.sides[k]) : stepgraph_step_fork(step, close_by.sides[k], "side"));
            forked = !forked;
            break;
        case 1:
            CU(MemsetD8Async(at[0] + unit_random(&s) % 32, (unsigned char)unit_random(&s), 1 + unit_random(&s) % 32, on));
            break;
        case 2:
            ck_assert_int_eq(close_by.set_2d_8(at[0] + unit_random(&s) % 8, 12 + unit_random(&s) % 5, (unsigned char)i, 1 + unit_random(&s) % 9, 3, on), 0);
            break;
        case 3:
            ck_assert_int_eq(close_by.set_2d_16(at[0] + 2 * (unit_random(&s) % 4), 16, (unsigned short)(i * 77), 1 + unit_random(&s) % 6, 3, on), 0);
            break;
        case 4:
            if (at[0] != at[1])
                CU(MemcpyDtoDAsync(at[0] + 4 * (unit_random(&s) % 8), at[1] + 4 * (unit_random(&s) % 8), 4 + unit_random(&s) % 28, on));
            break;
        case 5:
            if (!forked) /* Over the end of the one into the next. */
                CU(MemsetD8Async(close_by.at[unit_random(&s) % 3] + 48, (unsigned char)i, 32, on));
            break;
        case 6:
            update(on, at[0], at[1], at[2], close_by.rate, FLOATS);
            break;
        case 7:
            inc(on, at[0] + 4 * (unit_random(&s) % FLOATS), (float)i);
            break;
        case 8:
            copyf(on, at[0], close_by.fixed);
            break;
        case 9: {
            struct Packed packed = {.tag = 1, .a = at[1], .s = 2, .b = at[2]};
            if (at[0] != at[1] && at[0] != at[2])
                launch(on, made_for.packed, 1, (void *[]){&packed, &at[0]});
            break;
        }
        default:
            axpb(on, at[0] + 4 * (unit_random(&s) % FLOATS), at[1] + 4 * (unit_random(&s) % FLOATS), 0.5f);
            break;
        }
    }
    for (int k = 0; forked && step != NULL && k < SIDES; k++)
        OK(stepgraph_step_join(step, close_by.sides[k]));
}

START_TEST(memory_that_stands_close_together_is_kept_apart)
{
    static const uint32_t lanes[] = {4, 16, 64};
    unsigned char wanted[PLACES * BYTES];
    stepgraph_step *step;

    close_by_make(1 + (uint64_t)_i);
    close_by_fill();
    for (int k = 0; k < 2; k++)
        close_by_body(NULL);
    close_by_bytes(wanted);
    step = record_begin("close by", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    close_by_body(step);
    OK(stepgraph_step_end(step));
    for (unsigned i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        relaxed_reading(step, lanes[i]);
        kept_apart(step, close_by_fill, close_by_bytes, wanted, sizeof wanted);
    }
}
END_TEST

START_TEST(memory_that_stands_close_together_is_verified)
{
    stepgraph_step *step;

    close_by_make(101 + (uint64_t)_i);
    step = record_begin("close by", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    close_by_body(step);
    OK(stepgraph_step_end(step));
    relaxed_reading(step, 16);
    verified(step, close_by_fill, close_by_bytes, PLACES * BYTES);
}
END_TEST

/* ---- nodes of every kind ------------------------------------------------------------------------------------------------ */

/* Nodes of every kind that a recording may hold: copies of planes, child graphs in child graphs, host functions over page-locked memory, launches
 * through `extra`, cooperative ones, commits. Forked, each stream has the places, the graph and the host memory to itself that bear its number. */
enum { PARTS = SIDES + 1, MIXED = 4 * PARTS };
static struct {
    uint64_t seed;
    int host; /* Host functions and host memory, too, which nobody can put back. */
    CUdeviceptr at[MIXED], rate;
    CUstream sides[SIDES];
    stepgraph_pin *states[4];
    unsigned char *page_locked[PARTS];
    struct child {
        CUgraph graph;
        CUgraphExec exec;
    } inner[PARTS], outer[PARTS];
    CUresult (*launch_graph)(CUgraphExec, CUstream);
    CUresult (*copy_3d)(const CUDA_MEMCPY3D *, CUstream);
    CUresult (*cooperative)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **);
} mixed;

static struct child child_of(CUstream other)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    struct child made;

    MORE(StreamEndCapture(other, &made.graph));
    MORE(GraphInstantiateWithParams(&made.exec, made.graph, &params));
    return made;
}

static void mixed_children(int part)
{
    CUstream other = stream_make(CU_STREAM_NON_BLOCKING);

    MORE(StreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    inc(other, mixed.at[part], 3);
    CU(MemcpyDtoDAsync(mixed.at[part] + 16, mixed.at[part], 8, other));
    mixed.inner[part] = child_of(other);
    MORE(StreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    axpb(other, mixed.at[part + PARTS], mixed.at[part], 1);
    add_graph(other, mixed.inner[part].graph);
    CU(MemsetD8Async(mixed.at[part + 2 * PARTS] + 8, 7, 5, other));
    mixed.outer[part] = child_of(other);
}

static void mixed_make(uint64_t seed, int host)
{
    static const char *const names[] = {"first", "second", "third", "fourth"};
    CUdeviceptr neighbours = device_make(4 * BYTES), pool = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4 * BYTES, "pool"));
    CUdeviceptr views = device_make(4 * BYTES);

    mixed.seed = seed;
    mixed.host = host;
    for (int i = 0; i < 4; i++) {
        mixed.at[i] = neighbours + (CUdeviceptr)i * BYTES;
        mixed.states[i] = pin_adopt(session, STEPGRAPH_ROLE_STATE, mixed.at[i], BYTES, names[i]);
        mixed.at[4 + i] = pool + (CUdeviceptr)i * BYTES;
        OK(stepgraph_arena_note_alloc(session, mixed.at[4 + i], BYTES, "block"));
        mixed.at[8 + i] = views + (CUdeviceptr)i * BYTES;
    }
    mixed.rate = pin(STEPGRAPH_ROLE_CELL, "rate");
    *(void **)&mixed.launch_graph = stepgraph_session_symbol(session, "cuGraphLaunch", 10000);
    *(void **)&mixed.copy_3d = stepgraph_session_symbol(session, "cuMemcpy3DAsync", 3020);
    *(void **)&mixed.cooperative = stepgraph_session_symbol(session, "cuLaunchCooperativeKernel", 9000);
    for (int i = 0; i < SIDES; i++)
        mixed.sides[i] = stream_make(CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < PARTS; i++) {
        mixed.page_locked[i] = page_locked(BYTES);
        mixed_children(i);
    }
}

static void mixed_drop(void)
{
    for (int i = 0; i < 2 * PARTS; i++) {
        struct child *child = i < PARTS ? &mixed.outer[i] : &mixed.inner[i - PARTS];
        MORE(GraphExecDestroy(child->exec));
        MORE(GraphDestroy(child->graph));
    }
}

static void mixed_fill(void)
{
    float values[FLOATS];

    OK(stepgraph_session_wait(session));
    for (int i = 0; i < MIXED; i++) {
        for (int k = 0; k < FLOATS; k++)
            values[k] = (float)((i * 5 + k * 3) % 13);
        put_bytes(mixed.at[i], values, sizeof values);
    }
    for (int i = 0; i < PARTS; i++)
        memset(mixed.page_locked[i], i + 1, BYTES);
}

static void mixed_bytes(unsigned char *to)
{
    OK(stepgraph_session_wait(session));
    for (int i = 0; i < MIXED; i++)
        bytes_at(mixed.at[i], to + i * BYTES, BYTES);
    for (int i = 0; i < PARTS; i++)
        memcpy(to + (MIXED + i) * BYTES, mixed.page_locked[i], BYTES);
}

static void add_to_all(void *bytes)
{
    for (int i = 0; i < BYTES; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)(((unsigned char *)bytes)[i] * 3 + 1);
}

static void mixed_node(uint64_t *s, int part, int forked, CUstream on, int recorded)
{
    const struct child *child;
    unsigned char *host = mixed.page_locked[part];
    CUdeviceptr at[3], end;
    float v = 2;

    for (int k = 0; k < 3; k++)
        at[k] = mixed.at[forked ? (int)(unit_random(s) % (MIXED / PARTS)) * PARTS + part : (int)(unit_random(s) % MIXED)];
    switch (unit_random(s) % 16) {
    case 0:
        CU(MemsetD8Async(at[0] + unit_random(s) % 32, (unsigned char)unit_random(s), 1 + unit_random(s) % 32, on));
        break;
    case 1: {
        CUDA_MEMCPY3D x = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = at[1], .srcPitch = 8, .srcHeight = 3, .srcXInBytes = unit_random(s) % 4,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = at[0], .dstPitch = 12, .dstHeight = 3, .dstY = unit_random(s) % 2,
                           .WidthInBytes = 1 + unit_random(s) % 4, .Height = 1 + unit_random(s) % 2, .Depth = 1 + unit_random(s) % 2};
        if (at[0] != at[1])
            ck_assert_int_eq(mixed.copy_3d(&x, on), CUDA_SUCCESS);
        break;
    }
    case 2:
        if (at[0] != at[1])
            CU(MemcpyDtoDAsync(at[0] + 4 * (unit_random(s) % 8), at[1] + 4 * (unit_random(s) % 8), 4 + unit_random(s) % 28, on));
        break;
    case 3:
        child = unit_random(s) % 2 == 0 ? &mixed.inner[part] : &mixed.outer[part];
        if (recorded)
            add_graph(on, child->graph);
        else
            ck_assert_int_eq(mixed.launch_graph(child->exec, on), CUDA_SUCCESS);
        break;
    case 4:
        if (mixed.host)
            MORE(MemcpyDtoHAsync(host + unit_random(s) % 8, at[0], 16, on));
        break;
    case 5:
        if (mixed.host)
            CU(LaunchHostFunc(on, add_to_all, host));
        break;
    case 6:
        if (mixed.host)
            CU(MemcpyHtoDAsync(at[0] + 4, host + unit_random(s) % 8, 16, on));
        break;
    case 7:
        ck_assert_int_eq(mixed.cooperative(kernels.inc, 1, 1, 1, 1, 1, 1, 0, on, (void *[]){&at[0], &v}), CUDA_SUCCESS);
        break;
    case 8: {
        struct { CUdeviceptr d, p; float v; } packed = {at[0], at[1], 0.25f};
        size_t bytes = 20;
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
        CU(LaunchKernel(kernels.axpb, 1, 1, 1, 1, 1, 1, 0, on, NULL, extra));
        break;
    }
    case 9:
        if (at[0] != at[1] && at[0] != at[2]) {
            struct Packed packed = {.tag = 1, .a = at[1], .s = 2, .b = at[2]};
            launch(on, made_for.packed, 1, (void *[]){&packed, &at[0]});
        }
        break;
    case 10:
        end = at[0] + BYTES - 4; /* No byte of the next place, which may be another stream's. */
        at[0] += 4 * (unit_random(s) % (FLOATS - 1));
        launch(on, made_for.fill, 1, (void *[]){&at[0], &end, &v});
        break;
    case 11:
        if (!forked && at[0] != mixed.at[0] && at[0] != mixed.at[1] && at[1] != mixed.at[0] && at[1] != mixed.at[1])
            OK(stepgraph_pin_commit_many(session, 2, (stepgraph_pin *[]){mixed.states[0], mixed.states[1]}, (uint64_t[]){at[0], at[1]}));
        break;
    case 12:
        update(on, at[0], at[1], at[2], mixed.rate, FLOATS);
        break;
    default:
        axpb(on, at[0] + 4 * (unit_random(s) % FLOATS), at[1] + 4 * (unit_random(s) % FLOATS), 0.5f);
        break;
    }
}

/* step: NULL: all on one stream. */
static void mixed_body(stepgraph_step *step)
{
    uint64_t s = mixed.seed;
    int forked = 0;

    for (int i = 0; i < 50; i++) {
        const int part = (int)(unit_random(&s) % PARTS);
        if (unit_random(&s) % 10 == 0) {
            for (int k = 0; step != NULL && k < SIDES; k++)
                OK(forked ? stepgraph_step_join(step, mixed.sides[k]) : stepgraph_step_fork(step, mixed.sides[k], "side"));
            forked = !forked;
        }
        mixed_node(&s, part, forked, step != NULL && forked && part > 0 ? mixed.sides[part - 1] : stream, step != NULL);
    }
    for (int k = 0; forked && step != NULL && k < SIDES; k++)
        OK(stepgraph_step_join(step, mixed.sides[k]));
}

START_TEST(nodes_of_every_kind_are_kept_apart)
{
    static const uint32_t lanes[] = {2, 16, 64, 0};
    unsigned char wanted[(MIXED + PARTS) * BYTES];
    stepgraph_relax *report;
    stepgraph_step *step;

    mixed_make(1 + (uint64_t)_i, _i % 2);
    mixed_fill();
    for (int k = 0; k < 2; k++)
        mixed_body(NULL);
    mixed_bytes(wanted);
    step = record_begin("mixed", STEPGRAPH_STEP_ALLOW_UNREGISTERED | STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS | STEPGRAPH_STEP_ALLOW_HOST_MEMORY);
    mixed_body(step);
    OK(stepgraph_step_end(step));
    for (unsigned i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        if (lanes[i] == 0 && mixed.host)
            continue;
        mixed_fill();
        report = relaxed_reading(step, lanes[i]);
        if (lanes[i] == 0)
            ck_assert_int_ne(summary(report).identical, 0);
        kept_apart(step, mixed_fill, mixed_bytes, wanted, sizeof wanted);
    }
    drop_newest_step();
    mixed_drop();
}
END_TEST

START_TEST(nodes_of_every_kind_are_verified)
{
    stepgraph_step *step;

    mixed_make(101 + (uint64_t)_i, 0);
    step = record_begin("mixed", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    mixed_body(step);
    OK(stepgraph_step_end(step));
    relaxed_reading(step, 16);
    verified(step, mixed_fill, mixed_bytes, (MIXED + PARTS) * BYTES);
    drop_newest_step();
    mixed_drop();
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("relax_random");
    TCase *steps = relax_case(suite, "drawn");

    tcase_add_loop_test(steps, relaxed_replays_give_what_launches_give, 0, 20);
    tcase_add_loop_test(steps, memory_that_stands_close_together_is_kept_apart, 0, 40);
    tcase_add_loop_test(steps, memory_that_stands_close_together_is_verified, 0, 20);
    tcase_add_loop_test(steps, nodes_of_every_kind_are_kept_apart, 0, 40);
    tcase_add_loop_test(steps, nodes_of_every_kind_are_verified, 0, 20);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
