/*
 * Whole training runs on the loop, with everything that hosts do, in random order from a seed: learning-rate schedules,
 * accumulation, evaluation, checkpoints saved and loaded, steps launched on purpose, turns given up, recordings that break,
 * memory that moves, values passed to kernels, pins registered anew, driver calls that fail. The final state must be that of the
 * same run without a graph, to the bit.
 *
 * The seed is printed; STEPGRAPH_TEST_SEED=N repeats a run, and STEPGRAPH_TEST_STEPS=N makes it longer. 10,000 steps on cusim,
 * 1,000 on a card.
 */
#include <stdbool.h>

#include "support.h"

enum { N = 96, BYTES = N * sizeof(float), SHAPES = 3, SEEDS = 6 };

/* The phases of a step: one key each; training also by shape. */
enum phase { ACCUMULATE, UPDATE = 8, EVALUATE = 9 };

/* What the host does to make it hard. All of it follows from the seed and the step's number, so that both runs do the same. */
enum trouble {
    NONE,
    LAUNCH,   /* This step is launched on purpose. */
    GIVE_UP,  /* A turn is begun and cancelled, and begun again. */
    BREAK,    /* The host waits for the stream inside the step. */
    MOVE,     /* From here on new values stand somewhere else each time. */
    BY_VALUE, /* From here on a scalar is a kernel argument. It is never twice the same, or two recordings would look alike. */
    SETTLE,   /* Neither of both any more. */
    SAVE,     /* A checkpoint is kept, */
    LOAD,     /* and loaded. */
    REGISTER, /* A pin is registered anew. */
    DROP,     /* The host drops a graph. */
    FAIL,     /* A driver call fails, on cusim. */
    TROUBLES
};

static stepgraph_loop *loop;
static stepgraph_turn turn = STEPGRAPH_TURN_INIT;
static stepgraph_pin *w[2], *moment, *gradient, *score, *fresh, *x, *rate, *loss;
static CUdeviceptr moving[3];
static uint64_t first_seed = 1;
static uint64_t steps;

/* The run. */
static uint64_t seed;
static bool moves, by_value;
static float checkpoint[4][N];
static bool has_checkpoint;

static uint32_t draw(uint64_t k, uint32_t what)
{
    uint64_t mix = seed * 0x9e3779b97f4a7c15ull + k * 0xbf58476d1ce4e5b9ull + what;

    return unit_random(&mix);
}

static enum trouble trouble_of(uint64_t k)
{
    uint32_t which = draw(k, 1) % 1000;
    static const struct {
        uint32_t below;
        enum trouble trouble;
    } odds[] = {{20, LAUNCH}, {40, GIVE_UP}, {45, BREAK},    {47, MOVE}, {49, BY_VALUE}, {59, SETTLE},
                {69, SAVE},   {75, LOAD},    {78, REGISTER}, {81, DROP}, {86, FAIL}};

    if (k < 24 && which % 4 == 0) /* Where all that comes before a replay happens. */
        return FAIL;
    for (size_t i = 0; i < sizeof odds / sizeof *odds; i++)
        if (which < odds[i].below)
            return odds[i].trouble;
    return NONE;
}

/* Four micro-steps and an update; now and then an evaluation. */
static uint64_t key_of(uint64_t k)
{
    if (draw(k / 50, 2) % 4 == 0 && k % 50 >= 45)
        return EVALUATE;
    return k % 5 == 4 ? UPDATE : ACCUMULATE + draw(k / 64, 3) % SHAPES;
}

/* ---- the host's step --------------------------------------------------------------------------------------------- */

/* Once more where a driver call fails. */
#define AGAIN(call)                       \
    do {                                  \
        if ((call) != STEPGRAPH_OK)       \
            OK(call);                     \
    } while (0)

static void feed(uint64_t k)
{
    float values[N], step = (float)(k % 1000), warm = step < 100 ? step / 100 : 1;

    for (int i = 0; i < N; i++)
        values[i] = (float)((int)(draw(k, 100 + (uint32_t)i) % 64) - 32) / 64.0f;
    AGAIN(stepgraph_pin_feed(x, values, sizeof values));
    AGAIN(stepgraph_pin_feed_f32(rate, 0.01f * warm * (1.0f - step / 2000.0f)));
}

static void launch_n(CUfunction function, unsigned threads, void **arguments)
{
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;

    call.function = function;
    call.block[0] = threads;
    call.arguments = arguments;
    /* While a recording is broken it may fail, which the recording's end tells. */
    if (stepgraph_session_launch(session, &call) != STEPGRAPH_OK)
        (void)stepgraph_session_launch(session, &call);
}

static void commit(stepgraph_pin *pin, CUdeviceptr to)
{
    if (stepgraph_pin_commit(pin, to) != STEPGRAPH_OK)
        (void)stepgraph_pin_commit(pin, to);
}

