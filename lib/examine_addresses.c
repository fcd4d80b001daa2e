/* The audit of one recording: what its addresses are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena_p.h"
#include "examine_p.h"
#include "extents.h"

/* Whether it stands in a struct of which a call may have set a part only, so that it may be left over from an earlier one. */
static bool in_large_struct(const sg__examination *e, const sg__graph_word *word)
{
    return word->place == SG__WORD_ARGUMENT && e->step->read.nodes[word->node].layout->arguments[word->argument].bytes > SG__SMALL_STRUCT;
}

/* A finding about one word. */
static stepgraph_status add_word(sg__examination *e, stepgraph_finding_kind kind, const sg__graph_word *word, sg__finding **out)
{
    stepgraph_status status = in_large_struct(e, word) ? sg__examine_doubt(e, kind, word->node, out) : sg__examine_add(e, kind, word->node, out);

    if (*out != NULL) {
        sg__finding_place(*out, (sg__word_place)word->place, word->argument, word->offset);
        (*out)->bytes = 8;
        (*out)->before = word->value;
    }
    return status;
}

/* Whether an operand is host memory, or may be: what the driver was not told, and does not know, is pageable. */
static stepgraph_status is_host(const sg__examination *e, const sg__graph_word *word, bool *answer)
{
    sg__allocation item;
    stepgraph_status status;

    *answer = word->type == CU_MEMORYTYPE_HOST;
    if (word->type != CU_MEMORYTYPE_UNIFIED || sg__resolve(e->step, word->value).where == SG__IN_GRAPH)
        return STEPGRAPH_OK;
    status = sg__allocation_ask(e->step->session->driver, word->value, &item);
    *answer = status == STEPGRAPH_OK && item.type != CU_MEMORYTYPE_DEVICE;
    return status;
}

/* Whether the word is an operand of a copy with a host side. Launching one over memory that is gone, on either side, crashes the process. */
static stepgraph_status of_host_copy(const sg__examination *e, const sg__graph_word *word, bool *answer)
{
    const sg__graph *graph = &e->step->read;
    stepgraph_status status;
    size_t at;

    *answer = false;
    if (graph->nodes[word->node].type != CU_GRAPH_NODE_TYPE_MEMCPY)
        return STEPGRAPH_OK;
    at = (size_t)(word - graph->words);
    status = is_host(e, word, answer);
    if (status == STEPGRAPH_OK && !*answer && at > 0 && word[-1].node == word->node)
        status = is_host(e, &word[-1], answer);
    if (status == STEPGRAPH_OK && !*answer && at + 1 < graph->n_words && word[1].node == word->node)
        status = is_host(e, &word[1], answer);
    return status;
}

/* Memory that no pin covers: what the driver says of it, remembered in the step. */
static stepgraph_status remember(sg__examination *e, const sg__graph_word *word, sg__allocation *item, sg__allocation **out)
{
    stepgraph_status status;

    item->node = word->node;
    status = of_host_copy(e, word, &item->copied);
    if (status != STEPGRAPH_OK)
        return status;
    *out = sg__allocation_add(&e->step->allocations, item);
    return *out != NULL ? STEPGRAPH_OK : STEPGRAPH_ERR_MEMORY;
}

static int by_former(const void *a, const void *b)
{
    const stepgraph_pin *const *x = a, *const *y = b;

    return (*x)->former < (*y)->former ? -1 : (*x)->former > (*y)->former;
}

static void gather_formers(sg__examination *e)
{
    const stepgraph_session *session = e->step->session;
    CUdeviceptr furthest = 0;

    e->formers = malloc((session->n_pins + 1) * sizeof *e->formers);
    if (e->formers == NULL)
        return;
    for (size_t i = 0; i < session->n_pins; i++)
        if (session->pins[i]->former != 0 && session->pins[i]->role == STEPGRAPH_ROLE_STATE)
            e->formers[e->n_formers++] = session->pins[i];
    if (e->n_formers > 0)
        qsort(e->formers, e->n_formers, sizeof *e->formers, by_former);
    for (size_t i = 0; i < e->n_formers; i++) {
        e->formers_overlap |= e->formers[i]->former < furthest;
        if (e->formers[i]->former + e->formers[i]->bytes > furthest)
            furthest = e->formers[i]->former + e->formers[i]->bytes;
    }
}

