/* Memory pools and stream-ordered allocation. */
#include "core.h"

static struct CUmemPoolHandle_st defaults[CS_MAX_DEVICES];
static CUmemoryPool current[CS_MAX_DEVICES];

void cs_pools_reset(int device)
{
    if (cs_is(&defaults[device], CS_POOL))
        cs_handle_remove(&defaults[device]);
    defaults[device] =
        (struct CUmemPoolHandle_st){.device = device, .is_default = true, .follow = 1, .opportunistic = 1, .internal = 1};
    cs_handle_add(&defaults[device], CS_POOL);
    current[device] = &defaults[device];
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    CUresult r;

    ENTER(cuDeviceGetDefaultMemPool);
    if ((r = cs_device_check(device)) != CUDA_SUCCESS)
        return r;
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    *pool = &defaults[device];
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    CUresult r;

    ENTER(cuDeviceGetMemPool);
    if ((r = cs_device_check(device)) != CUDA_SUCCESS)
        return r;
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    *pool = current[device];
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    CUresult r;

    ENTER(cuDeviceSetMemPool);
    if ((r = cs_device_check(device)) != CUDA_SUCCESS)
        return r;
    if (!cs_is(pool, CS_POOL) || pool->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    current[device] = pool;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    ENTER(cuMemPoolCreate);
    if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || cs_device_check(props->location.id))
        return CUDA_ERROR_INVALID_VALUE;
    CUmemoryPool pool = cs_alloc_bytes(sizeof *pool);
    pool->device = props->location.id;
    pool->follow = pool->opportunistic = pool->internal = 1;
    cs_handle_add(pool, CS_POOL);
    *out = pool;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    ENTER(cuMemPoolDestroy);
    if (!cs_is(pool, CS_POOL) || pool->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    if (current[pool->device] == pool)
        current[pool->device] = &defaults[pool->device];
    cs_handle_remove(pool);
    /* Allocations outlive it and go on counting in it. */
    if (pool->used == 0)
        free(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    ENTER(cuMemPoolGetAttribute);
    if (!cs_is(pool, CS_POOL) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
    case 1:
        *(int *)value = pool->follow;
        break;
    case 2:
        *(int *)value = pool->opportunistic;
        break;
    case 3:
        *(int *)value = pool->internal;
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = pool->threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *(cuuint64_t *)value = (pool->used + CS_GRAPH_BLOCK - 1) / CS_GRAPH_BLOCK * CS_GRAPH_BLOCK;
        break;
    case 6:
        *(cuuint64_t *)value = (pool->used_high + CS_GRAPH_BLOCK - 1) / CS_GRAPH_BLOCK * CS_GRAPH_BLOCK;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = pool->used;
        break;
    case 8:
        *(cuuint64_t *)value = pool->used_high;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    ENTER(cuMemPoolSetAttribute);
    if (!cs_is(pool, CS_POOL) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
    case 1:
        pool->follow = *(int *)value;
        break;
    case 2:
        pool->opportunistic = *(int *)value;
        break;
    case 3:
        pool->internal = *(int *)value;
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold = *(cuuint64_t *)value;
        break;
    case 6:
    case 8:
        if (*(cuuint64_t *)value != 0)
            return CUDA_ERROR_INVALID_VALUE;
        pool->used_high = pool->used;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    ENTER(cuMemPoolTrimTo);
    (void)keep;
    return cs_is(pool, CS_POOL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    ENTER(cuMemPoolSetAccess);
    return cs_is(pool, CS_POOL) && (map || count == 0) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    ENTER(cuMemPoolGetAccess);
    if (!flags || !location || !cs_is(pool, CS_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = location->id == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

static CUresult alloc_async(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream handle)
{
    CUstream s;
    CUresult r = cs_stream(handle, &s);

    if (r)
        return r;
    if (!out || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool && !cs_is(pool, CS_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture) {
        CUDA_MEM_ALLOC_NODE_PARAMS p;
        struct cs_work w;

        if (s->capture->dead)
            return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        memset(&p, 0, sizeof p);
        p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        p.poolProps.location.id = s->ctx->device;
        p.bytesize = bytes;
        if ((r = cs_graph_alloc_work(&w, s->capture->graph, s->deps.nodes, s->deps.count, &p)) != CUDA_SUCCESS)
            return r;
        *out = w.alloc.p.dptr;
        return cs_submit(s, &w);
    }
    if (s->legacy && (r = cs_legacy(s->ctx)) != CUDA_SUCCESS)
        return r;
    if ((r = cs_unsafe()) != CUDA_SUCCESS)
        return r;
    return cs_pool_alloc(pool ? pool : current[s->ctx->device], s, bytes, out);
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream s)
{
    ENTER(cuMemAllocAsync);
    return alloc_async(out, bytes, NULL, s);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream s)
{
    ENTER(cuMemAllocFromPoolAsync);
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    return alloc_async(out, bytes, pool, s);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle)
{
    struct cs_alloc *a;
    CUstream s;
    CUresult r;

    ENTER(cuMemFreeAsync);
    r = cs_stream(handle, &s);
    if (r)
        return r;
    if (s->capture) {
        struct cs_work w = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};

        if (s->capture->dead)
            return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (address == 0)
            return CUDA_SUCCESS;
        a = cs_find_graph(address, 1);
        if (!a || a->base != address || !cs_graph_may_free(s->capture->graph, a))
            return CUDA_ERROR_INVALID_VALUE;
        w.free = a;
        a->refs++;
        return cs_submit(s, &w);
    }
    if (s->legacy && (r = cs_legacy(s->ctx)) != CUDA_SUCCESS)
        return r;
    if ((r = cs_unsafe()) != CUDA_SUCCESS)
        return r;
    if (address == 0)
        return CUDA_SUCCESS;
    a = cs_find(address, 1);
    if (!a || a->base != address || a->kind >= CS_MEM_VMM)
        return CUDA_ERROR_INVALID_VALUE;
    return cs_free_in_stream(s, a);
}
