/* The ladder: what the loop does with a step that cannot be replayed, and what it says of it. */
#include "looping.h"

/* The new value stands elsewhere each time, as in a functional framework. */
static void train_moving(uint64_t k)
{
    CUdeviceptr to = moving[k % 3], from = stepgraph_pin_address(weight), x = stepgraph_pin_address(input),
                by = stepgraph_pin_address(rate);
    int n = N;

    launch_n(kernels.update, N, (void *[]){&to, &from, &x, &by, &n});
    OK(stepgraph_pin_commit(weight, to));
}

/* It always stands in the same place, which no pin covers. */
static void train_in_place_of_the_hosts(uint64_t k)
{
    (void)k;
    train_moving(0);
}

START_TEST(moved_pointer_is_recorded_every_step_and_updated_in_place)
{
    stepgraph_audit_summary summary = STEPGRAPH_AUDIT_SUMMARY_INIT;
    stepgraph_finding finding = STEPGRAPH_FINDING_INIT;
    stepgraph_loop_config config = config_with(0);
    float want[N];

    for (int i = 0; i < 3; i++)
        moving[i] = device_make(BYTES);
    without_loop(60, train_moving, want);
    config.step_flags = _i == 0 ? 0 : STEPGRAPH_STEP_ALLOW_UNREGISTERED;
    loop_make(&config);
    go(0, 60, train_moving);
    same_as(want);
    RUNG(RERECORD, MOVED);
    ck_assert_uint_gt(stats_now().turns[STEPGRAPH_TURN_RERECORD], 50);
    ck_assert_uint_eq(stats_now().updates_refused, 0);
    ck_assert_uint_eq(stats_now().instantiations, 1);
    ck_assert_uint_ge(stats_now().updates, stats_now().turns[STEPGRAPH_TURN_RERECORD] - 1);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "0x"));
    /* The report accuses what the loop does, though its steps may hold it. */
    OK(stepgraph_audit_get_summary(stepgraph_loop_audit(loop, 0), &summary));
    ck_assert_uint_ge(summary.faults, 1);
    OK(stepgraph_audit_get(stepgraph_loop_audit(loop, 0), 0, &finding));
    ck_assert_uint_eq(finding.fault, 1);
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(stepgraph_loop_audit(loop, 0)), "cannot be replayed"));
    stepgraph_loop_destroy(loop);
    loop = NULL;
    for (int i = 0; i < 3; i++)
        device_drop(moving[i]);
}
END_TEST

/* The n-th line of the loop's begins so. */
static void line_is(unsigned n, int32_t level, const char *words)
{
    char begin[200];

    snprintf(begin, sizeof begin, "[%d] loop 'train', key 0, %s", level, words);
    ck_assert_uint_gt(n_lines, n);
    ck_assert_msg(strncmp(lines[n], begin, strlen(begin)) == 0, "line %u is not '%s...' but '%s'", n, begin, lines[n]);
}

/* A host that copies its batch where it launches, and nowhere else: replays have an old one, and no check can see that. */
START_TEST(k04_feed_that_was_never_fed_is_told_before_it_is_replayed)
{
    stepgraph_loop_config config = config_with(0);
    const bool told = _i == 0;

    if (_i == 1) { /* Memory of the host's own, which it may fill at any time. */
        drop_pin(input);
        input = pin_adopt(session, STEPGRAPH_ROLE_FEED, device_make(BYTES), BYTES, "input");
    }
    loop_make(&config);
    for (uint64_t k = 0; k < 12; k++)
        do {
            float x[N] = {(float)k};
            OK(stepgraph_loop_begin(loop, k, &turn));
            OK(stepgraph_pin_feed_f32(rate, 0.5f));
            if (_i == 2)
                feed(k);
            else if (turn.run && !recording())
                put_bytes(stepgraph_pin_address(input), x, sizeof x);
            if (turn.run)
                train(k);
            OK(stepgraph_loop_end(loop, &turn));
        } while (turn.again);
    RUNG(REPLAY, NONE);
    if (told)
        line_is(0, STEPGRAPH_LOG_WARNING, "feed 'input' was never fed");
    ck_assert_msg(strstr(lines[told], "-> replay") != NULL, "%s", lines[told]);
    ck_assert_uint_eq(n_lines, 1 + told);
}
END_TEST

START_TEST(each_change_of_rung_is_one_line_of_the_log)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_NO_CHECK);

    loop_make(&config);
    go(0, 5, train);
    line_is(0, STEPGRAPH_LOG_INFO, "step 4: not decided -> replay");
    OK(stepgraph_loop_drop(loop, 0, "for a change"));
    line_is(1, STEPGRAPH_LOG_WARNING, "step 4: replay -> not decided, dropped by the host: for a change");
    moving[0] = device_make(BYTES);
    go(5, 100, train_in_place_of_the_hosts);
    line_is(2, STEPGRAPH_LOG_WARNING, "step 6: not decided -> rerecord, unregistered memory: node 0  update  arg 0 +0   0x");
    ck_assert_uint_eq(n_lines, 3);
    device_drop(moving[0]);
}
END_TEST

