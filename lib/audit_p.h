/* Inside a report, for the code that makes one. */
#ifndef STEPGRAPH_AUDIT_P_H
#define STEPGRAPH_AUDIT_P_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#include <stepgraph/audit.h>

#include "graph/graph.h"
#include "step_p.h"
#include "text.h"

/* Findings that are kept; all are counted. */
#define SG__FINDINGS_KEPT 1000u

typedef enum sg__weight { SG__NOTE, SG__DOUBTFUL, SG__FAULT } sg__weight;

/* A finding as it is kept: what it says is put into words when somebody reads the report. */
typedef struct sg__finding {
    stepgraph_finding_kind kind;
    sg__weight weight;
    bool placed; /* About a word: place says where it stands, */
    sg__word_place place;
    uint32_t part; /* and this which argument, or which part of a shape it is. */
    uint32_t node, offset, bytes;
    uint64_t before, after;
    sg__name *name;          /* The kernel's, held; NULL: of another node, and then */
    const char *node_kind;   /* what the node does, or "". */
    const char *stage;       /* Among the report's. */
    const char *why;         /* Of bytes that are no value: how that shows. Such a finding has no other text. */
    int32_t goes_on_by;      /* Of a counter that was left over: as well, each recording by so much, */
    uint32_t extent;         /* in a struct of so many bytes. 0: of all others. */
    uint64_t whole[2];       /* Of a changing scalar that may be the upper half of a double: the double before and after, */
    uint32_t whole_offset;   /* where it begins. */
    bool half;
    char *text;              /* Without the place; NULL where why says it, and of a changing scalar. */
    const char *advice;      /* Not the finding's own, unless */
    char *advice_made;       /* it is this. */
} sg__finding;

/* Names of stages, which the report owns: few. */
typedef struct sg__stage_name {
    struct sg__stage_name *next;
    char name[];
} sg__stage_name;

struct stepgraph_audit {
    atomic_uint holders;
    char *title;         /* First line of the text, without the verdict. */
    uint32_t recordings; /* That were compared; 0: it is about one. */
    sg__finding *findings;
    size_t room;
    sg__stage_name *stages;
    uint64_t of[SG__FAULT + 1];     /* How many of each weight are kept. */
    size_t scanned[SG__FAULT + 1];  /* From here on there are none of it, once weightier ones have begun to take their place; 0: they have not. */
    sg__finding **order; /* As they are read. Made by sg__audit_finish(). */
    stepgraph_audit_summary summary;
    pthread_mutex_t lock;    /* Several threads may read. What follows is made by the first that does. */
    stepgraph_finding *said; /* The findings in words, in their order. */
    char *text, *json;
};

/* An empty report. NULL: no host memory, and words in the record. */
stepgraph_audit *sg__audit_new(const char *title);

/* Count a finding and begin it: name and stage. *out is NULL where so many are kept already that nobody will read it; others take
 * the place of notes. It is to be given a text, or why. */
stepgraph_status sg__audit_add(stepgraph_audit *audit, stepgraph_finding_kind kind, sg__weight weight, const stepgraph_step *step,
                               uint32_t node, sg__finding **out);

/* It is about a word: its text will begin with "node 31  adam  arg 0 +8   ". */
void sg__finding_place(sg__finding *finding, sg__word_place place, uint32_t argument, uint32_t offset);

/* As stepgraph_finding has it. */
static inline uint32_t sg__finding_argument(const sg__finding *finding)
{
    return finding->placed && finding->place == SG__WORD_ARGUMENT ? finding->part : UINT32_MAX;
}

/* Its text, without the place: as it is, or printed. */
void sg__finding_tell(sg__finding *finding, const char *text);
void sg__finding_say(sg__finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sg__finding_vsay(sg__finding *finding, const char *format, va_list arguments);

/* What to do about it; for words that are the same each time, set the advice itself. */
void sg__finding_advise(sg__finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Order the findings. None is added afterwards. */
stepgraph_status sg__audit_finish(stepgraph_audit *audit);

/* A finding, ready to be read. */
const stepgraph_finding *sg__audit_at(const stepgraph_audit *audit, size_t index);

/* One holder more of a finished report, which does not change any more: answers it. */
stepgraph_audit *sg__audit_hold(stepgraph_audit *audit);

/* audit_host.c: the memory of this process, as it is when it is first asked for. Begins as all zero but for process. The list of ranges costs most, and
 * the lower 4 GiB of it next to nothing. */
typedef struct sg__host_memory {
    sg__process *process; /* The session's. */
    bool renewed;
    sg__mapping *ranges; /* All mappings, sorted, disjoint, */
    size_t n;
    uint64_t known; /* that begin below this address. */
} sg__host_memory;

/* Device memory may be in it too: that is for the driver to say. likely: and something can stand there that programs have addresses of, which
 * leaves out seven of eight numbers. */
bool sg__host_memory_holds(sg__host_memory *memory, uint64_t address, bool likely);

/* Whether addresses of this process's mappings, stacks or heap have such an upper half. Of the numbers below 32,768 one in twenty or so is one. */
bool sg__host_memory_upper(uint32_t half);

/* Whether a call in the process's code returns to an address with this lower half. Of all numbers, one in two hundred is such a half where half
 * of the lower 4 GiB is code. */
bool sg__host_memory_returns(sg__host_memory *memory, uint32_t low);
void sg__host_memory_free(sg__host_memory *memory);

/* examine.c: read the recorded graph and fill step->audit. Fails only where it cannot look; what it found is for the caller to judge. */
stepgraph_status sg__step_examine(stepgraph_step *step);

#endif
