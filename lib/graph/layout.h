/* Where a kernel's arguments lie. Asked once per kernel and recording, since a handle may be another kernel's in the next. The question past the last
 * argument, which fails and so takes the driver 1.3 to 3 us (R580), is spared where a C++ kernel of that name was asked about before: the types of
 * its parameters are part of such a name. */
#ifndef STEPGRAPH_GRAPH_LAYOUT_H
#define STEPGRAPH_GRAPH_LAYOUT_H

#include <stdbool.h>

#include "../driver/driver.h"

/* A kernel's name. Held by whoever may want to say it later, also when the kernel's module is gone; made readable only then, since that takes
 * tens of microseconds for the names that templates have. */
typedef struct sg__name sg__name;

/* Bytes of arguments that no kernel reads, as the host says. */
typedef struct sg__unread {
    char *pattern;     /* Of kernels' names. */
    uint32_t argument; /* UINT32_MAX: any. */
    uint32_t argument_bytes, offset, bytes;
} sg__unread;

typedef struct sg__unreads {
    sg__unread *items;
    size_t n;
} sg__unreads;

void sg__unreads_free(sg__unreads *unread);

/* A name that was met before. */
typedef struct sg__known_name {
    sg__name *name;
    uint64_t hash;
    uint16_t arguments; /* 0: unknown, or none. */
} sg__known_name;

/* A hash table; begins as all zero. */
typedef struct sg__kernel_names {
    sg__known_name *slots;
    size_t n, room;
} sg__kernel_names;

/* As sg__name_ask(), and the same name for the same kernel. *known_out is NULL where it will not be remembered; valid until the next call. */
sg__name *sg__kernel_names_ask(sg__kernel_names *names, const sg__driver *driver, CUfunction function, sg__known_name **known_out);
void sg__kernel_names_free(sg__kernel_names *names);

/* What a session knows about kernels, from one recording to the next. Begins as all zero. */
typedef struct sg__known_kernels {
    sg__unreads unread;
    sg__kernel_names names;
} sg__known_kernels;

/* The most bytes of an argument of which some are not read. */
#define SG__MASKED_MOST 256u

typedef struct sg__layout {
    CUfunction function;
    sg__name *name; /* NULL: the driver does not tell. */
    bool known; /* The driver could tell the arguments. */
    bool masked; /* Some bytes of them are not read. */
    uint16_t n;
    struct {
        size_t offset, bytes;
        unsigned char *unread; /* For each byte, 0xff where no kernel reads it; NULL: they may all be read. */
    } *arguments;
} sg__layout;

/* A hash table; begins as all zero. */
typedef struct sg__layouts {
    sg__layout **slots;
    size_t n, room;
    sg__known_kernels *kernels; /* What is known, and what is learnt; NULL: nothing. */
} sg__layouts;

/* NULL where the driver does not tell it. The text is the driver's, and goes with the kernel's module. */
const char *sg__name_ask_raw(const sg__driver *driver, CUfunction function);
/* NULL where the driver does not tell it, or where there is no memory. Held by the caller. */
sg__name *sg__name_new(const char *raw, size_t length);
sg__name *sg__name_ask(const sg__driver *driver, CUfunction function);
sg__name *sg__name_hold(sg__name *name);
void sg__name_drop(sg__name *name);
/* As the driver tells it: that of a C++ kernel is mangled. */
const char *sg__name_raw(const sg__name *name);
/* Readable also where it is a C++ name: whole, and shortened to what fits into a line. Any thread may ask. */
const char *sg__name_whole(sg__name *name);
const char *sg__name_short(sg__name *name);

/* Whether a name fits a pattern with * and ?; and whether a kernel's does, raw or readable. */
bool sg__name_fits(const char *pattern, const char *name);
bool sg__layout_fits(const sg__layout *layout, const char *pattern);

/* Ask, or remember. *layout_out is valid as long as the layouts. */
stepgraph_status sg__layout_of(const sg__driver *driver, sg__layouts *layouts, CUfunction function, const sg__layout **layout_out);
/* Before a graph is read, or made launchable, once more, either of which can crash the process where a kernel's module was unloaded since (R580). */
stepgraph_status sg__layouts_check(const sg__driver *driver, const sg__layouts *layouts);
void sg__layouts_free(sg__layouts *layouts);

#endif
