/* Opening and closing, borrowed contexts and streams, what a session tells, its log. */
#include "support.h"

static stepgraph_session_config plain(void)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;

    return config;
}

START_TEST(info_is_what_the_driver_says)
{
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;
    CUdevice device;
    int version, major, minor, processors;
    char name[128] = "";

    OK(stepgraph_session_get_info(session, &info));
    CU(DriverGetVersion(&version));
    CU(DeviceGet(&device, 0));
    CU(DeviceGetName(name, sizeof name, device));
    CU(DeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    CU(DeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    CU(DeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    ck_assert_int_eq(info.driver_version, version);
    ck_assert_int_eq(info.device, 0);
    ck_assert_int_eq(info.compute_major, major);
    ck_assert_int_eq(info.compute_minor, minor);
    ck_assert_int_eq(info.multiprocessors, processors);
    ck_assert_str_eq(info.device_name, name);
    ck_assert_str_ne(info.driver_path, "");
    ck_assert_int_eq(info.software, unit_has_controls());
}
END_TEST

START_TEST(info_is_filled_up_to_its_size_and_no_further)
{
    LONGER(stepgraph_session_info, 16) u;
    size_t size = offsetof(stepgraph_session_info, device);

    memset(&u, 0x5a, sizeof u);
    u.known.size = size;
    OK(stepgraph_session_get_info(session, &u.known));
    ck_assert_int_ge(u.known.driver_version, 12000);
    for (size_t i = size; i < sizeof u; i++)
        ck_assert_msg(u.bytes[i] == 0x5a, "byte %zu was written", i);
}
END_TEST

START_TEST(info_without_a_place_or_a_size_is_refused)
{
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_get_info(session, NULL), "");
    info.size = 0;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_get_info(session, &info), "size");
}
END_TEST

START_TEST(config_with_unknown_flags_is_refused)
{
    stepgraph_session_config config = plain();
    stepgraph_session *made = NULL;

    config.flags = 1u << 31;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_open(&config, &made), "flag");
    ck_assert_ptr_null(made);
}
END_TEST

START_TEST(feed_slots_out_of_range_are_refused)
{
    stepgraph_session_config config = plain();
    stepgraph_session *made = NULL;

    config.feed_slots = 1;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_open(&config, &made), "feed_slots", "1");
    config.feed_slots = 65;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_open(&config, &made), "feed_slots", "65");
    ck_assert_ptr_null(made);
    config.feed_slots = 2;
    session_make(&config);
    config.feed_slots = 64;
    session_make(&config);
}
END_TEST

START_TEST(config_of_a_newer_caller_with_a_zero_tail_is_fine)
{
    LONGER(stepgraph_session_config, 48) longer;

    memset(&longer, 0, sizeof longer);
    longer.known.size = sizeof longer;
    session_make(&longer.known);
}
END_TEST

START_TEST(no_config_means_all_defaults)
{
    stepgraph_session *made = session_make(NULL);

    OK(stepgraph_session_wait(made));
}
END_TEST

START_TEST(strings_of_the_config_are_copied)
{
    stepgraph_session_config config = plain();
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;
    char path[512];
    stepgraph_session *made;

    snprintf(path, sizeof path, "%s", driver_path());
    config.driver_path = path;
    made = session_make(&config);
    memset(path, 'x', sizeof path - 1);
    OK(stepgraph_session_get_info(made, &info));
    ck_assert_ptr_null(strstr(info.driver_path, "xxxx"));
}
END_TEST

