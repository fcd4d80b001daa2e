/**
 * @file
 * The session: one device, one stream, the driver behind them, and the launch counter.
 */
#ifndef STEPGRAPH_SESSION_H
#define STEPGRAPH_SESSION_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The driver's handles, named without its header. A CUstream is a `struct CUstream_st *`, and so on. */
struct CUctx_st;
struct CUstream_st;
struct CUfunc_st;
struct CUgraph_st;

/**
 * Everything that a host opens once per device.
 *
 * Owns its registry of pins, its feed ring and, unless the host gave one, its stream. Borrows the context. Steps and pins belong to
 * their session and must be destroyed before it is closed.
 */
typedef struct stepgraph_session stepgraph_session;

/** Bits of stepgraph_session_config::flags. */
enum {
    /** Use (or make) a stream that synchronises with the legacy stream. A tripwire: launches on the NULL stream and synchronous copies,
     *  which a recording on a non-blocking stream silently misses, then break the recording with code 906. Any other thread's use of
     *  the legacy stream breaks it too, so this is for looking for a fault, not for production. */
    STEPGRAPH_SESSION_BLOCKING_STREAM = 1u << 0
};

/** Options of stepgraph_session_open(). Begin with #STEPGRAPH_SESSION_CONFIG_INIT; a zero field means its default. */
typedef struct stepgraph_session_config {
    size_t size;                /**< sizeof(stepgraph_session_config). */
    uint32_t flags;             /**< Bits STEPGRAPH_SESSION_…, or 0. Unknown bits are refused. */
    int32_t device;             /**< Ordinal of the device. Ignored if @c context is set. */
    const char *driver_path;    /**< The driver library to load. NULL: what the environment variable STEPGRAPH_DRIVER names, else
                                     libcuda.so.1. There is no fallback from one to the next. */
    struct CUctx_st *context;   /**< Borrowed, must outlive the session. NULL: the device's primary context, retained. */
    struct CUstream_st *stream; /**< Borrowed, must outlive the session: the driver crashes the process over one that was destroyed. A non-blocking one, never
                                     the legacy stream, and not another session's, which knows nothing of what this one records. NULL: a stream of the
                                     session's own. */
    stepgraph_log_fn log;       /**< Receives log lines. NULL: none. */
    void *log_user;             /**< Passed to @c log. */
    uint32_t log_level;         /**< Lines above this #stepgraph_log_level are not made. */
    uint32_t feed_slots;        /**< Steps that the host may feed ahead of the device. 0: 8. At least 2, at most 64. */
    uint64_t feed_bytes;        /**< Device bytes set aside for feeds and cells, so that all of them travel in one copy. 0: 1 MiB.
                                     More is added when needed, at the price of one more copy per step. Page-locked host memory of
                                     twice feed_slots times as much goes with it. */
    stepgraph_status (*drain)(void *user); /**< For hosts that launch from another thread: returns once all work the host has queued
                                     has reached the driver. NULL: the host launches from the threads it calls us from. */
    void *drain_user;           /**< Passed to @c drain. */
} stepgraph_session_config;

/** All defaults. */
#define STEPGRAPH_SESSION_CONFIG_INIT { sizeof(stepgraph_session_config), 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL }

