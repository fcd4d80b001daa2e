/*
 * The memory that a step touches, for whoever runs it and puts everything back: cut into ranges so that what a node declares is a number of whole
 * ones; one or two images of it; and hashes of it at several moments.
 *
 * All calls but those that make, free and tell something are enqueued on the session's stream. What they were given is read when they run, so
 * the stream is waited for before a list of the same purpose is used again.
 */
#ifndef STEPGRAPH_MEMORY_H
#define STEPGRAPH_MEMORY_H

#include "graph/order.h"
#include "kernels/hash.h"
#include "session_p.h"

/* What memory is filled with: a NaN as a float of any width, -1 as an index, and no address. */
#define SG__MEMORY_FILL 0xffu

/* What a node does to a range. */
enum { SG__RANGE_NONE, SG__RANGE_READ, SG__RANGE_WRITTEN };

typedef enum sg__image {
    SG__IMAGE_START, /* As it was in the beginning. */
    SG__IMAGE_OTHER,
    SG__IMAGES
} sg__image;

/* Of lists of ranges. */
typedef enum sg__purpose {
    SG__FETCH,   /* From the other image to memory. */
    SG__STORE,   /* From memory to the other image. */
    SG__FILL,    /* Fill memory. */
    SG__COMPARE, /* Memory with the other image. */
    SG__PURPOSES
} sg__purpose;

typedef struct sg__memory {
    stepgraph_session *session;
    sg__hash hash;
    sg__range *ranges; /* Sorted, disjoint: a is where one begins, b where it stands in an image. */
    size_t n;
    uint64_t chunks, bytes, image_bytes;
    unsigned int n_images;
    CUdeviceptr image[SG__IMAGES];
    void *image_host[SG__IMAGES]; /* The same in page-locked memory, which kernels reach too; NULL: it is on the device. */
    uint64_t device_bytes, host_bytes;

    CUdeviceptr work;         /* Tables of ranges, marks and results, */
    unsigned char *work_host; /* and their page-locked twin. */
    uint64_t work_bytes, marks_at, results_at, hit_at, found_at, initial_at;
    CUdeviceptr hashes; /* One behind the other. */
} sg__memory;

/* All that the accesses reach, and all pins if they are wanted, but for what is a library's own; so many images, and room for so many hashes of all of it. Free the result also
 * after a failure. */
stepgraph_status sg__memory_make(sg__memory *memory, stepgraph_session *session, const sg__access *accesses, size_t n_accesses, bool pins,
                                 unsigned int images, uint32_t hashes, uint64_t device_limit, uint64_t host_limit);
void sg__memory_free(sg__memory *memory);

/* Index of the first range that ends beyond an address. */
size_t sg__memory_index(const sg__memory *memory, CUdeviceptr address);

stepgraph_status sg__memory_save(sg__memory *memory, sg__image image);
stepgraph_status sg__memory_restore(sg__memory *memory, sg__image image);
stepgraph_status sg__memory_fill(sg__memory *memory);
/* The same with some ranges only, by index. */
stepgraph_status sg__memory_some(sg__memory *memory, sg__purpose purpose, const uint32_t *list, size_t n);

/* Hash all of it. */
stepgraph_status sg__memory_hash(sg__memory *memory, uint32_t slot);
/* Hold one hash against another. marks: what is done to each range; a change counts where that is less than `least`. */
stepgraph_status sg__memory_judge(sg__memory *memory, uint32_t now, uint32_t before, const unsigned char *marks, unsigned int least);

/* After waiting: what the last judgement found, the ranges it hit (one byte each), and what the last comparison found, by place in its list. */
sg__judged sg__memory_judged(const sg__memory *memory);
const unsigned char *sg__memory_hits(const sg__memory *memory);
const sg__difference *sg__memory_found(const sg__memory *memory);

#endif
