/* The launch counter: what the host says, what the wrapper launched, what the library itself launched. */
#include "session_p.h"
#include "step_p.h"
#include "structs.h"

static inline void count_shared(sg__counter *counter, unsigned int index, uint64_t n)
{
    atomic_fetch_add_explicit(&counter->n[index], n, memory_order_relaxed);
}

/* Nobody else writes there: the add need not be one operation, which would cost as much as five. */
static inline void count_alone(sg__counter *counter, unsigned int index, uint64_t n)
{
    atomic_store_explicit(&counter->n[index], atomic_load_explicit(&counter->n[index], memory_order_relaxed) + n, memory_order_relaxed);
}

void sg__count_own(stepgraph_session *session, stepgraph_kind kind, uint64_t n)
{
    count_alone(&session->library, (unsigned int)kind, n);
}

/* A thread is known by an address of its own. */
static inline const void *this_thread(void)
{
#if defined(__has_builtin) && (defined(__x86_64__) || defined(__aarch64__))
#if __has_builtin(__builtin_thread_pointer)
#define SG__THREAD_POINTER
#endif
#endif
#ifdef SG__THREAD_POINTER
    return __builtin_thread_pointer(); /* One register, where the address of a thread's variable is a call. */
#else
    static _Thread_local char me;
    return &me;
#endif
}

/* Note whether one thread counts or several. Costs one load when nothing changes. True for the first of them. */
static inline bool note_thread(stepgraph_session *session)
{
    const void *me = this_thread(), *first = atomic_load_explicit(&session->counting_thread, memory_order_relaxed);

    if (first == me)
        return true;
    if (first == NULL && atomic_compare_exchange_strong(&session->counting_thread, &first, me))
        return true;
    if (!atomic_load_explicit(&session->many_threads, memory_order_relaxed))
        atomic_store_explicit(&session->many_threads, true, memory_order_relaxed);
    return false;
}

void stepgraph_session_count(stepgraph_session *session, stepgraph_kind kind, uint64_t n)
{
    unsigned int index = (unsigned int)kind < STEPGRAPH_KINDS ? (unsigned int)kind : STEPGRAPH_KIND_KERNEL;

    if (session == NULL)
        return;
    if (note_thread(session))
        count_alone(&session->host_first, index, n);
    else
        count_shared(&session->host, index, n);
}

uint64_t sg__counted(const stepgraph_session *session, stepgraph_kind kind)
{
    return atomic_load_explicit(&session->host_first.n[kind], memory_order_relaxed) +
           atomic_load_explicit(&session->host.n[kind], memory_order_relaxed) +
           atomic_load_explicit(&session->wrapper.n[kind], memory_order_relaxed);
}

static uint64_t sum(const sg__counter *counter)
{
    uint64_t n = 0;

    for (int kind = 0; kind < STEPGRAPH_KIND_GRAPH; kind++)
        n += atomic_load_explicit(&counter->n[kind], memory_order_relaxed);
    return n;
}

uint64_t sg__counted_all(const stepgraph_session *session)
{
    return sum(&session->host_first) + sum(&session->host) + sum(&session->wrapper);
}

uint64_t sg__counted_library(const stepgraph_session *session)
{
    return sum(&session->library);
}

stepgraph_exactness sg__exactness(const stepgraph_session *session)
{
    const void *first = atomic_load(&session->counting_thread);

    if (first == NULL)
        return STEPGRAPH_NOT_INSTRUMENTED;
    if (session->drain != NULL || first != this_thread() || atomic_load(&session->many_threads))
        return STEPGRAPH_LOWER_BOUND;
    return STEPGRAPH_EXACT;
}

static void add_counter(uint64_t *to, const sg__counter *counter)
{
    for (int i = 0; i < STEPGRAPH_KINDS_ROOM; i++)
        to[i] += atomic_load_explicit(&counter->n[i], memory_order_relaxed);
}

stepgraph_status stepgraph_session_sample(stepgraph_session *session, uint32_t flags, stepgraph_sample *sample_out)
{
    stepgraph_sample sample = STEPGRAPH_SAMPLE_INIT;
    stepgraph_status status;

    sg__error_clear();
    if (session == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no session to sample: the pointer is NULL");
    if ((flags & ~(uint32_t)STEPGRAPH_SAMPLE_DRAIN) != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "unknown sample flags 0x%x", flags);

    if ((flags & STEPGRAPH_SAMPLE_DRAIN) != 0) {
        status = sg__not_capturing(session, "a drained sample cannot be taken");
        if (status != STEPGRAPH_OK)
            return status;
        status = sg__session_drain(session);
        if (status != STEPGRAPH_OK)
            return status;
        status = sg__enter(session);
        if (status != STEPGRAPH_OK)
            return status;
        status = sg__session_wait(session);
        sg__leave(session);
        if (status != STEPGRAPH_OK)
            return status;
    }
    sample.exactness = sg__exactness(session);
    if (sample.exactness == STEPGRAPH_LOWER_BOUND && (flags & STEPGRAPH_SAMPLE_DRAIN) != 0)
        sample.exactness = STEPGRAPH_EXACT;
    add_counter(sample.host, &session->host_first);
    add_counter(sample.host, &session->host);
    add_counter(sample.wrapper, &session->wrapper);
    add_counter(sample.library, &session->library);
    return sg__struct_write(sample_out, &sample, sizeof sample, offsetof(stepgraph_sample, wrapper), "stepgraph_sample");
}

stepgraph_status stepgraph_session_launch(stepgraph_session *session, const stepgraph_launch *launch)
{
    stepgraph_step *step;
    stepgraph_launch l;
    stepgraph_status status;
    CUstream stream;

    sg__error_clear();
    if (session == NULL || launch == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing to launch: %s is NULL", session == NULL ? "the session" : "the launch");
    status = sg__struct_read(&l, sizeof l, offsetof(stepgraph_launch, flags) + sizeof l.flags, launch, "stepgraph_launch");
    if (status != STEPGRAPH_OK)
        return status;
    if (l.function == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing to launch: the function is NULL");
    if (l.flags != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "unknown launch flags 0x%x", l.flags);
    for (int i = 0; i < 3; i++) {
        l.grid[i] = l.grid[i] != 0 ? l.grid[i] : 1;
        l.block[i] = l.block[i] != 0 ? l.block[i] : 1;
    }

    stream = l.stream != NULL ? l.stream : session->stream;
    SG__CU(session->driver, LaunchKernel, l.function, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.shared_bytes,
           stream, l.arguments, l.extra);
    note_thread(session);
    count_shared(&session->wrapper, STEPGRAPH_KIND_KERNEL, 1);
    return STEPGRAPH_OK;

fail:
    step = session->capturing;
    if (step != NULL)
        sg__step_break(step);
    return status;
}