/**
 * Load the driver and open a session on one of its devices.
 *
 * @param[in]  config       Read before this returns; strings are copied. NULL: all defaults.
 * @param[out] session_out  Set only on success; give it back with stepgraph_session_close().
 *
 * @retval STEPGRAPH_OK              *session_out is the caller's.
 * @retval STEPGRAPH_ERR_ARGUMENT    A field is out of range, or the stream is the legacy one or a blocking one without its flag.
 * @retval STEPGRAPH_ERR_ABI         @p config sets a field that this library is too old for.
 * @retval STEPGRAPH_ERR_NO_DRIVER   The library cannot be loaded, is the toolkit's stub, or has no such device.
 * @retval STEPGRAPH_ERR_OLD_DRIVER  Older than 12.0.
 * @retval STEPGRAPH_ERR_MEMORY      Not enough host or device memory.
 *
 * @threads{any} @capture{no} @waits{device} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_session_open(const stepgraph_session_config *config, stepgraph_session **session_out);

/**
 * Close @p session; NULL does nothing.
 *
 * Waits for the session's stream. Where the context is gone already (destroyed, reset, or this is a forked child), host memory alone is
 * freed and no driver call is made.
 *
 * @retval STEPGRAPH_OK         Closed.
 * @retval STEPGRAPH_ERR_STATE  Loops, steps, pins or arenas are still alive, or one of its steps is recording; the message names one. Nothing was done.
 *
 * @threads{handle} @capture{no} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_session_close(stepgraph_session *session);

/** What stepgraph_session_get_info() tells. Begin with #STEPGRAPH_SESSION_INFO_INIT. */
typedef struct stepgraph_session_info {
    size_t size;              /**< sizeof(stepgraph_session_info). */
    int32_t driver_version;   /**< As the driver gives it: 13000 is 13.0. */
    int32_t software;         /**< 1: the driver is cusim, a simulation on the CPU, and says nothing about speed on a card. */
    int32_t device;           /**< Ordinal. */
    int32_t compute_major;    /**< Compute capability, major. */
    int32_t compute_minor;    /**< Compute capability, minor. */
    int32_t multiprocessors;  /**< Streaming multiprocessors of the device. */
    char driver_path[256];    /**< What was loaded. */
    char device_name[128];    /**< As the driver gives it. */
} stepgraph_session_info;

/** An empty record. */
#define STEPGRAPH_SESSION_INFO_INIT { sizeof(stepgraph_session_info), 0, 0, 0, 0, 0, 0, { 0 }, { 0 } }

/**
 * Which driver and which device this is: print it beside every result, so that a run on the software driver never passes for one on
 * a card.
 *
 * @retval STEPGRAPH_OK            *info_out is filled up to its size.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL or the size is too small.
 *
 * @threads{any} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_session_get_info(const stepgraph_session *session, stepgraph_session_info *info_out);

/** The stream on which the session records, replays and copies. Borrowed; never NULL. @threads{any} @capture{yes} @waits{never} */
STEPGRAPH_API struct CUstream_st *stepgraph_session_stream(const stepgraph_session *session);

/** The context of the session. Borrowed. @threads{any} @capture{yes} @waits{never} */
STEPGRAPH_API struct CUctx_st *stepgraph_session_context(const stepgraph_session *session);

/**
 * An entry point of the driver that this session uses, so that a host need not link against one.
 *
 * @param[in] session  Its driver is asked.
 * @param[in] name     Base name without a version suffix, such as "cuMemAlloc".
 * @param[in] version  CUDA version whose signature the caller was written for, such as 3020 for the 64-bit cuMemAlloc: the first
 *                     number with that signature, as in the PFN_… names of the toolkit's cudaTypedefs.h.
 * @return The function, to be cast to its type; NULL where the driver has none of that name and version.
 *
 * @threads{any} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API void *stepgraph_session_symbol(const stepgraph_session *session, const char *name, int32_t version);

/**
 * Wait until everything on the session's stream has run.
 *
 * @retval STEPGRAPH_OK         The stream is idle.
 * @retval STEPGRAPH_ERR_STATE  A step is recording: waiting would break it.
 * @retval STEPGRAPH_ERR_LOST   A fault on the device, or the context is gone.
 *
 * @threads{handle} @capture{no} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_session_wait(stepgraph_session *session);

/* ---- the launch counter ------------------------------------------------------------------------------------------ */

/** Kinds of work that are counted apart. */
typedef enum stepgraph_kind {
    STEPGRAPH_KIND_KERNEL = 0, /**< Kernel launches. */
    STEPGRAPH_KIND_COPY = 1,   /**< Copies. */
    STEPGRAPH_KIND_SET = 2,    /**< Memsets. */
    STEPGRAPH_KIND_HOST = 3,   /**< Host functions. */
    STEPGRAPH_KIND_GRAPH = 4   /**< Launches of a graph: a replay counts one here, whatever is in it. */
} stepgraph_kind;

/** Number of kinds in this version; arrays have room for more. */
#define STEPGRAPH_KINDS 5
/** Length of arrays by kind in structs. */
#define STEPGRAPH_KINDS_ROOM 8

