/* The thread's error record: how every function reports a failure. */
#ifndef STEPGRAPH_ERROR_H
#define STEPGRAPH_ERROR_H

#include <stepgraph/base.h>

#include "driver/driver.h"

/* Not on the way of a call that succeeds: whatever leads there is laid out apart, so that a replay's own code stays short. */
#define SG__COLD __attribute__((cold))

/* Clear the record. First thing in every public call that returns a status. */
void sg__error_clear(void);

/* Note what went wrong and return status. The function that first knows the cause calls it; those above pass the status on. */
SG__COLD stepgraph_status sg__fail(stepgraph_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a driver call: the status follows from the code, the sentence is "CALL failed: NAME (code)". */
SG__COLD stepgraph_status sg__fail_driver(const sg__driver *driver, const char *call, CUresult code);

/* The same for memory: kind is "host", "page-locked host" or "device". */
SG__COLD stepgraph_status sg__fail_memory(const char *kind, uint64_t bytes);

/* Refuse a name that messages cannot show: what is "pin", "step" and the like. NULL is no name, and fine. */
stepgraph_status sg__name_check(const char *what, const char *name);

/* Put words in front of the record's sentence, such as "pin 'x': ". */
SG__COLD stepgraph_status sg__fail_prefix(stepgraph_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Add one line to the record's message, as long as there is room. */
void sg__fail_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The record itself, to keep a copy or to put one back. */
void sg__error_get(stepgraph_error_info *info_out);
stepgraph_status sg__error_set(const stepgraph_error_info *info);

/* One driver call. If it fails, note which one and why, then unwind. */
#define SG__CU(driver, name, ...)                                    \
    do {                                                             \
        CUresult code_ = (driver)->name(__VA_ARGS__);                \
        if (code_ != CUDA_SUCCESS) {                                 \
            status = sg__fail_driver((driver), "cu" #name, code_);   \
            goto fail;                                               \
        }                                                            \
    } while (0)

#endif
