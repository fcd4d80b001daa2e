/* The loop: how it gets from the first step to a replay, that every step is done once, and what its checks prove. */
#include "looping.h"

/* ---- to a replay --------------------------------------------------------------------------------------------------- */

START_TEST(loop_ends_with_the_bytes_of_plain_launches)
{
    stepgraph_loop_config config = config_with(0);
    float want[N];

    without_loop(50, train, want);
    loop_make(&config);
    go(0, 50, train);
    same_as(want);
    TURNS(WARMUP, 3);
    TURNS(RECORD, 2);
    TURNS(CHECK, 3);
    TURNS(REPLAY, 42);
    ck_assert_uint_eq(stats_now().steps, 50);
    ck_assert_uint_eq(stats_now().checks_identical, 3);
    ck_assert_uint_eq(stats_now().recordings, 2);
    /* The second recording updates the executable of the first: there never are two. */
    ck_assert_uint_eq(stats_now().instantiations, 1);
    ck_assert_uint_eq(stats_now().updates, 1);
    RUNG(REPLAY, NONE);
}
END_TEST

START_TEST(k17_each_step_is_executed_once)
{
    const uint32_t flags[] = {0,
                              STEPGRAPH_LOOP_NO_CHECK,
                              STEPGRAPH_LOOP_RESTORE,
                              STEPGRAPH_LOOP_RESTORE | STEPGRAPH_LOOP_NO_CHECK,
                              STEPGRAPH_LOOP_TIMING,
                              STEPGRAPH_LOOP_TRACE};
    stepgraph_loop_config config = config_with(flags[_i]);

    loop_make(&config);
    for (uint64_t k = 0; k < 30; k++) {
        take(k, count_one);
        ck_assert_float_eq(pin_float(weight), (float)(k + 1));
        ck_assert_uint_eq(stats_now().steps, k + 1);
    }
    RUNG(REPLAY, NONE);
}
END_TEST

START_TEST(rehearsals_leave_no_trace)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_RESTORE);
    float want[N];

    without_loop(20, train, want);
    config.warmup_runs = 5;
    config.rewind = note_rewind;
    config.user = &rewound;
    rewinds = 0;
    loop_make(&config);
    go(0, 20, train);
    same_as(want);
    TURNS(REHEARSAL, 5);
    TURNS(WARMUP, 0);
    TURNS(RECORD, 2);
    ck_assert_uint_eq(stats_now().steps, 20);
    ck_assert_uint_eq(rewinds, 5);
    ck_assert_uint_eq(rewound, 0);
}
END_TEST

START_TEST(declared_steps_are_launched_and_no_recording_follows)
{
    stepgraph_loop_config config = config_with(0);
    float want[N];
    uint64_t recordings;

    without_loop(60, train, want);
    config.fresh_every = 10;
    loop_make(&config);
    go(0, 20, train);
    recordings = stats_now().recordings;
    go(20, 50, train);
    turn.flags = STEPGRAPH_TURN_LAUNCH;
    ck_assert_uint_eq(take(50, train), STEPGRAPH_TURN_FRESH);
    ck_assert_uint_eq(take(51, train), STEPGRAPH_TURN_FRESH);
    turn.flags = 0;
    go(52, 60, train);
    same_as(want);
    TURNS(FRESH, 7);
    ck_assert_uint_eq(stats_now().causes[STEPGRAPH_WHY_DECLARED], 7);
    ck_assert_uint_eq(stats_now().recordings, recordings);
    RUNG(REPLAY, NONE);
}
END_TEST

