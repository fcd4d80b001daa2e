/* Addresses in a comparison: those that stand for other memory in another recording, and those that no kernel reads. */
#include "arena_p.h"
#include "compare_p.h"
#include "extents.h"

/* A mark of a number: it is of the host's memory. */
enum { YES = 1 };

static sg__place look_for(const stepgraph_step *step, CUdeviceptr address)
{
    size_t pin = sg__extents_find(step->session, address);

    return pin < step->session->n_pins ? (sg__place){.where = SG__IN_PIN, .pin = pin} : sg__resolve_outside(step, address);
}

sg__place sg__compare_place(sg__comparison *c, size_t g, CUdeviceptr address)
{
    const size_t slots = sizeof c->places / sizeof *c->places;
    sg__found *found = &c->places[((address + g) * 0x9e3779b97f4a7c15ull >> 32) % slots];

    if (found->address != address || found->g != g || address == 0)
        *found = (sg__found){.address = address, .g = g, .place = look_for(c->steps[g], address)};
    return found->place;
}

bool sg__compare_is_known(sg__comparison *c, size_t g, uint64_t value)
{
    return sg__compare_like_address(value) && sg__compare_place(c, g, value).where != SG__NOWHERE;
}

/* Both in the same allocation of the graph's own, at the same byte of it. */
static bool same_in_graph(const sg__graph *a, CUdeviceptr before, const sg__graph *b, CUdeviceptr after)
{
    for (size_t i = 0; i < a->n_owned && i < b->n_owned; i++)
        if (before - a->owned[i].start < a->owned[i].bytes && after - b->owned[i].start < b->owned[i].bytes)
            return before - a->owned[i].start == after - b->owned[i].start;
    return false;
}

bool sg__compare_is_the_same(const sg__comparison *c, CUdeviceptr before, size_t g, CUdeviceptr after)
{
    sg__where where;

    if (before == after)
        return true;
    where = sg__resolve_recorded(c->steps[0], before);
    return where != SG__NOWHERE && where == sg__resolve_recorded(c->steps[g], after) &&
           (where == SG__IN_TABLE || same_in_graph(&c->steps[0]->read, before, &c->steps[g]->read, after));
}

bool sg__compare_moves(const sg__comparison *c, const sg__graph_difference *d, sg__change *out)
{
    *out = (sg__change){.d = d, .offset = d->offset, .bytes = d->bytes, .before = d->values[0]};
    for (size_t i = 1; i < c->n; i++) {
        out->other = sg__compare_other(c, i);
        out->after = d->values[out->other];
        if (!sg__compare_is_the_same(c, out->before, out->other, out->after))
            return true;
    }
    return false;
}

/* ---- bytes that are left over ------------------------------------------------------------------------------------ */

/* Whether the driver knows memory there. Where it cannot be asked, it may. */
static bool driver_knows(sg__comparison *c, uint64_t address)
{
    const stepgraph_session *session = c->steps[0]->session;
    sg__allocation item;
    bool known;

    if (!c->entered && session->driver->CtxPushCurrent(session->context) != CUDA_SUCCESS)
        return true;
    c->entered = true;
    known = sg__allocation_look(session->driver, address, &item) != STEPGRAPH_OK || item.type != 0;
    sg__error_clear();
    return known;
}

/* As sg__compare_is_host_address(), of what the step does not know. */
static bool is_in_host_memory(sg__comparison *c, uint64_t value)
{
    const stepgraph_session *session = c->steps[0]->session;

    return sg__host_memory_holds(&c->host, value, false) && sg__allocation_at(&session->seen, value) == NULL && !driver_knows(c, value);
}

/* The same numbers come again. */
bool sg__compare_is_host_address(sg__comparison *c, size_t g, uint64_t value)
{
    sg__value *entry;

    if (value == 0 || !sg__compare_like_address(value))
        return false;
    entry = sg__values_find(&c->addresses, value);
    if ((entry != NULL && entry->marks != YES) || sg__compare_is_known(c, g, value))
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
static bool is_value_below_address(sg__comparison *c, const sg__change *x)
{
    const sg__graph_difference *d = x->d;
    bool counts = true, flags = true;

    for (size_t g = 0; g < c->n; g++) {
        counts &= (uint32_t)d->values[g] < 0x10000;
        flags &= (d->values[g] & 0xff) < 16 && d->values[g] >> 8 == d->values[0] >> 8;
    }
    if (counts || flags)
        return true;
    return c->n_a > 1 && c->n - c->n_a > 1 && sg__compare_noise(c, d, 0, 4) == 0 &&
           (x->before >> 32 == x->after >> 32 || sg__compare_noise(c, d, 4, 4) != 0) && sg__compare_is_plain_float((uint32_t)x->before) &&
           sg__compare_is_plain_float((uint32_t)x->after) &&
           !(sg__host_memory_holds(&c->host, x->before, true) && sg__host_memory_holds(&c->host, x->after, true));
}

bool sg__compare_is_left_over(sg__comparison *c, const sg__change *x)
{
    const sg__graph_difference *d = x->d;

    if (d->bytes != 8 || is_value_below_address(c, x))
        return false;
    for (size_t g = 0; g < c->n; g++) {
        /* Numbers are as low as that too, and one that each step has of its own is more likely a number. */
        if (d->values[g] >> 32 == 0 && sg__compare_is_told_by_step(c, d))
            continue;
        if (sg__compare_is_host_address(c, g, d->values[g]))
            return true;
    }
    return false;
}

static bool returns_to(sg__comparison *c, uint32_t low)
{
    sg__value *entry = low != 0 ? sg__values_take(&c->halves, low) : NULL;

    if (entry == NULL)
        return low != 0 && sg__host_memory_returns(&c->host, low);
    if (entry->n++ == 0 && sg__host_memory_returns(&c->host, low))
        entry->marks = YES;
    return entry->marks == YES;
}

/* The upper half is missing where the part of the struct that nobody set ends between the two. A value that changes is such a half both before and
 * after in one of fifty thousand cases. */
bool sg__compare_is_half_an_address(sg__comparison *c, const sg__half *h)
{
    const sg__graph_difference *d = h->change.d;

    if (h->bytes != 4 || h->counter || d->extent <= SG__SMALL_STRUCT)
        return false;
    for (size_t g = 0; g < c->n; g++)
        if (!returns_to(c, (uint32_t)sg__compare_part(d, g, h->change.offset - d->offset, 4)))
            return false;
    return true;
}
