/* The launch counter: three sources never added up, what a sample is worth, and what end makes of it. */
#include "support.h"

static stepgraph_status no_drain(void *user)
{
    ++*(unsigned *)user;
    return STEPGRAPH_OK;
}

static stepgraph_status failing_drain(void *user)
{
    (void)user;
    return STEPGRAPH_ERR_UNSUPPORTED;
}

static void reopen_with_drain(stepgraph_status (*drain)(void *), void *user)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;

    config.drain = drain;
    config.drain_user = user;
    reopen(&config);
}

static stepgraph_sample drained(void)
{
    stepgraph_sample sample = STEPGRAPH_SAMPLE_INIT;

    OK(stepgraph_session_sample(session, STEPGRAPH_SAMPLE_DRAIN, &sample));
    return sample;
}

/* ---- what a sample is worth -------------------------------------------------------------------------------------------- */

START_TEST(counter_that_nobody_moved_is_not_instrumented)
{
    stepgraph_sample sample = sample_now(session);

    ck_assert_uint_eq(sample.exactness, STEPGRAPH_NOT_INSTRUMENTED);
    /* The library's own work does not count as instrumentation, nor does a drain. */
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    OK(stepgraph_pin_commit(pin, device_make(4)));
    ck_assert_uint_eq(sample_now(session).exactness, STEPGRAPH_NOT_INSTRUMENTED);
    ck_assert_uint_eq(drained().exactness, STEPGRAPH_NOT_INSTRUMENTED);
}
END_TEST

START_TEST(counts_of_the_sampling_thread_alone_are_exact)
{
    stepgraph_sample sample;

    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 3);
    sample = sample_now(session);
    ck_assert_uint_eq(sample.exactness, STEPGRAPH_EXACT);
    ck_assert_uint_eq(sample.host[STEPGRAPH_KIND_KERNEL], 3);
}
END_TEST

START_TEST(kinds_are_counted_apart)
{
    stepgraph_sample sample;

    for (int kind = 0; kind < STEPGRAPH_KINDS; kind++)
        stepgraph_session_count(session, (stepgraph_kind)kind, (uint64_t)(10 + kind));
    sample = sample_now(session);
    for (int kind = 0; kind < STEPGRAPH_KINDS; kind++)
        ck_assert_uint_eq(sample.host[kind], (uint64_t)(10 + kind));
    for (int kind = STEPGRAPH_KINDS; kind < STEPGRAPH_KINDS_ROOM; kind++)
        ck_assert_uint_eq(sample.host[kind], 0);
    for (int kind = 0; kind < STEPGRAPH_KINDS_ROOM; kind++)
        ck_assert_uint_eq(sample.wrapper[kind], 0);
}
END_TEST

START_TEST(unknown_kind_counts_as_a_kernel)
{
    stepgraph_session_count(session, (stepgraph_kind)5, 2);
    stepgraph_session_count(session, (stepgraph_kind)1000000, 3);
    stepgraph_session_count(session, (stepgraph_kind)-1, 4);
    ck_assert_uint_eq(sample_now(session).host[STEPGRAPH_KIND_KERNEL], 9);
}
END_TEST

START_TEST(large_counts_do_not_wrap)
{
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, UINT64_C(1) << 40);
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 1);
    ck_assert_uint_eq(sample_now(session).host[STEPGRAPH_KIND_KERNEL], (UINT64_C(1) << 40) + 1);
}
END_TEST

START_TEST(counting_leaves_the_error_record_alone)
{
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_get_info(session, NULL), "");
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 1);
    ck_assert_int_eq(last_error().status, STEPGRAPH_ERR_ARGUMENT);
}
END_TEST

START_TEST(host_with_a_drain_callback_gives_lower_bounds_until_it_drains)
{
    unsigned drains = 0;
    stepgraph_sample sample;

    reopen_with_drain(no_drain, &drains);
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 3);
    ck_assert_uint_eq(sample_now(session).exactness, STEPGRAPH_LOWER_BOUND);
    ck_assert_uint_eq(drains, 0);
    sample = drained();
    ck_assert_uint_eq(drains, 1);
    ck_assert_uint_eq(sample.exactness, STEPGRAPH_EXACT);
    ck_assert_uint_eq(sample.host[STEPGRAPH_KIND_KERNEL], 3);
}
END_TEST

