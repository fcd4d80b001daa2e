/* In-place copy pins: new values into their masters, one by one or all in one launch. */
#include <stdlib.h>
#include <string.h>

#include "pin_p.h"
#include "step_p.h"

/* ---- outside a recording ----------------------------------------------------------------------------------------- */

/* Room for lists of n slices. */
static stepgraph_status make_room(stepgraph_session *session, size_t n)
{
    size_t room = session->commit_room != 0 ? session->commit_room : 64;
    stepgraph_status status;

    if (n <= session->commit_room)
        return STEPGRAPH_OK;
    while (room < n)
        room *= 2;
    sg__ring_free(session, &session->commit_ring);
    sg__own_free(session, session->commit_table);
    session->commit_table = 0;
    session->commit_room = 0;
    status = sg__ring_init(session, &session->commit_ring, room * sizeof(sg__slice), session->feed_slots);
    if (status == STEPGRAPH_OK)
        status = sg__own_alloc(session, &session->commit_table, room * sizeof(sg__slice));
    if (status == STEPGRAPH_OK)
        session->commit_room = room;
    return status;
}

stepgraph_status sg__ranges_room(stepgraph_session *session, size_t n)
{
    sg__range *ranges;
    stepgraph_pin **pins;

    if (n <= session->ranges_room)
        return STEPGRAPH_OK;
    ranges = realloc(session->ranges, n * sizeof *ranges);
    if (ranges == NULL)
        return sg__fail_memory("host", n * sizeof *ranges);
    session->ranges = ranges;
    pins = realloc(session->range_pins, n * sizeof(stepgraph_pin *));
    if (pins == NULL)
        return sg__fail_memory("host", n * sizeof(stepgraph_pin *));
    session->range_pins = pins;
    session->ranges_room = n;
    return STEPGRAPH_OK;
}

static uint64_t bytes_of(const sg__range *ranges, size_t n)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        bytes += ranges[i].bytes;
    return bytes;
}

stepgraph_status sg__commit_now(stepgraph_session *session, const sg__range *ranges, size_t n)
{
    const uint64_t bytes = bytes_of(ranges, n);
    stepgraph_status status;
    unsigned int before;
    sg__slice *slot;
    CUresult code;
    size_t slices;
    bool waited;

    if (n == 1) {
        SG__CU(session->driver, MemcpyDtoDAsync, ranges[0].a, ranges[0].b, ranges[0].bytes, session->stream);
        sg__count_own(session, STEPGRAPH_KIND_COPY, 1);
        return STEPGRAPH_OK;
    }
    status = make_room(session, sg__slices_most(n, bytes));
    before = session->commit_ring.slot;
    if (status == STEPGRAPH_OK)
        status = sg__ring_next(session, &session->commit_ring, &waited);
    if (status != STEPGRAPH_OK)
        return status;

    /* One device buffer for all lists: each copy into it comes, in stream order, after the launch that read the list before. */
    slot = (sg__slice *)(void *)sg__ring_slot(&session->commit_ring, session->commit_ring.slot);
    slices = sg__slices_cut(ranges, n, bytes, slot);
    code = session->driver->MemcpyHtoDAsync(session->commit_table, slot, slices * sizeof *slot, session->stream);
    status = code == CUDA_SUCCESS ? sg__ring_sent(session, &session->commit_ring) : sg__fail_driver(session->driver, "cuMemcpyHtoDAsync", code);
    if (status != STEPGRAPH_OK) {
        session->commit_ring.slot = before; /* The next list goes there: without it the half would have no fence. */
        return status;
    }
    code = sg__kernels_commit(session->driver, &session->kernels, session->stream, session->commit_table, slices);
    if (code != CUDA_SUCCESS)
        return sg__fail_driver(session->driver, "cuLaunchKernel", code);
    sg__count_own(session, STEPGRAPH_KIND_COPY, 1);
    sg__count_own(session, STEPGRAPH_KIND_KERNEL, 1);
    return STEPGRAPH_OK;

fail:
    return status;
}

/* ---- while recording --------------------------------------------------------------------------------------------- */

static stepgraph_status commit_recorded(stepgraph_step *step, stepgraph_pin *const *pins, const sg__range *ranges, size_t n)
{
    stepgraph_session *session = step->session;
    const uint64_t bytes = bytes_of(ranges, n);
    stepgraph_status status;
    CUdeviceptr table;
    sg__slice *list;
    CUresult code;
    size_t slices;

    if (n == 1) {
        SG__CU(session->driver, MemcpyDtoDAsync, ranges[0].a, ranges[0].b, ranges[0].bytes, session->stream);
        step->pin_copies++;
        step->pin_bytes += bytes;
        return STEPGRAPH_OK; /* Both ends stand in the copy node. */
    }
    status = sg__table_take(session, &step->tables, sg__slices_most(n, bytes), &list, &table);
    if (status != STEPGRAPH_OK)
        return status;
    slices = sg__slices_cut(ranges, n, bytes, list);
    code = sg__kernels_commit(session->driver, &session->kernels, session->stream, table, slices);
    if (code != CUDA_SUCCESS)
        return sg__fail_driver(session->driver, "cuLaunchKernel", code);
    step->pin_kernels++;
    step->pin_bytes += bytes;
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++)
        status = sg__step_committed(step, pins[i], ranges[i].b);
    return status;

fail:
    return status;
}

/* Where the host keeps the value outside a recording: a graph that still reads it there is named by this. */
static void note_former(stepgraph_pin *pin, CUdeviceptr address)
{
    stepgraph_session *session = pin->session;

    pin->former = address;
    if (session->formers_high == 0 || address < session->formers_low)
        session->formers_low = address;
    if (address + pin->bytes > session->formers_high)
        session->formers_high = address + pin->bytes;
}

