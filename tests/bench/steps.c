/*
 * A whole step, replayed against launch by launch, from the first call until the device is done: by launches per step.
 */
#include "bench.h"

struct steps {
    stepgraph_pin *pin;
    stepgraph_step *step;
    CUgraphExec exec;
    unsigned launches, burst;
};

static double ours(void *user)
{
    const struct steps *s = user;
    double start = bench_now_us();

    for (unsigned i = 0; i < s->burst; i++)
        OK(stepgraph_step_replay(s->step));
    bench_sync();
    return (bench_now_us() - start) / s->burst;
}

static double fresh(void *user)
{
    const struct steps *s = user;
    double start = bench_now_us();

    for (unsigned i = 0; i < s->burst; i++)
        bench_launches(stream, stepgraph_pin_address(s->pin), s->launches);
    bench_sync();
    return (bench_now_us() - start) / s->burst;
}

static double graph(void *user)
{
    const struct steps *s = user;
    double start = bench_now_us();

    for (unsigned i = 0; i < s->burst; i++)
        CU(GraphLaunch(s->exec, stream));
    bench_sync();
    return (bench_now_us() - start) / s->burst;
}

static void make(struct steps *s, unsigned launches)
{
    s->launches = launches;
    s->burst = 20000 / launches < 1 ? 1 : 20000 / launches > 50 ? 50 : 20000 / launches;
    s->pin = bench_pin(session, STEPGRAPH_ROLE_STATE, 0, 4, "state");
    s->step = bench_step(session, "step", 0);
    bench_record(s->step, stepgraph_pin_address(s->pin), launches);
    s->exec = bench_instantiate(stepgraph_step_graph(s->step));
    CU(GraphUpload(s->exec, stream));
    bench_sync();
}

static void drop(struct steps *s)
{
    CU(GraphExecDestroy(s->exec));
    stepgraph_step_destroy(s->step);
    OK(stepgraph_pin_destroy(s->pin));
}

static void measure(void)
{
    static const unsigned sizes[] = { 1, 3, 10, 30, 100, 300, 1000, 2000, 5000, 20000 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bool headline = sizes[i] == 1 || sizes[i] == 10 || sizes[i] == 100 || sizes[i] == 1000 || sizes[i] == 20000;
        struct steps s;
        bench_pair pair;
        if (bench_skips(sizes[i], 1000))
            continue;
        make(&s, sizes[i]);
        pair = bench_alternate(ours, fresh, &s, 600);
        bench_add("step by launches", sizes[i], "us", &pair, BENCH_NO_TARGET, 0, headline, "step of %u, replayed / launch by launch",
                  sizes[i]);
        pair = bench_alternate(ours, graph, &s, 300);
        bench_add("step by launches, raw graph", sizes[i], "us", &pair, BENCH_NO_TARGET, 0, headline && sizes[i] >= 100,
                  "step of %u, replayed / raw graph", sizes[i]);
        drop(&s);
    }
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work(void)
{
    struct steps s;

    make(&s, 500);
    bench_work_begin();
    for (int i = 0; i < 20; i++)
        OK(stepgraph_step_replay(s.step));
    WORK_IS("20 replays of 500 launches", 0, 0, { "cuCtxGetId", 20 }, { "cuGraphLaunch", 20 });
    bench_sync();
    drop(&s);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "steps", measure, check_work);
}
