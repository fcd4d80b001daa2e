/* Public structs carry their size, so that they can grow. One reader and one writer serve them all. */
#ifndef STEPGRAPH_STRUCTS_H
#define STEPGRAPH_STRUCTS_H

#include <string.h>

#include "error.h"

/* Larger than any struct of ours will be: a size beyond it is a caller's uninitialised memory. */
#define SG__STRUCT_MAX 4096u

/* Shorter than ours: an older caller, the rest is zero. Longer: a newer caller, whose extra bytes must be zero. */
static inline stepgraph_status sg__struct_read(void *to, size_t known, size_t oldest, const void *from, const char *what)
{
    const unsigned char *bytes = from;
    size_t size;

    memcpy(&size, from, sizeof size);
    if (size < oldest || size > SG__STRUCT_MAX)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "%s has size %zu: begin with its …_INIT, which sets %zu", what, size, known);
    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return sg__fail(STEPGRAPH_ERR_ABI, "%s sets a field at offset %zu, which this library (%zu bytes) does not know: use a newer library",
                            what, i, known);

    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    return STEPGRAPH_OK;
}

/* Fill a caller's struct up to the caller's size and no further; the size field stays the caller's. */
static inline stepgraph_status sg__struct_write(void *to, const void *from, size_t known, size_t oldest, const char *what)
{
    size_t size;

    if (to == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no %s to fill: the pointer is NULL", what);
    memcpy(&size, to, sizeof size);
    if (size < oldest || size > SG__STRUCT_MAX)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "%s has size %zu: begin with its …_INIT, which sets %zu", what, size, known);
    memcpy((unsigned char *)to + sizeof size, (const unsigned char *)from + sizeof size, (size < known ? size : known) - sizeof size);
    return STEPGRAPH_OK;
}

#endif
