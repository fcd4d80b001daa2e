/* The bytes of an operand of a copy or a set: rows that lie apart, in planes. */
#ifndef STEPGRAPH_GRAPH_ROWS_H
#define STEPGRAPH_GRAPH_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sg__rows {
    size_t width;         /* Bytes of a row, */
    size_t height, depth; /* rows of a plane, and planes. */
    size_t pitch;         /* From one row to the next, in bytes; */
    size_t plane;         /* and from one plane to the next, in rows. */
} sg__rows;

/* How far they reach. */
static inline uint64_t sg__rows_reach(sg__rows r)
{
    return r.width == 0 || r.height == 0 || r.depth == 0 ? 0 : (r.depth - 1) * r.plane * r.pitch + (r.height - 1) * r.pitch + r.width;
}

/* Whether any of the bytes from one offset to another, where `to` is at most how far they reach, is in a row. */
static inline bool sg__rows_touch(sg__rows r, uint64_t from, uint64_t to)
{
    /* The first row that ends behind from. Between two planes there is none. */
    uint64_t row = from < r.width || r.pitch == 0 ? 0 : (from - r.width) / r.pitch + 1;

    if (r.plane > r.height && row % r.plane >= r.height)
        row += r.plane - row % r.plane;
    return row * r.pitch < to;
}

#endif
