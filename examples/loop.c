/*
 * Introduces the loop, which decides for each step whether it is launched, recorded or replayed: a trainer as it was before, the
 * same trainer on a loop, and the proof that both end with the same bytes. docs/loop.md shows what differs between them.
 */
#include "stepgraph/stepgraph.h"

#include "minimal-kernels.h" /* kernels_ptx: minimal.ptx, embedded by the build. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000, BYTES = N * sizeof(float), STEPS = 200 };

struct CUmod_st;

static stepgraph_session *session;
static struct CUfunc_st *update;
static int (*launch)(struct CUfunc_st *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     struct CUstream_st *, void **, void **);
static int (*device_alloc)(uint64_t *, size_t), (*device_free)(uint64_t);
static int (*to_device)(uint64_t, const void *, size_t), (*to_host)(void *, uint64_t, size_t);

static void check(int status)
{
    stepgraph_error_info error = STEPGRAPH_ERROR_INFO_INIT;

    if (status == 0)
        return;
    stepgraph_last_error(&error);
    fprintf(stderr, "loop: failed (%d): %s\n", status, error.message);
    exit(2);
}

static float schedule(uint64_t k)
{
    return 1.0f / (float)(k + 1);
}

/* fresh = weight + *rate: out of place, as many frameworks do it. */
static void launch_update(uint64_t fresh, uint64_t weight, uint64_t rate)
{
    int n = N;

    check(launch(update, (N + 127) / 128, 1, 1, 128, 1, 1, 0, stepgraph_session_stream(session),
                 (void *[]){&fresh, &weight, &rate, &n}, NULL));
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 1);
}

/* ---- before ------------------------------------------------------------------------------------------------------ */

//! [before]
static void train_before(float *trained)
{
    float zeros[N] = {0};
    uint64_t weight, fresh, rate;

    check(device_alloc(&weight, BYTES));
    check(device_alloc(&fresh, BYTES));
    check(device_alloc(&rate, sizeof(float)));
    check(to_device(weight, zeros, BYTES));

    for (uint64_t k = 0; k < STEPS; k++) {
        float value = schedule(k);
        check(stepgraph_session_wait(session));
        check(to_device(rate, &value, sizeof value));
        launch_update(fresh, weight, rate);
        uint64_t old = weight;
        weight = fresh;
        fresh = old;
    }
    check(stepgraph_session_wait(session));
    check(to_host(trained, weight, BYTES));
    //! [before]
    check(device_free(weight));
    check(device_free(fresh));
    check(device_free(rate));
}

/* ---- after ------------------------------------------------------------------------------------------------------- */

static stepgraph_pin *make_pin(stepgraph_role role, const char *name, uint64_t bytes)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *pin = NULL;

    config.role = role;
    config.name = name;
    config.bytes = bytes;
    config.type = STEPGRAPH_TYPE_F32;
    check(stepgraph_pin_create(session, &config, &pin));
    return pin;
}

static void report(stepgraph_loop *loop)
{
    const char *text = NULL;

    //! [report]
    check(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TEXT, &text));
    fputs(text, stdout);
    //! [report]
}

//! [after]
static void train_after(float *trained)
{
    stepgraph_turn turn = STEPGRAPH_TURN_INIT;
    stepgraph_loop *loop = NULL;
    stepgraph_pin *weight = make_pin(STEPGRAPH_ROLE_STATE, "weight", BYTES);
    stepgraph_pin *fresh = make_pin(STEPGRAPH_ROLE_SCRATCH, "fresh", BYTES);
    stepgraph_pin *rate = make_pin(STEPGRAPH_ROLE_CELL, "rate", sizeof(float));

    check(stepgraph_loop_create(session, NULL, &loop));

    for (uint64_t k = 0; k < STEPS; k++) {
        do {
            check(stepgraph_loop_begin(loop, k, &turn));
            if (turn.feed)
                check(stepgraph_pin_feed_f32(rate, schedule(k)));
            if (turn.run) {
                launch_update(stepgraph_pin_address(fresh), stepgraph_pin_address(weight), stepgraph_pin_address(rate));
                check(stepgraph_pin_commit(weight, stepgraph_pin_address(fresh)));
            }
            check(stepgraph_loop_end(loop, &turn));
        } while (turn.again);
    }
    check(stepgraph_pin_read(weight, trained, BYTES));
    //! [after]
    report(loop);
    stepgraph_loop_destroy(loop);
    check(stepgraph_pin_destroy(rate));
    check(stepgraph_pin_destroy(fresh));
    check(stepgraph_pin_destroy(weight));
}

static void *driver_call(const char *name, int version)
{
    void *found = stepgraph_session_symbol(session, name, version);

    if (found == NULL) {
        fprintf(stderr, "loop: the driver has no %s\n", name);
        exit(2);
    }
    return found;
}

int main(void)
{
    static float before[N], after[N];
    int (*set_context)(struct CUctx_st *), (*load)(struct CUmod_st **, const void *), (*unload)(struct CUmod_st *);
    int (*find)(struct CUfunc_st **, struct CUmod_st *, const char *);
    struct CUmod_st *module;

    check(stepgraph_session_open(NULL, &session));
    *(void **)&set_context = driver_call("cuCtxSetCurrent", 4000);
    *(void **)&load = driver_call("cuModuleLoadData", 2000);
    *(void **)&unload = driver_call("cuModuleUnload", 2000);
    *(void **)&find = driver_call("cuModuleGetFunction", 2000);
    *(void **)&launch = driver_call("cuLaunchKernel", 4000);
    *(void **)&device_alloc = driver_call("cuMemAlloc", 3020);
    *(void **)&device_free = driver_call("cuMemFree", 3020);
    *(void **)&to_device = driver_call("cuMemcpyHtoD", 3020);
    *(void **)&to_host = driver_call("cuMemcpyDtoH", 3020);
    check(set_context(stepgraph_session_context(session)));
    check(load(&module, kernels_ptx));
    check(find(&update, module, "update"));

    train_before(before);
    train_after(after);
    int same = memcmp(before, after, BYTES) == 0;
    printf("%d steps launched give %.9g, on the loop %.9g: %s\n", STEPS, (double)before[0], (double)after[0],
           same ? "the same" : "WRONG");

    check(unload(module));
    check(stepgraph_session_close(session));
    return same ? 0 : 1;
}
