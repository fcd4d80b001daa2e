/* What a comparison leaves in doubt: left over in arguments or used, as the checks of a loop find out. */
#include "looping.h"

/* ---- left over in arguments ------------------------------------------------------------------------------------------ */

static uint64_t garbage; /* Recordings so far, where what is left over depends on them. */

/* A large struct, of which the kernel reads the first and the last word. */
static struct big {
    int w[1022];
} big;

static stepgraph_pin *big_out;

static void train_with_big(uint64_t k)
{
    CUdeviceptr out = stepgraph_pin_address(big_out);

    train(k);
    launch_n(kernels.big4096, 1, (void *[]){&out, &big});
}

/* A number is left over in it, */
static void train_with_number(uint64_t k)
{
    big.w[500] = (int)k + 1;
    train_with_big(k);
}

/* or an address of somebody else's memory; */
static void train_with_address(uint64_t k)
{
    memcpy(&big.w[500], &moving[k % 2], sizeof *moving);
    train_with_big(k);
}

/* or the kernel uses the number, */
static void train_with_value(uint64_t k)
{
    big.w[1021] = (int)k + 1;
    train_with_big(k);
}

/* or writes to that memory, which is the host's. */
static struct {
    CUdeviceptr p;
    int rest[100];
} large;

static void train_elsewhere(uint64_t k)
{
    float one = 1;

    large.p = moving[k % 2];
    train(k);
    launch_n(kernels.spread, 1, (void *[]){&large, &one});
}

static float at(CUdeviceptr address)
{
    float value;

    OK(stepgraph_session_wait(session));
    CU(MemcpyDtoH(&value, address, sizeof value));
    return value;
}

static void put(CUdeviceptr address, float value)
{
    put_bytes(address, &value, sizeof value);
}

static void drop_moving(void)
{
    for (int i = 0; i < 2; i++)
        device_drop(moving[i]);
}

static void make_big(float *want, void (*step)(uint64_t), float *elsewhere)
{
    big_out = pin_make(session, STEPGRAPH_ROLE_OUTPUT, 2 * sizeof(int), "big out");
    memset(&big, 0, sizeof big);
    for (int i = 0; i < 2; i++) {
        moving[i] = device_make(BYTES);
        put(moving[i], 7);
    }
    without_loop(60, step, want);
    for (int i = 0; i < 2; i++) {
        elsewhere[i] = at(moving[i]);
        put(moving[i], 7);
    }
}

START_TEST(doubt_that_replays_refute_stands_against_nothing)
{
    void (*const steps[])(uint64_t) = {train_with_number, train_with_address};
    stepgraph_loop_config config = config_with(STEPGRAPH_LOOP_NO_CHECK);
    stepgraph_check_config check = STEPGRAPH_CHECK_CONFIG_INIT;
    float want[N], elsewhere[2];

    make_big(want, steps[_i % 2], elsewhere);
    check.enqueue = enqueue_back;
    check.feed = feed_back;
    config.check = _i < 2 ? NULL : &check; /* Which would not save what no pin covers, and is not used. */
    loop_make(&config);
    go(0, 60, steps[_i % 2]);
    same_as(want);
    RUNG(REPLAY, NONE);
    TURNS(RECORD, 2);
    TURNS(LOOK, 0);
    TURNS(CHECK, 6); /* Not left out, and twice as many as without doubt. */
    ck_assert_uint_eq(stats_now().checks_identical, 6);
    ck_assert_uint_eq(stats_now().doubts, 1);
    for (int i = 0; i < 2; i++) {
        ck_assert_float_eq(at(moving[i]), 7);
        device_drop(moving[i]);
    }
}
END_TEST

/* Beside the number that nobody uses, a rate that drops much later. */
static void train_with_number_at_a_rate(uint64_t k)
{
    train_with_number(k);
    counted_inc(session, NULL, stepgraph_pin_address(weight), k < 20 ? 1 : 0.5f);
}

