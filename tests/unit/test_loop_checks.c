/* Checks by turns: what they see although a step does not repeat itself, and what they leave alone. */
#include "scenes.h"

/* ---- noise ------------------------------------------------------------------------------------------------------- */

START_TEST(noise_in_one_pin_hides_nothing_in_another)
{
    float right[MOST][2], launched, replayed;
    char first[40];
    unsigned at = 0;

    act(NULL, run_noisy, w, NULL);
    frozen_from = 5; /* After both recordings. */
    by = 100;
    by_hand(24, right);
    loop_make(STEPGRAPH_LOOP_KEEP_SCRATCH, 0);
    go(0, 24);
    check_right(right);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_FRESH);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_DIVERGED);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "pin 'w'"));
    launched = frozen_from + 3 * by; /* Of the third check. */
    replayed = frozen_from + 2 * by + 1;
    while (((const char *)&launched)[at] == ((const char *)&replayed)[at])
        at++;
    ck_assert_uint_gt(at, 0);
    snprintf(first, sizeof first, "from byte %u on", at);
    ck_assert_msg(strstr(stats_now().words, first) != NULL, "'%s' lacks '%s'", stats_now().words, first);
    ck_assert_uint_eq(stats_now().checks_inconclusive, 2);
    ck_assert_uint_eq(stats_now().checks_diverged, 1);
    ck_assert_uint_eq(said("the next step is checked too"), 2);
}
END_TEST

START_TEST(noise_alone_is_no_fault)
{
    float right[MOST][2];

    act(NULL, run_noisy, w, NULL);
    frozen_from = 100;
    by_hand(24, right);
    loop_make(STEPGRAPH_LOOP_KEEP_SCRATCH, 4);
    go(0, 24);
    check_right(right);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    ck_assert_uint_gt(stats_now().checks_inconclusive, 3);
    ck_assert_uint_eq(stats_now().checks_inconclusive, stats_now().checks);
    ck_assert_uint_eq(said("the next step is checked too"), 0);
}
END_TEST

/* The snapshot that replays are compared with is made once they are needed. Without room for it nobody knows whether it is noise, and the words say so. */
START_TEST(replays_are_compared_where_there_is_room)
{
    act(NULL, run_noisy, w, NULL);
    frozen_from = 100;
    zero();
    loop_make(STEPGRAPH_LOOP_KEEP_SCRATCH, 0);
    go(0, 5);
    OK(stepgraph_loop_begin(loop, 5, &turn));
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_CHECK);
    run_noisy(5);
    driver_fails("cuMemAlloc", 2, CUDA_ERROR_OUT_OF_MEMORY); /* The first is for waiting. */
    if (_i == 1) /* Nor has the host any. */
        driver_fails("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    OK(stepgraph_loop_end(loop, &turn));
    no_driver_fails();
    ck_assert_int_eq(last_error().status, STEPGRAPH_OK);
    ck_assert_uint_eq(stats_now().checks, 1);
    ck_assert_uint_eq(_i == 0 ? stats_now().checks_inconclusive : stats_now().checks_diverged, 1);
    if (_i == 1) {
        ck_assert_ptr_nonnull(strstr(stats_now().words, "pin 'out'"));
        ck_assert_ptr_nonnull(strstr(stats_now().words, "no room for a third copy of the pins"));
    }
}
END_TEST

/* Now and then, but never in three steps in a row, w's step is another. */
static void run_noisy_at_times(uint64_t k)
{
    add(scratch, 1);
    axpb(stream, stepgraph_pin_address(out), stepgraph_pin_address(scratch), 0);
    add(w, k >= 5 && k < 14 && (k - 5) % 3 < 2 ? 100 : 1);
}

