/* Finding entries by name and version, names of errors, and calls before there is anything to call. */
#include "conformance.h"

static void *const left = (void *)0x77;

struct found {
    CUresult r;
    void *fn;
    int status;
};

static struct found look(const char *name, int version, cuuint64_t flags)
{
    struct found f;
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;

    f.fn = left;
    f.r = drv.get_proc_address(name, &f.fn, version, flags, &status);
    f.status = (int)status;
    return f;
}

enum want { FOUND, ABSENT, LEFT };

static void told(const char *id, const char *name, int version, cuuint64_t flags, int want_code, enum want fn, int status)
{
    struct found f;

    fact("symbols.%s", id);
    f = look(name, version, flags);
    code(f.r, want_code, "cuGetProcAddress(\"%s\", %d, flags %d)", name, version, (int)flags);
    yes(fn == LEFT     ? f.fn == left
        : fn == ABSENT ? f.fn == NULL
                       : f.fn != NULL && f.fn != left,
        "pointer %s",
        fn == LEFT     ? "left"
        : fn == ABSENT ? "NULL"
                       : "set");
    equal(f.status, fn == LEFT ? 77 : status, "status");
}

static void by_version(int unused)
{
    (void)unused;
    MUST(Init, 0);
    told("found", "cuLaunchKernel", 4000, 0, 0, FOUND, 0);
    told("found.legacy_flag", "cuLaunchKernel", 4000, 1, 0, FOUND, 0);
    told("found.per_thread_flag", "cuLaunchKernel", 7000, 2, 0, FOUND, 0);
    told("found.per_thread_flag_without_variant", "cuDeviceGet", 2000, 2, 0, FOUND, 0);
    told("found.newest", "cuLaunchKernel", -1, 0, 0, FOUND, 0);
    told("unknown_name", "nonsense", 12000, 0, 0, ABSENT, 1);
    told("empty_name", "", 12000, 0, 0, ABSENT, 1);
    told("empty_name.version_0", "", 0, 0, 0, ABSENT, 1);
    told("versioned_name", "cuMemAlloc_v2", 3020, 0, 0, ABSENT, 1);
    told("below_the_first", "cuLaunchKernel", 3999, 0, 0, ABSENT, 2);
    told("below_the_first.version_0", "cuLaunchKernel", 0, 0, 0, ABSENT, 2);
    told("below_the_first.param_info", "cuFuncGetParamInfo", 12030, 0, 0, ABSENT, 2);
    told("below_the_first.per_thread_flag", "cuStreamSynchronize", 2000, 2, 0, ABSENT, 2);
    told("above_the_driver", "cuLaunchKernel", drv.version + 10, 0, 1, LEFT, 0);
    told("unknown_flag", "cuLaunchKernel", 4000, 4, 1, LEFT, 0);
}

/* One name, several functions. */
static void told_forms(const char *name, int older, int newer, bool same)
{
    struct found a, b;

    fact("symbols.forms.%s.%d_%d", name, older, newer);
    if (newer > drv.version)
        skip("the driver is older than %d", newer);
    a = look(name, older, 0);
    b = look(name, newer, 0);
    code(a.r, 0, "cuGetProcAddress(\"%s\", %d)", name, older);
    code(b.r, 0, "cuGetProcAddress(\"%s\", %d)", name, newer);
    yes(a.fn && b.fn && a.fn != left && b.fn != left, "both set");
    yes((a.fn == b.fn) == same, "%s", same ? "the same function" : "different functions");
}

static void forms(int unused)
{
    (void)unused;
    MUST(Init, 0);
    told_forms("cuStreamBeginCapture", 10000, 10010, false);
    told_forms("cuStreamGetCaptureInfo", 11030, 12030, false);
    told_forms("cuGraphKernelNodeGetParams", 10000, 12000, false);
    told_forms("cuGraphExecUpdate", 10020, 12000, false);
    told_forms("cuGetProcAddress", 11030, 12000, false);
    told_forms("cuGraphInstantiate", 10000, 11000, false);
    told_forms("cuGraphInstantiate", 11000, 12000, true);
    told_forms("cuMemAlloc", 3020, 12000, true);
}

static void null_status(int unused)
{
    void *fn = NULL;

    (void)unused;
    code(drv.get_proc_address("cuInit", &fn, 2000, 0, NULL), 0, "cuGetProcAddress(cuInit, status NULL)");
    yes(fn != NULL, "pointer set");
    code(drv.get_proc_address("nonsense", &fn, 2000, 0, NULL), 0, "cuGetProcAddress(unknown, status NULL)");
    yes(fn == NULL, "pointer NULL");
}

