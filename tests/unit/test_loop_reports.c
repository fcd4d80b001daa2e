/* What a loop reports, what it measures for that, and what the clock decides. */
#include <unistd.h>

#include "looping.h"

static void train_marked(uint64_t k)
{
    OK(stepgraph_step_mark(turn.step, "forward"));
    train(k);
    OK(stepgraph_step_mark(turn.step, "update"));
    count_one(k);
}

static void balanced(const char *json)
{
    int depth = 0, quoted = 0;

    for (; *json != '\0'; json++) {
        if (*json == '\\')
            json++;
        else if (*json == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += *json == '{' || *json == '[' ? 1 : *json == '}' || *json == ']' ? -1 : 0;
        ck_assert_int_ge(depth, 0);
    }
    ck_assert_int_eq(depth, 0);
    ck_assert_int_eq(quoted, 0);
}

START_TEST(reports_tell_stages_counts_and_the_verdict)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_TRACE);
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    const char *text = NULL;

    config.warmup_runs = 4;
    loop_make(&config);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_JSON, &text));
    balanced(text);
    go(0, 50, train_marked);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TEXT, &text));
    ck_assert_msg(lacks(text, (const char *[]){"loop 'train'", "50 steps", "forward", "update", "verdict", "replay", "checks",
                                               NULL}) == NULL,
                  "%s", text);
    if (getenv("LOOP_LOG") != NULL)
        puts(text);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_JSON, &text));
    ck_assert_ptr_null(lacks(text, (const char *[]){"\"stages\"", "\"forward\"", "\"verdict\"", "\"rung\": \"replay\"", NULL}));
    balanced(text);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text));
    ck_assert_ptr_null(
        lacks(text, (const char *[]){"\"traceEvents\"", "step 0: warm-up", "step 49: replay", "\"tid\": 2", "forward", NULL}));
    balanced(text);
    if (getenv("LOOP_LOG") != NULL)
        puts(text);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_report(loop, 9, &text), "form");
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.missing, 0);
    ck_assert_int_eq(verdict.launches, 3);
    OK(stepgraph_loop_begin(loop, 50, &turn));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_report(loop, STEPGRAPH_REPORT_TEXT, &text), "open");
}
END_TEST

/* *weight = *weight + 1 by the driver's own call, which nobody counts. */
static void count_in_silence(uint64_t k)
{
    CUdeviceptr p = stepgraph_pin_address(weight);
    float by = 1;

    (void)k;
    CU(LaunchKernel(kernels.inc, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&p, &by}, NULL));
}

/* The verdict says why it is none, in words and as data; what is known is told all the same. */
START_TEST(verdict_without_a_counter_is_unknown_and_says_so)
{
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    const char *text = NULL;

    loop_make(NULL);
    go(0, 4, count_in_silence); /* Three to warm up, of which the first is none, and a recording. */
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.answer, STEPGRAPH_UNKNOWN);
    ck_assert_uint_eq(verdict.missing, STEPGRAPH_MISSING_COUNTER | STEPGRAPH_MISSING_REPLAYS);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TEXT, &text));
    ck_assert_ptr_null(lacks(text, (const char *[]){"verdict: UNKNOWN (P < L - 1: unknown; time: unknown)",
                                                    "; nobody counts launches; no replay was timed\n", NULL}));
    go(4, 40, count_in_silence);
    OK(stepgraph_session_wait(session));
    take(40, count_in_silence);
    RUNG(REPLAY, NONE);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.answer, STEPGRAPH_UNKNOWN);
    ck_assert_uint_eq(verdict.missing, STEPGRAPH_MISSING_COUNTER);
    ck_assert_int_ge(verdict.rule_time, 0);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_JSON, &text));
    ck_assert_ptr_null(lacks(text, (const char *[]){"\"answer\": \"UNKNOWN\"", "\"launches\": -1", "\"rule_launches\": -1",
                                                    "\"missing\": [\"nobody counts launches\"]", NULL}));
}
END_TEST

START_TEST(trace_is_kept_only_if_asked_for)
{
    const char *text = NULL;

    loop_make(NULL);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text), "STEPGRAPH_LOOP_TRACE");
}
END_TEST

START_TEST(verdict_is_known_after_the_first_replays_and_measuring_stops)
{
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;

    loop_make(NULL);
    go(0, 60, train);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.missing, 0);
    ck_assert_uint_ne(verdict.answer, STEPGRAPH_UNKNOWN);
    ck_assert_uint_eq(verdict.timed_replays, 16);
    ck_assert_double_ne(stats_now().seconds_saved, 0);
}
END_TEST

