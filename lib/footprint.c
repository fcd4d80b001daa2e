#include "footprint.h"

#include <stdlib.h>
#include <string.h>

#include "audit_p.h"
#include "graph/operands.h"
#include "graph/rewrite.h"
#include "room.h"

/* Items of a list, to begin with. */
#define ROOM_LEAST 256u

/* Kernels that wait for kernels of other devices. More are told by the caller. */
static const char *const collective_patterns[] = {
    "*nccl*",           "*nvshmem*",        "*msccl*",           "*allreduce*",     "*all_reduce*",          "*allgather*", "*all_gather*",
    "*reducescatter*",  "*reduce_scatter*", "*alltoall*",        "*all_to_all*",    "*cross_device_reduce*", "*multimem*",  "*deep_ep*",
    "*AllReduce*",      "*AllGather*",      "*ReduceScatter*",   "*AllToAll*",      "*Alltoall*",
};

/* What is known of one kernel, whichever node launches it. */
typedef struct habit {
    const sg__layout *layout;
    bool collective, barrier;
    bool *reads; /* Of each argument: declared. */
} habit;

typedef struct survey {
    stepgraph_step *step;
    const stepgraph_relax_config *config;
    sg__footprint *out;
    habit *habits;
    size_t n_habits;
    CUdeviceptr low, high; /* All memory that is known lies between, and its end. */
    sg__allocations odd; /* What only odd places of arguments lead to, where the step does not look, or words that it may take for left over. */
    sg__values numbers;  /* That were looked at for it. */

    /* The node in hand. */
    uint32_t node, first_access;
    const habit *kernel;
    bool known;      /* Something in it points into known memory. */
    bool host;       /* Some of that is host memory. */
    bool unreadable; /* Not all of it could be read. */
    bool lost;       /* It writes what cannot be put back: pageable memory, or an array. */
} survey;

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool fits_any(const sg__layout *layout, const stepgraph_relax_kernel *kernels, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (sg__layout_fits(layout, kernels[i].pattern))
            return true;
    return false;
}

static bool is_collective(const survey *s, const sg__layout *layout)
{
    for (size_t i = 0; i < sizeof collective_patterns / sizeof *collective_patterns; i++)
        if (sg__name_fits(collective_patterns[i], sg__name_raw(layout->name)))
            return true;
    return fits_any(layout, s->config->collectives, s->config->n_collectives);
}

