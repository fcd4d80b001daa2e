/* Small things that many facts need. */
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"

const char *const mode_name[3] = {"GLOBAL", "THREAD_LOCAL", "RELAXED"};

struct env env;

void env_open(void)
{
    MUST(Init, 0);
    MUST(DeviceGet, &env.device, 0);
    MUST(DevicePrimaryCtxRetain, &env.ctx, env.device);
    MUST(CtxSetCurrent, env.ctx);
    MUST(ModuleLoadData, &env.module, env.ptx);
}

CUfunction kernel(const char *name)
{
    static struct {
        const char *name;
        CUfunction f;
    } known[32];
    CUfunction f = NULL;
    CUresult r;
    size_t i;

    for (i = 0; i < sizeof known / sizeof *known && known[i].name; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].f;
    /* Not a reason to skip: the kernels belong to the program, and a run without them would prove nothing. */
    r = CU(ModuleGetFunction)(&f, env.module, name);
    if (r != CUDA_SUCCESS) {
        fprintf(stderr, "no kernel '%s' in the test kernels; a software driver needs their pack\n", name);
        must(r, "cuModuleGetFunction", __FILE__, __LINE__);
    }
    if (i < sizeof known / sizeof *known) {
        known[i].name = name;
        known[i].f = f;
    }
    return f;
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */

CUstream stream_nb(void)
{
    CUstream s = NULL;

    MUST(StreamCreate, &s, CU_STREAM_NON_BLOCKING);
    return s;
}

CUstream stream_bl(void)
{
    CUstream s = NULL;

    MUST(StreamCreate, &s, CU_STREAM_DEFAULT);
    return s;
}

CUevent event_new(void)
{
    CUevent e = NULL;

    MUST(EventCreate, &e, CU_EVENT_DEFAULT);
    return e;
}

CUdeviceptr device_new(size_t bytes)
{
    CUdeviceptr p = 0;

    MUST(MemAlloc, &p, bytes);
    MUST(MemsetD8, p, 0, bytes);
    sync_all();
    return p;
}

void *pinned_new(size_t bytes)
{
    void *p = NULL;

    MUST(MemAllocHost, &p, bytes);
    memset(p, 0, bytes);
    return p;
}

void *pages_new(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        skip("no memory");
    memset(p, 0, bytes);
    return p;
}

/* ---- launches: one thread, for the kernels add without atomics
 * ------------------------------------------------------------------ */

CUresult launch(CUfunction f, CUstream s, void **args)
{
    return CU(LaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, s, args, NULL);
}

CUresult launch_nop(CUstream s)
{
    return launch(kernel("nop"), s, NULL);
}

CUresult launch_inc(CUdeviceptr p, float v, CUstream s)
{
    void *args[] = {&p, &v};

    return launch(kernel("inc"), s, args);
}

CUresult launch_set(CUdeviceptr p, float v, CUstream s)
{
    void *args[] = {&p, &v};

    return launch(kernel("setv"), s, args);
}

CUresult launch_copy(CUdeviceptr d, CUdeviceptr p, CUstream s)
{
    void *args[] = {&d, &p};

    return launch(kernel("copyf"), s, args);
}

CUresult launch_spin(double ms, CUstream s)
{
    unsigned long long ns = (unsigned long long)(ms * 1e6);
    void *args[] = {&ns};

    return launch(kernel("spin"), s, args);
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

float peek(CUdeviceptr p)
{
    float v = -999;
    CUresult r = CU(MemcpyDtoH)(&v, p, sizeof v);

    return r == CUDA_SUCCESS ? v : -1000 - (float)r;
}

void poke(CUdeviceptr p, float v)
{
    MUST(MemcpyHtoD, p, &v, sizeof v);
    sync_all();
}

void sync_all(void)
{
    must(CU(CtxSynchronize)(), "cuCtxSynchronize", __FILE__, __LINE__);
}

double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

unsigned long long buffer_id(CUdeviceptr p)
{
    unsigned long long id = 0;

    return CU(PointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p) == CUDA_SUCCESS ? id : 0;
}

/* ---- capture and graphs ----------------------------------------------------------------------------------------- */

CUresult begin(CUstream s, int mode)
{
    return CU(StreamBeginCapture)(s, (CUstreamCaptureMode)mode);
}

CUresult end(CUstream s)
{
    CUgraph g = NULL;

    return CU(StreamEndCapture)(s, &g);
}

void must_begin(CUstream s, int mode)
{
    must(begin(s, mode), "cuStreamBeginCapture", __FILE__, __LINE__);
}

CUgraph must_end(CUstream s)
{
    CUgraph g = NULL;

    MUST(StreamEndCapture, s, &g);
    return g;
}

CUgraph nop_graph(CUstream s)
{
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_nop(s));
    return must_end(s);
}

CUgraph inc_graph(CUdeviceptr p, float v, CUstream s)
{
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_inc(p, v, s));
    return must_end(s);
}

CUgraphExec must_instantiate(CUgraph g)
{
    CUgraphExec x = NULL;

    MUST(GraphInstantiateWithFlags, &x, g, 0);
    return x;
}

void must_run(CUgraphExec x, CUstream s)
{
    MUST(GraphLaunch, x, s);
    MUST(StreamSynchronize, s);
}

size_t node_count(CUgraph g)
{
    size_t n = 0;

    MUST(GraphGetNodes, g, NULL, &n);
    return n;
}

static CUgraphNode *nodes_of(CUgraph g, size_t *n)
{
    size_t k = *n = node_count(g);
    CUgraphNode *nodes = calloc(k + 1, sizeof *nodes);

    if (k)
        MUST(GraphGetNodes, g, nodes, &k);
    return nodes;
}

