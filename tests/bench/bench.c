#include "bench.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bench_kernels_ptx.h"
#include "../entry_names.h"
#include "hooks.h"

struct bench_driver cu;
struct bench_kernels kernels;
/* The same kernels as the runtime launches them, by handles that are no context's: the steps of frameworks are made of those. */
static struct {
    CUkernel part604, big4096;
} as_runtime;
stepgraph_session *session;
CUstream stream;
bool bench_software;

static const char *program;
static stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;
static CUevent events[2];

static bench_row *rows;
static size_t n_rows;

/* ---- calls that have to succeed ------------------------------------------------------------------------------------ */

void bench_must(stepgraph_status status, const char *call, const char *file, int line)
{
    stepgraph_error_info why = STEPGRAPH_ERROR_INFO_INIT;

    if (status == STEPGRAPH_OK)
        return;
    stepgraph_last_error(&why);
    fflush(stdout);
    fprintf(stderr, "%s:%d: %s: %s: %s\n", file, line, call, stepgraph_status_name(status), why.message);
    exit(1);
}

void bench_must_driver(CUresult code, const char *call, const char *file, int line)
{
    if (code == CUDA_SUCCESS)
        return;
    fflush(stdout);
    fprintf(stderr, "%s:%d: %s answers %d\n", file, line, call, (int)code);
    exit(1);
}

/* ---- time and statistics ------------------------------------------------------------------------------------------- */

double bench_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

bench_stat bench_stat_of(double *values, size_t n)
{
    bench_stat stat = { 0 };
    size_t away = 0;

    if (n == 0)
        return stat;
    qsort(values, n, sizeof *values, by_value);
    stat.n = n;
    stat.median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    stat.p10 = values[n / 10];
    stat.p90 = values[n - 1 - n / 10];
    /* The rank of the true median is binomial: 0.98 sqrt(n) ranks to either side of the middle. */
    while ((double)(away * away) < 0.96 * (double)n)
        away++;
    stat.low = away < n / 2 ? values[n / 2 - away] : stat.median;
    stat.high = away < n / 2 ? values[n - 1 - (n / 2 - away)] : stat.median;
    return stat;
}

enum { LEAST = 11, LEAST_IN_A_ROUND = 5, MOST = 1001 };
static double sampled_ours[MOST], sampled_raw[MOST], sampled_difference[MOST];
static size_t sampled;
enum { ROUNDS_MOST = 32, ROUNDS_TELL = 6 };
static double round_medians[ROUNDS_MOST]; /* Of the differences. */
static size_t rounds;

void bench_pairs_begin(void)
{
    sampled = 0;
    rounds = 0;
}

static void sample(bench_sample ours, bench_sample raw, void *user, double milliseconds, size_t at_least)
{
    size_t first = sampled, least = sampled + at_least;
    static double differences[MOST];
    double end;

    /* Once each for what happens at first use only. */
    ours(user);
    raw(user);
    end = bench_now_us() + milliseconds * 1e3 * (bench_software ? 0.1 : 1);
    while (sampled < MOST && (sampled < least || bench_now_us() < end)) {
        double a, b;
        if (sampled % 2) {
            b = raw(user);
            a = ours(user);
        } else {
            a = ours(user);
            b = raw(user);
        }
        sampled_ours[sampled] = a;
        sampled_raw[sampled] = b;
        sampled_difference[sampled++] = a - b;
    }
    memcpy(differences, sampled_difference + first, (sampled - first) * sizeof *differences);
    if (sampled > first && rounds < ROUNDS_MOST)
        round_medians[rounds++] = bench_stat_of(differences, sampled - first).median;
}

void bench_pairs_sample(bench_sample ours, bench_sample raw, void *user, double milliseconds)
{
    sample(ours, raw, user, milliseconds, LEAST_IN_A_ROUND);
}

bench_pair bench_pairs_end(void)
{
    bench_pair pair = { bench_stat_of(sampled_ours, sampled), bench_stat_of(sampled_raw, sampled), bench_stat_of(sampled_difference, sampled) };

    /* Samples of one round are not independent: what is made once may be quick or slow by chance. Of six rounds the median lies between the
     * lowest and the highest with 97 % certainty. */
    if (rounds >= ROUNDS_TELL) {
        qsort(round_medians, rounds, sizeof *round_medians, by_value);
        pair.difference.low = round_medians[0];
        pair.difference.high = round_medians[rounds - 1];
    }
    return pair;
}

