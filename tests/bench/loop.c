/*
 * The loop: host time of begin and end around a replay over cuGraphLaunch of the same graph, with one key and with two by turns;
 * what measuring costs, also against the events that it takes at least; a step that is recorded every time against one that is
 * launched.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

/* Measured bursts are as long as a host may be ahead of the device with all of it measured. */
enum { NODES = 100, BURST = 32, MEASURED_BURST = 16 };

struct turns {
    stepgraph_loop *loop;
    stepgraph_turn turn;
    stepgraph_pin *state;
    CUgraph graph;
    CUgraphExec exec; /* The same launches, recorded by driver calls. */
    CUevent events[MEASURED_BURST][2];
    unsigned nodes, keys;
    float value; /* Of every launch. */
    bool moves;  /* It is another one each time. */
    uint64_t k;
};

static void step(struct turns *t)
{
    CUdeviceptr p = stepgraph_pin_address(t->state);
    void *arguments[] = {&p, &t->value};

    if (t->moves)
        t->value = (float)(t->k % 1000);
    for (unsigned i = 0; i < t->nodes; i++)
        CU(LaunchKernel(kernels.inc, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, t->nodes);
}

static void take(struct turns *t)
{
    t->turn.key = t->keys > 1 ? t->k % t->keys : 0;
    do {
        OK(stepgraph_loop_begin(t->loop, t->k, &t->turn));
        if (t->turn.run)
            step(t);
        OK(stepgraph_loop_end(t->loop, &t->turn));
    } while (t->turn.again);
    t->k++;
}

static void open_loop(struct turns *t, unsigned nodes, unsigned keys, bool moves, uint32_t flags)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    *t = (struct turns){.nodes = nodes, .keys = keys, .moves = moves, .value = 1, .turn = STEPGRAPH_TURN_INIT};
    config.flags = flags | STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.executables = 1; /* The only one that is measured. */
    t->state = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, 4, "state");
    OK(stepgraph_loop_create(session, &config, &t->loop));
    for (unsigned i = 0; i < 42 * keys; i++) {
        take(t);
        bench_sync(); /* Its time is there, so the verdict comes early. */
    }
    t->graph = bench_capture_raw(stepgraph_pin_address(t->state), nodes);
    t->exec = bench_instantiate(t->graph);
    CU(GraphUpload(t->exec, stream));
    for (unsigned i = 0; i < MEASURED_BURST; i++)
        for (unsigned j = 0; j < 2; j++) {
            CU(EventCreate(&t->events[i][j], CU_EVENT_DEFAULT));
            CU(EventRecord(t->events[i][j], stream));
        }
    bench_sync();
}

static void close_loop(struct turns *t)
{
    bench_sync();
    stepgraph_loop_destroy(t->loop);
    CU(GraphExecDestroy(t->exec));
    CU(GraphDestroy(t->graph));
    for (unsigned i = 0; i < MEASURED_BURST; i++)
        for (unsigned j = 0; j < 2; j++)
            CU(EventDestroy(t->events[i][j]));
    OK(stepgraph_pin_destroy(t->state));
}

static double turns(struct turns *t, unsigned n)
{
    double start = bench_now_us(), us;

    for (unsigned i = 0; i < n; i++)
        take(t);
    us = (bench_now_us() - start) / n;
    bench_sync();
    return us;
}

static double launches(const struct turns *t, unsigned n)
{
    double start = bench_now_us(), us;

    for (unsigned i = 0; i < n; i++)
        CU(GraphLaunch(t->exec, stream));
    us = (bench_now_us() - start) / n;
    bench_sync();
    return us;
}

static double ours(void *user)
{
    return turns(user, BURST);
}

static double raw(void *user)
{
    return launches(user, BURST);
}

static double ours_measured(void *user)
{
    return turns(user, MEASURED_BURST);
}

static double raw_unmeasured(void *user)
{
    return launches(user, MEASURED_BURST);
}

