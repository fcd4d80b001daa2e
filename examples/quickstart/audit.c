/*
 * Introduces stepgraph_audit_compare(): what a graph would freeze, found before the first replay.
 *
 * A graph repeats the arguments that it was recorded with. So two consecutive steps are recorded, and whatever differs between
 * them is what a replay would get wrong: a pointer that moves, a scalar that changes. The second step is recorded once more,
 * since what differs even then is padding. Recording runs nothing.
 */
#include "quickstart.h"

//! [record]
/* One recording that nobody will replay. A single one may hold addresses without a pin: here it is seen whether they move. */
static int record(struct model *model, const char *name, int number, stepgraph_step **step_out)
{
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_status status;

    config.name = name;
    config.flags = STEPGRAPH_STEP_ALLOW_UNREGISTERED;
    TRY(library(stepgraph_step_begin(model->driver->session, &config, step_out)));
    TRY(step_feed(model, number));
    TRY(graph_record(model, *step_out, &status));
    return library(status);
}
//! [record]

//! [compare]
int audit_compare(struct model *model, int number, stepgraph_audit **audit_out)
{
    static const char *const names[] = {"one step", "the next", "the next again"};
    stepgraph_step *steps[3] = {NULL};
    int result = 0;

    for (int i = 0; i < 3 && result == 0; i++)
        result = record(model, names[i], number + (i > 0), &steps[i]);
    if (result == 0)
        result = library(stepgraph_audit_compare(steps[0], steps[1], steps[2], audit_out));
    for (int i = 0; i < 3; i++)
        stepgraph_step_destroy(steps[i]);
    return result;
}
//! [compare]

int audit_judge(const stepgraph_audit *audit)
{
    stepgraph_audit_summary summary = STEPGRAPH_AUDIT_SUMMARY_INIT;
    stepgraph_finding first = STEPGRAPH_FINDING_INIT;

    TRY(library(stepgraph_audit_get_summary(audit, &summary)));
    if (summary.faults == 0)
        return 0;
    TRY(library(stepgraph_audit_get(audit, 0, &first)));
    return fail(EXIT_REFUSED, "not replayed, consecutive steps differ in %llu place%s %s; %s", (unsigned long long)summary.faults,
                summary.faults == 1 ? ":" : "s, first:", first.text, first.advice);
}
