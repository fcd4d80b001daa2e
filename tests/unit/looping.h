/*
 * What the tests of the loop share: a host with a small step, its log, and steps that cannot be replayed as they are.
 */
#ifndef UNIT_LOOPING_H
#define UNIT_LOOPING_H

#include <stdbool.h>

#include "support.h"

enum { N = 64, BYTES = N * sizeof(float) };

extern stepgraph_loop *loop;
extern stepgraph_turn turn;
extern stepgraph_pin *weight, *fresh, *input, *rate, *loss, *beside;

/* What the log has said of loops, and how many warnings of any kind. */
extern char lines[64][700];
extern unsigned n_lines, n_warnings;
void make_pins(void);

/* Destroy the loop; so does the end of a test. */
void teardown(void);

/* Steps as small as these may be as fast launched as replayed: only tests of the clock let it decide. */
void loop_make(const stepgraph_loop_config *given);

/* Named "train". */
stepgraph_loop_config config_with(uint32_t flags);

/* What step k is fed. */
void feed(uint64_t k);
void launch_n(CUfunction function, unsigned threads, void **arguments);

/* Out of place, and committed: what a graph can hold. */
void train(uint64_t k);

/* One step: as often as the loop wants. Answers the kind of the turn that did it. */
uint32_t take(uint64_t k, void (*step)(uint64_t));

/* Steps, each as often as the loop wants. */
void go(uint64_t from, uint64_t to, void (*step)(uint64_t));

/* Replays without feeds, whose slots are waited for. */
void go_ahead(uint64_t from, uint64_t to);

/* Whether the turn records. */
bool recording(void);
stepgraph_loop_stats stats_now(void);

#define TURNS(kind, want) ck_assert_uint_eq(stats_now().turns[STEPGRAPH_TURN_##kind], want)

#define RUNG(want, reason)                                                                                                       \
    do {                                                                                                                         \
        stepgraph_loop_stats s_ = stats_now();                                                                                   \
        ck_assert_msg(s_.rung == STEPGRAPH_RUNG_##want && s_.why == STEPGRAPH_WHY_##reason, "rung %s, %s: %s",                   \
                      stepgraph_rung_name(s_.rung), stepgraph_why_name(s_.why), s_.words);                                       \
    } while (0)

/* What n steps without any loop leave in the weights; the pins are zero again afterwards. */
void without_loop(uint64_t n, void (*step)(uint64_t), float *to);

/* The weights hold just that. */
void same_as(const float *want);

/* *weight = *weight + 1, and nothing else. */
void count_one(uint64_t k);

extern uint64_t rewound, rewinds;

/* A rewind callback that notes where to and how often. */
stepgraph_status note_rewind(void *user, uint64_t k);

/* Memory that no pin covers. */
extern CUdeviceptr moving[3];

/* train() and feed() as callbacks of a check. */
stepgraph_status enqueue_back(void *user, stepgraph_step *step, uint64_t k);
stepgraph_status feed_back(void *user, stepgraph_step *step, uint64_t k);

/* A learning rate as a kernel argument. */
void train_by_value(uint64_t k);

/* By value, and from step 20 on in two forms. */
void train_by_value_in_forms(uint64_t k);

/* Device memory that the graph of train() takes. */
uint64_t bytes_of_one_graph(void);

/* Waits for the stream, which no recording survives. */
void train_waiting(uint64_t k);

/* As unit_case(), with a session that logs, the pins made and no loop yet; the loop is destroyed afterwards. */
TCase *loop_case(Suite *suite, const char *name);

#endif
