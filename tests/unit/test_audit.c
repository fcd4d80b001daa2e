/* What end finds in one recording: each hazard planted on purpose, and its own switch; and what replays find later. */
#include "../entry_names.h"
#include "findings.h"

static stepgraph_pin *w; /* A STATE of 4 bytes. */
static CUdeviceptr pin;

static void use_pin(void)
{
    w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "layer0.weight");
    pin = stepgraph_pin_address(w);
}

static stepgraph_step *training(void)
{
    use_pin();
    return recording("train", 0);
}

/* Let this session have seen the memory: only then can it tell later that it is gone. */
static void seen(CUdeviceptr memory)
{
    stepgraph_step *step = recording("earlier", STEPGRAPH_STEP_ALLOW_UNREGISTERED);

    inc(stream, memory, 1);
    ready(step);
    drop_step(step);
}

/* ---- memory that no pin covers --------------------------------------------------------------------------------------- */

START_TEST(k03_memory_without_a_pin_is_named_by_node_argument_and_kernel)
{
    CUdeviceptr buffer = device_make(4096);
    stepgraph_step *step = training();
    stepgraph_audit *report;
    stepgraph_finding f;

    inc(stream, pin, 1);
    axpb(stream, pin, buffer, 2);
    report = refused(step);
    HOLDS(report, 1, 1);
    f = FOUND(report, UNREGISTERED, 1, "axpb", 1, 0, "stepgraph_pin_create", "node 1", "axpb", "arg 1 +0",
              "4096 bytes that no pin covers");
    ck_assert_uint_eq(f.before, buffer);
    ck_assert_uint_eq(f.after, 0);
    ck_assert_uint_eq(f.bytes, 8);
    ck_assert_str_eq(f.stage, "");
    ck_assert_ptr_nonnull(strstr(f.advice, "STEPGRAPH_STEP_ALLOW_UNREGISTERED"));
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "step 'train' cannot be replayed: 1 fault"));
    ck_assert_uint_eq(summary_of(report).nodes, 2);
    ck_assert_uint_eq(summary_of(report).kernels, 2);
    ck_assert_uint_eq(summary_of(report).addresses, 3);
    ck_assert_uint_eq(summary_of(report).in_pins, 2);
}
END_TEST

START_TEST(k03_gradient_without_a_pin_is_named)
{
    CUdeviceptr gradient = device_make(4);
    stepgraph_step *step = training();
    stepgraph_audit *report;

    OK(stepgraph_step_mark(step, "backward"));
    inc(stream, gradient, 1);
    OK(stepgraph_step_mark(step, "optimizer"));
    adam(pin, gradient, 0.1f, 1, 1);
    report = refused(step);
    HOLDS(report, 2, 2);
    ck_assert_str_eq(FOUND(report, UNREGISTERED, 0, "inc", 0, 0, "pin it", "inc", "arg 0").stage, "backward");
    ck_assert_str_eq(FOUND(report, UNREGISTERED, 1, "adam", 1, 0, "pin it", "adam", "arg 1").stage, "optimizer");
}
END_TEST

START_TEST(words_of_a_refusal_name_every_fault_of_a_few)
{
    CUdeviceptr a = device_make(4), b = device_make(8);
    stepgraph_step *step = recording("train", 0);

    axpb(stream, a, b, 1);
    inc(stream, b, 1);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "'train'", "3 faults", "node 0  axpb  arg 0 +0",
          "node 0  axpb  arg 1 +0", "node 1  inc  arg 0 +0", "pin it");
}
END_TEST

START_TEST(pointer_into_the_middle_of_memory_is_found)
{
    CUdeviceptr buffer = device_make(4096);
    stepgraph_step *step = recording("train", 0);

    inc(stream, buffer + 1024, 1);
    ck_assert_uint_eq(FOUND(refused(step), UNREGISTERED, 0, "inc", 0, 0, "pin it", "4096 bytes").before, buffer + 1024);
}
END_TEST

START_TEST(pointers_inside_a_struct_are_named_by_their_byte)
{
    CUdeviceptr buffer = device_make(64);
    struct Inner in = {.n = 3};
    struct Views views = {.n = 1};
    int k = 1;
    char c = 2;
    stepgraph_step *step;
    stepgraph_audit *report;

    use_pin();
    in.p = pin;
    in.tail[0] = pin;
    in.tail[1] = buffer;
    views.out = views.in = pin;
    views.bias = buffer + 4;
    step = recording("train", 0);
    launch(stream, made_for.inner, 1, (void *[]){&in, &pin, &k, &c, &pin});
    launch(stream, made_for.views, 1, (void *[]){&views});
    report = refused(step);
    HOLDS(report, 2, 2);
    ck_assert_uint_eq(FOUND(report, UNREGISTERED, 0, "inner", 0, 24, "pin it", "arg 0 +24").before, buffer);
    ck_assert_uint_eq(FOUND(report, UNREGISTERED, 1, "views", 0, 16, "pin it", "arg 0 +16").before, buffer + 4);
}
END_TEST

/* The scan goes by words of 8 bytes, so what a packed struct holds elsewhere is not seen. Two recordings show its bytes when they
 * move. */
START_TEST(pointer_in_a_packed_struct_is_not_seen)
{
    struct Packed in = {.tag = 1, .s = 2};
    stepgraph_step *step;

    use_pin();
    in.a = in.b = device_make(64);
    step = recording("train", 0);
    launch(stream, made_for.packed, 1, (void *[]){&in, &pin});
    CLEAN(ready(step));
}
END_TEST

/* On request it goes byte by byte. */
START_TEST(pointers_in_a_packed_struct_are_found_byte_by_byte)
{
    struct Packed in = {.tag = 1, .s = 2};
    stepgraph_step *step;
    stepgraph_audit *report;
    CUdeviceptr memory;

    use_pin();
    memory = device_make(64);
    in.a = memory;
    in.b = memory + 4;
    step = recording("train", STEPGRAPH_STEP_SCAN_BYTES);
    launch(stream, made_for.packed, 1, (void *[]){&in, &pin});
    report = refused(step);
    HOLDS(report, 2, 2);
    FOUND(report, UNREGISTERED, 0, "packed", 0, 4, "pin it", "arg 0 +4", "64 bytes that no pin covers");
    FOUND(report, UNREGISTERED, 0, "packed", 0, 14, "pin it", "arg 0 +14", "+4 in 64 bytes that no pin covers");

    /* What lies in a pin is used by the graph, and the pin stays. */
    in.a = in.b = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 64, "moments"));
    step = recording("train", STEPGRAPH_STEP_SCAN_BYTES);
    launch(stream, made_for.packed, 1, (void *[]){&in, &pin});
    report = ready(step);
    CLEAN(report);
    ck_assert_uint_eq(summary_of(report).in_pins, 3);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_destroy(stepgraph_session_pin(session, "moments")), "moments");

    /* Freed memory that was met before is known there too. */
    in.a = pin;
    in.b = memory;
    seen(memory);
    device_drop(memory);
    step = recording("train", STEPGRAPH_STEP_SCAN_BYTES);
    launch(stream, made_for.packed, 1, (void *[]){&in, &pin});
    report = refused(step);
    HOLDS(report, 1, 1);
    FOUND(report, FREED, 0, "packed", 0, 14, "keep", "64 bytes stood there once");
}
END_TEST

/* Nothing can stand there. */
START_TEST(odd_numbers_in_a_packed_struct_are_no_addresses)
{
    struct Packed in = {.tag = 1, .s = 2};
    stepgraph_step *step;

    use_pin();
    in.a = device_make(64) + 2;
    in.b = in.a + 1;
    step = recording("train", STEPGRAPH_STEP_SCAN_BYTES);
    launch(stream, made_for.packed, 1, (void *[]){&in, &pin});
    CLEAN(ready(step));
}
END_TEST

