/**
 * @file
 * Versions, status codes, the error record and the log callback.
 */
#ifndef STEPGRAPH_BASE_H
#define STEPGRAPH_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
/** What the library exports. */
#define STEPGRAPH_API __attribute__((visibility("default")))
#else
#define STEPGRAPH_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Version of these headers. stepgraph_version() tells that of the library. */
#define STEPGRAPH_VERSION_MAJOR 0
#define STEPGRAPH_VERSION_MINOR 1 /**< Calls may be added. */
#define STEPGRAPH_VERSION_PATCH 0 /**< Nothing a caller can see changes. */

/** What a call answers, grouped by what the caller does next. The words are in stepgraph_last_error(). */
typedef enum stepgraph_status {
    STEPGRAPH_OK = 0,               /**< Done. */
    STEPGRAPH_ERR_ARGUMENT = -1,    /**< Fix the call: a pointer is NULL, a value or a flag is not allowed, a struct has no size. */
    STEPGRAPH_ERR_ABI = -2,         /**< A struct sets a field that this library is too old for. */
    STEPGRAPH_ERR_STATE = -3,       /**< Not now: another call comes first, and the message names it. */
    STEPGRAPH_ERR_MEMORY = -4,      /**< Host or device memory is short; the message says which, and how many bytes were asked for. */
    STEPGRAPH_ERR_NO_DRIVER = -5,   /**< No CUDA driver, only its stub library, or no such device. */
    STEPGRAPH_ERR_OLD_DRIVER = -6,  /**< The driver is older than 12.0; the message has both versions. */
    STEPGRAPH_ERR_DRIVER = -7,      /**< A driver call failed that should not; the record has its name and code. */
    STEPGRAPH_ERR_CAPTURE = -8,     /**< The recording broke. Fix what the message names, reset, and record again. */
    STEPGRAPH_ERR_REFUSED = -9,     /**< The replay would be wrong. The message says what is, where, and what to do. */
    STEPGRAPH_ERR_LOST = -10,       /**< The context or the process it lived in is gone; only a new session helps. */
    STEPGRAPH_ERR_UNSUPPORTED = -11 /**< This driver or device cannot do it. */
} stepgraph_status;

/** Bytes that a name may have, of a pin, a step, a stage or whatever else; none of them may be a control character. Other names are refused, since
 * messages and reports show them. */
#define STEPGRAPH_NAME_MOST 255

/** The name of @p status, as written in this header; "unknown status" for any other number. @threads{any} @capture{yes} @waits{never} */
STEPGRAPH_API const char *stepgraph_status_name(stepgraph_status status);

/** Version of the library that is loaded: major * 10000 + minor * 100 + patch. @threads{any} @capture{yes} @waits{never} */
STEPGRAPH_API uint32_t stepgraph_version(void);

/** What went wrong, for a person and for code. Begin with #STEPGRAPH_ERROR_INFO_INIT. */
typedef struct stepgraph_error_info {
    size_t size;         /**< sizeof(stepgraph_error_info). Filled up to here and no further. */
    int32_t status;      /**< A #stepgraph_status. */
    int32_t driver_code; /**< The driver's CUresult; 0 when no driver call was to blame. */
    char call[64];       /**< The driver call that failed, such as "cuGraphLaunch"; "" for none. */
    char message[1024];  /**< One sentence, or one and a list of findings, each on a line of its own; "" for none. */
} stepgraph_error_info;

/** An empty record. */
#define STEPGRAPH_ERROR_INFO_INIT { sizeof(stepgraph_error_info), 0, 0, { 0 }, { 0 } }

/**
 * What went wrong in this thread's last call.
 *
 * Every call that returns a #stepgraph_status clears the record first, so it is never stale. It survives until the thread's next such
 * call, which may be one that only reads counts. Calls that return anything else, and this one, leave it alone.
 *
 * @param[in,out] info_out  Its size must be set; filled up to that size.
 * @retval STEPGRAPH_OK            *info_out holds the record; its status is #STEPGRAPH_OK when nothing went wrong.
 * @retval STEPGRAPH_ERR_ARGUMENT  @p info_out is NULL or its size is too small for the status.
 *
 * @threads{any} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_last_error(stepgraph_error_info *info_out);

/** How much a log line matters. */
typedef enum stepgraph_log_level {
    STEPGRAPH_LOG_NONE = 0,    /**< Nothing; as a session's level, the default. */
    STEPGRAPH_LOG_ERROR = 1,   /**< A call failed or refused. Wrong arguments, and most calls that come at the wrong time, are told by their status alone. */
    STEPGRAPH_LOG_WARNING = 2, /**< It works, but something could not be checked or costs more than it should. */
    STEPGRAPH_LOG_INFO = 3,    /**< One line for each change of state: recorded, instantiated, dropped. */
    STEPGRAPH_LOG_DEBUG = 4    /**< Details for bug reports. */
} stepgraph_log_level;

/**
 * Receives log lines. The library itself prints nothing.
 *
 * @param user   As given to the session.
 * @param level  A #stepgraph_log_level.
 * @param line   One line without its newline; valid during the call only.
 *
 * Called in the thread whose call is reported, possibly while it records a step: do not call this library or the driver from it.
 */
typedef void (*stepgraph_log_fn)(void *user, int32_t level, const char *line);

#ifdef __cplusplus
}
#endif

#endif
