/* Turns: begin, end, cancel. What follows from what happened is decided in loop_ladder.c. */
#include "loop_p.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "relax_p.h"
#include "structs.h"

#define WARMUP_DEFAULT 3u
#define CHECK_STEPS_DEFAULT 3u
#define GRAPHS_DEFAULT 8u
#define TRACE_DEFAULT 1024u

#define KNOWN_FLAGS                                                                                                              \
    ((uint32_t)(STEPGRAPH_LOOP_RESTORE | STEPGRAPH_LOOP_NO_CHECK | STEPGRAPH_LOOP_ALLOW_UNPROVEN | STEPGRAPH_LOOP_TIMING |       \
                STEPGRAPH_LOOP_TRACE | STEPGRAPH_LOOP_IGNORE_CLOCK | STEPGRAPH_LOOP_SOFTWARE_CLOCK |                             \
                STEPGRAPH_LOOP_KEEP_SCRATCH | STEPGRAPH_LOOP_NO_RERECORD))

/* ---- create and destroy ------------------------------------------------------------------------------------------ */

static stepgraph_status read_config(stepgraph_session *session, const stepgraph_loop_config *given, stepgraph_loop *loop)
{
    const stepgraph_loop_config defaults = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_loop_config *config = &loop->config;
    stepgraph_step_config probe = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_status status = sg__struct_read(config, sizeof *config, offsetof(stepgraph_loop_config, name),
                                              given != NULL ? given : &defaults, "stepgraph_loop_config");

    if (status != STEPGRAPH_OK)
        return status;
    if ((config->flags & ~KNOWN_FLAGS) != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "unknown loop flags 0x%x", config->flags & ~KNOWN_FLAGS);
    if (config->max_graphs > SG__LANES_MAX)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a loop with %u graphs: at most %u", config->max_graphs, SG__LANES_MAX);
    if (config->executables > STEPGRAPH_TUNE_MOST)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a loop that tries %u executables: at most %d", config->executables, STEPGRAPH_TUNE_MOST);
    config->warmup_runs = config->warmup_runs != 0 ? config->warmup_runs : WARMUP_DEFAULT;
    config->check_steps = config->check_steps != 0 ? config->check_steps : CHECK_STEPS_DEFAULT;
    config->max_graphs = config->max_graphs != 0 ? config->max_graphs : GRAPHS_DEFAULT;
    config->trace_turns = config->trace_turns != 0 ? config->trace_turns : TRACE_DEFAULT;
    if (config->check != NULL)
        status = sg__struct_read(&loop->check, sizeof loop->check, offsetof(stepgraph_check_config, feed), config->check,
                                 "stepgraph_check_config");
    if (status == STEPGRAPH_OK && config->check != NULL && loop->check.enqueue == NULL)
        return sg__fail(
            STEPGRAPH_ERR_ARGUMENT,
            "a loop checks by callbacks only if it has one that enqueues the step; leave check NULL to check by turns");
    if (config->agree != NULL && (config->check != NULL || config->relax != NULL))
        return sg__fail(
            STEPGRAPH_ERR_ARGUMENT,
            "a loop whose ranks agree cannot %s, which may take another number of replays on each of them; leave %s NULL",
            config->check != NULL ? "check by callbacks" : "relax", config->check != NULL ? "check" : "relax");
    config->check = NULL;
    if (status == STEPGRAPH_OK && config->relax != NULL)
        status = sg__relax_read_config(config->relax, &loop->relax);
    loop->relaxes = config->relax != NULL;
    config->relax = NULL;

    /* The step's own flags are read where steps are made; what is wrong with them is told here. */
    if (status == STEPGRAPH_OK) {
        stepgraph_step *step;
        probe.flags = config->step_flags;
        status = stepgraph_step_begin(session, &probe, &step);
        if (status == STEPGRAPH_OK)
            stepgraph_step_destroy(step);
    }
    return status;
}

