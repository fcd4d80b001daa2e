/*
 * Which nodes of a recorded graph have to wait for which, from the bytes that each of them touches; and how they are laid out on
 * a few lanes.
 *
 * Numbers only: makes no driver call, and does not know where the accesses come from.
 *
 * Two nodes conflict if they touch a byte in common and at least one of them writes it, if one of them is a barrier, or if they
 * are of the same class. Of two nodes that conflict, the later one has to wait for the earlier one: the one that the recording
 * put before it, on whatever way through its edges. Nodes that the recording left unordered stay unordered also where they
 * conflict; that is counted, since it says that the recording had a race, or that an access is not what it seems.
 *
 * Memory: for building, 4 bytes a node and branch of the recording (a capture of one stream has one branch), 16 bytes for each
 * pair of a node and a different range of bytes that it touches (ranges are cut where others begin or end), 8 for each edge
 * before those are dropped that others imply, and at most 4 MiB of bits to find these. For lanes, 4 bytes a node and lane. Time:
 * a millisecond for a step of 2,600 nodes; see tests/bench/order.c.
 */
#ifndef STEPGRAPH_GRAPH_ORDER_H
#define STEPGRAPH_GRAPH_ORDER_H

#include "graph.h"

/* Bytes that a node touches. */
typedef struct sg__access {
    uint64_t start, bytes; /* No bytes: no access. What reaches past the last address ends there. */
    uint32_t node;
    bool write; /* False: declared to be read only. */
} sg__access;

/* What a node is, if it is not just one that touches bytes: one of these, or the number of a class whose members stay in their
 * order. */
#define SG__ORDER_PLAIN 0u
#define SG__ORDER_BARRIER UINT32_MAX

/* Branches of a recording that are still followed; one with more is refused. */
#define SG__ORDER_BRANCHES_MAX 1024u

typedef struct sg__order_input {
    uint32_t n;                     /* Nodes, numbered from 0. */
    const sg__graph_edge *recorded; /* In any order, repeated or implied ones too. */
    size_t n_recorded;
    const sg__access *accesses; /* In any order; those of one node may overlap. */
    size_t n_accesses;
    const uint32_t *kinds; /* Of each node; NULL: all are plain. */
} sg__order_input;

/* Begins as all zero. */
typedef struct sg__order {
    uint32_t n;
    sg__graph_edge *edges; /* No edge that others imply. By the later node's place in the line, the nearest earlier one first. */
    size_t n_edges;
    uint32_t *line; /* All nodes in an order that the edges allow: as recorded; of lanes, as they were laid out. */
    uint32_t path;  /* Nodes on the longest way through. */

    /* About the recording; not of lanes. */
    uint32_t recorded_path;
    uint32_t branches;
    uint64_t n_unordered;  /* Ranges of bytes, each as often as a node touches it, that meet a conflict which the recording leaves
                              unordered, */
    uint32_t unordered[2]; /* and the nodes of the first. */
} sg__order;

/* The fewest edges that keep every two nodes in order that conflict and that the recording ordered. Refused, with words in the
 * record: an edge, an access or a node out of range, a recording that goes round in a circle or that has too many branches. */
stepgraph_status sg__order_build(const sg__order_input *input, sg__order *out);

/*
 * Lay an order out on at most `lanes` lanes: of the nodes that could run next, the ones with the longest way still to go are
 * taken, a lane a node; each lane is a chain. The result holds all order that was needed and that of the lanes, again in the
 * fewest edges. lane_of: the lane of each node, or NULL.
 */
stepgraph_status sg__order_lanes(const sg__order *needed, uint32_t lanes, sg__order *out, uint32_t *lane_of);

/* All nodes in one line that the order allows. seed 0: the line that differs most from the recorded one, always the latest node
 * first; otherwise one that depends on the seed only. */
stepgraph_status sg__order_line(const sg__order *order, uint64_t seed, uint32_t *line);

void sg__order_free(sg__order *order);

#endif
