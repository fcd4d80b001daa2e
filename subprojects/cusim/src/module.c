/* Modules, libraries, functions and kernels: who owns which handle. */
#include "core.h"

/* ---- modules ------------------------------------------------------------------------------------------------------- */

static CUmodule module_new(CUcontext ctx, struct cs_image *image, CUlibrary library)
{
    CUmodule m = cs_alloc_bytes(sizeof *m);

    m->ctx = ctx;
    m->image = image;
    m->library = library;
    m->functions = cs_alloc_bytes(image->num_entries * sizeof *m->functions);
    m->variables = cs_alloc_bytes(image->num_variables * sizeof *m->variables);
    for (unsigned i = 0; i < image->num_variables; i++)
        m->variables[i] = cs_variable_add(&image->variables[i], ctx);
    cs_handle_add(m, CS_MODULE);
    return m;
}

static void module_free(CUmodule m)
{
    for (unsigned i = 0; i < m->image->num_entries; i++)
        if (m->functions[i]) {
            cs_handle_remove(m->functions[i]);
            free(m->functions[i]);
        }
    for (unsigned i = 0; i < m->image->num_variables; i++)
        cs_variable_put(m->variables[i]);
    cs_handle_remove(m);
    free(m->functions);
    free(m->variables);
    cs_image_put(m->image);
    free(m);
}

static CUfunction module_function(CUmodule m, unsigned i)
{
    if (!m->functions[i]) {
        CUfunction f = cs_alloc_bytes(sizeof *f);
        f->module = m;
        f->entry = &m->image->entries[i];
        cs_handle_add(f, CS_FUNCTION);
        m->functions[i] = f;
    }
    return m->functions[i];
}

static const struct cs_image *module_image(CUmodule m)
{
    return cs_is(m, CS_MODULE) ? m->image : NULL;
}

static const struct cs_image *library_image(CUlibrary l)
{
    return cs_is(l, CS_LIBRARY) ? l->image : NULL;
}

/* What follows is asked of a module and of a library; where there is no image, the handle was none. */

static CUresult entry_count(unsigned *count, const struct cs_image *image)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    if (!image)
        return CUDA_ERROR_INVALID_HANDLE;
    *count = image->num_entries;
    return CUDA_SUCCESS;
}

/* The index of an entry that can run; 500 if there is none of the name, or none that a pack has a body for. */
static CUresult entry_index(const void *out, const struct cs_image *image, const char *name, unsigned *index)
{
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!image)
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < image->num_entries; i++) {
        struct cs_kernel_entry *e = &image->entries[i];

        if (strcmp(e->name, name) != 0)
            continue;
        if (!e->body)
            e->body = cs_pack_find(name);
        if (!e->body) {
            cs_say("kernel %s has no body: set CUSIM_KERNELS to a kernel pack that has it", name);
            return CUDA_ERROR_NOT_FOUND;
        }
        if (e->body->num_params != e->num_params) {
            cs_say("kernel %s takes %u parameters in the module and %u in its pack", name, e->num_params, e->body->num_params);
            return CUDA_ERROR_NOT_FOUND;
        }
        for (unsigned k = 0; k < e->num_params; k++)
            if (e->body->params[k].size != e->params[k].size) {
                cs_say("kernel %s, parameter %u: %u bytes in the module, %u in its pack", name, k, e->params[k].size,
                       e->body->params[k].size);
                return CUDA_ERROR_NOT_FOUND;
            }
        *index = i;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t n = 0, room = 0, got;

    if (!f)
        return NULL;
    do {
        text = cs_grow(text, &room, n + 65537, 1);
        got = fread(text + n, 1, 65536, f);
        n += got;
    } while (got > 0);
    text[n] = '\0';
    fclose(f);
    return text;
}

/* Of a text, or of a file. */
static CUresult image_load(const void *out, const void *data, const char *path, struct cs_image **image)
{
    char *text = NULL;
    CUresult r;

    if (!out || (!data && !path))
        return CUDA_ERROR_INVALID_VALUE;
    if (path && !(text = read_file(path)))
        return CUDA_ERROR_FILE_NOT_FOUND;
    r = cs_ptx_parse(path ? text : data, image);
    free(text);
    return r;
}

static CUresult module_load(CUmodule *out, const void *data, const char *path)
{
    struct cs_image *image;
    CUresult r = image_load(out, data, path, &image);

    if (r == CUDA_SUCCESS)
        *out = module_new(cs_current(), image, NULL);
    return r;
}

CUresult cuModuleLoadData(CUmodule *out, const void *data)
{
    ENTER(cuModuleLoadData);
    return module_load(out, data, NULL);
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *data, unsigned count, int *options, void **values)
{
    ENTER(cuModuleLoadDataEx);
    (void)count;
    (void)options;
    (void)values;
    return module_load(out, data, NULL);
}

CUresult cuModuleLoad(CUmodule *out, const char *path)
{
    ENTER(cuModuleLoad);
    return module_load(out, NULL, path);
}

CUresult cuModuleUnload(CUmodule m)
{
    ENTER(cuModuleUnload);
    if (!cs_is(m, CS_MODULE) || m->library)
        return CUDA_ERROR_INVALID_HANDLE;
    module_free(m);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name)
{
    unsigned i;
    CUresult r;

    ENTER(cuModuleGetFunction);
    if ((r = entry_index(out, module_image(m), name, &i)) != CUDA_SUCCESS)
        return r;
    *out = module_function(m, i);
    (*out)->loaded = true;
    return CUDA_SUCCESS;
}

