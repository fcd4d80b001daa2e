/*
 * Inside a comparison of recordings.
 *
 * compare.c holds recordings against each other and says of each word that differs what it is; compare_report.c makes findings of it;
 * compare_addresses.c knows addresses, and those that no kernel reads; compare_values.c asks what the bytes of a word are in all recordings.
 */
#ifndef STEPGRAPH_COMPARE_P_H
#define STEPGRAPH_COMPARE_P_H

#include "audit_p.h"

/* Where an address of recording g was found. */
typedef struct sg__found {
    CUdeviceptr address; /* 0: nothing yet. */
    size_t g;
    sg__place place;
} sg__found;

typedef struct sg__comparison {
    const stepgraph_step **steps; /* Recordings of step k, then those of step k + 1. */
    size_t n_a, n;
    size_t *by_time; /* Their indices, the one that was recorded first in front. */
    stepgraph_audit *audit;
    sg__host_memory host;
    sg__values addresses, halves; /* What is known of numbers: of the host's memory, or not. */
    sg__found places[128];        /* Of them, the last that were looked for: each word is asked about several times. */
    bool entered;                 /* The session's context is current, since the driver was asked. */
    bool bytes;                   /* Addresses may stand anywhere in an argument. */
    struct {
        uint32_t node, argument, told[4];
        size_t n;
    } packed; /* Where the last of them stand: they may have shown in the word before. */
} sg__comparison;

/* What a finding is about: a word of all recordings, or a part of it. */
typedef struct sg__change {
    const sg__graph_difference *d;
    uint32_t offset, bytes;
    size_t other; /* The recording that is held against the first, */
    uint64_t before, after; /* and what each of the two has. */
} sg__change;

/* What four bytes of a struct are. */
typedef struct sg__half {
    sg__change change;
    uint32_t bytes; /* How many of them are a value. */
    bool counter;   /* They are, but only of a counter that seems to be left over. */
} sg__half;

/* ---- compare_values.c -------------------------------------------------------------------------------------------- */

/* The recordings after the first, those of step k + 1 before those of step k: 1 to n - 1. */
size_t sg__compare_other(const sg__comparison *c, size_t i);

/* Some bytes of the word, in one recording. */
static inline uint64_t sg__compare_part(const sg__graph_difference *d, size_t g, uint32_t at, uint32_t bytes)
{
    return d->values[g] >> 8 * at & (bytes < 8 ? ((uint64_t)1 << 8 * bytes) - 1 : UINT64_MAX);
}

/* A struct may hold padding, and several values in one word. An argument of 1, 2, 4 or 8 bytes is taken for one value. */
static inline bool sg__compare_in_struct(const sg__graph_difference *d)
{
    return d->extent > 8 || (d->extent & (d->extent - 1)) != 0;
}

static inline bool sg__compare_is_plain_float(uint32_t bits)
{
    uint32_t exponent = bits >> 23 & 0xff;

    return bits == 0 || (exponent > 127 - 40 && exponent < 127 + 40);
}

/* A part of a word, with the first recording that has another value there; false: none has. */
bool sg__compare_changes(const sg__comparison *c, const sg__graph_difference *d, uint32_t at, uint32_t bytes, sg__change *out);

/* The bits of a part that differ between recordings of the same step, and those that are not the same in all recordings. */
uint64_t sg__compare_noise(const sg__comparison *c, const sg__graph_difference *d, uint32_t at, uint32_t bytes);
uint64_t sg__compare_unlike(const sg__comparison *c, const sg__graph_difference *d, uint32_t at, uint32_t bytes);

/* By how much four bytes go on from a recording to the one after it; and whether four or fewer do by the same amount each time, as what a host counts does. Two
 * recordings cannot show that. */
uint32_t sg__compare_goes_on_by(const sg__comparison *c, const sg__graph_difference *d, size_t turn, uint32_t at);
bool sg__compare_is_steady(const sg__comparison *c, const sg__graph_difference *d, uint32_t at, uint32_t bytes);

