/* The ladder: what follows from recordings, comparisons, replays and the clock. */
#include "loop_p.h"

#include <stdio.h>
#include <string.h>

#include "audit_p.h"

/* Turns that record again before the clock has its say. */
#define CLOCK_SAMPLES 16u

/* ---- moving ------------------------------------------------------------------------------------------------------ */

stepgraph_rung sg__lane_rung(const sg__lane *lane)
{
    switch (lane->phase) {
    case SG__PHASE_REPLAY:
        return STEPGRAPH_RUNG_REPLAY;
    case SG__PHASE_RERECORD:
        return STEPGRAPH_RUNG_RERECORD;
    case SG__PHASE_FRESH:
        return STEPGRAPH_RUNG_FRESH;
    default:
        return STEPGRAPH_RUNG_NONE;
    }
}

void sg__lane_move(stepgraph_loop *loop, sg__lane *lane, sg__phase phase, stepgraph_why why, const char *words)
{
    stepgraph_rung before = sg__lane_rung(lane);
    stepgraph_error_info info;
    char copy[sizeof lane->words];
    int32_t level;

    if (words == NULL) {
        sg__error_get(&info);
        words = info.message;
    }
    snprintf(copy, sizeof copy, "%.511s", words);
    memcpy(lane->words, copy, sizeof copy);
    lane->phase = phase;
    lane->why = why;
    sg__lane_time(loop, lane);
    level = phase == SG__PHASE_REPLAY ? STEPGRAPH_LOG_INFO : STEPGRAPH_LOG_WARNING;
    sg__log(loop->session, level, "loop '%s', key %llu, step %llu: %s -> %s%s%s%s%s", loop->name, (unsigned long long)lane->key,
            (unsigned long long)loop->k, stepgraph_rung_name(before), stepgraph_rung_name(sg__lane_rung(lane)),
            why != STEPGRAPH_WHY_NONE ? ", " : "", why != STEPGRAPH_WHY_NONE ? stepgraph_why_name(why) : "",
            copy[0] != '\0' ? ": " : "", copy);
}

/* The first recording has done its duty. Its executable may have been passed on while it runs. */
static void drop_first(stepgraph_loop *loop, sg__lane *lane)
{
    if (lane->first == NULL)
        return;
    if (lane->first->exec == NULL && sg__enter(loop->session) == STEPGRAPH_OK) {
        (void)sg__session_wait(loop->session);
        sg__leave(loop->session);
    }
    sg__loop_collect(loop, lane->first);
    stepgraph_step_destroy(lane->first);
    lane->first = NULL;
}

/* Down to where every step is recorded, or, where the host does not want that, to where none is. */
void sg__lane_move_down(stepgraph_loop *loop, sg__lane *lane, stepgraph_why why, const char *words)
{
    bool rerecord = (loop->config.flags & STEPGRAPH_LOOP_NO_RERECORD) == 0;

    if (rerecord && lane->first != NULL && lane->step != NULL && lane->first->exec != NULL)
        sg__step_pass_executable(lane->first, lane->step);
    drop_first(loop, lane);
    lane->refused = 0;
    lane->rerecord_us = (sg__series){0}; /* The clock begins anew, too. */
    sg__lane_move(loop, lane, rerecord ? SG__PHASE_RERECORD : SG__PHASE_FRESH, why, words);
    if (rerecord)
        return;
    lane->final = true;
    sg__lane_drop_graph(loop, lane);
}

void sg__lane_stays_fresh(stepgraph_loop *loop, sg__lane *lane, stepgraph_why why, const char *words)
{
    sg__lane_move(loop, lane, SG__PHASE_FRESH, why, words);
    lane->final = true;
    sg__lane_drop_graph(loop, lane);
}

void sg__lane_failed(stepgraph_loop *loop, sg__lane *lane, stepgraph_why why, const char *words)
{
    lane->attempts++;
    lane->final = lane->attempts >= SG__ATTEMPTS_MAX;
    lane->wait = SG__ATTEMPT_WAIT << (2 * (lane->attempts - 1));
    lane->since_failure = 0;
    sg__lane_move(loop, lane, SG__PHASE_FRESH, why, words);
    if (lane->final)
        sg__log(loop->session, STEPGRAPH_LOG_WARNING,
                "loop '%s', key %llu: that was attempt %u, there will be no other; call stepgraph_loop_drop() for one",
                loop->name, (unsigned long long)lane->key, lane->attempts);
    /* A recording of this lane may still be in the steps: end has unwound it, and what is left goes now. */
    sg__lane_drop_graph(loop, lane);
    if (why == STEPGRAPH_WHY_MEMORY)
        sg__lane_make_room(loop, lane);
}

