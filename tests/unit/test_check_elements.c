/* Elements as values, and the kernels that the checker needs besides, launched directly from their PTX against the same work on the host. */
#include "elements.h"
#include "ranges.h"
#include "support.h"

#include "stepgraph_kernels_ptx.h"

static CUmodule module;
static CUfunction filled, distance, flip, repeat;

static void load(void)
{
    if (module)
        return;
    CU(ModuleLoadData(&module, stepgraph_kernels_ptx));
    CU(ModuleGetFunction(&filled, module, "stepgraph_compare_filled"));
    CU(ModuleGetFunction(&distance, module, "stepgraph_distance"));
    CU(ModuleGetFunction(&flip, module, "stepgraph_flip"));
    CU(ModuleGetFunction(&repeat, module, "stepgraph_repeat"));
}

/* ---- values ------------------------------------------------------------------------------------------------------- */

static const struct {
    unsigned type;
    unsigned long long bits;
    double value;
} known[] = {
    { SG__F32, 0x3f800000, 1 }, { SG__F32, 0xbf000000, -0.5 }, { SG__F32, 0x00000001, 0x1p-149 }, { SG__F32, 0x7f7fffff, 0x1.fffffep127 },
    { SG__F32, 0x7f800000, INFINITY }, { SG__F32, 0xff800000, -INFINITY }, { SG__F32, 0x7fc00001, NAN }, { SG__F32, 0x80000000, -0.0 },
    { SG__F64, 0x3ff8000000000000, 1.5 }, { SG__F64, 0x7ff0000000000000, INFINITY },
    { SG__F16, 0x3c00, 1 }, { SG__F16, 0x0001, 0x1p-24 }, { SG__F16, 0x03ff, 0x1.ff8p-15 }, { SG__F16, 0x7bff, 65504 }, { SG__F16, 0xfc00, -INFINITY },
    { SG__F16, 0x7e00, NAN },
    { SG__BF16, 0x3f80, 1 }, { SG__BF16, 0x4049, 3.140625 }, { SG__BF16, 0x7f80, INFINITY }, { SG__BF16, 0x0001, 0x1p-133 }, { SG__BF16, 0xffff, NAN },
    { SG__F8E4M3, 0x38, 1 }, { SG__F8E4M3, 0x7e, 448 }, { SG__F8E4M3, 0x7f, NAN }, { SG__F8E4M3, 0x01, 0x1p-9 }, { SG__F8E4M3, 0xff, NAN },
    { SG__F8E4M3, 0x78, 256 }, { SG__F8E4M3, 0x08, 0x1p-6 },
    { SG__F8E5M2, 0x3c, 1 }, { SG__F8E5M2, 0x7b, 57344 }, { SG__F8E5M2, 0x7c, INFINITY }, { SG__F8E5M2, 0x7d, NAN }, { SG__F8E5M2, 0x01, 0x1p-16 },
    { SG__I8, 0xff, -1 }, { SG__I16, 0x8000, -32768 }, { SG__I32, 0xfffffffe, -2 }, { SG__I64, 0xffffffffffffffff, -1 }, { SG__I32, 7, 7 },
    { SG__U8, 0xff, 255 }, { SG__U16, 0xffff, 65535 }, { SG__U32, 0xffffffff, 4294967295.0 }, { SG__BYTES, 0x80, 128 },
};

START_TEST(element_has_its_value)
{
    double got = sg__element_value(known[_i].type, known[_i].bits);

    if (isnan(known[_i].value))
        ck_assert(isnan(got));
    else
        ck_assert_msg(got == known[_i].value && signbit(got) == signbit(known[_i].value), "type %u, bits %llx: %.17g instead of %.17g",
                      known[_i].type, known[_i].bits, got, known[_i].value);
}
END_TEST

static const struct {
    unsigned type;
    unsigned long long a, b, ulps;
} apart[] = {
    { SG__F32, 0x3f800000, 0x3f800001, 1 }, { SG__F32, 0x3f800001, 0x3f800000, 1 }, { SG__F32, 0x00000000, 0x80000000, 0 },
    { SG__F32, 0x00000001, 0x80000001, 2 }, { SG__F32, 0x7f800000, 0x7f7fffff, 1 }, { SG__F32, 0x7fc00000, 0x3f800000, ~0ull },
    { SG__F32, 0x7fc00000, 0x7fc00001, 0 }, { SG__F16, 0x3c00, 0x3bff, 1 }, { SG__BF16, 0x3f80, 0x3f70, 16 }, { SG__F64, 1, 0, 1 },
    { SG__F8E4M3, 0x38, 0x39, 1 }, { SG__F8E4M3, 0x7f, 0x7e, ~0ull }, { SG__F8E5M2, 0x7c, 0x7b, 1 },
    { SG__I8, 0xff, 0x01, 2 }, { SG__I64, 0x8000000000000000, 0x7fffffffffffffff, ~0ull }, { SG__U8, 0xff, 0x01, 254 }, { SG__I32, 5, 5, 0 },
};

