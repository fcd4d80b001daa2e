/**
 * @file
 * The checker: replays held against fresh launches, bit for bit, and proof that the check can fail.
 */
#ifndef STEPGRAPH_CHECK_H
#define STEPGRAPH_CHECK_H

#include "audit.h"
#include "base.h"
#include "pin.h"
#include "step.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A report. Owns all that it says, and outlives the step it is about. Never changes, so several threads may read it.
 *
 * What is compared is what is pinned: STATE, OUTPUT, FEED and CELL. Memory that no pin covers is neither saved nor compared.
 */
typedef struct stepgraph_check stepgraph_check;

/** What came out. */
typedef enum stepgraph_check_verdict {
    STEPGRAPH_IDENTICAL = 1,    /**< Every byte of every replay is that of the fresh launches, and the planted faults were seen. */
    STEPGRAPH_DIVERGED = 2,     /**< A replay gives something else, hangs, fails or is refused: do not replay this graph. */
    STEPGRAPH_INCONCLUSIVE = 3, /**< Fresh launches differ from fresh launches by themselves; replays stay within that spread. */
    STEPGRAPH_UNPROVEN = 4      /**< No difference, but a planted fault was not seen either, so the check proves nothing. */
} stepgraph_check_verdict;

/** The name of a verdict, such as "IDENTICAL"; "unknown verdict" for any other number. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_check_verdict_name(uint32_t verdict);

/** Bits of stepgraph_check_config::flags. */
enum {
    /** Leave the pins as they are after the checked steps, as the *fresh* launches computed them: the steps are done and counted as fresh
     *  runs. Without it everything is as it was before the check. */
    STEPGRAPH_CHECK_ADVANCE = 1u << 0,
    /** Do not poison SCRATCH pins. For a host whose memory pool is one and holds what must survive. */
    STEPGRAPH_CHECK_KEEP_SCRATCH = 1u << 1,
    /** Do not look for the node where a replay goes wrong. The search records the step once more, through @c enqueue. */
    STEPGRAPH_CHECK_NO_SEARCH = 1u << 2
};

/** Options of stepgraph_check_run(). Begin with #STEPGRAPH_CHECK_CONFIG_INIT; a zero field means its default. */
typedef struct stepgraph_check_config {
    size_t size;    /**< sizeof(stepgraph_check_config). */
    uint32_t flags; /**< Bits STEPGRAPH_CHECK_…, or 0. Unknown bits are refused. */
    uint32_t steps; /**< Consecutive steps to check: a single replay is right even where the second is not. 0: 3. At most 64. */
    uint64_t first; /**< Number of the first of them. */
    stepgraph_status (*enqueue)(void *user, stepgraph_step *step, uint64_t k); /**< Must be set. Enqueues step k on the session's stream
                         by launches, as always. Called several times for each k, and once while the step is recorded a second time. It
                         need not wait, and does not call stepgraph_step_run_begin(). @p step is the one to mark stages on. */
    stepgraph_status (*feed)(void *user, stepgraph_step *step, uint64_t k); /**< Hands over the inputs of step k, with
                         stepgraph_pin_feed() or by copies of its own: the same bytes for the same k each time. NULL: nothing is fed. */
    stepgraph_status (*rewind)(void *user, uint64_t k); /**< Puts what the host keeps in its own variables (a step counter, a generator)
                         back to where it was before step k. Pins are restored already. NULL: nothing to put back. */
    int32_t (*progress)(void *user, const char *phase, uint64_t done, uint64_t total); /**< Called between pieces of work, with the
                         phase's name ("save", "fresh", "replay", "controls", "search") and how far the whole has come. Anything but 0
                         stops the check as soon as all is restored. NULL: not called. */
    void *user;     /**< Passed to all of these. */
    const stepgraph_audit *audit;    /**< Of this step, to name causes; borrowed during the call. NULL: what the search finds. */
    uint64_t timeout_ns;             /**< How long to wait for one step before it counts as hung. 0: 60 seconds. */
    uint64_t device_bytes;           /**< Device memory for snapshots, at most. 0: half of what is free. */
    uint64_t host_bytes;             /**< Page-locked host memory for those that do not fit, at most. 0: half of what is free. */
    struct CUstream_st *feed_stream; /**< The stream on which @c feed copies, where that is the host's own: copies there are delayed once, so
                                          that a missing wait shows. NULL: feeds go through the library. */
    uint64_t delay_ns;               /**< Length of such delays. 0: 20 milliseconds. */
    const stepgraph_pin *plant;      /**< The STATE pin to plant the fault in: one byte of it is flipped, once. NULL: chosen. For a host with
                                          states that must not be altered, such as indices. */
} stepgraph_check_config;

/** Nothing set: enqueue is the caller's to fill in. */
#define STEPGRAPH_CHECK_CONFIG_INIT                                                                                                     \
    { sizeof(stepgraph_check_config), 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, NULL }

