/* The report: gathering findings, walking them, and their forms for people and programs. */
#include "audit_p.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "structs.h"
#include "text.h"

static const char *const kind_names[] = {
    [STEPGRAPH_FINDING_MOVED_POINTER] = "moved pointer",
    [STEPGRAPH_FINDING_CHANGING_SCALAR] = "changing scalar",
    [STEPGRAPH_FINDING_UNCLASSIFIED] = "unclassified",
    [STEPGRAPH_FINDING_TOPOLOGY] = "topology",
    [STEPGRAPH_FINDING_UNREGISTERED] = "unregistered",
    [STEPGRAPH_FINDING_FREED] = "freed",
    [STEPGRAPH_FINDING_REPLACED] = "replaced",
    [STEPGRAPH_FINDING_FOREIGN] = "foreign",
    [STEPGRAPH_FINDING_PAGEABLE] = "pageable",
    [STEPGRAPH_FINDING_PAGE_LOCKED] = "page-locked",
    [STEPGRAPH_FINDING_POOL] = "pool",
    [STEPGRAPH_FINDING_FORMER_STATE] = "former state",
    [STEPGRAPH_FINDING_ALLOCATION] = "allocation",
    [STEPGRAPH_FINDING_HOST_FUNCTION] = "host function",
    [STEPGRAPH_FINDING_EMPTY] = "empty",
    [STEPGRAPH_FINDING_ESCAPED] = "escaped",
    [STEPGRAPH_FINDING_UNREAD] = "unread",
};

/* ---- gathering --------------------------------------------------------------------------------------------------- */

stepgraph_audit *sg__audit_new(const char *title)
{
    stepgraph_audit *audit = calloc(1, sizeof *audit);

    if (audit == NULL || (audit->title = strdup(title)) == NULL) {
        free(audit);
        sg__fail_memory("host", sizeof *audit);
        return NULL;
    }
    pthread_mutex_init(&audit->lock, NULL);
    return audit;
}

void stepgraph_audit_destroy(stepgraph_audit *audit)
{
    if (audit == NULL)
        return;
    for (size_t i = 0; i < audit->summary.kept; i++)
        sg__name_drop(audit->findings[i].name);
    pthread_mutex_destroy(&audit->lock);
    free(audit->title);
    free(audit->findings);
    free(audit->order);
    free(audit->text);
    free(audit->json);
    free(audit);
}

/* Room for one more; NULL: there is none, for one that is no fault or in host memory. */
static sg__finding *room_for(stepgraph_audit *audit, bool fault)
{
    size_t at = (size_t)audit->summary.kept;

    if (at == SG__FINDINGS_KEPT) {
        if (!fault || audit->notes == 0)
            return NULL;
        for (at = audit->scanned != 0 ? audit->scanned : at; audit->findings[--at].said.fault != 0;)
            ;
        audit->scanned = at;
        sg__name_drop(audit->findings[at].name);
        audit->notes--;
        return &audit->findings[at];
    }
    if (at == audit->room) {
        size_t room = audit->room != 0 ? 2 * audit->room : 8;
        sg__finding *larger = realloc(audit->findings, room * sizeof *larger);
        if (larger == NULL)
            return NULL;
        audit->findings = larger;
        audit->room = room;
    }
    audit->summary.kept++;
    return &audit->findings[at];
}

stepgraph_status sg__audit_add(stepgraph_audit *audit, stepgraph_finding_kind kind, bool fault, const stepgraph_step *step,
                               uint32_t node, sg__finding **out)
{
    sg__finding *finding = room_for(audit, fault);
    const sg__graph_node *about = node < step->read.n_nodes ? &step->read.nodes[node] : NULL;

    *out = finding;
    audit->summary.findings++;
    audit->summary.faults += fault ? 1 : 0;
    if (finding == NULL)
        return audit->summary.kept == SG__FINDINGS_KEPT ? STEPGRAPH_OK
                                                        : sg__fail_memory("host", 2 * audit->room * sizeof *finding);
    audit->notes += fault ? 0 : 1;
    *finding = (sg__finding){.said = STEPGRAPH_FINDING_INIT};
    finding->said.kind = kind;
    finding->said.fault = fault;
    finding->said.node = node;
    finding->said.argument = UINT32_MAX;
    if (about != NULL && about->layout != NULL && about->layout->name != NULL)
        finding->name = sg__name_hold(about->layout->name);
    else if (about != NULL)
        snprintf(finding->said.node_name, sizeof finding->said.node_name, "%s", sg__node_kind_name(about->type));
    snprintf(finding->said.stage, sizeof finding->said.stage, "%s", sg__stage_of_node(step, node));
    return STEPGRAPH_OK;
}

