/* Kernel launches: checking them, and taking over their argument bytes. */
#include "core.h"

#define MAX_SHARED 232448u

/* ---- arguments ----------------------------------------------------------------------------------------------------- */

static struct cs_args *args_new(const struct cs_kernel_entry *e)
{
    struct cs_args *a = cs_alloc_bytes(sizeof *a);

    a->refs = 1;
    a->count = e->num_params;
    a->bytes = e->bytes;
    a->data = cs_alloc_bytes(e->bytes);
    a->pointers = cs_alloc_bytes((e->num_params + 1) * sizeof *a->pointers);
    for (unsigned i = 0; i < e->num_params; i++)
        a->pointers[i] = a->data + e->params[i].offset;
    return a;
}

/* As the driver returns it: the size first. */
static void args_extra(struct cs_args *a)
{
    a->extra[0] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    a->extra[1] = &a->buffer_size;
    a->extra[2] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    a->extra[3] = a->data;
    a->extra[4] = CU_LAUNCH_PARAM_END;
}

void cs_args_put(struct cs_args *a)
{
    if (!a || --a->refs > 0)
        return;
    free(a->pointers);
    free(a->data);
    free(a);
}

/* The user can reach the bytes of a node and may, against the rules, write them: an executable graph has its own. */
struct cs_args *cs_args_clone(const struct cs_args *from)
{
    struct cs_args *a;

    if (!from)
        return NULL;
    a = cs_alloc_bytes(sizeof *a);
    *a = *from;
    a->refs = 1;
    a->data = cs_alloc_bytes(from->bytes);
    memcpy(a->data, from->data, from->bytes);
    a->pointers = cs_alloc_bytes((from->count + 1) * sizeof *a->pointers);
    for (unsigned i = 0; i < from->count; i++)
        a->pointers[i] = a->data + ((unsigned char *)from->pointers[i] - from->data);
    args_extra(a);
    return a;
}

static CUresult args_take(const struct cs_kernel_entry *e, void **params, void **extra, bool node, struct cs_args **out)
{
    const void *buffer = NULL;
    size_t size = 0;

    if (params && extra && !node)
        return CUDA_ERROR_INVALID_VALUE;
    if (!params && extra) {
        for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
            if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
                buffer = extra[i + 1];
            else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
                size = *(size_t *)extra[i + 1];
            else
                return CUDA_ERROR_INVALID_VALUE;
        }
        if (size > e->bytes)
            return node ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        if (size && !buffer)
            return CUDA_ERROR_INVALID_VALUE;
    }
    *out = NULL;
    if (e->num_params == 0)
        return CUDA_SUCCESS;
    if (!params && !buffer)
        return CUDA_ERROR_INVALID_VALUE;
    struct cs_args *a = args_new(e);
    if (params) {
        a->form = CS_ARGS_POINTERS;
        for (unsigned i = 0; i < e->num_params; i++) {
            if (!params[i]) {
                cs_args_put(a);
                return CUDA_ERROR_INVALID_VALUE;
            }
            memcpy(a->pointers[i], params[i], e->params[i].size);
        }
    } else {
        a->form = CS_ARGS_BUFFER;
        a->buffer_size = size;
        memcpy(a->data, buffer, size);
    }
    args_extra(a);
    *out = a;
    return CUDA_SUCCESS;
}

/* ---- from a handle to work ----------------------------------------------------------------------------------------- */

