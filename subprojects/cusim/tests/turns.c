/* The order between streams, drawn from a seed, and streams that are slow. */
#include "test.h"

#include <time.h>

enum { STREAMS = 4, EACH = 6, NODES = 3 };

static CUstream s[STREAMS];
static CUdeviceptr list;

static void note(int id, CUstream stream)
{
    void *args[] = {&list, &id};

    OK(cu.cuLaunchKernel(function("note"), 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
}

static void synchronize(void)
{
    for (int i = 0; i < STREAMS; i++)
        OK(cu.cuStreamSynchronize(s[i]));
}

/* What ran, in its order: kernels alone, then graphs. */
static void round_of(unsigned long long seed, int order[1 + STREAMS * EACH + STREAMS * NODES], CUgraphExec *x)
{
    cu.set_seed(0);
    OK(cu.cuMemsetD8_v2(list, 0, 4096));
    cu.set_seed(seed);
    for (int k = 0; k < EACH; k++)
        for (int i = 0; i < STREAMS; i++)
            note(i * 100 + k, s[i]);
    for (int i = 0; i < STREAMS; i++)
        OK(cu.cuGraphLaunch(x[i], s[i]));
    synchronize();
    cu.set_seed(0);
    OK(cu.cuMemcpyDtoH_v2(order, list, (1 + STREAMS * EACH + STREAMS * NODES) * sizeof *order));
}

static void seeds(void)
{
    enum { ALL = STREAMS * EACH + STREAMS * NODES };
    static int order[9][1 + ALL], again[1 + ALL];
    CUgraphExec x[STREAMS];
    int distinct = 0, between = 0;

    for (int i = 0; i < STREAMS; i++) {
        CUgraph g;
        OK(cu.cuStreamBeginCapture_v2(s[i], CU_STREAM_CAPTURE_MODE_RELAXED));
        for (int k = 0; k < NODES; k++)
            note(i * 100 + 50 + k, s[i]);
        OK(cu.cuStreamEndCapture(s[i], &g));
        OK(cu.cuGraphInstantiateWithFlags(&x[i], g, 0));
        OK(cu.cuGraphDestroy(g));
    }
    for (int seed = 1; seed < 9; seed++) {
        int last[STREAMS];

        round_of((unsigned long long)seed, order[seed], x);
        CHECK(order[seed][0] == ALL);
        /* Each stream keeps its own order. */
        memset(last, -1, sizeof last);
        for (int i = 1; i <= ALL; i++) {
            int stream_of = order[seed][i] / 100;
            CHECK(stream_of < STREAMS && order[seed][i] % 100 > last[stream_of]);
            last[stream_of] = order[seed][i] % 100;
            /* Another stream's work between two nodes of one graph. */
            between += i < ALL && order[seed][i] % 100 >= 50 && order[seed][i] % 100 < 50 + NODES - 1 &&
                       order[seed][i + 1] / 100 != stream_of;
        }
        round_of((unsigned long long)seed, again, x);
        CHECK(memcmp(order[seed], again, sizeof again) == 0);
        distinct += seed == 1 || memcmp(order[seed], order[1], sizeof again) != 0;
    }
    CHECK(distinct >= 7);
    CHECK(between > 0);
    for (int i = 0; i < STREAMS; i++)
        OK(cu.cuGraphExecDestroy(x[i]));
}

/* Nodes without a path between them run in any order: the first three of each group of four, before the fourth. */
static void unordered(void)
{
    enum { GROUPS = 4, ALL = 4 * GROUPS };
    static int order[9][1 + ALL];
    CUgraphNode node[ALL];
    int distinct = 0;
    CUgraphExec x;
    CUgraph g;

    OK(cu.cuGraphCreate(&g, 0));
    for (int i = 0; i < ALL; i++) {
        void *args[] = {&list, &i};
        CUDA_KERNEL_NODE_PARAMS p = {.func = function("note"), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1,
                                     .blockDimZ = 1, .kernelParams = args};
        bool joins = i % 4 == 3;
        OK(cu.cuGraphAddKernelNode_v2(&node[i], g, joins ? &node[i - 3] : i >= 4 ? &node[i / 4 * 4 - 1] : NULL, joins ? 3 : i >= 4 ? 1 : 0, &p));
    }
    for (int seed = 0; seed < 9; seed++)
        for (int twice = 0; twice < 2; twice++) {
            int got[1 + ALL];

            OK(cu.cuMemsetD8_v2(list, 0, 4096));
            cu.set_seed((unsigned long long)seed);
            OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
            OK(cu.cuGraphLaunch(x, s[0]));
            OK(cu.cuStreamSynchronize(s[0]));
            OK(cu.cuGraphExecDestroy(x));
            cu.set_seed(0);
            OK(cu.cuMemcpyDtoH_v2(got, list, sizeof got));
            CHECK(got[0] == ALL);
            for (int i = 0; i < ALL; i++) {
                CHECK(got[1 + i] / 4 == i / 4);
                CHECK((got[1 + i] % 4 == 3) == (i % 4 == 3));
                CHECK(seed != 0 || got[1 + i] == i);
            }
            if (twice)
                CHECK(memcmp(order[seed], got, sizeof got) == 0);
            memcpy(order[seed], got, sizeof got);
        }
    for (int seed = 1; seed < 9; seed++)
        distinct += memcmp(order[seed], order[seed - 1], sizeof order[seed]) != 0;
    CHECK(distinct >= 7);
    OK(cu.cuGraphDestroy(g));
}

static void wait_for_host(void *flag)
{
    while (!__atomic_load_n((int *)flag, __ATOMIC_ACQUIRE))
        nanosleep(&(struct timespec){0, 100000}, NULL);
}

/* Nothing hangs that does not hang without a seed. */
static void no_hang(void)
{
    int *flag, go = 0;
    CUdeviceptr word = memory(64);

    cu.set_seed(3);
    OK(cu.cuMemAllocHost_v2((void **)&flag, 64));
    *flag = 0;
    /* The program watches memory. */
    OK(cu.cuMemsetD32Async((CUdeviceptr)(uintptr_t)flag, 1, 1, s[0]));
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        ;
    /* It asks again and again. */
    note(1, s[0]);
    while (cu.cuStreamQuery(s[0]) == CUDA_ERROR_NOT_READY)
        ;
    /* Work waits for other work by value, and for the program. */
    OK(cu.cuStreamWaitValue32_v2(s[0], word, 7, 1));
    note(2, s[0]);
    OK(cu.cuStreamWriteValue32_v2(s[1], word, 7, 0));
    OK(cu.cuLaunchHostFunc(s[2], wait_for_host, &go));
    OK(cu.cuStreamSynchronize(s[0]));
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    synchronize();
    cu.set_seed(0);
    OK(cu.cuMemFreeHost(flag));
    OK(cu.cuMemFree_v2(word));
}

static double ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void slow(void)
{
    double before;

    cu.set_delay(5000000);
    before = ms();
    for (int i = 0; i < 4; i++)
        note(i, s[0]);
    CHECK(ms() - before < 15);
    OK(cu.cuStreamSynchronize(s[0]));
    CHECK(ms() - before >= 20);
    cu.set_delay(0);
    /* One alone: the others go on. */
    CHECK(cu.set_stream_delay(s[1], 50000000) == 0);
    CHECK(cu.set_stream_delay(NULL, 1) == -1);
    note(1, s[1]);
    note(2, s[2]);
    OK(cu.cuStreamSynchronize(s[2]));
    CODE(600, cu.cuStreamQuery(s[1]));
    synchronize();
    CHECK(cu.set_stream_delay(s[1], 0) == 0);
}

int main(void)
{
    start();
    list = memory(4096);
    for (int i = 0; i < STREAMS; i++)
        s[i] = stream(CU_STREAM_NON_BLOCKING);
    seeds();
    unordered();
    no_hang();
    slow();
    OK(cu.cuMemFree_v2(list));
    return finish();
}
