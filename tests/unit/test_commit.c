/* In-place copy pins: one at a time and many in one launch, fresh and recorded, and what they cost. */
#include "support.h"

enum { MANY = 1000 };

/* A set of pins, the fresh values for them at unaligned addresses of one scratch pin, and a host copy of those values. */
struct set {
    size_t n;
    stepgraph_pin *pin[MANY], *scratch;
    uint64_t fresh[MANY];
    size_t bytes[MANY], at[MANY], total;
    unsigned char *host;
};
static struct set one, two;

static void set_values(struct set *set, uint64_t seed)
{
    random_bytes(&seed, set->host, set->total);
    put_bytes(stepgraph_pin_address(set->scratch), set->host, set->total);
}

/* n pins of odd sizes up to `most` bytes; fresh values at addresses of every alignment. */
static void set_make(struct set *set, const char *prefix, size_t n, size_t most, uint64_t seed)
{
    char name[64];

    memset(set, 0, sizeof *set);
    set->n = n;
    for (size_t i = 0; i < n; i++) {
        set->bytes[i] = 1 + unit_random(&seed) % most;
        set->at[i] = set->total + unit_random(&seed) % 17;
        set->total = set->at[i] + set->bytes[i];
    }
    set->host = malloc(set->total + 1);
    snprintf(name, sizeof name, "%s fresh", prefix);
    set->scratch = pin_make(session, STEPGRAPH_ROLE_SCRATCH, set->total + 1, name);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s%zu", prefix, i);
        set->pin[i] = pin_make(session, i % 5 ? STEPGRAPH_ROLE_STATE : STEPGRAPH_ROLE_OUTPUT, set->bytes[i], name);
        set->fresh[i] = stepgraph_pin_address(set->scratch) + set->at[i];
    }
    set_values(set, seed);
}

static void set_free(struct set *set)
{
    free(set->host);
    set->host = NULL;
}

/* Every master holds the host's copy of its value, and the guard byte behind the scratch is what it was. */
static void set_arrived(const struct set *set)
{
    unsigned char *seen = malloc(set->total + 1);

    for (size_t i = 0; i < set->n; i++) {
        bytes_at(stepgraph_pin_address(set->pin[i]), seen, set->bytes[i]);
        ck_assert_msg(memcmp(seen, set->host + set->at[i], set->bytes[i]) == 0, "%s of %zu bytes, fresh at ...%x, is wrong",
                      stepgraph_pin_name(set->pin[i]), set->bytes[i], (unsigned)(set->fresh[i] & 15));
    }
    free(seen);
}

/* ---- one pin --------------------------------------------------------------------------------------------------------- */

static const size_t sizes[] = {1, 2, 3, 4, 15, 16, 17, 31, 255, 256, 257, 4095, 4096, 16383, 16384, 16385, 100001};
enum { SIZES = sizeof sizes / sizeof *sizes };

START_TEST(commit_copies_every_byte_and_no_more)
{
    size_t bytes = sizes[_i];
    unsigned char *host = malloc(bytes + 64), *seen = malloc(bytes + 64);
    CUdeviceptr master = device_make(bytes + 64), fresh = device_make(bytes + 64);
    stepgraph_pin *pin = pin_adopt(session, STEPGRAPH_ROLE_STATE, master + 16, bytes, "w");
    uint64_t seed = 100 + (uint64_t)_i;

    for (size_t shift = 0; shift < 4; shift++) {
        random_bytes(&seed, host, bytes + 64);
        put_bytes(fresh, host, bytes + 64);
        memset(seen, 0xee, bytes + 64);
        put_bytes(master, seen, bytes + 64);
        OK(stepgraph_pin_commit(pin, fresh + shift * 5));
        bytes_at(master, seen, bytes + 64);
        ck_assert_mem_eq(seen + 16, host + shift * 5, bytes);
        for (size_t i = 0; i < 16; i++)
            ck_assert_uint_eq(seen[i], 0xee);
        for (size_t i = 16 + bytes; i < bytes + 64; i++)
            ck_assert_uint_eq(seen[i], 0xee);
    }
    free(host);
    free(seen);
}
END_TEST

