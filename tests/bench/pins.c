/*
 * Registering pins, 1 to 10,000: one by one and by one call, of the library's memory and adopted, against the driver calls for as much memory;
 * finding them by name; writing and reading all of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { MOST = 10000, BYTES = 4096 };

static stepgraph_pin_config configs[MOST];
static stepgraph_pin *pins[MOST];
static char names[MOST][40];
static CUdeviceptr memory; /* Room for all of them. */
static unsigned char *host;
static void *places[MOST];
static unsigned n;

static void describe(bool adopted)
{
    for (unsigned i = 0; i < n; i++) {
        const stepgraph_pin_config none = STEPGRAPH_PIN_CONFIG_INIT;
        snprintf(names[i], sizeof names[i], "transformer.layer%u.weight", i);
        configs[i] = none;
        configs[i].role = STEPGRAPH_ROLE_STATE;
        configs[i].bytes = BYTES;
        configs[i].address = adopted ? memory + (CUdeviceptr)i * BYTES : 0;
        configs[i].name = names[i];
        places[i] = host + (size_t)i * BYTES;
    }
}

static void drop(void)
{
    for (unsigned i = n; i-- > 0;)
        OK(stepgraph_pin_destroy(pins[i]));
}

/* ---- registering --------------------------------------------------------------------------------------------------- */

static double one_by_one(void *user)
{
    double start = bench_now_us(), us;

    (void)user;
    for (unsigned i = 0; i < n; i++)
        OK(stepgraph_pin_create(session, &configs[i], &pins[i]));
    us = bench_now_us() - start;
    drop();
    return us / n;
}

static double by_one_call(void *user)
{
    double start = bench_now_us(), us;

    (void)user;
    OK(stepgraph_pin_create_many(session, n, configs, pins));
    us = bench_now_us() - start;
    drop();
    return us / n;
}

/* What a program without the library would do for n parameters that start as zero. */
static double raw_one_by_one(void *user)
{
    static CUdeviceptr parts[MOST];
    double start = bench_now_us(), us;

    (void)user;
    for (unsigned i = 0; i < n; i++) {
        CU(MemAlloc(&parts[i], BYTES));
        CU(MemsetD8Async(parts[i], 0, BYTES, stream));
    }
    bench_sync();
    us = bench_now_us() - start;
    for (unsigned i = 0; i < n; i++)
        CU(MemFree(parts[i]));
    return us / n;
}

static double raw_at_once(void *user)
{
    double start = bench_now_us(), us;
    CUdeviceptr all;

    (void)user;
    CU(MemAlloc(&all, (size_t)n * BYTES));
    CU(MemsetD8Async(all, 0, (size_t)n * BYTES, stream));
    bench_sync();
    us = bench_now_us() - start;
    CU(MemFree(all));
    return us / n;
}

/* Adopted memory is asked about. */
static double raw_asking(void *user)
{
    CUpointer_attribute id = CU_POINTER_ATTRIBUTE_BUFFER_ID;
    double start = bench_now_us();

    (void)user;
    for (unsigned i = 0; i < n; i++) {
        unsigned long long value;
        void *to = &value;
        CU(PointerGetAttributes(1, &id, &to, memory + (CUdeviceptr)i * BYTES));
    }
    return (bench_now_us() - start) / n;
}

/* ---- using --------------------------------------------------------------------------------------------------------- */

static double finding(void *user)
{
    double start = bench_now_us();

    (void)user;
    for (unsigned i = 0; i < n; i++)
        if (!stepgraph_session_pin(session, names[i]))
            abort();
    return (bench_now_us() - start) * 1e3 / n;
}

static double comparing(void *user)
{
    double start = bench_now_us();
    volatile int sum = 0;

    (void)user;
    for (unsigned i = 0; i < n; i++)
        sum += strcmp(names[i], stepgraph_pin_name(pins[i]));
    return (bench_now_us() - start) * 1e3 / n;
}

static double writing(void *user)
{
    double start = bench_now_us();

    (void)user;
    OK(stepgraph_pin_write_many(session, n, pins, (const void *const *)places));
    return (bench_now_us() - start) / n;
}

static double raw_writing(void *user)
{
    double start = bench_now_us();

    (void)user;
    for (unsigned i = 0; i < n; i++)
        CU(MemcpyHtoDAsync(memory + (CUdeviceptr)i * BYTES, places[i], BYTES, stream));
    bench_sync();
    return (bench_now_us() - start) / n;
}

