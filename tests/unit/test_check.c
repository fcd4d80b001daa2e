/*
 * The checker: what it says of steps that are right, and of every fault that it exists for. The same program runs on cusim and on a card.
 *
 * check_mutants.py takes each part of the checker out and sees these tests, or those of test_check_hosts, fail.
 */
#include "trainer.h"

#include <ctype.h>
#include <time.h>

static CUdeviceptr bad;

static stepgraph_status feed_more(void *user, stepgraph_step *step, uint64_t k)
{
    int index = (int)(k % N);

    if (t.unread)
        OK(stepgraph_pin_feed_u32(t.unread, (uint32_t)k));
    if (t.index_pin)
        OK(stepgraph_pin_feed(t.index_pin, &index, sizeof index));
    if (t.untyped_cell)
        OK(stepgraph_pin_feed_u32(t.untyped_cell, 5));
    return feed(user, step, k);
}

static int32_t progress(void *user, const char *phase, uint64_t done, uint64_t total)
{
    ck_assert_ptr_eq(user, &t);
    ck_assert_ptr_nonnull(phase);
    ck_assert_uint_le(done, total);
    ck_assert_uint_eq(done, t.progress_calls + 1);
    t.progress_calls++;
    return t.stop_at && t.progress_calls >= t.stop_at;
}

static void search_named(uint32_t node, const char *name)
{
    ck_assert_msg(t.summary.search == STEPGRAPH_SEARCH_FOUND, "%s", stepgraph_check_text(t.check));
    ck_assert_str_eq(t.summary.node_name, name);
    ck_assert_uint_eq(t.summary.node, node);
}

static void replayed_once_more(uint64_t k)
{
    OK(feed(NULL, NULL, k));
    replayed(t.step, 1);
}

/* What so many steps from the first make of w, and the x that the last was fed. */
static void expect_steps(uint64_t steps, float *w, float *x)
{
    bytes_at(stepgraph_pin_address(t.w), w, N * sizeof *w);
    for (uint64_t k = 10; k < 10 + steps; k++) {
        fill_x(k, x);
        for (int i = 0; i < N; i++)
            w[i] = w[i] + 0.5f * x[i];
    }
}

/* ---- right ------------------------------------------------------------------------------------------------------- */

START_TEST(right_step_is_identical)
{
    recorded();
    checked_as(STEPGRAPH_IDENTICAL);
    ck_assert_uint_eq(t.summary.steps, 3);
    ck_assert_uint_eq(t.summary.pins, 4);
    ck_assert_uint_eq(t.summary.bytes, 2 * N * 4 + 8);
    ck_assert_uint_eq(t.summary.every_step, 1);
    ck_assert_uint_eq(t.summary.planted, 1);
    ck_assert_uint_eq(t.summary.planted_seen, 1);
    ck_assert_uint_eq(t.summary.inputs, 2);
    ck_assert_uint_eq(t.summary.inputs_seen, 2);
    ck_assert_uint_eq(t.summary.inputs_untried, 0);
    ck_assert_uint_eq(t.summary.bad_step, UINT64_MAX);
    ck_assert_uint_eq(t.summary.search, STEPGRAPH_SEARCH_NONE);
    ck_assert_uint_eq(t.enqueues, 8); /* Two of them from altered beginnings. */
    ck_assert_uint_eq(t.summary.software, (unsigned)unit_has_controls());
    SAYS("IDENTICAL", "check of 'train'", "steps 10 to 12", "2 of 2 altered inputs seen");
}
END_TEST

/* Everything is as before: the state, the feeds on both sides, the output, the counts. */
START_TEST(check_leaves_no_trace)
{
    float before[N], after[N], x[N], out = 0;
    stepgraph_step_stats was, is;

    recorded();
    t.unread = typed(STEPGRAPH_ROLE_FEED, 4, "unread", STEPGRAPH_TYPE_U32);
    OK(feed(NULL, NULL, 99)); /* Waits to be sent. */
    OK(stepgraph_pin_feed_f32(t.rate, 0.125f)); /* No step of the check's feeds this. */
    put_float(stepgraph_pin_address(t.loss), 123.0f);
    bytes_at(stepgraph_pin_address(t.w), before, sizeof before);
    was = step_stats(t.step);
    checked_as(STEPGRAPH_IDENTICAL);
    bytes_at(stepgraph_pin_address(t.w), after, sizeof after);
    ck_assert_mem_eq(before, after, sizeof before);
    fill_x(99, x);
    bytes_at(stepgraph_pin_address(t.x), after, sizeof after);
    ck_assert_mem_eq(x, after, sizeof x);
    ck_assert_float_eq(float_at(stepgraph_pin_address(t.loss)), 123.0f);
    is = step_stats(t.step);
    ck_assert_mem_eq(&was, &is, sizeof was);
    ck_assert_uint_eq(is.captured_not_run, 1);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_read(t.loss, &out, 4), "has not run");

    /* The host's side of the feeds too: what lies between two that are fed travels along with them, as it was. */
    ck_assert_float_eq(pin_float(t.rate), 0.125f);
    ck_assert(stepgraph_pin_address(t.x) < stepgraph_pin_address(t.rate) && stepgraph_pin_address(t.rate) < stepgraph_pin_address(t.unread));
    OK(stepgraph_pin_feed(t.x, x, sizeof x));
    OK(stepgraph_pin_feed_u32(t.unread, 1));
    OK(stepgraph_session_flush(session));
    ck_assert_float_eq(pin_float(t.rate), 0.125f);
    ck_assert_uint_eq(t.counter_now, 10);
}
END_TEST

START_TEST(advancing_check_does_the_steps)
{
    float expected[N], got[N], x[N];

    recorded();
    expect_steps((uint64_t)_i, expected, x);
    t.config.flags = STEPGRAPH_CHECK_ADVANCE;
    t.config.steps = (uint32_t)_i;
    checked_as(STEPGRAPH_IDENTICAL);
    bytes_at(stepgraph_pin_address(t.w), got, sizeof got);
    ck_assert_mem_eq(expected, got, sizeof got);
    ck_assert_float_eq(pin_float(t.loss), expected[0]);
    ck_assert_uint_eq(step_stats(t.step).fresh_runs, (unsigned)_i);
    ck_assert_uint_eq(step_stats(t.step).captured_not_run, 0);
    ck_assert_uint_eq(t.counter_now, 10 + (unsigned)_i);
    replayed_once_more(13);
}
END_TEST

/* The steps are done, or none is: whichever of the last callbacks fails. */
static unsigned last_rewind, last_enqueue;
static stepgraph_status rewind_or_fail(void *user, uint64_t k)
{
    return t.rewinds + 1 == last_rewind ? STEPGRAPH_ERR_UNSUPPORTED : rewind_to(user, k);
}
static stepgraph_status enqueue_or_fail(void *user, stepgraph_step *step, uint64_t k)
{
    return last_enqueue > 0 && t.enqueues + 1 >= last_enqueue && k == 12 ? STEPGRAPH_ERR_UNSUPPORTED : enqueue(user, step, k);
}

START_TEST(advancing_check_that_fails_at_its_end_does_no_step)
{
    float before[N], after[N];

    recorded();
    bytes_at(stepgraph_pin_address(t.w), before, sizeof before);
    t.config.flags = STEPGRAPH_CHECK_ADVANCE;
    t.config.rewind = rewind_or_fail;
    t.config.enqueue = enqueue_or_fail;
    t.config.device_bytes = 2400; /* The last step has to be done once more. */
    t.config.host_bytes = 1;
    for (int round = 0; round < 2; round++) {
        const unsigned enqueues = t.enqueues, rewinds = t.rewinds;
        last_enqueue = round == 1 && _i == 0 ? enqueues : 0;
        last_rewind = round == 1 && _i == 1 ? rewinds : 0;
        t.enqueues = t.rewinds = 0;
        if (round == 0) { /* To count them. */
            checked_as(STEPGRAPH_IDENTICAL);
            ck_assert_uint_eq(t.summary.every_step, 0);
            put_bytes(stepgraph_pin_address(t.w), before, sizeof before);
        }
    }
    FAILS(STEPGRAPH_ERR_UNSUPPORTED, stepgraph_check_run(t.step, &t.config, &t.check), _i == 0 ? "enqueue callback" : "rewind callback");
    bytes_at(stepgraph_pin_address(t.w), after, sizeof after);
    ck_assert_mem_eq(before, after, sizeof before);
    ck_assert_uint_eq(step_stats(t.step).fresh_runs, 3); /* Those of the check that went well. */
    ck_assert_uint_eq(t.counter_now, 10);
}
END_TEST

