/* What earlier calls left over in arguments, as frameworks do that fill large structs in part: no fault. In the same places, what a replay would
 * freeze is named all the same. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "findings.h"

enum { LOOSE = STEPGRAPH_STEP_ALLOW_UNREGISTERED | STEPGRAPH_STEP_ALLOW_HOST_MEMORY, MOST = 10 };

static CUdeviceptr out;
static int often; /* The last comparison had five recordings of each step. */

/* ---- one word in an argument of some size --------------------------------------------------------------------------- */

enum form { WHOLE, SMALL, LARGE, FORMS }; /* 8 bytes, 40 and 4,088. */

static const char *const names[FORMS] = {"dropout", "inner", "big4096"};
static const uint32_t arguments[FORMS] = {1, 0, 1}, offsets[FORMS] = {0, 24, 96};

static void enqueue(enum form form, uint64_t word)
{
    struct Inner small = {.p = out, .n = 1};
    static struct Big large;
    int k = 1;
    char byte = 1;

    small.tail[1] = word;
    large.words[12] = word;
    if (form == WHOLE)
        launch(stream, made_for.dropout, 1, (void *[]){&out, &word});
    else if (form == SMALL)
        launch(stream, made_for.inner, 1, (void *[]){&small, &out, &k, &byte, &out});
    else
        launch(stream, made_for.big4096, 1, (void *[]){&out, &large});
}

static stepgraph_step *with(enum form form, uint64_t word)
{
    stepgraph_step *step = recording("step", LOOSE);

    enqueue(form, word);
    ready(step);
    return step;
}

static stepgraph_audit *many(size_t n_a, stepgraph_step *const *a, size_t n_b, stepgraph_step *const *b)
{
    stepgraph_audit *report = NULL;

    OK(stepgraph_audit_compare_many(n_a, a, n_b, b, &report));
    often = n_a > 4 && n_b > 4;
    return keep_report(report);
}

/* As many recordings as there are words. */
static stepgraph_audit *words(enum form form, size_t n_a, size_t n_b, const uint64_t *words)
{
    stepgraph_step *steps[MOST];

    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    for (size_t i = 0; i < n_a + n_b; i++)
        steps[i] = with(form, words[i]);
    return many(n_a, steps, n_b, steps + n_a);
}

#define WORDS(form, n_a, n_b, ...) words(form, n_a, n_b, (const uint64_t[]){__VA_ARGS__})

#define NO_FAULT(report, form, ...)                                                                                              \
    do {                                                                                                                         \
        stepgraph_audit *report_ = (report);                                                                                     \
        HOLDS(report_, 0, 1);                                                                                                    \
        NOTED(report_, UNCLASSIFIED, 0, names[form], arguments[form], offsets[form], "", "unclassified", __VA_ARGS__);           \
    } while (0)

/* A fault; in a large struct only in doubt, unless it was recorded often enough. */
static int doubted(enum form form)
{
    return form == LARGE && !often;
}

#define NAMED(report, kind_, form, bytes_, ...)                                                                                  \
    do {                                                                                                                         \
        stepgraph_audit *report_ = (report);                                                                                     \
        const char *advice_ = STEPGRAPH_FINDING_##kind_ != STEPGRAPH_FINDING_MOVED_POINTER ? "CELL" : doubted(form) ? "pin what it is" : "pin it"; \
        stepgraph_finding f_;                                                                                                    \
        HOLDS(report_, !doubted(form), 1);                                                                                       \
        ck_assert_uint_eq(summary_of(report_).doubtful, doubted(form));                                                          \
        f_ = found(report_, &(struct wanted){STEPGRAPH_FINDING_##kind_, doubted(form) ? DOUBTFUL : 1, 0, names[form], arguments[form],     \
                                             offsets[form], advice_}, (const char *const[]){__VA_ARGS__, NULL});                 \
        ck_assert_uint_eq(f_.bytes, bytes_);                                                                                     \
    } while (0)

static void make_out(void)
{
    pin_make(session, STEPGRAPH_ROLE_OUTPUT, 64, "out");
}

/* ---- addresses of host memory ------------------------------------------------------------------------------------------ */

static uint64_t on_heap, other_on_heap, on_stack, in_code;

static void find_host_memory(char *here)
{
    static char *kept[2];

    for (int i = 0; i < 2; i++)
        if (kept[i] == NULL)
            kept[i] = malloc(1 << 20); /* For as long as the program. */
    on_heap = (uintptr_t)kept[0] + 0x20010; /* Not so near to its neighbours that their upper bytes are the same. */
    other_on_heap = (uintptr_t)kept[1] + 0x3f010;
    on_stack = (uintptr_t)here;
    in_code = (uintptr_t)find_host_memory + 5;
}

START_TEST(addresses_of_host_memory_are_no_fault)
{
    enum form form = (enum form)_i;
    char here;

    make_out();
    find_host_memory(&here);
    NO_FAULT(WORDS(form, 1, 1, on_heap, other_on_heap), form, "host's own memory");
    NO_FAULT(WORDS(form, 1, 1, on_stack, in_code), form, "host's own memory");
    NO_FAULT(WORDS(form, 1, 1, in_code, 1), form, "host's own memory");
    NO_FAULT(WORDS(form, 1, 1, 1, in_code), form, "host's own memory");
    NO_FAULT(WORDS(form, 1, 2, on_heap, other_on_heap, other_on_heap), form, "host's own memory");
    NO_FAULT(WORDS(form, 2, 2, on_heap, on_heap, other_on_heap, other_on_heap), form, "host's own memory");
    NO_FAULT(WORDS(form, 2, 2, 1, 1, on_stack, on_stack), form, "host's own memory");
    /* The lower half alone is another, */
    NO_FAULT(WORDS(form, 1, 1, on_heap, on_heap ^ 0x1f0000), form, "host's own memory");
    NO_FAULT(WORDS(form, 2, 2, in_code, in_code, in_code + 0x309, in_code + 0x309), form, "host's own memory");
    /* or the upper half, */
    NO_FAULT(WORDS(form, 1, 1, on_heap, on_heap & 0xffffffff), form, "host's own memory");
    /* or it is none in the two that are shown. */
    NO_FAULT(WORDS(form, 1, 2, 0x160, 0x8050, on_stack), form, "");
}
END_TEST

