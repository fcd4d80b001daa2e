/*
 * Sets that are launched as kernels: the same bytes as the calls, whatever their form; the recording stays what it was for whoever looks at it;
 * what stays a memset node, and why.
 */
#include "findings.h"

#include <unistd.h>

#include "sets.h"
#include "step_p.h"

enum { BYTES = 8192 };

/* ---- more of the driver ------------------------------------------------------------------------------------------ */

#define SET_ENTRIES(X)                                                                                                           \
    X(MemsetD16Async, 3020, (CUdeviceptr, unsigned short, size_t, CUstream))                                                     \
    X(MemsetD32Async, 3020, (CUdeviceptr, unsigned, size_t, CUstream))                                                           \
    X(MemsetD2D8Async, 3020, (CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream))                                     \
    X(MemsetD2D16Async, 3020, (CUdeviceptr, size_t, unsigned short, size_t, size_t, CUstream))                                   \
    X(MemsetD2D32Async, 3020, (CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream))                                         \
    X(GraphAddMemsetNode, 10000, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMSET_NODE_PARAMS *, CUcontext)) \
    X(GraphNodeGetType, 10000, (CUgraphNode, CUgraphNodeType *))

static struct {
#define X(name, version, signature) CUresult(*name) signature;
    SET_ENTRIES(X)
#undef X
} sets;

#define SET(call)                                                                                                                \
    do {                                                                                                                         \
        CUresult r_ = sets.call;                                                                                                 \
        ck_assert_msg(r_ == CUDA_SUCCESS, "cu%s answers %d", #call, (int)r_);                                                    \
    } while (0)

/* ---- the log ------------------------------------------------------------------------------------------------------ */

static void setup(void)
{
    reopen_listening(STEPGRAPH_LOG_INFO);
#define X(name, version, signature) *(void **)&sets.name = stepgraph_session_symbol(session, "cu" #name, version);
    SET_ENTRIES(X)
#undef X
}

#define SAID(...)                                                                                                                \
    do {                                                                                                                         \
        const char *words_[] = {__VA_ARGS__, NULL};                                                                              \
        for (unsigned i_ = 0; words_[i_] != NULL; i_++)                                                                          \
            ck_assert_msg(said(words_[i_]) > 0, "the log lacks '%s'", words_[i_]);                                               \
    } while (0)

/* ---- a step of sets ------------------------------------------------------------------------------------------------ */

static CUdeviceptr memory;
static uint64_t seed;

static void memory_make(void)
{
    memory = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, "memory"));
}

static void fill_with_noise(unsigned char *image)
{
    uint64_t noise = 77;

    random_bytes(&noise, image, BYTES);
    put_bytes(memory, image, BYTES);
}

/* One set of each form, in odd places, that overlap here and there. */
static void six_sets(void *unused)
{
    (void)unused;
    CU(MemsetD8Async(memory + 3, 0xa7, 1000, stream));
    SET(MemsetD16Async(memory + 902, 0xbeef, 333, stream));
    SET(MemsetD32Async(memory + 1204, 0x12345678, 257, stream));
    SET(MemsetD2D8Async(memory + 3001, 97, 0x5c, 41, 7, stream));
    SET(MemsetD2D16Async(memory + 4098, 130, 0x1234, 30, 9, stream));
    SET(MemsetD2D32Async(memory + 5504, 80, 0xdeadbeef, 17, 5, stream));
}

/* Sets drawn from a seed: every element size, one row and several, any alignment that the element allows. */
static void random_sets(void *unused)
{
    uint64_t s = seed;

    (void)unused;
    for (int i = 0; i < 24; i++) {
        unsigned element = 1u << unit_random(&s) % 3, value = (unsigned)unit_random(&s), rows = 1 + unit_random(&s) % 6;
        size_t width = 1 + unit_random(&s) % (unit_random(&s) % 2 ? 8 : 200);
        size_t pitch = (width + unit_random(&s) % 9) * element, reach = pitch * rows;
        CUdeviceptr at = memory + unit_random(&s) % ((BYTES - reach) / element) * element;
        if (unit_random(&s) % 2) {
            pitch = (pitch + 15) / 16 * 16; /* Rows that begin alike. */
            if (at + pitch * rows > memory + BYTES)
                continue;
        }
        if (element == 1 && rows == 1)
            CU(MemsetD8Async(at, (unsigned char)value, width, stream));
        else if (element == 1)
            SET(MemsetD2D8Async(at, pitch, (unsigned char)value, width, rows, stream));
        else if (element == 2 && rows == 1)
            SET(MemsetD16Async(at, (unsigned short)value, width, stream));
        else if (element == 2)
            SET(MemsetD2D16Async(at, pitch, (unsigned short)value, width, rows, stream));
        else if (rows == 1)
            SET(MemsetD32Async(at, value, width, stream));
        else
            SET(MemsetD2D32Async(at, pitch, value, width, rows, stream));
    }
}

