/* Forks, joins, and events that were recorded in a capture or outside of one. */
#include "conformance.h"

static CUdeviceptr counter;

static void add(CUstream s)
{
    MUST_LAUNCH(launch_inc(counter, 1, s));
}

static void nop(CUstream s)
{
    MUST_LAUNCH(launch_nop(s));
}

/* Work in a stream under capture, and in its fork. */
static void begin_forked(CUstream s, CUstream a)
{
    must_begin(s, GLOBAL);
    add(s);
    fork_to(s, a);
    add(a);
}

static void forks(int unused)
{
    CUstream s = stream_nb(), a = stream_nb(), b = stream_nb();

    (void)unused;
    counter = device_new(64);

    fact("fork.unjoined_with_work");
    begin_forked(s, a);
    told_end("end", s, 904, "NULL");
    state("origin", s, NONE);
    state("fork", a, NONE);
    code(launch_nop(a), 0, "launch on the fork");

    fact("fork.unjoined_without_work");
    must_begin(s, GLOBAL);
    add(s);
    fork_to(s, a);
    told_end("end", s, 0, "kernel=1");
    state("fork", a, NONE);

    fact("fork.from_empty_origin");
    must_begin(s, GLOBAL);
    fork_to(s, a);
    state("fork", a, ACTIVE);
    add(a);
    told_end("end", s, 904, "NULL");

    fact("fork.joined");
    begin_forked(s, a);
    fork_to(a, s);
    told_end("end", s, 0, "kernel=2");
    state("fork", a, NONE);

    fact("fork.work_after_join");
    begin_forked(s, a);
    fork_to(a, s);
    add(a);
    told_end("end", s, 904, "NULL");

    fact("fork.of_a_fork_joined_through_the_last");
    begin_forked(s, a);
    fork_to(a, b);
    add(b);
    fork_to(b, s);
    told_end("end", s, 0, "kernel=3");
}

static void fork_dies_with_origin(int unused)
{
    CUstream s = stream_nb(), a = stream_nb();

    (void)unused;
    must_begin(s, GLOBAL);
    nop(s);
    fork_to(s, a);
    nop(a);
    code(call_alloc(NULL), 900, "cuMemAlloc");
    state("origin", s, DEAD);
    state("fork", a, DEAD);
    code(launch_nop(a), 901, "launch on the fork");
    told_end("end(origin)", s, 901, "NULL");
    state("fork", a, NONE);
    code(launch_nop(a), 0, "launch on the fork");
    code(CU(StreamSynchronize)(a), 0, "sync");
}

static void outside_events(int unused)
{
    CUstream s = stream_nb(), o = stream_nb();
    CUevent out = event_new(), never = event_new();

    (void)unused;
    for (int m = 0; m < 3; m++) {
        fact("event.outside.complete.%s", mode_name[m]);
        nop(o);
        MUST(EventRecord, out, o);
        MUST(StreamSynchronize, o);
        must_begin(s, m);
        nop(s);
        code(CU(StreamWaitEvent)(s, out, 0), 905, "wait on a completed outside event");
        state("capture", s, DEAD);
        told_end("end", s, 901, "NULL");
    }

    fact("event.outside.pending");
    MUST_LAUNCH(launch_spin(30, o));
    MUST(EventRecord, out, o);
    must_begin(s, GLOBAL);
    code(CU(StreamWaitEvent)(s, out, 0), 905, "first thing in the capture: wait on a pending outside event");
    state("capture", s, DEAD);
    told_end("end", s, 901, "NULL");
    sync_all();

    fact("event.outside.same_stream");
    MUST(EventRecord, out, s);
    must_begin(s, GLOBAL);
    nop(s);
    code(CU(StreamWaitEvent)(s, out, 0), 905, "wait on an event that this stream recorded before");
    state("capture", s, DEAD);
    told_end("end", s, 901, "NULL");

    fact("event.outside.recorded_meanwhile");
    must_begin(s, GLOBAL);
    nop(s);
    code(CU(EventRecord)(out, o), 0, "record on an idle stream during the capture");
    code(CU(StreamWaitEvent)(s, out, 0), 905, "wait on it");
    state("capture", s, DEAD);
    told_end("end", s, 901, "NULL");

    fact("event.outside.never_recorded");
    must_begin(s, GLOBAL);
    nop(s);
    code(CU(StreamWaitEvent)(s, never, 0), 0, "wait on a never recorded event");
    state("capture", s, ACTIVE);
    told_end("end", s, 0, "kernel=1");

    fact("event.outside.external_wait");
    MUST(EventRecord, out, o);
    must_begin(s, GLOBAL);
    nop(s);
    code(CU(StreamWaitEvent)(s, out, CU_EVENT_WAIT_EXTERNAL), 0, "EXTERNAL wait on an outside event");
    told_end("end", s, 0, "kernel=1 wait_event=1");

    fact("event.external_flag_on_idle_stream");
    code(CU(StreamWaitEvent)(s, out, CU_EVENT_WAIT_EXTERNAL), 401, "cuStreamWaitEvent(EXTERNAL), idle stream");
    code(CU(EventRecordWithFlags)(out, s, CU_EVENT_RECORD_EXTERNAL), 401, "cuEventRecordWithFlags(EXTERNAL), idle stream");
}