/* The same place, with what a kernel can use. */
START_TEST(device_memory_in_the_same_place_is_named)
{
    enum form form = (enum form)_i;
    CUdeviceptr x, y;
    char here;

    make_out();
    find_host_memory(&here);
    x = device_make(4096);
    y = device_make(4096);
    NAMED(WORDS(form, 1, 1, x, y), MOVED_POINTER, form, 8, "4096 bytes that no pin covers");
    NAMED(WORDS(form, 2, 2, x, x, y, y), MOVED_POINTER, form, 8, "moved pointer");
    /* Back and forth in each recording: the first of both steps is the same. */
    NAMED(WORDS(form, 2, 2, x, y, x, y), MOVED_POINTER, form, 8, "moved pointer");
    /* A new place each time. */
    NAMED(WORDS(form, 2, 2, x, y, x + 64, y + 64), MOVED_POINTER, form, 8, "moved pointer");
    NAMED(WORDS(form, 2, 2, 0, 0, y, y), MOVED_POINTER, form, 8, "moved pointer");
    /* No pointer is a number, or an address of the host's, in another recording. */
    NO_FAULT(WORDS(form, 2, 2, x, 77, y, y), form, "none in another");
    NO_FAULT(WORDS(form, 2, 2, x, x, y, on_heap), form, "host's own memory");
}
END_TEST

START_TEST(page_locked_memory_in_the_same_place_is_named)
{
    enum form form = (enum form)_i;
    uint64_t x = (uintptr_t)page_locked(4096), y = (uintptr_t)page_locked(8192);

    make_out();
    NAMED(WORDS(form, 1, 1, x, y), MOVED_POINTER, form, 8, "4096 bytes of page-locked host memory");
    NAMED(WORDS(form, 2, 2, x, x, y, y), MOVED_POINTER, form, 8, "page-locked");
}
END_TEST

