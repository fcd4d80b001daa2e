/*
 * Memset nodes raise the host time of a graph launch. The library adds nothing to that: its replay against cuGraphLaunch, with one memset
 * in so many nodes.
 */
#include "bench.h"

enum { NODES = 1000 };

struct sets {
    stepgraph_pin *pin;
    stepgraph_step *step;
    CUgraphExec exec;
};

static double ours(void *user)
{
    const struct sets *s = user;
    double start = bench_now_us(), us;

    for (int i = 0; i < 16; i++)
        OK(stepgraph_step_replay(s->step));
    us = (bench_now_us() - start) / 16;
    bench_sync();
    return us;
}

static double raw(void *user)
{
    const struct sets *s = user;
    double start = bench_now_us(), us;

    for (int i = 0; i < 16; i++)
        CU(GraphLaunch(s->exec, stream));
    us = (bench_now_us() - start) / 16;
    bench_sync();
    return us;
}

/* Every so many nodes one is a memset; 0: none. */
static void make(struct sets *s, unsigned nodes, unsigned every)
{
    CUdeviceptr p;

    s->pin = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, 4096, "state");
    p = stepgraph_pin_address(s->pin);
    s->step = bench_step(session, "sets", 0);
    OK(stepgraph_step_prepare(s->step));
    OK(stepgraph_step_capture(s->step));
    for (unsigned i = 0; i < nodes; i++)
        if (every != 0 && i % every == 0)
            CU(MemsetD8Async(p, 0, 4096, stream));
        else
            bench_launches(stream, p, 1);
    OK(stepgraph_step_end(s->step));
    s->exec = bench_instantiate(stepgraph_step_graph(s->step));
    CU(GraphUpload(s->exec, stream));
    bench_sync();
}

static void drop(struct sets *s)
{
    bench_sync();
    CU(GraphExecDestroy(s->exec));
    stepgraph_step_destroy(s->step);
    OK(stepgraph_pin_destroy(s->pin));
}

static void measure(void)
{
    static const unsigned every[] = { 0, 100, 10, 2 };

    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        unsigned sets = every[i] ? NODES / every[i] : 0;
        struct sets s;
        bench_pair pair;
        make(&s, NODES, every[i]);
        pair = bench_alternate(ours, raw, &s, 800);
        /* Launches of 200 us vary by more than the 0.1 us of one without sets. */
        bench_add("replay by memsets in 1000 nodes", sets, "us", &pair, sets ? BENCH_RATIO : BENCH_DIFFERENCE, sets ? 1.05 : 0.1, true,
                  "replay, %u sets in %u nodes / launch", sets, (unsigned)NODES);
        drop(&s);
    }
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work(void)
{
    struct sets s;

    make(&s, 200, 2);
    bench_work_begin();
    for (int i = 0; i < 100; i++)
        OK(stepgraph_step_replay(s.step));
    WORK_IS("100 replays of 100 memsets", 0, 0, { "cuCtxGetId", 100 }, { "cuGraphLaunch", 100 });
    drop(&s);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "sets", measure, check_work);
}
