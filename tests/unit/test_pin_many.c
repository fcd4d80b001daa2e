/* Pins by the thousand: made, written and read by one call each, found by name among many. */
#include "support.h"

enum { MANY = 1000 };

static const stepgraph_role roles[] = {STEPGRAPH_ROLE_STATE, STEPGRAPH_ROLE_FEED,    STEPGRAPH_ROLE_CELL,   STEPGRAPH_ROLE_OUTPUT,
                                       STEPGRAPH_ROLE_CONST, STEPGRAPH_ROLE_SCRATCH, STEPGRAPH_ROLE_LIBRARY};
enum { ROLES = sizeof roles / sizeof *roles };

static stepgraph_pin_config configs[MANY];
static stepgraph_pin *pins[MANY];
static char names[MANY][24];

/* n pins of all roles and many sizes, 'p0' to 'p(n-1)'. */
static void describe(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const stepgraph_pin_config none = STEPGRAPH_PIN_CONFIG_INIT;
        snprintf(names[i], sizeof names[i], "p%zu", i);
        configs[i] = none;
        configs[i].role = roles[i % ROLES];
        configs[i].bytes = 1 + i * 7 % 600;
        configs[i].name = names[i];
    }
}

static void make_many(size_t n)
{
    OK(stepgraph_pin_create_many(session, n, configs, pins));
    for (size_t i = 0; i < n; i++)
        keep_pin(pins[i]);
}

/* Making n of them fails with these words, sets nothing, and leaves nothing behind. */
#define MANY_FAIL(want, n, ...)                                                                                                  \
    do {                                                                                                                         \
        stepgraph_pin_stats before_ = pin_stats(session), after_;                                                                \
        memset(pins, 0, sizeof pins);                                                                                            \
        FAILS(want, stepgraph_pin_create_many(session, n, configs, pins), __VA_ARGS__);                                          \
        after_ = pin_stats(session);                                                                                             \
        ck_assert_mem_eq(&after_, &before_, sizeof after_);                                                                      \
        for (size_t i_ = 0; i_ < (n); i_++)                                                                                      \
            ck_assert_ptr_null(pins[i_]);                                                                                        \
    } while (0)

/* ---- making ---------------------------------------------------------------------------------------------------------- */

START_TEST(many_pins_are_what_was_asked_for)
{
    static unsigned char seen[600], zeros[600];

    describe(MANY);
    make_many(MANY);
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_int_eq(stepgraph_pin_role(pins[i]), configs[i].role);
        ck_assert_uint_eq(stepgraph_pin_bytes(pins[i]), configs[i].bytes);
        ck_assert_str_eq(stepgraph_pin_name(pins[i]), names[i]);
        ck_assert_ptr_eq(stepgraph_session_pin(session, names[i]), pins[i]);
        ck_assert_uint_eq(stepgraph_pin_address(pins[i]) % (configs[i].role == STEPGRAPH_ROLE_CELL ? 16 : 256), 0);
        OK(stepgraph_pin_read(pins[i], seen, configs[i].bytes));
        ck_assert_mem_eq(seen, zeros, configs[i].bytes);
    }
    for (size_t i = 0; i < MANY; i += 13)
        for (size_t j = 0; j < MANY; j++) {
            uint64_t a = stepgraph_pin_address(pins[i]), b = stepgraph_pin_address(pins[j]);
            ck_assert(i == j || a + configs[i].bytes <= b || b + configs[j].bytes <= a);
        }
    ck_assert_uint_eq(pin_stats(session).pins, MANY);
}
END_TEST

START_TEST(many_pins_are_zero_where_others_were_before)
{
    static unsigned char seen[600], zeros[600], junk[600];

    memset(junk, 0x5a, sizeof junk);
    for (int again = 0; again < 3; again++) {
        describe(60);
        make_many(60);
        for (size_t i = 0; i < 60; i++) {
            OK(stepgraph_pin_read(pins[i], seen, configs[i].bytes));
            ck_assert_mem_eq(seen, zeros, configs[i].bytes);
            if (configs[i].role == STEPGRAPH_ROLE_FEED || configs[i].role == STEPGRAPH_ROLE_CELL)
                OK(stepgraph_pin_feed(pins[i], junk, configs[i].bytes));
            else
                OK(stepgraph_pin_write(pins[i], junk, configs[i].bytes));
        }
        OK(stepgraph_session_flush(session));
        for (size_t i = 0; i < 60; i++)
            drop_pin(pins[i]);
    }
}
END_TEST

