/*
 * Relaxing: which nodes wait for which, that replays give what launches give, what is a barrier, what is refused, and that all is put back.
 *
 * cusim runs the nodes of a graph one after another, in the order of its calls as long as that fits, so what shows here is the order itself
 * (edges), and bytes where the order is really another one: a set at the front, which a kernel stands in for that was added last. All of it runs
 * with cusim's own search for nodes that touch the same bytes without a path between them.
 */
#include <locale.h>
#include <unistd.h>

#include "findings.h"
#include "relax_p.h"

#include "hidden_kernels_ptx.h"

enum { FLOATS = 16, BYTES = FLOATS * sizeof(float) };

/* ---- reports and arenas, given back after the test --------------------------------------------------------------------- */

static stepgraph_relax *reports[64];
static stepgraph_arena *arenas[4];
static int n_reports, n_arenas;
static CUmodule hidden_module;

static void setup(void)
{
    n_reports = n_arenas = 0;
    reopen_listening(STEPGRAPH_LOG_WARNING);
}

static stepgraph_step *steps[16];
static int n_steps;

static void teardown(void)
{
    while (n_reports > 0)
        stepgraph_relax_destroy(reports[--n_reports]);
    while (n_steps > 0)
        drop_step(steps[--n_steps]);
    while (n_arenas > 0)
        OK(stepgraph_arena_destroy(arenas[--n_arenas]));
    if (hidden_module != NULL)
        CU(ModuleUnload(hidden_module));
    hidden_module = NULL;
}

static stepgraph_step *begin(const char *name, uint32_t flags)
{
    return steps[n_steps++] = step_make(session, name, flags);
}

static stepgraph_arena *arena_make(uint64_t bytes, uint64_t quarantine_bytes)
{
    stepgraph_arena_config config = STEPGRAPH_ARENA_CONFIG_INIT;

    config.bytes = bytes;
    config.quarantine_bytes = quarantine_bytes;
    OK(stepgraph_arena_create(session, &config, &arenas[n_arenas]));
    return arenas[n_arenas++];
}

static stepgraph_relax_config on_lanes(uint32_t lanes)
{
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;

    config.lanes = lanes;
    return config;
}

static stepgraph_relax_summary summary(const stepgraph_relax *relax)
{
    stepgraph_relax_summary s = STEPGRAPH_RELAX_SUMMARY_INIT;

    OK(stepgraph_relax_get_summary(relax, &s));
    return s;
}

static stepgraph_relax *relaxed(stepgraph_step *step, const stepgraph_relax_config *config)
{
    OK(stepgraph_step_relax(step, config, &reports[n_reports]));
    return reports[n_reports++];
}

static stepgraph_relax_summary relax_to(stepgraph_step *step, uint32_t lanes)
{
    stepgraph_relax_config config = on_lanes(lanes);

    return summary(relaxed(step, &config));
}

/* ---- order --------------------------------------------------------------------------------------------------------- */

/* Whether node `to` waits for node `from` by the order that is needed. */
static int waits(const stepgraph_step *step, uint32_t from, uint32_t to)
{
    const sg__order *order = &step->relaxed->needed;
    unsigned char reached[256] = {0};

    reached[from] = 1;
    /* Edges go from earlier to later numbers, as these recordings are chains. */
    for (uint32_t node = from + 1; node <= to; node++)
        for (size_t i = 0; i < order->n_edges; i++)
            if (order->edges[i].to == node && reached[order->edges[i].from])
                reached[node] = 1;
    return reached[to];
}

static stepgraph_barrier reason_of(const stepgraph_step *step, uint32_t node)
{
    return (stepgraph_barrier)step->relaxed->footprint.reasons[node];
}

static CUdeviceptr pin(stepgraph_role role, const char *name)
{
    return stepgraph_pin_address(pin_make(session, role, BYTES, name));
}

static stepgraph_step *record_begin(const char *name, uint32_t flags)
{
    stepgraph_step *step = begin(name, flags);

    begin_recording(step);
    return step;
}

START_TEST(nodes_that_touch_nothing_in_common_do_not_wait)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b"), c = pin(STEPGRAPH_ROLE_STATE, "c");
    stepgraph_step *step = record_begin("apart", 0);
    stepgraph_relax_summary s;

    inc(stream, a, 1);     /* 0 */
    inc(stream, b, 2);     /* 1 */
    inc(stream, a, 3);     /* 2 */
    copyf(stream, c, b);   /* 3 */
    axpb(stream, a, c, 1); /* 4 */
    OK(stepgraph_step_end(step));
    s = relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 0);
    ck_assert_int_eq(waits(step, 0, 2), 1);
    ck_assert_int_eq(waits(step, 1, 3), 1);
    ck_assert_int_eq(waits(step, 0, 3), 0);
    ck_assert_int_eq(waits(step, 2, 4), 1);
    ck_assert_int_eq(waits(step, 3, 4), 1);
    ck_assert_uint_eq(s.nodes, 5);
    ck_assert_uint_eq(s.edges_recorded, 4);
    ck_assert_uint_eq(s.path_recorded, 5);
    ck_assert_uint_eq(s.edges_needed, 4); /* 0-2, 1-3, 2-4, 3-4 */
    ck_assert_uint_eq(s.path_needed, 3);
    ck_assert_uint_eq(s.barriers, 0);
    ck_assert_uint_eq(s.lanes, 4);
    ck_assert_int_eq(s.identical, -1);
    ck_assert_uint_eq(s.launches, 0);
    ck_assert_uint_eq(step_stats(step).lanes, 4);
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(float_at(a), 3);
    ck_assert_float_eq(float_at(b), 2);
    ck_assert_float_eq(float_at(c), 2);
}
END_TEST

START_TEST(two_readers_wait_for_each_other_unless_declared)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b"), shared = pin(STEPGRAPH_ROLE_STATE, "shared");
    stepgraph_relax_kernel reads[] = {{"ax?b", 1, 0}};
    stepgraph_relax_config config = on_lanes(4);
    stepgraph_step *step = record_begin("readers", 0);

    axpb(stream, a, shared, 1);
    axpb(stream, b, shared, 2);
    inc(stream, shared, 3);
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(relax_to(step, 4).reads, 0);
    ck_assert_int_eq(waits(step, 0, 1), 1);
    config.reads = reads;
    config.n_reads = 1;
    ck_assert_uint_eq(summary(relaxed(step, &config)).reads, 2);
    ck_assert_int_eq(waits(step, 0, 1), 0);
    ck_assert_int_eq(waits(step, 0, 2), 1);
    ck_assert_int_eq(waits(step, 1, 2), 1);
    reads[0].argument = 0; /* The one that is written: then the other is not declared. */
    ck_assert_uint_eq(summary(relaxed(step, &config)).reads, 2);
    ck_assert_int_eq(waits(step, 0, 1), 1);
    reads[0].argument = UINT32_MAX;
    ck_assert_uint_eq(summary(relaxed(step, &config)).reads, 4);
    reads[0] = (stepgraph_relax_kernel){"another", 1, 0};
    ck_assert_uint_eq(summary(relaxed(step, &config)).reads, 0);
}
END_TEST

/* As their roles say: FEED, CELL and CONST are read by many at once. */
START_TEST(pins_that_the_step_does_not_write_tie_nothing_together)
{
    static const stepgraph_role roles[] = {STEPGRAPH_ROLE_FEED,  STEPGRAPH_ROLE_CELL,   STEPGRAPH_ROLE_CONST,
                                           STEPGRAPH_ROLE_STATE, STEPGRAPH_ROLE_OUTPUT, STEPGRAPH_ROLE_SCRATCH,
                                           STEPGRAPH_ROLE_LIBRARY};
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b"), shared = pin(roles[_i], "shared");
    stepgraph_relax_config config = on_lanes(4);
    stepgraph_step *step = record_begin("roles", 0);

    axpb(stream, a, shared, 1);
    axpb(stream, b, shared, 2);
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), _i < 3 ? 0 : 1);
    config.flags = STEPGRAPH_RELAX_INPUTS_WRITTEN;
    relaxed(step, &config);
    ck_assert_int_eq(waits(step, 0, 1), _i == 2 ? 0 : 1);
}
END_TEST

START_TEST(copies_and_sets_touch_what_they_say_and_no_more)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b");
    stepgraph_step *step = record_begin("copies", 0);

    CU(MemsetD8Async(a, 0, 16, stream));       /* 0 */
    CU(MemsetD8Async(a + 16, 0, 16, stream));  /* 1 */
    CU(MemcpyDtoDAsync(b, a, 8, stream));      /* 2 reads of 0's */
    CU(MemcpyDtoDAsync(b + 8, a, 8, stream));  /* 3 reads the same */
    CU(MemcpyDtoDAsync(a + 12, b, 4, stream)); /* 4 writes of 0's, reads of 2's */
    CU(MemcpyDtoDAsync(a + 32, b, 4, stream)); /* 5 */
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 0);
    ck_assert_int_eq(waits(step, 0, 2), 1);
    ck_assert_int_eq(waits(step, 1, 2), 0);
    ck_assert_int_eq(waits(step, 2, 3), 0);
    ck_assert_int_eq(waits(step, 2, 4), 1);
    ck_assert_int_eq(waits(step, 3, 4), 0);
    ck_assert_int_eq(waits(step, 4, 5), 0);
}
END_TEST

START_TEST(commits_touch_what_stands_in_their_list)
{
    stepgraph_pin *p[3] = {pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, "p"), pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, "q"),
                           pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, "r")};
    CUdeviceptr scratch = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_SCRATCH, 3 * BYTES, "fresh"));
    CUdeviceptr other = pin(STEPGRAPH_ROLE_STATE, "other"), at[3];
    stepgraph_step *step;

    for (int i = 0; i < 3; i++)
        at[i] = stepgraph_pin_address(p[i]);
    step = record_begin("commits", 0);
    inc(stream, other, 1);                                                                 /* 0 */
    setv(stream, scratch, 5);                                                              /* 1 */
    OK(stepgraph_pin_commit_many(session, 2, p, (uint64_t[]){scratch, scratch + BYTES}));  /* 2 */
    inc(stream, at[0], 1);                                                                 /* 3 */
    inc(stream, at[2], 1);                                                                 /* 4 */
    inc(stream, other, 1);                                                                 /* 5 */
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(relax_to(step, 4).barriers, 0);
    ck_assert_int_eq(waits(step, 0, 2), 0);
    ck_assert_int_eq(waits(step, 1, 2), 1);
    ck_assert_int_eq(waits(step, 2, 3), 1);
    ck_assert_int_eq(waits(step, 2, 4), 0);
    ck_assert_int_eq(waits(step, 2, 5), 0);
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(float_at(at[0]), 6);
}
END_TEST

/* An address in the middle of an argument, aligned to nothing. */
START_TEST(addresses_at_odd_places_of_structs_are_found)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b"), out = pin(STEPGRAPH_ROLE_STATE, "out");
    struct Packed packed = {.tag = 1, .a = a, .s = 2, .b = b};
    stepgraph_step *step = record_begin("packed", 0);

    inc(stream, a, 1);
    inc(stream, b, 2);
    launch(stream, made_for.packed, 1, (void *[]){&packed, &out});
    inc(stream, b, 2);
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 0);
    ck_assert_int_eq(waits(step, 0, 2), 1);
    ck_assert_int_eq(waits(step, 1, 2), 1);
    ck_assert_int_eq(waits(step, 2, 3), 1);
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(float_at(out), 6);
}
END_TEST

/* Of a struct that is packed, and that leads to memory outside the pins. */
START_TEST(addresses_at_odd_places_of_structs_are_found_outside_the_pins)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = device_make(BYTES), out = pin(STEPGRAPH_ROLE_STATE, "out");
    struct Packed packed = {.tag = 1, .a = a, .s = 2, .b = b};
    stepgraph_step *step = record_begin("packed", STEPGRAPH_STEP_ALLOW_UNREGISTERED);

    launch(stream, made_for.packed, 1, (void *[]){&packed, &out}); /* 0 */
    CU(MemsetD8Async(b, 0, 4, stream));                            /* 1 */
    launch(stream, made_for.packed, 1, (void *[]){&packed, &out}); /* 2 */
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 1);
    ck_assert_int_eq(waits(step, 1, 2), 1);
}
END_TEST

