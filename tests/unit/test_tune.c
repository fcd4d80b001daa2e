/* Tuning: which executable is kept, that each replay is done once whichever does it, and what ends it. */
#include <stdbool.h>

#include "findings.h"
#include "support.h"

enum { BLOCK = 5, MS = 1000000, NODE_BYTES = 2600 }; /* Of device memory, as the library estimates them. */

static stepgraph_pin *weight, *beside;
static stepgraph_step *step;
static stepgraph_loop *loop;
static unsigned repeats; /* Of what a step of it does. */

static void setup(void)
{
    reopen_listening(STEPGRAPH_LOG_INFO);
    repeats = 1;
    loop = NULL;
    weight = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "weight");
    beside = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "beside");
}

static void teardown(void)
{
    stepgraph_loop_destroy(loop);
    loop = NULL;
}

/* What one step does, launched: the same kernels that are recorded. */
static void body(void *unused)
{
    (void)unused;
    inc(stream, stepgraph_pin_address(weight), 1);
    inc(stream, stepgraph_pin_address(beside), 3);
    axpb(stream, stepgraph_pin_address(beside), stepgraph_pin_address(weight), 0.5f);
}

/* Of `times` steps without a graph, in memory of their own. */
static void launched(unsigned times, float *weight_out, float *beside_out)
{
    CUdeviceptr w = device_make(4), b = device_make(4);

    while (times--) {
        inc(stream, w, 1);
        inc(stream, b, 3);
        axpb(stream, b, w, 0.5f);
    }
    *weight_out = float_at(w);
    *beside_out = float_at(b);
}

/* The bytes after so many replays are those of as many steps that were launched. */
static void same_as_launched(unsigned times)
{
    float w, b;

    launched(times, &w, &b);
    ck_assert_float_eq(pin_float(weight), w);
    ck_assert_float_eq(pin_float(beside), b);
}

static void recorded(uint32_t flags)
{
    step = step_make(session, "train", flags);
    record(step, body, NULL);
}

static stepgraph_tuning tuning_of(const stepgraph_step *which)
{
    stepgraph_tuning t = STEPGRAPH_TUNING_INIT;

    OK(stepgraph_step_get_tuning(which, &t));
    return t;
}

/* Replays, each waited for, until it is known; answers how many. */
static unsigned replay_until_done(void)
{
    unsigned times = 0;

    while (!tuning_of(step).done) {
        replayed(step, 1);
        ck_assert_uint_le(++times, 200);
    }
    return times;
}

static unsigned long living_executables(void)
{
    return driver_calls("cuGraphInstantiateWithParams") - driver_calls("cuGraphExecDestroy");
}

static unsigned long living_events(void)
{
    return driver_calls("cuEventCreate") - driver_calls("cuEventDestroy");
}

static void chosen_is_the_fastest(stepgraph_tuning t)
{
    ck_assert_int_eq(t.done, 1);
    for (uint32_t i = 0; i < t.executables; i++) {
        ck_assert_double_ge(t.us[i], 0);
        ck_assert_double_le(t.us[t.chosen], t.us[i]);
    }
}

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

START_TEST(every_replay_is_one_step_whichever_executable_does_it)
{
    unsigned times;

    recorded(0);
    replayed(step, 3);
    OK(stepgraph_step_tune(step, 5));
    ck_assert_uint_eq(tuning_of(step).executables, 5);
    ck_assert_int_eq(tuning_of(step).done, 0);
    ck_assert_double_lt(tuning_of(step).us[0], 0);
    times = replay_until_done();
    ck_assert_uint_ge(times, 5 * BLOCK);
    ck_assert_uint_eq(tuning_of(step).replays, 5 * BLOCK);
    chosen_is_the_fastest(tuning_of(step));
    replayed(step, 4);
    same_as_launched(3 + times + 4);
    ck_assert_uint_eq(step_stats(step).replays, 3 + times + 4);
    ck_assert(said("of 5 executables one is kept"));
}
END_TEST