/* Values of several pins stood there, one after the other: it is a new value's place for whichever of them the step uses. */
static const stepgraph_pin *former_of_several(const sg__examination *e, CUdeviceptr address)
{
    const stepgraph_pin *found = NULL;

    for (size_t i = 0; i < e->n_formers && e->formers[i]->former <= address; i++)
        if (address < e->formers[i]->former + e->formers[i]->bytes && (found == NULL || e->used[sg__pin_index(e->step->session, e->formers[i]->address)]))
            found = e->formers[i];
    return found;
}

/* As sg__former_state(), but quick. Most recordings never ask. */
static const stepgraph_pin *former_at(sg__examination *e, CUdeviceptr address)
{
    size_t low = 0, high;

    if (e->formers == NULL)
        gather_formers(e);
    if (e->formers == NULL)
        return sg__former_state(e->step->session, address);
    if (e->formers_overlap)
        return former_of_several(e, address);
    high = e->n_formers;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->formers[middle]->former <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && address < e->formers[low - 1]->former + e->formers[low - 1]->bytes ? e->formers[low - 1] : NULL;
}

static stepgraph_finding_kind kind_of_allocation(sg__examination *e, const sg__allocation *allocation, CUdeviceptr address)
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
static stepgraph_status examine_unknown(sg__examination *e, const sg__graph_word *word)
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
        sg__examine_say(f, "freed   0x%llx: no device memory is there", (unsigned long long)word->value);
    else if (seen != NULL)
        sg__examine_say(f, "freed   0x%llx: %llu bytes stood there once", (unsigned long long)word->value, (unsigned long long)seen->bytes);
    else
        sg__examine_say(f, "pageable host memory   0x%llx: %s", (unsigned long long)word->value,
            word->place == SG__WORD_DESTINATION ? "written at every replay, whose launch waits for it" : "read at every replay");
    return status;
}

/* How far pins cover the rows of an operand that begins in a pin. Between rows there may be gaps between pins, too. */
static CUdeviceptr covered_until(const stepgraph_session *session, const sg__graph_word *word)
{
    CUdeviceptr end = word->value + word->bytes, covered = word->value;

    for (size_t i = sg__pin_index(session, covered); covered < end; i++) {
        const CUdeviceptr next = i < session->n_pins && session->pins[i]->address < end ? session->pins[i]->address : end;
        if (next > covered && sg__rows_touch(word->rows, covered - word->value, next - word->value))
            break;
        covered = next < end ? next + session->pins[i]->bytes : end;
    }
    return covered;
}

/* The operand of a copy or a set begins in a pin: it must end there too, or in pins that follow. */
static stepgraph_status examine_reach(sg__examination *e, const sg__graph_word *word, const stepgraph_pin *pin)
{
    CUdeviceptr end = word->value + word->bytes, covered = covered_until(e->step->session, word);
    stepgraph_status status;
    sg__finding *f;

    if (covered >= end)
        return STEPGRAPH_OK;
    e->unregistered++;
    status = add_word(e, STEPGRAPH_FINDING_UNREGISTERED, word, &f);
    if (f != NULL)
        f->bytes = (uint32_t)word->bytes;
    sg__examine_say(f, "0x%llx, %llu bytes: begins in pin '%s' and reaches %llu bytes beyond it", (unsigned long long)word->value,
        (unsigned long long)word->bytes, pin->name, end - covered);
    return status;
}

/* Adopted memory that a copy with a host side uses is looked at before every launch, not at the cadence of pins. */
static stepgraph_status watch_pin(sg__examination *e, const sg__graph_word *word, const stepgraph_pin *pin)
{
    sg__allocation item, *remembered;
    bool copied = false;
    stepgraph_status status = pin->adopted && pin->verifiable ? of_host_copy(e, word, &copied) : STEPGRAPH_OK;

    if (status != STEPGRAPH_OK || !copied)
        return status;
    status = sg__allocation_ask(e->step->session->driver, word->value, &item);
    return status != STEPGRAPH_OK || item.type == 0 ? status : remember(e, word, &item, &remembered);
}

