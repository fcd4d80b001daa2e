/*
 * Arenas: a host-side allocator over one range of device memory; and what a session knows about blocks, those that a host notes included.
 *
 * Lists are sorted arrays, searched by halves: the blocks that are out by address (blocks.h), the free ranges by address for joining neighbours
 * and by size for the best fit. Putting in and taking out moves the rest of an array along. A call costs 0.3 us with 1,000 blocks out in random
 * order, 0.8 us with 3,000, 2 us with 10,000 and 15 us with 100,000, where a tree would begin to pay.
 *
 * All room that giving a block back may need is made when the block is taken, so that giving back cannot fail.
 */
#include "arena_p.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "pin_p.h"
#include "room.h"
#include "structs.h"

#define BLOCK_ALIGNMENT 256u

typedef struct range {
    CUdeviceptr start;
    uint64_t bytes;
} range;

typedef struct ranges {
    range *items;
    size_t n, room;
} ranges;

struct stepgraph_arena {
    stepgraph_arena *next;
    stepgraph_session *session;
    stepgraph_pin *pin; /* The memory. */
    uint64_t quarantine_bytes;
    sg__blocks blocks;
    ranges by_start, by_bytes; /* Free. */
    ranges queue;              /* Given back, and not free yet: from `head` on, the oldest first. */
    size_t head;
    stepgraph_arena_stats stats;
};

struct sg__arenas {
    stepgraph_arena *arenas;
    sg__blocks noted;
    uint32_t nodes; /* How many the recording held when it was last looked at. */
};

/* ---- blocks in messages ------------------------------------------------------------------------------------------ */

/* "block 'x' (256 bytes at 0x1000)". */
static const char *describe(const sg__block *block, char *text, size_t bytes)
{
    bool named = block->label[0] != '\0';

    snprintf(text, bytes, "block %s%s%s(%llu bytes at 0x%llx)", named ? "'" : "", block->label, named ? "' " : "",
             (unsigned long long)block->bytes, block->start);
    return text;
}

/* No block begins at address: say what is there. */
static stepgraph_status refuse_free(const sg__blocks *b, CUdeviceptr address, const char *where)
{
    const sg__block *block = sg__blocks_live_at(b, address);
    char text[256];

    if (block != NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "0x%llx lies inside a block of %s and is not freed: %s goes as a whole", address, where,
                        describe(block, text, sizeof text));
    return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no block of %s begins at 0x%llx: it was freed before, or came from elsewhere", where, address);
}

/* ---- what a session knows about blocks --------------------------------------------------------------------------- */

static stepgraph_status find_arenas(stepgraph_session *session)
{
    if (session->arenas == NULL)
        session->arenas = calloc(1, sizeof *session->arenas);
    return session->arenas != NULL ? STEPGRAPH_OK : sg__fail_memory("host", sizeof *session->arenas);
}

void sg__arenas_free(stepgraph_session *session)
{
    if (session->arenas != NULL)
        sg__blocks_free(&session->arenas->noted);
    free(session->arenas);
}

static size_t gather_all_carried(const sg__arenas *arenas, sg__carried *out)
{
    size_t n = sg__blocks_carried(&arenas->noted, out);

    for (const stepgraph_arena *arena = arenas->arenas; arena != NULL; arena = arena->next)
        n += sg__blocks_carried(&arena->blocks, out != NULL ? out + n : NULL);
    return n;
}

static int by_place(const void *a, const void *b)
{
    const sg__carried *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

stepgraph_status sg__arenas_carried(const stepgraph_session *session, sg__carried **carried_out, size_t *n_out)
{
    size_t n = session->arenas != NULL ? gather_all_carried(session->arenas, NULL) : 0, bytes = n * sizeof(sg__carried);
    sg__carried *list, *larger;
    char *label;

    *carried_out = NULL;
    *n_out = 0;
    if (n == 0)
        return STEPGRAPH_OK;
    list = malloc(bytes);
    if (list == NULL)
        return sg__fail_memory("host", bytes);
    gather_all_carried(session->arenas, list);
    for (size_t i = 0; i < n; i++)
        bytes += strlen(list[i].label) + 1;
    larger = realloc(list, bytes); /* Blocks end with the recordings after this one: the labels stand behind the list. */
    if (larger == NULL) {
        free(list);
        return sg__fail_memory("host", bytes);
    }
    list = larger;
    label = (char *)(list + n);
    for (size_t i = 0; i < n; i++) {
        const size_t length = strlen(list[i].label) + 1;
        list[i].label = memcpy(label, list[i].label, length);
        label += length;
    }
    qsort(list, n, sizeof *list, by_place);
    *carried_out = list;
    *n_out = n;
    return STEPGRAPH_OK;
}

const sg__carried *sg__carried_at(const sg__carried *list, size_t n, CUdeviceptr address, uint32_t node)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].start + list[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && list[low].start <= address && list[low].last_node >= node ? &list[low] : NULL;
}

