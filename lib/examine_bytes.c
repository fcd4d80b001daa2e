/*
 * Addresses in packed structs: at any byte of an argument, on request.
 *
 * Eight bytes that begin just anywhere are mostly the end of one value and the beginning of another, so more is asked of them: they share no byte with
 * an address that is known already, those at multiples of 4 before the others; they are a multiple of 4; and some memory is there, or was.
 */
#include <stdlib.h>
#include <string.h>

#include "examine_p.h"
#include "extents.h"

typedef struct scan {
    sg__examination *e;
    sg__values numbers; /* That mean nothing to the driver. */
} scan;

/* Whether the words have shown that something is there: asks nobody. */
static bool is_met(const sg__examination *e, uint64_t value)
{
    stepgraph_session *session = e->step->session;

    return value != 0 && (sg__extents_find(session, value) < session->n_pins || sg__resolve_outside(e->step, value).where != SG__NOWHERE);
}

static stepgraph_status is_address(scan *s, uint64_t value, bool *answer)
{
    const stepgraph_session *session = s->e->step->session;
    stepgraph_status status = STEPGRAPH_OK;
    sg__allocation item;
    sg__value *entry;

    *answer = false;
    if (!sg__may_be_address(value) || value % 4 != 0)
        return STEPGRAPH_OK;
    *answer = is_met(s->e, value) || sg__allocation_at(&session->seen, value) != NULL;
    if (*answer)
        return STEPGRAPH_OK;
    entry = sg__values_take(&s->numbers, value);
    if (entry != NULL && entry->n++ > 0)
        return STEPGRAPH_OK;
    status = sg__allocation_look(session->driver, value, &item);
    *answer = status == STEPGRAPH_OK && item.type != 0;
    if (*answer && entry != NULL)
        entry->n = 0; /* The step will know it. */
    return status;
}

static stepgraph_status add(scan *s, const sg__graph_word *word)
{
    sg__examination *e = s->e;
    size_t pin = sg__extents_find(e->step->session, word->value);

    if (pin == e->step->session->n_pins)
        return sg__examine_word(e, word);
    e->used[pin] = true;
    e->audit->summary.addresses++;
    e->audit->summary.in_pins++;
    return STEPGRAPH_OK;
}

static uint64_t word_at(const unsigned char *bytes, size_t at)
{
    uint64_t value;

    memcpy(&value, bytes + at, sizeof value);
    return value;
}

/* taken: for each byte, whether it belongs to an address. */
static bool is_free(const bool *taken, size_t at)
{
    for (size_t i = at; i < at + 8; i++)
        if (taken[i])
            return false;
    return true;
}

static stepgraph_status scan_argument(void *user, uint32_t node, uint16_t argument, const unsigned char *bytes, size_t n)
{
    static const size_t steps[] = {4, 2, 1};
    sg__graph_word word = {.place = SG__WORD_ARGUMENT, .node = node, .argument = argument};
    stepgraph_status status = STEPGRAPH_OK;
    bool *taken, found;
    scan *s = user;

    if (n <= 8)
        return STEPGRAPH_OK;
    taken = calloc(n, sizeof *taken);
    if (taken == NULL)
        return sg__fail_memory("host", n * sizeof *taken);
    for (size_t at = 0; at + 8 <= n; at += 8)
        if (is_met(s->e, word_at(bytes, at)))
            memset(&taken[at], true, 8);
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        for (size_t at = steps[k]; at + 8 <= n && status == STEPGRAPH_OK; at += steps[k]) {
            if (at % (2 * steps[k]) == 0 || !is_free(taken, at)) /* Looked at before, or known to be something else. */
                continue;
            word.value = word_at(bytes, at);
            word.offset = (uint32_t)at;
            status = is_address(s, word.value, &found);
            if (status != STEPGRAPH_OK || !found)
                continue;
            memset(&taken[at], true, 8);
            status = add(s, &word);
        }
    free(taken);
    return status;
}

stepgraph_status sg__examine_bytes(sg__examination *e)
{
    scan s = {.e = e};
    stepgraph_status status;

    sg__values_init(&s.numbers);
    status = sg__graph_arguments(e->step->session->driver, &e->step->read, scan_argument, &s);
    sg__values_free(&s.numbers);
    return status;
}
