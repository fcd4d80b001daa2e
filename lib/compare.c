/* Recordings compared: what differs from one step to the next is what a replay would freeze. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "compare_p.h"
#include "extents.h"
#include "structs.h"

static stepgraph_status report_noise(const sg__comparison *c, const sg__change *x)
{
    return sg__compare_say_no_value(c, x, "differs between two recordings of the same step too, so it is padding");
}

static stepgraph_status report_left_over(const sg__comparison *c, const sg__change *x)
{
    return sg__compare_say_no_value(c, x, "an address in the host's own memory, in one recording at least, which no kernel can use: left over there");
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* All four are a value if they stay in all recordings of the same step, or if they go on by the same amount, as the host's own counter does;
 * else those in front of the first that does not stay, since padding comes last. */
static sg__half look_at_half(const sg__comparison *c, const sg__graph_difference *d, uint32_t at)
{
    uint32_t bytes = d->bytes > at + 4 ? 4 : d->bytes - at, n = 0;
    sg__half h = {.bytes = 0};
    uint64_t noise;

    if (d->bytes <= at || !sg__compare_changes(c, d, at, bytes, &h.change))
        return h;
    noise = sg__compare_noise(c, d, at, bytes);
    if (noise == 0) {
        h.bytes = bytes;
    } else if (bytes >= 2 && sg__compare_is_steady(c, d, at, bytes)) {
        h.bytes = bytes;
        h.counter = d->extent > SG__SMALL_STRUCT;
    } else if (d->extent <= SG__SMALL_STRUCT) {
        while ((noise >> 8 * n & 0xff) == 0)
            n++;
        h.bytes = n > 0 && sg__compare_changes(c, d, at, n, &h.change) ? n : 0;
    }
    return h;
}

static stepgraph_status report_half(const sg__comparison *c, const sg__half *h)
{
    const sg__graph_difference *d = h->change.d;
    bool upper;

    if (h->bytes == 0)
        return STEPGRAPH_OK;
    upper = h->change.offset != d->offset && h->bytes == 4 && (uint32_t)d->values[0] == (uint32_t)d->values[h->change.other];
    return h->counter ? sg__compare_say_counter(c, &h->change) : sg__compare_say_scalar(c, &h->change, upper ? d : NULL);
}

/* A word of a struct: name the value in it that changed, or say why there is none. */
static stepgraph_status classify_in_struct(sg__comparison *c, const sg__change *x)
{
    sg__half low = look_at_half(c, x->d, 0), high = look_at_half(c, x->d, 4);
    stepgraph_status status;

    if (low.bytes == 0 && high.bytes == 0)
        return report_noise(c, x);
    if (sg__compare_is_left_over(c, x))
        return report_left_over(c, x);
    if (sg__compare_is_half_an_address(c, &low))
        low.bytes = 0;
    if (sg__compare_is_half_an_address(c, &high))
        high.bytes = 0;
    if (low.bytes == 0 && high.bytes == 0)
        return sg__compare_say_no_value(c, x, "the lower half of an address in the host's own code, in each recording: left over there");
    if (low.bytes == 4 && high.bytes == 4 && !low.counter && !high.counter)
        return sg__compare_say_scalar(c, x, NULL);
    status = report_half(c, &low);
    return status == STEPGRAPH_OK ? report_half(c, &high) : status;
}

/* An argument that is one value. What differs each time may be a seed. A byte that does, and is neither true nor false, is what the place of a
 * struct without members happens to hold; and bytes that do where padding may stand are that. */
static stepgraph_status classify_whole(sg__comparison *c, const sg__change *x)
{
    if (((x->bytes == 1 && sg__compare_may_be_left_over(c, x->d)) || sg__compare_may_be_unset(c, x)) && sg__compare_noise(c, x->d, 0, x->bytes) != 0)
        return report_noise(c, x);
    return sg__compare_is_left_over(c, x) ? report_left_over(c, x) : sg__compare_say_scalar(c, x, NULL);
}

/* A pointer that moved is one in all recordings: in none of them does the place hold something else. */
static stepgraph_status classify_pointer(sg__comparison *c, const sg__change *x)
{
    for (size_t g = 0; g < c->n; g++) {
        if (!sg__compare_like_address(x->d->values[g]))
            return sg__compare_say_no_value(c, x, "an address in one recording and none in another: left over there");
        if (sg__compare_is_host_address(c, g, x->d->values[g]))
            return report_left_over(c, x);
    }
    return sg__compare_say_pointer(c, x);
}

/* ---- packed structs ---------------------------------------------------------------------------------------------- */