START_TEST(memory_without_a_pin_that_stays_is_named)
{
    stepgraph_loop_config config = config_with(0);
    stepgraph_audit_summary summary = STEPGRAPH_AUDIT_SUMMARY_INIT;
    stepgraph_finding finding = STEPGRAPH_FINDING_INIT;
    float want[N];

    moving[0] = device_make(BYTES);
    without_loop(60, train_in_place_of_the_hosts, want);
    loop_make(&config);
    go(0, 60, train_in_place_of_the_hosts);
    same_as(want);
    RUNG(RERECORD, UNREGISTERED);
    OK(stepgraph_audit_get_summary(stepgraph_loop_audit(loop, 0), &summary));
    ck_assert_uint_eq(summary.faults, summary.findings);
    OK(stepgraph_audit_get(stepgraph_loop_audit(loop, 0), 0, &finding));
    ck_assert_uint_eq(finding.before, moving[0]);
    ck_assert_uint_eq(finding.argument, 0);
    ck_assert_str_eq(finding.node_name, "update");
    ck_assert_ptr_nonnull(strstr(stats_now().words, finding.text));
    device_drop(moving[0]);
}
END_TEST

START_TEST(changing_scalar_is_recorded_every_step)
{
    stepgraph_loop_config config = config_with(_i == 0 ? 0 : STEPGRAPH_LOOP_NO_RERECORD);
    float want[N];

    without_loop(40, train_by_value, want);
    rewinds = 0;
    config.rewind = note_rewind;
    config.user = &rewound;
    loop_make(&config);
    go(0, 40, train_by_value);
    same_as(want);
    if (_i == 0)
        RUNG(RERECORD, SCALAR);
    else
        RUNG(FRESH, SCALAR);
    /* A third recording told that it is no padding. */
    TURNS(LOOK, 1);
    ck_assert_uint_eq(rewinds, 1);
    ck_assert_uint_eq(rewound, 4);
    ck_assert_uint_eq(stats_now().steps, 40);
}
END_TEST

/* It changes only after the recordings: the comparison cannot see it. */
static void train_by_late_value(uint64_t k)
{
    counted_inc(session, NULL, stepgraph_pin_address(weight), k < 6 ? 1 : 2);
}

START_TEST(scalar_that_changes_later_is_found_by_the_check)
{
    stepgraph_loop_config config = config_with(0);

    loop_make(&config);
    go(0, 20, train_by_late_value);
    ck_assert_float_eq(pin_float(weight), 6 + 14 * 2);
    RUNG(FRESH, DIVERGED);
    ck_assert_uint_eq(stats_now().checks_diverged, 1);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "'weight'"));
    TURNS(REPLAY, 0);
}
END_TEST

static float late;

static void train_by_schedule(uint64_t k)
{
    (void)k;
    counted_inc(session, NULL, stepgraph_pin_address(weight), late);
}

static void train_by_schedule_in_scratch(uint64_t k)
{
    CUdeviceptr to = stepgraph_pin_address(fresh), from = stepgraph_pin_address(weight);

    launch_n(kernels.copyf, 1, (void *[]){&to, &from});
    train_by_schedule(k);
}

START_TEST(sampled_check_finds_what_changes_in_production)
{
    stepgraph_loop_config config = config_with(0);
    uint64_t right = 0, replays = 0;
    char words[64];

    config.check_every = 10;
    late = 1;
    loop_make(&config);
    for (uint64_t k = 0; k < 60 && stats_now().checks_diverged == 0; k++) {
        late = k < 40 ? 1 : 2;
        uint32_t kind = take(k, train_by_schedule);
        if (k == 39)
            ck_assert_float_eq(pin_float(weight), 40);
        right = kind == STEPGRAPH_TURN_CHECK && stats_now().checks_diverged == 0 ? k : right;
        replays = kind == STEPGRAPH_TURN_CHECK ? replays : replays + 1;
        replays = right == k ? 0 : replays;
    }
    RUNG(FRESH, DIVERGED);
    ck_assert_uint_ge(stats_now().checks_identical, 5);
    ck_assert_uint_eq(replays, 10);
    /* What is lost is told: the host must go back. */
    snprintf(words, sizeof words, "all was right at step %llu, and 10 replays since then", (unsigned long long)right);
    ck_assert_msg(strstr(stats_now().words, words) != NULL, "'%s' is not in: %s", words, stats_now().words);
}
END_TEST

/* Whatever the graph does with SCRATCH was the same when it was right. */
/* One more kernel, which nobody counts, and a rate that changes all the time. */
static void train_counting_half(uint64_t k)
{
    late = (float)(k + 1);
    train_by_schedule(k);
    inc(stream, stepgraph_pin_address(fresh), 1);
}

START_TEST(kernels_that_nobody_counts_are_told_once)
{
    size_t told;

    loop_make(NULL);
    go(0, 10, train_counting_half);
    RUNG(RERECORD, SCALAR);
    told = (size_t)n_warnings;
    ck_assert_uint_gt(told, 0);
    go(10, 20, train_counting_half);
    ck_assert_uint_eq((size_t)n_warnings, told);
}
END_TEST

