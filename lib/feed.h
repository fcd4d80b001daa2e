/*
 * Feeds and cells: values that the host hands over before a step.
 *
 * They lie side by side in a *bank*: one range of device memory, and a ring of page-locked slots, each an image of it. A value goes into
 * the ring's next slot; one copy of the part that changed takes them all to the device.
 */
#ifndef STEPGRAPH_FEED_H
#define STEPGRAPH_FEED_H

#include "session_p.h"

/* Give a FEED or CELL its place, and its address unless it is adopted. What it holds there is undefined until the banks are cleaned. */
stepgraph_status sg__bank_join(stepgraph_pin *pin);
void sg__bank_leave(stepgraph_pin *pin);

/* Fill the places of pins that joined since the last time with zeros, and wait for the stream. The context is current. */
stepgraph_status sg__banks_clean(stepgraph_session *session);

/* Free all banks. In a dead context only the host's side. */
void sg__banks_free(stepgraph_session *session);

/* Enqueue the copies of what was fed. Nothing records on the stream; the context need not be current. */
stepgraph_status sg__feeds_send(stepgraph_session *session);

/* The host's side of all feeds and cells, to keep and to put back. Nothing waits to be sent; for the second, the stream is idle. */
uint64_t sg__feeds_image_bytes(const stepgraph_session *session);
void sg__feeds_image_save(const stepgraph_session *session, unsigned char *to);
void sg__feeds_image_restore(const stepgraph_session *session, unsigned char *from);
/* How often pins were fed, when, and how much, put back to what it was when the image was saved. */
void sg__feeds_image_counts(const stepgraph_session *session, unsigned char *from);

#endif
