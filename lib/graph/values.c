#include "values.h"

#include <stdlib.h>
#include <string.h>

void sg__values_init(sg__values *values)
{
    memset(values, 0, sizeof *values);
    values->items = values->few;
    values->room = sizeof values->few / sizeof *values->few;
}

void sg__values_free(sg__values *values)
{
    if (values->items != values->few)
        free(values->items);
}

static bool grow(sg__values *values)
{
    size_t larger = 4 * values->room;
    sg__value *moved = calloc(larger, sizeof *moved);

    if (moved == NULL)
        return false;
    for (size_t i = 0; i < values->room; i++)
        if (values->items[i].value != 0)
            *sg__values_slot(moved, larger, values->items[i].value) = values->items[i];
    sg__values_free(values);
    values->items = moved;
    values->room = larger;
    return true;
}

sg__value *sg__values_add(sg__values *values, sg__value *slot, uint64_t value)
{
    if (2 * (values->n + 1) > values->room) {
        if (!grow(values))
            return NULL;
        slot = sg__values_slot(values->items, values->room, value);
    }
    values->n++;
    slot->value = value;
    return slot;
}

sg__value *sg__values_take(sg__values *values, uint64_t value)
{
    sg__value *found = sg__values_slot(values->items, values->room, value);

    return found->value == value ? found : sg__values_add(values, found, value);
}
