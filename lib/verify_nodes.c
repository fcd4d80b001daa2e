/*
 * Nodes one by one: what each changes outside of what it declares, and whether its results depend on anything that it does not declare.
 *
 * In isolation the step's memory lives in the other image. Live memory is filled all over; a node's ranges are fetched from the image before it
 * runs, and what it may have written is stored there afterwards. So a node costs the bytes that it declares, and one hash of all.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/single.h"
#include "graveyard.h"
#include "room.h"
#include "verify_p.h"

/* ---- one node ---------------------------------------------------------------------------------------------------- */

static const sg__graph_node *node_of(const sg__verify *v, uint32_t node)
{
    return &v->step->read.nodes[v->footprint->index[node]];
}

/* Everything waits for a barrier, so it does not matter what it touches. */
static bool is_looked_at(const sg__verify *v, uint32_t node)
{
    return v->footprint->kinds[node] != SG__ORDER_BARRIER && sg__single_kind_of(node_of(v, node)->type) == SG__SINGLE_RUNS;
}

/* Why the nodes cannot run one by one, with the node that stands against it; NULL: they can. */
static const char *obstacle(const sg__verify *v, uint32_t *node_out)
{
    for (uint32_t i = 0; i < v->footprint->n; i++) {
        *node_out = i;
        if (sg__single_kind_of(node_of(v, i)->type) == SG__SINGLE_NEVER)
            return "it does something only as part of its graph, so the nodes were not run one by one";
        if (v->footprint->kinds[i] == SG__ORDER_COLLECTIVES || v->footprint->reasons[i] == STEPGRAPH_BARRIER_COLLECTIVE)
            return "it waits for its like on other devices, so the nodes were not run one by one";
    }
    return NULL;
}

static void drop_alone(sg__verify *v)
{
    sg__bury(v->session, SG__GRAVE_EXEC, (uintptr_t)v->alone);
    sg__bury(v->session, SG__GRAVE_GRAPH, (uintptr_t)v->alone_graph);
    v->alone = NULL;
    v->alone_graph = NULL;
}

/* Enqueue one node. */
static stepgraph_status launch_alone(sg__verify *v, uint32_t index)
{
    const sg__graph_node *node = node_of(v, index);
    const sg__driver *driver = v->session->driver;
    stepgraph_status status;

    drop_alone(v);
    if (sg__single_kind_of(node->type) == SG__SINGLE_NOTHING)
        return STEPGRAPH_OK;
    status = sg__single_make(driver, v->session->context, v->step->graph, node->type, node->handle, &v->alone_graph);
    if (status != STEPGRAPH_OK)
        return sg__fail_prefix(status, "node %u, '%s', cannot be run alone: ", v->footprint->index[index], sg__node_name(node));
    status = sg__instantiate(v->session, v->alone_graph, &v->alone);
    if (status != STEPGRAPH_OK)
        return status;
    SG__CU(driver, GraphLaunch, v->alone, v->session->stream);
    return STEPGRAPH_OK;

fail:
    return status;
}

/* And wait, so that a fault is that of this node. */
static stepgraph_status run_alone(sg__verify *v, uint32_t node, const char *how)
{
    stepgraph_status status = launch_alone(v, node);

    return status == STEPGRAPH_OK ? sg__verify_wait(v, "node %u, '%s', %s", v->footprint->index[node], sg__node_name(node_of(v, node)), how) : status;
}

/* The state as it is before the node at a place in the line, reached one by one. */
static stepgraph_status run_up_to(sg__verify *v, uint32_t place)
{
    stepgraph_status status = sg__verify_begin(v);

    for (uint32_t i = 0; i < place && status == STEPGRAPH_OK; i++)
        status = run_alone(v, v->line[i], "run alone");
    return status;
}

/* ---- what a node declares ---------------------------------------------------------------------------------------- */

static void mark(sg__verify *v, uint32_t range, unsigned char what)
{
    if (v->marks[range] < what)
        v->marks[range] = what;
}

/* Mark the ranges of a node, and list them. */
static size_t mark_node(sg__verify *v, uint32_t node)
{
    const sg__footprint *footprint = v->footprint;
    size_t n = 0;

    for (size_t i = v->first_access[node]; i < v->first_access[node + 1]; i++) {
        const sg__access *access = &footprint->accesses[i];
        for (size_t k = sg__memory_index(&v->memory, access->start); k < v->memory.n && v->memory.ranges[k].a < access->start + access->bytes; k++) {
            if (v->marks[k] == SG__RANGE_NONE)
                v->list[n++] = (uint32_t)k;
            mark(v, (uint32_t)k, access->write ? SG__RANGE_WRITTEN : SG__RANGE_READ);
        }
    }
    /* What it was seen to write as well. Otherwise all nodes behind it would be found to read something. */
    for (uint32_t i = 0; i < v->count_extra[node]; i++) {
        uint32_t range = v->extras[v->first_extra[node] + i];
        if (v->marks[range] == SG__RANGE_NONE)
            v->list[n++] = range;
        mark(v, range, SG__RANGE_WRITTEN);
    }
    return n;
}