START_TEST(fastest_executable_is_kept_and_the_others_are_destroyed)
{
    /* Of the recording's own executable, and of those that are made to be tried. */
    static const unsigned long long delays[][4] = {
        {9 * MS, 6 * MS, 0, 7 * MS}, {0, 6 * MS, 7 * MS, 8 * MS}, {9 * MS, 8 * MS, 6 * MS, 0}, {9 * MS, 0, 8 * MS, 6 * MS}};
    static const uint32_t fastest[] = {2, 0, 3, 1};
    unsigned long before = living_executables(), events, alive;
    stepgraph_tuning t;
    unsigned times;

    driver_exec_delays(delays[_i], 4);
    recorded(0);
    alive = living_events();
    OK(stepgraph_step_tune(step, 4));
    ck_assert_uint_eq(living_executables() - before, 4);
    times = replay_until_done();
    ck_assert_uint_eq(living_events(), alive);
    t = tuning_of(step);
    ck_assert_uint_eq(t.executables, 4);
    ck_assert_uint_eq(t.chosen, fastest[_i]);
    chosen_is_the_fastest(t);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_double_ge(t.us[i], (double)delays[_i][i] / 1000.0);
    ck_assert_uint_eq(living_executables() - before, 1);
    events = driver_calls("cuEventRecord");
    replayed(step, 5);
    ck_assert_uint_eq(driver_calls("cuEventRecord"), events);
    same_as_launched(times + 5);
}
END_TEST

/* A host that runs ahead waits for nothing, and all is known when the device has caught up. */
START_TEST(nothing_waits_for_a_time)
{
    static const unsigned long long delays[] = {20 * MS, 4 * MS, 12 * MS};
    unsigned long events, waits;

    driver_exec_delays(delays, 3);
    recorded(0);
    OK(stepgraph_step_tune(step, 3));
    events = driver_calls("cuEventRecord");
    waits = driver_calls("cuEventSynchronize") + driver_calls("cuStreamSynchronize");
    for (unsigned i = 0; i < 3 * BLOCK + 5; i++)
        OK(stepgraph_step_replay(step));
    ck_assert_int_eq(tuning_of(step).done, 0);
    ck_assert_uint_lt(tuning_of(step).replays, 3 * BLOCK);
    ck_assert_uint_eq(driver_calls("cuEventSynchronize") + driver_calls("cuStreamSynchronize"), waits);
    ck_assert_uint_eq(driver_calls("cuEventRecord") - events, 2 * 3 * BLOCK);
    CU(StreamSynchronize(stream));
    replayed(step, 1);
    chosen_is_the_fastest(tuning_of(step));
    ck_assert_uint_eq(tuning_of(step).chosen, 1);
    same_as_launched(3 * BLOCK + 6);
}
END_TEST

START_TEST(timing_goes_on_beside_it)
{
    stepgraph_verdict v = STEPGRAPH_VERDICT_INIT;
    unsigned times;

    recorded(STEPGRAPH_STEP_TIMING);
    OK(stepgraph_step_tune(step, 2));
    times = replay_until_done();
    OK(stepgraph_step_get_verdict(step, &v));
    ck_assert_uint_eq(v.timed_replays, times);
    same_as_launched(times);
}
END_TEST

static void body_with_set(void *unused)
{
    CU(MemsetD8Async(stepgraph_pin_address(beside), 0, 4, stream));
    body(unused);
}

/* Launched as a kernel, in each of them. */
START_TEST(set_stays_a_kernel)
{
    unsigned long clones;
    unsigned times;

    step = step_make(session, "train", 0);
    record(step, body_with_set, NULL);
    ck_assert_uint_eq(step_stats(step).sets_as_kernels, 1);
    clones = driver_calls("cuGraphClone");
    OK(stepgraph_step_tune(step, 3));
    if (unit_has_controls()) /* Of nodes that were replaced, once for all of them. */
        ck_assert_uint_eq(driver_calls("cuGraphClone") - clones, 1);
    times = replay_until_done();
    same_as_launched(times); /* The set is overwritten by the rest. */
    ck_assert_uint_eq(step_stats(step).sets_as_kernels, 1);
}
END_TEST