stepgraph_why sg__why_failed(stepgraph_status status)
{
    return status == STEPGRAPH_ERR_REFUSED  ? STEPGRAPH_WHY_REFUSED
           : status == STEPGRAPH_ERR_MEMORY ? STEPGRAPH_WHY_MEMORY
                                            : STEPGRAPH_WHY_BROKEN;
}

/* ---- findings ---------------------------------------------------------------------------------------------------- */

static void keep_audit(sg__lane *lane, stepgraph_audit *audit)
{
    if (audit == NULL)
        return;
    stepgraph_audit_destroy(lane->audit);
    lane->audit = audit;
}

bool sg__step_escaped(const stepgraph_step *step)
{
    for (uint64_t i = 0; step->audit != NULL && i < step->audit->summary.kept; i++)
        if (sg__audit_at(step->audit, i)->kind == STEPGRAPH_FINDING_ESCAPED)
            return true;
    return false;
}

void sg__lane_keep_audit(sg__lane *lane, const stepgraph_step *step)
{
    if (step->audit != NULL)
        keep_audit(lane, sg__audit_hold(step->audit));
}

static void words_of(const stepgraph_audit *audit, const stepgraph_finding *f, char *words, size_t bytes)
{
    uint64_t n = audit->summary.faults != 0 ? audit->summary.faults : audit->summary.doubtful;

    if (n > 1)
        snprintf(words, bytes, "%.280s (and %llu more); %.180s", f->text, (unsigned long long)n - 1, f->advice);
    else
        snprintf(words, bytes, "%.300s; %.200s", f->text, f->advice);
}

/* The worst of what differs. */
static stepgraph_why worst(const stepgraph_audit *audit, const stepgraph_finding **finding_out)
{
    static const struct {
        uint32_t kind;
        stepgraph_why why;
    } order[] = {
        {STEPGRAPH_FINDING_TOPOLOGY, STEPGRAPH_WHY_TOPOLOGY},
        {STEPGRAPH_FINDING_MOVED_POINTER, STEPGRAPH_WHY_MOVED},
        {STEPGRAPH_FINDING_CHANGING_SCALAR, STEPGRAPH_WHY_SCALAR},
    };

    for (size_t j = 0; j < sizeof order / sizeof *order; j++)
        for (uint64_t i = 0; i < audit->summary.kept; i++)
            if (sg__audit_at(audit, i)->fault != 0 && sg__audit_at(audit, i)->kind == order[j].kind) {
                *finding_out = sg__audit_at(audit, i);
                return order[j].why;
            }
    *finding_out = sg__audit_at(audit, 0);
    return STEPGRAPH_WHY_MOVED;
}

/* A host that copies its batches there by itself does so in turns that it runs, and perhaps in no others: no check could see that. */
static void warn_of_unfed(const stepgraph_loop *loop, const sg__lane *lane)
{
    const stepgraph_step *step = lane->step;

    for (size_t i = 0; i < step->n_used; i++)
        if (step->used[i]->role == STEPGRAPH_ROLE_FEED && !step->used[i]->adopted && step->used[i]->feeds == 0)
            sg__log(loop->session, STEPGRAPH_LOG_WARNING,
                    "loop '%s', key %llu, feed '%s' was never fed: replays use what stands there. Call stepgraph_pin_feed() before each step; a host that fills "
                    "it by other means has to do so in turns without turn.run, too",
                    loop->name, (unsigned long long)lane->key, step->used[i]->name);
}

/* What they are given was neither audited nor compared. */
static void warn_of_unread(const stepgraph_loop *loop, const sg__lane *lane)
{
    const sg__graph *read = &lane->step->read;

    if (read->n_unread > 0)
        sg__log(loop->session, STEPGRAPH_LOG_WARNING,
                "loop '%s', key %llu: %zu nodes could not be read, the first of them node %u, '%.100s': what moves or changes there is not seen",
                loop->name, (unsigned long long)lane->key, read->n_unread, read->unread[0], sg__node_name(&read->nodes[read->unread[0]]));
}

