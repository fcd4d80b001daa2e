/*
 * The program behind docs/guide.md; its listings are cut from here, so they are built and run with the tests.
 *
 * A vector of weights is trained out of place, as many frameworks do it: every step writes the new weights to other memory than the old
 * ones. The same steps are run once launch by launch and once as a graph, and must end with the same bytes. Then a step is recorded
 * that must not be replayed. Needs STEPGRAPH_DRIVER or a card; exit status 0 if all is as the guide says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepgraph/stepgraph.h>

#include "kernels_ptx.h"

enum { N = 256, BYTES = N * sizeof(float), WARM = 3, STEPS = 20 };

//! [check]
static void check(stepgraph_status status)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;

    if (status == STEPGRAPH_OK)
        return;
    stepgraph_last_error(&info);
    fprintf(stderr, "%s: %s\n", stepgraph_status_name(status), info.message);
    exit(1);
}
//! [check]

struct CUmod_st;

/* The driver of the session, for what a host does itself: modules and memory. No cuda.h needed. */
static void call(stepgraph_session *session, const char *name, int version, void *entry)
{
    void *found = stepgraph_session_symbol(session, name, version);

    if (found == NULL) {
        fprintf(stderr, "the driver has no %s\n", name);
        exit(1);
    }
    memcpy(entry, &found, sizeof found);
}

static void expect(int right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "guide: %s\n", what);
    exit(1);
}

static void make_current(stepgraph_session *session)
{
    int (*set)(struct CUctx_st *);

    call(session, "cuCtxSetCurrent", 4000, &set);
    expect(set(stepgraph_session_context(session)) == 0, "the context cannot be made current");
}

static struct CUfunc_st *load_kernel(stepgraph_session *session, const char *name)
{
    int (*load)(struct CUmod_st **, const void *);
    int (*get)(struct CUfunc_st **, struct CUmod_st *, const char *);
    struct CUmod_st *module;
    struct CUfunc_st *function;

    call(session, "cuModuleLoadData", 2000, &load);
    call(session, "cuModuleGetFunction", 2000, &get);
    expect(load(&module, kernels_ptx) == 0 && get(&function, module, name) == 0, "the kernels do not load");
    return function;
}

static uint64_t device_memory(stepgraph_session *session, size_t bytes)
{
    int (*alloc)(uint64_t *, size_t);
    uint64_t address;

    call(session, "cuMemAlloc", 3020, &alloc);
    expect(alloc(&address, bytes) == 0, "no device memory");
    return address;
}

static void free_device_memory(stepgraph_session *session, uint64_t address)
{
    int (*release)(uint64_t);

    call(session, "cuMemFree", 3020, &release);
    expect(release(address) == 0, "device memory cannot be freed");
}

static stepgraph_pin *pin(stepgraph_session *session, const char *name, stepgraph_role role, uint64_t bytes, uint64_t address)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *made;

    config.name = name;
    config.role = role;
    config.bytes = bytes;
    config.address = address;
    check(stepgraph_pin_create(session, &config, &made));
    return made;
}

/* What the trainer keeps. */
struct trainer {
    stepgraph_session *session;
    struct CUfunc_st *update;
    uint64_t pool; /* The host's own memory, where new weights are written. */
    unsigned turn; /* Which half of it is next. */
    stepgraph_pin *weights, *x, *rate;
};

//! [step]
/* new weights = weights + rate * x, out of place, then put back where the graph expects them. */
static void train_step(struct trainer *t)
{
    uint64_t fresh = t->pool + BYTES * (t->turn++ % 2);
    uint64_t weights = stepgraph_pin_address(t->weights);
    uint64_t x = stepgraph_pin_address(t->x);
    uint64_t rate = stepgraph_pin_address(t->rate);
    int n = N;
    void *arguments[] = { &fresh, &weights, &x, &rate, &n };
    stepgraph_launch launch = STEPGRAPH_LAUNCH_INIT;

    launch.function = t->update;
    launch.arguments = arguments;
    launch.block[0] = N;
    check(stepgraph_session_launch(t->session, &launch));
    check(stepgraph_pin_commit(t->weights, fresh));
}
//! [step]

/* The next batch: the same for both ways of running. */
static void next_batch(float *batch, int k)
{
    for (int i = 0; i < N; i++)
        batch[i] = (float)(i % 7) - 3.0f + (float)k * 0.125f;
}

static float rate_of(int k)
{
    return 0.5f / (float)(k + 1);
}

