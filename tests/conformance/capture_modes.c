/*
 * Which call is refused while a stream captures.
 *
 * Each call has a class; the class says what comes back in nine situations: the capturing thread in each of the three capture
 * modes, the same with the thread swapped to RELAXED around the call, another thread in each mode, and the capturing thread with
 * a capture stream that synchronises with the legacy stream. After each call the capture is either as good as before (a launch,
 * the end, and a replay that computes the right value) or dead (launch and end give 901, no graph; the stream is idle and can
 * capture again).
 */
#include "conformance.h"
#include "mode_calls.h"

enum { SITUATIONS = 9 };

static const struct situation {
    const char *name;
    int mode;
    bool other;    /* from another thread */
    bool swapped;  /* thread mode RELAXED around the call */
    bool blocking; /* the capture stream is not NON_BLOCKING */
} situations[SITUATIONS] = {
    {"same.GLOBAL", GLOBAL, false, false, false},      {"same.THREAD_LOCAL", LOCAL, false, false, false},
    {"same.RELAXED", RELAXED, false, false, false},    {"swapped.GLOBAL", GLOBAL, false, true, false},
    {"other.GLOBAL", GLOBAL, true, false, false},      {"other.THREAD_LOCAL", LOCAL, true, false, false},
    {"other.RELAXED", RELAXED, true, false, false},    {"blocking.GLOBAL", GLOBAL, false, false, true},
    {"blocking.RELAXED", RELAXED, false, false, true},
};

/* The rule of the modes: is an unsafe call refused here? */
static bool unsafe_here(const struct situation *s)
{
    if (s->swapped || s->mode == RELAXED)
        return false;
    return s->other ? s->mode == GLOBAL : true;
}

struct outcome {
    int code;
    bool dies;
};

static struct outcome expected(const struct mode_call *call, const struct situation *s)
{
    struct outcome accepted = {0, false}, refused = {900, true};

    switch (call->class) {
    case UNSAFE:
        return unsafe_here(s) ? refused : accepted;
    case UNSAFE_LEGACY:
        if (s->blocking)
            return (struct outcome){906, true};
        return unsafe_here(s) ? refused : accepted;
    case NEVER:
        return refused;
    case CAPTURED:
        return (struct outcome){907, true};
    case LEGACY:
        return s->blocking ? (struct outcome){906, true} : accepted;
    case LEGACY_QUERY:
        return s->blocking ? (struct outcome){906, false} : accepted;
    case FREE:
        return accepted;
    case ARGUMENT:
        return (struct outcome){call->code, false};
    case KILLS:
        return (struct outcome){call->code, true};
    }
    return accepted;
}

static const char *cell_id(int arg, int cell)
{
    static char id[160];

    snprintf(id, sizeof id, "capture.mode.%s.%s", mode_calls[arg].id, situations[cell].name);
    return id;
}

struct made {
    const struct mode_call *call;
    struct mode_env *e;
};

static CUresult make(void *p)
{
    struct made *m = p;

    return m->call->make(m->e);
}

static void set_up(struct mode_env *e, const struct mode_call *call, bool blocking)
{
    memset(e, 0, sizeof *e);
    e->capture = blocking ? stream_bl() : stream_nb();
    e->other = stream_nb();
    e->before_other = event_new();
    e->before_same = event_new();
    e->never = event_new();
    e->inside = event_new();
    e->counter = device_new(64);
    e->scratch = device_new(8192);
    if (call->prepare)
        call->prepare(e);
    MUST(EventRecord, e->before_other, e->other);
    MUST(EventRecord, e->before_same, e->capture);
    sync_all();
}

/* The handle is gone, so nothing may be said about the stream: the thread must be free and able to capture anew. */
static void after_destroy(void)
{
    CUdeviceptr p = 0;
    CUstream s = stream_nb();

    code(CU(MemAlloc)(&p, 64), 0, "cuMemAlloc afterwards");
    code(begin(s, GLOBAL), 0, "a new capture");
    code(end(s), 0, "its end");
}

