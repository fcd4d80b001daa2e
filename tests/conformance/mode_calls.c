/* The calls of capture_modes.c: one small function each, and the table that says what class each is in. */
#include "mode_calls.h"

#define CALL(name) static CUresult name(struct mode_env *e __attribute__((unused)))
#define PREPARE(name) static void name(struct mode_env *e)

/* ---- memory ------------------------------------------------------------------------------------------------------ */

PREPARE(with_buffer)
{
    e->buffer = device_new(4096);
}

PREPARE(with_pinned)
{
    e->pinned = pinned_new(4096);
}

PREPARE(with_pages)
{
    e->pages = pages_new(8192);
}

PREPARE(with_managed)
{
    MUST(MemAllocManaged, &e->managed, 4096, CF_ATTACH_GLOBAL);
}

PREPARE(with_pool)
{
    MUST(DeviceGetDefaultMemPool, &e->pool, env.device);
    MUST(MemAllocAsync, &e->pool_buffer, 4096, e->other);
}

/* A live allocation of another graph that has been launched. */
PREPARE(with_graph_buffer)
{
    CUgraph g;

    must_begin(e->other, RELAXED);
    MUST(MemAllocAsync, &e->graph_buffer, 4096, e->other);
    MUST_LAUNCH(launch_inc(e->graph_buffer, 1, e->other));
    g = must_end(e->other);
    must_run(must_instantiate(g), e->other);
}

CALL(mem_alloc)
{
    CUdeviceptr p;

    return CU(MemAlloc)(&p, 4096);
}

CALL(mem_alloc_big)
{
    CUdeviceptr p;

    return CU(MemAlloc)(&p, 64u << 20);
}

CALL(mem_alloc_pitch)
{
    CUdeviceptr p;
    size_t pitch;

    return CU(MemAllocPitch)(&p, &pitch, 512, 4, 4);
}

CALL(mem_alloc_managed)
{
    CUdeviceptr p;

    return CU(MemAllocManaged)(&p, 4096, CF_ATTACH_GLOBAL);
}

CALL(mem_free)
{
    return CU(MemFree)(e->buffer);
}

CALL(mem_free_null)
{
    return CU(MemFree)(0);
}

CALL(mem_free_pool)
{
    return CU(MemFree)(e->pool_buffer);
}

CALL(mem_free_graph)
{
    return CU(MemFree)(e->graph_buffer);
}

CALL(mem_alloc_host)
{
    void *p;

    return CU(MemAllocHost)(&p, 4096);
}

CALL(mem_host_alloc)
{
    void *p;

    return CU(MemHostAlloc)(&p, 4096, 0);
}

CALL(mem_free_host)
{
    return CU(MemFreeHost)(e->pinned);
}

CALL(mem_host_register)
{
    return CU(MemHostRegister)(e->pages, 4096, 0);
}

CALL(mem_host_device_pointer)
{
    CUdeviceptr p;

    return CU(MemHostGetDevicePointer)(&p, e->pinned, 0);
}

CALL(mem_host_flags)
{
    unsigned flags;

    return CU(MemHostGetFlags)(&flags, e->pinned);
}

CALL(mem_advise)
{
    CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

    return CU(MemAdvise)(e->managed, 4096, CF_ADVISE_SET_READ_MOSTLY, where);
}

CALL(mem_prefetch)
{
    CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

    return CU(MemPrefetchAsync)(e->managed, 4096, where, 0, e->capture);
}

CALL(stream_attach)
{
    return CU(StreamAttachMemAsync)(e->capture, e->managed, 0, CF_ATTACH_GLOBAL);
}

CALL(mem_get_info)
{
    size_t a, b;

    return CU(MemGetInfo)(&a, &b);
}

CALL(mem_address_range)
{
    CUdeviceptr base;
    size_t size;

    return CU(MemGetAddressRange)(&base, &size, e->counter);
}

CALL(pointer_attribute)
{
    unsigned long long id;

    return CU(PointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, e->counter);
}

CALL(pointer_attributes)
{
    unsigned long long id = 0;
    unsigned type = 0;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void *out[] = {&id, &type};

    return CU(PointerGetAttributes)(2, which, out, e->counter);
}

CALL(pointer_set_attribute)
{
    int one = 1;

    return CU(PointerSetAttribute)(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, e->scratch);
}

CALL(ipc_handle)
{
    cf_ipc_handle h;

    return CU(IpcGetMemHandle)(&h, e->counter);
}

/* ---- pools and graph allocations --------------------------------------------------------------------------------- */

CALL(pool_get)
{
    cuuint64_t v;

    return CU(MemPoolGetAttribute)(e->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v);
}

CALL(pool_set)
{
    cuuint64_t v = 0;

    return CU(MemPoolSetAttribute)(e->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v);
}

CALL(pool_trim)
{
    return CU(MemPoolTrimTo)(e->pool, 0);
}

CALL(pool_create)
{
    CUmemPoolProps props;
    CUmemoryPool pool;

    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = env.device;
    return CU(MemPoolCreate)(&pool, &props);
}

CALL(pool_default)
{
    CUmemoryPool pool;

    return CU(DeviceGetDefaultMemPool)(&pool, env.device);
}

CALL(graph_mem_attribute)
{
    cuuint64_t v;

    return CU(DeviceGetGraphMemAttribute)(env.device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &v);
}

CALL(graph_mem_trim)
{
    return CU(DeviceGraphMemTrim)(env.device);
}

CALL(alloc_use_free)
{
    CUdeviceptr p = 0;
    CUresult r = CU(MemAllocAsync)(&p, 4096, e->capture);

    if (r == CUDA_SUCCESS)
        r = launch_inc(p, 1, e->capture);
    if (r == CUDA_SUCCESS)
        r = CU(MemFreeAsync)(p, e->capture);
    return r;
}

CALL(alloc_capture)
{
    CUdeviceptr p;

    return CU(MemAllocAsync)(&p, 4096, e->capture);
}

CALL(alloc_pool_capture)
{
    CUdeviceptr p;

    return CU(MemAllocFromPoolAsync)(&p, 4096, e->pool, e->capture);
}

CALL(alloc_other)
{
    CUdeviceptr p;

    return CU(MemAllocAsync)(&p, 4096, e->other);
}

CALL(alloc_null)
{
    CUdeviceptr p;

    return CU(MemAllocAsync)(&p, 4096, NULL);
}

CALL(free_capture_plain)
{
    return CU(MemFreeAsync)(e->buffer, e->capture);
}

CALL(free_capture_pool)
{
    return CU(MemFreeAsync)(e->pool_buffer, e->capture);
}

CALL(free_capture_interior)
{
    CUdeviceptr p = 0;
    CUresult r = CU(MemAllocAsync)(&p, 4096, e->capture);

    return r == CUDA_SUCCESS ? CU(MemFreeAsync)(p + 256, e->capture) : r;
}

CALL(free_capture_twice)
{
    CUdeviceptr p = 0;
    CUresult r = CU(MemAllocAsync)(&p, 4096, e->capture);

    if (r == CUDA_SUCCESS)
        r = CU(MemFreeAsync)(p, e->capture);
    return r == CUDA_SUCCESS ? CU(MemFreeAsync)(p, e->capture) : CUDA_ERROR_UNKNOWN;
}

CALL(free_capture_graph)
{
    return CU(MemFreeAsync)(e->graph_buffer, e->capture);
}

CALL(free_capture_null)
{
    return CU(MemFreeAsync)(0, e->capture);
}

CALL(free_other_pool)
{
    return CU(MemFreeAsync)(e->pool_buffer, e->other);
}

CALL(free_other_graph)
{
    return CU(MemFreeAsync)(e->graph_buffer, e->other);
}

/* ---- virtual memory ---------------------------------------------------------------------------------------------- */

PREPARE(with_vmm)
{
    cf_mem_prop prop = vmm_prop();

    MUST(MemGetAllocationGranularity, &e->granularity, &prop, CF_GRANULARITY_MINIMUM);
    e->handle = vmm_create(e->granularity);
    e->handle2 = vmm_create(e->granularity);
    e->range = vmm_reserve(e->granularity);
    e->range2 = vmm_reserve(e->granularity);
    vmm_map(e->range, e->granularity, e->handle);
}

