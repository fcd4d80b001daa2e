/* How fast graphs of small nodes are replayed. One thread does the work, so it is the speed of one core. */
#include "test.h"

#include <time.h>

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void replay(const char *what, int nodes, int launches, CUfunction f, unsigned threads, void **args)
{
    CUstream s = stream(CU_STREAM_NON_BLOCKING);
    CUgraph g = NULL;
    CUgraphExec x = NULL;

    OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int i = 0; i < nodes; i++)
        OK(cu.cuLaunchKernel(f, 1, 1, 1, threads, 1, 1, 0, s, args, NULL));
    OK(cu.cuStreamEndCapture(s, &g));
    OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cu.cuGraphLaunch(x, s));
    OK(cu.cuStreamSynchronize(s));
    double start = seconds();
    for (int i = 0; i < launches; i++) {
        OK(cu.cuGraphLaunch(x, s));
        OK(cu.cuStreamSynchronize(s));
    }
    double took = seconds() - start;
    printf("%-28s %6d nodes x %6d launches: %8.2f million nodes/s, %7.2f us a launch\n", what, nodes, launches,
           (double)nodes * launches / took * 1e-6, took / launches * 1e6);
    OK(cu.cuGraphExecDestroy(x));
    OK(cu.cuGraphDestroy(g));
    OK(cu.cuStreamDestroy_v2(s));
}

int main(void)
{
    start();
    CUdeviceptr p = memory(4096);
    float v = 1;
    int n = 256;
    void *inc[] = {&p, &v}, *addn[] = {&p, &v, &n};

    replay("empty kernels", 20000, 500, function("nop"), 1, NULL);
    replay("empty kernels", 1000, 5000, function("nop"), 1, NULL);
    replay("empty kernels", 1, 50000, function("nop"), 1, NULL);
    replay("kernels of one addition", 20000, 200, function("inc"), 1, inc);
    replay("kernels of 256 additions", 20000, 50, function("addn"), 256, addn);
    return finish();
}
