/* Beside a turn that is undone or compared: other turns, other sessions, memory that goes, and rehearsals. */
#include "scenes.h"

/* ---- rehearsals -------------------------------------------------------------------------------------------------- */

START_TEST(rehearsals_of_a_step_that_writes_inputs_are_refused)
{
    act(feed_both, run_on_input, w, NULL);
    zero();
    loop_make(STEPGRAPH_LOOP_RESTORE, 0);
    OK(round_of(0));
    ck_assert_int_eq(turn.again, 1);
    FAILS(STEPGRAPH_ERR_REFUSED, round_of(0), "writes pin 'x'", "STEPGRAPH_LOOP_RESTORE");
    ck_assert(pin_float(w) == 0);
}
END_TEST

static void run_plainly(uint64_t k)
{
    (void)k;
    update(stream, stepgraph_pin_address(w), stepgraph_pin_address(w), stepgraph_pin_address(x), stepgraph_pin_address(one), 1);
    add(out, 1);
}

/* 0: a step of its own in between; 1: the host writes a checkpoint; 2: it launches the step that was to be taken again. */
START_TEST(rehearsals_undo_no_more_than_they_did)
{
    float right[MOST][2], mine = 5;
    stepgraph_pin *other = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "other");

    act(feed_both, run_plainly, w, out);
    by_hand(8, right);
    loop_make(STEPGRAPH_LOOP_RESTORE, 0);
    OK(round_of(0));
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_REHEARSAL);
    ck_assert_int_eq(turn.again, 1);
    if (_i == 0)
        add(other, mine);
    else if (_i == 1)
        OK(stepgraph_pin_write(other, &mine, sizeof mine));
    turn.flags = _i == 2 ? STEPGRAPH_TURN_LAUNCH : 0;
    OK(round_of(0));
    turn.flags = 0;
    while (turn.again)
        OK(round_of(0));
    go(1, 8);
    check_right(right);
    ck_assert(pin_float(other) == (_i == 2 ? 0 : mine));
}
END_TEST

/* ---- turns beside turns ------------------------------------------------------------------------------------------ */

static stepgraph_loop *second;
static stepgraph_pin *v;

static stepgraph_loop *loop_of(uint32_t flags)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_loop *made;

    config.flags = flags | STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.executables = 1;
    OK(stepgraph_loop_create(session, &config, &made));
    return made;
}

static void teardown_second(void)
{
    stepgraph_loop_destroy(second);
    second = NULL;
}

/* What it does would be undone, or compared, with the step in whose turn it comes. 0: in a rehearsal; 1: in a launched turn. */
START_TEST(nothing_is_replayed_inside_a_turn_that_launches)
{
    stepgraph_turn other = STEPGRAPH_TURN_INIT;
    stepgraph_step *step = step_make(session, "by hand", 0);
    uint64_t k = 0;

    v = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "v");
    second = loop_of(0);
    for (; other.kind != STEPGRAPH_TURN_REPLAY; k++) {
        OK(stepgraph_loop_begin(second, k, &other));
        if (other.run)
            add(v, 1);
        OK(stepgraph_loop_end(second, &other));
    }
    begin_recording(step);
    add(v, 1);
    OK(stepgraph_step_end(step));
    loop_make(_i == 0 ? STEPGRAPH_LOOP_RESTORE : 0, 0);
    OK(stepgraph_loop_begin(loop, 0, &turn));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_begin(second, k, &other), "cannot be replayed", "call stepgraph_loop_end() first");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_replay(step), "'by hand' cannot be replayed", "call stepgraph_loop_end() first");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_run_begin(turn.step, STEPGRAPH_RUN_FRESH), "call stepgraph_loop_end() first");
    add(w, 1);
    OK(stepgraph_loop_end(loop, &turn));
    OK(stepgraph_loop_begin(second, k, &other));
    OK(stepgraph_loop_end(second, &other));
    ck_assert(pin_float(v) == (float)(k + 1));
}
END_TEST

/* 0: it was to record; 1: to check. */
START_TEST(refused_turn_holds_no_pins)
{
    stepgraph_turn other = STEPGRAPH_TURN_INIT;
    stepgraph_pin *free_pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4096, "free");

    v = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "v");
    second = loop_of(0);
    for (uint64_t k = 0; k < (_i == 0 ? 3 : 5); k++) {
        OK(stepgraph_loop_begin(second, k, &other));
        add(v, 1);
        OK(stepgraph_loop_end(second, &other));
    }
    loop_make(0, 0);
    OK(stepgraph_loop_begin(loop, 0, &turn));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_begin(second, _i == 0 ? 3 : 5, &other), "run of step 'loop' is open");
    add(w, 1);
    OK(stepgraph_loop_end(loop, &turn));
    OK(stepgraph_loop_cancel(second));
    drop_pin(free_pin);
}
END_TEST