/* Memory of the host's at a place of our choice. */
static void map_at(uint64_t address, size_t bytes)
{
    void *made = mmap((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    ck_assert_msg(made == (void *)(uintptr_t)address || errno == EEXIST, "cannot map %llx", (unsigned long long)address);
}

/* A value of 4 bytes in a struct, with the upper half of an address for its padding: together they are an address of the host's. */
START_TEST(values_below_the_rest_of_an_address_are_named)
{
    enum form form = (enum form)(_i + 1);
    const uint64_t rest = 0x3e00ull << 32;

    make_out();
    map_at(rest, 65536);
    map_at(rest | 0x3a831000, 4096);
    map_at(rest | 0x3b031000, 4096);
    NAMED(WORDS(form, 1, 1, rest | 7, rest | 8), CHANGING_SCALAR, form, 4, "as integer 7 -> 8");
    NAMED(WORDS(form, 2, 2, rest | 7, rest | 7, rest | 8, rest | 8), CHANGING_SCALAR, form, 4, "as integer 7 -> 8");
    NAMED(WORDS(form, 2, 2, rest | 7, 7, rest | 8, 8), CHANGING_SCALAR, form, 4, "as integer 7 -> 8");
    NAMED(WORDS(form, 2, 2, rest | 0x3a83126f, rest | 0x3a83126f, rest | 0x3b03126f, rest | 0x3b03126f), CHANGING_SCALAR, form, 4,
          "as float 0.00100000005 -> 0.00200000009");
    NAMED(WORDS(form, 2, 2, rest | 0x3a83126f, 0x3a83126f, rest | 0x3b03126f, 0x3b03126f), CHANGING_SCALAR, form, 4, "as float 0.001");
    NAMED(WORDS(form, 1, 1, rest | 0x1234, rest | 0xffff), CHANGING_SCALAR, form, 4, "as integer 4660 -> 65535");
    /* A byte alone. */
    NAMED(WORDS(form, 1, 1, rest | 0x3a831001, rest | 0x3a831002), CHANGING_SCALAR, form, 4, "4 bytes");
    /* Only what may stand at such an address is one: */
    NO_FAULT(WORDS(form, 2, 2, rest | 0x3a831268, rest | 0x3a831268, rest | 0x3b031268, rest | 0x3b031268), form, "host's own memory");
    /* and where there is no memory, there is no doubt. */
    NAMED(WORDS(form, 1, 1, rest | 0x3c83126f, rest | 0x3c03126f), CHANGING_SCALAR, form, 4, "4 bytes");
}
END_TEST

/* A program that is not position-independent has its memory where numbers are. */
START_TEST(low_addresses_of_host_memory_are_told_from_numbers)
{
    enum form form = (enum form)_i;

    make_out();
    map_at(0x22e00000, 1 << 20);
    NO_FAULT(WORDS(form, 1, 1, 0x22e1c510, 0x22e2c510), form, "host's own memory");
    NO_FAULT(WORDS(form, 1, 2, 0x22e1c510, 0x22e2c510, 0x22e2c510), form, "host's own memory");
    NO_FAULT(WORDS(form, 2, 2, 0x22e1c510, 0x22e2c510, 0x22e8d528, 0x22e83ff0), form, form == WHOLE ? "host's own memory" : "padding");
    /* A number that each step has of its own, and those that nothing can stand at. */
    NAMED(WORDS(form, 2, 2, 0x22e1c510, 0x22e1c510, 0x22e2c510, 0x22e2c510), CHANGING_SCALAR, form, form == WHOLE ? 8u : 4u, "585221392");
    NAMED(WORDS(form, 1, 1, 0x22e1c511, 0x22e1c515), CHANGING_SCALAR, form, form == WHOLE ? 8u : 4u, "585221393 -> 585221397");
}
END_TEST

/* Two values side by side make a word as large as an address, and a large one may by chance be one. */
START_TEST(pairs_of_values_in_the_same_place_are_named)
{
    enum form form = (enum form)_i;

    make_out();
    NAMED(WORDS(form, 2, 2, 0x33dcccccd, 0x33dcccccd, 0x43d4ccccd, 0x43d4ccccd), CHANGING_SCALAR, form, 8, "8 bytes");
    NAMED(WORDS(form, 2, 2, 585221392, 585221392, 585221400, 585221400), CHANGING_SCALAR, form, form == WHOLE ? 8u : 4u,
          "as integer 585221392 -> 585221400");
}
END_TEST

/* ---- addresses of device memory in one recording ----------------------------------------------------------------------- */

/* A large struct with one word, and a kernel that takes an address by itself. What end says, where nothing is allowed. */
static stepgraph_step *alone(uint64_t word, CUdeviceptr by_itself)
{
    stepgraph_step *step = recording("step", 0);
    static struct Big large;

    large.words[12] = word;
    launch(stream, made_for.big4096, 1, (void *[]){&out, &large});
    if (by_itself != 0)
        inc(stream, by_itself, 1);
    return step;
}

START_TEST(addresses_where_nothing_can_stand_are_left_over_in_large_structs)
{
    CUdeviceptr x;
    stepgraph_audit *report;

    make_out();
    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    x = device_make(4096);
    /* Where something can, nobody can tell. */
    DOUBTED(ready(alone(x, 0)), UNREGISTERED, 0, "big4096", 1, 96, "pin it", "4096 bytes");
    DOUBTED(ready(alone(x + 4, 0)), UNREGISTERED, 0, "big4096", 1, 96, "pin it", "4096 bytes");
    report = refused(alone(x, x));
    HOLDS(report, 1, 2);
    FOUND(report, UNREGISTERED, 1, "inc", 0, 0, "pin it", "4096 bytes");
    DOUBTED(report, UNREGISTERED, 0, "big4096", 1, 96, "pin it", "4096 bytes");
    CLEAN(ready(alone(x + 2, 0)));
    CLEAN(ready(alone(x + 1, 0)));
    /* The same number by itself is an address all the same, and what is left over is not looked at before replays. */
    report = refused(alone(x + 2, x + 2));
    HOLDS(report, 1, 1);
    FOUND(report, UNREGISTERED, 1, "inc", 0, 0, "pin it", "+2 in 4096 bytes");
}
END_TEST

/* Where nothing can stand, the answer is the same whatever the driver says. */
START_TEST(numbers_where_nothing_can_stand_in_large_structs_are_not_asked_about)
{
    const uint64_t number = (uint64_t)5 << 32;
    unsigned long asked[5];

    make_out();
    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    for (int i = 0; i < 5; i++) {
        stepgraph_step *step = alone(i == 0 ? 0 : number + (i < 4 ? (uint64_t)i : 4), 0);
        asked[i] = driver_calls("cuPointerGetAttributes");
        ready(step);
        asked[i] = driver_calls("cuPointerGetAttributes") - asked[i];
    }
    for (int i = 1; i < 4; i++)
        ck_assert_uint_eq(asked[i], asked[0]);
    ck_assert_uint_gt(asked[4], asked[0]);
}
END_TEST

/* A pool of the host's, with one block out and one that was given back. */
START_TEST(addresses_where_the_host_notes_no_block_are_left_over_in_large_structs)
{
    stepgraph_step *step;
    CUdeviceptr pool;

    make_out();
    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    pool = device_make(65536);
    DOUBTED(ready(alone(pool + 1024, 0)), UNREGISTERED, 0, "big4096", 1, 96, "pin it", "65536 bytes"); /* No notes: nobody knows. */
    OK(stepgraph_arena_note_alloc(session, pool, 256, "in use"));
    OK(stepgraph_arena_note_alloc(session, pool + 1024, 256, "gone"));
    DOUBTED(ready(alone(pool + 1024, 0)), UNREGISTERED, 0, "big4096", 1, 96, "pin it", "65536 bytes");
    OK(stepgraph_arena_note_free(session, pool + 1024));
    DOUBTED(ready(alone(pool + 16, 0)), UNREGISTERED, 0, "big4096", 1, 96, "pin it", "65536 bytes");
    step = alone(pool + 1024, 0);
    CLEAN(ready(step));
    FOUND(refused(alone(pool + 1024, pool + 1024)), UNREGISTERED, 1, "inc", 0, 0, "pin it", "65536 bytes");
    /* Nobody minds if that memory goes: nothing in the step uses it. */
    OK(stepgraph_arena_note_free(session, pool));
    free_elsewhere(pool);
    OK(stepgraph_step_replay(step));
    CU(StreamSynchronize(stream));
}
END_TEST

/* How often the driver is asked about addresses in such a pool that are left over, and no other there. */
START_TEST(memory_that_addresses_are_left_over_of_is_asked_about_once)
{
    unsigned long asked[2];
    CUdeviceptr pool;

    make_out();
    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    pool = device_make(65536);
    OK(stepgraph_arena_note_alloc(session, pool, 256, "in use"));
    for (int i = 0; i < 2; i++) {
        static struct Big large;
        stepgraph_step *step = recording("step", 0);
        for (size_t k = 0; k < (i == 0 ? 1 : 20); k++)
            large.words[12 + k] = pool + 1024 * (k + 1);
        launch(stream, made_for.big4096, 1, (void *[]){&out, &large});
        asked[i] = driver_calls("cuPointerGetAttributes");
        CLEAN(ready(step));
        asked[i] = driver_calls("cuPointerGetAttributes") - asked[i];
    }
    ck_assert_uint_gt(asked[0], 0);
    ck_assert_uint_eq(asked[1], asked[0]);
    /* It is not the step's for all that: what it uses there is named as ever. */
    FOUND(refused(alone(pool + 1024, pool + 2048)), UNREGISTERED, 1, "inc", 0, 0, "pin it", "65536 bytes");
}
END_TEST

/* Memory that is gone, or of others, as well: it may be what an earlier step used. */
START_TEST(addresses_of_memory_that_is_gone_are_in_doubt_in_large_structs)
{
    CUdeviceptr x, y, z;
    stepgraph_step *step;

    make_out();
    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    x = device_make(4096);
    y = device_make(4096);
    z = device_make(4096);
    (void)with(LARGE, x); /* So that it has been met. */
    (void)with(LARGE, y);
    (void)with(LARGE, z);
    step = alone(x, 0);
    free_elsewhere(x);
    DOUBTED(ready(step), FREED, 0, "big4096", 1, 96, "keep", "4096 bytes stood there once");
    step = alone(z + 1, 0); /* Even where nothing can stand. */
    free_elsewhere(z);
    DOUBTED(ready(step), FREED, 0, "big4096", 1, 96, "keep", "4096 bytes stood there once");
    step = alone(7, y);
    free_elsewhere(y);
    FOUND(refused(step), FREED, 1, "inc", 0, 0, "keep", "4096 bytes stood there once");
    DOUBTED(ready(alone((uintptr_t)page_locked(4096), 0)), PAGE_LOCKED, 0, "big4096", 1, 96, "FEED", "page-locked");
}
END_TEST

/* ---- halves of addresses ---------------------------------------------------------------------------------------------- */

/* Where the call of this function returns to. */
static uint64_t __attribute__((noinline)) returns_here(void)
{
    __asm__ volatile(""); /* Each call is made. */
    return (uintptr_t)__builtin_return_address(0);
}

/* Recordings of a struct of 604 bytes, which ends with half a word; or of the large one, where something else follows the half. */
static stepgraph_step *with_half(int at_end, uint32_t half)
{
    struct Part part = {{0}};
    stepgraph_step *step;

    if (!at_end)
        return with(LARGE, half | 4ull << 32);
    part.words[150] = half;
    step = recording("step", LOOSE);
    launch(stream, made_for.part604, 1, (void *[]){&out, &part});
    ready(step);
    return step;
}

/* So many recordings of each step. */
static stepgraph_audit *halves(int at_end, size_t n, const uint64_t *of)
{
    stepgraph_step *steps[MOST];

    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    for (size_t i = 0; i < 2 * n; i++)
        steps[i] = with_half(at_end, (uint32_t)of[i]);
    return many(n, steps, n, steps + n);
}

/* What is cut off from a return address: nobody set the part of the struct that ends there. */
START_TEST(lower_halves_of_return_addresses_are_no_fault)
{
    uint64_t (*volatile indirect)(void) = returns_here;
    uint64_t one = returns_here(), other = returns_here(), third = indirect();
    const char *name = _i ? "part604" : "big4096";
    uint32_t at = _i ? 600 : 96;
    stepgraph_audit *report;

    make_out();
    report = halves(_i, 2, (const uint64_t[]){one, one, other, other});
    HOLDS(report, 0, 1);
    NOTED(report, UNCLASSIFIED, 0, name, 1, at, "", "unclassified", "lower half of an address in the host's own code");
    HOLDS(halves(_i, 2, (const uint64_t[]){one, one, third, third}), 0, 1);
    /* As padding, where the step does not tell it. */
    report = halves(_i, 2, (const uint64_t[]){one, other, third, third});
    HOLDS(report, 0, 1);
    NOTED(report, UNCLASSIFIED, 0, name, 1, at, "", "padding");
}
END_TEST

START_TEST(values_where_half_an_address_may_stand_are_named)
{
    uint64_t code = returns_here(), other = returns_here();
    const uint64_t values[][2] = {
        {0x3a83126f, 0x3b03126f}, /* A learning rate, */
        {7, 8},                   /* a count, */
        {code + 1, other + 1},    /* numbers that are code, but no place to return to, */
        {code, 0x3b03126f},       /* or only one of which is. */
        {0x3a83126f, other},
    };

    make_out();
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const uint64_t *v = values[i];
        stepgraph_audit *report = halves(_i, 5, (const uint64_t[]){v[0], v[0], v[0], v[0], v[0], v[1], v[1], v[1], v[1], v[1]});
        stepgraph_finding f;
        HOLDS(report, 1, 1);
        f = FOUND(report, CHANGING_SCALAR, 0, _i ? "part604" : "big4096", 1, _i ? 600 : 96, "CELL", "4 bytes");
        ck_assert_uint_eq(f.before, (uint32_t)v[0]);
        ck_assert_uint_eq(f.after, (uint32_t)v[1]);
        report = halves(_i, 2, (const uint64_t[]){v[0], v[0], v[1], v[1]});
        HOLDS(report, 0, 1);
        DOUBTED(report, CHANGING_SCALAR, 0, _i ? "part604" : "big4096", 1, _i ? 600 : 96, "CELL", "4 bytes");
    }
}
END_TEST

/* In a small struct, and by itself, a value is a value. */
START_TEST(values_of_small_structs_may_look_like_half_an_address)
{
    uint64_t code = (uint32_t)returns_here(), other = (uint32_t)returns_here();

    make_out();
    NAMED(WORDS(SMALL, 2, 2, code, code, other, other), CHANGING_SCALAR, SMALL, 4, "changing scalar");
    NAMED(WORDS(WHOLE, 2, 2, code, code, other, other), CHANGING_SCALAR, WHOLE, 8, "changing scalar");
}
END_TEST

/* ---- noise of both steps ------------------------------------------------------------------------------------------------- */

/* What the first recording found on the stack is not what the later ones do. */
START_TEST(garbage_of_the_first_recording_alone_is_no_fault)
{
    enum form form = (enum form)(_i + 1);

    make_out();
    NO_FAULT(WORDS(form, 2, 2, 0x12340018, 0x55550001, 0x55550001, 0x55550001), form, "padding");
    NO_FAULT(WORDS(form, 2, 2, 0x3, 0x1111111100000018, 0x1111111100000018, 0x1111111100000018), form, "padding");
    NO_FAULT(WORDS(form, 3, 1, 0x12340018, 0x55550001, 0x55550001, 0x55550001), form, "padding");
    NO_FAULT(WORDS(form, 2, 2, 0x18, 0x18, 0x18, 0x1122334455667788), form, "padding");
    /* Without a second one nobody can tell. */
    NAMED(WORDS(form, 1, 2, 0x12340018, 0x55550001, 0x55550001), CHANGING_SCALAR, form, 4, "changing scalar");
}
END_TEST

/* Each step's own value, whatever the size of what it is in. */
START_TEST(values_of_each_step_are_named)
{
    enum form form = (enum form)_i;

    make_out();
    NAMED(WORDS(form, 2, 2, 0x3a83126f, 0x3a83126f, 0x3b03126f, 0x3b03126f), CHANGING_SCALAR, form, form == WHOLE ? 8u : 4u, "changing scalar");
    NAMED(WORDS(form, 2, 2, 7, 7, 8, 8), CHANGING_SCALAR, form, form == WHOLE ? 8u : 4u, "as integer 7 -> 8");
    NAMED(WORDS(form, 3, 2, 7, 7, 7, 8, 8), CHANGING_SCALAR, form, form == WHOLE ? 8u : 4u, "as integer 7 -> 8");
    NAMED(WORDS(form, 1, 3, 7, 8, 8, 8), CHANGING_SCALAR, form, form == WHOLE ? 8u : 4u, "as integer 7 -> 8");
}
END_TEST

/* In a small struct a value may have padding behind it; in a large one the same bytes are the lower ones of what was left over. */
START_TEST(bytes_in_front_of_noise_are_a_value_in_small_structs_only)
{
    make_out();
    NAMED(WORDS(SMALL, 2, 2, 0x1101, 0x2201, 0x3302, 0x4402), CHANGING_SCALAR, SMALL, 1, "1 bytes 1 -> 2");
    NO_FAULT(WORDS(LARGE, 2, 2, 0x1101, 0x2201, 0x3302, 0x4402), LARGE, "padding");
}
END_TEST

/* A few recordings of each step may agree by chance, in a struct that is set in part; five hardly do. */
START_TEST(value_of_a_large_struct_is_in_doubt_until_the_fifth_recording)
{
    static const char further[] = "more recordings of both steps";
    stepgraph_audit *report;

    make_out();
    DOUBTED(WORDS(LARGE, 1, 1, 7, 8), CHANGING_SCALAR, 0, "big4096", 1, 96, further, "7 -> 8");
    DOUBTED(WORDS(LARGE, 2, 2, 7, 7, 8, 8), CHANGING_SCALAR, 0, "big4096", 1, 96, further, "7 -> 8");
    DOUBTED(WORDS(LARGE, 3, 3, 7, 7, 7, 8, 8, 8), CHANGING_SCALAR, 0, "big4096", 1, 96, further, "7 -> 8");
    DOUBTED(WORDS(LARGE, 4, 5, 7, 7, 7, 7, 8, 8, 8, 8, 8), CHANGING_SCALAR, 0, "big4096", 1, 96, further, "7 -> 8");
    report = WORDS(LARGE, 5, 4, 7, 7, 7, 7, 7, 8, 8, 8, 8);
    DOUBTED(report, CHANGING_SCALAR, 0, "big4096", 1, 96, further, "7 -> 8");
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "no clear fault found, and 1 finding in doubt"));
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "\n  (in doubt) node 0"));
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_json(report), "\"faults\": 0, \"doubtful\": 1"));
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_json(report), "\"fault\": false, \"doubtful\": true"));
    FOUND(WORDS(LARGE, 5, 5, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8), CHANGING_SCALAR, 0, "big4096", 1, 96, "CELL", "7 -> 8");
    FOUND(WORDS(SMALL, 1, 1, 7, 8), CHANGING_SCALAR, 0, "inner", 0, 24, "CELL", "7 -> 8");
    NO_FAULT(WORDS(LARGE, 5, 5, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8), LARGE, "padding");
}
END_TEST

