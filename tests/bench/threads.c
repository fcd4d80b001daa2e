/*
 * Several sessions, each with a thread of its own, replaying at once: host time per replay against as many threads that call cuGraphLaunch.
 */
#include <pthread.h>
#include <stdio.h>

#include "bench.h"

enum { THREADS_MOST = 8, NODES = 100, BURST = 16, ROUNDS = 8 };

struct worker {
    pthread_t thread;
    stepgraph_session *session;
    CUstream stream;
    stepgraph_pin *pin;
    stepgraph_step *step;
    CUgraphExec exec;
    bool ours;
    pthread_barrier_t *barrier;
    double us;
};

struct team {
    struct worker workers[THREADS_MOST];
    unsigned n;
};

static void *work(void *argument)
{
    struct worker *w = argument;
    double us = 0;

    CU(CtxSetCurrent(stepgraph_session_context(w->session)));
    pthread_barrier_wait(w->barrier);
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_now_us();
        if (w->ours)
            for (int i = 0; i < BURST; i++)
                OK(stepgraph_step_replay(w->step));
        else
            for (int i = 0; i < BURST; i++)
                CU(GraphLaunch(w->exec, w->stream));
        us += bench_now_us() - start;
        CU(StreamSynchronize(w->stream));
    }
    w->us = us / (BURST * ROUNDS);
    return NULL;
}

static double together(struct team *team, bool ours)
{
    pthread_barrier_t barrier;
    double us = 0;

    pthread_barrier_init(&barrier, NULL, team->n);
    for (unsigned i = 0; i < team->n; i++) {
        struct worker *w = &team->workers[i];
        w->ours = ours;
        w->barrier = &barrier;
        if (pthread_create(&w->thread, NULL, work, w) != 0)
            bench_must_driver(CUDA_ERROR_UNKNOWN, "pthread_create", __FILE__, __LINE__);
    }
    for (unsigned i = 0; i < team->n; i++) {
        pthread_join(team->workers[i].thread, NULL);
        us += team->workers[i].us / team->n;
    }
    pthread_barrier_destroy(&barrier);
    return us;
}

static double ours(void *user)
{
    return together(user, true);
}

static double raw(void *user)
{
    return together(user, false);
}

static void make(struct team *team, unsigned n)
{
    team->n = n;
    for (unsigned i = 0; i < n; i++) {
        struct worker *w = &team->workers[i];
        w->session = bench_open(NULL);
        w->stream = stepgraph_session_stream(w->session);
        w->pin = bench_pin(w->session, STEPGRAPH_ROLE_STATE, 0, 4, "state");
        w->step = bench_step(w->session, "step", 0);
        OK(stepgraph_step_prepare(w->step));
        OK(stepgraph_step_capture(w->step));
        bench_launches(w->stream, stepgraph_pin_address(w->pin), NODES);
        OK(stepgraph_step_end(w->step));
        w->exec = bench_instantiate(stepgraph_step_graph(w->step));
        CU(GraphUpload(w->exec, w->stream));
        OK(stepgraph_session_wait(w->session));
    }
}

static void drop(struct team *team)
{
    for (unsigned i = 0; i < team->n; i++) {
        struct worker *w = &team->workers[i];
        CU(GraphExecDestroy(w->exec));
        stepgraph_step_destroy(w->step);
        OK(stepgraph_pin_destroy(w->pin));
        OK(stepgraph_session_close(w->session));
    }
}

static void measure(void)
{
    for (unsigned n = 1; n <= THREADS_MOST; n *= 2) {
        struct team team;
        bench_pair pair;
        make(&team, n);
        pair = bench_alternate(ours, raw, &team, 1000);
        /* Threads contend for the driver's locks, whose cost varies by more than 0.1 us. */
        bench_add("replay by threads", n, "us", &pair, n == 1 ? BENCH_DIFFERENCE : BENCH_RATIO, n == 1 ? 0.1 : 1.1, true,
                  "replay, %u sessions in %u threads / launch", n, n);
        drop(&team);
    }
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work(void)
{
    struct team team;
    float values[2];

    make(&team, 2);
    bench_work_begin();
    together(&team, true);
    /* Calls are counted over all threads. */
    bench_expect(bench_work_calls("cuGraphLaunch") == 2 * BURST * ROUNDS, "two threads launch %lu graphs, expected %d",
                 bench_work_calls("cuGraphLaunch"), 2 * BURST * ROUNDS);
    bench_expect(bench_work_calls("cuCtxPushCurrent") == 0, "and push no context");
    for (int i = 0; i < 2; i++) {
        OK(stepgraph_pin_read(team.workers[i].pin, &values[i], sizeof values[i]));
        bench_expect((double)values[i] == NODES * BURST * ROUNDS, "session %d added %.0f times, expected %d", i, (double)values[i],
                     NODES * BURST * ROUNDS);
    }
    drop(&team);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "threads", measure, check_work);
}
