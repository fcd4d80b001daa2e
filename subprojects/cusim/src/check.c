/*
 * Checks that a card does not make. They are off unless asked for (CUSIM_CHECK) and accuse only where the program is wrong.
 *
 * Memory: each allocation lies on pages of its own, its end near to pages that nobody may touch, and its addresses come back as
 * late as possible. So a touch of freed memory, or beyond the end, faults in the kernel that does it; what is too near for that
 * shows in the bytes around the allocation, which are compared after each kernel that was given a pointer to it.
 *
 * Order: an operation is compared, when it is queued, with those that are neither done nor before it in stream order or by an
 * event. Sums over the page-locked sources of queued copies show whether the host wrote to them too early.
 */
#include "core.h"

#include <stdarg.h>
#include <sys/mman.h>

#define CANARY 0xCA

void cs_finding(const char *format, ...)
{
    char line[700];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    cs_say("check: %s", line);
    __atomic_add_fetch(&cs.findings, 1, __ATOMIC_RELAXED);
    if (cs.check == CS_CHECK_ABORT)
        abort();
}

/* ---- what an address is -------------------------------------------------------------------------------------------- */

/* Allocations that are gone, sorted by address; none overlaps another or a living one. */
static struct cs_alloc *graves;
static size_t num_graves, graves_room;

