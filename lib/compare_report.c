/* Findings of a comparison: what a difference is called, how grave it is, and what to do about it. */
#include <stdio.h>

#include "arena_p.h"
#include "compare_p.h"
#include "line.h"

#define FEED_IT "make it a CELL that the kernel reads, fed with stepgraph_pin_feed(), or keep it on the device"
#define SAME_PLACE \
    "use the same place of the same pin in every step: hand over inputs there with stepgraph_pin_feed(), bring new values there with " \
    "stepgraph_pin_commit(), or record one graph for each place"
#define IN_DOUBT "; if the kernel does not read it there it is left over, which more recordings of both steps show, or a check"

/* A finding about a change; *out is NULL where nobody will read it. */
static stepgraph_status begin(const sg__comparison *c, stepgraph_finding_kind kind, sg__weight weight, const sg__change *x, sg__finding **out)
{
    stepgraph_status status = sg__audit_add(c->audit, kind, weight, c->steps[0], x->d->node, out);

    if (*out == NULL)
        return status;
    sg__finding_place(*out, x->d->place, x->d->argument, x->offset);
    (*out)->bytes = x->bytes;
    (*out)->before = x->before;
    (*out)->after = x->after;
    return status;
}

/* What to do about a value that changes. Only arguments may be in doubt. */
static const char *advice_about(const sg__graph_difference *d, sg__weight weight)
{
    static const char feed[] = FEED_IT, in_doubt[] = FEED_IT IN_DOUBT,
                      in_a_struct[] = FEED_IT "; if it is read by none, say so with stepgraph_session_set_unread()";

    if (d->place != SG__WORD_ARGUMENT)
        return "record again for each such value, or make it the same in every step";
    if (weight == SG__DOUBTFUL)
        return in_doubt;
    return sg__compare_in_struct(d) && d->extent <= SG__MASKED_MOST ? in_a_struct : feed;
}

stepgraph_status sg__compare_say_scalar(const sg__comparison *c, const sg__change *x, const sg__graph_difference *whole)
{
    const sg__weight weight = sg__compare_may_be_unset(c, x) && !sg__compare_is_told_by_step(c, x->d) ? SG__DOUBTFUL : sg__compare_weight(c, x->d);
    stepgraph_status status;
    sg__finding *f;

    status = begin(c, STEPGRAPH_FINDING_CHANGING_SCALAR, weight, x, &f);
    if (f == NULL)
        return status;
    f->advice = advice_about(x->d, weight);
    if (whole != NULL) {
        f->half = true;
        f->whole[0] = whole->values[0];
        f->whole[1] = whole->values[x->other];
        f->whole_offset = whole->offset;
    }
    return status;
}

stepgraph_status sg__compare_say_no_value(const sg__comparison *c, const sg__change *x, const char *why)
{
    stepgraph_status status;
    sg__finding *f;

    status = begin(c, STEPGRAPH_FINDING_UNCLASSIFIED, SG__NOTE, x, &f);
    if (f != NULL)
        f->why = why;
    return status;
}

stepgraph_status sg__compare_say_counter(const sg__comparison *c, const sg__change *x)
{
    stepgraph_status status;
    sg__finding *f;

    status = begin(c, STEPGRAPH_FINDING_UNCLASSIFIED, SG__NOTE, x, &f);
    if (f != NULL) {
        f->why = "so it is taken for a counter that was left over there; if the kernel reads it, make it a CELL";
        f->goes_on_by = (int32_t)sg__compare_goes_on_by(c, x->d, 0, x->offset - x->d->offset);
        f->extent = (uint32_t)x->d->extent;
    }
    return status;
}

/* Whether the address was in a block that the host had before the recording began, so that what is in there is older than the step. Commits
 * have no node: for them the block must still be out at the end. */
static bool is_carried(const stepgraph_step *step, CUdeviceptr address, uint32_t node)
{
    return sg__carried_at(step->carried, step->n_carried, address, node < step->read.n_nodes ? step->read.nodes[node].top : SG__NO_NODE) != NULL;
}

/* The pin of both addresses, if it is one and SCRATCH: nothing in there outlives a step, so that a replay may go on using other places in it
 * than the next step would. Not so a block that is known to be older than its recording. */
