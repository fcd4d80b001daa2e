/* Virtual memory management. Not there yet: every call says so. */
#include "core.h"

#define NOT_YET(symbol, ...)                                                                                                     \
    CUresult symbol(__VA_ARGS__)                                                                                                 \
    {                                                                                                                            \
        ENTER(symbol);                                                                                                           \
        return CUDA_ERROR_NOT_SUPPORTED;                                                                                         \
    }

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

NOT_YET(cuMemAddressReserve, CUdeviceptr *out, size_t size, size_t align, CUdeviceptr at, unsigned long long flags)
NOT_YET(cuMemAddressFree, CUdeviceptr at, size_t size)
NOT_YET(cuMemCreate, unsigned long long *handle, size_t size, const cusim_mem_prop *prop, unsigned long long flags)
NOT_YET(cuMemRelease, unsigned long long handle)
NOT_YET(cuMemMap, CUdeviceptr at, size_t size, size_t offset, unsigned long long handle, unsigned long long flags)
NOT_YET(cuMemUnmap, CUdeviceptr at, size_t size)
NOT_YET(cuMemSetAccess, CUdeviceptr at, size_t size, const CUmemAccessDesc *desc, size_t count)
NOT_YET(cuMemGetAccess, unsigned long long *flags, const CUmemLocation *location, CUdeviceptr at)
NOT_YET(cuMemRetainAllocationHandle, unsigned long long *handle, void *at)
NOT_YET(cuMemGetAllocationPropertiesFromHandle, cusim_mem_prop *prop, unsigned long long handle)

CUresult cuMemGetAllocationGranularity(size_t *granularity, const cusim_mem_prop *prop, int option)
{
    ENTER(cuMemGetAllocationGranularity);
    if (!granularity || !prop || option < 0 || option > 1)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = CS_BLOCK;
    return CUDA_SUCCESS;
}