/**
 * Count @p n launches that the host itself made. To be called at the host's launch choke point.
 *
 * At most one relaxed atomic add; takes no lock, never fails, leaves the error record alone. An unknown @p kind counts as a kernel; NULL does
 * nothing.
 *
 * @threads{any} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API void stepgraph_session_count(stepgraph_session *session, stepgraph_kind kind, uint64_t n);

/** One kernel launch, for stepgraph_session_launch(). Begin with #STEPGRAPH_LAUNCH_INIT. */
typedef struct stepgraph_launch {
    size_t size;                /**< sizeof(stepgraph_launch). */
    struct CUfunc_st *function; /**< The kernel. */
    struct CUstream_st *stream; /**< NULL: the session's. */
    void **arguments;           /**< One pointer per parameter, as for cuLaunchKernel, or NULL. */
    void **extra;               /**< The packed form, as for cuLaunchKernel, or NULL. */
    uint32_t grid[3];           /**< Blocks. A zero counts as 1. */
    uint32_t block[3];          /**< Threads per block. A zero counts as 1. */
    uint32_t shared_bytes;      /**< Dynamic shared memory per block. */
    uint32_t flags;             /**< None yet: 0. */
} stepgraph_launch;

/** An empty launch. */
#define STEPGRAPH_LAUNCH_INIT { sizeof(stepgraph_launch), NULL, NULL, NULL, NULL, { 1, 1, 1 }, { 1, 1, 1 }, 0, 0 }

/**
 * Launch a kernel and count it, in one call.
 *
 * While a step records, a launch that fails marks the recording as broken, even where the driver would carry on without the kernel.
 *
 * @retval STEPGRAPH_OK            Launched or recorded.
 * @retval STEPGRAPH_ERR_ARGUMENT  No function, or an unknown flag.
 * @retval STEPGRAPH_ERR_ABI       @p launch sets a field that this library is too old for.
 * @retval STEPGRAPH_ERR_DRIVER    The driver refused; nothing was counted.
 *
 * @threads{any} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_session_launch(stepgraph_session *session, const stepgraph_launch *launch);

/** What a sample is worth. */
typedef enum stepgraph_exactness {
    STEPGRAPH_NOT_INSTRUMENTED = 0, /**< Nobody ever counted: the numbers mean nothing, not 0 launches. */
    STEPGRAPH_LOWER_BOUND = 1,      /**< Other threads count too and may have more on the way. */
    STEPGRAPH_EXACT = 2             /**< All that was queued has been counted. */
} stepgraph_exactness;

/** Bits for stepgraph_session_sample(). */
enum {
    STEPGRAPH_SAMPLE_DRAIN = 1u << 0 /**< First call the host's drain callback, then wait for the stream: the sample is exact. */
};

/** Launches counted since the session was opened. Begin with #STEPGRAPH_SAMPLE_INIT. The sources are never added up. */
typedef struct stepgraph_sample {
    size_t size;        /**< sizeof(stepgraph_sample). */
    uint32_t exactness; /**< A #stepgraph_exactness, of @c host. */
    uint32_t reserved;  /**< 0. */
    uint64_t host[STEPGRAPH_KINDS_ROOM];    /**< By kind: what the host counted with stepgraph_session_count(). */
    uint64_t wrapper[STEPGRAPH_KINDS_ROOM]; /**< By kind: stepgraph_session_launch(). */
    uint64_t library[STEPGRAPH_KINDS_ROOM]; /**< By kind: the library's own commits, feeds and replays. */
} stepgraph_sample;

/** An empty sample. */
#define STEPGRAPH_SAMPLE_INIT { sizeof(stepgraph_sample), 0, 0, { 0 }, { 0 }, { 0 } }

/**
 * Read the counters.
 *
 * Without #STEPGRAPH_SAMPLE_DRAIN the sample is exact only if this thread alone has counted so far and the session has no drain
 * callback; otherwise it is a lower bound.
 *
 * @param[in]     session     Whose counters.
 * @param[in]     flags       Bits STEPGRAPH_SAMPLE_…, or 0.
 * @param[in,out] sample_out  Filled up to its size.
 *
 * @retval STEPGRAPH_OK            *sample_out is filled.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pointer is NULL, a size too small, or a flag unknown.
 * @retval STEPGRAPH_ERR_STATE     A drain was asked for while a step records.
 * @retval STEPGRAPH_ERR_DRIVER    The drain failed; the host's own status if its callback did.
 *
 * @threads{any} without the drain, else @threads{handle} @capture{yes} without the drain @waits{stream} with the drain
 * @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_session_sample(stepgraph_session *session, uint32_t flags, stepgraph_sample *sample_out);

#ifdef __cplusplus
}
#endif

#endif
