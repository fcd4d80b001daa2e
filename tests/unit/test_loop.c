/* The loop: how it gets from the first step to a replay, what it does where there is none, and that every step is done once. */
#include <stdbool.h>
#include <unistd.h>

#include "support.h"

enum { N = 64, BYTES = N * sizeof(float) };

static stepgraph_loop *loop;
static stepgraph_turn turn;
static stepgraph_pin *weight, *fresh, *input, *rate, *loss, *beside;

/* ---- a host ------------------------------------------------------------------------------------------------------ */

static char lines[64][700];
static unsigned n_lines, n_warnings;

static void log_line(void *user, int32_t level, const char *line)
{
    (void)user;
    n_warnings += level <= STEPGRAPH_LOG_WARNING;
    if (getenv("LOOP_LOG") != NULL)
        fprintf(stderr, "[%d] %s\n", level, line);
    if (strncmp(line, "loop ", 5) == 0 && n_lines < sizeof lines / sizeof *lines)
        snprintf(lines[n_lines++], sizeof *lines, "[%d] %s", level, line);
}

static void open_with_log(void)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;

    config.log = log_line;
    config.log_level = STEPGRAPH_LOG_DEBUG;
    reopen(&config);
}

static void make_pins(void)
{
    weight = pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, "weight");
    fresh = pin_make(session, STEPGRAPH_ROLE_SCRATCH, BYTES, "fresh");
    input = pin_make(session, STEPGRAPH_ROLE_FEED, BYTES, "input");
    rate = pin_make(session, STEPGRAPH_ROLE_CELL, sizeof(float), "rate");
    loss = pin_make(session, STEPGRAPH_ROLE_OUTPUT, sizeof(float), "loss");
}

static void setup(void)
{
    open_with_log();
    n_lines = n_warnings = 0;
    loop = NULL;
    turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
    make_pins();
}

static void teardown(void)
{
    stepgraph_loop_destroy(loop);
    loop = NULL;
}

/* Steps as small as these may be as fast launched as replayed: only tests of the clock let it decide. */
static void loop_make(const stepgraph_loop_config *given)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    if (given != NULL)
        config = *given;
    if ((config.flags & STEPGRAPH_LOOP_SOFTWARE_CLOCK) == 0)
        config.flags |= STEPGRAPH_LOOP_IGNORE_CLOCK;
    if (config.executables == 0) /* Others are tried where times mean something: test_tune.c. */
        config.executables = 1;
    OK(stepgraph_loop_create(session, &config, &loop));
}

static stepgraph_loop_config config_with(uint32_t flags)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    config.flags = flags;
    config.name = "train";
    return config;
}

static void feed(uint64_t k)
{
    float x[N];

    for (int i = 0; i < N; i++)
        x[i] = (float)((int)((k * 31 + (uint64_t)i * 7) % 17) - 8) / 16.0f;
    OK(stepgraph_pin_feed(input, x, sizeof x));
    OK(stepgraph_pin_feed_f32(rate, 1.0f / (float)(k + 2)));
}

static void launch_n(CUfunction function, unsigned threads, void **arguments)
{
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;

    call.function = function;
    call.block[0] = threads;
    call.arguments = arguments;
    OK(stepgraph_session_launch(session, &call));
}

/* Out of place, and committed: what a graph can hold. */
static void train(uint64_t k)
{
    CUdeviceptr to = stepgraph_pin_address(fresh), from = stepgraph_pin_address(weight), x = stepgraph_pin_address(input);
    CUdeviceptr by = stepgraph_pin_address(rate), out = stepgraph_pin_address(loss);
    int n = N;

    (void)k;
    launch_n(kernels.update, N, (void *[]){&to, &from, &x, &by, &n});
    OK(stepgraph_pin_commit(weight, to));
    launch_n(kernels.copyf, 1, (void *[]){&out, &from});
}

/* One step: as often as the loop wants. Answers the kind of the turn that did it. */
static uint32_t take(uint64_t k, void (*step)(uint64_t))
{
    uint32_t kind;

    do {
        OK(stepgraph_loop_begin(loop, k, &turn));
        if (turn.feed)
            feed(k);
        if (turn.run)
            step(k);
        kind = turn.kind;
        OK(stepgraph_loop_end(loop, &turn));
    } while (turn.again);
    return kind;
}

static void go(uint64_t from, uint64_t to, void (*step)(uint64_t))
{
    for (uint64_t k = from; k < to; k++)
        take(k, step);
}

/* Replays without feeds, whose slots are waited for. */
static void go_ahead(uint64_t from, uint64_t to)
{
    for (uint64_t k = from; k < to; k++) {
        OK(stepgraph_loop_begin(loop, k, &turn));
        ck_assert_int_eq(turn.run, 0);
        OK(stepgraph_loop_end(loop, &turn));
    }
}

static bool recording(void)
{
    return loop != NULL && stepgraph_step_state(turn.step) == STEPGRAPH_STEP_CAPTURING;
}

static stepgraph_loop_stats stats_now(void)
{
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;

    OK(stepgraph_loop_get_stats(loop, &stats));
    return stats;
}

#define TURNS(kind, want) ck_assert_uint_eq(stats_now().turns[STEPGRAPH_TURN_##kind], want)
#define RUNG(want, reason)                                                                                                       \
    do {                                                                                                                         \
        stepgraph_loop_stats s_ = stats_now();                                                                                   \
        ck_assert_msg(s_.rung == STEPGRAPH_RUNG_##want && s_.why == STEPGRAPH_WHY_##reason, "rung %s, %s: %s",                   \
                      stepgraph_rung_name(s_.rung), stepgraph_why_name(s_.why), s_.words);                                       \
    } while (0)

/* What n steps without any loop leave in the weights; the pins are zero again afterwards. */
static void without_loop(uint64_t n, void (*step)(uint64_t), float *to)
{
    float zeros[N] = {0};

    for (uint64_t k = 0; k < n; k++) {
        feed(k);
        OK(stepgraph_session_flush(session));
        step(k);
    }
    OK(stepgraph_pin_read(weight, to, BYTES));
    OK(stepgraph_pin_write(weight, zeros, BYTES));
    OK(stepgraph_pin_write(fresh, zeros, BYTES));
}

static void same_as(const float *want)
{
    float is[N];

    OK(stepgraph_pin_read(weight, is, BYTES));
    for (int i = 0; i < N; i++)
        ck_assert_msg(memcmp(&is[i], &want[i], sizeof is[i]) == 0, "weight[%d] is %.9g instead of %.9g", i, (double)is[i],
                      (double)want[i]);
}

/* *weight = *weight + 1, and nothing else. */
static void count_one(uint64_t k)
{
    (void)k;
    counted_inc(session, NULL, stepgraph_pin_address(weight), 1);
}

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

static uint64_t rewound, rewinds;

static stepgraph_status note_rewind(void *user, uint64_t k)
{
    *(uint64_t *)user = k;
    rewinds++;
    return STEPGRAPH_OK;
}

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

/* ---- the ladder ------------------------------------------------------------------------------------------------------ */

static CUdeviceptr moving[3];
static uint64_t garbage; /* Recordings so far, where what is left over depends on them. */

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

/* A large struct, of which the kernel reads the first and the last word. */
static struct big {
    int w[1022];
} big;
static stepgraph_pin *big_out;

static void train_with_big(uint64_t k)
{
    CUdeviceptr out = stepgraph_pin_address(big_out);

    train(k);
    launch_n(kernels.big4096, 1, (void *[]){&out, &big});
}

/* A number is left over in it, */
static void train_with_number(uint64_t k)
{
    big.w[500] = (int)k + 1;
    train_with_big(k);
}

/* or an address of somebody else's memory; */
static void train_with_address(uint64_t k)
{
    memcpy(&big.w[500], &moving[k % 2], sizeof *moving);
    train_with_big(k);
}

/* or the kernel uses the number, */
static void train_with_value(uint64_t k)
{
    big.w[1021] = (int)k + 1;
    train_with_big(k);
}

/* or writes to that memory, which is the host's. */
static struct {
    CUdeviceptr p;
    int rest[100];
} large;

static void train_elsewhere(uint64_t k)
{
    float one = 1;

    large.p = moving[k % 2];
    train(k);
    launch_n(kernels.spread, 1, (void *[]){&large, &one});
}

static float at(CUdeviceptr address)
{
    float value;

    OK(stepgraph_session_wait(session));
    CU(MemcpyDtoH(&value, address, sizeof value));
    return value;
}

static void put(CUdeviceptr address, float value)
{
    put_bytes(address, &value, sizeof value);
}

static void drop_moving(void)
{
    for (int i = 0; i < 2; i++)
        device_drop(moving[i]);
}

static void make_big(float *want, void (*step)(uint64_t), float *elsewhere)
{
    big_out = pin_make(session, STEPGRAPH_ROLE_OUTPUT, 2 * sizeof(int), "big out");
    memset(&big, 0, sizeof big);
    for (int i = 0; i < 2; i++) {
        moving[i] = device_make(BYTES);
        put(moving[i], 7);
    }
    without_loop(60, step, want);
    for (int i = 0; i < 2; i++) {
        elsewhere[i] = at(moving[i]);
        put(moving[i], 7);
    }
}

