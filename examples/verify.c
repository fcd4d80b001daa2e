/*
 * Introduces relaxing a step and verifying it: the recorded nodes are replayed in the order that their memory needs, and another process looks
 * for what that rule cannot see. With --fault the step has such a thing: a kernel that is given a view of a buffer and goes on into the next.
 *
 * Verifying may end its process: a kernel that finds 0xff where an address should be touches memory that is not there. So it is done once, while
 * developing, in a child that is forked before CUDA is used, since CUDA does not survive a fork.
 */
#include "stepgraph/stepgraph.h"

#include "minimal-kernels.h" /* kernels_ptx: minimal.ptx, embedded by the build. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARAMETERS = 4, N = 1000, BYTES = N * sizeof(float) };

static stepgraph_session *session;
static stepgraph_pin *weights[PARAMETERS], *fresh[PARAMETERS], *rate;
static struct CUfunc_st *update;
static int fault;

static void check(int status, const char *what)
{
    stepgraph_error_info error = STEPGRAPH_ERROR_INFO_INIT;

    if (status == 0)
        return;
    stepgraph_last_error(&error);
    fprintf(stderr, "verify: %s failed (%d): %s\n", what, status, error.message);
    exit(2);
}
#define CHECK(call) check(call, #call)

/* ---- the host's own step ----------------------------------------------------------------------------------------- */

/* All parameters stand one behind the other in one buffer, as do their new values: each pin is a view. */
static stepgraph_pin *make_view(stepgraph_role role, const char *name, int i, uint64_t buffer)
{
    char full[32];
    stepgraph_pin_config config = {.size = sizeof config, .role = role, .address = buffer + (uint64_t)i * BYTES, .bytes = BYTES, .name = full};
    stepgraph_pin *pin = NULL;

    snprintf(full, sizeof full, "%s[%d]", name, i);
    CHECK(stepgraph_pin_create(session, &config, &pin));
    return pin;
}

static void launch_update(int i, int n)
{
    uint64_t to = stepgraph_pin_address(fresh[i]), from = stepgraph_pin_address(weights[i]), by = stepgraph_pin_address(rate);
    stepgraph_launch launch = STEPGRAPH_LAUNCH_INIT;

    launch.function = update;
    launch.arguments = (void *[]){&to, &from, &by, &n};
    launch.grid[0] = (unsigned)(n + 127) / 128;
    launch.block[0] = 128;
    CHECK(stepgraph_session_launch(session, &launch));
}

static void train_step(void)
{
    for (int i = 0; i < PARAMETERS; i++) {
        if (fault && i == 2)
            continue; /* The kernel before does this one too: its buffers go on. */
        launch_update(i, fault && i == 1 ? 2 * N : N);
    }
    for (int i = 0; i < PARAMETERS; i++)
        CHECK(stepgraph_pin_commit(weights[i], stepgraph_pin_address(fresh[i])));
}

/* The same inputs for the same k. */
static stepgraph_status feed(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    return stepgraph_pin_feed_f32(rate, 1.0f / (float)(k + 1));
}

/* ---- in the child -------------------------------------------------------------------------------------------------- */

/*! [verify] */
/* Whether it came out as expected. */
static int relax_and_verify(stepgraph_step *step)
{
    stepgraph_relax_config relax = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_verify_config config = STEPGRAPH_VERIFY_CONFIG_INIT;
    stepgraph_verify_summary summary = STEPGRAPH_VERIFY_SUMMARY_INIT;
    stepgraph_verify *verify = NULL;

    relax.lanes = 4; /* 0 would choose by timing, and leave a step as short as this one as it was recorded. */
    config.feed = feed;
    CHECK(stepgraph_step_relax(step, &relax, NULL));
    CHECK(stepgraph_step_verify(step, &config, &verify));
    CHECK(stepgraph_verify_get_summary(verify, &summary));
    fputs(stepgraph_verify_text(verify), stdout);
    stepgraph_verify_destroy(verify);
    return summary.verdict == (fault ? STEPGRAPH_FAULTS_FOUND : STEPGRAPH_NO_FAULT_FOUND);
}
/*! [verify] */

static int child(void)
{
    int (*set_context)(struct CUctx_st *), (*load)(void **, const void *), (*unload)(void *);
    int (*find)(struct CUfunc_st **, void *, const char *);
    int (*allocate)(uint64_t *, size_t), (*release)(uint64_t);
    stepgraph_pin_config cell = {.size = sizeof cell, .role = STEPGRAPH_ROLE_CELL, .bytes = sizeof(float), .name = "rate"};
    stepgraph_step *step = NULL;
    uint64_t buffers[2];
    int as_expected;
    void *module;

    CHECK(stepgraph_session_open(NULL, &session));
    *(void **)&set_context = stepgraph_session_symbol(session, "cuCtxSetCurrent", 4000);
    *(void **)&load = stepgraph_session_symbol(session, "cuModuleLoadData", 2000);
    *(void **)&unload = stepgraph_session_symbol(session, "cuModuleUnload", 2000);
    *(void **)&find = stepgraph_session_symbol(session, "cuModuleGetFunction", 2000);
    *(void **)&allocate = stepgraph_session_symbol(session, "cuMemAlloc", 3020);
    *(void **)&release = stepgraph_session_symbol(session, "cuMemFree", 3020);
    CHECK(set_context(stepgraph_session_context(session)));
    CHECK(load(&module, kernels_ptx));
    CHECK(find(&update, module, "update"));
    for (int i = 0; i < 2; i++)
        CHECK(allocate(&buffers[i], PARAMETERS * BYTES));

    CHECK(stepgraph_pin_create(session, &cell, &rate));
    for (int i = 0; i < PARAMETERS; i++) {
        float values[N];
        for (int k = 0; k < N; k++)
            values[k] = (float)(i + 1) + (float)k / N;
        weights[i] = make_view(STEPGRAPH_ROLE_STATE, "weight", i, buffers[0]);
        fresh[i] = make_view(STEPGRAPH_ROLE_SCRATCH, "fresh", i, buffers[1]);
        CHECK(stepgraph_pin_write(weights[i], values, BYTES));
    }
    CHECK(feed(NULL, NULL, 0));
    CHECK(stepgraph_step_begin(session, NULL, &step));
    CHECK(stepgraph_step_prepare(step));
    CHECK(stepgraph_step_capture(step));
    train_step();
    CHECK(stepgraph_step_end(step));

    as_expected = relax_and_verify(step);

    stepgraph_step_destroy(step);
    for (int i = 0; i < PARAMETERS; i++) {
        CHECK(stepgraph_pin_destroy(weights[i]));
        CHECK(stepgraph_pin_destroy(fresh[i]));
    }
    CHECK(stepgraph_pin_destroy(rate));
    CHECK(release(buffers[0]));
    CHECK(release(buffers[1]));
    CHECK(unload(module));
    CHECK(stepgraph_session_close(session));
    return as_expected ? 0 : 1;
}

int main(int argc, char **argv)
{
    pid_t pid;
    int status;

    fault = argc > 1 && strcmp(argv[1], "--fault") == 0;
    pid = fork();
    if (pid == 0)
        exit(child());
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("verify");
        return 2;
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "verify: the verification died of signal %d, which is an answer too: do not replay this step relaxed\n", WTERMSIG(status));
        return 3;
    }
    return WEXITSTATUS(status);
}
