/* Which node comes after which. */
#include <stdlib.h>

#include "../error.h"
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

/* Put the edges between these handles behind those that are there. */
static stepgraph_status add(sg__graph_edges *out, finder *f, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    sg__graph_edge *larger = realloc(out->items, (out->n + n + 1) * sizeof *larger);

    if (larger == NULL)
        return sg__fail_memory("host", (out->n + n + 1) * sizeof *larger);
    out->items = larger;
    for (size_t i = 0; i < n; i++) {
        sg__graph_edge edge;
        if (index_of(f, from[i], &edge.from) && index_of(f, to[i], &edge.to))
            out->items[out->n++] = edge;
        else if (f->slots == NULL)
            return sg__fail_memory("host", f->room * sizeof *f->slots);
    }
    return STEPGRAPH_OK;
}

/* The edges of one graph, without those of its child graphs. A graph of n nodes seldom has more than n edges, so it is asked for that many at
 * once, and not first for their number. */
static stepgraph_status read_edges(const sg__driver *driver, CUgraph graph, finder *f, sg__graph_edges *out)
{
    size_t room = f->graph->n_nodes + 16, n = room;
    CUgraphNode *from = malloc(room * sizeof(CUgraphNode)), *to = malloc(room * sizeof(CUgraphNode));
    CUresult code = CUDA_SUCCESS;
    stepgraph_status status;

    if (from != NULL && to != NULL)
        code = driver->GraphGetEdges(graph, from, to, &n);
    if (from != NULL && to != NULL && code == CUDA_SUCCESS && n == room) { /* Perhaps there are more. */
        SG__CU(driver, GraphGetEdges, graph, NULL, NULL, &n);
        free(from);
        free(to);
        from = malloc(n * sizeof(CUgraphNode));
        to = malloc(n * sizeof(CUgraphNode));
        room = n;
        if (from != NULL && to != NULL)
            code = driver->GraphGetEdges(graph, from, to, &n);
    }
    if (from == NULL || to == NULL)
        status = sg__fail_memory("host", 2 * room * sizeof(CUgraphNode));
    else if (code == CUDA_SUCCESS)
        status = add(out, f, from, to, n);
    else
        status = code == CUDA_ERROR_LOSSY_QUERY ? STEPGRAPH_OK : sg__fail_driver(driver, "cuGraphGetEdges", code);
    out->partial |= code == CUDA_ERROR_LOSSY_QUERY; /* Programmatic launches: this call does not tell the edges of such a graph. */
fail:
    free(from);
    free(to);
    return status;
}

stepgraph_status sg__graph_edges_read(const sg__driver *driver, const sg__graph *graph, sg__graph_edges *out)
{
    finder f = {.graph = graph};
    stepgraph_status status;
    CUgraph child;

    *out = (sg__graph_edges){0};
    status = read_edges(driver, graph->handle, &f, out);
    for (size_t i = 0; i < graph->n_nodes && status == STEPGRAPH_OK; i++)
        if (graph->nodes[i].type == CU_GRAPH_NODE_TYPE_GRAPH) {
            SG__CU(driver, GraphChildGraphNodeGetGraph, graph->nodes[i].handle, &child);
            status = read_edges(driver, child, &f, out);
        }
fail:
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
