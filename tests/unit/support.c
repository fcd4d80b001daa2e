#include "support.h"

#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <locale.h>
#include <stdbool.h>
#include <unistd.h>

#include "test_kernels_ptx.h"

struct unit_driver cu;
struct unit_kernels kernels;
stepgraph_session *session;
CUstream stream;

static CUcontext primary;
static unsigned skipped;
static void (*control_fail)(const char *, unsigned, int);
static unsigned long (*control_calls)(const char *);
static void (*control_seed)(unsigned long long seed);
static void (*control_memory)(unsigned long long bytes);
static void (*control_exec_delays)(const unsigned long long *ns, unsigned n);
static const char *failing[64]; /* Entries that may still be set to fail. Names are literals. */
static unsigned failing_count;

/* ---- the driver, raw --------------------------------------------------------------------------------------------- */

const char *driver_path(void)
{
    const char *path = getenv("STEPGRAPH_DRIVER");
    return path && *path ? path : "libcuda.so.1";
}

static void find_controls(void)
{
    static int looked;
    void *driver;

    if (looked)
        return;
    looked = 1;
    driver = dlopen(driver_path(), RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return;
    *(void **)&control_fail = dlsym(driver, "cusim_fail");
    *(void **)&control_calls = dlsym(driver, "cusim_calls");
    *(void **)&control_seed = dlsym(driver, "cusim_set_seed");
    *(void **)&control_memory = dlsym(driver, "cusim_set_memory");
    *(void **)&control_exec_delays = dlsym(driver, "cusim_set_executable_delays");
}

int unit_has_controls(void)
{
    find_controls();
    return control_fail && control_calls;
}

/* A test that believes it has set something of the driver would prove nothing where that was not done. */
static void needs_controls(const char *what)
{
    if (!unit_has_controls())
        ck_abort_msg("only cusim lets %s be set: add this test with add_controlled_test()", what);
}

void driver_fails(const char *entry, unsigned nth, int code)
{
    needs_controls(entry);
    control_fail(entry, nth, code);
    if (nth && failing_count < sizeof failing / sizeof *failing)
        failing[failing_count++] = entry;
}

void no_driver_fails(void)
{
    while (failing_count)
        control_fail(failing[--failing_count], 0, 0);
}

void driver_exec_delays(const unsigned long long *ns, unsigned n)
{
    needs_controls("the time that launches take");
    control_exec_delays(ns, n);
}

void driver_memory(unsigned long long bytes)
{
    needs_controls("the memory of the device");
    control_memory(bytes);
}

void driver_seed(unsigned long long seed)
{
    needs_controls("the order of what has none");
    control_seed(seed);
}

unsigned long driver_calls(const char *entry)
{
    return unit_has_controls() ? control_calls(entry) : 0;
}

/* ---- lists of what a test made ------------------------------------------------------------------------------------- */

enum { SESSIONS, PINS, STEPS, DEVICES, STREAMS, LISTS };
static struct {
    void **item;
    size_t count, room;
} kept[LISTS];

static void keep(int list, void *item)
{
    if (kept[list].count == kept[list].room) {
        kept[list].room = kept[list].room ? 2 * kept[list].room : 64;
        kept[list].item = realloc(kept[list].item, kept[list].room * sizeof(void *));
        if (!kept[list].item)
            abort();
    }
    kept[list].item[kept[list].count++] = item;
}

static void forget(int list, void *item)
{
    for (size_t i = kept[list].count; i-- > 0;)
        if (kept[list].item[i] == item) {
            memmove(&kept[list].item[i], &kept[list].item[i + 1], (kept[list].count - i - 1) * sizeof(void *));
            kept[list].count--;
            return;
        }
}

static void *next_kept(int list)
{
    return kept[list].count ? kept[list].item[--kept[list].count] : NULL;
}

void keep_session(stepgraph_session *made)
{
    keep(SESSIONS, made);
}

void keep_pin(stepgraph_pin *made)
{
    keep(PINS, made);
}

void keep_step(stepgraph_step *made)
{
    keep(STEPS, made);
}

stepgraph_session *session_make(const stepgraph_session_config *config)
{
    stepgraph_session *made = NULL;

    OK(stepgraph_session_open(config, &made));
    ck_assert_ptr_nonnull(made);
    keep(SESSIONS, made);
    return made;
}

stepgraph_pin *pin_adopt(stepgraph_session *of, stepgraph_role role, CUdeviceptr address, uint64_t bytes, const char *name)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *made = NULL;

    config.role = role;
    config.bytes = bytes;
    config.name = name;
    config.address = address;
    OK(stepgraph_pin_create(of, &config, &made));
    ck_assert_ptr_nonnull(made);
    keep(PINS, made);
    return made;
}

