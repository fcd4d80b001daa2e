/**
 * @file
 * The loop: the policy around a graph, so that a trainer becomes fast by changing ten lines and stays right.
 */
#ifndef STEPGRAPH_LOOP_H
#define STEPGRAPH_LOOP_H

#include "audit.h"
#include "base.h"
#include "check.h"
#include "session.h"
#include "step.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Decides for each step of a training run how it is done: launched by the host, recorded, or replayed.
 *
 * ```c
 * for (uint64_t k = 0; k < steps; k++) {
 *     do {
 *         stepgraph_loop_begin(loop, k, &turn);
 *         if (turn.feed) feed_batch(k);
 *         if (turn.run)  train_step(k);
 *         stepgraph_loop_end(loop, &turn);
 *     } while (turn.again);
 * }
 * ```
 *
 * A run begins with warm-up steps, launched as always. Then two steps are recorded, each executed once by one launch, and compared; then some
 * are launched and replayed from the same state, and every byte is compared. Only what passes all this is replayed. What does not goes down a
 * ladder: *rerecord* (every step is recorded, an executable is updated in place and launched once, which is right for whatever moves or
 * changes), and below it *fresh* (the host launches, as without this library). Each step is executed exactly once, whatever happens.
 *
 * Belongs to a session; owns its steps. Destroy it before the session is closed.
 */
typedef struct stepgraph_loop stepgraph_loop;

/** How a step is done when all is decided, best first. */
typedef enum stepgraph_rung {
    STEPGRAPH_RUNG_NONE = 0,     /**< Not decided yet: warm-up, recordings, checks. */
    STEPGRAPH_RUNG_REPLAY = 1,   /**< One graph, replayed. */
    STEPGRAPH_RUNG_RERECORD = 2, /**< Recorded every time, the executable updated in place. */
    STEPGRAPH_RUNG_FRESH = 3     /**< Launched by the host. */
} stepgraph_rung;

/** What happens in one turn. */
typedef enum stepgraph_turn_kind {
    STEPGRAPH_TURN_WARMUP = 1,    /**< The host launches, before there is a graph. */
    STEPGRAPH_TURN_REHEARSAL = 2, /**< The same, and what it did to the pins is undone; see #STEPGRAPH_LOOP_RESTORE. */
    STEPGRAPH_TURN_RECORD = 3,    /**< What the host launches is recorded; the end runs it, once. */
    STEPGRAPH_TURN_LOOK = 4,      /**< Recorded to be compared only: the step is done already, and does not run again. */
    STEPGRAPH_TURN_CHECK = 5,     /**< The host launches; the end replays the same step from the same state and compares. */
    STEPGRAPH_TURN_REPLAY = 6,    /**< The end replays. */
    STEPGRAPH_TURN_RERECORD = 7,  /**< Recorded; the end updates the executable and launches it. */
    STEPGRAPH_TURN_FRESH = 8,     /**< The host launches, as it has declared. */
    STEPGRAPH_TURN_FALLBACK = 9   /**< The host launches, since something stands against replaying. */
} stepgraph_turn_kind;

/** Number of kinds in this version, 0 included; arrays have room for more. */
#define STEPGRAPH_TURN_KINDS 10
/** Length of arrays by turn kind in structs. */
#define STEPGRAPH_TURN_KINDS_ROOM 16

