/*
 * The library's own device kernels: commit many pins in one launch; copy, fill and compare many ranges, and what the checker needs besides.
 *
 * The checker's work is cut into chunks; see chunks.h.
 * Compiled to PTX for the card, and by the host compiler for cusim: no shared memory, no warp intrinsics.
 */
#include "chunks.h"
#include "elements.h"

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

/* Copy every slice, as many bytes as it is long. Slices must not overlap. Two 16-byte words of a thread are on their way at once where both sides
 * allow it: one alone waits too long, and of more the many blocks gain nothing. */
extern "C" __global__ void stepgraph_commit(const sg__slice *slices, unsigned int n)
{
    for (unsigned int k = blockIdx.x; k < n; k += gridDim.x) {
        const sg__slice slice = slices[k];
        unsigned char *to = (unsigned char *)slice.to;
        const unsigned char *from = (const unsigned char *)slice.from;
        unsigned long long wide = 0;

        if (((slice.to | slice.from) & 15) == 0) {
            sg__vec16 *p = (sg__vec16 *)to;
            const sg__vec16 *q = (const sg__vec16 *)from;
            unsigned long long i = threadIdx.x, step = blockDim.x;

            wide = slice.bytes / 16;
            for (; i + step < wide; i += 2 * step) {
                sg__vec16 q0 = q[i], q1 = q[i + step];
                p[i] = q0;
                p[i + step] = q1;
            }
            if (i < wide)
                p[i] = q[i];
        }
        for (unsigned long long i = wide * 16 + threadIdx.x; i < slice.bytes; i += blockDim.x)
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
        unsigned long long wide = 0;
        sg__vec16 pattern;

        pattern.low = pattern.high = (range->b & 0xff) * 0x0101010101010101ull;
        if (((unsigned long long)to & 15) == 0) {
            wide = bytes / 16;
            for (unsigned long long i = threadIdx.x; i < wide; i += blockDim.x)
                ((sg__vec16 *)to)[i] = pattern;
        }
        for (unsigned long long i = wide * 16 + threadIdx.x; i < bytes; i += blockDim.x)
            to[i] = (unsigned char)range->b;
    }
}

/* Set rows of `width` elements, `pitch` bytes apart, to the lowest bytes of value: what a memset node does. An element has 1, 2 or 4 bytes, and
 * rows begin at multiples of it. 16 bytes a thread where all rows begin alike. */
extern "C" __global__ void stepgraph_set(unsigned char *to, unsigned long long pitch, unsigned int value, unsigned int element,
                                         unsigned long long width, unsigned long long height)
{
    unsigned int shift = element >> 1; /* Of 1, 2 and 4: 0, 1 and 2. */
    unsigned long long row_bytes = width << shift, before = row_bytes, wide = 0, units;
    sg__vec16 pattern;

    pattern.low = element == 1 ? (value & 0xff) * 0x0101010101010101ull
                : element == 2 ? (value & 0xffff) * 0x0001000100010001ull
                               : value * 0x0000000100000001ull;
    pattern.high = pattern.low;
    if (height == 1 || (pitch & 15) == 0) {
        before = (16 - ((unsigned long long)to & 15)) & 15;
        before = before < row_bytes ? before : row_bytes;
        wide = (row_bytes - before) / 16;
    }
    /* A unit of a row: first the elements up to a multiple of 16, then 16 bytes each, then the elements that are left. */
    units = (before >> shift) + wide + ((row_bytes - before - 16 * wide) >> shift);
    before >>= shift;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < units * height;
         i += (unsigned long long)gridDim.x * blockDim.x) {
        unsigned long long row = height > 1 ? i / units : 0, unit = i - row * units;
        unsigned char *at = to + row * pitch;

        if (unit >= before && unit - before < wide) {
            *(sg__vec16 *)(at + (before << shift) + 16 * (unit - before)) = pattern;
            continue;
        }
        at += unit < before ? unit << shift : (before << shift) + 16 * wide + ((unit - before - wide) << shift);
        if (element == 1)
            *at = (unsigned char)value;
        else if (element == 2)
            *(unsigned short *)at = (unsigned short)value;
        else
            *(unsigned int *)at = value;
    }
}

/* What one thread has found so far. */
struct tally {
    unsigned long long count, first;
};

/* 16 bytes that are not the same. */
static __device__ void tally_16(tally *found, const unsigned char *a, const unsigned char *b, unsigned long long offset)
{
    for (unsigned int k = 0; k < 16; k++)
        if (a[k] != b[k]) {
            found->count++;
            if (offset + k < found->first)
                found->first = offset + k;
        }
}

static __device__ int differ(sg__vec16 x, sg__vec16 y)
{
    return ((x.low ^ y.low) | (x.high ^ y.high)) != 0;
}

/* Compare a with b byte by byte; found[i] of range i counts the bytes that differ and keeps the lowest offset. The host sets found to
 * {0, all ones} before the launch. Four words a side are on their way at once: one at a time would wait for memory. */
