/*
 * The checks of CUSIM_CHECK: each mistake is found and named, and ordinary programs are not accused.
 *
 * Each case runs in a process of its own, since a fault spoils a context and the settings are read once. What it must say on
 * standard error stands beside it.
 */
#include "test.h"
#include "cusim/cusim.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static CUstream a, b;

static void begin(void)
{
    start();
    a = stream(CU_STREAM_NON_BLOCKING);
    b = stream(CU_STREAM_NON_BLOCKING);
}

static CUdeviceptr plain(size_t bytes)
{
    CUdeviceptr p = 0;

    OK(cu.cuMemAlloc_v2(&p, bytes));
    OK(cu.cuMemsetD8_v2(p, 0, bytes));
    return p;
}

static void addn(CUdeviceptr p, int n, CUstream s)
{
    float v = 1;
    void *args[] = {&p, &v, &n};

    OK(cu.cuLaunchKernel(function("addn"), 1, 1, 1, (unsigned)n, 1, 1, 0, s, args, NULL));
}

static CUgraphExec captured_inc(CUdeviceptr p)
{
    CUgraph g = NULL;
    CUgraphExec x = NULL;

    OK(cu.cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(launch_inc(p, 1, a));
    OK(cu.cuStreamEndCapture(a, &g));
    OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cu.cuGraphDestroy(g));
    return x;
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static void past_the_end(void)
{
    CUdeviceptr p = plain(256);

    addn(p, 65, a);
    CODE(700, cu.cuStreamSynchronize(a));
}

static void just_past_the_end(void)
{
    CUdeviceptr p = plain(100);

    addn(p, 26, a);
    OK(cu.cuStreamSynchronize(a));
}

static void before_the_start(void)
{
    CUdeviceptr p = plain(100);

    OK(launch_inc(p - 8, 1, a));
    OK(cu.cuStreamSynchronize(a));
}

static void freed_eager(void)
{
    CUdeviceptr p = plain(256);

    OK(cu.cuMemFree_v2(p));
    plain(256); /* It does not get the same address. */
    OK(launch_inc(p + 8, 1, a));
    CODE(700, cu.cuStreamSynchronize(a));
}

static void freed_replay(void)
{
    CUdeviceptr p = plain(1000);
    CUgraphExec x = captured_inc(p);

    OK(cu.cuGraphLaunch(x, a));
    OK(cu.cuMemFree_v2(p));
    plain(1000);
    OK(cu.cuGraphLaunch(x, a));
    CODE(700, cu.cuStreamSynchronize(a));
}

static void freed_strict(void)
{
    CUdeviceptr p = plain(1000);
    CUgraphExec x = captured_inc(p);

    OK(cu.cuMemFree_v2(p));
    CODE(700, cu.cuGraphLaunch(x, a));
}

static void after_graph_free(void)
{
    CUdeviceptr p = 0;
    CUgraph g = NULL;
    CUgraphExec x = NULL;

    OK(cu.cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cu.cuMemAllocAsync(&p, 4096, a));
    OK(launch_inc(p, 1, a));
    OK(cu.cuMemFreeAsync(p, a));
    OK(launch_inc(p, 1, a));
    OK(cu.cuStreamEndCapture(a, &g));
    OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cu.cuGraphDestroy(g));
    OK(cu.cuGraphLaunch(x, a));
    CODE(700, cu.cuStreamSynchronize(a));
}

static void host_pointer(void)
{
    float word = 1;

    OK(launch_inc((CUdeviceptr)(uintptr_t)&word, 1, a));
    OK(cu.cuStreamSynchronize(a));
}

/* ---- host buffers -------------------------------------------------------------------------------------------------- */

static void host_overwritten(void)
{
    CUdeviceptr p = plain(4096);
    float *pinned;

    OK(cu.cuMemAllocHost_v2((void **)&pinned, 4096));
    pinned[0] = 1;
    CHECK(cu.set_stream_delay(a, 20000000) == 0);
    OK(cu.cuMemcpyHtoDAsync_v2(p, pinned, 4096, a));
    pinned[0] = 2;
    OK(cu.cuStreamSynchronize(a));
}

static void host_overwritten_replay(void)
{
    CUdeviceptr p = plain(4096);
    float *pinned;
    CUgraph g = NULL;
    CUgraphExec x = NULL;

    OK(cu.cuMemAllocHost_v2((void **)&pinned, 4096));
    OK(cu.cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(launch_spin(20000000, a));
    OK(cu.cuMemcpyHtoDAsync_v2(p, pinned, 4096, a));
    OK(cu.cuStreamEndCapture(a, &g));
    OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cu.cuGraphDestroy(g));
    pinned[5] = 1;
    OK(cu.cuGraphLaunch(x, a));
    OK(cu.cuStreamSynchronize(a));
    CHECK(cu.findings() == 0);
    OK(cu.cuGraphLaunch(x, a));
    pinned[5] = 2;
    OK(cu.cuStreamSynchronize(a));
}

