#include "line.h"

#include <string.h>

sg__line sg__line_begin(char *buffer, size_t bytes)
{
    buffer[0] = '\0';
    return (sg__line){.at = buffer, .last = buffer + bytes - 1};
}

static void add(sg__line *line, const char *from, size_t bytes)
{
    const size_t room = (size_t)(line->last - line->at), n = bytes < room ? bytes : room;

    memcpy(line->at, from, n);
    line->at += n;
    if (n < bytes) { /* No part of a character. */
        size_t part = 0;
        while (part < 3 && part < n && ((unsigned char)line->at[-(ptrdiff_t)part - 1] & 0xc0) == 0x80)
            part++;
        if (part < n && (unsigned char)line->at[-(ptrdiff_t)part - 1] >= 0xc0 && ((unsigned char)from[n] & 0xc0) == 0x80)
            line->at -= part + 1;
    }
    *line->at = '\0';
}

void sg__line_name(sg__line *line, const char *name)
{
    enum { MOST = 52 };
    size_t n = strnlen(name, MOST + 1);

    if (n <= MOST) {
        add(line, name, n);
        return;
    }
    for (n = MOST - 3; n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80;)
        n--;
    add(line, name, n);
    add(line, "...", 3);
}

void sg__line_add(sg__line *line, const char *text)
{
    add(line, text, strlen(text));
}

void sg__line_number(sg__line *line, uint64_t number)
{
    char digits[20], *first = digits + sizeof digits; /* As many as the largest has. */

    do
        *--first = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    add(line, first, (size_t)(digits + sizeof digits - first));
}

void sg__line_address(sg__line *line, uint64_t address)
{
    char digits[18], *first = digits + sizeof digits;

    do
        *--first = "0123456789abcdef"[address & 15];
    while ((address >>= 4) != 0);
    *--first = 'x';
    *--first = '0';
    add(line, first, (size_t)(digits + sizeof digits - first));
}