START_TEST(what_is_found_in_three_checks_in_a_row_alone_is_a_fault)
{
    float right[MOST][2];

    act(NULL, run_noisy_at_times, w, NULL);
    by_hand(24, right);
    loop_make(STEPGRAPH_LOOP_KEEP_SCRATCH, 0);
    go(0, 24);
    check_right(right);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    ck_assert_uint_eq(said("the next step is checked too"), 6);
    ck_assert_uint_eq(stats_now().checks_inconclusive, 9);
}
END_TEST

/* Of a graph that is replayed already: those checks come in a row, not `check_every` steps apart. */
START_TEST(what_a_sampled_check_suspects_is_checked_at_once)
{
    const uint64_t every = 50;
    uint64_t first = 0;

    act(NULL, run_noisy, w, NULL);
    frozen_from = 20;
    by = 100;
    zero();
    loop_make(STEPGRAPH_LOOP_KEEP_SCRATCH, every);
    for (uint64_t k = 0; k < 100; k++) {
        go(k, k + 1);
        if (first == 0 && said("the next step is checked too") > 0)
            first = k;
    }
    ck_assert_uint_gt(first, 20);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_FRESH);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_DIVERGED);
    ck_assert_uint_eq(stats_now().turns[STEPGRAPH_TURN_FALLBACK], 99 - first - 2);
}
END_TEST

/* Two of three, and then another graph: it is not to be judged by what the one before it did. */
START_TEST(suspicion_ends_with_its_graph)
{
    act(NULL, run_noisy, w, NULL);
    frozen_from = 5;
    by = 100;
    zero();
    loop_make(STEPGRAPH_LOOP_KEEP_SCRATCH, 0);
    for (uint64_t k = 0; k < 7; k++)
        go(k, k + 1);
    ck_assert_uint_eq(stats_now().checks_inconclusive, 2);
    OK(stepgraph_loop_drop(loop, 0, NULL));
    for (uint64_t k = 7; k < 9; k++) /* By the new value. */
        go(k, k + 1);
    by = 1000;
    go(9, 11);
    ck_assert_uint_eq(stats_now().checks_inconclusive, 4);
    ck_assert_uint_eq(stats_now().checks_diverged, 0);
    go(11, 12);
    ck_assert_uint_eq(stats_now().checks_diverged, 1);
}
END_TEST

/* Here `out` differs from replay to replay by 1, and what is frozen in it by 1,000 each step. */
static void run_far(uint64_t k)
{
    add(scratch, 1);
    axpb(stream, stepgraph_pin_address(out), stepgraph_pin_address(scratch), by * (float)k);
    add(w, 1);
}

/* `out` holds so many values with a type. */
static void out_of_floats(uint64_t n)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;

    drop_pin(out);
    config.role = STEPGRAPH_ROLE_OUTPUT;
    config.bytes = n * sizeof(float);
    config.name = "out";
    config.type = STEPGRAPH_TYPE_F32;
    OK(stepgraph_pin_create(session, &config, &out));
    keep_pin(out);
}

START_TEST(far_beyond_the_noise_is_no_noise)
{
    const float frozen = _i == 1 ? 0.25f : 1000;

    if (_i < 2) /* Without a type nothing is measured. */
        out_of_floats(1);
    act(NULL, run_far, w, NULL);
    by = frozen;
    /* The first recordings are compared, and would tell: here the checks are to. */
    zero();
    loop_make(STEPGRAPH_LOOP_KEEP_SCRATCH, 0);
    go(0, 3);
    by = 0;
    go(3, 5);
    by = frozen;
    go(5, 20);
    if (_i == 0) {
        ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_DIVERGED);
        ck_assert_ptr_nonnull(strstr(stats_now().words, "pin 'out'"));
    } else {
        ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    }
}
END_TEST

enum { VALUES = 4, RUNS_OF_A_CHECK = 5 }; /* The launches, a replay, and three that are compared with it. */

/* All values of `out` go on by 1 each run, and one is frozen; */
static void run_with_one_frozen(uint64_t k)
{
    (void)k;
    add(scratch, 1);
    for (unsigned i = 0; i < VALUES; i++)
        axpb(stream, stepgraph_pin_address(out) + i * sizeof(float), stepgraph_pin_address(scratch), i == 0 ? by : 0);
}