static void apart(void *unused)
{
    (void)unused;
    inc(stream, stepgraph_pin_address(weight), 1);
    inc(stream, stepgraph_pin_address(beside), 3);
}

static void relaxed_step(void)
{
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;

    config.lanes = 2;
    step = step_make(session, "train", 0);
    record(step, apart, NULL);
    OK(stepgraph_step_relax(step, &config, NULL));
    ck_assert_uint_eq(step_stats(step).lanes, 2);
}

START_TEST(relaxed_step_stays_relaxed)
{
    static const unsigned long long delays[] = {9 * MS, 9 * MS, 5 * MS, 0};
    unsigned long clones;
    unsigned times;

    if (unit_has_controls())
        driver_exec_delays(delays, 4); /* As recorded, relaxed, and two more of that. */
    relaxed_step();
    clones = driver_calls("cuGraphClone");
    OK(stepgraph_step_tune(step, 3));
    if (unit_has_controls()) /* With other edges than the recording, made once for all of them. */
        ck_assert_uint_eq(driver_calls("cuGraphClone") - clones, 1);
    times = replay_until_done();
    chosen_is_the_fastest(tuning_of(step));
    if (unit_has_controls())
        ck_assert_uint_eq(tuning_of(step).chosen, 2);
    ck_assert_uint_eq(step_stats(step).lanes, 2);
    replayed(step, 2);
    OK(stepgraph_step_unrelax(step));
    ck_assert_uint_eq(tuning_of(step).executables, 0);
    replayed(step, 1);
    ck_assert_float_eq(pin_float(weight), (float)(times + 3));
    ck_assert_float_eq(pin_float(beside), 3 * (float)(times + 3));
}
END_TEST

START_TEST(tuned_again_from_what_was_kept)
{
    static const unsigned long long delays[] = {9 * MS, 6 * MS, 9 * MS, 0};
    unsigned times;

    driver_exec_delays(delays, 4);
    recorded(0);
    OK(stepgraph_step_tune(step, 2));
    times = replay_until_done();
    ck_assert_uint_eq(tuning_of(step).chosen, 1);
    OK(stepgraph_step_tune(step, 3));
    times += replay_until_done();
    ck_assert_uint_eq(tuning_of(step).chosen, 2);
    ck_assert_double_lt(tuning_of(step).us[0], 9000); /* The one of 6 ms came first now. */
    same_as_launched(times);
}
END_TEST

/* Another call takes the place of one whose replays have not told yet. */
START_TEST(tuned_again_while_it_is_tried)
{
    unsigned long before = living_executables(), events;
    unsigned times;

    recorded(0);
    events = living_events();
    OK(stepgraph_step_tune(step, 4));
    replayed(step, BLOCK + 2);
    OK(stepgraph_step_tune(step, 3));
    ck_assert_uint_eq(living_executables() - before, 3);
    ck_assert_uint_eq(living_events() - events, 2 * 3 * BLOCK);
    ck_assert_uint_eq(tuning_of(step).executables, 3);
    ck_assert_uint_eq(tuning_of(step).replays, 0);
    times = replay_until_done();
    ck_assert_uint_eq(living_executables() - before, 1);
    ck_assert_uint_eq(living_events(), events);
    same_as_launched(BLOCK + 2 + times);
}
END_TEST

/* ---- what ends it ------------------------------------------------------------------------------------------------ */

enum ending { RESET, DESTROYED, RELAXED, UNRELAXED, ENDINGS };

