/*
 * Inside a loop: a lane for each key, and the turn that is open.
 *
 * loop.c begins and ends turns; loop_ladder.c decides what follows from what happened, loop_agree.c with other ranks;
 * loop_unpinned.c tells addresses that are used from those that are left over; loop_keys.c keeps lanes within their bounds;
 * loop_undo.c saves pins and puts them back; loop_check.c holds replays against launches, for which loop_guards.c saves memory that no pin covers
 * and loop_noise.c says what a difference is worth; loop_relax.c relaxes what was proven; loop_tune.c tries other executables of it; loop_stats.c counts; loop_report.c and loop_trace.c write reports.
 */
#ifndef STEPGRAPH_LOOP_P_H
#define STEPGRAPH_LOOP_P_H

#include <stepgraph/loop.h>
#include <stepgraph/relax.h>
#include <stepgraph/tune.h>

#include "check_shot.h"
#include "constants.h"
#include "step_p.h"
#include "text.h"

#define SG__LANES_MAX 64u

/* Replays that are timed for the verdict, if not all are. */
#define SG__TIMED_REPLAYS 16u
/* Recordings that may fail, one after the other, before the lane stays fresh. */
#define SG__ATTEMPTS_MAX 3u
/* Launches until the first new attempt; each one after that waits four times as long. */
#define SG__ATTEMPT_WAIT 16u
/* Steps done by a graph after which earlier failures are forgotten. */
#define SG__ATTEMPT_FORGET 256u
/* Updates that the driver may refuse in a row. */
#define SG__REFUSED_MAX 3u

/* Where a lane stands. */
typedef enum sg__phase {
    SG__PHASE_WARM,
    SG__PHASE_FIRST,  /* The first recording is next, */
    SG__PHASE_SECOND, /* or the second. */
    SG__PHASE_CHECK,  /* Steps are checked. */
    SG__PHASE_REPLAY,
    SG__PHASE_RERECORD,
    SG__PHASE_FRESH
} sg__phase;

typedef struct sg__lane {
    uint64_t key;
    bool used;
    sg__phase phase;
    uint32_t why;
    char words[512]; /* Why it is not replayed. */

    stepgraph_step *step;  /* Warm runs, the second recording, and all that comes after. */
    stepgraph_step *first; /* The first recording. */
    stepgraph_audit *audit;
    stepgraph_check *check;
    stepgraph_relax *relax;
    char unpinned[256]; /* The first address that no pin covers and the graph uses; "": there is none. */

    /* A comparison was in doubt about differences: the checks decide, whatever the host says. */
    bool suspected;
    bool refuted;          /* They passed all the same. */
    uint32_t doubt_why;    /* What they would be, */
    char doubt_words[512]; /* and the first of them. */
    uint32_t put_off;      /* Checks in a row that page-locked memory stood against. */

    uint32_t warm;           /* Warm runs so far. */
    uint32_t checks_left;    /* Steps to be checked before the first replay. */
    uint64_t until_check;    /* Replays until the next sampled one. */
    bool relax_tried;        /* Since the graph was recorded. */
    uint64_t right_at;       /* The step of the last check that found every byte the same, UINT64_MAX for none; */
    uint64_t right_replays;  /* and how many replays there were until then. */
    bool planted;            /* A planted fault was seen, since the graph was recorded. */
    uint32_t unlike;         /* Checks in a row that were inconclusive, though replays agreed, in some pin, on what the launches did not leave. */
    uint32_t attempts;       /* Failed recordings in a row. */
    bool final;              /* FRESH for good. */
    uint64_t wait;           /* Turns until the next attempt. */
    uint64_t since_failure;  /* Steps done by a graph. */
    uint32_t refused;        /* Updates refused in a row. */
    uint32_t timed_left;     /* Replays to be timed still, plus 1 until the verdict. */
    uint64_t timed_until;    /* So many device times of replays are enough for it. */
    sg__series rerecord_us;  /* Host time of turns that record again. */
    uint64_t last_turn;      /* Number of its last turn. */
    uint64_t fed_before;     /* The session's count of feeds when its last step was done. */
    uint64_t steps, replays; /* Done. */
    uint64_t rerecords;
    double first_us; /* Host time of the very first run, which enters no measurement; negative: none yet. */
} sg__lane;

/* A turn that must be taken again. */
typedef struct sg__retry {
    bool set;
    uint64_t k, key;
    uint32_t kind; /* 0: to be decided as for any turn. */
    uint32_t why;
} sg__retry;