/* or the first does, and all others are frozen. */
static void run_with_others_frozen(uint64_t k)
{
    (void)k;
    add(scratch, 1);
    axpb(stream, stepgraph_pin_address(out), stepgraph_pin_address(scratch), 0);
    for (unsigned i = 1; i < VALUES; i++)
        setv(stream, stepgraph_pin_address(out) + i * sizeof(float), by);
}

START_TEST(far_in_one_value_or_by_little_in_many_is_no_noise)
{
    const double spread = RUNS_OF_A_CHECK - 2, noise = _i == 0 ? spread * sqrt(VALUES) : spread; /* Of the last replay. */

    out_of_floats(VALUES);
    act(NULL, _i == 0 ? run_with_one_frozen : run_with_others_frozen, out, NULL);
    by = 0;
    loop_make(STEPGRAPH_LOOP_KEEP_SCRATCH, 0);
    go(0, 5);
    /* The one is far beyond in its value alone, the other only if all are taken together. */
    by = _i == 0 ? (float)(16 * (spread + noise) / 2) : (float)(16 * spread / sqrt(2));
    ck_assert_int_eq(by > 16 * spread, _i == 0);
    ck_assert_int_eq(by * sqrt(_i == 0 ? 1 : VALUES - 1) > 16 * noise, _i == 1);
    go(5, 20);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_DIVERGED);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "pin 'out'"));
}
END_TEST

/* `out` takes its values from a ring, which each run turns. */
static stepgraph_pin *ring;

static void run_around(uint64_t k)
{
    const CUdeviceptr first = stepgraph_pin_address(ring);

    (void)k;
    copyf(stream, stepgraph_pin_address(out), first);
    copyf(stream, first + RUNS_OF_A_CHECK * sizeof(float), first);
    for (unsigned i = 0; i < RUNS_OF_A_CHECK; i++)
        copyf(stream, first + i * sizeof(float), first + (i + 1) * sizeof(float));
}

START_TEST(noise_is_what_replays_have_shown_at_most)
{
    /* What the launches leave, the replay, and the three others, of which the first is alike and the last is close. */
    const float values[RUNS_OF_A_CHECK + 1] = {100, 0, 0, 100, 1};

    out_of_floats(1);
    ring = pin_make(session, STEPGRAPH_ROLE_SCRATCH, sizeof values, "ring");
    OK(stepgraph_pin_write(ring, values, sizeof values));
    act(NULL, run_around, out, NULL);
    loop_make(STEPGRAPH_LOOP_KEEP_SCRATCH, 0);
    go(0, RUNS_OF_A_CHECK); /* Warm-up runs and recordings: once around. */
    go(RUNS_OF_A_CHECK, 20);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    ck_assert_uint_eq(stats_now().checks_inconclusive, 3);
    ck_assert_uint_eq(said("the next step is checked too"), 0);
}
END_TEST

/* ---- what is left alone ------------------------------------------------------------------------------------------ */

/* A sum over steps, and half of an output that nobody writes. */
static void run_summing(uint64_t k)
{
    (void)k;
    add(out, 2);
    add(w, 1);
}

/* The weights depend on what the step before left in an output. */
static void run_reading(uint64_t k)
{
    (void)k;
    update(stream, stepgraph_pin_address(w), stepgraph_pin_address(w), stepgraph_pin_address(out), stepgraph_pin_address(one), 1);
    add(out, 2);
}

START_TEST(outputs_are_what_they_are_without_a_check)
{
    static void (*const runs[])(uint64_t) = {run_summing, run_reading};
    float right[MOST][2];

    act(feed_one, runs[_i], w, out);
    by_hand(30, right);
    loop_make(0, 5);
    go(0, 30);
    check_right(right);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    ck_assert_uint_gt(stats_now().checks_identical, 4);
    ck_assert_uint_eq(stats_now().checks_identical, stats_now().checks);
}
END_TEST

