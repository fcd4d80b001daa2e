#include "operands.h"

#include "../error.h"
#include "arguments.h"

typedef struct reading {
    CUdeviceptr low, high;
    sg__operand_fn call;
    void *user;
} reading;

static stepgraph_status scan(const reading *r, uint16_t index, const unsigned char *argument, size_t bytes)
{
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t at = 0; at + 8 <= bytes && status == STEPGRAPH_OK; at++) {
        sg__operand operand = {.place = SG__WORD_ARGUMENT, .argument = index, .offset = (uint32_t)at};
        memcpy(&operand.address, argument + at, sizeof operand.address);
        if (operand.address - r->low < r->high - r->low)
            status = r->call(r->user, &operand);
    }
    return status;
}

static stepgraph_status kernel(const sg__driver *driver, const sg__graph_node *node, const reading *r, bool *readable)
{
    stepgraph_status status = STEPGRAPH_OK;
    sg__arguments arguments;

    *readable = node->layout != NULL && node->layout->known;
    if (!*readable)
        return STEPGRAPH_OK;
    sg__arguments_begin(&arguments, node->layout);
    SG__CU(driver, GraphKernelNodeGetParams, node->handle, &arguments.params);
    sg__arguments_open(&arguments);
    for (uint16_t i = 0; i < arguments.layout->n && status == STEPGRAPH_OK; i++) {
        size_t bytes;
        const unsigned char *argument = sg__argument(&arguments, i, &bytes);
        if (argument == NULL)
            *readable = false;
        else
            status = scan(r, i, argument, bytes);
    }
fail:
    return status;
}

static stepgraph_status copy(const sg__driver *driver, const sg__graph_node *node, const reading *r)
{
    sg__operand from = {.place = SG__WORD_SOURCE}, to = {.place = SG__WORD_DESTINATION};
    stepgraph_status status;
    CUDA_MEMCPY3D params;

    memset(&params, 0, sizeof params);
    SG__CU(driver, GraphMemcpyNodeGetParams, node->handle, &params);
    from.type = params.srcMemoryType;
    to.type = params.dstMemoryType;
    if (from.type != CU_MEMORYTYPE_ARRAY) {
        from.address = sg__copy_source(&params);
        from.bytes = sg__rows_reach(sg__rows_of_source(&params));
    }
    if (to.type != CU_MEMORYTYPE_ARRAY) {
        to.address = sg__copy_destination(&params);
        to.bytes = sg__rows_reach(sg__rows_of_destination(&params));
    }
    status = r->call(r->user, &from);
    return status == STEPGRAPH_OK ? r->call(r->user, &to) : status;

fail:
    return status;
}

static stepgraph_status set(const sg__driver *driver, const sg__graph_node *node, const reading *r)
{
    CUDA_MEMSET_NODE_PARAMS params = {0};
    stepgraph_status status;

    SG__CU(driver, GraphMemsetNodeGetParams, node->handle, &params);
    return r->call(r->user, &(sg__operand){.place = SG__WORD_DESTINATION, .address = params.dst, .type = CU_MEMORYTYPE_DEVICE,
                                           .bytes = sg__rows_reach(sg__rows_of_set(&params))});

fail:
    return status;
}

stepgraph_status sg__graph_operands(const sg__driver *driver, const sg__graph_node *node, CUdeviceptr low, CUdeviceptr high,
                                    sg__operand_fn call, void *user, bool *readable_out)
{
    const reading r = {.low = low, .high = high, .call = call, .user = user};

    *readable_out = true;
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel(driver, node, &r, readable_out);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copy(driver, node, &r);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return set(driver, node, &r);
    default:
        return STEPGRAPH_OK;
    }
}