/* One kernel is slow where the step is recorded, or only where it is launched. */
static void count_slowly(bool slow)
{
    uint64_t ns = slow ? 3000000 : 0;

    launch_n(kernels.spin, 1, (void *[]){&ns});
    count_one(0);
}

static void slow_if_recorded(uint64_t k)
{
    (void)k;
    count_slowly(recording());
}

static void slow_if_launched(uint64_t k)
{
    (void)k;
    count_slowly(!recording());
}

/* The host is slow where it records, and what it passes to a kernel is another value each time. */
static void slow_to_record(uint64_t k)
{
    CUdeviceptr p = stepgraph_pin_address(fresh);
    float value = (float)k;

    if (recording())
        usleep(3000);
    launch_n(kernels.setv, 1, (void *[]){&p, &value});
    count_one(k);
}

START_TEST(k26_slower_than_launching_goes_back_to_launching)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_SOFTWARE_CLOCK | STEPGRAPH_LOOP_NO_CHECK);
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;

    loop_make(&config);
    go(0, 60, _i == 0 ? slow_if_recorded : slow_to_record);
    ck_assert_float_eq(pin_float(weight), 60);
    RUNG(FRESH, CLOCK);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "a step takes"));
    if (_i == 1) /* And why it was. */
        ck_assert_msg(strstr(stats_now().words, "which it has to be: node ") != NULL && strstr(stats_now().words, "setv") != NULL, "%s",
                      stats_now().words);
    ck_assert_uint_ge(stats_now().turns[_i == 0 ? STEPGRAPH_TURN_REPLAY : STEPGRAPH_TURN_RERECORD], 16);
    ck_assert_uint_gt(stats_now().causes[STEPGRAPH_WHY_CLOCK], 10);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    if (_i == 0)
        ck_assert_int_eq(verdict.rule_time, 0);
}
END_TEST

/* What the clock has said is forgotten with the rest, and it is asked again. */
START_TEST(k26_clock_is_asked_again_after_a_drop)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_SOFTWARE_CLOCK | STEPGRAPH_LOOP_NO_CHECK);

    loop_make(&config);
    go(0, 60, slow_to_record);
    RUNG(FRESH, CLOCK);
    OK(stepgraph_loop_drop(loop, STEPGRAPH_KEY_ALL, NULL));
    go(60, 120, slow_to_record);
    RUNG(FRESH, CLOCK);
    ck_assert_uint_ge(stats_now().turns[STEPGRAPH_TURN_RERECORD], 32);
    ck_assert_float_eq(pin_float(weight), 120);
}
END_TEST

START_TEST(faster_than_launching_stays)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_SOFTWARE_CLOCK | STEPGRAPH_LOOP_NO_CHECK);
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;

    loop_make(&config);
    go(0, 60, slow_if_launched);
    ck_assert_float_eq(pin_float(weight), 60);
    RUNG(REPLAY, NONE);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_int_eq(verdict.rule_time, 1);
    ck_assert_double_gt(stats_now().seconds_saved, 0.05); /* 55 replays, each of them 3 ms faster. */
}
END_TEST

static unsigned count_words(const char *text, const char *words)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        n++;
    return n;
}

/* Keep the device busy with something else. */
static CUevent spin_begins(void)
{
    CUevent over;

    OK(stepgraph_session_wait(session));
    CU(EventCreate(&over, CU_EVENT_DISABLE_TIMING));
    spin(stream, 300);
    CU(EventRecord(over, stream));
    return over;
}

START_TEST(trace_keeps_the_latest_turns)
{
    enum { KEPT = 8, STEPS = 30 };
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_TRACE);
    const char *text = NULL;
    char name[40];

    config.trace_turns = KEPT;
    loop_make(&config);
    go(0, STEPS, count_one);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text));
    ck_assert_uint_eq(count_words(text, "\"name\": \"step "), KEPT);
    for (unsigned k = STEPS - KEPT; k < STEPS; k++) {
        snprintf(name, sizeof name, "\"name\": \"step %u: ", k);
        ck_assert_uint_eq(count_words(text, name), 1);
    }
}
END_TEST

/* It keeps the device busy for much longer than the host takes to launch it. */
static void spin_and_count(uint64_t k)
{
    spin(stream, 2);
    count_one(k);
}