START_TEST(whatever_ends_it_leaves_no_executable)
{
    unsigned long before = living_executables();
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;

    if (_i == UNRELAXED)
        relaxed_step();
    else
        recorded(0);
    OK(stepgraph_step_tune(step, 4));
    for (unsigned i = 0; i < 7; i++)
        OK(stepgraph_step_replay(step));
    config.lanes = 2;
    switch ((enum ending)_i) {
    case RESET:
        OK(stepgraph_step_reset(step));
        break;
    case DESTROYED:
        drop_step(step);
        break;
    case RELAXED:
        OK(stepgraph_step_relax(step, &config, NULL));
        break;
    case UNRELAXED:
        OK(stepgraph_step_unrelax(step));
        break;
    default:
        break;
    }
    ck_assert_uint_eq(living_executables() - before, _i == RESET || _i == DESTROYED ? 0 : _i == RELAXED ? 2 : 1);
    if (_i == DESTROYED)
        return;
    ck_assert_uint_eq(tuning_of(step).executables, 0);
    if (_i != RESET)
        replayed(step, 2);
    if (_i != UNRELAXED) {
        same_as_launched(_i == RESET ? 7 : 9);
        return;
    }
    ck_assert_float_eq(pin_float(weight), 9);
    ck_assert_float_eq(pin_float(beside), 27);
}
END_TEST

START_TEST(what_cannot_be_measured_is_replayed_without)
{
    static const char *const entries[] = {"cuEventRecord", "cuEventRecord", "cuEventElapsedTime"};
    unsigned long before = living_executables(), events;

    recorded(0);
    events = living_events();
    OK(stepgraph_step_tune(step, 3));
    replayed(step, 2);
    driver_fails(entries[_i], _i == 1 ? 2 : 1, CUDA_ERROR_UNKNOWN);
    for (unsigned i = 0; i < 3 * BLOCK; i++) {
        OK(stepgraph_step_replay(step));
        ck_assert_int_eq(last_error().status, STEPGRAPH_OK);
        OK(stepgraph_session_wait(session));
        if (_i < 2) /* At once, not when the times are asked for. */
            ck_assert_uint_eq(tuning_of(step).executables, 0);
    }
    no_driver_fails();
    ck_assert_uint_eq(tuning_of(step).executables, 0);
    ck_assert_uint_eq(living_executables() - before, 1);
    ck_assert_uint_eq(living_events(), events);
    ck_assert(said("step 'train' is not tuned"));
    replayed(step, 3);
    same_as_launched(2 + 3 * BLOCK + 3);
}
END_TEST

START_TEST(what_cannot_be_made_changes_nothing)
{
    static const struct {
        const char *entry;
        unsigned nth;
        int code;
        stepgraph_status status;
    } cases[] = {
        {"cuGraphInstantiateWithParams", 1, CUDA_ERROR_OUT_OF_MEMORY, STEPGRAPH_ERR_MEMORY},
        {"cuGraphInstantiateWithParams", 3, CUDA_ERROR_OUT_OF_MEMORY, STEPGRAPH_ERR_MEMORY},
        {"cuGraphInstantiateWithParams", 2, CUDA_ERROR_NOT_SUPPORTED, STEPGRAPH_ERR_UNSUPPORTED},
        {"cuGraphUpload", 2, CUDA_ERROR_UNKNOWN, STEPGRAPH_ERR_DRIVER},
        {"cuEventCreate", 1, CUDA_ERROR_UNKNOWN, STEPGRAPH_ERR_DRIVER},
        {"cuEventCreate", 8, CUDA_ERROR_UNKNOWN, STEPGRAPH_ERR_DRIVER},
    };
    unsigned long before = living_executables();
    bool made = cases[_i].code != CUDA_ERROR_UNKNOWN || cases[_i].entry[2] == 'E';

    recorded(0);
    replayed(step, 2);
    driver_fails(cases[_i].entry, cases[_i].nth, cases[_i].code);
    FAILS(cases[_i].status, stepgraph_step_tune(step, 4), "step 'train' is not tuned", cases[_i].entry);
    no_driver_fails();
    ck_assert_uint_eq(tuning_of(step).executables, 0);
    /* A call that fails on request counts as a call. */
    ck_assert_uint_eq(living_executables() - before, made && cases[_i].entry[2] == 'G' ? 2 : 1);
    replayed(step, 2);
    same_as_launched(4);
}
END_TEST

