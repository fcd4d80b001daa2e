/* A loop that is used wrongly, given up, or failed by the driver. */
#include "looping.h"

/* ---- misuse, and giving up -------------------------------------------------------------------------------------------- */

START_TEST(turn_that_is_to_be_taken_again_cannot_be_left)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_RESTORE);

    loop_make(&config);
    OK(stepgraph_loop_begin(loop, 0, &turn));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_begin(loop, 0, &turn), "open");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_drop(loop, 0, NULL), "not over", "end it");
    count_one(0);
    OK(stepgraph_loop_end(loop, &turn));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_end(loop, &turn), "no turn is open");
    ck_assert_int_eq(turn.again, 1);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_begin(loop, 1, &turn), "step 0", "again");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_drop(loop, 0, NULL), "step 0", "go round while turn.again is set", "stepgraph_loop_cancel()");
    turn.key = 1;
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_begin(loop, 0, &turn), "step 0", "again");
    turn.key = 0;
    OK(stepgraph_loop_cancel(loop));
    go(0, 20, count_one);
    ck_assert_float_eq(pin_float(weight), 20);
}
END_TEST

static void no_word_of_the_lifecycle_but(const char *called)
{
    const char *const calls[] = {"stepgraph_step_prepare()", "stepgraph_step_capture()", "stepgraph_step_end()"};

    for (int i = 0; i < 3; i++)
        if (called == NULL || strcmp(called, calls[i]) != 0)
            ck_assert_msg(strstr(last_words(), calls[i]) == NULL, "what a host on a loop never calls: %s", last_words());
}

#define FAILS_AS_IN_A_TURN(call)                                                                                            \
    do {                                                                                                                         \
        FAILS(STEPGRAPH_ERR_STATE, call, "stepgraph_loop_begin()", "stepgraph_loop_end()");                                      \
        no_word_of_the_lifecycle_but(NULL);                                                                                              \
    } while (0)

/* A host on a loop knows nothing of prepare, capture and end. */
START_TEST(what_cannot_be_done_while_a_turn_records_is_said_in_words_of_the_loop)
{
    stepgraph_sample sample = STEPGRAPH_SAMPLE_INIT;
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *made = NULL;
    float value[N] = {0};

    config.role = STEPGRAPH_ROLE_STATE;
    config.bytes = 4;
    config.name = "late";
    loop_make(NULL);
    go(0, 3, count_one);
    OK(stepgraph_loop_begin(loop, 3, &turn));
    ck_assert(recording());
    FAILS_AS_IN_A_TURN(stepgraph_session_wait(session));
    FAILS_AS_IN_A_TURN(stepgraph_session_flush(session));
    FAILS_AS_IN_A_TURN(stepgraph_session_sample(session, STEPGRAPH_SAMPLE_DRAIN, &sample));
    FAILS_AS_IN_A_TURN(stepgraph_pin_read(loss, value, sizeof(float)));
    FAILS_AS_IN_A_TURN(stepgraph_pin_write(weight, value, BYTES));
    FAILS_AS_IN_A_TURN(stepgraph_pin_create(session, &config, &made));
    FAILS_AS_IN_A_TURN(stepgraph_pin_destroy(loss));
    count_one(3);
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert_int_eq(turn.again, 0);
}
END_TEST

/* A host that resets the loop's step is told of the loop's calls too, and of the one that helps. */
START_TEST(step_of_a_loop_whose_state_was_changed_is_told_of_the_loop)
{
    loop_make(NULL);
    go(0, 12, count_one);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_prepare(stepgraph_loop_step(loop, 0)), "is the loop's to change", "stepgraph_loop_drop()");
    no_word_of_the_lifecycle_but("stepgraph_step_prepare()");
    OK(stepgraph_step_reset(stepgraph_loop_step(loop, 0)));
    OK(stepgraph_loop_begin(loop, 12, &turn));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_end(loop, &turn), "is the loop's to change", "stepgraph_loop_drop()");
    no_word_of_the_lifecycle_but(NULL);
    OK(stepgraph_loop_drop(loop, 0, "its step was reset"));
    go(12, 30, count_one);
    ck_assert_float_eq(pin_float(weight), 30);
    RUNG(REPLAY, NONE);
}
END_TEST

