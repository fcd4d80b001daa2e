/* What one node of a graph refers to: everything in it that may be an address, and where that stands. */
#ifndef STEPGRAPH_GRAPH_OPERANDS_H
#define STEPGRAPH_GRAPH_OPERANDS_H

#include "graph.h"

/* One of them. Extents of copies and sets are known, and exact; those of a kernel's are not. */
typedef struct sg__operand {
    CUdeviceptr address;
    uint64_t bytes;    /* Of a copy or a set; 0: of a kernel, which reaches as far as it likes. */
    uint16_t place;    /* SG__WORD_ARGUMENT, SG__WORD_SOURCE or SG__WORD_DESTINATION. */
    uint16_t argument;
    uint32_t offset;   /* In the argument. */
    CUmemorytype type; /* Of a copy: what the driver was told. */
} sg__operand;

typedef stepgraph_status (*sg__operand_fn)(void *user, const sg__operand *operand);

/*
 * Call back for each operand of a kernel, a copy or a set; other nodes have none. In a kernel's arguments eight bytes at any offset count,
 * aligned or not, if they lie in [low, high): more than sg__graph_read() keeps, for those who must not miss one.
 *
 * *readable_out: false where the driver does not tell what the node holds.
 */
stepgraph_status sg__graph_operands(const sg__driver *driver, const sg__graph_node *node, CUdeviceptr low, CUdeviceptr high,
                                    sg__operand_fn call, void *user, bool *readable_out);

#endif
