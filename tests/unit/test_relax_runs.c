/*
 * Relaxing by running the step: lanes chosen by the clock, what only the bytes show, relaxing in the loop, and driver calls that fail on the way.
 */
#include <unistd.h>

#include "../entry_names.h"
#include "relaxing.h"

/* ---- by the clock ------------------------------------------------------------------------------------------------------ */

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

START_TEST(numbers_of_a_report_have_points_in_every_language)
{
    CUdeviceptr a = pin(STEPGRAPH_ROLE_STATE, "a"), b = pin(STEPGRAPH_ROLE_STATE, "b");
    stepgraph_step *step = record_begin("points", 0);
    const char *json;

    inc(stream, a, 1);
    inc(stream, b, 1);
    OK(stepgraph_step_end(step));
    unit_commas_begin("numbers_of_a_report_have_points_in_every_language");
    json = stepgraph_relax_json(relaxed(step, NULL));
    unit_commas_end();
    ck_assert_msg(json_fault(json) == NULL, "%s in %s", json_fault(json), json);
}
END_TEST

/* Chains of four nodes, side by side: on fewer lanes than chains one waits for another. */
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
    stepgraph_step *step = planted_recorded();
    stepgraph_verify *verify = NULL;
    stepgraph_relax_summary s;
    stepgraph_relax *report;
    float wanted;

    report = relaxed(step, NULL);
    s = summary(report);
    ck_assert_uint_eq(s.lanes, 0);
    ck_assert_int_eq(s.identical, 0);
    ck_assert_ptr_null(step->relaxed);
    ck_assert_uint_gt(said("leaves other bytes behind"), 0);
    ck_assert_ptr_nonnull(strstr(stepgraph_relax_text(report), "left other bytes behind"));
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

/* As the library estimates it. */
static uint64_t bytes_of_one_executable(uint64_t nodes)
{
    return 2600 * nodes;
}

/* 3 warm, 2 recorded, 3 checked, relaxed, 3 checked again; then replays. */
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

static CUdeviceptr one, two;

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

/* ---- what goes wrong on the way --------------------------------------------------------------------------------------- */

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

static Suite *make(void)
{
    Suite *suite = suite_create("relax_runs");
    TCase *clock = relax_case(suite, "clock"), *unseen = relax_case(suite, "unseen");
    TCase *looped = relax_case(suite, "loop"), *wrong = relax_case(suite, "wrong");

    tcase_add_test(clock, all_is_put_back_after_timing);
    tcase_add_test(clock, false_declaration_costs_no_state_while_replays_are_timed);
    tcase_add_test(clock, replays_are_timed_with_the_inputs_that_were_fed_last);
    tcase_add_test(clock, choices_are_told_as_recorded_first);
    tcase_add_test(clock, numbers_of_a_report_have_points_in_every_language);
    tcase_add_loop_test(clock, lanes_that_cannot_be_the_fastest_are_not_tried, 0, 4);
    tcase_add_test(clock, chain_that_is_needed_stays);
    tcase_add_loop_test(clock, input_that_the_step_writes_is_found_out, 0, 3);
    tcase_add_loop_test(clock, steps_with_nothing_to_save_are_relaxed, 0, 3);
    tcase_add_test(clock, memory_of_a_library_goes_on);
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
    add_controlled_loop_test(wrong, driver_calls_that_fail_leave_the_step_whole, 0, ENTRIES);
    add_controlled_test(wrong, replays_that_hang_fail_the_step);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