CUresult cs_kernel_work(struct cs_work *w, CUfunction func, CUkernel kern, CUcontext ctx, const struct cs_launch_config *c,
                        bool node, bool *kills)
{
    struct cs_kernel k = {0};
    CUresult r;

    *kills = false;
    /* A kernel handle may stand where a function is asked for. */
    if (cs_is(func, CS_KERNEL)) {
        kern = (CUkernel)(void *)func;
        func = NULL;
    }
    if (func) {
        if (!cs_is(func, CS_FUNCTION))
            return CUDA_ERROR_INVALID_HANDLE;
        if (func->module->ctx != ctx)
            return node ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
        kern = NULL;
    } else {
        if (!cs_is(kern, CS_KERNEL))
            return CUDA_ERROR_INVALID_HANDLE;
        if ((r = cs_kernel_function(kern, ctx, &func)) != CUDA_SUCCESS)
            return r;
    }
    int most = func->dynamic_shared ? func->dynamic_shared : kern && kern->dynamic_shared ? kern->dynamic_shared : 49152;
    unsigned long long threads = (unsigned long long)c->block[0] * c->block[1] * c->block[2];
    if (!c->grid[0] || !c->grid[1] || !c->grid[2] || threads == 0 || threads > 1024 || c->block[0] > 1024 || c->block[1] > 1024 ||
        c->block[2] > 64 || c->grid[0] > 2147483647u || c->grid[1] > 65535 || c->grid[2] > 65535 || c->shared > MAX_SHARED ||
        c->shared > (unsigned)most) {
        *kills = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    k.func = func;
    k.kern = kern;
    k.ctx = ctx;
    k.entry = func->entry;
    memcpy(k.grid, c->grid, sizeof k.grid);
    memcpy(k.block, c->block, sizeof k.block);
    k.shared = c->shared;
    k.cooperative = c->cooperative;
    for (unsigned i = 0; i < c->num_attrs; i++) {
        const CUlaunchAttribute *a = &c->attrs[i];
        switch ((int)a->id) {
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            k.cooperative = a->value.cooperative;
            break;
        case 4: /* cluster dimension */
            memcpy(k.cluster, a->value.pad, sizeof k.cluster);
            break;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
            k.serialization = a->value.programmaticStreamSerializationAllowed;
            break;
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            k.priority = a->value.priority;
            break;
        default:
            break;
        }
    }
    if (!k.entry->body)
        return CUDA_ERROR_NOT_FOUND;
    if ((r = args_take(k.entry, c->params, c->extra, node, &k.args)) != CUDA_SUCCESS)
        return r;
    func->loaded = true;
    k.image = func->module->image;
    k.image->refs++;
    w->type = CU_GRAPH_NODE_TYPE_KERNEL;
    w->kernel = k;
    return CUDA_SUCCESS;
}

/* ---- entries ------------------------------------------------------------------------------------------------------- */

static CUresult launch(CUfunction f, const struct cs_launch_config *c, CUstream handle)
{
    struct cs_work w;
    bool kills, priority = false;
    CUstream s;
    CUresult r = cs_stream(handle, &s);

    if (r)
        return r;
    if (s->capture && s->capture->dead)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    r = cs_kernel_work(&w, f, NULL, s->ctx, c, false, &kills);
    if (r) {
        if (kills && s->capture)
            cs_capture_kill(s->capture);
        return r;
    }
    for (unsigned i = 0; i < c->num_attrs; i++)
        priority |= c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY;
    if (!priority)
        w.kernel.priority = s->priority;
    return cs_submit(s, &w);
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream s, void **params, void **extra)
{
    struct cs_launch_config c = {{gx, gy, gz}, {bx, by, bz}, shared, params, extra, NULL, 0, false};

    ENTER(cuLaunchKernel);
    return launch(f, &c, s);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                   unsigned shared, CUstream s, void **params)
{
    struct cs_launch_config c = {{gx, gy, gz}, {bx, by, bz}, shared, params, NULL, NULL, 0, true};

    ENTER(cuLaunchCooperativeKernel);
    return launch(f, &c, s);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    ENTER(cuLaunchKernelEx);
    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    struct cs_launch_config c = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                                 {config->blockDimX, config->blockDimY, config->blockDimZ},
                                 config->sharedMemBytes,
                                 params,
                                 extra,
                                 config->attrs,
                                 config->numAttrs,
                                 false};
    return launch(f, &c, config->hStream);
}
