/*
 * What all files of cusim share.
 *
 * One lock, cs.lock, guards everything but the bytes of device memory: entries take it at the gate (entries.h) and give it back
 * on return. A worker thread holds it between two pieces of work and runs the work itself without it. Whoever waits, waits on
 * cs.done, which is broadcast when a fence completes.
 */
#ifndef CUSIM_CORE_H
#define CUSIM_CORE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cusim/cusim.h"
#include "cusim/kernel.h"
#include "entries.h"

#define CS_MAX_DEVICES 8
#define CS_STACK 32
#define CS_PAGE 4096ull
#define CS_GRANULE 512ull            /* Allocations lie back to back at this step. */
#define CS_BLOCK (2ull << 20)        /* A physical block, as the attribute calls tell it. */
#define CS_GRAPH_BLOCK (32ull << 20) /* Graph memory is accounted in blocks of this size. */
#define CS_ALIGN 256ull              /* With checks on: the alignment of allocations, */
#define CS_GUARD (64ull << 10)       /* and how many bytes behind each nobody may touch. */
#define CS_POISON 0xDB               /* What new and freed memory holds: -1.2e17 as a float. */

/* ---- handles ------------------------------------------------------------------------------------------------------- */

enum cs_type {
    CS_CONTEXT = 1,
    CS_STREAM,
    CS_EVENT,
    CS_MODULE,
    CS_LIBRARY,
    CS_FUNCTION,
    CS_KERNEL,
    CS_GRAPH,
    CS_NODE,
    CS_EXEC,
    CS_POOL,
    CS_USER,
    CS_BACKING,
    CS_CONDITIONAL
};

void cs_handle_add(const void *handle, enum cs_type type);
void cs_handle_remove(const void *handle);
bool cs_is(const void *handle, enum cs_type type);
/* Call `fn` for every handle of a type. `fn` may remove handles. */
void cs_handles_each(enum cs_type type, void (*fn)(void *handle, void *data), void *data);

/* ---- fences -------------------------------------------------------------------------------------------------------- */

/* Completion of one piece of work. */
struct cs_fence {
    int refs;
    bool done;
    uint64_t ns;      /* When. */
    struct cs_op *op; /* Whose completion it is, until it has completed. */
};

struct cs_fence *cs_fence_new(void);
struct cs_fence *cs_fence_get(struct cs_fence *fence);
void cs_fence_put(struct cs_fence *fence);
void cs_fence_signal(struct cs_fence *fence);
/* Gives the lock up meanwhile. NULL: nothing to wait for. */
void cs_fence_wait(struct cs_fence *fence);
uint64_t cs_now(void);

/* ---- memory -------------------------------------------------------------------------------------------------------- */

struct cs_variable;

/* The first four can be freed. */
enum cs_memory {
    CS_MEM_DEVICE,
    CS_MEM_MANAGED,
    CS_MEM_POOL,
    CS_MEM_GRAPH,
    CS_MEM_VMM,
    CS_MEM_VARIABLE,
    CS_MEM_PINNED,
    CS_MEM_REGISTERED
};

/* Physical memory of cuMemCreate: a file without a name, which can be seen at several addresses. */
struct cs_backing {
    int fd;
    size_t size;
    int device;
    uint64_t id;
    cusim_mem_prop prop;
    unsigned handles; /* cuMemCreate and cuMemRetainAllocationHandle, less cuMemRelease. */
    unsigned mappings;
};

/* A range of CUDA memory. `visible`: the attribute calls know it. */
struct cs_alloc {
    CUdeviceptr base;
    size_t size;
    /* What it takes of the address range; begins before `base` only if `guarded`. */
    CUdeviceptr from;
    size_t span;
    enum cs_memory kind;
    CUcontext ctx; /* NULL for pool and graph memory. */
    int device;
    uint64_t id;
    CUmemoryPool pool;
    unsigned flags;
    bool sync_memops;
    bool visible;
    CUstream freed_in; /* Freed in stream order: the stream whose work still has to pass. */
    bool reused;       /* ... and its address was handed out again in the same stream meanwhile. */
    /* Graph memory: nodes and executable graphs that name it, its launches in flight, whether it lives, whether it is accounted. */
    int refs;
    int launches;
    int frees; /* Stream-ordered frees still to pass. */
    bool live;
    bool open; /* Its pages can be read: with checks, not after the free in its graph, though it lives until the launch is over. */
    bool charged;
    /* Of a mapping. */
    struct cs_alloc *reservation;
    struct cs_backing *backing;
    int access; /* CUmemAccess_flags; 0: none yet. */
    /* Checks: on pages of its own, with known bytes around it and pages behind it that nobody may touch. */
    bool guarded;
};

