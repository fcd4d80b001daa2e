/* The checker: its options, room for its snapshots, its callbacks, and putting everything back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_p.h"
#include "clock.h"
#include "feed.h"
#include "graveyard.h"
#include "structs.h"

#define STEPS_DEFAULT 3u
#define TIMEOUT_DEFAULT_NS 60000000000u
#define DELAY_DEFAULT_NS 20000000u

#define KNOWN_FLAGS ((uint32_t)(STEPGRAPH_CHECK_ADVANCE | STEPGRAPH_CHECK_KEEP_SCRATCH | STEPGRAPH_CHECK_NO_SEARCH))

/* ---- options ----------------------------------------------------------------------------------------------------- */

static stepgraph_status read_config(const stepgraph_step *step, const stepgraph_check_config *given, stepgraph_check_config *config)
{
    stepgraph_status status = sg__struct_read(config, sizeof *config, offsetof(stepgraph_check_config, feed), given, "stepgraph_check_config");

    if (status != STEPGRAPH_OK)
        return status;
    if ((config->flags & ~KNOWN_FLAGS) != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "unknown check flags 0x%x", config->flags & ~KNOWN_FLAGS);
    if (config->steps == 0)
        config->steps = STEPS_DEFAULT;
    if (config->steps > SG__CHECK_STEPS_MAX)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a check of %u steps: at most %u", config->steps, SG__CHECK_STEPS_MAX);
    if (config->enqueue == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a check needs the enqueue callback: it computes what is right by running the step");
    if (config->plant != NULL && (config->plant->session != step->session || config->plant->role != STEPGRAPH_ROLE_STATE))
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a fault cannot be planted in pin '%s': it is no STATE of the step's session",
                        config->plant->session != step->session ? "?" : config->plant->name);
    if (config->timeout_ns == 0)
        config->timeout_ns = TIMEOUT_DEFAULT_NS;
    if (config->delay_ns == 0)
        config->delay_ns = DELAY_DEFAULT_NS;
    return STEPGRAPH_OK;
}

static stepgraph_status check_state(const stepgraph_step *step)
{
    stepgraph_status status = sg__not_capturing(step->session, "a step cannot be checked");

    if (status != STEPGRAPH_OK)
        return status;
    if (step->state == STEPGRAPH_STEP_FAILED)
        return sg__error_set(&step->error);
    if (step->state != STEPGRAPH_STEP_READY)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' cannot be checked: it has no graph; record one first", step->name);
    if (step->session->checking)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' cannot be checked in a callback of a check", step->name);
    status = sg__no_run_open(step, "be checked");
    if (status == STEPGRAPH_OK)
        status = sg__step_alive(step);
    return status == STEPGRAPH_OK ? sg__step_kernels_alive(step, "be checked") : status;
}

/* ---- calling back ------------------------------------------------------------------------------------------------ */

/* The host's callback runs in the host's own context. */
#define CALL_BACK(check, status, call)      \
    do {                                    \
        sg__leave((check)->session);        \
        sg__error_clear();                  \
        (status) = (call);                  \
        (status) = come_back(check, status); \
    } while (0)

/* Into the session's context again; the words of a failed callback stay. */
static stepgraph_status come_back(sg__check *check, stepgraph_status status)
{
    const sg__driver *driver = check->session->driver;
    CUresult code = driver->CtxPushCurrent(check->session->context);

    if (code == CUDA_SUCCESS)
        return status;
    /* Once more: without it nothing can be put back. */
    check->outside = driver->CtxPushCurrent(check->session->context) != CUDA_SUCCESS;
    return status != STEPGRAPH_OK ? status : sg__fail_driver(driver, "cuCtxPushCurrent", code);
}

/* Put words in front of those that the library's call left, if it was one that failed. */
static stepgraph_status called_back(const sg__check *check, stepgraph_status status, const char *name, uint64_t k)
{
    stepgraph_error_info info;

    if (status == STEPGRAPH_OK)
        return STEPGRAPH_OK;
    sg__error_get(&info);
    if (info.status == STEPGRAPH_OK)
        return sg__fail(status, "check of step '%s': the %s callback for step %llu answered %s (%d)", check->step->name, name,
                        (unsigned long long)k, stepgraph_status_name(status), (int)status);
    return sg__fail_prefix(status, "check of step '%s', in the %s callback for step %llu: ", check->step->name, name, (unsigned long long)k);
}

stepgraph_status sg__check_feed(sg__check *check, uint32_t i)
{
    uint64_t k = check->config.first + i;
    stepgraph_status status;

    if (check->config.feed == NULL)
        return STEPGRAPH_OK;
    CALL_BACK(check, status, check->config.feed(check->config.user, check->step, k));
    return called_back(check, status, "feed", k);
}

