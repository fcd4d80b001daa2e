/* Where a kernel's arguments lie. Asked once per kernel: the question past the last argument costs a microsecond. */
#ifndef STEPGRAPH_GRAPH_LAYOUT_H
#define STEPGRAPH_GRAPH_LAYOUT_H

#include <stdbool.h>

#include "../driver/driver.h"

typedef struct sg__layout {
    CUfunction function;
    bool known; /* The driver could tell. */
    uint16_t n;
    struct {
        size_t offset, bytes;
    } *arguments;
} sg__layout;

/* A hash table; begins as all zero. */
typedef struct sg__layouts {
    sg__layout *slots;
    size_t n, room;
} sg__layouts;

/* NULL only when host memory is short. Valid until the next call. */
const sg__layout *sg__layout_of(const sg__driver *driver, sg__layouts *layouts, CUfunction function);
void sg__layouts_free(sg__layouts *layouts);

#endif
