/* What the audit is quick with: numbers, remembered once each, and the list of the host's memory, read as far as it is needed. */
#include "support.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "audit_p.h"

/* ---- numbers --------------------------------------------------------------------------------------------------------- */

START_TEST(each_number_has_one_entry)
{
    static uint64_t met[20000];
    static uint32_t times[20000];
    size_t n = 0;
    uint64_t random = 1;
    sg__values values;

    memset(times, 0, sizeof times);
    sg__values_init(&values);
    for (int i = 0; i < 60000; i++) {
        uint64_t value;
        sg__value *entry;
        size_t at = n;

        random = random * 6364136223846793005u + 1442695040888963407u;
        if (n > 0 && random >> 63)
            value = met[at = (random >> 20) % n];
        else
            value = _i ? random | 1 : (n + 1) << 12; /* Anything, or what differs in few bits. */
        entry = sg__values_take(&values, value);
        ck_assert_ptr_nonnull(entry);
        ck_assert_uint_eq(entry->value, value);
        ck_assert_uint_eq(entry->n, at < n ? times[at] : 0);
        entry->n++;
        if (at == n && n < 20000)
            met[n++] = value;
        times[at]++;
        if (n == 20000)
            break;
    }
    ck_assert_uint_eq(values.n, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(sg__values_find(&values, met[i])->n, times[i]);
    ck_assert_ptr_null(sg__values_find(&values, 2));
    sg__values_free(&values);
}
END_TEST

/* ---- the host's memory ----------------------------------------------------------------------------------------------- */

static uint64_t map(uint64_t address, size_t bytes, int protection)
{
    void *made = mmap((void *)(uintptr_t)address, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    ck_assert_msg(made == (void *)(uintptr_t)address, "cannot map %llx", (unsigned long long)address);
    return address;
}

/* Where numbers are as low, only what may be written to counts, which the list alone tells. */
START_TEST(low_memory_is_told_by_the_beginning_of_the_list)
{
    enum { PAGE = 4096, MANY = 4000 };
    const uint64_t low = map(0x22e00000, PAGE, PROT_READ | PROT_WRITE), fixed = map(low + 2 * PAGE, PAGE, PROT_READ);
    const uint64_t data = map(0x3e0000000000, MANY * PAGE, PROT_READ | PROT_WRITE), code = map(data + MANY * PAGE, PAGE, PROT_READ | PROT_EXEC);
    sg__process process = {0};
    sg__host_memory memory = {.process = &process};
    size_t n;

    for (uint64_t i = 0; i < MANY; i += 2) /* Neighbours that differ are lines of their own. */
        ck_assert_int_eq(mprotect((void *)(uintptr_t)(data + i * PAGE), PAGE, PROT_READ), 0);
    ck_assert(sg__host_memory_holds(&memory, low + 8, false));
    n = memory.n;
    ck_assert(!sg__host_memory_holds(&memory, low + 4, false));
    ck_assert(!sg__host_memory_holds(&memory, low + PAGE, false));
    ck_assert(!sg__host_memory_holds(&memory, fixed, false));
    ck_assert_uint_eq(memory.n, n);
    ck_assert_uint_lt(n, MANY);
    /* Above, the list says only what the system does not: whether it is code. */
    ck_assert(sg__host_memory_holds(&memory, data + 8, true));
    ck_assert(sg__host_memory_holds(&memory, data + 1, false));
    ck_assert(!sg__host_memory_holds(&memory, data + 1, true));
    ck_assert(sg__host_memory_holds(&memory, code + 1, true));
    ck_assert_uint_ge(memory.n, MANY);
    ck_assert(sg__host_memory_holds(&memory, low + 8, true));
    ck_assert(!sg__host_memory_holds(&memory, fixed, false));
    sg__host_memory_free(&memory);
    sg__process_free(&process);
    munmap((void *)(uintptr_t)low, PAGE);
    munmap((void *)(uintptr_t)fixed, PAGE);
    munmap((void *)(uintptr_t)data, MANY * PAGE);
    munmap((void *)(uintptr_t)code, PAGE);
}
END_TEST

/* Without the list, and without a question. */
START_TEST(memory_of_most_addresses_is_known)
{
    static uint64_t variable;
    uint64_t here = 0, function, *heap = malloc(64);
    sg__process process = {0};
    sg__host_memory memory = {.process = &process};

    memcpy(&function, &(uint64_t (*)(uint64_t, size_t, int)){map}, sizeof function);
    process.id = -1; /* Nobody's: */
    memory.renewed = true;
    ck_assert_int_eq(sg__process_ask(&process, (uintptr_t)&here), -1); /* a question has no answer. */
    ck_assert(sg__process_stack((uintptr_t)&here) && sg__host_memory_holds(&memory, (uintptr_t)&here, true));
    ck_assert(!sg__host_memory_holds(&memory, (uintptr_t)&here + 1, true));
    ck_assert(!sg__process_stack((uintptr_t)&variable) && !sg__process_heap((uintptr_t)&variable));
    if ((uintptr_t)heap < (uintptr_t)sbrk(0) && (uintptr_t)heap > (uintptr_t)sbrk(0) - (64 << 20)) /* A sanitizer's is elsewhere. */
        ck_assert(sg__process_heap((uintptr_t)heap) && !sg__process_heap((uintptr_t)sbrk(0)));
    ck_assert_ptr_null(sg__process_segment(&process, (uintptr_t)&variable));
    sg__process_renew(&process);
    process.id = -1;
    ck_assert(sg__process_segment(&process, (uintptr_t)&variable)->writable && sg__host_memory_holds(&memory, (uintptr_t)&variable, true));
    ck_assert(sg__process_segment(&process, function)->executable && sg__host_memory_holds(&memory, function | 1, true));
    ck_assert(!sg__host_memory_holds(&memory, (uint64_t)5 << 32 | 8, false));
    ck_assert_uint_eq(memory.n, 0);
    sg__process_free(&process);
    free(heap);
}
END_TEST

/* Pieces of code that share lower halves, or go over a border of 4 GiB, and data between them: as many hold a half as by looking at all. */
START_TEST(code_is_found_by_the_lower_half_of_an_address)
{
    enum { SEGMENTS = 60, QUESTIONS = 20000 };
    sg__process process = {.segments = calloc(SEGMENTS, sizeof *process.segments), .n = SEGMENTS, .room = SEGMENTS};
    uint64_t at = 0x7f0000000000, random = 1;
    unsigned found = 0;

    for (size_t i = 0; i < SEGMENTS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        at += (random >> 33) % 0x90000000u;
        process.segments[i] = (sg__mapping){.start = at, .end = at + 1 + (random >> 20) % 0x8000000u, .executable = i % 3 != 0};
        if (i % 10 == 7) { /* One that ends where the border is, and one that goes over it. */
            process.segments[i].start = ((at >> 32) + 1) << 32;
            process.segments[i].start -= 0x1000000;
            process.segments[i].end = process.segments[i].start + (i % 20 == 7 ? 0x1000000 : 0x3000000);
        }
        at = process.segments[i].end;
    }
    sg__process_list_code(&process);
    ck_assert_uint_gt(process.n_code, 2 * SEGMENTS / 3);
    for (unsigned q = 0; q < QUESTIONS; q++) {
        const sg__mapping *near = &process.segments[q % SEGMENTS];
        unsigned right = 0, told = 0;
        uint32_t low;
        random = random * 6364136223846793005u + 1442695040888963407u;
        low = (uint32_t)(q % 4 == 0 ? near->start : q % 4 == 1 ? near->end - 1 : q % 4 == 2 ? near->end : random >> 32);
        for (size_t i = 0; i < SEGMENTS; i++)
            for (uint64_t high = process.segments[i].start >> 32; high <= process.segments[i].end >> 32; high++)
                right += process.segments[i].executable && (high << 32 | low) >= process.segments[i].start && (high << 32 | low) < process.segments[i].end;
        for (size_t i = sg__process_code(&process, low); i-- > 0 && process.code[i].furthest >= low;)
            told += low <= (uint32_t)(process.code[i].end - 1);
        ck_assert_msg(told == right, "0x%x: %u of %u", low, told, right);
        found += right;
    }
    ck_assert_uint_gt(found, QUESTIONS / 4);
    sg__process_free(&process);
}
END_TEST

/* Also where the question is not allowed, as for a process of nobody's: memory that ends in the middle is not read in part. */
START_TEST(memory_is_read_whole_or_not_at_all)
{
    enum { PAGE = 4096 };
    const sg__process ways[] = {{.id = getpid()}, {.id = -1}};
    const uint64_t start = map(0x3e0000000000, 2 * PAGE, PROT_READ | PROT_WRITE);
    unsigned char got[16], *there = (unsigned char *)(uintptr_t)(start + PAGE - 8);

    for (unsigned char i = 0; i < 16; i++)
        there[i] = i + 1;
    ck_assert(sg__process_read(&ways[_i], (uintptr_t)there, got, 16));
    ck_assert_mem_eq(got, there, 16);
    munmap((void *)(uintptr_t)(start + PAGE), PAGE);
    ck_assert_int_eq(sg__process_ask(&ways[0], start), 1);
    ck_assert_int_eq(sg__process_ask(&ways[0], start + PAGE), 0);
    errno = EPERM; /* Of an earlier call. */
    ck_assert(!sg__process_read(&ways[_i], (uintptr_t)there, got, 16));
    ck_assert(sg__process_read(&ways[_i], (uintptr_t)there, got, 8));
    munmap((void *)(uintptr_t)start, PAGE);
}
END_TEST

/* An object that comes later is known after the next look, and gone after the one after its end. */
START_TEST(objects_come_and_go)
{
    sg__process process = {0};
    struct link_map *map;
    uint64_t inside;
    void *object;
    size_t n;

    sg__process_renew(&process);
    n = process.n;
    ck_assert_uint_gt(n, 0);
    object = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
    if (object == NULL || dlinfo(object, RTLD_DI_LINKMAP, &map) != 0) {
        unit_skip("objects_come_and_go", "there is no libresolv.so.2");
        return;
    }
    inside = (uintptr_t)map->l_ld;
    ck_assert_ptr_null(sg__process_segment(&process, inside));
    sg__process_renew(&process);
    ck_assert_uint_gt(process.n, n);
    ck_assert_ptr_nonnull(sg__process_segment(&process, inside));
    dlclose(object);
    sg__process_renew(&process);
    ck_assert_uint_eq(process.n, n);
    sg__process_free(&process);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("audit_values");
    TCase *tc = tcase_create("values");

    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, each_number_has_one_entry, 0, 2);
    tcase_add_test(tc, low_memory_is_told_by_the_beginning_of_the_list);
    tcase_add_test(tc, memory_of_most_addresses_is_known);
    tcase_add_test(tc, code_is_found_by_the_lower_half_of_an_address);
    tcase_add_loop_test(tc, memory_is_read_whole_or_not_at_all, 0, 2);
    tcase_add_test(tc, objects_come_and_go);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
