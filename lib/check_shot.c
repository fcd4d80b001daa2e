#include "check_shot.h"

#include <stdlib.h>
#include <string.h>

#include "arena_p.h"
#include "graveyard.h"
#include "kernels/elements.h"

#define ALIGNMENT 256u
/* Large enough that the bus, not the launches, sets the pace. */
#define WINDOW_BYTES ((uint64_t)8 << 20)

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Blocks of an arena are the host's and are not put back: comparing them would say nothing. */
static bool has_blocks(const stepgraph_pin *pin)
{
    CUdeviceptr start;
    uint64_t bytes;

    return pin->in_arena && (!sg__arena_gap(pin->session, pin, pin->address, &start, &bytes) || bytes < pin->bytes);
}

static sg__group group_of(const stepgraph_pin *pin)
{
    switch (pin->role) {
    case STEPGRAPH_ROLE_STATE:
        return SG__GROUP_STATE;
    case STEPGRAPH_ROLE_FEED:
    case STEPGRAPH_ROLE_CELL:
        return SG__GROUP_INPUT;
    case STEPGRAPH_ROLE_OUTPUT:
        return SG__GROUP_OUTPUT;
    case STEPGRAPH_ROLE_SCRATCH:
        return has_blocks(pin) ? (sg__group)0 : SG__GROUP_SCRATCH;
    default:
        return (sg__group)0;
    }
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* Cut an image into windows of at most window_bytes, none of which holds two groups. */
static stepgraph_status cut(const sg__shots *shots, uint64_t window_bytes, sg__cut *out)
{
    size_t room = shots->n_items + (size_t)(shots->bytes / window_bytes) + 8;

    out->windows = calloc(room, sizeof *out->windows);
    out->pieces = calloc(room, sizeof *out->pieces);
    if (out->windows == NULL || out->pieces == NULL)
        return sg__fail_memory("host", room * (sizeof *out->windows + sizeof *out->pieces));
    for (size_t i = 0; i < shots->n_items; i++) {
        const sg__shot_item *item = &shots->items[i];
        for (uint64_t done = 0; done < item->pin->bytes;) {
            sg__window *window = &out->windows[out->n_windows > 0 ? out->n_windows - 1 : 0];
            uint64_t at = item->offset + done, left = item->pin->bytes - done;

            if (out->n_windows == 0 || window->group != item->group || at - window->offset >= window_bytes) {
                window = &out->windows[out->n_windows++];
                *window = (sg__window){.group = item->group, .first = out->n_pieces, .offset = at};
            }
            if (left > window->offset + window_bytes - at)
                left = window->offset + window_bytes - at;
            out->pieces[out->n_pieces++] = (sg__piece){.item = i, .offset = done, .bytes = left};
            window->n++;
            window->bytes = at + left - window->offset;
            done += left;
        }
    }
    return STEPGRAPH_OK;
}

static stepgraph_status gather(sg__shots *shots, unsigned int groups, sg__pin_filter filter, const void *user)
{
    const stepgraph_session *session = shots->session;
    unsigned long long known = 0;

    shots->items = calloc(session->n_pins + 1, sizeof *shots->items);
    if (shots->items == NULL)
        return sg__fail_memory("host", (session->n_pins + 1) * sizeof *shots->items);
    for (unsigned int group = SG__GROUP_STATE; group <= SG__GROUP_SCRATCH; group *= 2)
        for (size_t i = 0; (groups & group) != 0 && i < session->n_pins; i++) {
            stepgraph_pin *pin = session->pins[i];
            stepgraph_status status;
            if ((unsigned int)group_of(pin) != group || (filter != NULL && !filter(pin, user)))
                continue;
            status = sg__pin_check_next(pin, &known); /* To copy memory that is gone would cost the context. */
            if (status != STEPGRAPH_OK)
                return status;
            pin->images++;
            shots->items[shots->n_items++] = (sg__shot_item){.pin = pin, .group = (sg__group)group, .offset = shots->bytes};
            shots->bytes += aligned(pin->bytes);
            shots->pin_bytes += pin->bytes;
        }
    if (shots->bytes == 0)
        shots->bytes = ALIGNMENT;
    return STEPGRAPH_OK;
}

static sg__range *table(const sg__shots *shots, size_t index)
{
    return (sg__range *)(void *)shots->work_host + index;
}

static stepgraph_status make_work(sg__shots *shots, unsigned int room)
{
    size_t pieces = shots->staged.n_pieces > shots->whole.n_pieces ? shots->staged.n_pieces : shots->whole.n_pieces;
    stepgraph_status status;
    sg__difference *initial;
    sg__distance *apart;
    void *memory;

    shots->tables = 2 * (room * shots->whole.n_pieces + shots->staged.n_pieces);
    shots->found_at = aligned(shots->tables * sizeof(sg__range));
    shots->kept_at = shots->found_at + aligned(pieces * sizeof(sg__difference));
    shots->distance_at = shots->kept_at + aligned(pieces * sizeof(uint64_t));
    shots->initial_at = shots->distance_at + aligned(shots->n_items * sizeof(sg__distance));
    shots->element_at = shots->initial_at + (shots->initial_at - shots->found_at);
    shots->work_bytes = shots->element_at + aligned(16 * (uint64_t)shots->n_items) + ALIGNMENT;
    status = sg__own_alloc(shots->session, &shots->work, shots->work_bytes);
    if (status == STEPGRAPH_OK)
        status = sg__host_alloc(shots->session, &memory, shots->work_bytes);
    if (status != STEPGRAPH_OK)
        return sg__fail_prefix(status, "the lists of the check: ");
    shots->work_host = memory;
    memset(memory, 0, shots->work_bytes);
    initial = (sg__difference *)(void *)(shots->work_host + shots->initial_at);
    for (size_t i = 0; i < pieces; i++)
        initial[i].first = UINT64_MAX;
    apart = (sg__distance *)(void *)(shots->work_host + shots->initial_at + (shots->distance_at - shots->found_at));
    for (size_t i = 0; i < shots->n_items; i++)
        apart[i].first = UINT64_MAX;
    return STEPGRAPH_OK;
}

stepgraph_status sg__shots_make(sg__shots *shots, stepgraph_session *session, unsigned int groups, sg__pin_filter filter, const void *user,
                                unsigned int room, uint64_t device_limit, uint64_t host_limit)
{
    stepgraph_status status;

    memset(shots, 0, sizeof *shots);
    shots->session = session;
    shots->device_left = device_limit;
    shots->host_left = host_limit;
    status = gather(shots, groups, filter, user);
    if (status != STEPGRAPH_OK)
        return status;
    shots->window_bytes = shots->bytes < WINDOW_BYTES ? shots->bytes : WINDOW_BYTES;
    status = cut(shots, UINT64_MAX / 2, &shots->whole);
    if (status == STEPGRAPH_OK)
        status = cut(shots, shots->window_bytes, &shots->staged);
    if (status == STEPGRAPH_OK)
        status = make_work(shots, room);
    return status;
}

void sg__shots_free(sg__shots *shots)
{
    stepgraph_session *session = shots->session;

    for (unsigned int i = 0; i < shots->n_shots; i++) {
        sg__own_free(session, shots->shot[i].device);
        sg__bury(session, SG__GRAVE_HOST, (uintptr_t)shots->shot[i].host);
    }
    if (session != NULL) {
        sg__own_free(session, shots->staging);
        sg__own_free(session, shots->work);
        sg__bury(session, SG__GRAVE_HOST, (uintptr_t)shots->work_host);
    }
    for (size_t i = 0; i < shots->n_items; i++)
        shots->items[i].pin->images--;
    free(shots->whole.windows);
    free(shots->whole.pieces);
    free(shots->staged.windows);
    free(shots->staged.pieces);
    free(shots->items);
    memset(shots, 0, sizeof *shots);
}

/* Write both tables between the pins and a base of device memory, in which each window begins where `staged` says. */
static stepgraph_status write_tables(sg__shots *shots, sg__cut *cut_of, CUdeviceptr base, bool staged, size_t *index_out)
{
    size_t index = shots->tables_used, n = cut_of->n_pieces;
    stepgraph_status status;

    for (size_t w = 0; w < cut_of->n_windows; w++) {
        sg__window *window = &cut_of->windows[w];
        for (size_t i = window->first; i < window->first + window->n; i++) {
            const sg__piece *piece = &cut_of->pieces[i];
            const sg__shot_item *item = &shots->items[piece->item];
            CUdeviceptr image = base + item->offset + piece->offset - (staged ? window->offset : 0);
            CUdeviceptr pin = item->pin->address + piece->offset;
            *table(shots, index + i) = (sg__range){.a = image, .b = pin, .bytes = piece->bytes};
            *table(shots, index + n + i) = (sg__range){.a = pin, .b = image, .bytes = piece->bytes};
        }
        window->chunks = sg__ranges_number(table(shots, index + window->first), window->n);
        (void)sg__ranges_number(table(shots, index + n + window->first), window->n);
    }
    if (n > 0)
        SG__CU(shots->session->driver, MemcpyHtoDAsync, shots->work + index * sizeof(sg__range), table(shots, index), 2 * n * sizeof(sg__range),
               shots->session->stream);
    shots->tables_used += 2 * n;
    *index_out = index;
    return STEPGRAPH_OK;

fail:
    return status;
}

/* Room for windows, and its tables. Made with the first image in host memory. */
static bool make_staging(sg__shots *shots)
{
    if (shots->staging != 0)
        return true;
    if (sg__own_alloc(shots->session, &shots->staging, shots->window_bytes) != STEPGRAPH_OK)
        return false;
    if (write_tables(shots, &shots->staged, shots->staging, true, &shots->staging_table) == STEPGRAPH_OK)
        return true;
    sg__own_free(shots->session, shots->staging);
    shots->staging = 0;
    return false;
}

bool sg__shot_add(sg__shots *shots, unsigned int *index_out)
{
    sg__shot *shot = &shots->shot[shots->n_shots];
    void *memory;

    if (shots->bytes <= shots->device_left && sg__own_alloc(shots->session, &shot->device, shots->bytes) == STEPGRAPH_OK) {
        if (write_tables(shots, &shots->whole, shot->device, false, &shot->table) != STEPGRAPH_OK) {
            sg__own_free(shots->session, shot->device);
            shot->device = 0;
            return false;
        }
        shots->device_left -= shots->bytes;
        shots->device_bytes += shots->bytes;
    } else if (shots->bytes <= shots->host_left && make_staging(shots) &&
               sg__host_alloc(shots->session, &memory, shots->bytes) == STEPGRAPH_OK) {
        shot->host = memory;
        shot->table = shots->staging_table;
        shots->host_left -= shots->bytes;
        shots->host_bytes += shots->bytes;
    } else {
        return false;
    }
    *index_out = shots->n_shots++;
    return true;
}

/* ---- saving and putting back ------------------------------------------------------------------------------------- */

static CUdeviceptr table_at(const sg__shots *shots, size_t index)
{
    return shots->work + index * sizeof(sg__range);
}

/* Launch the copy of one window through table `index`. */
static stepgraph_status copy_window(sg__shots *shots, const sg__window *window, size_t index)
{
    const sg__driver *driver = shots->session->driver;
    CUresult code = sg__kernels_copy(driver, &shots->session->kernels, shots->session->stream, table_at(shots, index + window->first), window->n,
                                     window->chunks);

    return code == CUDA_SUCCESS ? STEPGRAPH_OK : sg__fail_driver(driver, "cuLaunchKernel", code);
}

stepgraph_status sg__shot_save(sg__shots *shots, unsigned int index)
{
    return sg__shot_save_groups(shots, index, ~0u);
}

stepgraph_status sg__shot_save_groups(sg__shots *shots, unsigned int index, unsigned int groups)
{
    const sg__shot *shot = &shots->shot[index];
    const sg__cut *cut_of = shot->host != NULL ? &shots->staged : &shots->whole;
    stepgraph_status status;

    for (size_t w = 0; w < cut_of->n_windows; w++) {
        const sg__window *window = &cut_of->windows[w];
        if (((unsigned int)window->group & groups) == 0)
            continue;
        status = copy_window(shots, window, shot->table);
        if (status != STEPGRAPH_OK)
            return status;
        if (shot->host != NULL)
            SG__CU(shots->session->driver, MemcpyDtoHAsync, shot->host + window->offset, shots->staging, window->bytes, shots->session->stream);
    }
    return STEPGRAPH_OK;

fail:
    return status;
}

stepgraph_status sg__shot_restore(sg__shots *shots, unsigned int index, unsigned int groups)
{
    const sg__shot *shot = &shots->shot[index];
    const sg__cut *cut_of = shot->host != NULL ? &shots->staged : &shots->whole;
    stepgraph_status status;

    for (size_t w = 0; w < cut_of->n_windows; w++) {
        const sg__window *window = &cut_of->windows[w];
        if (((unsigned int)window->group & groups) == 0)
            continue;
        if (shot->host != NULL)
            SG__CU(shots->session->driver, MemcpyHtoDAsync, shots->staging, shot->host + window->offset, window->bytes, shots->session->stream);
        status = copy_window(shots, window, shot->table + cut_of->n_pieces);
        if (status != STEPGRAPH_OK)
            return status;
    }
    return STEPGRAPH_OK;

fail:
    return status;
}

stepgraph_status sg__shot_restore_one(sg__shots *shots, unsigned int index, size_t item)
{
    const sg__shot *shot = &shots->shot[index];
    const sg__shot_item *one = &shots->items[item];
    stepgraph_status status;

    if (shot->host != NULL)
        SG__CU(shots->session->driver, MemcpyHtoDAsync, one->pin->address, shot->host + one->offset, one->pin->bytes, shots->session->stream);
    else
        SG__CU(shots->session->driver, MemcpyDtoDAsync, one->pin->address, shot->device + one->offset, one->pin->bytes,
               shots->session->stream);
    return STEPGRAPH_OK;

fail:
    return status;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static stepgraph_status compare_window(sg__shots *shots, const sg__window *window, size_t index, unsigned int fill, unsigned int fill_now)
{
    const sg__driver *driver = shots->session->driver;
    CUdeviceptr found = shots->work + shots->found_at + window->first * sizeof(sg__difference);
    CUdeviceptr kept = shots->work + shots->kept_at + window->first * sizeof(uint64_t);
    CUdeviceptr ranges = table_at(shots, index + window->first);
    CUresult code;

    if ((window->group & (SG__GROUP_OUTPUT | SG__GROUP_SCRATCH)) != 0)
        code = sg__kernels_compare_filled(driver, &shots->session->kernels, shots->session->stream, ranges, window->n, window->chunks, found,
                                          kept, fill, fill_now);
    else
        code = sg__kernels_compare(driver, &shots->session->kernels, shots->session->stream, ranges, window->n, window->chunks, found);
    return code == CUDA_SUCCESS ? STEPGRAPH_OK : sg__fail_driver(driver, "cuLaunchKernel", code);
}

stepgraph_status sg__shot_compare(sg__shots *shots, unsigned int index, unsigned int groups, unsigned int fill, unsigned int fill_now)
{
    const sg__driver *driver = shots->session->driver;
    const sg__shot *shot = &shots->shot[index];
    const sg__cut *cut_of = shot->host != NULL ? &shots->staged : &shots->whole;
    CUstream stream = shots->session->stream;
    uint64_t bytes = shots->distance_at - shots->found_at;
    stepgraph_status status;

    SG__CU(driver, MemcpyHtoDAsync, shots->work + shots->found_at, shots->work_host + shots->initial_at, bytes, stream);
    for (size_t w = 0; w < cut_of->n_windows; w++) {
        const sg__window *window = &cut_of->windows[w];
        if (((unsigned int)window->group & groups) == 0)
            continue;
        if (shot->host != NULL)
            SG__CU(driver, MemcpyHtoDAsync, shots->staging, shot->host + window->offset, window->bytes, stream);
        status = compare_window(shots, window, shot->table, fill, fill_now);
        if (status != STEPGRAPH_OK)
            return status;
    }
    SG__CU(driver, MemcpyDtoHAsync, shots->work_host + shots->found_at, shots->work + shots->found_at, bytes, stream);
    for (size_t i = 0; i < shots->n_items; i++) {
        shots->items[i].bytes = shots->items[i].kept = 0;
        shots->items[i].first = UINT64_MAX;
    }
    /* Which pieces the results are about. */
    shots->staged_results = shot->host != NULL;
    return STEPGRAPH_OK;

fail:
    return status;
}

size_t sg__shots_found(sg__shots *shots, unsigned int groups)
{
    const sg__cut *cut_of = shots->staged_results ? &shots->staged : &shots->whole;
    const sg__difference *found = (const sg__difference *)(const void *)(shots->work_host + shots->found_at);
    const uint64_t *kept = (const uint64_t *)(const void *)(shots->work_host + shots->kept_at);
    size_t differ = 0;

    for (size_t i = 0; i < cut_of->n_pieces; i++) {
        sg__shot_item *item = &shots->items[cut_of->pieces[i].item];
        if (((unsigned int)item->group & groups) == 0)
            continue;
        item->bytes += found[i].bytes;
        item->kept += kept[i];
        if (found[i].bytes > 0 && item->first == UINT64_MAX)
            item->first = cut_of->pieces[i].offset + found[i].first;
    }
    for (size_t i = 0; i < shots->n_items; i++)
        differ += shots->items[i].bytes > 0 ? 1 : 0;
    return differ;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static stepgraph_status measure_one(sg__shots *shots, const sg__shot *shot, size_t index, unsigned int fill, unsigned int fill_now)
{
    const sg__shot_item *item = &shots->items[index];
    const sg__driver *driver = shots->session->driver;
    unsigned int size = sg__element_bytes(item->pin->type);
    bool filled = (item->group & (SG__GROUP_OUTPUT | SG__GROUP_SCRATCH)) != 0;
    CUdeviceptr found = shots->work + shots->distance_at + index * sizeof(sg__distance);
    uint64_t elements = item->pin->bytes / size, at_once = shot->host != NULL ? shots->window_bytes / size : elements;
    stepgraph_status status;

    for (uint64_t done = 0; done < elements; done += at_once) {
        uint64_t n = elements - done < at_once ? elements - done : at_once;
        CUdeviceptr image = shot->device + item->offset + done * size;
        CUresult code;

        if (shot->host != NULL) {
            SG__CU(driver, MemcpyHtoDAsync, shots->staging, shot->host + item->offset + done * size, n * size, shots->session->stream);
            image = shots->staging;
        }
        code = sg__kernels_distance(driver, &shots->session->kernels, shots->session->stream, image, item->pin->address + done * size, n, done,
                                    item->pin->type, filled ? fill : SG__NO_FILL, filled ? fill_now : SG__NO_FILL, found);
        if (code != CUDA_SUCCESS)
            return sg__fail_driver(driver, "cuLaunchKernel", code);
    }
    return STEPGRAPH_OK;

fail:
    return status;
}

stepgraph_status sg__shot_measure(sg__shots *shots, unsigned int index, unsigned int fill, unsigned int fill_now)
{
    const sg__driver *driver = shots->session->driver;
    uint64_t bytes = shots->initial_at - shots->distance_at;
    stepgraph_status status;

    SG__CU(driver, MemcpyHtoDAsync, shots->work + shots->distance_at,
           shots->work_host + shots->initial_at + (shots->distance_at - shots->found_at), bytes, shots->session->stream);
    for (size_t i = 0; i < shots->n_items; i++)
        if (shots->items[i].bytes > 0) {
            status = measure_one(shots, &shots->shot[index], i, fill, fill_now);
            if (status != STEPGRAPH_OK)
                return status;
        }
    SG__CU(driver, MemcpyDtoHAsync, shots->work_host + shots->distance_at, shots->work + shots->distance_at, bytes, shots->session->stream);
    return STEPGRAPH_OK;

fail:
    return status;
}

/* Both sides of the first element that differs; one that is cut off at the end of a pin counts as its bytes. */
stepgraph_status sg__shots_distances(sg__shots *shots, unsigned int index)
{
    const sg__distance *apart = (const sg__distance *)(const void *)(shots->work_host + shots->distance_at);
    const sg__driver *driver = shots->session->driver;
    const sg__shot *shot = &shots->shot[index];
    CUstream stream = shots->session->stream;
    stepgraph_status status;

    memset(shots->work_host + shots->element_at, 0, 16 * shots->n_items);
    for (size_t i = 0; i < shots->n_items; i++) {
        sg__shot_item *item = &shots->items[i];
        uint64_t size = sg__element_bytes(item->pin->type), at;
        unsigned char *place = shots->work_host + shots->element_at + 16 * i;

        if (item->bytes == 0)
            continue;
        item->distance = apart[i];
        at = item->first / size * size;
        if (at + size > item->pin->bytes)
            size = item->pin->bytes - at;
        if (shot->host != NULL)
            memcpy(place, shot->host + item->offset + at, size);
        else
            SG__CU(driver, MemcpyDtoHAsync, place, shot->device + item->offset + at, size, stream);
        SG__CU(driver, MemcpyDtoHAsync, place + 8, item->pin->address + at, size, stream);
    }
    return STEPGRAPH_OK;

fail:
    return status;
}

void sg__shots_elements(sg__shots *shots)
{
    for (size_t i = 0; i < shots->n_items; i++) {
        const unsigned char *place = shots->work_host + shots->element_at + 16 * i;
        if (shots->items[i].bytes == 0)
            continue;
        shots->items[i].saved_bits = sg__element_load(place, 8);
        shots->items[i].live_bits = sg__element_load(place + 8, 8);
    }
}
