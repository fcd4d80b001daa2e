/* Memory outside the registry, as a step or a session remembers it. */
#ifndef STEPGRAPH_RESOLVE_TYPES_H
#define STEPGRAPH_RESOLVE_TYPES_H

#include <stdbool.h>

#include "driver/driver.h"

/* Memory that no pin covers, as the driver knew it. */
typedef struct sg__allocation {
    CUdeviceptr start;
    uint64_t bytes;
    uint64_t buffer_id; /* Never used again by the driver: another one later means that the memory was replaced. */
    CUmemorytype type;  /* Device, or page-locked host memory; 0: the driver does not know the address. */
    int device;
    CUcontext context;  /* NULL: that of a pool, a mapping or a graph, which any of the device's may use. */
    bool pool;          /* Of a stream-ordered pool: cannot be verified, and must not be asked about once it is freed. */
    uint32_t node;      /* The first node that refers to it; SG__NO_NODE: a list of commits does. */
    bool reported;      /* A finding names it, */
    bool reported_in_struct; /* or a word of a large struct that points to it. */
    bool copied;        /* An operand of a copy with a host side: looked at before every launch, which would crash otherwise. */
} sg__allocation;

#define SG__NO_NODE UINT32_MAX

/* What is left of an allocation where the question is only whether it is still the same. */
typedef struct sg__look {
    CUdeviceptr address;
    uint64_t buffer_id;
} sg__look;

/* Sorted by start, disjoint. */
typedef struct sg__allocations {
    sg__allocation *items;
    size_t n, room;
} sg__allocations;

#endif