/* Bytes that a host may well leave as they are: in a large struct; or the one byte of a functor without members, unless it is true or false. */
bool sg__compare_may_be_left_over(const sg__comparison *c, const sg__graph_difference *d);

/* Bytes of an argument, which may be a struct, that look as if nobody had set them. */
bool sg__compare_may_be_unset(const sg__comparison *c, const sg__change *x);

/* A fault, unless it may be left over and was not seen often enough to be sure that it is not. */
sg__weight sg__compare_weight(const sg__comparison *c, const sg__graph_difference *d);

/* Both steps were recorded more than once, and each time the value was that of the step. */
bool sg__compare_is_told_by_step(const sg__comparison *c, const sg__graph_difference *d);

/* ---- compare_addresses.c ----------------------------------------------------------------------------------------- */

/* As sg__resolve(), for a recording, and quick. */
sg__place sg__compare_place(sg__comparison *c, size_t g, CUdeviceptr address);

/* A null pointer may become a real one; other small numbers are no addresses. */
static inline bool sg__compare_like_address(uint64_t value)
{
    return value == 0 || (value >= 0x10000 && value < (uint64_t)1 << 57);
}

bool sg__compare_is_known(sg__comparison *c, size_t g, uint64_t value);

/* A library's workspace that the graph allocates, and our own lists, stand elsewhere in each recording. */
bool sg__compare_is_the_same(const sg__comparison *c, CUdeviceptr before, size_t g, CUdeviceptr after);

/* An address that stands for other memory in some recording. */
bool sg__compare_moves(const sg__comparison *c, const sg__graph_difference *d, sg__change *out);

/* An address of the host's own memory, which no kernel can use: page-locked memory is the driver's too. */
bool sg__compare_is_host_address(sg__comparison *c, size_t g, uint64_t value);

/* Whether the word is an address of host memory in some recording, so that whatever it is in the others no kernel reads it. */
bool sg__compare_is_left_over(sg__comparison *c, const sg__change *x);

/* Four bytes of a large struct that are, in each recording, the lower half of an address in the host's code, where a call returns to. */
bool sg__compare_is_half_an_address(sg__comparison *c, const sg__half *h);

/* ---- compare_report.c -------------------------------------------------------------------------------------------- */

/* whole: the word whose upper half changed and may be one of a double; else NULL. */
stepgraph_status sg__compare_say_scalar(const sg__comparison *c, const sg__change *x, const sg__graph_difference *whole);

/* Bytes that are no value of the step's; why says how that shows, and lives for ever. */
stepgraph_status sg__compare_say_no_value(const sg__comparison *c, const sg__change *x, const char *why);

/* A counter that was left over, by all that shows. */
stepgraph_status sg__compare_say_counter(const sg__comparison *c, const sg__change *x);

stepgraph_status sg__compare_say_pointer(sg__comparison *c, const sg__change *x);
stepgraph_status sg__compare_say_topology(const sg__comparison *c, uint32_t node, const char *text);

/* An event that the host may wait for, or only the graph. */
stepgraph_status sg__compare_say_event(const sg__comparison *c, uint32_t node, const char *text);

/* Recording g does not commit the pin of commit `index`, in that call. */
stepgraph_status sg__compare_say_target(sg__comparison *c, size_t index, size_t g);
/* Other numbers of new values. */
stepgraph_status sg__compare_say_sources(sg__comparison *c, size_t g);

/* Commit `index` reads from another address in recording g than in the first. */
stepgraph_status sg__compare_say_source(sg__comparison *c, size_t index, size_t g, CUdeviceptr after);

/* The pin of both addresses, if it is one and SCRATCH, and moving within it is no fault. */
const stepgraph_pin *sg__compare_shared_scratch(sg__comparison *c, CUdeviceptr before, size_t g, CUdeviceptr after, uint32_t node);

#endif