static void body_with_allocation(void *unused)
{
    CUdeviceptr memory;

    MORE(MemAllocAsync(&memory, 65536, stream));
    inc(stream, memory, 1);
    MORE(MemFreeAsync(memory, stream));
    body(unused);
}

START_TEST(recording_that_allocates_has_one_executable)
{
    step = step_make(session, "train", STEPGRAPH_STEP_ALLOW_ALLOCATIONS);
    record(step, body_with_allocation, NULL);
    FAILS(STEPGRAPH_ERR_UNSUPPORTED, stepgraph_step_tune(step, 2), "step 'train' is not tuned", "NOT_SUPPORTED");
    replayed(step, 3);
    same_as_launched(3);
}
END_TEST

/* Nor can it be drawn: neither kernels nor nodes can be asked about any more. */
START_TEST(step_of_a_context_that_is_gone_is_lost)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    struct unit_kernels of_other;
    stepgraph_session *mine;
    stepgraph_step *tuned;
    CUcontext other, before;
    stepgraph_pin *x;
    CUdeviceptr p;
    CUdevice device;
    float v = 1;

    unit_leaves_objects(1);
    CU(CtxGetCurrent(&before));
    CU(DeviceGet(&device, 0));
    CU(CtxCreate(&other, 0, device));
    kernels_load(&of_other);
    config.context = other;
    mine = session_make(&config);
    x = pin_make(mine, STEPGRAPH_ROLE_STATE, 4, "x");
    p = stepgraph_pin_address(x);
    tuned = step_make(mine, "step", 0);
    begin_recording(tuned);
    launch((CUstream)stepgraph_session_stream(mine), of_other.inc, 1, (void *[]){&p, &v});
    OK(stepgraph_step_end(tuned));
    CU(CtxDestroy(other));
    CU(CtxSetCurrent(before));
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_step_tune(tuned, 2), "context");
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_step_draw(tuned, STEPGRAPH_DRAW_JSON, "/dev/null"), "context");
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_step_relax(tuned, NULL, NULL), "context");
    drop_step(tuned);
    drop_pin(x);
    drop_session(mine);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
    LONGER(stepgraph_tuning, 8) longer;
    stepgraph_tuning t = STEPGRAPH_TUNING_INIT;

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_tune(NULL, 0), "NULL");
    step = step_make(session, "train", 0);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_tune(step, 0), "train", "not READY; record it first");
    record(step, body, NULL);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_tune(step, 1), "train", "1 executables", "2 to 16");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_tune(step, 17), "17 executables", "2 to 16");
    OK(stepgraph_step_tune(step, 16));
    ck_assert_uint_eq(tuning_of(step).executables, 16);
    {
        stepgraph_step *other = step_make(session, "other", 0);
        begin_recording(other);
        FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_tune(step, 2), "tuned", "other");
        OK(stepgraph_step_reset(other));
    }
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_get_tuning(NULL, &t), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_get_tuning(step, NULL), "NULL");
    t.size = 8;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_get_tuning(step, &t), "size 8");
    memset(&longer, 0xa5, sizeof longer);
    longer.known.size = sizeof longer;
    OK(stepgraph_step_get_tuning(step, &longer.known));
    ck_assert_uint_eq(longer.known.executables, 16);
    ck_assert_uint_eq(longer.bytes[sizeof t], 0xa5);
}
END_TEST

/* ---- in a loop --------------------------------------------------------------------------------------------------- */

static void step_of_loop(void)
{
    for (unsigned i = 0; i < repeats; i++)
        body(NULL);
}

