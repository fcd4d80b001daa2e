#include "hash.h"

#include "../error.h"
#include "hash_ptx.h"

/* A chunk of 16 KiB is four 16-byte words for each. Whole warps. */
#define THREADS 256u

stepgraph_status sg__hash_load(const sg__driver *driver, sg__hash *hash)
{
    stepgraph_status status;

    SG__CU(driver, ModuleLoadData, &hash->module, hash_ptx);
    SG__CU(driver, ModuleGetFunction, &hash->chunks, hash->module, "stepgraph_hash");
    SG__CU(driver, ModuleGetFunction, &hash->judge, hash->module, "stepgraph_judge");
    return STEPGRAPH_OK;

fail:
    if (hash->module != NULL)
        driver->ModuleUnload(hash->module);
    *hash = (sg__hash){0};
    return sg__fail_prefix(status, "the kernels that hash memory cannot be loaded%s: ",
                           driver->software ? " (add stepgraph-kernels.so, of the build, to CUSIM_KERNELS)" : "");
}

static CUresult launch(const sg__driver *driver, const sg__kernels *kernels, CUfunction function, CUstream stream, uint64_t blocks,
                       void **arguments)
{
    unsigned int all = blocks < kernels->max_blocks ? (unsigned int)blocks : kernels->max_blocks;

    return driver->LaunchKernel(function, all, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL);
}

CUresult sg__hash_chunks(const sg__driver *driver, const sg__hash *hash, const sg__kernels *kernels, CUstream stream, CUdeviceptr table,
                         size_t n, uint64_t chunks, CUdeviceptr sums)
{
    unsigned int count = (unsigned int)n;
    unsigned long long all = chunks;
    void *arguments[] = {&table, &count, &all, &sums};

    return launch(driver, kernels, hash->chunks, stream, chunks, arguments);
}

CUresult sg__hash_judge(const sg__driver *driver, const sg__hash *hash, const sg__kernels *kernels, CUstream stream, CUdeviceptr table,
                        size_t n, uint64_t chunks, CUdeviceptr now, CUdeviceptr before, CUdeviceptr mark, unsigned int least, CUdeviceptr hit,
                        CUdeviceptr judged)
{
    unsigned int count = (unsigned int)n;
    unsigned long long all = chunks;
    void *arguments[] = {&table, &count, &all, &now, &before, &mark, &least, &hit, &judged};

    return launch(driver, kernels, hash->judge, stream, (chunks + THREADS - 1) / THREADS, arguments);
}
