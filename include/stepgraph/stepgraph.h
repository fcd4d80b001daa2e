/**
 * @file
 * libstepgraph: capture a training step once, replay it safely. Include this file only.
 *
 * Objects, from the outside in: a #stepgraph_session is opened once per device; a #stepgraph_pin is a named range of device memory with
 * a stable address; a #stepgraph_step is one stretch of work, recorded once and replayed many times; a #stepgraph_loop does all this for a
 * whole training run.
 *
 * A call that answers a status refuses a handle that is NULL; one that answers a value, such as stepgraph_pin_address(), is not given one, unless it says
 * otherwise. Destroying NULL does nothing.
 *
 * The context that is current in the calling thread is left as it was by every call.
 *
 * A callback, and what its `user` points to, live as long as the session or the loop that was given them; those given to a call that makes a report, until
 * it returns.
 *
 * A callback returns: an exception, a longjmp or a panic that leaves it skips what the library has to put back. Catch it there, and answer a status.
 *
 * Every call says three things about itself: `threads` (any: callable from every thread at once; handle: one thread at a time for a
 * session and all that belongs to it), `capture` (yes: may run while this thread records a step) and `waits` (never, stream or device).
 */
#ifndef STEPGRAPH_STEPGRAPH_H
#define STEPGRAPH_STEPGRAPH_H

#include "arena.h"
#include "audit.h"
#include "base.h"
#include "check.h"
#include "loop.h"
#include "pin.h"
#include "relax.h"
#include "session.h"
#include "step.h"
#include "tune.h"
#include "verify.h"

#endif