const stepgraph_pin *sg__compare_shared_scratch(sg__comparison *c, CUdeviceptr before, size_t g, CUdeviceptr after, uint32_t node)
{
    const stepgraph_step *one = c->steps[0], *other = c->steps[g];
    sg__place a = sg__compare_place(c, 0, before), b = sg__compare_place(c, g, after);
    const stepgraph_pin *pin = a.where == SG__IN_PIN && b.where == SG__IN_PIN && a.pin == b.pin ? one->session->pins[a.pin] : NULL;

    if (pin == NULL || pin->role != STEPGRAPH_ROLE_SCRATCH || is_carried(one, before, node) || is_carried(other, after, node))
        return NULL;
    return pin;
}

/* Whether both places are in the registry already, or one is no address: what moves is not a buffer, but which of them the step uses, or where in it.
 * Memory in scratch may be anybody's. */
static bool are_pinned(sg__comparison *c, CUdeviceptr before, size_t g, CUdeviceptr after)
{
    const stepgraph_session *session = c->steps[0]->session;
    const sg__place a = sg__compare_place(c, 0, before), b = sg__compare_place(c, g, after);

    return (before == 0 || (a.where == SG__IN_PIN && session->pins[a.pin]->role != STEPGRAPH_ROLE_SCRATCH)) &&
           (after == 0 || (b.where == SG__IN_PIN && session->pins[b.pin]->role != STEPGRAPH_ROLE_SCRATCH));
}

/* What to do about a pointer that moved; scratch: where it moved within, which is no fault. */
static void advise(const sg__comparison *c, sg__finding *f, const stepgraph_pin *scratch, const char *otherwise)
{
    const stepgraph_pin *former = sg__former_state(c->steps[0]->session, f->before);

    if (scratch != NULL)
        sg__finding_advise(f, "nothing, as long as nothing in scratch '%.100s' is needed in the next step", scratch->name);
    else if (former != NULL)
        sg__finding_advise(f, "let the step use the address of pin '%.100s', and commit the new value each step", former->name);
    else
        f->advice = otherwise;
}

/* What stood at an address: "0x7f00 (state 'w')". */
static void add_address(sg__line *line, const stepgraph_step *step, CUdeviceptr address, uint32_t node)
{
    char what[160];

    sg__describe_address(step, address, node, what, sizeof what);
    sg__line_address(line, address);
    sg__line_add(line, " (");
    sg__line_add(line, what);
    sg__line_add(line, ")");
}

static void add_move(sg__line *line, const sg__comparison *c, CUdeviceptr before, size_t g, CUdeviceptr after, uint32_t node)
{
    add_address(line, c->steps[0], before, node);
    sg__line_add(line, " -> ");
    add_address(line, c->steps[g], after, node);
}

/* The change to tell of: the first, or if that is within scratch the first that is not. */
static sg__change gravest(sg__comparison *c, const sg__change *x)
{
    sg__change found = *x;

    for (size_t i = 1; i < c->n; i++) {
        found.other = sg__compare_other(c, i);
        found.after = x->d->values[found.other];
        if (!sg__compare_is_the_same(c, found.before, found.other, found.after) &&
            sg__compare_shared_scratch(c, found.before, found.other, found.after, x->d->node) == NULL)
            return found;
    }
    return *x;
}

stepgraph_status sg__compare_say_pointer(sg__comparison *c, const sg__change *first)
{
    const sg__change gravest_one = gravest(c, first), *x = &gravest_one;
    const stepgraph_step *one = c->steps[0], *other = c->steps[x->other];
    const stepgraph_pin *scratch = sg__compare_shared_scratch(c, x->before, x->other, x->after, x->d->node);
    const bool allowed = x->d->place == SG__WORD_HOST && (one->flags & other->flags & STEPGRAPH_STEP_ALLOW_HOST_ARGUMENTS) != 0;
    sg__weight weight = scratch != NULL || allowed ? SG__NOTE : sg__compare_weight(c, x->d);
    char text[512];
    sg__line line = sg__line_begin(text, sizeof text);
    stepgraph_status status;
    sg__finding *f;

    if (weight == SG__FAULT && sg__compare_may_be_left_over(c, x->d) && sg__compare_noise(c, x->d, 0, 8) != 0)
        weight = SG__DOUBTFUL; /* Or it moves each time it is recorded: only a check can tell. */
    status = begin(c, STEPGRAPH_FINDING_MOVED_POINTER, weight, x, &f);
    if (f == NULL)
        return status;
    sg__line_add(&line, "moved pointer   ");
    add_move(&line, c, x->before, x->other, x->after, x->d->node);
    sg__finding_tell(f, text);
    advise(c, f, scratch,
           weight == SG__DOUBTFUL
               ? "pin what it is, or note the blocks of the host's pool" IN_DOUBT
           : x->d->place == SG__WORD_HOST
               ? "give the host function the same argument in every step, call it outside the step, or allow it with "
                 "STEPGRAPH_STEP_ALLOW_HOST_ARGUMENTS, if it is made for the recording and lives as long as the graph"
           : are_pinned(c, x->before, x->other, x->after)
               ? SAME_PLACE
               : "pin it: register what it is as STATE (or FEED), let the step use the pin's address, and commit the new value each step");
    return status;
}

