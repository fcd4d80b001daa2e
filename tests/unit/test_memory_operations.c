/* Values that a stream writes, or waits for, without a kernel: nodes that hold addresses and values like any other. */
#include "findings.h"

static CUresult (*write_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
static CUresult (*operations)(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned);
static CUdeviceptr x, y;

static void setup(void)
{
    *(void **)&write_value = stepgraph_session_symbol(session, "cuStreamWriteValue32", 11070);
    *(void **)&operations = stepgraph_session_symbol(session, "cuStreamBatchMemOp", 11070);
    ck_assert(write_value != NULL && operations != NULL);
    x = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 64, "x"));
    y = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 64, "y"));
}

static void write_number(CUdeviceptr to, cuuint32_t value)
{
    ck_assert_int_eq(write_value(stream, to, value, 0), CUDA_SUCCESS);
}

/* One that writes v to p, and one of 8 bytes, which writes w to q. */
static void write_two(CUdeviceptr p, cuuint32_t v, CUdeviceptr q, cuuint64_t w)
{
    CUstreamBatchMemOpParams both[2];

    memset(both, 0, sizeof both);
    both[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    both[0].writeValue.address = p;
    both[0].writeValue.value = v;
    both[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    both[1].writeValue.address = q;
    both[1].writeValue.value64 = w;
    ck_assert_int_eq(operations(stream, 2, both, 0), CUDA_SUCCESS);
}

/* ---- one recording --------------------------------------------------------------------------------------------------- */

START_TEST(operation_over_pins_is_clean_and_looked_at)
{
    stepgraph_step *step = recording("step", 0);
    stepgraph_audit *report;

    inc(stream, x, 1);
    write_two(y, 5, y + 8, 7);
    report = ready(step);
    CLEAN(report);
    ck_assert_uint_eq(summary_of(report).unread, 0);
    ck_assert_uint_eq(summary_of(report).in_pins, 3);
    replayed(step, 2);
    /* It counts as used. */
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_destroy(stepgraph_session_pin(session, "y")), "'step'");
}
END_TEST

START_TEST(operation_outside_the_pins_is_named)
{
    CUdeviceptr other = device_make(64);
    stepgraph_step *step = recording("step", 0);
    stepgraph_audit *report;

    inc(stream, x, 1);
    write_two(x, 5, other + 8, 7);
    report = refused(step);
    HOLDS(report, 1, 1);
    FOUND(report, UNREGISTERED, 1, "memory operation", NOWHERE, 0, "pin it", "node 1", "destination", "+8 in 64 bytes that no pin covers");
}
END_TEST

START_TEST(freed_memory_of_an_operation_is_caught_before_the_replay)
{
    CUdeviceptr other = device_make(64);
    stepgraph_step *step = recording_checked("step", STEPGRAPH_STEP_ALLOW_UNREGISTERED, 1);

    inc(stream, x, 1);
    write_number(other, 5);
    ready(step);
    replayed(step, 1);
    device_drop(other);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "'memory operation'", "freed since");
}
END_TEST

/* ---- two recordings -------------------------------------------------------------------------------------------------- */

START_TEST(k01_value_that_a_stream_writes_is_named)
{
    stepgraph_step *steps[2];
    stepgraph_audit *report;

    for (unsigned k = 0; k < 2; k++) {
        steps[k] = recording("step", 0);
        inc(stream, x, 1);
        write_two(x, 5 + k, x + 8, 1ull << (40 + k));
        ready(steps[k]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 2, 2);
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "node 1  memory operation  value   changing scalar   4 bytes 00000005 -> 00000006"));
    ck_assert_ptr_nonnull(
        strstr(stepgraph_audit_text(report), "node 1  memory operation  value   changing scalar   8 bytes 0000010000000000 -> 0000020000000000"));
}
END_TEST

START_TEST(k03_place_that_a_stream_writes_to_is_named_where_it_moves)
{
    stepgraph_step *steps[2];

    for (unsigned k = 0; k < 2; k++) {
        steps[k] = recording("step", 0);
        write_number(k ? y : x, 5);
        ready(steps[k]);
    }
    FOUND(compared(steps[0], steps[1], NULL), MOVED_POINTER, 0, "memory operation", NOWHERE, 0, "same pin in every step", "destination", "state 'x'", "state 'y'");
}
END_TEST

START_TEST(other_operations_are_told)
{
    stepgraph_step *steps[2];
    stepgraph_audit *report;

    for (unsigned k = 0; k < 2; k++) {
        CUstreamBatchMemOpParams one;
        memset(&one, 0, sizeof one);
        one.writeValue.operation = k ? CU_STREAM_MEM_OP_WAIT_VALUE_32 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
        one.writeValue.address = x;
        steps[k] = recording("step", 0);
        ck_assert_int_eq(operations(stream, 1, &one, 0), CUDA_SUCCESS);
        if (k)
            write_number(y, 1);
        else
            write_two(y, 1, y + 8, 1);
        ready(steps[k]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 2, 2);
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "node 0  memory operation  operation   changing scalar"));
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "node 1  memory operation  extent   changing scalar   4 bytes 00000002 -> 00000001"));
}
END_TEST

/* ---- on a loop ------------------------------------------------------------------------------------------------------- */

/* No pin covers what it writes, so no check would see it: the number of the step, which a graph would freeze. */
START_TEST(number_of_the_step_is_right_in_each_step)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_loop_graph graph = STEPGRAPH_LOOP_GRAPH_INIT;
    stepgraph_turn turn = STEPGRAPH_TURN_INIT;
    CUdeviceptr number = device_make(4);
    stepgraph_loop *loop = NULL;

    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK;
    OK(stepgraph_loop_create(session, &config, &loop));
    for (unsigned k = 0; k < 20; k++) {
        unsigned is;
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.run) {
                inc(stream, x, 1);
                write_number(number, k);
            }
            OK(stepgraph_loop_end(loop, &turn));
        } while (turn.again);
        bytes_at(number, &is, sizeof is);
        ck_assert_uint_eq(is, k);
    }
    OK(stepgraph_loop_get_graph(loop, 0, &graph));
    ck_assert_int_eq(graph.why, STEPGRAPH_WHY_SCALAR);
    ck_assert_msg(strstr(graph.words, "memory operation  value   changing scalar") != NULL, "%s", graph.words);
    stepgraph_loop_destroy(loop);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("memory operations");
    TCase *tc = audit_case(suite, "memory operations");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, operation_over_pins_is_clean_and_looked_at);
    tcase_add_test(tc, operation_outside_the_pins_is_named);
    tcase_add_test(tc, freed_memory_of_an_operation_is_caught_before_the_replay);
    tcase_add_test(tc, k01_value_that_a_stream_writes_is_named);
    tcase_add_test(tc, k03_place_that_a_stream_writes_to_is_named_where_it_moves);
    tcase_add_test(tc, other_operations_are_told);
    tcase_add_test(tc, number_of_the_step_is_right_in_each_step);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