/* The host fills the next step's batch on a stream of its own, while this one is checked. */
START_TEST(inputs_of_another_step_are_left_alone)
{
    CUdeviceptr memory = device_make(1 << 16);
    CUstream aside = stream_make(CU_STREAM_NON_BLOCKING);
    float *batch = NULL, now = 0;

    CU(MemAllocHost((void **)&batch, sizeof *batch));
    *batch = 42;
    (void)pin_adopt(session, STEPGRAPH_ROLE_FEED, memory, 4, "batch of the next step");
    loop_make(_i == 0 ? 0 : STEPGRAPH_LOOP_RESTORE, 0);
    for (uint64_t k = 0; k < 8; k++)
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.run) {
                add(w, 1);
                spin(stream, 10);
            }
            *batch += 1;
            spin(aside, 20);
            CU(MemcpyHtoDAsync(memory, batch, sizeof *batch, aside));
            OK(stepgraph_loop_end(loop, &turn));
            CU(StreamSynchronize(aside));
            CU(MemcpyDtoH(&now, memory, sizeof now));
            ck_assert(now == *batch);
        } while (turn.again);
    CU(MemFreeHost(batch));
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
}
END_TEST

/* ---- memory that goes -------------------------------------------------------------------------------------------- */

START_TEST(pins_stay_while_they_are_in_a_snapshot)
{
    stepgraph_pin *other = pin_make(session, STEPGRAPH_ROLE_STATE, 4096, "of another model");

    act(feed_both, run_plainly, w, NULL);
    zero();
    loop_make(_i == 0 ? 0 : STEPGRAPH_LOOP_RESTORE, 0);
    for (uint64_t k = 0; _i == 0 && k < 5; k++)
        go(k, k + 1);
    OK(stepgraph_loop_begin(loop, _i == 0 ? 5 : 0, &turn));
    ck_assert_uint_eq(turn.kind, _i == 0 ? STEPGRAPH_TURN_CHECK : STEPGRAPH_TURN_REHEARSAL);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_destroy(other), "of another model", "snapshot", "end or cancel the turn");
    OK(stepgraph_loop_cancel(loop));
    if (_i == 1) /* Nor is there one between rehearsals. */
        OK(round_of(0));
    ck_assert_int_eq(turn.again, _i);
    OK(stepgraph_pin_destroy(other));
    forget_pin(other);
}
END_TEST

/* Such as moments that the first step makes: the copy that will be put back knows nothing of them. */
START_TEST(states_are_not_made_in_a_run_that_is_undone)
{
    stepgraph_pin_config configs[] = {STEPGRAPH_PIN_CONFIG_INIT, STEPGRAPH_PIN_CONFIG_INIT};
    stepgraph_pin *made[2];

    configs[0].role = STEPGRAPH_ROLE_SCRATCH;
    configs[1].role = STEPGRAPH_ROLE_STATE;
    configs[0].bytes = configs[1].bytes = 4;
    configs[0].name = "workspace";
    configs[1].name = "moment";
    act(NULL, run_beside, w, out);
    loop_make(_i == 0 ? STEPGRAPH_LOOP_RESTORE : 0, 0);
    OK(stepgraph_loop_begin(loop, 0, &turn));
    if (_i == 0) {
        FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_create_many(session, 2, configs, made), "'moment'", "undone", "before");
        OK(stepgraph_pin_create_many(session, 1, configs, made));
        OK(stepgraph_pin_destroy(made[0]));
        OK(stepgraph_loop_cancel(loop));
    }
    OK(stepgraph_pin_create_many(session, 2, configs, made));
    OK(stepgraph_pin_destroy(made[0]));
    OK(stepgraph_pin_destroy(made[1]));
}
END_TEST

START_TEST(memory_that_is_gone_is_not_copied)
{
    CUdeviceptr memory = device_make(1 << 16);
    float right[MOST][2];

    (void)pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, 1 << 16, "of another model");
    act(feed_both, run_plainly, w, out);
    by_hand(30, right);
    loop_make(0, 5);
    go(0, 9);
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    device_drop(memory);
    go(9, 30);
    check_right(right);
    OK(stepgraph_session_wait(session));
    ck_assert_uint_eq(stats_now().rung, STEPGRAPH_RUNG_REPLAY);
    ck_assert_uint_gt(stats_now().checks_failed, 0);
    ck_assert_uint_gt(said("the memory of pin 'of another model'"), 0);
}
END_TEST

