/*
 * CONST pins of a graph while its step is done more than once: a step that writes one is told after the first time, since nobody could put it back.
 * Hashes are enough for that.
 */
#ifndef STEPGRAPH_CONSTANTS_H
#define STEPGRAPH_CONSTANTS_H

#include "memory.h"

/* Begins as all zero. */
typedef struct sg__constants {
    sg__memory memory;
    bool any;
} sg__constants;

/* As they are now. Free the result also after a failure. The context is current for both. */
stepgraph_status sg__constants_note(sg__constants *constants, const stepgraph_step *step);
/* The first that is another one by now, or NULL. What was enqueued before has run afterwards. */
stepgraph_status sg__constants_written(sg__constants *constants, const stepgraph_pin **pin_out);
void sg__constants_free(sg__constants *constants);

#endif
