#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "pin_p.h"

uint64_t sg__name_hash(const char *name)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a. */

    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return hash ^ hash >> 32; /* The low bits choose the slot. */
}

/* Where it is, or the free slot where it would be. */
static size_t slot_of(const sg__names *names, uint64_t hash, const char *name)
{
    size_t slot = (size_t)hash & (names->room - 1);

    while (names->slots[slot] != NULL && (names->slots[slot]->name_hash != hash || strcmp(names->slots[slot]->name, name) != 0))
        slot = (slot + 1) & (names->room - 1);
    return slot;
}

stepgraph_pin *sg__names_find(const sg__names *names, const char *name)
{
    return names->n > 0 ? names->slots[slot_of(names, sg__name_hash(name), name)] : NULL;
}

stepgraph_status sg__names_reserve(sg__names *names, size_t more)
{
    sg__names larger = {.n = names->n, .room = names->room != 0 ? names->room : 32};

    /* Half of it stays free, so that a search is short. */
    while (larger.room / 2 < names->n + more)
        larger.room *= 2;
    if (larger.room == names->room)
        return STEPGRAPH_OK;
    larger.slots = calloc(larger.room, sizeof *larger.slots);
    if (larger.slots == NULL)
        return sg__fail_memory("host", larger.room * sizeof *larger.slots);
    for (size_t i = 0; i < names->room; i++)
        if (names->slots[i] != NULL)
            larger.slots[slot_of(&larger, names->slots[i]->name_hash, names->slots[i]->name)] = names->slots[i];
    free(names->slots);
    *names = larger;
    return STEPGRAPH_OK;
}

void sg__names_add(sg__names *names, stepgraph_pin *pin)
{
    names->slots[slot_of(names, pin->name_hash, pin->name)] = pin;
    names->n++;
}

void sg__names_remove(sg__names *names, const stepgraph_pin *pin)
{
    size_t mask = names->room - 1, hole;

    if (names->n == 0 || names->slots[hole = slot_of(names, pin->name_hash, pin->name)] != pin)
        return;
    names->slots[hole] = NULL;
    names->n--;
    /* A search stops at a free slot: whatever stands behind this one and could stand in it moves up. */
    for (size_t next = (hole + 1) & mask; names->slots[next] != NULL; next = (next + 1) & mask)
        if (((next - (size_t)names->slots[next]->name_hash) & mask) >= ((next - hole) & mask)) {
            names->slots[hole] = names->slots[next];
            names->slots[next] = NULL;
            hole = next;
        }
}

void sg__names_free(sg__names *names)
{
    free(names->slots);
    memset(names, 0, sizeof *names);
}
