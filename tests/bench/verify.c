/*
 * What verifying a relaxed step costs, by nodes and by bytes: a chain of small kernels over one buffer each, in so much memory. There is nothing
 * to compare it with. A call is timed once; it is made once while developing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

enum { MOST = 64 };

struct verified {
    stepgraph_pin *pins[MOST];
    unsigned n_pins;
    stepgraph_step *step;
    uint32_t flags;
};

static void make(struct verified *v, unsigned nodes, uint64_t bytes)
{
    stepgraph_relax_config relax = STEPGRAPH_RELAX_CONFIG_INIT;
    char name[16];

    v->n_pins = MOST;
    for (unsigned i = 0; i < v->n_pins; i++) {
        snprintf(name, sizeof name, "%u", i);
        v->pins[i] = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, bytes / MOST, name);
    }
    v->step = bench_step(session, "verified", 0);
    OK(stepgraph_step_prepare(v->step));
    OK(stepgraph_step_capture(v->step));
    for (unsigned i = 0; i < nodes; i++)
        bench_launches(stream, stepgraph_pin_address(v->pins[i % MOST]), 1);
    OK(stepgraph_step_end(v->step));
    relax.lanes = 8;
    OK(stepgraph_step_relax(v->step, &relax, NULL));
}

static void drop(struct verified *v)
{
    stepgraph_step_destroy(v->step);
    for (unsigned i = v->n_pins; i-- > 0;)
        OK(stepgraph_pin_destroy(v->pins[i]));
}

/* One call, in milliseconds; it has to find nothing. */
static double verify(const struct verified *v)
{
    stepgraph_verify_config config = STEPGRAPH_VERIFY_CONFIG_INIT;
    stepgraph_verify_summary summary = STEPGRAPH_VERIFY_SUMMARY_INIT;
    stepgraph_verify *report = NULL;
    double start = bench_now_us(), ms;

    config.flags = v->flags;
    OK(stepgraph_step_verify(v->step, &config, &report));
    ms = (bench_now_us() - start) / 1000;
    OK(stepgraph_verify_get_summary(report, &summary));
    if (summary.verdict != STEPGRAPH_NO_FAULT_FOUND) {
        puts(stepgraph_verify_text(report));
        exit(1);
    }
    stepgraph_verify_destroy(report);
    return ms;
}

static void measure_one(const char *series, double x, unsigned nodes, uint64_t bytes)
{
    static const struct {
        const char *name;
        uint32_t flags;
    } parts[] = {
        {"control and hidden writes", STEPGRAPH_VERIFY_NO_ISOLATION | STEPGRAPH_VERIFY_NO_ORDERS | STEPGRAPH_VERIFY_NO_REPLAYS},
        {"isolation too", STEPGRAPH_VERIFY_NO_ORDERS | STEPGRAPH_VERIFY_NO_REPLAYS},
        {"all", 0},
    };
    struct verified v;

    if (bench_skips((uint64_t)nodes * bytes, (uint64_t)8 << 30))
        return;
    make(&v, nodes, bytes);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double ms[3];
        bench_pair pair = {{0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}};
        v.flags = parts[i].flags;
        for (int k = 0; k < 3; k++)
            ms[k] = verify(&v);
        pair.ours = pair.difference = bench_stat_of(ms, 3);
        bench_add(series, x, "ms", &pair, BENCH_NO_TARGET, 0, i == 2, "%u nodes, %u MiB: %s", nodes, (unsigned)(bytes >> 20), parts[i].name);
    }
    drop(&v);
}

static void measure(void)
{
    static const unsigned nodes[] = {100, 1000, 2600};
    static const unsigned mib[] = {64, 1024};

    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        measure_one("verify by nodes", nodes[i], nodes[i], (uint64_t)16 << 20);
    for (size_t i = 0; i < sizeof mib / sizeof *mib; i++)
        measure_one("verify by bytes", mib[i], 1000, (uint64_t)mib[i] << 20);
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work(void)
{
    enum { NODES = 40 };
    unsigned long launches, own;
    struct verified v = {.flags = 0};

    make(&v, NODES, 1 << 20);
    bench_work_begin();
    verify(&v);
    launches = bench_work_calls("cuGraphLaunch");
    own = bench_work_calls("cuLaunchKernel");
    /* Four runs of the recording, four orders and eight relaxed runs, ten steps each; each node alone twice. */
    bench_expect(launches == (4 + 4 + 8) * 10 + 2 * NODES, "%d nodes: %lu launches of graphs", NODES, launches);
    /* A hash and a judgement a node and part, and in isolation three copies or fillings more. */
    bench_expect(own <= 2 * (4 + 4 + 8) * 10 + 7 * NODES + 100, "%d nodes: %lu kernels of the library", NODES, own);
    v.flags = 0;
    drop(&v);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "verify", measure, check_work);
}
