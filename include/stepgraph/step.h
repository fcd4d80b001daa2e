/**
 * @file
 * The step: recorded once, replayed many times.
 */
#ifndef STEPGRAPH_STEP_H
#define STEPGRAPH_STEP_H

#include "base.h"
#include "pin.h"
#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One stretch of work on a session's stream.
 *
 * Owns its graph. Belongs to a session, which may have several steps (one per shape, forward and update apart). The states and what
 * each call does in each of them:
 *
 * | state     | prepare         | capture            | end                | replay            | reset      | destroy       |
 * |-----------|-----------------|--------------------|--------------------|-------------------|------------|---------------|
 * | BEGUN     | -> PREPARED     | refused: prepare   | refused            | refused           | stays      | freed         |
 * | PREPARED  | stays           | -> CAPTURING       | refused            | refused           | -> BEGUN   | freed         |
 * | CAPTURING | refused         | refused: already   | -> READY or FAILED | refused           | -> BEGUN   | unwinds,freed |
 * | READY     | refused: reset  | refused: reset     | refused            | stays, or FAILED  | -> BEGUN   | freed         |
 * | FAILED    | first cause     | first cause        | first cause        | first cause       | -> BEGUN   | freed         |
 *
 * A refusal is #STEPGRAPH_ERR_STATE and changes nothing. In FAILED these calls repeat the status and the words of the first cause. Runs
 * without a graph are allowed in every state but CAPTURING.
 */
typedef struct stepgraph_step stepgraph_step;

/** States of a step. */
typedef enum stepgraph_state {
    STEPGRAPH_STEP_BEGUN = 1,     /**< Made, or reset. */
    STEPGRAPH_STEP_PREPARED = 2,  /**< One recording may follow. */
    STEPGRAPH_STEP_CAPTURING = 3, /**< The stream records. */
    STEPGRAPH_STEP_READY = 4,     /**< A graph is live. */
    STEPGRAPH_STEP_FAILED = 5     /**< The recording or a replay failed; stepgraph_step_error() says why. */
} stepgraph_state;

/** Bits of stepgraph_step_config::flags. */
enum {
    /** Record in the driver's GLOBAL mode: unsafe calls of *any* thread break the recording, not only those of this thread. */
    STEPGRAPH_STEP_GLOBAL = 1u << 0,
    /** Let a recording without any work pass. Refused by default: the work then went to another stream or device. */
    STEPGRAPH_STEP_ALLOW_EMPTY = 1u << 1,
    /** Let the graph hold addresses that no pin covers. Refused by default: a replay goes on using such an address after the host has
     *  moved what was there. For hosts that keep the memory in place by other means. */
    STEPGRAPH_STEP_ALLOW_UNREGISTERED = 1u << 2,
    /** Let a recording pass that holds fewer kernels or graphs than were counted. Refused by default: the missing ones went to another stream
     *  and would not be replayed. */
    STEPGRAPH_STEP_ALLOW_ESCAPED = 1u << 3,
    /** Refuse a replay when a FEED that the graph uses was not fed since the last one, or since a run of the step began that came after it. */
    STEPGRAPH_STEP_STRICT_FEEDS = 1u << 4,
    /** Measure from the start; see stepgraph_step_set_timing(). */
    STEPGRAPH_STEP_TIMING = 1u << 5,
    /** Let the graph use host memory: copies from or to it, and kernels that read it. Refused by default: it is read anew at every replay,
     *  when the host has long put something else there. Feeds and outputs are the way. Page-locked operands of copies are looked at before
     *  every replay, since launching over a freed one crashes the process; pageable ones nobody can look at. */
    STEPGRAPH_STEP_ALLOW_HOST_MEMORY = 1u << 6,
    /** Let the graph call host functions. Refused by default: what their argument points to may be gone at a replay. */
    STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS = 1u << 7,
    /** Let the graph hold an allocation that nothing in it frees. Refused by default: the second replay fails. What it has allocated is the host's to free,
     *  with cuMemFree() at the address that the audit tells: dropping the graph does not. */
    STEPGRAPH_STEP_ALLOW_ALLOCATIONS = 1u << 8,
    /** Let the graph hold addresses of memory that was freed, or freed and given out again. */
    STEPGRAPH_STEP_ALLOW_FREED = 1u << 9,
    /** Let the graph hold addresses of another device. */
    STEPGRAPH_STEP_ALLOW_FOREIGN = 1u << 10,
    /** Let the graph use the address from which a STATE was last committed, although it never uses the pin. */
    STEPGRAPH_STEP_ALLOW_FORMER_STATE = 1u << 11,
    /** Launch exactly the nodes that were recorded. By default a kernel of the library's stands in for each memset node, with the same bytes, value
     *  and order, because memset nodes make launching a graph slow for the host. What looks at the graph sees what was recorded
     *  in both cases. */
    STEPGRAPH_STEP_AS_RECORDED = 1u << 12,
    /** Let host functions have another argument in each recording: it is made for the recording, lives as long as the graph, and holds nothing
     *  that changes from step to step, such as what NCCL has its network threads do. Where two recordings are compared, such an argument is a
     *  fault otherwise. To be set together with #STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS. */
    STEPGRAPH_STEP_ALLOW_HOST_ARGUMENTS = 1u << 13,
    /** Look for addresses at every byte of the kernels' arguments, not only at multiples of 8: packed structs have them elsewhere. For hosts with such
     *  kernels; it takes the audit several times as long. */
    STEPGRAPH_STEP_SCAN_BYTES = 1u << 14
};

