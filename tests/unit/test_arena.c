/*
 * Arenas: which block is handed out, what waits in the queue, what is refused, and which block an address meant when a node was recorded.
 *
 * Two models: a map of 256-byte units, which says what best fit has to give, and a list of all blocks that ever were, which says whose an
 * address was at a node. Seeds are in the messages; STEPGRAPH_TEST_SEED=N begins with another one. The program is linked from the
 * library's objects, because what a node meant is asked through a call that is not exported.
 */
#include "support.h"

#include "arena_p.h"

enum { UNIT = 256, UNITS = 160, SEEDS = 20 };

static char place[64]; /* Seed and call. */

/* ---- what a test makes ------------------------------------------------------------------------------------------------- */

/* Given back in this order, before the fixture of support.c closes the session: an arena cannot go while a graph uses it. */
static stepgraph_step *steps[8];
static stepgraph_arena *arenas[8];
static int n_steps, n_arenas;

static void setup(void)
{
    n_steps = n_arenas = 0;
}

static void teardown(void)
{
    unsigned left = 0;

    no_driver_fails();
    while (n_steps > 0)
        stepgraph_step_destroy(steps[--n_steps]);
    while (n_arenas > 0)
        left += stepgraph_arena_destroy(arenas[--n_arenas]) != STEPGRAPH_OK;
    ck_assert_msg(left == 0, "%u arenas could not be destroyed: %s", left, last_words());
}

static TCase *arena_case(Suite *suite, const char *name)
{
    TCase *made = unit_case(suite, name);

    tcase_add_checked_fixture(made, setup, teardown);
    return made;
}

static stepgraph_arena_config arena_config(uint64_t bytes, uint64_t quarantine_bytes, const char *name)
{
    stepgraph_arena_config config = STEPGRAPH_ARENA_CONFIG_INIT;

    config.bytes = bytes;
    config.quarantine_bytes = quarantine_bytes;
    config.name = name;
    return config;
}

static stepgraph_arena *arena_make(uint64_t bytes, uint64_t quarantine_bytes, const char *name)
{
    stepgraph_arena_config config = arena_config(bytes, quarantine_bytes, name);
    stepgraph_arena *made = NULL;

    OK(stepgraph_arena_create(session, &config, &made));
    ck_assert_ptr_nonnull(made);
    arenas[n_arenas++] = made;
    return made;
}

static void arena_drop(stepgraph_arena *arena)
{
    OK(stepgraph_arena_destroy(arena));
    for (int i = 0; i < n_arenas; i++)
        if (arenas[i] == arena)
            arenas[i] = arenas[--n_arenas];
}

static stepgraph_step *begin(const char *name, uint32_t flags)
{
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_step *made = NULL;

    config.name = name;
    config.flags = flags;
    OK(stepgraph_step_begin(session, &config, &made));
    steps[n_steps++] = made;
    return made;
}

static stepgraph_step *recording(const char *name)
{
    stepgraph_step *made = begin(name, STEPGRAPH_STEP_ALLOW_EMPTY);

    begin_recording(made);
    return made;
}

static uint64_t block(stepgraph_arena *arena, uint64_t bytes, const char *label)
{
    uint64_t address = 0;

    OK(stepgraph_arena_alloc(arena, bytes, label, &address));
    ck_assert_uint_ne(address, 0);
    return address;
}

static stepgraph_arena_stats stats_of(const stepgraph_arena *arena)
{
    stepgraph_arena_stats stats = STEPGRAPH_ARENA_STATS_INIT;

    OK(stepgraph_arena_get_stats(arena, &stats));
    return stats;
}

/* Taking this fails with `want` and these words, and sets nothing. */
#define ALLOC_FAILS(want, arena, bytes, ...)                                                \
    do {                                                                                    \
        uint64_t out_ = 12345;                                                              \
        FAILS(want, stepgraph_arena_alloc(arena, bytes, "label", &out_), __VA_ARGS__);      \
        ck_assert_uint_eq(out_, 12345);                                                     \
    } while (0)

#define CREATE_FAILS(want, config, ...)                                                \
    do {                                                                               \
        stepgraph_arena *out_ = (stepgraph_arena *)&stream;                            \
        FAILS(want, stepgraph_arena_create(session, config, &out_), __VA_ARGS__);      \
        ck_assert_ptr_eq(out_, (stepgraph_arena *)&stream);                            \
    } while (0)

static uint64_t seed_of(int i)
{
    const char *first = getenv("STEPGRAPH_TEST_SEED");

    return (first != NULL ? strtoull(first, NULL, 10) : 1) + (uint64_t)i;
}

/* ---- making ------------------------------------------------------------------------------------------------------------ */

START_TEST(arena_is_a_scratch_pin_of_its_name)
{
    stepgraph_arena *arena = arena_make(10000, 0, "activations");
    stepgraph_pin *pin = stepgraph_session_pin(session, "activations");
    stepgraph_arena_stats stats = stats_of(arena);

    ck_assert_ptr_nonnull(pin);
    ck_assert_int_eq(stepgraph_pin_role(pin), STEPGRAPH_ROLE_SCRATCH);
    ck_assert_uint_eq(stats.address, stepgraph_pin_address(pin));
    ck_assert_uint_eq(stats.address % UNIT, 0);
    ck_assert_uint_eq(stats.bytes, 10240); /* Rounded up. */
    ck_assert_uint_eq(stepgraph_pin_bytes(pin), 10240);
    ck_assert_uint_eq(stats.largest, 10240);
    ck_assert_uint_eq(stats.used, 0);
    ck_assert_uint_eq(stats.peak, 0);
    ck_assert_uint_eq(stats.waiting, 0);
    ck_assert_uint_eq(stats.blocks, 0);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_destroy(pin), "activations", "stepgraph_arena_destroy");
    arena_drop(arena);
    ck_assert_ptr_null(stepgraph_session_pin(session, "activations"));
    ck_assert_uint_eq(pin_stats(session).pins, 0);
}
END_TEST

START_TEST(arena_of_one_byte_serves_one_block)
{
    stepgraph_arena *arena = arena_make(1, 0, NULL);

    block(arena, 1, NULL);
    ALLOC_FAILS(STEPGRAPH_ERR_MEMORY, arena, 1, "arena", "largest");
}
END_TEST

