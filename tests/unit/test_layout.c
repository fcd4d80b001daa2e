/* How the driver is asked where kernels' arguments lie: the question past the last argument, which is dear, once for each C++ name in a session, and in
 * each recording for other kernels. The driver here is made up: it tells what a test has set, and counts. */
#include "support.h"

#include "graph/graph.h"

enum { MOST = 4, GONE = 99, BROKEN = 100 };

/* What a handle stands for now. */
static struct kernel {
    const char *name;
    unsigned arguments; /* GONE: its module was unloaded. BROKEN: the second question fails. */
} kernel;

static CUfunction const handle = (CUfunction)&kernel;
static unsigned asked, failed;
static sg__known_kernels known;

static CUresult tell_name(const char **name, CUfunction function)
{
    ck_assert_ptr_eq(function, handle);
    *name = kernel.name;
    return kernel.name != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult tell_argument(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    ck_assert_ptr_eq(function, handle);
    asked++;
    if (kernel.arguments == BROKEN && index > 0)
        return CUDA_ERROR_UNKNOWN;
    if (kernel.arguments == GONE || index >= kernel.arguments) {
        failed++;
        return kernel.arguments == GONE ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    }
    *offset = 8 * index;
    *bytes = 4 + index;
    return CUDA_SUCCESS;
}

static const sg__driver driver = {.FuncGetName = tell_name, .FuncGetParamInfo = tell_argument};

/* ---- host memory --------------------------------------------------------------------------------------------------- */

static int until_short; /* The request for host memory that fails. 0: none does. An assertion asks for some, too. */

static bool is_short(void)
{
    return until_short > 0 && --until_short == 0;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return is_short() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return is_short() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return is_short() ? NULL : __real_realloc(memory, bytes);
}

/* ---- recordings ---------------------------------------------------------------------------------------------------- */

/* One recording, in which the handle stands for a kernel of so many arguments: how often the driver had to fail. */
static unsigned recorded(const char *name, unsigned arguments)
{
    sg__layouts layouts = {.kernels = &known};
    const sg__layout *layout, *again;

    kernel = (struct kernel){name, arguments};
    asked = failed = 0;
    OK(sg__layout_of(&driver, &layouts, handle, &layout));
    ck_assert_int_eq(layout->known, arguments != GONE);
    ck_assert_uint_eq(layout->n, arguments != GONE ? arguments : 0);
    for (uint16_t i = 0; i < layout->n; i++) {
        ck_assert_uint_eq(layout->arguments[i].offset, 8 * i);
        ck_assert_uint_eq(layout->arguments[i].bytes, 4 + i);
    }
    ck_assert_int_eq(layout->name != NULL, name != NULL);
    if (name != NULL)
        ck_assert_str_eq(sg__name_raw(layout->name), name);
    ck_assert_uint_eq(asked, layout->n + failed);
    OK(sg__layout_of(&driver, &layouts, handle, &again)); /* Within a recording it is remembered. */
    ck_assert_ptr_eq(again, layout);
    ck_assert_uint_eq(asked, layout->n + failed);
    sg__layouts_free(&layouts);
    return failed;
}

static void forget(void)
{
    sg__kernel_names_free(&known.names);
}

START_TEST(end_of_a_cpp_kernels_arguments_is_asked_for_once)
{
    unsigned arguments = (unsigned)_i;

    ck_assert_uint_eq(recorded("_ZN3net5scaleEPff", arguments), 1);
    ck_assert_uint_eq(recorded("_ZN3net5scaleEPff", arguments), 0);
    ck_assert_uint_eq(recorded("_ZN3net5scaleEPdd", arguments), 1); /* Another kernel under the same handle. */
    ck_assert_uint_eq(recorded("_ZN3net5scaleEPff", arguments), 0);
    forget(); /* As another session. */
    ck_assert_uint_eq(recorded("_ZN3net5scaleEPff", arguments), 1);
}
END_TEST

/* Their names say nothing of what they take: a module may be compiled anew with one more. */
START_TEST(end_of_other_kernels_arguments_is_asked_for_each_time)
{
    static const char *const names[] = {"kernel", "", "_", "_kernel", "Z", NULL};

    for (unsigned arguments = 0; arguments < MOST; arguments++)
        ck_assert_uint_eq(recorded(names[_i], arguments), 1);
    for (unsigned arguments = MOST; arguments-- > 0;)
        ck_assert_uint_eq(recorded(names[_i], arguments), 1);
}
END_TEST

/* Where the driver tells fewer than are known it is believed, and asked anew from then on. */
START_TEST(driver_is_believed_about_fewer_arguments)
{
    recorded("_Z6kernelPf", 3);
    ck_assert_uint_eq(recorded("_Z6kernelPf", 2), 1);
    ck_assert_uint_eq(recorded("_Z6kernelPf", 2), 0);
    ck_assert_uint_eq(recorded("_Z6kernelPf", 0), 1);
    ck_assert_uint_eq(recorded("_Z6kernelPf", 0), 1); /* Nothing to be spared: none may also mean that nothing is known. */
    ck_assert_uint_eq(recorded("_Z6kernelPf", 3), 1);
}
END_TEST

START_TEST(kernel_whose_module_is_gone_teaches_nothing)
{
    ck_assert_uint_eq(recorded("_Z6kernelPf", GONE), 1);
    ck_assert_uint_eq(recorded("_Z6kernelPf", 2), 1);
    ck_assert_uint_eq(recorded("_Z6kernelPf", GONE), 1);
    ck_assert_uint_eq(recorded("_Z6kernelPf", 2), 0);
}
END_TEST

/* What a failed comparison has asked is asked again by the next one. */
START_TEST(question_that_failed_is_asked_again)
{
    sg__layouts layouts = {.kernels = &known};
    const sg__layout *layout;

    kernel = (struct kernel){"_Z6kernelPf", BROKEN};
    FAILS(STEPGRAPH_ERR_DRIVER, sg__layout_of(&driver, &layouts, handle, &layout), "cuFuncGetParamInfo");
    kernel.arguments = 2;
    OK(sg__layout_of(&driver, &layouts, handle, &layout));
    ck_assert(layout->known);
    ck_assert_uint_eq(layout->n, 2);
    sg__layouts_free(&layouts);
}
END_TEST

/* So it is made readable once, however often it is recorded. */
START_TEST(name_is_the_same_in_all_recordings)
{
    static const char raw[] = "_ZN3net5scaleEPff";
    sg__known_name *slot;
    sg__name *first, *second;

    kernel = (struct kernel){raw, 2};
    first = sg__kernel_names_ask(&known.names, &driver, handle, &slot);
    ck_assert_ptr_eq(slot->name, first);
    second = sg__kernel_names_ask(&known.names, &driver, handle, &slot);
    ck_assert_ptr_eq(first, second);
    forget(); /* It lives as long as somebody holds it. */
    sg__name_drop(first);
    ck_assert_str_eq(sg__name_whole(second), "net::scale(float*, float)");
    sg__name_drop(second);
}
END_TEST

/* A host that makes kernels on the fly does not fill the memory. */
START_TEST(names_are_kept_up_to_a_bound)
{
    enum { MANY = 40000 };
    sg__known_name *slot;
    unsigned kept = 0;

    for (unsigned turn = 0; turn < 2; turn++)
        for (unsigned i = 0; i < MANY; i++) {
            char raw[64];
            sg__name *name;
            snprintf(raw, sizeof raw, "_Z%ukernel%.*sPf", i, (int)(i % 20), "of a template with many");
            kernel = (struct kernel){raw, 2};
            name = sg__kernel_names_ask(&known.names, &driver, handle, &slot);
            ck_assert_str_eq(sg__name_raw(name), raw);
            kept += turn == 0 && slot != NULL;
            sg__name_drop(name);
        }
    ck_assert_uint_eq(kept, known.names.n);
    ck_assert_uint_lt(kept, MANY);
    ck_assert_uint_gt(kept, 10000);
    ck_assert_uint_eq(recorded("_Z6kernelPf", 2), 1); /* Beyond it, as before. */
    ck_assert_uint_eq(recorded("_Z6kernelPf", 2), 1);
}
END_TEST

/* A kernel of one argument, and a graph of one set. */
static CUresult tell_one(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    (void)function;
    *offset = 0;
    *bytes = 8;
    return index == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult tell_nodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    (void)graph;
    if (nodes != NULL)
        nodes[0] = (CUgraphNode)&kernel;
    *n = 1;
    return CUDA_SUCCESS;
}

static CUresult tell_type(CUgraphNode node, CUgraphNodeType *type)
{
    (void)node;
    *type = CU_GRAPH_NODE_TYPE_MEMSET;
    return CUDA_SUCCESS;
}

static CUresult tell_set(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params)
{
    (void)node;
    *params = (CUDA_MEMSET_NODE_PARAMS){.dst = 0x10000, .elementSize = 1, .width = 4, .height = 1};
    return CUDA_SUCCESS;
}

static stepgraph_status read_layout(void)
{
    static const sg__driver of_one_argument = {.FuncGetParamInfo = tell_one};
    sg__layouts layouts = {0};
    const sg__layout *layout;
    stepgraph_status status = sg__layout_of(&of_one_argument, &layouts, handle, &layout);

    sg__layouts_free(&layouts);
    return status;
}

static stepgraph_status read_graph(void)
{
    static const sg__driver of_one_set = {.GraphGetNodes = tell_nodes, .GraphNodeGetType = tell_type, .GraphMemsetNodeGetParams = tell_set};
    sg__graph graph;
    stepgraph_status status = sg__graph_read(&of_one_set, NULL, NULL, NULL, NULL, &graph);

    sg__graph_free(&graph);
    return status;
}

START_TEST(memory_that_is_short_is_told_with_its_bytes)
{
    stepgraph_status (*const reads[])(void) = {read_layout, read_graph};
    const unsigned needed[] = {3, 3};
    unsigned refused = 0;

    for (int nth = 1; nth < 9; nth++) {
        stepgraph_status status;
        until_short = nth;
        status = reads[_i]();
        until_short = 0;
        if (status == STEPGRAPH_OK)
            continue;
        refused++;
        ck_assert_int_eq(status, STEPGRAPH_ERR_MEMORY);
        ck_assert_msg(strstr(last_error().message, "out of host memory: ") != NULL && strstr(last_error().message, ": 0 bytes") == NULL, "%s",
                      last_error().message);
    }
    ck_assert_uint_eq(refused, needed[_i]);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("layout");
    TCase *tc = tcase_create("a: layouts");

    tcase_add_checked_fixture(tc, NULL, forget);
    tcase_add_loop_test(tc, end_of_a_cpp_kernels_arguments_is_asked_for_once, 1, MOST);
    tcase_add_loop_test(tc, end_of_other_kernels_arguments_is_asked_for_each_time, 0, 6);
    tcase_add_test(tc, driver_is_believed_about_fewer_arguments);
    tcase_add_test(tc, kernel_whose_module_is_gone_teaches_nothing);
    tcase_add_test(tc, question_that_failed_is_asked_again);
    tcase_add_test(tc, name_is_the_same_in_all_recordings);
    tcase_add_test(tc, names_are_kept_up_to_a_bound);
    tcase_add_loop_test(tc, memory_that_is_short_is_told_with_its_bytes, 0, 2);
    suite_add_tcase(suite, tc);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
