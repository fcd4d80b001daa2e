/* Every call in every state: the status, the state after it, and words that say what comes first. */
#include "support.h"

enum call { PREPARE, CAPTURE, END, REPLAY, RESET, DESTROY, CALLS };
static const char *const call_name[] = {"prepare", "capture", "end", "replay", "reset", "destroy"};

enum { BEGUN = STEPGRAPH_STEP_BEGUN, PREPARED, CAPTURING, READY, FAILED, GONE };
static const char *const state_name[] = {"", "BEGUN", "PREPARED", "CAPTURING", "READY", "FAILED", "gone"};

/* A row of the table at #stepgraph_step: the state before, the call, the answer, the state after, words of the message. */
static const struct row {
    int before;
    enum call call;
    stepgraph_status answer;
    int after;
    const char *words[4];
} table[] = {
    {BEGUN, PREPARE, STEPGRAPH_OK, PREPARED, {NULL}},
    {BEGUN, CAPTURE, STEPGRAPH_ERR_STATE, BEGUN, {"prepare", NULL}},
    {BEGUN, END, STEPGRAPH_ERR_STATE, BEGUN, {"capture", NULL}},
    {BEGUN, REPLAY, STEPGRAPH_ERR_STATE, BEGUN, {"capture", NULL}},
    {BEGUN, RESET, STEPGRAPH_OK, BEGUN, {NULL}},
    {BEGUN, DESTROY, STEPGRAPH_OK, GONE, {NULL}},

    {PREPARED, PREPARE, STEPGRAPH_OK, PREPARED, {NULL}},
    {PREPARED, CAPTURE, STEPGRAPH_OK, CAPTURING, {NULL}},
    {PREPARED, END, STEPGRAPH_ERR_STATE, PREPARED, {"capture", NULL}},
    {PREPARED, REPLAY, STEPGRAPH_ERR_STATE, PREPARED, {"capture", NULL}},
    {PREPARED, RESET, STEPGRAPH_OK, BEGUN, {NULL}},
    {PREPARED, DESTROY, STEPGRAPH_OK, GONE, {NULL}},

    {CAPTURING, PREPARE, STEPGRAPH_ERR_STATE, CAPTURING, {"record", "end", NULL}},
    {CAPTURING, CAPTURE, STEPGRAPH_ERR_STATE, CAPTURING, {"already", NULL}},
    {CAPTURING, END, STEPGRAPH_OK, READY, {NULL}},
    {CAPTURING, REPLAY, STEPGRAPH_ERR_STATE, CAPTURING, {"end", NULL}},
    {CAPTURING, RESET, STEPGRAPH_OK, BEGUN, {NULL}},
    {CAPTURING, DESTROY, STEPGRAPH_OK, GONE, {NULL}},

    {READY, PREPARE, STEPGRAPH_ERR_STATE, READY, {"reset", NULL}},
    {READY, CAPTURE, STEPGRAPH_ERR_STATE, READY, {"graph", "reset", "prepare", NULL}},
    {READY, END, STEPGRAPH_ERR_STATE, READY, {"record", NULL}},
    {READY, REPLAY, STEPGRAPH_OK, READY, {NULL}},
    {READY, RESET, STEPGRAPH_OK, BEGUN, {NULL}},
    {READY, DESTROY, STEPGRAPH_OK, GONE, {NULL}},

    {FAILED, PREPARE, STEPGRAPH_ERR_CAPTURE, FAILED, {NULL}},
    {FAILED, CAPTURE, STEPGRAPH_ERR_CAPTURE, FAILED, {NULL}},
    {FAILED, END, STEPGRAPH_ERR_CAPTURE, FAILED, {NULL}},
    {FAILED, REPLAY, STEPGRAPH_ERR_CAPTURE, FAILED, {NULL}},
    {FAILED, RESET, STEPGRAPH_OK, BEGUN, {NULL}},
    {FAILED, DESTROY, STEPGRAPH_OK, GONE, {NULL}},
};
enum { ROWS = sizeof table / sizeof *table };

static stepgraph_pin *pin;

