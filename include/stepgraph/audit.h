/**
 * @file
 * The audit: what a recorded graph has frozen, named before the first replay.
 */
#ifndef STEPGRAPH_AUDIT_H
#define STEPGRAPH_AUDIT_H

#include "base.h"
#include "step.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A report. Owns all that it says, and outlives the steps it is about. Never changes, so several threads may read it.
 *
 * An audit refutes; it never proves. It does not see pointer tables in device memory, addresses that a kernel computes, or 32-bit offsets.
 */
typedef struct stepgraph_audit stepgraph_audit;

/** What a finding is about. */
typedef enum stepgraph_finding_kind {
    STEPGRAPH_FINDING_MOVED_POINTER = 1,    /**< Another address in the next step: the replay would use the old one. No fault where both lie in
                                                 the same SCRATCH, in which nothing outlives a step. */
    STEPGRAPH_FINDING_CHANGING_SCALAR = 2,  /**< Another value in the next step: the replay would repeat the old one. */
    STEPGRAPH_FINDING_UNCLASSIFIED = 3,     /**< Bytes of an argument that no kernel reads, as far as one can tell, and that are left over from
                                                 earlier calls: they differ even between two recordings of the *same* step, or are an address of
                                                 the host's own memory, or a counter in a struct of more than 64 bytes. The text says which. No
                                                 fault. */
    STEPGRAPH_FINDING_TOPOLOGY = 4,         /**< The two recordings do not hold the same nodes, or not in the same order. */
    STEPGRAPH_FINDING_UNREGISTERED = 5,     /**< Live memory that no pin covers. */
    STEPGRAPH_FINDING_FREED = 6,            /**< An address whose memory was freed. */
    STEPGRAPH_FINDING_REPLACED = 7,         /**< An address that was freed and given out again. */
    STEPGRAPH_FINDING_FOREIGN = 8,          /**< Memory of another device. */
    STEPGRAPH_FINDING_PAGEABLE = 9,         /**< A copy that reads or writes pageable host memory at every replay. */
    STEPGRAPH_FINDING_PAGE_LOCKED = 10,     /**< Page-locked host memory that is used at every replay. */
    STEPGRAPH_FINDING_POOL = 11,            /**< Memory of a stream-ordered pool, which nobody can verify. */
    STEPGRAPH_FINDING_FORMER_STATE = 12,    /**< The address from which a STATE was last committed, in a graph that does not use the pin. */
    STEPGRAPH_FINDING_ALLOCATION = 13,      /**< An allocation in the graph that nothing in the graph frees. */
    STEPGRAPH_FINDING_HOST_FUNCTION = 14,   /**< A host function, run at every replay. */
    STEPGRAPH_FINDING_EMPTY = 15,           /**< Nothing was recorded. */
    STEPGRAPH_FINDING_ESCAPED = 16,         /**< Kernels and graphs that were counted and not recorded. Copies, sets and host functions too, but those are no fault: the
                                                 next batch may well travel on a stream of its own. */
    STEPGRAPH_FINDING_UNREAD = 17           /**< A node that could not be looked at. No fault, but not checked. */
} stepgraph_finding_kind;

/** One finding. Begin with #STEPGRAPH_FINDING_INIT. */
typedef struct stepgraph_finding {
    size_t size;        /**< sizeof(stepgraph_finding). */
    uint32_t kind;      /**< A #stepgraph_finding_kind. */
    uint32_t fault;     /**< 1: a replay would be wrong, or nobody can tell. 0: worth knowing, or allowed by a flag of the step. */
    uint32_t node;      /**< Index in the order of recording; UINT32_MAX: not about one node. */
    uint32_t argument;  /**< Index of the kernel argument; UINT32_MAX: not about an argument. */
    uint32_t offset;    /**< Byte in the argument. */
    uint32_t bytes;     /**< How many bytes differ, or make up the value. */
    uint64_t before;    /**< The value, in the first recording. */
    uint64_t after;     /**< The value in the second; 0 where there is one recording only. */
    char node_name[128]; /**< Name of the kernel, or what the node does. C++ names in readable form. */
    char stage[64];      /**< The stage that the node belongs to; "". */
    char text[512];      /**< One line: what, where, which buffers. */
    char advice[256];    /**< One line: what to do. */
    uint32_t doubtful;   /**< 1: no fault as far as anybody can tell from so few recordings, and perhaps one. 0: a fault, or none. */
    uint32_t reserved;   /**< 0. */
} stepgraph_finding;

