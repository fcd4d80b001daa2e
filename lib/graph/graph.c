#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "../error.h"
#include "layout.h"

/* What an address can be: neither a small number nor beyond the 57 bits that a device address has at most. */
static bool may_be_address(uint64_t value)
{
    return value >= 0x10000 && value < (uint64_t)1 << 57;
}

/* Make room for one more item of `bytes` in an array that grows by doubling. */
static void *grow(void *array, size_t n, size_t bytes)
{
    if (n != 0 && (n < 16 || (n & (n - 1)) != 0))
        return array;
    return realloc(array, (n < 16 ? 16 : 2 * n) * bytes);
}

static stepgraph_status add_word(sg__graph *out, sg__graph_word word)
{
    void *larger;

    if (!may_be_address(word.value))
        return STEPGRAPH_OK;
    larger = grow(out->words, out->n_words, sizeof *out->words);
    if (larger == NULL)
        return sg__fail_memory("host", out->n_words * sizeof *out->words);
    out->words = larger;
    word.node = (uint32_t)(out->n_nodes - 1);
    out->words[out->n_words++] = word;
    return STEPGRAPH_OK;
}

/* ---- kernel nodes ------------------------------------------------------------------------------------------------ */

/* The packed form: tag and value in turn. */
static const unsigned char *packed_arguments(void **extra, size_t *bytes)
{
    const unsigned char *buffer = NULL;

    *bytes = 0;
    for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            memcpy(bytes, extra[i + 1], sizeof *bytes);
    }
    return buffer;
}

static stepgraph_status read_kernel(const sg__driver *driver, sg__layouts *layouts, CUgraphNode handle, sg__graph *out)
{
    sg__graph_node *node = &out->nodes[out->n_nodes - 1];
    CUDA_KERNEL_NODE_PARAMS params;
    const unsigned char *buffer = NULL;
    const sg__layout *layout;
    stepgraph_status status;
    size_t buffer_bytes = 0;

    memset(&params, 0, sizeof params);
    SG__CU(driver, GraphKernelNodeGetParams, handle, &params);
    node->function = params.func;
    layout = sg__layout_of(driver, layouts, params.func);
    if (layout == NULL || !layout->known) {
        out->n_unread++;
        return layout != NULL ? STEPGRAPH_OK : sg__fail_memory("host", sizeof *layout);
    }
    if (params.kernelParams == NULL && params.extra != NULL)
        buffer = packed_arguments(params.extra, &buffer_bytes);

    for (uint16_t i = 0; i < layout->n; i++) {
        size_t offset = layout->arguments[i].offset, bytes = layout->arguments[i].bytes;
        const unsigned char *argument = NULL;

        if (params.kernelParams != NULL)
            argument = params.kernelParams[i];
        else if (buffer != NULL && offset + bytes <= buffer_bytes)
            argument = buffer + offset;
        for (size_t at = 0; argument != NULL && at + 8 <= bytes; at += 8) {
            sg__graph_word word = {.place = SG__WORD_ARGUMENT, .argument = i, .offset = (uint32_t)at};
            memcpy(&word.value, argument + at, sizeof word.value);
            status = add_word(out, word);
            if (status != STEPGRAPH_OK)
                return status;
        }
    }
    return STEPGRAPH_OK;

fail:
    return status;
}

/* ---- the other nodes that hold addresses ------------------------------------------------------------------------- */

static sg__graph_word operand(sg__word_place place, CUmemorytype type, const void *host, CUdeviceptr device)
{
    /* cuMemcpyAsync is recorded with UNIFIED on both sides: its address may be host memory all the same, so the type is asked later. */
    return (sg__graph_word){.place = (uint16_t)place, .host = type == CU_MEMORYTYPE_HOST,
                            .value = type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device};
}