/* Whether eight bytes at some place of the argument are an address in all recordings, and not the same number in all. values: room for them. */
static bool is_packed(sg__comparison *c, const sg__graph_difference *d, uint32_t at, uint64_t *values)
{
    bool unlike = false;

    for (size_t g = 0; g < c->n; g++) {
        memcpy(&values[g], d->arguments[g] + at, 8);
        if (values[g] % 4 != 0 || !sg__compare_is_known(c, g, values[g]))
            return false;
        unlike |= values[g] != values[0];
    }
    return unlike;
}

/* Whether the address at some place has shown in the word before. */
static bool is_told(sg__comparison *c, const sg__graph_difference *d, uint32_t at)
{
    const size_t most = sizeof c->packed.told / sizeof *c->packed.told;

    if (c->packed.node != d->node || c->packed.argument != d->argument)
        c->packed.n = 0;
    c->packed.node = d->node;
    c->packed.argument = d->argument;
    for (size_t i = 0; i < most && i < c->packed.n; i++)
        if (c->packed.told[i] == at)
            return true;
    c->packed.told[c->packed.n++ % most] = at;
    return false;
}

/* The bytes of a word that an address at some place takes. */
static uint64_t shared_bytes(const sg__graph_difference *d, uint32_t at)
{
    return at < d->offset ? UINT64_MAX >> 8 * (d->offset - at) : UINT64_MAX << 8 * (at - d->offset);
}

/* Of a struct that is looked through byte by byte: an address that stands across words is told once, those at a multiple of 4 before the others. A
 * word may hold the end of one and the beginning of the next. *told: nothing else in the word differs. */
static stepgraph_status report_packed(sg__comparison *c, const sg__graph_difference *d, bool *told)
{
    const uint32_t first = d->offset > 7 ? d->offset - 7 : 0, last = d->offset + d->bytes - 1;
    uint64_t *values = malloc(c->n * sizeof *values), unlike = sg__compare_unlike(c, d, 0, 8), taken = 0;
    sg__graph_difference there = *d;
    stepgraph_status status = STEPGRAPH_OK;
    sg__change x;

    *told = false;
    if (values == NULL)
        return sg__fail_memory("host", c->n * sizeof *values);
    there.bytes = 8;
    there.values = values;
    for (uint32_t step = 4; step > 0; step /= 2)
        for (uint32_t at = first + (step - first % step) % step; at <= last && at + 8 <= d->extent && status == STEPGRAPH_OK; at += step) {
            if (at % 8 == 0 || (step != 4 && at % (2 * step) == 0) || (taken & shared_bytes(d, at)) != 0 || !is_packed(c, d, at, values))
                continue;
            taken |= shared_bytes(d, at);
            there.offset = at;
            if (sg__compare_moves(c, &there, &x) && !is_told(c, d, at))
                status = classify_pointer(c, &x);
        }
    *told = taken != 0 && (unlike & ~taken) == 0;
    free(values);
    return status;
}

static stepgraph_status classify_argument(sg__comparison *c, const sg__change *x)
{
    stepgraph_status status;
    bool told;

    if (x->bytes == 8 && sg__compare_like_address(x->before) && sg__compare_like_address(x->after) &&
        (sg__compare_is_known(c, 0, x->before) || sg__compare_is_known(c, x->other, x->after)))
        return classify_pointer(c, x);
    if (c->bytes && x->d->extent > 8) {
        status = report_packed(c, x->d, &told);
        if (status != STEPGRAPH_OK || told)
            return status;
    }
    return sg__compare_in_struct(x->d) ? classify_in_struct(c, x) : classify_whole(c, x);
}

/* How many ranges our own kernel copies follows from the commits, which are compared by themselves. */
static bool is_commit(const sg__comparison *c, const sg__graph_difference *d)
{
    return (d->place == SG__WORD_ARGUMENT || d->place == SG__WORD_SHAPE) &&
           c->steps[0]->read.nodes[d->node].function == c->steps[0]->session->kernels.commit;
}

