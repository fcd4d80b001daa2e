/*
 * Snapshots: images of many pins at one moment, in device memory or, where that is short, in page-locked host memory.
 *
 * An image holds the pins one behind the other, group by group. In device memory it is saved, put back and compared by one launch a group.
 * One in host memory travels through a staging buffer, window by window.
 */
#ifndef STEPGRAPH_CHECK_SHOT_H
#define STEPGRAPH_CHECK_SHOT_H

#include "pin_p.h"

/* Bits, so that a call can name several. */
typedef enum sg__group {
    SG__GROUP_STATE = 1,
    SG__GROUP_INPUT = 2, /* FEED and CELL. */
    SG__GROUP_OUTPUT = 4,
    SG__GROUP_SCRATCH = 8
} sg__group;

/* What is known about one pin after a comparison, and after measuring. */
typedef struct sg__shot_item {
    stepgraph_pin *pin;
    sg__group group;
    uint64_t offset; /* In an image. */
    uint64_t bytes;  /* That differ, */
    uint64_t first;  /* the first of them; all ones: none does, */
    uint64_t kept;   /* and of an OUTPUT, bytes that are still as it was filled. */
    sg__distance distance;
    uint64_t saved_bits, live_bits; /* Of the first element that differs. */
} sg__shot_item;

typedef struct sg__shot {
    CUdeviceptr device;  /* One of both, */
    unsigned char *host; /* or neither: it was not made. */
    size_t table;        /* Of one on the device: index of its ranges from the pins; those to the pins come next. */
} sg__shot;

/* Part of an image that travels together; one group. */
typedef struct sg__window {
    sg__group group;
    size_t first, n; /* Pieces. */
    uint64_t chunks;
    uint64_t offset, bytes;
} sg__window;

/* Part of a pin in a window. */
typedef struct sg__piece {
    size_t item;
    uint64_t offset, bytes; /* In the pin. */
} sg__piece;

typedef struct sg__cut {
    sg__window *windows;
    size_t n_windows;
    sg__piece *pieces;
    size_t n_pieces;
} sg__cut;

#define SG__SHOTS_MAX 66u

typedef struct sg__shots {
    stepgraph_session *session;
    sg__shot_item *items;
    size_t n_items;
    uint64_t bytes;     /* Of one image. */
    uint64_t pin_bytes; /* Of the pins in it. */
    sg__shot shot[SG__SHOTS_MAX];
    unsigned int n_shots;
    uint64_t device_left, host_left;   /* What may still be taken, */
    uint64_t device_bytes, host_bytes; /* and what was. */

    sg__cut whole, staged; /* Of an image on the device, and of one that is staged. */
    CUdeviceptr staging;
    size_t staging_table;
    uint64_t window_bytes;

    /* One block on the device and its page-locked twin: tables of ranges, results, and how results begin. */
    CUdeviceptr work;
    unsigned char *work_host;
    size_t tables; /* Ranges that fit. */
    size_t tables_used;
    bool staged_results; /* The results are about pieces of the staged cut. */
    uint64_t found_at, kept_at, distance_at, initial_at, element_at, work_bytes;
} sg__shots;

/* Which pins are wanted, of those of some groups. NULL: all. */
typedef bool (*sg__pin_filter)(const stepgraph_pin *pin, const void *user);

/* Gather the session's pins of these groups. No image is made yet. Free the result also after a failure. The context is current for all. */
stepgraph_status sg__shots_make(sg__shots *shots, stepgraph_session *session, unsigned int groups, sg__pin_filter filter, const void *user,
                                unsigned int room, uint64_t device_limit, uint64_t host_limit);
void sg__shots_free(sg__shots *shots);

/* Make one more image; its index. false: no room, within the limits or at all. */
bool sg__shot_add(sg__shots *shots, unsigned int *index_out);

/* Enqueued on the session's stream: pins to image, image to pins. */
stepgraph_status sg__shot_save(sg__shots *shots, unsigned int index);
stepgraph_status sg__shot_save_groups(sg__shots *shots, unsigned int index, unsigned int groups);
stepgraph_status sg__shot_restore(sg__shots *shots, unsigned int index, unsigned int groups);
/* One pin only, from an image. */
stepgraph_status sg__shot_restore_one(sg__shots *shots, unsigned int index, size_t item);

/* Compare pins with an image; OUTPUT and SCRATCH were filled with `fill` before the image was made and with `fill_now` before the pins were
 * written. To be waited for; then sg__shots_found() sets what the items say and answers how many differ. */
stepgraph_status sg__shot_compare(sg__shots *shots, unsigned int index, unsigned int groups, unsigned int fill, unsigned int fill_now);
size_t sg__shots_found(sg__shots *shots, unsigned int groups);

/* How far those that differ are apart. To be waited for; then sg__shots_distances(); to be waited for; then sg__shots_elements(). */
stepgraph_status sg__shot_measure(sg__shots *shots, unsigned int index, unsigned int fill, unsigned int fill_now);
stepgraph_status sg__shots_distances(sg__shots *shots, unsigned int index);
void sg__shots_elements(sg__shots *shots);

#endif
