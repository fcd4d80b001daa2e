/* Graphs, word by word. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../error.h"
#include "arguments.h"
#include "graph.h"

enum { MOST_WORDS = 11, SHAPE_WORDS = 7 };

/* What a node of one of the graphs holds beside arguments, in words. */
typedef uint64_t row[MOST_WORDS];

/* Which words those are. */
typedef struct word_of {
    sg__word_place place;
    uint32_t argument, bytes;
} word_of;

typedef struct comparison {
    const sg__driver *driver;
    size_t n;
    sg__graph *const *graphs;
    sg__graph_difference_fn report;
    void *user;
    uint32_t node;
    uint64_t bytes;
    sg__arguments *arguments; /* Of each graph's node. */
    row *rows;
    uint64_t *values; /* One word of each. */
    const unsigned char **pieces; /* One argument of each. */
    bool checked;                 /* Kernels' modules are still loaded. */
} comparison;

/* One word of all graphs, from c->values. */
static stepgraph_status differ(comparison *c, sg__word_place place, uint32_t argument, uint32_t offset, uint32_t bytes, size_t extent)
{
    const sg__graph_difference difference = {.node = c->node, .place = place, .argument = argument, .offset = offset, .bytes = bytes,
                                             .extent = extent, .values = c->values, .arguments = extent != 0 ? c->pieces : NULL};

    for (size_t g = 1; g < c->n; g++)
        if (c->values[g] != c->values[0])
            return c->report(c->user, &difference);
    return STEPGRAPH_OK;
}

/* The first n words of all rows. */
static stepgraph_status compare_rows(comparison *c, const word_of *words, size_t n)
{
    stepgraph_status status = STEPGRAPH_OK;
    size_t g = 1;

    for (size_t i = 0; i < n; i++)
        c->bytes += words[i].bytes;
    while (g < c->n && memcmp(c->rows[g], c->rows[0], n * sizeof **c->rows) == 0)
        g++;
    for (size_t i = 0; i < n && g < c->n && status == STEPGRAPH_OK; i++) {
        for (size_t k = 0; k < c->n; k++)
            c->values[k] = c->rows[k][i];
        status = differ(c, words[i].place, words[i].argument, 0, words[i].bytes, 0);
    }
    return status;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* A struct is looked at by lines of the processor's cache. */
enum { LINE = 8 };

static bool is_same(const comparison *c, size_t at)
{
    size_t g = 1;

    while (g < c->n && memcmp(c->pieces[g] + at, c->pieces[0] + at, 8 * LINE) == 0)
        g++;
    return g == c->n;
}

/* Which of the words of a line, at most LINE, are not the same in all graphs: a bit for each. */
static unsigned unlike_words(const comparison *c, size_t at, size_t words)
{
    uint64_t first, other;
    unsigned found = 0;

    if (words == LINE && is_same(c, at)) /* Most lines are. */
        return 0;
    for (size_t g = 1; g < c->n; g++)
        for (size_t i = 0; i < words; i++) {
            memcpy(&first, c->pieces[0] + at + 8 * i, 8);
            memcpy(&other, c->pieces[g] + at + 8 * i, 8);
            found |= (unsigned)(other != first) << i;
        }
    return found;
}

/* One argument of all graphs, from c->pieces: as 8-byte words, and what is left at its end. */
static stepgraph_status compare_argument(comparison *c, uint32_t index, size_t bytes)
{
    const size_t n = c->n;
    stepgraph_status status = STEPGRAPH_OK;
    size_t at = 0;

    c->bytes += bytes;
    for (size_t words; (words = (bytes - at) / 8) > 0; at += 8 * words) {
        words = words < LINE ? words : LINE;
        for (unsigned unlike = unlike_words(c, at, words); unlike != 0 && status == STEPGRAPH_OK; unlike &= unlike - 1) {
            const size_t word = at + 8 * (size_t)__builtin_ctz(unlike);
            for (size_t k = 0; k < n; k++)
                memcpy(&c->values[k], c->pieces[k] + word, 8);
            status = differ(c, SG__WORD_ARGUMENT, index, (uint32_t)word, 8, bytes);
        }
    }
    if (at == bytes || status != STEPGRAPH_OK)
        return status;
    for (size_t k = 0; k < n; k++) {
        c->values[k] = 0;
        memcpy(&c->values[k], c->pieces[k] + at, bytes - at);
    }
    return differ(c, SG__WORD_ARGUMENT, index, (uint32_t)at, (uint32_t)(bytes - at), bytes);
}

static stepgraph_status compare_arguments(comparison *c, const sg__layout *layout)
{
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t g = 0; g < c->n; g++) {
        c->arguments[g].layout = layout;
        sg__arguments_open(&c->arguments[g]);
    }
    for (uint32_t i = 0; i < layout->n && status == STEPGRAPH_OK; i++) {
        size_t held = layout->arguments[i].bytes, bytes;
        bool there = true;
        for (size_t g = 0; g < c->n; g++) {
            there &= (c->pieces[g] = sg__argument(&c->arguments[g], i, &bytes)) != NULL;
            held = bytes < held ? bytes : held;
        }
        if (there) /* What only some of them hold says nothing. */
            status = compare_argument(c, i, held);
    }
    return status;
}

