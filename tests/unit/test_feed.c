/* Feeds and cells: one copy per step, never overwritten while a queued step has yet to read it. */
#include "support.h"

#define COPIES "cuMemcpyHtoDAsync"

/* d = p + *rate * x, element by element, in place on `sum`. */
struct trainer {
    stepgraph_pin *x, *rate, *sum;
    int n;
};

static struct trainer trainer_make(stepgraph_session *of, int n)
{
    struct trainer t = {pin_make(of, STEPGRAPH_ROLE_FEED, (uint64_t)n * 4, "x"), pin_make(of, STEPGRAPH_ROLE_CELL, 4, "rate"),
                        pin_make(of, STEPGRAPH_ROLE_STATE, (uint64_t)n * 4, "sum"), n};
    return t;
}

static void body_train(void *trainer)
{
    struct trainer *t = trainer;
    CUdeviceptr sum = stepgraph_pin_address(t->sum);

    update(stream, sum, sum, stepgraph_pin_address(t->x), stepgraph_pin_address(t->rate), t->n);
}

static void sums(const struct trainer *t, float *to)
{
    bytes_at(stepgraph_pin_address(t->sum), to, (size_t)t->n * 4);
}

static stepgraph_session_config config_slots(uint32_t slots)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;

    config.feed_slots = slots;
    return config;
}

/* ---- values ------------------------------------------------------------------------------------------------------------ */

START_TEST(replay_uses_what_was_fed)
{
    struct trainer t = trainer_make(session, 4);
    stepgraph_step *step = step_make(session, "train", 0);
    float x[4] = {1, 2, 3, 4}, got[4];

    record(step, body_train, &t);
    OK(stepgraph_pin_feed(t.x, x, sizeof x));
    memset(x, 0, sizeof x); /* Ours again at once. */
    OK(stepgraph_pin_feed_f32(t.rate, 10));
    OK(stepgraph_step_replay(step));
    sums(&t, got);
    ck_assert_mem_eq(got, ((float[]){10, 20, 30, 40}), sizeof got);
}
END_TEST

START_TEST(every_number_type_can_be_fed)
{
    stepgraph_pin *f32 = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "f32"),
                  *f64 = pin_make(session, STEPGRAPH_ROLE_CELL, 8, "f64"),
                  *u32 = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "u32"),
                  *u64 = pin_make(session, STEPGRAPH_ROLE_FEED, 8, "u64");
    float a = 0;
    double b = 0;
    uint32_t c = 0;
    uint64_t d = 0;

    OK(stepgraph_pin_feed_f32(f32, 1.5f));
    OK(stepgraph_pin_feed_f64(f64, -2.25));
    OK(stepgraph_pin_feed_u32(u32, 0xdeadbeefu));
    OK(stepgraph_pin_feed_u64(u64, 0x0123456789abcdefu));
    OK(stepgraph_session_flush(session));
    OK(stepgraph_pin_read(f32, &a, 4));
    OK(stepgraph_pin_read(f64, &b, 8));
    OK(stepgraph_pin_read(u32, &c, 4));
    OK(stepgraph_pin_read(u64, &d, 8));
    ck_assert_float_eq(a, 1.5f);
    ck_assert_double_eq(b, -2.25);
    ck_assert_uint_eq(c, 0xdeadbeefu);
    ck_assert_uint_eq(d, 0x0123456789abcdefu);
}
END_TEST

START_TEST(number_of_another_size_is_refused)
{
    stepgraph_pin *four = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "four"),
                  *eight = pin_make(session, STEPGRAPH_ROLE_CELL, 8, "eight");

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_feed_f32(eight, 1), "eight", "4", "8");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_feed_u32(eight, 1), "eight", "4", "8");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_feed_f64(four, 1), "four", "4", "8");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_feed_u64(four, 1), "four", "4", "8");
}
END_TEST

START_TEST(short_feed_leaves_no_stale_tail)
{
    stepgraph_pin *x = pin_make(session, STEPGRAPH_ROLE_FEED, 1001, "x");
    unsigned char bytes[1001], got[1001];
    uint64_t seed = 4;

    random_bytes(&seed, bytes, sizeof bytes);
    static const size_t shorter[] = {1001, 500, 1000, 1, 997, 3};
    for (size_t i = 0; i < 60; i++) { /* Several times around the ring. */
        size_t length = shorter[i % (sizeof shorter / sizeof *shorter)];
        OK(stepgraph_pin_feed(x, bytes, length));
        if (i % 2) { /* The later of two values, without what was left of the first. */
            length = length / 2 + 1;
            OK(stepgraph_pin_feed(x, bytes, length));
        }
        OK(stepgraph_session_flush(session));
        OK(stepgraph_pin_read(x, got, sizeof got));
        ck_assert_mem_eq(got, bytes, length);
        for (size_t k = length; k < sizeof got; k++)
            if (got[k] != 0)
                ck_abort_msg("byte %zu after a feed of %zu is stale", k, length);
    }
}
END_TEST

