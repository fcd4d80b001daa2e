/*
 * The checker with hosts and steps of other kinds than the plain trainer's: an evaluation, a state that alternates, callbacks that read what
 * they should not need; and what of theirs a check leaves alone.
 */
#include "trainer.h"

START_TEST(late_arm_delay_beyond_timeout)
{
    recorded_in_order();
    t.config.timeout_ns = 400 * 1000000ull;
    t.config.delay_ns = 2 * t.config.timeout_ns;
    checked();
    CU(StreamSynchronize(t.feeder));
    CU(StreamSynchronize(stream));
    OK(stepgraph_session_wait(session));
    VERDICT(STEPGRAPH_IDENTICAL);
}
END_TEST

START_TEST(strict_step_beside_a_checked_one)
{
    stepgraph_step *other = step_make(session, "other", STEPGRAPH_STEP_STRICT_FEEDS | STEPGRAPH_STEP_ALLOW_UNREGISTERED);

    OK(feed(NULL, NULL, 10));
    begin_recording(other);
    copyf(stream, stepgraph_pin_address(t.loss), stepgraph_pin_address(t.x));
    OK(stepgraph_step_end(other));
    recorded();
    OK(feed(NULL, NULL, 10));
    OK(stepgraph_step_replay(other));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(other), "was not fed");
    checked_as(STEPGRAPH_IDENTICAL);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(other), "was not fed");
}
END_TEST

/* Nor does a check, which puts its output back, count as the run of a step that writes what another one has recorded. */
START_TEST(checked_step_is_no_run_of_another_ones_output)
{
    stepgraph_step *other = step_make(session, "other", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    float loss;

    recorded();
    OK(feed(NULL, NULL, 9));
    OK(stepgraph_step_replay(t.step));
    begin_recording(other);
    copyf(stream, stepgraph_pin_address(t.loss), stepgraph_pin_address(t.x));
    OK(stepgraph_step_end(other));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_read(t.loss, &loss, sizeof loss), "other");
    checked_as(STEPGRAPH_IDENTICAL);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_read(t.loss, &loss, sizeof loss), "other");
    stepgraph_check_destroy(t.check);
    t.config.flags |= STEPGRAPH_CHECK_ADVANCE;
    checked_as(STEPGRAPH_IDENTICAL);
    OK(stepgraph_pin_read(t.loss, &loss, sizeof loss));
}
END_TEST

static stepgraph_status feed_reading_loss(void *user, stepgraph_step *step, uint64_t k)
{
    float loss;
    if (k > 10) {
        stepgraph_status status = stepgraph_pin_read(t.loss, &loss, sizeof loss);
        if (status != STEPGRAPH_OK)
            return status;
    }
    return feed(user, step, k);
}

START_TEST(feed_may_read_the_last_loss)
{
    recorded();
    t.config.feed = feed_reading_loss;
    if (_i) {
        OK(feed(NULL, NULL, 9));
        OK(stepgraph_step_replay(t.step));
    }
    checked_as(STEPGRAPH_IDENTICAL);
}
END_TEST

static stepgraph_pin *sign, *two;

static stepgraph_status enqueue_toggle(void *user, stepgraph_step *step, uint64_t k)
{
    CUdeviceptr s = stepgraph_pin_address(sign);
    (void)user, (void)step, (void)k;
    update(stream, s, s, s, stepgraph_pin_address(two), 1);
    return STEPGRAPH_OK;
}

START_TEST(state_that_alternates_changes)
{
    sign = typed(STEPGRAPH_ROLE_STATE, 4, "sign", STEPGRAPH_TYPE_F32);
    two = typed(STEPGRAPH_ROLE_CELL, 4, "two", STEPGRAPH_TYPE_F32);
    drop_pin(t.loss);
    put_float(stepgraph_pin_address(sign), 1.0f);
    OK(stepgraph_pin_feed_f32(two, -2.0f));
    OK(stepgraph_session_flush(session));
    t.config.enqueue = enqueue_toggle;
    t.config.feed = NULL;
    t.config.steps = 2 + (uint32_t)_i;
    recorded_as("toggle", 0);
    checked();
    NO_FACT("sign", STEPGRAPH_CHECK_UNCHANGED);
    VERDICT(STEPGRAPH_IDENTICAL);
}
END_TEST