START_TEST(commit_of_the_master_itself_is_skipped_and_counted)
{
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, 64, "w");
    stepgraph_pin_stats before = pin_stats(session), after;
    unsigned long launches = driver_calls("cuLaunchKernel"), copies = driver_calls("cuMemcpyDtoDAsync");

    OK(stepgraph_pin_commit(pin, stepgraph_pin_address(pin)));
    after = pin_stats(session);
    ck_assert_uint_eq(after.skipped, before.skipped + 1);
    ck_assert_uint_eq(after.copies, before.copies);
    ck_assert_uint_eq(after.copy_launches, before.copy_launches);
    ck_assert_uint_eq(after.copy_bytes, before.copy_bytes);
    ck_assert_uint_eq(driver_calls("cuLaunchKernel"), launches);
    ck_assert_uint_eq(driver_calls("cuMemcpyDtoDAsync"), copies);
}
END_TEST

START_TEST(commit_is_counted_with_its_bytes)
{
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, 1001, "w");
    CUdeviceptr fresh = device_make(1001);
    stepgraph_sample before = sample_now(session), after;
    stepgraph_pin_stats stats;

    OK(stepgraph_pin_commit(pin, fresh));
    stats = pin_stats(session);
    after = sample_now(session);
    ck_assert_uint_eq(stats.copies, 1);
    ck_assert_uint_eq(stats.copy_launches, 1);
    ck_assert_uint_eq(stats.copy_bytes, 1001);
    ck_assert_uint_eq(after.library[STEPGRAPH_KIND_KERNEL] + after.library[STEPGRAPH_KIND_COPY],
                      before.library[STEPGRAPH_KIND_KERNEL] + before.library[STEPGRAPH_KIND_COPY] + 1);
    ck_assert_uint_eq(after.host[STEPGRAPH_KIND_KERNEL] + after.wrapper[STEPGRAPH_KIND_KERNEL], 0);
}
END_TEST

START_TEST(only_states_and_outputs_are_committed)
{
    CUdeviceptr fresh = device_make(4);
    static const stepgraph_role refused[] = {STEPGRAPH_ROLE_FEED, STEPGRAPH_ROLE_CELL, STEPGRAPH_ROLE_CONST,
                                             STEPGRAPH_ROLE_SCRATCH, STEPGRAPH_ROLE_LIBRARY};

    for (size_t i = 0; i < 5; i++) {
        char name[16];
        stepgraph_pin *pin;
        snprintf(name, sizeof name, "pin%zu", i);
        pin = pin_make(session, refused[i], 4, name);
        FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_commit(pin, fresh), name);
        FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_commit_many(session, 1, &pin, (uint64_t[]){fresh}), name);
    }
    OK(stepgraph_pin_commit(pin_make(session, STEPGRAPH_ROLE_STATE, 4, "state"), fresh));
    OK(stepgraph_pin_commit(pin_make(session, STEPGRAPH_ROLE_OUTPUT, 4, "output"), fresh));
}
END_TEST

START_TEST(commit_from_nowhere_is_refused)
{
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_commit(pin, 0), "w");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_commit_many(session, 1, &pin, (uint64_t[]){0}), "w");
}
END_TEST

START_TEST(commit_that_overlaps_its_master_is_refused)
{
    CUdeviceptr p = device_make(1024);
    stepgraph_pin *pin = pin_adopt(session, STEPGRAPH_ROLE_STATE, p + 256, 256, "w");
    static const int shift[] = {-255, -1, 1, 128, 255};

    for (size_t i = 0; i < sizeof shift / sizeof *shift; i++) {
        uint64_t fresh = p + 256 + (uint64_t)(int64_t)shift[i];
        FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_commit(pin, fresh), "w", "overlap");
        FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_commit_many(session, 1, &pin, &fresh), "w", "overlap");
    }
    OK(stepgraph_pin_commit(pin, p));       /* Ends where the master begins. */
    OK(stepgraph_pin_commit(pin, p + 512)); /* Begins where it ends. */
}
END_TEST

START_TEST(fresh_may_be_used_again_as_soon_as_commit_returns)
{
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    CUdeviceptr fresh = device_make(4);

    spin(stream, 10);
    for (int i = 1; i <= 20; i++) {
        setv(stream, fresh, (float)i);
        OK(stepgraph_pin_commit(pin, fresh));
        setv(stream, fresh, -1);
    }
    ck_assert_float_eq(pin_float(pin), 20);
}
END_TEST

