/* Checks by turns: what they see although a step does not repeat itself, and what they leave alone. Right is what the same steps leave without a loop. */
#include <stdbool.h>

#include "support.h"

enum { MOST = 5 };

/* The step of a scene: what it is fed, and what it launches. */
static struct {
    void (*feed)(uint64_t k);
    void (*run)(uint64_t k);
    stepgraph_pin *held[MOST]; /* What is to be right. */
    unsigned n;
} scene;

static stepgraph_pin *w, *x, *one, *out, *scratch, *constant;
static stepgraph_loop *loop;
static stepgraph_turn turn;

static void setup(void)
{
    reopen_listening(STEPGRAPH_LOG_INFO);
    memset(&scene, 0, sizeof scene);
    loop = NULL;
    turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
    w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    x = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "x");
    one = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "one");
    out = pin_make(session, STEPGRAPH_ROLE_OUTPUT, 8, "out");
    scratch = pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4, "scratch");
}

static void teardown(void)
{
    stepgraph_loop_destroy(loop);
    loop = NULL;
}

/* ---- a host ------------------------------------------------------------------------------------------------------ */

static void act(void (*feed)(uint64_t), void (*run)(uint64_t), stepgraph_pin *a, stepgraph_pin *b)
{
    scene.feed = feed;
    scene.run = run;
    scene.held[0] = a;
    scene.held[1] = b;
    scene.n = b != NULL ? 2 : 1;
}

static void add(stepgraph_pin *p, float v)
{
    inc(stream, stepgraph_pin_address(p), v);
}

static void zero(void)
{
    stepgraph_pin *all[] = {w, out, scratch};

    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        const float none[2] = {0};
        OK(stepgraph_pin_write(all[i], none, stepgraph_pin_bytes(all[i])));
    }
}

/* The scene's values after so many steps that are launched, and nothing else. */
static void by_hand(unsigned steps, float right[MOST][2])
{
    zero();
    for (uint64_t k = 0; k < steps; k++) {
        if (scene.feed != NULL)
            scene.feed(k);
        OK(stepgraph_session_flush(session));
        scene.run(k);
    }
    for (unsigned i = 0; i < scene.n; i++)
        bytes_at(stepgraph_pin_address(scene.held[i]), right[i], stepgraph_pin_bytes(scene.held[i]));
    zero();
}

static void check_right(float right[MOST][2])
{
    for (unsigned i = 0; i < scene.n; i++) {
        float now[2];
        bytes_at(stepgraph_pin_address(scene.held[i]), now, stepgraph_pin_bytes(scene.held[i]));
        ck_assert_msg(memcmp(now, right[i], stepgraph_pin_bytes(scene.held[i])) == 0, "'%s' holds %g, %g", stepgraph_pin_name(scene.held[i]), now[0], now[1]);
    }
}

static void run_beside(uint64_t k)
{
    (void)k;
    add(w, 1);
    add(out, 1);
}

static void loop_make(uint32_t flags, uint64_t check_every)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    config.flags = flags | STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.check_every = check_every;
    config.executables = 1;
    OK(stepgraph_loop_create(session, &config, &loop));
}

/* One round of a turn. */
static stepgraph_status round_of(uint64_t k)
{
    stepgraph_status status = stepgraph_loop_begin(loop, k, &turn);

    if (status != STEPGRAPH_OK)
        return status;
    if (turn.feed && scene.feed != NULL)
        scene.feed(k);
    if (turn.run)
        scene.run(k);
    return stepgraph_loop_end(loop, &turn);
}

static void go(uint64_t from, uint64_t to)
{
    for (uint64_t k = from; k < to; k++)
        do {
            OK(round_of(k));
            ck_assert_str_eq(last_words(), "");
        } while (turn.again);
}

static stepgraph_loop_stats stats_now(void)
{
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;

    OK(stepgraph_loop_get_stats(loop, &stats));
    return stats;
}

/* Until the first step is checked; its number. */
static uint64_t until_check(void)
{
    uint64_t k = 0;

    while (turn.kind != STEPGRAPH_TURN_CHECK)
        go(k, k + 1), k++;
    return k;
}

/* ---- noise ------------------------------------------------------------------------------------------------------- */

static float frozen_from, by;

/* The value of w's step is the kernel's own, and changes once. `out` counts how often the step was run, with KEEP_SCRATCH, and so never repeats itself. */
static void run_noisy(uint64_t k)
{
    add(scratch, 1);
    axpb(stream, stepgraph_pin_address(out), stepgraph_pin_address(scratch), 0);
    add(w, (float)k < frozen_from ? 1 : by);
}

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

static void feed_one(uint64_t k)
{
    (void)k;
    OK(stepgraph_pin_feed_f32(one, 1));
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

/* A batch that is normalised where it stands. */
static void run_on_input(uint64_t k)
{
    (void)k;
    add(x, 100);
    update(stream, stepgraph_pin_address(w), stepgraph_pin_address(w), stepgraph_pin_address(x), stepgraph_pin_address(one), 1);
}

static void feed_both(uint64_t k)
{
    OK(stepgraph_pin_feed_f32(x, (float)k));
    feed_one(k);
}

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

/* ---- rehearsals -------------------------------------------------------------------------------------------------- */

START_TEST(rehearsals_of_a_step_that_writes_inputs_are_refused)
{
    act(feed_both, run_on_input, w, NULL);
    zero();
    loop_make(STEPGRAPH_LOOP_RESTORE, 0);
    OK(round_of(0));
    ck_assert_int_eq(turn.again, 1);
    FAILS(STEPGRAPH_ERR_REFUSED, round_of(0), "writes pin 'x'", "STEPGRAPH_LOOP_RESTORE");
    ck_assert(pin_float(w) == 0);
}
END_TEST

static void run_plainly(uint64_t k)
{
    (void)k;
    update(stream, stepgraph_pin_address(w), stepgraph_pin_address(w), stepgraph_pin_address(x), stepgraph_pin_address(one), 1);
    add(out, 1);
}

/* 0: a step of its own in between; 1: the host writes a checkpoint; 2: it launches the step that was to be taken again. */
START_TEST(rehearsals_undo_no_more_than_they_did)
{
    float right[MOST][2], mine = 5;
    stepgraph_pin *other = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "other");

    act(feed_both, run_plainly, w, out);
    by_hand(8, right);
    loop_make(STEPGRAPH_LOOP_RESTORE, 0);
    OK(round_of(0));
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_REHEARSAL);
    ck_assert_int_eq(turn.again, 1);
    if (_i == 0)
        add(other, mine);
    else if (_i == 1)
        OK(stepgraph_pin_write(other, &mine, sizeof mine));
    turn.flags = _i == 2 ? STEPGRAPH_TURN_LAUNCH : 0;
    OK(round_of(0));
    turn.flags = 0;
    while (turn.again)
        OK(round_of(0));
    go(1, 8);
    check_right(right);
    ck_assert(pin_float(other) == (_i == 2 ? 0 : mine));
}
END_TEST

