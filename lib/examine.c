/* The audit of one recording: the graph, read back and held against the registry, the counter and what the driver knows. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena_p.h"
#include "clock.h"
#include "examine_p.h"

/* ---- what may pass ----------------------------------------------------------------------------------------------- */

uint32_t sg__examine_permission(stepgraph_finding_kind kind)
{
    switch (kind) {
    case STEPGRAPH_FINDING_UNREGISTERED:
    case STEPGRAPH_FINDING_POOL:
        return STEPGRAPH_STEP_ALLOW_UNREGISTERED;
    case STEPGRAPH_FINDING_FREED:
    case STEPGRAPH_FINDING_REPLACED:
        return STEPGRAPH_STEP_ALLOW_FREED;
    case STEPGRAPH_FINDING_FOREIGN:
        return STEPGRAPH_STEP_ALLOW_FOREIGN;
    case STEPGRAPH_FINDING_PAGEABLE:
    case STEPGRAPH_FINDING_PAGE_LOCKED:
        return STEPGRAPH_STEP_ALLOW_HOST_MEMORY;
    case STEPGRAPH_FINDING_FORMER_STATE:
        return STEPGRAPH_STEP_ALLOW_FORMER_STATE;
    case STEPGRAPH_FINDING_ALLOCATION:
        return STEPGRAPH_STEP_ALLOW_ALLOCATIONS;
    case STEPGRAPH_FINDING_HOST_FUNCTION:
        return STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS;
    case STEPGRAPH_FINDING_EMPTY:
        return STEPGRAPH_STEP_ALLOW_EMPTY;
    case STEPGRAPH_FINDING_ESCAPED:
        return STEPGRAPH_STEP_ALLOW_ESCAPED;
    default:
        return 0;
    }
}

static const char *advice(stepgraph_finding_kind kind)
{
    switch (kind) {
    case STEPGRAPH_FINDING_UNREGISTERED:
    case STEPGRAPH_FINDING_POOL:
        return "pin it: register what it belongs to with stepgraph_pin_create() and let the step use the pin's address; or allow it with "
               "STEPGRAPH_STEP_ALLOW_UNREGISTERED, if the host keeps it in place";
    case STEPGRAPH_FINDING_FREED:
    case STEPGRAPH_FINDING_REPLACED:
        return "keep the memory allocated while the graph lives, best from an arena or a pin, and record again";
    case STEPGRAPH_FINDING_FOREIGN:
        return "copy it to the session's device before the step, or allow it with STEPGRAPH_STEP_ALLOW_FOREIGN";
    case STEPGRAPH_FINDING_PAGEABLE:
    case STEPGRAPH_FINDING_PAGE_LOCKED:
        return "make it a FEED and hand it over with stepgraph_pin_feed(), read results with stepgraph_pin_read(), or allow it with "
               "STEPGRAPH_STEP_ALLOW_HOST_MEMORY";
    case STEPGRAPH_FINDING_FORMER_STATE:
        return "let the step use stepgraph_pin_address() of that pin, and record again";
    case STEPGRAPH_FINDING_ALLOCATION:
        return "allocate before the recording begins, or free it inside the step";
    case STEPGRAPH_FINDING_HOST_FUNCTION:
        return "call it outside the step, or allow it with STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS, if its argument lives as long as the graph";
    case STEPGRAPH_FINDING_EMPTY:
        return "enqueue the step's work on stepgraph_session_stream(), on the session's device";
    case STEPGRAPH_FINDING_ESCAPED:
        return "launch on stepgraph_session_stream(), fork the other stream with stepgraph_step_fork(), or allow it with "
               "STEPGRAPH_STEP_ALLOW_ESCAPED";
    default:
        return "";
    }
}

static stepgraph_status begin(sg__examination *e, stepgraph_finding_kind kind, sg__weight weight, uint32_t node, sg__finding **out)
{
    stepgraph_status status = sg__audit_add(e->audit, kind, weight, e->step, node, out);

    if (*out != NULL)
        (*out)->advice = advice(kind);
    return status;
}

stepgraph_status sg__examine_add(sg__examination *e, stepgraph_finding_kind kind, uint32_t node, sg__finding **out)
{
    return begin(e, kind, (e->step->flags & sg__examine_permission(kind)) == 0 ? SG__FAULT : SG__NOTE, node, out);
}