/** Why a step is not replayed. */
typedef enum stepgraph_why {
    STEPGRAPH_WHY_NONE = 0,         /**< It is. */
    STEPGRAPH_WHY_STARTING = 1,     /**< Warm-up, recordings and checks come first. */
    STEPGRAPH_WHY_DECLARED = 2,     /**< The host wants it launched, by period or for this turn. */
    STEPGRAPH_WHY_BROKEN = 3,       /**< The recording broke. */
    STEPGRAPH_WHY_REFUSED = 4,      /**< The audit refused the recording. */
    STEPGRAPH_WHY_UNREGISTERED = 5, /**< The graph holds addresses that no pin covers. */
    STEPGRAPH_WHY_MOVED = 6,        /**< An address is another one in the next step. */
    STEPGRAPH_WHY_SCALAR = 7,       /**< A value is another one in the next step. */
    STEPGRAPH_WHY_TOPOLOGY = 8,     /**< The next step has other nodes. */
    STEPGRAPH_WHY_UPDATE = 9,       /**< The driver keeps refusing to update the executable. */
    STEPGRAPH_WHY_DIVERGED = 10,    /**< A check found other results than those of fresh launches. */
    STEPGRAPH_WHY_UNPROVEN = 11,    /**< A check could not be done, or proves nothing. */
    STEPGRAPH_WHY_MEMORY = 12,      /**< No memory for the graph, or none within the budget. */
    STEPGRAPH_WHY_BOUND = 13,       /**< More keys than graphs, all of them in use. */
    STEPGRAPH_WHY_REPLAY = 14,      /**< A replay was refused, or failed. */
    STEPGRAPH_WHY_CLOCK = 15,       /**< It takes longer than launching. */
    STEPGRAPH_WHY_DROPPED = 16      /**< The host dropped the graph. */
} stepgraph_why;

/** Number of reasons in this version, 0 included; arrays have room for more. */
#define STEPGRAPH_WHYS 17
/** Length of arrays by reason in structs. */
#define STEPGRAPH_WHYS_ROOM 32

/** The name of a rung, such as "replay". @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_rung_name(uint32_t rung);
/** The name of a kind of turn, such as "rerecord". @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_turn_kind_name(uint32_t kind);
/** The name of a reason, such as "moved pointer". @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_why_name(uint32_t why);

/** Bits of stepgraph_loop_config::flags. */
enum {
    /** Warm-up runs leave no trace: STATE and OUTPUT pins are put back after each of them, and step k is asked for again, so that the training has
     *  the same steps as without warm-up. Memory that no such pin covers is not put back, blocks of arenas included, nor are FEED and CELL pins: a
     *  step that writes one of these, seen from the second run on, ends with #STEPGRAPH_ERR_REFUSED. (Not so with adopted ones, which the
     *  host may fill at any time.) No STATE is made in such a run. Without this flag warm-up runs are the first steps of the training. Needs room for one copy of STATE and OUTPUT pins, and of FEED and CELL pins that are not adopted. */
    STEPGRAPH_LOOP_RESTORE = 1u << 0,
    /** Replay what the comparison found nothing against, without comparing results. */
    STEPGRAPH_LOOP_NO_CHECK = 1u << 1,
    /** Replay also where a check found no difference and no way to see one, as in a step without STATE, or one that changes no STATE
     *  and no OUTPUT. */
    STEPGRAPH_LOOP_ALLOW_UNPROVEN = 1u << 2,
    /** Measure all the time, not only until the verdict is known; see stepgraph_step_set_timing(). Costs a few microseconds a step. */
    STEPGRAPH_LOOP_TIMING = 1u << 3,
    /** Keep what stepgraph_loop_report() needs for #STEPGRAPH_REPORT_TRACE. Measures all the time, and as many turns in flight as it keeps. */
    STEPGRAPH_LOOP_TRACE = 1u << 4,
    /** Stay on a rung although launching is faster. */
    STEPGRAPH_LOOP_IGNORE_CLOCK = 1u << 5,
    /** Let the clock decide on the software driver too, whose times mean nothing. */
    STEPGRAPH_LOOP_SOFTWARE_CLOCK = 1u << 6,
    /** Do not poison SCRATCH pins in checks. For a host whose memory pool is one and holds what must survive. It is not put back either: what the step
     *  itself changes there from step to step would be changed once more by each replay of a check, and is a STATE. */
    STEPGRAPH_LOOP_KEEP_SCRATCH = 1u << 7,
    /** Never go down to rerecording: replay or launch. */
    STEPGRAPH_LOOP_NO_RERECORD = 1u << 8
};

