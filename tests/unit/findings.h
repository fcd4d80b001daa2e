/*
 * What the tests of the audit share: recording in two lines, reports that are given back after the test, and saying which
 * findings a report must hold.
 */
#ifndef UNIT_FINDINGS_H
#define UNIT_FINDINGS_H

#include "support.h"

/* ---- more of the driver ------------------------------------------------------------------------------------------ */

#define MORE_ENTRIES(X)                                                                                                          \
    X(DeviceGetCount, 2000, (int *))                                                                                             \
    X(MemcpyAsync, 4000, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                                           \
    X(MemcpyDtoHAsync, 3020, (void *, CUdeviceptr, size_t, CUstream))                                                            \
    X(MemsetD32Async, 3020, (CUdeviceptr, unsigned, size_t, CUstream))                                                           \
    X(MemAllocAsync, 11020, (CUdeviceptr *, size_t, CUstream))                                                                   \
    X(MemFreeAsync, 11020, (CUdeviceptr, CUstream))                                                                              \
    X(StreamBeginCapture, 10010, (CUstream, CUstreamCaptureMode))                                                                \
    X(StreamEndCapture, 10000, (CUstream, CUgraph *))                                                                            \
    X(StreamGetCaptureInfo, 11030, (CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **, size_t *)) \
    X(StreamUpdateCaptureDependencies, 11030, (CUstream, CUgraphNode *, size_t, unsigned))                                       \
    X(GraphAddChildGraphNode, 10000, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph))                             \
    X(GraphInstantiateWithParams, 12000, (CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *))                              \
    X(GraphUpload, 11010, (CUgraphExec, CUstream))                                                                               \
    X(GraphExecDestroy, 10000, (CUgraphExec))                                                                                    \
    X(GraphDestroy, 10000, (CUgraph))

/* As cu: more.MemAllocAsync(...). */
struct more_driver {
#define X(name, version, signature) CUresult(*name) signature;
    MORE_ENTRIES(X)
#undef X
};
extern struct more_driver more;

#define MORE(call)                                                                                                               \
    do {                                                                                                                         \
        CUresult r_ = more.call;                                                                                                 \
        ck_assert_msg(r_ == CUDA_SUCCESS, "cu%s answers %d", #call, (int)r_);                                                    \
    } while (0)

/* Of the primary context; the C++ one is net::scale. */
struct audit_kernels {
    CUfunction inner, packed, adam, dropout, hyper, adam_struct, padded, views, fill, wide, part604, big4096, scale;
};
extern struct audit_kernels made_for;

struct Inner {
    CUdeviceptr p;
    int n;
    CUdeviceptr tail[3];
};
struct __attribute__((packed)) Packed {
    int tag;
    CUdeviceptr a;
    short s;
    CUdeviceptr b;
};
struct Hyper {
    float rate;
    int step;
};
struct Adam {
    float rate, correction;
    int step;
    float decay;
};
struct Padded {
    char tag;
    double scale;
    short n;
    CUdeviceptr p;
};
struct Views {
    CUdeviceptr out, in, bias;
    int n;
};

/* Of part604 and of big4096, as the second argument. */
struct Part {
    uint32_t words[151];
};
struct Big {
    uint64_t words[511];
};

void adam(CUdeviceptr w, CUdeviceptr g, float rate, float correction, int step);
void scale(CUdeviceptr p, float by);
/* inc(), which may begin before the kernel before it has ended: a programmatic launch. */
void inc_early(CUstream on, CUdeviceptr p, float v);

/* ---- recording ------------------------------------------------------------------------------------------------------- */

/* As unit_case(); reports are given back too. */
TCase *audit_case(Suite *suite, const char *name);

/* Begin, prepare and capture; what the test enqueues next on `stream` is recorded. */
stepgraph_step *recording(const char *name, uint32_t flags);
stepgraph_step *recording_checked(const char *name, uint32_t flags, uint32_t liveness_every);

/* End: the step must be READY, or refused with STEPGRAPH_ERR_REFUSED and FAILED. The report that end made. */
stepgraph_audit *ready(stepgraph_step *step);
stepgraph_audit *refused(stepgraph_step *step);

stepgraph_audit *compared(const stepgraph_step *a, const stepgraph_step *b, const stepgraph_step *b_again);
stepgraph_audit *keep_report(stepgraph_audit *made);
stepgraph_audit_summary summary_of(const stepgraph_audit *report);

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

void *page_locked(size_t bytes); /* Freed after the test, unless the test does it. */
void page_locked_drop(void *memory);
/* By another thread, which a recording of this one does not mind. */
void free_elsewhere(CUdeviceptr memory);
/* Allocate until this address comes back. 0: it does not, on this driver, and the test is noted as skipped. */
int take_again(CUdeviceptr address, size_t bytes, const char *test);

/* ---- what a report holds --------------------------------------------------------------------------------------------- */

#define NOWHERE UINT32_MAX

/* Exactly one finding of this kind stands at this place, with this weight, name and advice, and its text has all the words. */
enum { DOUBTFUL = 2 };
struct wanted {
    uint32_t kind, fault, node; /* fault: 0, 1 or DOUBTFUL. */
    const char *name;
    uint32_t argument, offset;
    const char *advice;
};
stepgraph_finding found(const stepgraph_audit *report, const struct wanted *wanted, const char *const *words);

/* FOUND(report, FREED, 3, "adam", 1, 0, "keep", "words", ...): a fault. */
#define FOUND(report, kind, node, name, argument, offset, advice, ...)                                                           \
    found(report, &(struct wanted){STEPGRAPH_FINDING_##kind, 1, node, name, argument, offset, advice},                           \
          (const char *const[]){__VA_ARGS__, NULL})
/* The same, but in doubt. */
#define DOUBTED(report, kind, node, name, argument, offset, advice, ...)                                                         \
    found(report, &(struct wanted){STEPGRAPH_FINDING_##kind, DOUBTFUL, node, name, argument, offset, advice},                    \
          (const char *const[]){__VA_ARGS__, NULL})
/* The same, but no fault. */
#define NOTED(report, kind, node, name, argument, offset, advice, ...)                                                           \
    found(report, &(struct wanted){STEPGRAPH_FINDING_##kind, 0, node, name, argument, offset, advice},                           \
          (const char *const[]){__VA_ARGS__, NULL})

/* The report counts as many of each. */
#define HOLDS(report, want_faults, want_findings)                                                                                \
    do {                                                                                                                         \
        stepgraph_audit_summary s_ = summary_of(report);                                                                         \
        ck_assert_msg(s_.faults == (want_faults) && s_.findings == (want_findings),                                              \
                      "%llu faults and %llu findings instead of %d and %d: %s", (unsigned long long)s_.faults,                   \
                      (unsigned long long)s_.findings, (int)(want_faults), (int)(want_findings), stepgraph_audit_text(report));  \
    } while (0)
#define CLEAN(report) HOLDS(report, 0, 0)

/* Whether a text is one JSON value and nothing else, in UTF-8; NULL if so, else where it is not. */
const char *json_fault(const char *text);

#endif