static void unmark(sg__verify *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v->marks[v->list[i]] = SG__RANGE_NONE;
}

/* Whether a node declares an address, and through which argument; UINT32_MAX: not known. */
static bool declares(const sg__verify *v, uint32_t node, CUdeviceptr address, uint32_t *argument_out)
{
    const sg__footprint *footprint = v->footprint;

    *argument_out = UINT32_MAX;
    for (size_t i = v->first_access[node]; i < v->first_access[node + 1]; i++) {
        const sg__access *access = &footprint->accesses[i];
        if (address < access->start || address - access->start >= access->bytes)
            continue;
        if (footprint->touches[i].place == SG__WORD_ARGUMENT)
            *argument_out = footprint->touches[i].argument;
        return true;
    }
    return false;
}

/* ---- hidden writes ----------------------------------------------------------------------------------------------- */

static stepgraph_status add_extra(sg__verify *v, uint32_t node, uint32_t range)
{
    uint32_t *extras = sg__room(v->extras, &v->extras_room, v->n_extras + 1, 64, sizeof *extras);

    if (extras == NULL)
        return STEPGRAPH_ERR_MEMORY;
    v->extras = extras;
    if (v->count_extra[node]++ == 0)
        v->first_extra[node] = v->n_extras;
    v->extras[v->n_extras++] = range;
    return STEPGRAPH_OK;
}

/* Run all nodes, and note which ranges each changes that it does not declare to write. */
static stepgraph_status watch_writes(sg__verify *v)
{
    const uint32_t *line = v->line;
    uint32_t before = SG__HASH_BEFORE, now = SG__HASH_NOW;
    stepgraph_status status = sg__verify_begin(v);

    if (status == STEPGRAPH_OK)
        status = sg__memory_hash(&v->memory, before);
    for (uint32_t place = 0; place < v->footprint->n && status == STEPGRAPH_OK; place++) {
        uint32_t node = line[place], swap = before;
        bool looked_at = is_looked_at(v, node);
        size_t n = mark_node(v, node);
        status = run_alone(v, node, "run alone");
        if (status == STEPGRAPH_OK)
            status = sg__memory_hash(&v->memory, now);
        if (status == STEPGRAPH_OK)
            status = sg__memory_judge(&v->memory, now, before, v->marks, looked_at ? SG__RANGE_WRITTEN : SG__RANGE_NONE);
        if (status == STEPGRAPH_OK)
            status = sg__verify_wait(v, "comparing");
        unmark(v, n);
        if (status != STEPGRAPH_OK)
            break;
        v->sums[node] = sg__memory_judged(&v->memory).sum;
        v->report->summary.nodes_run += looked_at;
        for (size_t k = 0; sg__memory_judged(&v->memory).changed > 0 && k < v->memory.n && status == STEPGRAPH_OK; k++)
            if (sg__memory_hits(&v->memory)[k] != 0)
                status = add_extra(v, node, (uint32_t)k);
        before = now;
        now = swap;
        if (status == STEPGRAPH_OK && place % 64 == 0)
            status = sg__verify_progress(v, "writes");
    }
    /* All of them together are the recorded step. */
    if (status == STEPGRAPH_OK)
        status = sg__memory_judge(&v->memory, before, SG__HASH_STEPS, v->unsteady, SG__RANGE_READ);
    if (status == STEPGRAPH_OK)
        status = sg__verify_wait(v, "comparing");
    if (status == STEPGRAPH_OK && sg__memory_judged(&v->memory).changed > 0)
        status = sg__verify_locate(v, STEPGRAPH_VERIFY_ONE_BY_ONE, 0, 0);
    return status;
}

/* What a node wrote into some of its extra ranges, which were compared with the other image. */
static stepgraph_status note_writes(sg__verify *v, uint32_t node, const uint32_t *list, size_t n)
{
    const sg__difference *found = sg__memory_found(&v->memory);
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t k = 0; k < n && status == STEPGRAPH_OK; k++) {
        sg__verify_place place = {.node = node, .step = UINT64_MAX, .bytes = found[k].bytes};
        place.address = v->memory.ranges[list[k]].a + (found[k].bytes > 0 ? found[k].first : 0);
        status = sg__verify_note(v, declares(v, node, place.address, &place.argument) ? STEPGRAPH_VERIFY_FALSE_READ : STEPGRAPH_VERIFY_HIDDEN_WRITE,
                                 &place, NULL);
    }
    return status;
}

