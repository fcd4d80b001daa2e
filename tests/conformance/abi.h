/* Declarations of the driver's ABI that the library itself has no use for. Names begin with cf_ so that they cannot meet the
 * library's. */
#ifndef CONFORMANCE_ABI_H
#define CONFORMANCE_ABI_H

#include "cuda_abi.h"

typedef unsigned long long cf_mem_handle;
typedef cuuint64_t cf_conditional;
typedef struct CUgreenCtx_st *cf_green;
typedef struct CUdevResourceDesc_st *cf_dev_resource_desc;
typedef struct cf_ctx_params cf_ctx_params;
typedef struct cf_uuid {
    char bytes[16];
} cf_uuid;
typedef struct cf_ipc_handle {
    char reserved[64];
} cf_ipc_handle;

typedef enum { CF_LIMIT_STACK_SIZE = 0 } cf_limit;
typedef enum { CF_ADVISE_SET_READ_MOSTLY = 1 } cf_advise;
typedef enum { CF_GRANULARITY_MINIMUM = 0, CF_GRANULARITY_RECOMMENDED = 1 } cf_granularity;
typedef enum { CF_MODULE_EAGER = 1, CF_MODULE_LAZY = 2 } cf_loading_mode;
typedef enum { CF_FUNCTION_UNLOADED = 0, CF_FUNCTION_LOADED = 1 } cf_function_state;
typedef enum { CF_JIT_NONE = 0 } cf_jit_option;
typedef enum { CF_LIBRARY_NONE = 0 } cf_library_option;
typedef enum { CF_DEV_RESOURCE_SM = 1 } cf_dev_resource_type;

typedef struct cf_mem_prop {
    CUmemAllocationType type;
    CUmemAllocationHandleType handle_types;
    CUmemLocation location;
    void *win32;
    unsigned char flags[8];
} cf_mem_prop;

typedef struct cf_copy_attributes {
    int access_order;
    CUmemLocation source_hint;
    CUmemLocation target_hint;
    unsigned int flags;
} cf_copy_attributes;

/* The generic node description; only the conditional member is spelled out. */
typedef struct cf_node_params {
    CUgraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        struct {
            cf_conditional handle;
            int type;
            unsigned int size;
            CUgraph *graphs_out;
            CUcontext ctx;
        } conditional;
    };
    long long reserved2;
} cf_node_params;

typedef struct cf_dev_resource {
    cf_dev_resource_type type;
    unsigned char padding[92];
    union {
        unsigned int sm_count;
        unsigned char oversize[48];
    };
} cf_dev_resource;

#define CF_ATTACH_GLOBAL 1u
#define CF_WAIT_VALUE_GEQ 0u
#define CF_COPY_ORDER_STREAM 1
#define CF_SYNC_POLICY_SPIN 2
#define CF_COND_ASSIGN_DEFAULT 1u
#define CF_COND_TYPE_IF 0
#define CF_GREEN_DEFAULT_STREAM 1u
#define CF_FUNC_ATTRIBUTE_NUM_REGS ((CUfunction_attribute)4)
#define CF_ATTRIBUTE_ACCESS_POLICY_WINDOW ((CUlaunchAttributeID)1)
#define CF_ATTRIBUTE_SYNCHRONIZATION_POLICY ((CUlaunchAttributeID)3)
#define CF_ATTRIBUTE_CLUSTER_DIMENSION ((CUlaunchAttributeID)4)

_Static_assert(sizeof(cf_mem_prop) == 32, "CUmemAllocationProp");
_Static_assert(sizeof(cf_copy_attributes) == 24, "CUmemcpyAttributes");
_Static_assert(sizeof(cf_node_params) == 256, "CUgraphNodeParams");
_Static_assert(sizeof(cf_dev_resource) == 144, "CUdevResource");

#endif