START_TEST(doubt_that_was_refuted_is_not_blamed_later)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    make_big(want, train_with_number_at_a_rate, elsewhere);
    config.check_every = 5;
    loop_make(&config);
    go(0, 30, train_with_number_at_a_rate);
    ck_assert_uint_eq(stats_now().doubts, 1);
    ck_assert_uint_eq(stats_now().checks_diverged, 1);
    RUNG(FRESH, DIVERGED);
    ck_assert_msg(strstr(stats_now().words, "doubt") == NULL && strstr(stats_now().words, "big4096") == NULL, "%s", stats_now().words);
    /* What is lost is told. */
    ck_assert_msg(strstr(stats_now().words, "all was right at step 16, and 5 replays since then") != NULL, "%s", stats_now().words);
    drop_moving();
}
END_TEST

/* Always the same address of memory that no pin covers, which nobody uses, */
static void train_with_one_address(uint64_t k)
{
    memcpy(&big.w[500], &moving[0], sizeof *moving);
    train_with_big(k);
}

/* also beside a number that changes, */
static void train_with_both(uint64_t k)
{
    big.w[600] = (int)k + 1;
    train_with_one_address(k);
}

/* or which a kernel writes to. */
static void train_at_one_address(uint64_t k)
{
    float one = 1;

    large.p = moving[0];
    train(k);
    launch_n(kernels.spread, 1, (void *[]){&large, &one});
}

START_TEST(address_without_a_pin_that_stays_is_in_doubt_in_a_large_struct)
{
    void (*const steps[])(uint64_t) = {train_with_one_address, train_with_both, train_at_one_address};
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    make_big(want, steps[_i], elsewhere);
    loop_make(&config);
    go(0, 60, steps[_i]);
    same_as(want);
    ck_assert_uint_eq(stats_now().doubts, 1);
    if (_i < 2) {
        RUNG(REPLAY, NONE);
        ck_assert_uint_eq(stats_now().checks_identical, 6);
        /* Of two doubts, that of the comparison is told. */
        ck_assert_int_eq(strstr(stepgraph_audit_text(stepgraph_loop_audit(loop, 0)), "changing scalar") != NULL, _i == 1);
    } else {
        RUNG(RERECORD, UNREGISTERED);
        ck_assert_ptr_nonnull(strstr(stats_now().words, "spread  arg 0 +0"));
        ck_assert_ptr_nonnull(strstr(stats_now().words, "and it is used"));
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_float_eq(at(moving[i]), elsewhere[i]);
        device_drop(moving[i]);
    }
}
END_TEST

/* In the same allocation as what is in doubt is a pin that small arguments point to. */
static void train_beside_doubt(uint64_t k)
{
    counted_inc(session, NULL, stepgraph_pin_address(beside), 1);
    train_with_one_address(k);
}

START_TEST(pin_beside_memory_that_is_in_doubt_stands_against_nothing)
{
    CUdeviceptr memory = device_make(2 * BYTES);
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    beside = pin_adopt(session, STEPGRAPH_ROLE_STATE, memory, BYTES, "beside");
    make_big(want, train, elsewhere);
    device_drop(moving[0]);
    moving[0] = memory + BYTES;
    loop_make(&config);
    go(0, 60, train_beside_doubt);
    same_as(want);
    ck_assert_float_eq(pin_float(beside), 60);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(n_warnings, 0);
    ck_assert_uint_eq(stats_now().doubts, 1);
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(stepgraph_loop_audit(loop, 0)), "that no pin covers"));
}
END_TEST