/* Page-locked memory that the graph may use. */
typedef struct sg__host_guard {
    uint64_t address, bytes;
    uint64_t hash; /* Of what was in it. */
} sg__host_guard;

/* A pin that a replay has left unlike the launches: by how much, and whether replays are unlike each other there. */
typedef struct sg__deviation {
    uint64_t bytes, first; /* 0 bytes: it is not. */
    bool varies;
    double largest, norm; /* Of a pin with a type. */
    double spread, spread_norm;
} sg__deviation;

/* What a check saves beside pins, when a checked step begins: twice in device memory, as it was and as the launches left it. */
typedef struct sg__guards {
    sg__range *ranges; /* Where it stands, and where the first copy of each is. */
    size_t n;
    size_t first; /* From here on they are no blocks of arenas, but memory that no pin covers, and that the graph may use. */
    CUdeviceptr copies;
    uint64_t bytes;
    sg__host_guard *host; /* Only looked at. */
    size_t n_host;
} sg__guards;

typedef struct sg__trace sg__trace;

struct stepgraph_loop {
    stepgraph_session *session;
    sg__lodger lodger; /* In the session's list. */
    char *name;
    stepgraph_loop_config config;
    stepgraph_check_config check; /* With enqueue set: what the host gave. */
    stepgraph_relax_config relax;
    bool relaxes; /* The host wants graphs relaxed. */

    sg__lane *lanes;  /* As many as graphs may live. */
    sg__lane outside; /* For keys that no lane is free for. */
    sg__lane *last;   /* Of the last turn; NULL: none. */
    uint64_t turn;    /* Turns begun. */

    /* The open turn. */
    uint32_t open; /* Its kind; 0: none is. */
    bool calling;  /* A callback of the host's runs, in or between its rounds. */
    uint32_t why;
    uint64_t k;
    bool keeps_nothing; /* Of what its step allocates. */
    uint64_t counted;   /* Launches of the host's before it, in replays that are timed; in checks, its kernels. */
    uint64_t start_ns;
    stepgraph_step *look;       /* The third recording; only in a turn that looks. */
    stepgraph_status unstarted; /* Why it does not record although it should, and the words. Told at its end. */
    stepgraph_error_info unstarted_words;
    sg__retry retry;
    stepgraph_error_info spoiled; /* Why pins are not as the steps have left them; its status is OK while they are. The host has to be told. */

    /* Images of pins: before rehearsals, and around checked steps. */
    sg__shots shots;
    unsigned int before, after;
    bool has_images;
    bool inputs_changed; /* A replay left others than the launches. */
    sg__deviation *deviations; /* By item of the images; NULL: nothing deviates. */

    sg__constants constants;   /* Of the graph that is checked. */

    sg__guards guards;

    stepgraph_loop_stats stats;
    double saved_us; /* By lanes that are gone. */
    sg__text report;
    sg__trace *trace; /* NULL: none is kept. */
};

/* loop_keys.c: the lane of a key, made if need be; &loop->outside where none is free. */
stepgraph_status sg__lane_find(stepgraph_loop *loop, uint64_t key, sg__lane **lane_out);
/* One that exists, or NULL. */
sg__lane *sg__lane_of(const stepgraph_loop *loop, uint64_t key);
/* A step that a lane runs and records, or one that only records; made if need be. */
typedef enum sg__which { SG__STEP_ITSELF, SG__STEP_FIRST, SG__STEP_LOOK } sg__which;
stepgraph_status sg__lane_step(stepgraph_loop *loop, sg__lane *lane, sg__which which, stepgraph_step **step_out);
/* Device memory that a new graph of this lane may take; 0: no limit. And the longest idle graph of another lane gives up its own.
 */
uint64_t sg__lane_room(stepgraph_loop *loop, sg__lane *lane);
void sg__lane_make_room(stepgraph_loop *loop, sg__lane *lane);
/* Forget graphs and recordings; the key and its counts stay. */
void sg__lane_drop_graph(stepgraph_loop *loop, sg__lane *lane);
void sg__lane_free(stepgraph_loop *loop, sg__lane *lane);
bool sg__lane_has_graph(const sg__lane *lane);
/* Measure this lane now? */
void sg__lane_time(const stepgraph_loop *loop, sg__lane *lane);

