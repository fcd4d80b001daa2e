/* The audit of one recording: the graph, read back and held against the registry, the counter and what the driver knows. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena_p.h"
#include "audit_p.h"

/* Where a pin is. */
typedef struct extent {
    CUdeviceptr start, end;
} extent;

enum { UNKNOWN = 256 };

typedef struct examination {
    stepgraph_step *step;
    stepgraph_audit *audit;
    bool *used; /* By index of the session's pins. */
    extent *pins; /* The same, side by side: nearly every word is looked up in them. */
    size_t n_pins;
    uint64_t in_pins; /* Words of arguments that lie in them. */
    uint64_t unknown[UNKNOWN]; /* Words that the driver was asked about last, and that mean nothing to it: left-over bytes come again. */
    const stepgraph_pin **formers; /* STATE pins that stood elsewhere before, by that address. */
    size_t n_formers;
    uint64_t unregistered; /* Words outside the registry. */
} examination;

/* ---- what may pass ----------------------------------------------------------------------------------------------- */

/* The flag that lets a kind pass; 0: none does. */
static uint32_t permission(stepgraph_finding_kind kind)
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
        return "allocate before stepgraph_step_prepare(), or free it inside the step";
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

static stepgraph_status begin(examination *e, stepgraph_finding_kind kind, bool fault, uint32_t node, sg__finding **out)
{
    stepgraph_status status = sg__audit_add(e->audit, kind, fault, e->step, node, out);

    if (*out != NULL)
        snprintf((*out)->said.advice, sizeof(*out)->said.advice, "%s", advice(kind));
    return status;
}

/* A finding, which is a fault unless the step allows it. *out is NULL where nobody will read it. */
static stepgraph_status add(examination *e, stepgraph_finding_kind kind, uint32_t node, sg__finding **out)
{
    return begin(e, kind, (e->step->flags & permission(kind)) == 0, node, out);
}

/* Worth knowing, and no fault. */
static stepgraph_status note(examination *e, stepgraph_finding_kind kind, uint32_t node, sg__finding **out)
{
    return begin(e, kind, false, node, out);
}

