/* Virtual memory under an executable graph. */
#include "conformance.h"

static CUstream s;
static size_t unit; /* the granularity */

static void begin_facts(void)
{
    cf_mem_prop prop = vmm_prop();

    s = stream_nb();
    MUST(MemGetAllocationGranularity, &unit, &prop, CF_GRANULARITY_MINIMUM);
}

static CUdeviceptr mapped(size_t bytes, cf_mem_handle h)
{
    CUdeviceptr p = vmm_reserve(bytes);

    vmm_map(p, bytes, h);
    return p;
}

static unsigned long long block_id(CUdeviceptr p)
{
    unsigned long long id = 0;

    MUST(PointerGetAttribute, &id, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, p);
    return id;
}

static void granularity(int unused)
{
    (void)unused;
    begin_facts();
    equal((long long)unit, 2 << 20, "granularity");
}

/* Every kind of node follows the mapping. */
static void remap(int unused)
{
    cf_mem_handle h1, h2;
    CUdeviceptr range, first, second, out, source;
    float *pinned = pinned_new(64);
    CUgraph g;
    CUgraphExec x, y;
    CUDA_MEMCPY3D c;
    CUDA_MEMSET_NODE_PARAMS m;
    CUgraphExecUpdateResultInfo info;
    unsigned long long id, block;

    (void)unused;
    begin_facts();
    h1 = vmm_create(unit);
    h2 = vmm_create(unit);
    first = mapped(unit, h1);
    second = mapped(unit, h2);
    range = mapped(unit, h1);
    out = device_new(4096);
    source = device_new(4096);
    MUST(MemsetD32, first, 0x3f800000, 1024);
    MUST(MemsetD32, second, 0x40000000, 1024);
    poke(source, 9);
    *pinned = 6;
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_copy(out, range, s));
    MUST(MemcpyDtoDAsync, out + 4, range + 4, 4, s);
    MUST(MemsetD32Async, range + 64, 0x40400000, 1, s);
    MUST(MemcpyDtoDAsync, range + 68, source, 4, s);
    MUST_LAUNCH(launch_set(range + 72, 8, s));
    MUST(MemcpyHtoDAsync, range + 76, pinned, 4, s);
    g = must_end(s);
    x = must_instantiate(g);
    must_run(x, s);
    fact("vmm.remap.before");
    value(peek(out), 1, "kernel reads");
    value(peek(out + 4), 1, "copy reads");
    value(peek(first + 64), 3, "set writes");
    value(peek(first + 68), 9, "copy writes");
    value(peek(first + 72), 8, "kernel writes");
    value(peek(first + 76), 6, "host copy writes");

    fact("vmm.remap.followed");
    id = buffer_id(range);
    block = block_id(range);
    code(CU(MemUnmap)(range, unit), 0, "cuMemUnmap");
    vmm_map(range, unit, h2);
    code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(out), 2, "kernel reads");
    value(peek(out + 4), 2, "copy reads");
    value(peek(second + 64), 3, "set writes");
    value(peek(second + 68), 9, "copy writes");
    value(peek(second + 72), 8, "kernel writes");
    value(peek(second + 76), 6, "host copy writes");
    fact("vmm.remap.ids");
    yes(buffer_id(range) > id, "another BUFFER_ID");
    yes(block_id(range) != block, "another MEMORY_BLOCK_ID");

    fact("vmm.remap.updates");
    MUST(GraphMemcpyNodeGetParams, node_at(g, 1), &c);
    code(CU(GraphExecMemcpyNodeSetParams)(x, node_at(g, 1), &c, env.ctx), 0, "copy SetParams as read");
    c.WidthInBytes = 8;
    code(CU(GraphExecMemcpyNodeSetParams)(x, node_at(g, 1), &c, env.ctx), 0, "another width");
    MUST(GraphMemsetNodeGetParams, node_at(g, 2), &m);
    m.value = 0;
    code(CU(GraphExecMemsetNodeSetParams)(x, node_at(g, 2), &m, env.ctx), 0, "set SetParams");
    code(CU(GraphExecUpdate)(x, g, &info), 0, "cuGraphExecUpdate");
    code(CU(GraphInstantiateWithFlags)(&y, g, 0), 0, "instantiate anew");
    code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");

    fact("vmm.remap.same_handle");
    id = buffer_id(range);
    block = block_id(range);
    MUST(MemUnmap, range, unit);
    vmm_map(range, unit, h2);
    yes(buffer_id(range) > id, "another BUFFER_ID");
    yes(block_id(range) == block, "the same MEMORY_BLOCK_ID");

    fact("vmm.remap.handle_released");
    poke(range, 5);
    MUST(MemUnmap, first, unit);
    MUST(MemUnmap, second, unit);
    MUST(MemRelease, h1);
    code(CU(MemRelease)(h2), 0, "cuMemRelease while mapped");
    value(peek(range), 5, "the mapping still holds");
}

