/**
 * @file
 * Pins: named device memory with a stable address, which is what a graph may be recorded over.
 */
#ifndef STEPGRAPH_PIN_H
#define STEPGRAPH_PIN_H

#include "base.h"
#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A named range of device memory whose address does not change: its *master*.
 *
 * Belongs to a session. Its memory is the library's, or adopted from the host, which then keeps it alive.
 */
typedef struct stepgraph_pin stepgraph_pin;

/** Who writes a pin, and when. */
typedef enum stepgraph_role {
    STEPGRAPH_ROLE_STATE = 1,  /**< The step; survives from step to step: parameters, moments, averages. */
    STEPGRAPH_ROLE_FEED = 2,   /**< The host before each step: inputs, labels. See stepgraph_pin_feed(). */
    STEPGRAPH_ROLE_CELL = 3,   /**< The host, when it changes: a scalar on the device, such as the learning rate. A small feed. */
    STEPGRAPH_ROLE_OUTPUT = 4, /**< The step; the host reads it: loss, norms. See stepgraph_pin_read(). */
    STEPGRAPH_ROLE_CONST = 5,  /**< Nobody: frozen weights, tables. */
    STEPGRAPH_ROLE_SCRATCH = 6, /**< The step; nothing in it lives longer than one step: activations, workspaces, memory pools. */
    STEPGRAPH_ROLE_LIBRARY = 7 /**< A library that the step calls, for itself, in memory that it keeps in place: a communicator's. What is in there
                                    is neither saved, put back, filled nor compared, and goes on through checks as through any other step. */
} stepgraph_role;

/** What the elements of a pin are: for values in reports. */
typedef enum stepgraph_type {
    STEPGRAPH_TYPE_BYTES = 0,  /**< Not known. */
    STEPGRAPH_TYPE_F32 = 1,    /**< float. */
    STEPGRAPH_TYPE_F64 = 2,    /**< double. */
    STEPGRAPH_TYPE_F16 = 3,    /**< IEEE half. */
    STEPGRAPH_TYPE_BF16 = 4,   /**< bfloat16. */
    STEPGRAPH_TYPE_F8E4M3 = 5, /**< 8-bit float, 4 bits of exponent, no infinity. */
    STEPGRAPH_TYPE_F8E5M2 = 6, /**< 8-bit float, 5 bits of exponent. */
    STEPGRAPH_TYPE_I8 = 7,     /**< Signed integers. */
    STEPGRAPH_TYPE_I16 = 8,    /**< */
    STEPGRAPH_TYPE_I32 = 9,    /**< */
    STEPGRAPH_TYPE_I64 = 10,   /**< */
    STEPGRAPH_TYPE_U8 = 11,    /**< Unsigned integers. */
    STEPGRAPH_TYPE_U16 = 12,   /**< */
    STEPGRAPH_TYPE_U32 = 13,   /**< */
    STEPGRAPH_TYPE_U64 = 14    /**< */
} stepgraph_type;

/** Options of stepgraph_pin_create(). Begin with #STEPGRAPH_PIN_CONFIG_INIT. */
typedef struct stepgraph_pin_config {
    size_t size;      /**< sizeof(stepgraph_pin_config). */
    uint32_t role;    /**< A #stepgraph_role. */
    uint32_t flags;   /**< None yet: 0. */
    uint64_t bytes;   /**< Extent; at least 1. */
    uint64_t address; /**< Device address of memory to adopt; it must stay allocated while the pin lives. 0: the library allocates,
                           filled with zeros. */
    const char *name; /**< For messages; copied. Must be set, and unique among the session's pins and arenas. At most #STEPGRAPH_NAME_MOST bytes. */
    uint32_t type;    /**< A #stepgraph_type, so that the checker can name values. 0: bytes. */
    uint32_t reserved; /**< 0. */
} stepgraph_pin_config;

/** Nothing set: role, bytes and name are the caller's to fill in. */
#define STEPGRAPH_PIN_CONFIG_INIT { sizeof(stepgraph_pin_config), 0, 0, 0, 0, NULL, 0, 0 }