/* A stream that is not joined, and a call that recordings do not survive, found by the end, a mark or a launch. */
START_TEST(what_breaks_the_recording_of_a_turn_is_said_in_words_of_the_loop)
{
    CUstream side = stream_make(CU_STREAM_NON_BLOCKING);

    loop_make(NULL);
    go(0, 3, count_one);
    OK(stepgraph_loop_begin(loop, 3, &turn));
    ck_assert(recording());
    count_one(3);
    if (_i == 0)
        OK(stepgraph_step_fork(turn.step, side, "side"));
    else
        (void)cu.StreamSynchronize(stream);
    if (_i == 2)
        FAILS(STEPGRAPH_ERR_CAPTURE, stepgraph_step_mark(turn.step, "loss"), "before stepgraph_loop_begin()");
    if (_i == 3)
        FAILS(STEPGRAPH_ERR_CAPTURE, stepgraph_pin_commit(weight, stepgraph_pin_address(fresh)), "before stepgraph_loop_begin()");
    no_word_of_the_lifecycle_but(NULL);
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert_int_eq(turn.again, 1);
    RUNG(FRESH, BROKEN);
    ck_assert_ptr_null(lacks(stats_now().words, (const char *[]){_i == 0 ? "before stepgraph_loop_end()" : "before stepgraph_loop_begin()", NULL}));
    ck_assert_ptr_null(strstr(stats_now().words, "stepgraph_step_prepare()"));
    ck_assert_ptr_null(strstr(stats_now().words, "stepgraph_step_end()"));
}
END_TEST

/* Outside of a turn feeds wait for the replay, all of them together. */
static void feeds_wait(void)
{
    uint64_t copies = pin_stats(session).feed_copies;

    feed(0);
    ck_assert_uint_eq(pin_stats(session).feed_copies, copies);
}

START_TEST(recording_that_could_not_begin_can_be_cancelled)
{
    loop_make(NULL);
    go(0, 3, count_one);
    driver_fails("cuStreamBeginCapture", 1, CUDA_ERROR_OUT_OF_MEMORY);
    OK(stepgraph_loop_begin(loop, 3, &turn));
    no_driver_fails();
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_RECORD);
    ck_assert_int_eq(turn.run, 0);
    OK(stepgraph_loop_cancel(loop));
    go(3, 20, count_one);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(stats_now().recordings_failed, 0);
    ck_assert_float_eq(pin_float(weight), 20);
}
END_TEST

START_TEST(any_turn_can_be_cancelled)
{
    stepgraph_loop_config config = config_with(_i % 2 == 0 ? 0 : STEPGRAPH_LOOP_RESTORE);
    uint64_t cancelled = 0;

    if (_i >= 2)
        config.fresh_every = 5;
    loop_make(&config);
    for (uint64_t k = 0; k < 40; k++) {
        OK(stepgraph_loop_begin(loop, k, &turn));
        if (turn.kind != STEPGRAPH_TURN_WARMUP && turn.kind != STEPGRAPH_TURN_FRESH && turn.kind != STEPGRAPH_TURN_CHECK) {
            /* Nothing has run yet, or it is undone. */
            if (turn.run)
                count_one(k);
            OK(stepgraph_loop_cancel(loop));
            ck_assert_uint_eq(stats_now().cancelled, ++cancelled);
            OK(stepgraph_loop_cancel(loop));
            ck_assert_uint_eq(stats_now().cancelled, cancelled);
        } else {
            OK(stepgraph_loop_cancel(loop));
            cancelled++;
        }
        feeds_wait();
        take(k, count_one);
    }
    ck_assert_float_eq(pin_float(weight), 40);
    ck_assert_uint_eq(stats_now().steps, 40);
}
END_TEST

START_TEST(loop_can_be_destroyed_in_any_turn)
{
    stepgraph_loop_config config = config_with(_i >= 20 ? STEPGRAPH_LOOP_RESTORE : 0);

    loop_make(&config);
    go(0, (uint64_t)_i % 20, train);
    OK(stepgraph_loop_begin(loop, (uint64_t)_i % 20, &turn));
    if (turn.run)
        train(0);
    teardown();
    feeds_wait();
}
END_TEST

START_TEST(feed_that_was_forgotten_is_an_error_and_can_be_made_good)
{
    /* A replay like any other; the first one, behind the last check; behind a step that was launched; the first recording, and the second. */
    static const uint64_t places[] = {20, 8, 20, 3, 4};
    stepgraph_loop_config config = config_with(0);
    uint64_t forgotten = places[_i];
    float want[N];

    without_loop(30, train, want);
    config.step_flags = STEPGRAPH_STEP_STRICT_FEEDS;
    config.fresh_every = _i == 2 ? 19 : 0;
    loop_make(&config);
    go(0, forgotten, train);
    OK(stepgraph_loop_begin(loop, forgotten, &turn));
    ck_assert_int_eq(turn.feed, 1);
    if (turn.run)
        train(forgotten);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_loop_end(loop, &turn), "'input'", "call stepgraph_pin_feed() in each turn with turn.feed set");
    go(forgotten, 30, train);
    same_as(want);
    RUNG(REPLAY, NONE);
}
END_TEST

