#include "order.h"

#include <stdlib.h>
#include <string.h>

#include "../error.h"
#include "../room.h"
#include "dag.h"

/* Bytes that nodes name: from the first on, up to the last, which is not in it. */
typedef struct extent {
    uint64_t start, end;
    size_t first, last; /* Ranges that it is cut into. */
} extent;

/* One node's touch of one range: the node's place, and whether it writes. */
typedef uint32_t touch;

#define TOUCH(place, write) ((place) << 1 | (write))
#define PLACE(t) ((t) >> 1)
#define WRITES(t) (((t)&1) != 0)

/* Indices among the touches of one range. */
#define NONE SIZE_MAX

typedef struct builder {
    const sg__order_input *input;
    sg__order *out;
    uint32_t *place; /* Of each node in the line. From here on nodes are places. */

    /* The recording as branches: chains of nodes, each after the one before. A node's row says how many nodes of each branch come
     * before it; of branches that begin later, none does, so that rows end early. */
    uint32_t *branch, *number; /* Of each place: its branch, and its number in it, from 0. */
    size_t *row;
    uint32_t *rows;
    size_t n_rows, rows_room;

    /* The touches of one range, by branch. */
    touch *touches;
    size_t *writer;       /* The last one before it that writes, of the same branch. */
    size_t *next_writer;  /* The first one from it on that writes. */
    size_t *branch_first; /* Where each branch begins, and one more. */
    size_t *branch_fill;
    size_t room;

    sg__graph_edge *edges;
    size_t n_edges, edges_room;
} builder;

static stepgraph_status no_memory(uint64_t bytes)
{
    return sg__fail_memory("host", bytes);
}

/* ---- the recording ----------------------------------------------------------------------------------------------- */

static stepgraph_status check_input(const sg__order_input *input)
{
    if (input->n > UINT32_MAX >> 1)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "%u nodes are too many to order", input->n);
    for (size_t i = 0; i < input->n_recorded; i++)
        if (input->recorded[i].from >= input->n || input->recorded[i].to >= input->n)
            return sg__fail(STEPGRAPH_ERR_ARGUMENT, "an edge leads from node %u to node %u, and there are %u nodes",
                            input->recorded[i].from, input->recorded[i].to, input->n);
    for (size_t i = 0; i < input->n_accesses; i++)
        if (input->accesses[i].node >= input->n)
            return sg__fail(STEPGRAPH_ERR_ARGUMENT, "an access is that of node %u, and there are %u nodes",
                            input->accesses[i].node, input->n);
    return STEPGRAPH_OK;
}

/* Put the nodes in line, and the recorded edges between places. */
static stepgraph_status line_up(builder *b, sg__graph_edge *edges, size_t *n_edges)
{
    const sg__order_input *input = b->input;
    sg__dag_lists lists;
    uint32_t placed = 0;
    stepgraph_status status = sg__dag_lists_make(input->n, input->recorded, input->n_recorded, &lists);

    if (status != STEPGRAPH_OK)
        return status;
    status = sg__dag_line(input->n, &lists, NULL, b->out->line, &placed);
    sg__dag_lists_free(&lists);
    if (status != STEPGRAPH_OK)
        return status;
    if (placed < input->n)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "the edges of the recording go round in a circle: %u of %u nodes could never run",
                        input->n - placed, input->n);
    for (uint32_t i = 0; i < input->n; i++)
        b->place[b->out->line[i]] = i;
    for (size_t i = 0; i < input->n_recorded; i++)
        edges[i] = (sg__graph_edge){.from = b->place[input->recorded[i].from], .to = b->place[input->recorded[i].to]};
    return sg__dag_sort(input->n, edges, n_edges);
}

static stepgraph_status rows_reserve(builder *b, size_t more)
{
    uint32_t *rows = sg__room(b->rows, &b->rows_room, b->n_rows + more, (size_t)b->input->n + SG__ORDER_BRANCHES_MAX, sizeof *rows);

    if (rows == NULL)
        return STEPGRAPH_ERR_MEMORY;
    b->rows = rows;
    return STEPGRAPH_OK;
}

/* How many nodes of a branch come before the node at a place. */
static uint32_t before(const builder *b, uint32_t place, uint32_t branch)
{
    return branch < b->row[place + 1] - b->row[place] ? b->rows[b->row[place] + branch] : 0;
}

/* Each node goes to a branch whose end comes before it: that of a node it waits for if one of them is an end, and to a new branch
 * if there is none. */
