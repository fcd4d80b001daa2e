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
    f->argument = d->argument; /* Also which part of a shape it is, for the words. */
    f->offset = d->offset;
    f->bytes = d->bytes;
    f->before = d->before;
    f->after = d->after;
    sg__finding_place(f, d->place, place, bytes);
    if (d->place != SG__WORD_ARGUMENT)
        f->argument = UINT32_MAX;
}

/* whole: the word whose upper half changed and may be one of a double; else NULL. */
static stepgraph_status report_scalar(comparison *c, const sg__graph_difference *d, const sg__graph_difference *whole)
{
    char place[192], values[256], as_double[128] = "";
    stepgraph_finding f;
    double g[2];

    begin(c, &f, STEPGRAPH_FINDING_CHANGING_SCALAR, d, place, sizeof place);
    describe_scalars(d, values, sizeof values);
    if (whole != NULL) {
        memcpy(&g[0], &whole->before, 8);
        memcpy(&g[1], &whole->after, 8);
        snprintf(as_double, sizeof as_double, ", or of the double at +%u: %.9g -> %.9g", whole->offset, g[0], g[1]);
    }
    snprintf(f.text, sizeof f.text, "%s   changing scalar   %s%s", place, values, as_double);
    snprintf(f.advice, sizeof f.advice, "%s",
             d->place == SG__WORD_ARGUMENT ? "make it a CELL that the kernel reads, fed with stepgraph_pin_feed(), or keep it on the device"
                                           : "record again for each such value, or make it the same in every step");
    return sg__audit_add(c->audit, &f);
}

/* The pin of both addresses, if it is one and SCRATCH: nothing in there outlives a step, so that a replay may go on using other places in it
 * than the next step would. */
static const stepgraph_pin *shared_scratch(const comparison *c, CUdeviceptr before, CUdeviceptr after)
{
    sg__place a = sg__resolve(c->a, before), b = sg__resolve(c->b, after);
    const stepgraph_pin *pin = a.where == SG__IN_PIN && b.where == SG__IN_PIN && a.pin == b.pin ? c->a->session->pins[a.pin] : NULL;

    return pin != NULL && pin->role == STEPGRAPH_ROLE_SCRATCH ? pin : NULL;
}

/* What to do about a pointer that moved; without fault where it moved within scratch. */
static void advise(const comparison *c, stepgraph_finding *f, const char *otherwise)
{
    const stepgraph_pin *scratch = shared_scratch(c, f->before, f->after);
    const stepgraph_pin *former = sg__former_state(c->a->session, f->before);

    if (scratch != NULL) {
        f->fault = 0;
        snprintf(f->advice, sizeof f->advice, "nothing, as long as nothing in scratch '%.100s' is needed in the next step", scratch->name);
    } else if (former != NULL) {
        snprintf(f->advice, sizeof f->advice, "let the step use the address of pin '%.100s', and commit the new value each step", former->name);
    } else {
        snprintf(f->advice, sizeof f->advice, "%s", otherwise);
    }
}

static stepgraph_status report_pointer(comparison *c, const sg__graph_difference *d)
{
    stepgraph_finding f;
    char place[192], before[120], after[120];

    begin(c, &f, STEPGRAPH_FINDING_MOVED_POINTER, d, place, sizeof place);
    sg__describe_address(c->a, d->before, d->node, before, sizeof before);
    sg__describe_address(c->b, d->after, d->node, after, sizeof after);
    snprintf(f.text, sizeof f.text, "%s   moved pointer   0x%llx (%s) -> 0x%llx (%s)", place, (unsigned long long)d->before, before,
             (unsigned long long)d->after, after);
    advise(c, &f, d->place == SG__WORD_HOST
                      ? "give the host function the same argument in every step, or call it outside the step"
                      : "pin it: register what it is as STATE (or FEED), let the step use the pin's address, and commit the new value each step");
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
    advise(c, &f, "let the host's allocator give the same blocks in each recording: from an arena, or a pool of its own");
    return sg__audit_add(c->audit, &f);
}

/* A null pointer may become a real one; other small numbers are no addresses. */
static bool like_address(uint64_t value)
{
    return value == 0 || (value >= 0x10000 && value < (uint64_t)1 << 57);
}

/* Both in the same allocation of the graph's own, at the same byte of it. */
static bool same_in_graph(const sg__graph *a, CUdeviceptr before, const sg__graph *b, CUdeviceptr after)
{
    for (size_t i = 0; i < a->n_owned && i < b->n_owned; i++)
        if (before - a->owned[i].start < a->owned[i].bytes && after - b->owned[i].start < b->owned[i].bytes)
            return before - a->owned[i].start == after - b->owned[i].start;
    return false;
}

/* A library's workspace that the graph allocates, and our own lists, stand elsewhere in each recording. */
static bool is_the_same(const comparison *c, sg__where where_before, CUdeviceptr before, sg__where where_after, CUdeviceptr after)
{
    if (where_before == SG__IN_GRAPH && where_after == SG__IN_GRAPH)
        return same_in_graph(&c->a->read, before, &c->b->read, after);
    return where_before == SG__IN_TABLE && where_after == SG__IN_TABLE;
}

