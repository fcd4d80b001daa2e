/*
 * Inside tuning: executables of one recording, replayed in blocks until their times tell which is the fastest.
 *
 * Replays by one take some percent longer than by another, though they are made of the same nodes. Why is not known; docs/performance.md has what was
 * seen. A block is all by one executable, as what follows will be: where several take turns, each finds less of what
 * it needs in the device's caches, and takes up to 9 % longer.
 */
#ifndef STEPGRAPH_TUNE_P_H
#define STEPGRAPH_TUNE_P_H

#include <stepgraph/tune.h>

#include "step_p.h"

/* Replays in a block. The middle time counts, so that the first may find all caches cold. */
#define SG__TUNE_BLOCK 5u

/* Each launch has events of its own: a host that runs far ahead of the device has launched them all before the first time is there. */
typedef struct sg__tuning {
    CUgraphExec execs[STEPGRAPH_TUNE_MOST]; /* The first is the one that there was. Those that were not chosen are gone. */
    sg__series us[STEPGRAPH_TUNE_MOST];
    CUevent starts[STEPGRAPH_TUNE_MOST * SG__TUNE_BLOCK], ends[STEPGRAPH_TUNE_MOST * SG__TUNE_BLOCK];
    uint32_t n;
    uint32_t launched, timed; /* Launches with events so far, and those whose time was taken: a block of each in the end. */
    uint32_t chosen;
} sg__tuning;

/* Around the launch of a replay while step->trying: whose turn it is, and its events. The first may find out, and end it. What cannot be
 * measured ends it too, and is no failure. */
void sg__tune_before(stepgraph_step *step);
void sg__tune_after(stepgraph_step *step);

/* Back to the executable that there was, if the fastest is not known yet; and nothing is known of any. */
void sg__tune_drop(stepgraph_step *step);

#endif