START_TEST(feed_does_not_touch_its_neighbours)
{
    enum { N = 9 };
    stepgraph_pin *pin[N];
    unsigned char bytes[64], got[64];

    memset(bytes, 0xff, sizeof bytes);
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        pin[i] = pin_make(session, STEPGRAPH_ROLE_FEED, (uint64_t)(i * 7 + 1), name);
    }
    for (int i = 0; i < N; i += 2)
        OK(stepgraph_pin_feed(pin[i], bytes, stepgraph_pin_bytes(pin[i])));
    OK(stepgraph_session_flush(session));
    for (int i = 0; i < N; i++) {
        OK(stepgraph_pin_read(pin[i], got, stepgraph_pin_bytes(pin[i])));
        for (uint64_t k = 0; k < stepgraph_pin_bytes(pin[i]); k++)
            ck_assert_uint_eq(got[k], i % 2 ? 0 : 0xff);
    }
}
END_TEST

START_TEST(too_many_bytes_are_refused_with_both_numbers)
{
    stepgraph_pin *x = pin_make(session, STEPGRAPH_ROLE_FEED, 100, "tokens");
    unsigned char bytes[101] = {1}, got[100];

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_feed(x, bytes, 101), "tokens", "101", "100");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_feed(x, NULL, 100), "tokens");
    OK(stepgraph_session_flush(session));
    OK(stepgraph_pin_read(x, got, 100));
    ck_assert_uint_eq(got[0], 0);
}
END_TEST

START_TEST(only_feeds_and_cells_are_fed)
{
    static const stepgraph_role role[] = {STEPGRAPH_ROLE_STATE, STEPGRAPH_ROLE_OUTPUT, STEPGRAPH_ROLE_CONST,
                                          STEPGRAPH_ROLE_SCRATCH, STEPGRAPH_ROLE_LIBRARY};

    for (int i = 0; i < 5; i++) {
        char name[16];
        stepgraph_pin *pin;
        snprintf(name, sizeof name, "pin%d", i);
        pin = pin_make(session, role[i], 4, name);
        FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_feed_f32(pin, 1), name);
        FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_feed(pin, &(float){1}, 4), name);
    }
}
END_TEST

START_TEST(later_value_wins)
{
    stepgraph_pin *cell = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "rate");
    float got;

    OK(stepgraph_pin_feed_f32(cell, 1));
    OK(stepgraph_pin_feed_f32(cell, 2));
    OK(stepgraph_session_flush(session));
    OK(stepgraph_pin_read(cell, &got, 4));
    ck_assert_float_eq(got, 2);
}
END_TEST

START_TEST(cell_keeps_its_value_until_it_is_fed_again)
{
    struct trainer t = trainer_make(session, 1);
    stepgraph_step *step = step_make(session, "train", 0);
    float got;

    record(step, body_train, &t);
    OK(stepgraph_pin_feed_f32(t.rate, 10));
    for (int i = 1; i <= 20; i++) {
        OK(stepgraph_pin_feed(t.x, &(float){(float)i}, 4));
        OK(stepgraph_step_replay(step));
    }
    sums(&t, &got);
    ck_assert_float_eq(got, 10 * 210);
}
END_TEST

/* What was not fed travels along with what lies around it, though one of those was fed twice, or is gone. */
START_TEST(value_in_between_stays_whatever_is_fed_around_it)
{
    stepgraph_pin *pin[4];
    unsigned n = _i == 0 ? 3 : 4;

    for (unsigned i = 0; i < n; i++) {
        pin[i] = pin_make(session, STEPGRAPH_ROLE_CELL, 4, (const char *const[]){"first", "between", "last", "gone"}[i]);
        OK(stepgraph_pin_feed_f32(pin[i], (float)(i + 1)));
    }
    OK(stepgraph_session_flush(session));
    OK(stepgraph_pin_feed_f32(pin[0], 10));
    OK(stepgraph_pin_feed_f32(pin[2], 30));
    OK(stepgraph_pin_feed_f32(pin[n - 1], 30));
    if (_i != 0)
        drop_pin(pin[3]);
    OK(stepgraph_session_flush(session));
    ck_assert_float_eq(pin_float(pin[0]), 10);
    ck_assert_float_eq(pin_float(pin[1]), 2);
    ck_assert_float_eq(pin_float(pin[2]), 30);
}
END_TEST

START_TEST(run_begin_sends_what_was_fed)
{
    struct trainer t = trainer_make(session, 1);
    stepgraph_step *step = step_make(session, "train", 0);
    float got;

    OK(stepgraph_pin_feed(t.x, &(float){3}, 4));
    OK(stepgraph_pin_feed_f32(t.rate, 2));
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_FRESH));
    body_train(&t);
    OK(stepgraph_step_run_end(step));
    sums(&t, &got);
    ck_assert_float_eq(got, 6);
}
END_TEST

START_TEST(nothing_travels_before_it_is_sent)
{
    stepgraph_pin *cell = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "rate");
    CUdeviceptr seen = device_make(4);

    OK(stepgraph_pin_feed_f32(cell, 5));
    copyf(stream, seen, stepgraph_pin_address(cell));
    ck_assert_float_eq(float_at(seen), 0);
    OK(stepgraph_session_flush(session));
    copyf(stream, seen, stepgraph_pin_address(cell));
    ck_assert_float_eq(float_at(seen), 5);
}
END_TEST

