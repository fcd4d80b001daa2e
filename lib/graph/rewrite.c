#include "rewrite.h"

#include <stdlib.h>

#include "../error.h"

/* ---- what stands against it -------------------------------------------------------------------------------------- */

const char *sg__fixed_words(sg__fixed fixed)
{
    switch (fixed) {
    case SG__FIXED_MEMORY:
        return "the graph allocates or frees memory";
    case SG__FIXED_CONDITIONAL:
        return "the graph has a conditional node";
    case SG__FIXED_CLONE:
        return "the driver does not clone the graph";
    case SG__FIXED_CHILD:
        return "they are in a child graph";
    case SG__FIXED_PROGRAMMATIC:
        return "they have an edge of a programmatic launch";
    default:
        return "";
    }
}

bool sg__graph_in_child(const sg__graph *graph, uint32_t index)
{
    return index > 0 && graph->nodes[index].top == graph->nodes[index - 1].top;
}

sg__fixed sg__rewrite_obstacle(const sg__graph *graph, uint32_t *node_out)
{
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        CUgraphNodeType type = graph->nodes[i].type;
        *node_out = i;
        if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            return SG__FIXED_MEMORY;
        if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            return SG__FIXED_CONDITIONAL;
    }
    *node_out = UINT32_MAX;
    return SG__FIXED_NOT;
}

/* ---- the clone --------------------------------------------------------------------------------------------------- */

stepgraph_status sg__rewrite_open(const sg__driver *driver, const sg__graph *read, sg__rewrite *rewrite, sg__fixed *fixed_out)
{
    stepgraph_status status;
    uint32_t node;
    CUresult code;

    *rewrite = (sg__rewrite){.driver = driver, .read = read};
    *fixed_out = sg__rewrite_obstacle(read, &node);
    if (*fixed_out != SG__FIXED_NOT)
        return STEPGRAPH_OK;
    rewrite->nodes = calloc(read->n_nodes + 1, sizeof *rewrite->nodes);
    if (rewrite->nodes == NULL)
        return sg__fail_memory("host", read->n_nodes * sizeof *rewrite->nodes);
    code = driver->GraphClone(&rewrite->graph, read->handle);
    if (code != CUDA_SUCCESS) {
        rewrite->graph = NULL;
        *fixed_out = SG__FIXED_CLONE;
        return code == CUDA_ERROR_NOT_SUPPORTED || code == CUDA_ERROR_INVALID_VALUE ? STEPGRAPH_OK : sg__fail_driver(driver, "cuGraphClone", code);
    }
    for (uint32_t i = 0; i < read->n_nodes; i++)
        if (!sg__graph_in_child(read, i))
            SG__CU(driver, GraphNodeFindInClone, &rewrite->nodes[i], read->nodes[i].handle, rewrite->graph);
    return STEPGRAPH_OK;

fail:
    return status;
}

void sg__rewrite_close(sg__rewrite *rewrite)
{
    if (rewrite->graph != NULL)
        rewrite->driver->GraphDestroy(rewrite->graph);
    free(rewrite->nodes);
    *rewrite = (sg__rewrite){0};
}

