/* The gate, handles, fences and the beginning and end of the process. */
#include "core.h"

#include <stdarg.h>
#include <time.h>
#include <unistd.h>

struct cs_global cs = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
__thread struct cs_thread cs_me __attribute__((tls_model("initial-exec")));

/* ---- small things -------------------------------------------------------------------------------------------------- */

void cs_say(const char *format, ...)
{
    char line[600];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (n < 0)
        return;
    if ((size_t)n > sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n] = '\n';
    line[n + 1] = '\0';
    fprintf(stderr, "cusim: %s", line);
}

void *cs_alloc_bytes(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);

    if (!p) {
        fputs("cusim: out of host memory\n", stderr);
        abort();
    }
    return p;
}

void *cs_grow(void *array, size_t *room, size_t need, size_t item)
{
    if (need <= *room)
        return array;
    size_t more = *room ? *room * 2 : 4;
    if (more < need)
        more = need;
    array = realloc(array, more * item);
    if (!array) {
        fputs("cusim: out of host memory\n", stderr);
        abort();
    }
    *room = more;
    return array;
}

uint64_t cs_id(void)
{
    return ++cs.next_id;
}

unsigned long cs_thread_id(void)
{
    static unsigned long last;

    if (cs_me.id == 0)
        cs_me.id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return cs_me.id;
}

uint64_t cs_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- handles ------------------------------------------------------------------------------------------------------- */

/* Live handles, open addressing. A handle that is not here is refused instead of being followed. */
static struct slot {
    const void *handle;
    enum cs_type type;
} * slots;
static size_t num_slots, used_slots;

static size_t slot_of(const void *handle)
{
    uint64_t h = (uint64_t)(uintptr_t)handle * 0x9E3779B97F4A7C15u;
    return (size_t)(h >> 20) & (num_slots - 1);
}

static struct slot *slot_find(const void *handle)
{
    if (num_slots == 0)
        return NULL;
    for (size_t i = slot_of(handle); slots[i].handle; i = (i + 1) & (num_slots - 1))
        if (slots[i].handle == handle)
            return &slots[i];
    return NULL;
}

void cs_handle_add(const void *handle, enum cs_type type)
{
    if ((used_slots + 1) * 2 > num_slots) {
        struct slot *old = slots;
        size_t n = num_slots;

        num_slots = n ? n * 2 : 256;
        slots = cs_alloc_bytes(num_slots * sizeof *slots);
        used_slots = 0;
        for (size_t i = 0; i < n; i++)
            if (old[i].handle)
                cs_handle_add(old[i].handle, old[i].type);
        free(old);
    }
    size_t i = slot_of(handle);
    while (slots[i].handle)
        i = (i + 1) & (num_slots - 1);
    slots[i] = (struct slot){handle, type};
    used_slots++;
}

void cs_handle_remove(const void *handle)
{
    struct slot *s = slot_find(handle);
    size_t hole, i;

    if (!s)
        return;
    used_slots--;
    hole = (size_t)(s - slots);
    slots[hole].handle = NULL;
    /* Move back what would no longer be found across the hole. */
    for (i = (hole + 1) & (num_slots - 1); slots[i].handle; i = (i + 1) & (num_slots - 1)) {
        size_t home = slot_of(slots[i].handle);
        if (((i - home) & (num_slots - 1)) >= ((i - hole) & (num_slots - 1))) {
            slots[hole] = slots[i];
            slots[i].handle = NULL;
            hole = i;
        }
    }
}

bool cs_is(const void *handle, enum cs_type type)
{
    struct slot *s = handle ? slot_find(handle) : NULL;
    return s && s->type == type;
}

void cs_handles_each(enum cs_type type, void (*fn)(void *handle, void *data), void *data)
{
    void **found = NULL;
    size_t n = 0, room = 0;

    for (size_t i = 0; i < num_slots; i++)
        if (slots[i].handle && slots[i].type == type) {
            found = cs_grow(found, &room, n + 1, sizeof *found);
            found[n++] = (void *)(uintptr_t)slots[i].handle;
        }
    for (size_t i = 0; i < n; i++)
        if (cs_is(found[i], type))
            fn(found[i], data);
    free(found);
}

/* ---- fences -------------------------------------------------------------------------------------------------------- */

