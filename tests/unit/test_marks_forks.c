/* Stages by marks, and side streams forked and joined, recorded and in runs. */
#include "support.h"

static stepgraph_pin *pin;

static CUdeviceptr w(void)
{
    return stepgraph_pin_address(pin);
}

static void count(unsigned launches)
{
    while (launches--)
        counted_inc(session, NULL, w(), 1);
}

/* All stages of a step; answers how many. */
static uint32_t stages_of(stepgraph_step *step, stepgraph_stage *to, uint32_t room)
{
    uint32_t n = 0;

    while (n < room) {
        to[n] = (stepgraph_stage)STEPGRAPH_STAGE_INIT;
        if (stepgraph_step_get_stage(step, n, &to[n]) != STEPGRAPH_OK)
            break;
        n++;
    }
    return n;
}

static const stepgraph_stage *stage_named(const stepgraph_stage *stages, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(stages[i].name, name) == 0)
            return &stages[i];
    return NULL;
}

static stepgraph_step *setup_step(uint32_t flags)
{
    pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    return step_make(session, "train", flags);
}

/* ---- stages -------------------------------------------------------------------------------------------------------------- */

static void staged_run(stepgraph_step *step, unsigned before, unsigned forward, unsigned backward, unsigned optimizer)
{
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
    count(before);
    OK(stepgraph_step_mark(step, "forward"));
    count(forward);
    OK(stepgraph_step_mark(step, "backward"));
    count(backward);
    OK(stepgraph_step_mark(step, "optimizer"));
    count(optimizer);
    OK(stepgraph_step_run_end(step));
}

START_TEST(launches_of_a_run_are_split_by_stage)
{
    stepgraph_step *step = setup_step(0);
    stepgraph_stage stage[8];
    uint32_t n;

    staged_run(step, 9, 9, 9, 9); /* The first run never enters. */
    staged_run(step, 1, 2, 3, 4);
    n = stages_of(step, stage, 8);
    ck_assert_uint_eq(n, 4);
    ck_assert_str_eq(stage[0].name, "");
    ck_assert_str_eq(stage[1].name, "forward");
    ck_assert_str_eq(stage[2].name, "backward");
    ck_assert_str_eq(stage[3].name, "optimizer");
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(stage[i].launches, i + 1);
}
END_TEST

START_TEST(launches_of_stages_are_those_of_the_last_run)
{
    stepgraph_step *step = setup_step(0);
    stepgraph_stage stage[8];

    staged_run(step, 1, 1, 1, 1);
    staged_run(step, 0, 5, 5, 5);
    staged_run(step, 0, 7, 6, 2);
    uint32_t n = stages_of(step, stage, 8);
    ck_assert_uint_eq(stage_named(stage, n, "forward")->launches, 7);
    ck_assert_uint_eq(stage_named(stage, n, "backward")->launches, 6);
    ck_assert_uint_eq(stage_named(stage, n, "optimizer")->launches, 2);
}
END_TEST

START_TEST(stages_add_up_to_the_whole_step)
{
    stepgraph_step *step = setup_step(0);
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    stepgraph_stage stage[8];
    uint64_t sum = 0;

    for (int i = 0; i < 4; i++) {
        OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
        count(2);
        OK(stepgraph_step_mark(step, "a"));
        count(3);
        stepgraph_session_count(session, STEPGRAPH_KIND_COPY, 4); /* All kinds but graphs are launches. */
        stepgraph_session_count(session, STEPGRAPH_KIND_SET, 5);
        OK(stepgraph_step_mark(step, "b"));
        stepgraph_session_count(session, STEPGRAPH_KIND_HOST, 6);
        stepgraph_session_count(session, STEPGRAPH_KIND_GRAPH, 1000);
        OK(stepgraph_step_run_end(step));
    }
    uint32_t n = stages_of(step, stage, 8);
    for (uint32_t i = 0; i < n; i++)
        sum += stage[i].launches;
    ck_assert_uint_eq(sum, 2 + 3 + 4 + 5 + 6);
    ck_assert_uint_eq(stage_named(stage, n, "a")->launches, 12);
    OK(stepgraph_step_get_verdict(step, &verdict));
    ck_assert_int_eq(verdict.launches, (int64_t)sum);
}
END_TEST

