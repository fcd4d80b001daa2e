/* The arms of a check: fresh launches, fresh again, and replays in several ways, all from the same beginning. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "arena_p.h"
#include "check_p.h"
#include "feed.h"
#include "kernels/elements.h"
#include "wait.h"

#define STATES_AND_MORE ((unsigned int)(SG__GROUP_STATE | SG__GROUP_INPUT | SG__GROUP_OUTPUT))

/* Fresh arms after the first two, once fresh launches were seen to differ: enough to know their spread. */
#define MORE_FRESH 4u

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static stepgraph_status wait_stream(sg__check *check, CUstream stream, uint64_t limit_ns, bool *late)
{
    stepgraph_status status;

    SG__CU(check->session->driver, EventRecord, check->event, stream);
    return sg__wait_event(check->session, check->event, limit_ns, late);

fail:
    return status;
}

/* The delay that was put in front of a wait is not the step's. */
static uint64_t limit_behind(const sg__check *check, bool delayed)
{
    uint64_t delay_ns = delayed ? check->config.delay_ns : 0;

    return check->config.timeout_ns < UINT64_MAX - delay_ns ? check->config.timeout_ns + delay_ns : UINT64_MAX;
}

static stepgraph_status wait_both(sg__check *check, bool delayed, bool *late)
{
    stepgraph_status status = STEPGRAPH_OK;

    *late = false;
    if (check->config.feed_stream != NULL)
        status = wait_stream(check, check->config.feed_stream, limit_behind(check, delayed), late);
    if (status == STEPGRAPH_OK && !*late)
        status = wait_stream(check, check->session->stream, check->config.timeout_ns, late);
    return status;
}

stepgraph_status sg__check_wait_for(sg__check *check, const char *what)
{
    stepgraph_status status;
    bool late;

    status = wait_both(check, false, &late);
    if (status != STEPGRAPH_OK)
        return sg__fail_prefix(status, "check of step '%s', %s: ", check->step->name, what);
    if (!late)
        return STEPGRAPH_OK;
    check->stuck = true;
    sg__session_hangs(check->session, check->event, check->step->name);
    return sg__fail(STEPGRAPH_ERR_LOST, "check of step '%s': %s did not come to an end within %.1f seconds", check->step->name, what,
                    (double)check->config.timeout_ns * 1e-9);
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

/* What the blocks of an arena hold is the host's; between them nothing is worth keeping. */
static stepgraph_status fill_arena(const stepgraph_session *session, const stepgraph_pin *pin, unsigned int fill)
{
    CUdeviceptr from = pin->address, start;
    stepgraph_status status;
    uint64_t bytes;

    for (; sg__arena_gap(session, pin, from, &start, &bytes); from = start + bytes)
        SG__CU(session->driver, MemsetD8Async, start, (unsigned char)fill, bytes, session->stream);
    return STEPGRAPH_OK;

fail:
    return status;
}

stepgraph_status sg__check_fill(sg__check *check, unsigned int fill)
{
    const stepgraph_session *session = check->session;
    bool scratch = (check->config.flags & STEPGRAPH_CHECK_KEEP_SCRATCH) == 0;
    stepgraph_status status = STEPGRAPH_OK;

    check->fill = fill;
    for (size_t i = 0; i < session->n_pins && status == STEPGRAPH_OK; i++) {
        const stepgraph_pin *pin = session->pins[i];
        if (pin->in_arena && scratch)
            status = fill_arena(session, pin, fill);
        else if (pin->role == STEPGRAPH_ROLE_OUTPUT || (pin->role == STEPGRAPH_ROLE_SCRATCH && scratch))
            SG__CU(session->driver, MemsetD8Async, pin->address, (unsigned char)fill, pin->bytes, session->stream);
    }
    return status;

fail:
    return status;
}

stepgraph_status sg__check_begin_arm(sg__check *check, unsigned int fill)
{
    stepgraph_status status = STEPGRAPH_OK;

    if (check->session->fed)
        status = sg__feeds_send(check->session);
    if (status == STEPGRAPH_OK)
        status = sg__shot_restore(&check->shots, check->start, SG__GROUP_STATE | SG__GROUP_INPUT);
    if (status == STEPGRAPH_OK)
        status = sg__check_fill(check, fill);
    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "going back to the beginning");
    if (status != STEPGRAPH_OK)
        return status;
    sg__feeds_image_restore(check->session, check->feeds_before);
    return sg__check_rewind(check, check->config.first);
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

stepgraph_status sg__check_compare(sg__check *check, sg__shots *shots, unsigned int image, unsigned int groups, unsigned int fill, size_t *differ_out)
{
    stepgraph_status status = sg__shot_compare(shots, image, groups, fill, check->fill);

    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "comparing");
    if (status == STEPGRAPH_OK)
        *differ_out = sg__shots_found(shots, groups);
    return status;
}

