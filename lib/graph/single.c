#include "single.h"

#include <stdlib.h>
#include <string.h>

#include "../error.h"

sg__single_kind sg__single_kind_of(CUgraphNodeType type)
{
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return SG__SINGLE_RUNS;
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return SG__SINGLE_NOTHING;
    default:
        return SG__SINGLE_NEVER;
    }
}

static stepgraph_status add(const sg__driver *driver, CUcontext context, CUgraphNodeType type, CUgraphNode node, CUgraph graph)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS set;
    CUDA_HOST_NODE_PARAMS host;
    CUDA_MEMCPY3D copy;
    stepgraph_status status;
    CUgraphNode added;

    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        memset(&kernel, 0, sizeof kernel);
        SG__CU(driver, GraphKernelNodeGetParams_v2, node, &kernel);
        SG__CU(driver, GraphAddKernelNode, &added, graph, NULL, 0, &kernel);
        SG__CU(driver, GraphKernelNodeCopyAttributes, added, node);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        memset(&copy, 0, sizeof copy);
        SG__CU(driver, GraphMemcpyNodeGetParams, node, &copy);
        SG__CU(driver, GraphAddMemcpyNode, &added, graph, NULL, 0, &copy, context);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        memset(&set, 0, sizeof set);
        SG__CU(driver, GraphMemsetNodeGetParams, node, &set);
        SG__CU(driver, GraphAddMemsetNode, &added, graph, NULL, 0, &set, context);
        break;
    default: /* A host function. */
        memset(&host, 0, sizeof host);
        SG__CU(driver, GraphHostNodeGetParams, node, &host);
        SG__CU(driver, GraphAddHostNode, &added, graph, NULL, 0, &host);
        break;
    }
    return STEPGRAPH_OK;

fail:
    return status;
}

static stepgraph_status make_of_parameters(const sg__driver *driver, CUcontext context, CUgraphNodeType type, CUgraphNode node, CUgraph *graph_out)
{
    stepgraph_status status;

    SG__CU(driver, GraphCreate, graph_out, 0);
    return add(driver, context, type, node, *graph_out);

fail:
    return status;
}

/* A child graph that belongs to a node becomes no other node's (R580: CUDA_ERROR_NOT_SUPPORTED), so all others are taken out of a clone. */
static stepgraph_status make_by_cutting(const sg__driver *driver, CUgraph whole, CUgraphNode node, CUgraph *graph_out)
{
    CUgraphNode kept, *nodes = NULL;
    stepgraph_status status;
    size_t n = 0;

    SG__CU(driver, GraphClone, graph_out, whole);
    SG__CU(driver, GraphNodeFindInClone, &kept, node, *graph_out);
    SG__CU(driver, GraphGetNodes, *graph_out, NULL, &n);
    nodes = malloc(n * sizeof *nodes);
    if (nodes == NULL) {
        status = sg__fail_memory("host", n * sizeof *nodes);
        goto fail;
    }
    SG__CU(driver, GraphGetNodes, *graph_out, nodes, &n);
    for (size_t i = 0; i < n; i++)
        if (nodes[i] != kept)
            SG__CU(driver, GraphDestroyNode, nodes[i]);
    status = STEPGRAPH_OK;

fail:
    free(nodes);
    return status;
}

stepgraph_status sg__single_make(const sg__driver *driver, CUcontext context, CUgraph whole, CUgraphNodeType type, CUgraphNode node, CUgraph *graph_out)
{
    stepgraph_status status;

    *graph_out = NULL;
    status = type == CU_GRAPH_NODE_TYPE_GRAPH ? make_by_cutting(driver, whole, node, graph_out) : make_of_parameters(driver, context, type, node, graph_out);
    if (status == STEPGRAPH_OK)
        return STEPGRAPH_OK;
    if (*graph_out != NULL)
        driver->GraphDestroy(*graph_out);
    *graph_out = NULL;
    return status;
}