stepgraph_status sg__examine_doubt(sg__examination *e, stepgraph_finding_kind kind, uint32_t node, sg__finding **out)
{
    stepgraph_status status = begin(e, kind, (e->step->flags & sg__examine_permission(kind)) == 0 ? SG__DOUBTFUL : SG__NOTE, node, out);

    if (*out != NULL && (*out)->weight == SG__DOUBTFUL)
        sg__finding_advise(*out, "%s; or it is left over there: compare recordings, or check the step", advice(kind));
    return status;
}

stepgraph_status sg__examine_note(sg__examination *e, stepgraph_finding_kind kind, uint32_t node, sg__finding **out)
{
    return begin(e, kind, SG__NOTE, node, out);
}

void sg__examine_say(sg__finding *finding, const char *format, ...)
{
    va_list arguments;

    if (finding == NULL)
        return;
    va_start(arguments, format);
    sg__finding_vsay(finding, format, arguments);
    va_end(arguments);
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

/* The kind that a node is counted as; STEPGRAPH_KINDS: none. */
static int kind_of(CUgraphNodeType type)
{
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return STEPGRAPH_KIND_KERNEL;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return STEPGRAPH_KIND_COPY;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return STEPGRAPH_KIND_SET;
    case CU_GRAPH_NODE_TYPE_HOST:
        return STEPGRAPH_KIND_HOST;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return STEPGRAPH_KIND_GRAPH;
    default:
        return STEPGRAPH_KINDS;
    }
}

/* What the counter saw since the recording began. */
static uint64_t counted_since(const stepgraph_step *step, stepgraph_kind kind)
{
    return sg__counted(step->session, kind) - step->counted_before[kind];
}

static void count_nodes(stepgraph_step *step)
{
    stepgraph_step_stats *stats = &step->stats;

    memset(stats->nodes, 0, sizeof stats->nodes);
    stats->nodes_other = 0;
    for (size_t i = 0; i < step->read.n_nodes; i++) {
        int kind = kind_of(step->read.nodes[i].type);
        if (kind < STEPGRAPH_KINDS)
            stats->nodes[kind]++;
        else
            stats->nodes_other++;
    }
    stats->nodes_total = step->read.n_nodes;
    stats->nodes_unread = step->read.n_unread;
    stats->pin_nodes = step->pin_kernels + step->pin_copies;
    stats->pin_bytes = step->pin_bytes;
    stats->counted_kernels = counted_since(step, STEPGRAPH_KIND_KERNEL);
}

/* What was counted but not recorded: how the report speaks of it, and what makes the finding. */
struct escape {
    stepgraph_kind kind;
    CUgraphNodeType type;
    const char *one, *many, *others;
    stepgraph_status (*add)(sg__examination *, stepgraph_finding_kind, uint32_t, sg__finding **);
};

/* Kernels went to another stream, by themselves or in a graph, and a replay would do without them. */
static const struct escape kernels = {STEPGRAPH_KIND_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL, "kernel launch was", "kernel launches were",
    "went to another stream and", sg__examine_add};
static const struct escape graphs = {STEPGRAPH_KIND_GRAPH, CU_GRAPH_NODE_TYPE_GRAPH, "graph launch was", "graph launches were",
    "went to another stream and", sg__examine_add};
/* Copies and sets were made by a call that waits, which the driver runs at once, or on another stream. The host may want just that, such as
 * the next batch on a stream of its own, and a host function that says when it is there, so it is no fault. */
static const struct escape copies = {STEPGRAPH_KIND_COPY, CU_GRAPH_NODE_TYPE_MEMCPY, "copy was", "copies were",
    "were made by a call that waits, or on another stream, and", sg__examine_note};
static const struct escape sets = {STEPGRAPH_KIND_SET, CU_GRAPH_NODE_TYPE_MEMSET, "set was", "sets were",
    "were made by a call that waits, or on another stream, and", sg__examine_note};

static const struct escape host_functions = {STEPGRAPH_KIND_HOST, CU_GRAPH_NODE_TYPE_HOST, "host function was", "host functions were",
    "went to another stream and", sg__examine_note};

