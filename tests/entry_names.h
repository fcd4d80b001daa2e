/* The names of all driver calls that the library looks up, for tests that let each of them fail or count them. */
#ifndef TESTS_ENTRY_NAMES_H
#define TESTS_ENTRY_NAMES_H

#include "entries.h"

static const char *const entries[] = {
#define X(name, version, params) "cu" #name,
    SG__DRIVER_ENTRIES(X, X)
#undef X
};
enum { ENTRIES = sizeof entries / sizeof *entries };

#endif
