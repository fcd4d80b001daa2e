/**
 * @file
 * Compile a .cu file with the host compiler, for cusim.
 *
 * A *kernel pack* is a shared object that holds the bodies of kernels. Its source is a few lines that include this header, then
 * the very .cu file that nvcc compiles, and then name the kernels:
 *
 *     #include <cusim/kernel.h>
 *     #include "kernels.cu"
 *     CUSIM_PACK(CUSIM_KERNEL(copy), CUSIM_KERNEL(fill))
 *
 * cusim takes names and parameter lists from the PTX that the program loads, and the bodies from the packs in CUSIM_KERNELS, by
 * name. The threads of a launch run one after another in the order of their indices, so a kernel must not wait for another
 * thread: there is no __syncthreads, no __shared__ and no warp function here, and using one does not compile.
 */
#ifndef CUSIM_KERNEL_H
#define CUSIM_KERNEL_H

/* ---- what a pack exports; C, so that cusim itself can read it ------------------------------------------------------ */

#ifdef __cplusplus
#include <cstddef>
extern "C" {
#else
#include <stddef.h>
#endif

#define CUSIM_PACK_ABI 1u

/** One launch: its geometry and where each parameter lies. Parameters may be unaligned. */
struct cusim_grid {
    unsigned grid[3];
    unsigned block[3];
    void *const *params;
};

struct cusim_param {
    unsigned size;
    unsigned align;
};

struct cusim_kernel {
    const char *name;
    void (*run)(const struct cusim_grid *grid); /**< Every thread of every block. */
    const struct cusim_param *params;
    unsigned num_params;
};

/** The symbol `cusim_pack_table` of a pack. */
struct cusim_pack {
    unsigned abi; /**< CUSIM_PACK_ABI */
    unsigned num_kernels;
    const struct cusim_kernel *kernels;
};

/** A `__device__` variable. */
struct cusim_variable {
    const char *name;
    void *address;
    size_t bytes;
};

#ifdef __cplusplus
} /* extern "C" */

/* ---- the language -------------------------------------------------------------------------------------------------- */

#include <cmath>
#include <cstdint>
#include <cstring>
#include <time.h>
#include <tuple>
#include <type_traits>
#include <utility>

#define __global__ __attribute__((visibility("hidden")))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

struct alignas(8) float2 {
    float x, y;
};
struct float3 {
    float x, y, z;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};

static inline float2 make_float2(float x, float y)
{
    return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}