static const habit *habit_of(survey *s, const sg__layout *layout)
{
    habit *h;

    for (size_t i = s->n_habits; i-- > 0;)
        if (s->habits[i].layout == layout)
            return &s->habits[i];
    h = &s->habits[s->n_habits]; /* There is room for one a node. */
    *h = (habit){.layout = layout};
    if (layout->name != NULL && layout->known) {
        h->reads = calloc(layout->n + 1u, sizeof *h->reads);
        if (h->reads == NULL) {
            sg__fail_memory("host", layout->n + 1u);
            return NULL;
        }
        h->collective = is_collective(s, layout);
        h->barrier = fits_any(layout, s->config->barriers, s->config->n_barriers);
        for (uint32_t i = 0; i < s->config->n_reads; i++)
            if (sg__layout_fits(layout, s->config->reads[i].pattern))
                for (uint32_t k = 0; k < layout->n; k++)
                    h->reads[k] |= s->config->reads[i].argument == k || s->config->reads[i].argument == UINT32_MAX;
    }
    s->n_habits++;
    return h;
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

/* The number of a block that was met. */
static stepgraph_status number_block(sg__footprint *out, const sg__block *block, uint32_t *number)
{
    sg__block *blocks;

    for (size_t i = out->n_blocks; i-- > 0 && out->n_blocks - i < 512;)
        if (out->blocks[i].start == block->start && out->blocks[i].first_node == block->first_node) {
            *number = (uint32_t)i;
            return STEPGRAPH_OK;
        }
    /* One that was met long ago gets a second number: as if it were another block, which only what is told of a quarantine notices. */
    blocks = sg__room(out->blocks, &out->blocks_room, out->n_blocks + 1, ROOM_LEAST, sizeof *blocks);
    if (blocks == NULL)
        return STEPGRAPH_ERR_MEMORY;
    out->blocks = blocks;
    *number = (uint32_t)out->n_blocks;
    out->blocks[out->n_blocks] = *block;
    out->blocks[out->n_blocks++].label = "";
    return STEPGRAPH_OK;
}

static stepgraph_status add(survey *s, sg__access access, sg__touch touch)
{
    sg__footprint *out = s->out;
    size_t room = out->accesses_room;
    sg__access *accesses;
    sg__touch *touches;

    access.node = s->node;
    for (size_t i = s->first_access; i < out->n_accesses; i++)
        if (out->accesses[i].start == access.start && out->accesses[i].bytes == access.bytes && out->accesses[i].write >= access.write)
            return STEPGRAPH_OK; /* Argument after argument points to the same. */
    accesses = sg__room(out->accesses, &room, out->n_accesses + 1, ROOM_LEAST, sizeof *accesses);
    if (accesses == NULL)
        return STEPGRAPH_ERR_MEMORY;
    out->accesses = accesses;
    touches = sg__room(out->touches, &out->accesses_room, out->n_accesses + 1, ROOM_LEAST, sizeof *touches);
    if (touches == NULL)
        return STEPGRAPH_ERR_MEMORY;
    out->touches = touches;
    out->accesses[out->n_accesses] = access;
    out->touches[out->n_accesses++] = touch;
    return STEPGRAPH_OK;
}

/* ---- where an address leads -------------------------------------------------------------------------------------- */

typedef struct extent {
    CUdeviceptr start;
    uint64_t bytes;
    bool host, read_only, library, in_block;
    sg__block block;
} extent;

static const sg__allocation *allocation_at(const survey *s, CUdeviceptr address)
{
    const sg__allocation *allocation = sg__allocation_at(&s->step->allocations, address);

    return allocation != NULL ? allocation : sg__allocation_at(&s->odd, address);
}

/* An address right behind a block is its end, as kernels take it, unless something else begins there: another block, or memory in which the host has
 * noted none. */
static bool is_end(const survey *s, CUdeviceptr address, uint32_t top, const stepgraph_pin *pin, sg__block *out)
{
    const stepgraph_session *session = s->step->session;
    sg__block other;

    if (!sg__arena_block_at(session, address - 1, top, out))
        return false;
    if (pin != NULL && pin->in_arena && pin->address < address)
        return true;
    return (pin == NULL && allocation_at(s, address) == NULL) || sg__arena_block_near(session, address, top, &other);
}

/* False: to nothing that is known. exact: no end of anything. */
static bool find(survey *s, CUdeviceptr address, bool exact, extent *out)
{
    const stepgraph_session *session = s->step->session;
    const stepgraph_pin *pin = sg__pin_at(session, address);
    uint32_t top = s->step->read.nodes[s->out->index[s->node]].top;
    const sg__allocation *allocation;
    bool live;

    *out = (extent){.library = pin != NULL && pin->role == STEPGRAPH_ROLE_LIBRARY};
    live = sg__arena_block_at(session, address, top, &out->block) || (!exact && is_end(s, address, top, pin, &out->block));
    if (live || (pin != NULL && sg__arena_block_near(session, address, top, &out->block))) {
        out->in_block = true;
        out->start = out->block.start;
        out->bytes = out->block.bytes;
        s->out->left_over += live ? 0 : 1;
    } else if (pin != NULL) {
        out->start = pin->address;
        out->bytes = pin->bytes;
    } else {
        allocation = allocation_at(s, address);
        if (allocation == NULL) /* Where nothing begins, it may be the end of what is before it. */
            return !exact && find(s, address - 1, true, out);
        out->start = allocation->start;
        out->bytes = allocation->bytes;
        out->host = allocation->type != CU_MEMORYTYPE_DEVICE;
    }
    if (pin != NULL && out->start >= pin->address && out->start + out->bytes <= pin->address + pin->bytes) {
        bool input = pin->role == STEPGRAPH_ROLE_FEED || pin->role == STEPGRAPH_ROLE_CELL;
        out->read_only = (input && (s->config->flags & STEPGRAPH_RELAX_INPUTS_WRITTEN) == 0) || pin->role == STEPGRAPH_ROLE_CONST;
    }
    return true;
}

static stepgraph_status take(void *user, const sg__operand *operand)
{
    survey *s = user;
    stepgraph_status status = STEPGRAPH_OK;
    const bool exact = operand->place != SG__WORD_ARGUMENT;
    sg__touch touch = {.place = operand->place, .argument = operand->argument, .block = UINT32_MAX};
    sg__access access = {.write = true};
    extent e;

    if (!find(s, operand->address, exact, &e)) {
        s->host |= exact; /* Of a copy or a set: host memory, or an array, or memory that is gone. */
        s->lost |= operand->place == SG__WORD_DESTINATION;
        return STEPGRAPH_OK;
    }
    s->known = true;
    s->host |= e.host;
    access.start = exact ? operand->address : e.start;
    access.bytes = exact ? operand->bytes : e.bytes;
    /* Copies and sets say what they write, whatever the role of the memory says. */
    if (operand->place == SG__WORD_SOURCE || (!exact && (e.read_only || (s->kernel->reads != NULL && s->kernel->reads[operand->argument]))))
        access.write = e.library;
    if (e.in_block)
        status = number_block(s->out, &e.block, &touch.block);
    return status == STEPGRAPH_OK ? add(s, access, touch) : status;
}

/* Our own copies of pins: what they copy stands in a list. */
static stepgraph_status take_commit(survey *s, const sg__graph_node *node)
{
    const sg__driver *driver = s->step->session->driver;
    CUDA_KERNEL_NODE_PARAMS_v1 params = {0};
    stepgraph_status status;
    const sg__slice *list;
    CUdeviceptr table;
    unsigned int n;

    SG__CU(driver, GraphKernelNodeGetParams, node->handle, &params);
    memcpy(&table, params.kernelParams[0], sizeof table);
    memcpy(&n, params.kernelParams[1], sizeof n);
    list = sg__table_list(s->step->tables, table, n);
    s->unreadable |= list == NULL;
    status = STEPGRAPH_OK;
    for (unsigned int i = 0, next; list != NULL && i < n && status == STEPGRAPH_OK; i = next) {
        uint64_t bytes = list[i].bytes;
        for (next = i + 1; next < n && list[next].to == list[i].to + bytes && list[next].from == list[i].from + bytes; next++)
            bytes += list[next].bytes; /* One range, cut into slices. */
        status = take(s, &(sg__operand){.place = SG__WORD_DESTINATION, .address = list[i].to, .bytes = bytes});
        if (status == STEPGRAPH_OK)
            status = take(s, &(sg__operand){.place = SG__WORD_SOURCE, .address = list[i].from, .bytes = bytes});
    }
fail:
    return status;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static stepgraph_status is_cooperative(const sg__driver *driver, CUgraphNode node, bool *cooperative)
{
    CUlaunchAttributeValue value;
    stepgraph_status status = STEPGRAPH_OK;

    memset(&value, 0, sizeof value);
    SG__CU(driver, GraphKernelNodeGetAttribute, node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
    *cooperative = value.cooperative != 0;
fail:
    return status;
}

/* What one node touches, of the recording or of a child graph in it. */
static stepgraph_status touch(survey *s, const sg__graph_node *node)
{
    const stepgraph_session *session = s->step->session;
    stepgraph_status status;
    bool readable = true;

    s->kernel = NULL;
    if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        if (node->function == session->kernels.commit)
            return take_commit(s, node);
        s->kernel = habit_of(s, node->layout);
        if (s->kernel == NULL)
            return STEPGRAPH_ERR_MEMORY;
    }
    status = sg__graph_operands(session->driver, node, s->low, s->high, take, s, &readable);
    s->unreadable |= !readable;
    return status;
}

/* What a kernel is, now that it is known what it touches. */
static stepgraph_status judge_kernel(survey *s, const sg__graph_node *node, stepgraph_barrier *reason)
{
    const sg__driver *driver = s->step->session->driver;
    bool cooperative = false;
    stepgraph_status status = is_cooperative(driver, node->handle, &cooperative);

    if (s->unreadable || node->layout == NULL || node->layout->name == NULL)
        *reason = STEPGRAPH_BARRIER_UNREAD;
    else if (s->kernel != NULL && s->kernel->barrier)
        *reason = STEPGRAPH_BARRIER_DECLARED;
    else if (cooperative)
        *reason = STEPGRAPH_BARRIER_COOPERATIVE;
    else if (s->host)
        *reason = STEPGRAPH_BARRIER_HOST_MEMORY;
    else if (!s->known)
        *reason = STEPGRAPH_BARRIER_NO_ADDRESS;
    else if (s->kernel != NULL && s->kernel->collective && (s->config->flags & STEPGRAPH_RELAX_COLLECTIVES_PLAIN) == 0)
        *reason = STEPGRAPH_BARRIER_COLLECTIVE;
    else if (s->kernel != NULL && s->kernel->collective)
        s->out->kinds[s->node] = SG__ORDER_COLLECTIVES;
    return status;
}

static stepgraph_status judge(survey *s, const sg__graph_node *node)
{
    stepgraph_barrier reason = STEPGRAPH_BARRIER_NONE;
    stepgraph_status status = STEPGRAPH_OK;
    bool opaque = s->unreadable || s->lost;

    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        status = judge_kernel(s, node, &reason);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
        reason = s->host || s->unreadable ? STEPGRAPH_BARRIER_HOST_MEMORY : STEPGRAPH_BARRIER_NONE;
        break;
    case CU_GRAPH_NODE_TYPE_EMPTY:
        break; /* Does nothing, and what it joins is ordered by what it touches. */
    case CU_GRAPH_NODE_TYPE_HOST:
        reason = STEPGRAPH_BARRIER_HOST_FUNCTION;
        opaque = true;
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        reason = STEPGRAPH_BARRIER_EVENT;
        opaque = true;
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        reason = STEPGRAPH_BARRIER_CHILD_GRAPH;
        break;
    default:
        reason = STEPGRAPH_BARRIER_OTHER;
        opaque = true;
        break;
    }
    s->out->reasons[s->node] = (uint8_t)reason;
    if (reason != STEPGRAPH_BARRIER_NONE)
        s->out->kinds[s->node] = SG__ORDER_BARRIER;
    if (opaque && s->out->opaque == UINT32_MAX)
        s->out->opaque = s->node;
    return status;
}

static stepgraph_status survey_nodes(survey *s)
{
    const sg__graph *read = &s->step->read;
    sg__footprint *out = s->out;
    stepgraph_status status = STEPGRAPH_OK;

    for (s->node = 0; s->node < out->n && status == STEPGRAPH_OK; s->node++) {
        uint32_t first = out->index[s->node], behind = s->node + 1 < out->n ? out->index[s->node + 1] : (uint32_t)read->n_nodes;
        s->first_access = (uint32_t)out->n_accesses;
        s->known = s->host = s->unreadable = s->lost = false;
        for (uint32_t i = first; i < behind && status == STEPGRAPH_OK; i++) {
            status = touch(s, &read->nodes[i]);
            /* What a child graph holds beside kernels, copies and sets. */
            s->unreadable |= i > first && read->nodes[i].type > CU_GRAPH_NODE_TYPE_MEMSET && read->nodes[i].type != CU_GRAPH_NODE_TYPE_EMPTY &&
                             read->nodes[i].type != CU_GRAPH_NODE_TYPE_GRAPH;
        }
        if (status == STEPGRAPH_OK)
            status = judge(s, &read->nodes[first]);
    }
    return status;
}

/* ---- the recording ----------------------------------------------------------------------------------------------- */

static stepgraph_status number_nodes(survey *s)
{
    const sg__graph *read = &s->step->read;
    sg__footprint *out = s->out;

    out->index = malloc((read->n_nodes + 1) * sizeof *out->index);
    out->kinds = calloc(read->n_nodes + 1, sizeof *out->kinds);
    out->reasons = calloc(read->n_nodes + 1, sizeof *out->reasons);
    s->habits = malloc((read->n_nodes + 1) * sizeof *s->habits);
    if (out->index == NULL || out->kinds == NULL || out->reasons == NULL || s->habits == NULL)
        return sg__fail_memory("host", read->n_nodes * (sizeof *out->index + sizeof *s->habits));
    for (uint32_t i = 0; i < read->n_nodes; i++)
        if (!sg__graph_in_child(read, i))
            out->index[out->n++] = i;
    return STEPGRAPH_OK;
}

static stepgraph_status read_edges(survey *s)
{
    const sg__graph *read = &s->step->read;
    sg__graph_edges edges;
    stepgraph_status status = sg__graph_edges_read(s->step->session->driver, read, &edges);

    if (status == STEPGRAPH_OK && edges.programmatic)
        status = sg__fail(STEPGRAPH_ERR_REFUSED,
                          "step '%s' is not relaxed: it holds programmatic launches, which mean another order than that of whole kernels",
                          s->step->name);
    for (size_t i = 0; i < edges.n; i++)
        if (!sg__graph_in_child(read, edges.items[i].from) && !sg__graph_in_child(read, edges.items[i].to))
            edges.items[s->out->n_recorded++] =
                (sg__graph_edge){.from = read->nodes[edges.items[i].from].top, .to = read->nodes[edges.items[i].to].top};
    s->out->recorded = edges.items;
    return status;
}

/* Eight bytes at any place of an argument that may be an address: whether some memory is there that the step does not know. */
static stepgraph_status look_at_odd(void *user, const sg__operand *operand)
{
    survey *s = user;
    const stepgraph_session *session = s->step->session;
    stepgraph_status status;
    sg__allocation item;
    sg__value *entry;

    if (operand->place != SG__WORD_ARGUMENT || !sg__may_be_address(operand->address) || sg__pin_at(session, operand->address) != NULL ||
        sg__resolve_outside(s->step, operand->address).where != SG__NOWHERE || sg__allocation_at(&s->odd, operand->address) != NULL)
        return STEPGRAPH_OK;
    entry = sg__values_take(&s->numbers, operand->address);
    if (entry != NULL && entry->n++ > 0)
        return STEPGRAPH_OK;
    status = sg__allocation_look(session->driver, operand->address, &item);
    if (status != STEPGRAPH_OK || item.type == 0)
        return status;
    return sg__allocation_add(&s->odd, &item) != NULL ? STEPGRAPH_OK : STEPGRAPH_ERR_MEMORY;
}

/* The step knows what words lead to, but for those that may be left over in a large struct. Packed structs hold addresses at other places, too. */
static stepgraph_status find_odd(survey *s)
{
    const sg__graph *read = &s->step->read;
    stepgraph_status status = STEPGRAPH_OK;
    bool readable;

    for (size_t i = 0; i < read->n_nodes && status == STEPGRAPH_OK; i++)
        if (read->nodes[i].type == CU_GRAPH_NODE_TYPE_KERNEL && read->nodes[i].function != s->step->session->kernels.commit)
            status = sg__graph_operands(s->step->session->driver, &read->nodes[i], 0, UINT64_MAX, look_at_odd, s, &readable);
    return status;
}

static void span(survey *s, CUdeviceptr start, uint64_t bytes)
{
    s->low = start < s->low ? start : s->low;
    s->high = start + bytes >= s->high ? start + bytes + 1 : s->high; /* An address may be meant as the end. */
}

static void find_span(survey *s)
{
    const stepgraph_session *session = s->step->session;

    s->low = UINT64_MAX;
    for (size_t i = 0; i < session->n_pins; i++)
        span(s, session->pins[i]->address, session->pins[i]->bytes);
    for (size_t i = 0; i < s->step->allocations.n; i++)
        span(s, s->step->allocations.items[i].start, s->step->allocations.items[i].bytes);
    for (size_t i = 0; i < s->odd.n; i++)
        span(s, s->odd.items[i].start, s->odd.items[i].bytes);
    if (s->high == 0)
        s->low = 0;
}

/* ---- what would be unsound --------------------------------------------------------------------------------------- */

/* Memory that is gone, or somebody else's by now. */
static stepgraph_status refuse_gone(const stepgraph_step *step)
{
    for (uint64_t i = 0; step->audit != NULL && i < step->audit->summary.kept; i++) {
        const stepgraph_finding *f = sg__audit_at(step->audit, i);
        if (f->doubtful == 0 && (f->kind == STEPGRAPH_FINDING_FREED || f->kind == STEPGRAPH_FINDING_REPLACED))
            return sg__fail(STEPGRAPH_ERR_REFUSED, "step '%s' is not relaxed, since nobody knows what it touches there: %.400s", step->name, f->text);
    }
    return STEPGRAPH_OK;
}

/* One piece of physical memory, and an address that it is known by. */
typedef struct alias {
    unsigned long long memory;
    CUdeviceptr base, address;
} alias;

static int by_memory(const void *a, const void *b)
{
    const alias *x = a, *y = b;

    if (x->memory != y->memory)
        return x->memory < y->memory ? -1 : 1;
    return x->base < y->base ? -1 : x->base > y->base;
}

/* Add every mapping in a range. What the driver does not tell is none. */
static stepgraph_status add_mappings(const sg__driver *driver, CUdeviceptr start, uint64_t bytes, alias **list, size_t *n, size_t *room)
{
    for (CUdeviceptr at = start; at < start + bytes;) {
        CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MAPPING_SIZE, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                            CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID};
        unsigned long long memory = 0;
        CUdeviceptr base = 0;
        size_t size = 0;
        void *values[] = {&size, &base, &memory};

        const CUresult code = driver->PointerGetAttributes(3, attributes, values, at);

        if (code != CUDA_SUCCESS && code != CUDA_ERROR_INVALID_VALUE) /* The latter of an attribute that it does not know. */
            return sg__fail_driver(driver, "cuPointerGetAttributes", code);
        if (code != CUDA_SUCCESS || size == 0 || base + size <= at || memory == 0)
            return STEPGRAPH_OK;
        if (*n == 0 || (*list)[*n - 1].base != base) {
            alias *larger = sg__room(*list, room, *n + 1, ROOM_LEAST, sizeof *larger);
            if (larger == NULL)
                return STEPGRAPH_ERR_MEMORY;
            *list = larger;
            (*list)[(*n)++] = (alias){.memory = memory, .base = base, .address = at};
        }
        at = base + size;
    }
    return STEPGRAPH_OK;
}

