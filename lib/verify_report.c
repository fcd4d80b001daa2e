/* The report of a verification: its findings, its forms for people and programs, and the calls that walk it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena_p.h"
#include "room.h"
#include "structs.h"
#include "text.h"
#include "verify_p.h"

static const char *const kind_names[] = {
    [STEPGRAPH_VERIFY_HIDDEN_WRITE] = "hidden write", [STEPGRAPH_VERIFY_FALSE_READ] = "false read", [STEPGRAPH_VERIFY_HIDDEN_READ] = "hidden read",
    [STEPGRAPH_VERIFY_REORDERED] = "reordered",       [STEPGRAPH_VERIFY_RELAXED] = "relaxed",       [STEPGRAPH_VERIFY_ONE_BY_ONE] = "one by one",
    [STEPGRAPH_VERIFY_UNSTEADY] = "unsteady",         [STEPGRAPH_VERIFY_UNSTEADY_NODE] = "unsteady node", [STEPGRAPH_VERIFY_SKIPPED] = "skipped",
};

const char *stepgraph_verify_verdict_name(uint32_t verdict)
{
    static const char *const names[] = {"unknown verdict", "NO_FAULT_FOUND", "FAULTS_FOUND", "NOT_COMPARABLE"};

    return names[verdict <= STEPGRAPH_NOT_COMPARABLE ? verdict : 0];
}

/* ---- one finding ------------------------------------------------------------------------------------------------- */

/* Where the pin, block or allocation begins that holds an address at a node. */
static CUdeviceptr beginning(const stepgraph_step *step, CUdeviceptr address, uint32_t node)
{
    const stepgraph_session *session = step->session;
    sg__place place = sg__resolve(step, address);
    sg__block block;

    if (place.where == SG__IN_PIN && session->pins[place.pin]->role == STEPGRAPH_ROLE_SCRATCH && session->recorded == step &&
        sg__arena_block_at(session, address, node, &block))
        return block.start;
    if (place.where == SG__IN_PIN)
        return session->pins[place.pin]->address;
    return place.where == SG__IN_ALLOCATION ? place.allocation->start : address;
}

static void describe(stepgraph_verify_finding *f, const char *why)
{
    char who[168], what[240], some[32]; /* With the words around them no longer than the text. */
    char *text = f->text;
    size_t room = sizeof f->text;

    snprintf(who, sizeof who, "node %u  %s", f->node, f->node_name);
    snprintf(some, sizeof some, f->bytes > 0 ? "%" PRIu64 " byte%s" : "some bytes", f->bytes, f->bytes != 1 ? "s" : "");
    snprintf(what, sizeof what, "%s of %s", some, f->memory);
    if (f->offset > 0)
        snprintf(what + strlen(what), sizeof what - strlen(what), " from +%" PRIu64 " on", f->offset);
    switch (f->kind) {
    case STEPGRAPH_VERIFY_HIDDEN_WRITE:
        snprintf(text, room, "%s  changes %s, to which none of its arguments leads%s%s", who, what, why != NULL ? ": " : "", why != NULL ? why : "");
        break;
    case STEPGRAPH_VERIFY_FALSE_READ:
        snprintf(text, room, "%s  changes %s, which is declared read-only", who, what);
        break;
    case STEPGRAPH_VERIFY_HIDDEN_READ:
        snprintf(text, room, "%s  gives other results, in %s, when all memory to which none of its arguments leads is filled with 0xff", who, what);
        break;
    case STEPGRAPH_VERIFY_REORDERED:
        if (f->seed != 0)
            snprintf(text, room, "the nodes in another order (seed %" PRIu64 ") give something else after step %" PRIu64 ", in %s", f->seed, f->step, what);
        else
            snprintf(text, room, "the nodes in the order farthest from the recorded one give something else after step %" PRIu64 ", in %s", f->step,
                     what);
        break;
    case STEPGRAPH_VERIFY_RELAXED:
        snprintf(text, room, "the relaxed step gives something else after step %" PRIu64 ", in %s", f->step, what);
        break;
    case STEPGRAPH_VERIFY_ONE_BY_ONE:
        snprintf(text, room, "the nodes one by one, in the recorded order, give something else than the recorded graph, in %s", what);
        break;
    case STEPGRAPH_VERIFY_UNSTEADY:
        snprintf(text, room, "the step as it was recorded gives something else when it runs again, after step %" PRIu64 " in %s: not compared", f->step,
                 what);
        break;
    case STEPGRAPH_VERIFY_UNSTEADY_NODE:
        snprintf(text, room, "%s  gives other results when it runs again from the same state, so it is not known what it reads", who);
        break;
    default:
        snprintf(text, room, "%s  %s", who, why);
        break;
    }
    if (f->fault != 0 && f->node != UINT32_MAX && f->argument != UINT32_MAX)
        snprintf(text + strlen(text), room - strlen(text), " (arg %u)", f->argument);
}