START_TEST(bad_configs_are_refused)
{
    stepgraph_arena_config config = arena_config(0, 0, "empty");
    stepgraph_arena *out;

    CREATE_FAILS(STEPGRAPH_ERR_ARGUMENT, &config, "empty", "bytes");
    CREATE_FAILS(STEPGRAPH_ERR_ARGUMENT, NULL, "config");
    config.bytes = 1;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_create(NULL, &config, &out), "session");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_create(session, &config, NULL), "arena_out");
    config.bytes = UINT64_MAX;
    CREATE_FAILS(STEPGRAPH_ERR_MEMORY, &config, "empty", "18446744073709551615");
    config.bytes = UINT64_MAX - 4096;
    CREATE_FAILS(STEPGRAPH_ERR_MEMORY, &config, "empty");
    config = arena_config(1, 0, "");
    CREATE_FAILS(STEPGRAPH_ERR_ARGUMENT, &config, "name");
    ck_assert_uint_eq(pin_stats(session).pins, 0);
}
END_TEST

START_TEST(names_are_shared_with_pins_and_other_arenas)
{
    stepgraph_arena_config config = arena_config(256, 0, NULL);
    stepgraph_arena *first = arena_make(256, 0, NULL);

    CREATE_FAILS(STEPGRAPH_ERR_ARGUMENT, &config, "'arena'", "taken");
    pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    config.name = "w";
    CREATE_FAILS(STEPGRAPH_ERR_ARGUMENT, &config, "'w'", "taken");
    arena_drop(first);
    arena_make(256, 0, NULL);
}
END_TEST

START_TEST(arena_cannot_be_made_while_a_step_records)
{
    stepgraph_arena_config config = arena_config(256, 0, "late");
    stepgraph_step *step = recording("recorder");

    CREATE_FAILS(STEPGRAPH_ERR_STATE, &config, "an arena", "recorder");
    OK(stepgraph_step_end(step));
}
END_TEST

START_TEST(no_device_memory_leaves_nothing_behind)
{
    stepgraph_arena_config config = arena_config(4096, 0, "poor");

    driver_fails("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    CREATE_FAILS(STEPGRAPH_ERR_MEMORY, &config, "poor", "4096");
    ck_assert_uint_eq(pin_stats(session).pins, 0);
    arena_make(4096, 0, "poor");
}
END_TEST

START_TEST(config_sizes_are_understood)
{
    LONGER(stepgraph_arena_config, 8) longer;
    stepgraph_arena_config config = arena_config(512, 1u << 30, "short");
    stepgraph_arena *arena = NULL;

    /* An older caller: what it does not know has its default. */
    config.size = offsetof(stepgraph_arena_config, quarantine_bytes);
    OK(stepgraph_arena_create(session, &config, &arena));
    arenas[n_arenas++] = arena;
    ck_assert_ptr_nonnull(stepgraph_session_pin(session, "arena"));
    OK(stepgraph_arena_free(arena, block(arena, 1, NULL)));
    ck_assert_uint_eq(stats_of(arena).waiting, 0);
    config.size = sizeof config.size;
    CREATE_FAILS(STEPGRAPH_ERR_ARGUMENT, &config, "size");

    memset(&longer, 0, sizeof longer);
    longer.known = arena_config(512, 0, "long");
    longer.known.size = sizeof longer;
    longer.bytes[sizeof longer.known + 3] = 1;
    CREATE_FAILS(STEPGRAPH_ERR_ABI, &longer.known, "stepgraph_arena_config");
}
END_TEST

START_TEST(stats_are_filled_up_to_their_size)
{
    LONGER(stepgraph_arena_stats, 8) u;
    stepgraph_arena *arena = arena_make(4096, 0, "a");
    size_t size = offsetof(stepgraph_arena_stats, peak);

    block(arena, 300, NULL);
    memset(&u, 0x5a, sizeof u);
    u.known.size = size;
    OK(stepgraph_arena_get_stats(arena, &u.known));
    ck_assert_uint_eq(u.known.size, size);
    ck_assert_uint_eq(u.known.bytes, 4096);
    ck_assert_uint_eq(u.known.used, 512);
    for (size_t i = size; i < sizeof u; i++)
        ck_assert_msg(u.bytes[i] == 0x5a, "byte %zu was written", i);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_get_stats(arena, NULL), "");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_get_stats(NULL, &u.known), "arena");
}
END_TEST

START_TEST(session_with_an_arena_does_not_close)
{
    stepgraph_session *other = session_make(NULL);
    stepgraph_arena_config config = arena_config(256, 0, "still here");
    stepgraph_arena *arena = NULL;

    OK(stepgraph_arena_create(other, &config, &arena));
    OK(stepgraph_arena_note_alloc(other, 0x1000, 16, "noted to the end"));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_session_close(other), "still here");
    block(arena, 1, "taken to the end");
    OK(stepgraph_arena_destroy(arena));
    drop_session(other);
}
END_TEST

START_TEST(memory_of_an_arena_is_freed_with_it)
{
    stepgraph_arena *arena = arena_make(1 << 20, 0, "a");
    unsigned long before = driver_calls("cuMemFree");

    arena_drop(arena);
    ck_assert_uint_eq(driver_calls("cuMemFree"), before + 1);
    OK(stepgraph_arena_destroy(NULL));
}
END_TEST

/* ---- blocks ------------------------------------------------------------------------------------------------------------ */

START_TEST(blocks_are_inside_aligned_and_apart)
{
    enum { N = 100 };
    stepgraph_arena *arena = arena_make(1 << 20, 0, "a");
    stepgraph_arena_stats stats = stats_of(arena);
    uint64_t address[N], bytes[N], used = 0;

    for (int i = 0; i < N; i++) {
        bytes[i] = 1 + (uint64_t)i * 37;
        address[i] = block(arena, bytes[i], "x");
        used += (bytes[i] + UNIT - 1) / UNIT * UNIT;
        ck_assert_uint_eq(address[i] % UNIT, 0);
        ck_assert(address[i] >= stats.address && address[i] + bytes[i] <= stats.address + stats.bytes);
        for (int j = 0; j < i; j++)
            ck_assert(address[i] + bytes[i] <= address[j] || address[j] + bytes[j] <= address[i]);
    }
    stats = stats_of(arena);
    ck_assert_uint_eq(stats.blocks, N);
    ck_assert_uint_eq(stats.used, used);
    for (int i = 0; i < N; i++)
        OK(stepgraph_arena_free(arena, address[(i * 37) % N]));
    stats = stats_of(arena);
    ck_assert_uint_eq(stats.blocks, 0);
    ck_assert_uint_eq(stats.used, 0);
    ck_assert_uint_eq(stats.peak, used);
    ck_assert_uint_eq(stats.largest, stats.bytes); /* One range again. */
}
END_TEST