static void body_of_memory(void *address)
{
    inc(stream, *(CUdeviceptr *)address, 1);
}

static stepgraph_status enqueue_memory(void *address, stepgraph_step *step, uint64_t k)
{
    (void)step, (void)k;
    body_of_memory(address);
    return STEPGRAPH_OK;
}

/* 0: the memory of a pin; 1: memory that no pin covers. */
START_TEST(whatever_runs_a_graph_looks_at_its_memory_first)
{
    CUdeviceptr memory = device_make(1 << 16);
    stepgraph_step *step = step_make(session, "train", _i == 0 ? 0 : STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    stepgraph_check_config check = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_check *report = NULL;

    if (_i == 0)
        (void)pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, 1 << 16, "adopted");
    record(step, body_of_memory, &memory);
    replayed(step, 1);
    device_drop(memory);
    check.enqueue = enqueue_memory;
    check.user = &memory;
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_relax(step, NULL, NULL), "train", "freed");
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_check_run(step, &check, &report), "train", "freed");
    OK(stepgraph_session_wait(session));
}
END_TEST

/* ---- beside another session -------------------------------------------------------------------------------------- */

static stepgraph_session *beside;
static stepgraph_pin *weight_beside;
static bool escapes; /* A part of each step goes to another stream. */
static bool doubtful; /* Each step leaves something else in a large struct, and an address of the host's there, which no pin covers. */
static bool without_memory; /* No device memory to wait with, at the end of a check. */
static stepgraph_loop_stats stats_beside;
static stepgraph_status ended;
static char ended_words[1024];

static stepgraph_pin *out_beside;
static CUdeviceptr unpinned;

static void launch_large(uint64_t k)
{
    static struct {
        int words[1022];
    } large;
    CUdeviceptr to = stepgraph_pin_address(out_beside);

    large.words[500] = (int)k + 1;
    memcpy(&large.words[600], &unpinned, sizeof unpinned);
    (void)counted(beside, NULL, kernels.big4096, (void *[]){&to, &large});
}

static void *train_beside(void *context)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_turn own = STEPGRAPH_TURN_INIT;
    stepgraph_loop *made = NULL;
    CUstream aside = NULL;

    cu.CtxSetCurrent((CUcontext)context);
    cu.StreamCreate(&aside, CU_STREAM_NON_BLOCKING);
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK;
    ended = stepgraph_loop_create(beside, &config, &made);
    for (uint64_t k = 0; k < 12 && ended == STEPGRAPH_OK; k++)
        do {
            ended = stepgraph_loop_begin(made, k, &own);
            if (own.run) {
                counted_inc(beside, NULL, stepgraph_pin_address(weight_beside), 1);
                if (escapes)
                    (void)counted(beside, aside, kernels.nop, NULL);
                if (doubtful)
                    launch_large(k);
            }
            if (without_memory && own.kind == STEPGRAPH_TURN_CHECK)
                driver_fails("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
            if (ended == STEPGRAPH_OK)
                ended = stepgraph_loop_end(made, &own);
            no_driver_fails();
        } while (own.again && ended == STEPGRAPH_OK);
    snprintf(ended_words, sizeof ended_words, "%s", last_words());
    stats_beside = (stepgraph_loop_stats)STEPGRAPH_LOOP_STATS_INIT;
    (void)stepgraph_loop_get_stats(made, &stats_beside);
    stepgraph_loop_destroy(made);
    cu.StreamDestroy(aside);
    return NULL;
}

/* Whatever a loop waits for, the recording of another session, in another thread, goes on. 0, 1: in each mode; 2, 3: the loop waits for all streams, after
 * a step that escaped and around a check in doubt; 4: and has no device memory for that, so it does without the check. */
START_TEST(loops_break_no_recording_beside_them)
{
    stepgraph_step *step = step_make(session, "train", _i == 1 ? STEPGRAPH_STEP_GLOBAL : 0);
    pthread_t thread;

    beside = session_make(NULL);
    weight_beside = pin_make(beside, STEPGRAPH_ROLE_STATE, 4, "weight");
    escapes = _i == 2;
    doubtful = _i >= 3;
    without_memory = _i == 4;
    if (doubtful) {
        unpinned = device_make(256);
        out_beside = pin_make(beside, STEPGRAPH_ROLE_OUTPUT, 8, "out");
    }
    begin_recording(step);
    add(w, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, train_beside, stepgraph_session_context(beside)), 0);
    pthread_join(thread, NULL);
    add(w, 2);
    OK(stepgraph_step_end(step));
    replayed(step, 2);
    ck_assert(pin_float(w) == 6);
    ck_assert_msg(ended == STEPGRAPH_OK, "%s", ended_words);
    ck_assert(pin_float(weight_beside) == 12);
    if (_i == 2)
        ck_assert_uint_gt(stats_beside.recordings_failed, 0);
    if (doubtful)
        ck_assert_uint_gt(stats_beside.doubts, 0);
    if (_i == 3)
        ck_assert_uint_gt(stats_beside.checks, 0);
    if (_i == 4) {
        ck_assert_uint_eq(stats_beside.checks, 0);
        ck_assert_uint_gt(stats_beside.checks_failed, 0);
    }
}
END_TEST

