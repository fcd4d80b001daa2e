/* Does a graph pay: what is missing for an answer, the rule at its border, the first run that never enters. */
#include <unistd.h>

#include "support.h"

static stepgraph_pin *pin, *scratch;
static stepgraph_step *step;

static void setup_step(uint32_t flags)
{
    pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    scratch = pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4, "fresh");
    step = step_make(session, "train", flags);
}

/* `launches` counted kernels and `commits` single commits. */
static void body(unsigned launches, unsigned commits)
{
    while (launches--)
        counted_inc(session, NULL, stepgraph_pin_address(scratch), 1);
    while (commits--)
        OK(stepgraph_pin_commit(pin, stepgraph_pin_address(scratch)));
}

static void runs(unsigned times, unsigned launches, unsigned commits)
{
    while (times--) {
        OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
        stepgraph_session_count(session, STEPGRAPH_KIND_GRAPH, 1); /* One of the host's is no launch that a graph could save. */
        body(launches, commits);
        OK(stepgraph_step_run_end(step));
    }
}

static void record_and_replay(unsigned launches, unsigned commits, unsigned times)
{
    begin_recording(step);
    body(launches, commits);
    OK(stepgraph_step_end(step));
    while (times--)
        OK(stepgraph_step_replay(step));
}

static stepgraph_verdict verdict(void)
{
    stepgraph_verdict v = STEPGRAPH_VERDICT_INIT;

    OK(stepgraph_step_get_verdict(step, &v));
    return v;
}

/* The answer is UNKNOWN, and this is the only bit that says why. */
#define ONLY_MISSING(bit)                                                                                                        \
    do {                                                                                                                         \
        stepgraph_verdict v_ = verdict();                                                                                        \
        ck_assert_uint_eq(v_.answer, STEPGRAPH_UNKNOWN);                                                                         \
        ck_assert_msg(v_.missing == (bit), "missing: %#x instead of %#x", v_.missing, (bit));                                    \
    } while (0)

START_TEST(step_that_did_nothing_is_unknown)
{
    stepgraph_verdict v;

    setup_step(0);
    v = verdict();
    ck_assert_uint_eq(v.answer, STEPGRAPH_UNKNOWN);
    ck_assert_uint_ne(v.missing & STEPGRAPH_MISSING_COUNTER, 0);
    ck_assert_uint_ne(v.missing & STEPGRAPH_MISSING_RUNS, 0);
    ck_assert_uint_ne(v.missing & STEPGRAPH_MISSING_DEVICE, 0);
    ck_assert_uint_ne(v.missing & STEPGRAPH_MISSING_REPLAYS, 0);
    ck_assert_int_eq(v.launches, -1);
    ck_assert_int_eq(v.pin_launches, -1);
    ck_assert_int_eq(v.rule_launches, -1);
    ck_assert_int_eq(v.rule_time, -1);
    ck_assert_uint_eq(v.warm_runs, 0);
    ck_assert_uint_eq(v.timed_replays, 0);
    ck_assert_double_lt(v.host_us_fresh, 0);
    ck_assert_double_lt(v.host_us_launch, 0);
    ck_assert_double_lt(v.host_us_replay, 0);
    ck_assert_double_lt(v.device_us_fresh, 0);
    ck_assert_double_lt(v.device_us_replay, 0);
    ck_assert_double_lt(v.step_us_fresh, 0);
    ck_assert_double_lt(v.step_us_replay, 0);
}
END_TEST

START_TEST(everything_measured_gives_an_answer)
{
    stepgraph_verdict v;

    setup_step(STEPGRAPH_STEP_TIMING);
    runs(4, 20, 1);
    record_and_replay(20, 1, 5);
    v = verdict();
    ck_assert_uint_eq(v.missing, 0);
    ck_assert_uint_ne(v.answer, STEPGRAPH_UNKNOWN);
    ck_assert_int_eq(v.launches, 20);
    ck_assert_int_eq(v.pin_launches, 1);
    ck_assert_uint_eq(v.pin_bytes, 4);
    ck_assert_uint_eq(v.warm_runs, 3);
    ck_assert_uint_eq(v.timed_replays, 5);
    ck_assert_int_eq(v.rule_launches, 1);
    ck_assert_double_ge(v.host_us_fresh, 0);
    ck_assert_double_ge(v.device_us_fresh, 0);
    ck_assert_double_ge(v.host_us_replay, 0);
    ck_assert_double_ge(v.device_us_replay, 0);
    /* The figures hang together. */
    ck_assert_double_eq_tol(v.host_us_launch, v.host_us_fresh / 20, 1e-6 * v.host_us_fresh + 1e-9);
    ck_assert_double_eq(v.step_us_fresh, fmax(v.host_us_fresh, v.device_us_fresh));
    ck_assert_double_eq(v.step_us_replay, fmax(v.host_us_replay, v.device_us_replay));
    ck_assert_int_eq(v.rule_time, v.step_us_replay < v.step_us_fresh);
    ck_assert_uint_eq(v.answer, v.rule_launches == 1 && v.rule_time == 1 ? STEPGRAPH_WIN : STEPGRAPH_NULL);
}
END_TEST