/** Options of stepgraph_step_begin(). Begin with #STEPGRAPH_STEP_CONFIG_INIT; a zero field means its default. */
typedef struct stepgraph_step_config {
    size_t size;             /**< sizeof(stepgraph_step_config). */
    uint32_t flags;          /**< Bits STEPGRAPH_STEP_…, or 0. Unknown bits are refused. */
    uint32_t liveness_every; /**< Adopted memory is looked at before every replay whose number is a multiple of this. 0: 64, or the number of
                                  adopted allocations where there are more, so that a replay pays for one look, on average. */
    const char *name;        /**< For messages; copied; at most #STEPGRAPH_NAME_MOST bytes. NULL: "step". */
} stepgraph_step_config;

/** All defaults. */
#define STEPGRAPH_STEP_CONFIG_INIT { sizeof(stepgraph_step_config), 0, 0, NULL }

/**
 * Make a step in state #STEPGRAPH_STEP_BEGUN. Makes no driver call.
 *
 * @param[in]  session   The step belongs to it.
 * @param[in]  config    Read before this returns. NULL: all defaults.
 * @param[out] step_out  Set only on success; give it back with stepgraph_step_destroy().
 *
 * @retval STEPGRAPH_OK            *step_out is the caller's.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL or a flag is unknown.
 * @retval STEPGRAPH_ERR_ABI       @p config sets a field that this library is too old for.
 * @retval STEPGRAPH_ERR_MEMORY    No host memory.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_begin(stepgraph_session *session, const stepgraph_step_config *config,
                                                    stepgraph_step **step_out);

/**
 * Do everything that may not happen while recording. Before this call the host has run the step at least once, so that kernels are
 * loaded and libraries have made their workspaces.
 *
 * One prepare allows one recording. Calling it again before that changes nothing.
 *
 * @retval STEPGRAPH_OK          The step is PREPARED.
 * @retval STEPGRAPH_ERR_STATE   See the table at #stepgraph_step.
 * @retval STEPGRAPH_ERR_MEMORY  No room for the list of commits.
 *
 * @threads{handle} @capture{no} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_prepare(stepgraph_step *step);

/**
 * Start recording. The host now enqueues its step on the session's stream, exactly as it always does; nothing of it runs.
 *
 * Until stepgraph_step_end(), in the thread that called this: no allocation or free on the device, no synchronisation, no query of
 * that stream, no work on other streams but forked ones.
 *
 * @retval STEPGRAPH_OK         The step is CAPTURING.
 * @retval STEPGRAPH_ERR_STATE  See the table at #stepgraph_step; another step of this session, or of this thread, records
 *                              (it is named); or a run of a step of this session is open.
 *
 * @threads{handle} @capture{no} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_capture(stepgraph_step *step);

/**
 * Stop recording, look at what was recorded, and make it ready to replay. Call it whatever happened in between: it always unwinds,
 * and leaves the stream usable. The recorded step has *not run*: replay it once to do so.
 *
 * Refuses (the step is then FAILED), each with its own words: a recording that broke, with the first cause and the stage; forked
 * streams that were not joined; a graph without work; fewer kernels than were counted; addresses that no pin covers.
 *
 * @retval STEPGRAPH_OK           The step is READY; the first replay carries no hidden upload.
 * @retval STEPGRAPH_ERR_STATE    The step does not record.
 * @retval STEPGRAPH_ERR_CAPTURE  The recording broke, or a forked stream was not joined.
 * @retval STEPGRAPH_ERR_REFUSED  A replay would be wrong.
 * @retval STEPGRAPH_ERR_MEMORY   No room for the graph.
 *
 * @threads{handle}, the thread that called stepgraph_step_capture() @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_end(stepgraph_step *step);

/**
 * Say that a launch of the host's own failed while the step records.
 *
 * The driver may carry on without it (a kernel of another context is simply left out), and a replay would then leave it out too. The first
 * report is the cause that stepgraph_step_end() gives. Launches through stepgraph_session_launch() report themselves.
 *
 * @param[in] step         A recording step.
 * @param[in] driver_call  Its name, such as "cuLaunchKernel".
 * @param[in] driver_code  Its CUresult; not 0.
 *
 * @retval STEPGRAPH_OK            Noted.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL or the code is 0.
 * @retval STEPGRAPH_ERR_STATE     The step does not record.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_report(stepgraph_step *step, const char *driver_call, int32_t driver_code);

/**
 * Run the recorded step once: one copy for everything that was fed, if anything was, and one launch.
 *
 * @retval STEPGRAPH_OK           Enqueued on the session's stream.
 * @retval STEPGRAPH_ERR_STATE    See the table at #stepgraph_step; or a step of this session records, or a run of one is open, such as a turn of a loop
 *                                in which the host launches.
 * @retval STEPGRAPH_ERR_REFUSED  A feed was not refreshed (with #STEPGRAPH_STEP_STRICT_FEEDS; the step stays READY), or memory of the host's was seen
 *                                to be freed or replaced (the step is FAILED). Nothing ran. The first replay of a recording looks, and then one in as many
 *                                as stepgraph_step_config::liveness_every says; each does where a copy to or from host memory uses it.
 * @retval STEPGRAPH_ERR_LOST     The context is gone, or this is a forked child: nothing ran. Or the launch reports a fault on the device, the
 *                                step's own or an earlier one; the step is FAILED.
 * @retval STEPGRAPH_ERR_DRIVER   The launch failed otherwise; the step is FAILED.
 *
 * @threads{handle} @capture{no} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_replay(stepgraph_step *step);

/**
 * Drop the graph, or the recording in progress, and go back to BEGUN: the way to record again. Waits for replays in flight. While
 * another step of this thread records, the driver's objects are kept until that is over.
 *
 * @retval STEPGRAPH_OK         The step is BEGUN.
 * @retval STEPGRAPH_ERR_STATE  This is a callback of its check or its verification. Nothing was done.
 * @retval STEPGRAPH_ERR_LOST   The context is gone; the step stays as it was.
 *
 * @threads{handle} @capture{yes} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_reset(stepgraph_step *step);

/**
 * Free @p step; NULL does nothing. Cannot fail. Waits for replays in flight and ends a recording in progress. While another step of
 * this thread records, the driver's objects are kept until that is over. Destroy steps before communicators whose collectives they
 * recorded.
 *
 * @threads{handle} @capture{yes} @waits{stream} @since 0.1
 */
