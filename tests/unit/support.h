/*
 * What the unit tests share: a session on the driver that STEPGRAPH_DRIVER names, the driver's own entry points, the test
 * kernels, and lists of all that a test made, so that a failing test leaves nothing behind for the next one.
 *
 * The same programs run on cusim and on a card. CUDA does not survive a fork after cuInit, so no program that uses a driver forks
 * its tests, and each test has a fresh session from a checked fixture.
 */
#ifndef UNIT_SUPPORT_H
#define UNIT_SUPPORT_H

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepgraph/stepgraph.h>

#include "cuda_abi.h"

/* ---- the driver, raw --------------------------------------------------------------------------------------------- */

/* Base name, the CUDA version of the signature, the signature. */
/* clang-format off */
#define UNIT_ENTRIES(X)                                                                                                  \
    X(DriverGetVersion, 2020, (int *))                                                                                   \
    X(DeviceGet, 2000, (CUdevice *, int))                                                                                \
    X(DeviceGetName, 2000, (char *, int, CUdevice))                                                                      \
    X(DeviceGetAttribute, 2000, (int *, CUdevice_attribute, CUdevice))                                                   \
    X(DevicePrimaryCtxRetain, 7000, (CUcontext *, CUdevice))                                                             \
    X(DevicePrimaryCtxReset, 11000, (CUdevice))                                                                          \
    X(CtxCreate, 3020, (CUcontext *, unsigned, CUdevice))                                                                \
    X(CtxDestroy, 4000, (CUcontext))                                                                                     \
    X(CtxGetCurrent, 4000, (CUcontext *))                                                                                \
    X(CtxSetCurrent, 4000, (CUcontext))                                                                                  \
    X(CtxPopCurrent, 4000, (CUcontext *))                                                                                \
    X(CtxSynchronize, 2000, (void))                                                                                      \
    X(ModuleLoadData, 2000, (CUmodule *, const void *))                                                                  \
    X(ModuleGetFunction, 2000, (CUfunction *, CUmodule, const char *))                                                   \
    X(ModuleUnload, 2000, (CUmodule))                                                                                    \
    X(MemAlloc, 3020, (CUdeviceptr *, size_t))                                                                           \
    X(MemFree, 3020, (CUdeviceptr))                                                                                      \
    X(MemAllocHost, 3020, (void **, size_t))                                                                             \
    X(MemFreeHost, 2000, (void *))                                                                                       \
    X(MemcpyHtoD, 3020, (CUdeviceptr, const void *, size_t))                                                             \
    X(MemcpyDtoH, 3020, (void *, CUdeviceptr, size_t))                                                                   \
    X(MemcpyHtoDAsync, 3020, (CUdeviceptr, const void *, size_t, CUstream))                                              \
    X(MemcpyDtoDAsync, 3020, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                               \
    X(MemsetD8Async, 3020, (CUdeviceptr, unsigned char, size_t, CUstream))                                               \
    X(PointerGetAttribute, 4000, (void *, CUpointer_attribute, CUdeviceptr))                                             \
    X(StreamCreate, 2000, (CUstream *, unsigned))                                                                        \
    X(StreamDestroy, 4000, (CUstream))                                                                                   \
    X(StreamGetFlags, 7000, (CUstream, unsigned *))                                                                      \
    X(StreamQuery, 2000, (CUstream))                                                                                     \
    X(StreamSynchronize, 2000, (CUstream))                                                                               \
    X(StreamIsCapturing, 10000, (CUstream, CUstreamCaptureStatus *))                                                     \
    X(GraphGetNodes, 10000, (CUgraph, CUgraphNode *, size_t *))                                                          \
    X(EventCreate, 2000, (CUevent *, unsigned))                                                                          \
    X(EventDestroy, 4000, (CUevent))                                                                                     \
    X(EventQuery, 2000, (CUevent))                                                                                       \
    X(EventRecord, 2000, (CUevent, CUstream))                                                                            \
    X(StreamWaitEvent, 3020, (CUstream, CUevent, unsigned))                                                              \
    X(MemGetInfo, 3020, (size_t *, size_t *))                                                                            \
    X(LaunchHostFunc, 10000, (CUstream, CUhostFn, void *))                                                               \
    X(LaunchKernel, 4000,                                                                                                \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))
/* clang-format on */

/* The entry points, without their cu: cu.MemAlloc(...). */
struct unit_driver {
#define X(name, version, signature) CUresult(*name) signature;
    UNIT_ENTRIES(X)
#undef X
};
extern struct unit_driver cu;

