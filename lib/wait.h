/* Waiting for work that may never come to an end. */
#ifndef STEPGRAPH_WAIT_H
#define STEPGRAPH_WAIT_H

#include "session_p.h"

/* Ask for an event until it has happened or the time is over. Nothing here waits inside the driver, which might never come back. */
stepgraph_status sg__wait_event(const stepgraph_session *session, CUevent event, uint64_t limit_ns, bool *late);

#endif