/** Options of stepgraph_loop_create(). Begin with #STEPGRAPH_LOOP_CONFIG_INIT; a zero field means its default. */
typedef struct stepgraph_loop_config {
    size_t size;             /**< sizeof(stepgraph_loop_config). */
    uint32_t flags;          /**< Bits STEPGRAPH_LOOP_…, or 0. Unknown bits are refused. */
    uint32_t step_flags;     /**< Bits STEPGRAPH_STEP_… of the recordings. What they do not allow is not replayed. */
    uint32_t liveness_every; /**< As in stepgraph_step_config. */
    uint32_t warmup_runs;    /**< Runs before the first recording. 0: 3. */
    uint64_t fresh_every;    /**< Steps whose number is a multiple of this are launched: for logging inside the step, and the like. No recording
                                  follows from it. 0: none. */
    uint64_t check_every;    /**< Every so many replays the step is also launched, and compared. 0: never again after the start. */
    uint32_t check_steps;    /**< Steps that are checked before the first replay. 0: 3. */
    uint32_t max_graphs;     /**< Graphs that live at once, one for each key. 0: 8. At most 64. */
    uint64_t graph_bytes;    /**< Device memory that all graphs of the loop may take, estimated. 0: no limit. */
    uint64_t snapshot_bytes; /**< Device memory for snapshots in checks, at most; beyond it page-locked host memory is used. 0: half of what is
                                  free. */
    uint64_t timeout_ns;     /**< How long to wait for a replay that is checked before it counts as hung. 0: 60 seconds. */
    uint32_t trace_turns;    /**< Turns that #STEPGRAPH_LOOP_TRACE keeps, the latest. 0: 1024. */
    uint32_t executables;    /**< Of each graph that is replayed, so many are tried, and the fastest is kept: see stepgraph_step_tune(). It begins when
                                  the verdict is known. 0: as many as take less than 1/512 of the free device memory, at most 16, where the device
                                  takes less than 10 us a node and @c graph_bytes is 0. 1: none but the first. On the software driver only with #STEPGRAPH_LOOP_SOFTWARE_CLOCK. */
    stepgraph_status (*rewind)(void *user, uint64_t k); /**< Puts what the host keeps in its own variables (a step counter, a generator) back to
                                  where it was before step k, whose launches it is going to be asked for once more. NULL: it keeps nothing
                                  that changes by launching a step. */
    void *user;              /**< Passed to @c rewind. */
    const struct stepgraph_check_config *check; /**< With its @c enqueue set, what is checked before the first replay is checked by
                                  stepgraph_check_run() with these options, instead of by the loop's turns; @c first and @c audit are the loop's to
                                  set. Copied. What a comparison is in doubt about is checked by turns all the same. NULL: all is. */
    const char *name;        /**< For messages; copied; at most #STEPGRAPH_NAME_MOST bytes. NULL: "loop". */
    const struct stepgraph_relax_config *relax; /**< Once a graph is proven, relax it with these options, and prove it again: its steps are checked as
                                  before, and one that differs puts it back to what was recorded. Copied, but not what it points to, which lives
                                  as long as the loop. NULL: graphs are replayed as they were recorded. */
    stepgraph_status (*agree)(void *user, uint64_t k, uint64_t mine, uint64_t *largest_out); /**< For steps that several ranks do together,
                                  with collectives in them: sets *largest_out to the largest @c mine of all ranks. The loop asks wherever its
                                  own findings would decide how steps are done from step k on, and the worst finding of any rank decides for
                                  all. Every rank is asked equally often and in the same order, as long as all begin the same steps with the
                                  same keys, flags and options, and drop and cancel together; no replay asks. Called between steps, in the
                                  thread of the turn, with nothing recording. It should give up after a while: what it answers then ends the
                                  turn. Replays cannot be taken back, so a refused one ends the turn with an error too, instead of with
                                  launches. Not together with @c check or @c relax. NULL: this process decides
                                  alone. */
} stepgraph_loop_config;