/* The path of the driver under test: STEPGRAPH_DRIVER, else libcuda.so.1. */
const char *driver_path(void);

/* cusim's controls. On a real driver unit_has_controls() is 0, no calls are counted, and a test that sets something fails. */
int unit_has_controls(void);
void driver_fails(const char *entry, unsigned nth, int code); /* The nth call from now fails with this code; nth 0: none does. */
void no_driver_fails(void);                                   /* Takes all of these back. */
unsigned long driver_calls(const char *entry);                /* Calls of this entry so far. */
void driver_exec_delays(const unsigned long long *ns, unsigned n); /* Launches of the next executables that are made take so much longer. */
void driver_memory(unsigned long long bytes); /* So much has the device; 16 GiB again after the test. */
void driver_seed(unsigned long long seed); /* What has no order runs in one that is drawn; 0: as it comes. Until the end of the test. */

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Add a test that needs cusim's controls, or say that it is skipped, and why. It never counts as passed then. */
#define add_controlled_test(tcase, test) add_controlled_loop_test(tcase, test, 0, 1)
#define add_controlled_loop_test(tcase, test, from, to)                                                                          \
    do {                                                                                                                         \
        if (unit_has_controls())                                                                                                 \
            tcase_add_loop_test(tcase, test, from, to);                                                                          \
        else                                                                                                                     \
            unit_skip((test)->name, "needs the controls of cusim");                                                              \
    } while (0)

/* Note a test that was not run. */
void unit_skip(const char *test, const char *reason);

/* The host's numbers have commas from here on, in a language that is made if there is none; where that cannot be, the test is noted as skipped and goes
 * on with points. The end sees that the language was left as it is. Nothing fails in between. */
void unit_commas_begin(const char *test);
void unit_commas_end(void);

/* A test case whose tests each have a fresh session. */
TCase *unit_case(Suite *suite, const char *name);

/* The body of main: exit status 0, 1, or 77 where there is no driver or all tests were skipped. `make` may look at the driver. */
int unit_main(Suite *(*make)(void));

/* ---- the fixture and what tests make ------------------------------------------------------------------------------- */

extern stepgraph_session *session; /* Of the running test, on the primary context. */
extern CUstream stream;            /* Its stream. */

/* Close the fixture's session and open one with these options instead. */
void reopen(const stepgraph_session_config *config);

/* The same with a log up to this level that is kept; how many of its lines hold these words; and begin anew. */
void reopen_listening(uint32_t level);
unsigned said(const char *words);
void forget_said(void);

/* All of these are given back after the test, in the right order, unless the test does it first. */
stepgraph_session *session_make(const stepgraph_session_config *config);
stepgraph_pin *pin_make(stepgraph_session *of, stepgraph_role role, uint64_t bytes, const char *name);
stepgraph_pin *pin_adopt(stepgraph_session *of, stepgraph_role role, CUdeviceptr address, uint64_t bytes, const char *name);
stepgraph_step *step_make(stepgraph_session *of, const char *name, uint32_t flags);
CUdeviceptr device_make(size_t bytes); /* Filled with zeros. */
CUstream stream_make(unsigned flags);

/* Objects made by the test itself, to be given back like those above. */
void keep_session(stepgraph_session *made);
void keep_pin(stepgraph_pin *made);
void keep_step(stepgraph_step *made);

/* Give back early. */
void drop_session(stepgraph_session *made);
void drop_pin(stepgraph_pin *made);
void drop_step(stepgraph_step *made);
void device_drop(CUdeviceptr made);

/* Gone already. */
void forget_session(stepgraph_session *gone);
void forget_pin(stepgraph_pin *gone);
void forget_step(stepgraph_step *gone);
void forget_device(CUdeviceptr gone);

/*
 * What this thread allocates from now on may stay behind: the library leaves the driver's objects in a dead context alone, and
 * what a driver call that fails on request was to free is not freed. Until taken back, or the end of the test. For the leak
 * detector, to which whatever cusim still holds at exit is a leak of the host's.
 */
void unit_leaves_objects(int on);

/* ---- kernels ------------------------------------------------------------------------------------------------------- */

struct unit_kernels {
    CUfunction nop, inc, setv, axpb, update, addn, copyf, spin, inner, big4096, spread;
};
extern struct unit_kernels kernels; /* Of the primary context. */

/* Load the kernels into the current context. */
CUmodule kernels_load(struct unit_kernels *into);

