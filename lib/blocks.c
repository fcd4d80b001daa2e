/* The blocks of one arena, or those that a host notes. */
#include "blocks.h"

#include <stdlib.h>
#include <string.h>

#include "room.h"

size_t sg__blocks_index(const sg__blocks *b, CUdeviceptr address)
{
    size_t low = 0, high = b->n_live;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const sg__block *block = &b->live[middle]->block;
        if (block->start + block->bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const sg__block *sg__blocks_live_at(const sg__blocks *b, CUdeviceptr address)
{
    size_t index = sg__blocks_index(b, address);

    return index < b->n_live && b->live[index]->block.start <= address ? &b->live[index]->block : NULL;
}

stepgraph_status sg__blocks_add(sg__blocks *b, CUdeviceptr start, uint64_t bytes, const char *label, uint32_t node)
{
    size_t index = sg__blocks_index(b, start), label_bytes = label != NULL ? strlen(label) + 1 : 1;
    sg__block_record **live = sg__room(b->live, &b->live_room, b->n_live + 1, 64, sizeof(sg__block_record *)), *made;
    sg__ended *ended;

    if (live == NULL)
        return STEPGRAPH_ERR_MEMORY;
    b->live = live;
    ended = sg__room(b->ended, &b->ended_room, b->n_ended + b->n_live + 1, 64, sizeof *ended);
    if (ended == NULL)
        return STEPGRAPH_ERR_MEMORY;
    b->ended = ended;
    made = malloc(sizeof *made + label_bytes);
    if (made == NULL)
        return sg__fail_memory("host", sizeof *made + label_bytes);
    made->before = false;
    memcpy(made->label, label != NULL ? label : "", label_bytes);
    made->block = (sg__block){.start = start, .bytes = bytes, .label = made->label, .first_node = node, .last_node = UINT32_MAX};

    memmove(&b->live[index + 1], &b->live[index], (b->n_live - index) * sizeof(sg__block_record *));
    b->live[index] = made;
    b->n_live++;
    return STEPGRAPH_OK;
}

void sg__blocks_end(sg__blocks *b, size_t index, uint32_t node)
{
    sg__block_record *gone = b->live[index];

    b->n_live--;
    memmove(&b->live[index], &b->live[index + 1], (b->n_live - index) * sizeof(sg__block_record *));
    if (gone->block.first_node >= node) {
        free(gone);
        return;
    }
    gone->block.last_node = node - 1;
    b->ended[b->n_ended++].record = gone;
    b->sorted = false;
}

void sg__blocks_restart(sg__blocks *b)
{
    for (size_t i = 0; i < b->n_live; i++) {
        b->live[i]->block.first_node = 0;
        b->live[i]->before = true;
    }
    for (size_t i = 0; i < b->n_ended; i++)
        free(b->ended[i].record);
    b->n_ended = 0;
}

void sg__blocks_free(sg__blocks *b)
{
    for (size_t i = 0; i < b->n_live; i++)
        free(b->live[i]);
    for (size_t i = 0; i < b->n_ended; i++)
        free(b->ended[i].record);
    free(b->live);
    free(b->ended);
}

static int by_address_and_time(const void *a, const void *b)
{
    const sg__block *x = &((const sg__ended *)a)->record->block, *y = &((const sg__ended *)b)->record->block;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->first_node < y->first_node ? -1 : x->first_node > y->first_node;
}

/* Fill in what subtrees span; the root of this one. */
static const sg__ended *make_tree(sg__ended *items, size_t n)
{
    sg__ended *root = &items[n / 2];
    const sg__block *block;
    const sg__ended *sides[2];

    if (n == 0)
        return NULL;
    block = &root->record->block;
    root->end = block->start + block->bytes;
    root->first_node = block->first_node;
    root->last_node = block->last_node;
    sides[0] = make_tree(items, n / 2);
    sides[1] = make_tree(root + 1, n - n / 2 - 1);
    for (int i = 0; i < 2; i++)
        if (sides[i] != NULL) {
            root->end = sides[i]->end > root->end ? sides[i]->end : root->end;
            root->first_node = sides[i]->first_node < root->first_node ? sides[i]->first_node : root->first_node;
            root->last_node = sides[i]->last_node > root->last_node ? sides[i]->last_node : root->last_node;
        }
    return root;
}

static const sg__block *ended_at(const sg__ended *items, size_t n, CUdeviceptr address, uint32_t node)
{
    const sg__ended *root = &items[n / 2];
    const sg__block *block, *found;

    if (n == 0 || address >= root->end || node < root->first_node || node > root->last_node)
        return NULL;
    block = &root->record->block;
    found = ended_at(items, n / 2, address, node);
    if (found != NULL || address < block->start)
        return found;
    if (address - block->start < block->bytes && node >= block->first_node && node <= block->last_node)
        return block;
    return ended_at(root + 1, n - n / 2 - 1, address, node);
}

const sg__block *sg__blocks_at(sg__blocks *b, CUdeviceptr address, uint32_t node)
{
    const sg__block *block = sg__blocks_live_at(b, address);

    if (block != NULL && block->first_node <= node)
        return block;
    if (b->n_ended == 0)
        return NULL;
    if (!b->sorted) {
        qsort(b->ended, b->n_ended, sizeof *b->ended, by_address_and_time);
        (void)make_tree(b->ended, b->n_ended);
        b->sorted = true;
    }
    return ended_at(b->ended, b->n_ended, address, node);
}

bool sg__blocks_begins_at(const sg__blocks *b, CUdeviceptr address, size_t *index_out)
{
    *index_out = sg__blocks_index(b, address);
    return *index_out < b->n_live && b->live[*index_out]->block.start == address;
}

size_t sg__blocks_carried(const sg__blocks *b, sg__carried *out)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n_live + b->n_ended; i++) {
        const sg__block_record *one = i < b->n_live ? b->live[i] : b->ended[i - b->n_live].record;
        if (!one->before)
            continue;
        if (out != NULL)
            out[n] = (sg__carried){.start = one->block.start, .bytes = one->block.bytes, .last_node = one->block.last_node, .label = one->label};
        n++;
    }
    return n;
}

static bool covers(const sg__block *block, CUdeviceptr address)
{
    return address >= block->start && address - block->start < block->bytes;
}

/* How far a block is from a node: those before it come before all those after it. */
static uint64_t distance(const sg__block *block, uint32_t node)
{
    return block->last_node < node ? node - block->last_node : (uint64_t)1 << 32 | block->first_node;
}

/* Rare, so all of them are looked at. */
const sg__block *sg__blocks_near(const sg__blocks *b, CUdeviceptr address, uint32_t node)
{
    const sg__block *best = sg__blocks_live_at(b, address);

    for (size_t i = 0; i < b->n_ended; i++) {
        const sg__block *block = &b->ended[i].record->block;
        if (covers(block, address) && (best == NULL || distance(block, node) < distance(best, node)))
            best = block;
    }
    return best;
}

bool sg__blocks_any_in(const sg__blocks *b, CUdeviceptr start, uint64_t bytes)
{
    size_t index = sg__blocks_index(b, start);

    if (index < b->n_live && b->live[index]->block.start < start + bytes)
        return true;
    for (size_t i = 0; i < b->n_ended; i++)
        if (b->ended[i].record->block.start - start < bytes)
            return true;
    return false;
}