START_TEST(pointers_through_extra_are_found)
{
    struct {
        struct Inner in;
        CUdeviceptr out;
        int k;
        char c;
        CUdeviceptr last;
    } packed = {.in.n = 1};
    size_t bytes = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CUdeviceptr buffer = device_make(64);
    stepgraph_step *step;
    stepgraph_audit *report;

    use_pin();
    packed.in.p = packed.out = pin;
    packed.in.tail[2] = buffer;
    packed.last = buffer + 8;
    step = recording("train", 0);
    CU(LaunchKernel(made_for.inner, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
    report = refused(step);
    HOLDS(report, 2, 2);
    ck_assert_uint_eq(FOUND(report, UNREGISTERED, 0, "inner", 0, 32, "pin it", "arg 0 +32").before, buffer);
    ck_assert_uint_eq(FOUND(report, UNREGISTERED, 0, "inner", 4, 0, "pin it", "arg 4 +0").before, buffer + 8);
}
END_TEST

/* 32 of the 40 bytes of the first argument, and none of the others. */
START_TEST(pointers_in_an_argument_that_is_passed_in_part_are_found)
{
    struct Inner in = {.n = 1};
    size_t bytes = 32;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &in, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CUdeviceptr buffers[2] = {device_make(64), device_make(64)};
    stepgraph_step *steps[2];
    stepgraph_audit *report = NULL;

    use_pin();
    in.p = pin;
    for (int i = 0; i < 2; i++) {
        in.tail[1] = buffers[i];
        steps[i] = recording(i == 0 ? "first" : "second", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
        CU(LaunchKernel(made_for.inner, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
        ck_assert_uint_eq(NOTED(ready(steps[i]), UNREGISTERED, 0, "inner", 0, 24, "pin it", "arg 0 +24").before, buffers[i]);
    }
    OK(stepgraph_audit_compare(steps[0], steps[1], NULL, &report));
    ck_assert_uint_eq(FOUND(report, MOVED_POINTER, 0, "inner", 0, 24, "pin it", "arg 0 +24").after, buffers[1]);
    stepgraph_audit_destroy(report);
}
END_TEST

/* A graph of its own, added to the one that is being recorded. */
static void add_child(CUdeviceptr p)
{
    CUstream other = stream_make(CU_STREAM_NON_BLOCKING);
    CUstreamCaptureStatus status;
    const CUgraphNode *dependencies;
    CUgraphNode node;
    CUgraph child, graph;
    size_t n;

    MORE(StreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    setv(other, p, 1);
    inc(other, p, 2);
    MORE(StreamEndCapture(other, &child));
    MORE(StreamGetCaptureInfo(stream, &status, NULL, &graph, &dependencies, &n));
    MORE(GraphAddChildGraphNode(&node, graph, dependencies, n, child));
    MORE(StreamUpdateCaptureDependencies(stream, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    MORE(GraphDestroy(child));
}

START_TEST(pointers_in_a_child_graph_are_found)
{
    CUdeviceptr buffer = device_make(64);
    stepgraph_step *step = training();
    stepgraph_audit *report;

    inc(stream, pin, 1);
    OK(stepgraph_step_mark(step, "nested"));
    add_child(buffer);
    OK(stepgraph_step_mark(step, "after"));
    inc(stream, pin, 1);
    report = refused(step);
    HOLDS(report, 2, 2);
    ck_assert_str_eq(FOUND(report, UNREGISTERED, 2, "setv", 0, 0, "pin it", "node 2", "setv").stage, "nested");
    ck_assert_str_eq(FOUND(report, UNREGISTERED, 3, "inc", 0, 0, "pin it", "node 3", "inc").stage, "nested");
    ck_assert_uint_eq(summary_of(report).nodes, 5);
    ck_assert_uint_eq(summary_of(report).kernels, 4);
}
END_TEST

START_TEST(child_graph_over_pins_is_replayed)
{
    stepgraph_step *step = training();

    add_child(pin);
    inc(stream, pin, 4);
    CLEAN(ready(step));
    for (int i = 0; i < 3; i++)
        OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(w), 7);
}
END_TEST

START_TEST(copy_and_set_that_reach_beyond_a_pin_are_found)
{
    CUdeviceptr memory = device_make(64);
    stepgraph_step *step;
    stepgraph_audit *report;

    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, 16, "first");
    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory + 16, 16, "second");
    step = recording("train", 0);
    CU(MemsetD8Async(memory, 1, 16, stream));
    CU(MemsetD8Async(memory + 8, 2, 24, stream)); /* Into the pin that follows without a gap. */
    CU(MemsetD8Async(memory + 8, 3, 28, stream));
    CU(MemcpyDtoDAsync(memory, memory + 20, 16, stream));
    report = refused(step);
    HOLDS(report, 2, 2);
    ck_assert_uint_eq(FOUND(report, UNREGISTERED, 2, "set", NOWHERE, 0, "pin it", "destination", "28 bytes",
                            "begins in pin 'first'", "4 bytes beyond")
                          .before,
                      memory + 8);
    FOUND(report, UNREGISTERED, 3, "copy", NOWHERE, 0, "pin it", "source", "16 bytes", "begins in pin 'second'",
          "4 bytes beyond");
}
END_TEST

/* Row by row and plane by plane. */
START_TEST(copy_of_planes_that_reaches_beyond_a_pin_is_found)
{
    enum { WIDTH = 16, PITCH = 64, ROWS = 4, PLANES = 3 };
    const uint64_t reach = (PLANES - 1) * ROWS * PITCH + (ROWS - 1) * PITCH + WIDTH, beyond = _i == 0 ? 0 : 4;
    CUdeviceptr memory = device_make(2 * PLANES * ROWS * PITCH), to = memory + PLANES * ROWS * PITCH;
    CUDA_MEMCPY3D x = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .srcPitch = PITCH, .srcHeight = ROWS,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to, .dstPitch = PITCH, .dstHeight = ROWS,
                       .WidthInBytes = WIDTH, .Height = ROWS, .Depth = PLANES};
    CUresult (*copy)(const CUDA_MEMCPY3D *, CUstream);
    stepgraph_step *step;
    char words[32];

    *(void **)&copy = stepgraph_session_symbol(session, "cuMemcpy3DAsync", 3020);
    ck_assert(copy != NULL);
    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, reach - beyond, "from");
    pin_adopt(session, STEPGRAPH_ROLE_STATE, to, reach, "to");
    step = recording("train", 0);
    ck_assert_int_eq(copy(&x, stream), CUDA_SUCCESS);
    if (_i == 0) {
        CLEAN(ready(step));
        return;
    }
    snprintf(words, sizeof words, "%llu bytes beyond", (unsigned long long)beyond);
    FOUND(refused(step), UNREGISTERED, 0, "copy", NOWHERE, 0, "pin it", "source", "begins in pin 'from'", words);
}
END_TEST

/* Columns of a matrix of which the pins hold some rows each: what lies between the pins is touched by no row, or by a byte of one. */
START_TEST(rows_of_a_copy_may_lie_in_several_pins)
{
    enum { WIDTH = 16, PITCH = 64, ROWS = 2, PLANE = 3, PLANES = 2 };
    static const struct { uint64_t first, second; } cases[] = {
        { WIDTH, PITCH },                                         /* The second begins with the second row, */
        { WIDTH + 8, PITCH - 8 },                                 /* or before it. */
        { PITCH + WIDTH, PLANE * PITCH },                         /* With the second plane. */
        { PITCH + WIDTH, 2 * PITCH - 4 },                         /* In the padding of the first. */
        { WIDTH - 4, PITCH }, { WIDTH, PITCH + 4 },               /* A row is not whole, at its end or at its start. */
        { PITCH + WIDTH - 4, PLANE * PITCH }, { PITCH + WIDTH, PLANE * PITCH + 4 },
        { PITCH, PLANE * PITCH },                                 /* A whole row is in neither. */
    };
    const uint64_t reach = PLANE * PITCH + PITCH + WIDTH;
    CUdeviceptr memory = device_make(2 * PLANES * PLANE * PITCH), to = memory + PLANES * PLANE * PITCH;
    CUDA_MEMCPY3D x = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .srcPitch = PITCH, .srcHeight = PLANE,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to, .dstPitch = PITCH, .dstHeight = PLANE,
                        .WidthInBytes = WIDTH, .Height = ROWS, .Depth = PLANES };
    CUresult (*copy)(const CUDA_MEMCPY3D *, CUstream);
    stepgraph_step *step;

    *(void **)&copy = stepgraph_session_symbol(session, "cuMemcpy3DAsync", 3020);
    ck_assert(copy != NULL);
    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, cases[_i].first, "first");
    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory + cases[_i].second, reach - cases[_i].second, "second");
    pin_adopt(session, STEPGRAPH_ROLE_STATE, to, reach, "to");
    step = recording("train", 0);
    ck_assert_int_eq(copy(&x, stream), CUDA_SUCCESS);
    if (_i < 4)
        CLEAN(ready(step));
    else
        FOUND(refused(step), UNREGISTERED, 0, "copy", NOWHERE, 0, "pin it", "source", "begins in pin 'first'", "bytes beyond");
}
END_TEST

