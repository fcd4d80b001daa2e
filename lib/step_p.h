/* Inside a step. */
#ifndef STEPGRAPH_STEP_P_H
#define STEPGRAPH_STEP_P_H

#include "graph/graph.h"
#include "graveyard.h"
#include "pin_p.h"
#include "resolve.h"
#include "stage.h"
#include "table.h"

/* A side stream. Kept after its join, to be forked again. */
typedef struct sg__side {
    struct sg__side *next;
    CUstream stream;
    char *name;
    CUevent fork, join;
    bool open;
} sg__side;

/* A value that a recorded commit reads through its list, where a scan of arguments does not see it. */
typedef struct sg__source {
    const stepgraph_pin *pin;
    CUdeviceptr address;
    uint64_t call; /* Those of one call run side by side. */
} sg__source;

struct stepgraph_step {
    /* What a replay needs, side by side: the driver leaves little of it in the cache when it has launched a large graph. */
    stepgraph_session *session;
    CUgraphExec exec;
    uint64_t look_every; /* All that the driver can tell about is looked at before replays whose number is a multiple of this. */
    size_t n_copied;    /* So many of the looks are at operands of copies with a host side: before every launch. */
    uint32_t flags;
    stepgraph_state state;
    uint32_t trying;    /* So many executables, of which replays tell the fastest; 0: it is known, or nobody asked. */
    bool not_run;       /* Recorded and never replayed: the step that was recorded is not done. */
    bool verifying;     /* What is known of its graph has to last until that is over, whatever the callbacks do; */
    bool checking;      /* likewise. */
    bool outputs_stale; /* And nothing else has run since. */
    sg__stages stages;

    stepgraph_step *next;
    char *name;
    uint32_t liveness_every; /* As the host wants it; 0: as often as is cheap. */
    stepgraph_error_info error; /* The first cause; its status is OK while nothing went wrong. */
    stepgraph_step_stats stats;
    uint64_t serial; /* Of its last recording, among the session's. */
    uint64_t ran_at; /* So many recordings had begun when it was replayed or run last; 0: never. */

    /* While recording. */
    sg__recording recording;
    sg__table *tables;
    uint64_t counted_before[STEPGRAPH_KINDS]; /* When the recording began. */
    uint64_t pin_kernels, pin_copies, pin_bytes;
    sg__source *sources;
    size_t n_sources;
    sg__side *sides;

    /* The graph. */
    CUgraph graph;
    struct sg__relaxed *relaxed; /* What it was made from, if it was relaxed, and the one as recorded; NULL: it is that. */
    struct sg__tuning *tuning;   /* The executables that are tried, and what was found; NULL: nobody asked. */
    stepgraph_pin **used; /* Pins that it refers to, by address. */
    uint64_t *used_feeds; /* How often each had been fed at the last replay. */
    size_t n_used;
    uint64_t fed_before;  /* The session's count of feeds when the latest that was not fresh any more was fed, in the recordings before. */
    stepgraph_pin **watched; /* Of those that are adopted and can be verified, one for each allocation. */
    size_t n_watched;
    sg__graph read;       /* Its nodes and their names. */
    sg__allocations allocations; /* Memory outside the pins that it refers to. */
    struct sg__carried *carried; /* Blocks of arenas and noted ones that were out before it began; by address. */
    size_t n_carried;
    bool watches_copies;  /* Some of it is an operand of a copy with a host side. */
    sg__look *looks;      /* Of all of these, as a replay asks for them. */
    size_t n_looks;
    struct stepgraph_audit *audit; /* What the last recording was found to hold; NULL before the first. */
    struct sg__footprint *noted; /* What its nodes touch, if somebody wanted to know it later; NULL: nobody did. */
    CUgraphExec spare;    /* Of an earlier recording, to be updated in place by the next; NULL: none. */
    bool rewritten;       /* The one or the other was made from a graph in which sets were replaced. */
    bool again;           /* It is recorded again and again, so changes of its state are no news. */
    bool rehearses;       /* Its run will be undone. */
    bool in_loop;         /* Of what its audit finds, the loop says what matters; words name the loop's calls. */
    uint64_t device_limit; /* What an executable may take; 0: no limit. */
    uint64_t instantiations, updates, updates_refused;
    char refusal[256];    /* Why the last update was refused; "": it was not. */
    CUevent lists_sent;   /* Behind the copies of the lists to the device; NULL: not recorded. */
    bool lists_pending;   /* They may not have run. */
};

