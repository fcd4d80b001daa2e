/*
 * Introduces the lifecycle by hand, for a host that wants to decide itself what stepgraph_loop decides for others (see loop.c):
 * run the step as always; record two steps and compare them; record, and hold replays against launches; replay, and have the first replays tell
 * which of two executables is the faster one.
 */
#include "stepgraph/stepgraph.h"

#include "minimal-kernels.h" /* kernels_ptx: minimal.ptx, embedded by the build. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000, BYTES = N * sizeof(float), WARM = 3, STEPS = 20 };

static stepgraph_session *session;
static stepgraph_pin *weight, *fresh, *rate;
static struct CUfunc_st *update;

static void check(int status, const char *what)
{
    stepgraph_error_info error = STEPGRAPH_ERROR_INFO_INIT;

    if (status == 0)
        return;
    stepgraph_last_error(&error);
    fprintf(stderr, "lifecycle: %s failed (%d): %s\n", what, status, error.message);
    exit(2);
}
#define CHECK(call) check(call, #call)

static void refuse(const char *report)
{
    fprintf(stderr, "lifecycle: not replayed: %s\n", report);
    exit(3);
}

/* ---- the host's own step ----------------------------------------------------------------------------------------- */

static stepgraph_pin *make_pin(stepgraph_role role, const char *name, uint64_t bytes)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *pin = NULL;

    config.role = role;
    config.name = name;
    config.bytes = bytes;
    config.type = STEPGRAPH_TYPE_F32;
    CHECK(stepgraph_pin_create(session, &config, &pin));
    return pin;
}

//! [callbacks]
/* Hand over the inputs of step k. */
static stepgraph_status feed(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    return stepgraph_pin_feed_f32(rate, 1.0f / (float)(k + 1));
}

/* Launch step k, to run or to be recorded. */
static stepgraph_status enqueue(void *user, stepgraph_step *step, uint64_t k)
{
    uint64_t to = stepgraph_pin_address(fresh), from = stepgraph_pin_address(weight), by = stepgraph_pin_address(rate);
    int n = N;
    stepgraph_launch launch = STEPGRAPH_LAUNCH_INIT;
    stepgraph_status status = stepgraph_step_mark(step, "update");

    (void)user;
    (void)k;
    launch.function = update;
    launch.arguments = (void *[]){&to, &from, &by, &n};
    launch.grid[0] = (N + 127) / 128;
    launch.block[0] = 128;
    if (status == STEPGRAPH_OK)
        status = stepgraph_session_launch(session, &launch);
    return status == STEPGRAPH_OK ? stepgraph_pin_commit(weight, to) : status;
}
//! [callbacks]

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static void run(stepgraph_step *step, stepgraph_run kind, uint64_t k)
{
    CHECK(feed(NULL, step, k));
    CHECK(stepgraph_step_run_begin(step, kind));
    CHECK(enqueue(NULL, step, k));
    CHECK(stepgraph_step_run_end(step));
}

//! [record]
/* A recording of step k. Nothing of it runs. A single one may hold addresses without a pin: two show whether they move. */
static stepgraph_step *record(const char *name, uint32_t flags, uint64_t k)
{
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_step *step = NULL;

    config.name = name;
    config.flags = flags;
    CHECK(stepgraph_step_begin(session, &config, &step));
    CHECK(feed(NULL, step, k));
    CHECK(stepgraph_step_prepare(step));
    CHECK(stepgraph_step_capture(step));
    CHECK(enqueue(NULL, step, k));
    CHECK(stepgraph_step_end(step));
    return step;
}
//! [record]

static stepgraph_audit *compare(void)
{
    stepgraph_audit *audit = NULL;

    //! [compare]
    stepgraph_step *one[2], *next[2];

    one[0] = record("one step", STEPGRAPH_STEP_ALLOW_UNREGISTERED, 0);
    for (int i = 0; i < 2; i++)
        next[i] = record("the next", STEPGRAPH_STEP_ALLOW_UNREGISTERED, 1);
    one[1] = record("one step", STEPGRAPH_STEP_ALLOW_UNREGISTERED, 0);
    CHECK(stepgraph_audit_compare_many(2, one, 2, next, &audit));
    for (int i = 0; i < 2; i++) {
        stepgraph_step_destroy(one[i]);
        stepgraph_step_destroy(next[i]);
    }

    stepgraph_audit_summary found = STEPGRAPH_AUDIT_SUMMARY_INIT;
    CHECK(stepgraph_audit_get_summary(audit, &found));
    printf("%s", stepgraph_audit_text(audit));
    if (found.faults > 0)
        refuse("consecutive steps differ");
    //! [compare]
    return audit;
}