/**
 * Register a pin.
 *
 * Library memory is aligned to 256 bytes, cells to 16. Feeds and cells lie side by side, so that all of them travel in one copy; an adopted feed
 * is filled from there by one more launch.
 *
 * @param[in]  session  The pin belongs to it.
 * @param[in]  config   Read before this returns.
 * @param[out] pin_out  Set only on success; give it back with stepgraph_pin_destroy().
 *
 * @retval STEPGRAPH_OK            *pin_out is the caller's.
 * @retval STEPGRAPH_ERR_ARGUMENT  No name or one that cannot be shown, no bytes, an unknown role, an address that is no device memory of this session's device or
 *                                 an extent beyond its allocation, a name that is taken, or a range that overlaps another pin (which
 *                                 is named).
 * @retval STEPGRAPH_ERR_ABI       @p config sets a field that this library is too old for.
 * @retval STEPGRAPH_ERR_MEMORY    Not enough device memory.
 * @retval STEPGRAPH_ERR_STATE     A step is recording, or this is a callback of stepgraph_check_run(), or a STATE in a warm-up run that will be undone
 *                                 (#STEPGRAPH_LOOP_RESTORE): pins are made before.
 *
 * @threads{handle} @capture{no} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_pin_create(stepgraph_session *session, const stepgraph_pin_config *config,
                                                    stepgraph_pin **pin_out);

/**
 * Register many pins, all of them or none.
 *
 * Quicker than one by one: what the library allocates for them is one range of device memory, set to zero in one go, and the stream is waited for
 * once. Each pin is given back on its own; memory that they share is freed with the last of them.
 *
 * @param[in]  session   The pins belong to it.
 * @param[in]  n         How many. 0 does nothing.
 * @param[in]  configs   Read before this returns. The size of the first one is that of all.
 * @param[out] pins_out  Room for @p n, in the same order; set only on success.
 *
 * @retval STEPGRAPH_OK            The pins are the caller's.
 * @retval STEPGRAPH_ERR_ARGUMENT  As for stepgraph_pin_create(); the first pin that cannot be made is named. None was made.
 * @retval STEPGRAPH_ERR_ABI       One of @p configs sets a field that this library is too old for.
 * @retval STEPGRAPH_ERR_MEMORY    Not enough device memory. None was made.
 * @retval STEPGRAPH_ERR_STATE     A step is recording, or this is a callback of stepgraph_check_run(), or a STATE in a warm-up run that will be undone
 *                                 (#STEPGRAPH_LOOP_RESTORE): pins are made before.
 *
 * @threads{handle} @capture{no} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_pin_create_many(stepgraph_session *session, size_t n, const stepgraph_pin_config *configs,
                                                         stepgraph_pin **pins_out);

/**
 * Give a pin back; NULL does nothing. Its memory is freed if it is the library's, once the stream no longer uses it.
 *
 * @retval STEPGRAPH_OK            The pin is gone.
 * @retval STEPGRAPH_ERR_ARGUMENT  It is the memory of an arena, which is destroyed instead.
 * @retval STEPGRAPH_ERR_STATE     A live graph uses it (the step is named), it is in a snapshot that will be put back (in a turn of a loop that checks or
 *                                 rehearses, in a check's callbacks), or a step is recording. Nothing was done.
 *
 * @threads{handle} @capture{no} @waits{device} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_pin_destroy(stepgraph_pin *pin);

/** The master's device address: what the host's kernels are given. Never changes. @threads{any} @capture{yes} @waits{never} */
STEPGRAPH_API uint64_t stepgraph_pin_address(const stepgraph_pin *pin);

/** The extent in bytes. @threads{any} @capture{yes} @waits{never} */
STEPGRAPH_API uint64_t stepgraph_pin_bytes(const stepgraph_pin *pin);

/** The name; lives as long as the pin. @threads{any} @capture{yes} @waits{never} */
STEPGRAPH_API const char *stepgraph_pin_name(const stepgraph_pin *pin);