struct cs_alloc *cs_find(CUdeviceptr address, size_t bytes);       /* Visible ranges. */
struct cs_alloc *cs_find_graph(CUdeviceptr address, size_t bytes); /* Graph memory, live or not. */
CUresult cs_device_alloc(enum cs_memory kind, size_t bytes, CUcontext ctx, int device, struct cs_alloc **out);
void cs_alloc_show(struct cs_alloc *alloc);
void cs_alloc_hide(struct cs_alloc *alloc);
void cs_alloc_open(struct cs_alloc *alloc);  /* Make the pages usable. */
void cs_alloc_close(struct cs_alloc *alloc); /* Poison, and make those pages that it has alone unusable. */
CUresult cs_free_in_stream(CUstream stream, struct cs_alloc *alloc);
void cs_free_finish(struct cs_alloc *alloc);
struct cs_alloc *cs_variable_add(const struct cs_variable *v, CUcontext ctx);
void cs_variable_put(struct cs_alloc *alloc);
void cs_memory_context_gone(CUcontext ctx);
struct cs_alloc *cs_find_near(CUdeviceptr address); /* With checks on: whose pages these are. */
bool cs_in_arena(uintptr_t address);
bool cs_host_kind(enum cs_memory kind);
/* Room in the range of addresses that is not memory yet; `at`: where exactly, or 0. */
struct cs_alloc *cs_reserve(size_t bytes, size_t align, CUdeviceptr at);
void cs_unreserve(struct cs_alloc *reservation);
struct cs_alloc *cs_find_reservation(CUdeviceptr address);
bool cs_mapped_within(CUdeviceptr from, size_t bytes); /* Is anything mapped there? */
bool cs_memory_charge(int device, size_t bytes);
void cs_memory_uncharge(int device, size_t bytes);
void cs_graph_alloc_put(struct cs_alloc *alloc);
void cs_graph_alloc_live(struct cs_alloc *alloc, bool live);
/* Changes whenever memory goes away: a check of operands holds as long as it does. */
extern uint64_t cs_free_epoch;

struct CUmemPoolHandle_st {
    int device;
    bool is_default;
    uint64_t threshold;
    uint64_t used, used_high;
    int follow, opportunistic, internal;
};

CUresult cs_pool_alloc(CUmemoryPool pool, CUstream stream, size_t bytes, CUdeviceptr *out);
void cs_pools_reset(int device);

/* ---- modules ------------------------------------------------------------------------------------------------------- */

struct cs_kernel_param {
    unsigned offset, size;
};

/* One .entry of an image. */
struct cs_kernel_entry {
    char *name;
    unsigned num_params;
    unsigned bytes; /* Of all parameters. */
    struct cs_kernel_param *params;
    uint64_t reads, writes;          /* Parameters, of the first 64, from which addresses of loads and stores are made. */
    const struct cusim_kernel *body; /* NULL: no pack has it. */
};

/* One .global or .const variable of an image. */
struct cs_variable {
    char *name;
    size_t bytes;
    unsigned align;
    unsigned char *initial;
    const struct cusim_variable *body; /* Where kernels of a pack have it; NULL: nowhere. */
};

/* A parsed image; functions, kernels and nodes hold it. */
struct cs_image {
    int refs;
    unsigned num_entries, num_variables;
    struct cs_kernel_entry *entries;
    struct cs_variable *variables;
};

