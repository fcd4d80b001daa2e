/*
 * A driver in front of the driver, which tells what the calls cost that the library makes while it ends a recording:
 *
 *     STEPGRAPH_DRIVER=build/tests/bench/driver-times.so DRIVER_TIMES=times.txt PROGRAM
 *
 * DRIVER_TIMES_OF names the driver, libcuda.so.1 if unset. Timed is what lies between the end of a capture and the end of the upload, in one thread. The
 * file is written when the program ends, and every 50 recordings, for programs that end in other ways. Each call is one look at the clock more.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_abi.h"
#include "entries.h"

enum {
#define NUMBER(name, version, params) ENTRY_##name,
    SG__DRIVER_ENTRIES(NUMBER, NUMBER)
#undef NUMBER
    ENTRIES
};

/* Any entry: what is passed in registers and on the stack is handed on as it is, up to the eleven arguments of cuLaunchKernel(). None is a float. */
typedef CUresult (*entry_fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static struct {
    entry_fn call;
    uint64_t n, ns;         /* Of recordings that came to their end, */
    uint64_t n_now, ns_now; /* and of the one that may. */
} entries[ENTRIES];
static const char *const names[] = {
#define NAME(name, version, params) "cu" #name,
    SG__DRIVER_ENTRIES(NAME, NAME)
#undef NAME
};
static uint64_t began, all, recordings; /* began: 0 outside of them. */
static void *driver;

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static double us(uint64_t ns)
{
    return (double)ns * 1e-3 / (double)recordings;
}

static void write_times(void)
{
    const char *path = getenv("DRIVER_TIMES");
    uint64_t driven = 0;
    FILE *to;

    if (recordings == 0)
        return;
    to = path != NULL ? fopen(path, "w") : stderr;
    if (to == NULL) {
        perror(path);
        return;
    }
    fprintf(to, "%llu recordings ended, %.1f us each\n", (unsigned long long)recordings, us(all));
    for (int i = 0; i < ENTRIES; i++) {
        if (entries[i].n == 0)
            continue;
        driven += entries[i].ns;
        fprintf(to, "%-36s %8.1f calls %9.2f us\n", names[i], (double)entries[i].n / (double)recordings, us(entries[i].ns));
    }
    fprintf(to, "%-36s %24.2f us\n", "what is not the driver's", us(all - driven));
    if (to != stderr)
        fclose(to);
}

static void capture_ended(void)
{
    for (int i = 0; i < ENTRIES; i++)
        entries[i].n_now = entries[i].ns_now = 0;
    began = now();
}

static void recording_ended(void)
{
    all += now() - began;
    began = 0;
    for (int i = 0; i < ENTRIES; i++) {
        entries[i].n += entries[i].n_now;
        entries[i].ns += entries[i].ns_now;
    }
    if (++recordings % 50 == 0)
        write_times();
}

static CUresult timed(int entry, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, uintptr_t h, uintptr_t i,
                      uintptr_t j, uintptr_t k)
{
    const uint64_t start = began != 0 ? now() : 0;
    const CUresult code = entries[entry].call(a, b, c, d, e, f, g, h, i, j, k);

    if (start != 0) {
        entries[entry].ns_now += now() - start;
        entries[entry].n_now++;
    }
    if (entry == ENTRY_StreamEndCapture)
        capture_ended();
    if (entry == ENTRY_GraphUpload && start != 0)
        recording_ended();
    return code;
}

#define FORWARD(name, version, params) \
    static CUresult forward_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, uintptr_t h, \
                                   uintptr_t i, uintptr_t j, uintptr_t k) \
    { \
        return timed(ENTRY_##name, a, b, c, d, e, f, g, h, i, j, k); \
    }
SG__DRIVER_ENTRIES(FORWARD, FORWARD)
#undef FORWARD

static const entry_fn forwards[] = {
#define FORWARD(name, version, params) forward_##name,
    SG__DRIVER_ENTRIES(FORWARD, FORWARD)
#undef FORWARD
};

__attribute__((visibility("default"))) CUresult cuDriverGetVersion(int *version);
__attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, cuuint64_t flags, void *status);

static void *symbol(const char *name)
{
    const char *path = getenv("DRIVER_TIMES_OF");
    void *found;

    if (driver == NULL) {
        driver = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
        atexit(write_times);
    }
    found = driver != NULL ? dlsym(driver, name) : NULL;
    if (found == NULL) {
        fprintf(stderr, "driver-times: no %s: %s\n", name, dlerror());
        exit(1);
    }
    return found;
}

CUresult cuDriverGetVersion(int *version)
{
    CUresult (*get)(int *);
    void *found = symbol("cuDriverGetVersion");

    memcpy(&get, &found, sizeof get);
    return get(version);
}

CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, cuuint64_t flags, void *status)
{
    CUresult (*find)(const char *, void **, int, cuuint64_t, void *);
    void *found = symbol("cuGetProcAddress_v2");
    CUresult code;

    memcpy(&find, &found, sizeof find);
    code = find(name, entry, version, flags, status);
    for (int i = 0; i < ENTRIES && code == CUDA_SUCCESS && *entry != NULL; i++) {
        if (strcmp(names[i], name) != 0 || entries[i].call != NULL) /* Asked for once more, it may be another version's. */
            continue;
        memcpy(&entries[i].call, entry, sizeof *entry);
        memcpy(entry, &forwards[i], sizeof *entry);
    }
    return code;
}