START_TEST(commits_of_a_stage_are_shown_apart)
{
    stepgraph_step *step;
    stepgraph_pin *scratch = pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4, "fresh");
    stepgraph_stage stage[8];

    step = setup_step(0);
    for (int i = 0; i < 3; i++) {
        OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
        OK(stepgraph_step_mark(step, "forward"));
        count(4);
        OK(stepgraph_step_mark(step, "optimizer"));
        count(2);
        for (int k = 0; k < 3; k++)
            OK(stepgraph_pin_commit(pin, stepgraph_pin_address(scratch)));
        OK(stepgraph_step_run_end(step));
    }
    uint32_t n = stages_of(step, stage, 8);
    ck_assert_uint_eq(stage_named(stage, n, "forward")->launches, 4);
    ck_assert_uint_eq(stage_named(stage, n, "forward")->library_launches, 0);
    ck_assert_uint_eq(stage_named(stage, n, "optimizer")->launches, 2);
    ck_assert_uint_eq(stage_named(stage, n, "optimizer")->library_launches, 3);
}
END_TEST

START_TEST(stage_that_comes_back_is_one_stage)
{
    stepgraph_step *step = setup_step(0);
    stepgraph_stage stage[8];

    for (int i = 0; i < 3; i++) {
        OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
        OK(stepgraph_step_mark(step, "forward"));
        count(1);
        OK(stepgraph_step_mark(step, "backward"));
        count(10);
        OK(stepgraph_step_mark(step, "forward"));
        count(100);
        OK(stepgraph_step_run_end(step));
    }
    uint32_t n = stages_of(step, stage, 8);
    ck_assert_uint_eq(stage_named(stage, n, "forward")->launches, 101);
    ck_assert_uint_eq(stage_named(stage, n, "backward")->launches, 10);
}
END_TEST

START_TEST(nodes_of_a_recording_are_split_by_stage)
{
    stepgraph_step *step = setup_step(0);
    stepgraph_stage stage[8];
    uint64_t sum = 0;

    begin_recording(step);
    count(1);
    OK(stepgraph_step_mark(step, "forward"));
    count(2);
    OK(stepgraph_step_mark(step, "set"));
    CU(MemsetD8Async(w(), 0, 4, stream));
    OK(stepgraph_step_mark(step, "backward"));
    count(4);
    OK(stepgraph_step_end(step));
    uint32_t n = stages_of(step, stage, 8);
    for (uint32_t i = 0; i < n; i++)
        sum += stage[i].nodes;
    ck_assert_uint_eq(sum, step_stats(step).nodes_total);
    ck_assert_uint_eq(stage_named(stage, n, "")->nodes, 1);
    ck_assert_uint_eq(stage_named(stage, n, "forward")->nodes, 2);
    ck_assert_uint_eq(stage_named(stage, n, "set")->nodes, 1);
    ck_assert_uint_eq(stage_named(stage, n, "backward")->nodes, 4);
}
END_TEST

START_TEST(marks_add_no_nodes)
{
    stepgraph_step *step = setup_step(STEPGRAPH_STEP_TIMING);

    begin_recording(step);
    OK(stepgraph_step_mark(step, "a"));
    count(1);
    OK(stepgraph_step_mark(step, "b"));
    count(1);
    OK(stepgraph_step_mark(step, "c"));
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(step_stats(step).nodes_total, 2);
}
END_TEST

START_TEST(stages_are_untimed_unless_asked)
{
    stepgraph_step *step = setup_step(0);
    stepgraph_stage stage[8];

    staged_run(step, 1, 1, 1, 1);
    staged_run(step, 1, 1, 1, 1);
    staged_run(step, 1, 1, 1, 1);
    uint32_t n = stages_of(step, stage, 8);
    ck_assert_uint_eq(n, 4);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_double_lt(stage[i].host_us, 0);
        ck_assert_double_lt(stage[i].device_us, 0);
    }
}
END_TEST

START_TEST(timed_stages_say_where_the_time_goes)
{
    stepgraph_step *step = setup_step(STEPGRAPH_STEP_TIMING);
    stepgraph_stage stage[8];

    for (int i = 0; i < 3; i++) {
        OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
        OK(stepgraph_step_mark(step, "short"));
        count(1);
        OK(stepgraph_step_mark(step, "long"));
        spin(stream, 20);
        OK(stepgraph_step_run_end(step));
    }
    uint32_t n = stages_of(step, stage, 8);
    const stepgraph_stage *brief = stage_named(stage, n, "short"), *lengthy = stage_named(stage, n, "long");
    ck_assert_double_ge(brief->host_us, 0);
    ck_assert_double_ge(lengthy->host_us, 0);
    ck_assert_double_ge(brief->device_us, 0);
    ck_assert_double_ge(lengthy->device_us, 19000); /* The kernel asked for 20 ms; less cannot be. */
}
END_TEST