/* Of a recording, its end sees to what is gone. */
static stepgraph_status commit_now(stepgraph_session *session, stepgraph_pin *const *pins, const sg__range *ranges, size_t n)
{
    stepgraph_status status = sg__pins_check(n, pins);

    return status == STEPGRAPH_OK ? sg__commit_now(session, ranges, n) : status;
}

/* Enqueue or record the copies, each of them into the pin of the same index; note their price. */
static stepgraph_status commit(stepgraph_session *session, stepgraph_pin *const *pins, const sg__range *ranges, size_t n)
{
    stepgraph_step *step = session->capturing;
    stepgraph_pin_stats *stats = &session->pin_stats;
    stepgraph_status status = sg__enter(session);

    if (status != STEPGRAPH_OK)
        return status;
    status = step != NULL ? commit_recorded(step, pins, ranges, n) : commit_now(session, pins, ranges, n);
    sg__leave(session);
    for (size_t i = 0; status == STEPGRAPH_OK && step == NULL && i < n; i++)
        note_former(pins[i], ranges[i].b);
    if (status != STEPGRAPH_OK) {
        if (n == 1)
            sg__fail_prefix(status, "pin '%s' is not committed, %llu bytes from 0x%llx: ", pins[0]->name, (unsigned long long)ranges[0].bytes, ranges[0].b);
        else
            sg__fail_prefix(status, "%zu pins, the first of them '%s', are not committed: ", n, pins[0]->name);
        if (step != NULL)
            sg__step_break(step);
        return sg__log_failure(session, status);
    }
    stats->copies += n;
    /* Outside a recording the list of ranges travels too. */
    stats->copy_launches += n == 1 || step != NULL ? 1 : 2;
    stats->copy_bytes += bytes_of(ranges, n);
    return STEPGRAPH_OK;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

static stepgraph_status check_pin(const stepgraph_session *session, const stepgraph_pin *pin, uint64_t fresh)
{
    if (pin == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing to commit: the pin is NULL");
    if (pin->session != session)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' belongs to another session", pin->name);
    if (pin->role != STEPGRAPH_ROLE_STATE && pin->role != STEPGRAPH_ROLE_OUTPUT)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' cannot be committed: only a STATE or an OUTPUT is written by the step", pin->name);
    if (fresh == 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' has no new value: the address is 0", pin->name);
    return STEPGRAPH_OK;
}

/* Copies of one call run side by side, so none may read what another writes. */
static stepgraph_status check_source(const stepgraph_session *session, const stepgraph_pin *pin, uint64_t fresh)
{
    for (size_t i = sg__pin_index(session, fresh); i < session->n_pins; i++) {
        const stepgraph_pin *other = session->pins[i];
        if (other->address >= fresh + pin->bytes)
            break;
        if (other->commit_serial == session->commit_serial)
            return sg__fail(STEPGRAPH_ERR_ARGUMENT,
                            "the new value of pin '%s' (%llu bytes at 0x%llx) overlaps the master of pin '%s' (%llu bytes at 0x%llx), which this "
                            "call writes: copy it elsewhere first",
                            pin->name, (unsigned long long)pin->bytes, (unsigned long long)fresh, other->name,
                            (unsigned long long)other->bytes, other->address);
    }
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_pin_commit(stepgraph_pin *pin, uint64_t fresh)
{
    sg__range range;
    stepgraph_status status;

    sg__error_clear();
    status = check_pin(pin != NULL ? pin->session : NULL, pin, fresh);
    if (status != STEPGRAPH_OK)
        return status;
    if (fresh == pin->address) {
        pin->session->pin_stats.skipped++;
        return STEPGRAPH_OK;
    }
    pin->commit_serial = ++pin->session->commit_serial;
    status = check_source(pin->session, pin, fresh);
    if (status != STEPGRAPH_OK)
        return status;
    range = (sg__range){.a = pin->address, .b = fresh, .bytes = pin->bytes};
    return commit(pin->session, &pin, &range, 1);
}

stepgraph_status stepgraph_pin_commit_many(stepgraph_session *session, size_t n, stepgraph_pin *const *pins, const uint64_t *fresh)
{
    stepgraph_status status = STEPGRAPH_OK;
    size_t moved = 0;

    sg__error_clear();
    if (session == NULL || (n > 0 && (pins == NULL || fresh == NULL)))
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing to commit: the session, the pins or the addresses are NULL");
    if (n == 0)
        return STEPGRAPH_OK;
    status = sg__ranges_room(session, n);
    if (status != STEPGRAPH_OK)
        return status;

    session->commit_serial++;
    for (size_t i = 0; i < n; i++) {
        status = check_pin(session, pins[i], fresh[i]);
        if (status != STEPGRAPH_OK)
            return status;
        if (pins[i]->given_serial == session->commit_serial)
            return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' is given twice in one commit", pins[i]->name);
        pins[i]->given_serial = session->commit_serial;
        if (fresh[i] == pins[i]->address)
            continue;
        pins[i]->commit_serial = session->commit_serial;
        session->range_pins[moved] = pins[i];
        session->ranges[moved++] = (sg__range){.a = pins[i]->address, .b = fresh[i], .bytes = pins[i]->bytes};
    }
    for (size_t i = 0; i < n; i++)
        if (fresh[i] != pins[i]->address) {
            status = check_source(session, pins[i], fresh[i]);
            if (status != STEPGRAPH_OK)
                return status;
        }
    session->pin_stats.skipped += n - moved;
    return moved > 0 ? commit(session, session->range_pins, session->ranges, moved) : STEPGRAPH_OK;
}