stepgraph_pin *pin_make(stepgraph_session *of, stepgraph_role role, uint64_t bytes, const char *name)
{
    return pin_adopt(of, role, 0, bytes, name);
}

stepgraph_step *step_make(stepgraph_session *of, const char *name, uint32_t flags)
{
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_step *made = NULL;

    config.name = name;
    config.flags = flags;
    OK(stepgraph_step_begin(of, &config, &made));
    ck_assert_ptr_nonnull(made);
    keep(STEPS, made);
    return made;
}

CUdeviceptr device_make(size_t bytes)
{
    CUdeviceptr made = 0;
    unsigned char *zeros = calloc(1, bytes);

    CU(MemAlloc(&made, bytes));
    keep(DEVICES, (void *)(uintptr_t)made);
    put_bytes(made, zeros, bytes);
    free(zeros);
    return made;
}

CUstream stream_make(unsigned flags)
{
    CUstream made = NULL;

    CU(StreamCreate(&made, flags));
    keep(STREAMS, made);
    return made;
}

void drop_session(stepgraph_session *made)
{
    OK(stepgraph_session_close(made));
    forget(SESSIONS, made);
}

void drop_pin(stepgraph_pin *made)
{
    OK(stepgraph_pin_destroy(made));
    forget(PINS, made);
}

void drop_step(stepgraph_step *made)
{
    forget(STEPS, made);
    stepgraph_step_destroy(made);
}

void device_drop(CUdeviceptr made)
{
    forget(DEVICES, (void *)(uintptr_t)made);
    CU(MemFree(made));
}

void forget_session(stepgraph_session *gone)
{
    forget(SESSIONS, gone);
}

void forget_pin(stepgraph_pin *gone)
{
    forget(PINS, gone);
}

void forget_step(stepgraph_step *gone)
{
    forget(STEPS, gone);
}

void forget_device(CUdeviceptr gone)
{
    forget(DEVICES, (void *)(uintptr_t)gone);
}

/* ---- the fixture ----------------------------------------------------------------------------------------------------- */

void reopen(const stepgraph_session_config *config)
{
    if (session)
        drop_session(session);
    session = NULL;
    session = session_make(config);
    stream = stepgraph_session_stream(session);
}

static char lines[64][700];
static unsigned n_lines;

static void keep_line(void *user, int32_t level, const char *line)
{
    (void)user;
    if (n_lines < sizeof lines / sizeof *lines)
        snprintf(lines[n_lines++], sizeof *lines, "[%d] %s", level, line);
}

void reopen_listening(uint32_t level)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;

    config.log = keep_line;
    config.log_level = level;
    reopen(&config);
    forget_said();
}

unsigned said(const char *words)
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_lines; i++)
        n += strstr(lines[i], words) != NULL;
    return n;
}

void forget_said(void)
{
    n_lines = 0;
}

static void setup(void)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;

    CU(CtxSetCurrent(primary));
    reopen(&config);
}

/* Of LeakSanitizer, if the program is built with it. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));
static int leaves_objects;

void unit_leaves_objects(int on)
{
    if (on && !leaves_objects && __lsan_disable)
        __lsan_disable();
    if (!on && leaves_objects && __lsan_enable)
        __lsan_enable();
    leaves_objects = on;
}

/* How many contexts lie on this thread's stack, of which none is left there. */
static unsigned contexts_pushed(void)
{
    CUcontext context = NULL;
    unsigned n = 0;

    while (cu.CtxPopCurrent(&context) == CUDA_SUCCESS && context)
        n++;
    return n;
}

/* Every step, then every pin, then the memory that pins adopted, then the sessions; a session that does not close is a fault of
 * its own, and so is a context that a call has pushed and not taken off again. */
static void teardown(void)
{
    unsigned open_pins = 0, open_sessions = 0, pushed, most = leaves_objects ? UINT_MAX : 1;
    void *item;

    unit_leaves_objects(0);
    no_driver_fails();
    if (unit_has_controls()) {
        driver_seed(0);
        driver_exec_delays(NULL, 0);
        driver_memory(16ull << 30);
    }
    while ((item = next_kept(STEPS)))
        stepgraph_step_destroy(item);
    while ((item = next_kept(PINS)))
        open_pins += stepgraph_pin_destroy(item) != STEPGRAPH_OK;
    while ((item = next_kept(SESSIONS)))
        open_sessions += stepgraph_session_close(item) != STEPGRAPH_OK;
    pushed = contexts_pushed();
    cu.CtxSetCurrent(primary);
    while ((item = next_kept(STREAMS)))
        cu.StreamDestroy(item);
    while ((item = next_kept(DEVICES)))
        cu.MemFree((CUdeviceptr)(uintptr_t)item);
    session = NULL;
    stream = NULL;
    ck_assert_msg(open_pins == 0, "%u pins could not be destroyed: %s", open_pins, last_words());
    ck_assert_msg(open_sessions == 0, "%u sessions could not be closed: %s", open_sessions, last_words());
    ck_assert_msg(pushed <= most, "%u contexts are on the thread's stack", pushed);
}