START_TEST(smallest_range_that_fits_is_taken)
{
    stepgraph_arena *arena = arena_make(64 * UNIT, 0, "a");
    uint64_t large = block(arena, 8 * UNIT, NULL), between = block(arena, UNIT, NULL), small = block(arena, 3 * UNIT, NULL);

    block(arena, UNIT, NULL);
    OK(stepgraph_arena_free(arena, large));
    OK(stepgraph_arena_free(arena, small));
    ck_assert_uint_eq(block(arena, 2 * UNIT, NULL), small);
    ck_assert_uint_eq(block(arena, 4 * UNIT, NULL), large);
    OK(stepgraph_arena_free(arena, between));
}
END_TEST

START_TEST(exhaustion_names_the_largest_range)
{
    stepgraph_arena *arena = arena_make(10 * UNIT, 0, "tight");
    uint64_t first = block(arena, 4 * UNIT, NULL);

    block(arena, 1, NULL);
    OK(stepgraph_arena_free(arena, first)); /* 4 units free, 1 taken, 5 free. */
    ALLOC_FAILS(STEPGRAPH_ERR_MEMORY, arena, 5 * UNIT + 1, "tight", "1281", "1280");
    ALLOC_FAILS(STEPGRAPH_ERR_MEMORY, arena, UINT64_MAX, "tight", "1280");
    ck_assert_uint_eq(stats_of(arena).largest, 5 * UNIT);
    block(arena, 5 * UNIT, NULL);
    ALLOC_FAILS(STEPGRAPH_ERR_MEMORY, arena, 4 * UNIT + 1, "tight", "1025", "1024");
    block(arena, 4 * UNIT, NULL);
    ALLOC_FAILS(STEPGRAPH_ERR_MEMORY, arena, 1, "tight", "largest free range has 0");
}
END_TEST

START_TEST(thousands_of_blocks_find_room)
{
    enum { N = 4000 };
    static uint64_t address[N];
    stepgraph_arena *arena = arena_make(3 * N * UNIT, _i == 0 ? 0 : N * UNIT / 2, "a");

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++)
            address[i] = block(arena, 1 + (uint64_t)(i % UNIT), "x");
        /* Every other one, then the rest: as many free ranges as there can be, then one. */
        for (int i = 0; i < N; i++)
            OK(stepgraph_arena_free(arena, address[i < N / 2 ? 2 * i : 2 * (i - N / 2) + 1]));
        ck_assert_uint_eq(stats_of(arena).used, 0);
        ck_assert_uint_eq(stats_of(arena).waiting, _i == 0 ? 0 : N * UNIT / 2);
    }
    ck_assert_uint_eq(stats_of(arena).peak, N * UNIT);
    if (_i == 0)
        ck_assert_uint_eq(stats_of(arena).largest, stats_of(arena).bytes);
}
END_TEST

START_TEST(what_is_no_request_is_refused)
{
    stepgraph_arena *arena = arena_make(4096, 0, "a");
    uint64_t address;

    ALLOC_FAILS(STEPGRAPH_ERR_ARGUMENT, arena, 0, "'a'", "no bytes");
    ALLOC_FAILS(STEPGRAPH_ERR_ARGUMENT, NULL, 1, "arena");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_alloc(arena, 1, NULL, NULL), "address_out");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_free(NULL, 256), "arena");
    OK(stepgraph_arena_free(arena, 0));
    address = block(arena, 1, NULL);
    OK(stepgraph_arena_free(arena, address));
}
END_TEST

START_TEST(block_cannot_be_freed_twice)
{
    /* Once while it waits in the queue and once when it is free. */
    stepgraph_arena *arena = arena_make(4096, _i == 0 ? 4096 : 0, "twice");
    uint64_t first = block(arena, 300, "x"), second = block(arena, 300, "y");
    stepgraph_arena_stats before;

    OK(stepgraph_arena_free(arena, first));
    before = stats_of(arena);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_free(arena, first), "twice", "freed before");
    ck_assert_mem_eq(&before, &(stepgraph_arena_stats[]){ stats_of(arena) }[0], sizeof before);
    OK(stepgraph_arena_free(arena, second));
}
END_TEST

START_TEST(address_inside_a_block_cannot_be_freed)
{
    stepgraph_arena *arena = arena_make(4096, 0, "whole");
    uint64_t first = block(arena, 300, "conv1.out"), second = block(arena, 300, NULL);

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_free(arena, first + 1), "whole", "inside", "conv1.out", "512 bytes");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_free(arena, first + 511), "inside", "conv1.out");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_free(arena, second + 256), "inside");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_free(arena, second + 512), "whole");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_free(arena, 4096), "whole");
    ck_assert_uint_eq(stats_of(arena).blocks, 2);
    OK(stepgraph_arena_free(arena, first));
    OK(stepgraph_arena_free(arena, second));
}
END_TEST

START_TEST(block_of_another_arena_is_refused)
{
    stepgraph_arena *a = arena_make(4096, 0, "a"), *b = arena_make(4096, 0, "b");
    uint64_t address = block(a, 1, NULL);

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_free(b, address), "'b'");
    OK(stepgraph_arena_free(a, address));
}
END_TEST

START_TEST(freed_block_waits_for_its_quarantine)
{
    stepgraph_arena *arena = arena_make(64 * UNIT, 3 * UNIT, "a");
    uint64_t first = block(arena, UNIT, NULL), other[4];

    for (int i = 0; i < 4; i++)
        other[i] = block(arena, UNIT, NULL);
    OK(stepgraph_arena_free(arena, first));
    ck_assert_uint_eq(stats_of(arena).waiting, UNIT);
    for (int i = 0; i < 3; i++) {
        uint64_t fresh = block(arena, UNIT, NULL);
        ck_assert_uint_ne(fresh, first);
        OK(stepgraph_arena_free(arena, other[i]));
    }
    ck_assert_uint_eq(stats_of(arena).waiting, 3 * UNIT); /* Three units were freed after it. */
    ck_assert_uint_eq(block(arena, UNIT, NULL), first);
    OK(stepgraph_arena_free(arena, other[3]));
    ck_assert_uint_eq(block(arena, UNIT, NULL), other[0]); /* First in, first out. */
}
END_TEST

START_TEST(what_waits_is_not_handed_out_even_when_nothing_else_is_left)
{
    stepgraph_arena *arena = arena_make(4 * UNIT, 1 << 20, "a");
    uint64_t all = block(arena, 4 * UNIT, NULL);

    OK(stepgraph_arena_free(arena, all));
    ALLOC_FAILS(STEPGRAPH_ERR_MEMORY, arena, 1, "largest free range has 0", "1024 wait", "quarantine_bytes");
}
END_TEST