stepgraph_status sg__check_measure(sg__check *check, sg__shots *shots, unsigned int image, unsigned int fill)
{
    stepgraph_status status = sg__shot_measure(shots, image, fill, check->fill);

    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "measuring");
    if (status == STEPGRAPH_OK)
        status = sg__shots_distances(shots, image);
    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "measuring");
    if (status == STEPGRAPH_OK)
        sg__shots_elements(shots);
    return status;
}

bool sg__check_beyond(const sg__record *record, const sg__shot_item *item)
{
    double largest = sg__double_of_bits(item->distance.largest);

    if ((record->facts & STEPGRAPH_CHECK_UNSTEADY) == 0)
        return true;
    /* Without a type there are no values to measure. */
    if (item->pin->type == STEPGRAPH_TYPE_BYTES)
        return false;
    return largest > SG__FAR * record->spread || sqrt(item->distance.squares) > SG__FAR * record->norm;
}

/* What fresh launches have in spread, after step i. */
static void note_spread(sg__check *check, uint32_t i, unsigned int fill)
{
    for (size_t j = 0; j < check->shots.n_items; j++) {
        const sg__shot_item *item = &check->shots.items[j];
        sg__record *record = &check->records[j];
        double largest = sg__double_of_bits(item->distance.largest), norm = sqrt(item->distance.squares);

        if (item->bytes == 0)
            continue;
        /* Not so with the same filling: then it is what the filling did. */
        if (fill == SG__FILL_A)
            record->filled_alike = false;
        else if ((record->facts & STEPGRAPH_CHECK_UNSTEADY) == 0)
            record->filled_alike = true;
        record->facts |= STEPGRAPH_CHECK_UNSTEADY;
        record->spread = largest > record->spread ? largest : record->spread;
        record->norm = norm > record->norm ? norm : record->norm;
        record->spread_ulps = item->distance.ulps > record->spread_ulps ? item->distance.ulps : record->spread_ulps;
        record->spread_bytes = item->bytes > record->spread_bytes ? item->bytes : record->spread_bytes;
        record->spread_step = i < record->spread_step ? i : record->spread_step;
        check->unsteady = true;
    }
}

/* How replays differ, after step i. */
static void note_outcome(sg__check *check, sg__arm arm, uint32_t i)
{
    for (size_t j = 0; j < check->shots.n_items; j++) {
        const sg__shot_item *item = &check->shots.items[j];
        sg__record *record = &check->records[j];
        sg__outcome *outcome = &record->arms[arm];
        bool beyond = sg__check_beyond(record, item);

        if (item->bytes == 0 || (outcome->step != SG__NO_STEP && (outcome->beyond || !beyond)))
            continue;
        *outcome = (sg__outcome){.step = i,
                                 .beyond = beyond,
                                 .bytes = item->bytes,
                                 .first = item->first,
                                 .distance = item->distance,
                                 .fresh_bits = item->saved_bits,
                                 .replay_bits = item->live_bits};
        check->bad |= (record->facts & STEPGRAPH_CHECK_UNSTEADY) == 0;
    }
}

/* Outputs that are still filled all over. */
static void note_kept(sg__check *check, sg__arm arm)
{
    for (size_t j = 0; j < check->shots.n_items; j++) {
        const sg__shot_item *item = &check->shots.items[j];
        if (item->group == SG__GROUP_OUTPUT && item->kept < item->pin->bytes)
            check->records[j].kept &= ~(1u << arm);
    }
}

