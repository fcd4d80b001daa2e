/*
 * Introduces what trainers do around their steps, on a loop: a learning rate that follows a schedule, gradients accumulated over
 * several batches, evaluation in between, checkpoints that are saved and loaded, an early end. None of it makes the loop record
 * anything anew. The same training without the loop must end after as many steps, with the same bytes.
 */
#include "stepgraph/stepgraph.h"

#include "training-kernels.h" /* kernels_ptx: training.ptx, embedded by the build. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 24, ROWS = 16, MICRO = 4, STEPS = 1000, EVERY = 10, PATIENCE = 3, CRASH = 37 };

/* A turn does one of these, and each has a graph of its own: it is the turn's key. */
enum { ACCUMULATE, DESCEND, EVALUATE };

struct CUmod_st;

static stepgraph_session *session;
static struct CUfunc_st *kernels[3];
static stepgraph_pin *weight, *gradient, *x, *y, *rate, *loss;

static void check(int status)
{
    stepgraph_error_info error = STEPGRAPH_ERROR_INFO_INIT;

    if (status == 0)
        return;
    stepgraph_last_error(&error);
    fprintf(stderr, "training: failed (%d): %s\n", status, error.message);
    exit(2);
}

/* ---- the host's own work ----------------------------------------------------------------------------------------- */

/* Numbers between -1 and 1 that depend on nothing but these two. */
static float number(uint64_t which, uint64_t i)
{
    uint64_t z = which * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (float)(int64_t)(z >> 40) / 8388608.0f - 1.0f;
}

/* What is to be learned is a line, and a little noise. */
static void feed_batch(uint64_t which)
{
    float rows[ROWS * N], targets[ROWS];

    for (int r = 0; r < ROWS; r++) {
        targets[r] = 0.01f * number(which, (uint64_t)r);
        for (int i = 0; i < N; i++) {
            rows[r * N + i] = number(which, (uint64_t)(1000 + r * N + i));
            targets[r] += rows[r * N + i] * number(0, (uint64_t)i);
        }
    }
    check(stepgraph_pin_feed(x, rows, sizeof rows));
    check(stepgraph_pin_feed(y, targets, sizeof targets));
}

/* Warm up, then go down. */
static float schedule(uint64_t step)
{
    float warm = step < 20 ? (float)(step + 1) / 20.0f : 1.0f;

    return 0.5f * warm / (1.0f + (float)step / 400.0f);
}

static void feed(int what, uint64_t step, uint64_t micro)
{
    if (what == ACCUMULATE)
        feed_batch(1 + step * MICRO + micro);
    else if (what == EVALUATE)
        feed_batch(UINT64_MAX); /* Always the same, and never trained on. */
    else
        check(stepgraph_pin_feed_f32(rate, schedule(step)));
}

static void enqueue(int what)
{
    uint64_t w = stepgraph_pin_address(weight), g = stepgraph_pin_address(gradient), by = stepgraph_pin_address(rate);
    uint64_t in = stepgraph_pin_address(x), out = stepgraph_pin_address(y), mean = stepgraph_pin_address(loss);
    int n = N, rows = ROWS;
    void *arguments[][6] = {{&g, &w, &in, &out, &n, &rows}, {&w, &g, &by, &n}, {&mean, &w, &in, &out, &n, &rows}};
    stepgraph_launch launch = STEPGRAPH_LAUNCH_INIT;

    launch.function = kernels[what];
    launch.arguments = arguments[what];
    launch.block[0] = 32;
    check(stepgraph_session_launch(session, &launch));
}

/* ---- with and without the loop ----------------------------------------------------------------------------------- */

//! [turn]
struct trainer {
    stepgraph_loop *loop; /* NULL: everything is launched. */
    stepgraph_turn turn;
    uint64_t turns;
};

static void take(struct trainer *t, int what, uint64_t step, uint64_t micro)
{
    if (t->loop == NULL) {
        feed(what, step, micro);
        check(stepgraph_session_flush(session)); /* What was fed goes first. */
        enqueue(what);
        return;
    }
    t->turn.key = (uint64_t)what;
    do {
        check(stepgraph_loop_begin(t->loop, t->turns, &t->turn));
        if (t->turn.feed)
            feed(what, step, micro);
        if (t->turn.run)
            enqueue(what);
        check(stepgraph_loop_end(t->loop, &t->turn));
    } while (t->turn.again);
    t->turns++;
}
//! [turn]

struct result {
    float weight[N], loss;
    uint64_t step;
    int loads;
};

//! [train]
struct checkpoint {
    uint64_t step;
    float weight[N], loss;
};

static void save(struct checkpoint *c, uint64_t step, float value)
{
    c->step = step;
    c->loss = value;
    check(stepgraph_pin_read(weight, c->weight, sizeof c->weight));
}

static void load(const struct checkpoint *c)
{
    const float zeros[N] = {0};

    check(stepgraph_pin_write(weight, c->weight, sizeof c->weight)); /* Into the master: the graphs stay as they are. */
    check(stepgraph_pin_write(gradient, zeros, sizeof zeros));
}