bench_pair bench_alternate(bench_sample ours, bench_sample raw, void *user, double milliseconds)
{
    bench_pairs_begin();
    sample(ours, raw, user, milliseconds, LEAST);
    return bench_pairs_end();
}

void bench_sync(void)
{
    CU(StreamSynchronize(stream));
}

void bench_device_start(void)
{
    if (!events[0]) {
        CU(EventCreate(&events[0], CU_EVENT_DEFAULT));
        CU(EventCreate(&events[1], CU_EVENT_DEFAULT));
    }
    CU(EventRecord(events[0], stream));
}

double bench_device_stop(void)
{
    float ms;

    CU(EventRecord(events[1], stream));
    bench_sync();
    CU(EventElapsedTime(&ms, events[0], events[1]));
    return (double)ms * 1e3;
}

bool bench_skips(uint64_t size, uint64_t most_on_cusim)
{
    return bench_software && size > most_on_cusim;
}

/* ---- the rows ------------------------------------------------------------------------------------------------------ */

static double ratio_of(const bench_row *row)
{
    return row->pair.raw.median != 0 ? row->pair.ours.median / row->pair.raw.median : 0;
}

/* "met", "missed", or "open" where the noise is larger than what is to be seen; NULL: not judged. */
static const char *verdict(const bench_row *row)
{
    const bench_stat *difference = &row->pair.difference;

    if (bench_software || row->kind == BENCH_NO_TARGET)
        return NULL;
    if (row->kind == BENCH_RATIO)
        return ratio_of(row) <= row->target ? "met" : difference->low > (row->target - 1) * row->pair.raw.median ? "missed" : "open";
    if (row->kind == BENCH_VALUE)
        return row->pair.ours.median <= row->target ? "met" : "missed";
    return difference->median <= row->target ? "met" : difference->low > row->target ? "missed" : "open";
}

static void print_target(const bench_row *row)
{
    const char *judged = verdict(row);

    if (row->kind != BENCH_NO_TARGET)
        printf("  %s <= %.4g %s",
               row->kind == BENCH_RATIO   ? "ratio"
               : row->kind == BENCH_VALUE ? "ours"
                                          : "ours-raw",
               row->target, judged ? judged : "");
    printf("\n");
    fflush(stdout);
}

/* As it comes: with the spread, p10 and p90, and how often it was measured. */
static void print_row(const bench_row *row)
{
    const bench_pair *p = &row->pair;

    printf("%-46s %-3s ours %.3f (%.3f .. %.3f)", row->label, row->unit, p->ours.median, p->ours.p10, p->ours.p90);
    if (p->raw.n)
        printf("  raw %.3f (%.3f .. %.3f)  ours-raw %.3f (%.3f .. %.3f)  n %zu", p->raw.median, p->raw.p10, p->raw.p90,
               p->difference.median, p->difference.p10, p->difference.p90, p->ours.n);
    print_target(row);
}

/* Short, at the end: medians. */
static void print_table(void)
{
    printf("\n%-46s %-4s %11s %11s %8s %10s  target\n", program, "unit", "ours", "raw", "ratio", "ours-raw");
    for (size_t i = 0; i < n_rows; i++) {
        const bench_row *row = &rows[i];
        if (!row->headline)
            continue;
        printf("%-46s %-4s %11.3f %11.3f %8.3f %10.3f", row->label, row->unit, row->pair.ours.median, row->pair.raw.median, ratio_of(row),
               row->pair.difference.median);
        print_target(row);
    }
}

void bench_add(const char *series, double x, const char *unit, const bench_pair *pair, bench_target_kind kind, double target, bool headline,
               const char *label, ...)
{
    bench_row row = { .series = series, .x = x, .unit = unit, .pair = *pair, .kind = kind, .target = target, .headline = headline };
    va_list arguments;

    va_start(arguments, label);
    vsnprintf(row.label, sizeof row.label, label, arguments);
    va_end(arguments);
    if (n_rows % 64 == 0) {
        rows = realloc(rows, (n_rows + 64) * sizeof *rows);
        if (!rows)
            abort();
    }
    rows[n_rows++] = row;
    print_row(&row);
}

