/**
 * @file
 * Verifying a relaxed step: looking for what the rule that relaxed it cannot see.
 */
#ifndef STEPGRAPH_VERIFY_H
#define STEPGRAPH_VERIFY_H

#include "base.h"
#include "step.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A report. Owns all that it says, and outlives the step it is about. Never changes, so several threads may read it.
 *
 * It says what was looked for and found on the data at hand, and proves nothing beyond that. Not seen are, among others: a write that leaves
 * every byte as it was on this data, such as a counter that goes back to zero before its kernel ends, if its memory is declared read-only; what
 * only overlapping kernels do to each other and none of the replays happened to show; and memory that is neither pinned, nor in an
 * arena, nor in an argument of the step.
 */
typedef struct stepgraph_verify stepgraph_verify;

/** What came out. */
typedef enum stepgraph_verify_verdict {
    STEPGRAPH_NO_FAULT_FOUND = 1, /**< Nothing was found on this data. */
    STEPGRAPH_FAULTS_FOUND = 2,   /**< Do not replay this step relaxed: it is named which node touches what it does not declare, or what differs. */
    STEPGRAPH_NOT_COMPARABLE = 3  /**< No fault was found, but the step as it was recorded does not reproduce itself, so that some of its memory
                                       could not be compared. It is named. */
} stepgraph_verify_verdict;

/** The name of a verdict, such as "NO_FAULT_FOUND"; "unknown verdict" for any other number. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_verify_verdict_name(uint32_t verdict);

/** What a finding is about. */
typedef enum stepgraph_verify_kind {
    STEPGRAPH_VERIFY_HIDDEN_WRITE = 1,  /**< A node, run alone, changes memory that no address in its arguments leads to. */
    STEPGRAPH_VERIFY_FALSE_READ = 2,    /**< It changes memory that is declared read-only. */
    STEPGRAPH_VERIFY_HIDDEN_READ = 3,   /**< Its results are others when all that no address in its arguments leads to is filled with 0xff. */
    STEPGRAPH_VERIFY_REORDERED = 4,     /**< The nodes in a line, in an order that the new edges allow, give something else than the recording. */
    STEPGRAPH_VERIFY_RELAXED = 5,       /**< The relaxed step gives something else than the recording. */
    STEPGRAPH_VERIFY_ONE_BY_ONE = 6,    /**< The nodes one by one, in the recorded order, give something else than the recording: the recording itself
                                             leaves something unordered, or nodes work together while they run. */
    STEPGRAPH_VERIFY_UNSTEADY = 7,      /**< No fault: the recording gives something else when it runs again from the same state. This memory is not
                                             compared any further. */
    STEPGRAPH_VERIFY_UNSTEADY_NODE = 8, /**< No fault: a node gives something else when it runs again from the same state, so that nothing can be
                                             said about what it reads. */
    STEPGRAPH_VERIFY_SKIPPED = 9        /**< No fault: a node, or all of them, that could not be looked at alone. The text says why. */
} stepgraph_verify_kind;

/** Bits of stepgraph_verify_config::flags. */
enum {
    STEPGRAPH_VERIFY_NO_WRITES = 1u << 0,    /**< Do not look for hidden writes and false read declarations. */
    STEPGRAPH_VERIFY_NO_ISOLATION = 1u << 1, /**< Do not look for hidden reads: no memory is filled with 0xff, so no kernel can follow an address or an
                                                  index that it finds there. */
    STEPGRAPH_VERIFY_NO_ORDERS = 1u << 2,    /**< Do not run the nodes in other orders. */
    STEPGRAPH_VERIFY_NO_REPLAYS = 1u << 3    /**< Do not compare relaxed replays. */
};