static void accumulate(uint64_t k, unsigned shape)
{
    CUdeviceptr g = stepgraph_pin_address(gradient), a = stepgraph_pin_address(w[0]), in = stepgraph_pin_address(x);
    CUdeviceptr by = stepgraph_pin_address(rate), out = stepgraph_pin_address(loss),
                to = moves ? moving[k % 3] : stepgraph_pin_address(fresh);
    int n = N >> shape;
    float value = by_value ? (float)(k % 4096) / 65536.0f : 0.25f;

    launch_n(kernels.update, N, (void *[]){&to, &a, &in, &by, &n});
    launch_n(kernels.addn, N, (void *[]){&to, &value, &n});
    launch_n(kernels.update, N, (void *[]){&g, &g, &to, &by, &n});
    launch_n(kernels.copyf, 1, (void *[]){&out, &g});
}

static void step_mark(const char *name)
{
    if (loop != NULL)
        (void)stepgraph_step_mark(turn.step, name);
}

static void update_all(uint64_t k)
{
    CUdeviceptr g = stepgraph_pin_address(gradient), m = stepgraph_pin_address(moment), by = stepgraph_pin_address(rate);
    CUdeviceptr a = stepgraph_pin_address(w[0]), b = stepgraph_pin_address(w[1]),
                to = moves ? moving[k % 3] : stepgraph_pin_address(fresh);
    float zero = 0, decay = by_value ? -(float)(k % 4096) / 65536.0f : -0.125f;
    int n = N;

    step_mark("moments");
    launch_n(kernels.update, N, (void *[]){&m, &m, &g, &by, &n});
    launch_n(kernels.addn, N, (void *[]){&m, &decay, &n});
    step_mark("weights");
    launch_n(kernels.update, N, (void *[]){&to, &a, &m, &by, &n});
    commit(w[0], to);
    launch_n(kernels.update, N, (void *[]){&to, &b, &a, &by, &n});
    commit(w[1], to);
    launch_n(kernels.setv, 1, (void *[]){&g, &zero});
}

static void evaluate(void)
{
    CUdeviceptr s = stepgraph_pin_address(score), b = stepgraph_pin_address(w[1]), by = stepgraph_pin_address(rate),
                out = stepgraph_pin_address(loss);
    int n = N;

    launch_n(kernels.update, N, (void *[]){&s, &s, &b, &by, &n});
    launch_n(kernels.copyf, 1, (void *[]){&out, &s});
}

static void train_step(uint64_t k)
{
    uint64_t key = key_of(k);

    if (key == UPDATE)
        update_all(k);
    else if (key == EVALUATE)
        evaluate();
    else
        accumulate(k, (unsigned)key);
    if (trouble_of(k) == BREAK)
        (void)cu.StreamSynchronize(stream);
}

/* ---- one step, with and without a loop ------------------------------------------------------------------------------ */

static void give_up(uint64_t k)
{
    OK(stepgraph_loop_begin(loop, k, &turn));
    /* A turn that the host launches is given up before it does. */
    if (turn.kind == STEPGRAPH_TURN_RECORD || turn.kind == STEPGRAPH_TURN_RERECORD || turn.kind == STEPGRAPH_TURN_REHEARSAL)
        train_step(k);
    OK(stepgraph_loop_cancel(loop));
}

/* Some call of the turns of a step. */
static void let_fail(uint64_t k)
{
    static const char *const entries[] = {
        "cuGraphLaunch",       "cuGraphExecUpdate", "cuGraphInstantiateWithParams", "cuStreamBeginCapture", "cuGraphUpload",      "cuCtxPushCurrent", "cuLaunchKernel",
        "cuMemcpyHtoDAsync",   "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync",            "cuMemsetD8Async",      "cuStreamSynchronize", "cuEventRecord",    "cuEventQuery",
        "cuEventElapsedTime",  "cuMemAlloc",        "cuMemHostAlloc",               "cuMemGetInfo",         "cuCtxSynchronize",    "cuGraphGetNodes",  "cuPointerGetAttributes",
    };
    const uint32_t entry = draw(k, 4) % (sizeof entries / sizeof *entries);

    driver_fails(entries[entry], entry < 5 ? 1 : 1 + draw(k, 5) % 12, draw(k, 6) % 2 != 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN);
}

static stepgraph_status round_of(uint64_t k)
{
    stepgraph_status status = stepgraph_loop_begin(loop, k, &turn);

    if (status != STEPGRAPH_OK)
        return status;
    if (turn.feed)
        feed(k);
    if (turn.run)
        train_step(k);
    return stepgraph_loop_end(loop, &turn);
}