static stepgraph_status enqueue_back(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    train(k);
    return STEPGRAPH_OK;
}

static stepgraph_status feed_back(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    feed(k);
    return STEPGRAPH_OK;
}

START_TEST(doubt_that_replays_refute_stands_against_nothing)
{
    void (*const steps[])(uint64_t) = {train_with_number, train_with_address};
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_NO_CHECK);
    stepgraph_check_config check = STEPGRAPH_CHECK_CONFIG_INIT;
    float want[N], elsewhere[2];

    make_big(want, steps[_i % 2], elsewhere);
    check.enqueue = enqueue_back;
    check.feed = feed_back;
    config.check = _i < 2 ? NULL : &check; /* Which would not save what no pin covers, and is not used. */
    loop_make(&config);
    go(0, 60, steps[_i % 2]);
    same_as(want);
    RUNG(REPLAY, NONE);
    TURNS(RECORD, 2);
    TURNS(LOOK, 0);
    TURNS(CHECK, 6); /* Not left out, and twice as many as without doubt. */
    ck_assert_uint_eq(stats_now().checks_identical, 6);
    ck_assert_uint_eq(stats_now().doubts, 1);
    for (int i = 0; i < 2; i++) {
        ck_assert_float_eq(at(moving[i]), 7);
        device_drop(moving[i]);
    }
}
END_TEST

/* Beside the number that nobody uses, a rate that drops much later. */
static void train_with_number_at_a_rate(uint64_t k)
{
    train_with_number(k);
    counted_inc(session, NULL, stepgraph_pin_address(weight), k < 20 ? 1 : 0.5f);
}

START_TEST(doubt_that_was_refuted_is_not_blamed_later)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    make_big(want, train_with_number_at_a_rate, elsewhere);
    config.check_every = 5;
    loop_make(&config);
    go(0, 30, train_with_number_at_a_rate);
    ck_assert_uint_eq(stats_now().doubts, 1);
    ck_assert_uint_eq(stats_now().checks_diverged, 1);
    RUNG(FRESH, DIVERGED);
    ck_assert_msg(strstr(stats_now().words, "doubt") == NULL && strstr(stats_now().words, "big4096") == NULL, "%s", stats_now().words);
    /* What is lost is told. */
    ck_assert_msg(strstr(stats_now().words, "all was right at step 16, and 5 replays since then") != NULL, "%s", stats_now().words);
    drop_moving();
}
END_TEST

/* Always the same address of memory that no pin covers, which nobody uses, */
static void train_with_one_address(uint64_t k)
{
    memcpy(&big.w[500], &moving[0], sizeof *moving);
    train_with_big(k);
}

/* also beside a number that changes, */
static void train_with_both(uint64_t k)
{
    big.w[600] = (int)k + 1;
    train_with_one_address(k);
}

/* or which a kernel writes to. */
static void train_at_one_address(uint64_t k)
{
    float one = 1;

    large.p = moving[0];
    train(k);
    launch_n(kernels.spread, 1, (void *[]){&large, &one});
}

START_TEST(address_without_a_pin_that_stays_is_in_doubt_in_a_large_struct)
{
    void (*const steps[])(uint64_t) = {train_with_one_address, train_with_both, train_at_one_address};
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    make_big(want, steps[_i], elsewhere);
    loop_make(&config);
    go(0, 60, steps[_i]);
    same_as(want);
    ck_assert_uint_eq(stats_now().doubts, 1);
    if (_i < 2) {
        RUNG(REPLAY, NONE);
        ck_assert_uint_eq(stats_now().checks_identical, 6);
        /* Of two doubts, that of the comparison is told. */
        ck_assert_int_eq(strstr(stepgraph_audit_text(stepgraph_loop_audit(loop, 0)), "changing scalar") != NULL, _i == 1);
    } else {
        RUNG(RERECORD, UNREGISTERED);
        ck_assert_ptr_nonnull(strstr(stats_now().words, "spread  arg 0 +0"));
        ck_assert_ptr_nonnull(strstr(stats_now().words, "and it is used"));
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_float_eq(at(moving[i]), elsewhere[i]);
        device_drop(moving[i]);
    }
}
END_TEST

/* In the same allocation as what is in doubt is a pin that small arguments point to. */
static void train_beside_doubt(uint64_t k)
{
    counted_inc(session, NULL, stepgraph_pin_address(beside), 1);
    train_with_one_address(k);
}

START_TEST(pin_beside_memory_that_is_in_doubt_stands_against_nothing)
{
    CUdeviceptr memory = device_make(2 * BYTES);
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    beside = pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, BYTES, "beside");
    make_big(want, train, elsewhere);
    device_drop(moving[0]);
    moving[0] = memory + BYTES;
    loop_make(&config);
    go(0, 60, train_beside_doubt);
    same_as(want);
    ck_assert_float_eq(pin_float(beside), 60);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(n_warnings, 0);
    ck_assert_uint_eq(stats_now().doubts, 1);
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(stepgraph_loop_audit(loop, 0)), "that no pin covers"));
}
END_TEST

START_TEST(doubt_that_replays_confirm_names_the_cause)
{
    static const char *const words[] = {"big4096  arg 1 +4084", "spread  arg 0 +0"};
    void (*const steps[])(uint64_t) = {train_with_value, train_elsewhere};
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];
    int last[2];

    make_big(want, steps[_i], elsewhere);
    loop_make(&config);
    go(0, 60, steps[_i]);
    same_as(want);
    if (_i == 0)
        RUNG(RERECORD, SCALAR);
    else
        RUNG(RERECORD, MOVED);
    TURNS(LOOK, 0);
    TURNS(REPLAY, 0);
    ck_assert_uint_eq(stats_now().checks_diverged, 1);
    ck_assert_msg(strstr(stats_now().words, words[_i]) != NULL && strstr(stats_now().words, "and it is used") != NULL, "%s",
                  stats_now().words);
    OK(stepgraph_pin_read(big_out, last, sizeof last));
    ck_assert_int_eq(last[1], _i == 0 ? 60 : last[1]);
    /* What no pin covers was put back after the replay that wrote to it. */
    for (int i = 0; i < 2; i++) {
        ck_assert_float_eq(at(moving[i]), elsewhere[i]);
        device_drop(moving[i]);
    }
}
END_TEST

/* A struct of which the kernel reads only a part: something is left over in the rest. */
static void launch_with_left_over(uint64_t word)
{
    CUdeviceptr out = stepgraph_pin_address(loss), in = stepgraph_pin_address(weight);
    static struct {
        CUdeviceptr p;
        int n;
        uint64_t tail[3];
    } part; /* Its own padding is 0. */
    int one = 1;
    char byte = 1;

    part.p = in;
    part.n = 1;
    part.tail[1] = word;
    launch_n(kernels.inner, 1, (void *[]){&part, &out, &one, &byte, &in});
}

/* The address may be one that the host goes on with. */
static void train_with_address_and_scalar(uint64_t k)
{
    CUdeviceptr p = stepgraph_pin_address(loss);
    float value = (float)k;

    train_with_address(k);
    launch_n(kernels.setv, 1, (void *[]){&p, &value});
}

START_TEST(nothing_is_recorded_once_more_while_an_address_may_move)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    make_big(want, train_with_address_and_scalar, elsewhere);
    loop_make(&config);
    turn.flags = _i == 0 ? 0 : STEPGRAPH_TURN_KEEPS_NOTHING;
    go(0, 60, train_with_address_and_scalar);
    same_as(want);
    RUNG(RERECORD, SCALAR);
    TURNS(RECORD, 2);
    TURNS(LOOK, _i); /* Nobody goes on with what that recording allocated. */
    drop_moving();
}
END_TEST

/* What nobody sets differs in each recording, also of one step. */
static void train_with_address_and_garbage(uint64_t k)
{
    train_with_address(k);
    launch_with_left_over(0x1234 + 17 * garbage * garbage); /* Not by the same amount each time, as a counter. */
    garbage += recording() ? 1 : 0;
}

START_TEST(third_recording_tells_what_is_left_over_beside_an_address)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    garbage = 0;
    make_big(want, train_with_address_and_garbage, elsewhere);
    loop_make(&config);
    turn.flags = _i == 0 ? 0 : STEPGRAPH_TURN_KEEPS_NOTHING;
    go(0, 60, train_with_address_and_garbage);
    same_as(want);
    TURNS(LOOK, _i);
    if (_i == 0)
        RUNG(RERECORD, SCALAR);
    else
        RUNG(REPLAY, NONE);
    drop_moving();
}
END_TEST

/* ---- memory in doubt that cannot be put back ------------------------------------------------------------------------- */

static float *locked[2]; /* Page-locked. */

