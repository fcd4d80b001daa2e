/* The graph as a picture and as data. */
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "findings.h"

static char path[64];

/* A file that only this test has, and its content. */
static const char *drawn(const stepgraph_step *step, stepgraph_drawing form)
{
    static char text[1 << 20];
    FILE *file;
    size_t n;

    if (path[0] == '\0') {
        strcpy(path, "/tmp/stepgraph-draw-XXXXXX");
        int fd = mkstemp(path);
        ck_assert_int_ge(fd, 0);
        close(fd);
    }
    OK(stepgraph_step_draw(step, form, path));
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

static void clean_up(void)
{
    if (path[0] != '\0')
        unlink(path);
    path[0] = '\0';
}

/* Two stages, a fork, and names that need quoting. */
static stepgraph_step *example(void)
{
    CUdeviceptr w = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w \"quoted\" \\ back"));
    CUdeviceptr loss = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_OUTPUT, 4, "loss"));
    CUdeviceptr pool = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_SCRATCH, 64, "pool"));
    CUstream side = stream_make(CU_STREAM_NON_BLOCKING);
    stepgraph_step *step = recording("train \"it\"", 0);

    OK(stepgraph_step_mark(step, "forward"));
    axpb(stream, pool, w, 1);
    OK(stepgraph_step_fork(step, side, "side"));
    axpb(side, pool + 16, w, 1);
    axpb(stream, loss, pool, 1);
    OK(stepgraph_step_mark(step, "optimizer"));
    OK(stepgraph_step_join(step, side));
    inc(stream, w, 1);
    CU(MemsetD8Async(pool, 0, 16, stream));
    ready(step);
    return step;
}

static int holds(const char *text, const char *words)
{
    return strstr(text, words) != NULL;
}

START_TEST(picture_has_nodes_edges_stages_and_pins)
{
    const char *text = drawn(example(), STEPGRAPH_DRAW_DOT);

    ck_assert_msg(holds(text, "digraph \"train \\\"it\\\"\" {"), "%s", text);
    ck_assert_msg(holds(text, "label=\"forward\"") && holds(text, "label=\"optimizer\""), "%s", text);
    ck_assert_msg(holds(text, "n0 [label=\"axpb\"]") && holds(text, "n3 [label=\"inc\"]") && holds(text, "n4 [label=\"set\"]"),
                  "%s", text);
    ck_assert_msg(holds(text, "n0 -> n1 [label=\"w \\\"quoted\\\" \\\\ back\"]"), "%s", text);
    ck_assert_msg(holds(text, "n0 -> n2;"), "%s", text); /* Scratch passes, and is left out. */
    ck_assert_msg(holds(text, "n1 -> n3 [label=\"w ") && holds(text, "n2 -> n3") && holds(text, "n3 -> n4"), "%s", text);
    ck_assert_msg(!holds(text, "pool"), "%s", text);
}
END_TEST

START_TEST(graphviz_takes_the_picture)
{
    char command[160];
    int code;

    if (system("dot -V 2>/dev/null") != 0) {
        unit_skip("graphviz_takes_the_picture", "dot is not installed");
        return;
    }
    drawn(example(), STEPGRAPH_DRAW_DOT);
    snprintf(command, sizeof command, "dot -Tplain '%s' >/dev/null", path);
    code = system(command);
    ck_assert_int_eq(code, 0);
}
END_TEST

START_TEST(data_is_json_with_nodes_edges_and_pins)
{
    const char *text = drawn(example(), STEPGRAPH_DRAW_JSON);

    ck_assert_msg(json_fault(text) == NULL, "%s in %s", json_fault(text), text);
    ck_assert_msg(holds(text, "\"step\": \"train \\\"it\\\"\""), "%s", text);
    ck_assert_msg(holds(text, "{\"index\": 0, \"kind\": \"kernel\", \"name\": \"axpb\", \"stage\": \"forward\", \"pins\": ["),
                  "%s", text);
    ck_assert_msg(
        holds(text, "{\"index\": 4, \"kind\": \"set\", \"name\": \"set\", \"stage\": \"optimizer\", \"pins\": [\"pool\"]}"), "%s",
        text);
    ck_assert_msg(holds(text, "\"edges\": [[0, 1], [0, 2], [1, 3], [2, 3], [3, 4]]"), "%s", text);
}
END_TEST

START_TEST(relaxed_step_is_drawn_in_the_order_that_it_needs)
{
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_step *step = example();
    const char *text;

    config.lanes = 2;
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_draw(step, STEPGRAPH_DRAW_NEEDED, path), "not relaxed", "stepgraph_step_relax()");
    OK(stepgraph_step_relax(step, &config, NULL));
    text = drawn(step, STEPGRAPH_DRAW_NEEDED);
    ck_assert_msg(holds(text, "label=\"optimizer\"") && holds(text, "n1 -> n4") && holds(text, "n2 -> n4"), "%s", text);
    ck_assert_msg(!holds(text, "n3 -> n4") && !holds(text, "n2 -> n3"), "%s", text);
    text = drawn(step, STEPGRAPH_DRAW_DOT);
    ck_assert_msg(holds(text, "n3 -> n4") && holds(text, "n2 -> n3"), "%s", text);
    text = drawn(step, STEPGRAPH_DRAW_JSON);
    ck_assert_msg(json_fault(text) == NULL, "%s in %s", json_fault(text), text);
    ck_assert_msg(holds(text, "\"edges\": [[0, 1], [0, 2], [1, 3], [2, 3], [3, 4]]"), "%s", text);
    ck_assert_msg(holds(text, "\"needed\": [[0, 1], [0, 2], [1, 3], [1, 4], [2, 4]]"), "%s", text);
}
END_TEST

