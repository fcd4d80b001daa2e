/*
 * Introduces the whole of libstepgraph in one screen: a session, a parameter in a pin, a learning rate in a cell, an out-of-place
 * update that is committed, a step that is recorded once and replayed. Copy it; outside this build the header with the kernels is made by
 *
 *     python3 lib/kernels/embed.py kernels_ptx examples/minimal.ptx minimal-kernels.h
 */
#include "stepgraph/stepgraph.h"

#include "minimal-kernels.h" /* kernels_ptx: minimal.ptx, embedded by the build. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000, BYTES = N * sizeof(float), STEPS = 5 };

static stepgraph_session *session;
static stepgraph_pin *weight, *fresh, *rate;
static struct CUfunc_st *update;

static void check(int status, const char *what)
{
    stepgraph_error_info error = STEPGRAPH_ERROR_INFO_INIT;
    if (status == 0)
        return;
    stepgraph_last_error(&error);
    fprintf(stderr, "minimal: %s failed (%d): %s\n", what, status, error.message);
    exit(2);
}
#define CHECK(call) check(call, #call)

static stepgraph_pin *make_pin(stepgraph_role role, const char *name, uint64_t bytes)
{
    stepgraph_pin_config config = {.size = sizeof config, .role = role, .bytes = bytes, .name = name};
    stepgraph_pin *pin = NULL;
    CHECK(stepgraph_pin_create(session, &config, &pin));
    return pin;
}

/* One training step: the host's own launches, the same whether they run or are being recorded. */
static void train_step(void)
{
    uint64_t to = stepgraph_pin_address(fresh), from = stepgraph_pin_address(weight), by = stepgraph_pin_address(rate);
    int n = N;
    stepgraph_launch launch = STEPGRAPH_LAUNCH_INIT;

    launch.function = update;
    launch.arguments = (void *[]){&to, &from, &by, &n};
    launch.grid[0] = (N + 127) / 128;
    launch.block[0] = 128;
    CHECK(stepgraph_session_launch(session, &launch));
    CHECK(stepgraph_pin_commit(weight, to)); /* The new value goes where the graph reads it. */
}

int main(void)
{
    float zeros[N] = {0}, launched[N], replayed[N];
    int (*set_context)(struct CUctx_st *), (*load)(void **, const void *), (*unload)(void *);
    int (*find)(struct CUfunc_st **, void *, const char *);
    void *module;

    /* The driver is libcuda.so.1, or what STEPGRAPH_DRIVER names. Its own calls come through the session. */
    CHECK(stepgraph_session_open(NULL, &session));
    *(void **)&set_context = stepgraph_session_symbol(session, "cuCtxSetCurrent", 4000);
    *(void **)&load = stepgraph_session_symbol(session, "cuModuleLoadData", 2000);
    *(void **)&unload = stepgraph_session_symbol(session, "cuModuleUnload", 2000);
    *(void **)&find = stepgraph_session_symbol(session, "cuModuleGetFunction", 2000);
    CHECK(set_context(stepgraph_session_context(session)));
    CHECK(load(&module, kernels_ptx));
    CHECK(find(&update, module, "update"));

    weight = make_pin(STEPGRAPH_ROLE_STATE, "weight", BYTES);    /* Survives from step to step. */
    fresh = make_pin(STEPGRAPH_ROLE_SCRATCH, "fresh", BYTES);    /* Does not. */
    rate = make_pin(STEPGRAPH_ROLE_CELL, "rate", sizeof(float)); /* Changes from step to step. */

    stepgraph_step *step = NULL;
    CHECK(stepgraph_step_begin(session, NULL, &step));
    for (int i = 0; i < STEPS; i++) { /* Launched one by one. */
        CHECK(stepgraph_pin_feed_f32(rate, 1.0f / (float)(i + 1)));
        CHECK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
        train_step();
        CHECK(stepgraph_step_run_end(step));
    }
    CHECK(stepgraph_pin_read(weight, launched, BYTES));

    CHECK(stepgraph_step_prepare(step));
    CHECK(stepgraph_step_capture(step));
    train_step(); /* Recorded: nothing of it runs. */
    CHECK(stepgraph_step_end(step));

    CHECK(stepgraph_pin_write(weight, zeros, BYTES)); /* The same steps again, from the start. */
    for (int i = 0; i < STEPS; i++) {
        CHECK(stepgraph_pin_feed_f32(rate, 1.0f / (float)(i + 1)));
        CHECK(stepgraph_step_replay(step));
    }
    CHECK(stepgraph_pin_read(weight, replayed, BYTES));

    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;
    CHECK(stepgraph_session_get_info(session, &info));
    int same = memcmp(launched, replayed, BYTES) == 0;
    printf("%s%s: %d steps launched one by one give %g, replayed %g: %s\n", info.device_name,
           info.software ? " (a simulation)" : "", STEPS, (double)launched[0], (double)replayed[0], same ? "the same" : "WRONG");

    stepgraph_step_destroy(step);
    CHECK(stepgraph_pin_destroy(rate));
    CHECK(stepgraph_pin_destroy(fresh));
    CHECK(stepgraph_pin_destroy(weight));
    CHECK(unload(module));
    CHECK(stepgraph_session_close(session));
    return same ? 0 : 1;
}