/* ---- order --------------------------------------------------------------------------------------------------------- */

static void race_copy_kernel(void)
{
    CUdeviceptr p = plain(4096);

    CHECK(cu.set_stream_delay(a, 20000000) == 0);
    OK(launch_inc(p, 1, a));
    OK(cu.cuMemsetD8Async(p, 0, 4096, b));
    OK(cu.cuStreamSynchronize(a));
    OK(cu.cuStreamSynchronize(b));
}

static void race_copy_copy(void)
{
    CUdeviceptr p = plain(4096), q = plain(4096);

    CHECK(cu.set_stream_delay(a, 20000000) == 0);
    OK(cu.cuMemcpyDtoDAsync_v2(q, p, 2048, a));
    OK(cu.cuMemcpyDtoDAsync_v2(p + 2040, q + 3000, 100, b));
    OK(cu.cuStreamSynchronize(a));
    OK(cu.cuStreamSynchronize(b));
}

static void race_replays(void)
{
    CUdeviceptr p = plain(4096);
    CUgraphExec x = captured_inc(p), y = captured_inc(p);

    CHECK(cu.set_stream_delay(a, 20000000) == 0);
    OK(cu.cuGraphLaunch(x, a));
    OK(cu.cuGraphLaunch(y, b));
    OK(cu.cuStreamSynchronize(a));
    OK(cu.cuStreamSynchronize(b));
}

static void race_free(void)
{
    CUdeviceptr p = 0;

    OK(cu.cuMemAllocAsync(&p, 4096, a));
    CHECK(cu.set_stream_delay(a, 20000000) == 0);
    OK(launch_inc(p, 1, a));
    OK(cu.cuMemFreeAsync(p, b));
    cu.cuStreamSynchronize(a);
    cu.cuStreamSynchronize(b);
}

static void race_inside(void)
{
    CUdeviceptr p = plain(4096);
    CUevent fork = NULL, join = NULL;
    CUgraph g = NULL;
    CUgraphExec x = NULL;

    OK(cu.cuEventCreate(&fork, 0));
    OK(cu.cuEventCreate(&join, 0));
    OK(cu.cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cu.cuEventRecord(fork, a));
    OK(cu.cuStreamWaitEvent(b, fork, 0));
    OK(launch_inc(p, 1, b));
    OK(cu.cuMemsetD32Async(p, 0, 1, a));
    OK(cu.cuEventRecord(join, b));
    OK(cu.cuStreamWaitEvent(a, join, 0));
    OK(cu.cuStreamEndCapture(a, &g));
    OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cu.cuGraphDestroy(g));
    OK(cu.cuGraphLaunch(x, a));
    OK(cu.cuStreamSynchronize(a));
}

/* ---- ordinary programs --------------------------------------------------------------------------------------------- */

static void fill(void *pinned)
{
    ((float *)pinned)[0] += 1;
}

