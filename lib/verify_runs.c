/* Whole runs, compared byte by byte: the recording with itself, its nodes in other orders, and the relaxed step. */
#include <stdlib.h>
#include <string.h>

#include "graveyard.h"
#include "verify_p.h"

static stepgraph_status launch(const sg__verify *v, CUgraphExec exec)
{
    stepgraph_status status;

    SG__CU(v->session->driver, GraphLaunch, exec, v->session->stream);
    return STEPGRAPH_OK;

fail:
    return status;
}

/* From the beginning to the end of step `last`. */
static stepgraph_status run_recording(sg__verify *v, uint32_t last)
{
    stepgraph_status status = sg__verify_begin(v);

    for (uint32_t i = 0; i <= last && status == STEPGRAPH_OK; i++) {
        if (i > 0)
            status = sg__verify_feed(v, i);
        if (status == STEPGRAPH_OK)
            status = launch(v, v->step->relaxed->recorded);
        if (status == STEPGRAPH_OK)
            status = sg__verify_wait(v, "the step as it was recorded");
    }
    return status;
}

/* ---- where ------------------------------------------------------------------------------------------------------- */

/* Note what differs in the ranges of a list, which was compared. Neighbours are one finding. */
static stepgraph_status note_found(sg__verify *v, stepgraph_verify_kind kind, const uint32_t *list, size_t n, uint32_t i, uint64_t seed)
{
    const sg__difference *found = sg__memory_found(&v->memory);
    const sg__range *ranges = v->memory.ranges;
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t k = 0; k < n && status == STEPGRAPH_OK; k++) {
        sg__verify_place place = {.node = UINT32_MAX, .argument = UINT32_MAX, .step = i, .seed = seed, .bytes = found[k].bytes};
        /* It need not differ again where the recording differs from itself. */
        place.address = ranges[list[k]].a + (found[k].bytes > 0 ? found[k].first : 0);
        while (k + 1 < n && list[k + 1] == list[k] + 1 && ranges[list[k + 1]].a == ranges[list[k]].a + ranges[list[k]].bytes &&
               sg__pin_index(v->session, ranges[list[k + 1]].a) == sg__pin_index(v->session, ranges[list[k]].a)) {
            k++;
            if (place.bytes == 0 && found[k].bytes > 0)
                place.address = ranges[list[k]].a + found[k].first;
            place.bytes += found[k].bytes;
        }
        status = sg__verify_note(v, kind, &place, NULL);
    }
    return status;
}