static stepgraph_step_stats stats_of(const stepgraph_step *step)
{
    stepgraph_step_stats stats = STEPGRAPH_STEP_STATS_INIT;

    OK(stepgraph_step_get_stats(step, &stats));
    return stats;
}

/* What the calls make of the memory without any graph, and what `replays` replays make of it, from the same bytes. */
static void same_as_calls(stepgraph_step *step, void (*body)(void *), int replays)
{
    static unsigned char image[BYTES], wanted[BYTES], got[BYTES];

    fill_with_noise(image);
    for (int i = 0; i < replays; i++)
        body(NULL);
    OK(stepgraph_session_wait(session));
    bytes_at(memory, wanted, BYTES);
    ck_assert_msg(memcmp(wanted, image, BYTES) != 0, "the calls change nothing");
    fill_with_noise(image);
    replayed(step, replays);
    bytes_at(memory, got, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        if (got[i] != wanted[i])
            ck_abort_msg("byte %zu is %02x instead of %02x", i, got[i], wanted[i]);
}

/* Number of nodes of a type in the graph that is told. */
static size_t nodes_of_type(stepgraph_step *step, CUgraphNodeType type)
{
    CUgraphNode nodes[64];
    size_t n = 64, found = 0;

    CU(GraphGetNodes(stepgraph_step_graph(step), nodes, &n));
    for (size_t i = 0; i < n; i++) {
        CUgraphNodeType is;
        SET(GraphNodeGetType(nodes[i], &is));
        found += is == type;
    }
    return found;
}

START_TEST(sets_of_each_form_are_launched_as_kernels)
{
    stepgraph_step *step = step_make(session, "sets", 0);

    memory_make();
    record(step, six_sets, NULL);
    ck_assert_uint_eq(stats_of(step).nodes[STEPGRAPH_KIND_SET], 6);
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 6);
    same_as_calls(step, six_sets, 1);
    same_as_calls(step, six_sets, 3);
}
END_TEST

START_TEST(recording_is_told_as_it_was)
{
    stepgraph_step *step = step_make(session, "sets", 0);
    char path[] = "/tmp/stepgraph-sets-XXXXXX", text[16384];
    int file = mkstemp(path);
    ssize_t n;

    memory_make();
    record(step, six_sets, NULL);
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 6);
    ck_assert_uint_eq(nodes_of_type(step, CU_GRAPH_NODE_TYPE_MEMSET), 6);
    ck_assert_uint_eq(nodes_of_type(step, CU_GRAPH_NODE_TYPE_KERNEL), 0);
    ck_assert_uint_eq(stats_of(step).nodes[STEPGRAPH_KIND_KERNEL], 0);
    OK(stepgraph_step_draw(step, STEPGRAPH_DRAW_JSON, path));
    n = read(file, text, sizeof text - 1);
    close(file);
    unlink(path);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    ck_assert_msg(strstr(text, "\"set\"") != NULL && strstr(text, "stepgraph_set") == NULL, "a set is a set: %s", text);
}
END_TEST

START_TEST(as_recorded_launches_memset_nodes)
{
    stepgraph_step *step = step_make(session, "sets", STEPGRAPH_STEP_AS_RECORDED);

    memory_make();
    record(step, six_sets, NULL);
    ck_assert_uint_eq(stats_of(step).nodes[STEPGRAPH_KIND_SET], 6);
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 0);
    same_as_calls(step, six_sets, 2);
}
END_TEST

START_TEST(random_sets_leave_the_bytes_of_the_calls)
{
    stepgraph_step *step = step_make(session, "sets", 0);

    memory_make();
    seed = 1000 + (uint64_t)_i;
    record(step, random_sets, NULL);
    ck_assert_uint_gt(stats_of(step).sets_as_kernels, 10);
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, stats_of(step).nodes[STEPGRAPH_KIND_SET]);
    same_as_calls(step, random_sets, 1);
}
END_TEST

/* ---- order -------------------------------------------------------------------------------------------------------- */

