/*
 * Streams: queues of deferred work, each with a worker thread that is started by the first work.
 *
 * Order between streams is made of fences. Work on the legacy stream waits for what the blocking streams of its context hold at
 * that moment, and work on a blocking stream waits for the legacy stream's last.
 */
#include "core.h"

#include <signal.h>
#include <time.h>

/* Streams with a worker thread, those being closed included. */
static CUstream *running;
static size_t workers, running_room;

/* ---- the worker ---------------------------------------------------------------------------------------------------- */

static void run_one(void *data)
{
    cs_run(data);
}

static void op_finish(CUstream s, struct cs_op *op)
{
    op->fence->op = NULL;
    if (op->work.type == CS_WORK_GRAPH)
        for (size_t i = 0; i < op->work.launch->program->num_events; i++)
            if (op->work.launch->fences[i] && op->work.launch->fences[i]->op == op)
                op->work.launch->fences[i]->op = NULL;
    if (op->work.type == CS_WORK_FREE) {
        cs_free_finish(op->work.free);
        op->work.type = CS_WORK_NOTHING;
    } else if (op->work.type == CS_WORK_GRAPH) {
        cs_launch_finish(op->work.launch);
        op->work.type = CS_WORK_NOTHING;
    }
    s->head = op->next;
    if (!s->head)
        s->tail = NULL;
    cs_fence_signal(op->fence);
    cs_fence_put(op->fence);
    for (size_t i = 0; i < op->num_waits; i++)
        cs_fence_put(op->waits[i]);
    free(op->waits);
    cs_accesses_put(op->accesses);
    cs_work_release(&op->work);
    free(op);
}

void cs_delay(uint64_t ns)
{
    uint64_t until = cs_now() + ns;

    for (uint64_t now = cs_now(); now < until && !__atomic_load_n(&cs.exiting, __ATOMIC_RELAXED); now = cs_now()) {
        uint64_t left = until - now < 10000000 ? until - now : 10000000;
        nanosleep(&(struct timespec){0, (long)left}, NULL);
    }
}

static void stream_free(CUstream s)
{
    cs_fence_put(s->last);
    cs_deps_free(&s->deps);
    pthread_cond_destroy(&s->wake);
    free(s);
}

static void *worker(void *arg)
{
    CUstream s = arg;

    cs_me.stream = s;
    pthread_mutex_lock(&cs.lock);
    for (;;) {
        while (!s->head && !s->closing && !cs.exiting)
            pthread_cond_wait(&s->wake, &cs.lock);
        struct cs_op *op = s->head;
        if (cs.exiting || !op)
            break;
        for (size_t i = 0; i < op->num_waits; i++)
            cs_fence_wait(op->waits[i]);
        uint64_t ns = s->delay_ns ? s->delay_ns : cs.delay_ns;
        if (ns && op->work.type != CS_WORK_NOTHING) {
            pthread_mutex_unlock(&cs.lock);
            cs_delay(ns);
            pthread_mutex_lock(&cs.lock);
        }
        cs_turn_take(s);
        if (cs.exiting)
            break;
        if (op->work.type == CS_WORK_CALLBACK || (op->work.type < CS_WORK_NOTHING && !s->ctx->fault)) {
            pthread_mutex_unlock(&cs.lock);
            if (op->sum)
                cs_check_source(&op->work.copy, op->sum);
            bool ok = cs_run_guarded(run_one, &op->work);
            pthread_mutex_lock(&cs.lock);
            if (!ok)
                cs_context_fault(s->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
        } else if (op->work.type == CS_WORK_GRAPH && !s->ctx->fault) {
            pthread_mutex_unlock(&cs.lock);
            cs_launch_run(op->work.launch);
            pthread_mutex_lock(&cs.lock);
        }
        op_finish(s, op);
        cs_turn_give(s);
        if (!cs_me.in_callback) {
            pthread_mutex_unlock(&cs.lock);
            cs_users_run_due();
            pthread_mutex_lock(&cs.lock);
        }
    }
    cs_turn_give(s);
    for (size_t i = 0; i < workers; i++)
        if (running[i] == s)
            running[i] = running[--workers];
    if (s->closing && !s->head)
        stream_free(s);
    pthread_cond_broadcast(&cs.done);
    pthread_mutex_unlock(&cs.lock);
    return NULL;
}

static void worker_start(CUstream s)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;

    /* Signals of the program are for its own threads. */
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, worker, s) != 0) {
        cs_say("cannot start a thread for a stream");
        abort();
    }
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    s->started = true;
    running = cs_grow(running, &running_room, workers + 1, sizeof *running);
    running[workers++] = s;
}

