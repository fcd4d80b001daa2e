/* Two graphs, word by word. */
#include <stdio.h>
#include <string.h>

#include "../error.h"
#include "arguments.h"
#include "graph.h"

typedef struct comparison {
    const sg__driver *driver;
    sg__layouts *layouts;
    sg__graph_difference_fn report;
    void *user;
    uint32_t node;
    uint64_t bytes;
} comparison;

static stepgraph_status differ(comparison *c, sg__word_place place, uint32_t argument, uint32_t offset, uint32_t bytes, uint64_t before,
                               uint64_t after)
{
    const sg__graph_difference difference = {.node = c->node, .place = place, .argument = argument, .offset = offset, .bytes = bytes,
                                             .before = before, .after = after};

    c->bytes += bytes;
    return before == after ? STEPGRAPH_OK : c->report(c->user, &difference);
}

/* One argument: as 8-byte words, and what is left at its end. */
static stepgraph_status compare_argument(comparison *c, uint32_t index, const unsigned char *a, const unsigned char *b, size_t bytes)
{
    stepgraph_status status = STEPGRAPH_OK;

    if (memcmp(a, b, bytes) == 0) {
        c->bytes += bytes;
        return STEPGRAPH_OK;
    }
    for (size_t at = 0; at < bytes && status == STEPGRAPH_OK; at += 8) {
        uint64_t before = 0, after = 0;
        size_t n = bytes - at < 8 ? bytes - at : 8;
        memcpy(&before, a + at, n);
        memcpy(&after, b + at, n);
        status = differ(c, SG__WORD_ARGUMENT, index, (uint32_t)at, (uint32_t)n, before, after);
    }
    return status;
}

static stepgraph_status compare_kernels(comparison *c, CUgraphNode a, CUgraphNode b)
{
    sg__arguments x, y;
    stepgraph_status status;

    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    SG__CU(c->driver, GraphKernelNodeGetParams, a, &x.params);
    SG__CU(c->driver, GraphKernelNodeGetParams, b, &y.params);
    if (x.params.func != y.params.func)
        return differ(c, SG__WORD_FUNCTION, 0, 0, 8, (uintptr_t)x.params.func, (uintptr_t)y.params.func);

    const unsigned int before[] = {x.params.gridDimX,  x.params.gridDimY,  x.params.gridDimZ,      x.params.blockDimX,
                                   x.params.blockDimY, x.params.blockDimZ, x.params.sharedMemBytes};
    const unsigned int after[] = {y.params.gridDimX,  y.params.gridDimY,  y.params.gridDimZ,      y.params.blockDimX,
                                  y.params.blockDimY, y.params.blockDimZ, y.params.sharedMemBytes};
    status = STEPGRAPH_OK;
    for (uint32_t i = 0; i < sizeof before / sizeof *before && status == STEPGRAPH_OK; i++)
        status = differ(c, SG__WORD_SHAPE, i, 0, 4, before[i], after[i]);
    if (status != STEPGRAPH_OK)
        return status;

    status = sg__layout_of(c->driver, c->layouts, x.params.func, &x.layout);
    if (status != STEPGRAPH_OK)
        return status;
    y.layout = x.layout;
    if (!x.layout->known)
        return STEPGRAPH_OK; /* Counted as unread when the graph was. */
    sg__arguments_open(&x);
    sg__arguments_open(&y);
    for (uint32_t i = 0; i < x.layout->n && status == STEPGRAPH_OK; i++) {
        const unsigned char *p = sg__argument(&x, i), *q = sg__argument(&y, i);
        if (p != NULL && q != NULL)
            status = compare_argument(c, i, p, q, x.layout->arguments[i].bytes);
    }
    return status;

fail:
    return status;
}

static stepgraph_status compare_copies(comparison *c, CUgraphNode a, CUgraphNode b)
{
    stepgraph_status status;
    CUDA_MEMCPY3D x, y;

    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    SG__CU(c->driver, GraphMemcpyNodeGetParams, a, &x);
    SG__CU(c->driver, GraphMemcpyNodeGetParams, b, &y);

    const size_t before[] = {x.WidthInBytes, x.Height, x.Depth, x.srcPitch, x.srcHeight, x.dstPitch, x.dstHeight};
    const size_t after[] = {y.WidthInBytes, y.Height, y.Depth, y.srcPitch, y.srcHeight, y.dstPitch, y.dstHeight};
    status = differ(c, SG__WORD_SOURCE, 0, 0, 8, sg__copy_source(&x), sg__copy_source(&y));
    if (status == STEPGRAPH_OK)
        status = differ(c, SG__WORD_DESTINATION, 0, 0, 8, sg__copy_destination(&x), sg__copy_destination(&y));
    for (uint32_t i = 0; i < sizeof before / sizeof *before && status == STEPGRAPH_OK; i++)
        status = differ(c, SG__WORD_EXTENT, i, 0, 8, before[i], after[i]);
    return status;

fail:
    return status;
}

static stepgraph_status compare_sets(comparison *c, CUgraphNode a, CUgraphNode b)
{
    CUDA_MEMSET_NODE_PARAMS x, y;
    stepgraph_status status;

    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    SG__CU(c->driver, GraphMemsetNodeGetParams, a, &x);
    SG__CU(c->driver, GraphMemsetNodeGetParams, b, &y);
    status = differ(c, SG__WORD_DESTINATION, 0, 0, 8, x.dst, y.dst);
    if (status == STEPGRAPH_OK)
        status = differ(c, SG__WORD_VALUE, 0, 0, 4, x.value, y.value);
    if (status == STEPGRAPH_OK)
        status = differ(c, SG__WORD_EXTENT, 0, 0, 8, x.width * x.elementSize, y.width * y.elementSize);
    return status == STEPGRAPH_OK ? differ(c, SG__WORD_EXTENT, 1, 0, 8, x.height, y.height) : status;

fail:
    return status;
}

