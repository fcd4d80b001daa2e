/**
 * @file
 * Relaxing: replays that keep only the order that the step needs.
 */
#ifndef STEPGRAPH_RELAX_H
#define STEPGRAPH_RELAX_H

#include "base.h"
#include "step.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What relaxing found and did. Owns all that it says, and outlives the step. Never changes, so several threads may read it.
 *
 * A step recorded on one stream replays as a chain, one node after the other, although most of its kernels do not depend on each other. Relaxed,
 * a node waits only for earlier ones that touch memory which it touches too: the whole of every allocation that its arguments point into.
 * Every touch counts as a write, unless it is *declared* to be a read; nothing is guessed from a kernel's behaviour.
 *
 * This is right where each byte that a kernel may touch lies in an allocation whose address stands in its arguments. It is wrong for kernels
 * that find addresses elsewhere: in tables in device memory, in variables of their module, by arithmetic from another allocation. No
 * call can rule that out; the check and the verification can find it on the data at hand. See the manual's page about relaxing.
 */
typedef struct stepgraph_relax stepgraph_relax;

/** Bits of stepgraph_relax_config::flags. */
enum {
    /** FEED and CELL pins may be written by the step. Without this flag they count as read only, as their role says; that is tried once, and a pin
     *  that a replay changes counts as written. */
    STEPGRAPH_RELAX_INPUTS_WRITTEN = 1u << 0,
    /** Collectives find all their buffers through their arguments: they keep their order among themselves and wait for what touches their buffers, but
     *  are no barriers. */
    STEPGRAPH_RELAX_COLLECTIVES_PLAIN = 1u << 1,
    /** Do not compare the bytes that relaxed replays and recorded ones leave behind. */
    STEPGRAPH_RELAX_NO_COMPARE = 1u << 2
};

/** Kernels by name, and one argument of theirs. */
typedef struct stepgraph_relax_kernel {
    const char *pattern;  /**< Of the kernel's name, mangled or readable; `*` stands for any characters, `?` for one. */
    uint32_t argument;    /**< Index of the argument. UINT32_MAX: all. */
    uint32_t reserved;    /**< 0. */
} stepgraph_relax_kernel;

/** Options of stepgraph_step_relax(). Begin with #STEPGRAPH_RELAX_CONFIG_INIT; a zero field means its default. */
typedef struct stepgraph_relax_config {
    size_t size;             /**< sizeof(stepgraph_relax_config). */
    uint32_t flags;          /**< Bits STEPGRAPH_RELAX_…, or 0. Unknown bits are refused. */
    uint32_t lanes;          /**< Nodes that may run at once. 0: chosen by timing replays, among 1 (as recorded) and those of 4, 8 and 16 that
                                  the order makes worth trying. Otherwise nothing is timed or compared, and the step is not run. At most 64. */
    const stepgraph_relax_kernel *reads;       /**< Arguments that their kernels only read through: the caller's word. NULL: none. */
    const stepgraph_relax_kernel *barriers;    /**< Kernels that are barriers, such as those that read addresses from device memory; the
                                                    argument means nothing. NULL: none. */
    const stepgraph_relax_kernel *collectives; /**< Kernels that wait for other devices, besides those known by name; the argument means nothing.
                                                    NULL: none. */
    uint32_t n_reads;        /**< How many. */
    uint32_t n_barriers;     /**< How many. */
    uint32_t n_collectives;  /**< How many. */
    uint32_t reserved;       /**< 0. */
    uint64_t snapshot_bytes; /**< Device memory for copies of what the step writes, at most, while replays are timed; beyond it page-locked host
                                  memory is used. 0: half of what is free. */
    uint64_t timeout_ns;     /**< How long to wait for replays before they count as hung. 0: 60 seconds. */
} stepgraph_relax_config;

/** All defaults. */
#define STEPGRAPH_RELAX_CONFIG_INIT { sizeof(stepgraph_relax_config), 0, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0 }

