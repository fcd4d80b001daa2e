/* Registering pins, finding them by address or name, and looking after adopted memory. */
#include "pin_p.h"

#include <stdlib.h>
#include <string.h>

#include "feed.h"
#include "graveyard.h"
#include "names.h"
#include "resolve.h"
#include "room.h"
#include "step_p.h"
#include "structs.h"

/* Of the library's memory, as the header promises. */
#define MEMORY_ALIGNMENT 256u

size_t sg__pin_index(const stepgraph_session *session, CUdeviceptr address)
{
    size_t low = 0, high = session->n_pins;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const stepgraph_pin *pin = session->pins[middle];
        if (pin->address + pin->bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

stepgraph_pin *sg__pin_at(const stepgraph_session *session, CUdeviceptr address)
{
    size_t index = sg__pin_index(session, address);

    return index < session->n_pins && session->pins[index]->address <= address ? session->pins[index] : NULL;
}

stepgraph_pin *stepgraph_session_pin(const stepgraph_session *session, const char *name)
{
    return session != NULL && name != NULL ? sg__names_find(&session->names, name) : NULL;
}

/* ---- adopted memory ---------------------------------------------------------------------------------------------- */

static stepgraph_status adopt(stepgraph_pin *pin)
{
    stepgraph_session *session = pin->session;
    const CUdeviceptr address = pin->address;
    sg__allocation facts;
    stepgraph_status status = sg__allocation_ask(session->driver, address, &facts);

    if (status != STEPGRAPH_OK)
        return sg__fail_prefix(status, "pin '%s': ", pin->name);
    if (facts.type != CU_MEMORYTYPE_DEVICE)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s': 0x%llx is no device memory", pin->name, address);
    if (facts.device != session->device)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s': 0x%llx is memory of device %d, and the session's is %d", pin->name, address,
                        facts.device, session->device);
    if (address + pin->bytes > facts.start + facts.bytes)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s': %llu bytes at 0x%llx reach beyond the allocation of %llu bytes at 0x%llx", pin->name,
                        (unsigned long long)pin->bytes, address, (unsigned long long)facts.bytes, facts.start);
    pin->adopted = true;
    pin->buffer_id = facts.buffer_id;
    /* A pool recycles memory without the driver's ids telling, and freed pool memory must not even be asked about. */
    pin->verifiable = !facts.pool;
    /* Met: an address in there is known for one when the pin and the memory are gone. */
    return sg__seen_add(session, &facts);
}

#define KEEP_IT "keep it allocated while the pin lives; where it has gone for good, destroy the pin and make one of the memory in its place"

stepgraph_status sg__pin_check(const stepgraph_pin *pin)
{
    stepgraph_status status;
    sg__allocation facts;

    if (!pin->adopted || !pin->verifiable)
        return STEPGRAPH_OK;
    status = sg__allocation_ask(pin->session->driver, pin->address, &facts);
    if (status != STEPGRAPH_OK)
        return status;
    if (facts.type == 0)
        return sg__fail(STEPGRAPH_ERR_REFUSED, "the memory of pin '%s' at 0x%llx was freed: " KEEP_IT, pin->name, pin->address);
    if (facts.buffer_id != pin->buffer_id)
        return sg__fail(STEPGRAPH_ERR_REFUSED,
                        "the memory of pin '%s' at 0x%llx was replaced: freed, and the address given out again (buffer id %llu, now %llu); " KEEP_IT,
                        pin->name, pin->address, (unsigned long long)pin->buffer_id, (unsigned long long)facts.buffer_id);
    return STEPGRAPH_OK;
}

stepgraph_status sg__pin_check_next(const stepgraph_pin *pin, unsigned long long *known)
{
    if (!pin->adopted || !pin->verifiable || pin->buffer_id == *known)
        return STEPGRAPH_OK;
    *known = pin->buffer_id;
    return sg__pin_check(pin);
}

stepgraph_status sg__pins_check(size_t n, stepgraph_pin *const *pins)
{
    stepgraph_status status = STEPGRAPH_OK;
    unsigned long long known = 0;

    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++)
        status = sg__pin_check_next(pins[i], &known);
    return status;
}

/* ---- create and destroy ------------------------------------------------------------------------------------------ */