START_TEST(own_stream_does_not_synchronise_with_the_legacy_one)
{
    unsigned flags = 0;

    ck_assert_ptr_nonnull(stream);
    ck_assert_ptr_ne(stream, CU_STREAM_LEGACY);
    CU(StreamGetFlags(stream, &flags));
    ck_assert_uint_eq(flags & CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
}
END_TEST

START_TEST(tripwire_stream_synchronises_with_the_legacy_one)
{
    stepgraph_session_config config = plain();
    unsigned flags = 1;

    config.flags = STEPGRAPH_SESSION_BLOCKING_STREAM;
    reopen(&config);
    CU(StreamGetFlags(stream, &flags));
    ck_assert_uint_eq(flags & CU_STREAM_NON_BLOCKING, 0);
}
END_TEST

START_TEST(borrowed_stream_is_used_and_left_alive)
{
    stepgraph_session_config config = plain();
    CUstream mine = stream_make(CU_STREAM_NON_BLOCKING);
    stepgraph_session *made;

    config.stream = mine;
    made = session_make(&config);
    ck_assert_ptr_eq(stepgraph_session_stream(made), mine);
    drop_session(made);
    CU(StreamQuery(mine));
}
END_TEST

START_TEST(borrowed_blocking_stream_needs_the_flag)
{
    stepgraph_session_config config = plain();
    stepgraph_session *made = NULL;

    config.stream = stream_make(CU_STREAM_DEFAULT);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_open(&config, &made), "stream", "blocking");
    ck_assert_ptr_null(made);
    config.flags = STEPGRAPH_SESSION_BLOCKING_STREAM;
    made = session_make(&config);
    ck_assert_ptr_eq(stepgraph_session_stream(made), config.stream);
}
END_TEST

START_TEST(legacy_stream_is_refused)
{
    stepgraph_session_config config = plain();
    stepgraph_session *made = NULL;

    config.stream = CU_STREAM_LEGACY;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_open(&config, &made), "legacy");
    config.flags = STEPGRAPH_SESSION_BLOCKING_STREAM;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_open(&config, &made), "legacy");
    ck_assert_ptr_null(made);
}
END_TEST

START_TEST(borrowed_context_is_used)
{
    stepgraph_session_config config = plain();
    CUcontext mine = NULL;
    CUdevice device;
    stepgraph_session *made;
    stepgraph_pin *pin;
    float value = 0;

    CU(DeviceGet(&device, 0));
    CU(CtxCreate(&mine, 0, device));
    config.context = mine;
    made = session_make(&config);
    ck_assert_ptr_eq(stepgraph_session_context(made), mine);
    ck_assert_ptr_ne(stepgraph_session_context(made), stepgraph_session_context(session));
    pin = pin_make(made, STEPGRAPH_ROLE_STATE, 4, "w");
    OK(stepgraph_pin_write(pin, &(float){3}, 4));
    OK(stepgraph_pin_read(pin, &value, 4));
    ck_assert_float_eq(value, 3);
    drop_pin(pin);
    drop_session(made);
    /* It is still the host's: this fails if the session had destroyed it. */
    CU(CtxSetCurrent(mine));
    CU(CtxSynchronize());
    CU(CtxDestroy(mine));
}
END_TEST

START_TEST(session_cannot_close_while_a_step_lives)
{
    stepgraph_step *step = step_make(session, "still here", 0);

    FAILS(STEPGRAPH_ERR_STATE, stepgraph_session_close(session), "still here");
    /* Nothing was done: it still works. */
    OK(stepgraph_step_prepare(step));
    OK(stepgraph_session_wait(session));
}
END_TEST

START_TEST(session_cannot_close_while_a_pin_lives)
{
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "forgotten.weight");

    FAILS(STEPGRAPH_ERR_STATE, stepgraph_session_close(session), "forgotten.weight");
    OK(stepgraph_pin_write(pin, &(float){1}, 4));
}
END_TEST

/* A loop has no step before its first turn. */
START_TEST(session_cannot_close_while_a_loop_or_an_arena_lives)
{
    stepgraph_session *made = session_make(NULL);
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_arena_config pool = STEPGRAPH_ARENA_CONFIG_INIT;
    stepgraph_loop *first, *second;
    stepgraph_arena *arena;

    config.name = "first";
    OK(stepgraph_loop_create(made, &config, &first));
    config.name = "second";
    OK(stepgraph_loop_create(made, &config, &second));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_session_close(made), "loop 'second' still lives");
    stepgraph_loop_destroy(first);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_session_close(made), "loop 'second' still lives");
    stepgraph_loop_destroy(second);
    pool.name = "pool";
    pool.bytes = 4096;
    OK(stepgraph_arena_create(made, &pool, &arena));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_session_close(made), "arena 'pool' still lives", "stepgraph_arena_destroy()");
    OK(stepgraph_arena_destroy(arena));
    drop_session(made);
}
END_TEST