/* Launched through the driver and counted by nobody. */
void launch(CUstream on, CUfunction function, unsigned threads, void **arguments);
void inc(CUstream on, CUdeviceptr p, float v);                                                  /* *p += v */
void setv(CUstream on, CUdeviceptr p, float v);                                                 /* *p = v */
void axpb(CUstream on, CUdeviceptr d, CUdeviceptr p, float v);                                  /* *d = *p + v */
void copyf(CUstream on, CUdeviceptr d, CUdeviceptr s);                                          /* *d = *s */
void update(CUstream on, CUdeviceptr d, CUdeviceptr p, CUdeviceptr x, CUdeviceptr rate, int n); /* d = p + *rate * x */
void spin(CUstream on, unsigned milliseconds);                                                  /* Keeps the stream busy. */

/* Launched through stepgraph_session_launch(), and so counted as the wrapper's. */
stepgraph_status counted(stepgraph_session *of, CUstream on, CUfunction function, void **arguments);
void counted_inc(stepgraph_session *of, CUstream on, CUdeviceptr p, float v);

/* After the session's stream is idle. */
float float_at(CUdeviceptr p);
float pin_float(const stepgraph_pin *pin);
void bytes_at(CUdeviceptr p, void *to, size_t bytes);
void put_bytes(CUdeviceptr p, const void *from, size_t bytes); /* After all sessions are idle, where they can be waited for. */
void put_float(CUdeviceptr p, float v);

/* Prepare and capture. */
void begin_recording(stepgraph_step *step);
/* The same, `body` and end; all must succeed. */
void record(stepgraph_step *step, void (*body)(void *), void *argument);
/* So many replays, which are over. */
void replayed(stepgraph_step *step, unsigned times);

/* ---- saying what is expected ----------------------------------------------------------------------------------------- */

/* The words of the last error. */
const char *last_words(void);
/* The first of `words` (ended by NULL) that `text` lacks, letter case aside; NULL if it has all. */
const char *lacks(const char *text, const char *const *words);

#define OK(call)                                                                                                                 \
    do {                                                                                                                         \
        stepgraph_status s_ = (call);                                                                                            \
        ck_assert_msg(s_ == STEPGRAPH_OK, "%s: %s: %s", #call, stepgraph_status_name(s_), last_words());                         \
    } while (0)

#define CU(call)                                                                                                                 \
    do {                                                                                                                         \
        CUresult r_ = cu.call;                                                                                                   \
        ck_assert_msg(r_ == CUDA_SUCCESS, "cu%s answers %d", #call, (int)r_);                                                    \
    } while (0)

/* The call answers `want`, and its message holds all these words. At least one word, perhaps "". */
#define FAILS(want, call, ...)                                                                                                   \
    do {                                                                                                                         \
        stepgraph_status s_ = (call);                                                                                            \
        const char *words_[] = {__VA_ARGS__, NULL};                                                                              \
        ck_assert_msg(s_ == (want), "%s: %s instead of %s: %s", #call, stepgraph_status_name(s_), stepgraph_status_name(want),   \
                      last_words());                                                                                             \
        ck_assert_msg(lacks(last_words(), words_) == NULL, "the message of %s lacks '%s': %s", #call,                            \
                      lacks(last_words(), words_), last_words());                                                                \
        ck_assert_int_gt(strlen(last_words()), 0);                                                                               \
        ck_assert_int_eq(last_error().status, s_);                                                                               \
    } while (0)

/* For models: libcheck notes each of its own assertions, also those that hold, and that is slow. The test's char place[] says where it is. */
#define AGREE(condition, ...)                                                                                                    \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            char why_[1500];                                                                                                     \
            snprintf(why_, sizeof why_, __VA_ARGS__);                                                                            \
            ck_abort_msg("%s: %s", place, why_);                                                                                 \
        }                                                                                                                        \
    } while (0)

#define STATE_IS(step, want) ck_assert_int_eq(stepgraph_step_state(step), want)

/* A struct with `extra` bytes behind it, for tests of struct sizes. */
#define LONGER(type, extra)                                                                                                      \
    union {                                                                                                                      \
        type known;                                                                                                              \
        unsigned char bytes[sizeof(type) + (extra)];                                                                             \
    }

stepgraph_error_info last_error(void);
stepgraph_sample sample_now(stepgraph_session *of);
stepgraph_pin_stats pin_stats(stepgraph_session *of);
stepgraph_step_stats step_stats(const stepgraph_step *step);

/* Pseudo-random numbers from a seed, the same everywhere. */
uint32_t unit_random(uint64_t *seed);
void random_bytes(uint64_t *seed, void *to, size_t bytes);

#endif
