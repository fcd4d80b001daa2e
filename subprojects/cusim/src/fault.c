/* Configuration, counted calls and calls that fail on request. */
#include "core.h"

#include <errno.h>
#include <limits.h>

static unsigned long counts[CS_ENTRIES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A request: `seen` calls of the entry so far, fail when it reaches `nth`. */
static struct request {
    char entry[64];
    unsigned nth, seen;
    int code;
    bool used;
} requests[64];
static unsigned num_requests; /* In use; 0 spares each call the search. */
static pthread_mutex_t requests_lock = PTHREAD_MUTEX_INITIALIZER;

static bool names(const char *name, enum cs_entry entry)
{
    return strcmp(name, cs_entry_table[entry].base) == 0 || strcmp(name, cs_entry_table[entry].symbol) == 0;
}

static bool known(const char *name)
{
    for (int i = 0; i < CS_ENTRIES; i++)
        if (names(name, (enum cs_entry)i))
            return true;
    return false;
}

static int request_add(const char *name, size_t length, unsigned nth, int code)
{
    char entry[64];

    if (length >= sizeof entry)
        return -1;
    memcpy(entry, name, length);
    entry[length] = '\0';
    if (!known(entry))
        return -1;
    pthread_mutex_lock(&requests_lock);
    int result = -1;
    for (int i = 0; i < 64; i++) {
        struct request *r = &requests[i];
        if (nth == 0 && r->used && strcmp(r->entry, entry) == 0) {
            r->used = false;
            __atomic_sub_fetch(&num_requests, 1, __ATOMIC_RELAXED);
        }
        if (nth != 0 && !r->used) {
            memcpy(r->entry, entry, sizeof entry);
            r->nth = nth;
            r->seen = 0;
            r->code = code;
            r->used = true;
            __atomic_add_fetch(&num_requests, 1, __ATOMIC_RELAXED);
            result = 0;
            break;
        }
    }
    pthread_mutex_unlock(&requests_lock);
    return nth == 0 ? 0 : result;
}

int cs_injected(enum cs_entry entry)
{
    int code = -1;

    __atomic_add_fetch(&counts[entry], 1, __ATOMIC_RELAXED);
    if (__atomic_load_n(&num_requests, __ATOMIC_RELAXED) == 0)
        return -1;
    pthread_mutex_lock(&requests_lock);
    for (int i = 0; i < 64; i++) {
        struct request *r = &requests[i];
        if (!r->used || !names(r->entry, entry) || ++r->seen != r->nth)
            continue;
        code = r->code;
        r->used = false;
        __atomic_sub_fetch(&num_requests, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&requests_lock);
    return code;
}

static unsigned long long number(const char *variable, unsigned long long otherwise)
{
    const char *text = getenv(variable);
    char *end;

    if (!text || !*text)
        return otherwise;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 0);
    /* A sign it would take, and wrap around. */
    if (*end || errno != 0 || *text < '0' || *text > '9') {
        cs_say("%s=%.60s is not a number and is ignored", variable, text);
        return otherwise;
    }
    return v;
}

static bool check_named(const char *text, enum cs_check *check)
{
    static const char *const names_of[] = {"off", "report", "fail", "abort"};

    for (int i = 0; i < 4; i++)
        if (strcmp(text, names_of[i]) == 0) {
            *check = (enum cs_check)i;
            return true;
        }
    return false;
}

static bool races_named(const char *text, enum cs_races *races)
{
    static const char *const names_of[] = {"off", "copies", "kernels"};

    for (int i = 0; i < 3; i++)
        if (strcmp(text, names_of[i]) == 0) {
            *races = (enum cs_races)i;
            return true;
        }
    return false;
}

static void configure(void)
{
    unsigned long long devices = number("CUSIM_DEVICES", 1);
    const char *text;

    cs.driver_version = (int)number("CUSIM_DRIVER_VERSION", 13000);
    cs.devices = devices > CS_MAX_DEVICES ? CS_MAX_DEVICES : (int)devices;
    cs.memory = (size_t)number("CUSIM_MEMORY", 16ull << 30);
    cs.stub = number("CUSIM_STUB", 0) != 0;
    cs.strict = number("CUSIM_STRICT", 0) != 0;
    text = getenv("CUSIM_ADDRESS_POLICY");
    if (text && *text) {
        if (strcmp(text, "never") == 0)
            cs.policy = CS_NEVER;
        else if (strcmp(text, "move") == 0)
            cs.policy = CS_MOVE;
        else if (strcmp(text, "reuse") != 0)
            cs_say("CUSIM_ADDRESS_POLICY=%.60s is not reuse, never or move and is ignored", text);
    }
    cs.races = CS_RACES_COPIES;
    text = getenv("CUSIM_CHECK");
    if (text && *text && !check_named(text, &cs.check))
        cs_say("CUSIM_CHECK=%.60s is not off, report, fail or abort and is ignored", text);
    text = getenv("CUSIM_RACES");
    if (text && *text && !races_named(text, &cs.races))
        cs_say("CUSIM_RACES=%.60s is not off, copies or kernels and is ignored", text);
    if (cs.check != CS_CHECK_OFF && cs.policy == CS_REUSE)
        cs.policy = CS_MOVE;
    cs_turn_seed(number("CUSIM_SEED", 0));
    cs.delay_ns = number("CUSIM_DELAY_NS", 0);
    text = getenv("CUSIM_FAIL");
    while (text && *text) {
        const char *end = strchr(text, ','), *colon = strchr(text, ':');
        unsigned nth;
        int code;

        if (!colon || sscanf(colon, ":%u:%d", &nth, &code) != 2 || nth == 0 ||
            request_add(text, (size_t)(colon - text), nth, code) != 0)
            cs_say("CUSIM_FAIL: cannot understand \"%.60s\"; it is entry:n:code[,...]", text);
        text = end ? end + 1 : NULL;
    }
}

void cs_configure(void)
{
    pthread_once(&once, configure);
}

CS_EXPORT const char *cusim_version(void)
{
    return CUSIM_VERSION;
}

CS_EXPORT int cusim_fail(const char *entry, unsigned nth, int code)
{
    cs_configure();
    return entry ? request_add(entry, strlen(entry), nth, code) : -1;
}

CS_EXPORT unsigned long cusim_calls(const char *entry)
{
    unsigned long n = 0;

    for (int i = 0; i < CS_ENTRIES; i++)
        if (names(entry, (enum cs_entry)i))
            n += __atomic_load_n(&counts[i], __ATOMIC_RELAXED);
    return n;
}

CS_EXPORT void cusim_reset_calls(void)
{
    for (int i = 0; i < CS_ENTRIES; i++)
        __atomic_store_n(&counts[i], 0, __ATOMIC_RELAXED);
}

CS_EXPORT int cusim_set_address_policy(const char *policy)
{
    enum cs_policy p;

    cs_configure();
    if (strcmp(policy, "reuse") == 0)
        p = CS_REUSE;
    else if (strcmp(policy, "never") == 0)
        p = CS_NEVER;
    else if (strcmp(policy, "move") == 0)
        p = CS_MOVE;
    else
        return -1;
    pthread_mutex_lock(&cs.lock);
    cs.policy = p;
    pthread_mutex_unlock(&cs.lock);
    return 0;
}

CS_EXPORT void cusim_set_driver_version(int version)
{
    cs_configure();
    pthread_mutex_lock(&cs.lock);
    cs.driver_version = version;
    pthread_mutex_unlock(&cs.lock);
}

CS_EXPORT void cusim_set_memory(unsigned long long bytes)
{
    cs_configure();
    pthread_mutex_lock(&cs.lock);
    cs.memory = (size_t)bytes;
    pthread_mutex_unlock(&cs.lock);
}

CS_EXPORT void cusim_set_stub(int on)
{
    cs_configure();
    __atomic_store_n(&cs.stub, on != 0, __ATOMIC_RELAXED);
}

CS_EXPORT void cusim_set_strict(int on)
{
    cs_configure();
    pthread_mutex_lock(&cs.lock);
    cs.strict = on != 0;
    pthread_mutex_unlock(&cs.lock);
}

/* What already lies in memory keeps its place, so this is for the beginning of a program. */
CS_EXPORT int cusim_set_check(const char *check)
{
    enum cs_check c;

    cs_configure();
    if (!check || !check_named(check, &c))
        return -1;
    pthread_mutex_lock(&cs.lock);
    cs.check = c;
    if (c != CS_CHECK_OFF && cs.policy == CS_REUSE)
        cs.policy = CS_MOVE;
    pthread_mutex_unlock(&cs.lock);
    return 0;
}

CS_EXPORT int cusim_set_races(const char *races)
{
    enum cs_races r;

    cs_configure();
    if (!races || !races_named(races, &r))
        return -1;
    pthread_mutex_lock(&cs.lock);
    cs.races = r;
    pthread_mutex_unlock(&cs.lock);
    return 0;
}

CS_EXPORT unsigned long cusim_findings(void)
{
    return __atomic_load_n(&cs.findings, __ATOMIC_RELAXED);
}

CS_EXPORT void cusim_reset_findings(void)
{
    __atomic_store_n(&cs.findings, 0, __ATOMIC_RELAXED);
}

CS_EXPORT void cusim_set_seed(unsigned long long seed)
{
    cs_configure();
    pthread_mutex_lock(&cs.lock);
    cs_turn_seed(seed);
    pthread_mutex_unlock(&cs.lock);
}

CS_EXPORT void cusim_set_delay(unsigned long long ns)
{
    cs_configure();
    pthread_mutex_lock(&cs.lock);
    cs.delay_ns = ns;
    pthread_mutex_unlock(&cs.lock);
}

CS_EXPORT int cusim_set_stream_delay(void *stream, unsigned long long ns)
{
    int result = -1;

    pthread_mutex_lock(&cs.lock);
    if (cs_is(stream, CS_STREAM)) {
        ((CUstream)stream)->delay_ns = ns;
        result = 0;
    }
    pthread_mutex_unlock(&cs.lock);
    return result;
}

CS_EXPORT void cusim_set_executable_delays(const unsigned long long *ns, unsigned n)
{
    cs_configure();
    pthread_mutex_lock(&cs.lock);
    cs.exec_delays = n < CS_EXEC_DELAYS ? n : CS_EXEC_DELAYS;
    for (unsigned i = 0; i < cs.exec_delays; i++)
        cs.exec_delays_ns[i] = ns[i];
    pthread_mutex_unlock(&cs.lock);
}