START_TEST(feed_while_recording_is_for_the_replay)
{
    struct trainer t = trainer_make(session, 1);
    stepgraph_step *step = step_make(session, "train", 0);
    float got;

    begin_recording(step);
    OK(stepgraph_pin_feed(t.x, &(float){3}, 4));
    body_train(&t);
    OK(stepgraph_pin_feed_f32(t.rate, 2));
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(step_stats(step).nodes_total, 1); /* The copy is not in the graph. */
    OK(stepgraph_step_replay(step));
    sums(&t, &got);
    ck_assert_float_eq(got, 6);
    OK(stepgraph_pin_feed(t.x, &(float){10}, 4));
    OK(stepgraph_step_replay(step));
    sums(&t, &got);
    ck_assert_float_eq(got, 26);
}
END_TEST

START_TEST(flush_while_recording_is_refused)
{
    stepgraph_pin *cell = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "rate");
    stepgraph_step *step = step_make(session, "recorder", STEPGRAPH_STEP_ALLOW_EMPTY);

    OK(stepgraph_pin_feed_f32(cell, 1));
    begin_recording(step);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_session_flush(session), "recorder");
    OK(stepgraph_step_end(step));
    OK(stepgraph_session_flush(session));
    ck_assert_float_eq(pin_float(cell), 1);
}
END_TEST

START_TEST(pins_made_after_a_feed_do_not_disturb_it)
{
    stepgraph_pin *first = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "first"), *second;
    CUdeviceptr address = stepgraph_pin_address(first);

    OK(stepgraph_pin_feed_f32(first, 11));
    second = pin_make(session, STEPGRAPH_ROLE_FEED, 100000, "second");
    ck_assert_uint_eq(stepgraph_pin_address(first), address);
    OK(stepgraph_pin_feed(second, &(float){22}, 4));
    OK(stepgraph_session_flush(session));
    ck_assert_float_eq(pin_float(first), 11);
    ck_assert_float_eq(pin_float(second), 22);
}
END_TEST

START_TEST(new_feed_does_not_inherit_the_value_of_an_old_one)
{
    for (int round = 0; round < 3; round++) {
        stepgraph_pin *old = pin_make(session, STEPGRAPH_ROLE_FEED, 64, "old"), *neighbour;
        unsigned char bytes[64], zeros[64] = {0};

        memset(bytes, 0xaa, sizeof bytes);
        OK(stepgraph_pin_feed(old, bytes, sizeof bytes));
        if (round != 1) /* Sent, or dropped while it waits. */
            OK(stepgraph_session_flush(session));
        drop_pin(old);
        old = pin_make(session, STEPGRAPH_ROLE_FEED, 64, "new");
        neighbour = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "neighbour");
        OK(stepgraph_pin_feed_f32(neighbour, 1));
        OK(stepgraph_session_flush(session));
        OK(stepgraph_pin_read(old, bytes, sizeof bytes));
        ck_assert_mem_eq(bytes, zeros, sizeof bytes);
        drop_pin(old);
        drop_pin(neighbour);
    }
}
END_TEST

/* Any subset may be fed before each step; the others keep what they had. */
/* Each has its latest value in another slot of the ring. */
START_TEST(values_in_all_slots_survive_pins_that_join)
{
    enum { N = 16 };
    stepgraph_pin *cell[N + 200];
    char name[16];

    for (int i = 0; i < N + 200; i++) {
        snprintf(name, sizeof name, "c%d", i);
        cell[i] = pin_make(session, STEPGRAPH_ROLE_CELL, 4, name);
        if (i < N) {
            OK(stepgraph_pin_feed_f32(cell[i], (float)(100 + i)));
            OK(stepgraph_session_flush(session));
        }
    }
    put_float(stepgraph_pin_address(cell[5]), 0); /* What comes is what the host's side holds. */
    OK(stepgraph_pin_feed_f32(cell[0], 1));
    OK(stepgraph_pin_feed_f32(cell[N + 199], 2));
    OK(stepgraph_session_flush(session));
    for (int i = 1; i < N; i++)
        ck_assert_float_eq(pin_float(cell[i]), (float)(100 + i));
    for (int i = N; i < N + 199; i++)
        ck_assert_float_eq(pin_float(cell[i]), 0);
    ck_assert_float_eq(pin_float(cell[0]), 1);
    ck_assert_float_eq(pin_float(cell[N + 199]), 2);
}
END_TEST

START_TEST(new_feed_that_is_not_fed_is_zero_between_others_that_are)
{
    stepgraph_pin *cell[3];

    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < 3; i++)
            cell[i] = pin_make(session, STEPGRAPH_ROLE_CELL, 4, (const char *[]){"a", "b", "c"}[i]);
        for (int i = 0; i < 3; i++)
            if (again == 0 || i != 1)
                OK(stepgraph_pin_feed_f32(cell[i], (float)(5 + i)));
        OK(stepgraph_session_flush(session));
        ck_assert_float_eq(pin_float(cell[0]), 5);
        ck_assert_float_eq(pin_float(cell[1]), again == 0 ? 6 : 0);
        ck_assert_float_eq(pin_float(cell[2]), 7);
        for (int i = 0; i < 3; i++)
            drop_pin(cell[i]);
    }
}
END_TEST