/* The second one is reached only from the first. */
START_TEST(pin_that_a_copy_reaches_from_its_neighbour_stays)
{
    CUdeviceptr memory = device_make(64);
    stepgraph_pin *second;
    stepgraph_step *step;

    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, 16, "first");
    second = pin_adopt(session, STEPGRAPH_ROLE_STATE, memory + 16, 16, "second");
    step = recording("train", 0);
    CU(MemsetD8Async(memory, 1, 32, stream));
    CLEAN(ready(step));
    ck_assert_uint_eq(step_stats(step).pins_used, 2);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_destroy(second), "second", "train");
}
END_TEST

START_TEST(pin_between_the_rows_of_a_set_is_not_used)
{
    enum { WIDTH = 16, PITCH = 64 };
    CUresult (*set)(CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream);
    CUdeviceptr memory = device_make(2 * PITCH);
    stepgraph_pin *between;
    stepgraph_step *step;

    *(void **)&set = stepgraph_session_symbol(session, "cuMemsetD2D8Async", 3020);
    ck_assert(set != NULL);
    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, WIDTH, "first");
    between = pin_adopt(session, STEPGRAPH_ROLE_FEED, memory + WIDTH, PITCH - WIDTH, "between");
    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory + PITCH, WIDTH, "second");
    step = recording("train", STEPGRAPH_STEP_STRICT_FEEDS);
    ck_assert_int_eq(set(memory, PITCH, 1, WIDTH, 2, stream), CUDA_SUCCESS);
    CLEAN(ready(step));
    ck_assert_uint_eq(step_stats(step).pins_used, 2);
    OK(stepgraph_step_replay(step)); /* Nobody asks for that feed. */
    drop_pin(between);
}
END_TEST

START_TEST(names_of_cpp_kernels_are_readable)
{
    CUdeviceptr buffer = device_make(4);
    stepgraph_step *step = recording("train", 0);

    scale(buffer, 2);
    FOUND(refused(step), UNREGISTERED, 0, "net::scale(float*, float)", 0, 0, "pin it", "net::scale(float*, float)");
}
END_TEST

/* ---- freed ----------------------------------------------------------------------------------------------------------- */

START_TEST(k05_memory_freed_before_end_is_named)
{
    CUdeviceptr buffer = device_make(65536);
    stepgraph_step *step;
    stepgraph_audit *report;

    use_pin();
    seen(buffer);
    step = recording("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    axpb(stream, pin, buffer, 1);
    free_elsewhere(buffer);
    report = refused(step);
    HOLDS(report, 1, 1);
    ck_assert_uint_eq(
        FOUND(report, FREED, 0, "axpb", 1, 0, "keep the memory allocated", "freed", "65536 bytes stood there").before, buffer);
}
END_TEST

/* Nobody can tell the address of memory that is gone from a number, unless it was met before. */
START_TEST(memory_freed_before_anybody_met_it_is_not_seen)
{
    CUdeviceptr buffer = device_make(65536);
    stepgraph_step *step = training();

    axpb(stream, pin, buffer, 1);
    free_elsewhere(buffer);
    CLEAN(ready(step));
}
END_TEST

/* A set or a copy between device memory says of its operands what they are. */
START_TEST(freed_operands_of_sets_and_copies_are_named_without_having_been_met)
{
    CUdeviceptr a = device_make(65536), b = device_make(65536);
    stepgraph_step *step;
    stepgraph_audit *report;

    use_pin();
    step = recording("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED | STEPGRAPH_STEP_ALLOW_HOST_MEMORY);
    CU(MemsetD8Async(a, 1, 16, stream));
    CU(MemcpyDtoDAsync(pin, b, 4, stream));
    free_elsewhere(a);
    free_elsewhere(b);
    report = refused(step);
    HOLDS(report, 2, 2);
    FOUND(report, FREED, 0, "set", NOWHERE, 0, "keep the memory allocated", "destination", "freed");
    FOUND(report, FREED, 1, "copy", NOWHERE, 0, "keep the memory allocated", "source", "freed");
}
END_TEST

START_TEST(adopted_pin_freed_while_recording_is_named)
{
    CUdeviceptr memory = device_make(65536);
    stepgraph_step *step;
    stepgraph_audit *report;

    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, 65536, "moments");
    step = recording("train", 0);
    launch(stream, kernels.nop, 1, NULL);
    inc(stream, memory, 1);
    free_elsewhere(memory);
    report = refused(step);
    HOLDS(report, 1, 1);
    ck_assert_uint_eq(FOUND(report, FREED, 1, "inc", 0, 0, "keep the memory allocated", "moments", "freed").before, memory);
}
END_TEST

START_TEST(adopted_pin_replaced_while_recording_is_named)
{
    CUdeviceptr memory = device_make(65536);
    stepgraph_step *step;
    stepgraph_audit *report;

    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, 4, "moments");
    OK(stepgraph_step_prepare(step = step_make(session, "train", 0)));
    device_drop(memory);
    if (!take_again(memory, 65536, "adopted_pin_replaced_while_recording_is_named"))
        return;
    OK(stepgraph_step_capture(step));
    CU(MemsetD8Async(memory, 0, 4, stream));
    report = refused(step);
    HOLDS(report, 1, 1);
    FOUND(report, REPLACED, 0, "set", NOWHERE, 0, "keep the memory allocated", "moments", "given out again");
}
END_TEST

/* What the library allocates for a recording may come to stand where the host had something. */
START_TEST(address_that_the_library_was_given_since_is_found)
{
    CUdeviceptr buffer = device_make(4096); /* More than a list of commits takes, and less than would go elsewhere. */
    stepgraph_step *step;

    use_pin();
    seen(buffer);
    step = step_make(session, "train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    device_drop(buffer);
    begin_recording(step);
    axpb(stream, pin, buffer, 1);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "axpb", "arg 1", "freed");
}
END_TEST

/* ---- freed later ------------------------------------------------------------------------------------------------------ */

/* A step that reads `buffer` and can be replayed. */
static stepgraph_step *reading(CUdeviceptr buffer, uint32_t liveness_every)
{
    stepgraph_step *step;

    use_pin();
    step = recording_checked("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED, liveness_every);
    launch(stream, kernels.nop, 1, NULL);
    axpb(stream, pin, buffer, 1);
    HOLDS(ready(step), 0, 1);
    return step;
}

START_TEST(k05_memory_freed_after_end_is_caught_before_the_next_replay)
{
    CUdeviceptr buffer = device_make(65536);
    stepgraph_step *step = reading(buffer, 1);

    replayed(step, 3);
    device_drop(buffer);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "'train'", "node 1", "axpb", "65536 bytes", "freed",
          "keep them allocated");
    STATE_IS(step, STEPGRAPH_STEP_FAILED);
    ck_assert_uint_eq(step_stats(step).replays, 3);
}
END_TEST

START_TEST(k05_memory_freed_and_given_out_again_is_caught_before_the_next_replay)
{
    CUdeviceptr buffer = device_make(65536);
    stepgraph_step *step = reading(buffer, 1);

    replayed(step, 1);
    device_drop(buffer);
    if (!take_again(buffer, 65536, "k05_memory_freed_and_given_out_again_is_caught_before_the_next_replay"))
        return;
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "node 1", "axpb", "given out again", "buffer id");
    ck_assert_uint_eq(step_stats(step).replays, 1);
}
END_TEST

/* By default before replays 0, 64, 128, ... */
START_TEST(memory_given_out_again_is_caught_at_the_cadence)
{
    CUdeviceptr buffer = device_make(65536);
    stepgraph_step *step = reading(buffer, 0);

    replayed(step, 1);
    device_drop(buffer);
    if (!take_again(buffer, 65536, "memory_given_out_again_is_caught_at_the_cadence"))
        return;
    for (int i = 1; i < 64; i++)
        OK(stepgraph_step_replay(step));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "node 1", "axpb", "given out again");
    ck_assert_uint_eq(step_stats(step).replays, 64);
}
END_TEST

