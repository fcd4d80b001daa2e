#include "text.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

static pthread_once_t points_once = PTHREAD_ONCE_INIT;
static locale_t points;

static void find_points(void)
{
    points = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Of this thread, until its own language is given back. */
static locale_t begin_points(void)
{
    pthread_once(&points_once, find_points);
    return uselocale(points); /* 0, where there is none, changes nothing. */
}

int sg__vprint(char *text, size_t bytes, const char *format, va_list arguments)
{
    const locale_t before = begin_points();
    int n = vsnprintf(text, bytes, format, arguments);

    uselocale(before);
    return n;
}

int sg__print(char *text, size_t bytes, const char *format, ...)
{
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = sg__vprint(text, bytes, format, arguments);
    va_end(arguments);
    return n;
}

/* Room for n characters more, and the zero. */
static bool make_room(sg__text *text, size_t n)
{
    size_t room = 2 * (text->used + n + 1);
    char *larger;

    if (text->used + n + 1 <= text->room)
        return true;
    larger = realloc(text->text, room);
    if (larger == NULL) {
        text->failed = true;
        return false;
    }
    text->text = larger;
    text->room = room;
    return true;
}

void sg__text_add(sg__text *text, const char *format, ...)
{
    va_list arguments, again;
    int n;

    va_start(arguments, format);
    va_copy(again, arguments);
    n = sg__vprint(NULL, 0, format, arguments);
    va_end(arguments);
    if (n < 0)
        text->failed = true;
    else if (make_room(text, (size_t)n))
        text->used += (size_t)sg__vprint(text->text + text->used, text->room - text->used, format, again);
    va_end(again);
}

static void add_bytes(sg__text *text, const char *bytes, size_t n)
{
    if (!make_room(text, n))
        return;
    memcpy(text->text + text->used, bytes, n);
    text->used += n;
    text->text[text->used] = '\0';
}

size_t sg__text_character(const char *string)
{
    const unsigned char *u = (const unsigned char *)string;
    size_t n = u[0] < 0x80 ? 1 : u[0] >= 0xc2 && u[0] < 0xe0 ? 2 : u[0] >= 0xe0 && u[0] < 0xf0 ? 3 : u[0] >= 0xf0 && u[0] < 0xf5 ? 4 : 0;

    for (size_t i = 1; i < n; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    /* Longer than need be, half of a pair for UTF-16, or beyond the last character. */
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] >= 0xa0) || (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] >= 0x90))
        return 0;
    return n;
}

void sg__text_quoted(sg__text *text, const char *string)
{
    const char *plain = string; /* From here on nothing is special. */

    add_bytes(text, "\"", 1);
    while (*string != '\0') {
        size_t n = sg__text_character(string);
        if (n != 0 && *string != '"' && *string != '\\' && (unsigned char)*string >= 0x20) {
            string += n;
            continue;
        }
        add_bytes(text, plain, (size_t)(string - plain));
        if (n == 0)
            sg__text_add(text, "\\ufffd");
        else if ((unsigned char)*string < 0x20)
            sg__text_add(text, "\\u%04x", (unsigned char)*string);
        else
            sg__text_add(text, "\\%c", *string);
        plain = ++string;
    }
    add_bytes(text, plain, (size_t)(string - plain));
    add_bytes(text, "\"", 1);
}

stepgraph_status sg__texts_keep(const sg__text *text, const sg__text *json, char **text_out, char **json_out)
{
    *text_out = text->text;
    *json_out = json->text;
    return text->failed || json->failed ? sg__fail_memory("host", text->used + json->used) : STEPGRAPH_OK;
}
