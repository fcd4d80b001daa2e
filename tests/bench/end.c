/*
 * What stepgraph_step_end() adds to the driver's own calls (end of capture, instantiate, upload): reading the graph back and auditing it,
 * against the time of instantiating alone. By nodes, by pins that addresses are looked up among, and by bytes of the kernels' arguments.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

enum { MOST_SAMPLES = 2000, OF_FRAMEWORK = 1 };

struct end {
    stepgraph_step *step;
    stepgraph_pin **pins;
    unsigned nodes, n_pins;
    size_t bytes; /* Of a struct that kernels take; 0: they take addresses; OF_FRAMEWORK: what a framework's kernels take. */
    CUdeviceptr pool; /* Of a framework: memory of its allocator, which notes blocks, and has given most of them back. 0: none. */
    double instantiate[MOST_SAMPLES], read[MOST_SAMPLES];
    size_t n, n_read;
};

/* Kernels with four addresses each, or with a struct. */
static void enqueue(const struct end *e)
{
    if (e->bytes == OF_FRAMEWORK) {
        bench_left_over(stream, stepgraph_pin_address(e->pins[0]), e->pool, e->nodes, 0);
        return;
    }
    if (e->bytes != 0) {
        bench_structs(stream, stepgraph_pin_address(e->pins[0]), e->bytes, e->nodes, 0);
        return;
    }
    for (unsigned i = 0; i < e->nodes; i++) {
        CUdeviceptr p[4];
        int n = 1;
        void *arguments[] = { &p[0], &p[1], &p[2], &p[3], &n };
        for (unsigned k = 0; k < 4; k++)
            p[k] = stepgraph_pin_address(e->pins[(4 * i + k) % e->n_pins]);
        CU(LaunchKernel(kernels.update, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
    }
}

/* What end itself says of the time that reading and auditing took. */
static double read_us(const stepgraph_step *step)
{
    stepgraph_audit_summary summary = STEPGRAPH_AUDIT_SUMMARY_INIT;
    stepgraph_audit *audit = NULL;

    OK(stepgraph_audit_step(step, &audit));
    OK(stepgraph_audit_get_summary(audit, &summary));
    stepgraph_audit_destroy(audit);
    return (double)summary.read_ns / 1000;
}

static double ours(void *user)
{
    struct end *e = user;
    double start, us;

    OK(stepgraph_step_prepare(e->step));
    OK(stepgraph_step_capture(e->step));
    enqueue(e);
    start = bench_now_us();
    OK(stepgraph_step_end(e->step));
    us = bench_now_us() - start;
    if (e->n_read < MOST_SAMPLES)
        e->read[e->n_read++] = read_us(e->step);
    bench_sync();
    OK(stepgraph_step_reset(e->step));
    return us;
}

static double raw(void *user)
{
    struct end *e = user;
    CUgraph graph;
    CUgraphExec exec;
    double start, ended, instantiated, us;

    CU(StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    enqueue(e);
    start = bench_now_us();
    CU(StreamEndCapture(stream, &graph));
    ended = bench_now_us();
    exec = bench_instantiate(graph);
    instantiated = bench_now_us();
    CU(GraphUpload(exec, stream));
    us = bench_now_us() - start;
    bench_sync();
    CU(GraphExecDestroy(exec));
    CU(GraphDestroy(graph));
    if (e->n < MOST_SAMPLES)
        e->instantiate[e->n++] = instantiated - ended;
    return us;
}

static void open_step(struct end *e, unsigned nodes, unsigned n_pins, size_t bytes)
{
    e->nodes = nodes;
    e->n_pins = n_pins;
    e->bytes = bytes;
    e->n = e->n_read = 0;
    e->pins = calloc(n_pins, sizeof *e->pins);
    for (unsigned i = 0; i < n_pins; i++) {
        char name[32];
        snprintf(name, sizeof name, "%u", i);
        e->pins[i] = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, e->bytes != 0 ? 4096 : 4, name);
    }
    e->pool = 0;
    if (bytes == OF_FRAMEWORK) {
        CU(MemAlloc(&e->pool, BENCH_LEFT_OVER_BYTES + 256));
        OK(stepgraph_arena_note_alloc(session, e->pool + BENCH_LEFT_OVER_BYTES, 256, "in use"));
    }
    e->step = bench_step(session, "end", 0);
}

static void close_step(struct end *e)
{
    stepgraph_step_destroy(e->step);
    if (e->pool != 0) {
        OK(stepgraph_arena_note_free(session, e->pool + BENCH_LEFT_OVER_BYTES));
        CU(MemFree(e->pool));
    }
    for (unsigned i = e->n_pins; i-- > 0;)
        OK(stepgraph_pin_destroy(e->pins[i]));
    free(e->pins);
}

/* Names of series. */
struct by {
    const char *end, *audit, *reading;
};

static void measure_one(const struct by *by, double x, unsigned nodes, unsigned n_pins, size_t bytes, bool headline)
{
    static struct end e;
    bench_pair whole, audit;
    char what[48];

    if (bench_skips((uint64_t)nodes * n_pins, 100000))
        return;
    open_step(&e, nodes, n_pins, bytes);
    whole = bench_alternate(ours, raw, &e, 600);
    if (bytes == OF_FRAMEWORK)
        snprintf(what, sizeof what, "%u nodes of a framework", nodes);
    else if (bytes != 0)
        snprintf(what, sizeof what, "%u nodes of %zu bytes", nodes, bytes);
    else
        snprintf(what, sizeof what, "%u nodes, %u pins", nodes, n_pins);
    bench_add(by->end, x, "us", &whole, BENCH_NO_TARGET, 0, false, "end, %s / raw", what);
    audit = (bench_pair){ .ours = whole.difference, .raw = bench_stat_of(e.instantiate, e.n) };
    audit.difference.median = audit.ours.median - audit.raw.median;
    bench_add(by->audit, x, "us", &audit, BENCH_RATIO, 0.25, headline, "audit, %s / instantiate", what);
    audit.ours = bench_stat_of(e.read, e.n_read);
    audit.difference.median = audit.ours.median - audit.raw.median;
    bench_add(by->reading, x, "us", &audit, BENCH_RATIO, 0.25, headline, "reading, %s / instantiate", what);
    close_step(&e);
}

static void measure(void)
{
    static const struct by by_nodes = { "end by nodes", "audit by nodes", "reading by nodes" };
    static const struct by by_pins = { "end by pins", "audit by pins", "reading by pins" };
    static const struct by by_bytes = { "end by argument bytes", "audit by argument bytes", "reading by argument bytes" };
    static const struct by framework = { "end of a framework's step", "audit of a framework's step", "reading of a framework's step" };
    static const unsigned nodes[] = { 1, 10, 100, 1000, 5000, 20000 };
    static const unsigned pins[] = { 1, 10, 1000, 10000 };
    static const size_t bytes[] = { BENCH_PART, BENCH_BIG };

    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        measure_one(&by_nodes, nodes[i], nodes[i], 100, 0, nodes[i] >= 10);
    for (size_t i = 0; i < sizeof pins / sizeof *pins; i++)
        measure_one(&by_pins, pins[i], 1000, pins[i], 0, pins[i] == 10000);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        measure_one(&by_bytes, (double)bytes[i], 500, 10, bytes[i], true);
    measure_one(&framework, 400, 400, 100, OF_FRAMEWORK, true);
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work_of(struct end *e, unsigned nodes)
{
    char what[64];

    e->nodes = nodes;
    OK(stepgraph_step_prepare(e->step));
    OK(stepgraph_step_capture(e->step));
    enqueue(e);
    snprintf(what, sizeof what, "end of a recording of %u nodes", nodes);
    bench_work_begin();
    OK(stepgraph_step_end(e->step));
    /* Per node one call for its type and one for its contents; per kernel once its name and its parameters; per address of a pin none. A
     * number of allocations that grows with the logarithm of the nodes. */
    WORK_IS(what, nodes >= 1000 ? 60 : 50, 2, { "cuCtxGetId", 1 }, { "cuCtxPushCurrent", 1 }, { "cuCtxPopCurrent", 1 },
            { "cuStreamEndCapture", 1 }, { "cuGraphGetNodes", 2 }, { "cuGraphNodeGetType", nodes }, { "cuGraphKernelNodeGetParams", nodes },
            { "cuFuncGetName", 1 }, { "cuFuncGetParamInfo", 6 }, { "cuGraphInstantiateWithParams", 1 },
            { "cuThreadExchangeStreamCaptureMode", 2 }, { "cuGraphUpload", 1 });
    bench_sync();
    OK(stepgraph_step_reset(e->step));
}

static void check_work(void)
{
    static struct end e;
    unsigned long asked;

    open_step(&e, 1, 100, 0);
    check_work_of(&e, 100);
    check_work_of(&e, 1000);
    close_step(&e);

    /* The driver is asked once about each number that may be an address, however often it stands there. */
    open_step(&e, 1000, 10, BENCH_BIG);
    OK(stepgraph_step_prepare(e.step));
    OK(stepgraph_step_capture(e.step));
    enqueue(&e);
    bench_work_begin();
    OK(stepgraph_step_end(e.step));
    asked = bench_work_calls("cuPointerGetAttributes");
    bench_expect(asked > 0 && asked < 300, "1000 structs of %d bytes: the driver was asked about %lu numbers", BENCH_BIG, asked);
    bench_sync();
    OK(stepgraph_step_reset(e.step));
    close_step(&e);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "end", measure, check_work);
}
