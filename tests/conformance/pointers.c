/* What the driver says about an address. */
#include "conformance.h"

static CUstream s;

/* The attributes that the facts ask for, as 64-bit words. */
enum { UNSET = 0x5a };

static CUresult get(CUpointer_attribute which, CUdeviceptr p, unsigned long long *out)
{
    *out = 0;
    return CU(PointerGetAttribute)(out, which, p);
}

static void told(const char *name, CUpointer_attribute which, CUdeviceptr p, long long want)
{
    unsigned long long v = 0;

    if (code(get(which, p, &v), 0, "%s", name))
        equal((long long)v, want, "%s", name);
}

static void told_set(const char *name, CUpointer_attribute which, CUdeviceptr p, bool set)
{
    unsigned long long v = 0;

    if (code(get(which, p, &v), 0, "%s", name))
        yes((v != 0) == set, "%s %s", name, set ? "set" : "NULL");
}

static void told_range(CUdeviceptr p, CUdeviceptr start, size_t size)
{
    told("RANGE_START_ADDR", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p, (long long)start);
    told("RANGE_SIZE", CU_POINTER_ATTRIBUTE_RANGE_SIZE, p, (long long)size);
}

static void told_call(CUdeviceptr p, int want, CUdeviceptr start, size_t size)
{
    CUdeviceptr base = 0;
    size_t n = 0;

    code(CU(MemGetAddressRange)(&base, &n, p), want, "cuMemGetAddressRange");
    if (want == 0)
        yes(base == start && n == size, "the range");
}

/* Unknown to the driver: single calls give 1. */
static void told_unknown_singly(CUdeviceptr p)
{
    static const struct {
        CUpointer_attribute which;
        const char *name;
    } all[] = {
        {CU_POINTER_ATTRIBUTE_CONTEXT, "CONTEXT"},
        {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "MEMORY_TYPE"},
        {CU_POINTER_ATTRIBUTE_BUFFER_ID, "BUFFER_ID"},
        {CU_POINTER_ATTRIBUTE_IS_MANAGED, "IS_MANAGED"},
        {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "DEVICE_ORDINAL"},
        {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, "RANGE_START_ADDR"},
        {CU_POINTER_ATTRIBUTE_RANGE_SIZE, "RANGE_SIZE"},
        {CU_POINTER_ATTRIBUTE_MAPPED, "MAPPED"},
        {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, "MEMPOOL_HANDLE"},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        unsigned long long word;

        code(get(all[i].which, p, &word), 1, "%s", all[i].name);
    }
}

/* And the plural call gives 0 with zeros, the range left alone. */
static void told_unknown(CUdeviceptr p)
{
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                   CU_POINTER_ATTRIBUTE_MAPPED,           CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
    unsigned long long v[6], untouched;
    void *out[] = {&v[0], &v[1], &v[2], &v[3], &v[4], &v[5]};

    told_unknown_singly(p);
    memset(v, UNSET, sizeof v);
    memset(&untouched, UNSET, sizeof untouched);
    code(CU(PointerGetAttributes)(6, which, out, p), 0, "cuPointerGetAttributes");
    yes((unsigned)v[0] == 0 && v[1] == 0 && (v[4] & 0xff) == 0 && v[5] == 0, "TYPE, ID, MAPPED and POOL zero");
    yes(v[2] == untouched && v[3] == untouched, "START and SIZE left");
    told_call(p, 500, 0, 0);
}

/* ---- kinds of memory -------------------------------------------------------------------------------------------------- */