void sg__finding_place(sg__finding *finding, sg__word_place place, uint32_t argument, uint32_t offset)
{
    finding->placed = true;
    finding->place = place;
    finding->part = argument;
    finding->said.argument = place == SG__WORD_ARGUMENT ? argument : UINT32_MAX;
    finding->said.offset = offset;
}

/* ---- putting names in -------------------------------------------------------------------------------------------- */

/* Where a word stands in its node. */
static void write_place(const sg__finding *finding, char *text, size_t bytes)
{
    static const char *const shapes[] = {"grid x", "grid y", "grid z", "block x", "block y", "block z", "shared memory"};

    switch (finding->place) {
    case SG__WORD_ARGUMENT:
        snprintf(text, bytes, "arg %u +%u", finding->part, finding->said.offset);
        break;
    case SG__WORD_SOURCE:
        snprintf(text, bytes, "source");
        break;
    case SG__WORD_DESTINATION:
        snprintf(text, bytes, "destination");
        break;
    case SG__WORD_EXTENT:
        snprintf(text, bytes, "extent");
        break;
    case SG__WORD_VALUE:
        snprintf(text, bytes, "value");
        break;
    case SG__WORD_SHAPE:
        snprintf(text, bytes, "%s", shapes[finding->part]);
        break;
    case SG__WORD_HOST:
        snprintf(text, bytes, "%s", finding->part == 0 ? "itself" : "its argument");
        break;
    case SG__WORD_FUNCTION:
        snprintf(text, bytes, "kernel");
        break;
    }
}

static void complete_one(sg__finding *finding)
{
    stepgraph_finding *said = &finding->said;
    char behind[sizeof said->text], place[32];
    int used;

    if (finding->name != NULL)
        snprintf(said->node_name, sizeof said->node_name, "%s", sg__name_short(finding->name));
    if (!finding->placed)
        return;
    write_place(finding, place, sizeof place);
    memcpy(behind, said->text, sizeof behind);
    used = snprintf(said->text, sizeof said->text, "node %u  %s  %s   ", said->node, said->node_name, place);
    finding->tail = used < 0 ? 0 : (size_t)used;
    snprintf(said->text + finding->tail, sizeof said->text - finding->tail, "%s", behind);
}

/* Under the report's lock. */
static void complete(stepgraph_audit *audit)
{
    if (audit->complete)
        return;
    for (size_t i = 0; i < audit->summary.kept; i++)
        complete_one(&audit->findings[i]);
    audit->complete = true;
}

/* A report never changes to those who read it; that some of it is made late is nobody's affair but ours. */
static stepgraph_audit *locked(const stepgraph_audit *audit)
{
    stepgraph_audit *ours = (stepgraph_audit *)audit;

    pthread_mutex_lock(&ours->lock);
    complete(ours);
    return ours;
}

const stepgraph_finding *sg__audit_at(const stepgraph_audit *audit, size_t index)
{
    pthread_mutex_unlock(&locked(audit)->lock);
    return &audit->order[index]->said;
}

uint64_t sg__audit_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* Findings that say the same about several nodes: each has the next in its group, the first of them how many there are. */
typedef struct groups {
    uint32_t next[SG__FINDINGS_KEPT], size[SG__FINDINGS_KEPT];
    uint32_t last[SG__FINDINGS_KEPT]; /* Of a first one: the last of its group. */
    uint32_t slots[2048];             /* First ones by what they say, plus 1. */
} groups;

static bool say_the_same(const sg__finding *a, const sg__finding *b)
{
    const stepgraph_finding *x = &a->said, *y = &b->said;

    return a->placed && b->placed && x->kind == y->kind && x->fault == y->fault && a->place == b->place && a->part == b->part &&
           x->offset == y->offset && x->before == y->before && x->after == y->after && strcmp(x->node_name, y->node_name) == 0 &&
           strcmp(x->text + a->tail, y->text + b->tail) == 0;
}

static void group(const stepgraph_audit *audit, groups *g)
{
    memset(g, 0, sizeof *g);
    for (uint32_t i = 0; i < audit->summary.kept; i++) {
        const sg__finding *f = audit->order[i];
        uint64_t hash = (f->said.before * 31 + f->said.after) * 31 + f->said.offset;
        size_t at = (hash * 0x9e3779b97f4a7c15ull >> 40) % 2048;
        while (g->slots[at] != 0 && !say_the_same(audit->order[g->slots[at] - 1], f))
            at = (at + 1) % 2048;
        if (g->slots[at] == 0) {
            g->slots[at] = i + 1;
            g->size[i] = 1;
            g->last[i] = i;
        } else {
            uint32_t first = g->slots[at] - 1;
            g->next[g->last[first]] = i;
            g->last[first] = i;
            g->size[first]++;
        }
    }
}

