/* What the arms of a check mean, pin by pin. */
#include <stdio.h>

#include "check_p.h"

/* Units of the last place that no reordering of a sum explains in a pin that was the same in six fresh runs. */
#define FAR_ULPS 32u

static bool same(const sg__outcome *a, const sg__outcome *b)
{
    return a->step == b->step && a->bytes == b->bytes && a->first == b->first && a->replay_bits == b->replay_bits &&
           a->distance.elements == b->distance.elements && a->distance.ulps == b->distance.ulps;
}

static bool far_apart(const sg__shot_item *item, const sg__outcome *outcome)
{
    return item->pin->type != STEPGRAPH_TYPE_BYTES && outcome->distance.ulps > FAR_ULPS;
}

/* A pin that was the same in all fresh runs. In a step that is not deterministic that may have been luck. */
static void judge_steady(const sg__check *check, const sg__shot_item *item, sg__record *record)
{
    const sg__outcome *waited = &record->arms[SG__ARM_WAITED], *queued = &record->arms[SG__ARM_QUEUED], *late = &record->arms[SG__ARM_LATE];

    if (waited->step != SG__NO_STEP) {
        record->facts |= STEPGRAPH_CHECK_DIFFERS;
        record->fault = !check->unsteady || far_apart(item, waited) ||
                        (same(waited, &record->arms[SG__ARM_AGAIN]) && same(waited, &record->arms[SG__ARM_AGAIN_2]));
    } else if (queued->step != SG__NO_STEP || late->step != SG__NO_STEP) {
        record->facts |= STEPGRAPH_CHECK_DIFFERS;
        record->fault = !check->unsteady || far_apart(item, queued->step != SG__NO_STEP ? queued : late);
        record->facts |= record->fault ? STEPGRAPH_CHECK_ORDER : 0;
    }
    if ((record->facts & STEPGRAPH_CHECK_DIFFERS) != 0 && !record->fault)
        record->facts |= STEPGRAPH_CHECK_UNSTEADY;
}

/* One in which fresh runs differ. */
static void judge_unsteady(const sg__shot_item *item, sg__record *record)
{
    const sg__outcome *waited = &record->arms[SG__ARM_WAITED], *queued = &record->arms[SG__ARM_QUEUED], *late = &record->arms[SG__ARM_LATE];

    if (item->group == SG__GROUP_INPUT)
        record->facts |= STEPGRAPH_CHECK_UNREPEATED;
    if (waited->step != SG__NO_STEP)
        record->facts |= STEPGRAPH_CHECK_DIFFERS;
    if (record->filled_alike) {
        /* With the same filling it is steady, and only replays with that filling can be judged. */
        record->facts |= STEPGRAPH_CHECK_OLD_VALUES;
        record->fault = waited->step != SG__NO_STEP;
        return;
    }
    if (waited->beyond && waited->step != SG__NO_STEP) {
        record->facts |= STEPGRAPH_CHECK_BEYOND;
        record->fault = true;
    } else if ((queued->beyond && queued->step != SG__NO_STEP) || (late->beyond && late->step != SG__NO_STEP)) {
        record->facts |= STEPGRAPH_CHECK_DIFFERS | STEPGRAPH_CHECK_BEYOND | STEPGRAPH_CHECK_ORDER;
        record->fault = true;
    }
}

/* An output that neither the replays nor the launches wrote, and that belongs to no other step. */
static bool unwritten(const sg__check *check, const sg__shot_item *item, const sg__record *record)
{
    if (item->group != SG__GROUP_OUTPUT || record->kept != (1u << SG__ARM_WAITED | 1u << SG__ARM_QUEUED))
        return false;
    for (const stepgraph_step *step = check->session->steps; step != NULL; step = step->next)
        if (step != check->step && sg__step_uses(step, item->pin))
            return false;
    return true;
}

void sg__check_judge(sg__check *check)
{
    if (check->hung || check->failed)
        return;
    for (size_t j = 0; j < check->shots.n_items; j++) {
        const sg__shot_item *item = &check->shots.items[j];
        sg__record *record = &check->records[j];

        if ((record->facts & STEPGRAPH_CHECK_UNSTEADY) == 0)
            judge_steady(check, item, record);
        else
            judge_unsteady(item, record);
        if (unwritten(check, item, record))
            record->facts |= STEPGRAPH_CHECK_UNWRITTEN;
    }
}
