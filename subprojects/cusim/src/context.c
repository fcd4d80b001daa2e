/* Contexts: the primary one of each device, those of cuCtxCreate, and each thread's stack of current ones. */
#include "core.h"

void cs_contexts_reset(void)
{
    for (int i = 0; i < CS_MAX_DEVICES; i++)
        cs.primary[i] = (struct CUctx_st){.device = i, .primary = true};
}

CUcontext cs_current(void)
{
    CUcontext ctx = cs_me.depth ? cs_me.stack[cs_me.depth - 1] : NULL;

    return cs_is(ctx, CS_CONTEXT) ? ctx : NULL;
}

CUresult cs_context_check(void)
{
    CUcontext ctx = cs_me.depth ? cs_me.stack[cs_me.depth - 1] : NULL;

    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    return cs_is(ctx, CS_CONTEXT) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* Work queued in the context is dropped from now on, and its calls return the code. Only the first fault counts. */
void cs_context_fault(CUcontext ctx, CUresult code)
{
    if (ctx && !ctx->fault)
        ctx->fault = code;
}

static void context_open(CUcontext ctx, unsigned flags)
{
    static const size_t limits[] = {1024, 8ull << 20, 1ull << 20, 8ull << 20, 2, 2048, 128};

    ctx->id = cs_id();
    ctx->flags = flags;
    ctx->fault = CUDA_SUCCESS;
    memcpy(ctx->limits, limits, sizeof limits);
    cs_handle_add(ctx, CS_CONTEXT);
    ctx->legacy = cs_alloc_bytes(sizeof *ctx->legacy);
    ctx->legacy->ctx = ctx;
    ctx->legacy->id = cs_id();
    ctx->legacy->legacy = true;
    pthread_cond_init(&ctx->legacy->wake, NULL);
}

static void event_gone(void *handle, void *ctx)
{
    CUevent event = handle;

    if (event->ctx == ctx) {
        cs_handle_remove(event);
        cs_event_put(event);
    }
}

static void exec_gone(void *handle, void *ctx)
{
    CUgraphExec exec = handle;

    if (exec->ctx == ctx) {
        cs_handle_remove(exec);
        exec->dead = true;
        cs_exec_put(exec);
    }
}

/* Everything that lives in a context goes with it. */
static void context_close(CUcontext ctx)
{
    cs_context_drain(ctx);
    cs_streams_close(ctx);
    cs_handles_each(CS_EVENT, event_gone, ctx);
    cs_handles_each(CS_EXEC, exec_gone, ctx);
    cs_modules_context_gone(ctx);
    cs_memory_context_gone(ctx);
    cs_handle_remove(ctx);
}

/* ---- primary contexts ---------------------------------------------------------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    CUresult r;

    ENTER(cuDevicePrimaryCtxRetain);
    r = cs_device_check(device);
    if (r)
        return r;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    CUcontext ctx = &cs.primary[device];
    if (ctx->refs++ == 0)
        context_open(ctx, ctx->flags);
    *out = ctx;
    return CUDA_SUCCESS;
}

static CUresult primary_release(CUdevice device, bool all)
{
    CUresult r = cs_device_check(device);

    if (r)
        return r;
    CUcontext ctx = &cs.primary[device];
    if (ctx->refs == 0)
        return all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (all || ctx->refs == 1) {
        context_close(ctx);
        ctx->refs = 0;
        cs_pools_reset(device);
    } else {
        ctx->refs--;
    }
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRelease);
    return primary_release(device, false);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRelease_v2);
    return primary_release(device, false);
}

/* The references stay, so that the releases still to come do no harm; the context itself starts anew. */
static CUresult primary_reset(CUdevice device)
{
    CUresult r = cs_device_check(device);

    if (r)
        return r;
    CUcontext ctx = &cs.primary[device];
    if (ctx->refs > 0) {
        context_close(ctx);
        cs_pools_reset(device);
        context_open(ctx, ctx->flags);
    }
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxReset);
    return primary_reset(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxReset_v2);
    return primary_reset(device);
}

