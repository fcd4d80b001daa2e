/* One node of a recorded graph as a graph of its own, so that it can be run alone. */
#ifndef STEPGRAPH_GRAPH_SINGLE_H
#define STEPGRAPH_GRAPH_SINGLE_H

#include "graph.h"

typedef enum sg__single_kind {
    SG__SINGLE_RUNS,
    SG__SINGLE_NOTHING, /* It touches no memory: an empty node, or an event. */
    SG__SINGLE_NEVER    /* It does something only as part of its graph, such as allocating memory. */
} sg__single_kind;

sg__single_kind sg__single_kind_of(CUgraphNodeType type);

/* A graph of one that runs, with all its attributes. whole: what it is a node of. The context is current. The graph is the caller's, NULL after a
 * failure. */
stepgraph_status sg__single_make(const sg__driver *driver, CUcontext context, CUgraph whole, CUgraphNodeType type, CUgraphNode node, CUgraph *graph_out);

#endif