stepgraph_status sg__check_enqueue(sg__check *check, stepgraph_step *step, uint32_t i)
{
    uint64_t k = check->config.first + i;
    stepgraph_status status;

    CALL_BACK(check, status, check->config.enqueue(check->config.user, step, k));
    return called_back(check, status, "enqueue", k);
}

stepgraph_status sg__check_rewind(sg__check *check, uint64_t k)
{
    stepgraph_status status;

    if (check->config.rewind == NULL)
        return STEPGRAPH_OK;
    CALL_BACK(check, status, check->config.rewind(check->config.user, k));
    return called_back(check, status, "rewind", k);
}

stepgraph_status sg__check_progress(sg__check *check, const char *phase)
{
    stepgraph_status status = STEPGRAPH_OK;
    int32_t stop;

    check->done++;
    if (check->done > check->total)
        check->total = check->done;
    if (check->config.progress == NULL)
        return STEPGRAPH_OK;
    sg__leave(check->session);
    stop = check->config.progress(check->config.user, phase, check->done, check->total);
    status = come_back(check, status);
    return stop == 0 || status != STEPGRAPH_OK ? status
                     : sg__fail(STEPGRAPH_ERR_REFUSED, "the check of step '%s' was stopped by its progress callback while in '%s'",
                                check->step->name, phase);
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

/* Two images there must be: of the beginning, and of the end. Those after the steps between tell where it goes wrong. */
static stepgraph_status make_images(sg__check *check)
{
    sg__shots *shots = &check->shots;
    uint32_t last = check->steps - 1;
    bool made;

    for (uint32_t i = 0; i < check->steps; i++)
        check->after[i] = UINT32_MAX;
    made = sg__shot_add(shots, &check->start) && sg__shot_add(shots, &check->after[last]);
    if (!made)
        return sg__fail(STEPGRAPH_ERR_MEMORY,
                        "step '%s' cannot be checked: two snapshots of %llu bytes each are needed, %llu bytes in all, and there is room for %u of "
                        "them; at most %llu bytes of device memory and %llu of page-locked host memory may be used",
                        check->step->name, (unsigned long long)shots->bytes, 2 * (unsigned long long)shots->bytes, shots->n_shots,
                        (unsigned long long)check->config.device_bytes, (unsigned long long)check->config.host_bytes);
    check->every_step = true;
    for (uint32_t i = 0; i < last && check->every_step; i++)
        check->every_step = sg__shot_add(shots, &check->after[i]);
    sg__error_clear();
    return STEPGRAPH_OK;
}

static stepgraph_status make_records(sg__check *check)
{
    const stepgraph_step *step = check->step;
    uint64_t feeds = sg__feeds_image_bytes(check->session) + 1;
    size_t n = check->shots.n_items + 1;

    check->records = calloc(n, sizeof *check->records);
    check->feeds_before = malloc(feeds);
    check->feeds_after = malloc(feeds);
    check->owed = calloc(step->n_used + 1, sizeof *check->owed);
    if (check->records == NULL || check->feeds_before == NULL || check->feeds_after == NULL || check->owed == NULL)
        return sg__fail_memory("host", n * sizeof *check->records + 2 * feeds);
    for (size_t i = 0; i < check->shots.n_items; i++) {
        sg__record *record = &check->records[i];
        record->used = sg__step_uses(step, check->shots.items[i].pin);
        record->spread_step = SG__NO_STEP;
        for (int arm = 0; arm < SG__ARMS; arm++)
            record->arms[arm].step = SG__NO_STEP;
    }
    for (size_t i = 0; i < step->n_used; i++)
        check->owed[i] = step->used[i]->feeds - step->used_feeds[i];
    return STEPGRAPH_OK;
}

static stepgraph_status make_events(sg__check *check)
{
    stepgraph_status status;

    SG__CU(check->session->driver, EventCreate, &check->event, CU_EVENT_DISABLE_TIMING);
    for (uint32_t i = 0; i < check->steps; i++)
        SG__CU(check->session->driver, EventCreate, &check->behind[i], CU_EVENT_DISABLE_TIMING);
    return STEPGRAPH_OK;

fail:
    return status;
}

static void release(sg__check *check)
{
    stepgraph_session *session = check->session;

    sg__constants_free(&check->constants);
    sg__shots_free(&check->shots);
    /* The event that the session watches while a replay hangs is the session's now. */
    if (check->event != session->hung)
        sg__bury(session, SG__GRAVE_EVENT, (uintptr_t)check->event);
    for (uint32_t i = 0; i < check->steps; i++)
        if (check->behind[i] != session->hung)
            sg__bury(session, SG__GRAVE_EVENT, (uintptr_t)check->behind[i]);
    free(check->records);
    free(check->feeds_before);
    free(check->feeds_after);
    free(check->owed);
}

/* ---- before and after ---------------------------------------------------------------------------------------------- */

/* Scratch is written, too: memory that is gone may be somebody else's by now. */
static stepgraph_status scratch_alive(const sg__check *check)
{
    const stepgraph_session *session = check->session;
    stepgraph_status status = STEPGRAPH_OK;
    unsigned long long known = 0;

    for (size_t i = 0; i < session->n_pins && status == STEPGRAPH_OK && (check->config.flags & STEPGRAPH_CHECK_KEEP_SCRATCH) == 0; i++)
        if (session->pins[i]->role == STEPGRAPH_ROLE_SCRATCH)
            status = sg__pin_check_next(session->pins[i], &known);
    return status;
}

/* Remember how everything is. */
static stepgraph_status save(sg__check *check)
{
    stepgraph_step *step = check->step;
    stepgraph_status status = STEPGRAPH_OK;

    if (check->session->fed)
        status = sg__feeds_send(check->session);
    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "what was queued before");
    if (status == STEPGRAPH_OK) /* On other streams, too. */
        status = sg__session_wait_all(check->session);
    if (status == STEPGRAPH_OK)
        status = sg__shot_save(&check->shots, check->start);
    if (status == STEPGRAPH_OK)
        status = sg__constants_note(&check->constants, step);
    if (status == STEPGRAPH_OK)
        status = sg__session_wait(check->session);
    if (status == STEPGRAPH_OK)
        status = sg__check_progress(check, "save");
    if (status != STEPGRAPH_OK)
        return status;
    sg__feeds_image_save(check->session, check->feeds_before);
    check->stats = step->stats;
    check->not_run = step->not_run;
    check->outputs_stale = step->outputs_stale;
    check->ran_at = step->ran_at;
    check->timing = step->stages.timing;
    step->stages.timing = false;
    return STEPGRAPH_OK;
}