/** An empty finding. */
#define STEPGRAPH_FINDING_INIT { sizeof(stepgraph_finding), 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 }, { 0 }, { 0 }, 0, 0 }

/** What was looked at. Begin with #STEPGRAPH_AUDIT_SUMMARY_INIT. */
typedef struct stepgraph_audit_summary {
    size_t size;            /**< sizeof(stepgraph_audit_summary). */
    uint64_t findings;      /**< All of them, also beyond those that are kept. */
    uint64_t kept;          /**< What stepgraph_audit_get() can give: the first 1000. */
    uint64_t faults;        /**< Findings that are faults. */
    uint64_t nodes;         /**< Nodes looked at, child graphs included. */
    uint64_t kernels;       /**< Kernel nodes among them. */
    uint64_t unread;        /**< Nodes that could not be looked at. */
    uint64_t addresses;     /**< Words that were taken for addresses. */
    uint64_t in_pins;       /**< Those that lie in pins and arenas. */
    uint64_t in_graph;      /**< Those that lie in memory which the graph allocates itself. */
    uint64_t bytes;         /**< Argument bytes compared. */
    uint64_t read_ns;       /**< Host time that end took to read the recording back and to audit it; of a comparison: of its recordings together. */
    uint64_t compare_ns;    /**< Host time of comparing them; 0 where there is one recording only. */
    uint64_t doubtful;      /**< Findings that are in doubt, and not among the faults. */
} stepgraph_audit_summary;

/** An empty summary. */
#define STEPGRAPH_AUDIT_SUMMARY_INIT { sizeof(stepgraph_audit_summary), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * What stepgraph_step_end() found in one recording.
 *
 * @param[in]  step       READY, or FAILED because end refused it.
 * @param[out] audit_out  Set only on success; give it back with stepgraph_audit_destroy().
 *
 * @retval STEPGRAPH_OK            *audit_out is the caller's. Faults in it are no error of this call.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL.
 * @retval STEPGRAPH_ERR_STATE     The step has no recording to report on.
 * @retval STEPGRAPH_ERR_MEMORY    No host memory.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_audit_step(const stepgraph_step *step, stepgraph_audit **audit_out);