/* Filled with B, an output must keep as many bytes of it as after the same fresh launches: where right ones are all ones, what is left out is told
 * by nothing else, since the image was made over ones. */
static void note_left_out(sg__check *check, bool fresh, uint32_t i)
{
    for (size_t j = 0; j < check->shots.n_items && check->fill == SG__FILL_B && i + 1 == check->steps; j++) {
        const sg__shot_item *item = &check->shots.items[j];
        sg__record *record = &check->records[j];

        if (item->group != SG__GROUP_OUTPUT || item->bytes > 0)
            continue;
        if (fresh) {
            record->fresh_kept = item->kept;
        } else if (item->kept > record->fresh_kept && (record->facts & STEPGRAPH_CHECK_UNSTEADY) == 0 &&
                   record->arms[SG__ARM_WAITED].step == SG__NO_STEP) {
            record->arms[SG__ARM_WAITED] = (sg__outcome){.step = i, .beyond = true, .bytes = item->kept - record->fresh_kept,
                                                         .fresh_bits = UINT64_MAX, .replay_bits = SG__FILL_B * 0x0101010101010101ull};
            check->bad = true;
        }
    }
}

/* Compare with the image after step i, if there is one. */
static stepgraph_status compare_step(sg__check *check, bool fresh, sg__arm arm, uint32_t i)
{
    stepgraph_status status;
    size_t differ;

    if (check->after[i] == UINT32_MAX)
        return STEPGRAPH_OK;
    status = sg__check_compare(check, &check->shots, check->after[i], STATES_AND_MORE, SG__FILL_A, &differ);
    if (status == STEPGRAPH_OK && differ > 0)
        status = sg__check_measure(check, &check->shots, check->after[i], SG__FILL_A);
    if (status != STEPGRAPH_OK)
        return status;
    if (!fresh)
        note_kept(check, arm);
    note_left_out(check, fresh, i);
    if (differ > 0 && fresh)
        note_spread(check, i, check->fill);
    else if (differ > 0)
        note_outcome(check, arm, i);
    return STEPGRAPH_OK;
}

/* ---- fresh launches ---------------------------------------------------------------------------------------------- */

/* One step, launch by launch, and its end. */
static stepgraph_status fresh_step(sg__check *check, uint32_t i)
{
    stepgraph_status status;
    bool late = false;

    status = sg__check_feed(check, i);
    /* What is right must not depend on whether the host waits for its own feeds. */
    if (status == STEPGRAPH_OK && check->config.feed_stream != NULL)
        status = wait_stream(check, check->config.feed_stream, check->config.timeout_ns, &late);
    return status == STEPGRAPH_OK ? sg__check_launches(check, i) : status;
}

stepgraph_status sg__check_launches(sg__check *check, uint32_t i)
{
    stepgraph_step *step = check->step;
    stepgraph_status status = sg__run_begin(step, SG__RUN_CHECK);
    char what[80];

    if (status != STEPGRAPH_OK)
        return status;
    status = sg__check_enqueue(check, step, i);
    if (status == STEPGRAPH_OK) {
        status = stepgraph_step_run_end(step);
    } else {
        stepgraph_error_info why;
        sg__error_get(&why);
        (void)stepgraph_step_run_end(step);
        (void)sg__error_set(&why);
    }
    if (status != STEPGRAPH_OK) {
        check->apart = true;
        sg__run_cancel(step);
        return status;
    }
    step->outputs_stale = false; /* The host may read them for its next feed; put back at the end. */
    step->ran_at = step->session->recordings;
    snprintf(what, sizeof what, "the fresh launches of step %llu", (unsigned long long)(check->config.first + i));
    status = sg__check_wait_for(check, what);
    /* What the host has launched elsewhere is part of the step, and would be missed where it comes late. */
    return status == STEPGRAPH_OK ? sg__session_wait_all(step->session) : status;
}