/* A struct may hold padding, and several values in one word. An argument of 1, 2, 4 or 8 bytes is taken for one value. */
static bool in_struct(const comparison *c, const sg__graph_difference *d)
{
    size_t bytes = d->place == SG__WORD_ARGUMENT ? sg__argument_bytes(&c->a->read, d->node, d->argument) : 0;

    return bytes > 8 || (bytes & (bytes - 1)) != 0;
}

/* How many of the four bytes that differ are a value and no padding: all, if they stay in a recording of the same step; all, if they go on
 * by the same amount, as the host's own counter does; else those in front of the first that does not stay, since padding comes last. */
static unsigned int bytes_of_value(uint32_t a, uint32_t b, uint32_t again)
{
    uint32_t noise = b ^ again, mask;
    unsigned int n = 0;

    if (a == b)
        return 0;
    if (noise == 0 || b - a == again - b)
        return 4;
    while ((noise >> 8 * n & 0xff) == 0)
        n++;
    mask = (uint32_t)(((uint64_t)1 << 8 * n) - 1);
    return ((a ^ b) & mask) != 0 ? n : 0;
}

static stepgraph_status report_part(comparison *c, const sg__graph_difference *d, unsigned int offset, unsigned int bytes)
{
    const uint64_t mask = ((uint64_t)1 << 8 * bytes) - 1;
    bool upper = offset == 4 && bytes == 4 && (uint32_t)d->before == (uint32_t)d->after;
    sg__graph_difference part = *d;

    part.offset += offset;
    part.bytes = bytes < d->bytes ? bytes : d->bytes;
    part.before = d->before >> 8 * offset & mask;
    part.after = d->after >> 8 * offset & mask;
    return report_scalar(c, &part, upper ? d : NULL);
}

/* A word of a struct: name the value in it that changed, or say that it is padding. */
static stepgraph_status classify_in_struct(comparison *c, const sg__graph_difference *d)
{
    const sg__graph_difference *noise = c->n_noise > 0 ? bsearch(d, c->noise, c->n_noise, sizeof *c->noise, by_position) : NULL;
    uint64_t again = noise != NULL ? noise->after : d->after;
    unsigned int low = bytes_of_value((uint32_t)d->before, (uint32_t)d->after, (uint32_t)again);
    unsigned int high = bytes_of_value((uint32_t)(d->before >> 32), (uint32_t)(d->after >> 32), (uint32_t)(again >> 32));
    stepgraph_status status = STEPGRAPH_OK;

    if (low == 0 && high == 0)
        return report_noise(c, d);
    if (low == 4 && high == 4)
        return report_scalar(c, d, NULL);
    if (low != 0)
        status = report_part(c, d, 0, low);
    return status == STEPGRAPH_OK && high != 0 ? report_part(c, d, 4, high) : status;
}

static stepgraph_status classify(void *user, const sg__graph_difference *d)
{
    comparison *c = user;
    sg__where before = d->bytes == 8 ? sg__resolve(c->a, d->before).where : SG__NOWHERE;
    sg__where after = d->bytes == 8 ? sg__resolve(c->b, d->after).where : SG__NOWHERE;
    bool operand = d->place == SG__WORD_SOURCE || d->place == SG__WORD_DESTINATION;
    char text[256];

    if (is_the_same(c, before, d->before, after, d->after))
        return STEPGRAPH_OK;
    if (d->place == SG__WORD_FUNCTION) {
        snprintf(text, sizeof text, "node %u is kernel '%.80s' in the first recording and '%.80s' in the second", d->node,
                 c->a->read.nodes[d->node].name, c->b->read.nodes[d->node].name);
        return report_topology(c, d->node, text);
    }
    if (d->place == SG__WORD_HOST && d->argument == 0) {
        snprintf(text, sizeof text, "node %u calls another host function in the second recording", d->node);
        return report_topology(c, d->node, text);
    }
    if (operand || d->place == SG__WORD_HOST ||
        ((before != SG__NOWHERE || after != SG__NOWHERE) && like_address(d->before) && like_address(d->after)))
        return report_pointer(c, d);
    return in_struct(c, d) ? classify_in_struct(c, d) : report_scalar(c, d, NULL);
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
            !is_the_same(c, sg__resolve(c->a, c->a->sources[i].address).where, c->a->sources[i].address,
                         sg__resolve(c->b, c->b->sources[i].address).where, c->b->sources[i].address))
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
    stepgraph_error_info why;
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
    sg__error_clear();
    status = config->enqueue(config->user, *step_out, k);
    sg__error_get(&why);
    ended = stepgraph_step_end(*step_out);
    if (status == STEPGRAPH_OK || ended == STEPGRAPH_ERR_CAPTURE)
        return ended; /* A recording that broke says more than the callback, which was told so. */
    /* Its own words, if it failed in a call of this library. */
    if (why.status != status)
        return sg__fail(status, "the host's enqueue callback failed for step %llu with %s", (unsigned long long)k, stepgraph_status_name(status));
    (void)sg__error_set(&why);
    return sg__fail_prefix(status, "the host's enqueue callback failed for step %llu: ", (unsigned long long)k);
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
    if (config.reserved != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing can be recorded: the reserved field of stepgraph_audit_config is not 0");
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
