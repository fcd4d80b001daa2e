/* The convenience form of a comparison: the host's callback enqueues the steps. */
#include <stdio.h>

#include "audit_p.h"
#include "structs.h"

/* Record one step through the host's callback. */
static stepgraph_status record(stepgraph_session *session, const stepgraph_audit_config *config, uint64_t k, stepgraph_step **step_out)
{
    stepgraph_step_config step_config = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_status status, ended;
    stepgraph_error_info why;
    char name[64];

    snprintf(name, sizeof name, "step %llu", (unsigned long long)k);
    step_config.name = name;
    step_config.flags = config->flags | STEPGRAPH_STEP_ALLOW_UNREGISTERED;
    status = stepgraph_step_begin(session, &step_config, step_out);
    if (status == STEPGRAPH_OK)
        status = stepgraph_step_prepare(*step_out);
    if (status == STEPGRAPH_OK)
        status = stepgraph_step_capture(*step_out);
    if (status != STEPGRAPH_OK)
        return status;
    sg__error_clear();
    status = config->enqueue(config->user, *step_out, k);
    sg__error_get(&why);
    ended = stepgraph_step_end(*step_out);
    if (status == STEPGRAPH_OK || ended == STEPGRAPH_ERR_CAPTURE)
        return ended; /* A recording that broke says more than the callback, which was told so. */
    /* Its own words, if it failed in a call of this library. */
    if (why.status != status)
        return sg__fail(status, "the host's enqueue callback failed for step %llu with %s", (unsigned long long)k, stepgraph_status_name(status));
    (void)sg__error_set(&why);
    return sg__fail_prefix(status, "the host's enqueue callback failed for step %llu: ", (unsigned long long)k);
}

/* In this order nothing that only the time tells looks like the step: what changes once, at some time, each time, or by turns. */
static const size_t order[] = {0, 1, 1, 0, 1, 0, 0, 1, 1, 0};

enum { MOST_RECORDINGS = sizeof order / sizeof *order, FIRST_RECORDINGS = 4 };

/* The recordings from first on, up to n; those of k before those of k + 1. */
static stepgraph_status record_some(stepgraph_session *session, const stepgraph_audit_config *config, size_t first, size_t n,
                                    stepgraph_step *steps[2][MOST_RECORDINGS / 2])
{
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t i = first; i < n && status == STEPGRAPH_OK; i++)
        status = record(session, config, config->first + order[i], &steps[order[i]][i / 2]);
    return status;
}

/* Two of each, and three more if these leave a doubt. */
static stepgraph_status record_and_compare(stepgraph_session *session, const stepgraph_audit_config *config,
                                           stepgraph_step *steps[2][MOST_RECORDINGS / 2], stepgraph_audit **audit_out)
{
    stepgraph_status status = record_some(session, config, 0, FIRST_RECORDINGS, steps);
    stepgraph_audit *audit = NULL;

    if (status == STEPGRAPH_OK)
        status = stepgraph_audit_compare_many(FIRST_RECORDINGS / 2, steps[0], FIRST_RECORDINGS / 2, steps[1], &audit);
    if (status == STEPGRAPH_OK && audit->summary.doubtful > 0) {
        stepgraph_audit_destroy(audit);
        status = record_some(session, config, FIRST_RECORDINGS, MOST_RECORDINGS, steps);
        if (status == STEPGRAPH_OK)
            status = stepgraph_audit_compare_many(MOST_RECORDINGS / 2, steps[0], MOST_RECORDINGS / 2, steps[1], &audit);
    }
    if (status == STEPGRAPH_OK)
        *audit_out = audit;
    return status;
}

stepgraph_status stepgraph_audit_record(stepgraph_session *session, const stepgraph_audit_config *given, stepgraph_audit **audit_out)
{
    stepgraph_step *steps[2][MOST_RECORDINGS / 2] = {{NULL}};
    stepgraph_audit_config config;
    stepgraph_error_info why;
    stepgraph_status status;

    sg__error_clear();
    if (session == NULL || given == NULL || audit_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing can be recorded: session, config or audit_out is NULL");
    status = sg__struct_read(&config, sizeof config, sizeof config, given, "stepgraph_audit_config");
    if (status != STEPGRAPH_OK)
        return status;
    if (config.enqueue == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing can be recorded: the enqueue callback is NULL");
    if (config.reserved != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing can be recorded: the reserved field of stepgraph_audit_config is not 0");
    status = record_and_compare(session, &config, steps, audit_out);
    sg__error_get(&why);
    for (size_t i = 0; i < MOST_RECORDINGS; i++)
        stepgraph_step_destroy(steps[i % 2][i / 2]);
    (void)sg__error_set(&why);
    return status;
}
