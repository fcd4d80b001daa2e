#include "kernels.h"

#include "../error.h"
#include "kernels_ptx.h"

/* Threads of one block: a chunk of 16 KiB is four 16-byte words for each. */
#define THREADS 256u
/* Blocks of 256 threads that one multiprocessor holds at a time. */
#define BLOCKS_PER_MULTIPROCESSOR 8u

stepgraph_status sg__kernels_load(const sg__driver *driver, sg__kernels *kernels, int multiprocessors)
{
    stepgraph_status status;

    SG__CU(driver, ModuleLoadData, &kernels->module, kernels_ptx);
    /* Looking a function up loads it: a first launch inside a recording would otherwise wait for the whole device. */
    SG__CU(driver, ModuleGetFunction, &kernels->copy, kernels->module, "stepgraph_copy");
    kernels->max_blocks = (unsigned int)multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    return STEPGRAPH_OK;

fail:
    sg__kernels_unload(driver, kernels);
    return sg__fail_prefix(status, "the library's own kernels cannot be loaded%s: ",
                           driver->software ? " (cusim finds them through CUSIM_KERNELS)" : "");
}

void sg__kernels_unload(const sg__driver *driver, sg__kernels *kernels)
{
    if (kernels->module != NULL)
        driver->ModuleUnload(kernels->module);
    kernels->module = NULL;
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

CUresult sg__kernels_copy(const sg__driver *driver, const sg__kernels *kernels, CUstream stream, CUdeviceptr table, size_t n,
                          uint64_t chunks)
{
    unsigned int count = (unsigned int)n;
    unsigned int blocks = chunks < kernels->max_blocks ? (unsigned int)chunks : kernels->max_blocks;
    unsigned long long all = chunks;
    void *arguments[] = {&table, &count, &all};

    return driver->LaunchKernel(kernels->copy, blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL);
}
