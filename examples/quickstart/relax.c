/*
 * Introduces relaxing (--relax): of the order in which a step was recorded, replays keep what its memory needs. What the library cannot know,
 * a trainer tells it: which arguments its kernels only read through, and where in a pin one buffer ends and the next one begins.
 */
#include "quickstart.h"

#include <string.h>

/* A letter for each argument: r is read through and nothing else, w is written through, - is no address. */
static const struct {
    const char *kernel, *arguments;
} uses[] = {
    {"one_hot", "rw--"},
    {"embed", "rrw--"},
    {"linear", "rrrw---"},
    {"silu", "rw-"},
    {"inverse_rms", "rw--"},
    {"normalize", "rrrw--"},
    {"add", "wr-"},
    {"softmax_loss", "rrww--"},
    {"mean", "rw-"},
    {"linear_dx", "rrw---"},
    {"linear_dw", "rrw---"},
    {"linear_db", "rw--"},
    {"silu_dz", "rrw-"},
    {"normalize_dgain", "rrrw--"},
    {"normalize_row", "rrrw--"},
    {"normalize_da", "rrrrrw--"},
    {"embed_dtable", "rrw---"},
    {"count_step", "w--"},
    {"adamw", "wwwrrrrrr----"},
    {"adamw_by_value", "wwwrrrr-r----"},
    {"retract", "rw---"},
    {"average", "wr--"},
};

enum { USES = sizeof uses / sizeof *uses };

/*! [config] */
stepgraph_relax_config relax_config(const struct options *options)
{
    static stepgraph_relax_kernel reads[USES * 9]; /* As long as the loop: it does not copy them. */
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;

    config.lanes = (uint32_t)options->lanes;
    config.reads = reads;
    for (size_t i = 0; i < USES; i++)
        for (uint32_t k = 0; uses[i].arguments[k] != 0; k++)
            if (uses[i].arguments[k] == 'r')
                reads[config.n_reads++] = (stepgraph_relax_kernel){uses[i].kernel, k, 0};
    return config;
}
/*! [config] */