static void go_to(stepgraph_step *step, int state)
{
    STATE_IS(step, STEPGRAPH_STEP_BEGUN);
    if (state == BEGUN)
        return;
    OK(stepgraph_step_prepare(step));
    if (state == PREPARED)
        return;
    OK(stepgraph_step_capture(step));
    inc(stream, stepgraph_pin_address(pin), 1);
    if (state == CAPTURING)
        return;
    if (state == FAILED) {
        ck_assert_int_ne(cu.StreamSynchronize(stream), CUDA_SUCCESS); /* Forbidden here: breaks the recording. */
        FAILS(STEPGRAPH_ERR_CAPTURE, stepgraph_step_end(step), "");
    } else {
        OK(stepgraph_step_end(step));
    }
    STATE_IS(step, (stepgraph_state)state);
}

static stepgraph_status do_call(stepgraph_step *step, enum call call)
{
    switch (call) {
    case PREPARE:
        return stepgraph_step_prepare(step);
    case CAPTURE:
        return stepgraph_step_capture(step);
    case END:
        return stepgraph_step_end(step);
    case REPLAY:
        return stepgraph_step_replay(step);
    case RESET:
        return stepgraph_step_reset(step);
    default:
        drop_step(step);
        return STEPGRAPH_OK;
    }
}

/* After anything, the stream takes work and a new step can be recorded and replayed. */
static void all_is_usable(void)
{
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    stepgraph_step *another = step_make(session, "another", 0);
    float before;

    CU(StreamIsCapturing(stream, &capturing));
    ck_assert_int_eq(capturing, CU_STREAM_CAPTURE_STATUS_NONE);
    before = pin_float(pin);
    go_to(another, READY);
    OK(stepgraph_step_replay(another));
    inc(stream, stepgraph_pin_address(pin), 1);
    ck_assert_float_eq(pin_float(pin), before + 2);
}

START_TEST(k15_call_in_this_state_does_what_the_table_says)
{
    const struct row *row = &table[_i];
    stepgraph_step *step;
    stepgraph_status status;
    stepgraph_error_info cause = STEPGRAPH_ERROR_INFO_INIT, info;

    pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    step = step_make(session, "the step", 0);
    go_to(step, row->before);
    OK(stepgraph_step_error(step, &cause));
    status = do_call(step, row->call);
    info = last_error();
    ck_assert_msg(status == row->answer, "%s in %s: %s: %s", call_name[row->call], state_name[row->before],
                  stepgraph_status_name(status), info.message);
    if (status != STEPGRAPH_OK) {
        ck_assert_int_eq(info.status, status);
        ck_assert_msg(lacks(info.message, row->words) == NULL, "%s in %s: the message lacks '%s': %s", call_name[row->call],
                      state_name[row->before], lacks(info.message, row->words), info.message);
        ck_assert_msg(strstr(info.message, "the step") != NULL, "%s in %s: the step is not named: %s", call_name[row->call],
                      state_name[row->before], info.message);
    } else if (row->call != DESTROY) {
        ck_assert_str_eq(info.message, "");
    }
    if (row->before == FAILED && status != STEPGRAPH_OK) { /* The first cause again, word by word. */
        ck_assert_str_eq(info.message, cause.message);
        ck_assert_int_eq(info.status, cause.status);
        ck_assert_int_eq(info.driver_code, cause.driver_code);
        ck_assert_str_eq(info.call, cause.call);
    }
    if (row->after == GONE) {
        all_is_usable();
        return;
    }
    STATE_IS(step, (stepgraph_state)row->after);
    /* The kept record speaks in FAILED only. */
    OK(stepgraph_step_error(step, &cause));
    if (row->after == FAILED)
        ck_assert_str_ne(cause.message, "");
    else
        ck_assert_str_eq(cause.message, "");
    ck_assert_int_eq(cause.status == STEPGRAPH_OK, row->after != FAILED);

    /* From wherever it is, reset leads back to a recording that works. */
    if (row->after == CAPTURING) {
        inc(stream, stepgraph_pin_address(pin), 1);
        OK(stepgraph_step_end(step));
        OK(stepgraph_step_replay(step));
    }
    OK(stepgraph_step_reset(step));
    STATE_IS(step, STEPGRAPH_STEP_BEGUN);
    go_to(step, READY);
    OK(stepgraph_step_replay(step));
    all_is_usable();
}
END_TEST