/* A loop of so many steps, with its report. */
static const char *looped(const stepgraph_loop_config *config, unsigned steps)
{
    stepgraph_turn turn = STEPGRAPH_TURN_INIT;
    const char *report;

    OK(stepgraph_loop_create(session, config, &loop));
    for (unsigned k = 0; k < steps; k++)
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.run)
                step_of_loop();
            OK(stepgraph_loop_end(loop, &turn));
            ck_assert_int_eq(last_error().status, STEPGRAPH_OK);
            CU(StreamSynchronize(stream));
        } while (turn.again);
    ck_assert_uint_eq(turn.rung, STEPGRAPH_RUNG_REPLAY);
    same_as_launched(steps * repeats);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TEXT, &report));
    return report;
}

static stepgraph_loop_config config_with(uint32_t executables)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    config.flags = STEPGRAPH_LOOP_SOFTWARE_CLOCK | STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.executables = executables;
    return config;
}

/* The same steps with another loop. */
static const char *looped_again(const stepgraph_loop_config *config, unsigned steps)
{
    teardown();
    forget_said();
    put_float(stepgraph_pin_address(weight), 0);
    put_float(stepgraph_pin_address(beside), 0);
    return looped(config, steps);
}

START_TEST(loop_tries_as_many_as_it_was_told)
{
    unsigned long made = driver_calls("cuGraphInstantiateWithParams");
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;
    stepgraph_loop_config config = config_with(3);
    const char *report = looped(&config, 80);

    OK(stepgraph_loop_get_stats(loop, &stats));
    if (unit_has_controls())
        ck_assert_uint_eq(stats.instantiations, driver_calls("cuGraphInstantiateWithParams") - made);
    ck_assert_msg(strstr(report, "the fastest of 3 executables takes") != NULL, "%s", report);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_JSON, &report));
    ck_assert_msg(strstr(report, "\"tuning\": {\"executables\": 3, \"done\": true, \"chosen\": ") != NULL, "%s", report);
}
END_TEST

START_TEST(loop_says_that_it_is_trying)
{
    stepgraph_loop_config config = config_with(1);
    stepgraph_loop_stats one = STEPGRAPH_LOOP_STATS_INIT, several = STEPGRAPH_LOOP_STATS_INIT;
    const char *report;

    (void)looped(&config, 50);
    OK(stepgraph_loop_get_stats(loop, &one));
    config.executables = 8;
    report = looped_again(&config, 50);
    OK(stepgraph_loop_get_stats(loop, &several));
    ck_assert_msg(strstr(report, "8 executables are tried") != NULL, "%s", report);
    ck_assert_uint_eq(several.device_bytes, one.device_bytes + (config.executables - 1) * one.nodes * NODE_BYTES);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_JSON, &report));
    ck_assert_msg(strstr(report, "\"done\": false") != NULL, "%s", report);
}
END_TEST

/* 4 ms a node are too long to try, and so are 20 us; for 102 nodes a simulated device takes less than the 1 ms that would be. */
START_TEST(loop_tries_as_many_as_it_can_where_nodes_are_short)
{
    static const unsigned long long slow[][3] = {{12 * MS, 12 * MS, 12 * MS}, {0}, {102 * MS / 50, 102 * MS / 50, 102 * MS / 50}};
    stepgraph_loop_config config = config_with(0);
    const char *report;

    driver_exec_delays(slow[_i], _i != 1 ? 3 : 0);
    repeats = _i == 0 ? 1 : 34;
    report = looped(&config, _i == 0 ? 40 : 120);
    ck_assert_msg((strstr(report, "the fastest of 16 executables takes") != NULL) == (_i == 1), "%s", report);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_JSON, &report));
    ck_assert_msg((strstr(report, "\"tuning\": null") != NULL) == (_i != 1), "%s", report);
}
END_TEST

START_TEST(loop_tries_none)
{
    static const uint32_t executables[] = {1, 4, 0};
    stepgraph_loop_config config = config_with(executables[_i]);
    const char *report;

    if (_i == 1) /* Times mean nothing. */
        config.flags &= ~(uint32_t)STEPGRAPH_LOOP_SOFTWARE_CLOCK;
    if (_i == 2) /* There is a budget, and nobody asked. */
        config.graph_bytes = 1 << 30;
    repeats = 34;
    report = looped(&config, 60);
    ck_assert_msg(strstr(report, "fastest") == NULL, "%s", report);
}
END_TEST

