/* The words of a fact: what was seen, and whether it is what the card gave. */
#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "conformance.h"
#include "runner.h"

static struct {
    int pipe;
    struct progress *progress;
    const char *only;
    const char *job_id;
    int resume_at;
    bool failed;
} telling;

static const struct {
    int code;
    const char *name;
} names[] = {
    {0, "SUCCESS"},
    {1, "INVALID_VALUE"},
    {2, "OUT_OF_MEMORY"},
    {3, "NOT_INITIALIZED"},
    {4, "DEINITIALIZED"},
    {34, "STUB_LIBRARY"},
    {36, "CALL_REQUIRES_NEWER_DRIVER"},
    {100, "NO_DEVICE"},
    {101, "INVALID_DEVICE"},
    {200, "INVALID_IMAGE"},
    {201, "INVALID_CONTEXT"},
    {209, "NO_BINARY_FOR_GPU"},
    {218, "INVALID_PTX"},
    {222, "UNSUPPORTED_PTX_VERSION"},
    {304, "OPERATING_SYSTEM"},
    {400, "INVALID_HANDLE"},
    {401, "ILLEGAL_STATE"},
    {402, "LOSSY_QUERY"},
    {500, "NOT_FOUND"},
    {600, "NOT_READY"},
    {700, "ILLEGAL_ADDRESS"},
    {701, "LAUNCH_OUT_OF_RESOURCES"},
    {709, "CONTEXT_IS_DESTROYED"},
    {712, "HOST_MEMORY_ALREADY_REGISTERED"},
    {713, "HOST_MEMORY_NOT_REGISTERED"},
    {719, "LAUNCH_FAILED"},
    {720, "COOPERATIVE_LAUNCH_TOO_LARGE"},
    {800, "NOT_PERMITTED"},
    {801, "NOT_SUPPORTED"},
    {900, "STREAM_CAPTURE_UNSUPPORTED"},
    {901, "STREAM_CAPTURE_INVALIDATED"},
    {902, "STREAM_CAPTURE_MERGE"},
    {903, "STREAM_CAPTURE_UNMATCHED"},
    {904, "STREAM_CAPTURE_UNJOINED"},
    {905, "STREAM_CAPTURE_ISOLATION"},
    {906, "STREAM_CAPTURE_IMPLICIT"},
    {907, "CAPTURED_EVENT"},
    {908, "STREAM_CAPTURE_WRONG_THREAD"},
    {910, "GRAPH_EXEC_UPDATE_FAILURE"},
    {913, "FUNCTION_NOT_LOADED"},
    {999, "UNKNOWN"},
};

const char *code_name(int code)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code)
            return names[i].name;
    return "?";
}

bool id_asked_for(const char *id, const char *only, bool job)
{
    size_t n;

    if (!only || strncmp(id, only, strlen(only)) == 0)
        return true;
    /* A job is run for the sake of a fact inside it. */
    n = strlen(id);
    return job && strncmp(id, only, n) == 0 && only[n] == '.';
}

static void send_record(char verdict, const char *id, const char *text)
{
    char buffer[sizeof telling.progress->id + sizeof telling.progress->line + 8];
    size_t n = 0, done = 0, length;

    buffer[n++] = verdict;
    length = strlen(id);
    memcpy(buffer + n, id, length + 1);
    n += length + 1;
    length = strlen(text);
    memcpy(buffer + n, text, length + 1);
    n += length + 1;
    while (done < n) {
        ssize_t w = write(telling.pipe, buffer + done, n - done);

        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            _exit(3);
        done += (size_t)w;
    }
}

void telling_start(int pipe, struct progress *progress, const char *job_id, int resume_at, const char *only)
{
    telling.pipe = pipe;
    telling.progress = progress;
    telling.job_id = job_id;
    telling.resume_at = resume_at;
    telling.only = only;
    progress->open = 0;
    progress->about = 0;
    progress->complete = 0;
    progress->count = resume_at;
}

static void close_fact(void)
{
    struct progress *p = telling.progress;

    if (!p->open)
        return;
    if (id_asked_for(p->id, telling.only, false))
        send_record(telling.failed ? '-' : '+', p->id, p->line);
    p->open = 0;
    p->count++;
}

void telling_finish(void)
{
    close_fact();
    telling.progress->complete = 1;
}

void fact(const char *id, ...)
{
    struct progress *p = telling.progress;
    va_list args;

    close_fact();
    va_start(args, id);
    vsnprintf(p->id, sizeof p->id, id, args);
    va_end(args);
    p->line[0] = '\0';
    p->open = 1;
    telling.failed = false;
}

void at_cell(int cell)
{
    close_fact();
    telling.progress->count = cell;
}

bool wanted(const char *id, ...)
{
    char text[sizeof telling.progress->id];
    va_list args;

    va_start(args, id);
    vsnprintf(text, sizeof text, id, args);
    va_end(args);
    return id_asked_for(text, telling.only, false);
}

int resume_at(void)
{
    return telling.resume_at;
}

static void add(const char *fmt, va_list args)
{
    struct progress *p = telling.progress;
    size_t n;

    if (!p->open)
        fact("%s", telling.job_id);
    p->about = 0;
    n = strlen(p->line);
    if (n && n + 4 < sizeof p->line) {
        memcpy(p->line + n, " | ", 4);
        n += 3;
    }
    vsnprintf(p->line + n, sizeof p->line - n, fmt, args);
}