CUstream *cs_streams_running(size_t *count)
{
    *count = workers;
    return running;
}

void cs_workers_stop(void)
{
    struct timespec until;

    for (size_t i = 0; i < workers; i++)
        pthread_cond_broadcast(&running[i]->wake);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    while (workers > 0)
        if (pthread_cond_timedwait(&cs.done, &cs.lock, &until) != 0)
            return;
    free(running);
    running = NULL;
    running_room = 0;
}

/* ---- queueing ------------------------------------------------------------------------------------------------------ */

static void op_wait(struct cs_op *op, size_t *room, struct cs_fence *fence)
{
    if (!fence || fence->done)
        return;
    op->waits = cs_grow(op->waits, room, op->num_waits + 1, sizeof *op->waits);
    op->waits[op->num_waits++] = cs_fence_get(fence);
}

void cs_enqueue(CUstream s, struct cs_work *work, struct cs_fence *extra_wait, struct cs_fence **fence_out)
{
    struct cs_op *op = cs_alloc_bytes(sizeof *op);
    size_t room = 0;

    op->work = *work;
    op->stream = s;
    op->number = ++cs.last_op;
    op->fence = cs_fence_new();
    op->fence->op = op;
    if (work->type == CS_WORK_GRAPH)
        /* Its own records; the fences that it waits for have an operation or are done. */
        for (size_t i = 0; i < work->launch->program->num_events; i++) {
            struct cs_fence *f = work->launch->fences[i];
            if (f && !f->done && !f->op)
                f->op = op;
        }
    op_wait(op, &room, extra_wait);
    if (s->legacy) {
        for (CUstream o = s->ctx->streams; o; o = o->next)
            if (!(o->flags & CU_STREAM_NON_BLOCKING))
                op_wait(op, &room, o->last);
    } else if (!(s->flags & CU_STREAM_NON_BLOCKING)) {
        op_wait(op, &room, s->ctx->legacy->last);
    }
    if (s->tail)
        s->tail->next = op;
    else
        s->head = op;
    s->tail = op;
    cs_fence_put(s->last);
    s->last = cs_fence_get(op->fence);
    if (fence_out)
        *fence_out = cs_fence_get(op->fence);
    if (!s->started)
        worker_start(s);
    else
        pthread_cond_signal(&s->wake);
    if (cs.check != CS_CHECK_OFF)
        cs_check_queued(op);
}

CUresult cs_submit(CUstream s, struct cs_work *work)
{
    CUresult r = CUDA_SUCCESS;

    if (s->capture)
        return cs_capture_work(s, work);
    if (s->legacy)
        r = cs_legacy(s->ctx);
    if (r) {
        cs_work_release(work);
        return r;
    }
    cs_enqueue(s, work, NULL, NULL);
    return CUDA_SUCCESS;
}

CUresult cs_sync_stream(CUstream *out)
{
    CUresult r = cs_stream(NULL, out);

    if (r)
        return r;
    if ((*out)->legacy)
        return cs_legacy((*out)->ctx);
    return (*out)->capture ? cs_never(*out) : CUDA_SUCCESS;
}

