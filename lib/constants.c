#include "constants.h"

#include <stdlib.h>
#include <string.h>

#include "step_p.h"

enum { HASH_BEFORE, HASH_AFTER, HASHES };

stepgraph_status sg__constants_note(sg__constants *constants, const stepgraph_step *step)
{
    sg__access *accesses = calloc(step->n_used + 1, sizeof *accesses);
    stepgraph_status status = STEPGRAPH_OK;
    size_t n = 0;

    if (accesses == NULL)
        return sg__fail_memory("host", (step->n_used + 1) * sizeof *accesses);
    for (size_t i = 0; i < step->n_used && status == STEPGRAPH_OK; i++) {
        const stepgraph_pin *pin = step->used[i];
        if (pin->role != STEPGRAPH_ROLE_CONST)
            continue;
        status = sg__pin_check(pin);
        accesses[n++] = (sg__access){.start = pin->address, .bytes = pin->bytes};
    }
    if (status == STEPGRAPH_OK && n > 0) {
        constants->any = true;
        status = sg__memory_make(&constants->memory, step->session, accesses, n, false, 0, HASHES, 0, 0);
        if (status == STEPGRAPH_OK)
            status = sg__memory_hash(&constants->memory, HASH_BEFORE);
    }
    free(accesses);
    return status;
}

stepgraph_status sg__constants_written(sg__constants *constants, const stepgraph_pin **pin_out)
{
    sg__memory *memory = &constants->memory;
    stepgraph_status status;
    const unsigned char *hits;
    unsigned char *marks;

    *pin_out = NULL;
    if (!constants->any)
        return STEPGRAPH_OK;
    marks = malloc(memory->n);
    if (marks == NULL)
        return sg__fail_memory("host", memory->n);
    memset(marks, SG__RANGE_READ, memory->n);
    status = sg__memory_hash(memory, HASH_AFTER);
    if (status == STEPGRAPH_OK)
        status = sg__memory_judge(memory, HASH_AFTER, HASH_BEFORE, marks, SG__RANGE_WRITTEN);
    if (status == STEPGRAPH_OK)
        status = sg__session_wait(memory->session);
    free(marks);
    if (status != STEPGRAPH_OK || sg__memory_judged(memory).changed == 0)
        return status;
    hits = sg__memory_hits(memory);
    for (size_t i = 0; i < memory->n && *pin_out == NULL; i++)
        if (hits[i] != 0)
            *pin_out = sg__pin_at(memory->session, memory->ranges[i].a);
    return STEPGRAPH_OK;
}

void sg__constants_free(sg__constants *constants)
{
    if (constants->any)
        sg__memory_free(&constants->memory);
    constants->any = false;
}
