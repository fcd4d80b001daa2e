/* Names of nodes, for messages. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

/* ---- C++ names --------------------------------------------------------------------------------------------------- */

typedef char *(*demangle_fn)(const char *mangled, char *buffer, size_t *bytes, int *status);

static pthread_once_t demangler_once = PTHREAD_ONCE_INIT;
static demangle_fn demangler;

/* The C++ runtime's own demangler, if there is a runtime: a host with C++ kernels has one. Without it names stay as they are. */
static void find_demangler(void)
{
    void *runtime = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    void *function = runtime != NULL ? dlsym(runtime, "__cxa_demangle") : NULL;

    memcpy(&demangler, &function, sizeof function);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* What a finding has room for. */
enum { SHORT_NAME = 127 };

struct sg__name {
    _Atomic unsigned int holders;
    char *whole, *brief; /* NULL: not asked for so far. May be the same as raw, or each other. */
    char raw[];
};

static pthread_mutex_t readable_lock = PTHREAD_MUTEX_INITIALIZER;

static bool opens(const char *text)
{
    return *text == '<' || *text == '(';
}

/* Not the end of an arrow. */
static bool closes(const char *text)
{
    return *text == ')' || (*text == '>' && text[-1] != '-');
}

/* Brackets of "operator<", "operator()" and "(anonymous namespace)" are part of a name: how many characters of it, or 0. */
static size_t plain(const char *whole, const char *text)
{
    static const char nameless[] = "(anonymous namespace)";
    const size_t word = strlen("operator");

    if (strncmp(text, nameless, sizeof nameless - 1) == 0)
        return sizeof nameless - 1;
    if (text < whole + word || strncmp(text - word, "operator", word) != 0)
        return 0;
    return strncmp(text, "()", 2) == 0 ? 2 : strspn(text, "<=>-");
}

/* Where the bracket that opens here is closed; NULL: nowhere. */
static const char *closed(const char *whole, const char *text)
{
    unsigned int depth = 0;

    while (*text != '\0') {
        size_t length = plain(whole, text);
        if (length == 0 && opens(text))
            depth++;
        else if (length == 0 && closes(text) && --depth == 0)
            return text;
        text += length != 0 ? length : 1;
    }
    return NULL;
}

/* How long the namespace is that the name begins with; its template arguments mostly come from the same. */
static size_t namespace_of(const char *whole)
{
    size_t bytes = 0;

    for (size_t i = 0; whole[i] != '\0' && !opens(whole + i); i++)
        if (whole[i] == ':')
            bytes = i + 1;
    return bytes;
}

/* The name without parameters, and without template arguments deeper than that; 0: that is more than fits. */
static size_t shorten(const char *whole, unsigned int deepest, char *out, size_t room)
{
    const size_t space = namespace_of(whole);
    unsigned int depth = 0;
    size_t n = 0;

    for (const char *text = whole; *text != '\0';) {
        size_t length = plain(whole, text);
        if (depth > 0 && space > 0 && strncmp(text, whole, space) == 0 && (text[-1] == '<' || text[-1] == ' ')) {
            text += space;
            continue;
        }
        const char *end = length == 0 && opens(text) && (depth == deepest || *text == '(') ? closed(whole, text) : NULL;
        if (length == 0 && *text == '(' && depth == 0) {
            const char *last = closed(whole, text);
            if (last == NULL || last[1] == '\0')
                break;
        }
        if (n + length + 5 >= room)
            return 0;
        if (end != NULL && end - text > 4) {
            n += (size_t)snprintf(out + n, room - n, "%c...%c", *text, *end);
            text = end + 1;
            continue;
        }
        if (length == 0) {
            length = 1;
            if (opens(text))
                depth++;
            else if (closes(text) && depth > 0)
                depth--;
        }
        memcpy(out + n, text, length);
        n += length;
        text += length;
    }
    out[n] = '\0';
    return n;
}

static char *brief_of(char *whole)
{
    const char *begin = strncmp(whole, "void ", 5) == 0 ? whole + 5 : whole;
    char text[SHORT_NAME + 1];
    size_t n = 0;
    char *copy;

    if (strlen(whole) <= SHORT_NAME)
        return whole;
    for (unsigned int deepest = 9; n == 0 && deepest-- > 0;)
        n = shorten(begin, deepest, text, sizeof text);
    if (n == 0)
        snprintf(text, sizeof text, "%.124s...", begin);
    copy = strdup(text);
    return copy != NULL ? copy : whole;
}

static char *whole_of(sg__name *name)
{
    char *readable = NULL;
    int status = -1;

    if (strncmp(name->raw, "_Z", 2) != 0)
        return name->raw;
    pthread_once(&demangler_once, find_demangler);
    if (demangler != NULL)
        readable = demangler(name->raw, NULL, NULL, &status);
    return readable != NULL && status == 0 ? readable : name->raw;
}

static void make_readable(sg__name *name)
{
    pthread_mutex_lock(&readable_lock);
    if (name->whole == NULL) {
        name->whole = whole_of(name);
        name->brief = brief_of(name->whole);
    }
    pthread_mutex_unlock(&readable_lock);
}

const char *sg__name_raw(const sg__name *name)
{
    return name->raw;
}

const char *sg__name_whole(sg__name *name)
{
    make_readable(name);
    return name->whole;
}

const char *sg__name_short(sg__name *name)
{
    make_readable(name);
    return name->brief;
}

bool sg__name_fits(const char *pattern, const char *name)
{
    const char *star = NULL, *behind = NULL;

    while (*name != '\0')
        if (*pattern == '*') {
            star = ++pattern;
            behind = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) { /* Let the last star stand for one character more. */
            pattern = star;
            name = ++behind;
        } else {
            return false;
        }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

bool sg__layout_fits(const sg__layout *layout, const char *pattern)
{
    return sg__name_fits(pattern, sg__name_raw(layout->name)) || sg__name_fits(pattern, sg__name_whole(layout->name));
}

const char *sg__name_ask_raw(const sg__driver *driver, CUfunction function)
{
    const char *raw = NULL;

    return function != NULL && driver->FuncGetName != NULL && driver->FuncGetName(&raw, function) == CUDA_SUCCESS ? raw : NULL;
}

sg__name *sg__name_new(const char *raw, size_t length)
{
    sg__name *name = malloc(sizeof *name + length + 1);

    if (name == NULL)
        return NULL;
    *name = (sg__name){.holders = 1};
    memcpy(name->raw, raw, length + 1);
    return name;
}

sg__name *sg__name_ask(const sg__driver *driver, CUfunction function)
{
    const char *raw = sg__name_ask_raw(driver, function);

    return raw != NULL ? sg__name_new(raw, strlen(raw)) : NULL;
}

sg__name *sg__name_hold(sg__name *name)
{
    if (name != NULL)
        atomic_fetch_add_explicit(&name->holders, 1, memory_order_relaxed);
    return name;
}

void sg__name_drop(sg__name *name)
{
    if (name == NULL || atomic_fetch_sub(&name->holders, 1) != 1)
        return;
    if (name->brief != name->whole)
        free(name->brief);
    if (name->whole != name->raw)
        free(name->whole);
    free(name);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

const char *sg__node_kind_name(CUgraphNodeType type)
{
    static const char *const kinds[] = {
        [CU_GRAPH_NODE_TYPE_KERNEL] = "kernel (this driver does not tell its name)",
        [CU_GRAPH_NODE_TYPE_MEMCPY] = "copy",
        [CU_GRAPH_NODE_TYPE_MEMSET] = "set",
        [CU_GRAPH_NODE_TYPE_HOST] = "host function",
        [CU_GRAPH_NODE_TYPE_GRAPH] = "child graph",
        [CU_GRAPH_NODE_TYPE_EMPTY] = "empty node",
        [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = "event wait",
        [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = "event record",
        [CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL] = "semaphore signal",
        [CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT] = "semaphore wait",
        [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = "allocation",
        [CU_GRAPH_NODE_TYPE_MEM_FREE] = "free",
        [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = "memory operation",
        [CU_GRAPH_NODE_TYPE_CONDITIONAL] = "conditional",
    };

    return (size_t)type < sizeof kinds / sizeof *kinds ? kinds[type] : "node of an unknown type";
}

const char *sg__node_name(const sg__graph_node *node)
{
    return node->layout != NULL && node->layout->name != NULL ? sg__name_short(node->layout->name) : sg__node_kind_name(node->type);
}

const char *sg__graph_handle_kind(const sg__driver *driver, CUgraphNode handle, sg__name **name_out)
{
    CUDA_KERNEL_NODE_PARAMS_v1 params;
    CUgraphNodeType type;

    *name_out = NULL;
    memset(&params, 0, sizeof params);
    if (driver->GraphNodeGetType(handle, &type) != CUDA_SUCCESS)
        return "node";
    if (type == CU_GRAPH_NODE_TYPE_KERNEL && driver->GraphKernelNodeGetParams(handle, &params) == CUDA_SUCCESS)
        *name_out = sg__name_ask(driver, params.func);
    return sg__node_kind_name(type);
}