CUresult cs_ptx_parse(const char *text, struct cs_image **out);
void cs_image_put(struct cs_image *image);
const struct cusim_kernel *cs_pack_find(const char *name);
const struct cusim_variable *cs_pack_find_variable(const char *name);

struct CUmod_st {
    CUcontext ctx;
    struct cs_image *image;
    CUfunction *functions;       /* One per entry, made on demand. */
    struct cs_alloc **variables; /* One per variable. */
    CUlibrary library;
};

struct CUlib_st {
    struct cs_image *image;
    CUkernel *kernels;
    CUmodule *modules; /* One per context, made on demand. */
    size_t num_modules, room;
};

struct CUfunc_st {
    CUmodule module;
    CUkernel kernel;
    const struct cs_kernel_entry *entry;
    int dynamic_shared;
    bool loaded;
};

struct CUkern_st {
    CUlibrary library;
    const struct cs_kernel_entry *entry;
    int dynamic_shared;
};

CUresult cs_kernel_function(CUkernel kernel, CUcontext ctx, CUfunction *out);
void cs_modules_context_gone(CUcontext ctx);

/* ---- work ---------------------------------------------------------------------------------------------------------- */

/* Kinds of work beside the node types. */
enum { CS_WORK_NOTHING = 100, CS_WORK_CALLBACK, CS_WORK_FREE, CS_WORK_GRAPH, CS_WORK_BRANCH };

/* Argument bytes in the form in which they were given, both as an array of pointers and as `extra`. Never changed once made. */
struct cs_args {
    int refs;
    enum { CS_ARGS_NONE, CS_ARGS_POINTERS, CS_ARGS_BUFFER } form;
    unsigned count;
    size_t buffer_size; /* As given with CS_ARGS_BUFFER. */
    void *extra[5];
    void **pointers;
    size_t bytes;
    unsigned char *data;
};

struct cs_kernel {
    CUfunction func;
    CUkernel kern;
    CUcontext ctx;
    struct cs_image *image; /* Keeps entry alive after the module is gone. */
    const struct cs_kernel_entry *entry;
    unsigned grid[3], block[3], shared;
    struct cs_args *args;
    int priority, cooperative, serialization;
    unsigned cluster[3];
};

struct cs_copy {
    CUDA_MEMCPY3D p;
    CUcontext ctx;
    uint64_t dst_id, src_id; /* BUFFER_IDs of the operands when it was made; 0: not CUDA memory. */
    int dst_class, src_class;
    void *staged; /* Host bytes read during the call, which this work owns. */
};

struct cs_set {
    CUDA_MEMSET_NODE_PARAMS p;
    CUcontext ctx;
    uint64_t dst_id;
};

struct cs_batch {
    int refs;
    CUcontext ctx;
    unsigned flags, count;
    CUstreamBatchMemOpParams ops[];
};

/* What a conditional node asks. Its handle is its address: kernels write to the value through it. */
struct cs_conditional {
    unsigned value;
    unsigned initial;
    bool assign; /* The initial value, at each launch. */
    bool used;   /* By a node. */
    int refs;
    CUgraph graph;
    struct cs_conditional *next; /* In the graph. */
};

enum { CS_COND_IF, CS_COND_WHILE, CS_COND_SWITCH };

/* A step of a program that goes on elsewhere if its test fails, or assigns a conditional's initial value. */
enum cs_test { CS_TEST_TRUE, CS_TEST_FALSE, CS_TEST_EQUAL, CS_TEST_NEVER, CS_ASSIGN };

struct cs_work {
    int type; /* CUgraphNodeType or CS_WORK_. */
    union {
        struct cs_kernel kernel;
        struct cs_copy copy;
        struct cs_set set;
        CUDA_HOST_NODE_PARAMS host;
        struct {
            CUstreamCallback fn;
            CUstream stream;
            void *data;
        } callback;
        CUevent event;
        struct cs_batch *batch;
        struct {
            struct cs_alloc *memory;
            CUDA_MEM_ALLOC_NODE_PARAMS p;
        } alloc;
        struct cs_alloc *free; /* MEM_FREE node, CS_WORK_FREE. */
        CUgraph child;         /* Owned. */
        struct {
            struct cs_conditional *handle;
            int type;
            unsigned size;
            CUgraph *bodies; /* Owned. */
            CUcontext ctx;
        } conditional;
        struct {
            struct cs_conditional *handle;
            enum cs_test test;
            unsigned operand;
            size_t to;
        } branch;
        struct cs_launch *launch;
    };
};

