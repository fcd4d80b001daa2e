/*
 * Sets as kernels. A memset node makes each launch of its graph cost the host more: a hundred in a thousand nodes, most of a millisecond.
 * A kernel that writes the same bytes in the same place of the order does not, so that is what is launched. Rewriting costs 1.5 us a node, which
 * a recording that is launched once does not bring back.
 */
#ifndef STEPGRAPH_SETS_H
#define STEPGRAPH_SETS_H

#include "graph/rewrite.h"
#include "step_p.h"

/* Rewrite the step's graph, unless it holds no set, is recorded again for each launch, or is to be launched as it was recorded; out->graph is then NULL. What cannot be done is
 * left as it was recorded, and said. To be closed. The context is current. */
void sg__sets_rewrite(stepgraph_step *step, sg__rewrite *out);

/* Once more, as it was done for the step's executable: a clone also where no set was replaced. */
stepgraph_status sg__sets_rewrite_again(const stepgraph_step *step, sg__rewrite *out);

#endif