START_TEST(feeds_that_wait_to_be_sent_are_not_lost_when_others_join)
{
    stepgraph_pin *before = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "before");

    OK(stepgraph_pin_feed_f32(before, 3));
    describe(60);
    make_many(60);
    OK(stepgraph_session_flush(session));
    ck_assert_float_eq(pin_float(before), 3);
}
END_TEST

START_TEST(many_pins_take_one_allocation_and_one_wait)
{
    unsigned long allocations, waits, frees;

    pin_make(session, STEPGRAPH_ROLE_CELL, 4, "bank"); /* Which is there already then. */
    describe(MANY);
    allocations = driver_calls("cuMemAlloc");
    waits = driver_calls("cuStreamSynchronize");
    make_many(MANY);
    ck_assert_uint_eq(driver_calls("cuMemAlloc") - allocations, 1);
    ck_assert_uint_eq(driver_calls("cuStreamSynchronize") - waits, 1);

    frees = driver_calls("cuMemFree");
    for (size_t i = 1; i < MANY; i++)
        drop_pin(pins[i]);
    ck_assert_uint_eq(driver_calls("cuMemFree"), frees);
    drop_pin(pins[0]); /* The last of them. */
    ck_assert_uint_eq(driver_calls("cuMemFree") - frees, 1);
}
END_TEST

START_TEST(what_is_left_of_many_pins_stays_usable)
{
    float v[MANY];

    describe(60);
    for (size_t i = 0; i < 60; i++) {
        configs[i].role = STEPGRAPH_ROLE_STATE;
        configs[i].bytes = 4;
    }
    make_many(60);
    for (size_t i = 0; i < 60; i++) {
        v[i] = (float)i;
        OK(stepgraph_pin_write(pins[i], &v[i], 4));
    }
    for (size_t i = 0; i < 60; i++)
        if (i % 7 != 3) {
            drop_pin(pins[i]);
            ck_assert_ptr_null(stepgraph_session_pin(session, names[i]));
        }
    for (size_t i = 3; i < 60; i += 7) {
        ck_assert_str_eq(stepgraph_pin_name(pins[i]), names[i]);
        ck_assert_float_eq(pin_float(pins[i]), v[i]);
    }
}
END_TEST

START_TEST(no_pins_at_all_are_nothing_to_do)
{
    OK(stepgraph_pin_create_many(session, 0, NULL, NULL));
    OK(stepgraph_pin_read_many(session, 0, NULL, NULL));
    OK(stepgraph_pin_write_many(session, 0, NULL, NULL));
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_create_many(NULL, 0, NULL, NULL), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_create_many(session, 1, NULL, pins), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_create_many(session, 1, configs, NULL), "NULL");
}
END_TEST

/* ---- all or none ----------------------------------------------------------------------------------------------------- */