/* The graphs inside a node. */
size_t cs_work_graphs(struct cs_work *work, CUgraph **list);
/* A copy of its own; graphs inside are the caller's to copy. `share`: with the same argument bytes. */
void cs_work_copy(struct cs_work *to, const struct cs_work *from, bool share);
void cs_work_release(struct cs_work *work);
struct cs_args *cs_args_clone(const struct cs_args *args);
void cs_args_put(struct cs_args *args);

struct cs_launch_config {
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    const CUlaunchAttribute *attrs;
    unsigned num_attrs;
    bool cooperative;
};

/* `kills`: an error that invalidates a capture. `node`: the rules of node parameters instead of those of a launch. */
CUresult cs_kernel_work(struct cs_work *work, CUfunction func, CUkernel kern, CUcontext ctx,
                        const struct cs_launch_config *config, bool node, bool *kills);
void cs_copy_note(struct cs_copy *copy);
void cs_set_note(struct cs_set *set);
/* `node`: graph memory counts even while it does not live. */
CUresult cs_copy_check(const CUDA_MEMCPY3D *p, bool node);
CUresult cs_set_check(const CUDA_MEMSET_NODE_PARAMS *p, bool node);
CUdeviceptr cs_copy_src(const CUDA_MEMCPY3D *p);
CUdeviceptr cs_copy_dst(const CUDA_MEMCPY3D *p);
bool cs_copy_pageable_src(const struct cs_copy *copy);
bool cs_copy_pageable_dst(const struct cs_copy *copy);
void cs_copy_stage(struct cs_copy *copy);

/* Run one piece of work on this worker; no lock held. */
void cs_run(const struct cs_work *work);
/* As above, from a list, catching faults. False: a fault, described on stderr. */
bool cs_run_guarded(void (*fn)(void *data), void *data);
void cs_guard_install(void);

/* ---- streams ------------------------------------------------------------------------------------------------------- */

struct cs_deps {
    CUgraphNode *nodes;
    CUgraphEdgeData *edges;
    size_t count, room;
};

struct cs_op {
    struct cs_op *next;
    CUstream stream;
    uint64_t number; /* Of all operations, in the order of the calls. */
    struct cs_work work;
    struct cs_fence *fence;
    struct cs_fence **waits;
    size_t num_waits;
    /* Checks: what it touches, and a sum over its page-locked source. */
    struct cs_accesses *accesses;
    uint64_t sum;
    bool summed;
};

struct CUstream_st {
    CUcontext ctx;
    CUstream next; /* In the context. */
    uint64_t id;
    unsigned flags;
    int priority;
    bool legacy, per_thread;
    unsigned long owner; /* Thread, of a per-thread stream. */
    CUlaunchAttributeValue attribute[16];

    struct cs_op *head, *tail;
    bool asks;       /* For its turn. */
    uint64_t before; /* A mark of the checks: operations up to this number come before the one looked at. */
    uint64_t delay_ns;
    struct cs_fence *last; /* Of the work queued last. */
    pthread_cond_t wake;
    bool started, closing;

    struct cs_capture *capture;
    CUstream capture_next; /* In the capture. */
    struct cs_deps deps;
    bool captured_work;
};

