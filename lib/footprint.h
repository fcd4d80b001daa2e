/*
 * What each node of a recorded step touches, as far as its arguments tell: whole allocations, as they were when the node was recorded. Every touch
 * is a write that is not declared to be a read, and what nobody knows is a barrier.
 */
#ifndef STEPGRAPH_FOOTPRINT_H
#define STEPGRAPH_FOOTPRINT_H

#include <stepgraph/relax.h>

#include "arena_p.h"
#include "graph/order.h"
#include "step_p.h"

/* The class of collectives that are no barriers. */
#define SG__ORDER_COLLECTIVES 1u

/* Where an access comes from. */
typedef struct sg__touch {
    uint16_t place;    /* sg__word_place. */
    uint16_t argument; /* Of a kernel. */
    uint32_t block;    /* Number of the block that it lies in; UINT32_MAX: in none. */
} sg__touch;

/* Numbers of nodes are those of the nodes that were recorded, without what is in child graphs. */
typedef struct sg__footprint {
    uint32_t n;
    uint32_t *index;   /* Of each, in step->read.nodes. */
    uint32_t *kinds;   /* As the order wants them. */
    uint8_t *reasons;  /* A stepgraph_barrier, of each. */
    sg__graph_edge *recorded;
    size_t n_recorded;

    sg__access *accesses; /* By node. Those of barriers too, for whoever saves what the step writes. */
    sg__touch *touches;   /* One for each. */
    size_t n_accesses, accesses_room;
    sg__block *blocks;    /* Those that are touched. Their labels are gone. */
    size_t n_blocks, blocks_room;

    uint64_t left_over; /* Words that point to where a block was, or was not yet. */
    uint32_t opaque; /* The first node of which nobody knows what it writes, or how to put that back; UINT32_MAX: none. */
} sg__footprint;

/* Free the result also after a failure. config: what is declared. Refused, with words: memory that is gone, or known under two addresses;
 * programmatic edges; blocks of a recording that is not the session's last. */
stepgraph_status sg__footprint_make(stepgraph_step *step, const stepgraph_relax_config *config, sg__footprint *out);
void sg__footprint_free(sg__footprint *footprint);

/* A pin counts as written from now on, whatever its role says. */
void sg__footprint_written(sg__footprint *footprint, const stepgraph_pin *pin);

/* The same accesses, as if no block had ever been given out again. The array is the caller's; NULL: no host memory. */
sg__access *sg__footprint_unused(const sg__footprint *footprint);

#endif