static void captured_during(int unused)
{
    CUstream s = stream_nb();
    CUevent e = event_new();

    (void)unused;
    for (int m = 0; m < 3; m++) {
        fact("event.captured.query_during.%s", mode_name[m]);
        must_begin(s, m);
        nop(s);
        MUST(EventRecord, e, s);
        code(CU(EventQuery)(e), 907, "cuEventQuery");
        state("capture", s, DEAD);
        told_end("end", s, 901, "NULL");
    }
}

static void captured_after(int unused)
{
    CUstream s = stream_nb(), o = stream_nb();
    CUevent e = event_new();
    float ms;

    (void)unused;
    fact("event.captured.after_end");
    must_begin(s, GLOBAL);
    nop(s);
    MUST(EventRecord, e, s);
    code(end(s), 0, "end");
    code(CU(EventQuery)(e), 1, "cuEventQuery");
    code(CU(EventSynchronize)(e), 1, "cuEventSynchronize");
    code(CU(StreamWaitEvent)(o, e, 0), 1, "cuStreamWaitEvent(idle stream)");
    code(CU(EventElapsedTime)(&ms, e, e), 1, "cuEventElapsedTime");

    fact("event.captured.in_a_later_capture");
    must_begin(o, GLOBAL);
    code(CU(StreamWaitEvent)(o, e, 0), 1, "a later capture waits on it");
    state("capture", o, DEAD);
    told_end("end", o, 901, "NULL");

    fact("event.captured.recorded_again");
    code(CU(EventRecord)(e, s), 0, "record outside");
    code(CU(StreamSynchronize)(s), 0, "sync");
    code(CU(EventQuery)(e), 0, "cuEventQuery");
}

static void captured_invalidated(int unused)
{
    CUstream s = stream_nb(), o = stream_nb();
    CUevent e = event_new();

    (void)unused;
    must_begin(s, GLOBAL);
    nop(s);
    MUST(EventRecord, e, s);
    code(call_alloc(NULL), 900, "cuMemAlloc");
    code(CU(StreamWaitEvent)(o, e, 0), 1, "an idle stream waits on an event of the dead capture");
    state("idle stream", o, NONE);
    code(CU(EventQuery)(e), 1, "cuEventQuery");
    told_end("end", s, 901, "NULL");
    code(CU(StreamWaitEvent)(o, e, 0), 1, "the wait after the end");
}

static void merge(int unused)
{
    CUstream a = stream_nb(), b = stream_nb();
    CUevent e = event_new();

    (void)unused;
    must_begin(a, RELAXED);
    must_begin(b, RELAXED);
    nop(a);
    nop(b);
    MUST(EventRecord, e, b);
    code(CU(StreamWaitEvent)(a, e, 0), 902, "capture A waits on an event of capture B");
    state("A", a, DEAD);
    state("B", b, DEAD);
    told_end("end(A)", a, 901, "NULL");
    told_end("end(B)", b, 901, "NULL");
}

