#include "extents.h"

#include <stdlib.h>

#include "pin_p.h"

stepgraph_status sg__extents_renew(stepgraph_session *session)
{
    sg__extent *larger;

    if (session->extents_registry == session->registry)
        return STEPGRAPH_OK;
    larger = realloc(session->extents, (session->n_pins + 1) * sizeof *larger);
    if (larger == NULL)
        return sg__fail_memory("host", session->n_pins * sizeof *larger);
    session->extents = larger;
    for (size_t i = 0; i < session->n_pins; i++) {
        const stepgraph_pin *pin = session->pins[i];
        larger[i] = (sg__extent){.start = pin->address, .end = pin->address + pin->bytes};
    }
    session->extents_registry = session->registry;
    return STEPGRAPH_OK;
}

size_t sg__extents_find(stepgraph_session *session, CUdeviceptr address)
{
    const sg__extent *base = session->extents;
    size_t n = session->n_pins, near = session->extents_near;

    for (size_t i = near; i < near + 2 && i < n; i++)
        if (address >= base[i].start && address < base[i].end)
            return session->extents_near = i;
    if (n == 0 || address < base[0].start || address >= base[n - 1].end)
        return session->n_pins;
    while (n > 1) { /* Without a branch that depends on what is found. */
        size_t half = n / 2;
        base += base[half].start <= address ? half : 0;
        n -= half;
    }
    if (address >= base->end)
        return session->n_pins;
    return session->extents_near = (size_t)(base - session->extents);
}