static CUstream side;

/* Sets at the beginning, between kernels, beside them on another stream, and at the end. */
static void woven(void *user)
{
    stepgraph_step *step = user;

    CU(MemsetD8Async(memory, 0, 64, stream));
    inc(stream, memory, 1);
    SET(MemsetD32Async(memory + 4, 0x3f800000, 1, stream));
    inc(stream, memory + 4, 2);
    if (step != NULL)
        OK(stepgraph_step_fork(step, side, "side"));
    SET(MemsetD32Async(memory + 8, 0x40000000, 1, step != NULL ? side : stream));
    axpb(stream, memory + 12, memory + 4, 5);
    inc(step != NULL ? side : stream, memory + 8, 4);
    if (step != NULL)
        OK(stepgraph_step_join(step, side));
    axpb(stream, memory + 16, memory + 8, 0.5f);
    CU(MemsetD8Async(memory + 8, 0, 4, stream));
}

static void woven_calls(void *unused)
{
    (void)unused;
    woven(NULL);
}

START_TEST(sets_keep_their_place_in_the_order)
{
    stepgraph_step *step = step_make(session, "woven", 0);

    memory_make();
    side = stream_make(CU_STREAM_NON_BLOCKING);
    record(step, woven, step);
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 4);
    same_as_calls(step, woven_calls, 1);
    same_as_calls(step, woven_calls, 4);
}
END_TEST

/* More nodes before and after one set than a short list holds. */
static void wide(void *user)
{
    static CUstream more_streams[40];
    stepgraph_step *step = user;

    for (int i = 0; i < 40; i++) {
        if (step != NULL) {
            if (more_streams[i] == NULL)
                more_streams[i] = stream_make(CU_STREAM_NON_BLOCKING);
            OK(stepgraph_step_fork(step, more_streams[i], "lane"));
        }
        inc(step != NULL ? more_streams[i] : stream, memory + 4 * (CUdeviceptr)i, 1);
    }
    for (int i = 0; step != NULL && i < 40; i++)
        OK(stepgraph_step_join(step, more_streams[i]));
    CU(MemsetD8Async(memory + 80, 0, 80, stream));
    for (int i = 0; i < 40; i++) {
        if (step != NULL)
            OK(stepgraph_step_fork(step, more_streams[i], "lane"));
        inc(step != NULL ? more_streams[i] : stream, memory + 4 * (CUdeviceptr)i, 2);
    }
    for (int i = 0; step != NULL && i < 40; i++) {
        OK(stepgraph_step_join(step, more_streams[i]));
        more_streams[i] = NULL;
    }
}

static void wide_calls(void *unused)
{
    (void)unused;
    wide(NULL);
}

/* The graph that is launched has the edges of the recorded one, node for node. */
static void same_edges(stepgraph_step *step)
{
    sg__graph_edges recorded, launched;
    sg__rewrite rewrite;
    sg__graph read;

    OK(sg__enter(session));
    sg__sets_rewrite(step, &rewrite);
    ck_assert_ptr_nonnull(rewrite.graph);
    OK(sg__graph_edges_read(session->driver, &step->read, &recorded));
    OK(sg__graph_read(session->driver, rewrite.graph, NULL, NULL, NULL, &read));
    OK(sg__graph_edges_read(session->driver, &read, &launched));
    for (size_t i = 0; i < launched.n; i++) {
        launched.items[i].from = sg__rewrite_index(&rewrite, read.nodes[launched.items[i].from].handle);
        launched.items[i].to = sg__rewrite_index(&rewrite, read.nodes[launched.items[i].to].handle);
    }
    sg__graph_edges_sort(&recorded);
    sg__graph_edges_sort(&launched);
    ck_assert_uint_eq(launched.n, recorded.n);
    for (size_t i = 0; i < recorded.n; i++) {
        ck_assert_uint_eq(launched.items[i].from, recorded.items[i].from);
        ck_assert_uint_eq(launched.items[i].to, recorded.items[i].to);
    }
    sg__graph_edges_free(&recorded);
    sg__graph_edges_free(&launched);
    sg__graph_free(&read);
    sg__rewrite_close(&rewrite);
    sg__leave(session);
}

START_TEST(set_between_many_neighbours_keeps_all_of_them)
{
    stepgraph_step *step = step_make(session, "wide", 0);

    memory_make();
    record(step, wide, step);
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 1);
    same_as_calls(step, wide_calls, 1);
    same_edges(step);
}
END_TEST