/* ---- the model: a map of units ------------------------------------------------------------------------------------------ */

enum { FREE = 0, TAKEN = 1, WAITING = 2 };

typedef struct map {
    stepgraph_arena *arena;
    uint64_t seed, address, quarantine;
    char unit[UNITS];
    struct extent {
        int first, n;
    } block[UNITS], queue[20000];
    int n_blocks, head, tail;
    int waiting, peak;
} map;

/* The free range that best fit takes, the lowest of the smallest; -1 for none. And the largest one. */
static int best(const map *m, int need, int *largest)
{
    int found = -1, found_n = UNITS + 1;

    *largest = 0;
    for (int i = 0, n; i < UNITS; i += n > 0 ? n : 1) {
        for (n = 0; i + n < UNITS && m->unit[i + n] == FREE;)
            n++;
        *largest = n > *largest ? n : *largest;
        if (n >= need && n < found_n) {
            found = i;
            found_n = n;
        }
    }
    return found;
}

static void map_alloc(map *m)
{
    uint64_t bytes = 1 + unit_random(&m->seed) % (unit_random(&m->seed) % 4 == 0 ? 30 * UNIT : 6 * UNIT), address = 0;
    int need = (int)((bytes + UNIT - 1) / UNIT), largest, at = best(m, need, &largest);
    stepgraph_status status = stepgraph_arena_alloc(m->arena, bytes, "x", &address);
    char words[64];

    if (at < 0) {
        snprintf(words, sizeof words, "largest free range has %d ", largest * UNIT);
        AGREE(status == STEPGRAPH_ERR_MEMORY && address == 0, "%llu bytes were had, and only %d are free in one range",
              (unsigned long long)bytes, largest * UNIT);
        AGREE(strstr(last_words(), words) != NULL, "the message lacks '%s': %.300s", words, last_words());
        return;
    }
    AGREE(status == STEPGRAPH_OK, "%llu bytes are free at unit %d: %.300s", (unsigned long long)bytes, at, last_words());
    AGREE(address == m->address + (uint64_t)at * UNIT, "%d units at unit %.2f instead of %d", need,
          ((double)address - (double)m->address) / UNIT, at);
    memset(&m->unit[at], TAKEN, (size_t)need);
    m->block[m->n_blocks++] = (struct extent){ at, need };
}

static void map_free(map *m)
{
    int pick = (int)(unit_random(&m->seed) % (unsigned)m->n_blocks);
    struct extent gone = m->block[pick];

    AGREE(stepgraph_arena_free(m->arena, m->address + (uint64_t)gone.first * UNIT) == STEPGRAPH_OK, "%.300s", last_words());
    m->block[pick] = m->block[--m->n_blocks];
    m->queue[m->tail++] = gone;
    memset(&m->unit[gone.first], WAITING, (size_t)gone.n);
    m->waiting += gone.n;
    /* A block is free again once the bytes that were freed after it are as many as the quarantine. */
    while (m->head < m->tail && (uint64_t)(m->waiting - m->queue[m->head].n) * UNIT >= m->quarantine) {
        struct extent out = m->queue[m->head++];
        m->waiting -= out.n;
        memset(&m->unit[out.first], FREE, (size_t)out.n);
    }
}

static void map_agrees(map *m)
{
    stepgraph_arena_stats stats = STEPGRAPH_ARENA_STATS_INIT;
    int taken = 0, largest;

    stepgraph_arena_get_stats(m->arena, &stats);
    for (int i = 0; i < UNITS; i++)
        taken += m->unit[i] == TAKEN;
    best(m, 1, &largest);
    m->peak = taken > m->peak ? taken : m->peak;
    AGREE(stats.used == (uint64_t)taken * UNIT, "used is %llu instead of %d units", (unsigned long long)stats.used, taken);
    AGREE(stats.peak == (uint64_t)m->peak * UNIT, "peak is %llu instead of %d units", (unsigned long long)stats.peak, m->peak);
    AGREE(stats.waiting == (uint64_t)m->waiting * UNIT, "waiting is %llu instead of %d units", (unsigned long long)stats.waiting, m->waiting);
    AGREE(stats.largest == (uint64_t)largest * UNIT, "largest is %llu instead of %d units", (unsigned long long)stats.largest, largest);
    AGREE(stats.blocks == (uint64_t)m->n_blocks, "blocks is %llu instead of %d", (unsigned long long)stats.blocks, m->n_blocks);
}

START_TEST(random_calls_agree_with_a_map)
{
    static map m;

    memset(&m, 0, sizeof m);
    m.seed = seed_of(_i);
    m.quarantine = _i % 4 == 0 ? 0 : unit_random(&m.seed) % (UNITS * UNIT / 2);
    m.arena = arena_make(UNITS * UNIT, m.quarantine, "mapped");
    m.address = stats_of(m.arena).address;
    for (int i = 0; i < 3000; i++) {
        snprintf(place, sizeof place, "seed %llu, call %d", (unsigned long long)seed_of(_i), i);
        if (m.n_blocks > 0 && unit_random(&m.seed) % 100 < (i / 300 % 2 == 0 ? 40u : 60u))
            map_free(&m);
        else
            map_alloc(&m);
        map_agrees(&m);
    }
    while (m.n_blocks > 0) {
        map_free(&m);
        map_agrees(&m);
    }
}
END_TEST

/* ---- while recording ----------------------------------------------------------------------------------------------------- */

START_TEST(blocks_come_and_go_while_a_step_records)
{
    stepgraph_pin *w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_arena *arena = arena_make(1 << 16, 0, "a");
    stepgraph_step *step = begin("train", _i == 0 ? 0 : STEPGRAPH_STEP_GLOBAL);
    uint64_t t;

    begin_recording(step);
    for (int i = 0; i < 100; i++) {
        t = block(arena, 4, "t");
        axpb(stream, t, stepgraph_pin_address(w), 1);
        copyf(stream, stepgraph_pin_address(w), t);
        OK(stepgraph_arena_free(arena, t));
    }
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(step_stats(step).nodes_total, 200);
    ck_assert_uint_eq(step_stats(step).unregistered, 0);
    for (int i = 0; i < 3; i++)
        OK(stepgraph_step_replay(step));
    ck_assert_float_eq(pin_float(w), 300);
}
END_TEST

