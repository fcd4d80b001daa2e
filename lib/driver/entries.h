/*
 * The driver entry points that the library calls: name without "cu", CUDA version whose signature we use, parameters.
 *
 * The version matters: the same base name has other parameters at other versions (cuStreamGetCaptureInfo takes three, six or seven).
 * tests/abi/ compares each signature with the toolkit's. An OPTIONAL entry is NULL where the driver is older than its version. What a replay
 * calls comes first: side by side in the table that is made of this.
 */
#ifndef STEPGRAPH_DRIVER_ENTRIES_H
#define STEPGRAPH_DRIVER_ENTRIES_H

/* clang-format off */
#define SG__DRIVER_ENTRIES(REQUIRED, OPTIONAL) \
    REQUIRED(CtxGetId, 12000, (CUcontext context, unsigned long long *id)) \
    REQUIRED(GraphLaunch, 10000, (CUgraphExec exec, CUstream stream)) \
    REQUIRED(MemcpyHtoDAsync, 3020, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
    REQUIRED(EventRecord, 2000, (CUevent event, CUstream stream)) \
    REQUIRED(EventQuery, 2000, (CUevent event)) \
    REQUIRED(PointerGetAttribute, 4000, (void *value, CUpointer_attribute attribute, CUdeviceptr address)) \
    REQUIRED(Init, 2000, (unsigned int flags)) \
    REQUIRED(GetErrorName, 6000, (CUresult code, const char **name)) \
    REQUIRED(DeviceGetCount, 2000, (int *count)) \
    REQUIRED(DeviceGet, 2000, (CUdevice *device, int ordinal)) \
    REQUIRED(DeviceGetName, 2000, (char *name, int bytes, CUdevice device)) \
    REQUIRED(DeviceGetAttribute, 2000, (int *value, CUdevice_attribute attribute, CUdevice device)) \
    REQUIRED(DevicePrimaryCtxRetain, 7000, (CUcontext *context, CUdevice device)) \
    REQUIRED(DevicePrimaryCtxRelease, 11000, (CUdevice device)) \
    REQUIRED(CtxPushCurrent, 4000, (CUcontext context)) \
    REQUIRED(CtxPopCurrent, 4000, (CUcontext *context)) \
    REQUIRED(CtxGetDevice, 2000, (CUdevice *device)) \
    REQUIRED(CtxSynchronize, 2000, (void)) \
    REQUIRED(StreamCreate, 2000, (CUstream *stream, unsigned int flags)) \
    REQUIRED(StreamDestroy, 4000, (CUstream stream)) \
    REQUIRED(StreamSynchronize, 2000, (CUstream stream)) \
    REQUIRED(StreamGetFlags, 5050, (CUstream stream, unsigned int *flags)) \
    REQUIRED(StreamGetCtx, 9020, (CUstream stream, CUcontext *context)) \
    REQUIRED(StreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned int flags)) \
    REQUIRED(StreamIsCapturing, 10000, (CUstream stream, CUstreamCaptureStatus *status)) \
    REQUIRED(StreamBeginCapture, 10010, (CUstream stream, CUstreamCaptureMode mode)) \
    REQUIRED(StreamEndCapture, 10000, (CUstream stream, CUgraph *graph)) \
    REQUIRED(StreamGetCaptureInfo, 11030, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, \
                                           const CUgraphNode **dependencies, size_t *n)) \
    REQUIRED(ThreadExchangeStreamCaptureMode, 10010, (CUstreamCaptureMode *mode)) \
    REQUIRED(EventCreate, 2000, (CUevent *event, unsigned int flags)) \
    REQUIRED(EventDestroy, 4000, (CUevent event)) \
    REQUIRED(EventSynchronize, 2000, (CUevent event)) \
    REQUIRED(EventElapsedTime, 2000, (float *milliseconds, CUevent start, CUevent end)) \
    REQUIRED(MemAlloc, 3020, (CUdeviceptr *address, size_t bytes)) \
    REQUIRED(MemFree, 3020, (CUdeviceptr address)) \
    REQUIRED(MemGetInfo, 3020, (size_t *left, size_t *total)) \
    REQUIRED(MemHostAlloc, 2020, (void **memory, size_t bytes, unsigned int flags)) \
    REQUIRED(MemFreeHost, 2000, (void *memory)) \
    REQUIRED(MemcpyDtoHAsync, 3020, (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
    REQUIRED(MemcpyDtoDAsync, 3020, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
    REQUIRED(MemsetD8Async, 3020, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)) \
    REQUIRED(PointerGetAttributes, 7000, (unsigned int n, CUpointer_attribute *attributes, void **values, CUdeviceptr address)) \
    REQUIRED(ModuleLoadData, 2000, (CUmodule *module, const void *image)) \
    REQUIRED(ModuleUnload, 2000, (CUmodule module)) \
    REQUIRED(ModuleGetFunction, 2000, (CUfunction *function, CUmodule module, const char *name)) \
    REQUIRED(LaunchKernel, 4000, (CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, \
                                  unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **arguments, \
                                  void **extra)) \
    REQUIRED(GraphGetNodes, 10000, (CUgraph graph, CUgraphNode *nodes, size_t *n)) \
    REQUIRED(GraphNodeGetType, 10000, (CUgraphNode node, CUgraphNodeType *type)) \
    REQUIRED(GraphKernelNodeGetParams, 10000, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params)) \
    REQUIRED(GraphMemcpyNodeGetParams, 10000, (CUgraphNode node, CUDA_MEMCPY3D *params)) \
    REQUIRED(GraphMemsetNodeGetParams, 10000, (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params)) \
    REQUIRED(GraphHostNodeGetParams, 10000, (CUgraphNode node, CUDA_HOST_NODE_PARAMS *params)) \
    REQUIRED(GraphBatchMemOpNodeGetParams, 11070, (CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *params)) \
    REQUIRED(GraphEventRecordNodeGetEvent, 11010, (CUgraphNode node, CUevent *event)) \
    REQUIRED(GraphEventWaitNodeGetEvent, 11010, (CUgraphNode node, CUevent *event)) \
    REQUIRED(GraphMemAllocNodeGetParams, 11040, (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)) \
    REQUIRED(GraphMemFreeNodeGetParams, 11040, (CUgraphNode node, CUdeviceptr *address)) \
    REQUIRED(GraphNodeGetDependencies, 10000, (CUgraphNode node, CUgraphNode *nodes, size_t *n)) \
    REQUIRED(GraphNodeGetDependentNodes, 10000, (CUgraphNode node, CUgraphNode *nodes, size_t *n)) \
    REQUIRED(GraphChildGraphNodeGetGraph, 10000, (CUgraphNode node, CUgraph *graph)) \
    REQUIRED(GraphNodeSetEnabled, 11060, (CUgraphExec exec, CUgraphNode node, unsigned int enabled)) \
    REQUIRED(GraphClone, 10000, (CUgraph *clone, CUgraph graph)) \
    REQUIRED(GraphNodeFindInClone, 10000, (CUgraphNode *found, CUgraphNode node, CUgraph clone)) \
    REQUIRED(GraphCreate, 10000, (CUgraph *graph, unsigned int flags)) \
    REQUIRED(GraphAddKernelNode, 12000, (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t n, \
                                         const CUDA_KERNEL_NODE_PARAMS *params)) \
    REQUIRED(GraphAddMemcpyNode, 10000, (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t n, \
                                         const CUDA_MEMCPY3D *params, CUcontext context)) \
    REQUIRED(GraphAddMemsetNode, 10000, (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t n, \
                                         const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)) \
    REQUIRED(GraphAddHostNode, 10000, (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t n, \
                                       const CUDA_HOST_NODE_PARAMS *params)) \
    REQUIRED(GraphAddDependencies, 10000, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)) \
    REQUIRED(GraphRemoveDependencies, 10000, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)) \
    REQUIRED(GraphKernelNodeGetAttribute, 11000, (CUgraphNode node, CUlaunchAttributeID id, CUlaunchAttributeValue *value)) \
    REQUIRED(GraphKernelNodeCopyAttributes, 11000, (CUgraphNode to, CUgraphNode from)) \
    REQUIRED(GraphDestroyNode, 10000, (CUgraphNode node)) \
    REQUIRED(GraphInstantiateWithParams, 12000, (CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)) \
    REQUIRED(GraphExecUpdate, 12000, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)) \
    REQUIRED(GraphUpload, 11010, (CUgraphExec exec, CUstream stream)) \
    REQUIRED(GraphExecDestroy, 10000, (CUgraphExec exec)) \
    REQUIRED(GraphDestroy, 10000, (CUgraph graph)) \
    OPTIONAL(FuncGetName, 12030, (const char **name, CUfunction function)) \
    OPTIONAL(FuncGetParamInfo, 12040, (CUfunction function, size_t index, size_t *offset, size_t *bytes))

/*
 * A younger form of an entry of which we call two: name of the field, and of the entry.
 *
 * Of a kernel that was launched as a CUkernel, as the runtime's are, the younger one finds the handle and the context anew each time: 0.3 to 0.5 us,
 * where the first takes 0.02 (R580). Only a node that is made anew needs them. Only the younger one tells what comes before a node by the edge of a
 * programmatic launch.
 */
#define SG__DRIVER_FORMS(FORM, OPTIONAL_FORM) \
    FORM(GraphKernelNodeGetParams_v2, GraphKernelNodeGetParams, 12000, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)) \
    OPTIONAL_FORM(GraphNodeGetDependencies_v2, GraphNodeGetDependencies, 12030, (CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *n))
/* clang-format on */

#endif
