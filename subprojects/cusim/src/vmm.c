/*
 * Virtual memory management: addresses are reserved in the range of device memory, physical memory is a file without a name, and
 * a mapping shows a part of the one at the other. None of these calls waits for anything or is refused while a stream captures.
 */
#include "core.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- physical memory ----------------------------------------------------------------------------------------------- */

static void backing_put(struct cs_backing *b)
{
    if (b->handles > 0 || b->mappings > 0)
        return;
    close(b->fd);
    cs_memory_uncharge(b->device, b->size);
    free(b);
}

static struct cs_backing *backing_of(unsigned long long handle)
{
    struct cs_backing *b = (struct cs_backing *)(uintptr_t)handle;

    return cs_is(b, CS_BACKING) ? b : NULL;
}

static bool prop_good(const cusim_mem_prop *prop)
{
    return prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           cs_device_check(prop->location.id) == CUDA_SUCCESS;
}

CUresult cuMemCreate(unsigned long long *handle, size_t size, const cusim_mem_prop *prop, unsigned long long flags)
{
    ENTER(cuMemCreate);
    if (!handle || flags || size == 0 || size % CS_BLOCK || !prop_good(prop))
        return CUDA_ERROR_INVALID_VALUE;
    if (!cs_memory_charge(prop->location.id, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    int fd = memfd_create("cusim", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0) {
        if (fd >= 0)
            close(fd);
        cs_memory_uncharge(prop->location.id, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct cs_backing *b = cs_alloc_bytes(sizeof *b);
    b->fd = fd;
    b->size = size;
    b->device = prop->location.id;
    b->id = cs_id();
    b->prop = *prop;
    b->handles = 1;
    cs_handle_add(b, CS_BACKING);
    *handle = (unsigned long long)(uintptr_t)b;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(unsigned long long handle)
{
    ENTER(cuMemRelease);
    struct cs_backing *b = backing_of(handle);
    if (!b)
        return CUDA_ERROR_INVALID_VALUE;
    if (--b->handles == 0)
        cs_handle_remove(b);
    backing_put(b);
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(unsigned long long *handle, void *at)
{
    ENTER(cuMemRetainAllocationHandle);
    struct cs_alloc *a = cs_find((CUdeviceptr)(uintptr_t)at, 1);
    if (!handle || !a || !a->backing)
        return CUDA_ERROR_INVALID_VALUE;
    if (a->backing->handles++ == 0)
        cs_handle_add(a->backing, CS_BACKING);
    *handle = (unsigned long long)(uintptr_t)a->backing;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(cusim_mem_prop *prop, unsigned long long handle)
{
    ENTER(cuMemGetAllocationPropertiesFromHandle);
    struct cs_backing *b = backing_of(handle);
    if (!prop || !b)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = b->prop;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const cusim_mem_prop *prop, int option)
{
    ENTER(cuMemGetAllocationGranularity);
    if (!granularity || !prop || option < 0 || option > 1)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = CS_BLOCK;
    return CUDA_SUCCESS;
}

/* ---- addresses ----------------------------------------------------------------------------------------------------- */

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t align, CUdeviceptr at, unsigned long long flags)
{
    ENTER(cuMemAddressReserve);
    if (!out || flags || size == 0 || size % CS_BLOCK || (align & (align - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    struct cs_alloc *r = cs_reserve(size, align > CS_BLOCK ? align : CS_BLOCK, at);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = r->base;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t size)
{
    ENTER(cuMemAddressFree);
    struct cs_alloc *r = cs_find_reservation(at);
    if (!r || r->base != at || r->size != size || cs_mapped_within(at, size))
        return CUDA_ERROR_INVALID_VALUE;
    cs_unreserve(r);
    return CUDA_SUCCESS;
}

/* ---- mappings ------------------------------------------------------------------------------------------------------ */

CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, unsigned long long handle, unsigned long long flags)
{
    ENTER(cuMemMap);
    struct cs_backing *b = backing_of(handle);
    struct cs_alloc *r = cs_find_reservation(at);
    if (!b || flags || size == 0 || size % CS_BLOCK || offset % CS_BLOCK || at % CS_BLOCK || offset > b->size ||
        size > b->size - offset)
        return CUDA_ERROR_INVALID_VALUE;
    if (!r || at + size > r->base + r->size || cs_mapped_within(at, size))
        return CUDA_ERROR_INVALID_VALUE;
    if (mmap((void *)(uintptr_t)at, size, PROT_NONE, MAP_SHARED | MAP_FIXED, b->fd, (off_t)offset) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct cs_alloc *a = cs_alloc_bytes(sizeof *a);
    a->base = a->from = at;
    a->size = a->span = size;
    a->kind = CS_MEM_VMM;
    a->device = b->device;
    a->reservation = r;
    a->backing = b;
    b->mappings++;
    cs_alloc_show(a);
    return CUDA_SUCCESS;
}

/* Call `fn` for each mapping if they fill the range exactly. */
static CUresult each_mapping(CUdeviceptr at, size_t size, void (*fn)(struct cs_alloc *mapping, int value), int value)
{
    CUdeviceptr end = at + size;

    if (size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (CUdeviceptr p = at; p < end;) {
        struct cs_alloc *a = cs_find(p, 1);
        if (!a || !a->backing || a->base != p || a->size > end - p)
            return CUDA_ERROR_INVALID_VALUE;
        p += a->size;
    }
    for (CUdeviceptr p = at; p < end;) {
        struct cs_alloc *a = cs_find(p, 1);
        p += a->size;
        fn(a, value);
    }
    return CUDA_SUCCESS;
}

static void unmap(struct cs_alloc *a, int unused)
{
    (void)unused;
    if (mmap((void *)(uintptr_t)a->base, a->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        abort();
    cs_alloc_hide(a);
    a->backing->mappings--;
    backing_put(a->backing);
    free(a);
}

CUresult cuMemUnmap(CUdeviceptr at, size_t size)
{
    ENTER(cuMemUnmap);
    return each_mapping(at, size, unmap, 0);
}

static void allow(struct cs_alloc *a, int access)
{
    int may = access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE : access ? PROT_READ : PROT_NONE;

    a->access = access;
    mprotect((void *)(uintptr_t)a->base, a->size, may);
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    int access = 0;

    ENTER(cuMemSetAccess);
    if (!desc || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || cs_device_check(desc[i].location.id))
            return CUDA_ERROR_INVALID_VALUE;
        /* All devices share the address space here: what one may do, all may. */
        if ((int)desc[i].flags > access)
            access = (int)desc[i].flags;
    }
    if (access != 0 && access != 1 && access != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    return each_mapping(at, size, allow, access);
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr at)
{
    ENTER(cuMemGetAccess);
    struct cs_alloc *a = cs_find(at, 1);
    if (!flags || !location || !a || !a->backing)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = (unsigned long long)a->access;
    return CUDA_SUCCESS;
}