START_TEST(doubt_that_replays_confirm_names_the_cause)
{
    static const char *const words[] = {"big4096  arg 1 +4084", "spread  arg 0 +0"};
    void (*const steps[])(uint64_t) = {train_with_value, train_elsewhere};
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];
    int last[2];

    make_big(want, steps[_i], elsewhere);
    loop_make(&config);
    go(0, 60, steps[_i]);
    same_as(want);
    if (_i == 0)
        RUNG(RERECORD, SCALAR);
    else
        RUNG(RERECORD, MOVED);
    TURNS(LOOK, 0);
    TURNS(REPLAY, 0);
    ck_assert_uint_eq(stats_now().checks_diverged, 1);
    ck_assert_msg(strstr(stats_now().words, words[_i]) != NULL && strstr(stats_now().words, "and it is used") != NULL, "%s",
                  stats_now().words);
    OK(stepgraph_pin_read(big_out, last, sizeof last));
    ck_assert_int_eq(last[1], _i == 0 ? 60 : last[1]);
    /* What no pin covers was put back after the replay that wrote to it. */
    for (int i = 0; i < 2; i++) {
        ck_assert_float_eq(at(moving[i]), elsewhere[i]);
        device_drop(moving[i]);
    }
}
END_TEST

/* A struct of which the kernel reads only a part: something is left over in the rest. */
static void launch_with_left_over(uint64_t word)
{
    CUdeviceptr out = stepgraph_pin_address(loss), in = stepgraph_pin_address(weight);
    static struct {
        CUdeviceptr p;
        int n;
        uint64_t tail[3];
    } part; /* Its own padding is 0. */
    int one = 1;
    char byte = 1;

    part.p = in;
    part.n = 1;
    part.tail[1] = word;
    launch_n(kernels.inner, 1, (void *[]){&part, &out, &one, &byte, &in});
}

/* The address may be one that the host goes on with. */
static void train_with_address_and_scalar(uint64_t k)
{
    CUdeviceptr p = stepgraph_pin_address(loss);
    float value = (float)k;

    train_with_address(k);
    launch_n(kernels.setv, 1, (void *[]){&p, &value});
}

START_TEST(nothing_is_recorded_once_more_while_an_address_may_move)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    make_big(want, train_with_address_and_scalar, elsewhere);
    loop_make(&config);
    turn.flags = _i == 0 ? 0 : STEPGRAPH_TURN_KEEPS_NOTHING;
    go(0, 60, train_with_address_and_scalar);
    same_as(want);
    RUNG(RERECORD, SCALAR);
    TURNS(RECORD, 2);
    TURNS(LOOK, _i); /* Nobody goes on with what that recording allocated. */
    drop_moving();
}
END_TEST

/* What nobody sets differs in each recording, also of one step. */
static void train_with_address_and_garbage(uint64_t k)
{
    train_with_address(k);
    launch_with_left_over(0x1234 + 17 * garbage * garbage); /* Not by the same amount each time, as a counter. */
    garbage += recording() ? 1 : 0;
}

START_TEST(third_recording_tells_what_is_left_over_beside_an_address)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    garbage = 0;
    make_big(want, train_with_address_and_garbage, elsewhere);
    loop_make(&config);
    turn.flags = _i == 0 ? 0 : STEPGRAPH_TURN_KEEPS_NOTHING;
    go(0, 60, train_with_address_and_garbage);
    same_as(want);
    TURNS(LOOK, _i);
    if (_i == 0)
        RUNG(RERECORD, SCALAR);
    else
        RUNG(REPLAY, NONE);
    drop_moving();
}
END_TEST

/* ---- memory in doubt that cannot be put back ------------------------------------------------------------------------- */

static float *locked[2]; /* Page-locked. */

static void make_locked(void)
{
    for (int i = 0; i < 2; i++) {
        CU(MemAllocHost((void **)&locked[i], BYTES));
        memset(locked[i], 0, BYTES);
    }
}

static void drop_locked(void)
{
    for (int i = 0; i < 2; i++)
        CU(MemFreeHost(locked[i]));
}

static void train_with_word(uint64_t word)
{
    memcpy(&big.w[500], &word, sizeof word);
    train_with_big(0);
}

/* An address of page-locked memory is left over, such as that of the batch which was copied before; */
static void train_with_locked(uint64_t k)
{
    (void)k;
    train_with_word((uintptr_t)locked[0]);
}

