/* Inside a report, for the code that makes one. */
#ifndef STEPGRAPH_AUDIT_P_H
#define STEPGRAPH_AUDIT_P_H

#include <stepgraph/audit.h>

#include "graph/graph.h"
#include "step_p.h"
#include "text.h"

/* Findings that are kept; all are counted. */
#define SG__FINDINGS_KEPT 1000u

struct stepgraph_audit {
    char *title; /* First line of the text, without the verdict. */
    stepgraph_finding *findings;
    size_t room;
    stepgraph_audit_summary summary;
    char *text, *json; /* Made by sg__audit_finish(). */
};

/* An empty report. NULL: no host memory, and words in the record. */
stepgraph_audit *sg__audit_new(const char *title);

/* Add a finding; faults beyond the limit take the place of findings that are none. */
stepgraph_status sg__audit_add(stepgraph_audit *audit, const stepgraph_finding *finding);

/* Order the findings and write the texts. No finding is added afterwards. */
stepgraph_status sg__audit_finish(stepgraph_audit *audit);

/* A copy that the caller owns. */
stepgraph_audit *sg__audit_copy(const stepgraph_audit *audit);

/* Begin a finding about a node: name and stage. */
void sg__finding_begin(stepgraph_finding *finding, stepgraph_finding_kind kind, const stepgraph_step *step, uint32_t node);

/* "node 31  adam  arg 0 +8": where a word stands, for the front of a finding's text. */
void sg__finding_place(const stepgraph_finding *finding, sg__word_place place, char *text, size_t bytes);

/* examine.c: read the recorded graph and fill step->audit. Fails only where it cannot look; what it found is for the caller to judge. */
stepgraph_status sg__step_examine(stepgraph_step *step);

#endif