START_TEST(drain_waits_for_the_stream)
{
    unsigned drains = 0;

    reopen_with_drain(no_drain, &drains);
    spin(stream, 20);
    drained();
    CU(StreamQuery(stream));
}
END_TEST

START_TEST(failed_drain_gives_the_hosts_own_status)
{
    stepgraph_sample sample = STEPGRAPH_SAMPLE_INIT;

    reopen_with_drain(failing_drain, NULL);
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 3);
    FAILS(STEPGRAPH_ERR_UNSUPPORTED, stepgraph_session_sample(session, STEPGRAPH_SAMPLE_DRAIN, &sample), "drain");
    ck_assert_uint_eq(sample.host[STEPGRAPH_KIND_KERNEL], 0); /* Untouched. */
}
END_TEST

static void *count_once(void *unused)
{
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 1);
    return unused;
}

static void in_thread(void *(*what)(void *), void *argument)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, what, argument), 0);
    pthread_join(thread, NULL);
}

START_TEST(count_of_another_thread_is_a_lower_bound)
{
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 1);
    ck_assert_uint_eq(sample_now(session).exactness, STEPGRAPH_EXACT);
    in_thread(count_once, NULL);
    ck_assert_uint_eq(sample_now(session).exactness, STEPGRAPH_LOWER_BOUND);
    ck_assert_uint_eq(sample_now(session).host[STEPGRAPH_KIND_KERNEL], 2);
    ck_assert_uint_eq(drained().exactness, STEPGRAPH_EXACT);
    ck_assert_uint_eq(drained().host[STEPGRAPH_KIND_KERNEL], 2);
}
END_TEST

START_TEST(sample_by_a_thread_that_did_not_count_is_a_lower_bound)
{
    in_thread(count_once, NULL);
    ck_assert_uint_eq(sample_now(session).exactness, STEPGRAPH_LOWER_BOUND);
}
END_TEST

static void *count_many(void *unused)
{
    for (int i = 0; i < 100000; i++)
        stepgraph_session_count(session, (stepgraph_kind)(i % 2), 1);
    return unused;
}

START_TEST(eight_threads_lose_no_count)
{
    pthread_t thread[8];
    stepgraph_sample sample;
    unsigned drains = 0;

    reopen_with_drain(no_drain, &drains);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, count_many, NULL), 0);
    for (int i = 0; i < 10; i++) {
        sample = sample_now(session); /* Any thread may look while they count. */
        ck_assert_uint_le(sample.host[STEPGRAPH_KIND_KERNEL], 400000);
        ck_assert_uint_ne(sample.exactness, STEPGRAPH_EXACT);
    }
    for (int i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
    sample = drained();
    ck_assert_uint_eq(sample.exactness, STEPGRAPH_EXACT);
    ck_assert_uint_eq(sample.host[STEPGRAPH_KIND_KERNEL], 400000);
    ck_assert_uint_eq(sample.host[STEPGRAPH_KIND_COPY], 400000);
}
END_TEST

START_TEST(sample_is_filled_up_to_its_size)
{
    LONGER(stepgraph_sample, 8) u;
    size_t size = offsetof(stepgraph_sample, wrapper);

    stepgraph_session_count(session, STEPGRAPH_KIND_COPY, 6);
    memset(&u, 0x5a, sizeof u);
    u.known.size = size;
    OK(stepgraph_session_sample(session, 0, &u.known));
    ck_assert_uint_eq(u.known.host[STEPGRAPH_KIND_COPY], 6);
    for (size_t i = size; i < sizeof u; i++)
        ck_assert_msg(u.bytes[i] == 0x5a, "byte %zu was written", i);
}
END_TEST

START_TEST(bad_samples_are_refused)
{
    stepgraph_sample sample = STEPGRAPH_SAMPLE_INIT;

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_sample(session, 0, NULL), "");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_sample(session, 1u << 31, &sample), "flag");
    sample.size = 0;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_sample(session, 0, &sample), "size");
}
END_TEST

