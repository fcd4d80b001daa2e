/* Inside a report, for the code that makes one. */
#ifndef STEPGRAPH_AUDIT_P_H
#define STEPGRAPH_AUDIT_P_H

#include <pthread.h>

#include <stepgraph/audit.h>

#include "graph/graph.h"
#include "step_p.h"
#include "text.h"

/* Findings that are kept; all are counted. */
#define SG__FINDINGS_KEPT 1000u

/* A finding as it is kept. A kernel's name is not cheap, so it is put in when somebody reads the report. */
typedef struct sg__finding {
    stepgraph_finding said; /* Without the node's name and, where the finding is about a word, without its place in the text. */
    sg__name *name;         /* Held. NULL: the node's name is in already, or there is none. */
    bool placed;            /* About a word: place says where it stands, */
    sg__word_place place;
    uint32_t part; /* and this which part of a shape it is. */
    size_t tail;   /* Where the text goes on behind the place, once that is in. */
} sg__finding;

struct stepgraph_audit {
    char *title;         /* First line of the text, without the verdict. */
    uint32_t recordings; /* That were compared; 0: it is about one. */
    sg__finding *findings;
    size_t room;
    bool doubtful;       /* It accuses a value in a large struct, of too few recordings to be sure that somebody sets it. */
    uint64_t notes;      /* Those that are kept and no fault. */
    size_t scanned;      /* From here on there are none, once faults have begun to take their place; 0: they have not. */
    sg__finding **order; /* As they are read. Made by sg__audit_finish(). */
    stepgraph_audit_summary summary;
    pthread_mutex_t lock; /* Several threads may read. What follows is made by the first that does. */
    bool complete;        /* Names and places are in. */
    char *text, *json;
};

/* An empty report. NULL: no host memory, and words in the record. */
stepgraph_audit *sg__audit_new(const char *title);

/* Count a finding and begin it: name and stage. *out is NULL where so many are kept already that nobody will read it; faults take
 * the place of those that are none. */
stepgraph_status sg__audit_add(stepgraph_audit *audit, stepgraph_finding_kind kind, bool fault, const stepgraph_step *step,
                               uint32_t node, sg__finding **out);

/* It is about a word: its text will begin with "node 31  adam  arg 0 +8   ". */
void sg__finding_place(sg__finding *finding, sg__word_place place, uint32_t argument, uint32_t offset);

/* Order the findings. None is added afterwards. */
stepgraph_status sg__audit_finish(stepgraph_audit *audit);

/* A finding, ready to be read. */
const stepgraph_finding *sg__audit_at(const stepgraph_audit *audit, size_t index);

/* A copy that the caller owns. */
stepgraph_audit *sg__audit_copy(const stepgraph_audit *audit);

/* Nanoseconds on the clock that costs are measured with. */
uint64_t sg__audit_clock(void);

/* audit_host.c: the memory of this process, as it is when it is first asked for. Begins as all zero. */
typedef struct sg__host_range {
    uint64_t start, end;
    bool writable, executable;
} sg__host_range;

typedef struct sg__host_memory {
    sg__host_range *ranges; /* Sorted, disjoint. */
    size_t n;
    bool known;
    int contents; /* File of what is in the memory, plus 1; 0: not opened yet, -1: it cannot be. */
} sg__host_memory;

/* Device memory may be in it too: that is for the driver to say. likely: and something can stand there that programs have addresses of, which
 * leaves out seven of eight numbers. */
bool sg__host_memory_holds(sg__host_memory *memory, uint64_t address, bool likely);

/* Whether a call in the process's code returns to an address with this lower half. Of all numbers, one in two hundred is such a half where half
 * of the lower 4 GiB is code. */
bool sg__host_memory_returns(sg__host_memory *memory, uint32_t low);
void sg__host_memory_free(sg__host_memory *memory);

/* examine.c: read the recorded graph and fill step->audit. Fails only where it cannot look; what it found is for the caller to judge. */
stepgraph_status sg__step_examine(stepgraph_step *step);

#endif