static void make_locked(void)
{
    for (int i = 0; i < 2; i++) {
        CU(MemAllocHost((void **)&locked[i], BYTES));
        memset(locked[i], 0, BYTES);
    }
}

static void drop_locked(void)
{
    for (int i = 0; i < 2; i++)
        CU(MemFreeHost(locked[i]));
}

static void train_with_word(uint64_t word)
{
    memcpy(&big.w[500], &word, sizeof word);
    train_with_big(0);
}

/* An address of page-locked memory is left over, such as that of the batch which was copied before; */
static void train_with_locked(uint64_t k)
{
    (void)k;
    train_with_word((uintptr_t)locked[0]);
}

/* another in each recording; */
static void train_with_locked_by_turns(uint64_t k)
{
    (void)k;
    train_with_word((uintptr_t)locked[garbage % 2]);
    garbage += recording() ? 1 : 0;
}

/* or one of memory that is gone. */
static void train_with_gone(uint64_t k)
{
    (void)k;
    train_with_word(moving[2]);
}

/* Memory that the session has met, and that was freed since. */
static CUdeviceptr met_and_gone(void)
{
    stepgraph_step *step = step_make(session, "earlier", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    CUdeviceptr memory = device_make(BYTES);

    OK(stepgraph_step_prepare(step));
    OK(stepgraph_step_capture(step));
    launch_n(kernels.inc, 1, (void *[]){&memory, &(float){1}});
    OK(stepgraph_step_end(step));
    device_drop(memory);
    return memory;
}

START_TEST(address_of_memory_that_cannot_be_put_back_may_be_left_over)
{
    static const char *const words[] = {"(256 bytes of page-locked host memory)", "256 bytes stood there once", "moved pointer"};
    void (*const steps[])(uint64_t) = {train_with_locked, train_with_gone, train_with_locked_by_turns};
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    garbage = 0;
    make_locked();
    make_big(want, steps[_i], elsewhere);
    moving[2] = met_and_gone();
    n_warnings = 0;
    loop_make(&config);
    go(0, 60, steps[_i]);
    same_as(want);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(n_warnings, 0);
    ck_assert_uint_eq(stats_now().doubts, 1);
    ck_assert_uint_eq(stats_now().checks_identical, 6);
    ck_assert_uint_eq(stats_now().checks_failed, 0);
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(stepgraph_loop_audit(loop, 0)), words[_i]));
    drop_locked();
    drop_moving();
}
END_TEST

/* A kernel counts in it. */
static void train_and_count_in_locked(uint64_t k)
{
    float one = 1;

    large.p = (uintptr_t)locked[0];
    train(k);
    launch_n(kernels.spread, 1, (void *[]){&large, &one});
}

START_TEST(page_locked_memory_that_changes_in_each_step_is_used)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    make_locked();
    make_big(want, train_and_count_in_locked, elsewhere);
    memset(locked[0], 0, BYTES);
    loop_make(&config);
    go(0, 60, train_and_count_in_locked);
    same_as(want);
    ck_assert_float_eq(*locked[0], 60); /* No step was done twice. */
    RUNG(RERECORD, UNREGISTERED);
    ck_assert_uint_eq(stats_now().checks, 0);
    ck_assert_uint_eq(stats_now().checks_failed, 8);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "spread  arg 0 +0"));
    ck_assert_ptr_nonnull(strstr(stats_now().words, "so it is used"));
    drop_locked();
    drop_moving();
}
END_TEST

/* The host fills it again, now and then. */
static void train_beside_a_loader(uint64_t k)
{
    *locked[0] += k % 2 == 0 ? 1 : 0;
    train_with_locked(k);
}

START_TEST(page_locked_memory_that_the_host_fills_again_puts_checks_off)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];
    char told[64];

    make_locked();
    make_big(want, train_beside_a_loader, elsewhere);
    config.check_steps = 5;
    loop_make(&config);
    go(0, 60, train_beside_a_loader);
    same_as(want);
    RUNG(REPLAY, NONE); /* Though as many were put off as would stand against it in a row. */
    ck_assert_uint_eq(stats_now().checks_identical, 2 * config.check_steps);
    ck_assert_uint_ge(stats_now().checks_failed, 2 * config.check_steps - 1);
    ck_assert_uint_le(stats_now().checks_failed, 2 * config.check_steps);
    snprintf(told, sizeof told, "is put off: page-locked memory at 0x%llx", (unsigned long long)(uintptr_t)locked[0]);
    ck_assert_ptr_nonnull(strstr(lines[1], told));
    drop_locked();
    drop_moving();
}
END_TEST

/* Two addresses of page-locked memory are left over, and the host changes one byte there, now and then. */
static char *changing;

static void train_beside_changes(uint64_t k)
{
    if (changing != NULL && k % 2 == 0)
        ++*changing;
    memcpy(&big.w[600], &locked[1], sizeof locked[1]);
    train_with_locked(k);
}

START_TEST(page_locked_memory_is_looked_at_to_its_last_byte)
{
    enum { ODD = 16384 - 3 }; /* No whole number of words. */
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    make_locked();
    CU(MemFreeHost(locked[0]));
    CU(MemAllocHost((void **)&locked[0], ODD));
    memset(locked[0], 0, ODD);
    changing = _i == 0 ? NULL : _i == 1 ? (char *)locked[0] + ODD - 1 : (char *)locked[1];
    make_big(want, train_beside_changes, elsewhere);
    loop_make(&config);
    go(0, 60, train_beside_changes);
    same_as(want);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(stats_now().checks_identical, 6);
    ck_assert_uint_ge(stats_now().checks_failed, _i == 0 ? 0 : 5);
    ck_assert_uint_le(stats_now().checks_failed, _i == 0 ? 0 : 6);
    drop_locked();
    drop_moving();
}
END_TEST

/* From some step on the host fills it in each step. */
static void train_and_fill_late(uint64_t k)
{
    *locked[0] += k >= 15 ? 1 : 0;
    train_with_locked(k);
}

START_TEST(sampled_checks_that_are_put_off_wait_for_their_next_turn)
{
    stepgraph_loop_config config = config_with(0);
    stepgraph_loop_stats stats;
    float want[N], elsewhere[2];

    make_locked();
    make_big(want, train_and_fill_late, elsewhere);
    config.check_every = 10;
    loop_make(&config);
    go(0, 60, train_and_fill_late);
    same_as(want);
    RUNG(REPLAY, NONE);
    stats = stats_now();
    ck_assert_uint_ge(stats.checks_failed, 1);
    ck_assert_uint_eq(stats.checks_failed + stats.checks, stats.turns[STEPGRAPH_TURN_CHECK]);
    ck_assert_uint_ge(stats.turns[STEPGRAPH_TURN_REPLAY], config.check_every * stats.checks_failed);
    drop_locked();
    drop_moving();
}
END_TEST

START_TEST(memory_in_doubt_takes_two_copies)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    make_big(want, train_with_one_address, elsewhere);
    config.snapshot_bytes = 2 * BYTES - (uint64_t)_i;
    loop_make(&config);
    go(0, 60, train_with_one_address);
    same_as(want);
    if (_i == 0)
        RUNG(REPLAY, NONE);
    else
        RUNG(RERECORD, UNREGISTERED);
    ck_assert_uint_eq(stats_now().checks_failed, _i);
    drop_moving();
}
END_TEST

/* A copy reads memory that no pin covers. */
static void train_and_copy(uint64_t k)
{
    train(k);
    CU(MemcpyDtoDAsync(stepgraph_pin_address(big_out), moving[0], sizeof(float), stream));
}

START_TEST(copy_of_memory_without_a_pin_is_named)
{
    stepgraph_loop_config config = config_with(0);
    stepgraph_finding finding = STEPGRAPH_FINDING_INIT;
    float want[N], elsewhere[2];

    make_big(want, train_and_copy, elsewhere);
    loop_make(&config);
    go(0, 60, train_and_copy);
    same_as(want);
    RUNG(RERECORD, UNREGISTERED);
    OK(stepgraph_audit_get(stepgraph_loop_audit(loop, 0), 0, &finding));
    ck_assert_uint_eq(finding.fault, 1);
    ck_assert_uint_eq(finding.argument, UINT32_MAX);
    ck_assert_uint_eq(finding.before, moving[0]);
    drop_moving();
}
END_TEST

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

static unsigned garbage_in; /* A bit for each recording. */

static void train_with_garbage(uint64_t k)
{
    train(k);
    /* Live memory of somebody else in some recordings, an address of the host's in others. */
    launch_with_left_over(garbage < 2 && (garbage_in >> garbage & 1) != 0 ? moving[0] : (CUdeviceptr)(uintptr_t)&garbage);
    garbage += recording() ? 1 : 0;
}

/* What nobody sets looks like a value, and beside it an address may move, so that nothing is recorded a third time. */
static void train_with_padding(uint64_t k)
{
    train_with_address(k);
    launch_with_left_over(0x000000023ba6540f + 0x200000 * (k % 7));
}

