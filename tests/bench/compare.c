/*
 * Comparing two recordings, per node, against the driver calls it cannot do without: reading both nodes' parameters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bench.h"

struct compare {
    stepgraph_pin *pin;
    size_t bytes; /* Of a struct that the kernels take; 0: none. */
    stepgraph_step *steps[4]; /* Step k, step k + 1, and both once more. */
    CUgraphNode *nodes[2];
    size_t n, recordings;
};

static double ours(void *user)
{
    const struct compare *c = user;
    stepgraph_audit *audit = NULL;
    double start = bench_now_us(), us;

    if (c->recordings < 4) {
        OK(stepgraph_audit_compare(c->steps[0], c->steps[1], c->recordings == 3 ? c->steps[2] : NULL, &audit));
    } else {
        OK(stepgraph_audit_compare_many(2, c->steps, 2, c->steps + 2, &audit));
    }
    us = bench_now_us() - start;
    stepgraph_audit_destroy(audit);
    return us / (double)c->n;
}

static double raw(void *user)
{
    const struct compare *c = user;
    double start = bench_now_us();

    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->recordings; k++) {
            CUDA_KERNEL_NODE_PARAMS_v1 params;
            CU(GraphKernelNodeGetParams(c->nodes[k % 2][i], &params));
        }
    return (bench_now_us() - start) / (double)c->n;
}

static CUgraphNode *nodes_of(const stepgraph_step *step, size_t n)
{
    CUgraphNode *nodes = calloc(n, sizeof(CUgraphNode));

    CU(GraphGetNodes(stepgraph_step_graph(step), nodes, &n));
    return nodes;
}

/* garbage: what is left over in structs. */
static stepgraph_step *record(struct compare *c, const char *name, unsigned garbage)
{
    stepgraph_step *step = bench_step(session, name, 0);

    if (c->bytes == 0) {
        bench_record(step, stepgraph_pin_address(c->pin), (unsigned)c->n);
        return step;
    }
    OK(stepgraph_step_prepare(step));
    OK(stepgraph_step_capture(step));
    bench_structs(stream, stepgraph_pin_address(c->pin), c->bytes, (unsigned)c->n, garbage);
    OK(stepgraph_step_end(step));
    return step;
}

static void make(struct compare *c, size_t n, size_t bytes)
{
    *c = (struct compare){ .n = n, .bytes = bytes, .recordings = 2 };
    c->pin = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, 4096, "state");
    c->steps[0] = record(c, "k", 0);
    c->steps[1] = record(c, "k + 1", 1);
    c->steps[2] = record(c, "k + 1 again", 2);
    c->steps[3] = record(c, "k again", 3);
    c->nodes[0] = nodes_of(c->steps[0], n);
    c->nodes[1] = nodes_of(c->steps[1], n);
    bench_sync();
}

static void drop(struct compare *c)
{
    free(c->nodes[0]);
    free(c->nodes[1]);
    for (int i = 0; i < 4; i++)
        stepgraph_step_destroy(c->steps[i]);
    OK(stepgraph_pin_destroy(c->pin));
}

/* ---- a step of a framework ------------------------------------------------------------------------------------------ */

/* Up to three recordings each of two steps, compared in a process with as many mappings as a framework's has. */
enum { PARAMETERS = 200 };

struct framework {
    stepgraph_pin *parameters[PARAMETERS], *scratch;
    stepgraph_step *steps[6];
    CUgraphNode *nodes[6];
    size_t n, recordings; /* Of each step. */
};

static double ours_of_framework(void *user)
{
    struct framework *f = user;
    stepgraph_audit *audit = NULL;
    double start = bench_now_us(), us;

    OK(stepgraph_audit_compare_many(f->recordings, f->steps, f->recordings, f->steps + 3, &audit));
    us = bench_now_us() - start;
    stepgraph_audit_destroy(audit);
    return us / (double)f->n;
}

static double raw_of_framework(void *user)
{
    const struct framework *f = user;
    double start = bench_now_us();

    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < 2 * f->recordings; k++) {
            CUDA_KERNEL_NODE_PARAMS_v1 params;
            CU(GraphKernelNodeGetParams(f->nodes[k < f->recordings ? k : 3 + k - f->recordings][i], &params));
        }
    return (bench_now_us() - start) / (double)f->n;
}