START_TEST(counter_that_was_never_wired_is_missing)
{
    stepgraph_verdict v;

    setup_step(STEPGRAPH_STEP_TIMING);
    for (int i = 0; i < 4; i++) {
        OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
        inc(stream, stepgraph_pin_address(pin), 1);
        OK(stepgraph_step_run_end(step));
    }
    begin_recording(step);
    inc(stream, stepgraph_pin_address(pin), 1);
    OK(stepgraph_step_end(step));
    for (int i = 0; i < 3; i++)
        OK(stepgraph_step_replay(step));
    ONLY_MISSING(STEPGRAPH_MISSING_COUNTER);
    v = verdict();
    ck_assert_int_eq(v.launches, -1); /* Not 0. */
    ck_assert_int_eq(v.rule_launches, -1);
    ck_assert_double_lt(v.host_us_launch, 0);
}
END_TEST

START_TEST(fewer_than_two_warm_runs_are_missing)
{
    setup_step(STEPGRAPH_STEP_TIMING);
    runs(2, 10, 0); /* The first does not count. */
    record_and_replay(10, 0, 3);
    ONLY_MISSING(STEPGRAPH_MISSING_RUNS);
    runs(1, 10, 0);
    ck_assert_uint_eq(verdict().missing, 0);
}
END_TEST

START_TEST(device_time_is_missing_without_timing)
{
    stepgraph_verdict v;

    setup_step(0);
    runs(4, 10, 0);
    record_and_replay(10, 0, 3);
    v = verdict();
    ck_assert_uint_eq(v.answer, STEPGRAPH_UNKNOWN);
    ck_assert_uint_ne(v.missing & STEPGRAPH_MISSING_DEVICE, 0);
    ck_assert_uint_ne(v.missing & STEPGRAPH_MISSING_REPLAYS, 0);
    ck_assert_uint_eq(
        v.missing & (STEPGRAPH_MISSING_COUNTER | STEPGRAPH_MISSING_RUNS | STEPGRAPH_MISSING_UNSTEADY | STEPGRAPH_MISSING_EXACT),
        0);
    ck_assert_double_lt(v.device_us_fresh, 0);
    ck_assert_int_eq(v.rule_time, -1);
    /* The launches are known without it. */
    ck_assert_int_eq(v.launches, 10);
    ck_assert_int_eq(v.pin_launches, 0);
    ck_assert_int_eq(v.rule_launches, 1);
}
END_TEST

START_TEST(replays_are_missing_until_one_was_timed)
{
    setup_step(STEPGRAPH_STEP_TIMING);
    runs(4, 10, 0);
    ONLY_MISSING(STEPGRAPH_MISSING_REPLAYS);
    ck_assert_int_eq(verdict().pin_launches, -1); /* No graph. */
    record_and_replay(10, 0, 0);
    ONLY_MISSING(STEPGRAPH_MISSING_REPLAYS);
    ck_assert_int_eq(verdict().pin_launches, 0);
    OK(stepgraph_step_replay(step));
    ck_assert_uint_eq(verdict().missing, 0);
}
END_TEST

START_TEST(unsteady_runs_give_no_answer)
{
    setup_step(STEPGRAPH_STEP_TIMING);
    runs(3, 10, 0);
    runs(1, 11, 0);
    record_and_replay(11, 0, 3);
    ONLY_MISSING(STEPGRAPH_MISSING_UNSTEADY);
    runs(1, 11, 0);
    ck_assert_uint_eq(verdict().missing, 0);
    ck_assert_int_eq(verdict().launches, 11);
}
END_TEST

static void *count_ten(void *unused)
{
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 10);
    return unused;
}

static void threaded_runs(unsigned times)
{
    pthread_t thread;

    while (times--) {
        OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
        ck_assert_int_eq(pthread_create(&thread, NULL, count_ten, NULL), 0);
        pthread_join(thread, NULL);
        OK(stepgraph_step_run_end(step));
    }
}

static stepgraph_status drain(void *drains)
{
    ++*(unsigned *)drains;
    return STEPGRAPH_OK;
}

START_TEST(lower_bound_without_a_drain_gives_no_answer)
{
    setup_step(STEPGRAPH_STEP_TIMING);
    threaded_runs(4);
    record_and_replay(10, 0, 3);
    ONLY_MISSING(STEPGRAPH_MISSING_EXACT);
}
END_TEST