/* The same where nothing else in the step leads there. */
START_TEST(memory_that_only_odd_places_of_structs_lead_to_is_found)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_CONST, "a"), b = device_make(BYTES), out[2] = {pin(STEPGRAPH_ROLE_STATE, "out"), pin(STEPGRAPH_ROLE_STATE, "other")};
    struct Packed packed = {.tag = 1, .a = a, .s = 2, .b = b};
    stepgraph_step *step = record_begin("packed", STEPGRAPH_STEP_ALLOW_UNREGISTERED);

    for (int i = 0; i < 2; i++)
        launch(stream, made_for.packed, 1, (void *[]){&packed, &out[i]});
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 1);
}
END_TEST

/* Of two bytes each, at an odd one of them: in a large struct it may be left over, and need not be. */
START_TEST(memory_that_only_large_structs_lead_to_is_found)
{
    CUdeviceptr memory = device_make(BYTES), at = memory + 2, out[2] = {pin(STEPGRAPH_ROLE_STATE, "out"), pin(STEPGRAPH_ROLE_STATE, "other")};
    stepgraph_step *step = record_begin("large", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    unsigned char large[1022 * 4] = {0};

    memcpy(large + 8, &at, sizeof at);
    for (int i = 0; i < 2; i++)
        launch(stream, made_for.big4096, 1, (void *[]){&out[i], large});
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 1);
}
END_TEST

/* Nothing that the step knows stands beyond it, and the kernel is given no other address of it. */
START_TEST(end_of_the_furthest_memory_is_a_touch_of_it)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b"), furthest = 0, end;
    struct Views views = {.out = b, .in = b, .bias = b, .n = 1};
    stepgraph_step *step;
    float zero = 0;

    for (int i = 0; furthest < a || furthest < b; i++) {
        ck_assert_int_lt(i, 64);
        furthest = device_make(BYTES);
    }
    if (_i > 0)
        pin_adopt(session, STEPGRAPH_ROLE_SCRATCH, furthest, BYTES, "pool");
    if (_i > 1)
        OK(stepgraph_arena_note_alloc(session, furthest, BYTES, "block"));
    end = furthest + BYTES;
    step = record_begin("end", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    axpb(stream, furthest, a, 1);                                    /* 0 */
    launch(stream, made_for.views, 1, (void *[]){&views});           /* 1 */
    launch(stream, made_for.fill, 1, (void *[]){&end, &end, &zero}); /* 2 */
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 0);
    ck_assert_int_eq(waits(step, 0, 2), 1);
    ck_assert_int_eq(reason_of(step, 2), STEPGRAPH_BARRIER_NONE);
}
END_TEST

/* What a kernel is given is where it begins, not the end of what stands before it. */
START_TEST(pin_right_behind_a_noted_block_is_the_pin)
{
    CUdeviceptr memory = device_make(4 * BYTES), a = pin(STEPGRAPH_ROLE_STATE, "a"), behind = memory + BYTES;
    stepgraph_step *step;

    pin_adopt(session, STEPGRAPH_ROLE_SCRATCH, memory, BYTES, "pool");
    pin_adopt(session, STEPGRAPH_ROLE_STATE, behind, BYTES, "behind");
    OK(stepgraph_arena_note_alloc(session, memory, BYTES, "block"));
    step = record_begin("neighbours", 0);
    inc(stream, behind, 1);                 /* 0 */
    axpb(stream, a, behind + 4, 1);         /* 1 */
    CU(MemcpyDtoDAsync(a, behind, 4, stream)); /* 2 */
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 1);
    ck_assert_int_eq(waits(step, 0, 2), 1);
}
END_TEST

START_TEST(memory_right_behind_a_noted_block_is_that_of_its_pin)
{
    CUdeviceptr pool = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4 * BYTES, "pool")), a = pin(STEPGRAPH_ROLE_STATE, "a");
    stepgraph_step *step;

    OK(stepgraph_arena_note_alloc(session, pool, BYTES, "block"));
    step = record_begin("rest", 0);
    setv(stream, pool + BYTES, 1);         /* 0 */
    CU(MemcpyDtoDAsync(a, pool + BYTES, 4, stream)); /* 1 */
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 1);
}
END_TEST

/* Whatever the role says: a set and a copy say that they write. */
START_TEST(sets_and_copies_write_pins_of_every_role)
{
    static const stepgraph_role roles[] = {STEPGRAPH_ROLE_FEED, STEPGRAPH_ROLE_CELL, STEPGRAPH_ROLE_CONST};
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b"), input = pin(roles[_i], "input");
    stepgraph_step *step = record_begin("consumed", 0);

    axpb(stream, a, input, 1);                   /* 0 */
    CU(MemsetD8Async(input, 0, BYTES, stream));  /* 1 */
    axpb(stream, b, input, 1);                   /* 2 */
    CU(MemcpyDtoDAsync(input, a, 4, stream));    /* 3 */
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 1);
    ck_assert_int_eq(waits(step, 1, 2), 1);
    ck_assert_int_eq(waits(step, 2, 3), 1);
}
END_TEST

START_TEST(set_over_neighbours_writes_both)
{
    CUdeviceptr memory = device_make(4 * BYTES), a = pin(STEPGRAPH_ROLE_STATE, "a");
    stepgraph_step *step;

    pin_adopt(session, STEPGRAPH_ROLE_FEED, memory, BYTES, "input");
    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory + BYTES, BYTES, "behind");
    step = record_begin("neighbours", 0);
    inc(stream, memory + BYTES, 1);                  /* 0 */
    CU(MemsetD8Async(memory, 0, 2 * BYTES, stream)); /* 1 */
    CU(MemcpyDtoDAsync(a, memory + BYTES, 4, stream)); /* 2 */
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 1);
    ck_assert_int_eq(waits(step, 1, 2), 1);
}
END_TEST

START_TEST(what_uses_memory_of_a_library_keeps_its_order_whatever_is_declared)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b"), own = pin(STEPGRAPH_ROLE_LIBRARY, "own");
    stepgraph_relax_kernel reads[] = {{"axpb", 1, 0}};
    stepgraph_relax_config config = on_lanes(4);
    stepgraph_step *step = record_begin("library", 0);

    config.reads = reads;
    config.n_reads = 1;
    axpb(stream, a, own, 1);
    axpb(stream, b, own, 2);
    OK(stepgraph_step_end(step));
    relaxed(step, &config);
    ck_assert_int_eq(waits(step, 0, 1), 1);
}
END_TEST

START_TEST(memory_outside_the_pins_is_one_allocation)
{
    CUdeviceptr outside = device_make(4096), a = pin(STEPGRAPH_ROLE_STATE, "a");
    stepgraph_step *step = record_begin("outside", STEPGRAPH_STEP_ALLOW_UNREGISTERED);

    inc(stream, outside, 1);
    inc(stream, outside + 2048, 1);
    inc(stream, a, 1);
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 1);
    ck_assert_int_eq(waits(step, 0, 2), 0);
}
END_TEST

/* ---- lifetimes ------------------------------------------------------------------------------------------------------ */

static CUdeviceptr block(stepgraph_arena *arena)
{
    uint64_t address = 0;

    OK(stepgraph_arena_alloc(arena, BYTES, "temporary", &address));
    return address;
}

/* Blocks that come and go, each used by two nodes, into states of their own. */
static void blocks_of_one_step(stepgraph_arena *arena, const CUdeviceptr *state, int n)
{
    for (int i = 0; i < n; i++) {
        CUdeviceptr t = block(arena);
        setv(stream, t, (float)i);
        axpb(stream, state[i], t, 1);
        OK(stepgraph_arena_free(arena, t));
    }
}

START_TEST(blocks_that_are_given_out_again_tie_their_users_together)
{
    enum { N = 6 };
    stepgraph_arena *arena = arena_make(1 << 20, _i == 0 ? 0 : 1 << 19);
    CUdeviceptr state[N];
    stepgraph_relax_summary s;
    stepgraph_step *step;
    char name[16];

    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "state %d", i);
        state[i] = pin(STEPGRAPH_ROLE_STATE, name);
    }
    step = record_begin("blocks", 0);
    blocks_of_one_step(arena, state, N);
    OK(stepgraph_step_end(step));
    s = relax_to(step, 8);
    ck_assert_uint_eq(s.path_needed, _i == 0 ? 2 * N : 2);
    ck_assert_uint_eq(s.path_unused, 2);
    ck_assert_uint_eq(s.left_over, 0);
    OK(stepgraph_step_replay(step));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(float_at(state[i]), (float)i + 1);
}
END_TEST

START_TEST(blocks_that_the_host_notes_are_known_by_their_lifetimes)
{
    CUdeviceptr pool = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_SCRATCH, 8 * BYTES, "pool")), a = pin(STEPGRAPH_ROLE_STATE, "a");
    CUdeviceptr b = pin(STEPGRAPH_ROLE_STATE, "b");
    stepgraph_step *step = record_begin("noted", 0);

    OK(stepgraph_arena_note_alloc(session, pool, BYTES, "x"));
    setv(stream, pool, 1); /* 0 */
    axpb(stream, a, pool, 1); /* 1 */
    OK(stepgraph_arena_note_free(session, pool));
    OK(stepgraph_arena_note_alloc(session, pool + BYTES, BYTES, "y"));
    setv(stream, pool + BYTES, 2); /* 2 */
    OK(stepgraph_arena_note_alloc(session, pool, BYTES / 2, "z"));
    axpb(stream, b, pool, 1); /* 3: the block before in the same place, so that it waits for it. */
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 1);
    ck_assert_int_eq(waits(step, 0, 2), 0);
    ck_assert_int_eq(waits(step, 1, 2), 0);
    ck_assert_int_eq(waits(step, 1, 3), 1);
    ck_assert_int_eq(waits(step, 2, 3), 0);
}
END_TEST

/* A word that points to where a block was: most likely rubbish, and yet a touch of that block. */
START_TEST(left_over_words_are_counted_and_touch_what_was_there)
{
    stepgraph_arena *arena = arena_make(1 << 20, 1 << 19);
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), old, end;
    stepgraph_step *step = record_begin("left over", 0);
    stepgraph_relax_summary s;
    float zero = 0;

    old = block(arena);
    setv(stream, old, 1); /* 0 */
    OK(stepgraph_arena_free(arena, old));
    inc(stream, a, 1);       /* 1 */
    axpb(stream, a, old, 1); /* 2 */
    old = block(arena);
    end = old + 256; /* As rounded up: one past its end is no other block. */
    launch(stream, made_for.fill, 1, (void *[]){&old, &end, &zero}); /* 3 */
    OK(stepgraph_step_end(step));
    s = relax_to(step, 4);
    ck_assert_uint_eq(s.left_over, 1);
    ck_assert_int_eq(waits(step, 0, 1), 0);
    ck_assert_int_eq(waits(step, 0, 2), 1);
    ck_assert_int_eq(waits(step, 2, 3), 0);
}
END_TEST

START_TEST(memory_of_an_arena_that_was_never_a_block_is_all_of_it)
{
    stepgraph_arena *arena = arena_make(1 << 20, 0);
    stepgraph_arena_stats stats = STEPGRAPH_ARENA_STATS_INIT;
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), t;
    stepgraph_step *step = record_begin("never", 0);

    OK(stepgraph_arena_get_stats(arena, &stats));
    t = block(arena);
    setv(stream, t, 1);                           /* 0 */
    inc(stream, a, 1);                            /* 1 */
    setv(stream, stats.address + (1 << 19), 1);   /* 2 */
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 0, 1), 0);
    ck_assert_int_eq(waits(step, 0, 2), 1);
}
END_TEST

/* ---- barriers ------------------------------------------------------------------------------------------------------- */

static CUdeviceptr one, two;

/* inc(one) inc(two) THE NODE inc(one) inc(two): with a barrier in the middle all of the last two wait for all of the first two. */
static stepgraph_step *around_begin(uint32_t flags)
{
    stepgraph_step *step;

    one = pin(STEPGRAPH_ROLE_STATE, "one");
    two = pin(STEPGRAPH_ROLE_STATE, "two");
    step = record_begin("around", flags);
    inc(stream, one, 1);
    inc(stream, two, 1);
    return step;
}

