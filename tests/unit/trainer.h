/*
 * What the tests of the checker share: a small trainer with all the ways to get its step wrong, and saying what a check of it must find.
 */
#ifndef UNIT_TRAINER_H
#define UNIT_TRAINER_H

#include "support.h"

enum { N = 64 };

/* w = w + rate * x out of place, committed; loss = w[0]. And ways to get it wrong. */
struct trainer {
    stepgraph_pin *w, *x, *rate, *loss, *tmp;
    CUdeviceptr other; /* Unregistered memory. */
    CUdeviceptr counter;
    stepgraph_pin *unread, *index_pin, *untyped_cell, *early; /* Made by tests that want them. */
    stepgraph_step *step;
    stepgraph_check_config config;
    stepgraph_check *check;
    stepgraph_check_summary summary;

    /* Faults. */
    int feed_once;      /* Feeds nothing after so many calls. */
    int feed_launched;  /* x is copied where the launches are, by a call that no recording holds. */
    int skip_loss;      /* Nobody writes the loss. */
    int accumulate;     /* The loss is added to what it held. */
    int by_value;       /* What is added is an argument; 2: one that comes with the feed. */
    int stale;          /* Recorded: reads `other`, where launched it reads w. */
    int skip_commit;    /* Recorded without the commit. */
    int noise;          /* Adds something that fresh launches do not repeat. */
    int noisy_feed;     /* So does the feed. */
    int constant_feed;  /* The same bytes for each step. */
    int host_counter;   /* Reads a counter of the host's own, put back only by rewind. */
    int fed_bytes;      /* Of x. 0: all. */
    int read_padding;   /* The sum of all of x goes into w. */
    int scratch_moves;  /* Each recording takes another part of it. */
    int scratch_sum;    /* Adds to scratch that nobody sets to zero; the result is not used. */
    int scratch_table;  /* Reads scratch that only launches fill: the call is left out of a recording. */
    int frozen_x;       /* The first recording reads a copy of x. */
    int writes_x;       /* Adds to x before it is read. */
    int period;         /* Of x in steps. 0: none. */
    int quiet;          /* So many calls without the noise. */
    int rate_once;      /* The rate is fed in step 11 only; 2: as zero. */
    int dead_read;      /* unread is read, into scratch that nobody looks at. */
    int ones;           /* The loss is a NaN whose bits are all ones. */
    int once;           /* A kernel whose counter nobody sets back. */
    unsigned spin_ms;   /* In the recording only. */
    int fails;          /* The callback fails for this step. */
    CUstream feeder;    /* Copies x on a stream of its own, */
    int feeder_waits;   /* and the step waits for it. */
    uint64_t counter_now, fed_step;
    unsigned feeds, enqueues, rewinds, recordings, progress_calls, stop_at;
    uint64_t random;
};
extern struct trainer t;

/* Kernels of tests/kernels/check.cu. */
extern CUfunction sum_atomic, once_function, pick_function, wobble;

/* As unit_case(), with `t` made anew for each test. */
TCase *trainer_case(Suite *suite, const char *name);

/* Pins, with the state at 1, 2, 3 ... Faults are set afterwards, and then `recorded`. */
void made_of(stepgraph_type type);
void made(void);
void unmade(void);
stepgraph_pin *typed(stepgraph_role role, uint64_t bytes, const char *name, stepgraph_type type);

/* cusim looks for missing orders by itself; some tests lack one on purpose. */
void races(const char *which);

/* ---- its step -------------------------------------------------------------------------------------------------------- */

int recording(void); /* Whether the stream is being recorded. */
void fill_x(uint64_t k, float *x);
stepgraph_status feed(void *user, stepgraph_step *step, uint64_t k);
stepgraph_status enqueue(void *user, stepgraph_step *step, uint64_t k);
stepgraph_status rewind_to(void *user, uint64_t k);

/* A step of what the enqueue callback does. */
void recorded_as(const char *name, uint32_t flags);
void recorded_with(uint32_t flags);
void recorded(void);

/* The host copies x on a stream of its own; only a step that waits for it is right. In order: with a wait on each side. */
void recorded_elsewhere(void);
float *locked_x(uint64_t k);
void copy_x(uint64_t k);
void recorded_in_order(void);

/* ---- what a check says ----------------------------------------------------------------------------------------------- */

void checked(void);
void checked_as(uint32_t want); /* And this comes out. */
stepgraph_check_pin about(const char *name);

#define VERDICT(want) \
    ck_assert_msg(t.summary.verdict == (want), "%s instead of %s:\n%s", stepgraph_check_verdict_name(t.summary.verdict), \
                  stepgraph_check_verdict_name(want), stepgraph_check_text(t.check))
#define FACT(name, bit) ck_assert_msg((about(name).facts & (bit)) != 0, "'%s' lacks %s:\n%s", name, #bit, stepgraph_check_text(t.check))
#define NO_FACT(name, bit) ck_assert_msg((about(name).facts & (bit)) == 0, "'%s' has %s:\n%s", name, #bit, stepgraph_check_text(t.check))
#define SAYS(...)                                                                                                          \
    do {                                                                                                                   \
        const char *words_[] = { __VA_ARGS__, NULL };                                                                      \
        ck_assert_msg(lacks(stepgraph_check_text(t.check), words_) == NULL, "the report lacks '%s':\n%s",                  \
                      lacks(stepgraph_check_text(t.check), words_), stepgraph_check_text(t.check));                        \
    } while (0)

#endif