static bool is_own(sg__place place)
{
    return place.where == SG__IN_TABLE || place.where == SG__IN_OWN;
}

/* Memory of the library's, of which graphs use the lists of commits alone, in our own kernel. Whoever else has an address in there had memory of his
 * own in that place. */
static stepgraph_status examine_own(sg__examination *e, const sg__graph_word *word)
{
    stepgraph_status status;
    sg__finding *f;

    if (e->step->read.nodes[word->node].function == e->step->session->kernels.commit)
        return STEPGRAPH_OK;
    e->unregistered++;
    status = add_word(e, STEPGRAPH_FINDING_REPLACED, word, &f);
    sg__examine_say(f, "replaced   0x%llx: the memory there was freed, and the library was given the address",
        (unsigned long long)word->value);
    return status;
}

/* One byte past a pin, in memory that is ours: the end of a range, as kernels take it. Where another buffer of the host's follows, nobody can
 * tell the end from its beginning. */
static stepgraph_status is_end_of_pin(const sg__examination *e, CUdeviceptr address, bool *answer)
{
    stepgraph_session *session = e->step->session;
    size_t index = sg__extents_find(session, address - 1);
    stepgraph_status status;
    sg__allocation item;

    *answer = index != session->n_pins && sg__allocation_at(&session->own, address) != NULL;
    if (*answer || index == session->n_pins || session->pins[index]->adopted)
        return STEPGRAPH_OK;
    status = sg__allocation_ask(session->driver, address, &item);
    *answer = status == STEPGRAPH_OK && item.type != 0 && item.start <= session->pins[index]->address;
    return status;
}

/* Whether a value of arguments stands in several places and each of them needs a look of its own: the second reading brings them. */
static bool later(sg__examination *e, const sg__graph_word *word, uint32_t n)
{
    if (n == 1)
        return false;
    sg__values_find(&e->values, word->value)->marks |= SG__VALUE_EACH;
    return e->each = true;
}

/* Whether the host notes its blocks, and has none there. */
static bool is_given_back(const sg__examination *e, const sg__graph_word *word, const sg__allocation *allocation)
{
    const stepgraph_session *session = e->step->session;
    sg__block block;

    return sg__arena_notes(session, allocation->start, allocation->bytes) &&
           !sg__arena_block_at(session, word->value, e->step->read.nodes[word->node].top, &block);
}

/* An address where nothing can stand, in large structs alone: left over, whatever memory is there. */
static bool is_odd(const sg__examination *e, const sg__graph_word *word, uint32_t n)
{
    const sg__value *entry;

    if (word->value % 4 == 0)
        return false;
    if (n == 1)
        return in_large_struct(e, word);
    entry = sg__values_find(&e->values, word->value);
    return entry != NULL && (entry->marks & SG__VALUE_SET) == 0;
}

/* An address that an earlier call has left over in a large struct: one where nothing can stand, or that was given back since. What stands in a smaller
 * argument is meant. The second reading looks at each place where they do not agree. */
static bool is_left_over(sg__examination *e, const sg__graph_word *word, const sg__allocation *allocation, uint32_t n)
{
    if (is_odd(e, word, n))
        return true;
    if (word->value % 4 == 0 && !is_given_back(e, word, allocation))
        return false;
    return later(e, word, n) || in_large_struct(e, word);
}

/* An address outside the registry. What is allowed is named once for each allocation, not thousands of times. */
static stepgraph_status examine_allocation(sg__examination *e, const sg__graph_word *word, sg__allocation *allocation, uint32_t n)
{
    const stepgraph_finding_kind kind = kind_of_allocation(e, allocation, word->value);
    const bool allowed = (e->step->flags & sg__examine_permission(kind)) != 0;
    bool *reported = in_large_struct(e, word) ? &allocation->reported_in_struct : &allocation->reported, copied;
    stepgraph_status status;
    sg__finding *f;
    char what[160];

    if (!allowed && later(e, word, n))
        return STEPGRAPH_OK;
    e->audit->summary.addresses += n;
    e->unregistered += n;
    /* Known from an earlier word as a kernel's, it may now turn out to be a copy's. */
    status = of_host_copy(e, word, &copied);
    allocation->copied |= copied;
    if (status != STEPGRAPH_OK || (*reported && allowed))
        return status;
    *reported = true;
    status = add_word(e, kind, word, &f);
    if (f != NULL) {
        sg__describe_address(e->step, word->value, word->node, what, sizeof what);
        sg__examine_say(f, "0x%llx (%s)", (unsigned long long)word->value, what);
    }
    return status;
}

