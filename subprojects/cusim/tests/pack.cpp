#include <cusim/kernel.h>
#include "kernels.cu"

CUSIM_PACK(CUSIM_KERNEL(nop), CUSIM_KERNEL(inc), CUSIM_KERNEL(addn), CUSIM_KERNEL(count), CUSIM_KERNEL(wide),
           CUSIM_KERNEL(packed), CUSIM_KERNEL(spin), CUSIM_KERNEL(note), CUSIM_KERNEL(from_variable), CUSIM_KERNEL(countdown))
CUSIM_VARIABLES(CUSIM_VARIABLE(variable))