START_TEST(replay_makes_no_other_driver_calls_than_a_step_without_loop)
{
    static const char *const entries[] = {
        "cuMemAlloc",         "cuMemHostAlloc",      "cuEventRecord",  "cuEventQuery",
        "cuEventSynchronize", "cuStreamSynchronize", "cuLaunchKernel", "cuGraphInstantiateWithParams",
        "cuGraphUpload",      "cuCtxPushCurrent",    "cuCtxGetId"};
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_NO_CHECK);
    unsigned long before[sizeof entries / sizeof *entries], launches;

    loop_make(&config);
    go(0, 40, count_one);
    OK(stepgraph_session_wait(session));
    launches = driver_calls("cuGraphLaunch");
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        before[i] = driver_calls(entries[i]);
    go_ahead(40, 140);
    ck_assert_uint_eq(driver_calls("cuGraphLaunch") - launches, 100);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        ck_assert_msg(driver_calls(entries[i]) - before[i] <= (strcmp(entries[i], "cuCtxGetId") == 0 ? 100ul : 0ul),
                      "%lu calls of %s", driver_calls(entries[i]) - before[i], entries[i]);
}
END_TEST

START_TEST(checkpoint_is_loaded_between_steps_and_nothing_is_recorded_anew)
{
    stepgraph_loop_config config = config_with(0);
    float saved[N], want[N], zeros[N] = {0};
    uint64_t recordings;

    without_loop(30, train, want);
    loop_make(&config);
    go(0, 15, train);
    OK(stepgraph_pin_read(weight, saved, BYTES));
    go(15, 25, train);
    recordings = stats_now().recordings;
    OK(stepgraph_pin_write(weight, zeros, BYTES));
    OK(stepgraph_pin_write(weight, saved, BYTES));
    go(15, 30, train);
    same_as(want);
    ck_assert_uint_eq(stats_now().recordings, recordings);
}
END_TEST

/* ---- proofs ---------------------------------------------------------------------------------------------------------- */

/* An evaluation: no state is changed. */
static void evaluate(uint64_t k)
{
    CUdeviceptr out = stepgraph_pin_address(loss), x = stepgraph_pin_address(input);

    (void)k;
    launch_n(kernels.copyf, 1, (void *[]){&out, &x});
}

static void copy_weight(uint64_t k)
{
    CUdeviceptr out = stepgraph_pin_address(loss), from = stepgraph_pin_address(weight);

    (void)k;
    launch_n(kernels.copyf, 1, (void *[]){&out, &from});
}

START_TEST(step_without_state_proves_nothing_and_is_replayed_only_if_allowed)
{
    stepgraph_loop_config config = config_with(_i == 0 ? 0 : STEPGRAPH_LOOP_ALLOW_UNPROVEN);

    loop_make(&config);
    go(0, 30, evaluate);
    if (_i == 0)
        RUNG(RERECORD, UNPROVEN);
    else
        RUNG(REPLAY, NONE);
    ck_assert_uint_ge(stats_now().checks_unproven, 1);
}
END_TEST

/* The host goes on from the new value, and has forgotten to commit it. */
static void train_uncommitted(uint64_t k)
{
    CUdeviceptr to = stepgraph_pin_address(fresh), from = stepgraph_pin_address(weight), x = stepgraph_pin_address(input);
    CUdeviceptr by = stepgraph_pin_address(rate);
    int n = N;

    (void)k;
    launch_n(kernels.update, N, (void *[]){&to, &from, &x, &by, &n});
}

START_TEST(step_that_changes_no_pin_proves_nothing)
{
    loop_make(NULL);
    go(0, 30, train_uncommitted);
    RUNG(RERECORD, UNPROVEN);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "no STATE and no OUTPUT changes, so there was nothing to compare"));
    ck_assert_uint_eq(stats_now().checks_unproven, 1);
}
END_TEST

/* Nothing changes here, either, and yet there is something to see: the output depends on the state. */
START_TEST(evaluation_of_the_same_state_is_proven_by_its_output)
{
    float one = 1;

    OK(stepgraph_pin_write(weight, (float[N]){1}, BYTES));
    OK(stepgraph_pin_write(loss, &one, sizeof one));
    loop_make(NULL);
    go(0, 30, copy_weight);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(stats_now().checks_unproven, 0);
}
END_TEST

static CUdeviceptr hidden;

static void train_hidden(uint64_t k)
{
    (void)k;
    counted_inc(session, NULL, stepgraph_pin_address(weight), 1);
    counted_inc(session, NULL, hidden, 1);
}

