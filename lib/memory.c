#include "memory.h"

#include <stdlib.h>
#include <string.h>

#include "graveyard.h"
#include "pin_p.h"

#define ALIGNMENT 256u

/* Tables that do not change, each of all ranges. */
enum { TABLE_FILL, TABLE_FROM, TABLE_TO = TABLE_FROM + SG__IMAGES, TABLES = TABLE_TO + SG__IMAGES };

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

typedef struct bound {
    CUdeviceptr at;
    int covers; /* How many extents more hold what follows. */
} bound;

static int by_address(const void *a, const void *b)
{
    CUdeviceptr x = ((const bound *)a)->at, y = ((const bound *)b)->at;

    return x < y ? -1 : x > y;
}

static stepgraph_status cut(sg__memory *memory, const sg__access *accesses, size_t n_accesses, bool pins)
{
    const stepgraph_session *session = memory->session;
    size_t n = 0, room = 2 * (session->n_pins + n_accesses) + 1;
    bound *bounds = malloc(room * sizeof *bounds);
    int covered = 0;

    memory->ranges = malloc(room * sizeof *memory->ranges);
    if (bounds == NULL || memory->ranges == NULL) {
        free(bounds);
        return sg__fail_memory("host", room * (sizeof *bounds + sizeof *memory->ranges));
    }
    for (size_t i = 0; i < session->n_pins; i++) {
        const stepgraph_pin *pin = session->pins[i];
        const int covers = pin->role == STEPGRAPH_ROLE_LIBRARY ? -(int)room : 1; /* Not ours to touch, whatever reaches it. */
        if (!pins && covers > 0)
            continue;
        bounds[n++] = (bound){.at = pin->address, .covers = covers};
        bounds[n++] = (bound){.at = pin->address + pin->bytes, .covers = -covers};
    }
    for (size_t i = 0; i < n_accesses; i++) {
        bounds[n++] = (bound){.at = accesses[i].start, .covers = 1};
        bounds[n++] = (bound){.at = accesses[i].start + accesses[i].bytes, .covers = -1};
    }
    qsort(bounds, n, sizeof *bounds, by_address);
    for (size_t i = 0; i + 1 < n; i++) {
        covered += bounds[i].covers;
        if (covered > 0 && bounds[i + 1].at > bounds[i].at)
            memory->ranges[memory->n++] = (sg__range){.a = bounds[i].at, .bytes = bounds[i + 1].at - bounds[i].at};
    }
    free(bounds);
    for (size_t i = 0; i < memory->n; i++) {
        memory->ranges[i].b = memory->image_bytes;
        memory->bytes += memory->ranges[i].bytes;
        memory->image_bytes += aligned(memory->ranges[i].bytes);
    }
    memory->chunks = sg__ranges_number(memory->ranges, memory->n);
    return STEPGRAPH_OK;
}