/* ---- turns beside turns ------------------------------------------------------------------------------------------ */

static stepgraph_loop *second;
static stepgraph_pin *v;

static stepgraph_loop *loop_of(uint32_t flags)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_loop *made;

    config.flags = flags | STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.executables = 1;
    OK(stepgraph_loop_create(session, &config, &made));
    return made;
}

static void teardown_second(void)
{
    stepgraph_loop_destroy(second);
    second = NULL;
}

/* What it does would be undone, or compared, with the step in whose turn it comes. 0: in a rehearsal; 1: in a launched turn. */
START_TEST(nothing_is_replayed_inside_a_turn_that_launches)
{
    stepgraph_turn other = STEPGRAPH_TURN_INIT;
    stepgraph_step *step = step_make(session, "by hand", 0);
    uint64_t k = 0;

    v = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "v");
    second = loop_of(0);
    for (; other.kind != STEPGRAPH_TURN_REPLAY; k++) {
        OK(stepgraph_loop_begin(second, k, &other));
        if (other.run)
            add(v, 1);
        OK(stepgraph_loop_end(second, &other));
    }
    begin_recording(step);
    add(v, 1);
    OK(stepgraph_step_end(step));
    loop_make(_i == 0 ? STEPGRAPH_LOOP_RESTORE : 0, 0);
    OK(stepgraph_loop_begin(loop, 0, &turn));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_begin(second, k, &other), "cannot be replayed", "call stepgraph_loop_end() first");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_replay(step), "'by hand' cannot be replayed", "call stepgraph_loop_end() first");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_run_begin(turn.step, STEPGRAPH_RUN_FRESH), "call stepgraph_loop_end() first");
    add(w, 1);
    OK(stepgraph_loop_end(loop, &turn));
    OK(stepgraph_loop_begin(second, k, &other));
    OK(stepgraph_loop_end(second, &other));
    ck_assert(pin_float(v) == (float)(k + 1));
}
END_TEST

/* 0: it was to record; 1: to check. */
START_TEST(refused_turn_holds_no_pins)
{
    stepgraph_turn other = STEPGRAPH_TURN_INIT;
    stepgraph_pin *free_pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4096, "free");

    v = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "v");
    second = loop_of(0);
    for (uint64_t k = 0; k < (_i == 0 ? 3 : 5); k++) {
        OK(stepgraph_loop_begin(second, k, &other));
        add(v, 1);
        OK(stepgraph_loop_end(second, &other));
    }
    loop_make(0, 0);
    OK(stepgraph_loop_begin(loop, 0, &turn));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_begin(second, _i == 0 ? 3 : 5, &other), "run of step 'loop' is open");
    add(w, 1);
    OK(stepgraph_loop_end(loop, &turn));
    OK(stepgraph_loop_cancel(second));
    drop_pin(free_pin);
}
END_TEST

/* The host fills the next step's batch on a stream of its own, while this one is checked. */
START_TEST(inputs_of_another_step_are_left_alone)
{
    CUdeviceptr memory = device_make(1 << 16);
    CUstream aside = stream_make(CU_STREAM_NON_BLOCKING);
    float *batch = NULL, now = 0;

    CU(MemAllocHost((void **)&batch, sizeof *batch));
    *batch = 42;
    (void)pin_adopt(session, STEPGRAPH_ROLE_FEED, memory, 4, "batch of the next step");
    loop_make(_i == 0 ? 0 : STEPGRAPH_LOOP_RESTORE, 0);
    for (uint64_t k = 0; k < 8; k++)
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.run) {
                add(w, 1);
                spin(stream, 10);
            }
            *batch += 1;
            spin(aside, 20);
            CU(MemcpyHtoDAsync(memory, batch, sizeof *batch, aside));
            OK(stepgraph_loop_end(loop, &turn));
            CU(StreamSynchronize(aside));
            CU(MemcpyDtoH(&now, memory, sizeof now));
            ck_assert(now == *batch);
        } while (turn.again);
    CU(MemFreeHost(batch));
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
}
END_TEST

/* ---- memory that goes -------------------------------------------------------------------------------------------- */

START_TEST(pins_stay_while_they_are_in_a_snapshot)
{
    stepgraph_pin *other = pin_make(session, STEPGRAPH_ROLE_STATE, 4096, "of another model");

    act(feed_both, run_plainly, w, NULL);
    zero();
    loop_make(_i == 0 ? 0 : STEPGRAPH_LOOP_RESTORE, 0);
    for (uint64_t k = 0; _i == 0 && k < 5; k++)
        go(k, k + 1);
    OK(stepgraph_loop_begin(loop, _i == 0 ? 5 : 0, &turn));
    ck_assert_uint_eq(turn.kind, _i == 0 ? STEPGRAPH_TURN_CHECK : STEPGRAPH_TURN_REHEARSAL);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_destroy(other), "of another model", "snapshot", "end or cancel the turn");
    OK(stepgraph_loop_cancel(loop));
    if (_i == 1) /* Nor is there one between rehearsals. */
        OK(round_of(0));
    ck_assert_int_eq(turn.again, _i);
    OK(stepgraph_pin_destroy(other));
    forget_pin(other);
}
END_TEST