START_TEST(subsets_fed_at_random_match_a_copy_on_the_host)
{
    enum { PINS = 7, STEPS = 80, BYTES = 96 };
    stepgraph_session_config config = config_slots((uint32_t[]){2, 3, 8}[_i]);
    stepgraph_pin *pin[PINS], *seen;
    stepgraph_step *step;
    uint64_t seed = 9 + (uint64_t)_i, bytes[PINS], at[PINS], total = 0;
    unsigned char host[PINS][BYTES] = {{0}}, *wanted, *got;

    reopen(&config);
    for (int i = 0; i < PINS; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        bytes[i] = 1 + unit_random(&seed) % BYTES;
        at[i] = total;
        total += bytes[i];
        pin[i] = pin_make(session, i % 2 ? STEPGRAPH_ROLE_CELL : STEPGRAPH_ROLE_FEED, bytes[i], name);
    }
    seen = pin_make(session, STEPGRAPH_ROLE_OUTPUT, total, "seen");
    step = step_make(session, "train", 0);
    begin_recording(step);
    for (int i = 0; i < PINS; i++)
        CU(MemcpyDtoDAsync(stepgraph_pin_address(seen) + at[i], stepgraph_pin_address(pin[i]), bytes[i], stream));
    OK(stepgraph_step_end(step));

    /* Each step's view is copied aside on the device, so that the host can run ahead. */
    wanted = malloc(total * STEPS);
    got = malloc(total * STEPS);
    CUdeviceptr all = device_make(total * STEPS);
    for (unsigned k = 0; k < STEPS; k++) {
        for (int i = 0; i < PINS; i++)
            if (unit_random(&seed) % 3 == 0) {
                uint64_t length = 1 + unit_random(&seed) % bytes[i];
                memset(host[i], 0, bytes[i]);
                random_bytes(&seed, host[i], length);
                OK(stepgraph_pin_feed(pin[i], host[i], length));
            }
        if (k % 20 == 0)
            spin(stream, 5);
        OK(stepgraph_step_replay(step));
        CU(MemcpyDtoDAsync(all + k * total, stepgraph_pin_address(seen), total, stream));
        for (int i = 0; i < PINS; i++)
            memcpy(wanted + k * total + at[i], host[i], bytes[i]);
    }
    bytes_at(all, got, total * STEPS);
    for (unsigned k = 0; k < STEPS; k++)
        for (int i = 0; i < PINS; i++)
            ck_assert_msg(memcmp(got + k * total + at[i], wanted + k * total + at[i], bytes[i]) == 0, "step %u saw another x%d",
                          k, i);
    free(wanted);
    free(got);
}
END_TEST

/* ---- running ahead ------------------------------------------------------------------------------------------------------- */

START_TEST(every_replay_sees_its_own_feed_however_far_the_host_runs_ahead)
{
    enum { STEPS = 64 };
    static const uint32_t slots[] = {2, 3, 8, 64};
    stepgraph_session_config config = config_slots(slots[_i]);
    struct trainer t, fresh;
    stepgraph_step *step;
    float x[STEPS], got[STEPS], wanted[STEPS];

    reopen(&config);
    t = trainer_make(session, STEPS);
    fresh = t;
    step = step_make(session, "train", 0);
    record(step, body_train, &t);
    spin(stream, 50);
    for (int k = 0; k < STEPS; k++) {
        memset(x, 0, sizeof x);
        x[k] = (float)(k + 1);
        OK(stepgraph_pin_feed(t.x, x, sizeof x));
        OK(stepgraph_pin_feed_f32(t.rate, (float)(1 + k % 5)));
        OK(stepgraph_step_replay(step));
    }
    sums(&t, got);
    if (slots[_i] < 64)
        ck_assert_uint_gt(pin_stats(session).feed_waits, 0); /* The fence held the host back. */

    /* The same steps without a graph and without running ahead. */
    CUdeviceptr sum = device_make(sizeof x), batch = device_make(sizeof x), rate = device_make(4);
    for (int k = 0; k < STEPS; k++) {
        memset(x, 0, sizeof x);
        x[k] = (float)(k + 1);
        put_bytes(batch, x, sizeof x);
        put_float(rate, (float)(1 + k % 5));
        update(stream, sum, sum, batch, rate, fresh.n);
        OK(stepgraph_session_wait(session));
    }
    bytes_at(sum, wanted, sizeof wanted);
    ck_assert_mem_eq(got, wanted, sizeof got);
}
END_TEST

START_TEST(feeds_of_runs_and_flushes_are_fenced_like_those_of_replays)
{
    enum { STEPS = 40 };
    stepgraph_session_config config = config_slots(2);
    struct trainer t;
    stepgraph_step *step;
    float x[STEPS], got[STEPS];

    reopen(&config);
    t = trainer_make(session, STEPS);
    step = step_make(session, "train", 0);
    record(step, body_train, &t);
    OK(stepgraph_pin_feed_f32(t.rate, 1));
    spin(stream, 30);
    for (int k = 0; k < STEPS; k++) {
        memset(x, 0, sizeof x);
        x[k] = (float)(k + 1);
        OK(stepgraph_pin_feed(t.x, x, sizeof x));
        if (k % 3 == 0) {
            OK(stepgraph_step_replay(step));
        } else if (k % 3 == 1) {
            OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_FRESH));
            body_train(&t);
            OK(stepgraph_step_run_end(step));
        } else {
            OK(stepgraph_session_flush(session));
            body_train(&t);
        }
    }
    sums(&t, got);
    for (int k = 0; k < STEPS; k++)
        ck_assert_float_eq(got[k], (float)(k + 1));
}
END_TEST

