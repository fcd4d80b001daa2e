/*
 * Introduces stepgraph_loop: the trainer asks before each step what to do, and says after it that it is done. Which steps are
 * launched, recorded, compared, checked or replayed is the library's decision, and so is what to do where a replay would be
 * wrong.
 */
#include "quickstart.h"

#include <math.h>
#include <time.h>

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* The library passes on what a callback answers. What to say was said, so the program's own status is kept aside. */
static stepgraph_status answer(struct model *model, int status)
{
    model->callback_status = status;
    return status == 0 ? STEPGRAPH_OK : STEPGRAPH_ERR_DRIVER;
}

/* How the check before the first replay runs a step: it is the same for both. */
static stepgraph_status feed(void *user, stepgraph_step *step, uint64_t number)
{
    (void)step;
    return answer(user, step_feed(user, (int)number));
}

static stepgraph_status enqueue(void *user, stepgraph_step *step, uint64_t number)
{
    (void)number;
    return answer(user, step_enqueue(user, step));
}

int loop_create(struct model *model, stepgraph_loop **loop_out)
{
    const struct options *options = model->options;
    stepgraph_check_config check = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_relax_config relax = relax_config(options);

    check.feed = feed;
    check.enqueue = enqueue;
    check.user = model;
    config.name = "train";
    config.flags = STEPGRAPH_LOOP_RESTORE; /* The warm-up runs train nothing. */
    config.check = &check;
    if (options->relax) /* Once it is proven; and what comes of it is proven again. */
        config.relax = &relax;
    if (options->trace != NULL)
        config.flags |= STEPGRAPH_LOOP_TRACE;
    if (!options->break_feed) /* Refuses a replay whose batch was not fed; and that is to come as far as the check. */
        config.step_flags |= STEPGRAPH_STEP_STRICT_FEEDS;
    return library(stepgraph_loop_create(model->driver->session, &config, loop_out));
}

int loop_step(struct model *model, stepgraph_loop *loop, stepgraph_turn *turn, int number)
{
    do {
        stepgraph_status status = stepgraph_loop_begin(loop, (uint64_t)number, turn);
        if (status != STEPGRAPH_OK)
            return model->callback_status != 0 ? model->callback_status : library(status);
        if (turn->feed)
            TRY(step_feed(model, number));
        if (turn->run)
            TRY(step_enqueue(model, turn->step));
        TRY(library(stepgraph_loop_end(loop, turn)));
    } while (turn->again);
    return 0;
}

int loop_judge(const stepgraph_loop *loop, char *words, size_t bytes)
{
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;
    stepgraph_check_summary summary = STEPGRAPH_CHECK_SUMMARY_INIT;

    TRY(library(stepgraph_loop_get_stats(loop, &stats)));
    if (stats.rung <= STEPGRAPH_RUNG_REPLAY || stats.why == STEPGRAPH_WHY_CLOCK)
        return 0;
    if (stepgraph_check_get_summary(stepgraph_loop_check(loop, 0), &summary) == STEPGRAPH_OK &&
        summary.verdict != STEPGRAPH_IDENTICAL)
        snprintf(words, bytes, "not replayed, the check says %s: %s", stepgraph_check_verdict_name(summary.verdict), stats.words);
    else
        snprintf(words, bytes, "not replayed: %s", stats.words);

    switch (stats.why) {
    case STEPGRAPH_WHY_BROKEN:
    case STEPGRAPH_WHY_REPLAY:
    case STEPGRAPH_WHY_UPDATE:
        return fail(EXIT_STORY, "%s", words);
    case STEPGRAPH_WHY_MEMORY:
        return fail(EXIT_INPUT, "%s", words);
    default:
        return fail(EXIT_REFUSED, "%s", words);
    }
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The loss, averaged over about the last 20 steps. Reading it waits for the step. */
static int read_average(struct model *model, int number, float *loss_out)
{
    float smooth;

    TRY(library(stepgraph_pin_read(model->smooth.pin, &smooth, sizeof smooth)));
    *loss_out = smooth / (1 - powf(LOSS_KEEP, (float)number + 1));
    return 0;
}

int train(struct model *model, stepgraph_loop *loop, struct progress *progress_out)
{
    stepgraph_turn turn = STEPGRAPH_TURN_INIT;
    int steps = model->options->steps;
    int every = steps < 10 ? 1 : steps / 10;
    double start = now(), since = start;
    int printed = 0;

    for (int i = 0; i < steps; i++) {
        float loss;

        TRY(loop_step(model, loop, &turn, i));
        progress_out->replays += turn.kind == STEPGRAPH_TURN_REPLAY;
        if (i > 0 && i + 1 < steps && (i + 1) % every != 0)
            continue; /* Nobody waits for this step. */
        TRY(read_average(model, i, &loss));
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