CALL(vmm_granularity)
{
    cf_mem_prop prop = vmm_prop();
    size_t g;

    return CU(MemGetAllocationGranularity)(&g, &prop, CF_GRANULARITY_MINIMUM);
}

CALL(vmm_make)
{
    cf_mem_prop prop = vmm_prop();
    cf_mem_handle h;

    return CU(MemCreate)(&h, e->granularity, &prop, 0);
}

CALL(vmm_release)
{
    return CU(MemRelease)(e->handle2);
}

CALL(vmm_reserve_range)
{
    CUdeviceptr p;

    return CU(MemAddressReserve)(&p, e->granularity, 0, 0, 0);
}

CALL(vmm_free_range)
{
    return CU(MemAddressFree)(e->range2, e->granularity);
}

CALL(vmm_map_range)
{
    return CU(MemMap)(e->range2, e->granularity, 0, e->handle2, 0);
}

CALL(vmm_unmap_range)
{
    return CU(MemUnmap)(e->range, e->granularity);
}

CALL(vmm_set_access)
{
    return vmm_access(e->range, e->granularity);
}

CALL(vmm_retain)
{
    cf_mem_handle h;

    return CU(MemRetainAllocationHandle)(&h, (void *)(uintptr_t)e->range);
}

/* ---- modules and functions --------------------------------------------------------------------------------------- */

PREPARE(with_module)
{
    MUST(ModuleLoadData, &e->module, env.ptx);
}

PREPARE(with_library)
{
    MUST(LibraryLoadData, &e->library, env.ptx, NULL, NULL, 0, NULL, NULL, 0);
    MUST(LibraryGetKernel, &e->lazy, e->library, "lazyk");
}

/* A function that nothing has loaded yet, where the driver can tell. */
PREPARE(with_unloaded_function)
{
    unsigned n = 0;
    CUfunction *all;

    with_module(e);
    MUST(ModuleGetFunctionCount, &n, e->module);
    all = calloc(n + 1, sizeof *all);
    MUST(ModuleEnumerateFunctions, all, n, e->module);
    e->function = n ? all[0] : NULL;
    for (unsigned i = 0; i < n; i++) {
        cf_function_state s = CF_FUNCTION_LOADED;

        MUST(FuncIsLoaded, &s, all[i]);
        if (s == CF_FUNCTION_UNLOADED)
            e->function = all[i];
    }
    free(all);
}

PREPARE(with_bigstack)
{
    e->function = kernel("bigstack");
}

/* A module whose variable nobody has asked for, where the driver has variables at all. */
PREPARE(with_module_global)
{
    CUdeviceptr p;
    size_t n;
    CUresult r = CU(ModuleGetGlobal)(&p, &n, env.module, "gvar");

    if (r != CUDA_SUCCESS)
        skip("this driver has no __device__ variables (%d)", (int)r);
    with_module(e);
}

CALL(module_load)
{
    CUmodule m;

    return CU(ModuleLoadData)(&m, env.ptx);
}

CALL(module_unload)
{
    return CU(ModuleUnload)(e->module);
}

CALL(module_function)
{
    CUfunction f;

    return CU(ModuleGetFunction)(&f, e->module, "lazyk");
}

CALL(module_global)
{
    CUdeviceptr p;
    size_t n;

    return CU(ModuleGetGlobal)(&p, &n, e->module, "gvar");
}

CALL(library_load)
{
    CUlibrary l;

    return CU(LibraryLoadData)(&l, env.ptx, NULL, NULL, 0, NULL, NULL, 0);
}

CALL(library_unload)
{
    return CU(LibraryUnload)(e->library);
}

static CUresult lazy_launch(struct mode_env *e, CUstream s)
{
    float v = 0;
    void *args[] = {&e->scratch, &v};

    return launch((CUfunction)e->lazy, s, args);
}

CALL(lazy_capture)
{
    return lazy_launch(e, e->capture);
}

CALL(lazy_other)
{
    return lazy_launch(e, e->other);
}

CALL(kernel_function)
{
    CUfunction f;

    return CU(KernelGetFunction)(&f, e->lazy);
}

CALL(func_load)
{
    return CU(FuncLoad)(e->function);
}

CALL(launch_bigstack)
{
    int n = 1;
    void *args[] = {&e->scratch, &n};

    return CU(LaunchKernel)(e->function, 256, 1, 1, 256, 1, 1, 0, e->capture, args, NULL);
}

CALL(func_get_attribute)
{
    int v;

    return CU(FuncGetAttribute)(&v, CF_FUNC_ATTRIBUTE_NUM_REGS, kernel("nop"));
}

