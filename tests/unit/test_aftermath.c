/* What comes after something went wrong, was destroyed, or is recorded a second time. Right is what the same calls leave without that. */
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

static CUdeviceptr addr;
static void body_inc(void *pin) { inc(stream, stepgraph_pin_address(pin), 1); }
static void body_addr(void *none) { (void)none; inc(stream, addr, 1); }
static void body_copy(void *pins)
{
    stepgraph_pin **p = pins;
    copyf(stream, stepgraph_pin_address(p[1]), stepgraph_pin_address(p[0]));
}

START_TEST(adopted_feeds_arrive_after_a_flush_that_failed)
{
    static const char *const entries[] = {"cuMemAlloc", "cuMemHostAlloc", "cuEventCreate", "cuLaunchKernel"};
    CUdeviceptr p = device_make(512), q = device_make(512);
    stepgraph_pin *a = pin_adopt(session, STEPGRAPH_ROLE_FEED, p, 4, "a"), *b = pin_adopt(session, STEPGRAPH_ROLE_FEED, q, 4, "b"),
                  *out = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "out");
    stepgraph_step *step = step_make(session, "strict", STEPGRAPH_STEP_STRICT_FEEDS);

    record(step, body_copy, (stepgraph_pin *[]){b, out});
    OK(stepgraph_pin_feed(a, &(float){1}, 4));
    OK(stepgraph_pin_feed(b, &(float){2}, 4));
    driver_fails(entries[_i], 1, 2); /* For the moment there is no memory. */
    ck_assert_int_ne(stepgraph_session_flush(session), STEPGRAPH_OK);
    no_driver_fails();
    OK(stepgraph_session_flush(session)); /* Once more. */
    OK(stepgraph_step_replay(step));      /* And not refused as stale. */
    ck_assert_float_eq(pin_float(a), 1);
    ck_assert_float_eq(pin_float(out), 2);
}
END_TEST

START_TEST(slot_is_fenced_after_a_record_that_failed)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_pin *x, *out[6];

    config.feed_slots = 2;
    reopen(&config);
    x = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "x");
    for (int i = 0; i < 6; i++)
        out[i] = pin_make(session, STEPGRAPH_ROLE_STATE, 4, (char[]){'o', (char)('0' + i), 0});
    spin(stream, 300);
    for (int i = 0; i < 6; i++) {
        OK(stepgraph_pin_feed(x, &(float){(float)(i + 1)}, 4));
        if (i == 0) {
            driver_fails("cuEventRecord", 1, 999);
            ck_assert_int_ne(stepgraph_session_flush(session), STEPGRAPH_OK);
            no_driver_fails();
        }
        OK(stepgraph_session_flush(session));
        copyf(stream, stepgraph_pin_address(out[i]), stepgraph_pin_address(x));
    }
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(pin_float(out[i]), (float)(i + 1));
}
END_TEST

START_TEST(commit_lists_are_fenced_after_one_that_failed)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_pin *w[12];
    uint64_t from[12];

    config.feed_slots = 2;
    reopen(&config);
    for (int i = 0; i < 12; i++) {
        w[i] = pin_make(session, STEPGRAPH_ROLE_STATE, 4, (char[]){'w', (char)('a' + i), 0});
        from[i] = device_make(4);
        put_float(from[i], (float)(i + 1));
    }
#define COMMIT(k) stepgraph_pin_commit_many(session, 2, &w[2 * (k)], &from[2 * (k)])
    for (int i = 0; i < 3; i++)
        OK(COMMIT(0)); /* Slots 1, 2 and 3. */
    OK(stepgraph_session_wait(session));
    spin(stream, 300);
    OK(COMMIT(1));                             /* Slot 0. */
    driver_fails("cuMemcpyHtoDAsync", 1, 999); /* Slot 1, the last of its half. */
    ck_assert_int_ne(COMMIT(2), STEPGRAPH_OK);
    no_driver_fails();
    OK(COMMIT(3)); /* Slots 2, 3, and 0 again, whose first list has not been read yet. */
    OK(COMMIT(4));
    OK(COMMIT(5));
    for (int i = 0; i < 12; i++)
        if (i / 2 != 2)
            ck_assert_msg(pin_float(w[i]) == (float)(i + 1), "pin %d holds %g", i, pin_float(w[i]));
}
END_TEST

START_TEST(feed_in_a_dead_context_is_an_error_and_no_crash)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    CUcontext mine = NULL;
    CUdevice device;
    stepgraph_session *s;
    stepgraph_pin *cell;

    unit_leaves_objects(1);
    CU(CtxGetCurrent(&mine));
    CU(DeviceGet(&device, 0));
    CU(CtxCreate(&config.context, 0, device));
    CU(CtxSetCurrent(mine));
    s = session_make(&config);
    cell = pin_make(s, STEPGRAPH_ROLE_CELL, 4, "lr");
    OK(stepgraph_pin_feed_f32(cell, 1));
    OK(stepgraph_session_flush(s));
    CU(CtxDestroy(config.context));
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_pin_feed_f32(cell, 2), "context");
    drop_pin(cell);
    drop_session(s);
}
END_TEST

