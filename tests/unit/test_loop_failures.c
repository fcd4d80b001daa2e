/* Driver calls and callbacks that fail in a turn: no step is half done or done twice. */
#include "scenes.h"

/* ---- what callbacks do in a turn ---------------------------------------------------------------------------------- */

static void run_nothing(uint64_t k)
{
    (void)k;
}

/* A replay of no nodes, of which no time is known: whether others are worth a try is not to be divided by that. */
START_TEST(empty_graphs_are_not_tuned)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    act(NULL, run_nothing, w, NULL);
    config.flags = STEPGRAPH_LOOP_NO_CHECK | STEPGRAPH_LOOP_SOFTWARE_CLOCK | STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.step_flags = STEPGRAPH_STEP_ALLOW_EMPTY;
    OK(stepgraph_loop_create(session, &config, &loop));
    go(0, 5);
    driver_fails("cuEventRecord", 2, CUDA_ERROR_UNKNOWN);
    go(5, 40);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    ck_assert_uint_eq(stats_now().nodes, 0);
}
END_TEST

static bool drain_fails;
static unsigned rewound;

static stepgraph_status drain(void *user)
{
    (void)user;
    return drain_fails ? STEPGRAPH_ERR_STATE : STEPGRAPH_OK;
}

static void loop_with_drain(void)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_pin *made[] = {w, x, one, out, scratch};

    config.drain = drain;
    drain_fails = false;
    for (unsigned i = 0; i < sizeof made / sizeof *made; i++)
        drop_pin(made[i]);
    reopen(&config);
    w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    loop_make(0, 0);
}

/* Whatever a callback answers, a turn whose recording is over is over. */
START_TEST(failed_drain_ends_the_turn)
{
    loop_with_drain();
    for (uint64_t k = 0; k < 3; k++) {
        OK(stepgraph_loop_begin(loop, k, &turn));
        add(w, 1);
        OK(stepgraph_loop_end(loop, &turn));
    }
    OK(stepgraph_loop_begin(loop, 3, &turn));
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_RECORD);
    add(w, 1);
    drain_fails = true; /* Again and again, so what is held back may come yet. */
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_end(loop, &turn), "drain", "checkpoint");
    drain_fails = false;
    OK(stepgraph_loop_begin(loop, 3, &turn));
    add(w, 1);
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert(pin_float(w) == 4);
}
END_TEST

/* Also where a step that is done was to be looked at once more. */
START_TEST(failed_drain_ends_a_look)
{
    loop_with_drain();
    for (uint64_t k = 0; k < 8; k++)
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.run)
                add(w, (float)(k + 1));
            drain_fails = turn.kind == STEPGRAPH_TURN_LOOK;
            OK(stepgraph_loop_end(loop, &turn));
            drain_fails = false;
        } while (turn.again);
    ck_assert_uint_eq(stats_now().turns[STEPGRAPH_TURN_LOOK], 1);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_SCALAR);
    ck_assert(pin_float(w) == 36);
}
END_TEST

static stepgraph_status drop_in_rewind(void *unused, uint64_t k)
{
    (void)unused;
    (void)k;
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_drop(loop, STEPGRAPH_KEY_ALL, NULL), "is not over", "no graph can be dropped");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_begin(loop, 0, &(stepgraph_turn)STEPGRAPH_TURN_INIT), "is open");
    rewound++;
    return STEPGRAPH_OK;
}

static void run_by_value(uint64_t k)
{
    add(w, (float)(k + 1));
}

/* The third recording would be compared with two that are gone. */
START_TEST(rewinding_drops_no_graph)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    float right[MOST][2];

    act(NULL, run_by_value, w, NULL);
    by_hand(14, right);
    rewound = 0;
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.rewind = drop_in_rewind;
    OK(stepgraph_loop_create(session, &config, &loop));
    go(0, 14);
    check_right(right);
    ck_assert_uint_gt(rewound, 0);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_SCALAR);
}
END_TEST

