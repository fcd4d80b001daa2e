/*
 * Kernels that touch more than their arguments say, for the tests of verifying. Compiled to PTX for the card (sh lib/kernels/ptx.sh) and by
 * the host compiler for cusim.
 */
#include "busy.h"

/* One value moved through a table of two addresses: both its read and its write are hidden. */
extern "C" __global__ void through_table(float *const *table, float v)
{
    *table[1] = *table[0] + v;
}

/* The value is an argument's, the place is in the table. */
extern "C" __global__ void to_table(float *const *table, const float *p)
{
    *table[0] = *p;
}

/* The place is an argument's, the value comes from the table. */
extern "C" __global__ void from_table(float *p, float *const *table)
{
    *p += *table[0];
}

/* n elements from an address on, whatever lies there. */
extern "C" __global__ void add_all(float *p, float v, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] += v;
}

/* *out becomes the sum of n elements. The last thread to come adds them up and sets the counter back to zero. */
extern "C" __global__ void last_adds(float *out, const float *x, unsigned int *counter, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;

    if (i >= n || atomicAdd(counter, 1) != (unsigned int)n - 1)
        return;
    *counter = 0;
    for (int k = 0; k < n; k++)
        sum += x[k];
    *out = sum;
}

/* Follows an address that stands behind the first one in its table. To a byte, which is aligned everywhere. */
extern "C" __global__ void chase(float *out, unsigned char **const *table)
{
    *out = **table[0];
}

/* Busy for ns nanoseconds if a value that the table leads to is not zero. */
extern "C" __global__ void stall(float *out, unsigned int *const *table, unsigned long long ns)
{
    *out += 1;
    if (*table[0] == 0)
        return;
    busy(ns);
}

__device__ unsigned int drifts;

/* Another result each time it runs, by a variable that nobody puts back. */
extern "C" __global__ void drift(float *p)
{
    *p = (float)(atomicAdd(&drifts, 1) + 1);
}
