/*
 * The five questions that this library began with, each answered by running the same steps without a graph. The fifth, on speed,
 * is in probe_launches.c.
 */
#include "support.h"

/* ---- (a) ten launches of another thread ---------------------------------------------------------------------------------- */

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int allowed, made, stop;
    CUdeviceptr p;
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* A backend's own launch thread: launches when it is let, and counts each launch after it was made. */
static void *work(void *unused)
{
    pthread_mutex_lock(&worker.lock);
    for (;;) {
        while (worker.made == worker.allowed && !worker.stop)
            pthread_cond_wait(&worker.changed, &worker.lock);
        if (worker.made == worker.allowed)
            break;
        float one = 1;
        cu.CtxSetCurrent(stepgraph_session_context(session));
        cu.LaunchKernel(kernels.inc, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&worker.p, &one}, NULL);
        stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 1);
        worker.made++;
        pthread_cond_broadcast(&worker.changed);
    }
    pthread_mutex_unlock(&worker.lock);
    return unused;
}

static void allow(int launches)
{
    pthread_mutex_lock(&worker.lock);
    worker.allowed += launches;
    pthread_cond_broadcast(&worker.changed);
    pthread_mutex_unlock(&worker.lock);
}

static void until_made(int launches)
{
    pthread_mutex_lock(&worker.lock);
    while (worker.made < launches)
        pthread_cond_wait(&worker.changed, &worker.lock);
    pthread_mutex_unlock(&worker.lock);
}

/* All that was queued has reached the driver: here, the six that the probe held back. */
static stepgraph_status drain(void *held_back)
{
    allow(*(int *)held_back);
    *(int *)held_back = 0;
    until_made(10);
    return STEPGRAPH_OK;
}

START_TEST(ten_launches_of_another_thread_move_the_counter_by_ten_after_a_drain)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_sample before = STEPGRAPH_SAMPLE_INIT, during = STEPGRAPH_SAMPLE_INIT, after = STEPGRAPH_SAMPLE_INIT;
    int held_back = 6;

    config.drain = drain;
    config.drain_user = &held_back;
    reopen(&config);
    worker.allowed = worker.made = worker.stop = 0;
    worker.p = device_make(4);
    ck_assert_int_eq(pthread_create(&worker.thread, NULL, work, NULL), 0);

    OK(stepgraph_session_sample(session, 0, &before));
    ck_assert_uint_eq(before.exactness, STEPGRAPH_NOT_INSTRUMENTED);
    allow(4); /* Ten are queued; four have been made when the sample is taken. */
    until_made(4);
    OK(stepgraph_session_sample(session, 0, &during));
    OK(stepgraph_session_sample(session, STEPGRAPH_SAMPLE_DRAIN, &after));

    pthread_mutex_lock(&worker.lock);
    worker.stop = 1;
    pthread_cond_broadcast(&worker.changed);
    pthread_mutex_unlock(&worker.lock);
    pthread_join(worker.thread, NULL);

    ck_assert_uint_eq(during.exactness, STEPGRAPH_LOWER_BOUND);
    ck_assert_uint_le(during.host[STEPGRAPH_KIND_KERNEL], 10);
    ck_assert_uint_eq(during.host[STEPGRAPH_KIND_KERNEL], 4);
    ck_assert_uint_eq(after.exactness, STEPGRAPH_EXACT);
    ck_assert_uint_eq(after.host[STEPGRAPH_KIND_KERNEL] - before.host[STEPGRAPH_KIND_KERNEL], 10);
    ck_assert_float_eq(float_at(worker.p), 10); /* And that many did run. */
}
END_TEST

/* ---- (b) one unpinned graph over three steps ------------------------------------------------------------------------------- */

/* An out-of-place optimizer: each step reads the parameter where the last one left it and writes it elsewhere. */
enum { STEPS = 3 };
static const float delta[STEPS] = {1, 2, 3};

/* Where the parameter is at the end of all steps, launched call by call. */
static float fresh_steps(CUdeviceptr buffer[STEPS + 1], float start)
{
    put_float(buffer[0], start);
    for (int k = 0; k < STEPS; k++)
        axpb(stream, buffer[k + 1], buffer[k], -delta[k]);
    return float_at(buffer[STEPS]);
}

static void four_buffers(CUdeviceptr buffer[STEPS + 1])
{
    for (int i = 0; i <= STEPS; i++)
        buffer[i] = device_make(4);
}

