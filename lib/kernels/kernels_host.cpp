/* The device kernels, compiled for the host: what cusim runs. */
#include <cusim/kernel.h>

#include "hash.cu"
#include "kernels.cu"

CUSIM_PACK(CUSIM_KERNEL(stepgraph_commit), CUSIM_KERNEL(stepgraph_copy), CUSIM_KERNEL(stepgraph_fill), CUSIM_KERNEL(stepgraph_set), CUSIM_KERNEL(stepgraph_compare),
           CUSIM_KERNEL(stepgraph_compare_filled), CUSIM_KERNEL(stepgraph_distance), CUSIM_KERNEL(stepgraph_flip),
           CUSIM_KERNEL(stepgraph_repeat), CUSIM_KERNEL(stepgraph_delay),
           CUSIM_KERNEL(stepgraph_hash), CUSIM_KERNEL(stepgraph_judge))