/* Resolve NULL, legacy and per-thread handles. */
CUresult cs_stream(CUstream handle, CUstream *out);
/* Hand work to a stream: queue it, or record it when the stream captures. Takes the work over whatever happens. */
CUresult cs_submit(CUstream stream, struct cs_work *work);
/* Let time pass; without the lock. Ends early with the process. */
void cs_delay(uint64_t ns);
/* Queue only. `fence_out`, if given, is the caller's. */
void cs_enqueue(CUstream stream, struct cs_work *work, struct cs_fence *extra_wait, struct cs_fence **fence_out);
/* Where synchronous calls run: the legacy stream, or the thread's own in the per-thread forms. Refuses what captures forbid. */
CUresult cs_sync_stream(CUstream *out);
/* Queue there, and wait for it. */
CUresult cs_run_sync(struct cs_work *work);
void cs_stream_drain(CUstream stream);
/* Streams with a thread. */
CUstream *cs_streams_running(size_t *count);
void cs_context_drain(CUcontext ctx);
void cs_device_drain(int device);
void cs_streams_close(CUcontext ctx);
void cs_workers_stop(void);

/* Turns (turn.c); with the lock held, the last three without. */
void cs_turn_seed(uint64_t seed);
void cs_turn_take(CUstream stream);
void cs_turn_give(CUstream stream);
void cs_turn_waiting(bool begins);
void cs_turn_poll(void);
void cs_turn_pause(void);
void cs_turn_resume(void);
void cs_turn_between(void);
/* A number below n. */
size_t cs_turn_draw(size_t n);

struct CUevent_st {
    CUcontext ctx;
    unsigned flags;
    int refs;               /* Nodes keep it after it is destroyed. */
    struct cs_fence *fence; /* Of its last record; NULL: never recorded. */
    uint64_t capture;       /* Recorded in this capture. */
    struct cs_deps deps;
};

void cs_event_put(CUevent event);

void cs_deps_set(struct cs_deps *deps, const CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count);
void cs_deps_add(struct cs_deps *deps, CUgraphNode node, CUgraphEdgeData edge);
void cs_deps_free(struct cs_deps *deps);

/* ---- contexts ------------------------------------------------------------------------------------------------------ */

struct CUctx_st {
    uint64_t id;
    int device;
    bool primary;
    int refs; /* Of a primary context. */
    unsigned flags;
    CUresult fault; /* What every call returns from now on. */
    struct CUstream_st *streams;
    CUstream legacy;
    size_t limits[16];
};

CUcontext cs_current(void);
CUresult cs_context_check(void); /* 0, 201 or 709. */
void cs_context_fault(CUcontext ctx, CUresult code);
CUresult cs_device_check(CUdevice device);
void cs_contexts_reset(void);

/* ---- captures ------------------------------------------------------------------------------------------------------ */

struct cs_capture {
    struct cs_capture *next;
    uint64_t id;
    int mode;
    unsigned long thread;
    CUgraph graph;
    bool borrowed; /* The graph is the caller's (cuStreamBeginCaptureToGraph). */
    bool dead;     /* Invalidated. */
    CUstream origin;
    CUstream members;    /* The origin among them. */
    struct cs_deps left; /* The last work of forked streams that were destroyed. */
};

/* The mode rule. Refuses with 900 and kills the captures that forbade the call. */
CUresult cs_unsafe(void);
/* A call that a capturing stream never takes: 900, and its capture dies. */
CUresult cs_never(CUstream stream);
/* Work on the legacy stream of a context: 906, and the captures of blocking streams die. */
CUresult cs_legacy(CUcontext ctx);
void cs_capture_kill(struct cs_capture *capture);
struct cs_capture *cs_capture_by_id(uint64_t id);
/* Record work as the next node of a capturing stream. */
CUresult cs_capture_work(CUstream stream, struct cs_work *work);
void cs_capture_leave(CUstream stream);
CUresult cs_capture_wait(CUstream stream, CUevent event, unsigned flags);
CUresult cs_capture_record(CUstream stream, CUevent event, unsigned flags);

/* ---- graphs -------------------------------------------------------------------------------------------------------- */

struct CUgraphNode_st {
    uint64_t id;     /* Never used again. */
    uint64_t source; /* Of the node that this one is a copy of, or 0. */
    CUgraph graph;
    size_t index; /* In graph->nodes. */
    struct cs_work work;
    struct cs_deps in, out;
    bool disabled; /* Executable graphs only. */
    size_t mark;
};

