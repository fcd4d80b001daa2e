/*
 * Memory: growth over 1,000 recordings of one step and over 10,000 replays, and what a live graph holds per node, each against the same by
 * driver calls. Device memory as cuMemGetInfo tells it, host memory as the allocator does.
 */
#include <malloc.h>
#include <stdio.h>

#include "bench.h"

enum { NODES = 500, MOST_GRAPHS = 20 };

struct use {
    double host, device; /* Bytes. */
};

static struct use use_now(void)
{
    struct use use;
    size_t left, all;
    struct mallinfo2 heap = mallinfo2();

    bench_sync();
    CU(MemGetInfo(&left, &all));
    use.host = (double)heap.uordblks + (double)heap.hblkhd;
    use.device = (double)(all - left);
    return use;
}

static bench_stat one_value(double value)
{
    return bench_stat_of(&value, 1);
}

/* A negative target: none. */
static void add(const char *series, const char *unit, double x, double ours, double raw, double target, const char *label)
{
    bench_pair pair = { one_value(ours), one_value(raw), one_value(ours - raw) };

    bench_add(series, x, unit, &pair, target < 0 ? BENCH_NO_TARGET : BENCH_DIFFERENCE, target, true, "%s", label);
}

static void record_raw(CUdeviceptr p, unsigned nodes, CUgraph *graph, CUgraphExec *exec)
{
    *graph = bench_capture_raw(p, nodes);
    *exec = bench_instantiate(*graph);
    CU(GraphUpload(*exec, stream));
}

static void drop_raw(CUgraph graph, CUgraphExec exec)
{
    bench_sync();
    CU(GraphExecDestroy(exec));
    CU(GraphDestroy(graph));
}

/* The first recordings fill the caches of driver and allocator. */
static struct use growth_ours(stepgraph_step *step, CUdeviceptr p, unsigned nodes, unsigned times)
{
    struct use before = { 0, 0 }, after;

    for (unsigned i = 0; i < times; i++) {
        if (i == times / 10)
            before = use_now();
        bench_record(step, p, nodes);
        OK(stepgraph_step_replay(step));
        OK(stepgraph_step_reset(step));
    }
    after = use_now();
    return (struct use){ after.host - before.host, after.device - before.device };
}

static struct use growth_raw(CUdeviceptr p, unsigned nodes, unsigned times)
{
    struct use before = { 0, 0 }, after;

    for (unsigned i = 0; i < times; i++) {
        CUgraph graph;
        CUgraphExec exec;
        if (i == times / 10)
            before = use_now();
        record_raw(p, nodes, &graph, &exec);
        CU(GraphLaunch(exec, stream));
        drop_raw(graph, exec);
    }
    after = use_now();
    return (struct use){ after.host - before.host, after.device - before.device };
}

static void per_graph(CUdeviceptr p, unsigned nodes)
{
    stepgraph_step *steps[MOST_GRAPHS];
    CUgraph graphs[MOST_GRAPHS];
    CUgraphExec execs[MOST_GRAPHS];
    struct use before, ours, raw;
    double all = (double)nodes * MOST_GRAPHS;
    char label[64];

    /* The driver keeps what a destroyed graph held and gives it to the next: whoever comes first would pay for both. */
    for (int i = 0; i < MOST_GRAPHS; i++)
        record_raw(p, nodes, &graphs[i], &execs[i]);
    for (int i = 0; i < MOST_GRAPHS; i++)
        drop_raw(graphs[i], execs[i]);

    for (int i = 0; i < MOST_GRAPHS; i++)
        steps[i] = bench_step(session, "held", 0);
    before = use_now();
    for (int i = 0; i < MOST_GRAPHS; i++)
        bench_record(steps[i], p, nodes);
    ours = use_now();
    ours = (struct use){ ours.host - before.host, ours.device - before.device };
    for (int i = 0; i < MOST_GRAPHS; i++)
        stepgraph_step_destroy(steps[i]);

    before = use_now();
    for (int i = 0; i < MOST_GRAPHS; i++)
        record_raw(p, nodes, &graphs[i], &execs[i]);
    raw = use_now();
    raw = (struct use){ raw.host - before.host, raw.device - before.device };
    for (int i = 0; i < MOST_GRAPHS; i++)
        drop_raw(graphs[i], execs[i]);

    snprintf(label, sizeof label, "host bytes per node, graph of %u", nodes);
    add("host memory per node", "B", nodes, ours.host / all, raw.host / all, 200, label);
    snprintf(label, sizeof label, "device bytes per node, graph of %u", nodes);
    /* The driver takes device memory in pieces of 2 MiB, which a few nodes cannot be told apart in. */
    add("device memory per node", "B", nodes, ours.device / all, raw.device / all, all < 100000 ? -1 : 200, label);
}

