/* Status names, version and the thread's error record. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "structs.h"
#include "text.h"

static _Thread_local stepgraph_error_info record = STEPGRAPH_ERROR_INFO_INIT;

void sg__error_clear(void)
{
    record.status = STEPGRAPH_OK;
    record.driver_code = 0;
    record.call[0] = '\0';
    record.message[0] = '\0';
}

stepgraph_status sg__fail(stepgraph_status status, const char *format, ...)
{
    va_list arguments;

    sg__error_clear();
    record.status = status;
    va_start(arguments, format);
    sg__vprint(record.message, sizeof record.message, format, arguments);
    va_end(arguments);
    return status;
}

static stepgraph_status status_of_code(CUresult code)
{
    switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return STEPGRAPH_ERR_MEMORY;
    case CUDA_ERROR_NOT_INITIALIZED: /* What a forked child gets. */
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return STEPGRAPH_ERR_LOST;
    case CUDA_ERROR_NOT_SUPPORTED:
        return STEPGRAPH_ERR_UNSUPPORTED;
    default:
        return code >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && code <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD ? STEPGRAPH_ERR_CAPTURE
                                                                                                                : STEPGRAPH_ERR_DRIVER;
    }
}

stepgraph_status sg__fail_driver(const sg__driver *driver, const char *call, CUresult code)
{
    stepgraph_status status = status_of_code(code);
    /* Of the codes that a lost context gives, these come from what ran in it. */
    bool fault = status == STEPGRAPH_ERR_LOST && code >= CUDA_ERROR_ILLEGAL_ADDRESS && code != CUDA_ERROR_CONTEXT_IS_DESTROYED;

    sg__fail(status, "%s failed: %s (%d)%s", call, sg__driver_code_name(driver, code), (int)code,
             fault ? ": work on the device has faulted, now or earlier, and its context is lost; open a new session" : "");
    record.driver_code = (int32_t)code;
    snprintf(record.call, sizeof record.call, "%s", call);
    return status;
}

stepgraph_status sg__fail_memory(const char *kind, uint64_t bytes)
{
    return sg__fail(STEPGRAPH_ERR_MEMORY, "out of %s memory: %llu bytes were asked for", kind, (unsigned long long)bytes);
}

stepgraph_status sg__fail_prefix(stepgraph_status status, const char *format, ...)
{
    char old[sizeof record.message];
    va_list arguments;
    size_t used;

    memcpy(old, record.message, sizeof old);
    va_start(arguments, format);
    sg__vprint(record.message, sizeof record.message, format, arguments);
    va_end(arguments);
    used = strlen(record.message);
    snprintf(record.message + used, sizeof record.message - used, "%s", old);
    record.status = status;
    return status;
}

stepgraph_status sg__name_check(const char *what, const char *name)
{
    for (size_t i = 0; name != NULL && name[i] != '\0'; i++) {
        if (i == STEPGRAPH_NAME_MOST)
            return sg__fail(STEPGRAPH_ERR_ARGUMENT, "the %s's name '%.60s...' is longer than %d bytes", what, name, STEPGRAPH_NAME_MOST);
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return sg__fail(STEPGRAPH_ERR_ARGUMENT, "the %s's name '%.*s...' goes on with a control character (0x%02x)", what,
                            (int)(i < 60 ? i : 60), name, (unsigned char)name[i]);
    }
    return STEPGRAPH_OK;
}

void sg__fail_line(const char *format, ...)
{
    size_t used = strlen(record.message);
    va_list arguments;

    if (used + 2 >= sizeof record.message)
        return;
    record.message[used++] = '\n';
    va_start(arguments, format);
    sg__vprint(record.message + used, sizeof record.message - used, format, arguments);
    va_end(arguments);
}

void sg__error_get(stepgraph_error_info *info_out)
{
    *info_out = record;
}

stepgraph_status sg__error_set(const stepgraph_error_info *info)
{
    record = *info;
    return (stepgraph_status)info->status;
}

stepgraph_status stepgraph_last_error(stepgraph_error_info *info_out)
{
    size_t size;

    /* Not through sg__struct_write(): that would overwrite the very record that is asked for. */
    if (info_out == NULL)
        return STEPGRAPH_ERR_ARGUMENT;
    memcpy(&size, info_out, sizeof size);
    if (size < offsetof(stepgraph_error_info, driver_code) || size > SG__STRUCT_MAX)
        return STEPGRAPH_ERR_ARGUMENT;
    memcpy((unsigned char *)info_out + sizeof size, (const unsigned char *)&record + sizeof size,
           (size < sizeof record ? size : sizeof record) - sizeof size);
    return STEPGRAPH_OK;
}

const char *stepgraph_status_name(stepgraph_status status)
{
    switch (status) {
#define SG__NAME(name) \
    case name:         \
        return #name;
        SG__NAME(STEPGRAPH_OK)
        SG__NAME(STEPGRAPH_ERR_ARGUMENT)
        SG__NAME(STEPGRAPH_ERR_ABI)
        SG__NAME(STEPGRAPH_ERR_STATE)
        SG__NAME(STEPGRAPH_ERR_MEMORY)
        SG__NAME(STEPGRAPH_ERR_NO_DRIVER)
        SG__NAME(STEPGRAPH_ERR_OLD_DRIVER)
        SG__NAME(STEPGRAPH_ERR_DRIVER)
        SG__NAME(STEPGRAPH_ERR_CAPTURE)
        SG__NAME(STEPGRAPH_ERR_REFUSED)
        SG__NAME(STEPGRAPH_ERR_LOST)
        SG__NAME(STEPGRAPH_ERR_UNSUPPORTED)
#undef SG__NAME
    }
    return "unknown status";
}

uint32_t stepgraph_version(void)
{
    return STEPGRAPH_VERSION_MAJOR * 10000 + STEPGRAPH_VERSION_MINOR * 100 + STEPGRAPH_VERSION_PATCH;
}