START_TEST(drain_while_a_step_records_is_refused)
{
    unsigned drains = 0;
    stepgraph_sample sample = STEPGRAPH_SAMPLE_INIT;
    stepgraph_step *step;

    reopen_with_drain(no_drain, &drains);
    step = step_make(session, "recorder", STEPGRAPH_STEP_ALLOW_EMPTY);
    begin_recording(step);
    stepgraph_session_count(session, STEPGRAPH_KIND_COPY, 1);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_session_sample(session, STEPGRAPH_SAMPLE_DRAIN, &sample), "recorder");
    ck_assert_uint_eq(drains, 0);
    OK(stepgraph_session_sample(session, 0, &sample));
    ck_assert_uint_eq(sample.host[STEPGRAPH_KIND_COPY], 1);
    OK(stepgraph_step_end(step));
}
END_TEST

/* ---- the library's own work ---------------------------------------------------------------------------------------------- */

START_TEST(replay_counts_as_one_graph_whatever_is_in_it)
{
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_step *step = step_make(session, "train", 0);
    stepgraph_sample before, after;

    begin_recording(step);
    for (int i = 0; i < 25; i++)
        counted_inc(session, NULL, stepgraph_pin_address(pin), 1);
    OK(stepgraph_step_end(step));
    before = sample_now(session);
    for (int i = 0; i < 8; i++)
        OK(stepgraph_step_replay(step));
    after = sample_now(session);
    ck_assert_uint_eq(after.library[STEPGRAPH_KIND_GRAPH], before.library[STEPGRAPH_KIND_GRAPH] + 8);
    for (int kind = 0; kind < STEPGRAPH_KINDS; kind++) {
        ck_assert_uint_eq(after.host[kind], before.host[kind]);
        ck_assert_uint_eq(after.wrapper[kind], before.wrapper[kind]);
        if (kind != STEPGRAPH_KIND_GRAPH)
            ck_assert_uint_eq(after.library[kind], before.library[kind]);
    }
}
END_TEST

START_TEST(feed_counts_as_one_copy)
{
    stepgraph_pin *a = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "a"), *b = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "b");
    stepgraph_sample before = sample_now(session), after;

    OK(stepgraph_pin_feed_f32(a, 1));
    OK(stepgraph_pin_feed_f32(b, 1));
    OK(stepgraph_session_flush(session));
    after = sample_now(session);
    ck_assert_uint_eq(after.library[STEPGRAPH_KIND_COPY], before.library[STEPGRAPH_KIND_COPY] + 1);
    ck_assert_uint_eq(after.library[STEPGRAPH_KIND_KERNEL], before.library[STEPGRAPH_KIND_KERNEL]);
}
END_TEST

/* ---- the wrapper ----------------------------------------------------------------------------------------------------------- */

START_TEST(wrapper_launches_and_counts)
{
    CUdeviceptr p = device_make(4);

    for (int i = 0; i < 5; i++)
        counted_inc(session, NULL, p, 2);
    ck_assert_float_eq(float_at(p), 10);
    ck_assert_uint_eq(sample_now(session).wrapper[STEPGRAPH_KIND_KERNEL], 5);
    ck_assert_uint_eq(sample_now(session).host[STEPGRAPH_KIND_KERNEL], 0);
    ck_assert_uint_eq(sample_now(session).exactness, STEPGRAPH_EXACT);
}
END_TEST