CUresult cs_run_sync(struct cs_work *work)
{
    CUcontext ctx = cs_current();
    struct cs_fence *fence;
    CUstream s;
    CUresult r = cs_sync_stream(&s);

    if (r) {
        cs_work_release(work);
        return r;
    }
    cs_enqueue(s, work, NULL, &fence);
    cs_fence_wait(fence);
    cs_fence_put(fence);
    return ctx->fault;
}

void cs_stream_drain(CUstream s)
{
    cs_fence_wait(s->last);
}

/* Fences first: streams may come and go while this waits. */
static void drain(CUcontext only, int device)
{
    struct cs_fence **fences = NULL;
    size_t n = 0, room = 0;

    for (size_t i = 0; i < workers; i++) {
        CUstream s = running[i];
        if (!s->last || s->last->done || (only ? s->ctx != only : s->ctx->device != device))
            continue;
        fences = cs_grow(fences, &room, n + 1, sizeof *fences);
        fences[n++] = cs_fence_get(s->last);
    }
    for (size_t i = 0; i < n; i++) {
        cs_fence_wait(fences[i]);
        cs_fence_put(fences[i]);
    }
    free(fences);
}

void cs_context_drain(CUcontext ctx)
{
    drain(ctx, 0);
}

void cs_device_drain(int device)
{
    drain(NULL, device);
}

/* ---- birth and death ----------------------------------------------------------------------------------------------- */

static CUstream stream_new(CUcontext ctx, unsigned flags, int priority)
{
    CUstream s = cs_alloc_bytes(sizeof *s);

    s->ctx = ctx;
    s->id = cs_id();
    s->flags = flags;
    s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    pthread_cond_init(&s->wake, NULL);
    s->next = ctx->streams;
    ctx->streams = s;
    return s;
}

/* Queued work is still done: the worker frees the stream after it. */
static void stream_close(CUstream s)
{
    s->closing = true;
    if (s->started)
        pthread_cond_signal(&s->wake);
    else
        stream_free(s);
}

void cs_streams_close(CUcontext ctx)
{
    CUstream s = ctx->streams;

    ctx->streams = NULL;
    while (s) {
        CUstream next = s->next;
        cs_capture_leave(s);
        if (!s->per_thread)
            cs_handle_remove(s);
        stream_close(s);
        s = next;
    }
    stream_close(ctx->legacy);
    ctx->legacy = NULL;
}