/* another in each recording; */
static void train_with_locked_by_turns(uint64_t k)
{
    (void)k;
    train_with_word((uintptr_t)locked[garbage % 2]);
    garbage += recording() ? 1 : 0;
}

/* or one of memory that is gone. */
static void train_with_gone(uint64_t k)
{
    (void)k;
    train_with_word(moving[2]);
}

/* Memory that the session has met, and that was freed since. */
static CUdeviceptr met_and_gone(void)
{
    stepgraph_step *step = step_make(session, "earlier", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    CUdeviceptr memory = device_make(BYTES);

    OK(stepgraph_step_prepare(step));
    OK(stepgraph_step_capture(step));
    launch_n(kernels.inc, 1, (void *[]){&memory, &(float){1}});
    OK(stepgraph_step_end(step));
    device_drop(memory);
    return memory;
}

START_TEST(address_of_memory_that_cannot_be_put_back_may_be_left_over)
{
    static const char *const words[] = {"(256 bytes of page-locked host memory)", "256 bytes stood there once", "moved pointer"};
    void (*const steps[])(uint64_t) = {train_with_locked, train_with_gone, train_with_locked_by_turns};
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    garbage = 0;
    make_locked();
    make_big(want, steps[_i], elsewhere);
    moving[2] = met_and_gone();
    n_warnings = 0;
    loop_make(&config);
    go(0, 60, steps[_i]);
    same_as(want);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(n_warnings, 0);
    ck_assert_uint_eq(stats_now().doubts, 1);
    ck_assert_uint_eq(stats_now().checks_identical, 6);
    ck_assert_uint_eq(stats_now().checks_failed, 0);
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(stepgraph_loop_audit(loop, 0)), words[_i]));
    drop_locked();
    drop_moving();
}
END_TEST

/* A kernel counts in it. */
static void train_and_count_in_locked(uint64_t k)
{
    float one = 1;

    large.p = (uintptr_t)locked[0];
    train(k);
    launch_n(kernels.spread, 1, (void *[]){&large, &one});
}

START_TEST(page_locked_memory_that_changes_in_each_step_is_used)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    make_locked();
    make_big(want, train_and_count_in_locked, elsewhere);
    memset(locked[0], 0, BYTES);
    loop_make(&config);
    go(0, 60, train_and_count_in_locked);
    same_as(want);
    ck_assert_float_eq(*locked[0], 60); /* No step was done twice. */
    RUNG(RERECORD, UNREGISTERED);
    ck_assert_uint_eq(stats_now().checks, 0);
    ck_assert_uint_eq(stats_now().checks_failed, 8);
    ck_assert_ptr_nonnull(strstr(stats_now().words, "spread  arg 0 +0"));
    ck_assert_ptr_nonnull(strstr(stats_now().words, "so it is used"));
    drop_locked();
    drop_moving();
}
END_TEST

/* The host fills it again, now and then. */
static void train_beside_a_loader(uint64_t k)
{
    *locked[0] += k % 2 == 0 ? 1 : 0;
    train_with_locked(k);
}

START_TEST(page_locked_memory_that_the_host_fills_again_puts_checks_off)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];
    char told[64];

    make_locked();
    make_big(want, train_beside_a_loader, elsewhere);
    config.check_steps = 5;
    loop_make(&config);
    go(0, 60, train_beside_a_loader);
    same_as(want);
    RUNG(REPLAY, NONE); /* Though as many were put off as would stand against it in a row. */
    ck_assert_uint_eq(stats_now().checks_identical, 2 * config.check_steps);
    ck_assert_uint_ge(stats_now().checks_failed, 2 * config.check_steps - 1);
    ck_assert_uint_le(stats_now().checks_failed, 2 * config.check_steps);
    snprintf(told, sizeof told, "is put off: page-locked memory at 0x%llx", (unsigned long long)(uintptr_t)locked[0]);
    ck_assert_ptr_nonnull(strstr(lines[1], told));
    drop_locked();
    drop_moving();
}
END_TEST

