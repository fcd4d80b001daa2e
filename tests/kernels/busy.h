/* Busy for so many nanoseconds. */
#ifndef TEST_KERNELS_BUSY_H
#define TEST_KERNELS_BUSY_H

static __device__ void busy(unsigned long long ns)
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

#endif