static void bad_calls(int unused)
{
    cf_mem_handle h, h2;
    CUdeviceptr range;

    (void)unused;
    begin_facts();
    h = vmm_create(unit);
    h2 = vmm_create(unit);
    range = mapped(unit, h);
    fact("vmm.call.map_onto_a_mapping");
    code(CU(MemMap)(range, unit, 0, h2, 0), 1, "cuMemMap");
    fact("vmm.call.unmap_half");
    code(CU(MemUnmap)(range, unit / 2), 1, "cuMemUnmap");
    fact("vmm.call.free_mapped_range");
    code(CU(MemAddressFree)(range, unit), 1, "cuMemAddressFree");
}

static void split(int unused)
{
    CUdeviceptr range;
    CUgraphExec x;

    (void)unused;
    begin_facts();
    range = mapped(2 * unit, vmm_create(2 * unit));
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_set(range + unit, 5, s));
    x = must_instantiate(must_end(s));
    must_run(x, s);
    MUST(MemUnmap, range, 2 * unit);
    vmm_map(range, unit, vmm_create(unit));
    vmm_map(range + unit, unit, vmm_create(unit));
    code(CU(GraphLaunch)(x, s), 0, "launch over two handles in place of one");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(range + unit), 5, "it writes");
}

static void unmapped(int unused)
{
    CUdeviceptr range, out;
    cf_mem_handle h, h2;
    CUgraph g;
    CUgraphExec x = NULL;

    (void)unused;
    begin_facts();
    out = device_new(64);
    h = vmm_create(unit);
    h2 = vmm_create(unit);
    range = mapped(unit, h);
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_copy(out, range, s));
    MUST(MemcpyDtoDAsync, out, range, 4, s);
    g = must_end(s);
    fact("vmm.unmapped.instantiate");
    MUST(MemUnmap, range, unit);
    code(CU(GraphInstantiateWithFlags)(&x, g, 0), 0, "instantiate while unmapped");
    fact("vmm.unmapped.mapped_before_launch");
    vmm_map(range, unit, h2);
    poke(range, 4);
    code(CU(GraphLaunch)(x, s), 0, "launch");
    code(CU(StreamSynchronize)(s), 0, "sync");
    value(peek(out), 4, "it reads");
    fact("vmm.unmapped.capture");
    MUST(MemUnmap, range, unit);
    must_begin(s, GLOBAL);
    code(launch_copy(out, range, s), 0, "capture of a kernel");
    code(CU(MemcpyDtoDAsync)(out, range, 4, s), 1, "capture of a copy");
    state("capture", s, ACTIVE);
    code(end(s), 0, "end");
}

static void unmapped_launch(int as_copy)
{
    CUdeviceptr range, out;
    CUgraphExec x;

    begin_facts();
    out = device_new(64);
    range = mapped(unit, vmm_create(unit));
    must_begin(s, GLOBAL);
    if (as_copy)
        MUST(MemcpyDtoDAsync, out, range, 4, s);
    else
        MUST_LAUNCH(launch_copy(out, range, s));
    x = must_instantiate(must_end(s));
    must_run(x, s);
    MUST(MemUnmap, range, unit);
    code(CU(GraphLaunch)(x, s), 0, "launch over an unmapped range");
    code(CU(StreamSynchronize)(s), 700, "sync");
}