/* Whether the node was the same in all graphs when they were read, which spares asking the driver for all of them again. */
static bool is_alike(comparison *c, size_t node)
{
    const sg__graph_node *first = &c->graphs[0]->nodes[node];

    for (size_t g = 0; g < c->n; g++)
        if (first->print == 0 || c->graphs[g]->nodes[node].print != first->print)
            return false;
    c->bytes += SHAPE_WORDS * 4 + first->bytes;
    return true;
}

/* The first graph in which the node was the same as in this one when they were read; this one if there is none before it. */
static size_t like_of(const comparison *c, size_t g, size_t node)
{
    const uint64_t print = c->graphs[g]->nodes[node].print;
    size_t first = 0;

    while (first < g && (print == 0 || c->graphs[first]->nodes[node].print != print))
        first++;
    return first;
}

static stepgraph_status check_modules(comparison *c)
{
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t g = 0; g < c->n && !c->checked && status == STEPGRAPH_OK; g++)
        status = sg__layouts_check(c->driver, &c->graphs[g]->layouts);
    c->checked = status == STEPGRAPH_OK;
    return status;
}

static stepgraph_status compare_kernels(comparison *c, size_t node)
{
    static const word_of function[] = {{SG__WORD_FUNCTION, 0, 8}};
    static const word_of shape[SHAPE_WORDS] = {{SG__WORD_SHAPE, 0, 4}, {SG__WORD_SHAPE, 1, 4}, {SG__WORD_SHAPE, 2, 4}, {SG__WORD_SHAPE, 3, 4},
                                    {SG__WORD_SHAPE, 4, 4}, {SG__WORD_SHAPE, 5, 4}, {SG__WORD_SHAPE, 6, 4}};
    const sg__graph_node *first = &c->graphs[0]->nodes[node];
    const sg__layout *layout = first->layout;
    stepgraph_status status = check_modules(c);
    CUfunction kernel;

    if (status != STEPGRAPH_OK)
        return status;
    for (size_t g = 0; g < c->n; g++) {
        CUDA_KERNEL_NODE_PARAMS_v1 *x = &c->arguments[g].params;
        const size_t like = like_of(c, g, node);
        if (like < g) { /* Recordings of one step are mostly alike: one question for them. */
            *x = c->arguments[like].params;
            memcpy(c->rows[g], c->rows[like], sizeof *c->rows);
            continue;
        }
        memset(x, 0, sizeof *x);
        SG__CU(c->driver, GraphKernelNodeGetParams, c->graphs[g]->nodes[node].handle, x);
        c->rows[g][0] = x->gridDimX;
        c->rows[g][1] = x->gridDimY;
        c->rows[g][2] = x->gridDimZ;
        c->rows[g][3] = x->blockDimX;
        c->rows[g][4] = x->blockDimY;
        c->rows[g][5] = x->blockDimZ;
        c->rows[g][6] = x->sharedMemBytes;
    }
    kernel = c->arguments[0].params.func;
    for (size_t g = 1; g < c->n; g++)
        if (c->arguments[g].params.func != kernel) {
            for (size_t k = 0; k < c->n; k++)
                c->rows[k][0] = (uintptr_t)c->arguments[k].params.func;
            return compare_rows(c, function, 1);
        }
    status = compare_rows(c, shape, SHAPE_WORDS);
    /* What is not read counts as 0 in all of them if the host said so before any: prints of some were made like that. */
    for (size_t g = 1; g < c->n && layout != NULL && !layout->masked; g++)
        if (c->graphs[g]->nodes[node].layout->masked && c->graphs[g]->nodes[node].function == kernel)
            layout = c->graphs[g]->nodes[node].layout;
    if (status == STEPGRAPH_OK && (layout == NULL || kernel != first->function)) /* The host has changed the node since it was read. */
        status = sg__layout_of(c->driver, &c->graphs[0]->layouts, kernel, &layout);
    if (status != STEPGRAPH_OK || !layout->known) /* Unknown: counted as unread when the graph was. */
        return status;
    return compare_arguments(c, layout);

fail:
    return status;
}