/* The number of the node that is recorded next, UINT32_MAX outside a recording. In a broken recording, which comes to nothing, it is the
 * last number that was seen. */
static uint32_t next_node(const stepgraph_session *session)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    sg__arenas *arenas = session->arenas;
    CUgraph graph = NULL;
    size_t nodes = 0;

    if (session->capturing == NULL)
        return UINT32_MAX;
    if (!sg__session_lives(session) || session->driver->StreamGetCaptureInfo(session->stream, &capture, NULL, &graph, NULL, NULL) != CUDA_SUCCESS ||
        capture != CU_STREAM_CAPTURE_STATUS_ACTIVE || session->driver->GraphGetNodes(graph, NULL, &nodes) != CUDA_SUCCESS)
        return arenas->nodes;
    arenas->nodes = (uint32_t)nodes;
    return arenas->nodes;
}

/* The arena whose range this one touches, or NULL. */
static stepgraph_arena *arena_of(const stepgraph_session *session, range extent)
{
    stepgraph_arena *arena = session->arenas->arenas;

    while (arena != NULL && (extent.start >= arena->stats.address + arena->stats.bytes || extent.start + extent.bytes <= arena->stats.address))
        arena = arena->next;
    return arena;
}

bool sg__arena_gap(const stepgraph_session *session, const stepgraph_pin *pin, CUdeviceptr from, CUdeviceptr *start_out, uint64_t *bytes_out)
{
    const stepgraph_arena *arena = session->arenas != NULL ? session->arenas->arenas : NULL;
    CUdeviceptr end = pin->address + pin->bytes;
    size_t index;

    while (arena != NULL && arena->pin != pin)
        arena = arena->next;
    if (arena == NULL)
        return false;
    index = sg__blocks_index(&arena->blocks, from);
    while (index < arena->blocks.n_live && arena->blocks.live[index]->block.start <= from) {
        from = arena->blocks.live[index]->block.start + arena->blocks.live[index]->block.bytes;
        index++;
    }
    if (from >= end)
        return false;
    *start_out = from;
    *bytes_out = (index < arena->blocks.n_live ? arena->blocks.live[index]->block.start : end) - from;
    return true;
}

bool sg__arena_notes(const stepgraph_session *session, CUdeviceptr start, uint64_t bytes)
{
    return session->arenas != NULL && sg__blocks_any_in(&session->arenas->noted, start, bytes);
}

/* The list that an address belongs to. There is one. */
static sg__blocks *blocks_of(const stepgraph_session *session, CUdeviceptr address)
{
    stepgraph_arena *arena = arena_of(session, (range){.start = address, .bytes = 1});

    return arena != NULL ? &arena->blocks : &session->arenas->noted;
}

bool sg__arena_block_at(const stepgraph_session *session, CUdeviceptr address, uint32_t node, sg__block *out)
{
    const sg__block *found = session->arenas != NULL ? sg__blocks_at(blocks_of(session, address), address, node) : NULL;

    if (found != NULL)
        *out = *found;
    return found != NULL;
}

bool sg__arena_block_near(const stepgraph_session *session, CUdeviceptr address, uint32_t node, sg__block *out)
{
    const sg__block *found = session->arenas != NULL ? sg__blocks_near(blocks_of(session, address), address, node) : NULL;

    if (found != NULL)
        *out = *found;
    return found != NULL;
}

bool sg__arenas_any(const stepgraph_session *session)
{
    const sg__arenas *arenas = session->arenas;

    if (arenas == NULL)
        return false;
    for (const stepgraph_arena *arena = arenas->arenas; arena != NULL; arena = arena->next)
        if (arena->blocks.n_live + arena->blocks.n_ended > 0)
            return true;
    return arenas->noted.n_live + arenas->noted.n_ended > 0;
}

/* ---- free ranges ------------------------------------------------------------------------------------------------- */