/* ---- what stays --------------------------------------------------------------------------------------------------- */

START_TEST(sets_of_a_graph_that_allocates_stay)
{
    stepgraph_step *step = step_make(session, "allocates", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    CUdeviceptr p;

    memory_make();
    begin_recording(step);
    MORE(MemAllocAsync(&p, 4096, stream));
    CU(MemsetD8Async(p, 1, 64, stream));
    CU(MemsetD8Async(memory, 2, 64, stream));
    MORE(MemFreeAsync(p, stream));
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(stats_of(step).nodes[STEPGRAPH_KIND_SET], 2);
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 0);
    SAID("step 'allocates'", "2 of 2 sets", "allocates or frees memory");
    replayed(step, 1);
}
END_TEST

START_TEST(sets_in_a_child_graph_stay)
{
    stepgraph_step *step = step_make(session, "parent", 0);
    CUstreamCaptureStatus status;
    const CUgraphNode *dependencies;
    CUstream other = stream_make(CU_STREAM_NON_BLOCKING);
    CUgraph child, graph;
    cuuint64_t id;
    CUgraphNode node;
    size_t n;

    memory_make();
    begin_recording(step);
    MORE(StreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CU(MemsetD8Async(memory, 2, 64, other));
    inc(other, memory + 64, 1);
    MORE(StreamEndCapture(other, &child));
    CU(MemsetD8Async(memory + 64, 0, 64, stream));
    MORE(StreamGetCaptureInfo(stream, &status, &id, &graph, &dependencies, &n));
    MORE(GraphAddChildGraphNode(&node, graph, dependencies, n, child));
    MORE(StreamUpdateCaptureDependencies(stream, &node, 1, 1));
    MORE(GraphDestroy(child));
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(stats_of(step).nodes[STEPGRAPH_KIND_SET], 2);
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 1);
    SAID("1 of 2 sets", "in a child graph");
    replayed(step, 2);
    ck_assert_float_eq(float_at(memory + 64), 1);
}
END_TEST

START_TEST(set_of_host_memory_stays)
{
    stepgraph_step *step = step_make(session, "host", STEPGRAPH_STEP_ALLOW_HOST_MEMORY);
    unsigned char *host = page_locked(4096);

    begin_recording(step);
    CU(MemsetD8Async((CUdeviceptr)(uintptr_t)host, 7, 64, stream));
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 0);
    SAID("1 of 1 sets", "not known to be of this device and context");
    replayed(step, 1);
    ck_assert_uint_eq(host[63], 7);
}
END_TEST

START_TEST(set_of_memory_outside_the_pins_is_launched_as_a_kernel)
{
    stepgraph_step *step = step_make(session, "outside", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    unsigned char got[64];

    memory = device_make(BYTES);
    begin_recording(step);
    CU(MemsetD8Async(memory, 7, 64, stream));
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 1);
    replayed(step, 1);
    bytes_at(memory, got, sizeof got);
    ck_assert_uint_eq(got[63], 7);
}
END_TEST

/* Recorded on the session's stream, but of memory that another context of the device has. */
START_TEST(set_of_another_context_stays)
{
    stepgraph_step *step = step_make(session, "context", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    CUcontext other;
    CUdevice device;
    CUdeviceptr theirs;

    CU(DeviceGet(&device, 0));
    CU(CtxCreate(&other, 0, device));
    CU(MemAlloc(&theirs, 4096));
    CU(CtxPopCurrent(&other));
    begin_recording(step);
    CU(MemsetD8Async(theirs, 7, 64, stream));
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 0);
    SAID("1 of 1 sets", "not known to be of this device and context");
    drop_step(step);
    CU(CtxDestroy(other));
}
END_TEST

/* What no call makes, only a host that adds nodes by itself: a card sets such bytes to a mixture of the value's. */
START_TEST(set_of_a_strange_value_stays)
{
    stepgraph_step *step = step_make(session, "strange", 0);
    CUDA_MEMSET_NODE_PARAMS set = {.value = 0x12345678, .elementSize = 1, .width = 6, .height = 1};
    CUstreamCaptureStatus status;
    const CUgraphNode *dependencies;
    CUgraph graph;
    cuuint64_t id;
    CUgraphNode node;
    size_t n;

    memory_make();
    set.dst = memory;
    begin_recording(step);
    MORE(StreamGetCaptureInfo(stream, &status, &id, &graph, &dependencies, &n));
    SET(GraphAddMemsetNode(&node, graph, dependencies, n, &set, stepgraph_session_context(session)));
    MORE(StreamUpdateCaptureDependencies(stream, &node, 1, 1));
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 0);
    SAID("1 of 1 sets", "of a form that no call makes");
}
END_TEST