/* ---- many pins ------------------------------------------------------------------------------------------------------- */

START_TEST(committing_none_does_nothing)
{
    stepgraph_pin_stats before = pin_stats(session), after;

    OK(stepgraph_pin_commit_many(session, 0, NULL, NULL));
    after = pin_stats(session);
    ck_assert_mem_eq(&before, &after, sizeof before);
}
END_TEST

START_TEST(many_commits_are_one_launch)
{
    static const size_t n[] = {1, 2, 37, MANY};
    unsigned long launches;
    stepgraph_pin_stats stats;
    uint64_t bytes = 0;

    set_make(&one, "p", n[_i], 3000, 5 + (uint64_t)_i);
    for (size_t i = 0; i < one.n; i++)
        bytes += one.bytes[i];
    launches = driver_calls("cuLaunchKernel") + driver_calls("cuMemcpyDtoDAsync");
    OK(stepgraph_pin_commit_many(session, one.n, one.pin, one.fresh));
    if (unit_has_controls())
        ck_assert_uint_eq(driver_calls("cuLaunchKernel") + driver_calls("cuMemcpyDtoDAsync"), launches + 1);
    set_arrived(&one);
    stats = pin_stats(session);
    ck_assert_uint_eq(stats.copies, one.n);
    ck_assert_uint_ge(stats.copy_launches, 1);
    ck_assert_uint_le(stats.copy_launches, 2); /* And the copy of the list. */
    ck_assert_uint_eq(stats.copy_bytes, bytes);
    ck_assert_uint_eq(stats.skipped, 0);
    ck_assert_uint_eq(sample_now(session).library[STEPGRAPH_KIND_COPY], 1); /* The value, or the list of many. */
    ck_assert_uint_eq(sample_now(session).library[STEPGRAPH_KIND_KERNEL], one.n > 1);
    set_free(&one);
}
END_TEST

static long living_objects(void)
{
    static const char *const made[] = {"cuMemAlloc", "cuMemHostAlloc", "cuEventCreate"}, *const gone[] = {"cuMemFree", "cuMemFreeHost", "cuEventDestroy"};
    long n = 0;

    for (int i = 0; i < 3; i++)
        n += (long)driver_calls(made[i]) - (long)driver_calls(gone[i]);
    return n;
}

/* Larger lists take the place of smaller ones. */
START_TEST(lists_that_grow_leave_nothing_behind)
{
    long objects;

    set_make(&one, "p", MANY, 3000, 5);
    OK(stepgraph_pin_commit_many(session, 2, one.pin, one.fresh));
    objects = living_objects();
    OK(stepgraph_pin_commit_many(session, MANY, one.pin, one.fresh));
    set_arrived(&one);
    ck_assert_int_eq(living_objects(), objects);
    set_free(&one);
}
END_TEST

START_TEST(one_large_pin_beside_small_ones_arrives)
{
    size_t large = (4u << 20) + 13;
    unsigned char *host = malloc(large), *seen = malloc(large);
    stepgraph_pin *pin[3] = {pin_make(session, STEPGRAPH_ROLE_STATE, 3, "small"),
                             pin_make(session, STEPGRAPH_ROLE_STATE, large, "large"),
                             pin_make(session, STEPGRAPH_ROLE_STATE, 1, "tiny")};
    CUdeviceptr a = device_make(3), b = device_make(large), c = device_make(1);
    uint64_t seed = 3;

    random_bytes(&seed, host, large);
    put_bytes(a, "abc", 3);
    put_bytes(b, host, large);
    put_bytes(c, "z", 1);
    OK(stepgraph_pin_commit_many(session, 3, pin, (uint64_t[]){a, b, c}));
    bytes_at(stepgraph_pin_address(pin[1]), seen, large);
    ck_assert(memcmp(seen, host, large) == 0);
    bytes_at(stepgraph_pin_address(pin[0]), seen, 3);
    ck_assert_mem_eq(seen, "abc", 3);
    bytes_at(stepgraph_pin_address(pin[2]), seen, 1);
    ck_assert_mem_eq(seen, "z", 1);
    free(host);
    free(seen);
}
END_TEST