stepgraph_status sg__verify_locate(sg__verify *v, stepgraph_verify_kind kind, uint32_t i, uint64_t seed)
{
    stepgraph_status status;
    size_t n = 0;

    for (size_t k = 0; k < v->memory.n; k++)
        if (sg__memory_hits(&v->memory)[k] != 0)
            v->list[n++] = (uint32_t)k;
    for (size_t k = 0; k < n && kind == STEPGRAPH_VERIFY_UNSTEADY; k++)
        v->unsteady[v->list[k]] = SG__RANGE_WRITTEN;
    status = sg__memory_save(&v->memory, SG__IMAGE_OTHER);
    if (status == STEPGRAPH_OK)
        status = run_recording(v, i);
    if (status == STEPGRAPH_OK)
        status = sg__memory_some(&v->memory, SG__COMPARE, v->list, n);
    if (status == STEPGRAPH_OK)
        status = sg__verify_wait(v, "comparing");
    if (status == STEPGRAPH_OK)
        status = note_found(v, kind, v->list, n, i, seed);
    return status;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* All steps with an executable, each compared with the recording's; the first that differs ends it. */
static stepgraph_status compare_run(sg__verify *v, CUgraphExec exec, stepgraph_verify_kind kind, uint64_t seed, const char *what, bool *differs)
{
    stepgraph_status status = sg__verify_begin(v);

    *differs = false;
    for (uint32_t i = 0; i < v->config.steps && status == STEPGRAPH_OK && !*differs; i++) {
        if (i > 0)
            status = sg__verify_feed(v, i);
        if (status == STEPGRAPH_OK)
            status = launch(v, exec);
        if (status == STEPGRAPH_OK)
            status = sg__verify_wait(v, "%s, in step %u of %u", what, i + 1, v->config.steps);
        if (status == STEPGRAPH_OK)
            status = sg__memory_hash(&v->memory, SG__HASH_NOW);
        if (status == STEPGRAPH_OK)
            status = sg__memory_judge(&v->memory, SG__HASH_NOW, SG__HASH_STEPS + i, v->unsteady, SG__RANGE_READ);
        if (status == STEPGRAPH_OK)
            status = sg__verify_wait(v, "comparing");
        if (status == STEPGRAPH_OK && sg__memory_judged(&v->memory).changed > 0) {
            *differs = true;
            status = sg__verify_locate(v, kind, i, seed);
        }
    }
    return status;
}

stepgraph_status sg__verify_control(sg__verify *v)
{
    stepgraph_status status = sg__verify_begin(v);
    bool differs = true;

    for (uint32_t i = 0; i < v->config.steps && status == STEPGRAPH_OK; i++) {
        if (i > 0)
            status = sg__verify_feed(v, i);
        if (status == STEPGRAPH_OK)
            status = launch(v, v->step->relaxed->recorded);
        if (status == STEPGRAPH_OK)
            status = sg__memory_hash(&v->memory, SG__HASH_STEPS + i);
        if (status == STEPGRAPH_OK)
            status = sg__verify_wait(v, "the step as it was recorded");
    }
    if (status == STEPGRAPH_OK)
        status = sg__verify_progress(v, "control");
    /* Each time with less to compare, until the rest is the same. What differs now and then may do so only in one of several runs. */
    for (unsigned int again = 0; again < 3 || differs; again++) {
        if (status != STEPGRAPH_OK)
            return status;
        status = compare_run(v, v->step->relaxed->recorded, STEPGRAPH_VERIFY_UNSTEADY, 0, "the step as it was recorded, once more", &differs);
        if (status == STEPGRAPH_OK)
            status = sg__verify_progress(v, "control");
    }
    return status;
}

/* The nodes in one line, as edges from each to the next. */
static stepgraph_status run_line(sg__verify *v, uint64_t seed, uint32_t *line, sg__graph_edge *edges)
{
    uint32_t n = v->footprint->n;
    CUgraphExec exec = NULL;
    stepgraph_status status = sg__order_line(&v->step->relaxed->needed, seed, line);
    bool differs;

    for (uint32_t i = 0; i + 1 < n; i++)
        edges[i] = (sg__graph_edge){.from = line[i], .to = line[i + 1]};
    if (status == STEPGRAPH_OK)
        status = sg__relax_executables(v->step, edges, n > 0 ? n - 1 : 0, 1, &exec);
    if (status == STEPGRAPH_OK)
        status = compare_run(v, exec, STEPGRAPH_VERIFY_REORDERED, seed, "the nodes in another order", &differs);
    sg__bury(v->session, SG__GRAVE_EXEC, (uintptr_t)exec);
    if (status == STEPGRAPH_OK) {
        v->report->summary.orders++;
        status = sg__verify_progress(v, "orders");
    }
    return status;
}

stepgraph_status sg__verify_orders(sg__verify *v)
{
    uint32_t *line = malloc(((size_t)v->footprint->n + 1) * sizeof *line);
    sg__graph_edge *edges = malloc(((size_t)v->footprint->n + 1) * sizeof *edges);
    stepgraph_status status = STEPGRAPH_OK;

    if (line == NULL || edges == NULL)
        status = sg__fail_memory("host", v->footprint->n * (sizeof *line + sizeof *edges));
    if (status == STEPGRAPH_OK)
        status = run_line(v, 0, line, edges);
    for (uint32_t i = 0; i < v->config.orders && status == STEPGRAPH_OK; i++)
        status = run_line(v, v->config.seed + i, line, edges);
    free(line);
    free(edges);
    return status;
}

stepgraph_status sg__verify_replays(sg__verify *v)
{
    stepgraph_status status = STEPGRAPH_OK;
    bool differs = false;

    for (uint32_t i = 0; i < v->config.repeats && status == STEPGRAPH_OK && !differs; i++) {
        status = compare_run(v, v->step->exec, STEPGRAPH_VERIFY_RELAXED, 0, "the relaxed step", &differs);
        if (status == STEPGRAPH_OK) {
            v->report->summary.repeats++;
            status = sg__verify_progress(v, "replays");
        }
    }
    return status;
}