static const char *advice(uint32_t kind)
{
    switch (kind) {
    case STEPGRAPH_VERIFY_HIDDEN_WRITE:
    case STEPGRAPH_VERIFY_HIDDEN_READ:
        return "it takes addresses from device memory, or goes beyond the memory that it was given: make it a barrier "
               "(stepgraph_relax_config::barriers), or pin the storage that it works on as one";
    case STEPGRAPH_VERIFY_FALSE_READ:
        return "take the declaration back: stepgraph_relax_config::reads, or the role of the pin";
    case STEPGRAPH_VERIFY_REORDERED:
    case STEPGRAPH_VERIFY_RELAXED:
        return "replay it as it was recorded; findings about nodes, if there are any, say why";
    case STEPGRAPH_VERIFY_ONE_BY_ONE:
        return "look for a missing wait between forked streams, or for kernels that work together while they run";
    case STEPGRAPH_VERIFY_UNSTEADY:
        return "let the step compute the same each time, for example with deterministic kernels, and verify it again";
    default:
        return "";
    }
}

static bool is_fault(stepgraph_verify_kind kind)
{
    return kind <= STEPGRAPH_VERIFY_ONE_BY_ONE;
}

/* Room for one more: of as many as are kept a fault takes the place of one that is none. NULL: there is none; *status says why where that is a failure. */
static stepgraph_verify_finding *room_for(stepgraph_verify *report, bool fault, stepgraph_status *status)
{
    size_t kept = (size_t)report->summary.kept, at = kept;
    stepgraph_verify_finding *findings;

    *status = STEPGRAPH_OK;
    if (kept == SG__VERIFY_KEPT) {
        while (fault && at > 0 && report->findings[at - 1].fault != 0)
            at--;
        return fault && at > 0 ? &report->findings[at - 1] : NULL;
    }
    findings = sg__room(report->findings, &report->room, kept + 1, 16, sizeof *findings);
    if (findings == NULL) {
        *status = STEPGRAPH_ERR_MEMORY;
        return NULL;
    }
    report->findings = findings;
    report->summary.kept++;
    return &findings[kept];
}