/* ---- other nodes ------------------------------------------------------------------------------------------------- */

static stepgraph_status compare_copies(comparison *c, size_t node)
{
    static const word_of words[] = {{SG__WORD_SOURCE, 0, 8}, {SG__WORD_DESTINATION, 0, 8}, {SG__WORD_EXTENT, 0, 8},
                                    {SG__WORD_EXTENT, 1, 8}, {SG__WORD_EXTENT, 2, 8},      {SG__WORD_EXTENT, 3, 8},
                                    {SG__WORD_EXTENT, 4, 8}, {SG__WORD_EXTENT, 5, 8},      {SG__WORD_EXTENT, 6, 8},
                                    {SG__WORD_EXTENT, 7, 8}, {SG__WORD_EXTENT, 8, 8}};
    stepgraph_status status;
    CUDA_MEMCPY3D x;

    for (size_t g = 0; g < c->n; g++) {
        memset(&x, 0, sizeof x);
        SG__CU(c->driver, GraphMemcpyNodeGetParams, c->graphs[g]->nodes[node].handle, &x);
        /* Of an array its handle, and where in it. */
        const bool from_array = x.srcMemoryType == CU_MEMORYTYPE_ARRAY, to_array = x.dstMemoryType == CU_MEMORYTYPE_ARRAY;
        /* How far rows and planes lie apart means nothing where there is one, nor in an array. */
        const bool planes = x.Depth > 1, rows = planes || x.Height > 1;
        const row found = {from_array ? (uintptr_t)x.srcArray : sg__copy_source(&x), to_array ? (uintptr_t)x.dstArray : sg__copy_destination(&x),
                           x.WidthInBytes, x.Height, x.Depth,
                           rows && !from_array ? x.srcPitch : 0, planes && !from_array ? x.srcHeight : 0,
                           rows && !to_array ? x.dstPitch : 0, planes && !to_array ? x.dstHeight : 0,
                           from_array ? x.srcXInBytes | (uint64_t)x.srcY << 24 | (uint64_t)x.srcZ << 44 : 0,
                           to_array ? x.dstXInBytes | (uint64_t)x.dstY << 24 | (uint64_t)x.dstZ << 44 : 0};
        memcpy(c->rows[g], found, sizeof found);
    }
    return compare_rows(c, words, sizeof words / sizeof *words);

fail:
    return status;
}

