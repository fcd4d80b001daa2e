/* The kernel of minimal.c for cusim, the software driver. */
#include <cusim/kernel.h>

#include "minimal.cu"

CUSIM_PACK(CUSIM_KERNEL(update))
