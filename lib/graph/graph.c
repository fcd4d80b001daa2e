#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "../error.h"
#include "arguments.h"

/* A graph as it is read. */
typedef struct reader {
    const sg__driver *driver;
    sg__values *values; /* NULL: they are not counted. */
    sg__graph_settle_fn settle;
    void *user;
    sg__graph *out;
} reader;

/* A step of a fingerprint, by two words: each step depends on those before it, so that words at different places do not stand for each other. Prints
 * are of this process, and nobody makes them collide on purpose. One multiplication for both, since each word of a recording goes through here. */
static uint64_t print_add(uint64_t print, uint64_t one, uint64_t other)
{
    __extension__ typedef unsigned __int128 product;
    const product both = (product)(one ^ 0x9e3779b97f4a7c15ull) * (other ^ print ^ 0xd6e8feb86659fd93ull);

    return (uint64_t)both ^ (uint64_t)(both >> 64);
}

static uint64_t print_of_shape(const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    const uint64_t words[] = {(uintptr_t)params->func, params->gridDimX | (uint64_t)params->gridDimY << 32,
                              params->gridDimZ | (uint64_t)params->blockDimX << 32, params->blockDimY | (uint64_t)params->blockDimZ << 32};

    return print_add(print_add(print_add(0, words[0], words[1]), words[2], words[3]), params->sharedMemBytes, 0);
}

/* Room for one more item of `bytes` in an array that grows by doubling. NULL: there is no host memory, and the thread's record says so. */
static void *grow(void *array, size_t n, size_t bytes)
{
    const size_t room = n < 16 ? 16 : 2 * n;
    void *larger;

    if (n != 0 && (n < 16 || (n & (n - 1)) != 0))
        return array;
    larger = realloc(array, room * bytes);
    if (larger == NULL)
        (void)sg__fail_memory("host", room * bytes);
    return larger;
}

static stepgraph_status add_word(sg__graph *out, sg__graph_word word)
{
    void *larger;

    if (!sg__may_be_address(word.value))
        return STEPGRAPH_OK;
    larger = grow(out->words, out->n_words, sizeof *out->words);
    if (larger == NULL)
        return STEPGRAPH_ERR_MEMORY;
    out->words = larger;
    word.node = (uint32_t)(out->n_nodes - 1);
    out->words[out->n_words++] = word;
    return STEPGRAPH_OK;
}

static stepgraph_status add_unread(sg__graph *out)
{
    void *larger = grow(out->unread, out->n_unread, sizeof *out->unread);

    if (larger == NULL)
        return STEPGRAPH_ERR_MEMORY;
    out->unread = larger;
    out->unread[out->n_unread++] = (uint32_t)(out->n_nodes - 1);
    return STEPGRAPH_OK;
}

/* ---- kernel nodes ------------------------------------------------------------------------------------------------ */

/* A word with a number that was not met yet. slot: where it belongs among the values; NULL: they are not counted. mark: SG__VALUE_SET or 0. */
static stepgraph_status meet(const reader *r, const sg__graph_word *word, sg__value *slot, uint32_t mark)
{
    sg__value *entry = slot != NULL ? sg__values_add(r->values, slot, word->value) : NULL;

    if (entry != NULL) {
        entry->n = 1;
        entry->marks = mark;
    }
    return r->settle != NULL && r->settle(r->user, word->value, entry) ? STEPGRAPH_OK : add_word(r->out, *word);
}

/* A word that stands at a byte of an argument, the place of which is in word. */
static inline stepgraph_status look_at(const reader *r, sg__graph_word *word, uint64_t value, size_t at, uint32_t mark)
{
    sg__value *slot;

    if (!sg__may_be_address(value))
        return STEPGRAPH_OK;
    slot = r->values != NULL ? sg__values_slot(r->values->items, r->values->room, value) : NULL;
    if (slot != NULL && slot->value == value) {
        slot->n++;
        slot->marks |= mark;
        return STEPGRAPH_OK;
    }
    word->value = value;
    word->offset = (uint32_t)at;
    return meet(r, word, slot, mark);
}