/* The other nodes of a group. */
static void append_nodes(const stepgraph_audit *audit, const groups *g, uint32_t first, sg__text *b)
{
    uint32_t shown = 0;

    sg__text_add(b, "\n      the same in %u more node%s: ", g->size[first] - 1, g->size[first] > 2 ? "s" : "");
    for (uint32_t i = g->next[first]; i != 0 && shown < 12; i = g->next[i])
        sg__text_add(b, "%s%u", shown++ > 0 ? ", " : "", audit->order[i]->said.node);
    if (g->size[first] - 1 > shown)
        sg__text_add(b, ", ...");
}

static void write_text(const stepgraph_audit *audit, sg__text *b)
{
    const stepgraph_audit_summary *s = &audit->summary;
    const stepgraph_finding *before = NULL;
    groups g;

    if (s->faults == 0)
        sg__text_add(b, "%s: no fault found", audit->title);
    else
        sg__text_add(b, "%s%s cannot be replayed: %llu fault%s", audit->title, audit->recordings > 0 ? "," : "", (unsigned long long)s->faults, s->faults != 1 ? "s" : "");
    sg__text_add(b, " (%llu nodes, %llu kernels, ", (unsigned long long)s->nodes, (unsigned long long)s->kernels);
    if (audit->recordings > 0)
        sg__text_add(b, "%llu bytes compared in %u recordings)", (unsigned long long)s->bytes, audit->recordings);
    else
        sg__text_add(b, "%llu addresses)", (unsigned long long)s->addresses);
    if (s->unread > 0)
        sg__text_add(b, "; %llu nodes could not be looked at", (unsigned long long)s->unread);
    group(audit, &g);
    for (uint32_t i = 0; i < s->kept; i++) {
        const stepgraph_finding *f = &audit->order[i]->said;
        if (g.size[i] == 0)
            continue;
        /* The same advice once for a run of findings. */
        if (before != NULL && before->advice[0] != '\0' && strcmp(f->advice, before->advice) != 0)
            sg__text_add(b, "\n      %s", before->advice);
        sg__text_add(b, "\n  %s%s", f->fault != 0 ? "" : "(no fault) ", f->text);
        if (g.size[i] > 1)
            append_nodes(audit, &g, i, b);
        before = f;
    }
    if (before != NULL && before->advice[0] != '\0')
        sg__text_add(b, "\n      %s", before->advice);
    if (s->findings > s->kept)
        sg__text_add(b, "\n  and %llu more", (unsigned long long)(s->findings - s->kept));
    sg__text_add(b, "\n");
}

static void write_json(const stepgraph_audit *audit, sg__text *b)
{
    const stepgraph_audit_summary *s = &audit->summary;

    sg__text_add(b, "{\"title\": ");
    sg__text_quoted(b, audit->title);
    sg__text_add(b,
           ", \"faults\": %llu, \"findings\": %llu, \"nodes\": %llu, \"kernels\": %llu, \"unread\": %llu, \"addresses\": %llu, "
           "\"in_pins\": %llu, "
           "\"in_graph\": %llu, \"bytes\": %llu, \"read_ns\": %llu, \"compare_ns\": %llu, \"list\": [",
           (unsigned long long)s->faults, (unsigned long long)s->findings, (unsigned long long)s->nodes,
           (unsigned long long)s->kernels, (unsigned long long)s->unread, (unsigned long long)s->addresses,
           (unsigned long long)s->in_pins, (unsigned long long)s->in_graph, (unsigned long long)s->bytes,
           (unsigned long long)s->read_ns, (unsigned long long)s->compare_ns);
    for (uint64_t i = 0; i < s->kept; i++) {
        const stepgraph_finding *f = &audit->order[i]->said;
        sg__text_add(b, "%s\n  {\"kind\": ", i > 0 ? "," : "");
        sg__text_quoted(b, kind_names[f->kind]);
        sg__text_add(b, ", \"fault\": %s, \"node\": %lld, \"argument\": %lld, \"offset\": %u, \"bytes\": %u", f->fault != 0 ? "true" : "false",
               f->node != UINT32_MAX ? (long long)f->node : -1, f->argument != UINT32_MAX ? (long long)f->argument : -1, f->offset, f->bytes);
        sg__text_add(b, ", \"before\": \"0x%llx\", \"after\": \"0x%llx\", \"name\": ", (unsigned long long)f->before, (unsigned long long)f->after);
        sg__text_quoted(b, f->node_name);
        sg__text_add(b, ", \"stage\": ");
        sg__text_quoted(b, f->stage);
        sg__text_add(b, ", \"text\": ");
        sg__text_quoted(b, f->text);
        sg__text_add(b, ", \"advice\": ");
        sg__text_quoted(b, f->advice);
        sg__text_add(b, "}");
    }
    sg__text_add(b, "]}\n");
}