static size_t grave_above(CUdeviceptr address)
{
    size_t low = 0, high = num_graves;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (graves[middle].from <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void cs_grave_add(const struct cs_alloc *a)
{
    size_t at = grave_above(a->from);

    graves = cs_grow(graves, &graves_room, num_graves + 1, sizeof *graves);
    memmove(graves + at + 1, graves + at, (num_graves - at) * sizeof *graves);
    graves[at] = *a;
    num_graves++;
}

void cs_graves_clear(CUdeviceptr from, size_t span)
{
    size_t at = grave_above(from), end;

    if (num_graves == 0)
        return;
    if (at > 0 && graves[at - 1].from + graves[at - 1].span > from)
        at--;
    for (end = at; end < num_graves && graves[end].from < from + span; end++)
        ;
    memmove(graves + at, graves + end, (num_graves - end) * sizeof *graves);
    num_graves -= end - at;
}

static const struct cs_alloc *grave_find(CUdeviceptr address)
{
    size_t at = grave_above(address);

    return at > 0 && address - graves[at - 1].from < graves[at - 1].span ? &graves[at - 1] : NULL;
}

static const char *kind_name(enum cs_memory kind)
{
    switch (kind) {
    case CS_MEM_DEVICE:
        return "device memory";
    case CS_MEM_MANAGED:
        return "managed memory";
    case CS_MEM_POOL:
        return "pool memory";
    case CS_MEM_GRAPH:
        return "memory of a graph";
    case CS_MEM_VMM:
        return "mapped memory";
    case CS_MEM_VARIABLE:
        return "a variable";
    case CS_MEM_PINNED:
    case CS_MEM_REGISTERED:
        return "page-locked memory";
    }
    return "memory";
}

static void place_in(const struct cs_alloc *a, CUdeviceptr address, const char *state, char *text, size_t room)
{
    char where[80];

    if (address < a->base)
        snprintf(where, sizeof where, "%llu bytes before the start of", a->base - address);
    else if (address >= a->base + a->size)
        snprintf(where, sizeof where, "%llu bytes past the end of", address - (a->base + a->size));
    else
        snprintf(where, sizeof where, "byte %llu of", address - a->base);
    snprintf(text, room, "%s %zu bytes of %s%s at 0x%llx (buffer %llu)", where, a->size, state, kind_name(a->kind), a->base,
             (unsigned long long)a->id);
}

const char *cs_where(CUdeviceptr address, char *text, size_t room)
{
    const struct cs_alloc *a = cs_find(address, 1), *g = grave_find(address);

    if (a)
        place_in(a, address, a->kind == CS_MEM_VMM && a->access == 0 ? "inaccessible " : "", text, room);
    else if ((a = cs_find_graph(address, 1)) != NULL)
        place_in(a, address, a->live ? "" : "not yet or no longer living ", text, room);
    else if ((a = cs_find_near(address)) != NULL)
        place_in(a, address, "", text, room);
    else if (g)
        place_in(g, address, "freed ", text, room);
    else if (cs_find_reservation(address))
        snprintf(text, room, "reserved addresses with nothing mapped");
    else
        snprintf(text, room, "%s",
                 cs_in_arena((uintptr_t)address) ? "device memory that is freed or was never allocated" : "no CUDA memory");
    return text;
}

/* The allocation, living or gone, that an address is in or near to. */
static const struct cs_alloc *owner(CUdeviceptr address)
{
    const struct cs_alloc *a = cs_find(address, 1);

    if (!a)
        a = cs_find_graph(address, 1);
    if (!a)
        a = cs_find_near(address);
    return a ? a : grave_find(address);
}

/* Every aligned word of a kernel's arguments. */
struct word {
    unsigned argument;
    CUdeviceptr value;
};

static bool next_word(const struct cs_kernel *k, size_t *at, struct word *w)
{
    for (; k->args && *at + 8 <= k->args->bytes; *at += 8) {
        memcpy(&w->value, k->args->data + *at, 8);
        for (unsigned i = 0; i < k->entry->num_params; i++)
            if (*at >= k->entry->params[i].offset && *at + 8 <= k->entry->params[i].offset + k->entry->params[i].size) {
                w->argument = i;
                *at += 8;
                return true;
            }
    }
    return false;
}

const char *cs_blame(const struct cs_work *w, CUdeviceptr address, char *text, size_t room)
{
    const struct cs_alloc *a = owner(address);
    struct word word;
    size_t at = 0;

    text[0] = '\0';
    if (!w || w->type != CU_GRAPH_NODE_TYPE_KERNEL || !a)
        return text;
    while (next_word(&w->kernel, &at, &word))
        if (owner(word.value) == a) {
            snprintf(text, room, " (argument %u, 0x%llx)", word.argument, word.value);
            break;
        }
    return text;
}

/* ---- bytes around allocations -------------------------------------------------------------------------------------- */

void cs_check_fill(struct cs_alloc *a)
{
    unsigned char *base = (unsigned char *)(uintptr_t)a->base, *from = (unsigned char *)(uintptr_t)a->from;

    memset(from, CANARY, (size_t)(a->base - a->from));
    memset(base + a->size, CANARY, (size_t)(a->from + a->span - CS_GUARD - a->base) - a->size);
    if (a->size <= CS_BLOCK / 2)
        memset(base, CS_POISON, a->size);
}

static void damage(const struct cs_alloc *a, CUdeviceptr from, size_t bytes, const struct cs_work *w)
{
    unsigned char *p = (unsigned char *)(uintptr_t)from;
    char what[200], where[200], blame[80];
    size_t first = 0, n = 0;

    for (size_t i = 0; i < bytes; i++)
        if (p[i] != CANARY && n++ == 0)
            first = i;
    if (n == 0)
        return;
    memset(p, CANARY, bytes);
    place_in(a, from + first, "", where, sizeof where);
    cs_finding("%s changed %zu bytes around its memory, the first %s%s", w ? cs_describe(w, what, sizeof what) : "something", n,
               where, cs_blame(w, a->base, blame, sizeof blame));
}

void cs_check_bytes(struct cs_alloc *a, const struct cs_work *w)
{
    CUdeviceptr end = a->base + a->size;

    damage(a, a->from, (size_t)(a->base - a->from), w);
    damage(a, end, (size_t)(a->from + a->span - CS_GUARD - end), w);
}

void cs_check_kernel(const struct cs_work *w)
{
    struct word word;
    size_t at = 0;

    pthread_mutex_lock(&cs.lock);
    while (next_word(&w->kernel, &at, &word)) {
        struct cs_alloc *a = cs_find_near(word.value);
        if (a && a->guarded && a->open)
            cs_check_bytes(a, w);
    }
    pthread_mutex_unlock(&cs.lock);
}

static bool is_mapped(CUdeviceptr address)
{
    unsigned char resident;

    return mincore((void *)(uintptr_t)(address / CS_PAGE * CS_PAGE), 1, &resident) == 0;
}

/* Memory of the program that is not page-locked can be read here, and by no card. */
void cs_check_arguments(const struct cs_work *w)
{
    const struct cs_kernel *k = &w->kernel;
    uint64_t used = k->entry->reads | k->entry->writes;
    struct word word;
    size_t at = 0;

    if (!used)
        return;
    pthread_mutex_lock(&cs.lock);
    while (next_word(k, &at, &word)) {
        if (word.argument >= 64 || !(used >> word.argument & 1) || k->entry->params[word.argument].size != 8)
            continue;
        if (word.value >= CS_PAGE && !owner(word.value) && !cs_in_arena((uintptr_t)word.value) && is_mapped(word.value))
            cs_finding("kernel %s: argument %u, 0x%llx, is memory of the host that is not page-locked", k->entry->name,
                       word.argument, word.value);
    }
    pthread_mutex_unlock(&cs.lock);
}

CUdeviceptr cs_check_stale(const struct cs_work *w, unsigned *argument)
{
    struct word word;
    size_t at = 0;

    while (w->type == CU_GRAPH_NODE_TYPE_KERNEL && next_word(&w->kernel, &at, &word))
        if (grave_find(word.value)) {
            *argument = word.argument;
            return word.value;
        }
    return 0;
}

/* ---- what work touches --------------------------------------------------------------------------------------------- */

void cs_accesses_put(struct cs_accesses *l)
{
    if (!l || --l->refs > 0)
        return;
    free(l->items);
    free(l);
}

static void touch(struct cs_accesses *l, struct cs_access access)
{
    l->items = cs_grow(l->items, &l->room, l->count + 1, sizeof *l->items);
    l->items[l->count++] = access;
}

/* Rows with room between them are told one by one, unless they are many. */
static void touch_rows(struct cs_accesses *l, const struct cs_work *w, size_t node, bool write, CUdeviceptr at, size_t width,
                       size_t pitch, size_t rows)
{
    if (rows > 1024 || rows <= 1 || pitch == width) {
        if (rows <= 1024)
            touch(l, (struct cs_access){at, at + (rows - 1) * pitch + width, write, false, 0, node, w});
        return;
    }
    for (size_t i = 0; i < rows; i++)
        touch(l, (struct cs_access){at + i * pitch, at + i * pitch + width, write, false, 0, node, w});
}

static void touches(struct cs_accesses *l, const struct cs_work *w, size_t node)
{
    const CUDA_MEMCPY3D *c = &w->copy.p;
    const CUDA_MEMSET_NODE_PARAMS *m = &w->set.p;
    struct word word;
    size_t at = 0;

    switch (w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        while (next_word(&w->kernel, &at, &word))
            if (cs_find(word.value, 1) || cs_find_graph(word.value, 1)) {
                bool write = word.argument < 64 && (w->kernel.entry->writes >> word.argument & 1);
                touch(l, (struct cs_access){word.value, word.value + 1, write, true, word.argument, node, w});
            }
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        for (size_t z = 0; z < c->Depth && c->Depth <= 64; z++) {
            if (!w->copy.staged && !cs_copy_pageable_src(&w->copy))
                touch_rows(l, w, node, false, cs_copy_src(c) + z * c->srcPitch * c->srcHeight, c->WidthInBytes, c->srcPitch,
                           c->Height);
            if (!cs_copy_pageable_dst(&w->copy))
                touch_rows(l, w, node, true, cs_copy_dst(c) + z * c->dstPitch * c->dstHeight, c->WidthInBytes, c->dstPitch,
                           c->Height);
        }
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        touch_rows(l, w, node, true, m->dst, m->width * m->elementSize, m->pitch, m->height);
        break;
    case CS_WORK_FREE:
        touch(l, (struct cs_access){w->free->base, w->free->base + w->free->size, true, false, 0, node, w});
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
    case CS_WORK_CALLBACK:
        l->unknown = true;
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        for (unsigned i = 0; i < w->batch->count; i++)
            l->unknown |= w->batch->ops[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                          w->batch->ops[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
        break;
    default:
        break;
    }
}

static struct cs_accesses *accesses_new(void)
{
    struct cs_accesses *l = cs_alloc_bytes(sizeof *l);

    l->refs = 1;
    return l;
}

static struct cs_accesses *accesses_of(struct cs_op *op)
{
    struct cs_accesses *l;

    if (op->work.type == CS_WORK_GRAPH) {
        struct cs_program *p = op->work.launch->program;
        if (!p->accesses) {
            p->accesses = accesses_new();
            for (size_t i = 0; i < p->count; i++)
                touches(p->accesses, &p->steps[i].work, p->steps[i].index);
        }
        p->accesses->refs++;
        return p->accesses;
    }
    l = accesses_new();
    touches(l, &op->work, 0);
    return l;
}

/* ---- order --------------------------------------------------------------------------------------------------------- */

static bool conflict(const struct cs_access *a, const struct cs_access *b)
{
    return (a->write || b->write) && a->from < b->to && b->from < a->to &&
           (!(a->kernel && b->kernel) || cs.races == CS_RACES_KERNELS);
}

static void accuse(const struct cs_access *a, const struct cs_access *b, const char *how)
{
    static uint64_t told[256];
    static unsigned num_told;
    char first[200], second[200], where[200];
    uint64_t key = a->from * 0x9E3779B97F4A7C15u + b->from * 31 + (uint64_t)a->work->type * 7 + (uint64_t)b->work->type +
                   (a->kernel ? (uint64_t)(uintptr_t)a->work->kernel.entry : 0) * 3 +
                   (b->kernel ? (uint64_t)(uintptr_t)b->work->kernel.entry : 0) * 5;

    /* Each replay would say it again. */
    for (unsigned i = 0; i < num_told; i++)
        if (told[i] == key)
            return;
    if (num_told < 256)
        told[num_told++] = key;
    cs_describe(a->work, first, sizeof first);
    cs_describe(b->work, second, sizeof second);
    if (a->kernel)
        snprintf(first + strlen(first), sizeof first - strlen(first), ", argument %u,", a->argument);
    if (b->kernel)
        snprintf(second + strlen(second), sizeof second - strlen(second), ", argument %u,", b->argument);
    cs_finding("%s and %s %s and touch the same bytes: %s", first, second, how,
               cs_where(a->from > b->from ? a->from : b->from, where, sizeof where));
}

/* Mark, in each stream, up to where its operations come before `op`. False: something in between may wait for what is not seen
 * here. */
static bool mark_before(struct cs_op *op)
{
    bool known = true, more = true;
    size_t n;
    CUstream *all = cs_streams_running(&n);

    for (size_t i = 0; i < n; i++)
        all[i]->before = all[i] == op->stream ? op->number : 0;
    /* Until nothing is added: chains of events are short. */
    while (more) {
        more = false;
        for (size_t i = 0; i < n; i++)
            for (struct cs_op *o = all[i]->head; o && o->number <= all[i]->before; o = o->next) {
                struct cs_launch *l = o->work.type == CS_WORK_GRAPH ? o->work.launch : NULL;
                size_t events = l ? l->program->num_events : 0;

                known = known && (o == op || !o->accesses || !o->accesses->unknown);
                for (size_t k = 0; k < o->num_waits + events; k++) {
                    struct cs_fence *f = k < o->num_waits ? o->waits[k] : l->fences[k - o->num_waits];
                    if (f && f->op && f->op != o && f->op->number > f->op->stream->before) {
                        f->op->stream->before = f->op->number;
                        more = true;
                    }
                }
            }
    }
    return known;
}

/* May something that comes before the operation, and is not done, write to these bytes? */
static bool written_before(const struct cs_op *op, CUdeviceptr from, CUdeviceptr to)
{
    size_t n;
    CUstream *all = cs_streams_running(&n);

    for (size_t i = 0; i < n; i++)
        for (struct cs_op *o = all[i]->head; o && o->number <= all[i]->before; o = o->next) {
            if (o == op || !o->accesses)
                continue;
            for (size_t k = 0; k < o->accesses->count; k++) {
                const struct cs_access *a = &o->accesses->items[k];
                const struct cs_alloc *mine = cs_find(from, 1);
                /* A kernel may write anywhere in what it points to. */
                if (a->kernel ? mine && cs_find(a->from, 1) == mine : a->write && a->from < to && from < a->to)
                    return true;
            }
        }
    return false;
}

static uint64_t sum_rows(const struct cs_copy *c)
{
    const CUDA_MEMCPY3D *p = &c->p;
    const unsigned char *base = (const unsigned char *)(uintptr_t)cs_copy_src(p);
    uint64_t sum = 1469598103934665603u;

    for (size_t z = 0; z < p->Depth; z++)
        for (size_t y = 0; y < p->Height; y++) {
            const unsigned char *row = base + z * p->srcPitch * p->srcHeight + y * p->srcPitch;
            size_t i = 0;
            for (; i + 8 <= p->WidthInBytes; i += 8) {
                uint64_t w;
                memcpy(&w, row + i, 8);
                sum = (sum ^ w) * 1099511628211u;
                sum ^= sum >> 29;
            }
            for (; i < p->WidthInBytes; i++)
                sum = (sum ^ row[i]) * 1099511628211u;
        }
    return sum;
}

static CUdeviceptr source_end(const struct cs_copy *c)
{
    const CUDA_MEMCPY3D *p = &c->p;

    return cs_copy_src(p) + (p->Depth - 1) * p->srcPitch * p->srcHeight + (p->Height - 1) * p->srcPitch + p->WidthInBytes;
}

static bool from_locked(const struct cs_work *w)
{
    const struct cs_alloc *a;

    if (w->type != CU_GRAPH_NODE_TYPE_MEMCPY || w->copy.staged || w->copy.src_id == 0)
        return false;
    a = cs_find(cs_copy_src(&w->copy.p), 1);
    return a && cs_host_kind(a->kind) && a->id == w->copy.src_id;
}

/* May a step before number `end` write to the source of a copy? Host nodes may write anything. */
static bool step_writes(const struct cs_program *p, size_t end, const struct cs_copy *c)
{
    CUdeviceptr from = cs_copy_src(&c->p), to = source_end(c);
    struct cs_accesses l = {0};
    bool writes = false;

    for (size_t i = 0; i < end; i++)
        touches(&l, &p->steps[i].work, i);
    writes = l.unknown;
    for (size_t k = 0; k < l.count && !writes; k++)
        writes = l.items[k].kernel ? cs_find(l.items[k].from, 1) == cs_find(from, 1)
                                   : l.items[k].write && l.items[k].from < to && from < l.items[k].to;
    free(l.items);
    return writes;
}

static void sum_launch(struct cs_op *op)
{
    struct cs_launch *l = op->work.launch;
    struct cs_program *p = l->program;
    size_t n = 0;

    for (size_t i = 0; i < p->count; i++) {
        struct cs_step *step = &p->steps[i];
        /* Launches in flight read this, so it is as the first of them found it. */
        if (p->refs <= 2) {
            step->summed = !step->staged && from_locked(&step->work) && !step_writes(p, i, &step->work.copy);
            if (step->summed)
                step->slot = n;
        }
        if (step->summed && step->slot >= n)
            n = step->slot + 1;
    }
    if (n == 0)
        return;
    l->sums = cs_alloc_bytes(n * sizeof *l->sums);
    for (size_t i = 0; i < p->count; i++) {
        struct cs_step *step = &p->steps[i];
        if (!step->summed || !from_locked(&step->work))
            continue;
        /* 0: not taken. */
        CUdeviceptr from = cs_copy_src(&step->work.copy.p);
        l->sums[step->slot] = written_before(op, from, source_end(&step->work.copy)) ? 0 : sum_rows(&step->work.copy) | 1;
    }
}

void cs_check_source(const struct cs_copy *c, uint64_t sum)
{
    char where[200];

    if (sum == 0 || (sum_rows(c) | 1) == sum)
        return;
    pthread_mutex_lock(&cs.lock);
    cs_finding("copy of %zu bytes to 0x%llx: the host changed the source, %s, before the copy had read it",
               c->p.WidthInBytes * c->p.Height * c->p.Depth, cs_copy_dst(&c->p),
               cs_where(cs_copy_src(&c->p), where, sizeof where));
    pthread_mutex_unlock(&cs.lock);
}

void cs_check_queued(struct cs_op *op)
{
    size_t n;
    bool known;

    op->accesses = accesses_of(op);
    known = mark_before(op);
    if (known && from_locked(&op->work) && !written_before(op, cs_copy_src(&op->work.copy.p), source_end(&op->work.copy)))
        op->sum = sum_rows(&op->work.copy) | 1;
    if (known && op->work.type == CS_WORK_GRAPH)
        sum_launch(op);
    if (cs.races == CS_RACES_OFF || !known || op->accesses->unknown)
        return;
    CUstream *all = cs_streams_running(&n);
    for (size_t i = 0; i < n; i++)
        for (struct cs_op *o = all[i]->head; o; o = o->next) {
            if (o->number <= all[i]->before || o == op || !o->accesses || all[i]->ctx->device != op->stream->ctx->device)
                continue;
            for (size_t k = 0; k < o->accesses->count; k++)
                for (size_t j = 0; j < op->accesses->count; j++)
                    if (conflict(&o->accesses->items[k], &op->accesses->items[j]))
                        accuse(&o->accesses->items[k], &op->accesses->items[j], "are in two streams without order between them");
        }
}

/* ---- inside one graph ---------------------------------------------------------------------------------------------- */

/* Nodes without a path between them that touch the same bytes. */
void cs_check_graph(CUgraph g)
{
    struct cs_accesses l = {0};
    size_t words = (g->count + 63) / 64;
    uint64_t *before;

    if (cs.races == CS_RACES_OFF || g->count > 4096)
        return;
    before = cs_alloc_bytes(g->count * words * sizeof *before);
    CUgraphNode cycle, *order = cs_graph_order(g, false, &cycle);
    for (size_t i = 0; i < g->count; i++) {
        CUgraphNode n = order[i];
        for (size_t k = 0; k < n->in.count; k++) {
            size_t d = n->in.nodes[k]->index;
            for (size_t w = 0; w < words; w++)
                before[n->index * words + w] |= before[d * words + w];
            before[n->index * words + d / 64] |= 1ull << (d % 64);
        }
    }
    free(order);
    for (size_t i = 0; i < g->count; i++)
        if (!g->nodes[i]->disabled)
            touches(&l, &g->nodes[i]->work, i);
    for (size_t i = 0; i < l.count; i++)
        for (size_t k = i + 1; k < l.count; k++) {
            size_t a = l.items[i].node, b = l.items[k].node;
            if (a == b || !conflict(&l.items[i], &l.items[k]))
                continue;
            if (!(before[a * words + b / 64] >> (b % 64) & 1) && !(before[b * words + a / 64] >> (a % 64) & 1))
                accuse(&l.items[i], &l.items[k], "are nodes of one graph without order between them");
        }
    free(before);
    free(l.items);
}