/** All defaults. */
#define STEPGRAPH_LOOP_CONFIG_INIT { sizeof(stepgraph_loop_config), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL }

/**
 * Make a loop. Makes no driver call.
 *
 * @param[in]  session   The loop belongs to it.
 * @param[in]  config    Read before this returns. NULL: all defaults.
 * @param[out] loop_out  Set only on success; give it back with stepgraph_loop_destroy().
 *
 * @retval STEPGRAPH_OK            *loop_out is the caller's.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a flag is unknown, a number out of range, or @c agree is set together with
 *                                 @c check or @c relax.
 * @retval STEPGRAPH_ERR_ABI       @p config sets a field that this library is too old for.
 * @retval STEPGRAPH_ERR_MEMORY    No host memory.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_loop_create(stepgraph_session *session, const stepgraph_loop_config *config, stepgraph_loop **loop_out);

/** Free a loop with all its graphs; NULL does nothing. Cannot fail. An open turn is cancelled. @threads{handle} @capture{yes} @waits{stream} */
STEPGRAPH_API void stepgraph_loop_destroy(stepgraph_loop *loop);

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/** Bits of stepgraph_turn::flags. */
enum {
    /** The host launches this step itself: it logs inside, or does something else that no graph should hold. No recording follows from it. */
    STEPGRAPH_TURN_LAUNCH = 1u << 0,
    /**
     * After this step no variable of the host's holds an address of memory that the step allocated: what lives from step to step stays where it is.
     * Then the step may be recorded a third time, to tell what is left over in arguments from what changes, also where an address seems to move.
     * Without, such a step is recorded every time: what only the third recording allocated nothing would have written.
     */
    STEPGRAPH_TURN_KEEPS_NOTHING = 1u << 1
};

/** One turn. Begin with #STEPGRAPH_TURN_INIT, once; the same one serves for all steps. */
typedef struct stepgraph_turn {
    size_t size;          /**< sizeof(stepgraph_turn). */
    uint64_t key;         /**< Set by the host: which graph. Steps of the same key launch the same kernels in the same order: one key for each
                               shape, for training and evaluation, for accumulating and updating. */
    uint32_t flags;       /**< Set by the host: bits STEPGRAPH_TURN_…, or 0. */
    int32_t feed;         /**< 1: hand over the inputs of this step now, with stepgraph_pin_feed(). 0: they are there from the turn before. */
    int32_t run;          /**< 1: enqueue the step's launches now, on the session's stream. */
    int32_t again;        /**< Set by the end; 1: step k is not done, or is to be looked at once more: the same turn again. */
    uint32_t kind;        /**< A #stepgraph_turn_kind. */
    uint32_t rung;        /**< A #stepgraph_rung: how steps of this key are done. */
    uint32_t why;         /**< A #stepgraph_why: why this one is not replayed. */
    uint32_t reserved;    /**< 0. */
    stepgraph_step *step; /**< To mark stages on, or to fork side streams of. Valid until the end of the turn. */
} stepgraph_turn;

/** An empty turn of key 0. */
#define STEPGRAPH_TURN_INIT { sizeof(stepgraph_turn), 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL }

