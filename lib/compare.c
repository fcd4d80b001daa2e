/* Recordings compared: what differs from one step to the next is what a replay would freeze. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena_p.h"
#include "audit_p.h"
#include "extents.h"
#include "structs.h"

#define FEED_IT "make it a CELL that the kernel reads, fed with stepgraph_pin_feed(), or keep it on the device"
#define IN_DOUBT "; if the kernel does not read it there it is left over, which a third recording of each step shows, or a check"

typedef struct comparison {
    const stepgraph_step **steps; /* Recordings of step k, then those of step k + 1. */
    size_t n_a, n;
    size_t *by_time; /* Their indices, the one that was recorded first in front. */
    stepgraph_audit *audit;
    sg__host_memory host;
    sg__values addresses, halves; /* What is known of numbers: of the host's memory, or not. */
    bool bytes;                   /* Addresses may stand anywhere in an argument. */
    struct {
        uint32_t node, argument, offset;
        bool found;
    } packed; /* The last of them: it may have shown in the word before. */
} comparison;

/* A mark of a value. */
enum { YES = 1 };

/* What a finding is about: a word of all recordings, or a part of it. */
typedef struct change {
    const sg__graph_difference *d;
    uint32_t offset, bytes;
    size_t other; /* The recording that is held against the first, */
    uint64_t before, after; /* and what each of the two has. */
} change;

/* As sg__resolve(), for a recording, and quick: each word that differs is asked about several times. */
static sg__place place_of(const comparison *c, size_t g, CUdeviceptr address)
{
    stepgraph_session *session = c->steps[g]->session;
    size_t pin = sg__extents_find(session, address);

    return pin < session->n_pins ? (sg__place){.where = SG__IN_PIN, .pin = pin} : sg__resolve_outside(c->steps[g], address);
}

/* ---- several recordings ------------------------------------------------------------------------------------------ */

/* The recordings after the first, those of step k + 1 before those of step k: 1 to n - 1. */
static size_t other_of(const comparison *c, size_t i)
{
    return i <= c->n - c->n_a ? c->n_a + i - 1 : i - (c->n - c->n_a);
}

/* Some bytes of the word, in one recording. */
static uint64_t part_of(const sg__graph_difference *d, size_t g, uint32_t at, uint32_t bytes)
{
    return d->values[g] >> 8 * at & (bytes < 8 ? ((uint64_t)1 << 8 * bytes) - 1 : UINT64_MAX);
}

/* A part of a word, with the first recording that has another value there; false: none has. */
static bool changes(const comparison *c, const sg__graph_difference *d, uint32_t at, uint32_t bytes, change *out)
{
    *out = (change){.d = d, .offset = d->offset + at, .bytes = bytes, .before = part_of(d, 0, at, bytes)};
    for (size_t i = 1; i < c->n; i++) {
        out->other = other_of(c, i);
        out->after = part_of(d, out->other, at, bytes);
        if (out->after != out->before)
            return true;
    }
    return false;
}

/* The bits of a part that differ between recordings of the same step. */
static uint64_t noise_of(const comparison *c, const sg__graph_difference *d, uint32_t at, uint32_t bytes)
{
    uint64_t noise = 0;

    for (size_t g = 1; g < c->n; g++)
        if (g != c->n_a)
            noise |= part_of(d, g, at, bytes) ^ part_of(d, g - 1, at, bytes);
    return noise;
}

/* By how much four bytes go on from a recording to the one after it. */
static uint32_t goes_on_by(const comparison *c, const sg__graph_difference *d, size_t turn, uint32_t at)
{
    return (uint32_t)(part_of(d, c->by_time[turn + 1], at, 4) - part_of(d, c->by_time[turn], at, 4));
}

/* By the same amount each time, as what a host counts does. Two recordings cannot show that. */
static bool is_steady(const comparison *c, const sg__graph_difference *d, uint32_t at)
{
    uint32_t amount = goes_on_by(c, d, 0, at);

    for (size_t turn = 1; turn + 1 < c->n; turn++)
        if (goes_on_by(c, d, turn, at) != amount)
            return false;
    return c->n > 2 && amount != 0;
}

/* Both steps were recorded three times: garbage that looks like a step's own value all that time is not met any more. */
static bool is_well_known(const comparison *c)
{
    return c->n_a > 2 && c->n - c->n_a > 2;
}

/* Bytes that a host may well leave as they are: in a large struct; or the one byte of a functor without members, unless it is true or false. */
static bool may_be_left_over(const comparison *c, const sg__graph_difference *d)
{
    if (d->place != SG__WORD_ARGUMENT || d->extent != 1)
        return d->place == SG__WORD_ARGUMENT && d->extent > SG__SMALL_STRUCT;
    for (size_t g = 0; g < c->n; g++)
        if (d->values[g] > 1)
            return true;
    return false;
}