/* Such as moments that the first step makes: the copy that will be put back knows nothing of them. */
START_TEST(states_are_not_made_in_a_run_that_is_undone)
{
    stepgraph_pin_config configs[] = {STEPGRAPH_PIN_CONFIG_INIT, STEPGRAPH_PIN_CONFIG_INIT};
    stepgraph_pin *made[2];

    configs[0].role = STEPGRAPH_ROLE_SCRATCH;
    configs[1].role = STEPGRAPH_ROLE_STATE;
    configs[0].bytes = configs[1].bytes = 4;
    configs[0].name = "workspace";
    configs[1].name = "moment";
    act(NULL, run_beside, w, out);
    loop_make(_i == 0 ? STEPGRAPH_LOOP_RESTORE : 0, 0);
    OK(stepgraph_loop_begin(loop, 0, &turn));
    if (_i == 0) {
        FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_create_many(session, 2, configs, made), "'moment'", "undone", "before");
        OK(stepgraph_pin_create_many(session, 1, configs, made));
        OK(stepgraph_pin_destroy(made[0]));
        OK(stepgraph_loop_cancel(loop));
    }
    OK(stepgraph_pin_create_many(session, 2, configs, made));
    OK(stepgraph_pin_destroy(made[0]));
    OK(stepgraph_pin_destroy(made[1]));
}
END_TEST

START_TEST(memory_that_is_gone_is_not_copied)
{
    CUdeviceptr memory = device_make(1 << 16);
    float right[MOST][2];

    (void)pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, 1 << 16, "of another model");
    act(feed_both, run_plainly, w, out);
    by_hand(30, right);
    loop_make(0, 5);
    go(0, 9);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    device_drop(memory);
    go(9, 30);
    check_right(right);
    OK(stepgraph_session_wait(session));
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    ck_assert_uint_gt(stats_now().checks_failed, 0);
    ck_assert_uint_gt(said("the memory of pin 'of another model'"), 0);
}
END_TEST

static void body_of_memory(void *address)
{
    inc(stream, *(CUdeviceptr *)address, 1);
}

static stepgraph_status enqueue_memory(void *address, stepgraph_step *step, uint64_t k)
{
    (void)step, (void)k;
    body_of_memory(address);
    return STEPGRAPH_OK;
}

/* 0: the memory of a pin; 1: memory that no pin covers. */
START_TEST(whatever_runs_a_graph_looks_at_its_memory_first)
{
    CUdeviceptr memory = device_make(1 << 16);
    stepgraph_step *step = step_make(session, "train", _i == 0 ? 0 : STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    stepgraph_check_config check = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_check *report = NULL;

    if (_i == 0)
        (void)pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, 1 << 16, "adopted");
    record(step, body_of_memory, &memory);
    replayed(step, 1);
    device_drop(memory);
    check.enqueue = enqueue_memory;
    check.user = &memory;
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_relax(step, NULL, NULL), "train", "freed");
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_check_run(step, &check, &report), "train", "freed");
    OK(stepgraph_session_wait(session));
}
END_TEST

/* ---- beside another session -------------------------------------------------------------------------------------- */

static stepgraph_session *beside;
static stepgraph_pin *weight_beside;
static bool escapes; /* A part of each step goes to another stream. */
static bool doubtful; /* Each step leaves something else in a large struct, and an address of the host's there, which no pin covers. */
static bool without_memory; /* No device memory to wait with, at the end of a check. */
static stepgraph_loop_stats stats_beside;
static stepgraph_status ended;
static char ended_words[1024];

static stepgraph_pin *out_beside;
static CUdeviceptr unpinned;

static void launch_large(uint64_t k)
{
    static struct {
        int words[1022];
    } large;
    CUdeviceptr to = stepgraph_pin_address(out_beside);

    large.words[500] = (int)k + 1;
    memcpy(&large.words[600], &unpinned, sizeof unpinned);
    (void)counted(beside, NULL, kernels.big4096, (void *[]){&to, &large});
}

static void *train_beside(void *context)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_turn own = STEPGRAPH_TURN_INIT;
    stepgraph_loop *made = NULL;
    CUstream aside = NULL;

    cu.CtxSetCurrent((CUcontext)context);
    cu.StreamCreate(&aside, CU_STREAM_NON_BLOCKING);
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK;
    ended = stepgraph_loop_create(beside, &config, &made);
    for (uint64_t k = 0; k < 12 && ended == STEPGRAPH_OK; k++)
        do {
            ended = stepgraph_loop_begin(made, k, &own);
            if (own.run) {
                counted_inc(beside, NULL, stepgraph_pin_address(weight_beside), 1);
                if (escapes)
                    (void)counted(beside, aside, kernels.nop, NULL);
                if (doubtful)
                    launch_large(k);
            }
            if (without_memory && own.kind == STEPGRAPH_TURN_CHECK)
                driver_fails("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
            if (ended == STEPGRAPH_OK)
                ended = stepgraph_loop_end(made, &own);
            no_driver_fails();
        } while (own.again && ended == STEPGRAPH_OK);
    snprintf(ended_words, sizeof ended_words, "%s", last_words());
    stats_beside = (stepgraph_loop_stats)STEPGRAPH_LOOP_STATS_INIT;
    (void)stepgraph_loop_get_stats(made, &stats_beside);
    stepgraph_loop_destroy(made);
    cu.StreamDestroy(aside);
    return NULL;
}

/* Whatever a loop waits for, the recording of another session, in another thread, goes on. 0, 1: in each mode; 2, 3: the loop waits for all streams, after
 * a step that escaped and around a check in doubt; 4: and has no device memory for that, so it does without the check. */
START_TEST(loops_break_no_recording_beside_them)
{
    stepgraph_step *step = step_make(session, "train", _i == 1 ? STEPGRAPH_STEP_GLOBAL : 0);
    pthread_t thread;

    beside = session_make(NULL);
    weight_beside = pin_make(beside, STEPGRAPH_ROLE_STATE, 4, "weight");
    escapes = _i == 2;
    doubtful = _i >= 3;
    without_memory = _i == 4;
    if (doubtful) {
        unpinned = device_make(256);
        out_beside = pin_make(beside, STEPGRAPH_ROLE_OUTPUT, 8, "out");
    }
    begin_recording(step);
    add(w, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, train_beside, stepgraph_session_context(beside)), 0);
    pthread_join(thread, NULL);
    add(w, 2);
    OK(stepgraph_step_end(step));
    replayed(step, 2);
    ck_assert(pin_float(w) == 6);
    ck_assert_msg(ended == STEPGRAPH_OK, "%s", ended_words);
    ck_assert(pin_float(weight_beside) == 12);
    if (_i == 2)
        ck_assert_uint_gt(stats_beside.recordings_failed, 0);
    if (doubtful)
        ck_assert_uint_gt(stats_beside.doubts, 0);
    if (_i == 3)
        ck_assert_uint_gt(stats_beside.checks, 0);
    if (_i == 4) {
        ck_assert_uint_eq(stats_beside.checks, 0);
        ck_assert_uint_gt(stats_beside.checks_failed, 0);
    }
}
END_TEST

