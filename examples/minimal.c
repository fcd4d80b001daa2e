/*
 * Introduces the whole of libstepgraph in one screen: a session, a parameter in a pin, a learning rate in a cell, an out-of-place update
 * committed, a step recorded once and replayed. Copy it.
 *
 * STEPGRAPH_DRIVER names another driver than libcuda.so.1.
 */
#include "stepgraph/stepgraph.h"

#include "minimal-kernels.h" /* kernels_ptx: minimal.ptx, embedded by the build. */

#include <stdio.h>
#include <string.h>

enum { N = 1000, BYTES = N * sizeof(float), STEPS = 5 };

static struct { /* Zeroed: what was not made yet is NULL. */
    stepgraph_session *session;
    stepgraph_pin *weight, *fresh, *rate;
    stepgraph_step *step;
    struct CUfunc_st *update;
} t;

#define TRY(call)                                                                                                                \
    if ((call) != 0)                                                                                                             \
        return #call

/* One training step: the host's own launches, the same whether they run or are recorded. */
static const char *enqueue(void)
{
    uint64_t fresh = stepgraph_pin_address(t.fresh), weight = stepgraph_pin_address(t.weight), rate = stepgraph_pin_address(t.rate);
    int n = N;
    stepgraph_launch launch = STEPGRAPH_LAUNCH_INIT;

    launch.function = t.update;
    launch.arguments = (void *[]){&fresh, &weight, &rate, &n};
    launch.grid[0] = (N + 127) / 128;
    launch.block[0] = 128;
    TRY(stepgraph_session_launch(t.session, &launch));
    TRY(stepgraph_pin_commit(t.weight, fresh)); /* The new value goes where the graph reads it. */
    return NULL;
}

static const char *make_pin(stepgraph_role role, const char *name, uint64_t bytes, stepgraph_pin **pin_out)
{
    stepgraph_pin_config config = {.size = sizeof config, .role = role, .bytes = bytes, .name = name};
    TRY(stepgraph_pin_create(t.session, &config, pin_out));
    return NULL;
}

static const char *set_up(void)
{
    int (*set_context)(struct CUctx_st *);
    int (*load)(void **, const void *), (*find)(struct CUfunc_st **, void *, const char *);
    void *module;

    TRY(stepgraph_session_open(NULL, &t.session));
    *(void **)&set_context = stepgraph_session_symbol(t.session, "cuCtxSetCurrent", 4000);
    *(void **)&load = stepgraph_session_symbol(t.session, "cuModuleLoadData", 2000);
    *(void **)&find = stepgraph_session_symbol(t.session, "cuModuleGetFunction", 2000);
    TRY(set_context(stepgraph_session_context(t.session)));
    TRY(load(&module, kernels_ptx));
    TRY(find(&t.update, module, "update"));

    TRY(make_pin(STEPGRAPH_ROLE_STATE, "weight", BYTES, &t.weight));
    TRY(make_pin(STEPGRAPH_ROLE_SCRATCH, "fresh", BYTES, &t.fresh));
    TRY(make_pin(STEPGRAPH_ROLE_CELL, "rate", sizeof(float), &t.rate));
    TRY(stepgraph_step_begin(t.session, NULL, &t.step));
    return NULL;
}

static const char *train(float fresh[N], float replay[N])
{
    memset(fresh, 0, BYTES);
    TRY(stepgraph_pin_write(t.weight, fresh, BYTES));
    for (int i = 0; i < STEPS; i++) { /* Launch by launch. */
        TRY(stepgraph_pin_feed_f32(t.rate, 1.0f + (float)i));
        TRY(stepgraph_step_run_begin(t.step, STEPGRAPH_RUN_WARMUP));
        TRY(enqueue());
        TRY(stepgraph_step_run_end(t.step));
    }
    TRY(stepgraph_pin_read(t.weight, fresh, BYTES));

    TRY(stepgraph_step_prepare(t.step));
    TRY(stepgraph_step_capture(t.step)); /* Record. */
    const char *failed = enqueue();
    TRY(stepgraph_step_end(t.step));
    if (failed != NULL)
        return failed;

    memset(replay, 0, BYTES);
    TRY(stepgraph_pin_write(t.weight, replay, BYTES));
    for (int i = 0; i < STEPS; i++) { /* One launch per step. */
        TRY(stepgraph_pin_feed_f32(t.rate, 1.0f + (float)i));
        TRY(stepgraph_step_replay(t.step));
    }
    TRY(stepgraph_pin_read(t.weight, replay, BYTES));
    return NULL;
}

int main(void)
{
    static float fresh[N], replay[N];
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;
    stepgraph_error_info error = STEPGRAPH_ERROR_INFO_INIT;

    const char *failed = set_up();
    if (failed == NULL)
        failed = train(fresh, replay);
    if (failed != NULL)
        stepgraph_last_error(&error);
    else
        stepgraph_session_get_info(t.session, &info);

    stepgraph_step_destroy(t.step);
    stepgraph_pin_destroy(t.rate);
    stepgraph_pin_destroy(t.fresh);
    stepgraph_pin_destroy(t.weight);
    stepgraph_session_close(t.session);

    if (failed != NULL) {
        fprintf(stderr, "minimal: %s: %s\n", failed, error.message);
        return 2;
    }
    int same = memcmp(fresh, replay, BYTES) == 0;
    printf("%s%s: after %d steps launched one by one %g, replayed %g: %s\n", info.device_name, info.software ? " (a simulation)" : "",
           STEPS, (double)fresh[0], (double)replay[0], same ? "the same" : "NOT THE SAME");
    return same ? 0 : 1;
}