STEPGRAPH_API void stepgraph_step_destroy(stepgraph_step *step);

/** The state now. @threads{handle} @capture{yes} @waits{never} */
STEPGRAPH_API stepgraph_state stepgraph_step_state(const stepgraph_step *step);

/** Why the step is FAILED; an empty record otherwise. Like stepgraph_last_error(), but kept. @threads{handle} @capture{yes} @waits{never} */
STEPGRAPH_API stepgraph_status stepgraph_step_error(const stepgraph_step *step, stepgraph_error_info *info_out);

/** The recorded CUgraph of a READY step, to look at or to print; NULL otherwise. Borrowed. @threads{handle} @capture{yes} @waits{never} */
STEPGRAPH_API struct CUgraph_st *stepgraph_step_graph(const stepgraph_step *step);

/* ---- stages and side streams ------------------------------------------------------------------------------------- */

/**
 * Begin a stage, such as "forward"; it ends at the next mark or at the end of the recording or run.
 *
 * While recording it also asks the driver whether the recording is still alive, so that a broken one is reported with the stage in
 * which it broke. In a run it splits time and launches by stage. Elsewhere it does nothing.
 *
 * @param[in] step   The step.
 * @param[in] stage  Copied; at most #STEPGRAPH_NAME_MOST bytes, of which the first 63 tell stages apart. At most 63 stages.
 *
 * @retval STEPGRAPH_OK            Noted.
 * @retval STEPGRAPH_ERR_ARGUMENT  No name or one that cannot be shown, or too many stages.
 * @retval STEPGRAPH_ERR_CAPTURE   The recording broke in the stage before. Call stepgraph_step_end().
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_mark(stepgraph_step *step, const char *stage);

/**
 * Let a side stream follow: what is enqueued on @p stream from now on comes after all that is on the session's stream so far, and, while
 * recording, becomes part of the step. To be joined before stepgraph_step_end().
 *
 * @param[in] step    Recording or running.
 * @param[in] stream  Another stream of the same context, best a non-blocking one: work on the legacy stream orders itself with others, or breaks the recording.
 * @param[in] name    For messages; copied; at most #STEPGRAPH_NAME_MOST bytes. NULL: "side stream".
 *
 * @retval STEPGRAPH_OK            Forked.
 * @retval STEPGRAPH_ERR_ARGUMENT  The session's own or the legacy stream, or one that is forked already.
 * @retval STEPGRAPH_ERR_STATE     The step neither records nor runs.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_fork(stepgraph_step *step, struct CUstream_st *stream, const char *name);

/**
 * Join a forked stream: what follows on the session's stream comes after all that is on @p stream so far.
 *
 * @retval STEPGRAPH_OK            Joined; it may be forked again.
 * @retval STEPGRAPH_ERR_ARGUMENT  @p stream is not forked.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_join(stepgraph_step *step, struct CUstream_st *stream);

/* ---- running without a graph ------------------------------------------------------------------------------------- */

