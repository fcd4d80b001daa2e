/* Inside a verification. */
#ifndef STEPGRAPH_VERIFY_P_H
#define STEPGRAPH_VERIFY_P_H

#include <stepgraph/verify.h>

#include "relax_p.h"
#include "memory.h"

#define SG__VERIFY_STEPS_MAX 64u
/* Findings that are kept; all are counted. */
#define SG__VERIFY_KEPT 1000u

struct stepgraph_verify {
    char *title, device[128];
    int driver_version;
    stepgraph_verify_summary summary;
    stepgraph_verify_finding *findings;
    size_t room;
    char *text, *json;
};

typedef struct sg__verify {
    stepgraph_verify_config config;
    stepgraph_step *step;
    stepgraph_session *session;
    const sg__footprint *footprint; /* What relaxing took the step's nodes to touch. Nodes are numbered as there. */
    const uint32_t *line;           /* The nodes in the recorded order. */
    stepgraph_verify *report;
    sg__memory memory;
    CUevent event;
    bool stuck;   /* Something on the stream does not come to an end: nothing may be waited for or put back. */
    bool outside; /* The session's context could not be made current again after a callback. */
    uint64_t done, total;

    size_t *first_access;    /* Of each node, and one more. */
    unsigned char *marks;    /* What the node that is looked at does to each range; zero between nodes. */
    unsigned char *unsteady; /* SG__RANGE_WRITTEN for ranges in which the recording differs from itself. */
    uint32_t *list;          /* Room for all ranges, twice. */
    uint64_t *sums;          /* Of each node: of all that it declares, after it ran. */
    uint32_t *extras;        /* Ranges that nodes write without declaring it; of one node behind the other, */
    size_t *first_extra;     /* from here on, */
    uint32_t *count_extra;   /* so many. */
    size_t n_extras, extras_room;
    uint32_t located; /* Nodes whose results were compared byte by byte. */

    CUgraph alone_graph; /* The node that runs by itself; dropped after it was waited for. */
    CUgraphExec alone;

    unsigned char *feeds_before; /* The host's side of feeds. */
    uint64_t *owed;              /* By used pin: how often it was fed since the last replay. */
} sg__verify;

/* Hashes of all memory. Those after each step of the recording come behind. */
enum { SG__HASH_NOW, SG__HASH_BEFORE, SG__HASH_OTHER, SG__HASH_STEPS };

/* verify.c: wait for all that is on the stream. what: "node 3, 'adam', run alone", for the words of a failure. */
stepgraph_status sg__verify_wait(sg__verify *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Memory and the host's side of feeds as at the beginning; then the inputs of the first step. */
stepgraph_status sg__verify_begin(sg__verify *v);
/* The inputs of step i, from 0. */
stepgraph_status sg__verify_feed(sg__verify *v, uint32_t i);
stepgraph_status sg__verify_progress(sg__verify *v, const char *phase);

/* verify_runs.c: part 1, and parts 4 and 5. */
stepgraph_status sg__verify_control(sg__verify *v);
stepgraph_status sg__verify_orders(sg__verify *v);
stepgraph_status sg__verify_replays(sg__verify *v);
/* Memory that was hit is not what the recording makes of it after step i, from 0: find out where, and note it. */
stepgraph_status sg__verify_locate(sg__verify *v, stepgraph_verify_kind kind, uint32_t i, uint64_t seed);

/* verify_nodes.c: parts 2 and 3. */
stepgraph_status sg__verify_nodes(sg__verify *v);

/* verify_report.c */
stepgraph_verify *sg__verify_report_new(const sg__verify *v);
/* Of which memory a finding is, and how much of it; node UINT32_MAX: none. */
typedef struct sg__verify_place {
    uint32_t node; /* Of the footprint. */
    uint32_t argument;
    CUdeviceptr address; /* 0: it is not about memory. */
    uint64_t bytes;      /* That differ; 0: not known. */
    uint64_t step;       /* From 0; UINT64_MAX: none. */
    uint64_t seed;
} sg__verify_place;
stepgraph_status sg__verify_note(sg__verify *v, stepgraph_verify_kind kind, const sg__verify_place *place, const char *why);
stepgraph_status sg__verify_finish(sg__verify *v);

#endif
