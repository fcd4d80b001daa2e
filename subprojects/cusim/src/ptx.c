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
static bool param(const char **at, struct cs_kernel_entry *e, unsigned *end, char **name)
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
        } else if (*t != '.' && *t != ']') {
            free(*name);
            *name = strndup(t, n);
        }
    }
    if (size == 0 || !*name)
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

/* ---- what a kernel does with its parameters ------------------------------------------------------------------------ */

/* Registers that are made from parameters, and from which. */
struct taints {
    struct taint {
        const char *name;
        size_t length;
        uint64_t from;
    } * slots;
    size_t num_slots, used;
    bool grew;
};

static struct taint *taint_slot(struct taints *t, const char *name, size_t n)
{
    uint64_t h = 1469598103934665603u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)name[i]) * 1099511628211u;
    size_t i = (size_t)(h >> 16) & (t->num_slots - 1);
    while (t->slots[i].name && (t->slots[i].length != n || memcmp(t->slots[i].name, name, n) != 0))
        i = (i + 1) & (t->num_slots - 1);
    return &t->slots[i];
}

static uint64_t taint_get(struct taints *t, const char *name, size_t n)
{
    return t->num_slots ? taint_slot(t, name, n)->from : 0;
}

static void taint_add(struct taints *t, const char *name, size_t n, uint64_t from)
{
    if (!from)
        return;
    if ((t->used + 1) * 2 > t->num_slots) {
        struct taints bigger = {cs_alloc_bytes((t->num_slots ? t->num_slots * 2 : 64) * sizeof *t->slots),
                                t->num_slots ? t->num_slots * 2 : 64, t->used, t->grew};
        for (size_t i = 0; i < t->num_slots; i++)
            if (t->slots[i].name)
                *taint_slot(&bigger, t->slots[i].name, t->slots[i].length) = t->slots[i];
        free(t->slots);
        *t = bigger;
    }
    struct taint *s = taint_slot(t, name, n);
    if (!s->name) {
        s->name = name;
        s->length = n;
        t->used++;
    }
    t->grew |= (s->from | from) != s->from;
    s->from |= from;
}

static bool begins(const char *t, size_t n, const char *with)
{
    return n >= strlen(with) && memcmp(t, with, strlen(with)) == 0;
}

/* One instruction, up to its semicolon. Addresses are in brackets. What is loaded is no longer made from the parameter. */
static void instruction(const char **at, const char *op, size_t op_length, struct taints *t, struct cs_kernel_entry *e,
                        char *const *names)
{
    bool load = begins(op, op_length, "ld.") || begins(op, op_length, "ldu."), store = begins(op, op_length, "st.");
    bool param = begins(op, op_length, "ld.param"), atomic = begins(op, op_length, "atom.") || begins(op, op_length, "red.");
    const char *targets[8];
    size_t lengths[8], num_targets = 0, n;
    bool first = true, bracket = false, brace = false;
    uint64_t from = 0, address = 0;

    for (;;) {
        const char *w = token(at, &n);
        if (n == 0 || is(w, n, ";"))
            break;
        if (is(w, n, "[")) {
            bracket = true;
            first = false;
        } else if (is(w, n, "]")) {
            bracket = false;
        } else if (is(w, n, "{") || is(w, n, "}")) {
            brace = *w == '{';
        } else if (is(w, n, ",") || is(w, n, "|")) {
            first = first && (brace || *w == '|');
        } else if (bracket && param) {
            for (unsigned i = 0; i < e->num_params && i < 64; i++)
                if (strlen(names[i]) == n && memcmp(names[i], w, n) == 0)
                    from |= 1ull << i;
        } else if (bracket) {
            address |= taint_get(t, w, n);
        } else if (first && num_targets < 8) {
            targets[num_targets] = w;
            lengths[num_targets++] = n;
        } else if (*w == '%') {
            from |= taint_get(t, w, n);
        }
    }
    if (store)
        e->writes |= address;
    if ((load && !param) || atomic)
        e->reads |= address;
    if ((load && !param) || store || atomic || begins(op, op_length, "call") || begins(op, op_length, "setp"))
        return;
    for (size_t i = 0; i < num_targets; i++)
        taint_add(t, targets[i], lengths[i], from);
}

/* The body of an entry, from behind its opening brace; over again until nothing is added, because of loops. */
static void body(const char *start, struct cs_kernel_entry *e, char *const *names)
{
    struct taints t = {0};

    do {
        const char *at = start, *w;
        int depth = 1;
        size_t n;

        t.grew = false;
        while (depth > 0 && (w = token(&at, &n), n > 0)) {
            if (is(w, n, "{"))
                depth++;
            else if (is(w, n, "}"))
                depth--;
            else if (is(w, n, "@")) {
                w = token(&at, &n); /* A predicate, perhaps negated. */
                if (is(w, n, "!"))
                    token(&at, &n);
            } else if (is(w, n, ".loc")) {
                at += strcspn(at, "\n");
            } else if (*w == '.') {
                while (n > 0 && !is(w, n, ";") && !is(w, n, "}"))
                    w = token(&at, &n);
            } else if (isalpha((unsigned char)*w))
                instruction(&at, w, n, &t, e, names);
        }
    } while (t.grew);
    free(t.slots);
}