/* A wait for all of one context breaks nothing in another. */
START_TEST(recording_in_another_context_is_no_hindrance)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_step *step = step_make(session, "train", 0);
    struct unit_kernels own = kernels, theirs;
    CUcontext another = NULL;
    pthread_t thread;

    CU(CtxCreate(&another, 0, 0)); /* And it is on top of the stack. */
    (void)kernels_load(&theirs);
    config.context = another;
    beside = session_make(&config);
    weight_beside = pin_make(beside, STEPGRAPH_ROLE_STATE, 4, "weight");
    CU(CtxPopCurrent(&another));
    escapes = true;
    doubtful = false;
    begin_recording(step);
    add(w, 1);
    kernels = theirs; /* Until the thread is over. */
    ck_assert_int_eq(pthread_create(&thread, NULL, train_beside, another), 0);
    pthread_join(thread, NULL);
    kernels = own;
    add(w, 2);
    OK(stepgraph_step_end(step));
    replayed(step, 2);
    ck_assert(pin_float(w) == 6);
    ck_assert_msg(ended == STEPGRAPH_OK, "%s", ended_words);
    ck_assert(pin_float(weight_beside) == 12);
    drop_pin(weight_beside);
    drop_session(beside);
    CU(CtxDestroy(another));
}
END_TEST

/* ---- turn.run ---------------------------------------------------------------------------------------------------- */

/* 0: launches are counted; 1: nobody counts them, and nobody can tell. */
START_TEST(host_that_launches_what_is_replayed_is_told)
{
    uint64_t k = 0;
    float before;

    zero();
    loop_make(0, 0);
    for (; turn.kind != STEPGRAPH_TURN_REPLAY; k++)
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.kind == STEPGRAPH_TURN_REPLAY)
                break;
            if (_i == 0)
                counted_inc(session, NULL, stepgraph_pin_address(w), 1);
            else
                add(w, 1);
            OK(stepgraph_loop_end(loop, &turn));
        } while (turn.again);
    k--;
    before = pin_float(w);
    ck_assert_int_eq(turn.run, 0);
    if (_i == 0) {
        counted_inc(session, NULL, stepgraph_pin_address(w), 1);
        FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_end(loop, &turn), "1 launches were counted in the turn of step", "only where turn.run is 1");
        ck_assert(pin_float(w) == before + 1); /* Done once, as it is. */
    } else {
        add(w, 1);
        OK(stepgraph_loop_end(loop, &turn));
    }
    before = pin_float(w);
    OK(stepgraph_loop_begin(loop, k + 1, &turn));
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert(pin_float(w) == before + 1);
}
END_TEST

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static void run_nothing(uint64_t k)
{
    (void)k;
}

/* A replay of no nodes, of which no time is known: whether others are worth a try is not to be divided by that. */
START_TEST(empty_graphs_are_not_tuned)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    act(NULL, run_nothing, w, NULL);
    config.flags = STEPGRAPH_LOOP_NO_CHECK | STEPGRAPH_LOOP_SOFTWARE_CLOCK | STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.step_flags = STEPGRAPH_STEP_ALLOW_EMPTY;
    OK(stepgraph_loop_create(session, &config, &loop));
    go(0, 5);
    driver_fails("cuEventRecord", 2, CUDA_ERROR_UNKNOWN);
    go(5, 40);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    ck_assert_uint_eq(stats_now().nodes, 0);
}
END_TEST

static bool drain_fails;
static unsigned rewound;

static stepgraph_status drain(void *user)
{
    (void)user;
    return drain_fails ? STEPGRAPH_ERR_STATE : STEPGRAPH_OK;
}

static void loop_with_drain(void)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_pin *made[] = {w, x, one, out, scratch};

    config.drain = drain;
    drain_fails = false;
    for (unsigned i = 0; i < sizeof made / sizeof *made; i++)
        drop_pin(made[i]);
    reopen(&config);
    w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    loop_make(0, 0);
}

/* Whatever a callback answers, a turn whose recording is over is over. */
START_TEST(failed_drain_ends_the_turn)
{
    loop_with_drain();
    for (uint64_t k = 0; k < 3; k++) {
        OK(stepgraph_loop_begin(loop, k, &turn));
        add(w, 1);
        OK(stepgraph_loop_end(loop, &turn));
    }
    OK(stepgraph_loop_begin(loop, 3, &turn));
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_RECORD);
    add(w, 1);
    drain_fails = true; /* Again and again, so what is held back may come yet. */
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_end(loop, &turn), "drain", "checkpoint");
    drain_fails = false;
    OK(stepgraph_loop_begin(loop, 3, &turn));
    add(w, 1);
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert(pin_float(w) == 4);
}
END_TEST

/* Also where a step that is done was to be looked at once more. */
START_TEST(failed_drain_ends_a_look)
{
    loop_with_drain();
    for (uint64_t k = 0; k < 8; k++)
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.run)
                add(w, (float)(k + 1));
            drain_fails = turn.kind == STEPGRAPH_TURN_LOOK;
            OK(stepgraph_loop_end(loop, &turn));
            drain_fails = false;
        } while (turn.again);
    ck_assert_uint_eq(stats_now().turns[STEPGRAPH_TURN_LOOK], 1);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_SCALAR);
    ck_assert(pin_float(w) == 36);
}
END_TEST

static stepgraph_status drop_in_rewind(void *unused, uint64_t k)
{
    (void)unused;
    (void)k;
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_drop(loop, STEPGRAPH_KEY_ALL, NULL), "is not over", "no graph can be dropped");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_begin(loop, 0, &(stepgraph_turn)STEPGRAPH_TURN_INIT), "is open");
    rewound++;
    return STEPGRAPH_OK;
}

static void run_by_value(uint64_t k)
{
    add(w, (float)(k + 1));
}

