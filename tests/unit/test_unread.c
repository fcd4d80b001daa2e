/* Bytes of arguments that the host says no kernel reads: they count as 0 for whoever looks at a recording, and only they do. */
#include <stdbool.h>

#include "findings.h"
#include "support.h"

static stepgraph_pin *pin;
static stepgraph_loop *loop;

static void setup(void)
{
    loop = NULL;
    pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "x");
}

static void teardown(void)
{
    stepgraph_loop_destroy(loop);
    loop = NULL;
}

/* Of Padded the bytes behind the short number, which is at 16. Its lower byte is 0, since what changes behind a byte that is not is in doubt anyway. */
enum { AT = 16, BEHIND = 18, REST = 6, NUMBER = 0x300 };

static stepgraph_unread behind_the_short(void)
{
    return (stepgraph_unread){.pattern = "padd*", .argument = 0, .argument_bytes = sizeof(struct Padded), .offset = BEHIND, .bytes = REST};
}

/* x = x * scale + n + tag; `rest` stands in bytes that nobody reads, value after value as if they were somebody's. */
static void enqueue(uint16_t rest, short n)
{
    CUdeviceptr x = stepgraph_pin_address(pin);
    struct Padded in;

    memset(&in, 0, sizeof in);
    in.tag = 1;
    in.scale = 0.5;
    in.n = n;
    in.p = x;
    memcpy((char *)&in + BEHIND, &rest, sizeof rest);
    launch(stream, made_for.padded, 1, (void *[]){&in, &x});
}

static stepgraph_step *padded(uint16_t rest, short n)
{
    stepgraph_step *step = recording("step", 0);

    enqueue(rest, n);
    CLEAN(ready(step));
    return step;
}

static stepgraph_audit *compared_rests(uint16_t k, uint16_t k1, short n1)
{
    const stepgraph_step *one = padded(k, NUMBER), *other = padded(k1, n1), *again = padded(k1, n1);

    return compared(one, other, again);
}

START_TEST(what_looks_like_a_value_is_none)
{
    const stepgraph_unread unread = behind_the_short();

    FOUND(compared_rests(2, 128, NUMBER), CHANGING_SCALAR, 0, "padded", 0, AT, "stepgraph_session_set_unread()", "changing scalar");
    OK(stepgraph_session_set_unread(session, &unread, 1));
    CLEAN(compared_rests(2, 128, NUMBER));
    OK(stepgraph_session_set_unread(session, NULL, 0)); /* Taken back. */
    FOUND(compared_rests(2, 128, NUMBER), CHANGING_SCALAR, 0, "padded", 0, AT, "CELL", "changing scalar");
}
END_TEST

/* A value beside them is one as ever. */
START_TEST(what_is_read_is_still_seen)
{
    const stepgraph_unread unread = behind_the_short();

    OK(stepgraph_session_set_unread(session, &unread, 1));
    FOUND(compared_rests(2, 128, NUMBER + 0x100), CHANGING_SCALAR, 0, "padded", 0, AT, "CELL", "0300", "0400");
}
END_TEST

/* Only what fits: another kernel, argument or size is not meant. */
START_TEST(only_what_was_said)
{
    stepgraph_unread unread = behind_the_short();

    if (_i == 0)
        unread.pattern = "padde";
    else if (_i == 1)
        unread.argument = 1;
    else
        unread.argument_bytes = sizeof(struct Padded) + 8;
    OK(stepgraph_session_set_unread(session, &unread, 1));
    FOUND(compared_rests(2, 128, NUMBER), CHANGING_SCALAR, 0, "padded", 0, AT, "CELL", "changing scalar");
}
END_TEST

START_TEST(any_argument_and_several_ranges)
{
    stepgraph_unread unread[] = {behind_the_short(), behind_the_short(), behind_the_short()};

    unread[0].pattern = "another";
    unread[1].argument = UINT32_MAX;
    unread[1].bytes = 1;
    unread[2].offset = BEHIND + 1;
    unread[2].bytes = REST - 1;
    OK(stepgraph_session_set_unread(session, unread, 3));
    CLEAN(compared_rests(0x0102, 0x0304, NUMBER));
    unread[2].bytes--; /* Without the last byte, which is the same in all. */
    OK(stepgraph_session_set_unread(session, unread, 3));
    CLEAN(compared_rests(0x0102, 0x0304, NUMBER));
    OK(stepgraph_session_set_unread(session, unread, 2)); /* The upper byte is not among them. */
    FOUND(compared_rests(0x0102, 0x0304, NUMBER), CHANGING_SCALAR, 0, "padded", 0, AT, "CELL", "changing scalar");
}
END_TEST

/* An address without a pin, where the kernel would add what is there. */
static stepgraph_step *with_bias(CUdeviceptr bias)
{
    struct Views views = {stepgraph_pin_address(pin), stepgraph_pin_address(pin), bias, 2};
    stepgraph_step *step = recording("step", 0);

    launch(stream, made_for.views, 1, (void *[]){&views});
    return step;
}

START_TEST(address_in_them_is_none)
{
    const stepgraph_unread unread = {.pattern = "views", .argument = 0, .argument_bytes = sizeof(struct Views), .offset = 16, .bytes = 8};
    CUdeviceptr stray = device_make(4096);

    FOUND(refused(with_bias(stray)), UNREGISTERED, 0, "views", 0, 16, "pin", "views");
    OK(stepgraph_session_set_unread(session, &unread, 1));
    CLEAN(ready(with_bias(stray)));
}
END_TEST

