/* Loops over kernels that take packed structs, in which addresses stand at any byte. */
#include "findings.h"

static stepgraph_loop_graph twenty_steps(uint32_t step_flags, CUdeviceptr w, CUdeviceptr a, CUdeviceptr out)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_loop_graph graph = STEPGRAPH_LOOP_GRAPH_INIT;
    const struct Packed packed = {.tag = 1, .a = a, .s = 2, .b = w};
    stepgraph_turn turn = STEPGRAPH_TURN_INIT;
    stepgraph_loop *loop = NULL;

    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.step_flags = step_flags;
    OK(stepgraph_loop_create(session, &config, &loop));
    for (unsigned k = 0; k < 20; k++) {
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.run) {
                inc(stream, w, 1);
                launch(stream, made_for.packed, 1, (void *[]){(void *)&packed, &out});
            }
            OK(stepgraph_loop_end(loop, &turn));
        } while (turn.again);
    }
    ck_assert_float_eq(float_at(out), 3 + 20);
    OK(stepgraph_loop_get_graph(loop, 0, &graph));
    stepgraph_loop_destroy(loop);
    return graph;
}

START_TEST(memory_without_a_pin_stands_against_a_replay_wherever_its_address_is)
{
    CUdeviceptr w = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"));
    CUdeviceptr out = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_OUTPUT, 4, "out"));
    stepgraph_loop_graph graph = twenty_steps(STEPGRAPH_STEP_SCAN_BYTES, w, device_make(64), out);

    ck_assert_uint_eq(graph.rung, STEPGRAPH_RUNG_RERECORD);
    ck_assert_uint_eq(graph.why, STEPGRAPH_WHY_UNREGISTERED);
    ck_assert_msg(strstr(graph.words, "node 1  packed  arg 0 +4   0x") != NULL && strstr(graph.words, "64 bytes that no pin covers") != NULL, "%s", graph.words);
}
END_TEST

START_TEST(pins_in_packed_structs_are_replayed)
{
    CUdeviceptr w = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w")), a = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"));
    CUdeviceptr out = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_OUTPUT, 4, "out"));

    ck_assert_uint_eq(twenty_steps(STEPGRAPH_STEP_SCAN_BYTES, w, a, out).rung, STEPGRAPH_RUNG_REPLAY);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop_packed");
    TCase *tc = audit_case(suite, "packed");

    tcase_add_test(tc, memory_without_a_pin_stands_against_a_replay_wherever_its_address_is);
    tcase_add_test(tc, pins_in_packed_structs_are_replayed);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
