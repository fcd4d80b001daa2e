/*
 * Memset nodes raise the host time of a graph launch, so a step launches kernels in their place: a replay with one memset in so many nodes
 * against cuGraphLaunch of what was recorded; what the kernel takes on the device against the node; and what rewriting the graph costs.
 */
#include "bench.h"

enum { NODES = 1000, BIG = 2600 };

struct sets {
    stepgraph_pin *pin;
    stepgraph_step *step;
    CUgraphExec exec;
    CUdeviceptr p;
    unsigned nodes, every;
    int burst;
};

static double ours(void *user)
{
    const struct sets *s = user;
    double start = bench_now_us(), us;

    for (int i = 0; i < s->burst; i++)
        OK(stepgraph_step_replay(s->step));
    us = (bench_now_us() - start) / s->burst;
    bench_sync();
    return us;
}

static double raw(void *user)
{
    const struct sets *s = user;
    double start = bench_now_us(), us;

    for (int i = 0; i < s->burst; i++)
        CU(GraphLaunch(s->exec, stream));
    us = (bench_now_us() - start) / s->burst;
    bench_sync();
    return us;
}

/* Every so many nodes one is a memset; 0: none. */
static void record(struct sets *s)
{
    OK(stepgraph_step_prepare(s->step));
    OK(stepgraph_step_capture(s->step));
    for (unsigned i = 0; i < s->nodes; i++)
        if (s->every != 0 && i % s->every == 0)
            CU(MemsetD8Async(s->p, 0, 4096, stream));
        else
            bench_launches(stream, s->p, 1);
    OK(stepgraph_step_end(s->step));
}

static void make(struct sets *s, unsigned nodes, unsigned every, uint32_t flags)
{
    *s = (struct sets){ .nodes = nodes, .every = every, .burst = 16 };
    s->pin = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, 4096, "state");
    s->p = stepgraph_pin_address(s->pin);
    s->step = bench_step(session, "sets", flags);
    record(s);
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

static void replays(void)
{
    static const unsigned every[] = { 0, 100, 50, 10, 2 };

    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        unsigned sets = every[i] ? NODES / every[i] : 0;
        struct sets s;
        bench_pair pair;
        make(&s, NODES, every[i], 0);
        pair = bench_alternate(ours, raw, &s, 500);
        bench_add("replay by memsets in 1000 nodes", sets, "us", &pair, sets ? BENCH_RATIO : BENCH_DIFFERENCE,
                  sets >= 100 ? 0.34 : sets ? 1.05 : 0.1, true, "replay, %u sets in %u nodes / launch", sets, (unsigned)NODES);
        drop(&s);
    }
}

static void as_recorded(void)
{
    struct sets s;
    bench_pair pair;

    make(&s, NODES, 10, STEPGRAPH_STEP_AS_RECORDED);
    pair = bench_alternate(ours, raw, &s, 500);
    bench_add("replay of memsets as recorded", NODES / 10, "us", &pair, BENCH_RATIO, 1.05, true, "replay, 100 sets, as recorded / launch");
    drop(&s);
}

/* ---- on the device ------------------------------------------------------------------------------------------------- */

static double device_ours(void *user)
{
    const struct sets *s = user;

    bench_device_start();
    for (int i = 0; i < s->burst; i++)
        OK(stepgraph_step_replay(s->step));
    return bench_device_stop() / s->burst;
}

static double device_raw(void *user)
{
    const struct sets *s = user;

    bench_device_start();
    for (int i = 0; i < s->burst; i++)
        CU(GraphLaunch(s->exec, stream));
    return bench_device_stop() / s->burst;
}

/* 20 sets of so many bytes. */
static void by_bytes(void)
{
    static const uint64_t sizes[] = { 4, 4096, 65536, 1 << 20, 16 << 20, 256 << 20 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct sets s = { .burst = 4 };
        bench_pair pair;
        if (bench_skips(sizes[i], 1 << 20))
            continue;
        s.pin = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, sizes[i], "state");
        s.step = bench_step(session, "bytes", 0);
        OK(stepgraph_step_prepare(s.step));
        OK(stepgraph_step_capture(s.step));
        for (int k = 0; k < 20; k++)
            CU(MemsetD8Async(stepgraph_pin_address(s.pin), 0, sizes[i], stream));
        OK(stepgraph_step_end(s.step));
        s.exec = bench_instantiate(stepgraph_step_graph(s.step));
        CU(GraphUpload(s.exec, stream));
        pair = bench_alternate(device_ours, device_raw, &s, 200);
        bench_add("device time of sets by bytes", (double)sizes[i], "us", &pair, BENCH_RATIO, 1.1, sizes[i] == 4096 || sizes[i] == 256 << 20,
                  "device: 20 sets of %llu bytes / as nodes", (unsigned long long)sizes[i]);
        drop(&s);
    }
}

/* ---- rewriting ----------------------------------------------------------------------------------------------------- */

struct both {
    struct sets rewritten, recorded;
};

static double end_of(struct sets *s)
{
    double start;

    OK(stepgraph_step_reset(s->step));
    OK(stepgraph_step_prepare(s->step));
    OK(stepgraph_step_capture(s->step));
    for (unsigned i = 0; i < s->nodes; i++)
        if (i % s->every == 0)
            CU(MemsetD8Async(s->p, 0, 4096, stream));
        else
            bench_launches(stream, s->p, 1);
    start = bench_now_us();
    OK(stepgraph_step_end(s->step));
    start = bench_now_us() - start;
    bench_sync();
    return start;
}

static double end_rewritten(void *user)
{
    return end_of(&((struct both *)user)->rewritten);
}

static double end_recorded(void *user)
{
    return end_of(&((struct both *)user)->recorded);
}

static void rewriting(void)
{
    static const unsigned every[] = { 44, 10 };

    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        struct both b;
        bench_pair pair;
        if (bench_skips(BIG, 1000))
            continue;
        b.rewritten = b.recorded = (struct sets){ .nodes = BIG, .every = every[i] };
        b.rewritten.pin = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, 4096, "state");
        b.rewritten.p = b.recorded.p = stepgraph_pin_address(b.rewritten.pin);
        b.rewritten.step = bench_step(session, "rewritten", 0);
        b.recorded.step = bench_step(session, "recorded", STEPGRAPH_STEP_AS_RECORDED);
        pair = bench_alternate(end_rewritten, end_recorded, &b, 500);
        bench_add("end with memsets in 2600 nodes", BIG / every[i], "us", &pair, BENCH_NO_TARGET, 0, true,
                  "end, %u sets in %u nodes / as recorded", BIG / every[i] + 1, (unsigned)BIG);
        stepgraph_step_destroy(b.rewritten.step);
        stepgraph_step_destroy(b.recorded.step);
        OK(stepgraph_pin_destroy(b.rewritten.pin));
    }
}

static void measure(void)
{
    replays();
    as_recorded();
    by_bytes();
    rewriting();
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work(void)
{
    stepgraph_step_stats stats = STEPGRAPH_STEP_STATS_INIT;
    struct sets s;

    make(&s, 200, 2, 0);
    OK(stepgraph_step_get_stats(s.step, &stats));
    bench_expect(stats.nodes[STEPGRAPH_KIND_SET] == 100 && stats.sets_as_kernels == 100, "100 sets, all of them launched as kernels");
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