static void write_stat(FILE *f, const char *name, const bench_stat *s)
{
    if (s->n)
        fprintf(f, ", \"%s\": {\"median\": %.5f, \"p10\": %.5f, \"p90\": %.5f, \"low\": %.5f, \"high\": %.5f, \"n\": %zu}", name, s->median,
                s->p10, s->p90, s->low, s->high, s->n);
}

static int write_json(const char *path)
{
    static const char *const kinds[] = { "none", "ratio", "difference", "value" };
    FILE *f = fopen(path, "w");
    char date[32];
    time_t now = time(NULL);

    if (!f) {
        perror(path);
        return 1;
    }
    strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    fprintf(f, "{\"bench\": \"%s\", \"driver\": \"%s\", \"driver_version\": %d, \"device\": \"%s\", \"date\": \"%s\", \"rows\": [", program,
            bench_software ? "cusim" : "cuda", info.driver_version, info.device_name, date);
    for (size_t i = 0; i < n_rows; i++) {
        const bench_row *row = &rows[i];
        const char *judged = verdict(row);
        fprintf(f, "%s\n  {\"series\": \"%s\", \"label\": \"%s\", \"x\": %.10g, \"unit\": \"%s\", \"headline\": %s", i ? "," : "",
                row->series, row->label, row->x, row->unit, row->headline ? "true" : "false");
        write_stat(f, "ours", &row->pair.ours);
        write_stat(f, "raw", &row->pair.raw);
        write_stat(f, "difference", &row->pair.difference);
        if (row->pair.raw.n)
            fprintf(f, ", \"ratio\": %.5f", ratio_of(row));
        if (row->kind != BENCH_NO_TARGET)
            fprintf(f, ", \"target\": {\"of\": \"%s\", \"most\": %.5g, \"verdict\": %s%s%s}", kinds[row->kind], row->target,
                    judged ? "\"" : "", judged ? judged : "null", judged ? "\"" : "");
        fprintf(f, "}");
    }
    fprintf(f, "\n]}\n");
    if (fclose(f) == 0)
        return 0;
    perror(path);
    return 1;
}

/* ---- the program --------------------------------------------------------------------------------------------------- */

stepgraph_session *bench_open(const stepgraph_session_config *config)
{
    stepgraph_session *made = NULL;

    OK(stepgraph_session_open(config, &made));
    return made;
}

static bool start(const char *name)
{
    stepgraph_error_info why = STEPGRAPH_ERROR_INFO_INIT;
    CUmodule module;
    void *library;

    program = name;
    if (stepgraph_session_open(NULL, &session) != STEPGRAPH_OK) {
        stepgraph_last_error(&why);
        printf("%s: no session: %s\n", name, why.message);
        return false;
    }
    stream = stepgraph_session_stream(session);
    OK(stepgraph_session_get_info(session, &info));
    bench_software = info.software != 0;
#define X(entry, version, signature)                                                                                                       \
    *(void **)&cu.entry = stepgraph_session_symbol(session, "cu" #entry, version);                                                         \
    if (!cu.entry) {                                                                                                                       \
        printf("%s: the driver lacks cu%s of version %d\n", name, #entry, version);                                                        \
        return false;                                                                                                                      \
    }
    BENCH_ENTRIES(X)
#undef X
    CU(CtxSetCurrent(stepgraph_session_context(session)));
    CU(ModuleLoadData(&module, bench_kernels_ptx));
#define X(kernel) CU(ModuleGetFunction(&kernels.kernel, module, #kernel));
    X(nop)
    X(inc) X(update) X(addn) X(part604) X(big4096)
#undef X
    CU(LibraryLoadData(&library, bench_kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    CU(LibraryGetKernel(&as_runtime.part604, library, "part604"));
    CU(LibraryGetKernel(&as_runtime.big4096, library, "big4096"));
    return true;
}

static bool work_start(void);
static int work_stop(void);

int bench_main(int argc, char **argv, const char *name, void (*measure)(void), void (*check_work)(void))
{
    const char *json = NULL;
    bool brief = false;
    int status = 0;

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--short") == 0) {
            brief = true;
        } else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            json = argv[++i];
        } else {
            fprintf(stderr, "usage: %s [--json FILE]\n       %s --short\n", argv[0], argv[0]);
            return 2;
        }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!start(name))
        return getenv("STEPGRAPH_DRIVER") ? 1 : 77;
    if (brief) {
        if (!work_start())
            return 77;
        check_work();
        status = work_stop();
    } else {
        double began = bench_now_us();
        printf("%s: %s, driver %d.%d%s\n", name, info.device_name, info.driver_version / 1000, info.driver_version % 1000 / 10,
               bench_software ? ": a simulation on the CPU, its times say nothing about a card" : "");
        measure();
        printf("%zu rows in %.1f s\n", n_rows, (bench_now_us() - began) / 1e6);
        print_table();
        if (json)
            status = write_json(json);
    }
    for (int i = 0; i < 2; i++)
        if (events[i])
            CU(EventDestroy(events[i]));
    OK(stepgraph_session_close(session));
    free(rows);
    return status;
}

/* ---- steps and raw graphs ------------------------------------------------------------------------------------------ */

stepgraph_pin *bench_pin(stepgraph_session *of, stepgraph_role role, CUdeviceptr address, uint64_t bytes, const char *name)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *made = NULL;

    config.role = role;
    config.address = address;
    config.bytes = bytes;
    config.name = name;
    OK(stepgraph_pin_create(of, &config, &made));
    return made;
}

