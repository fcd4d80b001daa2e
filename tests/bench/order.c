/*
 * Finding the edges that a recording needs, and laying them out on lanes, by nodes: a step of one stream whose first half is a chain through
 * temporaries and whose second half updates one parameter after the other. The driver has no part in it, so there is nothing to compare with.
 */
#include <stdlib.h>

#include "bench.h"
#include "graph/order.h"

enum { MOST_ACCESSES = 8, UPDATES = 6 };

struct recording {
    sg__order_input input;
    sg__graph_edge *edges;
    sg__access *accesses;
    sg__order order;
    uint32_t lanes;
};

static void touch(struct recording *r, uint32_t node, uint32_t block)
{
    r->accesses[r->input.n_accesses++] =
        (sg__access){.node = node, .start = 0x700000000000u + (uint64_t)block * 65536, .bytes = 65536, .write = true};
}

/* Blocks of parameters, two moments and gradients, and behind them the temporaries. */
static void make(struct recording *r, uint32_t n)
{
    uint32_t half = n / 2, parameters = (n - half) / UPDATES + 1;

    r->edges = malloc(n * sizeof *r->edges);
    r->accesses = malloc((size_t)n * MOST_ACCESSES * sizeof *r->accesses);
    r->input = (sg__order_input){.n = n, .recorded = r->edges, .n_recorded = n - 1, .accesses = r->accesses};
    for (uint32_t i = 1; i < n; i++)
        r->edges[i - 1] = (sg__graph_edge){.from = i - 1, .to = i};
    for (uint32_t i = 0; i < half; i++) {
        touch(r, i, 4 * parameters + i);
        touch(r, i, 4 * parameters + i + 1);
        touch(r, i, 4 * (i % parameters));
        touch(r, i, 4 * (i % parameters) + 3);
        if (i >= 7)
            touch(r, i, 4 * parameters + i - 7);
    }
    for (uint32_t i = half; i < n; i++)
        for (uint32_t k = 0; k < 4; k++)
            touch(r, i, 4 * ((i - half) / UPDATES) + k);
}

static void drop(struct recording *r)
{
    free(r->edges);
    free(r->accesses);
}

static double build(void *user)
{
    struct recording *r = user;
    double start = bench_now_us(), us;

    OK(sg__order_build(&r->input, &r->order));
    us = bench_now_us() - start;
    sg__order_free(&r->order);
    return us;
}

static double lay_out(void *user)
{
    struct recording *r = user;
    sg__order lanes;
    double start = bench_now_us(), us;

    OK(sg__order_lanes(&r->order, r->lanes, &lanes, NULL));
    us = bench_now_us() - start;
    sg__order_free(&lanes);
    return us;
}

/* In place of driver calls. */
static double nothing(void *user)
{
    (void)user;
    return 0;
}

static void measure(void)
{
    static const uint32_t nodes[] = {100, 300, 1000, 2600, 10000, 20000};

    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        struct recording r = {.lanes = 8};
        bool real = nodes[i] == 2600; /* As many as a real step has. */
        bench_pair pair;
        make(&r, nodes[i]);
        pair = bench_alternate(build, nothing, &r, 300);
        bench_add("edges by nodes", nodes[i], "us", &pair, real ? BENCH_VALUE : BENCH_NO_TARGET, real ? 5000 : 0, real, "edges, %u nodes", nodes[i]);
        OK(sg__order_build(&r.input, &r.order));
        pair = bench_alternate(lay_out, nothing, &r, 300);
        bench_add("lanes by nodes", nodes[i], "us", &pair, real ? BENCH_VALUE : BENCH_NO_TARGET, real ? 5000 : 0, real, "8 lanes, %u nodes",
                  nodes[i]);
        sg__order_free(&r.order);
        drop(&r);
    }
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work(void)
{
    struct recording r = {.lanes = 8};
    sg__order lanes;

    make(&r, 2600);
    bench_work_begin();
    OK(sg__order_build(&r.input, &r.order));
    WORK_IS("edges of 2600 nodes", 48, 0, {NULL, 0});
    bench_expect(bench_work_bytes() <= 2600 * 4 + 4 * 2600 * 8, "edges of 2600 nodes: %ld bytes are kept, a line and 4 edges a node at most",
                 bench_work_bytes());
    bench_work_begin();
    OK(sg__order_lanes(&r.order, r.lanes, &lanes, NULL));
    WORK_IS("8 lanes of 2600 nodes", 32, 0, {NULL, 0});
    sg__order_free(&lanes);
    sg__order_free(&r.order);
    drop(&r);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "order", measure, check_work);
}