static void measure(void)
{
    static const unsigned sizes[] = { 1, 10, 100, 1000, 10000 };

    CU(MemAlloc(&memory, (size_t)MOST * BYTES));
    CU(MemHostAlloc((void **)&host, (size_t)MOST * BYTES, 0));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bench_pair pair;
        n = sizes[i];
        if (bench_skips(n, 1000))
            continue;
        describe(false);
        pair = bench_alternate(one_by_one, raw_one_by_one, NULL, 200);
        bench_add("pins one by one", n, "us", &pair, BENCH_NO_TARGET, 0, n == 1000, "a pin, %u one by one / allocating", n);
        pair = bench_alternate(by_one_call, raw_at_once, NULL, 200);
        bench_add("pins by one call", n, "us", &pair, BENCH_NO_TARGET, 0, n >= 1000, "a pin, %u by one call / allocating", n);
        describe(true);
        pair = bench_alternate(by_one_call, raw_asking, NULL, 200);
        bench_add("pins adopted", n, "us", &pair, BENCH_NO_TARGET, 0, n >= 1000, "a pin, %u adopted / asking the driver", n);
        OK(stepgraph_pin_create_many(session, n, configs, pins));
        pair = bench_alternate(finding, comparing, NULL, 100);
        bench_add("finding a pin", n, "ns", &pair, BENCH_NO_TARGET, 0, n >= 1000, "a name among %u / one comparison", n);
        pair = bench_alternate(writing, raw_writing, NULL, 200);
        bench_add("writing pins", n, "us", &pair, BENCH_RATIO, 1.1, n >= 1000, "writing a pin, %u by one call / copies", n);
        drop();
    }
    CU(MemFree(memory));
    CU(MemFreeHost(host));
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work(void)
{
    n = 1000;
    CU(MemAlloc(&memory, (size_t)n * BYTES));
    CU(MemHostAlloc((void **)&host, (size_t)n * BYTES, 0));
    CU(MemsetD8Async(memory, 0, BYTES, stream)); /* The stream's first work has cusim start a thread. */
    describe(false);
    bench_work_begin();
    OK(stepgraph_pin_create_many(session, n, configs, pins));
    /* The pins, the table of names and the index; between a recording's thread and ours a mode is swapped twice. */
    WORK_IS("1000 pins by one call", 4, 0, { "cuCtxGetId", 1 }, { "cuCtxPushCurrent", 1 }, { "cuThreadExchangeStreamCaptureMode", 4 },
            { "cuMemAlloc", 1 }, { "cuMemsetD8Async", 1 }, { "cuStreamSynchronize", 1 }, { "cuCtxPopCurrent", 1 });
    bench_work_begin();
    finding(NULL);
    WORK_IS("finding 1000 pins", 0, 0, { NULL, 0 });
    bench_work_begin();
    OK(stepgraph_pin_write_many(session, n, pins, (const void *const *)places));
    WORK_IS("writing 1000 pins", 0, 0, { "cuCtxGetId", 1 }, { "cuCtxPushCurrent", 1 }, { "cuMemcpyHtoDAsync", 1000 },
            { "cuThreadExchangeStreamCaptureMode", 2 }, { "cuStreamSynchronize", 1 }, { "cuCtxPopCurrent", 1 });
    bench_work_begin();
    OK(stepgraph_pin_read_many(session, n, pins, places));
    WORK_IS("reading 1000 pins", 0, 0, { "cuCtxGetId", 1 }, { "cuCtxPushCurrent", 1 }, { "cuMemcpyDtoHAsync", 1000 },
            { "cuThreadExchangeStreamCaptureMode", 2 }, { "cuStreamSynchronize", 1 }, { "cuCtxPopCurrent", 1 });
    drop();

    describe(true);
    bench_work_begin();
    OK(stepgraph_pin_create_many(session, n, configs, pins));
    WORK_IS("1000 adopted pins", 1, 0, { "cuCtxGetId", 1 }, { "cuCtxPushCurrent", 1 }, { "cuPointerGetAttributes", 1000 },
            { "cuCtxPopCurrent", 1 });
    drop();
    CU(MemFree(memory));
    CU(MemFreeHost(host));
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "pins", measure, check_work);
}