/* Which inputs were fed since their counts were `before`, and in the first step how much. */
static void note_feeds(sg__check *check, const uint64_t *before, uint32_t i)
{
    for (size_t j = 0; j < check->shots.n_items; j++) {
        const stepgraph_pin *pin = check->shots.items[j].pin;
        sg__record *record = &check->records[j];
        if (check->shots.items[j].group != SG__GROUP_INPUT || pin->feeds == before[j])
            continue;
        record->fed = true;
        if (record->fed_bytes == 0 && pin->fed_bytes < pin->bytes) {
            record->fed_bytes = pin->fed_bytes;
            record->fed_step = i;
        }
    }
}

/* What the very first step has written cannot be put back; what comes after it would write it again. */
static stepgraph_status look_at_constants(sg__check *check, const char *who)
{
    const stepgraph_pin *pin;
    stepgraph_status status = sg__constants_written(&check->constants, &pin);

    if (status != STEPGRAPH_OK || pin == NULL)
        return status;
    return sg__fail(STEPGRAPH_ERR_REFUSED, "step '%s' cannot be checked: %s writes pin '%s', whose role, const, says that nobody does, once more by now: make it a "
                                           "STATE, or a LIBRARY if one keeps it for itself", check->step->name, who, pin->name);
}

/* Which states this step of the first arm changes; all others keep the fact that they had before. */
static stepgraph_status note_changes(sg__check *check)
{
    stepgraph_status status;
    size_t differ;

    status = sg__check_compare(check, &check->shots, check->start, SG__GROUP_STATE, SG__FILL_A, &differ);
    for (size_t j = 0; status == STEPGRAPH_OK && j < check->shots.n_items; j++)
        if (check->shots.items[j].group == SG__GROUP_STATE && check->shots.items[j].bytes > 0)
            check->records[j].facts &= ~(uint32_t)STEPGRAPH_CHECK_UNCHANGED;
    return status;
}

/* The first arm: what is right. */
static stepgraph_status fresh_first(sg__check *check)
{
    stepgraph_status status = sg__check_begin_arm(check, SG__FILL_A);
    uint64_t *before = calloc(check->shots.n_items + 1, sizeof *before);

    if (before == NULL)
        return sg__fail_memory("host", check->shots.n_items * sizeof *before);
    for (size_t j = 0; j < check->shots.n_items; j++)
        before[j] = check->shots.items[j].pin->feeds;
    for (size_t j = 0; j < check->shots.n_items; j++)
        check->records[j].facts |= check->shots.items[j].group == SG__GROUP_STATE ? STEPGRAPH_CHECK_UNCHANGED : 0;
    for (uint32_t i = 0; i < check->steps && status == STEPGRAPH_OK; i++) {
        status = fresh_step(check, i);
        if (status == STEPGRAPH_OK && (i == 0 || i + 1 == check->steps))
            status = look_at_constants(check, "it");
        note_feeds(check, before, i);
        if (status == STEPGRAPH_OK && check->after[i] != UINT32_MAX)
            status = sg__shot_save(&check->shots, check->after[i]);
        if (status == STEPGRAPH_OK)
            status = note_changes(check);
        if (status == STEPGRAPH_OK)
            status = sg__check_progress(check, "fresh");
    }
    free(before);
    return status;
}

stepgraph_status sg__check_fresh_again(sg__check *check)
{
    stepgraph_status status = sg__check_begin_arm(check, SG__FILL_A);

    for (uint32_t i = 0; i < check->steps && status == STEPGRAPH_OK; i++)
        status = fresh_step(check, i);
    if (status == STEPGRAPH_OK)
        status = sg__shot_save(&check->shots, check->after[check->steps - 1]);
    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "saving the last step");
    check->last_valid = status == STEPGRAPH_OK;
    return status;
}

static stepgraph_status fresh_more(sg__check *check, unsigned int fill)
{
    stepgraph_status status = sg__check_begin_arm(check, fill);

    for (uint32_t i = 0; i < check->steps && status == STEPGRAPH_OK; i++) {
        status = fresh_step(check, i);
        if (status == STEPGRAPH_OK)
            status = compare_step(check, true, SG__ARMS, i);
        if (status == STEPGRAPH_OK)
            status = sg__check_progress(check, "fresh");
    }
    return status;
}

