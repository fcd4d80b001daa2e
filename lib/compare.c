/* Two recordings compared: what differs from one step to the next is what a replay would freeze. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit_p.h"
#include "structs.h"

typedef struct comparison {
    const stepgraph_step *a, *b;
    stepgraph_audit *audit;
    sg__graph_difference *noise; /* What differs between two recordings of the same step, in order. */
    size_t n_noise, noise_room;
} comparison;

/* ---- padding ----------------------------------------------------------------------------------------------------- */

static int by_position(const void *a, const void *b)
{
    const sg__graph_difference *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    if (x->argument != y->argument)
        return x->argument < y->argument ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static stepgraph_status note_noise(void *user, const sg__graph_difference *difference)
{
    comparison *c = user;

    if (c->n_noise == c->noise_room) {
        size_t room = c->noise_room != 0 ? 2 * c->noise_room : 64;
        sg__graph_difference *larger = realloc(c->noise, room * sizeof *larger);
        if (larger == NULL)
            return sg__fail_memory("host", room * sizeof *larger);
        c->noise = larger;
        c->noise_room = room;
    }
    c->noise[c->n_noise++] = *difference;
    return STEPGRAPH_OK;
}

/* ---- what a difference is ---------------------------------------------------------------------------------------- */

/* A value's text: its bytes, and what they are as a number where that makes sense. */
static void describe_scalars(const sg__graph_difference *d, char *text, size_t bytes)
{
    float f[2];
    double g[2];
    uint32_t low[2] = {(uint32_t)d->before, (uint32_t)d->after};

    if (d->bytes == 4) {
        memcpy(&f[0], &low[0], 4);
        memcpy(&f[1], &low[1], 4);
        snprintf(text, bytes, "4 bytes %08x -> %08x (as float %.9g -> %.9g, as integer %d -> %d)", low[0], low[1], (double)f[0], (double)f[1],
                 (int32_t)low[0], (int32_t)low[1]);
    } else if (d->bytes == 8) {
        memcpy(&g[0], &d->before, 8);
        memcpy(&g[1], &d->after, 8);
        snprintf(text, bytes, "8 bytes %016llx -> %016llx (as double %.17g -> %.17g, as integer %lld -> %lld)", (unsigned long long)d->before,
                 (unsigned long long)d->after, g[0], g[1], (long long)d->before, (long long)d->after);
    } else {
        snprintf(text, bytes, "%u bytes %llx -> %llx (as integer %llu -> %llu)", d->bytes, (unsigned long long)d->before,
                 (unsigned long long)d->after, (unsigned long long)d->before, (unsigned long long)d->after);
    }
}

static void begin(const comparison *c, stepgraph_finding *f, stepgraph_finding_kind kind, const sg__graph_difference *d, char *place,
                  size_t bytes)
{
    sg__finding_begin(f, kind, c->a, d->node);
    f->argument = d->place == SG__WORD_ARGUMENT || d->place == SG__WORD_SHAPE ? d->argument : UINT32_MAX;
    f->offset = d->offset;
    f->bytes = d->bytes;
    f->before = d->before;
    f->after = d->after;
    sg__finding_place(f, d->place, place, bytes);
    if (d->place == SG__WORD_SHAPE)
        f->argument = UINT32_MAX;
}

static stepgraph_status report_scalar(comparison *c, const sg__graph_difference *d)
{
    stepgraph_finding f;
    char place[192], values[256];

    begin(c, &f, STEPGRAPH_FINDING_CHANGING_SCALAR, d, place, sizeof place);
    describe_scalars(d, values, sizeof values);
    snprintf(f.text, sizeof f.text, "%s   changing scalar   %s", place, values);
    snprintf(f.advice, sizeof f.advice, "%s",
             d->place == SG__WORD_ARGUMENT ? "make it a CELL that the kernel reads, fed with stepgraph_pin_feed(), or keep it on the device"
                                           : "record again for each such value, or make it the same in every step");
    return sg__audit_add(c->audit, &f);
}

static stepgraph_status report_pointer(comparison *c, const sg__graph_difference *d)
{
    const stepgraph_pin *former = sg__former_state(c->a->session, d->before);
    stepgraph_finding f;
    char place[192], before[120], after[120];

    begin(c, &f, STEPGRAPH_FINDING_MOVED_POINTER, d, place, sizeof place);
    sg__describe_address(c->a, d->before, d->node, before, sizeof before);
    sg__describe_address(c->b, d->after, d->node, after, sizeof after);
    snprintf(f.text, sizeof f.text, "%s   moved pointer   0x%llx (%s) -> 0x%llx (%s)", place, (unsigned long long)d->before, before,
             (unsigned long long)d->after, after);
    if (former != NULL)
        snprintf(f.advice, sizeof f.advice, "let the step use the address of pin '%s', and commit the new value each step", former->name);
    else
        snprintf(f.advice, sizeof f.advice,
                 "pin it: register what it is as STATE (or FEED), let the step use the pin's address, and commit the new value each step");
    return sg__audit_add(c->audit, &f);
}

static stepgraph_status report_noise(comparison *c, const sg__graph_difference *d)
{
    stepgraph_finding f;
    char place[192];

    begin(c, &f, STEPGRAPH_FINDING_UNCLASSIFIED, d, place, sizeof place);
    f.fault = 0;
    snprintf(f.text, sizeof f.text, "%s   unclassified   %llx -> %llx: differs between two recordings of the same step too, so it is padding", place,
             (unsigned long long)d->before, (unsigned long long)d->after);
    return sg__audit_add(c->audit, &f);
}

static stepgraph_status report_topology(comparison *c, uint32_t node, const char *text)
{
    stepgraph_finding f;

    sg__finding_begin(&f, STEPGRAPH_FINDING_TOPOLOGY, c->a, node);
    snprintf(f.text, sizeof f.text, "%s", text);
    snprintf(f.advice, sizeof f.advice, "a graph repeats the same nodes: record one graph for each form that the step can take");
    return sg__audit_add(c->audit, &f);
}

static stepgraph_status report_source(comparison *c, const sg__source *before, const sg__source *after)
{
    stepgraph_finding f;
    char was[120], is[120];

    sg__finding_begin(&f, STEPGRAPH_FINDING_MOVED_POINTER, c->a, SG__NO_NODE);
    f.bytes = 8;
    f.before = before->address;
    f.after = after->address;
    sg__describe_address(c->a, before->address, SG__NO_NODE, was, sizeof was);
    sg__describe_address(c->b, after->address, SG__NO_NODE, is, sizeof is);
    snprintf(f.text, sizeof f.text, "the commit of pin '%s'   moved pointer   its new value at 0x%llx (%s) -> 0x%llx (%s)", before->pin->name,
             before->address, was, after->address, is);
    snprintf(f.advice, sizeof f.advice, "let the host's allocator give the same blocks in each recording: from an arena, or a pool of its own");
    return sg__audit_add(c->audit, &f);
}

/* A null pointer may become a real one; other small numbers are no addresses. */
static bool like_address(uint64_t value)
{
    return value == 0 || (value >= 0x10000 && value < (uint64_t)1 << 57);
}

static stepgraph_status classify(void *user, const sg__graph_difference *d)
{
    comparison *c = user;
    sg__where before = d->bytes == 8 ? sg__resolve(c->a, d->before).where : SG__NOWHERE;
    sg__where after = d->bytes == 8 ? sg__resolve(c->b, d->after).where : SG__NOWHERE;
    bool operand = d->place == SG__WORD_SOURCE || d->place == SG__WORD_DESTINATION;
    uint64_t changed = d->before ^ d->after;
    sg__graph_difference half = *d;
    char text[256];

    /* A library's workspace that the graph allocates, and our own lists, stand elsewhere in each recording. */
    if ((before == SG__IN_GRAPH && after == SG__IN_GRAPH) || (before == SG__IN_TABLE && after == SG__IN_TABLE))
        return STEPGRAPH_OK;
    if (d->place == SG__WORD_FUNCTION) {
        snprintf(text, sizeof text, "node %u is kernel '%.80s' in the first recording and '%.80s' in the second", d->node,
                 c->a->read.nodes[d->node].name, c->b->read.nodes[d->node].name);
        return report_topology(c, d->node, text);
    }
    if (operand || ((before != SG__NOWHERE || after != SG__NOWHERE) && like_address(d->before) && like_address(d->after)))
        return report_pointer(c, d);
    if (c->n_noise > 0 && bsearch(d, c->noise, c->n_noise, sizeof *c->noise, by_position) != NULL)
        return report_noise(c, d);

    /* Of two values packed into one word, name the one that changed. */
    if (d->bytes == 8 && d->place == SG__WORD_ARGUMENT && (changed >> 32 == 0 || (uint32_t)changed == 0) &&
        c->audit->summary.nodes > d->node && sg__argument_bytes(&c->a->read, d->node, d->argument) > 8) {
        unsigned int shift = changed >> 32 == 0 ? 0 : 32;
        half.bytes = 4;
        half.offset += shift / 8;
        half.before = (uint32_t)(d->before >> shift);
        half.after = (uint32_t)(d->after >> shift);
        return report_scalar(c, &half);
    }
    return report_scalar(c, d);
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

static stepgraph_status compare(comparison *c, const stepgraph_step *again)
{
    const sg__driver *driver = c->a->session->driver;
    sg__graph *a = (sg__graph *)&c->a->read; /* Its cache of layouts may grow. */
    sg__graph *b = (sg__graph *)&c->b->read;
    sg__graph_mismatch mismatch;
    stepgraph_status status = STEPGRAPH_OK;
    uint64_t bytes;

    c->audit->summary.nodes = c->a->read.n_nodes;
    c->audit->summary.kernels = c->a->stats.nodes[STEPGRAPH_KIND_KERNEL];
    c->audit->summary.unread = c->a->read.n_unread;
    if (again != NULL) {
        status = sg__graph_compare(driver, b, &again->read, note_noise, c, &mismatch, &bytes);
        if (status == STEPGRAPH_OK && c->n_noise > 0)
            qsort(c->noise, c->n_noise, sizeof *c->noise, by_position);
    }
    if (status == STEPGRAPH_OK)
        status = sg__graph_compare(driver, a, &c->b->read, classify, c, &mismatch, &bytes);
    c->audit->summary.bytes = bytes;
    if (status == STEPGRAPH_OK && mismatch.text[0] != '\0')
        status = report_topology(c, mismatch.node, mismatch.text);
    /* Commits keep their addresses in lists of their own, in the order of the calls. */
    for (size_t i = 0; i < c->a->n_sources && i < c->b->n_sources && status == STEPGRAPH_OK; i++)
        if (c->a->sources[i].address != c->b->sources[i].address &&
            !(sg__resolve(c->a, c->a->sources[i].address).where == SG__IN_GRAPH && sg__resolve(c->b, c->b->sources[i].address).where == SG__IN_GRAPH))
            status = report_source(c, &c->a->sources[i], &c->b->sources[i]);
    return status == STEPGRAPH_OK ? sg__audit_finish(c->audit) : status;
}

static stepgraph_status check(const stepgraph_step *step, const stepgraph_step *other)
{
    if (step == NULL || other == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "two recorded steps are compared: a pointer is NULL");
    if (step->session != other->session)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "steps '%s' and '%s' belong to different sessions", step->name, other->name);
    if (step->state != STEPGRAPH_STEP_READY)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' has no live graph to compare: record it first", step->name);
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_audit_compare(const stepgraph_step *a, const stepgraph_step *b, const stepgraph_step *b_again,
                                         stepgraph_audit **audit_out)
{
    comparison c = {.a = a, .b = b};
    stepgraph_status status;
    char title[256];

    sg__error_clear();
    if (audit_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no place for the report: audit_out is NULL");
    status = check(a, b);
    if (status == STEPGRAPH_OK)
        status = check(b, a);
    if (status == STEPGRAPH_OK && b_again != NULL)
        status = check(b_again, a);
    if (status != STEPGRAPH_OK)
        return status;
    snprintf(title, sizeof title, "step '%.100s', compared with '%.100s',", a->name, b->name);
    c.audit = sg__audit_new(title);
    if (c.audit == NULL)
        return STEPGRAPH_ERR_MEMORY;
    status = compare(&c, b_again);
    free(c.noise);
    if (status != STEPGRAPH_OK) {
        stepgraph_audit_destroy(c.audit);
        return status;
    }
    *audit_out = c.audit;
    return STEPGRAPH_OK;
}

/* Record one step through the host's callback. */
static stepgraph_status record(stepgraph_session *session, const stepgraph_audit_config *config, uint64_t k, stepgraph_step **step_out)
{
    stepgraph_step_config step_config = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_status status, ended;
    char name[64];

    snprintf(name, sizeof name, "step %llu", (unsigned long long)k);
    step_config.name = name;
    step_config.flags = config->flags | STEPGRAPH_STEP_ALLOW_UNREGISTERED;
    status = stepgraph_step_begin(session, &step_config, step_out);
    if (status == STEPGRAPH_OK)
        status = stepgraph_step_prepare(*step_out);
    if (status == STEPGRAPH_OK)
        status = stepgraph_step_capture(*step_out);
    if (status != STEPGRAPH_OK)
        return status;
    status = config->enqueue(config->user, *step_out, k);
    ended = stepgraph_step_end(*step_out);
    if (ended == STEPGRAPH_OK && status != STEPGRAPH_OK)
        return sg__fail(status, "the host's enqueue callback failed for step %llu with %s", (unsigned long long)k, stepgraph_status_name(status));
    return ended;
}

stepgraph_status stepgraph_audit_record(stepgraph_session *session, const stepgraph_audit_config *given, stepgraph_audit **audit_out)
{
    stepgraph_step *steps[3] = {NULL, NULL, NULL};
    stepgraph_audit_config config;
    stepgraph_error_info why;
    stepgraph_status status;

    sg__error_clear();
    if (session == NULL || given == NULL || audit_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing can be recorded: session, config or audit_out is NULL");
    status = sg__struct_read(&config, sizeof config, sizeof config, given, "stepgraph_audit_config");
    if (status != STEPGRAPH_OK)
        return status;
    if (config.enqueue == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing can be recorded: the enqueue callback is NULL");
    for (uint64_t i = 0; i < 3 && status == STEPGRAPH_OK; i++)
        status = record(session, &config, config.first + (i < 2 ? i : 1), &steps[i]);
    if (status == STEPGRAPH_OK)
        status = stepgraph_audit_compare(steps[0], steps[1], steps[2], audit_out);
    sg__error_get(&why);
    for (int i = 0; i < 3; i++)
        stepgraph_step_destroy(steps[i]);
    (void)sg__error_set(&why);
    return status;
}