/* A word that leads to no memory of the registry's or ours. The driver says what is there, but is not asked again about memory that the step uses or
 * that other addresses were left over of. */
static stepgraph_status examine_elsewhere(sg__examination *e, const sg__graph_word *word, uint32_t n, const sg__allocation *used)
{
    const bool argument = word->place == SG__WORD_ARGUMENT;
    const sg__allocation *known = used != NULL ? used : sg__allocation_at(&e->left, word->value);
    sg__allocation item, *allocation;
    stepgraph_status status;

    if (known == NULL) {
        const bool seen = sg__allocation_at(&e->step->session->seen, word->value) != NULL;
        if (argument && !seen && is_odd(e, word, n))
            return STEPGRAPH_OK; /* A number, or left over: the driver need not say which. */
        status = sg__allocation_look(e->step->session->driver, word->value, &item);
        if (status != STEPGRAPH_OK)
            return status;
        if (item.type == 0 && argument && !seen)
            return STEPGRAPH_OK; /* A number. */
        if (item.type == 0)
            return later(e, word, n) ? STEPGRAPH_OK : examine_unknown(e, word);
    }
    if (argument && is_left_over(e, word, known != NULL ? known : &item, n))
        return known != NULL || sg__allocation_add(&e->left, &item) != NULL ? STEPGRAPH_OK : STEPGRAPH_ERR_MEMORY;
    if (used != NULL)
        return examine_allocation(e, word, &e->step->allocations.items[used - e->step->allocations.items], n);
    if (known != NULL)
        item = *known;
    status = remember(e, word, &item, &allocation);
    return status == STEPGRAPH_OK ? examine_allocation(e, word, allocation, n) : status;
}

/* A word that stands there n times, in arguments; operands are looked at one by one. */
static stepgraph_status examine_word(sg__examination *e, const sg__graph_word *word, uint32_t n)
{
    const bool argument = word->place == SG__WORD_ARGUMENT;
    stepgraph_audit_summary *summary = &e->audit->summary;
    stepgraph_status status = STEPGRAPH_OK;
    bool end = false;
    sg__place where;

    where = argument ? sg__resolve_outside(e->step, word->value) : sg__resolve(e->step, word->value);
    if (argument && (where.where == SG__NOWHERE || is_own(where)))
        status = is_end_of_pin(e, word->value, &end);
    if (status != STEPGRAPH_OK || end)
        return status;
    if (where.where == SG__NOWHERE || where.where == SG__IN_ALLOCATION)
        return examine_elsewhere(e, word, n, where.allocation);
    if (is_own(where) && later(e, word, n))
        return STEPGRAPH_OK;
    summary->addresses += n;
    summary->in_pins += where.where == SG__IN_PIN ? n : 0;
    summary->in_graph += where.where == SG__IN_GRAPH ? n : 0;
    if (where.where == SG__IN_PIN) {
        status = watch_pin(e, word, e->step->session->pins[where.pin]);
        return status == STEPGRAPH_OK ? examine_reach(e, word, e->step->session->pins[where.pin]) : status;
    }
    return is_own(where) ? examine_own(e, word) : STEPGRAPH_OK;
}

stepgraph_status sg__examine_word(sg__examination *e, const sg__graph_word *word)
{
    return examine_word(e, word, 1);
}

/* ---- words of arguments ------------------------------------------------------------------------------------------ */

/* A value is looked at once, where it stands first. One in a pin needs no look. */
static bool settle(void *user, uint64_t value, sg__value *entry)
{
    sg__examination *e = user;
    stepgraph_session *session = e->step->session;
    size_t pin = sg__extents_find(session, value);

    if (pin == session->n_pins)
        return false;
    e->used[pin] = true;
    if (entry != NULL)
        entry->marks |= SG__VALUE_IN_PIN;
    else
        e->audit->summary.in_pins++; /* It could not be remembered. */
    return true;
}

