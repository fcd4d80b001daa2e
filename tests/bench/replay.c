/*
 * Host time of stepgraph_step_replay() over cuGraphLaunch of the same graph: by nodes, with feeds, with adopted pins that are looked at
 * every 64 replays, and the first replay against later ones. Device time of executables that were updated in place. What tuning takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { MOST_PINS = 1000, RAW_SLOTS = 16 };

struct replay {
    stepgraph_step *step;
    CUgraphExec exec; /* The same graph, instantiated once more, */
    CUgraphExec twin; /* and another time, to be compared with that. */
    stepgraph_pin *state;
    unsigned nodes, burst, bursts;
    /* Feeds. */
    unsigned feeds;
    stepgraph_pin **pins;
    CUdeviceptr raw_device;
    float *raw_host; /* RAW_SLOTS times. */
    unsigned raw_slot;
    CUevent raw_fence[2];
};

static unsigned burst_of(unsigned nodes)
{
    unsigned burst = 20000 / nodes;

    return burst < 1 ? 1 : burst > 32 ? 32 : burst;
}

/* In bursts, between which the queue runs empty: one that is full makes a launch wait. */
static double ours(void *user)
{
    const struct replay *r = user;
    double us = 0;

    for (unsigned k = 0; k < r->bursts; k++) {
        double start = bench_now_us();
        for (unsigned i = 0; i < r->burst; i++)
            OK(stepgraph_step_replay(r->step));
        us += bench_now_us() - start;
        bench_sync();
    }
    return us / (r->bursts * r->burst);
}

static double raw(void *user)
{
    const struct replay *r = user;
    double us = 0;

    for (unsigned k = 0; k < r->bursts; k++) {
        double start = bench_now_us();
        for (unsigned i = 0; i < r->burst; i++)
            CU(GraphLaunch(r->exec, stream));
        us += bench_now_us() - start;
        bench_sync();
    }
    return us / (r->bursts * r->burst);
}

static CUgraphExec raw_exec(CUdeviceptr p, unsigned nodes)
{
    CUgraph graph = bench_capture_raw(p, nodes);
    CUgraphExec exec = bench_instantiate(graph);

    CU(GraphUpload(exec, stream));
    CU(GraphDestroy(graph));
    return exec;
}

static void open_step_after(struct replay *r, unsigned nodes, bool raw_first)
{
    r->nodes = nodes;
    r->burst = burst_of(nodes);
    r->bursts = 1;
    r->state = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, 4, "state");
    r->step = bench_step(session, "replay", 0);
    if (raw_first)
        r->exec = raw_exec(stepgraph_pin_address(r->state), nodes);
    bench_record(r->step, stepgraph_pin_address(r->state), nodes);
    if (!raw_first)
        r->exec = raw_exec(stepgraph_pin_address(r->state), nodes);
    bench_sync();
}

static void open_step(struct replay *r, unsigned nodes)
{
    open_step_after(r, nodes, false);
}

static void close_step(struct replay *r)
{
    bench_sync();
    CU(GraphExecDestroy(r->exec));
    stepgraph_step_destroy(r->step);
    OK(stepgraph_pin_destroy(r->state));
}

static double twin(void *user)
{
    struct replay other = *(const struct replay *)user;

    other.exec = other.twin;
    return raw(&other);
}

/* Two executables of one graph differ by where they lie in memory, from a thousand nodes on by more than is to be seen: such ones are made anew
 * several times, ours or the raw one first in turn. How far two raw ones differ is measured beside it. */