START_TEST(wrapper_launches_on_the_stream_it_is_given)
{
    CUstream side = stream_make(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = device_make(4);
    float v = 0;

    spin(stream, 100);
    counted_inc(session, side, p, 3);
    CU(StreamSynchronize(side));
    ck_assert_int_eq(cu.StreamQuery(stream), CUDA_ERROR_NOT_READY);
    CU(MemcpyDtoH(&v, p, 4));
    ck_assert_float_eq(v, 3);
}
END_TEST

START_TEST(zero_grid_and_block_count_as_one)
{
    CUdeviceptr p = device_make(4);
    float v = 1;
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;

    call.function = kernels.inc;
    call.arguments = (void *[]){&p, &v};
    memset(call.grid, 0, sizeof call.grid);
    memset(call.block, 0, sizeof call.block);
    OK(stepgraph_session_launch(session, &call));
    ck_assert_float_eq(float_at(p), 1);
}
END_TEST

START_TEST(grid_and_block_are_passed_on)
{
    enum { N = 1000 };
    CUdeviceptr p = device_make(N * 4);
    float v = 2, got[N];
    int n = N;
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;

    call.function = kernels.addn;
    call.arguments = (void *[]){&p, &v, &n};
    call.grid[0] = 32;
    call.block[0] = 32;
    OK(stepgraph_session_launch(session, &call));
    bytes_at(p, got, sizeof got);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(got[i], 2);
}
END_TEST

START_TEST(packed_arguments_are_passed_on)
{
    struct {
        CUdeviceptr p;
        float v;
    } packed = {device_make(4), 6};
    size_t size = 12;
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;

    call.function = kernels.inc;
    call.extra = (void *[]){CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    OK(stepgraph_session_launch(session, &call));
    ck_assert_float_eq(float_at(packed.p), 6);
}
END_TEST

START_TEST(refused_launch_is_named_and_not_counted)
{
    CUdeviceptr p = device_make(4);
    float v = 1;
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;
    stepgraph_error_info info;

    call.function = kernels.inc;
    call.arguments = (void *[]){&p, &v};
    call.block[0] = 1u << 20;
    FAILS(STEPGRAPH_ERR_DRIVER, stepgraph_session_launch(session, &call), "cuLaunchKernel");
    info = last_error();
    ck_assert_str_eq(info.call, "cuLaunchKernel");
    ck_assert_int_eq(info.driver_code, CUDA_ERROR_INVALID_VALUE);
    ck_assert_uint_eq(sample_now(session).wrapper[STEPGRAPH_KIND_KERNEL], 0);
    ck_assert_float_eq(float_at(p), 0);
    counted_inc(session, NULL, p, 1);
    ck_assert_float_eq(float_at(p), 1);
}
END_TEST

START_TEST(launches_without_sense_are_refused)
{
    LONGER(stepgraph_launch, 8) longer;
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_launch(session, NULL), "");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_launch(session, &call), "function");
    call.function = kernels.nop;
    call.flags = 1u << 30;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_launch(session, &call), "flag");
    call.flags = 0;
    call.size = 0;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_launch(session, &call), "size");
    memset(&longer, 0, sizeof longer);
    longer.known = call;
    longer.known.size = sizeof longer;
    OK(stepgraph_session_launch(session, &longer.known));
    longer.bytes[sizeof longer - 1] = 1;
    FAILS(STEPGRAPH_ERR_ABI, stepgraph_session_launch(session, &longer.known), "");
    ck_assert_uint_eq(sample_now(session).wrapper[STEPGRAPH_KIND_KERNEL], 1);
}
END_TEST

static void *wrap_many(void *at)
{
    CUdeviceptr p = *(CUdeviceptr *)at;
    float v = 1;

    cu.CtxSetCurrent(stepgraph_session_context(session));
    for (int i = 0; i < 200; i++)
        counted(session, NULL, kernels.inc, (void *[]){&p, &v});
    return NULL;
}

START_TEST(wrapper_may_be_used_by_every_thread_at_once)
{
    pthread_t thread[4];
    CUdeviceptr p = device_make(4);

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, wrap_many, &p), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    ck_assert_float_eq(float_at(p), 800);
    ck_assert_uint_eq(sample_now(session).wrapper[STEPGRAPH_KIND_KERNEL], 800);
}
END_TEST

/* ---- end compares what was counted with what was recorded ------------------------------------------------------------------ */

struct escape {
    stepgraph_pin *pin;
    stepgraph_step *step;
    CUstream side;
    CUdeviceptr elsewhere;
};

static struct escape escape_make(uint32_t flags)
{
    struct escape e = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"), step_make(session, "leaky", flags),
                       stream_make(CU_STREAM_NON_BLOCKING), device_make(4)};

    begin_recording(e.step);
    return e;
}

START_TEST(launch_that_went_to_another_stream_is_refused)
{
    struct escape e = escape_make(0);

    counted_inc(session, NULL, stepgraph_pin_address(e.pin), 1);
    counted_inc(session, e.side, e.elsewhere, 1); /* Runs at once and is missing from every replay. */
    counted_inc(session, NULL, stepgraph_pin_address(e.pin), 1);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(e.step), "leaky", "3", "2", "stream");
    STATE_IS(e.step, STEPGRAPH_STEP_FAILED);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(e.step), "leaky", "3", "2");
    OK(stepgraph_session_wait(session));
    ck_assert_float_eq(pin_float(e.pin), 0);
}
END_TEST

