/* What the audit is quick with: numbers, remembered once each. */
#include "support.h"

#include "graph/values.h"

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

static Suite *make(void)
{
    Suite *suite = suite_create("audit_values");
    TCase *tc = tcase_create("values");

    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, each_number_has_one_entry, 0, 2);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