static stepgraph_status read_copy(const sg__driver *driver, CUgraphNode handle, sg__graph *out)
{
    stepgraph_status status;
    CUDA_MEMCPY3D params;

    memset(&params, 0, sizeof params);
    SG__CU(driver, GraphMemcpyNodeGetParams, handle, &params);
    status = STEPGRAPH_OK;
    if (params.srcMemoryType != CU_MEMORYTYPE_ARRAY)
        status = add_word(out, operand(SG__WORD_SOURCE, params.srcMemoryType, params.srcHost, params.srcDevice));
    if (status == STEPGRAPH_OK && params.dstMemoryType != CU_MEMORYTYPE_ARRAY)
        status = add_word(out, operand(SG__WORD_DESTINATION, params.dstMemoryType, params.dstHost, params.dstDevice));
fail:
    return status;
}

static stepgraph_status read_set(const sg__driver *driver, CUgraphNode handle, sg__graph *out)
{
    CUDA_MEMSET_NODE_PARAMS params;
    stepgraph_status status;

    memset(&params, 0, sizeof params);
    SG__CU(driver, GraphMemsetNodeGetParams, handle, &params);
    return add_word(out, (sg__graph_word){.place = SG__WORD_DESTINATION, .value = params.dst});

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
        return sg__fail_memory("host", out->n_owned * sizeof *out->owned);
    out->owned = larger;
    out->owned[out->n_owned++] = (sg__graph_range){.start = params.dptr, .bytes = params.bytesize};
    return STEPGRAPH_OK;

fail:
    return status;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static stepgraph_status read_nodes(const sg__driver *driver, sg__layouts *layouts, CUgraph graph, sg__graph *out);

static stepgraph_status read_node(const sg__driver *driver, sg__layouts *layouts, CUgraphNode handle, sg__graph *out)
{
    stepgraph_status status;
    CUgraphNodeType type;
    void *larger;
    CUgraph child;

    SG__CU(driver, GraphNodeGetType, handle, &type);
    larger = grow(out->nodes, out->n_nodes, sizeof *out->nodes);
    if (larger == NULL)
        return sg__fail_memory("host", out->n_nodes * sizeof *out->nodes);
    out->nodes = larger;
    out->nodes[out->n_nodes++] = (sg__graph_node){.handle = handle, .type = type};

    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return read_kernel(driver, layouts, handle, out);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return read_copy(driver, handle, out);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return read_set(driver, handle, out);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return read_allocation(driver, handle, out);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        SG__CU(driver, GraphChildGraphNodeGetGraph, handle, &child);
        return read_nodes(driver, layouts, child, out);
    default:
        return STEPGRAPH_OK;
    }

fail:
    return status;
}

static stepgraph_status read_nodes(const sg__driver *driver, sg__layouts *layouts, CUgraph graph, sg__graph *out)
{
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
        status = read_node(driver, layouts, handles[i], out);

fail:
    free(handles);
    return status;
}

stepgraph_status sg__graph_read(const sg__driver *driver, CUgraph graph, sg__graph *out)
{
    sg__layouts layouts = {0};
    stepgraph_status status;

    memset(out, 0, sizeof *out);
    status = read_nodes(driver, &layouts, graph, out);
    sg__layouts_free(&layouts);
    return status;
}

void sg__graph_free(sg__graph *graph)
{
    free(graph->nodes);
    free(graph->words);
    free(graph->owned);
    memset(graph, 0, sizeof *graph);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

const char *sg__graph_node_name(const sg__driver *driver, const sg__graph_node *node)
{
    const char *name = NULL;

    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        if (driver->FuncGetName != NULL && node->function != NULL && driver->FuncGetName(&name, node->function) == CUDA_SUCCESS && name != NULL)
            return name;
        return "kernel (this driver does not tell its name)";
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return "copy";
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return "set";
    case CU_GRAPH_NODE_TYPE_HOST:
        return "host function";
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return "child graph";
    default:
        return "node";
    }
}

const char *sg__graph_handle_name(const sg__driver *driver, CUgraphNode handle)
{
    CUDA_KERNEL_NODE_PARAMS params;
    sg__graph_node node = {.handle = handle};

    memset(&params, 0, sizeof params);
    if (driver->GraphNodeGetType(handle, &node.type) != CUDA_SUCCESS)
        return "node";
    if (node.type == CU_GRAPH_NODE_TYPE_KERNEL && driver->GraphKernelNodeGetParams(handle, &params) == CUDA_SUCCESS)
        node.function = params.func;
    return sg__graph_node_name(driver, &node);
}