static void around_end(stepgraph_step *step)
{
    inc(stream, one, 1);
    inc(stream, two, 1);
    OK(stepgraph_step_end(step));
}

static void is_barrier(stepgraph_step *step, const stepgraph_relax_config *config, stepgraph_barrier reason, const char *name)
{
    stepgraph_relax *report = relaxed(step, config);
    stepgraph_relax_barrier b = STEPGRAPH_RELAX_BARRIER_INIT;

    ck_assert_int_eq(reason_of(step, 2), reason);
    ck_assert_uint_eq(summary(report).barriers, 1);
    OK(stepgraph_relax_get_barrier(report, 0, &b));
    ck_assert_uint_eq(b.reason, reason);
    ck_assert_uint_eq(b.count, 1);
    ck_assert_uint_eq(b.node, 2);
    ck_assert_str_eq(b.node_name, name);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_relax_get_barrier(report, 1, &b), "1");
    ck_assert_msg(strstr(stepgraph_relax_text(report), stepgraph_barrier_name(reason)) != NULL, "%s", stepgraph_relax_text(report));
    ck_assert_msg(strstr(stepgraph_relax_json(report), stepgraph_barrier_name(reason)) != NULL, "%s", stepgraph_relax_json(report));
    ck_assert_int_eq(waits(step, 0, 1), 0);
    ck_assert_int_eq(waits(step, 1, 3), 1);
    ck_assert_int_eq(waits(step, 0, 4), 1);
    ck_assert_int_eq(waits(step, 2, 4), 1);
    ck_assert_int_eq(waits(step, 3, 4), 0);
}

START_TEST(kernel_without_an_address_is_a_barrier)
{
    stepgraph_relax_config config = on_lanes(4);
    stepgraph_step *step = around_begin(0);

    launch(stream, kernels.nop, 1, NULL);
    around_end(step);
    is_barrier(step, &config, STEPGRAPH_BARRIER_NO_ADDRESS, "nop");
}
END_TEST

static void host_nothing(void *user)
{
    (void)user;
}

START_TEST(host_function_is_a_barrier)
{
    stepgraph_relax_config config = on_lanes(4);
    stepgraph_step *step = around_begin(STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS);

    CU(LaunchHostFunc(stream, host_nothing, NULL));
    around_end(step);
    is_barrier(step, &config, STEPGRAPH_BARRIER_HOST_FUNCTION, "host function");
}
END_TEST

/* Also of memory that the driver knows nothing of. */
START_TEST(use_of_host_memory_is_a_barrier)
{
    static float pageable;
    stepgraph_relax_config config = on_lanes(4);
    float *host = page_locked(4096);
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)host;
    stepgraph_step *step = around_begin(STEPGRAPH_STEP_ALLOW_HOST_MEMORY);

    if (_i == 0)
        MORE(MemcpyDtoHAsync(host, two, 4, stream));
    else if (_i == 1)
        MORE(MemcpyAsync(two, address, 4, stream));
    else if (_i == 2)
        CU(MemsetD8Async(address, 0, 64, stream));
    else if (_i == 3)
        axpb(stream, two, address, 1);
    else
        MORE(MemcpyDtoHAsync(&pageable, two, 4, stream));
    around_end(step);
    is_barrier(step, &config, STEPGRAPH_BARRIER_HOST_MEMORY, _i == 2 ? "set" : _i == 3 ? "axpb" : "copy");
}
END_TEST

/* Buffers of the host that are near to each other are not the same memory. */
START_TEST(several_buffers_of_the_host_are_no_obstacle)
{
    unsigned char *host[] = {page_locked(64), page_locked(64)};
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a");
    stepgraph_step *step = record_begin("buffers", STEPGRAPH_STEP_ALLOW_HOST_MEMORY);

    CU(MemcpyHtoDAsync(a, host[0], 4, stream));
    MORE(MemcpyDtoHAsync(host[1], a, 4, stream));
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(relax_to(step, 4).barriers, 2);
}
END_TEST

START_TEST(events_are_barriers)
{
    CUresult (*record_with)(CUevent, CUstream, unsigned) = NULL;
    stepgraph_relax_config config = on_lanes(4);
    stepgraph_step *step = around_begin(0);
    CUevent event;

    *(void **)&record_with = stepgraph_session_symbol(session, "cuEventRecordWithFlags", 11010);
    CU(EventCreate(&event, 0));
    ck_assert_int_eq(record_with(event, stream, 1), CUDA_SUCCESS);
    around_end(step);
    is_barrier(step, &config, STEPGRAPH_BARRIER_EVENT, "event record");
    CU(EventDestroy(event));
}
END_TEST

/* Into what a stream records. */
static void add_graph(CUstream on, CUgraph child)
{
    CUstreamCaptureStatus status;
    const CUgraphNode *dependencies;
    CUgraphNode node;
    cuuint64_t id;
    CUgraph graph;
    size_t n;

    MORE(StreamGetCaptureInfo(on, &status, &id, &graph, &dependencies, &n));
    MORE(GraphAddChildGraphNode(&node, graph, dependencies, n, child));
    MORE(StreamUpdateCaptureDependencies(on, &node, 1, 1));
}

/* A child graph of what `body` launches. */
static void add_child(void (*body)(CUstream))
{
    CUstream other = stream_make(CU_STREAM_NON_BLOCKING);
    CUgraph child;

    MORE(StreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    body(other);
    MORE(StreamEndCapture(other, &child));
    add_graph(stream, child);
    MORE(GraphDestroy(child));
}

static void two_kernels(CUstream other)
{
    inc(other, one, 10);
    inc(other, one, 10);
}

static void kernel_and_host_function(CUstream other)
{
    inc(other, one, 10);
    CU(LaunchHostFunc(other, host_nothing, NULL));
}

START_TEST(child_graph_is_a_barrier)
{
    stepgraph_relax_config config = on_lanes(4);
    stepgraph_step *step = around_begin(0);

    add_child(two_kernels);
    around_end(step);
    /* The node behind the child graph's own ones is number 5 of all that were read. */
    is_barrier(step, &config, STEPGRAPH_BARRIER_CHILD_GRAPH, "child graph");
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(float_at(one), 22);
    config.lanes = 0;
    ck_assert_int_eq(summary(relaxed(step, &config)).identical, 1);
}
END_TEST

/* What it does cannot be put back. */
START_TEST(child_graph_with_a_host_function_is_not_timed)
{
    stepgraph_step *step = around_begin(STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS);

    add_child(kernel_and_host_function);
    around_end(step);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_relax(step, NULL, NULL), "node 2, 'child graph'", "lanes");
    ck_assert_float_eq(float_at(one), 0);
}
END_TEST

START_TEST(cooperative_kernel_is_a_barrier)
{
    CUresult (*cooperative)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **) = NULL;
    stepgraph_relax_config config = on_lanes(4);
    stepgraph_step *step = around_begin(0);
    float v = 1;

    *(void **)&cooperative = stepgraph_session_symbol(session, "cuLaunchCooperativeKernel", 9000);
    ck_assert_int_eq(cooperative(kernels.inc, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&one, &v}), CUDA_SUCCESS);
    around_end(step);
    is_barrier(step, &config, STEPGRAPH_BARRIER_COOPERATIVE, "inc");
}
END_TEST

START_TEST(collectives_are_barriers_or_keep_their_order)
{
    const stepgraph_relax_kernel set = {"setv", 0, 0};
    stepgraph_relax_config config = on_lanes(4);
    CUdeviceptr x = pin(STEPGRAPH_ROLE_STATE, "x"), y = pin(STEPGRAPH_ROLE_STATE, "y");
    stepgraph_step *step = around_begin(0);
    stepgraph_relax_summary s;

    setv(stream, x, 1);
    around_end(step);
    config.collectives = &set;
    config.n_collectives = 1;
    is_barrier(step, &config, STEPGRAPH_BARRIER_COLLECTIVE, "setv");

    step = record_begin("plain", 0);
    setv(stream, x, 1);  /* 0 */
    inc(stream, one, 1); /* 1 */
    setv(stream, y, 1);  /* 2 */
    inc(stream, one, 1); /* 3 */
    OK(stepgraph_step_end(step));
    config.flags = STEPGRAPH_RELAX_COLLECTIVES_PLAIN;
    s = summary(relaxed(step, &config));
    ck_assert_uint_eq(s.barriers, 0);
    ck_assert_uint_eq(s.collectives, 2);
    ck_assert_int_eq(waits(step, 0, 2), 1);
    ck_assert_int_eq(waits(step, 0, 1), 0);
    ck_assert_int_eq(waits(step, 1, 2), 0);
    ck_assert_int_eq(waits(step, 2, 3), 0);
}
END_TEST

/* As TensorRT-LLM writes it. */
START_TEST(collectives_are_known_in_either_spelling)
{
    stepgraph_relax_config config = on_lanes(4);
    stepgraph_step *step = around_begin(0);
    struct unit_kernels loaded;
    CUmodule module = kernels_load(&loaded);
    CUfunction reduce;
    float v = 1;

    CU(ModuleGetFunction(&reduce, module, "oneShotAllReduceKernel"));
    launch(stream, reduce, 1, (void *[]){&one, &v});
    around_end(step);
    is_barrier(step, &config, STEPGRAPH_BARRIER_COLLECTIVE, "oneShotAllReduceKernel");
    drop_step(step);
    n_steps--;
    CU(ModuleUnload(module));
}
END_TEST

START_TEST(caller_can_make_a_kernel_a_barrier)
{
    const stepgraph_relax_kernel set = {"*::scale(*", 0, 0};
    stepgraph_relax_config config = on_lanes(4);
    CUdeviceptr x = pin(STEPGRAPH_ROLE_STATE, "x");
    stepgraph_step *step = around_begin(0);

    scale(x, 2);
    around_end(step);
    config.barriers = &set;
    config.n_barriers = 1;
    is_barrier(step, &config, STEPGRAPH_BARRIER_DECLARED, "net::scale(float*, float)");
}
END_TEST