/* Once more, to see which bytes: before a node that writes more than it declares, all memory is copied. From now on its results are what it writes
 * there too. */
static stepgraph_status locate_writes(sg__verify *v)
{
    const uint32_t *line = v->line;
    stepgraph_status status = sg__verify_begin(v);

    for (uint32_t place = 0, done = 0; done < v->n_extras && status == STEPGRAPH_OK; place++) {
        uint32_t node = line[place], n = v->count_extra[node];
        const uint32_t *list = v->extras + v->first_extra[node];
        size_t declared;
        done += n;
        if (n == 0) {
            status = run_alone(v, node, "run alone");
            continue;
        }
        declared = mark_node(v, node);
        status = sg__memory_save(&v->memory, SG__IMAGE_OTHER);
        if (status == STEPGRAPH_OK)
            status = run_alone(v, node, "run alone");
        if (status == STEPGRAPH_OK)
            status = sg__memory_hash(&v->memory, SG__HASH_NOW);
        if (status == STEPGRAPH_OK)
            status = sg__memory_judge(&v->memory, SG__HASH_NOW, SG__HASH_NOW, v->marks, SG__RANGE_NONE);
        if (status == STEPGRAPH_OK)
            status = sg__memory_some(&v->memory, SG__COMPARE, list, n);
        if (status == STEPGRAPH_OK)
            status = sg__verify_wait(v, "comparing");
        unmark(v, declared);
        if (status == STEPGRAPH_OK)
            v->sums[node] = sg__memory_judged(&v->memory).sum;
        if (status == STEPGRAPH_OK && (v->config.flags & STEPGRAPH_VERIFY_NO_WRITES) == 0)
            status = note_writes(v, node, list, n);
    }
    return status;
}

/* ---- hidden reads ------------------------------------------------------------------------------------------------ */

/* Which nodes are isolated when not all are: spread evenly. */
static bool is_isolated(const sg__verify *v, uint32_t node, uint32_t *turn)
{
    uint32_t all = (uint32_t)v->report->summary.nodes_run, most = v->config.nodes, mine;

    if (!is_looked_at(v, node))
        return false;
    mine = (*turn)++;
    return most == 0 || most >= all || (uint64_t)(mine + 1) * most / all != (uint64_t)mine * most / all;
}

/* The first byte of a range that is not as it was filled, and how many are not. */
static stepgraph_status find_unfilled(sg__verify *v, uint32_t range, CUdeviceptr *address_out, uint64_t *bytes_out)
{
    unsigned char *chunk = malloc(SG__CHUNK_BYTES);
    const sg__range *whole = &v->memory.ranges[range];
    stepgraph_status status = STEPGRAPH_OK;

    *address_out = whole->a;
    *bytes_out = 0;
    if (chunk == NULL)
        return sg__fail_memory("host", SG__CHUNK_BYTES);
    for (uint64_t at = 0; at < whole->bytes && status == STEPGRAPH_OK; at += SG__CHUNK_BYTES) {
        size_t bytes = whole->bytes - at < SG__CHUNK_BYTES ? (size_t)(whole->bytes - at) : (size_t)SG__CHUNK_BYTES;
        SG__CU(v->session->driver, MemcpyDtoHAsync, chunk, whole->a + at, bytes, v->session->stream);
        status = sg__verify_wait(v, "reading memory");
        for (size_t i = 0; i < bytes && status == STEPGRAPH_OK; i++)
            if (chunk[i] != SG__MEMORY_FILL && (*bytes_out)++ == 0)
                *address_out = whole->a + at + i;
    }
fail:
    free(chunk);
    return status;
}

/* An isolated node wrote to memory that was filled: it does so without changing a byte where the step's own values stand. */
static stepgraph_status note_filled(sg__verify *v, uint32_t node, uint32_t *list)
{
    stepgraph_status status = STEPGRAPH_OK;
    size_t n = 0;

    for (size_t k = 0; k < v->memory.n; k++)
        if (sg__memory_hits(&v->memory)[k] != 0)
            list[n++] = (uint32_t)k;
    for (size_t k = 0; k < n && status == STEPGRAPH_OK && (v->config.flags & STEPGRAPH_VERIFY_NO_WRITES) == 0; k++) {
        sg__verify_place place = {.node = node, .argument = UINT32_MAX, .step = UINT64_MAX};
        status = find_unfilled(v, list[k], &place.address, &place.bytes);
        if (status == STEPGRAPH_OK)
            status = sg__verify_note(v, STEPGRAPH_VERIFY_HIDDEN_WRITE, &place, "over memory that was filled with 0xff");
    }
    if (status == STEPGRAPH_OK)
        status = sg__memory_some(&v->memory, SG__FILL, list, n);
    return status == STEPGRAPH_OK ? sg__verify_wait(v, "filling memory") : status;
}

