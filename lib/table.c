#include "table.h"

#include <stdlib.h>

#include "graveyard.h"

struct sg__table {
    sg__table *next;
    sg__slice *host; /* Page-locked: the copy to the device reads it later. */
    CUdeviceptr device;
    size_t room, used;
};

static void free_one(stepgraph_session *session, sg__table *table)
{
    sg__own_free(session, table->device);
    sg__bury(session, SG__GRAVE_HOST, (uintptr_t)table->host);
    free(table);
}

/* In front of *list. */
static stepgraph_status table_add(stepgraph_session *session, sg__table **list, size_t n)
{
    sg__table *table = calloc(1, sizeof *table);
    stepgraph_status status;
    void *memory;

    if (table == NULL)
        return sg__fail_memory("host", sizeof *table);
    status = sg__own_alloc(session, &table->device, n * sizeof(sg__slice));
    if (status == STEPGRAPH_OK)
        status = sg__host_alloc(session, &memory, n * sizeof(sg__slice));
    if (status != STEPGRAPH_OK) {
        free_one(session, table);
        return status;
    }
    table->host = memory;
    table->room = n;
    table->next = *list;
    *list = table;
    return STEPGRAPH_OK;
}

stepgraph_status sg__table_renew(stepgraph_session *session, sg__table **list)
{
    size_t n = sg__slices_most(session->n_pins, session->pin_stats.pin_bytes) + session->n_pins + 64;

    if (*list != NULL && (*list)->next == NULL && (*list)->room >= n) {
        (*list)->used = 0;
        return STEPGRAPH_OK;
    }
    sg__table_free(session, list);
    return table_add(session, list, n);
}

stepgraph_status sg__table_take(stepgraph_session *session, sg__table **list, size_t n, sg__slice **host_out, CUdeviceptr *device_out)
{
    sg__table *table = *list;

    if (table == NULL || table->room - table->used < n) {
        stepgraph_status status = table_add(session, list, n);
        if (status != STEPGRAPH_OK)
            return status;
        table = *list;
    }
    *host_out = table->host + table->used;
    *device_out = table->device + table->used * sizeof(sg__slice);
    table->used += n;
    return STEPGRAPH_OK;
}

stepgraph_status sg__table_send(stepgraph_session *session, const sg__table *list)
{
    stepgraph_status status;

    for (; list != NULL; list = list->next)
        if (list->used > 0)
            SG__CU(session->driver, MemcpyHtoDAsync, list->device, list->host, list->used * sizeof(sg__slice), session->stream);
    return STEPGRAPH_OK;

fail:
    return status;
}

bool sg__table_holds(const sg__table *list, CUdeviceptr address)
{
    for (; list != NULL; list = list->next)
        if (address >= list->device && address < list->device + list->room * sizeof(sg__slice))
            return true;
    return false;
}

const sg__slice *sg__table_list(const sg__table *list, CUdeviceptr address, size_t n)
{
    for (; list != NULL; list = list->next)
        if (address >= list->device && (address - list->device) % sizeof(sg__slice) == 0 &&
            (address - list->device) / sizeof(sg__slice) + n <= list->used)
            return list->host + (address - list->device) / sizeof(sg__slice);
    return NULL;
}

bool sg__table_used(const sg__table *list)
{
    while (list != NULL && list->used == 0)
        list = list->next;
    return list != NULL;
}

uint64_t sg__table_bytes(const sg__table *list)
{
    uint64_t bytes = 0;

    for (; list != NULL; list = list->next)
        bytes += list->room * sizeof(sg__slice);
    return bytes;
}

void sg__table_free(stepgraph_session *session, sg__table **list)
{
    while (*list != NULL) {
        sg__table *table = *list;
        *list = table->next;
        free_one(session, table);
    }
}
