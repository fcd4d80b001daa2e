/*
 * How fast the checker's parts are: saving, putting back and comparing many pins, against a plain copy of the same bytes by the driver. Prints
 * GB/s of bytes touched, where a copy touches each byte twice and so does a comparison (both sides are read).
 *
 *     probe_check [MiB [PINS]]      default on a card 2048 MiB in 300 pins, on cusim 8 MiB
 */
#include "support.h"

#include <time.h>

#include "ranges.h"
#include "stepgraph_kernels_ptx.h"

enum { REPEATS = 9, PINS_MAX = 4096, THREADS = 256, BLOCKS_PER_MULTIPROCESSOR = 8 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static struct {
    CUdeviceptr image, pins, table, reverse, found;
    unsigned n, blocks;
    unsigned long long chunks;
    size_t bytes;
    CUfunction copy, compare;
} p;

static void plain_copy(void)
{
    CU(MemcpyDtoDAsync(p.image, p.pins, p.bytes, stream));
}

static void save(void)
{
    CU(LaunchKernel(p.copy, p.blocks, 1, 1, THREADS, 1, 1, 0, stream, (void *[]){ &p.table, &p.n, &p.chunks }, NULL));
}

static void restore(void)
{
    CU(LaunchKernel(p.copy, p.blocks, 1, 1, THREADS, 1, 1, 0, stream, (void *[]){ &p.reverse, &p.n, &p.chunks }, NULL));
}

static void compare(void)
{
    CU(LaunchKernel(p.compare, p.blocks, 1, 1, THREADS, 1, 1, 0, stream, (void *[]){ &p.table, &p.n, &p.chunks, &p.found }, NULL));
}

static void poison(void)
{
    CU(MemsetD8Async(p.image, 0xff, p.bytes, stream));
}

static double bandwidth(const char *name, void (*work)(void), double touched, double copy)
{
    double seconds[REPEATS], rate;

    work();
    CU(StreamSynchronize(stream));
    for (int i = 0; i < REPEATS; i++) {
        double start = now();
        for (int k = 0; k < 4; k++)
            work();
        CU(StreamSynchronize(stream));
        seconds[i] = (now() - start) / 4;
    }
    qsort(seconds, REPEATS, sizeof *seconds, by_value);
    rate = touched / seconds[REPEATS / 2] * 1e-9;
    printf("%-36s %8.1f GB/s", name, rate);
    if (copy > 0)
        printf("   %5.1f %% of the copy", 100 * rate / copy);
    printf("\n");
    return rate;
}

static size_t wanted_bytes;
static unsigned wanted_pins;

static stepgraph_status enqueue(void *user, stepgraph_step *step, uint64_t k)
{
    (void)step;
    (void)k;
    inc(stream, *(CUdeviceptr *)user, 1.0f);
    return STEPGRAPH_OK;
}

/* A whole check of a state of that size whose step does next to nothing. */
static void whole_check(void)
{
    stepgraph_check_config config = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_check_summary summary = STEPGRAPH_CHECK_SUMMARY_INIT;
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, wanted_bytes, "state");
    stepgraph_step *step = step_make(session, "check", 0);
    CUdeviceptr at = stepgraph_pin_address(pin);
    stepgraph_check *check = NULL;

    begin_recording(step);
    enqueue(&at, step, 0);
    OK(stepgraph_step_end(step));
    config.enqueue = enqueue;
    config.user = &at;
    for (int where = 0; where < 2; where++) {
        config.device_bytes = where ? 1 : 0;
        config.host_bytes = where ? 6 * (uint64_t)wanted_bytes : 0;
        OK(stepgraph_check_run(step, &config, &check));
        OK(stepgraph_check_get_summary(check, &summary));
        printf("a whole check of %zu MiB, snapshots in %s memory: %s in %.3f s, %.1f MiB on the device, %.1f MiB on the host\n", wanted_bytes >> 20,
               where ? "page-locked host" : "device", stepgraph_check_verdict_name(summary.verdict), summary.seconds,
               (double)summary.device_bytes / 1048576.0, (double)summary.host_bytes / 1048576.0);
        ck_assert_uint_ne(summary.verdict, STEPGRAPH_DIVERGED);
        stepgraph_check_destroy(check);
    }
}

START_TEST(speed)
{
    static sg__range ranges[PINS_MAX], back[PINS_MAX];
    static sg__difference found[PINS_MAX];
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;
    size_t each;
    CUmodule module;
    double copy;

    OK(stepgraph_session_get_info(session, &info));
    if (!wanted_bytes)
        wanted_bytes = (size_t)(info.software ? 8 : 2048) << 20;
    if (!wanted_pins)
        wanted_pins = 300;
    p.n = wanted_pins;
    p.bytes = wanted_bytes;
    each = p.bytes / p.n / 256 * 256;
    CU(MemAlloc(&p.image, p.bytes));
    CU(MemAlloc(&p.pins, p.bytes));
    p.table = device_make(sizeof ranges);
    p.reverse = device_make(sizeof ranges);
    p.found = device_make(sizeof found);
    for (unsigned i = 0; i < p.n; i++) {
        size_t bytes = i + 1 < p.n ? each : p.bytes - each * (p.n - 1);
        ranges[i] = (sg__range){ .a = p.image + i * each, .b = p.pins + i * each, .bytes = bytes, .first_chunk = p.chunks };
        back[i] = (sg__range){ .a = ranges[i].b, .b = ranges[i].a, .bytes = bytes, .first_chunk = p.chunks };
        found[i] = (sg__difference){ 0, ~0ull };
        p.chunks += (bytes + SG__CHUNK_BYTES - 1) / SG__CHUNK_BYTES;
    }
    put_bytes(p.table, ranges, sizeof ranges);
    put_bytes(p.reverse, back, sizeof back);
    put_bytes(p.found, found, sizeof found);
    p.blocks = (unsigned)info.multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    if (p.blocks > p.chunks)
        p.blocks = (unsigned)p.chunks;
    CU(ModuleLoadData(&module, stepgraph_kernels_ptx));
    CU(ModuleGetFunction(&p.copy, module, "stepgraph_copy"));
    CU(ModuleGetFunction(&p.compare, module, "stepgraph_compare"));
    CU(MemsetD8Async(p.pins, 0x5a, p.bytes, stream));

    printf("%s%s, %zu MiB in %u pins\n", info.device_name, info.software ? " (a simulation: the figures say nothing about a card)" : "",
           p.bytes >> 20, p.n);
    copy = bandwidth("the driver's copy, one piece", plain_copy, 2.0 * (double)p.bytes, 0);
    bandwidth("snapshot (save)", save, 2.0 * (double)p.bytes, copy);
    bandwidth("putting back (restore)", restore, 2.0 * (double)p.bytes, copy);
    bandwidth("comparing, nothing differs", compare, 2.0 * (double)p.bytes, copy);
    bandwidth("filling", poison, (double)p.bytes, copy);
    bytes_at(p.found, found, sizeof found);
    for (unsigned i = 0; i < p.n; i++)
        ck_assert_uint_eq(found[i].bytes, 0);
    CU(ModuleUnload(module));
    CU(MemFree(p.image));
    CU(MemFree(p.pins));
    whole_check();
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("check speed");
    TCase *tcase = unit_case(suite, "speed");

    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, speed);
    return suite;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        wanted_bytes = (size_t)strtoull(argv[1], NULL, 10) << 20;
    if (argc > 2)
        wanted_pins = (unsigned)strtoul(argv[2], NULL, 10);
    if (wanted_pins > PINS_MAX)
        wanted_pins = PINS_MAX;
    return unit_main(make);
}