stepgraph_status stepgraph_loop_create(stepgraph_session *session, const stepgraph_loop_config *given, stepgraph_loop **loop_out)
{
    stepgraph_status status;
    stepgraph_loop *loop;

    sg__error_clear();
    if (session == NULL || loop_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no loop can be made: %s is NULL", session == NULL ? "the session" : "loop_out");
    loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return sg__fail_memory("host", sizeof *loop);
    loop->session = session;
    loop->lodger = (sg__lodger){.next = session->loops, .name = ""};
    session->loops = &loop->lodger;
    loop->stats = (stepgraph_loop_stats)STEPGRAPH_LOOP_STATS_INIT;
    status = read_config(session, given, loop);
    if (status == STEPGRAPH_OK)
        status = sg__name_check("loop", loop->config.name);
    if (status == STEPGRAPH_OK) {
        loop->name = strdup(loop->config.name != NULL ? loop->config.name : "loop");
        loop->lanes = calloc(loop->config.max_graphs, sizeof *loop->lanes);
        if (loop->name == NULL || loop->lanes == NULL)
            status = sg__fail_memory("host", loop->config.max_graphs * sizeof *loop->lanes);
    }
    loop->config.name = loop->lodger.name = loop->name;
    if (status == STEPGRAPH_OK && (loop->config.flags & STEPGRAPH_LOOP_TRACE) != 0)
        status = sg__trace_make(loop);
    if (status != STEPGRAPH_OK) {
        stepgraph_error_info why;
        sg__error_get(&why);
        stepgraph_loop_destroy(loop);
        return sg__error_set(&why);
    }
    *loop_out = loop;
    return STEPGRAPH_OK;
}

/* Given up, such a turn is to leave nothing behind: neither a rehearsal, nor what has escaped a recording. */
static bool is_undone(uint32_t kind)
{
    return kind == STEPGRAPH_TURN_REHEARSAL || kind == STEPGRAPH_TURN_RECORD;
}

void stepgraph_loop_destroy(stepgraph_loop *loop)
{
    sg__lodger **link;

    if (loop == NULL)
        return;
    if (is_undone(loop->open)) /* Others leave nothing to the steps' own end. */
        (void)stepgraph_loop_cancel(loop);
    for (uint32_t i = 0; loop->lanes != NULL && i < loop->config.max_graphs; i++)
        sg__lane_free(loop, &loop->lanes[i]);
    sg__lane_free(loop, &loop->outside);
    stepgraph_step_destroy(loop->look);
    sg__loop_forget(loop);
    sg__trace_free(loop);
    for (link = &loop->session->loops; *link != &loop->lodger; link = &(*link)->next)
        ;
    *link = loop->lodger.next;
    free(loop->report.text);
    free(loop->lanes);
    free(loop->name);
    free(loop);
}

/* ---- begin ------------------------------------------------------------------------------------------------------- */

static bool declared(const stepgraph_loop *loop, uint64_t k, uint32_t flags)
{
    return (flags & STEPGRAPH_TURN_LAUNCH) != 0 || (loop->config.fresh_every != 0 && k % loop->config.fresh_every == 0);
}

static void fill_turn(stepgraph_loop *loop, stepgraph_turn *turn, const sg__lane *lane, uint32_t kind, uint32_t why, bool feed)
{
    if (kind == STEPGRAPH_TURN_REPLAY && lane->timed_left > 0)
        loop->counted = sg__counted_all(loop->session);
    turn->feed = feed ? 1 : 0;
    turn->run = kind != STEPGRAPH_TURN_REPLAY ? 1 : 0;
    turn->again = 0;
    turn->kind = kind;
    turn->rung = sg__lane_rung(lane);
    turn->why = why;
    turn->step = lane->step;
}

/* What is to be done in this turn. */
static uint32_t decide(stepgraph_loop *loop, sg__lane *lane, uint64_t k, uint32_t flags, uint32_t *why)
{
    char words[sizeof lane->words];

    if (loop->retry.set && loop->retry.kind != 0) {
        *why = loop->retry.why;
        return loop->retry.kind;
    }
    *why = STEPGRAPH_WHY_DECLARED;
    if (declared(loop, k, flags))
        return STEPGRAPH_TURN_FRESH;
    *why = STEPGRAPH_WHY_BOUND;
    if (lane == &loop->outside)
        return STEPGRAPH_TURN_FALLBACK;
    *why = STEPGRAPH_WHY_STARTING;
    switch (lane->phase) {
    case SG__PHASE_WARM:
        return (loop->config.flags & STEPGRAPH_LOOP_RESTORE) != 0 ? STEPGRAPH_TURN_REHEARSAL : STEPGRAPH_TURN_WARMUP;
    case SG__PHASE_FIRST:
    case SG__PHASE_SECOND:
        return STEPGRAPH_TURN_RECORD;
    case SG__PHASE_CHECK:
        return STEPGRAPH_TURN_CHECK;
    case SG__PHASE_REPLAY:
        *why = STEPGRAPH_WHY_NONE;
        return lane->until_check == 0 ? STEPGRAPH_TURN_CHECK : STEPGRAPH_TURN_REPLAY;
    case SG__PHASE_RERECORD:
        *why = lane->why;
        return STEPGRAPH_TURN_RERECORD;
    case SG__PHASE_FRESH:
        break;
    }
    if (!lane->final && lane->wait == 0) {
        snprintf(words, sizeof words, "another attempt; what stood against the last one: %.450s", lane->words);
        sg__lane_move(loop, lane, SG__PHASE_FIRST, STEPGRAPH_WHY_STARTING, words);
        return STEPGRAPH_TURN_RECORD;
    }
    lane->wait -= lane->wait > 0 ? 1 : 0;
    *why = lane->why;
    return STEPGRAPH_TURN_FALLBACK;
}

static stepgraph_status start_run(stepgraph_loop *loop, sg__lane *lane, uint32_t kind)
{
    stepgraph_run run = kind == STEPGRAPH_TURN_FALLBACK                                     ? STEPGRAPH_RUN_FALLBACK
                        : kind == STEPGRAPH_TURN_WARMUP || kind == STEPGRAPH_TURN_REHEARSAL ? STEPGRAPH_RUN_WARMUP
                                                                                            : STEPGRAPH_RUN_FRESH;
    stepgraph_step *step;
    stepgraph_status status = sg__lane_step(loop, lane, SG__STEP_ITSELF, &step);

    if (status != STEPGRAPH_OK)
        return status;
    step->rehearses = kind == STEPGRAPH_TURN_REHEARSAL;
    return stepgraph_step_run_begin(step, run);
}

static stepgraph_status start_rehearsal(stepgraph_loop *loop, sg__lane *lane)
{
    stepgraph_status status = sg__loop_save(loop, 1, SG__INPUTS_FED, NULL);

    if (status != STEPGRAPH_OK)
        return sg__fail_prefix(status, "loop '%s': warm-up runs cannot be undone, since a copy of the pins cannot be made: ", loop->name);
    return start_run(loop, lane, STEPGRAPH_TURN_REHEARSAL);
}

/* The inputs of the lane's last step, in whichever way that was done, are not those of the next one. */
static void ask_for_feeds(const sg__lane *lane, stepgraph_step *step)
{
    if (step->fed_before < lane->fed_before)
        step->fed_before = lane->fed_before;
}

/* A step that is going to record. */
static stepgraph_status record_on(stepgraph_loop *loop, sg__lane *lane, stepgraph_step *step)
{
    stepgraph_status status = STEPGRAPH_OK;

    if (stepgraph_step_state(step) != STEPGRAPH_STEP_BEGUN)
        status = stepgraph_step_reset(step);
    if (status == STEPGRAPH_OK)
        status = stepgraph_step_prepare(step);
    if (status == STEPGRAPH_OK && step == lane->step && lane->first != NULL)
        sg__step_pass_executable(lane->first, step);
    step->device_limit = sg__lane_room(loop, lane);
    ask_for_feeds(lane, step);
    return status == STEPGRAPH_OK ? stepgraph_step_capture(step) : status;
}

static stepgraph_status start_recording(stepgraph_loop *loop, sg__lane *lane, uint32_t kind, stepgraph_step **step_out)
{
    stepgraph_status status = sg__lane_step(loop, lane, SG__STEP_ITSELF, step_out);

    if (status != STEPGRAPH_OK)
        return status;
    if (kind == STEPGRAPH_TURN_RERECORD) {
        lane->step->again = true;
        lane->step->device_limit = sg__lane_room(loop, lane);
        status = sg__step_record_again(lane->step);
        ask_for_feeds(lane, lane->step);
        return status == STEPGRAPH_OK ? stepgraph_step_capture(lane->step) : status;
    }
    lane->step->again = false;
    if (kind == STEPGRAPH_TURN_LOOK || lane->phase == SG__PHASE_FIRST)
        status = sg__lane_step(loop, lane, kind == STEPGRAPH_TURN_LOOK ? SG__STEP_LOOK : SG__STEP_FIRST, step_out);
    return status == STEPGRAPH_OK ? record_on(loop, lane, *step_out) : status;
}

/* These are the host's to know; all others are for the lane to live with. */
static bool is_grave(stepgraph_status status)
{
    return status == STEPGRAPH_ERR_LOST || status == STEPGRAPH_ERR_STATE || status == STEPGRAPH_ERR_ARGUMENT;
}

/* There is no third recording: what is known decides. */
static stepgraph_status look_fails(stepgraph_loop *loop, sg__lane *lane)
{
    stepgraph_step *look = loop->look;
    bool more;

    loop->look = NULL;
    stepgraph_step_destroy(look);
    return sg__lane_compare(loop, lane, lane->step, &more);
}

/* Start what was decided. *started false: it cannot be, and the lane has moved. */
static stepgraph_status start(stepgraph_loop *loop, sg__lane *lane, uint32_t kind, stepgraph_step **step_out, bool *started)
{
    stepgraph_status status = STEPGRAPH_OK;

    *started = true;
    switch (kind) {
    case STEPGRAPH_TURN_REPLAY:
        status = sg__no_run_open(lane->step, "be replayed");
        break;
    case STEPGRAPH_TURN_REHEARSAL:
        status = start_rehearsal(loop, lane);
        break;
    case STEPGRAPH_TURN_CHECK:
        status = sg__loop_check_begin(loop, lane, started);
        if (status == STEPGRAPH_OK && *started)
            status = start_run(loop, lane, kind);
        break;
    case STEPGRAPH_TURN_LOOK:
        status = start_recording(loop, lane, kind, step_out);
        if (status != STEPGRAPH_OK && !is_grave(status))
            status = look_fails(loop, lane);
        break;
    case STEPGRAPH_TURN_RECORD:
    case STEPGRAPH_TURN_RERECORD:
        /* Work that escapes the recording runs at once, and would run once more where the recording fails. */
        if (kind == STEPGRAPH_TURN_RECORD)
            (void)sg__loop_save(loop, 1, SG__INPUTS_NONE, NULL);
        status = start_recording(loop, lane, kind, step_out);
        if (status == STEPGRAPH_OK || is_grave(status))
            break;
        loop->unstarted = status;
        sg__error_get(&loop->unstarted_words);
        status = STEPGRAPH_OK;
        break;
    default:
        status = start_run(loop, lane, kind);
        break;
    }
    if (*step_out == NULL)
        *step_out = lane->step;
    return status;
}

#define TURN_FLAGS ((uint32_t)(STEPGRAPH_TURN_LAUNCH | STEPGRAPH_TURN_KEEPS_NOTHING))

static stepgraph_status begin_slowly(stepgraph_loop *loop, uint64_t k, stepgraph_turn *turn)
{
    uint64_t start_ns = sg__clock_ns();
    stepgraph_step *step;
    stepgraph_status status;
    uint32_t kind, why;
    bool started;
    sg__lane *lane;

    if ((turn->flags & ~TURN_FLAGS) != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "unknown turn flags 0x%x", turn->flags & ~TURN_FLAGS);
    if (turn->key == STEPGRAPH_KEY_ALL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "loop '%s': key 0x%llx means all keys, and is none", loop->name,
                        (unsigned long long)turn->key);
    if (loop->retry.set && (loop->retry.k != k || loop->retry.key != turn->key))
        return sg__fail(STEPGRAPH_ERR_STATE,
                        "loop '%s': step %llu of key %llu is to be taken again, and was left for step %llu of key %llu; go round "
                        "while turn.again is "
                        "set, or call stepgraph_loop_cancel()",
                        loop->name, (unsigned long long)loop->retry.k, (unsigned long long)loop->retry.key, (unsigned long long)k,
                        (unsigned long long)turn->key);
    status = sg__session_alive(loop->session);
    loop->k = k;
    if (status == STEPGRAPH_OK)
        status = sg__lane_find(loop, turn->key, &lane);
    if (status != STEPGRAPH_OK)
        return sg__log_failure(loop->session, status);
    loop->keeps_nothing = (turn->flags & STEPGRAPH_TURN_KEEPS_NOTHING) != 0;
    sg__loop_forget(loop); /* What an earlier turn saved is about that turn. */
    do {
        /* In doubt by turns, which save what no pin covers. */
        if (lane->phase == SG__PHASE_CHECK && !lane->suspected && loop->check.enqueue != NULL &&
            !declared(loop, k, turn->flags) && !loop->retry.set) {
            status = sg__loop_check_run(loop, lane, k);
            if (status != STEPGRAPH_OK)
                return status;
        }
        if (loop->spoiled.status != STEPGRAPH_OK)
            return sg__log_failure(loop->session, sg__loop_spoiled(loop));
        kind = decide(loop, lane, k, turn->flags, &why);
        step = NULL;
        status = start(loop, lane, kind, &step, &started);
    } while (status == STEPGRAPH_OK && !started);
    if (status != STEPGRAPH_OK) {
        sg__loop_forget(loop);
        return sg__log_failure(loop->session, status);
    }

    fill_turn(loop, turn, lane, kind, why, !loop->retry.set);
    turn->step = step;
    if (loop->unstarted != STEPGRAPH_OK || (kind == STEPGRAPH_TURN_LOOK && loop->look == NULL))
        turn->run = 0;
    loop->open = kind;
    loop->why = why;
    loop->retry.set = false;
    loop->last = lane;
    lane->last_turn = ++loop->turn;
    loop->start_ns = start_ns;
    sg__error_clear();
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_loop_begin(stepgraph_loop *loop, uint64_t k, stepgraph_turn *turn)
{
    sg__lane *lane;

    sg__error_clear();
    if (loop == NULL || turn == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no turn can begin: %s is NULL", loop == NULL ? "the loop" : "the turn");
    if (turn->size != sizeof *turn) {
        stepgraph_turn copy;
        stepgraph_status status = sg__struct_read(&copy, sizeof copy, sizeof copy, turn, "stepgraph_turn");
        if (status != STEPGRAPH_OK)
            return status;
    }
    if (loop->open != 0 || loop->calling)
        return sg__fail(STEPGRAPH_ERR_STATE, "loop '%s': the turn of step %llu is open: call stepgraph_loop_end() first",
                        loop->name, (unsigned long long)loop->k);

    /* A replay needs nothing here. */
    lane = loop->last != NULL && loop->last->key == turn->key ? loop->last : sg__lane_of(loop, turn->key);
    if (lane != NULL && lane->phase == SG__PHASE_REPLAY && lane->until_check != 0 && (turn->flags & ~(uint32_t)STEPGRAPH_TURN_KEEPS_NOTHING) == 0 &&
        !loop->retry.set && loop->trace == NULL && loop->session->running == NULL && !declared(loop, k, 0)) {
        loop->k = k;
        loop->open = STEPGRAPH_TURN_REPLAY;
        loop->why = STEPGRAPH_WHY_NONE;
        loop->last = lane;
        lane->last_turn = ++loop->turn;
        fill_turn(loop, turn, lane, STEPGRAPH_TURN_REPLAY, STEPGRAPH_WHY_NONE, true);
        return STEPGRAPH_OK;
    }
    return begin_slowly(loop, k, turn);
}

/* ---- end --------------------------------------------------------------------------------------------------------- */

/* Step k is not done, or wants a look: the same turn again. ran: the host went through its step. */
static stepgraph_status take_again(stepgraph_loop *loop, sg__lane *lane, stepgraph_turn *turn, uint32_t kind, uint32_t why,
                                   bool ran)
{
    stepgraph_status status = STEPGRAPH_OK;

    loop->open = 0;
    if (ran && loop->config.rewind != NULL) {
        loop->calling = true;
        status = loop->config.rewind(loop->config.user, loop->k);
        loop->calling = false;
    }
    if (status != STEPGRAPH_OK)
        return sg__fail(status, "loop '%s': the rewind callback for step %llu answered %s (%d)", loop->name,
                        (unsigned long long)loop->k, stepgraph_status_name(status), (int)status);
    loop->retry = (sg__retry){.set = true, .k = loop->k, .key = turn->key, .kind = kind, .why = why};
    loop->stats.retries += kind == STEPGRAPH_TURN_FALLBACK ? 1 : 0;
    turn->again = 1;
    turn->rung = sg__lane_rung(lane);
    turn->why = why;
    sg__error_clear();
    return STEPGRAPH_OK;
}

/* The step was done. */
static stepgraph_status finish(stepgraph_loop *loop, sg__lane *lane, stepgraph_turn *turn)
{
    uint64_t end_ns = sg__clock_ns();

    if (loop->trace != NULL)
        sg__trace_turn(loop, lane, loop->open, end_ns);
    sg__loop_count(loop, lane, loop->open, loop->why);
    loop->open = 0;
    turn->again = 0;
    turn->rung = sg__lane_rung(lane);
    sg__error_clear();
    return STEPGRAPH_OK;
}

/* Launch what was recorded, once. A failure that the host can mend leaves the turn undone, and so does one where other ranks have
 * launched it. */
static stepgraph_status end_replay(stepgraph_loop *loop, sg__lane *lane, stepgraph_turn *turn, stepgraph_step *step, bool ran,
                                   bool *done)
{
    stepgraph_status status = stepgraph_step_replay(step);

    *done = status == STEPGRAPH_OK;
    if (*done)
        return STEPGRAPH_OK;
    if (is_grave(status) || stepgraph_step_state(step) == STEPGRAPH_STEP_READY) {
        loop->open = 0;
        return status;
    }
    if (loop->config.agree != NULL) {
        loop->open = 0;
        return sg__fail_prefix(status, "loop '%s': step %llu was not done by this rank, and the others do it: ", loop->name,
                               (unsigned long long)loop->k);
    }
    sg__lane_failed(loop, lane, STEPGRAPH_WHY_REPLAY, NULL);
    return take_again(loop, lane, turn, STEPGRAPH_TURN_FALLBACK, STEPGRAPH_WHY_REPLAY, ran);
}

/* The host has launched the step although it was to be replayed, as somebody does who does not look at turn.run: it would be done twice. Seen in the
 * first replays, which are timed, if launches are counted. */
static stepgraph_status check_not_launched(stepgraph_loop *loop, const sg__lane *lane)
{
    const uint64_t launches = lane->step->stages.launches, counted = sg__counted_all(loop->session) - loop->counted;

    if (launches == 0 || counted != launches)
        return STEPGRAPH_OK;
    loop->open = 0;
    return sg__log_failure(loop->session, sg__fail(STEPGRAPH_ERR_STATE,
                                                   "loop '%s': %llu launches were counted in the turn of step %llu, as many as the step has, and they have done "
                                                   "it; it was to be replayed, and was not, since that would do it twice: launch only where turn.run is 1",
                                                   loop->name, (unsigned long long)counted, (unsigned long long)loop->k));
}

static stepgraph_status end_fast(stepgraph_loop *loop, sg__lane *lane, stepgraph_turn *turn)
{
    stepgraph_status status = lane->timed_left > 0 ? check_not_launched(loop, lane) : STEPGRAPH_OK;
    bool done;

    if (status != STEPGRAPH_OK)
        return status;
    status = end_replay(loop, lane, turn, lane->step, false, &done);
    if (!done)
        return status;
    lane->until_check--;
    if (loop->trace != NULL || lane->timed_left > 0 || lane->attempts > 0) {
        status = finish(loop, lane, turn);
        return status == STEPGRAPH_OK ? sg__lane_went(loop, lane) : status;
    }
    loop->stats.steps++;
    loop->stats.turns[STEPGRAPH_TURN_REPLAY]++;
    lane->steps++;
    lane->replays++;
    loop->open = 0;
    return STEPGRAPH_OK;
}

/* Stop a recording; false: it failed, here or on another rank, and *status_out is for the host. */
static bool end_recording(stepgraph_loop *loop, sg__lane *lane, stepgraph_turn *turn, stepgraph_step *step,
                          stepgraph_status *status_out)
{
    stepgraph_status status = loop->unstarted;
    bool started = status == STEPGRAPH_OK, half_done;
    uint32_t why = STEPGRAPH_WHY_NONE;
    stepgraph_error_info words;

    if (started)
        status = stepgraph_step_end(step);
    else
        (void)sg__error_set(&loop->unstarted_words);
    loop->unstarted = STEPGRAPH_OK;
    *status_out = status;
    if (started && stepgraph_step_state(step) == STEPGRAPH_STEP_CAPTURING) /* In another thread: the turn stays open. */
        return false;
    loop->stats.recordings += status == STEPGRAPH_OK ? 1 : 0;
    loop->stats.recordings_failed += status != STEPGRAPH_OK ? 1 : 0;
    if (status != STEPGRAPH_ERR_LOST)
        *status_out =
            sg__loop_agree(loop, SG__ASK_RECORDED, status == STEPGRAPH_OK ? STEPGRAPH_WHY_NONE : sg__why_failed(status), &why);
    if (*status_out != STEPGRAPH_OK) {
        sg__loop_forget(loop);
        loop->open = 0;
        return false;
    }
    if (status == STEPGRAPH_OK) {
        sg__loop_forget(loop);
        if (why == STEPGRAPH_WHY_NONE)
            return true;
        sg__lane_failed(loop, lane, (stepgraph_why)why, SG__ANOTHER_RANK);
        *status_out = take_again(loop, lane, turn, STEPGRAPH_TURN_FALLBACK, why, true);
        return false;
    }
    if (started && status == STEPGRAPH_ERR_REFUSED)
        sg__lane_keep_audit(lane, step);
    sg__error_get(&words);
    half_done = started && sg__step_escaped(step) && !loop->has_images;
    if (started)
        *status_out = sg__loop_undo(loop);
    else
        sg__loop_forget(loop); /* The host was not asked to launch anything. */
    if (*status_out != STEPGRAPH_OK) {
        loop->open = 0;
        return false;
    }
    (void)sg__error_set(&words);
    sg__lane_failed(loop, lane, (stepgraph_why)why, words.message);
    if (half_done) {
        (void)sg__error_set(&words);
        *status_out = sg__fail_prefix(
            status, "loop '%s': step %llu is half done, and there was no room for a copy of the pins to undo it: ", loop->name,
            (unsigned long long)loop->k);
        loop->open = 0;
        return false;
    }
    *status_out = take_again(loop, lane, turn, STEPGRAPH_TURN_FALLBACK, why, true);
    return false;
}

/* The step is done, and an error would say that it is not: where the host cannot go back for a look, there is none. */
static stepgraph_status ask_for_look(stepgraph_loop *loop, sg__lane *lane, stepgraph_turn *turn)
{
    stepgraph_status status = take_again(loop, lane, turn, STEPGRAPH_TURN_LOOK, STEPGRAPH_WHY_STARTING, true);

    if (status == STEPGRAPH_OK)
        return STEPGRAPH_OK;
    (void)sg__log_failure(loop->session, status);
    sg__error_clear();
    status = look_fails(loop, lane);
    turn->rung = sg__lane_rung(lane);
    return status;
}

static stepgraph_status end_record(stepgraph_loop *loop, sg__lane *lane, stepgraph_turn *turn)
{
    bool first = lane->phase == SG__PHASE_FIRST, done, look = false;
    stepgraph_step *step = first ? lane->first : lane->step;
    stepgraph_status status;

    if (!end_recording(loop, lane, turn, step, &status))
        return status;
    if (!first)
        sg__lane_note(loop, lane);
    step->stages.timing = false; /* The first launch of an executable is no measure of the others. */
    status = end_replay(loop, lane, turn, step, true, &done);
    sg__lane_time(loop, lane);
    if (!done)
        return status;
    if (first)
        lane->phase = SG__PHASE_SECOND;
    else
        status = sg__lane_compare(loop, lane, NULL, &look);
    if (status != STEPGRAPH_OK) {
        loop->open = 0;
        return status;
    }
    status = finish(loop, lane, turn);
    return status == STEPGRAPH_OK && look ? ask_for_look(loop, lane, turn) : status;
}

static stepgraph_status end_look(stepgraph_loop *loop, sg__lane *lane, stepgraph_turn *turn)
{
    stepgraph_step *look = loop->look;
    stepgraph_status status = look != NULL ? stepgraph_step_end(look) : STEPGRAPH_OK;
    bool more;

    if (look != NULL && stepgraph_step_state(look) == STEPGRAPH_STEP_CAPTURING) /* In another thread: the turn stays open. */
        return status;
    if (status == STEPGRAPH_OK && look != NULL)
        status = sg__lane_compare(loop, lane, look, &more);
    else if (status != STEPGRAPH_OK && status != STEPGRAPH_ERR_LOST)
        status = look_fails(loop, lane);
    sg__loop_collect(loop, loop->look);
    stepgraph_step_destroy(loop->look);
    loop->look = NULL;
    if (status != STEPGRAPH_OK) {
        loop->open = 0;
        return status;
    }
    return finish(loop, lane, turn);
}

static stepgraph_status end_rerecord(stepgraph_loop *loop, sg__lane *lane, stepgraph_turn *turn)
{
    stepgraph_status status;
    bool done;

    if (!end_recording(loop, lane, turn, lane->step, &status))
        return status;
    status = end_replay(loop, lane, turn, lane->step, true, &done);
    if (!done)
        return status;
    sg__series_add(&lane->rerecord_us, (double)(sg__clock_ns() - loop->start_ns) / 1000.0);
    status = finish(loop, lane, turn);
    if (status == STEPGRAPH_OK)
        status = sg__lane_updated(loop, lane);
    return status == STEPGRAPH_OK && lane->phase == SG__PHASE_RERECORD ? sg__lane_went(loop, lane) : status;
}

/* A warm run is over. */
static void warm(stepgraph_loop *loop, sg__lane *lane)
{
    if (lane->phase == SG__PHASE_WARM && ++lane->warm >= loop->config.warmup_runs)
        lane->phase = SG__PHASE_FIRST;
}

static stepgraph_status end_rehearsal(stepgraph_loop *loop, sg__lane *lane, stepgraph_turn *turn)
{
    stepgraph_status status = sg__loop_unrehearse(loop, turn->feed != 0);

    warm(loop, lane);
    if (status != STEPGRAPH_OK) {
        loop->open = 0;
        return status;
    }
    status = finish(loop, lane, turn);
    return status == STEPGRAPH_OK ? take_again(loop, lane, turn, 0, STEPGRAPH_WHY_STARTING, true) : status;
}

static stepgraph_status end_run(stepgraph_loop *loop, sg__lane *lane, stepgraph_turn *turn)
{
    stepgraph_status status = stepgraph_step_run_end(lane->step);

    if (status == STEPGRAPH_ERR_STATE) /* Forked streams are not joined: the turn stays open. */
        return status;
    if (status != STEPGRAPH_OK) /* The host has launched the step; what failed is measuring it, unless all is lost. */
        sg__run_cancel(lane->step);
    if (status == STEPGRAPH_ERR_LOST) {
        loop->open = 0;
        return status;
    }
    status = STEPGRAPH_OK;
    if (lane->first_us < 0)
        lane->first_us = (double)(sg__clock_ns() - loop->start_ns) / 1000.0;
    if (loop->open == STEPGRAPH_TURN_REHEARSAL)
        return end_rehearsal(loop, lane, turn);
    if (loop->open == STEPGRAPH_TURN_CHECK)
        status = sg__loop_check_end(loop, lane);
    else if (loop->open == STEPGRAPH_TURN_WARMUP)
        warm(loop, lane);
    if (status != STEPGRAPH_OK) {
        loop->open = 0;
        return status;
    }
    return finish(loop, lane, turn);
}

/* A callback's turn goes on when it answers. */
static stepgraph_status in_callback(const stepgraph_loop *loop, const char *what)
{
    return sg__fail(STEPGRAPH_ERR_STATE, "loop '%s': step %llu cannot be %s by a callback of the loop", loop->name, (unsigned long long)loop->k, what);
}

stepgraph_status stepgraph_loop_end(stepgraph_loop *loop, stepgraph_turn *turn)
{
    stepgraph_status status;

    sg__error_clear();
    if (loop == NULL || turn == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no turn can end: %s is NULL", loop == NULL ? "the loop" : "the turn");
    if (loop->calling)
        return in_callback(loop, "ended");
    if (loop->open == 0)
        return sg__fail(STEPGRAPH_ERR_STATE, "loop '%s': no turn is open: call stepgraph_loop_begin() first", loop->name);
    switch (loop->open) {
    case STEPGRAPH_TURN_REPLAY:
        return end_fast(loop, loop->last, turn);
    case STEPGRAPH_TURN_RECORD:
        status = end_record(loop, loop->last, turn);
        break;
    case STEPGRAPH_TURN_LOOK:
        status = end_look(loop, loop->last, turn);
        break;
    case STEPGRAPH_TURN_RERECORD:
        status = end_rerecord(loop, loop->last, turn);
        break;
    default:
        status = end_run(loop, loop->last, turn);
        break;
    }
    if (status == STEPGRAPH_OK && loop->spoiled.status != STEPGRAPH_OK)
        status = sg__loop_spoiled(loop);
    return sg__log_failure(loop->session, status);
}

/* ---- cancel and drop --------------------------------------------------------------------------------------------- */

stepgraph_status stepgraph_loop_cancel(stepgraph_loop *loop)
{
    stepgraph_status status = STEPGRAPH_OK;
    sg__lane *lane;
    bool looking;

    sg__error_clear();
    if (loop == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no turn to cancel: the loop is NULL");
    if (loop->calling)
        return in_callback(loop, "cancelled");
    if (loop->open == 0 && !loop->retry.set)
        return STEPGRAPH_OK;
    lane = loop->last;
    looking = loop->open == STEPGRAPH_TURN_LOOK || (loop->retry.set && loop->retry.kind == STEPGRAPH_TURN_LOOK);
    switch (loop->open) {
    case 0:
    case STEPGRAPH_TURN_REPLAY:
        break;
    case STEPGRAPH_TURN_RECORD:
        if (loop->unstarted == STEPGRAPH_OK)
            status = stepgraph_step_reset(lane->phase == SG__PHASE_FIRST ? lane->first : lane->step);
        lane->phase = SG__PHASE_FIRST;
        break;
    case STEPGRAPH_TURN_RERECORD:
        if (loop->unstarted == STEPGRAPH_OK)
            status = stepgraph_step_reset(lane->step);
        break;
    case STEPGRAPH_TURN_LOOK:
        break;
    default:
        sg__run_cancel(lane->step);
        break;
    }
    if (looking && status == STEPGRAPH_OK)
        status = look_fails(loop, lane);
    if (is_undone(loop->open) && status == STEPGRAPH_OK)
        status = sg__loop_undo(loop);
    sg__loop_forget(loop);
    loop->open = 0;
    loop->unstarted = STEPGRAPH_OK;
    loop->retry.set = false;
    loop->stats.cancelled++;
    return sg__log_failure(loop->session, status);
}

stepgraph_status stepgraph_loop_drop(stepgraph_loop *loop, uint64_t key, const char *why)
{
    stepgraph_status status;

    sg__error_clear();
    if (loop == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing to drop: the loop is NULL");
    if (loop->open != 0 || loop->retry.set || loop->calling)
        return sg__fail(STEPGRAPH_ERR_STATE,
                        "loop '%s': the turn of step %llu is not over, and no graph can be dropped: end it, go round while turn.again is set, or call "
                        "stepgraph_loop_cancel()",
                        loop->name, (unsigned long long)loop->k);
    status = sg__session_alive(loop->session);
    if (status != STEPGRAPH_OK)
        return sg__log_failure(loop->session, status);
    for (uint32_t i = 0; i < loop->config.max_graphs; i++) {
        sg__lane *lane = &loop->lanes[i];
        if (!lane->used || (key != STEPGRAPH_KEY_ALL && lane->key != key))
            continue;
        sg__lane_drop_graph(loop, lane);
        lane->attempts = 0;
        lane->final = false;
        lane->refused = 0;
        lane->planted = false;
        lane->suspected = false;
        if (lane->phase != SG__PHASE_WARM)
            sg__lane_move(loop, lane, SG__PHASE_FIRST, STEPGRAPH_WHY_DROPPED, why != NULL ? why : "the host dropped the graph");
    }
    sg__error_clear();
    return STEPGRAPH_OK;
}