/* It is an address's upper half, now and then. */
static void train_with_upper_half(uint64_t k)
{
    train_with_address(k);
    launch_with_left_over(k % 2 == 0 ? 8 : (uintptr_t)&k >> 32 << 32 | 8);
}

START_TEST(what_may_be_padding_is_left_to_the_checks)
{
    stepgraph_loop_config config = config_with(0);
    void (*const steps[])(uint64_t) = {train_with_padding, train_with_upper_half};
    float want[N], elsewhere[2];

    make_big(want, steps[_i], elsewhere);
    loop_make(&config);
    go(0, 60, steps[_i]);
    same_as(want);
    RUNG(REPLAY, NONE);
    TURNS(RECORD, 2);
    TURNS(LOOK, 0);
    ck_assert_uint_eq(stats_now().checks_identical, 6);
    drop_moving();
}
END_TEST

START_TEST(address_that_was_left_over_stands_against_nothing)
{
    stepgraph_loop_config config = config_with(0);
    float want[N];

    garbage = 0;
    garbage_in = (unsigned)_i;
    moving[0] = device_make(BYTES);
    without_loop(60, train_with_garbage, want);
    loop_make(&config);
    go(0, 60, train_with_garbage);
    same_as(want);
    if (_i != 3)
        RUNG(REPLAY, NONE);
    else /* What is the same in all recordings may be used: nobody can tell. */
        RUNG(RERECORD, UNREGISTERED);
    device_drop(moving[0]);
}
END_TEST

/* A learning rate as a kernel argument. */
static void train_by_value(uint64_t k)
{
    counted_inc(session, NULL, stepgraph_pin_address(weight), (float)(k % 7));
}

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

/* By value, and from step 20 on in two forms. */
static void train_by_value_in_forms(uint64_t k)
{
    counted_inc(session, NULL, stepgraph_pin_address(weight), (float)(k % 5));
    if (k >= 20 && k % 2 == 0)
        counted_inc(session, NULL, stepgraph_pin_address(weight), 1);
}

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

static uint64_t bytes_of_one_graph(void)
{
    uint64_t bytes;

    loop_make(NULL);
    go(0, 20, count_one);
    RUNG(REPLAY, NONE);
    bytes = stats_now().device_bytes;
    teardown();
    put_float(stepgraph_pin_address(weight), 0);
    return bytes;
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

/* Waits for the stream, which no recording survives. */
static void train_waiting(uint64_t k)
{
    count_one(k);
    (void)cu.StreamSynchronize(stream);
}

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

/* Nobody has counted it, and it comes late: neither a warm-up run that is undone nor a check goes on without it. */
static void train_escaping_uncounted(uint64_t k)
{
    count_one(k);
    spin(elsewhere, turn.kind == STEPGRAPH_TURN_REHEARSAL || turn.kind == STEPGRAPH_TURN_CHECK ? 20 : 0);
    inc(elsewhere, stepgraph_pin_address(beside), 1);
}

START_TEST(k07_work_that_escapes_uncounted_is_waited_for)
{
    stepgraph_loop_config config = config_with(_i == 0 ? 0 : STEPGRAPH_LOOP_RESTORE);

    elsewhere = stream_make(CU_STREAM_NON_BLOCKING);
    beside = pin_make(session, STEPGRAPH_ROLE_STATE, sizeof(float), "beside");
    loop_make(&config);
    for (uint64_t k = 0; k < 20; k++) {
        take(k, train_escaping_uncounted);
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

/* ---- keys ------------------------------------------------------------------------------------------------------------ */

static void go_keys(uint64_t from, uint64_t to, uint64_t keys)
{
    for (uint64_t k = from; k < to; k++) {
        turn.key = k % keys;
        take(k, count_one);
    }
}

START_TEST(each_key_has_a_graph)
{
    stepgraph_loop_config config = config_with(0);
    stepgraph_loop_graph graph = STEPGRAPH_LOOP_GRAPH_INIT;

    loop_make(&config);
    go_keys(0, 80, 3);
    ck_assert_float_eq(pin_float(weight), 80);
    ck_assert_uint_eq(stats_now().graphs, 3);
    for (uint32_t i = 0; i < 3; i++) {
        OK(stepgraph_loop_get_graph(loop, i, &graph));
        ck_assert_uint_eq(graph.key, i);
        ck_assert_uint_eq(graph.rung, STEPGRAPH_RUNG_REPLAY);
        ck_assert_uint_eq(graph.nodes, 1);
        ck_assert_uint_gt(graph.device_bytes, 0);
        ck_assert_uint_gt(graph.host_bytes, 0);
    }
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_get_graph(loop, 3, &graph), "index 3");
}
END_TEST

START_TEST(k25_keys_beyond_the_bound_are_launched_and_not_recorded_in_turn)
{
    stepgraph_loop_config config = config_with(0);

    config.max_graphs = 2;
    loop_make(&config);
    go_keys(0, 600, 3);
    ck_assert_float_eq(pin_float(weight), 600);
    ck_assert_uint_eq(stats_now().recordings, 4);
    ck_assert_uint_eq(stats_now().graphs, 2);
    ck_assert_uint_eq(stats_now().causes[STEPGRAPH_WHY_BOUND], 200);
}
END_TEST

START_TEST(k25_least_recently_used_graph_makes_room)
{
    stepgraph_loop_config config = config_with(0);
    stepgraph_loop_graph graph = STEPGRAPH_LOOP_GRAPH_INIT;

    config.max_graphs = 2;
    loop_make(&config);
    go_keys(0, 40, 2);
    turn.key = 0;
    for (uint64_t k = 40; k < 60; k++)
        take(k, count_one);
    turn.key = 7;
    for (uint64_t k = 60; k < 80; k++)
        take(k, count_one);
    ck_assert_float_eq(pin_float(weight), 80);
    ck_assert_uint_eq(stats_now().graphs_dropped, 1);
    ck_assert_uint_eq(stats_now().graphs, 2);
    OK(stepgraph_loop_get_graph(loop, 0, &graph));
    ck_assert_uint_eq(graph.key, 0);
    OK(stepgraph_loop_get_graph(loop, 1, &graph));
    ck_assert_uint_eq(graph.key, 7);
    ck_assert_uint_eq(graph.rung, STEPGRAPH_RUNG_REPLAY);
}
END_TEST

/* Of several the one that was used longest ago, and none before four turns for each lane have gone by. */
START_TEST(k25_key_that_is_idle_longest_makes_room)
{
    enum { LANES = 3, IDLE = 4 * LANES };
    /* So many turns of the last key, before which each of the others had one. */
    static const uint64_t alone[] = {IDLE - LANES, IDLE - LANES + 1, 2 * IDLE};
    stepgraph_loop_config config = config_with(0);
    stepgraph_loop_graph graph = STEPGRAPH_LOOP_GRAPH_INIT;
    uint64_t k = 60;

    config.max_graphs = LANES;
    loop_make(&config);
    go_keys(0, k, LANES);
    turn.key = LANES - 1;
    go(k, k + alone[_i], count_one);
    k += alone[_i];
    turn.key = 7;
    go(k, k + 20, count_one);
    ck_assert_float_eq(pin_float(weight), (float)(k + 20));
    ck_assert_uint_eq(stats_now().causes[STEPGRAPH_WHY_BOUND], _i == 0);
    ck_assert_uint_eq(stats_now().graphs_dropped, 1);
    OK(stepgraph_loop_get_graph(loop, 0, &graph)); /* Where that of key 0 was. */
    ck_assert_uint_eq(graph.key, 7);
    OK(stepgraph_loop_get_graph(loop, 1, &graph));
    ck_assert_uint_eq(graph.key, 1);
}
END_TEST

START_TEST(key_without_a_graph_gives_none_up)
{
    stepgraph_loop_config config = config_with(0);

    config.max_graphs = 1;
    loop_make(&config);
    go(0, 20, train_waiting);
    RUNG(FRESH, BROKEN);
    turn.key = 1;
    go(20, 40, count_one);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(stats_now().graphs_dropped, 0);
    ck_assert_float_eq(pin_float(weight), 40);
}
END_TEST

START_TEST(k25_idle_graph_makes_room_within_the_budget)
{
    stepgraph_loop_config config = config_with(0);

    config.graph_bytes = bytes_of_one_graph();
    config.max_graphs = 2;
    loop_make(&config);
    go(0, 20, count_one);
    RUNG(REPLAY, NONE);
    turn.key = 1;
    go(20, 26, count_one); /* The other may still be wanted. */
    RUNG(FRESH, MEMORY);
    ck_assert_uint_eq(stats_now().graphs, 1);
    ck_assert_uint_eq(stats_now().graphs_dropped, 0);
    go(26, 200, count_one);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(stats_now().graphs, 1);
    ck_assert_uint_eq(stats_now().graphs_dropped, 1);
    ck_assert_float_eq(pin_float(weight), 200);
}
END_TEST

/* Also those of keys that are gone, with a first recording or a third one. */
START_TEST(executables_are_counted_as_the_driver_does)
{
    unsigned long made = driver_calls("cuGraphInstantiateWithParams"), updated = driver_calls("cuGraphExecUpdate");
    stepgraph_loop_config config = config_with(0);
    double saved;

    config.max_graphs = 1;
    loop_make(&config);
    go(0, 4, count_one);
    TURNS(RECORD, 1);
    turn.key = 1;
    go(4, 30, train_by_value_in_forms);
    ck_assert_uint_gt(stats_now().turns[STEPGRAPH_TURN_LOOK], 0);
    RUNG(FRESH, UPDATE);
    turn.key = 2;
    go(30, 50, count_one);
    RUNG(REPLAY, NONE);
    saved = stats_now().seconds_saved;
    turn.key = 3;
    go(50, 56, count_one); /* Launches. */
    ck_assert_uint_eq(stats_now().graphs_dropped, 1);
    ck_assert_double_ne(saved, 0);
    ck_assert_double_eq(stats_now().seconds_saved, saved);
    ck_assert_uint_eq(stats_now().updates_refused, 3);
    ck_assert_uint_eq(stats_now().instantiations, driver_calls("cuGraphInstantiateWithParams") - made);
    ck_assert_uint_eq(stats_now().updates + stats_now().updates_refused, driver_calls("cuGraphExecUpdate") - updated);
}
END_TEST

START_TEST(k25_graph_beyond_the_budget_is_not_made)
{
    stepgraph_loop_config config = config_with(0);

    config.graph_bytes = 100;
    loop_make(&config);
    go(0, 100, count_one);
    ck_assert_float_eq(pin_float(weight), 100);
    RUNG(FRESH, MEMORY);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "budget"));
    ck_assert_uint_eq(stats_now().instantiations, 0);
}
END_TEST

