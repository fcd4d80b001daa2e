/*
 * Introduces stepgraph_session: opening a driver, saying which one it is, and reaching the driver's own calls through it.
 *
 * The program links against no CUDA library. stepgraph_session_symbol() gives every entry point, by name and by the CUDA version
 * whose signature is meant.
 */
#include "quickstart.h"

#include "quickstart-config.h"
#include "quickstart-kernels.h" /* kernels_ptx: kernels.ptx, embedded by the build. */

#include <stdlib.h>
#include <string.h>

#define CARD "libcuda.so.1"

/* The software driver runs kernels that were compiled for the host. It finds them here. */
static void offer_host_kernels(void)
{
    if (*QUICKSTART_PACKS != 0)
        setenv("CUSIM_KERNELS", QUICKSTART_PACKS, 0);
}

static const char *cusim_path(void)
{
    const char *path = getenv("STEPGRAPH_CUSIM");
    return path != NULL && *path != 0 ? path : QUICKSTART_CUSIM;
}

static stepgraph_status open_session(struct driver *driver, const char *path)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;

    config.driver_path = path;
    return stepgraph_session_open(&config, &driver->session);
}

/* Whatever is wrong with a driver, it is for the caller to mend. */
static int must_open(struct driver *driver, const char *path)
{
    return library(open_session(driver, path)) == 0 ? 0 : EXIT_INPUT;
}

static int open_cusim(struct driver *driver)
{
    if (*cusim_path() == 0)
        return fail(EXIT_INPUT, "%s; this build has none; build with -Dcusim=enabled, or name one in STEPGRAPH_CUSIM",
                    driver->choice);
    return must_open(driver, cusim_path());
}

/* What STEPGRAPH_DRIVER names, else a card, else the software driver. Never without saying so. */
static int open_auto(struct driver *driver)
{
    const char *named = getenv("STEPGRAPH_DRIVER");

    if (named != NULL && *named != 0) {
        snprintf(driver->choice, sizeof driver->choice, "auto: STEPGRAPH_DRIVER names %.1000s", named);
        return must_open(driver, NULL);
    }
    if (open_session(driver, CARD) == STEPGRAPH_OK) {
        snprintf(driver->choice, sizeof driver->choice, "auto: a card was found");
        return 0;
    }

    stepgraph_error_info error = STEPGRAPH_ERROR_INFO_INIT;
    stepgraph_last_error(&error);
    snprintf(driver->choice, sizeof driver->choice, "auto: no card (%s), so the software driver was taken", error.message);
    return open_cusim(driver);
}

/* An object pointer, as a function pointer: ISO C has no cast for that. */
static int find(struct driver *driver, void *entry_out, const char *name, int version)
{
    void *entry = stepgraph_session_symbol(driver->session, name, version);

    if (entry == NULL)
        return fail(EXIT_INPUT, "driver %s has no %s; use another driver", driver->info.driver_path, name);
    memcpy(entry_out, &entry, sizeof entry);
    return 0;
}

static int find_all(struct driver *driver)
{
    TRY(find(driver, &driver->set_context, "cuCtxSetCurrent", 4000));
    TRY(find(driver, &driver->memory_left, "cuMemGetInfo", 3020));
    TRY(find(driver, &driver->allocate, "cuMemAlloc", 3020));
    TRY(find(driver, &driver->release, "cuMemFree", 3020));
    TRY(find(driver, &driver->to_device, "cuMemcpyHtoDAsync", 3020));
    TRY(find(driver, &driver->to_device_at_once, "cuMemcpyHtoD", 3020));
    TRY(find(driver, &driver->wait_for_all, "cuCtxSynchronize", 2000));
    TRY(find(driver, &driver->to_host, "cuMemcpyDtoHAsync", 3020));
    TRY(find(driver, &driver->load_module, "cuModuleLoadData", 2000));
    TRY(find(driver, &driver->unload_module, "cuModuleUnload", 2000));
    TRY(find(driver, &driver->find_function, "cuModuleGetFunction", 2000));
    return 0;
}

static int load_kernels(struct driver *driver)
{
    static const char *const names[KERNEL_COUNT] = {
#define X(name) #name,
        KERNELS(X)
#undef X
    };

    TRY(driver_check(driver->load_module(&driver->module, kernels_ptx), "cuModuleLoadData"));
    for (int i = 0; i < KERNEL_COUNT; i++) {
        int code = driver->find_function(&driver->kernels[i], driver->module, names[i]);
        if (code != 0)
            return fail(EXIT_INPUT, "driver %s has no kernel '%s' (code %d); %s", driver->info.driver_path, names[i], code,
                        driver->info.software ? "name the built kernels in CUSIM_KERNELS" : "its PTX is damaged: build again");
    }
    return 0;
}

int driver_open(struct driver *driver, const char *choice)
{
    offer_host_kernels();
    if (strcmp(choice, "auto") == 0) {
        TRY(open_auto(driver));
    } else if (strcmp(choice, "cuda") == 0) {
        snprintf(driver->choice, sizeof driver->choice, "cuda: a card was asked for");
        TRY(must_open(driver, CARD));
    } else {
        snprintf(driver->choice, sizeof driver->choice, "cusim: the software driver was asked for");
        TRY(open_cusim(driver));
    }

    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;
    TRY(library(stepgraph_session_get_info(driver->session, &info)));
    driver->info = info;

    TRY(find_all(driver));
    /* The library leaves the thread's context as it found it; the driver's own calls need one. */
    TRY(driver_check(driver->set_context(stepgraph_session_context(driver->session)), "cuCtxSetCurrent"));
    return load_kernels(driver);
}

int driver_close(struct driver *driver)
{
    int status = 0;

    if (driver->module != NULL)
        status = driver_check(driver->unload_module(driver->module), "cuModuleUnload");
    int closed = library(stepgraph_session_close(driver->session));
    memset(driver, 0, sizeof *driver);
    return status != 0 ? status : closed;
}

int driver_check(int code, const char *call)
{
    if (code == 0)
        return 0;
    if (code == 2)
        return fail(EXIT_INPUT, "%s: out of device memory; make --batch, --width or --layers smaller", call);
    return fail(EXIT_STORY, "%s failed with code %d", call, code);
}

int driver_launch(struct driver *driver, enum kernel kernel, int threads, void **arguments)
{
    stepgraph_launch launch = STEPGRAPH_LAUNCH_INIT;

    launch.function = driver->kernels[kernel];
    launch.arguments = arguments;
    launch.block[0] = 128;
    launch.grid[0] = ((uint32_t)threads + 127) / 128;
    return library(stepgraph_session_launch(driver->session, &launch));
}