/* Nor do callbacks end the turn that they are called in, or give it up. */
static void end_the_turn(void)
{
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_end(loop, &turn), "callback");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_cancel(loop), "callback");
    rewound++;
}

static stepgraph_status end_in_rewind(void *unused, uint64_t k)
{
    (void)unused;
    (void)k;
    end_the_turn();
    return STEPGRAPH_OK;
}

static stepgraph_status end_in_agree(void *unused, uint64_t k, uint64_t mine, uint64_t *largest_out)
{
    (void)unused;
    (void)k;
    end_the_turn();
    *largest_out = mine;
    return STEPGRAPH_OK;
}

START_TEST(callbacks_end_no_turn)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    float right[MOST][2];

    act(NULL, _i == 0 ? run_beside : run_by_value, w, NULL);
    by_hand(14, right);
    rewound = 0;
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK | STEPGRAPH_LOOP_RESTORE;
    config.rewind = end_in_rewind;
    config.agree = end_in_agree;
    OK(stepgraph_loop_create(session, &config, &loop));
    go(0, 14);
    check_right(right);
    ck_assert_uint_gt(rewound, 4);
    ck_assert_uint_eq(stats_now().cancelled, 0);
    ck_assert_uint_eq(stats_now().rung, _i == 0 ? STEPGRAPH_RUNG_REPLAY : STEPGRAPH_RUNG_RERECORD);
}
END_TEST

/* ---- driver calls that fail once ------------------------------------------------------------------------------------ */

static void feed_x(uint64_t k)
{
    OK(stepgraph_pin_feed_f32(x, (float)(k % 5 + 1)));
}

static void run_fed(uint64_t k)
{
    CUdeviceptr to = stepgraph_pin_address(w), from = stepgraph_pin_address(x), by_one = stepgraph_pin_address(one);

    (void)k;
    update(stream, to, to, from, by_one, 1);
    axpb(stream, stepgraph_pin_address(out), to, 1);
}