START_TEST(recordings_of_one_step_take_the_same_places_whatever_waits_for_its_quarantine)
{
    stepgraph_arena *arena = arena_make(64 * UNIT, 5 * UNIT, "a");
    uint64_t first[12], kept = block(arena, UNIT, "kept");

    for (int again = 0; again < 3; again++) {
        stepgraph_step *step = recording(again == 0 ? "a" : again == 1 ? "b" : "c");
        for (int i = 0; i < 12; i++) {
            uint64_t t = block(arena, (uint64_t)(1 + i % 3) * UNIT, NULL);
            OK(stepgraph_arena_free(arena, t));
            if (again == 0)
                first[i] = t;
            ck_assert_uint_eq(t, first[i]);
            ck_assert_uint_ne(t, i > 0 ? first[i - 1] : kept);
        }
        ck_assert_uint_gt(stats_of(arena).waiting, 0);
        OK(stepgraph_step_end(step));
        OK(stepgraph_arena_free(arena, block(arena, (uint64_t)again + 1, NULL))); /* Between steps, too. */
    }
}
END_TEST

START_TEST(step_replays_right_after_the_host_has_freed_its_blocks)
{
    stepgraph_pin *w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_arena *arena = arena_make(1 << 16, 0, "a");
    uint64_t before = block(arena, 4, "before"), during, elsewhere;
    stepgraph_step *step = begin("train", 0);

    begin_recording(step);
    during = block(arena, 4, "during");
    axpb(stream, before, stepgraph_pin_address(w), 1);
    axpb(stream, during, before, 10);
    copyf(stream, stepgraph_pin_address(w), during);
    OK(stepgraph_step_end(step));
    OK(stepgraph_arena_free(arena, before));
    OK(stepgraph_arena_free(arena, during));
    ck_assert_uint_eq(stats_of(arena).blocks, 0);

    /* What the host asks the device for now comes from elsewhere, and the graph's memory is its own still. */
    for (int i = 1; i <= 5; i++) {
        elsewhere = device_make(1 << 16);
        ck_assert(elsewhere + (1 << 16) <= stats_of(arena).address || elsewhere >= stats_of(arena).address + (1 << 16));
        OK(stepgraph_step_replay(step));
        ck_assert_float_eq(pin_float(w), 11 * (float)i);
        ck_assert_float_eq(float_at(elsewhere), 0);
    }
}
END_TEST

START_TEST(arena_of_a_live_graph_cannot_go)
{
    stepgraph_arena *used = arena_make(4096, 0, "used"), *unused = arena_make(4096, 0, "unused");
    stepgraph_step *step = begin("train", 0);
    uint64_t t = block(used, 4, "t");

    block(unused, 4, "u");
    begin_recording(step);
    inc(stream, t, 1);
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_arena_destroy(used), "train");
    OK(stepgraph_step_end(step));
    OK(stepgraph_arena_free(used, t));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_arena_destroy(used), "used", "train");
    arena_drop(unused);
    OK(stepgraph_step_replay(step));
    ck_assert_float_eq(float_at(t), 1);
    t = block(used, 4, "still works");
    OK(stepgraph_step_reset(step));
    arena_drop(used);
}
END_TEST

START_TEST(blocks_come_and_go_in_a_broken_recording)
{
    stepgraph_arena *arena = arena_make(4096, 0, "a");
    stepgraph_step *step = recording("broken");
    CUdeviceptr p;
    uint64_t t;

    ck_assert_int_ne(cu.MemAlloc(&p, 4), CUDA_SUCCESS); /* Forbidden here. */
    t = block(arena, 4, "t");
    OK(stepgraph_arena_free(arena, t));
    OK(stepgraph_arena_note_alloc(session, 0x10000, 4, NULL));
    OK(stepgraph_arena_note_free(session, 0x10000));
    FAILS(STEPGRAPH_ERR_CAPTURE, stepgraph_step_end(step), "broke");
}
END_TEST

START_TEST(blocks_come_and_go_when_the_driver_cannot_say_how_far_it_is)
{
    static const char *const entries[] = { "cuStreamGetCaptureInfo", "cuGraphGetNodes" };
    stepgraph_arena *arena = arena_make(4096, 0, "a");
    stepgraph_step *step = recording("train");
    uint64_t t;

    driver_fails(entries[_i], 1, 999);
    t = block(arena, 4, "t");
    driver_fails(entries[_i], 1, 999);
    OK(stepgraph_arena_free(arena, t));
    OK(stepgraph_step_end(step));
}
END_TEST

/* ---- whose an address was ------------------------------------------------------------------------------------------------ */

/* Label of the block at address when node was recorded; "none". */
static const char *at(uint64_t address, uint32_t node)
{
    static sg__block found;

    if (!sg__arena_block_at(session, address, node, &found))
        return "none";
    AGREE(address >= found.start && address - found.start < found.bytes, "block '%s' does not hold the address", found.label);
    AGREE(node == UINT32_MAX ? found.last_node == UINT32_MAX : found.first_node <= node && node <= found.last_node,
          "block '%s' was there from node %u to %u, and was given for node %u", found.label, found.first_node, found.last_node, node);
    return found.label;
}

START_TEST(address_means_the_block_of_its_time)
{
    stepgraph_arena *arena = arena_make(4096, 0, "a");
    uint64_t old = block(arena, 256, "old"), p = block(arena, 512, "before"), q;
    char label[] = "first";
    sg__block found;
    stepgraph_step *step = recording("train");

    inc(stream, p, 1); /* Node 0: before. */
    inc(stream, p, 1);
    OK(stepgraph_arena_free(arena, p));
    q = block(arena, 512, label);
    label[0] = 'x'; /* It was copied. */
    ck_assert_uint_eq(q, p);
    inc(stream, q, 1); /* Node 2: first. */
    OK(stepgraph_arena_free(arena, q));
    q = block(arena, 512, "seen by no node");
    OK(stepgraph_arena_free(arena, q));
    inc(stream, old, 1); /* Node 3: nobody's. */
    q = block(arena, 256, NULL);
    inc(stream, q, 1); /* Node 4: no label. */
    ck_assert_str_eq(at(p, UINT32_MAX), "");
    OK(stepgraph_step_end(step));

    ck_assert_str_eq(at(p, 0), "before");
    ck_assert_str_eq(at(p, 1), "before");
    ck_assert_str_eq(at(p + 511, 1), "before");
    ck_assert_str_eq(at(p, 2), "first");
    ck_assert_str_eq(at(p + 511, 2), "first");
    ck_assert_str_eq(at(p, 3), "none");
    ck_assert_str_eq(at(p, 4), "");
    ck_assert_str_eq(at(p + 255, 4), "");
    ck_assert_str_eq(at(p + 256, 4), "none");
    for (uint32_t node = 0; node < 5; node++)
        ck_assert_str_eq(at(old, node), "old");
    ck_assert_str_eq(at(stats_of(arena).address + 4096, 0), "none");

    ck_assert(sg__arena_block_at(session, p + 7, 1, &found));
    ck_assert_uint_eq(found.start, p);
    ck_assert_uint_eq(found.bytes, 512);
    ck_assert_uint_eq(found.first_node, 0);
    ck_assert_uint_eq(found.last_node, 1);
    ck_assert(sg__arena_block_at(session, q, UINT32_MAX, &found));
    ck_assert_uint_eq(found.first_node, 4);
    ck_assert_uint_eq(found.last_node, UINT32_MAX);
}
END_TEST

