#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include "../error.h"

/* The slot of a function, or the free one where it belongs. There is always a free one. */
static sg__layout **find(sg__layout **slots, size_t room, CUfunction function)
{
    size_t at = (((uintptr_t)function >> 4) * 0x9e3779b97f4a7c15ull >> 32) & (room - 1);

    while (slots[at] != NULL && slots[at]->function != function)
        at = (at + 1) & (room - 1);
    return &slots[at];
}

static stepgraph_status make_room(sg__layouts *layouts)
{
    size_t room = layouts->room != 0 ? 2 * layouts->room : 16; /* A power of two. */
    sg__layout **slots = calloc(room, sizeof *slots);

    if (slots == NULL)
        return sg__fail_memory("host", room * sizeof *slots);
    for (size_t i = 0; i < layouts->room; i++)
        if (layouts->slots[i] != NULL)
            *find(slots, room, layouts->slots[i]->function) = layouts->slots[i];
    free(layouts->slots);
    layouts->slots = slots;
    layouts->room = room;
    return STEPGRAPH_OK;
}

/* As C++ compilers mangle functions: with the types of all parameters. Rust's older names begin so too, and hold a hash of the types. */
static bool tells_parameters(const char *raw)
{
    return raw[0] == '_' && raw[1] == 'Z';
}

/* Ask the driver for every argument. known: what is known of the name, or NULL. */
static stepgraph_status ask(const sg__driver *driver, sg__layout *layout, sg__known_name *known)
{
    const uint16_t last = known != NULL ? known->arguments : 0;
    size_t offset, bytes;
    CUresult code;

    if (driver->FuncGetParamInfo == NULL)
        return STEPGRAPH_OK; /* Older than 12.4: unknown, and it stays unknown. */
    while ((code = driver->FuncGetParamInfo(layout->function, layout->n, &offset, &bytes)) == CUDA_SUCCESS) {
        void *larger = layout->n % 8 == 0 ? realloc(layout->arguments, (layout->n + 8u) * sizeof *layout->arguments) : layout->arguments;
        if (larger == NULL)
            return sg__fail_memory("host", (layout->n + 8u) * sizeof *layout->arguments);
        layout->arguments = larger;
        layout->arguments[layout->n].offset = offset;
        layout->arguments[layout->n].bytes = bytes;
        layout->arguments[layout->n].unread = NULL;
        layout->n++;
        if (layout->n == last) {
            layout->known = true;
            return STEPGRAPH_OK;
        }
    }
    layout->known = code == CUDA_ERROR_INVALID_VALUE; /* Past the last one. */
    if (layout->known && known != NULL && tells_parameters(sg__name_raw(known->name)))
        known->arguments = layout->n;
    if (!layout->known && code != CUDA_ERROR_INVALID_HANDLE) /* A kernel whose module is gone stays unknown. */
        return sg__fail_driver(driver, "cuFuncGetParamInfo", code);
    return STEPGRAPH_OK;
}

/* What the host knows about the kernel's arguments. */
static stepgraph_status mark_unread(const sg__unreads *unread, sg__layout *layout)
{
    for (size_t i = 0; i < unread->n; i++) {
        const sg__unread *known = &unread->items[i];
        if (layout->name == NULL || !sg__layout_fits(layout, known->pattern))
            continue;
        for (uint16_t k = 0; k < layout->n; k++) {
            unsigned char **bytes = &layout->arguments[k].unread;
            if ((known->argument != UINT32_MAX && known->argument != k) || layout->arguments[k].bytes != known->argument_bytes)
                continue;
            if (*bytes == NULL && (*bytes = calloc(1, known->argument_bytes)) == NULL)
                return sg__fail_memory("host", known->argument_bytes);
            memset(*bytes + known->offset, 0xff, known->bytes);
            layout->masked = true;
        }
    }
    return STEPGRAPH_OK;
}

static void drop(sg__layout *layout)
{
    for (uint16_t k = 0; k < layout->n; k++)
        free(layout->arguments[k].unread);
    free(layout->arguments);
    sg__name_drop(layout->name);
    free(layout);
}

stepgraph_status sg__layout_of(const sg__driver *driver, sg__layouts *layouts, CUfunction function, const sg__layout **layout_out)
{
    static const sg__layout unknown;
    sg__known_name *known = NULL;
    sg__layout **slot, *layout;
    stepgraph_status status;

    *layout_out = &unknown;
    if (function == NULL)
        return STEPGRAPH_OK;
    if (2 * (layouts->n + 1) > layouts->room && make_room(layouts) != STEPGRAPH_OK)
        return STEPGRAPH_ERR_MEMORY;
    slot = find(layouts->slots, layouts->room, function);
    if (*slot != NULL) {
        *layout_out = *slot;
        return STEPGRAPH_OK;
    }
    layout = calloc(1, sizeof *layout);
    if (layout == NULL)
        return sg__fail_memory("host", sizeof *layout);
    layout->function = function;
    layout->name = layouts->kernels != NULL ? sg__kernel_names_ask(&layouts->kernels->names, driver, function, &known) : sg__name_ask(driver, function);
    status = ask(driver, layout, known);
    if (status == STEPGRAPH_OK && layouts->kernels != NULL)
        status = mark_unread(&layouts->kernels->unread, layout);
    if (status != STEPGRAPH_OK) { /* Half of it is nothing to remember. */
        drop(layout);
        return status;
    }
    *slot = layout;
    layouts->n++;
    *layout_out = layout;
    return STEPGRAPH_OK;
}

stepgraph_status sg__layouts_check(const sg__driver *driver, const sg__layouts *layouts)
{
    size_t offset;

    for (size_t i = 0; i < layouts->room; i++) {
        const sg__layout *layout = layouts->slots[i];
        CUresult code = layout != NULL && layout->known ? driver->FuncGetParamInfo(layout->function, 0, &offset, NULL) : CUDA_SUCCESS;
        if (code == CUDA_ERROR_INVALID_HANDLE)
            return sg__fail(STEPGRAPH_ERR_REFUSED,
                            "the module of kernel '%.200s' was unloaded since it was recorded. The graph can be replayed, but neither read nor made "
                            "launchable again: keep modules loaded while graphs live, or record again",
                            layout->name != NULL ? sg__name_short(layout->name) : "?");
        if (code != CUDA_SUCCESS && code != CUDA_ERROR_INVALID_VALUE) /* The latter of a kernel without arguments. */
            return sg__fail_driver(driver, "cuFuncGetParamInfo", code);
    }
    return STEPGRAPH_OK;
}

void sg__layouts_free(sg__layouts *layouts)
{
    for (size_t i = 0; i < layouts->room; i++)
        if (layouts->slots[i] != NULL)
            drop(layouts->slots[i]);
    free(layouts->slots);
}
