/* What a difference between a replay and the host's launches is worth: pin by pin, beside how far replays differ from each other. */
#include <math.h>
#include <stdlib.h>

#include "check_p.h"
#include "kernels/elements.h"
#include "loop_p.h"

/* How far those are apart that differ by the last comparison with an image. */
static stepgraph_status measure(stepgraph_loop *loop, unsigned int image)
{
    stepgraph_status status = sg__shot_measure(&loop->shots, image, SG__FILL_A, SG__FILL_A);

    if (status == STEPGRAPH_OK)
        status = sg__session_wait(loop->session);
    if (status == STEPGRAPH_OK)
        status = sg__shots_distances(&loop->shots, image);
    return status == STEPGRAPH_OK ? sg__session_wait(loop->session) : status;
}

stepgraph_status sg__noise_begin(stepgraph_loop *loop)
{
    const sg__shots *shots = &loop->shots;
    stepgraph_status status = measure(loop, loop->after);

    if (status != STEPGRAPH_OK)
        return status;
    loop->deviations = calloc(shots->n_items + 1, sizeof *loop->deviations);
    if (loop->deviations == NULL)
        return sg__fail_memory("host", (shots->n_items + 1) * sizeof *loop->deviations);
    for (size_t i = 0; i < shots->n_items; i++) {
        const sg__shot_item *item = &shots->items[i];
        if (item->bytes > 0)
            loop->deviations[i] = (sg__deviation){.bytes = item->bytes,
                                                  .first = item->first,
                                                  .largest = sg__double_of_bits(item->distance.largest),
                                                  .norm = sqrt(item->distance.squares)};
    }
    return STEPGRAPH_OK;
}

stepgraph_status sg__noise_add(stepgraph_loop *loop, unsigned int image)
{
    const sg__shots *shots = &loop->shots;
    stepgraph_status status = measure(loop, image);

    for (size_t i = 0; i < shots->n_items && status == STEPGRAPH_OK; i++) {
        const sg__shot_item *item = &shots->items[i];
        sg__deviation *deviation = &loop->deviations[i];
        if (item->bytes == 0)
            continue;
        deviation->varies = true;
        deviation->spread = fmax(deviation->spread, sg__double_of_bits(item->distance.largest));
        deviation->spread_norm = fmax(deviation->spread_norm, sqrt(item->distance.squares));
    }
    return status;
}

/* Without a type there are no values to measure. */
static bool is_beyond(const sg__deviation *deviation, const stepgraph_pin *pin)
{
    return pin->type != STEPGRAPH_TYPE_BYTES &&
           (deviation->largest > SG__FAR * deviation->spread || deviation->norm > SG__FAR * deviation->spread_norm);
}

size_t sg__noise_of_graph(const stepgraph_loop *loop)
{
    for (size_t i = 0; i < loop->shots.n_items; i++) {
        const sg__deviation *deviation = &loop->deviations[i];
        if (deviation->bytes > 0 && (!deviation->varies || is_beyond(deviation, loop->shots.items[i].pin)))
            return i;
    }
    return SIZE_MAX;
}

size_t sg__noise_written_input(const stepgraph_loop *loop)
{
    for (size_t i = 0; i < loop->shots.n_items; i++)
        if (loop->shots.items[i].group == SG__GROUP_INPUT && loop->deviations[i].bytes > 0)
            return i;
    return SIZE_MAX;
}