/* Not even the same memory as before gives the same results. */
static stepgraph_status note_unsteady(sg__verify *v, uint32_t node)
{
    const sg__verify_place place = {.node = node, .argument = UINT32_MAX, .step = UINT64_MAX};

    return sg__verify_note(v, STEPGRAPH_VERIFY_UNSTEADY_NODE, &place, NULL);
}

static stepgraph_status note_result(sg__verify *v, uint32_t node, CUdeviceptr address, uint64_t bytes)
{
    sg__verify_place place = {.node = node, .address = address, .bytes = bytes, .step = UINT64_MAX};

    (void)declares(v, node, address, &place.argument);
    return sg__verify_note(v, STEPGRAPH_VERIFY_HIDDEN_READ, &place, NULL);
}

/* Nodes whose results are compared byte by byte, which takes a run of all nodes before; of the others the ranges are told that differ. */
#define LOCATED_MOST 16u

/* The node at a place came out otherwise than before. Run it again as it should be, and say in which ranges it is not the same. Memory is as it
 * is after the node then. */
static stepgraph_status note_reads_by_hash(sg__verify *v, uint32_t place, size_t n)
{
    uint32_t node = v->line[place];
    unsigned char *others = calloc(v->memory.n + 1, 1);
    stepgraph_status status = sg__memory_restore(&v->memory, SG__IMAGE_OTHER);

    if (others == NULL)
        return sg__fail_memory("host", v->memory.n);
    if (status == STEPGRAPH_OK)
        status = run_alone(v, node, "run alone");
    if (status == STEPGRAPH_OK)
        status = sg__memory_hash(&v->memory, SG__HASH_OTHER);
    if (status == STEPGRAPH_OK)
        status = sg__memory_judge(&v->memory, SG__HASH_OTHER, SG__HASH_OTHER, v->marks, SG__RANGE_NONE);
    if (status == STEPGRAPH_OK)
        status = sg__verify_wait(v, "comparing");
    if (status == STEPGRAPH_OK && sg__memory_judged(&v->memory).sum != v->sums[node]) {
        free(others);
        return note_unsteady(v, node);
    }
    for (size_t i = 0; i < v->memory.n; i++) /* Only what the node writes counts. */
        others[i] = v->marks[i] == SG__RANGE_WRITTEN ? SG__RANGE_NONE : SG__RANGE_WRITTEN;
    if (status == STEPGRAPH_OK)
        status = sg__memory_judge(&v->memory, SG__HASH_OTHER, SG__HASH_NOW, others, SG__RANGE_READ);
    if (status == STEPGRAPH_OK)
        status = sg__verify_wait(v, "comparing");
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++)
        if (sg__memory_hits(&v->memory)[v->list[i]] != 0)
            status = note_result(v, node, v->memory.ranges[v->list[i]].a, 0);
    free(others);
    return status;
}

/* The same byte by byte: all nodes run one by one from the beginning. */
static stepgraph_status note_reads(sg__verify *v, uint32_t place, size_t n)
{
    uint32_t node = v->line[place];
    uint32_t *list = v->list + v->memory.n;
    stepgraph_status status = sg__memory_save(&v->memory, SG__IMAGE_OTHER);
    size_t written = 0;

    for (size_t i = 0; i < n; i++)
        if (v->marks[v->list[i]] == SG__RANGE_WRITTEN)
            list[written++] = v->list[i];
    if (status == STEPGRAPH_OK)
        status = run_up_to(v, place + 1);
    if (status == STEPGRAPH_OK)
        status = sg__memory_hash(&v->memory, SG__HASH_NOW);
    if (status == STEPGRAPH_OK)
        status = sg__memory_judge(&v->memory, SG__HASH_NOW, SG__HASH_NOW, v->marks, SG__RANGE_NONE);
    if (status == STEPGRAPH_OK)
        status = sg__memory_some(&v->memory, SG__COMPARE, list, written);
    if (status == STEPGRAPH_OK)
        status = sg__verify_wait(v, "comparing");
    if (status != STEPGRAPH_OK)
        return status;
    if (sg__memory_judged(&v->memory).sum != v->sums[node])
        return note_unsteady(v, node);
    for (size_t k = 0; k < written && status == STEPGRAPH_OK; k++) {
        const sg__difference found = sg__memory_found(&v->memory)[k];
        if (found.bytes > 0)
            status = note_result(v, node, v->memory.ranges[list[k]].a + found.first, found.bytes);
    }
    return status;
}