static stepgraph_status check_config(const stepgraph_pin_config *config)
{
    if (config->name == NULL || config->name[0] == '\0')
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a pin needs a name: messages use it");
    if (sg__name_check("pin", config->name) != STEPGRAPH_OK)
        return STEPGRAPH_ERR_ARGUMENT;
    if (config->role < STEPGRAPH_ROLE_STATE || config->role > STEPGRAPH_ROLE_LIBRARY)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s': unknown role %u", config->name, config->role);
    if (config->flags != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s': unknown flags 0x%x", config->name, config->flags);
    if (config->bytes == 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' has no bytes", config->name);
    if (config->type > STEPGRAPH_TYPE_U64)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s': unknown element type %u", config->name, config->type);
    if (config->reserved != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s': the reserved field is %u, not 0", config->name, config->reserved);
    if (config->address + config->bytes < config->bytes)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s': %llu bytes at 0x%llx wrap around the address space", config->name,
                        (unsigned long long)config->bytes, (unsigned long long)config->address);
    return STEPGRAPH_OK;
}

/* The i-th config; they stand as far apart as the first one says that it is long. */
static stepgraph_status read_config(const stepgraph_pin_config *configs, size_t i, stepgraph_pin_config *config)
{
    const unsigned char *at = (const unsigned char *)configs + i * configs->size;
    stepgraph_status status = sg__struct_read(config, sizeof *config, offsetof(stepgraph_pin_config, type), at, "stepgraph_pin_config");

    if (status != STEPGRAPH_OK)
        return status;
    if (config->size != configs->size)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "the stepgraph_pin_config of pin %zu has size %zu, and the first one %zu", i, config->size, configs->size);
    return check_config(config);
}

/* Pins that know what they shall be, and no more. */
static stepgraph_status make_group(stepgraph_session *session, size_t n, const stepgraph_pin_config *configs, sg__pin_group **group_out)
{
    size_t bytes = sizeof(sg__pin_group);
    stepgraph_pin_config config;
    sg__pin_group *group;
    char *text;

    if (n > SIZE_MAX / 4 / sizeof(stepgraph_pin))
        return sg__fail_memory("host", SIZE_MAX);
    for (size_t i = 0; i < n; i++) {
        stepgraph_status status = read_config(configs, i, &config);
        if (status != STEPGRAPH_OK)
            return status;
        bytes += sizeof(stepgraph_pin) + strlen(config.name) + 1;
    }
    group = calloc(1, bytes);
    if (group == NULL)
        return sg__fail_memory("host", bytes);
    group->n = group->alive = n;
    text = (char *)&group->pins[n];
    for (size_t i = 0; i < n; i++) {
        stepgraph_pin *pin = &group->pins[i];
        size_t length;

        (void)read_config(configs, i, &config);
        length = strlen(config.name) + 1;
        pin->session = session;
        pin->group = group;
        pin->name = memcpy(text, config.name, length);
        pin->name_hash = sg__name_hash(text);
        pin->role = (stepgraph_role)config.role;
        pin->type = (stepgraph_type)config.type;
        pin->bytes = config.bytes;
        pin->address = config.address;
        text += length;
    }
    *group_out = group;
    return STEPGRAPH_OK;
}

static stepgraph_status name_pins(stepgraph_session *session, sg__pin_group *group)
{
    stepgraph_status status = sg__names_reserve(&session->names, group->n);

    for (size_t i = 0; i < group->n && status == STEPGRAPH_OK; i++) {
        if (sg__names_find(&session->names, group->pins[i].name) != NULL)
            return sg__fail(STEPGRAPH_ERR_ARGUMENT, "the name '%s' is taken by another pin", group->pins[i].name);
        sg__names_add(&session->names, &group->pins[i]);
    }
    return status;
}

/* Adopt the host's, join banks; those that are left lie one behind the other in the group's memory, so many bytes. */
static stepgraph_status place_pins(sg__pin_group *group, bool *in_banks, uint64_t *bytes)
{
    *in_banks = false;
    *bytes = 0;
    for (size_t i = 0; i < group->n; i++) {
        stepgraph_pin *pin = &group->pins[i];
        stepgraph_status status = pin->address != 0 ? adopt(pin) : STEPGRAPH_OK;

        if (status == STEPGRAPH_OK && (pin->role == STEPGRAPH_ROLE_FEED || pin->role == STEPGRAPH_ROLE_CELL)) {
            *in_banks = true;
            status = sg__bank_join(pin);
        } else if (status == STEPGRAPH_OK && !pin->adopted) {
            pin->offset = (*bytes + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
            if (pin->offset < *bytes || pin->offset + pin->bytes < pin->offset)
                status = sg__fail(STEPGRAPH_ERR_MEMORY, "pin '%s': with the others that is more bytes than there are addresses", pin->name);
            *bytes = pin->offset + pin->bytes;
        }
        if (status != STEPGRAPH_OK)
            return status;
    }
    return STEPGRAPH_OK;
}

/* Give the pins their masters. */
static stepgraph_status find_memory(stepgraph_session *session, sg__pin_group *group)
{
    uint64_t bytes;
    bool in_banks;
    stepgraph_status status = place_pins(group, &in_banks, &bytes);

    if (status == STEPGRAPH_OK && bytes > 0) {
        status = sg__device_alloc(session, &group->memory, bytes);
        if (status != STEPGRAPH_OK && group->n == 1)
            return sg__fail_prefix(status, "pin '%s': ", group->pins[0].name);
        if (status != STEPGRAPH_OK)
            return sg__fail_prefix(status, "pins '%s' to '%s': ", group->pins[0].name, group->pins[group->n - 1].name);
        status = sg__seen_add(session, &(sg__allocation){.start = group->memory, .bytes = bytes, .type = CU_MEMORYTYPE_DEVICE,
                                                         .device = session->device, .node = SG__NO_NODE});
        if (status != STEPGRAPH_OK)
            return status;
        for (size_t i = 0; i < group->n; i++)
            if (!group->pins[i].adopted && group->pins[i].bank == NULL)
                group->pins[i].address = group->memory + group->pins[i].offset;
        SG__CU(session->driver, MemsetD8Async, group->memory, 0, bytes, session->stream);
    }
    if (status != STEPGRAPH_OK)
        return status;
    if (in_banks)
        return sg__banks_clean(session);
    /* The caller may go on to write it on any stream. */
    return bytes > 0 ? sg__session_wait(session) : STEPGRAPH_OK;

fail:
    return status;
}

/* Put the pins in their places in the index, which is by address. */
static stepgraph_status index_pins(stepgraph_session *session, sg__pin_group *group)
{
    stepgraph_pin **pins = sg__room(session->pins, &session->pins_room, session->n_pins + group->n, 16, sizeof(stepgraph_pin *));

    if (pins == NULL)
        return STEPGRAPH_ERR_MEMORY;
    session->pins = pins;
    for (size_t i = 0; i < group->n; i++) {
        stepgraph_pin *pin = &group->pins[i];
        size_t index = sg__pin_index(session, pin->address);

        if (index < session->n_pins && session->pins[index]->address < pin->address + pin->bytes)
            return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' (%llu bytes at 0x%llx) overlaps pin '%s' (%llu bytes at 0x%llx)", pin->name,
                            (unsigned long long)pin->bytes, pin->address, session->pins[index]->name,
                            (unsigned long long)session->pins[index]->bytes, session->pins[index]->address);
        memmove(&session->pins[index + 1], &session->pins[index], (session->n_pins - index) * sizeof *session->pins);
        session->pins[index] = pin;
        session->n_pins++;
        session->registry++;
        session->pin_stats.pins++;
        session->pin_stats.pin_bytes += pin->bytes;
    }
    return STEPGRAPH_OK;
}

/* Take a pin out of whatever it got into. */
static void unregister(stepgraph_pin *pin)
{
    stepgraph_session *session = pin->session;
    size_t index = sg__pin_index(session, pin->address);

    if (index < session->n_pins && session->pins[index] == pin) {
        memmove(&session->pins[index], &session->pins[index + 1], (session->n_pins - index - 1) * sizeof *session->pins);
        session->n_pins--;
        session->registry++;
        session->pin_stats.pins--;
        session->pin_stats.pin_bytes -= pin->bytes;
    }
    sg__names_remove(&session->names, pin);
    if (pin->bank != NULL)
        sg__bank_leave(pin);
    if (--pin->group->alive == 0) {
        sg__bury(session, SG__GRAVE_DEVICE, pin->group->memory);
        free(pin->group);
    }
}

/* Snapshots that will be put back know nothing of pins that are made meanwhile. */
static stepgraph_status check_moment(const stepgraph_session *session, const sg__pin_group *group)
{
    if (session->checking)
        return sg__fail(STEPGRAPH_ERR_STATE, "pin '%s' cannot be made in a callback of a check, whose snapshots know nothing of it: make it before", group->pins[0].name);
    for (size_t i = 0; session->running != NULL && session->running->rehearses && i < group->n; i++)
        if (group->pins[i].role == STEPGRAPH_ROLE_STATE)
            return sg__fail(STEPGRAPH_ERR_STATE, "pin '%s' cannot be made in a warm-up run that will be undone, which could not put it back: make it before the run",
                            group->pins[i].name);
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_pin_create_many(stepgraph_session *session, size_t n, const stepgraph_pin_config *configs, stepgraph_pin **pins_out)
{
    stepgraph_status status;
    sg__pin_group *group = NULL;

    sg__error_clear();
    if (session == NULL || (n > 0 && (configs == NULL || pins_out == NULL)))
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no pin can be made: session, config or pin_out is NULL");
    if (n == 0)
        return STEPGRAPH_OK;
    status = make_group(session, n, configs, &group);
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__not_capturing(session, "a pin cannot be made");
    if (status == STEPGRAPH_OK)
        status = check_moment(session, group);
    if (status == STEPGRAPH_OK)
        status = name_pins(session, group);
    if (status == STEPGRAPH_OK)
        status = sg__enter(session);
    if (status == STEPGRAPH_OK) {
        status = find_memory(session, group);
        if (status == STEPGRAPH_OK)
            status = index_pins(session, group);
        sg__leave(session);
    }
    if (status != STEPGRAPH_OK) {
        /* The last of them takes the group along. */
        for (size_t i = 0; i < n; i++)
            unregister(&group->pins[i]);
        return sg__log_failure(session, status);
    }
    for (size_t i = 0; i < n; i++)
        pins_out[i] = &group->pins[i];
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_pin_create(stepgraph_session *session, const stepgraph_pin_config *config, stepgraph_pin **pin_out)
{
    return stepgraph_pin_create_many(session, 1, config, pin_out);
}

stepgraph_status stepgraph_pin_destroy(stepgraph_pin *pin)
{
    stepgraph_session *session;
    stepgraph_status status;

    sg__error_clear();
    if (pin == NULL)
        return STEPGRAPH_OK;
    session = pin->session;
    if (pin->in_arena)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' is the memory of an arena: call stepgraph_arena_destroy()", pin->name);
    status = sg__not_capturing(session, "a pin cannot be destroyed");
    if (status != STEPGRAPH_OK)
        return status;
    for (const stepgraph_step *step = session->steps; pin->users > 0 && step != NULL; step = step->next)
        if (sg__step_uses(step, pin))
            return sg__fail(STEPGRAPH_ERR_STATE, "pin '%s' is used by the live graph of step '%s': %s first", pin->name, step->name,
                            step->in_loop ? "call stepgraph_loop_drop() or destroy its loop" : "reset or destroy the step");
    if (pin->images > 0)
        return sg__fail(STEPGRAPH_ERR_STATE,
                        "pin '%s' is in a snapshot that will be put back: end or cancel the turn of the loop, or let the check come to its end, first",
                        pin->name);
    unregister(pin);
    return STEPGRAPH_OK;
}

/* ---- getters ----------------------------------------------------------------------------------------------------- */

uint64_t stepgraph_pin_address(const stepgraph_pin *pin)
{
    return pin->address;
}

uint64_t stepgraph_pin_bytes(const stepgraph_pin *pin)
{
    return pin->bytes;
}

const char *stepgraph_pin_name(const stepgraph_pin *pin)
{
    return pin->name;
}

stepgraph_role stepgraph_pin_role(const stepgraph_pin *pin)
{
    return pin->role;
}

stepgraph_type stepgraph_pin_type(const stepgraph_pin *pin)
{
    return pin->type;
}

stepgraph_status stepgraph_session_pin_stats(const stepgraph_session *session, stepgraph_pin_stats *stats_out)
{
    sg__error_clear();
    if (session == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no session to ask: the pointer is NULL");
    return sg__struct_write(stats_out, &session->pin_stats, sizeof session->pin_stats, offsetof(stepgraph_pin_stats, pin_bytes),
                            "stepgraph_pin_stats");
}