static void feed(struct trainer *t, int k)
{
    float batch[N];

    next_batch(batch, k);
    //! [feed]
    check(stepgraph_pin_feed(t->x, batch, sizeof batch));
    check(stepgraph_pin_feed_f32(t->rate, rate_of(k)));
    //! [feed]
}

static void run_fresh(struct trainer *t, stepgraph_step *step, stepgraph_run kind, int k)
{
    //! [run]
    feed(t, k);
    check(stepgraph_step_run_begin(step, kind)); /* warm up: the step as it always ran */
    check(stepgraph_step_mark(step, "update"));
    train_step(t);
    check(stepgraph_step_run_end(step));
    //! [run]
}

static void report(stepgraph_step *step)
{
    //! [verdict]
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;

    check(stepgraph_step_get_verdict(step, &verdict));
    printf("%lld launches a step; pins cost %lld\n", (long long)verdict.launches, (long long)verdict.pin_launches);
    printf("fresh %.1f us, replay %.1f us\n", verdict.step_us_fresh, verdict.step_us_replay);
    printf("%s\n", verdict.answer == STEPGRAPH_WIN    ? "a graph pays"
                   : verdict.answer == STEPGRAPH_NULL ? "a graph does not pay"
                                                      : "unknown: something was not measured");
    //! [verdict]
}

/* A step that must not be replayed: it reads memory that no pin covers. */
static void refused(struct trainer *t)
{
    uint64_t stray = device_memory(t->session, BYTES);
    uint64_t fresh = t->pool, weights = stepgraph_pin_address(t->weights), rate = stepgraph_pin_address(t->rate);
    int n = N;
    void *arguments[] = { &fresh, &weights, &stray, &rate, &n };
    stepgraph_launch launch = STEPGRAPH_LAUNCH_INIT;
    stepgraph_step *step;
    stepgraph_status status;

    launch.function = t->update;
    launch.arguments = arguments;
    launch.block[0] = N;
    check(stepgraph_step_begin(t->session, NULL, &step));

    //! [refused]
    check(stepgraph_step_prepare(step));
    check(stepgraph_step_capture(step));
    check(stepgraph_session_launch(t->session, &launch)); /* one argument is an address that no pin covers */
    status = stepgraph_step_end(step);
    if (status == STEPGRAPH_ERR_REFUSED) {
        stepgraph_error_info why = STEPGRAPH_ERROR_INFO_INIT;

        check(stepgraph_step_error(step, &why));
        printf("%s\n", why.message);
    }
    //! [refused]
    expect(status == STEPGRAPH_ERR_REFUSED, "an address that no pin covers was not refused");
    expect(stepgraph_step_state(step) == STEPGRAPH_STEP_FAILED, "a refused step is not FAILED");

    //! [mended]
    stepgraph_pin *batch = pin(t->session, "batch", STEPGRAPH_ROLE_CONST, BYTES, stray);

    check(stepgraph_step_reset(step));
    check(stepgraph_step_prepare(step));
    check(stepgraph_step_capture(step));
    check(stepgraph_session_launch(t->session, &launch));
    check(stepgraph_step_end(step));
    //! [mended]

    stepgraph_step_destroy(step);
    check(stepgraph_pin_destroy(batch));
    free_device_memory(t->session, stray);
}

//! [hooks]
/* What the host's allocator calls while its step warms up and records, in place of the device. */
static uint64_t take_block(stepgraph_arena *arena, uint64_t bytes)
{
    uint64_t address;

    check(stepgraph_arena_alloc(arena, bytes, "new weights", &address)); /* the label is for messages */
    return address;
}

static void give_block(stepgraph_arena *arena, uint64_t address)
{
    check(stepgraph_arena_free(arena, address));
}
//! [hooks]

