/* Devices. All are alike: a card of compute capability 9.0 by the name of "cusim". */
#include "core.h"

CUresult cs_device_check(CUdevice device)
{
    return device >= 0 && device < cs.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

#define CHECK_DEVICE(device)                                                                                                     \
    do {                                                                                                                         \
        CUresult check_ = cs_device_check(device);                                                                               \
        if (check_)                                                                                                              \
            return check_;                                                                                                       \
    } while (0)

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER(cuDeviceGet);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    CHECK_DEVICE(ordinal);
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount);
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = cs.devices;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
    ENTER(cuDeviceGetName);
    CHECK_DEVICE(device);
    if (!name || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)len, "cusim");
    return CUDA_SUCCESS;
}

static CUresult uuid(cusim_uuid *out, CUdevice device)
{
    CHECK_DEVICE(device);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    memcpy(out->bytes, "cusim", 5);
    out->bytes[15] = (unsigned char)device;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(cusim_uuid *out, CUdevice device)
{
    ENTER(cuDeviceGetUuid);
    return uuid(out, device);
}

CUresult cuDeviceGetUuid_v2(cusim_uuid *out, CUdevice device)
{
    ENTER(cuDeviceGetUuid_v2);
    return uuid(out, device);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    ENTER(cuDeviceTotalMem_v2);
    CHECK_DEVICE(device);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = cs.memory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    /* By number: the names of most would be used nowhere else. */
    static const int values[] = {
        [1] = 1024,   [2] = 1024,  [3] = 1024,     [4] = 64,          [5] = 2147483647, [6] = 65535,    [7] = 65535,
        [8] = 49152,  [9] = 65536, [10] = 32,      [11] = 2147483647, [12] = 65536,     [13] = 1000000, [14] = 512,
        [15] = 1,     [16] = 132,  [17] = 0,       [18] = 0,          [19] = 1,         [20] = 0,       [31] = 1,
        [33] = 0,     [34] = 0,    [36] = 1000000, [37] = 1024,       [38] = 1 << 20,   [39] = 2048,    [40] = 3,
        [41] = 1,     [75] = 9,    [76] = 0,       [78] = 1,          [79] = 1,         [80] = 1,       [81] = 233472,
        [82] = 65536, [83] = 1,    [84] = 0,       [85] = 0,          [86] = 0,         [88] = 0,       [89] = 0,
        [90] = 1,     [91] = 1,    [92] = 1,       [93] = 1,          [94] = 1,         [95] = 1,       [97] = 232448,
        [99] = 1,     [100] = 0,   [101] = 0,      [102] = 1,         [103] = 1,        [106] = 32,     [107] = 0,
        [111] = 1024, [115] = 1,   [119] = 1,      [120] = 1,         [121] = 0,        [122] = 1,
    };
    int a = (int)attribute;

    ENTER(cuDeviceGetAttribute);
    CHECK_DEVICE(device);
    if (!value || a < 1 || a > 150)
        return CUDA_ERROR_INVALID_VALUE;
    *value = a < (int)(sizeof values / sizeof *values) ? values[a] : 0;
    if (a == 33)
        *value = device + 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    ENTER(cuDeviceCanAccessPeer);
    CHECK_DEVICE(device);
    CHECK_DEVICE(peer);
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int len, CUdevice device)
{
    ENTER(cuDeviceGetPCIBusId);
    CHECK_DEVICE(device);
    if (!text || len < 13)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(text, (size_t)len, "0000:%02X:00.0", (unsigned)device + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
    unsigned domain, bus, slot;

    ENTER(cuDeviceGetByPCIBusId);
    if (!device || !text || sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return CUDA_ERROR_INVALID_VALUE;
    CHECK_DEVICE((int)bus - 1);
    *device = (int)bus - 1;
    return CUDA_SUCCESS;
}
