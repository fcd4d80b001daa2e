/* The kernels of the tests as a pack for cusim. */
#include <cusim/kernel.h>

#include "kernels.cu"

CUSIM_PACK(CUSIM_KERNEL(nop), CUSIM_KERNEL(inc), CUSIM_KERNEL(setv), CUSIM_KERNEL(axpb), CUSIM_KERNEL(update), CUSIM_KERNEL(addn),
           CUSIM_KERNEL(copyf), CUSIM_KERNEL(inner), CUSIM_KERNEL(packed), CUSIM_KERNEL(aligned), CUSIM_KERNEL(spin))