START_TEST(one_bad_pin_among_many_is_named_and_none_is_made)
{
    stepgraph_pin *there = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "there");
    CUdeviceptr memory = device_make(4096);

    for (size_t at = 0; at < 60; at += 29) {
        describe(60);
        configs[at].bytes = 0;
        MANY_FAIL(STEPGRAPH_ERR_ARGUMENT, 60, names[at], "bytes");
        describe(60);
        configs[at].role = 9;
        MANY_FAIL(STEPGRAPH_ERR_ARGUMENT, 60, names[at], "role");
        describe(60);
        configs[at].name = NULL;
        MANY_FAIL(STEPGRAPH_ERR_ARGUMENT, 60, "name");
        describe(60);
        configs[at].name = "there";
        MANY_FAIL(STEPGRAPH_ERR_ARGUMENT, 60, "there", "taken");
        describe(60);
        configs[at].name = names[at == 29 ? 50 : 29];
        MANY_FAIL(STEPGRAPH_ERR_ARGUMENT, 60, configs[at].name, "taken");
        describe(60);
        configs[at].address = 4096;
        MANY_FAIL(STEPGRAPH_ERR_ARGUMENT, 60, names[at], "device memory");
        describe(60);
        configs[at].role = configs[30].role = STEPGRAPH_ROLE_STATE;
        configs[at].address = memory;
        configs[30].address = memory + configs[at].bytes - 1;
        MANY_FAIL(STEPGRAPH_ERR_ARGUMENT, 60, names[at], names[30], "overlaps");
        describe(60);
        configs[at].role = STEPGRAPH_ROLE_STATE;
        configs[at].bytes = UINT64_MAX - 300;
        MANY_FAIL(STEPGRAPH_ERR_MEMORY, 60, "more bytes than");
        describe(60);
        configs[at].size = offsetof(stepgraph_pin_config, type);
        MANY_FAIL(STEPGRAPH_ERR_ARGUMENT, 60, "size");
    }
    ck_assert_ptr_eq(stepgraph_session_pin(session, "there"), there);
    describe(60);
    make_many(60); /* And their names are free. */
}
END_TEST

START_TEST(configs_of_an_older_host_stand_closer_together)
{
    enum { OLD = offsetof(stepgraph_pin_config, type) };
    _Alignas(stepgraph_pin_config) unsigned char older[3 * OLD];
    const size_t size = OLD;

    describe(3);
    for (size_t i = 0; i < 3; i++) {
        memcpy(older + i * OLD, &configs[i], OLD);
        memcpy(older + i * OLD, &size, sizeof size);
    }
    OK(stepgraph_pin_create_many(session, 3, (const stepgraph_pin_config *)(const void *)older, pins));
    for (size_t i = 0; i < 3; i++) {
        keep_pin(pins[i]);
        ck_assert_ptr_eq(stepgraph_session_pin(session, names[i]), pins[i]);
        ck_assert_uint_eq(stepgraph_pin_bytes(pins[i]), configs[i].bytes);
    }
}
END_TEST

START_TEST(many_pins_cannot_be_made_while_a_step_records)
{
    stepgraph_step *step = step_make(session, "recorder", STEPGRAPH_STEP_ALLOW_EMPTY);

    describe(60);
    begin_recording(step);
    MANY_FAIL(STEPGRAPH_ERR_STATE, 60, "recorder");
    OK(stepgraph_step_end(step));
}
END_TEST

START_TEST(many_pins_or_none_whatever_driver_call_fails)
{
    static const char *const entries[] = {"cuCtxPushCurrent", "cuMemAlloc", "cuMemsetD8Async", "cuStreamSynchronize", "cuPointerGetAttributes"};
    const char *entry = entries[_i];
    CUdeviceptr memory = device_make(4096);
    unsigned long calls, all;

    describe(60);
    configs[30].role = STEPGRAPH_ROLE_STATE;
    configs[30].address = memory;
    calls = driver_calls(entry);
    make_many(60);
    all = driver_calls(entry) - calls;
    ck_assert_uint_gt(all, 0);
    for (size_t i = 0; i < 60; i++)
        drop_pin(pins[i]);
    for (unsigned nth = 1; nth <= all; nth++) {
        /* The bank of the first time is still there. */
        if (strcmp(entry, "cuMemAlloc") == 0 && nth == 2)
            break;
        driver_fails(entry, nth, CUDA_ERROR_UNKNOWN);
        MANY_FAIL(STEPGRAPH_ERR_DRIVER, 60, entry);
        no_driver_fails();
    }
    make_many(60);
}
END_TEST

/* ---- names ----------------------------------------------------------------------------------------------------------- */