/* Scratch that carries something from step to step, as a momentum in the wrong role. */
static void run_on_scratch(uint64_t k)
{
    (void)k;
    add(scratch, 1);
    update(stream, stepgraph_pin_address(w), stepgraph_pin_address(w), stepgraph_pin_address(scratch), stepgraph_pin_address(one), 1);
}

START_TEST(scratch_that_outlives_a_step_is_told_and_its_step_is_right)
{
    float right[MOST][2];
    uint64_t k;

    act(feed_one, run_on_scratch, w, NULL);
    by_hand(6, right);
    loop_make(0, 0);
    k = until_check();
    ck_assert_uint_eq(k, 6);
    check_right(right);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_DIVERGED);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "pin 'w'"));
    /* The steps to come have lost what it held, and the words say what to do. */
    ck_assert_msg(lacks(stats_now().words, (const char *[]){"SCRATCH", "'scratch'", "make it a STATE", "checkpoint", NULL}) == NULL, "%s", stats_now().words);
}
END_TEST

/* Gradients that several batches add up, in a step that nothing else comes of. */
static void run_into_scratch(uint64_t k)
{
    (void)k;
    add(scratch, 1);
}

START_TEST(scratch_that_adds_up_is_told_where_nothing_else_can_be_compared)
{
    act(NULL, run_into_scratch, scratch, NULL);
    loop_make(_i == 0 ? 0 : STEPGRAPH_LOOP_KEEP_SCRATCH, 0);
    (void)until_check();
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_UNPROVEN);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "no STATE pin"));
    ck_assert_msg((lacks(stats_now().words, (const char *[]){"SCRATCH", "'scratch'", "make it a STATE", "checkpoint", NULL}) == NULL) == (_i == 0), "%s",
                  stats_now().words);
}
END_TEST

/* The value of w's step is the host's, and is frozen: no SCRATCH is to blame where the graph has none, or where none was filled. */
static void run_by_step(uint64_t k)
{
    add(w, (float)(k < 5 ? 1 : k));
}

static void run_by_step_beside_scratch(uint64_t k)
{
    add(scratch, 1);
    run_by_step(k);
}

START_TEST(scratch_is_not_blamed_where_none_was_filled)
{
    act(NULL, _i == 0 ? run_by_step : run_by_step_beside_scratch, w, NULL);
    loop_make(_i == 0 ? 0 : STEPGRAPH_LOOP_KEEP_SCRATCH, 0);
    go(0, 8);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_DIVERGED);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "pin 'w'"));
    ck_assert_ptr_null(strstr(stats_now().words, "SCRATCH"));
}
END_TEST

/* A rate that drops after the first checks. */
static void run_by_late_step(uint64_t k)
{
    add(scratch, 1);
    add(w, k < 6 ? 1 : 0.5f);
}

START_TEST(value_that_changes_after_checks_that_passed_is_supposed)
{
    act(NULL, run_by_late_step, w, NULL);
    loop_make(0, 0);
    go(0, 8);
    ck_assert_uint_eq(stats_now().checks_identical, 1);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_DIVERGED);
    ck_assert_msg(lacks(stats_now().words, (const char *[]){"pin 'w'", "value or an address", "CELL", "stepgraph_loop_drop()", NULL}) == NULL, "%s", stats_now().words);
    ck_assert_ptr_null(strstr(stats_now().words, "SCRATCH"));
}
END_TEST

/* An update after so many batches, and no key of its own. */
static void run_with_update(uint64_t k)
{
    counted_inc(session, NULL, stepgraph_pin_address(w), 1);
    if (k >= 5)
        counted_inc(session, NULL, stepgraph_pin_address(w), 4);
}

