#include "graveyard.h"

#include <stdio.h>
#include <stdlib.h>

#include "session_p.h"

typedef struct grave {
    struct grave *next;
    const sg__driver *driver;
    CUcontext context;
    unsigned long long context_id;
    unsigned int forks; /* sg__fork_count() when it was made: in a child it is the parent's. */
    sg__grave kind;
    uintptr_t handle;
} grave;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sg__recording *recordings;
static grave *graves;
static grave *hanging; /* Of sessions whose device does not come back. */

/* With the lock held: a recording that forbids this thread to destroy anything. */
static const sg__recording *forbidding(void)
{
    const sg__recording *recording = recordings;

    while (recording != NULL && !recording->global && !pthread_equal(recording->thread, pthread_self()))
        recording = recording->next;
    return recording;
}

const char *sg__recording_here(void)
{
    const sg__recording *recording;
    const char *name;

    pthread_mutex_lock(&lock);
    for (recording = recordings; recording != NULL; recording = recording->next)
        if (pthread_equal(recording->thread, pthread_self()))
            break;
    name = recording != NULL ? recording->name : NULL;
    pthread_mutex_unlock(&lock);
    return name;
}

bool sg__recording_in(unsigned long long context_id, char *name, size_t bytes)
{
    const sg__recording *recording;

    pthread_mutex_lock(&lock);
    recording = recordings;
    while (recording != NULL && recording->context_id != context_id)
        recording = recording->next;
    if (recording != NULL)
        snprintf(name, bytes, "%s", recording->name);
    pthread_mutex_unlock(&lock);
    return recording != NULL;
}

static void destroy(const sg__driver *driver, CUcontext context, unsigned long long context_id, sg__grave kind, uintptr_t handle)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* Or a capture of the host's own would break, and the object stay. */
    unsigned long long id;
    CUcontext before;
    bool pushed;

    /* In a dead context even destroying can crash the process; the objects are gone with it. */
    if (driver->CtxGetId(context, &id) != CUDA_SUCCESS || id != context_id)
        return;
    pushed = driver->CtxPushCurrent(context) == CUDA_SUCCESS;
    driver->ThreadExchangeStreamCaptureMode(&mode);
    switch (kind) {
    case SG__GRAVE_EXEC:
        driver->GraphExecDestroy((CUgraphExec)handle);
        break;
    case SG__GRAVE_GRAPH:
        driver->GraphDestroy((CUgraph)handle);
        break;
    case SG__GRAVE_EVENT:
        driver->EventDestroy((CUevent)handle);
        break;
    case SG__GRAVE_DEVICE:
        driver->MemFree((CUdeviceptr)handle);
        break;
    case SG__GRAVE_HOST:
        driver->MemFreeHost((void *)handle);
        break;
    case SG__GRAVE_MODULE:
        driver->ModuleUnload((CUmodule)handle);
        break;
    }
    driver->ThreadExchangeStreamCaptureMode(&mode);
    if (pushed)
        driver->CtxPopCurrent(&before);
}

static void destroy_all(grave *list)
{
    while (list != NULL) {
        grave *next = list->next;
        if (list->forks == sg__fork_count())
            destroy(list->driver, list->context, list->context_id, list->kind, list->handle);
        free(list);
        list = next;
    }
}

void sg__bury_hanging(stepgraph_session *session)
{
    grave **link = &hanging, *list = NULL;

    pthread_mutex_lock(&lock);
    while (*link != NULL) {
        grave *entry = *link;
        if (entry->context_id != session->context_id) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        entry->next = list;
        list = entry;
    }
    pthread_mutex_unlock(&lock);
    destroy_all(list);
}

void sg__bury(stepgraph_session *session, sg__grave kind, uintptr_t handle)
{
    bool forbidden, hangs;

    if (handle == 0 || session->forks != sg__fork_count())
        return;
    /* Freeing waits for the device: what a hanging replay uses is kept until the session is closed, if the device is back by then. */
    hangs = session->hung != NULL && !sg__session_lives(session);
    pthread_mutex_lock(&lock);
    forbidden = forbidding() != NULL;
    if (forbidden || hangs) {
        grave *entry = malloc(sizeof *entry), **list = hangs ? &hanging : &graves;
        if (entry != NULL) { /* Without memory for a note the object leaks, which is better than to break the recording. */
            *entry = (grave){.next = *list, .driver = session->driver, .context = session->context,
                            .context_id = session->context_id, .forks = session->forks, .kind = kind, .handle = handle};
            *list = entry;
        }
    }
    pthread_mutex_unlock(&lock);
    if (!forbidden && !hangs)
        destroy(session->driver, session->context, session->context_id, kind, handle);
}

void sg__recording_starts(sg__recording *recording, unsigned long long context_id, bool global, const char *name)
{
    recording->context_id = context_id;
    recording->thread = pthread_self();
    recording->global = global;
    recording->name = name;
    pthread_mutex_lock(&lock);
    recording->next = recordings;
    recordings = recording;
    pthread_mutex_unlock(&lock);
}

void sg__recording_over(sg__recording *recording)
{
    sg__recording **link = &recordings;
    grave *list = NULL;

    pthread_mutex_lock(&lock);
    while (*link != recording)
        link = &(*link)->next;
    *link = recording->next;
    if (forbidding() == NULL) {
        list = graves;
        graves = NULL;
    }
    pthread_mutex_unlock(&lock);

    destroy_all(list);
}