START_TEST(sampled_check_supposes_that_a_value_has_changed)
{
    static const char told[] = "a value or an address that a kernel is given may be another one than in the recording";
    stepgraph_loop_config config = config_with(0);

    config.check_every = 10;
    late = 1;
    loop_make(&config);
    for (uint64_t k = 0; k < 60; k++) {
        late = k < 40 ? 1 : 2;
        take(k, train_by_schedule_in_scratch);
    }
    RUNG(FRESH, DIVERGED);
    ck_assert_msg(strstr(stats_now().words, told) != NULL, "'%s' is not in: %s", told, stats_now().words);
}
END_TEST

START_TEST(replays_before_the_first_check_are_told_as_well)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_NO_CHECK);

    config.check_every = 10;
    late = 1;
    loop_make(&config);
    go(0, 8, train_by_schedule);
    RUNG(REPLAY, NONE);
    late = 2;
    go(8, 30, train_by_schedule);
    RUNG(FRESH, DIVERGED);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "no check before found every byte the same, and 10 replays since then may have been wrong"));
}
END_TEST

START_TEST(dropped_graph_is_recorded_anew)
{
    stepgraph_loop_config config = config_with(0);

    late = 1;
    loop_make(&config);
    go(0, 20, train_by_schedule);
    late = 2;
    OK(stepgraph_loop_drop(loop, 0, "another learning rate"));
    ck_assert_uint_eq(stats_now().graphs, 0);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "another learning rate"));
    go(20, 40, train_by_schedule);
    ck_assert_float_eq(pin_float(weight), 20 + 20 * 2);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(stats_now().recordings, 4);
}
END_TEST

static stepgraph_pin *second;

/* From step 30 on a second group of parameters is trained, too. */
static void train_in_groups(uint64_t k)
{
    train(k);
    if (k >= 30)
        counted_inc(session, NULL, stepgraph_pin_address(second), 0.5f);
}

START_TEST(new_parameter_group_needs_no_more_than_a_drop)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], want_second;

    second = pin_make(session, STEPGRAPH_ROLE_STATE, sizeof(float), "second group");
    OK(stepgraph_pin_write(second, &(float){0}, sizeof(float)));
    without_loop(60, train_in_groups, want);
    want_second = pin_float(second);
    OK(stepgraph_pin_write(second, &(float){0}, sizeof(float)));
    config.check_every = _i == 0 ? 0 : 10;
    loop_make(&config);
    go(0, 30, train_in_groups);
    RUNG(REPLAY, NONE);
    if (_i == 0)
        OK(stepgraph_loop_drop(loop, STEPGRAPH_KEY_ALL, "a second group"));
    go(30, 60, train_in_groups);
    same_as(want);
    if (_i == 0) {
        ck_assert_float_eq(pin_float(second), want_second);
        RUNG(REPLAY, NONE);
    } else { /* A host that says nothing is told which pin a replay leaves out. */
        ck_assert_float_lt(pin_float(second), want_second);
        RUNG(FRESH, DIVERGED);
        ck_assert_ptr_nonnull(strstr(stats_now().words, "'second group'"));
    }
}
END_TEST

START_TEST(pin_that_is_registered_anew_needs_no_more_than_a_drop)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], saved[N];

    without_loop(40, train, want);
    loop_make(&config);
    go(0, 20, train);
    OK(stepgraph_pin_read(weight, saved, BYTES));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_destroy(weight), "train");
    OK(stepgraph_loop_drop(loop, STEPGRAPH_KEY_ALL, NULL));
    drop_pin(weight);
    weight = pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, "weight");
    OK(stepgraph_pin_write(weight, saved, BYTES));
    go(20, 40, train);
    same_as(want);
    RUNG(REPLAY, NONE);
}
END_TEST

/* Another number of kernels in each step. */
static void train_in_forms(uint64_t k)
{
    for (uint64_t i = 0; i <= k % 3; i++)
        counted_inc(session, NULL, stepgraph_pin_address(weight), 1);
}

START_TEST(k16_other_nodes_in_each_step_end_in_launches_and_no_loop_of_recordings)
{
    stepgraph_loop_config config = config_with(0);
    float want[N];

    without_loop(400, train_in_forms, want);
    loop_make(&config);
    go(0, 400, train_in_forms);
    same_as(want);
    RUNG(FRESH, TOPOLOGY);
    ck_assert_uint_le(stats_now().recordings, 6);
    ck_assert_uint_eq(n_lines, 3 + 2 + 1); /* Three failures, two new attempts, and that there will be none. */
    ck_assert_uint_gt(stats_now().causes[STEPGRAPH_WHY_TOPOLOGY], 380);
}
END_TEST

