/* The lifecycle of a step: prepare, capture, end, replay, reset, destroy. The table of states stands in step.h. */
#include "step_p.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena_p.h"
#include "audit_p.h"
#include "feed.h"
#include "launchable.h"
#include "relax_p.h"
#include "structs.h"
#include "tune.h"

/* Adopted memory is looked at this often where the host does not say; where there is more of it than this, once in as many replays as there are
 * allocations, so that a replay pays for one look, less than 0.1 us, on average. */
#define LIVENESS_EVERY_LEAST 64u

#define KNOWN_FLAGS                                                                                                       \
    ((uint32_t)(STEPGRAPH_STEP_GLOBAL | STEPGRAPH_STEP_ALLOW_EMPTY | STEPGRAPH_STEP_ALLOW_UNREGISTERED |                  \
                STEPGRAPH_STEP_ALLOW_ESCAPED | STEPGRAPH_STEP_STRICT_FEEDS | STEPGRAPH_STEP_TIMING |                       \
                STEPGRAPH_STEP_ALLOW_HOST_MEMORY | STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS | STEPGRAPH_STEP_ALLOW_ALLOCATIONS |  \
                STEPGRAPH_STEP_ALLOW_FREED | STEPGRAPH_STEP_ALLOW_FOREIGN | STEPGRAPH_STEP_ALLOW_FORMER_STATE |                            \
                STEPGRAPH_STEP_AS_RECORDED | STEPGRAPH_STEP_ALLOW_HOST_ARGUMENTS | STEPGRAPH_STEP_SCAN_BYTES))

/* ---- states ------------------------------------------------------------------------------------------------------ */

static const char *const state_names[] = {
    [STEPGRAPH_STEP_BEGUN] = "BEGUN", [STEPGRAPH_STEP_PREPARED] = "PREPARED", [STEPGRAPH_STEP_CAPTURING] = "CAPTURING",
    [STEPGRAPH_STEP_READY] = "READY", [STEPGRAPH_STEP_FAILED] = "FAILED",
};

typedef enum call { CALL_PREPARE, CALL_CAPTURE, CALL_END, CALL_REPLAY } call;

static const char *const call_names[] = {
    [CALL_PREPARE] = "stepgraph_step_prepare()",
    [CALL_CAPTURE] = "stepgraph_step_capture()",
    [CALL_END] = "stepgraph_step_end()",
    [CALL_REPLAY] = "stepgraph_step_replay()",
};

/* What to do instead; NULL where the call is allowed. reset and destroy are allowed in every state. */
static const char *const refusals[][STEPGRAPH_STEP_FAILED + 1] = {
    [CALL_PREPARE] = {
        [STEPGRAPH_STEP_CAPTURING] = "it is recording: call stepgraph_step_end() or stepgraph_step_reset() first",
        [STEPGRAPH_STEP_READY] = "a graph is live: call stepgraph_step_reset() first",
    },
    [CALL_CAPTURE] = {
        [STEPGRAPH_STEP_BEGUN] = "it is not prepared: call stepgraph_step_prepare() first",
        [STEPGRAPH_STEP_CAPTURING] = "it is recording already: call stepgraph_step_end() or stepgraph_step_reset() first",
        [STEPGRAPH_STEP_READY] = "a graph is live: call stepgraph_step_reset() and stepgraph_step_prepare() first",
    },
    [CALL_END] = {
        [STEPGRAPH_STEP_BEGUN] = "it is not recording: call stepgraph_step_prepare() and stepgraph_step_capture() first",
        [STEPGRAPH_STEP_PREPARED] = "it is not recording: call stepgraph_step_capture() first",
        [STEPGRAPH_STEP_READY] = "it is not recording: its graph is live and can be replayed",
    },
    [CALL_REPLAY] = {
        [STEPGRAPH_STEP_BEGUN] = "it has no graph: record one with stepgraph_step_prepare(), stepgraph_step_capture() and stepgraph_step_end()",
        [STEPGRAPH_STEP_PREPARED] = "it has no graph yet: record one with stepgraph_step_capture() and stepgraph_step_end()",
        [STEPGRAPH_STEP_CAPTURING] = "it is recording: call stepgraph_step_end() first",
    },
};