CUresult cs_stream(CUstream handle, CUstream *out)
{
    if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        CUresult r = cs_context_check();
        if (r)
            return r;
        CUcontext ctx = cs_current();
        if (handle != CU_STREAM_PER_THREAD && (handle || !cs_me.per_thread)) {
            *out = ctx->legacy;
            return ctx->fault;
        }
        unsigned long me = cs_thread_id();
        for (CUstream s = ctx->streams; s; s = s->next)
            if (s->per_thread && s->owner == me) {
                *out = s;
                return ctx->fault;
            }
        *out = stream_new(ctx, 0, 0);
        (*out)->per_thread = true;
        (*out)->owner = me;
        return ctx->fault;
    }
    if (!cs_is(handle, CS_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = handle;
    return handle->ctx->fault;
}

static CUresult create(CUstream *out, unsigned flags, int priority)
{
    if (!out || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    *out = stream_new(cs_current(), flags, priority);
    cs_handle_add(*out, CS_STREAM);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    ENTER(cuStreamCreate);
    return create(out, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
    ENTER(cuStreamCreateWithPriority);
    return create(out, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream s)
{
    ENTER(cuStreamDestroy_v2);
    if (!cs_is(s, CS_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->ctx->fault)
        return s->ctx->fault;
    cs_capture_leave(s);
    cs_handle_remove(s);
    for (CUstream *p = &s->ctx->streams; *p; p = &(*p)->next)
        if (*p == s) {
            *p = s->next;
            break;
        }
    stream_close(s);
    return CUDA_SUCCESS;
}

/* ---- questions ----------------------------------------------------------------------------------------------------- */

/* The getters of id, flags and device kill a capture in every mode; the others do not. */
#define STREAM_OR_RETURN(handle, s)                                                                                              \
    CUstream s;                                                                                                                  \
    do {                                                                                                                         \
        CUresult stream_ = cs_stream(handle, &s);                                                                                \
        if (stream_)                                                                                                             \
            return stream_;                                                                                                      \
    } while (0)

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags)
{
    ENTER(cuStreamGetFlags);
    STREAM_OR_RETURN(handle, s);
    if (s->capture)
        return cs_never(s);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = s->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    ENTER(cuStreamGetId);
    STREAM_OR_RETURN(handle, s);
    if (s->capture)
        return cs_never(s);
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = s->id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *device)
{
    ENTER(cuStreamGetDevice);
    STREAM_OR_RETURN(handle, s);
    if (s->capture)
        return cs_never(s);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = s->ctx->device;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
    ENTER(cuStreamGetCtx);
    STREAM_OR_RETURN(handle, s);
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    *ctx = s->ctx;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *ctx, void **green)
{
    ENTER(cuStreamGetCtx_v2);
    STREAM_OR_RETURN(handle, s);
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    *ctx = s->ctx;
    if (green)
        *green = NULL;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    ENTER(cuStreamGetPriority);
    STREAM_OR_RETURN(handle, s);
    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    *priority = s->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute(CUstream handle, CUlaunchAttributeID id, CUlaunchAttributeValue *value)
{
    ENTER(cuStreamGetAttribute);
    STREAM_OR_RETURN(handle, s);
    if (!value || (unsigned)id >= 16)
        return CUDA_ERROR_INVALID_VALUE;
    *value = s->attribute[id];
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = s->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream handle, CUlaunchAttributeID id, const CUlaunchAttributeValue *value)
{
    ENTER(cuStreamSetAttribute);
    STREAM_OR_RETURN(handle, s);
    if (!value || (unsigned)id >= 16)
        return CUDA_ERROR_INVALID_VALUE;
    s->attribute[id] = *value;
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        s->priority = value->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from)
{
    ENTER(cuStreamCopyAttributes);
    STREAM_OR_RETURN(to, d);
    STREAM_OR_RETURN(from, s);
    memcpy(d->attribute, s->attribute, sizeof d->attribute);
    d->priority = s->priority;
    return CUDA_SUCCESS;
}

/* What waits on a stream: never for a capturing one; the mode rule for any other, whoever captures. */
static CUresult may_wait(CUstream s)
{
    CUresult r;

    if (s->capture)
        return cs_never(s);
    if (s->legacy && (r = cs_legacy(s->ctx)) != CUDA_SUCCESS)
        return r;
    return cs_unsafe();
}

static CUresult not_ready(void)
{
    cs_turn_poll();
    return CUDA_ERROR_NOT_READY;
}

CUresult cuStreamQuery(CUstream handle)
{
    ENTER(cuStreamQuery);
    STREAM_OR_RETURN(handle, s);
    CUresult r = may_wait(s);
    if (r)
        return r;
    if (s->legacy)
        for (CUstream o = s->ctx->streams; o; o = o->next)
            if (!(o->flags & CU_STREAM_NON_BLOCKING) && o->last && !o->last->done)
                return not_ready();
    return !s->last || s->last->done ? CUDA_SUCCESS : not_ready();
}

CUresult cuStreamSynchronize(CUstream handle)
{
    ENTER(cuStreamSynchronize);
    STREAM_OR_RETURN(handle, s);
    CUcontext ctx = s->ctx;
    CUresult r = may_wait(s);
    if (r)
        return r;
    if (s->legacy) {
        /* Its wait covers the blocking streams, as an operation in it would. */
        struct cs_work nothing = {.type = CS_WORK_NOTHING};
        cs_enqueue(s, &nothing, NULL, NULL);
    }
    cs_stream_drain(s);
    return cs_is(ctx, CS_CONTEXT) ? ctx->fault : CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn fn, void *data)
{
    struct cs_work w = {.type = CU_GRAPH_NODE_TYPE_HOST};

    ENTER(cuLaunchHostFunc);
    STREAM_OR_RETURN(handle, s);
    if (!fn)
        return CUDA_ERROR_INVALID_VALUE;
    w.host.fn = fn;
    w.host.userData = data;
    return cs_submit(s, &w);
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback fn, void *data, unsigned flags)
{
    struct cs_work w = {.type = CS_WORK_CALLBACK};

    ENTER(cuStreamAddCallback);
    STREAM_OR_RETURN(handle, s);
    if (s->capture)
        return cs_never(s);
    if (!fn || flags)
        return CUDA_ERROR_INVALID_VALUE;
    w.callback.fn = fn;
    w.callback.stream = handle;
    w.callback.data = data;
    return cs_submit(s, &w);
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t length, unsigned flags)
{
    ENTER(cuStreamAttachMemAsync);
    STREAM_OR_RETURN(handle, s);
    if (s->capture)
        return cs_never(s);
    (void)length;
    (void)flags;
    return cs_find(address, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- words in memory ----------------------------------------------------------------------------------------------- */

static CUresult batch(CUstream handle, unsigned count, const CUstreamBatchMemOpParams *ops, unsigned flags)
{
    CUDA_BATCH_MEM_OP_NODE_PARAMS p = {NULL, count, (CUstreamBatchMemOpParams *)(uintptr_t)ops, flags};
    struct cs_work w;
    CUresult r;

    STREAM_OR_RETURN(handle, s);
    p.ctx = s->ctx;
    r = cs_node_batch(&w, &p);
    return r ? r : cs_submit(s, &w);
}

static CUresult one(CUstream handle, CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    CUstreamBatchMemOpParams op;

    memset(&op, 0, sizeof op);
    op.writeValue.operation = type;
    op.writeValue.address = address;
    op.writeValue.value64 = value;
    op.writeValue.flags = flags;
    return batch(handle, 1, &op, 0);
}

#define VALUE_ENTRY(symbol, type, operation)                                                                                     \
    CUresult symbol(CUstream stream, CUdeviceptr address, type value, unsigned flags)                                            \
    {                                                                                                                            \
        ENTER(symbol);                                                                                                           \
        return one(stream, operation, address, value, flags);                                                                    \
    }

VALUE_ENTRY(cuStreamWriteValue32, cuuint32_t, CU_STREAM_MEM_OP_WRITE_VALUE_32)
VALUE_ENTRY(cuStreamWriteValue32_v2, cuuint32_t, CU_STREAM_MEM_OP_WRITE_VALUE_32)
VALUE_ENTRY(cuStreamWriteValue64, cuuint64_t, CU_STREAM_MEM_OP_WRITE_VALUE_64)
VALUE_ENTRY(cuStreamWriteValue64_v2, cuuint64_t, CU_STREAM_MEM_OP_WRITE_VALUE_64)
VALUE_ENTRY(cuStreamWaitValue32, cuuint32_t, CU_STREAM_MEM_OP_WAIT_VALUE_32)
VALUE_ENTRY(cuStreamWaitValue32_v2, cuuint32_t, CU_STREAM_MEM_OP_WAIT_VALUE_32)
VALUE_ENTRY(cuStreamWaitValue64, cuuint64_t, CU_STREAM_MEM_OP_WAIT_VALUE_64)
VALUE_ENTRY(cuStreamWaitValue64_v2, cuuint64_t, CU_STREAM_MEM_OP_WAIT_VALUE_64)

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams *ops, unsigned flags)
{
    ENTER(cuStreamBatchMemOp);
    return batch(stream, count, ops, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count, CUstreamBatchMemOpParams *ops, unsigned flags)
{
    ENTER(cuStreamBatchMemOp_v2);
    return batch(stream, count, ops, flags);
}