START_TEST(table_has_every_call_in_every_state)
{
    int seen[FAILED + 1][CALLS] = {{0}};

    for (int i = 0; i < ROWS; i++)
        seen[table[i].before][table[i].call]++;
    for (int state = BEGUN; state <= FAILED; state++)
        for (int call = 0; call < CALLS; call++)
            ck_assert_int_eq(seen[state][call], 1);
}
END_TEST

/* ---- the other calls that depend on the state ------------------------------------------------------------------------------ */

START_TEST(only_a_ready_step_has_a_graph_to_show)
{
    static const int states[] = {BEGUN, PREPARED, CAPTURING, READY, FAILED};
    stepgraph_step *step;
    size_t nodes = 0;

    pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    step = step_make(session, "the step", 0);
    go_to(step, states[_i]);
    if (states[_i] == READY) {
        ck_assert_ptr_nonnull(stepgraph_step_graph(step));
        CU(GraphGetNodes(stepgraph_step_graph(step), NULL, &nodes));
        ck_assert_uint_eq(nodes, 1);
    } else {
        ck_assert_ptr_null(stepgraph_step_graph(step));
    }
}
END_TEST

START_TEST(side_streams_need_a_recording_or_a_run)
{
    static const int states[] = {BEGUN, PREPARED, READY};
    CUstream side = stream_make(CU_STREAM_NON_BLOCKING);
    stepgraph_step *step;

    pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    step = step_make(session, "the step", 0);
    go_to(step, states[_i]);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_fork(step, side, "side"), "the step");
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_FRESH));
    OK(stepgraph_step_fork(step, side, "side"));
    OK(stepgraph_step_join(step, side));
    OK(stepgraph_step_run_end(step));
    STATE_IS(step, (stepgraph_state)states[_i]);
}
END_TEST

START_TEST(marks_elsewhere_do_nothing)
{
    static const int states[] = {BEGUN, PREPARED, READY};
    stepgraph_step *step;
    stepgraph_stage stage = STEPGRAPH_STAGE_INIT;

    pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    step = step_make(session, "the step", 0);
    go_to(step, states[_i]);
    OK(stepgraph_step_mark(step, "nowhere"));
    STATE_IS(step, (stepgraph_state)states[_i]);
    for (uint32_t i = 0; stepgraph_step_get_stage(step, i, &stage) == STEPGRAPH_OK; i++)
        ck_assert_str_ne(stage.name, "nowhere");
}
END_TEST

START_TEST(runs_do_not_mix_with_recordings)
{
    stepgraph_step *step;

    pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    step = step_make(session, "the step", 0);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_run_end(step), "run");
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP), "run");
    OK(stepgraph_step_run_end(step));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_run_end(step), "run");
    go_to(step, CAPTURING);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP), "record");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_set_timing(step, 1), "record");
    OK(stepgraph_step_end(step));
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_run_begin(step, (stepgraph_run)0), "kind");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_run_begin(step, (stepgraph_run)4), "kind");
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_FALLBACK));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_set_timing(step, 1), "run");
    OK(stepgraph_step_run_end(step));
}
END_TEST

START_TEST(step_with_an_open_run_cannot_record)
{
    stepgraph_step *step;

    pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    step = step_make(session, "the step", 0);
    go_to(step, PREPARED);
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_FRESH));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_capture(step), "the step", "run");
    STATE_IS(step, STEPGRAPH_STEP_PREPARED);
    OK(stepgraph_step_run_end(step));
    OK(stepgraph_step_capture(step));
    inc(stream, stepgraph_pin_address(pin), 1);
    OK(stepgraph_step_end(step));
}
END_TEST

START_TEST(failed_step_can_fall_back_to_launches)
{
    /* STEPGRAPH_RUN_FALLBACK is for steps whose replay was refused or failed, so it works where the replay does not. */
    stepgraph_step *step;

    pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    step = step_make(session, "the step", 0);
    go_to(step, FAILED);
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_FALLBACK));
    inc(stream, stepgraph_pin_address(pin), 1);
    OK(stepgraph_step_run_end(step));
    STATE_IS(step, STEPGRAPH_STEP_FAILED);
    ck_assert_float_eq(pin_float(pin), 1);
    ck_assert_uint_eq(step_stats(step).fallback_runs, 1);
}
END_TEST

