#include "wait.h"

#include <time.h>

#include "clock.h"

static CUresult query(const stepgraph_session *session, CUevent event)
{
    CUstreamCaptureMode before = sg__relax(session);
    CUresult code = session->driver->EventQuery(event);

    sg__unrelax(session, before);
    return code;
}

stepgraph_status sg__wait_event(const stepgraph_session *session, CUevent event, uint64_t limit_ns, bool *late)
{
    uint64_t start = sg__clock_ns(), waited = 0, nap = 1000;
    CUresult code;

    *late = false;
    while ((code = query(session, event)) == CUDA_ERROR_NOT_READY && waited < limit_ns) {
        if (waited > 200000) {
            struct timespec t = {0, (long)nap};
            nanosleep(&t, NULL);
            nap = nap < 500000 ? 2 * nap : nap;
        }
        waited = sg__clock_ns() - start;
    }
    *late = code == CUDA_ERROR_NOT_READY;
    return code == CUDA_SUCCESS || *late ? STEPGRAPH_OK : sg__fail_driver(session->driver, "cuEventQuery", code);
}