/* A wait for all of one context breaks nothing in another. */
START_TEST(recording_in_another_context_is_no_hindrance)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_step *step = step_make(session, "train", 0);
    struct unit_kernels own = kernels, theirs;
    CUcontext another = NULL;
    pthread_t thread;

    CU(CtxCreate(&another, 0, 0)); /* And it is on top of the stack. */
    (void)kernels_load(&theirs);
    config.context = another;
    beside = session_make(&config);
    weight_beside = pin_make(beside, STEPGRAPH_ROLE_STATE, 4, "weight");
    CU(CtxPopCurrent(&another));
    escapes = true;
    doubtful = false;
    begin_recording(step);
    add(w, 1);
    kernels = theirs; /* Until the thread is over. */
    ck_assert_int_eq(pthread_create(&thread, NULL, train_beside, another), 0);
    pthread_join(thread, NULL);
    kernels = own;
    add(w, 2);
    OK(stepgraph_step_end(step));
    replayed(step, 2);
    ck_assert(pin_float(w) == 6);
    ck_assert_msg(ended == STEPGRAPH_OK, "%s", ended_words);
    ck_assert(pin_float(weight_beside) == 12);
    drop_pin(weight_beside);
    drop_session(beside);
    CU(CtxDestroy(another));
}
END_TEST

/* ---- turn.run ---------------------------------------------------------------------------------------------------- */

/* 0: launches are counted; 1: nobody counts them, and nobody can tell. */
START_TEST(host_that_launches_what_is_replayed_is_told)
{
    uint64_t k = 0;
    float before;

    zero();
    loop_make(0, 0);
    for (; turn.kind != STEPGRAPH_TURN_REPLAY; k++)
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.kind == STEPGRAPH_TURN_REPLAY)
                break;
            if (_i == 0)
                counted_inc(session, NULL, stepgraph_pin_address(w), 1);
            else
                add(w, 1);
            OK(stepgraph_loop_end(loop, &turn));
        } while (turn.again);
    k--;
    before = pin_float(w);
    ck_assert_int_eq(turn.run, 0);
    if (_i == 0) {
        counted_inc(session, NULL, stepgraph_pin_address(w), 1);
        FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_end(loop, &turn), "1 launches were counted in the turn of step", "only where turn.run is 1");
        ck_assert(pin_float(w) == before + 1); /* Done once, as it is. */
    } else {
        add(w, 1);
        OK(stepgraph_loop_end(loop, &turn));
    }
    before = pin_float(w);
    OK(stepgraph_loop_begin(loop, k + 1, &turn));
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert(pin_float(w) == before + 1);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop beside");
    TCase *tc = scene_case(suite, "beside"), *beside_turns = scene_case(suite, "turns beside turns");

    tcase_add_checked_fixture(beside_turns, NULL, teardown_second);
    tcase_add_test(tc, rehearsals_of_a_step_that_writes_inputs_are_refused);
    tcase_add_loop_test(tc, rehearsals_undo_no_more_than_they_did, 0, 3);
    tcase_add_loop_test(beside_turns, nothing_is_replayed_inside_a_turn_that_launches, 0, 2);
    tcase_add_loop_test(beside_turns, refused_turn_holds_no_pins, 0, 2);
    tcase_add_loop_test(beside_turns, inputs_of_another_step_are_left_alone, 0, 2);
    tcase_add_loop_test(tc, pins_stay_while_they_are_in_a_snapshot, 0, 2);
    tcase_add_loop_test(tc, states_are_not_made_in_a_run_that_is_undone, 0, 2);
    tcase_add_test(tc, memory_that_is_gone_is_not_copied);
    tcase_add_loop_test(tc, host_that_launches_what_is_replayed_is_told, 0, 2);
    tcase_add_loop_test(tc, whatever_runs_a_graph_looks_at_its_memory_first, 0, 2);
    tcase_add_loop_test(tc, loops_break_no_recording_beside_them, 0, 4);
    add_controlled_loop_test(tc, loops_break_no_recording_beside_them, 4, 5);
    tcase_add_test(tc, recording_in_another_context_is_no_hindrance);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