/* Keep what may be an address in it, and put all of it into the node's print. */
static stepgraph_status read_argument(const reader *r, sg__arguments *arguments, uint16_t index, uint64_t *print)
{
    size_t bytes, at = 0;
    const unsigned char *argument = sg__argument(arguments, index, &bytes);
    const uint32_t mark = bytes > SG__SMALL_STRUCT ? 0 : SG__VALUE_SET;
    sg__graph_word word = {.place = SG__WORD_ARGUMENT, .argument = index};
    stepgraph_status status = STEPGRAPH_OK;
    uint64_t pair[2], sum = *print;

    if (argument == NULL)
        return STEPGRAPH_OK;
    r->out->nodes[r->out->n_nodes - 1].bytes += (uint32_t)bytes;
    for (; at + sizeof pair <= bytes && status == STEPGRAPH_OK; at += sizeof pair) {
        memcpy(pair, argument + at, sizeof pair);
        sum = print_add(sum, pair[0], pair[1]);
        status = look_at(r, &word, pair[0], at, mark);
        if (status == STEPGRAPH_OK)
            status = look_at(r, &word, pair[1], at + 8, mark);
    }
    if (at + 8 <= bytes && status == STEPGRAPH_OK) {
        memcpy(pair, argument + at, 8);
        sum = print_add(sum, pair[0], 0);
        status = look_at(r, &word, pair[0], at, mark);
        at += 8;
    }
    if (at < bytes) {
        pair[0] = 0;
        if (bytes - at == 4) /* Most of them. */
            memcpy(pair, argument + at, 4);
        else
            memcpy(pair, argument + at, bytes - at);
        sum = print_add(sum, pair[0], 0);
    }
    *print = sum;
    return status;
}

static stepgraph_status read_kernel(const reader *r, CUgraphNode handle)
{
    sg__graph *out = r->out;
    sg__graph_node *node = &out->nodes[out->n_nodes - 1];
    sg__arguments arguments;
    stepgraph_status status;
    uint64_t print;

    sg__arguments_begin(&arguments, NULL);
    SG__CU(r->driver, GraphKernelNodeGetParams, handle, &arguments.params);
    node->function = arguments.params.func;
    status = sg__layout_of(r->driver, &out->layouts, arguments.params.func, &arguments.layout);
    if (status != STEPGRAPH_OK)
        return status;
    node->layout = arguments.layout;
    if (!arguments.layout->known)
        return add_unread(out);
    sg__arguments_open(&arguments);

    print = print_of_shape(&arguments.params);
    for (uint16_t i = 0; i < arguments.layout->n && status == STEPGRAPH_OK; i++)
        status = read_argument(r, &arguments, i, &print);
    node->print = print != 0 ? print : 1;
    return status;

fail:
    return status;
}

/* ---- the other nodes that hold addresses ------------------------------------------------------------------------- */

/* cuMemcpyAsync is recorded with UNIFIED on both sides: its address may be host memory all the same, so the type is asked later. */
static sg__graph_word operand(sg__word_place place, CUmemorytype type, uint64_t start, sg__rows rows)
{
    return (sg__graph_word){.place = (uint16_t)place, .type = type, .value = start, .bytes = sg__rows_reach(rows), .rows = rows};
}

static stepgraph_status read_copy(const sg__driver *driver, CUgraphNode handle, sg__graph *out)
{
    stepgraph_status status;
    CUDA_MEMCPY3D params;

    memset(&params, 0, sizeof params);
    SG__CU(driver, GraphMemcpyNodeGetParams, handle, &params);
    status = STEPGRAPH_OK;
    if (params.srcMemoryType != CU_MEMORYTYPE_ARRAY)
        status = add_word(out, operand(SG__WORD_SOURCE, params.srcMemoryType, sg__copy_source(&params), sg__rows_of_source(&params)));
    if (status == STEPGRAPH_OK && params.dstMemoryType != CU_MEMORYTYPE_ARRAY)
        status = add_word(out, operand(SG__WORD_DESTINATION, params.dstMemoryType, sg__copy_destination(&params), sg__rows_of_destination(&params)));
fail:
    return status;
}

