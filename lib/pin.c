/* Registering pins, finding them by address or name, and looking after adopted memory. */
#include "pin_p.h"

#include <stdlib.h>
#include <string.h>

#include "feed.h"
#include "graveyard.h"
#include "resolve.h"
#include "step_p.h"
#include "structs.h"

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
    if (session == NULL || name == NULL)
        return NULL;
    for (size_t i = 0; i < session->n_pins; i++)
        if (strcmp(session->pins[i]->name, name) == 0)
            return session->pins[i];
    return NULL;
}

/* ---- adopted memory ---------------------------------------------------------------------------------------------- */

static stepgraph_status adopt(stepgraph_pin *pin, CUdeviceptr address)
{
    const stepgraph_session *session = pin->session;
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
    pin->address = address;
    pin->buffer_id = facts.buffer_id;
    /* A pool recycles memory without the driver's ids telling, and freed pool memory must not even be asked about. */
    pin->verifiable = !facts.pool;
    return STEPGRAPH_OK;
}

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
        return sg__fail(STEPGRAPH_ERR_REFUSED, "the memory of pin '%s' at 0x%llx was freed: keep it allocated while the pin lives", pin->name,
                        pin->address);
    if (facts.buffer_id != pin->buffer_id)
        return sg__fail(STEPGRAPH_ERR_REFUSED,
                        "the memory of pin '%s' at 0x%llx was replaced: freed, and the address given out again (buffer id %llu, now %llu); keep it "
                        "allocated while the pin lives",
                        pin->name, pin->address, (unsigned long long)pin->buffer_id, (unsigned long long)facts.buffer_id);
    return STEPGRAPH_OK;
}

/* ---- create and destroy ------------------------------------------------------------------------------------------ */

static stepgraph_status check_config(const stepgraph_session *session, const stepgraph_pin_config *config)
{
    if (config->name == NULL || config->name[0] == '\0')
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a pin needs a name: messages use it");
    if (config->role < STEPGRAPH_ROLE_STATE || config->role > STEPGRAPH_ROLE_SCRATCH)
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
    if (stepgraph_session_pin(session, config->name) != NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "the name '%s' is taken by another pin", config->name);
    return STEPGRAPH_OK;
}

/* Give the pin its master. */
static stepgraph_status find_memory(stepgraph_pin *pin, CUdeviceptr address)
{
    stepgraph_session *session = pin->session;
    stepgraph_status status = STEPGRAPH_OK;

    if (address != 0)
        status = adopt(pin, address);
    if (status == STEPGRAPH_OK && (pin->role == STEPGRAPH_ROLE_FEED || pin->role == STEPGRAPH_ROLE_CELL))
        return sg__bank_join(pin);
    if (status != STEPGRAPH_OK || pin->adopted)
        return status;

    status = sg__device_alloc(session, &pin->address, pin->bytes);
    if (status != STEPGRAPH_OK)
        return sg__fail_prefix(status, "pin '%s': ", pin->name);
    SG__CU(session->driver, MemsetD8Async, pin->address, 0, pin->bytes, session->stream);
    /* The caller may go on to write it on any stream. */
    return sg__session_wait(session);

fail:
    return status;
}

static void free_pin(stepgraph_pin *pin)
{
    if (pin->bank != NULL)
        sg__bank_leave(pin);
    else if (!pin->adopted)
        sg__bury(pin->session, SG__GRAVE_DEVICE, pin->address);
    free(pin->name);
    free(pin);
}

/* Put the pin in its place in the index, which is by address. */
static stepgraph_status index_pin(stepgraph_pin *pin)
{
    stepgraph_session *session = pin->session;
    size_t index = sg__pin_index(session, pin->address);

    if (index < session->n_pins && session->pins[index]->address < pin->address + pin->bytes)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' (%llu bytes at 0x%llx) overlaps pin '%s' (%llu bytes at 0x%llx)", pin->name,
                        (unsigned long long)pin->bytes, pin->address, session->pins[index]->name,
                        (unsigned long long)session->pins[index]->bytes, session->pins[index]->address);
    if (session->n_pins == session->pins_room) {
        size_t room = session->pins_room != 0 ? 2 * session->pins_room : 16;
        stepgraph_pin **larger = realloc(session->pins, room * sizeof(stepgraph_pin *));
        if (larger == NULL)
            return sg__fail_memory("host", room * sizeof(stepgraph_pin *));
        session->pins = larger;
        session->pins_room = room;
    }
    memmove(&session->pins[index + 1], &session->pins[index], (session->n_pins - index) * sizeof *session->pins);
    session->pins[index] = pin;
    session->n_pins++;
    session->registry++;
    session->pin_stats.pins++;
    session->pin_stats.pin_bytes += pin->bytes;
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_pin_create(stepgraph_session *session, const stepgraph_pin_config *given, stepgraph_pin **pin_out)
{
    stepgraph_pin_config config;
    stepgraph_status status;
    stepgraph_pin *pin;

    sg__error_clear();
    if (session == NULL || given == NULL || pin_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no pin can be made: session, config or pin_out is NULL");
    status = sg__struct_read(&config, sizeof config, offsetof(stepgraph_pin_config, type), given, "stepgraph_pin_config");
    if (status == STEPGRAPH_OK)
        status = check_config(session, &config);
    if (status == STEPGRAPH_OK)
        status = sg__not_capturing(session, "a pin cannot be made");
    if (status != STEPGRAPH_OK)
        return status;

    pin = calloc(1, sizeof *pin);
    if (pin == NULL || (pin->name = strdup(config.name)) == NULL) {
        free(pin);
        return sg__fail_memory("host", sizeof *pin);
    }
    pin->session = session;
    pin->role = (stepgraph_role)config.role;
    pin->type = (stepgraph_type)config.type;
    pin->bytes = config.bytes;

    status = sg__enter(session);
    if (status == STEPGRAPH_OK) {
        status = find_memory(pin, config.address);
        if (status == STEPGRAPH_OK)
            status = index_pin(pin);
        sg__leave(session);
    }
    if (status != STEPGRAPH_OK) {
        free_pin(pin);
        return sg__log_failure(session, status);
    }
    *pin_out = pin;
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_pin_destroy(stepgraph_pin *pin)
{
    stepgraph_session *session;
    stepgraph_status status;
    size_t index;

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
            return sg__fail(STEPGRAPH_ERR_STATE, "pin '%s' is used by the live graph of step '%s': reset or destroy the step first", pin->name,
                            step->name);

    index = sg__pin_index(session, pin->address);
    memmove(&session->pins[index], &session->pins[index + 1], (session->n_pins - index - 1) * sizeof *session->pins);
    session->n_pins--;
    session->registry++;
    session->pin_stats.pins--;
    session->pin_stats.pin_bytes -= pin->bytes;
    free_pin(pin);
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