/* Once per program: a first session gives the entry points; the primary context stays retained, so that kernels are loaded once.
 */
static const char *start(void)
{
    static char why[1200];
    stepgraph_session *first = NULL;
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    CUdevice device;
    stepgraph_status status = stepgraph_session_open(&config, &first);

    if (status != STEPGRAPH_OK) {
        snprintf(why, sizeof why, "no session: %s: %s", stepgraph_status_name(status), last_words());
        return why;
    }
#define X(name, version, signature)                                                                                              \
    *(void **)&cu.name = stepgraph_session_symbol(first, "cu" #name, version);                                                   \
    if (!cu.name) {                                                                                                              \
        snprintf(why, sizeof why, "the driver lacks cu%s of version %d", #name, version);                                        \
        return why;                                                                                                              \
    }
    UNIT_ENTRIES(X)
#undef X
    if (cu.DeviceGet(&device, 0) || cu.DevicePrimaryCtxRetain(&primary, device) || cu.CtxSetCurrent(primary))
        return "no primary context";
    if (!kernels_load(&kernels))
        return "the test kernels cannot be loaded";
    if (stepgraph_session_close(first) != STEPGRAPH_OK)
        return last_words();
    return NULL;
}

void unit_skip(const char *test, const char *reason)
{
    printf("skipped: %s: %s\n", test, reason);
    skipped++;
}

static char commas_folder[32]; /* Of the language that was made. */
static char point; /* What it is to be at the end. */

/* A language whose numbers have commas; made if there is none. */
static bool find_commas(void)
{
    char command[160];

    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL)
        return true;
    strcpy(commas_folder, "/tmp/stepgraph-locale-XXXXXX");
    if (mkdtemp(commas_folder) == NULL)
        return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", commas_folder);
    if (system(command) != 0)
        return false;
    setenv("LOCPATH", commas_folder, 1);
    return setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;
}

void unit_commas_begin(const char *test)
{
    if (!find_commas())
        unit_skip(test, "there is no language with commas");
    point = localeconv()->decimal_point[0];
}

void unit_commas_end(void)
{
    const char left = localeconv()->decimal_point[0];
    char command[160];

    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    if (commas_folder[0] != '\0') {
        snprintf(command, sizeof command, "rm -rf %s", commas_folder);
        ck_assert_int_eq(system(command), 0);
    }
    ck_assert_int_eq(left, point);
}

TCase *unit_case(Suite *suite, const char *name)
{
    TCase *made = tcase_create(name);

    tcase_add_checked_fixture(made, setup, teardown);
    suite_add_tcase(suite, made);
    return made;
}

int unit_main(Suite *(*make)(void))
{
    const char *why = start();
    SRunner *runner;
    int failed, ran;

    if (why) {
        const char *named = getenv("STEPGRAPH_DRIVER");
        printf("%s: %s\n", named ? "failed" : "skipped: all", why);
        return named ? 1 : 77;
    }
    runner = srunner_create(make());
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    ran = srunner_ntests_run(runner);
    srunner_free(runner);
    for (int list = 0; list < LISTS; list++)
        free(kept[list].item);
    if (skipped)
        printf("%u tests skipped\n", skipped);
    fflush(stdout);
    return failed ? 1 : ran == 0 ? 77 : 0;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------------- */

CUmodule kernels_load(struct unit_kernels *into)
{
    CUmodule module = NULL;

    if (cu.ModuleLoadData(&module, test_kernels_ptx))
        return NULL;
    /* clang-format off */
#define X(name)                                           \
    if (cu.ModuleGetFunction(&into->name, module, #name)) \
        return NULL;
    X(nop) X(inc) X(setv) X(axpb) X(update) X(addn) X(copyf) X(spin) X(inner) X(big4096) X(spread)
#undef X
    /* clang-format on */
    return module;
}

void launch(CUstream on, CUfunction function, unsigned threads, void **arguments)
{
    CU(LaunchKernel(function, (threads + 127) / 128, 1, 1, threads < 128 ? threads : 128, 1, 1, 0, on, arguments, NULL));
}

void inc(CUstream on, CUdeviceptr p, float v)
{
    launch(on, kernels.inc, 1, (void *[]){&p, &v});
}

void setv(CUstream on, CUdeviceptr p, float v)
{
    launch(on, kernels.setv, 1, (void *[]){&p, &v});
}

void axpb(CUstream on, CUdeviceptr d, CUdeviceptr p, float v)
{
    launch(on, kernels.axpb, 1, (void *[]){&d, &p, &v});
}

void copyf(CUstream on, CUdeviceptr d, CUdeviceptr s)
{
    launch(on, kernels.copyf, 1, (void *[]){&d, &s});
}

void update(CUstream on, CUdeviceptr d, CUdeviceptr p, CUdeviceptr x, CUdeviceptr rate, int n)
{
    launch(on, kernels.update, (unsigned)n, (void *[]){&d, &p, &x, &rate, &n});
}

void spin(CUstream on, unsigned milliseconds)
{
    unsigned long long ns = milliseconds * 1000000ull;
    launch(on, kernels.spin, 1, (void *[]){&ns});
}

stepgraph_status counted(stepgraph_session *of, CUstream on, CUfunction function, void **arguments)
{
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;

    call.function = function;
    call.stream = on;
    call.arguments = arguments;
    return stepgraph_session_launch(of, &call);
}

void counted_inc(stepgraph_session *of, CUstream on, CUdeviceptr p, float v)
{
    OK(counted(of, on, kernels.inc, (void *[]){&p, &v}));
}

void bytes_at(CUdeviceptr p, void *to, size_t bytes)
{
    if (session)
        OK(stepgraph_session_wait(session));
    CU(MemcpyDtoH(to, p, bytes));
}

float float_at(CUdeviceptr p)
{
    float v;

    bytes_at(p, &v, sizeof v);
    return v;
}

float pin_float(const stepgraph_pin *pin)
{
    return float_at(stepgraph_pin_address(pin));
}

void put_bytes(CUdeviceptr p, const void *from, size_t bytes)
{
    for (size_t i = 0; i < kept[SESSIONS].count; i++)
        (void)stepgraph_session_wait(kept[SESSIONS].item[i]);
    CU(MemcpyHtoD(p, from, bytes));
    CU(StreamSynchronize(NULL));
}

void put_float(CUdeviceptr p, float v)
{
    put_bytes(p, &v, sizeof v);
}

void begin_recording(stepgraph_step *step)
{
    OK(stepgraph_step_prepare(step));
    OK(stepgraph_step_capture(step));
}

void record(stepgraph_step *step, void (*body)(void *), void *argument)
{
    begin_recording(step);
    body(argument);
    OK(stepgraph_step_end(step));
    STATE_IS(step, STEPGRAPH_STEP_READY);
}

void replayed(stepgraph_step *step, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        OK(stepgraph_step_replay(step));
    OK(stepgraph_session_wait(session));
}

/* ---- saying what is expected ------------------------------------------------------------------------------------------- */

stepgraph_error_info last_error(void)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;

    stepgraph_last_error(&info);
    return info;
}

const char *last_words(void)
{
    static _Thread_local stepgraph_error_info info;

    info = last_error();
    return info.message;
}

static int holds(const char *text, const char *word)
{
    size_t length = strlen(word);

    for (;; text++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)text[i]) == tolower((unsigned char)word[i]))
            i++;
        if (i == length)
            return 1;
        if (!*text)
            return 0;
    }
}

const char *lacks(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (!holds(text, *words))
            return *words;
    return NULL;
}

stepgraph_sample sample_now(stepgraph_session *of)
{
    stepgraph_sample sample = STEPGRAPH_SAMPLE_INIT;

    OK(stepgraph_session_sample(of, 0, &sample));
    return sample;
}

stepgraph_pin_stats pin_stats(stepgraph_session *of)
{
    stepgraph_pin_stats stats = STEPGRAPH_PIN_STATS_INIT;

    OK(stepgraph_session_pin_stats(of, &stats));
    return stats;
}

stepgraph_step_stats step_stats(const stepgraph_step *step)
{
    stepgraph_step_stats stats = STEPGRAPH_STEP_STATS_INIT;

    OK(stepgraph_step_get_stats(step, &stats));
    return stats;
}

uint32_t unit_random(uint64_t *seed)
{
    *seed += 0x9e3779b97f4a7c15ull;
    uint64_t z = *seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

void random_bytes(uint64_t *seed, void *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)to)[i] = (unsigned char)unit_random(seed);
}
