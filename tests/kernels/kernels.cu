/* Small kernels for the tests. Compiled to PTX for the card (sh lib/kernels/ptx.sh) and by the host compiler for cusim. */
#include "busy.h"

struct Inner {
    float *p;
    int n;
    double *tail[3];
};

struct __attribute__((packed)) Packed {
    int tag;
    float *a;
    short s;
    float *b;
};

struct alignas(64) Aligned {
    double v[16];
};

extern "C" __global__ void nop(void)
{
}

extern "C" __global__ void inc(float *p, float v)
{
    *p += v;
}

/* inc(), by the name of a kernel that waits for other devices. */
extern "C" __global__ void oneShotAllReduceKernel(float *p, float v)
{
    *p += v;
}

extern "C" __global__ void setv(float *p, float v)
{
    *p = v;
}

/* *d = *p + v: an out-of-place update. */
extern "C" __global__ void axpb(float *d, const float *p, float v)
{
    *d = *p + v;
}

/* d[i] = p[i] + *step * x[i]: out of place, the rate in device memory. */
extern "C" __global__ void update(float *d, const float *p, const float *x, const float *step, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        d[i] = p[i] + *step * x[i];
}

extern "C" __global__ void addn(float *p, float v, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] += v;
}

extern "C" __global__ void copyf(float *d, const float *s)
{
    *d = *s;
}

extern "C" __global__ void inner(Inner in, float *out, int k, char c, float *last)
{
    *out = *in.p + (float)in.n + (float)k + (float)c + *last;
}

extern "C" __global__ void packed(Packed in, float *out)
{
    *out = (float)in.tag + *in.a + (float)in.s + *in.b;
}

extern "C" __global__ void aligned(Aligned in, float *out)
{
    *out = (float)in.v[15];
}

/* Keeps one thread busy for about `ns` nanoseconds. */
extern "C" __global__ void spin(unsigned long long ns)
{
    busy(ns);
}

/* Values and pointers in each place where a kernel can have them, for the audit. */
struct Hyper {
    float rate;
    int step;
};

struct Adam {
    float rate, correction;
    int step;
    float decay;
};

struct Padded { /* Bytes 1 to 7 and 18 to 23 are nobody's. */
    char tag;
    double scale;
    short n;
    float *p;
};

struct Views {
    float *out;
    const float *in;
    const float *bias;
    int n;
};

struct Pair {
    int low, high;
};

extern "C" __global__ void adam(float *w, const float *g, float rate, float correction, int step)
{
    *w -= rate * *g / correction * (float)step;
}

extern "C" __global__ void dropout(float *x, unsigned long long seed)
{
    *x *= seed & 1 ? 0.0f : 2.0f;
}

extern "C" __global__ void hyper(Hyper h, float *w)
{
    *w -= h.rate * (float)h.step;
}

extern "C" __global__ void adam_struct(Adam a, float *w)
{
    *w -= a.rate / a.correction * (float)a.step + a.decay * *w;
}

extern "C" __global__ void padded(Padded in, float *out)
{
    *out = *in.p * (float)in.scale + (float)in.n + (float)in.tag;
}

/* `bias` may be NULL. */
extern "C" __global__ void views(Views v)
{
    *v.out = *v.in * (float)v.n + (v.bias ? *v.bias : 0.0f);
}

extern "C" __global__ void fill(float *begin, float *end, float v)
{
    for (float *p = begin; p != end; p++)
        *p = v;
}

extern "C" __global__ void wide(float *out, unsigned long long a, double b, Pair c)
{
    *out = (float)a + (float)b + (float)c.low + (float)c.high;
}

/* As C++ calls net::scale(float *, float). */
extern "C" __global__ void _ZN3net5scaleEPff(float *p, float by)
{
    *p *= by;
}

/* For the first use of a kernel that nothing has touched, and of a variable. */
__device__ float gvar = 3.0f;

extern "C" __global__ void lazyk(float *p, float v)
{
    *p += v;
}

/* Needs more local memory per thread than a context starts with. */
extern "C" __global__ void bigstack(float *p, int n)
{
    volatile float a[2048];
    for (int i = 0; i < 2048; i += 97)
        a[(i * n) & 2047] = (float)i;
    *p = a[(n * 97) & 2047] * 0.0f + 1.0f;
}

/* 4,096 bytes of parameters: a pointer and 1,022 words. */
struct Words1022 {
    int w[1022];
};

extern "C" __global__ void big4096(int *out, Words1022 b)
{
    out[0] = b.w[0];
    out[1] = b.w[1021];
}

/* 604 bytes in one argument, of which the last 4 are half a word. */
struct Words151 {
    int w[151];
};

extern "C" __global__ void part604(int *out, Words151 b)
{
    out[0] = b.w[0];
    out[1] = b.w[150];
}

/* A pointer in a struct of 408 bytes. */
struct Spread {
    float *p;
    int rest[100];
};

extern "C" __global__ void spread(Spread s, float v)
{
    *s.p += v;
}

/* More than PTX 8.0 allows: a test brings its own PTX for these. The bodies are here for the host compiler only. */
#ifndef __CUDACC__
template <int N> struct Words {
    int w[N];
};

extern "C" __global__ void large4100(int *out, Words<1023> b)
{
    out[0] = b.w[0];
    out[1] = b.w[1022];
}

extern "C" __global__ void large8192(int *out, Words<2046> b)
{
    out[0] = b.w[0];
    out[1] = b.w[2045];
}

extern "C" __global__ void large32764(int *out, Words<8189> b)
{
    out[0] = b.w[0];
    out[1] = b.w[8188];
}
#endif
