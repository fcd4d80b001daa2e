/*
 * Introduces stepgraph_check_run(): the same steps launched one by one and replayed, compared bit for bit by the library, before
 * anything is trained by replay. The host gives three callbacks: hand over the inputs of a step, enqueue it, go back to before
 * it.
 *
 * The audit refutes; this is the proof. It sees what no argument shows: a batch that is not refreshed, an output that nobody
 * writes.
 */
#include "quickstart.h"

enum { CHECKED_STEPS = 3 };

/* What the callbacks are given. */
struct checked {
    struct model *model;
    const struct state *start;
    int status; /* The program's own, of a callback that failed. */
};

/* The library passes on what a callback answers; what to say was said. */
static stepgraph_status answer(struct checked *checked, int status)
{
    checked->status = status;
    return status == 0 ? STEPGRAPH_OK : STEPGRAPH_ERR_DRIVER;
}

//! [callbacks]
static stepgraph_status feed(void *user, stepgraph_step *step, uint64_t number)
{
    struct checked *checked = user;

    (void)step;
    return answer(checked, step_feed(checked->model, (int)number));
}

/* To be launched; or recorded, when the library looks for the node that goes wrong. */
static stepgraph_status enqueue(void *user, stepgraph_step *step, uint64_t number)
{
    struct checked *checked = user;
    bool recorded = stepgraph_step_state(step) == STEPGRAPH_STEP_CAPTURING;

    (void)number;
    if (recorded)
        cache_record(&checked->model->cache, true);
    int status = step_enqueue(checked->model, step);
    if (recorded)
        cache_record(&checked->model->cache, false);
    return answer(checked, status);
}

/* Pins are put back already. What has none is the host's. */
static stepgraph_status rewind_to(void *user, uint64_t number)
{
    struct checked *checked = user;

    return number == 0 ? answer(checked, state_load(checked->model, checked->start)) : STEPGRAPH_OK;
}
//! [callbacks]

//! [run]
int check_run(struct model *model, stepgraph_step *step, const struct state *start, const stepgraph_audit *audit,
              stepgraph_check **check_out)
{
    struct checked checked = {model, start, 0};
    stepgraph_check_config config = STEPGRAPH_CHECK_CONFIG_INIT;

    config.steps = CHECKED_STEPS;
    config.enqueue = enqueue;
    config.feed = feed;
    config.rewind = rewind_to;
    config.user = &checked;
    config.audit = audit;
    stepgraph_status status = stepgraph_check_run(step, &config, check_out);
    return checked.status != 0 ? checked.status : library(status);
}
//! [run]

//! [judge]
int check_judge(const stepgraph_check *check)
{
    stepgraph_check_summary summary = STEPGRAPH_CHECK_SUMMARY_INIT;
    stepgraph_check_pin first = STEPGRAPH_CHECK_PIN_INIT;

    TRY(library(stepgraph_check_get_summary(check, &summary)));
    if (summary.verdict == STEPGRAPH_IDENTICAL)
        return 0;
    TRY(library(stepgraph_check_get_pin(check, 0, &first)));
    return fail(EXIT_REFUSED, "not replayed, the check says %s: %s", stepgraph_check_verdict_name(summary.verdict),
                *summary.cause != 0 ? summary.cause : first.text);
}
//! [judge]