START_TEST(launch_that_went_to_another_stream_can_be_allowed)
{
    struct escape e = escape_make(STEPGRAPH_STEP_ALLOW_ESCAPED);

    counted_inc(session, NULL, stepgraph_pin_address(e.pin), 1);
    counted_inc(session, e.side, e.elsewhere, 1);
    counted_inc(session, NULL, stepgraph_pin_address(e.pin), 1);
    OK(stepgraph_step_end(e.step));
    ck_assert_uint_eq(step_stats(e.step).counted_kernels, 3);
    ck_assert_uint_eq(step_stats(e.step).nodes[STEPGRAPH_KIND_KERNEL], 2);
    OK(stepgraph_step_replay(e.step));
    OK(stepgraph_step_replay(e.step));
    ck_assert_float_eq(pin_float(e.pin), 4);
    CU(StreamSynchronize(e.side));
    ck_assert_float_eq(float_at(e.elsewhere), 1);
}
END_TEST

START_TEST(launch_counted_by_the_host_that_went_elsewhere_is_refused)
{
    struct escape e = escape_make(0);

    inc(stream, stepgraph_pin_address(e.pin), 1);
    inc(e.side, e.elsewhere, 1);
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 2);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(e.step), "leaky", "2", "1");
    CU(StreamSynchronize(e.side));
}
END_TEST

START_TEST(commit_node_does_not_hide_an_escaped_launch)
{
    /* A commit's node is a kernel as well, but it is the library's own: it must not stand in for the host's missing one. */
    struct escape e;
    stepgraph_pin *fresh[2] = {pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4, "fresh a"),
                               pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4, "fresh b")};
    stepgraph_pin *pin[2] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b")};

    e = escape_make(0);
    counted_inc(session, NULL, stepgraph_pin_address(e.pin), 1);
    counted_inc(session, e.side, e.elsewhere, 1);
    OK(stepgraph_pin_commit_many(session, 2, pin,
                                 (uint64_t[]){stepgraph_pin_address(fresh[0]), stepgraph_pin_address(fresh[1])}));
    OK(stepgraph_pin_commit(pin[0], stepgraph_pin_address(fresh[1])));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(e.step), "leaky");
    CU(StreamSynchronize(e.side));
}
END_TEST

START_TEST(copies_and_sets_do_not_stand_in_for_kernels)
{
    struct escape e = escape_make(0);
    CUdeviceptr p = stepgraph_pin_address(e.pin);

    counted_inc(session, NULL, p, 1);
    counted_inc(session, e.side, e.elsewhere, 1);
    CU(MemsetD8Async(p, 0, 4, stream));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(e.step), "leaky", "2", "1");
    CU(StreamSynchronize(e.side));
}
END_TEST

START_TEST(uncounted_kernels_in_the_graph_are_no_fault)
{
    struct escape e = escape_make(0);

    counted_inc(session, NULL, stepgraph_pin_address(e.pin), 1);
    inc(stream, stepgraph_pin_address(e.pin), 1);
    OK(stepgraph_step_end(e.step));
    ck_assert_uint_eq(step_stats(e.step).counted_kernels, 1);
    ck_assert_uint_eq(step_stats(e.step).nodes[STEPGRAPH_KIND_KERNEL], 2);
}
END_TEST

START_TEST(only_counts_inside_the_window_are_compared)
{
    struct escape e;
    CUdeviceptr p = device_make(4);

    for (int i = 0; i < 10; i++)
        counted_inc(session, NULL, p, 1);
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 100);
    e = escape_make(0);
    counted_inc(session, NULL, stepgraph_pin_address(e.pin), 1);
    OK(stepgraph_step_end(e.step));
    ck_assert_uint_eq(step_stats(e.step).counted_kernels, 1);
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 100);
    OK(stepgraph_step_reset(e.step));
    begin_recording(e.step);
    counted_inc(session, NULL, stepgraph_pin_address(e.pin), 1);
    OK(stepgraph_step_end(e.step));
}
END_TEST

