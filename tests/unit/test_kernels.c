/* The library's device kernels, launched directly from their PTX over tables of odd ranges, against the same work on the host. */
#include "ranges.h"
#include "support.h"

#include "stepgraph_kernels_ptx.h"

enum { ROOM = 600 };

static CUmodule module;
static CUfunction commit, copy, fill, compare;

/* Ranges in one buffer (a) and another (b), cut by hand with gaps between them, and the host's image of both. */
static struct {
    sg__range range[ROOM];
    unsigned n;
    unsigned long long chunks;
    CUdeviceptr a, b, table;
    size_t total;
    unsigned char *host_a, *host_b, *got;
} t;

static void load(void)
{
    CU(ModuleLoadData(&module, stepgraph_kernels_ptx));
    CU(ModuleGetFunction(&commit, module, "stepgraph_commit"));
    CU(ModuleGetFunction(&copy, module, "stepgraph_copy"));
    CU(ModuleGetFunction(&fill, module, "stepgraph_fill"));
    CU(ModuleGetFunction(&compare, module, "stepgraph_compare"));
}

static void unload(void)
{
    CU(ModuleUnload(module));
    free(t.host_a);
    free(t.host_b);
    free(t.got);
    memset(&t, 0, sizeof t);
}

/* Sizes of n ranges; `skew` shifts a and b against each other by up to 15 bytes, so that few lie at 16 bytes on both sides. */
static void table_make(const size_t *bytes, unsigned n, unsigned skew, uint64_t seed)
{
    size_t at = 0;

    t.n = n;
    t.chunks = 0;
    t.total = 64;
    for (unsigned i = 0; i < n; i++)
        t.total += bytes[i] + 64;
    t.a = device_make(t.total);
    t.b = device_make(t.total);
    t.table = device_make(sizeof t.range);
    t.host_a = malloc(t.total);
    t.host_b = malloc(t.total);
    t.got = malloc(t.total);
    random_bytes(&seed, t.host_a, t.total);
    random_bytes(&seed, t.host_b, t.total);
    put_bytes(t.a, t.host_a, t.total);
    put_bytes(t.b, t.host_b, t.total);
    for (unsigned i = 0; i < n; i++) {
        size_t from = skew ? unit_random(&seed) % skew : 0, to = skew ? unit_random(&seed) % skew : 0;
        t.range[i].a = t.a + at + to;
        t.range[i].b = t.b + at + from;
        t.range[i].bytes = bytes[i];
        t.range[i].first_chunk = t.chunks;
        t.chunks += (bytes[i] + SG__CHUNK_BYTES - 1) / SG__CHUNK_BYTES;
        at = (at + bytes[i] + 16 + 15) / 16 * 16;
    }
    put_bytes(t.table, t.range, n * sizeof *t.range);
}

static void run(CUfunction function, unsigned blocks, unsigned threads, CUdeviceptr found)
{
    CU(LaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, (void *[]){&t.table, &t.n, &t.chunks, &found}, NULL));
    OK(stepgraph_session_wait(session));
}

/* All of buffer a is as the host says, between the ranges too, and b is untouched. */
static void same_on_both(void)
{
    bytes_at(t.a, t.got, t.total);
    for (size_t i = 0; i < t.total; i++)
        if (t.got[i] != t.host_a[i])
            ck_abort_msg("byte %zu is %02x instead of %02x", i, t.got[i], t.host_a[i]);
    bytes_at(t.b, t.got, t.total);
    ck_assert_msg(memcmp(t.got, t.host_b, t.total) == 0, "what is only read was written");
}

static const size_t odd[] = {1, 16384, 3, 16, 15, 17, 1, 40000, 16383, 16385, 4096, 2, 100, 32768, 7, 31, 255, 257, 65537, 5, 1};
enum { ODD = sizeof odd / sizeof *odd };