/* The third recording would be compared with two that are gone. */
START_TEST(rewinding_drops_no_graph)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    float right[MOST][2];

    act(NULL, run_by_value, w, NULL);
    by_hand(14, right);
    rewound = 0;
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.rewind = drop_in_rewind;
    OK(stepgraph_loop_create(session, &config, &loop));
    go(0, 14);
    check_right(right);
    ck_assert_uint_gt(rewound, 0);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_SCALAR);
}
END_TEST

/* Nor do callbacks end the turn that they are called in, or give it up. */
static void end_the_turn(void)
{
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_end(loop, &turn), "callback");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_cancel(loop), "callback");
    rewound++;
}

static stepgraph_status end_in_rewind(void *unused, uint64_t k)
{
    (void)unused;
    (void)k;
    end_the_turn();
    return STEPGRAPH_OK;
}

static stepgraph_status end_in_agree(void *unused, uint64_t k, uint64_t mine, uint64_t *largest_out)
{
    (void)unused;
    (void)k;
    end_the_turn();
    *largest_out = mine;
    return STEPGRAPH_OK;
}

START_TEST(callbacks_end_no_turn)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    float right[MOST][2];

    act(NULL, _i == 0 ? run_beside : run_by_value, w, NULL);
    by_hand(14, right);
    rewound = 0;
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK | STEPGRAPH_LOOP_RESTORE;
    config.rewind = end_in_rewind;
    config.agree = end_in_agree;
    OK(stepgraph_loop_create(session, &config, &loop));
    go(0, 14);
    check_right(right);
    ck_assert_uint_gt(rewound, 4);
    ck_assert_uint_eq(stats_now().cancelled, 0);
    ck_assert_uint_eq(stats_now().rung, _i == 0 ? STEPGRAPH_RUNG_REPLAY : STEPGRAPH_RUNG_RERECORD);
}
END_TEST

/* ---- driver calls that fail once ------------------------------------------------------------------------------------ */

static void feed_x(uint64_t k)
{
    OK(stepgraph_pin_feed_f32(x, (float)(k % 5 + 1)));
}

static void run_fed(uint64_t k)
{
    CUdeviceptr to = stepgraph_pin_address(w), from = stepgraph_pin_address(x), by_one = stepgraph_pin_address(one);

    (void)k;
    update(stream, to, to, from, by_one, 1);
    axpb(stream, stepgraph_pin_address(out), to, 1);
}

/* Whatever the end of a checked turn cannot do, the launches have done the step, and their results stay. */
START_TEST(call_that_fails_in_a_check_alters_no_state)
{
    static const char *const entries[] = {"cuLaunchKernel", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemsetD8Async", "cuGraphLaunch", "cuStreamSynchronize", "cuEventRecord"};
    const char *entry = entries[_i];
    float right[MOST][2];

    act(feed_x, run_fed, w, out);
    OK(stepgraph_pin_feed_f32(one, 1));
    by_hand(12, right);
    unit_leaves_objects(1);
    for (unsigned nth = 1; nth <= 16; nth++) {
        uint64_t k;
        stepgraph_status status;

        zero();
        turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
        loop_make(0, 0);
        k = until_check();
        OK(stepgraph_loop_begin(loop, k, &turn));
        ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_CHECK);
        feed_x(k);
        run_fed(k);
        driver_fails(entry, nth, CUDA_ERROR_OUT_OF_MEMORY);
        status = stepgraph_loop_end(loop, &turn);
        no_driver_fails();
        ck_assert_msg(status == STEPGRAPH_OK, "call %u: %s", nth, last_words());
        ck_assert_int_eq(turn.again, 0);
        go(k + 1, 12);
        check_right(right);
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
}
END_TEST

/* A rehearsal whose undoing fails once has left no trace, or is the step; where it fails again, the host is told. */
START_TEST(call_that_fails_while_a_rehearsal_is_undone_alters_no_state)
{
    static const char *const entries[] = {"cuLaunchKernel", "cuStreamSynchronize", "cuCtxPushCurrent"};
    const char *const entry = entries[_i % 3];
    const bool twice = _i >= 3;
    unsigned told = 0;
    float right[MOST][2];

    act(feed_x, run_fed, w, out);
    OK(stepgraph_pin_feed_f32(one, 1));
    by_hand(12, right);
    unit_leaves_objects(1);
    for (unsigned nth = 1; nth <= 4; nth++) {
        stepgraph_status status;
        bool spoiled;

        zero();
        turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
        loop_make(STEPGRAPH_LOOP_RESTORE, 0);
        OK(round_of(0));
        ck_assert_int_eq(turn.again, 1);
        OK(stepgraph_loop_begin(loop, 0, &turn));
        ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_REHEARSAL);
        run_fed(0);
        driver_fails(entry, nth, CUDA_ERROR_OUT_OF_MEMORY);
        if (twice)
            driver_fails(entry, nth + 1, CUDA_ERROR_OUT_OF_MEMORY);
        status = stepgraph_loop_end(loop, &turn);
        spoiled = status != STEPGRAPH_OK && strstr(last_words(), "checkpoint") != NULL;
        told += spoiled ? 1 : 0;
        no_driver_fails();
        if (status != STEPGRAPH_OK)
            OK(stepgraph_loop_cancel(loop));
        if (!spoiled) {
            go(status == STEPGRAPH_OK && !turn.again ? 1 : 0, 12);
            check_right(right);
        }
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
    ck_assert_int_eq(told > 0, twice);
}
END_TEST

/* A relaxed graph goes back to its recording first, whatever the cause; how far the host has to go back is told all the same. */
static void run_beside_at_a_rate(uint64_t k)
{
    add(w, k < 14 ? 1 : 0.5f);
    add(out, 1);
}

START_TEST(relaxed_replays_that_may_have_been_wrong_are_told)
{
    stepgraph_relax_config relax = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    act(NULL, run_beside_at_a_rate, w, out);
    relax.lanes = 2;
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.check_steps = config.executables = 1;
    config.check_every = 5;
    config.relax = &relax;
    OK(stepgraph_loop_create(session, &config, &loop));
    go(0, 20);
    ck_assert_uint_eq(stats_now().relax_diverged, 1);
    ck_assert_uint_eq(stats_now().checks_diverged, 2);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_DIVERGED);
    ck_assert_msg(strstr(stats_now().words, "all was right at step 12, and 5 replays since then may have been wrong") != NULL, "%s", stats_now().words);
}
END_TEST

