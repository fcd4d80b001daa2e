/* What turns run that is not to stay: images of the pins, and putting them back. */
#include <stdlib.h>

#include "check_p.h"
#include "loop_p.h"

/* ---- images ------------------------------------------------------------------------------------------------------ */

typedef struct wanted {
    sg__inputs inputs;
    const stepgraph_step *step;
} wanted;

static bool is_wanted(const stepgraph_pin *pin, const void *user)
{
    const wanted *what = user;

    if (pin->role != STEPGRAPH_ROLE_FEED && pin->role != STEPGRAPH_ROLE_CELL)
        return true;
    return what->inputs == SG__INPUTS_USED ? sg__step_uses(what->step, pin) : !pin->adopted;
}

/* With the context current. */
static stepgraph_status make_images(stepgraph_loop *loop, unsigned int n, const wanted *what)
{
    const unsigned int groups = what->inputs == SG__INPUTS_NONE ? SG__WRITTEN : SG__ALL;
    unsigned int *images[] = {&loop->before, &loop->after};
    uint64_t device = loop->config.snapshot_bytes, host = 0;
    stepgraph_status status = sg__snapshot_limits(loop->session, &device, &host);

    loop->has_images = true;
    if (status == STEPGRAPH_OK)
        status = sg__shots_make(&loop->shots, loop->session, groups, is_wanted, what, n + 1, device, host);
    for (unsigned int i = 0; i < n && status == STEPGRAPH_OK; i++)
        if (!sg__shot_add(&loop->shots, images[i]))
            status =
                sg__fail(STEPGRAPH_ERR_MEMORY,
                         "%u copies of all STATE and OUTPUT pins%s take %llu bytes each, and %llu bytes of device memory and %llu "
                         "of page-locked host memory may be used",
                         n, groups == SG__ALL ? ", and of what is fed," : "", (unsigned long long)loop->shots.bytes, (unsigned long long)device, (unsigned long long)host);
    return status;
}

void sg__loop_forget(stepgraph_loop *loop)
{
    if (loop->has_images)
        sg__shots_free(&loop->shots);
    free(loop->deviations);
    loop->deviations = NULL;
    loop->has_images = loop->inputs_changed = false;
    sg__constants_free(&loop->constants);
    sg__guards_forget(loop);
}

stepgraph_status sg__loop_save(stepgraph_loop *loop, unsigned int n, sg__inputs inputs, const stepgraph_step *step)
{
    const wanted what = {inputs, step};
    stepgraph_status status = sg__enter(loop->session);

    if (status != STEPGRAPH_OK)
        return status;
    sg__loop_forget(loop);
    status = make_images(loop, n, &what);
    /* The host's launches may go to other streams, those of this step and those before. */
    if (status == STEPGRAPH_OK)
        status = sg__session_wait_all(loop->session);
    if (status == STEPGRAPH_OK)
        status = sg__shot_save(&loop->shots, loop->before);
    if (status == STEPGRAPH_OK)
        status = sg__session_wait(loop->session);
    if (status != STEPGRAPH_OK)
        sg__loop_forget(loop);
    sg__leave(loop->session);
    return status;
}

/* Before a rehearsal's work is undone: it is to have left inputs that were there already as they were, since nobody could put those back that are fed
 * after it has begun. */
static stepgraph_status look_for_written_inputs(stepgraph_loop *loop)
{
    stepgraph_status status = sg__shot_compare(&loop->shots, loop->before, SG__GROUP_INPUT, SG__FILL_A, SG__FILL_A);

    if (status == STEPGRAPH_OK)
        status = sg__session_wait(loop->session);
    if (status != STEPGRAPH_OK || sg__shots_found(&loop->shots, SG__GROUP_INPUT) == 0)
        return status;
    for (size_t i = 0; i < loop->shots.n_items; i++)
        if (loop->shots.items[i].bytes > 0)
            return sg__fail(STEPGRAPH_ERR_REFUSED,
                            "loop '%s': step %llu writes pin '%s', whose role, %s, says that only the host does, so warm-up runs cannot be undone: make it "
                            "a STATE, or leave STEPGRAPH_LOOP_RESTORE out",
                            loop->name, (unsigned long long)loop->k, loop->shots.items[i].pin->name, sg__role_name(loop->shots.items[i].pin->role));
    return STEPGRAPH_OK;
}

/* What may have been written is as it was before, also by what the host has launched on streams that nobody knows. */
static stepgraph_status put_back(stepgraph_loop *loop)
{
    stepgraph_status status = sg__session_wait_all(loop->session);

    if (status == STEPGRAPH_OK)
        status = sg__shot_restore(&loop->shots, loop->before, SG__WRITTEN);
    return status == STEPGRAPH_OK ? sg__session_wait(loop->session) : status;
}

stepgraph_status sg__loop_not_undone(const stepgraph_loop *loop, stepgraph_status status)
{
    return sg__fail_prefix(status, "loop '%s', step %llu: what has run could not be put back, so go back to a checkpoint: ",
                           loop->name, (unsigned long long)loop->k);
}

static bool worth_another_try(stepgraph_status status)
{
    return status != STEPGRAPH_OK && status != STEPGRAPH_ERR_LOST;
}

/* Once more, where it fails: otherwise the step would be done twice for a call that fails once. */
static stepgraph_status put_back_surely(stepgraph_loop *loop)
{
    stepgraph_status status = put_back(loop);

    return worth_another_try(status) ? put_back(loop) : status;
}

static stepgraph_status enter_surely(stepgraph_loop *loop)
{
    stepgraph_status status = sg__enter(loop->session);

    return worth_another_try(status) ? sg__enter(loop->session) : status;
}

stepgraph_status sg__loop_unrehearse(stepgraph_loop *loop, bool fed)
{
    stepgraph_status status = enter_surely(loop), back;

    if (status != STEPGRAPH_OK)
        return sg__loop_not_undone(loop, status);
    status = fed ? STEPGRAPH_OK : look_for_written_inputs(loop);
    back = put_back_surely(loop);
    sg__loop_forget(loop);
    sg__leave(loop->session);
    return back != STEPGRAPH_OK ? sg__loop_not_undone(loop, back) : status;
}

stepgraph_status sg__loop_undo(stepgraph_loop *loop)
{
    stepgraph_status status;

    if (!loop->has_images)
        return STEPGRAPH_OK;
    status = enter_surely(loop);
    if (status != STEPGRAPH_OK)
        return sg__loop_not_undone(loop, status);
    status = put_back_surely(loop);
    sg__loop_forget(loop);
    sg__leave(loop->session);
    return status == STEPGRAPH_OK ? status : sg__loop_not_undone(loop, status);
}