/* So may an address of device memory that an earlier call has left there. One that moves each time it is recorded may be a parameter that is made anew,
 * or left over: that takes a check. */
START_TEST(pointer_of_a_large_struct_is_in_doubt_until_the_fifth_recording)
{
    CUdeviceptr x, y;

    make_out();
    x = device_make(4096);
    y = device_make(4096);
    DOUBTED(WORDS(LARGE, 2, 2, x, x, y, y), MOVED_POINTER, 0, "big4096", 1, 96, "more recordings of both steps", "4096 bytes");
    FOUND(WORDS(LARGE, 5, 5, x, x, x, x, x, y, y, y, y, y), MOVED_POINTER, 0, "big4096", 1, 96, "pin it", "4096 bytes");
    DOUBTED(WORDS(LARGE, 5, 5, x, y, x, x, x, y, y, y, y, y), MOVED_POINTER, 0, "big4096", 1, 96, "or a check", "4096 bytes");
    FOUND(WORDS(SMALL, 2, 2, x, x, y, y), MOVED_POINTER, 0, "inner", 0, 24, "pin it", "4096 bytes");
}
END_TEST

START_TEST(seeds_that_are_drawn_each_time_are_named)
{
    make_out();
    NAMED(WORDS(WHOLE, 2, 2, 0x9e3779b97f4a7c15, 0x3c6ef372fe94f82a, 0xdaa66d2c7ddf743f, 0x78dde6e5fd29f054), CHANGING_SCALAR, WHOLE, 8, "8 bytes");
}
END_TEST