static stepgraph_status read_set(const sg__driver *driver, CUgraphNode handle, sg__graph *out)
{
    CUDA_MEMSET_NODE_PARAMS params;
    stepgraph_status status;

    memset(&params, 0, sizeof params);
    SG__CU(driver, GraphMemsetNodeGetParams, handle, &params);
    return add_word(out, operand(SG__WORD_DESTINATION, CU_MEMORYTYPE_DEVICE, params.dst, sg__rows_of_set(&params)));

fail:
    return status;
}

/* What else there is in such a node, such as a barrier, is not read. */
static stepgraph_status read_memory_operations(const sg__driver *driver, CUgraphNode handle, sg__graph *out)
{
    CUDA_BATCH_MEM_OP_NODE_PARAMS params;
    stepgraph_status status;
    bool all = true;

    memset(&params, 0, sizeof params);
    SG__CU(driver, GraphBatchMemOpNodeGetParams, handle, &params);
    status = STEPGRAPH_OK;
    for (unsigned int i = 0; i < params.count && status == STEPGRAPH_OK; i++) {
        const CUstreamBatchMemOpParams *x = &params.paramArray[i];
        const uint32_t bytes = sg__memory_operation_bytes(x);
        all &= bytes != 0;
        if (bytes != 0)
            status = add_word(out, operand(sg__memory_operation_writes(x) ? SG__WORD_DESTINATION : SG__WORD_SOURCE, CU_MEMORYTYPE_DEVICE,
                                           x->writeValue.address, (sg__rows){bytes, 1, 1, 0, 0}));
    }
    return status == STEPGRAPH_OK && !all ? add_unread(out) : status;

fail:
    return status;
}

static stepgraph_status read_allocation(const sg__driver *driver, CUgraphNode handle, sg__graph *out)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    stepgraph_status status;
    void *larger;

    memset(&params, 0, sizeof params);
    SG__CU(driver, GraphMemAllocNodeGetParams, handle, &params);
    larger = grow(out->owned, out->n_owned, sizeof *out->owned);
    if (larger == NULL)
        return STEPGRAPH_ERR_MEMORY;
    out->owned = larger;
    out->owned[out->n_owned++] =
        (sg__graph_range){.start = params.dptr, .bytes = params.bytesize, .node = (uint32_t)(out->n_nodes - 1)};
    if (out->n_owned == 1 || params.dptr < out->owned_low)
        out->owned_low = params.dptr;
    if (params.dptr + params.bytesize > out->owned_high)
        out->owned_high = params.dptr + params.bytesize;
    return STEPGRAPH_OK;

fail:
    return status;
}

static stepgraph_status read_free(const sg__driver *driver, CUgraphNode handle, sg__graph *out)
{
    CUdeviceptr address = 0;
    stepgraph_status status;
    void *larger;

    SG__CU(driver, GraphMemFreeNodeGetParams, handle, &address);
    larger = grow(out->freed, out->n_freed, sizeof *out->freed);
    if (larger == NULL)
        return STEPGRAPH_ERR_MEMORY;
    out->freed = larger;
    out->freed[out->n_freed++] = address;
    return STEPGRAPH_OK;

fail:
    return status;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* depth 0: the nodes that were recorded; deeper ones belong to a child graph. */
static stepgraph_status read_nodes(const reader *r, CUgraph graph, unsigned int depth);

static stepgraph_status read_node(const reader *r, CUgraphNode handle, uint32_t top, unsigned int depth)
{
    const sg__driver *driver = r->driver;
    sg__graph *out = r->out;
    stepgraph_status status;
    CUgraphNodeType type;
    void *larger;
    CUgraph child;

    SG__CU(driver, GraphNodeGetType, handle, &type);
    larger = grow(out->nodes, out->n_nodes, sizeof *out->nodes);
    if (larger == NULL)
        return STEPGRAPH_ERR_MEMORY;
    out->nodes = larger;
    out->nodes[out->n_nodes++] = (sg__graph_node){.handle = handle, .type = type, .top = top};

    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return read_kernel(r, handle);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return read_copy(driver, handle, out);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return read_set(driver, handle, out);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return read_memory_operations(driver, handle, out);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return read_allocation(driver, handle, out);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return read_free(driver, handle, out);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        SG__CU(driver, GraphChildGraphNodeGetGraph, handle, &child);
        return read_nodes(r, child, depth + 1);
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return STEPGRAPH_OK; /* No address of device memory in them. */
    default:
        return add_unread(out); /* Among them types that are younger than this library. */
    }

fail:
    return status;
}

