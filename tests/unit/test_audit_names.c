/* Names of kernels as findings say them: readable, on one line, and still there when the module is gone. */
#include "support.h"

#include "graph/layout.h"

static const char *told;

static CUresult tell(const char **name, CUfunction function)
{
    ck_assert_ptr_nonnull(function);
    *name = told;
    return told != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static sg__name *name_of(const char *raw)
{
    static const sg__driver driver = {.FuncGetName = tell};

    told = raw;
    return sg__name_ask(&driver, (CUfunction)&told);
}

static const struct {
    const char *raw, *brief;
} names[] = {
    {"adam", "adam"},
    {"_ZN3net5scaleEPff", "net::scale(float*, float)"},
    {"_Znot_a_name", "_Znot_a_name"},
    /* Too long for a line: without parameters, and as much of the template arguments as fits. */
    {"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<float> >"
     "(at::TensorIteratorBase&, at::native::CUDAFunctor_add<float> const&)::{lambda(int)#1}>(int, at::native::lambda)",
     "at::native::elementwise_kernel<128, 2, gpu_kernel_impl_nocast<CUDAFunctor_add<float> >(...)::{lambda(int)#1}>"},
    {"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<float, float, "
     "float, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&)::{lambda(int)#1}>(int, int)",
     "at::native::elementwise_kernel<128, 2, gpu_kernel_impl_nocast<BinaryFunctor<...> >(...)::{lambda(int)#1}>"},
    {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int, float, float const*, float "
     "const*, float const*, float*, float*, float*)",
     "at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>"},
    {"void a::kernel<a::operator()<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>, (b)1, "
     "decltype(cc->d)>(int)",
     "a::kernel<operator()<...>, (b)1, decltype(...)>"},
    {"void outer(int)::kernel<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>(int)",
     "outer(int)::kernel<...>"},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."},
    {"void k<(((<<<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     "k<(((<<<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."},
};

START_TEST(name_is_readable_and_fits_a_line)
{
    sg__name *name = name_of(names[_i].raw);

    ck_assert_str_eq(sg__name_short(name), names[_i].brief);
    sg__name_drop(name);
}
END_TEST

START_TEST(name_outlives_what_the_driver_told)
{
    char raw[] = "_ZN3net5scaleEPff";
    sg__name *name = name_of(raw);

    memset(raw, 'x', sizeof raw - 1);
    ck_assert_ptr_eq(sg__name_hold(name), name);
    sg__name_drop(name);
    ck_assert_str_eq(sg__name_whole(name), "net::scale(float*, float)");
    ck_assert_ptr_eq(sg__name_whole(name), sg__name_short(name));
    sg__name_drop(name);
    sg__name_drop(NULL);
    ck_assert_ptr_null(sg__name_hold(NULL));
}
END_TEST

START_TEST(driver_that_does_not_tell_gives_no_name)
{
    ck_assert_ptr_null(name_of(NULL));
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("audit_names");
    TCase *tc = tcase_create("a: names");

    tcase_add_loop_test(tc, name_is_readable_and_fits_a_line, 0, sizeof names / sizeof *names);
    tcase_add_test(tc, name_outlives_what_the_driver_told);
    tcase_add_test(tc, driver_that_does_not_tell_gives_no_name);
    suite_add_tcase(suite, tc);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
