/*
 * What an address in a recorded graph belongs to: a pin, memory of the graph's own or of the library's, or memory that only the driver
 * knows.
 *
 * A step keeps what the driver said when it was recorded. Later the same question would get another answer: memory moves and is freed.
 */
#ifndef STEPGRAPH_RESOLVE_H
#define STEPGRAPH_RESOLVE_H

#include "session_p.h"

const sg__allocation *sg__allocation_at(const sg__allocations *list, CUdeviceptr address);
/* Add one, in place of whatever it overlaps. NULL: no host memory, and words in the record. */
sg__allocation *sg__allocation_add(sg__allocations *list, const sg__allocation *item);
/* Remove the one that begins at start, if there is one. */
void sg__allocation_remove(sg__allocations *list, CUdeviceptr start);
void sg__allocations_free(sg__allocations *list);

/* Ask the driver. An address that it does not know is no failure: out->type is then 0. */
stepgraph_status sg__allocation_ask(const sg__driver *driver, CUdeviceptr address, sg__allocation *out);

/* The same, for numbers of which most are none: asks less first. */
stepgraph_status sg__allocation_look(const sg__driver *driver, CUdeviceptr address, sg__allocation *out);

typedef enum sg__where {
    SG__NOWHERE,  /* Nothing is known: a scalar, or pageable or freed memory. */
    SG__IN_PIN,
    SG__IN_GRAPH, /* Allocated by the graph itself. */
    SG__IN_TABLE, /* A list of commits, of the step's. */
    SG__IN_OWN,   /* Memory that the library keeps to itself. */
    SG__IN_ALLOCATION
} sg__where;

typedef struct sg__place {
    sg__where where;
    size_t pin;                       /* Index among the session's pins. */
    const sg__allocation *allocation; /* Of the step. */
} sg__place;

struct stepgraph_step;

/* From what the step knows; asks nobody. */
sg__place sg__resolve(const struct stepgraph_step *step, CUdeviceptr address);

/* The same for an address that is known to be in no pin. */
sg__place sg__resolve_outside(const struct stepgraph_step *step, CUdeviceptr address);

/* Whether each recording has that memory of its own: SG__IN_GRAPH, SG__IN_TABLE, or SG__NOWHERE. */
sg__where sg__resolve_recorded(const struct stepgraph_step *step, CUdeviceptr address);

/* "state", "feed", ... */
const char *sg__role_name(stepgraph_role role);

/* "state 'w' + 16", "4096 bytes of device memory that no pin covers", ... node resolves blocks of arenas by lifetime. */
void sg__describe_address(const struct stepgraph_step *step, CUdeviceptr address, uint32_t node, char *text, size_t bytes);

/* The STATE whose value stood at address before it was pinned, or NULL. */
const stepgraph_pin *sg__former_state(const stepgraph_session *session, CUdeviceptr address);

/* Memory that was there once: asked when an address means nothing to the driver. */
stepgraph_status sg__seen_add(stepgraph_session *session, const sg__allocation *item);

/* Whether all memory that the step's graph uses outside the library is still what it was. Words in the record if not. */
stepgraph_status sg__allocations_check(const struct stepgraph_step *step);

/* The quick form of that question, asked again and again: a list of all that the driver can tell about, made once the step has been examined. */
stepgraph_status sg__looks_list(struct stepgraph_step *step);
/* Whether the first n of them are certainly what they were. If not, ask again in full: only that finds words. */
stepgraph_status sg__looks_same(const struct stepgraph_step *step, size_t n, bool *same);

#endif