/**
 * Rebuild the order of a READY step's nodes from the memory that they touch, and replay that from now on, if it is faster.
 *
 * To find out, the step is *run*: a few dozen times, as it was recorded and on some of 4, 8 and 16 lanes, with the inputs that were fed last. Before that,
 * all memory that its nodes are known to touch is saved, and put back afterwards; what the step reaches through addresses that do not stand
 * in its arguments is not. The runs are not counted. In a job of several devices whose steps hold collectives, all devices call this at the
 * same point of their training.
 *
 * Blocks of arenas and of the host's own pool are known by their lifetimes from the session's last recording, so this follows
 * stepgraph_step_end() before another step is recorded. The executable as it was recorded is kept, and its memory; see
 * stepgraph_step_unrelax(). Recording the step again also ends it.
 *
 * A step that is relaxed already is relaxed anew.
 *
 * @param[in]  step       READY, not in a run.
 * @param[in]  config     Read before this returns. NULL: all defaults.
 * @param[out] relax_out  Set only on success; give it back with stepgraph_relax_destroy(). NULL: no report.
 *
 * @retval STEPGRAPH_OK              The step is relaxed, or stays as it was recorded because that is as fast, or because the relaxed replays left other
 *                                   bytes behind; stepgraph_relax_summary::lanes says which.
 * @retval STEPGRAPH_ERR_ARGUMENT    A pointer is NULL, a flag or a number is out of range, a pattern is NULL, or a reserved field is not 0.
 * @retval STEPGRAPH_ERR_ABI         @p config sets a field that this library is too old for.
 * @retval STEPGRAPH_ERR_STATE       The step is not READY, a run is open, or a step is recording.
 * @retval STEPGRAPH_ERR_REFUSED     It would be unsound, or cannot be tried and put back; the message names the node and says why. Or the recording has
 *                                   more than 1024 branches side by side, or memory that the graph refers to is gone, or the module of one of its kernels. The step replays as it was recorded, relaxed before or not.
 * @retval STEPGRAPH_ERR_MEMORY      No room for a second executable, or for saving what the step writes. The step replays as it was recorded.
 * @retval STEPGRAPH_ERR_LOST        A replay hangs or faults; the step is FAILED.
 * @retval STEPGRAPH_ERR_DRIVER      A driver call failed; the step is as it was. Or what it writes could not be put back, at the second try either: the
 *                                   step is FAILED, the state is that of no step, and the host goes back to a checkpoint.
 *
 * @threads{handle} @capture{no} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_relax(stepgraph_step *step, const stepgraph_relax_config *config, stepgraph_relax **relax_out);

/**
 * Replay a step as it was recorded again, from its next replay on. Nothing to do if it is not relaxed.
 *
 * @retval STEPGRAPH_OK              It replays as recorded.
 * @retval STEPGRAPH_ERR_ARGUMENT    @p step is NULL.
 * @retval STEPGRAPH_ERR_LOST        The context is gone.
 *
 * @threads{handle} @capture{no} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_unrelax(stepgraph_step *step);

/** Free a report; NULL does nothing. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API void stepgraph_relax_destroy(stepgraph_relax *relax);

/** The whole in numbers. Begin with #STEPGRAPH_RELAX_SUMMARY_INIT. */
typedef struct stepgraph_relax_summary {
    size_t size;              /**< sizeof(stepgraph_relax_summary). */
    uint32_t lanes;           /**< Of the replays from now on; 0: as recorded. */
    int32_t identical;        /**< 1: relaxed replays left the same bytes behind as recorded ones. 0: they did not, so the step stays as
                                   recorded. -1: not compared, or the step does not repeat itself. */
    uint64_t nodes;           /**< Nodes, those of child graphs not counted. */
    uint64_t edges_recorded;  /**< Edges as recorded, */
    uint64_t edges_needed;    /**< of the order that is needed, without those that others imply, */
    uint64_t edges;           /**< and as launched from now on. */
    uint64_t path_recorded;   /**< Nodes on the longest way through the recording: the critical path, */
    uint64_t path_needed;     /**< through the order that is needed, */
    uint64_t path;            /**< and as launched from now on. */
    uint64_t path_unused;     /**< As path_needed, if no block were ever given out again: what a larger quarantine could bring it down to. */
    uint64_t barriers;        /**< Nodes that come after all before them and before all after them. */
    uint64_t collectives;     /**< Nodes that keep their order among themselves, barriers not counted. */
    uint64_t accesses;        /**< Pairs of a node and an allocation that it touches; */
    uint64_t reads;           /**< those that are declared to be reads. */
    uint64_t left_over;       /**< Words of arguments that point to where a block was, or was not yet: most likely left over from earlier calls,
                                   and taken as touches of that block all the same. */
    uint64_t unordered;       /**< Touches that conflict and that the recording itself leaves unordered: it has a race, or they are none. */
    uint64_t refuted;         /**< Pins that count as read only, and that a replay changed: taken as written. */
    uint64_t launches;        /**< How often the step was run. */
    uint64_t saved_bytes;     /**< Memory that was saved and put back. */
    double us_recorded;       /**< Time of a replay, one launched right behind the other: as recorded, */
    double us;                /**< and from now on. Microseconds; negative: not measured. */
    double host_us_recorded;  /**< Host time of launching one: as recorded, */
    double host_us;           /**< and from now on. */
    double read_ms;           /**< Where the time of the call went, in milliseconds: reading what nodes touch, */
    double order_ms;          /**< building orders and lanes, */
    double build_ms;          /**< making executables, */
    double save_ms;           /**< saving, putting back and comparing memory, */
    double time_ms;           /**< timing replays. */
} stepgraph_relax_summary;

