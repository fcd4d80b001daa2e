/*
 * The library's own device kernels: copy, fill and compare many ranges in one launch.
 *
 * Work is cut into chunks of SG__CHUNK_BYTES. A block takes chunks in turn (grid stride) and finds the range a chunk belongs to by
 * binary search in the table, so one large range spreads over the whole card and a thousand small ones need one launch.
 * Compiled to PTX for the card, and by the host compiler for cusim: no shared memory, no warp intrinsics.
 */
#include "ranges.h"

/* The range that holds chunk number `chunk`: the last one whose first_chunk is not beyond it. */
static __device__ const sg__range *range_of_chunk(const sg__range *ranges, unsigned int n, unsigned long long chunk)
{
    unsigned int low = 0, high = n;

    while (high - low > 1) {
        unsigned int middle = low + (high - low) / 2;
        if (ranges[middle].first_chunk <= chunk)
            low = middle;
        else
            high = middle;
    }
    return &ranges[low];
}

static __device__ unsigned long long chunk_bytes(const sg__range *range, unsigned long long offset)
{
    unsigned long long left = range->bytes - offset;
    return left < SG__CHUNK_BYTES ? left : SG__CHUNK_BYTES;
}

/* Copy b to a for every range. Ranges must not overlap. 16 bytes a thread where both sides allow it. */
extern "C" __global__ void stepgraph_copy(const sg__range *ranges, unsigned int n, unsigned long long chunks)
{
    for (unsigned long long chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const sg__range *range = range_of_chunk(ranges, n, chunk);
        unsigned long long offset = (chunk - range->first_chunk) * SG__CHUNK_BYTES;
        unsigned long long bytes = chunk_bytes(range, offset);
        unsigned char *to = (unsigned char *)range->a + offset;
        const unsigned char *from = (const unsigned char *)range->b + offset;
        unsigned long long wide = 0;

        if ((((unsigned long long)to | (unsigned long long)from) & 15) == 0) {
            wide = bytes / 16;
            for (unsigned long long i = threadIdx.x; i < wide; i += blockDim.x)
                ((sg__vec16 *)to)[i] = ((const sg__vec16 *)from)[i];
        }
        for (unsigned long long i = wide * 16 + threadIdx.x; i < bytes; i += blockDim.x)
            to[i] = from[i];
    }
}

/* Fill a with the repeated byte of every range's b. */
extern "C" __global__ void stepgraph_fill(const sg__range *ranges, unsigned int n, unsigned long long chunks)
{
    for (unsigned long long chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const sg__range *range = range_of_chunk(ranges, n, chunk);
        unsigned long long offset = (chunk - range->first_chunk) * SG__CHUNK_BYTES;
        unsigned long long bytes = chunk_bytes(range, offset);
        unsigned char *to = (unsigned char *)range->a + offset;

        for (unsigned long long i = threadIdx.x; i < bytes; i += blockDim.x)
            to[i] = (unsigned char)range->b;
    }
}

/* Compare a with b byte by byte; found[i] of range i counts the bytes that differ and keeps the lowest offset. The host sets found to
 * {0, all ones} before the launch. */
extern "C" __global__ void stepgraph_compare(const sg__range *ranges, unsigned int n, unsigned long long chunks, sg__difference *found)
{
    for (unsigned long long chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const sg__range *range = range_of_chunk(ranges, n, chunk);
        unsigned long long offset = (chunk - range->first_chunk) * SG__CHUNK_BYTES;
        unsigned long long bytes = chunk_bytes(range, offset);
        const unsigned char *a = (const unsigned char *)range->a + offset;
        const unsigned char *b = (const unsigned char *)range->b + offset;
        unsigned long long wide = 0, count = 0, first = ~0ull;

        if ((((unsigned long long)a | (unsigned long long)b) & 15) == 0) {
            wide = bytes / 16;
            for (unsigned long long i = threadIdx.x; i < wide; i += blockDim.x) {
                sg__vec16 x = ((const sg__vec16 *)a)[i], y = ((const sg__vec16 *)b)[i];
                if (x.low == y.low && x.high == y.high)
                    continue;
                for (unsigned int k = 0; k < 16; k++)
                    if (a[i * 16 + k] != b[i * 16 + k]) {
                        count++;
                        if (offset + i * 16 + k < first)
                            first = offset + i * 16 + k;
                    }
            }
        }
        for (unsigned long long i = wide * 16 + threadIdx.x; i < bytes; i += blockDim.x)
            if (a[i] != b[i]) {
                count++;
                if (offset + i < first)
                    first = offset + i;
            }
        if (count != 0) {
            sg__difference *mine = &found[range - ranges];
            atomicAdd(&mine->bytes, count);
            atomicMin(&mine->first, first);
        }
    }
}
