/* When a kernel is loaded. */
#include "conformance.h"

static int loaded(CUfunction f)
{
    cf_function_state s = (cf_function_state)9;

    MUST(FuncIsLoaded, &s, f);
    return (int)s;
}

static void lazy(int unused)
{
    cf_loading_mode mode = (cf_loading_mode)0;
    CUmodule m = NULL;
    CUfunction f = NULL, *all;
    CUlibrary l = NULL;
    CUkernel k = NULL;
    unsigned n = 0, count = 0;

    (void)unused;
    fact("loading.mode");
    code(CU(ModuleGetLoadingMode)(&mode), 0, "cuModuleGetLoadingMode");
    equal((int)mode, CF_MODULE_LAZY, "mode");
    fact("loading.fresh_module");
    MUST(ModuleLoadData, &m, env.ptx);
    MUST(ModuleGetFunctionCount, &n, m);
    all = calloc(n + 1, sizeof *all);
    MUST(ModuleEnumerateFunctions, all, n, m);
    for (unsigned i = 0; i < n; i++)
        count += loaded(all[i]) == CF_FUNCTION_LOADED;
    yes(n > 0, "%u functions", n);
    equal(count, 0, "loaded");
    fact("loading.module_get_function");
    MUST(ModuleGetFunction, &f, m, "lazyk");
    equal(loaded(f), CF_FUNCTION_LOADED, "after cuModuleGetFunction");
    fact("loading.kernel_get_function");
    MUST(LibraryLoadData, &l, env.ptx, NULL, NULL, 0, NULL, NULL, 0);
    MUST(LibraryGetKernel, &k, l, "lazyk");
    MUST(KernelGetFunction, &f, k);
    equal(loaded(f), CF_FUNCTION_LOADED, "after cuKernelGetFunction");
}

/* The first launch of a kernel that nobody has touched works inside a capture, but waits for everything that runs. */
static void first_launch(int touched)
{
    CUlibrary l = NULL;
    CUkernel k = NULL;
    CUfunction f;
    CUdeviceptr d;
    float v = 1;
    void *args[] = {&d, &v};
    CUstream s, busy;
    double start;

    for (int m = 0; m < 3; m++) {
        fact("loading.first_launch.%s.%s", touched ? "touched" : "untouched", mode_name[m]);
        MUST(LibraryLoadData, &l, env.ptx, NULL, NULL, 0, NULL, NULL, 0);
        MUST(LibraryGetKernel, &k, l, "lazyk");
        if (touched)
            MUST(KernelGetFunction, &f, k);
        s = stream_nb();
        busy = stream_nb();
        d = device_new(64);
        MUST_LAUNCH(launch_spin(150, busy));
        must_begin(s, m);
        start = now_ms();
        code(launch((CUfunction)k, s, args), 0, "first launch beside a kernel of 150 ms");
        start = now_ms() - start;
        if (touched)
            yes(start < 75, "it did not wait (%.0f ms)", start);
        else
            yes(start > 75, "it waited (%.0f ms)", start);
        told_end("end", s, 0, "kernel=1");
        value(peek(d), 1, "a replay makes");
        sync_all();
    }
}

const struct job loading_jobs[] = {
    {.id = "loading", .run = lazy},
    {.id = "loading.first_launch.untouched",
     .run = first_launch,
     .arg = 0,
     .flags = JOB_ALONE | JOB_CARD_ONLY,
     .deviation = "that loading waits for the whole device is the card's; a software driver has nothing to load"},
    {.id = "loading.first_launch.touched", .run = first_launch, .arg = 1, .flags = JOB_ALONE},
    {.id = NULL},
};
