/* The capture state machine. */
#include "test.h"

#include <pthread.h>

static CUdeviceptr p;

static CUresult begin(CUstream s, CUstreamCaptureMode mode)
{
    return cu.cuStreamBeginCapture_v2(s, mode);
}

static CUresult alloc(void)
{
    CUdeviceptr q = 1;
    CUresult r = cu.cuMemAlloc_v2(&q, 64);

    if (!r)
        OK(cu.cuMemFree_v2(q));
    else
        CHECK(q == 0);
    return r;
}

static void *alloc_elsewhere(void *mode)
{
    CUstreamCaptureMode m = *(CUstreamCaptureMode *)mode;

    OK(cu.cuCtxSetCurrent(ctx));
    OK(cu.cuThreadExchangeStreamCaptureMode(&m));
    *(CUstreamCaptureMode *)mode = (CUstreamCaptureMode)alloc();
    return NULL;
}

static void *end_elsewhere(void *s)
{
    CUgraph g = (CUgraph)1;

    CODE(908, cu.cuStreamEndCapture(s, &g));
    CHECK(g == NULL);
    return NULL;
}

static void in_thread(void *(*fn)(void *), void *data)
{
    pthread_t t;

    pthread_create(&t, NULL, fn, data);
    pthread_join(t, NULL);
}

/* Capture mode x thread mode x same or other thread. */
static void mode_rule(void)
{
    for (int capture = 0; capture < 3; capture++)
        for (int thread = 0; thread < 3; thread++)
            for (int other = 0; other < 2; other++) {
                CUstream s = stream(CU_STREAM_NON_BLOCKING);
                CUstreamCaptureMode m = (CUstreamCaptureMode)thread;
                CUgraph g = NULL;
                int refused = other ? thread == 0 && capture == 0 : thread != 2 && capture != 2;
                int code;

                OK(begin(s, (CUstreamCaptureMode)capture));
                if (other) {
                    in_thread(alloc_elsewhere, &m);
                    code = (int)m;
                } else {
                    OK(cu.cuThreadExchangeStreamCaptureMode(&m));
                    code = (int)alloc();
                    OK(cu.cuThreadExchangeStreamCaptureMode(&m));
                }
                CODE(refused ? 900 : 0, code);
                CHECK(state(s) == (refused ? 2 : 1));
                CODE(refused ? 901 : 0, launch_inc(p, 1, s));
                CODE(refused ? 901 : 0, cu.cuStreamEndCapture(s, &g));
                CHECK((g == NULL) == refused && state(s) == 0);
                if (g)
                    OK(cu.cuGraphDestroy(g));
                OK(alloc());
                OK(cu.cuStreamDestroy_v2(s));
            }
}

