/* What the preloaded hooks say. The functions are found by name: where they are not preloaded, nothing is counted. */
#ifndef BENCH_HOOKS_H
#define BENCH_HOOKS_H

struct bench_hook_counts {
    unsigned long allocations; /* malloc, calloc and realloc. */
    unsigned long locks;
    long bytes; /* Allocated and not freed since. */
};

void bench_hooks_begin(void (*in_driver)(void));
struct bench_hook_counts bench_hooks_end(void);

#endif