START_TEST(names_fit_patterns)
{
    static const struct {
        const char *pattern, *name;
        int fits;
    } cases[] = {
        {"inc", "inc", 1},        {"inc", "incr", 0},   {"inc", "in", 0},       {"*", "", 1},          {"*", "anything", 1},
        {"*nccl*", "_Z30ncclDevKernel_AllReduce", 1},   {"nccl*", "_Znccl", 0}, {"a?c", "abc", 1},     {"a?c", "ac", 0},
        {"*a*b", "xxaxxbxxb", 1}, {"*a*b", "xxbxxa", 0}, {"a*", "a", 1},        {"", "a", 0},          {"", "", 1},
        {"*ab", "aab", 1},        {"*aab", "aaab", 1},  {"**a**", "a", 1},      {"?", "", 0},          {"a*c*e", "abcde", 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(sg__name_fits(cases[i].pattern, cases[i].name) == cases[i].fits, "'%s' and '%s'", cases[i].pattern, cases[i].name);
}
END_TEST

/* ---- replays ---------------------------------------------------------------------------------------------------------- */

enum { PINS = 10 };

/* A step drawn from a seed: states, temporaries that come and go, copies, sets, commits, and a cell that all may read. */
static struct {
    uint64_t seed;
    stepgraph_pin *pin[PINS];
    CUdeviceptr at[PINS], cell;
    stepgraph_arena *arena;
    CUdeviceptr noise;
} drawn;

static void drawn_make(uint64_t seed, uint64_t quarantine)
{
    char name[16];

    drawn.seed = seed;
    drawn.arena = arena_make(1 << 18, quarantine);
    for (int i = 0; i < PINS; i++) {
        snprintf(name, sizeof name, "state %d", i);
        drawn.pin[i] = pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, name);
        drawn.at[i] = stepgraph_pin_address(drawn.pin[i]);
    }
    drawn.cell = pin(STEPGRAPH_ROLE_CELL, "cell");
}

static void drawn_fill(void)
{
    float values[FLOATS], rate[FLOATS] = {0.25f};

    for (int i = 0; i < PINS; i++) {
        for (int k = 0; k < FLOATS; k++)
            values[k] = (float)((i * 7 + k * 3) % 11);
        OK(stepgraph_pin_write(drawn.pin[i], values, sizeof values));
    }
    OK(stepgraph_pin_feed(stepgraph_session_pin(session, "cell"), rate, sizeof rate));
    OK(stepgraph_session_flush(session));
}

static CUdeviceptr any(uint64_t *s, const CUdeviceptr *temporary, int n)
{
    uint32_t i = unit_random(s) % (unsigned)(PINS + n);

    return i < PINS ? drawn.at[i] : temporary[i - PINS];
}

static void drawn_body(void)
{
    CUdeviceptr temporary[6];
    uint64_t s = drawn.seed;
    int n = 0;

    CU(MemsetD8Async(drawn.at[0], 0, BYTES, stream)); /* What stands in for it is added last, so that cusim's order is another one. */
    for (int i = 0; i < 60; i++) {
        CUdeviceptr a = any(&s, temporary, n), b = any(&s, temporary, n), c = any(&s, temporary, n);
        switch (unit_random(&s) % 9) {
        case 0:
            if (n < 6) {
                temporary[n] = block(drawn.arena);
                CU(MemsetD8Async(temporary[n], (unsigned char)i, BYTES, stream));
                n++;
            }
            break;
        case 1:
            if (n > 0)
                OK(stepgraph_arena_free(drawn.arena, temporary[--n]));
            break;
        case 2:
            CU(MemsetD8Async(a, (unsigned char)i, 1 + unit_random(&s) % BYTES, stream));
            break;
        case 3:
            if (a != b)
                CU(MemcpyDtoDAsync(a, b, 4 + unit_random(&s) % (BYTES - 3), stream));
            break;
        case 4:
            if (n > 1)
                OK(stepgraph_pin_commit_many(session, 2, (stepgraph_pin *[]){drawn.pin[1], drawn.pin[2]}, (uint64_t[]){temporary[0], temporary[1]}));
            break;
        case 5:
            update(stream, a, b, c, drawn.cell, FLOATS);
            break;
        case 6:
            inc(stream, a, (float)i);
            break;
        default:
            axpb(stream, a, b, 0.5f);
            break;
        }
    }
    while (n > 0)
        OK(stepgraph_arena_free(drawn.arena, temporary[--n]));
}

static void drawn_bytes(unsigned char *to)
{
    OK(stepgraph_session_wait(session));
    for (int i = 0; i < PINS; i++)
        bytes_at(drawn.at[i], to + i * BYTES, BYTES);
}

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

/* On a card what has no order runs as it comes. */
static void order_is(unsigned long long seed)
{
    if (unit_has_controls())
        driver_seed(seed);
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
    const stepgraph_relax_kernel reads[] = {{"axpb", 1, 0}, {"copyf", 1, 0}, {"update", 1, 0}, {"update", 2, 0}, {"update", 3, 0}, {"packed", 0, 0}};
    stepgraph_relax_config config = on_lanes(4);
    unsigned char wanted[PLACES * BYTES], got[PLACES * BYTES];
    stepgraph_step *step;

    close_by_make(1 + (uint64_t)_i);
    close_by_fill();
    for (int k = 0; k < 2; k++)
        close_by_body(NULL);
    close_by_bytes(wanted);
    step = record_begin("close by", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    close_by_body(step);
    OK(stepgraph_step_end(step));
    config.reads = reads;
    config.n_reads = sizeof reads / sizeof *reads;
    for (unsigned i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        config.lanes = lanes[i];
        relaxed(step, &config);
        for (unsigned k = 0; k < 4; k++) {
            order_is(1 + 4 * i + k);
            close_by_fill();
            replayed(step, 2);
            close_by_bytes(got);
            order_is(0);
            for (size_t at = 0; at < sizeof got; at++)
                if (got[at] != wanted[at])
                    ck_abort_msg("on %u lanes byte %zu of place %zu is %02x instead of %02x", lanes[i], at % BYTES, at / BYTES, got[at], wanted[at]);
        }
    }
}
END_TEST

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

START_TEST(memory_that_stands_close_together_is_verified)
{
    const stepgraph_relax_kernel reads[] = {{"axpb", 1, 0}, {"copyf", 1, 0}, {"update", 1, 0}, {"update", 2, 0}, {"update", 3, 0}, {"packed", 0, 0}};
    stepgraph_relax_config config = on_lanes(16);
    stepgraph_step *step;

    close_by_make(101 + (uint64_t)_i);
    step = record_begin("close by", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    close_by_body(step);
    OK(stepgraph_step_end(step));
    config.reads = reads;
    config.n_reads = sizeof reads / sizeof *reads;
    relaxed(step, &config);
    verified(step, close_by_fill, close_by_bytes, PLACES * BYTES);
}
END_TEST

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
    const stepgraph_relax_kernel reads[] = {{"axpb", 1, 0}, {"update", 1, 0}, {"update", 2, 0}, {"update", 3, 0}, {"packed", 0, 0}};
    unsigned char wanted[(MIXED + PARTS) * BYTES], got[(MIXED + PARTS) * BYTES];
    stepgraph_relax_config config = on_lanes(4);
    stepgraph_step *step;

    mixed_make(1 + (uint64_t)_i, _i % 2);
    mixed_fill();
    for (int k = 0; k < 2; k++)
        mixed_body(NULL);
    mixed_bytes(wanted);
    step = record_begin("mixed", STEPGRAPH_STEP_ALLOW_UNREGISTERED | STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS | STEPGRAPH_STEP_ALLOW_HOST_MEMORY);
    mixed_body(step);
    OK(stepgraph_step_end(step));
    config.reads = reads;
    config.n_reads = sizeof reads / sizeof *reads;
    for (unsigned i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        config.lanes = lanes[i];
        if (lanes[i] == 0 && mixed.host)
            continue;
        mixed_fill();
        if (lanes[i] == 0)
            ck_assert_int_ne(summary(relaxed(step, &config)).identical, 0);
        else
            relaxed(step, &config);
        for (unsigned k = 0; k < 3; k++) {
            order_is(1 + 4 * i + k);
            mixed_fill();
            replayed(step, 2);
            mixed_bytes(got);
            order_is(0);
            for (size_t at = 0; at < sizeof got; at++)
                if (got[at] != wanted[at])
                    ck_abort_msg("seed %d on %u lanes byte %zu of place %zu is %02x instead of %02x", _i, lanes[i], at % BYTES, at / BYTES, got[at], wanted[at]);
        }
    }
    drop_step(step);
    n_steps--;
    mixed_drop();
}
END_TEST

START_TEST(nodes_of_every_kind_are_verified)
{
    const stepgraph_relax_kernel reads[] = {{"axpb", 1, 0}, {"update", 1, 0}, {"update", 2, 0}, {"update", 3, 0}, {"packed", 0, 0}};
    stepgraph_relax_config config = on_lanes(16);
    stepgraph_step *step;

    mixed_make(101 + (uint64_t)_i, 0);
    step = record_begin("mixed", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    mixed_body(step);
    OK(stepgraph_step_end(step));
    config.reads = reads;
    config.n_reads = sizeof reads / sizeof *reads;
    relaxed(step, &config);
    verified(step, mixed_fill, mixed_bytes, (MIXED + PARTS) * BYTES);
    drop_step(step);
    n_steps--;
    mixed_drop();
}
END_TEST

/* A choice by the clock runs the step, and leaves no trace of it. */
START_TEST(all_is_put_back_after_timing)
{
    unsigned char before[PINS * BYTES], after[PINS * BYTES], kept_before[4096], kept_after[4096];
    stepgraph_step *step = begin("drawn", 0);
    stepgraph_arena_stats stats = STEPGRAPH_ARENA_STATS_INIT;
    stepgraph_step_stats counts;
    stepgraph_relax_summary s;
    stepgraph_relax *report;
    uint64_t held;

    drawn_make(5, 1 << 16);
    OK(stepgraph_arena_alloc(drawn.arena, 4096, "the host's", &held));
    memset(kept_before, 0x5a, sizeof kept_before);
    put_bytes(held, kept_before, sizeof kept_before);
    begin_recording(step);
    drawn_body();
    inc(stream, held + 64, 1);
    OK(stepgraph_step_end(step));
    drawn_fill();
    drawn_bytes(before);
    counts = step_stats(step);
    report = relaxed(step, NULL);
    s = summary(report);
    drawn_bytes(after);
    ck_assert_msg(memcmp(before, after, sizeof before) == 0, "a state is not as it was");
    bytes_at(held, kept_after, sizeof kept_after);
    ck_assert_msg(memcmp(kept_before, kept_after, sizeof kept_before) == 0, "a block is not as it was");
    ck_assert_int_eq(s.identical, 1);
    ck_assert_uint_ge(s.launches, 3 * 3);
    ck_assert_uint_gt(s.saved_bytes, PINS * BYTES);
    ck_assert_double_gt(s.us_recorded, 0);
    ck_assert_uint_eq(step_stats(step).replays, counts.replays);
    ck_assert_uint_eq(step_stats(step).captured_not_run, 1);
    OK(stepgraph_arena_get_stats(drawn.arena, &stats));
    ck_assert_uint_eq(stats.blocks, 1);
    ck_assert_ptr_null(strstr(stepgraph_relax_json(report), "nan"));
    ck_assert_ptr_null(json_fault(stepgraph_relax_json(report)));
    OK(stepgraph_arena_free(drawn.arena, held));
}
END_TEST

/* What is declared to be read and is written all the same. */
START_TEST(false_declaration_costs_no_state_while_replays_are_timed)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b"), c = pin(STEPGRAPH_ROLE_STATE, "c");
    stepgraph_relax_kernel reads[] = {{"inc", 0, 0}};
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_step *step = record_begin("falsely declared", 0);

    config.reads = reads;
    config.n_reads = 1;
    inc(stream, a, 1);
    setv(stream, b, 1);
    setv(stream, c, 1);
    OK(stepgraph_step_end(step));
    ck_assert_uint_gt(summary(relaxed(step, &config)).launches, 0);
    ck_assert_float_eq(float_at(a), 0);
    ck_assert_float_eq(float_at(b), 0);
}
END_TEST

/* They need not have gone to the device. */
START_TEST(replays_are_timed_with_the_inputs_that_were_fed_last)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), seen = pin(STEPGRAPH_ROLE_LIBRARY, "seen");
    stepgraph_pin *input = pin_make(session, STEPGRAPH_ROLE_FEED, BYTES, "input");
    stepgraph_step *step = record_begin("fed", 0);
    const float value[FLOATS] = {5};

    inc(stream, a, 1);
    copyf(stream, seen, stepgraph_pin_address(input)); /* Not put back. */
    OK(stepgraph_step_end(step));
    OK(stepgraph_pin_feed(input, value, sizeof value));
    ck_assert_uint_gt(relax_to(step, 0).launches, 0);
    ck_assert_float_eq(float_at(seen), 5);
    ck_assert_float_eq(float_at(a), 0);
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(input), 5);
}
END_TEST

/* Pageable memory cannot be put back by the device. */
START_TEST(step_that_writes_pageable_memory_is_not_timed)
{
    static float host[FLOATS];
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b");
    stepgraph_step *step = record_begin("read back", STEPGRAPH_STEP_ALLOW_HOST_MEMORY);

    inc(stream, a, 1);
    inc(stream, b, 1);
    MORE(MemcpyDtoHAsync(host, a, 4, stream)); /* 2 */
    OK(stepgraph_step_end(step));
    host[0] = 77;
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_relax(step, NULL, NULL), "not relaxed by the clock", "node 2");
    ck_assert_float_eq(host[0], 77);
    relax_to(step, 2);
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(float_at(a), 1);
    ck_assert_float_eq(host[0], 1);
}
END_TEST

START_TEST(choices_are_told_as_recorded_first)
{
    stepgraph_relax_choice c = STEPGRAPH_RELAX_CHOICE_INIT;
    stepgraph_step *step;
    stepgraph_relax *report;
    stepgraph_relax_summary s;
    uint32_t n = 0, last = 0;

    drawn_make(2, 1 << 16);
    step = record_begin("drawn", 0);
    drawn_body();
    OK(stepgraph_step_end(step));
    report = relaxed(step, NULL);
    s = summary(report);
    for (; stepgraph_relax_get_choice(report, n, &c) == STEPGRAPH_OK; n++) {
        ck_assert(n == 0 ? c.lanes == 0 : (c.lanes == 4 || c.lanes == 8 || c.lanes == 16) && c.lanes > last);
        ck_assert_double_gt(c.us, 0);
        ck_assert_int_eq(c.identical, 1);
        if (c.lanes == s.lanes) {
            ck_assert_double_eq(c.us, s.us);
            ck_assert_uint_eq(c.edges, s.edges);
            ck_assert_uint_eq(c.path, s.path);
        }
        last = c.lanes;
    }
    ck_assert_uint_ge(n, 2);
    ck_assert_uint_ge(last, 4);
}
END_TEST

