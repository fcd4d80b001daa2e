/* The report: gathering findings, walking them, and their forms for people and programs. */
#include "audit_p.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    return audit;
}

void stepgraph_audit_destroy(stepgraph_audit *audit)
{
    if (audit == NULL)
        return;
    free(audit->title);
    free(audit->findings);
    free(audit->text);
    free(audit->json);
    free(audit);
}

stepgraph_status sg__audit_add(stepgraph_audit *audit, const stepgraph_finding *finding)
{
    stepgraph_audit_summary *summary = &audit->summary;
    size_t at = (size_t)summary->kept;

    summary->findings++;
    summary->faults += finding->fault != 0 ? 1 : 0;
    if (at == SG__FINDINGS_KEPT) {
        if (finding->fault == 0)
            return STEPGRAPH_OK;
        while (at > 0 && audit->findings[at - 1].fault != 0)
            at--;
        if (at == 0)
            return STEPGRAPH_OK;
        audit->findings[at - 1] = *finding;
        return STEPGRAPH_OK;
    }
    if (at == audit->room) {
        size_t room = audit->room != 0 ? 2 * audit->room : 8;
        stepgraph_finding *larger = realloc(audit->findings, room * sizeof *larger);
        if (larger == NULL)
            return sg__fail_memory("host", room * sizeof *larger);
        audit->findings = larger;
        audit->room = room;
    }
    audit->findings[at] = *finding;
    summary->kept++;
    return STEPGRAPH_OK;
}

void sg__finding_begin(stepgraph_finding *finding, stepgraph_finding_kind kind, const stepgraph_step *step, uint32_t node)
{
    *finding = (stepgraph_finding)STEPGRAPH_FINDING_INIT;
    finding->kind = kind;
    finding->fault = 1;
    finding->node = node;
    finding->argument = UINT32_MAX;
    if (node < step->read.n_nodes)
        snprintf(finding->node_name, sizeof finding->node_name, "%s", step->read.nodes[node].name);
    snprintf(finding->stage, sizeof finding->stage, "%s", sg__stage_of_node(step, node));
}

void sg__finding_place(const stepgraph_finding *finding, sg__word_place place, char *text, size_t bytes)
{
    static const char *const shapes[] = {"grid x", "grid y", "grid z", "block x", "block y", "block z", "shared memory"};
    int used = snprintf(text, bytes, "node %u  %.96s  ", finding->node, finding->node_name);
    size_t at = used < 0 || (size_t)used >= bytes ? bytes - 1 : (size_t)used;

    switch (place) {
    case SG__WORD_ARGUMENT:
        snprintf(text + at, bytes - at, "arg %u +%u", finding->argument, finding->offset);
        break;
    case SG__WORD_SOURCE:
        snprintf(text + at, bytes - at, "source");
        break;
    case SG__WORD_DESTINATION:
        snprintf(text + at, bytes - at, "destination");
        break;
    case SG__WORD_EXTENT:
        snprintf(text + at, bytes - at, "extent");
        break;
    case SG__WORD_VALUE:
        snprintf(text + at, bytes - at, "value");
        break;
    case SG__WORD_SHAPE:
        snprintf(text + at, bytes - at, "%s", shapes[finding->argument]);
        break;
    case SG__WORD_HOST:
        snprintf(text + at, bytes - at, "%s", finding->argument == 0 ? "itself" : "its argument");
        break;
    case SG__WORD_FUNCTION:
        snprintf(text + at, bytes - at, "kernel");
        break;
    }
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static void write_text(const stepgraph_audit *audit, sg__text *b)
{
    const stepgraph_audit_summary *s = &audit->summary;

    if (s->faults == 0)
        sg__text_add(b, "%s: no fault found", audit->title);
    else
        sg__text_add(b, "%s cannot be replayed: %llu fault%s", audit->title, (unsigned long long)s->faults, s->faults != 1 ? "s" : "");
    sg__text_add(b, " (%llu nodes, %llu kernels, %llu addresses", (unsigned long long)s->nodes, (unsigned long long)s->kernels,
           (unsigned long long)s->addresses);
    if (s->bytes > 0)
        sg__text_add(b, ", %llu bytes compared", (unsigned long long)s->bytes);
    sg__text_add(b, "%s", ")");
    if (s->unread > 0)
        sg__text_add(b, "; %llu nodes could not be looked at", (unsigned long long)s->unread);
    for (uint64_t i = 0; i < s->kept; i++) {
        const stepgraph_finding *f = &audit->findings[i];
        sg__text_add(b, "\n  %s%s", f->fault != 0 ? "" : "(no fault) ", f->text);
        /* The same advice once for a run of findings. */
        if (f->advice[0] != '\0' && (i + 1 == s->kept || strcmp(f->advice, audit->findings[i + 1].advice) != 0))
            sg__text_add(b, "\n      %s", f->advice);
    }
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
           ", \"faults\": %llu, \"findings\": %llu, \"nodes\": %llu, \"kernels\": %llu, \"unread\": %llu, \"addresses\": %llu, \"in_pins\": %llu, "
           "\"in_graph\": %llu, \"bytes\": %llu, \"list\": [",
           (unsigned long long)s->faults, (unsigned long long)s->findings, (unsigned long long)s->nodes, (unsigned long long)s->kernels,
           (unsigned long long)s->unread, (unsigned long long)s->addresses, (unsigned long long)s->in_pins, (unsigned long long)s->in_graph,
           (unsigned long long)s->bytes);
    for (uint64_t i = 0; i < s->kept; i++) {
        const stepgraph_finding *f = &audit->findings[i];
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
    const stepgraph_finding *x = a, *y = b;

    if (x->fault != y->fault)
        return x->fault > y->fault ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->argument != y->argument)
        return x->argument < y->argument ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

stepgraph_status sg__audit_finish(stepgraph_audit *audit)
{
    sg__text text = {0}, json = {0};

    if (audit->summary.kept > 0)
        qsort(audit->findings, (size_t)audit->summary.kept, sizeof *audit->findings, by_weight);
    write_text(audit, &text);
    write_json(audit, &json);
    audit->text = text.text;
    audit->json = json.text;
    return text.failed || json.failed ? sg__fail_memory("host", text.room + json.room) : STEPGRAPH_OK;
}

stepgraph_audit *sg__audit_copy(const stepgraph_audit *audit)
{
    stepgraph_audit *copy = sg__audit_new(audit->title);
    size_t kept = (size_t)audit->summary.kept;

    if (copy == NULL)
        return NULL;
    copy->summary = audit->summary;
    copy->room = kept;
    copy->text = strdup(audit->text);
    copy->json = strdup(audit->json);
    copy->findings = malloc((kept + 1) * sizeof *copy->findings);
    if (copy->text == NULL || copy->json == NULL || copy->findings == NULL) {
        stepgraph_audit_destroy(copy);
        sg__fail_memory("host", kept * sizeof *copy->findings);
        return NULL;
    }
    if (kept > 0)
        memcpy(copy->findings, audit->findings, kept * sizeof *copy->findings);
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
    return sg__struct_write(finding_out, &audit->findings[index], sizeof *audit->findings, offsetof(stepgraph_finding, argument),
                            "stepgraph_finding");
}

const char *stepgraph_audit_text(const stepgraph_audit *audit)
{
    return audit != NULL ? audit->text : "";
}

const char *stepgraph_audit_json(const stepgraph_audit *audit)
{
    return audit != NULL ? audit->json : "{}";
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
