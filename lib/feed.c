#include "feed.h"

#include <stdlib.h>
#include <string.h>

#include "graveyard.h"
#include "pin_p.h"

/* Feeds are arrays that kernels read by wide loads; cells are scalars, kept close so that a thousand of them stay a small copy. */
#define FEED_ALIGNMENT 256u
#define CELL_ALIGNMENT 16u

struct sg__bank {
    sg__bank *next;
    CUdeviceptr base;
    uint64_t bytes, used, clean; /* Behind the last lie pins that joined and hold no zeros yet. */
    stepgraph_pin *pins;
    size_t n_pins, n_adopted;

    sg__ring ring;
    bool open;          /* The ring's slot takes values that wait to be sent. */
    uint64_t round;     /* Counts the openings: a pin whose fed_round is another has not been fed since. */
    uint64_t low, high; /* The part of the slot that changed. */
    size_t n_fed;
    uint64_t bytes_fed; /* Of these; as much as high - low where nothing lies in between. */
};

/* ---- banks ------------------------------------------------------------------------------------------------------- */

static void bank_free(stepgraph_session *session, sg__bank *bank)
{
    sg__bury(session, SG__GRAVE_DEVICE, bank->base);
    sg__ring_free(session, &bank->ring);
    free(bank);
}

static stepgraph_status bank_make(stepgraph_session *session, uint64_t bytes, sg__bank **bank_out)
{
    sg__bank *bank = calloc(1, sizeof *bank);
    stepgraph_status status;

    if (bank == NULL)
        return sg__fail_memory("host", sizeof *bank);
    bank->bytes = bytes;
    status = sg__ring_init(session, &bank->ring, bytes, session->feed_slots);
    if (status == STEPGRAPH_OK)
        status = sg__device_alloc(session, &bank->base, bytes);
    if (status != STEPGRAPH_OK) {
        bank_free(session, bank);
        return status;
    }
    bank->next = session->banks;
    session->banks = bank;
    *bank_out = bank;
    return STEPGRAPH_OK;
}

static uint64_t align(uint64_t offset, uint64_t alignment)
{
    return (offset + alignment - 1) / alignment * alignment;
}

stepgraph_status sg__bank_join(stepgraph_pin *pin)
{
    stepgraph_session *session = pin->session;
    uint64_t alignment = pin->role == STEPGRAPH_ROLE_CELL ? CELL_ALIGNMENT : FEED_ALIGNMENT;
    stepgraph_status status;
    sg__bank *bank;

    for (bank = session->banks; bank != NULL; bank = bank->next)
        if (pin->bytes <= bank->bytes && align(bank->used, alignment) <= bank->bytes - pin->bytes)
            break;
    if (bank == NULL) {
        status = bank_make(session, pin->bytes > session->feed_bytes ? pin->bytes : session->feed_bytes, &bank);
        if (status != STEPGRAPH_OK && pin->bytes > session->feed_bytes)
            return sg__fail_prefix(status, "pin '%s', and room for %u steps ahead: ", pin->name, session->feed_slots);
        if (status != STEPGRAPH_OK)
            return sg__fail_prefix(status, "pin '%s', for which the session sets feed_bytes = %llu aside, and room for %u steps ahead: ", pin->name,
                                   (unsigned long long)session->feed_bytes, session->feed_slots);
    }
    pin->bank = bank;
    pin->offset = align(bank->used, alignment);
    pin->slot = bank->ring.slot;
    pin->fed_round = bank->round - 1;
    pin->next_in_bank = bank->pins;
    pin->link_in_bank = &bank->pins;
    if (bank->pins != NULL)
        bank->pins->link_in_bank = &pin->next_in_bank;
    bank->pins = pin;
    bank->n_pins++;
    bank->used = pin->offset + pin->bytes;
    if (pin->adopted)
        bank->n_adopted++;
    else
        pin->address = bank->base + pin->offset;
    return STEPGRAPH_OK;
}

stepgraph_status sg__banks_clean(stepgraph_session *session)
{
    stepgraph_status status;

    for (const sg__bank *bank = session->banks; bank != NULL; bank = bank->next)
        if (bank->clean < bank->used)
            SG__CU(session->driver, MemsetD8Async, bank->base + bank->clean, 0, bank->used - bank->clean, session->stream);
    /* A place may have belonged to another pin before, and a copy of that one may still be queued: wait before the host writes there. */
    status = sg__session_wait(session);
    for (sg__bank *bank = session->banks; status == STEPGRAPH_OK && bank != NULL; bank = bank->next) {
        memset(sg__ring_slot(&bank->ring, bank->ring.slot) + bank->clean, 0, bank->used - bank->clean);
        bank->clean = bank->used;
    }
    return status;

fail:
    return status;
}

void sg__bank_leave(stepgraph_pin *pin)
{
    sg__bank *bank = pin->bank;

    *pin->link_in_bank = pin->next_in_bank;
    if (pin->next_in_bank != NULL)
        pin->next_in_bank->link_in_bank = pin->link_in_bank;
    bank->n_pins--;
    bank->n_adopted -= pin->adopted ? 1 : 0;
    if (bank->open && pin->fed_round == bank->round) {
        bank->n_fed--;
        bank->bytes_fed -= pin->bytes;
    }
    if (bank->n_pins == 0) {
        bank->used = bank->clean = 0;
        bank->open = false;
    }
    pin->bank = NULL;
}