START_TEST(unpinned_parameter_is_refused_by_kernel_and_argument)
{
    stepgraph_step *step = step_make(session, "train", 0);
    CUdeviceptr buffer[STEPS + 1];

    four_buffers(buffer);
    begin_recording(step);
    axpb(stream, buffer[1], buffer[0], -delta[0]);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "train", "axpb", "arg", "0", "1");
    STATE_IS(step, STEPGRAPH_STEP_FAILED);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "axpb"); /* Before any replay, and again for each. */
    ck_assert_uint_eq(step_stats(step).replays, 0);
}
END_TEST

START_TEST(unpinned_graph_over_three_steps_is_wrong)
{
    stepgraph_step *step = step_make(session, "train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    CUdeviceptr buffer[STEPS + 1];
    float fresh, replayed;

    four_buffers(buffer);
    fresh = fresh_steps(buffer, 0);
    four_buffers(buffer);
    begin_recording(step);
    axpb(stream, buffer[1], buffer[0], -delta[0]); /* Its addresses, and its delta, are now in the graph for good. */
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(step_stats(step).unregistered, 2);
    for (int k = 0; k < STEPS; k++)
        OK(stepgraph_step_replay(step));
    replayed = float_at(buffer[1]);
    printf("one unpinned graph over %d steps: %g, launched: %g\n", STEPS, (double)replayed, (double)fresh);
    ck_assert_float_ne(replayed, fresh);
}
END_TEST

START_TEST(pinned_graph_over_the_same_three_steps_is_right)
{
    stepgraph_step *step = step_make(session, "train", 0);
    stepgraph_pin *w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"),
                  *next = pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4, "next w"),
                  *change = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "delta"),
                  *rate = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "rate");
    CUdeviceptr buffer[STEPS + 1];
    float fresh, replayed;

    four_buffers(buffer);
    fresh = fresh_steps(buffer, 0);
    begin_recording(step);
    update(stream, stepgraph_pin_address(next), stepgraph_pin_address(w), stepgraph_pin_address(change),
           stepgraph_pin_address(rate), 1);
    OK(stepgraph_pin_commit(w, stepgraph_pin_address(next)));
    OK(stepgraph_step_end(step));
    OK(stepgraph_pin_feed_f32(rate, -1));
    for (int k = 0; k < STEPS; k++) {
        OK(stepgraph_pin_feed_f32(change, delta[k]));
        OK(stepgraph_step_replay(step));
    }
    OK(stepgraph_pin_read(w, &replayed, 4));
    ck_assert_float_eq(replayed, fresh);
}
END_TEST

/* ---- (c) recording again --------------------------------------------------------------------------------------------------- */

START_TEST(recording_again_is_refused_until_reset_and_prepare)
{
    stepgraph_step *step = step_make(session, "train", 0);
    stepgraph_pin *w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    CUdeviceptr p = stepgraph_pin_address(w);
    float fresh;

    /* The same three executions without a graph. */
    for (int i = 0; i < 2; i++)
        inc(stream, p, 1);
    inc(stream, p, 10);
    fresh = pin_float(w);
    put_float(p, 0);

    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_capture(step), "train", "prepare");
    begin_recording(step);
    inc(stream, p, 1);
    OK(stepgraph_step_end(step));
    OK(stepgraph_step_replay(step));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_capture(step), "train", "graph", "reset", "prepare");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_prepare(step), "train", "reset");
    OK(stepgraph_step_replay(step)); /* The refusals have changed nothing. */

    OK(stepgraph_step_reset(step));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_capture(step), "train", "prepare");
    begin_recording(step);
    inc(stream, p, 10);
    OK(stepgraph_step_end(step));
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(w), fresh);
}
END_TEST

/* ---- (d) a pinned parameter over eight steps ---------------------------------------------------------------------------------
 */