static void begin_and_end(void)
{
    CUstream s = stream(CU_STREAM_NON_BLOCKING), t = stream(CU_STREAM_NON_BLOCKING);
    CUgraph g = (CUgraph)1;
    size_t n = 9;

    CODE(900, begin(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    CODE(900, begin(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED));
    CODE(1, begin(s, (CUstreamCaptureMode)3));
    OK(begin(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cu.cuStreamEndCapture(CU_STREAM_PER_THREAD, &g));
    OK(cu.cuGraphGetNodes(g, NULL, &n));
    CHECK(n == 0);
    OK(cu.cuGraphDestroy(g));
    g = (CUgraph)1;
    CODE(401, cu.cuStreamEndCapture(s, &g));
    CHECK(g == NULL);
    OK(begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CODE(401, begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CODE(401, cu.cuStreamEndCapture(t, &g));
    CHECK(state(s) == 1);
    OK(cu.cuStreamEndCapture(s, NULL));
    CODE(401, cu.cuStreamEndCapture(s, &g));
    CODE(1, cu.cuStreamIsCapturing(s, NULL));

    OK(begin(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    in_thread(end_elsewhere, s);
    CHECK(state(s) == 0);
    CODE(401, cu.cuStreamEndCapture(s, &g));

    /* Destroying the capturing stream: no trace of the capture. */
    OK(begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cu.cuStreamDestroy_v2(s));
    OK(alloc());
    OK(cu.cuStreamDestroy_v2(t));
}

static void refusals(void)
{
    CUstream s = stream(CU_STREAM_NON_BLOCKING), b = stream(0);
    unsigned long long id;
    unsigned flags;
    CUcontext c;
    CUgraph g;
    int priority;

    /* Harmless and deadly getters. */
    OK(begin(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cu.cuStreamGetCtx(s, &c));
    OK(cu.cuStreamGetPriority(s, &priority));
    CHECK(state(s) == 1);
    CODE(900, cu.cuStreamGetId(s, &id));
    CHECK(state(s) == 2);
    CODE(901, cu.cuStreamEndCapture(s, &g));
    OK(begin(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CODE(900, cu.cuStreamGetFlags(s, &flags));
    CODE(901, cu.cuStreamEndCapture(s, &g));
    OK(begin(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CODE(900, cu.cuCtxSynchronize());
    CODE(901, cu.cuStreamEndCapture(s, &g));

    /* A bad launch kills, a bad copy does not. */
    OK(begin(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CODE(1, cu.cuMemcpyDtoDAsync_v2(p, 64, 4, s));
    CODE(1, cu.cuMemFreeAsync(p, s));
    CODE(400, cu.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    CHECK(state(s) == 1);
    CODE(1, cu.cuLaunchKernel(function("nop"), 0, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    CHECK(state(s) == 2);
    CODE(901, cu.cuStreamEndCapture(s, &g));

    /* Beside a non-blocking capture the legacy stream works at once; beside a blocking one it kills. */
    OK(cu.cuMemsetD8_v2(p, 0, 4));
    OK(begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(launch_inc(p, 1, NULL));
    CHECK(value(p) == 1 && state(s) == 1);
    OK(cu.cuStreamEndCapture(s, &g));
    OK(cu.cuGraphDestroy(g));
    OK(begin(b, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUstreamCaptureStatus untouched = (CUstreamCaptureStatus)9;
    CODE(906, cu.cuStreamIsCapturing(NULL, &untouched));
    CHECK((int)untouched == 9 && state(b) == 1);
    CODE(906, launch_inc(p, 1, NULL));
    CHECK(state(b) == 2);
    CODE(901, cu.cuStreamEndCapture(b, &g));
    OK(cu.cuStreamDestroy_v2(s));
    OK(cu.cuStreamDestroy_v2(b));
}

static void forks(void)
{
    CUstream a = stream(CU_STREAM_NON_BLOCKING), b = stream(CU_STREAM_NON_BLOCKING);
    CUevent e, f;
    CUgraph g;
    size_t n;

    OK(cu.cuEventCreate(&e, 0));
    OK(cu.cuEventCreate(&f, 0));

    /* Fork and join. */
    OK(begin(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(launch_inc(p, 1, a));
    OK(cu.cuEventRecord(e, a));
    OK(cu.cuStreamWaitEvent(b, e, 0));
    CHECK(state(b) == 1);
    OK(launch_inc(p, 1, b));
    OK(cu.cuEventRecord(f, b));
    CODE(401, begin(b, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(launch_inc(p, 1, a));
    OK(cu.cuStreamWaitEvent(a, f, 0));
    OK(launch_inc(p, 1, a));
    OK(cu.cuStreamEndCapture(a, &g));
    CHECK(state(b) == 0);
    OK(cu.cuGraphGetNodes(g, NULL, &n));
    CHECK(n == 4);
    OK(cu.cuGraphGetEdges_v2(g, NULL, NULL, NULL, &n));
    CHECK(n == 4);
    OK(cu.cuGraphDestroy(g));
    CODE(1, cu.cuEventQuery(e));
    CODE(1, cu.cuStreamWaitEvent(a, e, 0));
    OK(cu.cuEventRecord(e, a));
    OK(cu.cuEventSynchronize(e));

    /* Unjoined, and ended on the fork. */
    OK(begin(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cu.cuEventRecord(e, a));
    OK(cu.cuStreamWaitEvent(b, e, 0));
    OK(launch_inc(p, 1, b));
    CODE(904, cu.cuStreamEndCapture(a, &g));
    CHECK(g == NULL && state(a) == 0 && state(b) == 0);
    OK(begin(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cu.cuEventRecord(e, a));
    OK(cu.cuStreamWaitEvent(b, e, 0));
    CODE(903, cu.cuStreamEndCapture(b, &g));
    CHECK(state(a) == 2);
    CODE(901, cu.cuStreamEndCapture(a, &g));
    OK(begin(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cu.cuEventRecord(e, a));
    OK(cu.cuStreamWaitEvent(b, e, 0));
    OK(cu.cuStreamEndCapture(a, &g));
    OK(cu.cuGraphDestroy(g));

    /* Outside events, merges, captured events. */
    OK(cu.cuEventRecord(e, b));
    OK(begin(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cu.cuStreamWaitEvent(a, f, CU_EVENT_WAIT_EXTERNAL));
    CODE(905, cu.cuStreamWaitEvent(a, e, 0));
    CODE(901, cu.cuStreamEndCapture(a, &g));
    OK(begin(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(begin(b, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cu.cuEventRecord(e, b));
    CODE(902, cu.cuStreamWaitEvent(a, e, 0));
    CODE(901, cu.cuStreamEndCapture(a, &g));
    CODE(901, cu.cuStreamEndCapture(b, &g));
    OK(begin(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cu.cuEventRecord(e, a));
    CODE(907, cu.cuEventQuery(e));
    CODE(901, cu.cuStreamEndCapture(a, &g));
    CODE(401, cu.cuEventRecordWithFlags(e, a, CU_EVENT_RECORD_EXTERNAL));
    OK(begin(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cu.cuEventRecord(e, a));
    CODE(906, cu.cuStreamWaitEvent(NULL, e, 0));
    CODE(901, cu.cuStreamEndCapture(a, &g));

    OK(cu.cuEventDestroy_v2(e));
    OK(cu.cuEventDestroy_v2(f));
    OK(cu.cuStreamDestroy_v2(a));
    OK(cu.cuStreamDestroy_v2(b));
}

static void information(void)
{
    CUstream s = stream(CU_STREAM_NON_BLOCKING);
    CUstreamCaptureStatus status;
    cuuint64_t id = 77, first;
    const CUgraphNode *deps = NULL;
    const CUgraphEdgeData *edges;
    CUgraph g = (CUgraph)1, h;
    size_t n = 77;

    OK(cu.cuStreamGetCaptureInfo_v3(s, &status, &id, &g, &deps, &edges, &n));
    CHECK(status == 0 && id == 77 && g == (CUgraph)1 && n == 77);
    CODE(401, cu.cuStreamUpdateCaptureDependencies_v2(s, NULL, NULL, 0, 1));
    OK(begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(launch_inc(p, 1, s));
    OK(cu.cuStreamGetCaptureInfo_v2(s, &status, &first, &g, &deps, &n));
    CHECK(status == 1 && n == 1);
    CODE(401, cu.cuGraphDestroy(g));
    CODE(401, cu.cuGraphDestroyNode(deps[0]));
    OK(cu.cuStreamUpdateCaptureDependencies_v2(s, NULL, NULL, 0, 1));
    OK(launch_inc(p, 1, s));
    OK(cu.cuStreamEndCapture(s, &h));
    CHECK(h == g);
    OK(cu.cuGraphGetRootNodes(h, NULL, &n));
    CHECK(n == 2);
    OK(cu.cuGraphDestroy(h));
    OK(cu.cuGraphCreate(&g, 0));
    OK(cu.cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cu.cuStreamGetCaptureInfo_v2(s, &status, &id, NULL, NULL, NULL));
    CHECK(id > first);
    OK(launch_inc(p, 1, s));
    OK(cu.cuStreamEndCapture(s, &h));
    CHECK(h == g);
    OK(cu.cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CODE(900, cu.cuStreamSynchronize(s));
    CODE(901, cu.cuStreamEndCapture(s, &h));
    CODE(1, cu.cuGraphDestroy(g));
    OK(cu.cuStreamDestroy_v2(s));
}

int main(void)
{
    start();
    p = memory(64);
    mode_rule();
    begin_and_end();
    refusals();
    forks();
    information();
    OK(cu.cuMemFree_v2(p));
    return finish();
}