/* ---- counters -------------------------------------------------------------------------------------------------------------- */

/* A sequence number, say, which every recording takes on by the number of its operations. */
START_TEST(counters_are_faults_unless_they_are_left_over_in_large_structs)
{
    uint64_t first = _i ? 0xb3300000000 : 0xb33, by = _i ? 0xc400000000 : 0xc4; /* In either half. */
    uint32_t bytes = 4, at = _i ? 4 : 0;
    stepgraph_finding f;

    make_out();
    NAMED(WORDS(WHOLE, 2, 2, first, first + by, first + 2 * by, first + 3 * by), CHANGING_SCALAR, WHOLE, 8, "changing scalar");
    f = FOUND(WORDS(SMALL, 2, 2, first, first + by, first + 2 * by, first + 3 * by), CHANGING_SCALAR, 0, "inner", 0, 24 + at, "CELL",
              "as integer 2867 -> 3259");
    ck_assert_uint_eq(f.bytes, bytes);
    for (size_t n_a = 1; n_a < 3; n_a++) {
        stepgraph_audit *report = WORDS(LARGE, n_a, 2, first, first + by, first + 2 * by, first + 3 * by);
        HOLDS(report, 0, 1);
        NOTED(report, UNCLASSIFIED, 0, "big4096", 1, 96 + at, "", "goes on by 196 in every recording", "struct of 4088 bytes");
    }
    /* What the step alone decides is a value, whatever it is in. */
    f = FOUND(WORDS(LARGE, 5, 5, first, first, first, first, first, first + by, first + by, first + by, first + by, first + by), CHANGING_SCALAR, 0, "big4096", 1, 96 + at, "CELL",
              "as integer 2867 -> 3063");
    /* Two recordings cannot show that it goes on. */
    ck_assert_uint_eq(summary_of(WORDS(LARGE, 1, 1, first, first + by)).doubtful, 1);
}
END_TEST