/**
 * Compare the recordings of two consecutive steps, node by node and byte by byte. Recording runs nothing, so both steps are still to be
 * run, once each and in order.
 *
 * Whatever differs is frozen in a replay: a moved pointer or a changing scalar. Memory that the graph allocates for itself (a library's
 * workspace) has another address in each recording, which is no fault.
 *
 * @param[in]  a          READY: step k. A host that lets addresses pass unregistered (#STEPGRAPH_STEP_ALLOW_UNREGISTERED) finds here
 *                        whether they stay where they are.
 * @param[in]  b          READY: step k + 1, of the same session.
 * @param[in]  b_again    READY: step k + 1 once more, or NULL. As stepgraph_audit_compare_many() with one recording of step k.
 * @param[out] audit_out  Set only on success; give it back with stepgraph_audit_destroy().
 *
 * @retval STEPGRAPH_OK            *audit_out is the caller's. Faults in it are no error of this call.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, the steps belong to different sessions, or one is given twice.
 * @retval STEPGRAPH_ERR_STATE     A step is not READY; it is named.
 * @retval STEPGRAPH_ERR_REFUSED   The module of a kernel was unloaded since, and nodes have to be read again.
 * @retval STEPGRAPH_ERR_LOST      The session's context is gone.
 * @retval STEPGRAPH_ERR_MEMORY    No host memory.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_audit_compare(const stepgraph_step *a, const stepgraph_step *b, const stepgraph_step *b_again,
                                                       stepgraph_audit **audit_out);

/**
 * The same with several recordings of each step: two of each tell values from what is left over in arguments, five also where large structs are
 * passed by value. Best recorded in the order k, k + 1, k + 1, k, k + 1, k, k, k + 1, k + 1, k, so that what only the time changes does not look like the step.
 *
 * Frameworks pass structs by value that a call fills in part; the rest holds whatever stood there before. A value is the same in all recordings
 * of one step. What differs between them is left over, with these exceptions: an argument of 1, 2, 4 or 8 bytes is one value, which may be a
 * seed (unless it looks as if part of it was never set, as docs/audit.md says); and what goes on by the same amount from each recording to the next is a counter of the host's. Such a counter is a fault as an argument
 * of its own and in a struct of at most 64 bytes; in a larger one it is noted, as no fault.
 *
 * An address of host memory that the driver does not know is left over too, since no kernel can use it, and so is what stands in its place in
 * the other recordings; and in a struct of more than 64 bytes the lower half of an address where a call in the host's code returns to.
 *
 * @param[in]  n_a        How many recordings of step k; at least 1.
 * @param[in]  a          READY.
 * @param[in]  n_b        How many of step k + 1; at least 1.
 * @param[in]  b          READY, in the same session. When each was recorded is known from itself.
 * @param[out] audit_out  Set only on success; give it back with stepgraph_audit_destroy(). Findings hold the first recording against the first of
 *                        the others that differs, those of step k + 1 first.
 *
 * @retval STEPGRAPH_OK            *audit_out is the caller's. Faults in it are no error of this call.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a number is 0, the steps belong to different sessions, or one is given twice.
 * @retval STEPGRAPH_ERR_STATE     A step is not READY; it is named.
 * @retval STEPGRAPH_ERR_REFUSED   The module of a kernel was unloaded since, and nodes have to be read again.
 * @retval STEPGRAPH_ERR_LOST      The session's context is gone.
 * @retval STEPGRAPH_ERR_MEMORY    No host memory.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_audit_compare_many(size_t n_a, stepgraph_step *const *a, size_t n_b, stepgraph_step *const *b,
                                                            stepgraph_audit **audit_out);

/** Options of stepgraph_audit_record(). Begin with #STEPGRAPH_AUDIT_CONFIG_INIT. */
typedef struct stepgraph_audit_config {
    size_t size;           /**< sizeof(stepgraph_audit_config). */
    uint32_t flags;        /**< Bits STEPGRAPH_STEP_… for the recordings; #STEPGRAPH_STEP_ALLOW_UNREGISTERED is added. */
    uint32_t reserved;     /**< 0. */
    uint64_t first;        /**< Number of the first step to record. */
    stepgraph_status (*enqueue)(void *user, stepgraph_step *step, uint64_t k); /**< Enqueues step k on the session's stream, as always.
                                It is recorded, not run: the host must not wait for its results. */
    void *user;            /**< Passed to @c enqueue. */
} stepgraph_audit_config;

/** Nothing set: enqueue is the caller's to fill in. */
#define STEPGRAPH_AUDIT_CONFIG_INIT { sizeof(stepgraph_audit_config), 0, 0, 0, NULL, NULL }

/**
 * Record step k and step k + 1 twice through a callback, in the order k, k + 1, k + 1, k, and compare them as stepgraph_audit_compare_many()
 * does. Where that leaves a value in a struct of more than 64 bytes in doubt, k + 1, k, k, k + 1, k + 1 and k are recorded as well, and all ten
 * compared. None of them runs: what the host keeps in variables of its own (a step counter, an allocator's state) has gone on by four or ten steps
 * afterwards, and the device's memory by none.
 *
 * @param[in]  session    Nothing of it records.
 * @param[in]  config     Read before this returns.
 * @param[out] audit_out  Set only on success; give it back with stepgraph_audit_destroy().
 *
 * @retval STEPGRAPH_OK            *audit_out is the caller's. Faults in it are no error of this call.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL.
 * @return Otherwise what the callback answered, or stepgraph_step_end() where it has the cause.
 *
 * @threads{handle} @capture{no} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_audit_record(stepgraph_session *session, const stepgraph_audit_config *config,
                                                      stepgraph_audit **audit_out);

/** Bytes of an argument that its kernel does not read: what stands there is no part of the step. */
typedef struct stepgraph_unread {
    const char *pattern;     /**< Of the kernel's name, mangled or readable; `*` stands for any characters, `?` for one. */
    uint32_t argument;       /**< Index of the argument. UINT32_MAX: any. */
    uint32_t argument_bytes; /**< Only arguments of exactly this size, 1 to 256. */
    uint32_t offset;         /**< The first of the bytes, from the beginning of the argument. */
    uint32_t bytes;          /**< How many. */
    uint32_t reserved[2];    /**< 0. */
} stepgraph_unread;

