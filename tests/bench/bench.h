/*
 * What the benchmarks share: the driver's entry points, timing, statistics, the table and the JSON file.
 *
 * Every program compares a call of the library with the driver calls it stands for, in one run and by turns, and has two modes:
 *
 *     PROGRAM [--json FILE]     measures; ends with a table of medians, spread and ratios. Judges nothing: exit status 0.
 *     PROGRAM --short           on cusim: no clock is read. Checks the work done: which driver calls, how often, how many allocations of
 *                               host memory and how many locks. Exit status 1 if one of them is not as expected.
 *
 * A full run on cusim tries the programs out; its times are those of a simulation.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stepgraph/stepgraph.h>

#include "cuda_abi.h"

/* ---- the driver, raw --------------------------------------------------------------------------------------------- */

/* Base name, the CUDA version of the signature, the signature. */
#define BENCH_ENTRIES(X)                                                                                                 \
    X(CtxSetCurrent, 4000, (CUcontext))                                                                                  \
    X(MemGetInfo, 3020, (size_t *, size_t *))                                                                            \
    X(MemAlloc, 3020, (CUdeviceptr *, size_t))                                                                           \
    X(MemFree, 3020, (CUdeviceptr))                                                                                      \
    X(MemHostAlloc, 2020, (void **, size_t, unsigned))                                                                   \
    X(MemFreeHost, 2000, (void *))                                                                                       \
    X(MemcpyHtoD, 3020, (CUdeviceptr, const void *, size_t))                                                             \
    X(MemcpyDtoH, 3020, (void *, CUdeviceptr, size_t))                                                                   \
    X(MemcpyHtoDAsync, 3020, (CUdeviceptr, const void *, size_t, CUstream))                                              \
    X(MemcpyDtoDAsync, 3020, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                               \
    X(MemsetD8Async, 3020, (CUdeviceptr, unsigned char, size_t, CUstream))                                               \
    X(PointerGetAttributes, 7000, (unsigned, CUpointer_attribute *, void **, CUdeviceptr))                               \
    X(StreamSynchronize, 2000, (CUstream))                                                                               \
    X(StreamBeginCapture, 10010, (CUstream, CUstreamCaptureMode))                                                        \
    X(StreamEndCapture, 10000, (CUstream, CUgraph *))                                                                    \
    X(EventCreate, 2000, (CUevent *, unsigned))                                                                          \
    X(EventDestroy, 4000, (CUevent))                                                                                     \
    X(EventRecord, 2000, (CUevent, CUstream))                                                                            \
    X(EventElapsedTime, 2000, (float *, CUevent, CUevent))                                                               \
    X(ModuleLoadData, 2000, (CUmodule *, const void *))                                                                  \
    X(ModuleGetFunction, 2000, (CUfunction *, CUmodule, const char *))                                                   \
    X(ModuleUnload, 2000, (CUmodule))                                                                                    \
    X(LibraryLoadData, 12000, (void **, const void *, int *, void **, unsigned, int *, void **, unsigned))               \
    X(LibraryGetKernel, 12000, (CUkernel *, void *, const char *))                                                       \
    X(LaunchKernel, 4000,                                                                                                \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))    \
    X(GraphGetNodes, 10000, (CUgraph, CUgraphNode *, size_t *))                                                          \
    X(GraphKernelNodeGetParams, 10000, (CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v1 *))                                      \
    X(GraphInstantiateWithParams, 12000, (CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *))                      \
    X(GraphUpload, 11010, (CUgraphExec, CUstream))                                                                       \
    X(GraphLaunch, 10000, (CUgraphExec, CUstream))                                                                       \
    X(GraphExecUpdate, 12000, (CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *))                                     \
    X(GraphExecDestroy, 10000, (CUgraphExec))                                                                            \
    X(GraphDestroy, 10000, (CUgraph))

/* Without their cu: cu.MemAlloc(...). */
struct bench_driver {
#define X(name, version, signature) CUresult(*name) signature;
    BENCH_ENTRIES(X)
#undef X
};
extern struct bench_driver cu;

/* A call that has to succeed: otherwise the program says why and ends with status 1. */
#define OK(call) bench_must((call), #call, __FILE__, __LINE__)
#define CU(call) bench_must_driver(cu.call, "cu" #call, __FILE__, __LINE__)
void bench_must(stepgraph_status status, const char *call, const char *file, int line);
void bench_must_driver(CUresult code, const char *call, const char *file, int line);

/* ---- the program --------------------------------------------------------------------------------------------------- */

extern stepgraph_session *session; /* On the primary context, which is current in the main thread. */
extern CUstream stream;            /* Its stream. */
extern bool bench_software;        /* The driver is cusim. */

struct bench_kernels {
    CUfunction nop, inc, update, addn, part604, big4096; /* See tests/kernels/kernels.cu. */
};
extern struct bench_kernels kernels;

/* The body of main. */
int bench_main(int argc, char **argv, const char *name, void (*measure)(void), void (*check_work)(void));

/* A session of its own, for another thread or with other options. */
stepgraph_session *bench_open(const stepgraph_session_config *config);

/* On cusim, sizes that take too long there are left out. */
bool bench_skips(uint64_t size, uint64_t most_on_cusim);

/* ---- steps and raw graphs ------------------------------------------------------------------------------------------ */

stepgraph_pin *bench_pin(stepgraph_session *of, stepgraph_role role, CUdeviceptr address, uint64_t bytes, const char *name);
stepgraph_step *bench_step(stepgraph_session *of, const char *name, uint32_t flags);