/** Options of stepgraph_step_verify(). Begin with #STEPGRAPH_VERIFY_CONFIG_INIT; a zero field means its default. */
typedef struct stepgraph_verify_config {
    size_t size;           /**< sizeof(stepgraph_verify_config). */
    uint32_t flags;        /**< Bits STEPGRAPH_VERIFY_NO_…, or 0. Unknown bits are refused. */
    uint32_t steps;        /**< Consecutive steps of each run that is compared. 0: 10. At most 64. */
    uint32_t repeats;      /**< Runs of the relaxed step, since a missing order needs luck to show. 0: 8. */
    uint32_t orders;       /**< Other orders that are drawn, besides the one that is farthest from the recorded one. 0: 3. */
    uint32_t nodes;        /**< Nodes that are isolated, at most, spread over the step. 0: all. */
    uint32_t reserved;     /**< 0. */
    uint64_t seed;         /**< Of the orders. 0: 1. */
    uint64_t first;        /**< Number of the first step. */
    stepgraph_status (*feed)(void *user, stepgraph_step *step, uint64_t k); /**< Hands over the inputs of step k with stepgraph_pin_feed(): the same
                                bytes for the same k each time. NULL: every step gets what is in the pins. */
    int32_t (*progress)(void *user, const char *phase, uint64_t done, uint64_t total); /**< Called between pieces of work, with the phase's name
                                ("control", "writes", "isolation", "orders", "replays") and how far it has come. Anything but 0 stops as soon as
                                all is restored. NULL: not called. */
    void *user;            /**< Passed to both. Neither may relax, unrelax or reset the step, which answers #STEPGRAPH_ERR_STATE, nor destroy it. */
    uint64_t timeout_ns;   /**< How long to wait for one step or node before it counts as hung. 0: 60 seconds. */
    uint64_t device_bytes; /**< Device memory for two copies of all memory that is looked at, at most. 0: half of what is free. */
    uint64_t host_bytes;   /**< Page-locked host memory for those that do not fit, at most; much slower. 0: half of what is free. */
} stepgraph_verify_config;

/** All defaults. */
#define STEPGRAPH_VERIFY_CONFIG_INIT { sizeof(stepgraph_verify_config), 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, 0, 0 }

/**
 * Look for what relaxing a step cannot see, on the data at hand.
 *
 * Looked at is all memory that is pinned or in an arena, and what the arguments of the step point into. In this order:
 *
 * 1. The recording runs twice from the same state: memory in which it differs from itself is not compared any further.
 * 2. Its nodes run one by one. Whatever a node changes outside of what it declares is a hidden write.
 * 3. Once more, each in isolation: all that it does not declare is filled with 0xff while it runs. If its results are others, it reads
 *    something that it does not declare.
 * 4. The nodes run in a line in other orders that the new edges allow.
 * 5. The relaxed step runs again and again. All bytes are compared with the recording's after every step.
 *
 * All that memory is saved before and put back afterwards, as are feeds and counts. Nothing else may use it meanwhile, on whatever stream. Host
 * functions and copies to host memory that the step holds run each time.
 *
 * Call it once, while developing, in a process that may die: a node that finds 0xff where an address should be touches memory that is not there,
 * which loses the context (#STEPGRAPH_ERR_LOST, and the message names the node), and one that loops that often may never come back.
 * The example verify.c does it in a child process.
 *
 * @param[in]  step        READY and relaxed. Its session has no run open.
 * @param[in]  config      Read before this returns. NULL: all defaults.
 * @param[out] verify_out  Set only on success; give it back with stepgraph_verify_destroy().
 *
 * @retval STEPGRAPH_OK            *verify_out is the caller's. Faults in it are no error of this call.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a flag is unknown, or too many steps.
 * @retval STEPGRAPH_ERR_ABI       @p config sets a field that this library is too old for.
 * @retval STEPGRAPH_ERR_STATE     The step is not READY or not relaxed, a run is open, or a step is recording.
 * @retval STEPGRAPH_ERR_MEMORY    No room for two copies of the memory; the message has the bytes needed and the limits. Nothing ran.
 * @retval STEPGRAPH_ERR_REFUSED   @c progress stopped it; or memory that the graph refers to is gone, or the module of one of its kernels. Nothing ran then.
 * @retval STEPGRAPH_ERR_LOST      A node faulted or hung; the message says which one, and in which part. The session is lost.
 * @retval STEPGRAPH_ERR_DRIVER    A driver call failed; all is put back. Or it could not be, at the second try either, and the message says so: the state is
 *                                 that of no step then, and the host goes back to a checkpoint.
 * @return Otherwise what @c feed answered.
 *
 * @threads{handle} @capture{no} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_verify(stepgraph_step *step, const stepgraph_verify_config *config, stepgraph_verify **verify_out);

/** Free a report; NULL does nothing. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API void stepgraph_verify_destroy(stepgraph_verify *verify);

/** The whole in numbers. Begin with #STEPGRAPH_VERIFY_SUMMARY_INIT. */
typedef struct stepgraph_verify_summary {
    size_t size;             /**< sizeof(stepgraph_verify_summary). */
    uint32_t verdict;        /**< A #stepgraph_verify_verdict. */
    uint32_t software;       /**< 1: on cusim, which says nothing about a card. */
    uint64_t findings;       /**< All of them, also beyond those that are kept. */
    uint64_t kept;           /**< What stepgraph_verify_get() can give: the first 1000. */
    uint64_t faults;         /**< Findings that are faults. */
    uint64_t nodes;          /**< Of the step. */
    uint64_t nodes_run;      /**< Looked at for hidden writes. */
    uint64_t nodes_isolated; /**< Looked at for hidden reads. */
    uint64_t ranges;         /**< That the memory is cut into, */
    uint64_t bytes;          /**< and bytes in them. */
    uint64_t bytes_unsteady; /**< In those of them that were not compared. */
    uint32_t steps;          /**< In each run that was compared. */
    uint32_t orders;         /**< Other orders that ran. */
    uint32_t repeats;        /**< Runs of the relaxed step. */
    uint32_t reserved;       /**< 0. */
    uint64_t device_bytes;   /**< Taken meanwhile: device memory, */
    uint64_t host_bytes;     /**< and page-locked host memory. */
    double seconds;          /**< How long it took. */
} stepgraph_verify_summary;