/**
 * Begin step k: decide how it is done, and start what comes before the host's launches.
 *
 * While the host launches the step itself, a value travels to the device when it is fed; otherwise all go in one copy.
 *
 * @param[in]     loop  No turn is open.
 * @param[in]     k     Number of the step, the host's. After a turn with @c again set, the same k and key.
 * @param[in,out] turn  Read: size, key, flags. All others are set.
 *
 * @retval STEPGRAPH_OK            Do what @p turn says, then call stepgraph_loop_end().
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, an unknown flag, or the key is #STEPGRAPH_KEY_ALL.
 * @retval STEPGRAPH_ERR_STATE     A turn is open, the turn before asked for its step again, and this is another step or key; or
 *                                 something of the session records, or a run is open, such as a turn of another loop.
 * @retval STEPGRAPH_ERR_ABI       @p turn is larger than this library knows, with something set in it.
 * @retval STEPGRAPH_ERR_REFUSED   With #STEPGRAPH_LOOP_RESTORE: the memory of an adopted pin is gone; the pin is named.
 * @retval STEPGRAPH_ERR_LOST      The context is gone, or a fault on the device.
 * @retval STEPGRAPH_ERR_MEMORY    No host memory; with #STEPGRAPH_LOOP_RESTORE, no room for a copy of the pins.
 * @return Otherwise why what ran when relaxing was tried could not be undone, as for stepgraph_loop_end().
 *
 * @threads{handle} @capture{no} @waits{never}; before recordings, warm-up runs that are undone and checks the device @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_loop_begin(stepgraph_loop *loop, uint64_t k, stepgraph_turn *turn);

/**
 * End the turn: replay, or end the recording and run it, compare, check.
 *
 * Whatever stands against a replay is no error here: the step is asked for again, to be launched by the host, and the statistics and the log
 * say why. An error means that the step is not done; see the record for what to do. Not so with @c agree set, in a turn that checks or where the ranks could
 * not agree: there the step may be done, but this rank can no longer follow the others, which have to go back to a checkpoint with it.
 *
 * @retval STEPGRAPH_OK            The step is enqueued, or @c again is set.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL.
 * @retval STEPGRAPH_ERR_STATE     No turn is open, or a callback of the loop calls this; or forked streams are not joined in a step that the host
 *                                 launched: join them, and end the turn then; or another thread than this one records. Or the host has
 *                                 launched a step that was to be replayed, although @c run was 0: the launches have done it, and it was not replayed. This is seen in the first replays, where launches
 *                                 are counted.
 * @retval STEPGRAPH_ERR_REFUSED   A feed was not refreshed, with #STEPGRAPH_STEP_STRICT_FEEDS: begin the step again, and feed. Or warm-up runs cannot be
 *                                 undone, with #STEPGRAPH_LOOP_RESTORE: the step writes a FEED or a CELL, which is named.
 * @retval STEPGRAPH_ERR_LOST      The context is gone, or a fault on the device.
 * @return Otherwise what the rewind callback or the agree callback answered; or, with the latter, why a replay failed. Or why what a check, a
 *         rehearsal, a broken recording or trying to relax has run could not be undone: the message says to go back to a checkpoint.
 *
 * @threads{handle}, the thread that began the turn @capture{no} @waits{never}; around recordings the stream, in checks and where something is
 * put back the device @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_loop_end(stepgraph_loop *loop, stepgraph_turn *turn);

/**
 * Give up an open turn, or one that asked for the step again: a recording is dropped, and the step does not count as done. What the host launched
 * by itself has run or will; a rehearsal is put back, and so is what went to another stream in a turn of kind record. A step that was only to be looked
 * at once more is done, and stays so: stepgraph_loop_stats::steps counts it.
 *
 * @retval STEPGRAPH_OK         No turn is open.
 * @retval STEPGRAPH_ERR_STATE  A callback of the loop calls this. Nothing was done.
 * @return Otherwise why what has run could not be put back: the message says to go back to a checkpoint. The turn is given up all the same.
 *
 * @threads{handle} @capture{yes} @waits{stream}, or the device where something is put back @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_loop_cancel(stepgraph_loop *loop);

/** For stepgraph_loop_drop(): all keys. */
#define STEPGRAPH_KEY_ALL UINT64_MAX

/**
 * Drop the graph of a key, or of all, and begin again with recordings: pins are registered anew, a schedule goes on with other kernels, the
 * host knows of something that the graph cannot know. What is decided against a key is forgotten too.
 *
 * @param[in] loop  No turn is open, or to be taken again.
 * @param[in] key   One key, or #STEPGRAPH_KEY_ALL.
 * @param[in] why   A few words for the log and the statistics. NULL: none.
 *
 * @retval STEPGRAPH_OK         No graph of that key lives.
 * @retval STEPGRAPH_ERR_STATE  A turn is open or to be taken again, or a callback of the loop runs.
 * @retval STEPGRAPH_ERR_LOST   The context is gone.
 *
 * @threads{handle} @capture{yes} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_loop_drop(stepgraph_loop *loop, uint64_t key, const char *why);

/* ---- what is known ----------------------------------------------------------------------------------------------- */