CUgraphNode node_at(CUgraph g, size_t index)
{
    size_t n;
    CUgraphNode *nodes = nodes_of(g, &n);
    CUgraphNode node = index < n ? nodes[index] : NULL;

    free(nodes);
    if (!node)
        skip("the graph has no node %zu", index);
    return node;
}

bool first_form_agrees(CUgraphNode n)
{
    CUDA_KERNEL_NODE_PARAMS_v1 a;
    CUDA_KERNEL_NODE_PARAMS b;

    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    MUST(GraphKernelNodeGetParams_10000, n, &a);
    MUST(GraphKernelNodeGetParams, n, &b);
    return a.func == b.func && a.gridDimX == b.gridDimX && a.gridDimY == b.gridDimY && a.gridDimZ == b.gridDimZ && a.blockDimX == b.blockDimX &&
           a.blockDimY == b.blockDimY && a.blockDimZ == b.blockDimZ && a.sharedMemBytes == b.sharedMemBytes && a.kernelParams == b.kernelParams &&
           a.extra == b.extra;
}

int node_index(CUgraph g, CUgraphNode node)
{
    size_t n;
    CUgraphNode *nodes = nodes_of(g, &n);
    int index = -1;

    for (size_t i = 0; i < n && node; i++)
        if (nodes[i] == node)
            index = (int)i;
    free(nodes);
    return index;
}

CUgraph captured_graph(CUstream s)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id;
    CUgraph g = NULL;

    if (CU(StreamGetCaptureInfo)(s, &status, &id, &g, NULL, NULL, NULL) != CUDA_SUCCESS ||
        status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return NULL;
    return g;
}

void fork_to(CUstream from, CUstream to)
{
    CUevent e = event_new();

    MUST(EventRecord, e, from);
    MUST(StreamWaitEvent, to, e, CU_EVENT_WAIT_DEFAULT);
}

void told_run(CUgraph g)
{
    CUgraphExec x = NULL;
    CUstream s = NULL;
    CUresult r;

    if (!g || !code(CU(GraphInstantiateWithFlags)(&x, g, 0), 0, "instantiate"))
        return;
    MUST(StreamCreate, &s, CU_STREAM_NON_BLOCKING);
    r = CU(GraphLaunch)(x, s);
    if (code(r, 0, "launch"))
        code(CU(StreamSynchronize)(s), 0, "sync");
}

CUgraph told_end(const char *name, CUstream s, int want, const char *want_nodes)
{
    CUgraph g = (CUgraph)1;
    CUresult r = CU(StreamEndCapture)(s, &g);

    code(r, want, "%s", name);
    if (g == (CUgraph)1) {
        yes(false, "the graph output is written");
        return NULL;
    }
    holds("graph", g, want_nodes);
    if (r == CUDA_SUCCESS)
        told_run(g);
    return r == CUDA_SUCCESS ? g : NULL;
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

struct thread_call {
    CUresult (*f)(void *);
    void *arg;
    int mode; /* -1: the thread's own */
    CUresult result;
};

static void *thread_main(void *p)
{
    struct thread_call *call = p;

    MUST(CtxSetCurrent, env.ctx);
    if (call->mode >= 0) {
        CUstreamCaptureMode mode = (CUstreamCaptureMode)call->mode;

        MUST(ThreadExchangeStreamCaptureMode, &mode);
    }
    call->result = call->f(call->arg);
    return NULL;
}

CUresult in_thread_mode(CUresult (*f)(void *), void *arg, int mode)
{
    struct thread_call call = {f, arg, mode, CUDA_SUCCESS};
    pthread_t thread;

    if (pthread_create(&thread, NULL, thread_main, &call) != 0)
        skip("no thread");
    pthread_join(thread, NULL);
    return call.result;
}

CUresult in_thread(CUresult (*f)(void *), void *arg)
{
    return in_thread_mode(f, arg, -1);
}

CUresult with_mode(CUresult (*f)(void *), void *arg, int mode)
{
    CUstreamCaptureMode m = (CUstreamCaptureMode)mode;
    CUresult r;

    MUST(ThreadExchangeStreamCaptureMode, &m);
    r = f(arg);
    MUST(ThreadExchangeStreamCaptureMode, &m);
    return r;
}

CUresult call_alloc(void *unused)
{
    CUdeviceptr p = 0;

    (void)unused;
    return CU(MemAlloc)(&p, 64);
}

/* ---- virtual memory --------------------------------------------------------------------------------------------- */

cf_mem_prop vmm_prop(void)
{
    cf_mem_prop prop;

    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = env.device;
    return prop;
}

CUresult vmm_access(CUdeviceptr p, size_t bytes)
{
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, env.device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    return CU(MemSetAccess)(p, bytes, &access, 1);
}

CUdeviceptr vmm_reserve(size_t bytes)
{
    CUdeviceptr p = 0;

    MUST(MemAddressReserve, &p, bytes, 0, 0, 0);
    return p;
}

cf_mem_handle vmm_create(size_t bytes)
{
    cf_mem_prop prop = vmm_prop();
    cf_mem_handle h = 0;

    MUST(MemCreate, &h, bytes, &prop, 0);
    return h;
}

void vmm_map(CUdeviceptr p, size_t bytes, cf_mem_handle h)
{
    MUST(MemMap, p, bytes, 0, h, 0);
    must(vmm_access(p, bytes), "cuMemSetAccess", __FILE__, __LINE__);
}