static void by_nodes(void)
{
    static const unsigned sizes[] = { 1, 10, 100, 1000, 2000, 5000, 10000, 20000 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned rounds = sizes[i] < 1000 ? 1 : 6;
        bench_pair pair;
        if (bench_skips(sizes[i], 1000))
            continue;
        bench_pairs_begin();
        for (unsigned round = 0; round < rounds; round++) {
            struct replay r = { 0 };
            open_step_after(&r, sizes[i], round % 2);
            bench_pairs_sample(ours, raw, &r, 600.0 / rounds);
            close_step(&r);
        }
        pair = bench_pairs_end();
        bench_add("replay by nodes", sizes[i], "us", &pair, BENCH_DIFFERENCE, 0.1,
                  sizes[i] == 1 || sizes[i] == 100 || sizes[i] == 1000 || sizes[i] == 20000, "replay of %u nodes / cuGraphLaunch",
                  sizes[i]);
        if (sizes[i] < 100)
            continue;
        bench_pairs_begin();
        for (unsigned round = 0; round < rounds; round++) {
            struct replay r = { 0 };
            open_step(&r, sizes[i]);
            r.twin = raw_exec(stepgraph_pin_address(r.state), sizes[i]);
            bench_pairs_sample(twin, raw, &r, 300.0 / rounds);
            CU(GraphExecDestroy(r.twin));
            close_step(&r);
        }
        pair = bench_pairs_end();
        bench_add("raw twins by nodes", sizes[i], "us", &pair, BENCH_NO_TARGET, 0, sizes[i] == 1000, "two raw graphs of %u nodes", sizes[i]);
    }
}

/* ---- feeds --------------------------------------------------------------------------------------------------------- */

static void make_feeds(struct replay *r, unsigned n)
{
    r->feeds = n;
    r->pins = calloc(n, sizeof *r->pins);
    for (unsigned i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "cell %u", i);
        r->pins[i] = bench_pin(session, STEPGRAPH_ROLE_CELL, 0, 4, name);
    }
    CU(MemAlloc(&r->raw_device, 16 * (size_t)n));
    CU(MemHostAlloc((void **)&r->raw_host, 16 * (size_t)n * RAW_SLOTS, 0));
    for (int i = 0; i < 2; i++)
        CU(EventCreate(&r->raw_fence[i], CU_EVENT_DISABLE_TIMING));
}

static void drop_feeds(struct replay *r)
{
    for (unsigned i = 0; i < r->feeds; i++)
        OK(stepgraph_pin_destroy(r->pins[i]));
    free(r->pins);
    CU(MemFree(r->raw_device));
    CU(MemFreeHost(r->raw_host));
    for (int i = 0; i < 2; i++)
        CU(EventDestroy(r->raw_fence[i]));
}

static void feed_all(const struct replay *r, float value)
{
    for (unsigned i = 0; i < r->feeds; i++)
        OK(stepgraph_pin_feed_f32(r->pins[i], value));
}

/* The replay call alone, everything fed before. */
static double ours_fed(void *user)
{
    const struct replay *r = user;
    double us = 0;

    for (unsigned i = 0; i < 8; i++) {
        double start;
        feed_all(r, (float)i);
        start = bench_now_us();
        OK(stepgraph_step_replay(r->step));
        us += bench_now_us() - start;
    }
    bench_sync();
    return us / 8;
}

/* One copy and one launch, from slots that are fenced as ours are: without, the host would overwrite what a queued copy has yet to read. */
static void raw_step(struct replay *r, size_t bytes)
{
    unsigned slot = r->raw_slot++ % RAW_SLOTS;

    CU(MemcpyHtoDAsync(r->raw_device, r->raw_host + slot * 4 * (size_t)r->feeds, bytes, stream));
    if (slot % (RAW_SLOTS / 2) == RAW_SLOTS / 2 - 1)
        CU(EventRecord(r->raw_fence[slot / (RAW_SLOTS / 2)], stream));
    CU(GraphLaunch(r->exec, stream));
}

static double raw_fed(void *user)
{
    struct replay *r = user;
    double us = 0;

    for (unsigned i = 0; i < 8; i++) {
        double start;
        feed_all(r, (float)i); /* Untimed, so that both find the device as idle. The values wait for our next turn. */
        start = bench_now_us();
        raw_step(r, 16 * (size_t)r->feeds);
        us += bench_now_us() - start;
    }
    bench_sync();
    return us / 8;
}

/* The feeding alone, per feed, against a store to page-locked memory. */
static double feeding(void *user)
{
    const struct replay *r = user;
    double start = bench_now_us(), us;

    feed_all(r, 1);
    us = bench_now_us() - start;
    OK(stepgraph_session_flush(session));
    bench_sync();
    return us * 1e3 / r->feeds;
}

static double storing(void *user)
{
    const struct replay *r = user;
    volatile float *to = r->raw_host;
    double start = bench_now_us();

    for (unsigned i = 0; i < r->feeds; i++)
        to[4 * i] = 1;
    return (bench_now_us() - start) * 1e3 / r->feeds;
}