stepgraph_status sg__compare_say_topology(const sg__comparison *c, uint32_t node, const char *text)
{
    stepgraph_status status;
    sg__finding *f;

    status = sg__audit_add(c->audit, STEPGRAPH_FINDING_TOPOLOGY, SG__FAULT, c->steps[0], node, &f);
    if (f != NULL) {
        sg__finding_say(f, "%s", text);
        f->advice = "a graph repeats the same nodes: record one graph for each form that the step can take";
    }
    return status;
}

stepgraph_status sg__compare_say_event(const sg__comparison *c, uint32_t node, const char *text)
{
    stepgraph_status status;
    sg__finding *f;

    status = sg__audit_add(c->audit, STEPGRAPH_FINDING_TOPOLOGY, SG__DOUBTFUL, c->steps[0], node, &f);
    if (f != NULL) {
        sg__finding_tell(f, text);
        f->advice = "use the same event in each step; if nobody outside the graph waits for it, or records it, a check shows that";
    }
    return status;
}

stepgraph_status sg__compare_say_target(sg__comparison *c, size_t index, size_t g)
{
    char text[512];

    snprintf(text, sizeof text, "the commit of pin '%.150s' in the first recording is one of other pins in the %s", c->steps[0]->sources[index].pin->name,
             sg__ordinal(g));
    return sg__compare_say_topology(c, SG__NO_NODE, text);
}

stepgraph_status sg__compare_say_sources(sg__comparison *c, size_t g)
{
    const size_t before = c->steps[0]->n_sources, after = c->steps[g]->n_sources;
    stepgraph_status status;
    sg__finding *f;
    char text[160];

    status = sg__audit_add(c->audit, STEPGRAPH_FINDING_CHANGING_SCALAR, SG__FAULT, c->steps[0], SG__NO_NODE, &f);
    if (f == NULL)
        return status;
    f->before = before;
    f->after = after;
    snprintf(text, sizeof text, "the first recording commits %zu new values by list, and the %s %zu: those that are in place are not copied", before,
             sg__ordinal(g), after);
    sg__finding_tell(f, text);
    f->advice = "write the new value of a pin to another place in every step, or to the pin itself in every step";
    return status;
}

stepgraph_status sg__compare_say_source(sg__comparison *c, size_t index, size_t g, CUdeviceptr after)
{
    const stepgraph_step *one = c->steps[0];
    CUdeviceptr before = one->sources[index].address;
    const stepgraph_pin *scratch = sg__compare_shared_scratch(c, before, g, after, SG__NO_NODE);
    char text[640];
    sg__line line = sg__line_begin(text, sizeof text);
    stepgraph_status status;
    sg__finding *f;

    status = sg__audit_add(c->audit, STEPGRAPH_FINDING_MOVED_POINTER, scratch == NULL ? SG__FAULT : SG__NOTE, one, SG__NO_NODE, &f);
    if (f == NULL)
        return status;
    f->bytes = 8;
    f->before = before;
    f->after = after;
    sg__line_add(&line, "the commit of pin '");
    sg__line_name(&line, one->sources[index].pin->name);
    sg__line_add(&line, "'   moved pointer   its new value at ");
    add_move(&line, c, before, g, after, SG__NO_NODE);
    sg__finding_tell(f, text);
    advise(c, f, scratch, are_pinned(c, before, g, after) ? SAME_PLACE
                                                          : "let the host's allocator give the same blocks in each recording: from an arena, or a pool of its own");
    return status;
}
