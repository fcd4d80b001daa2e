/* A word that differs, in all recordings: which of its bytes are a value, and which padding or left over. */
#include "compare_p.h"

size_t sg__compare_other(const sg__comparison *c, size_t i)
{
    return i <= c->n - c->n_a ? c->n_a + i - 1 : i - (c->n - c->n_a);
}

bool sg__compare_changes(const sg__comparison *c, const sg__graph_difference *d, uint32_t at, uint32_t bytes, sg__change *out)
{
    *out = (sg__change){.d = d, .offset = d->offset + at, .bytes = bytes, .before = sg__compare_part(d, 0, at, bytes)};
    for (size_t i = 1; i < c->n; i++) {
        out->other = sg__compare_other(c, i);
        out->after = sg__compare_part(d, out->other, at, bytes);
        if (out->after != out->before)
            return true;
    }
    return false;
}

uint64_t sg__compare_noise(const sg__comparison *c, const sg__graph_difference *d, uint32_t at, uint32_t bytes)
{
    uint64_t noise = 0;

    for (size_t g = 1; g < c->n; g++)
        if (g != c->n_a)
            noise |= sg__compare_part(d, g, at, bytes) ^ sg__compare_part(d, g - 1, at, bytes);
    return noise;
}

uint32_t sg__compare_goes_on_by(const sg__comparison *c, const sg__graph_difference *d, size_t turn, uint32_t at)
{
    return (uint32_t)(sg__compare_part(d, c->by_time[turn + 1], at, 4) - sg__compare_part(d, c->by_time[turn], at, 4));
}

bool sg__compare_is_steady(const sg__comparison *c, const sg__graph_difference *d, uint32_t at, uint32_t bytes)
{
    const uint32_t mask = bytes < 4 ? ((uint32_t)1 << 8 * bytes) - 1 : UINT32_MAX, amount = sg__compare_goes_on_by(c, d, 0, at) & mask;

    for (size_t turn = 1; turn + 1 < c->n; turn++)
        if ((sg__compare_goes_on_by(c, d, turn, at) & mask) != amount)
            return false;
    return c->n > 2 && amount != 0;
}

/* Both steps were recorded five times: what is left over and looks like a step's own value all that time is hardly met any more. */
static bool is_well_known(const sg__comparison *c)
{
    return c->n_a > 4 && c->n - c->n_a > 4;
}

bool sg__compare_may_be_left_over(const sg__comparison *c, const sg__graph_difference *d)
{
    if (d->place != SG__WORD_ARGUMENT || d->extent != 1)
        return d->place == SG__WORD_ARGUMENT && d->extent > SG__SMALL_STRUCT;
    for (size_t g = 0; g < c->n; g++)
        if (d->values[g] > 1)
            return true;
    return false;
}

uint64_t sg__compare_unlike(const sg__comparison *c, const sg__graph_difference *d, uint32_t at, uint32_t bytes)
{
    uint64_t unlike = 0;

    for (size_t g = 1; g < c->n; g++)
        unlike |= sg__compare_part(d, g, at, bytes) ^ sg__compare_part(d, 0, at, bytes);
    return unlike;
}

/* Of four bytes the upper ones, behind one that stays and is not 0: as padding stands behind a member of one byte. Numbers seldom change like that,
 * but for one that is doubled or halved: of that only the exponent changes, a float's in the lower four bytes, in the upper ones a double's as
 * well. */
static bool is_behind_a_byte(const sg__comparison *c, const sg__change *x)
{
    const uint32_t at = x->offset - x->d->offset;
    uint64_t unlike = sg__compare_unlike(c, x->d, at, x->bytes);
    uint32_t unit = 0;

    if (x->bytes < 4)
        return false;
    if ((uint32_t)unlike == 0)
        unit = 4;
    else if (unlike >> 32 != 0)
        return false;
    unlike >>= 8 * unit;
    return (unlike & 0xff) == 0 && (unlike & (at + unit == 4 ? 0x000fff00 : 0x007fff00)) != 0 && sg__compare_part(x->d, 0, at + unit, 1) != 0;
}

/* The first byte of a struct, and no other: a member without members stands there, as functors often are. Not a flag, nor a count. Eight bytes are a
 * struct if a float may be behind it, since numbers of eight bytes that are so large change in other bytes as well. */
static bool is_first_byte(const sg__comparison *c, const sg__change *x)
{
    uint64_t unlike = sg__compare_unlike(c, x->d, 0, x->bytes);
    bool number = false;

    for (size_t g = 0; g < c->n; g++) {
        const uint32_t behind = (uint32_t)(x->d->values[g] >> 32);
        number |= !sg__compare_in_struct(x->d) && (behind == 0 || !sg__compare_is_plain_float(behind));
    }
    return x->offset == 0 && unlike != 0 && unlike <= 0xff && !number && x->after - x->before + 1 > 2;
}

/* The upper half of an address of the host's, in one recording at least, above four bytes that stay: padding behind a number of four bytes. */
static bool is_upper_half(const sg__comparison *c, const sg__change *x)
{
    const sg__graph_difference *d = x->d;
    bool seen = false;

    if (d->bytes != 8 || (x->offset == d->offset && x->bytes != 8) || sg__compare_unlike(c, d, 0, 4) != 0)
        return false;
    for (size_t g = 0; g < c->n; g++)
        seen |= sg__host_memory_upper((uint32_t)(d->values[g] >> 32));
    return seen && (d->values[x->other] >> 32) - (d->values[0] >> 32) + 1 > 2;
}

/* What the host counts, however large the steps are. */
static bool is_counter(const sg__comparison *c, const sg__change *x)
{
    const uint32_t at = x->offset - x->d->offset, above = x->bytes == 8 && (uint32_t)sg__compare_unlike(c, x->d, at, 4) == 0 ? 4 : 0;

    return x->bytes >= 4 && sg__compare_is_steady(c, x->d, at + above, 4);
}

bool sg__compare_may_be_unset(const sg__comparison *c, const sg__change *x)
{
    return x->d->place == SG__WORD_ARGUMENT && x->d->extent > 4 && !is_counter(c, x) && (is_behind_a_byte(c, x) || is_first_byte(c, x) || is_upper_half(c, x));
}

sg__weight sg__compare_weight(const sg__comparison *c, const sg__graph_difference *d)
{
    return is_well_known(c) || !sg__compare_may_be_left_over(c, d) ? SG__FAULT : SG__DOUBTFUL;
}

bool sg__compare_is_told_by_step(const sg__comparison *c, const sg__graph_difference *d)
{
    return c->n_a > 1 && c->n - c->n_a > 1 && sg__compare_noise(c, d, 0, 8) == 0;
}
