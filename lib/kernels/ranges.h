/* What the host and the device kernels agree on: the tables of ranges and of slices, and what a comparison finds. */
#ifndef STEPGRAPH_KERNELS_RANGES_H
#define STEPGRAPH_KERNELS_RANGES_H

/* Bytes that one block handles at a time. 16 KiB keeps 132 multiprocessors busy from about 2 MiB on. */
#define SG__CHUNK_BYTES 16384ull

typedef struct sg__range {
    unsigned long long a;           /* Written by copy and fill. */
    unsigned long long b;           /* Read by copy and compare; the byte for fill. */
    unsigned long long bytes;
    unsigned long long first_chunk; /* Chunks of all ranges before this one. */
} sg__range;

/* A commit is cut into slices beforehand: a block that had to look for its range would wait for memory a dozen times before it copies. */
typedef struct sg__slice {
    unsigned long long to, from;
    unsigned long long bytes;
} sg__slice;

typedef struct sg__difference {
    unsigned long long bytes; /* How many differ. */
    unsigned long long first; /* Lowest offset that differs; all ones for none. */
} sg__difference;

/* What nothing was filled with. */
#define SG__NO_FILL 256u

/* How far two ranges of elements are apart. All zero but `first`, which is all ones, before the launch. */
typedef struct sg__distance {
    unsigned long long elements; /* How many differ. */
    unsigned long long first;    /* Index of the first. */
    unsigned long long ulps;     /* Largest distance in units of the last place. */
    unsigned long long largest;  /* Largest difference of two values: the bits of a double, which order like the value. */
    double squares;              /* Sum of the squares of the differences that are finite. */
} sg__distance;

/* 16 bytes moved at once. */
#ifdef __cplusplus
struct alignas(16) sg__vec16 {
    unsigned long long low, high;
};
#endif

#endif
