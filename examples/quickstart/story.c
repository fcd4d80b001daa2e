/*
 * Introduces what this library is for: the same steps, launched one by one and replayed from a graph, compared bit for bit. First
 * over parameters that move, then over pinned ones, after a look at what a graph would freeze.
 */
#include "quickstart.h"

#include <stdlib.h>

enum {
    WARMUP_STEPS = 3,
    UNPINNED_STEPS = 4 /* One replay would be right, whatever is wrong with the graph: what has moved is missed by the second. */
};

static int begin(struct model *model, const char *name, uint32_t flags, stepgraph_step **step_out)
{
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;

    config.name = name;
    config.flags = flags;
    return library(stepgraph_step_begin(model->driver->session, &config, step_out));
}

/* Steps 0 to n - 1, launch by launch or by replay. The state is kept in `after_out`. */
static int run_fresh(struct model *model, stepgraph_step *step, int n, float *losses, struct state *after_out)
{
    for (int i = 0; i < n; i++)
        TRY(graph_run_fresh(model, step, STEPGRAPH_RUN_FRESH, i, &losses[i]));
    return state_save(model, after_out);
}

static int run_replays(struct model *model, stepgraph_step *step, int n, float *losses, struct state *after_out)
{
    for (int i = 0; i < n; i++)
        TRY(graph_replay(model, step, i, &losses[i]));
    return state_save(model, after_out);
}

/* ---- without pins ------------------------------------------------------------------------------------------------ */

/* By default the library does not let such a graph pass. */
static int be_refused(struct model *model, struct findings *findings)
{
    stepgraph_error_info error = STEPGRAPH_ERROR_INFO_INIT;
    stepgraph_step *step = NULL;
    stepgraph_status status;

    TRY(begin(model, "unpinned", 0, &step));
    int result = graph_run_fresh(model, step, STEPGRAPH_RUN_WARMUP, 0, NULL);
    if (result == 0)
        result = graph_record(model, step, &status);
    if (result == 0 && status != STEPGRAPH_ERR_REFUSED) {
        result = library(status);
        if (result == 0)
            result = fail(EXIT_STORY, "the library let a graph pass that was recorded over parameters without pins");
    } else if (result == 0) {
        stepgraph_step_error(step, &error);
        snprintf(findings->refusal, sizeof findings->refusal, "%s", error.message);
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
    struct state fresh = {0}, replay = {0};
    stepgraph_status status;

    int result = run_fresh(model, step, UNPINNED_STEPS, fresh_losses, &fresh);
    if (result == 0)
        result = state_load(model, start);
    for (int i = 0; i < model->parameter_count; i++)
        recorded[i] = model->parameters[i].part[VALUE].address;
    if (result == 0)
        result = graph_record(model, step, &status);
    if (result == 0)
        result = library(status);
    if (result == 0)
        result = run_replays(model, step, UNPINNED_STEPS, replay_losses, &replay);
    if (result == 0) {
        findings->moved = count_moved(model, recorded);
        state_compare(model, &fresh, &replay, fresh_losses, replay_losses, UNPINNED_STEPS, &findings->unpinned);
    }
    state_free(&replay);
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

static int prove(struct model *model, stepgraph_step *step, const struct state *start, struct findings *findings)
{
    int n = model->options->check;
    float *losses = calloc(2 * (size_t)n, sizeof *losses);
    struct state fresh = {0}, replay = {0};

    if (losses == NULL)
        return fail(EXIT_INPUT, "out of host memory: the losses of %d steps; make --check smaller", n);
    int result = run_fresh(model, step, n, losses, &fresh);
    if (result == 0)
        result = state_load(model, start);
    if (result == 0)
        result = run_replays(model, step, n, losses + n, &replay);
    if (result == 0)
        state_compare(model, &fresh, &replay, losses, losses + n, n, &findings->pinned);
    state_free(&replay);
    state_free(&fresh);
    free(losses);
    return result;
}

/* Read what the library measured on the way. */
static int measure(struct model *model, stepgraph_step *step, struct measured *m)
{
    const stepgraph_stage stage = STEPGRAPH_STAGE_INIT;

    m->verdict = (stepgraph_verdict)STEPGRAPH_VERDICT_INIT;
    m->step = (stepgraph_step_stats)STEPGRAPH_STEP_STATS_INIT;
    m->pins = (stepgraph_pin_stats)STEPGRAPH_PIN_STATS_INIT;
    TRY(library(stepgraph_step_get_verdict(step, &m->verdict)));
    TRY(library(stepgraph_step_get_stats(step, &m->step)));
    TRY(library(stepgraph_session_pin_stats(model->driver->session, &m->pins)));
    for (m->stage_count = 0; m->stage_count < sizeof m->stages / sizeof *m->stages; m->stage_count++) {
        m->stages[m->stage_count] = stage;
        if (stepgraph_step_get_stage(step, m->stage_count, &m->stages[m->stage_count]) != STEPGRAPH_OK)
            break;
    }
    return 0;
}

int story_pinned(struct model *model, stepgraph_step *step, struct findings *findings)
{
    struct state start;
    stepgraph_status status;

    TRY(state_save(model, &start));
    int result = 0;
    for (int i = 0; i < WARMUP_STEPS && result == 0; i++)
        result = graph_run_fresh(model, step, STEPGRAPH_RUN_WARMUP, i, NULL);
    if (result == 0 && !model->options->no_audit)
        result = audit_compare(model, 0, &findings->audit);
    if (result == 0 && findings->audit != NULL)
        report_audit(findings->audit);
    if (result == 0)
        result = state_load(model, &start);

    /* What one recording shows, the library refuses here by itself. What only two show, the host refuses. */
    if (result == 0)
        result = graph_record(model, step, &status);
    if (result == 0)
        result = library(status);
    if (result == 0 && findings->audit != NULL)
        result = audit_judge(findings->audit);
    if (result == 0 && model->options->draw != NULL)
        result = library(stepgraph_step_draw(step, STEPGRAPH_DRAW_DOT, model->options->draw));

    /* Before the graph is trusted, it is held against the launches. */
    if (result == 0)
        result = state_load(model, &start);
    if (result == 0)
        result = check_run(model, step, &start, findings->audit, &findings->check);
    if (result == 0) {
        report_check(findings->check);
        result = check_judge(findings->check);
    }

    /* And once more by hand, over more steps, for the story. */
    if (result == 0)
        result = state_load(model, &start);
    if (result == 0)
        result = prove(model, step, &start, findings);
    if (result == 0)
        result = measure(model, step, &findings->measured);
    if (result == 0)
        result = state_load(model, &start);
    state_free(&start);
    return result;
}