/* To find out what it takes relaxed a step is run, and what that leaves is put back, at the second try if one call fails; where it cannot be, the turn
 * says so. */
START_TEST(relaxing_that_cannot_be_undone_is_told)
{
    const bool check = _i < 2, twice = _i % 2 != 0;
    stepgraph_relax_config relax = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    unsigned told = 0;
    float right[MOST][2];

    act(NULL, run_beside, w, out);
    by_hand(12, right);
    unit_leaves_objects(1);
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK | (check ? 0 : STEPGRAPH_LOOP_NO_CHECK);
    config.warmup_runs = config.check_steps = 1;
    config.executables = 1;
    config.relax = &relax;
    for (unsigned nth = 1; nth <= 60; nth++) {
        stepgraph_status status;
        uint64_t k = check ? 3 : 2;

        zero();
        turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
        OK(stepgraph_loop_create(session, &config, &loop));
        go(0, k);
        OK(stepgraph_loop_begin(loop, k, &turn));
        ck_assert_uint_eq(turn.kind, check ? STEPGRAPH_TURN_CHECK : STEPGRAPH_TURN_RECORD);
        run_beside(k);
        driver_fails("cuLaunchKernel", nth, CUDA_ERROR_UNKNOWN);
        if (twice)
            driver_fails("cuLaunchKernel", nth + 1, CUDA_ERROR_UNKNOWN);
        status = stepgraph_loop_end(loop, &turn);
        no_driver_fails();
        if (status != STEPGRAPH_OK) {
            ck_assert_int_eq(status, STEPGRAPH_ERR_DRIVER);
            ck_assert_msg(strstr(last_words(), "checkpoint") != NULL, "call %u: %s", nth, last_words());
            told++;
        } else {
            go(turn.again ? k : k + 1, 12);
            check_right(right);
        }
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
    ck_assert_int_eq(told > 0, twice);
}
END_TEST

/* What a check is to begin with cannot be saved: the step is launched all the same. */
START_TEST(check_that_cannot_begin_ends_no_turn)
{
    static const int codes[] = {CUDA_ERROR_UNKNOWN, CUDA_ERROR_OUT_OF_MEMORY};
    float right[MOST][2];
    uint64_t k;

    act(feed_x, run_fed, w, out);
    OK(stepgraph_pin_feed_f32(one, 1));
    by_hand(40, right);
    unit_leaves_objects(1);
    loop_make(0, 4);
    for (k = 0; k < 20 || turn.kind != STEPGRAPH_TURN_CHECK; k++)
        go(k, k + 1);
    go(k, k + 4);
    k += 4;
    driver_fails("cuLaunchKernel", 1, codes[_i]);
    OK(stepgraph_loop_begin(loop, k, &turn));
    no_driver_fails();
    if (turn.feed)
        feed_x(k);
    if (turn.run)
        run_fed(k);
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert_uint_eq(stats_now().checks_failed, 1);
    go(k + 1, 40);
    check_right(right);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
}
END_TEST

/* All that hosts do, in an order that is drawn: keys that share pins, steps launched on purpose, turns given up before and after their first round, drops, driver calls of
 * the loop's that fail. A turn is told of as not done only if it is not. */
START_TEST(steps_in_any_order_leave_what_they_leave_without_a_loop)
{
    static const char *const entries[] = {"cuLaunchKernel", "cuGraphLaunch", "cuMemcpyHtoDAsync", "cuStreamBeginCapture", "cuGraphExecUpdate", "cuStreamSynchronize", "cuGraphInstantiateWithParams"};
    uint64_t seed = 77 + (uint64_t)_i;
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    float want = 0, most = 1 << 22;

    act(feed_x, run_fed, w, out);
    OK(stepgraph_pin_feed_f32(one, 1));
    zero();
    unit_leaves_objects(1);
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK | (_i % 2 ? STEPGRAPH_LOOP_RESTORE : 0) | (_i % 3 == 1 ? STEPGRAPH_LOOP_ALLOW_UNPROVEN : 0) | (_i % 5 == 1 ? STEPGRAPH_LOOP_TRACE : 0) |
                   (_i % 4 == 1 ? STEPGRAPH_LOOP_SOFTWARE_CLOCK : 0);
    config.step_flags = _i % 7 == 1 ? STEPGRAPH_STEP_STRICT_FEEDS : 0;
    config.check_every = 1 + unit_random(&seed) % 6;
    config.fresh_every = unit_random(&seed) % 9;
    config.max_graphs = 3;
    config.executables = 3;
    OK(stepgraph_loop_create(session, &config, &loop));
    for (uint64_t k = 0; k < 300; k++) {
        uint32_t what = unit_random(&seed) % 40, key = unit_random(&seed) % 16 < 14 ? (uint32_t)(k / 40 % 3) : unit_random(&seed) % 4, nth = 1 + unit_random(&seed) % 6;
        const char *entry = entries[unit_random(&seed) % (sizeof entries / sizeof *entries)];
        bool fails = what < 3, told = false;

        turn.key = key;
        turn.flags = (what == 4 ? STEPGRAPH_TURN_LAUNCH : 0) | (what % 2 ? STEPGRAPH_TURN_KEEPS_NOTHING : 0);
        if (what == 5)
            OK(stepgraph_loop_drop(loop, key, NULL));
        for (int round = 0; round < 12; round++) {
            unsigned long before = driver_calls(entry), done;
            stepgraph_status status;
            if (fails)
                driver_fails(entry, nth, CUDA_ERROR_OUT_OF_MEMORY);
            status = stepgraph_loop_begin(loop, k, &turn);
            no_driver_fails();
            done = driver_calls(entry) - before;
            fails = fails && done < nth;
            nth -= fails ? (unsigned)done : 0;
            if (status == STEPGRAPH_OK) {
                if (what == 6 && round == 0) {
                    OK(stepgraph_loop_cancel(loop));
                    continue;
                }
                if (turn.feed)
                    feed_x(k);
                if (turn.run && key == 2)
                    add(w, (float)(k % 7 + 1));
                if (turn.run)
                    run_fed(k);
                before = driver_calls(entry);
                if (fails)
                    driver_fails(entry, nth, CUDA_ERROR_OUT_OF_MEMORY);
                status = stepgraph_loop_end(loop, &turn);
                no_driver_fails();
                done = driver_calls(entry) - before;
                fails = fails && done < nth;
                nth -= fails ? (unsigned)done : 0;
            }
            if (status == STEPGRAPH_OK && !turn.again)
                break;
            if (status == STEPGRAPH_OK && what == 7) {
                OK(stepgraph_loop_cancel(loop));
                if (stats_now().steps == k + 1) /* It was only to be looked at. */
                    break;
            }
            if (status != STEPGRAPH_OK) {
                ck_assert_msg(!told, "step %llu: %s", (unsigned long long)k, last_words());
                told = true;
                OK(stepgraph_loop_cancel(loop));
            }
        }
        want += (float)(k % 5 + 1) + (key == 2 ? (float)(k % 7 + 1) : 0);
        ck_assert(want < most);
        ck_assert_msg(pin_float(w) == want, "step %llu, key %u, kind %u, what %u, %s: %g, not %g; %s", (unsigned long long)k, key, turn.kind, what, entry, pin_float(w), want, stats_now().words);
        ck_assert(pin_float(out) == want + 1);
        ck_assert_uint_eq(stats_now().steps, k + 1);
    }
}
END_TEST

/* An error means that the step is not done: where only its measuring has failed, there is none. */
START_TEST(measuring_that_fails_leaves_no_step_done_twice)
{
    static const char *const entries[] = {"cuEventElapsedTime", "cuEventQuery", "cuEventRecord", "cuEventCreate", "cuCtxPushCurrent"};
    float right[MOST][2];

    act(feed_x, run_fed, w, out);
    OK(stepgraph_pin_feed_f32(one, 1));
    by_hand(40, right);
    unit_leaves_objects(1);
    for (unsigned nth = 1; nth <= 24; nth++) {
        unsigned long before;
        unsigned left = nth;

        zero();
        turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
        loop_make(0, 0);
        for (uint64_t k = 0, rounds = 0; k < 40 && rounds < 90; rounds++) {
            stepgraph_status status = stepgraph_loop_begin(loop, k, &turn);
            if (status == STEPGRAPH_OK) {
                if (turn.feed)
                    feed_x(k);
                if (turn.run)
                    run_fed(k);
                before = driver_calls(entries[_i]);
                if (k >= 3 && left > 0)
                    driver_fails(entries[_i], left, CUDA_ERROR_OUT_OF_MEMORY);
                status = stepgraph_loop_end(loop, &turn);
                no_driver_fails();
                before = driver_calls(entries[_i]) - before;
                left = k < 3 ? nth : before < left ? left - (unsigned)before : 0;
            }
            k += status == STEPGRAPH_OK && !turn.again ? 1 : 0;
        }
        ck_assert_msg(stats_now().steps == 40, "call %u: %llu steps", nth, (unsigned long long)stats_now().steps);
        ck_assert_msg(pin_float(w) == right[0][0], "call %u: %g, not %g", nth, pin_float(w), right[0][0]);
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
}
END_TEST

/* An open turn is cancelled. */
START_TEST(rehearsal_leaves_no_trace_when_its_loop_is_destroyed)
{
    loop_make(STEPGRAPH_LOOP_RESTORE, 0);
    OK(stepgraph_loop_begin(loop, 0, &turn));
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_REHEARSAL);
    add(w, 1);
    stepgraph_loop_destroy(loop);
    loop = NULL;
    ck_assert(pin_float(w) == 0);
}
END_TEST

/* What is on a side stream that was not joined comes late. 1: the loop is destroyed. */
START_TEST(rehearsal_that_is_given_up_waits_for_its_side_streams)
{
    CUstream aside = stream_make(CU_STREAM_NON_BLOCKING);

    loop_make(STEPGRAPH_LOOP_RESTORE, 0);
    OK(stepgraph_loop_begin(loop, 0, &turn));
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_REHEARSAL);
    OK(stepgraph_step_fork(turn.step, aside, "aside"));
    spin(aside, 30);
    inc(aside, stepgraph_pin_address(w), 1);
    if (_i == 0) {
        OK(stepgraph_loop_cancel(loop));
    } else {
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
    CU(StreamSynchronize(aside));
    ck_assert(pin_float(w) == 0);
}
END_TEST

/* ---- callbacks that fail --------------------------------------------------------------------------------------------- */

static stepgraph_status fail_to_rewind(void *unused, uint64_t k)
{
    (void)unused;
    (void)k;
    rewound++;
    return STEPGRAPH_ERR_MEMORY;
}

/* An error means that the step is not done. A step that was to be looked at is. */
START_TEST(rewinding_that_fails_leaves_no_step_done_twice)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    float right[MOST][2];

    act(NULL, run_by_value, w, NULL);
    by_hand(14, right);
    rewound = 0;
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.rewind = fail_to_rewind;
    OK(stepgraph_loop_create(session, &config, &loop));
    for (uint64_t k = 0, rounds = 0; k < 14 && rounds < 40; rounds++) {
        stepgraph_status status = round_of(k);
        k += status == STEPGRAPH_OK && !turn.again ? 1 : 0;
    }
    ck_assert_uint_eq(rewound, 1);
    check_right(right);
    ck_assert_uint_eq(stats_now().steps, 14);
}
END_TEST

