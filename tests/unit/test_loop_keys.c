/* Several graphs of a loop: which are kept within the bound and the budget. */
#include "looping.h"

static void go_keys(uint64_t from, uint64_t to, uint64_t keys)
{
    for (uint64_t k = from; k < to; k++) {
        turn.key = k % keys;
        take(k, count_one);
    }
}

START_TEST(each_key_has_a_graph)
{
    stepgraph_loop_config config = config_with(0);
    stepgraph_loop_graph graph = STEPGRAPH_LOOP_GRAPH_INIT;

    loop_make(&config);
    go_keys(0, 80, 3);
    ck_assert_float_eq(pin_float(weight), 80);
    ck_assert_uint_eq(stats_now().graphs, 3);
    for (uint32_t i = 0; i < 3; i++) {
        OK(stepgraph_loop_get_graph(loop, i, &graph));
        ck_assert_uint_eq(graph.key, i);
        ck_assert_uint_eq(graph.rung, STEPGRAPH_RUNG_REPLAY);
        ck_assert_uint_eq(graph.nodes, 1);
        ck_assert_uint_gt(graph.device_bytes, 0);
        ck_assert_uint_gt(graph.host_bytes, 0);
    }
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_get_graph(loop, 3, &graph), "index 3");
}
END_TEST

START_TEST(k25_keys_beyond_the_bound_are_launched_and_not_recorded_in_turn)
{
    stepgraph_loop_config config = config_with(0);

    config.max_graphs = 2;
    loop_make(&config);
    go_keys(0, 600, 3);
    ck_assert_float_eq(pin_float(weight), 600);
    ck_assert_uint_eq(stats_now().recordings, 4);
    ck_assert_uint_eq(stats_now().graphs, 2);
    ck_assert_uint_eq(stats_now().causes[STEPGRAPH_WHY_BOUND], 200);
}
END_TEST

START_TEST(k25_least_recently_used_graph_makes_room)
{
    stepgraph_loop_config config = config_with(0);
    stepgraph_loop_graph graph = STEPGRAPH_LOOP_GRAPH_INIT;

    config.max_graphs = 2;
    loop_make(&config);
    go_keys(0, 40, 2);
    turn.key = 0;
    for (uint64_t k = 40; k < 60; k++)
        take(k, count_one);
    turn.key = 7;
    for (uint64_t k = 60; k < 80; k++)
        take(k, count_one);
    ck_assert_float_eq(pin_float(weight), 80);
    ck_assert_uint_eq(stats_now().graphs_dropped, 1);
    ck_assert_uint_eq(stats_now().graphs, 2);
    OK(stepgraph_loop_get_graph(loop, 0, &graph));
    ck_assert_uint_eq(graph.key, 0);
    OK(stepgraph_loop_get_graph(loop, 1, &graph));
    ck_assert_uint_eq(graph.key, 7);
    ck_assert_uint_eq(graph.rung, STEPGRAPH_RUNG_REPLAY);
}
END_TEST

/* Of several the one that was used longest ago, and none before four turns for each lane have gone by. */
START_TEST(k25_key_that_is_idle_longest_makes_room)
{
    enum { LANES = 3, IDLE = 4 * LANES };
    /* So many turns of the last key, before which each of the others had one. */
    static const uint64_t alone[] = {IDLE - LANES, IDLE - LANES + 1, 2 * IDLE};
    stepgraph_loop_config config = config_with(0);
    stepgraph_loop_graph graph = STEPGRAPH_LOOP_GRAPH_INIT;
    uint64_t k = 60;

    config.max_graphs = LANES;
    loop_make(&config);
    go_keys(0, k, LANES);
    turn.key = LANES - 1;
    go(k, k + alone[_i], count_one);
    k += alone[_i];
    turn.key = 7;
    go(k, k + 20, count_one);
    ck_assert_float_eq(pin_float(weight), (float)(k + 20));
    ck_assert_uint_eq(stats_now().causes[STEPGRAPH_WHY_BOUND], _i == 0);
    ck_assert_uint_eq(stats_now().graphs_dropped, 1);
    OK(stepgraph_loop_get_graph(loop, 0, &graph)); /* Where that of key 0 was. */
    ck_assert_uint_eq(graph.key, 7);
    OK(stepgraph_loop_get_graph(loop, 1, &graph));
    ck_assert_uint_eq(graph.key, 1);
}
END_TEST

START_TEST(key_without_a_graph_gives_none_up)
{
    stepgraph_loop_config config = config_with(0);

    config.max_graphs = 1;
    loop_make(&config);
    go(0, 20, train_waiting);
    RUNG(FRESH, BROKEN);
    turn.key = 1;
    go(20, 40, count_one);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(stats_now().graphs_dropped, 0);
    ck_assert_float_eq(pin_float(weight), 40);
}
END_TEST