/* ---- what it costs ------------------------------------------------------------------------------------------------------- */

START_TEST(all_feeds_of_a_step_travel_in_one_copy)
{
    static const int number[] = {1, 2, 10, 100};
    int n = number[_i];
    stepgraph_pin *pin[100], *out = pin_make(session, STEPGRAPH_ROLE_OUTPUT, 4, "out");
    stepgraph_step *step = step_make(session, "train", 0);
    stepgraph_pin_stats before, after;
    unsigned long copies;

    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        pin[i] = pin_make(session, i % 2 ? STEPGRAPH_ROLE_CELL : STEPGRAPH_ROLE_FEED, (uint64_t)(4 + i * 3), name);
    }
    begin_recording(step);
    copyf(stream, stepgraph_pin_address(out), stepgraph_pin_address(pin[n - 1]));
    OK(stepgraph_step_end(step));
    for (int k = 1; k <= 5; k++) {
        before = pin_stats(session);
        copies = driver_calls(COPIES);
        for (int i = 0; i < n; i++)
            OK(stepgraph_pin_feed(pin[i], &(float){(float)(k * 1000 + i)}, 4));
        ck_assert_uint_eq(driver_calls(COPIES), copies);
        OK(stepgraph_step_replay(step));
        after = pin_stats(session);
        if (unit_has_controls())
            ck_assert_uint_eq(driver_calls(COPIES), copies + 1);
        ck_assert_uint_eq(after.feeds, before.feeds + (uint64_t)n);
        ck_assert_uint_eq(after.feed_copies, before.feed_copies + 1);
        ck_assert_uint_gt(after.feed_bytes, before.feed_bytes);
        ck_assert_float_eq(pin_float(out), (float)(k * 1000 + n - 1));
        for (int i = 0; i < n; i++)
            ck_assert_float_eq(pin_float(pin[i]), (float)(k * 1000 + i));
    }
}
END_TEST

START_TEST(replay_of_a_fed_step_is_two_driver_calls_that_enqueue)
{
    struct trainer t = trainer_make(session, 4);
    stepgraph_step *step = step_make(session, "train", 0);
    float x[4] = {1};
    unsigned long copies, graphs, launches;

    record(step, body_train, &t);
    OK(stepgraph_step_replay(step));
    copies = driver_calls(COPIES);
    graphs = driver_calls("cuGraphLaunch");
    launches = driver_calls("cuLaunchKernel");
    OK(stepgraph_pin_feed(t.x, x, sizeof x));
    OK(stepgraph_pin_feed_f32(t.rate, 1));
    OK(stepgraph_step_replay(step));
    ck_assert_uint_eq(driver_calls(COPIES), copies + 1);
    ck_assert_uint_eq(driver_calls("cuGraphLaunch"), graphs + 1);
    ck_assert_uint_eq(driver_calls("cuLaunchKernel"), launches);
}
END_TEST

/* Driver 580 wants none for calls that name their stream. Should another one, it gets it. */
START_TEST(driver_that_wants_a_current_context_gets_it)
{
    static const char *const entries[] = {COPIES, "cuEventRecord", "cuGraphLaunch"};
    struct trainer t = trainer_make(session, 1);
    stepgraph_step *step = step_make(session, "train", 0);

    record(step, body_train, &t);
    OK(stepgraph_pin_feed_f32(t.rate, 1));
    OK(stepgraph_step_replay(step));
    CU(CtxSetCurrent(NULL));
    driver_fails(entries[_i], 1, CUDA_ERROR_INVALID_CONTEXT);
    for (int i = 0; i < 20; i++) {
        unsigned long pushes = driver_calls("cuCtxPushCurrent"), calls = driver_calls(entries[_i]);
        OK(stepgraph_pin_feed_f32(t.x, 1));
        OK(stepgraph_step_replay(step));
        /* Again, and that time in the context; otherwise not. */
        ck_assert_uint_eq(driver_calls("cuCtxPushCurrent") - pushes, driver_calls(entries[_i]) - calls == 2);
        ck_assert(_i == 1 || driver_calls(entries[_i]) - calls == 1 + (unsigned)(i == 0));
    }
    no_driver_fails();
    CU(CtxSetCurrent(stepgraph_session_context(session)));
    ck_assert_float_eq(pin_float(t.sum), 20);
}
END_TEST

/* As many as were planned for, to the byte, travel in one copy. */
START_TEST(feeds_that_fill_what_was_set_aside_travel_in_one_copy)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_pin *one, *other;
    float x[64] = {0};

    config.feed_bytes = 2 * sizeof x;
    reopen(&config);
    one = pin_make(session, STEPGRAPH_ROLE_FEED, sizeof x, "one");
    other = pin_make(session, STEPGRAPH_ROLE_FEED, sizeof x, "other");
    OK(stepgraph_pin_feed(one, x, sizeof x));
    OK(stepgraph_pin_feed(other, x, sizeof x));
    OK(stepgraph_session_flush(session));
    ck_assert_uint_eq(pin_stats(session).feed_copies, 1);
}
END_TEST