static CUresult global(CUmodule m, const char *name, CUdeviceptr *address, size_t *bytes)
{
    for (unsigned i = 0; i < m->image->num_variables; i++) {
        if (strcmp(m->image->variables[i].name, name) != 0)
            continue;
        if (!m->variables[i])
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (address)
            *address = m->variables[i]->base;
        if (bytes)
            *bytes = m->variables[i]->size;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule m, const char *name)
{
    ENTER(cuModuleGetGlobal_v2);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    return cs_is(m, CS_MODULE) ? global(m, name, address, bytes) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleGetLoadingMode(int *mode)
{
    ENTER(cuModuleGetLoadingMode);
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = 2; /* lazy */
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule m)
{
    ENTER(cuModuleGetFunctionCount);
    return entry_count(count, module_image(m));
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule m)
{
    ENTER(cuModuleEnumerateFunctions);
    if (!functions || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!cs_is(m, CS_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < count && i < m->image->num_entries; i++)
        functions[i] = module_function(m, i);
    return CUDA_SUCCESS;
}

/* ---- libraries ----------------------------------------------------------------------------------------------------- */

static void kernels_free(CUlibrary l)
{
    for (unsigned i = 0; i < l->image->num_entries; i++)
        if (l->kernels[i]) {
            cs_handle_remove(l->kernels[i]);
            free(l->kernels[i]);
        }
    free(l->kernels);
}

static CUkernel library_kernel(CUlibrary l, unsigned i)
{
    if (!l->kernels[i]) {
        CUkernel k = cs_alloc_bytes(sizeof *k);
        k->library = l;
        k->entry = &l->image->entries[i];
        cs_handle_add(k, CS_KERNEL);
        l->kernels[i] = k;
    }
    return l->kernels[i];
}

static CUresult library_load(CUlibrary *out, const void *data, const char *path)
{
    struct cs_image *image;
    CUresult r = image_load(out, data, path, &image);

    if (r)
        return r;
    CUlibrary l = cs_alloc_bytes(sizeof *l);
    l->image = image;
    l->kernels = cs_alloc_bytes(image->num_entries * sizeof *l->kernels);
    cs_handle_add(l, CS_LIBRARY);
    *out = l;
    return CUDA_SUCCESS;
}

/* The module that stands for a library in a context. */
static CUmodule library_module(CUlibrary l, CUcontext ctx)
{
    for (size_t i = 0; i < l->num_modules; i++)
        if (l->modules[i]->ctx == ctx)
            return l->modules[i];
    l->modules = cs_grow(l->modules, &l->room, l->num_modules + 1, sizeof *l->modules);
    l->image->refs++;
    return l->modules[l->num_modules++] = module_new(ctx, l->image, l);
}

CUresult cs_kernel_function(CUkernel k, CUcontext ctx, CUfunction *out)
{
    CUmodule m = library_module(k->library, ctx);
    CUfunction f = module_function(m, (unsigned)(k->entry - m->image->entries));

    f->kernel = k;
    f->loaded = true;
    *out = f;
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *out, const void *data, int *jit, void **jit_values, unsigned num_jit, int *options,
                           void **values, unsigned count)
{
    ENTER(cuLibraryLoadData);
    (void)jit;
    (void)jit_values;
    (void)num_jit;
    (void)options;
    (void)values;
    (void)count;
    return library_load(out, data, NULL);
}

CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, int *jit, void **jit_values, unsigned num_jit, int *options,
                               void **values, unsigned count)
{
    ENTER(cuLibraryLoadFromFile);
    (void)jit;
    (void)jit_values;
    (void)num_jit;
    (void)options;
    (void)values;
    (void)count;
    return library_load(out, NULL, path);
}

CUresult cuLibraryUnload(CUlibrary l)
{
    ENTER(cuLibraryUnload);
    if (!cs_is(l, CS_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < l->num_modules; i++)
        module_free(l->modules[i]);
    free(l->modules);
    kernels_free(l);
    cs_handle_remove(l);
    cs_image_put(l->image);
    free(l);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary l, const char *name)
{
    unsigned i;
    CUresult r;

    ENTER(cuLibraryGetKernel);
    if ((r = entry_index(out, library_image(l), name, &i)) != CUDA_SUCCESS)
        return r;
    *out = library_kernel(l, i);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *out, CUlibrary l)
{
    ENTER(cuLibraryGetModule);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!cs_is(l, CS_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = library_module(l, cs_current());
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary l, const char *name)
{
    ENTER(cuLibraryGetGlobal);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!cs_is(l, CS_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    return cs_current() ? global(library_module(l, cs_current()), name, address, bytes) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary l)
{
    ENTER(cuLibraryGetKernelCount);
    return entry_count(count, library_image(l));
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary l)
{
    ENTER(cuLibraryEnumerateKernels);
    if (!kernels || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!cs_is(l, CS_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < count && i < l->image->num_entries; i++)
        kernels[i] = library_kernel(l, i);
    return CUDA_SUCCESS;
}

/* ---- the end of a context ------------------------------------------------------------------------------------------ */

static void library_forget(void *handle, void *ctx)
{
    CUlibrary l = handle;

    for (size_t i = l->num_modules; i-- > 0;)
        if (l->modules[i]->ctx == ctx) {
            module_free(l->modules[i]);
            l->modules[i] = l->modules[--l->num_modules];
        }
}

static void module_gone(void *handle, void *ctx)
{
    CUmodule m = handle;

    if (m->ctx == ctx && !m->library)
        module_free(m);
}

void cs_modules_context_gone(CUcontext ctx)
{
    cs_handles_each(CS_LIBRARY, library_forget, ctx);
    cs_handles_each(CS_MODULE, module_gone, ctx);
}