size_t sg__memory_index(const sg__memory *memory, CUdeviceptr address)
{
    size_t low = 0, high = memory->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memory->ranges[middle].a + memory->ranges[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static sg__range *table(const sg__memory *memory, unsigned int index)
{
    return (sg__range *)(void *)memory->work_host + index * memory->n;
}

static CUdeviceptr table_at(const sg__memory *memory, unsigned int index)
{
    return memory->work + index * memory->n * sizeof(sg__range);
}

static stepgraph_status make_image(sg__memory *memory, sg__image image, uint64_t device_limit, uint64_t host_limit)
{
    uint64_t bytes = memory->image_bytes > 0 ? memory->image_bytes : ALIGNMENT;

    if (memory->device_bytes + bytes <= device_limit && sg__own_alloc(memory->session, &memory->image[image], bytes) == STEPGRAPH_OK) {
        memory->device_bytes += bytes;
        return STEPGRAPH_OK;
    }
    if (memory->host_bytes + bytes <= host_limit && sg__host_alloc(memory->session, &memory->image_host[image], bytes) == STEPGRAPH_OK) {
        memory->image[image] = (CUdeviceptr)(uintptr_t)memory->image_host[image];
        memory->host_bytes += bytes;
        return STEPGRAPH_OK;
    }
    return sg__fail(STEPGRAPH_ERR_MEMORY,
                    "%s of %llu bytes%s needed, %llu bytes in all, and there is room for %d of them; at most %llu bytes of device "
                    "memory and %llu of page-locked host memory may be used",
                    memory->n_images == 1 ? "a copy" : "two copies", (unsigned long long)bytes, memory->n_images == 1 ? " is" : " each are",
                    memory->n_images * (unsigned long long)bytes, image == SG__IMAGE_START ? 0 : 1, (unsigned long long)device_limit,
                    (unsigned long long)host_limit);
}

static stepgraph_status make_work(sg__memory *memory, uint32_t hashes)
{
    uint64_t n = memory->n;
    stepgraph_status status;
    sg__difference *initial;
    void *twin;

    memory->marks_at = aligned((TABLES + SG__PURPOSES) * n * sizeof(sg__range));
    memory->results_at = memory->marks_at + aligned(n);
    memory->hit_at = memory->results_at + aligned(sizeof(sg__judged));
    memory->found_at = memory->hit_at + aligned(n);
    memory->initial_at = memory->found_at + aligned(n * sizeof(sg__difference));
    memory->work_bytes = memory->initial_at + aligned(n * sizeof(sg__difference)) + ALIGNMENT;
    status = sg__own_alloc(memory->session, &memory->work, memory->work_bytes);
    if (status == STEPGRAPH_OK)
        status = sg__own_alloc(memory->session, &memory->hashes, (memory->chunks * hashes + 1) * sizeof(uint64_t));
    if (status == STEPGRAPH_OK)
        status = sg__host_alloc(memory->session, &twin, memory->work_bytes);
    if (status != STEPGRAPH_OK)
        return sg__fail_prefix(status, "lists and hashes: ");
    memory->work_host = twin;
    memory->device_bytes += memory->work_bytes + memory->chunks * hashes * sizeof(uint64_t);
    memory->host_bytes += memory->work_bytes;
    memset(twin, 0, memory->work_bytes);
    initial = (sg__difference *)(void *)(memory->work_host + memory->initial_at);
    for (size_t i = 0; i < n; i++)
        initial[i].first = UINT64_MAX;
    return STEPGRAPH_OK;
}

static stepgraph_status send_tables(sg__memory *memory)
{
    stepgraph_status status;

    for (size_t i = 0; i < memory->n; i++) {
        const sg__range *range = &memory->ranges[i];
        table(memory, TABLE_FILL)[i] = *range;
        table(memory, TABLE_FILL)[i].b = SG__MEMORY_FILL;
        for (unsigned int image = 0; image < memory->n_images; image++) {
            table(memory, TABLE_FROM + image)[i] = *range;
            table(memory, TABLE_FROM + image)[i].b = memory->image[image] + range->b;
            table(memory, TABLE_TO + image)[i] = *range;
            table(memory, TABLE_TO + image)[i].a = memory->image[image] + range->b;
            table(memory, TABLE_TO + image)[i].b = range->a;
        }
    }
    if (memory->n > 0)
        SG__CU(memory->session->driver, MemcpyHtoDAsync, memory->work, memory->work_host, TABLES * memory->n * sizeof(sg__range),
               memory->session->stream);
    return STEPGRAPH_OK;

fail:
    return status;
}

stepgraph_status sg__memory_make(sg__memory *memory, stepgraph_session *session, const sg__access *accesses, size_t n_accesses, bool pins,
                                 unsigned int images, uint32_t hashes, uint64_t device_limit, uint64_t host_limit)
{
    stepgraph_status status;

    memset(memory, 0, sizeof *memory);
    memory->session = session;
    memory->n_images = images;
    status = cut(memory, accesses, n_accesses, pins);
    for (unsigned int image = 0; image < images && status == STEPGRAPH_OK; image++)
        status = make_image(memory, (sg__image)image, device_limit, host_limit);
    if (status == STEPGRAPH_OK)
        status = make_work(memory, hashes);
    if (status == STEPGRAPH_OK) {
        CUstreamCaptureMode before = sg__relax(session);
        status = sg__hash_load(session->driver, &memory->hash);
        sg__unrelax(session, before);
    }
    return status == STEPGRAPH_OK ? send_tables(memory) : status;
}

void sg__memory_free(sg__memory *memory)
{
    stepgraph_session *session = memory->session;

    if (session == NULL)
        return;
    for (unsigned int image = 0; image < SG__IMAGES; image++) {
        if (memory->image_host[image] != NULL)
            sg__bury(session, SG__GRAVE_HOST, (uintptr_t)memory->image_host[image]);
        else
            sg__own_free(session, memory->image[image]);
    }
    sg__own_free(session, memory->work);
    sg__own_free(session, memory->hashes);
    sg__bury(session, SG__GRAVE_HOST, (uintptr_t)memory->work_host);
    sg__bury(session, SG__GRAVE_MODULE, (uintptr_t)memory->hash.module);
    free(memory->ranges);
    memset(memory, 0, sizeof *memory);
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

static stepgraph_status launched(const sg__memory *memory, CUresult code)
{
    return code == CUDA_SUCCESS ? STEPGRAPH_OK : sg__fail_driver(memory->session->driver, "cuLaunchKernel", code);
}

static stepgraph_status copy(sg__memory *memory, unsigned int index)
{
    const stepgraph_session *session = memory->session;

    if (memory->n == 0)
        return STEPGRAPH_OK;
    return launched(memory, sg__kernels_copy(session->driver, &session->kernels, session->stream, table_at(memory, index), memory->n, memory->chunks));
}

stepgraph_status sg__memory_save(sg__memory *memory, sg__image image)
{
    return copy(memory, TABLE_TO + (unsigned int)image);
}

stepgraph_status sg__memory_restore(sg__memory *memory, sg__image image)
{
    return copy(memory, TABLE_FROM + (unsigned int)image);
}

stepgraph_status sg__memory_fill(sg__memory *memory)
{
    const stepgraph_session *session = memory->session;

    if (memory->n == 0)
        return STEPGRAPH_OK;
    return launched(memory, sg__kernels_fill(session->driver, &session->kernels, session->stream, table_at(memory, TABLE_FILL), memory->n,
                                             memory->chunks));
}

stepgraph_status sg__memory_some(sg__memory *memory, sg__purpose purpose, const uint32_t *list, size_t n)
{
    static const unsigned int whole[SG__PURPOSES] = {TABLE_FROM + SG__IMAGE_OTHER, TABLE_TO + SG__IMAGE_OTHER, TABLE_FILL,
                                                     TABLE_FROM + SG__IMAGE_OTHER};
    const stepgraph_session *session = memory->session;
    const sg__driver *driver = session->driver;
    CUdeviceptr at = table_at(memory, TABLES + (unsigned int)purpose), found = memory->work + memory->found_at;
    sg__range *some = table(memory, TABLES + (unsigned int)purpose);
    stepgraph_status status;
    uint64_t chunks;

    if (n == 0)
        return STEPGRAPH_OK;
    for (size_t i = 0; i < n; i++)
        some[i] = table(memory, whole[purpose])[list[i]];
    chunks = sg__ranges_number(some, n);
    SG__CU(driver, MemcpyHtoDAsync, at, some, n * sizeof *some, session->stream);
    if (purpose == SG__FILL)
        return launched(memory, sg__kernels_fill(driver, &session->kernels, session->stream, at, n, chunks));
    if (purpose != SG__COMPARE)
        return launched(memory, sg__kernels_copy(driver, &session->kernels, session->stream, at, n, chunks));
    SG__CU(driver, MemcpyHtoDAsync, found, memory->work_host + memory->initial_at, n * sizeof(sg__difference), session->stream);
    status = launched(memory, sg__kernels_compare(driver, &session->kernels, session->stream, at, n, chunks, found));
    if (status == STEPGRAPH_OK)
        SG__CU(driver, MemcpyDtoHAsync, memory->work_host + memory->found_at, found, n * sizeof(sg__difference), session->stream);
fail:
    return status;
}

/* ---- hashing ----------------------------------------------------------------------------------------------------- */

static CUdeviceptr hash_at(const sg__memory *memory, uint32_t slot)
{
    return memory->hashes + slot * memory->chunks * sizeof(uint64_t);
}

stepgraph_status sg__memory_hash(sg__memory *memory, uint32_t slot)
{
    const stepgraph_session *session = memory->session;
    stepgraph_status status;

    if (memory->n == 0)
        return STEPGRAPH_OK;
    SG__CU(session->driver, MemsetD8Async, hash_at(memory, slot), 0, memory->chunks * sizeof(uint64_t), session->stream);
    return launched(memory, sg__hash_chunks(session->driver, &memory->hash, &session->kernels, session->stream, table_at(memory, TABLE_FILL),
                                            memory->n, memory->chunks, hash_at(memory, slot)));

fail:
    return status;
}

stepgraph_status sg__memory_judge(sg__memory *memory, uint32_t now, uint32_t before, const unsigned char *marks, unsigned int least)
{
    const stepgraph_session *session = memory->session;
    const sg__driver *driver = session->driver;
    CUdeviceptr results = memory->work + memory->results_at;
    uint64_t bytes = memory->found_at - memory->results_at;
    stepgraph_status status;

    if (memory->n == 0)
        return STEPGRAPH_OK;
    memcpy(memory->work_host + memory->marks_at, marks, memory->n);
    SG__CU(driver, MemcpyHtoDAsync, memory->work + memory->marks_at, memory->work_host + memory->marks_at, memory->n, session->stream);
    SG__CU(driver, MemsetD8Async, results, 0, bytes, session->stream);
    status = launched(memory, sg__hash_judge(driver, &memory->hash, &session->kernels, session->stream, table_at(memory, TABLE_FILL), memory->n,
                                             memory->chunks, hash_at(memory, now), hash_at(memory, before), memory->work + memory->marks_at, least,
                                             memory->work + memory->hit_at, results));
    if (status == STEPGRAPH_OK)
        SG__CU(driver, MemcpyDtoHAsync, memory->work_host + memory->results_at, results, bytes, session->stream);
fail:
    return status;
}

sg__judged sg__memory_judged(const sg__memory *memory)
{
    sg__judged judged = {0};

    if (memory->n > 0)
        memcpy(&judged, memory->work_host + memory->results_at, sizeof judged);
    return judged;
}

const unsigned char *sg__memory_hits(const sg__memory *memory)
{
    return memory->work_host + memory->hit_at;
}

const sg__difference *sg__memory_found(const sg__memory *memory)
{
    return (const sg__difference *)(const void *)(memory->work_host + memory->found_at);
}
