/* Events. A record in a capturing stream only remembers the capture and its place in it. */
#include "core.h"

void cs_event_put(CUevent e)
{
    if (--e->refs > 0)
        return;
    cs_fence_put(e->fence);
    cs_deps_free(&e->deps);
    free(e);
}

CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    ENTER(cuEventCreate);
    if (!out || (flags & ~7u))
        return CUDA_ERROR_INVALID_VALUE;
    CUevent e = cs_alloc_bytes(sizeof *e);
    e->ctx = cs_current();
    e->flags = flags;
    e->refs = 1;
    cs_handle_add(e, CS_EVENT);
    *out = e;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent e)
{
    ENTER(cuEventDestroy_v2);
    if (!cs_is(e, CS_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    cs_handle_remove(e);
    cs_event_put(e);
    return CUDA_SUCCESS;
}

static CUresult record(CUevent e, CUstream handle, unsigned flags)
{
    struct cs_work nothing = {.type = CS_WORK_NOTHING};
    CUstream s;
    CUresult r = cs_stream(handle, &s);

    if (r)
        return r;
    if (!cs_is(e, CS_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture)
        return cs_capture_record(s, e, flags);
    if (flags & CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (s->ctx != e->ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->legacy && (r = cs_legacy(s->ctx)) != CUDA_SUCCESS)
        return r;
    cs_fence_put(e->fence);
    e->fence = NULL;
    e->capture = 0;
    cs_deps_free(&e->deps);
    cs_enqueue(s, &nothing, NULL, &e->fence);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent e, CUstream s)
{
    ENTER(cuEventRecord);
    return record(e, s, 0);
}

CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned flags)
{
    ENTER(cuEventRecordWithFlags);
    return record(e, s, flags);
}

/* Query and synchronize: 907 and the end of the capture while it lives, 1 for ever after it. */
static CUresult captured(CUevent e)
{
    struct cs_capture *c;

    if (!e->capture)
        return CUDA_SUCCESS;
    c = cs_capture_by_id(e->capture);
    if (!c || c->dead)
        return CUDA_ERROR_INVALID_VALUE;
    cs_capture_kill(c);
    return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult cuEventQuery(CUevent e)
{
    CUresult r;

    ENTER(cuEventQuery);
    if (!cs_is(e, CS_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if ((r = captured(e)) != CUDA_SUCCESS || (r = cs_unsafe()) != CUDA_SUCCESS)
        return r;
    if (!e->fence || e->fence->done)
        return e->ctx->fault;
    cs_turn_poll();
    return CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent e)
{
    CUresult r;

    ENTER(cuEventSynchronize);
    if (!cs_is(e, CS_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if ((r = captured(e)) != CUDA_SUCCESS || (r = cs_unsafe()) != CUDA_SUCCESS)
        return r;
    CUcontext ctx = e->ctx;
    cs_fence_wait(e->fence);
    return cs_is(ctx, CS_CONTEXT) ? ctx->fault : CUDA_SUCCESS;
}

static CUresult elapsed(float *ms, CUevent a, CUevent b)
{
    if (!ms)
        return CUDA_ERROR_INVALID_VALUE;
    if (!cs_is(a, CS_EVENT) || !cs_is(b, CS_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    for (int i = 0; i < 2; i++) {
        CUevent e = i ? b : a;
        struct cs_capture *c = e->capture ? cs_capture_by_id(e->capture) : NULL;

        if (e->capture)
            return c && !c->dead ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_INVALID_VALUE;
        if (!e->fence || (e->flags & CU_EVENT_DISABLE_TIMING))
            return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!a->fence->done || !b->fence->done)
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)((int64_t)b->fence->ns - (int64_t)a->fence->ns) * 1e-6);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b)
{
    ENTER(cuEventElapsedTime);
    return elapsed(ms, a, b);
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent a, CUevent b)
{
    ENTER(cuEventElapsedTime_v2);
    return elapsed(ms, a, b);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent e, unsigned flags)
{
    struct cs_work nothing = {.type = CS_WORK_NOTHING};
    CUstream s;
    CUresult r;

    ENTER(cuStreamWaitEvent);
    r = cs_stream(handle, &s);
    if (r)
        return r;
    if (!cs_is(e, CS_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture || e->capture)
        return cs_capture_wait(s, e, flags);
    if (flags & CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (!e->fence)
        return CUDA_SUCCESS;
    if (s->legacy && (r = cs_legacy(s->ctx)) != CUDA_SUCCESS)
        return r;
    cs_enqueue(s, &nothing, e->fence, NULL);
    return CUDA_SUCCESS;
}

/* ---- the whole context --------------------------------------------------------------------------------------------- */

static CUresult context_free_of_capture(CUcontext ctx)
{
    if (!cs_is(ctx, CS_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    for (struct cs_capture *c = cs.captures; c; c = c->next)
        if (c->origin->ctx == ctx)
            return cs_never(c->origin);
    return CUDA_SUCCESS;
}

CUresult cuCtxRecordEvent(CUcontext ctx, CUevent e)
{
    struct cs_work nothing = {.type = CS_WORK_NOTHING};
    CUresult r;

    ENTER(cuCtxRecordEvent);
    if ((r = context_free_of_capture(ctx)) != CUDA_SUCCESS)
        return r;
    if (!cs_is(e, CS_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    /* A wait for everything, in the legacy stream, once the non-blocking streams have been put before it. */
    for (CUstream s = ctx->streams; s; s = s->next)
        if ((s->flags & CU_STREAM_NON_BLOCKING) && s->last && !s->last->done)
            cs_enqueue(ctx->legacy, &nothing, s->last, NULL);
    cs_fence_put(e->fence);
    e->fence = NULL;
    e->capture = 0;
    cs_enqueue(ctx->legacy, &nothing, NULL, &e->fence);
    return CUDA_SUCCESS;
}

CUresult cuCtxWaitEvent(CUcontext ctx, CUevent e)
{
    struct cs_work nothing = {.type = CS_WORK_NOTHING};
    CUresult r;

    ENTER(cuCtxWaitEvent);
    if ((r = context_free_of_capture(ctx)) != CUDA_SUCCESS)
        return r;
    if (!cs_is(e, CS_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!e->fence)
        return CUDA_SUCCESS;
    cs_enqueue(ctx->legacy, &nothing, e->fence, NULL);
    for (CUstream s = ctx->streams; s; s = s->next)
        if (!s->capture)
            cs_enqueue(s, &nothing, e->fence, NULL);
    return CUDA_SUCCESS;
}
