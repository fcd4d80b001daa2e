/* Where a kernel's arguments lie. Asked once per kernel: a question takes a third of a microsecond, and the one past the last argument a whole one. */
#ifndef STEPGRAPH_GRAPH_LAYOUT_H
#define STEPGRAPH_GRAPH_LAYOUT_H

#include <stdbool.h>

#include "../driver/driver.h"

/* A kernel's name. Held by whoever may want to say it later, also when the kernel's module is gone; made readable only then, since that takes
 * tens of microseconds for the names that templates have. */
typedef struct sg__name sg__name;

typedef struct sg__layout {
    struct sg__layout *next; /* Of those that hold no more. */
    uint64_t turn;           /* When it was found to hold. */
    CUfunction function;
    sg__name *name; /* NULL: the driver does not tell. */
    bool known; /* The driver could tell the arguments. */
    uint16_t n;
    struct {
        size_t offset, bytes;
    } *arguments;
} sg__layout;

/* A hash table; begins as all zero. */
typedef struct sg__layouts {
    sg__layout **slots;
    size_t n, room;
    uint64_t turn;
    sg__layout *former; /* Nodes may still point to them. */
} sg__layouts;

/* NULL where the driver does not tell it. Held by the caller. */
sg__name *sg__name_ask(const sg__driver *driver, CUfunction function);
sg__name *sg__name_hold(sg__name *name);
void sg__name_drop(sg__name *name);
/* As the driver told it. */
const char *sg__name_raw(const sg__name *name);
/* Readable also where it is a C++ name: whole, and shortened to what fits into a line. Any thread may ask. */
const char *sg__name_whole(sg__name *name);
const char *sg__name_short(sg__name *name);

/* From now on, kernels may have been unloaded and others loaded, with the same handles: what is remembered is checked once before it is used. */
void sg__layouts_turn(sg__layouts *layouts);

/* Ask, or remember. *layout_out is valid as long as the layouts. */
stepgraph_status sg__layout_of(const sg__driver *driver, sg__layouts *layouts, CUfunction function, const sg__layout **layout_out);
void sg__layouts_free(sg__layouts *layouts);

#endif