/* registered: the memory that it uses beside its parameters is pinned. */
static void measure_framework(size_t n, void (*enqueue)(CUstream, CUdeviceptr, CUdeviceptr, unsigned, unsigned), bool registered, const char *series,
                              const char *what)
{
    enum { MAPPINGS = 4000, PAGE = 4096 };
    unsigned char *mappings = mmap(NULL, (size_t)MAPPINGS * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct framework f = { .n = n };
    CUdeviceptr memory = 0;
    bench_pair pair;

    for (size_t i = 0; mappings != MAP_FAILED && i < MAPPINGS; i += 2) /* Neighbours that differ are mappings of their own. */
        mprotect(mappings + i * PAGE, PAGE, PROT_READ | PROT_WRITE);
    for (unsigned i = 0; i < PARAMETERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "parameter %u", i);
        f.parameters[i] = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, 4096, name);
    }
    if (!registered)
        CU(MemAlloc(&memory, 6 * n * BENCH_MOVED_BYTES));
    f.scratch = bench_pin(session, STEPGRAPH_ROLE_SCRATCH, 0, BENCH_LEFT_OVER_BYTES, "scratch");
    for (unsigned i = 0; i < 6; i++) {
        f.steps[i] = bench_step(session, "framework", registered ? 0 : STEPGRAPH_STEP_ALLOW_UNREGISTERED);
        OK(stepgraph_step_prepare(f.steps[i]));
        OK(stepgraph_step_capture(f.steps[i]));
        enqueue(stream, stepgraph_pin_address(f.parameters[0]), registered ? stepgraph_pin_address(f.scratch) : memory, (unsigned)n, i);
        OK(stepgraph_step_end(f.steps[i]));
        f.nodes[i] = nodes_of(f.steps[i], n);
    }
    bench_sync();
    for (f.recordings = 1; f.recordings <= 3; f.recordings += 2) {
        pair = bench_alternate(ours_of_framework, raw_of_framework, &f, 300);
        bench_add(series, 2 * (double)f.recordings, "us", &pair, BENCH_VALUE, 1, true, "per node, %s of %zu %s / reading all",
                  f.recordings == 1 ? "two" : "six", n, what);
    }
    for (int i = 0; i < 6; i++) {
        free(f.nodes[i]);
        stepgraph_step_destroy(f.steps[i]);
    }
    OK(stepgraph_pin_destroy(f.scratch));
    if (!registered)
        CU(MemFree(memory));
    for (unsigned i = PARAMETERS; i-- > 0;)
        OK(stepgraph_pin_destroy(f.parameters[i]));
    if (mappings != MAP_FAILED)
        munmap(mappings, (size_t)MAPPINGS * PAGE);
}

/* ---- measuring -------------------------------------------------------------------------------------------------------- */

static void measure(void)
{
    static const size_t sizes[] = { 1, 10, 100, 1000, 10000, 20000 };
    static const size_t bytes[] = { BENCH_PART, BENCH_BIG };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct compare c;
        bench_pair pair;
        if (bench_skips(sizes[i], 1000))
            continue;
        make(&c, sizes[i], 0);
        pair = bench_alternate(ours, raw, &c, 300);
        /* One node pays for the report alone. */
        bench_add("compare by nodes", (double)sizes[i], "us", &pair, sizes[i] >= 100 ? BENCH_VALUE : BENCH_NO_TARGET, 1, sizes[i] >= 10,
                  "per node, two of %zu / reading both", sizes[i]);
        if (sizes[i] == 1000) {
            c.recordings = 3;
            pair = bench_alternate(ours, raw, &c, 300);
            bench_add("compare three by nodes", (double)sizes[i], "us", &pair, BENCH_VALUE, 1, true, "per node, three of %zu / reading all",
                      sizes[i]);
            c.recordings = 4;
            pair = bench_alternate(ours, raw, &c, 300);
            bench_add("compare four by nodes", (double)sizes[i], "us", &pair, BENCH_VALUE, 1, true, "per node, four of %zu / reading all",
                      sizes[i]);
        }
        drop(&c);
    }
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        struct compare c;
        bench_pair pair;
        make(&c, 500, bytes[i]);
        pair = bench_alternate(ours, raw, &c, 300);
        bench_add("compare by argument bytes", (double)bytes[i], "us", &pair, BENCH_VALUE, 1, true, "per node, two of 500 of %zu bytes / reading both",
                  bytes[i]);
        c.recordings = 4;
        pair = bench_alternate(ours, raw, &c, 300);
        bench_add("compare four by argument bytes", (double)bytes[i], "us", &pair, BENCH_NO_TARGET, 0, false,
                  "per node, four of 500 of %zu bytes / reading all", bytes[i]);
        drop(&c);
    }
    measure_framework(400, bench_left_over, true, "compare steps of a framework", "of a framework");
    measure_framework(180, bench_unset, true, "compare steps with unset bytes", "with unset bytes");
    measure_framework(140, bench_moved, false, "compare steps with moved memory", "with moved memory");
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work(void)
{
    static const size_t sizes[] = { 100, 1000 };

    for (size_t i = 0; i < 2; i++) {
        struct compare c;
        stepgraph_audit *audit = NULL;
        make(&c, sizes[i], 0);
        bench_work_begin();
        OK(stepgraph_audit_compare(c.steps[0], c.steps[1], NULL, &audit));
        /* What was alike when it was read is not read again. */
        WORK_IS(i == 0 ? "comparing 100 nodes" : "comparing 1000 nodes", 24, 0, { "cuCtxGetId", 1 },
                { "cuGraphNodeGetDependencies", 2 * sizes[i] });
        stepgraph_audit_destroy(audit);
        drop(&c);
    }
    for (size_t i = 0; i < 2; i++) {
        struct compare c;
        stepgraph_step *alike;
        stepgraph_audit *audit = NULL;
        make(&c, sizes[i], BENCH_PART); /* One node in eight differs. */
        bench_work_begin();
        OK(stepgraph_audit_compare_many(2, c.steps, 2, c.steps + 2, &audit));
        bench_expect(bench_work_calls("cuGraphKernelNodeGetParams") == 4 * ((sizes[i] + 7) / 8), "%zu nodes, of which one in eight is read again",
                     sizes[i]);
        stepgraph_audit_destroy(audit);
        alike = record(&c, "k + 1, the same", 1);
        bench_work_begin();
        OK(stepgraph_audit_compare(c.steps[0], c.steps[1], alike, &audit));
        bench_expect(bench_work_calls("cuGraphKernelNodeGetParams") == 2 * ((sizes[i] + 7) / 8), "%zu nodes, two of three recordings alike: read once",
                     sizes[i]);
        stepgraph_audit_destroy(audit);
        stepgraph_step_destroy(alike);
        drop(&c);
    }
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "compare", measure, check_work);
}
