/*
 * Finding and loading a driver. Each test is a process of its own, and the parent never touches a driver, so libcheck may fork
 * here. FAKE_STUB, FAKE_OLD and FAKE_HOLLOW are the paths of libraries built from fake_driver.c.
 */
#include <dlfcn.h>
#include <unistd.h>

#include "support.h"

static char *path; /* The driver under test, or NULL. */

static stepgraph_status open_path(const char *driver, stepgraph_session **session_out)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;

    config.driver_path = driver;
    return stepgraph_session_open(&config, session_out);
}

START_TEST(config_names_the_driver)
{
    stepgraph_session *s = NULL;
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;

    unsetenv("STEPGRAPH_DRIVER");
    OK(open_path(path, &s));
    OK(stepgraph_session_get_info(s, &info));
    ck_assert_msg(strstr(info.driver_path, strrchr(path, '/') ? strrchr(path, '/') + 1 : path) != NULL, "loaded '%s', not '%s'",
                  info.driver_path, path);
    OK(stepgraph_session_close(s));
}
END_TEST

START_TEST(environment_names_the_driver)
{
    stepgraph_session *s = NULL;
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;

    setenv("STEPGRAPH_DRIVER", path, 1);
    OK(stepgraph_session_open(NULL, &s));
    OK(stepgraph_session_get_info(s, &info));
    ck_assert_msg(strstr(info.driver_path, strrchr(path, '/') ? strrchr(path, '/') + 1 : path) != NULL, "loaded '%s', not '%s'",
                  info.driver_path, path);
    OK(stepgraph_session_close(s));
}
END_TEST

START_TEST(config_wins_over_the_environment)
{
    stepgraph_session *s = NULL;

    setenv("STEPGRAPH_DRIVER", "/nowhere/libcuda-none.so", 1);
    OK(open_path(path, &s));
    OK(stepgraph_session_close(s));
}
END_TEST

START_TEST(software_driver_says_so)
{
    stepgraph_session *s = NULL;
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;
    void *driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    ck_assert_ptr_nonnull(driver);
    OK(open_path(path, &s));
    OK(stepgraph_session_get_info(s, &info));
    ck_assert_int_eq(info.software, dlsym(driver, "cusim_fail") != NULL);
    OK(stepgraph_session_close(s));
}
END_TEST

START_TEST(missing_library_is_named)
{
    stepgraph_session *s = (stepgraph_session *)&path;

    unsetenv("STEPGRAPH_DRIVER");
    FAILS(STEPGRAPH_ERR_NO_DRIVER, open_path("/nowhere/libcuda-none.so", &s), "/nowhere/libcuda-none.so");
    ck_assert_ptr_eq(s, (stepgraph_session *)&path);
}
END_TEST

