/* The driver, loaded: a table of its entry points. The only code that opens the library or looks up a symbol is driver.c. */
#ifndef STEPGRAPH_DRIVER_DRIVER_H
#define STEPGRAPH_DRIVER_DRIVER_H

#include <stepgraph/base.h>

#include "cuda_abi.h"
#include "entries.h"

/* The oldest driver we run on: the first with one ABI for capture, update and read-back. */
#define SG__DRIVER_OLDEST 12000

typedef struct sg__driver sg__driver;

struct sg__driver {
#define SG__ENTRY(name, version, params) CUresult (*name) params;
    SG__DRIVER_ENTRIES(SG__ENTRY, SG__ENTRY)
#undef SG__ENTRY
#define SG__FORM(field, name, version, params) CUresult (*field) params;
    SG__DRIVER_FORMS(SG__FORM, SG__FORM)
#undef SG__FORM
    sg__get_proc_address_fn get_proc_address;
    int version;   /* As cuDriverGetVersion gives it. */
    int software;  /* 1: cusim. */
    char *path;    /* What was opened. */
    sg__driver *next;
};

/* Load and initialise the driver at path, or at STEPGRAPH_DRIVER, or libcuda.so.1. Loaded once per path and process, never closed:
 * its threads may outlive any session. */
stepgraph_status sg__driver_get(const char *path, const sg__driver **driver_out);

/* One entry point by base name and version; NULL where the driver has none. */
void *sg__driver_symbol(const sg__driver *driver, const char *name, int version);

/* The driver's name of a code; never NULL. */
const char *sg__driver_code_name(const sg__driver *driver, CUresult code);

#endif