stepgraph_step *bench_step(stepgraph_session *of, const char *name, uint32_t flags)
{
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_step *made = NULL;

    config.name = name;
    config.flags = flags;
    OK(stepgraph_step_begin(of, &config, &made));
    return made;
}

void bench_launches(CUstream on, CUdeviceptr p, unsigned n)
{
    float v = 1;
    void *arguments[] = { &p, &v };

    for (unsigned i = 0; i < n; i++)
        CU(LaunchKernel(kernels.inc, 1, 1, 1, 1, 1, 1, 0, on, arguments, NULL));
}

/* What a word of a struct is: of sixteen, eight are small numbers, three addresses, two pairs of numbers, two addresses of the host's, one a pair
 * of floats: the mixture of a PyTorch step. */
static uint64_t word_of(CUdeviceptr p, size_t i, unsigned garbage)
{
    static uint64_t of_host[64];
    const float floats[2] = { 1.5f, (float)i };
    uint64_t pair;

    switch (i % 16) {
    case 3:
    case 7:
    case 11:
        return p + 256 * (i % 8);
    case 5:
        return (uint64_t)(i + 3) << 32 | (garbage + 7);
    case 9:
        return 0x10000 * (i + 1) + garbage;
    case 12:
    case 14:
        return (uintptr_t)&of_host[(i + garbage) % 64];
    case 15:
        memcpy(&pair, floats, sizeof pair);
        return pair;
    default:
        return i;
    }
}

void bench_structs(CUstream on, CUdeviceptr p, size_t bytes, unsigned n, unsigned garbage)
{
    static uint64_t words[BENCH_BIG / 8];
    void *arguments[] = { &p, words };

    for (unsigned i = 0; i < n; i++) {
        for (size_t at = 0; at < bytes / 8 + 1 && at < BENCH_BIG / 8; at++)
            words[at] = word_of(p, at, i % 8 == 0 && at >= 40 && at < 72 ? garbage : 0);
        CU(LaunchKernel(bytes == BENCH_PART ? kernels.part604 : kernels.big4096, 1, 1, 1, 1, 1, 1, 0, on, arguments, NULL));
    }
}