static stepgraph_pin *pair;
static int leave_out;

static stepgraph_status enqueue_pair(void *user, stepgraph_step *step, uint64_t k)
{
    if (!(recording() && leave_out))
        CU(MemsetD8Async(stepgraph_pin_address(pair) + 4, 0xff, 4, stream));
    copyf(stream, stepgraph_pin_address(pair), stepgraph_pin_address(t.w));
    return enqueue(user, step, k);
}

START_TEST(output_of_all_ones_left_out)
{
    pair = typed(STEPGRAPH_ROLE_OUTPUT, 8, "pair", STEPGRAPH_TYPE_I32);
    leave_out = _i;
    t.config.enqueue = enqueue_pair;
    OK(feed(NULL, NULL, 10));
    recorded_as("train", 0);
    put_bytes(stepgraph_pin_address(pair), (int[]){ 3, 4 }, 8);
    checked();
    VERDICT(leave_out ? STEPGRAPH_DIVERGED : STEPGRAPH_IDENTICAL);
}
END_TEST

static stepgraph_pin *copyof;
static int in_place;

static stepgraph_status enqueue_in_place(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user, (void)step, (void)k;
    if (in_place)
        inc(stream, stepgraph_pin_address(t.x), 1.0f);
    copyf(stream, stepgraph_pin_address(t.tmp), stepgraph_pin_address(t.rate)); /* dead read */
    axpb(stream, stepgraph_pin_address(copyof), stepgraph_pin_address(t.x), 0.5f);
    copyf(stream, stepgraph_pin_address(t.loss), stepgraph_pin_address(t.x));
    return STEPGRAPH_OK;
}

START_TEST(feed_changed_in_place_is_no_proof)
{
    in_place = _i;
    copyof = typed(STEPGRAPH_ROLE_STATE, 4, "copyof", STEPGRAPH_TYPE_F32);
    t.config.enqueue = enqueue_in_place;
    t.config.plant = copyof;
    OK(feed(NULL, NULL, 10));
    recorded_as("train", 0);
    checked();
    FACT("rate", STEPGRAPH_CHECK_UNREAD);
    VERDICT(STEPGRAPH_UNPROVEN);
}
END_TEST

static stepgraph_pin *table;

static stepgraph_status enqueue_const(void *user, stepgraph_step *step, uint64_t k)
{
    if (recording())
        setv(stream, stepgraph_pin_address(table), 9.0f);
    else
        setv(stream, stepgraph_pin_address(t.tmp) + 900, 9.0f);
    return enqueue(user, step, k);
}

START_TEST(constant_that_only_a_replay_writes_is_named)
{
    table = typed(STEPGRAPH_ROLE_CONST, 4, "table", STEPGRAPH_TYPE_F32);
    put_float(stepgraph_pin_address(table), 2.0f);
    t.config.enqueue = enqueue_const;
    OK(feed(NULL, NULL, 10));
    recorded_as("train", 0);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_check_run(t.step, &t.config, &t.check), "its replay writes pin 'table'");
}
END_TEST

static int rewind_wrong;

static stepgraph_status rewind_reading(void *user, uint64_t k)
{
    float want = k == 10 ? 1.0f : 0.5f, got = float_at(stepgraph_pin_address(t.w));
    if (got != want) {
        rewind_wrong++;
    }
    return rewind_to(user, k);
}

START_TEST(rewind_finds_pins_restored)
{
    rewind_wrong = 0;
    t.stale = 1;
    recorded();
    t.config.rewind = rewind_reading;
    checked_as(STEPGRAPH_DIVERGED);
    ck_assert_int_eq(rewind_wrong, 0);
}
END_TEST

static uint64_t short_step;