static void ordinary(void)
{
    CUdeviceptr p = plain(4096), q = plain(4096), pool = 0, word = plain(64);
    CUevent there = NULL, back = NULL;
    CUgraph g = NULL;
    CUgraphExec x = captured_inc(p), y = NULL, z = NULL;
    float *pinned, *got;

    OK(cu.cuEventCreate(&there, CU_EVENT_DISABLE_TIMING));
    OK(cu.cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
    OK(cu.cuMemAllocHost_v2((void **)&pinned, 4096));
    OK(cu.cuMemAllocHost_v2((void **)&got, 4096));
    pinned[0] = 0;
    cu.set_delay(300000);
    /* A batch copied by one stream and used by another, in turn. */
    for (int i = 0; i < 10; i++) {
        OK(cu.cuEventSynchronize(there));
        pinned[1] = (float)i;
        OK(cu.cuStreamWaitEvent(a, back, 0));
        OK(cu.cuMemcpyHtoDAsync_v2(q, pinned, 4096, a));
        OK(cu.cuEventRecord(there, a));
        OK(cu.cuStreamWaitEvent(b, there, 0));
        OK(cu.cuMemcpyDtoDAsync_v2(p, q, 4096, b));
        OK(cu.cuGraphLaunch(x, b));
        OK(cu.cuMemcpyDtoHAsync_v2(got, p, 4096, b));
        OK(cu.cuEventRecord(back, b));
    }
    OK(cu.cuStreamSynchronize(a));
    OK(cu.cuStreamSynchronize(b));
    /* One executable graph in two streams is one after the other. */
    OK(cu.cuGraphLaunch(x, a));
    OK(cu.cuGraphLaunch(x, b));
    OK(cu.cuStreamSynchronize(a));
    OK(cu.cuStreamSynchronize(b));
    /* Two halves of one allocation, rows side by side, both reading. */
    OK(cu.cuMemsetD8Async(p, 1, 2048, a));
    OK(cu.cuMemsetD8Async(p + 2048, 2, 2048, b));
    OK(cu.cuMemsetD2D8Async(q, 128, 1, 64, 32, a));
    OK(cu.cuMemsetD2D8Async(q + 64, 128, 1, 64, 32, b));
    OK(cu.cuStreamSynchronize(a));
    OK(cu.cuStreamSynchronize(b));
    OK(cu.cuMemcpyDtoHAsync_v2(got, p, 1024, a));
    OK(cu.cuMemcpyDtoHAsync_v2(pinned + 512, p, 1024, b));
    OK(cu.cuStreamSynchronize(a));
    OK(cu.cuStreamSynchronize(b));
    /* The source is written by work that comes first. */
    OK(cu.cuLaunchHostFunc(a, fill, pinned));
    OK(cu.cuMemcpyHtoDAsync_v2(p, pinned, 4096, a));
    OK(cu.cuMemcpyDtoHAsync_v2(pinned, q, 64, a));
    OK(cu.cuMemcpyHtoDAsync_v2(p, pinned, 4096, a));
    OK(launch_inc((CUdeviceptr)(uintptr_t)pinned, 1, a));
    OK(cu.cuMemcpyHtoDAsync_v2(p, pinned, 4096, a));
    OK(cu.cuStreamSynchronize(a));
    /* The same inside a graph. */
    OK(cu.cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cu.cuLaunchHostFunc(a, fill, pinned));
    OK(cu.cuMemcpyHtoDAsync_v2(p, pinned, 4096, a));
    OK(cu.cuMemcpyDtoHAsync_v2(pinned, p, 4096, a));
    OK(cu.cuStreamEndCapture(a, &g));
    OK(cu.cuGraphInstantiateWithFlags(&y, g, 0));
    OK(cu.cuGraphDestroy(g));
    for (int i = 0; i < 3; i++)
        OK(cu.cuGraphLaunch(y, a));
    OK(cu.cuStreamSynchronize(a));
    /* A graph that allocates less than a page and frees it again. */
    OK(cu.cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cu.cuMemAllocAsync(&pool, 256, a));
    OK(cu.cuMemsetD8Async(pool, 0, 256, a));
    OK(launch_inc(pool, 1, a));
    OK(cu.cuMemFreeAsync(pool, a));
    OK(cu.cuStreamEndCapture(a, &g));
    OK(cu.cuGraphInstantiateWithFlags(&z, g, 0));
    OK(cu.cuGraphDestroy(g));
    for (int i = 0; i < 3; i++)
        OK(cu.cuGraphLaunch(z, a));
    OK(cu.cuStreamSynchronize(a));
    OK(cu.cuGraphExecDestroy(z));
    /* The program tells by a word in memory that the source is ready. */
    OK(cu.cuStreamWaitValue32_v2(a, word, 1, 1));
    OK(cu.cuMemcpyHtoDAsync_v2(p, pinned, 4096, a));
    pinned[0] = 77;
    OK(cu.cuMemsetD32Async(word, 1, 1, b));
    OK(cu.cuStreamSynchronize(a));
    /* Pool memory that goes from one stream to the other. */
    OK(cu.cuMemAllocAsync(&pool, 4096, a));
    OK(cu.cuMemsetD8Async(pool, 0, 4096, a));
    OK(cu.cuEventRecord(there, a));
    OK(cu.cuStreamWaitEvent(b, there, 0));
    OK(launch_inc(pool, 1, b));
    OK(cu.cuEventRecord(back, b));
    OK(cu.cuStreamWaitEvent(a, back, 0));
    OK(cu.cuMemFreeAsync(pool, a));
    OK(cu.cuMemAllocAsync(&pool, 4096, a));
    OK(launch_inc(pool, 1, a));
    OK(cu.cuMemFreeAsync(pool, a));
    /* The legacy stream waits for blocking ones. */
    OK(cu.cuCtxSynchronize());
    CUstream blocking = stream(0);
    OK(cu.cuMemsetD8Async(p, 1, 4096, blocking));
    OK(launch_inc(p, 1, NULL));
    OK(cu.cuMemsetD8Async(p, 1, 4096, blocking));
    OK(cu.cuCtxSynchronize());
    CHECK(cu.findings() == 0);
    OK(cu.cuMemFree_v2(p));
    OK(cu.cuMemFree_v2(q));
    OK(cu.cuMemFree_v2(word));
    OK(cu.cuMemFreeHost(pinned));
    OK(cu.cuMemFreeHost(got));
}

/* ---- running them -------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
    const char *check, *races, *strict;
    int status; /* Of the process; negative: a signal. */
    const char *words[4];
} cases[] = {
    {"past the end",
     past_the_end,
     "report",
     "",
     "",
     0,
     {"kernel addn touched", "(argument 0, ", "0 bytes past the end of 256 bytes of device memory"}},
    {"just past the end",
     just_past_the_end,
     "report",
     "",
     "",
     0,
     {"kernel addn changed", "the first 0 bytes past the end of 100 bytes", "(argument 0, "}},
    {"before the start",
     before_the_start,
     "report",
     "",
     "",
     0,
     {"kernel inc changed", "8 bytes before the start of 100 bytes", "(argument 0, "}},
    {"freed",
     freed_eager,
     "report",
     "",
     "",
     0,
     {"kernel inc touched", "byte 8 of 256 bytes of freed device memory", "(argument 0, "}},
    {"freed, by a replay",
     freed_replay,
     "report",
     "",
     "",
     0,
     {"kernel inc touched", "byte 0 of 1000 bytes of freed device memory"}},
    {"freed, before the replay",
     freed_strict,
     "report",
     "",
     "1",
     0,
     {"cuGraphLaunch: node 0, kernel inc, argument 0", "was freed"}},
    {"after its free in the graph", after_graph_free, "report", "", "", 0, {"kernel inc touched", "memory of a graph"}},
    {"host pointer", host_pointer, "report", "", "", 0, {"kernel inc: argument 0", "not page-locked"}},
    {"host buffer", host_overwritten, "report", "", "", 0, {"the host changed the source", "page-locked memory"}},
    {"host buffer of a replay", host_overwritten_replay, "report", "", "", 0, {"the host changed the source"}},
    {"copy and kernel",
     race_copy_kernel,
     "report",
     "",
     "",
     0,
     {"kernel inc, argument 0, and memset", "in two streams without order", "byte 0 of 4096 bytes"}},
    {"copy and copy", race_copy_copy, "report", "", "", 0, {"copy of 2048 bytes", "copy of 100 bytes", "byte 2040"}},
    {"replays, not asked", race_replays, "report", "copies", "", 0, {NULL}},
    {"replays", race_replays, "report", "kernels", "", 0, {"kernel inc, argument 0, and kernel inc, argument 0,"}},
    {"free and kernel", race_free, "report", "", "", 0, {"kernel inc", "free of"}},
    {"inside a graph", race_inside, "report", "", "", 0, {"nodes of one graph without order"}},
    {"races off", race_copy_kernel, "report", "off", "", 0, {NULL}},
    {"ordinary", ordinary, "fail", "kernels", "1", 0, {NULL}},
    {"fail", race_copy_kernel, "fail", "", "", CUSIM_FINDINGS_STATUS, {"check: 1 findings"}},
    {"abort", race_copy_kernel, "abort", "", "", -SIGABRT, {"check:"}},
    {"off", race_copy_kernel, "off", "", "", 0, {NULL}},
};