START_TEST(unmoved_pins_among_many_are_skipped)
{
    stepgraph_pin_stats stats;
    unsigned char old[64];
    size_t moved = 0;

    set_make(&one, "p", 100, 64, 21);
    for (size_t i = 0; i < one.n; i++)
        if (i % 3 == 0)
            one.fresh[i] = stepgraph_pin_address(one.pin[i]);
        else
            moved++;
    OK(stepgraph_pin_commit_many(session, one.n, one.pin, one.fresh));
    stats = pin_stats(session);
    ck_assert_uint_eq(stats.skipped, one.n - moved);
    ck_assert_uint_eq(stats.copies, moved);
    ck_assert_uint_le(stats.copy_launches, 2);
    bytes_at(stepgraph_pin_address(one.pin[0]), old, one.bytes[0]);
    for (size_t i = 0; i < one.bytes[0]; i++)
        ck_assert_uint_eq(old[i], 0);
    bytes_at(stepgraph_pin_address(one.pin[1]), old, one.bytes[1]);
    ck_assert_mem_eq(old, one.host + one.at[1], one.bytes[1]);
    set_free(&one);
}
END_TEST

START_TEST(nothing_is_launched_when_nothing_has_moved)
{
    stepgraph_pin *pin[2] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b")};
    uint64_t fresh[2] = {stepgraph_pin_address(pin[0]), stepgraph_pin_address(pin[1])};
    unsigned long launches = driver_calls("cuLaunchKernel");

    OK(stepgraph_pin_commit_many(session, 2, pin, fresh));
    ck_assert_uint_eq(pin_stats(session).skipped, 2);
    ck_assert_uint_eq(pin_stats(session).copy_launches, 0);
    ck_assert_uint_eq(driver_calls("cuLaunchKernel"), launches);
}
END_TEST

START_TEST(bad_members_are_refused_and_nothing_is_enqueued)
{
    stepgraph_session *other = session_make(NULL);
    stepgraph_pin *foreign = pin_make(other, STEPGRAPH_ROLE_STATE, 4, "foreign"),
                  *a = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), *b = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b"),
                  *cell = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "lr");
    CUdeviceptr x = device_make(4), y = device_make(4);
    stepgraph_pin_stats before, after;

    put_float(x, 1);
    put_float(y, 2);
    before = pin_stats(session);
#define MANY_FAILS(first, second, from, to, ...)                                                                                 \
    FAILS(STEPGRAPH_ERR_ARGUMENT,                                                                                                \
          stepgraph_pin_commit_many(session, 2, (stepgraph_pin *[]){first, second}, (uint64_t[]){from, to}), __VA_ARGS__)
    MANY_FAILS(a, NULL, x, y, "");
    MANY_FAILS(NULL, a, x, y, "");
    MANY_FAILS(a, foreign, x, y, "foreign", "session");
    MANY_FAILS(a, cell, x, y, "lr");
    MANY_FAILS(a, a, x, y, "'a'", "twice");
    MANY_FAILS(a, b, x, 0, "'b'");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_commit_many(session, 1, NULL, &(uint64_t){x}), "");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_commit_many(session, 1, &a, NULL), "");
#undef MANY_FAILS
    after = pin_stats(session);
    ck_assert_uint_eq(after.copies, before.copies);
    ck_assert_uint_eq(after.copy_launches, before.copy_launches);
    ck_assert_float_eq(pin_float(a), 0);
    ck_assert_float_eq(pin_float(b), 0);
}
END_TEST

START_TEST(source_over_a_master_of_the_same_call_is_refused_and_both_are_named)
{
    CUdeviceptr p = device_make(4096);
    stepgraph_pin *left = pin_adopt(session, STEPGRAPH_ROLE_STATE, p, 256, "left"),
                  *right = pin_adopt(session, STEPGRAPH_ROLE_STATE, p + 1024, 256, "right");
    stepgraph_pin *both[2] = {left, right};

    put_float(p, 1);
    put_float(p + 1024, 2);
    /* A swap: each source is the other's master. */
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_commit_many(session, 2, both, (uint64_t[]){p + 1024, p}), "left", "right");
    /* The last byte of a source is the first of a master. */
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_commit_many(session, 2, both, (uint64_t[]){p + 1024 - 255, p + 2048}), "left",
          "right");
    /* The first byte of a source is the last of a master. */
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_commit_many(session, 2, both, (uint64_t[]){p + 2048, p + 255}), "left", "right");
    ck_assert_float_eq(float_at(p), 1);
    ck_assert_float_eq(float_at(p + 1024), 2);
    /* Beside each other is fine; so are two sources that share memory. */
    OK(stepgraph_pin_commit_many(session, 2, both, (uint64_t[]){p + 1280, p + 1280}));
    ck_assert_float_eq(float_at(p), 0);
}
END_TEST

