/*
 * Addresses without a pin that stand against a replay.
 *
 * A single recording also shows addresses that nobody uses: kernels take structs by value of which a call fills a part, and the
 * rest holds whatever stood there before. The next recording holds something else in that place. So of a kernel's arguments only
 * that counts which is the same address in all recordings; what is used and moves, the comparison names. In a large struct
 * even that is in doubt: recordings of one step leave the same behind more often than not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit_p.h"
#include "loop_p.h"

/* What the loop lets its steps hold whatever the host says, and the host's flag for it. */
static const struct {
    stepgraph_finding_kind kind;
    uint32_t flag;
} let_pass[] = {
    {STEPGRAPH_FINDING_UNREGISTERED, STEPGRAPH_STEP_ALLOW_UNREGISTERED},
    {STEPGRAPH_FINDING_POOL, STEPGRAPH_STEP_ALLOW_UNREGISTERED},
    {STEPGRAPH_FINDING_FORMER_STATE, STEPGRAPH_STEP_ALLOW_FORMER_STATE},
};

/* The flag that a finding needs; 0: it is none of these. */
static uint32_t flag_for(const stepgraph_finding *finding)
{
    for (size_t i = 0; i < sizeof let_pass / sizeof *let_pass; i++)
        if (finding->fault == 0 && finding->kind == (uint32_t)let_pass[i].kind)
            return let_pass[i].flag;
    return 0;
}

/* Whether a finding that was let pass is about memory that a check cannot put back. In doubt or not. */
static bool is_outside(const stepgraph_finding *finding)
{
    return finding->kind == STEPGRAPH_FINDING_FREED || finding->kind == STEPGRAPH_FINDING_REPLACED ||
           finding->kind == STEPGRAPH_FINDING_FOREIGN || finding->kind == STEPGRAPH_FINDING_PAGEABLE ||
           finding->kind == STEPGRAPH_FINDING_PAGE_LOCKED;
}

