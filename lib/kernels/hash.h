/* Device kernels that tell what changed in memory without keeping a copy of it. A module of its own: only who verifies a step loads it. */
#ifndef STEPGRAPH_KERNELS_HASH_H
#define STEPGRAPH_KERNELS_HASH_H

#include "kernels.h"

typedef struct sg__hash {
    CUmodule module;
    CUfunction chunks, judge;
} sg__hash;

/* What a launch of judge finds. All zero before it. */
typedef struct sg__judged {
    uint64_t changed; /* Chunks that are not as they were, of ranges in which that counts. */
    uint64_t sum;     /* Over the chunks of all ranges that are marked. */
} sg__judged;

/* Load the module into the current context; it is the caller's. Nothing is loaded after a failure. */
stepgraph_status sg__hash_load(const sg__driver *driver, sg__hash *hash);

/* Add to each of `chunks` 64-bit words at `sums`, zero before, the hash of one chunk of the ranges' a: of each bit and its place. */
CUresult sg__hash_chunks(const sg__driver *driver, const sg__hash *hash, const sg__kernels *kernels, CUstream stream, CUdeviceptr table,
                         size_t n, uint64_t chunks, CUdeviceptr sums);

/*
 * Compare the hashes of all chunks with earlier ones. mark[i] is a byte for range i: 0 for none; a change counts where it is less than
 * `least`, and then hit[i] becomes 1.
 */
CUresult sg__hash_judge(const sg__driver *driver, const sg__hash *hash, const sg__kernels *kernels, CUstream stream, CUdeviceptr table,
                        size_t n, uint64_t chunks, CUdeviceptr now, CUdeviceptr before, CUdeviceptr mark, unsigned int least, CUdeviceptr hit,
                        CUdeviceptr judged);

#endif