/* A struct may hold padding, and several values in one word. An argument of 1, 2, 4 or 8 bytes is taken for one value. */
static bool in_struct(const sg__graph_difference *d)
{
    return d->extent > 8 || (d->extent & (d->extent - 1)) != 0;
}

static bool is_plain_float(uint32_t bits)
{
    uint32_t exponent = bits >> 23 & 0xff;

    return bits == 0 || (exponent > 127 - 40 && exponent < 127 + 40);
}

/* The bits of a part that are not the same in all recordings. */
static uint64_t unlike_in(const comparison *c, const sg__graph_difference *d, uint32_t at, uint32_t bytes)
{
    uint64_t unlike = 0;

    for (size_t g = 1; g < c->n; g++)
        unlike |= part_of(d, g, at, bytes) ^ part_of(d, 0, at, bytes);
    return unlike;
}

/* Of four bytes the upper ones, behind one that stays and is not 0: as padding stands behind a member of one byte. Numbers seldom change like that,
 * but for one that is doubled or halved: of that only the exponent changes, a float's in the lower four bytes, in the upper ones a double's as
 * well. */
static bool is_behind_a_byte(const comparison *c, const change *x)
{
    const uint32_t at = x->offset - x->d->offset;
    uint64_t unlike = unlike_in(c, x->d, at, x->bytes);
    uint32_t unit = 0;

    if (x->bytes < 4)
        return false;
    if ((uint32_t)unlike == 0)
        unit = 4;
    else if (unlike >> 32 != 0)
        return false;
    unlike >>= 8 * unit;
    return (unlike & 0xff) == 0 && (unlike & (at + unit == 4 ? 0x000fff00 : 0x007fff00)) != 0 && part_of(x->d, 0, at + unit, 1) != 0;
}

/* The first byte of a struct, and no other: a member without members stands there, as functors often are. Not a flag, nor a count. Eight bytes are a
 * struct if a float may be behind it, since numbers of eight bytes that are so large change in other bytes as well. */
static bool is_first_byte(const comparison *c, const change *x)
{
    uint64_t unlike = unlike_in(c, x->d, 0, x->bytes);
    bool number = false;

    for (size_t g = 0; g < c->n; g++) {
        const uint32_t behind = (uint32_t)(x->d->values[g] >> 32);
        number |= !in_struct(x->d) && (behind == 0 || !is_plain_float(behind));
    }
    return x->offset == 0 && unlike != 0 && unlike <= 0xff && !number && x->after - x->before + 1 > 2;
}

/* The upper half of an address of the host's, in one recording at least, above four bytes that stay: padding behind a number of four bytes. */
static bool is_upper_half(const comparison *c, const change *x)
{
    const sg__graph_difference *d = x->d;
    bool seen = false;

    if (d->bytes != 8 || (x->offset == d->offset && x->bytes != 8) || unlike_in(c, d, 0, 4) != 0)
        return false;
    for (size_t g = 0; g < c->n; g++)
        seen |= sg__host_memory_upper((uint32_t)(d->values[g] >> 32));
    return seen && (d->values[x->other] >> 32) - (d->values[0] >> 32) + 1 > 2;
}

/* Bytes of an argument, which may be a struct, that look as if nobody had set them. */
static bool may_be_unset(const comparison *c, const change *x)
{
    return x->d->place == SG__WORD_ARGUMENT && x->d->extent > 4 && (is_behind_a_byte(c, x) || is_first_byte(c, x) || is_upper_half(c, x));
}

/* A fault, unless it may be left over and was not seen often enough to be sure that it is not. */
static sg__weight weight_of(const comparison *c, const sg__graph_difference *d)
{
    return is_well_known(c) || !may_be_left_over(c, d) ? SG__FAULT : SG__DOUBTFUL;
}

/* Both steps were recorded more than once, and each time the value was that of the step. */
static bool is_told_by_step(const comparison *c, const sg__graph_difference *d)
{
    return c->n_a > 1 && c->n - c->n_a > 1 && noise_of(c, d, 0, 8) == 0;
}

/* ---- what a difference is ---------------------------------------------------------------------------------------- */

/* A finding about a change; *out is NULL where nobody will read it. */
static stepgraph_status begin(const comparison *c, stepgraph_finding_kind kind, sg__weight weight, const change *x, sg__finding **out)
{
    stepgraph_status status = sg__audit_add(c->audit, kind, weight, c->steps[0], x->d->node, out);

    if (*out == NULL)
        return status;
    sg__finding_place(*out, x->d->place, x->d->argument, x->offset);
    (*out)->bytes = x->bytes;
    (*out)->before = x->before;
    (*out)->after = x->after;
    return status;
}