/** Counts of a loop. Begin with #STEPGRAPH_LOOP_STATS_INIT. */
typedef struct stepgraph_loop_stats {
    size_t size;                               /**< sizeof(stepgraph_loop_stats). */
    uint64_t steps;                            /**< Done, each executed once. */
    uint64_t turns[STEPGRAPH_TURN_KINDS_ROOM]; /**< Ended, by #stepgraph_turn_kind. All but rehearsals and looks did a step. */
    uint64_t retries;                          /**< Turns that had to be taken again, since the step was not done. */
    uint64_t cancelled;                        /**< Turns that were given up. */
    uint64_t causes[STEPGRAPH_WHYS_ROOM];      /**< Steps done otherwise than by a replay, by #stepgraph_why. */
    uint64_t recordings;                       /**< That became ready. */
    uint64_t recordings_failed;                /**< That broke, or were refused. */
    uint64_t instantiations;                   /**< Executables made. */
    uint64_t updates;                          /**< Executables updated in place. */
    uint64_t updates_refused;                  /**< By the driver; the executable was made anew. */
    uint64_t graphs;                           /**< Alive now, */
    uint64_t nodes;                            /**< their nodes, */
    uint64_t device_bytes;                     /**< device memory, estimated, */
    uint64_t host_bytes;                       /**< and host memory. */
    uint64_t graphs_dropped;                   /**< To make room for others. */
    uint64_t checks;                           /**< Steps, or runs of steps, that were checked. */
    uint64_t checks_identical;                 /**< Of these: every byte the same. */
    uint64_t checks_diverged;                  /**< Of these: a replay gave something else. */
    uint64_t checks_inconclusive;              /**< Of these: replays differ from replays by themselves. Where they do not in a pin that differs from the
                                                    launches, the next steps are checked as well, and after three in a row the check counts as diverged. */
    uint64_t checks_unproven;                  /**< Of these: no difference, and a planted fault was not seen either. */
    uint64_t checks_failed;                    /**< That could not be done. */
    uint32_t rung;                             /**< A #stepgraph_rung, */
    uint32_t why;                              /**< and a #stepgraph_why: of the key of the last turn. */
    double seconds_saved;                      /**< Against launching all steps, from medians; 0 while either time is unknown. */
    char words[512];                           /**< Why steps of that key are not replayed; "". */
    uint64_t relaxed;                          /**< Graphs alive that are replayed relaxed. */
    uint64_t relax_refused;                    /**< Graphs that could not be relaxed. */
    uint64_t relax_diverged;                   /**< Relaxed graphs that went back to what was recorded, since a check found other results. */
    uint64_t doubts;                           /**< Comparisons that could not tell values from what is left over; the checks decided. */
} stepgraph_loop_stats;

