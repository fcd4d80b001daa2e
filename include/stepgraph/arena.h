/**
 * @file
 * The arena: device memory for a host's allocator that stays valid for a graph.
 */
#ifndef STEPGRAPH_ARENA_H
#define STEPGRAPH_ARENA_H

#include "base.h"
#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One range of device memory that serves a host's allocator while it warms up and records.
 *
 * A caching allocator hands a freed block to the next request, also one outside the graph, and a replay then writes into somebody else's
 * memory. Blocks of an arena go nowhere else: the range stays reserved until the arena is destroyed, so every address that a recording
 * took from it stays valid. Host-side bookkeeping only; no driver call after it was made but to count the nodes of a recording, so it
 * works while recording.
 *
 * Belongs to a session; counts as registered memory, and findings name its blocks: all of the latest recording, and of those before the ones that they
 * found. Its memory is a pin of role SCRATCH and of the arena's name, which is the arena's to destroy. A block that was freed waits in a
 * first-in-first-out queue before it is handed out again. When a recording begins nothing waits any more, so that recordings of the same allocations are
 * given the same addresses.
 */
typedef struct stepgraph_arena stepgraph_arena;

/** Options of stepgraph_arena_create(). Begin with #STEPGRAPH_ARENA_CONFIG_INIT. */
typedef struct stepgraph_arena_config {
    size_t size;               /**< sizeof(stepgraph_arena_config). */
    uint64_t bytes;            /**< Extent; at least 1. Rounded up to a multiple of 256. */
    uint64_t quarantine_bytes; /**< A freed block is handed out again once so many bytes were freed after it. 0: none wait. */
    const char *name;          /**< For messages; copied; at most #STEPGRAPH_NAME_MOST bytes. NULL: "arena". Unique among the session's pins and arenas. */
} stepgraph_arena_config;

/** Nothing set: bytes are the caller's to fill in. */
#define STEPGRAPH_ARENA_CONFIG_INIT { sizeof(stepgraph_arena_config), 0, 0, NULL }

/**
 * Make an arena.
 *
 * @param[in]  session    The arena belongs to it.
 * @param[in]  config     Read before this returns.
 * @param[out] arena_out  Set only on success; give it back with stepgraph_arena_destroy().
 *
 * @retval STEPGRAPH_OK            *arena_out is the caller's.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, no bytes, or the name is taken.
 * @retval STEPGRAPH_ERR_ABI       @p config sets a field that this library is too old for.
 * @retval STEPGRAPH_ERR_MEMORY    Not enough device memory.
 * @retval STEPGRAPH_ERR_STATE     A step is recording.
 *
 * @threads{handle} @capture{no} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_arena_create(stepgraph_session *session, const stepgraph_arena_config *config,
                                                      stepgraph_arena **arena_out);

/**
 * Give an arena back, whatever blocks it still has; NULL does nothing.
 *
 * @retval STEPGRAPH_OK         Gone.
 * @retval STEPGRAPH_ERR_STATE  A live graph uses it (the step is named), or a step is recording. Nothing was done.
 *
 * @threads{handle} @capture{no} @waits{device} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_arena_destroy(stepgraph_arena *arena);

/**
 * Take a block. Best fit, aligned to 256 bytes and rounded up to as much; contents undefined.
 *
 * @param[in]  arena        From where.
 * @param[in]  bytes        At least 1.
 * @param[in]  label        For messages; copied; at most #STEPGRAPH_NAME_MOST bytes. NULL: none.
 * @param[out] address_out  Set only on success.
 *
 * @retval STEPGRAPH_OK            The block is the caller's.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL or no bytes were asked for.
 * @retval STEPGRAPH_ERR_MEMORY    No free range is large enough (the message has the largest one), or no host memory.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_arena_alloc(stepgraph_arena *arena, uint64_t bytes, const char *label, uint64_t *address_out);

/**
 * Give a block back; 0 does nothing. A block that a forked stream uses is given back after its join: the arena knows of no streams.
 *
 * @retval STEPGRAPH_OK            Free again, in stream order, once it has left the queue.
 * @retval STEPGRAPH_ERR_ARGUMENT  No block begins at @p address (freed twice, or an address inside a block).
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_arena_free(stepgraph_arena *arena, uint64_t address);

/** Where an arena stands. Begin with #STEPGRAPH_ARENA_STATS_INIT. */
typedef struct stepgraph_arena_stats {
    size_t size;         /**< sizeof(stepgraph_arena_stats). */
    uint64_t address;    /**< Device address of its range. */
    uint64_t bytes;      /**< Extent. */
    uint64_t used;       /**< Bytes in blocks that are out, as rounded up. */
    uint64_t peak;       /**< The most that were ever out at once. */
    uint64_t waiting;    /**< Bytes in the queue. */
    uint64_t largest;    /**< The largest block that can be had now. */
    uint64_t blocks;     /**< Blocks that are out. */
} stepgraph_arena_stats;

/** An empty record. */
#define STEPGRAPH_ARENA_STATS_INIT { sizeof(stepgraph_arena_stats), 0, 0, 0, 0, 0, 0, 0 }

/** Where @p arena stands. @retval STEPGRAPH_OK Filled up to its size. @threads{handle} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API stepgraph_status stepgraph_arena_get_stats(const stepgraph_arena *arena, stepgraph_arena_stats *stats_out);

/**
 * For hosts that keep a pool of their own inside memory they have pinned: say that a block came into use. Findings name it then, as those
 * of an arena; comparisons know which blocks are older than their recordings, and relaxing how far each one reaches.
 *
 * @param[in] session  The pool lies in one of its pins.
 * @param[in] address  Of the block.
 * @param[in] bytes    Its extent.
 * @param[in] label    For messages; copied; at most #STEPGRAPH_NAME_MOST bytes. NULL: none.
 *
 * @retval STEPGRAPH_OK            Noted.
 * @retval STEPGRAPH_ERR_ARGUMENT  No bytes, or the block overlaps one that is in use or lies in an arena, which notes its own.
 * @retval STEPGRAPH_ERR_MEMORY    No host memory.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_arena_note_alloc(stepgraph_session *session, uint64_t address, uint64_t bytes, const char *label);

/**
 * Say that such a block is free again.
 *
 * @retval STEPGRAPH_OK            Noted.
 * @retval STEPGRAPH_ERR_ARGUMENT  No block that was noted begins at @p address.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_arena_note_free(stepgraph_session *session, uint64_t address);

#ifdef __cplusplus
}
#endif

#endif