/**
 * Run the same steps by fresh launches, fresh again, and as replays, all from the same state, and compare every byte.
 *
 * Before each of these, STATE, FEED and CELL pins are put back bit for bit, and OUTPUT and SCRATCH pins are filled with a pattern that differs
 * from one to the next. Replays run back to back behind a delay, and again with a wait after each; then once more from a state with
 * one flipped byte, and with each input altered; and the first step once more by launches and by a replay, twice, from numbers that were altered in all
 * pins of a float type, so that a copy of one of them shows. Afterwards all pins but SCRATCH are as before; see #STEPGRAPH_CHECK_ADVANCE. CONST pins are not
 * saved, since no step writes them; one that does is named after its first step or its last, or after the replays, which have written it once more.
 * Callbacks neither make pins nor check steps; they do not reset, relax or destroy @p step, and leave its state alone.
 *
 * Launches count as run when all streams of the context are idle, so that what @c enqueue has launched on another one shows.
 *
 * None of the runs enters the step's measurements or counts, unless #STEPGRAPH_CHECK_ADVANCE makes them count.
 *
 * A replay that hangs leaves the step FAILED and the session unusable until the device comes back; nothing waits for it.
 *
 * @param[in]  step       READY. Its session has no run open.
 * @param[in]  config     Read before this returns.
 * @param[out] check_out  Set only on success; give it back with stepgraph_check_destroy().
 *
 * @retval STEPGRAPH_OK            *check_out is the caller's. A bad verdict is no error of this call.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a flag is unknown, too many steps, or @c plant is no STATE of the session.
 * @retval STEPGRAPH_ERR_ABI       @p config sets a field that this library is too old for.
 * @retval STEPGRAPH_ERR_STATE     The step is not READY, a run is open, a step is recording, or this is a callback of a check.
 * @retval STEPGRAPH_ERR_MEMORY    No room for two snapshots; the message has the bytes needed and the limits. Nothing ran.
 * @retval STEPGRAPH_ERR_REFUSED   @c progress stopped it; or memory of a pin or of the graph is gone, or the module of one of its kernels: nothing ran then. Or the step
 *                                 writes a CONST pin, which is named: all but that pin is as before.
 * @retval STEPGRAPH_ERR_LOST      The fresh launches hang or fault: it is not the replay that is at fault.
 * @retval STEPGRAPH_ERR_DRIVER    A driver call failed; all is put back. Or it could not be, at the second try either, and the message says so: the state is
 *                                 that of no step then, and the host goes back to a checkpoint.
 * @return Otherwise what a callback answered.
 *
 * @threads{handle} @capture{no} @waits{device} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_check_run(stepgraph_step *step, const stepgraph_check_config *config, stepgraph_check **check_out);

/** Free a report; NULL does nothing. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API void stepgraph_check_destroy(stepgraph_check *check);

/** Did the search find the node? */
typedef enum stepgraph_check_search {
    STEPGRAPH_SEARCH_NONE = 0,   /**< Nothing to look for, or not asked to. */
    STEPGRAPH_SEARCH_FOUND = 1,  /**< The node is named. */
    STEPGRAPH_SEARCH_CLEAN = 2,  /**< From the same state both recordings do the same: it goes wrong between the steps, or the host records
                                      something else than it launches. */
    STEPGRAPH_SEARCH_UNABLE = 3  /**< It cannot be done; stepgraph_check_summary::search_text says why. */
} stepgraph_check_search;

/** The whole in numbers. Begin with #STEPGRAPH_CHECK_SUMMARY_INIT. */
typedef struct stepgraph_check_summary {
    size_t size;               /**< sizeof(stepgraph_check_summary). */
    uint32_t verdict;          /**< A #stepgraph_check_verdict. */
    uint32_t steps;            /**< Checked. */
    uint64_t first;            /**< Number of the first one. */
    uint64_t bad_step;         /**< Number of the first step that goes wrong; UINT64_MAX: none, or not known. */
    uint32_t hung;             /**< 1: that replay did not finish in time. */
    uint32_t failed;           /**< 1: that replay was refused, or failed. */
    uint32_t every_step;       /**< 1: compared after every step; 0: after the last one only, for lack of memory. */
    uint32_t software;         /**< 1: on cusim, which says nothing about a card's driver. */
    uint64_t pins;             /**< Compared. */
    uint64_t pins_diverged;    /**< Those that make the verdict DIVERGED. */
    uint64_t pins_unsteady;    /**< Those in which fresh launches differ from fresh launches. */
    uint64_t bytes;            /**< In the pins that are compared. */
    uint64_t bytes_differ;     /**< Of them, in the first bad step. */
    uint32_t planted;          /**< Faults that were planted, until one was seen. */
    uint32_t planted_seen;     /**< 1: the last one was. */
    uint32_t inputs;           /**< FEED and CELL pins that were altered. */
    uint32_t inputs_seen;      /**< Those that changed something. */
    uint32_t inputs_untried;   /**< Those with the same bytes in each step and no element type, for which no other value is safe. */
    uint32_t outputs_unwritten; /**< OUTPUT pins that no replay wrote. */
    uint32_t search;           /**< A #stepgraph_check_search. */
    uint32_t node;             /**< The first node whose effect differs, in the order of recording; UINT32_MAX: not known. */
    uint64_t device_bytes;     /**< Taken for snapshots: device memory, */
    uint64_t host_bytes;       /**< and page-locked host memory. */
    double seconds;            /**< How long the check took. */
    char node_name[128];       /**< Its kernel, or what it does. */
    char stage[64];            /**< Its stage; "". */
    char search_text[256];     /**< What the search says. */
    char cause[512];           /**< Why, where it is known; "". */
} stepgraph_check_summary;