static uint32_t scatter(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* A megabyte of the host's as low as the heap of a program that is not position-independent; where that cannot be had, anywhere. */
static unsigned char *low_memory(void)
{
    static unsigned char elsewhere[BENCH_LEFT_OVER_BYTES], *memory;

    if (memory == NULL) {
        memory = mmap((void *)0x20000000, BENCH_LEFT_OVER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        memory = memory != MAP_FAILED ? memory : elsewhere;
    }
    return memory;
}

/* The i-th number that is left over. */
static uint64_t number_left_over(CUdeviceptr pool, uint32_t i, unsigned recording)
{
    static unsigned char data[BENCH_LEFT_OVER_BYTES];
    const uint32_t own = scatter(i), moved = i % 6 == 0 ? scatter(own ^ recording) : own;

    switch (own % 8) {
    case 0:
    case 1:
    case 2:
        return own >> 16;
    case 3:
        return (uint64_t)(own >> 28) << 32 | moved;
    case 4:
        return (uintptr_t)low_memory() + moved % (BENCH_LEFT_OVER_BYTES / 16) * 16;
    case 5:
        return (uintptr_t)data + moved % (BENCH_LEFT_OVER_BYTES / 16) * 16;
    case 6:
        return (uintptr_t)bench_launches + moved % 1024;
    default:
        return pool + moved % (BENCH_LEFT_OVER_BYTES / 512) * 512;
    }
}

void bench_left_over(CUstream on, CUdeviceptr p, CUdeviceptr pool, unsigned n, unsigned recording)
{
    enum { NUMBERS = 512 };
    static uint64_t words[BENCH_BIG / 8], numbers[NUMBERS];
    void *arguments[] = { &p, words };

    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = number_left_over(pool, i, recording);
    for (unsigned i = 0; i < n; i++) {
        const size_t bytes = i % 8 == 7 ? BENCH_BIG : BENCH_PART, n_words = (bytes + 7) / 8;
        for (size_t at = 0; at < n_words; at++)
            words[at] = at < n_words / 4 ? word_of(p, at, 0) : numbers[scatter((uint32_t)at << 16 | scatter(i) % 16) % NUMBERS];
        CU(LaunchKernel((CUfunction)(bytes == BENCH_PART ? as_runtime.part604 : as_runtime.big4096), 1, 1, 1, 1, 1, 1, 0, on, arguments, NULL));
    }
}

void bench_record(stepgraph_step *step, CUdeviceptr p, unsigned n)
{
    OK(stepgraph_step_prepare(step));
    OK(stepgraph_step_capture(step));
    bench_launches(stream, p, n);
    OK(stepgraph_step_end(step));
}

CUgraph bench_capture_raw(CUdeviceptr p, unsigned n)
{
    CUgraph graph;

    CU(StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    bench_launches(stream, p, n);
    CU(StreamEndCapture(stream, &graph));
    return graph;
}

CUgraphExec bench_instantiate(CUgraph graph)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params;
    CUgraphExec exec;

    memset(&params, 0, sizeof params);
    CU(GraphInstantiateWithParams(&exec, graph, &params));
    return exec;
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

/* Every entry that the library can call. */
static unsigned long (*driver_calls)(const char *entry);
static void (*hooks_begin)(void (*)(void));
static struct bench_hook_counts (*hooks_end)(void);
static unsigned long calls_before[ENTRIES];
static unsigned checks, failures;

void bench_expect(bool holds, const char *what, ...)
{
    va_list arguments;

    checks++;
    failures += !holds;
    printf("%s: ", holds ? "as expected" : "NOT AS EXPECTED");
    va_start(arguments, what);
    vprintf(what, arguments);
    va_end(arguments);
    printf("\n");
}

static bool work_start(void)
{
    void *driver = dlopen(info.driver_path, RTLD_NOW | RTLD_LOCAL);
    struct bench_hook_counts counts;
    void *volatile mine;

    if (driver)
        *(void **)&driver_calls = dlsym(driver, "cusim_calls");
    if (!driver_calls) {
        printf("skipped: the work done is counted by cusim, and the driver is '%s'\n", info.driver_path);
        return false;
    }
    *(void **)&hooks_begin = dlsym(RTLD_DEFAULT, "bench_hooks_begin");
    *(void **)&hooks_end = dlsym(RTLD_DEFAULT, "bench_hooks_end");
    if (!hooks_begin || !hooks_end) {
        printf("allocations and locks are not counted: the hooks are not preloaded\n");
        return true;
    }
    /* The hooks see what this thread does, and not what the driver does. */
    hooks_begin((void (*)(void))cu.GraphLaunch);
    mine = malloc(100);
    CU(EventCreate(&events[0], CU_EVENT_DEFAULT));
    CU(EventCreate(&events[1], CU_EVENT_DEFAULT));
    counts = hooks_end();
    bench_expect(counts.allocations == 1 && counts.bytes >= 100, "the hooks count an allocation, and none of the driver's");
    free(mine);
    return true;
}

static int work_stop(void)
{
    printf("%u passed, %u failed, 0 skipped\n", checks - failures, failures);
    return failures || !checks;
}

void bench_work_begin(void)
{
    for (size_t i = 0; i < ENTRIES; i++)
        calls_before[i] = driver_calls(entries[i]);
    if (hooks_begin)
        hooks_begin((void (*)(void))cu.GraphLaunch);
}

unsigned long bench_work_calls(const char *entry)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (strcmp(entries[i], entry) == 0)
            return driver_calls(entry) - calls_before[i];
    bench_expect(false, "%s is an entry that the library calls", entry);
    return 0;
}

void bench_work_is(const char *what, unsigned long allocations, unsigned long locks, const bench_call *calls)
{
    struct bench_hook_counts counts = { 0, 0, 0 };
    bool holds = true;
    char text[1024] = "";
    size_t used = 0;

    if (hooks_end)
        counts = hooks_end();
    for (size_t i = 0; i < ENTRIES; i++) {
        unsigned long made = driver_calls(entries[i]) - calls_before[i], wanted = 0;
        for (const bench_call *call = calls; call->entry; call++)
            wanted += strcmp(call->entry, entries[i]) == 0 ? call->n : 0;
        if (made != wanted) {
            holds = false;
            used += (size_t)snprintf(text + used, sizeof text - used, "\n    %s: %lu calls, expected %lu", entries[i], made, wanted);
            used = used < sizeof text ? used : sizeof text - 1;
        }
    }
    bench_expect(holds, "%s: driver calls%s", what, text);
    if (!hooks_end)
        return;
    bench_expect(counts.allocations <= allocations, "%s: %lu allocations, at most %lu", what, counts.allocations, allocations);
    bench_expect(counts.locks <= locks, "%s: %lu locks, at most %lu", what, counts.locks, locks);
}

long bench_work_bytes(void)
{
    return hooks_end ? hooks_end().bytes : 0;
}

/* The i-th number that nobody has set: of ten, seven addresses of the host's. */
static uint64_t number_unset(const unsigned char *heap, const unsigned char *stack, uint32_t i, unsigned recording)
{
    static unsigned char variables[BENCH_LEFT_OVER_BYTES];
    const uint32_t own = scatter(i), moved = scatter(own ^ recording);

    switch (own % 10) {
    case 0:
    case 1:
        return (uintptr_t)stack + moved % 60 * 8;
    case 2:
    case 3:
    case 4:
        return (uintptr_t)heap + moved % 64 * 16;
    case 5:
        return (uintptr_t)variables + moved % 64 * 16;
    case 6:
        return (uintptr_t)bench_launches + moved % 64;
    case 7:
    case 8:
        return (uint64_t)(moved % 200) << 32 | 8;
    default:
        return moved;
    }
}

void bench_unset(CUstream on, CUdeviceptr p, CUdeviceptr pool, unsigned n, unsigned recording)
{
    static uint64_t words[BENCH_BIG / 8];
    static unsigned char *heap;
    unsigned char stack[512];
    void *arguments[] = { &p, words };

    (void)pool;
    heap = heap != NULL ? heap : malloc(4096);
    for (unsigned i = 0; i < n; i++) {
        const bool big = i % 3 == 0;
        for (size_t at = 0; at < (big ? BENCH_BIG : BENCH_PART) / 8; at++)
            words[at] = word_of(p, at, 0);
        for (unsigned w = 0; w < (big ? 9u : 1u); w++) /* As many as in a step of PyTorch's. */
            words[20 + 5 * w] = number_unset(heap, stack, i % 20 * 16 + w, recording);
        CU(LaunchKernel((CUfunction)(big ? as_runtime.big4096 : as_runtime.part604), 1, 1, 1, 1, 1, 1, 0, on, arguments, NULL));
    }
}

void bench_moved(CUstream on, CUdeviceptr p, CUdeviceptr memory, unsigned n, unsigned recording)
{
    static uint64_t words[BENCH_PART / 8 + 1];

    (void)p;
    for (unsigned i = 0; i < n; i++) {
        CUdeviceptr operand = memory + ((size_t)recording * n + i) * BENCH_MOVED_BYTES;
        void *arguments[] = { &operand, words };
        words[1] = operand + BENCH_MOVED_BYTES / 4;
        words[2] = operand + BENCH_MOVED_BYTES / 2;
        CU(LaunchKernel((CUfunction)as_runtime.part604, 1, 1, 1, 1, 1, 1, 0, on, arguments, NULL));
    }
}
