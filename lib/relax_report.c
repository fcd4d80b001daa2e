/* The report of relaxing: the barriers, the forms for people and programs, and the calls that walk it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relax_p.h"
#include "structs.h"
#include "text.h"

const char *stepgraph_barrier_name(uint32_t barrier)
{
    static const char *const names[STEPGRAPH_BARRIERS] = {
        [STEPGRAPH_BARRIER_NONE] = "no barrier",
        [STEPGRAPH_BARRIER_NO_ADDRESS] = "no known address in its arguments",
        [STEPGRAPH_BARRIER_UNREAD] = "could not be read",
        [STEPGRAPH_BARRIER_HOST_FUNCTION] = "host function",
        [STEPGRAPH_BARRIER_HOST_MEMORY] = "host memory",
        [STEPGRAPH_BARRIER_EVENT] = "event",
        [STEPGRAPH_BARRIER_CHILD_GRAPH] = "child graph",
        [STEPGRAPH_BARRIER_COOPERATIVE] = "cooperative kernel",
        [STEPGRAPH_BARRIER_COLLECTIVE] = "collective",
        [STEPGRAPH_BARRIER_DECLARED] = "declared by the caller",
        [STEPGRAPH_BARRIER_OTHER] = "node of another kind",
    };

    return barrier < STEPGRAPH_BARRIERS ? names[barrier] : "unknown reason";
}

stepgraph_relax *sg__relax_report(const stepgraph_step *step)
{
    stepgraph_relax *report = calloc(1, sizeof *report);

    if (report == NULL || (report->title = strdup(step->name)) == NULL) {
        free(report);
        sg__fail_memory("host", sizeof *report);
        return NULL;
    }
    report->summary = (stepgraph_relax_summary)STEPGRAPH_RELAX_SUMMARY_INIT;
    return report;
}

/* ---- barriers ---------------------------------------------------------------------------------------------------- */

