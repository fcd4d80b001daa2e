/*
 * Which blocks of memory are out and which are gone, and at which nodes of a recording each was there: of one arena, or of what a host notes.
 * Those that are out stand in an array by address, searched by halves.
 */
#ifndef STEPGRAPH_BLOCKS_H
#define STEPGRAPH_BLOCKS_H

#include <stdbool.h>

#include "arena_p.h"

typedef struct sg__block_record {
    sg__block block;
    bool before; /* It was out when the recording began. */
    char label[];
} sg__block_record;

/* A block that is gone, in an array by address and then by time that is searched as a tree: the middle item is the root. What the items
 * of a subtree span together stands in its root, and tells where not to look. */
typedef struct sg__ended {
    sg__block_record *record;
    CUdeviceptr end;
    uint32_t first_node, last_node;
} sg__ended;

/* Begins as all zero. */
typedef struct sg__blocks {
    sg__block_record **live; /* By address. */
    size_t n_live, live_room;
    sg__ended *ended; /* Those that nodes of the recording may point to. */
    size_t n_ended, ended_room;
    bool sorted;
} sg__blocks;

void sg__blocks_free(sg__blocks *b);

/* A block is out from the node on that is recorded next. It overlaps none. Giving it back cannot fail: the room for that is made now. */
stepgraph_status sg__blocks_add(sg__blocks *b, CUdeviceptr start, uint64_t bytes, const char *label, uint32_t node);

/* The block is gone as of the node that is recorded next. It is kept if a node was recorded while it was there. */
void sg__blocks_end(sg__blocks *b, size_t index, uint32_t node);

/* A recording begins. */
void sg__blocks_restart(sg__blocks *b);

/* Index of the first block that ends beyond address. */
size_t sg__blocks_index(const sg__blocks *b, CUdeviceptr address);

/* Whether a block begins there; its index. */
bool sg__blocks_begins_at(const sg__blocks *b, CUdeviceptr address, size_t *index_out);

/* The block that is out there; that was there at a node; and where none was, the one that was there last before the node, or else the first after it.
 * NULL: none. */
const sg__block *sg__blocks_live_at(const sg__blocks *b, CUdeviceptr address);
const sg__block *sg__blocks_at(sg__blocks *b, CUdeviceptr address, uint32_t node);
const sg__block *sg__blocks_near(const sg__blocks *b, CUdeviceptr address, uint32_t node);

/* Whether a block that is out reaches into a range, or one that is gone began in it. */
bool sg__blocks_any_in(const sg__blocks *b, CUdeviceptr start, uint64_t bytes);

/* Append those that were out when the recording began, their labels still being those of the blocks; their number. Where out is NULL, count them only. */
size_t sg__blocks_carried(const sg__blocks *b, sg__carried *out);

#endif
