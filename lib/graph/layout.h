/* Where a kernel's arguments lie. Asked once per kernel: the question past the last argument costs a microsecond. */
#ifndef STEPGRAPH_GRAPH_LAYOUT_H
#define STEPGRAPH_GRAPH_LAYOUT_H

#include <stdbool.h>

#include "../driver/driver.h"

typedef struct sg__layout {
    CUfunction function;
    char *name; /* Readable; NULL: the driver does not tell. */
    bool known; /* The driver could tell the arguments. */
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

/* A kernel's name, readable also where it is a C++ name; NULL where the driver does not tell it. To be freed. */
char *sg__function_name(const sg__driver *driver, CUfunction function);

/* Ask, or remember. *layout_out is valid until the next call. */
stepgraph_status sg__layout_of(const sg__driver *driver, sg__layouts *layouts, CUfunction function, const sg__layout **layout_out);
/* One that was asked for before; NULL if not. */
const sg__layout *sg__layout_known(const sg__layouts *layouts, CUfunction function);
void sg__layouts_free(sg__layouts *layouts);

#endif
