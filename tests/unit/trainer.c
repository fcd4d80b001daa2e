#include "trainer.h"

#include <dlfcn.h>

#include "check_kernels_ptx.h"

struct trainer t;
CUfunction sum_atomic, once_function, pick_function, wobble;

static CUmodule module;
static float *locked; /* Page-locked, so that copies of it are read late. */
static CUevent fed_event, read_event;
static CUevent *const events[] = {&fed_event, &read_event};

int recording(void)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    CU(StreamIsCapturing(stream, &status));
    return status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

void fill_x(uint64_t k, float *x)
{
    for (int i = 0; i < N; i++)
        x[i] = t.constant_feed ? 1.0f : (float)(((t.period ? k % (uint64_t)t.period : k) * 7 + (uint64_t)i * 3) % 11) - 5.0f;
    if (t.noisy_feed)
        x[3] += (float)(unit_random(&t.random) % 1000);
}

stepgraph_status feed(void *user, stepgraph_step *step, uint64_t k)
{
    float x[N];
    stepgraph_status status = STEPGRAPH_OK;

    (void)user;
    (void)step;
    t.feeds++;
    t.fed_step = t.period ? k % (uint64_t)t.period : k;
    if (t.feed_once && t.feeds > (unsigned)t.feed_once)
        return STEPGRAPH_OK;
    fill_x(k, x);
    if (!t.feeder && !t.feed_launched)
        status = stepgraph_pin_feed(t.x, x, t.fed_bytes ? (uint64_t)t.fed_bytes : sizeof x);
    if (status == STEPGRAPH_OK && (!t.rate_once || k == 11))
        status = stepgraph_pin_feed_f32(t.rate, t.rate_once == 2 ? 0.0f : t.rate_once ? 0.25f : 0.5f);
    return status;
}

stepgraph_status enqueue(void *user, stepgraph_step *step, uint64_t k)
{
    CUdeviceptr w = stepgraph_pin_address(t.w), x = stepgraph_pin_address(t.x), loss = stepgraph_pin_address(t.loss);
    CUdeviceptr rate = stepgraph_pin_address(t.rate), tmp = stepgraph_pin_address(t.tmp);
    int n = N, inside = recording();

    (void)user;
    t.enqueues++;
    t.recordings += inside;
    if (t.scratch_moves && inside)
        tmp += t.recordings * sizeof(float) * N;
    if (t.fails && k == (uint64_t)t.fails && !inside)
        return STEPGRAPH_ERR_UNSUPPORTED;
    if (t.feed_launched) {
        float values[N];
        fill_x(k, values);
        if (!inside)
            CU(StreamSynchronize(stream));
        CU(MemcpyHtoD(x, values, sizeof values));
        if (!inside)
            CU(StreamSynchronize(NULL));
    }
    stepgraph_step_mark(step, "forward");
    if (t.early)
        inc(stream, stepgraph_pin_address(t.early), 1.0f);
    if (t.scratch_sum)
        launch(stream, sum_atomic, 1, (void *[]){ &(CUdeviceptr){ tmp + 3 * 4 * N }, &w, &(int){ 1 } });
    if (t.dead_read)
        copyf(stream, tmp + 3 * 4 * N + 8, stepgraph_pin_address(t.unread));
    if (t.scratch_table && !inside)
        setv(stream, tmp + 3 * 4 * N + 16, 2.0f);
    if (t.frozen_x && inside && t.recordings == 1)
        x = t.other;
    if (inside && t.spin_ms)
        spin(stream, t.spin_ms);
    if (t.once) {
        unsigned long long ns = 1000 * 1000000ull;
        if (!inside)
            CU(MemsetD8Async(t.counter, 0, 4, stream));
        launch(stream, once_function, 1, (void *[]){ &t.counter, &ns });
    }
    if (t.writes_x)
        inc(stream, x, 1.0f);
    update(stream, tmp, inside && t.stale == 1 + (t.recordings > 1) * 99 ? t.other : w, x, rate, n);
    if (t.by_value)
        launch(stream, kernels.addn, N, (void *[]){ &tmp, &(float){ 1.0f + (float)(t.by_value == 2 ? t.fed_step : k) }, &n });
    if (t.host_counter)
        launch(stream, kernels.addn, N, (void *[]){ &tmp, &(float){ (float)t.counter_now++ }, &n });
    if (t.noise && (inside || t.enqueues > (unsigned)t.quiet))
        launch(stream, kernels.addn, N, (void *[]){ &tmp, &(float){ 1e-4f * (float)(unit_random(&t.random) % 1000) / 1000.0f }, &n });
    if (t.scratch_table)
        launch(stream, sum_atomic, 1, (void *[]){ &tmp, &(CUdeviceptr){ tmp + 3 * 4 * N + 16 }, &(int){ 1 } });
    if (t.read_padding)
        launch(stream, sum_atomic, N, (void *[]){ &tmp, &x, &n });
    stepgraph_step_mark(step, "commit");
    if (!(inside && t.skip_commit))
        OK(stepgraph_pin_commit(t.w, tmp));
    if (t.accumulate == 2) /* As an integer. */
        launch(stream, once_function, 1, (void *[]){ &loss, &(unsigned long long){ 0 } });
    else if (t.accumulate)
        launch(stream, sum_atomic, 1, (void *[]){ &loss, &w, &(int){ 1 } });
    else if (t.ones)
        CU(MemsetD8Async(loss, 0xff, 4, stream));
    else if (!t.skip_loss)
        copyf(stream, loss, w);
    return STEPGRAPH_OK;
}