static void hold_against_launches(stepgraph_step *step, const stepgraph_audit *audit)
{
    //! [run]
    stepgraph_check_config config = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_check *found = NULL;

    config.enqueue = enqueue;
    config.feed = feed;
    config.audit = audit; /* To name causes. */
    CHECK(stepgraph_check_run(step, &config, &found));
    //! [run]

    //! [judge]
    stepgraph_check_summary summary = STEPGRAPH_CHECK_SUMMARY_INIT;

    CHECK(stepgraph_check_get_summary(found, &summary));
    printf("%s", stepgraph_check_text(found));
    if (summary.verdict != STEPGRAPH_IDENTICAL)
        refuse(stepgraph_check_verdict_name(summary.verdict));
    //! [judge]
    stepgraph_check_destroy(found);
}

/* ---- the driver's own calls -------------------------------------------------------------------------------------- */

static void *driver_call(const char *name, int version)
{
    void *found = stepgraph_session_symbol(session, name, version);

    if (found == NULL) {
        fprintf(stderr, "lifecycle: the driver has no %s\n", name);
        exit(2);
    }
    return found;
}

static void *load_kernel(void)
{
    int (*set_context)(struct CUctx_st *), (*load)(void **, const void *);
    int (*find)(struct CUfunc_st **, void *, const char *);
    void *module;

    *(void **)&set_context = driver_call("cuCtxSetCurrent", 4000);
    *(void **)&load = driver_call("cuModuleLoadData", 2000);
    *(void **)&find = driver_call("cuModuleGetFunction", 2000);
    CHECK(set_context(stepgraph_session_context(session)));
    CHECK(load(&module, kernels_ptx));
    CHECK(find(&update, module, "update"));
    return module;
}

int main(void)
{
    float zeros[N] = {0}, launched[N], replayed[N];
    int (*unload)(void *);
    stepgraph_step *plain = NULL, *step;
    stepgraph_audit *audit;
    void *module;

    CHECK(stepgraph_session_open(NULL, &session));
    module = load_kernel();
    weight = make_pin(STEPGRAPH_ROLE_STATE, "weight", BYTES);
    fresh = make_pin(STEPGRAPH_ROLE_SCRATCH, "fresh", BYTES);
    rate = make_pin(STEPGRAPH_ROLE_CELL, "rate", sizeof(float));

    /* As always: kernels are loaded, libraries have their workspaces. These are the steps that the replays are to equal. */
    CHECK(stepgraph_step_begin(session, NULL, &plain));
    for (uint64_t k = 0; k < STEPS; k++)
        run(plain, k < WARM ? STEPGRAPH_RUN_WARMUP : STEPGRAPH_RUN_FRESH, k);
    CHECK(stepgraph_pin_read(weight, launched, BYTES));
    stepgraph_step_destroy(plain);

    audit = compare();
    CHECK(stepgraph_pin_write(weight, zeros, BYTES));
    step = record("train", STEPGRAPH_STEP_STRICT_FEEDS, 0);
    hold_against_launches(step, audit); /* Leaves everything as it was. */
    CHECK(stepgraph_step_tune(step, 2)); /* Pays in steps of many short kernels; here it shows how. */
    for (uint64_t k = 0; k < STEPS; k++) {
        CHECK(feed(NULL, step, k));
        CHECK(stepgraph_step_replay(step));
    }
    CHECK(stepgraph_pin_read(weight, replayed, BYTES));

    int same = memcmp(launched, replayed, BYTES) == 0;
    printf("%d steps launched one by one give %.9g, replayed %.9g: %s\n", STEPS, (double)launched[0], (double)replayed[0],
           same ? "the same" : "WRONG");

    stepgraph_audit_destroy(audit);
    stepgraph_step_destroy(step);
    CHECK(stepgraph_pin_destroy(rate));
    CHECK(stepgraph_pin_destroy(fresh));
    CHECK(stepgraph_pin_destroy(weight));
    *(void **)&unload = driver_call("cuModuleUnload", 2000);
    CHECK(unload(module));
    CHECK(stepgraph_session_close(session));
    return same ? 0 : 1;
}