/* A cell of four bytes for which a terabyte is asked: it is not the cell that is too large. */
START_TEST(what_is_set_aside_for_feeds_is_named_where_there_is_no_room_for_it)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_pin_config small = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *made = NULL;
    char bytes[32];

    config.feed_bytes = _i == 0 ? 1ull << 46 : UINT64_MAX;
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)config.feed_bytes);
    reopen(&config);
    small.role = STEPGRAPH_ROLE_CELL;
    small.bytes = 4;
    small.name = "rate";
    FAILS(STEPGRAPH_ERR_MEMORY, stepgraph_pin_create(session, &small, &made), "'rate'", "feed_bytes", bytes);
    small.role = STEPGRAPH_ROLE_STATE;
    OK(stepgraph_pin_create(session, &small, &made));
    keep_pin(made);
}
END_TEST

START_TEST(feeds_up_to_the_slots_wait_for_nothing)
{
    const stepgraph_session_config config = config_slots(4);
    stepgraph_pin *x;

    reopen(&config);
    x = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "x");
    spin(stream, 50);
    for (uint32_t i = 0; i < 2 * config.feed_slots - 1; i++) { /* There are twice as many slots, and the first feed takes the second of them. */
        OK(stepgraph_pin_feed_f32(x, (float)i));
        OK(stepgraph_session_flush(session));
    }
    ck_assert_uint_eq(pin_stats(session).feed_waits, 0);
    ck_assert_float_eq(pin_float(x), (float)(2 * config.feed_slots - 2));
}
END_TEST

START_TEST(nothing_is_copied_when_nothing_was_fed)
{
    struct trainer t = trainer_make(session, 4);
    stepgraph_step *step = step_make(session, "train", 0);
    unsigned long copies;

    record(step, body_train, &t);
    copies = driver_calls(COPIES);
    for (int i = 0; i < 5; i++)
        OK(stepgraph_step_replay(step));
    OK(stepgraph_session_flush(session));
    ck_assert_uint_eq(driver_calls(COPIES), copies);
    ck_assert_uint_eq(pin_stats(session).feed_copies, 0);
}
END_TEST

START_TEST(more_feeds_than_were_planned_for_still_arrive)
{
    enum { N = 40 };
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_pin *pin[N];
    unsigned char bytes[1000], got[1000];
    stepgraph_pin_stats stats;

    config.feed_bytes = 1024;
    reopen(&config);
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        pin[i] = pin_make(session, STEPGRAPH_ROLE_FEED, (uint64_t)(100 + i * 20), name);
    }
    for (uint64_t round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            uint64_t seed = round * 100 + (uint64_t)i;
            random_bytes(&seed, bytes, stepgraph_pin_bytes(pin[i]));
            OK(stepgraph_pin_feed(pin[i], bytes, stepgraph_pin_bytes(pin[i])));
        }
        OK(stepgraph_session_flush(session));
        for (int i = 0; i < N; i++) {
            uint64_t seed = round * 100 + (uint64_t)i;
            random_bytes(&seed, bytes, stepgraph_pin_bytes(pin[i]));
            OK(stepgraph_pin_read(pin[i], got, stepgraph_pin_bytes(pin[i])));
            ck_assert_mem_eq(got, bytes, stepgraph_pin_bytes(pin[i]));
        }
    }
    stats = pin_stats(session);
    ck_assert_uint_gt(stats.feed_copies, 3);
    ck_assert_uint_lt(stats.feed_copies, 3 * N);
}
END_TEST

START_TEST(feed_larger_than_all_that_was_planned_arrives)
{
    enum { SIZE = 3 << 20 };
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    unsigned char *bytes = malloc(SIZE), *got = malloc(SIZE);
    stepgraph_pin *pin;
    uint64_t seed = 77;

    config.feed_bytes = 4096;
    reopen(&config);
    pin = pin_make(session, STEPGRAPH_ROLE_FEED, SIZE, "batch");
    random_bytes(&seed, bytes, SIZE);
    OK(stepgraph_pin_feed(pin, bytes, SIZE));
    OK(stepgraph_session_flush(session));
    OK(stepgraph_pin_read(pin, got, SIZE));
    ck_assert(memcmp(bytes, got, SIZE) == 0);
    free(bytes);
    free(got);
}
END_TEST

/* ---- adopted feeds -------------------------------------------------------------------------------------------------------- */

START_TEST(adopted_feed_is_filled_by_one_more_launch)
{
    CUdeviceptr mine = device_make(64);
    stepgraph_pin *x = pin_adopt(session, STEPGRAPH_ROLE_FEED, mine + 16, 16, "mine"),
                  *own = pin_make(session, STEPGRAPH_ROLE_FEED, 16, "own");
    unsigned long copies = driver_calls(COPIES), launches = driver_calls("cuLaunchKernel") + driver_calls("cuMemcpyDtoDAsync");
    float got[16], v[4] = {1, 2, 3, 4};

    OK(stepgraph_pin_feed(x, v, sizeof v));
    OK(stepgraph_pin_feed(own, v, 4));
    OK(stepgraph_session_flush(session));
    if (unit_has_controls()) {
        ck_assert_uint_eq(driver_calls(COPIES), copies + 1);
        ck_assert_uint_eq(driver_calls("cuLaunchKernel") + driver_calls("cuMemcpyDtoDAsync"), launches + 1);
    }
    bytes_at(mine, got, sizeof got);
    ck_assert_mem_eq(got + 4, v, sizeof v);
    ck_assert_float_eq(got[3], 0);
    ck_assert_float_eq(got[8], 0);
    ck_assert_float_eq(pin_float(own), 1);
}
END_TEST