/* A set that begins in one pin and ends in the next; an address right behind a pin is none of it. */
START_TEST(pins_that_a_set_reaches_are_told)
{
    CUdeviceptr memory = device_make(1024);
    stepgraph_step *step;
    const char *text;

    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, 256, "one");
    pin_adopt(session, STEPGRAPH_ROLE_STATE, memory + 256, 256, "two");
    step = recording("reach", 0);
    CU(MemsetD8Async(memory + 192, 0, 128, stream));
    CU(MemsetD8Async(memory + 128, 0, 128, stream));
    CU(MemsetD8Async(memory + 256, 0, 128, stream));
    ready(step);
    text = drawn(step, STEPGRAPH_DRAW_JSON);
    ck_assert_msg(holds(text, "{\"index\": 0, \"kind\": \"set\", \"name\": \"set\", \"stage\": \"\", \"pins\": [\"one\", \"two\"]}"), "%s", text);
    ck_assert_msg(holds(text, "{\"index\": 1, \"kind\": \"set\", \"name\": \"set\", \"stage\": \"\", \"pins\": [\"one\"]}"), "%s", text);
    ck_assert_msg(holds(text, "{\"index\": 2, \"kind\": \"set\", \"name\": \"set\", \"stage\": \"\", \"pins\": [\"two\"]}"), "%s", text);
}
END_TEST

START_TEST(programmatic_launches_are_drawn_with_all_others)
{
    CUdeviceptr w = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"));
    stepgraph_step *step = recording("early", 0);
    const char *text;

    inc(stream, w, 1);
    inc_early(stream, w, 1);
    inc(stream, w, 1);
    ready(step);
    text = drawn(step, STEPGRAPH_DRAW_JSON);
    ck_assert_msg(holds(text, "\"edges\": [[0, 1], [1, 2]]"), "%s", text);
}
END_TEST

START_TEST(large_graph_is_drawn_whole)
{
    enum { N = 3000 };
    CUdeviceptr p = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"));
    stepgraph_step *step = recording("large", 0);
    const char *text;
    unsigned edges = 0;

    for (int i = 0; i < N; i++)
        inc(stream, p, 1);
    ready(step);
    text = drawn(step, STEPGRAPH_DRAW_DOT);
    for (const char *at = text; (at = strstr(at, " -> ")) != NULL; at++)
        edges++;
    ck_assert_uint_eq(edges, N - 1);
    ck_assert_ptr_nonnull(strstr(text, "n2998 -> n2999 [label=\"w\"]"));
}
END_TEST

START_TEST(file_is_overwritten)
{
    stepgraph_step *step = example();
    char once[8];

    memcpy(once, drawn(step, STEPGRAPH_DRAW_DOT), sizeof once);
    OK(stepgraph_step_draw(step, STEPGRAPH_DRAW_JSON, path));
    OK(stepgraph_step_draw(step, STEPGRAPH_DRAW_DOT, path));
    ck_assert_mem_eq(once, "digraph ", 8);
}
END_TEST

START_TEST(file_that_cannot_be_written_is_refused_by_name)
{
    stepgraph_step *step = example();

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_draw(step, STEPGRAPH_DRAW_DOT, "/nowhere/at/all.dot"), "/nowhere/at/all.dot",
          strerror(ENOENT));
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_draw(step, STEPGRAPH_DRAW_DOT, "/tmp"), "/tmp", strerror(EISDIR));
    if (access("/dev/full", W_OK) == 0)
        FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_draw(step, STEPGRAPH_DRAW_JSON, "/dev/full"), "/dev/full", strerror(ENOSPC));
    STATE_IS(step, STEPGRAPH_STEP_READY);
    OK(stepgraph_step_replay(step));
}
END_TEST

/* So large that the file is full long before it is closed. */
START_TEST(full_disk_is_noticed_early_too)
{
    CUdeviceptr p = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"));
    stepgraph_step *step = recording("large", 0);

    for (int i = 0; i < 3000; i++)
        inc(stream, p, 1);
    ready(step);
    if (access("/dev/full", W_OK) == 0)
        FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_draw(step, STEPGRAPH_DRAW_DOT, "/dev/full"), "/dev/full", strerror(ENOSPC));
}
END_TEST

START_TEST(only_ready_steps_are_drawn)
{
    stepgraph_step *step = step_make(session, "idle", 0);

    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_draw(step, STEPGRAPH_DRAW_DOT, "/tmp/none"), "idle", "record it first");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_draw(NULL, STEPGRAPH_DRAW_DOT, "/tmp/none"), "the step");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_draw(step, STEPGRAPH_DRAW_DOT, NULL), "the path");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_draw(example(), (stepgraph_drawing)4, "/tmp/none"), "form", "4");
    ck_assert_int_ne(access("/tmp/none", F_OK), 0);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("draw");
    TCase *tc = audit_case(suite, "a: draw");

    tcase_add_checked_fixture(tc, NULL, clean_up);
    tcase_add_test(tc, picture_has_nodes_edges_stages_and_pins);
    tcase_add_test(tc, graphviz_takes_the_picture);
    tcase_add_test(tc, data_is_json_with_nodes_edges_and_pins);
    tcase_add_test(tc, relaxed_step_is_drawn_in_the_order_that_it_needs);
    tcase_add_test(tc, pins_that_a_set_reaches_are_told);
    tcase_add_test(tc, programmatic_launches_are_drawn_with_all_others);
    tcase_add_test(tc, large_graph_is_drawn_whole);
    tcase_add_test(tc, file_is_overwritten);
    tcase_add_test(tc, file_that_cannot_be_written_is_refused_by_name);
    tcase_add_test(tc, full_disk_is_noticed_early_too);
    tcase_add_test(tc, only_ready_steps_are_drawn);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
