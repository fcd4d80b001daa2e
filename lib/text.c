#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void sg__text_add(sg__text *text, const char *format, ...)
{
    va_list arguments, again;
    int n;

    va_start(arguments, format);
    va_copy(again, arguments);
    n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n >= 0 && text->used + (size_t)n + 1 > text->room) {
        size_t room = 2 * (text->used + (size_t)n + 1);
        char *larger = realloc(text->text, room);
        if (larger != NULL) {
            text->text = larger;
            text->room = room;
        }
    }
    if (n >= 0 && text->used + (size_t)n + 1 <= text->room)
        text->used += (size_t)vsnprintf(text->text + text->used, text->room - text->used, format, again);
    else
        text->failed = true;
    va_end(again);
}

void sg__text_quoted(sg__text *text, const char *string)
{
    sg__text_add(text, "\"");
    for (; *string != '\0'; string++) {
        if (*string == '"' || *string == '\\')
            sg__text_add(text, "\\%c", *string);
        else if ((unsigned char)*string < 0x20)
            sg__text_add(text, "\\u%04x", (unsigned char)*string);
        else
            sg__text_add(text, "%c", *string);
    }
    sg__text_add(text, "\"");
}
