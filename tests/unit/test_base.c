/* Versions, names, the error record, and what every call does with NULL. No driver is needed. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include <stepgraph/stepgraph.h>

/* A call that fails without a driver. */
static stepgraph_status fail_somehow(void)
{
    return stepgraph_session_open(NULL, NULL);
}

START_TEST(version_is_that_of_the_headers)
{
    ck_assert_uint_eq(stepgraph_version(),
                      STEPGRAPH_VERSION_MAJOR * 10000 + STEPGRAPH_VERSION_MINOR * 100 + STEPGRAPH_VERSION_PATCH);
}
END_TEST

START_TEST(every_status_has_the_name_from_the_header)
{
#define NAMED(status) ck_assert_str_eq(stepgraph_status_name(status), #status)
    NAMED(STEPGRAPH_OK);
    NAMED(STEPGRAPH_ERR_ARGUMENT);
    NAMED(STEPGRAPH_ERR_ABI);
    NAMED(STEPGRAPH_ERR_STATE);
    NAMED(STEPGRAPH_ERR_MEMORY);
    NAMED(STEPGRAPH_ERR_NO_DRIVER);
    NAMED(STEPGRAPH_ERR_OLD_DRIVER);
    NAMED(STEPGRAPH_ERR_DRIVER);
    NAMED(STEPGRAPH_ERR_CAPTURE);
    NAMED(STEPGRAPH_ERR_REFUSED);
    NAMED(STEPGRAPH_ERR_LOST);
    NAMED(STEPGRAPH_ERR_UNSUPPORTED);
#undef NAMED
}
END_TEST

START_TEST(other_numbers_are_unknown_statuses)
{
    ck_assert_str_eq(stepgraph_status_name((stepgraph_status)1), "unknown status");
    ck_assert_str_eq(stepgraph_status_name((stepgraph_status)-12), "unknown status");
    ck_assert_str_eq(stepgraph_status_name((stepgraph_status)-1000000), "unknown status");
}
END_TEST

START_TEST(error_record_holds_the_last_failure)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;

    ck_assert_int_eq(fail_somehow(), STEPGRAPH_ERR_ARGUMENT);
    ck_assert_int_eq(stepgraph_last_error(&info), STEPGRAPH_OK);
    ck_assert_int_eq(info.status, STEPGRAPH_ERR_ARGUMENT);
    ck_assert_int_eq(info.driver_code, 0);
    ck_assert_str_eq(info.call, "");
    ck_assert_str_ne(info.message, "");
}
END_TEST

START_TEST(error_record_can_be_read_twice)
{
    stepgraph_error_info one = STEPGRAPH_ERROR_INFO_INIT, two = STEPGRAPH_ERROR_INFO_INIT;

    fail_somehow();
    stepgraph_last_error(&one);
    stepgraph_last_error(&two);
    ck_assert_mem_eq(&one, &two, sizeof one);
}
END_TEST

START_TEST(next_call_clears_the_error_record)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;

    fail_somehow();
    ck_assert_int_eq(stepgraph_session_close(NULL), STEPGRAPH_OK);
    ck_assert_int_eq(stepgraph_last_error(&info), STEPGRAPH_OK);
    ck_assert_int_eq(info.status, STEPGRAPH_OK);
    ck_assert_str_eq(info.call, "");
    ck_assert_str_eq(info.message, "");
}
END_TEST

START_TEST(counting_and_getters_leave_the_error_record_alone)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;

    fail_somehow();
    stepgraph_session_count(NULL, STEPGRAPH_KIND_KERNEL, 1);
    (void)stepgraph_status_name(STEPGRAPH_OK);
    (void)stepgraph_version();
    stepgraph_last_error(&info);
    ck_assert_int_eq(info.status, STEPGRAPH_ERR_ARGUMENT);
}
END_TEST

START_TEST(destroying_no_step_leaves_the_error_record_alone)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;

    /* stepgraph_step_destroy() returns no status, so an error path may call it and still tell what went wrong. */
    fail_somehow();
    stepgraph_step_destroy(NULL);
    stepgraph_last_error(&info);
    ck_assert_int_eq(info.status, STEPGRAPH_ERR_ARGUMENT);
}
END_TEST

static void *read_record(void *info)
{
    stepgraph_last_error(info);
    return NULL;
}

START_TEST(error_record_belongs_to_its_thread)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;
    pthread_t thread;

    fail_somehow();
    ck_assert_int_eq(pthread_create(&thread, NULL, read_record, &info), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(info.status, STEPGRAPH_OK);
    ck_assert_str_eq(info.message, "");
}
END_TEST

