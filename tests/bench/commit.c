/*
 * Commits: P pins in one launch, against one contiguous copy of the same bytes and against P copies.
 *
 * In a graph, where they are replayed: device time of a graph that holds nothing else. And outside one: host time of
 * stepgraph_pin_commit_many() against P calls of cuMemcpyDtoDAsync.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#define GAP 512u /* Between neighbours, so that they are no contiguous range. */

struct commit {
    size_t n;
    uint64_t bytes;                 /* Of each pin. */
    CUdeviceptr masters, fresh;     /* One allocation each; pins adopt parts of the first. */
    stepgraph_pin **pins, *scratch; /* The second is all of fresh. */
    uint64_t *addresses;
    stepgraph_step *step;
    CUgraphExec one, chain; /* One copy of all bytes; n copies. */
    bool run_one;
    unsigned burst;
};

static uint64_t stride(const struct commit *c)
{
    return c->bytes + GAP;
}

static void make(struct commit *c, size_t n, uint64_t bytes)
{
    size_t all;

    *c = (struct commit){ .n = n, .bytes = bytes };
    all = n * stride(c);
    CU(MemAlloc(&c->masters, all));
    CU(MemAlloc(&c->fresh, all));
    CU(MemsetD8Async(c->masters, 0, all, stream));
    CU(MemsetD8Async(c->fresh, 1, all, stream));
    c->pins = calloc(n, sizeof *c->pins);
    c->addresses = calloc(n, sizeof *c->addresses);
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "%zu", i);
        c->pins[i] = bench_pin(session, STEPGRAPH_ROLE_STATE, c->masters + i * stride(c), bytes, name);
        c->addresses[i] = c->fresh + i * stride(c);
    }
    c->scratch = bench_pin(session, STEPGRAPH_ROLE_SCRATCH, c->fresh, all, "fresh");
    bench_sync();
}

static void record(struct commit *c)
{
    c->step = bench_step(session, "commits", 0);
    OK(stepgraph_step_prepare(c->step));
    OK(stepgraph_step_capture(c->step));
    OK(stepgraph_pin_commit_many(session, c->n, c->pins, c->addresses));
    OK(stepgraph_step_end(c->step));
}