/* Gradients are accumulated over some micro-steps, and then the weights are updated: two graphs. */
static void accumulate(uint64_t k)
{
    CUdeviceptr gradient = stepgraph_pin_address(fresh), x = stepgraph_pin_address(input), by = stepgraph_pin_address(rate);
    int n = N;

    (void)k;
    launch_n(kernels.update, N, (void *[]){&gradient, &gradient, &x, &by, &n});
}

static void apply(uint64_t k)
{
    CUdeviceptr w = stepgraph_pin_address(weight), gradient = stepgraph_pin_address(fresh), by = stepgraph_pin_address(rate);
    float zero = 0;
    int n = N;

    (void)k;
    launch_n(kernels.update, N, (void *[]){&w, &w, &gradient, &by, &n});
    launch_n(kernels.setv, 1, (void *[]){&gradient, &zero});
}

START_TEST(accumulation_takes_a_graph_for_each_phase)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], zeros[N] = {0};

    drop_pin(fresh);
    fresh = pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, "gradient");
    for (uint64_t k = 0; k < 120; k++) {
        feed(k);
        OK(stepgraph_session_flush(session));
        (k % 4 == 3 ? apply : accumulate)(k);
    }
    OK(stepgraph_pin_read(weight, want, BYTES));
    OK(stepgraph_pin_write(weight, zeros, BYTES));
    OK(stepgraph_pin_write(fresh, zeros, BYTES));
    loop_make(&config);
    for (uint64_t k = 0; k < 120; k++) {
        turn.key = k % 4 == 3 ? 1 : 0;
        take(k, turn.key == 1 ? apply : accumulate);
    }
    same_as(want);
    ck_assert_uint_eq(stats_now().graphs, 2);
    ck_assert_uint_gt(stats_now().turns[STEPGRAPH_TURN_REPLAY], 100);
}
END_TEST

/* ---- misuse, and giving up -------------------------------------------------------------------------------------------- */

START_TEST(turn_that_is_to_be_taken_again_cannot_be_left)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_RESTORE);

    loop_make(&config);
    OK(stepgraph_loop_begin(loop, 0, &turn));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_begin(loop, 0, &turn), "open");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_drop(loop, 0, NULL), "not over", "end it");
    count_one(0);
    OK(stepgraph_loop_end(loop, &turn));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_end(loop, &turn), "no turn is open");
    ck_assert_int_eq(turn.again, 1);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_begin(loop, 1, &turn), "step 0", "again");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_drop(loop, 0, NULL), "step 0", "go round while turn.again is set", "stepgraph_loop_cancel()");
    turn.key = 1;
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_begin(loop, 0, &turn), "step 0", "again");
    turn.key = 0;
    OK(stepgraph_loop_cancel(loop));
    go(0, 20, count_one);
    ck_assert_float_eq(pin_float(weight), 20);
}
END_TEST

static void no_word_of_the_lifecycle_but(const char *called)
{
    const char *const calls[] = {"stepgraph_step_prepare()", "stepgraph_step_capture()", "stepgraph_step_end()"};

    for (int i = 0; i < 3; i++)
        if (called == NULL || strcmp(called, calls[i]) != 0)
            ck_assert_msg(strstr(last_words(), calls[i]) == NULL, "what a host on a loop never calls: %s", last_words());
}

#define FAILS_AS_IN_A_TURN(call)                                                                                            \
    do {                                                                                                                         \
        FAILS(STEPGRAPH_ERR_STATE, call, "stepgraph_loop_begin()", "stepgraph_loop_end()");                                      \
        no_word_of_the_lifecycle_but(NULL);                                                                                              \
    } while (0)

/* A host on a loop knows nothing of prepare, capture and end. */
START_TEST(what_cannot_be_done_while_a_turn_records_is_said_in_words_of_the_loop)
{
    stepgraph_sample sample = STEPGRAPH_SAMPLE_INIT;
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *made = NULL;
    float value[N] = {0};

    config.role = STEPGRAPH_ROLE_STATE;
    config.bytes = 4;
    config.name = "late";
    loop_make(NULL);
    go(0, 3, count_one);
    OK(stepgraph_loop_begin(loop, 3, &turn));
    ck_assert(recording());
    FAILS_AS_IN_A_TURN(stepgraph_session_wait(session));
    FAILS_AS_IN_A_TURN(stepgraph_session_flush(session));
    FAILS_AS_IN_A_TURN(stepgraph_session_sample(session, STEPGRAPH_SAMPLE_DRAIN, &sample));
    FAILS_AS_IN_A_TURN(stepgraph_pin_read(loss, value, sizeof(float)));
    FAILS_AS_IN_A_TURN(stepgraph_pin_write(weight, value, BYTES));
    FAILS_AS_IN_A_TURN(stepgraph_pin_create(session, &config, &made));
    FAILS_AS_IN_A_TURN(stepgraph_pin_destroy(loss));
    count_one(3);
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert_int_eq(turn.again, 0);
}
END_TEST

/* A host that resets the loop's step is told of the loop's calls too, and of the one that helps. */
START_TEST(step_of_a_loop_whose_state_was_changed_is_told_of_the_loop)
{
    loop_make(NULL);
    go(0, 12, count_one);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_prepare(stepgraph_loop_step(loop, 0)), "is the loop's to change", "stepgraph_loop_drop()");
    no_word_of_the_lifecycle_but("stepgraph_step_prepare()");
    OK(stepgraph_step_reset(stepgraph_loop_step(loop, 0)));
    OK(stepgraph_loop_begin(loop, 12, &turn));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_end(loop, &turn), "is the loop's to change", "stepgraph_loop_drop()");
    no_word_of_the_lifecycle_but(NULL);
    OK(stepgraph_loop_drop(loop, 0, "its step was reset"));
    go(12, 30, count_one);
    ck_assert_float_eq(pin_float(weight), 30);
    RUNG(REPLAY, NONE);
}
END_TEST

/* A stream that is not joined, and a call that recordings do not survive, found by the end, a mark or a launch. */
START_TEST(what_breaks_the_recording_of_a_turn_is_said_in_words_of_the_loop)
{
    CUstream side = stream_make(CU_STREAM_NON_BLOCKING);

    loop_make(NULL);
    go(0, 3, count_one);
    OK(stepgraph_loop_begin(loop, 3, &turn));
    ck_assert(recording());
    count_one(3);
    if (_i == 0)
        OK(stepgraph_step_fork(turn.step, side, "side"));
    else
        (void)cu.StreamSynchronize(stream);
    if (_i == 2)
        FAILS(STEPGRAPH_ERR_CAPTURE, stepgraph_step_mark(turn.step, "loss"), "before stepgraph_loop_begin()");
    if (_i == 3)
        FAILS(STEPGRAPH_ERR_CAPTURE, stepgraph_pin_commit(weight, stepgraph_pin_address(fresh)), "before stepgraph_loop_begin()");
    no_word_of_the_lifecycle_but(NULL);
    OK(stepgraph_loop_end(loop, &turn));
    ck_assert_int_eq(turn.again, 1);
    RUNG(FRESH, BROKEN);
    ck_assert_ptr_null(lacks(stats_now().words, (const char *[]){_i == 0 ? "before stepgraph_loop_end()" : "before stepgraph_loop_begin()", NULL}));
    ck_assert_ptr_null(strstr(stats_now().words, "stepgraph_step_prepare()"));
    ck_assert_ptr_null(strstr(stats_now().words, "stepgraph_step_end()"));
}
END_TEST