struct cs_fence *cs_fence_new(void)
{
    struct cs_fence *f = cs_alloc_bytes(sizeof *f);

    f->refs = 1;
    return f;
}

struct cs_fence *cs_fence_get(struct cs_fence *f)
{
    if (f)
        f->refs++;
    return f;
}

void cs_fence_put(struct cs_fence *f)
{
    if (f && --f->refs == 0)
        free(f);
}

void cs_fence_signal(struct cs_fence *f)
{
    f->done = true;
    f->ns = cs_now();
    pthread_cond_broadcast(&cs.done);
}

void cs_fence_wait(struct cs_fence *f)
{
    if (!f || f->done)
        return;
    cs_fence_get(f);
    cs_turn_waiting(true);
    while (!f->done && !cs.exiting)
        pthread_cond_wait(&cs.done, &cs.lock);
    cs_turn_waiting(false);
    cs_fence_put(f);
}

/* ---- the gate ------------------------------------------------------------------------------------------------------ */

CUresult cs_enter(struct cs_scope *scope, enum cs_entry entry)
{
    unsigned rules = cs_entry_table[entry].rules;
    int injected;

    scope->locked = false;
    cs_me.per_thread = cs_per_thread_next != 0;
    cs_per_thread_next = 0;
    cs_configure();
    injected = cs_injected(entry);
    if (injected >= 0)
        return (CUresult)injected;
    if (cs.stub)
        return CUDA_ERROR_STUB_LIBRARY;
    if (cs_me.in_callback && !(rules & E_CB))
        return CUDA_ERROR_NOT_PERMITTED;

    pthread_mutex_lock(&cs.lock);
    scope->locked = true;
    cs.calls++;
    if (rules & E_BARE)
        return CUDA_SUCCESS;
    if (cs.exiting)
        return CUDA_ERROR_DEINITIALIZED;
    if (!cs.initialized || cs.forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (rules & E_FAULT) {
        CUcontext ctx = cs_current();
        if (ctx && ctx->fault)
            return ctx->fault;
    }
    if (rules & E_CTX) {
        CUresult r = cs_context_check();
        if (r)
            return r;
    }
    if (rules & E_UNSAFE)
        return cs_unsafe();
    return CUDA_SUCCESS;
}

void cs_leave(struct cs_scope *scope)
{
    cs_me.per_thread = false;
    if (!scope->locked)
        return;
    pthread_mutex_unlock(&cs.lock);
    if (!cs_me.in_callback)
        cs_users_run_due();
}

/* ---- begin and end ------------------------------------------------------------------------------------------------- */

static void fork_prepare(void)
{
    pthread_mutex_lock(&cs.lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&cs.lock);
}

/* The worker threads are not in the child. As with a card, CUDA does not survive a fork after cuInit. */
static void fork_child(void)
{
    cs.forked = cs.initialized;
    pthread_mutex_unlock(&cs.lock);
}

/* At exit, work still queued is dropped; what runs is waited for, but not for long. */
__attribute__((destructor)) static void at_exit(void)
{
    if (!cs.initialized || cs.forked)
        return;
    pthread_mutex_lock(&cs.lock);
    cs.exiting = true;
    pthread_cond_broadcast(&cs.done);
    cs_workers_stop();
    pthread_mutex_unlock(&cs.lock);
    free(slots);
    slots = NULL;
    num_slots = used_slots = 0;
    if (cs.check == CS_CHECK_FAIL && cs.findings > 0) {
        cs_say("check: %lu findings; the process fails", cs.findings);
        fflush(NULL);
        _exit(CUSIM_FINDINGS_STATUS);
    }
}

CUresult cuInit(unsigned int flags)
{
    ENTER(cuInit);
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (cs.forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (cs.devices == 0)
        return CUDA_ERROR_NO_DEVICE;
    if (!cs.initialized) {
        pthread_atfork(fork_prepare, fork_parent, fork_child);
        cs_guard_install();
        cs_contexts_reset();
        for (int i = 0; i < CS_MAX_DEVICES; i++)
            cs_pools_reset(i);
        cs.initialized = true;
    }
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    ENTER(cuDriverGetVersion);
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = cs.driver_version;
    return CUDA_SUCCESS;
}