static stepgraph_status allowed(const stepgraph_step *step, call what)
{
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "%s: the step is NULL", call_names[what]);
    if (step->state == STEPGRAPH_STEP_FAILED)
        return sg__error_set(&step->error);
    if (refusals[what][step->state] == NULL)
        return STEPGRAPH_OK;
    sg__fail(STEPGRAPH_ERR_STATE, "%s refused, step '%s' is %s: %s", call_names[what], step->name, state_names[step->state],
             step->in_loop ? "it belongs to a loop, and its state is the loop's to change: where the host has changed it, call stepgraph_loop_drop(), which "
                             "begins again with recordings"
                           : refusals[what][step->state]);
    return sg__log_failure(step->session, STEPGRAPH_ERR_STATE);
}

static void move(stepgraph_step *step, stepgraph_state state)
{
    sg__log(step->session, step->again ? STEPGRAPH_LOG_DEBUG : STEPGRAPH_LOG_INFO, "step '%s': %s -> %s", step->name, state_names[step->state], state_names[state]);
    step->state = state;
}

/* A launch that fails in another thread breaks the recording too. */
static pthread_mutex_t cause_lock = PTHREAD_MUTEX_INITIALIZER;

/* Keep the thread's error record as the step's first cause. */
static void keep_cause(stepgraph_step *step)
{
    pthread_mutex_lock(&cause_lock);
    if (step->error.status == STEPGRAPH_OK)
        sg__error_get(&step->error);
    pthread_mutex_unlock(&cause_lock);
}

stepgraph_status sg__step_broken(const stepgraph_step *step)
{
    stepgraph_error_info cause;

    pthread_mutex_lock(&cause_lock);
    cause = step->error;
    pthread_mutex_unlock(&cause_lock);
    return cause.status != STEPGRAPH_OK ? sg__error_set(&cause) : STEPGRAPH_OK;
}

stepgraph_status sg__step_invalidated(const stepgraph_step *step, const char *place)
{
    const bool global = (step->flags & STEPGRAPH_STEP_GLOBAL) != 0;
    stepgraph_error_info said;

    sg__error_get(&said);
    return sg__fail_prefix(STEPGRAPH_ERR_CAPTURE,
                           "the recording of step '%s' broke %s. A call that may not run while recording (an allocation or free, a synchronisation, a "
                           "query of the stream) was made by %s; do it before %s%s%s",
                           step->name, place, global ? "some thread of the process" : "this thread, or a device-wide synchronisation by another",
                           step->in_loop ? "stepgraph_loop_begin()" : "stepgraph_step_prepare()",
                           global ? ", or, if another thread must make it, record without STEPGRAPH_STEP_GLOBAL" : "",
                           said.message[0] != '\0' ? ": " : "");
}

void sg__step_break(stepgraph_step *step)
{
    const char *stage = sg__stage_now(step);
    stepgraph_error_info why;
    char place[192];

    sg__error_get(&why);
    if (why.driver_code == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED && sg__step_broken(step) == STEPGRAPH_OK) {
        if (stage[0] != '\0')
            snprintf(place, sizeof place, "in stage '%s', before %s", stage, why.call);
        else
            snprintf(place, sizeof place, "before %s", why.call);
        (void)sg__step_invalidated(step, place);
        keep_cause(step);
        return;
    }
    (void)sg__error_set(&why);
    /* Whatever failed, what it means for the step is that its recording broke. */
    if (why.status == STEPGRAPH_ERR_DRIVER || why.status == STEPGRAPH_ERR_ARGUMENT || why.status == STEPGRAPH_ERR_UNSUPPORTED)
        sg__fail_prefix(STEPGRAPH_ERR_CAPTURE, "the recording of step '%s' is broken%s%s%s: ", step->name, stage[0] != '\0' ? " in stage '" : "",
                        stage, stage[0] != '\0' ? "'" : "");
    keep_cause(step);
    (void)sg__error_set(&why);
}

/* ---- begin ------------------------------------------------------------------------------------------------------- */

