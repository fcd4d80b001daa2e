/*
 * A recorded graph, written anew: a clone of it, with all attributes of its nodes, in which nodes are replaced and edges changed. What is
 * launched need not be what was recorded; the recorded graph stays as it is, for whoever asks what a node was.
 */
#ifndef STEPGRAPH_GRAPH_REWRITE_H
#define STEPGRAPH_GRAPH_REWRITE_H

#include "graph.h"

/* Why something stays as it was recorded. */
typedef enum sg__fixed {
    SG__FIXED_NOT,
    SG__FIXED_MEMORY,       /* The graph allocates or frees memory: it can neither be cloned nor lose an edge. */
    SG__FIXED_CONDITIONAL,  /* It has a conditional node: it cannot be cloned. */
    SG__FIXED_CLONE,        /* The driver does not clone it, for a reason that it does not tell. */
    SG__FIXED_CHILD,        /* The node is in a child graph. */
    SG__FIXED_PROGRAMMATIC, /* An edge means something else than "after it has ended". */
    SG__FIXED_REASONS
} sg__fixed;

/* "they are in a child graph" and the like. */
const char *sg__fixed_words(sg__fixed fixed);

/* What stands against rewriting the whole graph: SG__FIXED_NOT, or why, and the first node that does. Asks no driver. */
sg__fixed sg__rewrite_obstacle(const sg__graph *graph, uint32_t *node_out);

/* Whether the node of this index is in a child graph. */
bool sg__graph_in_child(const sg__graph *graph, uint32_t index);

typedef struct sg__rewrite {
    const sg__driver *driver;
    const sg__graph *read; /* The recorded graph. */
    CUgraph graph;         /* The clone; NULL: none. */
    CUgraphNode *nodes;    /* Those that stand in it for what was recorded, by the same index; NULL for those in child graphs. */
} sg__rewrite;

/* Clone a graph that was read. *fixed_out says why where it cannot be, which is no failure: rewrite->graph is then NULL. To be closed, also after
 * a failure. */
stepgraph_status sg__rewrite_open(const sg__driver *driver, const sg__graph *read, sg__rewrite *rewrite, sg__fixed *fixed_out);

/* Destroy the clone. Executables that were made from it stay. */
void sg__rewrite_close(sg__rewrite *rewrite);

/* A kernel in place of a node, with the same edges. *fixed_out says why where it cannot be, and nothing was changed. */
stepgraph_status sg__rewrite_replace(sg__rewrite *rewrite, uint32_t index, const CUDA_KERNEL_NODE_PARAMS *params, sg__fixed *fixed_out);

/* These edges instead of those that are there, between nodes that are in no child graph. index: of each node by which they are told. */
stepgraph_status sg__rewrite_edges(sg__rewrite *rewrite, const uint32_t *index, const sg__graph_edge *old, size_t n_old, const sg__graph_edge *edges,
                                   size_t n);

/* The index of what was recorded where this node stands; UINT32_MAX: none. */
uint32_t sg__rewrite_index(const sg__rewrite *rewrite, CUgraphNode node);

#endif
