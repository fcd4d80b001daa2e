/* Names of nodes, for messages. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

/* ---- C++ names --------------------------------------------------------------------------------------------------- */

typedef char *(*demangle_fn)(const char *mangled, char *buffer, size_t *bytes, int *status);

static pthread_once_t demangler_once = PTHREAD_ONCE_INIT;
static demangle_fn demangler;

/* The C++ runtime's own demangler, if there is a runtime: a host with C++ kernels has one. Without it names stay as they are. */
static void find_demangler(void)
{
    void *runtime = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    void *function = runtime != NULL ? dlsym(runtime, "__cxa_demangle") : NULL;

    memcpy(&demangler, &function, sizeof function);
}

char *sg__function_name(const sg__driver *driver, CUfunction function)
{
    const char *name = NULL;
    char *demangled = NULL;
    int status = -1;

    if (function == NULL || driver->FuncGetName == NULL || driver->FuncGetName(&name, function) != CUDA_SUCCESS || name == NULL)
        return NULL;
    if (strncmp(name, "_Z", 2) == 0) {
        pthread_once(&demangler_once, find_demangler);
        if (demangler != NULL)
            demangled = demangler(name, NULL, NULL, &status);
    }
    return demangled != NULL && status == 0 ? demangled : strdup(name);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

const char *sg__node_kind_name(CUgraphNodeType type)
{
    static const char *const kinds[] = {
        [CU_GRAPH_NODE_TYPE_KERNEL] = "kernel (this driver does not tell its name)",
        [CU_GRAPH_NODE_TYPE_MEMCPY] = "copy",
        [CU_GRAPH_NODE_TYPE_MEMSET] = "set",
        [CU_GRAPH_NODE_TYPE_HOST] = "host function",
        [CU_GRAPH_NODE_TYPE_GRAPH] = "child graph",
        [CU_GRAPH_NODE_TYPE_EMPTY] = "empty node",
        [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = "event wait",
        [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = "event record",
        [CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL] = "semaphore signal",
        [CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT] = "semaphore wait",
        [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = "allocation",
        [CU_GRAPH_NODE_TYPE_MEM_FREE] = "free",
        [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = "memory operation",
        [CU_GRAPH_NODE_TYPE_CONDITIONAL] = "conditional",
    };

    return (size_t)type < sizeof kinds / sizeof *kinds ? kinds[type] : "node of an unknown type";
}

void sg__graph_handle_name(const sg__driver *driver, CUgraphNode handle, char *text, size_t bytes)
{
    CUDA_KERNEL_NODE_PARAMS params;
    CUgraphNodeType type;
    char *name = NULL;

    memset(&params, 0, sizeof params);
    snprintf(text, bytes, "node");
    if (driver->GraphNodeGetType(handle, &type) != CUDA_SUCCESS)
        return;
    if (type == CU_GRAPH_NODE_TYPE_KERNEL && driver->GraphKernelNodeGetParams(handle, &params) == CUDA_SUCCESS)
        name = sg__function_name(driver, params.func);
    snprintf(text, bytes, "%s", name != NULL ? name : sg__node_kind_name(type));
    free(name);
}
