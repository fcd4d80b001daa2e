#include "looping.h"

stepgraph_loop *loop;
stepgraph_turn turn;
stepgraph_pin *weight, *fresh, *input, *rate, *loss, *beside;
char lines[64][700];
unsigned n_lines, n_warnings;

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

void make_pins(void)
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

void teardown(void)
{
    stepgraph_loop_destroy(loop);
    loop = NULL;
}

void loop_make(const stepgraph_loop_config *given)
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

stepgraph_loop_config config_with(uint32_t flags)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    config.flags = flags;
    config.name = "train";
    return config;
}

void feed(uint64_t k)
{
    float x[N];

    for (int i = 0; i < N; i++)
        x[i] = (float)((int)((k * 31 + (uint64_t)i * 7) % 17) - 8) / 16.0f;
    OK(stepgraph_pin_feed(input, x, sizeof x));
    OK(stepgraph_pin_feed_f32(rate, 1.0f / (float)(k + 2)));
}

void launch_n(CUfunction function, unsigned threads, void **arguments)
{
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;

    call.function = function;
    call.block[0] = threads;
    call.arguments = arguments;
    OK(stepgraph_session_launch(session, &call));
}

void train(uint64_t k)
{
    CUdeviceptr to = stepgraph_pin_address(fresh), from = stepgraph_pin_address(weight), x = stepgraph_pin_address(input);
    CUdeviceptr by = stepgraph_pin_address(rate), out = stepgraph_pin_address(loss);
    int n = N;

    (void)k;
    launch_n(kernels.update, N, (void *[]){&to, &from, &x, &by, &n});
    OK(stepgraph_pin_commit(weight, to));
    launch_n(kernels.copyf, 1, (void *[]){&out, &from});
}

uint32_t take(uint64_t k, void (*step)(uint64_t))
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

void go(uint64_t from, uint64_t to, void (*step)(uint64_t))
{
    for (uint64_t k = from; k < to; k++)
        take(k, step);
}

void go_ahead(uint64_t from, uint64_t to)
{
    for (uint64_t k = from; k < to; k++) {
        OK(stepgraph_loop_begin(loop, k, &turn));
        ck_assert_int_eq(turn.run, 0);
        OK(stepgraph_loop_end(loop, &turn));
    }
}

bool recording(void)
{
    return loop != NULL && stepgraph_step_state(turn.step) == STEPGRAPH_STEP_CAPTURING;
}

stepgraph_loop_stats stats_now(void)
{
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;

    OK(stepgraph_loop_get_stats(loop, &stats));
    return stats;
}

void without_loop(uint64_t n, void (*step)(uint64_t), float *to)
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

void same_as(const float *want)
{
    float is[N];

    OK(stepgraph_pin_read(weight, is, BYTES));
    for (int i = 0; i < N; i++)
        ck_assert_msg(memcmp(&is[i], &want[i], sizeof is[i]) == 0, "weight[%d] is %.9g instead of %.9g", i, (double)is[i],
                      (double)want[i]);
}

void count_one(uint64_t k)
{
    (void)k;
    counted_inc(session, NULL, stepgraph_pin_address(weight), 1);
}

uint64_t rewound, rewinds;

stepgraph_status note_rewind(void *user, uint64_t k)
{
    *(uint64_t *)user = k;
    rewinds++;
    return STEPGRAPH_OK;
}

CUdeviceptr moving[3];

stepgraph_status enqueue_back(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    train(k);
    return STEPGRAPH_OK;
}

stepgraph_status feed_back(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    feed(k);
    return STEPGRAPH_OK;
}

void train_by_value(uint64_t k)
{
    counted_inc(session, NULL, stepgraph_pin_address(weight), (float)(k % 7));
}

void train_by_value_in_forms(uint64_t k)
{
    counted_inc(session, NULL, stepgraph_pin_address(weight), (float)(k % 5));
    if (k >= 20 && k % 2 == 0)
        counted_inc(session, NULL, stepgraph_pin_address(weight), 1);
}

uint64_t bytes_of_one_graph(void)
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

void train_waiting(uint64_t k)
{
    count_one(k);
    (void)cu.StreamSynchronize(stream);
}

TCase *loop_case(Suite *suite, const char *name)
{
    TCase *made = unit_case(suite, name);

    tcase_add_checked_fixture(made, setup, teardown);
    tcase_set_timeout(made, 60);
    return made;
}
