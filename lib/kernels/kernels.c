#include "kernels.h"

#include "../error.h"
#include "kernels_ptx.h"

/* Threads of one block: a chunk of 16 KiB is four 16-byte words for each. */
#define THREADS 256u
/* Of a block that copies slices: each thread has two words of the shortest ones, on their way at once. */
#define SLICE_THREADS 128u
#define SLICE_LEAST (SLICE_THREADS * 2u * 16u)
/* Up to so many slices they are as short as that; from there on they get longer, so that the table does not. */
#define SLICES_ENOUGH 32768u
/* Blocks of 256 threads that one multiprocessor holds at a time. */
#define BLOCKS_PER_MULTIPROCESSOR 8u

stepgraph_status sg__kernels_load(const sg__driver *driver, sg__kernels *kernels, int multiprocessors)
{
    const struct {
        CUfunction *function;
        const char *name;
    } all[] = {
        {&kernels->commit, "stepgraph_commit"},     {&kernels->copy, "stepgraph_copy"},
        {&kernels->fill, "stepgraph_fill"},         {&kernels->set, "stepgraph_set"},
        {&kernels->compare, "stepgraph_compare"},   {&kernels->compare_filled, "stepgraph_compare_filled"},
        {&kernels->distance, "stepgraph_distance"}, {&kernels->flip, "stepgraph_flip"},
        {&kernels->repeat, "stepgraph_repeat"},     {&kernels->delay, "stepgraph_delay"},
    };
    stepgraph_status status;

    SG__CU(driver, ModuleLoadData, &kernels->module, kernels_ptx);
    /* Looking a function up loads it: a first launch inside a recording would otherwise wait for the whole device. */
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        SG__CU(driver, ModuleGetFunction, all[i].function, kernels->module, all[i].name);
    kernels->max_blocks = (unsigned int)multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    return STEPGRAPH_OK;

fail:
    if (kernels->module != NULL)
        driver->ModuleUnload(kernels->module);
    kernels->module = NULL;
    return sg__fail_prefix(status, "the library's own kernels cannot be loaded%s: ",
                           driver->software ? " (add stepgraph-kernels.so, of the build, to CUSIM_KERNELS)" : "");
}

/* How long the slices are, of ranges with so many bytes in all: a multiple of 16. */
static uint64_t slice_bytes(uint64_t bytes)
{
    uint64_t slice = SLICE_LEAST;

    while (bytes / slice > SLICES_ENOUGH)
        slice *= 2;
    return slice;
}

size_t sg__slices_most(size_t n, uint64_t bytes)
{
    return n + (size_t)(bytes / slice_bytes(bytes));
}

size_t sg__slices_cut(const sg__range *ranges, size_t n, uint64_t bytes, sg__slice *slices)
{
    const uint64_t slice = slice_bytes(bytes);
    size_t made = 0;

    for (size_t i = 0; i < n; i++)
        for (uint64_t at = 0; at < ranges[i].bytes; at += slice)
            slices[made++] = (sg__slice){.to = ranges[i].a + at, .from = ranges[i].b + at,
                                         .bytes = ranges[i].bytes - at < slice ? ranges[i].bytes - at : slice};
    return made;
}

CUresult sg__kernels_commit(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr table, size_t n)
{
    unsigned int count = (unsigned int)n;
    void *arguments[] = {&table, &count};

    return driver->LaunchKernel(kernels->commit, count, 1, 1, SLICE_THREADS, 1, 1, 0, stream, arguments, NULL);
}

uint64_t sg__ranges_number(sg__range *ranges, size_t n)
{
    uint64_t chunks = 0;

    for (size_t i = 0; i < n; i++) {
        ranges[i].first_chunk = chunks;
        chunks += (ranges[i].bytes + SG__CHUNK_BYTES - 1) / SG__CHUNK_BYTES;
    }
    return chunks;
}

static CUresult launch(const sg__driver *driver, const sg__kernels *kernels, CUfunction function, CUstream stream, uint64_t blocks,
                       void **arguments)
{
    unsigned int all = blocks < kernels->max_blocks ? (unsigned int)blocks : kernels->max_blocks;

    return driver->LaunchKernel(function, all, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL);
}

static uint64_t blocks_of(uint64_t threads)
{
    return (threads + THREADS - 1) / THREADS;
}

