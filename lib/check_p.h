/*
 * Inside a check: one run of it, and its report.
 *
 * check.c reads the options, makes room and puts everything back; check_arm.c runs the same steps in several ways (arms) and compares;
 * check_judge.c says what that means; check_search.c looks for the node; check_control.c plants faults; check_report.c tells it.
 */
#ifndef STEPGRAPH_CHECK_P_H
#define STEPGRAPH_CHECK_P_H

#include <stepgraph/check.h>

#include "check_shot.h"
#include "constants.h"
#include "step_p.h"

#define SG__CHECK_STEPS_MAX 64u

/* How far beyond what runs differ by themselves a replay must be to be wrong. */
#define SG__FAR 16.0

/* What OUTPUT and SCRATCH pins are filled with: a NaN in every float type, and a plain number in every one. */
#define SG__FILL_A 0xffu
#define SG__FILL_B 0x3eu

#define SG__NO_STEP UINT64_MAX

struct stepgraph_check {
    char *title;
    stepgraph_check_summary summary;
    stepgraph_check_pin *pins;
    size_t n_pins;
    int32_t driver_version;
    char device[128];
    char *text, *json;
};

/* The same steps, run in one way. Fresh ones come first. */
typedef enum sg__arm {
    SG__ARM_WAITED,  /* Replays, with a wait after each. */
    SG__ARM_QUEUED,  /* Replays back to back, behind a delay. */
    SG__ARM_LATE,    /* Replays with a delayed feed. */
    SG__ARM_AGAIN,   /* The first once more, */
    SG__ARM_AGAIN_2, /* and once more. */
    SG__ARMS
} sg__arm;

/* How a pin fared in one arm of replays: at the first step that differs, or, if fresh launches differ too, at the first beyond their spread. */
typedef struct sg__outcome {
    uint64_t step; /* From 0; SG__NO_STEP: none differs. */
    bool beyond;
    uint64_t bytes, first;
    sg__distance distance;
    uint64_t fresh_bits, replay_bits;
} sg__outcome;

/* One pin, by the index of its item among the snapshots. */
typedef struct sg__record {
    uint32_t facts;
    bool fault;
    bool used;     /* The graph refers to it. */
    bool fed;      /* It was fed during the check. */
    uint64_t fed_bytes; /* In the first step that feeds less than the pin holds: */
    uint32_t fed_step;
    sg__outcome arms[SG__ARMS];
    double spread, norm; /* Largest difference among fresh launches, and root of the largest sum of squares. */
    uint64_t spread_ulps, spread_bytes, spread_step;
    bool filled_alike; /* Unsteady only where OUTPUT and SCRATCH pins were filled with something else. */
    uint64_t fresh_kept; /* Bytes of an output that fresh launches leave as the second filling was. */
    unsigned int kept; /* Arms in which it was still filled all over after every step, by bit. */
} sg__record;

typedef struct sg__check {
    stepgraph_check_config config;
    stepgraph_step *step;
    stepgraph_session *session;
    uint32_t steps;
    stepgraph_check *report;

    sg__shots shots;
    sg__constants constants;
    sg__record *records;
    unsigned int start;                        /* The image of the beginning, */
    unsigned int after[SG__CHECK_STEPS_MAX];   /* and those after each step of the first fresh arm; all ones: not made. */
    bool every_step;                           /* All of these were made. */
    bool last_valid;                           /* The last of them is still what the fresh launches left. */
    unsigned char *feeds_before, *feeds_after; /* The host's side of feeds at the beginning, and after the first fresh arm. */
    CUevent event;                             /* Waited for. */
    CUevent behind[SG__CHECK_STEPS_MAX];       /* Behind each replay that is not waited for. */

    unsigned int fill; /* What outputs and scratch hold at the beginning of this arm. */
    bool unsteady;     /* Some pin differs among fresh launches. */
    bool bad;          /* Some replay differs in a pin that is steady. */
    bool hung, failed; /* A replay. */
    bool outside;      /* The session's context could not be made current again after a callback. */
    bool apart;        /* Launches on other streams, or not drained, may still be under way. */
    bool stuck;        /* Something on the stream does not come to an end: nothing may be waited for or put back. */
    uint64_t bad_step; /* Where it hung or failed. */
    const char *phase;
    uint64_t done, total;

    /* To be put back. */
    stepgraph_step_stats stats;
    bool not_run, outputs_stale, timing;
    uint64_t ran_at;
    uint64_t *owed; /* By used pin: how often it was fed since the last replay. */
} sg__check;

/* check.c: calling back with the host's context current; the words of a failure are in the record. */
stepgraph_status sg__check_feed(sg__check *check, uint32_t i);
stepgraph_status sg__check_enqueue(sg__check *check, stepgraph_step *step, uint32_t i);
stepgraph_status sg__check_rewind(sg__check *check, uint64_t k);
/* A piece of work is done. Fails where the host wants to stop. */
stepgraph_status sg__check_progress(sg__check *check, const char *phase);

/* check_arm.c: wait for all that is on the stream, and on the feeding stream, where nothing is expected to hang: a session that does is marked. what:
 * "the fresh launches of step 3". */
stepgraph_status sg__check_wait_for(sg__check *check, const char *what);
/* Everything as at the beginning, outputs and scratch filled. */
stepgraph_status sg__check_begin_arm(sg__check *check, unsigned int fill);
stepgraph_status sg__check_fill(sg__check *check, unsigned int fill);
/* All arms. */
stepgraph_status sg__check_arms(sg__check *check);
/* One step by launches, whose feeds are there. */
stepgraph_status sg__check_launches(sg__check *check, uint32_t i);
/* Once more, for what comes after the last step. */
stepgraph_status sg__check_fresh_again(sg__check *check);
/* Compare the pins with an image and wait; number of items that differ. */
stepgraph_status sg__check_compare(sg__check *check, sg__shots *shots, unsigned int image, unsigned int groups, unsigned int fill, size_t *differ_out);
/* How far they are apart; of those that differ by the last comparison. */
stepgraph_status sg__check_measure(sg__check *check, sg__shots *shots, unsigned int image, unsigned int fill);
/* Whether an item that differs and was measured is beyond what fresh launches explain. */
bool sg__check_beyond(const sg__record *record, const sg__shot_item *item);

/* check_judge.c: facts and faults from what the arms did. */
void sg__check_judge(sg__check *check);

/* check_search.c: the first node whose effect differs. Fails only where the session is lost. */
stepgraph_status sg__check_search(sg__check *check);

/* check_control.c: planted faults and altered inputs. */
stepgraph_status sg__check_controls(sg__check *check);

/* check_report.c: from records to a report. */
stepgraph_check *sg__check_report_new(sg__check *check);
stepgraph_status sg__check_report(sg__check *check);

#endif
