/* The argument bytes of one kernel node, in whichever of the two forms it holds them; and the operands of other nodes. */
#ifndef STEPGRAPH_GRAPH_ARGUMENTS_H
#define STEPGRAPH_GRAPH_ARGUMENTS_H

#include <string.h>

#include "layout.h"
#include "rows.h"

typedef struct sg__arguments {
    CUDA_KERNEL_NODE_PARAMS_v1 params; /* What it points to belongs to the node and must not be written. */
    const sg__layout *layout;
    const unsigned char *packed;
    size_t packed_bytes;
    unsigned char masked[SG__MASKED_MOST]; /* The last argument that was asked for of which some bytes are not read. */
} sg__arguments;

/* Before the driver is asked. What is masked is written before it is read. */
static inline void sg__arguments_begin(sg__arguments *arguments, const sg__layout *layout)
{
    memset(&arguments->params, 0, sizeof arguments->params);
    arguments->layout = layout;
}

/* From params and layout: find the packed form, which is pairs of tag and value. */
static inline void sg__arguments_open(sg__arguments *arguments)
{
    void **extra = arguments->params.extra;

    arguments->packed = NULL;
    arguments->packed_bytes = 0;
    if (arguments->params.kernelParams != NULL || extra == NULL)
        return;
    for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            arguments->packed = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            memcpy(&arguments->packed_bytes, extra[i + 1], sizeof arguments->packed_bytes);
    }
}

/* Argument i as the node holds it, and how many of its bytes: the packed form may end within an argument, as that of NCCL does, whose kernels
 * take 4096 bytes and are given as many as a collective needs. NULL where it holds none. */
static inline const unsigned char *sg__argument_held(const sg__arguments *arguments, uint32_t i, size_t *bytes)
{
    size_t offset = arguments->layout->arguments[i].offset;

    *bytes = arguments->layout->arguments[i].bytes;
    if (arguments->params.kernelParams != NULL)
        return arguments->params.kernelParams[i];
    if (arguments->packed == NULL || offset >= arguments->packed_bytes)
        return NULL;
    if (*bytes > arguments->packed_bytes - offset)
        *bytes = arguments->packed_bytes - offset;
    return arguments->packed + offset;
}

/* The same, with zeros for what no kernel reads. Valid until the next one is asked for. */
static inline const unsigned char *sg__argument(sg__arguments *arguments, uint32_t i, size_t *bytes)
{
    const unsigned char *held = sg__argument_held(arguments, i, bytes), *unread = arguments->layout->arguments[i].unread;

    if (unread == NULL || held == NULL)
        return held;
    for (size_t k = 0; k < *bytes; k++)
        arguments->masked[k] = held[k] & (unsigned char)~unread[k];
    return arguments->masked;
}

/* Of a memory operation that writes a value or waits for one: how many bytes it has. 0: it is another one. */
static inline uint32_t sg__memory_operation_bytes(const CUstreamBatchMemOpParams *x)
{
    if (x->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || x->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32)
        return 4;
    return x->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 || x->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ? 8 : 0;
}

static inline bool sg__memory_operation_writes(const CUstreamBatchMemOpParams *x)
{
    return x->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || x->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

/* What a copy reads, what it writes, and what a set writes. */
static inline sg__rows sg__rows_of_source(const CUDA_MEMCPY3D *copy)
{
    return (sg__rows){copy->WidthInBytes, copy->Height, copy->Depth, copy->srcPitch, copy->srcHeight};
}

static inline sg__rows sg__rows_of_destination(const CUDA_MEMCPY3D *copy)
{
    return (sg__rows){copy->WidthInBytes, copy->Height, copy->Depth, copy->dstPitch, copy->dstHeight};
}

static inline sg__rows sg__rows_of_set(const CUDA_MEMSET_NODE_PARAMS *set)
{
    return (sg__rows){set->width * set->elementSize, set->height, 1, set->pitch, 0};
}

/* Where a copy begins in one of its operands. */
static inline uint64_t sg__copy_source(const CUDA_MEMCPY3D *copy)
{
    uint64_t start = copy->srcMemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)copy->srcHost : copy->srcDevice;

    return start + copy->srcXInBytes + (copy->srcY + copy->srcZ * copy->srcHeight) * copy->srcPitch;
}

static inline uint64_t sg__copy_destination(const CUDA_MEMCPY3D *copy)
{
    uint64_t start = copy->dstMemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)copy->dstHost : copy->dstDevice;

    return start + copy->dstXInBytes + (copy->dstY + copy->dstZ * copy->dstHeight) * copy->dstPitch;
}

#endif