static char said[65536];

static int run_case(size_t i)
{
    size_t n = 0;
    ssize_t got;
    int fd[2], status;

    if (pipe(fd) != 0)
        exit(1);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(fd[1], STDERR_FILENO);
        close(fd[0]);
        close(fd[1]);
        setenv("CUSIM_CHECK", cases[i].check, 1);
        setenv("CUSIM_RACES", cases[i].races, 1);
        setenv("CUSIM_STRICT", cases[i].strict, 1);
        failures = 0;
        begin();
        cases[i].run();
        cu.cuDevicePrimaryCtxRelease_v2(0);
        exit(failures != 0);
    }
    close(fd[1]);
    while (n < sizeof said - 1 && (got = read(fd[0], said + n, sizeof said - 1 - n)) > 0)
        n += (size_t)got;
    said[n] = '\0';
    close(fd[0]);
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = run_case(i), before = failures;

        CHECK(status == cases[i].status);
        for (int k = 0; k < 4 && cases[i].words[k]; k++)
            CHECK(strstr(said, cases[i].words[k]));
        if (!cases[i].words[0])
            CHECK(!strstr(said, "check:"));
        if (failures > before)
            fprintf(stderr, "%s: status %d; it said:\n%s\n", cases[i].name, status, said);
    }
    return failures != 0;
}