START_TEST(bad_marks_are_refused)
{
    stepgraph_step *step = setup_step(0);
    char name[32];

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_mark(step, NULL), "");
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_mark(step, NULL), "");
    for (int i = 0; i < 63; i++) {
        snprintf(name, sizeof name, "stage %d", i);
        OK(stepgraph_step_mark(step, name));
    }
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_mark(step, "one too many"), "63");
    OK(stepgraph_step_mark(step, "stage 5")); /* Known already. */
    OK(stepgraph_step_run_end(step));
}
END_TEST

START_TEST(long_stage_names_are_cut_not_overrun)
{
    stepgraph_step *step = setup_step(0);
    stepgraph_stage stage[8];
    char name[200];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    for (int i = 0; i < 2; i++) {
        OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
        OK(stepgraph_step_mark(step, name));
        count(1);
        OK(stepgraph_step_run_end(step));
    }
    uint32_t n = stages_of(step, stage, 8);
    ck_assert_uint_ge(n, 1);
    ck_assert_uint_lt(strlen(stage[n - 1].name), sizeof stage[0].name);
    ck_assert_int_eq(stage[n - 1].name[0], 'n');
}
END_TEST

START_TEST(stage_names_are_copied)
{
    stepgraph_step *step = setup_step(0);
    stepgraph_stage stage[8];

    for (int i = 0; i < 2; i++) {
        char name[] = "forward";
        OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_WARMUP));
        OK(stepgraph_step_mark(step, name));
        memset(name, 'x', sizeof name - 1);
        count(1);
        OK(stepgraph_step_run_end(step));
    }
    uint32_t n = stages_of(step, stage, 8);
    ck_assert_ptr_nonnull(stage_named(stage, n, "forward"));
}
END_TEST

START_TEST(there_is_no_stage_beyond_the_last)
{
    stepgraph_step *step = setup_step(0);
    stepgraph_stage stage = STEPGRAPH_STAGE_INIT;

    staged_run(step, 1, 1, 1, 1);
    staged_run(step, 1, 1, 1, 1);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_get_stage(step, 4, &stage), "");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_get_stage(step, UINT32_MAX, &stage), "");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_get_stage(step, 0, NULL), "");
    stage.size = 0;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_get_stage(step, 0, &stage), "size");
}
END_TEST

/* ---- side streams -------------------------------------------------------------------------------------------------------- */

struct two {
    stepgraph_step *step;
    stepgraph_pin *a, *b, *c;
    CUstream side;
};

static struct two two_make(uint32_t flags)
{
    struct two t = {step_make(session, "forked", flags), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"),
                    pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "c"),
                    stream_make(CU_STREAM_NON_BLOCKING)};

    return t;
}

/* a += 1; then in parallel b = a + 10 (aside) and c = a + 100; then a = b + 0, after the join. */
static void forked_body(const struct two *t)
{
    CUdeviceptr a = stepgraph_pin_address(t->a), b = stepgraph_pin_address(t->b), c = stepgraph_pin_address(t->c);

    inc(stream, a, 1);
    OK(stepgraph_step_fork(t->step, t->side, "side"));
    axpb(t->side, b, a, 10);
    axpb(stream, c, a, 100);
    OK(stepgraph_step_join(t->step, t->side));
    copyf(stream, a, b);
}

START_TEST(forked_recording_equals_the_fresh_run)
{
    struct two t = two_make(0);
    float fresh[3], replayed[3];

    for (int i = 0; i < 4; i++) {
        OK(stepgraph_step_run_begin(t.step, STEPGRAPH_RUN_FRESH));
        forked_body(&t);
        OK(stepgraph_step_run_end(t.step));
    }
    fresh[0] = pin_float(t.a), fresh[1] = pin_float(t.b), fresh[2] = pin_float(t.c);
    for (int i = 0; i < 3; i++)
        put_float(stepgraph_pin_address(i == 0 ? t.a : i == 1 ? t.b : t.c), 0);

    begin_recording(t.step);
    forked_body(&t);
    OK(stepgraph_step_end(t.step));
    ck_assert_uint_eq(step_stats(t.step).nodes[STEPGRAPH_KIND_KERNEL], 4);
    for (int i = 0; i < 4; i++)
        OK(stepgraph_step_replay(t.step));
    replayed[0] = pin_float(t.a), replayed[1] = pin_float(t.b), replayed[2] = pin_float(t.c);
    ck_assert_mem_eq(fresh, replayed, sizeof fresh);
    ck_assert_float_eq(fresh[0], 44);
}
END_TEST