/* One node with everything else filled. *natural: memory is as it is after the node, and not filled. */
static stepgraph_status isolate(sg__verify *v, uint32_t place, bool *natural)
{
    uint32_t node = v->line[place];
    size_t n = mark_node(v, node), written = 0;
    uint32_t *list = v->list + v->memory.n;
    stepgraph_status status = sg__memory_some(&v->memory, SG__FETCH, v->list, n);

    if (status == STEPGRAPH_OK)
        status = run_alone(v, node, "run while all memory that it does not declare was filled with 0xff");
    if (status == STEPGRAPH_OK)
        status = sg__memory_hash(&v->memory, SG__HASH_NOW);
    if (status == STEPGRAPH_OK)
        status = sg__memory_judge(&v->memory, SG__HASH_NOW, SG__HASH_BEFORE, v->marks, SG__RANGE_READ);
    if (status == STEPGRAPH_OK)
        status = sg__verify_wait(v, "comparing");
    if (status == STEPGRAPH_OK) {
        bool wrote = sg__memory_judged(&v->memory).changed > 0, other = sg__memory_judged(&v->memory).sum != v->sums[node];
        v->report->summary.nodes_isolated++;
        if (wrote)
            status = note_filled(v, node, list);
        if (status == STEPGRAPH_OK && other) {
            *natural = true;
            status = v->located++ < LOCATED_MOST ? note_reads(v, place, n) : note_reads_by_hash(v, place, n);
        } else if (status == STEPGRAPH_OK) {
            for (size_t i = 0; i < n; i++)
                if (v->marks[v->list[i]] == SG__RANGE_WRITTEN)
                    list[written++] = v->list[i];
            status = sg__memory_some(&v->memory, SG__STORE, list, written);
            if (status == STEPGRAPH_OK)
                status = sg__memory_some(&v->memory, SG__FILL, v->list, n);
            if (status == STEPGRAPH_OK)
                status = sg__verify_wait(v, "filling memory");
        }
    }
    unmark(v, n);
    return status;
}

static stepgraph_status watch_reads(sg__verify *v)
{
    stepgraph_status status = sg__verify_begin(v);
    bool natural = true;
    uint32_t turn = 0;

    for (uint32_t place = 0; place < v->footprint->n && status == STEPGRAPH_OK; place++) {
        uint32_t node = v->line[place];
        bool isolated = is_isolated(v, node, &turn);
        if (isolated && natural) {
            status = sg__memory_save(&v->memory, SG__IMAGE_OTHER);
            if (status == STEPGRAPH_OK)
                status = sg__memory_fill(&v->memory);
            if (status == STEPGRAPH_OK)
                status = sg__memory_hash(&v->memory, SG__HASH_BEFORE);
        } else if (!isolated && !natural) {
            status = sg__memory_restore(&v->memory, SG__IMAGE_OTHER);
        }
        natural = !isolated;
        if (status == STEPGRAPH_OK)
            status = isolated ? isolate(v, place, &natural) : run_alone(v, node, "run alone");
        if (status == STEPGRAPH_OK && place % 64 == 0)
            status = sg__verify_progress(v, "isolation");
    }
    return status;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

stepgraph_status sg__verify_nodes(sg__verify *v)
{
    uint32_t against = 0;
    const char *why = obstacle(v, &against);
    stepgraph_status status = STEPGRAPH_OK;

    if ((v->config.flags & STEPGRAPH_VERIFY_NO_WRITES) != 0 && (v->config.flags & STEPGRAPH_VERIFY_NO_ISOLATION) != 0)
        return STEPGRAPH_OK;
    if (why != NULL) {
        const sg__verify_place place = {.node = against, .argument = UINT32_MAX, .step = UINT64_MAX};
        return sg__verify_note(v, STEPGRAPH_VERIFY_SKIPPED, &place, why);
    }
    /* Isolation needs it too: the results that it compares with. */
    status = watch_writes(v);
    if (status == STEPGRAPH_OK && v->n_extras > 0)
        status = locate_writes(v);
    if (status == STEPGRAPH_OK && (v->config.flags & STEPGRAPH_VERIFY_NO_ISOLATION) == 0)
        status = watch_reads(v);
    drop_alone(v);
    return status;
}