START_TEST(feed_in_a_forked_child_is_lost)
{
    stepgraph_pin *cell = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "lr");
    int status = 0;
    pid_t child;

    OK(stepgraph_session_wait(session));
    fflush(NULL);
    child = fork();
    if (child == 0)
        _exit(stepgraph_pin_feed_f32(cell, 2) == STEPGRAPH_ERR_LOST ? 0 : 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

START_TEST(endless_feed_beside_another_is_refused)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *pin = NULL;
    stepgraph_status status;

    pin_make(session, STEPGRAPH_ROLE_FEED, 256, "first");
    config.role = STEPGRAPH_ROLE_FEED;
    config.bytes = UINT64_MAX - 255;
    config.name = "endless";
    status = stepgraph_pin_create(session, &config, &pin);
    ck_assert_msg(status == STEPGRAPH_ERR_MEMORY || status == STEPGRAPH_ERR_ARGUMENT, "%s", stepgraph_status_name(status));
    ck_assert_ptr_null(pin);
}
END_TEST

START_TEST(feed_that_is_too_large_is_short_memory)
{
    stepgraph_session_config session_config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *pin = NULL;

    session_config.feed_bytes = _i != 0 ? UINT64_C(1) << 60 : 0;
    reopen(&session_config);
    config.role = STEPGRAPH_ROLE_FEED;
    config.bytes = _i != 0 ? 4 : UINT64_C(1) << 60; /* Times 16 slots: 0. */
    config.name = "large";
    FAILS(STEPGRAPH_ERR_MEMORY, stepgraph_pin_create(session, &config, &pin), "large");
}
END_TEST

START_TEST(output_of_two_steps_is_read_after_one_of_them_ran)
{
    stepgraph_pin *loss = pin_make(session, STEPGRAPH_ROLE_OUTPUT, 4, "loss");
    stepgraph_step *steps[2] = {step_make(session, "shape a", 0), step_make(session, "shape b", 0)};
    float v = -1;

    record(steps[0], body_inc, loss);
    record(steps[1], body_inc, loss);
    OK(stepgraph_step_replay(steps[_i])); /* 1: the last that was recorded. */
    OK(stepgraph_pin_read(loss, &v, 4));
    ck_assert_float_eq(v, 1);
}
END_TEST

START_TEST(output_is_read_inside_a_run)
{
    stepgraph_pin *loss = pin_make(session, STEPGRAPH_ROLE_OUTPUT, 4, "loss");
    stepgraph_step *step = step_make(session, "train", 0);
    float v = -1;

    record(step, body_inc, loss);
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_FALLBACK));
    body_inc(loss);
    OK(stepgraph_pin_read(loss, &v, 4));
    ck_assert_float_eq(v, 1);
    OK(stepgraph_step_run_end(step));
}
END_TEST

START_TEST(strict_step_that_is_recorded_again_refuses_the_old_batch)
{
    stepgraph_pin *x = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "x"), *w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_step *step = step_make(session, "strict", STEPGRAPH_STEP_STRICT_FEEDS);
    stepgraph_pin *both[] = {x, w};

    record(step, body_copy, both);
    OK(stepgraph_pin_feed(x, &(float){3}, 4));
    OK(stepgraph_step_replay(step));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "'x'");
    OK(stepgraph_step_reset(step));
    record(step, body_copy, both);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "'x'");
    OK(stepgraph_pin_feed(x, &(float){4}, 4)); /* Fed and not replayed is fresh for the next recording too. */
    OK(stepgraph_step_reset(step));
    record(step, body_copy, both);
    OK(stepgraph_step_replay(step));
}
END_TEST

START_TEST(address_of_a_destroyed_pin_is_refused)
{
    CUdeviceptr memory = device_make(1 << 20);
    stepgraph_pin *w = _i == 0 ? pin_make(session, STEPGRAPH_ROLE_STATE, 1 << 20, "w")
                               : pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, 1 << 20, "w");
    stepgraph_step *step = step_make(session, "train", 0);

    addr = stepgraph_pin_address(w);
    record(step, body_addr, NULL);
    OK(stepgraph_step_replay(step));
    OK(stepgraph_step_reset(step));
    drop_pin(w);
    device_drop(memory);
    begin_recording(step);
    body_addr(NULL);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "freed");
}
END_TEST

START_TEST(address_of_a_destroyed_arena_is_refused)
{
    stepgraph_arena_config config = STEPGRAPH_ARENA_CONFIG_INIT;
    stepgraph_arena *arena = NULL;
    stepgraph_step *step = step_make(session, "train", 0);

    config.bytes = 1 << 20;
    config.name = "arena";
    OK(stepgraph_arena_create(session, &config, &arena));
    OK(stepgraph_arena_alloc(arena, 256, NULL, (uint64_t *)&addr));
    record(step, body_addr, NULL);
    OK(stepgraph_step_reset(step));
    OK(stepgraph_arena_free(arena, addr));
    OK(stepgraph_arena_destroy(arena));
    begin_recording(step);
    body_addr(NULL);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "freed");
}
END_TEST

