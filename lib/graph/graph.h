/*
 * A captured graph, read back: its nodes, and every word in them that may be an address. Knows the driver table only.
 */
#ifndef STEPGRAPH_GRAPH_GRAPH_H
#define STEPGRAPH_GRAPH_GRAPH_H

#include <stdbool.h>

#include "../driver/driver.h"

typedef struct sg__graph_node {
    CUgraphNode handle;
    CUgraphNodeType type;
    CUfunction function; /* Of a kernel node. */
} sg__graph_node;

/* Where a word stands in its node. */
typedef enum sg__word_place {
    SG__WORD_ARGUMENT,    /* In a kernel argument. */
    SG__WORD_SOURCE,      /* What a copy reads, */
    SG__WORD_DESTINATION, /* and what a copy or a set writes. */
} sg__word_place;

typedef struct sg__graph_word {
    uint64_t value;
    uint32_t node;     /* Index of the node. */
    uint16_t place;    /* sg__word_place. */
    uint16_t argument; /* Index of the argument. */
    uint32_t offset;   /* Byte in the argument. */
    bool host;         /* The driver was told that this is host memory. */
} sg__graph_word;

typedef struct sg__graph_range {
    CUdeviceptr start;
    size_t bytes;
} sg__graph_range;

typedef struct sg__graph {
    sg__graph_node *nodes; /* In the order of the calls that made them; the nodes of a child graph follow their parent. */
    size_t n_nodes;
    sg__graph_word *words;
    size_t n_words;
    sg__graph_range *owned; /* Memory that the graph allocates itself. */
    size_t n_owned;
    size_t n_unread;        /* Kernel nodes whose arguments could not be read. */
} sg__graph;

/* Read everything. The graph is not under capture. Free the result also after a failure. */
stepgraph_status sg__graph_read(const sg__driver *driver, CUgraph graph, sg__graph *out);
void sg__graph_free(sg__graph *graph);

/* What a node does, for messages: the kernel's name, or "copy", "set" and so on. Lives as long as the kernel's module. */
const char *sg__graph_node_name(const sg__driver *driver, const sg__graph_node *node);

/* The same for a node of a graph under capture. */
const char *sg__graph_handle_name(const sg__driver *driver, CUgraphNode handle);

#endif