static stepgraph_status classify(void *user, const sg__graph_difference *d)
{
    sg__comparison *c = user;
    char text[256];
    sg__change x;

    if (is_commit(c, d))
        return STEPGRAPH_OK;
    if (d->bytes == 8 ? !sg__compare_moves(c, d, &x) : !sg__compare_changes(c, d, 0, d->bytes, &x))
        return STEPGRAPH_OK;
    switch (d->place) {
    case SG__WORD_FUNCTION:
        snprintf(text, sizeof text, "node %u is kernel '%.80s' in the first recording and '%.80s' in the %s", d->node,
                 sg__node_name(&c->steps[0]->read.nodes[d->node]), sg__node_name(&c->steps[x.other]->read.nodes[d->node]), sg__ordinal(x.other));
        return sg__compare_say_topology(c, d->node, text);
    case SG__WORD_HOST:
        if (d->argument != 0)
            return sg__compare_say_pointer(c, &x);
        snprintf(text, sizeof text, "node %u calls another host function in the %s recording", d->node, sg__ordinal(x.other));
        return sg__compare_say_topology(c, d->node, text);
    case SG__WORD_EVENT:
        snprintf(text, sizeof text, "node %u %s another event in the %s recording", d->node, d->argument == 0 ? "records" : "waits for", sg__ordinal(x.other));
        return sg__compare_say_event(c, d->node, text);
    case SG__WORD_SOURCE:
    case SG__WORD_DESTINATION:
        return sg__compare_say_pointer(c, &x);
    case SG__WORD_ARGUMENT:
        return classify_argument(c, &x);
    default:
        return sg__compare_say_scalar(c, &x, NULL);
    }
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

/* The commit of the same pin in the same call of another recording, mostly at the same index; NULL: there is none. */
static const sg__source *same_commit(const stepgraph_step *step, const sg__source *source, size_t index)
{
    for (size_t i = 0; i <= step->n_sources; i++) {
        const size_t at = i == 0 ? index : i - 1;
        if (at < step->n_sources && step->sources[at].pin == source->pin && step->sources[at].call == source->call)
            return &step->sources[at];
    }
    return NULL;
}

/* One commit, which reads from elsewhere in some recording: of that is told, first of what is not within scratch. */
static stepgraph_status compare_source(sg__comparison *c, size_t index)
{
    const sg__source *source = &c->steps[0]->sources[index], *moved = NULL;
    size_t moved_in = 0;

    for (size_t i = 1; i < c->n; i++) {
        const size_t g = sg__compare_other(c, i);
        const sg__source *other = same_commit(c->steps[g], source, index);
        if (other == NULL && c->steps[g]->n_sources == c->steps[0]->n_sources)
            return sg__compare_say_target(c, index, g);
        if (other == NULL || sg__compare_is_the_same(c, source->address, g, other->address))
            continue;
        if (sg__compare_shared_scratch(c, source->address, g, other->address, SG__NO_NODE) == NULL)
            return sg__compare_say_source(c, index, g, other->address);
        if (moved == NULL) {
            moved = other;
            moved_in = g;
        }
    }
    return moved != NULL ? sg__compare_say_source(c, index, moved_in, moved->address) : STEPGRAPH_OK;
}

/* Commits keep their addresses in lists of their own, in the order of the calls. */
static stepgraph_status compare_sources(sg__comparison *c)
{
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t i = 1; i < c->n; i++) {
        const size_t g = sg__compare_other(c, i);
        if (c->steps[g]->n_sources == c->steps[0]->n_sources)
            continue;
        status = sg__compare_say_sources(c, g);
        break;
    }
    for (size_t k = 0; k < c->steps[0]->n_sources && status == STEPGRAPH_OK; k++)
        status = compare_source(c, k);
    return status;
}

static void sum_up(const sg__comparison *c)
{
    stepgraph_audit_summary *summary = &c->audit->summary;
    const stepgraph_step *first = c->steps[0];

    c->audit->recordings = (uint32_t)c->n;
    summary->nodes = first->read.n_nodes;
    summary->kernels = first->stats.nodes[STEPGRAPH_KIND_KERNEL];
    summary->unread = first->read.n_unread;
    /* Counted when it was read. */
    summary->addresses = first->audit->summary.addresses;
    summary->in_pins = first->audit->summary.in_pins;
    summary->in_graph = first->audit->summary.in_graph;
    for (size_t g = 0; g < c->n; g++)
        summary->read_ns += c->steps[g]->audit->summary.read_ns;
}

static void sort_by_time(const sg__comparison *c)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t at = i;
        for (; at > 0 && c->steps[c->by_time[at - 1]]->serial > c->steps[i]->serial; at--)
            c->by_time[at] = c->by_time[at - 1];
        c->by_time[at] = i;
    }
}