START_TEST(source_that_reaches_beyond_its_pin_is_refused)
{
    stepgraph_pin *w[2] = {pin_make(session, STEPGRAPH_ROLE_STATE, 8, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 8, "b")};
    CUdeviceptr t = device_make(4096);
    stepgraph_step *step = step_make(session, "train", 0);

    pin_adopt(session, STEPGRAPH_ROLE_SCRATCH, t, 512, "tmp");
    begin_recording(step);
    if (_i == 0) /* Is found already. */
        OK(stepgraph_pin_commit(w[0], t + 508));
    else
        OK(stepgraph_pin_commit_many(session, 2, w, (uint64_t[]){t, t + 508}));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "tmp");
}
END_TEST

START_TEST(former_state_is_seen_whatever_else_stood_in_it)
{
    CUdeviceptr fresh = device_make(4096);
    stepgraph_pin *w = pin_make(session, STEPGRAPH_ROLE_STATE, 1024, "w"), *b = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b"),
                  *o = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "o");
    stepgraph_step *step = step_make(session, "train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);

    OK(stepgraph_pin_commit(w, fresh));
    if (_i == 1)
        OK(stepgraph_pin_commit(b, fresh + 256));
    begin_recording(step);
    copyf(stream, stepgraph_pin_address(o), fresh + 512);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "'w'");
}
END_TEST

START_TEST(buffer_of_new_values_of_several_pins_is_no_former_state)
{
    CUdeviceptr tmp = device_make(64);
    stepgraph_pin *w[2] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w0"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w1")};
    stepgraph_step *step = step_make(session, "train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);

    OK(stepgraph_pin_commit(w[0], tmp)); /* One buffer for the new values, one after the other. */
    OK(stepgraph_pin_commit(w[1], tmp));
    begin_recording(step);
    axpb(stream, tmp, stepgraph_pin_address(w[_i]), 1);
    OK(stepgraph_pin_commit(w[_i], tmp));
    OK(stepgraph_step_end(step));
}
END_TEST

START_TEST(open_that_fails_leaves_the_context_stack_alone)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    CUcontext mine = NULL, now = NULL;
    stepgraph_session *made = NULL;
    CUdevice device;

    CU(CtxGetCurrent(&mine));
    CU(DeviceGet(&device, 0));
    CU(CtxCreate(&config.context, 0, device));
    CU(CtxPopCurrent(&now));
    driver_fails("cuCtxGetDevice", 1, 999);
    ck_assert_int_ne(stepgraph_session_open(&config, &made), STEPGRAPH_OK);
    no_driver_fails();
    CU(CtxGetCurrent(&now));
    ck_assert_ptr_eq(now, mine);
    CU(CtxDestroy(config.context));
}
END_TEST

START_TEST(refused_read_of_another_session_leaves_a_recording_alone)
{
    stepgraph_session *other = session_make(NULL);
    CUdeviceptr p = device_make(64);
    stepgraph_pin *w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"), *gone = pin_adopt(other, STEPGRAPH_ROLE_STATE, p, 4, "gone"),
                  *there = pin_make(other, STEPGRAPH_ROLE_STATE, 4, "there");
    stepgraph_step *step = step_make(session, "train", 0);
    float v;

    device_drop(p);
    begin_recording(step);
    OK(stepgraph_pin_read(there, &v, 4));
    body_inc(w);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_pin_read(gone, &v, 4), "gone");
    OK(stepgraph_step_end(step));
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("aftermath");
    TCase *c = unit_case(suite, "aftermath");

    add_controlled_loop_test(c, adopted_feeds_arrive_after_a_flush_that_failed, 0, 4);
    add_controlled_test(c, slot_is_fenced_after_a_record_that_failed);
    add_controlled_test(c, commit_lists_are_fenced_after_one_that_failed);
    tcase_add_test(c, feed_in_a_forked_child_is_lost);
    tcase_add_loop_test(c, feed_that_is_too_large_is_short_memory, 0, 2);
    tcase_add_loop_test(c, output_of_two_steps_is_read_after_one_of_them_ran, 0, 2);
    tcase_add_test(c, output_is_read_inside_a_run);
    tcase_add_test(c, strict_step_that_is_recorded_again_refuses_the_old_batch);
    tcase_add_loop_test(c, address_of_a_destroyed_pin_is_refused, 0, 2);
    tcase_add_test(c, address_of_a_destroyed_arena_is_refused);
    tcase_add_loop_test(c, source_that_reaches_beyond_its_pin_is_refused, 0, 2);
    tcase_add_loop_test(c, former_state_is_seen_whatever_else_stood_in_it, 0, 2);
    tcase_add_loop_test(c, buffer_of_new_values_of_several_pins_is_no_former_state, 0, 2);
    add_controlled_test(c, open_that_fails_leaves_the_context_stack_alone);
    tcase_add_test(c, refused_read_of_another_session_leaves_a_recording_alone);
    tcase_add_test(c, feed_in_a_dead_context_is_an_error_and_no_crash);
    tcase_add_test(c, endless_feed_beside_another_is_refused);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