START_TEST(loop_without_room_goes_on_with_its_first)
{
    stepgraph_loop_config config = config_with(4);
    const char *report;

    config.graph_bytes = 3 * 2 * NODE_BYTES; /* Two graphs of three nodes, as while it records. */
    report = looped(&config, 60);
    ck_assert_msg(strstr(report, "fastest") == NULL, "%s", report);
    ck_assert(said("its first executable is replayed, others were not tried"));
    ck_assert(said("are left of the budget"));
}
END_TEST

/* To the byte. */
START_TEST(loop_tries_as_many_as_its_budget_allows)
{
    stepgraph_loop_config config = config_with(1);
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;
    const unsigned nodes = 3;
    const char *report;

    (void)looped(&config, 20);
    OK(stepgraph_loop_get_stats(loop, &stats)); /* What the graph takes with one executable. */
    config.executables = 4;
    config.graph_bytes = stats.device_bytes + (config.executables - 1) * nodes * NODE_BYTES - (_i == 0 ? 0 : 1);
    report = looped_again(&config, 80);
    ck_assert_msg((strstr(report, "the fastest of 4 executables takes") != NULL) == (_i == 0), "%s", report);
    ck_assert_int_eq(said("are left of the budget") > 0, _i != 0);
}
END_TEST

START_TEST(loop_that_cannot_ask_for_room_goes_on_with_its_first)
{
    stepgraph_loop_config config = config_with(0);
    unsigned long before = driver_calls("cuMemGetInfo");
    const char *report;

    repeats = 34;
    report = looped(&config, 60);
    ck_assert_msg(strstr(report, "executables are tried") != NULL, "%s", report);
    driver_fails("cuMemGetInfo", (unsigned)(driver_calls("cuMemGetInfo") - before), CUDA_ERROR_UNKNOWN); /* The last one was for that. */
    report = looped_again(&config, 60);
    ck_assert_msg(strstr(report, "executables are tried") == NULL, "%s", report);
    ck_assert(said("others were not tried: cuMemGetInfo failed"));
}
END_TEST

/* Unasked it takes no more than 1/512 of what is free, and the recording itself next to nothing of that; asked for, what it can have. */
START_TEST(loop_leaves_memory_to_its_host)
{
    static const struct {
        unsigned long long memory;
        uint32_t asked;
    } cases[] = {{32 << 20, 0}, {64 << 20, 0}, {128 << 20, 0}, {640 << 20, 0}, {32 << 20, 4}};
    stepgraph_loop_config config = config_with(cases[_i].asked);
    const unsigned nodes = 3 * 10;
    char words[32];
    const char *report;
    unsigned long long tried;

    driver_memory(cases[_i].memory);
    repeats = nodes / 3;
    report = looped(&config, 160);
    tried = cases[_i].asked != 0 ? cases[_i].asked : 1 + cases[_i].memory / 512 / (nodes * NODE_BYTES);
    tried = tried < STEPGRAPH_TUNE_MOST ? tried : STEPGRAPH_TUNE_MOST;
    snprintf(words, sizeof words, "the fastest of %llu ", tried);
    ck_assert_msg(strstr(report, tried > 1 ? words : "graph of 30 nodes") != NULL, "%s", report);
    ck_assert_msg((strstr(report, "fastest") != NULL) == (tried > 1), "%s", report);
    ck_assert_int_eq(said("one more would take more than 1/512 of the"), tried == 1);
}
END_TEST

START_TEST(loop_refuses_too_many)
{
    stepgraph_loop_config config = config_with(17);

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, &config, &loop), "17 executables", "at most 16");
}
END_TEST

static struct unit_kernels jit;

static void body_of_jit(void *unused)
{
    CUdeviceptr p = stepgraph_pin_address(weight);
    float v = 1;

    (void)unused;
    launch(stream, jit.inc, 1, (void *[]){&p, &v});
}