void sg__banks_free(stepgraph_session *session)
{
    while (session->banks != NULL) {
        sg__bank *bank = session->banks;
        session->banks = bank->next;
        bank_free(session, bank);
    }
}

/* ---- feeding ----------------------------------------------------------------------------------------------------- */

stepgraph_status stepgraph_pin_feed(stepgraph_pin *pin, const void *data, uint64_t bytes)
{
    stepgraph_session *session;
    stepgraph_status status;
    unsigned char *place;
    sg__bank *bank;

    sg__error_clear();
    if (pin == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing to feed: the pin is NULL");
    if (data == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' cannot be fed: the data is NULL", pin->name);
    if (pin->bank == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' is neither a FEED nor a CELL: use stepgraph_pin_write()", pin->name);
    if (bytes > pin->bytes)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' has %llu bytes and was fed %llu", pin->name, (unsigned long long)pin->bytes,
                        (unsigned long long)bytes);
    session = pin->session;
    bank = pin->bank;

    if (!bank->open) {
        bool waited;
        status = sg__session_alive(session); /* The slots go with the context; asked once for each of them. */
        if (status == STEPGRAPH_OK)
            status = sg__ring_next(session, &bank->ring, &waited);
        if (status != STEPGRAPH_OK)
            return sg__log_failure(session, status);
        session->pin_stats.feed_waits += waited ? 1 : 0;
        bank->open = true;
        bank->round++;
        bank->low = bank->bytes;
        bank->high = 0;
        bank->n_fed = 0;
        bank->bytes_fed = 0;
        session->fed = true;
    }
    place = sg__ring_slot(&bank->ring, bank->ring.slot) + pin->offset;
    memcpy(place, data, bytes);
    if (bytes < pin->bytes)
        memset(place + bytes, 0, pin->bytes - bytes);

    pin->slot = bank->ring.slot;
    if (pin->fed_round != bank->round) {
        pin->fed_round = bank->round;
        bank->n_fed++;
        bank->bytes_fed += pin->bytes;
    }
    if (pin->offset < bank->low)
        bank->low = pin->offset;
    if (pin->offset + pin->bytes > bank->high)
        bank->high = pin->offset + pin->bytes;
    pin->feeds++;
    pin->fed_bytes = bytes;
    pin->fed_at = ++session->pin_stats.feeds;
    return session->running != NULL ? stepgraph_session_flush(session) : STEPGRAPH_OK;
}

static stepgraph_status feed_scalar(stepgraph_pin *pin, const void *value, uint64_t bytes)
{
    if (pin != NULL && pin->bytes != bytes)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "pin '%s' has %llu bytes and was fed a scalar of %llu", pin->name,
                        (unsigned long long)pin->bytes, (unsigned long long)bytes);
    return stepgraph_pin_feed(pin, value, bytes);
}

stepgraph_status stepgraph_pin_feed_f32(stepgraph_pin *pin, float value)
{
    return feed_scalar(pin, &value, sizeof value);
}

stepgraph_status stepgraph_pin_feed_f64(stepgraph_pin *pin, double value)
{
    return feed_scalar(pin, &value, sizeof value);
}

stepgraph_status stepgraph_pin_feed_u32(stepgraph_pin *pin, uint32_t value)
{
    return feed_scalar(pin, &value, sizeof value);
}

stepgraph_status stepgraph_pin_feed_u64(stepgraph_pin *pin, uint64_t value)
{
    return feed_scalar(pin, &value, sizeof value);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* The copy takes everything from low to high: bring along the values in between that were not fed this time. */
static void carry_over(sg__bank *bank)
{
    unsigned int slot = bank->ring.slot;

    /* The list runs from the highest offset down. */
    for (stepgraph_pin *pin = bank->pins; pin != NULL && pin->offset >= bank->low; pin = pin->next_in_bank)
        if (pin->fed_round != bank->round && pin->offset < bank->high) {
            if (pin->slot != slot)
                memcpy(sg__ring_slot(&bank->ring, slot) + pin->offset, sg__ring_slot(&bank->ring, pin->slot) + pin->offset, pin->bytes);
            pin->slot = slot;
        }
}

/* Adopted feeds live elsewhere: from the bank to their own places, in one launch. */
static stepgraph_status scatter(stepgraph_session *session, const sg__bank *bank)
{
    stepgraph_status status = sg__ranges_room(session, bank->n_adopted);
    size_t n = 0;

    if (status != STEPGRAPH_OK)
        return status;
    for (const stepgraph_pin *pin = bank->pins; pin != NULL; pin = pin->next_in_bank)
        if (pin->adopted && pin->fed_round == bank->round)
            session->ranges[n++] = (sg__range){.a = pin->address, .b = bank->base + pin->offset, .bytes = pin->bytes};
    if (n == 0)
        return STEPGRAPH_OK;
    SG__CU(session->driver, CtxPushCurrent, session->context);
    status = sg__commit_now(session, session->ranges, n);
    sg__leave(session);
fail:
    return status;
}

static stepgraph_status send_bank(stepgraph_session *session, sg__bank *bank)
{
    uint64_t bytes = bank->high - bank->low;
    stepgraph_status status;

    if (bank->n_fed < bank->n_pins && bank->bytes_fed < bytes)
        carry_over(bank);
    SG__CU_STREAM(session, MemcpyHtoDAsync, bank->base + bank->low, sg__ring_slot(&bank->ring, bank->ring.slot) + bank->low, bytes,
                  session->stream);
    sg__count_own(session, STEPGRAPH_KIND_COPY, 1);
    session->pin_stats.feed_copies++;
    session->pin_stats.feed_bytes += bytes;
    status = sg__ring_sent(session, &bank->ring);
    if (status == STEPGRAPH_OK && bank->n_adopted > 0)
        status = scatter(session, bank);
    bank->open = status != STEPGRAPH_OK; /* All of it once more, then: an adopted feed has no value yet, or the slot no fence. */
    return status;

fail:
    return status;
}

stepgraph_status sg__feeds_send(stepgraph_session *session)
{
    for (sg__bank *bank = session->banks; bank != NULL; bank = bank->next)
        if (bank->open) {
            stepgraph_status status = send_bank(session, bank);
            if (status != STEPGRAPH_OK)
                return status;
        }
    session->fed = false;
    return STEPGRAPH_OK;
}

/* ---- putting back ------------------------------------------------------------------------------------------------ */

/* Ahead of each value in an image. A callback may have made or destroyed pins since. */
typedef struct pictured {
    stepgraph_pin *pin; /* NULL: the end. Not to be looked into. */
    uint64_t bytes, feeds, fed_at, fed_bytes;
} pictured;

static unsigned char *slot_of(const sg__bank *bank, const stepgraph_pin *pin)
{
    return sg__ring_slot(&bank->ring, pin->slot) + pin->offset;
}

uint64_t sg__feeds_image_bytes(const stepgraph_session *session)
{
    uint64_t bytes = sizeof(pictured);

    for (const sg__bank *bank = session->banks; bank != NULL; bank = bank->next)
        for (const stepgraph_pin *pin = bank->pins; pin != NULL; pin = pin->next_in_bank)
            bytes += sizeof(pictured) + pin->bytes;
    return bytes;
}

void sg__feeds_image_save(const stepgraph_session *session, unsigned char *to)
{
    pictured one = {0};

    for (const sg__bank *bank = session->banks; bank != NULL; bank = bank->next)
        for (stepgraph_pin *pin = bank->pins; pin != NULL; pin = pin->next_in_bank) {
            one = (pictured){.pin = pin, .bytes = pin->bytes, .feeds = pin->feeds, .fed_at = pin->fed_at, .fed_bytes = pin->fed_bytes};
            memcpy(to, &one, sizeof one);
            memcpy(to + sizeof one, slot_of(bank, pin), pin->bytes);
            to += sizeof one + pin->bytes;
        }
    one.pin = NULL;
    memcpy(to, &one, sizeof one);
}

/* Where the value of a pin stands in an image: mostly behind the last one. NULL: it has none. */
static unsigned char *value_in(unsigned char *image, unsigned char **next, const stepgraph_pin *pin, pictured *out)
{
    unsigned char *from[] = {*next, image};

    for (size_t i = 0; i < 2; i++)
        for (unsigned char *at = from[i];; at += sizeof *out + out->bytes) {
            memcpy(out, at, sizeof *out);
            if (out->pin == NULL)
                break;
            if (out->pin == pin && out->bytes == pin->bytes) {
                *next = at + sizeof *out + out->bytes;
                return at + sizeof *out;
            }
        }
    return NULL;
}

static void restore(const stepgraph_session *session, unsigned char *from, bool values)
{
    unsigned char *next = from, *value;
    pictured one;

    for (const sg__bank *bank = session->banks; bank != NULL; bank = bank->next)
        for (stepgraph_pin *pin = bank->pins; pin != NULL; pin = pin->next_in_bank) {
            value = value_in(from, &next, pin, &one);
            if (value != NULL && values) {
                memcpy(slot_of(bank, pin), value, pin->bytes);
            } else if (value != NULL) {
                pin->feeds = one.feeds;
                pin->fed_at = one.fed_at;
                pin->fed_bytes = one.fed_bytes;
            }
        }
}

void sg__feeds_image_restore(const stepgraph_session *session, unsigned char *from)
{
    restore(session, from, true);
}

void sg__feeds_image_counts(const stepgraph_session *session, unsigned char *from)
{
    restore(session, from, false);
}

stepgraph_status stepgraph_session_flush(stepgraph_session *session)
{
    stepgraph_status status;

    sg__error_clear();
    if (session == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no session to flush: the pointer is NULL");
    status = sg__not_capturing(session, "feeds cannot be sent");
    if (status != STEPGRAPH_OK || !session->fed)
        return status;
    status = sg__enter(session);
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__feeds_send(session);
    sg__leave(session);
    return sg__log_failure(session, status);
}