extern "C" __global__ void stepgraph_compare(const sg__range *ranges, unsigned int n, unsigned long long chunks, sg__difference *found)
{
    for (unsigned long long chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const sg__range *range = range_of_chunk(ranges, n, chunk);
        unsigned long long offset = (chunk - range->first_chunk) * SG__CHUNK_BYTES;
        unsigned long long bytes = chunk_bytes(range, offset);
        const unsigned char *a = (const unsigned char *)range->a + offset;
        const unsigned char *b = (const unsigned char *)range->b + offset;
        unsigned long long wide = 0;
        tally mine = {0, ~0ull};

        if ((((unsigned long long)a | (unsigned long long)b) & 15) == 0) {
            const sg__vec16 *p = (const sg__vec16 *)a, *q = (const sg__vec16 *)b;
            unsigned long long i = threadIdx.x, step = blockDim.x;

            wide = bytes / 16;
            for (; i + 3 * step < wide; i += 4 * step) {
                sg__vec16 p0 = p[i], p1 = p[i + step], p2 = p[i + 2 * step], p3 = p[i + 3 * step];
                sg__vec16 q0 = q[i], q1 = q[i + step], q2 = q[i + 2 * step], q3 = q[i + 3 * step];
                if (!(differ(p0, q0) | differ(p1, q1) | differ(p2, q2) | differ(p3, q3)))
                    continue;
                for (unsigned long long k = i; k < i + 4 * step; k += step)
                    tally_16(&mine, a + k * 16, b + k * 16, offset + k * 16);
            }
            for (; i < wide; i += step)
                if (differ(p[i], q[i]))
                    tally_16(&mine, a + i * 16, b + i * 16, offset + i * 16);
        }
        for (unsigned long long i = wide * 16 + threadIdx.x; i < bytes; i += blockDim.x)
            if (a[i] != b[i]) {
                mine.count++;
                if (offset + i < mine.first)
                    mine.first = offset + i;
            }
        if (mine.count != 0) {
            sg__difference *sum = &found[range - ranges];
            atomicAdd(&sum->bytes, mine.count);
            atomicMin(&sum->first, mine.first);
        }
    }
}

/* The same for ranges that were filled before their work ran, a with one byte and b with another: where both sides still have theirs, they
 * do not differ. kept[i] counts the bytes of b that do. */
extern "C" __global__ void stepgraph_compare_filled(const sg__range *ranges, unsigned int n, unsigned long long chunks,
                                                    sg__difference *found, unsigned long long *kept, unsigned int fill_a,
                                                    unsigned int fill_b)
{
    for (unsigned long long chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const sg__range *range = range_of_chunk(ranges, n, chunk);
        unsigned long long offset = (chunk - range->first_chunk) * SG__CHUNK_BYTES;
        unsigned long long bytes = chunk_bytes(range, offset);
        const unsigned char *a = (const unsigned char *)range->a + offset;
        const unsigned char *b = (const unsigned char *)range->b + offset;
        unsigned long long count = 0, first = ~0ull, same = 0;

        for (unsigned long long i = threadIdx.x; i < bytes; i += blockDim.x) {
            same += b[i] == fill_b;
            if (a[i] != b[i] && !(a[i] == fill_a && b[i] == fill_b)) {
                count++;
                if (offset + i < first)
                    first = offset + i;
            }
        }
        if (same != 0)
            atomicAdd(&kept[range - ranges], same);
        if (count != 0) {
            atomicAdd(&found[range - ranges].bytes, count);
            atomicMin(&found[range - ranges].first, first);
        }
    }
}

/* An element that is all fill. */
static __device__ bool is_fill(unsigned long long bits, unsigned int bytes, unsigned int fill)
{
    return fill < 256 && bits == (fill * 0x0101010101010101ull & ~0ull >> (64 - 8 * bytes));
}

/* How far n elements of a and b are apart; the first of them counts as element number `base`. Where both sides are still as they were filled
 * they are not apart. */
extern "C" __global__ void stepgraph_distance(const unsigned char *a, const unsigned char *b, unsigned long long n, unsigned long long base,
                                              unsigned int type, unsigned int fill_a, unsigned int fill_b, sg__distance *found)
{
    unsigned int bytes = sg__element_bytes(type);
    unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long elements = 0, first = ~0ull, ulps = 0, largest = 0;
    double squares = 0;

    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        unsigned long long x = sg__element_load(a + i * bytes, bytes), y = sg__element_load(b + i * bytes, bytes), far, bits;
        double distance;

        if (x == y || (is_fill(x, bytes, fill_a) && is_fill(y, bytes, fill_b)))
            continue;
        elements++;
        if (base + i < first)
            first = base + i;
        far = sg__element_ulps(type, x, y);
        ulps = far > ulps ? far : ulps;
        distance = sg__element_distance(type, x, y);
        bits = sg__bits_of_double(distance);
        largest = bits > largest ? bits : largest;
        if (bits < 0x7ffull << 52)
            squares += distance * distance;
    }
    if (elements != 0) {
        atomicAdd(&found->elements, elements);
        atomicMin(&found->first, first);
        atomicMax(&found->ulps, ulps);
        atomicMax(&found->largest, largest);
        atomicAdd(&found->squares, squares);
    }
}

/* Flip the bits of mask in n bytes that stand stride apart. */
extern "C" __global__ void stepgraph_flip(unsigned char *at, unsigned long long n, unsigned int stride, unsigned int mask)
{
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (unsigned long long)gridDim.x * blockDim.x)
        at[i * stride] = (unsigned char)(at[i * stride] ^ mask);
}

/* Fill n bytes behind a range with the range's own `period` bytes over and over. */
extern "C" __global__ void stepgraph_repeat(unsigned char *to, unsigned long long n, const unsigned char *from, unsigned long long period)
{
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (unsigned long long)gridDim.x * blockDim.x)
        to[i] = from[i % period];
}

/* Keep a stream busy for about `ns` nanoseconds. */
extern "C" __global__ void stepgraph_delay(unsigned long long ns)
{
#ifdef __CUDA_ARCH__
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - start < ns);
#else
    cusim_spin_ns(ns);
#endif
}