START_TEST(options_are_checked)
{
    stepgraph_loop_config config = config_with(1u << 31);
    stepgraph_check_config check = STEPGRAPH_CHECK_CONFIG_INIT;

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, &config, &loop), "flags");
    config = config_with(0);
    config.max_graphs = 65;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, &config, &loop), "64");
    config.max_graphs = 64;
    OK(stepgraph_loop_create(session, &config, &loop));
    teardown();
    config = config_with(0);
    config.step_flags = 1u << 31;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, &config, &loop), "flags");
    config = config_with(0);
    config.check = &check;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, &config, &loop), "enqueue");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(NULL, NULL, &loop), "session");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, NULL, NULL), "loop_out");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_begin(NULL, 0, &turn), "loop");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_end(NULL, &turn), "loop");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_cancel(NULL), "loop");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_drop(NULL, 0, NULL), "loop");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_report(NULL, 1, &(const char *){NULL}), "loop");
    loop_make(NULL);
    turn.flags = 1u << 31;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_begin(loop, 0, &turn), "flags");
    turn.flags = 0;
    turn.key = STEPGRAPH_KEY_ALL;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_begin(loop, 0, &turn), "key");
    turn.key = 0;
    turn.size = 8;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_begin(loop, 0, &turn), "size");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_end(loop, &turn), "begin");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_get_verdict(loop, 0, &(stepgraph_verdict)STEPGRAPH_VERDICT_INIT), "key 0");
}
END_TEST

/* ---- what the driver does not let it do -------------------------------------------------------------------------------- */

static const char *const entries[] = {
    "cuGraphInstantiateWithParams",
    "cuGraphExecUpdate",
    "cuGraphUpload",
    "cuGraphLaunch",
    "cuStreamBeginCapture",
    "cuMemAlloc",
    "cuMemHostAlloc",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventElapsedTime",
    "cuMemcpyHtoDAsync",
    "cuMemcpyDtoHAsync",
    "cuMemsetD8Async",
    "cuStreamSynchronize",
    "cuMemGetInfo",
    "cuGraphGetNodes",
    "cuGraphKernelNodeGetParams",
    "cuStreamGetCaptureInfo",
    "cuEventSynchronize",
};

/* The host gives up where the loop tells it to, and takes the step again where it can. */
START_TEST(failing_driver_call_is_told_or_lived_with)
{
    const char *entry = entries[_i];

    for (unsigned nth = 1; nth <= 12; nth++) {
        stepgraph_loop_config config = config_with(nth % 2 == 0 ? STEPGRAPH_LOOP_RESTORE : 0);
        float zeros[N] = {0};
        uint64_t told = 0;

        unit_leaves_objects(1);
        OK(stepgraph_pin_write(weight, zeros, BYTES));
        config.check_every = 4;
        loop_make(&config);
        for (uint64_t k = 0; k < 30; k++) {
            stepgraph_status status;
            if (k == 1)
                driver_fails(entry, nth, CUDA_ERROR_OUT_OF_MEMORY);
            do {
                status = stepgraph_loop_begin(loop, k, &turn);
                if (status != STEPGRAPH_OK)
                    break;
                if (turn.run)
                    (void)counted(session, NULL, kernels.inc,
                                  (void *[]){&(CUdeviceptr){stepgraph_pin_address(weight)}, &(float){1}});
                status = stepgraph_loop_end(loop, &turn);
            } while (status == STEPGRAPH_OK && turn.again);
            if (status != STEPGRAPH_OK) {
                ck_assert_int_gt(strlen(last_words()), 0);
                told++;
                no_driver_fails();
                OK(stepgraph_loop_cancel(loop));
            }
        }
        no_driver_fails();
        /* A step whose end told of a failure may be done or not; all others are done once. */
        ck_assert_float_le(pin_float(weight), 30);
        ck_assert_float_ge(pin_float(weight), 30 - (float)told);
        ck_assert_uint_le(told, 1);
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop misuse");
    TCase *misuse = loop_case(suite, "misuse"), *failures = loop_case(suite, "failures");

    tcase_add_test(misuse, turn_that_is_to_be_taken_again_cannot_be_left);
    tcase_add_test(misuse, what_cannot_be_done_while_a_turn_records_is_said_in_words_of_the_loop);
    tcase_add_test(misuse, step_of_a_loop_whose_state_was_changed_is_told_of_the_loop);
    tcase_add_loop_test(misuse, what_breaks_the_recording_of_a_turn_is_said_in_words_of_the_loop, 0, 4);
    add_controlled_test(misuse, recording_that_could_not_begin_can_be_cancelled);
    tcase_add_loop_test(misuse, any_turn_can_be_cancelled, 0, 4);
    tcase_add_loop_test(misuse, loop_can_be_destroyed_in_any_turn, 0, 40);
    tcase_add_loop_test(misuse, feed_that_was_forgotten_is_an_error_and_can_be_made_good, 0, 5);
    tcase_add_test(misuse, options_are_checked);

    add_controlled_loop_test(failures, failing_driver_call_is_told_or_lived_with, 0, (int)(sizeof entries / sizeof *entries));
    return suite;
}

int main(void)
{
    return unit_main(make);
}
