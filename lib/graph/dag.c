#include "dag.h"

#include <stdlib.h>
#include <string.h>

#include "../error.h"

/* ---- lists ------------------------------------------------------------------------------------------------------- */

stepgraph_status sg__dag_lists_make(uint32_t n, const sg__graph_edge *edges, size_t n_edges, sg__dag_lists *out)
{
    size_t *first = calloc((size_t)n + 2, sizeof *first);

    out->first = first;
    out->later = malloc((n_edges + 1) * sizeof *out->later);
    if (first == NULL || out->later == NULL) {
        sg__dag_lists_free(out);
        return sg__fail_memory("host", n * sizeof *first + n_edges * sizeof *out->later);
    }
    for (size_t i = 0; i < n_edges; i++) /* Two ahead, so that filling in moves every beginning to where it belongs. */
        first[(size_t)edges[i].from + 2]++;
    for (size_t i = 2; i < (size_t)n + 2; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; i < n_edges; i++)
        out->later[first[(size_t)edges[i].from + 1]++] = edges[i].to;
    return STEPGRAPH_OK;
}

void sg__dag_lists_free(sg__dag_lists *lists)
{
    free(lists->first);
    free(lists->later);
    *lists = (sg__dag_lists){0};
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

void sg__heap_push(sg__heap *heap, uint64_t item)
{
    size_t at = heap->n++;

    for (; at > 0 && heap->items[(at - 1) / 2] < item; at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = item;
}

uint64_t sg__heap_pop(sg__heap *heap)
{
    uint64_t top = heap->items[0], item = heap->items[--heap->n];
    size_t at = 0, below;

    for (; (below = 2 * at + 1) < heap->n; at = below) {
        if (below + 1 < heap->n && heap->items[below + 1] > heap->items[below])
            below++;
        if (heap->items[below] <= item)
            break;
        heap->items[at] = heap->items[below];
    }
    heap->items[at] = item;
    return top;
}

static uint64_t heap_item(const uint32_t *keys, uint32_t node)
{
    return (keys != NULL ? (uint64_t)keys[node] << 32 : 0) | (UINT32_MAX - node);
}

stepgraph_status sg__dag_line(uint32_t n, const sg__dag_lists *lists, const uint32_t *keys, uint32_t *line, uint32_t *placed_out)
{
    uint32_t *waits = calloc((size_t)n + 1, sizeof *waits), placed = 0;
    sg__heap heap = {malloc(((size_t)n + 1) * sizeof *heap.items), 0};

    if (waits == NULL || heap.items == NULL) {
        free(waits);
        free(heap.items);
        return sg__fail_memory("host", n * (sizeof *waits + sizeof *heap.items));
    }
    for (size_t i = 0; i < lists->first[n]; i++)
        waits[lists->later[i]]++;
    for (uint32_t i = 0; i < n; i++)
        if (waits[i] == 0)
            sg__heap_push(&heap, heap_item(keys, i));
    while (heap.n > 0) {
        uint32_t node = UINT32_MAX - (uint32_t)sg__heap_pop(&heap);
        line[placed++] = node;
        for (size_t i = lists->first[node]; i < lists->first[node + 1]; i++)
            if (--waits[lists->later[i]] == 0)
                sg__heap_push(&heap, heap_item(keys, lists->later[i]));
    }
    free(waits);
    free(heap.items);
    *placed_out = placed;
    return STEPGRAPH_OK;
}

/* ---- edges between places ---------------------------------------------------------------------------------------- */

/* Stable, by the number of one of their nodes. */
static void count_sort(uint32_t n, const sg__graph_edge *in, size_t n_edges, bool by_later, sg__graph_edge *out, size_t *first)
{
    memset(first, 0, ((size_t)n + 1) * sizeof *first);
    for (size_t i = 0; i < n_edges; i++)
        first[(by_later ? in[i].to : n - 1 - in[i].from) + 1]++;
    for (size_t i = 1; i <= n; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; i < n_edges; i++)
        out[first[by_later ? in[i].to : n - 1 - in[i].from]++] = in[i];
}

stepgraph_status sg__dag_sort(uint32_t n, sg__graph_edge *edges, size_t *n_edges)
{
    sg__graph_edge *other = malloc((*n_edges + 1) * sizeof *other);
    size_t *first = malloc(((size_t)n + 1) * sizeof *first), kept = 0;

    if (other == NULL || first == NULL) {
        free(other);
        free(first);
        return sg__fail_memory("host", *n_edges * sizeof *other + n * sizeof *first);
    }
    count_sort(n, edges, *n_edges, false, other, first);
    count_sort(n, other, *n_edges, true, edges, first);
    for (size_t i = 0; i < *n_edges; i++)
        if (kept == 0 || edges[i].from != edges[kept - 1].from || edges[i].to != edges[kept - 1].to)
            edges[kept++] = edges[i];
    *n_edges = kept;
    free(other);
    free(first);
    return STEPGRAPH_OK;
}

/*
 * Find the edges from places low to high that others imply. A row of bits for each later place says which of these places come
 * before it. An edge is implied if its earlier node is in the row that the nearer edges make, since only from a nearer node can
 * there be another way to it.
 */
static void reduce_window(uint32_t n, const sg__graph_edge *edges, size_t n_edges, uint32_t low, uint32_t high, uint64_t *rows,
                          bool *implied)
{
    size_t words = (high - low + 63) / 64, i = 0;

    memset(rows, 0, (n - low) * words * sizeof *rows);
    while (i < n_edges && edges[i].to <= low)
        i++;
    for (; i < n_edges; i++) {
        uint32_t from = edges[i].from;
        uint64_t *row = rows + (edges[i].to - low) * words;
        if (from < low || implied[i])
            continue;
        if (from < high) {
            uint64_t bit = (uint64_t)1 << (from - low) % 64;
            if ((row[(from - low) / 64] & bit) != 0) {
                implied[i] = true;
                continue;
            }
            row[(from - low) / 64] |= bit;
        }
        for (size_t k = 0; k < words; k++)
            row[k] |= rows[(from - low) * words + k];
    }
}

stepgraph_status sg__dag_reduce(uint32_t n, sg__graph_edge *edges, size_t *n_edges)
{
    size_t room = SG__DAG_BITS_BYTES / sizeof(uint64_t), words = n > 0 ? room / n : 0, kept = 0;
    uint64_t *rows;
    bool *implied;

    if (*n_edges < 3) /* Three make the smallest detour. */
        return STEPGRAPH_OK;
    if (words > ((size_t)n + 63) / 64)
        words = ((size_t)n + 63) / 64;
    if (words == 0)
        words = 1;
    rows = malloc(n * words * sizeof *rows);
    implied = calloc(*n_edges, sizeof *implied);
    if (rows == NULL || implied == NULL) {
        free(rows);
        free(implied);
        return sg__fail_memory("host", n * words * sizeof *rows + *n_edges);
    }
    /* From the end of the line: edges that are implied further back need no looking at. */
    for (size_t windows = (n + words * 64 - 1) / (words * 64); windows-- > 0;) {
        size_t low = windows * words * 64, high = low + words * 64;
        reduce_window(n, edges, *n_edges, (uint32_t)low, high < n ? (uint32_t)high : n, rows, implied);
    }
    for (size_t i = 0; i < *n_edges; i++)
        if (!implied[i])
            edges[kept++] = edges[i];
    *n_edges = kept;
    free(rows);
    free(implied);
    return STEPGRAPH_OK;
}

stepgraph_status sg__dag_path(uint32_t n, const sg__graph_edge *sorted, size_t n_edges, uint32_t *path_out)
{
    uint32_t *depth = calloc((size_t)n + 1, sizeof *depth), deepest = 0;

    if (depth == NULL)
        return sg__fail_memory("host", n * sizeof *depth);
    for (size_t i = 0; i < n_edges; i++)
        if (depth[sorted[i].to] <= depth[sorted[i].from])
            depth[sorted[i].to] = depth[sorted[i].from] + 1;
    for (uint32_t i = 0; i < n; i++)
        if (depth[i] > deepest)
            deepest = depth[i];
    *path_out = n > 0 ? deepest + 1 : 0;
    free(depth);
    return STEPGRAPH_OK;
}
