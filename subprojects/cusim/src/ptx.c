/* Reading PTX text for what the driver interface tells about it: the entries and their parameters. */
#include "core.h"

#include <ctype.h>

/* Where the constant bank of a kernel's parameters begins: an over-aligned first parameter is not at offset 0. */
#define PARAM_BASE 0x210u

/* One token: a word (with dots, dollars and percents), or a single character. Comments are skipped. */
static const char *token(const char **at, size_t *length)
{
    const char *p = *at;

    for (;;) {
        while (isspace((unsigned char)*p))
            p++;
        if (p[0] == '/' && p[1] == '/') {
            while (*p && *p != '\n')
                p++;
        } else if (p[0] == '/' && p[1] == '*') {
            p += 2;
            while (*p && !(p[0] == '*' && p[1] == '/'))
                p++;
            if (*p)
                p += 2;
        } else {
            break;
        }
    }
    const char *start = p;
    if (*p == '"') {
        for (p++; *p && *p != '"'; p++)
            ;
        if (*p)
            p++;
    } else if (isalnum((unsigned char)*p) || strchr("._$%", *p ? *p : '!')) {
        while (isalnum((unsigned char)*p) || (*p && strchr("._$%", *p)))
            p++;
    } else if (*p) {
        p++;
    }
    *at = p;
    *length = (size_t)(p - start);
    return start;
}

static bool is(const char *t, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(t, word, n) == 0;
}

static unsigned type_size(const char *t, size_t n)
{
    if (n < 3 || t[0] != '.' || !strchr("bsuf", t[1]))
        return 0;
    unsigned bits = (unsigned)atoi(t + 2);
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? bits / 8 : 0;
}

/* `.param .align 8 .b8 name[40]` or `.param .u64 .ptr .global .align 1 name`: up to the comma or the bracket that ends it. */
static bool param(const char **at, struct cs_kernel_entry *e, unsigned *end)
{
    unsigned size = 0, align = 0, count = 1;
    size_t n;

    for (;;) {
        const char *before = *at, *t = token(at, &n);
        if (n == 0)
            return false;
        if (is(t, n, ",") || is(t, n, ")")) {
            *at = before;
            break;
        }
        if (is(t, n, ".align")) {
            t = token(at, &n);
            if (size == 0) /* After the type it is what the pointer points to. */
                align = (unsigned)atoi(t);
        } else if (is(t, n, "[")) {
            t = token(at, &n);
            count = (unsigned)atoi(t);
        } else if (type_size(t, n)) {
            size = type_size(t, n);
        }
    }
    if (size == 0)
        return false;
    if (align == 0)
        align = size;
    unsigned offset = (PARAM_BASE + *end + align - 1) / align * align - PARAM_BASE;
    e->params = realloc(e->params, (e->num_params + 1) * sizeof *e->params);
    if (!e->params)
        abort();
    e->params[e->num_params++] = (struct cs_kernel_param){offset, size * count};
    *end = offset + size * count;
    return true;
}

static bool entry(const char **at, struct cs_image *image)
{
    size_t n;
    const char *t = token(at, &n);

    if (n == 0)
        return false;
    image->entries = realloc(image->entries, (image->num_entries + 1) * sizeof *image->entries);
    if (!image->entries)
        abort();
    struct cs_kernel_entry *e = &image->entries[image->num_entries++];
    memset(e, 0, sizeof *e);
    e->name = strndup(t, n);
    t = token(at, &n);
    if (is(t, n, "(")) {
        for (;;) {
            t = token(at, &n);
            if (is(t, n, ")"))
                break;
            if (is(t, n, ","))
                continue;
            if (!is(t, n, ".param") || !param(at, e, &e->bytes))
                return false;
        }
    }
    return true;
}

CUresult cs_ptx_parse(const char *text, struct cs_image **out)
{
    const char *at = text, *t;
    bool target = false, good = true;
    int depth = 0;
    size_t n;

    t = token(&at, &n);
    if (!is(t, n, ".version"))
        return CUDA_ERROR_INVALID_IMAGE;
    struct cs_image *image = cs_alloc_bytes(sizeof *image);
    image->refs = 1;
    while (good && (t = token(&at, &n), n > 0)) {
        if (is(t, n, ".target"))
            target = true;
        else if (is(t, n, "{"))
            depth++;
        else if (is(t, n, "}"))
            depth--;
        else if (is(t, n, ".entry"))
            good = entry(&at, image);
    }
    if (!good || !target || depth != 0) {
        cs_image_put(image);
        return CUDA_ERROR_INVALID_PTX;
    }
    for (unsigned i = 0; i < image->num_entries; i++)
        image->entries[i].body = cs_pack_find(image->entries[i].name);
    *out = image;
    return CUDA_SUCCESS;
}

void cs_image_put(struct cs_image *image)
{
    if (!image || --image->refs > 0)
        return;
    for (unsigned i = 0; i < image->num_entries; i++) {
        free(image->entries[i].name);
        free(image->entries[i].params);
    }
    free(image->entries);
    free(image);
}