stepgraph_status stepgraph_step_begin(stepgraph_session *session, const stepgraph_step_config *given, stepgraph_step **step_out)
{
    const stepgraph_step_config defaults = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_step_config config;
    stepgraph_status status;
    stepgraph_step *step;

    sg__error_clear();
    if (session == NULL || step_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no step can be made: %s is NULL", session == NULL ? "the session" : "step_out");
    status = sg__struct_read(&config, sizeof config, offsetof(stepgraph_step_config, name), given != NULL ? given : &defaults,
                             "stepgraph_step_config");
    if (status != STEPGRAPH_OK)
        return status;
    if ((config.flags & ~KNOWN_FLAGS) != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "unknown step flags 0x%x", config.flags & ~KNOWN_FLAGS);
    status = sg__name_check("step", config.name);
    if (status != STEPGRAPH_OK)
        return status;

    step = calloc(1, sizeof *step);
    if (step == NULL || (step->name = strdup(config.name != NULL ? config.name : "step")) == NULL) {
        free(step);
        return sg__fail_memory("host", sizeof *step);
    }
    step->session = session;
    step->flags = config.flags;
    step->liveness_every = config.liveness_every;
    step->state = STEPGRAPH_STEP_BEGUN;
    step->error = (stepgraph_error_info)STEPGRAPH_ERROR_INFO_INIT;
    step->stages.timing = (config.flags & STEPGRAPH_STEP_TIMING) != 0;
    step->stages.laps_most = SG__LAPS;
    step->next = session->steps;
    session->steps = step;
    *step_out = step;
    return STEPGRAPH_OK;
}

/* ---- dropping what a step holds ---------------------------------------------------------------------------------- */

void sg__step_as_recorded(stepgraph_step *step)
{
    sg__tune_drop(step);
    sg__relax_drop(step);
}

/* Forget the graph. Replays in flight are waited for unless something records, when the graveyard keeps what they use. */
static void drop_graph(stepgraph_step *step)
{
    stepgraph_session *session = step->session;
    bool idle = step->exec == NULL && step->spare == NULL;

    if ((step->exec != NULL || step->spare != NULL) && sg__session_lives(session) && session->capturing == NULL &&
        session->driver->CtxPushCurrent(session->context) == CUDA_SUCCESS) {
        idle = sg__session_wait(session) == STEPGRAPH_OK;
        sg__leave(session);
    }
    sg__step_as_recorded(step);
    sg__relax_forget(step);
    sg__bury(session, SG__GRAVE_EXEC, (uintptr_t)step->exec);
    sg__bury(session, SG__GRAVE_EXEC, (uintptr_t)step->spare);
    sg__bury(session, SG__GRAVE_GRAPH, (uintptr_t)step->graph);
    /* The next recording can use them again: freeing device memory waits for all that runs on the device. */
    if (!idle)
        sg__table_free(session, &step->tables);
    step->exec = step->spare = NULL;
    step->graph = NULL;
    step->lists_pending = false;

    for (size_t i = 0; i < step->n_used; i++) {
        stepgraph_pin *pin = step->used[i];
        pin->users--;
        /* What a replay has used is no more fresh for the next recording. */
        if (pin->feeds == step->used_feeds[i] && pin->fed_at > step->fed_before)
            step->fed_before = pin->fed_at;
    }
    free(step->used);
    free(step->watched);
    free(step->used_feeds);
    free(step->sources);
    free(step->looks);
    free(step->carried);
    step->carried = NULL;
    step->n_carried = 0;
    step->used = NULL;
    step->watched = NULL;
    step->used_feeds = NULL;
    step->sources = NULL;
    step->looks = NULL;
    step->n_used = step->n_watched = step->n_sources = step->n_looks = step->n_copied = 0;
    step->watches_copies = step->not_run = step->outputs_stale = false;
    memset(step->stats.nodes, 0, sizeof step->stats.nodes);
    step->stats.nodes_other = step->stats.nodes_total = step->stats.nodes_unread = step->stats.pins_used = 0;
    step->stats.pin_nodes = step->stats.pin_bytes = step->stats.unregistered = step->stats.sets_as_kernels = 0;
    sg__graph_free(&step->read);
    sg__allocations_free(&step->allocations);
    step->pin_kernels = step->pin_copies = step->pin_bytes = 0;
}

/* End the driver's capture, whatever became of it; afterwards the stream is usable. */
static CUresult stop_recording(stepgraph_step *step)
{
    stepgraph_session *session = step->session;
    CUresult code = session->driver->StreamEndCapture(session->stream, &step->graph);

    session->capturing = NULL;
    sg__recording_over(&step->recording);
    sg__sides_close(step);
    return code;
}

/* Whatever the step holds: a recording in progress, a graph. */
static void unwind(stepgraph_step *step)
{
    stepgraph_session *session = step->session;

    if (session->capturing == step && sg__session_lives(session)) {
        (void)stop_recording(step);
    } else if (session->capturing == step) {
        session->capturing = NULL;
        sg__recording_over(&step->recording);
    }
    drop_graph(step);
}

stepgraph_status sg__step_fail(stepgraph_step *step)
{
    keep_cause(step);
    drop_graph(step);
    move(step, STEPGRAPH_STEP_FAILED);
    return sg__log_failure(step->session, sg__error_set(&step->error));
}

stepgraph_status sg__step_spoiled(const stepgraph_step *step, const char *tried, stepgraph_status status)
{
    return sg__fail_prefix(status, "what the %s of step '%s' ran could not be put back, so the state is that of no step, go back to a checkpoint: ", tried,
                           step->name);
}

/* ---- prepare and capture ----------------------------------------------------------------------------------------- */

stepgraph_status stepgraph_step_prepare(stepgraph_step *step)
{
    stepgraph_status status;

    sg__error_clear();
    status = allowed(step, CALL_PREPARE);
    if (status != STEPGRAPH_OK || step->state == STEPGRAPH_STEP_PREPARED)
        return status;
    status = sg__enter(step->session);
    if (status != STEPGRAPH_OK)
        return status;
    /* Room for the lists of commits, so that recording needs no allocation. */
    status = sg__table_renew(step->session, &step->tables);
    sg__leave(step->session);
    if (status == STEPGRAPH_OK)
        move(step, STEPGRAPH_STEP_PREPARED);
    return sg__log_failure(step->session, status);
}

stepgraph_status stepgraph_step_capture(stepgraph_step *step)
{
    stepgraph_session *session;
    stepgraph_status status;
    const char *other;
    bool global;

    sg__error_clear();
    status = allowed(step, CALL_CAPTURE);
    if (status != STEPGRAPH_OK)
        return status;
    session = step->session;
    if (session->capturing != NULL)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' cannot record: step '%s' of the same session is recording; end it first", step->name,
                        session->capturing->name);
    other = sg__recording_here();
    if (other != NULL)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' cannot record: this thread is recording step '%s' of another session; end it first",
                        step->name, other);
    status = sg__no_run_open(step, "record");
    if (status != STEPGRAPH_OK)
        return status;

    status = sg__enter(session);
    if (status != STEPGRAPH_OK)
        return status;
    global = (step->flags & STEPGRAPH_STEP_GLOBAL) != 0;
    SG__CU(session->driver, StreamBeginCapture, session->stream, global ? CU_STREAM_CAPTURE_MODE_GLOBAL : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    sg__leave(session);

    sg__recording_starts(&step->recording, session->context_id, global, step->name);
    session->capturing = step;
    session->recorded = step;
    step->serial = ++session->recordings;
    for (int kind = 0; kind < STEPGRAPH_KINDS; kind++)
        step->counted_before[kind] = sg__counted(session, (stepgraph_kind)kind);
    sg__stages_record(step);
    sg__arenas_record(session);
    move(step, STEPGRAPH_STEP_CAPTURING);
    return STEPGRAPH_OK;

fail:
    sg__leave(session);
    return sg__log_failure(session, sg__fail_prefix(status, "step '%s' cannot record: ", step->name));
}