/* One of them per step, as a learning rate that changes among a thousand that do not. */
static double ours_one_fed(void *user)
{
    const struct replay *r = user;
    double us = 0;

    for (unsigned i = 0; i < 8; i++) {
        double start;
        OK(stepgraph_pin_feed_f32(r->pins[r->feeds / 2], (float)i));
        start = bench_now_us();
        OK(stepgraph_step_replay(r->step));
        us += bench_now_us() - start;
    }
    bench_sync();
    return us / 8;
}

static double raw_one_fed(void *user)
{
    struct replay *r = user;
    double us = 0;

    for (unsigned i = 0; i < 8; i++) {
        double start;
        OK(stepgraph_pin_feed_f32(r->pins[r->feeds / 2], (float)i));
        start = bench_now_us();
        raw_step(r, 4);
        us += bench_now_us() - start;
    }
    bench_sync();
    return us / 8;
}

static void by_feeds(void)
{
    static const unsigned sizes[] = { 1, 8, 100, 1000 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct replay r = { 0 };
        bench_pair pair;
        open_step(&r, 100);
        make_feeds(&r, sizes[i]);
        pair = bench_alternate(ours_fed, raw_fed, &r, 400);
        bench_add("replay by feeds", sizes[i], "us", &pair, BENCH_DIFFERENCE, 0.1, sizes[i] == 8 || sizes[i] == 1000,
                  "replay with %u feeds / one copy + launch", sizes[i]);
        pair = bench_alternate(feeding, storing, &r, 100);
        bench_add("one feed", sizes[i], "ns", &pair, BENCH_NO_TARGET, 0, sizes[i] == 1000, "one of %u feeds / a store", sizes[i]);
        if (sizes[i] == 1000) {
            pair = bench_alternate(ours_one_fed, raw_one_fed, &r, 300);
            bench_add("replay by feeds", 1, "us", &pair, BENCH_DIFFERENCE, 0.1, true, "replay, 1 of 1000 fed / copy + launch");
        }
        drop_feeds(&r);
        close_step(&r);
    }
}

/* ---- adopted pins -------------------------------------------------------------------------------------------------- */

struct adopted {
    struct replay replay;
    stepgraph_pin *pins[MOST_PINS], *fresh;
    CUdeviceptr memory[MOST_PINS];
    unsigned n, allocations;
};

/* n pins of 256 bytes, spread evenly over so many allocations, and a graph of one node that writes them all. */
static void adopt(struct adopted *a, unsigned n, unsigned allocations)
{
    unsigned each = n / allocations;
    struct replay *r = &a->replay;
    uint64_t sources[MOST_PINS];

    memset(a, 0, sizeof *a);
    a->n = n;
    a->allocations = allocations;
    a->fresh = bench_pin(session, STEPGRAPH_ROLE_SCRATCH, 0, 256 * (uint64_t)n, "fresh");
    for (unsigned i = 0; i < allocations; i++)
        CU(MemAlloc(&a->memory[i], 256 * (size_t)each));
    for (unsigned i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "adopted %u", i);
        a->pins[i] = bench_pin(session, STEPGRAPH_ROLE_STATE, a->memory[i / each] + 256 * (i % each), 256, name);
        sources[i] = stepgraph_pin_address(a->fresh) + 256 * (uint64_t)i;
    }
    r->step = bench_step(session, "adopted", 0);
    OK(stepgraph_step_prepare(r->step));
    OK(stepgraph_step_capture(r->step));
    OK(stepgraph_pin_commit_many(session, n, a->pins, sources));
    OK(stepgraph_step_end(r->step));
    r->exec = bench_instantiate(stepgraph_step_graph(r->step));
    /* As often as all memory is looked at: every 64 replays, or every as many as there are allocations. */
    r->burst = 64;
    r->bursts = (allocations + 63) / 64;
    bench_sync();
}

static void unadopt(struct adopted *a)
{
    bench_sync();
    CU(GraphExecDestroy(a->replay.exec));
    stepgraph_step_destroy(a->replay.step);
    for (unsigned i = 0; i < a->n; i++)
        OK(stepgraph_pin_destroy(a->pins[i]));
    OK(stepgraph_pin_destroy(a->fresh));
    for (unsigned i = 0; i < a->allocations; i++)
        CU(MemFree(a->memory[i]));
}