START_TEST(k05_workspace_that_grew_is_caught)
{
    CUdeviceptr workspace = device_make(65536);
    stepgraph_step *step = reading(workspace, 1);

    replayed(step, 1);
    device_drop(workspace);
    device_make(1 << 20);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "axpb", "65536 bytes", "freed");
}
END_TEST

START_TEST(memory_that_lives_is_looked_at_and_passes)
{
    CUdeviceptr buffer = device_make(65536);
    stepgraph_step *step = reading(buffer, 1);

    put_float(buffer, 4);
    for (int i = 0; i < 130; i++)
        OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(w), 5);
}
END_TEST

/* The new values that a commit of many reads stand in a list that no scan of arguments sees. */
START_TEST(sources_of_commits_are_examined_and_watched)
{
    stepgraph_pin *pins[2] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b")};
    stepgraph_pin *scratch = pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4, "pool");
    CUdeviceptr fresh = device_make(65536);
    uint64_t from[2] = {stepgraph_pin_address(scratch), fresh};
    stepgraph_step *step = recording("train", 0);
    stepgraph_audit *report;

    OK(stepgraph_pin_commit_many(session, 2, pins, from));
    report = refused(step);
    HOLDS(report, 1, 1);
    ck_assert_uint_eq(FOUND(report, UNREGISTERED, NOWHERE, "", NOWHERE, 0, "pin it", "commit of pin 'b'", "no pin covers").before,
                      fresh);

    step = recording_checked("again", STEPGRAPH_STEP_ALLOW_UNREGISTERED, 1);
    OK(stepgraph_pin_commit_many(session, 2, pins, from));
    ready(step);
    replayed(step, 1);
    device_drop(fresh);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "commit", "freed");
}
END_TEST

/* ---- host memory ------------------------------------------------------------------------------------------------------ */

static char pageable[4096];

START_TEST(k06_batch_from_pageable_memory_is_named)
{
    stepgraph_step *step = training();
    stepgraph_audit *report;

    CU(MemcpyHtoDAsync(pin, pageable, 4, stream));
    report = refused(step);
    HOLDS(report, 1, 1);
    ck_assert_uint_eq(
        FOUND(report, PAGEABLE, 0, "copy", NOWHERE, 0, "stepgraph_pin_feed", "source", "pageable host memory", "at every replay")
            .before,
        (uintptr_t)pageable);
}
END_TEST

START_TEST(result_into_pageable_memory_is_named)
{
    stepgraph_step *step = training();

    MORE(MemcpyDtoHAsync(pageable, pin, 4, stream));
    FOUND(refused(step), PAGEABLE, 0, "copy", NOWHERE, 0, "stepgraph_pin_read", "destination", "pageable host memory", "launch waits");
}
END_TEST

/* Recorded without the driver saying which side is the host's. */
START_TEST(copy_of_unsaid_direction_is_looked_up)
{
    void *locked = page_locked(64);
    CUdeviceptr buffer = device_make(64);
    stepgraph_step *step = training();
    stepgraph_audit *report;

    MORE(MemcpyAsync(pin, (CUdeviceptr)(uintptr_t)pageable, 4, stream));
    MORE(MemcpyAsync((CUdeviceptr)(uintptr_t)locked, pin, 4, stream));
    MORE(MemcpyAsync(pin, buffer, 4, stream));
    report = refused(step);
    HOLDS(report, 3, 3);
    FOUND(report, PAGEABLE, 0, "copy", NOWHERE, 0, "FEED", "source");
    FOUND(report, PAGE_LOCKED, 1, "copy", NOWHERE, 0, "FEED", "destination");
    FOUND(report, UNREGISTERED, 2, "copy", NOWHERE, 0, "pin it", "source");
}
END_TEST

START_TEST(k06_batch_from_page_locked_memory_is_named)
{
    void *batch = page_locked(4096);
    stepgraph_step *step = training();
    stepgraph_audit *report;

    CU(MemcpyHtoDAsync(pin, batch, 4, stream));
    report = refused(step);
    HOLDS(report, 1, 1);
    ck_assert_uint_eq(
        FOUND(report, PAGE_LOCKED, 0, "copy", NOWHERE, 0, "stepgraph_pin_feed", "source", "4096 bytes of page-locked host memory")
            .before,
        (uintptr_t)batch);
}
END_TEST

START_TEST(kernel_that_reads_page_locked_memory_is_named)
{
    void *batch = page_locked(4096);
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)batch;
    stepgraph_step *step = training();

    copyf(stream, pin, address);
    FOUND(refused(step), PAGE_LOCKED, 0, "copyf", 1, 0, "STEPGRAPH_STEP_ALLOW_HOST_MEMORY", "page-locked host memory");
}
END_TEST

/* A copy from page-locked to adopted memory, that can be replayed; looked at before every launch, whatever the cadence. */
static stepgraph_step *copying_behind(void (*kernel)(CUdeviceptr), void *from, CUdeviceptr to)
{
    stepgraph_step *step = recording("train", STEPGRAPH_STEP_ALLOW_HOST_MEMORY | STEPGRAPH_STEP_ALLOW_UNREGISTERED);

    kernel(to);
    CU(MemcpyHtoDAsync(to, from, 4, stream));
    ck_assert_uint_eq(summary_of(ready(step)).faults, 0);
    return step;
}

static void nothing(CUdeviceptr p)
{
    (void)p;
    launch(stream, kernels.nop, 1, NULL);
}

static void same_memory(CUdeviceptr p)
{
    inc(stream, p, 1);
}

static stepgraph_step *copying(void *from, CUdeviceptr to)
{
    return copying_behind(nothing, from, to);
}

START_TEST(recycled_page_locked_memory_is_read_anew_where_allowed)
{
    float *batch = page_locked(4096);
    stepgraph_step *step;

    use_pin();
    step = copying(batch, pin);
    for (int i = 1; i < 4; i++) {
        *batch = (float)i;
        OK(stepgraph_step_replay(step));
        ck_assert_float_eq(pin_float(w), (float)i);
    }
}
END_TEST

START_TEST(k06_freed_page_locked_memory_is_caught_before_the_very_next_replay)
{
    void *batch = page_locked(4096);
    stepgraph_step *step;

    use_pin();
    step = copying(batch, pin);
    replayed(step, 3);
    page_locked_drop(batch);
    if (_i == 1 && page_locked(4096) != batch) {
        unit_skip("k06_freed_page_locked_memory_is_caught_before_the_very_next_replay",
                  "this driver does not give an address out again");
        return;
    }
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "node 1", "copy", "4096 bytes",
          _i == 1 ? "given out again" : "freed since");
    ck_assert_uint_eq(step_stats(step).replays, 3);
}
END_TEST

START_TEST(freed_device_side_of_a_copy_is_caught_before_the_very_next_replay)
{
    void *batch = page_locked(4096);
    CUdeviceptr to = device_make(65536);
    stepgraph_step *step = copying_behind(_i < 2 ? nothing : same_memory, batch, to); /* Or known already as what a kernel uses. */

    replayed(step, 3);
    device_drop(to);
    if (_i == 1 && !take_again(to, 65536, "freed_device_side_of_a_copy_is_caught_before_the_very_next_replay"))
        return;
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), _i < 2 ? "node 1" : "node 0", _i < 2 ? "copy" : "inc", "65536 bytes",
          _i == 1 ? "given out again" : "freed since");
    ck_assert_uint_eq(step_stats(step).replays, 3);
}
END_TEST

/* The other way round: the device side stands first. */
START_TEST(freed_source_of_a_copy_to_the_host_is_caught_before_the_very_next_replay)
{
    void *batch = page_locked(4096);
    CUdeviceptr from = device_make(65536);
    stepgraph_step *step = recording("train", STEPGRAPH_STEP_ALLOW_HOST_MEMORY | STEPGRAPH_STEP_ALLOW_UNREGISTERED);

    MORE(MemcpyDtoHAsync(batch, from, 4, stream));
    ready(step);
    replayed(step, 3);
    device_drop(from);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "node 0", "copy", "65536 bytes", "freed since");
    ck_assert_uint_eq(step_stats(step).replays, 3);
}
END_TEST

