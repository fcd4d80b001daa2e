/* What the audit is quick with: numbers, remembered once each, and the list of the host's memory, read as far as it is needed. */
#include "support.h"

#include <sys/mman.h>

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
    sg__host_memory memory = {0};
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
    munmap((void *)(uintptr_t)low, PAGE);
    munmap((void *)(uintptr_t)fixed, PAGE);
    munmap((void *)(uintptr_t)data, MANY * PAGE);
    munmap((void *)(uintptr_t)code, PAGE);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("audit_values");
    TCase *tc = tcase_create("values");

    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, each_number_has_one_entry, 0, 2);
    tcase_add_test(tc, low_memory_is_told_by_the_beginning_of_the_list);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