static stepgraph_status compare_sets(comparison *c, size_t node)
{
    static const word_of words[] = {{SG__WORD_DESTINATION, 0, 8}, {SG__WORD_VALUE, 0, 4},  {SG__WORD_EXTENT, 0, 8},
                                    {SG__WORD_EXTENT, 1, 8},      {SG__WORD_EXTENT, 2, 8}, {SG__WORD_EXTENT, 3, 8}};
    CUDA_MEMSET_NODE_PARAMS x;
    stepgraph_status status;
    bool told = false;

    for (size_t g = 0; g < c->n; g++) {
        memset(&x, 0, sizeof x);
        SG__CU(c->driver, GraphMemsetNodeGetParams, c->graphs[g]->nodes[node].handle, &x);
        c->rows[g][0] = x.dst;
        c->rows[g][1] = x.value;
        c->rows[g][2] = x.width * x.elementSize;
        c->rows[g][3] = x.height;
        c->rows[g][4] = x.height > 1 ? x.pitch : 0; /* Of one row it means nothing. */
        c->rows[g][5] = x.elementSize;
        told |= x.value == 0 || x.value != c->rows[0][1]; /* Zeros are the same in all sizes; and another value is told by itself. */
    }
    for (size_t g = 0; g < c->n && told; g++)
        c->rows[g][5] = 0;
    return compare_rows(c, words, sizeof words / sizeof *words);

fail:
    return status;
}

/* How many there are, then one after the other, as far as all graphs have them. */
static stepgraph_status compare_memory_operations(comparison *c, size_t node)
{
    static const word_of counts[] = {{SG__WORD_EXTENT, 0, 4}};
    unsigned int least = UINT32_MAX;
    stepgraph_status status;

    for (size_t g = 0; g < c->n; g++) {
        CUDA_BATCH_MEM_OP_NODE_PARAMS x;
        memset(&x, 0, sizeof x);
        SG__CU(c->driver, GraphBatchMemOpNodeGetParams, c->graphs[g]->nodes[node].handle, &x);
        c->rows[g][0] = x.count;
        least = x.count < least ? x.count : least;
    }
    status = compare_rows(c, counts, 1);
    for (unsigned int i = 0; i < least && status == STEPGRAPH_OK; i++) {
        uint32_t bytes = 8;
        bool writes = false;
        for (size_t g = 0; g < c->n; g++) {
            CUDA_BATCH_MEM_OP_NODE_PARAMS x;
            memset(&x, 0, sizeof x);
            SG__CU(c->driver, GraphBatchMemOpNodeGetParams, c->graphs[g]->nodes[node].handle, &x);
            const CUstreamBatchMemOpParams *operation = &x.paramArray[i];
            bytes = sg__memory_operation_bytes(operation) < bytes ? sg__memory_operation_bytes(operation) : bytes;
            writes = sg__memory_operation_writes(operation);
            c->rows[g][0] = operation->operation;
            c->rows[g][1] = operation->writeValue.address;
            c->rows[g][2] = bytes == 4 ? operation->writeValue.value : operation->writeValue.value64;
            c->rows[g][3] = operation->writeValue.flags;
        }
        const word_of words[] = {{SG__WORD_OPERATION, i, 4}, {writes ? SG__WORD_DESTINATION : SG__WORD_SOURCE, i, 8}, {SG__WORD_VALUE, i, bytes},
                                 {SG__WORD_OPERATION, i, 4}};
        status = compare_rows(c, words, bytes != 0 ? sizeof words / sizeof *words : 1);
    }
    return status;

fail:
    return status;
}

static stepgraph_status compare_host_functions(comparison *c, size_t node)
{
    static const word_of words[] = {{SG__WORD_HOST, 0, 8}, {SG__WORD_HOST, 1, 8}};
    CUDA_HOST_NODE_PARAMS x;
    stepgraph_status status;

    for (size_t g = 0; g < c->n; g++) {
        memset(&x, 0, sizeof x);
        SG__CU(c->driver, GraphHostNodeGetParams, c->graphs[g]->nodes[node].handle, &x);
        c->rows[g][0] = (uintptr_t)x.fn;
        c->rows[g][1] = (uintptr_t)x.userData;
    }
    return compare_rows(c, words, sizeof words / sizeof *words);

fail:
    return status;
}

