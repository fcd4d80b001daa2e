/* The report: gathering findings, and walking them. */
#include "audit_p.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "room.h"
#include "structs.h"

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
    atomic_init(&audit->holders, 1);
    return audit;
}

stepgraph_audit *sg__audit_hold(stepgraph_audit *audit)
{
    atomic_fetch_add(&audit->holders, 1);
    return audit;
}

static void drop_finding(sg__finding *finding)
{
    sg__name_drop(finding->name);
    free(finding->text);
    free(finding->advice_made);
}

void stepgraph_audit_destroy(stepgraph_audit *audit)
{
    if (audit == NULL || atomic_fetch_sub(&audit->holders, 1) > 1)
        return;
    for (size_t i = 0; i < audit->summary.kept; i++)
        drop_finding(&audit->findings[i]);
    for (sg__stage_name *stage = audit->stages, *next; stage != NULL; stage = next) {
        next = stage->next;
        free(stage);
    }
    pthread_mutex_destroy(&audit->lock);
    free(audit->title);
    free(audit->findings);
    free(audit->order);
    free(audit->said);
    free(audit->text);
    free(audit->json);
    free(audit);
}

/* Room for one more; NULL: there is none, for a note or in host memory. */
static sg__finding *room_for(stepgraph_audit *audit, sg__weight weight)
{
    size_t at = (size_t)audit->summary.kept;
    sg__finding *findings;

    if (at == SG__FINDINGS_KEPT) {
        sg__weight lesser = audit->of[SG__NOTE] > 0 ? SG__NOTE : SG__DOUBTFUL;
        if (weight <= lesser || audit->of[lesser] == 0)
            return NULL;
        for (at = audit->scanned[lesser] != 0 ? audit->scanned[lesser] : at; audit->findings[--at].weight != lesser;)
            ;
        audit->scanned[lesser] = at;
        drop_finding(&audit->findings[at]);
        audit->of[lesser]--;
        return &audit->findings[at];
    }
    findings = sg__room(audit->findings, &audit->room, at + 1, 8, sizeof *findings);
    if (findings == NULL)
        return NULL;
    audit->findings = findings;
    audit->summary.kept++;
    return &findings[at];
}

/* The report's own copy of a stage's name; NULL: no host memory. */
static const char *stage_name(stepgraph_audit *audit, const char *name)
{
    sg__stage_name *made;

    if (name[0] == '\0')
        return "";
    for (const sg__stage_name *stage = audit->stages; stage != NULL; stage = stage->next)
        if (strcmp(stage->name, name) == 0)
            return stage->name;
    made = malloc(sizeof *made + strlen(name) + 1);
    if (made == NULL)
        return NULL;
    strcpy(made->name, name);
    made->next = audit->stages;
    audit->stages = made;
    return made->name;
}

stepgraph_status sg__audit_add(stepgraph_audit *audit, stepgraph_finding_kind kind, sg__weight weight, const stepgraph_step *step,
                               uint32_t node, sg__finding **out)
{
    sg__finding *finding = room_for(audit, weight);
    const sg__graph_node *about = node < step->read.n_nodes ? &step->read.nodes[node] : NULL;

    *out = finding;
    audit->summary.findings++;
    audit->summary.faults += weight == SG__FAULT ? 1 : 0;
    audit->summary.doubtful += weight == SG__DOUBTFUL ? 1 : 0;
    if (finding == NULL)
        return audit->summary.kept == SG__FINDINGS_KEPT ? STEPGRAPH_OK : STEPGRAPH_ERR_MEMORY;
    audit->of[weight]++;
    *finding = (sg__finding){.kind = kind, .weight = weight, .node = node, .node_kind = "", .advice = ""};
    if (about != NULL && about->layout != NULL && about->layout->name != NULL)
        finding->name = sg__name_hold(about->layout->name);
    else if (about != NULL)
        finding->node_kind = sg__node_kind_name(about->type);
    finding->stage = stage_name(audit, sg__stage_of_node(step, node));
    return finding->stage != NULL ? STEPGRAPH_OK : sg__fail_memory("host", sizeof(sg__stage_name));
}

void sg__finding_place(sg__finding *finding, sg__word_place place, uint32_t argument, uint32_t offset)
{
    finding->placed = true;
    finding->place = place;
    finding->part = argument;
    finding->offset = offset;
}

static char *make_text(size_t most, const char *format, va_list arguments)
{
    char text[sizeof((stepgraph_finding *)0)->text];

    vsnprintf(text, most < sizeof text ? most : sizeof text, format, arguments);
    return strdup(text);
}

void sg__finding_tell(sg__finding *finding, const char *text)
{
    free(finding->text);
    finding->text = strdup(text);
}

void sg__finding_vsay(sg__finding *finding, const char *format, va_list arguments)
{
    free(finding->text);
    finding->text = make_text(SIZE_MAX, format, arguments);
}

void sg__finding_say(sg__finding *finding, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    sg__finding_vsay(finding, format, arguments);
    va_end(arguments);
}

void sg__finding_advise(sg__finding *finding, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    free(finding->advice_made);
    finding->advice = finding->advice_made = make_text(sizeof((stepgraph_finding *)0)->advice, format, arguments);
    va_end(arguments);
}

/* Faults first, then what is in doubt, and each in the order of the nodes. */
static int by_weight(const void *a, const void *b)
{
    const sg__finding *p = *(sg__finding *const *)a, *q = *(sg__finding *const *)b;
    uint32_t x = sg__finding_argument(p), y = sg__finding_argument(q);

    if (p->weight != q->weight)
        return p->weight > q->weight ? -1 : 1;
    if (p->node != q->node)
        return p->node < q->node ? -1 : 1;
    if (x != y)
        return x < y ? -1 : 1;
    if (p->offset != q->offset)
        return p->offset < q->offset ? -1 : 1;
    return p < q ? -1 : p > q;
}

stepgraph_status sg__audit_finish(stepgraph_audit *audit)
{
    size_t kept = (size_t)audit->summary.kept, n = 0;
    bool in_order = true;

    audit->order = malloc((kept + 1) * sizeof *audit->order);
    if (audit->order == NULL)
        return sg__fail_memory("host", kept * sizeof *audit->order);
    for (size_t i = 0; i < kept; i++) {
        const sg__finding *f = &audit->findings[i];
        if ((f->text == NULL && f->why == NULL && f->kind != STEPGRAPH_FINDING_CHANGING_SCALAR) || f->advice == NULL)
            return sg__fail_memory("host", sizeof((stepgraph_finding *)0)->text);
    }
    /* They are found in the order of the nodes, mostly. */
    for (int weight = SG__FAULT; weight >= SG__NOTE; weight--)
        for (size_t i = 0; i < kept; i++)
            if (audit->findings[i].weight == (sg__weight)weight)
                audit->order[n++] = &audit->findings[i];
    for (size_t i = 1; i < kept && in_order; i++)
        in_order = by_weight(&audit->order[i - 1], &audit->order[i]) < 0;
    if (!in_order)
        qsort(audit->order, kept, sizeof *audit->order, by_weight);
    return STEPGRAPH_OK;
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

stepgraph_status stepgraph_audit_step(const stepgraph_step *step, stepgraph_audit **audit_out)
{
    sg__error_clear();
    if (step == NULL || audit_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no report can be given: %s is NULL", step == NULL ? "the step" : "audit_out");
    if (step->audit == NULL)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' has no recording to report on: record one first", step->name);
    *audit_out = sg__audit_hold(step->audit);
    return STEPGRAPH_OK;
}
