/* Inside a pin, and the session's index of pins. */
#ifndef STEPGRAPH_PIN_P_H
#define STEPGRAPH_PIN_P_H

#include "session_p.h"

typedef struct sg__pin_group sg__pin_group;

struct stepgraph_pin {
    stepgraph_session *session;
    sg__pin_group *group;
    const char *name; /* In the group's storage. */
    uint64_t name_hash;
    stepgraph_role role;
    stepgraph_type type;
    bool in_arena; /* It is the memory of an arena, which alone may destroy it. */
    bool adopted;
    bool verifiable;     /* The driver can tell whether the adopted memory is still the same. */
    CUdeviceptr address; /* The master. */
    uint64_t bytes;
    uint64_t buffer_id;        /* Of adopted memory: never used again by the driver. */
    CUdeviceptr former;        /* Where its value stood before the last commit outside a recording; 0: nowhere. */
    unsigned int users;        /* Live graphs that refer to it, */
    unsigned int images;       /* and snapshots that will be put back. */
    uint64_t given_serial;     /* The last commit that names it, */
    uint64_t commit_serial;    /* and the last that writes it. */

    /* Feeds and cells; the bank is NULL for other roles. */
    sg__bank *bank;
    stepgraph_pin *next_in_bank, **link_in_bank; /* The second: what points here. */
    uint64_t offset;     /* In the bank's slots and in its device memory; of other roles: in the group's. */
    unsigned int slot;   /* The slot that holds the latest value. */
    uint64_t fed_round;  /* The bank's round in which it was fed last. */
    uint64_t feeds;      /* Times it was fed. */
    uint64_t fed_at;     /* The session's count of feeds when it was fed last; 0: never. */
    uint64_t fed_bytes;  /* How many bytes the last time; behind them are zeros. */
};

/* Pins that one call made: one allocation on the host, and one on the device for those whose memory is the library's and no bank's. Gone with
 * the last of them. */
struct sg__pin_group {
    size_t n, alive;
    CUdeviceptr memory; /* 0: none. */
    stepgraph_pin pins[]; /* And their names behind them. */
};

/* The pin that holds address, or NULL. */
stepgraph_pin *sg__pin_at(const stepgraph_session *session, CUdeviceptr address);

/* Index of the first pin that ends beyond address; n_pins if there is none. */
size_t sg__pin_index(const stepgraph_session *session, CUdeviceptr address);

/* Whether an adopted pin's memory is still what it was. Words in the record if not. */
stepgraph_status sg__pin_check(const stepgraph_pin *pin);
/* The same of many pins in a row: neighbours that were adopted from one allocation are one question. *known: 0 before the first. */
stepgraph_status sg__pin_check_next(const stepgraph_pin *pin, unsigned long long *known);
/* Of all of them, before the first is copied: half a checkpoint is none. */
stepgraph_status sg__pins_check(size_t n, stepgraph_pin *const *pins);

/* Room for n in session->ranges and session->range_pins, where a call gathers its list. */
stepgraph_status sg__ranges_room(stepgraph_session *session, size_t n);

/* Copy n ranges of device memory on the session's stream, outside a recording, in one launch. Works on a copy of the list. */
stepgraph_status sg__commit_now(stepgraph_session *session, const sg__range *ranges, size_t n);

#endif
