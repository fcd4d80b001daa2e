/*
 * Introduces the reason for pins: a caching allocator, as every framework has one.
 *
 * Freed blocks are kept and handed out again, the latest first. An optimizer that writes a new parameter before it frees the old
 * one therefore finds it in another block after every step, and a graph that was recorded over the old block knows nothing of it.
 *
 * All work goes to one stream, so a block may be handed out again at once: what is enqueued later runs later. The one exception
 * is a graph: it goes on using the blocks that it was recorded with. While a step records, blocks therefore come from a pool of
 * their own, which is covered by a pin and from which nobody else is served. The library is told of each of them, so that it knows
 * where in the pin one ends and the next begins.
 */
#include "quickstart.h"

#include <stdlib.h>

uint64_t cache_rounded(uint64_t bytes)
{
    return (bytes + 511) / 512 * 512;
}

/* A block that was not there before. */
static int make(struct cache *cache, uint64_t bytes, struct block **block_out)
{
    struct block *block = calloc(1, sizeof *block);

    if (block == NULL)
        return fail(EXIT_INPUT, "out of host memory: %zu bytes for the allocator", sizeof *block);
    block->bytes = bytes;
    block->pooled = cache->private;

    if (cache->private) {
        if (bytes > cache->pool_bytes - cache->pool_used) {
            free(block);
            return fail(EXIT_STORY, "the private pool of %llu bytes is too small", (unsigned long long)cache->pool_bytes);
        }
        block->address = cache->pool + cache->pool_used;
        cache->pool_used += bytes;
    } else {
        int code = cache->driver->allocate(&block->address, bytes);
        if (code != 0) {
            free(block);
            if (code == 2)
                return fail(EXIT_INPUT, "out of device memory: %llu bytes for a parameter; make --width or --layers smaller",
                            (unsigned long long)bytes);
            return driver_check(code, "cuMemAlloc");
        }
    }

    block->next = cache->blocks;
    cache->blocks = block;
    *block_out = block;
    return 0;
}

static int take(struct cache *cache, uint64_t bytes, struct block **block_out)
{
    for (struct block **link = &cache->free[cache->private]; *link != NULL; link = &(*link)->next_free)
        if ((*link)->bytes == bytes) {
            *block_out = *link;
            *link = (*link)->next_free;
            return 0;
        }
    return make(cache, bytes, block_out);
}

int cache_allocate(struct cache *cache, uint64_t bytes, struct block **block_out)
{
    TRY(take(cache, cache_rounded(bytes), block_out));
    if (!(*block_out)->pooled)
        return 0;
    return library(stepgraph_arena_note_alloc(cache->driver->session, (*block_out)->address, (*block_out)->bytes, NULL));
}

int cache_free(struct cache *cache, struct block *block)
{
    if (block == NULL)
        return 0;
    block->next_free = cache->free[block->pooled];
    cache->free[block->pooled] = block;
    return block->pooled ? library(stepgraph_arena_note_free(cache->driver->session, block->address)) : 0;
}

/* In every recording the same step is to get the same blocks, or recordings could not be compared. The first one took the blocks
 * of the pool from the lowest upwards, so that is how they are laid out again. */
void cache_record(struct cache *cache, bool on)
{
    struct block *sorted = NULL;

    cache->private = on;
    while (on && cache->free[true] != NULL) {
        struct block *block = cache->free[true], **link = &sorted;
        cache->free[true] = block->next_free;
        while (*link != NULL && (*link)->address < block->address)
            link = &(*link)->next_free;
        block->next_free = *link;
        *link = block;
    }
    if (on)
        cache->free[true] = sorted;
}

int cache_destroy(struct cache *cache)
{
    int status = 0;

    while (cache->blocks != NULL) {
        struct block *block = cache->blocks;
        cache->blocks = block->next;
        if (!block->pooled && status == 0)
            status = driver_check(cache->driver->release(block->address), "cuMemFree");
        free(block);
    }
    cache->free[0] = cache->free[1] = NULL;
    return status;
}