/** An empty summary. */
#define STEPGRAPH_RELAX_SUMMARY_INIT                                                                                                     \
    { sizeof(stepgraph_relax_summary), 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0, 0 }

/** The numbers. @retval STEPGRAPH_OK Filled up to its size. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API stepgraph_status stepgraph_relax_get_summary(const stepgraph_relax *relax, stepgraph_relax_summary *summary_out);

/** Why a node is a barrier. */
typedef enum stepgraph_barrier {
    STEPGRAPH_BARRIER_NONE = 0,          /**< It is none. */
    STEPGRAPH_BARRIER_NO_ADDRESS = 1,    /**< A kernel none of whose arguments points into known memory: nobody knows what it touches. */
    STEPGRAPH_BARRIER_UNREAD = 2,        /**< The driver does not tell what it holds. */
    STEPGRAPH_BARRIER_HOST_FUNCTION = 3, /**< A host function. */
    STEPGRAPH_BARRIER_HOST_MEMORY = 4,   /**< It uses host memory, which the host may use at the same time, or under another address. */
    STEPGRAPH_BARRIER_EVENT = 5,         /**< It waits for an event, or records one. */
    STEPGRAPH_BARRIER_CHILD_GRAPH = 6,   /**< A child graph. */
    STEPGRAPH_BARRIER_COOPERATIVE = 7,   /**< A cooperative kernel, whose blocks wait for each other. */
    STEPGRAPH_BARRIER_COLLECTIVE = 8,    /**< A kernel that waits for other devices. */
    STEPGRAPH_BARRIER_DECLARED = 9,      /**< The caller wants it to be one. */
    STEPGRAPH_BARRIER_OTHER = 10         /**< A node of another kind, or of a kind that is younger than this library. */
} stepgraph_barrier;

/** Number of reasons in this version, 0 included. */
#define STEPGRAPH_BARRIERS 11

/** "cooperative kernel" and the like; "unknown reason" for any other number. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_barrier_name(uint32_t barrier);

/** Nodes of one name that are barriers for one reason. Begin with #STEPGRAPH_RELAX_BARRIER_INIT. */
typedef struct stepgraph_relax_barrier {
    size_t size;         /**< sizeof(stepgraph_relax_barrier). */
    uint32_t reason;     /**< A #stepgraph_barrier. */
    uint32_t node;       /**< The first of them, by its index in the order of recording. */
    uint64_t count;      /**< How many. */
    char node_name[128]; /**< Their kernel, or what they do. */
} stepgraph_relax_barrier;

/** An empty record. */
#define STEPGRAPH_RELAX_BARRIER_INIT { sizeof(stepgraph_relax_barrier), 0, 0, 0, { 0 } }

/**
 * Read which nodes are barriers, by reason and name, in the order of the first of each.
 *
 * @retval STEPGRAPH_OK            Filled up to its size.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a size too small, or there is no such record: the way to stop a loop.
 *
 * @threads{any} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_relax_get_barrier(const stepgraph_relax *relax, uint32_t index, stepgraph_relax_barrier *barrier_out);

/** One way to launch the step that was looked at. Begin with #STEPGRAPH_RELAX_CHOICE_INIT. */
typedef struct stepgraph_relax_choice {
    size_t size;       /**< sizeof(stepgraph_relax_choice). */
    uint32_t lanes;    /**< 0: as recorded. */
    int32_t identical; /**< As in stepgraph_relax_summary. */
    uint64_t edges;    /**< Edges. */
    uint64_t path;     /**< Nodes on the longest way through. */
    double us;         /**< Time of a replay, one right behind the other; negative: not measured. */
    double host_us;    /**< Host time of launching one. */
} stepgraph_relax_choice;

/** An empty record. */
#define STEPGRAPH_RELAX_CHOICE_INIT { sizeof(stepgraph_relax_choice), 0, -1, 0, 0, -1, -1 }

/**
 * Read what was tried, as recorded first.
 *
 * @retval STEPGRAPH_OK            Filled up to its size.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a size too small, or there is no such record: the way to stop a loop.
 *
 * @threads{any} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_relax_get_choice(const stepgraph_relax *relax, uint32_t index, stepgraph_relax_choice *choice_out);

/** The report for a person to read, several lines; lives as long as @p relax. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_relax_text(const stepgraph_relax *relax);

/** The report as JSON; lives as long as @p relax. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_relax_json(const stepgraph_relax *relax);

#ifdef __cplusplus
}
#endif

#endif
