/* What can be asked of functions and kernels. */
#include "core.h"

static CUresult attribute(int *out, int dynamic_shared, CUfunction_attribute which)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *out = 1024;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case 2: /* constant */
    case 3: /* local */
        *out = 0;
        break;
    case 4: /* registers */
        *out = 16;
        break;
    case 5: /* PTX version */
    case 6: /* binary version */
        *out = 90;
        break;
    case 7: /* cached as ca */
        *out = 0;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *out = dynamic_shared ? dynamic_shared : 49152;
        break;
    case 9: /* carveout */
        *out = -1;
        break;
    default:
        if ((int)which < 0 || (int)which > 15)
            return CUDA_ERROR_INVALID_VALUE;
        *out = 0;
        break;
    }
    return CUDA_SUCCESS;
}

static CUresult attribute_set(int *dynamic_shared, CUfunction_attribute which, int value)
{
    switch ((int)which) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value > 232448)
            return CUDA_ERROR_INVALID_VALUE;
        *dynamic_shared = value;
        return CUDA_SUCCESS;
    case 9:
        return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
    case 15:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Past the end, and for an index of -1: 1, outputs untouched. */
static CUresult param(const struct cs_kernel_entry *e, size_t index, size_t *offset, size_t *size)
{
    if (!offset || index >= e->num_params)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = e->params[index].offset;
    if (size)
        *size = e->params[index].size;
    return CUDA_SUCCESS;
}

/* ---- functions ----------------------------------------------------------------------------------------------------- */

#define NEED_FUNCTION(f)                                                                                                         \
    do {                                                                                                                         \
        if (!cs_is(f, CS_FUNCTION))                                                                                              \
            return CUDA_ERROR_INVALID_HANDLE;                                                                                    \
    } while (0)

CUresult cuFuncGetAttribute(int *out, CUfunction_attribute which, CUfunction f)
{
    ENTER(cuFuncGetAttribute);
    NEED_FUNCTION(f);
    return attribute(out, f->dynamic_shared, which);
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int value)
{
    ENTER(cuFuncSetAttribute);
    NEED_FUNCTION(f);
    return attribute_set(&f->dynamic_shared, which, value);
}

CUresult cuFuncSetCacheConfig(CUfunction f, int config)
{
    ENTER(cuFuncSetCacheConfig);
    NEED_FUNCTION(f);
    (void)config;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction f)
{
    ENTER(cuFuncGetModule);
    NEED_FUNCTION(f);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = f->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction f)
{
    ENTER(cuFuncGetName);
    NEED_FUNCTION(f);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = f->entry->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    ENTER(cuFuncGetParamInfo);
    if (!f)
        return CUDA_ERROR_INVALID_VALUE;
    NEED_FUNCTION(f);
    return param(f->entry, index, offset, size);
}

CUresult cuFuncIsLoaded(int *state, CUfunction f)
{
    ENTER(cuFuncIsLoaded);
    NEED_FUNCTION(f);
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    *state = f->loaded;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction f)
{
    ENTER(cuFuncLoad);
    NEED_FUNCTION(f);
    f->loaded = true;
    return CUDA_SUCCESS;
}

/* ---- kernels ------------------------------------------------------------------------------------------------------- */

#define NEED_KERNEL(k)                                                                                                           \
    do {                                                                                                                         \
        if (!cs_is(k, CS_KERNEL))                                                                                                \
            return CUDA_ERROR_INVALID_HANDLE;                                                                                    \
    } while (0)

CUresult cuKernelGetFunction(CUfunction *out, CUkernel k)
{
    ENTER(cuKernelGetFunction);
    NEED_KERNEL(k);
    return out ? cs_kernel_function(k, cs_current(), out) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuKernelGetAttribute(int *out, CUfunction_attribute which, CUkernel k, CUdevice device)
{
    CUresult r;

    ENTER(cuKernelGetAttribute);
    NEED_KERNEL(k);
    r = cs_device_check(device);
    return r ? r : attribute(out, k->dynamic_shared, which);
}

CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel k, CUdevice device)
{
    CUresult r;

    ENTER(cuKernelSetAttribute);
    NEED_KERNEL(k);
    r = cs_device_check(device);
    return r ? r : attribute_set(&k->dynamic_shared, which, value);
}

CUresult cuKernelGetName(const char **name, CUkernel k)
{
    ENTER(cuKernelGetName);
    NEED_KERNEL(k);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = k->entry->name;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel k, size_t index, size_t *offset, size_t *size)
{
    ENTER(cuKernelGetParamInfo);
    if (!k)
        return CUDA_ERROR_INVALID_VALUE;
    NEED_KERNEL(k);
    return param(k->entry, index, offset, size);
}

CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel k)
{
    ENTER(cuKernelGetLibrary);
    NEED_KERNEL(k);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = k->library;
    return CUDA_SUCCESS;
}

/* ---- occupancy ----------------------------------------------------------------------------------------------------- */

static CUresult blocks(int *out, CUfunction f, int block, size_t shared)
{
    NEED_FUNCTION(f);
    if (!out || block <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    int n = block > 1024 ? 0 : 2048 / ((block + 31) / 32 * 32);
    if (n > 32)
        n = 32;
    if (shared && (size_t)n > 233472 / (shared + 1024))
        n = (int)(233472 / (shared + 1024));
    *out = n;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction f, int block, size_t shared)
{
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    return blocks(out, f, block, shared);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, CUfunction f, int block, size_t shared, unsigned flags)
{
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    (void)flags;
    return blocks(out, f, block, shared);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f, cusim_b2d shared_of, size_t shared, int limit)
{
    ENTER(cuOccupancyMaxPotentialBlockSize);
    NEED_FUNCTION(f);
    (void)shared_of;
    (void)shared;
    if (!grid || !block)
        return CUDA_ERROR_INVALID_VALUE;
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    *grid = 132 * (2048 / *block);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *out, CUfunction f, int num_blocks, int block)
{
    ENTER(cuOccupancyAvailableDynamicSMemPerBlock);
    NEED_FUNCTION(f);
    if (!out || num_blocks <= 0 || block <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = 233472 / (size_t)num_blocks - 1024;
    return CUDA_SUCCESS;
}
