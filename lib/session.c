/* Opening and closing a session, entering its context, waiting, logging. */
#include "session_p.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena_p.h"
#include "feed.h"
#include "graveyard.h"
#include "pin_p.h"
#include "resolve.h"
#include "step_p.h"
#include "structs.h"
#include "text.h"

#define FEED_SLOTS_DEFAULT 8u
#define FEED_SLOTS_MAX 64u
#define FEED_BYTES_DEFAULT ((uint64_t)1 << 20)

static atomic_uint forks;
static pthread_once_t watch_forks_once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

unsigned int sg__fork_count(void)
{
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

/* Is it still away? Asked in relaxed mode, since the question would break a recording. */
static bool hangs(const stepgraph_session *session)
{
    CUstreamCaptureMode before;
    CUresult code;

    if (session->hung == NULL)
        return false;
    before = sg__relax(session);
    code = session->driver->EventQuery(session->hung);
    sg__unrelax(session, before);
    return code == CUDA_ERROR_NOT_READY;
}

void sg__session_hangs(stepgraph_session *session, CUevent event, const char *step)
{
    session->hung = event;
    snprintf(session->hung_step, sizeof session->hung_step, "%s", step);
}

bool sg__session_lives(const stepgraph_session *session)
{
    unsigned long long id;

    /* In a forked child cuGraphLaunch would run on the parent's device; in a destroyed context it crashes. Asking first costs 10 ns. */
    return session->forks == sg__fork_count() && session->driver->CtxGetId(session->context, &id) == CUDA_SUCCESS &&
           id == session->context_id && !hangs(session);
}

stepgraph_status sg__session_alive(const stepgraph_session *session)
{
    unsigned long long id = 0;
    CUresult code;

    if (session->forks != sg__fork_count())
        return sg__fail(STEPGRAPH_ERR_LOST,
                        "this process was forked from the one that opened the session, and CUDA does not survive a fork: open a session in the "
                        "process that uses it");
    code = session->driver->CtxGetId(session->context, &id);
    if (code == CUDA_SUCCESS && id == session->context_id && hangs(session))
        return sg__fail(STEPGRAPH_ERR_LOST,
                        "a replay of step '%s' hangs on the device, and whatever waits for it would hang too: end the process, or try again when "
                        "the device has come back",
                        session->hung_step);
    if (code == CUDA_SUCCESS && id == session->context_id)
        return STEPGRAPH_OK;
    if (code == CUDA_SUCCESS)
        return sg__fail(STEPGRAPH_ERR_LOST,
                        "the session's context was destroyed or reset, and another one (id %llu, was %llu) stands in its place; open a new session", id,
                        session->context_id);
    sg__fail_driver(session->driver, "cuCtxGetId", code);
    return sg__fail_prefix(STEPGRAPH_ERR_LOST, "the session's context was destroyed or reset; open a new session: ");
}

stepgraph_status sg__enter(stepgraph_session *session)
{
    stepgraph_status status;

    sg__error_clear();
    status = sg__session_alive(session);
    if (status != STEPGRAPH_OK)
        return status;
    SG__CU(session->driver, CtxPushCurrent, session->context);
    return STEPGRAPH_OK;

fail:
    return status;
}

void sg__leave(stepgraph_session *session)
{
    CUcontext before;

    session->driver->CtxPopCurrent(&before);
}

CUstreamCaptureMode sg__relax(const stepgraph_session *session)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    session->driver->ThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

void sg__unrelax(const stepgraph_session *session, CUstreamCaptureMode before)
{
    session->driver->ThreadExchangeStreamCaptureMode(&before);
}

stepgraph_status sg__instantiate(stepgraph_session *session, CUgraph graph, CUgraphExec *exec_out)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    CUstreamCaptureMode before = sg__relax(session);
    CUresult code = session->driver->GraphInstantiateWithParams(exec_out, graph, &params);

    sg__unrelax(session, before);
    if (code == CUDA_SUCCESS)
        return STEPGRAPH_OK;
    *exec_out = NULL;
    return sg__fail_driver(session->driver, "cuGraphInstantiateWithParams", code);
}

