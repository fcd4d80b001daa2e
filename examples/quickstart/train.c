/*
 * Introduces training by replay: after the recording, a step is three feeds and one launch, whatever is in it.
 */
#include "quickstart.h"

#include <math.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The loss, averaged over about the last 20 steps. Reading it waits for the step. */
static int read_loss(struct model *model, int number, float *loss_out)
{
    float smooth;

    TRY(library(stepgraph_pin_read(model->smooth.pin, &smooth, sizeof smooth)));
    *loss_out = smooth / (1 - powf(LOSS_KEEP, (float)number + 1));
    return 0;
}

int train(struct model *model, stepgraph_step *step, struct progress *progress_out)
{
    int steps = model->options->steps;
    int every = steps < 10 ? 1 : steps / 10;
    double start = now(), since = start;
    int printed = 0;

    for (int i = 0; i < steps; i++) {
        float loss;

        TRY(graph_replay(model, step, i, NULL));
        if (i > 0 && i + 1 < steps && (i + 1) % every != 0)
            continue; /* Nobody waits for this step. */
        TRY(read_loss(model, i, &loss));
        if (i == 0)
            progress_out->first_loss = loss;
        progress_out->last_loss = loss;

        double time = now();
        printf("  step %6d   loss %7.4f   %8.1f steps/s\n", i + 1, (double)loss, (i + 1 - printed) / (time - since));
        fflush(stdout);
        printed = i + 1;
        since = time;
    }
    TRY(library(stepgraph_session_wait(model->driver->session)));
    progress_out->seconds = now() - start;
    return 0;
}