/* Chains of four nodes, side by side: on fewer lanes than chains one waits for another. */
/* A language whose numbers have commas; made if there is none. */
static int commas_begin(char *folder)
{
    char command[160];

    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL)
        return 1;
    if (mkdtemp(folder) == NULL)
        return 0;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    if (system(command) != 0)
        return 0;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;
}

static void commas_end(const char *folder)
{
    char command[160];

    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(numbers_of_a_report_have_points_in_every_language)
{
    char folder[] = "/tmp/stepgraph-locale-XXXXXX";
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b");
    stepgraph_step *step = record_begin("points", 0);
    const char *json;
    char point;
    int commas;

    inc(stream, a, 1);
    inc(stream, b, 1);
    OK(stepgraph_step_end(step));
    commas = commas_begin(folder);
    if (!commas)
        unit_skip("numbers_of_a_report_have_points_in_every_language", "there is no language with commas");
    json = stepgraph_relax_json(relaxed(step, NULL));
    point = localeconv()->decimal_point[0];
    commas_end(folder);
    ck_assert_msg(json_fault(json) == NULL, "%s in %s", json_fault(json), json);
    ck_assert_int_eq(point, commas ? ',' : '.'); /* The host's language is left as it is. */
}
END_TEST

START_TEST(lanes_that_cannot_be_the_fastest_are_not_tried)
{
    static const struct {
        int chains;
        uint32_t lanes[3]; /* After those as recorded. */
    } cases[] = {{2, {4}}, {8, {8}}, {12, {8, 16}}, {32, {16}}};
    stepgraph_relax_choice c = STEPGRAPH_RELAX_CHOICE_INIT;
    stepgraph_relax *report;
    stepgraph_step *step;
    CUdeviceptr pins[32];
    uint32_t n = 0;
    char name[16];

    for (int i = 0; i < cases[_i].chains; i++) {
        snprintf(name, sizeof name, "p%d", i);
        pins[i] = pin(STEPGRAPH_ROLE_STATE, name);
    }
    step = record_begin("chains", 0);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < cases[_i].chains; i++)
            inc(stream, pins[i], 1);
    OK(stepgraph_step_end(step));
    report = relaxed(step, NULL);
    for (; stepgraph_relax_get_choice(report, n, &c) == STEPGRAPH_OK; n++)
        ck_assert_msg(c.lanes == (n == 0 ? 0 : cases[_i].lanes[n - 1]), "choice %u of %d chains has %u lanes", n, cases[_i].chains, c.lanes);
    ck_assert(n > 1 && (n == 4 || cases[_i].lanes[n - 1] == 0));
}
END_TEST

START_TEST(chain_that_is_needed_stays)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a");
    stepgraph_step *step = record_begin("chain", 0);
    stepgraph_relax_summary s;

    for (int i = 0; i < 5; i++)
        inc(stream, a, 1);
    OK(stepgraph_step_end(step));
    s = relax_to(step, 0);
    ck_assert_uint_eq(s.lanes, 0);
    ck_assert_uint_eq(s.launches, 0);
    ck_assert_uint_eq(s.path_needed, 5);
    ck_assert_uint_eq(s.edges, 4);
    ck_assert_ptr_null(step->relaxed);
}
END_TEST

/* The role says that only the host writes it, or nobody; the step does. */
START_TEST(input_that_the_step_writes_is_found_out)
{
    static const stepgraph_role roles[] = {STEPGRAPH_ROLE_FEED, STEPGRAPH_ROLE_CELL, STEPGRAPH_ROLE_CONST};
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b"), input = pin(roles[_i], "input");
    stepgraph_step *step = record_begin("writes", 0);
    stepgraph_relax_summary s;

    inc(stream, input, 1);     /* 0 */
    axpb(stream, a, input, 1); /* 1 */
    inc(stream, input, 1);     /* 2 */
    axpb(stream, b, input, 1); /* 3 */
    inc(stream, a, 1);         /* 4 */
    OK(stepgraph_step_end(step));
    s = relax_to(step, 0);
    ck_assert_uint_eq(s.refuted, 1);
    ck_assert_uint_eq(s.path_needed, 4);
    ck_assert_uint_gt(said("writes pin 'input'"), 0);
    ck_assert_float_eq(float_at(input), 0);
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(float_at(b), 3);
    ck_assert_float_eq(float_at(a), 3);
}
END_TEST

/* Nothing to run, or nothing that is saved. */
START_TEST(steps_with_nothing_to_save_are_relaxed)
{
    CUdeviceptr library[2] = {pin(STEPGRAPH_ROLE_LIBRARY, "library"), pin(STEPGRAPH_ROLE_LIBRARY, "other")};
    stepgraph_verify_config verification = STEPGRAPH_VERIFY_CONFIG_INIT;
    stepgraph_step *step = record_begin("nothing", STEPGRAPH_STEP_ALLOW_EMPTY);
    stepgraph_verify *report = NULL;
    stepgraph_relax_summary s;

    for (int i = 0; i < 2 * _i; i++)
        inc(stream, library[i % 2], 1);
    OK(stepgraph_step_end(step));
    s = relax_to(step, 0);
    ck_assert_uint_eq(s.saved_bytes, 0);
    relax_to(step, 64);
    replayed(step, 2);
    verification.steps = 2;
    OK(stepgraph_step_verify(step, &verification, &report));
    stepgraph_verify_destroy(report);
    OK(stepgraph_step_tune(step, 2));
    replayed(step, 15);
}
END_TEST

/* A library counts its calls, and the step's results do not depend on that. */
START_TEST(memory_of_a_library_goes_on)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b"), library = pin(STEPGRAPH_ROLE_LIBRARY, "library");
    stepgraph_step *step = record_begin("library", 0);
    stepgraph_relax_summary s;

    inc(stream, a, 1);       /* 0 */
    inc(stream, library, 1); /* 1 */
    inc(stream, b, 1);       /* 2 */
    inc(stream, library, 1); /* 3 */
    OK(stepgraph_step_end(step));
    relax_to(step, 4);
    ck_assert_int_eq(waits(step, 1, 3), 1);
    s = relax_to(step, 0);
    ck_assert_uint_eq(s.refuted, 0);
    ck_assert_uint_eq(s.path_needed, 2);
    ck_assert_float_eq(float_at(a), 0);
    ck_assert_float_eq(float_at(b), 0);
    ck_assert_float_ge(float_at(library), 4);
    ck_assert_uint_eq(said("other bytes"), 0);
    ck_assert_uint_eq(s.saved_bytes, 2 * BYTES);
}
END_TEST

/* ---- what the rule cannot see ----------------------------------------------------------------------------------------- */

static CUfunction hidden(const char *name)
{
    CUfunction function;

    if (hidden_module == NULL)
        CU(ModuleLoadData(&hidden_module, hidden_kernels_ptx));
    CU(ModuleGetFunction(&function, hidden_module, name));
    return function;
}

static struct {
    stepgraph_pin *state[5]; /* a, b, out, late, beside */
    CUdeviceptr table, busy[2];
} planted;

static void planted_make(void)
{
    static const char *const names[] = {"a", "b", "out", "late", "beside"};
    CUdeviceptr nonzero = pin(STEPGRAPH_ROLE_CONST, "nonzero"), addresses[2];
    const uint32_t one_word = 1;

    for (int i = 0; i < 5; i++)
        planted.state[i] = pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, names[i]);
    for (int i = 0; i < 2; i++) {
        addresses[i] = stepgraph_pin_address(planted.state[i]);
        planted.busy[i] = pin(STEPGRAPH_ROLE_CONST, i == 0 ? "busy" : "busy beside");
        put_bytes(planted.busy[i], &nonzero, sizeof nonzero);
    }
    put_bytes(nonzero, &one_word, sizeof one_word);
    planted.table = pin(STEPGRAPH_ROLE_CONST, "table");
    put_bytes(planted.table, addresses, sizeof addresses);
}

/* b = a + 1, by a table of addresses in device memory. a takes 2 ms, and so does what comes before b is read: relaxed, both are the same wrong
 * numbers in each replay, since a race that comes out now so, now so would be no divergence to a check. The set comes first, and what stands in
 * for it last in cusim's list: nodes that nothing holds back run before it and what follows from it. */
static void planted_step(void)
{
    CUdeviceptr address[5];
    unsigned long long ns = 2000000;
    float one_more = 1;

    for (int i = 0; i < 5; i++)
        address[i] = stepgraph_pin_address(planted.state[i]);
    CU(MemsetD8Async(address[3] + 4, 0, 4, stream));
    launch(stream, hidden("stall"), 1, (void *[]){&address[3], &planted.busy[0], &ns});
    axpb(stream, address[0], address[3], 3);
    launch(stream, hidden("stall"), 1, (void *[]){&address[4], &planted.busy[1], &ns});
    axpb(stream, address[2], address[4], 0);
    launch(stream, hidden("through_table"), 1, (void *[]){&planted.table, &one_more});
    axpb(stream, address[2], address[1], 0.5f);
}

/* What n launched steps leave in out; the state is as before then. */
static float planted_launched(int n)
{
    float wanted;

    for (int k = 0; k < n; k++)
        planted_step();
    wanted = pin_float(planted.state[2]);
    for (int i = 0; i < 5; i++)
        OK(stepgraph_pin_write(planted.state[i], (float[FLOATS]){0}, BYTES));
    return wanted;
}

static stepgraph_step *planted_recorded(void)
{
    stepgraph_step *step;

    planted_make();
    step = record_begin("planted", 0);
    planted_step();
    OK(stepgraph_step_end(step));
    return step;
}

static stepgraph_status enqueue_planted(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    (void)k;
    planted_step();
    return STEPGRAPH_OK;
}

/* What a check of the planted step says. */
static stepgraph_check_summary check_planted(stepgraph_step *step)
{
    stepgraph_check_config config = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_check_summary s = STEPGRAPH_CHECK_SUMMARY_INIT;
    stepgraph_check *check = NULL;

    config.enqueue = enqueue_planted;
    OK(stepgraph_check_run(step, &config, &check));
    OK(stepgraph_check_get_summary(check, &s));
    stepgraph_check_destroy(check);
    return s;
}

START_TEST(check_of_a_relaxed_step_says_that_the_order_may_be_to_blame)
{
    stepgraph_check_summary s;
    stepgraph_step *step = planted_recorded();

    relax_to(step, 4);
    s = check_planted(step);
    ck_assert_uint_eq(s.verdict, STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(s.search, STEPGRAPH_SEARCH_UNABLE);
    ck_assert_msg(strstr(s.search_text, "stepgraph_step_unrelax()") != NULL, "%s", s.search_text);
    OK(stepgraph_step_unrelax(step));
    ck_assert_uint_eq(check_planted(step).verdict, STEPGRAPH_IDENTICAL);
}
END_TEST

START_TEST(table_of_addresses_is_caught_by_the_bytes)
{
    const stepgraph_relax_kernel table = {"through_table", 0, 0};
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_verify_summary verified = STEPGRAPH_VERIFY_SUMMARY_INIT;
    stepgraph_verify *verify = NULL;
    stepgraph_relax_summary s;
    stepgraph_step *step;
    float wanted;

    step = planted_recorded();
    s = relax_to(step, 0);
    ck_assert_uint_eq(s.lanes, 0);
    ck_assert_int_eq(s.identical, 0);
    ck_assert_ptr_null(step->relaxed);
    ck_assert_uint_gt(said("leaves other bytes behind"), 0);
    ck_assert_ptr_nonnull(strstr(stepgraph_relax_text(reports[n_reports - 1]), "left other bytes behind"));
    wanted = planted_launched(1);
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(planted.state[2]), wanted);

    /* Where nothing is compared, verifying finds it. */
    ck_assert_uint_eq(relax_to(step, 4).lanes, 4);
    OK(stepgraph_step_verify(step, NULL, &verify));
    OK(stepgraph_verify_get_summary(verify, &verified));
    ck_assert_uint_eq(verified.verdict, STEPGRAPH_FAULTS_FOUND);
    stepgraph_verify_destroy(verify);

    /* Declared a barrier, it is no fault any more. */
    config.barriers = &table;
    config.n_barriers = 1;
    config.lanes = 4;
    relaxed(step, &config);
    verify = NULL;
    OK(stepgraph_step_verify(step, NULL, &verify));
    OK(stepgraph_verify_get_summary(verify, &verified));
    ck_assert_uint_eq(verified.verdict, STEPGRAPH_NO_FAULT_FOUND);
    stepgraph_verify_destroy(verify);
    config.lanes = 0;
    ck_assert_int_eq(summary(relaxed(step, &config)).identical, 1);
}
END_TEST