/** Why a step runs without its graph; counted apart. */
typedef enum stepgraph_run {
    STEPGRAPH_RUN_WARMUP = 1,  /**< Before the recording, to warm caches and to measure. */
    STEPGRAPH_RUN_FRESH = 2,   /**< On purpose: this step is always launched call by call. */
    STEPGRAPH_RUN_FALLBACK = 3 /**< Because a replay was refused or failed. */
} stepgraph_run;

/**
 * Say that the host now launches the step call by call. What was fed is sent first; what is fed while the run is open is sent at once.
 *
 * @param[in] step  Not recording.
 * @param[in] kind  A #stepgraph_run.
 *
 * @retval STEPGRAPH_OK            The run is open.
 * @retval STEPGRAPH_ERR_ARGUMENT  An unknown kind.
 * @retval STEPGRAPH_ERR_STATE     The step records, or a run of a step of this session is open, which is named.
 *
 * @threads{handle} @capture{no} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_run_begin(stepgraph_step *step, stepgraph_run kind);

/**
 * Close the run. The very first run of a step is kept apart: it never enters a measurement.
 *
 * @retval STEPGRAPH_OK         Closed and counted.
 * @retval STEPGRAPH_ERR_STATE  No run is open, or forked streams are not joined (they are named; the run stays open).
 *
 * @threads{handle} @capture{no} @waits{never}, or the session's drain callback @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_run_end(stepgraph_step *step);

/* ---- what is known about a step ---------------------------------------------------------------------------------- */

