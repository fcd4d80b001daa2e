/* Which node comes after which. */
#include <stdlib.h>

#include "../error.h"
#include "../room.h"
#include "graph.h"

/* Finds a node's index by its handle. Edges mostly lead from one node to the next, so the neighbours of the last one are tried first, and
 * the table is made when they were not it. */
typedef struct finder {
    const sg__graph *graph;
    size_t last;
    uint32_t *slots; /* Index plus 1; 0: free. */
    size_t room;     /* A power of two. */
} finder;

static size_t slot_of(const finder *f, CUgraphNode handle)
{
    return (((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15ull >> 32) & (f->room - 1);
}

static bool make_table(finder *f)
{
    for (f->room = 64; f->room < 2 * f->graph->n_nodes;)
        f->room *= 2;
    f->slots = calloc(f->room, sizeof *f->slots);
    if (f->slots == NULL)
        return false;
    for (uint32_t i = 0; i < f->graph->n_nodes; i++) {
        size_t at = slot_of(f, f->graph->nodes[i].handle);
        while (f->slots[at] != 0)
            at = (at + 1) & (f->room - 1);
        f->slots[at] = i + 1;
    }
    return true;
}

/* False: there is no such node, or no host memory, and then no table. */
static bool index_of(finder *f, CUgraphNode handle, uint32_t *index_out)
{
    const sg__graph_node *nodes = f->graph->nodes;
    size_t n = f->graph->n_nodes, at;

    for (size_t i = f->last; i < n && i < f->last + 2; i++)
        if (nodes[i].handle == handle) {
            *index_out = (uint32_t)(f->last = i);
            return true;
        }
    if (f->slots == NULL && !make_table(f))
        return false;
    for (at = slot_of(f, handle); f->slots[at] != 0; at = (at + 1) & (f->room - 1))
        if (nodes[f->slots[at] - 1].handle == handle) {
            *index_out = (uint32_t)(f->last = f->slots[at] - 1);
            return true;
        }
    return false;
}

static stepgraph_status add(sg__graph_edges *out, sg__graph_edge edge)
{
    sg__graph_edge *items = sg__room(out->items, &out->room, out->n + 1, 64, sizeof *items);

    if (items == NULL)
        return STEPGRAPH_ERR_MEMORY;
    out->items = items;
    out->items[out->n++] = edge;
    return STEPGRAPH_OK;
}

/* From a node that the driver names. One that is not of the graph is left out. */
static stepgraph_status add_from(finder *f, CUgraphNode from, uint32_t to, sg__graph_edges *out)
{
    sg__graph_edge edge = {.to = to};

    if (index_of(f, from, &edge.from))
        return add(out, edge);
    return f->slots == NULL ? sg__fail_memory("host", f->room * sizeof *f->slots) : STEPGRAPH_OK;
}

/* The order of the edges does not count. */
static uint64_t print_of(sg__graph_edge edge, CUgraphEdgeData data)
{
    const uint64_t kind = data.type | (uint64_t)data.from_port << 8 | (uint64_t)data.to_port << 16, ends = edge.from | (uint64_t)edge.to << 32;

    return kind != 0 ? (ends * 0x9e3779b97f4a7c15ull ^ kind) * 0xd6e8feb86659fd93ull : 0;
}

/* The same of a node that comes after a programmatic launch, whose edges are not all told by the ordinary question. */
static stepgraph_status add_programmatic(const sg__driver *driver, finder *f, uint32_t node, sg__graph_edges *out)
{
    CUgraphNode handle = f->graph->nodes[node].handle, *from = NULL;
    CUgraphEdgeData *data = NULL;
    stepgraph_status status;
    size_t n = 0;

    out->programmatic = true;
    out->partial = driver->GraphNodeGetDependencies_v2 == NULL;
    if (out->partial)
        return STEPGRAPH_OK;
    SG__CU(driver, GraphNodeGetDependencies_v2, handle, NULL, NULL, &n);
    from = malloc(n * sizeof *from);
    data = calloc(n, sizeof *data);
    if (from == NULL || data == NULL) {
        status = sg__fail_memory("host", n * (sizeof *from + sizeof *data));
        goto fail;
    }
    SG__CU(driver, GraphNodeGetDependencies_v2, handle, from, data, &n);
    status = STEPGRAPH_OK;
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++) {
        const size_t before = out->n;
        status = add_from(f, from[i], node, out);
        if (status == STEPGRAPH_OK && out->n > before)
            out->kinds += print_of(out->items[before], data[i]);
    }

fail:
    free(from);
    free(data);
    return status;
}

/* The nodes that one comes after, put behind the edges that are there. The driver is asked node by node: for all
 * edges of a graph at once, a card's seems to take a time that grows faster than their number. */
static stepgraph_status add_node(const sg__driver *driver, finder *f, uint32_t node, sg__graph_edges *out)
{
    CUgraphNode few[16], *from = few, handle = f->graph->nodes[node].handle;
    size_t n = sizeof few / sizeof *few;
    CUresult code = driver->GraphNodeGetDependencies(handle, few, &n);
    stepgraph_status status = STEPGRAPH_OK;

    if (code == CUDA_SUCCESS && n == sizeof few / sizeof *few) { /* Perhaps there are more. */
        SG__CU(driver, GraphNodeGetDependencies, handle, NULL, &n);
        from = malloc(n * sizeof *from);
        if (from == NULL)
            return sg__fail_memory("host", n * sizeof *from);
        code = driver->GraphNodeGetDependencies(handle, from, &n);
    }
    if (code == CUDA_ERROR_LOSSY_QUERY)
        status = add_programmatic(driver, f, node, out);
    else if (code != CUDA_SUCCESS)
        status = sg__fail_driver(driver, "cuGraphNodeGetDependencies", code);
    for (size_t i = 0; i < n && code == CUDA_SUCCESS && status == STEPGRAPH_OK; i++)
        status = add_from(f, from[i], node, out);
fail:
    if (from != few)
        free(from);
    return status;
}

stepgraph_status sg__graph_edges_read(const sg__driver *driver, const sg__graph *graph, sg__graph_edges *out)
{
    finder f = {.graph = graph};
    stepgraph_status status = STEPGRAPH_OK;

    *out = (sg__graph_edges){0};
    for (uint32_t i = 0; i < graph->n_nodes && status == STEPGRAPH_OK && !out->partial; i++) {
        f.last = i > 0 ? i - 1 : 0;
        status = add_node(driver, &f, i, out);
    }
    free(f.slots);
    return status;
}

static int by_nodes(const void *a, const void *b)
{
    const sg__graph_edge *x = a, *y = b;

    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

void sg__graph_edges_sort(sg__graph_edges *edges)
{
    if (edges->n > 0)
        qsort(edges->items, edges->n, sizeof *edges->items, by_nodes);
}

void sg__graph_edges_free(sg__graph_edges *edges)
{
    free(edges->items);
    *edges = (sg__graph_edges){0};
}
