/*
 * Recordings in progress, and driver objects that could not be destroyed because of them.
 *
 * A free or a destroy in a thread that records breaks the recording, and a host's garbage collector may ask for one at any time. They wait
 * here until no recording of the library's forbids them.
 */
#ifndef STEPGRAPH_GRAVEYARD_H
#define STEPGRAPH_GRAVEYARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct stepgraph_session;

/* One recording; stands in its step. */
typedef struct sg__recording {
    struct sg__recording *next;
    pthread_t thread;
    unsigned long long context_id;
    bool global;      /* In GLOBAL mode: unsafe calls of every thread break it. */
    const char *name; /* Of the step. */
} sg__recording;

/* A recording starts in this thread, or is over (in whatever thread). The second destroys what waited and is free to go. */
void sg__recording_starts(sg__recording *recording, unsigned long long context_id, bool global, const char *name);
void sg__recording_over(sg__recording *recording);

/* The name of a step that this thread records; NULL if it records none. */
const char *sg__recording_here(void);

/* Whether any thread records in a context, in whatever session: then no call may wait for all of it. The name of the step, cut off where there is no
 * room. */
bool sg__recording_in(unsigned long long context_id, char *name, size_t bytes);

typedef enum sg__grave {
    SG__GRAVE_EXEC,
    SG__GRAVE_GRAPH,
    SG__GRAVE_EVENT,
    SG__GRAVE_DEVICE, /* Device memory. */
    SG__GRAVE_HOST,   /* Page-locked memory. */
    SG__GRAVE_MODULE
} sg__grave;

/* Destroy now, or as soon as no recording forbids it to this thread. A zero handle does nothing. In a dead context nothing is called. */
void sg__bury(struct stepgraph_session *session, sg__grave kind, uintptr_t handle);

/* Destroy what was kept while the session's device did not come back. It has. */
void sg__bury_hanging(struct stepgraph_session *session);

#endif