static void after_death(struct mode_env *e)
{
    CUgraph g = (CUgraph)1;

    state("capture", e->capture, DEAD);
    code(launch_inc(e->counter, 1, e->capture), 901, "launch");
    code(CU(StreamEndCapture)(e->capture, &g), 901, "end");
    yes(g == NULL, "graph NULL");
    state("then", e->capture, NONE);
    code(CU(StreamSynchronize)(e->capture), 0, "sync");
    code(begin(e->capture, GLOBAL), 0, "begin again");
    code(launch_nop(e->capture), 0, "launch");
    code(end(e->capture), 0, "end");
}

static void after_survival(struct mode_env *e, const struct mode_call *call)
{
    char want[160];
    CUgraph g = NULL;
    CUgraphExec x = NULL;

    state("capture", e->capture, ACTIVE);
    code(launch_inc(e->counter, 1, e->capture), 0, "launch");
    if (!code(CU(StreamEndCapture)(e->capture, &g), 0, "end"))
        return;
    mode_call_nodes(call, want, sizeof want);
    holds("graph", g, want);
    if (!g || !code(CU(GraphInstantiateWithFlags)(&x, g, 0), call->instantiate, "instantiate") || call->instantiate)
        return;
    code(CU(GraphLaunch)(x, e->capture), 0, "replay");
    code(CU(StreamSynchronize)(e->capture), 0, "sync");
    value(peek(e->counter), 2, "computes");
}

static void run_cell(const struct mode_call *call, const struct situation *s)
{
    struct mode_env e;
    struct made made = {call, &e};
    struct outcome want = expected(call, s);
    CUresult r;

    set_up(&e, call, s->blocking);
    must_begin(e.capture, s->mode);
    MUST_LAUNCH(launch_inc(e.counter, 1, e.capture));
    MUST(EventRecord, e.inside, e.capture);
    if (s->other)
        r = in_thread(make, &made);
    else if (s->swapped)
        r = with_mode(make, &made, RELAXED);
    else
        r = make(&made);
    code(r, want.code, "%s", call->what);
    if (call->flags & CALL_DESTROYS_STREAM)
        after_destroy();
    else if (want.dies)
        after_death(&e);
    else
        after_survival(&e, call);
}

static void run_call(int index)
{
    const struct mode_call *call = &mode_calls[index];

    for (int i = resume_at(); i < SITUATIONS; i++) {
        at_cell(i);
        if (!wanted("%s", cell_id(index, i)))
            continue;
        fact("%s", cell_id(index, i));
        run_cell(call, &situations[i]);
    }
}

const struct job *capture_mode_jobs(void)
{
    static struct job *jobs;

    if (jobs)
        return jobs;
    jobs = calloc((size_t)mode_call_count + 1, sizeof *jobs);
    for (int i = 0; i < mode_call_count; i++) {
        char *id = malloc(160);

        snprintf(id, 160, "capture.mode.%s", mode_calls[i].id);
        jobs[i] = (struct job){id, run_call, i, 0, mode_calls[i].deviation, SITUATIONS, cell_id};
    }
    return jobs;
}

/* ---- the rule itself -------------------------------------------------------------------------------------------- */

static CUevent rule_event;
static CUstream rule_stream;

static CUresult call_query(void *unused)
{
    (void)unused;
    return CU(EventQuery)(rule_event);
}

static CUresult call_ctx_sync(void *unused)
{
    (void)unused;
    return CU(CtxSynchronize)();
}

static CUresult call_stream_id(void *unused)
{
    unsigned long long id;

    (void)unused;
    return CU(StreamGetId)(rule_stream, &id);
}

