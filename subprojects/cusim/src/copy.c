/* Copies and sets: every form becomes the three-dimensional copy or the two-dimensional set that a graph node holds. */
#include "core.h"

/* ---- operands ------------------------------------------------------------------------------------------------------ */

static CUdeviceptr side(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y, size_t z, size_t pitch,
                        size_t height)
{
    CUdeviceptr base = type == CU_MEMORYTYPE_HOST ? (CUdeviceptr)(uintptr_t)host : device;

    return base + x + (y + z * height) * pitch;
}

CUdeviceptr cs_copy_src(const CUDA_MEMCPY3D *p)
{
    return side(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY, p->srcZ, p->srcPitch, p->srcHeight);
}

CUdeviceptr cs_copy_dst(const CUDA_MEMCPY3D *p)
{
    return side(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY, p->dstZ, p->dstPitch, p->dstHeight);
}

/* From the first byte to the last, gaps between rows included. */
static size_t extent(const CUDA_MEMCPY3D *p, size_t pitch, size_t height)
{
    if (p->WidthInBytes == 0 || p->Height == 0 || p->Depth == 0)
        return 0;
    return (p->Depth - 1) * pitch * height + (p->Height - 1) * pitch + p->WidthInBytes;
}

static struct cs_alloc *find_any(CUdeviceptr address, size_t bytes, bool node)
{
    struct cs_alloc *a = cs_find(address, bytes);

    if (a && a->kind == CS_MEM_VMM && a->access == 0)
        return NULL;
    return a || !node ? a : cs_find_graph(address, bytes);
}

/* As it was when the copy was made: memory page-locked since stays pageable to it. */
bool cs_copy_pageable_src(const struct cs_copy *c)
{
    return c->p.srcMemoryType != CU_MEMORYTYPE_DEVICE && c->src_id == 0 && !cs_in_arena((uintptr_t)cs_copy_src(&c->p));
}

bool cs_copy_pageable_dst(const struct cs_copy *c)
{
    return c->p.dstMemoryType != CU_MEMORYTYPE_DEVICE && c->dst_id == 0 && !cs_in_arena((uintptr_t)cs_copy_dst(&c->p));
}