struct CUgraph_st {
    uint64_t id;
    CUgraphNode *nodes; /* In the order of the calls. */
    size_t count, room;
    CUgraphNode owner; /* The node whose child graph this is. */
    bool exec;         /* The copy inside an executable graph: no handle. */
    struct cs_capture *capture;
    uint64_t source;
    int memory_nodes; /* MEM_ALLOC and MEM_FREE. */
    int executables;  /* Made from it and alive. */
    struct cs_conditional *conditionals;
    struct cs_user_ref *users;
};

CUgraph cs_graph_new(bool handle);
void cs_graph_free(CUgraph graph);
/* Deep copy. `exec`: for an executable graph, which has no handles. */
CUgraph cs_graph_copy(CUgraph graph, bool exec);
bool cs_graph_has_memory(CUgraph graph);
/* Takes the work over. */
CUresult cs_graph_add(CUgraph graph, struct cs_work *work, const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t count,
                      CUgraphNode *out);
/* An order in which every node comes after what it depends on; the caller frees it. NULL: a cycle, with a node of it. */
CUgraphNode *cs_graph_order(CUgraph graph, bool drawn, CUgraphNode *cycle);
CUresult cs_graph_alloc_work(struct cs_work *work, CUgraph graph, const CUgraphNode *deps, size_t count,
                             const CUDA_MEM_ALLOC_NODE_PARAMS *p);
/* A free of an allocation in a graph: may it be added? */
bool cs_graph_may_free(CUgraph graph, const struct cs_alloc *alloc);