START_TEST(k16_refused_updates_end_in_launches_and_say_why)
{
    stepgraph_loop_config config = config_with(0);
    float want[N];

    without_loop(600, train_by_value_in_forms, want);
    loop_make(&config);
    go(0, 20, train_by_value_in_forms);
    RUNG(RERECORD, SCALAR);
    go(20, 25, train_by_value_in_forms);
    RUNG(FRESH, UPDATE);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "TOPOLOGY_CHANGED"));
    ck_assert_uint_eq(stats_now().updates_refused, 3);
    go(25, 600, train_by_value_in_forms);
    same_as(want);
    ck_assert_uint_le(stats_now().recordings, 30);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_FRESH);
}
END_TEST

/* By value, and from step 20 on in another form each third time. */
static void train_by_value_in_another_form(uint64_t k)
{
    counted_inc(session, NULL, stepgraph_pin_address(weight), (float)(k % 5));
    if (k >= 20 && k % 3 == 1)
        counted_inc(session, NULL, stepgraph_pin_address(weight), 1);
}

static stepgraph_pin *sources[2], *targets[2];

/* Both targets from one place or the other, by a list; weight = weight + rate * the first of them. */
static void train_from_elsewhere(uint64_t k)
{
    CUdeviceptr w = stepgraph_pin_address(weight), x = stepgraph_pin_address(targets[0]), by = stepgraph_pin_address(targets[1]);
    const uint64_t from = stepgraph_pin_address(sources[k % 2]), places[2] = {from, from + BYTES};
    int n = N;

    OK(stepgraph_pin_commit_many(session, 2, targets, places));
    launch_n(kernels.update, N, (void *[]){&w, &w, &x, &by, &n});
}

/* The list of a recording is not overwritten by the next one while the device has yet to read it. */
START_TEST(lists_of_recordings_in_flight_are_kept_apart)
{
    float values[2 * N], want[N];

    for (int i = 0; i < 2; i++) {
        sources[i] = pin_make(session, STEPGRAPH_ROLE_STATE, 2 * BYTES, i == 0 ? "here" : "there");
        targets[i] = pin_make(session, STEPGRAPH_ROLE_STATE, i == 0 ? BYTES : sizeof(float), i == 0 ? "value" : "factor");
        for (int j = 0; j < 2 * N; j++)
            values[j] = (float)(1 + i);
        OK(stepgraph_pin_write(sources[i], values, sizeof values));
    }
    without_loop(40, train_from_elsewhere, want);
    loop_make(NULL);
    for (uint64_t k = 0; k < 40; k++) {
        spin(stream, 5);
        take(k, train_from_elsewhere);
    }
    RUNG(RERECORD, MOVED);
    same_as(want);
}
END_TEST

/* To the other form and back, and then once as before. A budget of one such graph holds the one that takes its place. */
START_TEST(refused_updates_count_in_a_row)
{
    stepgraph_loop_config config = config_with(0);
    uint64_t others = 0;
    float want[N];

    config.graph_bytes = _i == 0 ? 0 : 2 * bytes_of_one_graph();
    without_loop(80, train_by_value_in_another_form, want);
    loop_make(&config);
    go(0, 80, train_by_value_in_another_form);
    RUNG(RERECORD, SCALAR);
    same_as(want);
    for (uint64_t k = 20; k < 80; k++)
        others += k % 3 == 1;
    ck_assert_uint_eq(stats_now().updates_refused, others + (others - (79 % 3 == 1)));
}
END_TEST

/* What other keys have taken since is not there for it. */
START_TEST(recording_again_keeps_to_what_is_left_of_the_budget)
{
    stepgraph_loop_config config = config_with(0);
    float want[N];

    config.graph_bytes = 2 * bytes_of_one_graph();
    loop_make(&config);
    go(0, 20, train_by_value_in_forms);
    RUNG(RERECORD, SCALAR);
    turn.key = 1;
    go(0, 20, count_one);
    ck_assert_uint_eq(stats_now().graphs, 2);
    ck_assert_uint_eq(stats_now().device_bytes, config.graph_bytes);
    turn.key = 0;
    OK(stepgraph_pin_read(weight, want, BYTES));
    want[0] += 20 % 5 + 1;
    ck_assert_uint_eq(take(20, train_by_value_in_forms), STEPGRAPH_TURN_FALLBACK); /* Of two nodes. */
    RUNG(FRESH, MEMORY);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "budget"));
    same_as(want);
}
END_TEST

START_TEST(broken_recordings_end_in_launches_after_three_attempts)
{
    stepgraph_loop_config config = config_with(0);

    loop_make(&config);
    go(0, 500, train_waiting);
    ck_assert_float_eq(pin_float(weight), 500);
    RUNG(FRESH, BROKEN);
    ck_assert_uint_eq(stats_now().recordings_failed, 3);
    ck_assert_uint_eq(stats_now().retries, 3);
    ck_assert_uint_eq(stats_now().steps, 500);
    ck_assert_uint_eq(stats_now().turns[STEPGRAPH_TURN_WARMUP] + stats_now().turns[STEPGRAPH_TURN_FALLBACK], 500);
}
END_TEST

static bool waits;

static void train_waiting_at_first(uint64_t k)
{
    count_one(k);
    if (waits)
        (void)cu.StreamSynchronize(stream);
}