/* Recorded by turns, k, k + 1, k + 1, k: what counts is the order of time. */
START_TEST(counters_are_known_in_whatever_order_steps_are_recorded)
{
    stepgraph_step *a[2], *b[2];
    stepgraph_audit *report;

    make_out();
    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    a[0] = with(LARGE, 0xb33);
    b[0] = with(LARGE, 0xb33 + 0xc4);
    b[1] = with(LARGE, 0xb33 + 2 * 0xc4);
    a[1] = with(LARGE, 0xb33 + 3 * 0xc4);
    report = many(2, a, 2, b);
    HOLDS(report, 0, 1);
    NOTED(report, UNCLASSIFIED, 0, "big4096", 1, 96, "", "goes on by 196 in every recording");
}
END_TEST

/* ---- a byte that is no value ------------------------------------------------------------------------------------------------- */

/* What a kernel takes for a functor without members is one byte, which nobody sets. */
static stepgraph_audit *bytes_of(size_t n, const char *values)
{
    stepgraph_step *steps[MOST];
    struct Inner in = {.p = out, .n = 1};
    int k = 1;

    for (size_t i = 0; i < 2 * n; i++) {
        char byte = values[i];
        steps[i] = recording("step", 0);
        launch(stream, made_for.inner, 1, (void *[]){&in, &out, &k, &byte, &out});
        ready(steps[i]);
    }
    return many(n, steps, n, steps + n);
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A struct of a type's number, three bytes that nobody sets, and a size: as PyTorch's kernels that convert take it, in one argument of 8 bytes. */
START_TEST(bytes_behind_one_that_stays_are_in_doubt)
{
    enum form form = (enum form)_i;
    const uint64_t before = 0x000000023ba6540f, after = 0x000000023b86540f;
    stepgraph_audit *report;

    make_out();
    report = WORDS(form, 1, 1, before, after);
    HOLDS(report, 0, 1);
    found(report, &(struct wanted){STEPGRAPH_FINDING_CHANGING_SCALAR, DOUBTFUL, 0, names[form], arguments[form], offsets[form], "CELL"},
          (const char *const[]){"", NULL});
    /* Of the same step they are not the same: then it is certain, as it is the other way that they are a step's own value. */
    NO_FAULT(WORDS(form, 1, 2, before, after, before ^ 0x10000), form, "padding");
    HOLDS(WORDS(form, 2, 2, before, before, after, after), 1, 1);
    /* Behind a byte that is 0, or one that changes as well, stands a number; */
    HOLDS(WORDS(form, 1, 1, before & ~(uint64_t)0xff, after & ~(uint64_t)0xff), 1, 1);
    HOLDS(WORDS(form, 1, 1, before, after + 1), 1, 1);
    /* and numbers that are doubled look otherwise. */
    HOLDS(WORDS(form, 1, 1, bits_of(0.1), bits_of(0.2)), 1, 1);
    HOLDS(WORDS(form, 1, 1, 0x3a83126f, 0x3a03126f), 1, 1);
}
END_TEST

/* Recordings of a struct that begins with these eight bytes: of 32 bytes in all, or of these alone. */
static stepgraph_audit *beginnings(int whole, size_t n_a, size_t n_b, const uint64_t *of)
{
    stepgraph_step *steps[MOST];

    for (size_t i = 0; i < n_a + n_b; i++) {
        uint64_t padded[4] = {of[i], 0, 0, out};
        steps[i] = recording("step", LOOSE);
        launch(stream, whole ? made_for.hyper : made_for.padded, 1, (void *[]){padded, &out});
        ready(steps[i]);
    }
    return many(n_a, steps, n_b, steps + n_a);
}

#define BEGIN(whole, n_a, n_b, ...) beginnings(whole, n_a, n_b, (const uint64_t[]){__VA_ARGS__})

/* A functor that holds a functor without members and a number, as PyTorch's kernels with a scalar take it. */
START_TEST(first_byte_of_a_struct_is_in_doubt)
{
    const uint64_t one = _i == 1 ? 0x3f80000000000000 : 0; /* The number, as a float, or further behind. */
    const char *name = _i == 1 ? "hyper" : "padded";

    make_out();
    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    DOUBTED(BEGIN(_i, 1, 1, one | 0x20, one), CHANGING_SCALAR, 0, name, 0, 0, "more recordings", "changing scalar");
    DOUBTED(BEGIN(_i, 1, 2, one | 0x20, one, one), CHANGING_SCALAR, 0, name, 0, 0, "more recordings", "changing scalar");
    HOLDS(BEGIN(_i, 1, 2, one | 0x20, one, one | 0x40), 0, 1);
    HOLDS(BEGIN(_i, 2, 2, one | 0x20, one | 0x20, one, one), 1, 1);
    /* A flag, a count, a number that other bytes belong to. */
    HOLDS(BEGIN(_i, 1, 1, one | 1, one), 1, 1);
    HOLDS(BEGIN(_i, 1, 1, one | 7, one | 8), 1, 1);
    HOLDS(BEGIN(_i, 1, 1, one | 0x120, one), 1, 1);
    HOLDS(BEGIN(1, 1, 1, 0x20, 0), 1, 1);
    HOLDS(BEGIN(1, 1, 1, 0x500000020, 0x500000000), 1, 1);
}
END_TEST

/* Four bytes and as much padding, in which an address was. */
START_TEST(upper_half_of_an_address_is_in_doubt)
{
    enum form form = (enum form)_i;
    uint64_t half, eight = 8;
    char here;

    make_out();
    half = (uintptr_t)&here >> 32 << 32;
    DOUBTED(WORDS(form, 1, 1, half | eight, eight), CHANGING_SCALAR, 0, names[form], arguments[form], offsets[form] + (form == WHOLE ? 0 : 4),
            "more recordings", "changing scalar");
    HOLDS(WORDS(form, 1, 2, eight, half | eight, half | eight), 0, 1);
    HOLDS(WORDS(form, 2, 2, half | eight, half | eight, eight, eight), 1, 1);
    HOLDS(WORDS(form, 1, 1, half | eight, half + (1ull << 32) + eight), 1, 1);
    HOLDS(WORDS(form, 1, 1, 5ull << 32 | eight, eight), 1, 1);
    HOLDS(WORDS(form, 1, 1, half << 16 | eight, eight), 1, 1);
}
END_TEST

START_TEST(byte_that_nobody_sets_is_no_fault)
{
    stepgraph_audit *report;

    make_out();
    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    report = bytes_of(2, (const char[]){0x60, 0x70, 0x70, 0x70});
    HOLDS(report, 0, 1);
    NOTED(report, UNCLASSIFIED, 0, "inner", 3, 0, "", "padding");
    /* By chance it is the same twice. */
    report = bytes_of(2, (const char[]){0, 0, 0x58, 0x58});
    HOLDS(report, 0, 1);
    DOUBTED(report, CHANGING_SCALAR, 0, "inner", 3, 0, "more recordings", "1 bytes 0 -> 58");
    /* A number that changes with the step, a flag that does, or that changes each time. */
    FOUND(bytes_of(5, (const char[]){3, 3, 3, 3, 3, 4, 4, 4, 4, 4}), CHANGING_SCALAR, 0, "inner", 3, 0, "CELL", "1 bytes 3 -> 4");
    FOUND(bytes_of(1, (const char[]){0, 1}), CHANGING_SCALAR, 0, "inner", 3, 0, "CELL", "1 bytes 0 -> 1");
    FOUND(bytes_of(2, (const char[]){0, 1, 0, 1}), CHANGING_SCALAR, 0, "inner", 3, 0, "CELL", "1 bytes 0 -> 1");
}
END_TEST

/* ---- what may be compared ---------------------------------------------------------------------------------------------------- */

START_TEST(one_of_each_is_the_same_as_two)
{
    stepgraph_step *a, *b;
    stepgraph_audit *report;

    make_out();
    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    a = with(SMALL, 7);
    b = with(SMALL, 8);
    report = many(1, &a, 1, &b);
    ck_assert_str_eq(stepgraph_audit_text(report), stepgraph_audit_text(compared(a, b, NULL)));
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(many(2, (stepgraph_step *[]){a, with(SMALL, 7)}, 1, &b)), "compared in 3 recordings"));
}
END_TEST