/* 3 capture modes x 3 thread modes x {same thread, another}. */
static void rule(int which)
{
    static CUresult (*const calls[])(void *) = {call_alloc, call_query, call_ctx_sync, call_stream_id};
    static const char *const names[] = {"cuMemAlloc", "cuEventQuery", "cuCtxSynchronize", "cuStreamGetId"};
    bool never = which >= 2;

    rule_event = event_new();
    MUST(EventRecord, rule_event, NULL);
    sync_all();
    for (int other = 0; other < 2; other++)
        for (int capture = 0; capture < 3; capture++)
            for (int thread = 0; thread < 3; thread++) {
                /* Refused if this thread's mode cares and (it captures unrelaxed itself, or it cares about all and one is
                 * global). */
                bool own = !other && capture != RELAXED;
                bool refused = never || (thread != RELAXED && (own || (thread == GLOBAL && capture == GLOBAL)));
                CUresult r;

                fact("capture.rule.%s.%s.capture_%s.thread_%s", names[which], other ? "other" : "same", mode_name[capture],
                     mode_name[thread]);
                rule_stream = stream_nb();
                must_begin(rule_stream, capture);
                MUST_LAUNCH(launch_nop(rule_stream));
                r = (other ? in_thread_mode : with_mode)(calls[which], NULL, thread);
                code(r, refused ? 900 : 0, "%s", names[which]);
                state("capture", rule_stream, refused ? DEAD : ACTIVE);
                code(end(rule_stream), refused ? 901 : 0, "end");
            }
}

/* Two captures of this thread; the refused call comes from it, or from a thread that captures nothing. */
static void which_die(int other)
{
    for (int first = 0; first < 3; first++)
        for (int second = 0; second < 3; second++) {
            bool kills_first = other ? first == GLOBAL : first != RELAXED;
            bool kills_second = other ? second == GLOBAL : second != RELAXED;
            CUstream a = stream_nb(), b = stream_nb();
            CUresult r;

            fact("capture.rule.which_die.%s.%s.%s", other ? "other" : "same", mode_name[first], mode_name[second]);
            must_begin(a, first);
            must_begin(b, second);
            MUST_LAUNCH(launch_nop(a));
            MUST_LAUNCH(launch_nop(b));
            r = other ? in_thread(call_alloc, NULL) : call_alloc(NULL);
            code(r, kills_first || kills_second ? 900 : 0, "cuMemAlloc");
            state("A", a, kills_first ? DEAD : ACTIVE);
            state("B", b, kills_second ? DEAD : ACTIVE);
            code(end(b), kills_second ? 901 : 0, "end(B)");
            code(end(a), kills_first ? 901 : 0, "end(A)");
        }
}

static void refused_free(int unused)
{
    CUstream s = stream_nb();
    CUdeviceptr p = device_new(4096);

    (void)unused;
    must_begin(s, GLOBAL);
    code(CU(MemFree)(p), 900, "cuMemFree in a capture");
    code(end(s), 901, "end");
    yes(buffer_id(p) != 0, "the memory is still allocated");
    code(CU(MemFree)(p), 0, "cuMemFree afterwards");
}

/* Freeing memory that nobody uses waits for all that runs on the device, and need not break a capture. */
struct freeing {
    CUdeviceptr memory;
    CUstream busy;
    CUresult before, freed, after;
};

static CUresult call_free(void *arg)
{
    struct freeing *f = arg;

    f->before = CU(StreamQuery)(f->busy);
    f->freed = CU(MemFree)(f->memory);
    f->after = CU(StreamQuery)(f->busy);
    return CUDA_SUCCESS;
}

static void free_waits(int unused)
{
    static const size_t bytes[] = {1, 4096, 16u << 20};

    (void)unused;
    for (int capture = GLOBAL; capture <= RELAXED; capture++)
        for (int other = 0; other < 2; other++)
            for (int i = 0; i < 3; i++) {
                CUstream s = stream_nb();
                struct freeing f = {.memory = device_new(bytes[i]), .busy = stream_nb()};

                fact("capture.rule.free_waits.%s.%s.%zu", mode_name[capture], other ? "other" : "same", bytes[i]);
                must_begin(s, capture);
                MUST_LAUNCH(launch_nop(s));
                MUST_LAUNCH(launch_spin(30, f.busy));
                (void)(other ? in_thread_mode : with_mode)(call_free, &f, RELAXED);
                code(f.before, 600, "another stream");
                code(f.freed, 0, "cuMemFree");
                code(f.after, 0, "that stream");
                state("the capture", s, ACTIVE);
                code(end(s), 0, "end");
            }
}