/* The device side is a pin that the host owns. */
START_TEST(freed_pin_of_a_host_copy_is_caught_before_the_very_next_replay)
{
    void *batch = page_locked(4096);
    CUdeviceptr to = device_make(65536);
    stepgraph_step *step;

    pin_adopt(session, STEPGRAPH_ROLE_SCRATCH, to, 65536, "staging");
    step = copying(batch, to);
    replayed(step, 3);
    device_drop(to);
    if (_i == 1 && !take_again(to, 65536, "freed_pin_of_a_host_copy_is_caught_before_the_very_next_replay"))
        return;
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "staging", _i == 1 ? "given out again" : "freed");
    ck_assert_uint_eq(step_stats(step).replays, 3);
}
END_TEST

/* How often the driver was asked about an address. */
static unsigned long questions(void)
{
    return driver_calls("cuPointerGetAttribute") + driver_calls("cuPointerGetAttributes");
}

/* Copies without a host side do not crash a launch, and there may be thousands: they wait for the cadence. */
START_TEST(copies_between_device_memory_are_looked_at_at_the_cadence_only)
{
    CUdeviceptr buffer = device_make(65536), workspace = 0;
    stepgraph_step *step;
    unsigned long asked;

    use_pin();
    step = recording("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    if (_i == 0) {
        CU(MemcpyDtoDAsync(pin, buffer, 4, stream));
    } else { /* The driver is not told where, and one side is memory of the graph's own. */
        MORE(MemAllocAsync(&workspace, 65536, stream));
        setv(stream, workspace, 1);
        MORE(MemcpyAsync(buffer, workspace, 4, stream));
        MORE(MemFreeAsync(workspace, stream));
    }
    ready(step);
    OK(stepgraph_step_replay(step));
    asked = questions();
    for (int i = 1; i < 64; i++)
        OK(stepgraph_step_replay(step));
    ck_assert_uint_eq(questions(), asked);
    OK(stepgraph_step_replay(step));
    ck_assert_uint_gt(questions(), asked);
}
END_TEST

/* ---- kinds of nodes --------------------------------------------------------------------------------------------------- */

static void no_work(void *unused)
{
    (void)unused;
}

START_TEST(k08_empty_recording_is_named)
{
    FOUND(refused(recording("train", 0)), EMPTY, NOWHERE, "", NOWHERE, 0, "stepgraph_session_stream()", "nothing was recorded");
}
END_TEST

START_TEST(k24_host_function_is_named)
{
    stepgraph_step *step = training();
    stepgraph_audit *report;

    inc(stream, pin, 1);
    OK(stepgraph_step_mark(step, "logging"));
    CU(LaunchHostFunc(stream, no_work, NULL));
    report = refused(step);
    HOLDS(report, 1, 1);
    ck_assert_str_eq(FOUND(report, HOST_FUNCTION, 1, "host function", NOWHERE, 0, "STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS", "node 1",
                           "every replay")
                         .stage,
                     "logging");
}
END_TEST

START_TEST(workspace_that_the_graph_allocates_and_frees_is_no_fault)
{
    CUdeviceptr workspace = 0;
    stepgraph_step *step = training();
    stepgraph_audit *report;

    MORE(MemAllocAsync(&workspace, 65536, stream));
    setv(stream, workspace + 256, 3);
    axpb(stream, pin, workspace + 256, 1);
    MORE(MemFreeAsync(workspace, stream));
    report = ready(step);
    CLEAN(report);
    ck_assert_uint_eq(summary_of(report).in_graph, 2);
    ck_assert_uint_eq(summary_of(report).addresses, 3);
    for (int i = 0; i < 3; i++)
        OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(w), 4);
}
END_TEST

START_TEST(new_values_in_a_workspace_of_the_graph_are_no_fault)
{
    stepgraph_pin *pins[2] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b")};
    CUdeviceptr workspace = 0;
    stepgraph_step *step = recording("train", 0);

    MORE(MemAllocAsync(&workspace, 65536, stream));
    for (int i = 0; i < 2; i++)
        axpb(stream, workspace + 256 * (unsigned)i, stepgraph_pin_address(pins[i]), (float)(1 + i));
    OK(stepgraph_pin_commit_many(session, 2, pins, (const uint64_t[]){workspace, workspace + 256}));
    MORE(MemFreeAsync(workspace, stream));
    CLEAN(ready(step));
    replayed(step, 3);
    for (int i = 0; i < 2; i++)
        ck_assert_float_eq(pin_float(pins[i]), (float)(3 * (1 + i)));
}
END_TEST

START_TEST(k09_allocation_that_outlives_the_graph_is_named)
{
    CUdeviceptr first = 0, second = 0;
    stepgraph_step *step = training();
    stepgraph_audit *report;

    MORE(MemAllocAsync(&first, 4096, stream));
    MORE(MemAllocAsync(&second, 65536, stream));
    setv(stream, second, 3);
    MORE(MemFreeAsync(first, stream));
    report = refused(step);
    HOLDS(report, 1, 1);
    ck_assert_uint_eq(FOUND(report, ALLOCATION, 1, "allocation", NOWHERE, 0, "before the recording begins", "65536 bytes",
                            "nothing in the graph frees")
                          .before,
                      second);
}
END_TEST

START_TEST(memory_of_a_pool_is_named)
{
    CUdeviceptr memory = 0;
    stepgraph_step *step;
    stepgraph_audit *report;

    use_pin();
    MORE(MemAllocAsync(&memory, 65536, stream));
    OK(stepgraph_session_wait(session));
    step = recording("train", 0);
    axpb(stream, pin, memory, 1);
    report = refused(step);
    HOLDS(report, 1, 1);
    FOUND(report, POOL, 0, "axpb", 1, 0, "pin it", "65536 bytes of a memory pool", "cannot be verified");
    MORE(MemFreeAsync(memory, stream));
    OK(stepgraph_session_wait(session));
}
END_TEST

/* Asking about pool memory that was freed is undefined, so it is never asked about again. */
START_TEST(memory_of_a_pool_is_asked_about_once)
{
    CUdeviceptr memory = 0;
    stepgraph_step *step;
    unsigned long asked;

    use_pin();
    MORE(MemAllocAsync(&memory, 65536, stream));
    OK(stepgraph_session_wait(session));
    step = recording_checked("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED, 1);
    setv(stream, memory, 4);
    axpb(stream, pin, memory, 1);
    ready(step);
    asked = questions();
    for (int i = 0; i < 3; i++)
        OK(stepgraph_step_replay(step));
    ck_assert_uint_eq(questions(), asked);
    ck_assert_float_eq(pin_float(w), 5);
    MORE(MemFreeAsync(memory, stream));
    OK(stepgraph_session_wait(session));
}
END_TEST

/* ---- what escaped ------------------------------------------------------------------------------------------------------ */

START_TEST(k07_kernel_on_another_stream_is_named_with_its_stage)
{
    CUstream other = stream_make(CU_STREAM_NON_BLOCKING);
    stepgraph_step *step = training();
    stepgraph_audit *report;
    stepgraph_finding f;

    OK(stepgraph_step_mark(step, "forward"));
    counted_inc(session, NULL, pin, 1);
    OK(stepgraph_step_mark(step, "backward"));
    counted_inc(session, NULL, pin, 1);
    counted_inc(session, other, pin, 1);
    OK(stepgraph_step_mark(step, "optimizer"));
    counted_inc(session, NULL, pin, 1);
    report = refused(step);
    HOLDS(report, 1, 1);
    f = FOUND(report, ESCAPED, NOWHERE, "", NOWHERE, 0, "stepgraph_step_fork()", "4 kernel launches were counted",
              "the graph holds 3", "1 of 2 in stage 'backward'", "another stream");
    ck_assert_uint_eq(f.before, 4);
    ck_assert_uint_eq(f.after, 3);
    CU(StreamSynchronize(other));
}
END_TEST

/* A synchronous copy on a non-blocking stream that records: the driver runs it at once and records nothing. */
START_TEST(k07_synchronous_read_is_named_where_copies_are_counted)
{
    CUdeviceptr out = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_OUTPUT, 4, "loss"));
    stepgraph_step *step;
    stepgraph_audit *report;
    stepgraph_finding f;
    float loss = -1;

    use_pin();
    put_float(pin, 5);
    step = recording("train", 0);
    OK(stepgraph_step_mark(step, "forward"));
    inc(stream, pin, 1);
    stepgraph_session_count(session, STEPGRAPH_KIND_COPY, 1);
    CU(MemcpyDtoDAsync(out, pin, 4, stream));
    OK(stepgraph_step_mark(step, "loss"));
    stepgraph_session_count(session, STEPGRAPH_KIND_COPY, 1);
    CU(MemcpyDtoH(&loss, pin, 4));
    ck_assert_float_eq(loss, 5); /* Before the recorded work. */
    report = ready(step);        /* It may be meant: the next batch, on a stream of its own. */
    HOLDS(report, 0, 1);
    f = NOTED(report, ESCAPED, NOWHERE, "", NOWHERE, 0, "stepgraph_session_stream()", "2 copies were counted", "the graph holds 1",
              ", 0 of 1 in stage 'loss':", "ran at once");
    ck_assert_ptr_null(strstr(f.text, "forward"));
    ck_assert_uint_eq(f.before, 2);
    ck_assert_uint_eq(f.after, 1);
}
END_TEST