/* The thread's error record is the first cause of a broken recording, unless there is one already. Where the call that failed only found out that the
 * recording is broken, the record says so afterwards, and what to look for. */
void sg__step_break(stepgraph_step *step);

/* The call of the host's that ends its recording. */
static inline const char *sg__step_end_call(const stepgraph_step *step)
{
    return step->in_loop ? "stepgraph_loop_end()" : "stepgraph_step_end()";
}

/* In front of what the record says: the driver found the recording broken, at this place, and does not say by what. */
stepgraph_status sg__step_invalidated(const stepgraph_step *step, const char *place);

/* The step is FAILED for the reason in the thread's error record, or what broke its recording before, and its graph is dropped. Answers, and leaves in
 * the record, that reason. */
SG__COLD stepgraph_status sg__step_fail(stepgraph_step *step);

/* In front of what the record says: what was tried, "check" or "relaxing", has run the step, and that cannot be put back. The step's state stays. */
SG__COLD stepgraph_status sg__step_spoiled(const stepgraph_step *step, const char *tried, stepgraph_status status);

/* Drop the graph of a READY step, or what a FAILED one holds, and make it PREPARED; its executable is kept, to be updated in place. */
stepgraph_status sg__step_record_again(stepgraph_step *step);

/* The next recording of `to` updates the executable of `from`, which is not launched any more. Both stay in their states. */
void sg__step_pass_executable(stepgraph_step *from, stepgraph_step *to);

/* Of all executables only that of the recording is left, with its edges. Runs of the others come to their end. */
void sg__step_as_recorded(stepgraph_step *step);

/* Destroy the spare executable, after what runs of it. The context is current. */
stepgraph_status sg__step_drop_spare(stepgraph_step *step);

/* verdict.c: the verdict from what is measured so far, without waiting for more. Begins as STEPGRAPH_VERDICT_INIT. */
void sg__step_judge(const stepgraph_step *step, stepgraph_verdict *verdict);

/* All memory that the graph of a READY step refers to and that is not the library's own is still there. */
stepgraph_status sg__step_alive(const stepgraph_step *step);

/* sg__layouts_check() for what a step cannot do otherwise: "be tuned". First, whether the context is there. */
stepgraph_status sg__step_kernels_alive(const stepgraph_step *step, const char *what);

/* Refuse what a callback of the step's verification or check is not to do: "be reset". */
stepgraph_status sg__step_idle(const stepgraph_step *step, const char *what);

/* What was fed so far was used by a step: strict feeds have to be fed anew for the next replay. */
void sg__step_use_feeds(stepgraph_step *step);

/* Close the run in progress, if there is one, without measuring or counting it. */
void sg__run_cancel(stepgraph_step *step);

/* The first cause, put into the record; OK if nothing broke so far. */
stepgraph_status sg__step_broken(const stepgraph_step *step);

/* A commit was recorded. */
stepgraph_status sg__step_committed(stepgraph_step *step, const stepgraph_pin *pin, CUdeviceptr source);

/* Whether the live graph refers to the pin. */
bool sg__step_uses(const stepgraph_step *step, const stepgraph_pin *pin);

/* side.c: the first forked stream that was not joined, or NULL. */
const sg__side *sg__step_unjoined(const stepgraph_step *step);
void sg__sides_close(stepgraph_step *step);
void sg__sides_free(stepgraph_step *step);

#endif
