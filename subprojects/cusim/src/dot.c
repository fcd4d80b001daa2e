/* A graph as Graphviz text. */
#include "core.h"

static const char *const type_names[] = {"KERNEL",    "MEMCPY",     "MEMSET",       "HOST",       "GRAPH",
                                         "EMPTY",     "WAIT_EVENT", "EVENT_RECORD", "SIGNAL",     "WAIT",
                                         "MEM_ALLOC", "MEM_FREE",   "BATCH_MEM_OP", "CONDITIONAL"};

static void print(FILE *f, CUgraph g, bool verbose)
{
    for (size_t i = 0; i < g->count; i++) {
        CUgraphNode n = g->nodes[i];
        char what[200];

        fprintf(f, "\"graph_%llu_node_%zu\"[shape=\"octagon\" label=\"%zu\n%s", (unsigned long long)g->id, i, i,
                n->work.type == CU_GRAPH_NODE_TYPE_KERNEL ? n->work.kernel.entry->name : type_names[n->work.type]);
        if (verbose && n->work.type == CU_GRAPH_NODE_TYPE_KERNEL)
            fprintf(f, "\n\\<\\<\\<(%u,%u,%u),(%u,%u,%u),%u\\>\\>\\>", n->work.kernel.grid[0], n->work.kernel.grid[1],
                    n->work.kernel.grid[2], n->work.kernel.block[0], n->work.kernel.block[1], n->work.kernel.block[2],
                    n->work.kernel.shared);
        else if (verbose && (n->work.type == CU_GRAPH_NODE_TYPE_MEMCPY || n->work.type == CU_GRAPH_NODE_TYPE_MEMSET))
            fprintf(f, "\n%s", cs_describe(&n->work, what, sizeof what));
        fprintf(f, "\"];\n");
        for (size_t k = 0; k < n->in.count; k++)
            fprintf(f, "\"graph_%llu_node_%zu\" -> \"graph_%llu_node_%zu\";\n", (unsigned long long)g->id, n->in.nodes[k]->index,
                    (unsigned long long)g->id, i);
    }
}

static void print_graph(FILE *f, CUgraph g, bool verbose)
{
    fprintf(f, "subgraph cluster_%llu {\nlabel=\"graph_%llu\" graph[style=\"dashed\"];\n", (unsigned long long)g->id,
            (unsigned long long)g->id);
    print(f, g, verbose);
    fprintf(f, "}\n");
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i]->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            print_graph(f, g->nodes[i]->work.child, verbose);
}

CUresult cuGraphDebugDotPrint(CUgraph g, const char *path, unsigned flags)
{
    ENTER(cuGraphDebugDotPrint);
    if (!cs_is(g, CS_GRAPH) || !path)
        return CUDA_ERROR_INVALID_VALUE;
    FILE *f = fopen(path, "w");
    if (!f)
        return CUDA_ERROR_OPERATING_SYSTEM;
    fprintf(f, "digraph dot {\n");
    print_graph(f, g, flags != 0);
    fprintf(f, "}\n");
    return fclose(f) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