/* What the two recordings show decides where there is no third one: 0, it is given up; 1, it does not begin; 2, it breaks. */
START_TEST(two_recordings_decide_without_a_third)
{
    float right[MOST][2];
    uint64_t k = 0;

    act(NULL, run_by_value, w, NULL);
    by_hand(14, right);
    unit_leaves_objects(1);
    loop_make(0, 0);
    while (!turn.again) {
        OK(round_of(k));
        k += turn.again ? 0 : 1;
    }
    ck_assert_uint_eq(stats_now().steps, k + 1);
    if (_i == 1)
        driver_fails("cuStreamBeginCapture", 1, CUDA_ERROR_OUT_OF_MEMORY);
    if (_i > 0) {
        OK(stepgraph_loop_begin(loop, k, &turn));
        no_driver_fails();
        ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_LOOK);
        if (turn.run)
            run_by_value(k);
        if (_i == 2)
            (void)cu.StreamSynchronize(stream);
        OK(stepgraph_loop_end(loop, &turn));
        ck_assert_int_eq(turn.again, 0);
    } else {
        OK(stepgraph_loop_cancel(loop));
    }
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_SCALAR);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_RERECORD);
    go(k + 1, 14);
    check_right(right);
    ck_assert_uint_eq(stats_now().steps, 14);
}
END_TEST

