/* The library's own device kernels: one module per session, and launches over a table of ranges. */
#ifndef STEPGRAPH_KERNELS_KERNELS_H
#define STEPGRAPH_KERNELS_KERNELS_H

#include <stdbool.h>

#include "../driver/driver.h"
#include "ranges.h"

typedef struct sg__kernels {
    CUmodule module;
    CUfunction commit, copy, fill, set, compare, compare_filled, distance, flip, repeat, delay;
    unsigned int max_blocks; /* Enough to fill the device; more chunks than this share blocks. */
} sg__kernels;

/* Load the module into the current context. It is the caller's to bury. */
stepgraph_status sg__kernels_load(const sg__driver *driver, sg__kernels *kernels, int multiprocessors);

/* Into how many slices n ranges of so many bytes in all are cut, at most. */
size_t sg__slices_most(size_t n, uint64_t bytes);

/* Cut ranges of so many bytes in all; returns the number of slices. */
size_t sg__slices_cut(const sg__range *ranges, size_t n, uint64_t bytes, sg__slice *slices);

/* Copy n slices whose table stands at `table` in device memory. */
CUresult sg__kernels_commit(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr table, size_t n);

/* Fill in first_chunk of n ranges; returns the number of chunks. */
uint64_t sg__ranges_number(sg__range *ranges, size_t n);

/* Copy n ranges whose table stands at `table` in device memory. */
CUresult sg__kernels_copy(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr table, size_t n,
                          uint64_t chunks);

/* The launch that does what a memset node does; params.kernelParams points into it, so it stays where it is. */
typedef struct sg__set_launch {
    CUDA_KERNEL_NODE_PARAMS params;
    CUdeviceptr to;
    unsigned long long pitch, width, height;
    unsigned int value, element;
    void *arguments[6];
} sg__set_launch;

/* Whether the kernel can do it: rows begin at multiples of the element, and the value fits into it. */
bool sg__kernels_can_set(const CUDA_MEMSET_NODE_PARAMS *set);
void sg__kernels_set(const sg__kernels *kernels, CUcontext context, const CUDA_MEMSET_NODE_PARAMS *set, sg__set_launch *out);

/* Fill n ranges with the byte that is their b. */
CUresult sg__kernels_fill(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr table, size_t n,
                          uint64_t chunks);

/* Compare them; `found` is n sg__difference, set to {0, all ones}. */
CUresult sg__kernels_compare(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr table, size_t n,
                             uint64_t chunks, CUdeviceptr found);

/* The same for ranges that were filled with two different bytes before; `kept` is n zeros. */
CUresult sg__kernels_compare_filled(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr table, size_t n,
                                    uint64_t chunks, CUdeviceptr found, CUdeviceptr kept, unsigned int fill_a, unsigned int fill_b);

/* How far n elements are apart; `found` is one sg__distance. Elements that are all fill_a in a and all fill_b in b do not count. */
CUresult sg__kernels_distance(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr a, CUdeviceptr b,
                              uint64_t n, uint64_t base, unsigned int type, unsigned int fill_a, unsigned int fill_b, CUdeviceptr found);

/* Flip bits in n bytes that stand stride apart. */
CUresult sg__kernels_flip(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr at, uint64_t n,
                          unsigned int stride, unsigned int mask);

/* Fill n bytes at `to` with the `period` bytes at `from`, over and over. */
CUresult sg__kernels_repeat(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr to, uint64_t n,
                            CUdeviceptr from, uint64_t period);

/* Keep a stream busy. */
CUresult sg__kernels_delay(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, uint64_t ns);

#endif