/* loop_agree.c: what ranks decide together, in the order of a turn. */
typedef enum sg__question {
    SG__ASK_RECORDED = 1, /* Why was the step not recorded? */
    SG__ASK_COMPARED,     /* What follows from the recordings, and why? */
    SG__ASK_CHECK,        /* Can the step not be checked? */
    SG__ASK_CHANGED,      /* Did it change memory that cannot be put back? */
    SG__ASK_CONSTANT,     /* Does it write what nobody is to write? */
    SG__ASK_DIFFERS,      /* Does the replay differ from the launches? */
    SG__ASK_NO_ROOM,      /* Is there no room to compare replays with each other? */
    SG__ASK_UNSTEADY,     /* Do they differ? */
    SG__ASK_NO_STATE,     /* Is there no state to plant a fault in? */
    SG__ASK_UNSEEN,       /* Was the planted fault not seen yet? */
    SG__ASK_VERDICT,      /* How did the check end? By severity. */
    SG__ASK_UPDATED,      /* Does the driver refuse to update? */
    SG__ASK_CLOCK         /* Is it slower? */
} sg__question;
/* The worst of all ranks' answers; 0 is the best. The thread's error record stays as it is, unless this fails. */
stepgraph_status sg__loop_agree(stepgraph_loop *loop, sg__question question, uint32_t mine, uint32_t *worst);
/* What stands against it where this rank has found nothing. */
#define SG__ANOTHER_RANK "another rank stands against it, see its log"

/* loop_ladder.c */
stepgraph_rung sg__lane_rung(const sg__lane *lane);
/* To another phase, with a line in the log. words: NULL for those of the thread's error record. */
void sg__lane_move(stepgraph_loop *loop, sg__lane *lane, sg__phase phase, stepgraph_why why, const char *words);
/* A recording or a replay failed, for the reason in the thread's error record or in words: launch, and try again later, or not at
 * all. */
void sg__lane_failed(stepgraph_loop *loop, sg__lane *lane, stepgraph_why why, const char *words);
/* Down to where every step is recorded, or, where the host does not want that, to where none is. */
void sg__lane_move_down(stepgraph_loop *loop, sg__lane *lane, stepgraph_why why, const char *words);
/* For good, unless the host drops what is known of the lane. */
void sg__lane_stays_fresh(stepgraph_loop *loop, sg__lane *lane, stepgraph_why why, const char *words);
/* Why a step could not be recorded, from the status of its end. */
stepgraph_why sg__why_failed(stepgraph_status status);
/* Whether the audit of a step found work that was not recorded, and so ran. */
bool sg__step_escaped(const stepgraph_step *step);
/* What the audit of a recording found, to be read by the host. */
void sg__lane_keep_audit(sg__lane *lane, const stepgraph_step *step);
/* The second recording was run, or a third was made: compare, and move on. again: the third; NULL: none yet; the second once more: there will be none.
 * *look: a third one would tell. */
stepgraph_status sg__lane_compare(stepgraph_loop *loop, sg__lane *lane, const stepgraph_step *again, bool *look);
/* A step was done by a graph: what the clock says, and how far failures lie back. */
stepgraph_status sg__lane_went(stepgraph_loop *loop, sg__lane *lane);
/* After an update that the driver refused, or did not. */
stepgraph_status sg__lane_updated(stepgraph_loop *loop, sg__lane *lane);
/* Whether times mean anything. */
bool sg__loop_has_clock(const stepgraph_loop *loop);
/* Proven: from here on it is replayed. */
void sg__lane_proven(stepgraph_loop *loop, sg__lane *lane);

/* loop_unpinned.c: what the recordings of a lane, two or three, have in common that no pin covers and the host does not allow;
 * NULL: nothing. */
stepgraph_status sg__lane_unpinned(stepgraph_loop *loop, sg__lane *lane, const stepgraph_step *again,
                                   stepgraph_audit **audit_out);

/* loop_undo.c */
/* What a step may write, and with those that it is not to write. */
#define SG__WRITTEN ((unsigned int)(SG__GROUP_STATE | SG__GROUP_OUTPUT))
#define SG__ALL (SG__WRITTEN | (unsigned int)SG__GROUP_INPUT)
/* Images of STATE and OUTPUT pins, n of them; the first is saved. And of FEED and CELL pins: of those that the step's graph uses, since the host may fill
 * others meanwhile for the next step; or, where no graph is known, of those that only feeding fills. */