START_TEST(nothing_to_compare_is_refused)
{
    stepgraph_step *a, *idle, *pair[2];
    stepgraph_audit *report = (stepgraph_audit *)&stream;

    make_out();
    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    a = with(SMALL, 7);
    idle = step_make(session, "another", 0);
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_compare_many(0, &a, 1, &a, &report), "at least one");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_compare_many(1, &a, 0, &a, &report), "at least one");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_compare_many(1, NULL, 1, &a, &report), "at least one");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_compare_many(1, &a, 1, NULL, &report), "at least one");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_compare_many(1, &a, 1, &a, NULL), "audit_out");
    for (int i = 0; i < 2; i++) {
        pair[i] = a;
        pair[1 - i] = NULL;
        FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_compare_many(2, pair, 1, &a, &report), "NULL");
        FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_compare_many(1, &a, 2, pair, &report), "NULL");
        pair[1 - i] = idle;
        FAILS(STEPGRAPH_ERR_STATE, stepgraph_audit_compare_many(2, pair, 1, &a, &report), "another", "record it first");
        FAILS(STEPGRAPH_ERR_STATE, stepgraph_audit_compare_many(1, &a, 2, pair, &report), "another");
    }
    ck_assert_ptr_eq(report, (stepgraph_audit *)&stream);
}
END_TEST

/* The form of each recording is looked at, not only that of the first two. */
START_TEST(recording_of_another_form_is_explained)
{
    CUdeviceptr x = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 64, "x"));
    CUstream side = stream_make(CU_STREAM_NON_BLOCKING);
    stepgraph_step *steps[4];
    stepgraph_audit *report;

    for (int i = 0; i < 4; i++) {
        steps[i] = recording("step", 0);
        if (i == _i && _i > 1)
            OK(stepgraph_step_fork(steps[i], side, "side"));
        inc(stream, x, 1);
        inc(i == _i && _i > 1 ? side : stream, x + 16, 1);
        if (i == _i && _i > 1)
            OK(stepgraph_step_join(steps[i], side));
        if (i != _i || _i > 1)
            inc(stream, x + 32, 1);
        ready(steps[i]);
    }
    report = many(2, steps, 2, steps + 2);
    HOLDS(report, 1, 1);
    if (_i == 1)
        FOUND(report, TOPOLOGY, 2, "inc", NOWHERE, 0, "record one graph for each form", "the first recording has 3 nodes and the second 2");
    else if (_i > 1)
        FOUND(report, TOPOLOGY, 1, "inc", NOWHERE, 0, "record one graph for each form", "the same nodes in another order",
              "in the first recording only");
    else
        FOUND(report, TOPOLOGY, 2, "", NOWHERE, 0, "record one graph for each form", "the first recording has 2 nodes and the second 3");
}
END_TEST

/* New values that commits read elsewhere each second time. */
START_TEST(new_values_are_compared_in_all_recordings)
{
    stepgraph_pin *pins[2] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b")};
    CUdeviceptr fresh[3] = {device_make(64), device_make(64), device_make(64)};
    stepgraph_step *steps[4];
    stepgraph_audit *report;

    for (int i = 0; i < 4; i++) {
        uint64_t from[2] = {fresh[0], fresh[1 + i % 2]};
        steps[i] = recording("step", LOOSE);
        OK(stepgraph_pin_commit_many(session, 2, pins, from));
        ready(steps[i]);
    }
    report = many(2, steps, 2, steps + 2);
    HOLDS(report, 1, 1);
    FOUND(report, MOVED_POINTER, NOWHERE, "", NOWHERE, 0, "arena", "commit of pin 'b'");
}
END_TEST

