/*
 * Stages: what the marks of a step divide.
 *
 * A run is measured as a list of segments, one per mark, with a clock reading, a counter reading and an event each. A stage that is marked
 * several times in a run (once per micro-batch) is the sum of its segments.
 */
#ifndef STEPGRAPH_STAGE_H
#define STEPGRAPH_STAGE_H

#include <stdbool.h>

#include <stepgraph/step.h>

#include "driver/driver.h"

#define SG__STAGES_MAX 64u /* The unnamed first one included. */
#define SG__SERIES_ROOM 64u

/* The last measurements of something. */
typedef struct sg__series {
    double values[SG__SERIES_ROOM];
    uint64_t n; /* All that were ever added. */
} sg__series;

void sg__series_add(sg__series *series, double value);
double sg__series_median(const sg__series *series); /* -1: nothing was added. */

typedef struct sg__stage {
    char name[64];
    uint64_t launches, library_launches, nodes;
    sg__series host_us, device_us;
} sg__stage;

typedef struct sg__segment {
    uint32_t stage;
    uint64_t start_ns;
    uint64_t counted; /* Launches counted when it began, by the host and the wrapper, */
    uint64_t library; /* and by the library. */
} sg__segment;

/* One run, or one replay. */
typedef struct sg__lap {
    sg__segment *segments;
    uint32_t n, room;
    CUevent *events; /* One per segment and one for the end. */
    uint32_t n_events;
    bool timed;   /* With events; else with the host's clock alone. */
    uint64_t tag; /* Whoever watches knows it by this number. */
    struct sg__lap *next;
} sg__lap;

/* Laps that are over for the host and perhaps not for the device. Nobody waits for them: their times are taken when they are there. */
typedef struct sg__laps {
    sg__lap *first, *last; /* The oldest first. */
    uint32_t n;
    uint32_t patience; /* So many begin before the device is asked again. */
    sg__lap *spare; /* To be used again, events and all. */
    sg__lap *open;  /* In progress; NULL: none is. */
    sg__lap *over;  /* The latest that is over, spare or not; NULL: none. */
} sg__laps;

/* A host may run further ahead than this many laps: what is launched then has no device time. */
#define SG__LAPS 16u

/* A stage of the recording: from this node on. A stage that is marked several times has several. */
typedef struct sg__chapter {
    uint32_t stage;
    size_t first_node;
    uint64_t counted[STEPGRAPH_KINDS]; /* By the host and the wrapper, */
    uint64_t ours[STEPGRAPH_KINDS];    /* and of the library's, when it began. */
} sg__chapter;

/* Told when the device time of a segment is known. */
typedef void (*sg__collected_fn)(void *user, uint64_t tag, uint32_t segment, double us);

typedef struct sg__stages {
    stepgraph_run open; /* The kind of the run in progress; 0: none. */
    bool timing;
    sg__stage *stages[SG__STAGES_MAX];
    uint32_t n;
    uint32_t current;

    sg__collected_fn collected; /* NULL: nobody watches. */
    void *collected_user;
    uint32_t laps_most; /* Of a kind that may be in flight. */

    /* Runs. */
    uint64_t runs;      /* All, the first one included. */
    sg__laps run_laps;
    uint64_t launches, launches_before; /* Of the last two warm runs. */
    uint64_t warm_runs;
    bool deferred; /* Some warm run's count was a lower bound. */
    sg__series host_us, device_us;

    /* Replays. */
    sg__laps replay_laps;
    uint64_t timed_replays;
    sg__series replay_host_us, replay_device_us;

    /* While recording: where it was last seen alive, and where each stage began. */
    size_t nodes_alive;
    struct sg__name *name_alive; /* Of the last node's kernel, held; NULL: it has none, */
    const char *kind_alive;      /* and is this. */
    sg__chapter *chapters;
    size_t n_chapters, chapters_room;
} sg__stages;

struct stepgraph_step;

/* A run of the checker's: neither measured nor counted. */
#define SG__RUN_CHECK ((stepgraph_run)4)

/* stepgraph_step_run_begin(), of any kind. */
stepgraph_status sg__run_begin(struct stepgraph_step *step, stepgraph_run kind);

/* Refuse what a step cannot do while a run of any step of its session is open: "record", "be checked". */
stepgraph_status sg__no_run_open(const struct stepgraph_step *step, const char *what);

/* A recording starts or ends; nodes is how many it holds. */
void sg__stages_record(struct stepgraph_step *step);
void sg__stages_recorded(struct stepgraph_step *step, size_t nodes);

/* "between 'a' and 'b'": where a recording broke. b is NULL at its end. */
void sg__stages_place(const struct stepgraph_step *step, const char *next, char *text, size_t bytes);

/* The stage that the recording is in; "" before the first mark. */
const char *sg__stage_now(const struct stepgraph_step *step);

/* Name of the stage that a node of the recording belongs to; "" for none. */
const char *sg__stage_of_node(const struct stepgraph_step *step, uint32_t node);

/* ", 12 of 13 in stage 'forward'": the stages of which not all that was counted of a kind is among the nodes of its type. */
void sg__stages_escaped(const struct stepgraph_step *step, stepgraph_kind kind, CUgraphNodeType type, char *text, size_t bytes);

/* Around the launch of a replay while timing is on. The context is current. */
stepgraph_status sg__replay_begin(struct stepgraph_step *step);
stepgraph_status sg__replay_end(struct stepgraph_step *step);

/* Take the device times of what is over. *all: and nothing is in flight any more. The context is current. */
stepgraph_status sg__stages_poll(struct stepgraph_step *step, bool *all);
/* The same for all that is in flight, which is waited for. The context is current. */
stepgraph_status sg__stages_collect(struct stepgraph_step *step);
/* The same in any context; refused with these words while a step of the session is recording. */
stepgraph_status sg__stages_ask(struct stepgraph_step *step, const char *what);

void sg__stages_free(struct stepgraph_step *step);

#endif