START_TEST(step_that_goes_is_counted_no_more)
{
    stepgraph_step *step = step_make(session, "sets", 0);

    memory_make();
    record(step, six_sets, NULL);
    OK(stepgraph_step_reset(step));
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 0);
}
END_TEST

/* ---- updates in place ----------------------------------------------------------------------------------------------- */

/* Record the step again, so that its executable is updated; as the loop does. */
static void again(stepgraph_step *step, void (*body)(void *))
{
    OK(sg__step_record_again(step));
    OK(stepgraph_step_capture(step));
    body(NULL);
    OK(stepgraph_step_end(step));
}

START_TEST(executable_is_updated_by_a_recording_that_was_written_likewise)
{
    stepgraph_step *step = step_make(session, "updated", 0);

    memory_make();
    seed = 5;
    record(step, six_sets, NULL);
    for (int i = 0; i < 3; i++) {
        again(step, six_sets);
        ck_assert_uint_eq(stats_of(step).sets_as_kernels, 6);
        same_as_calls(step, six_sets, 1);
    }
    ck_assert_uint_eq(step->updates, 3);
    ck_assert_uint_eq(step->updates_refused, 0);
    ck_assert_uint_eq(step->instantiations, 1);
}
END_TEST

/* Launched once each, so that rewriting would not pay. */
START_TEST(step_that_is_recorded_every_time_launches_what_was_recorded)
{
    stepgraph_step *step = step_make(session, "every time", 0);

    memory_make();
    record(step, six_sets, NULL);
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 6);
    step->again = true;
    for (int i = 0; i < 3; i++) {
        again(step, six_sets);
        ck_assert_uint_eq(stats_of(step).sets_as_kernels, 0);
        same_as_calls(step, six_sets, 1);
    }
    ck_assert_uint_eq(step->instantiations, 2); /* The first executable has kernels in it. */
    ck_assert_uint_eq(step->updates, 2);
    ck_assert_uint_eq(step->updates_refused, 0);
    step->again = false;
    again(step, six_sets);
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 6);
    same_as_calls(step, six_sets, 1);
    ck_assert_uint_eq(step->instantiations, 3);
    ck_assert_uint_eq(step->updates_refused, 0);
}
END_TEST

START_TEST(executable_that_is_passed_on_is_updated)
{
    stepgraph_step *first = step_make(session, "first", 0), *second = step_make(session, "second", 0);

    memory_make();
    record(first, six_sets, NULL);
    OK(stepgraph_step_prepare(second));
    sg__step_pass_executable(first, second);
    OK(stepgraph_step_capture(second));
    six_sets(NULL);
    OK(stepgraph_step_end(second));
    ck_assert_uint_eq(second->updates, 1);
    ck_assert_uint_eq(second->instantiations, 0);
    same_as_calls(second, six_sets, 1);
}
END_TEST

static CUdeviceptr copied_from;

static void set_and_copy(void *unused)
{
    (void)unused;
    CU(MemsetD8Async(memory, 1, 64, stream));
    inc(stream, memory + 64, 1);
    MORE(MemcpyAsync(memory + 128, copied_from, 64, stream));
}