static void refused_exec_destroy(int unused)
{
    CUstream s = stream_nb();
    CUgraphExec x;

    (void)unused;
    x = must_instantiate(nop_graph(s));
    must_begin(s, GLOBAL);
    code(CU(GraphExecDestroy)(x), 900, "cuGraphExecDestroy in a capture");
    code(end(s), 901, "end");
    code(CU(GraphLaunch)(x, s), 0, "launch of it");
    code(CU(StreamSynchronize)(s), 0, "sync");
    code(CU(GraphExecDestroy)(x), 0, "cuGraphExecDestroy afterwards");
}

static void refused_outputs(int unused)
{
    CUstream s = stream_nb();
    CUdeviceptr p = 0x55;
    CUgraphExec x = (CUgraphExec)0x55;
    CUgraph g;

    (void)unused;
    g = nop_graph(s);
    must_begin(s, GLOBAL);
    code(CU(MemAlloc)(&p, 64), 900, "cuMemAlloc");
    yes(p == 0, "it zeroes its output");
    code(end(s), 901, "end");
    must_begin(s, GLOBAL);
    code(CU(GraphInstantiateWithFlags)(&x, g, 0), 900, "cuGraphInstantiateWithFlags");
    yes(x == (CUgraphExec)0x55, "it leaves its output");
    code(end(s), 901, "end");
}

/* In a capture that is dead already. */
static void refused_again(int unused)
{
    CUstream s = stream_nb();
    CUstreamCaptureStatus status;
    CUevent e = event_new();

    (void)unused;
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_nop(s));
    code(call_alloc(NULL), 900, "cuMemAlloc");
    code(call_alloc(NULL), 900, "again");
    code(CU(CtxSynchronize)(), 900, "cuCtxSynchronize");
    code(CU(StreamIsCapturing)(s, &status), 0, "cuStreamIsCapturing");
    code(CU(EventRecord)(e, s), 901, "cuEventRecord");
    code(launch_nop(s), 901, "launch");
    state("capture", s, DEAD);
    code(end(s), 901, "end");
}

/* A global capture forbids across contexts; the synchronisation of another context does not. */
static void across_contexts(int unused)
{
    CUcontext second = NULL;
    CUstream s = stream_nb();

    (void)unused;
    MUST(CtxCreate, &second, NULL, 0, env.device);
    MUST(CtxSetCurrent, env.ctx);
    fact("capture.rule.contexts.cuMemAlloc");
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_nop(s));
    MUST(CtxSetCurrent, second);
    code(call_alloc(NULL), 900, "cuMemAlloc in context 2");
    state("capture in context 1", s, DEAD);
    MUST(CtxSetCurrent, env.ctx);
    code(end(s), 901, "end");

    fact("capture.rule.contexts.cuCtxSynchronize");
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_nop(s));
    MUST(CtxSetCurrent, second);
    code(CU(CtxSynchronize)(), 0, "cuCtxSynchronize of context 2");
    state("capture in context 1", s, ACTIVE);
    MUST(CtxSetCurrent, env.ctx);
    code(end(s), 0, "end");
}

const struct job capture_mode_rule_jobs[] = {
    {.id = "capture.rule.cuMemAlloc", .run = rule, .arg = 0},
    {.id = "capture.rule.cuEventQuery", .run = rule, .arg = 1},
    {.id = "capture.rule.cuCtxSynchronize", .run = rule, .arg = 2},
    {.id = "capture.rule.cuStreamGetId", .run = rule, .arg = 3},
    {.id = "capture.rule.which_die.same", .run = which_die, .arg = 0},
    {.id = "capture.rule.which_die.other", .run = which_die, .arg = 1},
    {.id = "capture.rule.refused_free_frees_nothing", .run = refused_free},
    {.id = "capture.rule.free_waits", .run = free_waits},
    {.id = "capture.rule.refused_exec_destroy_destroys_nothing", .run = refused_exec_destroy},
    {.id = "capture.rule.refused_outputs", .run = refused_outputs},
    {.id = "capture.rule.refused_again", .run = refused_again},
    {.id = "capture.rule.contexts", .run = across_contexts},
    {.id = NULL},
};