START_TEST(trace_shows_the_device_at_one_thing_at_a_time)
{
    enum { AHEAD = 20 };
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_TRACE);
    const char *text = NULL;
    double end = 0;
    unsigned n = 0;

    loop_make(&config);
    go(0, 10, spin_and_count);
    go_ahead(10, 10 + AHEAD);
    OK(stepgraph_session_wait(session));
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text));
    for (const char *at = text; (at = strstr(at, "\"ph\": \"X\", \"pid\": 1, \"tid\": 2, ")) != NULL; at++) {
        double start, lasts;
        ck_assert_int_eq(sscanf(strstr(at, "\"ts\""), "\"ts\": %lf, \"dur\": %lf", &start, &lasts), 2);
        ck_assert_double_ge(start, end - 0.0005); /* In microseconds, written to the nanosecond. */
        end = start + lasts;
        n++;
    }
    ck_assert_uint_ge(n, AHEAD);
}
END_TEST

/* And it still is. */
static void spin_goes_on(CUevent over)
{
    ck_assert_int_eq(cu.EventQuery(over), CUDA_ERROR_NOT_READY);
    CU(EventDestroy(over));
}

START_TEST(measuring_waits_for_nothing)
{
    stepgraph_loop_config config = config_with(_i == 0 ? STEPGRAPH_LOOP_TIMING : STEPGRAPH_LOOP_TRACE);
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    const char *text = NULL;
    unsigned before;
    CUevent over;

    loop_make(&config);
    go(0, 40, count_one);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.timed_replays, 32);
    over = spin_begins();
    go_ahead(40, 90);
    spin_goes_on(over);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.timed_replays, 82);
    RUNG(REPLAY, NONE);
    if (_i == 0)
        return;
    /* And all of them are in the trace, with their time on the device. */
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text));
    before = count_words(text, "\"tid\": 2");
    ck_assert_uint_ge(before, 82);
    go(90, 100, count_one);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text));
    ck_assert_uint_eq(count_words(text, "\"tid\": 2"), before + 10);
}
END_TEST

START_TEST(verdict_waits_for_nothing)
{
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    CUevent over;

    loop_make(NULL);
    go(0, 8, count_one);
    RUNG(REPLAY, NONE);
    over = spin_begins();
    go_ahead(8, 60);
    spin_goes_on(over);
    /* It is taken all the same, a little later, from the first 16. */
    OK(stepgraph_session_wait(session));
    take(60, count_one);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.missing, 0);
    ck_assert_uint_eq(verdict.timed_replays, 16);
    ck_assert_double_ne(stats_now().seconds_saved, 0);
}
END_TEST

/* Events are made once, and used again; two a turn, and a question or two. What is in flight before is asked about as well. */
START_TEST(measured_turns_make_few_driver_calls)
{
    static const struct {
        const char *entry;
        unsigned long most;
    } calls[] = {{"cuEventCreate", 0},      {"cuEventRecord", 200}, {"cuEventElapsedTime", 216},
                 {"cuEventSynchronize", 0}, {"cuEventQuery", 0},    {"cuStreamSynchronize", 0},
                 {"cuMemAlloc", 0},         {"cuMemHostAlloc", 0},  {"cuGraphLaunch", 100}};
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_TIMING);
    unsigned long before[sizeof calls / sizeof *calls];

    loop_make(&config);
    go(0, 40, count_one);
    spin(stream, 20); /* Far ahead of the device once, so that there are as many events as there will be. */
    go_ahead(40, 80);
    OK(stepgraph_session_wait(session));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        before[i] = driver_calls(calls[i].entry);
    go_ahead(80, 180);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        ck_assert_msg(driver_calls(calls[i].entry) - before[i] <= calls[i].most, "%lu calls of %s",
                      driver_calls(calls[i].entry) - before[i], calls[i].entry);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop reports");
    TCase *reports = loop_case(suite, "reports");

    tcase_add_test(reports, reports_tell_stages_counts_and_the_verdict);
    tcase_add_test(reports, verdict_without_a_counter_is_unknown_and_says_so);
    tcase_add_test(reports, trace_is_kept_only_if_asked_for);
    tcase_add_test(reports, trace_keeps_the_latest_turns);
    tcase_add_test(reports, trace_shows_the_device_at_one_thing_at_a_time);
    tcase_add_test(reports, verdict_is_known_after_the_first_replays_and_measuring_stops);
    tcase_add_loop_test(reports, k26_slower_than_launching_goes_back_to_launching, 0, 2);
    tcase_add_test(reports, k26_clock_is_asked_again_after_a_drop);
    tcase_add_test(reports, faster_than_launching_stays);
    tcase_add_loop_test(reports, measuring_waits_for_nothing, 0, 2);
    tcase_add_test(reports, verdict_waits_for_nothing);
    add_controlled_test(reports, measured_turns_make_few_driver_calls);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
