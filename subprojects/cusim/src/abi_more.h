/* Types of the driver interface that cuda_abi.h does not declare, under names of our own so that it may declare them later. */
#ifndef CUSIM_ABI_MORE_H
#define CUSIM_ABI_MORE_H

#include "cuda_abi.h"

typedef struct cusim_uuid {
    unsigned char bytes[16];
} cusim_uuid;

/* CUmemAllocationProp */
typedef struct cusim_mem_prop {
    int type;
    int requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    unsigned char allocFlags[8];
} cusim_mem_prop;

typedef struct cusim_memset_params_v2 {
    CUdeviceptr dst;
    size_t pitch;
    unsigned int value;
    unsigned int elementSize;
    size_t width;
    size_t height;
    CUcontext ctx;
} cusim_memset_params_v2;

/* CUgraphNodeParams: one struct for every kind of node. */
typedef struct cusim_node_params {
    CUgraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        CUDA_KERNEL_NODE_PARAMS kernel;
        CUDA_MEMCPY_NODE_PARAMS memcpy;
        cusim_memset_params_v2 memset;
        CUDA_HOST_NODE_PARAMS host;
        struct {
            CUgraph graph;
            int ownership;
        } child;
        struct {
            CUevent event;
        } event;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        struct {
            CUdeviceptr dptr;
        } free;
        CUDA_BATCH_MEM_OP_NODE_PARAMS memop;
        struct {
            cuuint64_t handle;
            int type;
            unsigned int size;
            CUgraph *phGraph_out;
            CUcontext ctx;
        } conditional;
    };
    long long reserved2;
} cusim_node_params;

typedef struct cusim_ipc_handle {
    char reserved[64];
} cusim_ipc_handle;

typedef size_t (*cusim_b2d)(int blockSize);

_Static_assert(sizeof(cusim_node_params) == 256, "CUgraphNodeParams is 256 bytes");
_Static_assert(sizeof(cusim_mem_prop) == 32, "CUmemAllocationProp is 32 bytes");

#endif