static inline int2 make_int2(int x, int y)
{
    return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

/* Of the thread being run. Each stream runs its kernels on a thread of its own, hence thread_local; initial-exec makes that one
 * instruction. */
#define CUSIM_TLS static thread_local __attribute__((tls_model("initial-exec"), unused))
CUSIM_TLS uint3 threadIdx;
CUSIM_TLS uint3 blockIdx;
CUSIM_TLS dim3 blockDim;
CUSIM_TLS dim3 gridDim;
#undef CUSIM_TLS
static constexpr int warpSize = 32;

/* ---- device functions ---------------------------------------------------------------------------------------------- */

/* Two streams run at the same time, so these are real atomics. Each returns the old value. */
namespace cusim
{
template <typename T, typename F> static inline T atomic_update(T *at, F next)
{
    T old, want;

    __atomic_load(at, &old, __ATOMIC_RELAXED);
    do
        want = next(old);
    while (!__atomic_compare_exchange(at, &old, &want, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}
} // namespace cusim

template <typename T> static inline T atomicAdd(T *at, typename std::common_type<T>::type v)
{
    if constexpr (std::is_integral_v<T>)
        return __atomic_fetch_add(at, v, __ATOMIC_RELAXED);
    else
        return cusim::atomic_update(at, [v](T old) { return old + v; });
}
template <typename T> static inline T atomicSub(T *at, typename std::common_type<T>::type v)
{
    return __atomic_fetch_sub(at, v, __ATOMIC_RELAXED);
}
template <typename T> static inline T atomicMin(T *at, typename std::common_type<T>::type v)
{
    return cusim::atomic_update(at, [v](T old) { return v < old ? v : old; });
}
template <typename T> static inline T atomicMax(T *at, typename std::common_type<T>::type v)
{
    return cusim::atomic_update(at, [v](T old) { return v > old ? v : old; });
}
template <typename T> static inline T atomicAnd(T *at, typename std::common_type<T>::type v)
{
    return __atomic_fetch_and(at, v, __ATOMIC_RELAXED);
}
template <typename T> static inline T atomicOr(T *at, typename std::common_type<T>::type v)
{
    return __atomic_fetch_or(at, v, __ATOMIC_RELAXED);
}
template <typename T> static inline T atomicXor(T *at, typename std::common_type<T>::type v)
{
    return __atomic_fetch_xor(at, v, __ATOMIC_RELAXED);
}
template <typename T> static inline T atomicExch(T *at, typename std::common_type<T>::type v)
{
    T old;

    __atomic_exchange(at, &v, &old, __ATOMIC_RELAXED);
    return old;
}
template <typename T>
static inline T atomicCAS(T *at, typename std::common_type<T>::type expected, typename std::common_type<T>::type v)
{
    __atomic_compare_exchange(at, &expected, &v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

static inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
template <typename T> static inline T __ldg(const T *p)
{
    return *p;
}
static inline float __int_as_float(int v)
{
    float f;
    std::memcpy(&f, &v, sizeof f);
    return f;
}
static inline int __float_as_int(float v)
{
    int i;
    std::memcpy(&i, &v, sizeof i);
    return i;
}
static inline float rsqrtf(float v)
{
    return 1.0f / sqrtf(v);
}
template <typename T> static inline T min(T a, T b)
{
    return b < a ? b : a;
}
template <typename T> static inline T max(T a, T b)
{
    return a < b ? b : a;
}

/** What a conditional node of a graph asks, as on a card. */
typedef unsigned long long cudaGraphConditionalHandle;
static inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value)
{
    __atomic_store_n((unsigned *)(uintptr_t)handle, value, __ATOMIC_RELAXED);
}

/** Keep the thread busy, as a kernel that polls the clock does. */
static inline void cusim_spin_ns(unsigned long long ns)
{
    timespec start, now;

    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((unsigned long long)(now.tv_sec - start.tv_sec) * 1000000000ull + (unsigned long long)now.tv_nsec -
               (unsigned long long)start.tv_nsec <
           ns);
}

/* ---- from a kernel to its entry ------------------------------------------------------------------------------------ */

namespace cusim
{
template <auto Kernel> struct kernel;

template <typename... A, void (*Kernel)(A...)> struct kernel<Kernel> {
    static constexpr unsigned count = sizeof...(A);
    static inline const cusim_param params[count + 1] = {{(unsigned)sizeof(A), (unsigned)alignof(A)}..., {0, 0}};

    /* Parameter bytes have no alignment of their own. */
    template <typename T> static T load(const void *from)
    {
        T value;

        std::memcpy(static_cast<void *>(&value), from, sizeof value);
        return value;
    }

    template <size_t... I> static void each(const cusim_grid *g, std::index_sequence<I...>)
    {
        [[maybe_unused]] const std::tuple<A...> args{load<A>(g->params[I])...};

        gridDim = dim3(g->grid[0], g->grid[1], g->grid[2]);
        blockDim = dim3(g->block[0], g->block[1], g->block[2]);
        for (unsigned bz = 0; bz < g->grid[2]; bz++)
            for (unsigned by = 0; by < g->grid[1]; by++)
                for (unsigned bx = 0; bx < g->grid[0]; bx++) {
                    blockIdx = {bx, by, bz};
                    for (unsigned z = 0; z < g->block[2]; z++)
                        for (unsigned y = 0; y < g->block[1]; y++)
                            for (unsigned x = 0; x < g->block[0]; x++) {
                                threadIdx = {x, y, z};
                                Kernel(std::get<I>(args)...);
                            }
                }
    }

    static void run(const cusim_grid *g)
    {
        each(g, std::make_index_sequence<count>{});
    }
};
} // namespace cusim

/** One kernel of a pack, by the name it has in the PTX. Kernels are `extern "C" __global__`. */
#define CUSIM_KERNEL(name)                                                                                                       \
    {                                                                                                                            \
#name, &cusim::kernel < &name> ::run, cusim::kernel < &name> ::params, cusim::kernel < &name> ::count                    \
    }

/** The pack. Once per shared object. */
#define CUSIM_PACK(...)                                                                                                          \
    static const cusim_kernel cusim_kernels[] = {__VA_ARGS__};                                                                   \
    extern "C" __attribute__((visibility("default"))) const cusim_pack cusim_pack_table;                                         \
    extern "C" const cusim_pack cusim_pack_table = {CUSIM_PACK_ABI, (unsigned)(sizeof cusim_kernels / sizeof *cusim_kernels),    \
                                                    cusim_kernels};

/** The `__device__` variables that a program looks up by name, once per shared object: CUSIM_VARIABLES(CUSIM_VARIABLE(a)).
 * Without this line a variable has an address, but the kernels have another. */
#define CUSIM_VARIABLE(name)                                                                                                     \
    {                                                                                                                            \
#name, &name, sizeof name                                                                                                \
    }
#define CUSIM_VARIABLES(...)                                                                                                     \
    extern "C" __attribute__((visibility("default"))) const cusim_variable cusim_variable_table[];                               \
    extern "C" const cusim_variable cusim_variable_table[] = {__VA_ARGS__, {nullptr, nullptr, 0}};

#endif /* __cplusplus */
#endif
