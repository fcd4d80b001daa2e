/*
 * Device memory: one big reserved range of addresses, made usable page by page as it is allocated.
 *
 * A device pointer is thus an address that the process can follow, but only while the allocation lives: the pages that a freed
 * allocation had alone become unusable, and what it shares with its neighbours is poisoned.
 */
#include "core.h"

#include <sys/mman.h>

/* Sorted by base. `arena`: whatever takes room in the range. `shown`: what the attribute calls know, host memory too. */
static struct list {
    struct cs_alloc **items;
    size_t count, room;
} arena, shown;

static uintptr_t arena_base;
static size_t arena_size;
static size_t arena_first_gap; /* No item before this index has room behind it. */
static CUdeviceptr arena_next; /* Where CS_NEVER and CS_MOVE go on. */
static size_t device_used[CS_MAX_DEVICES];
static size_t graph_used[CS_MAX_DEVICES], graph_high[CS_MAX_DEVICES];
static uint64_t last_buffer_id;
uint64_t cs_free_epoch = 1;

/* ---- sorted lists -------------------------------------------------------------------------------------------------- */

/* The first item whose base is above the address. */
static size_t list_above(const struct list *l, CUdeviceptr address)
{
    size_t low = 0, high = l->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->items[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void list_add(struct list *l, struct cs_alloc *a)
{
    size_t at = list_above(l, a->base);

    l->items = cs_grow(l->items, &l->room, l->count + 1, sizeof *l->items);
    memmove(l->items + at + 1, l->items + at, (l->count - at) * sizeof *l->items);
    l->items[at] = a;
    l->count++;
}

static size_t list_remove(struct list *l, const struct cs_alloc *a)
{
    size_t at = list_above(l, a->base);

    while (at > 0 && l->items[at - 1] != a)
        at--;
    if (at == 0)
        return l->count;
    at--;
    memmove(l->items + at, l->items + at + 1, (l->count - at - 1) * sizeof *l->items);
    l->count--;
    if (l->count == 0) {
        free(l->items);
        *l = (struct list){0};
    }
    return at;
}

static struct cs_alloc *list_find(const struct list *l, CUdeviceptr address, size_t bytes)
{
    size_t at = list_above(l, address);

    if (at == 0)
        return NULL;
    struct cs_alloc *a = l->items[at - 1];
    size_t offset = (size_t)(address - a->base);
    if (offset >= a->size)
        return NULL;
    /* Mappings side by side are one piece of memory. */
    size_t room = a->size - offset;
    for (size_t i = at; room < bytes && a->kind == CS_MEM_VMM && i < l->count; i++) {
        struct cs_alloc *next = l->items[i];
        if (next->kind != CS_MEM_VMM || next->base != address + room)
            break;
        room += next->size;
    }
    return bytes <= room ? a : NULL;
}

struct cs_alloc *cs_find(CUdeviceptr address, size_t bytes)
{
    return list_find(&shown, address, bytes);
}

struct cs_alloc *cs_find_graph(CUdeviceptr address, size_t bytes)
{
    struct cs_alloc *a = list_find(&arena, address, bytes);

    return a && a->kind == CS_MEM_GRAPH ? a : NULL;
}

struct cs_alloc *cs_find_near(CUdeviceptr address)
{
    size_t at = list_above(&arena, address);

    for (size_t i = at > 0 ? at - 1 : 0; i < arena.count && i <= at; i++) {
        struct cs_alloc *a = arena.items[i];
        if (a->guarded && address >= a->from && address - a->from < a->span)
            return a;
    }
    return NULL;
}

void cs_alloc_show(struct cs_alloc *a)
{
    if (a->visible)
        return;
    a->id = ++last_buffer_id;
    a->visible = true;
    list_add(&shown, a);
}

void cs_alloc_hide(struct cs_alloc *a)
{
    if (!a->visible)
        return;
    a->visible = false;
    cs_free_epoch++;
    list_remove(&shown, a);
}

/* ---- the range of addresses ---------------------------------------------------------------------------------------- */

static size_t up(size_t n, size_t step)
{
    return (n + step - 1) / step * step;
}

bool cs_in_arena(uintptr_t address)
{
    return address >= arena_base && address - arena_base < arena_size;
}

bool cs_host_kind(enum cs_memory kind)
{
    return kind == CS_MEM_PINNED || kind == CS_MEM_REGISTERED;
}

static bool arena_reserve(void)
{
    for (size_t size = (size_t)1 << 40; !arena_base && size >= (size_t)1 << 32; size /= 2) {
        void *p = mmap(NULL, size + CS_BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            continue;
        arena_base = up((uintptr_t)p, CS_BLOCK);
        arena_size = size;
        arena_next = arena_base;
    }
    return arena_base != 0;
}

/* The first gap from item `from` on, at or above `floor`, that holds `span` bytes. */
static CUdeviceptr gap_find(size_t from, CUdeviceptr floor, size_t span, size_t align)
{
    for (size_t i = from; i <= arena.count; i++) {
        CUdeviceptr start = i ? arena.items[i - 1]->from + arena.items[i - 1]->span : arena_base;
        CUdeviceptr end = i < arena.count ? arena.items[i]->from : arena_base + arena_size;

        if (start == end && i == arena_first_gap)
            arena_first_gap = i + 1;
        if (start < floor)
            start = floor;
        start = up(start, align);
        if (start <= end && end - start >= span)
            return start;
    }
    return 0;
}

static CUdeviceptr place(size_t span, size_t align)
{
    CUdeviceptr at;

    if (cs.policy == CS_REUSE) {
        at = gap_find(arena_first_gap, arena_base, span, align);
    } else {
        at = gap_find(list_above(&arena, arena_next), arena_next, span, align);
        if (!at && cs.policy == CS_MOVE)
            at = gap_find(0, arena_base, span, align);
    }
    if (at && at + span > arena_next)
        arena_next = at + span;
    /* CS_MOVE turns back after a while, so that the addresses stay in a narrow range. */
    if (cs.policy == CS_MOVE && arena_next - arena_base > arena_size / 2)
        arena_next = arena_base;
    return at;
}

/* The pages of an allocation: all that it touches, or only those that no neighbour needs. */
static void pages(const struct cs_alloc *a, bool alone, uintptr_t *from, uintptr_t *to)
{
    size_t at = list_above(&arena, a->base);

    *from = a->from / CS_PAGE * CS_PAGE;
    *to = up(a->from + a->span, CS_PAGE);
    if (a->guarded)
        *to -= CS_GUARD;
    if (!alone || a->guarded)
        return;
    for (size_t i = at; i-- > 0;)
        if (arena.items[i] != a) {
            if (arena.items[i]->from + arena.items[i]->span > *from && arena.items[i]->base < a->base)
                *from += CS_PAGE;
            break;
        }
    for (size_t i = at; i < arena.count; i++)
        if (arena.items[i] != a) {
            if (arena.items[i]->base < *to)
                *to -= CS_PAGE;
            break;
        }
}

void cs_alloc_open(struct cs_alloc *a)
{
    uintptr_t from, to;

    pages(a, false, &from, &to);
    if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE) != 0) {
        cs_say("cannot make %zu bytes of device memory usable", a->span);
        abort();
    }
    a->open = true;
    if (a->guarded)
        cs_check_fill(a);
    else if (a->span <= CS_BLOCK / 2)
        memset((void *)(uintptr_t)a->base, CS_POISON, a->span);
}

void cs_alloc_close(struct cs_alloc *a)
{
    uintptr_t from, to;

    cs_free_epoch++;
    a->open = false;
    if (!a->guarded && a->span <= CS_BLOCK / 2)
        memset((void *)(uintptr_t)a->base, CS_POISON, a->span);
    pages(a, true, &from, &to);
    if (from >= to)
        return;
    if (to - from >= CS_BLOCK / 2)
        madvise((void *)from, to - from, MADV_DONTNEED);
    mprotect((void *)from, to - from, PROT_NONE);
}

/* What counts as used: not the guard pages. */
static size_t charge(const struct cs_alloc *a)
{
    return up(a->size, a->guarded ? CS_ALIGN : CS_GRANULE);
}

bool cs_memory_charge(int device, size_t bytes)
{
    if (bytes > cs.memory || device_used[device] + bytes > cs.memory)
        return false;
    device_used[device] += bytes;
    return true;
}

void cs_memory_uncharge(int device, size_t bytes)
{
    device_used[device] -= bytes;
}

/* With checks on, the end of an allocation lies as near to its guard pages as the alignment of CUDA memory allows. */
CUresult cs_device_alloc(enum cs_memory kind, size_t bytes, CUcontext ctx, int device, struct cs_alloc **out)
{
    bool guarded = cs.check != CS_CHECK_OFF;
    /* Memory of graphs shares no page with other memory: it must be out of reach while it does not live. Nor do variables, so
     * that what is freed beside them is out of reach. */
    size_t step = kind == CS_MEM_GRAPH || kind == CS_MEM_VARIABLE ? CS_PAGE : CS_GRANULE, lead = 0;
    size_t span = up(bytes, guarded ? CS_ALIGN : step), align = span >= CS_BLOCK ? CS_BLOCK : step;

    if (bytes > cs.memory || device_used[device] + span > cs.memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (guarded) {
        lead = up(span, CS_PAGE) - span;
        span += lead + CS_GUARD;
        align = CS_PAGE;
    }
    if (!arena_base && !arena_reserve())
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUdeviceptr at = place(span, align);
    if (!at)
        return CUDA_ERROR_OUT_OF_MEMORY;
    cs_graves_clear(at, span);
    struct cs_alloc *a = cs_alloc_bytes(sizeof *a);
    a->from = at;
    a->base = at + lead;
    a->size = bytes;
    a->span = span;
    a->guarded = guarded;
    a->kind = kind;
    a->ctx = ctx;
    a->device = device;
    list_add(&arena, a);
    device_used[device] += charge(a);
    if (kind != CS_MEM_GRAPH) {
        cs_alloc_open(a);
        cs_alloc_show(a);
    }
    *out = a;
    return CUDA_SUCCESS;
}

static void arena_leave(struct cs_alloc *a)
{
    size_t at = list_remove(&arena, a);

    if (at < arena_first_gap)
        arena_first_gap = at;
    if (arena.count == 0)
        arena_first_gap = 0;
}

static void device_free(struct cs_alloc *a)
{
    if (a->guarded && a->open)
        cs_check_bytes(a, NULL);
    cs_alloc_hide(a);
    if (a->open)
        cs_alloc_close(a);
    if (a->pool)
        a->pool->used -= a->span;
    device_used[a->device] -= charge(a);
    if (a->guarded)
        cs_grave_add(a);
    arena_leave(a);
    free(a);
}

/* ---- room for mappings --------------------------------------------------------------------------------------------- */

struct cs_alloc *cs_reserve(size_t bytes, size_t align, CUdeviceptr at)
{
    if (!arena_base && !arena_reserve())
        return NULL;
    if (at && (at % align || !cs_in_arena(at) || at + bytes > arena_base + arena_size || gap_find(0, at, bytes, align) != at))
        at = 0;
    if (!at)
        at = place(bytes, align);
    if (!at)
        return NULL;
    cs_graves_clear(at, bytes);
    struct cs_alloc *r = cs_alloc_bytes(sizeof *r);
    r->from = r->base = at;
    r->size = r->span = bytes;
    r->kind = CS_MEM_VMM;
    list_add(&arena, r);
    return r;
}

void cs_unreserve(struct cs_alloc *r)
{
    arena_leave(r);
    free(r);
}

struct cs_alloc *cs_find_reservation(CUdeviceptr address)
{
    struct cs_alloc *a = list_find(&arena, address, 1);

    return a && a->kind == CS_MEM_VMM ? a : NULL;
}

bool cs_mapped_within(CUdeviceptr from, size_t bytes)
{
    size_t at = list_above(&shown, from + bytes - 1);

    return at > 0 && shown.items[at - 1]->base + shown.items[at - 1]->size > from;
}

/* ---- variables of modules ------------------------------------------------------------------------------------------ */

/* Where the kernels of a pack have it, if one does: modules then share it, as they share the kernels. */
struct cs_alloc *cs_variable_add(const struct cs_variable *v, CUcontext ctx)
{
    struct cs_alloc *a;

    if (v->body && v->body->bytes == v->bytes) {
        a = cs_find((CUdeviceptr)(uintptr_t)v->body->address, 1);
        if (!a) {
            a = cs_alloc_bytes(sizeof *a);
            a->base = a->from = (CUdeviceptr)(uintptr_t)v->body->address;
            a->size = a->span = v->bytes;
            a->kind = CS_MEM_VARIABLE;
            a->ctx = ctx;
            a->device = ctx->device;
            cs_alloc_show(a);
        }
    } else if (cs_device_alloc(CS_MEM_VARIABLE, v->bytes, ctx, ctx->device, &a) == CUDA_SUCCESS) {
        memcpy((void *)(uintptr_t)a->base, v->initial, v->bytes);
    } else {
        return NULL;
    }
    a->refs++;
    return a;
}

void cs_variable_put(struct cs_alloc *a)
{
    if (!a || --a->refs > 0)
        return;
    if (cs_in_arena((uintptr_t)a->base)) {
        device_free(a);
        return;
    }
    cs_alloc_hide(a);
    free(a);
}

/* ---- memory freed in stream order ---------------------------------------------------------------------------------- */

CUresult cs_free_in_stream(CUstream s, struct cs_alloc *a)
{
    struct cs_work w = {.type = CS_WORK_FREE};

    cs_alloc_hide(a);
    a->freed_in = s;
    a->frees++;
    w.free = a;
    return cs_submit(s, &w);
}

void cs_free_finish(struct cs_alloc *a)
{
    if (a->reused) {
        free(a);
        return;
    }
    if (a->kind != CS_MEM_GRAPH) {
        device_free(a);
        return;
    }
    /* A launch queued behind the free brought it back to life, unless another free follows that. */
    a->frees--;
    if (a->frees == 0 && a->freed_in) {
        a->freed_in = NULL;
        cs_graph_alloc_live(a, false);
        cs_graph_alloc_put(a);
    }
}

/* What was freed in this stream and has not yet gone is handed out again at once: the stream's order makes that safe. */
CUresult cs_pool_alloc(CUmemoryPool pool, CUstream s, size_t bytes, CUdeviceptr *out)
{
    size_t span = up(bytes, CS_GRANULE);
    struct cs_alloc *a = NULL;

    for (size_t i = 0; i < arena.count && cs.policy == CS_REUSE && cs.check == CS_CHECK_OFF; i++) {
        struct cs_alloc *z = arena.items[i];
        if (z->freed_in != s || z->kind != CS_MEM_POOL || z->pool != pool || z->span != span)
            continue;
        a = cs_alloc_bytes(sizeof *a);
        *a = *z;
        a->size = bytes;
        a->freed_in = NULL;
        a->visible = false;
        z->reused = true;
        arena.items[i] = a;
        cs_alloc_show(a);
        break;
    }
    if (!a) {
        CUresult r = cs_device_alloc(CS_MEM_POOL, bytes, NULL, pool->device, &a);
        if (r)
            return r;
        a->pool = pool;
        pool->used += a->span;
        if (pool->used > pool->used_high)
            pool->used_high = pool->used;
    }
    *out = a->base;
    return CUDA_SUCCESS;
}

/* ---- memory of graphs ---------------------------------------------------------------------------------------------- */

void cs_graph_alloc_live(struct cs_alloc *a, bool live)
{
    if (live && !a->live) {
        cs_alloc_open(a);
        if (!a->charged) {
            a->charged = true;
            graph_used[a->device] += up(a->span, CS_GRAPH_BLOCK);
            if (graph_used[a->device] > graph_high[a->device])
                graph_high[a->device] = graph_used[a->device];
        }
    } else if (!live && a->live) {
        if (a->guarded && a->open)
            cs_check_bytes(a, NULL);
        cs_alloc_hide(a);
        if (a->open)
            cs_alloc_close(a);
    }
    a->live = live;
}

/* Nobody names it any more: it goes, unless it lives. */
void cs_graph_alloc_put(struct cs_alloc *a)
{
    if (a->refs > 0 || a->live || a->launches > 0 || a->frees > 0)
        return;
    if (a->charged)
        graph_used[a->device] -= up(a->span, CS_GRAPH_BLOCK);
    device_free(a);
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    CUresult r;

    ENTER(cuDeviceGraphMemTrim);
    if ((r = cs_device_check(device)) != CUDA_SUCCESS)
        return r;
    for (size_t i = 0; i < arena.count; i++) {
        struct cs_alloc *a = arena.items[i];
        if (a->kind == CS_MEM_GRAPH && a->device == device && a->charged && !a->live) {
            a->charged = false;
            graph_used[device] -= up(a->span, CS_GRAPH_BLOCK);
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    CUresult r;

    ENTER(cuDeviceGetGraphMemAttribute);
    if ((r = cs_device_check(device)) != CUDA_SUCCESS)
        return r;
    if (!value || (unsigned)attribute > 3)
        return CUDA_ERROR_INVALID_VALUE;
    *(cuuint64_t *)value = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH
                               ? graph_high[device]
                               : graph_used[device];
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    CUresult r;

    ENTER(cuDeviceSetGraphMemAttribute);
    if ((r = cs_device_check(device)) != CUDA_SUCCESS)
        return r;
    if (!value || *(cuuint64_t *)value != 0 ||
        (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
        return CUDA_ERROR_INVALID_VALUE;
    graph_high[device] = graph_used[device];
    return CUDA_SUCCESS;
}

/* ---- entries ------------------------------------------------------------------------------------------------------- */

/* cuMemAlloc zeroes its output when it is refused, unlike the others. */
CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    struct cs_alloc *a;
    CUresult r;

    ENTER(cuMemAlloc_v2);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if ((r = cs_unsafe()) != CUDA_SUCCESS) {
        *out = 0;
        return r;
    }
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = cs_device_alloc(CS_MEM_DEVICE, bytes, cs_current(), cs_current()->device, &a);
    if (!r)
        *out = a->base;
    return r;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
    struct cs_alloc *a;
    CUresult r;

    ENTER(cuMemAllocPitch_v2);
    if (!out || !pitch || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    size_t row = up(width, CS_GRANULE);
    r = cs_device_alloc(CS_MEM_DEVICE, row * height, cs_current(), cs_current()->device, &a);
    if (r)
        return r;
    *out = a->base;
    *pitch = row;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags)
{
    struct cs_alloc *a;
    CUresult r;

    ENTER(cuMemAllocManaged);
    if (!out || bytes == 0 || (flags != 1 && flags != 2))
        return CUDA_ERROR_INVALID_VALUE;
    r = cs_device_alloc(CS_MEM_MANAGED, bytes, cs_current(), cs_current()->device, &a);
    if (!r)
        *out = a->base;
    return r;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    struct cs_alloc *a;

    ENTER(cuMemFree_v2);
    if (address == 0)
        return CUDA_SUCCESS;
    a = cs_find(address, 1);
    if (!a || a->base != address || a->kind >= CS_MEM_VMM)
        return CUDA_ERROR_INVALID_VALUE;
    /* Work in flight anywhere on the device may still use it. */
    uint64_t id = a->id;
    cs_device_drain(a->device);
    a = cs_find(address, 1);
    if (!a || a->id != id)
        return CUDA_ERROR_INVALID_VALUE;
    if (a->kind == CS_MEM_GRAPH) {
        cs_graph_alloc_live(a, false);
        cs_graph_alloc_put(a);
    } else {
        device_free(a);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    int device;

    ENTER(cuMemGetInfo_v2);
    device = cs_current()->device;
    if (free_bytes)
        *free_bytes = device_used[device] < cs.memory ? cs.memory - device_used[device] : 0;
    if (total)
        *total = cs.memory;
    return CUDA_SUCCESS;
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, int advice, CUdevice device)
{
    ENTER(cuMemAdvise);
    (void)advice;
    (void)device;
    return cs_find(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, int advice, CUmemLocation location)
{
    ENTER(cuMemAdvise_v2);
    (void)advice;
    (void)location;
    return cs_find(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult prefetch(CUdeviceptr address, size_t bytes, CUstream handle)
{
    CUstream s;
    CUresult r = cs_stream(handle, &s);

    if (r)
        return r;
    if (s->capture)
        return cs_never(s);
    struct cs_alloc *a = cs_find(address, bytes);
    return a && a->kind == CS_MEM_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream s)
{
    ENTER(cuMemPrefetchAsync);
    (void)device;
    return prefetch(address, bytes, s);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags, CUstream s)
{
    ENTER(cuMemPrefetchAsync_v2);
    (void)location;
    (void)flags;
    return prefetch(address, bytes, s);
}

/* ---- page-locked host memory --------------------------------------------------------------------------------------- */

static CUresult host_alloc(void **out, size_t bytes, unsigned flags)
{
    if (!out || bytes == 0 || (flags & ~7u))
        return CUDA_ERROR_INVALID_VALUE;
    void *p = mmap(NULL, up(bytes, CS_PAGE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct cs_alloc *a = cs_alloc_bytes(sizeof *a);
    a->base = a->from = (CUdeviceptr)(uintptr_t)p;
    a->size = bytes;
    a->span = up(bytes, CS_PAGE);
    a->kind = CS_MEM_PINNED;
    a->ctx = cs_current();
    a->device = a->ctx->device;
    a->flags = flags;
    cs_alloc_show(a);
    *out = p;
    return CUDA_SUCCESS;
}

static void host_free(struct cs_alloc *a)
{
    cs_alloc_hide(a);
    if (a->kind == CS_MEM_PINNED)
        munmap((void *)(uintptr_t)a->base, a->span);
    free(a);
}

CUresult cuMemAllocHost_v2(void **out, size_t bytes)
{
    ENTER(cuMemAllocHost_v2);
    return host_alloc(out, bytes, 0);
}

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    ENTER(cuMemHostAlloc);
    return host_alloc(out, bytes, flags);
}

CUresult cuMemFreeHost(void *p)
{
    struct cs_alloc *a;

    ENTER(cuMemFreeHost);
    a = cs_find((CUdeviceptr)(uintptr_t)p, 1);
    if (!a || a->base != (CUdeviceptr)(uintptr_t)p || a->kind != CS_MEM_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t id = a->id;
    cs_device_drain(a->device);
    a = cs_find((CUdeviceptr)(uintptr_t)p, 1);
    if (!a || a->id != id)
        return CUDA_ERROR_INVALID_VALUE;
    host_free(a);
    return CUDA_SUCCESS;
}

static CUresult host_register(void *p, size_t bytes, unsigned flags)
{
    CUdeviceptr base = (CUdeviceptr)(uintptr_t)p;

    if (!p || bytes == 0 || (flags & ~15u))
        return CUDA_ERROR_INVALID_VALUE;
    size_t at = list_above(&shown, base + bytes - 1);
    if (at > 0 && shown.items[at - 1]->base + shown.items[at - 1]->size > base)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    struct cs_alloc *a = cs_alloc_bytes(sizeof *a);
    a->base = a->from = base;
    a->size = a->span = bytes;
    a->kind = CS_MEM_REGISTERED;
    a->ctx = cs_current();
    a->device = a->ctx->device;
    a->flags = flags;
    cs_alloc_show(a);
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void *p, size_t bytes, unsigned flags)
{
    ENTER(cuMemHostRegister);
    return host_register(p, bytes, flags);
}

CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
    ENTER(cuMemHostRegister_v2);
    return host_register(p, bytes, flags);
}

CUresult cuMemHostUnregister(void *p)
{
    struct cs_alloc *a;

    ENTER(cuMemHostUnregister);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    a = cs_find((CUdeviceptr)(uintptr_t)p, 1);
    if (!a || a->kind != CS_MEM_REGISTERED || a->base != (CUdeviceptr)(uintptr_t)p)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    host_free(a);
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *p, unsigned flags)
{
    struct cs_alloc *a;

    ENTER(cuMemHostGetDevicePointer_v2);
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    a = cs_find((CUdeviceptr)(uintptr_t)p, 1);
    if (!a || !cs_host_kind(a->kind))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *p)
{
    struct cs_alloc *a;

    ENTER(cuMemHostGetFlags);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    a = cs_find((CUdeviceptr)(uintptr_t)p, 1);
    if (!a || !cs_host_kind(a->kind))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = a->flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

/* A handle that no other process can open: cusim's memory is this process's own. */
CUresult cuIpcGetMemHandle(cusim_ipc_handle *handle, CUdeviceptr address)
{
    struct cs_alloc *a;

    ENTER(cuIpcGetMemHandle);
    a = cs_find(address, 1);
    if (!handle || !a || a->kind != CS_MEM_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    memset(handle, 0, sizeof *handle);
    memcpy(handle->reserved, &a->base, sizeof a->base);
    memcpy(handle->reserved + 8, &a->id, sizeof a->id);
    return CUDA_SUCCESS;
}

/* ---- the end of a context ------------------------------------------------------------------------------------------ */

void cs_memory_context_gone(CUcontext ctx)
{
    for (size_t i = shown.count; i-- > 0;) {
        if (i >= shown.count)
            continue;
        struct cs_alloc *a = shown.items[i];
        bool primary_pool = (a->kind == CS_MEM_POOL || a->kind == CS_MEM_GRAPH) && ctx->primary && a->device == ctx->device;

        if (a->ctx != ctx && !primary_pool)
            continue;
        if (cs_host_kind(a->kind)) {
            host_free(a);
        } else if (a->kind == CS_MEM_GRAPH) {
            cs_graph_alloc_live(a, false);
            cs_graph_alloc_put(a);
        } else {
            device_free(a);
        }
    }
}
