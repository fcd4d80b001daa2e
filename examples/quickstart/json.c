/*
 * Introduces nothing of the library: writes JSON, just enough for the report.
 */
#include "quickstart.h"

#include <math.h>

static void text(FILE *file, const char *value)
{
    putc('"', file);
    for (const unsigned char *c = (const unsigned char *)value; *c != 0; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(file, "\\u%04x", *c);
        else
            putc(*c, file);
    }
    putc('"', file);
}

static void begin(struct json *json, const char *key)
{
    if (json->depth > 0)
        fprintf(json->file, "%s\n%*s", json->comma ? "," : "", 2 * json->depth, "");
    if (key != NULL) {
        text(json->file, key);
        fputs(": ", json->file);
    }
    json->comma = true;
}

void json_open(struct json *json, const char *key, char bracket)
{
    begin(json, key);
    putc(bracket, json->file);
    json->depth++;
    json->comma = false;
}

void json_close(struct json *json, char bracket)
{
    json->depth--;
    fprintf(json->file, "\n%*s%c%s", 2 * json->depth, "", bracket, json->depth == 0 ? "\n" : "");
    json->comma = true;
}

void json_text(struct json *json, const char *key, const char *value)
{
    begin(json, key);
    text(json->file, value);
}

void json_number(struct json *json, const char *key, double value)
{
    begin(json, key);
    if (!isfinite(value))
        fputs("null", json->file);
    else
        fprintf(json->file, "%.9g", value);
}

void json_truth(struct json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->file);
}

void json_raw(struct json *json, const char *key, const char *value)
{
    begin(json, key);
    fputs(value, json->file);
}