/* What to do about a value that changes. Only arguments may be in doubt. */
static const char *advice_about(const sg__graph_difference *d, sg__weight weight)
{
    static const char feed[] = FEED_IT, in_doubt[] = FEED_IT IN_DOUBT,
                      in_a_struct[] = FEED_IT "; if it is read by none, say so with stepgraph_session_set_unread()";

    if (d->place != SG__WORD_ARGUMENT)
        return "record again for each such value, or make it the same in every step";
    if (weight == SG__DOUBTFUL)
        return in_doubt;
    return in_struct(d) && d->extent <= SG__MASKED_MOST ? in_a_struct : feed;
}

/* whole: the word whose upper half changed and may be one of a double; else NULL. */
static stepgraph_status report_scalar(const comparison *c, const change *x, const sg__graph_difference *whole)
{
    const sg__weight weight = may_be_unset(c, x) && !is_told_by_step(c, x->d) ? SG__DOUBTFUL : weight_of(c, x->d);
    stepgraph_status status;
    sg__finding *f;

    status = begin(c, STEPGRAPH_FINDING_CHANGING_SCALAR, weight, x, &f);
    if (f == NULL)
        return status;
    f->advice = advice_about(x->d, weight);
    if (whole != NULL) {
        f->half = true;
        f->whole[0] = whole->values[0];
        f->whole[1] = whole->values[x->other];
        f->whole_offset = whole->offset;
    }
    return status;
}

/* Bytes that are no value of the step's; why says how that shows, and lives for ever. */
static stepgraph_status report_unclassified(const comparison *c, const change *x, const char *why)
{
    stepgraph_status status;
    sg__finding *f;

    status = begin(c, STEPGRAPH_FINDING_UNCLASSIFIED, SG__NOTE, x, &f);
    if (f != NULL)
        f->why = why;
    return status;
}

static stepgraph_status report_noise(const comparison *c, const change *x)
{
    return report_unclassified(c, x, "differs between two recordings of the same step too, so it is padding");
}

static stepgraph_status report_counter(const comparison *c, const change *x)
{
    stepgraph_status status;
    sg__finding *f;

    status = begin(c, STEPGRAPH_FINDING_UNCLASSIFIED, SG__NOTE, x, &f);
    if (f != NULL) {
        f->why = "so it is taken for a counter that was left over there; if the kernel reads it, make it a CELL";
        f->goes_on_by = (int32_t)goes_on_by(c, x->d, 0, x->offset - x->d->offset);
        f->extent = (uint32_t)x->d->extent;
    }
    return status;
}

/* Whether the address was in a block that the host had before the recording began, so that what is in there is older than the step. Commits
 * have no node: for them the block must still be out at the end. */
