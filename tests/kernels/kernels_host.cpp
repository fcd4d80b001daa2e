/* The kernels of the tests as a pack for cusim. */
#include <cusim/kernel.h>

#include "check.cu"
#include "kernels.cu"

CUSIM_PACK(CUSIM_KERNEL(nop), CUSIM_KERNEL(inc), CUSIM_KERNEL(setv), CUSIM_KERNEL(axpb), CUSIM_KERNEL(update), CUSIM_KERNEL(addn),
           CUSIM_KERNEL(copyf), CUSIM_KERNEL(inner), CUSIM_KERNEL(packed), CUSIM_KERNEL(aligned), CUSIM_KERNEL(spin), CUSIM_KERNEL(sum_atomic), CUSIM_KERNEL(once), CUSIM_KERNEL(pick), CUSIM_KERNEL(wobble))