uint32_t sg__rewrite_index(const sg__rewrite *rewrite, CUgraphNode node)
{
    for (uint32_t i = 0; node != NULL && rewrite->nodes != NULL && i < rewrite->read->n_nodes; i++)
        if (rewrite->nodes[i] == node)
            return i;
    return UINT32_MAX;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

/* The nodes before or after one. */
typedef struct neighbours {
    CUgraphNode few[16], *nodes;
    size_t n;
} neighbours;

/* *plain: the driver tells all of them without more words about the edges. To be freed where it is not `few`. */
static stepgraph_status ask(const sg__driver *driver, CUgraphNode node, bool after, neighbours *out, bool *plain)
{
    CUresult (*list)(CUgraphNode, CUgraphNode *, size_t *) = after ? driver->GraphNodeGetDependentNodes : driver->GraphNodeGetDependencies;
    size_t room = sizeof out->few / sizeof *out->few;
    CUresult code;

    out->nodes = out->few;
    out->n = room;
    code = list(node, out->nodes, &out->n);
    if (code == CUDA_SUCCESS && out->n == room) { /* Perhaps there are more. */
        code = list(node, NULL, &out->n);
        out->nodes = code == CUDA_SUCCESS ? malloc(out->n * sizeof(CUgraphNode)) : out->few;
        if (out->nodes == NULL)
            return sg__fail_memory("host", out->n * sizeof(CUgraphNode));
        if (code == CUDA_SUCCESS)
            code = list(node, out->nodes, &out->n);
    }
    *plain = code != CUDA_ERROR_LOSSY_QUERY;
    if (code == CUDA_SUCCESS || !*plain)
        return STEPGRAPH_OK;
    return sg__fail_driver(driver, after ? "cuGraphNodeGetDependentNodes" : "cuGraphNodeGetDependencies", code);
}

static void forget(neighbours *list)
{
    if (list->nodes != list->few)
        free(list->nodes);
}

static stepgraph_status replace(sg__rewrite *rewrite, uint32_t index, const CUDA_KERNEL_NODE_PARAMS *params, const neighbours *before,
                                const neighbours *after)
{
    const sg__driver *driver = rewrite->driver;
    CUgraphNode made = NULL, *from = NULL;
    stepgraph_status status;

    SG__CU(driver, GraphAddKernelNode, &made, rewrite->graph, before->n > 0 ? before->nodes : NULL, before->n, params);
    from = malloc((after->n + 1) * sizeof *from);
    if (from == NULL)
        return sg__fail_memory("host", (after->n + 1) * sizeof *from);
    for (size_t i = 0; i < after->n; i++)
        from[i] = made;
    if (after->n > 0)
        SG__CU(driver, GraphAddDependencies, rewrite->graph, from, after->nodes, after->n);
    SG__CU(driver, GraphDestroyNode, rewrite->nodes[index]);
    rewrite->nodes[index] = made;
    free(from);
    return STEPGRAPH_OK;

fail:
    free(from);
    return status;
}

stepgraph_status sg__rewrite_replace(sg__rewrite *rewrite, uint32_t index, const CUDA_KERNEL_NODE_PARAMS *params, sg__fixed *fixed_out)
{
    bool plain_before = true, plain_after = true;
    neighbours before, after;
    stepgraph_status status;

    *fixed_out = rewrite->nodes[index] == NULL ? SG__FIXED_CHILD : SG__FIXED_NOT;
    if (*fixed_out != SG__FIXED_NOT)
        return STEPGRAPH_OK;
    before.nodes = before.few;
    after.nodes = after.few;
    status = ask(rewrite->driver, rewrite->nodes[index], false, &before, &plain_before);
    if (status == STEPGRAPH_OK)
        status = ask(rewrite->driver, rewrite->nodes[index], true, &after, &plain_after);
    if (!plain_before || !plain_after)
        *fixed_out = SG__FIXED_PROGRAMMATIC;
    else if (status == STEPGRAPH_OK)
        status = replace(rewrite, index, params, &before, &after);
    forget(&before);
    forget(&after);
    return status;
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

/* Handles of both ends, those at the beginning first. */
static CUgraphNode *ends(const sg__rewrite *rewrite, const uint32_t *index, const sg__graph_edge *edges, size_t n)
{
    CUgraphNode *handles = malloc((2 * n + 1) * sizeof *handles);

    for (size_t i = 0; handles != NULL && i < n; i++) {
        handles[i] = rewrite->nodes[index[edges[i].from]];
        handles[n + i] = rewrite->nodes[index[edges[i].to]];
    }
    return handles;
}

stepgraph_status sg__rewrite_edges(sg__rewrite *rewrite, const uint32_t *index, const sg__graph_edge *old, size_t n_old, const sg__graph_edge *edges,
                                   size_t n)
{
    const sg__driver *driver = rewrite->driver;
    CUgraphNode *gone = ends(rewrite, index, old, n_old), *made = ends(rewrite, index, edges, n);
    stepgraph_status status;

    if (gone == NULL || made == NULL) {
        status = sg__fail_memory("host", 2 * (n_old + n) * sizeof *gone);
        goto fail;
    }
    if (n_old > 0)
        SG__CU(driver, GraphRemoveDependencies, rewrite->graph, gone, gone + n_old, n_old);
    if (n > 0)
        SG__CU(driver, GraphAddDependencies, rewrite->graph, made, made + n, n);
    status = STEPGRAPH_OK;

fail:
    free(gone);
    free(made);
    return status;
}