START_TEST(graph_nodes_are_counted_by_kind)
{
    struct escape e = escape_make(0);
    CUdeviceptr p = stepgraph_pin_address(e.pin);
    stepgraph_step_stats stats;

    inc(stream, p, 1);
    inc(stream, p, 1);
    CU(MemsetD8Async(p, 0, 4, stream));
    CU(MemcpyDtoDAsync(p, p + 2, 2, stream));
    OK(stepgraph_step_end(e.step));
    stats = step_stats(e.step);
    ck_assert_uint_eq(stats.nodes[STEPGRAPH_KIND_KERNEL], 2);
    ck_assert_uint_eq(stats.nodes[STEPGRAPH_KIND_SET], 1);
    ck_assert_uint_eq(stats.nodes[STEPGRAPH_KIND_COPY], 1);
    ck_assert_uint_eq(stats.nodes[STEPGRAPH_KIND_HOST], 0);
    ck_assert_uint_eq(stats.nodes_other, 0);
    ck_assert_uint_eq(stats.nodes_total, 4);
    ck_assert_uint_eq(stats.pins_used, 1);
    ck_assert_uint_eq(stats.unregistered, 0);
    ck_assert_uint_eq(stats.pin_nodes, 0);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("counter");
    TCase *worth = unit_case(suite, "what a sample is worth"), *own = unit_case(suite, "own work"),
          *wrapper = unit_case(suite, "wrapper"), *escaped = unit_case(suite, "counted and recorded");

    tcase_add_test(worth, counter_that_nobody_moved_is_not_instrumented);
    tcase_add_test(worth, counts_of_the_sampling_thread_alone_are_exact);
    tcase_add_test(worth, kinds_are_counted_apart);
    tcase_add_test(worth, unknown_kind_counts_as_a_kernel);
    tcase_add_test(worth, large_counts_do_not_wrap);
    tcase_add_test(worth, counting_leaves_the_error_record_alone);
    tcase_add_test(worth, host_with_a_drain_callback_gives_lower_bounds_until_it_drains);
    tcase_add_test(worth, drain_waits_for_the_stream);
    tcase_add_test(worth, failed_drain_gives_the_hosts_own_status);
    tcase_add_test(worth, count_of_another_thread_is_a_lower_bound);
    tcase_add_test(worth, sample_by_a_thread_that_did_not_count_is_a_lower_bound);
    tcase_add_test(worth, eight_threads_lose_no_count);
    tcase_add_test(worth, sample_is_filled_up_to_its_size);
    tcase_add_test(worth, bad_samples_are_refused);
    tcase_add_test(worth, drain_while_a_step_records_is_refused);

    tcase_add_test(own, replay_counts_as_one_graph_whatever_is_in_it);
    tcase_add_test(own, feed_counts_as_one_copy);

    tcase_add_test(wrapper, wrapper_launches_and_counts);
    tcase_add_test(wrapper, wrapper_launches_on_the_stream_it_is_given);
    tcase_add_test(wrapper, zero_grid_and_block_count_as_one);
    tcase_add_test(wrapper, grid_and_block_are_passed_on);
    tcase_add_test(wrapper, packed_arguments_are_passed_on);
    tcase_add_test(wrapper, refused_launch_is_named_and_not_counted);
    tcase_add_test(wrapper, launches_without_sense_are_refused);
    tcase_add_test(wrapper, wrapper_may_be_used_by_every_thread_at_once);

    tcase_add_test(escaped, launch_that_went_to_another_stream_is_refused);
    tcase_add_test(escaped, launch_that_went_to_another_stream_can_be_allowed);
    tcase_add_test(escaped, launch_counted_by_the_host_that_went_elsewhere_is_refused);
    tcase_add_test(escaped, commit_node_does_not_hide_an_escaped_launch);
    tcase_add_test(escaped, copies_and_sets_do_not_stand_in_for_kernels);
    tcase_add_test(escaped, uncounted_kernels_in_the_graph_are_no_fault);
    tcase_add_test(escaped, only_counts_inside_the_window_are_compared);
    tcase_add_test(escaped, graph_nodes_are_counted_by_kind);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