START_TEST(advancing_past_a_wrong_graph_takes_the_right_step)
{
    float expected[N], got[N], x[N];

    t.skip_commit = 1;
    recorded();
    expect_steps((uint64_t)_i, expected, x);
    t.config.flags = STEPGRAPH_CHECK_ADVANCE;
    t.config.steps = (uint32_t)_i;
    t.config.device_bytes = _i == 3 ? 3000 : 0; /* Room for two snapshots only. */
    t.config.host_bytes = _i == 3 ? 1 : 0;
    checked_as(STEPGRAPH_DIVERGED);
    bytes_at(stepgraph_pin_address(t.w), got, sizeof got);
    ck_assert_mem_eq(expected, got, sizeof got);
    bytes_at(stepgraph_pin_address(t.x), got, sizeof got);
    ck_assert_mem_eq(x, got, sizeof got);
}
END_TEST

START_TEST(strict_feeds_are_no_obstacle)
{
    recorded_with(STEPGRAPH_STEP_STRICT_FEEDS);
    OK(feed(NULL, NULL, 10));
    checked_as(STEPGRAPH_IDENTICAL);
    /* The feed before the check still counts; a second replay without one does not pass. */
    OK(stepgraph_step_replay(t.step));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(t.step), "was not fed");
}
END_TEST

/* An input that is fed only when it changes begins each time as it was, on the device; and on the host, from where it travels along with its
 * neighbours. */
START_TEST(input_that_is_not_fed_begins_as_it_was)
{
    float rate;

    t.config.feed = _i ? feed_more : feed;
    t.unread = _i ? typed(STEPGRAPH_ROLE_FEED, 4, "unread", STEPGRAPH_TYPE_U32) : NULL;
    recorded();
    t.rate_once = 1;
    checked_as(STEPGRAPH_IDENTICAL);
    OK(t.config.feed(NULL, NULL, 13));
    OK(stepgraph_session_flush(session));
    bytes_at(stepgraph_pin_address(t.rate), &rate, sizeof rate);
    ck_assert_float_eq(rate, 0.5f);
}
END_TEST

START_TEST(output_that_looks_like_the_filling_is_written)
{
    t.ones = 1;
    recorded();
    checked_as(STEPGRAPH_IDENTICAL);
    NO_FACT("loss", STEPGRAPH_CHECK_UNWRITTEN);
}
END_TEST

START_TEST(host_state_comes_back_through_rewind)
{
    t.host_counter = 1;
    t.counter_now = 10;
    recorded();
    checked();
    /* The counter is baked into the graph: the first step is right, the second is not. */
    VERDICT(STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(t.summary.pins_unsteady, 0);
    ck_assert_uint_eq(t.summary.bad_step, 11);
    ck_assert_uint_eq(t.counter_now, 10);
}
END_TEST

START_TEST(host_state_without_rewind_is_inconclusive)
{
    t.host_counter = 1;
    t.counter_now = 10;
    t.config.rewind = NULL;
    recorded();
    checked();
    ck_assert_uint_gt(t.summary.pins_unsteady, 0);
    ck_assert_uint_ne(t.summary.verdict, STEPGRAPH_IDENTICAL);
}
END_TEST

START_TEST(timing_is_left_alone)
{
    stepgraph_verdict before = STEPGRAPH_VERDICT_INIT, after = STEPGRAPH_VERDICT_INIT;

    recorded();
    OK(stepgraph_step_set_timing(t.step, 1));
    OK(stepgraph_step_get_verdict(t.step, &before));
    checked();
    OK(stepgraph_step_get_verdict(t.step, &after));
    ck_assert_uint_eq(after.warm_runs, before.warm_runs);
    ck_assert_uint_eq(after.timed_replays, before.timed_replays);
    OK(feed(NULL, NULL, 10));
    OK(stepgraph_step_replay(t.step));
    OK(stepgraph_step_get_verdict(t.step, &after));
    ck_assert_uint_eq(after.timed_replays, before.timed_replays + 1);
}
END_TEST

START_TEST(progress_is_told_and_can_stop)
{
    float before[N], after[N];

    recorded();
    bytes_at(stepgraph_pin_address(t.w), before, sizeof before);
    t.config.progress = progress;
    checked();
    ck_assert_uint_gt(t.progress_calls, 12);
    stepgraph_check_destroy(t.check);
    t.check = NULL;
    for (unsigned stop = 1; stop < 17; stop += 3) {
        t.progress_calls = 0;
        t.stop_at = stop;
        FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_check_run(t.step, &t.config, &t.check), "stopped by its progress callback");
        ck_assert_ptr_null(t.check);
        bytes_at(stepgraph_pin_address(t.w), after, sizeof after);
        ck_assert_mem_eq(before, after, sizeof before);
        ck_assert_uint_eq(step_stats(t.step).replays, 0);
    }
}
END_TEST

/* ---- wrong ------------------------------------------------------------------------------------------------------- */

START_TEST(k03_stale_pointer_diverges_at_the_second_step)
{
    stepgraph_check_pin w;

    t.stale = 1;
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    /* The first replay is right: what was left behind still holds the same. */
    ck_assert_uint_eq(t.summary.bad_step, 11);
    w = about("w");
    ck_assert_uint_eq(w.fault, 1);
    ck_assert_uint_eq(w.step, 11);
    ck_assert_uint_eq(w.type, STEPGRAPH_TYPE_F32);
    ck_assert_uint_gt(w.elements_differ, 40);
    ck_assert_uint_gt(w.ulps, 1000);
    ck_assert_uint_gt(w.bytes_differ, w.elements_differ);
    ck_assert_double_ne(w.fresh, w.replay);
    SAYS("DIVERGED", "state 'w'", "after step 11", "fresh", "replayed", "ulps");
    FACT("loss", STEPGRAPH_CHECK_DIFFERS);
}
END_TEST

START_TEST(k03_first_differing_element_has_both_values)
{
    stepgraph_check_pin w;
    float v[2] = { 3.0f, 4.0f };

    t.skip_commit = 1;
    recorded();
    put_float(stepgraph_pin_address(t.w), 8.0f);
    t.config.steps = 1;
    checked_as(STEPGRAPH_DIVERGED);
    w = about("w");
    /* x of step 10 is 4, 7 % 11 ...: (70 % 11) - 5 = -1; 8 + 0.5 * -1 = 7.5, and without the commit 8. */
    ck_assert_uint_eq(w.element, 0);
    ck_assert_double_eq(w.fresh, 7.5);
    ck_assert_double_eq(w.replay, 8.0);
    memcpy(&v[0], &w.fresh_bits, 4);
    memcpy(&v[1], &w.replay_bits, 4);
    ck_assert_float_eq(v[0], 7.5f);
    ck_assert_float_eq(v[1], 8.0f);
    ck_assert_uint_eq(w.step, 10);
    /* What the graph reads is judged by what the graph does: without the commit x reaches nothing that is pinned. */
    FACT("x", STEPGRAPH_CHECK_UNREAD);
}
END_TEST

START_TEST(k01_frozen_scalar_diverges)
{
    t.by_value = 1;
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(t.summary.bad_step, 11);
}
END_TEST

START_TEST(k04_input_that_is_not_refreshed_is_named)
{
    t.feed_launched = 1;
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    FACT("x", STEPGRAPH_CHECK_DIFFERS);
    SAYS("feed 'x' does not hold the same bytes in the replay");
}
END_TEST

START_TEST(k04_refused_replay_is_a_finding)
{
    recorded_with(STEPGRAPH_STEP_STRICT_FEEDS);
    t.feed_once = 6;
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(t.summary.failed, 1);
    ck_assert_uint_eq(t.summary.bad_step, 10);
    SAYS("was not fed");
    STATE_IS(t.step, STEPGRAPH_STEP_READY);
}
END_TEST