START_TEST(drain_callback_makes_the_launches_exact)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    unsigned drains = 0;

    config.drain = drain;
    config.drain_user = &drains;
    reopen(&config);
    setup_step(STEPGRAPH_STEP_TIMING);
    threaded_runs(4);
    ck_assert_uint_ge(drains, 4);
    record_and_replay(10, 0, 3);
    ck_assert_uint_eq(verdict().missing, 0);
    ck_assert_int_eq(verdict().launches, 10);
}
END_TEST

/* P < L - 1, at its border. */
START_TEST(graph_pays_only_if_pins_cost_less_than_launches_minus_one)
{
    static const struct {
        unsigned launches, commits;
        int32_t holds;
    } border[] = {{1, 0, 0}, {2, 0, 1}, {4, 3, 0}, {5, 3, 1}, {3, 3, 0}, {9, 8, 0}, {10, 8, 1}};
    unsigned l = border[_i].launches, p = border[_i].commits;
    stepgraph_verdict v;

    setup_step(STEPGRAPH_STEP_TIMING);
    runs(4, l, p);
    record_and_replay(l, p, 3);
    v = verdict();
    ck_assert_uint_eq(v.missing, 0);
    ck_assert_int_eq(v.launches, l);
    ck_assert_int_eq(v.pin_launches, p);
    ck_assert_uint_eq(v.pin_bytes, 4 * p);
    ck_assert_int_eq(v.rule_launches, border[_i].holds);
    if (!border[_i].holds)
        ck_assert_uint_eq(v.answer, STEPGRAPH_NULL);
}
END_TEST

START_TEST(many_pins_in_one_launch_cost_one)
{
    stepgraph_pin *many[20];
    uint64_t fresh[20];
    stepgraph_verdict v;

    setup_step(STEPGRAPH_STEP_TIMING);
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        many[i] = pin_make(session, STEPGRAPH_ROLE_STATE, 4, name);
        fresh[i] = stepgraph_pin_address(scratch);
    }
    for (int i = 0; i < 4; i++) {
        OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
        body(10, 0);
        OK(stepgraph_pin_commit_many(session, 20, many, fresh));
        OK(stepgraph_step_run_end(step));
    }
    begin_recording(step);
    body(10, 0);
    OK(stepgraph_pin_commit_many(session, 20, many, fresh));
    OK(stepgraph_step_end(step));
    OK(stepgraph_step_replay(step));
    v = verdict();
    ck_assert_int_eq(v.launches, 10); /* The library's own launches are not the host's. */
    ck_assert_int_eq(v.pin_launches, 1);
    ck_assert_uint_eq(v.pin_bytes, 80);
    ck_assert_int_eq(v.rule_launches, 1);
}
END_TEST

START_TEST(first_run_never_enters)
{
    stepgraph_verdict v;

    setup_step(STEPGRAPH_STEP_TIMING);
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
    body(500, 0);
    usleep(400000);
    OK(stepgraph_step_run_end(step));
    ck_assert_uint_eq(verdict().warm_runs, 0);
    runs(1, 5, 0);
    v = verdict();
    ck_assert_uint_eq(v.warm_runs, 1);
    ck_assert_double_lt(v.host_us_fresh, 200000); /* Half of what the first one took, were it in there. */
    runs(1, 5, 0);
    record_and_replay(5, 0, 1);
    v = verdict();
    ck_assert_uint_eq(v.missing, 0);
    ck_assert_uint_eq(v.warm_runs, 2);
    ck_assert_int_eq(v.launches, 5);
}
END_TEST

START_TEST(runs_of_every_kind_are_measured)
{
    setup_step(STEPGRAPH_STEP_TIMING);
    runs(1, 5, 0);
    for (int kind = STEPGRAPH_RUN_WARMUP; kind <= STEPGRAPH_RUN_FALLBACK; kind++) {
        OK(stepgraph_step_run_begin(step, (stepgraph_run)kind));
        body(5, 0);
        OK(stepgraph_step_run_end(step));
    }
    ck_assert_uint_eq(verdict().warm_runs, 3);
}
END_TEST

START_TEST(timing_can_be_switched_on_later)
{
    setup_step(0);
    runs(3, 5, 0);
    OK(stepgraph_step_set_timing(step, 1));
    runs(3, 5, 0);
    record_and_replay(5, 0, 2);
    ck_assert_uint_eq(verdict().missing, 0);
    ck_assert_uint_eq(verdict().timed_replays, 2);
    OK(stepgraph_step_set_timing(step, 0));
    OK(stepgraph_step_replay(step));
    ck_assert_uint_eq(verdict().timed_replays, 2);
    ck_assert_uint_eq(step_stats(step).replays, 3);
}
END_TEST

START_TEST(timing_does_not_change_the_result)
{
    setup_step(STEPGRAPH_STEP_TIMING);
    runs(3, 5, 1);
    record_and_replay(5, 1, 7);
    ck_assert_float_eq(pin_float(pin), 5 * 10);
    ck_assert_uint_eq(step_stats(step).nodes_total, 6); /* Events are around the launch, not in the graph. */
}
END_TEST