/* Whatever the end of a checked turn cannot do, the launches have done the step, and their results stay. */
START_TEST(call_that_fails_in_a_check_alters_no_state)
{
    static const char *const entries[] = {"cuLaunchKernel", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemsetD8Async", "cuGraphLaunch", "cuStreamSynchronize", "cuEventRecord"};
    const char *entry = entries[_i];
    float right[MOST][2];

    act(feed_x, run_fed, w, out);
    OK(stepgraph_pin_feed_f32(one, 1));
    by_hand(12, right);
    unit_leaves_objects(1);
    for (unsigned nth = 1; nth <= 16; nth++) {
        uint64_t k;
        stepgraph_status status;

        zero();
        turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
        loop_make(0, 0);
        k = until_check();
        OK(stepgraph_loop_begin(loop, k, &turn));
        ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_CHECK);
        feed_x(k);
        run_fed(k);
        driver_fails(entry, nth, CUDA_ERROR_OUT_OF_MEMORY);
        status = stepgraph_loop_end(loop, &turn);
        no_driver_fails();
        ck_assert_msg(status == STEPGRAPH_OK, "call %u: %s", nth, last_words());
        ck_assert_int_eq(turn.again, 0);
        go(k + 1, 12);
        check_right(right);
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
}
END_TEST

/* A rehearsal whose undoing fails once has left no trace, or is the step; where it fails again, the host is told. */
START_TEST(call_that_fails_while_a_rehearsal_is_undone_alters_no_state)
{
    static const char *const entries[] = {"cuLaunchKernel", "cuStreamSynchronize", "cuCtxPushCurrent"};
    const char *const entry = entries[_i % 3];
    const bool twice = _i >= 3;
    unsigned told = 0;
    float right[MOST][2];

    act(feed_x, run_fed, w, out);
    OK(stepgraph_pin_feed_f32(one, 1));
    by_hand(12, right);
    unit_leaves_objects(1);
    for (unsigned nth = 1; nth <= 4; nth++) {
        stepgraph_status status;
        bool spoiled;

        zero();
        turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
        loop_make(STEPGRAPH_LOOP_RESTORE, 0);
        OK(round_of(0));
        ck_assert_int_eq(turn.again, 1);
        OK(stepgraph_loop_begin(loop, 0, &turn));
        ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_REHEARSAL);
        run_fed(0);
        driver_fails(entry, nth, CUDA_ERROR_OUT_OF_MEMORY);
        if (twice)
            driver_fails(entry, nth + 1, CUDA_ERROR_OUT_OF_MEMORY);
        status = stepgraph_loop_end(loop, &turn);
        spoiled = status != STEPGRAPH_OK && strstr(last_words(), "checkpoint") != NULL;
        told += spoiled ? 1 : 0;
        no_driver_fails();
        if (status != STEPGRAPH_OK)
            OK(stepgraph_loop_cancel(loop));
        if (!spoiled) {
            go(status == STEPGRAPH_OK && !turn.again ? 1 : 0, 12);
            check_right(right);
        }
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
    ck_assert_int_eq(told > 0, twice);
}
END_TEST

/* A relaxed graph goes back to its recording first, whatever the cause; how far the host has to go back is told all the same. */
static void run_beside_at_a_rate(uint64_t k)
{
    add(w, k < 14 ? 1 : 0.5f);
    add(out, 1);
}

START_TEST(relaxed_replays_that_may_have_been_wrong_are_told)
{
    stepgraph_relax_config relax = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    act(NULL, run_beside_at_a_rate, w, out);
    relax.lanes = 2;
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.check_steps = config.executables = 1;
    config.check_every = 5;
    config.relax = &relax;
    OK(stepgraph_loop_create(session, &config, &loop));
    go(0, 20);
    ck_assert_uint_eq(stats_now().relax_diverged, 1);
    ck_assert_uint_eq(stats_now().checks_diverged, 2);
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_DIVERGED);
    ck_assert_msg(strstr(stats_now().words, "all was right at step 12, and 5 replays since then may have been wrong") != NULL, "%s", stats_now().words);
}
END_TEST

/* To find out what it takes relaxed a step is run, and what that leaves is put back, at the second try if one call fails; where it cannot be, the turn
 * says so. */