START_TEST(error_record_is_filled_up_to_its_size_and_no_further)
{
    union {
        stepgraph_error_info info;
        unsigned char bytes[sizeof(stepgraph_error_info)];
    } u;
    size_t size = offsetof(stepgraph_error_info, call) + 1;

    memset(&u, 0x5a, sizeof u);
    u.info.size = size;
    fail_somehow();
    ck_assert_int_eq(stepgraph_last_error(&u.info), STEPGRAPH_OK);
    ck_assert_uint_eq(u.info.size, size);
    ck_assert_int_eq(u.info.status, STEPGRAPH_ERR_ARGUMENT);
    ck_assert_int_eq(u.info.driver_code, 0);
    for (size_t i = size; i < sizeof u.bytes; i++)
        ck_assert_msg(u.bytes[i] == 0x5a, "byte %zu was written", i);
}
END_TEST

START_TEST(error_record_of_a_newer_caller_is_filled_too)
{
    struct {
        stepgraph_error_info info;
        unsigned char more[64];
    } longer;

    memset(&longer, 0, sizeof longer);
    longer.info.size = sizeof longer;
    fail_somehow();
    ck_assert_int_eq(stepgraph_last_error(&longer.info), STEPGRAPH_OK);
    ck_assert_int_eq(longer.info.status, STEPGRAPH_ERR_ARGUMENT);
    ck_assert_uint_eq(longer.info.size, sizeof longer);
}
END_TEST

START_TEST(error_record_too_small_for_a_status_is_refused)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;

    ck_assert_int_eq(stepgraph_last_error(NULL), STEPGRAPH_ERR_ARGUMENT);
    info.size = sizeof info.size;
    info.status = 77;
    ck_assert_int_eq(stepgraph_last_error(&info), STEPGRAPH_ERR_ARGUMENT);
    ck_assert_int_eq(info.status, 77);
    info.size = 0;
    ck_assert_int_eq(stepgraph_last_error(&info), STEPGRAPH_ERR_ARGUMENT);
}
END_TEST

START_TEST(nothing_can_be_given_back)
{
    ck_assert_int_eq(stepgraph_session_close(NULL), STEPGRAPH_OK);
    ck_assert_int_eq(stepgraph_pin_destroy(NULL), STEPGRAPH_OK);
    stepgraph_step_destroy(NULL);
    stepgraph_session_count(NULL, STEPGRAPH_KIND_COPY, 3);
}
END_TEST