/* Pins and the host's side of feeds: as at the beginning, or as the fresh launches left them. */
static stepgraph_status put_back(sg__check *check, bool advance)
{
    stepgraph_session *session = check->session;
    stepgraph_status status = STEPGRAPH_OK;

    if (check->apart)
        status = sg__session_wait_all(session);
    if (status == STEPGRAPH_OK && session->fed)
        status = sg__feeds_send(session);
    if (status == STEPGRAPH_OK && advance && !check->last_valid)
        status = sg__check_fresh_again(check);
    if (status == STEPGRAPH_OK)
        status = sg__shot_restore(&check->shots, advance ? check->after[check->steps - 1] : check->start,
                                  SG__GROUP_STATE | SG__GROUP_INPUT | SG__GROUP_OUTPUT);
    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "putting everything back");
    if (status == STEPGRAPH_OK)
        sg__feeds_image_restore(session, advance ? check->feeds_after : check->feeds_before);
    return status;
}

/* The step's counts: a check is no training, unless it advances. */
static void put_back_counts(sg__check *check, bool advance)
{
    stepgraph_step *step = check->step;

    if (!advance) /* Other steps count on them, too. */
        sg__feeds_image_counts(check->session, check->feeds_before);
    step->stages.timing = check->timing;
    step->stats.warmup_runs = check->stats.warmup_runs;
    step->stats.fresh_runs = check->stats.fresh_runs + (advance ? check->steps : 0);
    step->stats.fallback_runs = check->stats.fallback_runs;
    step->stats.replays = check->stats.replays;
    if (step->state != STEPGRAPH_STEP_READY)
        return;
    step->not_run = check->not_run && !advance;
    step->outputs_stale = check->outputs_stale && !advance;
    step->ran_at = advance ? step->ran_at : check->ran_at;
    for (size_t i = 0; i < step->n_used; i++)
        step->used_feeds[i] = step->used[i]->feeds - (advance ? 0 : check->owed[i]);
}

static stepgraph_status run(sg__check *check)
{
    stepgraph_status status = sg__check_arms(check);

    if (status == STEPGRAPH_OK)
        sg__check_judge(check);
    if (status == STEPGRAPH_OK && !check->stuck)
        status = sg__check_search(check);
    if (status == STEPGRAPH_OK && !check->stuck && !check->failed)
        status = sg__check_controls(check);
    return status;
}