static stepgraph_status compare_events(comparison *c, size_t node)
{
    static const word_of recorded[] = {{SG__WORD_EVENT, 0, 8}}, awaited[] = {{SG__WORD_EVENT, 1, 8}};
    const bool waits = c->graphs[0]->nodes[node].type == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    stepgraph_status status;
    CUevent event = NULL;

    for (size_t g = 0; g < c->n; g++) {
        if (waits)
            SG__CU(c->driver, GraphEventWaitNodeGetEvent, c->graphs[g]->nodes[node].handle, &event);
        else
            SG__CU(c->driver, GraphEventRecordNodeGetEvent, c->graphs[g]->nodes[node].handle, &event);
        c->rows[g][0] = (uintptr_t)event;
    }
    return compare_rows(c, waits ? awaited : recorded, 1);

fail:
    return status;
}

/* Where an allocation stands is the driver's affair; how large it is was the host's. */
static stepgraph_status compare_allocations(comparison *c, size_t node)
{
    static const word_of words[] = {{SG__WORD_EXTENT, 0, 8}};
    CUDA_MEM_ALLOC_NODE_PARAMS x;
    stepgraph_status status;

    for (size_t g = 0; g < c->n; g++) {
        memset(&x, 0, sizeof x);
        SG__CU(c->driver, GraphMemAllocNodeGetParams, c->graphs[g]->nodes[node].handle, &x);
        c->rows[g][0] = x.bytesize;
    }
    return compare_rows(c, words, 1);

fail:
    return status;
}

static stepgraph_status compare_nodes(comparison *c, size_t node)
{
    switch (c->graphs[0]->nodes[node].type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return is_alike(c, node) ? STEPGRAPH_OK : compare_kernels(c, node);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return compare_copies(c, node);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return compare_sets(c, node);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return compare_memory_operations(c, node);
    case CU_GRAPH_NODE_TYPE_HOST:
        return compare_host_functions(c, node);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return compare_events(c, node);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return compare_allocations(c, node);
    default:
        return STEPGRAPH_OK;
    }
}

/* ---- other forms ------------------------------------------------------------------------------------------------- */

const char *sg__ordinal(size_t index)
{
    static const char *const ordinals[] = {"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"};

    return index < sizeof ordinals / sizeof *ordinals ? ordinals[index] : "last";
}

static bool earlier(sg__graph_edge a, sg__graph_edge b)
{
    return a.to != b.to ? a.to < b.to : a.from < b.from;
}

/* The first edge that only one of them has. */
static void explain_edges(const sg__graph *graph, sg__graph_edges *x, sg__graph_edges *y, size_t index, sg__graph_mismatch *mismatch)
{
    sg__graph_edge edge;
    bool in_first;
    size_t i = 0;

    sg__graph_edges_sort(x);
    sg__graph_edges_sort(y);
    while (i < x->n && i < y->n && x->items[i].from == y->items[i].from && x->items[i].to == y->items[i].to)
        i++;
    if (i == x->n && i == y->n)
        return;
    in_first = i == y->n || (i < x->n && earlier(x->items[i], y->items[i]));
    edge = in_first ? x->items[i] : y->items[i];
    mismatch->node = edge.to;
    snprintf(mismatch->text, sizeof mismatch->text,
             "the same nodes in another order: node %u, '%.60s', comes after node %u, '%.60s', in the %s recording only", edge.to,
             sg__node_name(&graph->nodes[edge.to]), edge.from, sg__node_name(&graph->nodes[edge.from]), sg__ordinal(in_first ? 0 : index));
}