/* The least that measuring takes: an event before, one after, and the time between two that are over. */
static double raw_measured(void *user)
{
    const struct turns *t = user;
    double start = bench_now_us(), us;
    float milliseconds;

    for (unsigned i = 0; i < MEASURED_BURST; i++) {
        CU(EventElapsedTime(&milliseconds, t->events[i][0], t->events[i][1]));
        CU(EventRecord(t->events[i][0], stream));
        CU(GraphLaunch(t->exec, stream));
        CU(EventRecord(t->events[i][1], stream));
    }
    us = (bench_now_us() - start) / MEASURED_BURST;
    bench_sync();
    return us;
}

/* One step, launched call by call. */
static double launched(void *user)
{
    struct turns *t = user;
    double start = bench_now_us(), us;

    step(t);
    us = bench_now_us() - start;
    bench_sync();
    return us;
}

static double recorded(void *user)
{
    struct turns *t = user;
    double start = bench_now_us(), us;

    take(t);
    us = bench_now_us() - start;
    bench_sync();
    return us;
}

static void measure(void)
{
    static const unsigned sizes[] = {100, 1000, 5000};
    struct turns t;
    bench_pair pair;

    open_loop(&t, NODES, 1, false, 0);
    pair = bench_alternate(ours, raw, &t, 500);
    bench_add("turn of a loop", NODES, "us", &pair, BENCH_DIFFERENCE, 0.3, true, "a turn that replays %u nodes / cuGraphLaunch",
              NODES);
    close_loop(&t);

    open_loop(&t, NODES, 2, false, 0);
    pair = bench_alternate(ours, raw, &t, 500);
    bench_add("turn of a loop", NODES, "us", &pair, BENCH_DIFFERENCE, 0.3, true, "turns of two keys / cuGraphLaunch");
    close_loop(&t);

    for (int traced = 0; traced < 2; traced++) {
        const char *what = traced ? "traced" : "measured";
        open_loop(&t, NODES, 1, false, traced ? STEPGRAPH_LOOP_TRACE : STEPGRAPH_LOOP_TIMING);
        pair = bench_alternate(ours_measured, raw_unmeasured, &t, 500);
        bench_add("turn of a loop, measured", NODES, "us", &pair, BENCH_DIFFERENCE, 10, true, "a %s turn / cuGraphLaunch", what);
        pair = bench_alternate(ours_measured, raw_measured, &t, 500);
        bench_add("turn of a loop, measured, over its events", NODES, "us", &pair, BENCH_RATIO, 1.2, true,
                  "a %s turn / two events and cuGraphLaunch", what);
        close_loop(&t);
    }

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (bench_skips(sizes[i], 1000))
            continue;
        open_loop(&t, sizes[i], 1, true, 0);
        pair = bench_alternate(recorded, launched, &t, 1000);
        bench_add("step that is recorded every time", sizes[i], "us", &pair, BENCH_RATIO, 1, sizes[i] == 1000,
                  "record, update and launch %u nodes / launches", sizes[i]);
        close_loop(&t);
    }
}

static void check_work(void)
{
    struct turns t;

    open_loop(&t, NODES, 1, false, 0);
    bench_work_begin();
    for (int i = 0; i < 100; i++)
        take(&t);
    WORK_IS("100 turns that replay", 0, 0, {"cuCtxGetId", 100}, {"cuGraphLaunch", 100});
    close_loop(&t);

    open_loop(&t, NODES, 2, false, 0);
    bench_work_begin();
    for (int i = 0; i < 100; i++)
        take(&t);
    WORK_IS("100 turns that replay, of two keys", 0, 0, {"cuCtxGetId", 100}, {"cuGraphLaunch", 100});
    close_loop(&t);

    open_loop(&t, NODES, 1, false, STEPGRAPH_LOOP_TIMING);
    bench_work_begin();
    for (int i = 0; i < 100; i++) {
        take(&t);
        bench_sync();
    }
    WORK_IS("100 turns that replay and are measured", 0, 0, {"cuCtxGetId", 100}, {"cuCtxPushCurrent", 100},
            {"cuCtxPopCurrent", 100}, {"cuEventRecord", 200}, {"cuEventElapsedTime", 100}, {"cuGraphLaunch", 100},
            {"cuStreamSynchronize", 100}); /* Ours above. */
    close_loop(&t);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "loop", measure, check_work);
}