stepgraph_status sg__relax_tell_barriers(stepgraph_relax *report, const stepgraph_step *step, const sg__footprint *footprint)
{
    for (uint32_t i = 0; i < footprint->n; i++) {
        const char *name = sg__node_name(&step->read.nodes[footprint->index[i]]);
        stepgraph_relax_barrier *larger;
        size_t k = 0;

        if (footprint->reasons[i] == STEPGRAPH_BARRIER_NONE)
            continue;
        while (k < report->n_barriers &&
               (report->barriers[k].reason != footprint->reasons[i] || strncmp(report->barriers[k].node_name, name, sizeof larger->node_name - 1) != 0))
            k++;
        if (k < report->n_barriers) {
            report->barriers[k].count++;
            continue;
        }
        larger = realloc(report->barriers, (report->n_barriers + 1) * sizeof *larger);
        if (larger == NULL)
            return sg__fail_memory("host", (report->n_barriers + 1) * sizeof *larger);
        report->barriers = larger;
        larger[k] = (stepgraph_relax_barrier){.size = sizeof *larger, .reason = footprint->reasons[i], .node = footprint->index[i], .count = 1};
        snprintf(larger[k].node_name, sizeof larger[k].node_name, "%s", name);
        report->n_barriers++;
    }
    return STEPGRAPH_OK;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

/* "on 8 lanes", "as recorded". */
static const char *way_name(uint32_t lanes, char *text, size_t bytes)
{
    if (lanes == 0)
        snprintf(text, bytes, "as recorded");
    else
        snprintf(text, bytes, "on %u lane%s", lanes, lanes == 1 ? "" : "s");
    return text;
}

static void write_result(sg__text *text, const stepgraph_relax *report)
{
    const stepgraph_relax_summary *s = &report->summary;
    char way[40];

    sg__text_add(text, "step '%s' is replayed %s", report->title, way_name(s->lanes, way, sizeof way));
    if (s->lanes != 0 && s->us >= 0)
        sg__text_add(text, ": %.1f us a replay instead of %.1f, one behind the other, and %.1f us of the host's time instead of %.1f", s->us, s->us_recorded,
                     s->host_us, s->host_us_recorded);
    else if (s->lanes == 0 && s->identical == 0)
        sg__text_add(text, ", because relaxed replays left other bytes behind: some kernel touches memory that its arguments do not point to");
    else if (s->lanes == 0 && s->path_needed == s->path_recorded)
        sg__text_add(text, ": every node has to wait for the one before it");
    else if (s->lanes == 0)
        sg__text_add(text, ", which is as fast as relaxed");
    sg__text_add(text, "\n");
}

static void write_order(sg__text *text, const stepgraph_relax_summary *s)
{
    sg__text_add(text, "  nodes     %" PRIu64 ", with %" PRIu64 " touches of allocations, %" PRIu64 " of them declared to be reads", s->nodes, s->accesses,
                 s->reads);
    if (s->left_over > 0)
        sg__text_add(text, "; %" PRIu64 " words point to where a block was or was not yet", s->left_over);
    sg__text_add(text, "\n  edges     %" PRIu64 " recorded, %" PRIu64 " needed, %" PRIu64 " launched\n", s->edges_recorded, s->edges_needed, s->edges);
    sg__text_add(text, "  path      %" PRIu64 " nodes recorded, %" PRIu64 " needed, %" PRIu64 " launched", s->path_recorded, s->path_needed, s->path);
    if (s->path_unused < s->path_needed)
        sg__text_add(text, "; %" PRIu64 " if no block were given out again: a larger quarantine shortens it", s->path_unused);
    sg__text_add(text, "\n");
    if (s->unordered > 0)
        sg__text_add(text, "  unordered %" PRIu64 " touches conflict that the recording itself does not order\n", s->unordered);
    if (s->refuted > 0)
        sg__text_add(text, "  written   %" PRIu64 " pin%s, although the role says that the step does not\n", s->refuted, s->refuted == 1 ? "" : "s");
}

static void write_barriers(sg__text *text, const stepgraph_relax *report)
{
    const stepgraph_relax_summary *s = &report->summary;

    sg__text_add(text, "  barriers  %" PRIu64, s->barriers);
    for (size_t i = 0; i < report->n_barriers; i++) {
        const stepgraph_relax_barrier *b = &report->barriers[i];
        sg__text_add(text, "%s%" PRIu64 " '%s' (%s)", i == 0 ? ": " : ", ", b->count, b->node_name, stepgraph_barrier_name(b->reason));
    }
    if (s->collectives > 0)
        sg__text_add(text, "; %" PRIu64 " collectives in their order", s->collectives);
    sg__text_add(text, "\n");
}

static void write_choices(sg__text *text, const stepgraph_relax *report)
{
    const stepgraph_relax_summary *s = &report->summary;
    char way[40];

    if (s->us_recorded >= 0) {
        sg__text_add(text, "  lanes    ");
        for (size_t i = 0; i < report->n_choices; i++)
            sg__text_add(text, "%s %s %.1f us", i == 0 ? "" : ",", way_name(report->choices[i].lanes, way, sizeof way), report->choices[i].us);
        sg__text_add(text, "\n");
    }
    if (s->launches > 0)
        sg__text_add(text, "  bytes     %s, %" PRIu64 " of them, put back after %" PRIu64 " replays\n",
                     s->identical == 1   ? "the same as recorded"
                     : s->identical == 0 ? "not the same as recorded"
                                         : "not compared, or not the same from one recorded replay to the next",
                     s->saved_bytes, s->launches);
    sg__text_add(text, "  time      %.1f ms reading, %.1f ms ordering, %.1f ms making executables, %.1f ms saving and comparing, %.1f ms timing\n", s->read_ms,
                 s->order_ms, s->build_ms, s->save_ms, s->time_ms);
}

/* ---- for programs ------------------------------------------------------------------------------------------------ */

static void write_number(sg__text *text, const char *name, double value)
{
    if (value < 0)
        sg__text_add(text, ", \"%s\": null", name);
    else
        sg__text_add(text, ", \"%s\": %.4f", name, value);
}

static void write_json(sg__text *text, const stepgraph_relax *report)
{
    const stepgraph_relax_summary *s = &report->summary;
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        {"nodes", s->nodes},
        {"edges_recorded", s->edges_recorded},
        {"edges_needed", s->edges_needed},
        {"edges", s->edges},
        {"path_recorded", s->path_recorded},
        {"path_needed", s->path_needed},
        {"path", s->path},
        {"path_unused", s->path_unused},
        {"barriers", s->barriers},
        {"collectives", s->collectives},
        {"accesses", s->accesses},
        {"reads", s->reads},
        {"left_over", s->left_over},
        {"unordered", s->unordered},
        {"refuted", s->refuted},
        {"launches", s->launches},
        {"saved_bytes", s->saved_bytes},
    };
    const struct {
        const char *name;
        double value;
    } times[] = {
        {"us_recorded", s->us_recorded}, {"us", s->us},           {"host_us_recorded", s->host_us_recorded},
        {"host_us", s->host_us},         {"read_ms", s->read_ms}, {"order_ms", s->order_ms},
        {"build_ms", s->build_ms},       {"save_ms", s->save_ms}, {"time_ms", s->time_ms},
    };

    sg__text_add(text, "{\"step\": ");
    sg__text_quoted(text, report->title);
    sg__text_add(text, ", \"lanes\": %u, \"identical\": %s", s->lanes, s->identical < 0 ? "null" : s->identical == 0 ? "false" : "true");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        sg__text_add(text, ", \"%s\": %" PRIu64, counts[i].name, counts[i].value);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        write_number(text, times[i].name, times[i].value);
    sg__text_add(text, ", \"why\": [");
    for (size_t i = 0; i < report->n_barriers; i++) {
        const stepgraph_relax_barrier *b = &report->barriers[i];
        sg__text_add(text, "%s{\"reason\": ", i == 0 ? "" : ", ");
        sg__text_quoted(text, stepgraph_barrier_name(b->reason));
        sg__text_add(text, ", \"name\": ");
        sg__text_quoted(text, b->node_name);
        sg__text_add(text, ", \"node\": %u, \"count\": %" PRIu64 "}", b->node, b->count);
    }
    sg__text_add(text, "], \"choices\": [");
    for (size_t i = 0; i < report->n_choices; i++) {
        const stepgraph_relax_choice *c = &report->choices[i];
        sg__text_add(text, "%s{\"lanes\": %u, \"identical\": %s, \"edges\": %" PRIu64 ", \"path\": %" PRIu64, i == 0 ? "" : ", ", c->lanes,
                     c->identical < 0 ? "null" : c->identical == 0 ? "false" : "true", c->edges, c->path);
        write_number(text, "us", c->us);
        write_number(text, "host_us", c->host_us);
        sg__text_add(text, "}");
    }
    sg__text_add(text, "]}\n");
}