START_TEST(step_that_does_not_repeat_itself_is_not_compared)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b");
    stepgraph_step *step = record_begin("drifts", 0);
    stepgraph_relax_summary s;

    launch(stream, hidden("drift"), 1, (void *[]){&a});
    inc(stream, b, 1);
    OK(stepgraph_step_end(step));
    s = relax_to(step, 0);
    ck_assert_int_eq(s.identical, -1);
    ck_assert_float_eq(float_at(b), 0);
}
END_TEST

/* ---- in the loop -------------------------------------------------------------------------------------------------------- */

static stepgraph_loop *loop;

static void loop_drop(void)
{
    stepgraph_loop_destroy(loop);
    loop = NULL;
}

static stepgraph_loop_stats loop_stats(void)
{
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;

    OK(stepgraph_loop_get_stats(loop, &stats));
    return stats;
}

static void loop_run(uint64_t from, uint64_t to, void (*body)(void))
{
    stepgraph_turn turn = STEPGRAPH_TURN_INIT;

    for (uint64_t k = from; k < to; k++)
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.run)
                body();
            OK(stepgraph_loop_end(loop, &turn));
        } while (turn.again);
}

static void loop_make(const stepgraph_relax_config *relax, uint32_t flags)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    config.relax = relax;
    config.flags = flags;
    config.name = "train";
    OK(stepgraph_loop_create(session, &config, &loop));
}

/* 3 warm, 2 recorded, 3 checked, relaxed, 3 checked again; then replays. */
/* As the library estimates it. */
static uint64_t bytes_of_one_executable(uint64_t nodes)
{
    return 2600 * nodes;
}

START_TEST(loop_relaxes_what_is_proven_and_proves_it_again)
{
    unsigned char wanted[PINS * BYTES], got[PINS * BYTES];
    stepgraph_relax_config relax = on_lanes(4);
    const char *text;
    uint64_t bytes;

    drawn_make(7, 1 << 16);
    drawn_fill();
    for (int k = 0; k < 20; k++)
        drawn_body();
    drawn_bytes(wanted);
    drawn_fill();
    loop_make(&relax, 0);
    loop_run(0, 8, drawn_body);
    ck_assert_uint_eq(loop_stats().checks, 3);
    ck_assert_uint_eq(loop_stats().relaxed, 1);
    ck_assert_uint_eq(loop_stats().turns[STEPGRAPH_TURN_REPLAY], 0);
    ck_assert_ptr_nonnull(stepgraph_loop_relax(loop, 0));
    loop_run(8, 20, drawn_body);
    ck_assert_uint_eq(loop_stats().checks, 6);
    ck_assert_uint_eq(loop_stats().checks_identical, 6);
    ck_assert_uint_eq(loop_stats().turns[STEPGRAPH_TURN_REPLAY], 9);
    ck_assert_uint_eq(loop_stats().relaxed, 1);
    ck_assert_uint_eq(step_stats(stepgraph_loop_step(loop, 0)).lanes, 4);
    drawn_bytes(got);
    ck_assert_msg(memcmp(got, wanted, sizeof got) == 0, "the states are not those of 20 launched steps");
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_JSON, &text));
    ck_assert_ptr_null(json_fault(text));
    ck_assert_ptr_nonnull(strstr(text, "\"lanes\": 4, \"relax\": {"));
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TEXT, &text));
    ck_assert_ptr_nonnull(strstr(text, "relaxed to 4 lanes"));
    OK(stepgraph_loop_drop(loop, 0, NULL)); /* What is recorded then is relaxed as well. */
    loop_run(20, 40, drawn_body);
    ck_assert_uint_eq(loop_stats().relaxed, 1);
    bytes = loop_stats().device_bytes;
    OK(stepgraph_step_unrelax(stepgraph_loop_step(loop, 0)));
    ck_assert_uint_eq(bytes - loop_stats().device_bytes, bytes_of_one_executable(loop_stats().nodes));
    loop_drop();
}
END_TEST

/* What was proven as recorded is replayed so, where its relaxed form cannot be checked. */
START_TEST(loop_replays_what_it_cannot_check_relaxed_as_it_was_recorded)
{
    stepgraph_relax_config relax = on_lanes(4);

    drawn_make(7, 1 << 16);
    drawn_fill();
    loop_make(&relax, 0);
    loop_run(0, 8, drawn_body);
    ck_assert_uint_eq(loop_stats().relaxed, 1);
    driver_fails("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    loop_run(8, 9, drawn_body);
    no_driver_fails();
    loop_run(9, 30, drawn_body);
    ck_assert_msg(loop_stats().rung == STEPGRAPH_RUNG_REPLAY, "%u: %s", loop_stats().rung, loop_stats().words);
    loop_drop();
}
END_TEST

/* _i: so many bytes are missing. */
START_TEST(graph_is_relaxed_where_the_budget_has_room_for_another_executable)
{
    stepgraph_relax_config relax = on_lanes(4);
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    uint64_t budget = 0;

    drawn_make(7, 1 << 16);
    drawn_fill();
    config.relax = &relax;
    config.executables = 1;
    for (int tight = 0; tight < 2; tight++) {
        config.graph_bytes = budget;
        OK(stepgraph_loop_create(session, &config, &loop));
        loop_run(0, 20, drawn_body);
        ck_assert_uint_eq(loop_stats().rung, STEPGRAPH_RUNG_REPLAY);
        ck_assert_uint_eq(loop_stats().relaxed, tight ? 1 - _i : 1);
        ck_assert_uint_eq(loop_stats().relax_refused, tight ? _i : 0);
        budget = loop_stats().device_bytes - (uint64_t)_i;
        loop_drop();
    }
}
END_TEST

START_TEST(loop_relaxes_without_checks_where_none_are_wanted)
{
    stepgraph_relax_config relax = on_lanes(4);

    drawn_make(7, 1 << 16);
    drawn_fill();
    loop_make(&relax, STEPGRAPH_LOOP_NO_CHECK);
    loop_run(0, 8, drawn_body);
    ck_assert_uint_eq(loop_stats().checks, 0);
    ck_assert_uint_eq(loop_stats().relaxed, 1);
    ck_assert_uint_eq(loop_stats().turns[STEPGRAPH_TURN_REPLAY], 3);
    loop_drop();
}
END_TEST

/* Relaxed without timing, so that only the loop's own checks can find the table. 3 warm, 2 recorded, 3 checked, relaxed, 1 that diverges, 3 checked
 * again; then replays. */
START_TEST(loop_goes_back_to_the_recording_when_a_check_finds_other_results)
{
    stepgraph_relax_config relax = on_lanes(4);
    float wanted;

    planted_make();
    wanted = planted_launched(20);
    loop_make(&relax, 0);
    loop_run(0, 20, planted_step);
    ck_assert_float_eq(pin_float(planted.state[2]), wanted);
    ck_assert_uint_eq(loop_stats().relax_diverged, 1);
    ck_assert_uint_eq(loop_stats().relaxed, 0);
    ck_assert_uint_eq(loop_stats().checks_diverged, 1);
    ck_assert_uint_eq(loop_stats().checks_identical, 6);
    ck_assert_uint_eq(loop_stats().checks, 7);
    ck_assert_uint_eq(loop_stats().rung, STEPGRAPH_RUNG_REPLAY);
    ck_assert_uint_eq(loop_stats().turns[STEPGRAPH_TURN_REPLAY], 8);
    ck_assert_uint_gt(said("relaxed it goes wrong: "), 0);
    ck_assert_uint_gt(said("pin 'b'"), 0);
    ck_assert_ptr_nonnull(strstr(stepgraph_relax_text(stepgraph_loop_relax(loop, 0)), "pin 'b'"));
    ck_assert_ptr_nonnull(strstr(stepgraph_relax_json(stepgraph_loop_relax(loop, 0)), "\"identical\": false, \"refused\": "));
    ck_assert_int_eq(summary(stepgraph_loop_relax(loop, 0)).identical, 0);
    loop_drop();
}
END_TEST

static void allocating_step(void)
{
    CUdeviceptr p;

    MORE(MemAllocAsync(&p, 4096, stream));
    setv(stream, p, 2);
    axpb(stream, one, p, 1);
    inc(stream, two, 1);
    MORE(MemFreeAsync(p, stream));
}

START_TEST(loop_says_what_cannot_be_relaxed)
{
    stepgraph_relax_config relax = on_lanes(4);

    one = pin(STEPGRAPH_ROLE_STATE, "one");
    two = pin(STEPGRAPH_ROLE_STATE, "two");
    loop_make(&relax, STEPGRAPH_LOOP_ALLOW_UNPROVEN);
    loop_run(0, 20, allocating_step);
    ck_assert_uint_eq(loop_stats().relax_refused, 1);
    ck_assert_uint_eq(loop_stats().relaxed, 0);
    ck_assert_uint_eq(loop_stats().turns[STEPGRAPH_TURN_REPLAY], 12);
    ck_assert_uint_gt(said("allocates or frees memory"), 0);
    ck_assert_ptr_nonnull(strstr(stepgraph_relax_text(stepgraph_loop_relax(loop, 0)), "replayed as recorded: step"));
    ck_assert_ptr_nonnull(strstr(stepgraph_relax_json(stepgraph_loop_relax(loop, 0)), "\"identical\": null, \"refused\": \"step"));
    ck_assert_int_eq(summary(stepgraph_loop_relax(loop, 0)).identical, -1);
    ck_assert_float_eq(float_at(two), 20);
    loop_drop();
}
END_TEST

/* Steps of two keys by turns: when the first is proven, the second was recorded since. */
START_TEST(loop_knows_blocks_of_several_keys)
{
    stepgraph_relax_config relax = on_lanes(4);
    stepgraph_turn turn = STEPGRAPH_TURN_INIT;

    drawn_make(7, 1 << 16);
    drawn_fill();
    loop_make(&relax, 0);
    for (uint64_t k = 0; k < 40; k++)
        do {
            turn.key = k % 2;
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.run)
                drawn_body();
            OK(stepgraph_loop_end(loop, &turn));
        } while (turn.again);
    ck_assert_uint_eq(loop_stats().relaxed, 2);
    ck_assert_uint_eq(loop_stats().relax_refused, 0);
    loop_drop();
}
END_TEST

START_TEST(loop_refuses_bad_options_of_relaxing)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_relax_config relax = on_lanes(100);

    config.relax = &relax;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, &config, &loop), "100 lanes");
    ck_assert_ptr_null(loop);
}
END_TEST

/* ---- going back ---------------------------------------------------------------------------------------------------- */

static stepgraph_step *two_lanes(void)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b");
    stepgraph_step *step = record_begin("two", 0);

    for (int i = 0; i < 4; i++) {
        inc(stream, a, 1);
        inc(stream, b, 1);
    }
    OK(stepgraph_step_end(step));
    return step;
}

