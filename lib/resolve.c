#include "resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena_p.h"
#include "line.h"
#include "pin_p.h"
#include "room.h"
#include "step_p.h"

/* ---- lists of allocations ---------------------------------------------------------------------------------------- */

/* Index of the first item that ends beyond address. */
static size_t find(const sg__allocations *list, CUdeviceptr address)
{
    size_t low = 0, high = list->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->items[middle].start + list->items[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const sg__allocation *sg__allocation_at(const sg__allocations *list, CUdeviceptr address)
{
    size_t index;

    if (list->n == 0 || address < list->items[0].start) /* Most numbers that are none. */
        return NULL;
    index = find(list, address);
    return index < list->n && list->items[index].start <= address ? &list->items[index] : NULL;
}

sg__allocation *sg__allocation_add(sg__allocations *list, const sg__allocation *item)
{
    size_t first = find(list, item->start), last = first;

    while (last < list->n && list->items[last].start < item->start + item->bytes)
        last++;
    if (first == last) {
        sg__allocation *items = sg__room(list->items, &list->room, list->n + 1, 16, sizeof *items);
        if (items == NULL)
            return NULL;
        list->items = items;
    }
    memmove(&list->items[first + 1], &list->items[last], (list->n - last) * sizeof *list->items);
    list->n = list->n + 1 - (last - first);
    list->items[first] = *item;
    return &list->items[first];
}

void sg__allocation_remove(sg__allocations *list, CUdeviceptr start)
{
    size_t index = find(list, start);

    if (index == list->n || list->items[index].start != start)
        return;
    list->n--;
    memmove(&list->items[index], &list->items[index + 1], (list->n - index) * sizeof *list->items);
}

void sg__allocations_free(sg__allocations *list)
{
    free(list->items);
    memset(list, 0, sizeof *list);
}

/* ---- what the driver knows --------------------------------------------------------------------------------------- */

stepgraph_status sg__allocation_ask(const sg__driver *driver, CUdeviceptr address, sg__allocation *out)
{
    CUmemorytype type = 0;
    unsigned long long id = 0;
    CUdeviceptr start = address;
    CUcontext context = NULL;
    CUmemoryPool pool = NULL;
    size_t bytes = 0;
    int device = 0;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_BUFFER_ID,  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                                        CU_POINTER_ATTRIBUTE_CONTEXT};
    void *values[] = {&type, &id, &device, &start, &bytes, &pool, &context};
    stepgraph_status status;

    /* All in one call, which is also the cheap way to ask about an address that is unknown. Start and size are then left as they were. */
    SG__CU(driver, PointerGetAttributes, sizeof attributes / sizeof *attributes, attributes, values, address);
    *out = (sg__allocation){.start = start, .bytes = bytes != 0 ? bytes : 1, .buffer_id = id, .type = type, .device = device, .context = context, .pool = pool != NULL,
                            .node = SG__NO_NODE};
    return STEPGRAPH_OK;

fail:
    return status;
}

stepgraph_status sg__allocation_look(const sg__driver *driver, CUdeviceptr address, sg__allocation *out)
{
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    CUmemorytype type = 0;
    void *value = &type;
    stepgraph_status status;

    SG__CU(driver, PointerGetAttributes, 1, &attribute, &value, address);
    if (type != 0)
        return sg__allocation_ask(driver, address, out);
    *out = (sg__allocation){.start = address, .bytes = 1, .node = SG__NO_NODE};
    return STEPGRAPH_OK;

fail:
    return status;
}

stepgraph_status sg__seen_add(stepgraph_session *session, const sg__allocation *item)
{
    return sg__allocation_add(&session->seen, item) != NULL ? STEPGRAPH_OK : STEPGRAPH_ERR_MEMORY;
}

/* " pin 'x'," where the memory is that of an adopted pin, else nothing. */
static const char *pin_in(const stepgraph_step *step, const sg__allocation *allocation, char *text, size_t bytes)
{
    text[0] = '\0';
    for (size_t i = 0; i < step->n_used && text[0] == '\0'; i++)
        if (step->used[i]->address >= allocation->start && step->used[i]->address < allocation->start + allocation->bytes)
            snprintf(text, bytes, " pin '%.100s',", step->used[i]->name);
    return text;
}

static stepgraph_status check_one(const stepgraph_step *step, const sg__allocation *was)
{
    stepgraph_status status;
    sg__allocation is;
    char name[256] = "a commit", pin[128];

    status = sg__allocation_ask(step->session->driver, was->start, &is);
    if (status != STEPGRAPH_OK)
        return status;
    if (is.type != 0 && is.buffer_id == was->buffer_id)
        return STEPGRAPH_OK;
    if (was->node < step->read.n_nodes)
        snprintf(name, sizeof name, "node %u, '%.90s',%s", was->node, sg__node_name(&step->read.nodes[was->node]), pin_in(step, was, pin, sizeof pin));
    if (is.type == 0)
        return sg__fail(STEPGRAPH_ERR_REFUSED,
                        "step '%s' cannot be replayed any more: %s uses %llu bytes at 0x%llx, which were freed since; keep them allocated while the "
                        "graph lives, or pin them",
                        step->name, name, (unsigned long long)was->bytes, was->start);
    return sg__fail(STEPGRAPH_ERR_REFUSED,
                    "step '%s' cannot be replayed any more: %s uses %llu bytes at 0x%llx, which were freed and the address given out again (buffer "
                    "id %llu, now %llu); keep them allocated while the graph lives, or pin them",
                    step->name, name, (unsigned long long)was->bytes, was->start, (unsigned long long)was->buffer_id,
                    (unsigned long long)is.buffer_id);
}

stepgraph_status sg__allocations_check(const stepgraph_step *step)
{
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t i = 0; i < step->allocations.n && status == STEPGRAPH_OK; i++)
        if (!step->allocations.items[i].pool)
            status = check_one(step, &step->allocations.items[i]);
    return status;
}