START_TEST(relaxing_that_cannot_be_undone_is_told)
{
    const bool check = _i < 2, twice = _i % 2 != 0;
    stepgraph_relax_config relax = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    unsigned told = 0;
    float right[MOST][2];

    act(NULL, run_beside, w, out);
    by_hand(12, right);
    unit_leaves_objects(1);
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK | (check ? 0 : STEPGRAPH_LOOP_NO_CHECK);
    config.warmup_runs = config.check_steps = 1;
    config.executables = 1;
    config.relax = &relax;
    for (unsigned nth = 1; nth <= 60; nth++) {
        stepgraph_status status;
        uint64_t k = check ? 3 : 2;

        zero();
        turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
        OK(stepgraph_loop_create(session, &config, &loop));
        go(0, k);
        OK(stepgraph_loop_begin(loop, k, &turn));
        ck_assert_uint_eq(turn.kind, check ? STEPGRAPH_TURN_CHECK : STEPGRAPH_TURN_RECORD);
        run_beside(k);
        driver_fails("cuLaunchKernel", nth, CUDA_ERROR_UNKNOWN);
        if (twice)
            driver_fails("cuLaunchKernel", nth + 1, CUDA_ERROR_UNKNOWN);
        status = stepgraph_loop_end(loop, &turn);
        no_driver_fails();
        if (status != STEPGRAPH_OK) {
            ck_assert_int_eq(status, STEPGRAPH_ERR_DRIVER);
            ck_assert_msg(strstr(last_words(), "checkpoint") != NULL, "call %u: %s", nth, last_words());
            told++;
        } else {
            go(turn.again ? k : k + 1, 12);
            check_right(right);
        }
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
    ck_assert_int_eq(told > 0, twice);
}
END_TEST

/* What a check is to begin with cannot be saved: the step is launched all the same. */
START_TEST(check_that_cannot_begin_ends_no_turn)
{
    static const int codes[] = {CUDA_ERROR_UNKNOWN, CUDA_ERROR_OUT_OF_MEMORY};
    float right[MOST][2];
    uint64_t k;

    act(feed_x, run_fed, w, out);
    OK(stepgraph_pin_feed_f32(one, 1));
    by_hand(40, right);
    unit_leaves_objects(1);
    loop_make(0, 4);
    for (k = 0; k < 20 || turn.kind != STEPGRAPH_TURN_CHECK; k++)
        go(k, k + 1);
    go(k, k + 4);
    k += 4;
    driver_fails("cuLaunchKernel", 1, codes[_i]);
    OK(stepgraph_loop_begin(loop, k, &turn));
    no_driver_fails();
    if (turn.feed)
        feed_x(k);
    if (turn.run)
        run_fed(k);
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert_uint_eq(stats_now().checks_failed, 1);
    go(k + 1, 40);
    check_right(right);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
}
END_TEST

/* All that hosts do, in an order that is drawn: keys that share pins, steps launched on purpose, turns given up before and after their first round, drops, driver calls of
 * the loop's that fail. A turn is told of as not done only if it is not. */
START_TEST(steps_in_any_order_leave_what_they_leave_without_a_loop)
{
    static const char *const entries[] = {"cuLaunchKernel", "cuGraphLaunch", "cuMemcpyHtoDAsync", "cuStreamBeginCapture", "cuGraphExecUpdate", "cuStreamSynchronize", "cuGraphInstantiateWithParams"};
    uint64_t seed = 77 + (uint64_t)_i;
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    float want = 0, most = 1 << 22;

    act(feed_x, run_fed, w, out);
    OK(stepgraph_pin_feed_f32(one, 1));
    zero();
    unit_leaves_objects(1);
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK | (_i % 2 ? STEPGRAPH_LOOP_RESTORE : 0) | (_i % 3 == 1 ? STEPGRAPH_LOOP_ALLOW_UNPROVEN : 0) | (_i % 5 == 1 ? STEPGRAPH_LOOP_TRACE : 0) |
                   (_i % 4 == 1 ? STEPGRAPH_LOOP_SOFTWARE_CLOCK : 0);
    config.step_flags = _i % 7 == 1 ? STEPGRAPH_STEP_STRICT_FEEDS : 0;
    config.check_every = 1 + unit_random(&seed) % 6;
    config.fresh_every = unit_random(&seed) % 9;
    config.max_graphs = 3;
    config.executables = 3;
    OK(stepgraph_loop_create(session, &config, &loop));
    for (uint64_t k = 0; k < 300; k++) {
        uint32_t what = unit_random(&seed) % 40, key = unit_random(&seed) % 16 < 14 ? (uint32_t)(k / 40 % 3) : unit_random(&seed) % 4, nth = 1 + unit_random(&seed) % 6;
        const char *entry = entries[unit_random(&seed) % (sizeof entries / sizeof *entries)];
        bool fails = what < 3, told = false;

        turn.key = key;
        turn.flags = (what == 4 ? STEPGRAPH_TURN_LAUNCH : 0) | (what % 2 ? STEPGRAPH_TURN_KEEPS_NOTHING : 0);
        if (what == 5)
            OK(stepgraph_loop_drop(loop, key, NULL));
        for (int round = 0; round < 12; round++) {
            unsigned long before = driver_calls(entry), done;
            stepgraph_status status;
            if (fails)
                driver_fails(entry, nth, CUDA_ERROR_OUT_OF_MEMORY);
            status = stepgraph_loop_begin(loop, k, &turn);
            no_driver_fails();
            done = driver_calls(entry) - before;
            fails = fails && done < nth;
            nth -= fails ? (unsigned)done : 0;
            if (status == STEPGRAPH_OK) {
                if (what == 6 && round == 0) {
                    OK(stepgraph_loop_cancel(loop));
                    continue;
                }
                if (turn.feed)
                    feed_x(k);
                if (turn.run && key == 2)
                    add(w, (float)(k % 7 + 1));
                if (turn.run)
                    run_fed(k);
                before = driver_calls(entry);
                if (fails)
                    driver_fails(entry, nth, CUDA_ERROR_OUT_OF_MEMORY);
                status = stepgraph_loop_end(loop, &turn);
                no_driver_fails();
                done = driver_calls(entry) - before;
                fails = fails && done < nth;
                nth -= fails ? (unsigned)done : 0;
            }
            if (status == STEPGRAPH_OK && !turn.again)
                break;
            if (status == STEPGRAPH_OK && what == 7) {
                OK(stepgraph_loop_cancel(loop));
                if (stats_now().steps == k + 1) /* It was only to be looked at. */
                    break;
            }
            if (status != STEPGRAPH_OK) {
                ck_assert_msg(!told, "step %llu: %s", (unsigned long long)k, last_words());
                told = true;
                OK(stepgraph_loop_cancel(loop));
            }
        }
        want += (float)(k % 5 + 1) + (key == 2 ? (float)(k % 7 + 1) : 0);
        ck_assert(want < most);
        ck_assert_msg(pin_float(w) == want, "step %llu, key %u, kind %u, what %u, %s: %g, not %g; %s", (unsigned long long)k, key, turn.kind, what, entry, pin_float(w), want, stats_now().words);
        ck_assert(pin_float(out) == want + 1);
        ck_assert_uint_eq(stats_now().steps, k + 1);
    }
}
END_TEST

/* An error means that the step is not done: where only its measuring has failed, there is none. */
START_TEST(measuring_that_fails_leaves_no_step_done_twice)
{
    static const char *const entries[] = {"cuEventElapsedTime", "cuEventQuery", "cuEventRecord", "cuEventCreate", "cuCtxPushCurrent"};
    float right[MOST][2];

    act(feed_x, run_fed, w, out);
    OK(stepgraph_pin_feed_f32(one, 1));
    by_hand(40, right);
    unit_leaves_objects(1);
    for (unsigned nth = 1; nth <= 24; nth++) {
        unsigned long before;
        unsigned left = nth;

        zero();
        turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
        loop_make(0, 0);
        for (uint64_t k = 0, rounds = 0; k < 40 && rounds < 90; rounds++) {
            stepgraph_status status = stepgraph_loop_begin(loop, k, &turn);
            if (status == STEPGRAPH_OK) {
                if (turn.feed)
                    feed_x(k);
                if (turn.run)
                    run_fed(k);
                before = driver_calls(entries[_i]);
                if (k >= 3 && left > 0)
                    driver_fails(entries[_i], left, CUDA_ERROR_OUT_OF_MEMORY);
                status = stepgraph_loop_end(loop, &turn);
                no_driver_fails();
                before = driver_calls(entries[_i]) - before;
                left = k < 3 ? nth : before < left ? left - (unsigned)before : 0;
            }
            k += status == STEPGRAPH_OK && !turn.again ? 1 : 0;
        }
        ck_assert_msg(stats_now().steps == 40, "call %u: %llu steps", nth, (unsigned long long)stats_now().steps);
        ck_assert_msg(pin_float(w) == right[0][0], "call %u: %g, not %g", nth, pin_float(w), right[0][0]);
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
}
END_TEST

/* An open turn is cancelled. */
START_TEST(rehearsal_leaves_no_trace_when_its_loop_is_destroyed)
{
    loop_make(STEPGRAPH_LOOP_RESTORE, 0);
    OK(stepgraph_loop_begin(loop, 0, &turn));
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_REHEARSAL);
    add(w, 1);
    stepgraph_loop_destroy(loop);
    loop = NULL;
    ck_assert(pin_float(w) == 0);
}
END_TEST

/* What is on a side stream that was not joined comes late. 1: the loop is destroyed. */
START_TEST(rehearsal_that_is_given_up_waits_for_its_side_streams)
{
    CUstream aside = stream_make(CU_STREAM_NON_BLOCKING);

    loop_make(STEPGRAPH_LOOP_RESTORE, 0);
    OK(stepgraph_loop_begin(loop, 0, &turn));
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_REHEARSAL);
    OK(stepgraph_step_fork(turn.step, aside, "aside"));
    spin(aside, 30);
    inc(aside, stepgraph_pin_address(w), 1);
    if (_i == 0) {
        OK(stepgraph_loop_cancel(loop));
    } else {
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
    CU(StreamSynchronize(aside));
    ck_assert(pin_float(w) == 0);
}
END_TEST

/* ---- callbacks that fail --------------------------------------------------------------------------------------------- */

static stepgraph_status fail_to_rewind(void *unused, uint64_t k)
{
    (void)unused;
    (void)k;
    rewound++;
    return STEPGRAPH_ERR_MEMORY;
}

/* An error means that the step is not done. A step that was to be looked at is. */
START_TEST(rewinding_that_fails_leaves_no_step_done_twice)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    float right[MOST][2];

    act(NULL, run_by_value, w, NULL);
    by_hand(14, right);
    rewound = 0;
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.rewind = fail_to_rewind;
    OK(stepgraph_loop_create(session, &config, &loop));
    for (uint64_t k = 0, rounds = 0; k < 14 && rounds < 40; rounds++) {
        stepgraph_status status = round_of(k);
        k += status == STEPGRAPH_OK && !turn.again ? 1 : 0;
    }
    ck_assert_uint_eq(rewound, 1);
    check_right(right);
    ck_assert_uint_eq(stats_now().steps, 14);
}
END_TEST