/* Whether an access may be to memory with several addresses: not what the library made, nor that of a pool. What uses host memory is a barrier anyway. */
static bool may_be_alias(const survey *s, const sg__access *access)
{
    const stepgraph_pin *pin = sg__pin_at(s->step->session, access->start);
    const sg__allocation *allocation = pin == NULL ? allocation_at(s, access->start) : NULL;

    return pin != NULL ? pin->adopted : allocation == NULL || (!allocation->pool && allocation->type == CU_MEMORYTYPE_DEVICE);
}

/* The same memory under two addresses: order by address would say nothing. */
static stepgraph_status refuse_aliases(const survey *s)
{
    const stepgraph_step *step = s->step;
    stepgraph_status status = STEPGRAPH_OK;
    size_t n = 0, room = 0;
    alias *list = NULL;
    char a[160], b[160];

    for (size_t i = 0; i < s->out->n_accesses && status == STEPGRAPH_OK; i++)
        if (may_be_alias(s, &s->out->accesses[i]))
            status = add_mappings(step->session->driver, s->out->accesses[i].start, s->out->accesses[i].bytes, &list, &n, &room);
    if (n > 0)
        qsort(list, n, sizeof *list, by_memory);
    for (size_t i = 1; i < n && status == STEPGRAPH_OK; i++)
        if (list[i].memory == list[i - 1].memory && list[i].base != list[i - 1].base) {
            sg__describe_address(step, list[i - 1].address, SG__NO_NODE, a, sizeof a);
            sg__describe_address(step, list[i].address, SG__NO_NODE, b, sizeof b);
            status = sg__fail(STEPGRAPH_ERR_REFUSED,
                              "step '%s' is not relaxed: the memory at 0x%llx (%s) is the same as at 0x%llx (%s), and what touches the one would not wait "
                              "for what touches the other",
                              step->name, list[i - 1].address, a, list[i].address, b);
        }
    free(list);
    return status;
}