static CUgraphExec copies(const struct commit *c, size_t n, uint64_t bytes)
{
    CUgraph graph;
    CUgraphExec exec;

    CU(StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (size_t i = 0; i < n; i++)
        CU(MemcpyDtoDAsync(c->masters + i * stride(c), c->fresh + i * stride(c), bytes, stream));
    CU(StreamEndCapture(stream, &graph));
    exec = bench_instantiate(graph);
    CU(GraphUpload(exec, stream));
    CU(GraphDestroy(graph));
    return exec;
}

static void drop(struct commit *c)
{
    bench_sync();
    stepgraph_step_destroy(c->step);
    if (c->one)
        CU(GraphExecDestroy(c->one));
    if (c->chain)
        CU(GraphExecDestroy(c->chain));
    for (size_t i = c->n; i-- > 0;)
        OK(stepgraph_pin_destroy(c->pins[i]));
    OK(stepgraph_pin_destroy(c->scratch));
    CU(MemFree(c->masters));
    CU(MemFree(c->fresh));
    free(c->pins);
    free(c->addresses);
}

/* ---- in a graph ---------------------------------------------------------------------------------------------------- */

static double ours(void *user)
{
    const struct commit *c = user;

    bench_device_start();
    for (unsigned i = 0; i < c->burst; i++)
        OK(stepgraph_step_replay(c->step));
    return bench_device_stop() / c->burst;
}

static double raw(void *user)
{
    const struct commit *c = user;

    bench_device_start();
    for (unsigned i = 0; i < c->burst; i++)
        CU(GraphLaunch(c->run_one ? c->one : c->chain, stream));
    return bench_device_stop() / c->burst;
}

/* ---- outside a graph ----------------------------------------------------------------------------------------------- */

static double ours_outside(void *user)
{
    const struct commit *c = user;
    double start = bench_now_us(), us;

    OK(stepgraph_pin_commit_many(session, c->n, c->pins, c->addresses));
    us = bench_now_us() - start;
    bench_sync();
    return us;
}

static double raw_outside(void *user)
{
    const struct commit *c = user;
    double start = bench_now_us(), us;

    for (size_t i = 0; i < c->n; i++)
        CU(MemcpyDtoDAsync(c->masters + i * stride(c), c->addresses[i], c->bytes, stream));
    us = bench_now_us() - start;
    bench_sync();
    return us;
}

/* ---- both ---------------------------------------------------------------------------------------------------------- */

static const char *size_name(uint64_t bytes)
{
    static char text[32];

    if (bytes >= 1u << 30)
        snprintf(text, sizeof text, "%llu GiB", (unsigned long long)(bytes >> 30));
    else if (bytes >= 1u << 20)
        snprintf(text, sizeof text, "%llu MiB", (unsigned long long)(bytes >> 20));
    else
        snprintf(text, sizeof text, "%llu KiB", (unsigned long long)(bytes >> 10));
    return text;
}

static void measure_one(size_t n, uint64_t bytes)
{
    bool small = bytes == 4096, large = bytes == 1u << 20, headline;
    const char *by = bytes == 4096 ? "commit of 4 KiB by pins" : bytes == 65536 ? "commit of 64 KiB by pins" : "commit of 1 MiB by pins";
    const char *by_copies = bytes == 4096    ? "copy nodes of 4 KiB by pins"
                            : bytes == 65536 ? "copy nodes of 64 KiB by pins"
                                             : "copy nodes of 1 MiB by pins";
    struct commit c;
    bench_pair pair;

    if (bench_skips(n * bytes, 4u << 20) || bench_skips(n, 100))
        return;
    make(&c, n, bytes);
    record(&c);
    c.one = copies(&c, 1, n * bytes);
    c.chain = copies(&c, n, bytes);
    /* Small ones many times between two events, whose own cost would show. */
    c.burst = n * bytes < 64u << 20 ? 8 : 1;

    c.run_one = true;
    headline = (small && n == 1000) || (large && (n == 1 || n == 10 || n == 1000 || n == 10000));
    pair = bench_alternate(ours, raw, &c, 250);
    /* The target holds from 1 MiB of pins up. */
    bench_add(by, (double)n, "us", &pair, n * bytes >= 1u << 20 ? BENCH_RATIO : BENCH_NO_TARGET, 1.1, headline,
              "%zu x %s / one copy of all bytes", n, size_name(bytes));
    c.run_one = false;
    c.burst = n > 1000 ? 1 : c.burst;
    pair = bench_alternate(ours, raw, &c, 250);
    bench_add(by_copies, (double)n, "us", &pair, small && n == 1000 ? BENCH_RATIO : BENCH_NO_TARGET, 0.01, (small || large) && n == 1000,
              "%zu x %s / %zu copy nodes", n, size_name(bytes), n);
    if (small) {
        pair = bench_alternate(ours_outside, raw_outside, &c, 200);
        bench_add("commit outside a graph by pins", (double)n, "us", &pair, BENCH_NO_TARGET, 0, n == 1000, "host: %zu x %s / %zu calls", n,
                  size_name(bytes), n);
    }
    drop(&c);
}

/* One commit by its bytes: two pins, so that it is the kernel that copies. */
static void measure_bytes(uint64_t bytes)
{
    struct commit c;
    bench_pair pair;

    if (bench_skips(bytes, 1u << 20))
        return;
    make(&c, 2, bytes / 2);
    record(&c);
    c.one = copies(&c, 1, bytes);
    c.run_one = true;
    c.burst = bytes < 64u << 20 ? 8 : 1;
    pair = bench_alternate(ours, raw, &c, 200);
    bench_add("commit of two pins by bytes", (double)bytes, "us", &pair, bytes >= 1u << 20 ? BENCH_RATIO : BENCH_NO_TARGET, 1.1,
              bytes == (uint64_t)4 << 30, "2 pins, %s in all / one copy", size_name(bytes));
    drop(&c);
}

static void measure(void)
{
    static const size_t counts[] = { 1, 10, 100, 1000, 10000 };
    static const uint64_t sizes[] = { 4096, 65536, 1u << 20 };

    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            measure_one(counts[i], sizes[s]);
    for (uint64_t bytes = 4096; bytes <= (uint64_t)4 << 30; bytes *= 4)
        measure_bytes(bytes);
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

/* Of the only node of a graph. */
static unsigned blocks_of(const stepgraph_step *step)
{
    CUDA_KERNEL_NODE_PARAMS_v1 params;
    CUgraphNode node;
    size_t n = 1;

    CU(GraphGetNodes(stepgraph_step_graph(step), &node, &n));
    CU(GraphKernelNodeGetParams(node, &params));
    return params.gridDimX;
}

static void check_work(void)
{
    struct commit c;

    make(&c, 500, 4096);
    OK(stepgraph_pin_commit_many(session, c.n, c.pins, c.addresses)); /* Makes room for lists of this length. */
    bench_sync();
    bench_work_begin();
    OK(stepgraph_pin_commit_many(session, c.n, c.pins, c.addresses));
    /* They are adopted from one allocation, which is looked at before. */
    WORK_IS("a commit of 500 pins outside a recording", 0, 0, { "cuCtxGetId", 1 }, { "cuCtxPushCurrent", 1 }, { "cuPointerGetAttributes", 1 }, { "cuMemcpyHtoDAsync", 1 },
            { "cuLaunchKernel", 1 }, { "cuCtxPopCurrent", 1 });
    bench_work_begin();
    OK(stepgraph_pin_commit(c.pins[0], c.addresses[0]));
    WORK_IS("a commit of one pin outside a recording", 0, 0, { "cuCtxGetId", 1 }, { "cuCtxPushCurrent", 1 }, { "cuPointerGetAttributes", 1 }, { "cuMemcpyDtoDAsync", 1 },
            { "cuCtxPopCurrent", 1 });
    bench_sync();

    c.step = bench_step(session, "commits", 0);
    OK(stepgraph_step_prepare(c.step));
    OK(stepgraph_step_capture(c.step));
    bench_work_begin();
    OK(stepgraph_pin_commit_many(session, c.n, c.pins, c.addresses));
    /* A list of 64 sources grows at a time. */
    WORK_IS("a commit of 500 pins while recording", 8, 0, { "cuCtxGetId", 1 }, { "cuCtxPushCurrent", 1 }, { "cuLaunchKernel", 1 },
            { "cuCtxPopCurrent", 1 });
    OK(stepgraph_step_end(c.step));
    bench_work_begin();
    OK(stepgraph_step_replay(c.step));
    bench_expect(bench_work_calls("cuGraphLaunch") == 1 && bench_work_calls("cuMemcpyHtoDAsync") == 0 &&
                     bench_work_calls("cuLaunchKernel") == 0,
                 "a replay with 500 commits is one launch");
    bench_sync();
    drop(&c);

    /* Cut into slices of 4 KiB that would be 40,000. */
    make(&c, 2, 80u << 20);
    record(&c);
    bench_expect(blocks_of(c.step) == 20480, "a commit of 160 MiB is %u slices of 8 KiB", blocks_of(c.step));
    drop(&c);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "commit", measure, check_work);
}