/* What closing has to unload waits until the recording is over. */
START_TEST(another_session_can_close_in_a_thread_that_records)
{
    stepgraph_pin *w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_step *step = step_make(session, "train", 0);
    stepgraph_session *other = session_make(NULL);

    begin_recording(step);
    inc(stream, stepgraph_pin_address(w), 2);
    drop_session(other);
    OK(stepgraph_step_end(step));
    replayed(step, 2);
    ck_assert(pin_float(w) == 4);
}
END_TEST

/* ---- a capture of the host's own --------------------------------------------------------------------------------------------- */

static stepgraph_pin *weight;
static stepgraph_step *recorded;
static stepgraph_arena *arena;
static stepgraph_loop *loop;
static stepgraph_session *second;
static CUstream elsewhere; /* A part of each step goes there; NULL: none. */

static void body(void *unused)
{
    (void)unused;
    inc(stream, stepgraph_pin_address(weight), 1);
}

static stepgraph_status enqueue(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user, (void)step, (void)k;
    body(NULL);
    return STEPGRAPH_OK;
}

static void go_round(uint64_t k)
{
    stepgraph_turn turn = STEPGRAPH_TURN_INIT;

    do {
        OK(stepgraph_loop_begin(loop, k, &turn));
        if (turn.run)
            body(NULL);
        for (int i = 0; i < 2 && turn.run && elsewhere != NULL; i++) /* The other kernel is counted by nobody. */
            OK(counted(session, elsewhere, kernels.nop, NULL));
        OK(stepgraph_loop_end(loop, &turn));
    } while (turn.again);
}

static void host_pin_is_destroyed(void)
{
    drop_pin(weight);
}

static void host_arena_is_destroyed(void)
{
    OK(stepgraph_arena_destroy(arena));
    arena = NULL;
}

static void host_step_is_reset(void)
{
    OK(stepgraph_step_reset(recorded));
}

static void host_step_is_destroyed(void)
{
    drop_step(recorded);
}

static void host_session_is_closed(void)
{
    drop_session(second);
}

static void host_step_is_checked(void)
{
    stepgraph_check_config config = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_check *check = NULL;

    config.enqueue = enqueue;
    OK(stepgraph_check_run(recorded, &config, &check));
    stepgraph_check_destroy(check);
}

static void host_step_is_tuned(void)
{
    stepgraph_tuning tuning = STEPGRAPH_TUNING_INIT;

    OK(stepgraph_step_tune(recorded, 2));
    while (!tuning.done) {
        replayed(recorded, 1);
        OK(stepgraph_step_get_tuning(recorded, &tuning));
    }
}

static void host_loop_comes_to_replays(void)
{
    for (uint64_t k = 0; k < 12; k++)
        go_round(k);
}

/* What has run meanwhile is undone, and waited for before. */
static void host_loop_has_work_elsewhere(void)
{
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;

    elsewhere = stream_make(CU_STREAM_NON_BLOCKING);
    host_loop_comes_to_replays();
    elsewhere = NULL;
    ck_assert_float_eq(pin_float(weight), 12);
    OK(stepgraph_loop_get_stats(loop, &stats));
    ck_assert_uint_gt(stats.recordings_failed, 0);
}

static void host_loop_is_destroyed(void)
{
    stepgraph_loop_destroy(loop);
    loop = NULL;
}

static const struct {
    const char *name;
    void (*what)(void);
} meanwhile[] = {
    {"a pin", host_pin_is_destroyed},         {"an arena", host_arena_is_destroyed}, {"a reset", host_step_is_reset},
    {"a step", host_step_is_destroyed},       {"a session", host_session_is_closed}, {"a check", host_step_is_checked},
    {"tuning", host_step_is_tuned},           {"a run", host_loop_comes_to_replays}, {"a loop", host_loop_is_destroyed},
    {"work elsewhere", host_loop_has_work_elsewhere},
};
enum { MEANWHILE = sizeof meanwhile / sizeof *meanwhile };