/** Counts of a step. Begin with #STEPGRAPH_STEP_STATS_INIT. */
typedef struct stepgraph_step_stats {
    size_t size;                          /**< sizeof(stepgraph_step_stats). */
    uint64_t warmup_runs;                 /**< Executed: warm-up. */
    uint64_t fresh_runs;                  /**< Executed: fresh on purpose. */
    uint64_t fallback_runs;               /**< Executed: fallback. */
    uint64_t replays;                     /**< Executed: replays. */
    uint64_t captures;                    /**< Recordings that became ready. */
    uint64_t captured_not_run;            /**< 1: the graph has never been replayed, so the step it recorded is *not* done. */
    uint64_t nodes[STEPGRAPH_KINDS_ROOM]; /**< By #stepgraph_kind: nodes of the live graph, exact, child graphs included. */
    uint64_t nodes_other;                 /**< Nodes of no counted kind: allocations, events, empty ones. */
    uint64_t nodes_total;                 /**< All. */
    uint64_t nodes_unread;                /**< Kernel nodes whose arguments could not be read: not checked. */
    uint64_t pins_used;                   /**< Pins that the live graph refers to. */
    uint64_t pin_nodes;                   /**< Nodes of the live graph that commit pins: the price P. */
    uint64_t pin_bytes;                   /**< Bytes that they copy at each replay. */
    uint64_t unregistered;                /**< Addresses in the live graph that no pin covers. */
    uint64_t counted_kernels;             /**< Kernels that the host and the wrapper counted while recording. */
    uint64_t sets_as_kernels;             /**< Sets among the nodes that are launched as kernels; see #STEPGRAPH_STEP_AS_RECORDED. The log says
                                               why others are not. */
    uint64_t lanes;                       /**< Of its relaxed replays; 0: it is replayed in the order that was recorded. See stepgraph_step_relax(). */
} stepgraph_step_stats;

/** An empty record. */
#define STEPGRAPH_STEP_STATS_INIT { sizeof(stepgraph_step_stats), 0, 0, 0, 0, 0, 0, { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Read the counts. @retval STEPGRAPH_OK Filled up to its size. @threads{handle} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API stepgraph_status stepgraph_step_get_stats(const stepgraph_step *step, stepgraph_step_stats *stats_out);

/**
 * Switch measuring on or off.
 *
 * On: runs, their stages, and replays are timed on the host by the monotonic clock and on the device by events around them, which costs a
 * few microseconds a step. Nothing waits for that: device times are taken when they are there, and where 16 runs or 16 replays are in flight
 * already, another one has none. Off, the default: no clock is read and no event recorded.
 *
 * @retval STEPGRAPH_OK         Switched.
 * @retval STEPGRAPH_ERR_STATE  A run is open or the step records.
 *
 * @threads{handle} @capture{no} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_set_timing(stepgraph_step *step, int32_t on);

/** One stage of the warm runs; times are medians. Begin with #STEPGRAPH_STAGE_INIT. */
typedef struct stepgraph_stage {
    size_t size;       /**< sizeof(stepgraph_stage). */
    char name[64];     /**< As marked; "" for the work before the first mark. */
    uint64_t launches; /**< Launches of all kinds but graphs that the host and the wrapper counted in the last warm run. */
    double host_us;    /**< Host time, microseconds. Negative: not measured. */
    double device_us;  /**< Device time, microseconds. Negative: not measured. */
    uint64_t nodes;    /**< Nodes that the last recording has in this stage. */
    uint64_t library_launches; /**< The library's own launches in the last warm run: commits. */
} stepgraph_stage;