static CUresult primary_flags(CUdevice device, unsigned flags)
{
    CUresult r = cs_device_check(device);

    if (!r)
        cs.primary[device].flags = flags;
    return r;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
    ENTER(cuDevicePrimaryCtxSetFlags);
    return primary_flags(device, flags);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    ENTER(cuDevicePrimaryCtxSetFlags_v2);
    return primary_flags(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    CUresult r;

    ENTER(cuDevicePrimaryCtxGetState);
    r = cs_device_check(device);
    if (r)
        return r;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = cs.primary[device].flags;
    *active = cs.primary[device].refs > 0;
    return CUDA_SUCCESS;
}

/* ---- contexts of cuCtxCreate --------------------------------------------------------------------------------------- */

static CUresult create(CUcontext *out, unsigned flags, CUdevice device)
{
    CUresult r = cs_device_check(device);

    if (r)
        return r;
    if (!out || cs_me.depth == CS_STACK)
        return CUDA_ERROR_INVALID_VALUE;
    CUcontext ctx = cs_alloc_bytes(sizeof *ctx);
    ctx->device = device;
    context_open(ctx, flags);
    cs_me.stack[cs_me.depth++] = ctx;
    *out = ctx;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
    ENTER(cuCtxCreate_v2);
    return create(out, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *out, void *params, int count, unsigned flags, CUdevice device)
{
    ENTER(cuCtxCreate_v3);
    if (params || count)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(out, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *out, void *params, unsigned flags, CUdevice device)
{
    ENTER(cuCtxCreate_v4);
    if (params)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(out, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
    ENTER(cuCtxDestroy_v2);
    if (!cs_is(ctx, CS_CONTEXT) || ctx->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    context_close(ctx);
    if (cs_me.depth && cs_me.stack[cs_me.depth - 1] == ctx)
        cs_me.depth--;
    free(ctx);
    return CUDA_SUCCESS;
}

/* ---- the current context ------------------------------------------------------------------------------------------- */

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    ENTER(cuCtxPushCurrent_v2);
    if (!cs_is(ctx, CS_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (cs_me.depth == CS_STACK)
        return CUDA_ERROR_INVALID_VALUE;
    cs_me.stack[cs_me.depth++] = ctx;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    ENTER(cuCtxPopCurrent_v2);
    if (cs_me.depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    cs_me.depth--;
    if (out)
        *out = cs_me.stack[cs_me.depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    ENTER(cuCtxSetCurrent);
    if (!ctx) {
        if (cs_me.depth)
            cs_me.depth--;
        return CUDA_SUCCESS;
    }
    if (!cs_is(ctx, CS_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (cs_me.depth == 0)
        cs_me.depth = 1;
    cs_me.stack[cs_me.depth - 1] = ctx;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
    ENTER(cuCtxGetCurrent);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = cs_me.depth ? cs_me.stack[cs_me.depth - 1] : NULL;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUresult r;

    ENTER(cuCtxGetDevice);
    r = cs_context_check();
    if (r)
        return r;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = cs_current()->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    ENTER(cuCtxGetDevice_v2);
    if (!ctx)
        ctx = cs_current();
    if (!cs_is(ctx, CS_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = ctx->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *flags)
{
    ENTER(cuCtxGetFlags);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = cs_current()->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags)
{
    ENTER(cuCtxSetFlags);
    cs_current()->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
    ENTER(cuCtxGetId);
    if (!ctx)
        ctx = cs_current();
    if (!cs_is(ctx, CS_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = ctx->id;
    return CUDA_SUCCESS;
}

static CUresult synchronize(CUcontext ctx)
{
    if (!cs_is(ctx, CS_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    for (struct cs_capture *c = cs.captures; c; c = c->next)
        if (c->origin->ctx == ctx)
            return cs_never(c->origin);
    cs_context_drain(ctx);
    return cs_is(ctx, CS_CONTEXT) ? ctx->fault : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult cuCtxSynchronize(void)
{
    CUresult r;

    ENTER(cuCtxSynchronize);
    r = cs_context_check();
    return r ? r : synchronize(cs_current());
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
    ENTER(cuCtxSynchronize_v2);
    return synchronize(ctx ? ctx : cs_current());
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER(cuCtxGetStreamPriorityRange);
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned *version)
{
    ENTER(cuCtxGetApiVersion);
    if (ctx ? !cs_is(ctx, CS_CONTEXT) : !cs_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, int limit)
{
    ENTER(cuCtxGetLimit);
    if (!value || limit < 0 || limit > 6)
        return CUDA_ERROR_INVALID_VALUE;
    *value = cs_current()->limits[limit];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(int limit, size_t value)
{
    ENTER(cuCtxSetLimit);
    if (limit < 0 || limit > 6)
        return CUDA_ERROR_INVALID_VALUE;
    cs_current()->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(int *config)
{
    ENTER(cuCtxGetCacheConfig);
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(int config)
{
    ENTER(cuCtxSetCacheConfig);
    (void)config;
    return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
    ENTER(cuCtxResetPersistingL2Cache);
    return CUDA_SUCCESS;
}