stepgraph_status rewind_to(void *user, uint64_t k)
{
    (void)user;
    t.rewinds++;
    t.counter_now = k;
    return STEPGRAPH_OK;
}

void races(const char *which)
{
    void *driver = dlopen(driver_path(), RTLD_NOW | RTLD_LOCAL);
    int (*set_races)(const char *) = NULL;

    if (driver)
        *(void **)&set_races = dlsym(driver, "cusim_set_races");
    if (set_races)
        set_races(which);
}

stepgraph_pin *typed(stepgraph_role role, uint64_t bytes, const char *name, stepgraph_type type)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *made = NULL;

    config.role = role;
    config.bytes = bytes;
    config.name = name;
    config.type = type;
    OK(stepgraph_pin_create(session, &config, &made));
    keep_pin(made);
    return made;
}

void made_of(stepgraph_type type)
{
    float start[N];

    memset(&t, 0, sizeof t);
    t.random = 77;
    t.w = typed(STEPGRAPH_ROLE_STATE, sizeof start, "w", type);
    t.x = typed(STEPGRAPH_ROLE_FEED, sizeof start, "x", STEPGRAPH_TYPE_F32);
    t.rate = typed(STEPGRAPH_ROLE_CELL, 4, "rate", STEPGRAPH_TYPE_F32);
    t.loss = typed(STEPGRAPH_ROLE_OUTPUT, 4, "loss", STEPGRAPH_TYPE_F32);
    t.tmp = typed(STEPGRAPH_ROLE_SCRATCH, 4 * sizeof start, "tmp", STEPGRAPH_TYPE_F32);
    t.other = device_make(sizeof start);
    t.counter = device_make(64);
    for (int i = 0; i < N; i++)
        start[i] = 1.0f + (float)i;
    put_bytes(stepgraph_pin_address(t.w), start, sizeof start);
    put_bytes(t.other, start, sizeof start);
    t.config = (stepgraph_check_config)STEPGRAPH_CHECK_CONFIG_INIT;
    t.config.enqueue = enqueue;
    t.config.feed = feed;
    t.config.rewind = rewind_to;
    t.config.user = &t;
    t.config.first = 10;
    t.config.timeout_ns = 20 * 1000000000ull;
    t.config.delay_ns = 2000000;
    if (module)
        return; /* Once: graphs of earlier tests may still refer to it. */
    CU(ModuleLoadData(&module, check_kernels_ptx));
    CU(ModuleGetFunction(&sum_atomic, module, "sum_atomic"));
    CU(ModuleGetFunction(&once_function, module, "once"));
    CU(ModuleGetFunction(&pick_function, module, "pick"));
    CU(ModuleGetFunction(&wobble, module, "wobble"));
}

void made(void)
{
    made_of(STEPGRAPH_TYPE_F32);
}