static bool is_carried(const stepgraph_step *step, CUdeviceptr address, uint32_t node)
{
    uint32_t top = node < step->read.n_nodes ? step->read.nodes[node].top : SG__NO_NODE;
    size_t low = 0, high = step->n_carried;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (step->carried[middle].start + step->carried[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < step->n_carried && step->carried[low].start <= address && step->carried[low].last_node >= top;
}

/* The pin of both addresses, if it is one and SCRATCH: nothing in there outlives a step, so that a replay may go on using other places in it
 * than the next step would. Not so a block that is known to be older than its recording. */
static const stepgraph_pin *shared_scratch(const comparison *c, CUdeviceptr before, size_t g, CUdeviceptr after, uint32_t node)
{
    const stepgraph_step *one = c->steps[0], *other = c->steps[g];
    sg__place a = place_of(c, 0, before), b = place_of(c, g, after);
    const stepgraph_pin *pin = a.where == SG__IN_PIN && b.where == SG__IN_PIN && a.pin == b.pin ? one->session->pins[a.pin] : NULL;

    if (pin == NULL || pin->role != STEPGRAPH_ROLE_SCRATCH || is_carried(one, before, node) || is_carried(other, after, node))
        return NULL;
    return pin;
}

/* What to do about a pointer that moved; scratch: where it moved within, which is no fault. */
static void advise(const comparison *c, sg__finding *f, const stepgraph_pin *scratch, const char *otherwise)
{
    const stepgraph_pin *former = sg__former_state(c->steps[0]->session, f->before);

    if (scratch != NULL)
        sg__finding_advise(f, "nothing, as long as nothing in scratch '%.100s' is needed in the next step", scratch->name);
    else if (former != NULL)
        sg__finding_advise(f, "let the step use the address of pin '%.100s', and commit the new value each step", former->name);
    else
        f->advice = otherwise;
}

static stepgraph_status report_pointer(const comparison *c, const change *x)
{
    const stepgraph_step *one = c->steps[0], *other = c->steps[x->other];
    const stepgraph_pin *scratch = shared_scratch(c, x->before, x->other, x->after, x->d->node);
    const bool allowed = x->d->place == SG__WORD_HOST && (one->flags & other->flags & STEPGRAPH_STEP_ALLOW_HOST_ARGUMENTS) != 0;
    sg__weight weight = scratch != NULL || allowed ? SG__NOTE : weight_of(c, x->d);
    char before[160], after[160];
    stepgraph_status status;
    sg__finding *f;

    if (weight == SG__FAULT && may_be_left_over(c, x->d) && noise_of(c, x->d, 0, 8) != 0)
        weight = SG__DOUBTFUL; /* Or it moves each time it is recorded: only a check can tell. */
    status = begin(c, STEPGRAPH_FINDING_MOVED_POINTER, weight, x, &f);
    if (f == NULL)
        return status;
    sg__describe_address(one, x->before, x->d->node, before, sizeof before);
    sg__describe_address(other, x->after, x->d->node, after, sizeof after);
    sg__finding_say(f, "moved pointer   0x%llx (%s) -> 0x%llx (%s)", (unsigned long long)x->before, before,
             (unsigned long long)x->after, after);
    advise(c, f, scratch,
           weight == SG__DOUBTFUL
               ? "pin what it is, or note the blocks of the host's pool" IN_DOUBT
           : x->d->place == SG__WORD_HOST
               ? "give the host function the same argument in every step, call it outside the step, or allow it with "
                 "STEPGRAPH_STEP_ALLOW_HOST_ARGUMENTS, if it is made for the recording and lives as long as the graph"
               : "pin it: register what it is as STATE (or FEED), let the step use the pin's address, and commit the new value each step");
    return status;
}

static stepgraph_status report_topology(const comparison *c, uint32_t node, const char *text)
{
    stepgraph_status status;
    sg__finding *f;

    status = sg__audit_add(c->audit, STEPGRAPH_FINDING_TOPOLOGY, SG__FAULT, c->steps[0], node, &f);
    if (f != NULL) {
        sg__finding_say(f, "%s", text);
        f->advice = "a graph repeats the same nodes: record one graph for each form that the step can take";
    }
    return status;
}

static stepgraph_status report_source(const comparison *c, size_t index, size_t g)
{
    const stepgraph_step *one = c->steps[0], *other = c->steps[g];
    CUdeviceptr before = one->sources[index].address, after = other->sources[index].address;
    const stepgraph_pin *scratch = shared_scratch(c, before, g, after, SG__NO_NODE);
    char was[160], is[160];
    stepgraph_status status;
    sg__finding *f;

    status = sg__audit_add(c->audit, STEPGRAPH_FINDING_MOVED_POINTER, scratch == NULL ? SG__FAULT : SG__NOTE, one, SG__NO_NODE, &f);
    if (f == NULL)
        return status;
    f->bytes = 8;
    f->before = before;
    f->after = after;
    sg__describe_address(one, before, SG__NO_NODE, was, sizeof was);
    sg__describe_address(other, after, SG__NO_NODE, is, sizeof is);
    sg__finding_say(f, "the commit of pin '%s'   moved pointer   its new value at 0x%llx (%s) -> 0x%llx (%s)",
             one->sources[index].pin->name, before, was, after, is);
    advise(c, f, scratch, "let the host's allocator give the same blocks in each recording: from an arena, or a pool of its own");
    return status;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* A null pointer may become a real one; other small numbers are no addresses. */
static bool like_address(uint64_t value)
{
    return value == 0 || (value >= 0x10000 && value < (uint64_t)1 << 57);
}

static bool is_known(const comparison *c, size_t g, uint64_t value)
{
    return like_address(value) && place_of(c, g, value).where != SG__NOWHERE;
}

/* Both in the same allocation of the graph's own, at the same byte of it. */
static bool same_in_graph(const sg__graph *a, CUdeviceptr before, const sg__graph *b, CUdeviceptr after)
{
    for (size_t i = 0; i < a->n_owned && i < b->n_owned; i++)
        if (before - a->owned[i].start < a->owned[i].bytes && after - b->owned[i].start < b->owned[i].bytes)
            return before - a->owned[i].start == after - b->owned[i].start;
    return false;
}

/* A library's workspace that the graph allocates, and our own lists, stand elsewhere in each recording. */
static bool is_the_same(const comparison *c, CUdeviceptr before, size_t g, CUdeviceptr after)
{
    sg__where a, b;

    if (before == after)
        return true;
    a = place_of(c, 0, before).where;
    if (a != SG__IN_GRAPH && a != SG__IN_TABLE)
        return false;
    b = place_of(c, g, after).where;
    return a == b && (a == SG__IN_TABLE || same_in_graph(&c->steps[0]->read, before, &c->steps[g]->read, after));
}

/* An address that stands for other memory in some recording. */
static bool moves(const comparison *c, const sg__graph_difference *d, change *out)
{
    *out = (change){.d = d, .offset = d->offset, .bytes = d->bytes, .before = d->values[0]};
    for (size_t i = 1; i < c->n; i++) {
        out->other = other_of(c, i);
        out->after = d->values[out->other];
        if (!is_the_same(c, out->before, out->other, out->after))
            return true;
    }
    return false;
}

/* ---- bytes that are left over ------------------------------------------------------------------------------------ */

/* Whether the driver knows memory there. Where it cannot be asked, it may. */
static bool driver_knows(const stepgraph_session *session, uint64_t address)
{
    const sg__driver *driver = session->driver;
    CUcontext before;
    sg__allocation item;
    bool known;

    if (driver->CtxPushCurrent(session->context) != CUDA_SUCCESS)
        return true;
    known = sg__allocation_look(driver, address, &item) != STEPGRAPH_OK || item.type != 0;
    driver->CtxPopCurrent(&before);
    sg__error_clear();
    return known;
}

/* As is_host_address(), of what the step does not know. */
static bool is_in_host_memory(comparison *c, uint64_t value)
{
    const stepgraph_session *session = c->steps[0]->session;

    return sg__host_memory_holds(&c->host, value, false) && sg__allocation_at(&session->seen, value) == NULL && !driver_knows(session, value);
}

/* An address of the host's own memory, which no kernel can use: page-locked memory is the driver's too. The same numbers come again. */
static bool is_host_address(comparison *c, size_t g, uint64_t value)
{
    sg__value *entry;

    if (value == 0 || !like_address(value))
        return false;
    entry = sg__values_find(&c->addresses, value);
    if ((entry != NULL && entry->marks != YES) || is_known(c, g, value))
        return false;
    entry = sg__values_take(&c->addresses, value);
    if (entry == NULL)
        return is_in_host_memory(c, value);
    if (entry->n++ == 0 && is_in_host_memory(c, value))
        entry->marks = YES;
    return entry->marks == YES;
}

/* A value of its own whose padding, behind it, happens to be the upper part of an address: a count or a flag; a float if it is the step's and
 * the whole is not likely to be an address. */
static bool is_value_below_address(comparison *c, const change *x)
{
    const sg__graph_difference *d = x->d;
    bool counts = true, flags = true;

    for (size_t g = 0; g < c->n; g++) {
        counts &= (uint32_t)d->values[g] < 0x10000;
        flags &= (d->values[g] & 0xff) < 16 && d->values[g] >> 8 == d->values[0] >> 8;
    }
    if (counts || flags)
        return true;
    return c->n_a > 1 && c->n - c->n_a > 1 && noise_of(c, d, 0, 4) == 0 && (x->before >> 32 == x->after >> 32 || noise_of(c, d, 4, 4) != 0) &&
           is_plain_float((uint32_t)x->before) && is_plain_float((uint32_t)x->after) &&
           !(sg__host_memory_holds(&c->host, x->before, true) && sg__host_memory_holds(&c->host, x->after, true));
}

/* Whether the word is an address of host memory in some recording, so that whatever it is in the others no kernel reads it. */
static bool is_left_over(comparison *c, const change *x)
{
    const sg__graph_difference *d = x->d;

    if (d->bytes != 8 || is_value_below_address(c, x))
        return false;
    for (size_t g = 0; g < c->n; g++) {
        /* Numbers are as low as that too, and one that each step has of its own is more likely a number. */
        if (d->values[g] >> 32 == 0 && is_told_by_step(c, d))
            continue;
        if (is_host_address(c, g, d->values[g]))
            return true;
    }
    return false;
}

static stepgraph_status report_left_over(const comparison *c, const change *x)
{
    return report_unclassified(c, x, "an address in the host's own memory, in one recording at least, which no kernel can use: left over there");
}

/* What four bytes of a struct are. */
typedef struct half {
    change change;
    uint32_t bytes; /* How many of them are a value. */
    bool counter;   /* They are, but only of a counter that seems to be left over. */
} half;

static bool returns_to(comparison *c, uint32_t low)
{
    sg__value *entry = low != 0 ? sg__values_take(&c->halves, low) : NULL;

    if (entry == NULL)
        return low != 0 && sg__host_memory_returns(&c->host, low);
    if (entry->n++ == 0 && sg__host_memory_returns(&c->host, low))
        entry->marks = YES;
    return entry->marks == YES;
}

/* Four bytes of a large struct that are, in each recording, the lower half of an address in the host's code, where a call returns to. The upper half
 * is missing where the part of the struct that nobody set ends between the two. A value that changes is such a half both before and after in
 * one of fifty thousand cases. */
static bool is_half_an_address(comparison *c, const half *h)
{
    const sg__graph_difference *d = h->change.d;

    if (h->bytes != 4 || h->counter || d->extent <= SG__SMALL_STRUCT)
        return false;
    for (size_t g = 0; g < c->n; g++)
        if (!returns_to(c, (uint32_t)part_of(d, g, h->change.offset - d->offset, 4)))
            return false;
    return true;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* All four are a value if they stay in all recordings of the same step, or if they go on by the same amount, as the host's own counter does;
 * else those in front of the first that does not stay, since padding comes last. */
static half look_at_half(const comparison *c, const sg__graph_difference *d, uint32_t at)
{
    uint32_t bytes = d->bytes > at + 4 ? 4 : d->bytes - at, n = 0;
    half h = {.bytes = 0};
    uint64_t noise;

    if (d->bytes <= at || !changes(c, d, at, bytes, &h.change))
        return h;
    noise = noise_of(c, d, at, bytes);
    if (noise == 0) {
        h.bytes = bytes;
    } else if (bytes == 4 && is_steady(c, d, at)) {
        h.bytes = bytes;
        h.counter = d->extent > SG__SMALL_STRUCT;
    } else if (d->extent <= SG__SMALL_STRUCT) {
        while ((noise >> 8 * n & 0xff) == 0)
            n++;
        h.bytes = n > 0 && changes(c, d, at, n, &h.change) ? n : 0;
    }
    return h;
}

static stepgraph_status report_half(const comparison *c, const half *h)
{
    const sg__graph_difference *d = h->change.d;
    bool upper;

    if (h->bytes == 0)
        return STEPGRAPH_OK;
    upper = h->change.offset != d->offset && h->bytes == 4 && (uint32_t)d->values[0] == (uint32_t)d->values[h->change.other];
    return h->counter ? report_counter(c, &h->change) : report_scalar(c, &h->change, upper ? d : NULL);
}

/* A word of a struct: name the value in it that changed, or say why there is none. */
static stepgraph_status classify_in_struct(comparison *c, const change *x)
{
    half low = look_at_half(c, x->d, 0), high = look_at_half(c, x->d, 4);
    stepgraph_status status;

    if (low.bytes == 0 && high.bytes == 0)
        return report_noise(c, x);
    if (is_left_over(c, x))
        return report_left_over(c, x);
    if (is_half_an_address(c, &low))
        low.bytes = 0;
    if (is_half_an_address(c, &high))
        high.bytes = 0;
    if (low.bytes == 0 && high.bytes == 0)
        return report_unclassified(c, x, "the lower half of an address in the host's own code, in each recording: left over there");
    if (low.bytes == 4 && high.bytes == 4 && !low.counter && !high.counter)
        return report_scalar(c, x, NULL);
    status = report_half(c, &low);
    return status == STEPGRAPH_OK ? report_half(c, &high) : status;
}

/* An argument that is one value. What differs each time may be a seed. A byte that does, and is neither true nor false, is what the place of a
 * struct without members happens to hold; and bytes that do where padding may stand are that. */
static stepgraph_status classify_whole(comparison *c, const change *x)
{
    if (((x->bytes == 1 && may_be_left_over(c, x->d)) || may_be_unset(c, x)) && noise_of(c, x->d, 0, x->bytes) != 0)
        return report_noise(c, x);
    return is_left_over(c, x) ? report_left_over(c, x) : report_scalar(c, x, NULL);
}

/* A pointer that moved is one in all recordings: in none of them does the place hold something else. */
static stepgraph_status classify_pointer(comparison *c, const change *x)
{
    for (size_t g = 0; g < c->n; g++) {
        if (!like_address(x->d->values[g]))
            return report_unclassified(c, x, "an address in one recording and none in another: left over there");
        if (is_host_address(c, g, x->d->values[g]))
            return report_left_over(c, x);
    }
    return report_pointer(c, x);
}

/* ---- packed structs ---------------------------------------------------------------------------------------------- */

/* Whether eight bytes at some place of the argument are an address in all recordings, and not the same in all. values: room for them. */
static bool moves_at(const comparison *c, const sg__graph_difference *d, uint32_t at, uint64_t *values, change *out)
{
    sg__graph_difference there = *d;

    for (size_t g = 0; g < c->n; g++) {
        memcpy(&values[g], d->arguments[g] + at, 8);
        if (values[g] % 4 != 0 || !is_known(c, g, values[g]))
            return false;
    }
    there.offset = at;
    there.bytes = 8;
    there.values = values;
    return moves(c, &there, out);
}

/* The address that a word of a packed struct is a part of: at a multiple of 4, if there is one. */
static bool find_packed(const comparison *c, const sg__graph_difference *d, uint64_t *values, change *out)
{
    const uint32_t first = d->offset > 7 ? d->offset - 7 : 0, last = d->offset + d->bytes - 1;

    for (uint32_t step = 4; step > 0; step /= 2)
        for (uint32_t at = first + (step - first % step) % step; at <= last && at + 8 <= d->extent; at += step)
            if (at % 8 != 0 && (step == 4 || at % (2 * step) != 0) && moves_at(c, d, at, values, out))
                return true;
    return false;
}

/* Whether the word differs in bytes that are no part of the address at some place. */
static bool differs_beside(const comparison *c, const sg__graph_difference *d, uint32_t at)
{
    uint64_t unlike = unlike_in(c, d, 0, 8);

    for (uint32_t i = 0; i < d->bytes; i++)
        if (d->offset + i >= at && d->offset + i < at + 8)
            unlike &= ~((uint64_t)0xff << 8 * i);
    return unlike != 0;
}

/* Of a struct that is looked through byte by byte: an address that stands across words is told once. *told: nothing else in the word differs. */
static stepgraph_status report_packed(comparison *c, const sg__graph_difference *d, bool *told)
{
    uint64_t *values = malloc(c->n * sizeof *values);
    sg__graph_difference there = *d;
    stepgraph_status status = STEPGRAPH_OK;
    change x;

    *told = false;
    if (values == NULL)
        return sg__fail_memory("host", c->n * sizeof *values);
    if (find_packed(c, d, values, &x)) {
        *told = !differs_beside(c, d, x.offset);
        there.offset = x.offset;
        there.bytes = 8;
        there.values = values;
        x.d = &there;
        if (!c->packed.found || c->packed.node != d->node || c->packed.argument != d->argument || c->packed.offset != x.offset)
            status = classify_pointer(c, &x);
        c->packed.node = d->node;
        c->packed.argument = d->argument;
        c->packed.offset = x.offset;
        c->packed.found = true;
    }
    free(values);
    return status;
}

static stepgraph_status classify_argument(comparison *c, const change *x)
{
    stepgraph_status status;
    bool told;

    if (x->bytes == 8 && like_address(x->before) && like_address(x->after) &&
        (is_known(c, 0, x->before) || is_known(c, x->other, x->after)))
        return classify_pointer(c, x);
    if (c->bytes && x->d->extent > 8) {
        status = report_packed(c, x->d, &told);
        if (status != STEPGRAPH_OK || told)
            return status;
    }
    return in_struct(x->d) ? classify_in_struct(c, x) : classify_whole(c, x);
}

static stepgraph_status classify(void *user, const sg__graph_difference *d)
{
    comparison *c = user;
    char text[256];
    change x;

    if (d->bytes == 8 ? !moves(c, d, &x) : !changes(c, d, 0, d->bytes, &x))
        return STEPGRAPH_OK;
    switch (d->place) {
    case SG__WORD_FUNCTION:
        snprintf(text, sizeof text, "node %u is kernel '%.80s' in the first recording and '%.80s' in the %s", d->node,
                 sg__node_name(&c->steps[0]->read.nodes[d->node]), sg__node_name(&c->steps[x.other]->read.nodes[d->node]), sg__ordinal(x.other));
        return report_topology(c, d->node, text);
    case SG__WORD_HOST:
        if (d->argument != 0)
            return report_pointer(c, &x);
        snprintf(text, sizeof text, "node %u calls another host function in the %s recording", d->node, sg__ordinal(x.other));
        return report_topology(c, d->node, text);
    case SG__WORD_SOURCE:
    case SG__WORD_DESTINATION:
        return report_pointer(c, &x);
    case SG__WORD_ARGUMENT:
        return classify_argument(c, &x);
    default:
        return report_scalar(c, &x, NULL);
    }
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

/* Commits keep their addresses in lists of their own, in the order of the calls. */
static stepgraph_status compare_sources(const comparison *c)
{
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t k = 0; k < c->steps[0]->n_sources; k++)
        for (size_t i = 1; i < c->n && status == STEPGRAPH_OK; i++) {
            const stepgraph_step *other = c->steps[other_of(c, i)];
            if (k >= other->n_sources || is_the_same(c, c->steps[0]->sources[k].address, other_of(c, i), other->sources[k].address))
                continue;
            status = report_source(c, k, other_of(c, i));
            break;
        }
    return status;
}

static void sum_up(const comparison *c)
{
    stepgraph_audit_summary *summary = &c->audit->summary;
    const stepgraph_step *first = c->steps[0];

    c->audit->recordings = (uint32_t)c->n;
    summary->nodes = first->read.n_nodes;
    summary->kernels = first->stats.nodes[STEPGRAPH_KIND_KERNEL];
    summary->unread = first->read.n_unread;
    /* Counted when it was read. */
    summary->addresses = first->audit->summary.addresses;
    summary->in_pins = first->audit->summary.in_pins;
    summary->in_graph = first->audit->summary.in_graph;
    for (size_t g = 0; g < c->n; g++)
        summary->read_ns += c->steps[g]->audit->summary.read_ns;
}

static void sort_by_time(const comparison *c)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t at = i;
        for (; at > 0 && c->steps[c->by_time[at - 1]]->serial > c->steps[i]->serial; at--)
            c->by_time[at] = c->by_time[at - 1];
        c->by_time[at] = i;
    }
}

static stepgraph_status compare(comparison *c)
{
    const uint64_t began = sg__audit_clock();
    sg__graph **graphs = malloc(c->n * sizeof *graphs);
    sg__graph_mismatch mismatch;
    stepgraph_status status;

    c->by_time = malloc(c->n * sizeof *c->by_time);
    if (graphs == NULL || c->by_time == NULL) {
        free(graphs);
        free(c->by_time);
        return sg__fail_memory("host", c->n * (sizeof *graphs + sizeof *c->by_time));
    }
    sort_by_time(c);
    for (size_t g = 0; g < c->n; g++)
        graphs[g] = (sg__graph *)&c->steps[g]->read; /* Its cache of layouts may grow. */
    sum_up(c);
    status = sg__extents_renew(c->steps[0]->session);
    if (status == STEPGRAPH_OK)
        status = sg__graph_compare(c->steps[0]->session->driver, c->n, graphs, classify, c, &mismatch, &c->audit->summary.bytes);
    if (status == STEPGRAPH_OK && mismatch.text[0] != '\0')
        status = report_topology(c, mismatch.node, mismatch.text);
    if (status == STEPGRAPH_OK)
        status = compare_sources(c);
    if (status == STEPGRAPH_OK)
        status = sg__audit_finish(c->audit);
    c->audit->summary.compare_ns = sg__audit_clock() - began;
    sg__host_memory_free(&c->host);
    sg__values_free(&c->addresses);
    sg__values_free(&c->halves);
    free(c->by_time);
    free(graphs);
    return status;
}

static stepgraph_status check(const stepgraph_step *step, const stepgraph_step *first)
{
    if (step == NULL || first == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "recorded steps are compared: a pointer is NULL");
    if (step->session != first->session)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "steps '%s' and '%s' belong to different sessions", first->name, step->name);
    if (step->state != STEPGRAPH_STEP_READY)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' has no live graph to compare: record it first", step->name);
    return STEPGRAPH_OK;
}

/* The first n_a of n steps are step k. */
static stepgraph_status compare_steps(size_t n_a, size_t n, const stepgraph_step **steps, stepgraph_audit **audit_out)
{
    comparison c = {.steps = steps, .n_a = n_a, .n = n};
    stepgraph_status status = STEPGRAPH_OK;
    char title[256];

    if (audit_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no place for the report: audit_out is NULL");
    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++) {
        status = check(steps[i], steps[0]);
        c.bytes |= status == STEPGRAPH_OK && (steps[i]->flags & STEPGRAPH_STEP_SCAN_BYTES) != 0;
    }
    if (status != STEPGRAPH_OK)
        return status;
    snprintf(title, sizeof title, "step '%.100s', compared with '%.100s'", steps[0]->name, steps[n_a]->name);
    c.host.process = &steps[0]->session->process;
    sg__values_init(&c.addresses);
    sg__values_init(&c.halves);
    c.audit = sg__audit_new(title);
    if (c.audit == NULL)
        return STEPGRAPH_ERR_MEMORY;
    status = compare(&c);
    if (status != STEPGRAPH_OK) {
        stepgraph_audit_destroy(c.audit);
        return status;
    }
    *audit_out = c.audit;
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_audit_compare(const stepgraph_step *a, const stepgraph_step *b, const stepgraph_step *b_again,
                                         stepgraph_audit **audit_out)
{
    const stepgraph_step *steps[] = {a, b, b_again};

    sg__error_clear();
    return compare_steps(1, b_again != NULL ? 3 : 2, steps, audit_out);
}

stepgraph_status stepgraph_audit_compare_many(size_t n_a, stepgraph_step *const *a, size_t n_b, stepgraph_step *const *b,
                                              stepgraph_audit **audit_out)
{
    const stepgraph_step **steps;
    stepgraph_status status;

    sg__error_clear();
    if (n_a == 0 || n_b == 0 || a == NULL || b == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing to compare: of each step at least one recording is needed");
    steps = malloc((n_a + n_b) * sizeof *steps);
    if (steps == NULL)
        return sg__fail_memory("host", (n_a + n_b) * sizeof *steps);
    for (size_t i = 0; i < n_a + n_b; i++)
        steps[i] = i < n_a ? a[i] : b[i - n_a];
    status = compare_steps(n_a, n_a + n_b, steps, audit_out);
    free(steps);
    return status;
}