/* The last bytes of an argument, and all of it. */
START_TEST(address_at_the_end_of_an_argument_is_none)
{
    const stepgraph_unread last = {.pattern = "views", .argument = 0, .argument_bytes = sizeof(struct Views), .offset = 24, .bytes = 8};
    const stepgraph_unread all = {.pattern = "views", .argument = 0, .argument_bytes = sizeof(struct Views), .offset = 0, .bytes = sizeof(struct Views)};
    CUdeviceptr stray = device_make(4096);
    struct Views views = {stepgraph_pin_address(pin), stepgraph_pin_address(pin), 0, 0};
    stepgraph_step *step;

    memcpy((char *)&views + 24, &stray, sizeof stray); /* Behind the members that are read, as far as anybody knows. */
    for (int i = 0; i < 3; i++) {
        if (i > 0)
            OK(stepgraph_session_set_unread(session, i == 1 ? &last : &all, 1));
        step = recording("step", 0);
        launch(stream, made_for.views, 1, (void *[]){&views});
        if (i == 0)
            FOUND(refused(step), UNREGISTERED, 0, "views", 0, 24, "pin", "views");
        else
            CLEAN(ready(step));
    }
}
END_TEST

/* ---- in a loop --------------------------------------------------------------------------------------------------- */

static unsigned launches; /* Of the step, recorded or run: each leaves something else behind. */

/* So many steps of the loop; answers the rung. */
static uint32_t looped(unsigned steps)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_turn turn = STEPGRAPH_TURN_INIT;

    config.flags = STEPGRAPH_LOOP_IGNORE_CLOCK;
    launches = 0;
    OK(stepgraph_loop_create(session, &config, &loop));
    for (unsigned k = 0; k < steps; k++)
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.run) /* The third recording has what the second had, as a value of the step would. */
                enqueue(turn.kind == STEPGRAPH_TURN_LOOK ? 128 : launches++ < 4 ? 2 : 128, NUMBER);
            OK(stepgraph_loop_end(loop, &turn));
        } while (turn.again);
    return turn.rung;
}

START_TEST(loop_replays_what_it_would_record_every_time)
{
    const stepgraph_unread unread = behind_the_short();
    const unsigned steps = 20;
    CUdeviceptr apart = device_make(4);
    float right;

    if (_i != 0)
        OK(stepgraph_session_set_unread(session, &unread, 1));
    ck_assert_uint_eq(looped(steps), _i != 0 ? STEPGRAPH_RUNG_REPLAY : STEPGRAPH_RUNG_RERECORD);
    /* The same steps without a graph. */
    for (unsigned k = 0; k < steps; k++) {
        struct Padded in = {.tag = 1, .scale = 0.5, .n = NUMBER, .p = apart};
        launch(stream, made_for.padded, 1, (void *[]){&in, &apart});
    }
    right = float_at(apart);
    ck_assert_float_eq(pin_float(pin), right);
}
END_TEST

/* ---- what is refused --------------------------------------------------------------------------------------------- */

START_TEST(bad_ones_are_refused_and_change_nothing)
{
    stepgraph_unread good = behind_the_short(), bad = good;

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_set_unread(NULL, &good, 1), "session is NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_set_unread(session, NULL, 1), "pointer", "NULL");
    OK(stepgraph_session_set_unread(session, &good, 1));
    for (int i = 0; i < 9; i++) {
        stepgraph_unread both[2] = {good, good};
        const char *words = "do not lie in an argument of 32";
        bad = good;
        switch (i) {
        case 0:
            bad.pattern = NULL;
            words = "no pattern";
            break;
        case 1:
            bad.pattern = "";
            words = "no pattern";
            break;
        case 2:
            bad.argument_bytes = 0;
            words = "1 to 256";
            break;
        case 3:
            bad.argument_bytes = 257;
            words = "257 bytes: 1 to 256";
            break;
        case 4:
            bad.bytes = 0;
            break;
        case 5:
            bad.offset = 32;
            break;
        case 6:
            bad.bytes = UINT32_MAX;
            break;
        case 7:
            bad.offset = 33;
            break;
        default:
            bad.reserved[1] = 1;
            words = "reserved";
            break;
        }
        both[1] = bad;
        FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_set_unread(session, both, 2), "number 1 of the unread bytes", words);
        both[0] = bad;
        both[1] = good;
        FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_session_set_unread(session, both, 2), "number 0 of the unread bytes", words);
    }
    CLEAN(compared_rests(2, 128, NUMBER)); /* The good one still holds. */
    bad = good;
    bad.argument_bytes = 256; /* The most that there may be, and all of it. */
    bad.offset = 0;
    bad.bytes = 256;
    OK(stepgraph_session_set_unread(session, &bad, 1));
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("unread");
    TCase *looks = audit_case(suite, "what is looked at"), *loops = audit_case(suite, "in a loop"), *bad = audit_case(suite, "what is refused");

    tcase_add_checked_fixture(looks, setup, teardown);
    tcase_add_test(looks, what_looks_like_a_value_is_none);
    tcase_add_test(looks, what_is_read_is_still_seen);
    tcase_add_loop_test(looks, only_what_was_said, 0, 3);
    tcase_add_test(looks, any_argument_and_several_ranges);
    tcase_add_test(looks, address_in_them_is_none);
    tcase_add_test(looks, address_at_the_end_of_an_argument_is_none);
    tcase_add_checked_fixture(loops, setup, teardown);
    tcase_add_loop_test(loops, loop_replays_what_it_would_record_every_time, 0, 2);
    tcase_add_checked_fixture(bad, setup, teardown);
    tcase_add_test(bad, bad_ones_are_refused_and_change_nothing);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