/* Against a plain list: named, found and given back in random order, so that searches run over places that were freed. */
START_TEST(names_are_found_whatever_came_and_went)
{
    enum { NAMES = 400 };
    CUdeviceptr memory = device_make(256 * NAMES);
    stepgraph_pin *model[NAMES] = {NULL};
    uint64_t seed = 11;
    char name[32];

    for (int k = 0; k < 4000; k++) {
        size_t i = unit_random(&seed) % NAMES;
        snprintf(name, sizeof name, "layer%zu.weight", i);
        ck_assert_ptr_eq(stepgraph_session_pin(session, name), model[i]);
        if (model[i] != NULL) {
            drop_pin(model[i]);
            model[i] = NULL;
        } else {
            model[i] = pin_adopt(session, STEPGRAPH_ROLE_STATE, memory + 256 * i, 256, name);
        }
        if (k % 100 == 0)
            for (i = 0; i < NAMES; i++) {
                snprintf(name, sizeof name, "layer%zu.weight", i);
                ck_assert_ptr_eq(stepgraph_session_pin(session, name), model[i]);
            }
    }
}
END_TEST

/* ---- reading and writing --------------------------------------------------------------------------------------------- */

/* Host memory for each of n pins: random to be written, and room to be read into. */
static unsigned char written[MANY][600], seen[MANY][600];
static const void *sources[MANY];
static void *places[MANY];

static void fill(size_t n)
{
    uint64_t seed = 5;

    for (size_t i = 0; i < n; i++) {
        random_bytes(&seed, written[i], sizeof written[i]);
        memset(seen[i], 0x77, sizeof seen[i]);
        sources[i] = written[i];
        places[i] = seen[i];
    }
}

/* Only roles that may be written. */
static void make_writable(size_t n)
{
    describe(n);
    for (size_t i = 0; i < n; i++)
        if (configs[i].role == STEPGRAPH_ROLE_FEED || configs[i].role == STEPGRAPH_ROLE_CELL)
            configs[i].role = STEPGRAPH_ROLE_STATE;
    make_many(n);
    fill(n);
}

START_TEST(many_pins_are_read_as_they_were_written)
{
    make_writable(MANY);
    OK(stepgraph_pin_write_many(session, MANY, pins, sources));
    OK(stepgraph_pin_read_many(session, MANY, pins, places));
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_mem_eq(seen[i], written[i], configs[i].bytes);
        if (configs[i].bytes < sizeof seen[i])
            ck_assert_uint_eq(seen[i][configs[i].bytes], 0x77); /* And not one byte more. */
    }
}
END_TEST

START_TEST(many_pins_are_waited_for_once)
{
    unsigned long waits;

    make_writable(60);
    waits = driver_calls("cuStreamSynchronize");
    OK(stepgraph_pin_write_many(session, 60, pins, sources));
    ck_assert_uint_eq(driver_calls("cuStreamSynchronize") - waits, 1);
    OK(stepgraph_pin_read_many(session, 60, pins, places));
    ck_assert_uint_eq(driver_calls("cuStreamSynchronize") - waits, 2);
}
END_TEST

START_TEST(one_bad_pin_among_many_is_named_and_nothing_is_moved)
{
    stepgraph_session *other = session_make(NULL);
    stepgraph_pin *foreign = pin_make(other, STEPGRAPH_ROLE_STATE, 4, "foreign"), *cell = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "cell"),
                  *mine;
    unsigned char zeros[600] = {0};
    unsigned long copies;

    make_writable(60);
    mine = pins[59];
    copies = driver_calls("cuMemcpyHtoDAsync") + driver_calls("cuMemcpyDtoHAsync");
    pins[59] = foreign;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_write_many(session, 60, pins, sources), "foreign", "another session");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_read_many(session, 60, pins, places), "foreign", "another session");
    pins[59] = cell;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_write_many(session, 60, pins, sources), "cell", "stepgraph_pin_feed");
    pins[59] = NULL;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_write_many(session, 60, pins, sources), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_read_many(session, 60, pins, places), "NULL");
    pins[59] = mine;
    sources[59] = NULL;
    places[59] = NULL;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_write_many(session, 60, pins, sources), "p59", "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_read_many(session, 60, pins, places), "p59", "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_read_many(NULL, 60, pins, places), "session");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_write_many(session, 60, NULL, sources), "pins");
    if (unit_has_controls())
        ck_assert_uint_eq(driver_calls("cuMemcpyHtoDAsync") + driver_calls("cuMemcpyDtoHAsync"), copies);
    ck_assert_uint_eq(seen[0][0], 0x77);
    OK(stepgraph_pin_read(pins[0], seen[0], configs[0].bytes));
    ck_assert_mem_eq(seen[0], zeros, configs[0].bytes);
}
END_TEST