/* Label of the block that stood there at the time nearest to a node, best before it. */
static const char *near(uint64_t address, uint32_t node)
{
    static sg__block found;

    return sg__arena_block_near(session, address, node, &found) ? found.label : "none";
}

START_TEST(address_of_nobody_is_near_the_last_block_before)
{
    stepgraph_arena *arena = arena_make(4096, 0, "a");
    uint64_t kept = block(arena, 256, "kept"), p;
    stepgraph_step *step = recording("train");

    ck_assert_str_eq(near(kept + 256, 0), "none");
    p = block(arena, 512, "first");
    inc(stream, p, 1); /* Node 0. */
    OK(stepgraph_arena_free(arena, p));
    inc(stream, kept, 1); /* Nodes 1 and 2: nobody's. */
    inc(stream, kept, 1);
    ck_assert_uint_eq(block(arena, 512, "second"), p);
    inc(stream, p, 1); /* Node 3. */
    OK(stepgraph_arena_free(arena, p));
    inc(stream, kept, 1); /* Nodes 4 and 5. */
    inc(stream, kept, 1);
    OK(stepgraph_step_end(step));
    for (uint32_t node = 0; node < 3; node++)
        ck_assert_str_eq(near(p + 511, node), "first"); /* The second would be as near for node 2. */
    for (uint32_t node = 4; node < 6; node++)
        ck_assert_str_eq(near(p, node), "second");
    ck_assert_str_eq(near(p + 512, 4), "none");
}
END_TEST

START_TEST(records_outlive_what_comes_after_the_recording)
{
    stepgraph_arena *arena = arena_make(4096, 0, "a");
    stepgraph_step *step;
    uint64_t p, later;
    sg__block found;

    ck_assert_str_eq(at(stats_of(arena).address, UINT32_MAX), "none");
    step = recording("train");
    p = block(arena, 256, "in the step");
    inc(stream, p, 1);
    inc(stream, p, 1);
    OK(stepgraph_step_end(step));

    OK(stepgraph_arena_free(arena, p));
    ck_assert_str_eq(at(p, UINT32_MAX), "none");
    for (int i = 0; i < 10; i++) {
        later = block(arena, 256, "later");
        ck_assert_uint_eq(later, p);
        ck_assert_str_eq(at(p, 0), "in the step");
        ck_assert_str_eq(at(p, 1), "in the step");
        ck_assert_str_eq(at(p, UINT32_MAX), "later");
        if (i < 9)
            OK(stepgraph_arena_free(arena, later));
    }
    ck_assert(sg__arena_block_at(session, p, 1, &found));
    ck_assert_uint_eq(found.first_node, 0);
    ck_assert_uint_eq(found.last_node, UINT32_MAX - 1); /* To its end. */

    /* The next one begins with what is there. */
    OK(stepgraph_step_reset(step));
    begin_recording(step);
    inc(stream, p, 1);
    OK(stepgraph_arena_free(arena, later));
    inc(stream, p, 1);
    OK(stepgraph_step_end(step));
    ck_assert_str_eq(at(p, 0), "later");
    ck_assert_str_eq(at(p, 1), "none");
}
END_TEST

START_TEST(recording_in_which_no_block_came_or_went_is_one_too)
{
    stepgraph_arena *arena = arena_make(4096, 0, "a");
    uint64_t p = block(arena, 256, "early"), q;
    stepgraph_step *first = recording("first"), *second;

    inc(stream, p, 1);
    OK(stepgraph_arena_free(arena, p));
    OK(stepgraph_step_end(first));
    q = block(arena, 512, "late");
    ck_assert_str_eq(at(q, 0), "early");
    second = recording("second");
    inc(stream, q, 1);
    OK(stepgraph_step_end(second));
    ck_assert_str_eq(at(q, 0), "late");
    OK(stepgraph_arena_free(arena, q));
    ck_assert_str_eq(at(q, 0), "late");
}
END_TEST

START_TEST(arena_that_only_a_node_has_used_is_known)
{
    stepgraph_arena *arena = arena_make(4096, 0, "a");
    stepgraph_step *step = recording("train");
    uint64_t p;

    ck_assert(!sg__arenas_any(session));
    p = block(arena, 256, "t");
    ck_assert(sg__arenas_any(session));
    inc(stream, p, 1);
    OK(stepgraph_arena_free(arena, p));
    ck_assert(sg__arenas_any(session));
    OK(stepgraph_step_end(step));
}
END_TEST

START_TEST(records_of_a_failed_recording_do_not_stay)
{
    stepgraph_arena *arena = arena_make(4096, 0, "a");
    uint64_t p = block(arena, 256, "kept");
    stepgraph_step *step = recording("train");

    inc(stream, p, 1);
    OK(stepgraph_arena_free(arena, p));
    p = block(arena, 256, "again");
    OK(stepgraph_step_reset(step));
    begin_recording(step);
    block(arena, 256, "other");
    inc(stream, p, 1);
    OK(stepgraph_step_end(step));
    ck_assert_str_eq(at(p, 0), "again");
}
END_TEST

START_TEST(arena_that_is_gone_has_no_blocks)
{
    stepgraph_arena *arena = arena_make(4096, 0, "a");
    uint64_t p = block(arena, 256, "p");

    ck_assert_str_eq(at(p, UINT32_MAX), "p");
    arena_drop(arena);
    ck_assert_str_eq(at(p, UINT32_MAX), "none");
    ck_assert_str_eq(at(p, 0), "none");
}
END_TEST

/* ---- the model: all blocks that ever were --------------------------------------------------------------------------------- */

enum { EVER = 3000, ROOM = 64 };