START_TEST(run_orders_side_streams_both_ways)
{
    struct two t = two_make(0);

    OK(stepgraph_step_run_begin(t.step, STEPGRAPH_RUN_FRESH));
    spin(stream, 20);
    setv(stream, stepgraph_pin_address(t.a), 5);
    OK(stepgraph_step_fork(t.step, t.side, "side"));
    spin(t.side, 20);
    axpb(t.side, stepgraph_pin_address(t.b), stepgraph_pin_address(t.a), 1); /* After the 5. */
    OK(stepgraph_step_join(t.step, t.side));
    axpb(stream, stepgraph_pin_address(t.c), stepgraph_pin_address(t.b), 1); /* After the 6. */
    OK(stepgraph_step_run_end(t.step));
    ck_assert_float_eq(pin_float(t.c), 7);
}
END_TEST

START_TEST(stream_may_be_forked_again_after_its_join)
{
    struct two t = two_make(0);

    begin_recording(t.step);
    for (int i = 0; i < 5; i++) {
        OK(stepgraph_step_fork(t.step, t.side, "side"));
        inc(t.side, stepgraph_pin_address(t.b), 1);
        OK(stepgraph_step_join(t.step, t.side));
    }
    OK(stepgraph_step_end(t.step));
    OK(stepgraph_step_replay(t.step));
    ck_assert_float_eq(pin_float(t.b), 5);
}
END_TEST

START_TEST(two_side_streams_are_kept_apart)
{
    struct two t = two_make(0);
    CUstream other = stream_make(CU_STREAM_NON_BLOCKING);

    begin_recording(t.step);
    OK(stepgraph_step_fork(t.step, t.side, "left"));
    OK(stepgraph_step_fork(t.step, other, "right"));
    inc(t.side, stepgraph_pin_address(t.a), 1);
    inc(other, stepgraph_pin_address(t.b), 2);
    OK(stepgraph_step_join(t.step, other));
    OK(stepgraph_step_join(t.step, t.side));
    inc(stream, stepgraph_pin_address(t.c), 3);
    OK(stepgraph_step_end(t.step));
    OK(stepgraph_step_replay(t.step));
    ck_assert_float_eq(pin_float(t.a), 1);
    ck_assert_float_eq(pin_float(t.b), 2);
    ck_assert_float_eq(pin_float(t.c), 3);
}
END_TEST

/* Both are usable afterwards. */
static void streams_work_again(struct two *t)
{
    OK(stepgraph_step_reset(t->step));
    inc(t->side, stepgraph_pin_address(t->b), 1);
    CU(StreamSynchronize(t->side));
    begin_recording(t->step);
    forked_body(t);
    OK(stepgraph_step_end(t->step));
    OK(stepgraph_step_replay(t->step));
    OK(stepgraph_session_wait(session));
}

START_TEST(k12_unjoined_side_stream_is_named)
{
    struct two t = two_make(0);
    CUstream other = stream_make(CU_STREAM_NON_BLOCKING);
    stepgraph_status status;

    begin_recording(t.step);
    OK(stepgraph_step_fork(t.step, other, "joined.one"));
    OK(stepgraph_step_fork(t.step, t.side, "copy.stream"));
    if (_i == 0) /* Without work it would pass the driver. */
        inc(t.side, stepgraph_pin_address(t.b), 1);
    inc(stream, stepgraph_pin_address(t.a), 1);
    OK(stepgraph_step_join(t.step, other));
    status = stepgraph_step_end(t.step);
    ck_assert_msg(status == STEPGRAPH_ERR_CAPTURE || status == STEPGRAPH_ERR_REFUSED, "%s: %s", stepgraph_status_name(status),
                  last_words());
    ck_assert_msg(lacks(last_words(), (const char *[]){"copy.stream", "join", NULL}) == NULL, "%s", last_words());
    ck_assert_msg(strstr(last_words(), "joined.one") == NULL, "%s", last_words());
    STATE_IS(t.step, STEPGRAPH_STEP_FAILED);
    ck_assert_float_eq(pin_float(t.a), 0);
    streams_work_again(&t);
}
END_TEST

START_TEST(work_after_the_join_is_refused)
{
    struct two t = two_make(0);
    stepgraph_status status;

    begin_recording(t.step);
    OK(stepgraph_step_fork(t.step, t.side, "late.stream"));
    inc(t.side, stepgraph_pin_address(t.b), 1);
    OK(stepgraph_step_join(t.step, t.side));
    inc(t.side, stepgraph_pin_address(t.b), 1); /* Nothing waits for this one. */
    status = stepgraph_step_end(t.step);
    ck_assert_msg(status == STEPGRAPH_ERR_CAPTURE || status == STEPGRAPH_ERR_REFUSED, "%s: %s", stepgraph_status_name(status),
                  last_words());
    streams_work_again(&t);
}
END_TEST