/* By a kernel that stays. */
static void body_of_inc(void *unused)
{
    (void)unused;
    inc(stream, stepgraph_pin_address(weight), 2);
}

/* A compiler at run time drops what it no longer needs. Replays need it no longer; to make another executable would crash the process. */
START_TEST(kernels_that_were_unloaded_are_named_and_replayed)
{
    CUmodule module = kernels_load(&jit);
    stepgraph_step *other = step_make(session, "other", 0), *loaded = step_make(session, "loaded", 0);
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_audit *report = NULL;

    step = step_make(session, "train", 0);
    record(step, body_of_jit, NULL);
    record(other, body_of_jit, NULL);
    record(loaded, body_of_inc, NULL);
    replayed(step, 2);
    CU(ModuleUnload(module));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_tune(step, 4), "'train' cannot be tuned", "kernel 'inc' was unloaded");
    config.lanes = 2;
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_relax(step, &config, NULL), "'train' cannot be relaxed", "kernel 'inc' was unloaded");
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_draw(step, STEPGRAPH_DRAW_JSON, "/dev/null"), "'train' cannot be drawn", "kernel 'inc' was unloaded");
    OK(stepgraph_audit_compare(step, other, NULL, &report)); /* Nothing of it has to be read again. */
    stepgraph_audit_destroy(report);
    report = NULL;
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_audit_compare(step, loaded, NULL, &report), "kernel 'inc' was unloaded");
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_audit_compare(loaded, step, NULL, &report), "kernel 'inc' was unloaded");
    ck_assert_ptr_null(report);
    replayed(step, 3);
    ck_assert(pin_float(weight) == 5);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("tune");
    TCase *kept = unit_case(suite, "what is kept"), *over = audit_case(suite, "what ends it"), *loops = unit_case(suite, "in a loop");

    tcase_add_checked_fixture(kept, setup, teardown);
    tcase_add_test(kept, every_replay_is_one_step_whichever_executable_does_it);
    add_controlled_loop_test(kept, fastest_executable_is_kept_and_the_others_are_destroyed, 0, 4);
    add_controlled_test(kept, nothing_waits_for_a_time);
    tcase_add_test(kept, timing_goes_on_beside_it);
    tcase_add_test(kept, set_stays_a_kernel);
    tcase_add_test(kept, relaxed_step_stays_relaxed);
    add_controlled_test(kept, tuned_again_from_what_was_kept);
    add_controlled_test(kept, tuned_again_while_it_is_tried);

    tcase_add_checked_fixture(over, setup, teardown);
    add_controlled_loop_test(over, whatever_ends_it_leaves_no_executable, 0, ENDINGS);
    add_controlled_loop_test(over, what_cannot_be_measured_is_replayed_without, 0, 3);
    add_controlled_loop_test(over, what_cannot_be_made_changes_nothing, 0, 6);
    tcase_add_test(over, recording_that_allocates_has_one_executable);
    tcase_add_test(over, step_of_a_context_that_is_gone_is_lost);
    tcase_add_test(over, bad_arguments_are_refused);
    tcase_add_test(over, kernels_that_were_unloaded_are_named_and_replayed);

    tcase_add_checked_fixture(loops, setup, teardown);
    tcase_add_test(loops, loop_tries_as_many_as_it_was_told);
    tcase_add_test(loops, loop_says_that_it_is_trying);
    add_controlled_loop_test(loops, loop_tries_as_many_as_it_can_where_nodes_are_short, 0, 3);
    add_controlled_loop_test(loops, loop_tries_none, 0, 3);
    tcase_add_test(loops, loop_without_room_goes_on_with_its_first);
    tcase_add_loop_test(loops, loop_tries_as_many_as_its_budget_allows, 0, 2);
    add_controlled_test(loops, loop_that_cannot_ask_for_room_goes_on_with_its_first);
    add_controlled_loop_test(loops, loop_leaves_memory_to_its_host, 0, 5);
    tcase_add_test(loops, loop_refuses_too_many);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