static void external_records(int unused)
{
    CUstream s = stream_nb();
    CUevent a = event_new(), b = event_new();
    CUgraph g;
    CUgraphExec x;
    float ms = 0;

    (void)unused;
    must_begin(s, GLOBAL);
    MUST(EventRecordWithFlags, a, s, CU_EVENT_RECORD_EXTERNAL);
    MUST_LAUNCH(launch_spin(20, s));
    MUST(EventRecordWithFlags, b, s, CU_EVENT_RECORD_EXTERNAL);
    g = must_end(s);
    holds("graph", g, "kernel=1 event_record=2");
    x = must_instantiate(g);
    code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(EventQuery)(b), 600, "cuEventQuery while it runs");
    code(CU(StreamSynchronize)(s), 0, "sync");
    code(CU(EventQuery)(b), 0, "cuEventQuery");
    code(CU(EventElapsedTime)(&ms, a, b), 0, "cuEventElapsedTime");
    yes(ms > 19.5 && ms < 60, "about 20 ms for a kernel of 20 ms (%.2f)", ms);
}

/* The time between two events tells whether they are over, and may be asked for at any time. */
static void elapsed_pending(int unused)
{
    CUstream s = stream_nb(), o = stream_nb();
    CUevent a, b;
    CUcontext context = NULL;
    float ms = 0;

    (void)unused;
    MUST(EventCreate, &a, CU_EVENT_DEFAULT);
    MUST(EventCreate, &b, CU_EVENT_DEFAULT);
    MUST(EventRecord, a, o);
    MUST_LAUNCH(launch_spin(30, o));
    MUST(EventRecord, b, o);
    code(CU(EventElapsedTime)(&ms, a, b), 600, "cuEventElapsedTime while it runs");
    must_begin(s, GLOBAL);
    nop(s);
    code(CU(EventElapsedTime)(&ms, a, b), 600, "while it runs, and something is captured");
    MUST(CtxPopCurrent, &context);
    code(CU(EventElapsedTime)(&ms, a, b), 600, "the same without a context");
    MUST(CtxPushCurrent, context);
    told_end("end", s, 0, "kernel=1");
    code(CU(StreamSynchronize)(o), 0, "sync");
    code(CU(EventElapsedTime)(&ms, a, b), 0, "cuEventElapsedTime");
    yes(ms > 29.5 && ms < 80, "about 30 ms for a kernel of 30 ms (%.2f)", ms);
}

/* The fork of a destroyed event goes on. */
static void captured_destroyed(int unused)
{
    CUstream s = stream_nb(), a = stream_nb();
    CUevent e = event_new();

    (void)unused;
    counter = device_new(64);
    must_begin(s, GLOBAL);
    add(s);
    MUST(EventRecord, e, s);
    MUST(StreamWaitEvent, a, e, 0);
    code(CU(EventDestroy)(e), 0, "cuEventDestroy after the fork");
    add(a);
    fork_to(a, s);
    told_end("end", s, 0, "kernel=2");
}

/* A stream destroyed before its join leaves its work unjoined. */
static void fork_destroyed(int unused)
{
    CUstream s = stream_nb(), a = stream_nb();

    (void)unused;
    counter = device_new(64);
    begin_forked(s, a);
    code(CU(StreamDestroy)(a), 0, "cuStreamDestroy(fork)");
    told_end("end", s, 904, "NULL");
}

const struct job fork_event_jobs[] = {
    {.id = "fork", .run = forks},
    {.id = "fork.dies_with_origin", .run = fork_dies_with_origin},
    {.id = "fork.destroyed_before_join", .run = fork_destroyed},
    {.id = "event.captured.destroyed", .run = captured_destroyed},
    {.id = "event.outside", .run = outside_events},
    {.id = "event.captured.query_during", .run = captured_during},
    {.id = "event.captured", .run = captured_after},
    {.id = "event.captured.of_an_invalidated_capture", .run = captured_invalidated},
    {.id = "event.merge", .run = merge},
    {.id = "event.elapsed.pending", .run = elapsed_pending, .flags = JOB_ALONE},
    {.id = "event.external_records", .run = external_records, .flags = JOB_ALONE},
    {.id = NULL},
};