START_TEST(unrelaxed_step_replays_its_own_executable)
{
    stepgraph_step *step = two_lanes();
    CUgraphExec recorded = step->exec;
    unsigned long destroyed;

    OK(stepgraph_step_unrelax(step)); /* Nothing to do. */
    ck_assert_ptr_eq(step->exec, recorded);
    relax_to(step, 2);
    ck_assert_ptr_ne(step->exec, recorded);
    OK(stepgraph_step_replay(step));
    destroyed = driver_calls("cuGraphExecDestroy");
    OK(stepgraph_step_unrelax(step));
    ck_assert_uint_eq(driver_calls("cuGraphExecDestroy"), destroyed + 1);
    ck_assert_ptr_eq(step->exec, recorded);
    ck_assert_uint_eq(step_stats(step).lanes, 0);
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(stepgraph_session_pin(session, "a")), 8);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_unrelax(NULL), "NULL");
}
END_TEST

START_TEST(relaxing_again_begins_from_the_recording)
{
    stepgraph_step *step = two_lanes();
    CUgraphExec recorded = step->exec;

    relax_to(step, 2);
    relax_to(step, 4);
    ck_assert_ptr_eq(step->relaxed->recorded, recorded);
    OK(stepgraph_step_reset(step));
    ck_assert_ptr_null(step->relaxed);
    ck_assert_uint_eq(step_stats(step).lanes, 0);
}
END_TEST

START_TEST(recording_again_updates_the_recorded_executable)
{
    stepgraph_step *step = two_lanes();

    relax_to(step, 2);
    OK(sg__step_record_again(step));
    ck_assert_ptr_null(step->relaxed);
    OK(stepgraph_step_capture(step));
    for (int i = 0; i < 4; i++) {
        inc(stream, stepgraph_pin_address(stepgraph_session_pin(session, "a")), 2);
        inc(stream, stepgraph_pin_address(stepgraph_session_pin(session, "b")), 2);
    }
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(step->updates, 1);
    ck_assert_uint_eq(step->updates_refused, 0);
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(stepgraph_session_pin(session, "a")), 8);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------------------------------- */

static void refused_with(stepgraph_step *step, const stepgraph_relax_config *config, const char *first, const char *second)
{
    CUgraphExec exec = step->exec;
    stepgraph_relax *report = NULL;

    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_relax(step, config, &report), "is not relaxed", first, second);
    ck_assert_ptr_null(report);
    ck_assert_ptr_eq(step->exec, exec);
    ck_assert_ptr_null(step->relaxed);
    STATE_IS(step, STEPGRAPH_STEP_READY);
}

START_TEST(graph_that_allocates_is_refused)
{
    stepgraph_step *step = record_begin("allocates", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    CUdeviceptr p;

    MORE(MemAllocAsync(&p, 4096, stream));
    inc(stream, p, 1);
    MORE(MemFreeAsync(p, stream));
    OK(stepgraph_step_end(step));
    refused_with(step, NULL, "allocates or frees memory", "node 0");
}
END_TEST

START_TEST(programmatic_launches_are_refused)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a");
    stepgraph_step *step = record_begin("programmatic", 0);

    inc(stream, a, 1);
    inc_early(stream, a, 1);
    OK(stepgraph_step_end(step));
    refused_with(step, NULL, "programmatic", "");
}
END_TEST

/* None of which waits for another. */
START_TEST(recording_that_is_too_wide_is_refused)
{
    enum { WIDTH = SG__ORDER_BRANCHES_MAX + 1 };
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a");
    stepgraph_step *step = record_begin("wide", 0);
    static CUgraphNode nodes[WIDTH];
    CUstreamCaptureStatus status;
    const CUgraphNode *last;
    cuuint64_t id;
    CUgraph graph;
    size_t n;

    for (int i = 0; i < WIDTH; i++) {
        MORE(StreamUpdateCaptureDependencies(stream, NULL, 0, 1));
        launch(stream, kernels.nop, 1, NULL);
        MORE(StreamGetCaptureInfo(stream, &status, &id, &graph, &last, &n));
        nodes[i] = last[0];
    }
    MORE(StreamUpdateCaptureDependencies(stream, nodes, WIDTH, 1));
    inc(stream, a, 1);
    OK(stepgraph_step_end(step));
    refused_with(step, NULL, "'wide' is not relaxed", "branches");
}
END_TEST

START_TEST(memory_that_is_gone_is_refused)
{
    CUdeviceptr outside = device_make(1 << 20), a = pin(STEPGRAPH_ROLE_STATE, "a");
    stepgraph_step *step = record_begin("before", STEPGRAPH_STEP_ALLOW_UNREGISTERED);

    inc(stream, outside, 1);
    OK(stepgraph_step_end(step));
    step = record_begin("gone", STEPGRAPH_STEP_ALLOW_UNREGISTERED | STEPGRAPH_STEP_ALLOW_FREED);
    inc(stream, a, 1);
    inc(stream, outside, 1);
    free_elsewhere(outside);
    forget_device(outside);
    OK(stepgraph_step_end(step));
    refused_with(step, NULL, "freed", "node 1");
}
END_TEST

/* An address of it at the end of a large struct is most likely left over, and stands against nothing. */
START_TEST(memory_that_is_gone_may_be_left_over)
{
    CUdeviceptr outside = device_make(1 << 20), a = pin(STEPGRAPH_ROLE_STATE, "a"), out = pin(STEPGRAPH_ROLE_STATE, "out");
    stepgraph_step *step = record_begin("before", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    static struct Big large;

    inc(stream, outside, 1);
    OK(stepgraph_step_end(step));
    step = record_begin("left over", 0);
    inc(stream, a, 1);
    large.words[12] = outside;
    launch(stream, made_for.big4096, 1, (void *[]){&out, &large});
    free_elsewhere(outside);
    forget_device(outside);
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(relax_to(step, 2).barriers, 0);
    ck_assert_int_eq(waits(step, 0, 1), 0);
}
END_TEST

START_TEST(memory_under_two_addresses_is_refused)
{
    CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long) = NULL;
    CUresult (*create)(unsigned long long *, size_t, const void *, unsigned long long) = NULL;
    CUresult (*map)(CUdeviceptr, size_t, size_t, unsigned long long, unsigned long long) = NULL;
    CUresult (*access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t) = NULL;
    CUresult (*unmap)(CUdeviceptr, size_t) = NULL, (*release)(unsigned long long) = NULL, (*give_back)(CUdeviceptr, size_t) = NULL;
    struct {
        int type, handles, location, device;
        void *win32;
        unsigned char flags[8];
    } properties = {1, 0, 1, 0, NULL, {0}};
    const CUmemAccessDesc both = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr at[2], out = pin(STEPGRAPH_ROLE_STATE, "out");
    unsigned long long handle;
    struct Packed packed;
    stepgraph_step *step;
    const size_t bytes = 2 << 20;

#define FIND(f, name, version) *(void **)&f = stepgraph_session_symbol(session, name, version)
    FIND(reserve, "cuMemAddressReserve", 10020);
    FIND(create, "cuMemCreate", 10020);
    FIND(map, "cuMemMap", 10020);
    FIND(access, "cuMemSetAccess", 10020);
    FIND(unmap, "cuMemUnmap", 10020);
    FIND(release, "cuMemRelease", 10020);
    FIND(give_back, "cuMemAddressFree", 10020);
#undef FIND
    ck_assert_int_eq(create(&handle, bytes, &properties, 0), CUDA_SUCCESS);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(reserve(&at[i], bytes, 0, 0, 0), CUDA_SUCCESS);
        ck_assert_int_eq(map(at[i], bytes, 0, handle, 0), CUDA_SUCCESS);
        ck_assert_int_eq(access(at[i], bytes, &both, 1), CUDA_SUCCESS);
    }
    pin_adopt(session, STEPGRAPH_ROLE_STATE, at[0], BYTES, "here");
    if (_i < 2)
        pin_adopt(session, STEPGRAPH_ROLE_STATE, at[1], BYTES, "there");
    packed = (struct Packed){.tag = 1, .a = at[1], .s = 2, .b = at[1]};
    step = record_begin("alias", 0);
    inc(stream, at[0], 1);
    if (_i == 0)
        inc(stream, at[1], 1);
    else /* Where only relaxing looks. */
        launch(stream, made_for.packed, 1, (void *[]){&packed, &out});
    OK(stepgraph_step_end(step));
    refused_with(step, NULL, "'here'", _i < 2 ? "'there'" : "the same");
    drop_step(step);
    n_steps--;
    drop_pin(stepgraph_session_pin(session, "here"));
    if (_i < 2)
        drop_pin(stepgraph_session_pin(session, "there"));
    OK(stepgraph_session_wait(session));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(unmap(at[i], bytes), CUDA_SUCCESS);
        ck_assert_int_eq(give_back(at[i], bytes), CUDA_SUCCESS);
    }
    ck_assert_int_eq(release(handle), CUDA_SUCCESS);
}
END_TEST

/* Nobody knows whether it has another address. */
START_TEST(memory_that_cannot_be_asked_about_is_not_relaxed)
{
    stepgraph_relax_config config = on_lanes(4);
    CUdeviceptr a = device_make(BYTES);
    stepgraph_step *step;

    pin_adopt(session, STEPGRAPH_ROLE_STATE, a, BYTES, "a");
    step = record_begin("adopted", 0);
    inc(stream, a, 1);
    OK(stepgraph_step_end(step));
    driver_fails("cuPointerGetAttributes", 1, CUDA_ERROR_UNKNOWN);
    FAILS(STEPGRAPH_ERR_DRIVER, stepgraph_step_relax(step, &config, NULL), "cuPointerGetAttributes");
    no_driver_fails();
    OK(stepgraph_step_relax(step, &config, NULL));
}
END_TEST

START_TEST(step_whose_blocks_are_forgotten_is_refused)
{
    stepgraph_arena *arena = arena_make(1 << 20, 0);
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a");
    stepgraph_step *first = record_begin("first", 0), *second;

    inc(stream, block(arena), 1);
    inc(stream, a, 1);
    OK(stepgraph_step_end(first));
    second = record_begin("second", 0);
    inc(stream, a, 1);
    OK(stepgraph_step_end(second));
    refused_with(first, NULL, "'first'", "another step was recorded since");
    relax_to(second, 2);
}
END_TEST

START_TEST(step_that_cannot_be_put_back_is_not_timed)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b");
    stepgraph_step *step = record_begin("host", STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS);

    inc(stream, a, 1);
    inc(stream, b, 1);
    CU(LaunchHostFunc(stream, host_nothing, NULL));
    OK(stepgraph_step_end(step));
    refused_with(step, NULL, "node 2, 'host function'", "lanes");
    ck_assert_uint_eq(relax_to(step, 4).lanes, 4);
}
END_TEST

START_TEST(no_room_for_saving_is_told)
{
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_step *step = two_lanes();

    config.snapshot_bytes = 1; /* Then page-locked memory is used. */
    ck_assert_int_eq(summary(relaxed(step, &config)).identical, 1);
    driver_fails("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    FAILS(STEPGRAPH_ERR_MEMORY, stepgraph_step_relax(step, &config, NULL), "cannot be saved", "lanes", "at most 1 bytes");
    no_driver_fails();
    STATE_IS(step, STEPGRAPH_STEP_READY);
    OK(stepgraph_step_replay(step));
}
END_TEST

START_TEST(bad_calls_are_refused)
{
    const stepgraph_relax_kernel nameless = {NULL, 0, 0}, reserved = {"inc", 0, 1};
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_step *step = begin("bad", 0);
    LONGER(stepgraph_relax_config, 8) longer;

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_relax(NULL, NULL, NULL), "NULL");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_relax(step, NULL, NULL), "bad", "READY");
    begin_recording(step);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_relax(step, NULL, NULL), "bad", "recording");
    OK(stepgraph_step_reset(step));
    step = two_lanes();
    config.flags = 1u << 31;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_relax(step, &config, NULL), "80000000");
    config = on_lanes(64);
    OK(stepgraph_step_relax(step, &config, NULL));
    OK(stepgraph_step_unrelax(step));
    config = on_lanes(65);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_relax(step, &config, NULL), "65", "64");
    config = on_lanes(0);
    config.n_reads = 1;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_relax(step, &config, NULL), "reads", "NULL");
    config.reads = &nameless;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_relax(step, &config, NULL), "number 0 of the reads", "pattern");
    config.reads = &reserved;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_relax(step, &config, NULL), "number 0 of the reads", "reserved");
    config = on_lanes(0);
    config.reserved = 1;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_relax(step, &config, NULL), "reserved", "stepgraph_relax_config");
    memset(&longer, 0, sizeof longer);
    longer.known = on_lanes(0);
    longer.known.size = sizeof longer;
    OK(stepgraph_step_relax(step, &longer.known, NULL));
    longer.bytes[sizeof longer - 1] = 1;
    FAILS(STEPGRAPH_ERR_ABI, stepgraph_step_relax(step, &longer.known, NULL), "newer library");
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_FRESH));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_relax(step, NULL, NULL), "two", "open");
    OK(stepgraph_step_run_end(step));
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_relax_get_summary(NULL, &(stepgraph_relax_summary)STEPGRAPH_RELAX_SUMMARY_INIT), "NULL");
    ck_assert_str_eq(stepgraph_relax_text(NULL), "");
    ck_assert_str_eq(stepgraph_barrier_name(99), "unknown reason");
    stepgraph_relax_destroy(NULL);
}
END_TEST