static void per_replay(stepgraph_step *step, CUdeviceptr p, unsigned times)
{
    struct use before, after;
    CUgraph graph;
    CUgraphExec exec;
    double ours[2], raw[2];

    bench_record(step, p, 10);
    OK(stepgraph_step_replay(step));
    before = use_now();
    for (unsigned i = 0; i < times; i++)
        OK(stepgraph_step_replay(step));
    after = use_now();
    ours[0] = after.host - before.host;
    ours[1] = after.device - before.device;
    OK(stepgraph_step_reset(step));

    record_raw(p, 10, &graph, &exec);
    CU(GraphLaunch(exec, stream));
    before = use_now();
    for (unsigned i = 0; i < times; i++)
        CU(GraphLaunch(exec, stream));
    after = use_now();
    raw[0] = after.host - before.host;
    raw[1] = after.device - before.device;
    drop_raw(graph, exec);
    /* One byte per replay would be more than twice the target. */
    add("growth over replays, host", "B", times, ours[0], raw[0], 4096, "host growth over replays");
    add("growth over replays, device", "B", times, ours[1], raw[1], 0, "device growth over replays");
}

static void measure(void)
{
    unsigned times = bench_software ? 50 : 1000;
    stepgraph_pin *pin = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, 4, "state");
    stepgraph_step *step = bench_step(session, "recorded", 0);
    CUdeviceptr p = stepgraph_pin_address(pin);
    /* The driver's own turn first, so that its caches are not filled on our account. */
    struct use raw = growth_raw(p, NODES, times), ours = growth_ours(step, p, NODES, times);

    /* A page of the allocator's bookkeeping may move; 1,000 graphs lost would be megabytes. */
    add("growth over recordings, host", "KiB", times, ours.host / 1024, raw.host / 1024, 64, "host growth over recordings");
    add("growth over recordings, device", "KiB", times, ours.device / 1024, raw.device / 1024, 0, "device growth over recordings");
    per_replay(step, p, bench_software ? 500 : 10000);
    per_graph(p, 100);
    if (!bench_skips(10000, 1000))
        per_graph(p, 10000);
    stepgraph_step_destroy(step);
    OK(stepgraph_pin_destroy(pin));
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work(void)
{
    stepgraph_pin *pin = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, 4, "state");
    stepgraph_step *step = bench_step(session, "recorded", 0);
    CUdeviceptr p = stepgraph_pin_address(pin);
    struct use before, after;
    long bytes;

    for (int i = 0; i < 3; i++) {
        bench_record(step, p, 200);
        OK(stepgraph_step_replay(step));
        OK(stepgraph_step_reset(step));
    }
    before = use_now();
    bench_work_begin();
    for (int i = 0; i < 50; i++) {
        bench_record(step, p, 200);
        OK(stepgraph_step_replay(step));
        OK(stepgraph_step_reset(step));
    }
    bytes = bench_work_bytes();
    after = use_now();
    bench_expect(bytes == 0, "50 recordings leave %ld bytes of host memory behind", bytes);
    bench_expect(after.device - before.device == 0, "50 recordings leave %.0f bytes of device memory behind", after.device - before.device);
    /* Freeing device memory waits for all that runs on the device. */
    bench_expect(bench_work_calls("cuMemAlloc") + bench_work_calls("cuMemFree") + bench_work_calls("cuMemHostAlloc") == 0,
                 "and neither allocate nor free memory of the driver's");
    bench_expect(bench_work_calls("cuGraphInstantiateWithParams") == bench_work_calls("cuGraphExecDestroy"),
                 "as many graphs made as destroyed: %lu", bench_work_calls("cuGraphExecDestroy"));

    bench_work_begin();
    bench_record(step, p, 1000);
    bytes = bench_work_bytes();
    bench_expect(bytes <= 1000 * 200, "a graph of 1000 nodes holds %ld bytes of host memory, at most 200 a node", bytes);

    bench_work_begin();
    for (int i = 0; i < 100; i++)
        OK(stepgraph_step_replay(step));
    bytes = bench_work_bytes();
    bench_expect(bytes == 0, "100 replays hold %ld bytes more", bytes);
    bench_sync();
    stepgraph_step_destroy(step);
    OK(stepgraph_pin_destroy(pin));
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "memory", measure, check_work);
}