/* Two addresses of page-locked memory are left over, and the host changes one byte there, now and then. */
static char *changing;

static void train_beside_changes(uint64_t k)
{
    if (changing != NULL && k % 2 == 0)
        ++*changing;
    memcpy(&big.w[600], &locked[1], sizeof locked[1]);
    train_with_locked(k);
}

START_TEST(page_locked_memory_is_looked_at_to_its_last_byte)
{
    enum { ODD = 16384 - 3 }; /* No whole number of words. */
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    make_locked();
    CU(MemFreeHost(locked[0]));
    CU(MemAllocHost((void **)&locked[0], ODD));
    memset(locked[0], 0, ODD);
    changing = _i == 0 ? NULL : _i == 1 ? (char *)locked[0] + ODD - 1 : (char *)locked[1];
    make_big(want, train_beside_changes, elsewhere);
    loop_make(&config);
    go(0, 60, train_beside_changes);
    same_as(want);
    RUNG(REPLAY, NONE);
    ck_assert_uint_eq(stats_now().checks_identical, 6);
    ck_assert_uint_ge(stats_now().checks_failed, _i == 0 ? 0 : 5);
    ck_assert_uint_le(stats_now().checks_failed, _i == 0 ? 0 : 6);
    drop_locked();
    drop_moving();
}
END_TEST

/* From some step on the host fills it in each step. */
static void train_and_fill_late(uint64_t k)
{
    *locked[0] += k >= 15 ? 1 : 0;
    train_with_locked(k);
}

START_TEST(sampled_checks_that_are_put_off_wait_for_their_next_turn)
{
    stepgraph_loop_config config = config_with(0);
    stepgraph_loop_stats stats;
    float want[N], elsewhere[2];

    make_locked();
    make_big(want, train_and_fill_late, elsewhere);
    config.check_every = 10;
    loop_make(&config);
    go(0, 60, train_and_fill_late);
    same_as(want);
    RUNG(REPLAY, NONE);
    stats = stats_now();
    ck_assert_uint_ge(stats.checks_failed, 1);
    ck_assert_uint_eq(stats.checks_failed + stats.checks, stats.turns[STEPGRAPH_TURN_CHECK]);
    ck_assert_uint_ge(stats.turns[STEPGRAPH_TURN_REPLAY], config.check_every * stats.checks_failed);
    drop_locked();
    drop_moving();
}
END_TEST

START_TEST(memory_in_doubt_takes_two_copies)
{
    stepgraph_loop_config config = config_with(0);
    float want[N], elsewhere[2];

    make_big(want, train_with_one_address, elsewhere);
    config.snapshot_bytes = 2 * BYTES - (uint64_t)_i;
    loop_make(&config);
    go(0, 60, train_with_one_address);
    same_as(want);
    if (_i == 0)
        RUNG(REPLAY, NONE);
    else
        RUNG(RERECORD, UNREGISTERED);
    ck_assert_uint_eq(stats_now().checks_failed, _i);
    drop_moving();
}
END_TEST

/* A copy reads memory that no pin covers. */
static void train_and_copy(uint64_t k)
{
    train(k);
    CU(MemcpyDtoDAsync(stepgraph_pin_address(big_out), moving[0], sizeof(float), stream));
}

START_TEST(copy_of_memory_without_a_pin_is_named)
{
    stepgraph_loop_config config = config_with(0);
    stepgraph_finding finding = STEPGRAPH_FINDING_INIT;
    float want[N], elsewhere[2];

    make_big(want, train_and_copy, elsewhere);
    loop_make(&config);
    go(0, 60, train_and_copy);
    same_as(want);
    RUNG(RERECORD, UNREGISTERED);
    OK(stepgraph_audit_get(stepgraph_loop_audit(loop, 0), 0, &finding));
    ck_assert_uint_eq(finding.fault, 1);
    ck_assert_uint_eq(finding.argument, UINT32_MAX);
    ck_assert_uint_eq(finding.before, moving[0]);
    drop_moving();
}
END_TEST