START_TEST(recording_with_forks_can_be_reset_or_destroyed)
{
    struct two t = two_make(0);

    begin_recording(t.step);
    OK(stepgraph_step_fork(t.step, t.side, "side"));
    inc(t.side, stepgraph_pin_address(t.b), 1);
    if (_i == 0) {
        streams_work_again(&t);
        return;
    }
    drop_step(t.step);
    t.step = step_make(session, "next", 0);
    streams_work_again(&t);
}
END_TEST

START_TEST(bad_forks_and_joins_are_refused_and_harmless)
{
    struct two t = two_make(0);

    begin_recording(t.step);
    inc(stream, stepgraph_pin_address(t.a), 1);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_fork(t.step, stream, "own"), "forked");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_fork(t.step, NULL, "legacy"), "legacy");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_fork(t.step, CU_STREAM_LEGACY, "legacy"), "legacy");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_join(t.step, t.side), "");
    OK(stepgraph_step_fork(t.step, t.side, "side"));
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_fork(t.step, t.side, "again"), "side");
    inc(t.side, stepgraph_pin_address(t.b), 1);
    OK(stepgraph_step_join(t.step, t.side));
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_step_join(t.step, t.side), "");
    OK(stepgraph_step_end(t.step));
    OK(stepgraph_step_replay(t.step));
    ck_assert_float_eq(pin_float(t.a), 1);
    ck_assert_float_eq(pin_float(t.b), 1);
}
END_TEST

START_TEST(run_with_an_unjoined_side_stream_stays_open)
{
    struct two t = two_make(0);

    OK(stepgraph_step_run_begin(t.step, STEPGRAPH_RUN_FRESH));
    OK(stepgraph_step_fork(t.step, t.side, "copy.stream"));
    inc(t.side, stepgraph_pin_address(t.b), 1);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_run_end(t.step), "copy.stream", "join");
    ck_assert_uint_eq(step_stats(t.step).fresh_runs, 0);
    OK(stepgraph_step_join(t.step, t.side));
    OK(stepgraph_step_run_end(t.step));
    ck_assert_uint_eq(step_stats(t.step).fresh_runs, 1);
    ck_assert_float_eq(pin_float(t.b), 1);
}
END_TEST

START_TEST(fork_names_are_copied)
{
    struct two t = two_make(0);
    char name[] = "brief";

    OK(stepgraph_step_run_begin(t.step, STEPGRAPH_RUN_FRESH));
    OK(stepgraph_step_fork(t.step, t.side, name));
    memset(name, 'x', sizeof name - 1);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_run_end(t.step), "brief");
    OK(stepgraph_step_join(t.step, t.side));
    OK(stepgraph_step_run_end(t.step));
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("marks and forks");
    TCase *stages = unit_case(suite, "stages"), *sides = unit_case(suite, "side streams");

    tcase_add_test(stages, launches_of_a_run_are_split_by_stage);
    tcase_add_test(stages, launches_of_stages_are_those_of_the_last_run);
    tcase_add_test(stages, stages_add_up_to_the_whole_step);
    tcase_add_test(stages, commits_of_a_stage_are_shown_apart);
    tcase_add_test(stages, stage_that_comes_back_is_one_stage);
    tcase_add_test(stages, nodes_of_a_recording_are_split_by_stage);
    tcase_add_test(stages, marks_add_no_nodes);
    tcase_add_test(stages, stages_are_untimed_unless_asked);
    tcase_add_test(stages, timed_stages_say_where_the_time_goes);
    tcase_add_test(stages, bad_marks_are_refused);
    tcase_add_test(stages, long_stage_names_are_cut_not_overrun);
    tcase_add_test(stages, stage_names_are_copied);
    tcase_add_test(stages, there_is_no_stage_beyond_the_last);

    tcase_add_test(sides, forked_recording_equals_the_fresh_run);
    tcase_add_test(sides, run_orders_side_streams_both_ways);
    tcase_add_test(sides, stream_may_be_forked_again_after_its_join);
    tcase_add_test(sides, two_side_streams_are_kept_apart);
    tcase_add_loop_test(sides, k12_unjoined_side_stream_is_named, 0, 2);
    tcase_add_test(sides, work_after_the_join_is_refused);
    tcase_add_loop_test(sides, recording_with_forks_can_be_reset_or_destroyed, 0, 2);
    tcase_add_test(sides, bad_forks_and_joins_are_refused_and_harmless);
    tcase_add_test(sides, run_with_an_unjoined_side_stream_stays_open);
    tcase_add_test(sides, fork_names_are_copied);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