/* By stage where they are marked. ours: the library's own among the nodes. */
static stepgraph_status reconcile_kind(sg__examination *e, const struct escape *escape, uint64_t ours)
{
    const uint64_t counted = counted_since(e->step, escape->kind), recorded = e->step->stats.nodes[escape->kind] - ours;
    stepgraph_status status;
    char stages[256];
    sg__finding *f;

    if (counted <= recorded)
        return STEPGRAPH_OK;
    sg__stages_escaped(e->step, escape->kind, escape->type, stages, sizeof stages);
    status = escape->add(e, STEPGRAPH_FINDING_ESCAPED, SG__NO_NODE, &f);
    if (f == NULL)
        return status;
    f->before = counted;
    f->after = recorded;
    sg__examine_say(f, "%llu %s counted while it recorded, and the graph holds %llu%s: the others %s ran at once",
        (unsigned long long)counted, counted == 1 ? escape->one : escape->many, (unsigned long long)recorded, stages, escape->others);
    return status;
}

static stepgraph_status reconcile(sg__examination *e)
{
    const stepgraph_step *step = e->step;
    const uint64_t recorded = step->stats.nodes[STEPGRAPH_KIND_KERNEL] - step->pin_kernels, counted = step->stats.counted_kernels;
    stepgraph_status status;

    if (counted > 0 && counted < recorded)
        sg__log(step->session, step->again ? STEPGRAPH_LOG_DEBUG : STEPGRAPH_LOG_WARNING,
            "step '%s': %llu kernel launches were counted while it recorded, and the graph holds %llu",
            step->name, (unsigned long long)counted, (unsigned long long)recorded);
    status = reconcile_kind(e, &kernels, step->pin_kernels);
    if (status == STEPGRAPH_OK)
        status = reconcile_kind(e, &graphs, 0);
    if (status == STEPGRAPH_OK)
        status = reconcile_kind(e, &copies, step->pin_copies);
    if (status == STEPGRAPH_OK)
        status = reconcile_kind(e, &sets, 0);
    return status == STEPGRAPH_OK ? reconcile_kind(e, &host_functions, 0) : status;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

/* An address may be given to several allocations of a graph that follow each other, and then has to be freed as often. */
static bool freed_in_graph(const sg__graph *graph, size_t index)
{
    const CUdeviceptr address = graph->owned[index].start;
    size_t made = 0, freed = 0;

    for (size_t i = 0; i <= index; i++)
        made += graph->owned[i].start == address ? 1 : 0;
    for (size_t i = 0; i < graph->n_freed && freed < made; i++)
        freed += graph->freed[i] == address ? 1 : 0;
    return freed == made;
}

static stepgraph_status examine_nodes(sg__examination *e)
{
    const sg__graph *graph = &e->step->read;
    stepgraph_status status = STEPGRAPH_OK;
    sg__finding *f;

    if (graph->n_nodes == 0) {
        status = sg__examine_add(e, STEPGRAPH_FINDING_EMPTY, SG__NO_NODE, &f);
        sg__examine_say(f, "nothing was recorded: the work went to another stream or device than the session's");
    }
    for (uint32_t i = 0; i < graph->n_nodes && status == STEPGRAPH_OK; i++)
        if (graph->nodes[i].type == CU_GRAPH_NODE_TYPE_HOST) {
            status = sg__examine_add(e, STEPGRAPH_FINDING_HOST_FUNCTION, i, &f);
            sg__examine_say(f, "node %u  host function: it is called at every replay, with the argument of the recording", i);
        }
    for (size_t i = 0; i < graph->n_owned && status == STEPGRAPH_OK; i++)
        if (!freed_in_graph(graph, i)) {
            status = sg__examine_add(e, STEPGRAPH_FINDING_ALLOCATION, graph->owned[i].node, &f);
            sg__examine_say(f, "node %u  allocation of %zu bytes that nothing in the graph frees: the second replay fails",
                graph->owned[i].node, graph->owned[i].bytes);
            if (f != NULL)
                f->before = graph->owned[i].start;
        }
    for (size_t i = 0; i < graph->n_unread && status == STEPGRAPH_OK; i++) {
        status = sg__examine_note(e, STEPGRAPH_FINDING_UNREAD, graph->unread[i], &f);
        if (f != NULL)
            sg__examine_say(f, "node %u  %s: its contents could not be read, so its addresses were not checked", graph->unread[i],
                sg__node_name(&graph->nodes[graph->unread[i]]));
    }
    return status;
}

/* ---- what remains ------------------------------------------------------------------------------------------------ */

static int by_address(const void *a, const void *b)
{
    const stepgraph_pin *const *x = a, *const *y = b;

    return (*x)->address < (*y)->address ? -1 : (*x)->address > (*y)->address;
}

bool sg__step_uses(const stepgraph_step *step, const stepgraph_pin *pin)
{
    return step->n_used > 0 && bsearch(&pin, step->used, step->n_used, sizeof *step->used, by_address) != NULL;
}

/* The driver knows an allocation by a number that it never uses again, so one pin stands for all that were adopted from it. They are
 * neighbours in step->used. */
static void watch(stepgraph_step *step, stepgraph_pin *pin)
{
    if (!pin->adopted || !pin->verifiable)
        return;
    if (step->n_watched == 0 || step->watched[step->n_watched - 1]->buffer_id != pin->buffer_id)
        step->watched[step->n_watched++] = pin;
}

static stepgraph_status keep_used(stepgraph_step *step, const bool *used)
{
    const stepgraph_session *session = step->session;
    size_t n = 0;

    for (size_t i = 0; i < session->n_pins; i++)
        n += used[i] ? 1 : 0;
    step->used = malloc((n + 1) * sizeof *step->used);
    step->watched = malloc((n + 1) * sizeof *step->watched);
    step->used_feeds = calloc(n + 1, sizeof *step->used_feeds);
    if (step->used == NULL || step->watched == NULL || step->used_feeds == NULL)
        return sg__fail_memory("host", n * sizeof *step->used);
    for (size_t i = 0; i < session->n_pins; i++)
        if (used[i]) {
            stepgraph_pin *pin = session->pins[i];
            pin->users++;
            step->used_feeds[step->n_used] = pin->fed_at <= step->fed_before ? pin->feeds : 0;
            step->used[step->n_used++] = pin;
            watch(step, pin);
        }
    step->stats.pins_used = step->n_used;
    return STEPGRAPH_OK;
}

/* The next recordings recognise this memory when it is gone. */
static stepgraph_status keep_seen(stepgraph_step *step)
{
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t i = 0; i < step->allocations.n && status == STEPGRAPH_OK; i++)
        status = sg__seen_add(step->session, &step->allocations.items[i]);
    return status;
}