static void by_adopted(void)
{
    static const unsigned sizes[][2] = { { 10, 1 }, { 100, 1 }, { 1000, 1 }, { 1000, 20 }, { 1000, 1000 } };
    static struct adopted a;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bench_pair pair;
        if (bench_skips(sizes[i][0], 100))
            continue;
        adopt(&a, sizes[i][0], sizes[i][1]);
        pair = bench_alternate(ours, raw, &a.replay, 600);
        bench_add("replay by adopted pins", sizes[i][0], "us", &pair, BENCH_DIFFERENCE, 0.1, sizes[i][0] == 1000 && sizes[i][1] != 1,
                  "replay, %u pins adopted in %u / launch", sizes[i][0], sizes[i][1]);
        unadopt(&a);
    }
}

/* ---- the first replay ---------------------------------------------------------------------------------------------- */

static double first_ours(void *user)
{
    struct replay *r = user;
    double start, us;

    OK(stepgraph_step_reset(r->step));
    bench_record(r->step, stepgraph_pin_address(r->state), r->nodes);
    bench_sync();
    start = bench_now_us();
    OK(stepgraph_step_replay(r->step));
    us = bench_now_us() - start;
    bench_sync();
    return us;
}

static double first_raw(void *user)
{
    const struct replay *r = user;
    CUgraph graph = bench_capture_raw(stepgraph_pin_address(r->state), r->nodes);
    CUgraphExec exec = bench_instantiate(graph);
    double start, us;

    CU(GraphUpload(exec, stream));
    bench_sync();
    start = bench_now_us();
    CU(GraphLaunch(exec, stream));
    us = bench_now_us() - start;
    bench_sync();
    CU(GraphExecDestroy(exec));
    CU(GraphDestroy(graph));
    return us;
}

static double later_ours(void *user)
{
    const struct replay *r = user;
    double start, us;

    start = bench_now_us();
    OK(stepgraph_step_replay(r->step));
    us = bench_now_us() - start;
    bench_sync();
    return us;
}

static void first_and_later(void)
{
    static const unsigned sizes[] = { 100, 1000, 10000 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct replay r = { 0 };
        bench_pair first, later;
        if (bench_skips(sizes[i], 100))
            continue;
        open_step(&r, sizes[i]);
        first = bench_alternate(first_ours, first_raw, &r, 700);
        bench_add("first replay", sizes[i], "us", &first, BENCH_NO_TARGET, 0, sizes[i] == 1000, "first replay of %u nodes / first launch",
                  sizes[i]);
        later = bench_alternate(later_ours, later_ours, &r, 100);
        first.raw = later.ours;
        first.difference = (bench_stat){ .median = first.ours.median - later.ours.median };
        bench_add("first replay against later ones", sizes[i], "us", &first, BENCH_NO_TARGET, 0, sizes[i] == 1000,
                  "first replay of %u nodes / a later one", sizes[i]);
        close_step(&r);
    }
}

/* ---- an executable that was updated ------------------------------------------------------------------------------------ */

static double device_time(CUgraphExec exec, unsigned burst)
{
    bench_device_start();
    for (unsigned i = 0; i < burst; i++)
        CU(GraphLaunch(exec, stream));
    return bench_device_stop() / burst;
}

static double device_of_updated(void *user)
{
    const struct replay *r = user;

    return device_time(r->twin, r->burst);
}

static double device_of_new(void *user)
{
    const struct replay *r = user;

    return device_time(r->exec, r->burst);
}

/* The loop's graphs were recorded twice, the first recording's executable updated to the second. On the device it is to be as quick as one that was made
 * for the second. Each is made anew several times, since where it lies tells too. */
