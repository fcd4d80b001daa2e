/*
 * Every driver call that a check makes fails once: it ends with a status and words, or with a report that says what failed; nothing leaks,
 * everything is put back wherever the driver lets it be, and the next check is right. Needs the controls of cusim.
 */
#include "support.h"

enum { N = 1000 };

static stepgraph_pin *w, *x, *loss, *tmp, *frozen;
static stepgraph_step *step;
static int stale, first_recording; /* Only the first one is wrong. */
static CUdeviceptr other;

static stepgraph_status launched(CUfunction function, unsigned threads, void **arguments)
{
    return cu.LaunchKernel(function, (threads + 127) / 128, 1, 1, 128, 1, 1, 0, stream, arguments, NULL) ? STEPGRAPH_ERR_DRIVER : STEPGRAPH_OK;
}

static stepgraph_status enqueue(void *user, stepgraph_step *of, uint64_t k)
{
    CUdeviceptr to = stepgraph_pin_address(tmp), from = stepgraph_pin_address(w), by = stepgraph_pin_address(x), out = stepgraph_pin_address(loss);
    stepgraph_status status;
    int n = N;

    (void)user;
    (void)of;
    (void)k;
    if (stale && first_recording)
        from = other;
    status = launched(kernels.copyf, 1, (void *[]){ &to, &(CUdeviceptr){ stepgraph_pin_address(frozen) } });
    if (status == STEPGRAPH_OK)
        status = launched(kernels.update, N, (void *[]){ &to, &from, &by, &by, &n });
    if (status == STEPGRAPH_OK)
        status = stepgraph_pin_commit(w, to);
    return status == STEPGRAPH_OK ? launched(kernels.copyf, 1, (void *[]){ &out, &from }) : status;
}

static stepgraph_status feed(void *user, stepgraph_step *of, uint64_t k)
{
    float v[N];

    (void)user;
    (void)of;
    for (int i = 0; i < N; i++)
        v[i] = (float)(k + 1) + (float)(i % 7);
    return stepgraph_pin_feed(x, v, sizeof v);
}

static stepgraph_pin *typed(stepgraph_role role, uint64_t bytes, const char *name)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *made = NULL;

    config.role = role;
    config.bytes = bytes;
    config.name = name;
    config.type = STEPGRAPH_TYPE_F32;
    OK(stepgraph_pin_create(session, &config, &made));
    keep_pin(made);
    return made;
}

static void fill_state(void)
{
    float v[N];

    for (int i = 0; i < N; i++)
        v[i] = 1.0f + (float)i;
    put_bytes(stepgraph_pin_address(w), v, sizeof v);
    put_bytes(other, v, sizeof v);
}