static void take(uint64_t k)
{
    enum trouble trouble = trouble_of(k);
    stepgraph_status status;

    turn.key = key_of(k);
    turn.flags = trouble == LAUNCH ? STEPGRAPH_TURN_LAUNCH : 0;
    if (trouble == GIVE_UP)
        give_up(k);
    if (trouble == FAIL && unit_has_controls())
        let_fail(k);
    do {
        status = round_of(k);
        if (status == STEPGRAPH_OK)
            continue;
        /* The step is not done. */
        ck_assert_msg(trouble == FAIL, "seed %llu, step %llu: %s", (unsigned long long)seed, (unsigned long long)k, last_words());
        trouble = NONE;
        OK(stepgraph_loop_cancel(loop));
    } while (status != STEPGRAPH_OK || turn.again);
    no_driver_fails();
}

static void take_plainly(uint64_t k)
{
    feed(k);
    OK(stepgraph_session_flush(session));
    train_step(k);
}

static void states(void (*each)(stepgraph_pin *, float *), float (*to)[N])
{
    stepgraph_pin *pins[] = {w[0], w[1], moment, gradient};

    for (int i = 0; i < 4; i++)
        each(pins[i], to[i]);
}

static void read_pin(stepgraph_pin *pin, float *to)
{
    OK(stepgraph_pin_read(pin, to, BYTES));
}

static void write_pin(stepgraph_pin *pin, float *from)
{
    OK(stepgraph_pin_write(pin, from, BYTES));
}

static void register_anew(void)
{
    float saved[N];

    read_pin(moment, saved);
    if (loop != NULL)
        OK(stepgraph_loop_drop(loop, STEPGRAPH_KEY_ALL, "a pin is registered anew"));
    drop_pin(moment);
    moment = pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, "moment");
    write_pin(moment, saved);
}

static void run(void)
{
    moves = by_value = has_checkpoint = false;
    for (uint64_t k = 0; k < steps; k++) {
        enum trouble trouble = trouble_of(k);
        bool other = trouble == MOVE ? !moves : trouble == BY_VALUE ? !by_value : trouble == SETTLE ? moves || by_value : false;

        moves = trouble == SETTLE ? false : moves || trouble == MOVE;
        by_value = trouble == SETTLE ? false : by_value || trouble == BY_VALUE;
        /* The host goes on with other launches than before, and says so. */
        if (loop != NULL && other)
            OK(stepgraph_loop_drop(loop, STEPGRAPH_KEY_ALL, "other launches"));
        if (trouble == SAVE) {
            states(read_pin, checkpoint);
            has_checkpoint = true;
        }
        if (trouble == LOAD && has_checkpoint)
            states(write_pin, checkpoint);
        if (trouble == REGISTER)
            register_anew();
        if (loop != NULL && trouble == DROP)
            OK(stepgraph_loop_drop(loop, key_of(k), NULL));
        if (loop != NULL)
            take(k);
        else
            take_plainly(k);
    }
}

/* ---- runs ------------------------------------------------------------------------------------------------------------ */

static void pins_make(void)
{
    static const char *const names[] = {"w0", "w1"};

    for (int i = 0; i < 2; i++)
        w[i] = pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, names[i]);
    moment = pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, "moment");
    gradient = pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, "gradient");
    score = pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, "score");
    fresh = pin_make(session, STEPGRAPH_ROLE_SCRATCH, BYTES, "fresh");
    x = pin_make(session, STEPGRAPH_ROLE_FEED, BYTES, "x");
    rate = pin_make(session, STEPGRAPH_ROLE_CELL, sizeof(float), "rate");
    loss = pin_make(session, STEPGRAPH_ROLE_OUTPUT, sizeof(float), "loss");
    for (int i = 0; i < 3; i++)
        moving[i] = device_make(BYTES);
}

static void read_all(float to[6][N])
{
    stepgraph_pin *pins[] = {w[0], w[1], moment, gradient, score};

    memset(to[5], 0, BYTES);
    for (int i = 0; i < 5; i++)
        read_pin(pins[i], to[i]);
    OK(stepgraph_pin_read(loss, to[5], sizeof(float)));
}

/* Random numbers to begin with, the same for both runs. */
static void write_all(void)
{
    stepgraph_pin *pins[] = {w[0], w[1], moment, gradient, score, fresh};
    float values[N];

    for (uint32_t i = 0; i < 6; i++) {
        for (uint32_t j = 0; j < N; j++)
            values[j] = (float)(draw(i, 1000 + j) % 1000) / 1000.0f;
        write_pin(pins[i], values);
    }
    for (uint32_t i = 0; i < 3; i++)
        put_bytes(moving[i], values, BYTES);
}