/* Outside of a turn feeds wait for the replay, all of them together. */
static void feeds_wait(void)
{
    uint64_t copies = pin_stats(session).feed_copies;

    feed(0);
    ck_assert_uint_eq(pin_stats(session).feed_copies, copies);
}

START_TEST(recording_that_could_not_begin_can_be_cancelled)
{
    loop_make(NULL);
    go(0, 3, count_one);
    driver_fails("cuStreamBeginCapture", 1, CUDA_ERROR_OUT_OF_MEMORY);
    OK(stepgraph_loop_begin(loop, 3, &turn));
    no_driver_fails();
    ck_assert_uint_eq(turn.kind, STEPGRAPH_TURN_RECORD);
    ck_assert_int_eq(turn.run, 0);
    OK(stepgraph_loop_cancel(loop));
    go(3, 20, count_one);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(stats_now().recordings_failed, 0);
    ck_assert_float_eq(pin_float(weight), 20);
}
END_TEST

START_TEST(any_turn_can_be_cancelled)
{
    stepgraph_loop_config config = config_with(_i % 2 == 0 ? 0 : STEPGRAPH_LOOP_RESTORE);
    uint64_t cancelled = 0;

    if (_i >= 2)
        config.fresh_every = 5;
    loop_make(&config);
    for (uint64_t k = 0; k < 40; k++) {
        OK(stepgraph_loop_begin(loop, k, &turn));
        if (turn.kind != STEPGRAPH_TURN_WARMUP && turn.kind != STEPGRAPH_TURN_FRESH && turn.kind != STEPGRAPH_TURN_CHECK) {
            /* Nothing has run yet, or it is undone. */
            if (turn.run)
                count_one(k);
            OK(stepgraph_loop_cancel(loop));
            ck_assert_uint_eq(stats_now().cancelled, ++cancelled);
            OK(stepgraph_loop_cancel(loop));
            ck_assert_uint_eq(stats_now().cancelled, cancelled);
        } else {
            OK(stepgraph_loop_cancel(loop));
            cancelled++;
        }
        feeds_wait();
        take(k, count_one);
    }
    ck_assert_float_eq(pin_float(weight), 40);
    ck_assert_uint_eq(stats_now().steps, 40);
}
END_TEST

START_TEST(loop_can_be_destroyed_in_any_turn)
{
    stepgraph_loop_config config = config_with(_i >= 20 ? STEPGRAPH_LOOP_RESTORE : 0);

    loop_make(&config);
    go(0, (uint64_t)_i % 20, train);
    OK(stepgraph_loop_begin(loop, (uint64_t)_i % 20, &turn));
    if (turn.run)
        train(0);
    teardown();
    feeds_wait();
}
END_TEST

START_TEST(feed_that_was_forgotten_is_an_error_and_can_be_made_good)
{
    /* A replay like any other; the first one, behind the last check; behind a step that was launched; the first recording, and the second. */
    static const uint64_t places[] = {20, 8, 20, 3, 4};
    stepgraph_loop_config config = config_with(0);
    uint64_t forgotten = places[_i];
    float want[N];

    without_loop(30, train, want);
    config.step_flags = STEPGRAPH_STEP_STRICT_FEEDS;
    config.fresh_every = _i == 2 ? 19 : 0;
    loop_make(&config);
    go(0, forgotten, train);
    OK(stepgraph_loop_begin(loop, forgotten, &turn));
    ck_assert_int_eq(turn.feed, 1);
    if (turn.run)
        train(forgotten);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_loop_end(loop, &turn), "'input'", "call stepgraph_pin_feed() in each turn with turn.feed set");
    go(forgotten, 30, train);
    same_as(want);
    RUNG(REPLAY, NONE);
}
END_TEST

START_TEST(options_are_checked)
{
    stepgraph_loop_config config = config_with(1u << 31);
    stepgraph_check_config check = STEPGRAPH_CHECK_CONFIG_INIT;

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, &config, &loop), "flags");
    config = config_with(0);
    config.max_graphs = 65;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, &config, &loop), "64");
    config.max_graphs = 64;
    OK(stepgraph_loop_create(session, &config, &loop));
    teardown();
    config = config_with(0);
    config.step_flags = 1u << 31;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, &config, &loop), "flags");
    config = config_with(0);
    config.check = &check;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, &config, &loop), "enqueue");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(NULL, NULL, &loop), "session");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, NULL, NULL), "loop_out");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_begin(NULL, 0, &turn), "loop");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_end(NULL, &turn), "loop");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_cancel(NULL), "loop");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_drop(NULL, 0, NULL), "loop");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_report(NULL, 1, &(const char *){NULL}), "loop");
    loop_make(NULL);
    turn.flags = 1u << 31;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_begin(loop, 0, &turn), "flags");
    turn.flags = 0;
    turn.key = STEPGRAPH_KEY_ALL;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_begin(loop, 0, &turn), "key");
    turn.key = 0;
    turn.size = 8;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_begin(loop, 0, &turn), "size");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_end(loop, &turn), "begin");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_get_verdict(loop, 0, &(stepgraph_verdict)STEPGRAPH_VERDICT_INIT), "key 0");
}
END_TEST

/* ---- reports ------------------------------------------------------------------------------------------------------------ */

static void train_marked(uint64_t k)
{
    OK(stepgraph_step_mark(turn.step, "forward"));
    train(k);
    OK(stepgraph_step_mark(turn.step, "update"));
    count_one(k);
}

static void balanced(const char *json)
{
    int depth = 0, quoted = 0;

    for (; *json != '\0'; json++) {
        if (*json == '\\')
            json++;
        else if (*json == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += *json == '{' || *json == '[' ? 1 : *json == '}' || *json == ']' ? -1 : 0;
        ck_assert_int_ge(depth, 0);
    }
    ck_assert_int_eq(depth, 0);
    ck_assert_int_eq(quoted, 0);
}

START_TEST(reports_tell_stages_counts_and_the_verdict)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_TRACE);
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    const char *text = NULL;

    config.warmup_runs = 4;
    loop_make(&config);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_JSON, &text));
    balanced(text);
    go(0, 50, train_marked);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TEXT, &text));
    ck_assert_msg(lacks(text, (const char *[]){"loop 'train'", "50 steps", "forward", "update", "verdict", "replay", "checks",
                                               NULL}) == NULL,
                  "%s", text);
    if (getenv("LOOP_LOG") != NULL)
        puts(text);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_JSON, &text));
    ck_assert_ptr_null(lacks(text, (const char *[]){"\"stages\"", "\"forward\"", "\"verdict\"", "\"rung\": \"replay\"", NULL}));
    balanced(text);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text));
    ck_assert_ptr_null(
        lacks(text, (const char *[]){"\"traceEvents\"", "step 0: warm-up", "step 49: replay", "\"tid\": 2", "forward", NULL}));
    balanced(text);
    if (getenv("LOOP_LOG") != NULL)
        puts(text);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_report(loop, 9, &text), "form");
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.missing, 0);
    ck_assert_int_eq(verdict.launches, 3);
    OK(stepgraph_loop_begin(loop, 50, &turn));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_loop_report(loop, STEPGRAPH_REPORT_TEXT, &text), "open");
}
END_TEST

/* *weight = *weight + 1 by the driver's own call, which nobody counts. */
static void count_in_silence(uint64_t k)
{
    CUdeviceptr p = stepgraph_pin_address(weight);
    float by = 1;

    (void)k;
    CU(LaunchKernel(kernels.inc, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&p, &by}, NULL));
}

/* The verdict says why it is none, in words and as data; what is known is told all the same. */
START_TEST(verdict_without_a_counter_is_unknown_and_says_so)
{
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    const char *text = NULL;

    loop_make(NULL);
    go(0, 4, count_in_silence); /* Three to warm up, of which the first is none, and a recording. */
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.answer, STEPGRAPH_UNKNOWN);
    ck_assert_uint_eq(verdict.missing, STEPGRAPH_MISSING_COUNTER | STEPGRAPH_MISSING_REPLAYS);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TEXT, &text));
    ck_assert_ptr_null(lacks(text, (const char *[]){"verdict: UNKNOWN (P < L - 1: unknown; time: unknown)",
                                                    "; nobody counts launches; no replay was timed\n", NULL}));
    go(4, 40, count_in_silence);
    OK(stepgraph_session_wait(session));
    take(40, count_in_silence);
    RUNG(REPLAY, NONE);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.answer, STEPGRAPH_UNKNOWN);
    ck_assert_uint_eq(verdict.missing, STEPGRAPH_MISSING_COUNTER);
    ck_assert_int_ge(verdict.rule_time, 0);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_JSON, &text));
    ck_assert_ptr_null(lacks(text, (const char *[]){"\"answer\": \"UNKNOWN\"", "\"launches\": -1", "\"rule_launches\": -1",
                                                    "\"missing\": [\"nobody counts launches\"]", NULL}));
}
END_TEST

