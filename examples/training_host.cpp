/* The kernels of training.c for cusim, the software driver. */
#include <cusim/kernel.h>

#include "training.cu"

CUSIM_PACK(CUSIM_KERNEL(accumulate), CUSIM_KERNEL(descend), CUSIM_KERNEL(evaluate))
