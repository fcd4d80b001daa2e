#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../error.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sg__driver *loaded;

static stepgraph_status too_old(const char *path, int version)
{
    return sg__fail(STEPGRAPH_ERR_OLD_DRIVER, "the driver '%s' is version %d.%d, and %d.%d is the oldest supported: update the driver", path,
                    version / 1000, version % 1000 / 10, SG__DRIVER_OLDEST / 1000, SG__DRIVER_OLDEST % 1000 / 10);
}

void *sg__driver_symbol(const sg__driver *driver, const char *name, int version)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *function = NULL;

    /* A version above the driver's own is an error to it, not an absence. Success with a NULL pointer is an absence. */
    if (version > driver->version ||
        driver->get_proc_address(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found) != CUDA_SUCCESS)
        return NULL;
    return function;
}

static stepgraph_status resolve(sg__driver *driver)
{
    void *function;

#define SG__FIND(field, name, entry_version)                         \
    function = sg__driver_symbol(driver, "cu" #name, entry_version); \
    memcpy(&driver->field, &function, sizeof function);
#define SG__OPTIONAL(name, entry_version, params) SG__FIND(name, name, entry_version)
#define SG__OPTIONAL_FORM(field, name, entry_version, params) SG__FIND(field, name, entry_version)
#define SG__FORM(field, name, entry_version, params)                                                                        \
    SG__FIND(field, name, entry_version)                                                                                   \
    if (function == NULL)                                                                                                  \
        return sg__fail(STEPGRAPH_ERR_NO_DRIVER, "the driver '%s' (version %d.%d) lacks cu" #name ", which every driver from %d.%d on has", \
                        driver->path, driver->version / 1000, driver->version % 1000 / 10, SG__DRIVER_OLDEST / 1000,       \
                        SG__DRIVER_OLDEST % 1000 / 10);
#define SG__REQUIRED(name, entry_version, params) SG__FORM(name, name, entry_version, params)
    SG__DRIVER_ENTRIES(SG__REQUIRED, SG__OPTIONAL)
    SG__DRIVER_FORMS(SG__FORM, SG__OPTIONAL_FORM)
#undef SG__REQUIRED
#undef SG__FORM
#undef SG__OPTIONAL_FORM
#undef SG__OPTIONAL
#undef SG__FIND
    return STEPGRAPH_OK;
}

/* Ask the open library what it is, then fill the table. */
static stepgraph_status inspect(void *library, sg__driver *driver)
{
    CUresult (*get_version)(int *) = NULL;
    void *symbol = dlsym(library, "cuDriverGetVersion");
    stepgraph_status status;
    CUresult code;

    if (symbol == NULL)
        return sg__fail(STEPGRAPH_ERR_NO_DRIVER, "'%s' is not a CUDA driver: it has no cuDriverGetVersion", driver->path);
    memcpy(&get_version, &symbol, sizeof symbol);

    /* The toolkit's stub answers 34 to everything and sets nothing. */
    code = get_version(&driver->version);
    if (code == CUDA_ERROR_STUB_LIBRARY)
        return sg__fail(STEPGRAPH_ERR_NO_DRIVER,
                        "'%s' is the CUDA toolkit's stub library, which is for linking only: load the driver itself, libcuda.so.1 of the "
                        "driver's installation",
                        driver->path);
    if (code != CUDA_SUCCESS)
        return sg__fail(STEPGRAPH_ERR_NO_DRIVER, "cuDriverGetVersion of '%s' failed with code %d", driver->path, (int)code);
    if (driver->version < SG__DRIVER_OLDEST)
        return too_old(driver->path, driver->version);

    symbol = dlsym(library, "cuGetProcAddress_v2");
    if (symbol == NULL)
        return sg__fail(STEPGRAPH_ERR_NO_DRIVER, "'%s' says it is version %d.%d but has no cuGetProcAddress_v2", driver->path,
                        driver->version / 1000, driver->version % 1000 / 10);
    memcpy(&driver->get_proc_address, &symbol, sizeof symbol);

    status = resolve(driver);
    if (status != STEPGRAPH_OK)
        return status;

    code = driver->Init(0);
    if (code == CUDA_ERROR_NO_DEVICE) {
        sg__fail_driver(driver, "cuInit", code);
        return sg__fail_prefix(STEPGRAPH_ERR_NO_DRIVER, "the driver '%s' finds no device: ", driver->path);
    }
    if (code != CUDA_SUCCESS)
        return sg__fail_driver(driver, "cuInit", code);
    driver->software = dlsym(library, "cusim_version") != NULL;
    return STEPGRAPH_OK;
}

static stepgraph_status load(const char *path, sg__driver **driver_out)
{
    sg__driver *driver = calloc(1, sizeof *driver);
    stepgraph_status status;
    void *library;

    if (driver == NULL || (driver->path = strdup(path)) == NULL) {
        free(driver);
        return sg__fail_memory("host", sizeof *driver);
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        status = sg__fail(STEPGRAPH_ERR_NO_DRIVER,
                          "cannot load the CUDA driver '%s' (%s): install the NVIDIA driver, or name another library in STEPGRAPH_DRIVER", path,
                          dlerror());
        goto fail;
    }
    status = inspect(library, driver);
    if (status == STEPGRAPH_OK) {
        *driver_out = driver;
        return STEPGRAPH_OK;
    }
fail:
    free(driver->path);
    free(driver);
    return status;
}

stepgraph_status sg__driver_get(const char *path, const sg__driver **driver_out)
{
    stepgraph_status status = STEPGRAPH_OK;
    sg__driver *driver;

    if (path == NULL)
        path = getenv("STEPGRAPH_DRIVER");
    if (path == NULL || path[0] == '\0')
        path = "libcuda.so.1";

    pthread_mutex_lock(&lock);
    for (driver = loaded; driver != NULL && strcmp(driver->path, path) != 0; driver = driver->next)
        ;
    if (driver == NULL) {
        status = load(path, &driver);
        if (status == STEPGRAPH_OK) {
            driver->next = loaded;
            loaded = driver;
        }
    }
    if (status == STEPGRAPH_OK)
        *driver_out = driver;
    pthread_mutex_unlock(&lock);
    return status;
}

const char *sg__driver_code_name(const sg__driver *driver, CUresult code)
{
    const char *name = NULL;

    if (driver->GetErrorName == NULL || driver->GetErrorName(code, &name) != CUDA_SUCCESS || name == NULL)
        return "unknown code";
    return name;
}