/**
 * Say which bytes of arguments no kernel reads, where the host leaves there what the stack or the heap held: the audit, comparisons and relaxing take
 * them for 0 from the next stepgraph_step_end() on.
 *
 * For what a comparison accuses as a changing value although nobody reads it, as the indices in the indexers of CuPy, which its kernels set
 * themselves. It is the caller's word: a value that is read after all is then frozen by a replay, and only a check can see it. Small padding
 * and large structs need no word, see the manual's page about the audit.
 *
 * @param[in] session  Its recordings.
 * @param[in] unread   Copied. They take the place of those that were set before.
 * @param[in] n        How many. 0: none.
 *
 * @retval STEPGRAPH_OK            Set.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a pattern is empty, or bytes lie beyond their argument. Nothing changed.
 * @retval STEPGRAPH_ERR_MEMORY    No host memory. Nothing changed.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_session_set_unread(stepgraph_session *session, const stepgraph_unread *unread, uint32_t n);

/** Free a report; NULL does nothing. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API void stepgraph_audit_destroy(stepgraph_audit *audit);

/** What was looked at. @retval STEPGRAPH_OK Filled up to its size. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API stepgraph_status stepgraph_audit_get_summary(const stepgraph_audit *audit, stepgraph_audit_summary *summary_out);

/**
 * Read one finding, faults first.
 *
 * @retval STEPGRAPH_OK            Filled up to its size.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a size too small, or there is no such finding: the way to stop a loop.
 *
 * @threads{any} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_audit_get(const stepgraph_audit *audit, uint32_t index, stepgraph_finding *finding_out);

/** The report for a person to read, several lines; lives as long as @p audit. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_audit_text(const stepgraph_audit *audit);

/** The report as JSON; lives as long as @p audit. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_audit_json(const stepgraph_audit *audit);

/** Forms of stepgraph_step_draw(). */
typedef enum stepgraph_drawing {
    STEPGRAPH_DRAW_DOT = 1, /**< Graphviz: stages as clusters, pins that pass from node to node as labels of the edges, but for SCRATCH. */
    STEPGRAPH_DRAW_JSON = 2, /**< The same as data: nodes, edges, pins; of a relaxed step also the edges that it needs. */
    STEPGRAPH_DRAW_NEEDED = 3 /**< As DOT, with the edges that a relaxed step needs in place of the recorded ones; see stepgraph_step_relax(). */
} stepgraph_drawing;

/**
 * Write a READY step's graph to a file.
 *
 * @param[in] step  READY.
 * @param[in] form  A #stepgraph_drawing.
 * @param[in] path  Created or overwritten.
 *
 * @retval STEPGRAPH_OK            Written.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, an unknown form, or the file cannot be written; the message says why.
 * @retval STEPGRAPH_ERR_STATE     The step is not READY, or not relaxed and #STEPGRAPH_DRAW_NEEDED is asked for.
 * @retval STEPGRAPH_ERR_REFUSED   The module of a kernel was unloaded since; it is named.
 * @retval STEPGRAPH_ERR_LOST      The context is gone.
 *
 * @threads{handle} @capture{no} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_draw(const stepgraph_step *step, stepgraph_drawing form, const char *path);

#ifdef __cplusplus
}
#endif

#endif