typedef enum sg__inputs { SG__INPUTS_NONE, SG__INPUTS_USED, SG__INPUTS_FED } sg__inputs;
stepgraph_status sg__loop_save(stepgraph_loop *loop, unsigned int n, sg__inputs inputs, const stepgraph_step *step);
/* What a rehearsal did is undone. fed: inputs came after it had begun. */
stepgraph_status sg__loop_unrehearse(stepgraph_loop *loop, bool fed);
void sg__loop_forget(stepgraph_loop *loop);
/* After a recording that failed, whatever ran although it should have been recorded, on other streams, is undone, if an image was saved; and so is a
 * rehearsal that is given up, forked streams and all. */
stepgraph_status sg__loop_undo(stepgraph_loop *loop);
/* In front of what the record says: what has run could not be put back. */
stepgraph_status sg__loop_not_undone(const stepgraph_loop *loop, stepgraph_status status);

/* loop_check.c */
/* Before the host launches the step to be checked. A reason against it is no failure: *possible is then false, and the lane has
 * moved. */
stepgraph_status sg__loop_check_begin(stepgraph_loop *loop, sg__lane *lane, bool *possible);
/* After it has: replay from the same state, compare, and judge. */
stepgraph_status sg__loop_check_end(stepgraph_loop *loop, sg__lane *lane);
/* By callbacks, all at once. */
stepgraph_status sg__loop_check_run(stepgraph_loop *loop, sg__lane *lane, uint64_t k);

/* loop_noise.c: a replay was compared with what the launches left, and something differs; then replays with each other, of which the first is in an
 * image. */
stepgraph_status sg__noise_begin(stepgraph_loop *loop);
stepgraph_status sg__noise_add(stepgraph_loop *loop, unsigned int image);
/* The first pin, as an item of the images, whose difference is not explained by how replays differ from each other: of itself; or by the step, which
 * writes what its role says that it does not. SIZE_MAX: none. */
size_t sg__noise_of_graph(const stepgraph_loop *loop);
size_t sg__noise_written_input(const stepgraph_loop *loop);

/* loop_guards.c: what a check saves beside pins. With the context current. */
typedef enum sg__moment { SG__BEFORE, SG__AFTER } sg__moment; /* The host's launches. */
/* All streams are waited for. */
stepgraph_status sg__guards_save(stepgraph_loop *loop, const sg__lane *lane);
/* Away, or back. */
stepgraph_status sg__guards_copy(stepgraph_loop *loop, sg__moment moment, bool back);
/* The launches are over. What was saved is to be still there; *changed is the address of page-locked memory that is not as it was, or 0. */
stepgraph_status sg__guards_settle(const stepgraph_loop *loop, const sg__lane *lane, uint64_t *changed);
/* How many bytes of memory that no pin covers are not as they were before the step. */
stepgraph_status sg__guards_touched(stepgraph_loop *loop, uint64_t *bytes);
void sg__guards_forget(stepgraph_loop *loop);

/* loop_relax.c */
/* Tell the host, once, that trying to relax a graph has left pins as no step does. */
stepgraph_status sg__loop_spoiled(stepgraph_loop *loop);
/* The recording that is going to be replayed was made. */
void sg__lane_note(stepgraph_loop *loop, sg__lane *lane);
/* The graph was proven: relax it, if that is wanted. True: it is another one now, and has to be proven again. */
bool sg__lane_relax(stepgraph_loop *loop, sg__lane *lane);
/* A check found other results, or could not be done. True: the graph was relaxed, and is now as it was recorded, to be proven again. */
bool sg__lane_unrelax(stepgraph_loop *loop, sg__lane *lane, bool differs, const char *words);

/* loop_tune.c: the verdict is known, and the lane is replayed. Replays of it go on, and from now on may tell which executable is the fastest. */
void sg__lane_tune(stepgraph_loop *loop, sg__lane *lane, double replay_us);

/* loop_stats.c */
double sg__lane_saved_us(const sg__lane *lane);
/* Counts of a step that is going away. */
void sg__loop_collect(stepgraph_loop *loop, const stepgraph_step *step);
void sg__loop_count(stepgraph_loop *loop, sg__lane *lane, uint32_t kind, uint32_t why);

/* loop_trace.c */
stepgraph_status sg__trace_make(stepgraph_loop *loop);
void sg__trace_free(stepgraph_loop *loop);
/* Have the lane's step tell of device times. */
void sg__trace_watch(stepgraph_loop *loop, sg__lane *lane);
void sg__trace_turn(stepgraph_loop *loop, const sg__lane *lane, uint32_t kind, uint64_t end_ns);
stepgraph_status sg__trace_write(stepgraph_loop *loop, sg__text *text);

#endif