START_TEST(adopted_feed_gets_its_value_before_the_replay)
{
    CUdeviceptr mine = device_make(4);
    struct trainer t = {pin_adopt(session, STEPGRAPH_ROLE_FEED, mine, 4, "x"), pin_make(session, STEPGRAPH_ROLE_CELL, 4, "rate"),
                        pin_make(session, STEPGRAPH_ROLE_STATE, 4, "sum"), 1};
    stepgraph_step *step = step_make(session, "train", 0);
    float got;

    record(step, body_train, &t);
    OK(stepgraph_pin_feed_f32(t.rate, 1));
    spin(stream, 10);
    for (int i = 1; i <= 20; i++) {
        OK(stepgraph_pin_feed(t.x, &(float){(float)i}, 4));
        OK(stepgraph_step_replay(step));
    }
    sums(&t, &got);
    ck_assert_float_eq(got, 210);
}
END_TEST

START_TEST(adopted_feed_that_was_not_fed_is_left_alone)
{
    CUdeviceptr mine = device_make(4);
    stepgraph_pin *x = pin_adopt(session, STEPGRAPH_ROLE_FEED, mine, 4, "mine"),
                  *own = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "own");

    OK(stepgraph_pin_feed(x, &(float){1}, 4));
    OK(stepgraph_session_flush(session));
    put_float(mine, 50); /* The host's own write. */
    OK(stepgraph_pin_feed_f32(own, 2));
    OK(stepgraph_session_flush(session));
    ck_assert_float_eq(pin_float(x), 50);
    ck_assert_float_eq(pin_float(own), 2);
}
END_TEST

/* ---- strict feeds -----------------------------------------------------------------------------------------------------------
 */

START_TEST(strict_step_refuses_a_stale_feed_by_name)
{
    struct trainer t = trainer_make(session, 1);
    stepgraph_step *step = step_make(session, "strict one", STEPGRAPH_STEP_STRICT_FEEDS);
    float got;

    pin_make(session, STEPGRAPH_ROLE_FEED, 4, "unused");
    record(step, body_train, &t);
    OK(stepgraph_pin_feed_f32(t.rate, 1));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "'x'", "was never fed");
    STATE_IS(step, STEPGRAPH_STEP_READY);
    OK(stepgraph_pin_feed(t.x, &(float){3}, 4));
    OK(stepgraph_step_replay(step));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "'x'", "was not fed since replay 1,");
    STATE_IS(step, STEPGRAPH_STEP_READY);
    ck_assert_uint_eq(step_stats(step).replays, 1);
    OK(stepgraph_pin_feed(t.x, &(float){4}, 4));
    OK(stepgraph_step_replay(step)); /* The cell need not be fed again, nor the feed that the graph does not use. */
    sums(&t, &got);
    ck_assert_float_eq(got, 7);
}
END_TEST

START_TEST(feed_of_a_step_that_was_recorded_anew_is_asked_for_in_words_that_fit)
{
    struct trainer t = trainer_make(session, 1);
    stepgraph_step *step = step_make(session, "strict", STEPGRAPH_STEP_STRICT_FEEDS);

    record(step, body_train, &t);
    OK(stepgraph_pin_feed(t.x, &(float){4}, 4));
    replayed(step, 1);
    OK(stepgraph_step_reset(step));
    record(step, body_train, &t);
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "'x'", "was not fed for the step that was recorded");
}
END_TEST

START_TEST(feed_that_was_sent_before_the_replay_is_fresh)
{
    struct trainer t = trainer_make(session, 1);
    stepgraph_step *step = step_make(session, "strict", STEPGRAPH_STEP_STRICT_FEEDS);

    record(step, body_train, &t);
    OK(stepgraph_pin_feed(t.x, &(float){3}, 4));
    OK(stepgraph_pin_feed_f32(t.rate, 1));
    OK(stepgraph_session_flush(session));
    OK(stepgraph_step_replay(step));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "'x'");
    ck_assert_float_eq(pin_float(t.sum), 3);
}
END_TEST

START_TEST(each_strict_step_asks_for_feeds_since_its_own_last_replay)
{
    struct trainer t = trainer_make(session, 1);
    stepgraph_step *a = step_make(session, "a", STEPGRAPH_STEP_STRICT_FEEDS),
                   *b = step_make(session, "b", STEPGRAPH_STEP_STRICT_FEEDS);

    record(a, body_train, &t);
    record(b, body_train, &t);
    OK(stepgraph_pin_feed_f32(t.rate, 1));
    OK(stepgraph_pin_feed(t.x, &(float){3}, 4));
    OK(stepgraph_step_replay(a));
    OK(stepgraph_step_replay(b)); /* Not replayed since the feed. */
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(a), "'x'", "'a'");
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(b), "'x'", "'b'");
    ck_assert_float_eq(pin_float(t.sum), 6);
}
END_TEST

