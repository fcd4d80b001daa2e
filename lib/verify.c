/* Verifying a relaxed step: its options, room, callbacks, and putting everything back. */
#include "verify_p.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "feed.h"
#include "graveyard.h"
#include "structs.h"
#include "wait.h"

#define STEPS_DEFAULT 10u
#define REPEATS_DEFAULT 8u
#define ORDERS_DEFAULT 3u
#define TIMEOUT_DEFAULT_NS 60000000000u

#define KNOWN_FLAGS \
    ((uint32_t)(STEPGRAPH_VERIFY_NO_WRITES | STEPGRAPH_VERIFY_NO_ISOLATION | STEPGRAPH_VERIFY_NO_ORDERS | STEPGRAPH_VERIFY_NO_REPLAYS))

/* ---- options ----------------------------------------------------------------------------------------------------- */

static stepgraph_status read_config(const stepgraph_verify_config *given, stepgraph_verify_config *config)
{
    static const stepgraph_verify_config defaults = STEPGRAPH_VERIFY_CONFIG_INIT;
    stepgraph_status status = sg__struct_read(config, sizeof *config, offsetof(stepgraph_verify_config, steps), given != NULL ? given : &defaults,
                                              "stepgraph_verify_config");

    if (status != STEPGRAPH_OK)
        return status;
    if ((config->flags & ~KNOWN_FLAGS) != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "unknown verify flags 0x%x", config->flags & ~KNOWN_FLAGS);
    if (config->reserved != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a reserved field of stepgraph_verify_config is not 0");
    if (config->steps == 0)
        config->steps = STEPS_DEFAULT;
    if (config->steps > SG__VERIFY_STEPS_MAX)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a verification of %u steps: at most %u", config->steps, SG__VERIFY_STEPS_MAX);
    if (config->repeats == 0)
        config->repeats = REPEATS_DEFAULT;
    if (config->orders == 0)
        config->orders = ORDERS_DEFAULT;
    if (config->seed == 0)
        config->seed = 1;
    if (config->timeout_ns == 0)
        config->timeout_ns = TIMEOUT_DEFAULT_NS;
    return STEPGRAPH_OK;
}

/* ---- waiting and calling back ------------------------------------------------------------------------------------ */

stepgraph_status sg__verify_wait(sg__verify *v, const char *format, ...)
{
    char what[320];
    va_list arguments;
    stepgraph_status status;
    bool late = false;

    SG__CU(v->session->driver, EventRecord, v->event, v->session->stream);
    status = sg__wait_event(v->session, v->event, v->config.timeout_ns, &late);
fail:
    if (status == STEPGRAPH_OK && !late)
        return STEPGRAPH_OK;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (status != STEPGRAPH_OK)
        return sg__fail_prefix(status, "verification of step '%s', %s: ", v->step->name, what);
    v->stuck = true;
    sg__session_hangs(v->session, v->event, v->step->name);
    return sg__fail(STEPGRAPH_ERR_LOST, "verification of step '%s': %s did not come to an end within %.1f seconds", v->step->name, what,
                    (double)v->config.timeout_ns * 1e-9);
}

/* The host's callback runs in the host's own context. */
static stepgraph_status call_feed(sg__verify *v, uint64_t k)
{
    const sg__driver *driver = v->session->driver;
    stepgraph_error_info info;
    stepgraph_status status;

    sg__leave(v->session);
    sg__error_clear();
    status = v->config.feed(v->config.user, v->step, k);
    sg__error_get(&info);
    if (driver->CtxPushCurrent(v->session->context) != CUDA_SUCCESS) {
        /* Once more: without it nothing can be put back. */
        CUresult code = driver->CtxPushCurrent(v->session->context);
        v->outside = code != CUDA_SUCCESS;
        if (v->outside && status == STEPGRAPH_OK)
            return sg__fail_driver(driver, "cuCtxPushCurrent", code);
    }
    if (status == STEPGRAPH_OK)
        return STEPGRAPH_OK;
    if (info.status == STEPGRAPH_OK)
        return sg__fail(status, "verification of step '%s': the feed callback for step %llu answered %s (%d)", v->step->name, (unsigned long long)k,
                        stepgraph_status_name(status), (int)status);
    return sg__fail_prefix(status, "verification of step '%s', in the feed callback for step %llu: ", v->step->name, (unsigned long long)k);
}

stepgraph_status sg__verify_feed(sg__verify *v, uint32_t i)
{
    stepgraph_status status;

    if (v->config.feed == NULL)
        return STEPGRAPH_OK;
    status = call_feed(v, v->config.first + i);
    return status == STEPGRAPH_OK && v->session->fed ? sg__feeds_send(v->session) : status;
}

/* What was fed and not sent goes first, so that it does not come later. */
static stepgraph_status go_back(sg__verify *v)
{
    stepgraph_status status = v->session->fed ? sg__feeds_send(v->session) : STEPGRAPH_OK;

    if (status == STEPGRAPH_OK)
        status = sg__memory_restore(&v->memory, SG__IMAGE_START);
    if (status == STEPGRAPH_OK)
        status = sg__verify_wait(v, "going back to the beginning");
    if (status == STEPGRAPH_OK)
        sg__feeds_image_restore(v->session, v->feeds_before);
    return status;
}

stepgraph_status sg__verify_begin(sg__verify *v)
{
    stepgraph_status status = go_back(v);

    return status == STEPGRAPH_OK ? sg__verify_feed(v, 0) : status;
}

stepgraph_status sg__verify_progress(sg__verify *v, const char *phase)
{
    int32_t stop;

    v->done++;
    if (v->done > v->total)
        v->total = v->done;
    if (v->config.progress == NULL)
        return STEPGRAPH_OK;
    stop = v->config.progress(v->config.user, phase, v->done, v->total);
    return stop == 0 ? STEPGRAPH_OK
                     : sg__fail(STEPGRAPH_ERR_REFUSED, "the verification of step '%s' was stopped by its progress callback while in '%s'", v->step->name,
                                phase);
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

static stepgraph_status make_memory(sg__verify *v)
{
    stepgraph_status status = sg__snapshot_limits(v->session, &v->config.device_bytes, &v->config.host_bytes);

    if (status == STEPGRAPH_OK)
        status = sg__memory_make(&v->memory, v->session, v->footprint->accesses, v->footprint->n_accesses, true, SG__IMAGES,
                                 SG__HASH_STEPS + v->config.steps, v->config.device_bytes, v->config.host_bytes);
    return status == STEPGRAPH_OK ? STEPGRAPH_OK : sg__fail_prefix(status, "step '%s' cannot be verified: ", v->step->name);
}

static stepgraph_status make_lists(sg__verify *v)
{
    const sg__footprint *footprint = v->footprint;
    uint64_t feeds = sg__feeds_image_bytes(v->session) + 1;
    size_t ranges = v->memory.n + 1, nodes = (size_t)footprint->n + 1;

    v->first_access = calloc(nodes, sizeof *v->first_access);
    v->marks = calloc(ranges, 1);
    v->unsteady = calloc(ranges, 1);
    v->list = malloc(2 * ranges * sizeof *v->list);
    v->sums = calloc(nodes, sizeof *v->sums);
    v->first_extra = calloc(nodes, sizeof *v->first_extra);
    v->count_extra = calloc(nodes, sizeof *v->count_extra);
    v->feeds_before = malloc(feeds);
    v->owed = calloc(v->step->n_used + 1, sizeof *v->owed);
    if (v->first_access == NULL || v->marks == NULL || v->unsteady == NULL || v->list == NULL || v->sums == NULL || v->first_extra == NULL ||
        v->count_extra == NULL || v->feeds_before == NULL || v->owed == NULL)
        return sg__fail_memory("host", nodes * 4 * sizeof *v->first_access + ranges * 10 + feeds);
    for (size_t i = 0; i < footprint->n_accesses; i++)
        v->first_access[footprint->accesses[i].node + 1]++;
    for (uint32_t i = 0; i < footprint->n; i++)
        v->first_access[i + 1] += v->first_access[i];
    for (size_t i = 0; i < v->step->n_used; i++)
        v->owed[i] = v->step->used[i]->feeds - v->step->used_feeds[i];
    return STEPGRAPH_OK;
}

static void release(sg__verify *v)
{
    sg__memory_free(&v->memory);
    /* The event that the session watches while something hangs is the session's now. */
    if (v->event != v->session->hung)
        sg__bury(v->session, SG__GRAVE_EVENT, (uintptr_t)v->event);
    sg__bury(v->session, SG__GRAVE_EXEC, (uintptr_t)v->alone);
    sg__bury(v->session, SG__GRAVE_GRAPH, (uintptr_t)v->alone_graph);
    free(v->first_access);
    free(v->marks);
    free(v->unsteady);
    free(v->list);
    free(v->sums);
    free(v->extras);
    free(v->first_extra);
    free(v->count_extra);
    free(v->feeds_before);
    free(v->owed);
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

static stepgraph_status save(sg__verify *v)
{
    stepgraph_status status = v->session->fed ? sg__feeds_send(v->session) : STEPGRAPH_OK;

    if (status == STEPGRAPH_OK)
        status = sg__memory_save(&v->memory, SG__IMAGE_START);
    if (status == STEPGRAPH_OK)
        status = sg__verify_wait(v, "what was queued before");
    if (status == STEPGRAPH_OK)
        sg__feeds_image_save(v->session, v->feeds_before);
    return status;
}

/* Put everything back whatever happened, keeping the words of what did. */
static stepgraph_status put_back(sg__verify *v, stepgraph_status status)
{
    stepgraph_status back = v->outside ? status : STEPGRAPH_OK;
    stepgraph_error_info why;

    sg__error_get(&why);
    if (!v->stuck && !v->outside) {
        back = sg__session_alive(v->session);
        if (back == STEPGRAPH_OK)
            back = go_back(v);
        if (back != STEPGRAPH_OK && back != STEPGRAPH_ERR_LOST) /* What it ran must not stay for a call that fails once. */
            back = go_back(v);
    }
    sg__feeds_image_counts(v->session, v->feeds_before); /* Of pins that other steps use, too. */
    for (size_t i = 0; i < v->step->n_used; i++)
        v->step->used_feeds[i] = v->step->used[i]->feeds - v->owed[i];
    if (back != STEPGRAPH_OK && back != STEPGRAPH_ERR_LOST)
        return sg__step_spoiled(v->step, "verification", back);
    return status != STEPGRAPH_OK ? sg__error_set(&why) : back;
}

static stepgraph_status run(sg__verify *v)
{
    stepgraph_status status = sg__verify_control(v);

    if (status == STEPGRAPH_OK)
        status = sg__verify_nodes(v);
    if (status == STEPGRAPH_OK && (v->config.flags & STEPGRAPH_VERIFY_NO_ORDERS) == 0)
        status = sg__verify_orders(v);
    if (status == STEPGRAPH_OK && (v->config.flags & STEPGRAPH_VERIFY_NO_REPLAYS) == 0)
        status = sg__verify_replays(v);
    return status;
}

/* With the session entered; it is left. */
static stepgraph_status verify(stepgraph_step *step, const stepgraph_verify_config *config, stepgraph_verify **verify_out)
{
    sg__verify v = {.step = step,
                    .session = step->session,
                    .footprint = &step->relaxed->footprint,
                    .line = step->relaxed->needed.line,
                    .config = *config};
    uint64_t start = sg__clock_ns();
    stepgraph_status status;

    v.total = 4 + config->orders + 1 + config->repeats + 2 * (v.footprint->n / 64 + 1);
    SG__CU(v.session->driver, EventCreate, &v.event, CU_EVENT_DISABLE_TIMING);
    status = make_memory(&v);
    if (status == STEPGRAPH_OK)
        status = make_lists(&v);
    if (status == STEPGRAPH_OK && (v.report = sg__verify_report_new(&v)) == NULL)
        status = STEPGRAPH_ERR_MEMORY;
    if (status == STEPGRAPH_OK)
        status = save(&v);
    if (status == STEPGRAPH_OK)
        status = put_back(&v, run(&v));
    if (status == STEPGRAPH_OK) {
        v.report->summary.seconds = (double)(sg__clock_ns() - start) * 1e-9;
        status = sg__verify_finish(&v);
    }
fail:
    release(&v);
    if (!v.outside)
        sg__leave(v.session);
    if (status == STEPGRAPH_OK)
        *verify_out = v.report;
    else
        stepgraph_verify_destroy(v.report);
    return status;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static stepgraph_status check_state(const stepgraph_step *step)
{
    stepgraph_status status = sg__not_capturing(step->session, "a step cannot be verified");

    if (status == STEPGRAPH_OK)
        status = sg__step_idle(step, "be verified");
    if (status != STEPGRAPH_OK)
        return status;
    if (step->state == STEPGRAPH_STEP_FAILED)
        return sg__error_set(&step->error);
    if (step->state != STEPGRAPH_STEP_READY)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' cannot be verified: it has no graph; record one first", step->name);
    if (step->relaxed == NULL)
        return sg__fail(STEPGRAPH_ERR_STATE,
                        "step '%s' cannot be verified: it replays as it was recorded; call stepgraph_step_relax() first, with a number of lanes if it "
                        "shall be relaxed although that is no faster",
                        step->name);
    status = sg__no_run_open(step, "be verified");
    if (status == STEPGRAPH_OK)
        status = sg__step_alive(step);
    return status == STEPGRAPH_OK ? sg__step_kernels_alive(step, "be verified") : status;
}

stepgraph_status stepgraph_step_verify(stepgraph_step *step, const stepgraph_verify_config *given, stepgraph_verify **verify_out)
{
    stepgraph_verify_config config;
    stepgraph_status status;

    sg__error_clear();
    if (step == NULL || verify_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing can be verified: %s is NULL", step == NULL ? "the step" : "verify_out");
    status = read_config(given, &config);
    if (status == STEPGRAPH_OK)
        status = check_state(step);
    if (status == STEPGRAPH_OK)
        status = sg__enter(step->session);
    if (status != STEPGRAPH_OK)
        return status;
    step->verifying = true;
    status = verify(step, &config, verify_out);
    step->verifying = false;
    if (status == STEPGRAPH_OK)
        sg__error_clear();
    return sg__log_failure(step->session, status);
}
