#include "relaxing.h"

#include "hidden_kernels_ptx.h"

struct drawn drawn;

/* ---- the fixture ----------------------------------------------------------------------------------------------------- */

static stepgraph_relax *reports[64];
static stepgraph_step *steps[16];
static stepgraph_arena *arenas[4];
static int n_reports, n_steps, n_arenas;
static CUmodule hidden_module;

static void setup(void)
{
    n_reports = n_arenas = 0;
    reopen_listening(STEPGRAPH_LOG_WARNING);
}

static void teardown(void)
{
    while (n_reports > 0)
        stepgraph_relax_destroy(reports[--n_reports]);
    while (n_steps > 0)
        drop_step(steps[--n_steps]);
    while (n_arenas > 0)
        OK(stepgraph_arena_destroy(arenas[--n_arenas]));
    if (hidden_module != NULL)
        CU(ModuleUnload(hidden_module));
    hidden_module = NULL;
}

TCase *relax_case(Suite *suite, const char *name)
{
    TCase *made = audit_case(suite, name);

    tcase_add_checked_fixture(made, setup, teardown);
    tcase_set_timeout(made, 60);
    return made;
}

/* ---- what tests make --------------------------------------------------------------------------------------------------- */

stepgraph_step *begin(const char *name, uint32_t flags)
{
    return steps[n_steps++] = step_make(session, name, flags);
}

stepgraph_step *record_begin(const char *name, uint32_t flags)
{
    stepgraph_step *step = begin(name, flags);

    begin_recording(step);
    return step;
}

void drop_newest_step(void)
{
    drop_step(steps[--n_steps]);
}

stepgraph_arena *arena_make(uint64_t bytes, uint64_t quarantine_bytes)
{
    stepgraph_arena_config config = STEPGRAPH_ARENA_CONFIG_INIT;

    config.bytes = bytes;
    config.quarantine_bytes = quarantine_bytes;
    OK(stepgraph_arena_create(session, &config, &arenas[n_arenas]));
    return arenas[n_arenas++];
}

CUdeviceptr pin(stepgraph_role role, const char *name)
{
    return stepgraph_pin_address(pin_make(session, role, BYTES, name));
}

CUdeviceptr block(stepgraph_arena *arena)
{
    uint64_t address = 0;

    OK(stepgraph_arena_alloc(arena, BYTES, "temporary", &address));
    return address;
}

void add_graph(CUstream on, CUgraph child)
{
    CUstreamCaptureStatus status;
    const CUgraphNode *dependencies;
    CUgraphNode node;
    cuuint64_t id;
    CUgraph graph;
    size_t n;

    MORE(StreamGetCaptureInfo(on, &status, &id, &graph, &dependencies, &n));
    MORE(GraphAddChildGraphNode(&node, graph, dependencies, n, child));
    MORE(StreamUpdateCaptureDependencies(on, &node, 1, 1));
}

CUfunction hidden(const char *name)
{
    CUfunction function;

    if (hidden_module == NULL)
        CU(ModuleLoadData(&hidden_module, hidden_kernels_ptx));
    CU(ModuleGetFunction(&function, hidden_module, name));
    return function;
}

/* ---- relaxing ---------------------------------------------------------------------------------------------------------- */

stepgraph_relax_config on_lanes(uint32_t lanes)
{
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;

    config.lanes = lanes;
    return config;
}

stepgraph_relax_summary summary(const stepgraph_relax *relax)
{
    stepgraph_relax_summary s = STEPGRAPH_RELAX_SUMMARY_INIT;

    OK(stepgraph_relax_get_summary(relax, &s));
    return s;
}

stepgraph_relax *relaxed(stepgraph_step *step, const stepgraph_relax_config *config)
{
    OK(stepgraph_step_relax(step, config, &reports[n_reports]));
    return reports[n_reports++];
}

stepgraph_relax_summary relax_to(stepgraph_step *step, uint32_t lanes)
{
    stepgraph_relax_config config = on_lanes(lanes);

    return summary(relaxed(step, &config));
}

