/*
 * What the tests of relaxing share: steps, arenas and reports that are given back after the test, which node waits for which, and a step drawn
 * from a seed.
 */
#ifndef UNIT_RELAXING_H
#define UNIT_RELAXING_H

#include "findings.h"
#include "relax_p.h"

enum { FLOATS = 16, BYTES = FLOATS * sizeof(float) };

/* As audit_case(), with a log that is kept; what is made below is given back too. */
TCase *relax_case(Suite *suite, const char *name);

/* ---- what tests make --------------------------------------------------------------------------------------------------- */

stepgraph_step *begin(const char *name, uint32_t flags);
stepgraph_step *record_begin(const char *name, uint32_t flags); /* And its recording, too. */
void drop_newest_step(void);                                    /* Before the test ends. */

CUdeviceptr pin(stepgraph_role role, const char *name); /* The address of one of BYTES. */
stepgraph_arena *arena_make(uint64_t bytes, uint64_t quarantine_bytes);
CUdeviceptr block(stepgraph_arena *arena); /* Of BYTES. */

/* Into what a stream records. */
void add_graph(CUstream on, CUgraph child);

/* A kernel that touches more than its arguments say. */
CUfunction hidden(const char *name);

/* ---- relaxing ---------------------------------------------------------------------------------------------------------- */

stepgraph_relax_config on_lanes(uint32_t lanes);
stepgraph_relax *relaxed(stepgraph_step *step, const stepgraph_relax_config *config);
stepgraph_relax_summary summary(const stepgraph_relax *relax);
stepgraph_relax_summary relax_to(stepgraph_step *step, uint32_t lanes);

/* Whether node `to` waits for node `from` by the order that is needed. */
int waits(const stepgraph_step *step, uint32_t from, uint32_t to);

/* ---- a step drawn from a seed ------------------------------------------------------------------------------------------ */

enum { PINS = 10 };

/* States, temporaries that come and go, copies, sets, commits, and a cell that all may read. */
struct drawn {
    uint64_t seed;
    stepgraph_pin *pin[PINS];
    CUdeviceptr at[PINS], cell;
    stepgraph_arena *arena;
};
extern struct drawn drawn;

void drawn_make(uint64_t seed, uint64_t quarantine);
void drawn_fill(void);
void drawn_body(void);
void drawn_bytes(unsigned char *to); /* PINS * BYTES */

#endif
