/* The calls that are made during a capture, and what the driver makes of them. */
#ifndef CONFORMANCE_MODE_CALLS_H
#define CONFORMANCE_MODE_CALLS_H

#include "conformance.h"

enum mode_class {
    UNSAFE,        /* refused by the rule of the modes: 900, and the captures that forbade it die */
    UNSAFE_LEGACY, /* the same; beside a blocking capture stream 906 */
    NEVER,         /* 900 in every mode, from every thread */
    CAPTURED,      /* 907: an event captured in a live capture */
    LEGACY,        /* accepted and done at once, not recorded; beside a blocking capture stream 906 and death */
    LEGACY_QUERY,  /* the same, but the capture lives on */
    FREE,          /* accepted everywhere; nodes tells what was recorded */
    ARGUMENT,      /* the code of a wrong argument; the capture lives on */
    KILLS,         /* the code of a wrong use, and the capture dies */
};

enum { CALL_DESTROYS_STREAM = 1 };

/* What the calls work on. The common part is always there, the rest by prepare(). */
struct mode_env {
    CUstream capture, other, other2, blocking;
    CUevent before_other, before_same, never, inside, spare;
    CUdeviceptr counter; /* the capture adds 1 to it before and after the call */
    CUdeviceptr scratch; /* 8 KiB */
    CUdeviceptr buffer, pool_buffer, graph_buffer, managed, range, range2;
    cf_mem_handle handle, handle2;
    size_t granularity;
    void *pinned, *pages;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode node;
    CUmodule module;
    CUlibrary library;
    CUkernel lazy;
    CUfunction function, foreign;
    CUmemoryPool pool;
    CUcontext second;
};

struct mode_call {
    const char *id;
    const char *what; /* as it is told */
    enum mode_class class;
    CUresult (*make)(struct mode_env *e);
    void (*prepare)(struct mode_env *e);
    const char *nodes; /* recorded by the call itself: "memcpy=1 mem_free=1", or NULL */
    int code;          /* ARGUMENT, KILLS */
    int instantiate;   /* what instantiating the graph gives */
    unsigned flags;
    const char *deviation;
};

extern const struct mode_call mode_calls[];
extern const int mode_call_count;

/* What the finished graph holds, in the order of the types' numbers: two kernels and what the call recorded. */
void mode_call_nodes(const struct mode_call *call, char *out, size_t size);

#endif