START_TEST(missing_library_of_the_environment_is_named_with_the_variable)
{
    stepgraph_session *s = NULL;

    setenv("STEPGRAPH_DRIVER", "/nowhere/libcuda-none.so", 1);
    FAILS(STEPGRAPH_ERR_NO_DRIVER, stepgraph_session_open(NULL, &s), "/nowhere/libcuda-none.so", "STEPGRAPH_DRIVER");
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(there_is_no_fallback_to_another_driver)
{
    stepgraph_session *s = NULL;

    /* The good driver in the environment does not stand in for the missing one in the config. */
    if (path)
        setenv("STEPGRAPH_DRIVER", path, 1);
    FAILS(STEPGRAPH_ERR_NO_DRIVER, open_path("/nowhere/libcuda-none.so", &s), "/nowhere/libcuda-none.so");
}
END_TEST

START_TEST(library_that_is_no_driver_is_named)
{
    stepgraph_session *s = NULL;

    FAILS(STEPGRAPH_ERR_NO_DRIVER, open_path("libm.so.6", &s), "libm.so.6");
    FAILS(STEPGRAPH_ERR_NO_DRIVER, open_path("/etc/passwd", &s), "/etc/passwd");
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(stub_library_is_told_apart)
{
    stepgraph_session *s = NULL;

    FAILS(STEPGRAPH_ERR_NO_DRIVER, open_path(FAKE_STUB, &s), "stub", "fake_stub");
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(old_driver_is_named_with_both_versions)
{
    stepgraph_session *s = NULL;

    FAILS(STEPGRAPH_ERR_OLD_DRIVER, open_path(FAKE_OLD, &s), "11.8", "12.0");
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(missing_entry_point_is_named)
{
    stepgraph_session *s = NULL;
    stepgraph_status status = open_path(FAKE_HOLLOW, &s);

    /* Success with a NULL pointer is the driver's way to say no. */
    ck_assert_msg(status == STEPGRAPH_ERR_NO_DRIVER || status == STEPGRAPH_ERR_OLD_DRIVER || status == STEPGRAPH_ERR_UNSUPPORTED,
                  "%s: %s", stepgraph_status_name(status), last_words());
    ck_assert_msg(lacks(last_words(), (const char *[]){"cu", NULL}) == NULL, "%s", last_words());
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(a_bad_driver_does_not_stand_in_the_way_of_a_good_one)
{
    stepgraph_session *s = NULL;

    FAILS(STEPGRAPH_ERR_NO_DRIVER, open_path("/nowhere/libcuda-none.so", &s), "none");
    FAILS(STEPGRAPH_ERR_OLD_DRIVER, open_path(FAKE_OLD, &s), "11.8");
    OK(open_path(path, &s));
    OK(stepgraph_session_close(s));
}
END_TEST

START_TEST(device_that_is_not_there_is_named)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_session *s = NULL;

    config.driver_path = path;
    config.device = 99;
    FAILS(STEPGRAPH_ERR_NO_DRIVER, stepgraph_session_open(&config, &s), "99");
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(machine_without_a_device_is_no_driver)
{
    stepgraph_session *s = NULL;
    void *driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void (*control)(const char *, unsigned, int);

    *(void **)&control = dlsym(driver, "cusim_fail");
    control("cuInit", 1, CUDA_ERROR_NO_DEVICE);
    FAILS(STEPGRAPH_ERR_NO_DRIVER, open_path(path, &s), "device");
    ck_assert_str_eq(last_error().call, "cuInit");
    ck_assert_int_eq(last_error().driver_code, CUDA_ERROR_NO_DEVICE);
    ck_assert_ptr_null(s);
    OK(open_path(path, &s));
    OK(stepgraph_session_close(s));
}
END_TEST

START_TEST(two_sessions_share_a_driver)
{
    stepgraph_session *a = NULL, *b = NULL;

    OK(open_path(path, &a));
    OK(open_path(path, &b));
    ck_assert_ptr_ne(a, b);
    ck_assert_ptr_ne(stepgraph_session_stream(a), stepgraph_session_stream(b));
    ck_assert_ptr_eq(stepgraph_session_context(a), stepgraph_session_context(b));
    OK(stepgraph_session_close(a));
    OK(stepgraph_session_wait(b));
    OK(stepgraph_session_close(b));
}
END_TEST

static void *open_and_close(void *failures)
{
    for (int i = 0; i < 4; i++) {
        stepgraph_session *s = NULL;
        if (open_path(path, &s) != STEPGRAPH_OK || stepgraph_session_close(s) != STEPGRAPH_OK)
            __atomic_add_fetch((int *)failures, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

START_TEST(sessions_open_from_many_threads_at_once)
{
    pthread_t thread[4];
    int failures = 0;

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, open_and_close, &failures), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    ck_assert_int_eq(failures, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("driver");
    TCase *none = tcase_create("no driver"), *real = tcase_create("a driver");
    SRunner *runner;
    void *driver;
    int failed, controls;

    /* The parent loads the library to know whether there is one, and calls nothing in it. */
    driver = dlopen(driver_path(), RTLD_NOW | RTLD_LOCAL);
    controls = driver && dlsym(driver, "cusim_fail");
    if (driver)
        path = strdup(driver_path());

    tcase_add_test(none, missing_library_is_named);
    tcase_add_test(none, missing_library_of_the_environment_is_named_with_the_variable);
    tcase_add_test(none, there_is_no_fallback_to_another_driver);
    tcase_add_test(none, library_that_is_no_driver_is_named);
    tcase_add_test(none, stub_library_is_told_apart);
    tcase_add_test(none, old_driver_is_named_with_both_versions);
    tcase_add_test(none, missing_entry_point_is_named);
    suite_add_tcase(suite, none);

    tcase_set_timeout(real, 60);
    suite_add_tcase(suite, real);
#define WITH_DRIVER(test)                                                                                                        \
    do {                                                                                                                         \
        if (path)                                                                                                                \
            tcase_add_test(real, test);                                                                                          \
        else                                                                                                                     \
            unit_skip((test)->name, "there is no driver to load");                                                               \
    } while (0)
    WITH_DRIVER(config_names_the_driver);
    WITH_DRIVER(environment_names_the_driver);
    WITH_DRIVER(config_wins_over_the_environment);
    WITH_DRIVER(software_driver_says_so);
    WITH_DRIVER(a_bad_driver_does_not_stand_in_the_way_of_a_good_one);
    WITH_DRIVER(device_that_is_not_there_is_named);
    WITH_DRIVER(two_sessions_share_a_driver);
    WITH_DRIVER(sessions_open_from_many_threads_at_once);
    if (controls)
        tcase_add_test(real, machine_without_a_device_is_no_driver);
    else
        unit_skip(machine_without_a_device_is_no_driver->name, "needs the controls of cusim");

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    free(path);
    if (!driver && getenv("STEPGRAPH_DRIVER")) {
        printf("failed: STEPGRAPH_DRIVER names %s, which cannot be loaded\n", driver_path());
        return 1;
    }
    return failed != 0;
}