/* The copied ones first: they are looked at more often. */
static void list_allocations(stepgraph_step *step, bool copied)
{
    for (size_t i = 0; i < step->allocations.n; i++) {
        const sg__allocation *item = &step->allocations.items[i];
        if (!item->pool && item->copied == copied)
            step->looks[step->n_looks++] = (sg__look){.address = item->start, .buffer_id = item->buffer_id};
    }
}

stepgraph_status sg__looks_list(stepgraph_step *step)
{
    size_t n = step->allocations.n + step->n_watched;

    step->looks = malloc((n + 1) * sizeof *step->looks);
    if (step->looks == NULL)
        return sg__fail_memory("host", (n + 1) * sizeof *step->looks);
    list_allocations(step, true);
    step->n_copied = step->n_looks;
    list_allocations(step, false);
    for (size_t i = 0; i < step->n_watched; i++)
        step->looks[step->n_looks++] = (sg__look){.address = step->watched[i]->address, .buffer_id = step->watched[i]->buffer_id};
    return STEPGRAPH_OK;
}

stepgraph_status sg__looks_same(const stepgraph_step *step, size_t n, bool *same)
{
    const sg__driver *driver = step->session->driver;

    *same = true;
    for (size_t i = 0; i < n && *same; i++) {
        unsigned long long id = 0;
        CUresult code = driver->PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, step->looks[i].address);

        /* Of an address that means nothing to the driver it says that the value is invalid. */
        if (code != CUDA_SUCCESS && code != CUDA_ERROR_INVALID_VALUE)
            return sg__fail_driver(driver, "cuPointerGetAttribute", code);
        *same = code == CUDA_SUCCESS && id == step->looks[i].buffer_id;
    }
    return STEPGRAPH_OK;
}

/* ---- what a step knows ------------------------------------------------------------------------------------------- */

static bool owned_by_graph(const stepgraph_step *step, CUdeviceptr address)
{
    if (address < step->read.owned_low || address >= step->read.owned_high)
        return false;
    for (size_t i = 0; i < step->read.n_owned; i++)
        if (address >= step->read.owned[i].start && address < step->read.owned[i].start + step->read.owned[i].bytes)
            return true;
    return false;
}

sg__where sg__resolve_recorded(const stepgraph_step *step, CUdeviceptr address)
{
    if (owned_by_graph(step, address))
        return SG__IN_GRAPH;
    return sg__table_holds(step->tables, address) ? SG__IN_TABLE : SG__NOWHERE;
}

sg__place sg__resolve_outside(const stepgraph_step *step, CUdeviceptr address)
{
    sg__place place = {.where = sg__resolve_recorded(step, address)};

    if (place.where != SG__NOWHERE)
        return place;
    if (sg__allocation_at(&step->session->own, address) != NULL)
        place.where = SG__IN_OWN;
    else if ((place.allocation = sg__allocation_at(&step->allocations, address)) != NULL)
        place.where = SG__IN_ALLOCATION;
    return place;
}

sg__place sg__resolve(const stepgraph_step *step, CUdeviceptr address)
{
    const stepgraph_session *session = step->session;
    size_t pin = sg__pin_index(session, address);

    if (pin < session->n_pins && session->pins[pin]->address <= address)
        return (sg__place){.where = SG__IN_PIN, .pin = pin};
    return sg__resolve_outside(step, address);
}

const stepgraph_pin *sg__former_state(const stepgraph_session *session, CUdeviceptr address)
{
    if (address < session->formers_low || address >= session->formers_high)
        return NULL;
    for (size_t i = 0; i < session->n_pins; i++) {
        const stepgraph_pin *pin = session->pins[i];
        if (pin->role == STEPGRAPH_ROLE_STATE && pin->former != 0 && address >= pin->former && address < pin->former + pin->bytes)
            return pin;
    }
    return NULL;
}