void sg__lane_proven(stepgraph_loop *loop, sg__lane *lane)
{
    lane->refuted = lane->suspected;
    if (sg__lane_relax(loop, lane) && (loop->config.flags & STEPGRAPH_LOOP_NO_CHECK) == 0) {
        lane->phase = SG__PHASE_CHECK;
        lane->checks_left = loop->config.check_steps;
        return;
    }
    if (lane->phase == SG__PHASE_FRESH) /* It could not be put back, and has moved. */
        return;
    lane->until_check = loop->config.check_every != 0 ? loop->config.check_every : UINT64_MAX;
    lane->timed_left = SG__TIMED_REPLAYS + 1;
    lane->timed_until = lane->step->stages.replay_device_us.n + SG__TIMED_REPLAYS;
    lane->checks_left = 0;
    warn_of_unfed(loop, lane);
    warn_of_unread(loop, lane);
    sg__lane_move(loop, lane, SG__PHASE_REPLAY, STEPGRAPH_WHY_NONE, "");
}

/* Nothing stands against it but what nobody has seen yet. */
static void pass(stepgraph_loop *loop, sg__lane *lane)
{
    drop_first(loop, lane);
    if ((loop->config.flags & STEPGRAPH_LOOP_NO_CHECK) != 0 && !lane->suspected) {
        sg__lane_proven(loop, lane);
        return;
    }
    lane->phase = SG__PHASE_CHECK;
    lane->checks_left = loop->config.check_steps * (lane->suspected ? 2 : 1);
}

/* What follows from a comparison, best first; together with the reason in the low bits. */
enum { PASS = 0, DOUBT = 1 << 8, LOOK = 2 << 8, DOWN = 3 << 8, FAILED = 4 << 8, REASON = 0xff };

/* With the words of the thread's error record. */
static uint32_t not_compared(stepgraph_status status, char words[512])
{
    stepgraph_error_info info;

    sg__error_get(&info);
    snprintf(words, 512, "%.511s", info.message);
    return FAILED | (uint32_t)sg__why_failed(status);
}

/* The first finding that is in doubt, of this kind, or 0 for any; NULL: there is none. */
static const stepgraph_finding *in_doubt(const stepgraph_audit *audit, uint32_t kind)
{
    for (uint64_t i = 0; i < audit->summary.kept; i++)
        if (sg__audit_at(audit, i)->doubtful != 0 && (kind == 0 || sg__audit_at(audit, i)->kind == kind))
            return sg__audit_at(audit, i);
    return NULL;
}

/* Of two recordings that differ. */
static uint32_t judge_changes(const stepgraph_loop *loop, const stepgraph_audit *audit, const stepgraph_step *again, char words[512])
{
    const stepgraph_finding *finding;
    stepgraph_why why = worst(audit, &finding);
    bool may_look = loop->keeps_nothing || in_doubt(audit, STEPGRAPH_FINDING_MOVED_POINTER) == NULL;

    words_of(audit, finding, words, 512);
    if (why == STEPGRAPH_WHY_TOPOLOGY)
        return FAILED | (uint32_t)why;
    /* Padding differs as scalars do, and also between two recordings of the same step. But where an address may move, the step is
     * not recorded once more: the host could go on with memory that only that recording has written. */
    return (why == STEPGRAPH_WHY_SCALAR && again == NULL && may_look ? LOOK : DOWN) | (uint32_t)why;
}

/* Of what stands in them without a pin, where that is worse than what is known already. */
static uint32_t judge_unpinned(stepgraph_loop *loop, sg__lane *lane, const stepgraph_step *again, uint32_t known, char words[512],
                               stepgraph_status *status)
{
    stepgraph_audit *audit;
    uint32_t mine;

    *status = sg__lane_unpinned(loop, lane, again, &audit);
    if (*status != STEPGRAPH_OK)
        return not_compared(*status, words);
    if (audit == NULL)
        return known;
    mine = audit->summary.faults > 0 ? DOWN : DOUBT;
    if (mine <= (known & ~(uint32_t)REASON)) {
        stepgraph_audit_destroy(audit);
        return known;
    }
    keep_audit(lane, audit);
    words_of(audit, sg__audit_at(audit, 0), words, 512); /* Faults come first. */
    return mine | STEPGRAPH_WHY_UNREGISTERED;
}

