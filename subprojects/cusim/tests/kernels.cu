/* Kernels of the self tests. To PTX: nvcc -arch=sm_75 -ptx -o kernels.ptx kernels.cu; by the host compiler: pack.cpp. */

struct alignas(64) Wide {
    double v[16];
};

struct __attribute__((packed)) Packed {
    int tag;
    float *a;
    short s;
    float *b;
};

extern "C" __global__ void nop(void)
{
}

extern "C" __global__ void inc(float *p, float v)
{
    *p += v;
}

extern "C" __global__ void addn(float *p, float v, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] += v;
}

extern "C" __global__ void count(unsigned long long *n)
{
    atomicAdd(n, 1ull);
}

extern "C" __global__ void wide(Wide in, float *out)
{
    *out = (float)in.v[15];
}

extern "C" __global__ void packed(Packed in, float *out)
{
    *out = (float)in.tag + *in.a + (float)in.s + *in.b;
}

extern "C" __global__ void spin(unsigned long long ns)
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

/* Appends `id` to a list whose length stands before it. */
extern "C" __global__ void note(int *list, int id)
{
    list[1 + atomicAdd(list, 1)] = id;
}

__device__ float variable = 2.5f;
__device__ int table[4] = {1, -2, 3};

extern "C" __global__ void from_variable(float *out)
{
    *out = variable;
}

/* Counts down, and tells the conditional node it runs under when it is done. */
extern "C" __global__ void countdown(unsigned long long handle, int *n)
{
    *n -= 1;
#ifndef __CUDA_ARCH__
    cudaGraphSetConditional(handle, *n > 0);
#endif
}

/* In the PTX and in no pack. */
#ifdef __CUDA_ARCH__
extern "C" __global__ void bodiless(int *p)
{
    *p = 1;
}
#endif