START_TEST(synchronous_read_that_nobody_counted_is_not_seen)
{
    stepgraph_step *step = training();
    float loss = -1;

    inc(stream, pin, 1);
    CU(MemcpyDtoH(&loss, pin, 4));
    CLEAN(ready(step));
}
END_TEST

START_TEST(set_on_another_stream_is_named)
{
    CUstream other = stream_make(CU_STREAM_NON_BLOCKING);
    stepgraph_step *step = training();

    stepgraph_session_count(session, STEPGRAPH_KIND_SET, 2);
    CU(MemsetD8Async(pin, 1, 4, stream));
    CU(MemsetD8Async(pin, 1, 4, other));
    NOTED(ready(step), ESCAPED, NOWHERE, "", NOWHERE, 0, "stepgraph_step_fork()", "2 sets were counted", "the graph holds 1");
    CU(StreamSynchronize(other));
}
END_TEST

/* A graph of the host's own, which was launched on another stream; not so one that is added to the recording. */
START_TEST(k07_graph_on_another_stream_is_named)
{
    stepgraph_step *step = training();

    stepgraph_session_count(session, STEPGRAPH_KIND_GRAPH, 1);
    add_child(pin);
    CLEAN(ready(step));
    drop_step(step);
    step = recording("train", 0);
    stepgraph_session_count(session, STEPGRAPH_KIND_GRAPH, 2);
    add_child(pin);
    FOUND(refused(step), ESCAPED, NOWHERE, "", NOWHERE, 0, "stepgraph_step_fork()", "2 graph launches were counted", "the graph holds 1", "another stream");
}
END_TEST

START_TEST(host_function_on_another_stream_is_noted)
{
    stepgraph_step *step = training();

    inc(stream, pin, 1);
    stepgraph_session_count(session, STEPGRAPH_KIND_HOST, 2);
    NOTED(ready(step), ESCAPED, NOWHERE, "", NOWHERE, 0, "stepgraph_step_fork()", "2 host functions were counted", "the graph holds 0");
}
END_TEST

/* The library's own copies and kernels stand for none of the host's. */
START_TEST(commits_do_not_hide_what_escaped)
{
    stepgraph_pin *pins[2] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b")};
    CUdeviceptr pool = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_SCRATCH, 64, "pool"));
    uint64_t fresh[2] = {pool, pool + 16};
    CUstream other = stream_make(CU_STREAM_NON_BLOCKING);
    stepgraph_step *step = recording("train", 0);
    stepgraph_audit *report;

    counted_inc(session, other, pool + 32, 1);
    stepgraph_session_count(session, STEPGRAPH_KIND_COPY, 1);
    OK(stepgraph_pin_commit(pins[0], pool));
    OK(stepgraph_pin_commit_many(session, 2, pins, fresh));
    report = refused(step);
    HOLDS(report, 1, 2);
    ck_assert_ptr_nonnull(
        strstr(stepgraph_audit_text(report), "1 kernel launch was counted while it recorded, and the graph holds 0"));
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "1 copy was counted while it recorded, and the graph holds 0"));
    CU(StreamSynchronize(other));
}
END_TEST

static unsigned warnings;
static char warning[256];

static void note_warning(void *user, int32_t level, const char *line)
{
    (void)user;
    (void)level;
    warnings++;
    snprintf(warning, sizeof warning, "%s", line);
}

START_TEST(fewer_counted_than_recorded_is_no_fault)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    CUdeviceptr pool;
    stepgraph_step *step;

    config.log = note_warning;
    config.log_level = STEPGRAPH_LOG_WARNING;
    reopen(&config);
    pool = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_SCRATCH, 64, "pool"));
    warnings = 0;
    step = recording("train", 0);
    counted_inc(session, NULL, pool, 1);
    inc(stream, pool, 1);
    stepgraph_session_count(session, STEPGRAPH_KIND_COPY, 1);
    CU(MemcpyDtoDAsync(pool, pool + 32, 4, stream));
    CU(MemcpyDtoDAsync(pool, pool + 32, 4, stream));
    CLEAN(ready(step));
    ck_assert_uint_eq(warnings, 1);
    ck_assert_ptr_nonnull(strstr(warning, "1 kernel launches were counted while it recorded, and the graph holds 2"));
}
END_TEST

/* ---- other devices ------------------------------------------------------------------------------------------------------ */

/* Memory of a second device; 0: there is none. Lives as long as the program. */
static CUdeviceptr foreign_memory(void)
{
    static CUdeviceptr memory;
    CUcontext here, there;
    CUdevice device;
    int n = 0;

    MORE(DeviceGetCount(&n));
    if (n < 2 || memory)
        return memory;
    CU(CtxGetCurrent(&here));
    CU(DeviceGet(&device, 1));
    CU(DevicePrimaryCtxRetain(&there, device));
    CU(CtxSetCurrent(there));
    CU(MemAlloc(&memory, 4096));
    CU(CtxSetCurrent(here));
    return memory;
}