START_TEST(k25_idle_graph_makes_room_within_the_budget)
{
    stepgraph_loop_config config = config_with(0);

    config.graph_bytes = bytes_of_one_graph();
    config.max_graphs = 2;
    loop_make(&config);
    go(0, 20, count_one);
    RUNG(REPLAY, NONE);
    turn.key = 1;
    go(20, 26, count_one); /* The other may still be wanted. */
    RUNG(FRESH, MEMORY);
    ck_assert_uint_eq(stats_now().graphs, 1);
    ck_assert_uint_eq(stats_now().graphs_dropped, 0);
    go(26, 200, count_one);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(stats_now().graphs, 1);
    ck_assert_uint_eq(stats_now().graphs_dropped, 1);
    ck_assert_float_eq(pin_float(weight), 200);
}
END_TEST

/* Also those of keys that are gone, with a first recording or a third one. */
START_TEST(executables_are_counted_as_the_driver_does)
{
    unsigned long made = driver_calls("cuGraphInstantiateWithParams"), updated = driver_calls("cuGraphExecUpdate");
    stepgraph_loop_config config = config_with(0);
    double saved;

    config.max_graphs = 1;
    loop_make(&config);
    go(0, 4, count_one);
    TURNS(RECORD, 1);
    turn.key = 1;
    go(4, 30, train_by_value_in_forms);
    ck_assert_uint_gt(stats_now().turns[STEPGRAPH_TURN_LOOK], 0);
    RUNG(FRESH, UPDATE);
    turn.key = 2;
    go(30, 50, count_one);
    RUNG(REPLAY, NONE);
    saved = stats_now().seconds_saved;
    turn.key = 3;
    go(50, 56, count_one); /* Launches. */
    ck_assert_uint_eq(stats_now().graphs_dropped, 1);
    ck_assert_double_ne(saved, 0);
    ck_assert_double_eq(stats_now().seconds_saved, saved);
    ck_assert_uint_eq(stats_now().updates_refused, 3);
    ck_assert_uint_eq(stats_now().instantiations, driver_calls("cuGraphInstantiateWithParams") - made);
    ck_assert_uint_eq(stats_now().updates + stats_now().updates_refused, driver_calls("cuGraphExecUpdate") - updated);
}
END_TEST

START_TEST(k25_graph_beyond_the_budget_is_not_made)
{
    stepgraph_loop_config config = config_with(0);

    config.graph_bytes = 100;
    loop_make(&config);
    go(0, 100, count_one);
    ck_assert_float_eq(pin_float(weight), 100);
    RUNG(FRESH, MEMORY);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "budget"));
    ck_assert_uint_eq(stats_now().instantiations, 0);
}
END_TEST

/* Gradients are accumulated over some micro-steps, and then the weights are updated: two graphs. */
static void accumulate(uint64_t k)
{
    CUdeviceptr gradient = stepgraph_pin_address(fresh), x = stepgraph_pin_address(input), by = stepgraph_pin_address(rate);
    int n = N;

    (void)k;
    launch_n(kernels.update, N, (void *[]){&gradient, &gradient, &x, &by, &n});
}

static void apply(uint64_t k)
{
    CUdeviceptr w = stepgraph_pin_address(weight), gradient = stepgraph_pin_address(fresh), by = stepgraph_pin_address(rate);
    float zero = 0;
    int n = N;

    (void)k;
    launch_n(kernels.update, N, (void *[]){&w, &w, &gradient, &by, &n});
    launch_n(kernels.setv, 1, (void *[]){&gradient, &zero});
}

START_TEST(accumulation_takes_a_graph_for_each_phase)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], zeros[N] = {0};

    drop_pin(fresh);
    fresh = pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, "gradient");
    for (uint64_t k = 0; k < 120; k++) {
        feed(k);
        OK(stepgraph_session_flush(session));
        (k % 4 == 3 ? apply : accumulate)(k);
    }
    OK(stepgraph_pin_read(weight, want, BYTES));
    OK(stepgraph_pin_write(weight, zeros, BYTES));
    OK(stepgraph_pin_write(fresh, zeros, BYTES));
    loop_make(&config);
    for (uint64_t k = 0; k < 120; k++) {
        turn.key = k % 4 == 3 ? 1 : 0;
        take(k, turn.key == 1 ? apply : accumulate);
    }
    same_as(want);
    ck_assert_uint_eq(stats_now().graphs, 2);
    ck_assert_uint_gt(stats_now().turns[STEPGRAPH_TURN_REPLAY], 100);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop keys");
    TCase *keys = loop_case(suite, "keys");

    tcase_add_test(keys, each_key_has_a_graph);
    tcase_add_test(keys, k25_keys_beyond_the_bound_are_launched_and_not_recorded_in_turn);
    tcase_add_test(keys, k25_least_recently_used_graph_makes_room);
    tcase_add_loop_test(keys, k25_key_that_is_idle_longest_makes_room, 0, 3);
    tcase_add_test(keys, key_without_a_graph_gives_none_up);
    tcase_add_test(keys, k25_idle_graph_makes_room_within_the_budget);
    add_controlled_test(keys, executables_are_counted_as_the_driver_does);
    tcase_add_test(keys, k25_graph_beyond_the_budget_is_not_made);
    tcase_add_test(keys, accumulation_takes_a_graph_for_each_phase);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
