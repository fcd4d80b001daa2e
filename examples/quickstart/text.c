/*
 * Introduces the data: a text, as numbers. Nothing of the library.
 */
#include "quickstart.h"

#include "quickstart-text.h" /* default_text[]: this project's documentation, embedded by the build. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Beyond this, something like /dev/zero was meant by mistake. */
#define TEXT_BYTES_MAX ((size_t)256 << 20)

static int read_file(struct text *text, FILE *file)
{
    size_t room = 0;

    for (;;) {
        if (text->length == room) {
            if (room >= TEXT_BYTES_MAX)
                return fail(EXIT_INPUT, "text '%s' is longer than %zu bytes; give a shorter one with --text", text->name,
                            TEXT_BYTES_MAX);
            room = room == 0 ? 65536 : 2 * room;
            unsigned char *larger = realloc(text->ids, room);
            if (larger == NULL)
                return fail(EXIT_INPUT, "out of host memory: %zu bytes for text '%s'", room, text->name);
            text->ids = larger;
        }
        size_t got = fread(text->ids + text->length, 1, room - text->length, file);
        text->length += got;
        if (got == 0)
            break;
    }
    if (ferror(file))
        return fail(EXIT_INPUT, "cannot read text '%s': %s", text->name, strerror(errno));
    return 0;
}

static int read_bytes(struct text *text, const char *path)
{
    if (path == NULL) {
        snprintf(text->name, sizeof text->name, "this project's documentation");
        text->length = sizeof default_text;
        text->ids = malloc(text->length);
        if (text->ids == NULL)
            return fail(EXIT_INPUT, "out of host memory: %zu bytes for the text", text->length);
        memcpy(text->ids, default_text, text->length);
        return 0;
    }

    snprintf(text->name, sizeof text->name, "%s", path);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return fail(EXIT_INPUT, "cannot open text '%s': %s; give a file that can be read with --text", path, strerror(errno));
    int status = read_file(text, file);
    fclose(file);
    return status;
}

int text_load(struct text *text, const struct options *options)
{
    int number[256];

    TRY(read_bytes(text, options->text));
    if (text->length == 0)
        return fail(EXIT_INPUT, "text '%s' is empty; give a longer one with --text", text->name);
    if (text->length < (size_t)options->context + 1)
        return fail(EXIT_INPUT,
                    "text '%s' has %zu characters, --context %d needs at least %d; give a longer text or a shorter context",
                    text->name, text->length, options->context, options->context + 1);

    for (int c = 0; c < 256; c++)
        number[c] = -1;
    for (size_t i = 0; i < text->length; i++) {
        int c = text->ids[i];
        if (number[c] < 0)
            number[c] = text->vocabulary++;
        text->ids[i] = (unsigned char)number[c];
    }
    if (text->vocabulary < 2)
        return fail(EXIT_INPUT, "text '%s' is one character over and over: there is nothing to learn; give another with --text",
                    text->name);
    return 0;
}

void text_free(struct text *text)
{
    free(text->ids);
    memset(text, 0, sizeof *text);
}