/** An empty stage. */
#define STEPGRAPH_STAGE_INIT { sizeof(stepgraph_stage), { 0 }, 0, -1, -1, 0, 0 }

/**
 * Read one stage.
 *
 * @param[in]     step       The step.
 * @param[in]     index      From 0, in the order of their first mark.
 * @param[in,out] stage_out  Filled up to its size.
 *
 * @retval STEPGRAPH_OK            Filled.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a size too small, or there is no such stage: the way to stop a loop.
 *
 * @threads{handle} @capture{no} @waits{stream} with timing, for runs in flight @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_get_stage(stepgraph_step *step, uint32_t index, stepgraph_stage *stage_out);

/** Does a graph pay? */
typedef enum stepgraph_answer {
    STEPGRAPH_UNKNOWN = 0, /**< Something is not measured; stepgraph_verdict::missing says what. */
    STEPGRAPH_WIN = 1,     /**< By both rules. */
    STEPGRAPH_NULL = 2     /**< By at least one rule it does not pay. */
} stepgraph_answer;

/** Bits of stepgraph_verdict::missing. */
enum {
    STEPGRAPH_MISSING_COUNTER = 1u << 0,  /**< Nobody counts launches. */
    STEPGRAPH_MISSING_RUNS = 1u << 1,     /**< Fewer than two warm runs besides the first one. */
    STEPGRAPH_MISSING_DEVICE = 1u << 2,   /**< No device time: switch timing on. */
    STEPGRAPH_MISSING_REPLAYS = 1u << 3,  /**< No replay was timed. */
    STEPGRAPH_MISSING_UNSTEADY = 1u << 4, /**< The last two warm runs launched different numbers of kernels. */
    STEPGRAPH_MISSING_EXACT = 1u << 5     /**< The counter is a lower bound: give the session a drain callback. */
};

/** The numbers behind the decision, all measured, none assumed. Begin with #STEPGRAPH_VERDICT_INIT. Times are medians. */
typedef struct stepgraph_verdict {
    size_t size;             /**< sizeof(stepgraph_verdict). */
    uint32_t answer;         /**< A #stepgraph_answer. */
    uint32_t missing;        /**< Bits STEPGRAPH_MISSING_…: why it is UNKNOWN. */
    int64_t launches;        /**< L: launches of one step, from the last warm run; -1: not instrumented. */
    int64_t pin_launches;    /**< P: launches that keep the pins, in the graph; -1: no graph. */
    uint64_t pin_bytes;      /**< Bytes that they move. */
    uint64_t warm_runs;      /**< Runs measured, the first one left out. */
    uint64_t timed_replays;  /**< Replays measured. */
    double host_us_launch;   /**< Host time of one launch: fresh host time over L. */
    double host_us_fresh;    /**< Host time of a fresh step. */
    double host_us_replay;   /**< Host time of a replay, feeds included. */
    double device_us_fresh;  /**< Device time of a fresh step, idle gaps included. */
    double device_us_replay; /**< Device time of a replay, commits included. */
    double step_us_fresh;    /**< Expected time of a fresh step: the larger of host and device time. */
    double step_us_replay;   /**< Expected time of a replay: the larger of host and device time. */
    int32_t rule_launches;   /**< P < L - 1: 1 holds, 0 does not, -1 unknown. */
    int32_t rule_time;       /**< step_us_replay < step_us_fresh: likewise. */
} stepgraph_verdict;

/** An empty verdict. */
#define STEPGRAPH_VERDICT_INIT { sizeof(stepgraph_verdict), 0, 0, -1, -1, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1 }

/**
 * Say whether the graph pays. Host times need timing on; see stepgraph_step_set_timing().
 *
 * @retval STEPGRAPH_OK            *verdict_out is filled up to its size; what was not measured is -1.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL or a size too small.
 *
 * @threads{handle} @capture{no} @waits{stream} with timing, for work in flight @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_get_verdict(stepgraph_step *step, stepgraph_verdict *verdict_out);

#ifdef __cplusplus
}
#endif

#endif