START_TEST(broken_recording_is_tried_again_later)
{
    stepgraph_loop_config config = config_with(0);

    loop_make(&config);
    waits = true;
    go(0, 10, train_waiting_at_first);
    RUNG(FRESH, BROKEN);
    waits = false;
    n_lines = 0;
    go(10, 100, train_waiting_at_first);
    ck_assert_float_eq(pin_float(weight), 100);
    RUNG(REPLAY, NONE);
    /* 16 turns after step 3. What stood against the first attempt is not why there is another. */
    line_is(0, STEPGRAPH_LOG_WARNING, "step 20: fresh -> not decided, starting: another attempt; what stood against the last one: ");
    ck_assert_ptr_nonnull(strstr(lines[0], "may not run while recording"));
}
END_TEST

START_TEST(drop_gives_new_attempts)
{
    stepgraph_loop_config config = config_with(0);

    loop_make(&config);
    waits = true;
    go(0, 100, train_waiting_at_first);
    RUNG(FRESH, BROKEN);
    ck_assert_uint_eq(stats_now().recordings_failed, 3);
    OK(stepgraph_loop_drop(loop, 0, NULL));
    go(100, 105, train_waiting_at_first);
    ck_assert_uint_eq(stats_now().recordings_failed, 4);
    waits = false;
    go(105, 140, train_waiting_at_first);
    RUNG(REPLAY, NONE);
    ck_assert_float_eq(pin_float(weight), 140);
}
END_TEST

static uint64_t go_to_a_replay(uint64_t k)
{
    for (const uint64_t most = k + 200; stats_now().rung != STEPGRAPH_RUNG_REPLAY; k++) {
        ck_assert_uint_lt(k, most);
        take(k, count_one);
    }
    return k;
}

static uint64_t fail_a_replay(uint64_t k)
{
    driver_fails("cuGraphLaunch", 1, CUDA_ERROR_UNKNOWN);
    ck_assert_uint_eq(take(k, count_one), STEPGRAPH_TURN_FALLBACK);
    no_driver_fails();
    RUNG(FRESH, REPLAY);
    return k + 1;
}

/* 256 steps with a graph, and the attempts are counted from the beginning. */
START_TEST(failures_of_long_ago_are_forgotten)
{
    stepgraph_loop_config config = config_with(0);
    uint64_t k = 0, failures = 0;

    loop_make(&config);
    for (; failures < 2; failures++)
        k = fail_a_replay(go_to_a_replay(k));
    k = go_to_a_replay(k);
    for (uint64_t last = k + 255 + (uint64_t)_i; k < last; k++)
        ck_assert_uint_eq(take(k, count_one), STEPGRAPH_TURN_REPLAY);
    k = fail_a_replay(k);
    failures = _i == 0 ? failures + 1 : 1;
    for (; failures < 3; failures++) { /* And those that come now are counted, whatever is replayed in between. */
        k = go_to_a_replay(k);
        ck_assert_uint_eq(take(k++, count_one), STEPGRAPH_TURN_REPLAY);
        k = fail_a_replay(k);
    }
    go(k, k + 400, count_one);
    RUNG(FRESH, REPLAY);
    ck_assert_float_eq(pin_float(weight), (float)(k + 400));
}
END_TEST

static CUdeviceptr pageable_to;

/* A copy from the host's own memory, which a replay would read again. */
static void train_from_host(uint64_t k)
{
    static float value;

    value = (float)k;
    count_one(k);
    CU(MemcpyHtoDAsync(pageable_to, &value, sizeof value, stream));
}

START_TEST(refused_recording_is_launched_and_the_audit_is_kept)
{
    stepgraph_loop_config config = config_with(0);

    pageable_to = stepgraph_pin_address(fresh);
    loop_make(&config);
    go(0, 300, train_from_host);
    ck_assert_float_eq(pin_float(weight), 300);
    RUNG(FRESH, REFUSED);
    ck_assert_uint_eq(stats_now().recordings_failed, 3);
    ck_assert_ptr_nonnull(stepgraph_loop_audit(loop, 0));
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(stepgraph_loop_audit(loop, 0)), "host memory"));
}
END_TEST

static CUstream elsewhere;

/* One launch goes to another stream, runs while the rest is recorded, and would run again with the step. */
static void train_escaping(uint64_t k)
{
    CUdeviceptr p = stepgraph_pin_address(beside);

    count_one(k);
    OK(counted(session, elsewhere, kernels.inc, (void *[]){&p, &(float){1}}));
}

START_TEST(k07_work_that_escapes_is_undone_before_the_step_is_launched)
{
    stepgraph_loop_config config = config_with(0);

    elsewhere = stream_make(CU_STREAM_NON_BLOCKING);
    beside = pin_make(session, STEPGRAPH_ROLE_STATE, sizeof(float), "beside");
    loop_make(&config);
    for (uint64_t k = 0; k < 100; k++) {
        spin(stream, k == 3 ? 20 : 0); /* The copy of the pins comes late. */
        take(k, train_escaping);
        CU(StreamSynchronize(elsewhere));
    }
    ck_assert_float_eq(pin_float(weight), 100);
    ck_assert_float_eq(pin_float(beside), 100);
    RUNG(FRESH, REFUSED);
    ck_assert_uint_eq(stats_now().recordings_failed, 3);
}
END_TEST