START_TEST(step_that_launches_other_kernels_is_told_to_have_a_key_of_its_own)
{
    float right[MOST][2];

    act(NULL, run_with_update, w, NULL);
    by_hand(12, right);
    loop_make(0, 0);
    go(0, 12);
    check_right(right);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_DIVERGED);
    ck_assert_msg(lacks(stats_now().words, (const char *[]){"pin 'w'", "2 kernels", "recorded with 1", "a key of its own", NULL}) == NULL, "%s",
                  stats_now().words);
    ck_assert_ptr_null(strstr(stats_now().words, "SCRATCH"));
}
END_TEST

START_TEST(inputs_that_the_step_writes_are_named)
{
    float right[MOST][2];

    act(feed_both, run_on_input, w, NULL);
    by_hand(12, right);
    loop_make(0, 0);
    go(0, 12);
    check_right(right);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_FRESH);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "writes pin 'x', whose role, feed,"));
    ck_assert_uint_eq(stats_now().checks_inconclusive, 0);
}
END_TEST

/* Running statistics that were registered as a constant. */
static void run_on_constant(uint64_t k)
{
    (void)k;
    add(constant, 1);
    update(stream, stepgraph_pin_address(w), stepgraph_pin_address(w), stepgraph_pin_address(constant), stepgraph_pin_address(one), 1);
}

/* Before the step is done a second time, which would change it for good. */
START_TEST(constants_that_the_step_writes_are_named_and_right)
{
    const float none = 0;
    float right[MOST][2];

    constant = pin_make(session, STEPGRAPH_ROLE_CONST, 4, "statistics");
    act(feed_one, run_on_constant, w, constant);
    OK(stepgraph_pin_write(constant, &none, sizeof none));
    by_hand(12, right);
    OK(stepgraph_pin_write(constant, &none, sizeof none));
    loop_make(0, 0);
    go(0, 12);
    check_right(right);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_FRESH);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_DIVERGED);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "writes pin 'statistics', whose role, const,"));
}
END_TEST

static stepgraph_status enqueue_scene(void *unused, stepgraph_step *step, uint64_t k)
{
    (void)unused, (void)step;
    scene.run(k);
    return STEPGRAPH_OK;
}

static void body_of_scene(void *unused)
{
    (void)unused;
    scene.run(0);
}

START_TEST(check_by_callbacks_names_constants_and_stops)
{
    stepgraph_check_config check = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_step *step = step_make(session, "train", 0);
    stepgraph_check *report = NULL;
    float before[2];

    constant = pin_make(session, STEPGRAPH_ROLE_CONST, 4, "statistics");
    act(feed_one, run_on_constant, w, constant);
    zero();
    feed_one(0);
    record(step, body_of_scene, NULL);
    replayed(step, 1);
    before[0] = pin_float(w);
    before[1] = pin_float(constant);
    check.enqueue = enqueue_scene;
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_check_run(step, &check, &report), "'train' cannot be checked", "writes pin 'statistics'");
    ck_assert(pin_float(w) == before[0]);
    ck_assert(pin_float(constant) == before[1] + 1);
}
END_TEST

/* ---- memory of a library ----------------------------------------------------------------------------------------- */

static stepgraph_pin *library;

/* A library counts its calls, where only it knows. */
static void run_with_library(uint64_t k)
{
    (void)k;
    add(library, 1);
    axpb(stream, stepgraph_pin_address(out), stepgraph_pin_address(w), 1);
    update(stream, stepgraph_pin_address(w), stepgraph_pin_address(w), stepgraph_pin_address(x), stepgraph_pin_address(one), 1);
}