static stepgraph_status look(sg__examination *e)
{
    stepgraph_status status;

    count_nodes(e->step);
    e->audit->summary.nodes = e->step->stats.nodes_total;
    e->audit->summary.kernels = e->step->stats.nodes[STEPGRAPH_KIND_KERNEL];
    e->audit->summary.unread = e->step->stats.nodes_unread;
    status = reconcile(e);
    if (status == STEPGRAPH_OK)
        status = examine_nodes(e);
    if (status == STEPGRAPH_OK)
        status = sg__examine_addresses(e);
    if (status == STEPGRAPH_OK)
        status = keep_used(e->step, e->used);
    if (status == STEPGRAPH_OK)
        status = sg__arenas_carried(e->step->session, &e->step->carried, &e->step->n_carried);
    return status == STEPGRAPH_OK ? keep_seen(e->step) : status;
}

stepgraph_status sg__step_examine(stepgraph_step *step)
{
    sg__examination e = {.step = step};
    const uint64_t began = sg__clock_ns();
    stepgraph_status status;
    char title[128];

    sg__values_init(&e.values);
    snprintf(title, sizeof title, "step '%.100s'", step->name);
    e.audit = sg__audit_new(title);
    status = e.audit != NULL ? sg__examine_read(&e) : STEPGRAPH_ERR_MEMORY;
    if (status == STEPGRAPH_OK)
        status = look(&e);
    free(e.used);
    free(e.formers);
    sg__allocations_free(&e.left);
    sg__values_free(&e.values);
    sg__graph_free_words(&step->read);
    if (status == STEPGRAPH_OK)
        status = sg__audit_finish(e.audit);
    if (status == STEPGRAPH_OK)
        e.audit->summary.read_ns = sg__clock_ns() - began;
    stepgraph_audit_destroy(step->audit);
    step->audit = e.audit;
    if (status != STEPGRAPH_OK) { /* Half a report is none. */
        stepgraph_audit_destroy(step->audit);
        step->audit = NULL;
    }
    return status;
}