/* A collector of garbage, for one, destroys when it likes, also while its thread captures something on a stream of the host's. */
START_TEST(capture_of_the_hosts_own_goes_on_whatever_is_done)
{
    const CUstreamCaptureMode mode = (CUstreamCaptureMode)(_i % 3);
    const int which = _i / 3;
    CUstream own = stream_make(CU_STREAM_NON_BLOCKING);
    stepgraph_arena_config config = STEPGRAPH_ARENA_CONFIG_INIT;
    CUresult (*begin)(CUstream, CUstreamCaptureMode), (*end)(CUstream, CUgraph *), (*destroy)(CUgraph), code;
    CUgraph graph = NULL;

    *(void **)&begin = stepgraph_session_symbol(session, "cuStreamBeginCapture", 10010);
    *(void **)&end = stepgraph_session_symbol(session, "cuStreamEndCapture", 10000);
    *(void **)&destroy = stepgraph_session_symbol(session, "cuGraphDestroy", 10000);
    config.bytes = 1 << 20;
    second = session_make(NULL);
    weight = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    recorded = step_make(session, "train", 0);
    OK(stepgraph_arena_create(session, &config, &arena));
    OK(stepgraph_loop_create(session, NULL, &loop));
    if (meanwhile[which].what != host_pin_is_destroyed)
        record(recorded, body, NULL);
    if (meanwhile[which].what == host_loop_is_destroyed)
        for (uint64_t k = 0; k < 12; k++)
            go_round(k);

    ck_assert_int_eq(begin(own, mode), CUDA_SUCCESS);
    meanwhile[which].what();
    code = end(own, &graph);
    ck_assert_msg(code == CUDA_SUCCESS, "%s in mode %d: the host's capture answers %d", meanwhile[which].name, (int)mode, (int)code);
    ck_assert_int_eq(destroy(graph), CUDA_SUCCESS);
    stepgraph_loop_destroy(loop);
    if (arena != NULL)
        OK(stepgraph_arena_destroy(arena));
}
END_TEST

/* ---- waiting ------------------------------------------------------------------------------------------------------------------ */

START_TEST(close_waits_for_the_stream)
{
    stepgraph_session_config config = plain();
    CUstream mine = stream_make(CU_STREAM_NON_BLOCKING);
    stepgraph_session *made;

    config.stream = mine;
    made = session_make(&config);
    spin(mine, 30);
    drop_session(made);
    CU(StreamQuery(mine));
}
END_TEST

START_TEST(wait_means_all_has_run)
{
    CUdeviceptr p = device_make(4);

    spin(stream, 20);
    setv(stream, p, 5);
    OK(stepgraph_session_wait(session));
    CU(StreamQuery(stream));
    ck_assert_float_eq(float_at(p), 5);
}
END_TEST

START_TEST(wait_while_a_step_records_is_refused_and_harmless)
{
    stepgraph_step *step = step_make(session, "s", STEPGRAPH_STEP_ALLOW_EMPTY);

    begin_recording(step);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_session_wait(session), "'s'", "record");
    OK(stepgraph_step_end(step));
}
END_TEST

START_TEST(symbols_of_the_driver_can_be_asked_for)
{
    CUresult (*mem_info)(size_t *, size_t *);
    size_t free_bytes = 0, total = 0;

    *(void **)&mem_info = stepgraph_session_symbol(session, "cuMemGetInfo", 3020);
    ck_assert_msg(mem_info != NULL, "no cuMemGetInfo");
    ck_assert_int_eq(mem_info(&free_bytes, &total), CUDA_SUCCESS);
    ck_assert_uint_gt(total, 0);
}
END_TEST

START_TEST(symbols_that_are_not_there_are_null)
{
    ck_assert_ptr_null(stepgraph_session_symbol(session, "cuNoSuchCall", 12000));
    ck_assert_ptr_null(stepgraph_session_symbol(session, "", 12000));
    ck_assert_ptr_null(stepgraph_session_symbol(session, NULL, 12000));
    ck_assert_ptr_null(stepgraph_session_symbol(NULL, "cuMemAlloc", 3020));
    /* A version suffix is no part of a base name. */
    ck_assert_ptr_null(stepgraph_session_symbol(session, "cuMemAlloc_v2", 3020));
    /* A signature from a CUDA version that this driver does not know yet. */
    ck_assert_ptr_null(stepgraph_session_symbol(session, "cuMemAlloc", 990000));
}
END_TEST

START_TEST(symbols_leave_the_error_record_alone)
{
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_get_info(session, NULL), "");
    stepgraph_session_symbol(session, "cuNoSuchCall", 12000);
    (void)stepgraph_session_stream(session);
    (void)stepgraph_session_context(session);
    ck_assert_int_eq(last_error().status, STEPGRAPH_ERR_ARGUMENT);
}
END_TEST