typedef struct ever {
    uint64_t start, bytes;
    uint32_t came, went; /* Nodes recorded when it came and when it went. */
    int live, noted;
    char label[16];
} ever;

static ever blocks[EVER];
static int n_ever;

static ever *one_live(uint64_t *seed)
{
    int first = (int)(unit_random(seed) % (unsigned)(n_ever + 1));

    for (int i = 0; i < n_ever; i++)
        if (blocks[(first + i) % n_ever].live)
            return &blocks[(first + i) % n_ever];
    return NULL;
}

/* A block comes, from one of two arenas or noted in the host's pool, or goes. */
static void one_event(stepgraph_arena *const *of, uint64_t pool, uint32_t node, uint64_t *seed)
{
    ever *b = &blocks[n_ever], *gone = unit_random(seed) % 2 == 0 ? one_live(seed) : NULL;
    stepgraph_status status;

    if (gone != NULL) {
        if (gone->noted)
            OK(stepgraph_arena_note_free(session, gone->start));
        else
            OK(stepgraph_arena_free(gone->start - stats_of(of[0]).address < stats_of(of[0]).bytes ? of[0] : of[1], gone->start));
        gone->went = node;
        gone->live = 0;
        return;
    }
    if (n_ever == EVER)
        return;
    memset(b, 0, sizeof *b);
    snprintf(b->label, sizeof b->label, "%d", n_ever);
    b->noted = unit_random(seed) % 3 == 0;
    if (b->noted) {
        b->start = pool + unit_random(seed) % (ROOM * UNIT);
        b->bytes = 1 + unit_random(seed) % (8 * UNIT);
        status = stepgraph_arena_note_alloc(session, b->start, b->bytes, b->label);
        for (int i = 0; i < n_ever; i++)
            if (blocks[i].live && blocks[i].start < b->start + b->bytes && b->start < blocks[i].start + blocks[i].bytes) {
                ck_assert_int_eq(status, STEPGRAPH_ERR_ARGUMENT);
                return;
            }
    } else {
        b->bytes = (1 + unit_random(seed) % 8) * UNIT;
        status = stepgraph_arena_alloc(of[unit_random(seed) % 2], b->bytes, b->label, &b->start);
        if (status == STEPGRAPH_ERR_MEMORY)
            return;
    }
    ck_assert_msg(status == STEPGRAPH_OK, "%s", last_words());
    b->came = node;
    b->live = 1;
    n_ever++;
}

static void all_agree(uint64_t from, uint64_t bytes, uint32_t nodes, uint64_t *seed)
{
    for (int i = 0; i < 1000; i++) {
        uint64_t address = from + unit_random(seed) % bytes;
        uint32_t node = i % 10 == 0 ? UINT32_MAX : unit_random(seed) % nodes;
        const char *want = "none", *got = at(address, node);

        for (int j = 0; j < n_ever; j++)
            if (address >= blocks[j].start && address - blocks[j].start < blocks[j].bytes &&
                (node == UINT32_MAX ? blocks[j].live : blocks[j].came <= node && (blocks[j].live || node < blocks[j].went)))
                want = blocks[j].label;
        AGREE(strcmp(got, want) == 0, "%llu bytes into the range at node %u: block %s instead of %s", (unsigned long long)(address - from), node,
              got, want);
    }
}

START_TEST(random_blocks_agree_with_all_that_ever_were)
{
    uint64_t seed = seed_of(_i), pool = device_make((ROOM + 8) * UNIT);
    stepgraph_arena *of[] = { arena_make(ROOM * UNIT, 0, "a"), arena_make(ROOM * UNIT, 5 * UNIT, "b") };
    stepgraph_step *step = begin("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);

    n_ever = 0;
    for (int i = 0; i < 100; i++)
        one_event(of, pool, 0, &seed);
    for (int again = 0; again < 3; again++) {
        uint32_t node = 0;

        begin_recording(step);
        for (int i = 0; i < 400; i++) {
            snprintf(place, sizeof place, "seed %llu, recording %d, event %d", (unsigned long long)seed_of(_i), again, i);
            one_event(of, pool, node, &seed);
            for (; unit_random(&seed) % 3 == 0; node++)
                inc(stream, pool, 1);
        }
        inc(stream, pool, 1);
        node++;
        OK(stepgraph_step_end(step));
        for (int i = 0; i < 3; i++) {
            all_agree(stats_of(of[0]).address, ROOM * UNIT, node, &seed);
            all_agree(stats_of(of[1]).address, ROOM * UNIT, node, &seed);
            all_agree(pool, (ROOM + 8) * UNIT, node, &seed);
            for (int j = 0; j < 50; j++)
                one_event(of, pool, UINT32_MAX, &seed); /* After it is over. */
        }
        OK(stepgraph_step_reset(step));

        /* What is out now was there when the next one begins; the others are forgotten. */
        int n = 0;
        for (int i = 0; i < n_ever; i++)
            if (blocks[i].live) {
                blocks[n] = blocks[i];
                blocks[n++].came = 0;
            }
        n_ever = n;
    }
}
END_TEST

/* ---- blocks of the host's own pool ------------------------------------------------------------------------------------------ */

START_TEST(noted_blocks_are_known_by_their_time)
{
    uint64_t pool = device_make(4096);
    stepgraph_step *step;

    pin_adopt(session, STEPGRAPH_ROLE_SCRATCH, pool, 4096, "pool");
    OK(stepgraph_arena_note_alloc(session, pool + 10, 100, "odd"));
    ck_assert_str_eq(at(pool + 9, UINT32_MAX), "none");
    ck_assert_str_eq(at(pool + 10, UINT32_MAX), "odd");
    ck_assert_str_eq(at(pool + 109, UINT32_MAX), "odd");
    ck_assert_str_eq(at(pool + 110, UINT32_MAX), "none");
    step = recording("train");
    inc(stream, pool + 12, 1);
    OK(stepgraph_arena_note_free(session, pool + 10));
    OK(stepgraph_arena_note_alloc(session, pool, 4096, NULL));
    inc(stream, pool + 12, 1);
    OK(stepgraph_step_end(step));
    ck_assert_str_eq(at(pool + 12, 0), "odd");
    ck_assert_str_eq(at(pool + 12, 1), "");
    ck_assert_str_eq(at(pool + 1000, 0), "none");
    ck_assert_str_eq(at(pool + 1000, 1), "");
}
END_TEST

/* Blocks that are there, and one that only a node of the recording has met. */
START_TEST(memory_holds_noted_blocks_to_their_last_byte)
{
    enum { AT = 1000, BYTES = 24 };
    uint64_t pool = device_make(4096), start = pool + AT;
    stepgraph_step *step;

    pin_adopt(session, STEPGRAPH_ROLE_SCRATCH, pool, 4096, "pool");
    ck_assert(!sg__arena_notes(session, pool, 4096));
    ck_assert(!sg__arenas_any(session));
    step = recording("train");
    OK(stepgraph_arena_note_alloc(session, start, BYTES, "one"));
    ck_assert(sg__arena_notes(session, start + BYTES - 1, 1));
    ck_assert(!sg__arena_notes(session, start + BYTES, 1));
    for (int ended = 0; ended < 2; ended++) {
        ck_assert(!sg__arena_notes(session, pool, AT));
        ck_assert(sg__arena_notes(session, pool, AT + 1));
        ck_assert(sg__arena_notes(session, start, 1));
        ck_assert(sg__arenas_any(session));
        inc(stream, start, 1);
        if (ended == 0)
            OK(stepgraph_arena_note_free(session, start));
    }
    OK(stepgraph_step_end(step));
}
END_TEST

START_TEST(notes_that_cannot_be_are_refused)
{
    stepgraph_arena *arena = arena_make(4096, 0, "own");
    uint64_t pool = device_make(4096), inside = stats_of(arena).address + 512;

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_alloc(NULL, pool, 1, NULL), "session");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_free(NULL, pool), "session");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_alloc(session, pool, 0, NULL), "0 bytes");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_alloc(session, pool, UINT64_MAX, NULL), "18446744073709551615");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_alloc(session, inside, 16, NULL), "own");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_alloc(session, inside - 768, 257, NULL), "own");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_free(session, block(arena, 1, NULL)), "noted");

    OK(stepgraph_arena_note_alloc(session, pool + 100, 100, "one"));
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_alloc(session, pool + 199, 1, "two"), "overlap", "one");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_alloc(session, pool, 101, "two"), "overlap", "one");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_alloc(session, pool, 4096, "two"), "overlap", "one");
    OK(stepgraph_arena_note_alloc(session, pool, 100, "two"));
    OK(stepgraph_arena_note_alloc(session, pool + 200, 100, "three"));
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_free(session, pool + 101), "inside", "one");
    OK(stepgraph_arena_note_free(session, pool + 100));
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_free(session, pool + 100), "freed before");
    OK(stepgraph_arena_note_alloc(session, pool + 100, 100, "one"));
}
END_TEST

