#include "ring.h"

#include <string.h>

#include "graveyard.h"
#include "session_p.h"

stepgraph_status sg__ring_init(stepgraph_session *session, sg__ring *ring, size_t slot_bytes, unsigned int half)
{
    const sg__driver *driver = session->driver;
    size_t bytes = slot_bytes * half * 2;
    stepgraph_status status;
    void *memory;

    memset(ring, 0, sizeof *ring);
    if (slot_bytes > SIZE_MAX / 2 / half)
        return sg__fail_memory("page-locked host", SIZE_MAX);
    status = sg__host_alloc(session, &memory, bytes);
    if (status != STEPGRAPH_OK)
        return status;
    memset(memory, 0, bytes);
    ring->memory = memory;
    ring->slot_bytes = slot_bytes;
    ring->half = half;
    for (int i = 0; i < 2; i++)
        SG__CU(driver, EventCreate, &ring->fence[i], CU_EVENT_DISABLE_TIMING);
    return STEPGRAPH_OK;

fail:
    sg__ring_free(session, ring);
    return status;
}

void sg__ring_free(stepgraph_session *session, sg__ring *ring)
{
    for (int i = 0; i < 2; i++)
        sg__bury(session, SG__GRAVE_EVENT, (uintptr_t)ring->fence[i]);
    sg__bury(session, SG__GRAVE_HOST, (uintptr_t)ring->memory);
    memset(ring, 0, sizeof *ring);
}

stepgraph_status sg__ring_next(stepgraph_session *session, sg__ring *ring, bool *waited)
{
    const sg__driver *driver = session->driver;
    unsigned int next = ring->slot + 1 < 2 * ring->half ? ring->slot + 1 : 0, half = next != 0;
    CUstreamCaptureMode before;
    CUresult code;

    *waited = false;
    if ((next == 0 || next == ring->half) && ring->fenced[half]) {
        before = sg__relax(session);
        code = driver->EventQuery(ring->fence[half]);
        if (code == CUDA_ERROR_NOT_READY) {
            *waited = true;
            code = driver->EventSynchronize(ring->fence[half]);
        }
        sg__unrelax(session, before);
        if (code != CUDA_SUCCESS)
            return sg__fail_driver(driver, *waited ? "cuEventSynchronize" : "cuEventQuery", code);
        ring->fenced[half] = false;
    }
    ring->slot = next;
    return STEPGRAPH_OK;
}

stepgraph_status sg__ring_sent(stepgraph_session *session, sg__ring *ring)
{
    const unsigned int next = ring->slot + 1, half = next > ring->half;
    stepgraph_status status;

    if (next != ring->half && next != 2 * ring->half)
        return STEPGRAPH_OK;
    SG__CU_STREAM(session, EventRecord, ring->fence[half], session->stream);
    ring->fenced[half] = true;
    return STEPGRAPH_OK;

fail:
    return status;
}