START_TEST(trace_is_kept_only_if_asked_for)
{
    const char *text = NULL;

    loop_make(NULL);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text), "STEPGRAPH_LOOP_TRACE");
}
END_TEST

START_TEST(verdict_is_known_after_the_first_replays_and_measuring_stops)
{
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;

    loop_make(NULL);
    go(0, 60, train);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.missing, 0);
    ck_assert_uint_ne(verdict.answer, STEPGRAPH_UNKNOWN);
    ck_assert_uint_eq(verdict.timed_replays, 16);
    ck_assert_double_ne(stats_now().seconds_saved, 0);
}
END_TEST

/* One kernel is slow where the step is recorded, or only where it is launched. */
static void count_slowly(bool slow)
{
    uint64_t ns = slow ? 3000000 : 0;

    launch_n(kernels.spin, 1, (void *[]){&ns});
    count_one(0);
}

static void slow_if_recorded(uint64_t k)
{
    (void)k;
    count_slowly(recording());
}

static void slow_if_launched(uint64_t k)
{
    (void)k;
    count_slowly(!recording());
}

/* The host is slow where it records, and what it passes to a kernel is another value each time. */
static void slow_to_record(uint64_t k)
{
    CUdeviceptr p = stepgraph_pin_address(fresh);
    float value = (float)k;

    if (recording())
        usleep(3000);
    launch_n(kernels.setv, 1, (void *[]){&p, &value});
    count_one(k);
}

START_TEST(k26_slower_than_launching_goes_back_to_launching)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_SOFTWARE_CLOCK | STEPGRAPH_LOOP_NO_CHECK);
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;

    loop_make(&config);
    go(0, 60, _i == 0 ? slow_if_recorded : slow_to_record);
    ck_assert_float_eq(pin_float(weight), 60);
    RUNG(FRESH, CLOCK);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "a step takes"));
    if (_i == 1) /* And why it was. */
        ck_assert_msg(strstr(stats_now().words, "which it has to be: node ") != NULL && strstr(stats_now().words, "setv") != NULL, "%s",
                      stats_now().words);
    ck_assert_uint_ge(stats_now().turns[_i == 0 ? STEPGRAPH_TURN_REPLAY : STEPGRAPH_TURN_RERECORD], 16);
    ck_assert_uint_gt(stats_now().causes[STEPGRAPH_WHY_CLOCK], 10);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    if (_i == 0)
        ck_assert_int_eq(verdict.rule_time, 0);
}
END_TEST

/* What the clock has said is forgotten with the rest, and it is asked again. */
START_TEST(k26_clock_is_asked_again_after_a_drop)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_SOFTWARE_CLOCK | STEPGRAPH_LOOP_NO_CHECK);

    loop_make(&config);
    go(0, 60, slow_to_record);
    RUNG(FRESH, CLOCK);
    OK(stepgraph_loop_drop(loop, STEPGRAPH_KEY_ALL, NULL));
    go(60, 120, slow_to_record);
    RUNG(FRESH, CLOCK);
    ck_assert_uint_ge(stats_now().turns[STEPGRAPH_TURN_RERECORD], 32);
    ck_assert_float_eq(pin_float(weight), 120);
}
END_TEST

START_TEST(faster_than_launching_stays)
{
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_SOFTWARE_CLOCK | STEPGRAPH_LOOP_NO_CHECK);
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;

    loop_make(&config);
    go(0, 60, slow_if_launched);
    ck_assert_float_eq(pin_float(weight), 60);
    RUNG(REPLAY, NONE);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_int_eq(verdict.rule_time, 1);
    ck_assert_double_gt(stats_now().seconds_saved, 0.05); /* 55 replays, each of them 3 ms faster. */
}
END_TEST

static unsigned count_words(const char *text, const char *words)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        n++;
    return n;
}

/* Keep the device busy with something else. */
static CUevent spin_begins(void)
{
    CUevent over;

    OK(stepgraph_session_wait(session));
    CU(EventCreate(&over, CU_EVENT_DISABLE_TIMING));
    spin(stream, 300);
    CU(EventRecord(over, stream));
    return over;
}

START_TEST(trace_keeps_the_latest_turns)
{
    enum { KEPT = 8, STEPS = 30 };
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_TRACE);
    const char *text = NULL;
    char name[40];

    config.trace_turns = KEPT;
    loop_make(&config);
    go(0, STEPS, count_one);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text));
    ck_assert_uint_eq(count_words(text, "\"name\": \"step "), KEPT);
    for (unsigned k = STEPS - KEPT; k < STEPS; k++) {
        snprintf(name, sizeof name, "\"name\": \"step %u: ", k);
        ck_assert_uint_eq(count_words(text, name), 1);
    }
}
END_TEST

/* It keeps the device busy for much longer than the host takes to launch it. */
static void spin_and_count(uint64_t k)
{
    spin(stream, 2);
    count_one(k);
}

START_TEST(trace_shows_the_device_at_one_thing_at_a_time)
{
    enum { AHEAD = 20 };
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_TRACE);
    const char *text = NULL;
    double end = 0;
    unsigned n = 0;

    loop_make(&config);
    go(0, 10, spin_and_count);
    go_ahead(10, 10 + AHEAD);
    OK(stepgraph_session_wait(session));
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text));
    for (const char *at = text; (at = strstr(at, "\"ph\": \"X\", \"pid\": 1, \"tid\": 2, ")) != NULL; at++) {
        double start, lasts;
        ck_assert_int_eq(sscanf(strstr(at, "\"ts\""), "\"ts\": %lf, \"dur\": %lf", &start, &lasts), 2);
        ck_assert_double_ge(start, end - 0.0005); /* In microseconds, written to the nanosecond. */
        end = start + lasts;
        n++;
    }
    ck_assert_uint_ge(n, AHEAD);
}
END_TEST

/* And it still is. */
static void spin_goes_on(CUevent over)
{
    ck_assert_int_eq(cu.EventQuery(over), CUDA_ERROR_NOT_READY);
    CU(EventDestroy(over));
}

START_TEST(measuring_waits_for_nothing)
{
    stepgraph_loop_config config = config_with(_i == 0 ? STEPGRAPH_LOOP_TIMING : STEPGRAPH_LOOP_TRACE);
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    const char *text = NULL;
    unsigned before;
    CUevent over;

    loop_make(&config);
    go(0, 40, count_one);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.timed_replays, 32);
    over = spin_begins();
    go_ahead(40, 90);
    spin_goes_on(over);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.timed_replays, 82);
    RUNG(REPLAY, NONE);
    if (_i == 0)
        return;
    /* And all of them are in the trace, with their time on the device. */
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text));
    before = count_words(text, "\"tid\": 2");
    ck_assert_uint_ge(before, 82);
    go(90, 100, count_one);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text));
    ck_assert_uint_eq(count_words(text, "\"tid\": 2"), before + 10);
}
END_TEST

START_TEST(verdict_waits_for_nothing)
{
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    CUevent over;

    loop_make(NULL);
    go(0, 8, count_one);
    RUNG(REPLAY, NONE);
    over = spin_begins();
    go_ahead(8, 60);
    spin_goes_on(over);
    /* It is taken all the same, a little later, from the first 16. */
    OK(stepgraph_session_wait(session));
    take(60, count_one);
    OK(stepgraph_loop_get_verdict(loop, 0, &verdict));
    ck_assert_uint_eq(verdict.missing, 0);
    ck_assert_uint_eq(verdict.timed_replays, 16);
    ck_assert_double_ne(stats_now().seconds_saved, 0);
}
END_TEST

/* Events are made once, and used again; two a turn, and a question or two. What is in flight before is asked about as well. */
START_TEST(measured_turns_make_few_driver_calls)
{
    static const struct {
        const char *entry;
        unsigned long most;
    } calls[] = {{"cuEventCreate", 0},      {"cuEventRecord", 200}, {"cuEventElapsedTime", 216},
                 {"cuEventSynchronize", 0}, {"cuEventQuery", 0},    {"cuStreamSynchronize", 0},
                 {"cuMemAlloc", 0},         {"cuMemHostAlloc", 0},  {"cuGraphLaunch", 100}};
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_TIMING);
    unsigned long before[sizeof calls / sizeof *calls];

    loop_make(&config);
    go(0, 40, count_one);
    spin(stream, 20); /* Far ahead of the device once, so that there are as many events as there will be. */
    go_ahead(40, 80);
    OK(stepgraph_session_wait(session));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        before[i] = driver_calls(calls[i].entry);
    go_ahead(80, 180);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        ck_assert_msg(driver_calls(calls[i].entry) - before[i] <= calls[i].most, "%lu calls of %s",
                      driver_calls(calls[i].entry) - before[i], calls[i].entry);
}
END_TEST

/* ---- what the driver does not let it do -------------------------------------------------------------------------------- */

