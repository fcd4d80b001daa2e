/*
 * Relaxing: which nodes wait for which, what is a barrier, what is refused, and going back.
 *
 * cusim runs the nodes of a graph one after another, in the order of its calls as long as that fits, so what shows here is the order itself
 * (edges), and bytes where the order is really another one: a set at the front, which a kernel stands in for that was added last. All of it runs
 * with cusim's own search for nodes that touch the same bytes without a path between them.
 */
#include "relaxing.h"

/* ---- order --------------------------------------------------------------------------------------------------------- */

static stepgraph_barrier reason_of(const stepgraph_step *step, uint32_t node)
{
    return (stepgraph_barrier)step->relaxed->footprint.reasons[node];
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
    drop_newest_step();
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
    drop_newest_step();
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

static Suite *make(void)
{
    Suite *suite = suite_create("relax");
    TCase *order = relax_case(suite, "order"), *lifetimes = relax_case(suite, "lifetimes"), *barriers = relax_case(suite, "barriers");
    TCase *back = relax_case(suite, "back"), *refusals = relax_case(suite, "refusals");

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
    return suite;
}

int main(void)
{
    return unit_main(make);
}