static CUresult side_check(CUmemorytype type, CUdeviceptr address, size_t bytes, bool node)
{
    struct cs_alloc *a = find_any(address, 1, node);

    switch (type) {
    case CU_MEMORYTYPE_DEVICE:
        return find_any(address, bytes, node) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEMORYTYPE_HOST:
    case CU_MEMORYTYPE_UNIFIED:
        if (address == 0 || cs_in_arena((uintptr_t)address))
            return find_any(address, bytes, node) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        return a && a->kind == CS_MEM_PINNED && !find_any(address, bytes, node) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_MEMORYTYPE_ARRAY:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cs_copy_check(const CUDA_MEMCPY3D *p, bool node)
{
    size_t src = extent(p, p->srcPitch, p->srcHeight), dst = extent(p, p->dstPitch, p->dstHeight);
    CUresult r;

    if (src == 0)
        return CUDA_SUCCESS;
    if (p->Height > 1 && (p->srcPitch < p->WidthInBytes || p->dstPitch < p->WidthInBytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (p->Depth > 1 && (p->srcHeight < p->Height || p->dstHeight < p->Height))
        return CUDA_ERROR_INVALID_VALUE;
    if ((p->srcHeight != 0 && p->srcY + p->Height > p->srcHeight) || (p->dstHeight != 0 && p->dstY + p->Height > p->dstHeight))
        return CUDA_ERROR_INVALID_VALUE;
    r = side_check(p->srcMemoryType, cs_copy_src(p), src, node);
    return r ? r : side_check(p->dstMemoryType, cs_copy_dst(p), dst, node);
}

static uint64_t id_of(CUdeviceptr address)
{
    struct cs_alloc *a = cs_find(address, 1);

    return a ? a->id : 0;
}

/* An operand may move within its class only: 1 for cuMemAlloc, managed and page-locked memory, 2 for pool, graph and mapped
 * memory. */
static int class_of(CUmemorytype type, CUdeviceptr address)
{
    struct cs_alloc *a = type == CU_MEMORYTYPE_HOST ? NULL : find_any(address, 1, true);

    if (!a)
        return 0;
    return a->kind == CS_MEM_POOL || a->kind == CS_MEM_GRAPH || a->kind == CS_MEM_VMM ? 2 : 1;
}

/* Remember who the operands are, to see later whether they are still the same. */
void cs_copy_note(struct cs_copy *c)
{
    c->src_id = id_of(cs_copy_src(&c->p));
    c->dst_id = id_of(cs_copy_dst(&c->p));
    c->src_class = class_of(c->p.srcMemoryType, cs_copy_src(&c->p));
    c->dst_class = class_of(c->p.dstMemoryType, cs_copy_dst(&c->p));
}

void cs_set_note(struct cs_set *s)
{
    s->dst_id = id_of(s->p.dst);
}

CUresult cs_set_check(const CUDA_MEMSET_NODE_PARAMS *p, bool node)
{
    if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->width == 0 || p->height == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->height > 1 && p->pitch < p->width * p->elementSize)
        return CUDA_ERROR_INVALID_VALUE;
    size_t bytes = (p->height - 1) * p->pitch + p->width * p->elementSize;
    return find_any(p->dst, bytes, node) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Pageable sources are read during the call: from here on the work has the bytes. */
void cs_copy_stage(struct cs_copy *c)
{
    CUDA_MEMCPY3D *p = &c->p;
    size_t bytes = extent(p, p->srcPitch, p->srcHeight);

    c->staged = cs_alloc_bytes(bytes);
    memcpy(c->staged, (const void *)(uintptr_t)cs_copy_src(p), bytes);
    p->srcMemoryType = CU_MEMORYTYPE_HOST;
    p->srcHost = c->staged;
    p->srcXInBytes = p->srcY = p->srcZ = 0;
}

/* ---- submitting ---------------------------------------------------------------------------------------------------- */

static CUresult copy_async(const CUDA_MEMCPY3D *p, CUstream handle)
{
    struct cs_work w = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    CUstream s;
    CUresult r = cs_stream(handle, &s);

    if (r)
        return r;
    if (s->capture && s->capture->dead)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if ((r = cs_copy_check(p, s->capture != NULL)) != CUDA_SUCCESS)
        return r;
    if (p->WidthInBytes == 0 || p->Height == 0 || p->Depth == 0)
        return CUDA_SUCCESS;
    w.copy.p = *p;
    w.copy.ctx = s->ctx;
    cs_copy_note(&w.copy);
    if (s->capture)
        return cs_submit(s, &w);
    bool blocks = cs_copy_pageable_dst(&w.copy);
    if (cs_copy_pageable_src(&w.copy))
        cs_copy_stage(&w.copy);
    if ((r = cs_submit(s, &w)) != CUDA_SUCCESS)
        return r;
    if (blocks) {
        CUcontext ctx = s->ctx;
        cs_stream_drain(s);
        return cs_is(ctx, CS_CONTEXT) ? ctx->fault : CUDA_SUCCESS;
    }
    return CUDA_SUCCESS;
}

static CUresult copy_sync(const CUDA_MEMCPY3D *p)
{
    struct cs_work w = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    CUstream s;
    CUresult r = cs_sync_stream(&s);

    if (r || (r = cs_copy_check(p, false)) != CUDA_SUCCESS)
        return r;
    if (p->WidthInBytes == 0 || p->Height == 0 || p->Depth == 0)
        return CUDA_SUCCESS;
    w.copy.p = *p;
    w.copy.ctx = cs_current();
    return cs_run_sync(&w);
}

static CUDA_MEMCPY3D flat(CUmemorytype dst_type, CUdeviceptr dst, CUmemorytype src_type, CUdeviceptr src, size_t bytes)
{
    CUDA_MEMCPY3D p;

    memset(&p, 0, sizeof p);
    p.srcMemoryType = src_type;
    if (src_type == CU_MEMORYTYPE_HOST)
        p.srcHost = (const void *)(uintptr_t)src;
    else
        p.srcDevice = src;
    p.dstMemoryType = dst_type;
    if (dst_type == CU_MEMORYTYPE_HOST)
        p.dstHost = (void *)(uintptr_t)dst;
    else
        p.dstDevice = dst;
    p.WidthInBytes = bytes;
    p.Height = p.Depth = 1;
    return p;
}

#define H CU_MEMORYTYPE_HOST
#define D CU_MEMORYTYPE_DEVICE
#define U CU_MEMORYTYPE_UNIFIED

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
    ENTER(cuMemcpyHtoD_v2);
    CUDA_MEMCPY3D p = flat(D, dst, H, (CUdeviceptr)(uintptr_t)src, bytes);
    return copy_sync(&p);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
    ENTER(cuMemcpyDtoH_v2);
    CUDA_MEMCPY3D p = flat(H, (CUdeviceptr)(uintptr_t)dst, D, src, bytes);
    return copy_sync(&p);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    ENTER(cuMemcpyDtoD_v2);
    CUDA_MEMCPY3D p = flat(D, dst, D, src, bytes);
    return copy_sync(&p);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    ENTER(cuMemcpy);
    CUDA_MEMCPY3D p = flat(U, dst, U, src, bytes);
    return copy_sync(&p);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes)
{
    ENTER(cuMemcpyPeer);
    if (!cs_is(to, CS_CONTEXT) || !cs_is(from, CS_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    CUDA_MEMCPY3D p = flat(D, dst, D, src, bytes);
    return copy_sync(&p);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream s)
{
    ENTER(cuMemcpyHtoDAsync_v2);
    CUDA_MEMCPY3D p = flat(D, dst, H, (CUdeviceptr)(uintptr_t)src, bytes);
    return copy_async(&p, s);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream s)
{
    ENTER(cuMemcpyDtoHAsync_v2);
    CUDA_MEMCPY3D p = flat(H, (CUdeviceptr)(uintptr_t)dst, D, src, bytes);
    return copy_async(&p, s);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)
{
    ENTER(cuMemcpyDtoDAsync_v2);
    CUDA_MEMCPY3D p = flat(D, dst, D, src, bytes);
    return copy_async(&p, s);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)
{
    ENTER(cuMemcpyAsync);
    CUDA_MEMCPY3D p = flat(U, dst, U, src, bytes);
    return copy_async(&p, s);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes, CUstream handle)
{
    CUstream s;
    CUresult r;

    ENTER(cuMemcpyPeerAsync);
    if ((r = cs_stream(handle, &s)) != CUDA_SUCCESS)
        return r;
    if (s->capture)
        return cs_never(s);
    if (!cs_is(to, CS_CONTEXT) || !cs_is(from, CS_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    CUDA_MEMCPY3D p = flat(D, dst, D, src, bytes);
    return copy_async(&p, handle);
}

static CUresult copy_batch(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUstream handle)
{
    CUstream s;
    CUresult r;

    if ((r = cs_stream(handle, &s)) != CUDA_SUCCESS)
        return r;
    /* Refused in a capture, which survives it. */
    if (s->capture)
        return s->capture->dead ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->legacy || !dsts || !srcs || !sizes || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && !r; i++) {
        CUDA_MEMCPY3D p = flat(U, dsts[i], U, srcs[i], sizes[i]);
        r = copy_async(&p, handle);
    }
    return r;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, void *attrs, size_t *indices,
                            size_t n, size_t *failed, CUstream s)
{
    ENTER(cuMemcpyBatchAsync);
    (void)attrs;
    (void)indices;
    (void)n;
    (void)failed;
    return copy_batch(dsts, srcs, sizes, count, s);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, void *attrs, size_t *indices,
                               size_t n, CUstream s)
{
    ENTER(cuMemcpyBatchAsync_v2);
    (void)attrs;
    (void)indices;
    (void)n;
    return copy_batch(dsts, srcs, sizes, count, s);
}

/* As read back from a node: pitches as given, no heights, one slice. */
static CUDA_MEMCPY3D from_2d(const CUDA_MEMCPY2D *c)
{
    CUDA_MEMCPY3D p;

    memset(&p, 0, sizeof p);
    p.srcXInBytes = c->srcXInBytes;
    p.srcY = c->srcY;
    p.srcMemoryType = c->srcMemoryType;
    p.srcHost = c->srcHost;
    p.srcDevice = c->srcDevice;
    p.srcArray = c->srcArray;
    p.srcPitch = c->srcPitch;
    p.dstXInBytes = c->dstXInBytes;
    p.dstY = c->dstY;
    p.dstMemoryType = c->dstMemoryType;
    p.dstHost = c->dstHost;
    p.dstDevice = c->dstDevice;
    p.dstArray = c->dstArray;
    p.dstPitch = c->dstPitch;
    p.WidthInBytes = c->WidthInBytes;
    p.Height = c->Height;
    p.Depth = 1;
    return p;
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *c)
{
    ENTER(cuMemcpy2D_v2);
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D p = from_2d(c);
    return copy_sync(&p);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c)
{
    ENTER(cuMemcpy2DUnaligned_v2);
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D p = from_2d(c);
    return copy_sync(&p);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream s)
{
    ENTER(cuMemcpy2DAsync_v2);
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D p = from_2d(c);
    return copy_async(&p, s);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *p)
{
    ENTER(cuMemcpy3D_v2);
    return p ? copy_sync(p) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *p, CUstream s)
{
    ENTER(cuMemcpy3DAsync_v2);
    return p ? copy_async(p, s) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- sets ---------------------------------------------------------------------------------------------------------- */

static CUresult set(CUdeviceptr dst, size_t pitch, unsigned value, unsigned size, size_t width, size_t height, bool sync,
                    CUstream handle)
{
    struct cs_work w = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    CUstream s;
    CUresult r = sync ? cs_sync_stream(&s) : cs_stream(handle, &s);

    if (r)
        return r;
    if (s->capture && s->capture->dead)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (width == 0 || height == 0)
        return CUDA_SUCCESS;
    w.set.p.dst = dst;
    w.set.p.pitch = pitch;
    w.set.p.value = value;
    w.set.p.elementSize = size;
    w.set.p.width = width;
    w.set.p.height = height;
    w.set.ctx = s->ctx;
    cs_set_note(&w.set);
    /* A captured set with a bad target is recorded; instantiation finds it. */
    if (s->capture)
        return cs_submit(s, &w);
    if ((r = cs_set_check(&w.set.p, false)) != CUDA_SUCCESS)
        return r;
    return sync ? cs_run_sync(&w) : cs_submit(s, &w);
}

#define SET_ENTRY(symbol, type, size)                                                                                            \
    CUresult symbol(CUdeviceptr dst, type value, size_t n)                                                                       \
    {                                                                                                                            \
        ENTER(symbol);                                                                                                           \
        return set(dst, 0, value, size, n, 1, true, NULL);                                                                       \
    }
#define SET_ASYNC_ENTRY(symbol, type, size)                                                                                      \
    CUresult symbol(CUdeviceptr dst, type value, size_t n, CUstream s)                                                           \
    {                                                                                                                            \
        ENTER(symbol);                                                                                                           \
        return set(dst, 0, value, size, n, 1, false, s);                                                                         \
    }
#define SET_2D_ENTRY(symbol, type, size)                                                                                         \
    CUresult symbol(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height)                                      \
    {                                                                                                                            \
        ENTER(symbol);                                                                                                           \
        return set(dst, pitch, value, size, width, height, true, NULL);                                                          \
    }
#define SET_2D_ASYNC_ENTRY(symbol, type, size)                                                                                   \
    CUresult symbol(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height, CUstream s)                          \
    {                                                                                                                            \
        ENTER(symbol);                                                                                                           \
        return set(dst, pitch, value, size, width, height, false, s);                                                            \
    }

SET_ENTRY(cuMemsetD8_v2, unsigned char, 1)
SET_ENTRY(cuMemsetD16_v2, unsigned short, 2)
SET_ENTRY(cuMemsetD32_v2, unsigned int, 4)
SET_2D_ENTRY(cuMemsetD2D8_v2, unsigned char, 1)
SET_2D_ENTRY(cuMemsetD2D16_v2, unsigned short, 2)
SET_2D_ENTRY(cuMemsetD2D32_v2, unsigned int, 4)
SET_ASYNC_ENTRY(cuMemsetD8Async, unsigned char, 1)
SET_ASYNC_ENTRY(cuMemsetD16Async, unsigned short, 2)
SET_ASYNC_ENTRY(cuMemsetD32Async, unsigned int, 4)
SET_2D_ASYNC_ENTRY(cuMemsetD2D8Async, unsigned char, 1)
SET_2D_ASYNC_ENTRY(cuMemsetD2D16Async, unsigned short, 2)
SET_2D_ASYNC_ENTRY(cuMemsetD2D32Async, unsigned int, 4)