/* n launches of inc on one float, as a chain: the same for a fresh run, a recording of the library and a raw one. */
void bench_launches(CUstream on, CUdeviceptr p, unsigned n);

/*
 * n launches of a kernel that takes a struct by value, of 604 bytes or of 4,088, as frameworks pass them: a part is set, with addresses in memory
 * from p on, and the rest is left over from the host's stack, other for other values of `garbage` in one node of eight. As a chain.
 */
enum { BENCH_PART = 604, BENCH_BIG = 4088 };
void bench_structs(CUstream on, CUdeviceptr p, size_t bytes, unsigned n, unsigned garbage);

/*
 * n such launches as a PyTorch step has them, seven of 604 bytes to one of 4,088. A quarter of each struct is set. The rest is left over: a few hundred
 * numbers in an order that nobody foresees, of which some are others in each recording: addresses of the host's data and code, addresses in memory
 * from pool on, which moved, and numbers.
 */
enum { BENCH_LEFT_OVER_BYTES = 1 << 20 }; /* Of the memory from pool on. */
void bench_left_over(CUstream on, CUdeviceptr p, CUdeviceptr pool, unsigned n, unsigned recording);

/* The same, but of each third node 4,088 bytes with nine words that nobody has set, others in each recording, and of the others 604 with one. */
void bench_unset(CUstream on, CUdeviceptr p, CUdeviceptr pool, unsigned n, unsigned recording);

/* Nodes of 604 bytes with three addresses each, in memory from an address on, all of them others in each recording: a step that makes its parameters
 * anew. */
enum { BENCH_MOVED_BYTES = 1024 }; /* For each node and recording. */
void bench_moved(CUstream on, CUdeviceptr p, CUdeviceptr memory, unsigned n, unsigned recording);

/* prepare, capture, n launches, end. */
void bench_record(stepgraph_step *step, CUdeviceptr p, unsigned n);

/* The same by driver calls. */
CUgraph bench_capture_raw(CUdeviceptr p, unsigned n);
CUgraphExec bench_instantiate(CUgraph graph);

void bench_sync(void); /* The session's stream, by a driver call. */

/* ---- timing -------------------------------------------------------------------------------------------------------- */

double bench_now_us(void);

typedef struct bench_stat {
    double median, p10, p90;
    double low, high; /* Where the median is with 95 % certainty; the median itself where there are too few values to say. */
    size_t n;
} bench_stat;

/* Sorts the values. */
bench_stat bench_stat_of(double *values, size_t n);

/* Ours and raw by turns; difference is that of each pair. */
typedef struct bench_pair {
    bench_stat ours, raw, difference;
} bench_pair;

/* One sample: microseconds for one operation. */
typedef double (*bench_sample)(void *user);

/* Take pairs of samples, first ours or first raw in turn, for about `milliseconds`; at least 11 and at most 1001 pairs. */
bench_pair bench_alternate(bench_sample ours, bench_sample raw, void *user, double milliseconds);

/* The same in parts, between which what is measured can be made anew: begin, any number of samplings, end. */
void bench_pairs_begin(void);
void bench_pairs_sample(bench_sample ours, bench_sample raw, void *user, double milliseconds);
bench_pair bench_pairs_end(void);

/* Microseconds between two events around what was enqueued on the stream. */
void bench_device_start(void);
double bench_device_stop(void);

/* ---- results ------------------------------------------------------------------------------------------------------- */

/* The first two are missed only where ours - raw is too much with 95 % certainty; else they are open. */
typedef enum bench_target_kind {
    BENCH_NO_TARGET,
    BENCH_RATIO,      /* ours / raw is at most the target. */
    BENCH_DIFFERENCE, /* The median of ours - raw, pair by pair, is at most the target. */
    BENCH_VALUE       /* ours is at most the target. */
} bench_target_kind;

typedef struct bench_row {
    const char *series; /* Groups rows for tables and plots: "replay, nodes". A literal. */
    char label[64];
    double x;           /* The size that varies in the series. */
    const char *unit;   /* Of the values: a literal. */
    bench_pair pair;
    bench_target_kind kind;
    double target;
    bool headline; /* In the table at the end; the others are printed as they come. */
} bench_row;

/* Add a row. The label is a format. */
void bench_add(const char *series, double x, const char *unit, const bench_pair *pair, bench_target_kind kind, double target, bool headline,
               const char *label, ...) __attribute__((format(printf, 8, 9)));

/* ---- work done ------------------------------------------------------------------------------------------------------ */

/* From here on, what the library does in this thread is counted. */
void bench_work_begin(void);

typedef struct bench_call {
    const char *entry; /* "cuGraphLaunch". */
    unsigned long n;
} bench_call;

/* Exactly these driver calls, in a list that ends with NULL, and no other the library can make; at most so many allocations and locks. */
void bench_work_is(const char *what, unsigned long allocations, unsigned long locks, const bench_call *calls);
#define WORK_IS(what, allocations, locks, ...) bench_work_is((what), (allocations), (locks), (const bench_call[]){ __VA_ARGS__, { NULL, 0 } })

/* Only one entry; call it before bench_work_is(). */
unsigned long bench_work_calls(const char *entry);

/* Bytes of host memory that the library holds more than at bench_work_begin(), counted in this thread. 0 where nothing counts them. */
long bench_work_bytes(void);

/* One check. Prints and counts. */
void bench_expect(bool holds, const char *what, ...) __attribute__((format(printf, 2, 3)));

#endif