/* And so that the recording does not come to be looked at. */
static void train_escaping_and_breaking(uint64_t k)
{
    spin(elsewhere, k == 3 ? 30 : 0);
    train_escaping(k);
    if (turn.kind == STEPGRAPH_TURN_RECORD)
        (void)cu.StreamSynchronize(stream);
}

START_TEST(k07_work_that_escapes_from_a_recording_that_breaks_is_undone)
{
    elsewhere = stream_make(CU_STREAM_NON_BLOCKING);
    beside = pin_make(session, STEPGRAPH_ROLE_STATE, sizeof(float), "beside");
    loop_make(NULL);
    for (uint64_t k = 0; k < 10; k++) {
        take(k, train_escaping_and_breaking);
        CU(StreamSynchronize(elsewhere));
    }
    ck_assert_float_eq(pin_float(weight), 10);
    ck_assert_float_eq(pin_float(beside), 10);
    RUNG(FRESH, BROKEN);
}
END_TEST

static bool without_memory;

/* Nobody has counted it, and it comes late: neither a warm-up run that is undone nor a check goes on without it; 2, 3: nor where no device memory is
 * left to wait with. */
static void train_escaping_uncounted(uint64_t k)
{
    const bool waited_for = turn.kind == STEPGRAPH_TURN_REHEARSAL || turn.kind == STEPGRAPH_TURN_CHECK;

    count_one(k);
    spin(elsewhere, waited_for ? 20 : 0);
    inc(elsewhere, stepgraph_pin_address(beside), 1);
    if (waited_for && without_memory)
        driver_fails("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
}

START_TEST(k07_work_that_escapes_uncounted_is_waited_for)
{
    stepgraph_loop_config config = config_with(_i % 2 == 0 ? 0 : STEPGRAPH_LOOP_RESTORE);

    without_memory = _i >= 2;
    elsewhere = stream_make(CU_STREAM_NON_BLOCKING);
    beside = pin_make(session, STEPGRAPH_ROLE_STATE, sizeof(float), "beside");
    loop_make(&config);
    for (uint64_t k = 0; k < 20; k++) {
        take(k, train_escaping_uncounted);
        no_driver_fails();
        CU(StreamSynchronize(elsewhere));
    }
    ck_assert_float_eq(pin_float(weight), 20);
    ck_assert_float_eq(pin_float(beside), 20);
    RUNG(FRESH, DIVERGED);
}
END_TEST

/* Without a copy of the pins that launch cannot be undone, and the host must know. */
START_TEST(work_that_escapes_and_cannot_be_undone_is_told)
{
    elsewhere = stream_make(CU_STREAM_NON_BLOCKING);
    beside = pin_make(session, STEPGRAPH_ROLE_STATE, sizeof(float), "beside");
    loop_make(NULL);
    go(0, 3, train_escaping);
    driver_fails("cuMemGetInfo", 1, CUDA_ERROR_UNKNOWN);
    OK(stepgraph_loop_begin(loop, 3, &turn));
    no_driver_fails();
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_RECORD);
    train_escaping(3);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_loop_end(loop, &turn), "step 3 is half done");
    CU(StreamSynchronize(elsewhere));
    ck_assert_float_eq(pin_float(weight), 3);
    ck_assert_float_eq(pin_float(beside), 4);
    go(4, 10, train_escaping);
    CU(StreamSynchronize(elsewhere));
    ck_assert_float_eq(pin_float(weight), 9);
    ck_assert_float_eq(pin_float(beside), 10);
}
END_TEST

/* Undoing it is tried once more where a call fails. */
START_TEST(call_that_fails_while_escaped_work_is_undone_leaves_no_step_half_done)
{
    static const char *const entries[] = {"cuCtxPushCurrent", "cuMemAlloc", "cuMemFree", "cuLaunchKernel", "cuStreamSynchronize"};

    elsewhere = stream_make(CU_STREAM_NON_BLOCKING);
    beside = pin_make(session, STEPGRAPH_ROLE_STATE, sizeof(float), "beside");
    for (unsigned nth = 1; nth <= 4; nth++) {
        put_float(stepgraph_pin_address(weight), 0);
        put_float(stepgraph_pin_address(beside), 0);
        loop_make(NULL);
        go(0, 3, train_escaping);
        CU(StreamSynchronize(elsewhere));
        OK(stepgraph_loop_begin(loop, 3, &turn));
        ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_RECORD);
        spin(elsewhere, 50); /* What escapes runs late. */
        train_escaping(3);
        driver_fails(entries[_i], nth, CUDA_ERROR_UNKNOWN);
        OK(stepgraph_loop_end(loop, &turn));
        no_driver_fails();
        ck_assert_int_eq(turn.again, 1);
        go(3, 6, train_escaping);
        CU(StreamSynchronize(elsewhere));
        ck_assert_float_eq(pin_float(weight), 6);
        ck_assert_float_eq(pin_float(beside), 6);
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
}
END_TEST