START_TEST(source_over_a_master_that_is_skipped_is_fine)
{
    /* `left` has not moved, so nothing is written there, and `right` may be read from it. */
    stepgraph_pin *left = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "left"),
                  *right = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "right");
    CUdeviceptr p = stepgraph_pin_address(left);

    put_float(p, 6);
    OK(stepgraph_pin_commit_many(session, 2, (stepgraph_pin *[]){left, right}, (uint64_t[]){p, p}));
    ck_assert_float_eq(pin_float(right), 6);
}
END_TEST

START_TEST(many_commits_in_flight_keep_their_lists_apart)
{
    enum { CALLS = 100, PINS = 8 };
    stepgraph_pin *pin[PINS];
    CUdeviceptr values = device_make(4 * CALLS * PINS), seen = device_make(4 * CALLS * PINS);
    float *host = malloc(4 * CALLS * PINS), *got = malloc(4 * CALLS * PINS);

    for (int i = 0; i < PINS; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        pin[i] = pin_make(session, STEPGRAPH_ROLE_STATE, 4, name);
    }
    for (int i = 0; i < CALLS * PINS; i++)
        host[i] = (float)i;
    put_bytes(values, host, 4 * CALLS * PINS);
    spin(stream, 20);
    for (int call = 0; call < CALLS; call++) {
        uint64_t fresh[PINS];
        for (int i = 0; i < PINS; i++)
            fresh[i] = values + 4 * (unsigned)(call * PINS + (i + call) % PINS);
        OK(stepgraph_pin_commit_many(session, PINS, pin, fresh));
        for (int i = 0; i < PINS; i++)
            copyf(stream, seen + 4 * (unsigned)(call * PINS + i), stepgraph_pin_address(pin[i]));
    }
    bytes_at(seen, got, 4 * CALLS * PINS);
    for (int call = 0; call < CALLS; call++)
        for (int i = 0; i < PINS; i++)
            ck_assert_msg(got[call * PINS + i] == host[call * PINS + (i + call) % PINS], "call %d pin %d: %g", call, i,
                          (double)got[call * PINS + i]);
    free(host);
    free(got);
}
END_TEST

/* ---- recorded ---------------------------------------------------------------------------------------------------------- */

static void body_commit_many(void *set)
{
    struct set *s = set;

    OK(stepgraph_pin_commit_many(session, s->n, s->pin, s->fresh));
}

static void body_commit_each(void *set)
{
    struct set *s = set;

    for (size_t i = 0; i < s->n; i++)
        OK(stepgraph_pin_commit(s->pin[i], s->fresh[i]));
}

START_TEST(recorded_commits_copy_at_each_replay)
{
    stepgraph_step *step = step_make(session, "train", 0);

    set_make(&one, "p", 50, 500, 31);
    record(step, _i ? body_commit_each : body_commit_many, &one);
    for (uint64_t round = 0; round < 4; round++) {
        set_values(&one, 1000 + round);
        OK(stepgraph_step_replay(step));
        set_arrived(&one);
    }
    set_free(&one);
}
END_TEST

START_TEST(recorded_commits_do_not_run_before_the_replay)
{
    stepgraph_step *step = step_make(session, "train", 0);
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w"),
                  *fresh = pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4, "fresh");

    put_float(stepgraph_pin_address(fresh), 7);
    begin_recording(step);
    OK(stepgraph_pin_commit(pin, stepgraph_pin_address(fresh)));
    OK(stepgraph_step_end(step));
    ck_assert_float_eq(pin_float(pin), 0);
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(pin), 7);
}
END_TEST