static stepgraph_status feed_short_later(void *user, stepgraph_step *step, uint64_t k)
{
    t.fed_bytes = k == short_step ? 40 : 0;
    return feed(user, step, k);
}

START_TEST(padding_of_a_later_step)
{
    short_step = 10 + (uint64_t)_i;
    t.read_padding = 1;
    t.config.feed = feed_short_later;
    recorded();
    checked();
    FACT("x", STEPGRAPH_CHECK_PADDING);
}
END_TEST

/* An input in page-locked host memory that the graph copies. */
static float *host_rate;
static stepgraph_pin *blind;

static stepgraph_status feed_host_rate(void *user, stepgraph_step *step, uint64_t k)
{
    CU(StreamSynchronize(stream)); /* This host does not overwrite too early. */
    *host_rate = (float)k;
    return feed(user, step, k);
}

static stepgraph_status enqueue_host_rate(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user, (void)step, (void)k;
    CU(MemcpyHtoDAsync(stepgraph_pin_address(t.loss), host_rate, 4, stream));
    copyf(stream, stepgraph_pin_address(t.tmp), stepgraph_pin_address(t.rate)); /* dead reads */
    copyf(stream, stepgraph_pin_address(t.tmp), stepgraph_pin_address(t.x));
    copyf(stream, stepgraph_pin_address(t.tmp), stepgraph_pin_address(blind));
    axpb(stream, stepgraph_pin_address(blind), stepgraph_pin_address(t.loss), 0.5f);
    return STEPGRAPH_OK;
}

START_TEST(host_memory_that_changes_is_no_proof)
{
    CU(MemAllocHost((void **)&host_rate, 4));
    blind = typed(STEPGRAPH_ROLE_STATE, 4, "blind", STEPGRAPH_TYPE_F32);
    t.config.enqueue = enqueue_host_rate;
    t.config.feed = feed_host_rate;
    t.config.plant = blind;
    OK(feed_host_rate(NULL, NULL, 10));
    recorded_as("train", STEPGRAPH_STEP_ALLOW_HOST_MEMORY);
    t.config.delay_ns = 1;
    /* the host waits itself */
    checked();
    drop_step(t.step);
    CU(MemFreeHost(host_rate));
    FACT("x", STEPGRAPH_CHECK_UNREAD);
    FACT("rate", STEPGRAPH_CHECK_UNREAD);
    VERDICT(STEPGRAPH_UNPROVEN);
}
END_TEST

static int eval_stale;

static stepgraph_status enqueue_eval(void *user, stepgraph_step *step, uint64_t k)
{
    CUdeviceptr from = recording() && eval_stale ? t.other : stepgraph_pin_address(t.w);
    (void)user, (void)step, (void)k;
    update(stream, stepgraph_pin_address(t.tmp), from, stepgraph_pin_address(t.x), stepgraph_pin_address(t.rate), N);
    CU(MemsetD8Async(stepgraph_pin_address(t.loss), 0, 4, stream));
    launch(stream, sum_atomic, N, (void *[]){ &(CUdeviceptr){ stepgraph_pin_address(t.loss) }, &(CUdeviceptr){ stepgraph_pin_address(t.tmp) }, &(int){ N } });
    return STEPGRAPH_OK;
}

/* 0, 2: what stands in w; 1, 3: what stood there when it was recorded. 2, 3: planted in w, whose byte stays what it is made. */
START_TEST(evaluation_on_stale_weights)
{
    eval_stale = _i & 1;
    t.config.enqueue = enqueue_eval;
    if (_i & 2)
        t.config.plant = t.w;
    OK(feed(NULL, NULL, 10));
    recorded_as("eval", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    checked();
    VERDICT(eval_stale ? STEPGRAPH_DIVERGED : STEPGRAPH_IDENTICAL);
    if (eval_stale)
        SAYS("that were altered");
}
END_TEST

/* Launches write a const, later. */
static stepgraph_status enqueue_const_later(void *user, stepgraph_step *step, uint64_t k)
{
    copyf(stream, stepgraph_pin_address(t.tmp) + 900, stepgraph_pin_address(table));
    if (k == 11)
        setv(stream, stepgraph_pin_address(table), 9.0f);
    return enqueue(user, step, k);
}

START_TEST(const_written_in_the_second_step)
{
    table = typed(STEPGRAPH_ROLE_CONST, 4, "table", STEPGRAPH_TYPE_F32);
    put_float(stepgraph_pin_address(table), 2.0f);
    t.config.enqueue = enqueue_const_later;
    OK(feed(NULL, NULL, 10));
    recorded_as("train", 0);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_check_run(t.step, &t.config, &t.check), ": it writes pin 'table'");
}
END_TEST

