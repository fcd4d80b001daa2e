/* What an address is: pointer attributes and address ranges. */
#include "core.h"

static bool known(CUpointer_attribute attribute)
{
    int a = (int)attribute;

    return (a >= 1 && a <= 20) && a != 5;
}

static uint64_t block_of(CUdeviceptr address)
{
    return address / CS_BLOCK;
}

/* The value of one attribute; writes as many bytes as the attribute has. */
static CUresult value(const struct cs_alloc *a, CUpointer_attribute attribute, CUdeviceptr address, void *out)
{
    bool host = cs_host_kind(a->kind), dark = a->kind == CS_MEM_VMM && a->access == 0; /* Mapped, but not yet for anyone. */
    const struct cs_alloc *range = a->reservation ? a->reservation : a;

    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)out = a->ctx;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        if (dark)
            return CUDA_ERROR_INVALID_VALUE;
        *(CUdeviceptr *)out = address;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host && a->kind != CS_MEM_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)out = (void *)(uintptr_t)address;
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)out = a->sync_memops;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)out = a->id;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)out = a->kind == CS_MEM_MANAGED;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = a->device;
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *)out = a->kind == CS_MEM_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)out = range->base;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)out = range->size;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)out = 1;
        break;
    case 14: /* allowed handle types */
        *(unsigned long long *)out = 0;
        break;
    case 15: /* GPUDirect RDMA */
        *(unsigned *)out = !host;
        break;
    case 16: /* access: read and write */
        *(unsigned *)out = a->kind == CS_MEM_VMM ? (unsigned)a->access : 3;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)out = a->pool;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: {
        /* The physical block: shared by small neighbours; host memory is its own. */
        CUdeviceptr step = host ? 1 : a->kind == CS_MEM_POOL || a->kind == CS_MEM_GRAPH ? CS_GRAPH_BLOCK : CS_BLOCK;
        CUdeviceptr from = a->base / step * step, to = (a->base + a->size + step - 1) / step * step;

        if (attribute == CU_POINTER_ATTRIBUTE_MAPPING_SIZE)
            *(size_t *)out = (size_t)(to - from);
        else
            *(CUdeviceptr *)out = from;
        break;
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)out = a->backing ? 1ull << 62 | a->backing->id : block_of(a->base);
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct cs_alloc *a;

    ENTER(cuPointerGetAttribute);
    if (!data || !known(attribute))
        return CUDA_ERROR_INVALID_VALUE;
    a = cs_find(address, 1);
    return a ? value(a, attribute, address, data) : CUDA_ERROR_INVALID_VALUE;
}

/* For an unknown address: zero, except for start and size, which stay as they are. */
static void zero(CUpointer_attribute attribute, void *out)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case 15:
    case 16:
        *(unsigned *)out = 0;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = -2;
        break;
    default:
        *(unsigned long long *)out = 0;
        break;
    }
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
    struct cs_alloc *a;

    ENTER(cuPointerGetAttributes);
    if (count == 0 || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (!known(attributes[i]) || !data[i])
            return CUDA_ERROR_INVALID_VALUE;
    a = cs_find(address, 1);
    struct cs_alloc *reserved = a ? NULL : cs_find_reservation(address);
    for (unsigned i = 0; i < count; i++)
        if (reserved && attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
            *(CUdeviceptr *)data[i] = reserved->base;
        else if (reserved && attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
            *(size_t *)data[i] = reserved->size;
        else if (!a || value(a, attributes[i], address, data[i]) != CUDA_SUCCESS)
            zero(attributes[i], data[i]);
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct cs_alloc *a;
    CUresult r;

    ENTER(cuPointerSetAttribute);
    if ((r = cs_unsafe()) != CUDA_SUCCESS)
        return r;
    a = cs_find(address, 1);
    if (!data || !a || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    a->sync_memops = *(const unsigned *)data != 0;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    struct cs_alloc *a;

    ENTER(cuMemGetAddressRange_v2);
    a = cs_find(address, 1);
    if (!a || (a->kind == CS_MEM_VMM && a->access == 0))
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = a->base;
    if (size)
        *size = a->size;
    return CUDA_SUCCESS;
}