/* The finding about an allocation, of which there is one. */
static const stepgraph_finding *finding_about(const stepgraph_step *step, const sg__allocation *allocation)
{
    for (uint64_t i = 0; allocation != NULL && i < step->audit->summary.kept; i++) {
        const stepgraph_finding *f = sg__audit_at(step->audit, i);
        if (flag_for(f) != 0 && f->before >= allocation->start && f->before - allocation->start < allocation->bytes)
            return f;
    }
    return NULL;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Numbers in doubt that may be addresses of such memory. */
typedef struct doubts {
    const stepgraph_step *step;
    uint64_t *values;
    size_t n;
} doubts;

static stepgraph_status gather(const stepgraph_step *step, doubts *out)
{
    *out = (doubts){.step = step, .values = malloc((step->audit->summary.kept + 1) * sizeof *out->values)};
    if (out->values == NULL)
        return sg__fail_memory("host", step->audit->summary.kept * sizeof *out->values);
    for (uint64_t i = 0; i < step->audit->summary.kept; i++) {
        const stepgraph_finding *f = sg__audit_at(step->audit, i);
        if (is_outside(f) && f->doubtful != 0)
            out->values[out->n++] = f->before;
    }
    return STEPGRAPH_OK;
}

/* Only what lies in memory that a finding is about is of interest. Such an allocation may hold pins too. */
static bool is_elsewhere(void *user, uint64_t value, sg__value *entry)
{
    const doubts *of = user;
    sg__place place;

    (void)entry;
    for (size_t i = 0; i < of->n; i++)
        if (of->values[i] == value)
            return false;
    place = sg__resolve(of->step, value);
    return place.where != SG__IN_ALLOCATION || (!place.allocation->reported && !place.allocation->reported_in_struct);
}

static int by_place(const void *a, const void *b)
{
    const sg__graph_word *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->argument != y->argument)
        return x->argument < y->argument ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* A recording whose words are to be had at any byte. */
typedef struct packed {
    doubts *about;
    sg__graph *graph;
} packed;

/* Findings at other places than multiples of 8, in packed structs: what this recording has there. */
static stepgraph_status add_packed(void *user, uint32_t node, uint16_t argument, const unsigned char *bytes, size_t n)
{
    const packed *p = user;
    const stepgraph_audit *audit = p->about->step->audit;

    for (uint64_t i = 0; i < audit->summary.kept; i++) {
        const stepgraph_finding *f = sg__audit_at(audit, i);
        sg__graph_word word = {.place = SG__WORD_ARGUMENT, .node = node, .argument = argument, .offset = f->offset};
        if (f->node != node || f->argument != argument || f->offset % 8 == 0 || f->offset + 8 > n || flag_for(f) == 0)
            continue;
        memcpy(&word.value, bytes + f->offset, sizeof word.value);
        if (!is_elsewhere(p->about, word.value, NULL))
            p->graph->words[p->graph->n_words++] = word;
    }
    return STEPGRAPH_OK;
}

static stepgraph_status read_packed(const stepgraph_step *of, doubts *about, sg__graph *graph)
{
    packed p = {.about = about, .graph = graph};
    void *larger = realloc(graph->words, (graph->n_words + about->step->audit->summary.kept + 1) * sizeof *graph->words);

    if (larger == NULL)
        return sg__fail_memory("host", graph->n_words * sizeof *graph->words);
    graph->words = larger;
    return sg__graph_arguments(of->session->driver, graph, add_packed, &p);
}

/* Kernel arguments first, by place. *n_out is how many there are. */
static stepgraph_status read_arguments(const stepgraph_step *of, doubts *about, sg__graph *graph)
{
    stepgraph_status status = sg__graph_read(of->session->driver, of->graph, &of->session->known_kernels, is_elsewhere, about, graph);
    size_t n = 0;

    if (status == STEPGRAPH_OK && (of->flags & STEPGRAPH_STEP_SCAN_BYTES) != 0)
        status = read_packed(of, about, graph);
    for (size_t i = 0; i < graph->n_words; i++)
        if (graph->words[i].place == SG__WORD_ARGUMENT)
            graph->words[n++] = graph->words[i];
    graph->n_words = n;
    if (n > 0)
        qsort(graph->words, n, sizeof *graph->words, by_place);
    return status;
}

static bool holds(const sg__graph *graph, const sg__graph_word *word)
{
    const sg__graph_word *found = graph->n_words > 0 ? bsearch(word, graph->words, graph->n_words, sizeof *word, by_place) : NULL;

    return found != NULL && found->value == word->value;
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* A finding about a word, without its text. */
static stepgraph_status begin(stepgraph_audit *audit, sg__weight weight, const stepgraph_step *step, const sg__graph_word *word,
                              const stepgraph_finding *about, sg__finding **out)
{
    stepgraph_status status = sg__audit_add(audit, (stepgraph_finding_kind)about->kind, weight, step, word->node, out);

    if (*out == NULL)
        return status;
    sg__finding_place(*out, SG__WORD_ARGUMENT, word->argument, word->offset);
    (*out)->bytes = 8;
    (*out)->before = word->value;
    sg__finding_advise(*out, "%s", about->advice);
    return status;
}

static stepgraph_status add_word(stepgraph_audit *audit, sg__weight weight, const stepgraph_step *step, const sg__graph_word *word,
                                 const stepgraph_finding *about)
{
    char what[160];
    sg__finding *f;
    stepgraph_status status = begin(audit, weight, step, word, about, &f);

    if (f == NULL)
        return status;
    sg__describe_address(step, word->value, word->node, what, sizeof what);
    sg__finding_say(f, "0x%llx (%s)", (unsigned long long)word->value, what);
    return status;
}

/* One that is not about an argument: nothing is left over there. */
static stepgraph_status add_as_it_is(stepgraph_audit *audit, const stepgraph_step *step, const stepgraph_finding *about)
{
    sg__finding *f;
    stepgraph_status status = sg__audit_add(audit, (stepgraph_finding_kind)about->kind, SG__FAULT, step, about->node, &f);

    if (f == NULL)
        return status;
    f->before = about->before;
    sg__finding_say(f, "%s", about->text);
    sg__finding_advise(f, "%s", about->advice);
    return status;
}

/* Whether a word may still be left over, although it is the same in all recordings: it stands in a large struct. */
static bool is_in_doubt(const sg__graph *graph, const sg__graph_word *word)
{
    return graph->nodes[word->node].layout->arguments[word->argument].bytes > SG__SMALL_STRUCT;
}

/* Whether what a finding is about stands in all n recordings. */
static bool in_all(const sg__graph *graphs, size_t n, const sg__graph_word *word)
{
    size_t j = 0;

    while (j < n && holds(&graphs[j], word))
        j++;
    return j == n;
}

/* It stands against a check. */
static void stand(sg__lane *lane, const stepgraph_finding *finding)
{
    if (lane->unpinned[0] == '\0')
        snprintf(lane->unpinned, sizeof lane->unpinned, "%.255s", finding->text);
}

/* Memory that a check cannot put back. In doubt it is left over where a recording does not have it, and otherwise the checks tell; but not if it is
 * another device's, which they would change as well. */
static stepgraph_status add_outside(sg__lane *lane, const sg__graph *graphs, size_t n, stepgraph_audit *audit, uint64_t index)
{
    const stepgraph_finding *about = sg__audit_at(lane->step->audit, index);
    const sg__graph_word word = {.place = SG__WORD_ARGUMENT,
                                 .node = about->node,
                                 .argument = (uint16_t)about->argument,
                                 .offset = about->offset,
                                 .value = about->before};
    stepgraph_status status;
    sg__finding *f;

    if (about->doubtful != 0 && !in_all(graphs, n, &word))
        return STEPGRAPH_OK;
    if (about->doubtful == 0 || about->kind == STEPGRAPH_FINDING_FOREIGN) {
        stand(lane, about);
        return STEPGRAPH_OK;
    }
    status = begin(audit, SG__DOUBTFUL, lane->step, &word, about, &f);
    if (f != NULL)
        sg__finding_say(f, "%s", lane->step->audit->order[index]->text);
    return status;
}

/* Go through all that stands; what the host does not allow is added. graphs: one for each of the n recordings, the first is
 * the lane's. */
static stepgraph_status add_what_stands(const stepgraph_loop *loop, sg__lane *lane, const sg__graph *graphs, size_t n, stepgraph_audit *audit)
{
    const stepgraph_step *step = lane->step;
    stepgraph_status status = STEPGRAPH_OK;
    const stepgraph_finding *about;

    for (size_t i = 0; i < graphs[0].n_words && status == STEPGRAPH_OK; i++) {
        const sg__graph_word *word = &graphs[0].words[i];
        about = in_all(graphs, n, word) ? finding_about(step, sg__allocation_at(&step->allocations, word->value)) : NULL;
        if (about == NULL)
            continue;
        bool allowed = (loop->config.step_flags & flag_for(about)) != 0, doubt = !allowed && is_in_doubt(&graphs[0], word);
        if (!doubt) /* What is in doubt, a check puts back. */
            stand(lane, about);
        if (!allowed)
            status = add_word(audit, doubt ? SG__DOUBTFUL : SG__FAULT, step, word, about);
    }
    for (uint64_t i = 0; i < step->audit->summary.kept && status == STEPGRAPH_OK; i++) {
        about = sg__audit_at(step->audit, i);
        if (is_outside(about)) {
            status = add_outside(lane, graphs, n, audit, i);
        } else if (about->argument == UINT32_MAX && flag_for(about) != 0) {
            stand(lane, about);
            if ((loop->config.step_flags & flag_for(about)) == 0)
                status = add_as_it_is(audit, step, about);
        }
    }
    return status;
}

stepgraph_status sg__lane_unpinned(stepgraph_loop *loop, sg__lane *lane, const stepgraph_step *again, stepgraph_audit **audit_out)
{
    const stepgraph_step *recordings[] = {lane->step, lane->first, again};
    size_t n = again != NULL ? 3 : 2, read = 0;
    stepgraph_status status;
    stepgraph_audit *audit;
    sg__graph graphs[3];
    doubts about;

    *audit_out = NULL;
    lane->unpinned[0] = '\0';
    if (lane->step->stats.unregistered == 0)
        return STEPGRAPH_OK;
    audit = sg__audit_new(lane->step->audit->title);
    if (audit == NULL)
        return STEPGRAPH_ERR_MEMORY;
    status = sg__enter(loop->session);
    if (status == STEPGRAPH_OK) {
        status = gather(lane->step, &about);
        for (; read < n && status == STEPGRAPH_OK; read++)
            status = read_arguments(recordings[read], &about, &graphs[read]);
        free(about.values);
        sg__leave(loop->session);
    }
    if (status == STEPGRAPH_OK)
        status = add_what_stands(loop, lane, graphs, n, audit);
    while (read > 0)
        sg__graph_free(&graphs[--read]);
    if (status == STEPGRAPH_OK && audit->summary.faults + audit->summary.doubtful > 0) {
        audit->summary.nodes = lane->step->audit->summary.nodes;
        audit->summary.kernels = lane->step->audit->summary.kernels;
        audit->summary.addresses = lane->step->audit->summary.addresses;
        status = sg__audit_finish(audit);
        *audit_out = status == STEPGRAPH_OK ? audit : NULL;
    }
    if (*audit_out == NULL)
        stepgraph_audit_destroy(audit);
    return status;
}