/* Build work from node parameters. */
CUresult cs_node_kernel(struct cs_work *work, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult cs_node_copy(struct cs_work *work, const CUDA_MEMCPY3D *p, CUcontext ctx);
CUresult cs_node_set(struct cs_work *work, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx);
CUresult cs_node_batch(struct cs_work *work, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p);

/* What an executable graph runs: a flat list in order, shared with the launches in flight. */
struct cs_program {
    int refs;
    size_t count;
    struct cs_step *steps;
    struct cs_graph_use *memory;
    size_t num_memory;
    size_t num_events;
    size_t num_staged;
    bool waits_for_host;          /* A copy into pageable memory. */
    struct cs_accesses *accesses; /* Made when a check asks. */
    uint64_t checked;             /* cs_free_epoch at the last check of the operands. */
};

struct cs_step {
    void (*run)(const struct cusim_grid *grid); /* A kernel's body; NULL for all else. */
    struct cusim_grid grid;
    size_t index; /* Of the node, for messages. */
    size_t slot;  /* Of its fence, its staged bytes or its sum in a launch. */
    bool staged;  /* A copy whose pageable source the launch call reads. */
    bool summed;  /* A copy from page-locked memory that no earlier step writes. */
    struct cs_work work;
};

struct cs_graph_use {
    struct cs_alloc *memory;
    unsigned allocs, frees;
};

struct CUgraphExec_st {
    CUgraph graph; /* A copy of its own. */
    CUcontext ctx;
    unsigned long long flags;
    CUgraph source; /* May be gone: compare its id. */
    uint64_t source_id;
    struct cs_program *program;
    struct cs_fence *last;
    struct cs_user_ref *users;
    uint64_t delay_ns;
    int launches;
    bool dead;
};

/* A launch in flight. */
struct cs_launch {
    struct cs_program *program;
    CUgraphExec exec;
    struct cs_fence **fences; /* Of event steps, in order. */
    struct cs_copy *staged;   /* Copies with a pageable source, in order. */
    uint64_t *sums;           /* Checks: over page-locked sources, in order. NULL: not taken. */
};

void cs_exec_put(CUgraphExec exec);
/* After a change of parameters: of one node, or of anything (NULL). */
void cs_program_refresh(CUgraphExec exec, CUgraphNode node);
void cs_launch_run(struct cs_launch *launch);
void cs_launch_finish(struct cs_launch *launch);
const char *cs_describe(const struct cs_work *work, char *text, size_t room);

/* ---- checks -------------------------------------------------------------------------------------------------------- */

enum cs_check { CS_CHECK_OFF, CS_CHECK_REPORT, CS_CHECK_FAIL, CS_CHECK_ABORT };
enum cs_races { CS_RACES_OFF, CS_RACES_COPIES, CS_RACES_KERNELS };

/* Bytes that a piece of work touches: all of them for copies and sets; where an argument of a kernel points, one byte. */
struct cs_access {
    CUdeviceptr from, to;
    bool write, kernel;
    unsigned argument;
    size_t node; /* In the graph. */
    const struct cs_work *work;
};

struct cs_accesses {
    int refs;
    bool unknown; /* Some of the work can wait for things that are not seen here: host functions, waits for values. */
    size_t count, room;
    struct cs_access *items;
};

/* Say what was found, and stop if that was asked for. */
void cs_finding(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What an address is, in words. */
const char *cs_where(CUdeviceptr address, char *text, size_t room);
/* Which argument points into the same allocation; empty if none does. */
const char *cs_blame(const struct cs_work *work, CUdeviceptr address, char *text, size_t room);
void cs_check_fill(struct cs_alloc *alloc);
/* Are the bytes around it as they were? `work`: what has just run, or NULL. */
void cs_check_bytes(struct cs_alloc *alloc, const struct cs_work *work);
/* Before and after a kernel; without the lock. */
void cs_check_arguments(const struct cs_work *work);
void cs_check_kernel(const struct cs_work *work);
/* Of a freed allocation that a launch names; 0: none. */
CUdeviceptr cs_check_stale(const struct cs_work *work, unsigned *argument);
void cs_grave_add(const struct cs_alloc *alloc);
void cs_graves_clear(CUdeviceptr from, size_t span);
/* When an operation is queued, and before the source of a copy is read. */
void cs_check_queued(struct cs_op *op);
void cs_check_source(const struct cs_copy *copy, uint64_t sum);
void cs_check_graph(CUgraph graph);
void cs_accesses_put(struct cs_accesses *accesses);

/* ---- user objects -------------------------------------------------------------------------------------------------- */

struct cs_user_ref {
    struct cs_user_ref *next;
    CUuserObject object;
    unsigned count;
};

struct cs_user_ref *cs_users_copy(const struct cs_user_ref *users);
void cs_users_put(struct cs_user_ref *users);
/* Run the destructors that have become due; called without the lock. */
void cs_users_run_due(void);

/* ---- the process --------------------------------------------------------------------------------------------------- */

enum cs_policy { CS_REUSE, CS_NEVER, CS_MOVE };

/* Executables that can be told beforehand to be slow. */
#define CS_EXEC_DELAYS 64

struct cs_global {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool initialized, exiting, forked, stub, strict;
    int driver_version, devices;
    size_t memory;
    enum cs_policy policy;
    enum cs_check check;
    enum cs_races races;
    unsigned long findings;
    uint64_t seed, delay_ns;
    uint64_t exec_delays_ns[CS_EXEC_DELAYS]; /* Of the next executables that are made, */
    unsigned exec_delays;                    /* so many. */
    unsigned waiting;    /* Threads of the program that wait for work. */
    unsigned long calls; /* Counted while there is a seed. */
    uint64_t last_op;
    struct cs_capture *captures;
    struct CUctx_st primary[CS_MAX_DEVICES];
    uint64_t next_id;
};

extern struct cs_global cs;

struct cs_thread {
    unsigned long id;
    CUcontext stack[CS_STACK];
    int depth;
    int mode;
    bool in_callback;
    /* A fault in guarded work comes back here. */
    sigjmp_buf *jump;
    const struct cs_work *now;
    uintptr_t fault_address;
    CUstream stream; /* Of a worker thread. */
    bool per_thread; /* In a call that takes the NULL stream for the thread's own. */
};

extern __thread struct cs_thread cs_me __attribute__((tls_model("initial-exec")));
unsigned long cs_thread_id(void);
uint64_t cs_id(void);
void cs_configure(void);
int cs_injected(enum cs_entry entry);
void cs_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* malloc that does not return NULL: a simulator out of host memory has nothing left to say. */
void *cs_alloc_bytes(size_t bytes);
void *cs_grow(void *array, size_t *room, size_t need, size_t item);

#endif