static unsigned garbage_in; /* A bit for each recording. */

static void train_with_garbage(uint64_t k)
{
    train(k);
    /* Live memory of somebody else in some recordings, an address of the host's in others. */
    launch_with_left_over(garbage < 2 && (garbage_in >> garbage & 1) != 0 ? moving[0] : (CUdeviceptr)(uintptr_t)&garbage);
    garbage += recording() ? 1 : 0;
}

/* What nobody sets looks like a value, and beside it an address may move, so that nothing is recorded a third time. */
static void train_with_padding(uint64_t k)
{
    train_with_address(k);
    launch_with_left_over(0x000000023ba6540f + 0x200000 * (k % 7));
}

/* It is an address's upper half, now and then. */
static void train_with_upper_half(uint64_t k)
{
    train_with_address(k);
    launch_with_left_over(k % 2 == 0 ? 8 : (uintptr_t)&k >> 32 << 32 | 8);
}

START_TEST(what_may_be_padding_is_left_to_the_checks)
{
    stepgraph_loop_config config = config_with(0);
    void (*const steps[])(uint64_t) = {train_with_padding, train_with_upper_half};
    float want[N], elsewhere[2];

    make_big(want, steps[_i], elsewhere);
    loop_make(&config);
    go(0, 60, steps[_i]);
    same_as(want);
    RUNG(REPLAY, NONE);
    TURNS(RECORD, 2);
    TURNS(LOOK, 0);
    ck_assert_uint_eq(stats_now().checks_identical, 6);
    drop_moving();
}
END_TEST

START_TEST(address_that_was_left_over_stands_against_nothing)
{
    stepgraph_loop_config config = config_with(0);
    float want[N];

    garbage = 0;
    garbage_in = (unsigned)_i;
    moving[0] = device_make(BYTES);
    without_loop(60, train_with_garbage, want);
    loop_make(&config);
    go(0, 60, train_with_garbage);
    same_as(want);
    if (_i != 3)
        RUNG(REPLAY, NONE);
    else /* What is the same in all recordings may be used: nobody can tell. */
        RUNG(RERECORD, UNREGISTERED);
    device_drop(moving[0]);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop doubt");
    TCase *doubt = loop_case(suite, "doubt");

    tcase_add_loop_test(doubt, address_that_was_left_over_stands_against_nothing, 0, 4);
    tcase_add_loop_test(doubt, what_may_be_padding_is_left_to_the_checks, 0, 2);
    tcase_add_test(doubt, doubt_that_was_refuted_is_not_blamed_later);
    tcase_add_loop_test(doubt, doubt_that_replays_refute_stands_against_nothing, 0, 4);
    tcase_add_loop_test(doubt, address_without_a_pin_that_stays_is_in_doubt_in_a_large_struct, 0, 3);
    tcase_add_test(doubt, pin_beside_memory_that_is_in_doubt_stands_against_nothing);
    tcase_add_loop_test(doubt, address_of_memory_that_cannot_be_put_back_may_be_left_over, 0, 3);
    tcase_add_test(doubt, page_locked_memory_that_changes_in_each_step_is_used);
    tcase_add_test(doubt, page_locked_memory_that_the_host_fills_again_puts_checks_off);
    tcase_add_loop_test(doubt, page_locked_memory_is_looked_at_to_its_last_byte, 0, 3);
    tcase_add_test(doubt, sampled_checks_that_are_put_off_wait_for_their_next_turn);
    tcase_add_loop_test(doubt, memory_in_doubt_takes_two_copies, 0, 2);
    tcase_add_test(doubt, copy_of_memory_without_a_pin_is_named);
    tcase_add_loop_test(doubt, doubt_that_replays_confirm_names_the_cause, 0, 2);
    tcase_add_loop_test(doubt, nothing_is_recorded_once_more_while_an_address_may_move, 0, 2);
    tcase_add_loop_test(doubt, third_recording_tells_what_is_left_over_beside_an_address, 0, 2);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
