/*
 * A ring of page-locked slots that the host fills and the device reads later.
 *
 * Fenced, so that a slot is never overwritten while a queued copy has yet to read it. The slots form two halves and only a half's last
 * slot records an event: one driver call in feed_slots steps, not one in each.
 */
#ifndef STEPGRAPH_RING_H
#define STEPGRAPH_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"

typedef struct sg__ring {
    unsigned char *memory; /* Page-locked; both halves. NULL: not made. */
    size_t slot_bytes;
    unsigned int half; /* Slots in one half: as many steps may be queued before the host waits. */
    unsigned int slot; /* The one in use, or used last. */
    CUevent fence[2];  /* The last copy out of each half. */
    bool fenced[2];
} sg__ring;

struct stepgraph_session;

/* Make a ring of 2 * half slots, all zero. */
stepgraph_status sg__ring_init(struct stepgraph_session *session, sg__ring *ring, size_t slot_bytes, unsigned int half);
void sg__ring_free(struct stepgraph_session *session, sg__ring *ring);

/* Move to the next slot; waits until the device has read what it held. *waited is set when the host had to. */
stepgraph_status sg__ring_next(struct stepgraph_session *session, sg__ring *ring, bool *waited);

/* The slot's copy has been enqueued. */
stepgraph_status sg__ring_sent(struct stepgraph_session *session, sg__ring *ring);

static inline unsigned char *sg__ring_slot(const sg__ring *ring, unsigned int slot)
{
    return ring->memory + (size_t)slot * ring->slot_bytes;
}

#endif
