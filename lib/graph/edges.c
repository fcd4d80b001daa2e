/* Which node comes after which. */
#include <stdlib.h>

#include "../error.h"
#include "graph.h"

typedef struct place {
    CUgraphNode handle;
    uint32_t index;
} place;

static int by_handle(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const place *)a)->handle, y = (uintptr_t)((const place *)b)->handle;

    return x < y ? -1 : x > y;
}

static int by_nodes(const void *a, const void *b)
{
    const sg__graph_edge *x = a, *y = b;

    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static bool index_of(const place *places, size_t n, CUgraphNode handle, uint32_t *index_out)
{
    const place wanted = {.handle = handle};
    const place *found = bsearch(&wanted, places, n, sizeof *places, by_handle);

    if (found != NULL)
        *index_out = found->index;
    return found != NULL;
}

/* Put the edges between these handles behind those that are there. */
static stepgraph_status add(sg__graph_edges *out, const place *places, size_t n_places, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    sg__graph_edge *larger = realloc(out->items, (out->n + n + 1) * sizeof *larger);

    if (larger == NULL)
        return sg__fail_memory("host", (out->n + n + 1) * sizeof *larger);
    out->items = larger;
    for (size_t i = 0; i < n; i++) {
        sg__graph_edge edge;
        if (index_of(places, n_places, from[i], &edge.from) && index_of(places, n_places, to[i], &edge.to))
            out->items[out->n++] = edge;
    }
    return STEPGRAPH_OK;
}

/* The edges of one graph, without those of its child graphs. */
static stepgraph_status read_edges(const sg__driver *driver, CUgraph graph, const place *places, size_t n_places, sg__graph_edges *out)
{
    CUgraphNode *from = NULL, *to = NULL;
    stepgraph_status status;
    size_t n = 0;
    CUresult code;

    SG__CU(driver, GraphGetEdges, graph, NULL, NULL, &n);
    if (n == 0)
        return STEPGRAPH_OK;
    from = malloc(n * sizeof(CUgraphNode));
    to = malloc(n * sizeof(CUgraphNode));
    code = from != NULL && to != NULL ? driver->GraphGetEdges(graph, from, to, &n) : CUDA_SUCCESS;
    if (from == NULL || to == NULL)
        status = sg__fail_memory("host", 2 * n * sizeof(CUgraphNode));
    else if (code == CUDA_SUCCESS)
        status = add(out, places, n_places, from, to, n);
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
    place *places = malloc((graph->n_nodes + 1) * sizeof *places);
    stepgraph_status status;
    CUgraph child;

    *out = (sg__graph_edges){0};
    if (places == NULL)
        return sg__fail_memory("host", (graph->n_nodes + 1) * sizeof *places);
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        places[i] = (place){.handle = graph->nodes[i].handle, .index = i};
    qsort(places, graph->n_nodes, sizeof *places, by_handle);

    status = read_edges(driver, graph->handle, places, graph->n_nodes, out);
    for (size_t i = 0; i < graph->n_nodes && status == STEPGRAPH_OK; i++)
        if (graph->nodes[i].type == CU_GRAPH_NODE_TYPE_GRAPH) {
            SG__CU(driver, GraphChildGraphNodeGetGraph, graph->nodes[i].handle, &child);
            status = read_edges(driver, child, places, graph->n_nodes, out);
        }
    if (out->n > 0)
        qsort(out->items, out->n, sizeof *out->items, by_nodes);
fail:
    free(places);
    return status;
}

void sg__graph_edges_free(sg__graph_edges *edges)
{
    free(edges->items);
    *edges = (sg__graph_edges){0};
}