static stepgraph_status fresh_spread(sg__check *check)
{
    stepgraph_status status = STEPGRAPH_OK;

    check->total += MORE_FRESH * (uint64_t)check->steps;
    for (unsigned int i = 0; i < MORE_FRESH && status == STEPGRAPH_OK; i++)
        status = fresh_more(check, i % 2 == 0 ? SG__FILL_A : SG__FILL_B);
    return status;
}

/* ---- replays ----------------------------------------------------------------------------------------------------- */

/* Strict feeds ask for a feed before the first replay of an arm, too. */
static stepgraph_status begin_replays(sg__check *check, unsigned int fill)
{
    stepgraph_step *step = check->step;

    for (size_t i = 0; i < step->n_used; i++)
        step->used_feeds[i] = step->used[i]->feeds;
    return sg__check_begin_arm(check, fill);
}

/* A replay was refused or failed: that is what the check found. Only where the record says so does the check itself fail. */
static stepgraph_status replay_failed(sg__check *check, uint32_t i)
{
    stepgraph_error_info why;

    sg__error_get(&why);
    check->failed = true;
    check->bad_step = i;
    snprintf(check->report->summary.cause, sizeof check->report->summary.cause, "%.500s", why.message);
    return STEPGRAPH_OK;
}

/* A replay did not come back. From here on nothing waits for the stream. */
static stepgraph_status replay_hangs(sg__check *check, CUevent event, uint32_t i)
{
    stepgraph_step *step = check->step;
    stepgraph_error_info why;

    check->hung = check->stuck = true;
    check->bad_step = i;
    sg__session_hangs(check->session, event, step->name);
    sg__fail(STEPGRAPH_ERR_LOST, "a replay of step '%s', as step %llu, did not come to an end within %.1f seconds; launched one by one the same "
             "step does: something in it waits for a state that only the first run finds", step->name,
             (unsigned long long)(check->config.first + i), (double)check->config.timeout_ns * 1e-9);
    sg__error_get(&why);
    snprintf(check->report->summary.cause, sizeof check->report->summary.cause, "%.500s", why.message);
    (void)sg__step_fail(step);
    return STEPGRAPH_OK;
}

/* Wait for a replay. A fault on the device is a finding, too. */
static stepgraph_status replay_wait(sg__check *check, uint32_t i, bool delayed)
{
    bool late;
    stepgraph_status status = wait_both(check, delayed, &late);

    if (status != STEPGRAPH_OK)
        return replay_failed(check, i);
    return late ? replay_hangs(check, check->event, i) : STEPGRAPH_OK;
}

static stepgraph_status delay(sg__check *check, CUstream stream)
{
    CUresult code = sg__kernels_delay(check->session->driver, &check->session->kernels, stream, check->config.delay_ns);

    return code == CUDA_SUCCESS ? STEPGRAPH_OK : sg__fail_driver(check->session->driver, "cuLaunchKernel", code);
}

/* With a wait after each replay; late: the host's own feeding stream is held up. */
static stepgraph_status replay_waited(sg__check *check, sg__arm arm)
{
    stepgraph_status status = begin_replays(check, SG__FILL_A);

    for (uint32_t i = 0; i < check->steps && status == STEPGRAPH_OK; i++) {
        if (arm == SG__ARM_LATE)
            status = delay(check, check->config.feed_stream);
        if (status == STEPGRAPH_OK)
            status = sg__check_feed(check, i);
        if (status != STEPGRAPH_OK)
            return status;
        if (stepgraph_step_replay(check->step) != STEPGRAPH_OK)
            return replay_failed(check, i);
        status = replay_wait(check, i, arm == SG__ARM_LATE);
        if (status != STEPGRAPH_OK || check->hung || check->failed)
            return status;
        status = compare_step(check, false, arm, i);
        if (status == STEPGRAPH_OK)
            status = sg__check_progress(check, "replay");
    }
    return status;
}