/* Blocks are known by the nodes of the session's last recording. */
static stepgraph_status refuse_forgotten(const stepgraph_step *step)
{
    if (step->session->recorded == step || !sg__arenas_any(step->session))
        return STEPGRAPH_OK;
    return sg__fail(STEPGRAPH_ERR_REFUSED,
                    "step '%s' is not relaxed: another step was recorded since, and which blocks of arenas and pools it uses is known for the last "
                    "recording only; call stepgraph_step_relax() before the next one",
                    step->name);
}

static stepgraph_status refuse_node(const stepgraph_step *step, sg__fixed fixed, uint32_t node)
{
    return sg__fail(STEPGRAPH_ERR_REFUSED, "step '%s' is not relaxed: %s (node %u, '%.100s')", step->name, sg__fixed_words(fixed), node,
                    sg__node_name(&step->read.nodes[node]));
}

static stepgraph_status refuse(const stepgraph_step *step)
{
    stepgraph_status status = STEPGRAPH_OK;
    uint32_t node;
    sg__fixed fixed = sg__rewrite_obstacle(&step->read, &node);

    if (fixed != SG__FIXED_NOT)
        status = refuse_node(step, fixed, node);
    if (status == STEPGRAPH_OK)
        status = refuse_gone(step);
    return status == STEPGRAPH_OK ? refuse_forgotten(step) : status;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

stepgraph_status sg__footprint_make(stepgraph_step *step, const stepgraph_relax_config *config, sg__footprint *out)
{
    survey s = {.step = step, .config = config, .out = out};
    stepgraph_status status;

    *out = (sg__footprint){.opaque = UINT32_MAX};
    sg__values_init(&s.numbers);
    status = refuse(step);
    if (status == STEPGRAPH_OK)
        status = number_nodes(&s);
    if (status == STEPGRAPH_OK)
        status = read_edges(&s);
    if (status == STEPGRAPH_OK)
        status = find_odd(&s);
    find_span(&s);
    if (status == STEPGRAPH_OK)
        status = survey_nodes(&s);
    if (status == STEPGRAPH_OK)
        status = refuse_aliases(&s);
    for (size_t i = 0; i < s.n_habits; i++)
        free(s.habits[i].reads);
    free(s.habits);
    sg__values_free(&s.numbers);
    sg__allocations_free(&s.odd);
    return status;
}

void sg__footprint_free(sg__footprint *footprint)
{
    free(footprint->index);
    free(footprint->kinds);
    free(footprint->reasons);
    free(footprint->recorded);
    free(footprint->accesses);
    free(footprint->touches);
    free(footprint->blocks);
    *footprint = (sg__footprint){0};
}

void sg__footprint_written(sg__footprint *footprint, const stepgraph_pin *pin)
{
    for (size_t i = 0; i < footprint->n_accesses; i++) {
        sg__access *access = &footprint->accesses[i];
        if (access->start < pin->address + pin->bytes && access->start + access->bytes > pin->address &&
            footprint->touches[i].place != SG__WORD_SOURCE)
            access->write = true;
    }
}

sg__access *sg__footprint_unused(const sg__footprint *footprint)
{
    sg__access *moved = malloc((footprint->n_accesses + 1) * sizeof *moved);
    uint64_t *places = malloc((footprint->n_blocks + 1) * sizeof *places), next = (uint64_t)1 << 60; /* Beyond any address of a device. */

    for (size_t i = 0; places != NULL && i < footprint->n_blocks; i++) {
        places[i] = next;
        next += footprint->blocks[i].bytes;
    }
    for (size_t i = 0; moved != NULL && places != NULL && i < footprint->n_accesses; i++) {
        uint32_t block = footprint->touches[i].block;
        moved[i] = footprint->accesses[i];
        if (block != UINT32_MAX)
            moved[i].start = moved[i].start - footprint->blocks[block].start + places[block];
    }
    if (places == NULL) {
        free(moved);
        moved = NULL;
    }
    free(places);
    return moved;
}