static void say(sg__finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(sg__finding *finding, const char *format, ...)
{
    va_list arguments;

    if (finding == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(finding->said.text, sizeof finding->said.text, format, arguments);
    va_end(arguments);
}

/* ---- pins -------------------------------------------------------------------------------------------------------- */

static int by_former(const void *a, const void *b)
{
    const stepgraph_pin *const *x = a, *const *y = b;

    return (*x)->former < (*y)->former ? -1 : (*x)->former > (*y)->former;
}

/* What is asked of pins for every word, side by side, in one walk over them: where they are, and as sg__former_state() where they were. */
static stepgraph_status gather_pins(examination *e)
{
    const stepgraph_session *session = e->step->session;

    e->n_pins = session->n_pins;
    e->pins = malloc((e->n_pins + 1) * sizeof *e->pins);
    e->used = calloc(e->n_pins + 1, sizeof *e->used);
    e->formers = malloc((e->n_pins + 1) * sizeof *e->formers);
    if (e->pins == NULL || e->used == NULL || e->formers == NULL)
        return sg__fail_memory("host", e->n_pins * (sizeof *e->pins + sizeof *e->formers));
    for (size_t i = 0; i < e->n_pins; i++) {
        const stepgraph_pin *pin = session->pins[i];
        e->pins[i] = (extent){.start = pin->address, .end = pin->address + pin->bytes};
        if (pin->former != 0 && pin->role == STEPGRAPH_ROLE_STATE)
            e->formers[e->n_formers++] = pin;
    }
    if (e->n_formers > 0)
        qsort(e->formers, e->n_formers, sizeof *e->formers, by_former);
    return STEPGRAPH_OK;
}

/* Index of the pin that holds address; n_pins: none does. */
static size_t pin_at(const examination *e, CUdeviceptr address)
{
    const extent *base = e->pins;
    size_t n = e->n_pins;

    if (n == 0 || address < base[0].start || address >= base[n - 1].end)
        return e->n_pins;
    while (n > 1) { /* Without a branch that depends on what is found. */
        size_t half = n / 2;
        base += base[half].start <= address ? half : 0;
        n -= half;
    }
    return address < base->end ? (size_t)(base - e->pins) : e->n_pins;
}

/* An address in a pin needs no further look. */
static bool settle(void *user, uint64_t value)
{
    examination *e = user;
    size_t pin = pin_at(e, value);

    if (pin == e->n_pins)
        return false;
    e->used[pin] = true;
    e->in_pins++;
    return true;
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
    stats->counted_kernels = sg__counted(step->session, STEPGRAPH_KIND_KERNEL) - step->counted_before[STEPGRAPH_KIND_KERNEL];
}

/* Copies and sets that were counted but not recorded: made by a call that waits, which the driver runs at once, or on another stream. The
 * host may want just that, such as the next batch on a stream of its own, so it is no fault. */
static stepgraph_status reconcile_copies(examination *e, stepgraph_kind kind, CUgraphNodeType type, uint64_t ours)
{
    const stepgraph_step *step = e->step;
    uint64_t recorded = step->stats.nodes[kind] - ours, counted = sg__counted(step->session, kind) - step->counted_before[kind];
    stepgraph_status status;
    char stages[256];
    sg__finding *f;

    if (counted <= recorded)
        return STEPGRAPH_OK;
    sg__stages_escaped(step, kind, type, stages, sizeof stages);
    status = note(e, STEPGRAPH_FINDING_ESCAPED, SG__NO_NODE, &f);
    if (f == NULL)
        return status;
    f->said.before = counted;
    f->said.after = recorded;
    say(f,
        "%llu %s counted while it recorded, and the graph holds %llu%s: the others were made by a call that waits, or on another "
        "stream, and ran at once",
        (unsigned long long)counted,
        kind == STEPGRAPH_KIND_COPY ? (counted == 1 ? "copy was" : "copies were") : (counted == 1 ? "set was" : "sets were"),
        (unsigned long long)recorded, stages);
    return status;
}

/* Kernels that were counted but not recorded went to another stream, and a replay would do without them. By stage where they are marked. */
static stepgraph_status reconcile_kernels(examination *e)
{
    stepgraph_step *step = e->step;
    uint64_t recorded = step->stats.nodes[STEPGRAPH_KIND_KERNEL] - step->pin_kernels, counted = step->stats.counted_kernels;
    stepgraph_status status;
    sg__finding *f;
    char stages[256];

    if (counted <= recorded) {
        if (counted > 0 && counted < recorded)
            sg__log(step->session, STEPGRAPH_LOG_WARNING, "step '%s': %llu kernel launches were counted while it recorded, and the graph holds %llu",
                    step->name, (unsigned long long)counted, (unsigned long long)recorded);
        return STEPGRAPH_OK;
    }
    sg__stages_escaped(step, STEPGRAPH_KIND_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL, stages, sizeof stages);
    status = add(e, STEPGRAPH_FINDING_ESCAPED, SG__NO_NODE, &f);
    if (f == NULL)
        return status;
    f->said.before = counted;
    f->said.after = recorded;
    say(f,
        "%llu kernel launch%s counted while it recorded, and the graph holds %llu%s: the others went to another stream and ran "
        "at once",
        (unsigned long long)counted, counted == 1 ? " was" : "es were", (unsigned long long)recorded, stages);
    return status;
}

static stepgraph_status reconcile(examination *e)
{
    stepgraph_status status = reconcile_kernels(e);

    if (status == STEPGRAPH_OK)
        status = reconcile_copies(e, STEPGRAPH_KIND_COPY, CU_GRAPH_NODE_TYPE_MEMCPY, e->step->pin_copies);
    return status == STEPGRAPH_OK ? reconcile_copies(e, STEPGRAPH_KIND_SET, CU_GRAPH_NODE_TYPE_MEMSET, 0) : status;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static bool freed_in_graph(const sg__graph *graph, CUdeviceptr address)
{
    for (size_t i = 0; i < graph->n_freed; i++)
        if (graph->freed[i] == address)
            return true;
    return false;
}

static stepgraph_status examine_nodes(examination *e)
{
    const sg__graph *graph = &e->step->read;
    stepgraph_status status = STEPGRAPH_OK;
    sg__finding *f;

    if (graph->n_nodes == 0) {
        status = add(e, STEPGRAPH_FINDING_EMPTY, SG__NO_NODE, &f);
        say(f, "nothing was recorded: the work went to another stream or device than the session's");
    }
    for (uint32_t i = 0; i < graph->n_nodes && status == STEPGRAPH_OK; i++)
        if (graph->nodes[i].type == CU_GRAPH_NODE_TYPE_HOST) {
            status = add(e, STEPGRAPH_FINDING_HOST_FUNCTION, i, &f);
            say(f, "node %u  host function: it is called at every replay, with the argument of the recording", i);
        }
    for (size_t i = 0; i < graph->n_owned && status == STEPGRAPH_OK; i++)
        if (!freed_in_graph(graph, graph->owned[i].start)) {
            status = add(e, STEPGRAPH_FINDING_ALLOCATION, graph->owned[i].node, &f);
            say(f, "node %u  allocation of %zu bytes that nothing in the graph frees: the second replay fails",
                graph->owned[i].node, graph->owned[i].bytes);
            if (f != NULL)
                f->said.before = graph->owned[i].start;
        }
    for (size_t i = 0; i < graph->n_unread && status == STEPGRAPH_OK; i++) {
        status = note(e, STEPGRAPH_FINDING_UNREAD, graph->unread[i], &f);
        if (f != NULL)
            say(f, "node %u  %s: its contents could not be read, so its addresses were not checked", graph->unread[i],
                sg__node_name(&graph->nodes[graph->unread[i]]));
    }
    return status;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* A finding about one word. */
static stepgraph_status add_word(examination *e, stepgraph_finding_kind kind, const sg__graph_word *word, sg__finding **out)
{
    stepgraph_status status = add(e, kind, word->node, out);

    if (*out != NULL) {
        sg__finding_place(*out, (sg__word_place)word->place, word->argument, word->offset);
        (*out)->said.bytes = 8;
        (*out)->said.before = word->value;
    }
    return status;
}

/* Whether an operand is host memory, or may be: what the driver was not told, and does not know, is pageable. */
static bool is_host(const examination *e, const sg__graph_word *word)
{
    sg__allocation item;

    if (word->type != CU_MEMORYTYPE_UNIFIED)
        return word->type == CU_MEMORYTYPE_HOST;
    if (sg__resolve(e->step, word->value).where == SG__IN_GRAPH)
        return false;
    return sg__allocation_ask(e->step->session->driver, word->value, &item) == STEPGRAPH_OK && item.type != CU_MEMORYTYPE_DEVICE;
}

/* Whether the word is an operand of a copy with a host side. Launching one over memory that is gone, on either side, crashes the process. */
static bool of_host_copy(const examination *e, const sg__graph_word *word)
{
    const sg__graph *graph = &e->step->read;
    size_t at = (size_t)(word - graph->words);

    if (graph->nodes[word->node].type != CU_GRAPH_NODE_TYPE_MEMCPY)
        return false;
    return is_host(e, word) || (at > 0 && word[-1].node == word->node && is_host(e, &word[-1])) ||
           (at + 1 < graph->n_words && word[1].node == word->node && is_host(e, &word[1]));
}

/* Memory that no pin covers: what the driver says, remembered in the step. */
static stepgraph_status remember(examination *e, const sg__graph_word *word, bool *known)
{
    stepgraph_step *step = e->step;
    sg__allocation item, *kept;
    stepgraph_status status = sg__allocation_ask(step->session->driver, word->value, &item);

    *known = status == STEPGRAPH_OK && item.type != 0;
    if (!*known)
        return status;
    item.node = word->node;
    item.copied = of_host_copy(e, word);
    kept = sg__allocation_add(&step->allocations, &item);
    return kept != NULL ? STEPGRAPH_OK : STEPGRAPH_ERR_MEMORY;
}

static const stepgraph_pin *former_at(const examination *e, CUdeviceptr address)
{
    size_t low = 0, high = e->n_formers;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->formers[middle]->former <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && address < e->formers[low - 1]->former + e->formers[low - 1]->bytes ? e->formers[low - 1] : NULL;
}

static stepgraph_finding_kind kind_of_allocation(const examination *e, const sg__allocation *allocation, CUdeviceptr address)
{
    const stepgraph_session *session = e->step->session;
    const stepgraph_pin *former;

    if (allocation->type == CU_MEMORYTYPE_HOST)
        return STEPGRAPH_FINDING_PAGE_LOCKED;
    if (allocation->device != session->device)
        return STEPGRAPH_FINDING_FOREIGN;
    former = former_at(e, address);
    if (former != NULL && !e->used[sg__pin_index(session, former->address)])
        return STEPGRAPH_FINDING_FORMER_STATE;
    return allocation->pool ? STEPGRAPH_FINDING_POOL : STEPGRAPH_FINDING_UNREGISTERED;
}

/* An address that means nothing to the driver: a scalar, unless it is the operand of a copy, or we have seen memory there. */
static stepgraph_status examine_unknown(examination *e, const sg__graph_word *word)
{
    const sg__allocation *seen = sg__allocation_at(&e->step->session->seen, word->value);
    bool freed = seen != NULL || word->type == CU_MEMORYTYPE_DEVICE;
    stepgraph_status status;
    sg__finding *f;

    if (word->place == SG__WORD_ARGUMENT && seen == NULL)
        return STEPGRAPH_OK;
    e->unregistered++;
    status = add_word(e, freed ? STEPGRAPH_FINDING_FREED : STEPGRAPH_FINDING_PAGEABLE, word, &f);
    if (freed && seen == NULL)
        say(f, "freed   0x%llx: no device memory is there", (unsigned long long)word->value);
    else if (seen != NULL)
        say(f, "freed   0x%llx: %llu bytes stood there once", (unsigned long long)word->value, (unsigned long long)seen->bytes);
    else
        say(f, "pageable host memory   0x%llx: read or written at every replay", (unsigned long long)word->value);
    return status;
}

/* The operand of a copy or a set begins in a pin: it must end there too, or in the pin that follows without a gap. */
static stepgraph_status examine_reach(examination *e, const sg__graph_word *word, const stepgraph_pin *pin)
{
    const stepgraph_session *session = e->step->session;
    CUdeviceptr end = word->value + word->bytes, covered = pin->address + pin->bytes;
    stepgraph_status status;
    sg__finding *f;

    for (size_t i = sg__pin_index(session, covered); covered < end && i < session->n_pins && session->pins[i]->address == covered; i++)
        covered += session->pins[i]->bytes;
    if (covered >= end)
        return STEPGRAPH_OK;
    e->unregistered++;
    status = add_word(e, STEPGRAPH_FINDING_UNREGISTERED, word, &f);
    if (f != NULL)
        f->said.bytes = (uint32_t)word->bytes;
    say(f, "0x%llx, %llu bytes: begins in pin '%s' and reaches %llu bytes beyond it", (unsigned long long)word->value,
        (unsigned long long)word->bytes, pin->name, end - covered);
    return status;
}

/* Adopted memory that a copy with a host side uses is looked at before every launch, not at the cadence of pins. */
static stepgraph_status watch_pin(examination *e, const sg__graph_word *word, const stepgraph_pin *pin)
{
    bool known;

    return pin->adopted && pin->verifiable && of_host_copy(e, word) ? remember(e, word, &known) : STEPGRAPH_OK;
}

/* Our lists of commits are for our own kernel. Whoever else has an address in there had memory of his own in that place. */
static stepgraph_status examine_table(examination *e, const sg__graph_word *word)
{
    stepgraph_status status;
    sg__finding *f;

    if (e->step->read.nodes[word->node].function == e->step->session->kernels.copy)
        return STEPGRAPH_OK;
    e->unregistered++;
    status = add_word(e, STEPGRAPH_FINDING_REPLACED, word, &f);
    say(f, "replaced   0x%llx: the memory there was freed, and the library was given the address",
        (unsigned long long)word->value);
    return status;
}

/* One byte past a pin, in memory that is ours: the end of a range, as kernels take it. Where another buffer of the host's follows, nobody can
 * tell the end from its beginning. */
static bool is_end_of_pin(const examination *e, CUdeviceptr address)
{
    const stepgraph_session *session = e->step->session;
    size_t index = pin_at(e, address - 1);
    const stepgraph_pin *pin;
    sg__allocation item;

    if (index == e->n_pins || address == session->commit_table)
        return index != e->n_pins;
    pin = session->pins[index];
    for (const stepgraph_step *step = session->steps; step != NULL; step = step->next)
        if (sg__table_holds(step->tables, address))
            return true;
    return !pin->adopted && sg__allocation_ask(session->driver, address, &item) == STEPGRAPH_OK && item.type != 0 &&
           item.start <= pin->address;
}

static stepgraph_status examine_word(examination *e, const sg__graph_word *word)
{
    const bool argument = word->place == SG__WORD_ARGUMENT;
    uint64_t *unknown = &e->unknown[(word->value >> 3 ^ word->value >> 12) % UNKNOWN];
    stepgraph_finding_kind kind;
    sg__allocation *allocation;
    stepgraph_status status;
    sg__place where;
    sg__finding *f;
    char what[160];
    bool known;

    if (argument && *unknown == word->value)
        return STEPGRAPH_OK;
    where = argument ? sg__resolve_outside(e->step, word->value) : sg__resolve(e->step, word->value);
    if ((where.where == SG__NOWHERE || where.where == SG__IN_TABLE) && word->place == SG__WORD_ARGUMENT &&
        is_end_of_pin(e, word->value))
        return STEPGRAPH_OK;
    if (where.where == SG__NOWHERE) {
        status = remember(e, word, &known);
        if (status != STEPGRAPH_OK)
            return status;
        if (!known && argument && sg__allocation_at(&e->step->session->seen, word->value) == NULL)
            *unknown = word->value;
        if (!known)
            return examine_unknown(e, word);
        where = sg__resolve(e->step, word->value);
    }
    e->audit->summary.addresses++;
    e->audit->summary.in_pins += where.where == SG__IN_PIN ? 1 : 0;
    e->audit->summary.in_graph += where.where == SG__IN_GRAPH ? 1 : 0;
    if (where.where == SG__IN_PIN) {
        status = watch_pin(e, word, e->step->session->pins[where.pin]);
        return status == STEPGRAPH_OK ? examine_reach(e, word, e->step->session->pins[where.pin]) : status;
    }
    if (where.where == SG__IN_TABLE)
        return examine_table(e, word);
    if (where.where != SG__IN_ALLOCATION)
        return STEPGRAPH_OK;

    e->unregistered++;
    allocation = &e->step->allocations.items[where.allocation - e->step->allocations.items];
    /* Known from an earlier word as a kernel's, it may now turn out to be a copy's. */
    if (of_host_copy(e, word))
        allocation->copied = true;
    /* What is allowed is named once for each allocation, not thousands of times. */
    kind = kind_of_allocation(e, allocation, word->value);
    if (allocation->reported && (e->step->flags & permission(kind)) != 0)
        return STEPGRAPH_OK;
    allocation->reported = true;
    status = add_word(e, kind, word, &f);
    if (f != NULL) {
        sg__describe_address(e->step, word->value, word->node, what, sizeof what);
        say(f, "0x%llx (%s)", (unsigned long long)word->value, what);
    }
    return status;
}

/* New values that commits read through their lists, where the scan does not see them. */
static stepgraph_status examine_source(examination *e, const sg__source *source)
{
    stepgraph_session *session = e->step->session;
    sg__place where = sg__resolve(e->step, source->address);
    stepgraph_status status;
    sg__finding *f;
    char what[160];

    if (where.where == SG__NOWHERE) {
        sg__allocation item;
        status = sg__allocation_ask(session->driver, source->address, &item);
        if (status == STEPGRAPH_OK && item.type != 0 && sg__allocation_add(&e->step->allocations, &item) == NULL)
            status = STEPGRAPH_ERR_MEMORY;
        if (status != STEPGRAPH_OK)
            return status;
        where = sg__resolve(e->step, source->address);
    }
    if (where.where == SG__IN_PIN || where.where == SG__IN_GRAPH)
        return STEPGRAPH_OK;
    e->unregistered++;
    status = add(
        e, where.where == SG__IN_ALLOCATION ? kind_of_allocation(e, where.allocation, source->address) : STEPGRAPH_FINDING_FREED,
        SG__NO_NODE, &f);
    if (f != NULL) {
        f->said.before = source->address;
        sg__describe_address(e->step, source->address, SG__NO_NODE, what, sizeof what);
        say(f, "the commit of pin '%s' reads its new value at 0x%llx (%s)", source->pin->name, source->address, what);
    }
    return status;
}

/* The first word that lies in a pin; NULL: only lists of commits have it. */
static const sg__graph_word *first_word_in(const sg__graph *graph, const stepgraph_pin *pin)
{
    for (size_t i = 0; i < graph->n_words; i++)
        if (graph->words[i].value >= pin->address && graph->words[i].value < pin->address + pin->bytes)
            return &graph->words[i];
    return NULL;
}

/* The pin's memory is gone; why says how. Words in pins were not kept, so the graph is read once more. */
static stepgraph_status report_adopted(examination *e, const stepgraph_pin *pin, const char *why)
{
    const sg__driver *driver = e->step->session->driver;
    const sg__graph_word *word;
    stepgraph_finding_kind kind;
    stepgraph_status status;
    sg__allocation now;
    sg__finding *f;
    sg__graph all;

    status = sg__graph_read(driver, e->step->graph, NULL, NULL, &all);
    if (status == STEPGRAPH_OK)
        status = sg__allocation_ask(driver, pin->address, &now);
    if (status == STEPGRAPH_OK) {
        word = first_word_in(&all, pin);
        kind = now.type == 0 ? STEPGRAPH_FINDING_FREED : STEPGRAPH_FINDING_REPLACED;
        status = word != NULL ? add_word(e, kind, word, &f) : add(e, kind, SG__NO_NODE, &f);
        say(f, "%.300s", why);
        if (f != NULL)
            f->said.before = pin->address;
    }
    sg__graph_free(&all);
    return status;
}

/* Adopted memory may have gone while the step recorded. */
static stepgraph_status examine_adopted(examination *e)
{
    const stepgraph_session *session = e->step->session;
    stepgraph_status status = STEPGRAPH_OK;
    stepgraph_error_info why;

    for (size_t i = 0; i < session->n_pins && status == STEPGRAPH_OK; i++) {
        if (!e->used[i])
            continue;
        status = sg__pin_check(session->pins[i]);
        if (status != STEPGRAPH_ERR_REFUSED)
            continue;
        sg__error_get(&why);
        status = report_adopted(e, session->pins[i], why.message);
    }
    return status;
}

/* A range of bytes is used; of one whose extent is unknown, the first. */
static void mark_range(examination *e, CUdeviceptr start, uint64_t bytes)
{
    const stepgraph_session *session = e->step->session;
    CUdeviceptr end = start + (bytes != 0 ? bytes : 1);

    for (size_t i = sg__pin_index(session, start); i < session->n_pins && session->pins[i]->address < end; i++)
        e->used[i] = true;
}

/* The pins that the graph refers to. Where a node could not be read, nobody knows: then all of them. */
static void mark_used(examination *e)
{
    const stepgraph_step *step = e->step;
    const stepgraph_session *session = step->session;

    for (size_t i = 0; i < step->read.n_words; i++) /* Arguments are settled already, or in no pin. */
        if (step->read.words[i].place != SG__WORD_ARGUMENT)
            mark_range(e, step->read.words[i].value, step->read.words[i].bytes);
    for (size_t i = 0; i < step->n_sources; i++) {
        mark_range(e, step->sources[i].pin->address, 1);
        mark_range(e, step->sources[i].address, step->sources[i].pin->bytes);
    }
    if (step->read.n_unread > 0)
        memset(e->used, true, session->n_pins);
}

static stepgraph_status examine_addresses(examination *e)
{
    stepgraph_step *step = e->step;
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t i = 0; i < step->read.n_words && status == STEPGRAPH_OK; i++)
        status = examine_word(e, &step->read.words[i]);
    for (size_t i = 0; i < step->n_sources && status == STEPGRAPH_OK; i++)
        status = examine_source(e, &step->sources[i]);
    step->stats.unregistered = e->unregistered;
    if (status == STEPGRAPH_OK)
        status = examine_adopted(e);
    for (size_t i = 0; i < step->allocations.n; i++)
        step->watches_copies |= step->allocations.items[i].copied && !step->allocations.items[i].pool;
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

static stepgraph_status look(examination *e)
{
    stepgraph_status status;

    count_nodes(e->step);
    e->audit->summary.nodes = e->step->stats.nodes_total;
    e->audit->summary.kernels = e->step->stats.nodes[STEPGRAPH_KIND_KERNEL];
    e->audit->summary.unread = e->step->stats.nodes_unread;
    e->audit->summary.addresses = e->audit->summary.in_pins = e->in_pins;
    mark_used(e);
    status = reconcile(e);
    if (status == STEPGRAPH_OK)
        status = examine_nodes(e);
    if (status == STEPGRAPH_OK)
        status = examine_addresses(e);
    if (status == STEPGRAPH_OK)
        status = keep_used(e->step, e->used);
    if (status == STEPGRAPH_OK)
        status = sg__arenas_carried(e->step->session, &e->step->carried, &e->step->n_carried);
    return status == STEPGRAPH_OK ? keep_seen(e->step) : status;
}

stepgraph_status sg__step_examine(stepgraph_step *step)
{
    examination e = {.step = step};
    const uint64_t began = sg__audit_clock();
    stepgraph_status status;
    char title[128];

    snprintf(title, sizeof title, "step '%.100s'", step->name);
    e.audit = sg__audit_new(title);
    status = e.audit != NULL ? gather_pins(&e) : STEPGRAPH_ERR_MEMORY;
    if (status == STEPGRAPH_OK)
        status = sg__graph_read(step->session->driver, step->graph, settle, &e, &step->read);
    if (status == STEPGRAPH_OK)
        status = look(&e);
    free(e.pins);
    free(e.used);
    free(e.formers);
    sg__graph_free_words(&step->read);
    if (status == STEPGRAPH_OK)
        status = sg__audit_finish(e.audit);
    if (status == STEPGRAPH_OK)
        e.audit->summary.read_ns = sg__audit_clock() - began;
    stepgraph_audit_destroy(step->audit);
    step->audit = e.audit;
    if (status != STEPGRAPH_OK) { /* Half a report is none. */
        stepgraph_audit_destroy(step->audit);
        step->audit = NULL;
    }
    return status;
}