/* Every call that takes an object refuses to work on none, with words. */
START_TEST(calls_on_nothing_are_argument_errors)
{
    stepgraph_session *session = NULL;
    stepgraph_pin *pin = NULL;
    stepgraph_step *step = NULL;
    stepgraph_session_info session_info = STEPGRAPH_SESSION_INFO_INIT;
    stepgraph_error_info error = STEPGRAPH_ERROR_INFO_INIT;
    stepgraph_sample sample = STEPGRAPH_SAMPLE_INIT;
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;
    stepgraph_pin_config pin_config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin_stats stats = STEPGRAPH_PIN_STATS_INIT;
    stepgraph_step_stats step_stats = STEPGRAPH_STEP_STATS_INIT;
    stepgraph_stage stage = STEPGRAPH_STAGE_INIT;
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    uint64_t value = 0;
    struct CUstream_st *stream = (struct CUstream_st *)&value;

    pin_config.role = STEPGRAPH_ROLE_STATE;
    pin_config.bytes = 4;
    pin_config.name = "nobody's";

#define REFUSED(call_)                                                                                                           \
    do {                                                                                                                         \
        ck_assert_int_eq(call_, STEPGRAPH_ERR_ARGUMENT);                                                                         \
        stepgraph_last_error(&error);                                                                                            \
        ck_assert_msg(error.status == STEPGRAPH_ERR_ARGUMENT, "%s left no record", #call_);                                      \
        ck_assert_msg(error.message[0] != 0, "%s left no words", #call_);                                                        \
    } while (0)
    REFUSED(stepgraph_session_open(NULL, NULL));
    REFUSED(stepgraph_session_get_info(NULL, &session_info));
    REFUSED(stepgraph_session_wait(NULL));
    REFUSED(stepgraph_session_launch(NULL, &call));
    REFUSED(stepgraph_session_sample(NULL, 0, &sample));
    REFUSED(stepgraph_session_flush(NULL));
    REFUSED(stepgraph_session_pin_stats(NULL, &stats));
    REFUSED(stepgraph_pin_create(NULL, &pin_config, &pin));
    REFUSED(stepgraph_pin_commit(NULL, 16));
    REFUSED(stepgraph_pin_commit_many(NULL, 1, &pin, &value));
    REFUSED(stepgraph_pin_feed(NULL, &value, sizeof value));
    REFUSED(stepgraph_pin_feed_f32(NULL, 1));
    REFUSED(stepgraph_pin_feed_f64(NULL, 1));
    REFUSED(stepgraph_pin_feed_u32(NULL, 1));
    REFUSED(stepgraph_pin_feed_u64(NULL, 1));
    REFUSED(stepgraph_pin_read(NULL, &value, sizeof value));
    REFUSED(stepgraph_pin_write(NULL, &value, sizeof value));
    REFUSED(stepgraph_step_begin(NULL, NULL, &step));
    REFUSED(stepgraph_step_prepare(NULL));
    REFUSED(stepgraph_step_capture(NULL));
    REFUSED(stepgraph_step_end(NULL));
    REFUSED(stepgraph_step_replay(NULL));
    REFUSED(stepgraph_step_reset(NULL));
    REFUSED(stepgraph_step_mark(NULL, "stage"));
    REFUSED(stepgraph_step_fork(NULL, stream, "side"));
    REFUSED(stepgraph_step_join(NULL, stream));
    REFUSED(stepgraph_step_run_begin(NULL, STEPGRAPH_RUN_FRESH));
    REFUSED(stepgraph_step_run_end(NULL));
    REFUSED(stepgraph_step_set_timing(NULL, 1));
    REFUSED(stepgraph_step_get_stats(NULL, &step_stats));
    REFUSED(stepgraph_step_get_stage(NULL, 0, &stage));
    REFUSED(stepgraph_step_get_verdict(NULL, &verdict));
#undef REFUSED
    ck_assert_int_eq(stepgraph_step_error(NULL, &error), STEPGRAPH_ERR_ARGUMENT);
    ck_assert_ptr_null(session);
    ck_assert_ptr_null(pin);
    ck_assert_ptr_null(step);
}
END_TEST

START_TEST(session_config_without_a_size_is_an_argument_error)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_session *session = NULL;

    config.size = 0;
    ck_assert_int_eq(stepgraph_session_open(&config, &session), STEPGRAPH_ERR_ARGUMENT);
    config.size = sizeof config.size - 1;
    ck_assert_int_eq(stepgraph_session_open(&config, &session), STEPGRAPH_ERR_ARGUMENT);
    config.size = (size_t)1 << 40;
    ck_assert_int_eq(stepgraph_session_open(&config, &session), STEPGRAPH_ERR_ARGUMENT);
    ck_assert_ptr_null(session);
}
END_TEST

START_TEST(session_config_of_a_newer_caller_is_an_abi_error)
{
    struct {
        stepgraph_session_config config;
        unsigned char more[32];
    } longer;
    stepgraph_session *session = NULL;

    memset(&longer, 0, sizeof longer);
    longer.config.size = sizeof longer;
    longer.more[31] = 1;
    ck_assert_int_eq(stepgraph_session_open(&longer.config, &session), STEPGRAPH_ERR_ABI);
    ck_assert_ptr_null(session);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base");
    TCase *names = tcase_create("names"), *record = tcase_create("error record"), *nothing = tcase_create("nothing");
    SRunner *runner;
    int failed;

    tcase_add_test(names, version_is_that_of_the_headers);
    tcase_add_test(names, every_status_has_the_name_from_the_header);
    tcase_add_test(names, other_numbers_are_unknown_statuses);
    suite_add_tcase(suite, names);

    tcase_add_test(record, error_record_holds_the_last_failure);
    tcase_add_test(record, error_record_can_be_read_twice);
    tcase_add_test(record, next_call_clears_the_error_record);
    tcase_add_test(record, counting_and_getters_leave_the_error_record_alone);
    tcase_add_test(record, destroying_no_step_leaves_the_error_record_alone);
    tcase_add_test(record, error_record_belongs_to_its_thread);
    tcase_add_test(record, error_record_is_filled_up_to_its_size_and_no_further);
    tcase_add_test(record, error_record_of_a_newer_caller_is_filled_too);
    tcase_add_test(record, error_record_too_small_for_a_status_is_refused);
    suite_add_tcase(suite, record);

    tcase_add_test(nothing, nothing_can_be_given_back);
    tcase_add_test(nothing, calls_on_nothing_are_argument_errors);
    tcase_add_test(nothing, session_config_without_a_size_is_an_argument_error);
    tcase_add_test(nothing, session_config_of_a_newer_caller_is_an_abi_error);
    suite_add_tcase(suite, nothing);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
