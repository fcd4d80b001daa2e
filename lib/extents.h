/* Where the session's pins are, side by side: what the audit looks numbers up in, by the thousand. */
#ifndef STEPGRAPH_EXTENTS_H
#define STEPGRAPH_EXTENTS_H

#include "session_p.h"

/* Bring it up to the registry, if that has changed. */
stepgraph_status sg__extents_renew(stepgraph_session *session);

/* Index of the pin that holds address; n_pins: none does. The next one is mostly the neighbour of the last. */
size_t sg__extents_find(stepgraph_session *session, CUdeviceptr address);

#endif
