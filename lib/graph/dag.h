/* Edges between numbered nodes: lines that they allow, and which of them the others imply. */
#ifndef STEPGRAPH_GRAPH_DAG_H
#define STEPGRAPH_GRAPH_DAG_H

#include "graph.h"

/* Bits that are held at a time to find implied edges. Fits into a core's second-level cache. */
#define SG__DAG_BITS_BYTES ((size_t)4 << 20)

/* The nodes that come after each: later[first[i]] to later[first[i + 1]]. */
typedef struct sg__dag_lists {
    size_t *first;
    uint32_t *later;
} sg__dag_lists;

stepgraph_status sg__dag_lists_make(uint32_t n, const sg__graph_edge *edges, size_t n_edges, sg__dag_lists *out);
void sg__dag_lists_free(sg__dag_lists *lists);

/* Largest first; room for as many as will ever be in it at once. */
typedef struct sg__heap {
    uint64_t *items;
    size_t n;
} sg__heap;

void sg__heap_push(sg__heap *heap, uint64_t item);
uint64_t sg__heap_pop(sg__heap *heap);

/* All nodes in a line that the edges allow: of those that could come next always the one with the largest key, and of these the
 * one with the lowest number. keys NULL: all alike. *placed_out is less than n if the edges go round in a circle. */
stepgraph_status sg__dag_line(uint32_t n, const sg__dag_lists *lists, const uint32_t *keys, uint32_t *line, uint32_t *placed_out);

/* From here on numbers are places in a line: every edge has from < to. */

/* By the later node, then the nearest earlier one first; each edge once. */
stepgraph_status sg__dag_sort(uint32_t n, sg__graph_edge *edges, size_t *n_edges);

/* Leave out those that others imply. Sorted before and after. */
stepgraph_status sg__dag_reduce(uint32_t n, sg__graph_edge *edges, size_t *n_edges);

/* Nodes on the longest way through. */
stepgraph_status sg__dag_path(uint32_t n, const sg__graph_edge *sorted, size_t n_edges, uint32_t *path_out);

#endif
