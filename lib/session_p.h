/* Inside a session: what pins and steps of it may use. */
#ifndef STEPGRAPH_SESSION_P_H
#define STEPGRAPH_SESSION_P_H

#include <stdatomic.h>
#include <stdbool.h>

#include <stepgraph/pin.h>
#include <stepgraph/session.h>
#include <stepgraph/step.h>

#include "driver/driver.h"
#include "error.h"
#include "graph/layout.h"
#include "kernels/kernels.h"
#include "names.h"
#include "process.h"
#include "resolve_types.h"
#include "ring.h"

typedef struct sg__bank sg__bank;
typedef struct sg__arenas sg__arenas;

typedef struct sg__extent {
    CUdeviceptr start, end;
} sg__extent;

/* Launches by kind, from one source. Followed by so much that two counters never share a cache line: threads that count at once would wait
 * for each other. */
typedef struct sg__counter {
    _Atomic uint64_t n[STEPGRAPH_KINDS_ROOM];
    char apart[64];
} sg__counter;

/* Whoever must be gone before the session is: stands in a loop. */
typedef struct sg__lodger {
    struct sg__lodger *next;
    const char *name;
} sg__lodger;

struct stepgraph_session {
    /* What a replay needs, side by side, as in a step. */
    const sg__driver *driver;
    CUcontext context;
    unsigned long long context_id; /* Never used again by the driver: behind the same handle may one day be another context. */
    CUstream stream;
    unsigned int forks; /* sg__fork_count() when it was opened: another value now means a forked child. */
    bool checking; /* A check is at work: its snapshots hold all pins that there are. */
    bool fed;                /* Something waits to be sent. */
    stepgraph_step *running; /* The step of which a run is open, or NULL: what is fed meanwhile is sent at once, since nothing comes between. */
    _Atomic(stepgraph_step *) capturing; /* The one that records, or NULL. Any thread's failed launch asks. */
    CUevent hung;     /* Behind a replay that did not come back in time: until it does, nothing may wait for the stream or free what it uses.
                         NULL: none. */
    sg__bank *banks;  /* Of feeds. */

    CUdevice device;
    bool context_retained; /* The primary context, to be released. */
    bool stream_owned;

    stepgraph_log_fn log;
    void *log_user;
    uint32_t log_level;
    stepgraph_status (*drain)(void *user);
    void *drain_user;
    stepgraph_session_info info;

    sg__counter host, wrapper, library;
    sg__counter host_first; /* Like host: what the first thread counted. It alone writes here, without an atomic add. */
    _Atomic(const void *) counting_thread; /* That thread; NULL: nobody ever counted. */
    _Atomic bool many_threads;             /* Another one did too. */

    sg__kernels kernels;

    /* Pins: by address, for resolving what a graph points to. */
    stepgraph_pin **pins;
    size_t n_pins, pins_room;
    sg__names names;
    uint64_t registry;         /* Grows when a pin comes or goes. */
    sg__extent *extents;       /* Of the pins, in their order, */
    uint64_t extents_registry; /* as of this state of the registry, */
    size_t extents_near;       /* and the one that was found last. */
    CUdeviceptr formers_low, formers_high; /* All places where the values of pins ever stood before lie between. */
    stepgraph_pin_stats pin_stats;
    sg__allocations seen; /* Memory that earlier recordings referred to, to recognise it when it is gone. */
    sg__allocations own;  /* Device memory that the library keeps to itself: nothing of the host's is there. */
    sg__known_kernels known_kernels; /* What is known of kernels: bytes that none reads, as the host says, and names. */
    sg__process process;  /* As it was when a comparison asked last. */

    /* Feeds. */
    uint64_t feed_bytes;
    uint32_t feed_slots;

    /* Commits outside a recording: lists are staged in a ring and copied to one buffer, in stream order. */
    sg__ring commit_ring;
    CUdeviceptr commit_table;
    size_t commit_room; /* Slices that fit. */
    sg__range *ranges;  /* Where a call gathers its list, */
    stepgraph_pin **range_pins; /* and the pins that it writes. */
    size_t ranges_room;
    uint64_t commit_serial;

    char hung_step[64]; /* The name of the step that hangs. */

    sg__arenas *arenas; /* And blocks that were noted. NULL: none yet. */

    /* Loops, and steps. */
    sg__lodger *loops;
    stepgraph_step *steps;
    uint64_t recordings; /* That have begun. */
    const stepgraph_step *recorded; /* The one that recorded last: what is known of blocks by node is about it. NULL: gone. */
};