START_TEST(memory_of_another_device_is_named)
{
    CUdeviceptr there = foreign_memory();
    stepgraph_step *step;
    stepgraph_audit *report;

    if (!there) {
        unit_skip("memory_of_another_device_is_named", "there is one device only");
        return;
    }
    use_pin();
    step = recording("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    axpb(stream, pin, there + 8, 1);
    report = refused(step);
    HOLDS(report, 1, 1);
    ck_assert_uint_eq(FOUND(report, FOREIGN, 0, "axpb", 1, 0, "copy it to the session's device", "4096 bytes of device 1").before,
                      there + 8);
}
END_TEST

/* ---- where a state stood before ---------------------------------------------------------------------------------------- */

START_TEST(earlier_address_of_a_state_is_named)
{
    CUdeviceptr old = device_make(4096);
    stepgraph_step *step;
    stepgraph_audit *report;

    use_pin();
    OK(stepgraph_pin_commit(w, old)); /* As an optimizer does that works out of place. */
    OK(stepgraph_session_wait(session));
    step = recording("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    inc(stream, old, 1);
    report = refused(step);
    HOLDS(report, 1, 1);
    ck_assert_uint_eq(FOUND(report, FORMER_STATE, 0, "inc", 0, 0, "stepgraph_pin_address() of that pin",
                            "from where state 'layer0.weight' was last committed")
                          .before,
                      old);
}
END_TEST

/* In whatever order they were committed. */
START_TEST(earlier_addresses_of_several_states_are_named)
{
    static const char *const names[] = {"middle", "low", "high"};
    static const size_t offsets[] = {1024, 0, 2048};
    CUdeviceptr old = device_make(4096);
    stepgraph_audit *report;
    stepgraph_step *step;

    for (int i = 0; i < 3; i++)
        OK(stepgraph_pin_commit(pin_make(session, STEPGRAPH_ROLE_STATE, 64, names[i]), old + offsets[i]));
    OK(stepgraph_session_wait(session));
    step = recording("train", 0);
    for (int i = 0; i < 3; i++)
        inc(stream, old + offsets[i] + 60, 1);
    report = refused(step);
    HOLDS(report, 3, 3);
    for (int i = 0; i < 3; i++) {
        char words[64];
        snprintf(words, sizeof words, "from where state '%s' was last committed", names[i]);
        FOUND(report, FORMER_STATE, (uint32_t)i, "inc", 0, 0, "stepgraph_pin_address() of that pin", words);
    }
}
END_TEST

/* Then it is memory like any other, but the words still say what stood there. */
START_TEST(earlier_address_beside_the_pin_is_unregistered)
{
    CUdeviceptr old = device_make(4096);
    stepgraph_step *step;
    stepgraph_audit *report;

    use_pin();
    OK(stepgraph_pin_commit(w, old));
    OK(stepgraph_session_wait(session));
    step = recording("train", 0);
    axpb(stream, old, pin, 1);
    OK(stepgraph_pin_commit(w, old));
    report = refused(step);
    HOLDS(report, 2, 2);
    FOUND(report, UNREGISTERED, 0, "axpb", 0, 0, "pin it", "from where state 'layer0.weight' was last committed");
    FOUND(report, UNREGISTERED, 1, "copy", NOWHERE, 0, "pin it", "source", "from where state 'layer0.weight' was last committed");
}
END_TEST

/* ---- each switch -------------------------------------------------------------------------------------------------------- */

/* One hazard each, while recording. */
static CUdeviceptr met, pool_memory, former, elsewhere;
static void *host_memory;
static CUstream side;

static void plant_unregistered(void)
{
    inc(stream, met, 1);
}

static void plant_pool(void)
{
    inc(stream, pool_memory, 1);
}

static void plant_freed(void)
{
    inc(stream, met, 1);
    free_elsewhere(met);
}

static void plant_foreign(void)
{
    copyf(stream, pin, elsewhere);
}

static void plant_pageable(void)
{
    CU(MemcpyHtoDAsync(pin, pageable, 4, stream));
}

static void plant_page_locked(void)
{
    CU(MemcpyHtoDAsync(pin, host_memory, 4, stream));
}

static void plant_former(void)
{
    inc(stream, former, 1);
}

static void plant_allocation(void)
{
    CUdeviceptr made;

    MORE(MemAllocAsync(&made, 4096, stream));
    setv(stream, made, 1);
}

static void plant_host_function(void)
{
    CU(LaunchHostFunc(stream, no_work, NULL));
}

static void plant_nothing(void)
{
}

static void plant_escape(void)
{
    counted_inc(session, NULL, pin, 1);
    counted_inc(session, side, pin, 1);
}

static const struct hazard {
    stepgraph_finding_kind kind;
    void (*plant)(void);
    uint32_t own; /* The flag that lets it pass. */
} hazards[] = {
    {STEPGRAPH_FINDING_UNREGISTERED, plant_unregistered, STEPGRAPH_STEP_ALLOW_UNREGISTERED},
    {STEPGRAPH_FINDING_POOL, plant_pool, STEPGRAPH_STEP_ALLOW_UNREGISTERED},
    {STEPGRAPH_FINDING_FREED, plant_freed, STEPGRAPH_STEP_ALLOW_FREED},
    {STEPGRAPH_FINDING_FOREIGN, plant_foreign, STEPGRAPH_STEP_ALLOW_FOREIGN},
    {STEPGRAPH_FINDING_PAGEABLE, plant_pageable, STEPGRAPH_STEP_ALLOW_HOST_MEMORY},
    {STEPGRAPH_FINDING_PAGE_LOCKED, plant_page_locked, STEPGRAPH_STEP_ALLOW_HOST_MEMORY},
    {STEPGRAPH_FINDING_FORMER_STATE, plant_former, STEPGRAPH_STEP_ALLOW_FORMER_STATE},
    {STEPGRAPH_FINDING_ALLOCATION, plant_allocation, STEPGRAPH_STEP_ALLOW_ALLOCATIONS},
    {STEPGRAPH_FINDING_HOST_FUNCTION, plant_host_function, STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS},
    {STEPGRAPH_FINDING_EMPTY, plant_nothing, STEPGRAPH_STEP_ALLOW_EMPTY},
    {STEPGRAPH_FINDING_ESCAPED, plant_escape, STEPGRAPH_STEP_ALLOW_ESCAPED},
};
enum { HAZARDS = sizeof hazards / sizeof *hazards };

static const uint32_t every_switch =
    STEPGRAPH_STEP_ALLOW_EMPTY | STEPGRAPH_STEP_ALLOW_UNREGISTERED | STEPGRAPH_STEP_ALLOW_ESCAPED |
    STEPGRAPH_STEP_ALLOW_HOST_MEMORY | STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS | STEPGRAPH_STEP_ALLOW_ALLOCATIONS |
    STEPGRAPH_STEP_ALLOW_FREED | STEPGRAPH_STEP_ALLOW_FOREIGN | STEPGRAPH_STEP_ALLOW_FORMER_STATE;

static stepgraph_step *planted(const struct hazard *hazard, uint32_t flags)
{
    stepgraph_step *step;

    met = device_make(65536);
    seen(met);
    step = recording("train", flags);
    hazard->plant();
    return step;
}

/* Refused with all switches but its own; with its own alone it passes, is still reported, and is no fault. */
START_TEST(each_hazard_has_its_own_switch)
{
    const struct hazard *hazard = &hazards[_i];
    stepgraph_audit *report;
    stepgraph_finding f = STEPGRAPH_FINDING_INIT;

    elsewhere = foreign_memory();
    if (hazard->kind == STEPGRAPH_FINDING_FOREIGN && !elsewhere) {
        unit_skip("each_hazard_has_its_own_switch[foreign]", "there is one device only");
        return;
    }
    use_pin();
    side = stream_make(CU_STREAM_NON_BLOCKING);
    host_memory = page_locked(64);
    former = device_make(64);
    OK(stepgraph_pin_commit(w, former));
    MORE(MemAllocAsync(&pool_memory, 4096, stream));
    OK(stepgraph_session_wait(session));

    report = refused(planted(hazard, every_switch & ~hazard->own));
    HOLDS(report, 1, 1);
    OK(stepgraph_audit_get(report, 0, &f));
    ck_assert_uint_eq(f.kind, hazard->kind);
    ck_assert_uint_eq(f.fault, 1);
    ck_assert_str_ne(f.advice, "");

    report = ready(planted(hazard, hazard->own));
    HOLDS(report, 0, 1);
    OK(stepgraph_audit_get(report, 0, &f));
    ck_assert_uint_eq(f.kind, hazard->kind);
    ck_assert_uint_eq(f.fault, 0);
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "no fault found"));
    CU(StreamSynchronize(side));
    MORE(MemFreeAsync(pool_memory, stream));
    OK(stepgraph_session_wait(session));
}
END_TEST

START_TEST(replaced_pin_has_the_switch_of_freed_memory)
{
    CUdeviceptr memory = device_make(65536);
    stepgraph_step *step;

    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, 4, "moments");
    step = step_make(session, "train", STEPGRAPH_STEP_ALLOW_FREED);
    OK(stepgraph_step_prepare(step));
    device_drop(memory);
    if (!take_again(memory, 65536, "replaced_pin_has_the_switch_of_freed_memory"))
        return;
    OK(stepgraph_step_capture(step));
    inc(stream, memory, 1);
    NOTED(ready(step), REPLACED, 0, "inc", 0, 0, "keep the memory allocated", "moments", "given out again");
}
END_TEST

/* ---- driver calls that fail ------------------------------------------------------------------------------------------- */

/* Operands of which the driver is asked what they are. */
static struct {
    CUdeviceptr memory[3], fresh;
    void *locked[2];
    stepgraph_pin *state;
} asked;

static stepgraph_step *asking(void)
{
    stepgraph_step *step = recording("asking", STEPGRAPH_STEP_ALLOW_UNREGISTERED | STEPGRAPH_STEP_ALLOW_HOST_MEMORY);
    CUdeviceptr begin = stepgraph_pin_address(asked.state), end = begin + 64;
    float v = 1;

    inc(stream, asked.memory[0], 1);
    MORE(MemcpyAsync(asked.memory[1], (CUdeviceptr)(uintptr_t)asked.locked[0], 4, stream));
    MORE(MemcpyAsync(asked.memory[2], begin, 4, stream));
    MORE(MemcpyAsync((CUdeviceptr)(uintptr_t)asked.locked[1], begin, 4, stream));
    launch(stream, made_for.fill, 1, (void *[]){&begin, &end, &v});
    OK(stepgraph_pin_commit(asked.state, asked.fresh));
    return step;
}

/* How often a replay that is not the first looks whether memory is still there. */
static unsigned long looks(stepgraph_step *step)
{
    unsigned long before;

    replayed(step, 1);
    before = driver_calls("cuPointerGetAttribute");
    replayed(step, 1);
    return driver_calls("cuPointerGetAttribute") - before;
}

