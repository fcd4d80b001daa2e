/*
 * The lists of slices that a recording's commits copy. The graph's kernels read them at every replay, so they live as long as the graph;
 * the host's side is filled while recording and sent to the device once, when the recording is over.
 */
#ifndef STEPGRAPH_TABLE_H
#define STEPGRAPH_TABLE_H

#include "session_p.h"

typedef struct sg__table sg__table;

/* One list for a new recording, all of it free, with room for a commit of every pin and as many again that are small: the one that is there if it
 * is large enough and no longer in use. */
stepgraph_status sg__table_renew(stepgraph_session *session, sg__table **list);

/* Take room for n slices that stand together, from *list or from new memory. */
stepgraph_status sg__table_take(stepgraph_session *session, sg__table **list, size_t n, sg__slice **host_out, CUdeviceptr *device_out);

/* Enqueue the copies to the device, in stream order before whatever uses them. Nothing records on the stream. */
stepgraph_status sg__table_send(stepgraph_session *session, const sg__table *list);

/* Whether address lies in one of the lists. */
bool sg__table_holds(const sg__table *list, CUdeviceptr address);

/* The host's side of n slices that stand at a device address; NULL: they do not. */
const sg__slice *sg__table_list(const sg__table *list, CUdeviceptr address, size_t n);

/* Whether anything was taken, and bytes of device memory in all. */
bool sg__table_used(const sg__table *list);
uint64_t sg__table_bytes(const sg__table *list);

void sg__table_free(stepgraph_session *session, sg__table **list);

#endif