/* Checks leave it alone: it never goes back, and that it is another each time is nobody's affair. */
START_TEST(memory_of_a_library_goes_on_through_checks)
{
    float right[MOST][2], counted, before = 0;

    library = pin_make(session, STEPGRAPH_ROLE_LIBRARY, 4, "library");
    act(feed_both, run_with_library, w, out);
    by_hand(12, right);
    loop_make(STEPGRAPH_LOOP_RESTORE, 2);
    counted = pin_float(library);
    for (uint64_t k = 0; k < 12; k++)
        do {
            before = pin_float(library);
            OK(round_of(k));
            ck_assert_msg(pin_float(library) > before || turn.kind == STEPGRAPH_TURN_RECORD, "step %d, turn %u: %g after %g", (int)k, turn.kind,
                          pin_float(library), before);
        } while (turn.again);
    check_right(right);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    ck_assert_uint_gt(stats_now().checks, 2);
    ck_assert_uint_eq(stats_now().checks_identical, stats_now().checks);
    ck_assert_float_ge(pin_float(library) - counted, 12 + (float)stats_now().checks);
}
END_TEST

static stepgraph_status feed_scene(void *unused, stepgraph_step *step, uint64_t k)
{
    (void)unused, (void)step;
    scene.feed(k);
    return STEPGRAPH_OK;
}

START_TEST(memory_of_a_library_goes_on_through_a_check_by_callbacks)
{
    stepgraph_check_config check = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_check_summary summary = STEPGRAPH_CHECK_SUMMARY_INIT;
    stepgraph_step *step = step_make(session, "train", 0);
    stepgraph_check *report = NULL;
    float before;

    library = pin_make(session, STEPGRAPH_ROLE_LIBRARY, 4, "library");
    act(feed_both, run_with_library, w, out);
    zero();
    feed_both(0);
    record(step, body_of_scene, NULL);
    replayed(step, 1);
    before = pin_float(library);
    check.enqueue = enqueue_scene;
    check.feed = feed_scene;
    check.steps = 4;
    OK(stepgraph_check_run(step, &check, &report));
    OK(stepgraph_check_get_summary(report, &summary));
    ck_assert_msg(summary.verdict == STEPGRAPH_IDENTICAL, "%s", stepgraph_check_text(report));
    ck_assert_float_ge(pin_float(library) - before, 2 * 4); /* By launches and by replays, and nothing taken back. */
    stepgraph_check_destroy(report);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop checks");
    TCase *tc = scene_case(suite, "checks");

    tcase_add_test(tc, noise_in_one_pin_hides_nothing_in_another);
    tcase_add_test(tc, noise_alone_is_no_fault);
    add_controlled_loop_test(tc, replays_are_compared_where_there_is_room, 0, 2);
    tcase_add_test(tc, what_a_sampled_check_suspects_is_checked_at_once);
    tcase_add_test(tc, suspicion_ends_with_its_graph);
    tcase_add_loop_test(tc, far_beyond_the_noise_is_no_noise, 0, 3);
    tcase_add_test(tc, what_is_found_in_three_checks_in_a_row_alone_is_a_fault);
    tcase_add_loop_test(tc, far_in_one_value_or_by_little_in_many_is_no_noise, 0, 2);
    tcase_add_test(tc, noise_is_what_replays_have_shown_at_most);
    tcase_add_loop_test(tc, outputs_are_what_they_are_without_a_check, 0, 2);
    tcase_add_test(tc, scratch_that_outlives_a_step_is_told_and_its_step_is_right);
    tcase_add_loop_test(tc, scratch_that_adds_up_is_told_where_nothing_else_can_be_compared, 0, 2);
    tcase_add_loop_test(tc, scratch_is_not_blamed_where_none_was_filled, 0, 2);
    tcase_add_test(tc, value_that_changes_after_checks_that_passed_is_supposed);
    tcase_add_test(tc, step_that_launches_other_kernels_is_told_to_have_a_key_of_its_own);
    tcase_add_test(tc, inputs_that_the_step_writes_are_named);
    tcase_add_test(tc, constants_that_the_step_writes_are_named_and_right);
    tcase_add_test(tc, check_by_callbacks_names_constants_and_stops);
    tcase_add_test(tc, memory_of_a_library_goes_on_through_checks);
    tcase_add_test(tc, memory_of_a_library_goes_on_through_a_check_by_callbacks);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