static stepgraph_status find_branches(builder *b, const sg__graph_edge *edges, size_t n_edges)
{
    uint32_t length[SG__ORDER_BRANCHES_MAX], n_branches = 0;
    size_t at = 0;

    for (uint32_t place = 0; place < b->input->n; place++) {
        stepgraph_status status = rows_reserve(b, (size_t)n_branches + 1);
        uint32_t *row = b->rows + b->n_rows, chosen = UINT32_MAX;
        if (status != STEPGRAPH_OK)
            return status;
        memset(row, 0, n_branches * sizeof *row);
        for (; at < n_edges && edges[at].to == place; at++) {
            uint32_t from = edges[at].from, branch = b->branch[from];
            for (uint32_t i = 0; i < n_branches; i++)
                if (row[i] < before(b, from, i))
                    row[i] = before(b, from, i);
            if (row[branch] <= b->number[from])
                row[branch] = b->number[from] + 1;
            if (chosen == UINT32_MAX && length[branch] == b->number[from] + 1)
                chosen = branch;
        }
        for (uint32_t i = 0; i < n_branches && chosen == UINT32_MAX; i++)
            if (row[i] == length[i])
                chosen = i;
        if (chosen == UINT32_MAX) {
            if (n_branches == SG__ORDER_BRANCHES_MAX)
                return sg__fail(STEPGRAPH_ERR_UNSUPPORTED, "the recording has more than %u branches side by side",
                                SG__ORDER_BRANCHES_MAX);
            chosen = n_branches++;
            length[chosen] = 0;
            row[chosen] = 0;
        }
        b->branch[place] = chosen;
        b->number[place] = length[chosen]++;
        b->row[place] = b->n_rows;
        b->row[place + 1] = b->n_rows += n_branches;
    }
    b->out->branches = n_branches;
    return STEPGRAPH_OK;
}

/* ---- the touches of one range ------------------------------------------------------------------------------------ */

static stepgraph_status add_edge(builder *b, touch from, touch to)
{
    sg__graph_edge *edges = sg__room(b->edges, &b->edges_room, b->n_edges + 1, 1024, sizeof *edges);

    if (edges == NULL)
        return STEPGRAPH_ERR_MEMORY;
    b->edges = edges;
    b->edges[b->n_edges++] = (sg__graph_edge){.from = PLACE(from), .to = PLACE(to)};
    return STEPGRAPH_OK;
}

static stepgraph_status touches_reserve(builder *b, size_t n)
{
    size_t room = b->room != 0 ? b->room : 64;

    while (room < n)
        room *= 2;
    if (room == b->room)
        return STEPGRAPH_OK;
    free(b->touches);
    free(b->writer);
    free(b->next_writer);
    b->touches = malloc(room * sizeof *b->touches);
    b->writer = malloc(room * sizeof *b->writer);
    b->next_writer = malloc(room * sizeof *b->next_writer);
    b->room = b->touches != NULL && b->writer != NULL && b->next_writer != NULL ? room : 0;
    return b->room != 0 ? STEPGRAPH_OK : no_memory(room * (sizeof *b->touches + 2 * sizeof *b->writer));
}

/* Gather the touches by branch, in each branch in order, and look for its writers. */
static void by_branch(builder *b, const touch *touches, size_t n)
{
    uint32_t n_branches = b->out->branches;
    size_t *first = b->branch_first;

    memset(first, 0, ((size_t)n_branches + 1) * sizeof *first);
    for (size_t i = 0; i < n; i++)
        first[b->branch[PLACE(touches[i])] + 1]++;
    for (uint32_t i = 0; i < n_branches; i++)
        b->branch_fill[i] = first[i + 1] += first[i];
    for (size_t i = n; i-- > 0;)
        b->touches[--b->branch_fill[b->branch[PLACE(touches[i])]]] = touches[i];
    for (uint32_t branch = 0; branch < n_branches; branch++) {
        size_t writer = NONE;
        for (size_t i = first[branch]; i < first[branch + 1]; i++) {
            b->writer[i] = writer;
            if (WRITES(b->touches[i]))
                writer = i;
        }
        writer = NONE;
        for (size_t i = first[branch + 1]; i-- > first[branch];) {
            if (WRITES(b->touches[i]))
                writer = i;
            b->next_writer[i] = writer;
        }
    }
}