const char *sg__role_name(stepgraph_role role)
{
    static const char *const names[] = {[STEPGRAPH_ROLE_STATE] = "state", [STEPGRAPH_ROLE_FEED] = "feed",   [STEPGRAPH_ROLE_CELL] = "cell",
                                        [STEPGRAPH_ROLE_OUTPUT] = "output", [STEPGRAPH_ROLE_CONST] = "const", [STEPGRAPH_ROLE_SCRATCH] = "scratch",
                                        [STEPGRAPH_ROLE_LIBRARY] = "library"};

    return names[role];
}

/* The block that was at an address when a node ran. Of the session's last recording all are known, and of others those that they found. */
static bool labelled_block(const stepgraph_step *step, CUdeviceptr address, uint32_t node, sg__block *out)
{
    /* Blocks know nodes as they are numbered among those that were recorded. */
    const uint32_t top = node < step->read.n_nodes ? step->read.nodes[node].top : SG__NO_NODE;
    const sg__carried *carried;

    if (step->session->recorded == step)
        return sg__arena_block_at(step->session, address, top, out) && out->label[0] != '\0';
    carried = sg__carried_at(step->carried, step->n_carried, address, top);
    if (carried == NULL || carried->label[0] == '\0')
        return false;
    *out = (sg__block){.start = carried->start, .bytes = carried->bytes, .label = carried->label};
    return true;
}

static void say_pin(sg__line *line, const stepgraph_step *step, const stepgraph_pin *pin, CUdeviceptr address, uint32_t node)
{
    CUdeviceptr start = pin->address;
    bool in_block = false;
    sg__block block;

    if (pin->role == STEPGRAPH_ROLE_SCRATCH && labelled_block(step, address, node, &block)) {
        sg__line_add(line, "block '");
        sg__line_name(line, block.label);
        sg__line_add(line, "' of ");
        start = block.start;
        in_block = true;
    }
    sg__line_add(line, sg__role_name(pin->role));
    sg__line_add(line, " '");
    sg__line_name(line, pin->name);
    sg__line_add(line, "'");
    if (address == start && !in_block)
        return;
    sg__line_add(line, " + ");
    sg__line_number(line, address - start);
}

/* An address right behind a pin may be meant as its end. */
static void say_what_is_before(sg__line *line, const stepgraph_session *session, CUdeviceptr address)
{
    const stepgraph_pin *before = sg__pin_at(session, address - 1);

    if (before == NULL)
        return;
    sg__line_add(line, ", right behind pin '");
    sg__line_name(line, before->name);
    sg__line_add(line, "'");
}

/* An allocator of the host's may have many blocks in one allocation. */
static void say_allocation(sg__line *line, const stepgraph_session *session, const sg__allocation *allocation, CUdeviceptr address)
{
    if (address != allocation->start) {
        sg__line_add(line, "+");
        sg__line_number(line, address - allocation->start);
        sg__line_add(line, " in ");
    }
    sg__line_number(line, allocation->bytes);
    if (allocation->pool) {
        sg__line_add(line, " bytes of a memory pool, which cannot be verified");
    } else if (allocation->type == CU_MEMORYTYPE_HOST) {
        sg__line_add(line, " bytes of page-locked host memory");
    } else if (allocation->device != session->device) {
        sg__line_add(line, " bytes of device ");
        sg__line_number(line, (uint64_t)allocation->device);
    } else {
        sg__line_add(line, " bytes that no pin covers");
        say_what_is_before(line, session, address);
    }
}

static void say_unregistered(sg__line *line, const stepgraph_session *session, const sg__allocation *allocation, CUdeviceptr address)
{
    const stepgraph_pin *former = sg__former_state(session, address);

    say_allocation(line, session, allocation, address);
    if (former == NULL)
        return;
    sg__line_add(line, ", from where state '");
    sg__line_name(line, former->name);
    sg__line_add(line, "' was last committed");
}

void sg__describe_address(const stepgraph_step *step, CUdeviceptr address, uint32_t node, char *text, size_t bytes)
{
    const stepgraph_session *session = step->session;
    sg__place place = sg__resolve(step, address);
    sg__line line = sg__line_begin(text, bytes);

    switch (place.where) {
    case SG__IN_PIN:
        say_pin(&line, step, session->pins[place.pin], address, node);
        return;
    case SG__IN_GRAPH:
        sg__line_add(&line, "memory of the graph's own");
        return;
    case SG__IN_TABLE:
        sg__line_add(&line, "a list of commits");
        return;
    case SG__IN_OWN:
        sg__line_add(&line, "memory of the library's own");
        return;
    case SG__IN_ALLOCATION:
        say_unregistered(&line, session, place.allocation, address);
        return;
    case SG__NOWHERE:
        sg__line_add(&line, "unknown memory");
        return;
    }
}