void unmade(void)
{
    stepgraph_check_destroy(t.check);
    t.check = NULL;
    if (locked)
        CU(MemFreeHost(locked));
    locked = NULL;
    for (int i = 0; i < 2; i++) {
        if (*events[i])
            CU(EventDestroy(*events[i]));
        *events[i] = NULL;
    }
    races("copies");
}

TCase *trainer_case(Suite *suite, const char *name)
{
    TCase *case_made = unit_case(suite, name);

    tcase_add_checked_fixture(case_made, made, unmade);
    tcase_set_timeout(case_made, 60);
    return case_made;
}

void recorded_as(const char *name, uint32_t flags)
{
    t.step = step_make(session, name, flags);
    begin_recording(t.step);
    OK(t.config.enqueue(NULL, t.step, 10));
    OK(stepgraph_step_end(t.step));
}

void recorded_with(uint32_t flags)
{
    OK(feed(NULL, NULL, 10));
    recorded_as("train", flags | STEPGRAPH_STEP_ALLOW_UNREGISTERED | STEPGRAPH_STEP_ALLOW_EMPTY);
    t.feeds = t.enqueues = 0;
}

void recorded(void)
{
    recorded_with(0);
}

void checked(void)
{
    t.summary = (stepgraph_check_summary)STEPGRAPH_CHECK_SUMMARY_INIT;
    OK(stepgraph_check_run(t.step, &t.config, &t.check));
    OK(stepgraph_check_get_summary(t.check, &t.summary));
    if (getenv("SHOW"))
        puts(stepgraph_check_text(t.check));
}

stepgraph_check_pin about(const char *name)
{
    stepgraph_check_pin pin = STEPGRAPH_CHECK_PIN_INIT;

    for (uint32_t i = 0; stepgraph_check_get_pin(t.check, i, &pin) == STEPGRAPH_OK; i++)
        if (strcmp(pin.name, name) == 0)
            return pin;
    ck_abort_msg("the report has no pin '%s'", name);
}

void checked_as(uint32_t want)
{
    checked();
    VERDICT(want);
}

/* ---- another stream that feeds -------------------------------------------------------------------------------------- */

float *locked_x(uint64_t k)
{
    return locked + (k % 16) * N;
}

void copy_x(uint64_t k)
{
    CU(MemcpyHtoDAsync(stepgraph_pin_address(t.x), locked_x(k), N * sizeof(float), t.feeder));
}

static stepgraph_status feed_elsewhere(void *user, stepgraph_step *step, uint64_t k)
{
    stepgraph_status status = feed(user, step, k);

    if (status == STEPGRAPH_OK) {
        fill_x(k, locked_x(k));
        if (!t.feeder_waits)
            spin(t.feeder, 20); /* A slow transfer. */
        copy_x(k);
        if (t.feeder_waits)
            CU(StreamSynchronize(t.feeder));
    }
    return status;
}

void recorded_elsewhere(void)
{
    void *memory = NULL;
    CUdeviceptr place = device_make(N * sizeof(float));

    CU(MemAllocHost(&memory, 16 * N * sizeof(float)));
    locked = memory;
    drop_pin(t.x);
    t.x = pin_adopt(session, STEPGRAPH_ROLE_FEED, place, N * sizeof(float), "x");
    t.feeder = stream_make(CU_STREAM_NON_BLOCKING);
    t.config.feed = feed_elsewhere;
    t.config.feed_stream = t.feeder;
    t.config.delay_ns = 50 * 1000000ull;
    recorded();
}

static stepgraph_status feed_in_order(void *user, stepgraph_step *step, uint64_t k)
{
    stepgraph_status status = feed(user, step, k);

    fill_x(k, locked_x(k));
    CU(EventRecord(read_event, stream));
    CU(StreamWaitEvent(t.feeder, read_event, 0));
    copy_x(k);
    CU(EventRecord(fed_event, t.feeder));
    CU(StreamWaitEvent(stream, fed_event, 0));
    return status;
}

void recorded_in_order(void)
{
    for (int i = 0; i < 2; i++)
        CU(EventCreate(events[i], CU_EVENT_DISABLE_TIMING));
    recorded_elsewhere();
    t.config.feed = feed_in_order;
}