/** The role. @threads{any} @capture{yes} @waits{never} */
STEPGRAPH_API stepgraph_role stepgraph_pin_role(const stepgraph_pin *pin);

/** What its elements are. @threads{any} @capture{yes} @waits{never} @since 0.1 */
STEPGRAPH_API stepgraph_type stepgraph_pin_type(const stepgraph_pin *pin);

/**
 * Find a session's pin by its name; NULL if there is none. @threads{handle} @capture{yes} @waits{never}
 */
STEPGRAPH_API stepgraph_pin *stepgraph_session_pin(const stepgraph_session *session, const char *name);

/* ---- in-place copy pins ------------------------------------------------------------------------------------------ */

/**
 * Copy the new value of one pin into its master.
 *
 * For an out-of-place optimizer: after it has written the new parameter at @p fresh, this puts it where the graph expects it. Enqueued
 * on the session's stream, or recorded; @p fresh may be freed, in stream order, as soon as this returns. Nothing is done, and that is
 * counted, when @p fresh is the master itself.
 *
 * @param[in] pin    A STATE or OUTPUT pin.
 * @param[in] fresh  Device address of stepgraph_pin_bytes() bytes.
 *
 * @retval STEPGRAPH_OK            Enqueued, recorded or skipped.
 * @retval STEPGRAPH_ERR_ARGUMENT  Another role, no address, or @p fresh overlaps the master without being it.
 * @retval STEPGRAPH_ERR_REFUSED   The memory of an adopted pin was freed or replaced. While a step records, its end says so.
 * @retval STEPGRAPH_ERR_DRIVER    The driver refused; a recording is marked as broken.
 *
 * @threads{handle} @capture{yes} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_pin_commit(stepgraph_pin *pin, uint64_t fresh);

/**
 * Copy the new values of many pins into their masters, in one launch at memory bandwidth. Outside a recording a small copy takes the list of
 * ranges to the device first.
 *
 * All sources must stay valid until this call's work has run, in stream order: a host that frees each old parameter inside its
 * optimizer loop uses stepgraph_pin_commit() instead. While a step records, the list of ranges is kept for the life of the graph.
 *
 * @param[in] session  The session of all @p pins.
 * @param[in] n        How many. 0 does nothing.
 * @param[in] pins     STATE or OUTPUT pins, each at most once.
 * @param[in] fresh    Device addresses, in the same order.
 *
 * @retval STEPGRAPH_OK            Enqueued, recorded, or nothing had moved.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pin is NULL, foreign, of another role or given twice; an address is 0; or a source overlaps a
 *                                 master that this call writes (both are named). Nothing was enqueued.
 * @retval STEPGRAPH_ERR_REFUSED   As for stepgraph_pin_commit(); none is committed.
 * @retval STEPGRAPH_ERR_MEMORY    No room for the list.
 * @retval STEPGRAPH_ERR_DRIVER    The driver refused; a recording is marked as broken.
 *
 * @threads{handle} @capture{yes} @waits{stream} only when more than feed_slots earlier calls are still queued @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_pin_commit_many(stepgraph_session *session, size_t n, stepgraph_pin *const *pins,
                                                         const uint64_t *fresh);

/** The price of pins since the session was opened. Begin with #STEPGRAPH_PIN_STATS_INIT. Recorded commits count once, when recorded. */
typedef struct stepgraph_pin_stats {
    size_t size;            /**< sizeof(stepgraph_pin_stats). */
    uint64_t pins;          /**< Pins alive. */
    uint64_t pin_bytes;     /**< Their bytes. */
    uint64_t skipped;       /**< Commits that found the value in its master already. */
    uint64_t copies;        /**< Commits that copied. */
    uint64_t copy_launches; /**< Launches and copies used for them, those of lists included. */
    uint64_t copy_bytes;    /**< Bytes they moved. */
    uint64_t feeds;         /**< Values fed. */
    uint64_t feed_copies;   /**< Host-to-device copies used for them. */
    uint64_t feed_bytes;    /**< Bytes those copies moved. */
    uint64_t feed_waits;    /**< Times the host had to wait for a free slot of the feed ring. */
} stepgraph_pin_stats;