static void train(struct trainer *t, struct result *result)
{
    struct checkpoint best = {.step = 0, .loss = 1e30f};
    bool crashed = false;
    int worse = 0;

    save(&best, 0, best.loss);
    for (uint64_t step = 1; step <= STEPS && worse < PATIENCE; step++) {
        for (uint64_t micro = 0; micro < MICRO; micro++)
            take(t, ACCUMULATE, step, micro);
        take(t, DESCEND, step, 0);
        result->step = step;

        if (step == CRASH && !crashed) { /* Let us say that something went wrong. */
            crashed = true;
            load(&best);
            step = best.step;
            result->loads++;
            continue;
        }
        if (step % EVERY != 0)
            continue;
        float value;
        take(t, EVALUATE, step, 0);
        check(stepgraph_pin_read(loss, &value, sizeof value)); /* Waits for the evaluation. */
        worse = value < best.loss ? 0 : worse + 1;
        if (worse == 0)
            save(&best, step, value);
    }
    load(&best);
    result->loss = best.loss;
    check(stepgraph_pin_read(weight, result->weight, sizeof result->weight));
}
//! [train]

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static stepgraph_pin *make_pin(stepgraph_role role, const char *name, uint64_t numbers)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *pin = NULL;

    config.role = role;
    config.name = name;
    config.bytes = numbers * sizeof(float);
    config.type = STEPGRAPH_TYPE_F32;
    check(stepgraph_pin_create(session, &config, &pin));
    return pin;
}

static void *driver_call(const char *name, int version)
{
    void *found = stepgraph_session_symbol(session, name, version);

    if (found == NULL) {
        fprintf(stderr, "training: the driver has no %s\n", name);
        exit(2);
    }
    return found;
}

static struct CUmod_st *load_kernels(void)
{
    static const char *const names[] = {"accumulate", "descend", "evaluate"};
    int (*set_context)(struct CUctx_st *), (*load_module)(struct CUmod_st **, const void *);
    int (*find)(struct CUfunc_st **, struct CUmod_st *, const char *);
    struct CUmod_st *module;

    *(void **)&set_context = driver_call("cuCtxSetCurrent", 4000);
    *(void **)&load_module = driver_call("cuModuleLoadData", 2000);
    *(void **)&find = driver_call("cuModuleGetFunction", 2000);
    check(set_context(stepgraph_session_context(session)));
    check(load_module(&module, kernels_ptx));
    for (int i = 0; i < 3; i++)
        check(find(&kernels[i], module, names[i]));
    return module;
}

int main(void)
{
    const float zeros[N] = {0};
    struct result plain = {0}, looped = {0};
    struct trainer t = {.turn = STEPGRAPH_TURN_INIT};
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;
    struct CUmod_st *module;
    int (*unload)(struct CUmod_st *);

    check(stepgraph_session_open(NULL, &session));
    module = load_kernels();
    weight = make_pin(STEPGRAPH_ROLE_STATE, "weight", N);
    gradient = make_pin(STEPGRAPH_ROLE_STATE, "gradient", N);
    x = make_pin(STEPGRAPH_ROLE_FEED, "x", (uint64_t)ROWS * N);
    y = make_pin(STEPGRAPH_ROLE_FEED, "y", ROWS);
    rate = make_pin(STEPGRAPH_ROLE_CELL, "rate", 1);
    loss = make_pin(STEPGRAPH_ROLE_OUTPUT, "loss", 1);

    train(&t, &plain);
    check(stepgraph_pin_write(weight, zeros, sizeof zeros));
    check(stepgraph_loop_create(session, NULL, &t.loop));
    train(&t, &looped);
    check(stepgraph_loop_get_stats(t.loop, &stats));

    bool same = plain.step == looped.step && memcmp(&plain.loss, &looped.loss, sizeof plain.loss) == 0 &&
                memcmp(plain.weight, looped.weight, sizeof plain.weight) == 0;
    printf("launched: ends after step %llu of %d with a loss of %.9g\n", (unsigned long long)plain.step, STEPS,
           (double)plain.loss);
    printf("on the loop: after step %llu with %.9g: %s\n", (unsigned long long)looped.step, (double)looped.loss,
           same ? "the same, bit for bit" : "WRONG");
    printf("%llu turns, %llu of them replays; %llu graphs from %llu recordings, %d checkpoint loaded on the way\n",
           (unsigned long long)stats.steps, (unsigned long long)stats.turns[STEPGRAPH_TURN_REPLAY],
           (unsigned long long)stats.graphs, (unsigned long long)stats.recordings, looped.loads);
    /* Two recordings for each of the three, and none for anything that came later. */
    bool calm = stats.recordings == 6 && looped.step < STEPS && looped.loads == 1;
    if (!calm)
        fprintf(stderr, "training: that is not what it should have done\n");

    stepgraph_loop_destroy(t.loop);
    stepgraph_pin *const pins[] = {loss, rate, y, x, gradient, weight};
    for (size_t i = 0; i < sizeof pins / sizeof *pins; i++)
        check(stepgraph_pin_destroy(pins[i]));
    *(void **)&unload = driver_call("cuModuleUnload", 2000);
    check(unload(module));
    check(stepgraph_session_close(session));
    return same && calm ? 0 : 1;
}
