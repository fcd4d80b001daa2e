/* Inside the audit of one recording. */
#ifndef STEPGRAPH_EXAMINE_P_H
#define STEPGRAPH_EXAMINE_P_H

#include "audit_p.h"

/* Marks of a value. */
enum {
    SG__VALUE_IN_PIN = 1u << 0,
    SG__VALUE_EACH = 1u << 1 /* There is something to be said about each place where it stands. */
};

typedef struct sg__examination {
    stepgraph_step *step;
    stepgraph_audit *audit;
    bool *used;           /* By index of the session's pins. */
    sg__values values;    /* What stands in arguments. */
    bool each;            /* Of some of it, each place has to be looked at. */
    sg__allocations left; /* Memory that addresses were left over of, which the step does not use. */
    const stepgraph_pin **formers; /* STATE pins that stood elsewhere before, by that address; NULL: not gathered yet. */
    size_t n_formers;
    bool formers_overlap;
    uint64_t unregistered; /* Words outside the registry. */
} sg__examination;

/* The flag that lets a kind pass; 0: none does. */
uint32_t sg__examine_permission(stepgraph_finding_kind kind);

/* A finding, which is a fault unless the step allows it. *out is NULL where nobody will read it. */
stepgraph_status sg__examine_add(sg__examination *e, stepgraph_finding_kind kind, uint32_t node, sg__finding **out);

/* The same, but in doubt: nobody can tell whether it is meant. */
stepgraph_status sg__examine_doubt(sg__examination *e, stepgraph_finding_kind kind, uint32_t node, sg__finding **out);

/* Worth knowing, and no fault. */
stepgraph_status sg__examine_note(sg__examination *e, stepgraph_finding_kind kind, uint32_t node, sg__finding **out);

void sg__examine_say(sg__finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* examine_addresses.c: read the recorded graph, and mark the pins that it uses; then say what its addresses are. */
stepgraph_status sg__examine_read(sg__examination *e);
stepgraph_status sg__examine_addresses(sg__examination *e);

/* Say what one address is, which stands there once. The step knows nothing of it yet, or it does. */
stepgraph_status sg__examine_word(sg__examination *e, const sg__graph_word *word);

/* examine_bytes.c: what stands in arguments where no word of 8 bytes begins. After the words. */
stepgraph_status sg__examine_bytes(sg__examination *e);

#endif