/** Empty counts. */
#define STEPGRAPH_LOOP_STATS_INIT                                                                                                      \
    { sizeof(stepgraph_loop_stats), 0, { 0 }, 0, 0, { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, 0, 0, 0, 0 }

/** Read the counts; at any time, also in a turn. @retval STEPGRAPH_OK Filled up to its size. @threads{handle} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API stepgraph_status stepgraph_loop_get_stats(const stepgraph_loop *loop, stepgraph_loop_stats *stats_out);

/** What is known about one key. Begin with #STEPGRAPH_LOOP_GRAPH_INIT. */
typedef struct stepgraph_loop_graph {
    size_t size;           /**< sizeof(stepgraph_loop_graph). */
    uint64_t key;          /**< The key. */
    uint32_t rung;         /**< A #stepgraph_rung. */
    uint32_t why;          /**< A #stepgraph_why. */
    uint64_t steps;        /**< Done. */
    uint64_t replays;      /**< Of these, by replays. */
    uint64_t nodes;        /**< Of the live graph; 0: none. */
    uint64_t device_bytes; /**< Estimated: the driver takes about 2.6 KB a node, and lists and allocations of the graph come on top. */
    uint64_t host_bytes;   /**< The library's. */
    uint64_t turns_ago;    /**< Turns since its last one. */
    char words[512];       /**< Why it is not replayed; "". */
} stepgraph_loop_graph;

/** An empty record. */
#define STEPGRAPH_LOOP_GRAPH_INIT { sizeof(stepgraph_loop_graph), 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 } }

/**
 * Read what is known about one key, by index from 0.
 *
 * @retval STEPGRAPH_OK            Filled up to its size.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a size too small, or there is no such key: the way to stop a loop.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_loop_get_graph(const stepgraph_loop *loop, uint32_t index, stepgraph_loop_graph *graph_out);

/**
 * Whether graphs pay for a key, from the loop's own warm runs and first replays; see stepgraph_step_get_verdict().
 *
 * @retval STEPGRAPH_OK            *verdict_out is filled up to its size.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, or no step of that key was done.
 * @retval STEPGRAPH_ERR_STATE     A step records.
 *
 * @threads{handle} @capture{no} @waits{stream} with timing, for work in flight @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_loop_get_verdict(stepgraph_loop *loop, uint64_t key, stepgraph_verdict *verdict_out);

/** The comparison of a key's two recordings, or why one was refused; NULL: none yet. Borrowed until the next begin of a turn of that key.
 *  @threads{handle} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const stepgraph_audit *stepgraph_loop_audit(const stepgraph_loop *loop, uint64_t key);

/** The last check of a key by stepgraph_check_run(); NULL: none. Borrowed until the next begin of a turn of that key. @threads{handle}
 *  @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const stepgraph_check *stepgraph_loop_check(const stepgraph_loop *loop, uint64_t key);

/** What relaxing the graph of a key found. Where it is replayed as recorded since it could not be relaxed, or since a check found other results, the
 *  text says why and the numbers are those of an empty summary. NULL: not tried. Borrowed until the next begin of a turn of that key.
 *  @threads{handle} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const struct stepgraph_relax *stepgraph_loop_relax(const stepgraph_loop *loop, uint64_t key);

/** The step of a key: to draw it, or to read its stages and counts. Whatever changes its state is the loop's to call. NULL: none yet. Borrowed
 *  until the next begin of a turn of that key. @threads{handle} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API stepgraph_step *stepgraph_loop_step(const stepgraph_loop *loop, uint64_t key);

/** Forms of stepgraph_loop_report(). */
typedef enum stepgraph_report {
    STEPGRAPH_REPORT_TEXT = 1, /**< Tables: stages with host time, device time and launches; counts; the verdict. */
    STEPGRAPH_REPORT_JSON = 2, /**< The same as data. */
    STEPGRAPH_REPORT_TRACE = 3 /**< The latest turns as trace events, for chrome://tracing, Perfetto and the like; see #STEPGRAPH_LOOP_TRACE. Where
                                    device times stand on the axis is estimated; how long they are is measured. */
} stepgraph_report;

/**
 * Write a report.
 *
 * Times are medians of warm runs, the first one apart.
 *
 * @param[in]  loop      No turn is open.
 * @param[in]  form      A #stepgraph_report.
 * @param[out] text_out  Set only on success. Lives until the next report, or the loop's end.
 *
 * @retval STEPGRAPH_OK            *text_out is set.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, an unknown form, or a trace was not asked for.
 * @retval STEPGRAPH_ERR_STATE     A turn is open.
 * @retval STEPGRAPH_ERR_MEMORY    No host memory.
 *
 * @threads{handle} @capture{no} @waits{stream} for work in flight @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_loop_report(stepgraph_loop *loop, uint32_t form, const char **text_out);

#ifdef __cplusplus
}
#endif

#endif