/* ---- what goes wrong on the way --------------------------------------------------------------------------------------- */

static const char *const entries[] = {
#define X(name, version, params) "cu" #name,
    SG__DRIVER_ENTRIES(X, X)
#undef X
};
enum { ENTRIES = sizeof entries / sizeof *entries };

/* These may fail without harm: undoing cannot be undone, or is put off; without device memory page-locked memory is taken; and a kernel without a name is
 * a barrier. */
static int may_fail(const char *entry)
{
    static const char *const harmless[] = {"cuGraphExecDestroy",  "cuGraphDestroy",       "cuEventDestroy", "cuMemFree",    "cuMemFreeHost",
                                           "cuModuleUnload",      "cuCtxPopCurrent",      "cuGetErrorName", "cuFuncGetName", "cuThreadExchangeStreamCaptureMode",
                                           "cuMemAlloc", "cuCtxPushCurrent", "cuCtxGetId"};

    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strcmp(entry, harmless[i]) == 0)
            return 1;
    return 0;
}

/* Every call of every entry fails once. The step is then as it was, since what it touches is put back again. */
START_TEST(driver_calls_that_fail_leave_the_step_whole)
{
    unsigned char before[PINS * BYTES], after[PINS * BYTES];
    const char *entry = entries[_i];
    stepgraph_step *step;
    unsigned long first, calls, alive;

    drawn_make(3, 1 << 16);
    step = record_begin("drawn", 0);
    drawn_body();
    OK(stepgraph_step_end(step));
    drawn_fill();
    drawn_bytes(before);
    first = driver_calls(entry);
    OK(stepgraph_step_relax(step, NULL, NULL));
    calls = driver_calls(entry) - first;
    OK(stepgraph_step_unrelax(step));
    unit_leaves_objects(1);
    alive = driver_calls("cuGraphInstantiateWithParams") - driver_calls("cuGraphExecDestroy");
    for (unsigned nth = 1; nth <= calls && nth < 40; nth++) {
        CUgraphExec exec = step->exec;
        stepgraph_status status;
        first = driver_calls(entry);
        driver_fails(entry, nth, CUDA_ERROR_UNKNOWN);
        status = stepgraph_step_relax(step, NULL, NULL);
        no_driver_fails();
        if (status == STEPGRAPH_OK) { /* Ways that are clearly slower are timed less often, so it may be called less often than before. */
            unsigned long made = driver_calls(entry) - first;
            /* The last call may be one that puts everything back, which is done again. */
            ck_assert_msg(may_fail(entry) || made < nth || made == nth + 1, "call %u of %s failed, and nobody noticed", nth, entry);
        } else {
            ck_assert_msg(strstr(last_words(), entry) != NULL, "call %u of %s: %s", nth, entry, last_words());
            ck_assert_int_eq(last_error().driver_code, CUDA_ERROR_UNKNOWN);
        }
        STATE_IS(step, STEPGRAPH_STEP_READY);
        drawn_bytes(after);
        ck_assert_msg(memcmp(before, after, sizeof before) == 0, "call %u of %s: a state is not as it was", nth, entry);
        OK(stepgraph_step_unrelax(step));
        ck_assert_ptr_eq(step->exec, exec);
        if (strcmp(entry, "cuGraphUpload") == 0) /* It was made, and is of no use. */
            ck_assert_uint_eq(driver_calls("cuGraphInstantiateWithParams") - driver_calls("cuGraphExecDestroy"), alive);
    }
    OK(stepgraph_step_replay(step));
}
END_TEST

START_TEST(replays_that_hang_fail_the_step)
{
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b");
    stepgraph_step *step = record_begin("slow", 0);

    inc(stream, a, 1);
    spin(stream, 100);
    inc(stream, b, 1);
    inc(stream, a, 1);
    inc(stream, b, 1);
    OK(stepgraph_step_end(step));
    config.timeout_ns = 20000000;
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_step_relax(step, &config, NULL), "slow", "0.0 seconds");
    STATE_IS(step, STEPGRAPH_STEP_FAILED);
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_session_wait(session), "slow", "hangs");
    for (int i = 0; i < 100 && stepgraph_session_wait(session) == STEPGRAPH_ERR_LOST; i++)
        usleep(100000); /* The replays end some time, on a slow machine later. */
    OK(stepgraph_session_wait(session));
}
END_TEST

static TCase *case_of(Suite *suite, const char *name)
{
    TCase *made = audit_case(suite, name);

    tcase_add_checked_fixture(made, setup, teardown);
    tcase_set_timeout(made, 60);
    return made;
}

static Suite *make(void)
{
    Suite *suite = suite_create("relax");
    TCase *order = case_of(suite, "order"), *lifetimes = case_of(suite, "lifetimes"), *barriers = case_of(suite, "barriers");
    TCase *replays = case_of(suite, "replays"), *back = case_of(suite, "back"), *refusals = case_of(suite, "refusals");
    TCase *wrong = case_of(suite, "wrong"), *unseen = case_of(suite, "unseen"), *looped = case_of(suite, "loop");

    tcase_add_test(order, nodes_that_touch_nothing_in_common_do_not_wait);
    tcase_add_test(order, two_readers_wait_for_each_other_unless_declared);
    tcase_add_loop_test(order, pins_that_the_step_does_not_write_tie_nothing_together, 0, 7);
    tcase_add_test(order, copies_and_sets_touch_what_they_say_and_no_more);
    tcase_add_test(order, commits_touch_what_stands_in_their_list);
    tcase_add_test(order, addresses_at_odd_places_of_structs_are_found);
    tcase_add_test(order, addresses_at_odd_places_of_structs_are_found_outside_the_pins);
    tcase_add_test(order, memory_that_only_odd_places_of_structs_lead_to_is_found);
    tcase_add_test(order, memory_that_only_large_structs_lead_to_is_found);
    tcase_add_loop_test(order, end_of_the_furthest_memory_is_a_touch_of_it, 0, 3);
    tcase_add_test(order, pin_right_behind_a_noted_block_is_the_pin);
    tcase_add_test(order, memory_right_behind_a_noted_block_is_that_of_its_pin);
    tcase_add_loop_test(order, sets_and_copies_write_pins_of_every_role, 0, 3);
    tcase_add_test(order, set_over_neighbours_writes_both);
    tcase_add_test(order, what_uses_memory_of_a_library_keeps_its_order_whatever_is_declared);
    tcase_add_test(order, memory_outside_the_pins_is_one_allocation);
    tcase_add_loop_test(lifetimes, blocks_that_are_given_out_again_tie_their_users_together, 0, 2);
    tcase_add_test(lifetimes, blocks_that_the_host_notes_are_known_by_their_lifetimes);
    tcase_add_test(lifetimes, left_over_words_are_counted_and_touch_what_was_there);
    tcase_add_test(lifetimes, memory_of_an_arena_that_was_never_a_block_is_all_of_it);
    tcase_add_test(barriers, kernel_without_an_address_is_a_barrier);
    tcase_add_test(barriers, host_function_is_a_barrier);
    tcase_add_loop_test(barriers, use_of_host_memory_is_a_barrier, 0, 5);
    tcase_add_test(barriers, several_buffers_of_the_host_are_no_obstacle);
    tcase_add_test(barriers, events_are_barriers);
    tcase_add_test(barriers, child_graph_is_a_barrier);
    tcase_add_test(barriers, child_graph_with_a_host_function_is_not_timed);
    tcase_add_test(barriers, cooperative_kernel_is_a_barrier);
    tcase_add_test(barriers, collectives_are_barriers_or_keep_their_order);
    tcase_add_test(barriers, collectives_are_known_in_either_spelling);
    tcase_add_test(barriers, caller_can_make_a_kernel_a_barrier);
    tcase_add_test(barriers, names_fit_patterns);
    tcase_add_loop_test(replays, relaxed_replays_give_what_launches_give, 0, 20);
    tcase_add_loop_test(replays, memory_that_stands_close_together_is_kept_apart, 0, 40);
    tcase_add_loop_test(replays, memory_that_stands_close_together_is_verified, 0, 20);
    tcase_add_loop_test(replays, nodes_of_every_kind_are_kept_apart, 0, 40);
    tcase_add_loop_test(replays, nodes_of_every_kind_are_verified, 0, 20);
    tcase_add_test(replays, all_is_put_back_after_timing);
    tcase_add_test(replays, false_declaration_costs_no_state_while_replays_are_timed);
    tcase_add_test(replays, replays_are_timed_with_the_inputs_that_were_fed_last);
    tcase_add_test(replays, choices_are_told_as_recorded_first);
    tcase_add_test(replays, numbers_of_a_report_have_points_in_every_language);
    tcase_add_loop_test(replays, lanes_that_cannot_be_the_fastest_are_not_tried, 0, 4);
    tcase_add_test(replays, chain_that_is_needed_stays);
    tcase_add_loop_test(replays, input_that_the_step_writes_is_found_out, 0, 3);
    tcase_add_loop_test(replays, steps_with_nothing_to_save_are_relaxed, 0, 3);
    tcase_add_test(replays, memory_of_a_library_goes_on);
    tcase_add_test(unseen, check_of_a_relaxed_step_says_that_the_order_may_be_to_blame);
    tcase_add_test(unseen, table_of_addresses_is_caught_by_the_bytes);
    tcase_add_test(unseen, step_that_does_not_repeat_itself_is_not_compared);
    tcase_add_test(looped, loop_relaxes_what_is_proven_and_proves_it_again);
    add_controlled_test(looped, loop_replays_what_it_cannot_check_relaxed_as_it_was_recorded);
    tcase_add_loop_test(looped, graph_is_relaxed_where_the_budget_has_room_for_another_executable, 0, 2);
    tcase_add_test(looped, loop_relaxes_without_checks_where_none_are_wanted);
    tcase_add_test(looped, loop_goes_back_to_the_recording_when_a_check_finds_other_results);
    tcase_add_test(looped, loop_says_what_cannot_be_relaxed);
    tcase_add_test(looped, loop_knows_blocks_of_several_keys);
    tcase_add_test(looped, loop_refuses_bad_options_of_relaxing);
    add_controlled_test(back, unrelaxed_step_replays_its_own_executable);
    tcase_add_test(back, relaxing_again_begins_from_the_recording);
    tcase_add_test(back, recording_again_updates_the_recorded_executable);
    tcase_add_test(refusals, graph_that_allocates_is_refused);
    tcase_add_test(refusals, programmatic_launches_are_refused);
    tcase_add_test(refusals, recording_that_is_too_wide_is_refused);
    tcase_add_test(refusals, memory_that_is_gone_is_refused);
    tcase_add_test(refusals, memory_that_is_gone_may_be_left_over);
    tcase_add_loop_test(refusals, memory_under_two_addresses_is_refused, 0, 3);
    add_controlled_test(refusals, memory_that_cannot_be_asked_about_is_not_relaxed);
    tcase_add_test(refusals, step_whose_blocks_are_forgotten_is_refused);
    tcase_add_test(refusals, step_that_cannot_be_put_back_is_not_timed);
    tcase_add_test(refusals, step_that_writes_pageable_memory_is_not_timed);
    add_controlled_test(refusals, no_room_for_saving_is_told);
    tcase_add_test(refusals, bad_calls_are_refused);
    add_controlled_loop_test(wrong, driver_calls_that_fail_leave_the_step_whole, 0, ENTRIES);
    add_controlled_test(wrong, replays_that_hang_fail_the_step);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