/** An empty summary. */
#define STEPGRAPH_VERIFY_SUMMARY_INIT { sizeof(stepgraph_verify_summary), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** One finding. Begin with #STEPGRAPH_VERIFY_FINDING_INIT. */
typedef struct stepgraph_verify_finding {
    size_t size;         /**< sizeof(stepgraph_verify_finding). */
    uint32_t kind;       /**< A #stepgraph_verify_kind. */
    uint32_t fault;      /**< 1: replaying the step relaxed is not safe. */
    uint32_t node;       /**< Index in the order of recording; UINT32_MAX: not about one node. */
    uint32_t argument;   /**< The kernel argument that leads to the memory; UINT32_MAX: none, or not known. */
    uint64_t address;    /**< The first byte that differs; of a hidden read, of the results. 0: not about memory. */
    uint64_t offset;     /**< The same, from the beginning of its pin, block or allocation. */
    uint64_t bytes;      /**< How many bytes of it differ. */
    uint64_t step;       /**< Number of the step after which it differs; UINT64_MAX: not about a step. */
    uint64_t seed;       /**< Of the order in which the nodes ran; 0: the one that is farthest from the recorded one. */
    char node_name[128]; /**< Name of the kernel, or what the node does. */
    char stage[64];      /**< The stage that the node belongs to; "". */
    char memory[192];    /**< Which pin, block or allocation. */
    char text[512];      /**< One line: what, where. */
    char advice[256];    /**< One line: what to do. */
} stepgraph_verify_finding;

/** An empty finding. */
#define STEPGRAPH_VERIFY_FINDING_INIT { sizeof(stepgraph_verify_finding), 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 }, { 0 }, { 0 }, { 0 } }

/** The numbers. @retval STEPGRAPH_OK Filled up to its size. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API stepgraph_status stepgraph_verify_get_summary(const stepgraph_verify *verify, stepgraph_verify_summary *summary_out);

/**
 * Read one finding, faults first.
 *
 * @retval STEPGRAPH_OK            Filled up to its size.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a size too small, or there is no such finding: the way to stop a loop.
 *
 * @threads{any} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_verify_get(const stepgraph_verify *verify, uint32_t index, stepgraph_verify_finding *finding_out);

/** The report for a person to read, several lines; lives as long as @p verify. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_verify_text(const stepgraph_verify *verify);

/** The report as JSON; lives as long as @p verify. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_verify_json(const stepgraph_verify *verify);

#ifdef __cplusplus
}
#endif

#endif