/* What the two recordings show decides where there is no third one: 0, it is given up; 1, it does not begin; 2, it breaks. */
START_TEST(two_recordings_decide_without_a_third)
{
    float right[MOST][2];
    uint64_t k = 0;

    act(NULL, run_by_value, w, NULL);
    by_hand(14, right);
    unit_leaves_objects(1);
    loop_make(0, 0);
    while (!turn.again) {
        OK(round_of(k));
        k += turn.again ? 0 : 1;
    }
    ck_assert_uint_eq(stats_now().steps, k + 1);
    if (_i == 1)
        driver_fails("cuStreamBeginCapture", 1, CUDA_ERROR_OUT_OF_MEMORY);
    if (_i > 0) {
        OK(stepgraph_loop_begin(loop, k, &turn));
        no_driver_fails();
        ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_LOOK);
        if (turn.run)
            run_by_value(k);
        if (_i == 2)
            (void)cu.StreamSynchronize(stream);
        OK(stepgraph_loop_end(loop, &turn));
        ck_assert_int_eq(turn.again, 0);
    } else {
        OK(stepgraph_loop_cancel(loop));
    }
    ck_assert_uint_eq(stats_now().why, STEPGRAPH_WHY_SCALAR);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_RERECORD);
    go(k + 1, 14);
    check_right(right);
    ck_assert_uint_eq(stats_now().steps, 14);
}
END_TEST