/* It is told, or the report and what is watched are the same without it. */
START_TEST(failed_question_changes_no_report)
{
    const char *entry = entries[_i];
    char wanted[4096], got[4096];
    unsigned long before, calls, watched, watches;
    stepgraph_step *step;

    if (strcmp(entry, "cuStreamEndCapture") == 0) /* A failure that cusim pretends leaves the recording open. */
        return;
    for (int i = 0; i < 3; i++)
        asked.memory[i] = device_make(64);
    asked.fresh = device_make(64);
    for (int i = 0; i < 2; i++)
        asked.locked[i] = page_locked(64);
    asked.state = pin_adopt(session, STEPGRAPH_ROLE_STATE, device_make(64), 64, "state");
    step = asking();
    before = driver_calls(entry);
    snprintf(wanted, sizeof wanted, "%s", stepgraph_audit_text(ready(step)));
    calls = driver_calls(entry) - before;
    watched = looks(step);
    ck_assert_uint_gt(watched, 0);
    drop_step(step);
    unit_leaves_objects(1);
    for (unsigned nth = 1; nth <= calls; nth++) {
        stepgraph_status status;
        step = asking();
        driver_fails(entry, nth, CUDA_ERROR_UNKNOWN);
        status = stepgraph_step_end(step);
        no_driver_fails();
        if (status == STEPGRAPH_OK) {
            stepgraph_audit *report = NULL;
            OK(stepgraph_audit_step(step, &report));
            snprintf(got, sizeof got, "%s", stepgraph_audit_text(keep_report(report)));
            watches = looks(step);
            if (strcmp(entry, "cuFuncGetName") != 0)
                ck_assert_msg(strcmp(got, wanted) == 0, "call %u of %s: %s instead of %s", nth, entry, got, wanted);
            ck_assert_msg(watches == watched, "call %u of %s: a replay looks %lu times instead of %lu", nth, entry, watches, watched);
        } else {
            ck_assert_msg(strstr(last_words(), entry) != NULL, "call %u of %s: %s", nth, entry, last_words());
        }
        drop_step(step);
    }
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("audit");
    TCase *tc = audit_case(suite, "a: unregistered");

    tcase_add_test(tc, k03_memory_without_a_pin_is_named_by_node_argument_and_kernel);
    tcase_add_test(tc, k03_gradient_without_a_pin_is_named);
    tcase_add_test(tc, words_of_a_refusal_name_every_fault_of_a_few);
    tcase_add_test(tc, pointer_into_the_middle_of_memory_is_found);
    tcase_add_test(tc, pointers_inside_a_struct_are_named_by_their_byte);
    tcase_add_test(tc, pointer_in_a_packed_struct_is_not_seen);
    tcase_add_test(tc, pointers_in_a_packed_struct_are_found_byte_by_byte);
    tcase_add_test(tc, odd_numbers_in_a_packed_struct_are_no_addresses);
    tcase_add_test(tc, pointers_through_extra_are_found);
    tcase_add_test(tc, pointers_in_an_argument_that_is_passed_in_part_are_found);
    tcase_add_test(tc, pointers_in_a_child_graph_are_found);
    tcase_add_test(tc, child_graph_over_pins_is_replayed);
    tcase_add_test(tc, copy_and_set_that_reach_beyond_a_pin_are_found);
    tcase_add_loop_test(tc, copy_of_planes_that_reaches_beyond_a_pin_is_found, 0, 2);
    tcase_add_loop_test(tc, rows_of_a_copy_may_lie_in_several_pins, 0, 9);
    tcase_add_test(tc, pin_that_a_copy_reaches_from_its_neighbour_stays);
    tcase_add_test(tc, pin_between_the_rows_of_a_set_is_not_used);
    tcase_add_test(tc, names_of_cpp_kernels_are_readable);

    tc = audit_case(suite, "b: freed");
    tcase_add_test(tc, k05_memory_freed_before_end_is_named);
    tcase_add_test(tc, memory_freed_before_anybody_met_it_is_not_seen);
    tcase_add_test(tc, freed_operands_of_sets_and_copies_are_named_without_having_been_met);
    tcase_add_test(tc, adopted_pin_freed_while_recording_is_named);
    tcase_add_test(tc, adopted_pin_replaced_while_recording_is_named);
    tcase_add_test(tc, address_that_the_library_was_given_since_is_found);
    tcase_add_test(tc, k05_memory_freed_after_end_is_caught_before_the_next_replay);
    tcase_add_test(tc, k05_memory_freed_and_given_out_again_is_caught_before_the_next_replay);
    tcase_add_test(tc, memory_given_out_again_is_caught_at_the_cadence);
    tcase_add_test(tc, k05_workspace_that_grew_is_caught);
    tcase_add_test(tc, memory_that_lives_is_looked_at_and_passes);
    tcase_add_test(tc, sources_of_commits_are_examined_and_watched);

    tc = audit_case(suite, "c: host memory");
    tcase_add_test(tc, k06_batch_from_pageable_memory_is_named);
    tcase_add_test(tc, result_into_pageable_memory_is_named);
    tcase_add_test(tc, copy_of_unsaid_direction_is_looked_up);
    tcase_add_test(tc, k06_batch_from_page_locked_memory_is_named);
    tcase_add_test(tc, kernel_that_reads_page_locked_memory_is_named);
    tcase_add_test(tc, recycled_page_locked_memory_is_read_anew_where_allowed);
    tcase_add_loop_test(tc, k06_freed_page_locked_memory_is_caught_before_the_very_next_replay, 0, 2);
    tcase_add_loop_test(tc, freed_device_side_of_a_copy_is_caught_before_the_very_next_replay, 0, 3);
    tcase_add_test(tc, freed_source_of_a_copy_to_the_host_is_caught_before_the_very_next_replay);
    tcase_add_loop_test(tc, freed_pin_of_a_host_copy_is_caught_before_the_very_next_replay, 0, 2);
    add_controlled_loop_test(tc, copies_between_device_memory_are_looked_at_at_the_cadence_only, 0, 2);

    tc = audit_case(suite, "d: nodes");
    tcase_add_test(tc, k08_empty_recording_is_named);
    tcase_add_test(tc, k24_host_function_is_named);
    tcase_add_test(tc, workspace_that_the_graph_allocates_and_frees_is_no_fault);
    tcase_add_test(tc, new_values_in_a_workspace_of_the_graph_are_no_fault);
    tcase_add_test(tc, k09_allocation_that_outlives_the_graph_is_named);
    tcase_add_test(tc, memory_of_a_pool_is_named);
    add_controlled_test(tc, memory_of_a_pool_is_asked_about_once);

    tc = audit_case(suite, "e: escaped");
    tcase_add_test(tc, k07_kernel_on_another_stream_is_named_with_its_stage);
    tcase_add_test(tc, k07_synchronous_read_is_named_where_copies_are_counted);
    tcase_add_test(tc, synchronous_read_that_nobody_counted_is_not_seen);
    tcase_add_test(tc, set_on_another_stream_is_named);
    tcase_add_test(tc, k07_graph_on_another_stream_is_named);
    tcase_add_test(tc, host_function_on_another_stream_is_noted);
    tcase_add_test(tc, commits_do_not_hide_what_escaped);
    tcase_add_test(tc, fewer_counted_than_recorded_is_no_fault);

    tc = audit_case(suite, "f: foreign and former");
    tcase_add_test(tc, memory_of_another_device_is_named);
    tcase_add_test(tc, earlier_address_of_a_state_is_named);
    tcase_add_test(tc, earlier_addresses_of_several_states_are_named);
    tcase_add_test(tc, earlier_address_beside_the_pin_is_unregistered);

    tc = audit_case(suite, "g: switches");
    tcase_add_loop_test(tc, each_hazard_has_its_own_switch, 0, HAZARDS);
    tcase_add_test(tc, replaced_pin_has_the_switch_of_freed_memory);

    tc = audit_case(suite, "h: failures");
    add_controlled_loop_test(tc, failed_question_changes_no_report, 0, ENTRIES);
    return suite;
}

int main(void)
{
    setenv("CUSIM_DEVICES", "2", 0); /* Of a software driver; a card is what it is. */
    return unit_main(make);
}
