/* What `end` looks at: the recorded graph, read back and held against the registry and the counter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "step_p.h"

/* Findings that are written out; all are counted. */
#define FINDINGS_SHOWN 8u

typedef struct examination {
    stepgraph_step *step;
    const sg__graph *graph;
    size_t findings;
} examination;

/* ---- counts ------------------------------------------------------------------------------------------------------ */

static void count_nodes(stepgraph_step_stats *stats, const sg__graph *graph)
{
    memset(stats->nodes, 0, sizeof stats->nodes);
    stats->nodes_other = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        switch (graph->nodes[i].type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            stats->nodes[STEPGRAPH_KIND_KERNEL]++;
            break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            stats->nodes[STEPGRAPH_KIND_COPY]++;
            break;
        case CU_GRAPH_NODE_TYPE_MEMSET:
            stats->nodes[STEPGRAPH_KIND_SET]++;
            break;
        case CU_GRAPH_NODE_TYPE_HOST:
            stats->nodes[STEPGRAPH_KIND_HOST]++;
            break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            stats->nodes[STEPGRAPH_KIND_GRAPH]++;
            break;
        default:
            stats->nodes_other++;
        }
    stats->nodes_total = graph->n_nodes;
    stats->nodes_unread = graph->n_unread;
}

/* Kernels that were counted but not recorded went to another stream, and a replay would do without them. */
static stepgraph_status reconcile(stepgraph_step *step)
{
    stepgraph_session *session = step->session;
    uint64_t recorded = step->stats.nodes[STEPGRAPH_KIND_KERNEL] - step->pin_kernels;
    uint64_t counted = sg__counted(session, STEPGRAPH_KIND_KERNEL) - step->kernels_before;

    step->stats.counted_kernels = counted;
    if (counted > recorded && (step->flags & STEPGRAPH_STEP_ALLOW_ESCAPED) == 0)
        return sg__fail(STEPGRAPH_ERR_REFUSED,
                        "step '%s' cannot be replayed: %llu kernel launches were counted while it recorded, and the graph holds %llu. The others went "
                        "to another stream and ran at once: launch them on stepgraph_session_stream(), fork their stream with stepgraph_step_fork(), "
                        "or allow it with STEPGRAPH_STEP_ALLOW_ESCAPED",
                        step->name, (unsigned long long)counted, (unsigned long long)recorded);
    if (counted > 0 && counted != recorded)
        sg__log(session, STEPGRAPH_LOG_WARNING, "step '%s': %llu kernel launches were counted while it recorded, and the graph holds %llu",
                step->name, (unsigned long long)counted, (unsigned long long)recorded);
    return STEPGRAPH_OK;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const stepgraph_pin *const *x = a, *const *y = b;

    return (*x)->address < (*y)->address ? -1 : (*x)->address > (*y)->address;
}

static bool owned_by_graph(const sg__graph *graph, CUdeviceptr address)
{
    for (size_t i = 0; i < graph->n_owned; i++)
        if (address >= graph->owned[i].start && address < graph->owned[i].start + graph->owned[i].bytes)
            return true;
    return false;
}

/* What the driver knows about an address that no pin covers. Freed or scalar: nothing. */
static CUmemorytype ask(const sg__driver *driver, CUdeviceptr address, CUdeviceptr *start, size_t *bytes)
{
    CUmemorytype type = 0;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *values[] = {&type, start, bytes};

    return driver->PointerGetAttributes(3, attributes, values, address) == CUDA_SUCCESS ? type : 0;
}

/* Say where a word stands: "node 31, kernel 'adam', argument 0 byte 8". */
static void describe_place(const examination *e, const sg__graph_word *word, char *text, size_t bytes)
{
    const sg__graph_node *node = &e->graph->nodes[word->node];
    const char *name = sg__graph_node_name(e->step->session->driver, node);

    if (word->place == SG__WORD_ARGUMENT)
        snprintf(text, bytes, "node %u, kernel '%s', argument %u byte %u", word->node, name, word->argument, word->offset);
    else
        snprintf(text, bytes, "node %u, %s, %s", word->node, name, word->place == SG__WORD_SOURCE ? "source" : "destination");
}

static void begin_finding(examination *e)
{
    if (e->findings++ == 0)
        sg__fail(STEPGRAPH_ERR_REFUSED,
                 "step '%s' cannot be replayed: its graph holds addresses that no pin covers, and would go on using them after the host has moved "
                 "what is there. Register what they belong to with stepgraph_pin_create() and let the step use the pin's address, or allow "
                 "them with STEPGRAPH_STEP_ALLOW_UNREGISTERED",
                 e->step->name);
}

static void examine_word(examination *e, const sg__graph_word *word, bool *used)
{
    const stepgraph_session *session = e->step->session;
    size_t index = sg__pin_index(session, word->value);
    CUdeviceptr start = 0;
    char place[256];
    size_t bytes = 0;
    CUmemorytype type;

    if (!word->host && index < session->n_pins && session->pins[index]->address <= word->value) {
        used[index] = true;
        return;
    }
    if (owned_by_graph(e->graph, word->value) || sg__table_holds(e->step->tables, word->value))
        return;
    type = ask(session->driver, word->value, &start, &bytes);
    if (type == 0 && word->place == SG__WORD_ARGUMENT)
        return; /* A scalar that looks like an address. */

    begin_finding(e);
    if (e->findings > FINDINGS_SHOWN)
        return;
    describe_place(e, word, place, sizeof place);
    if (type == CU_MEMORYTYPE_DEVICE)
        sg__fail_line("  %s: 0x%llx, device memory (%zu bytes at 0x%llx)", place, (unsigned long long)word->value, bytes, start);
    else if (type == CU_MEMORYTYPE_HOST)
        sg__fail_line("  %s: 0x%llx, page-locked host memory, read or written at every replay", place, (unsigned long long)word->value);
    else
        sg__fail_line("  %s: 0x%llx, pageable or freed memory, read or written at every replay", place, (unsigned long long)word->value);
}