stepgraph_status sg__verify_note(sg__verify *v, stepgraph_verify_kind kind, const sg__verify_place *place, const char *why)
{
    stepgraph_verify *report = v->report;
    const stepgraph_step *step = v->step;
    uint32_t node = place->node != UINT32_MAX ? v->footprint->index[place->node] : UINT32_MAX;
    stepgraph_status status;
    stepgraph_verify_finding *f = room_for(report, is_fault(kind), &status);

    report->summary.findings++;
    report->summary.faults += is_fault(kind);
    if (f == NULL)
        return status;
    *f = (stepgraph_verify_finding)STEPGRAPH_VERIFY_FINDING_INIT;
    f->kind = kind;
    f->fault = is_fault(kind);
    f->node = node;
    f->argument = place->argument;
    f->address = place->address;
    f->bytes = place->bytes;
    f->step = place->step == UINT64_MAX ? UINT64_MAX : v->config.first + place->step;
    f->seed = place->seed;
    if (node != UINT32_MAX) {
        snprintf(f->node_name, sizeof f->node_name, "%s", sg__node_name(&step->read.nodes[node]));
        snprintf(f->stage, sizeof f->stage, "%s", sg__stage_of_node(step, node));
    }
    if (place->address != 0) {
        CUdeviceptr start = beginning(step, place->address, place->node);
        f->offset = place->address - start;
        sg__describe_address(step, start, node, f->memory, sizeof f->memory);
    }
    describe(f, why);
    snprintf(f->advice, sizeof f->advice, "%s", advice(kind));
    return STEPGRAPH_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* Findings that a person is shown; programs can walk them all. */
#define SHOWN 12u

static void write_text(const stepgraph_verify *report, sg__text *t)
{
    const stepgraph_verify_summary *s = &report->summary;
    const char *last = "";

    sg__text_add(t, "%s: %s", report->title, s->verdict == STEPGRAPH_FAULTS_FOUND ? "faults found" : "no fault found on this data");
    if (s->verdict == STEPGRAPH_NOT_COMPARABLE)
        sg__text_add(t, ", of which %" PRIu64 " bytes could not be compared", s->bytes_unsteady);
    sg__text_add(t, " (%s%s, driver %d.%d; %.2f s)", report->device, s->software != 0 ? ", simulated on the CPU" : "", report->driver_version / 1000,
                 report->driver_version % 1000 / 10, s->seconds);
    sg__text_add(t, "\n  %" PRIu64 " bytes in %" PRIu64 " ranges; %" PRIu64 " of %" PRIu64 " nodes looked at for hidden writes, %" PRIu64
                 " for hidden reads; %u other order%s and %u relaxed run%s of %u step%s compared", s->bytes, s->ranges, s->nodes_run, s->nodes,
                 s->nodes_isolated, s->orders, s->orders != 1 ? "s" : "", s->repeats, s->repeats != 1 ? "s" : "", s->steps, s->steps != 1 ? "s" : "");
    for (uint64_t i = 0; i < s->kept && i < SHOWN; i++) {
        const stepgraph_verify_finding *f = &report->findings[i];
        sg__text_add(t, "\n  %s%s", f->fault != 0 ? "" : "(no fault) ", f->text);
        if (f->advice[0] != '\0' && strcmp(f->advice, last) != 0)
            sg__text_add(t, "\n      %s", f->advice);
        last = f->advice;
    }
    if (s->findings > SHOWN)
        sg__text_add(t, "\n  and %" PRIu64 " more", s->findings - SHOWN);
    sg__text_add(t, "\n");
}

/* A number that may be missing. */
static void add_optional(sg__text *t, const char *key, uint64_t value, bool there)
{
    if (there)
        sg__text_add(t, ", \"%s\": %" PRIu64, key, value);
}

static void write_json_finding(const stepgraph_verify_finding *f, sg__text *t)
{
    const struct {
        const char *key, *value;
    } strings[] = {{"name", f->node_name}, {"stage", f->stage}, {"memory", f->memory}, {"text", f->text}, {"advice", f->advice}};

    sg__text_add(t, "{\"kind\": \"%s\", \"fault\": %s", kind_names[f->kind], f->fault != 0 ? "true" : "false");
    add_optional(t, "node", f->node, f->node != UINT32_MAX);
    add_optional(t, "argument", f->argument, f->argument != UINT32_MAX);
    if (f->address != 0)
        sg__text_add(t, ", \"address\": \"0x%" PRIx64 "\", \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64, f->address, f->offset, f->bytes);
    add_optional(t, "step", f->step, f->step != UINT64_MAX);
    add_optional(t, "seed", f->seed, f->kind == STEPGRAPH_VERIFY_REORDERED);
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        sg__text_add(t, ", \"%s\": ", strings[i].key);
        sg__text_quoted(t, strings[i].value);
    }
    sg__text_add(t, "}");
}

static void write_json(const stepgraph_verify *report, sg__text *t)
{
    const stepgraph_verify_summary *s = &report->summary;

    sg__text_add(t, "{\"title\": ");
    sg__text_quoted(t, report->title);
    sg__text_add(t, ", \"verdict\": \"%s\", \"device\": ", stepgraph_verify_verdict_name(s->verdict));
    sg__text_quoted(t, report->device);
    sg__text_add(t, ", \"driver_version\": %d, \"software\": %s, \"findings\": %" PRIu64 ", \"faults\": %" PRIu64 ", \"nodes\": %" PRIu64
                 ", \"nodes_run\": %" PRIu64 ", \"nodes_isolated\": %" PRIu64 ", \"ranges\": %" PRIu64 ", \"bytes\": %" PRIu64
                 ", \"bytes_unsteady\": %" PRIu64 ", \"steps\": %u, \"orders\": %u, \"repeats\": %u, \"device_bytes\": %" PRIu64
                 ", \"host_bytes\": %" PRIu64 ", \"seconds\": %.6f, \"list\": [", report->driver_version, s->software != 0 ? "true" : "false",
                 s->findings, s->faults, s->nodes, s->nodes_run, s->nodes_isolated, s->ranges, s->bytes, s->bytes_unsteady, s->steps, s->orders,
                 s->repeats, s->device_bytes, s->host_bytes, s->seconds);
    for (uint64_t i = 0; i < s->kept; i++) {
        sg__text_add(t, "%s\n  ", i > 0 ? "," : "");
        write_json_finding(&report->findings[i], t);
    }
    sg__text_add(t, "]}\n");
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

stepgraph_verify *sg__verify_report_new(const sg__verify *v)
{
    stepgraph_verify *report = calloc(1, sizeof *report);
    size_t bytes = strlen(v->step->name) + 32;

    if (report == NULL || (report->title = malloc(bytes)) == NULL) {
        stepgraph_verify_destroy(report);
        sg__fail_memory("host", sizeof *report + bytes);
        return NULL;
    }
    snprintf(report->title, bytes, "verification of '%s'", v->step->name);
    snprintf(report->device, sizeof report->device, "%s", v->session->info.device_name);
    report->driver_version = v->session->info.driver_version;
    report->summary = (stepgraph_verify_summary)STEPGRAPH_VERIFY_SUMMARY_INIT;
    return report;
}

/* Faults first, otherwise as they were found. */
static void order_findings(stepgraph_verify *report, stepgraph_verify_finding *sorted)
{
    uint64_t n = 0;

    for (uint32_t fault = 2; fault-- > 0;)
        for (uint64_t i = 0; i < report->summary.kept; i++)
            if (report->findings[i].fault == fault)
                sorted[n++] = report->findings[i];
    free(report->findings);
    report->findings = sorted;
}

stepgraph_status sg__verify_finish(sg__verify *v)
{
    stepgraph_verify *report = v->report;
    stepgraph_verify_summary *s = &report->summary;
    stepgraph_verify_finding *sorted = malloc((s->kept + 1) * sizeof *sorted);
    sg__text text = {0}, json = {0};
    stepgraph_status status;

    if (sorted == NULL)
        return sg__fail_memory("host", s->kept * sizeof *sorted);
    order_findings(report, sorted);
    s->software = v->session->info.software != 0 ? 1 : 0;
    s->nodes = v->footprint->n;
    s->ranges = v->memory.n;
    s->bytes = v->memory.bytes;
    for (size_t i = 0; i < v->memory.n; i++)
        s->bytes_unsteady += v->unsteady[i] != 0 ? v->memory.ranges[i].bytes : 0;
    s->steps = v->config.steps;
    s->device_bytes = v->memory.device_bytes;
    s->host_bytes = v->memory.host_bytes;
    s->verdict = s->faults > 0 ? STEPGRAPH_FAULTS_FOUND : s->bytes_unsteady > 0 ? STEPGRAPH_NOT_COMPARABLE : STEPGRAPH_NO_FAULT_FOUND;
    write_text(report, &text);
    write_json(report, &json);
    status = sg__texts_keep(&text, &json, &report->text, &report->json);
    if (status != STEPGRAPH_OK)
        return status;
    sg__log(v->session, s->faults == 0 ? STEPGRAPH_LOG_INFO : STEPGRAPH_LOG_WARNING, "%s", report->text);
    return STEPGRAPH_OK;
}

void stepgraph_verify_destroy(stepgraph_verify *verify)
{
    if (verify == NULL)
        return;
    free(verify->title);
    free(verify->findings);
    free(verify->text);
    free(verify->json);
    free(verify);
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

stepgraph_status stepgraph_verify_get_summary(const stepgraph_verify *verify, stepgraph_verify_summary *summary_out)
{
    sg__error_clear();
    if (verify == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no report to sum up: the pointer is NULL");
    return sg__struct_write(summary_out, &verify->summary, sizeof verify->summary, offsetof(stepgraph_verify_summary, findings),
                            "stepgraph_verify_summary");
}

stepgraph_status stepgraph_verify_get(const stepgraph_verify *verify, uint32_t index, stepgraph_verify_finding *finding_out)
{
    sg__error_clear();
    if (verify == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no report to read: the pointer is NULL");
    if (index >= verify->summary.kept)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "the report has no finding %u", index);
    return sg__struct_write(finding_out, &verify->findings[index], sizeof *verify->findings, offsetof(stepgraph_verify_finding, address),
                            "stepgraph_verify_finding");
}

const char *stepgraph_verify_text(const stepgraph_verify *verify)
{
    return verify != NULL ? verify->text : "";
}

const char *stepgraph_verify_json(const stepgraph_verify *verify)
{
    return verify != NULL ? verify->json : "{}";
}