/* The same nodes in another order. The driver tells the edges of equal graphs in the same order, mostly, so that they need no sorting. */
static stepgraph_status compare_edges(const comparison *c, sg__graph_mismatch *mismatch)
{
    sg__graph_edges x, y = {0};
    stepgraph_status status = sg__graph_edges_read(c->driver, c->graphs[0], &x);

    for (size_t g = 1; g < c->n && status == STEPGRAPH_OK && !x.partial && mismatch->text[0] == '\0'; g++) {
        status = sg__graph_edges_read(c->driver, c->graphs[g], &y);
        if (status == STEPGRAPH_OK && !y.partial && (x.n != y.n || (x.n > 0 && memcmp(x.items, y.items, x.n * sizeof *x.items) != 0)))
            explain_edges(c->graphs[0], &x, &y, g, mismatch);
        if (status == STEPGRAPH_OK && !y.partial && mismatch->text[0] == '\0' && x.kinds != y.kinds) {
            mismatch->node = UINT32_MAX;
            snprintf(mismatch->text, sizeof mismatch->text, "the same nodes with other programmatic launches in the %s recording", sg__ordinal(g));
        }
        sg__graph_edges_free(&y);
    }
    sg__graph_edges_free(&x);
    return status;
}

/* A graph whose node is another one, or that has another number of them. */
static void compare_kinds(const comparison *c, size_t node, sg__graph_mismatch *mismatch)
{
    const sg__graph *a = c->graphs[0];

    for (size_t g = 1; g < c->n; g++) {
        const sg__graph *b = c->graphs[g];
        if (node < a->n_nodes && node < b->n_nodes && a->nodes[node].type != b->nodes[node].type)
            snprintf(mismatch->text, sizeof mismatch->text, "node %zu is '%.80s' in the first recording and '%.80s' in the %s", node,
                     sg__node_name(&a->nodes[node]), sg__node_name(&b->nodes[node]), sg__ordinal(g));
        else if (node == a->n_nodes && node == b->n_nodes)
            continue;
        else if (node == a->n_nodes || node == b->n_nodes)
            snprintf(mismatch->text, sizeof mismatch->text,
                     "the first recording has %zu nodes and the %s %zu; node %zu, '%.80s', is in the %s only", a->n_nodes, sg__ordinal(g), b->n_nodes,
                     node, sg__node_name(node < a->n_nodes ? &a->nodes[node] : &b->nodes[node]), sg__ordinal(node < a->n_nodes ? 0 : g));
        else
            continue;
        mismatch->node = (uint32_t)node;
        return;
    }
}

static stepgraph_status compare_all(comparison *c, sg__graph_mismatch *mismatch)
{
    stepgraph_status status = STEPGRAPH_OK;
    size_t most = 0;

    for (size_t g = 0; g < c->n; g++)
        most = c->graphs[g]->n_nodes > most ? c->graphs[g]->n_nodes : most;
    for (size_t i = 0; i < most && status == STEPGRAPH_OK && mismatch->text[0] == '\0'; i++) {
        c->node = (uint32_t)i;
        compare_kinds(c, i, mismatch);
        if (mismatch->text[0] == '\0')
            status = compare_nodes(c, i);
    }
    return status == STEPGRAPH_OK && mismatch->text[0] == '\0' ? compare_edges(c, mismatch) : status;
}

stepgraph_status sg__graph_compare(const sg__driver *driver, size_t n, sg__graph *const *graphs, sg__graph_difference_fn report, void *user,
                                   sg__graph_mismatch *mismatch, uint64_t *bytes_out)
{
    comparison c = {.driver = driver, .n = n, .graphs = graphs, .report = report, .user = user};
    stepgraph_status status;

    mismatch->text[0] = '\0';
    *bytes_out = 0;
    c.arguments = malloc(n * sizeof *c.arguments);
    c.rows = malloc(n * sizeof *c.rows);
    c.values = malloc(n * sizeof *c.values);
    c.pieces = malloc(n * sizeof *c.pieces);
    if (c.arguments == NULL || c.rows == NULL || c.values == NULL || c.pieces == NULL)
        status = sg__fail_memory("host", n * (sizeof *c.arguments + sizeof *c.rows));
    else
        status = compare_all(&c, mismatch);
    *bytes_out = c.bytes;
    free(c.arguments);
    free(c.rows);
    free(c.values);
    free(c.pieces);
    return status;
}
