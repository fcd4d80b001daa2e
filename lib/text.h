/* How numbers and reports are written. */
#ifndef STEPGRAPH_TEXT_H
#define STEPGRAPH_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "stepgraph/base.h"

/* As snprintf() and vsnprintf(). Numbers have points, whatever the language of the host has: a comma would end them. */
int sg__print(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
int sg__vprint(char *text, size_t bytes, const char *format, va_list arguments) __attribute__((format(printf, 3, 0)));

/* A text that grows. Begins as all zero. */
typedef struct sg__text {
    char *text; /* To be freed. */
    size_t used, room;
    bool failed; /* Host memory was short once; what was added since may be missing. */
} sg__text;

void sg__text_add(sg__text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As a JSON string, quotes included. A name may be cut off within a character. */
void sg__text_quoted(sg__text *text, const char *string);

/* What was written is the report's from now on, complete or not. */
stepgraph_status sg__texts_keep(const sg__text *text, const sg__text *json, char **text_out, char **json_out);

/* Bytes of the first character of a string; 0: it is no UTF-8. */
size_t sg__text_character(const char *string);

#endif