static CUcontext hosts;

static int32_t progress_context(void *user, const char *phase, uint64_t done, uint64_t total)
{
    CUcontext now = NULL;
    (void)user, (void)phase, (void)done, (void)total;
    CU(CtxGetCurrent(&now));
    if (now != hosts)
        t.stop_at++;
    return 0;
}

static stepgraph_status feed_context(void *user, stepgraph_step *step, uint64_t k)
{
    CUcontext now = NULL;
    CU(CtxGetCurrent(&now));
    ck_assert_ptr_eq(now, hosts);
    return feed(user, step, k);
}

static CUcontext primary;

static stepgraph_status enqueue_context(void *user, stepgraph_step *step, uint64_t k)
{
    stepgraph_status status;
    CU(CtxSetCurrent(primary));
    status = enqueue(user, step, k);
    CU(CtxSetCurrent(hosts));
    return status;
}

START_TEST(progress_is_called_in_the_hosts_context)
{
    CUcontext before = NULL;
    recorded();
    CU(CtxGetCurrent(&before));
    primary = before;
    CU(CtxCreate(&hosts, 0, 0));
    t.config.progress = progress_context;
    t.config.feed = feed_context;
    t.config.enqueue = enqueue_context;
    checked();
    CU(CtxDestroy(hosts));
    CU(CtxSetCurrent(before));
    ck_assert_uint_eq(t.stop_at, 0);
}
END_TEST

START_TEST(tuning_does_not_count_the_checks_replays)
{
    stepgraph_tuning tuning = STEPGRAPH_TUNING_INIT;

    recorded();
    OK(stepgraph_step_tune(t.step, 2));
    checked_as(STEPGRAPH_IDENTICAL);
    replayed(t.step, 4);
    replayed(t.step, 1);
    replayed(t.step, 1);
    OK(stepgraph_step_get_tuning(t.step, &tuning));
    ck_assert_int_eq(tuning.done, 0);
}
END_TEST

/* A training step that reads another network's weights as they were; or with a learning rate as it was. */
static stepgraph_pin *target;
static int stale_target, stale_rate;
static CUdeviceptr old_rate;

static stepgraph_status enqueue_target(void *user, stepgraph_step *step, uint64_t k)
{
    CUdeviceptr w = stepgraph_pin_address(t.w), x = stepgraph_pin_address(t.x), tmp = stepgraph_pin_address(t.tmp), tmp2 = tmp + 4 * N;
    CUdeviceptr rate = recording() && stale_rate ? old_rate : stepgraph_pin_address(t.rate);
    CUdeviceptr from = recording() && stale_target ? t.other : stepgraph_pin_address(target);
    (void)user, (void)step, (void)k;
    update(stream, tmp, w, x, rate, N);
    update(stream, tmp2, tmp, from, rate, N);
    OK(stepgraph_pin_commit(t.w, tmp2));
    copyf(stream, stepgraph_pin_address(t.loss), w);
    return STEPGRAPH_OK;
}

static stepgraph_status feed_no_rate(void *user, stepgraph_step *step, uint64_t k)
{
    stepgraph_status status = feed(user, step, k);
    return status == STEPGRAPH_OK ? stepgraph_pin_feed_f32(t.rate, 0) : status;
}