START_TEST(k08_output_that_only_launches_write_is_named)
{
    recorded();
    /* The graph was recorded without it. */
    stepgraph_step_destroy(NULL);
    drop_step(t.step);
    t.skip_loss = 1;
    recorded();
    t.skip_loss = 0;
    checked_as(STEPGRAPH_DIVERGED);
    FACT("loss", STEPGRAPH_CHECK_DIFFERS);
    FACT("loss", STEPGRAPH_CHECK_UNWRITTEN);
    ck_assert_uint_eq(t.summary.outputs_unwritten, 1);
}
END_TEST

START_TEST(k28_output_that_nobody_writes_proves_nothing)
{
    t.skip_loss = 1;
    recorded();
    put_float(stepgraph_pin_address(t.loss), 55.0f); /* What would pass for a result. */
    checked_as(STEPGRAPH_UNPROVEN);
    FACT("loss", STEPGRAPH_CHECK_UNWRITTEN);
    SAYS("output 'loss'", "written by nobody");
    ck_assert_float_eq(float_at(stepgraph_pin_address(t.loss)), 55.0f);
}
END_TEST

/* It may be another step's to write. */
START_TEST(output_that_another_step_writes_is_not_missed)
{
    stepgraph_step *other = step_make(session, "other", 0);

    begin_recording(other);
    setv(stream, stepgraph_pin_address(t.loss), 1.0f);
    OK(stepgraph_step_end(other));
    t.skip_loss = 1;
    recorded();
    checked();
    NO_FACT("loss", STEPGRAPH_CHECK_UNWRITTEN);
    ck_assert_uint_eq(t.summary.outputs_unwritten, 0);
}
END_TEST

/* Scratch that a launch fills which no recording holds: what the launches left there must not carry the replays. */
START_TEST(k28_old_scratch_does_not_pass_for_work)
{
    t.scratch_table = 1;
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(t.summary.bad_step, 10);
}
END_TEST

/* An arena: blocks that are out are the host's and stay as they are; what is between them does not carry a replay. */
static stepgraph_arena *arena;
static uint64_t kept_block, given_back;
static int in_kept;
static stepgraph_pin *landing;

static stepgraph_status enqueue_in_arena(void *user, stepgraph_step *step, uint64_t k)
{
    CUdeviceptr table = in_kept ? kept_block : given_back; /* Filled by launches only. */

    if (!recording())
        setv(stream, table, 2.0f);
    copyf(stream, stepgraph_pin_address(landing), table);
    return enqueue(user, step, k);
}

START_TEST(blocks_of_an_arena_are_the_hosts)
{
    stepgraph_arena_config config = STEPGRAPH_ARENA_CONFIG_INIT;

    config.bytes = 1 << 16;
    OK(stepgraph_arena_create(session, &config, &arena));
    OK(stepgraph_arena_alloc(arena, 256, "first", &given_back));
    OK(stepgraph_arena_alloc(arena, 256, "kept", &kept_block));
    put_float(kept_block, 2.0f);
    put_float(given_back, 2.0f);
    in_kept = _i;
    landing = typed(STEPGRAPH_ROLE_STATE, 4, "landing", STEPGRAPH_TYPE_F32);
    t.config.enqueue = enqueue_in_arena;
    t.step = step_make(session, "train", 0);
    OK(feed(NULL, NULL, 10));
    begin_recording(t.step);
    OK(enqueue_in_arena(NULL, t.step, 10));
    OK(stepgraph_arena_free(arena, given_back));
    OK(stepgraph_step_end(t.step));
    checked();
    ck_assert_float_eq(float_at(kept_block), 2.0f);
    VERDICT(in_kept ? STEPGRAPH_IDENTICAL : STEPGRAPH_DIVERGED);
    drop_step(t.step);
    OK(stepgraph_arena_destroy(arena));
}
END_TEST

static stepgraph_status enqueue_nothing(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    (void)k;
    if (recording())
        launch(stream, kernels.nop, 1, (void *[]){ NULL });
    return STEPGRAPH_OK;
}

START_TEST(k28_step_that_changes_nothing_proves_nothing)
{
    t.config.enqueue = enqueue_nothing;
    recorded_as("idle", STEPGRAPH_STEP_ALLOW_EMPTY);
    checked_as(STEPGRAPH_UNPROVEN);
    SAYS("nothing to compare");
}
END_TEST

/* ---- determinism --------------------------------------------------------------------------------------------------- */

START_TEST(step_with_noise_is_inconclusive)
{
    stepgraph_check_pin w;

    t.noise = 1;
    recorded();
    checked_as(STEPGRAPH_INCONCLUSIVE);
    w = about("w");
    ck_assert_uint_eq(w.fault, 0);
    ck_assert(w.facts & STEPGRAPH_CHECK_UNSTEADY);
    ck_assert_double_gt(w.spread, 0);
    ck_assert_double_lt(w.spread, 1e-3);
    SAYS("INCONCLUSIVE", "not deterministic by itself", "differs among fresh launches", "stay within");
}
END_TEST

START_TEST(stale_pointer_in_a_noisy_step_is_found)
{
    t.noise = 1;
    t.stale = 1;
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    FACT("w", STEPGRAPH_CHECK_BEYOND);
    ck_assert_uint_eq(about("w").fault, 1);
    SAYS("fresh launches differ by");
}
END_TEST

/* w is steady and wrong; another state is not steady. */
static stepgraph_pin *noisy;

static stepgraph_status enqueue_beside_noise(void *user, stepgraph_step *step, uint64_t k)
{
    inc(stream, stepgraph_pin_address(noisy), 1e-4f * (float)(unit_random(&t.random) % 1000));
    return enqueue(user, step, k);
}

