/* The kernels of the tests as a pack for cusim. */
#include <cusim/kernel.h>

#include "kernels.cu"

/* One whose name in the PTX is not its name in C++. */
#define NAMED_KERNEL(text, name)                                                                                                 \
    {                                                                                                                            \
        text, &cusim::kernel<&name>::run, cusim::kernel<&name>::params, cusim::kernel<&name>::count                              \
    }

CUSIM_PACK(CUSIM_KERNEL(nop), CUSIM_KERNEL(inc), CUSIM_KERNEL(setv), CUSIM_KERNEL(axpb), CUSIM_KERNEL(update), CUSIM_KERNEL(addn),
           CUSIM_KERNEL(copyf), CUSIM_KERNEL(inner), CUSIM_KERNEL(packed), CUSIM_KERNEL(aligned), CUSIM_KERNEL(spin), CUSIM_KERNEL(adam),
           CUSIM_KERNEL(dropout), CUSIM_KERNEL(hyper), CUSIM_KERNEL(adam_struct), CUSIM_KERNEL(padded), CUSIM_KERNEL(views),
           CUSIM_KERNEL(fill), CUSIM_KERNEL(wide), NAMED_KERNEL("_ZN3net5scaleIfEEvPT_S1_", net::scale<float>))