stepgraph_status sg__device_alloc(stepgraph_session *session, CUdeviceptr *address, uint64_t bytes)
{
    CUstreamCaptureMode before = sg__relax(session);
    CUresult code = session->driver->MemAlloc(address, bytes);

    sg__unrelax(session, before);
    if (code == CUDA_SUCCESS)
        return STEPGRAPH_OK;
    *address = 0;
    return sg__fail_prefix(sg__fail_driver(session->driver, "cuMemAlloc", code), "%llu bytes of device memory: ", (unsigned long long)bytes);
}

stepgraph_status sg__own_alloc(stepgraph_session *session, CUdeviceptr *address, uint64_t bytes)
{
    stepgraph_status status = sg__device_alloc(session, address, bytes);
    sg__allocation item = {.start = *address, .bytes = bytes, .node = SG__NO_NODE};

    if (status != STEPGRAPH_OK || sg__allocation_add(&session->own, &item) != NULL)
        return status;
    sg__bury(session, SG__GRAVE_DEVICE, *address);
    *address = 0;
    return STEPGRAPH_ERR_MEMORY;
}

void sg__own_free(stepgraph_session *session, CUdeviceptr address)
{
    if (address == 0)
        return;
    sg__allocation_remove(&session->own, address);
    sg__bury(session, SG__GRAVE_DEVICE, address);
}

stepgraph_status sg__host_alloc(stepgraph_session *session, void **memory, uint64_t bytes)
{
    CUstreamCaptureMode before = sg__relax(session);
    CUresult code = session->driver->MemHostAlloc(memory, bytes, CU_MEMHOSTALLOC_PORTABLE);

    sg__unrelax(session, before);
    if (code == CUDA_SUCCESS)
        return STEPGRAPH_OK;
    *memory = NULL;
    return sg__fail_prefix(sg__fail_driver(session->driver, "cuMemHostAlloc", code), "%llu bytes of page-locked host memory: ",
                           (unsigned long long)bytes);
}

stepgraph_status sg__not_capturing(const stepgraph_session *session, const char *what)
{
    const stepgraph_step *step = session->capturing;

    if (step == NULL)
        return STEPGRAPH_OK;
    return sg__fail(STEPGRAPH_ERR_STATE, "%s while step '%s' is recording: do it before %s or after %s", what, step->name,
                    step->in_loop ? "stepgraph_loop_begin()" : "stepgraph_step_capture()", sg__step_end_call(step));
}

stepgraph_status sg__session_wait(stepgraph_session *session)
{
    CUstreamCaptureMode before = sg__relax(session);
    CUresult code = session->driver->StreamSynchronize(session->stream);

    sg__unrelax(session, before);
    return code == CUDA_SUCCESS ? STEPGRAPH_OK : sg__fail_driver(session->driver, "cuStreamSynchronize", code);
}

/* Without device memory for the better way: this breaks every recording in the context, of which only the library's own are known. */
static stepgraph_status wait_for_context(stepgraph_session *session)
{
    CUstreamCaptureMode before;
    char recording[64];
    CUresult code;

    if (sg__recording_in(session->context_id, recording, sizeof recording))
        return sg__fail_prefix(STEPGRAPH_ERR_MEMORY, "to wait for all streams without breaking the recording of step '%s': ", recording);
    before = sg__relax(session);
    code = session->driver->CtxSynchronize();
    sg__unrelax(session, before);
    return code == CUDA_SUCCESS ? STEPGRAPH_OK : sg__fail_driver(session->driver, "cuCtxSynchronize", code);
}

stepgraph_status sg__session_drain(stepgraph_session *session)
{
    stepgraph_status status = session->drain != NULL ? session->drain(session->drain_user) : STEPGRAPH_OK;

    return status == STEPGRAPH_OK ? status : sg__fail(status, "the host's drain callback failed with %s", stepgraph_status_name(status));
}

/* Before it frees memory the driver waits for all that runs on the device, and breaks no recording. */
stepgraph_status sg__session_wait_all(stepgraph_session *session)
{
    stepgraph_status status = sg__session_drain(session);
    CUdeviceptr address;
    CUstreamCaptureMode before;
    CUresult code;

    if (status != STEPGRAPH_OK)
        return status;
    status = sg__device_alloc(session, &address, 1);
    if (status == STEPGRAPH_ERR_MEMORY)
        return wait_for_context(session);
    if (status != STEPGRAPH_OK)
        return status;
    before = sg__relax(session);
    code = session->driver->MemFree(address);
    sg__unrelax(session, before);
    return code == CUDA_SUCCESS ? STEPGRAPH_OK : sg__fail_driver(session->driver, "cuMemFree", code);
}

