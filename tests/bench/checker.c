/*
 * The device kernel that compares state, against cuMemcpyDtoDAsync of as many bytes: both move every byte of two buffers once. Loaded from
 * the library's own PTX and launched as the library does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "library_kernels_ptx.h"
#include "ranges.h"

enum { MOST_RANGES = 1000 };

struct checker {
    CUfunction compare;
    unsigned most_blocks;
    CUdeviceptr a, b, table, found;
    uint64_t bytes, chunks; /* Of all ranges. */
    unsigned n;
    unsigned burst;
};

static void compare_once(const struct checker *c)
{
    unsigned n = c->n, blocks = c->chunks < c->most_blocks ? (unsigned)c->chunks : c->most_blocks;
    unsigned long long chunks = c->chunks;
    CUdeviceptr table = c->table, found = c->found;
    void *arguments[] = { &table, &n, &chunks, &found };

    CU(LaunchKernel(c->compare, blocks, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

static double ours(void *user)
{
    const struct checker *c = user;

    bench_device_start();
    for (unsigned i = 0; i < c->burst; i++)
        compare_once(c);
    return bench_device_stop() / c->burst;
}

static double raw(void *user)
{
    const struct checker *c = user;

    bench_device_start();
    for (unsigned i = 0; i < c->burst; i++)
        CU(MemcpyDtoDAsync(c->b, c->a, c->bytes, stream));
    return bench_device_stop() / c->burst;
}

static void make(struct checker *c, unsigned n, uint64_t bytes)
{
    static sg__range ranges[MOST_RANGES];
    static sg__difference found[MOST_RANGES];
    uint64_t each = bytes / n;

    c->n = n;
    c->bytes = bytes;
    c->chunks = 0;
    c->burst = bytes < 64u << 20 ? 16 : 1;
    CU(MemAlloc(&c->a, bytes));
    CU(MemAlloc(&c->b, bytes));
    CU(MemsetD8Async(c->a, 7, bytes, stream));
    CU(MemsetD8Async(c->b, 7, bytes, stream));
    for (unsigned i = 0; i < n; i++) {
        ranges[i] = (sg__range){ .a = c->a + i * each, .b = c->b + i * each, .bytes = each, .first_chunk = c->chunks };
        found[i] = (sg__difference){ .bytes = 0, .first = ~0ull };
        c->chunks += (each + SG__CHUNK_BYTES - 1) / SG__CHUNK_BYTES;
    }
    CU(MemAlloc(&c->table, sizeof ranges));
    CU(MemAlloc(&c->found, sizeof found));
    CU(MemcpyHtoD(c->table, ranges, n * sizeof *ranges));
    CU(MemcpyHtoD(c->found, found, n * sizeof *found));
    bench_sync();
}

static bool found_none(const struct checker *c)
{
    static sg__difference found[MOST_RANGES];
    unsigned long long differ = 0;

    bench_sync();
    CU(MemcpyDtoH(found, c->found, c->n * sizeof *found));
    for (unsigned i = 0; i < c->n; i++)
        differ += found[i].bytes;
    return differ == 0;
}

static void drop(struct checker *c)
{
    CU(MemFree(c->a));
    CU(MemFree(c->b));
    CU(MemFree(c->table));
    CU(MemFree(c->found));
}

static CUmodule load(struct checker *c)
{
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;
    CUmodule module;

    CU(ModuleLoadData(&module, library_kernels_ptx));
    CU(ModuleGetFunction(&c->compare, module, "stepgraph_compare"));
    OK(stepgraph_session_get_info(session, &info));
    c->most_blocks = (unsigned)info.multiprocessors * 8;
    return module;
}

static void measure_one(struct checker *c, unsigned n, uint64_t bytes, bool headline)
{
    bench_pair pair;

    if (bench_skips(bytes, 4u << 20))
        return;
    make(c, n, bytes);
    pair = bench_alternate(ours, raw, c, 250);
    /* A launch of its own is what small sizes pay; the target is about bandwidth. */
    bench_add(n == 1 ? "compare by bytes" : "compare 1000 ranges by bytes", (double)bytes, "us", &pair,
              bytes >= 64u << 20 ? BENCH_RATIO : BENCH_NO_TARGET, 1.25, headline, "compare %.3f MiB in %u / copy (%.0f, %.0f GB/s)",
              (double)bytes / (1 << 20), n, 2e-3 * (double)bytes / pair.ours.median, 2e-3 * (double)bytes / pair.raw.median);
    if (!found_none(c))
        printf("checker: equal buffers were found to differ\n");
    drop(c);
}

static void measure(void)
{
    struct checker c = { 0 };
    CUmodule module = load(&c);

    for (uint64_t bytes = 4096; bytes <= (uint64_t)4 << 30; bytes *= 4)
        measure_one(&c, 1, bytes, bytes >= 64u << 20);
    measure_one(&c, 1000, 4096 * 1000, true);
    measure_one(&c, 1000, (uint64_t)1000 << 20, true);
    CU(ModuleUnload(module));
}

/* The work is one launch by construction; that it looks at every byte is for the unit tests. */
static void check_work(void)
{
    struct checker c = { 0 };
    CUmodule module = load(&c);
    unsigned char other = 8;

    make(&c, 10, 1 << 20);
    compare_once(&c);
    bench_expect(found_none(&c), "equal buffers compare equal");
    CU(MemcpyHtoD(c.b + 12345, &other, 1));
    compare_once(&c);
    bench_expect(!found_none(&c), "one byte that differs is found");
    drop(&c);
    CU(ModuleUnload(module));
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "checker", measure, check_work);
}
