/* Loads the driver under test. Only the child processes do. */
#include <dlfcn.h>

#include "conformance.h"

struct driver drv;

static void *look_up(const char *name, int version)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *entry = NULL;

    if (version > drv.version)
        return NULL;
    if (drv.get_proc_address(name, &entry, version, CU_GET_PROC_ADDRESS_DEFAULT, &found) != CUDA_SUCCESS)
        return NULL;
    return found == CU_GET_PROC_ADDRESS_SUCCESS ? entry : NULL;
}

bool driver_open(const char *path, char *error, size_t size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *entry;
    CUresult r;

    if (!library) {
        snprintf(error, size, "%s", dlerror());
        return false;
    }
    entry = dlsym(library, "cuGetProcAddress_v2");
    if (!entry) {
        snprintf(error, size, "%s does not export cuGetProcAddress_v2", path);
        return false;
    }
    memcpy(&drv.get_proc_address, &entry, sizeof entry);

    drv.version = 2020;
    entry = look_up("cuDriverGetVersion", 2020);
    if (!entry) {
        snprintf(error, size, "%s has no cuDriverGetVersion: a stub?", path);
        return false;
    }
    memcpy(&drv.DriverGetVersion, &entry, sizeof entry);
    r = drv.DriverGetVersion(&drv.version);
    if (r != CUDA_SUCCESS) {
        snprintf(error, size, "cuDriverGetVersion gives %d", (int)r);
        return false;
    }

#define E(field, name, version, args)                                                                                            \
    entry = look_up(name, version);                                                                                              \
    memcpy(&drv.field, &entry, sizeof entry);
    CF_DRIVER_TABLE(E)
#undef E
    return true;
}