/* Of recordings with differences that may be values or left over: replays that do without them prove the latter. */
static uint32_t judge_doubt(const stepgraph_audit *audit, char words[512])
{
    const stepgraph_finding *finding = in_doubt(audit, 0);

    if (audit->summary.doubtful == 0)
        return PASS;
    finding = finding != NULL ? finding : sg__audit_at(audit, 0);
    words_of(audit, finding, words, 512);
    return DOUBT | (finding->kind == STEPGRAPH_FINDING_MOVED_POINTER ? STEPGRAPH_WHY_MOVED : STEPGRAPH_WHY_SCALAR);
}

/* The checks decide, whatever the host says. */
static void suspect(stepgraph_loop *loop, sg__lane *lane, stepgraph_why why, const char *words)
{
    lane->suspected = true;
    lane->doubt_why = why;
    snprintf(lane->doubt_words, sizeof lane->doubt_words, "%s", words);
    loop->stats.doubts++;
    sg__log(loop->session, STEPGRAPH_LOG_INFO, "loop '%s', key %llu, step %llu: checks decide whether it is used: %s", loop->name,
            (unsigned long long)lane->key, (unsigned long long)loop->k, words);
}

stepgraph_status sg__lane_compare(stepgraph_loop *loop, sg__lane *lane, const stepgraph_step *again, bool *look)
{
    stepgraph_audit *audit = NULL;
    const stepgraph_step *third = again != lane->step ? again : NULL;
    stepgraph_status status = stepgraph_audit_compare(lane->first, lane->step, third, &audit);
    char words[512] = SG__ANOTHER_RANK;
    uint32_t mine, all;
    stepgraph_why why;

    *look = lane->suspected = lane->refuted = false;
    lane->put_off = 0;
    keep_audit(lane, audit);
    if (status != STEPGRAPH_OK)
        mine = not_compared(status, words);
    else if (audit->summary.faults > 0)
        mine = judge_changes(loop, audit, again, words);
    else
        mine = judge_doubt(audit, words);
    if (mine < LOOK)
        mine = judge_unpinned(loop, lane, third, mine, words, &status);
    if (status == STEPGRAPH_ERR_LOST)
        return status;
    status = sg__loop_agree(loop, SG__ASK_COMPARED, mine, &all);
    if (status != STEPGRAPH_OK)
        return status;
    why = (stepgraph_why)(all & REASON);
    *look = (all & ~(uint32_t)REASON) == LOOK;
    if (all >= DOUBT && all < LOOK)
        suspect(loop, lane, why, words);
    if (all < LOOK)
        pass(loop, lane);
    else if (all >= FAILED)
        sg__lane_failed(loop, lane, why, words);
    else if (all >= DOWN)
        sg__lane_move_down(loop, lane, why, words);
    return STEPGRAPH_OK;
}

/* ---- after a step ------------------------------------------------------------------------------------------------ */

stepgraph_status sg__lane_updated(stepgraph_loop *loop, sg__lane *lane)
{
    bool refused = lane->step->refusal[0] != '\0';
    char words[400] = SG__ANOTHER_RANK;
    stepgraph_status status;
    uint32_t worst;

    lane->refused = refused ? lane->refused + 1 : 0;
    if (refused)
        snprintf(
            words, sizeof words,
            "the executable could not be updated in place %u times in a row, %s; give each form of the step a key of its own",
            lane->refused, lane->step->refusal);
    lane->step->refusal[0] = '\0';
    status = sg__loop_agree(loop, SG__ASK_UPDATED, lane->refused >= SG__REFUSED_MAX ? 1 : 0, &worst);
    if (status == STEPGRAPH_OK && worst != 0)
        sg__lane_failed(loop, lane, STEPGRAPH_WHY_UPDATE, words);
    return status;
}

bool sg__loop_has_clock(const stepgraph_loop *loop)
{
    return loop->session->info.software == 0 || (loop->config.flags & STEPGRAPH_LOOP_SOFTWARE_CLOCK) != 0;
}

