/* The kernels of the tests as a pack for cusim. */
#include <cusim/kernel.h>

#include "check.cu"
#include "hidden.cu"
#include "kernels.cu"
#include "kernels_pack.h" /* CUSIM_PACK(...) with every kernel of all */
