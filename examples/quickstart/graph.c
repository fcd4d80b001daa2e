/*
 * Introduces stepgraph_step: one training step run launch by launch, recorded, and replayed.
 */
#include "quickstart.h"

static int read_loss(struct model *model, float *loss_out)
{
    return loss_out == NULL ? 0 : library(stepgraph_pin_read(model->loss, loss_out, sizeof *loss_out));
}

int graph_run_fresh(struct model *model, stepgraph_step *step, stepgraph_run kind, int number, float *loss_out)
{
    TRY(step_feed(model, number));
    TRY(library(stepgraph_step_run_begin(step, kind)));
    int status = step_enqueue(model, step);
    TRY(library(stepgraph_step_run_end(step)));
    TRY(status);
    return read_loss(model, loss_out);
}

int graph_record(struct model *model, stepgraph_step *step, stepgraph_status *status_out)
{
    TRY(library(stepgraph_step_prepare(step)));
    if (model->options->break_feed) /* That copy runs while the step is recorded: not under the steps before. */
        TRY(library(stepgraph_session_wait(model->driver->session)));
    TRY(library(stepgraph_step_capture(step)));

    /* The graph goes on using the blocks that it is recorded with, so they come from a pool of its own. */
    cache_record(&model->cache, true);
    int status = step_enqueue(model, step);
    cache_record(&model->cache, false);

    /* Whatever happened, this ends the recording; and it looks at what was recorded. */
    *status_out = stepgraph_step_end(step);
    return *status_out != STEPGRAPH_OK ? 0 : status;
}

int graph_replay(struct model *model, stepgraph_step *step, int number, float *loss_out)
{
    TRY(step_feed(model, number));
    TRY(library(stepgraph_step_replay(step)));
    return read_loss(model, loss_out);
}