static unsigned refused_drops;

static stepgraph_status drop_in_enqueue(void *unused, stepgraph_step *step, uint64_t k)
{
    (void)unused;
    (void)step;
    refused_drops += stepgraph_loop_drop(loop, STEPGRAPH_KEY_ALL, NULL) == STEPGRAPH_ERR_STATE ? 1 : 0;
    scene.run(k);
    return STEPGRAPH_OK;
}

/* Nor does a check by callbacks. */
START_TEST(checking_by_callbacks_drops_no_graph)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_check_config by_callbacks = STEPGRAPH_CHECK_CONFIG_INIT;
    float right[MOST][2];

    act(NULL, run_noisy, w, NULL);
    frozen_from = 100;
    by_hand(12, right);
    refused_drops = 0;
    by_callbacks.enqueue = drop_in_enqueue;
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK | STEPGRAPH_LOOP_KEEP_SCRATCH;
    config.check = &by_callbacks;
    OK(stepgraph_loop_create(session, &config, &loop));
    go(0, 12);
    ck_assert_uint_gt(refused_drops, 0);
    check_right(right);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

static void run_one(uint64_t k)
{
    (void)k;
    add(w, 1);
}

static void run_refused(uint64_t k)
{
    (void)k;
    add(w, 1);
    (void)cu.StreamSynchronize(stream);
}

