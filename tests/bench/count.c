/*
 * Counting a launch against a bare relaxed atomic add, by one thread and by eight at once; against a call of the library that does nothing,
 * since calling takes as long as counting; and stepgraph_session_launch() against cuLaunchKernel.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "bench.h"

enum { THREADS_MOST = 8, COUNTS = 100000, LAUNCHES = 64 };

static _Atomic uint64_t plain;

/* As far away as the library's call: in a function of its own. */
__attribute__((noinline)) static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

struct many {
    unsigned threads;
    bool ours;
    pthread_barrier_t barrier;
};

static double loop(bool ours)
{
    double start = bench_now_us();

    if (ours)
        for (unsigned i = 0; i < COUNTS; i++)
            stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 1);
    else
        for (unsigned i = 0; i < COUNTS; i++)
            add(&plain, 1);
    return (bench_now_us() - start) * 1e3 / COUNTS;
}

static double one_empty(void *user)
{
    double start = bench_now_us();

    (void)user;
    for (unsigned i = 0; i < COUNTS; i++)
        (void)stepgraph_version();
    return (bench_now_us() - start) * 1e3 / COUNTS;
}

static double one_ours(void *user)
{
    (void)user;
    return loop(true);
}

static double one_raw(void *user)
{
    (void)user;
    return loop(false);
}

struct worker {
    pthread_t thread;
    struct many *many;
    double ns;
};

static void *work(void *argument)
{
    struct worker *w = argument;

    pthread_barrier_wait(&w->many->barrier);
    w->ns = loop(w->many->ours);
    return NULL;
}

static double together(struct many *many, bool ours)
{
    struct worker workers[THREADS_MOST];
    double ns = 0;

    many->ours = ours;
    pthread_barrier_init(&many->barrier, NULL, many->threads);
    for (unsigned i = 0; i < many->threads; i++) {
        workers[i].many = many;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            bench_must_driver(CUDA_ERROR_UNKNOWN, "pthread_create", __FILE__, __LINE__);
    }
    for (unsigned i = 0; i < many->threads; i++) {
        pthread_join(workers[i].thread, NULL);
        ns += workers[i].ns / many->threads;
    }
    pthread_barrier_destroy(&many->barrier);
    return ns;
}

static double many_ours(void *user)
{
    return together(user, true);
}

static double many_raw(void *user)
{
    return together(user, false);
}

/* ---- the wrapper --------------------------------------------------------------------------------------------------- */

static double wrapped(void *user)
{
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;
    double start = bench_now_us(), us;

    (void)user;
    call.function = kernels.nop;
    for (int i = 0; i < LAUNCHES; i++)
        OK(stepgraph_session_launch(session, &call));
    us = (bench_now_us() - start) / LAUNCHES;
    bench_sync();
    return us;
}

static double unwrapped(void *user)
{
    double start = bench_now_us(), us;

    (void)user;
    for (int i = 0; i < LAUNCHES; i++)
        CU(LaunchKernel(kernels.nop, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    us = (bench_now_us() - start) / LAUNCHES;
    bench_sync();
    return us;
}

static void measure(void)
{
    bench_pair pair = bench_alternate(one_ours, one_empty, NULL, 300);

    bench_add("counting over a call", 1, "ns", &pair, BENCH_DIFFERENCE, 2, true, "counting / an empty call of the library");
    pair = bench_alternate(one_ours, one_raw, NULL, 300);
    bench_add("counting by threads", 1, "ns", &pair, BENCH_RATIO, 1, true, "counting, 1 thread / atomic add");
    for (unsigned threads = 2; threads <= THREADS_MOST; threads *= 2) {
        struct many many = { .threads = threads };
        pair = bench_alternate(many_ours, many_raw, &many, 1000);
        bench_add("counting by threads", threads, "ns", &pair, BENCH_NO_TARGET, 0, true, "counting, %u threads / atomic add", threads);
    }
    pair = bench_alternate(wrapped, unwrapped, NULL, 500);
    bench_add("wrapped launch", 1, "us", &pair, BENCH_DIFFERENCE, 0.1, true, "counted launch / cuLaunchKernel");
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work(void)
{
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;
    stepgraph_sample sample = STEPGRAPH_SAMPLE_INIT;
    struct many many = { .threads = THREADS_MOST };

    stepgraph_session_count(session, STEPGRAPH_KIND_KERNEL, 1);
    bench_work_begin();
    loop(true);
    WORK_IS("counting", 0, 0, { NULL, 0 });
    together(&many, true);
    OK(stepgraph_session_sample(session, 0, &sample));
    bench_expect(sample.host[STEPGRAPH_KIND_KERNEL] == 1 + (THREADS_MOST + 1) * (uint64_t)COUNTS,
                 "nine threads counted %llu, expected %llu", (unsigned long long)sample.host[STEPGRAPH_KIND_KERNEL],
                 (unsigned long long)(1 + (THREADS_MOST + 1) * (uint64_t)COUNTS));

    call.function = kernels.nop;
    OK(stepgraph_session_launch(session, &call));
    bench_sync();
    bench_work_begin();
    for (int i = 0; i < 100; i++)
        OK(stepgraph_session_launch(session, &call));
    WORK_IS("100 counted launches", 0, 0, { "cuLaunchKernel", 100 });
    bench_sync();
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "count", measure, check_work);
}
