/*
 * Hashes of memory, chunk by chunk, and what changed between two of them.
 *
 * The hash of a chunk is the sum of its 64-bit words, each mixed with its place, so that threads can add their parts in any order. It is
 * no defence against anybody, only against chance: two different chunks have the same hash once in 2^64.
 */
#include "chunks.h"

/* Every bit of the result depends on every bit of both; a word of zeros counts too. */
static __device__ unsigned long long mix(unsigned long long word, unsigned long long place)
{
    unsigned long long x = word ^ ((place + 1) * 0x9e3779b97f4a7c15ull);

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* One sum for all threads of a warp where there are warps: 256 atomic additions to one word take longer than reading the chunk. */
static __device__ void add(unsigned long long *sum, unsigned long long mine)
{
#ifdef __CUDA_ARCH__
    for (int distance = 16; distance > 0; distance /= 2)
        mine += __shfl_down_sync(~0u, mine, distance);
    if (threadIdx.x % 32 != 0)
        return;
#endif
    if (mine != 0)
        atomicAdd(sum, mine);
}

/* The host launches whole warps. */
extern "C" __global__ void stepgraph_hash(const sg__range *ranges, unsigned int n, unsigned long long chunks, unsigned long long *sums)
{
    for (unsigned long long chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const sg__range *range = range_of_chunk(ranges, n, chunk);
        unsigned long long offset = (chunk - range->first_chunk) * SG__CHUNK_BYTES;
        unsigned long long bytes = chunk_bytes(range, offset);
        const unsigned char *at = (const unsigned char *)range->a + offset;
        unsigned long long words = 0, mine = 0;

        if (((unsigned long long)at & 15) == 0) {
            words = bytes / 16 * 2;
            for (unsigned long long i = threadIdx.x; i < words / 2; i += blockDim.x) {
                sg__vec16 both = ((const sg__vec16 *)at)[i];
                mine += mix(both.low, 2 * i) + mix(both.high, 2 * i + 1);
            }
        }
        for (unsigned long long i = words + threadIdx.x; i * 8 < bytes; i += blockDim.x) {
            unsigned long long word = 0;
            for (unsigned int k = 0; k < 8 && i * 8 + k < bytes; k++)
                word |= (unsigned long long)at[i * 8 + k] << (8 * k);
            mine += mix(word, i);
        }
        add(&sums[chunk], mine);
    }
}

/* judged: how many chunks changed where that counts, and a sum over those of the ranges that are marked. */
extern "C" __global__ void stepgraph_judge(const sg__range *ranges, unsigned int n, unsigned long long chunks, const unsigned long long *now,
                                           const unsigned long long *before, const unsigned char *mark, unsigned int least,
                                           unsigned char *hit, unsigned long long *judged)
{
    unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long changed = 0, sum = 0;

    for (unsigned long long chunk = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; chunk < chunks; chunk += stride) {
        unsigned long long range = (unsigned long long)(range_of_chunk(ranges, n, chunk) - ranges);
        if (now[chunk] != before[chunk] && mark[range] < least) {
            hit[range] = 1;
            changed++;
        }
        if (mark[range] != 0)
            sum += mix(now[chunk], chunk);
    }
    add(&judged[0], changed);
    add(&judged[1], sum);
}
