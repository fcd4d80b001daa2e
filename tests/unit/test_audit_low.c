/* Left-over bytes in a program that is not position-independent, as Python often is: its variables and its heap lie where numbers are. */
#include <stdlib.h>
#include <unistd.h>

#include "findings.h"

static uint64_t variables[8] = {1};
static const uint64_t constants[8] = {1};
static CUdeviceptr out;

/* Recorded with one number, then with another. */
static stepgraph_audit *numbers(uint64_t before, uint64_t after)
{
    stepgraph_step *steps[2];

    for (int i = 0; i < 2; i++) {
        uint64_t number = i == 0 ? before : after;
        steps[i] = recording("step", 0);
        launch(stream, made_for.dropout, 1, (void *[]){&out, &number});
        ready(steps[i]);
    }
    return compared(steps[0], steps[1], NULL);
}

START_TEST(memory_of_the_program_is_told_from_numbers)
{
    uint64_t *heap = malloc(sizeof *heap * 64);
    const uint64_t end = ((uintptr_t)sbrk(0) + 0xfffff) & ~(uint64_t)0xfffff;

    out = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_OUTPUT, 64, "out"));
    ck_assert_uint_lt((uintptr_t)variables, UINT32_MAX);
    NOTED(numbers((uintptr_t)&variables[1], (uintptr_t)&variables[2]), UNCLASSIFIED, 0, "dropout", 1, 0, "", "host's own memory");
    if ((uintptr_t)heap < (uintptr_t)sbrk(0)) /* A sanitizer's is elsewhere. */
        NOTED(numbers((uintptr_t)&heap[1], (uintptr_t)&heap[40]), UNCLASSIFIED, 0, "dropout", 1, 0, "", "host's own memory");
    /* What nothing can stand at, what the program only reads, and where there is nothing. */
    HOLDS(numbers((uintptr_t)&variables[1] + 1, (uintptr_t)&variables[1] + 3), 1, 1);
    HOLDS(numbers((uintptr_t)&constants[1], (uintptr_t)&constants[3]), 1, 1);
    HOLDS(numbers(end + 0x100000, end + 0x100040), 1, 1);
    free(heap);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("audit_low");
    TCase *tc = audit_case(suite, "low");

    tcase_add_test(tc, memory_of_the_program_is_told_from_numbers);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