/* New values that commits read through their lists. */
static void examine_source(examination *e, const sg__source *source, bool *used)
{
    const stepgraph_session *session = e->step->session;
    size_t index = sg__pin_index(session, source->address);

    used[sg__pin_index(session, source->pin->address)] = true;
    if (index < session->n_pins && session->pins[index]->address <= source->address) {
        used[index] = true;
        return;
    }
    if (owned_by_graph(e->graph, source->address))
        return;
    begin_finding(e);
    if (e->findings <= FINDINGS_SHOWN)
        sg__fail_line("  the commit of pin '%s': its new value at 0x%llx", source->pin->name, source->address);
}

/* Note which pins the graph refers to. */
static stepgraph_status keep_used(stepgraph_step *step, const bool *used)
{
    const stepgraph_session *session = step->session;
    size_t n = 0;

    for (size_t i = 0; i < session->n_pins; i++)
        n += used[i] ? 1 : 0;
    step->used = malloc((n + 1) * sizeof *step->used);
    step->used_feeds = malloc((n + 1) * sizeof *step->used_feeds);
    if (step->used == NULL || step->used_feeds == NULL)
        return sg__fail_memory("host", n * sizeof *step->used);
    step->watches_adopted = false;
    for (size_t i = 0; i < session->n_pins; i++)
        if (used[i]) {
            stepgraph_pin *pin = session->pins[i];
            pin->users++;
            step->watches_adopted |= pin->adopted && pin->verifiable;
            /* What was fed before the recording counts for the first replay. */
            step->used_feeds[step->n_used] = 0;
            step->used[step->n_used++] = pin;
        }
    step->stats.pins_used = step->n_used;
    return STEPGRAPH_OK;
}

bool sg__step_uses(const stepgraph_step *step, const stepgraph_pin *pin)
{
    return step->n_used > 0 && bsearch(&pin, step->used, step->n_used, sizeof *step->used, by_address) != NULL;
}

static stepgraph_status examine_addresses(stepgraph_step *step, const sg__graph *graph)
{
    examination e = {.step = step, .graph = graph};
    stepgraph_status status = STEPGRAPH_OK;
    bool *used = calloc(step->session->n_pins + 1, sizeof *used);

    if (used == NULL)
        return sg__fail_memory("host", step->session->n_pins);
    for (size_t i = 0; i < graph->n_words; i++)
        examine_word(&e, &graph->words[i], used);
    for (size_t i = 0; i < step->n_sources; i++)
        examine_source(&e, &step->sources[i], used);
    if (graph->n_unread > 0) {
        /* Nobody knows which pins those kernels use: keep them all. */
        memset(used, true, step->session->n_pins);
        sg__log(step->session, STEPGRAPH_LOG_WARNING,
                "step '%s': the arguments of %zu kernels could not be read (a driver older than 12.4 cannot tell), so their addresses were not checked",
                step->name, graph->n_unread);
    }
    step->stats.unregistered = e.findings;
    if (e.findings > FINDINGS_SHOWN)
        sg__fail_line("  and %zu more", e.findings - FINDINGS_SHOWN);
    if (e.findings > 0 && (step->flags & STEPGRAPH_STEP_ALLOW_UNREGISTERED) == 0)
        status = STEPGRAPH_ERR_REFUSED;
    else
        sg__error_clear();
    if (e.findings > 0 && status == STEPGRAPH_OK)
        sg__log(step->session, STEPGRAPH_LOG_WARNING, "step '%s': its graph holds %zu addresses that no pin covers, as was allowed", step->name,
                e.findings);
    if (status == STEPGRAPH_OK)
        status = keep_used(step, used);
    free(used);
    return status;
}

stepgraph_status sg__step_examine(stepgraph_step *step)
{
    stepgraph_status status;
    sg__graph graph;

    status = sg__graph_read(step->session->driver, step->graph, &graph);
    if (status != STEPGRAPH_OK)
        goto done;
    count_nodes(&step->stats, &graph);
    step->stats.pin_nodes = step->pin_kernels + step->pin_copies;
    step->stats.pin_bytes = step->pin_bytes;
    status = reconcile(step);
    if (status == STEPGRAPH_OK && graph.n_nodes == 0 && (step->flags & STEPGRAPH_STEP_ALLOW_EMPTY) == 0)
        status = sg__fail(STEPGRAPH_ERR_REFUSED,
                          "step '%s' recorded nothing: its work went to another stream or device than the session's; enqueue it on "
                          "stepgraph_session_stream()",
                          step->name);
    if (status == STEPGRAPH_OK)
        status = examine_addresses(step, &graph);
done:
    sg__graph_free(&graph);
    return status;
}