static stepgraph_status compare_host_functions(comparison *c, CUgraphNode a, CUgraphNode b)
{
    CUDA_HOST_NODE_PARAMS x, y;
    stepgraph_status status;

    SG__CU(c->driver, GraphHostNodeGetParams, a, &x);
    SG__CU(c->driver, GraphHostNodeGetParams, b, &y);
    status = differ(c, SG__WORD_HOST, 0, 0, 8, (uintptr_t)x.fn, (uintptr_t)y.fn);
    return status == STEPGRAPH_OK ? differ(c, SG__WORD_HOST, 1, 0, 8, (uintptr_t)x.userData, (uintptr_t)y.userData) : status;

fail:
    return status;
}

/* Where an allocation stands is the driver's affair; how large it is was the host's. */
static stepgraph_status compare_allocations(comparison *c, CUgraphNode a, CUgraphNode b)
{
    CUDA_MEM_ALLOC_NODE_PARAMS x, y;
    stepgraph_status status;

    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    SG__CU(c->driver, GraphMemAllocNodeGetParams, a, &x);
    SG__CU(c->driver, GraphMemAllocNodeGetParams, b, &y);
    return differ(c, SG__WORD_EXTENT, 0, 0, 8, x.bytesize, y.bytesize);

fail:
    return status;
}

static stepgraph_status compare_nodes(comparison *c, const sg__graph_node *a, const sg__graph_node *b)
{
    switch (a->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return compare_kernels(c, a->handle, b->handle);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return compare_copies(c, a->handle, b->handle);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return compare_sets(c, a->handle, b->handle);
    case CU_GRAPH_NODE_TYPE_HOST:
        return compare_host_functions(c, a->handle, b->handle);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return compare_allocations(c, a->handle, b->handle);
    default:
        return STEPGRAPH_OK;
    }
}

static bool earlier(sg__graph_edge a, sg__graph_edge b)
{
    return a.to != b.to ? a.to < b.to : a.from < b.from;
}

/* The same nodes in another order. */
static stepgraph_status compare_edges(const sg__driver *driver, const sg__graph *a, const sg__graph *b, sg__graph_mismatch *mismatch)
{
    sg__graph_edges x, y = {0};
    stepgraph_status status = sg__graph_edges_read(driver, a, &x);
    sg__graph_edge edge;
    bool in_first;
    size_t i = 0;

    if (status == STEPGRAPH_OK)
        status = sg__graph_edges_read(driver, b, &y);
    while (i < x.n && i < y.n && x.items[i].from == y.items[i].from && x.items[i].to == y.items[i].to)
        i++;
    if (status == STEPGRAPH_OK && !x.partial && !y.partial && (i < x.n || i < y.n)) {
        in_first = i == y.n || (i < x.n && earlier(x.items[i], y.items[i]));
        edge = in_first ? x.items[i] : y.items[i];
        mismatch->node = edge.to;
        snprintf(mismatch->text, sizeof mismatch->text,
                 "the same nodes in another order: node %u, '%.60s', comes after node %u, '%.60s', in the %s recording only", edge.to,
                 a->nodes[edge.to].name, edge.from, a->nodes[edge.from].name, in_first ? "first" : "second");
    }
    sg__graph_edges_free(&x);
    sg__graph_edges_free(&y);
    return status;
}

stepgraph_status sg__graph_compare(const sg__driver *driver, sg__graph *a, const sg__graph *b, sg__graph_difference_fn report,
                                   void *user, sg__graph_mismatch *mismatch, uint64_t *bytes_out)
{
    comparison c = {.driver = driver, .layouts = &a->layouts, .report = report, .user = user};
    size_t n = a->n_nodes < b->n_nodes ? a->n_nodes : b->n_nodes;
    stepgraph_status status = STEPGRAPH_OK;

    mismatch->text[0] = '\0';
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++) {
        c.node = (uint32_t)i;
        if (a->nodes[i].type != b->nodes[i].type) {
            mismatch->node = c.node;
            snprintf(mismatch->text, sizeof mismatch->text, "node %zu is '%.80s' in the first recording and '%.80s' in the second", i,
                     a->nodes[i].name, b->nodes[i].name);
            break;
        }
        status = compare_nodes(&c, &a->nodes[i], &b->nodes[i]);
    }
    if (status == STEPGRAPH_OK && mismatch->text[0] == '\0' && a->n_nodes != b->n_nodes) {
        const sg__graph *longer = a->n_nodes > b->n_nodes ? a : b;
        mismatch->node = (uint32_t)n;
        snprintf(mismatch->text, sizeof mismatch->text, "the first recording has %zu nodes and the second %zu; node %zu, '%.80s', is in the %s only",
                 a->n_nodes, b->n_nodes, n, longer->nodes[n].name, longer == a ? "first" : "second");
    }
    if (status == STEPGRAPH_OK && mismatch->text[0] == '\0')
        status = compare_edges(driver, a, b, mismatch);
    *bytes_out = c.bytes;
    return status;
}
