/* A session's pins by name: a hash table with open addressing, since a host may register ten thousand and look each of them up. */
#ifndef STEPGRAPH_NAMES_H
#define STEPGRAPH_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include <stepgraph/pin.h>

typedef struct sg__names {
    stepgraph_pin **slots; /* NULL: free. */
    size_t n, room;        /* The room is a power of two, or 0. */
} sg__names;

uint64_t sg__name_hash(const char *name);

stepgraph_pin *sg__names_find(const sg__names *names, const char *name);

/* Room for so many more, so that adding them cannot fail. */
stepgraph_status sg__names_reserve(sg__names *names, size_t more);

/* A pin whose name is not among them. Its name_hash is set. */
void sg__names_add(sg__names *names, stepgraph_pin *pin);
/* Nothing happens if it is not among them. */
void sg__names_remove(sg__names *names, const stepgraph_pin *pin);

void sg__names_free(sg__names *names);

#endif