/* 0: the turn is cancelled; 1: its loop is destroyed. */
START_TEST(k07_work_that_escapes_from_a_recording_that_is_given_up_is_undone)
{
    elsewhere = stream_make(CU_STREAM_NON_BLOCKING);
    beside = pin_make(session, STEPGRAPH_ROLE_STATE, sizeof(float), "beside");
    loop_make(NULL);
    go(0, 2, train_escaping);
    spin(elsewhere, 30); /* Step 2 is done late, too, and stays so. */
    go(2, 3, train_escaping);
    OK(stepgraph_loop_begin(loop, 3, &turn));
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_RECORD);
    spin(elsewhere, 20);
    train_escaping(3);
    if (_i == 0) {
        OK(stepgraph_loop_cancel(loop));
    } else {
        stepgraph_loop_destroy(loop);
        loop_make(NULL);
    }
    CU(StreamSynchronize(elsewhere));
    ck_assert_float_eq(pin_float(weight), 3);
    ck_assert_float_eq(pin_float(beside), 3);
    go(3, 10, train_escaping);
    CU(StreamSynchronize(elsewhere));
    ck_assert_float_eq(pin_float(weight), 10);
    ck_assert_float_eq(pin_float(beside), 10);
}
END_TEST

/* A host whose other thread launches: what it holds back reaches the driver when it is drained, and draining fails now and then. */
static unsigned queued, drains_fail;

static stepgraph_status drain_queue(void *none)
{
    (void)none;
    if (drains_fail > 0) {
        drains_fail--;
        return STEPGRAPH_ERR_UNSUPPORTED;
    }
    for (; queued > 0; queued--)
        counted_inc(session, NULL, stepgraph_pin_address(weight), 1);
    return STEPGRAPH_OK;
}

static void hold_one(uint64_t k)
{
    (void)k;
    queued++;
}

static void holding_loop(uint32_t flags)
{
    stepgraph_session_config session_config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_loop_config config = config_with(flags);
    stepgraph_pin *pins[] = {weight, fresh, input, rate, loss};

    queued = drains_fail = 0;
    session_config.drain = drain_queue;
    for (size_t i = 0; i < sizeof pins / sizeof *pins; i++)
        drop_pin(pins[i]);
    reopen(&session_config);
    make_pins();
    config.warmup_runs = 1;
    loop_make(&config);
}

START_TEST(work_held_back_where_draining_fails_once_is_not_done_twice)
{
    static const uint32_t kinds[] = {STEPGRAPH_TURN_REHEARSAL, STEPGRAPH_TURN_CHECK};
    uint64_t k = 0;

    holding_loop(_i == 0 ? STEPGRAPH_LOOP_RESTORE : 0);
    for (;; k++) {
        OK(stepgraph_loop_begin(loop, k, &turn));
        if (turn.kind == kinds[_i])
            break;
        hold_one(k);
        OK(stepgraph_loop_end(loop, &turn));
        ck_assert_int_eq(turn.again, 0);
    }
    hold_one(k);
    drains_fail = 1;
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert_uint_eq(drains_fail, 0);
    k += turn.again ? 0 : 1;
    go(k, 20, hold_one);
    OK(drain_queue(NULL));
    ck_assert_float_eq(pin_float(weight), 20);
}
END_TEST

/* And where it goes on failing, the host is told, or the check is left out. */
START_TEST(work_held_back_that_cannot_be_drained_is_told_or_not_checked)
{
    holding_loop(_i == 0 ? STEPGRAPH_LOOP_RESTORE : 0);
    for (uint64_t k = 0; _i == 1 && k < 3; k++)
        take(k, hold_one);
    OK(stepgraph_loop_begin(loop, 3, &turn));
    ck_assert_uint_eq(turn.kind, _i == 0 ? STEPGRAPH_TURN_REHEARSAL : STEPGRAPH_TURN_CHECK);
    hold_one(3);
    drains_fail = 5;
    if (_i == 0) {
        FAILS(STEPGRAPH_ERR_UNSUPPORTED, stepgraph_loop_end(loop, &turn), "drain", "checkpoint");
    } else {
        OK(stepgraph_loop_end(loop, &turn));
        ck_assert_uint_eq(stats_now().checks_failed, 1);
        ck_assert_uint_eq(stats_now().checks, 0);
    }
    drains_fail = 0;
}
END_TEST

START_TEST(work_held_back_in_a_turn_that_is_given_up_is_undone)
{
    holding_loop(0);
    take(0, hold_one);
    OK(stepgraph_loop_begin(loop, 1, &turn));
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_RECORD);
    hold_one(1);
    OK(stepgraph_loop_cancel(loop));
    OK(drain_queue(NULL));
    ck_assert_float_eq(pin_float(weight), 1);
    go(1, 20, hold_one);
    OK(drain_queue(NULL));
    ck_assert_float_eq(pin_float(weight), 20);
}
END_TEST