static bool entry(const char **at, struct cs_image *image)
{
    char **names = NULL; /* Of the parameters. */
    size_t n, room = 0;
    const char *t = token(at, &n);
    bool good = true;

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
        while (good) {
            t = token(at, &n);
            if (is(t, n, ")"))
                break;
            if (is(t, n, ","))
                continue;
            names = cs_grow(names, &room, e->num_params + 1, sizeof *names);
            names[e->num_params] = NULL;
            good = is(t, n, ".param") && param(at, e, &e->bytes, &names[e->num_params]);
        }
    }
    if (good) {
        const char *ahead = *at; /* Directives such as .maxntid may stand before the body. */
        do
            t = token(&ahead, &n);
        while (n > 0 && !is(t, n, "{") && !is(t, n, ";"));
        if (is(t, n, "{"))
            body(ahead, e, names);
    }
    for (unsigned i = 0; i < e->num_params + !good && names; i++)
        free(names[i]);
    free(names);
    return good;
}

/* One element of an initial value: 0f3f800000, 0d3ff0000000000000, 7, -7, 0x1f. Anything else, such as an address, counts as 0.
 */
static uint64_t element(const char *t, size_t n, bool minus)
{
    char word[40];
    uint64_t v;

    if (n >= sizeof word)
        return 0;
    memcpy(word, t, n);
    word[n] = '\0';
    if (n > 2 && word[0] == '0' && strchr("fFdD", word[1]))
        return strtoull(word + 2, NULL, 16);
    v = strtoull(word, NULL, 0);
    return minus ? 0 - v : v;
}

/* `.global .align 4 .f32 gvar = 0f40400000;` or `.global .align 16 .b8 table[40] = {1, 2};`: up to the semicolon. */
static bool variable(const char **at, struct cs_image *image)
{
    struct cs_variable v = {.align = 0};
    unsigned size = 0, count = 1;
    size_t n, filled = 0;
    const char *t;

    for (;;) {
        t = token(at, &n);
        if (n == 0)
            return false;
        if (is(t, n, ".align")) {
            t = token(at, &n);
            v.align = (unsigned)atoi(t);
        } else if (is(t, n, "[")) {
            t = token(at, &n);
            if (!is(t, n, "]"))
                count *= (unsigned)atoi(t);
        } else if (is(t, n, "=") || is(t, n, ";")) {
            break;
        } else if (type_size(t, n)) {
            size = type_size(t, n);
        } else if (t[0] != '.' && t[0] != ']' && !v.name) {
            v.name = strndup(t, n);
        }
    }
    v.bytes = (size_t)size * count;
    if (!v.name || v.bytes == 0) {
        /* A texture or the like. */
        while (n > 0 && !is(t, n, ";"))
            t = token(at, &n);
        free(v.name);
        return n > 0;
    }
    if (v.align == 0)
        v.align = size;
    v.initial = cs_alloc_bytes(v.bytes);
    while (!is(t, n, ";")) {
        bool minus = false;

        t = token(at, &n);
        if (n == 0)
            break;
        if (is(t, n, "-")) {
            minus = true;
            t = token(at, &n);
        }
        if (isdigit((unsigned char)*t) && filled + size <= v.bytes) {
            uint64_t value = element(t, n, minus);
            memcpy(v.initial + filled, &value, size < sizeof value ? size : sizeof value);
            filled += size;
        }
    }
    image->variables = realloc(image->variables, (image->num_variables + 1) * sizeof *image->variables);
    if (!image->variables)
        abort();
    image->variables[image->num_variables++] = v;
    return true;
}

CUresult cs_ptx_parse(const char *text, struct cs_image **out)
{
    const char *at = text, *t;
    bool target = false, good = true;
    int depth = 0;
    size_t n;

    if (strncmp(text, "\177ELF", 4) == 0 || strncmp(text, "\x50\xed\x55\xba", 4) == 0) {
        cs_say("a cubin or fatbin was given as a module: its machine code cannot run here; give the PTX it was made from");
        return CUDA_ERROR_INVALID_IMAGE;
    }
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
        else if (depth == 0 && (is(t, n, ".global") || is(t, n, ".const")))
            good = variable(&at, image);
    }
    if (!good || !target || depth != 0) {
        cs_image_put(image);
        return CUDA_ERROR_INVALID_PTX;
    }
    for (unsigned i = 0; i < image->num_entries; i++)
        image->entries[i].body = cs_pack_find(image->entries[i].name);
    for (unsigned i = 0; i < image->num_variables; i++)
        image->variables[i].body = cs_pack_find_variable(image->variables[i].name);
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
    for (unsigned i = 0; i < image->num_variables; i++) {
        free(image->variables[i].name);
        free(image->variables[i].initial);
    }
    free(image->entries);
    free(image->variables);
    free(image);
}