stepgraph_status sg__relax_write(stepgraph_relax *report)
{
    sg__text text = {0}, json = {0};

    write_result(&text, report);
    write_order(&text, &report->summary);
    write_barriers(&text, report);
    write_choices(&text, report);
    write_json(&json, report);
    return sg__texts_keep(&text, &json, &report->text, &report->json);
}

stepgraph_status sg__relax_write_refusal(stepgraph_relax *report, const char *why)
{
    sg__text text = {0}, json = {0};

    sg__text_add(&text, "step '%s' is replayed as recorded: %s\n", report->title, why);
    sg__text_add(&json, "{\"step\": ");
    sg__text_quoted(&json, report->title);
    sg__text_add(&json, ", \"lanes\": 0, \"identical\": %s, \"refused\": ", report->summary.identical < 0 ? "null" : "false");
    sg__text_quoted(&json, why);
    sg__text_add(&json, "}\n");
    return sg__texts_keep(&text, &json, &report->text, &report->json);
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

void stepgraph_relax_destroy(stepgraph_relax *relax)
{
    if (relax == NULL)
        return;
    free(relax->title);
    free(relax->barriers);
    free(relax->choices);
    free(relax->text);
    free(relax->json);
    free(relax);
}

stepgraph_status stepgraph_relax_get_summary(const stepgraph_relax *relax, stepgraph_relax_summary *summary_out)
{
    sg__error_clear();
    if (relax == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no report to ask: the pointer is NULL");
    return sg__struct_write(summary_out, &relax->summary, sizeof relax->summary, offsetof(stepgraph_relax_summary, nodes), "stepgraph_relax_summary");
}

stepgraph_status stepgraph_relax_get_barrier(const stepgraph_relax *relax, uint32_t index, stepgraph_relax_barrier *barrier_out)
{
    sg__error_clear();
    if (relax == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no report to ask: the pointer is NULL");
    if (index >= relax->n_barriers)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no barriers number %u: the report has %zu kinds of them", index, relax->n_barriers);
    return sg__struct_write(barrier_out, &relax->barriers[index], sizeof *barrier_out, offsetof(stepgraph_relax_barrier, count), "stepgraph_relax_barrier");
}

stepgraph_status stepgraph_relax_get_choice(const stepgraph_relax *relax, uint32_t index, stepgraph_relax_choice *choice_out)
{
    sg__error_clear();
    if (relax == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no report to ask: the pointer is NULL");
    if (index >= relax->n_choices)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no choice number %u: the report has %zu", index, relax->n_choices);
    return sg__struct_write(choice_out, &relax->choices[index], sizeof *choice_out, offsetof(stepgraph_relax_choice, edges), "stepgraph_relax_choice");
}

const char *stepgraph_relax_text(const stepgraph_relax *relax)
{
    return relax != NULL ? relax->text : "";
}

const char *stepgraph_relax_json(const stepgraph_relax *relax)
{
    return relax != NULL ? relax->json : "{}";
}
