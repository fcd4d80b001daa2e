/*
 * A driver that cannot tell where the arguments of a kernel lie (before 12.4): the audit says so, and neither accuses nor
 * acquits. Of the software driver only: main sets its version before it is loaded.
 */
#include "findings.h"

START_TEST(kernels_that_cannot_be_read_are_said_and_no_fault)
{
    CUdeviceptr buffer = device_make(4), pin = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"));
    stepgraph_step *step = recording("train", 0);
    stepgraph_audit *report;

    inc(stream, buffer, 1);
    OK(stepgraph_step_mark(step, "optimizer"));
    axpb(stream, pin, buffer, 1);
    CU(MemsetD8Async(pin, 0, 4, stream));
    report = ready(step);
    HOLDS(report, 0, 2);
    ck_assert_uint_eq(summary_of(report).unread, 2);
    ck_assert_uint_eq(summary_of(report).nodes, 3);
    ck_assert_uint_eq(summary_of(report).in_pins, 1);
    ck_assert_uint_eq(step_stats(step).nodes_unread, 2);
    NOTED(report, UNREAD, 0, "inc", NOWHERE, 0, "", "node 0", "inc", "could not be read", "not checked");
    ck_assert_str_eq(NOTED(report, UNREAD, 1, "axpb", NOWHERE, 0, "", "node 1").stage, "optimizer");
    ck_assert_ptr_nonnull(
        strstr(stepgraph_audit_text(report), "no fault found (3 nodes, 2 kernels, 1 addresses); 2 nodes could not be looked at"));
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_json(report), "\"unread\": 2"));
    OK(stepgraph_step_replay(step));
}
END_TEST

/* What can be read is still examined. */
START_TEST(other_nodes_are_examined_all_the_same)
{
    CUdeviceptr buffer = device_make(64), pin = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"));
    stepgraph_step *step = recording("train", 0);
    stepgraph_audit *report;

    inc(stream, pin, 1);
    CU(MemcpyDtoDAsync(pin, buffer, 4, stream));
    report = refused(step);
    HOLDS(report, 1, 2);
    FOUND(report, UNREGISTERED, 1, "copy", NOWHERE, 0, "pin it", "source");
}
END_TEST

/* Nobody knows which pins such a kernel uses: so all are kept. */
START_TEST(every_pin_counts_as_used)
{
    stepgraph_pin *w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"),
                  *idle = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "idle");
    stepgraph_step *step = recording("train", 0);

    inc(stream, stepgraph_pin_address(w), 1);
    ready(step);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_destroy(idle), "idle", "train");
}
END_TEST

START_TEST(comparing_says_how_many_were_not_compared)
{
    CUdeviceptr pin = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"));
    stepgraph_step *steps[2];
    stepgraph_audit *report;

    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", 0);
        inc(stream, pin, (float)i);
        CU(MemsetD8Async(pin, (unsigned char)i, 4, stream));
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 1, 1);
    FOUND(report, CHANGING_SCALAR, 1, "set", NOWHERE, 0, "record again", "value");
    ck_assert_uint_eq(summary_of(report).unread, 1);
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "1 nodes could not be looked at"));
}
END_TEST

/* How they are launched is known all the same. */
START_TEST(other_grid_of_a_kernel_that_cannot_be_read_is_told)
{
    CUdeviceptr pin = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"));
    stepgraph_step *steps[2];
    float v = 1;

    for (unsigned i = 0; i < 2; i++) {
        steps[i] = recording("step", 0);
        CU(LaunchKernel(kernels.setv, 1 + i, 1, 1, 32, 1, 1, 0, stream, (void *[]){&pin, &v}, NULL));
        ready(steps[i]);
    }
    FOUND(compared(steps[0], steps[1], NULL), CHANGING_SCALAR, 0, "setv", NOWHERE, 0, "record again", "grid x");
}
END_TEST

/* ---- on a loop ------------------------------------------------------------------------------------------------------- */

/* Nobody knows which memory the kernels use. Here there is some that no pin covers, and that counts the steps. */
static stepgraph_loop_graph twenty_steps(uint32_t flags, CUdeviceptr pin, CUdeviceptr counter)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_loop_graph graph = STEPGRAPH_LOOP_GRAPH_INIT;
    stepgraph_turn turn = STEPGRAPH_TURN_INIT;
    stepgraph_loop *loop = NULL;

    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK | flags;
    OK(stepgraph_loop_create(session, &config, &loop));
    for (unsigned k = 0; k < 20; k++) {
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.run) {
                inc(stream, pin, 1);
                inc(stream, counter, 1);
            }
            OK(stepgraph_loop_end(loop, &turn));
        } while (turn.again);
        ck_assert_float_eq(float_at(pin), (float)(k + 1));
        ck_assert_float_eq(float_at(counter), (float)(k + 1));
    }
    OK(stepgraph_loop_get_graph(loop, 0, &graph));
    stepgraph_loop_destroy(loop);
    return graph;
}

START_TEST(step_that_cannot_be_read_is_not_done_twice)
{
    stepgraph_loop_graph graph = twenty_steps(0, stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w")), device_make(4));

    ck_assert_uint_eq(graph.rung, STEPGRAPH_RUNG_RERECORD);
    ck_assert_uint_eq(graph.why, STEPGRAPH_WHY_UNPROVEN);
    ck_assert_msg(strstr(graph.words, "node 0, 'inc', could not be read") != NULL, "%s", graph.words);
}
END_TEST

START_TEST(step_that_cannot_be_read_is_replayed_where_the_host_says_so)
{
    reopen_listening(STEPGRAPH_LOG_WARNING);
    ck_assert_uint_eq(
        twenty_steps(STEPGRAPH_LOOP_NO_CHECK, stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w")), device_make(4)).rung,
        STEPGRAPH_RUNG_REPLAY);
    ck_assert_uint_eq(said("2 nodes could not be read, the first of them node 0, 'inc'"), 1);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("audit_unread");
    TCase *tc = audit_case(suite, "a: unread");

    add_controlled_test(tc, kernels_that_cannot_be_read_are_said_and_no_fault);
    add_controlled_test(tc, other_nodes_are_examined_all_the_same);
    add_controlled_test(tc, every_pin_counts_as_used);
    add_controlled_test(tc, comparing_says_how_many_were_not_compared);
    add_controlled_test(tc, other_grid_of_a_kernel_that_cannot_be_read_is_told);
    add_controlled_test(tc, step_that_cannot_be_read_is_not_done_twice);
    add_controlled_test(tc, step_that_cannot_be_read_is_replayed_where_the_host_says_so);
    return suite;
}

int main(void)
{
    setenv("CUSIM_DRIVER_VERSION", "12030", 1);
    return unit_main(make);
}
