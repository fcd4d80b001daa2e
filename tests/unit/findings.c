#include "findings.h"

#include <ctype.h>

#include "test_kernels_ptx.h"

struct more_driver more;
struct audit_kernels made_for;

static CUmodule module;
static stepgraph_audit *reports[256];
static void *locked[64];
static unsigned n_reports, n_locked;

/* ---- the fixture ----------------------------------------------------------------------------------------------------- */

static void look_up(void)
{
    if (module)
        return;
#define X(name, version, signature)                                                                                              \
    *(void **)&more.name = stepgraph_session_symbol(session, "cu" #name, version);                                               \
    ck_assert_msg(more.name != NULL, "the driver lacks cu%s", #name);
    MORE_ENTRIES(X)
#undef X
    CU(ModuleLoadData(&module, test_kernels_ptx));
#define X(name) CU(ModuleGetFunction(&made_for.name, module, #name));
    X(inner)
    X(packed) X(adam) X(dropout) X(hyper) X(adam_struct) X(padded) X(views) X(fill) X(wide) X(part604) X(big4096)
#undef X
        CU(ModuleGetFunction(&made_for.scale, module, "_ZN3net5scaleEPff"));
}

static void give_back(void)
{
    while (n_reports)
        stepgraph_audit_destroy(reports[--n_reports]);
    if (n_locked && session)
        stepgraph_session_wait(session);
    while (n_locked)
        cu.MemFreeHost(locked[--n_locked]);
}

TCase *audit_case(Suite *suite, const char *name)
{
    TCase *made = unit_case(suite, name);

    tcase_add_checked_fixture(made, look_up, give_back);
    return made;
}

/* ---- recording ------------------------------------------------------------------------------------------------------- */

stepgraph_step *recording_checked(const char *name, uint32_t flags, uint32_t liveness_every)
{
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_step *step = NULL;

    config.name = name;
    config.flags = flags;
    config.liveness_every = liveness_every;
    OK(stepgraph_step_begin(session, &config, &step));
    keep_step(step);
    begin_recording(step);
    return step;
}

stepgraph_step *recording(const char *name, uint32_t flags)
{
    return recording_checked(name, flags, 0);
}

stepgraph_audit *keep_report(stepgraph_audit *made)
{
    ck_assert_ptr_nonnull(made);
    ck_assert_uint_lt(n_reports, sizeof reports / sizeof *reports);
    return reports[n_reports++] = made;
}

static stepgraph_audit *report_of(const stepgraph_step *step)
{
    stepgraph_audit *report = NULL;

    OK(stepgraph_audit_step(step, &report));
    return keep_report(report);
}

stepgraph_audit *ready(stepgraph_step *step)
{
    OK(stepgraph_step_end(step));
    STATE_IS(step, STEPGRAPH_STEP_READY);
    return report_of(step);
}

stepgraph_audit *refused(stepgraph_step *step)
{
    stepgraph_finding first = STEPGRAPH_FINDING_INIT;
    stepgraph_audit *report;

    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "cannot be replayed");
    STATE_IS(step, STEPGRAPH_STEP_FAILED);
    report = report_of(step);
    OK(stepgraph_audit_get(report, 0, &first));
    ck_assert_uint_eq(first.fault, 1);
    /* The words are the report's. */
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_replay(step), first.text, first.advice);
    return report;
}

stepgraph_audit *compared(const stepgraph_step *a, const stepgraph_step *b, const stepgraph_step *b_again)
{
    stepgraph_audit *report = NULL;

    OK(stepgraph_audit_compare(a, b, b_again, &report));
    return keep_report(report);
}

stepgraph_audit_summary summary_of(const stepgraph_audit *report)
{
    stepgraph_audit_summary summary = STEPGRAPH_AUDIT_SUMMARY_INIT;

    OK(stepgraph_audit_get_summary(report, &summary));
    return summary;
}

void adam(CUdeviceptr w, CUdeviceptr g, float rate, float correction, int step)
{
    launch(stream, made_for.adam, 1, (void *[]){&w, &g, &rate, &correction, &step});
}

void scale(CUdeviceptr p, float by)
{
    launch(stream, made_for.scale, 1, (void *[]){&p, &by});
}

void inc_early(CUstream on, CUdeviceptr p, float v)
{
    CUresult (*launch_ex)(const CUlaunchConfig *, CUfunction, void **, void **) = NULL;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .hStream = on};

    *(void **)&launch_ex = stepgraph_session_symbol(session, "cuLaunchKernelEx", 11060);
    ck_assert(launch_ex != NULL);
    attribute.value.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    ck_assert_int_eq(launch_ex(&config, kernels.inc, (void *[]){&p, &v}, NULL), CUDA_SUCCESS);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

void *page_locked(size_t bytes)
{
    void *made = NULL;

    ck_assert_uint_lt(n_locked, sizeof locked / sizeof *locked);
    CU(MemAllocHost(&made, bytes));
    memset(made, 0, bytes);
    return locked[n_locked++] = made;
}

void page_locked_drop(void *memory)
{
    for (unsigned i = 0; i < n_locked; i++)
        if (locked[i] == memory)
            locked[i] = locked[--n_locked];
    CU(MemFreeHost(memory));
}

struct freeing {
    CUcontext context;
    CUdeviceptr memory;
    CUresult result;
};

static void *free_it(void *given)
{
    struct freeing *f = given;

    f->result = cu.CtxSetCurrent(f->context);
    if (f->result == CUDA_SUCCESS)
        f->result = cu.MemFree(f->memory);
    return NULL;
}