static void updated(void)
{
    static const unsigned sizes[] = { 100, 1000, 2000 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bench_pair pair;
        if (bench_skips(sizes[i], 1000))
            continue;
        bench_pairs_begin();
        for (unsigned round = 0; round < 6; round++) {
            stepgraph_pin *states[2] = { bench_pin(session, STEPGRAPH_ROLE_STATE, 0, 4, "state"), bench_pin(session, STEPGRAPH_ROLE_STATE, 0, 4, "other") };
            struct replay r = { .nodes = sizes[i], .burst = 4 };
            CUgraphExecUpdateResultInfo info;
            CUgraph graph = bench_capture_raw(stepgraph_pin_address(states[1]), sizes[i]);
            if (round % 2 == 0)
                r.exec = raw_exec(stepgraph_pin_address(states[1]), sizes[i]);
            r.twin = raw_exec(stepgraph_pin_address(states[0]), sizes[i]);
            if (round % 2 != 0)
                r.exec = raw_exec(stepgraph_pin_address(states[1]), sizes[i]);
            CU(GraphExecUpdate(r.twin, graph, &info));
            bench_sync();
            bench_pairs_sample(device_of_updated, device_of_new, &r, 50);
            CU(GraphExecDestroy(r.exec));
            CU(GraphExecDestroy(r.twin));
            CU(GraphDestroy(graph));
            for (int k = 0; k < 2; k++)
                OK(stepgraph_pin_destroy(states[k]));
        }
        pair = bench_pairs_end();
        bench_add("device time after an update", sizes[i], "us", &pair, BENCH_NO_TARGET, 0, sizes[i] == 1000, "device: %u nodes, updated in place / made anew",
                  sizes[i]);
    }
}

/* ---- tuning ----------------------------------------------------------------------------------------------------------- */

enum { TRIED = 4, TRIED_MOST = STEPGRAPH_TUNE_MOST, TIMED_BURST = 64 };

struct tuning {
    struct replay replay;
    CUgraph graph;
    CUgraphExec execs[TRIED - 1]; /* NULL: not made yet. */
    CUevent events[2 * TIMED_BURST];
};

/* Including the end of those that were tried before. */
static double tune(void *user)
{
    const struct tuning *t = user;
    double start = bench_now_us();

    OK(stepgraph_step_tune(t->replay.step, TRIED));
    return bench_now_us() - start;
}

static double instantiate_as_many(void *user)
{
    struct tuning *t = user;
    double start = bench_now_us();

    for (int i = 0; i < TRIED - 1; i++) {
        if (t->execs[i] != NULL)
            CU(GraphExecDestroy(t->execs[i]));
        t->execs[i] = bench_instantiate(t->graph);
        CU(GraphUpload(t->execs[i], stream));
    }
    return bench_now_us() - start;
}

static double replay_timed(void *user)
{
    const struct tuning *t = user;
    double start, us;

    OK(stepgraph_step_tune(t->replay.step, TRIED_MOST));
    bench_sync();
    start = bench_now_us();
    for (int i = 0; i < TIMED_BURST; i++)
        OK(stepgraph_step_replay(t->replay.step));
    us = (bench_now_us() - start) / TIMED_BURST;
    bench_sync();
    return us;
}

static double launch_timed(void *user)
{
    const struct tuning *t = user;
    double start = bench_now_us(), us;

    for (int i = 0; i < TIMED_BURST; i++) {
        CU(EventRecord(t->events[2 * i], stream));
        CU(GraphLaunch(t->replay.exec, stream));
        CU(EventRecord(t->events[2 * i + 1], stream));
    }
    us = (bench_now_us() - start) / TIMED_BURST;
    bench_sync();
    return us;
}

static void tuning(void)
{
    static const unsigned sizes[] = { 100, 1000 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct tuning t = { 0 };
        bench_pair pair;
        if (bench_skips(sizes[i], 1000))
            continue;
        open_step(&t.replay, sizes[i]);
        t.graph = bench_capture_raw(stepgraph_pin_address(t.replay.state), sizes[i]);
        for (int k = 0; k < 2 * TIMED_BURST; k++)
            CU(EventCreate(&t.events[k], CU_EVENT_DEFAULT));
        pair = bench_alternate(tune, instantiate_as_many, &t, 200);
        bench_add("tuning", sizes[i], "us", &pair, BENCH_NO_TARGET, 0, sizes[i] == 1000, "%d more executables of %u nodes, to be tried / made", TRIED - 1,
                  sizes[i]);
        pair = bench_alternate(replay_timed, launch_timed, &t, 200);
        bench_add("replay while tuning", sizes[i], "us", &pair, BENCH_NO_TARGET, 0, sizes[i] == 1000, "a replay of %u nodes that tells / launch and two events",
                  sizes[i]);
        bench_sync();
        for (int k = 0; k < 2 * TIMED_BURST; k++)
            CU(EventDestroy(t.events[k]));
        for (int k = 0; k < TRIED - 1; k++)
            CU(GraphExecDestroy(t.execs[k]));
        CU(GraphDestroy(t.graph));
        close_step(&t.replay);
    }
}