START_TEST(stale_pointer_beside_noise_is_found)
{
    noisy = typed(STEPGRAPH_ROLE_STATE, 4, "noisy", STEPGRAPH_TYPE_F32);
    t.stale = 1;
    t.config.enqueue = enqueue_beside_noise;
    recorded_as("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(about("w").fault, 1);
    ck_assert_uint_eq(about("noisy").fault, 0);
    FACT("noisy", STEPGRAPH_CHECK_UNSTEADY);
    NO_FACT("w", STEPGRAPH_CHECK_UNSTEADY);
}
END_TEST

/* A pin that is the same in all fresh launches of a noisy step and a few units off in replays: luck, unless it is so every time. */
static stepgraph_pin *lucky;
static int reproducible;

static stepgraph_status enqueue_lucky(void *user, stepgraph_step *step, uint64_t k)
{
    CUdeviceptr p = stepgraph_pin_address(lucky);

    inc(stream, stepgraph_pin_address(noisy), 1e-4f * (float)(unit_random(&t.random) % 1000));
    setv(stream, p, recording() && reproducible ? 1.0000001f : 1.0f);
    if (recording() && !reproducible)
        launch(stream, wobble, 1, (void *[]){ &p, &t.counter });
    return enqueue(user, step, k);
}

START_TEST(small_difference_beside_noise_counts_if_it_repeats_itself)
{
    reproducible = _i;
    noisy = typed(STEPGRAPH_ROLE_STATE, 4, "noisy", STEPGRAPH_TYPE_F32);
    lucky = typed(STEPGRAPH_ROLE_STATE, 4, "lucky", STEPGRAPH_TYPE_F32);
    t.config.enqueue = enqueue_lucky;
    recorded_as("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    checked_as(reproducible ? STEPGRAPH_DIVERGED : STEPGRAPH_INCONCLUSIVE);
    FACT("lucky", STEPGRAPH_CHECK_DIFFERS);
    ck_assert_uint_eq(about("lucky").fault, (unsigned)reproducible);
}
END_TEST

START_TEST(noise_in_an_untyped_pin_asks_for_a_type)
{
    unmade();
    drop_pin(t.w);
    drop_pin(t.x);
    drop_pin(t.rate);
    drop_pin(t.loss);
    drop_pin(t.tmp);
    made_of(STEPGRAPH_TYPE_BYTES);
    t.noise = 1;
    recorded();
    checked_as(STEPGRAPH_INCONCLUSIVE);
    SAYS("give the pin an element type");
}
END_TEST

START_TEST(feed_that_does_not_repeat_itself_is_named)
{
    t.noisy_feed = 1;
    recorded();
    checked();
    ck_assert_uint_ne(t.summary.verdict, STEPGRAPH_IDENTICAL);
    FACT("x", STEPGRAPH_CHECK_UNREPEATED);
    SAYS("the feed callback must repeat itself");
}
END_TEST

START_TEST(k19_step_that_reads_what_an_output_held_is_named)
{
    t.accumulate = 1;
    recorded();
    checked_as(STEPGRAPH_INCONCLUSIVE);
    FACT("loss", STEPGRAPH_CHECK_OLD_VALUES);
    NO_FACT("w", STEPGRAPH_CHECK_UNSTEADY);
    SAYS("what a step reads before it writes it is a STATE");
    /* Six fresh arms, two of replays and one replay to alter inputs of: that it is so was seen by the second already. */
    ck_assert_uint_eq(t.feeds, 3 * 8 + 1);
}
END_TEST

/* Noise that shows only after the first two fresh arms were the same. */
START_TEST(rare_noise_is_no_fault)
{
    t.noise = 1;
    recorded();
    t.quiet = 6;
    checked_as(STEPGRAPH_INCONCLUSIVE);
    ck_assert_uint_eq(about("w").fault, 0);
}
END_TEST

/* Without a type the distance of two bytes says nothing about that of two values. */
static stepgraph_status enqueue_edge(void *user, stepgraph_step *step, uint64_t k)
{
    uint32_t bits = recording() ? 0x3f7fffff : 0x3f800000 + (unit_random(&t.random) & 3);
    float v;

    memcpy(&v, &bits, sizeof v);
    setv(stream, stepgraph_pin_address(noisy), v);
    return enqueue(user, step, k);
}

START_TEST(bytes_at_the_edge_of_a_value_are_no_fault)
{
    noisy = typed(STEPGRAPH_ROLE_STATE, 4, "noisy", _i ? STEPGRAPH_TYPE_F32 : STEPGRAPH_TYPE_BYTES);
    t.config.enqueue = enqueue_edge;
    recorded_as("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    checked_as(STEPGRAPH_INCONCLUSIVE);
    ck_assert_uint_eq(about("noisy").fault, 0);
}
END_TEST

/* A sum of many floats in no order. On cusim threads run in order. */
static CUdeviceptr many;
enum { MANY = 1 << 18 };

static stepgraph_status enqueue_sum(void *user, stepgraph_step *step, uint64_t k)
{
    CUdeviceptr w = stepgraph_pin_address(t.w), loss = stepgraph_pin_address(t.loss);

    (void)user;
    (void)step;
    (void)k;
    launch(stream, sum_atomic, MANY, (void *[]){ &w, &many, &(int){ MANY } });
    copyf(stream, loss, w);
    return STEPGRAPH_OK;
}

START_TEST(float_atomics_are_inconclusive_on_a_card)
{
    float *values = malloc(MANY * sizeof *values);
    uint64_t seed = 3;

    for (int i = 0; i < MANY; i++)
        values[i] = (float)(unit_random(&seed) % 100000) * 1e-3f;
    many = device_make(MANY * sizeof *values);
    put_bytes(many, values, MANY * sizeof *values);
    free(values);
    t.config.enqueue = enqueue_sum;
    t.config.feed = NULL;
    recorded_as("sum", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    checked();
    VERDICT(t.summary.software ? STEPGRAPH_IDENTICAL : STEPGRAPH_INCONCLUSIVE);
}
END_TEST

/* ---- inputs ------------------------------------------------------------------------------------------------------- */

static stepgraph_status enqueue_more(void *user, stepgraph_step *step, uint64_t k)
{
    CUdeviceptr loss = stepgraph_pin_address(t.loss), w = stepgraph_pin_address(t.w);
    stepgraph_status status = enqueue(user, step, k);

    if (t.index_pin)
        launch(stream, pick_function, 1, (void *[]){ &loss, &w, &(CUdeviceptr){ stepgraph_pin_address(t.index_pin) }, &(int){ N }, &bad });
    if (t.untyped_cell)
        launch(stream, pick_function, 1, (void *[]){ &loss, &w, &(CUdeviceptr){ stepgraph_pin_address(t.untyped_cell) }, &(int){ N }, &bad });
    return status;
}

static void recorded_more(void)
{
    bad = device_make(64);
    t.config.enqueue = enqueue_more;
    t.config.feed = feed_more;
    OK(feed_more(NULL, NULL, 10));
    recorded_as("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
}

static void none_out_of_range(void)
{
    unsigned out_of_range = 7;

    bytes_at(bad, &out_of_range, sizeof out_of_range);
    ck_assert_uint_eq(out_of_range, 0);
}

START_TEST(k04_input_that_nobody_reads_is_listed)
{
    t.unread = typed(STEPGRAPH_ROLE_FEED, 4, "unread", STEPGRAPH_TYPE_U32);
    recorded_more();
    checked_as(STEPGRAPH_IDENTICAL);
    FACT("unread", STEPGRAPH_CHECK_UNREAD);
    NO_FACT("x", STEPGRAPH_CHECK_UNREAD);
    ck_assert_uint_eq(t.summary.inputs, 3);
    ck_assert_uint_eq(t.summary.inputs_seen, 2);
    SAYS("feed 'unread'", "the graph does not refer to it");
}
END_TEST

/* The graph reads it, into scratch that goes nowhere; and an output that is never set to zero does not hide that. */
START_TEST(k04_input_that_is_read_and_not_used_is_listed)
{
    t.unread = typed(STEPGRAPH_ROLE_FEED, 4, "unread", STEPGRAPH_TYPE_U32);
    t.dead_read = 1;
    t.accumulate = _i;
    recorded_more();
    checked_as(_i ? STEPGRAPH_INCONCLUSIVE : STEPGRAPH_IDENTICAL);
    FACT("unread", STEPGRAPH_CHECK_UNREAD);
    NO_FACT("x", STEPGRAPH_CHECK_UNREAD);
    SAYS("changes nothing when it is altered");
}
END_TEST

/* An index takes only values that the host has fed: no kernel is sent out of range. */
START_TEST(altered_index_stays_in_range)
{
    t.index_pin = typed(STEPGRAPH_ROLE_FEED, 4, "index", STEPGRAPH_TYPE_BYTES);
    recorded_more();
    checked_as(STEPGRAPH_IDENTICAL);
    ck_assert_uint_eq(t.summary.inputs_seen, 3);
    none_out_of_range();
}
END_TEST

static stepgraph_pin *cut_off;

static stepgraph_status enqueue_cut_off(void *user, stepgraph_step *step, uint64_t k)
{
    stepgraph_status status = enqueue(user, step, k);

    CU(MemcpyDtoDAsync(stepgraph_pin_address(t.tmp) + 3 * 4 * N + 16, stepgraph_pin_address(cut_off), 2, stream));
    return status;
}

START_TEST(input_that_holds_no_whole_number_is_not_altered)
{
    cut_off = typed(STEPGRAPH_ROLE_CELL, 2, "cut off", STEPGRAPH_TYPE_F32);
    t.config.enqueue = enqueue_cut_off;
    recorded();
    checked_as(STEPGRAPH_IDENTICAL);
    FACT("cut off", STEPGRAPH_CHECK_UNTRIED);
    ck_assert_uint_eq(t.summary.inputs_untried, 1);
}
END_TEST

START_TEST(input_without_another_value_is_not_altered)
{
    t.untyped_cell = typed(STEPGRAPH_ROLE_CELL, 4, "row", STEPGRAPH_TYPE_I32);
    recorded_more();
    checked_as(STEPGRAPH_IDENTICAL);
    FACT("row", STEPGRAPH_CHECK_UNTRIED);
    ck_assert_uint_eq(t.summary.inputs_untried, 1);
    none_out_of_range();
}
END_TEST

START_TEST(constant_float_feed_is_altered_by_its_bits)
{
    t.constant_feed = 1;
    recorded();
    checked_as(STEPGRAPH_IDENTICAL);
    ck_assert_uint_eq(t.summary.inputs_seen, 2);
}
END_TEST

START_TEST(feeds_that_are_not_read_prove_nothing)
{
    /* The graph reads other memory in place of x, and so do the launches. */
    CUdeviceptr w = stepgraph_pin_address(t.w);

    (void)w;
    t.config.enqueue = enqueue_sum;
    many = device_make(MANY * sizeof(float));
    OK(feed(NULL, NULL, 10));
    put_float(many, 1.0f);
    recorded_as("deaf", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    checked_as(STEPGRAPH_UNPROVEN);
    FACT("x", STEPGRAPH_CHECK_UNREAD);
    SAYS("the step reads none of its feeds");
}
END_TEST

START_TEST(k27_padding_that_reaches_a_state_is_named)
{
    t.fed_bytes = 5 * sizeof(float);
    t.read_padding = _i; /* Else each row of x goes into one of w, the rows behind the fifth too. */
    recorded();
    checked_as(STEPGRAPH_IDENTICAL);
    FACT("x", STEPGRAPH_CHECK_PADDING);
    SAYS("what stands behind the fed bytes changes a state");
}
END_TEST

START_TEST(k27_padding_that_stays_outside_is_not)
{
    t.index_pin = typed(STEPGRAPH_ROLE_FEED, 64, "index", STEPGRAPH_TYPE_I32); /* Only the first is read. */
    recorded_more();
    checked_as(STEPGRAPH_IDENTICAL);
    NO_FACT("index", STEPGRAPH_CHECK_PADDING);
}
END_TEST

/* ---- the planted fault --------------------------------------------------------------------------------------------- */

static stepgraph_pin *dead;

/* A state that each step overwrites: what it held cannot be seen. */
static stepgraph_status enqueue_overwriting(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    copyf(stream, stepgraph_pin_address(dead), stepgraph_pin_address(t.x));
    (void)k;
    return STEPGRAPH_OK;
}

static void recorded_dead(void)
{
    dead = typed(STEPGRAPH_ROLE_STATE, 4, "dead", STEPGRAPH_TYPE_F32);
    drop_pin(t.loss);
    drop_pin(t.w);
    t.config.enqueue = enqueue_overwriting;
    OK(feed(NULL, NULL, 10));
    recorded_as("dead", 0);
}

START_TEST(planted_fault_that_is_not_seen_proves_nothing)
{
    recorded_dead();
    checked_as(STEPGRAPH_UNPROVEN);
    ck_assert_uint_eq(t.summary.planted, 8);
    ck_assert_uint_eq(t.summary.planted_seen, 0);
    SAYS("planted fault was not seen", "8 faults planted, the last one not seen");
}
END_TEST

START_TEST(fault_is_planted_where_the_host_says)
{
    stepgraph_pin *beside = typed(STEPGRAPH_ROLE_STATE, 4, "beside", STEPGRAPH_TYPE_U32);

    recorded();
    t.config.plant = beside;
    checked();
    /* No step reads it, but it is compared. */
    VERDICT(STEPGRAPH_IDENTICAL);
    FACT("beside", STEPGRAPH_CHECK_UNCHANGED);
    ck_assert_uint_eq(t.summary.planted, 1);
    t.config.plant = t.loss;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_check_run(t.step, &t.config, &t.check), "loss", "STATE");
}
END_TEST

/* ---- order --------------------------------------------------------------------------------------------------------- */

START_TEST(k21_replay_that_does_not_wait_for_the_feeder_is_found)
{
    races("off");
    recorded_elsewhere();
    checked_as(STEPGRAPH_DIVERGED);
    FACT("w", STEPGRAPH_CHECK_DIFFERS);
    NO_FACT("w", STEPGRAPH_CHECK_ORDER); /* Replays that are waited for are wrong, too: it is the launches that are right. */
}
END_TEST

START_TEST(k21_host_that_overwrites_too_early_is_found)
{
    races("off");
    t.feeder_waits = 1;
    recorded_elsewhere();
    /* In front of the queued replays stands a delay, and this host overwrites x before they have read it: that is found, too. */
    checked_as(STEPGRAPH_DIVERGED);
    FACT("w", STEPGRAPH_CHECK_ORDER);
    SAYS("back to back");
}
END_TEST

/* Neither overwrites x too early nor waits for its own copy, which is in time as a rule. */
static stepgraph_status feed_in_time(void *user, stepgraph_step *step, uint64_t k)
{
    stepgraph_status status = feed(user, step, k);

    fill_x(k, locked_x(k));
    CU(StreamSynchronize(stream));
    copy_x(k);
    nanosleep(&(struct timespec){ 0, 15000000 }, NULL);
    return status;
}

START_TEST(k21_feed_that_is_in_time_as_a_rule_is_found)
{
    races("off");
    recorded_elsewhere();
    t.config.feed = feed_in_time;
    t.config.delay_ns = 100 * 1000000ull;
    checked_as(STEPGRAPH_DIVERGED);
    FACT("w", STEPGRAPH_CHECK_ORDER);
    SAYS("do not wait for the feeding stream");
}
END_TEST

START_TEST(k21_feeder_in_order_is_identical)
{
    recorded_in_order();
    checked_as(STEPGRAPH_IDENTICAL);
}
END_TEST

/* A digit, a comma, a digit: what stands between numbers has a space behind it. */
static const char *comma_in_number(const char *text)
{
    while ((text = strchr(text, ',')) != NULL && !(isdigit((unsigned char)text[-1]) && isdigit((unsigned char)text[1])))
        text++;
    return text;
}

START_TEST(numbers_of_a_check_have_points_in_every_language)
{
    t.stale = 1;
    recorded();
    unit_commas_begin("numbers_of_a_check_have_points_in_every_language");
    checked();
    unit_commas_end();
    SAYS(" fresh, ", " replayed, ");
    ck_assert_msg(comma_in_number(stepgraph_check_text(t.check)) == NULL, "%s", stepgraph_check_text(t.check));
}
END_TEST

START_TEST(numbers_of_a_message_have_points_in_every_language)
{
    t.once = 1;
    recorded();
    CU(MemsetD8Async(t.counter, 0, 4, stream));
    t.config.timeout_ns = 300 * 1000000ull;
    unit_commas_begin("numbers_of_a_message_have_points_in_every_language");
    checked();
    unit_commas_end();
    SAYS("within 0.3 seconds");
    CU(StreamSynchronize(stream)); /* Until the device comes back nothing is given back. */
    OK(stepgraph_session_wait(session));
}
END_TEST

/* ---- time ---------------------------------------------------------------------------------------------------------- */

static CUstream other_stream;

START_TEST(k19_replay_that_hangs_is_named_and_nothing_waits)
{
    stepgraph_error_info why = STEPGRAPH_ERROR_INFO_INIT;

    t.once = 1;
    recorded();
    CU(MemsetD8Async(t.counter, 0, 4, stream));
    t.config.timeout_ns = 300 * 1000000ull;
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(t.summary.hung, 1);
    /* The last fresh launch has left the counter at 1, so the first replay hangs. */
    ck_assert_uint_eq(t.summary.bad_step, 10);
    SAYS("did not come to an end", "step 10", "'train'");
    ck_assert_double_lt(t.summary.seconds, 0.95);
    STATE_IS(t.step, STEPGRAPH_STEP_FAILED);
    OK(stepgraph_step_error(t.step, &why));
    ck_assert_int_eq(why.status, STEPGRAPH_ERR_LOST);
    /* Whatever would wait says so instead. */
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_session_wait(session), "hangs", "train");
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_pin_read(t.w, &(float){ 0 }, 4), "hangs");
    /* When the device comes back, so does the session. */
    CU(StreamSynchronize(stream));
    OK(stepgraph_session_wait(session));
}
END_TEST

/* A counter that the host sets back itself, too early once it runs ahead: the second of the queued replays hangs. */
static stepgraph_status feed_and_set_back(void *user, stepgraph_step *step, uint64_t k)
{
    CU(MemsetD8Async(t.counter, 0, 4, t.feeder));
    CU(StreamSynchronize(t.feeder));
    t.feeder = NULL;
    stepgraph_status status = feed(user, step, k);
    t.feeder = other_stream;
    return status;
}

START_TEST(k20_replay_that_hangs_only_when_queued_is_named)
{
    races("off");
    t.once = 1;
    recorded();
    t.feeder = other_stream = stream_make(CU_STREAM_NON_BLOCKING);
    t.config.feed = feed_and_set_back;
    t.config.timeout_ns = 300 * 1000000ull;
    t.config.delay_ns = 20 * 1000000ull;
    t.config.steps = (uint32_t)_i;
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(t.summary.hung, 1);
    ck_assert_uint_eq(t.summary.bad_step, 11);
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_session_wait(session), "hangs");
    CU(StreamSynchronize(stream));
    OK(stepgraph_session_wait(session));
}
END_TEST

START_TEST(slow_replay_within_its_time_is_right)
{
    t.spin_ms = 50;
    recorded();
    t.config.timeout_ns = 5 * 1000000000ull;
    checked_as(STEPGRAPH_IDENTICAL);
}
END_TEST

/* What holds the queue back on purpose is no part of that time. */
START_TEST(delay_beyond_the_time_of_a_replay_is_no_hang)
{
    recorded();
    t.config.timeout_ns = 400 * 1000000ull;
    t.config.delay_ns = 2 * t.config.timeout_ns;
    checked_as(STEPGRAPH_IDENTICAL);
}
END_TEST

START_TEST(fresh_launches_that_hang_are_no_report)
{
    t.once = 1;
    recorded();
    /* Launched by hand without setting the counter back. */
    t.once = 0;
    t.config.timeout_ns = 200 * 1000000ull;
    spin(stream, 1500);
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_check_run(t.step, &t.config, &t.check), "did not come to an end");
    ck_assert_ptr_null(t.check);
    CU(StreamSynchronize(stream));
    OK(stepgraph_session_wait(session));
}
END_TEST

/* ---- the place ------------------------------------------------------------------------------------------------------ */

START_TEST(search_names_node_kernel_and_stage)
{
    t.stale = 1;
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    search_named(0, "update");
    ck_assert_str_eq(t.summary.stage, "forward");
    SAYS("node 0  update  in stage 'forward'", "moved pointer");
    /* And the step can still be used for what it is. */
    STATE_IS(t.step, STEPGRAPH_STEP_READY);
    replayed_once_more(10);
}
END_TEST

START_TEST(search_finds_a_later_node)
{
    t.by_value = 1;
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    search_named(1, "addn");
    SAYS("changing scalar");
}
END_TEST

/* Nodes that are right and change states and scratch come first; the wrong one is named all the same. */
START_TEST(search_goes_back_before_each_prefix)
{
    t.early = typed(STEPGRAPH_ROLE_STATE, 4, "early", STEPGRAPH_TYPE_F32);
    t.scratch_sum = 1;
    t.by_value = 1;
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    search_named(3, "addn");
}
END_TEST

/* Only step 11 has an input that shows it. */
START_TEST(search_has_the_inputs_of_the_bad_step)
{
    float x[N];

    t.period = 2;
    t.frozen_x = 1;
    fill_x(10, x);
    put_bytes(t.other, x, sizeof x);
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(t.summary.bad_step, 11);
    search_named(0, "update");
}
END_TEST

/* An input that is fed only when it changes, later: the feed callback alone does not bring it back. */
START_TEST(search_has_inputs_that_are_not_fed_again)
{
    float x[N];

    t.frozen_x = 1;
    fill_x(15, x);
    put_bytes(t.other, x, sizeof x);
    recorded();
    t.rate_once = 2;
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(t.summary.bad_step, 10);
    search_named(0, "update");
}
END_TEST

/* So does what the host puts into its launches by itself. */
START_TEST(search_feeds_the_bad_step_before_it_is_recorded)
{
    t.by_value = t.period = 2;
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(t.summary.bad_step, 11);
    search_named(1, "addn");
}
END_TEST

/* A step that writes an input before it reads it: what one prefix has added is no input of the next. */
START_TEST(search_has_inputs_that_the_step_writes)
{
    t.writes_x = 1;
    t.by_value = 1;
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    search_named(2, "addn");
    SAYS("changing scalar");
}
END_TEST

/* Where the search finds nothing, what end let pass is named. */
START_TEST(memory_that_no_pin_covers_is_suspected)
{
    t.skip_commit = 1;
    recorded();
    /* Every recording lacks the commit. */
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_msg(t.summary.search == STEPGRAPH_SEARCH_CLEAN, "%s", stepgraph_check_text(t.check));
    ck_assert_str_eq(t.summary.cause, "");
    stepgraph_check_destroy(t.check);
    drop_step(t.step);
    t.once = 1;
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    SAYS("perhaps because of this", "once", "no pin covers");
}
END_TEST

/* Where recordings lay scratch out differently, only states and outputs can be compared: the commit is the first to show it. */
START_TEST(search_does_without_scratch_that_moves)
{
    t.by_value = 1;
    t.scratch_moves = 1;
    recorded();
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_msg(t.summary.search == STEPGRAPH_SEARCH_FOUND, "%s", stepgraph_check_text(t.check));
    ck_assert_uint_eq(t.summary.node, 2);
    SAYS("as far as states and outputs tell");
}
END_TEST

START_TEST(search_says_where_recordings_differ_in_shape)
{
    t.skip_commit = 1;
    recorded();
    t.skip_commit = 0;
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(t.summary.search, STEPGRAPH_SEARCH_UNABLE);
    SAYS("was not looked for", "other nodes");
}
END_TEST

static void CUDA_CB_nothing(void *user)
{
    (void)user;
}

static stepgraph_status enqueue_with_host_function(void *user, stepgraph_step *step, uint64_t k)
{
    CU(LaunchHostFunc(stream, CUDA_CB_nothing, NULL));
    return enqueue(user, step, k);
}

/* A host function cannot be switched off: prefixes are clones. */
START_TEST(search_clones_where_nodes_cannot_be_disabled)
{
    t.by_value = 1;
    t.config.enqueue = enqueue_with_host_function;
    OK(feed(NULL, NULL, 10));
    recorded_as("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED | STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS);
    checked_as(STEPGRAPH_DIVERGED);
    search_named(2, "addn");
}
END_TEST

START_TEST(search_can_be_left_out)
{
    t.stale = 1;
    recorded();
    t.config.flags = STEPGRAPH_CHECK_NO_SEARCH;
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_uint_eq(t.summary.search, STEPGRAPH_SEARCH_NONE);
    ck_assert_uint_eq(t.recordings, 1);
}
END_TEST

/* ---- memory --------------------------------------------------------------------------------------------------------- */

/* All snapshots on the device, one on the host, all on the host, and only two of them: the same results. */
START_TEST(snapshots_go_where_there_is_room)
{
    static const struct {
        uint64_t device, host;
        unsigned every;
    } rooms[] = { { 0, 0, 1 }, { 1024, 1 << 20, 1 }, { 1, 1 << 20, 1 }, { 1, 2400, 0 }, { 2400, 1, 0 }, { 1200, 1200, 0 } };

    t.stale = _i % 2;
    recorded();
    t.config.device_bytes = rooms[_i / 2].device;
    t.config.host_bytes = rooms[_i / 2].host;
    checked_as(t.stale ? STEPGRAPH_DIVERGED : STEPGRAPH_IDENTICAL);
    ck_assert_uint_eq(t.summary.every_step, rooms[_i / 2].every);
    if (rooms[_i / 2].device == 1)
        ck_assert_uint_eq(t.summary.device_bytes, 0);
    if (rooms[_i / 2].host == 1)
        ck_assert_uint_eq(t.summary.host_bytes, 0);
    if (t.stale)
        ck_assert_uint_eq(about("w").step, rooms[_i / 2].every ? 11 : 12);
    if (!rooms[_i / 2].every)
        SAYS("for lack of memory");
}
END_TEST

START_TEST(no_room_for_two_snapshots_is_refused_with_the_bytes)
{
    recorded();
    t.config.device_bytes = 1200;
    t.config.host_bytes = 1;
    FAILS(STEPGRAPH_ERR_MEMORY, stepgraph_check_run(t.step, &t.config, &t.check), "two snapshots of 1024 bytes", "2048 bytes in all", "1200");
    ck_assert_ptr_null(t.check);
    ck_assert_uint_eq(t.enqueues, 0);
}
END_TEST

/* More than one window of the staging buffer, and pins that are cut by it. */
START_TEST(large_states_travel_through_windows)
{
    enum { LARGE = 5 << 20 };
    stepgraph_pin *large[4];
    static const char *const names[] = { "l0", "l1", "l2", "l3" };
    unsigned char *start = malloc(LARGE), *got = malloc(LARGE);
    uint64_t seed = 1;

    random_bytes(&seed, start, LARGE);
    for (int i = 0; i < 4; i++) {
        large[i] = typed(STEPGRAPH_ROLE_STATE, LARGE - (uint64_t)i * 1000, names[i], STEPGRAPH_TYPE_U8);
        put_bytes(stepgraph_pin_address(large[i]), start, LARGE - (size_t)i * 1000);
    }
    recorded();
    t.config.device_bytes = _i ? 1 : 0;
    t.config.host_bytes = 1ull << 30;
    t.config.steps = 2;
    checked_as(STEPGRAPH_IDENTICAL);
    for (int i = 0; i < 4; i++) {
        bytes_at(stepgraph_pin_address(large[i]), got, LARGE - (size_t)i * 1000);
        ck_assert(memcmp(start, got, LARGE - (size_t)i * 1000) == 0);
    }
    free(start);
    free(got);
}
END_TEST

static CUdeviceptr far_behind;

/* There the recording writes something else. */
static stepgraph_status enqueue_far(void *user, stepgraph_step *step, uint64_t k)
{
    setv(stream, far_behind, recording() ? 1.0f : 2.0f);
    return enqueue(user, step, k);
}

START_TEST(byte_that_differs_is_found_in_whichever_window)
{
    enum { LARGE = 5 << 20, AT = LARGE - 8 };
    const float recorded_as_1 = 1, launched = 2;
    stepgraph_pin *large[4];
    uint64_t first = AT;

    for (int i = 0; i < 4; i++)
        large[i] = typed(STEPGRAPH_ROLE_STATE, LARGE, ((const char *[]){"l0", "l1", "l2", "l3"})[i], STEPGRAPH_TYPE_U8);
    far_behind = stepgraph_pin_address(large[_i % 4]) + AT;
    t.config.enqueue = enqueue_far;
    recorded();
    t.config.device_bytes = _i / 4 ? 1 : 0;
    t.config.host_bytes = 1ull << 30;
    t.config.steps = 1;
    checked_as(STEPGRAPH_DIVERGED);
    while (((const char *)&recorded_as_1)[first - AT] == ((const char *)&launched)[first - AT])
        first++;
    ck_assert_uint_eq(about(stepgraph_pin_name(large[_i % 4])).element, first);
}
END_TEST

/* ---- calls ---------------------------------------------------------------------------------------------------------- */

START_TEST(callback_that_fails_is_passed_on)
{
    float before[N], after[N];

    recorded();
    bytes_at(stepgraph_pin_address(t.w), before, sizeof before);
    t.fails = 11;
    FAILS(STEPGRAPH_ERR_UNSUPPORTED, stepgraph_check_run(t.step, &t.config, &t.check), "enqueue callback", "step 11");
    ck_assert_ptr_null(t.check);
    bytes_at(stepgraph_pin_address(t.w), after, sizeof after);
    ck_assert_mem_eq(before, after, sizeof before);
    STATE_IS(t.step, STEPGRAPH_STEP_READY);
    t.fails = 0;
    checked_as(STEPGRAPH_IDENTICAL);
}
END_TEST

/* Nor does work on a side stream that was not joined come after the pins were put back. 1: the callback itself goes well. */
static CUstream aside;
static stepgraph_status enqueue_aside(void *user, stepgraph_step *step, uint64_t k)
{
    stepgraph_status status = enqueue(user, step, k);

    OK(stepgraph_step_fork(step, aside, "aside"));
    spin(aside, 30);
    inc(aside, stepgraph_pin_address(t.w), 1);
    return status == STEPGRAPH_OK && t.fails == 0 ? STEPGRAPH_ERR_UNSUPPORTED : status;
}

START_TEST(side_stream_that_is_not_joined_is_waited_for)
{
    float before[N], after[N];

    recorded();
    aside = stream_make(CU_STREAM_NON_BLOCKING);
    bytes_at(stepgraph_pin_address(t.w), before, sizeof before);
    t.config.enqueue = enqueue_aside;
    t.fails = _i; /* A step that is not checked. */
    FAILS(_i == 0 ? STEPGRAPH_ERR_UNSUPPORTED : STEPGRAPH_ERR_STATE, stepgraph_check_run(t.step, &t.config, &t.check), _i == 0 ? "enqueue callback" : "aside");
    CU(StreamSynchronize(aside));
    bytes_at(stepgraph_pin_address(t.w), after, sizeof after);
    ck_assert_mem_eq(before, after, sizeof before);
    t.config.enqueue = enqueue;
    checked_as(STEPGRAPH_IDENTICAL);
}
END_TEST

/* Nobody has counted it, it is in no recording, and comes late. */
static stepgraph_pin *beside;
static stepgraph_status enqueue_elsewhere(void *user, stepgraph_step *step, uint64_t k)
{
    spin(aside, 10);
    inc(aside, stepgraph_pin_address(beside), 1);
    return enqueue(user, step, k);
}

START_TEST(work_that_escapes_is_waited_for)
{
    recorded();
    aside = stream_make(CU_STREAM_NON_BLOCKING);
    beside = pin_make(session, STEPGRAPH_ROLE_STATE, sizeof(float), "beside");
    t.config.enqueue = enqueue_elsewhere;
    t.config.flags |= STEPGRAPH_CHECK_NO_SEARCH;
    checked_as(STEPGRAPH_DIVERGED);
    CU(StreamSynchronize(aside));
    ck_assert_float_eq(pin_float(beside), 0);
}
END_TEST

/* It is the host's, and no part of what is checked. */
START_TEST(work_that_was_launched_elsewhere_before_stays)
{
    recorded();
    aside = stream_make(CU_STREAM_NON_BLOCKING);
    beside = pin_make(session, STEPGRAPH_ROLE_STATE, sizeof(float), "beside");
    spin(aside, 30);
    inc(aside, stepgraph_pin_address(beside), 1);
    checked();
    CU(StreamSynchronize(aside));
    ck_assert_float_eq(pin_float(beside), 1);
}
END_TEST

START_TEST(bad_calls_are_refused)
{
    stepgraph_step *fresh = step_make(session, "fresh", 0);
    LONGER(stepgraph_check_config, 16) longer;

    recorded();
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_check_run(NULL, &t.config, &t.check), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_check_run(t.step, NULL, &t.check), "config");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_check_run(t.step, &t.config, NULL), "check_out");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_check_run(fresh, &t.config, &t.check), "no graph");
    t.config.steps = 65;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_check_run(t.step, &t.config, &t.check), "at most 64");
    t.config.steps = 0;
    t.config.flags = 1u << 30;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_check_run(t.step, &t.config, &t.check), "flags");
    t.config.flags = 0;
    t.config.enqueue = NULL;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_check_run(t.step, &t.config, &t.check), "enqueue");
    t.config.enqueue = enqueue;
    t.config.plant = pin_make(session_make(NULL), STEPGRAPH_ROLE_STATE, 4, "theirs");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_check_run(t.step, &t.config, &t.check), "no STATE of the step's session");
    t.config.plant = NULL;
    OK(stepgraph_step_run_begin(fresh, STEPGRAPH_RUN_FRESH));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_check_run(t.step, &t.config, &t.check), "run_end");
    OK(stepgraph_step_run_end(fresh));
    memset(&longer, 0, sizeof longer);
    longer.known = t.config;
    longer.known.size = sizeof longer;
    longer.bytes[sizeof longer - 1] = 1;
    FAILS(STEPGRAPH_ERR_ABI, stepgraph_check_run(t.step, &longer.known, &t.check), "newer");
    begin_recording(fresh);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_check_run(t.step, &t.config, &t.check), "recording");
    OK(stepgraph_step_reset(fresh));
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_check_get_summary(NULL, &t.summary), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_check_get_pin(NULL, 0, &(stepgraph_check_pin)STEPGRAPH_CHECK_PIN_INIT), "NULL");
    ck_assert_str_eq(stepgraph_check_verdict_name(STEPGRAPH_UNPROVEN), "UNPROVEN");
    ck_assert_str_eq(stepgraph_check_verdict_name(9), "unknown verdict");
    stepgraph_check_destroy(NULL);
}
END_TEST

