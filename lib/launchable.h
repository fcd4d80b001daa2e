/*
 * From a recorded graph to an executable: a new one, or that of an earlier recording, updated in place.
 *
 * An update costs a tenth of an instantiation and no memory. The driver refuses it where the nodes are not the same ones; the
 * executable is then made anew, after the old one was destroyed.
 */
#ifndef STEPGRAPH_LAUNCHABLE_H
#define STEPGRAPH_LAUNCHABLE_H

#include "step_p.h"

/* Device memory of an executable, as measured on an H200 with driver 580: not returned when it is destroyed, and used again. */
#define SG__NODE_BYTES 2600u

/* Make step->exec from step->graph, and send the lists of commits. The context is current. */
stepgraph_status sg__step_make_launchable(stepgraph_step *step);

/* So many more executables of the step as it was recorded. Those that were made are the caller's also after a failure; execs is all NULL
 * before. The context is current. */
stepgraph_status sg__step_executables(stepgraph_step *step, uint32_t n, CUgraphExec *execs);

/* So many more executables beside those that there are must fit into the budget; else "step 's' ", what, and how much is missing. */
stepgraph_status sg__step_check_room(const stepgraph_step *step, uint32_t more, const char *what);

/* What the live graph takes: device memory, estimated, and the library's host memory. */
uint64_t sg__step_device_bytes(const stepgraph_step *step);
uint64_t sg__step_host_bytes(const stepgraph_step *step);

/* The lists of the recording before are going to be overwritten: wait until they were copied to the device, where the next ones
 * follow in stream order. The context is current. */
stepgraph_status sg__step_lists_again(stepgraph_step *step);

#endif