static stepgraph_status read_nodes(const reader *r, CUgraph graph, unsigned int depth)
{
    const sg__driver *driver = r->driver;
    sg__graph *out = r->out;
    uint32_t parent = depth > 0 ? out->nodes[out->n_nodes - 1].top : 0;
    CUgraphNode *handles = NULL;
    stepgraph_status status;
    size_t n = 0;

    SG__CU(driver, GraphGetNodes, graph, NULL, &n);
    if (n == 0)
        return STEPGRAPH_OK; /* An array with room for none is an error to the driver. */
    handles = malloc(n * sizeof(CUgraphNode));
    if (handles == NULL)
        return sg__fail_memory("host", n * sizeof(CUgraphNode));
    SG__CU(driver, GraphGetNodes, graph, handles, &n);
    status = STEPGRAPH_OK;
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++)
        status = read_node(r, handles[i], depth > 0 ? parent : (uint32_t)i, depth);

fail:
    free(handles);
    return status;
}

stepgraph_status sg__graph_read_values(const sg__driver *driver, CUgraph graph, sg__known_kernels *kernels, sg__values *values, sg__graph_settle_fn settle,
                                       void *user, sg__graph *out)
{
    const reader r = {.driver = driver, .values = values, .settle = settle, .user = user, .out = out};

    memset(out, 0, sizeof *out);
    out->handle = graph;
    out->layouts.kernels = kernels;
    return read_nodes(&r, graph, 0);
}

stepgraph_status sg__graph_read(const sg__driver *driver, CUgraph graph, sg__known_kernels *kernels, sg__graph_settle_fn settle, void *user, sg__graph *out)
{
    return sg__graph_read_values(driver, graph, kernels, NULL, settle, user, out);
}

stepgraph_status sg__graph_arguments(const sg__driver *driver, const sg__graph *graph, sg__graph_argument_fn visit, void *user)
{
    stepgraph_status status = STEPGRAPH_OK;

    for (uint32_t i = 0; i < graph->n_nodes && status == STEPGRAPH_OK; i++) {
        sg__arguments arguments;
        if (graph->nodes[i].type != CU_GRAPH_NODE_TYPE_KERNEL || !graph->nodes[i].layout->known)
            continue;
        sg__arguments_begin(&arguments, graph->nodes[i].layout);
        SG__CU(driver, GraphKernelNodeGetParams, graph->nodes[i].handle, &arguments.params);
        sg__arguments_open(&arguments);
        for (uint16_t k = 0; k < arguments.layout->n && status == STEPGRAPH_OK; k++) {
            size_t n;
            const unsigned char *bytes = sg__argument(&arguments, k, &n);
            if (bytes != NULL)
                status = visit(user, i, k, bytes, n);
        }
    }
    return status;

fail:
    return status;
}

void sg__graph_free_words(sg__graph *graph)
{
    free(graph->words);
    graph->words = NULL;
    graph->n_words = 0;
}

void sg__graph_free(sg__graph *graph)
{
    sg__graph_free_words(graph);
    sg__layouts_free(&graph->layouts);
    free(graph->nodes);
    free(graph->owned);
    free(graph->freed);
    free(graph->unread);
    memset(graph, 0, sizeof *graph);
}
