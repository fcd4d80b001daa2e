/*
 * Elements of a pin as values: for the kernel that measures how far two pins are apart, and for the host that prints them. C, C++ and CUDA.
 *
 * The numbers of the types are those of stepgraph_type.
 */
#ifndef STEPGRAPH_KERNELS_ELEMENTS_H
#define STEPGRAPH_KERNELS_ELEMENTS_H

#ifdef __CUDACC__
#define SG__ELEMENT static __device__
#else
#include <string.h>
#define SG__ELEMENT static inline
#endif

enum {
    SG__BYTES = 0, SG__F32, SG__F64, SG__F16, SG__BF16, SG__F8E4M3, SG__F8E5M2,
    SG__I8, SG__I16, SG__I32, SG__I64, SG__U8, SG__U16, SG__U32, SG__U64
};

SG__ELEMENT unsigned int sg__element_bytes(unsigned int type)
{
    switch (type) {
    case SG__F64: case SG__I64: case SG__U64:
        return 8;
    case SG__F32: case SG__I32: case SG__U32:
        return 4;
    case SG__F16: case SG__BF16: case SG__I16: case SG__U16:
        return 2;
    default:
        return 1;
    }
}

/* Bits of exponent and mantissa; 0: no float. */
SG__ELEMENT unsigned int sg__element_exponent(unsigned int type)
{
    switch (type) {
    case SG__F64:
        return 11;
    case SG__F32: case SG__BF16:
        return 8;
    case SG__F16: case SG__F8E5M2:
        return 5;
    case SG__F8E4M3:
        return 4;
    default:
        return 0;
    }
}

SG__ELEMENT int sg__element_signed(unsigned int type)
{
    return type >= SG__I8 && type <= SG__I64;
}

/* Bits read from memory, low byte first. */
SG__ELEMENT unsigned long long sg__element_load(const unsigned char *at, unsigned int bytes)
{
    unsigned long long bits = 0;

    for (unsigned int i = 0; i < bytes; i++)
        bits |= (unsigned long long)at[i] << 8 * i;
    return bits;
}

SG__ELEMENT double sg__double_of_bits(unsigned long long bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

SG__ELEMENT unsigned long long sg__bits_of_double(double value)
{
    unsigned long long bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

SG__ELEMENT long long sg__element_signed_value(unsigned int type, unsigned long long bits)
{
    unsigned int shift = 64 - 8 * sg__element_bytes(type);

    return (long long)(bits << shift) >> shift;
}

/* The value; every type but 64-bit integers fits a double exactly. */
SG__ELEMENT double sg__element_value(unsigned int type, unsigned long long bits)
{
    unsigned int width = 8 * sg__element_bytes(type), exponent_bits = sg__element_exponent(type), mantissa_bits;
    unsigned long long sign, exponent, mantissa, all, special;
    double scale;

    if (exponent_bits == 0)
        return sg__element_signed(type) ? (double)sg__element_signed_value(type, bits) : (double)bits;
    if (type == SG__F64)
        return sg__double_of_bits(bits);
    mantissa_bits = width - 1 - exponent_bits;
    sign = bits >> (width - 1) & 1;
    all = (1ull << exponent_bits) - 1;
    exponent = bits >> mantissa_bits & all;
    mantissa = bits & ((1ull << mantissa_bits) - 1);
    /* E4M3 has no infinity, and of the largest exponent only the largest mantissa is a NaN. */
    special = type == SG__F8E4M3 ? exponent == all && mantissa == 7 : exponent == all;
    if (special)
        return sg__double_of_bits(sign << 63 | 0x7ffull << 52 | (type == SG__F8E4M3 ? 1ull << 51 : mantissa << (52 - mantissa_bits)));
    if (exponent == 0) {
        scale = sg__double_of_bits((1023ull + 1 - ((1ull << (exponent_bits - 1)) - 1) - mantissa_bits) << 52);
        return (sign != 0 ? -1.0 : 1.0) * (double)mantissa * scale;
    }
    return sg__double_of_bits(sign << 63 | (exponent + 1023 - ((1ull << (exponent_bits - 1)) - 1)) << 52 | mantissa << (52 - mantissa_bits));
}

/* How many representable values lie between two; for integers, their difference. All ones: a NaN against a number. */
SG__ELEMENT unsigned long long sg__element_ulps(unsigned int type, unsigned long long a, unsigned long long b)
{
    unsigned int width = 8 * sg__element_bytes(type);
    unsigned long long magnitude, low, high;
    double x, y;

    if (sg__element_exponent(type) == 0) {
        if (sg__element_signed(type) != 0) {
            long long p = sg__element_signed_value(type, a), q = sg__element_signed_value(type, b);
            return p > q ? (unsigned long long)p - (unsigned long long)q : (unsigned long long)q - (unsigned long long)p;
        }
        return a > b ? a - b : b - a;
    }
    x = sg__element_value(type, a);
    y = sg__element_value(type, b);
    if (x != x || y != y)
        return x != x && y != y ? 0 : ~0ull;
    magnitude = (1ull << (width - 1)) - 1;
    low = a & magnitude;
    high = b & magnitude;
    if ((a >> (width - 1) & 1) != (b >> (width - 1) & 1))
        return low + high;
    return low > high ? low - high : high - low;
}

/* |a - b|; infinite for a NaN against a number. */
SG__ELEMENT double sg__element_distance(unsigned int type, unsigned long long a, unsigned long long b)
{
    double x = sg__element_value(type, a), y = sg__element_value(type, b);

    if (x == y || (x != x && y != y))
        return 0;
    if (x != x || y != y)
        return sg__double_of_bits(0x7ffull << 52);
    return x > y ? x - y : y - x;
}

#endif