START_TEST(stale_read_only_state_or_frozen_rate)
{
    float v[N];
    stale_target = _i == 1;
    stale_rate = _i == 2 || _i == 3; /* 3: still 0, in warm-up. */
    target = typed(STEPGRAPH_ROLE_STATE, sizeof v, "target", STEPGRAPH_TYPE_F32);
    bytes_at(t.other, v, sizeof v);
    put_bytes(stepgraph_pin_address(target), v, sizeof v);
    old_rate = device_make(4);
    put_float(old_rate, _i == 3 ? 0 : 0.5f);
    t.config.enqueue = enqueue_target;
    if (_i == 3)
        t.config.feed = feed_no_rate;
    OK(feed(NULL, NULL, 10));
    recorded_as("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    checked();
    VERDICT(_i ? STEPGRAPH_DIVERGED : STEPGRAPH_IDENTICAL);
}
END_TEST

/* Two slots. */
START_TEST(overwritten_too_early_with_few_slots)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;

    drop_pin(t.w);
    drop_pin(t.x);
    drop_pin(t.rate);
    drop_pin(t.loss);
    drop_pin(t.tmp);
    config.feed_slots = 2 + (uint32_t)_i;
    reopen(&config);
    made();
    races("off");
    t.feeder_waits = 1;
    recorded_elsewhere();
    checked();
    VERDICT(STEPGRAPH_DIVERGED);
}
END_TEST

/* NaN beside noise. */
START_TEST(nan_beside_noise)
{
    float v[N];
    for (int i = 0; i < N; i++)
        v[i] = NAN;
    t.noise = 1;
    t.stale = 1;
    recorded();
    put_bytes(t.other, v, sizeof v);
    checked_as(STEPGRAPH_DIVERGED);
}
END_TEST

/* What the host feeds next is not what the image of the step before holds. */
START_TEST(image_is_made_before_the_next_feed)
{
    races("off");
    typed(STEPGRAPH_ROLE_STATE, 64 << 20, "a large one", STEPGRAPH_TYPE_F32);
    t.feeder_waits = 1;
    recorded_elsewhere();
    checked();
    NO_FACT("x", STEPGRAPH_CHECK_UNREPEATED);
    VERDICT(STEPGRAPH_DIVERGED);
}
END_TEST

/* Nothing pinned at all. */
static stepgraph_status enqueue_unpinned(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user, (void)step, (void)k;
    inc(stream, t.other, 1.0f);
    return STEPGRAPH_OK;
}

START_TEST(no_pins_at_all)
{
    drop_pin(t.w);
    drop_pin(t.x);
    drop_pin(t.rate);
    drop_pin(t.loss);
    drop_pin(t.tmp);
    t.config.enqueue = enqueue_unpinned;
    t.config.feed = NULL;
    t.config.steps = 64;
    recorded_as("none", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    checked_as(STEPGRAPH_UNPROVEN);
}
END_TEST

/* Pins are not made while the snapshots of all pins are: the callback is told so. */
static stepgraph_status feed_making_pins(void *user, stepgraph_step *step, uint64_t k)
{
    static const stepgraph_role roles[] = { STEPGRAPH_ROLE_CELL, STEPGRAPH_ROLE_OUTPUT, STEPGRAPH_ROLE_STATE };
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *pin;

    config.bytes = 4;
    config.name = "late";
    for (size_t i = 0; i < 3; i++) {
        config.role = roles[i];
        FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_create(session, &config, &pin), "late", "callback of a check");
    }
    return feed(user, step, k);
}

START_TEST(pins_are_not_made_in_callbacks)
{
    recorded();
    OK(stepgraph_pin_feed_f32(t.rate, 0.125f));
    t.rate_once = 1;
    t.config.first = 20; /* The rate is not fed. */
    t.config.feed = feed_making_pins;
    checked_as(STEPGRAPH_IDENTICAL);
    ck_assert_float_eq(pin_float(t.rate), 0.125f);
    pin_make(session, STEPGRAPH_ROLE_CELL, 4, "late"); /* Afterwards they are. */
}
END_TEST