START_TEST(elements_are_so_many_ulps_apart)
{
    ck_assert_uint_eq(sg__element_ulps(apart[_i].type, apart[_i].a, apart[_i].b), apart[_i].ulps);
    ck_assert_uint_eq(sg__element_ulps(apart[_i].type, apart[_i].b, apart[_i].a), apart[_i].ulps);
}
END_TEST

/* ---- kernels ------------------------------------------------------------------------------------------------------ */

static sg__distance on_host(unsigned type, const unsigned char *a, const unsigned char *b, size_t n, unsigned fill_a, unsigned fill_b)
{
    sg__distance d = { 0, ~0ull, 0, 0, 0 };
    unsigned bytes = sg__element_bytes(type);

    for (size_t i = 0; i < n; i++) {
        unsigned long long x = sg__element_load(a + i * bytes, bytes), y = sg__element_load(b + i * bytes, bytes), u, bits;
        double far = sg__element_distance(type, x, y);
        unsigned kept = 1;
        for (unsigned k = 0; k < bytes; k++)
            kept = kept && a[i * bytes + k] == fill_a && b[i * bytes + k] == fill_b;
        if (x == y || kept)
            continue;
        d.elements++;
        if (i < d.first)
            d.first = i;
        u = sg__element_ulps(type, x, y);
        d.ulps = u > d.ulps ? u : d.ulps;
        bits = sg__bits_of_double(far);
        d.largest = bits > d.largest ? bits : d.largest;
        if (isfinite(far))
            d.squares += far * far;
    }
    return d;
}

enum { BYTES = 4096 + 40 };

START_TEST(distance_is_that_of_the_host)
{
    unsigned type = (unsigned)_i, size = sg__element_bytes(type);
    unsigned char a[BYTES], b[BYTES];
    CUdeviceptr da = device_make(BYTES), db = device_make(BYTES), found = device_make(sizeof(sg__distance));
    uint64_t seed = 9 + (uint64_t)_i;

    for (unsigned skew = 0; skew < 2; skew++) {
        sg__distance want, got = { 0, ~0ull, 0, 0, 0 };
        unsigned long long n = (BYTES - 8) / size, base = 1000;
        unsigned fill_a = 0xff, fill_b = 0x3e;

        random_bytes(&seed, a, BYTES);
        memcpy(b, a, BYTES);
        for (int i = 0; i < 300; i++)
            b[8 + unit_random(&seed) % (BYTES - 8)] ^= (unsigned char)(1 + unit_random(&seed) % 255);
        memset(a + 800, 0xff, 64);
        memset(b + 800, 0x3e, 64);
        put_bytes(da, a, BYTES);
        put_bytes(db, b, BYTES);
        put_bytes(found, &got, sizeof got);
        CU(LaunchKernel(distance, 3, 1, 1, 64, 1, 1, 0, stream,
                        (void *[]){ &(CUdeviceptr){ da + skew }, &(CUdeviceptr){ db + skew }, &n, &base, &type, &fill_a, &fill_b, &found }, NULL));
        bytes_at(found, &got, sizeof got);
        want = on_host(type, a + skew, b + skew, n, fill_a, fill_b);
        ck_assert_uint_gt(want.elements, 0);
        ck_assert_uint_eq(got.elements, want.elements);
        ck_assert_uint_eq(got.first, want.first + base);
        ck_assert_uint_eq(got.ulps, want.ulps);
        ck_assert_uint_eq(got.largest, want.largest);
        ck_assert(got.squares == want.squares || fabs(got.squares - want.squares) <= 1e-12 * want.squares);
    }
}
END_TEST