static stepgraph_loop_config options(void)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    config.name = "run";
    /* Steps as small as these may be as fast launched as replayed: the clock decides nothing. */
    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK | (draw(0, 10) % 2 != 0 ? STEPGRAPH_LOOP_RESTORE : 0) |
                   (draw(0, 11) % 4 == 0 ? STEPGRAPH_LOOP_NO_CHECK : 0) | (draw(0, 12) % 3 == 0 ? STEPGRAPH_LOOP_TIMING : 0) |
                   (draw(0, 13) % 4 == 0 ? STEPGRAPH_LOOP_TRACE : 0) | (draw(0, 14) % 4 == 0 ? STEPGRAPH_LOOP_NO_RERECORD : 0);
    config.step_flags = draw(0, 15) % 2 != 0 ? STEPGRAPH_STEP_STRICT_FEEDS : 0;
    config.warmup_runs = 1 + draw(0, 16) % 4;
    config.fresh_every = draw(0, 17) % 2 != 0 ? 100 + draw(0, 17) % 400 : 0;
    config.check_every = draw(0, 18) % 2 != 0 ? 50 + draw(0, 18) % 100 : 0;
    config.max_graphs = draw(0, 19) % 2 != 0 ? 3 : 0;
    config.graph_bytes = draw(0, 20) % 4 == 0 ? 60000 : 0;
    return config;
}

/* card.py reads this line. */
static void tell(const stepgraph_loop_stats *stats)
{
    const struct {
        uint64_t n;
        const char *what;
    } counts[] = {
        {stats->turns[STEPGRAPH_TURN_REPLAY], "replayed"},
        {stats->turns[STEPGRAPH_TURN_RERECORD], "recorded anew"},
        {stats->turns[STEPGRAPH_TURN_FALLBACK], "fallbacks"},
        {stats->turns[STEPGRAPH_TURN_WARMUP] + stats->turns[STEPGRAPH_TURN_FRESH], "launched"},
        {stats->turns[STEPGRAPH_TURN_CHECK], "checked"},
        {stats->recordings, "recordings"},
        {stats->recordings_failed, "recordings that failed"},
        {stats->retries, "retries"},
        {stats->cancelled, "given up"},
        {stats->graphs_dropped, "graphs dropped"},
    };

    printf("seed %llu, %llu steps equal bit for bit: ", (unsigned long long)seed, (unsigned long long)stats->steps);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        printf("%s%llu %s", i > 0 ? ", " : "", (unsigned long long)counts[i].n, counts[i].what);
    printf("\n");
}

START_TEST(run_with_graphs_ends_as_the_run_without)
{
    static float want[6][N], is[6][N];
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;
    stepgraph_loop_config config;
    const char *text = NULL;

    seed = first_seed + (uint64_t)_i;
    config = options();
    unit_leaves_objects(1); /* What a driver call was to free that fails on request. */
    loop = NULL;
    pins_make();
    write_all();
    run();
    read_all(want);

    write_all();
    OK(stepgraph_loop_create(session, &config, &loop));
    turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
    run();
    read_all(is);
    OK(stepgraph_loop_get_stats(loop, &stats));
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TEXT, &text));
    for (int i = 0; i < 6; i++)
        ck_assert_msg(memcmp(is[i], want[i], BYTES) == 0, "seed %llu: state %d differs; %s", (unsigned long long)seed, i, text);
    ck_assert_uint_eq(stats.steps, steps);
    ck_assert_uint_eq(stats.checks_diverged, 0);
    ck_assert_uint_gt(stats.turns[STEPGRAPH_TURN_REPLAY], steps / 20);
    tell(&stats);
    stepgraph_loop_destroy(loop);
    loop = NULL;
    for (int i = 0; i < 3; i++)
        device_drop(moving[i]);
}
END_TEST

static void teardown(void)
{
    stepgraph_loop_destroy(loop);
    loop = NULL;
}

static Suite *make(void)
{
    Suite *suite = suite_create("loop runs");
    TCase *runs = unit_case(suite, "runs");

    if (steps == 0)
        steps = unit_has_controls() ? 10000 : 1000;
    tcase_add_checked_fixture(runs, NULL, teardown);
    tcase_set_timeout(runs, 600);
    tcase_add_loop_test(runs, run_with_graphs_ends_as_the_run_without, 0, SEEDS);
    return suite;
}

int main(void)
{
    if (getenv("STEPGRAPH_TEST_SEED"))
        first_seed = strtoull(getenv("STEPGRAPH_TEST_SEED"), NULL, 0);
    if (getenv("STEPGRAPH_TEST_STEPS"))
        steps = strtoull(getenv("STEPGRAPH_TEST_STEPS"), NULL, 0);
    printf("seeds %llu to %llu\n", (unsigned long long)first_seed, (unsigned long long)first_seed + SEEDS - 1);
    return unit_main(make);
}