/** An empty summary. */
#define STEPGRAPH_CHECK_SUMMARY_INIT                                                                                                    \
    { sizeof(stepgraph_check_summary), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 }, { 0 }, { 0 } }

/** What is known about one pin: bits of stepgraph_check_pin::facts. */
enum {
    STEPGRAPH_CHECK_DIFFERS = 1u << 0,    /**< A replay differs from the fresh launches. */
    STEPGRAPH_CHECK_UNSTEADY = 1u << 1,   /**< So do fresh launches among themselves; @c spread says by how much. */
    STEPGRAPH_CHECK_BEYOND = 1u << 2,     /**< The replay is far beyond that spread. */
    STEPGRAPH_CHECK_UNWRITTEN = 1u << 3,  /**< An OUTPUT that no replay wrote. */
    STEPGRAPH_CHECK_UNREAD = 1u << 4,     /**< An input: altering it changes nothing. */
    STEPGRAPH_CHECK_UNTRIED = 1u << 5,    /**< An input that could not be altered safely. */
    STEPGRAPH_CHECK_UNCHANGED = 1u << 6,  /**< A STATE that none of the steps changes. */
    STEPGRAPH_CHECK_UNREPEATED = 1u << 7, /**< An input that the host does not feed the same way again. */
    STEPGRAPH_CHECK_OLD_VALUES = 1u << 8, /**< It depends on what OUTPUT or SCRATCH pins held before the step. */
    STEPGRAPH_CHECK_PADDING = 1u << 9,    /**< A FEED: what stands behind the fed bytes changes a STATE. */
    STEPGRAPH_CHECK_ORDER = 1u << 10      /**< It differs only in replays that are not waited for, or with a late feed: an order is missing. */
};

/** One pin. Begin with #STEPGRAPH_CHECK_PIN_INIT. */
typedef struct stepgraph_check_pin {
    size_t size;              /**< sizeof(stepgraph_check_pin). */
    char name[128];           /**< The pin's. */
    uint32_t role;            /**< A #stepgraph_role. */
    uint32_t type;            /**< A #stepgraph_type: the elements that it was compared as. */
    uint32_t facts;           /**< Bits STEPGRAPH_CHECK_DIFFERS … */
    uint32_t fault;           /**< 1: it makes the verdict DIVERGED. */
    uint64_t bytes;           /**< Extent. */
    uint64_t step;            /**< The first step in which it differs; UINT64_MAX: none. Counts and values are those of this step. */
    uint64_t bytes_differ;    /**< Bytes that differ. */
    uint64_t elements_differ; /**< Elements that differ. */
    uint64_t element;         /**< Index of the first one. */
    uint64_t fresh_bits;      /**< Its bits by fresh launches, */
    uint64_t replay_bits;     /**< and in the replay. */
    double fresh;             /**< Its value by fresh launches, */
    double replay;            /**< and in the replay. */
    uint64_t ulps;            /**< Largest distance in units of the last place; UINT64_MAX: a NaN against a number. */
    double distance;          /**< Largest difference of two values. */
    double spread;            /**< Largest difference among fresh launches. */
    char text[512];           /**< One line for a person. */
} stepgraph_check_pin;

/** An empty record. */
#define STEPGRAPH_CHECK_PIN_INIT                                                                                                        \
    { sizeof(stepgraph_check_pin), { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 } }

/** The numbers. @retval STEPGRAPH_OK Filled up to its size. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API stepgraph_status stepgraph_check_get_summary(const stepgraph_check *check, stepgraph_check_summary *summary_out);

/**
 * Read what is known about one pin: those at fault first, then those with something to say, then the rest.
 *
 * @retval STEPGRAPH_OK            Filled up to its size.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a size too small, or there is no such pin: the way to stop a loop.
 *
 * @threads{any} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_check_get_pin(const stepgraph_check *check, uint32_t index, stepgraph_check_pin *pin_out);

/** The report for a person to read, several lines; lives as long as @p check. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_check_text(const stepgraph_check *check);

/** The report as JSON; lives as long as @p check. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API const char *stepgraph_check_json(const stepgraph_check *check);

#ifdef __cplusplus
}
#endif

#endif
