/* The numbers that stand in arguments, each once, with what was found out about it: thousands of words are a few hundred numbers. */
#ifndef STEPGRAPH_GRAPH_VALUES_H
#define STEPGRAPH_GRAPH_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sg__value {
    uint64_t value; /* Never 0. */
    uint32_t n;     /* How often it was met. */
    uint32_t marks; /* What is known, as bits of whoever asks. */
} sg__value;

/* A hash table. Not to be moved. */
typedef struct sg__values {
    sg__value *items;
    size_t n, room; /* room: a power of two. */
    sg__value few[128];
} sg__values;

void sg__values_init(sg__values *values);
void sg__values_free(sg__values *values);

/* The slot of a value, or the free one where it belongs, with value 0: there always is one. */
static inline sg__value *sg__values_slot(sg__value *items, size_t room, uint64_t value)
{
    size_t at = (value * 0x9e3779b97f4a7c15ull >> 32) & (room - 1);

    while (items[at].value != 0 && items[at].value != value)
        at = (at + 1) & (room - 1);
    return &items[at];
}

/* The entry of a value, or NULL. Valid until the next one is added. */
static inline sg__value *sg__values_find(const sg__values *values, uint64_t value)
{
    sg__value *found = sg__values_slot(values->items, values->room, value);

    return found->value == value ? found : NULL;
}

/* A new value, with n 0, in the free slot where it belongs. NULL: there is no host memory for it. */
sg__value *sg__values_add(sg__values *values, sg__value *slot, uint64_t value);

/* The entry of a value, which may be a new one. NULL: there is no host memory for it. */
sg__value *sg__values_take(sg__values *values, uint64_t value);

#endif