/* A key that has no graph gives none up: the longest idle one that has does. */
START_TEST(room_is_made_by_a_key_that_has_a_graph)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    uint64_t k = 0;

    act(NULL, run_one, w, NULL);
    loop_make(STEPGRAPH_LOOP_NO_CHECK, 0);
    go(0, 6);
    config.graph_bytes = stats_now().device_bytes;
    ck_assert_uint_gt(config.graph_bytes, 0);
    stepgraph_loop_destroy(loop);
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK | STEPGRAPH_LOOP_NO_CHECK;
    config.max_graphs = 3;
    config.executables = 1;
    OK(stepgraph_loop_create(session, &config, &loop));
    turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
    scene.run = run_refused;
    turn.key = 1;
    go(0, 4), k = 4;
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_FRESH);
    scene.run = run_one;
    turn.key = 2;
    go(k, k + 20), k += 20;
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    turn.key = 3;
    go(k, k + 120), k += 120;
    ck_assert_msg(stats_now().rung == STEPGRAPH_RUNG_REPLAY, "rung %u, why %u, %s, %llu dropped", stats_now().rung, stats_now().why, stats_now().words, (unsigned long long)stats_now().graphs_dropped);
    ck_assert_uint_eq(stats_now().graphs_dropped, 1);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop failures");
    TCase *tc = scene_case(suite, "failures");

    add_controlled_test(tc, empty_graphs_are_not_tuned);
    tcase_add_test(tc, failed_drain_ends_the_turn);
    tcase_add_test(tc, failed_drain_ends_a_look);
    tcase_add_test(tc, rewinding_drops_no_graph);
    tcase_add_loop_test(tc, callbacks_end_no_turn, 0, 2);
    add_controlled_loop_test(tc, call_that_fails_in_a_check_alters_no_state, 0, 7);
    add_controlled_loop_test(tc, call_that_fails_while_a_rehearsal_is_undone_alters_no_state, 0, 6);
    tcase_add_test(tc, relaxed_replays_that_may_have_been_wrong_are_told);
    add_controlled_loop_test(tc, relaxing_that_cannot_be_undone_is_told, 0, 4);
    add_controlled_loop_test(tc, check_that_cannot_begin_ends_no_turn, 0, 2);
    add_controlled_loop_test(tc, steps_in_any_order_leave_what_they_leave_without_a_loop, 0, 60);
    add_controlled_loop_test(tc, measuring_that_fails_leaves_no_step_done_twice, 0, 5);
    tcase_add_test(tc, rehearsal_leaves_no_trace_when_its_loop_is_destroyed);
    tcase_add_loop_test(tc, rehearsal_that_is_given_up_waits_for_its_side_streams, 0, 2);
    tcase_add_test(tc, rewinding_that_fails_leaves_no_step_done_twice);
    add_controlled_loop_test(tc, two_recordings_decide_without_a_third, 0, 3);
    tcase_add_test(tc, checking_by_callbacks_drops_no_graph);
    tcase_add_test(tc, room_is_made_by_a_key_that_has_a_graph);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