/* Where a range stands, or would stand. */
static size_t place(const ranges *list, range r, bool by_bytes)
{
    size_t low = 0, high = list->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        range other = list->items[middle];
        if (by_bytes && other.bytes != r.bytes ? other.bytes < r.bytes : other.start < r.start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void put(ranges *list, size_t index, range r)
{
    memmove(&list->items[index + 1], &list->items[index], (list->n - index) * sizeof r);
    list->items[index] = r;
    list->n++;
}

static void take(ranges *list, size_t index)
{
    list->n--;
    memmove(&list->items[index], &list->items[index + 1], (list->n - index) * sizeof *list->items);
}

/* Add to the free ranges, together with the neighbours on both sides. */
static void add_free(stepgraph_arena *arena, range r)
{
    ranges *list = &arena->by_start;
    size_t index = place(list, r, false);
    bool before = index > 0 && list->items[index - 1].start + list->items[index - 1].bytes == r.start;
    bool after = index < list->n && r.start + r.bytes == list->items[index].start;

    if (before) {
        range neighbour = list->items[index - 1];
        take(&arena->by_bytes, place(&arena->by_bytes, neighbour, true));
        r = (range){.start = neighbour.start, .bytes = neighbour.bytes + r.bytes};
    }
    if (after) {
        range neighbour = list->items[index];
        take(&arena->by_bytes, place(&arena->by_bytes, neighbour, true));
        r.bytes += neighbour.bytes;
    }
    if (before && after)
        take(list, index);
    if (before)
        list->items[index - 1] = r;
    else if (after)
        list->items[index] = r;
    else
        put(list, index, r);
    put(&arena->by_bytes, place(&arena->by_bytes, r, true), r);
}

/* Take the first bytes of a free range; index is its place by size. */
static range take_free(stepgraph_arena *arena, size_t index, uint64_t bytes)
{
    range whole = arena->by_bytes.items[index], rest = {.start = whole.start + bytes, .bytes = whole.bytes - bytes};
    size_t index_by_start = place(&arena->by_start, whole, false);

    take(&arena->by_bytes, index);
    if (rest.bytes == 0) {
        take(&arena->by_start, index_by_start);
    } else {
        arena->by_start.items[index_by_start] = rest;
        put(&arena->by_bytes, place(&arena->by_bytes, rest, true), rest);
    }
    return (range){.start = whole.start, .bytes = bytes};
}

/* Blocks leave the queue, the oldest first, until fewer than so many bytes came after the next one; 0: all leave. */
static void empty_queue(stepgraph_arena *arena, uint64_t bytes)
{
    ranges *queue = &arena->queue;

    while (queue->n > 0) {
        range oldest = queue->items[arena->head];
        if (arena->stats.waiting - oldest.bytes < bytes)
            break;
        arena->head++;
        queue->n--;
        arena->stats.waiting -= oldest.bytes;
        add_free(arena, oldest);
    }
}

/* A block enters the queue; those that have seen enough bytes enter after them leave it. */
static void queue_block(stepgraph_arena *arena, range r)
{
    ranges *queue = &arena->queue;

    if (arena->head + queue->n == queue->room) {
        memmove(queue->items, &queue->items[arena->head], queue->n * sizeof r);
        arena->head = 0;
    }
    queue->items[arena->head + queue->n++] = r;
    arena->stats.waiting += r.bytes;
    empty_queue(arena, arena->quarantine_bytes);
}

void sg__arenas_record(stepgraph_session *session)
{
    sg__arenas *arenas = session->arenas;

    if (arenas == NULL)
        return;
    sg__blocks_restart(&arenas->noted);
    for (stepgraph_arena *arena = arenas->arenas; arena != NULL; arena = arena->next) {
        sg__blocks_restart(&arena->blocks);
        empty_queue(arena, 0); /* What was freed before no node of this recording uses. */
    }
    arenas->nodes = 0;
}

/* Room for one range more, wherever each of them goes. Twice as much for the queue, so that it seldom moves to the front. */
static stepgraph_status make_room(stepgraph_arena *arena)
{
    size_t n = arena->blocks.n_live + arena->queue.n + arena->by_start.n + 1;
    struct {
        ranges *list;
        size_t n;
    } needs[] = {{&arena->by_start, n}, {&arena->by_bytes, n}, {&arena->queue, 2 * n}};

    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        range *larger = sg__room(needs[i].list->items, &needs[i].list->room, needs[i].n, 64, sizeof *larger);
        if (larger == NULL)
            return STEPGRAPH_ERR_MEMORY;
        needs[i].list->items = larger;
    }
    return STEPGRAPH_OK;
}

/* ---- create and destroy ------------------------------------------------------------------------------------------ */

static void free_arena(stepgraph_arena *arena)
{
    sg__blocks_free(&arena->blocks);
    free(arena->by_start.items);
    free(arena->by_bytes.items);
    free(arena->queue.items);
    free(arena);
}

/* Its bytes, rounded up to whole blocks; 0 if that is more than a number can hold. */
static uint64_t round_up(uint64_t bytes)
{
    return (bytes + BLOCK_ALIGNMENT - 1) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
}

stepgraph_status stepgraph_arena_create(stepgraph_session *session, const stepgraph_arena_config *given, stepgraph_arena **arena_out)
{
    stepgraph_pin_config pin = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_arena_config config;
    stepgraph_arena *arena;
    stepgraph_status status;

    sg__error_clear();
    if (session == NULL || given == NULL || arena_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no arena can be made: session, config or arena_out is NULL");
    status = sg__struct_read(&config, sizeof config, offsetof(stepgraph_arena_config, quarantine_bytes), given, "stepgraph_arena_config");
    if (status != STEPGRAPH_OK)
        return status;
    if (config.name == NULL)
        config.name = "arena";
    status = sg__name_check("arena", config.name);
    if (status != STEPGRAPH_OK)
        return status;
    if (config.bytes == 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "arena '%s' has no bytes", config.name);
    if (round_up(config.bytes) == 0)
        return sg__fail(STEPGRAPH_ERR_MEMORY, "arena '%s': no device has %llu bytes", config.name, (unsigned long long)config.bytes);
    status = sg__not_capturing(session, "an arena cannot be made");
    if (status == STEPGRAPH_OK)
        status = find_arenas(session);
    if (status != STEPGRAPH_OK)
        return status;

    arena = calloc(1, sizeof *arena);
    if (arena == NULL)
        return sg__fail_memory("host", sizeof *arena);
    status = make_room(arena);
    if (status == STEPGRAPH_OK) {
        pin.role = STEPGRAPH_ROLE_SCRATCH;
        pin.bytes = round_up(config.bytes);
        pin.name = config.name;
        status = stepgraph_pin_create(session, &pin, &arena->pin);
        if (status != STEPGRAPH_OK)
            sg__fail_prefix(status, "arena '%s' cannot be made: ", config.name);
    }
    if (status != STEPGRAPH_OK) {
        free_arena(arena);
        return status;
    }
    arena->session = session;
    arena->pin->in_arena = true;
    arena->quarantine_bytes = config.quarantine_bytes;
    arena->stats.address = arena->pin->address;
    arena->stats.bytes = arena->pin->bytes;
    add_free(arena, (range){.start = arena->pin->address, .bytes = arena->pin->bytes});
    arena->next = session->arenas->arenas;
    session->arenas->arenas = arena;
    *arena_out = arena;
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_arena_destroy(stepgraph_arena *arena)
{
    stepgraph_arena **link;
    stepgraph_status status;

    sg__error_clear();
    if (arena == NULL)
        return STEPGRAPH_OK;
    status = sg__not_capturing(arena->session, "an arena cannot be destroyed");
    if (status == STEPGRAPH_OK) {
        arena->pin->in_arena = false;
        status = stepgraph_pin_destroy(arena->pin);
        if (status != STEPGRAPH_OK) {
            arena->pin->in_arena = true;
            sg__fail_prefix(status, "arena '%s' cannot be destroyed: ", arena->pin->name);
        }
    }
    if (status != STEPGRAPH_OK)
        return status;
    link = &arena->session->arenas->arenas;
    while (*link != arena)
        link = &(*link)->next;
    *link = arena->next;
    free_arena(arena);
    return STEPGRAPH_OK;
}

/* ---- alloc and free ---------------------------------------------------------------------------------------------- */

static uint64_t largest(const stepgraph_arena *arena)
{
    return arena->by_bytes.n > 0 ? arena->by_bytes.items[arena->by_bytes.n - 1].bytes : 0;
}

stepgraph_status stepgraph_arena_alloc(stepgraph_arena *arena, uint64_t bytes, const char *label, uint64_t *address_out)
{
    stepgraph_arena_stats *stats;
    stepgraph_status status;
    size_t index;
    range found;

    sg__error_clear();
    if (arena == NULL || address_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no block can be had: %s is NULL", arena == NULL ? "the arena" : "address_out");
    if (bytes == 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "arena '%s' was asked for a block of no bytes", arena->pin->name);
    status = sg__name_check("block", label);
    if (status != STEPGRAPH_OK)
        return status;
    stats = &arena->stats;
    if (bytes > largest(arena))
        return sg__log_failure(arena->session,
                               sg__fail(STEPGRAPH_ERR_MEMORY,
                                        "arena '%s': %llu bytes were asked for, and the largest free range has %llu (of %llu bytes, %llu are in use "
                                        "and %llu wait in the queue): make the arena larger, or its quarantine_bytes smaller",
                                        arena->pin->name, (unsigned long long)bytes, (unsigned long long)largest(arena),
                                        (unsigned long long)stats->bytes, (unsigned long long)stats->used, (unsigned long long)stats->waiting));
    status = make_room(arena);
    if (status != STEPGRAPH_OK)
        return status;
    index = place(&arena->by_bytes, (range){.start = 0, .bytes = round_up(bytes)}, true);
    found = (range){.start = arena->by_bytes.items[index].start, .bytes = round_up(bytes)};
    status = sg__blocks_add(&arena->blocks, found.start, found.bytes, label, next_node(arena->session));
    if (status != STEPGRAPH_OK)
        return status;
    (void)take_free(arena, index, found.bytes);

    stats->blocks++;
    stats->used += found.bytes;
    if (stats->used > stats->peak)
        stats->peak = stats->used;
    *address_out = found.start;
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_arena_free(stepgraph_arena *arena, uint64_t address)
{
    char where[128];
    size_t index;
    range freed;

    sg__error_clear();
    if (arena == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no arena to give a block back to: the pointer is NULL");
    if (address == 0)
        return STEPGRAPH_OK;
    if (!sg__blocks_begins_at(&arena->blocks, address, &index)) {
        snprintf(where, sizeof where, "arena '%s'", arena->pin->name);
        return sg__log_failure(arena->session, refuse_free(&arena->blocks, address, where));
    }
    freed = (range){.start = address, .bytes = arena->blocks.live[index]->block.bytes};
    sg__blocks_end(&arena->blocks, index, next_node(arena->session));
    arena->stats.blocks--;
    arena->stats.used -= freed.bytes;
    queue_block(arena, freed);
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_arena_get_stats(const stepgraph_arena *arena, stepgraph_arena_stats *stats_out)
{
    stepgraph_arena_stats stats;

    sg__error_clear();
    if (arena == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no arena to ask: the pointer is NULL");
    stats = arena->stats;
    stats.largest = largest(arena);
    return sg__struct_write(stats_out, &stats, sizeof stats, offsetof(stepgraph_arena_stats, used), "stepgraph_arena_stats");
}

/* ---- blocks of the host's own pools ------------------------------------------------------------------------------ */

stepgraph_status stepgraph_arena_note_alloc(stepgraph_session *session, uint64_t address, uint64_t bytes, const char *label)
{
    const stepgraph_arena *arena;
    stepgraph_status status;
    char text[256];
    sg__blocks *noted;
    size_t index;

    sg__error_clear();
    if (session == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no session to note a block in: the pointer is NULL");
    if (bytes == 0 || address + bytes < bytes)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no block to note: %llu bytes at 0x%llx", (unsigned long long)bytes, (unsigned long long)address);
    status = sg__name_check("block", label);
    if (status == STEPGRAPH_OK)
        status = find_arenas(session);
    if (status != STEPGRAPH_OK)
        return status;
    arena = arena_of(session, (range){.start = address, .bytes = bytes});
    if (arena != NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "%llu bytes at 0x%llx lie in arena '%s', which knows its blocks by itself",
                        (unsigned long long)bytes, (unsigned long long)address, arena->pin->name);
    noted = &session->arenas->noted;
    index = sg__blocks_index(noted, address);
    if (index < noted->n_live && noted->live[index]->block.start < address + bytes)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "%llu bytes at 0x%llx overlap a block that is in use, %s: note that it is free first",
                        (unsigned long long)bytes, (unsigned long long)address, describe(&noted->live[index]->block, text, sizeof text));
    return sg__blocks_add(noted, address, bytes, label, next_node(session));
}

stepgraph_status stepgraph_arena_note_free(stepgraph_session *session, uint64_t address)
{
    const sg__blocks none = {0};
    size_t index;

    sg__error_clear();
    if (session == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no session to note a block in: the pointer is NULL");
    if (session->arenas == NULL || !sg__blocks_begins_at(&session->arenas->noted, address, &index))
        return refuse_free(session->arenas != NULL ? &session->arenas->noted : &none, address, "those that were noted");
    sg__blocks_end(&session->arenas->noted, index, next_node(session));
    return STEPGRAPH_OK;
}