static bool by_clock(const stepgraph_loop *loop)
{
    return (loop->config.flags & STEPGRAPH_LOOP_IGNORE_CLOCK) == 0 && sg__loop_has_clock(loop);
}

/* The clock has spoken: back to launches, if on any rank it has so. */
static stepgraph_status slower(stepgraph_loop *loop, sg__lane *lane, bool mine, const char *words)
{
    uint32_t worst;
    stepgraph_status status = sg__loop_agree(loop, SG__ASK_CLOCK, mine ? 1 : 0, &worst);

    if (status == STEPGRAPH_OK && worst != 0)
        sg__lane_stays_fresh(loop, lane, STEPGRAPH_WHY_CLOCK, mine ? words : SG__ANOTHER_RANK);
    return status;
}

/* The loop's own verdict, once enough replays were timed and their times are there. */
static stepgraph_status judge_replays(stepgraph_loop *loop, sg__lane *lane)
{
    stepgraph_verdict v = STEPGRAPH_VERDICT_INIT;
    bool all = false;
    stepgraph_status status = sg__enter(loop->session);
    char words[160];

    if (status == STEPGRAPH_OK) {
        if (loop->config.agree != NULL) /* All ranks judge after the same replay. */
            status = sg__session_wait(loop->session);
        if (status == STEPGRAPH_OK)
            status = sg__stages_poll(lane->step, &all);
        sg__leave(loop->session);
    }
    if (status != STEPGRAPH_OK && status != STEPGRAPH_ERR_LOST) { /* The step is done. Next time, or, with other ranks, from what there is. */
        sg__error_clear();
        status = STEPGRAPH_OK;
        all = false;
    }
    if (status != STEPGRAPH_OK ||
        (!all && loop->config.agree == NULL && lane->step->stages.replay_device_us.n < lane->timed_until))
        return status;
    lane->timed_left = 0;
    sg__step_judge(lane->step, &v);
    sg__log(
        loop->session, STEPGRAPH_LOG_INFO,
        "loop '%s', key %llu: %s; %lld launches a step, %lld to keep pins; a step takes %.1f us launched and %.1f us replayed",
        loop->name, (unsigned long long)lane->key,
        v.answer == STEPGRAPH_WIN    ? "WIN"
        : v.answer == STEPGRAPH_NULL ? "NULL"
                                     : "UNKNOWN",
        (long long)v.launches, (long long)v.pin_launches, v.step_us_fresh, v.step_us_replay);
    sg__lane_time(loop, lane);
    if (by_clock(loop)) {
        sg__print(words, sizeof words, "a step takes %.1f us launched and %.1f us replayed", v.step_us_fresh, v.step_us_replay);
        status = slower(loop, lane, v.rule_time == 0, words);
    }
    if (status == STEPGRAPH_OK && lane->phase == SG__PHASE_REPLAY)
        sg__lane_tune(loop, lane, v.device_us_replay);
    return status;
}

static stepgraph_status judge_rerecords(stepgraph_loop *loop, sg__lane *lane)
{
    const sg__stages *stages = &lane->step->stages;
    double host = sg__series_median(&stages->host_us), device = sg__series_median(&stages->device_us), record;
    double fresh = host > device ? host : device;
    char words[512];

    if (!by_clock(loop) || lane->rerecord_us.n != CLOCK_SAMPLES)
        return STEPGRAPH_OK;
    record = sg__series_median(&lane->rerecord_us);
    sg__print(words, sizeof words, "a step takes %.1f us launched, and %.1f us of the host's time recorded anew, which it has to be: %.350s", fresh, record,
             lane->words);
    return slower(loop, lane, fresh >= 0 && record > fresh, words);
}

stepgraph_status sg__lane_went(stepgraph_loop *loop, sg__lane *lane)
{
    stepgraph_status status = STEPGRAPH_OK;

    if (lane->attempts > 0 && ++lane->since_failure >= SG__ATTEMPT_FORGET)
        lane->attempts = 0;
    if (lane->phase == SG__PHASE_RERECORD)
        status = judge_rerecords(loop, lane);
    else if (lane->timed_left == 1)
        status = judge_replays(loop, lane);
    else if (lane->timed_left > 1 && --lane->timed_left == 1)
        sg__lane_time(loop, lane);
    return status;
}