START_TEST(price_of_recorded_commits_is_counted_once)
{
    stepgraph_step *step = step_make(session, "train", 0);
    stepgraph_pin_stats recorded, replayed;
    stepgraph_step_stats stats;
    uint64_t bytes = 0;

    set_make(&one, "p", 40, 100, 41);
    for (size_t i = 0; i < one.n; i++)
        bytes += one.bytes[i];
    record(step, _i ? body_commit_each : body_commit_many, &one);
    stats = step_stats(step);
    ck_assert_uint_eq(stats.pin_nodes, _i ? one.n : 1);
    ck_assert_uint_eq(stats.pin_bytes, bytes);
    ck_assert_uint_eq(stats.nodes_total, stats.pin_nodes);
    ck_assert_uint_eq(stats.counted_kernels, 0);
    ck_assert_uint_eq(stats.pins_used, one.n + 1); /* And the scratch. */
    recorded = pin_stats(session);
    ck_assert_uint_eq(recorded.copies, one.n);
    ck_assert_uint_eq(recorded.copy_launches, _i ? one.n : 1);
    ck_assert_uint_eq(recorded.copy_bytes, bytes);
    for (int i = 0; i < 5; i++)
        OK(stepgraph_step_replay(step));
    replayed = pin_stats(session);
    ck_assert_mem_eq(&recorded, &replayed, sizeof recorded);
    set_free(&one);
}
END_TEST

START_TEST(pins_that_only_a_commit_list_names_cannot_go)
{
    stepgraph_step *step = step_make(session, "train", 0);

    set_make(&one, "p", 10, 100, 51);
    record(step, body_commit_many, &one);
    for (size_t i = 0; i < one.n; i++)
        FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_destroy(one.pin[i]), stepgraph_pin_name(one.pin[i]), "train");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_destroy(one.scratch), "p fresh", "train");
    set_free(&one);
}
END_TEST

START_TEST(recorded_lists_of_two_steps_are_independent)
{
    stepgraph_step *a = step_make(session, "a", 0), *b = step_make(session, "b", 0);

    set_make(&one, "a", 60, 300, 61);
    set_make(&two, "b", 70, 300, 62);
    record(a, body_commit_many, &one);
    record(b, body_commit_many, &two);
    for (uint64_t round = 0; round < 3; round++) {
        set_values(&one, 200 + round);
        set_values(&two, 300 + round);
        OK(stepgraph_step_replay(a));
        set_arrived(&one);
        OK(stepgraph_step_replay(b));
        set_arrived(&two);
        set_arrived(&one);
    }
    /* The list of one lives on when the other goes. */
    drop_step(a);
    set_values(&two, 400);
    OK(stepgraph_step_replay(b));
    set_arrived(&two);
    set_free(&one);
    set_free(&two);
}
END_TEST

START_TEST(recorded_list_outlives_many_fresh_ones)
{
    stepgraph_step *step = step_make(session, "train", 0);

    set_make(&one, "a", 30, 100, 71);
    set_make(&two, "b", 30, 100, 72);
    record(step, body_commit_many, &one);
    for (uint64_t round = 0; round < 100; round++) {
        OK(stepgraph_pin_commit_many(session, two.n, two.pin, two.fresh));
        if (round % 25 == 0) {
            set_values(&one, 500 + round);
            OK(stepgraph_step_replay(step));
            set_arrived(&one);
        }
    }
    set_arrived(&two);
    set_free(&one);
    set_free(&two);
}
END_TEST

START_TEST(several_lists_in_one_recording_are_kept_apart)
{
    stepgraph_step *step = step_make(session, "train", 0);

    set_make(&one, "a", 20, 200, 81);
    set_make(&two, "b", 300, 20, 82);
    begin_recording(step);
    body_commit_many(&one);
    body_commit_many(&two);
    body_commit_each(&one);
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(step_stats(step).pin_nodes, 2 + one.n);
    for (uint64_t round = 0; round < 3; round++) {
        set_values(&one, 600 + round);
        set_values(&two, 700 + round);
        OK(stepgraph_step_replay(step));
        set_arrived(&one);
        set_arrived(&two);
    }
    set_free(&one);
    set_free(&two);
}
END_TEST

