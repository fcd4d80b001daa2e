/* A line of words in a buffer of the caller's, cut off where that ends: for what is said by the hundred, since printf() takes a microsecond for each. */
#ifndef STEPGRAPH_LINE_H
#define STEPGRAPH_LINE_H

#include <stddef.h>
#include <stdint.h>

typedef struct sg__line {
    char *at, *last; /* Where it goes on, and the last byte of the buffer. */
} sg__line;

sg__line sg__line_begin(char *buffer, size_t bytes);
void sg__line_add(sg__line *line, const char *text);
/* A name, of which a part stands for a long one. */
void sg__line_name(sg__line *line, const char *name);
void sg__line_number(sg__line *line, uint64_t number);
/* "0x7f...". */
void sg__line_address(sg__line *line, uint64_t address);

#endif