stepgraph_status sg__device_left(const stepgraph_session *session, uint64_t *bytes)
{
    size_t left = 0, total = 0;
    CUresult code = session->driver->MemGetInfo(&left, &total);

    *bytes = left;
    return code == CUDA_SUCCESS ? STEPGRAPH_OK : sg__fail_driver(session->driver, "cuMemGetInfo", code);
}

stepgraph_status sg__snapshot_limits(const stepgraph_session *session, uint64_t *device_bytes, uint64_t *host_bytes)
{
    uint64_t left;
    stepgraph_status status = sg__device_left(session, &left);

    if (status != STEPGRAPH_OK)
        return status;
    if (*device_bytes == 0)
        *device_bytes = left / 2;
    if (*host_bytes == 0)
        *host_bytes = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
    return STEPGRAPH_OK;
}

void sg__log(const stepgraph_session *session, int32_t level, const char *format, ...)
{
    char line[1200];
    va_list arguments;

    if (session->log == NULL || (uint32_t)level > session->log_level)
        return;
    va_start(arguments, format);
    sg__vprint(line, sizeof line, format, arguments);
    va_end(arguments);
    /* A list of findings is several lines. */
    for (char *next, *text = line; text != NULL; text = next) {
        next = strchr(text, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (*text != '\0')
            session->log(session->log_user, level, text);
    }
}

stepgraph_status sg__log_failure(const stepgraph_session *session, stepgraph_status status)
{
    if (status != STEPGRAPH_OK && session->log != NULL) {
        stepgraph_error_info info;
        sg__error_get(&info);
        sg__log(session, STEPGRAPH_LOG_ERROR, "%s", info.message);
    }
    return status;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

/* The configuration, with every default filled in. */
static stepgraph_status read_config(const stepgraph_session_config *given, stepgraph_session_config *config)
{
    const stepgraph_session_config defaults = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_status status = sg__struct_read(config, sizeof *config, offsetof(stepgraph_session_config, driver_path),
                                              given != NULL ? given : &defaults, "stepgraph_session_config");

    if (status != STEPGRAPH_OK)
        return status;
    if ((config->flags & ~(uint32_t)STEPGRAPH_SESSION_BLOCKING_STREAM) != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "unknown session flags 0x%x", config->flags);
    if (config->device < 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "device %d: ordinals start at 0", config->device);
    if (config->feed_slots == 0)
        config->feed_slots = FEED_SLOTS_DEFAULT;
    if (config->feed_slots < 2 || config->feed_slots > FEED_SLOTS_MAX)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "feed_slots is %u: at least 2 and at most %u", config->feed_slots, FEED_SLOTS_MAX);
    if (config->feed_bytes == 0)
        config->feed_bytes = FEED_BYTES_DEFAULT;
    if (config->log_level > STEPGRAPH_LOG_DEBUG)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "unknown log level %u", config->log_level);
    return STEPGRAPH_OK;
}

/* Enter the context and note which one it is. */
static stepgraph_status enter_first(stepgraph_session *session)
{
    stepgraph_status status;

    SG__CU(session->driver, CtxGetId, session->context, &session->context_id);
    return sg__enter(session);

fail:
    return status;
}

static stepgraph_status find_device(stepgraph_session *session, const stepgraph_session_config *config)
{
    const sg__driver *driver = session->driver;
    stepgraph_status status;
    int count = 0;

    if (config->context != NULL) {
        session->context = config->context;
        status = enter_first(session);
        if (status != STEPGRAPH_OK)
            return status;
        CUresult code = driver->CtxGetDevice(&session->device);
        if (code == CUDA_SUCCESS)
            return STEPGRAPH_OK; /* And stays entered. */
        sg__leave(session);
        return sg__fail_driver(driver, "cuCtxGetDevice", code);
    }
    SG__CU(driver, DeviceGetCount, &count);
    if (config->device >= count)
        return sg__fail(STEPGRAPH_ERR_NO_DRIVER, "no device %d: the driver '%s' has %d", config->device, driver->path, count);
    SG__CU(driver, DeviceGet, &session->device, config->device);
    SG__CU(driver, DevicePrimaryCtxRetain, &session->context, session->device);
    session->context_retained = true;
    return enter_first(session);

fail:
    return status;
}

