/* The exported entry points and the gate that every one of them passes. */
#ifndef CUSIM_ENTRIES_H
#define CUSIM_ENTRIES_H

#include <stdbool.h>

#include "abi_more.h"

/* What the gate checks before an entry runs. */
enum {
    E_BARE = 1,   /* Works before cuInit. */
    E_CB = 2,     /* May be called from a host function; the others give 800 there. */
    E_CTX = 4,    /* Needs a current context: 201 without one. */
    E_UNSAFE = 8, /* Refused by the mode rule while a stream captures: 900, and the captures that forbade it die. */
    E_FAULT = 16  /* Refused with the context's own error once a fault has happened in it. */
};

#define CS_EXPORT __attribute__((visibility("default")))

#define X(base, symbol, version, rules, params) CS_EXPORT CUresult symbol params;
#include "entries.def"
#undef X

enum cs_entry {
#define X(base, symbol, version, rules, params) ENTRY_##symbol,
#include "entries.def"
#undef X
    CS_ENTRIES
};

struct cs_entry_info {
    const char *base;
    const char *symbol;
    void (*function)(void);
    int version;
    unsigned rules;
};

extern const struct cs_entry_info cs_entry_table[CS_ENTRIES];

/* The per-thread form of an entry, or NULL; and how it tells the gate that it is one. */
extern void (*const cs_per_thread_table[CS_ENTRIES])(void);
extern __thread int cs_per_thread_next __attribute__((tls_model("initial-exec"), visibility("hidden")));

struct cs_scope {
    bool locked;
};

CUresult cs_enter(struct cs_scope *scope, enum cs_entry entry);
void cs_leave(struct cs_scope *scope);

/* First line of every entry: count, fail on request, check, take the lock; leaving the function gives the lock back. */
#define ENTER(symbol)                                                                                                            \
    struct cs_scope scope_ __attribute__((cleanup(cs_leave)));                                                                   \
    CUresult enter_ = cs_enter(&scope_, ENTRY_##symbol);                                                                         \
    if (enter_ != CUDA_SUCCESS)                                                                                                  \
    return enter_

#endif