START_TEST(copies_that_were_enqueued_are_over_when_a_later_one_fails)
{
    unsigned long waits;

    make_writable(60);
    waits = driver_calls("cuStreamSynchronize");
    driver_fails("cuMemcpyHtoDAsync", 30, CUDA_ERROR_UNKNOWN);
    FAILS(STEPGRAPH_ERR_DRIVER, stepgraph_pin_write_many(session, 60, pins, sources), "cuMemcpyHtoDAsync");
    no_driver_fails();
    ck_assert_uint_eq(driver_calls("cuStreamSynchronize") - waits, 1); /* What they read may be freed now. */
    driver_fails("cuMemcpyDtoHAsync", 30, CUDA_ERROR_UNKNOWN);
    FAILS(STEPGRAPH_ERR_DRIVER, stepgraph_pin_read_many(session, 60, pins, places), "cuMemcpyDtoHAsync");
    no_driver_fails();
    ck_assert_uint_eq(driver_calls("cuStreamSynchronize") - waits, 2);
    OK(stepgraph_pin_write_many(session, 60, pins, sources));
    OK(stepgraph_pin_read_many(session, 60, pins, places));
    for (size_t i = 0; i < 60; i++)
        ck_assert_mem_eq(seen[i], written[i], configs[i].bytes);
}
END_TEST

static void body_outputs(void *unused)
{
    (void)unused;
    setv(stream, stepgraph_pin_address(pins[0]), 7);
    setv(stream, stepgraph_pin_address(pins[3]), 9);
}

START_TEST(output_of_a_step_that_has_not_run_is_not_read_among_many)
{
    stepgraph_step *step = step_make(session, "train", 0);
    float v;

    make_writable(6);
    for (size_t i = 0; i < 6; i++)
        drop_pin(pins[i]);
    configs[0].bytes = configs[3].bytes = 4; /* A STATE and an OUTPUT. */
    make_many(6);
    record(step, body_outputs, NULL);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_read_many(session, 6, pins, places), "p3", "train");
    OK(stepgraph_step_replay(step));
    OK(stepgraph_pin_read_many(session, 6, pins, places));
    memcpy(&v, seen[3], 4);
    ck_assert_float_eq(v, 9);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("pin_many");
    TCase *making = unit_case(suite, "making"), *none = unit_case(suite, "all or none"), *naming = unit_case(suite, "names"),
          *access = unit_case(suite, "access");

    tcase_add_test(making, many_pins_are_what_was_asked_for);
    tcase_add_test(making, many_pins_are_zero_where_others_were_before);
    tcase_add_test(making, feeds_that_wait_to_be_sent_are_not_lost_when_others_join);
    add_controlled_test(making, many_pins_take_one_allocation_and_one_wait);
    tcase_add_test(making, what_is_left_of_many_pins_stays_usable);
    tcase_add_test(making, no_pins_at_all_are_nothing_to_do);

    tcase_add_test(none, one_bad_pin_among_many_is_named_and_none_is_made);
    tcase_add_test(none, configs_of_an_older_host_stand_closer_together);
    tcase_add_test(none, many_pins_cannot_be_made_while_a_step_records);
    add_controlled_loop_test(none, many_pins_or_none_whatever_driver_call_fails, 0, 5);

    tcase_add_test(naming, names_are_found_whatever_came_and_went);

    tcase_add_test(access, many_pins_are_read_as_they_were_written);
    add_controlled_test(access, many_pins_are_waited_for_once);
    tcase_add_test(access, one_bad_pin_among_many_is_named_and_nothing_is_moved);
    add_controlled_test(access, copies_that_were_enqueued_are_over_when_a_later_one_fails);
    tcase_add_test(access, output_of_a_step_that_has_not_run_is_not_read_among_many);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