stepgraph_status sg__step_committed(stepgraph_step *step, const stepgraph_pin *pin, CUdeviceptr source)
{
    sg__source *larger = step->sources;

    if (step->n_sources % 64 == 0) {
        larger = realloc(step->sources, (step->n_sources + 64) * sizeof *larger);
        if (larger == NULL)
            return sg__fail_memory("host", (step->n_sources + 64) * sizeof *larger);
    }
    step->sources = larger;
    step->sources[step->n_sources++] = (sg__source){.pin = pin, .address = source, .call = step->pin_kernels};
    return STEPGRAPH_OK;
}

/* ---- end --------------------------------------------------------------------------------------------------------- */

/* The driver says only that it broke: say where, and what to look for. */
static void describe_break(stepgraph_step *step, CUresult code)
{
    char place[256];

    sg__stages_place(step, NULL, place, sizeof place);
    sg__fail_driver(step->session->driver, "cuStreamEndCapture", code);
    if (code == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
        (void)sg__step_invalidated(step, place);
    else
        sg__fail_prefix(STEPGRAPH_ERR_CAPTURE, "the recording of step '%s' broke %s: ", step->name, place);
    keep_cause(step);
}

/* Refuse what the audit found to be wrong. The words are those of the report: the first faults, and what to do about the very first. */
static stepgraph_status judge(const stepgraph_step *step)
{
    const stepgraph_audit *audit = step->audit;
    const stepgraph_session *session = step->session;
    const uint64_t faults = audit->summary.faults;
    const stepgraph_finding *first;
    stepgraph_error_info said;
    size_t used, room;

    if (faults == 0) {
        const uint32_t level = step->again ? STEPGRAPH_LOG_DEBUG : step->in_loop ? STEPGRAPH_LOG_INFO : STEPGRAPH_LOG_WARNING;
        /* Only a host that listens pays for the words. */
        if (audit->summary.findings > 0 && session->log != NULL && session->log_level >= level)
            sg__log(session, (int32_t)level, "%s", stepgraph_audit_text(audit));
        return STEPGRAPH_OK;
    }
    first = sg__audit_at(audit, 0);
    sg__fail(STEPGRAPH_ERR_REFUSED, "step '%s' cannot be replayed, %llu fault%s in what was recorded:", step->name,
             (unsigned long long)faults, faults != 1 ? "s" : "");
    sg__error_get(&said);
    used = strlen(said.message);
    room = sizeof said.message - sizeof "\n  and 18446744073709551615 more\n  " - strlen(first->advice);
    for (size_t i = 0; i < audit->summary.kept; i++) {
        const stepgraph_finding *finding = sg__audit_at(audit, i);
        if (finding->fault == 0)
            break;
        used += strlen(finding->text) + sizeof "\n  " - 1;
        if (i > 0 && used > room) {
            sg__fail_line("  and %llu more", (unsigned long long)(faults - i));
            break;
        }
        sg__fail_line("  %s", finding->text);
    }
    sg__fail_line("  %s", first->advice);
    return STEPGRAPH_ERR_REFUSED;
}

stepgraph_status stepgraph_step_end(stepgraph_step *step)
{
    stepgraph_session *session;
    stepgraph_status status;
    const sg__side *side;
    CUresult code;

    sg__error_clear();
    status = allowed(step, CALL_END);
    if (status != STEPGRAPH_OK)
        return status;
    session = step->session;
    if (session->forks == sg__fork_count() && !pthread_equal(step->recording.thread, pthread_self()))
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' is recorded by another thread: %s", step->name,
                        step->in_loop ? "end the turn of its loop there, or call stepgraph_loop_cancel() anywhere"
                                      : "call stepgraph_step_end() there, or stepgraph_step_reset() anywhere");
    /* What the host's other threads still hold back belongs to the step. */
    status = sg__session_drain(session);
    if (status != STEPGRAPH_OK) {
        sg__fail_prefix(status, "step '%s': ", step->name);
        sg__step_break(step);
    }

    status = sg__enter(session);
    if (status != STEPGRAPH_OK) {
        unwind(step);
        return sg__step_fail(step);
    }
    side = sg__step_unjoined(step);
    if (side != NULL) {
        sg__fail(STEPGRAPH_ERR_CAPTURE, "step '%s': stream '%s' was forked and not joined: call stepgraph_step_join() before %s",
                 step->name, side->name, sg__step_end_call(step));
        sg__step_break(step);
    }
    code = stop_recording(step);
    if (code != CUDA_SUCCESS)
        describe_break(step, code);
    status = sg__step_broken(step);
    if (status == STEPGRAPH_OK)
        status = sg__step_examine(step);
    if (status == STEPGRAPH_OK)
        status = sg__looks_list(step);
    if (status == STEPGRAPH_OK)
        status = judge(step);
    if (status == STEPGRAPH_OK)
        status = sg__step_make_launchable(step);
    sg__leave(session);
    if (status != STEPGRAPH_OK)
        return sg__step_fail(step);

    sg__stages_recorded(step, (size_t)step->stats.nodes_total);
    step->not_run = step->outputs_stale = true;
    step->look_every = step->liveness_every != 0 ? step->liveness_every : step->n_looks > LIVENESS_EVERY_LEAST ? step->n_looks : LIVENESS_EVERY_LEAST;
    step->stats.captures++;
    move(step, STEPGRAPH_STEP_READY);
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_step_report(stepgraph_step *step, const char *driver_call, int32_t driver_code)
{
    sg__error_clear();
    if (step == NULL || driver_call == NULL || driver_code == 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing to report: the step, the call's name or the code is missing");
    if (step->state != STEPGRAPH_STEP_CAPTURING)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' is %s: failures are reported while it records", step->name, state_names[step->state]);
    sg__fail_driver(step->session->driver, driver_call, (CUresult)driver_code);
    sg__fail_prefix(STEPGRAPH_ERR_DRIVER, "the host reported that ");
    sg__step_break(step);
    sg__error_clear();
    return STEPGRAPH_OK;
}

/* ---- replay ------------------------------------------------------------------------------------------------------ */

SG__COLD static stepgraph_status refuse_feed(const stepgraph_step *step, const stepgraph_pin *pin)
{
    const char *when = step->in_loop ? "in each turn with turn.feed set" : "before each replay";
    char since[64] = "for the step that was recorded";

    if (pin->feeds == 0)
        return sg__fail(STEPGRAPH_ERR_REFUSED,
                        "step '%s' not replayed: feed '%s' was never fed: call stepgraph_pin_feed() %s; what is copied there by other means does "
                        "not count",
                        step->name, pin->name, when);
    if (!step->not_run)
        snprintf(since, sizeof since, "since replay %llu, nor since a run after it", (unsigned long long)step->stats.replays);
    return sg__fail(STEPGRAPH_ERR_REFUSED,
                    "step '%s' not replayed: feed '%s' was not fed %s, and would be used with the old value again; call stepgraph_pin_feed() %s",
                    step->name, pin->name, since, when);
}

/* Every FEED that the graph uses has been fed since the last replay, and the last run. */
static stepgraph_status check_feeds(const stepgraph_step *step)
{
    for (size_t i = 0; i < step->n_used; i++) {
        const stepgraph_pin *pin = step->used[i];
        if (pin->role == STEPGRAPH_ROLE_FEED && pin->feeds == step->used_feeds[i])
            return refuse_feed(step, pin);
    }
    return STEPGRAPH_OK;
}

void sg__step_use_feeds(stepgraph_step *step)
{
    for (size_t i = 0; i < step->n_used; i++)
        step->used_feeds[i] = step->used[i]->feeds;
}

/* The first n looks at memory that is not the library's own: it is still what it was when the step was recorded. */
static stepgraph_status check_alive(const stepgraph_step *step, size_t n)
{
    bool same;
    stepgraph_status status = sg__looks_same(step, n, &same);

    if (status != STEPGRAPH_OK || same)
        return status;
    for (size_t i = 0; i < step->n_watched; i++) {
        status = sg__pin_check(step->watched[i]);
        if (status != STEPGRAPH_OK)
            return sg__fail_prefix(status, "step '%s' cannot be replayed any more: ", step->name);
    }
    return sg__allocations_check(step);
}

stepgraph_status sg__step_alive(const stepgraph_step *step)
{
    stepgraph_status status = sg__session_alive(step->session); /* Or memory would be blamed that went with the context. */

    return status == STEPGRAPH_OK ? check_alive(step, step->n_looks) : status;
}

stepgraph_status sg__step_kernels_alive(const stepgraph_step *step, const char *what)
{
    stepgraph_status status = sg__session_alive(step->session); /* Those of a context that is gone cannot be asked about. */

    if (status != STEPGRAPH_OK)
        return status;
    status = sg__layouts_check(step->session->driver, &step->read.layouts);
    return status == STEPGRAPH_OK ? status : sg__fail_prefix(status, "step '%s' cannot %s: ", step->name, what);
}

/* Feeds and launch, with a clock and events around them. */
static stepgraph_status launch_timed(stepgraph_step *step)
{
    stepgraph_session *session = step->session;
    stepgraph_status status;

    SG__CU(session->driver, CtxPushCurrent, session->context);
    status = sg__replay_begin(step);
    if (status == STEPGRAPH_OK && session->fed)
        status = sg__feeds_send(session);
    if (status == STEPGRAPH_OK) {
        CUresult code = session->driver->GraphLaunch(step->exec, session->stream);
        if (code != CUDA_SUCCESS)
            status = sg__fail_driver(session->driver, "cuGraphLaunch", code);
    }
    /* Launched is launched: what cannot be measured is no reason to do the step again. */
    if (status == STEPGRAPH_OK && sg__replay_end(step) != STEPGRAPH_OK) {
        (void)sg__log_failure(session, sg__fail_prefix(STEPGRAPH_ERR_DRIVER, "step '%s' is not timed any more: ", step->name));
        step->stages.timing = false;
        sg__error_clear();
    }
    sg__leave(session);
fail:
    return status;
}

static stepgraph_status launch(stepgraph_step *step)
{
    stepgraph_session *session = step->session;
    stepgraph_status status = STEPGRAPH_OK;

    if (session->fed)
        status = sg__feeds_send(session);
    if (status != STEPGRAPH_OK)
        return status;
    SG__CU_STREAM(session, GraphLaunch, step->exec, session->stream);
fail:
    return status;
}

static stepgraph_status launch_as_wanted(stepgraph_step *step)
{
    return step->stages.timing ? launch_timed(step) : launch(step);
}

/* By one of several executables, to see how long it takes. */
static stepgraph_status launch_trying(stepgraph_step *step)
{
    stepgraph_status status;

    sg__tune_before(step);
    status = launch_as_wanted(step);
    if (status == STEPGRAPH_OK)
        sg__tune_after(step);
    return status;
}

stepgraph_status stepgraph_step_replay(stepgraph_step *step)
{
    stepgraph_session *session;
    stepgraph_status status;

    sg__error_clear();
    if (step == NULL || step->state != STEPGRAPH_STEP_READY)
        return allowed(step, CALL_REPLAY);
    session = step->session;
    status = sg__session_alive(session);
    if (status == STEPGRAPH_OK)
        status = sg__not_capturing(session, "a step cannot be replayed");
    if (status == STEPGRAPH_OK && session->running != NULL) /* Which may be undone, or compared, at its end. */
        status = sg__no_run_open(step, "be replayed");
    if (status == STEPGRAPH_OK && (step->flags & STEPGRAPH_STEP_STRICT_FEEDS) != 0)
        status = check_feeds(step);
    if (status != STEPGRAPH_OK)
        return sg__log_failure(session, status);
    if (step->not_run || step->stats.replays % step->look_every == 0)
        status = check_alive(step, step->n_looks);
    else if (step->n_copied > 0) /* Launching over a freed operand of such a copy crashes the process. */
        status = check_alive(step, step->n_copied);
    if (status != STEPGRAPH_OK)
        return sg__step_fail(step);

    status = step->trying > 0 && !session->checking ? launch_trying(step) : launch_as_wanted(step);
    if (status != STEPGRAPH_OK) {
        sg__fail_prefix(status, "step '%s', replay %llu: ", step->name, (unsigned long long)step->stats.replays + 1);
        return sg__step_fail(step);
    }
    if ((step->flags & STEPGRAPH_STEP_STRICT_FEEDS) != 0)
        sg__step_use_feeds(step);
    sg__count_own(session, STEPGRAPH_KIND_GRAPH, 1);
    step->stats.replays++;
    step->ran_at = session->recordings;
    step->not_run = step->outputs_stale = false;
    return STEPGRAPH_OK;
}

/* ---- recording again ----------------------------------------------------------------------------------------------- */

stepgraph_status sg__step_drop_spare(stepgraph_step *step)
{
    stepgraph_status status = sg__session_wait(step->session);

    sg__bury(step->session, SG__GRAVE_EXEC, (uintptr_t)step->spare);
    step->spare = NULL;
    return status;
}

void sg__step_pass_executable(stepgraph_step *from, stepgraph_step *to)
{
    sg__step_as_recorded(from);
    to->spare = from->exec;
    to->rewritten = from->rewritten;
    from->exec = NULL;
}

stepgraph_status sg__step_record_again(stepgraph_step *step)
{
    stepgraph_session *session = step->session;
    stepgraph_status status;
    CUgraphExec exec;

    status = sg__enter(session);
    if (status != STEPGRAPH_OK)
        return status;
    sg__step_as_recorded(step); /* Only what has the recorded edges is updated by the next recording. */
    exec = step->exec != NULL ? step->exec : step->spare;
    status = sg__step_lists_again(step);
    sg__leave(session);
    if (status != STEPGRAPH_OK)
        return sg__log_failure(session, status);

    step->exec = step->spare = NULL;
    drop_graph(step);
    step->spare = exec;
    step->error = (stepgraph_error_info)STEPGRAPH_ERROR_INFO_INIT;
    stepgraph_audit_destroy(step->audit);
    step->audit = NULL;
    if (step->state != STEPGRAPH_STEP_PREPARED)
        move(step, STEPGRAPH_STEP_PREPARED);
    return STEPGRAPH_OK;
}

/* ---- reset and destroy ------------------------------------------------------------------------------------------- */

stepgraph_status sg__step_idle(const stepgraph_step *step, const char *what)
{
    if (!step->verifying && !step->checking)
        return STEPGRAPH_OK;
    return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' cannot %s from a callback of its %s", step->name, what, step->checking ? "check" : "verification");
}

stepgraph_status stepgraph_step_reset(stepgraph_step *step)
{
    stepgraph_status status;

    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "stepgraph_step_reset(): the step is NULL");
    status = sg__session_alive(step->session);
    if (status == STEPGRAPH_OK)
        status = sg__step_idle(step, "be reset");
    if (status != STEPGRAPH_OK)
        return sg__log_failure(step->session, status);
    unwind(step);
    step->error = (stepgraph_error_info)STEPGRAPH_ERROR_INFO_INIT;
    stepgraph_audit_destroy(step->audit);
    step->audit = NULL;
    if (step->state != STEPGRAPH_STEP_BEGUN)
        move(step, STEPGRAPH_STEP_BEGUN);
    sg__error_clear();
    return STEPGRAPH_OK;
}

void stepgraph_step_destroy(stepgraph_step *step)
{
    stepgraph_step **link;

    if (step == NULL)
        return;
    unwind(step);
    sg__table_free(step->session, &step->tables);
    sg__sides_free(step);
    sg__stages_free(step);
    sg__bury(step->session, SG__GRAVE_EVENT, (uintptr_t)step->lists_sent);
    stepgraph_audit_destroy(step->audit);
    if (step->session->recorded == step)
        step->session->recorded = NULL;
    if (step->session->running == step)
        step->session->running = NULL;
    link = &step->session->steps;
    while (*link != step)
        link = &(*link)->next;
    *link = step->next;
    free(step->name);
    free(step);
}

/* ---- what is known ----------------------------------------------------------------------------------------------- */

stepgraph_state stepgraph_step_state(const stepgraph_step *step)
{
    return step->state;
}

struct CUgraph_st *stepgraph_step_graph(const stepgraph_step *step)
{
    return step != NULL && step->state == STEPGRAPH_STEP_READY ? step->graph : NULL;
}

stepgraph_status stepgraph_step_error(const stepgraph_step *step, stepgraph_error_info *info_out)
{
    const stepgraph_error_info none = STEPGRAPH_ERROR_INFO_INIT;

    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no step to ask: the pointer is NULL");
    return sg__struct_write(info_out, step->state == STEPGRAPH_STEP_FAILED ? &step->error : &none, sizeof none,
                            offsetof(stepgraph_error_info, driver_code), "stepgraph_error_info");
}

stepgraph_status stepgraph_step_get_stats(const stepgraph_step *step, stepgraph_step_stats *stats_out)
{
    stepgraph_step_stats stats;

    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no step to ask: the pointer is NULL");
    stats = step->stats;
    stats.captured_not_run = step->not_run ? 1 : 0;
    return sg__struct_write(stats_out, &stats, sizeof stats, offsetof(stepgraph_step_stats, fresh_runs), "stepgraph_step_stats");
}
