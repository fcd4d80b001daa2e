/*
 * Structs of any size with anything in them, right in front of a page that cannot be touched: the library reads and writes not one byte beyond
 * what a struct's size says, and answers, whatever stands there.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "support.h"

/* ---- memory that ends where it ends ------------------------------------------------------------------------------------ */

static unsigned char *end; /* The first byte that must not be touched. */
static size_t room;

static void map(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(memory, MAP_FAILED);
    ck_assert_int_eq(mprotect(memory + 2 * page, page, PROT_NONE), 0);
    end = memory + 2 * page;
    room = 2 * page;
}

static void unmap(void)
{
    munmap(end - room, room + room / 2);
}

/* ---- structs that are read ----------------------------------------------------------------------------------------------- */

enum { POINTERS_MOST = 10 };

struct reading {
    const char *name;
    size_t size;
    size_t pointers[POINTERS_MOST]; /* Their offsets, ended by 0: what they point to is the host's promise, so they are NULL or good. */
    stepgraph_status (*call)(const void *config);
};

static stepgraph_status read_session(const void *config)
{
    stepgraph_session *made = NULL;
    stepgraph_status status = stepgraph_session_open(config, &made);

    if (status == STEPGRAPH_OK)
        OK(stepgraph_session_close(made));
    return status;
}

static stepgraph_status read_pin(const void *config)
{
    stepgraph_pin *made = NULL;
    stepgraph_status status = stepgraph_pin_create(session, config, &made);

    if (status == STEPGRAPH_OK)
        OK(stepgraph_pin_destroy(made));
    return status;
}

static stepgraph_status read_step(const void *config)
{
    stepgraph_step *made = NULL;
    stepgraph_status status = stepgraph_step_begin(session, config, &made);

    stepgraph_step_destroy(made);
    return status;
}

static stepgraph_status read_arena(const void *config)
{
    stepgraph_arena *made = NULL;
    stepgraph_status status = stepgraph_arena_create(session, config, &made);

    if (status == STEPGRAPH_OK)
        OK(stepgraph_arena_destroy(made));
    return status;
}

static stepgraph_status read_loop(const void *config)
{
    stepgraph_loop *made = NULL;
    stepgraph_status status = stepgraph_loop_create(session, config, &made);

    stepgraph_loop_destroy(made);
    return status;
}

static stepgraph_status read_launch(const void *launch)
{
    stepgraph_status status = stepgraph_session_launch(session, launch);

    if (status == STEPGRAPH_OK)
        OK(stepgraph_session_wait(session));
    return status;
}

static stepgraph_status read_audit(const void *config)
{
    stepgraph_audit *made = NULL;
    stepgraph_status status = stepgraph_audit_record(session, config, &made);

    stepgraph_audit_destroy(made);
    return status;
}

#define AT(type, field) offsetof(stepgraph_##type, field)
static const struct reading readings[] = {
    {"session_config", sizeof(stepgraph_session_config),
     {AT(session_config, driver_path), AT(session_config, context), AT(session_config, stream), AT(session_config, log),
      AT(session_config, log_user), AT(session_config, drain), AT(session_config, drain_user)}, read_session},
    {"pin_config", sizeof(stepgraph_pin_config), {AT(pin_config, name)}, read_pin},
    {"step_config", sizeof(stepgraph_step_config), {AT(step_config, name)}, read_step},
    {"arena_config", sizeof(stepgraph_arena_config), {AT(arena_config, name)}, read_arena},
    {"loop_config", sizeof(stepgraph_loop_config),
     {AT(loop_config, rewind), AT(loop_config, user), AT(loop_config, check), AT(loop_config, name), AT(loop_config, relax)}, read_loop},
    {"launch", sizeof(stepgraph_launch),
     {AT(launch, stream), AT(launch, function), AT(launch, arguments), AT(launch, extra)}, read_launch},
    {"audit_config", sizeof(stepgraph_audit_config), {AT(audit_config, enqueue), AT(audit_config, user)}, read_audit},
};
enum { READINGS = sizeof readings / sizeof *readings };

