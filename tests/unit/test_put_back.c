/*
 * Checks, verifications and relaxing run the step and put back what it touches: at the second try where one call fails, and where that fails, too, the
 * host is told that its state is that of no step.
 */
#include "support.h"

enum { PINS = 4 };

static CUdeviceptr at[PINS];
static stepgraph_step *step;

/* Two chains that have nothing to do with each other. */
static void body(void *none)
{
    (void)none;
    for (int i = 0; i < 2 * PINS; i++)
        inc(stream, at[i % PINS], 1);
}

/* The same, where the launches fail on request. */
static stepgraph_status enqueue(void *none, stepgraph_step *of, uint64_t k)
{
    CUresult code = CUDA_SUCCESS;

    (void)none;
    (void)of;
    (void)k;
    for (int i = 0; i < 2 * PINS && code == CUDA_SUCCESS; i++)
        code = cu.LaunchKernel(kernels.inc, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&at[i % PINS], &(float){1}}, NULL);
    return code == CUDA_SUCCESS ? STEPGRAPH_OK : STEPGRAPH_ERR_DRIVER;
}

static void fill(void)
{
    for (int i = 0; i < PINS; i++)
        put_float(at[i], (float)(10 * i));
}

static int as_before(void)
{
    int same = 1;

    for (int i = 0; i < PINS; i++)
        same &= float_at(at[i]) == (float)(10 * i);
    return same;
}

static stepgraph_status check(void)
{
    stepgraph_check_config config = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_check *report;
    stepgraph_status status;

    config.steps = 2;
    config.enqueue = enqueue;
    status = stepgraph_check_run(step, &config, &report);
    if (status == STEPGRAPH_OK)
        stepgraph_check_destroy(report);
    return status;
}

static stepgraph_status verify(void)
{
    stepgraph_verify_config config = STEPGRAPH_VERIFY_CONFIG_INIT;
    stepgraph_verify *report;
    stepgraph_status status;

    config.orders = config.repeats = config.steps = 1;
    status = stepgraph_step_verify(step, &config, &report);

    if (status == STEPGRAPH_OK)
        stepgraph_verify_destroy(report);
    return status;
}

static stepgraph_status relax(void)
{
    return stepgraph_step_relax(step, NULL, NULL);
}

static stepgraph_status (*const tried[])(void) = {check, verify, relax};
static const char *const failing[] = {"cuLaunchKernel", "cuEventRecord", "cuCtxPushCurrent", "cuGraphLaunch"};
enum { TRIED = sizeof tried / sizeof *tried, FAILING = sizeof failing / sizeof *failing };

/* Recorded, and relaxed where that is what is verified. */
static void make_step(int relaxed)
{
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;

    config.lanes = 2;
    record(step, body, NULL);
    if (relaxed)
        OK(stepgraph_step_relax(step, &config, NULL));
    fill();
}

/* Each call of an entry fails in its turn, once or twice in a row. How often what was tried could not be put back. */
static unsigned fail_each(stepgraph_status (*call)(void), const char *entry, int twice)
{
    unsigned spoiled = 0;
    unsigned long made;
    unsigned nth = 0;

    do {
        stepgraph_status status;
        unsigned long before;
        char words[1024];

        make_step(call == verify);
        before = driver_calls(entry);
        driver_fails(entry, ++nth, CUDA_ERROR_UNKNOWN);
        if (twice)
            driver_fails(entry, nth + 1, CUDA_ERROR_UNKNOWN);
        status = call();
        no_driver_fails();
        snprintf(words, sizeof words, "%s", last_words());
        made = driver_calls(entry) - before;
        if (!as_before()) {
            ck_assert_msg(status != STEPGRAPH_OK && strstr(words, "checkpoint") != NULL, "call %u of %s: the state is not as before, and: %s", nth,
                          entry, words);
            spoiled++;
        }
        OK(stepgraph_step_reset(step));
    } while (made >= nth && nth < 300);
    ck_assert_uint_lt(nth, 300);
    return spoiled;
}

START_TEST(what_ran_is_put_back_or_it_is_told)
{
    stepgraph_status (*const call)(void) = tried[_i / FAILING];
    const char *const entry = failing[_i % FAILING];

    for (int i = 0; i < PINS; i++)
        at[i] = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, (char[]){'p', (char)('0' + i), 0}));
    step = step_make(session, "tried", 0);
    unit_leaves_objects(1);
    ck_assert_uint_eq(fail_each(call, entry, 0), 0);
    if (strcmp(entry, "cuLaunchKernel") == 0)
        ck_assert_uint_gt(fail_each(call, entry, 1), 0);
    else
        (void)fail_each(call, entry, 1);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("put_back");
    TCase *c = unit_case(suite, "put_back");

    tcase_set_timeout(c, 60);
    add_controlled_loop_test(c, what_ran_is_put_back_or_it_is_told, 0, TRIED * FAILING);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
