/*
 * What a fact may use: the driver's table, the words for what it saw, and small helpers over both.
 *
 * A fact is something that the real driver was seen to do. It lives in a job, a function that runs in a process of its own, and
 * it is told as it happens: fact() opens it, code(), state(), holds(), value() and the like each add what was seen and compare it
 * with what the card gave. The first difference makes the fact fail; it goes on nevertheless, so that the line tells the whole
 * story.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "driver_table.h"

/* ---- the driver ------------------------------------------------------------------------------------------------- */

struct driver {
#define E(field, name, version, args) CUresult(*field) args;
    CF_DRIVER_TABLE(E)
#undef E
    sg__get_proc_address_fn get_proc_address;
    int version; /* as cuDriverGetVersion tells it */
};

extern struct driver drv;

/* One entry. A driver that lacks it ends the job: its facts are skipped, with the name as the reason. */
#define CU(name) (drv.name ? drv.name : (missing("cu" #name), drv.name))
/* A call of the setting up, which no fact is about: when it fails the fact has failed. */
#define MUST(name, ...) must(CU(name)(__VA_ARGS__), "cu" #name, __FILE__, __LINE__)
/* The same for a launch_...() of the helpers. */
#define MUST_LAUNCH(call) must(call, "cuLaunchKernel", __FILE__, __LINE__)

bool driver_open(const char *path, char *error, size_t size);
_Noreturn void missing(const char *entry);
void must(CUresult code, const char *call, const char *file, int line);

/* ---- jobs ------------------------------------------------------------------------------------------------------- */

enum {
    JOB_ALONE = 1,    /* measures time: runs when nothing else does */
    JOB_RAW = 2,      /* starts without context and kernels, before cuInit */
    JOB_MAY_DIE = 4,  /* a death by SIGSEGV, SIGBUS or SIGABRT in the call that about() announced is an answer too */
    JOB_CARD_ONLY = 8 /* not for software drivers: the reason stands in deviation */
};

struct job {
    const char *id;
    void (*run)(int arg);
    int arg;
    unsigned flags;
    const char *deviation;                  /* why the drivers may differ here; NULL: they may not */
    int cells;                              /* facts that the job will tell and that it can start at any of; 0: unknown */
    const char *(*cell)(int arg, int cell); /* their ids */
};

/* One list per theme, ended by an entry without id. */
extern const struct job capture_mode_rule_jobs[], capture_end_jobs[], fork_event_jobs[], argument_jobs[], copy_jobs[],
    memory_node_jobs[], update_jobs[], node_param_jobs[], lifetime_jobs[], host_memory_jobs[], pointer_jobs[], vmm_jobs[],
    symbol_jobs[], context_jobs[], loading_jobs[], graph_jobs[], rewrite_jobs[];
/* One job per call, made from the table of calls. */
const struct job *capture_mode_jobs(void);

/* ---- telling a fact --------------------------------------------------------------------------------------------- */

#define ANY (-1000000)     /* code: no expectation */
#define NONZERO (-1000001) /* code: anything but success */

void fact(const char *id, ...) __attribute__((format(printf, 1, 2)));
bool wanted(const char *id, ...) __attribute__((format(printf, 1, 2))); /* --only may leave cells out */
void at_cell(int cell);                                                 /* the facts of a job with cells: which one comes */
int resume_at(void);                                                    /* the first cell to run */

bool code(CUresult got, int want, const char *what, ...) __attribute__((format(printf, 3, 4)));
bool code_of(CUresult got, const int *wants, const char *what, ...)
    __attribute__((format(printf, 3, 4))); /* one of, ended by -1 */
bool state(const char *name, CUstream stream, int want);
bool holds(const char *name, CUgraph graph, const char *want);
bool value(double got, double want, const char *what, ...) __attribute__((format(printf, 3, 4)));
bool equal(long long got, long long want, const char *what, ...) __attribute__((format(printf, 3, 4)));
bool yes(bool ok, const char *what, ...) __attribute__((format(printf, 2, 3)));
void seen(const char *what, ...) __attribute__((format(printf, 1, 2)));
void about(const char *what, ...) __attribute__((format(printf, 1, 2))); /* the call that comes, should the process die of it */
_Noreturn void skip(const char *why, ...) __attribute__((format(printf, 1, 2)));

/* ---- helpers ---------------------------------------------------------------------------------------------------- */

enum {
    GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL,
    LOCAL = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED
};
enum {
    NONE = CU_STREAM_CAPTURE_STATUS_NONE,
    ACTIVE = CU_STREAM_CAPTURE_STATUS_ACTIVE,
    DEAD = CU_STREAM_CAPTURE_STATUS_INVALIDATED
};

extern const char *const mode_name[3];

struct env {
    CUdevice device;
    CUcontext ctx;
    CUmodule module;
    const char *ptx;
};

extern struct env env;

void env_open(void); /* cuInit, primary context, kernels */
CUfunction kernel(const char *name);

CUstream stream_nb(void);
CUstream stream_bl(void);
CUevent event_new(void);
CUdeviceptr device_new(size_t bytes); /* zeroed */
void *pinned_new(size_t bytes);       /* zeroed */
void *pages_new(size_t bytes);        /* ordinary zeroed pages */

CUresult launch(CUfunction f, CUstream s, void **args);
CUresult launch_nop(CUstream s);
CUresult launch_inc(CUdeviceptr p, float v, CUstream s);
CUresult launch_set(CUdeviceptr p, float v, CUstream s);
CUresult launch_copy(CUdeviceptr d, CUdeviceptr p, CUstream s);
CUresult launch_spin(double ms, CUstream s);

float peek(CUdeviceptr p); /* -1000 - code when it cannot be read */
void poke(CUdeviceptr p, float v);
void sync_all(void);
double now_ms(void);

CUresult begin(CUstream s, int mode);
CUresult end(CUstream s); /* the graph is dropped */
void must_begin(CUstream s, int mode);
CUgraph must_end(CUstream s);
CUgraph nop_graph(CUstream s); /* captured in it: one kernel */
CUgraph inc_graph(CUdeviceptr p, float v, CUstream s);
CUgraphExec must_instantiate(CUgraph g);
void must_run(CUgraphExec x, CUstream s); /* launch and wait */
CUgraphNode node_at(CUgraph g, size_t index);
/* Whether the first form of cuGraphKernelNodeGetParams tells what the younger one does, as far as it goes. */
bool first_form_agrees(CUgraphNode n);
size_t node_count(CUgraph g);
int node_index(CUgraph g, CUgraphNode node); /* -1: none or NULL */
CUgraph captured_graph(CUstream s);          /* the one under capture */
void fork_to(CUstream from, CUstream to);    /* by a fresh event; joins as well */

/* Ends the capture, then instantiates and runs what came out; adds all of it to the fact. */
CUgraph told_end(const char *name, CUstream s, int want, const char *want_nodes);
void told_run(CUgraph g);

CUresult in_thread(CUresult (*f)(void *), void *arg); /* in a new thread with the context current */
CUresult in_thread_mode(CUresult (*f)(void *), void *arg, int mode);
CUresult with_mode(CUresult (*f)(void *), void *arg, int mode);
CUresult call_alloc(void *unused);

cf_mem_prop vmm_prop(void);
CUresult vmm_access(CUdeviceptr p, size_t bytes);
CUdeviceptr vmm_reserve(size_t bytes);
cf_mem_handle vmm_create(size_t bytes);
void vmm_map(CUdeviceptr p, size_t bytes, cf_mem_handle h);

unsigned long long buffer_id(CUdeviceptr p); /* 0: none */

static inline CUdeviceptr address(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

#endif
