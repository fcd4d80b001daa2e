/*
 * What a check saves beside pins: blocks of arenas that the host holds, and memory that no pin covers and that the graph may use.
 *
 * Page-locked host memory is only looked at: other threads of the host's may write there at any time, so it is not put back.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena_p.h"
#include "audit_p.h"
#include "loop_p.h"

/* Of page-locked memory as much is looked at: some tenths of a second. */
#define HOST_BYTES_MAX ((uint64_t)1 << 30)

void sg__guards_forget(stepgraph_loop *loop)
{
    sg__guards *guards = &loop->guards;

    sg__own_free(loop->session, guards->copies);
    free(guards->ranges);
    free(guards->host);
    memset(guards, 0, sizeof *guards);
}

/* ---- blocks of arenas ---------------------------------------------------------------------------------------------- */

static stepgraph_status add_range(sg__guards *guards, CUdeviceptr start, CUdeviceptr end)
{
    sg__range *larger;

    if (end <= start)
        return STEPGRAPH_OK;
    larger = realloc(guards->ranges, (guards->n + 1) * sizeof *larger);
    if (larger == NULL)
        return sg__fail_memory("host", (guards->n + 1) * sizeof *larger);
    guards->ranges = larger;
    guards->ranges[guards->n++] = (sg__range){.a = guards->bytes, .b = start, .bytes = end - start};
    guards->bytes += (end - start + 255) / 256 * 256;
    return STEPGRAPH_OK;
}

/* What is between the gaps of an arena. */
static stepgraph_status add_blocks(stepgraph_loop *loop, const stepgraph_pin *pin)
{
    CUdeviceptr from = pin->address, start;
    stepgraph_status status = STEPGRAPH_OK;
    uint64_t bytes;

    while (status == STEPGRAPH_OK && sg__arena_gap(loop->session, pin, from, &start, &bytes)) {
        status = add_range(&loop->guards, from, start);
        from = start + bytes;
    }
    return status == STEPGRAPH_OK ? add_range(&loop->guards, from, pin->address + pin->bytes) : status;
}

stepgraph_status sg__guards_copy(stepgraph_loop *loop, sg__moment moment, bool back)
{
    const sg__guards *guards = &loop->guards;
    stepgraph_status status = STEPGRAPH_OK;
    sg__range *ranges;

    if (guards->n == 0)
        return STEPGRAPH_OK;
    ranges = malloc(guards->n * sizeof *ranges);
    if (ranges == NULL)
        return sg__fail_memory("host", guards->n * sizeof *ranges);
    for (size_t i = 0; i < guards->n; i++) {
        CUdeviceptr copy = guards->copies + (moment == SG__AFTER ? guards->bytes : 0) + guards->ranges[i].a, there = guards->ranges[i].b;
        ranges[i] = (sg__range){.a = back ? there : copy, .b = back ? copy : there, .bytes = guards->ranges[i].bytes};
    }
    status = sg__commit_now(loop->session, ranges, guards->n);
    free(ranges);
    return status;
}

/* ---- memory that no pin covers ------------------------------------------------------------------------------------- */

/* What of an allocation is in no pin. */
static stepgraph_status add_gaps(stepgraph_loop *loop, const sg__allocation *allocation)
{
    const stepgraph_session *session = loop->session;
    CUdeviceptr from = allocation->start, end = allocation->start + allocation->bytes;
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t i = 0; i < session->n_pins && status == STEPGRAPH_OK; i++) {
        const stepgraph_pin *pin = session->pins[i];
        if (pin->address + pin->bytes <= from || pin->address >= end)
            continue;
        status = add_range(&loop->guards, from, pin->address);
        from = pin->address + pin->bytes;
    }
    return status == STEPGRAPH_OK ? add_range(&loop->guards, from, end) : status;
}

static stepgraph_status cannot_save(const sg__allocation *allocation)
{
    return sg__fail(STEPGRAPH_ERR_MEMORY, "the graph may use memory at 0x%llx, which cannot be saved", (unsigned long long)allocation->start);
}

/* What is in host memory, as a hash: two states of it seldom share one, and nobody makes them do so on purpose. False: it cannot be read. */
static bool hash_host(uint64_t address, uint64_t bytes, uint64_t *hash)
{
    const sg__process process = {.id = getpid()};
    uint64_t words[2048];

    *hash = bytes;
    while (bytes > 0) {
        const size_t n = bytes < sizeof words ? (size_t)bytes : sizeof words;
        memset(&words[n / 8], 0, sizeof words - n / 8 * 8); /* Behind the last whole word. */
        if (!sg__process_read(&process, address, words, n))
            return false;
        for (size_t i = 0; i < (n + 7) / 8; i++) {
            *hash = (*hash ^ words[i]) * 0x9e3779b97f4a7c15ull;
            *hash ^= *hash >> 29;
        }
        address += n;
        bytes -= n;
    }
    return true;
}

/* Page-locked memory, as it is. */
static stepgraph_status add_host(sg__guards *guards, const sg__allocation *allocation)
{
    uint64_t all = allocation->bytes;
    sg__host_guard *larger;

    for (size_t i = 0; i < guards->n_host; i++)
        all += guards->host[i].bytes;
    if (all > HOST_BYTES_MAX)
        return cannot_save(allocation);
    larger = realloc(guards->host, (guards->n_host + 1) * sizeof *larger);
    if (larger == NULL)
        return sg__fail_memory("host", (guards->n_host + 1) * sizeof *larger);
    guards->host = larger;
    larger += guards->n_host++;
    *larger = (sg__host_guard){.address = allocation->start, .bytes = allocation->bytes};
    return hash_host(larger->address, larger->bytes, &larger->hash) ? STEPGRAPH_OK : cannot_save(allocation);
}