START_TEST(filled_bytes_do_not_differ)
{
    enum { ROOM = 40000, RANGES = 3 };
    static unsigned char a[ROOM], b[ROOM];
    static const size_t at[RANGES] = { 0, 20000, 39984 }, bytes[RANGES] = { 17000, 501, 16 };
    sg__range ranges[RANGES];
    sg__difference want[RANGES], got[RANGES];
    unsigned long long kept[RANGES] = { 0 }, want_kept[RANGES] = { 0 }, chunks = 0;
    CUdeviceptr da = device_make(ROOM), db = device_make(ROOM), table = device_make(sizeof ranges), found = device_make(sizeof got),
                left = device_make(sizeof kept);
    unsigned n = RANGES, fill_a = 0xff, fill_b = 0x3e;
    uint64_t seed = 4;

    /* Written by neither, by one side, by both alike and by both otherwise. */
    for (size_t i = 0; i < ROOM; i++) {
        unsigned r = unit_random(&seed) % 50;
        a[i] = r < 20 ? 0xff : r == 20 ? 0x11 : r == 21 ? 0xff : (unsigned char)i;
        b[i] = r < 20 ? 0x3e : r == 20 ? 0x3e : r == 21 ? 0x22 : r == 22 ? (unsigned char)(i + 1) : (unsigned char)i;
    }
    memset(a + at[2], 0xff, 16);
    memset(b + at[2], 0x3e, 16);
    for (unsigned i = 0; i < RANGES; i++) {
        ranges[i] = (sg__range){ .a = da + at[i], .b = db + at[i], .bytes = bytes[i], .first_chunk = chunks };
        chunks += (bytes[i] + SG__CHUNK_BYTES - 1) / SG__CHUNK_BYTES;
        want[i] = got[i] = (sg__difference){ 0, ~0ull };
        for (size_t k = 0; k < bytes[i]; k++) {
            unsigned char x = a[at[i] + k], y = b[at[i] + k];
            want_kept[i] += y == fill_b;
            if (x != y && !(x == fill_a && y == fill_b)) {
                want[i].bytes++;
                want[i].first = k < want[i].first ? k : want[i].first;
            }
        }
    }
    put_bytes(da, a, ROOM);
    put_bytes(db, b, ROOM);
    put_bytes(table, ranges, sizeof ranges);
    put_bytes(found, got, sizeof got);
    CU(LaunchKernel(filled, 2, 1, 1, 128, 1, 1, 0, stream, (void *[]){ &table, &n, &chunks, &found, &left, &fill_a, &fill_b }, NULL));
    bytes_at(found, got, sizeof got);
    bytes_at(left, kept, sizeof kept);
    for (unsigned i = 0; i < RANGES; i++) {
        ck_assert_uint_eq(got[i].bytes, want[i].bytes);
        ck_assert_uint_eq(got[i].first, want[i].first);
        ck_assert_uint_eq(kept[i], want_kept[i]);
    }
    ck_assert_uint_eq(kept[2], 16);
    ck_assert_uint_eq(got[2].bytes, 0);
}
END_TEST

START_TEST(flip_and_repeat_touch_what_they_should)
{
    unsigned char want[1000], got[1000];
    CUdeviceptr d = device_make(sizeof want), at, to;
    unsigned long long n = 30, more = 500, period = 7;
    unsigned stride = 8, mask = 0x81;
    uint64_t seed = 2;

    random_bytes(&seed, want, sizeof want);
    put_bytes(d, want, sizeof want);
    at = d + 3;
    CU(LaunchKernel(flip, 1, 1, 1, 32, 1, 1, 0, stream, (void *[]){ &at, &n, &stride, &mask }, NULL));
    for (unsigned i = 0; i < n; i++)
        want[3 + i * stride] ^= 0x81;
    at = d + 400;
    to = at + period;
    CU(LaunchKernel(repeat, 2, 1, 1, 64, 1, 1, 0, stream, (void *[]){ &to, &more, &at, &period }, NULL));
    for (unsigned i = 0; i < more; i++)
        want[400 + period + i] = want[400 + i % period];
    bytes_at(d, got, sizeof got);
    ck_assert_mem_eq(want, got, sizeof want);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("check elements");
    TCase *values = unit_case(suite, "values"), *on_device = unit_case(suite, "kernels");

    tcase_add_checked_fixture(on_device, load, NULL);
    tcase_add_loop_test(values, element_has_its_value, 0, sizeof known / sizeof *known);
    tcase_add_loop_test(values, elements_are_so_many_ulps_apart, 0, sizeof apart / sizeof *apart);
    tcase_add_loop_test(on_device, distance_is_that_of_the_host, SG__BYTES, SG__U64 + 1);
    tcase_add_test(on_device, filled_bytes_do_not_differ);
    tcase_add_test(on_device, flip_and_repeat_touch_what_they_should);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
