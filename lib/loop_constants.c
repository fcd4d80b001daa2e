/* Constants in checks: a step that writes one is told before it is done a second time, since nobody could put it back. Hashes are enough for that. */
#include <stdlib.h>
#include <string.h>

#include "loop_p.h"

enum { HASH_BEFORE, HASH_AFTER, HASHES };

stepgraph_status sg__constants_note(stepgraph_loop *loop, const sg__lane *lane)
{
    const stepgraph_step *step = lane->step;
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
        loop->has_constants = true;
        status = sg__memory_make(&loop->constants, loop->session, accesses, n, false, 0, HASHES, 0, 0);
        if (status == STEPGRAPH_OK)
            status = sg__memory_hash(&loop->constants, HASH_BEFORE);
    }
    free(accesses);
    return status;
}

stepgraph_status sg__constants_written(stepgraph_loop *loop, const stepgraph_pin **pin_out)
{
    sg__memory *memory = &loop->constants;
    stepgraph_status status;
    const unsigned char *hits;
    unsigned char *marks;

    *pin_out = NULL;
    if (!loop->has_constants)
        return STEPGRAPH_OK;
    marks = malloc(memory->n);
    if (marks == NULL)
        return sg__fail_memory("host", memory->n);
    memset(marks, SG__RANGE_READ, memory->n);
    status = sg__memory_hash(memory, HASH_AFTER);
    if (status == STEPGRAPH_OK)
        status = sg__memory_judge(memory, HASH_AFTER, HASH_BEFORE, marks, SG__RANGE_WRITTEN);
    if (status == STEPGRAPH_OK)
        status = sg__session_wait(loop->session);
    free(marks);
    if (status != STEPGRAPH_OK || sg__memory_judged(memory).changed == 0)
        return status;
    hits = sg__memory_hits(memory);
    for (size_t i = 0; i < memory->n && *pin_out == NULL; i++)
        if (hits[i] != 0)
            *pin_out = sg__pin_at(loop->session, memory->ranges[i].a);
    return STEPGRAPH_OK;
}

void sg__constants_forget(stepgraph_loop *loop)
{
    if (loop->has_constants)
        sg__memory_free(&loop->constants);
    loop->has_constants = false;
}