/* Where there is doubt whether addresses are used, a replay may write there. */
static stepgraph_status add_doubtful(stepgraph_loop *loop, const sg__lane *lane)
{
    const sg__allocations *list = &lane->step->allocations;
    stepgraph_status status = STEPGRAPH_OK;

    loop->guards.first = loop->guards.n;
    for (size_t i = 0; lane->suspected && i < list->n && status == STEPGRAPH_OK; i++) {
        const sg__allocation *allocation = &list->items[i];
        if (!allocation->reported && !allocation->reported_in_struct)
            continue;
        if (allocation->type == CU_MEMORYTYPE_HOST)
            status = add_host(&loop->guards, allocation);
        else if (allocation->pool || allocation->type != CU_MEMORYTYPE_DEVICE || allocation->device != loop->session->device)
            status = cannot_save(allocation);
        else
            status = add_gaps(loop, allocation);
    }
    return status;
}

static bool has_doubtful(const sg__guards *guards)
{
    return guards->n > guards->first || guards->n_host > 0;
}

stepgraph_status sg__guards_settle(const stepgraph_loop *loop, const sg__lane *lane, uint64_t *changed)
{
    const sg__guards *guards = &loop->guards;
    stepgraph_status status;

    *changed = 0;
    if (!has_doubtful(guards))
        return STEPGRAPH_OK;
    status = sg__allocations_check(lane->step);
    if (status != STEPGRAPH_OK)
        return status;
    for (size_t i = 0; i < guards->n_host && *changed == 0; i++) {
        uint64_t hash;
        if (!hash_host(guards->host[i].address, guards->host[i].bytes, &hash) || hash != guards->host[i].hash)
            *changed = guards->host[i].address;
    }
    return STEPGRAPH_OK;
}

stepgraph_status sg__guards_touched(stepgraph_loop *loop, uint64_t *bytes)
{
    stepgraph_session *session = loop->session;
    const sg__guards *guards = &loop->guards;
    size_t n = guards->n - guards->first;
    sg__difference *found;
    CUdeviceptr table = 0;
    stepgraph_status status;
    sg__range *ranges;
    uint64_t chunks;
    CUresult code;

    *bytes = 0;
    if (n == 0)
        return STEPGRAPH_OK;
    ranges = calloc(n, sizeof *ranges + sizeof *found);
    if (ranges == NULL)
        return sg__fail_memory("host", n * (sizeof *ranges + sizeof *found));
    found = (sg__difference *)(void *)(ranges + n);
    for (size_t i = 0; i < n; i++) {
        const sg__range *guard = &guards->ranges[guards->first + i];
        ranges[i] = (sg__range){.a = guard->b, .b = guards->copies + guard->a, .bytes = guard->bytes};
        found[i].first = UINT64_MAX;
    }
    chunks = sg__ranges_number(ranges, n);
    status = sg__own_alloc(session, &table, n * (sizeof *ranges + sizeof *found));
    if (status != STEPGRAPH_OK)
        goto fail;
    SG__CU(session->driver, MemcpyHtoDAsync, table, ranges, n * (sizeof *ranges + sizeof *found), session->stream);
    code = sg__kernels_compare(session->driver, &session->kernels, session->stream, table, n, chunks, table + n * sizeof *ranges);
    if (code != CUDA_SUCCESS) {
        status = sg__fail_driver(session->driver, "cuLaunchKernel", code);
        goto fail;
    }
    SG__CU(session->driver, MemcpyDtoHAsync, found, table + n * sizeof *ranges, n * sizeof *found, session->stream);
    status = sg__session_wait(session);
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++)
        *bytes += found[i].bytes;

fail:
    sg__own_free(session, table);
    free(ranges);
    return status;
}

/* ---- saving ---------------------------------------------------------------------------------------------------------- */

stepgraph_status sg__guards_save(stepgraph_loop *loop, const sg__lane *lane)
{
    uint64_t device = loop->config.snapshot_bytes, host = 0;
    sg__guards *guards = &loop->guards;
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t i = 0; i < lane->step->n_used && status == STEPGRAPH_OK; i++)
        if (lane->step->used[i]->in_arena)
            status = add_blocks(loop, lane->step->used[i]);
    if (status == STEPGRAPH_OK)
        status = add_doubtful(loop, lane);
    if (status == STEPGRAPH_OK && guards->n > guards->first) {
        status = sg__snapshot_limits(loop->session, &device, &host);
        if (status == STEPGRAPH_OK && 2 * guards->bytes > device)
            status = sg__fail(
                STEPGRAPH_ERR_MEMORY,
                "the graph may use %llu bytes that no pin covers, of which a check makes two copies, and %llu bytes may be used",
                (unsigned long long)guards->bytes, (unsigned long long)device);
    }
    if (status == STEPGRAPH_OK && guards->n > 0)
        status = sg__own_alloc(loop->session, &guards->copies, 2 * guards->bytes);
    return status == STEPGRAPH_OK ? sg__guards_copy(loop, SG__BEFORE, false) : status;
}