static void export_table(int unused)
{
    const void *table = (const void *)5;
    cf_uuid zero;

    (void)unused;
    MUST(Init, 0);
    memset(&zero, 0, sizeof zero);
    code(CU(GetExportTable)(&table, &zero), 1, "cuGetExportTable(unknown id)");
    yes(table == NULL, "table NULL");
}

/* ---- errors ------------------------------------------------------------------------------------------------------------ */

static void error_names(int unused)
{
    static const struct {
        int code;
        const char *name, *text;
    } all[] = {
        {0, "CUDA_SUCCESS", NULL},
        {1, "CUDA_ERROR_INVALID_VALUE", NULL},
        {400, "CUDA_ERROR_INVALID_HANDLE", NULL},
        {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS", NULL},
        {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
        {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
        {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate capture sequences"},
        {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"},
        {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
        {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
        {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
         "operation would make the legacy stream depend on a capturing blocking stream"},
        {907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
        {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
         "attempt to terminate a thread-local capture sequence from another thread"},
        {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
         "the graph update was not performed because it included changes which violated constraints specific to instantiated "
         "graph "
         "update"},
    };
    const char *name, *text;

    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fact("errors.%d", all[i].code);
        name = text = NULL;
        code(CU(GetErrorName)((CUresult)all[i].code, &name), 0, "cuGetErrorName(%d)", all[i].code);
        yes(name && strcmp(name, all[i].name) == 0, "%s", name ? name : "NULL");
        code(CU(GetErrorString)((CUresult)all[i].code, &text), 0, "cuGetErrorString");
        if (all[i].text)
            yes(text && strcmp(text, all[i].text) == 0, "\"%s\"", text ? text : "NULL");
    }
    fact("errors.unknown");
    name = text = "left";
    code(CU(GetErrorName)((CUresult)12345, &name), 1, "cuGetErrorName(12345)");
    yes(name == NULL, "NULL");
    code(CU(GetErrorString)((CUresult)12345, &text), 1, "cuGetErrorString(12345)");
    yes(text == NULL, "NULL");
}

/* ---- before there is anything ------------------------------------------------------------------------------------------- */

static void before_init(int unused)
{
    CUdeviceptr p = 0;
    CUcontext c;
    CUstreamCaptureStatus status;
    CUgraph g;
    CUgraphExec x;
    CUstream s;
    CUevent e;
    void *host;
    int v = 0;

    (void)unused;
    fact("init.before");
    code(CU(MemAlloc)(&p, 64), 3, "cuMemAlloc");
    code(CU(CtxGetCurrent)(&c), 3, "cuCtxGetCurrent");
    code(CU(DeviceGetCount)(&v), 3, "cuDeviceGetCount");
    code(CU(StreamIsCapturing)(NULL, &status), 3, "cuStreamIsCapturing");
    code(CU(GraphCreate)(&g, 0), 3, "cuGraphCreate");
    code(CU(DriverGetVersion)(&v), 0, "cuDriverGetVersion");
    fact("init.flags");
    code(CU(Init)(1), 1, "cuInit(1)");
    fact("init.no_context");
    code(CU(Init)(0), 0, "cuInit(0)");
    code(CU(MemAlloc)(&p, 64), 201, "cuMemAlloc");
    code(CU(StreamCreate)(&s, CU_STREAM_NON_BLOCKING), 201, "cuStreamCreate");
    code(CU(StreamIsCapturing)(NULL, &status), 201, "cuStreamIsCapturing(NULL)");
    code(begin(NULL, GLOBAL), 201, "cuStreamBeginCapture(NULL)");
    code(CU(CtxSynchronize)(), 201, "cuCtxSynchronize");
    code(CU(EventCreate)(&e, 0), 201, "cuEventCreate");
    code(CU(MemAllocHost)(&host, 64), 201, "cuMemAllocHost");
    if (code(CU(GraphCreate)(&g, 0), 0, "cuGraphCreate"))
        code(CU(GraphInstantiateWithFlags)(&x, g, 0), 201, "cuGraphInstantiateWithFlags");
}

const struct job symbol_jobs[] = {
    {.id = "symbols", .run = by_version, .flags = JOB_RAW},
    {.id = "symbols.forms", .run = forms, .flags = JOB_RAW},
    {.id = "symbols.null_status", .run = null_status, .flags = JOB_RAW},
    {.id = "symbols.export_table", .run = export_table, .flags = JOB_RAW},
    {.id = "errors", .run = error_names, .flags = JOB_RAW},
    {.id = "init", .run = before_init, .flags = JOB_RAW},
    {.id = NULL},
};