/* Neither call waits for what is queued. */
static void queued(int remapped)
{
    CUdeviceptr range, second, out;
    cf_mem_handle h, h2;
    CUgraphExec x;
    double start;

    begin_facts();
    out = device_new(64);
    h = vmm_create(unit);
    h2 = vmm_create(unit);
    range = mapped(unit, h);
    second = mapped(unit, h2);
    poke(range, 1);
    poke(second, 2);
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_spin(100, s));
    MUST_LAUNCH(launch_copy(out, range, s));
    x = must_instantiate(must_end(s));
    must_run(x, s);
    MUST(GraphLaunch, x, s);
    start = now_ms();
    code(CU(MemUnmap)(range, unit), 0, "cuMemUnmap under a queued replay");
    if (remapped)
        vmm_map(range, unit, h2);
    start = now_ms() - start;
    yes(start < 60, "it did not wait (%.1f ms)", start);
    code(CU(StreamSynchronize)(s), remapped ? 0 : 700, "sync");
    if (remapped)
        value(peek(out), 2, "the replay saw the new backing:");
}

static void aliases(int unused)
{
    CUdeviceptr one, two, out, count;
    cf_mem_handle h;
    CUgraphExec x;
    int bad = 0;

    (void)unused;
    begin_facts();
    h = vmm_create(unit);
    one = mapped(unit, h);
    two = mapped(unit, h);
    out = device_new(4096);
    count = device_new(64);
    fact("vmm.alias.ids");
    yes(buffer_id(one) != buffer_id(two), "different BUFFER_IDs");
    yes(block_id(one) == block_id(two), "one MEMORY_BLOCK_ID");

    fact("vmm.alias.written_and_read");
    must_begin(s, GLOBAL);
    MUST_LAUNCH(launch_inc(count, 1, s));
    for (unsigned i = 0; i < 50; i++) {
        MUST_LAUNCH(launch_copy(one + 4 * i, count, s));
        MUST_LAUNCH(launch_copy(out + 4 * i, two + 4 * i, s));
    }
    x = must_instantiate(must_end(s));
    for (int k = 1; k <= 50; k++) {
        float v[50];

        must_run(x, s);
        MUST(MemcpyDtoH, v, out, sizeof v);
        for (int i = 0; i < 50; i++)
            bad += v[i] != (float)k;
    }
    equal(bad, 0, "written through one, read through the other in the next node: wrong");
}