/* Faults first, then in the order of the nodes. */
static int by_weight(const void *a, const void *b)
{
    const sg__finding *p = *(sg__finding *const *)a, *q = *(sg__finding *const *)b;
    const stepgraph_finding *x = &p->said, *y = &q->said;

    if (x->fault != y->fault)
        return x->fault > y->fault ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->argument != y->argument)
        return x->argument < y->argument ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return p < q ? -1 : p > q;
}

stepgraph_status sg__audit_finish(stepgraph_audit *audit)
{
    size_t kept = (size_t)audit->summary.kept;

    audit->order = malloc((kept + 1) * sizeof *audit->order);
    if (audit->order == NULL)
        return sg__fail_memory("host", kept * sizeof *audit->order);
    for (size_t i = 0; i < kept; i++)
        audit->order[i] = &audit->findings[i];
    if (kept > 0)
        qsort(audit->order, kept, sizeof *audit->order, by_weight);
    return STEPGRAPH_OK;
}

stepgraph_audit *sg__audit_copy(const stepgraph_audit *audit)
{
    stepgraph_audit *copy = sg__audit_new(audit->title);
    size_t kept = (size_t)audit->summary.kept;
    sg__finding *findings = malloc((kept + 1) * sizeof *findings);

    if (copy == NULL || findings == NULL) {
        free(findings);
        stepgraph_audit_destroy(copy);
        sg__fail_memory("host", kept * sizeof *findings);
        return NULL;
    }
    copy->findings = findings;
    copy->room = kept;
    copy->recordings = audit->recordings;
    copy->notes = audit->notes;
    copy->complete = audit->complete;
    copy->summary = audit->summary;
    for (size_t i = 0; i < kept; i++) {
        findings[i] = audit->findings[i];
        sg__name_hold(findings[i].name);
    }
    if (sg__audit_finish(copy) != STEPGRAPH_OK) {
        stepgraph_audit_destroy(copy);
        return NULL;
    }
    return copy;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

stepgraph_status stepgraph_audit_get_summary(const stepgraph_audit *audit, stepgraph_audit_summary *summary_out)
{
    sg__error_clear();
    if (audit == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no report to sum up: the pointer is NULL");
    return sg__struct_write(summary_out, &audit->summary, sizeof audit->summary, offsetof(stepgraph_audit_summary, nodes),
                            "stepgraph_audit_summary");
}

stepgraph_status stepgraph_audit_get(const stepgraph_audit *audit, uint32_t index, stepgraph_finding *finding_out)
{
    sg__error_clear();
    if (audit == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no report to read: the pointer is NULL");
    if (index >= audit->summary.kept)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "the report has no finding %u", index);
    return sg__struct_write(finding_out, sg__audit_at(audit, index), sizeof(stepgraph_finding),
                            offsetof(stepgraph_finding, argument), "stepgraph_finding");
}

/* One of the two forms, made when it is first asked for. */
static const char *form(const stepgraph_audit *audit, char **made, void (*write)(const stepgraph_audit *audit, sg__text *b))
{
    stepgraph_audit *ours = locked(audit);
    sg__text b = {0};

    if (*made == NULL) {
        write(audit, &b);
        if (b.failed)
            free(b.text);
        else
            *made = b.text;
    }
    pthread_mutex_unlock(&ours->lock);
    return *made;
}

const char *stepgraph_audit_text(const stepgraph_audit *audit)
{
    const char *text = audit != NULL ? form(audit, (char **)&audit->text, write_text) : "";

    return text != NULL ? text : "no host memory for the report's text\n";
}

const char *stepgraph_audit_json(const stepgraph_audit *audit)
{
    const char *json = audit != NULL ? form(audit, (char **)&audit->json, write_json) : "{}";

    return json != NULL ? json : "{}";
}

stepgraph_status stepgraph_audit_step(const stepgraph_step *step, stepgraph_audit **audit_out)
{
    stepgraph_audit *copy;

    sg__error_clear();
    if (step == NULL || audit_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no report can be given: %s is NULL", step == NULL ? "the step" : "audit_out");
    if (step->audit == NULL)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' has no recording to report on: record one first", step->name);
    copy = sg__audit_copy(step->audit);
    if (copy == NULL)
        return STEPGRAPH_ERR_MEMORY;
    *audit_out = copy;
    return STEPGRAPH_OK;
}
