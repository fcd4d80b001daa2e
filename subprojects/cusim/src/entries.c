/* The table of entry points, and looking them up. */
#include "core.h"

const struct cs_entry_info cs_entry_table[CS_ENTRIES] = {
#define X(base, symbol, version, rules, params) [ENTRY_##symbol] = {#base, #symbol, (void (*)(void))symbol, version, rules},
#include "entries.def"
#undef X
};

/* The newest binary interface of `base` that `version` and the driver know. The base name alone is looked up, never one with _v2.
 */
static CUresult look_up(const char *base, void **pfn, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    const struct cs_entry_info *best = NULL;
    bool exists = false, per_thread = false;

    if (flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
        return CUDA_ERROR_INVALID_VALUE;
    if (version == -1)
        version = cs.driver_version;
    if (version > cs.driver_version)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < CS_ENTRIES; i++) {
        const struct cs_entry_info *e = &cs_entry_table[i];

        if (strcmp(e->base, base) != 0 || e->version > cs.driver_version)
            continue;
        exists = true;
        /* Per-thread forms came with 7.0. */
        bool form = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && cs_per_thread_table[i];
        int since = form && e->version < 7000 ? 7000 : e->version;
        if (since <= version && (!best || e->version > best->version)) {
            best = e;
            per_thread = form;
        }
    }
    /* ISO C has no conversion from function to object pointer; POSIX has equal representations. */
    *pfn = NULL;
    if (best)
        memcpy(pfn, per_thread ? &cs_per_thread_table[best - cs_entry_table] : &best->function, sizeof *pfn);
    if (status)
        *status = best     ? CU_GET_PROC_ADDRESS_SUCCESS
                  : exists ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                           : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    ENTER(cuGetProcAddress_v2);
    return look_up(symbol, pfn, version, flags, status);
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
    CUresult r;

    ENTER(cuGetProcAddress);
    r = look_up(symbol, pfn, version, flags, NULL);
    if (r)
        return r;
    return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* NVIDIA's private tables, which the CUDA runtime needs: it cannot run on cusim. */
CUresult cuGetExportTable(const void **table, const cusim_uuid *id)
{
    ENTER(cuGetExportTable);
    (void)id;
    if (table)
        *table = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