START_TEST(report_outlives_the_step)
{
    stepgraph_check_pin pin = STEPGRAPH_CHECK_PIN_INIT;

    t.stale = 1;
    recorded();
    checked();
    drop_step(t.step);
    OK(stepgraph_check_get_pin(t.check, 0, &pin));
    ck_assert_uint_eq(pin.fault, 1);
    ck_assert_ptr_nonnull(strstr(stepgraph_check_json(t.check), "\"verdict\": \"DIVERGED\""));
    ck_assert_ptr_nonnull(strstr(stepgraph_check_json(t.check), "\"fault\": true"));
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_check_get_pin(t.check, 1000, &pin), "no pin 1000");
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("check");
    TCase *right = trainer_case(suite, "right"), *wrong = trainer_case(suite, "wrong"), *noise = trainer_case(suite, "determinism");
    TCase *in = trainer_case(suite, "inputs"), *plant = trainer_case(suite, "planted"), *order = trainer_case(suite, "order");
    TCase *late = trainer_case(suite, "time"), *place = trainer_case(suite, "place"), *room = trainer_case(suite, "memory");
    TCase *calls = trainer_case(suite, "calls");

    tcase_add_test(right, right_step_is_identical);
    tcase_add_test(right, check_leaves_no_trace);
    tcase_add_loop_test(right, advancing_check_does_the_steps, 1, 5);
    tcase_add_loop_test(right, advancing_check_that_fails_at_its_end_does_no_step, 0, 2);
    tcase_add_loop_test(right, advancing_past_a_wrong_graph_takes_the_right_step, 1, 4);
    tcase_add_test(right, strict_feeds_are_no_obstacle);
    tcase_add_loop_test(right, input_that_is_not_fed_begins_as_it_was, 0, 2);
    tcase_add_test(right, output_that_looks_like_the_filling_is_written);
    tcase_add_test(right, host_state_comes_back_through_rewind);
    tcase_add_test(right, host_state_without_rewind_is_inconclusive);
    tcase_add_test(right, timing_is_left_alone);
    tcase_add_test(right, progress_is_told_and_can_stop);
    tcase_add_test(wrong, numbers_of_a_check_have_points_in_every_language);
    tcase_add_test(wrong, numbers_of_a_message_have_points_in_every_language);
    tcase_add_test(wrong, k03_stale_pointer_diverges_at_the_second_step);
    tcase_add_test(wrong, k03_first_differing_element_has_both_values);
    tcase_add_test(wrong, k01_frozen_scalar_diverges);
    tcase_add_test(wrong, k04_input_that_is_not_refreshed_is_named);
    tcase_add_test(wrong, k04_refused_replay_is_a_finding);
    tcase_add_test(wrong, k08_output_that_only_launches_write_is_named);
    tcase_add_test(wrong, k28_output_that_nobody_writes_proves_nothing);
    tcase_add_test(wrong, output_that_another_step_writes_is_not_missed);
    tcase_add_test(wrong, k28_old_scratch_does_not_pass_for_work);
    tcase_add_loop_test(wrong, blocks_of_an_arena_are_the_hosts, 0, 2);
    tcase_add_test(wrong, k28_step_that_changes_nothing_proves_nothing);
    tcase_add_test(noise, step_with_noise_is_inconclusive);
    tcase_add_test(noise, stale_pointer_in_a_noisy_step_is_found);
    tcase_add_test(noise, stale_pointer_beside_noise_is_found);
    tcase_add_loop_test(noise, small_difference_beside_noise_counts_if_it_repeats_itself, 0, 2);
    tcase_add_test(noise, noise_in_an_untyped_pin_asks_for_a_type);
    tcase_add_test(noise, feed_that_does_not_repeat_itself_is_named);
    tcase_add_test(noise, k19_step_that_reads_what_an_output_held_is_named);
    tcase_add_test(noise, rare_noise_is_no_fault);
    tcase_add_loop_test(noise, bytes_at_the_edge_of_a_value_are_no_fault, 0, 2);
    tcase_add_test(noise, float_atomics_are_inconclusive_on_a_card);
    tcase_add_test(in, k04_input_that_nobody_reads_is_listed);
    tcase_add_loop_test(in, k04_input_that_is_read_and_not_used_is_listed, 0, 3);
    tcase_add_test(in, altered_index_stays_in_range);
    tcase_add_test(in, input_that_holds_no_whole_number_is_not_altered);
    tcase_add_test(in, input_without_another_value_is_not_altered);
    tcase_add_test(in, constant_float_feed_is_altered_by_its_bits);
    tcase_add_test(in, feeds_that_are_not_read_prove_nothing);
    tcase_add_loop_test(in, k27_padding_that_reaches_a_state_is_named, 0, 2);
    tcase_add_test(in, k27_padding_that_stays_outside_is_not);
    tcase_add_test(plant, planted_fault_that_is_not_seen_proves_nothing);
    tcase_add_test(plant, fault_is_planted_where_the_host_says);
    tcase_add_test(order, k21_replay_that_does_not_wait_for_the_feeder_is_found);
    tcase_add_test(order, k21_feed_that_is_in_time_as_a_rule_is_found);
    tcase_add_test(order, k21_feeder_in_order_is_identical);
    tcase_add_test(order, k21_host_that_overwrites_too_early_is_found);
    tcase_add_test(late, k19_replay_that_hangs_is_named_and_nothing_waits);
    tcase_add_loop_test(late, k20_replay_that_hangs_only_when_queued_is_named, 3, 4);
    tcase_add_loop_test(late, k20_replay_that_hangs_only_when_queued_is_named, 8, 9);
    tcase_add_test(late, slow_replay_within_its_time_is_right);
    tcase_add_test(late, delay_beyond_the_time_of_a_replay_is_no_hang);
    tcase_add_test(late, fresh_launches_that_hang_are_no_report);
    tcase_add_test(place, search_names_node_kernel_and_stage);
    tcase_add_test(place, search_finds_a_later_node);
    tcase_add_test(place, search_goes_back_before_each_prefix);
    tcase_add_test(place, search_has_the_inputs_of_the_bad_step);
    tcase_add_test(place, search_has_inputs_that_are_not_fed_again);
    tcase_add_test(place, search_feeds_the_bad_step_before_it_is_recorded);
    tcase_add_test(place, search_has_inputs_that_the_step_writes);
    tcase_add_test(place, memory_that_no_pin_covers_is_suspected);
    tcase_add_test(place, search_does_without_scratch_that_moves);
    tcase_add_test(place, search_says_where_recordings_differ_in_shape);
    tcase_add_test(place, search_clones_where_nodes_cannot_be_disabled);
    tcase_add_test(place, search_can_be_left_out);
    tcase_add_loop_test(room, snapshots_go_where_there_is_room, 0, 12);
    tcase_add_test(room, no_room_for_two_snapshots_is_refused_with_the_bytes);
    tcase_add_loop_test(room, large_states_travel_through_windows, 0, 2);
    tcase_add_loop_test(room, byte_that_differs_is_found_in_whichever_window, 0, 8);
    tcase_add_test(calls, callback_that_fails_is_passed_on);
    tcase_add_loop_test(calls, side_stream_that_is_not_joined_is_waited_for, 0, 2);
    tcase_add_test(calls, work_that_escapes_is_waited_for);
    tcase_add_test(calls, work_that_was_launched_elsewhere_before_stays);
    tcase_add_test(calls, bad_calls_are_refused);
    tcase_add_test(calls, report_outlives_the_step);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
