/**
 * @file
 * Tuning: of several executables of one recording, the fastest.
 */
#ifndef STEPGRAPH_TUNE_H
#define STEPGRAPH_TUNE_H

#include "base.h"
#include "step.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most executables that are tried; arrays have as many elements. */
#define STEPGRAPH_TUNE_MOST 16

/**
 * Make more executables of a READY step, have its next replays tell which is the fastest, and keep that one.
 *
 * Executables that the driver makes of one and the same graph differ in how long the device takes with them, all of it the same work on the same
 * bytes: of a step of 1,483 kernels of PyTorch's by up to 7 %, each always the same (H200, driver 580). And making more of them may bring on a state
 * of the driver's in which all take 5 to 14 % less; the more are made, the likelier it is. Both show in steps of many short kernels; where kernels
 * take 10 us and more, hardly. See the manual's page about performance.
 *
 * No step is run for it. The next replays are made by one executable after the other, five by each, with an event before and behind. Nothing waits
 * for their times: the first replay that finds all of them there destroys all executables but the fastest.
 *
 * Each further executable takes as long to make as the one of stepgraph_step_end(), and as much device memory (some 2.6 kB a node on an
 * H200), which the driver keeps for executables to come when it is destroyed. Recording again, stepgraph_step_relax() and stepgraph_step_unrelax()
 * end it. Tune a relaxed step after it was relaxed.
 *
 * A call takes the place of an earlier one: of that, the executable stays that was chosen, or that there was before if none was yet, also where this
 * call fails, and what was measured is forgotten. A failure changes nothing else.
 *
 * @param[in] step         READY.
 * @param[in] executables  How many are tried in all, 2 to #STEPGRAPH_TUNE_MOST. 0: so many.
 *
 * @retval STEPGRAPH_OK               Trying goes on with the next replay; see stepgraph_step_get_tuning().
 * @retval STEPGRAPH_ERR_ARGUMENT     @p step is NULL, or @p executables out of range.
 * @retval STEPGRAPH_ERR_STATE        The step is not READY, or something of the session records.
 * @retval STEPGRAPH_ERR_REFUSED      The module of a kernel was unloaded since; it is named. Replays go on.
 * @retval STEPGRAPH_ERR_UNSUPPORTED  The recording allocates memory; the driver makes one executable of such a graph at a time.
 * @retval STEPGRAPH_ERR_MEMORY       No room for so many.
 * @retval STEPGRAPH_ERR_LOST         The context is gone.
 * @retval STEPGRAPH_ERR_DRIVER       A driver call failed.
 *
 * @threads{handle} @capture{no} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_tune(stepgraph_step *step, uint32_t executables);

/** What tuning found. Begin with #STEPGRAPH_TUNING_INIT. */
typedef struct stepgraph_tuning {
    size_t size;                    /**< sizeof(stepgraph_tuning). */
    uint32_t executables;           /**< That are tried, or were. 0: the step's recording was not tuned. */
    uint32_t chosen;                /**< Which is replayed from now on; 0: the one that there was before. Means nothing before @c done. */
    int32_t done;                   /**< 1: chosen. 0: replays still tell. */
    uint32_t reserved;              /**< 0. */
    uint64_t replays;               /**< That were timed for it so far. */
    double us[STEPGRAPH_TUNE_MOST]; /**< Device time of a replay by each, microseconds, the middle one of those measured; what is fed is in it.
                                         -1: none yet. */
} stepgraph_tuning;

/** An empty record. */
#define STEPGRAPH_TUNING_INIT { sizeof(stepgraph_tuning), 0, 0, 0, 0, 0, { 0 } }

/**
 * What tuning found about the step's live graph. Makes no driver call: times are taken by replays.
 *
 * @param[in]     step        In any state.
 * @param[in,out] tuning_out  Its size is set.
 *
 * @retval STEPGRAPH_OK            Filled in.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, or the size is not set.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_step_get_tuning(const stepgraph_step *step, stepgraph_tuning *tuning_out);

#ifdef __cplusplus
}
#endif

#endif
