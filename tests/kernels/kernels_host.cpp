/* The kernels of the tests as a pack for cusim. */
#include <cusim/kernel.h>

#include "kernels.cu"
#include "kernels_pack.h" /* CUSIM_PACK(...) with every kernel of kernels.cu */