CALL(func_set_attribute)
{
    return CU(FuncSetAttribute)(kernel("nop"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536);
}

CALL(func_name)
{
    const char *n;

    return CU(FuncGetName)(&n, kernel("nop"));
}

CALL(func_param_info)
{
    size_t offset, size;

    return CU(FuncGetParamInfo)(kernel("inc"), 0, &offset, &size);
}

CALL(occupancy)
{
    int n;

    return CU(OccupancyMaxActiveBlocksPerMultiprocessor)(&n, kernel("nop"), 128, 0);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

PREPARE(with_graph)
{
    must_begin(e->other, RELAXED);
    MUST_LAUNCH(launch_nop(e->other));
    e->graph = must_end(e->other);
    e->node = node_at(e->graph, 0);
    e->exec = must_instantiate(e->graph);
    must_run(e->exec, e->other);
}

CALL(graph_create)
{
    CUgraph g;

    return CU(GraphCreate)(&g, 0);
}

CALL(graph_destroy)
{
    return CU(GraphDestroy)(e->graph);
}

CALL(graph_clone)
{
    CUgraph g;

    return CU(GraphClone)(&g, e->graph);
}

static CUresult add_kernel(CUgraph g)
{
    CUDA_KERNEL_NODE_PARAMS k;
    CUgraphNode n;

    memset(&k, 0, sizeof k);
    k.func = kernel("nop");
    k.gridDimX = k.gridDimY = k.gridDimZ = 1;
    k.blockDimX = k.blockDimY = k.blockDimZ = 1;
    return CU(GraphAddKernelNode)(&n, g, NULL, 0, &k);
}

CALL(graph_add_kernel)
{
    return add_kernel(e->graph);
}

CALL(graph_add_alloc)
{
    CUDA_MEM_ALLOC_NODE_PARAMS a;
    CUgraphNode n;

    memset(&a, 0, sizeof a);
    a.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    a.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    a.poolProps.location.id = env.device;
    a.bytesize = 4096;
    return CU(GraphAddMemAllocNode)(&n, e->graph, NULL, 0, &a);
}

CALL(graph_instantiate)
{
    CUgraphExec x;

    return CU(GraphInstantiateWithFlags)(&x, e->graph, 0);
}

CALL(graph_instantiate_params)
{
    CUgraphExec x;
    CUDA_GRAPH_INSTANTIATE_PARAMS p;

    memset(&p, 0, sizeof p);
    return CU(GraphInstantiateWithParams)(&x, e->graph, &p);
}

CALL(graph_exec_destroy)
{
    return CU(GraphExecDestroy)(e->exec);
}

CALL(graph_launch_capture)
{
    return CU(GraphLaunch)(e->exec, e->capture);
}

CALL(graph_launch_other)
{
    return CU(GraphLaunch)(e->exec, e->other);
}

CALL(graph_upload_capture)
{
    return CU(GraphUpload)(e->exec, e->capture);
}

CALL(graph_upload_other)
{
    return CU(GraphUpload)(e->exec, e->other);
}

CALL(graph_update)
{
    CUgraphExecUpdateResultInfo info;

    return CU(GraphExecUpdate)(e->exec, e->graph, &info);
}

CALL(exec_set_params)
{
    CUDA_KERNEL_NODE_PARAMS k;
    CUresult r;

    memset(&k, 0, sizeof k);
    r = CU(GraphKernelNodeGetParams)(e->node, &k);
    return r == CUDA_SUCCESS ? CU(GraphExecKernelNodeSetParams)(e->exec, e->node, &k) : r;
}

CALL(user_object)
{
    CUuserObject o;

    return CU(UserObjectCreate)(&o, NULL, free, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
}

/* The graph under capture, and its first node. */

static CUresult first_node(struct mode_env *e, CUgraphNode *node)
{
    size_t n = 1;

    return CU(GraphGetNodes)(captured_graph(e->capture), node, &n);
}

CALL(own_get_params)
{
    CUDA_KERNEL_NODE_PARAMS k;
    CUgraphNode n;
    CUresult r = first_node(e, &n);

    memset(&k, 0, sizeof k);
    return r == CUDA_SUCCESS ? CU(GraphKernelNodeGetParams)(n, &k) : r;
}

CALL(own_set_params)
{
    CUDA_KERNEL_NODE_PARAMS k;
    CUgraphNode n;
    CUresult r = first_node(e, &n);

    memset(&k, 0, sizeof k);
    if (r == CUDA_SUCCESS)
        r = CU(GraphKernelNodeGetParams)(n, &k);
    return r == CUDA_SUCCESS ? CU(GraphKernelNodeSetParams)(n, &k) : r;
}

CALL(own_instantiate)
{
    CUgraphExec x;

    return CU(GraphInstantiateWithFlags)(&x, captured_graph(e->capture), 0);
}

CALL(own_clone)
{
    CUgraph g;

    return CU(GraphClone)(&g, captured_graph(e->capture));
}

CALL(own_add_empty)
{
    CUgraphNode n;

    return CU(GraphAddEmptyNode)(&n, captured_graph(e->capture), NULL, 0);
}

CALL(own_add_child)
{
    CUgraphNode n;

    return CU(GraphAddChildGraphNode)(&n, captured_graph(e->capture), NULL, 0, e->graph);
}

CALL(own_retain_object)
{
    CUuserObject o;
    CUresult r = CU(UserObjectCreate)(&o, NULL, free, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);

    return r == CUDA_SUCCESS ? CU(GraphRetainUserObject)(captured_graph(e->capture), o, 1, CU_GRAPH_USER_OBJECT_MOVE) : r;
}

CALL(own_destroy)
{
    return CU(GraphDestroy)(captured_graph(e->capture));
}

CALL(own_destroy_node)
{
    CUgraphNode n;
    CUresult r = first_node(e, &n);

    return r == CUDA_SUCCESS ? CU(GraphDestroyNode)(n) : r;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

PREPARE(with_spare_event)
{
    e->spare = event_new();
}

CALL(event_create)
{
    CUevent v;

    return CU(EventCreate)(&v, 0);
}

CALL(event_destroy_spare)
{
    return CU(EventDestroy)(e->spare);
}

CALL(event_destroy_inside)
{
    return CU(EventDestroy)(e->inside);
}

CALL(event_query_other)
{
    return CU(EventQuery)(e->before_other);
}

CALL(event_query_same)
{
    return CU(EventQuery)(e->before_same);
}

CALL(event_query_never)
{
    return CU(EventQuery)(e->never);
}

CALL(event_query_inside)
{
    return CU(EventQuery)(e->inside);
}

CALL(event_sync_other)
{
    return CU(EventSynchronize)(e->before_other);
}

CALL(event_sync_same)
{
    return CU(EventSynchronize)(e->before_same);
}

CALL(event_sync_inside)
{
    return CU(EventSynchronize)(e->inside);
}

CALL(event_elapsed)
{
    float ms;

    return CU(EventElapsedTime)(&ms, e->before_other, e->before_same);
}

CALL(event_record_other)
{
    return CU(EventRecord)(e->never, e->other);
}

CALL(event_record_null)
{
    return CU(EventRecord)(e->never, NULL);
}

CALL(event_record_capture)
{
    return CU(EventRecord)(e->never, e->capture);
}

CALL(event_record_external)
{
    return CU(EventRecordWithFlags)(e->never, e->capture, CU_EVENT_RECORD_EXTERNAL);
}

CALL(wait_outside)
{
    return CU(StreamWaitEvent)(e->capture, e->before_other, CU_EVENT_WAIT_DEFAULT);
}

CALL(wait_external)
{
    return CU(StreamWaitEvent)(e->capture, e->before_other, CU_EVENT_WAIT_EXTERNAL);
}

CALL(wait_never)
{
    return CU(StreamWaitEvent)(e->capture, e->never, CU_EVENT_WAIT_DEFAULT);
}

CALL(wait_other)
{
    return CU(StreamWaitEvent)(e->other, e->before_other, CU_EVENT_WAIT_DEFAULT);
}

CALL(wait_null_inside)
{
    return CU(StreamWaitEvent)(NULL, e->inside, CU_EVENT_WAIT_DEFAULT);
}

CALL(wait_own_inside)
{
    return CU(StreamWaitEvent)(e->capture, e->inside, CU_EVENT_WAIT_DEFAULT);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

PREPARE(with_other2)
{
    e->other2 = stream_nb();
}

PREPARE(with_blocking)
{
    e->blocking = stream_bl();
}

CALL(stream_create)
{
    CUstream s;

    return CU(StreamCreate)(&s, CU_STREAM_NON_BLOCKING);
}

CALL(stream_create_blocking)
{
    CUstream s;

    return CU(StreamCreate)(&s, CU_STREAM_DEFAULT);
}

CALL(stream_destroy_capture)
{
    return CU(StreamDestroy)(e->capture);
}

CALL(stream_destroy_other)
{
    return CU(StreamDestroy)(e->other2);
}

CALL(stream_sync_capture)
{
    return CU(StreamSynchronize)(e->capture);
}

CALL(stream_query_capture)
{
    return CU(StreamQuery)(e->capture);
}

CALL(stream_sync_other)
{
    return CU(StreamSynchronize)(e->other);
}

CALL(stream_query_other)
{
    return CU(StreamQuery)(e->other);
}

CALL(stream_sync_null)
{
    return CU(StreamSynchronize)(NULL);
}

CALL(stream_query_null)
{
    return CU(StreamQuery)(NULL);
}

CALL(stream_id_capture)
{
    unsigned long long id;

    return CU(StreamGetId)(e->capture, &id);
}

CALL(stream_id_other)
{
    unsigned long long id;

    return CU(StreamGetId)(e->other, &id);
}

CALL(stream_flags)
{
    unsigned f;

    return CU(StreamGetFlags)(e->capture, &f);
}

CALL(stream_device)
{
    CUdevice d;

    return CU(StreamGetDevice)(e->capture, &d);
}

CALL(stream_ctx)
{
    CUcontext c;

    return CU(StreamGetCtx)(e->capture, &c);
}

CALL(stream_priority)
{
    int p;

    return CU(StreamGetPriority)(e->capture, &p);
}

CALL(stream_get_attribute)
{
    CUlaunchAttributeValue v;

    return CU(StreamGetAttribute)(e->capture, CF_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v);
}

CALL(stream_set_attribute)
{
    CUlaunchAttributeValue v;

    memset(&v, 0, sizeof v);
    v.priority = CF_SYNC_POLICY_SPIN; /* the synchronisation policy is an int in the same place */
    return CU(StreamSetAttribute)(e->capture, CF_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v);
}

CALL(stream_capture_info)
{
    CUstreamCaptureStatus s;
    cuuint64_t id;
    CUgraph g;
    const CUgraphNode *deps;
    size_t n;

    return CU(StreamGetCaptureInfo)(e->capture, &s, &id, &g, &deps, NULL, &n);
}

CALL(stream_is_capturing)
{
    CUstreamCaptureStatus s;

    return CU(StreamIsCapturing)(e->capture, &s);
}

CALL(stream_is_capturing_null)
{
    CUstreamCaptureStatus s;

    return CU(StreamIsCapturing)(NULL, &s);
}

CALL(stream_capture_info_null)
{
    CUstreamCaptureStatus s;

    return CU(StreamGetCaptureInfo)(NULL, &s, NULL, NULL, NULL, NULL, NULL);
}

/* The dependencies as they are, set anew. */
CALL(stream_update_dependencies)
{
    CUstreamCaptureStatus s;
    const CUgraphNode *deps;
    CUgraphNode copy[4];
    size_t n = 0;
    CUresult r = CU(StreamGetCaptureInfo)(e->capture, &s, NULL, NULL, &deps, NULL, &n);

    if (r != CUDA_SUCCESS || n > 4)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_UNKNOWN;
    memcpy(copy, deps, n * sizeof *copy);
    return CU(StreamUpdateCaptureDependencies)(e->capture, copy, NULL, n, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

CALL(second_capture)
{
    CUresult r = begin(e->other, LOCAL);

    return r == CUDA_SUCCESS ? end(e->other) : r;
}

CALL(exchange_mode)
{
    CUstreamCaptureMode m = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult r = CU(ThreadExchangeStreamCaptureMode)(&m);

    return r == CUDA_SUCCESS ? CU(ThreadExchangeStreamCaptureMode)(&m) : r;
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

PREPARE(with_second)
{
    MUST(CtxCreate, &e->second, NULL, 0, env.device);
    MUST(CtxSetCurrent, env.ctx);
}

/* A function that belongs to the second context. */
PREPARE(with_foreign)
{
    CUmodule m = NULL;

    MUST(CtxCreate, &e->second, NULL, 0, env.device);
    MUST(ModuleLoadData, &m, env.ptx);
    MUST(ModuleGetFunction, &e->foreign, m, "nop");
    MUST(CtxSetCurrent, env.ctx);
}

CALL(ctx_sync)
{
    return CU(CtxSynchronize)();
}

CALL(ctx_sync_second)
{
    CUcontext was;
    CUresult r = CU(CtxPushCurrent)(e->second);

    if (r != CUDA_SUCCESS)
        return r;
    r = CU(CtxSynchronize)();
    CU(CtxPopCurrent)(&was);
    return r;
}

CALL(ctx_pop_push)
{
    CUcontext c;
    CUresult r = CU(CtxPopCurrent)(&c);

    return r == CUDA_SUCCESS ? CU(CtxPushCurrent)(c) : r;
}

CALL(ctx_set)
{
    return CU(CtxSetCurrent)(env.ctx);
}

CALL(ctx_set_null)
{
    CUresult r = CU(CtxSetCurrent)(NULL);

    CU(CtxSetCurrent)(env.ctx);
    return r;
}

CALL(ctx_get)
{
    CUcontext c;

    return CU(CtxGetCurrent)(&c);
}

CALL(ctx_id)
{
    unsigned long long id;

    return CU(CtxGetId)(env.ctx, &id);
}

CALL(ctx_primary)
{
    CUcontext c;
    CUresult r = CU(DevicePrimaryCtxRetain)(&c, env.device);

    return r == CUDA_SUCCESS ? CU(DevicePrimaryCtxRelease)(env.device) : r;
}

CALL(ctx_create)
{
    CUcontext c;
    CUresult r = CU(CtxCreate)(&c, NULL, 0, env.device);

    if (r == CUDA_SUCCESS)
        CU(CtxSetCurrent)(env.ctx);
    return r;
}

CALL(ctx_set_limit)
{
    return CU(CtxSetLimit)(CF_LIMIT_STACK_SIZE, 4096);
}

CALL(ctx_get_limit)
{
    size_t v;

    return CU(CtxGetLimit)(&v, CF_LIMIT_STACK_SIZE);
}

CALL(ctx_record)
{
    return CU(CtxRecordEvent)(env.ctx, e->never);
}

CALL(ctx_wait)
{
    return CU(CtxWaitEvent)(env.ctx, e->before_other);
}

CALL(device_attribute)
{
    int v;

    return CU(DeviceGetAttribute)(&v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, env.device);
}

/* ---- copies and sets --------------------------------------------------------------------------------------------- */

CALL(copy_htod)
{
    int v = 0;

    return CU(MemcpyHtoD)(e->scratch, &v, sizeof v);
}

CALL(copy_dtoh)
{
    int v;

    return CU(MemcpyDtoH)(&v, e->scratch, sizeof v);
}

CALL(copy_dtod)
{
    return CU(MemcpyDtoD)(e->scratch + 64, e->scratch, 4);
}

CALL(copy_unified)
{
    int v = 0;

    return CU(Memcpy)(e->scratch, address(&v), sizeof v);
}

CALL(set_sync)
{
    return CU(MemsetD8)(e->scratch, 0, 64);
}

CALL(copy_htod_pageable_other)
{
    return CU(MemcpyHtoDAsync)(e->scratch, e->pages, 64, e->other);
}

CALL(copy_htod_pinned_other)
{
    return CU(MemcpyHtoDAsync)(e->scratch, e->pinned, 64, e->other);
}

CALL(copy_dtoh_pageable_other)
{
    return CU(MemcpyDtoHAsync)(e->pages, e->scratch, 64, e->other);
}

CALL(copy_dtod_other)
{
    return CU(MemcpyDtoDAsync)(e->scratch + 64, e->scratch, 64, e->other);
}

CALL(set_other)
{
    return CU(MemsetD8Async)(e->scratch, 0, 64, e->other);
}

CALL(copy_htod_pinned_null)
{
    return CU(MemcpyHtoDAsync)(e->scratch, e->pinned, 64, NULL);
}

CALL(copy_htod_pageable_capture)
{
    return CU(MemcpyHtoDAsync)(e->scratch, e->pages, 64, e->capture);
}

CALL(copy_htod_pinned_capture)
{
    return CU(MemcpyHtoDAsync)(e->scratch, e->pinned, 64, e->capture);
}

CALL(copy_dtoh_pageable_capture)
{
    return CU(MemcpyDtoHAsync)(e->pages, e->scratch, 64, e->capture);
}

CALL(copy_dtod_capture)
{
    return CU(MemcpyDtoDAsync)(e->scratch + 64, e->scratch, 64, e->capture);
}

CALL(set_capture)
{
    return CU(MemsetD8Async)(e->scratch, 0, 64, e->capture);
}

CALL(copy_peer)
{
    return CU(MemcpyPeerAsync)(e->scratch, env.ctx, e->scratch + 64, env.ctx, 64, e->capture);
}

CALL(copy_batch)
{
    CUdeviceptr to[2] = {e->scratch, e->scratch + 64}, from[2] = {e->scratch + 128, e->scratch + 192};
    size_t sizes[2] = {64, 64}, first[1] = {0};
    cf_copy_attributes a;

    memset(&a, 0, sizeof a);
    a.access_order = CF_COPY_ORDER_STREAM;
    return CU(MemcpyBatchAsync)(to, from, sizes, 2, &a, first, 1, e->capture);
}

CALL(copy_zero)
{
    return CU(MemcpyDtoDAsync)(e->scratch, e->scratch + 64, 0, e->capture);
}

CALL(set_zero)
{
    return CU(MemsetD8Async)(e->scratch, 0, 0, e->capture);
}

CALL(copy_bad)
{
    return CU(MemcpyDtoDAsync)(0x10, 0x20, 64, e->capture);
}

CALL(copy_past_end)
{
    return CU(MemcpyDtoDAsync)(e->scratch, e->scratch + 4096, 1u << 20, e->capture);
}

CALL(set_bad)
{
    return CU(MemsetD8Async)(0x10, 0, 64, e->capture);
}

/* ---- launches, host functions, memory operations ----------------------------------------------------------------- */

static void host_nop(void *unused)
{
    (void)unused;
}

static void callback_nop(CUstream s, CUresult status, void *unused)
{
    (void)s;
    (void)status;
    (void)unused;
}

static CUresult shaped(CUstream s, CUfunction f, unsigned grid, unsigned block, unsigned shared)
{
    return CU(LaunchKernel)(f, grid, 1, 1, block, 1, 1, shared, s, NULL, NULL);
}

CALL(launch_capture)
{
    return launch_nop(e->capture);
}

CALL(launch_other)
{
    return launch_nop(e->other);
}

CALL(launch_blocking)
{
    return launch_nop(e->blocking);
}

CALL(launch_null)
{
    return launch_nop(NULL);
}

CALL(launch_per_thread)
{
    return launch_nop(CU_STREAM_PER_THREAD);
}

CALL(launch_cooperative)
{
    return CU(LaunchCooperativeKernel)(kernel("nop"), 1, 1, 1, 1, 1, 1, 0, e->capture, NULL);
}

CALL(launch_4096_threads)
{
    return shaped(e->capture, kernel("nop"), 1, 4096, 0);
}

CALL(launch_grid_0)
{
    return shaped(e->capture, kernel("nop"), 0, 1, 0);
}

CALL(launch_1_mib_shared)
{
    return shaped(e->capture, kernel("nop"), 1, 1, 1u << 20);
}

CALL(launch_null_function)
{
    return shaped(e->capture, NULL, 1, 1, 0);
}

CALL(launch_no_arguments)
{
    return shaped(e->capture, kernel("inc"), 1, 1, 0);
}

CALL(launch_foreign)
{
    return shaped(e->capture, e->foreign, 1, 1, 0);
}

CALL(launch_failing_other)
{
    return shaped(e->other, kernel("nop"), 1, 4096, 0);
}

CALL(host_capture)
{
    return CU(LaunchHostFunc)(e->capture, host_nop, NULL);
}

CALL(host_other)
{
    return CU(LaunchHostFunc)(e->other, host_nop, NULL);
}

CALL(host_null)
{
    return CU(LaunchHostFunc)(e->capture, NULL, NULL);
}

CALL(callback_capture)
{
    return CU(StreamAddCallback)(e->capture, callback_nop, NULL, 0);
}

CALL(callback_other)
{
    return CU(StreamAddCallback)(e->other, callback_nop, NULL, 0);
}

CALL(write_value_capture)
{
    return CU(StreamWriteValue32)(e->capture, e->scratch, 1, 0);
}

CALL(write_value_64_capture)
{
    return CU(StreamWriteValue64)(e->capture, e->scratch, 1, 0);
}

CALL(write_value_other)
{
    return CU(StreamWriteValue32)(e->other, e->scratch, 1, 0);
}

CALL(wait_value_capture)
{
    return CU(StreamWaitValue32)(e->capture, e->scratch, 0, CF_WAIT_VALUE_GEQ);
}

CALL(batch_mem_op)
{
    CUstreamBatchMemOpParams p[2];

    memset(p, 0, sizeof p);
    for (unsigned i = 0; i < 2; i++) {
        p[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        p[i].writeValue.address = e->scratch + 4 * i;
        p[i].writeValue.value = 1;
    }
    return CU(StreamBatchMemOp)(e->capture, 2, p, 0);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define FORM_PLAIN(id, what, class, make, prepare) {id, what, class, make, prepare, NULL, 0, 0, 0, NULL}
#define FORM_NODE(id, what, make, prepare, nodes) {id, what, FREE, make, prepare, nodes, 0, 0, 0, NULL}
#define FORM_CODE(id, what, class, code, make, prepare, nodes) {id, what, class, make, prepare, nodes, code, 0, 0, NULL}

const struct mode_call mode_calls[] = {
    /* Unsafe. */
    FORM_PLAIN("cuMemAlloc", "cuMemAlloc(4 KiB)", UNSAFE, mem_alloc, NULL),
    FORM_PLAIN("cuMemAlloc_big", "cuMemAlloc(64 MiB)", UNSAFE, mem_alloc_big, NULL),
    FORM_PLAIN("cuMemAllocPitch", "cuMemAllocPitch", UNSAFE, mem_alloc_pitch, NULL),
    FORM_PLAIN("cuMemAllocManaged", "cuMemAllocManaged", UNSAFE, mem_alloc_managed, NULL),
    FORM_PLAIN("cuMemFree", "cuMemFree", UNSAFE, mem_free, with_buffer),
    FORM_PLAIN("cuMemFree_null", "cuMemFree(0)", UNSAFE, mem_free_null, NULL),
    FORM_PLAIN("cuMemFree_pool", "cuMemFree(pool memory)", UNSAFE, mem_free_pool, with_pool),
    FORM_PLAIN("cuMemFree_graph", "cuMemFree(graph allocation)", UNSAFE, mem_free_graph, with_graph_buffer),
    FORM_PLAIN("cuMemAllocHost", "cuMemAllocHost", UNSAFE, mem_alloc_host, NULL),
    FORM_PLAIN("cuMemHostAlloc", "cuMemHostAlloc", UNSAFE, mem_host_alloc, NULL),
    FORM_PLAIN("cuMemFreeHost", "cuMemFreeHost", UNSAFE, mem_free_host, with_pinned),
    FORM_PLAIN("cuMemHostRegister", "cuMemHostRegister", UNSAFE, mem_host_register, with_pages),
    FORM_PLAIN("cuMemAdvise", "cuMemAdvise(managed)", UNSAFE, mem_advise, with_managed),
    FORM_PLAIN("cuPointerSetAttribute", "cuPointerSetAttribute(SYNC_MEMOPS)", UNSAFE, pointer_set_attribute, NULL),
    FORM_PLAIN("cuMemAllocAsync_other", "cuMemAllocAsync(another stream)", UNSAFE, alloc_other, NULL),
    FORM_PLAIN("cuMemFreeAsync_other_pool", "cuMemFreeAsync(pool memory, another stream)", UNSAFE, free_other_pool, with_pool),
    FORM_PLAIN("cuMemFreeAsync_other_graph", "cuMemFreeAsync(graph allocation, another stream)",
              UNSAFE, free_other_graph, with_graph_buffer),
    FORM_PLAIN("cuMemPoolGetAttribute", "cuMemPoolGetAttribute", UNSAFE, pool_get, with_pool),
    FORM_PLAIN("cuMemPoolSetAttribute", "cuMemPoolSetAttribute", UNSAFE, pool_set, with_pool),
    FORM_PLAIN("cuMemPoolTrimTo", "cuMemPoolTrimTo", UNSAFE, pool_trim, with_pool),
    FORM_PLAIN("cuMemPoolCreate", "cuMemPoolCreate", UNSAFE, pool_create, NULL),
    FORM_PLAIN("cuCtxSetLimit", "cuCtxSetLimit(stack)", UNSAFE, ctx_set_limit, NULL),
    FORM_PLAIN("cuModuleUnload", "cuModuleUnload", UNSAFE, module_unload, with_module),
    FORM_PLAIN("cuLibraryUnload", "cuLibraryUnload", UNSAFE, library_unload, with_library),
    FORM_PLAIN("cuGraphInstantiateWithFlags", "cuGraphInstantiateWithFlags(another graph)",
              UNSAFE, graph_instantiate, with_graph),
    FORM_PLAIN("cuGraphInstantiateWithFlags_own", "cuGraphInstantiateWithFlags(graph under capture)",
              UNSAFE, own_instantiate, NULL),
    FORM_PLAIN("cuGraphInstantiateWithParams", "cuGraphInstantiateWithParams(another graph)",
              UNSAFE, graph_instantiate_params, with_graph),
    FORM_PLAIN("cuGraphExecDestroy", "cuGraphExecDestroy", UNSAFE, graph_exec_destroy, with_graph),
    FORM_PLAIN("cuEventQuery_before_other", "cuEventQuery(recorded before, another stream)", UNSAFE, event_query_other, NULL),
    FORM_PLAIN("cuEventQuery_before_same", "cuEventQuery(recorded before, this stream)", UNSAFE, event_query_same, NULL),
    FORM_PLAIN("cuEventQuery_never", "cuEventQuery(never recorded)", UNSAFE, event_query_never, NULL),
    FORM_PLAIN("cuEventSynchronize_before_other", "cuEventSynchronize(recorded before, another stream)",
              UNSAFE, event_sync_other, NULL),
    FORM_PLAIN("cuEventSynchronize_before_same", "cuEventSynchronize(recorded before, this stream)",
              UNSAFE, event_sync_same, NULL),
    FORM_PLAIN("cuStreamSynchronize_other", "cuStreamSynchronize(another stream)", UNSAFE, stream_sync_other, NULL),
    FORM_PLAIN("cuStreamQuery_other", "cuStreamQuery(another stream)", UNSAFE, stream_query_other, NULL),

    /* Unsafe, on the legacy stream. */
    FORM_PLAIN("cuStreamSynchronize_null", "cuStreamSynchronize(NULL)", UNSAFE_LEGACY, stream_sync_null, NULL),
    FORM_PLAIN("cuStreamQuery_null", "cuStreamQuery(NULL)", UNSAFE_LEGACY, stream_query_null, NULL),
    FORM_PLAIN("cuMemAllocAsync_null", "cuMemAllocAsync(NULL stream)", UNSAFE_LEGACY, alloc_null, NULL),

    /* Never. */
    FORM_PLAIN("cuGraphLaunch_capture", "cuGraphLaunch(capturing stream)", NEVER, graph_launch_capture, with_graph),
    FORM_PLAIN("cuGraphUpload_capture", "cuGraphUpload(capturing stream)", NEVER, graph_upload_capture, with_graph),
    FORM_PLAIN("cuStreamSynchronize_capture", "cuStreamSynchronize(capturing stream)", NEVER, stream_sync_capture, NULL),
    FORM_PLAIN("cuStreamQuery_capture", "cuStreamQuery(capturing stream)", NEVER, stream_query_capture, NULL),
    FORM_PLAIN("cuStreamAddCallback_capture", "cuStreamAddCallback(capturing stream)", NEVER, callback_capture, NULL),
    FORM_PLAIN("cuStreamAttachMemAsync", "cuStreamAttachMemAsync(capturing stream)", NEVER, stream_attach, with_managed),
    FORM_PLAIN("cuMemPrefetchAsync", "cuMemPrefetchAsync(capturing stream)", NEVER, mem_prefetch, with_managed),
    FORM_PLAIN("cuMemcpyPeerAsync", "cuMemcpyPeerAsync(one context, capturing stream)", NEVER, copy_peer, NULL),
    FORM_PLAIN("cuStreamGetId_capture", "cuStreamGetId(capturing stream)", NEVER, stream_id_capture, NULL),
    FORM_PLAIN("cuStreamGetFlags", "cuStreamGetFlags(capturing stream)", NEVER, stream_flags, NULL),
    FORM_PLAIN("cuStreamGetDevice", "cuStreamGetDevice(capturing stream)", NEVER, stream_device, NULL),
    FORM_PLAIN("cuCtxSynchronize", "cuCtxSynchronize", NEVER, ctx_sync, NULL),
    FORM_PLAIN("cuCtxRecordEvent", "cuCtxRecordEvent", NEVER, ctx_record, NULL),
    FORM_PLAIN("cuCtxWaitEvent", "cuCtxWaitEvent", NEVER, ctx_wait, NULL),

    /* Captured events. */
    FORM_PLAIN("cuEventQuery_captured", "cuEventQuery(captured here)", CAPTURED, event_query_inside, NULL),
    FORM_PLAIN("cuEventSynchronize_captured", "cuEventSynchronize(captured here)", CAPTURED, event_sync_inside, NULL),

    /* The legacy stream. */
    FORM_PLAIN("cuMemcpyHtoD", "cuMemcpyHtoD", LEGACY, copy_htod, NULL),
    FORM_PLAIN("cuMemcpyDtoH", "cuMemcpyDtoH", LEGACY, copy_dtoh, NULL),
    FORM_PLAIN("cuMemcpyDtoD", "cuMemcpyDtoD", LEGACY, copy_dtod, NULL),
    FORM_PLAIN("cuMemcpy", "cuMemcpy", LEGACY, copy_unified, NULL),
    FORM_PLAIN("cuMemsetD8", "cuMemsetD8", LEGACY, set_sync, NULL),
    FORM_PLAIN("cuLaunchKernel_null", "cuLaunchKernel(NULL stream)", LEGACY, launch_null, NULL),
    FORM_PLAIN("cuMemcpyHtoDAsync_null", "cuMemcpyHtoDAsync(NULL stream)", LEGACY, copy_htod_pinned_null, with_pinned),
    FORM_PLAIN("cuEventRecord_null", "cuEventRecord(NULL stream)", LEGACY, event_record_null, NULL),
    FORM_PLAIN("cuStreamIsCapturing_null", "cuStreamIsCapturing(NULL)", LEGACY_QUERY, stream_is_capturing_null, NULL),
    FORM_PLAIN("cuStreamGetCaptureInfo_null", "cuStreamGetCaptureInfo(NULL)", LEGACY_QUERY, stream_capture_info_null, NULL),
    FORM_CODE("cuStreamWaitEvent_null_captured", "cuStreamWaitEvent(NULL, captured event)",
              KILLS, 906, wait_null_inside, NULL, NULL),

    /* Free, recorded as a node. */
    FORM_NODE("cuLaunchKernel_capture", "cuLaunchKernel(capturing stream)", launch_capture, NULL, "kernel=1"),
    FORM_NODE("cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel(capturing stream)", launch_cooperative, NULL, "kernel=1"),
    FORM_NODE("first_launch_capture", "first launch of an unloaded kernel(capturing stream)",
              lazy_capture, with_library, "kernel=1"),
    FORM_NODE("bigstack_launch_capture", "first launch of a kernel with 8 KiB of local memory(capturing stream)",
              launch_bigstack, with_bigstack, "kernel=1"),
    FORM_NODE("cuMemcpyHtoDAsync_pageable", "cuMemcpyHtoDAsync(pageable, capturing stream)",
              copy_htod_pageable_capture, with_pages, "memcpy=1"),
    FORM_NODE("cuMemcpyHtoDAsync_pinned", "cuMemcpyHtoDAsync(pinned, capturing stream)",
              copy_htod_pinned_capture, with_pinned, "memcpy=1"),
    FORM_NODE("cuMemcpyDtoHAsync_pageable", "cuMemcpyDtoHAsync(pageable, capturing stream)",
              copy_dtoh_pageable_capture, with_pages, "memcpy=1"),
    FORM_NODE("cuMemcpyDtoDAsync", "cuMemcpyDtoDAsync(capturing stream)", copy_dtod_capture, NULL, "memcpy=1"),
    FORM_NODE("cuMemsetD8Async", "cuMemsetD8Async(capturing stream)", set_capture, NULL, "memset=1"),
    FORM_NODE("cuLaunchHostFunc", "cuLaunchHostFunc(capturing stream)", host_capture, NULL, "host=1"),
    FORM_NODE("cuStreamWriteValue32", "cuStreamWriteValue32(capturing stream)", write_value_capture, NULL, "batch_mem_op=1"),
    FORM_NODE("cuStreamWriteValue64", "cuStreamWriteValue64(capturing stream)", write_value_64_capture, NULL, "batch_mem_op=1"),
    FORM_NODE("cuStreamWaitValue32", "cuStreamWaitValue32(capturing stream)", wait_value_capture, NULL, "batch_mem_op=1"),
    FORM_NODE("cuStreamBatchMemOp", "cuStreamBatchMemOp(2 writes, capturing stream)", batch_mem_op, NULL, "batch_mem_op=1"),
    FORM_NODE("cuMemAllocAsync_balanced", "cuMemAllocAsync, use, cuMemFreeAsync(capturing stream)",
              alloc_use_free, NULL, "kernel=1 mem_alloc=1 mem_free=1"),
    FORM_NODE("cuMemAllocAsync_unbalanced", "cuMemAllocAsync(capturing stream)", alloc_capture, NULL, "mem_alloc=1"),
    FORM_NODE("cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync(capturing stream)",
              alloc_pool_capture, with_pool, "mem_alloc=1"),
    FORM_NODE("cuMemFreeAsync_graph", "cuMemFreeAsync(another graph's allocation, capturing stream)",
              free_capture_graph, with_graph_buffer, "mem_free=1"),
    FORM_NODE("cuEventRecord_external", "cuEventRecordWithFlags(EXTERNAL, capturing stream)",
              event_record_external, NULL, "event_record=1"),
    FORM_NODE("cuStreamWaitEvent_external", "cuStreamWaitEvent(EXTERNAL, capturing stream)", wait_external, NULL, "wait_event=1"),
    FORM_NODE("cuGraphAddEmptyNode_own", "cuGraphAddEmptyNode(graph under capture)", own_add_empty, NULL, "empty=1"),
    FORM_NODE("cuGraphAddChildGraphNode_own", "cuGraphAddChildGraphNode(graph under capture)",
              own_add_child, with_graph, "graph=1"),

    /* Free, no node. */
    FORM_NODE("cuEventRecord_capture", "cuEventRecord(capturing stream)", event_record_capture, NULL, NULL),
    FORM_NODE("cuStreamWaitEvent_own", "cuStreamWaitEvent(own captured event)", wait_own_inside, NULL, NULL),
    FORM_NODE("cuStreamWaitEvent_never", "cuStreamWaitEvent(never recorded event)", wait_never, NULL, NULL),
    FORM_NODE("cuMemcpyDtoDAsync_zero", "cuMemcpyDtoDAsync(0 bytes, capturing stream)", copy_zero, NULL, NULL),
    FORM_NODE("cuMemsetD8Async_zero", "cuMemsetD8Async(0 bytes, capturing stream)", set_zero, NULL, NULL),
    FORM_NODE("cuMemFreeAsync_null", "cuMemFreeAsync(0, capturing stream)", free_capture_null, NULL, NULL),

    /* Free, done at once. */
    FORM_NODE("cuModuleLoadData", "cuModuleLoadData(PTX)", module_load, NULL, NULL),
    FORM_NODE("cuLibraryLoadData", "cuLibraryLoadData(PTX)", library_load, NULL, NULL),
    FORM_NODE("cuModuleGetFunction", "cuModuleGetFunction(not yet loaded)", module_function, with_module, NULL),
    FORM_NODE("cuKernelGetFunction", "cuKernelGetFunction(not yet loaded)", kernel_function, with_library, NULL),
    FORM_NODE("cuFuncLoad", "cuFuncLoad(not yet loaded)", func_load, with_unloaded_function, NULL),
    FORM_NODE("cuModuleGetGlobal", "cuModuleGetGlobal", module_global, with_module_global, NULL),
    FORM_NODE("cuFuncGetAttribute", "cuFuncGetAttribute", func_get_attribute, NULL, NULL),
    FORM_NODE("cuFuncSetAttribute", "cuFuncSetAttribute(dynamic shared memory)", func_set_attribute, NULL, NULL),
    FORM_NODE("cuFuncGetName", "cuFuncGetName", func_name, NULL, NULL),
    FORM_NODE("cuFuncGetParamInfo", "cuFuncGetParamInfo", func_param_info, NULL, NULL),
    FORM_NODE("cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuOccupancyMaxActiveBlocksPerMultiprocessor",
              occupancy, NULL, NULL),
    FORM_NODE("first_launch_other", "first launch of an unloaded kernel(another stream)", lazy_other, with_library, NULL),
    FORM_NODE("cuGraphCreate", "cuGraphCreate", graph_create, NULL, NULL),
    FORM_NODE("cuGraphDestroy", "cuGraphDestroy(another graph)", graph_destroy, with_graph, NULL),
    FORM_NODE("cuGraphClone", "cuGraphClone(another graph)", graph_clone, with_graph, NULL),
    FORM_NODE("cuGraphAddKernelNode", "cuGraphAddKernelNode(another graph)", graph_add_kernel, with_graph, NULL),
    FORM_NODE("cuGraphAddMemAllocNode", "cuGraphAddMemAllocNode(another graph)", graph_add_alloc, with_graph, NULL),
    FORM_NODE("cuGraphLaunch_other", "cuGraphLaunch(another stream)", graph_launch_other, with_graph, NULL),
    FORM_NODE("cuGraphUpload_other", "cuGraphUpload(another stream)", graph_upload_other, with_graph, NULL),
    FORM_NODE("cuGraphExecUpdate", "cuGraphExecUpdate", graph_update, with_graph, NULL),
    FORM_NODE("cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams", exec_set_params, with_graph, NULL),
    FORM_NODE("cuEventElapsedTime", "cuEventElapsedTime(recorded before)", event_elapsed, NULL, NULL),
    FORM_NODE("cuEventCreate", "cuEventCreate", event_create, NULL, NULL),
    FORM_NODE("cuEventDestroy", "cuEventDestroy", event_destroy_spare, with_spare_event, NULL),
    FORM_NODE("cuEventDestroy_captured", "cuEventDestroy(captured here)", event_destroy_inside, NULL, NULL),
    FORM_NODE("cuStreamCreate", "cuStreamCreate(NON_BLOCKING)", stream_create, NULL, NULL),
    FORM_NODE("cuStreamCreate_blocking", "cuStreamCreate(DEFAULT)", stream_create_blocking, NULL, NULL),
    FORM_NODE("cuStreamDestroy_other", "cuStreamDestroy(another stream)", stream_destroy_other, with_other2, NULL),
    FORM_NODE("cuMemGetInfo", "cuMemGetInfo", mem_get_info, NULL, NULL),
    FORM_NODE("cuPointerGetAttribute", "cuPointerGetAttribute", pointer_attribute, NULL, NULL),
    FORM_NODE("cuPointerGetAttributes", "cuPointerGetAttributes", pointer_attributes, NULL, NULL),
    FORM_NODE("cuMemGetAddressRange", "cuMemGetAddressRange", mem_address_range, NULL, NULL),
    FORM_NODE("cuMemHostGetDevicePointer", "cuMemHostGetDevicePointer", mem_host_device_pointer, with_pinned, NULL),
    FORM_NODE("cuMemHostGetFlags", "cuMemHostGetFlags", mem_host_flags, with_pinned, NULL),
    FORM_NODE("cuIpcGetMemHandle", "cuIpcGetMemHandle", ipc_handle, NULL, NULL),
    FORM_NODE("cuDeviceGetDefaultMemPool", "cuDeviceGetDefaultMemPool", pool_default, NULL, NULL),
    FORM_NODE("cuDeviceGetGraphMemAttribute", "cuDeviceGetGraphMemAttribute", graph_mem_attribute, NULL, NULL),
    FORM_NODE("cuDeviceGraphMemTrim", "cuDeviceGraphMemTrim", graph_mem_trim, NULL, NULL),
    FORM_NODE("cuDeviceGetAttribute", "cuDeviceGetAttribute", device_attribute, NULL, NULL),
    FORM_NODE("cuMemCreate", "cuMemCreate", vmm_make, with_vmm, NULL),
    FORM_NODE("cuMemRelease", "cuMemRelease", vmm_release, with_vmm, NULL),
    FORM_NODE("cuMemAddressReserve", "cuMemAddressReserve", vmm_reserve_range, with_vmm, NULL),
    FORM_NODE("cuMemAddressFree", "cuMemAddressFree", vmm_free_range, with_vmm, NULL),
    FORM_NODE("cuMemMap", "cuMemMap", vmm_map_range, with_vmm, NULL),
    FORM_NODE("cuMemUnmap", "cuMemUnmap", vmm_unmap_range, with_vmm, NULL),
    FORM_NODE("cuMemSetAccess", "cuMemSetAccess", vmm_set_access, with_vmm, NULL),
    FORM_NODE("cuMemGetAllocationGranularity", "cuMemGetAllocationGranularity", vmm_granularity, NULL, NULL),
    FORM_NODE("cuMemRetainAllocationHandle", "cuMemRetainAllocationHandle", vmm_retain, with_vmm, NULL),
    FORM_NODE("cuCtxPopCurrent", "cuCtxPopCurrent and cuCtxPushCurrent", ctx_pop_push, NULL, NULL),
    FORM_NODE("cuCtxSetCurrent", "cuCtxSetCurrent", ctx_set, NULL, NULL),
    FORM_NODE("cuCtxSetCurrent_null", "cuCtxSetCurrent(NULL) and back", ctx_set_null, NULL, NULL),
    FORM_NODE("cuCtxGetCurrent", "cuCtxGetCurrent", ctx_get, NULL, NULL),
    FORM_NODE("cuCtxGetId", "cuCtxGetId", ctx_id, NULL, NULL),
    FORM_NODE("cuCtxGetLimit", "cuCtxGetLimit(stack)", ctx_get_limit, NULL, NULL),
    FORM_NODE("cuCtxCreate", "cuCtxCreate", ctx_create, NULL, NULL),
    FORM_NODE("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain and cuDevicePrimaryCtxRelease", ctx_primary, NULL, NULL),
    FORM_NODE("cuCtxSynchronize_second", "cuCtxSynchronize(a second context)", ctx_sync_second, with_second, NULL),
    FORM_NODE("cuMemcpyHtoDAsync_pageable_other", "cuMemcpyHtoDAsync(pageable, another stream)",
              copy_htod_pageable_other, with_pages, NULL),
    FORM_NODE("cuMemcpyHtoDAsync_pinned_other", "cuMemcpyHtoDAsync(pinned, another stream)",
              copy_htod_pinned_other, with_pinned, NULL),
    FORM_NODE("cuMemcpyDtoHAsync_pageable_other", "cuMemcpyDtoHAsync(pageable, another stream)",
              copy_dtoh_pageable_other, with_pages, NULL),
    FORM_NODE("cuMemcpyDtoDAsync_other", "cuMemcpyDtoDAsync(another stream)", copy_dtod_other, NULL, NULL),
    FORM_NODE("cuMemsetD8Async_other", "cuMemsetD8Async(another stream)", set_other, NULL, NULL),
    FORM_NODE("cuLaunchKernel_other", "cuLaunchKernel(another stream)", launch_other, NULL, NULL),
    FORM_NODE("cuLaunchKernel_other_blocking", "cuLaunchKernel(another, blocking stream)", launch_blocking, with_blocking, NULL),
    FORM_NODE("cuLaunchKernel_per_thread", "cuLaunchKernel(CU_STREAM_PER_THREAD)", launch_per_thread, NULL, NULL),
    FORM_NODE("cuLaunchHostFunc_other", "cuLaunchHostFunc(another stream)", host_other, NULL, NULL),
    FORM_NODE("cuStreamAddCallback_other", "cuStreamAddCallback(another stream)", callback_other, NULL, NULL),
    FORM_NODE("cuStreamWriteValue32_other", "cuStreamWriteValue32(another stream)", write_value_other, NULL, NULL),
    FORM_NODE("cuEventRecord_other", "cuEventRecord(another stream)", event_record_other, NULL, NULL),
    FORM_NODE("cuStreamWaitEvent_other", "cuStreamWaitEvent(another stream, event recorded before)", wait_other, NULL, NULL),
    FORM_NODE("second_capture", "begin and end of another capture", second_capture, NULL, NULL),
    FORM_NODE("cuUserObjectCreate", "cuUserObjectCreate", user_object, NULL, NULL),
    FORM_NODE("cuThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode there and back", exchange_mode, NULL, NULL),
    FORM_NODE("cuGraphKernelNodeGetParams_own", "cuGraphKernelNodeGetParams(graph under capture)", own_get_params, NULL, NULL),
    FORM_NODE("cuGraphKernelNodeSetParams_own", "cuGraphKernelNodeSetParams(graph under capture)", own_set_params, NULL, NULL),
    FORM_NODE("cuGraphClone_own", "cuGraphClone(graph under capture)", own_clone, NULL, NULL),
    FORM_NODE("cuGraphRetainUserObject_own", "cuGraphRetainUserObject(graph under capture)", own_retain_object, NULL, NULL),
    FORM_NODE("cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo(capturing stream)", stream_capture_info, NULL, NULL),
    FORM_NODE("cuStreamIsCapturing", "cuStreamIsCapturing(capturing stream)", stream_is_capturing, NULL, NULL),
    FORM_NODE("cuStreamGetCtx", "cuStreamGetCtx(capturing stream)", stream_ctx, NULL, NULL),
    FORM_NODE("cuStreamGetPriority", "cuStreamGetPriority(capturing stream)", stream_priority, NULL, NULL),
    FORM_NODE("cuStreamGetAttribute", "cuStreamGetAttribute(capturing stream)", stream_get_attribute, NULL, NULL),
    FORM_NODE("cuStreamSetAttribute", "cuStreamSetAttribute(capturing stream)", stream_set_attribute, NULL, NULL),
    FORM_NODE("cuStreamUpdateCaptureDependencies", "cuStreamUpdateCaptureDependencies(as they are)",
              stream_update_dependencies, NULL, NULL),
    FORM_NODE("cuStreamGetId_other", "cuStreamGetId(another stream)", stream_id_other, NULL, NULL),

    /* Wrong arguments that do no harm. */
    FORM_CODE("cuMemFreeAsync_plain", "cuMemFreeAsync(cuMemAlloc memory, capturing stream)",
              ARGUMENT, 1, free_capture_plain, with_buffer, NULL),
    FORM_CODE("cuMemFreeAsync_pool", "cuMemFreeAsync(pool memory from before, capturing stream)",
              ARGUMENT, 1, free_capture_pool, with_pool, NULL),
    FORM_CODE("cuMemFreeAsync_interior", "cuMemFreeAsync(inside a captured allocation, capturing stream)",
              ARGUMENT, 1, free_capture_interior, NULL, "mem_alloc=1"),
    FORM_CODE("cuMemFreeAsync_twice", "cuMemFreeAsync(what this capture freed, capturing stream)",
              ARGUMENT, 1, free_capture_twice, NULL, "mem_alloc=1 mem_free=1"),
    FORM_CODE("cuMemcpyDtoDAsync_bad", "cuMemcpyDtoDAsync(bad addresses, capturing stream)", ARGUMENT, 1, copy_bad, NULL, NULL),
    FORM_CODE("cuMemcpyDtoDAsync_past_end", "cuMemcpyDtoDAsync(past the end, capturing stream)",
              ARGUMENT, 1, copy_past_end, NULL, NULL),
    FORM_CODE("cuLaunchHostFunc_null", "cuLaunchHostFunc(NULL function)", ARGUMENT, 1, host_null, NULL, NULL),
    FORM_CODE("launch_no_arguments", "launch without the arguments", ARGUMENT, 1, launch_no_arguments, NULL, NULL),
    FORM_CODE("launch_failing_other", "launch of 4,096 threads into another stream",
              ARGUMENT, 1, launch_failing_other, NULL, NULL),
    FORM_CODE("launch_null_function", "launch of a NULL function", ARGUMENT, 400, launch_null_function, NULL, NULL),
    FORM_CODE("launch_foreign_function", "launch of another context's function",
              ARGUMENT, 400, launch_foreign, with_foreign, NULL),
    FORM_CODE("cuGraphDestroy_own", "cuGraphDestroy(graph under capture)", ARGUMENT, 401, own_destroy, NULL, NULL),
    FORM_CODE("cuGraphDestroyNode_own", "cuGraphDestroyNode(graph under capture)", ARGUMENT, 401, own_destroy_node, NULL, NULL),
    FORM_CODE("cuMemcpyBatchAsync", "cuMemcpyBatchAsync(capturing stream)", ARGUMENT, 900, copy_batch, NULL, NULL),
    {"cuMemsetD8Async_bad", "cuMemsetD8Async(bad address, capturing stream)", FREE, set_bad, NULL, "memset=1", 0, 1, 0, NULL},

    /* Wrong uses that kill. */
    FORM_CODE("launch_4096_threads", "launch of 4,096 threads per block", KILLS, 1, launch_4096_threads, NULL, NULL),
    FORM_CODE("launch_grid_0", "launch of a grid of 0", KILLS, 1, launch_grid_0, NULL, NULL),
    FORM_CODE("launch_1_mib_shared", "launch with 1 MiB of dynamic shared memory", KILLS, 1, launch_1_mib_shared, NULL, NULL),
    FORM_CODE("cuStreamWaitEvent_outside", "cuStreamWaitEvent(event recorded before)", KILLS, 905, wait_outside, NULL, NULL),

    {"cuStreamDestroy_capture", "cuStreamDestroy(capturing stream)",
     FREE, stream_destroy_capture, NULL, NULL, 0, 0, CALL_DESTROYS_STREAM, NULL},
};
/* clang-format on */

const int mode_call_count = sizeof mode_calls / sizeof *mode_calls;

void mode_call_nodes(const struct mode_call *call, char *out, size_t size)
{
    const char *rest = call->nodes ? call->nodes : "";
    int kernels = 2;

    if (strncmp(rest, "kernel=", 7) == 0) {
        char *end_of_number;

        kernels += (int)strtol(rest + 7, &end_of_number, 10);
        rest = *end_of_number == ' ' ? end_of_number + 1 : end_of_number;
    }
    snprintf(out, size, "kernel=%d%s%s", kernels, *rest ? " " : "", rest);
}