CUresult sg__kernels_copy(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr table, size_t n,
                          uint64_t chunks)
{
    unsigned int count = (unsigned int)n;
    unsigned long long all = chunks;
    void *arguments[] = {&table, &count, &all};

    return launch(driver, kernels, kernels->copy, stream, chunks, arguments);
}

bool sg__kernels_can_set(const CUDA_MEMSET_NODE_PARAMS *set)
{
    unsigned int element = set->elementSize;

    return (element == 1 || element == 2 || element == 4) && set->width > 0 && set->height > 0 && set->dst % element == 0 &&
           (set->height == 1 || set->pitch % element == 0) && (element == 4 || set->value >> 8 * element == 0);
}

void sg__kernels_set(const sg__kernels *kernels, CUcontext context, const CUDA_MEMSET_NODE_PARAMS *set, sg__set_launch *out)
{
    uint64_t blocks = blocks_of((set->width * set->elementSize + 15) / 16 * set->height);

    *out = (sg__set_launch){.to = set->dst, .pitch = set->pitch, .value = set->value, .element = set->elementSize, .width = set->width,
                            .height = set->height};
    out->arguments[0] = &out->to;
    out->arguments[1] = &out->pitch;
    out->arguments[2] = &out->value;
    out->arguments[3] = &out->element;
    out->arguments[4] = &out->width;
    out->arguments[5] = &out->height;
    out->params = (CUDA_KERNEL_NODE_PARAMS){.func = kernels->set,
                                            .gridDimX = blocks < kernels->max_blocks ? (unsigned int)blocks : kernels->max_blocks,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = THREADS,
                                            .blockDimY = 1,
                                            .blockDimZ = 1,
                                            .kernelParams = out->arguments,
                                            .ctx = context};
}

CUresult sg__kernels_fill(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr table, size_t n,
                          uint64_t chunks)
{
    unsigned int count = (unsigned int)n;
    unsigned long long all = chunks;
    void *arguments[] = {&table, &count, &all};

    return launch(driver, kernels, kernels->fill, stream, chunks, arguments);
}

CUresult sg__kernels_compare(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr table, size_t n,
                             uint64_t chunks, CUdeviceptr found)
{
    unsigned int count = (unsigned int)n;
    unsigned long long all = chunks;
    void *arguments[] = {&table, &count, &all, &found};

    return launch(driver, kernels, kernels->compare, stream, chunks, arguments);
}

CUresult sg__kernels_compare_filled(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr table, size_t n,
                                    uint64_t chunks, CUdeviceptr found, CUdeviceptr kept, unsigned int fill_a, unsigned int fill_b)
{
    unsigned int count = (unsigned int)n;
    unsigned long long all = chunks;
    void *arguments[] = {&table, &count, &all, &found, &kept, &fill_a, &fill_b};

    return launch(driver, kernels, kernels->compare_filled, stream, chunks, arguments);
}

CUresult sg__kernels_distance(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr a, CUdeviceptr b,
                              uint64_t n, uint64_t base, unsigned int type, unsigned int fill_a, unsigned int fill_b, CUdeviceptr found)
{
    unsigned long long elements = n, first = base;
    void *arguments[] = {&a, &b, &elements, &first, &type, &fill_a, &fill_b, &found};

    return launch(driver, kernels, kernels->distance, stream, blocks_of(n), arguments);
}

CUresult sg__kernels_flip(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr at, uint64_t n,
                          unsigned int stride, unsigned int mask)
{
    unsigned long long bytes = n;
    void *arguments[] = {&at, &bytes, &stride, &mask};

    return launch(driver, kernels, kernels->flip, stream, blocks_of(n), arguments);
}

CUresult sg__kernels_repeat(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr to, uint64_t n,
                            CUdeviceptr from, uint64_t period)
{
    unsigned long long bytes = n, repeated = period;
    void *arguments[] = {&to, &bytes, &from, &repeated};

    return launch(driver, kernels, kernels->repeat, stream, blocks_of(n), arguments);
}

CUresult sg__kernels_delay(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, uint64_t ns)
{
    unsigned long long long_for = ns;
    void *arguments[] = {&long_for};

    return driver->LaunchKernel(kernels->delay, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}