static unsigned refused_drops;

static stepgraph_status drop_in_enqueue(void *unused, stepgraph_step *step, uint64_t k)
{
    (void)unused;
    (void)step;
    refused_drops += stepgraph_loop_drop(loop, STEPGRAPH_KEY_ALL, NULL) == STEPGRAPH_ERR_STATE ? 1 : 0;
    scene.run(k);
    return STEPGRAPH_OK;
}

/* Nor does a check by callbacks. */
START_TEST(checking_by_callbacks_drops_no_graph)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_check_config by_callbacks = STEPGRAPH_CHECK_CONFIG_INIT;
    float right[MOST][2];

    act(NULL, run_noisy, w, NULL);
    frozen_from = 100;
    by_hand(12, right);
    refused_drops = 0;
    by_callbacks.enqueue = drop_in_enqueue;
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK | STEPGRAPH_LOOP_KEEP_SCRATCH;
    config.check = &by_callbacks;
    OK(stepgraph_loop_create(session, &config, &loop));
    go(0, 12);
    ck_assert_uint_gt(refused_drops, 0);
    check_right(right);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

static void run_one(uint64_t k)
{
    (void)k;
    add(w, 1);
}

static void run_refused(uint64_t k)
{
    (void)k;
    add(w, 1);
    (void)cu.StreamSynchronize(stream);
}

/* A key that has no graph gives none up: the longest idle one that has does. */
START_TEST(room_is_made_by_a_key_that_has_a_graph)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    uint64_t k = 0;

    act(NULL, run_one, w, NULL);
    loop_make(STEPGRAPH_LOOP_NO_CHECK, 0);
    go(0, 6);
    config.graph_bytes = stats_now().device_bytes;
    ck_assert_uint_gt(config.graph_bytes, 0);
    stepgraph_loop_destroy(loop);
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK | STEPGRAPH_LOOP_NO_CHECK;
    config.max_graphs = 3;
    config.executables = 1;
    OK(stepgraph_loop_create(session, &config, &loop));
    turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
    scene.run = run_refused;
    turn.key = 1;
    go(0, 4), k = 4;
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_FRESH);
    scene.run = run_one;
    turn.key = 2;
    go(k, k + 20), k += 20;
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    turn.key = 3;
    go(k, k + 120), k += 120;
    ck_assert_msg(stats_now().rung == STEPGRAPH_RUNG_REPLAY, "rung %u, why %u, %s, %llu dropped", stats_now().rung, stats_now().why, stats_now().words, (unsigned long long)stats_now().graphs_dropped);
    ck_assert_uint_eq(stats_now().graphs_dropped, 1);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop_checks");
    TCase *tc = unit_case(suite, "checks"), *beside_turns = unit_case(suite, "turns beside turns");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_checked_fixture(beside_turns, setup, teardown);
    tcase_add_checked_fixture(beside_turns, NULL, teardown_second);
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
    tcase_add_test(tc, rehearsals_of_a_step_that_writes_inputs_are_refused);
    tcase_add_loop_test(tc, rehearsals_undo_no_more_than_they_did, 0, 3);
    tcase_add_loop_test(beside_turns, nothing_is_replayed_inside_a_turn_that_launches, 0, 2);
    tcase_add_loop_test(beside_turns, refused_turn_holds_no_pins, 0, 2);
    tcase_add_loop_test(beside_turns, inputs_of_another_step_are_left_alone, 0, 2);
    tcase_add_loop_test(tc, pins_stay_while_they_are_in_a_snapshot, 0, 2);
    tcase_add_loop_test(tc, states_are_not_made_in_a_run_that_is_undone, 0, 2);
    tcase_add_test(tc, memory_that_is_gone_is_not_copied);
    tcase_add_loop_test(tc, host_that_launches_what_is_replayed_is_told, 0, 2);
    tcase_add_loop_test(tc, whatever_runs_a_graph_looks_at_its_memory_first, 0, 2);
    tcase_add_loop_test(tc, loops_break_no_recording_beside_them, 0, 4);
    add_controlled_loop_test(tc, loops_break_no_recording_beside_them, 4, 5);
    tcase_add_test(tc, recording_in_another_context_is_no_hindrance);
    add_controlled_test(tc, empty_graphs_are_not_tuned);
    tcase_add_test(tc, failed_drain_ends_the_turn);
    tcase_add_test(tc, failed_drain_ends_a_look);
    tcase_add_test(tc, rewinding_drops_no_graph);
    tcase_add_loop_test(tc, callbacks_end_no_turn, 0, 2);
    add_controlled_loop_test(tc, call_that_fails_in_a_check_alters_no_state, 0, 7);
    add_controlled_loop_test(tc, call_that_fails_while_a_rehearsal_is_undone_alters_no_state, 0, 6);
    tcase_add_test(tc, relaxed_replays_that_may_have_been_wrong_are_told);
    add_controlled_loop_test(tc, relaxing_that_cannot_be_undone_is_told, 0, 4);
    add_controlled_loop_test(tc, check_that_cannot_begin_ends_no_turn, 0, 2);
    add_controlled_loop_test(tc, steps_in_any_order_leave_what_they_leave_without_a_loop, 0, 60);
    add_controlled_loop_test(tc, measuring_that_fails_leaves_no_step_done_twice, 0, 5);
    tcase_add_test(tc, rehearsal_leaves_no_trace_when_its_loop_is_destroyed);
    tcase_add_loop_test(tc, rehearsal_that_is_given_up_waits_for_its_side_streams, 0, 2);
    tcase_add_test(tc, rewinding_that_fails_leaves_no_step_done_twice);
    add_controlled_loop_test(tc, two_recordings_decide_without_a_third, 0, 3);
    tcase_add_test(tc, checking_by_callbacks_drops_no_graph);
    tcase_add_test(tc, room_is_made_by_a_key_that_has_a_graph);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