void free_elsewhere(CUdeviceptr memory)
{
    struct freeing f = {.memory = memory};
    pthread_t thread;

    forget_device(memory);
    CU(CtxGetCurrent(&f.context));
    ck_assert_int_eq(pthread_create(&thread, NULL, free_it, &f), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(f.result, CUDA_SUCCESS);
}

int take_again(CUdeviceptr address, size_t bytes, const char *test)
{
    for (int i = 0; i < 64; i++)
        if (device_make(bytes) == address)
            return 1;
    unit_skip(test, "this driver does not give an address out again");
    return 0;
}

/* ---- what a report holds --------------------------------------------------------------------------------------------- */

stepgraph_finding found(const stepgraph_audit *report, const struct wanted *wanted, const char *const *words)
{
    stepgraph_finding finding, hit = STEPGRAPH_FINDING_INIT;
    const char *text = stepgraph_audit_text(report);
    unsigned hits = 0;

    for (uint32_t i = 0;; i++) {
        finding = (stepgraph_finding)STEPGRAPH_FINDING_INIT;
        if (stepgraph_audit_get(report, i, &finding) != STEPGRAPH_OK)
            break;
        if (finding.kind != wanted->kind || finding.node != wanted->node || finding.argument != wanted->argument ||
            finding.offset != wanted->offset)
            continue;
        hit = finding;
        hits++;
    }
    ck_assert_msg(hits == 1, "%u findings of kind %u at node %d, argument %d, offset %u: %s", hits, wanted->kind,
                  (int)wanted->node, (int)wanted->argument, wanted->offset, text);
    ck_assert_msg(hit.fault == (wanted->fault == 1) && hit.doubtful == (wanted->fault == DOUBTFUL), "fault is %u, doubtful %u: %s", hit.fault,
                  hit.doubtful, hit.text);
    ck_assert_msg(strstr(hit.node_name, wanted->name) != NULL && (wanted->name[0] != '\0' || hit.node_name[0] == '\0'),
                  "the node is called '%s' instead of '%s'", hit.node_name, wanted->name);
    ck_assert_msg(lacks(hit.text, words) == NULL, "the text lacks '%s': %s", lacks(hit.text, words), hit.text);
    ck_assert_msg(lacks(hit.advice, (const char *const[]){wanted->advice, NULL}) == NULL, "the advice lacks '%s': %s",
                  wanted->advice, hit.advice);
    ck_assert_msg((hit.advice[0] != '\0') == (wanted->advice[0] != '\0'), "the advice is '%s'", hit.advice);
    ck_assert_msg(strstr(text, hit.text) != NULL, "the report's text lacks: %s", hit.text);
    return hit;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------ */

static const char *skip_value(const char *p, int depth);

static const char *skip_space(const char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

/* Behind one character of UTF-8; NULL if it is none. */
static const char *skip_character(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;
    int more_bytes = *u < 0x80 ? 0 : *u >= 0xc2 && *u < 0xe0 ? 1 : *u >= 0xe0 && *u < 0xf0 ? 2 : *u >= 0xf0 && *u < 0xf5 ? 3 : -1;

    if (more_bytes < 0 || *u < 0x20)
        return NULL;
    for (int i = 1; i <= more_bytes; i++)
        if ((u[i] & 0xc0) != 0x80)
            return NULL;
    return p + 1 + more_bytes;
}

static const char *skip_string(const char *p)
{
    if (*p++ != '"')
        return NULL;
    while (p != NULL && *p != '"') {
        if (*p != '\\') {
            p = skip_character(p);
        } else if (p[1] == 'u') {
            for (int i = 2; i < 6; i++)
                if (!isxdigit((unsigned char)p[i]))
                    return NULL;
            p += 6;
        } else if (p[1] != '\0' && strchr("\"\\/bfnrt", p[1]) != NULL) {
            p += 2;
        } else {
            return NULL;
        }
    }
    return p != NULL ? p + 1 : NULL;
}

/* A list of values, or of names and values. */
static const char *skip_list(const char *p, int depth, char end)
{
    p = skip_space(p + 1);
    if (*p == end)
        return p + 1;
    for (;;) {
        if (end == '}') {
            p = skip_string(skip_space(p));
            if (p == NULL || *(p = skip_space(p)) != ':')
                return NULL;
            p++;
        }
        p = skip_value(p, depth + 1);
        if (p == NULL)
            return NULL;
        p = skip_space(p);
        if (*p == end)
            return p + 1;
        if (*p++ != ',')
            return NULL;
    }
}

static const char *skip_value(const char *p, int depth)
{
    static const char *const words[] = {"true", "false", "null"};
    char *end;

    p = skip_space(p);
    if (depth > 20)
        return NULL;
    if (*p == '"')
        return skip_string(p);
    if (*p == '{' || *p == '[')
        return skip_list(p, depth, *p == '{' ? '}' : ']');
    for (int i = 0; i < 3; i++)
        if (strncmp(p, words[i], strlen(words[i])) == 0)
            return p + strlen(words[i]);
    if (*p != '-' && !isdigit((unsigned char)*p))
        return NULL;
    strtod(p, &end);
    return end;
}

const char *json_fault(const char *text)
{
    const char *end = skip_value(text, 0);

    if (end == NULL)
        return "it cannot be read";
    return *skip_space(end) == '\0' ? NULL : end;
}
