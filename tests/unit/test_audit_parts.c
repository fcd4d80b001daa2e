/* What the audit is quick with: numbers remembered once each, and kernels' arguments remembered from one recording to the next. */
#include "support.h"

#include "graph/layout.h"
#include "graph/values.h"

/* ---- numbers --------------------------------------------------------------------------------------------------------- */

START_TEST(each_number_has_one_entry)
{
    static uint64_t met[20000];
    static uint32_t times[20000];
    size_t n = 0;
    uint64_t random = 1;
    sg__values values;

    memset(times, 0, sizeof times);
    sg__values_init(&values);
    for (int i = 0; i < 60000; i++) {
        uint64_t value;
        sg__value *entry;
        size_t at = n;

        random = random * 6364136223846793005u + 1442695040888963407u;
        if (n > 0 && random >> 63)
            value = met[at = (random >> 20) % n];
        else
            value = _i ? random | 1 : (n + 1) << 12; /* Anything, or what differs in few bits. */
        entry = sg__values_take(&values, value);
        ck_assert_ptr_nonnull(entry);
        ck_assert_uint_eq(entry->value, value);
        ck_assert_uint_eq(entry->n, at < n ? times[at] : 0);
        entry->n++;
        if (at == n && n < 20000)
            met[n++] = value;
        times[at]++;
        if (n == 20000)
            break;
    }
    ck_assert_uint_eq(values.n, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(sg__values_find(&values, met[i])->n, times[i]);
    ck_assert_ptr_null(sg__values_find(&values, 2));
    sg__values_free(&values);
}
END_TEST

/* ---- kernels ----------------------------------------------------------------------------------------------------------- */

/* A kernel that the handle stands for at the moment. */
static struct {
    const char *name;
    size_t n, sizes[4];
} kernel;
static unsigned asked;

static CUresult tell_name(const char **name, CUfunction function)
{
    (void)function;
    *name = kernel.name;
    return CUDA_SUCCESS;
}

static CUresult tell_argument(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    (void)function;
    asked++;
    if (index >= kernel.n)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = 16 * index;
    *bytes = kernel.sizes[index];
    return CUDA_SUCCESS;
}

static const sg__driver teller = {.FuncGetName = tell_name, .FuncGetParamInfo = tell_argument};

static const sg__layout *layout_now(sg__layouts *layouts)
{
    const sg__layout *found = NULL;

    asked = 0;
    OK(sg__layout_of(&teller, layouts, (CUfunction)&kernel, &found));
    ck_assert_ptr_nonnull(found);
    ck_assert_uint_eq(found->n, kernel.n);
    for (size_t i = 0; i < kernel.n; i++)
        ck_assert_uint_eq(found->arguments[i].bytes, kernel.sizes[i]);
    ck_assert_str_eq(sg__name_raw(found->name), kernel.name);
    return found;
}

START_TEST(arguments_of_a_kernel_are_asked_once_and_then_checked)
{
    sg__layouts layouts = {0};
    const sg__layout *first;

    kernel.name = "adam";
    kernel.n = 3;
    kernel.sizes[0] = kernel.sizes[1] = kernel.sizes[2] = 8;
    first = layout_now(&layouts);
    ck_assert_uint_eq(asked, 4);
    ck_assert_ptr_eq(layout_now(&layouts), first);
    ck_assert_uint_eq(asked, 0);
    sg__layouts_turn(&layouts);
    ck_assert_ptr_eq(layout_now(&layouts), first);
    ck_assert_uint_eq(asked, 2);
    ck_assert_ptr_eq(layout_now(&layouts), first);
    ck_assert_uint_eq(asked, 0);
    kernel.n = 0;
    sg__layouts_turn(&layouts);
    first = layout_now(&layouts);
    sg__layouts_turn(&layouts);
    ck_assert_ptr_eq(layout_now(&layouts), first);
    ck_assert_uint_eq(asked, 1);
    sg__layouts_free(&layouts);
}
END_TEST

/* A module was unloaded, and another kernel has its handle. */
START_TEST(another_kernel_of_the_same_handle_is_noticed)
{
    sg__layouts layouts = {0};
    const sg__layout *first, *then;

    kernel.name = "triton_0";
    kernel.n = 2;
    kernel.sizes[0] = kernel.sizes[1] = kernel.sizes[2] = 8;
    first = layout_now(&layouts);
    sg__layouts_turn(&layouts);
    switch (_i) {
    case 0:
        kernel.n = 3; /* One argument more, */
        break;
    case 1:
        kernel.n = 1; /* or less, */
        break;
    case 2:
        kernel.sizes[1] = 4; /* or a smaller one, */
        break;
    default:
        kernel.name = "triton_1"; /* or nothing but the name. */
    }
    then = layout_now(&layouts);
    ck_assert_ptr_ne(then, first);
    /* Nodes of earlier recordings keep theirs. */
    ck_assert_uint_eq(first->n, 2);
    ck_assert_uint_eq(first->arguments[1].bytes, 8);
    ck_assert_str_eq(sg__name_raw(first->name), "triton_0");
    ck_assert_ptr_eq(layout_now(&layouts), then);
    sg__layouts_free(&layouts);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("audit_parts");
    TCase *tc = tcase_create("parts");

    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, each_number_has_one_entry, 0, 2);
    tcase_add_test(tc, arguments_of_a_kernel_are_asked_once_and_then_checked);
    tcase_add_loop_test(tc, another_kernel_of_the_same_handle_is_noticed, 0, 4);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
