/*
 * Introduces what this library is for: the same steps, launched one by one and replayed from a graph, compared bit for bit. First
 * over parameters that move, by hand; then over pinned ones, on the loop.
 */
#include "quickstart.h"

#include <stdlib.h>

enum {
    UNPINNED_STEPS = 4 /* One replay would be right, whatever is wrong with the graph: what has moved is missed by the second. */
};

static int read_loss(struct model *model, float *loss_out)
{
    return library(stepgraph_pin_read(model->loss, loss_out, sizeof *loss_out));
}

/* ---- without pins ------------------------------------------------------------------------------------------------ */

static int begin(struct model *model, const char *name, uint32_t flags, stepgraph_step **step_out)
{
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;

    config.name = name;
    config.flags = flags;
    return library(stepgraph_step_begin(model->driver->session, &config, step_out));
}

static int run_fresh(struct model *model, stepgraph_step *step, int number, float *loss_out)
{
    TRY(step_feed(model, number));
    TRY(library(stepgraph_step_run_begin(step, STEPGRAPH_RUN_FRESH)));
    int status = step_enqueue(model, step);
    TRY(library(stepgraph_step_run_end(step)));
    TRY(status);
    return read_loss(model, loss_out);
}

/* On success the step is ready to be replayed. Answers the library's status, with its words in last_error. */
static int record(struct model *model, stepgraph_step *step, stepgraph_status *status_out)
{
    TRY(library(stepgraph_step_prepare(step)));
    TRY(library(stepgraph_step_capture(step)));
    int status = step_enqueue(model, step);
    /* Whatever happened, this ends the recording; and it looks at what was recorded. */
    *status_out = stepgraph_step_end(step);
    return *status_out != STEPGRAPH_OK ? 0 : status;
}

static int replay(struct model *model, stepgraph_step *step, int number, float *loss_out)
{
    TRY(step_feed(model, number));
    TRY(library(stepgraph_step_replay(step)));
    return read_loss(model, loss_out);
}

/* By default the library does not let such a graph pass. */
static int be_refused(struct model *model, struct findings *findings)
{
    stepgraph_error_info error = STEPGRAPH_ERROR_INFO_INIT;
    stepgraph_step *step = NULL;
    stepgraph_status status;

    TRY(begin(model, "unpinned", 0, &step));
    int result = record(model, step, &status);
    if (result == 0 && status != STEPGRAPH_ERR_REFUSED) {
        result = library(status);
        if (result == 0)
            result = fail(EXIT_STORY, "the library let a graph pass that was recorded over parameters without pins");
    } else if (result == 0) {
        stepgraph_step_error(step, &error);
        snprintf(findings->unpinned_refusal, sizeof findings->unpinned_refusal, "%s", error.message);
    }
    stepgraph_step_destroy(step);
    return result;
}

static int count_moved(const struct model *model, const uint64_t *recorded)
{
    int moved = 0;
    for (int i = 0; i < model->parameter_count; i++)
        moved += model->parameters[i].part[VALUE].address != recorded[i];
    return moved;
}

static int insist(struct model *model, stepgraph_step *step, const struct state *start, uint64_t *recorded,
                  struct findings *findings)
{
    float fresh_losses[UNPINNED_STEPS], replay_losses[UNPINNED_STEPS];
    struct state fresh = {0}, replayed = {0};
    stepgraph_status status;

    int result = 0;
    for (int i = 0; i < UNPINNED_STEPS && result == 0; i++)
        result = run_fresh(model, step, i, &fresh_losses[i]);
    if (result == 0)
        result = state_save(model, &fresh);
    if (result == 0)
        result = state_load(model, start);
    for (int i = 0; i < model->parameter_count; i++)
        recorded[i] = model->parameters[i].part[VALUE].address;
    if (result == 0)
        result = record(model, step, &status);
    if (result == 0)
        result = library(status);
    for (int i = 0; i < UNPINNED_STEPS && result == 0; i++)
        result = replay(model, step, i, &replay_losses[i]);
    if (result == 0)
        result = state_save(model, &replayed);
    if (result == 0) {
        findings->moved = count_moved(model, recorded);
        state_compare(model, &fresh, &replayed, fresh_losses, replay_losses, UNPINNED_STEPS, &findings->unpinned);
    }
    state_free(&replayed);
    state_free(&fresh);
    return result;
}

int story_unpinned(struct model *model, struct findings *findings)
{
    struct state start;
    stepgraph_step *step = NULL;

    TRY(state_save(model, &start));
    int result = be_refused(model, findings);
    if (result == 0)
        result = state_load(model, &start);

    uint64_t *recorded = calloc((size_t)model->parameter_count, sizeof *recorded);
    if (recorded == NULL && result == 0)
        result = fail(EXIT_INPUT, "out of host memory: a list of %d addresses", model->parameter_count);
    if (result == 0)
        result = begin(model, "unpinned, forced", STEPGRAPH_STEP_ALLOW_UNREGISTERED, &step);
    if (result == 0)
        result = insist(model, step, &start, recorded, findings);
    stepgraph_step_destroy(step);
    free(recorded);

    if (result == 0)
        result = state_load(model, &start);
    state_free(&start);
    return result;
}

