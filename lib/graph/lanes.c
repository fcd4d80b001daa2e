/* An order laid out: on a few lanes, or in one line. */
#include <stdlib.h>
#include <string.h>

#include "../error.h"
#include "dag.h"
#include "order.h"

#define NO_NODE UINT32_MAX

/* The edges of an order between places of its line, with room for more. */
static sg__graph_edge *edges_by_place(const sg__order *order, const uint32_t *place, size_t more)
{
    sg__graph_edge *edges = malloc((order->n_edges + more + 1) * sizeof *edges);

    for (size_t i = 0; edges != NULL && i < order->n_edges; i++)
        edges[i] = (sg__graph_edge){.from = place[order->edges[i].from], .to = place[order->edges[i].to]};
    return edges;
}

static uint32_t *places(const sg__order *order)
{
    uint32_t *place = malloc(((size_t)order->n + 1) * sizeof *place);

    for (uint32_t i = 0; place != NULL && i < order->n; i++)
        place[order->line[i]] = i;
    return place;
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

/* Nodes and edges by number. */
typedef struct layout {
    uint32_t n, lanes;
    sg__dag_lists later, earlier;
    uint32_t *waits;   /* How many nodes each still waits for. */
    uint32_t *way;     /* Nodes on the longest way from each to an end, itself included. */
    uint32_t *lane_of; /* Of nodes that are laid out. */
    uint32_t *end;     /* Last node of each lane. */
    uint32_t *picked;  /* Nodes of this round. */
    bool *taken;       /* Lanes of this round. */
    sg__heap ready;
    sg__graph_edge *chain; /* From each node to the next on its lane. */
    size_t n_chain;
} layout;

static void make_ready(layout *l, uint32_t node)
{
    sg__heap_push(&l->ready, (uint64_t)l->way[node] << 32 | (UINT32_MAX - node));
}

/* The free lane that ends with a node that this one waits for, or `lanes`. */
static uint32_t lane_behind(const layout *l, uint32_t node)
{
    for (size_t i = l->earlier.first[node]; i < l->earlier.first[node + 1]; i++) {
        uint32_t lane = l->lane_of[l->earlier.later[i]];
        if (l->end[lane] == l->earlier.later[i] && !l->taken[lane])
            return lane;
    }
    return l->lanes;
}

static void put(layout *l, uint32_t node, uint32_t lane)
{
    l->lane_of[node] = lane;
    l->taken[lane] = true;
}

/* Round by round, as if all nodes took the same time. A node goes on behind one that it waits for, which saves an edge between
 * lanes. */
static void lay_out(layout *l, uint32_t *line)
{
    uint32_t placed = 0;

    for (uint32_t i = 0; i < l->n; i++)
        if (l->waits[i] == 0)
            make_ready(l, i);
    while (l->ready.n > 0) {
        uint32_t n_picked = 0, free_lane = 0;
        for (; n_picked < l->lanes && l->ready.n > 0; n_picked++)
            l->picked[n_picked] = UINT32_MAX - (uint32_t)sg__heap_pop(&l->ready);
        memset(l->taken, 0, l->lanes * sizeof *l->taken);
        for (uint32_t i = 0; i < n_picked; i++) {
            uint32_t lane = lane_behind(l, l->picked[i]);
            l->lane_of[l->picked[i]] = lane;
            if (lane < l->lanes)
                put(l, l->picked[i], lane);
        }
        for (uint32_t i = 0; i < n_picked; i++) {
            uint32_t node = l->picked[i];
            if (l->lane_of[node] == l->lanes) {
                while (l->taken[free_lane])
                    free_lane++;
                put(l, node, free_lane);
            }
            line[placed++] = node;
        }
        for (uint32_t i = 0; i < n_picked; i++) {
            uint32_t node = l->picked[i], *end = &l->end[l->lane_of[node]];
            if (*end != NO_NODE)
                l->chain[l->n_chain++] = (sg__graph_edge){.from = *end, .to = node};
            *end = node;
            for (size_t k = l->later.first[node]; k < l->later.first[node + 1]; k++)
                if (--l->waits[l->later.later[k]] == 0)
                    make_ready(l, l->later.later[k]);
        }
    }
}

static stepgraph_status layout_make(layout *l, const sg__order *needed, uint32_t lanes)
{
    size_t n = (size_t)needed->n + 1;
    sg__graph_edge *turned = malloc((needed->n_edges + 1) * sizeof *turned);
    stepgraph_status status = STEPGRAPH_OK;

    *l = (layout){.n = needed->n, .lanes = lanes < needed->n ? lanes : needed->n};
    l->waits = calloc(n, sizeof *l->waits);
    l->way = malloc(n * sizeof *l->way);
    l->lane_of = malloc(n * sizeof *l->lane_of);
    l->end = malloc(((size_t)l->lanes + 1) * sizeof *l->end);
    l->picked = malloc(((size_t)l->lanes + 1) * sizeof *l->picked);
    l->taken = malloc((size_t)l->lanes + 1);
    l->ready.items = malloc(n * sizeof *l->ready.items);
    l->chain = malloc(n * sizeof *l->chain);
    if (turned == NULL || l->waits == NULL || l->way == NULL || l->lane_of == NULL || l->end == NULL || l->picked == NULL ||
        l->taken == NULL || l->ready.items == NULL || l->chain == NULL)
        status = sg__fail_memory("host", n * 5 * sizeof(uint64_t) + needed->n_edges * sizeof *turned);
    for (size_t i = 0; status == STEPGRAPH_OK && i < needed->n_edges; i++)
        turned[i] = (sg__graph_edge){.from = needed->edges[i].to, .to = needed->edges[i].from};
    if (status == STEPGRAPH_OK)
        status = sg__dag_lists_make(needed->n, needed->edges, needed->n_edges, &l->later);
    if (status == STEPGRAPH_OK)
        status = sg__dag_lists_make(needed->n, turned, needed->n_edges, &l->earlier);
    free(turned);
    if (status != STEPGRAPH_OK)
        return status;

    for (uint32_t i = 0; i < l->lanes; i++)
        l->end[i] = NO_NODE;
    for (size_t i = 0; i < needed->n_edges; i++)
        l->waits[needed->edges[i].to]++;
    for (uint32_t i = needed->n; i-- > 0;) {
        uint32_t node = needed->line[i], longest = 0;
        for (size_t k = l->later.first[node]; k < l->later.first[node + 1]; k++)
            if (l->way[l->later.later[k]] > longest)
                longest = l->way[l->later.later[k]];
        l->way[node] = longest + 1;
    }
    return STEPGRAPH_OK;
}

static void layout_free(layout *l)
{
    sg__dag_lists_free(&l->later);
    sg__dag_lists_free(&l->earlier);
    free(l->waits);
    free(l->way);
    free(l->lane_of);
    free(l->end);
    free(l->picked);
    free(l->taken);
    free(l->ready.items);
    free(l->chain);
}

/* Sort and reduce edges between places, and put them into an order by number. */
static stepgraph_status finish(sg__order *order, sg__graph_edge *edges, size_t n_edges)
{
    stepgraph_status status = sg__dag_sort(order->n, edges, &n_edges);

    if (status == STEPGRAPH_OK)
        status = sg__dag_reduce(order->n, edges, &n_edges);
    if (status == STEPGRAPH_OK)
        status = sg__dag_path(order->n, edges, n_edges, &order->path);
    for (size_t i = 0; i < n_edges; i++)
        edges[i] = (sg__graph_edge){.from = order->line[edges[i].from], .to = order->line[edges[i].to]};
    order->edges = edges;
    order->n_edges = n_edges;
    return status;
}

stepgraph_status sg__order_lanes(const sg__order *needed, uint32_t lanes, sg__order *out, uint32_t *lane_of)
{
    sg__order order = {.n = needed->n};
    sg__graph_edge *edges = NULL;
    uint32_t *place = NULL;
    stepgraph_status status;
    layout l;

    if (lanes == 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no lanes to lay %u nodes out on", needed->n);
    status = layout_make(&l, needed, lanes);
    order.line = malloc(((size_t)needed->n + 1) * sizeof *order.line);
    if (status == STEPGRAPH_OK && order.line == NULL)
        status = sg__fail_memory("host", needed->n * sizeof *order.line);
    if (status == STEPGRAPH_OK) {
        lay_out(&l, order.line);
        place = places(&order);
        edges = place != NULL ? edges_by_place(needed, place, l.n_chain) : NULL;
        if (edges == NULL)
            status = sg__fail_memory("host", needed->n * sizeof *place + (needed->n_edges + l.n_chain) * sizeof *edges);
    }
    if (status == STEPGRAPH_OK) {
        for (size_t i = 0; i < l.n_chain; i++)
            edges[needed->n_edges + i] = (sg__graph_edge){.from = place[l.chain[i].from], .to = place[l.chain[i].to]};
        status = finish(&order, edges, needed->n_edges + l.n_chain);
    }
    free(place);
    if (status == STEPGRAPH_OK) {
        *out = order;
        if (lane_of != NULL)
            memcpy(lane_of, l.lane_of, needed->n * sizeof *lane_of);
    } else {
        free(edges);
        free(order.line);
    }
    layout_free(&l);
    return status;
}

/* ---- one line ---------------------------------------------------------------------------------------------------- */

/* Every bit depends on all of both numbers. */
static uint32_t shuffled(uint64_t seed, uint32_t node)
{
    uint64_t x = seed + node * 0x9e3779b97f4a7c15ull;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)(x ^ x >> 31);
}

stepgraph_status sg__order_line(const sg__order *order, uint64_t seed, uint32_t *line)
{
    uint32_t *keys = malloc(((size_t)order->n + 1) * sizeof *keys), placed;
    sg__dag_lists lists = {0};
    stepgraph_status status;

    if (keys == NULL)
        return sg__fail_memory("host", order->n * sizeof *keys);
    for (uint32_t i = 0; i < order->n; i++)
        keys[i] = seed == 0 ? i : shuffled(seed, i);
    status = sg__dag_lists_make(order->n, order->edges, order->n_edges, &lists);
    if (status == STEPGRAPH_OK)
        status = sg__dag_line(order->n, &lists, keys, line, &placed);
    sg__dag_lists_free(&lists);
    free(keys);
    return status;
}
