/*
 * Decisions that several ranks take together.
 *
 * Where a step holds collectives, all ranks have to do it the same way: one that launches may wait forever for one that records.
 * So wherever what a rank has found decides how steps are done from there on, the worst that any of them has found decides
 * instead.
 */
#include "loop_p.h"

/* The question, so that ranks out of step are told apart, and the answer. */
#define QUESTION_SHIFT 32

stepgraph_status sg__loop_agree(stepgraph_loop *loop, sg__question question, uint32_t mine, uint32_t *worst)
{
    uint64_t given = (uint64_t)question << QUESTION_SHIFT | mine, largest = given;
    stepgraph_error_info words;
    stepgraph_status status;

    *worst = mine;
    if (loop->config.agree == NULL)
        return STEPGRAPH_OK;
    sg__error_get(&words); /* Of what was found: the callback may make calls of its own. */
    loop->calling = true;
    status = loop->config.agree(loop->config.user, loop->k, given, &largest);
    loop->calling = false;
    if (status != STEPGRAPH_OK)
        return sg__fail(status, "loop '%s': the ranks cannot agree on step %llu: the agree callback answered %s (%d)", loop->name,
                        (unsigned long long)loop->k, stepgraph_status_name(status), (int)status);
    if (largest < given)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT,
                        "loop '%s', step %llu: the agree callback made 0x%llx of this rank's 0x%llx; it has to give the largest "
                        "of all ranks'",
                        loop->name, (unsigned long long)loop->k, (unsigned long long)largest, (unsigned long long)given);
    if (largest >> QUESTION_SHIFT != (uint64_t)question)
        return sg__fail(STEPGRAPH_ERR_STATE,
                        "loop '%s', step %llu: the ranks are out of step, this one asks question %u and another one question "
                        "%llu; all of them have to begin the same steps with the same keys, flags and options",
                        loop->name, (unsigned long long)loop->k, (unsigned)question,
                        (unsigned long long)(largest >> QUESTION_SHIFT));
    *worst = (uint32_t)largest;
    (void)sg__error_set(&words);
    return STEPGRAPH_OK;
}