static void append(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void append(const char *fmt, ...)
{
    struct progress *p = telling.progress;
    size_t n = strlen(p->line);
    va_list args;

    va_start(args, fmt);
    vsnprintf(p->line + n, sizeof p->line - n, fmt, args);
    va_end(args);
}

static bool verdict(bool ok)
{
    if (!ok)
        telling.failed = true;
    return ok;
}

bool code(CUresult got, int want, const char *what, ...)
{
    va_list args;
    bool ok = want == ANY || (want == NONZERO ? got != CUDA_SUCCESS : (int)got == want);

    va_start(args, what);
    add(what, args);
    va_end(args);
    append(" -> %d %s", (int)got, code_name((int)got));
    if (!ok && want == NONZERO)
        append(" (expected an error)");
    else if (!ok)
        append(" (expected %d %s)", want, code_name(want));
    return verdict(ok);
}

bool code_of(CUresult got, const int *wants, const char *what, ...)
{
    va_list args;
    bool ok = false;

    va_start(args, what);
    add(what, args);
    va_end(args);
    append(" -> %d %s", (int)got, code_name((int)got));
    for (const int *w = wants; *w >= 0; w++)
        ok = ok || (int)got == *w;
    if (!ok) {
        append(" (expected");
        for (const int *w = wants; *w >= 0; w++)
            append("%s %d", w == wants ? "" : " or", *w);
        append(")");
    }
    return verdict(ok);
}

static const char *status_name(int s)
{
    return s == NONE ? "none" : s == ACTIVE ? "ACTIVE" : s == DEAD ? "INVALIDATED" : "?";
}

bool state(const char *name, CUstream stream, int want)
{
    CUstreamCaptureStatus s = (CUstreamCaptureStatus)9;
    CUresult r = CU(StreamIsCapturing)(stream, &s);

    if (r != CUDA_SUCCESS)
        return code(r, 0, "%s: cuStreamIsCapturing", name);
    seen("%s %s", name, status_name((int)s));
    if ((int)s != want)
        append(" (expected %s)", status_name(want));
    return verdict((int)s == want);
}

static const char *const type_names[] = {"kernel",    "memcpy",     "memset",       "host",       "graph",
                                         "empty",     "wait_event", "event_record", "sem_signal", "sem_wait",
                                         "mem_alloc", "mem_free",   "batch_mem_op", "conditional"};
enum { TYPES = sizeof type_names / sizeof *type_names };

/* "kernel=2 memset=1": in the order of the type's number; "" for none. */
static void describe(CUgraph g, char *out, size_t size)
{
    size_t n = 0, k, at = 0;
    int count[TYPES + 1] = {0};
    CUgraphNode *nodes;
    CUresult r = CU(GraphGetNodes)(g, NULL, &n);

    out[0] = '\0';
    if (r != CUDA_SUCCESS) {
        snprintf(out, size, "cuGraphGetNodes gives %d", (int)r);
        return;
    }
    nodes = calloc(n + 1, sizeof *nodes);
    k = n;
    if (n)
        CU(GraphGetNodes)(g, nodes, &k);
    for (size_t i = 0; i < k && i < n; i++) {
        CUgraphNodeType t = (CUgraphNodeType)TYPES;

        if (CU(GraphNodeGetType)(nodes[i], &t) != CUDA_SUCCESS || (unsigned)t >= TYPES)
            t = (CUgraphNodeType)TYPES;
        count[t]++;
    }
    free(nodes);
    for (int i = 0; i <= TYPES; i++)
        if (count[i] && at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%s=%d", at ? " " : "", i < TYPES ? type_names[i] : "?", count[i]);
}

/* want: as describe() writes it; "NULL": no graph at all. */
bool holds(const char *name, CUgraph graph, const char *want)
{
    char text[256];
    bool ok;

    if (graph)
        describe(graph, text, sizeof text);
    else
        snprintf(text, sizeof text, "NULL");
    ok = strcmp(text, want) == 0;
    seen("%s {%s}", name, text);
    if (!ok)
        append(" (expected {%s})", want);
    return verdict(ok);
}

bool value(double got, double want, const char *what, ...)
{
    va_list args;

    va_start(args, what);
    add(what, args);
    va_end(args);
    append(" %g", got);
    if (got != want)
        append(" (expected %g)", want);
    return verdict(got == want);
}

bool equal(long long got, long long want, const char *what, ...)
{
    va_list args;

    va_start(args, what);
    add(what, args);
    va_end(args);
    append(" %lld", got);
    if (got != want)
        append(" (expected %lld)", want);
    return verdict(got == want);
}

bool yes(bool ok, const char *what, ...)
{
    va_list args;

    va_start(args, what);
    add(what, args);
    va_end(args);
    append(ok ? ": yes" : ": no (expected yes)");
    return verdict(ok);
}

void seen(const char *what, ...)
{
    va_list args;

    va_start(args, what);
    add(what, args);
    va_end(args);
}

void about(const char *what, ...)
{
    va_list args;

    va_start(args, what);
    add(what, args);
    va_end(args);
    append(" ...");
    telling.progress->about = 1;
}

void skip(const char *why, ...)
{
    char text[1024];
    va_list args;

    va_start(args, why);
    vsnprintf(text, sizeof text, why, args);
    va_end(args);
    send_record('o', telling.progress->open ? telling.progress->id : telling.job_id, text);
    telling.progress->open = 0;
    telling.progress->count++;
    _exit(0);
}

void missing(const char *entry)
{
    skip("the driver has no %s", entry);
}

void must(CUresult r, const char *call, const char *file, int line)
{
    const char *base = strrchr(file, '/');

    if (r == CUDA_SUCCESS)
        return;
    if (r == CUDA_ERROR_NOT_SUPPORTED)
        skip("the driver does not support %s (801) in setting up", call);
    seen("setting up: %s gives %d %s at %s:%d", call, (int)r, code_name((int)r), base ? base + 1 : file, line);
    telling.failed = true;
    close_fact();
    _exit(0);
}