/* Wait for one of the queued replays, from the end of the one before. */
static stepgraph_status queued_wait(sg__check *check, uint32_t i)
{
    bool late;

    if (sg__wait_event(check->session, check->behind[i], limit_behind(check, i == 0), &late) != STEPGRAPH_OK)
        return replay_failed(check, i);
    return late ? replay_hangs(check, check->behind[i], i) : STEPGRAPH_OK;
}

/* Back to back. The delay in front lets the host run ahead, so that whatever it overwrites too early shows. */
static stepgraph_status replay_queued(sg__check *check)
{
    stepgraph_status status = begin_replays(check, SG__FILL_B);
    uint32_t ahead = check->session->feed_slots / 2 > 2 ? check->session->feed_slots / 2 : 2, done = 0;

    if (status == STEPGRAPH_OK)
        status = delay(check, check->session->stream);
    for (uint32_t i = 0; i < check->steps && status == STEPGRAPH_OK; i++) {
        /* Feeding further ahead would wait inside the driver for a step that may hang. */
        if (i >= ahead)
            status = queued_wait(check, done++);
        if (status != STEPGRAPH_OK || check->hung || check->failed)
            return status;
        status = sg__check_feed(check, i);
        if (status != STEPGRAPH_OK)
            return status;
        if (stepgraph_step_replay(check->step) != STEPGRAPH_OK)
            return replay_failed(check, i);
        SG__CU(check->session->driver, EventRecord, check->behind[i], check->session->stream);
    }
    while (status == STEPGRAPH_OK && done < check->steps) {
        status = queued_wait(check, done++);
        if (status != STEPGRAPH_OK || check->hung || check->failed)
            return status;
        status = sg__check_progress(check, "replay");
    }
    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "the queued replays");
    return status == STEPGRAPH_OK ? compare_step(check, false, SG__ARM_QUEUED, check->steps - 1) : status;

fail:
    return status;
}

static stepgraph_status replay_arms(sg__check *check)
{
    stepgraph_status status;

    check->bad = false;
    for (size_t j = 0; j < check->shots.n_items; j++) {
        check->records[j].kept = check->shots.items[j].group == SG__GROUP_OUTPUT ? 1u << SG__ARM_WAITED | 1u << SG__ARM_QUEUED : 0;
        for (int arm = 0; arm < SG__ARMS; arm++)
            check->records[j].arms[arm].step = SG__NO_STEP;
    }
    status = replay_waited(check, SG__ARM_WAITED);
    if (status == STEPGRAPH_OK && !check->hung && !check->failed)
        status = replay_queued(check);
    if (status == STEPGRAPH_OK && !check->hung && !check->failed && check->config.feed_stream != NULL) {
        check->total += check->steps;
        status = replay_waited(check, SG__ARM_LATE);
    }
    return status;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

stepgraph_status sg__check_arms(sg__check *check)
{
    stepgraph_status status = fresh_first(check);

    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "saving the last step");
    if (status != STEPGRAPH_OK)
        return status;
    sg__feeds_image_save(check->session, check->feeds_after);
    check->last_valid = true;
    status = fresh_more(check, SG__FILL_B);
    if (status == STEPGRAPH_OK && check->unsteady)
        status = fresh_spread(check);
    if (status == STEPGRAPH_OK)
        status = replay_arms(check);
    if (status != STEPGRAPH_OK || check->hung || check->failed)
        return status;
    status = look_at_constants(check, "its replay");
    if (status != STEPGRAPH_OK)
        return status;

    /* Before a replay is called wrong, fresh launches have four more chances to differ by themselves. */
    if (check->bad && !check->unsteady) {
        status = fresh_spread(check);
        if (status == STEPGRAPH_OK && check->unsteady)
            status = replay_arms(check);
    }
    /* Where they do, a pin that happened to be the same in all of them must at least be wrong in the same way every time. */
    if (status == STEPGRAPH_OK && check->unsteady && check->bad && !check->hung && !check->failed) {
        check->total += 2 * (uint64_t)check->steps;
        status = replay_waited(check, SG__ARM_AGAIN);
        if (status == STEPGRAPH_OK && !check->hung && !check->failed)
            status = replay_waited(check, SG__ARM_AGAIN_2);
    }
    return status;
}
