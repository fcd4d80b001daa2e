/* The quick start's kernels for cusim, the software driver: the same source, compiled for the host. */
#include <cusim/kernel.h>

#include <math.h>

#include "kernels.cu"

CUSIM_PACK(CUSIM_KERNEL(one_hot), CUSIM_KERNEL(embed), CUSIM_KERNEL(linear), CUSIM_KERNEL(silu), CUSIM_KERNEL(inverse_rms),
           CUSIM_KERNEL(normalize), CUSIM_KERNEL(add), CUSIM_KERNEL(softmax_loss), CUSIM_KERNEL(mean), CUSIM_KERNEL(linear_dx),
           CUSIM_KERNEL(linear_dw), CUSIM_KERNEL(linear_db), CUSIM_KERNEL(silu_dz), CUSIM_KERNEL(normalize_dgain),
           CUSIM_KERNEL(normalize_row), CUSIM_KERNEL(normalize_da), CUSIM_KERNEL(embed_dtable), CUSIM_KERNEL(count_step),
           CUSIM_KERNEL(adamw), CUSIM_KERNEL(adamw_by_value), CUSIM_KERNEL(retract), CUSIM_KERNEL(average))