static stepgraph_status compare(sg__comparison *c)
{
    const uint64_t began = sg__clock_ns();
    sg__graph **graphs = malloc(c->n * sizeof *graphs);
    sg__graph_mismatch mismatch;
    stepgraph_status status;
    CUcontext before;

    c->by_time = malloc(c->n * sizeof *c->by_time);
    if (graphs == NULL || c->by_time == NULL) {
        free(graphs);
        free(c->by_time);
        return sg__fail_memory("host", c->n * (sizeof *graphs + sizeof *c->by_time));
    }
    sort_by_time(c);
    for (size_t g = 0; g < c->n; g++)
        graphs[g] = (sg__graph *)&c->steps[g]->read; /* Its cache of layouts may grow. */
    sum_up(c);
    status = sg__extents_renew(c->steps[0]->session);
    if (status == STEPGRAPH_OK)
        status = sg__graph_compare(c->steps[0]->session->driver, c->n, graphs, classify, c, &mismatch, &c->audit->summary.bytes);
    if (status == STEPGRAPH_OK && mismatch.text[0] != '\0')
        status = sg__compare_say_topology(c, mismatch.node, mismatch.text);
    if (status == STEPGRAPH_OK)
        status = compare_sources(c);
    if (status == STEPGRAPH_OK)
        status = sg__audit_finish(c->audit);
    if (c->entered)
        c->steps[0]->session->driver->CtxPopCurrent(&before);
    c->audit->summary.compare_ns = sg__clock_ns() - began;
    sg__host_memory_free(&c->host);
    sg__values_free(&c->addresses);
    sg__values_free(&c->halves);
    free(c->by_time);
    free(graphs);
    return status;
}

static stepgraph_status check(const stepgraph_step *step, const stepgraph_step *first)
{
    if (step == NULL || first == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "recorded steps are compared: a pointer is NULL");
    if (step->session != first->session)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "steps '%s' and '%s' belong to different sessions", first->name, step->name);
    if (step->state != STEPGRAPH_STEP_READY)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' has no live graph to compare: record it first", step->name);
    return STEPGRAPH_OK;
}

/* The first n_a of n steps are step k. */
static stepgraph_status compare_steps(size_t n_a, size_t n, const stepgraph_step **steps, stepgraph_audit **audit_out)
{
    sg__comparison c = {.steps = steps, .n_a = n_a, .n = n};
    stepgraph_status status = STEPGRAPH_OK;
    char title[256];

    if (audit_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no place for the report: audit_out is NULL");
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++) {
        status = check(steps[i], steps[0]);
        c.bytes |= status == STEPGRAPH_OK && (steps[i]->flags & STEPGRAPH_STEP_SCAN_BYTES) != 0;
    }
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++)
        for (size_t j = 0; j < i && status == STEPGRAPH_OK; j++)
            if (steps[j] == steps[i]) /* Which differs from itself nowhere. */
                status = sg__fail(STEPGRAPH_ERR_ARGUMENT, "step '%s' is given twice: two recordings are compared, which two steps hold", steps[i]->name);
    if (status == STEPGRAPH_OK)
        status = sg__session_alive(steps[0]->session); /* Nodes of a context that is gone cannot be read. */
    if (status != STEPGRAPH_OK)
        return status;
    snprintf(title, sizeof title, "step '%.100s', compared with '%.100s'", steps[0]->name, steps[n_a]->name);
    c.host.process = &steps[0]->session->process;
    sg__values_init(&c.addresses);
    sg__values_init(&c.halves);
    c.audit = sg__audit_new(title);
    if (c.audit == NULL)
        return STEPGRAPH_ERR_MEMORY;
    status = compare(&c);
    if (status != STEPGRAPH_OK) {
        stepgraph_audit_destroy(c.audit);
        return status;
    }
    *audit_out = c.audit;
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_audit_compare(const stepgraph_step *a, const stepgraph_step *b, const stepgraph_step *b_again,
                                         stepgraph_audit **audit_out)
{
    const stepgraph_step *steps[] = {a, b, b_again};

    sg__error_clear();
    return compare_steps(1, b_again != NULL ? 3 : 2, steps, audit_out);
}

stepgraph_status stepgraph_audit_compare_many(size_t n_a, stepgraph_step *const *a, size_t n_b, stepgraph_step *const *b,
                                              stepgraph_audit **audit_out)
{
    const stepgraph_step **steps;
    stepgraph_status status;

    sg__error_clear();
    if (n_a == 0 || n_b == 0 || a == NULL || b == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing to compare: of each step at least one recording is needed");
    steps = malloc((n_a + n_b) * sizeof *steps);
    if (steps == NULL)
        return sg__fail_memory("host", (n_a + n_b) * sizeof *steps);
    for (size_t i = 0; i < n_a + n_b; i++)
        steps[i] = i < n_a ? a[i] : b[i - n_a];
    status = compare_steps(n_a, n_a + n_b, steps, audit_out);
    free(steps);
    return status;
}
