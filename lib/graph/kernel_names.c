/* The names of kernels that were met in any recording, and how many arguments each kernel of that name has. */
#include <stdlib.h>
#include <string.h>

#include "layout.h"

/* So many are kept; more come from a host that makes kernels on the fly, and are asked about each time. */
enum { MOST = 1 << 14, ROOM_AT_FIRST = 64 };

/* Eight bytes at a time: names that templates have are hundreds of bytes long. */
static uint64_t hash_of(const char *text, size_t bytes)
{
    uint64_t hash = bytes, word;

    for (; bytes >= sizeof word; bytes -= sizeof word, text += sizeof word) {
        memcpy(&word, text, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, text, bytes);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

/* The slot of a name, or the free one where it belongs. There is always a free one. */
static sg__known_name *find(sg__known_name *slots, size_t room, uint64_t hash, const char *raw)
{
    size_t at = hash & (room - 1);

    while (slots[at].name != NULL && (slots[at].hash != hash || strcmp(sg__name_raw(slots[at].name), raw) != 0))
        at = (at + 1) & (room - 1);
    return &slots[at];
}

static bool make_room(sg__kernel_names *names)
{
    size_t room = names->room != 0 ? 2 * names->room : ROOM_AT_FIRST; /* A power of two. */
    sg__known_name *slots = calloc(room, sizeof *slots);

    if (slots == NULL)
        return false;
    for (size_t i = 0; i < names->room; i++)
        if (names->slots[i].name != NULL)
            *find(slots, room, names->slots[i].hash, sg__name_raw(names->slots[i].name)) = names->slots[i];
    free(names->slots);
    names->slots = slots;
    names->room = room;
    return true;
}

sg__name *sg__kernel_names_ask(sg__kernel_names *names, const sg__driver *driver, CUfunction function, sg__known_name **known_out)
{
    const char *raw = sg__name_ask_raw(driver, function);
    sg__known_name *slot;
    size_t length;
    uint64_t hash;

    *known_out = NULL;
    if (raw == NULL)
        return NULL;
    length = strlen(raw);
    if (names->n >= MOST || (2 * (names->n + 1) > names->room && !make_room(names)))
        return sg__name_new(raw, length);
    hash = hash_of(raw, length);
    slot = find(names->slots, names->room, hash, raw);
    if (slot->name == NULL) {
        slot->name = sg__name_new(raw, length);
        if (slot->name == NULL)
            return NULL;
        slot->hash = hash;
        names->n++;
    }
    *known_out = slot;
    return sg__name_hold(slot->name);
}

void sg__kernel_names_free(sg__kernel_names *names)
{
    for (size_t i = 0; i < names->room; i++)
        sg__name_drop(names->slots[i].name);
    free(names->slots);
    *names = (sg__kernel_names){0};
}