/* Grows by one in every forked child. */
unsigned int sg__fork_count(void);

/* First and last thing in a public call that talks to the driver: clears the error record, refuses a dead context or a forked child, makes
 * the context current; sg__leave() makes the caller's current again. sg__enter() fails before it changed anything. */
stepgraph_status sg__enter(stepgraph_session *session);
void sg__leave(stepgraph_session *session);

/* SG__CU for a call that names its stream, made without entering: it needs no current context. Should a driver want one all the same, it is
 * asked once more in the session's. */
#define SG__CU_STREAM(session, name, ...)                                                                                          \
    do {                                                                                                                           \
        CUresult code_ = (session)->driver->name(__VA_ARGS__);                                                                     \
        if (code_ == CUDA_ERROR_INVALID_CONTEXT && (session)->driver->CtxPushCurrent((session)->context) == CUDA_SUCCESS) {        \
            code_ = (session)->driver->name(__VA_ARGS__);                                                                          \
            sg__leave(session);                                                                                                    \
        }                                                                                                                          \
        if (code_ != CUDA_SUCCESS) {                                                                                               \
            status = sg__fail_driver((session)->driver, "cu" #name, code_);                                                        \
            goto fail;                                                                                                             \
        }                                                                                                                          \
    } while (0)

/* Whether the context still lives in this process. The second puts words in the record if not. */
bool sg__session_lives(const stepgraph_session *session);
stepgraph_status sg__session_alive(const stepgraph_session *session);

/* The work before `event` on the stream did not come back in time: from now on the session does not live, until the event has happened. */
void sg__session_hangs(stepgraph_session *session, CUevent event, const char *step);

/* Calls that a GLOBAL or THREAD_LOCAL recording forbids (allocation, instantiation, waiting for an older event) do not concern our own
 * recordings: they touch nothing that is being recorded. Between these two the driver lets this thread make them. */
CUstreamCaptureMode sg__relax(const stepgraph_session *session);
void sg__unrelax(const stepgraph_session *session, CUstreamCaptureMode before);

/* With that permission. The executable is NULL after a failure. */
stepgraph_status sg__instantiate(stepgraph_session *session, CUgraph graph, CUgraphExec *exec_out);

/* Device and page-locked memory, allowed at any time. *address is 0 / NULL on failure. */
stepgraph_status sg__device_alloc(stepgraph_session *session, CUdeviceptr *address, uint64_t bytes);
stepgraph_status sg__host_alloc(stepgraph_session *session, void **memory, uint64_t bytes);

/* Device memory that no step of the host's is given: copies, lists, hashes. It goes back with sg__own_free(), which does nothing for 0. */
stepgraph_status sg__own_alloc(stepgraph_session *session, CUdeviceptr *address, uint64_t bytes);
void sg__own_free(stepgraph_session *session, CUdeviceptr address);

/* Device memory that is free. The context is current. */
stepgraph_status sg__device_left(const stepgraph_session *session, uint64_t *bytes);

/* Memory for snapshots: those limits that are 0 become half of what is free. The context is current. */
stepgraph_status sg__snapshot_limits(const stepgraph_session *session, uint64_t *device_bytes, uint64_t *host_bytes);

/* Refuse while a step of this session records. what completes "… while step 'x' is recording". */
stepgraph_status sg__not_capturing(const stepgraph_session *session, const char *what);

/* Wait for the stream; a fault on the device becomes STEPGRAPH_ERR_LOST. The context is current. */
stepgraph_status sg__session_wait(stepgraph_session *session);
/* All that the host has queued in other threads has reached the driver. */
stepgraph_status sg__session_drain(stepgraph_session *session);
/* The same for all streams, the host's own too, and for what is drained. Breaks nothing that records. */
stepgraph_status sg__session_wait_all(stepgraph_session *session);

void sg__log(const stepgraph_session *session, int32_t level, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Log the thread's error record, and pass its status on. */
SG__COLD stepgraph_status sg__log_failure(const stepgraph_session *session, stepgraph_status status);

/* counter.c: the library's own launches, made by one thread at a time. */
void sg__count_own(stepgraph_session *session, stepgraph_kind kind, uint64_t n);
/* Launches that the host and the wrapper counted: of one kind, and of all kinds but graphs. */
uint64_t sg__counted(const stepgraph_session *session, stepgraph_kind kind);
uint64_t sg__counted_all(const stepgraph_session *session);
/* The library's own launches of all kinds but graphs. */
uint64_t sg__counted_library(const stepgraph_session *session);
stepgraph_exactness sg__exactness(const stepgraph_session *session);

#endif
