/*
 * Drivers that are none, one per definition:
 *   FAKE_STUB    the toolkit's stub library: every function answers 34 and touches none of its outputs
 *   FAKE_OLD     a driver of CUDA 11.8, from before cuGetProcAddress_v2
 *   FAKE_HOLLOW  says 12.0, and answers success for every entry point without giving one
 */
#include <stddef.h>
#include <stdint.h>

#if defined(FAKE_STUB)
#define FUNCTION(name)                                                                                                           \
    int name(void);                                                                                                              \
    int name(void)                                                                                                               \
    {                                                                                                                            \
        return 34;                                                                                                               \
    }
FUNCTION(cuInit)
FUNCTION(cuDriverGetVersion)
FUNCTION(cuGetErrorName)
FUNCTION(cuGetErrorString)
FUNCTION(cuGetProcAddress)
FUNCTION(cuGetProcAddress_v2)
FUNCTION(cuDeviceGet)
FUNCTION(cuDeviceGetCount)
FUNCTION(cuDeviceGetName)
FUNCTION(cuDeviceGetAttribute)
FUNCTION(cuDevicePrimaryCtxRetain)
#else

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);

int cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}

int cuDriverGetVersion(int *version)
{
#if defined(FAKE_OLD)
    *version = 11080;
#else
    *version = 12000;
#endif
    return 0;
}

#if defined(FAKE_OLD)
int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags);

int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags)
{
    (void)name, (void)version, (void)flags;
    *found = NULL;
    return 500;
}
#else
int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *result);

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *result)
{
    (void)version, (void)flags;
    *found = NULL;
    if (name[0] == 'c' && name[1] == 'u' && name[2] == 'I') /* cuInit is there. */
        *found = (void *)(uintptr_t)cuInit;
    if (name[0] == 'c' && name[1] == 'u' && name[2] == 'D' && name[3] == 'r') /* cuDriverGetVersion too. */
        *found = (void *)(uintptr_t)cuDriverGetVersion;
    if (result)
        *result = *found == NULL;
    return 0;
}
#endif
#endif
