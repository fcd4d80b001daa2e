/* Inside relaxing: what a relaxed step keeps, and its report. */
#ifndef STEPGRAPH_RELAX_P_H
#define STEPGRAPH_RELAX_P_H

#include <stepgraph/relax.h>

#include "footprint.h"

/* Nodes are numbered as in the footprint. */
typedef struct sg__relaxed {
    sg__footprint footprint;
    sg__order needed, lanes;
    CUgraphExec recorded; /* To go back to; step->exec is the relaxed one. */
} sg__relaxed;

struct stepgraph_relax {
    char *title;
    stepgraph_relax_summary summary;
    stepgraph_relax_barrier *barriers;
    size_t n_barriers;
    stepgraph_relax_choice *choices; /* As recorded first. */
    size_t n_choices;
    char *text, *json;
};

/* An empty report. NULL: no memory. */
stepgraph_relax *sg__relax_report(const stepgraph_step *step);

/* Options as a caller gives them, checked. */
stepgraph_status sg__relax_read_config(const stepgraph_relax_config *given, stepgraph_relax_config *out);

/* Keep what the nodes of a READY step touch, for a later relaxing with the same options: after another recording nobody would know. */
stepgraph_status sg__relax_note(stepgraph_step *step, const stepgraph_relax_config *config);
void sg__relax_forget(stepgraph_step *step);

/* Replay as recorded again; after sg__tune_drop(). Runs in flight come to their end. */
void sg__relax_drop(stepgraph_step *step);

/* Executables of the step's nodes with these edges instead of the recorded ones, so many. Those that were made are the caller's also after a failure; execs
 * is all NULL before. The context is current. */
stepgraph_status sg__relax_executables(stepgraph_step *step, const sg__graph_edge *edges, size_t n_edges, uint32_t n, CUgraphExec *execs);

/* relax_report.c: the barriers of a footprint, by reason and name; and the words, once all else is known. */
stepgraph_status sg__relax_tell_barriers(stepgraph_relax *report, const stepgraph_step *step, const sg__footprint *footprint);
stepgraph_status sg__relax_write(stepgraph_relax *report);
/* Instead: why the step is replayed as it was recorded. */
stepgraph_status sg__relax_write_refusal(stepgraph_relax *report, const char *why);

#endif