START_TEST(memory_without_a_pin_is_never_changed_twice)
{
    stepgraph_loop_config config = config_with(_i == 0 ? 0 : STEPGRAPH_LOOP_NO_CHECK);

    hidden = device_make(sizeof(float));
    config.step_flags = STEPGRAPH_STEP_ALLOW_UNREGISTERED;
    loop_make(&config);
    go(0, 30, train_hidden);
    ck_assert_float_eq(pin_float(weight), 30);
    ck_assert_float_eq(float_at(hidden), 30);
    if (_i == 0) {
        RUNG(RERECORD, UNPROVEN);
        ck_assert_uint_eq(stats_now().checks_failed, 1);
    } else {
        RUNG(REPLAY, NONE);
    }
}
END_TEST

START_TEST(outputs_of_other_steps_survive_a_check)
{
    stepgraph_loop_config config = config_with(0);
    stepgraph_pin *other = pin_make(session, STEPGRAPH_ROLE_OUTPUT, sizeof(float), "other");
    float one = 1;

    OK(stepgraph_pin_write(other, &one, sizeof one));
    loop_make(&config);
    go(0, 20, train);
    RUNG(REPLAY, NONE);
    ck_assert_float_eq(pin_float(other), 1);
}
END_TEST

static stepgraph_arena *arena;
static uint64_t held;

/* A block that lives from step to step and is changed by each, and one that does not. */
static void train_in_arena(uint64_t k)
{
    uint64_t block = 0;

    count_one(k);
    OK(stepgraph_arena_alloc(arena, 4, "temporary", &block));
    OK(counted(session, NULL, kernels.copyf, (void *[]){&block, &held}));
    OK(counted(session, NULL, kernels.axpb, (void *[]){&held, &block, &(float){1}}));
    OK(stepgraph_arena_free(arena, block));
}

START_TEST(blocks_that_the_host_holds_are_put_back_by_checks)
{
    stepgraph_arena_config options = STEPGRAPH_ARENA_CONFIG_INIT;
    stepgraph_loop_config config = config_with(0);

    options.bytes = 1 << 16;
    OK(stepgraph_arena_create(session, &options, &arena));
    OK(stepgraph_arena_alloc(arena, 4, "held", &held));
    put_float(held, 0);
    config.check_every = 5;
    loop_make(&config);
    for (uint64_t k = 0; k < 60; k++) {
        if (k == 30) /* And it stays an arena when it cannot go. */
            FAILS(STEPGRAPH_ERR_STATE, stepgraph_arena_destroy(arena), "cannot be destroyed");
        take(k, train_in_arena);
        ck_assert_float_eq(float_at(held), (float)(k + 1));
    }
    ck_assert_float_eq(pin_float(weight), 60);
    RUNG(REPLAY, NONE);
    ck_assert_uint_gt(stats_now().checks_identical, 10);
    stepgraph_loop_destroy(loop);
    loop = NULL;
    OK(stepgraph_arena_destroy(arena));
}
END_TEST

/* Recorded while it takes long, launched while it does not. */
static void train_slowly_at_first(uint64_t k)
{
    unsigned long long ns = k < 5 ? 400000000ull : 0;

    count_one(k);
    OK(counted(session, NULL, kernels.spin, (void *[]){&ns}));
}

START_TEST(replay_that_hangs_in_a_check_is_told_and_nothing_waits)
{
    stepgraph_loop_config config = config_with(0);

    config.warmup_runs = 1;
    config.timeout_ns = 100000000;
    loop_make(&config);
    for (uint64_t k = 2; k < 5; k++)
        take(k, train_slowly_at_first);
    OK(stepgraph_loop_begin(loop, 5, &turn));
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_CHECK);
    OK(stepgraph_session_wait(session)); /* What comes now hangs, not what came before. */
    train_slowly_at_first(5);
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_loop_end(loop, &turn), "step 5", "did not come to an end");
    RUNG(FRESH, DIVERGED);
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_loop_begin(loop, 6, &turn), "hangs");
    CU(StreamSynchronize(stream));
    OK(stepgraph_session_wait(session));
    ck_assert_uint_eq(take(6, count_one), STEPGRAPH_TURN_FALLBACK);
}
END_TEST