START_TEST(untimed_steps_read_no_clock_and_record_no_event)
{
    unsigned long records;

    setup_step(0);
    runs(1, 5, 1);
    record_and_replay(5, 1, 1);
    records = driver_calls("cuEventRecord");
    runs(3, 5, 1);
    for (int i = 0; i < 5; i++)
        OK(stepgraph_step_replay(step));
    ck_assert_uint_eq(driver_calls("cuEventRecord"), records);
}
END_TEST

START_TEST(device_time_of_a_replay_is_that_of_its_kernels)
{
    stepgraph_verdict v;

    setup_step(STEPGRAPH_STEP_TIMING);
    begin_recording(step);
    spin(stream, 20);
    OK(stepgraph_step_end(step));
    for (int i = 0; i < 3; i++)
        OK(stepgraph_step_replay(step));
    v = verdict();
    ck_assert_uint_eq(v.timed_replays, 3);
    ck_assert_double_ge(v.device_us_replay, 19000);
    ck_assert_double_ge(v.step_us_replay, 19000);
}
END_TEST

START_TEST(nothing_is_judged_while_recording)
{
    stepgraph_verdict v = STEPGRAPH_VERDICT_INIT;
    stepgraph_stage stage = STEPGRAPH_STAGE_INIT;

    setup_step(STEPGRAPH_STEP_TIMING);
    runs(3, 5, 0);
    begin_recording(step);
    body(5, 0);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_get_verdict(step, &v), "cannot be judged", "recording");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_get_stage(step, 0, &stage), "cannot be collected", "recording");
    OK(stepgraph_step_end(step));
    OK(stepgraph_step_get_verdict(step, &v));
    OK(stepgraph_step_get_stage(step, 0, &stage));
}
END_TEST

START_TEST(verdict_is_filled_up_to_its_size)
{
    LONGER(stepgraph_verdict, 8) u;
    size_t size = offsetof(stepgraph_verdict, pin_bytes);

    setup_step(0);
    runs(3, 5, 0);
    memset(&u, 0x5a, sizeof u);
    u.known.size = size;
    OK(stepgraph_step_get_verdict(step, &u.known));
    ck_assert_int_eq(u.known.launches, 5);
    for (size_t i = size; i < sizeof u; i++)
        ck_assert_msg(u.bytes[i] == 0x5a, "byte %zu was written", i);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_get_verdict(step, NULL), "");
    u.known.size = 0;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_get_verdict(step, &u.known), "size");
}
END_TEST

/* One counted run is not enough for an answer, but somebody does count. */
START_TEST(one_counted_run_lacks_a_second_and_no_counter)
{
    setup_step(0);
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
    counted_inc(session, NULL, stepgraph_pin_address(pin), 1);
    OK(stepgraph_step_run_end(step));
    ck_assert_uint_eq(verdict().missing & (STEPGRAPH_MISSING_COUNTER | STEPGRAPH_MISSING_RUNS), STEPGRAPH_MISSING_RUNS);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("verdict");
    TCase *missing = unit_case(suite, "missing"), *rule = unit_case(suite, "rule"), *timing = unit_case(suite, "timing");

    tcase_add_test(missing, one_counted_run_lacks_a_second_and_no_counter);
    tcase_add_test(missing, step_that_did_nothing_is_unknown);
    tcase_add_test(missing, everything_measured_gives_an_answer);
    tcase_add_test(missing, counter_that_was_never_wired_is_missing);
    tcase_add_test(missing, fewer_than_two_warm_runs_are_missing);
    tcase_add_test(missing, device_time_is_missing_without_timing);
    tcase_add_test(missing, replays_are_missing_until_one_was_timed);
    tcase_add_test(missing, unsteady_runs_give_no_answer);
    tcase_add_test(missing, lower_bound_without_a_drain_gives_no_answer);
    tcase_add_test(missing, drain_callback_makes_the_launches_exact);

    tcase_add_loop_test(rule, graph_pays_only_if_pins_cost_less_than_launches_minus_one, 0, 7);
    tcase_add_test(rule, many_pins_in_one_launch_cost_one);
    tcase_add_test(rule, first_run_never_enters);
    tcase_add_test(rule, runs_of_every_kind_are_measured);

    tcase_add_test(timing, timing_can_be_switched_on_later);
    tcase_add_test(timing, timing_does_not_change_the_result);
    add_controlled_test(timing, untimed_steps_read_no_clock_and_record_no_event);
    tcase_add_test(timing, device_time_of_a_replay_is_that_of_its_kernels);
    tcase_add_test(timing, nothing_is_judged_while_recording);
    tcase_add_test(timing, verdict_is_filled_up_to_its_size);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
