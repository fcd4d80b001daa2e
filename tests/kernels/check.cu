/* Kernels for the tests of the checker. Compiled to PTX for the card (sh lib/kernels/ptx.sh) and by the host compiler for cusim. */
#include "busy.h"

/* Adds all of x to *out: on a card in another order each time, and with another result. */
extern "C" __global__ void sum_atomic(float *out, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(out, x[i]);
}

/* Done at once the first time; later it keeps the stream busy, as a kernel does whose counter nobody sets back. */
extern "C" __global__ void once(unsigned int *counter, unsigned long long ns)
{
    if (atomicAdd(counter, 1) == 0)
        return;
    busy(ns);
}

/* *out = x[*index], and nothing where the index is out of range: then *bad counts. */
extern "C" __global__ void pick(float *out, const float *x, const int *index, int n, unsigned int *bad)
{
    if (*index >= 0 && *index < n)
        *out = x[*index];
    else
        atomicAdd(bad, 1);
}

/* Adds 0 to 4 units of the last place, others each time it runs. */
extern "C" __global__ void wobble(float *p, unsigned int *counter)
{
    unsigned int bits;

    memcpy(&bits, p, sizeof bits);
    bits += atomicAdd(counter, 1) % 5;
    memcpy(p, &bits, sizeof bits);
}
