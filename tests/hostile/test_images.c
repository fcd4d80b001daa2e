/*
 * Modules that are none: PTX with bytes changed, cut off, doubled and put elsewhere, and noise that begins like a binary. The software driver answers
 * each with a module or a code, and works afterwards.
 */
#include "support.h"

#include "test_kernels_ptx.h"

enum { ROOM = 1 << 17 };

static char image[ROOM];

static void damage(uint64_t *seed)
{
    size_t bytes = strlen(test_kernels_ptx), from, to, n;

    ck_assert_uint_lt(bytes, ROOM / 2);
    memset(image, 0, sizeof image);
    memcpy(image, test_kernels_ptx, bytes);
    switch (unit_random(seed) % 5) {
    case 0: /* Bytes changed. */
        for (n = 1 + unit_random(seed) % 8; n > 0; n--)
            image[unit_random(seed) % bytes] = (char)unit_random(seed);
        break;
    case 1: /* Cut off. */
        image[unit_random(seed) % bytes] = '\0';
        break;
    case 2: /* A piece twice. */
        from = unit_random(seed) % bytes;
        n = unit_random(seed) % (bytes - from);
        memmove(image + from + n, image + from, bytes - from);
        break;
    case 3: /* A piece left out. */
        from = unit_random(seed) % bytes;
        n = unit_random(seed) % (bytes - from);
        memmove(image + from, image + from + n, bytes - from - n + 1);
        break;
    default: /* Lines of declarations over each other. */
        from = unit_random(seed) % (bytes - 200);
        to = unit_random(seed) % (bytes - 200);
        memcpy(image + to, test_kernels_ptx + from, unit_random(seed) % 200);
        break;
    }
}

/* Whatever came of it. Counts modules. */
static unsigned try_image(void)
{
    static const char *const names[] = {"nop", "inc", "axpb", "", "no such kernel"};
    CUmodule module = NULL;
    CUresult code = cu.ModuleLoadData(&module, image);

    if (code != CUDA_SUCCESS) {
        ck_assert_msg(code == CUDA_ERROR_INVALID_IMAGE || code == CUDA_ERROR_INVALID_PTX || code == CUDA_ERROR_INVALID_VALUE ||
                          code == CUDA_ERROR_NOT_FOUND || code == CUDA_ERROR_NO_BINARY_FOR_GPU,
                      "cuModuleLoadData answers %d", (int)code);
        ck_assert_ptr_null(module);
        return 0;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CUfunction function = NULL;
        code = cu.ModuleGetFunction(&function, module, names[i]);
        ck_assert_msg(code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_FOUND, "cuModuleGetFunction(%s) answers %d", names[i], (int)code);
        ck_assert_int_eq(code == CUDA_SUCCESS, function != NULL);
    }
    CU(ModuleUnload(module));
    return 1;
}

static void works(void)
{
    CUdeviceptr p = device_make(4);

    inc(stream, p, 1);
    ck_assert_float_eq(float_at(p), 1);
}

START_TEST(damaged_ptx_is_answered)
{
    enum { IMAGES = 3000 };
    uint64_t seed = 3;
    unsigned loaded = 0;

    for (int k = 0; k < IMAGES; k++) {
        damage(&seed);
        loaded += try_image();
    }
    /* Some damage is to what nobody looks at, and some is not. */
    ck_assert_uint_gt(loaded, 0);
    ck_assert_uint_lt(loaded, IMAGES);
    works();
}
END_TEST

START_TEST(noise_is_no_module)
{
    static const char *const starts[] = {"", "\x7f" "ELF\2\1\1", "\x50\xed\x55\xba\1\0\x10\0", "//", ".version", ".version 8.0\n.target sm_75\n.visible .entry "};
    uint64_t seed = 4;

    for (int k = 0; k < 1000; k++) {
        size_t start = (size_t)k % (sizeof starts / sizeof *starts), n = strlen(starts[start]);
        memset(image, 0, sizeof image);
        memcpy(image, starts[start], n);
        random_bytes(&seed, image + n, unit_random(&seed) % 4000);
        (void)try_image();
    }
    works();
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("hostile images");
    TCase *all = unit_case(suite, "all");

    /* A card's driver answers for itself. */
    add_controlled_test(all, damaged_ptx_is_answered);
    add_controlled_test(all, noise_is_no_module);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