static stepgraph_status describe_device(stepgraph_session *session)
{
    const sg__driver *driver = session->driver;
    stepgraph_session_info *info = &session->info;
    stepgraph_status status;

    info->size = sizeof *info;
    info->driver_version = driver->version;
    info->software = driver->software;
    info->device = session->device;
    snprintf(info->driver_path, sizeof info->driver_path, "%s", driver->path);
    SG__CU(driver, DeviceGetName, info->device_name, (int)sizeof info->device_name, session->device);
    SG__CU(driver, DeviceGetAttribute, &info->compute_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, session->device);
    SG__CU(driver, DeviceGetAttribute, &info->compute_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, session->device);
    SG__CU(driver, DeviceGetAttribute, &info->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, session->device);
    if (info->compute_major * 10 + info->compute_minor < 75)
        return sg__fail(STEPGRAPH_ERR_UNSUPPORTED, "device %d (%s) has compute capability %d.%d, and 7.5 is the oldest supported", session->device,
                        info->device_name, info->compute_major, info->compute_minor);
    return STEPGRAPH_OK;

fail:
    return status;
}

static stepgraph_status take_stream(stepgraph_session *session, const stepgraph_session_config *config)
{
    const sg__driver *driver = session->driver;
    bool blocking = (config->flags & STEPGRAPH_SESSION_BLOCKING_STREAM) != 0;
    unsigned int stream_flags = 0;
    CUcontext context = NULL;
    stepgraph_status status;

    if (config->stream == NULL) {
        SG__CU(driver, StreamCreate, &session->stream, blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
        session->stream_owned = true;
        return STEPGRAPH_OK;
    }
    if (config->stream == CU_STREAM_LEGACY)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "the legacy stream cannot record: make one with CU_STREAM_NON_BLOCKING");
    SG__CU(driver, StreamGetFlags, config->stream, &stream_flags);
    if (blocking != ((stream_flags & CU_STREAM_NON_BLOCKING) == 0))
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, blocking ? "STEPGRAPH_SESSION_BLOCKING_STREAM is set, but the stream is a non-blocking one"
                                                         : "the stream is a blocking one, which any use of the legacy stream by any thread "
                                                           "disturbs: make it with CU_STREAM_NON_BLOCKING");
    SG__CU(driver, StreamGetCtx, config->stream, &context);
    if (context != session->context)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "the stream belongs to another context than the session's");
    session->stream = config->stream;
    return STEPGRAPH_OK;

fail:
    return status;
}

/* Everything but the struct itself. Works on a half-made session too. */
static void release(stepgraph_session *session)
{
    const sg__driver *driver = session->driver;

    if (sg__session_lives(session) && driver->CtxPushCurrent(session->context) == CUDA_SUCCESS) {
        sg__banks_free(session);
        sg__ring_free(session, &session->commit_ring);
        sg__own_free(session, session->commit_table);
        if (session->hung != NULL)
            sg__bury_hanging(session);
        sg__bury(session, SG__GRAVE_EVENT, (uintptr_t)session->hung);
        session->hung = NULL;
        sg__bury(session, SG__GRAVE_MODULE, (uintptr_t)session->kernels.module); /* To unload it would break a recording of this thread's. */
        if (session->stream_owned)
            driver->StreamDestroy(session->stream);
        sg__leave(session);
        if (session->context_retained)
            driver->DevicePrimaryCtxRelease(session->device);
    } else {
        sg__banks_free(session);
    }
    sg__arenas_free(session);
    sg__unreads_free(&session->known_kernels.unread);
    sg__kernel_names_free(&session->known_kernels.names);
    free(session->pins);
    free(session->extents);
    sg__names_free(&session->names);
    free(session->ranges);
    free(session->range_pins);
    sg__allocations_free(&session->seen);
    sg__allocations_free(&session->own);
    sg__process_free(&session->process);
}