/* A check that has no room is one that comes later, not at once again. */
START_TEST(check_without_room_waits_for_its_turn)
{
    stepgraph_loop_config config = config_with(0);
    uint64_t k = 20;

    config.check_every = 10;
    loop_make(&config);
    go(0, k, count_one);
    driver_fails("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    while (stats_now().checks_failed == 0 && k < 40)
        ck_assert_uint_eq(take(k++, count_one), STEPGRAPH_TURN_REPLAY);
    no_driver_fails();
    ck_assert_uint_eq(stats_now().checks_failed, 1);
    for (uint64_t last = k + config.check_every - 1; k < last; k++) /* The one that was not checked was the first of them. */
        ck_assert_uint_eq(take(k, count_one), STEPGRAPH_TURN_REPLAY);
    ck_assert_uint_eq(take(k, count_one), STEPGRAPH_TURN_CHECK);
    ck_assert_float_eq(pin_float(weight), (float)(k + 1));
}
END_TEST

static size_t device_memory_left(void)
{
    size_t left, total;

    CU(MemGetInfo(&left, &total));
    return left;
}

/* No copy of the pins, no event: neither behind a recording nor behind a check. */
START_TEST(nothing_is_kept_for_replays)
{
    stepgraph_loop_config config = config_with(_i == 0 ? STEPGRAPH_LOOP_NO_CHECK : 0);
    unsigned long events;
    size_t left;

    (void)pin_make(session, STEPGRAPH_ROLE_STATE, 4 << 20, "large");
    config.check_every = _i == 0 ? 0 : 3;
    loop_make(&config);
    go(0, 12, count_one);
    RUNG(REPLAY, NONE);
    left = device_memory_left();
    turn.flags = STEPGRAPH_TURN_LAUNCH;
    take(12, count_one);
    ck_assert_uint_eq(device_memory_left(), left); /* Nothing was left to give back. */
    turn.flags = 0;
    go(13, 30, count_one);
    left = device_memory_left();
    events = driver_calls("cuEventCreate") - driver_calls("cuEventDestroy");
    for (uint64_t k = 30; k < 50; k++) {
        take(k, count_one);
        ck_assert_uint_eq(device_memory_left(), left);
    }
    ck_assert_uint_eq(driver_calls("cuEventCreate") - driver_calls("cuEventDestroy"), events);
}
END_TEST

/* weight = weight + rate * what stands in scratch since before the first step. */
static void train_from_scratch(uint64_t k)
{
    CUdeviceptr w = stepgraph_pin_address(weight), x = stepgraph_pin_address(fresh), by = stepgraph_pin_address(rate);
    int n = N;

    (void)k;
    launch_n(kernels.update, N, (void *[]){&w, &w, &x, &by, &n});
}

START_TEST(scratch_that_is_to_be_kept_is_not_overwritten)
{
    stepgraph_loop_config config = config_with(_i == 0 ? STEPGRAPH_LOOP_KEEP_SCRATCH : 0);
    float constants[N], is[N];

    for (int i = 0; i < N; i++)
        constants[i] = (float)i;
    OK(stepgraph_pin_write(fresh, constants, BYTES));
    loop_make(&config);
    go(0, 20, train_from_scratch);
    OK(stepgraph_pin_read(fresh, is, BYTES));
    ck_assert_int_eq(memcmp(is, constants, BYTES) == 0, _i == 0);
    if (_i == 0)
        RUNG(REPLAY, NONE);
}
END_TEST

START_TEST(check_by_callbacks_costs_no_turn)
{
    stepgraph_loop_config config = config_with(0);
    stepgraph_check_config check = STEPGRAPH_CHECK_CONFIG_INIT;
    float want[N];

    without_loop(30, train, want);
    check.flags = _i == 0 ? 0 : STEPGRAPH_CHECK_ADVANCE; /* The turn does the step, not the check. */
    check.enqueue = enqueue_back;
    check.feed = feed_back;
    config.check = &check;
    loop_make(&config);
    go(0, 30, train);
    same_as(want);
    RUNG(REPLAY, NONE);
    TURNS(CHECK, 0);
    TURNS(REPLAY, 25);
    ck_assert_uint_eq(stats_now().checks_identical, 1);
    ck_assert_ptr_nonnull(stepgraph_loop_check(loop, 0));
}
END_TEST

START_TEST(step_of_a_key_can_be_asked)
{
    stepgraph_step_stats stats = STEPGRAPH_STEP_STATS_INIT;

    loop_make(NULL);
    ck_assert_ptr_null(stepgraph_loop_step(loop, 0));
    turn.key = 3;
    go(0, 10, train);
    ck_assert_ptr_null(stepgraph_loop_step(loop, 0));
    ck_assert_ptr_null(stepgraph_loop_step(NULL, 3));
    ck_assert_int_eq(stepgraph_step_state(stepgraph_loop_step(loop, 3)), STEPGRAPH_STEP_READY);
    OK(stepgraph_step_get_stats(stepgraph_loop_step(loop, 3), &stats));
    ck_assert_uint_eq(stats.nodes_total, 3);
}
END_TEST

static bool breaks;

static void train_by_value_and_break(uint64_t k)
{
    train_by_value(k);
    if (breaks)
        (void)cu.StreamSynchronize(stream);
}

START_TEST(copy_of_the_pins_is_not_used_for_another_turn)
{
    stepgraph_loop_config config = config_with(0);
    float want[N];

    breaks = false;
    without_loop(40, train_by_value, want);
    loop_make(&config);
    go(0, 20, train_by_value_and_break);
    RUNG(RERECORD, SCALAR);
    /* A recording of another key is prepared for, and cannot begin. */
    turn.key = 1;
    go(20, 23, train_by_value_and_break);
    driver_fails("cuStreamBeginCapture", 1, CUDA_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(take(23, train_by_value_and_break), STEPGRAPH_TURN_FALLBACK);
    no_driver_fails();
    go(24, 30, train_by_value_and_break);
    turn.key = 0;
    breaks = true;
    ck_assert_uint_eq(take(30, train_by_value_and_break), STEPGRAPH_TURN_FALLBACK);
    breaks = false;
    go(31, 40, train_by_value_and_break);
    same_as(want);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop");
    TCase *replays = loop_case(suite, "replays"), *proofs = loop_case(suite, "proofs");

    tcase_add_test(replays, loop_ends_with_the_bytes_of_plain_launches);
    tcase_add_loop_test(replays, k17_each_step_is_executed_once, 0, 6);
    tcase_add_test(replays, rehearsals_leave_no_trace);
    tcase_add_test(replays, declared_steps_are_launched_and_no_recording_follows);
    add_controlled_test(replays, replay_makes_no_other_driver_calls_than_a_step_without_loop);
    tcase_add_test(replays, checkpoint_is_loaded_between_steps_and_nothing_is_recorded_anew);

    tcase_add_loop_test(proofs, step_without_state_proves_nothing_and_is_replayed_only_if_allowed, 0, 2);
    tcase_add_test(proofs, step_that_changes_no_pin_proves_nothing);
    tcase_add_test(proofs, evaluation_of_the_same_state_is_proven_by_its_output);
    tcase_add_loop_test(proofs, memory_without_a_pin_is_never_changed_twice, 0, 2);
    tcase_add_test(proofs, outputs_of_other_steps_survive_a_check);
    tcase_add_test(proofs, blocks_that_the_host_holds_are_put_back_by_checks);
    tcase_add_test(proofs, replay_that_hangs_in_a_check_is_told_and_nothing_waits);
    add_controlled_test(proofs, copy_of_the_pins_is_not_used_for_another_turn);
    add_controlled_test(proofs, check_without_room_waits_for_its_turn);
    add_controlled_loop_test(proofs, nothing_is_kept_for_replays, 0, 2);
    tcase_add_loop_test(proofs, scratch_that_is_to_be_kept_is_not_overwritten, 0, 2);
    tcase_add_loop_test(proofs, check_by_callbacks_costs_no_turn, 0, 2);
    tcase_add_test(proofs, step_of_a_key_can_be_asked);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