START_TEST(refused_update_names_the_node_that_was_recorded)
{
    stepgraph_step *step = step_make(session, "refused", STEPGRAPH_STEP_ALLOW_HOST_MEMORY | STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    CUdeviceptr pool;

    memory_make();
    copied_from = device_make(64);
    record(step, set_and_copy, NULL);
    MORE(MemAllocAsync(&pool, 64, stream));
    OK(stepgraph_session_wait(session));
    copied_from = pool; /* Of another class of memory, which an update does not take. */
    again(step, set_and_copy);
    ck_assert_uint_eq(step->updates_refused, 1);
    ck_assert_msg(strstr(step->refusal, "(node 2, 'copy')") != NULL, "%s", step->refusal);
    MORE(MemFreeAsync(pool, stream));
}
END_TEST

/* ---- calls that fail -------------------------------------------------------------------------------------------------- */

static const char *const rewriting[] = {"cuGraphClone",
                                        "cuGraphNodeFindInClone",
                                        "cuGraphNodeGetDependencies",
                                        "cuGraphNodeGetDependentNodes",
                                        "cuGraphAddKernelNode",
                                        "cuGraphAddDependencies",
                                        "cuGraphDestroyNode",
                                        "cuGraphMemsetNodeGetParams"};
enum { REWRITING = sizeof rewriting / sizeof *rewriting };

/* Each of their calls fails once. What was recorded is launched then, and the log says so. */
START_TEST(rewriting_that_fails_leaves_what_was_recorded)
{
    stepgraph_step *step = step_make(session, "fails", 0);
    unsigned long before, calls;

    memory_make();
    begin_recording(step);
    six_sets(NULL);
    before = driver_calls(rewriting[_i]);
    OK(stepgraph_step_end(step));
    calls = driver_calls(rewriting[_i]) - before;
    ck_assert_uint_gt(calls, 0);
    for (unsigned nth = 1; nth <= calls; nth++) {
        stepgraph_status status;
        OK(stepgraph_step_reset(step));
        begin_recording(step);
        six_sets(NULL);
        forget_said();
        driver_fails(rewriting[_i], nth, CUDA_ERROR_UNKNOWN);
        status = stepgraph_step_end(step);
        no_driver_fails();
        /* Reading a set is also the audit's, which comes first and cannot do without. */
        if (status == STEPGRAPH_ERR_DRIVER && strcmp(rewriting[_i], "cuGraphMemsetNodeGetParams") == 0)
            continue;
        ck_assert_msg(status == STEPGRAPH_OK, "call %u of %s: %s", nth, rewriting[_i], last_words());
        ck_assert_uint_eq(stats_of(step).sets_as_kernels, 0);
        SAID("step 'fails' is launched as it was recorded", rewriting[_i], "999");
        same_as_calls(step, six_sets, 1);
    }
}
END_TEST

START_TEST(driver_that_does_not_clone_leaves_what_was_recorded)
{
    stepgraph_step *step = step_make(session, "fails", 0);

    memory_make();
    begin_recording(step);
    six_sets(NULL);
    driver_fails("cuGraphClone", 1, CUDA_ERROR_NOT_SUPPORTED);
    OK(stepgraph_step_end(step));
    no_driver_fails();
    ck_assert_uint_eq(stats_of(step).sets_as_kernels, 0);
    SAID("6 of 6 sets", "the driver does not clone");
    same_as_calls(step, six_sets, 1);
}
END_TEST

static TCase *case_of(Suite *suite, const char *name)
{
    TCase *made = audit_case(suite, name);

    tcase_add_checked_fixture(made, setup, NULL);
    return made;
}

static Suite *make(void)
{
    Suite *suite = suite_create("sets");
    TCase *forms = case_of(suite, "forms"), *order = case_of(suite, "order"), *stays = case_of(suite, "stays");
    TCase *updates = case_of(suite, "updates"), *fails = case_of(suite, "fails");

    tcase_add_test(forms, sets_of_each_form_are_launched_as_kernels);
    tcase_add_test(forms, recording_is_told_as_it_was);
    tcase_add_test(forms, as_recorded_launches_memset_nodes);
    tcase_add_loop_test(forms, random_sets_leave_the_bytes_of_the_calls, 0, 20);
    tcase_add_test(order, sets_keep_their_place_in_the_order);
    tcase_add_test(order, set_between_many_neighbours_keeps_all_of_them);
    tcase_add_test(stays, sets_of_a_graph_that_allocates_stay);
    tcase_add_test(stays, sets_in_a_child_graph_stay);
    tcase_add_test(stays, set_of_host_memory_stays);
    tcase_add_test(stays, set_of_memory_outside_the_pins_is_launched_as_a_kernel);
    tcase_add_test(stays, set_of_another_context_stays);
    tcase_add_test(stays, set_of_a_strange_value_stays);
    tcase_add_test(stays, step_that_goes_is_counted_no_more);
    tcase_add_test(updates, executable_is_updated_by_a_recording_that_was_written_likewise);
    tcase_add_test(updates, step_that_is_recorded_every_time_launches_what_was_recorded);
    tcase_add_test(updates, executable_that_is_passed_on_is_updated);
    tcase_add_test(updates, refused_update_names_the_node_that_was_recorded);
    add_controlled_loop_test(fails, rewriting_that_fails_leaves_what_was_recorded, 0, REWRITING);
    add_controlled_test(fails, driver_that_does_not_clone_leaves_what_was_recorded);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