/* How often the value of a word stands in arguments. */
static uint32_t times(sg__examination *e, const sg__graph_word *word)
{
    const sg__value *entry = word->place == SG__WORD_ARGUMENT ? sg__values_find(&e->values, word->value) : NULL;

    return entry != NULL ? entry->n : 1;
}

/* The places in an argument of values of which each place is to be looked at. */
static stepgraph_status examine_places(void *user, uint32_t node, uint16_t argument, const unsigned char *bytes, size_t n)
{
    sg__graph_word word = {.place = SG__WORD_ARGUMENT, .node = node, .argument = argument};
    stepgraph_status status = STEPGRAPH_OK;
    sg__examination *e = user;

    for (size_t at = 0; at + 8 <= n && status == STEPGRAPH_OK; at += 8) {
        const sg__value *entry;
        memcpy(&word.value, bytes + at, sizeof word.value);
        if (!sg__may_be_address(word.value))
            continue;
        entry = sg__values_find(&e->values, word.value);
        word.offset = (uint32_t)at;
        if (entry != NULL && (entry->marks & SG__VALUE_EACH) != 0)
            status = examine_word(e, &word, 1);
    }
    return status;
}

/* Faults are told wherever they stand: the arguments are read once more for those places, of the nodes and kernels that are known by now. */
static stepgraph_status examine_each(sg__examination *e)
{
    return e->each ? sg__graph_arguments(e->step->session->driver, &e->step->read, examine_places, e) : STEPGRAPH_OK;
}

/* The pins that an operand uses. */
static void mark_operand(sg__examination *e, const sg__graph_word *word)
{
    const stepgraph_session *session = e->step->session;
    CUdeviceptr end = word->value + (word->bytes != 0 ? word->bytes : 1);

    for (size_t i = sg__pin_index(session, word->value); i < session->n_pins && session->pins[i]->address < end; i++)
        e->used[i] |= sg__graph_word_touches(word, session->pins[i]->address, session->pins[i]->bytes);
}

/* A range of bytes is used. */
static void mark_range(sg__examination *e, CUdeviceptr start, uint64_t bytes)
{
    const stepgraph_session *session = e->step->session;

    for (size_t i = sg__pin_index(session, start); i < session->n_pins && session->pins[i]->address < start + bytes; i++)
        e->used[i] = true;
}

/* The pins that the graph refers to. Where a node could not be read, nobody knows: then all of them. */
static void mark_used(sg__examination *e)
{
    const stepgraph_step *step = e->step;
    const stepgraph_session *session = step->session;

    for (size_t i = 0; i < step->read.n_words; i++) /* Arguments are settled already, or in no pin. */
        if (step->read.words[i].place != SG__WORD_ARGUMENT)
            mark_operand(e, &step->read.words[i]);
    for (size_t i = 0; i < step->n_sources; i++) {
        mark_range(e, step->sources[i].pin->address, 1);
        mark_range(e, step->sources[i].address, step->sources[i].pin->bytes);
    }
    if (step->read.n_unread > 0)
        memset(e->used, true, session->n_pins);
}

stepgraph_status sg__examine_read(sg__examination *e)
{
    stepgraph_session *session = e->step->session;
    stepgraph_status status = sg__extents_renew(session);

    if (status != STEPGRAPH_OK)
        return status;
    e->used = calloc(session->n_pins + 1, sizeof *e->used);
    if (e->used == NULL)
        return sg__fail_memory("host", session->n_pins * sizeof *e->used);
    status = sg__graph_read_values(session->driver, e->step->graph, &session->known_kernels, &e->values, settle, e, &e->step->read);
    if (status != STEPGRAPH_OK)
        return status;
    for (size_t i = 0; i < e->values.room; i++)
        e->audit->summary.in_pins += (e->values.items[i].marks & SG__VALUE_IN_PIN) != 0 ? e->values.items[i].n : 0;
    e->audit->summary.addresses = e->audit->summary.in_pins;
    mark_used(e);
    return STEPGRAPH_OK;
}

/* ---- sources and adopted memory ---------------------------------------------------------------------------------- */