/* ---- with pins --------------------------------------------------------------------------------------------------- */

/* Steps from the first one on, until the loop knows how to do them: it warms up, records two steps, compares them, checks, and perhaps
 * relaxes, and checks again. */
static int start_up(struct model *model, stepgraph_loop *loop, struct findings *findings)
{
    stepgraph_turn turn = STEPGRAPH_TURN_INIT;

    for (int i = 0; turn.rung == STEPGRAPH_RUNG_NONE; i++)
        TRY(loop_step(model, loop, &turn, i));
    if (stepgraph_loop_audit(loop, 0) != NULL)
        report_audit(stepgraph_loop_audit(loop, 0));
    if (stepgraph_loop_check(loop, 0) != NULL)
        report_check(stepgraph_loop_check(loop, 0));
    if (stepgraph_loop_relax(loop, 0) != NULL)
        report_relax(stepgraph_loop_relax(loop, 0));
    return loop_judge(loop, findings->refusal, sizeof findings->refusal);
}

/* Steps 0 to n - 1. With the flag STEPGRAPH_TURN_LAUNCH all of them are launched. The state is kept in `after_out`. */
static int run(struct model *model, stepgraph_loop *loop, uint32_t flags, int n, float *losses, struct state *after_out)
{
    stepgraph_turn turn = STEPGRAPH_TURN_INIT;

    turn.flags = flags;
    for (int i = 0; i < n; i++) {
        TRY(loop_step(model, loop, &turn, i));
        TRY(read_loss(model, &losses[i]));
    }
    return state_save(model, after_out);
}

static int prove(struct model *model, stepgraph_loop *loop, const struct state *start, struct findings *findings)
{
    int n = model->options->check;
    float *losses = calloc(2 * (size_t)n, sizeof *losses);
    struct state fresh = {0}, replayed = {0};

    if (losses == NULL)
        return fail(EXIT_INPUT, "out of host memory: the losses of %d steps; make --check smaller", n);
    int result = run(model, loop, STEPGRAPH_TURN_LAUNCH, n, losses, &fresh);
    if (result == 0)
        result = state_load(model, start);
    if (result == 0)
        result = run(model, loop, 0, n, losses + n, &replayed);
    if (result == 0)
        state_compare(model, &fresh, &replayed, losses, losses + n, n, &findings->pinned);
    state_free(&replayed);
    state_free(&fresh);
    free(losses);
    return result;
}

/* Read what the library measured on the way. */
static int measure(struct model *model, stepgraph_loop *loop, struct measured *m)
{
    const stepgraph_stage stage = STEPGRAPH_STAGE_INIT;
    stepgraph_step *step = stepgraph_loop_step(loop, 0);

    m->verdict = (stepgraph_verdict)STEPGRAPH_VERDICT_INIT;
    m->step = (stepgraph_step_stats)STEPGRAPH_STEP_STATS_INIT;
    m->pins = (stepgraph_pin_stats)STEPGRAPH_PIN_STATS_INIT;
    TRY(library(stepgraph_loop_get_verdict(loop, 0, &m->verdict)));
    TRY(library(stepgraph_step_get_stats(step, &m->step)));
    TRY(library(stepgraph_session_pin_stats(model->driver->session, &m->pins)));
    for (m->stage_count = 0; m->stage_count < sizeof m->stages / sizeof *m->stages; m->stage_count++) {
        m->stages[m->stage_count] = stage;
        if (stepgraph_step_get_stage(step, m->stage_count, &m->stages[m->stage_count]) != STEPGRAPH_OK)
            break;
    }
    return 0;
}

/* As recorded, or as a relaxed step needs it. */
static int draw(stepgraph_step *step, const char *path)
{
    stepgraph_step_stats stats = STEPGRAPH_STEP_STATS_INIT;

    TRY(library(stepgraph_step_get_stats(step, &stats)));
    return library(stepgraph_step_draw(step, stats.lanes > 0 ? STEPGRAPH_DRAW_NEEDED : STEPGRAPH_DRAW_DOT, path));
}

int story_pinned(struct model *model, stepgraph_loop *loop, struct findings *findings)
{
    struct state start;

    TRY(state_save(model, &start));
    int result = start_up(model, loop, findings);
    if (result == 0 && model->options->draw != NULL)
        result = draw(stepgraph_loop_step(loop, 0), model->options->draw);

    /* The loop has held replays against launches. Once more by hand, over more steps, for the story. */
    if (result == 0)
        result = state_load(model, &start);
    if (result == 0)
        result = prove(model, loop, &start, findings);
    if (result == 0)
        result = measure(model, loop, &findings->measured);
    if (result == 0)
        result = state_load(model, &start);
    state_free(&start);
    return result;
}