/** An empty record. */
#define STEPGRAPH_PIN_STATS_INIT { sizeof(stepgraph_pin_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** What pins have cost so far. @retval STEPGRAPH_OK Filled up to its size. @threads{handle} @capture{yes} @waits{never} */
STEPGRAPH_API stepgraph_status stepgraph_session_pin_stats(const stepgraph_session *session, stepgraph_pin_stats *stats_out);

/* ---- feeds and cells --------------------------------------------------------------------------------------------- */

/**
 * Hand over the next value of a FEED or a CELL.
 *
 * The bytes are copied into a page-locked slot before this returns, so the caller's memory is free again at once. They travel to the
 * device, together with all others, in one copy that the next stepgraph_step_replay(), stepgraph_step_run_begin() or
 * stepgraph_session_flush() puts in front of its work. The ring is fenced: a slot that a queued step has yet to read is never
 * overwritten. Feeding twice before that keeps the later value. What lies between those that were fed travels with them, as it was fed last: a value that
 * the device writes into a FEED or a CELL may be undone by that, so what the step changes is a STATE.
 *
 * @param[in] pin    A FEED or CELL pin.
 * @param[in] data   Host memory.
 * @param[in] bytes  At most the pin's extent. A shorter value leaves no stale tail: the rest of the pin becomes zero.
 *
 * @retval STEPGRAPH_OK            Staged.
 * @retval STEPGRAPH_ERR_ARGUMENT  Another role, no data, or too many bytes (both numbers are in the message).
 * @retval STEPGRAPH_ERR_LOST      The session's context or process is gone, or the wait for a free slot ended with a fault on the device. Whether
 *                                 they are there is asked with the first value since the last copy: until the next one they must not go.
 *
 * @threads{handle} @capture{yes} @waits{stream} only when all slots are queued @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_pin_feed(stepgraph_pin *pin, const void *data, uint64_t bytes);

/** stepgraph_pin_feed() of one 32-bit float. The pin has 4 bytes. @threads{handle} @capture{yes} @waits{stream} only as there */
STEPGRAPH_API stepgraph_status stepgraph_pin_feed_f32(stepgraph_pin *pin, float value);
/** stepgraph_pin_feed() of one 64-bit float. The pin has 8 bytes. @threads{handle} @capture{yes} @waits{stream} only as there */
STEPGRAPH_API stepgraph_status stepgraph_pin_feed_f64(stepgraph_pin *pin, double value);
/** stepgraph_pin_feed() of one 32-bit integer. The pin has 4 bytes. @threads{handle} @capture{yes} @waits{stream} only as there */
STEPGRAPH_API stepgraph_status stepgraph_pin_feed_u32(stepgraph_pin *pin, uint32_t value);
/** stepgraph_pin_feed() of one 64-bit integer. The pin has 8 bytes. @threads{handle} @capture{yes} @waits{stream} only as there */
STEPGRAPH_API stepgraph_status stepgraph_pin_feed_u64(stepgraph_pin *pin, uint64_t value);

/**
 * Send what was fed to the device now, on the session's stream. Replays and runs do this by themselves.
 *
 * @retval STEPGRAPH_OK         Enqueued; nothing to do if nothing was fed.
 * @retval STEPGRAPH_ERR_STATE  A step is recording: the copy would become part of it.
 *
 * @threads{handle} @capture{no} @waits{never} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_session_flush(stepgraph_session *session);

/* ---- reading and writing from the host --------------------------------------------------------------------------- */