/* Blocks, threads, skew: fewer blocks than chunks, more, and one; whole warps and not. */
static const struct shape {
    unsigned blocks, threads, skew;
} shapes[] = {{1, 256, 0}, {1, 1, 16}, {3, 32, 0}, {7, 100, 16}, {64, 256, 0}, {64, 256, 16}, {200, 512, 2}, {5, 128, 9}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void table_of_shape(int i)
{
    table_make(odd, ODD, shapes[i].skew, 1000 + (uint64_t)i);
}

static void table_of_many(void)
{
    static size_t bytes[ROOM];
    uint64_t seed = 5;

    for (int i = 0; i < ROOM; i++)
        bytes[i] = 1 + unit_random(&seed) % (i % 50 ? 300 : 50000);
    table_make(bytes, ROOM, 16, 6);
}

static void host_copy(void)
{
    for (unsigned i = 0; i < t.n; i++)
        memcpy(t.host_a + (t.range[i].a - t.a), t.host_b + (t.range[i].b - t.b), t.range[i].bytes);
}

START_TEST(copy_is_memcpy_of_every_range)
{
    table_of_shape(_i);
    run(copy, shapes[_i].blocks, shapes[_i].threads, 0);
    host_copy();
    same_on_both();
}
END_TEST

START_TEST(copy_of_many_ranges_is_memcpy_of_each)
{
    table_of_many();
    run(copy, 40, 256, 0);
    host_copy();
    same_on_both();
}
END_TEST

START_TEST(copy_of_one_large_range_is_one_memcpy)
{
    table_make((size_t[]){(3u << 20) + 11}, 1, 0, 12);
    run(copy, 132, 256, 0);
    host_copy();
    same_on_both();
}
END_TEST

/* The ranges as slices, whole: a block takes as long ones as it is given. */
static void run_commit(unsigned blocks, unsigned threads)
{
    static sg__slice slices[ROOM];

    for (unsigned i = 0; i < t.n; i++)
        slices[i] = (sg__slice){t.range[i].a, t.range[i].b, t.range[i].bytes};
    put_bytes(t.table, slices, t.n * sizeof *slices);
    CU(LaunchKernel(commit, blocks, 1, 1, threads, 1, 1, 0, stream, (void *[]){&t.table, &t.n}, NULL));
    OK(stepgraph_session_wait(session));
    host_copy();
    same_on_both();
}

START_TEST(commit_is_memcpy_of_every_slice)
{
    table_of_shape(_i);
    run_commit(shapes[_i].blocks, shapes[_i].threads);
}
END_TEST

START_TEST(commit_of_many_slices_is_memcpy_of_each)
{
    table_of_many();
    run_commit(_i ? 40 : ROOM, 128);
}
END_TEST

START_TEST(fill_is_memset_of_every_range)
{
    table_of_shape(_i);
    for (unsigned i = 0; i < t.n; i++) {
        t.range[i].b = (i * 37 + 1) & 255;
        memset(t.host_a + (t.range[i].a - t.a), (int)t.range[i].b, t.range[i].bytes);
    }
    put_bytes(t.table, t.range, t.n * sizeof *t.range);
    run(fill, shapes[_i].blocks, shapes[_i].threads, 0);
    same_on_both();
}
END_TEST

static void host_compare(sg__difference *found)
{
    for (unsigned i = 0; i < t.n; i++) {
        const unsigned char *a = t.host_a + (t.range[i].a - t.a), *b = t.host_b + (t.range[i].b - t.b);
        found[i].bytes = 0;
        found[i].first = ~0ull;
        for (size_t k = 0; k < t.range[i].bytes; k++)
            if (a[k] != b[k]) {
                found[i].bytes++;
                if (k < found[i].first)
                    found[i].first = k;
            }
    }
}

static void compare_like_the_host(unsigned blocks, unsigned threads)
{
    static sg__difference wanted[ROOM], got[ROOM];
    CUdeviceptr found = device_make(sizeof got);

    for (unsigned i = 0; i < t.n; i++)
        got[i] = (sg__difference){0, ~0ull};
    put_bytes(found, got, t.n * sizeof *got);
    run(compare, blocks, threads, found);
    bytes_at(found, got, t.n * sizeof *got);
    host_compare(wanted);
    for (unsigned i = 0; i < t.n; i++)
        ck_assert_msg(got[i].bytes == wanted[i].bytes && got[i].first == wanted[i].first,
                      "range %u of %llu bytes: %llu differ from %llu on, instead of %llu from %llu on", i, t.range[i].bytes,
                      got[i].bytes, got[i].first, wanted[i].bytes, wanted[i].first);
    device_drop(found);
    same_on_both();
}

START_TEST(compare_counts_what_the_host_counts)
{
    table_of_shape(_i);
    compare_like_the_host(shapes[_i].blocks, shapes[_i].threads); /* Nearly all differ. */
    host_copy();
    put_bytes(t.a, t.host_a, t.total);
    compare_like_the_host(shapes[_i].blocks, shapes[_i].threads); /* None does. */
    /* A single byte in each range: the first, the last, one in between. */
    for (unsigned i = 0; i < t.n; i++) {
        size_t k = i % 3 == 0 ? 0 : i % 3 == 1 ? t.range[i].bytes - 1 : t.range[i].bytes / 2;
        t.host_a[t.range[i].a - t.a + k] ^= 0x80;
    }
    put_bytes(t.a, t.host_a, t.total);
    compare_like_the_host(shapes[_i].blocks, shapes[_i].threads);
}
END_TEST

START_TEST(compare_of_many_ranges_finds_each_difference)
{
    uint64_t seed = 99;

    table_of_many();
    host_copy();
    for (unsigned i = 0; i < t.n; i += 3) {
        unsigned times = 1 + unit_random(&seed) % 5;
        while (times--)
            t.host_a[t.range[i].a - t.a + unit_random(&seed) % t.range[i].bytes] ^= 1;
    }
    put_bytes(t.a, t.host_a, t.total);
    compare_like_the_host(33, 256);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("kernels");
    TCase *ranges = unit_case(suite, "ranges");

    tcase_add_checked_fixture(ranges, load, unload);
    tcase_add_loop_test(ranges, commit_is_memcpy_of_every_slice, 0, SHAPES);
    tcase_add_loop_test(ranges, commit_of_many_slices_is_memcpy_of_each, 0, 2);
    tcase_add_loop_test(ranges, copy_is_memcpy_of_every_range, 0, SHAPES);
    tcase_add_test(ranges, copy_of_many_ranges_is_memcpy_of_each);
    tcase_add_test(ranges, copy_of_one_large_range_is_one_memcpy);
    tcase_add_loop_test(ranges, fill_is_memset_of_every_range, 0, SHAPES);
    tcase_add_loop_test(ranges, compare_counts_what_the_host_counts, 0, SHAPES);
    tcase_add_test(ranges, compare_of_many_ranges_finds_each_difference);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