/* Memory that the library has come by since, of all that was dropped; 0: none of it. */
static CUdeviceptr librarys_own(const CUdeviceptr *dropped, size_t n, unsigned long long *id)
{
    for (size_t i = 0; i < n; i++)
        if (cu.PointerGetAttribute(id, CU_POINTER_ATTRIBUTE_BUFFER_ID, dropped[i]) == CUDA_SUCCESS)
            return dropped[i];
    return 0;
}

/* The library's copies and lists may come to stand where an address was left over from earlier, and go again. */
START_TEST(addresses_in_memory_of_the_librarys_own_are_not_waited_for)
{
    stepgraph_pin *pins[3] = {pin_make(session, STEPGRAPH_ROLE_STATE, 4, "a"), pin_make(session, STEPGRAPH_ROLE_STATE, 4, "b"),
                              pin_make(session, STEPGRAPH_ROLE_STATE, 1 << 20, "large")};
    CUdeviceptr value = device_make(1 << 20), buffers[64], own;
    const uint64_t from[3] = {value, value, value};
    enum form form = (enum form)_i;
    unsigned long long id, later;
    stepgraph_audit *report;
    stepgraph_step *step;

    make_out();
    out = stepgraph_pin_address(stepgraph_session_pin(session, "out"));
    for (int i = 0; i < 64; i++) /* Wherever there is room. */
        buffers[i] = device_make(512);
    for (int i = 0; i < 64; i++)
        device_drop(buffers[i]);
    OK(stepgraph_pin_commit_many(session, 2, pins, from));
    own = librarys_own(buffers, 64, &id);
    if (own == 0) {
        unit_skip("addresses_in_memory_of_the_librarys_own_are_not_waited_for", "this driver gives the library other memory");
        return;
    }
    step = recording_checked("step", 0, 1);
    enqueue(form, own);
    if (form != LARGE) {
        FOUND(refused(step), REPLACED, 0, names[form], arguments[form], offsets[form], "keep the memory allocated", "the library was given the address");
        return;
    }
    report = ready(step);
    HOLDS(report, 0, 1);
    ck_assert_uint_eq(summary_of(report).doubtful, 1);
    OK(stepgraph_step_replay(step));
    OK(stepgraph_pin_commit_many(session, 3, pins, from)); /* A longer list. */
    ck_assert(cu.PointerGetAttribute(&later, CU_POINTER_ATTRIBUTE_BUFFER_ID, own) != CUDA_SUCCESS || later != id);
    OK(stepgraph_step_replay(step));
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("audit_left_over");
    TCase *tc = audit_case(suite, "a: addresses");

    tcase_add_loop_test(tc, addresses_of_host_memory_are_no_fault, 0, FORMS);
    tcase_add_loop_test(tc, device_memory_in_the_same_place_is_named, 0, FORMS);
    tcase_add_loop_test(tc, page_locked_memory_in_the_same_place_is_named, 0, FORMS);
    tcase_add_loop_test(tc, values_below_the_rest_of_an_address_are_named, 0, 2);
    tcase_add_loop_test(tc, low_addresses_of_host_memory_are_told_from_numbers, 0, FORMS);
    tcase_add_loop_test(tc, pairs_of_values_in_the_same_place_are_named, 0, FORMS);

    tcase_add_test(tc, addresses_where_nothing_can_stand_are_left_over_in_large_structs);
    add_controlled_test(tc, numbers_where_nothing_can_stand_in_large_structs_are_not_asked_about);
    tcase_add_test(tc, addresses_of_memory_that_is_gone_are_in_doubt_in_large_structs);
    tcase_add_test(tc, addresses_where_the_host_notes_no_block_are_left_over_in_large_structs);
    add_controlled_test(tc, memory_that_addresses_are_left_over_of_is_asked_about_once);
    tcase_add_loop_test(tc, addresses_in_memory_of_the_librarys_own_are_not_waited_for, 0, FORMS);

    tc = audit_case(suite, "b: noise");
    tcase_add_loop_test(tc, lower_halves_of_return_addresses_are_no_fault, 0, 2);
    tcase_add_loop_test(tc, values_where_half_an_address_may_stand_are_named, 0, 2);
    tcase_add_test(tc, values_of_small_structs_may_look_like_half_an_address);
    tcase_add_test(tc, value_of_a_large_struct_is_in_doubt_until_the_fifth_recording);
    tcase_add_test(tc, pointer_of_a_large_struct_is_in_doubt_until_the_fifth_recording);
    tcase_add_loop_test(tc, garbage_of_the_first_recording_alone_is_no_fault, 0, 2);
    tcase_add_loop_test(tc, values_of_each_step_are_named, 0, FORMS);
    tcase_add_test(tc, bytes_in_front_of_noise_are_a_value_in_small_structs_only);
    tcase_add_test(tc, seeds_that_are_drawn_each_time_are_named);
    tcase_add_test(tc, counters_are_known_in_whatever_order_steps_are_recorded);
    tcase_add_loop_test(tc, counters_are_faults_unless_they_are_left_over_in_large_structs, 0, 2);
    tcase_add_test(tc, byte_that_nobody_sets_is_no_fault);
    tcase_add_loop_test(tc, bytes_behind_one_that_stays_are_in_doubt, 0, 2);
    tcase_add_loop_test(tc, first_byte_of_a_struct_is_in_doubt, 0, 2);
    tcase_add_loop_test(tc, upper_half_of_an_address_is_in_doubt, 0, 2);

    tc = audit_case(suite, "c: recordings");
    tcase_add_test(tc, one_of_each_is_the_same_as_two);
    tcase_add_test(tc, nothing_to_compare_is_refused);
    tcase_add_loop_test(tc, recording_of_another_form_is_explained, 0, 4);
    tcase_add_test(tc, new_values_are_compared_in_all_recordings);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
