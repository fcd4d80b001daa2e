/*
 * Introduces the order of things: open a session, make pins, make a loop, train on it. And how errors are told.
 */
#include "quickstart.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

int fail(int status, const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fputs("quickstart: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return status;
}

int library(stepgraph_status status)
{
    stepgraph_error_info error = STEPGRAPH_ERROR_INFO_INIT;

    if (status == STEPGRAPH_OK)
        return 0;
    stepgraph_last_error(&error);
    fail(0, "%s", *error.message != 0 ? error.message : stepgraph_status_name(status));

    switch (status) {
    case STEPGRAPH_ERR_REFUSED:
        return EXIT_REFUSED;
    case STEPGRAPH_ERR_NO_DRIVER:
    case STEPGRAPH_ERR_OLD_DRIVER:
    case STEPGRAPH_ERR_MEMORY:
    case STEPGRAPH_ERR_UNSUPPORTED:
        return EXIT_INPUT;
    default:
        return EXIT_STORY;
    }
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static int tell(struct model *model, stepgraph_loop *loop, struct findings *findings)
{
    const struct options *options = model->options;

    if (!options->break_pin && !options->break_scalar && !options->break_feed && !options->break_output) {
        TRY(story_unpinned(model, findings));
        report_unpinned(model, findings);
    }

    TRY(model_pin(model, options->break_pin ? model->layers[0].weight->part[VALUE].name : NULL));
    TRY(story_pinned(model, loop, findings));
    report_pinned(findings);
    report_measured(model->driver, &findings->measured);

    printf("Training: %d steps on the loop\n", options->steps);
    TRY(train(model, loop, &findings->progress));
    printf("  %.2f s, %d of %d steps by replay; loss %.4f -> %.4f\n", findings->progress.seconds, findings->progress.replays,
           options->steps, (double)findings->progress.first_loss, (double)findings->progress.last_loss);

    if (findings->unpinned.identical)
        return fail(EXIT_STORY, "the graph without pins gave the right result; it should not have");
    if (!findings->pinned.identical)
        return fail(EXIT_STORY, "the graph with pins gave another result than the launches");
    return 0;
}

static int write_trace(stepgraph_loop *loop, FILE *trace)
{
    const char *text = NULL;

    TRY(library(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text)));
    fputs(text, trace);
    return 0;
}

static int run(const struct options *options, const struct text *text, FILE *json, FILE *trace)
{
    struct driver driver = {0};
    struct model model = {0};
    struct findings findings = {0};
    stepgraph_loop *loop = NULL;

    int status = driver_open(&driver, options->driver);
    if (status == 0)
        status = model_create(&model, options, text, &driver);
    if (status == 0) {
        report_start(&model);
        status = loop_create(&model, &loop);
    }
    if (status == 0)
        status = tell(&model, loop, &findings);
    if (status == 0 && trace != NULL)
        status = write_trace(loop, trace);

    if (json != NULL && status == EXIT_REFUSED)
        report_refusal_json(json, &model, loop, findings.refusal);
    else if (json != NULL && findings.progress.seconds > 0)
        report_json(json, &model, loop, &findings);

    /* In reverse: what was recorded, what it was recorded over, the session. */
    stepgraph_loop_destroy(loop);
    int destroyed = model_destroy(&model), closed = driver_close(&driver);
    return status != 0 ? status : destroyed != 0 ? destroyed : closed;
}

/* Made, or emptied, and open; NULL if `path` is NULL. */
static int create(const char *option, const char *path, FILE **file_out)
{
    *file_out = NULL;
    if (path == NULL)
        return 0;
    *file_out = fopen(path, "w");
    if (*file_out == NULL)
        return fail(EXIT_INPUT, "cannot write '%s': %s; give another file with %s", path, strerror(errno), option);
    return 0;
}

int main(int argc, char **argv)
{
    struct options options;
    struct text text = {0};
    FILE *json = NULL, *draw = NULL, *trace = NULL;

    int status = options_read(&options, argc, argv);
    if (status != 0)
        return status;
    if (options.help) {
        options_help();
        return 0;
    }

    status = text_load(&text, &options);
    if (status == 0)
        status = create("--json", options.json, &json);
    if (status == 0)
        status = create("--draw", options.draw, &draw);
    if (draw != NULL)
        fclose(draw); /* The library writes it: this only asked whether it can. */
    if (status == 0)
        status = create("--trace", options.trace, &trace);
    if (status == 0)
        status = run(&options, &text, json, trace);
    if (json != NULL && fclose(json) != 0 && status == 0)
        status = fail(EXIT_INPUT, "cannot write '%s': %s", options.json, strerror(errno));
    if (trace != NULL && fclose(trace) != 0 && status == 0)
        status = fail(EXIT_INPUT, "cannot write '%s': %s", options.trace, strerror(errno));
    text_free(&text);
    return status;
}