static void measure(void)
{
    by_nodes();
    updated();
    tuning();
    by_feeds();
    by_adopted();
    first_and_later();
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work(void)
{
    static struct adopted a;
    struct replay r = { 0 };

    open_step(&r, 100);
    bench_work_begin();
    OK(stepgraph_step_replay(r.step));
    WORK_IS("the first replay", 0, 0, { "cuCtxGetId", 1 }, { "cuGraphLaunch", 1 });
    bench_work_begin();
    for (int i = 0; i < 200; i++)
        OK(stepgraph_step_replay(r.step));
    WORK_IS("200 replays, liveness checks included", 0, 0, { "cuCtxGetId", 200 }, { "cuGraphLaunch", 200 });
    bench_sync();

    /* Two executables are tried, five replays by each. */
    OK(stepgraph_step_tune(r.step, 2));
    bench_work_begin();
    for (int i = 0; i < 10; i++) {
        OK(stepgraph_step_replay(r.step));
        bench_sync();
    }
    WORK_IS("10 replays that tell which executable is faster", 0, 0, { "cuCtxGetId", 10 }, { "cuGraphLaunch", 10 }, { "cuEventRecord", 20 },
            { "cuCtxPushCurrent", 10 }, { "cuCtxPopCurrent", 10 }, { "cuStreamSynchronize", 10 });
    OK(stepgraph_step_replay(r.step)); /* It takes the times. */
    bench_work_begin();
    OK(stepgraph_step_replay(r.step));
    WORK_IS("a replay by the faster one", 0, 0, { "cuCtxGetId", 1 }, { "cuGraphLaunch", 1 });
    bench_sync();

    make_feeds(&r, 100);
    bench_sync();
    bench_work_begin();
    feed_all(&r, 1);
    WORK_IS("100 feeds", 0, 0, { "cuCtxGetId", 1 });
    bench_work_begin();
    OK(stepgraph_step_replay(r.step));
    WORK_IS("a replay with 100 feeds", 0, 0, { "cuCtxGetId", 1 }, { "cuMemcpyHtoDAsync", 1 }, { "cuGraphLaunch", 1 });
    bench_sync();

    /* Around the ring of 16 slots: each half records an event at its end, and asks for it before it is used again. */
    for (int i = 0; i < 16; i++) {
        feed_all(&r, 2);
        OK(stepgraph_step_replay(r.step));
        bench_sync();
    }
    bench_work_begin();
    for (int i = 0; i < 16; i++) {
        feed_all(&r, 3);
        OK(stepgraph_step_replay(r.step));
        bench_sync();
    }
    WORK_IS("16 steps of 100 feeds", 0, 0, { "cuCtxGetId", 32 }, { "cuMemcpyHtoDAsync", 16 }, { "cuGraphLaunch", 16 }, { "cuEventRecord", 2 },
            { "cuEventQuery", 2 }, { "cuThreadExchangeStreamCaptureMode", 4 }, { "cuStreamSynchronize", 16 } /* This program's own. */);
    drop_feeds(&r);
    close_step(&r);

    adopt(&a, 1000, 20);
    bench_work_begin();
    for (int i = 0; i < 64; i++)
        OK(stepgraph_step_replay(a.replay.step));
    WORK_IS("64 replays over 1000 pins adopted in 20 allocations", 0, 0, { "cuCtxGetId", 64 }, { "cuGraphLaunch", 64 },
            { "cuPointerGetAttribute", 20 });
    unadopt(&a);

    /* More of them than replays between two looks: one each, on average. */
    adopt(&a, 200, 200);
    bench_work_begin();
    for (int i = 0; i < 400; i++)
        OK(stepgraph_step_replay(a.replay.step));
    WORK_IS("400 replays over 200 pins adopted in 200 allocations", 0, 0, { "cuCtxGetId", 400 }, { "cuGraphLaunch", 400 },
            { "cuPointerGetAttribute", 400 });
    unadopt(&a);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "replay", measure, check_work);
}