/* A run has used the batch as a replay would. */
START_TEST(strict_step_asks_for_feeds_since_its_last_run)
{
    struct trainer t = trainer_make(session, 1);
    stepgraph_step *step = step_make(session, "strict", STEPGRAPH_STEP_STRICT_FEEDS);

    record(step, body_train, &t);
    OK(stepgraph_pin_feed_f32(t.rate, 1));
    OK(stepgraph_pin_feed(t.x, &(float){3}, 4));
    OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_FRESH));
    body_train(&t);
    OK(stepgraph_step_run_end(step));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "'x'", "fed");
    OK(stepgraph_pin_feed(t.x, &(float){4}, 4));
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(t.sum), 7);
}
END_TEST

START_TEST(refused_replay_keeps_what_was_fed)
{
    stepgraph_pin *y = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "y");
    struct trainer t = trainer_make(session, 1);
    stepgraph_step *step = step_make(session, "strict", STEPGRAPH_STEP_STRICT_FEEDS);

    begin_recording(step);
    body_train(&t);
    copyf(stream, stepgraph_pin_address(t.sum), stepgraph_pin_address(y));
    OK(stepgraph_step_end(step));
    OK(stepgraph_pin_feed(y, &(float){8}, 4));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), "'x'");
    OK(stepgraph_pin_feed(t.x, &(float){1}, 4));
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(t.sum), 8);
}
END_TEST

START_TEST(lenient_step_replays_over_old_feeds)
{
    struct trainer t = trainer_make(session, 1);
    stepgraph_step *step = step_make(session, "train", 0);

    record(step, body_train, &t);
    OK(stepgraph_pin_feed(t.x, &(float){3}, 4));
    OK(stepgraph_pin_feed_f32(t.rate, 1));
    OK(stepgraph_step_replay(step));
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(t.sum), 6);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("feed");
    TCase *values = unit_case(suite, "values"), *ahead = unit_case(suite, "running ahead"), *cost = unit_case(suite, "cost"),
          *adopted = unit_case(suite, "adopted"), *strict = unit_case(suite, "strict");

    tcase_add_test(values, replay_uses_what_was_fed);
    tcase_add_test(values, every_number_type_can_be_fed);
    tcase_add_test(values, number_of_another_size_is_refused);
    tcase_add_test(values, short_feed_leaves_no_stale_tail);
    tcase_add_test(values, feed_does_not_touch_its_neighbours);
    tcase_add_test(values, too_many_bytes_are_refused_with_both_numbers);
    tcase_add_test(values, only_feeds_and_cells_are_fed);
    tcase_add_test(values, later_value_wins);
    tcase_add_test(values, cell_keeps_its_value_until_it_is_fed_again);
    tcase_add_loop_test(values, value_in_between_stays_whatever_is_fed_around_it, 0, 2);
    tcase_add_test(values, run_begin_sends_what_was_fed);
    tcase_add_test(values, nothing_travels_before_it_is_sent);
    tcase_add_test(values, feed_while_recording_is_for_the_replay);
    tcase_add_test(values, flush_while_recording_is_refused);
    tcase_add_test(values, pins_made_after_a_feed_do_not_disturb_it);
    tcase_add_test(values, new_feed_does_not_inherit_the_value_of_an_old_one);
    tcase_add_test(values, new_feed_that_is_not_fed_is_zero_between_others_that_are);
    tcase_add_test(values, values_in_all_slots_survive_pins_that_join);
    tcase_add_loop_test(values, subsets_fed_at_random_match_a_copy_on_the_host, 0, 3);

    tcase_add_loop_test(ahead, every_replay_sees_its_own_feed_however_far_the_host_runs_ahead, 0, 4);
    tcase_add_test(ahead, feeds_of_runs_and_flushes_are_fenced_like_those_of_replays);

    tcase_add_loop_test(cost, all_feeds_of_a_step_travel_in_one_copy, 0, 4);
    add_controlled_test(cost, replay_of_a_fed_step_is_two_driver_calls_that_enqueue);
    add_controlled_loop_test(cost, driver_that_wants_a_current_context_gets_it, 0, 3);
    tcase_add_test(cost, feeds_that_fill_what_was_set_aside_travel_in_one_copy);
    tcase_add_test(cost, feeds_up_to_the_slots_wait_for_nothing);
    tcase_add_loop_test(cost, what_is_set_aside_for_feeds_is_named_where_there_is_no_room_for_it, 0, 2);
    tcase_add_test(cost, nothing_is_copied_when_nothing_was_fed);
    tcase_add_test(cost, more_feeds_than_were_planned_for_still_arrive);
    tcase_add_test(cost, feed_larger_than_all_that_was_planned_arrives);

    tcase_add_test(adopted, adopted_feed_is_filled_by_one_more_launch);
    tcase_add_test(adopted, adopted_feed_gets_its_value_before_the_replay);
    tcase_add_test(adopted, adopted_feed_that_was_not_fed_is_left_alone);

    tcase_add_test(strict, strict_step_refuses_a_stale_feed_by_name);
    tcase_add_test(strict, feed_of_a_step_that_was_recorded_anew_is_asked_for_in_words_that_fit);
    tcase_add_test(strict, feed_that_was_sent_before_the_replay_is_fresh);
    tcase_add_test(strict, each_strict_step_asks_for_feeds_since_its_own_last_replay);
    tcase_add_test(strict, strict_step_asks_for_feeds_since_its_last_run);
    tcase_add_test(strict, refused_replay_keeps_what_was_fed);
    tcase_add_test(strict, lenient_step_replays_over_old_feeds);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
