/*
 * What the tests of a loop's checks share: a step that each of them makes up, done in a loop and by hand, where it leaves what is right.
 */
#ifndef UNIT_SCENES_H
#define UNIT_SCENES_H

#include <stdbool.h>

#include "support.h"

enum { MOST = 5 };

/* The step of a scene: what it is fed, and what it launches. */
struct scene {
    void (*feed)(uint64_t k);
    void (*run)(uint64_t k);
    stepgraph_pin *held[MOST]; /* What is to be right. */
    unsigned n;
};
extern struct scene scene;
extern stepgraph_pin *w, *x, *one, *out, *scratch, *constant;
extern stepgraph_loop *loop;
extern stepgraph_turn turn;

/* The scene: what it is fed, or NULL; what it launches; and one pin or two that are to be right. */
void act(void (*feed)(uint64_t), void (*run)(uint64_t), stepgraph_pin *a, stepgraph_pin *b);

/* *p = *p + v, launched. */
void add(stepgraph_pin *p, float v);

/* All that scenes change. */
void zero(void);

/* The scene's values after so many steps that are launched, and nothing else. */
void by_hand(unsigned steps, float right[MOST][2]);

/* The pins of the scene hold just that. */
void check_right(float right[MOST][2]);
void run_beside(uint64_t k);
void loop_make(uint32_t flags, uint64_t check_every);

/* One round of a turn. */
stepgraph_status round_of(uint64_t k);

/* Steps, each as often as the loop wants. */
void go(uint64_t from, uint64_t to);
stepgraph_loop_stats stats_now(void);

/* Until the first step is checked; its number. */
uint64_t until_check(void);

/* The step from which run_noisy() adds `by` instead of 1. */
extern float frozen_from, by;

/* The value of w's step is the kernel's own, and changes once. `out` counts how often the step was run, with KEEP_SCRATCH, and so never repeats itself. */
void run_noisy(uint64_t k);
void feed_one(uint64_t k);

/* A batch that is normalised where it stands. */
void run_on_input(uint64_t k);
void feed_both(uint64_t k);

/* As unit_case(), with the pins made and no loop yet; the loop is destroyed afterwards. */
TCase *scene_case(Suite *suite, const char *name);

#endif