START_TEST(unknown_step_flags_are_refused)
{
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_step *step = (stepgraph_step *)&config;

    config.flags = 1u << 31;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_begin(session, &config, &step), "flag");
    ck_assert_ptr_eq(step, (stepgraph_step *)&config);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_begin(session, NULL, NULL), "");
}
END_TEST

START_TEST(step_config_sizes_are_understood)
{
    LONGER(stepgraph_step_config, 16) longer;
    stepgraph_step *step = NULL;

    memset(&longer, 0, sizeof longer);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_begin(session, &longer.known, &step), "size");
    longer.known.size = sizeof longer;
    longer.bytes[sizeof longer - 1] = 1;
    FAILS(STEPGRAPH_ERR_ABI, stepgraph_step_begin(session, &longer.known, &step), "");
    ck_assert_ptr_null(step);
    longer.bytes[sizeof longer - 1] = 0;
    OK(stepgraph_step_begin(session, &longer.known, &step));
    keep_step(step);
}
END_TEST

START_TEST(step_without_a_name_is_called_step)
{
    stepgraph_step *step = NULL;

    OK(stepgraph_step_begin(session, NULL, &step));
    keep_step(step);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_capture(step), "'step'");
}
END_TEST

START_TEST(step_name_is_copied)
{
    char name[] = "short-lived";
    stepgraph_step *step = step_make(session, name, 0);

    memset(name, 'x', sizeof name - 1);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_capture(step), "short-lived");
}
END_TEST

START_TEST(making_a_step_makes_no_driver_call)
{
    static const char *const some[] = {"cuCtxGetId",     "cuCtxPushCurrent", "cuMemAlloc",
                                       "cuMemHostAlloc", "cuEventCreate",    "cuStreamCreate"};
    unsigned long before[6];

    for (int i = 0; i < 6; i++)
        before[i] = driver_calls(some[i]);
    drop_step(step_make(session, "quiet", 0));
    step_make(session, "quiet", 0);
    for (int i = 0; i < 6; i++)
        ck_assert_msg(driver_calls(some[i]) == before[i], "%s was called", some[i]);
}
END_TEST

START_TEST(step_stats_are_filled_up_to_their_size)
{
    LONGER(stepgraph_step_stats, 8) u;
    size_t size = offsetof(stepgraph_step_stats, replays);
    stepgraph_step *step = step_make(session, "s", 0);

    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
    OK(stepgraph_step_run_end(step));
    memset(&u, 0x5a, sizeof u);
    u.known.size = size;
    OK(stepgraph_step_get_stats(step, &u.known));
    ck_assert_uint_eq(u.known.warmup_runs, 1);
    for (size_t i = size; i < sizeof u; i++)
        ck_assert_msg(u.bytes[i] == 0x5a, "byte %zu was written", i);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_get_stats(step, NULL), "");
    u.known.size = 0;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_get_stats(step, &u.known), "size");
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("state table");
    TCase *states = unit_case(suite, "states"), *others = unit_case(suite, "other calls"), *config = unit_case(suite, "config");

    tcase_add_test(states, table_has_every_call_in_every_state);
    tcase_add_loop_test(states, k15_call_in_this_state_does_what_the_table_says, 0, ROWS);

    tcase_add_loop_test(others, only_a_ready_step_has_a_graph_to_show, 0, 5);
    tcase_add_loop_test(others, side_streams_need_a_recording_or_a_run, 0, 3);
    tcase_add_loop_test(others, marks_elsewhere_do_nothing, 0, 3);
    tcase_add_test(others, runs_do_not_mix_with_recordings);
    tcase_add_test(others, step_with_an_open_run_cannot_record);
    tcase_add_test(others, failed_step_can_fall_back_to_launches);

    tcase_add_test(config, unknown_step_flags_are_refused);
    tcase_add_test(config, step_config_sizes_are_understood);
    tcase_add_test(config, step_without_a_name_is_called_step);
    tcase_add_test(config, step_name_is_copied);
    add_controlled_test(config, making_a_step_makes_no_driver_call);
    tcase_add_test(config, step_stats_are_filled_up_to_their_size);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