START_TEST(sessions_know_nothing_of_each_other)
{
    stepgraph_session *other = session_make(NULL);
    uint64_t pool = device_make(4096);
    sg__block found;

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_arena_note_free(other, pool), "noted"); /* Nothing ever was. */
    OK(stepgraph_arena_note_alloc(session, pool, 100, "here"));
    ck_assert(!sg__arena_block_at(other, pool, UINT32_MAX, &found));
    OK(stepgraph_arena_note_alloc(other, pool, 200, "there"));
    ck_assert(sg__arena_block_at(other, pool, UINT32_MAX, &found));
    ck_assert_str_eq(found.label, "there");
    ck_assert_str_eq(at(pool, UINT32_MAX), "here");
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("arena");
    TCase *making = arena_case(suite, "making"), *taking = arena_case(suite, "blocks"), *capture = arena_case(suite, "recording"),
          *time = arena_case(suite, "time"), *notes = arena_case(suite, "notes"), *models = arena_case(suite, "models");

    tcase_add_test(making, arena_is_a_scratch_pin_of_its_name);
    tcase_add_test(making, arena_of_one_byte_serves_one_block);
    tcase_add_test(making, bad_configs_are_refused);
    tcase_add_test(making, names_are_shared_with_pins_and_other_arenas);
    tcase_add_test(making, arena_cannot_be_made_while_a_step_records);
    add_controlled_test(making, no_device_memory_leaves_nothing_behind);
    tcase_add_test(making, config_sizes_are_understood);
    tcase_add_test(making, stats_are_filled_up_to_their_size);
    tcase_add_test(making, session_with_an_arena_does_not_close);
    add_controlled_test(making, memory_of_an_arena_is_freed_with_it);

    tcase_add_test(taking, blocks_are_inside_aligned_and_apart);
    tcase_add_test(taking, smallest_range_that_fits_is_taken);
    tcase_add_test(taking, exhaustion_names_the_largest_range);
    tcase_add_loop_test(taking, thousands_of_blocks_find_room, 0, 2);
    tcase_add_test(taking, what_is_no_request_is_refused);
    tcase_add_loop_test(taking, block_cannot_be_freed_twice, 0, 2);
    tcase_add_test(taking, address_inside_a_block_cannot_be_freed);
    tcase_add_test(taking, block_of_another_arena_is_refused);
    tcase_add_test(taking, freed_block_waits_for_its_quarantine);
    tcase_add_test(taking, what_waits_is_not_handed_out_even_when_nothing_else_is_left);

    tcase_add_loop_test(capture, blocks_come_and_go_while_a_step_records, 0, 2);
    tcase_add_test(capture, recordings_of_one_step_take_the_same_places_whatever_waits_for_its_quarantine);
    tcase_add_test(capture, step_replays_right_after_the_host_has_freed_its_blocks);
    tcase_add_test(capture, arena_of_a_live_graph_cannot_go);
    tcase_add_test(capture, blocks_come_and_go_in_a_broken_recording);
    add_controlled_loop_test(capture, blocks_come_and_go_when_the_driver_cannot_say_how_far_it_is, 0, 2);

    tcase_add_test(time, address_means_the_block_of_its_time);
    tcase_add_test(time, address_of_nobody_is_near_the_last_block_before);
    tcase_add_test(time, records_outlive_what_comes_after_the_recording);
    tcase_add_test(time, recording_in_which_no_block_came_or_went_is_one_too);
    tcase_add_test(time, arena_that_only_a_node_has_used_is_known);
    tcase_add_test(time, records_of_a_failed_recording_do_not_stay);
    tcase_add_test(time, arena_that_is_gone_has_no_blocks);

    tcase_add_test(notes, noted_blocks_are_known_by_their_time);
    tcase_add_test(notes, memory_holds_noted_blocks_to_their_last_byte);
    tcase_add_test(notes, notes_that_cannot_be_are_refused);
    tcase_add_test(notes, sessions_know_nothing_of_each_other);

    tcase_add_loop_test(models, random_calls_agree_with_a_map, 0, SEEDS);
    tcase_add_loop_test(models, random_blocks_agree_with_all_that_ever_were, 0, SEEDS);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