/* ---- the log ------------------------------------------------------------------------------------------------------- */

static struct {
    unsigned lines, by_level[8], newlines;
    int32_t highest;
    char last[1024];
} heard;

static void listen(void *user, int32_t level, const char *line)
{
    if (user != &heard)
        return;
    heard.lines++;
    if (level >= 0 && level < 8)
        heard.by_level[level]++;
    if (level > heard.highest)
        heard.highest = level;
    heard.newlines += strchr(line, '\n') != NULL;
    snprintf(heard.last, sizeof heard.last, "%s", line);
}

static void fail_and_record(void)
{
    stepgraph_step *step = step_make(session, "logged", STEPGRAPH_STEP_ALLOW_EMPTY);

    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_capture(step), "prepare");
    begin_recording(step);
    OK(stepgraph_step_end(step));
    replayed(step, 1);
    drop_step(step);
}

START_TEST(log_is_silent_by_default)
{
    stepgraph_session_config config = plain();

    memset(&heard, 0, sizeof heard);
    config.log = listen;
    config.log_user = &heard;
    reopen(&config);
    fail_and_record();
    ck_assert_uint_eq(heard.lines, 0);
}
END_TEST

START_TEST(log_hears_a_failed_call)
{
    stepgraph_session_config config = plain();
    stepgraph_step *step;

    memset(&heard, 0, sizeof heard);
    config.log = listen;
    config.log_user = &heard;
    config.log_level = STEPGRAPH_LOG_ERROR;
    reopen(&config);
    step = step_make(session, "logged", 0);
    ck_assert_uint_eq(heard.lines, 0);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_capture(step), "prepare");
    ck_assert_uint_ge(heard.by_level[STEPGRAPH_LOG_ERROR], 1);
    ck_assert_msg(strstr(heard.last, "logged") != NULL, "%s", heard.last);
}
END_TEST

START_TEST(log_has_no_lines_above_its_level)
{
    for (int32_t level = STEPGRAPH_LOG_ERROR; level <= STEPGRAPH_LOG_DEBUG; level++) {
        stepgraph_session_config config = plain();

        memset(&heard, 0, sizeof heard);
        config.log = listen;
        config.log_user = &heard;
        config.log_level = (uint32_t)level;
        reopen(&config);
        fail_and_record();
        ck_assert_int_le(heard.highest, level);
        ck_assert_uint_eq(heard.newlines, 0);
        if (level >= STEPGRAPH_LOG_INFO)
            ck_assert_uint_ge(heard.by_level[STEPGRAPH_LOG_INFO], 1);
    }
}
END_TEST

/* ---- contexts of the calling thread ----------------------------------------------------------------------------------- */

START_TEST(current_context_of_the_caller_is_left_alone)
{
    CUcontext other = NULL, now = NULL;
    CUdevice device;
    stepgraph_session_config config = plain();
    stepgraph_session *made;
    stepgraph_pin *pin;
    stepgraph_step *step;
    float value;

    CU(DeviceGet(&device, 0));
    CU(CtxCreate(&other, 0, device));
#define STILL_CURRENT()                                                                                                          \
    do {                                                                                                                         \
        CU(CtxGetCurrent(&now));                                                                                                 \
        ck_assert_ptr_eq(now, other);                                                                                            \
    } while (0)
    made = session_make(&config);
    STILL_CURRENT();
    pin = pin_make(made, STEPGRAPH_ROLE_STATE, 4, "w");
    STILL_CURRENT();
    OK(stepgraph_pin_write(pin, &(float){1}, 4));
    STILL_CURRENT();
    step = step_make(made, "s", 0);
    OK(stepgraph_step_prepare(step));
    STILL_CURRENT();
    OK(stepgraph_step_capture(step));
    STILL_CURRENT();
    counted_inc(made, NULL, stepgraph_pin_address(pin), 2);
    OK(stepgraph_step_end(step));
    STILL_CURRENT();
    OK(stepgraph_step_replay(step));
    STILL_CURRENT();
    OK(stepgraph_pin_read(pin, &value, 4));
    ck_assert_float_eq(value, 3);
    STILL_CURRENT();
    drop_step(step);
    drop_pin(pin);
    drop_session(made);
    STILL_CURRENT();
    CU(CtxDestroy(other));
}
END_TEST