static const char good_name[] = "good";

/* A struct of `size` bytes, its content random or zero, that says it is `claimed` bytes long. */
static void *place(const struct reading *r, size_t size, size_t claimed, uint64_t *seed)
{
    unsigned char *at = end - size;

    memset(end - room, 0, room);
    if (seed != NULL)
        random_bytes(seed, at, size);
    for (int i = 0; i < POINTERS_MOST && r->pointers[i] != 0; i++)
        if (r->pointers[i] + sizeof(void *) <= size)
            memset(at + r->pointers[i], 0, sizeof(void *));
    memcpy(at, &claimed, size < sizeof claimed ? size : sizeof claimed);
    return at;
}

static void answered(const struct reading *r, size_t size, stepgraph_status status)
{
    ck_assert_msg(status <= 0 && strcmp(stepgraph_status_name(status), "unknown status") != 0, "%s of %zu bytes: %d", r->name, size, (int)status);
    ck_assert_msg(status == STEPGRAPH_OK || strlen(last_words()) > 0, "%s of %zu bytes: %s without words", r->name, size,
                  stepgraph_status_name(status));
}

START_TEST(structs_of_every_size_are_read_to_their_end_and_no_further)
{
    const struct reading *r = &readings[_i];

    for (size_t size = sizeof(size_t); size <= r->size + 80; size += 8)
        answered(r, size, r->call(place(r, size, size, NULL)));
}
END_TEST

START_TEST(sizes_that_cannot_be_are_refused)
{
    static const size_t sizes[] = {0, 1, 7, 8, 4097, 1u << 20, SIZE_MAX / 2, SIZE_MAX};
    const struct reading *r = &readings[_i];

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        stepgraph_status status = r->call(place(r, sizeof(size_t), sizes[i], NULL));
        ck_assert_msg(status == STEPGRAPH_ERR_ARGUMENT, "%s that claims %zu bytes: %s", r->name, sizes[i], stepgraph_status_name(status));
        ck_assert_msg(lacks(last_words(), (const char *[]){"size", NULL}) == NULL, "%s", last_words());
    }
}
END_TEST

START_TEST(structs_of_random_numbers_are_answered)
{
    const struct reading *r = &readings[_i];
    uint64_t seed = 100 + (uint64_t)_i;

    for (int k = 0; k < (r->call == read_session ? 300 : 3000); k++) {
        size_t size = k % 3 ? r->size : (1 + unit_random(&seed) % (r->size / 8 + 8)) * 8;
        unsigned char *at = place(r, size, size, &seed);
        /* Mostly zeros with a few numbers among them come further than noise. */
        if (k % 2)
            for (size_t i = sizeof(size_t); i + 4 <= size; i += 4)
                if (unit_random(&seed) % 4)
                    memset(at + i, 0, 4);
        /* And no more memory than a test should take. */
        if (r->call == read_arena && size >= AT(arena_config, bytes) + 8)
            memset(at + AT(arena_config, bytes) + 2, 0, 6);
        if (r->call == read_pin && size >= AT(pin_config, bytes) + 8) {
            memset(at + AT(pin_config, bytes) + 2, 0, 6);
            memcpy(at + AT(pin_config, name), &(const char *){good_name}, size >= AT(pin_config, name) + 8 ? 8 : 0);
        }
        if (r->call == read_session && size >= AT(session_config, feed_bytes) + 8)
            memset(at + AT(session_config, feed_bytes) + 2, 0, 6);
        answered(r, size, r->call(at));
    }
}
END_TEST

/* ---- structs that are filled ------------------------------------------------------------------------------------------- */

static stepgraph_step *step;
static stepgraph_arena *arena;
static stepgraph_loop *loop;
static stepgraph_audit *audit;

struct filling {
    const char *name;
    size_t size;
    stepgraph_status (*call)(void *out);
};

#define FILLING(type, expression)                                                                                                \
    static stepgraph_status fill_##type(void *out)                                                                               \
    {                                                                                                                            \
        return expression;                                                                                                       \
    }