/* The first touch of a branch that does not come before the node at a place. */
static size_t first_not_before(const builder *b, uint32_t branch, uint32_t place)
{
    size_t low = b->branch_first[branch], high = b->branch_first[branch + 1];
    uint32_t limit = before(b, place, branch);

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (b->number[PLACE(b->touches[middle])] < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * What touch i has to wait for among touches low to high of one branch, all of which the recording put before it: if it reads,
 * for the last writer; if it writes, for those that read after that writer, or for the writer itself if there are none.
 * Everything earlier those wait for themselves.
 */
static stepgraph_status wait_for(builder *b, size_t i, size_t low, size_t high)
{
    size_t writer = high == low ? NONE : WRITES(b->touches[high - 1]) ? high - 1 : b->writer[high - 1];
    stepgraph_status status = STEPGRAPH_OK;

    if (writer != NONE && writer < low)
        writer = NONE;
    if (WRITES(b->touches[i]) && high > low && writer != high - 1) {
        for (size_t k = writer != NONE ? writer + 1 : low; k < high && status == STEPGRAPH_OK; k++)
            status = add_edge(b, b->touches[k], b->touches[i]);
        return status;
    }
    return writer != NONE ? add_edge(b, b->touches[writer], b->touches[i]) : STEPGRAPH_OK;
}

/* Touch k is the first of its branch that does not come before touch i. Does one of them conflict with it, unordered? */
static bool meets_unordered(builder *b, size_t i, size_t k, uint32_t other)
{
    uint32_t place = PLACE(b->touches[i]);

    if (k < b->branch_first[other + 1] && !WRITES(b->touches[i]))
        k = b->next_writer[k];
    if (k == NONE || k >= b->branch_first[other + 1] || before(b, PLACE(b->touches[k]), b->branch[place]) > b->number[place])
        return false; /* It comes after this node, and so do those behind it. */
    if (b->out->n_unordered == 0) {
        b->out->unordered[0] = b->out->line[place];
        b->out->unordered[1] = b->out->line[PLACE(b->touches[k])];
    }
    return true;
}

/* One range: its touches in the order of places, each node once. */
static stepgraph_status order_touches(builder *b, const touch *touches, size_t n)
{
    stepgraph_status status = touches_reserve(b, n);

    if (status != STEPGRAPH_OK)
        return status;
    by_branch(b, touches, n);
    for (uint32_t own = 0; own < b->out->branches; own++)
        for (size_t i = b->branch_first[own]; i < b->branch_first[own + 1]; i++) {
            uint32_t place = PLACE(b->touches[i]);
            size_t writer = b->writer[i];
            bool unordered = false;
            status = wait_for(b, i, writer != NONE ? writer : b->branch_first[own], i);
            for (uint32_t other = 0; other < b->out->branches && status == STEPGRAPH_OK; other++) {
                size_t low = b->branch_first[other], high;
                if (other == own || low == b->branch_first[other + 1])
                    continue;
                high = first_not_before(b, other, place);
                unordered = unordered || meets_unordered(b, i, high, other);
                if (writer != NONE) /* It waits for those before the writer already. */
                    low = first_not_before(b, other, PLACE(b->touches[writer]));
                status = wait_for(b, i, low, high);
            }
            if (status != STEPGRAPH_OK)
                return status;
            b->out->n_unordered += unordered;
        }
    return STEPGRAPH_OK;
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static size_t bound_index(const uint64_t *bounds, size_t n, uint64_t value)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bounds[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The extents that are named, each once, and which of them each access is. */
static stepgraph_status find_extents(const sg__order_input *input, extent *extents, size_t *n_out, size_t *extent_of)
{
    size_t room = 64, n = 0, *slots;

    while (room < 2 * input->n_accesses)
        room *= 2;
    slots = calloc(room, sizeof *slots); /* Index plus 1; 0: free. */
    if (slots == NULL)
        return no_memory(room * sizeof *slots);
    for (size_t i = 0; i < input->n_accesses; i++) {
        const sg__access *access = &input->accesses[i];
        uint64_t start = access->start, end = start + access->bytes < start ? UINT64_MAX : start + access->bytes;
        size_t at = ((start >> 4 ^ end * 31) * 0x9e3779b97f4a7c15ull >> 20) & (room - 1);
        for (; slots[at] != 0; at = (at + 1) & (room - 1))
            if (extents[slots[at] - 1].start == start && extents[slots[at] - 1].end == end)
                break;
        if (slots[at] == 0) {
            extents[n] = (extent){.start = start, .end = end};
            slots[at] = ++n;
        }
        extent_of[i] = slots[at] - 1;
    }
    free(slots);
    *n_out = n;
    return STEPGRAPH_OK;
}

/* Cut the extents where others begin or end. The number of ranges. */
static stepgraph_status cut(extent *extents, size_t n, size_t *n_out)
{
    uint64_t *bounds = malloc((2 * n + 1) * sizeof *bounds);
    size_t kept = 0;

    if (bounds == NULL)
        return no_memory(2 * n * sizeof *bounds);
    for (size_t i = 0; i < n; i++) {
        bounds[2 * i] = extents[i].start;
        bounds[2 * i + 1] = extents[i].end;
    }
    qsort(bounds, 2 * n, sizeof *bounds, by_number);
    for (size_t i = 0; i < 2 * n; i++)
        if (kept == 0 || bounds[i] != bounds[kept - 1])
            bounds[kept++] = bounds[i];
    for (size_t i = 0; i < n; i++) {
        extents[i].first = bound_index(bounds, kept, extents[i].start);
        extents[i].last = bound_index(bounds, kept, extents[i].end);
    }
    free(bounds);
    *n_out = kept;
    return STEPGRAPH_OK;
}

/* The accesses in the order of places: indices. */
static size_t *by_place(const builder *b)
{
    const sg__order_input *input = b->input;
    size_t *first = calloc((size_t)input->n + 1, sizeof *first), *sorted = malloc((input->n_accesses + 1) * sizeof *sorted);

    for (size_t i = 0; first != NULL && sorted != NULL && i < input->n_accesses; i++)
        first[b->place[input->accesses[i].node] + 1]++;
    for (size_t i = 0; first != NULL && sorted != NULL && i < input->n; i++)
        first[i + 1] += first[i];
    for (size_t i = 0; first != NULL && sorted != NULL && i < input->n_accesses; i++)
        sorted[first[b->place[input->accesses[i].node]]++] = i;
    if (first == NULL) {
        free(sorted);
        sorted = NULL;
    }
    free(first);
    return sorted;
}

/* From accesses to the touches of each range. */
static stepgraph_status order_accesses(builder *b)
{
    const sg__order_input *input = b->input;
    size_t n_extents = 0, n_ranges = 0, n_touches = 0;
    extent *extents = malloc((input->n_accesses + 1) * sizeof *extents);
    size_t *extent_of = malloc((input->n_accesses + 1) * sizeof *extent_of), *sorted = by_place(b), *first = NULL, *fill;
    touch *touches = NULL;
    stepgraph_status status = STEPGRAPH_OK;

    if (extents == NULL || extent_of == NULL || sorted == NULL)
        status = no_memory(input->n_accesses * (sizeof *extents + sizeof *extent_of + sizeof *sorted));
    if (status == STEPGRAPH_OK)
        status = find_extents(input, extents, &n_extents, extent_of);
    if (status == STEPGRAPH_OK)
        status = cut(extents, n_extents, &n_ranges);
    if (status != STEPGRAPH_OK)
        goto done;

    for (size_t i = 0; i < input->n_accesses; i++)
        n_touches += extents[extent_of[i]].last - extents[extent_of[i]].first;
    first = calloc(2 * (n_ranges + 1), sizeof *first);
    touches = malloc((n_touches + 1) * sizeof *touches);
    if (first == NULL || touches == NULL) {
        status = no_memory(n_touches * sizeof *touches + 2 * n_ranges * sizeof *first);
        goto done;
    }
    fill = first + n_ranges + 1;
    for (size_t i = 0; i < input->n_accesses; i++)
        for (size_t range = extents[extent_of[i]].first; range < extents[extent_of[i]].last; range++)
            first[range + 1]++;
    for (size_t range = 0; range < n_ranges; range++)
        first[range + 1] += first[range];
    memcpy(fill, first, n_ranges * sizeof *fill);
    for (size_t i = 0; i < input->n_accesses; i++) {
        const sg__access *access = &input->accesses[sorted[i]];
        const extent *whole = &extents[extent_of[sorted[i]]];
        touch one = TOUCH(b->place[access->node], access->write ? 1u : 0u);
        for (size_t range = whole->first; range < whole->last; range++)
            if (fill[range] > first[range] && PLACE(touches[fill[range] - 1]) == PLACE(one))
                touches[fill[range] - 1] |= one; /* Once more by the same node. */
            else
                touches[fill[range]++] = one;
    }
    for (size_t range = 0; range < n_ranges && status == STEPGRAPH_OK; range++)
        status = order_touches(b, touches + first[range], fill[range] - first[range]);

done:
    free(extents);
    free(extent_of);
    free(sorted);
    free(first);
    free(touches);
    return status;
}

/* Barriers and classes are like ranges: a barrier writes one that all nodes read, and the members of a class write one. */
static stepgraph_status order_kinds(builder *b)
{
    const sg__order_input *input = b->input;
    touch *touches = malloc(((size_t)input->n + 1) * sizeof *touches);
    uint64_t *members = malloc(((size_t)input->n + 1) * sizeof *members);
    size_t n_members = 0, barriers = 0, n = 0;
    stepgraph_status status = STEPGRAPH_OK;

    if (touches == NULL || members == NULL) {
        free(touches);
        free(members);
        return no_memory(input->n * (sizeof *touches + sizeof *members));
    }
    for (uint32_t place = 0; place < input->n; place++) {
        uint32_t kind = input->kinds[b->out->line[place]];
        touches[place] = TOUCH(place, kind == SG__ORDER_BARRIER ? 1u : 0u);
        barriers += kind == SG__ORDER_BARRIER;
        if (kind != SG__ORDER_PLAIN && kind != SG__ORDER_BARRIER)
            members[n_members++] = (uint64_t)kind << 32 | place;
    }
    if (barriers > 0)
        status = order_touches(b, touches, input->n);
    qsort(members, n_members, sizeof *members, by_number);
    for (size_t i = 0; i < n_members && status == STEPGRAPH_OK; i++) {
        touches[n++] = TOUCH((uint32_t)members[i], 1u);
        if (i + 1 == n_members || members[i + 1] >> 32 != members[i] >> 32) {
            status = order_touches(b, touches, n);
            n = 0;
        }
    }
    free(touches);
    free(members);
    return status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static stepgraph_status build(builder *b)
{
    const sg__order_input *input = b->input;
    sg__graph_edge *recorded = malloc((input->n_recorded + 1) * sizeof *recorded);
    size_t n_recorded = input->n_recorded, n = (size_t)input->n + 1;
    sg__order *out = b->out;
    stepgraph_status status = STEPGRAPH_OK;

    out->line = malloc(n * sizeof *out->line);
    b->place = malloc(n * sizeof *b->place);
    b->branch = malloc(n * sizeof *b->branch);
    b->number = malloc(n * sizeof *b->number);
    b->row = calloc(n, sizeof *b->row);
    b->branch_first = malloc((SG__ORDER_BRANCHES_MAX + 1) * sizeof *b->branch_first);
    b->branch_fill = malloc(SG__ORDER_BRANCHES_MAX * sizeof *b->branch_fill);
    if (recorded == NULL || out->line == NULL || b->place == NULL || b->branch == NULL || b->number == NULL || b->row == NULL ||
        b->branch_first == NULL || b->branch_fill == NULL)
        status = no_memory(n * (4 * sizeof *b->place + sizeof *b->row) + input->n_recorded * sizeof *recorded);
    if (status == STEPGRAPH_OK)
        status = line_up(b, recorded, &n_recorded);
    if (status == STEPGRAPH_OK)
        status = sg__dag_path(input->n, recorded, n_recorded, &out->recorded_path);
    if (status == STEPGRAPH_OK)
        status = find_branches(b, recorded, n_recorded);
    free(recorded);
    if (status == STEPGRAPH_OK)
        status = order_accesses(b);
    if (status == STEPGRAPH_OK && input->kinds != NULL)
        status = order_kinds(b);
    if (status == STEPGRAPH_OK)
        status = sg__dag_sort(input->n, b->edges, &b->n_edges);
    if (status == STEPGRAPH_OK)
        status = sg__dag_reduce(input->n, b->edges, &b->n_edges);
    if (status == STEPGRAPH_OK)
        status = sg__dag_path(input->n, b->edges, b->n_edges, &out->path);
    return status;
}

stepgraph_status sg__order_build(const sg__order_input *input, sg__order *out)
{
    sg__order order = {.n = input->n};
    builder b = {.input = input, .out = &order};
    stepgraph_status status = check_input(input);

    if (status == STEPGRAPH_OK)
        status = build(&b);
    for (size_t i = 0; i < b.n_edges; i++)
        if (status == STEPGRAPH_OK)
            b.edges[i] = (sg__graph_edge){.from = order.line[b.edges[i].from], .to = order.line[b.edges[i].to]};
    order.edges = realloc(b.edges, (b.n_edges + 1) * sizeof *b.edges); /* Most were dropped. */
    if (order.edges == NULL)
        order.edges = b.edges;
    order.n_edges = b.n_edges;
    free(b.place);
    free(b.branch);
    free(b.number);
    free(b.row);
    free(b.rows);
    free(b.touches);
    free(b.writer);
    free(b.next_writer);
    free(b.branch_first);
    free(b.branch_fill);
    if (status == STEPGRAPH_OK)
        *out = order;
    else
        sg__order_free(&order);
    return status;
}

void sg__order_free(sg__order *order)
{
    free(order->edges);
    free(order->line);
    *order = (sg__order){0};
}