START_TEST(arrays_of_a_recorded_commit_are_not_kept)
{
    stepgraph_step *step = step_make(session, "train", 0);
    uint64_t fresh[10];
    stepgraph_pin *pin[10];

    set_make(&one, "p", 10, 100, 91);
    memcpy(fresh, one.fresh, sizeof fresh);
    memcpy(pin, one.pin, sizeof pin);
    begin_recording(step);
    OK(stepgraph_pin_commit_many(session, 10, pin, fresh));
    memset(fresh, 0x11, sizeof fresh);
    memset(pin, 0, sizeof pin);
    OK(stepgraph_step_end(step));
    OK(stepgraph_step_replay(step));
    set_arrived(&one);
    set_free(&one);
}
END_TEST

/* The driver records on without it, and a replay would lack it. */
START_TEST(commit_that_fails_breaks_the_recording)
{
    static const char *const entries[] = {"cuMemcpyDtoDAsync", "cuLaunchKernel"};
    stepgraph_step *step = step_make(session, "train", 0);

    set_make(&one, "p", 2, 3000, 5);
    begin_recording(step);
    driver_fails(entries[_i], 1, CUDA_ERROR_UNKNOWN);
    FAILS(STEPGRAPH_ERR_DRIVER, stepgraph_pin_commit_many(session, 1 + (size_t)_i, one.pin, one.fresh), entries[_i]);
    no_driver_fails();
    OK(stepgraph_pin_commit_many(session, 1 + (size_t)_i, one.pin, one.fresh));
    FAILS(STEPGRAPH_ERR_CAPTURE, stepgraph_step_end(step), "train", entries[_i]);
    STATE_IS(step, STEPGRAPH_STEP_FAILED);
    set_free(&one);
}
END_TEST

START_TEST(refused_commit_leaves_the_recording_alive)
{
    stepgraph_step *step = step_make(session, "train", 0);
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");

    begin_recording(step);
    inc(stream, stepgraph_pin_address(pin), 1);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_commit(pin, 0), "w");
    OK(stepgraph_step_end(step));
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(pin), 1);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("commit");
    TCase *single = unit_case(suite, "one pin"), *many = unit_case(suite, "many pins"), *recorded = unit_case(suite, "recorded");

    tcase_add_loop_test(single, commit_copies_every_byte_and_no_more, 0, SIZES);
    tcase_add_test(single, commit_of_the_master_itself_is_skipped_and_counted);
    tcase_add_test(single, commit_is_counted_with_its_bytes);
    tcase_add_test(single, only_states_and_outputs_are_committed);
    tcase_add_test(single, commit_from_nowhere_is_refused);
    tcase_add_test(single, commit_that_overlaps_its_master_is_refused);
    tcase_add_test(single, fresh_may_be_used_again_as_soon_as_commit_returns);

    tcase_add_test(many, committing_none_does_nothing);
    tcase_add_loop_test(many, many_commits_are_one_launch, 0, 4);
    add_controlled_test(many, lists_that_grow_leave_nothing_behind);
    tcase_add_test(many, one_large_pin_beside_small_ones_arrives);
    tcase_add_test(many, unmoved_pins_among_many_are_skipped);
    tcase_add_test(many, nothing_is_launched_when_nothing_has_moved);
    tcase_add_test(many, bad_members_are_refused_and_nothing_is_enqueued);
    tcase_add_test(many, source_over_a_master_of_the_same_call_is_refused_and_both_are_named);
    tcase_add_test(many, source_over_a_master_that_is_skipped_is_fine);
    tcase_add_test(many, many_commits_in_flight_keep_their_lists_apart);

    tcase_add_loop_test(recorded, recorded_commits_copy_at_each_replay, 0, 2);
    tcase_add_test(recorded, recorded_commits_do_not_run_before_the_replay);
    tcase_add_loop_test(recorded, price_of_recorded_commits_is_counted_once, 0, 2);
    tcase_add_test(recorded, pins_that_only_a_commit_list_names_cannot_go);
    tcase_add_test(recorded, recorded_lists_of_two_steps_are_independent);
    tcase_add_test(recorded, recorded_list_outlives_many_fresh_ones);
    tcase_add_test(recorded, several_lists_in_one_recording_are_kept_apart);
    tcase_add_test(recorded, arrays_of_a_recorded_commit_are_not_kept);
    add_controlled_loop_test(recorded, commit_that_fails_breaks_the_recording, 0, 2);
    tcase_add_test(recorded, refused_commit_leaves_the_recording_alive);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