/**
 * Read a pin once all work queued so far has run.
 *
 * A SCRATCH holds what the last launch left there. After a step that was checked that may be one from altered numbers, or a filling: results that the
 * host wants are OUTPUT or STATE.
 *
 * @param[in]  pin    Any role; meant for OUTPUT.
 * @param[out] data   Host memory.
 * @param[in]  bytes  At most the pin's extent.
 *
 * @retval STEPGRAPH_OK            @p data is filled.
 * @retval STEPGRAPH_ERR_ARGUMENT  No data, or too many bytes.
 * @retval STEPGRAPH_ERR_STATE     A step is recording (nothing has run, so there is nothing to read), or this is an OUTPUT of a step
 *                                 that was recorded and neither ran nor is running since, nor did another that writes it.
 * @retval STEPGRAPH_ERR_LOST      A fault on the device.
 * @retval STEPGRAPH_ERR_REFUSED   The memory of an adopted pin was freed or replaced; the pin is named.
 * @retval STEPGRAPH_ERR_DRIVER    A copy failed; the pin is named.
 *
 * @threads{handle} @capture{no} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_pin_read(stepgraph_pin *pin, void *data, uint64_t bytes);

/**
 * Read many pins, each of them whole, and wait once: a checkpoint.
 *
 * @param[in]  session  The session of all @p pins.
 * @param[in]  n        How many. 0 does nothing.
 * @param[in]  pins     Any roles.
 * @param[out] data     Host memory for each, of stepgraph_pin_bytes() bytes. Page-locked memory is filled at full speed.
 *
 * @retval STEPGRAPH_OK            @p data is filled.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pin is NULL or foreign, or has no data. Nothing was read.
 * @retval STEPGRAPH_ERR_STATE     As for stepgraph_pin_read(). Nothing was read.
 * @retval STEPGRAPH_ERR_LOST      A fault on the device.
 * @retval STEPGRAPH_ERR_REFUSED   The memory of an adopted pin was freed or replaced; the pin is named.
 * @retval STEPGRAPH_ERR_DRIVER    A copy failed; the pin is named.
 *
 * @threads{handle} @capture{no} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_pin_read_many(stepgraph_session *session, size_t n, stepgraph_pin *const *pins, void *const *data);

/**
 * Write a pin from the host, in stream order: initial parameters, a checkpoint. No recapture is needed afterwards.
 *
 * @param[in] pin    Any but a FEED or a CELL; those have stepgraph_pin_feed().
 * @param[in] data   Host memory; free again when this returns.
 * @param[in] bytes  Exactly the pin's extent.
 *
 * @retval STEPGRAPH_OK            Written.
 * @retval STEPGRAPH_ERR_ARGUMENT  Another role, no data, or another number of bytes.
 * @retval STEPGRAPH_ERR_STATE     A step is recording.
 * @retval STEPGRAPH_ERR_REFUSED   The memory of an adopted pin was freed or replaced; the pin is named.
 * @retval STEPGRAPH_ERR_DRIVER    A copy failed; the pin is named.
 *
 * @threads{handle} @capture{no} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_pin_write(stepgraph_pin *pin, const void *data, uint64_t bytes);

/**
 * Write many pins, each of them whole, and wait once: all initial parameters, a checkpoint.
 *
 * @param[in] session  The session of all @p pins.
 * @param[in] n        How many. 0 does nothing.
 * @param[in] pins     None of them a FEED or a CELL.
 * @param[in] data     stepgraph_pin_bytes() bytes for each; free again when this returns.
 *
 * @retval STEPGRAPH_OK            Written.
 * @retval STEPGRAPH_ERR_ARGUMENT  A pin is NULL, foreign, a FEED or a CELL, or has no data. Nothing was written.
 * @retval STEPGRAPH_ERR_STATE     A step is recording.
 * @retval STEPGRAPH_ERR_REFUSED   The memory of an adopted pin was freed or replaced; the pin is named.
 * @retval STEPGRAPH_ERR_DRIVER    A copy failed; the pin is named.
 *
 * @threads{handle} @capture{no} @waits{stream} @since 0.1
 */
STEPGRAPH_API stepgraph_status stepgraph_pin_write_many(stepgraph_session *session, size_t n, stepgraph_pin *const *pins,
                                                        const void *const *data);

#ifdef __cplusplus
}
#endif

#endif
