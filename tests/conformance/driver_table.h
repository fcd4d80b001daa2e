/*
 * Every driver entry that a fact calls: E(field, name, version, argument types).
 *
 * The version is that of the ABI in the argument types, as cuGetProcAddress wants it, not that of the newest form. abi_check.c
 * compares each line with the toolkit's own typedef.
 */
#ifndef CONFORMANCE_DRIVER_TABLE_H
#define CONFORMANCE_DRIVER_TABLE_H

/* clang-format off */
#define CF_DRIVER_TABLE(E) \
    /* Initialisation, errors, devices. */ \
    E(Init, "cuInit", 2000, (unsigned int)) \
    E(DriverGetVersion, "cuDriverGetVersion", 2020, (int *)) \
    E(GetErrorName, "cuGetErrorName", 6000, (CUresult, const char **)) \
    E(GetErrorString, "cuGetErrorString", 6000, (CUresult, const char **)) \
    E(GetExportTable, "cuGetExportTable", 3000, (const void **, const cf_uuid *)) \
    E(DeviceGet, "cuDeviceGet", 2000, (CUdevice *, int)) \
    E(DeviceGetCount, "cuDeviceGetCount", 2000, (int *)) \
    E(DeviceGetAttribute, "cuDeviceGetAttribute", 2000, (int *, CUdevice_attribute, CUdevice)) \
    /* Contexts. */ \
    E(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, (CUcontext *, CUdevice)) \
    E(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 11000, (CUdevice)) \
    E(CtxCreate, "cuCtxCreate", 12050, (CUcontext *, cf_ctx_params *, unsigned int, CUdevice)) \
    E(CtxDestroy, "cuCtxDestroy", 4000, (CUcontext)) \
    E(CtxSetCurrent, "cuCtxSetCurrent", 4000, (CUcontext)) \
    E(CtxGetCurrent, "cuCtxGetCurrent", 4000, (CUcontext *)) \
    E(CtxPushCurrent, "cuCtxPushCurrent", 4000, (CUcontext)) \
    E(CtxPopCurrent, "cuCtxPopCurrent", 4000, (CUcontext *)) \
    E(CtxSynchronize, "cuCtxSynchronize", 2000, (void)) \
    E(CtxGetId, "cuCtxGetId", 12000, (CUcontext, unsigned long long *)) \
    E(CtxGetLimit, "cuCtxGetLimit", 3010, (size_t *, cf_limit)) \
    E(CtxSetLimit, "cuCtxSetLimit", 3010, (cf_limit, size_t)) \
    E(CtxRecordEvent, "cuCtxRecordEvent", 12050, (CUcontext, CUevent)) \
    E(CtxWaitEvent, "cuCtxWaitEvent", 12050, (CUcontext, CUevent)) \
    E(CtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", 5050, (int *, int *)) \
    E(GreenCtxCreate, "cuGreenCtxCreate", 12040, (cf_green *, cf_dev_resource_desc, CUdevice, unsigned int)) \
    E(GreenCtxDestroy, "cuGreenCtxDestroy", 12040, (cf_green)) \
    E(GreenCtxStreamCreate, "cuGreenCtxStreamCreate", 12050, (CUstream *, cf_green, unsigned int, int)) \
    E(CtxFromGreenCtx, "cuCtxFromGreenCtx", 12040, (CUcontext *, cf_green)) \
    E(DeviceGetDevResource, "cuDeviceGetDevResource", 12040, (CUdevice, cf_dev_resource *, cf_dev_resource_type)) \
    E(DevSmResourceSplitByCount, "cuDevSmResourceSplitByCount", 12040, (cf_dev_resource *, unsigned int *, \
      const cf_dev_resource *, cf_dev_resource *, unsigned int, unsigned int)) \
    E(DevResourceGenerateDesc, "cuDevResourceGenerateDesc", 12040, (cf_dev_resource_desc *, cf_dev_resource *, unsigned int)) \
    /* Streams and capture. */ \
    E(StreamCreate, "cuStreamCreate", 2000, (CUstream *, unsigned int)) \
    E(StreamCreateWithPriority, "cuStreamCreateWithPriority", 5050, (CUstream *, unsigned int, int)) \
    E(StreamDestroy, "cuStreamDestroy", 4000, (CUstream)) \
    E(StreamSynchronize, "cuStreamSynchronize", 2000, (CUstream)) \
    E(StreamQuery, "cuStreamQuery", 2000, (CUstream)) \
    E(StreamGetId, "cuStreamGetId", 12000, (CUstream, unsigned long long *)) \
    E(StreamGetFlags, "cuStreamGetFlags", 5050, (CUstream, unsigned int *)) \
    E(StreamGetDevice, "cuStreamGetDevice", 12080, (CUstream, CUdevice *)) \
    E(StreamGetCtx, "cuStreamGetCtx", 9020, (CUstream, CUcontext *)) \
    E(StreamGetPriority, "cuStreamGetPriority", 5050, (CUstream, int *)) \
    E(StreamGetAttribute, "cuStreamGetAttribute", 11000, (CUstream, CUlaunchAttributeID, CUlaunchAttributeValue *)) \
    E(StreamSetAttribute, "cuStreamSetAttribute", 11000, (CUstream, CUlaunchAttributeID, const CUlaunchAttributeValue *)) \
    E(StreamAddCallback, "cuStreamAddCallback", 5000, (CUstream, CUstreamCallback, void *, unsigned int)) \
    E(StreamAttachMemAsync, "cuStreamAttachMemAsync", 6000, (CUstream, CUdeviceptr, size_t, unsigned int)) \
    E(StreamWaitEvent, "cuStreamWaitEvent", 3020, (CUstream, CUevent, unsigned int)) \
    E(StreamWriteValue32, "cuStreamWriteValue32", 11070, (CUstream, CUdeviceptr, cuuint32_t, unsigned int)) \
    E(StreamWriteValue64, "cuStreamWriteValue64", 11070, (CUstream, CUdeviceptr, cuuint64_t, unsigned int)) \
    E(StreamWaitValue32, "cuStreamWaitValue32", 11070, (CUstream, CUdeviceptr, cuuint32_t, unsigned int)) \
    E(StreamBatchMemOp, "cuStreamBatchMemOp", 11070, (CUstream, unsigned int, CUstreamBatchMemOpParams *, unsigned int)) \
    E(StreamBeginCapture, "cuStreamBeginCapture", 10010, (CUstream, CUstreamCaptureMode)) \
    E(StreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 12030, (CUstream, CUgraph, const CUgraphNode *, \
      const CUgraphEdgeData *, size_t, CUstreamCaptureMode)) \
    E(StreamEndCapture, "cuStreamEndCapture", 10000, (CUstream, CUgraph *)) \
    E(StreamIsCapturing, "cuStreamIsCapturing", 10000, (CUstream, CUstreamCaptureStatus *)) \
    E(StreamGetCaptureInfo, "cuStreamGetCaptureInfo", 12030, (CUstream, CUstreamCaptureStatus *, cuuint64_t *, \
      CUgraph *, const CUgraphNode **, const CUgraphEdgeData **, size_t *)) \
    E(StreamUpdateCaptureDependencies, "cuStreamUpdateCaptureDependencies", 12030, (CUstream, CUgraphNode *, \
      const CUgraphEdgeData *, size_t, unsigned int)) \
    E(ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", 10010, (CUstreamCaptureMode *)) \
    /* Events. */ \
    E(EventCreate, "cuEventCreate", 2000, (CUevent *, unsigned int)) \
    E(EventDestroy, "cuEventDestroy", 4000, (CUevent)) \
    E(EventRecord, "cuEventRecord", 2000, (CUevent, CUstream)) \
    E(EventRecordWithFlags, "cuEventRecordWithFlags", 11010, (CUevent, CUstream, unsigned int)) \
    E(EventQuery, "cuEventQuery", 2000, (CUevent)) \
    E(EventSynchronize, "cuEventSynchronize", 2000, (CUevent)) \
    E(EventElapsedTime, "cuEventElapsedTime", 12080, (float *, CUevent, CUevent)) \
    /* Memory. */ \
    E(MemAlloc, "cuMemAlloc", 3020, (CUdeviceptr *, size_t)) \
    E(MemAllocPitch, "cuMemAllocPitch", 3020, (CUdeviceptr *, size_t *, size_t, size_t, unsigned int)) \
    E(MemAllocManaged, "cuMemAllocManaged", 6000, (CUdeviceptr *, size_t, unsigned int)) \
    E(MemFree, "cuMemFree", 3020, (CUdeviceptr)) \
    E(MemAllocHost, "cuMemAllocHost", 3020, (void **, size_t)) \
    E(MemHostAlloc, "cuMemHostAlloc", 2020, (void **, size_t, unsigned int)) \
    E(MemFreeHost, "cuMemFreeHost", 2000, (void *)) \
    E(MemHostRegister, "cuMemHostRegister", 6050, (void *, size_t, unsigned int)) \
    E(MemHostUnregister, "cuMemHostUnregister", 4000, (void *)) \
    E(MemHostGetDevicePointer, "cuMemHostGetDevicePointer", 3020, (CUdeviceptr *, void *, unsigned int)) \
    E(MemHostGetFlags, "cuMemHostGetFlags", 2030, (unsigned int *, void *)) \
    E(MemAllocAsync, "cuMemAllocAsync", 11020, (CUdeviceptr *, size_t, CUstream)) \
    E(MemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, (CUdeviceptr *, size_t, CUmemoryPool, CUstream)) \
    E(MemFreeAsync, "cuMemFreeAsync", 11020, (CUdeviceptr, CUstream)) \
    E(MemGetInfo, "cuMemGetInfo", 3020, (size_t *, size_t *)) \
    E(MemGetAddressRange, "cuMemGetAddressRange", 3020, (CUdeviceptr *, size_t *, CUdeviceptr)) \
    E(MemAdvise, "cuMemAdvise", 12020, (CUdeviceptr, size_t, cf_advise, CUmemLocation)) \
    E(MemPrefetchAsync, "cuMemPrefetchAsync", 12020, (CUdeviceptr, size_t, CUmemLocation, unsigned int, CUstream)) \
    E(MemPoolCreate, "cuMemPoolCreate", 11020, (CUmemoryPool *, const CUmemPoolProps *)) \
    E(MemPoolDestroy, "cuMemPoolDestroy", 11020, (CUmemoryPool)) \
    E(MemPoolGetAttribute, "cuMemPoolGetAttribute", 11020, (CUmemoryPool, CUmemPool_attribute, void *)) \
    E(MemPoolSetAttribute, "cuMemPoolSetAttribute", 11020, (CUmemoryPool, CUmemPool_attribute, void *)) \
    E(MemPoolTrimTo, "cuMemPoolTrimTo", 11020, (CUmemoryPool, size_t)) \
    E(DeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020, (CUmemoryPool *, CUdevice)) \
    E(DeviceGetGraphMemAttribute, "cuDeviceGetGraphMemAttribute", 11040, (CUdevice, CUgraphMem_attribute, void *)) \
    E(DeviceGraphMemTrim, "cuDeviceGraphMemTrim", 11040, (CUdevice)) \
    E(PointerGetAttribute, "cuPointerGetAttribute", 4000, (void *, CUpointer_attribute, CUdeviceptr)) \
    E(PointerGetAttributes, "cuPointerGetAttributes", 7000, (unsigned int, CUpointer_attribute *, void **, CUdeviceptr)) \
    E(PointerSetAttribute, "cuPointerSetAttribute", 6000, (const void *, CUpointer_attribute, CUdeviceptr)) \
    E(IpcGetMemHandle, "cuIpcGetMemHandle", 4010, (cf_ipc_handle *, CUdeviceptr)) \
    /* Virtual memory. */ \
    E(MemCreate, "cuMemCreate", 10020, (cf_mem_handle *, size_t, const cf_mem_prop *, unsigned long long)) \
    E(MemRelease, "cuMemRelease", 10020, (cf_mem_handle)) \
    E(MemAddressReserve, "cuMemAddressReserve", 10020, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)) \
    E(MemAddressFree, "cuMemAddressFree", 10020, (CUdeviceptr, size_t)) \
    E(MemMap, "cuMemMap", 10020, (CUdeviceptr, size_t, size_t, cf_mem_handle, unsigned long long)) \
    E(MemUnmap, "cuMemUnmap", 10020, (CUdeviceptr, size_t)) \
    E(MemSetAccess, "cuMemSetAccess", 10020, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t)) \
    E(MemGetAllocationGranularity, "cuMemGetAllocationGranularity", 10020, (size_t *, const cf_mem_prop *, cf_granularity)) \
    E(MemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, (cf_mem_handle *, void *)) \
    /* Copies and sets. */ \
    E(MemcpyHtoD, "cuMemcpyHtoD", 3020, (CUdeviceptr, const void *, size_t)) \
    E(MemcpyDtoH, "cuMemcpyDtoH", 3020, (void *, CUdeviceptr, size_t)) \
    E(MemcpyDtoD, "cuMemcpyDtoD", 3020, (CUdeviceptr, CUdeviceptr, size_t)) \
    E(Memcpy, "cuMemcpy", 4000, (CUdeviceptr, CUdeviceptr, size_t)) \
    E(MemsetD8, "cuMemsetD8", 3020, (CUdeviceptr, unsigned char, size_t)) \
    E(MemsetD32, "cuMemsetD32", 3020, (CUdeviceptr, unsigned int, size_t)) \
    E(MemcpyHtoDAsync, "cuMemcpyHtoDAsync", 3020, (CUdeviceptr, const void *, size_t, CUstream)) \
    E(MemcpyDtoHAsync, "cuMemcpyDtoHAsync", 3020, (void *, CUdeviceptr, size_t, CUstream)) \
    E(MemcpyDtoDAsync, "cuMemcpyDtoDAsync", 3020, (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
    E(MemcpyAsync, "cuMemcpyAsync", 4000, (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
    E(MemcpyPeerAsync, "cuMemcpyPeerAsync", 4000, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)) \
    E(Memcpy2DAsync, "cuMemcpy2DAsync", 3020, (const CUDA_MEMCPY2D *, CUstream)) \
    E(Memcpy3DAsync, "cuMemcpy3DAsync", 3020, (const CUDA_MEMCPY3D *, CUstream)) \
    E(MemcpyBatchAsync, "cuMemcpyBatchAsync", 13000, (CUdeviceptr *, CUdeviceptr *, size_t *, size_t, \
      cf_copy_attributes *, size_t *, size_t, CUstream)) \
    E(MemsetD8Async, "cuMemsetD8Async", 3020, (CUdeviceptr, unsigned char, size_t, CUstream)) \
    E(MemsetD16Async, "cuMemsetD16Async", 3020, (CUdeviceptr, unsigned short, size_t, CUstream)) \
    E(MemsetD32Async, "cuMemsetD32Async", 3020, (CUdeviceptr, unsigned int, size_t, CUstream)) \
    E(MemsetD2D8Async, "cuMemsetD2D8Async", 3020, (CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream)) \
    E(MemsetD2D32Async, "cuMemsetD2D32Async", 3020, (CUdeviceptr, size_t, unsigned int, size_t, size_t, CUstream)) \
    /* Modules, functions, launches. */ \
    E(ModuleLoadData, "cuModuleLoadData", 2000, (CUmodule *, const void *)) \
    E(ModuleUnload, "cuModuleUnload", 2000, (CUmodule)) \
    E(ModuleGetFunction, "cuModuleGetFunction", 2000, (CUfunction *, CUmodule, const char *)) \
    E(ModuleGetGlobal, "cuModuleGetGlobal", 3020, (CUdeviceptr *, size_t *, CUmodule, const char *)) \
    E(ModuleGetFunctionCount, "cuModuleGetFunctionCount", 12040, (unsigned int *, CUmodule)) \
    E(ModuleEnumerateFunctions, "cuModuleEnumerateFunctions", 12040, (CUfunction *, unsigned int, CUmodule)) \
    E(ModuleGetLoadingMode, "cuModuleGetLoadingMode", 11070, (cf_loading_mode *)) \
    E(LibraryLoadData, "cuLibraryLoadData", 12000, (CUlibrary *, const void *, cf_jit_option *, void **, \
      unsigned int, cf_library_option *, void **, unsigned int)) \
    E(LibraryUnload, "cuLibraryUnload", 12000, (CUlibrary)) \
    E(LibraryGetKernel, "cuLibraryGetKernel", 12000, (CUkernel *, CUlibrary, const char *)) \
    E(KernelGetFunction, "cuKernelGetFunction", 12000, (CUfunction *, CUkernel)) \
    E(KernelGetParamInfo, "cuKernelGetParamInfo", 12040, (CUkernel, size_t, size_t *, size_t *)) \
    E(KernelGetName, "cuKernelGetName", 12030, (const char **, CUkernel)) \
    E(FuncLoad, "cuFuncLoad", 12040, (CUfunction)) \
    E(FuncIsLoaded, "cuFuncIsLoaded", 12040, (cf_function_state *, CUfunction)) \
    E(FuncGetAttribute, "cuFuncGetAttribute", 2020, (int *, CUfunction_attribute, CUfunction)) \
    E(FuncSetAttribute, "cuFuncSetAttribute", 9000, (CUfunction, CUfunction_attribute, int)) \
    E(FuncGetName, "cuFuncGetName", 12030, (const char **, CUfunction)) \
    E(FuncGetParamInfo, "cuFuncGetParamInfo", 12040, (CUfunction, size_t, size_t *, size_t *)) \
    E(OccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, (int *, \
      CUfunction, int, size_t)) \
    E(LaunchKernel, "cuLaunchKernel", 4000, (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, \
      unsigned int, unsigned int, unsigned int, CUstream, void **, void **)) \
    E(LaunchKernelEx, "cuLaunchKernelEx", 11060, (const CUlaunchConfig *, CUfunction, void **, void **)) \
    E(LaunchCooperativeKernel, "cuLaunchCooperativeKernel", 9000, (CUfunction, unsigned int, unsigned int, \
      unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, CUstream, void **)) \
    E(LaunchHostFunc, "cuLaunchHostFunc", 10000, (CUstream, CUhostFn, void *)) \
    /* Graphs. */ \
    E(GraphCreate, "cuGraphCreate", 10000, (CUgraph *, unsigned int)) \
    E(GraphDestroy, "cuGraphDestroy", 10000, (CUgraph)) \
    E(GraphClone, "cuGraphClone", 10000, (CUgraph *, CUgraph)) \
    E(GraphNodeFindInClone, "cuGraphNodeFindInClone", 10000, (CUgraphNode *, CUgraphNode, CUgraph)) \
    E(GraphGetNodes, "cuGraphGetNodes", 10000, (CUgraph, CUgraphNode *, size_t *)) \
    E(GraphGetRootNodes, "cuGraphGetRootNodes", 10000, (CUgraph, CUgraphNode *, size_t *)) \
    E(GraphGetEdges, "cuGraphGetEdges", 12030, (CUgraph, CUgraphNode *, CUgraphNode *, CUgraphEdgeData *, size_t *)) \
    E(GraphGetEdges_10000, "cuGraphGetEdges", 10000, (CUgraph, CUgraphNode *, CUgraphNode *, size_t *)) \
    E(GraphNodeGetType, "cuGraphNodeGetType", 10000, (CUgraphNode, CUgraphNodeType *)) \
    E(GraphNodeGetDependencies, "cuGraphNodeGetDependencies", 12030, (CUgraphNode, CUgraphNode *, CUgraphEdgeData *, \
      size_t *)) \
    E(GraphNodeGetDependentNodes, "cuGraphNodeGetDependentNodes", 12030, (CUgraphNode, CUgraphNode *, \
      CUgraphEdgeData *, size_t *)) \
    E(GraphAddDependencies, "cuGraphAddDependencies", 12030, (CUgraph, const CUgraphNode *, const CUgraphNode *, \
      const CUgraphEdgeData *, size_t)) \
    E(GraphRemoveDependencies, "cuGraphRemoveDependencies", 12030, (CUgraph, const CUgraphNode *, \
      const CUgraphNode *, const CUgraphEdgeData *, size_t)) \
    E(GraphNodeGetDependencies_10000, "cuGraphNodeGetDependencies", 10000, (CUgraphNode, CUgraphNode *, size_t *)) \
    E(GraphNodeGetDependentNodes_10000, "cuGraphNodeGetDependentNodes", 10000, (CUgraphNode, CUgraphNode *, size_t *)) \
    E(GraphAddDependencies_10000, "cuGraphAddDependencies", 10000, (CUgraph, const CUgraphNode *, const CUgraphNode *, size_t)) \
    E(GraphRemoveDependencies_10000, "cuGraphRemoveDependencies", 10000, (CUgraph, const CUgraphNode *, const CUgraphNode *, \
      size_t)) \
    E(GraphDestroyNode, "cuGraphDestroyNode", 10000, (CUgraphNode)) \
    E(GraphAddKernelNode, "cuGraphAddKernelNode", 12000, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, \
      const CUDA_KERNEL_NODE_PARAMS *)) \
    E(GraphAddMemcpyNode, "cuGraphAddMemcpyNode", 10000, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, \
      const CUDA_MEMCPY3D *, CUcontext)) \
    E(GraphAddMemsetNode, "cuGraphAddMemsetNode", 10000, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, \
      const CUDA_MEMSET_NODE_PARAMS *, CUcontext)) \
    E(GraphAddEmptyNode, "cuGraphAddEmptyNode", 10000, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t)) \
    E(GraphAddChildGraphNode, "cuGraphAddChildGraphNode", 10000, (CUgraphNode *, CUgraph, const CUgraphNode *, \
      size_t, CUgraph)) \
    E(GraphAddMemAllocNode, "cuGraphAddMemAllocNode", 11040, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, \
      CUDA_MEM_ALLOC_NODE_PARAMS *)) \
    E(GraphAddNode, "cuGraphAddNode", 12030, (CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, \
      size_t, cf_node_params *)) \
    E(GraphKernelNodeGetParams, "cuGraphKernelNodeGetParams", 12000, (CUgraphNode, CUDA_KERNEL_NODE_PARAMS *)) \
    E(GraphKernelNodeGetParams_10000, "cuGraphKernelNodeGetParams", 10000, (CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v1 *)) \
    E(GraphKernelNodeSetParams, "cuGraphKernelNodeSetParams", 12000, (CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *)) \
    E(GraphKernelNodeGetAttribute, "cuGraphKernelNodeGetAttribute", 11000, (CUgraphNode, CUlaunchAttributeID, \
      CUlaunchAttributeValue *)) \
    E(GraphMemcpyNodeGetParams, "cuGraphMemcpyNodeGetParams", 10000, (CUgraphNode, CUDA_MEMCPY3D *)) \
    E(GraphMemsetNodeGetParams, "cuGraphMemsetNodeGetParams", 10000, (CUgraphNode, CUDA_MEMSET_NODE_PARAMS *)) \
    E(GraphHostNodeGetParams, "cuGraphHostNodeGetParams", 10000, (CUgraphNode, CUDA_HOST_NODE_PARAMS *)) \
    E(GraphMemAllocNodeGetParams, "cuGraphMemAllocNodeGetParams", 11040, (CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS *)) \
    E(GraphMemFreeNodeGetParams, "cuGraphMemFreeNodeGetParams", 11040, (CUgraphNode, CUdeviceptr *)) \
    E(GraphEventRecordNodeGetEvent, "cuGraphEventRecordNodeGetEvent", 11010, (CUgraphNode, CUevent *)) \
    E(GraphBatchMemOpNodeGetParams, "cuGraphBatchMemOpNodeGetParams", 11070, (CUgraphNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *)) \
    E(GraphChildGraphNodeGetGraph, "cuGraphChildGraphNodeGetGraph", 10000, (CUgraphNode, CUgraph *)) \
    E(GraphConditionalHandleCreate, "cuGraphConditionalHandleCreate", 12030, (cf_conditional *, CUgraph, CUcontext, \
      unsigned int, unsigned int)) \
    E(GraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, (CUgraphExec *, CUgraph, unsigned long long)) \
    E(GraphInstantiateWithParams, "cuGraphInstantiateWithParams", 12000, (CUgraphExec *, CUgraph, \
      CUDA_GRAPH_INSTANTIATE_PARAMS *)) \
    E(GraphLaunch, "cuGraphLaunch", 10000, (CUgraphExec, CUstream)) \
    E(GraphUpload, "cuGraphUpload", 11010, (CUgraphExec, CUstream)) \
    E(GraphExecDestroy, "cuGraphExecDestroy", 10000, (CUgraphExec)) \
    E(GraphExecGetFlags, "cuGraphExecGetFlags", 12000, (CUgraphExec, cuuint64_t *)) \
    E(GraphExecUpdate, "cuGraphExecUpdate", 12000, (CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *)) \
    E(GraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams", 12000, (CUgraphExec, CUgraphNode, \
      const CUDA_KERNEL_NODE_PARAMS *)) \
    E(GraphExecMemcpyNodeSetParams, "cuGraphExecMemcpyNodeSetParams", 10020, (CUgraphExec, CUgraphNode, \
      const CUDA_MEMCPY3D *, CUcontext)) \
    E(GraphExecMemsetNodeSetParams, "cuGraphExecMemsetNodeSetParams", 10020, (CUgraphExec, CUgraphNode, \
      const CUDA_MEMSET_NODE_PARAMS *, CUcontext)) \
    E(GraphNodeSetEnabled, "cuGraphNodeSetEnabled", 11060, (CUgraphExec, CUgraphNode, unsigned int)) \
    E(GraphNodeGetEnabled, "cuGraphNodeGetEnabled", 11060, (CUgraphExec, CUgraphNode, unsigned int *)) \
    E(GraphRetainUserObject, "cuGraphRetainUserObject", 11030, (CUgraph, CUuserObject, unsigned int, unsigned int)) \
    E(UserObjectCreate, "cuUserObjectCreate", 11030, (CUuserObject *, void *, CUhostFn, unsigned int, unsigned int))
/* clang-format on */

#endif