static void attributes(int unused)
{
    CUdeviceptr p;
    cf_mem_handle h;
    unsigned long long v = 0;
    CUdeviceptr base = 0;
    size_t n = 0;

    (void)unused;
    begin_facts();
    h = vmm_create(2 * unit);
    p = vmm_reserve(8 * unit);
    fact("vmm.attributes.reserved");
    code(CU(PointerGetAttribute)(&v, CU_POINTER_ATTRIBUTE_BUFFER_ID, p), 1, "BUFFER_ID");
    code(CU(PointerGetAttribute)(&v, CU_POINTER_ATTRIBUTE_MAPPED, p), 1, "MAPPED");
    {
        CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MAPPED,
                                       CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
        unsigned long long w[4] = {7, 7, 7, 7};
        void *out[] = {&w[0], &w[1], &w[2], &w[3]};

        code(CU(PointerGetAttributes)(4, which, out, p), 0, "cuPointerGetAttributes");
        yes((unsigned)w[0] == 0 && (w[1] & 0xff) == 0, "TYPE and MAPPED zero");
        yes(w[2] == p && w[3] == 8 * unit, "START and SIZE the reservation");
    }

    fact("vmm.attributes.mapped_without_access");
    MUST(MemMap, p + 2 * unit, 2 * unit, 0, h, 0);
    code(CU(PointerGetAttribute)(&v, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + 2 * unit), 1, "DEVICE_POINTER");
    code(CU(MemGetAddressRange)(&base, &n, p + 2 * unit), 500, "cuMemGetAddressRange");

    fact("vmm.attributes.mapped");
    must(vmm_access(p + 2 * unit, 2 * unit), "cuMemSetAccess", __FILE__, __LINE__);
    v = 1;
    code(CU(PointerGetAttribute)(&v, CU_POINTER_ATTRIBUTE_CONTEXT, p + 2 * unit + 100), 0, "CONTEXT");
    yes(v == 0, "CONTEXT NULL");
    v = 1;
    code(CU(PointerGetAttribute)(&v, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 2 * unit + 100), 0, "RANGE_START_ADDR");
    yes(v == p, "the reservation's start");
    code(CU(PointerGetAttribute)(&v, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 2 * unit + 100), 0, "RANGE_SIZE");
    yes(v == 8 * unit, "the reservation's size");
    code(CU(PointerGetAttribute)(&v, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, p + 2 * unit + 100), 0, "MAPPING_BASE_ADDR");
    yes(v == p + 2 * unit, "the mapping's start");
    code(CU(PointerGetAttribute)(&v, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p + 2 * unit + 100), 0, "MAPPING_SIZE");
    yes(v == 2 * unit, "the mapping's size");
    code(CU(MemGetAddressRange)(&base, &n, p + 2 * unit + 100), 0, "cuMemGetAddressRange");
    yes(base == p + 2 * unit && n == 2 * unit, "the mapping");

    fact("vmm.attributes.unmapped_again");
    MUST(MemUnmap, p + 2 * unit, 2 * unit);
    code(CU(PointerGetAttribute)(&v, CU_POINTER_ATTRIBUTE_BUFFER_ID, p + 2 * unit), 1, "BUFFER_ID");
    code(CU(PointerGetAttribute)(&v, CU_POINTER_ATTRIBUTE_MAPPED, p + 2 * unit), 1, "MAPPED");
}

/* cuMemFree waits for the whole device, cuMemAlloc and the calls here do not. */
static void waits(int unused)
{
    CUstream other;
    CUdeviceptr p = 0, range;
    cf_mem_handle h;
    double start;

    (void)unused;
    begin_facts();
    other = stream_nb();
    h = vmm_create(unit);
    range = mapped(unit, h);
    sync_all();
    fact("vmm.waits.remap");
    MUST_LAUNCH(launch_spin(80, other));
    start = now_ms();
    MUST(MemUnmap, range, unit);
    vmm_map(range, unit, h);
    start = now_ms() - start;
    yes(start < 50, "unmap, map and access beside a kernel of 80 ms did not wait (%.1f ms)", start);
    sync_all();
    fact("vmm.waits.cuMemAlloc_and_cuMemFree");
    MUST_LAUNCH(launch_spin(80, other));
    start = now_ms();
    MUST(MemAlloc, &p, 4096);
    start = now_ms() - start;
    yes(start < 50, "cuMemAlloc did not wait (%.1f ms)", start);
    start = now_ms();
    MUST(MemFree, p);
    start = now_ms() - start;
    yes(start > 20, "cuMemFree did (%.1f ms)", start);
}

const struct job vmm_jobs[] = {
    {.id = "vmm.granularity", .run = granularity},
    {.id = "vmm.remap", .run = remap},
    {.id = "vmm.call", .run = bad_calls},
    {.id = "vmm.split_backing", .run = split},
    {.id = "vmm.unmapped", .run = unmapped},
    {.id = "vmm.unmapped_launch.kernel", .run = unmapped_launch, .arg = 0},
    {.id = "vmm.unmapped_launch.copy", .run = unmapped_launch, .arg = 1},
    {.id = "vmm.queued.unmapped", .run = queued, .arg = 0, .flags = JOB_ALONE},
    {.id = "vmm.queued.remapped", .run = queued, .arg = 1, .flags = JOB_ALONE},
    {.id = "vmm.alias", .run = aliases},
    {.id = "vmm.attributes", .run = attributes},
    {.id = "vmm.waits", .run = waits, .flags = JOB_ALONE},
    {.id = NULL},
};