static void *step_without_a_context(void *problem)
{
    static stepgraph_status status;
    CUcontext now = NULL;
    stepgraph_pin *pin = stepgraph_session_pin(session, "w");
    CUdeviceptr p = stepgraph_pin_address(pin);
    stepgraph_step *step = NULL;
    float v = 2, got = 0;
    const char **why = problem;

#define MUST(call)                                                                                                               \
    do {                                                                                                                         \
        if ((status = (call)) != STEPGRAPH_OK) {                                                                                 \
            *why = #call;                                                                                                        \
            return &status;                                                                                                      \
        }                                                                                                                        \
    } while (0)
    cu.CtxSetCurrent(NULL);
    MUST(stepgraph_pin_write(pin, &(float){1}, 4));
    MUST(stepgraph_step_begin(session, NULL, &step));
    MUST(stepgraph_step_prepare(step));
    MUST(stepgraph_step_capture(step));
    MUST(counted(session, NULL, kernels.inc, (void *[]){&p, &v}));
    MUST(stepgraph_step_end(step));
    MUST(stepgraph_step_replay(step));
    MUST(stepgraph_pin_read(pin, &got, 4));
    stepgraph_step_destroy(step);
    cu.CtxGetCurrent(&now);
    if (now)
        *why = "a context was left behind";
    if (got != 3)
        *why = "the result is wrong";
    return NULL;
#undef MUST
}

START_TEST(calls_work_in_a_thread_without_a_current_context)
{
    const char *why = NULL;
    pthread_t thread;

    pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    ck_assert_int_eq(pthread_create(&thread, NULL, step_without_a_context, &why), 0);
    pthread_join(thread, NULL);
    ck_assert_msg(why == NULL, "%s", why);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("session");
    TCase *info = unit_case(suite, "info"), *config = unit_case(suite, "config"), *closing = unit_case(suite, "closing");
    TCase *symbols = unit_case(suite, "symbols"), *log = unit_case(suite, "log"), *context = unit_case(suite, "context");

    tcase_add_test(info, info_is_what_the_driver_says);
    tcase_add_test(info, info_is_filled_up_to_its_size_and_no_further);
    tcase_add_test(info, info_without_a_place_or_a_size_is_refused);

    tcase_add_test(config, config_with_unknown_flags_is_refused);
    tcase_add_test(config, feed_slots_out_of_range_are_refused);
    tcase_add_test(config, config_of_a_newer_caller_with_a_zero_tail_is_fine);
    tcase_add_test(config, no_config_means_all_defaults);
    tcase_add_test(config, strings_of_the_config_are_copied);
    tcase_add_test(config, own_stream_does_not_synchronise_with_the_legacy_one);
    tcase_add_test(config, tripwire_stream_synchronises_with_the_legacy_one);
    tcase_add_test(config, borrowed_stream_is_used_and_left_alive);
    tcase_add_test(config, borrowed_blocking_stream_needs_the_flag);
    tcase_add_test(config, legacy_stream_is_refused);
    tcase_add_test(config, borrowed_context_is_used);

    tcase_add_test(closing, session_cannot_close_while_a_step_lives);
    tcase_add_test(closing, session_cannot_close_while_a_pin_lives);
    tcase_add_test(closing, session_cannot_close_while_a_loop_or_an_arena_lives);
    tcase_add_test(closing, another_session_can_close_in_a_thread_that_records);
    tcase_add_loop_test(closing, capture_of_the_hosts_own_goes_on_whatever_is_done, 0, 3 * MEANWHILE);
    tcase_add_test(closing, close_waits_for_the_stream);
    tcase_add_test(closing, wait_means_all_has_run);
    tcase_add_test(closing, wait_while_a_step_records_is_refused_and_harmless);

    tcase_add_test(symbols, symbols_of_the_driver_can_be_asked_for);
    tcase_add_test(symbols, symbols_that_are_not_there_are_null);
    tcase_add_test(symbols, symbols_leave_the_error_record_alone);

    tcase_add_test(log, log_is_silent_by_default);
    tcase_add_test(log, log_hears_a_failed_call);
    tcase_add_test(log, log_has_no_lines_above_its_level);

    tcase_add_test(context, current_context_of_the_caller_is_left_alone);
    tcase_add_test(context, calls_work_in_a_thread_without_a_current_context);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