static void plain(int unused)
{
    CUdeviceptr p = device_new(4096), neighbour = device_new(4096), big = device_new(5 << 20);
    unsigned long long a, b;

    (void)unused;
    fact("pointer.plain");
    told("CONTEXT", CU_POINTER_ATTRIBUTE_CONTEXT, p, (long long)(uintptr_t)env.ctx);
    told("MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p, 2);
    told("DEVICE_POINTER", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p, (long long)p);
    yes(buffer_id(p) != 0, "BUFFER_ID");
    told("IS_MANAGED", CU_POINTER_ATTRIBUTE_IS_MANAGED, p, 0);
    told("DEVICE_ORDINAL", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p, env.device);
    told("IPC", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p, 1);
    told("MAPPED", CU_POINTER_ATTRIBUTE_MAPPED, p, 1);
    told_set("MEMPOOL_HANDLE", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p, false);
    told_range(p, p, 4096);
    told_call(p, 0, p, 4096);
    told("MAPPING_SIZE", CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p, 2 << 20);

    fact("pointer.plain.interior");
    told_range(p + 100, p, 4096);
    yes(buffer_id(p + 100) == buffer_id(p) && buffer_id(p + 4095) == buffer_id(p), "one id from the first to the last byte");
    told_range(p + 4095, p, 4096);

    fact("pointer.plain.neighbours");
    yes(neighbour == p + 4096, "4 KiB allocations lie back to back");
    yes(buffer_id(p + 4096) == buffer_id(neighbour) && buffer_id(neighbour) != buffer_id(p),
        "one past the end is the neighbour's");
    a = b = 0;
    MUST(PointerGetAttribute, &a, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, p);
    MUST(PointerGetAttribute, &b, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, neighbour);
    yes(a == b && a != 0, "they share a MEMORY_BLOCK_ID");

    fact("pointer.plain.large");
    told_range(big + 1, big, 5 << 20);
}

static void pool(int unused)
{
    CUdeviceptr p = 0;
    unsigned long long v;

    (void)unused;
    s = stream_nb();
    MUST(MemAllocAsync, &p, 4096, s);
    MUST(StreamSynchronize, s);
    fact("pointer.pool");
    told_set("CONTEXT", CU_POINTER_ATTRIBUTE_CONTEXT, p, false);
    told("MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p, 2);
    told("IPC", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p, 0);
    told_set("MEMPOOL_HANDLE", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p, true);
    told_range(p + 100, p, 4096);
    told_call(p, 0, p, 4096);
    told("MAPPING_SIZE", CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p, 32 << 20);
    yes(buffer_id(p) != 0, "BUFFER_ID");
    code(get(CU_POINTER_ATTRIBUTE_MAPPED, p, &v), 0, "MAPPED");
}

/* After the free and an allocation at the same address there is another id. */
static void pool_reused(int unused)
{
    CUdeviceptr p = 0, q = 0;
    unsigned long long id;

    (void)unused;
    s = stream_nb();
    MUST(MemAllocAsync, &p, 4096, s);
    MUST(StreamSynchronize, s);
    id = buffer_id(p);
    MUST(MemFreeAsync, p, s);
    MUST(StreamSynchronize, s);
    MUST(MemAllocAsync, &q, 4096, s);
    MUST(StreamSynchronize, s);
    seen("the address %s", p == q ? "comes back" : "is another");
    yes(buffer_id(q) > id, "a new and greater id");
}

static void host(int unused)
{
    char *pinned = pinned_new(8192), *pages = pages_new(8192);
    CUdeviceptr p = address(pinned);

    (void)unused;
    fact("pointer.pinned");
    told("MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p, 1);
    told("DEVICE_POINTER", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p, (long long)p);
    told("HOST_POINTER", CU_POINTER_ATTRIBUTE_HOST_POINTER, p, (long long)p);
    told("IPC", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p, 0);
    yes(buffer_id(p) != 0 && buffer_id(p + 100) == buffer_id(p), "BUFFER_ID, inside too");
    told_call(p, 0, p, 8192);

    fact("pointer.registered");
    p = address(pages);
    MUST(MemHostRegister, pages, 8192, 0);
    told("MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p, 1);
    told_set("HOST_POINTER", CU_POINTER_ATTRIBUTE_HOST_POINTER, p, true);
    told_set("DEVICE_POINTER", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p, true);
    yes(buffer_id(p) != 0, "BUFFER_ID");
    told_call(p, 0, p, 8192);
    fact("pointer.unregistered");
    MUST(MemHostUnregister, pages);
    told_unknown(p);
}

static void managed(int unused)
{
    CUdeviceptr p = 0;

    (void)unused;
    MUST(MemAllocManaged, &p, 8192, CF_ATTACH_GLOBAL);
    told("MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p, 2);
    told("IS_MANAGED", CU_POINTER_ATTRIBUTE_IS_MANAGED, p, 1);
    told_set("HOST_POINTER", CU_POINTER_ATTRIBUTE_HOST_POINTER, p, true);
    yes(buffer_id(p) != 0, "BUFFER_ID");
    told_call(p, 0, p, 8192);
}

static void variable(int unused)
{
    CUdeviceptr p = 0;
    size_t n = 0;
    CUresult r = CU(ModuleGetGlobal)(&p, &n, env.module, "gvar");

    (void)unused;
    if (r != CUDA_SUCCESS)
        skip("this driver has no __device__ variables (%d)", (int)r);
    told("MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p, 2);
    equal((long long)n, 4, "cuModuleGetGlobal says");
    told_range(p, p, 4);
    told_call(p, 0, p, 4);
    yes(buffer_id(p) != 0, "BUFFER_ID");
    value(peek(p), 3, "it holds");
}

static void graph_memory(int unused)
{
    CUdeviceptr p = 0;
    CUgraphExec x;

    (void)unused;
    s = stream_nb();
    must_begin(s, GLOBAL);
    MUST(MemAllocAsync, &p, 4096, s);
    fact("pointer.graph.during_capture");
    told_unknown_singly(p);
    MUST_LAUNCH(launch_inc(p, 1, s));
    x = must_instantiate(must_end(s));
    fact("pointer.graph.instantiated");
    told_unknown_singly(p);
    fact("pointer.graph.live");
    must_run(x, s);
    told_set("CONTEXT", CU_POINTER_ATTRIBUTE_CONTEXT, p, false);
    told_set("MEMPOOL_HANDLE", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p, false);
    told("MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p, 2);
    told_range(p, p, 4096);
    yes(buffer_id(p) != 0, "BUFFER_ID");
    fact("pointer.graph.freed");
    MUST(MemFreeAsync, p, s);
    MUST(StreamSynchronize, s);
    told_unknown_singly(p);
}

static void unknown(int unused)
{
    CUdeviceptr p = device_new(4096), keep = device_new(4096), big = device_new(5 << 20);

    (void)unused;
    (void)keep;
    fact("pointer.unknown.pageable");
    told_unknown(address(pages_new(4096)));
    fact("pointer.unknown.null");
    told_unknown(0);
    fact("pointer.unknown.float_bits");
    told_unknown(0x3f800000);
    fact("pointer.unknown.double_bits");
    told_unknown(0x3ff0000000000000ull);
    fact("pointer.unknown.all_ones");
    told_unknown(~0ull);
    fact("pointer.unknown.freed");
    MUST(MemFree, p);
    told_unknown(p);
    fact("pointer.unknown.freed_large");
    MUST(MemFree, big);
    told_unknown(big);
}

/* ---- identity ----------------------------------------------------------------------------------------------------------- */

static void ids_rise(int unused)
{
    CUdeviceptr p = 0, before = 0;
    unsigned long long id, last = 0;
    int same = 0;
    bool rising = true;

    (void)unused;
    fact("pointer.id.rises");
    for (int i = 0; i < 200; i++) {
        MUST(MemAlloc, &p, 4096);
        id = buffer_id(p);
        same += p == before;
        rising = rising && id > last;
        last = id;
        before = p;
        MUST(MemFree, p);
    }
    yes(rising, "BUFFER_ID strictly increasing over 200 cycles");
    equal(same, 199, "the address came back");

    fact("pointer.id.addresses_first_fit");
    {
        CUdeviceptr a[3], b[3];

        for (int i = 0; i < 3; i++)
            MUST(MemAlloc, &a[i], 4096);
        MUST(MemFree, a[0]);
        MUST(MemFree, a[2]);
        MUST(MemFree, a[1]);
        for (int i = 0; i < 3; i++)
            MUST(MemAlloc, &b[i], 4096);
        yes(a[0] == b[0] && a[1] == b[1] && a[2] == b[2], "freed 1, 3, 2; got 1, 2, 3");
    }
}

static void bad_calls(int unused)
{
    CUdeviceptr p = device_new(4096), base;
    unsigned long long v[3] = {1, 1, 1};
    size_t n;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MAPPING_SIZE, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                   CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID};
    CUpointer_attribute bad[] = {(CUpointer_attribute)99}, id[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID};
    void *out[] = {&v[0], &v[1], &v[2]};

    (void)unused;
    fact("pointer.call.mapping_attributes");
    code(CU(PointerGetAttributes)(3, which, out, p), 0, "cuPointerGetAttributes(18, 19, 20)");
    equal((long long)v[0], 2 << 20, "MAPPING_SIZE");
    fact("pointer.call.unknown_attribute");
    code(CU(PointerGetAttributes)(1, bad, out, p), 1, "cuPointerGetAttributes(99)");
    code(CU(PointerGetAttribute)(&v[0], (CUpointer_attribute)99, p), 1, "cuPointerGetAttribute(99)");
    fact("pointer.call.count_0");
    code(CU(PointerGetAttributes)(0, which, out, p), 1, "cuPointerGetAttributes(count 0)");
    fact("pointer.call.no_context");
    MUST(CtxSetCurrent, NULL);
    code(CU(PointerGetAttribute)(&v[0], CU_POINTER_ATTRIBUTE_BUFFER_ID, p), 0, "cuPointerGetAttribute");
    code(CU(PointerGetAttributes)(1, id, out, p), 0, "cuPointerGetAttributes");
    code(CU(MemGetAddressRange)(&base, &n, p), 201, "cuMemGetAddressRange");
    MUST(CtxSetCurrent, env.ctx);
}

const struct job pointer_jobs[] = {
    {.id = "pointer.plain", .run = plain},
    {.id = "pointer.pool", .run = pool},
    {.id = "pointer.pool.reused", .run = pool_reused},
    {.id = "pointer", .run = host},
    {.id = "pointer.managed", .run = managed},
    {.id = "pointer.variable", .run = variable},
    {.id = "pointer.graph", .run = graph_memory},
    {.id = "pointer.unknown", .run = unknown},
    {.id = "pointer.id", .run = ids_rise},
    {.id = "pointer.call", .run = bad_calls},
    {.id = NULL},
};
