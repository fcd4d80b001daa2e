/* This process: its memory, and where that is as far as it is known without a question to the system: segments of loaded objects, the heap, the first
 * thread's stack. Most addresses of the host's that are left over in arguments are of these. */
#ifndef STEPGRAPH_PROCESS_H
#define STEPGRAPH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sg__mapping {
    uint64_t start, end;
    bool writable, executable;
} sg__mapping;

/* Code of an object, within one 4 GiB. */
typedef struct sg__code {
    uint64_t start, end;
    uint32_t furthest; /* The last lower half that this one or one before it has. */
} sg__code;

/* Begins as all zero. */
typedef struct sg__process {
    pid_t id;
    unsigned long long loaded, unloaded; /* Objects so far, as the loader counts. */
    sg__mapping *segments;               /* Of all objects, by address, */
    sg__code *code;                      /* and those of them that are code, by the lower halves of their addresses. */
    size_t n, n_code, room;
    bool made;
} sg__process;

/* Of n mappings that are sorted and do not overlap, the one that holds the address; NULL: none. */
const sg__mapping *sg__mapping_at(const sg__mapping *mappings, size_t n, uint64_t address);

/* As it is now: little to do where no object came or went. */
void sg__process_renew(sg__process *process);
void sg__process_free(sg__process *process);

/* The segment of an object at an address, or NULL. */
const sg__mapping *sg__process_segment(const sg__process *process, uint64_t address);
/* Make code of the segments, as sg__process_renew() does. */
void sg__process_list_code(sg__process *process);
/* How many pieces of code begin at a lower half or below it: those that hold it are among them, each with a furthest that is not less. */
size_t sg__process_code(const sg__process *process, uint32_t low);
bool sg__process_heap(uint64_t address);
/* It grows downwards: what is set aside for it counts. */
bool sg__process_stack(uint64_t address);

/* Upper halves of addresses: of the heap, and of stacks and mappings. */
uint32_t sg__process_upper_heap(void);
uint32_t sg__process_upper_stack(void);

/* What was known of its memory may be gone by now, so the system reads it. */
/* Whether there is something to read. 1; 0: there is not; -1: the system does not say. Costs 1 us or more. */
int sg__process_ask(const sg__process *process, uint64_t address);
/* False: not all of it can be read. */
bool sg__process_read(const sg__process *process, uint64_t address, void *to, size_t bytes);

#endif
