/*
 * Blocks of device memory, from arenas and from pools that the host keeps: which one holds an address now, and which one held it when a
 * node was recorded.
 */
#ifndef STEPGRAPH_ARENA_P_H
#define STEPGRAPH_ARENA_P_H

#include <stepgraph/arena.h>

#include "session_p.h"

/*
 * One block. Nodes are numbered as cuGraphGetNodes lists them, from 0; those of child graphs have no numbers of their own.
 *
 * A block that was there when the recording began has first_node 0, one that came after it was over UINT32_MAX. last_node is UINT32_MAX
 * while the block is out, and UINT32_MAX - 1 for one that went after the recording was over.
 */
typedef struct sg__block {
    CUdeviceptr start;
    uint64_t bytes;    /* What it occupies: a block of an arena is rounded up to its alignment. */
    const char *label; /* "": none. Lives until the next call about blocks of the session. */
    uint32_t first_node, last_node;
} sg__block;

/*
 * The block that held address when node was recorded, in the session's last recording; UINT32_MAX: the block that is out now. False if
 * there was none.
 */
bool sg__arena_block_at(const stepgraph_session *session, CUdeviceptr address, uint32_t node, sg__block *out);

/* Whether the host has noted blocks in that memory, which lies in no arena. */
bool sg__arena_notes(const stepgraph_session *session, CUdeviceptr start, uint64_t bytes);

/* Where no block was at that node: the one that was there last before it, or else the first one after it. False: there never was one. */
bool sg__arena_block_near(const stepgraph_session *session, CUdeviceptr address, uint32_t node, sg__block *out);

/* Whether there are blocks at all, now or during the last recording. */
bool sg__arenas_any(const stepgraph_session *session);

/* The next part of an arena's memory, from an address on, that no block holds now: what may be overwritten. False: there is none. */
bool sg__arena_gap(const stepgraph_session *session, const stepgraph_pin *pin, CUdeviceptr from, CUdeviceptr *start_out, uint64_t *bytes_out);

/*
 * A block that was out when a recording began, and its last node as above: what the step finds in there, an earlier one has left, or the host.
 * They were all there at once, so they are disjoint.
 */
typedef struct sg__carried {
    CUdeviceptr start;
    uint64_t bytes;
    uint32_t last_node;
    const char *label; /* "" for none. */
} sg__carried;

/* Those of the last recording, by address. *carried_out is the caller's to free, labels included; NULL: there are none. */
stepgraph_status sg__arenas_carried(const stepgraph_session *session, sg__carried **carried_out, size_t *n_out);

/* The one at an address that was still there at a node; NULL: none. */
const sg__carried *sg__carried_at(const sg__carried *list, size_t n, CUdeviceptr address, uint32_t node);

/* A recording begins: the blocks that are out were there from its first node on, and those of the recording before are forgotten. */
void sg__arenas_record(stepgraph_session *session);

/* Forget the blocks of a session that is closing. */
void sg__arenas_free(stepgraph_session *session);

#endif