/* Pins, feeds and what the host keeps. What a check did must not stay for a call that fails once. */
static stepgraph_status go_back(sg__check *check, bool advance)
{
    stepgraph_status status = sg__session_alive(check->session);

    if (status == STEPGRAPH_OK)
        status = put_back(check, advance);
    if (status != STEPGRAPH_OK && status != STEPGRAPH_ERR_LOST && !check->outside)
        status = put_back(check, advance);
    return status == STEPGRAPH_OK ? sg__check_rewind(check, check->config.first + (advance ? check->steps : 0)) : status;
}

/* Put everything back whatever happened, keeping the words of what did. */
static stepgraph_status finish(sg__check *check, stepgraph_status status)
{
    bool advance = status == STEPGRAPH_OK && (check->config.flags & STEPGRAPH_CHECK_ADVANCE) != 0 && !check->stuck;
    stepgraph_status back = check->outside ? status : STEPGRAPH_OK, undone;
    stepgraph_error_info why;

    sg__error_get(&why);
    if (!check->stuck && !check->outside)
        back = go_back(check, advance);
    undone = back;
    if (back != STEPGRAPH_OK && advance) { /* An error means that no step is done. */
        sg__error_get(&why);
        undone = go_back(check, false);
        (void)sg__error_set(&why);
    }
    put_back_counts(check, advance && back == STEPGRAPH_OK);
    if (undone != STEPGRAPH_OK && undone != STEPGRAPH_ERR_LOST)
        return sg__step_spoiled(check->step, "check", back);
    if (status != STEPGRAPH_OK)
        return sg__error_set(&why);
    /* After a fault on the device nothing can be put back, and the report says what happened. */
    return check->failed && back == STEPGRAPH_ERR_LOST ? STEPGRAPH_OK : back;
}

/* All that the check works with. */
static stepgraph_status make_room(sg__check *check)
{
    stepgraph_status status = sg__snapshot_limits(check->session, &check->config.device_bytes, &check->config.host_bytes);

    if (status == STEPGRAPH_OK)
        status = sg__shots_make(&check->shots, check->session, SG__GROUP_STATE | SG__GROUP_INPUT | SG__GROUP_OUTPUT, NULL, NULL, check->steps + 1,
                                check->config.device_bytes, check->config.host_bytes);
    if (status == STEPGRAPH_OK)
        status = make_images(check);
    if (status == STEPGRAPH_OK)
        status = make_records(check);
    if (status == STEPGRAPH_OK)
        status = make_events(check);
    if (status == STEPGRAPH_OK && (check->report = sg__check_report_new(check)) == NULL)
        status = STEPGRAPH_ERR_MEMORY;
    return status;
}

stepgraph_status stepgraph_check_run(stepgraph_step *step, const stepgraph_check_config *given, stepgraph_check **check_out)
{
    uint64_t start = sg__clock_ns();
    stepgraph_session *session;
    sg__check *check;
    stepgraph_status status;

    sg__error_clear();
    if (step == NULL || given == NULL || check_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing can be checked: %s is NULL",
                        step == NULL ? "the step" : given == NULL ? "config" : "check_out");
    session = step->session;
    check = calloc(1, sizeof *check);
    if (check == NULL)
        return sg__fail_memory("host", sizeof *check);
    check->step = step;
    check->session = session;
    status = read_config(step, given, &check->config);
    check->steps = check->config.steps <= SG__CHECK_STEPS_MAX ? check->config.steps : 0;
    if (status == STEPGRAPH_OK)
        status = check_state(step);
    if (status == STEPGRAPH_OK)
        status = sg__enter(session);
    if (status != STEPGRAPH_OK) {
        free(check);
        return status;
    }

    session->checking = step->checking = true;
    check->bad_step = SG__NO_STEP;
    check->total = 1 + 4 * (uint64_t)check->steps;
    status = make_room(check);
    if (status == STEPGRAPH_OK)
        status = scratch_alive(check);
    if (status == STEPGRAPH_OK)
        status = save(check);
    if (status == STEPGRAPH_OK)
        status = finish(check, run(check));
    if (status == STEPGRAPH_OK) {
        check->report->summary.seconds = (double)(sg__clock_ns() - start) * 1e-9;
        status = sg__check_report(check);
    }
    release(check);
    session->checking = step->checking = false;
    if (!check->outside)
        sg__leave(session);
    if (status == STEPGRAPH_OK) {
        *check_out = check->report;
        sg__error_clear();
    } else {
        stepgraph_check_destroy(check->report);
    }
    free(check);
    return sg__log_failure(session, status);
}