int waits(const stepgraph_step *step, uint32_t from, uint32_t to)
{
    const sg__order *order = &step->relaxed->needed;
    unsigned char reached[256] = {0};

    reached[from] = 1;
    /* Edges go from earlier to later numbers, as these recordings are chains. */
    for (uint32_t node = from + 1; node <= to; node++)
        for (size_t i = 0; i < order->n_edges; i++)
            if (order->edges[i].to == node && reached[order->edges[i].from])
                reached[node] = 1;
    return reached[to];
}

/* ---- a step drawn from a seed ----------------------------------------------------------------------------------------- */

void drawn_make(uint64_t seed, uint64_t quarantine)
{
    char name[16];

    drawn.seed = seed;
    drawn.arena = arena_make(1 << 18, quarantine);
    for (int i = 0; i < PINS; i++) {
        snprintf(name, sizeof name, "state %d", i);
        drawn.pin[i] = pin_make(session, STEPGRAPH_ROLE_STATE, BYTES, name);
        drawn.at[i] = stepgraph_pin_address(drawn.pin[i]);
    }
    drawn.cell = pin(STEPGRAPH_ROLE_CELL, "cell");
}

void drawn_fill(void)
{
    float values[FLOATS], rate[FLOATS] = {0.25f};

    for (int i = 0; i < PINS; i++) {
        for (int k = 0; k < FLOATS; k++)
            values[k] = (float)((i * 7 + k * 3) % 11);
        OK(stepgraph_pin_write(drawn.pin[i], values, sizeof values));
    }
    OK(stepgraph_pin_feed(stepgraph_session_pin(session, "cell"), rate, sizeof rate));
    OK(stepgraph_session_flush(session));
}

static CUdeviceptr any(uint64_t *s, const CUdeviceptr *temporary, int n)
{
    uint32_t i = unit_random(s) % (unsigned)(PINS + n);

    return i < PINS ? drawn.at[i] : temporary[i - PINS];
}

void drawn_body(void)
{
    CUdeviceptr temporary[6];
    uint64_t s = drawn.seed;
    int n = 0;

    CU(MemsetD8Async(drawn.at[0], 0, BYTES, stream)); /* What stands in for it is added last, so that cusim's order is another one. */
    for (int i = 0; i < 60; i++) {
        CUdeviceptr a = any(&s, temporary, n), b = any(&s, temporary, n), c = any(&s, temporary, n);
        switch (unit_random(&s) % 9) {
        case 0:
            if (n < 6) {
                temporary[n] = block(drawn.arena);
                CU(MemsetD8Async(temporary[n], (unsigned char)i, BYTES, stream));
                n++;
            }
            break;
        case 1:
            if (n > 0)
                OK(stepgraph_arena_free(drawn.arena, temporary[--n]));
            break;
        case 2:
            CU(MemsetD8Async(a, (unsigned char)i, 1 + unit_random(&s) % BYTES, stream));
            break;
        case 3:
            if (a != b)
                CU(MemcpyDtoDAsync(a, b, 4 + unit_random(&s) % (BYTES - 3), stream));
            break;
        case 4:
            if (n > 1)
                OK(stepgraph_pin_commit_many(session, 2, (stepgraph_pin *[]){drawn.pin[1], drawn.pin[2]}, (uint64_t[]){temporary[0], temporary[1]}));
            break;
        case 5:
            update(stream, a, b, c, drawn.cell, FLOATS);
            break;
        case 6:
            inc(stream, a, (float)i);
            break;
        default:
            axpb(stream, a, b, 0.5f);
            break;
        }
    }
    while (n > 0)
        OK(stepgraph_arena_free(drawn.arena, temporary[--n]));
}

void drawn_bytes(unsigned char *to)
{
    OK(stepgraph_session_wait(session));
    for (int i = 0; i < PINS; i++)
        bytes_at(drawn.at[i], to + i * BYTES, BYTES);
}