static stepgraph_status feed_checking(void *user, stepgraph_step *step, uint64_t k)
{
    stepgraph_check_config config = t.config;
    stepgraph_check *check = NULL;

    config.feed = feed;
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_check_run(t.step, &config, &check), "callback of a check");
    return feed(user, step, k);
}

START_TEST(steps_are_not_checked_in_callbacks)
{
    recorded();
    t.config.feed = feed_checking;
    checked_as(STEPGRAPH_IDENTICAL);
}
END_TEST

static stepgraph_status feed_resetting(void *user, stepgraph_step *step, uint64_t k)
{
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_reset(t.step), "train", "callback of its check");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_relax(t.step, NULL, NULL), "train", "callback of its check");
    return feed(user, step, k);
}

START_TEST(checked_step_is_not_reset_in_callbacks)
{
    recorded();
    t.config.feed = feed_resetting;
    checked_as(STEPGRAPH_IDENTICAL);
    OK(stepgraph_step_reset(t.step)); /* Afterwards it is. */
}
END_TEST

/* Nothing of the check's is written to memory that is somebody else's by now. */
START_TEST(scratch_that_is_gone_is_not_filled)
{
    CUdeviceptr memory = device_make(4096), again = 0;
    float v[1024];

    pin_adopt(session, STEPGRAPH_ROLE_SCRATCH, memory, sizeof v, "loose");
    recorded();
    device_drop(memory);
    if (_i == 1)
        again = device_make(sizeof v);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_check_run(t.step, &t.config, &t.check), "loose");
    if (again != 0) {
        bytes_at(again, v, sizeof v);
        ck_assert_float_eq(v[0], 0);
    }
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("check_hosts");
    TCase *right = trainer_case(suite, "right"), *wrong = trainer_case(suite, "wrong"), *noise = trainer_case(suite, "determinism");
    TCase *in = trainer_case(suite, "inputs"), *plant = trainer_case(suite, "planted"), *order = trainer_case(suite, "order");
    TCase *late = trainer_case(suite, "time"), *calls = trainer_case(suite, "calls");

    tcase_add_test(late, late_arm_delay_beyond_timeout);
    tcase_add_test(calls, strict_step_beside_a_checked_one);
    tcase_add_test(calls, checked_step_is_no_run_of_another_ones_output);
    tcase_add_loop_test(calls, feed_may_read_the_last_loss, 0, 2);
    tcase_add_loop_test(right, state_that_alternates_changes, 0, 2);
    tcase_add_loop_test(wrong, output_of_all_ones_left_out, 0, 2);
    tcase_add_loop_test(plant, feed_changed_in_place_is_no_proof, 0, 2);
    tcase_add_test(wrong, constant_that_only_a_replay_writes_is_named);
    tcase_add_test(calls, rewind_finds_pins_restored);
    tcase_add_loop_test(in, padding_of_a_later_step, 0, 2);
    tcase_add_test(plant, host_memory_that_changes_is_no_proof);
    tcase_add_loop_test(wrong, evaluation_on_stale_weights, 0, 4);
    tcase_add_test(wrong, const_written_in_the_second_step);
    tcase_add_test(calls, progress_is_called_in_the_hosts_context);
    tcase_add_test(calls, tuning_does_not_count_the_checks_replays);
    tcase_add_loop_test(wrong, stale_read_only_state_or_frozen_rate, 0, 4);
    tcase_add_loop_test(order, overwritten_too_early_with_few_slots, 0, 3);
    tcase_add_test(noise, nan_beside_noise);
    tcase_add_test(order, image_is_made_before_the_next_feed);
    tcase_add_test(right, no_pins_at_all);
    tcase_add_test(calls, pins_are_not_made_in_callbacks);
    tcase_add_test(calls, steps_are_not_checked_in_callbacks);
    tcase_add_test(calls, checked_step_is_not_reset_in_callbacks);
    tcase_add_loop_test(calls, scratch_that_is_gone_is_not_filled, 0, 2);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