stepgraph_status stepgraph_session_open(const stepgraph_session_config *given, stepgraph_session **session_out)
{
    stepgraph_session_config config;
    stepgraph_session *session;
    stepgraph_status status;

    sg__error_clear();
    if (session_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no place for the session: session_out is NULL");
    status = read_config(given, &config);
    if (status != STEPGRAPH_OK)
        return status;
    session = calloc(1, sizeof *session);
    if (session == NULL)
        return sg__fail_memory("host", sizeof *session);
    pthread_once(&watch_forks_once, watch_forks);

    session->forks = sg__fork_count();
    session->log = config.log;
    session->log_user = config.log_user;
    session->log_level = config.log_level;
    session->drain = config.drain;
    session->drain_user = config.drain_user;
    session->feed_bytes = config.feed_bytes;
    session->feed_slots = config.feed_slots;

    status = sg__driver_get(config.driver_path, &session->driver);
    if (status != STEPGRAPH_OK)
        goto fail_driver;
    status = find_device(session, &config);
    if (status != STEPGRAPH_OK)
        goto fail_device;
    status = describe_device(session);
    if (status == STEPGRAPH_OK)
        status = take_stream(session, &config);
    if (status == STEPGRAPH_OK)
        status = sg__kernels_load(session->driver, &session->kernels, session->info.multiprocessors);
    sg__leave(session);
    if (status != STEPGRAPH_OK)
        goto fail;

    sg__log(session, STEPGRAPH_LOG_INFO, "session open on device %d (%s%s), driver '%s' version %d.%d", session->device,
            session->info.device_name, session->info.software ? ", simulated on the CPU" : "", session->driver->path,
            session->driver->version / 1000, session->driver->version % 1000 / 10);
    *session_out = session;
    return STEPGRAPH_OK;

fail:
    release(session);
    free(session);
    return status;
fail_device:
    if (session->context_retained)
        session->driver->DevicePrimaryCtxRelease(session->device);
fail_driver:
    free(session);
    return status;
}

stepgraph_status stepgraph_session_close(stepgraph_session *session)
{
    sg__error_clear();
    if (session == NULL)
        return STEPGRAPH_OK;
    if (session->loops != NULL)
        return sg__fail(STEPGRAPH_ERR_STATE, "loop '%s' still lives: destroy it before its session", session->loops->name);
    if (session->steps != NULL)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' still lives: destroy it before its session", session->steps->name);
    if (session->n_pins > 0 && session->pins[0]->in_arena)
        return sg__fail(STEPGRAPH_ERR_STATE, "arena '%s' still lives: call stepgraph_arena_destroy() before its session is closed", session->pins[0]->name);
    if (session->n_pins > 0)
        return sg__fail(STEPGRAPH_ERR_STATE, "pin '%s' still lives: destroy it before its session", session->pins[0]->name);

    if (sg__session_lives(session)) {
        /* A fault on the device does not keep the session alive; whoever waited for the work has been told. */
        (void)sg__session_wait(session);
        sg__error_clear();
    }
    release(session);
    free(session);
    return STEPGRAPH_OK;
}

/* ---- what it is -------------------------------------------------------------------------------------------------- */

stepgraph_status stepgraph_session_get_info(const stepgraph_session *session, stepgraph_session_info *info_out)
{
    sg__error_clear();
    if (session == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no session to describe: the pointer is NULL");
    return sg__struct_write(info_out, &session->info, sizeof session->info, offsetof(stepgraph_session_info, device),
                            "stepgraph_session_info");
}

struct CUstream_st *stepgraph_session_stream(const stepgraph_session *session)
{
    return session->stream;
}

struct CUctx_st *stepgraph_session_context(const stepgraph_session *session)
{
    return session->context;
}

void *stepgraph_session_symbol(const stepgraph_session *session, const char *name, int32_t version)
{
    return session == NULL || name == NULL ? NULL : sg__driver_symbol(session->driver, name, version);
}

stepgraph_status stepgraph_session_wait(stepgraph_session *session)
{
    stepgraph_status status;

    sg__error_clear();
    if (session == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no session to wait for: the pointer is NULL");
    status = sg__not_capturing(session, "the stream cannot be waited for");
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__enter(session);
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__session_wait(session);
    sg__leave(session);
    return sg__log_failure(session, status);
}
