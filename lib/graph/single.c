#include "single.h"

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
    CUgraph child;

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
    case CU_GRAPH_NODE_TYPE_HOST:
        memset(&host, 0, sizeof host);
        SG__CU(driver, GraphHostNodeGetParams, node, &host);
        SG__CU(driver, GraphAddHostNode, &added, graph, NULL, 0, &host);
        break;
    default: /* A child graph. */
        SG__CU(driver, GraphChildGraphNodeGetGraph, node, &child);
        SG__CU(driver, GraphAddChildGraphNode, &added, graph, NULL, 0, child);
        break;
    }
    return STEPGRAPH_OK;

fail:
    return status;
}

stepgraph_status sg__single_make(const sg__driver *driver, CUcontext context, CUgraphNodeType type, CUgraphNode node, CUgraph *graph_out)
{
    stepgraph_status status;

    *graph_out = NULL;
    SG__CU(driver, GraphCreate, graph_out, 0);
    status = add(driver, context, type, node, *graph_out);
    if (status == STEPGRAPH_OK)
        return STEPGRAPH_OK;
    driver->GraphDestroy(*graph_out);

fail:
    *graph_out = NULL;
    return status;
}