static const char *const entries[] = {
    "cuGraphInstantiateWithParams",
    "cuGraphExecUpdate",
    "cuGraphUpload",
    "cuGraphLaunch",
    "cuStreamBeginCapture",
    "cuMemAlloc",
    "cuMemHostAlloc",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventElapsedTime",
    "cuMemcpyHtoDAsync",
    "cuMemcpyDtoHAsync",
    "cuMemsetD8Async",
    "cuStreamSynchronize",
    "cuMemGetInfo",
    "cuGraphGetNodes",
    "cuGraphKernelNodeGetParams",
    "cuStreamGetCaptureInfo",
    "cuEventSynchronize",
};

/* The host gives up where the loop tells it to, and takes the step again where it can. */
START_TEST(failing_driver_call_is_told_or_lived_with)
{
    const char *entry = entries[_i];

    for (unsigned nth = 1; nth <= 12; nth++) {
        stepgraph_loop_config config = config_with(nth % 2 == 0 ? STEPGRAPH_LOOP_RESTORE : 0);
        float zeros[N] = {0};
        uint64_t told = 0;

        unit_leaves_objects(1);
        OK(stepgraph_pin_write(weight, zeros, BYTES));
        config.check_every = 4;
        loop_make(&config);
        for (uint64_t k = 0; k < 30; k++) {
            stepgraph_status status;
            if (k == 1)
                driver_fails(entry, nth, CUDA_ERROR_OUT_OF_MEMORY);
            do {
                status = stepgraph_loop_begin(loop, k, &turn);
                if (status != STEPGRAPH_OK)
                    break;
                if (turn.run)
                    (void)counted(session, NULL, kernels.inc,
                                  (void *[]){&(CUdeviceptr){stepgraph_pin_address(weight)}, &(float){1}});
                status = stepgraph_loop_end(loop, &turn);
            } while (status == STEPGRAPH_OK && turn.again);
            if (status != STEPGRAPH_OK) {
                ck_assert_int_gt(strlen(last_words()), 0);
                told++;
                no_driver_fails();
                OK(stepgraph_loop_cancel(loop));
            }
        }
        no_driver_fails();
        /* A step whose end told of a failure may be done or not; all others are done once. */
        ck_assert_float_le(pin_float(weight), 30);
        ck_assert_float_ge(pin_float(weight), 30 - (float)told);
        ck_assert_uint_le(told, 1);
        stepgraph_loop_destroy(loop);
        loop = NULL;
    }
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop");
    TCase *replays = unit_case(suite, "replays"), *ladder = unit_case(suite, "ladder"), *proofs = unit_case(suite, "proofs");
    TCase *keys = unit_case(suite, "keys"), *misuse = unit_case(suite, "misuse"), *reports = unit_case(suite, "reports");
    TCase *failures = unit_case(suite, "failures");
    TCase *all[] = {replays, ladder, proofs, keys, misuse, reports, failures};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tcase_add_checked_fixture(all[i], setup, teardown);
        tcase_set_timeout(all[i], 60);
    }
    tcase_add_test(replays, loop_ends_with_the_bytes_of_plain_launches);
    tcase_add_loop_test(replays, k17_each_step_is_executed_once, 0, 6);
    tcase_add_test(replays, rehearsals_leave_no_trace);
    tcase_add_test(replays, declared_steps_are_launched_and_no_recording_follows);
    add_controlled_test(replays, replay_makes_no_other_driver_calls_than_a_step_without_loop);
    tcase_add_test(replays, checkpoint_is_loaded_between_steps_and_nothing_is_recorded_anew);

    tcase_add_loop_test(ladder, moved_pointer_is_recorded_every_step_and_updated_in_place, 0, 2);
    tcase_add_test(ladder, memory_without_a_pin_that_stays_is_named);
    tcase_add_loop_test(ladder, address_that_was_left_over_stands_against_nothing, 0, 4);
    tcase_add_loop_test(ladder, what_may_be_padding_is_left_to_the_checks, 0, 2);
    tcase_add_test(ladder, doubt_that_was_refuted_is_not_blamed_later);
    tcase_add_loop_test(ladder, doubt_that_replays_refute_stands_against_nothing, 0, 4);
    tcase_add_loop_test(ladder, address_without_a_pin_that_stays_is_in_doubt_in_a_large_struct, 0, 3);
    tcase_add_test(ladder, pin_beside_memory_that_is_in_doubt_stands_against_nothing);
    tcase_add_loop_test(ladder, address_of_memory_that_cannot_be_put_back_may_be_left_over, 0, 3);
    tcase_add_test(ladder, page_locked_memory_that_changes_in_each_step_is_used);
    tcase_add_test(ladder, page_locked_memory_that_the_host_fills_again_puts_checks_off);
    tcase_add_loop_test(ladder, page_locked_memory_is_looked_at_to_its_last_byte, 0, 3);
    tcase_add_test(ladder, sampled_checks_that_are_put_off_wait_for_their_next_turn);
    tcase_add_loop_test(ladder, memory_in_doubt_takes_two_copies, 0, 2);
    tcase_add_test(ladder, copy_of_memory_without_a_pin_is_named);
    tcase_add_loop_test(ladder, doubt_that_replays_confirm_names_the_cause, 0, 2);
    tcase_add_loop_test(ladder, nothing_is_recorded_once_more_while_an_address_may_move, 0, 2);
    tcase_add_loop_test(ladder, third_recording_tells_what_is_left_over_beside_an_address, 0, 2);
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
    tcase_add_loop_test(ladder, k07_work_that_escapes_from_a_recording_that_is_given_up_is_undone, 0, 2);
    add_controlled_test(ladder, work_that_escapes_and_cannot_be_undone_is_told);
    tcase_add_loop_test(ladder, work_held_back_where_draining_fails_once_is_not_done_twice, 0, 2);
    tcase_add_loop_test(ladder, work_held_back_that_cannot_be_drained_is_told_or_not_checked, 0, 2);
    tcase_add_test(ladder, work_held_back_in_a_turn_that_is_given_up_is_undone);
    add_controlled_loop_test(ladder, call_that_fails_while_escaped_work_is_undone_leaves_no_step_half_done, 0, 5);
    tcase_add_test(ladder, freed_memory_of_an_adopted_pin_costs_one_launch_and_new_recordings);

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

    tcase_add_test(keys, each_key_has_a_graph);
    tcase_add_test(keys, k25_keys_beyond_the_bound_are_launched_and_not_recorded_in_turn);
    tcase_add_test(keys, k25_least_recently_used_graph_makes_room);
    tcase_add_loop_test(keys, k25_key_that_is_idle_longest_makes_room, 0, 3);
    tcase_add_test(keys, key_without_a_graph_gives_none_up);
    tcase_add_test(keys, k25_idle_graph_makes_room_within_the_budget);
    add_controlled_test(keys, executables_are_counted_as_the_driver_does);
    tcase_add_test(keys, k25_graph_beyond_the_budget_is_not_made);
    tcase_add_test(keys, accumulation_takes_a_graph_for_each_phase);

    tcase_add_test(misuse, turn_that_is_to_be_taken_again_cannot_be_left);
    tcase_add_test(misuse, what_cannot_be_done_while_a_turn_records_is_said_in_words_of_the_loop);
    tcase_add_test(misuse, step_of_a_loop_whose_state_was_changed_is_told_of_the_loop);
    tcase_add_loop_test(misuse, what_breaks_the_recording_of_a_turn_is_said_in_words_of_the_loop, 0, 4);
    add_controlled_test(misuse, recording_that_could_not_begin_can_be_cancelled);
    tcase_add_loop_test(misuse, any_turn_can_be_cancelled, 0, 4);
    tcase_add_loop_test(misuse, loop_can_be_destroyed_in_any_turn, 0, 40);
    tcase_add_loop_test(misuse, feed_that_was_forgotten_is_an_error_and_can_be_made_good, 0, 5);
    tcase_add_test(misuse, options_are_checked);

    tcase_add_test(reports, reports_tell_stages_counts_and_the_verdict);
    tcase_add_test(reports, verdict_without_a_counter_is_unknown_and_says_so);
    tcase_add_test(reports, trace_is_kept_only_if_asked_for);
    tcase_add_test(reports, trace_keeps_the_latest_turns);
    tcase_add_test(reports, trace_shows_the_device_at_one_thing_at_a_time);
    tcase_add_test(reports, verdict_is_known_after_the_first_replays_and_measuring_stops);
    tcase_add_loop_test(reports, k26_slower_than_launching_goes_back_to_launching, 0, 2);
    tcase_add_test(reports, k26_clock_is_asked_again_after_a_drop);
    tcase_add_test(reports, faster_than_launching_stays);
    tcase_add_loop_test(reports, measuring_waits_for_nothing, 0, 2);
    tcase_add_test(reports, verdict_waits_for_nothing);
    add_controlled_test(reports, measured_turns_make_few_driver_calls);

    add_controlled_loop_test(failures, failing_driver_call_is_told_or_lived_with, 0, (int)(sizeof entries / sizeof *entries));
    return suite;
}

int main(void)
{
    return unit_main(make);
}