/* So many bytes of a new value lie behind the pin in which it begins, and those that follow without a gap. */
static uint64_t source_reaches(const sg__examination *e, const sg__source *source)
{
    const stepgraph_session *session = e->step->session;
    CUdeviceptr end = source->address + source->pin->bytes, covered = source->address;

    for (size_t i = sg__pin_index(session, covered); covered < end && i < session->n_pins && session->pins[i]->address <= covered; i++)
        covered = session->pins[i]->address + session->pins[i]->bytes;
    return covered < end ? end - covered : 0;
}

/* New values that commits read through their lists, where the scan does not see them. */
static stepgraph_status examine_source(sg__examination *e, const sg__source *source)
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
    if (where.where == SG__IN_PIN && source_reaches(e, source) > 0) {
        e->unregistered++;
        status = sg__examine_add(e, STEPGRAPH_FINDING_UNREGISTERED, SG__NO_NODE, &f);
        if (f != NULL)
            f->before = source->address;
        sg__examine_say(f, "the new value of pin '%.100s', 0x%llx, %llu bytes: begins in pin '%.100s' and reaches %llu bytes beyond it", source->pin->name,
            (unsigned long long)source->address, (unsigned long long)source->pin->bytes, session->pins[where.pin]->name,
            (unsigned long long)source_reaches(e, source));
        return status;
    }
    if (where.where == SG__IN_PIN || where.where == SG__IN_GRAPH)
        return STEPGRAPH_OK;
    e->unregistered++;
    status = sg__examine_add(
        e, where.where == SG__IN_ALLOCATION ? kind_of_allocation(e, where.allocation, source->address) : STEPGRAPH_FINDING_FREED,
        SG__NO_NODE, &f);
    if (f != NULL) {
        f->before = source->address;
        sg__describe_address(e->step, source->address, SG__NO_NODE, what, sizeof what);
        sg__examine_say(f, "the commit of pin '%s' reads its new value at 0x%llx (%s)", source->pin->name, source->address, what);
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
static stepgraph_status report_adopted(sg__examination *e, const stepgraph_pin *pin, const char *why)
{
    const sg__driver *driver = e->step->session->driver;
    const sg__graph_word *word;
    stepgraph_finding_kind kind;
    stepgraph_status status;
    sg__allocation now;
    sg__finding *f;
    sg__graph all;

    status = sg__graph_read(driver, e->step->graph, &e->step->session->known_kernels, NULL, NULL, &all);
    if (status == STEPGRAPH_OK)
        status = sg__allocation_ask(driver, pin->address, &now);
    if (status == STEPGRAPH_OK) {
        word = first_word_in(&all, pin);
        kind = now.type == 0 ? STEPGRAPH_FINDING_FREED : STEPGRAPH_FINDING_REPLACED;
        status = word != NULL ? add_word(e, kind, word, &f) : sg__examine_add(e, kind, SG__NO_NODE, &f);
        sg__examine_say(f, "%.300s", why);
        if (f != NULL)
            f->before = pin->address;
    }
    sg__graph_free(&all);
    return status;
}

/* Adopted memory may have gone while the step recorded. */
static stepgraph_status examine_adopted(sg__examination *e)
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

stepgraph_status sg__examine_addresses(sg__examination *e)
{
    stepgraph_step *step = e->step;
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t i = 0; i < step->read.n_words && status == STEPGRAPH_OK; i++)
        status = examine_word(e, &step->read.words[i], times(e, &step->read.words[i]));
    if (status == STEPGRAPH_OK)
        status = examine_each(e);
    if (status == STEPGRAPH_OK && (step->flags & STEPGRAPH_STEP_SCAN_BYTES) != 0)
        status = sg__examine_bytes(e);
    for (size_t i = 0; i < step->n_sources && status == STEPGRAPH_OK; i++)
        status = examine_source(e, &step->sources[i]);
    step->stats.unregistered = e->unregistered;
    if (status == STEPGRAPH_OK)
        status = examine_adopted(e);
    for (size_t i = 0; i < step->allocations.n; i++)
        step->watches_copies |= step->allocations.items[i].copied && !step->allocations.items[i].pool;
    return status;
}