static void record_step(void)
{
    step = step_make(session, "train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    OK(feed(NULL, NULL, 0));
    begin_recording(step);
    first_recording = 1;
    OK(enqueue(NULL, step, 0));
    first_recording = 0;
    OK(stepgraph_step_end(step));
}

static void made(void)
{
    w = typed(STEPGRAPH_ROLE_STATE, N * 4, "w");
    x = typed(STEPGRAPH_ROLE_FEED, N * 4, "x");
    loss = typed(STEPGRAPH_ROLE_OUTPUT, 4, "loss");
    tmp = typed(STEPGRAPH_ROLE_SCRATCH, N * 4, "tmp");
    other = device_make(N * 4);
    frozen = typed(STEPGRAPH_ROLE_CONST, 4, "frozen");
}

static const char *const entries[] = {
    "cuMemGetInfo", "cuMemAlloc", "cuMemHostAlloc", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuMemcpyHtoDAsync",
    "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuMemsetD8Async", "cuLaunchKernel", "cuGraphLaunch", "cuCtxPushCurrent",
    "cuGraphNodeSetEnabled", "cuGraphInstantiateWithParams", "cuStreamBeginCapture", "cuMemFree", "cuMemFreeHost",
    "cuEventDestroy", "cuGraphExecDestroy",
};
enum { ENTRIES = sizeof entries / sizeof *entries };

static size_t device_left(void)
{
    size_t left = 0, total;

    CU(MemGetInfo(&left, &total));
    return left;
}

/* Loops over the entries, once for a step that is right and once for one that is not, so that the search runs too. */
START_TEST(each_driver_call_of_a_check_fails_once)
{
    const char *entry = entries[_i / 2];
    stepgraph_check_config config = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_check *check = NULL;
    stepgraph_check_summary summary = STEPGRAPH_CHECK_SUMMARY_INIT;
    float before[N], after[N];
    unsigned long calls;
    size_t left;
    /* Undoing reports nothing, and what it cannot undo stays. */
    int destroys = strstr(entry, "Destroy") || strstr(entry, "Free") || strstr(entry, "Push");

    stale = _i % 2;
#ifdef __SANITIZE_ADDRESS__
    if (destroys)
        return; /* What is not undone would count as leaked. */
#endif
    if (stale && strstr(entry, "Push"))
        return; /* The end of a recording in a context that cannot be entered leaves the stream recording. */
    config.enqueue = enqueue;
    config.feed = feed;
    config.device_bytes = stale ? 12000 : 1 << 20; /* With some on the host. */
    config.host_bytes = 1 << 20;
    config.steps = 2;
    record_step();
    fill_state();
    OK(stepgraph_check_run(step, &config, &check));
    stepgraph_check_destroy(check);
    left = device_left();
    calls = driver_calls(entry);
    OK(stepgraph_check_run(step, &config, &check));
    if (getenv("SHOW"))
        puts(stepgraph_check_text(check));
    stepgraph_check_destroy(check);
    calls = driver_calls(entry) - calls;
    ck_assert_msg(calls > 0 || !stale || strcmp(entry, "cuGraphNodeSetEnabled"), "the search does not use %s", entry);
    ck_assert_uint_eq(device_left(), left);

    for (unsigned nth = 1; nth <= calls; nth += nth > 10 && nth + 10 < calls ? 1 + (unsigned)calls / 12 : 1) {
        char words[1024];
        stepgraph_status status;

        fill_state();
        bytes_at(stepgraph_pin_address(w), before, sizeof before);
        check = NULL;
        driver_fails(entry, nth, 999);
        status = stepgraph_check_run(step, &config, &check);
        snprintf(words, sizeof words, "%s", last_words());
        if (status != STEPGRAPH_OK) {
            ck_assert_msg(last_words()[0] != '\0', "%s %u: no words", entry, nth);
            ck_assert_ptr_null(check);
        } else {
            OK(stepgraph_check_get_summary(check, &summary));
            ck_assert_msg(summary.verdict != STEPGRAPH_IDENTICAL || !stale, "%s %u: a wrong step passes:\n%s", entry, nth, stepgraph_check_text(check));
            ck_assert_msg(summary.verdict != STEPGRAPH_DIVERGED || stale || summary.failed, "%s %u: a right step does not pass:\n%s", entry, nth,
                          stepgraph_check_text(check));
        }
        no_driver_fails();
        stepgraph_check_destroy(check);
        /* A failed replay leaves the step FAILED, like any other. */
        if (stepgraph_step_state(step) != STEPGRAPH_STEP_READY) {
            drop_step(step);
            record_step();
        }
        bytes_at(stepgraph_pin_address(w), after, sizeof after);
        ck_assert_msg(memcmp(before, after, sizeof before) == 0, "%s %u: the state was not put back: %s", entry, nth, words);
        if (!destroys)
            ck_assert_msg(device_left() == left, "%s %u: %zu bytes of the device are lost", entry, nth, left - device_left());
        left = device_left();
        fill_state();
        OK(stepgraph_check_run(step, &config, &check));
        OK(stepgraph_check_get_summary(check, &summary));
        ck_assert_msg(summary.verdict == (stale ? STEPGRAPH_DIVERGED : STEPGRAPH_IDENTICAL), "after %s %u: %s", entry, nth, stepgraph_check_text(check));
        stepgraph_check_destroy(check);
        check = NULL;
    }
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("check faults");
    TCase *paths = unit_case(suite, "paths");

    tcase_add_checked_fixture(paths, made, NULL);
    tcase_set_timeout(paths, 120);
    add_controlled_loop_test(paths, each_driver_call_of_a_check_fails_once, 0, 2 * ENTRIES);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