/* The same step, its new weights in a block of an arena. */
static void with_arena(struct trainer *t)
{
    static float start[N], by_launches[N], by_graph[N];
    stepgraph_session *session = t->session;
    uint64_t pool = t->pool;
    stepgraph_step *step;

    check(stepgraph_step_begin(session, NULL, &step));
    check(stepgraph_pin_read(t->weights, start, sizeof start));
    run_fresh(t, step, STEPGRAPH_RUN_WARMUP, 0);
    check(stepgraph_pin_read(t->weights, by_launches, sizeof by_launches));
    check(stepgraph_pin_write(t->weights, start, sizeof start));

    //! [arena]
    stepgraph_arena_config config = STEPGRAPH_ARENA_CONFIG_INIT;
    stepgraph_arena *arena;

    config.name = "temporaries";
    config.bytes = 1 << 20;
    config.quarantine_bytes = 1 << 16;
    check(stepgraph_arena_create(session, &config, &arena));

    check(stepgraph_step_prepare(step));
    check(stepgraph_step_capture(step));
    t->pool = take_block(arena, 2 * BYTES); /* the memory where the step writes new weights */
    train_step(t);
    give_block(arena, t->pool);
    check(stepgraph_step_end(step));

    feed(t, 0);
    check(stepgraph_step_replay(step)); /* nobody else has been given that block */
    //! [arena]
    check(stepgraph_pin_read(t->weights, by_graph, sizeof by_graph));
    expect(memcmp(start, by_graph, sizeof start) != 0, "the step over an arena left the weights as they were");
    expect(memcmp(by_launches, by_graph, sizeof by_graph) == 0, "the graph over an arena gives other weights than the launches");
    expect(stepgraph_arena_destroy(arena) == STEPGRAPH_ERR_STATE, "an arena went while a graph uses it");

    stepgraph_step_destroy(step);
    check(stepgraph_arena_destroy(arena));
    t->pool = pool;
}

int main(void)
{
    static float start[N], by_launches[N], by_graph[N];
    struct trainer t = { 0 };
    stepgraph_step *step;

    for (int i = 0; i < N; i++)
        start[i] = (float)i * 0.01f;

    //! [session]
    stepgraph_session *session;
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;

    check(stepgraph_session_open(NULL, &session));
    check(stepgraph_session_get_info(session, &info));
    printf("driver %d.%d%s, %s\n", info.driver_version / 1000, info.driver_version % 1000 / 10,
           info.software ? " (cusim, a simulation)" : "", info.device_name);
    //! [session]

    make_current(session);
    t.session = session;
    t.update = load_kernel(session, "update");
    t.pool = device_memory(session, 2 * BYTES);

    //! [pins]
    t.weights = pin(session, "weights", STEPGRAPH_ROLE_STATE, BYTES, 0);
    t.x = pin(session, "x", STEPGRAPH_ROLE_FEED, BYTES, 0);
    t.rate = pin(session, "rate", STEPGRAPH_ROLE_CELL, sizeof(float), 0);
    stepgraph_pin *pool = pin(session, "pool", STEPGRAPH_ROLE_SCRATCH, 2 * BYTES, t.pool); /* adopted: the host's own */

    check(stepgraph_pin_write(t.weights, start, sizeof start));
    //! [pins]

    //! [begin]
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;

    config.name = "train";
    config.flags = STEPGRAPH_STEP_STRICT_FEEDS | STEPGRAPH_STEP_TIMING;
    check(stepgraph_step_begin(session, &config, &step));
    //! [begin]

    /* The oracle: all steps, launch by launch. */
    for (int k = 0; k < WARM + STEPS; k++)
        run_fresh(&t, step, STEPGRAPH_RUN_WARMUP, k);
    check(stepgraph_pin_read(t.weights, by_launches, sizeof by_launches));
    expect(memcmp(start, by_launches, sizeof start) != 0, "the steps left the weights as they were");

    check(stepgraph_pin_write(t.weights, start, sizeof start));
    for (int k = 0; k < WARM; k++)
        run_fresh(&t, step, STEPGRAPH_RUN_WARMUP, k);

    //! [record]
    check(stepgraph_step_prepare(step));
    check(stepgraph_step_capture(step));
    train_step(&t); /* recorded: nothing of it runs */
    check(stepgraph_step_end(step));

    for (int k = WARM; k < WARM + STEPS; k++) {
        feed(&t, k);
        check(stepgraph_step_replay(step)); /* one copy for all that was fed, one launch */
    }
    check(stepgraph_pin_read(t.weights, by_graph, sizeof by_graph));
    //! [record]
    expect(memcmp(by_launches, by_graph, sizeof by_graph) == 0, "the graph gives other weights than the launches");

    report(step);
    refused(&t);
    with_arena(&t);

    //! [stale]
    feed(&t, 0);
    check(stepgraph_step_replay(step));
    stepgraph_status status = stepgraph_step_replay(step); /* nothing fed since the last one */
    //! [stale]
    expect(status == STEPGRAPH_ERR_REFUSED, "a replay on a stale feed was not refused");

    //! [close]
    stepgraph_step_destroy(step);
    check(stepgraph_pin_destroy(t.weights));
    check(stepgraph_pin_destroy(t.x));
    check(stepgraph_pin_destroy(t.rate));
    check(stepgraph_pin_destroy(pool));
    check(stepgraph_session_close(session));
    //! [close]
    return 0;
}