START_TEST(freed_memory_of_an_adopted_pin_costs_one_launch_and_new_recordings)
{
    stepgraph_loop_config config = config_with(0);
    CUdeviceptr memory = device_make(BYTES);
    float saved[N], want[N];

    without_loop(60, train, want);
    drop_pin(weight);
    weight = pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, BYTES, "weight");
    config.liveness_every = 1;
    config.rewind = note_rewind;
    config.user = &rewound;
    rewinds = 0;
    loop_make(&config);
    go(0, 20, train);
    RUNG(REPLAY, NONE);
    OK(stepgraph_pin_read(weight, saved, BYTES));

    /* The host moves its weights without a word, and finds out at the next step. */
    device_drop(memory);
    memory = device_make(BYTES);
    OK(stepgraph_loop_begin(loop, 20, &turn));
    ck_assert_int_eq(turn.run, 0);
    feed(20);
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert_int_eq(turn.again, 1);
    ck_assert_uint_eq(turn.why, STEPGRAPH_WHY_REPLAY);
    ck_assert_uint_eq(stats_now().steps, 20);
    ck_assert_uint_eq(rewinds, 0); /* The host did not go through its step. */
    drop_pin(weight);
    weight = pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, BYTES, "weight");
    OK(stepgraph_pin_write(weight, saved, BYTES));
    OK(stepgraph_loop_begin(loop, 20, &turn));
    ck_assert_int_eq(turn.run, 1);
    ck_assert_int_eq(turn.feed, 0);
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_FALLBACK);
    train(20);
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert_int_eq(turn.again, 0);
    go(21, 60, train);
    same_as(want);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(stats_now().retries, 1);
    stepgraph_loop_destroy(loop);
    loop = NULL;
    drop_pin(weight);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop ladder");
    TCase *ladder = loop_case(suite, "ladder");

    tcase_add_loop_test(ladder, moved_pointer_is_recorded_every_step_and_updated_in_place, 0, 2);
    tcase_add_test(ladder, memory_without_a_pin_that_stays_is_named);
    tcase_add_loop_test(ladder, k04_feed_that_was_never_fed_is_told_before_it_is_replayed, 0, 3);
    tcase_add_test(ladder, each_change_of_rung_is_one_line_of_the_log);
    tcase_add_loop_test(ladder, changing_scalar_is_recorded_every_step, 0, 2);
    tcase_add_test(ladder, scalar_that_changes_later_is_found_by_the_check);
    tcase_add_test(ladder, sampled_check_finds_what_changes_in_production);
    tcase_add_test(ladder, sampled_check_supposes_that_a_value_has_changed);
    tcase_add_test(ladder, kernels_that_nobody_counts_are_told_once);
    tcase_add_test(ladder, replays_before_the_first_check_are_told_as_well);
    tcase_add_test(ladder, dropped_graph_is_recorded_anew);
    tcase_add_loop_test(ladder, new_parameter_group_needs_no_more_than_a_drop, 0, 2);
    tcase_add_test(ladder, pin_that_is_registered_anew_needs_no_more_than_a_drop);
    tcase_add_test(ladder, k16_other_nodes_in_each_step_end_in_launches_and_no_loop_of_recordings);
    tcase_add_test(ladder, k16_refused_updates_end_in_launches_and_say_why);
    tcase_add_loop_test(ladder, refused_updates_count_in_a_row, 0, 2);
    tcase_add_test(ladder, lists_of_recordings_in_flight_are_kept_apart);
    tcase_add_test(ladder, recording_again_keeps_to_what_is_left_of_the_budget);
    tcase_add_test(ladder, broken_recordings_end_in_launches_after_three_attempts);
    tcase_add_test(ladder, broken_recording_is_tried_again_later);
    tcase_add_test(ladder, drop_gives_new_attempts);
    add_controlled_loop_test(ladder, failures_of_long_ago_are_forgotten, 0, 2);
    tcase_add_test(ladder, refused_recording_is_launched_and_the_audit_is_kept);
    tcase_add_test(ladder, k07_work_that_escapes_is_undone_before_the_step_is_launched);
    tcase_add_test(ladder, k07_work_that_escapes_from_a_recording_that_breaks_is_undone);
    tcase_add_loop_test(ladder, k07_work_that_escapes_uncounted_is_waited_for, 0, 2);
    add_controlled_loop_test(ladder, k07_work_that_escapes_uncounted_is_waited_for, 2, 4);
    tcase_add_loop_test(ladder, k07_work_that_escapes_from_a_recording_that_is_given_up_is_undone, 0, 2);
    add_controlled_test(ladder, work_that_escapes_and_cannot_be_undone_is_told);
    tcase_add_loop_test(ladder, work_held_back_where_draining_fails_once_is_not_done_twice, 0, 2);
    tcase_add_loop_test(ladder, work_held_back_that_cannot_be_drained_is_told_or_not_checked, 0, 2);
    tcase_add_test(ladder, work_held_back_in_a_turn_that_is_given_up_is_undone);
    add_controlled_loop_test(ladder, call_that_fails_while_escaped_work_is_undone_leaves_no_step_half_done, 0, 5);
    tcase_add_test(ladder, freed_memory_of_an_adopted_pin_costs_one_launch_and_new_recordings);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
