/* What a host knows about the arguments of kernels: bytes that none reads. */
#include <stdlib.h>
#include <string.h>

#include <stepgraph/audit.h>

#include "session_p.h"

void sg__unreads_free(sg__unreads *unread)
{
    for (size_t i = 0; i < unread->n; i++)
        free(unread->items[i].pattern);
    free(unread->items);
    *unread = (sg__unreads){0};
}

static stepgraph_status check(const stepgraph_unread *given, uint32_t i)
{
    if (given->pattern == NULL || given->pattern[0] == '\0')
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "number %u of the unread bytes has no pattern of kernels", i);
    if (given->reserved[0] != 0 || given->reserved[1] != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "number %u of the unread bytes, of '%.100s': the reserved field is not 0", i, given->pattern);
    if (given->argument_bytes == 0 || given->argument_bytes > SG__MASKED_MOST)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "number %u of the unread bytes, of '%.100s', is about arguments of %u bytes: 1 to %u are possible", i,
                        given->pattern, given->argument_bytes, SG__MASKED_MOST);
    if (given->bytes == 0 || given->offset >= given->argument_bytes || given->bytes > given->argument_bytes - given->offset)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "number %u of the unread bytes, of '%.100s': %u bytes at %u do not lie in an argument of %u", i, given->pattern,
                        given->bytes, given->offset, given->argument_bytes);
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_session_set_unread(stepgraph_session *session, const stepgraph_unread *given, uint32_t n)
{
    stepgraph_status status = STEPGRAPH_OK;
    sg__unreads made = {0};

    sg__error_clear();
    if (session == NULL || (given == NULL && n > 0))
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no unread bytes can be set: %s is NULL", session == NULL ? "the session" : "the pointer to them");
    for (uint32_t i = 0; i < n && status == STEPGRAPH_OK; i++)
        status = check(&given[i], i);
    if (status != STEPGRAPH_OK)
        return status;
    made.items = calloc((size_t)n + 1, sizeof *made.items);
    if (made.items == NULL)
        return sg__fail_memory("host", n * sizeof *made.items);
    for (; made.n < n; made.n++) {
        const stepgraph_unread *from = &given[made.n];
        char *pattern = strdup(from->pattern);
        if (pattern == NULL) {
            sg__unreads_free(&made);
            return sg__fail_memory("host", strlen(from->pattern) + 1);
        }
        made.items[made.n] = (sg__unread){pattern, from->argument, from->argument_bytes, from->offset, from->bytes};
    }
    sg__unreads_free(&session->known_kernels.unread);
    session->known_kernels.unread = made;
    return STEPGRAPH_OK;
}
