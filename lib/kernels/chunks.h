/*
 * How device kernels cut the work of a table of ranges: into chunks of SG__CHUNK_BYTES. A block takes chunks in turn (grid stride) and finds
 * the range a chunk belongs to by binary search in the table, so one large range spreads over the whole card and a thousand small ones need
 * one launch.
 */
#ifndef STEPGRAPH_KERNELS_CHUNKS_H
#define STEPGRAPH_KERNELS_CHUNKS_H

#include "ranges.h"

/* The range that holds chunk number `chunk`: the last one whose first_chunk is not beyond it. */
static __device__ const sg__range *range_of_chunk(const sg__range *ranges, unsigned int n, unsigned long long chunk)
{
    unsigned int low = 0, high = n;

    while (high - low > 1) {
        unsigned int middle = low + (high - low) / 2;
        if (ranges[middle].first_chunk <= chunk)
            low = middle;
        else
            high = middle;
    }
    return &ranges[low];
}

static __device__ unsigned long long chunk_bytes(const sg__range *range, unsigned long long offset)
{
    unsigned long long left = range->bytes - offset;
    return left < SG__CHUNK_BYTES ? left : SG__CHUNK_BYTES;
}

#endif
