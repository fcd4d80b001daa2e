/* The kernels that only the conformance suite uses, as a pack for cusim; the others are in the pack of the test kernels. */
#include <cusim/kernel.h>

#include "../kernels/kernels.cu"

CUSIM_PACK(CUSIM_KERNEL(lazyk), CUSIM_KERNEL(bigstack), CUSIM_KERNEL(big4096), CUSIM_KERNEL(large4100), CUSIM_KERNEL(large8192),
           CUSIM_KERNEL(large32764))