FILLING(error_info, stepgraph_last_error(out))
FILLING(session_info, stepgraph_session_get_info(session, out))
FILLING(sample, stepgraph_session_sample(session, 0, out))
FILLING(pin_stats, stepgraph_session_pin_stats(session, out))
FILLING(step_stats, stepgraph_step_get_stats(step, out))
FILLING(verdict, stepgraph_step_get_verdict(step, out))
FILLING(stage, stepgraph_step_get_stage(step, 0, out))
FILLING(arena_stats, stepgraph_arena_get_stats(arena, out))
FILLING(loop_stats, stepgraph_loop_get_stats(loop, out))
FILLING(audit_summary, stepgraph_audit_get_summary(audit, out))
FILLING(finding, stepgraph_audit_get(audit, 0, out))

#define FILLS(type) {#type, sizeof(stepgraph_##type), fill_##type}
static const struct filling fillings[] = {
    FILLS(error_info), FILLS(session_info), FILLS(sample),      FILLS(pin_stats),     FILLS(step_stats), FILLS(verdict),
    FILLS(stage),      FILLS(arena_stats),  FILLS(loop_stats), FILLS(audit_summary), FILLS(finding),
};
enum { FILLINGS = sizeof fillings / sizeof *fillings };

/* A step with a finding, so that all of them have something to say. */
static void make_things(void)
{
    stepgraph_arena_config config = STEPGRAPH_ARENA_CONFIG_INIT;
    CUdeviceptr loose = device_make(64);

    step = step_make(session, "step", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    OK(stepgraph_step_prepare(step));
    OK(stepgraph_step_capture(step));
    OK(stepgraph_step_mark(step, "stage"));
    setv(stream, loose, 1);
    OK(stepgraph_step_end(step));
    OK(stepgraph_audit_step(step, &audit));
    config.bytes = 4096;
    OK(stepgraph_arena_create(session, &config, &arena));
    OK(stepgraph_loop_create(session, NULL, &loop));
}

static void drop_things(void)
{
    stepgraph_loop_destroy(loop);
    OK(stepgraph_arena_destroy(arena));
    stepgraph_audit_destroy(audit);
}

START_TEST(structs_are_filled_to_their_end_and_no_further)
{
    const struct filling *f = &fillings[_i];
    size_t filled = 0;

    make_things();
    for (size_t size = sizeof(size_t); size <= f->size + 64; size += 8) {
        unsigned char *at = end - size, before[64];
        stepgraph_status status;
        memset(end - room, 0x5a, room);
        memset(before, 0x5a, sizeof before);
        memcpy(at, &size, sizeof size);
        status = f->call(at);
        ck_assert_msg(status == STEPGRAPH_OK || status == STEPGRAPH_ERR_ARGUMENT, "%s of %zu bytes: %s: %s", f->name, size,
                      stepgraph_status_name(status), last_words());
        ck_assert_mem_eq(at - sizeof before, before, sizeof before);
        ck_assert_mem_eq(at, &size, sizeof size); /* The caller's. */
        filled += status == STEPGRAPH_OK;
        for (size_t i = f->size; i < size; i++)
            ck_assert_msg(at[i] == 0x5a, "%s of %zu bytes: byte %zu was written, and ours has %zu", f->name, size, i, f->size);
    }
    ck_assert_uint_ge(filled, 8); /* All that are longer than ours, at least. */
    drop_things();
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("hostile structs");
    TCase *read = unit_case(suite, "read"), *filled = unit_case(suite, "filled");

    tcase_add_checked_fixture(read, map, unmap);
    tcase_add_loop_test(read, structs_of_every_size_are_read_to_their_end_and_no_further, 0, READINGS);
    tcase_add_loop_test(read, sizes_that_cannot_be_are_refused, 0, READINGS);
    tcase_add_loop_test(read, structs_of_random_numbers_are_answered, 0, READINGS);
    tcase_add_checked_fixture(filled, map, unmap);
    tcase_add_loop_test(filled, structs_are_filled_to_their_end_and_no_further, 0, FILLINGS);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