START_TEST(pinned_parameters_are_exact_over_eight_steps_for_one_launch)
{
    enum { PARAMETERS = 5, N = 100, REPLAYS = 8 };
    stepgraph_step *step = step_make(session, "train", 0);
    stepgraph_pin *w[PARAMETERS], *x = pin_make(session, STEPGRAPH_ROLE_FEED, N * 4, "x"),
                                  *rate = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "rate"),
                                  *scratch = pin_make(session, STEPGRAPH_ROLE_SCRATCH, PARAMETERS * N * 4, "fresh");
    CUdeviceptr batch = device_make(N * 4), lr = device_make(4), at[PARAMETERS][2];
    uint64_t fresh[PARAMETERS], seed = 88;
    float start[N], values[REPLAYS][N], rates[REPLAYS], launched[N], replayed[N];
    stepgraph_sample before, after;
    stepgraph_pin_stats pins;

    for (int i = 0; i < N; i++)
        start[i] = (float)unit_random(&seed) / 4e9f;
    for (int k = 0; k < REPLAYS; k++) {
        rates[k] = 0.1f / (float)(k + 1);
        for (int i = 0; i < N; i++)
            values[k][i] = (float)unit_random(&seed) / 4e9f - 0.5f;
    }
    for (int j = 0; j < PARAMETERS; j++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", j);
        w[j] = pin_make(session, STEPGRAPH_ROLE_STATE, N * 4, name);
        fresh[j] = stepgraph_pin_address(scratch) + (uint64_t)(j * N * 4);
        at[j][0] = device_make(N * 4);
        at[j][1] = device_make(N * 4);
        put_bytes(at[j][0], start, sizeof start);
        OK(stepgraph_pin_write(w[j], start, sizeof start));
    }

    /* Launched call by call, the parameters moving from buffer to buffer. */
    for (int k = 0; k < REPLAYS; k++) {
        put_bytes(batch, values[k], sizeof values[k]);
        put_float(lr, rates[k]);
        for (int j = 0; j < PARAMETERS; j++)
            update(stream, at[j][(k + 1) % 2], at[j][k % 2], batch, lr, N);
        OK(stepgraph_session_wait(session));
    }

    /* Recorded once. */
    begin_recording(step);
    for (int j = 0; j < PARAMETERS; j++) {
        CUdeviceptr d = fresh[j], p = stepgraph_pin_address(w[j]), in = stepgraph_pin_address(x), r = stepgraph_pin_address(rate);
        int n = N;
        stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;
        call.function = kernels.update;
        call.arguments = (void *[]){&d, &p, &in, &r, &n};
        call.block[0] = N;
        OK(stepgraph_session_launch(session, &call));
    }
    OK(stepgraph_pin_commit_many(session, PARAMETERS, w, fresh));
    OK(stepgraph_step_end(step));

    before = sample_now(session);
    for (int k = 0; k < REPLAYS; k++) {
        OK(stepgraph_pin_feed(x, values[k], sizeof values[k]));
        OK(stepgraph_pin_feed_f32(rate, rates[k]));
        OK(stepgraph_step_replay(step));
    }
    after = sample_now(session);
    for (int j = 0; j < PARAMETERS; j++) {
        bytes_at(at[j][REPLAYS % 2], launched, sizeof launched);
        OK(stepgraph_pin_read(w[j], replayed, sizeof replayed));
        ck_assert_mem_eq(launched, replayed, sizeof launched);
        ck_assert_mem_ne(launched, start, sizeof start);
    }

    /* The host launched nothing, ... */
    ck_assert_uint_eq(after.host[STEPGRAPH_KIND_KERNEL], before.host[STEPGRAPH_KIND_KERNEL]);
    ck_assert_uint_eq(after.wrapper[STEPGRAPH_KIND_KERNEL], before.wrapper[STEPGRAPH_KIND_KERNEL]);
    ck_assert_uint_eq(after.library[STEPGRAPH_KIND_KERNEL], before.library[STEPGRAPH_KIND_KERNEL]);
    ck_assert_uint_eq(after.library[STEPGRAPH_KIND_GRAPH] - before.library[STEPGRAPH_KIND_GRAPH], REPLAYS);
    /* ... and the price of all pins together is one launch. */
    ck_assert_uint_eq(step_stats(step).pin_nodes, 1);
    ck_assert_uint_eq(step_stats(step).pin_bytes, PARAMETERS * N * 4);
    ck_assert_uint_eq(step_stats(step).nodes_total, PARAMETERS + 1);
    pins = pin_stats(session);
    ck_assert_uint_eq(pins.copies, PARAMETERS);
    ck_assert_uint_eq(pins.copy_launches, 1);
    ck_assert_uint_eq(pins.copy_bytes, PARAMETERS * N * 4);
    ck_assert_uint_eq(pins.feed_copies, REPLAYS);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("probes");
    TCase *a = unit_case(suite, "a: counter"), *b = unit_case(suite, "b: unpinned"), *c = unit_case(suite, "c: recording again"),
          *d = unit_case(suite, "d: pinned");

    tcase_add_test(a, ten_launches_of_another_thread_move_the_counter_by_ten_after_a_drain);
    tcase_add_test(b, unpinned_parameter_is_refused_by_kernel_and_argument);
    tcase_add_test(b, unpinned_graph_over_three_steps_is_wrong);
    tcase_add_test(b, pinned_graph_over_the_same_three_steps_is_right);
    tcase_add_test(c, recording_again_is_refused_until_reset_and_prepare);
    tcase_add_test(d, pinned_parameters_are_exact_over_eight_steps_for_one_launch);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
