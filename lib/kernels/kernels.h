/* The library's own device kernels: one module per session, and launches over a table of ranges. */
#ifndef STEPGRAPH_KERNELS_KERNELS_H
#define STEPGRAPH_KERNELS_KERNELS_H

#include "../driver/driver.h"
#include "ranges.h"

typedef struct sg__kernels {
    CUmodule module;
    CUfunction copy;
    unsigned int max_blocks; /* Enough to fill the device; more chunks than this share blocks. */
} sg__kernels;

/* Load the module into the current context. */
stepgraph_status sg__kernels_load(const sg__driver *driver, sg__kernels *kernels, int multiprocessors);
void sg__kernels_unload(const sg__driver *driver, sg__kernels *kernels);

/* Fill in first_chunk of n ranges; returns the number of chunks. */
uint64_t sg__ranges_number(sg__range *ranges, size_t n);

/* Copy n ranges whose table stands at `table` in device memory. */
CUresult sg__kernels_copy(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr table, size_t n,
                          uint64_t chunks);

#endif
