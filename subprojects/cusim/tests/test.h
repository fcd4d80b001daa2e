/* A table of every entry of the library under test, loaded by path as a host loads it, and checks that say where they failed. */
#ifndef CUSIM_TEST_H
#define CUSIM_TEST_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/entries.h"

static struct {
#define X(base, symbol, version, rules, params) __typeof__(&symbol) symbol;
#include "../src/entries.def"
#undef X
    int (*fail)(const char *entry, unsigned nth, int code);
    unsigned long (*calls)(const char *entry);
    int (*policy)(const char *policy);
    void (*set_version)(int version);
    void (*set_memory)(unsigned long long bytes);
    void (*set_stub)(int on);
    int (*set_races)(const char *races);
    unsigned long (*findings)(void);
    void (*set_seed)(unsigned long long seed);
    void (*set_delay)(unsigned long long ns);
    int (*set_stream_delay)(void *stream, unsigned long long ns);
} cu;

static CUcontext ctx;
static CUmodule module;
static int failures;

#define CHECK(condition)                                                                                                         \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                      \
            failures++;                                                                                                          \
        }                                                                                                                        \
    } while (0)

/* The call returns this code. */
#define CODE(code, ...)                                                                                                          \
    do {                                                                                                                         \
        int got_ = (int)(__VA_ARGS__);                                                                                           \
        if (got_ != (code)) {                                                                                                    \
            fprintf(stderr, "%s:%d: %s gives %d, not %d\n", __FILE__, __LINE__, #__VA_ARGS__, got_, (int)(code));                \
            failures++;                                                                                                          \
        }                                                                                                                        \
    } while (0)
#define OK(...) CODE(0, __VA_ARGS__)

static inline void load(void)
{
    void *lib = dlopen(CUSIM_LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!lib) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define X(base, symbol, version, rules, params) *(void **)&cu.symbol = dlsym(lib, #symbol);
#include "../src/entries.def"
#undef X
    *(void **)&cu.fail = dlsym(lib, "cusim_fail");
    *(void **)&cu.calls = dlsym(lib, "cusim_calls");
    *(void **)&cu.policy = dlsym(lib, "cusim_set_address_policy");
    *(void **)&cu.set_version = dlsym(lib, "cusim_set_driver_version");
    *(void **)&cu.set_memory = dlsym(lib, "cusim_set_memory");
    *(void **)&cu.set_stub = dlsym(lib, "cusim_set_stub");
    *(void **)&cu.set_races = dlsym(lib, "cusim_set_races");
    *(void **)&cu.findings = dlsym(lib, "cusim_findings");
    *(void **)&cu.set_seed = dlsym(lib, "cusim_set_seed");
    *(void **)&cu.set_delay = dlsym(lib, "cusim_set_delay");
    *(void **)&cu.set_stream_delay = dlsym(lib, "cusim_set_stream_delay");
}

static inline char *ptx(void)
{
    FILE *f = fopen(CUSIM_PTX, "rb");
    char *text = calloc(1, 65536);

    if (!f || !text || fread(text, 1, 65535, f) == 0)
        exit(1);
    fclose(f);
    return text;
}

static inline void start(void)
{
    char *text;

    setenv("CUSIM_KERNELS", CUSIM_PACK_FILE, 1);
    load();
    OK(cu.cuInit(0));
    OK(cu.cuDevicePrimaryCtxRetain(&ctx, 0));
    OK(cu.cuCtxSetCurrent(ctx));
    text = ptx();
    OK(cu.cuModuleLoadData(&module, text));
    free(text);
}

static inline int finish(void)
{
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    if (failures)
        fprintf(stderr, "%d failures\n", failures);
    return failures != 0;
}

static inline CUfunction function(const char *name)
{
    CUfunction f = NULL;

    OK(cu.cuModuleGetFunction(&f, module, name));
    return f;
}

static inline CUstream stream(unsigned flags)
{
    CUstream s = NULL;

    OK(cu.cuStreamCreate(&s, flags));
    return s;
}

static inline CUdeviceptr memory(size_t bytes)
{
    CUdeviceptr p = 0;

    OK(cu.cuMemAlloc_v2(&p, bytes));
    OK(cu.cuMemsetD8_v2(p, 0, bytes));
    return p;
}

static inline float value(CUdeviceptr p)
{
    float v = -1;

    OK(cu.cuMemcpyDtoH_v2(&v, p, sizeof v));
    return v;
}

static inline CUresult launch_inc(CUdeviceptr p, float v, CUstream s)
{
    void *args[] = {&p, &v};

    return cu.cuLaunchKernel(function("inc"), 1, 1, 1, 1, 1, 1, 0, s, args, NULL);
}

static inline CUresult launch_spin(unsigned long long ns, CUstream s)
{
    void *args[] = {&ns};

    return cu.cuLaunchKernel(function("spin"), 1, 1, 1, 1, 1, 1, 0, s, args, NULL);
}

static inline int state(CUstream s)
{
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)9;

    OK(cu.cuStreamIsCapturing(s, &status));
    return (int)status;
}

#endif
