/*
 * Random calls against a model of the state table and of the device.
 *
 * Three steps share a session. Each call is drawn at random; the model says what must come back and which state follows. Whatever
 * a replay or a run executes is launched once more without a graph, on mirrors of the pins, and pins and mirrors must agree to
 * the bit. The seed is printed; STEPGRAPH_TEST_SEED=N repeats a run, and STEPGRAPH_TEST_CALLS=N makes it longer.
 */
#include "support.h"

enum { STEPS = 3, PINS = 4, WORK = 12, SEEDS = 20 };

enum kind { ADD, UPDATE, COPY, COMMIT, COMMIT_MANY, ASIDE, KINDS };
struct work {
    enum kind kind;
    int to, from;
    float v;
};

struct model_step {
    stepgraph_step *step;
    stepgraph_state state;
    stepgraph_status cause; /* In FAILED. */
    char words[1024];
    int broken; /* While it records. */
    struct work work[WORK];
    int n;
    uint64_t runs, replays, captures;
    int not_run;
};

static struct {
    struct model_step step[STEPS];
    stepgraph_pin *pin[PINS], *fresh, *x, *rate;
    CUdeviceptr mirror[PINS], mirror_fresh, mirror_x, mirror_rate;
    CUstream aside, stream;
    float x_staged, rate_staged;
    int x_waits, rate_waits, recording, running, made;
    uint64_t seed;
} m;

static uint64_t first_seed = 1;
static int calls = 600;

/* Where in the sequence a failure was. */
static char place[160];

static unsigned draw(unsigned below)
{
    return unit_random(&m.seed) % below;
}

static void expect(const char *call, stepgraph_status got, stepgraph_status want)
{
    AGREE(got == want, "%s answers %s instead of %s: %s", call, stepgraph_status_name(got), stepgraph_status_name(want),
          last_words());
    AGREE(got == STEPGRAPH_OK || *last_words(), "%s refuses without words", call);
}

static void new_step(int i)
{
    char name[32];

    memset(&m.step[i], 0, sizeof m.step[i]);
    snprintf(name, sizeof name, "step %d.%d", i, m.made++);
    m.step[i].step = step_make(session, name, 0);
    m.step[i].state = STEPGRAPH_STEP_BEGUN;
}

static void state_agrees(int i)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;
    stepgraph_step_stats stats = STEPGRAPH_STEP_STATS_INIT;
    struct model_step *s = &m.step[i];

    AGREE(stepgraph_step_state(s->step) == s->state, "step %d is in state %d instead of %d", i,
          (int)stepgraph_step_state(s->step), (int)s->state);
    stepgraph_step_error(s->step, &info);
    AGREE((info.status != STEPGRAPH_OK) == (s->state == STEPGRAPH_STEP_FAILED), "step %d in state %d keeps '%s'", i,
          (int)s->state, info.message);
    stepgraph_step_get_stats(s->step, &stats);
    AGREE(stats.replays == s->replays && stats.fresh_runs == s->runs && stats.captures == s->captures,
          "step %d counts %llu replays, %llu runs, %llu recordings", i, (unsigned long long)stats.replays,
          (unsigned long long)stats.fresh_runs, (unsigned long long)stats.captures);
    AGREE((int)stats.captured_not_run == s->not_run, "step %d: captured_not_run is %d", i, (int)stats.captured_not_run);
}

/* ---- work --------------------------------------------------------------------------------------------------------------- */

/* Through the library, on the session's stream. */
static void enqueue(struct model_step *s, const struct work *w)
{
    CUdeviceptr to = stepgraph_pin_address(m.pin[w->to]), from = stepgraph_pin_address(m.pin[w->from]),
                fresh = stepgraph_pin_address(m.fresh);

    switch (w->kind) {
    case ADD:
        counted_inc(session, NULL, to, w->v);
        break;
    case UPDATE:
        update(stream, to, from, stepgraph_pin_address(m.x), stepgraph_pin_address(m.rate), 1);
        break;
    case COPY:
        copyf(stream, to, from);
        break;
    case COMMIT:
        axpb(stream, fresh, from, w->v);
        OK(stepgraph_pin_commit(m.pin[w->to], fresh));
        break;
    case COMMIT_MANY:
        axpb(stream, fresh, to, w->v);
        axpb(stream, fresh + 4, from, 2 * w->v);
        if (w->to == w->from)
            OK(stepgraph_pin_commit_many(session, 1, &m.pin[w->to], (uint64_t[]){fresh}));
        else
            OK(stepgraph_pin_commit_many(session, 2, (stepgraph_pin *[]){m.pin[w->to], m.pin[w->from]},
                                         (uint64_t[]){fresh, fresh + 4}));
        break;
    default: /* On a side stream, where a step is there to fork. */
        if (s) {
            OK(stepgraph_step_fork(s->step, m.aside, "aside"));
            inc(m.aside, to, w->v);
            OK(stepgraph_step_join(s->step, m.aside));
        } else {
            inc(stream, to, w->v);
        }
    }
}

/* The same without a graph, a pin or a counter, on the mirrors. */
static void mirror(const struct work *w)
{
    CUdeviceptr to = m.mirror[w->to], from = m.mirror[w->from], fresh = m.mirror_fresh;

    switch (w->kind) {
    case ADD:
    case ASIDE:
        inc(m.stream, to, w->v);
        break;
    case UPDATE:
        update(m.stream, to, from, m.mirror_x, m.mirror_rate, 1);
        break;
    case COPY:
        copyf(m.stream, to, from);
        break;
    case COMMIT:
        axpb(m.stream, fresh, from, w->v);
        copyf(m.stream, to, fresh);
        break;
    default:
        axpb(m.stream, fresh, to, w->v);
        axpb(m.stream, fresh + 4, from, 2 * w->v);
        copyf(m.stream, to, fresh);
        if (w->to != w->from)
            copyf(m.stream, from, fresh + 4);
    }
}

static struct work some_work(void)
{
    struct work w;

    w.kind = (enum kind)draw(KINDS);
    w.to = (int)draw(PINS);
    w.from = (int)draw(PINS);
    w.v = (float)draw(64) / 8 - 4;
    return w;
}

/* What was fed reaches the device now. */
static void sent(void)
{
    if (m.x_waits)
        setv(m.stream, m.mirror_x, m.x_staged);
    if (m.rate_waits)
        setv(m.stream, m.mirror_rate, m.rate_staged);
    m.x_waits = m.rate_waits = 0;
}

static void device_agrees(void)
{
    float pin, other;

    if (m.recording >= 0)
        return;
    OK(stepgraph_session_wait(session));
    CU(StreamSynchronize(m.stream));
    for (int i = 0; i < PINS; i++) {
        CU(MemcpyDtoH(&pin, stepgraph_pin_address(m.pin[i]), 4));
        CU(MemcpyDtoH(&other, m.mirror[i], 4));
        AGREE(memcmp(&pin, &other, 4) == 0, "pin %d holds %.9g, without a graph it would hold %.9g", i, (double)pin,
              (double)other);
    }
}

/* ---- calls -------------------------------------------------------------------------------------------------------------- */

static void failed(struct model_step *s, stepgraph_status status)
{
    s->state = STEPGRAPH_STEP_FAILED;
    s->cause = status;
    snprintf(s->words, sizeof s->words, "%s", last_words());
}

/* A call that FAILED answers with its cause; 1 if that was so. */
static int repeats(struct model_step *s, const char *call, stepgraph_status got)
{
    if (s->state != STEPGRAPH_STEP_FAILED)
        return 0;
    expect(call, got, s->cause);
    AGREE(strcmp(last_words(), s->words) == 0, "%s says '%s', first it was '%s'", call, last_words(), s->words);
    return 1;
}

static void call_prepare(struct model_step *s)
{
    stepgraph_status got;
    int fits = s->state == STEPGRAPH_STEP_BEGUN || s->state == STEPGRAPH_STEP_PREPARED;

    if (fits && (m.recording >= 0 || m.running >= 0))
        return; /* The header leaves this one open. */
    got = stepgraph_step_prepare(s->step);
    if (repeats(s, "prepare", got))
        return;
    expect("prepare", got, fits ? STEPGRAPH_OK : STEPGRAPH_ERR_STATE);
    if (fits)
        s->state = STEPGRAPH_STEP_PREPARED;
}

static void call_capture(struct model_step *s, int i)
{
    stepgraph_status got;

    if (m.running >= 0 && m.running != i)
        return;
    got = stepgraph_step_capture(s->step);
    if (repeats(s, "capture", got))
        return;
    if (s->state == STEPGRAPH_STEP_PREPARED && m.recording < 0 && m.running < 0) {
        expect("capture", got, STEPGRAPH_OK);
        s->state = STEPGRAPH_STEP_CAPTURING;
        s->broken = s->n = 0;
        m.recording = i;
    } else {
        expect("capture", got, STEPGRAPH_ERR_STATE);
    }
}

static void call_end(struct model_step *s)
{
    stepgraph_status got = stepgraph_step_end(s->step), want = STEPGRAPH_OK;

    if (repeats(s, "end", got))
        return;
    if (s->state != STEPGRAPH_STEP_CAPTURING) {
        expect("end", got, STEPGRAPH_ERR_STATE);
        return;
    }
    m.recording = -1;
    if (s->broken)
        want = STEPGRAPH_ERR_CAPTURE;
    else if (s->n == 0)
        want = STEPGRAPH_ERR_REFUSED;
    expect("end", got, want);
    if (want != STEPGRAPH_OK) {
        failed(s, want);
        return;
    }
    s->state = STEPGRAPH_STEP_READY;
    s->captures++;
    s->not_run = 1;
}

static void call_replay(struct model_step *s)
{
    stepgraph_status got;

    if (m.running >= 0)
        return;
    got = stepgraph_step_replay(s->step);
    if (repeats(s, "replay", got))
        return;
    if (s->state == STEPGRAPH_STEP_READY && m.recording < 0) {
        expect("replay", got, STEPGRAPH_OK);
        sent();
        for (int k = 0; k < s->n; k++)
            mirror(&s->work[k]);
        s->replays++;
        s->not_run = 0;
    } else {
        expect("replay", got, STEPGRAPH_ERR_STATE);
    }
}

static void call_reset(struct model_step *s, int i)
{
    if (m.running == i)
        return;
    expect("reset", stepgraph_step_reset(s->step), STEPGRAPH_OK);
    if (m.recording == i)
        m.recording = -1;
    s->state = STEPGRAPH_STEP_BEGUN;
    s->n = s->not_run = 0;
}

static void call_destroy(struct model_step *s, int i)
{
    if (m.running == i)
        return;
    drop_step(s->step);
    if (m.recording == i)
        m.recording = -1;
    new_step(i);
}

static void call_run(struct model_step *s, int i)
{
    if (m.running == i) {
        expect("run_end", stepgraph_step_run_end(s->step), STEPGRAPH_OK);
        m.running = -1;
        s->runs++;
    } else if (s->state == STEPGRAPH_STEP_CAPTURING || m.running >= 0) {
        expect("run_begin", stepgraph_step_run_begin(s->step, STEPGRAPH_RUN_FRESH), STEPGRAPH_ERR_STATE);
    } else if (m.running < 0 && m.recording < 0 && draw(4)) {
        expect("run_begin", stepgraph_step_run_begin(s->step, STEPGRAPH_RUN_FRESH), STEPGRAPH_OK);
        m.running = i;
        sent();
    } else {
        expect("run_end", stepgraph_step_run_end(s->step), STEPGRAPH_ERR_STATE);
    }
}

static void call_work(void)
{
    struct model_step *s = m.recording >= 0 ? &m.step[m.recording] : m.running >= 0 ? &m.step[m.running] : NULL;
    struct work w = some_work();

    if (m.recording >= 0) {
        if (s->broken || s->n == WORK)
            return;
        enqueue(s, &w);
        s->work[s->n++] = w;
    } else {
        enqueue(s, &w);
        mirror(&w);
    }
}

static void call_mark(struct model_step *s)
{
    char name[16];

    if (s->state == STEPGRAPH_STEP_FAILED)
        return;
    snprintf(name, sizeof name, "stage %u", draw(5));
    expect("mark", stepgraph_step_mark(s->step, name),
           s->state == STEPGRAPH_STEP_CAPTURING && s->broken ? STEPGRAPH_ERR_CAPTURE : STEPGRAPH_OK);
}

static void call_break(void)
{
    if (m.recording < 0)
        return;
    AGREE(cu.StreamQuery(stream) != CUDA_SUCCESS, "the forbidden call went through");
    m.step[m.recording].broken = 1;
}

static void call_feed(void)
{
    if (draw(2)) {
        m.x_staged = (float)draw(100) / 16;
        OK(stepgraph_pin_feed_f32(m.x, m.x_staged));
        m.x_waits = 1;
    } else {
        m.rate_staged = (float)draw(16) / 32 - 0.25f;
        OK(stepgraph_pin_feed_f32(m.rate, m.rate_staged));
        m.rate_waits = 1;
    }
    if (m.running >= 0) /* Nothing comes between that would send it. */
        sent();
}

static void call_read_or_write(void)
{
    stepgraph_status want = m.recording >= 0 ? STEPGRAPH_ERR_STATE : STEPGRAPH_OK;
    int i = (int)draw(PINS);
    float v = (float)draw(100) / 4;

    switch (draw(4)) {
    case 0:
        expect("read", stepgraph_pin_read(m.pin[i], &v, 4), want);
        break;
    case 1:
        expect("write", stepgraph_pin_write(m.pin[i], &v, 4), want);
        if (want == STEPGRAPH_OK)
            setv(m.stream, m.mirror[i], v);
        break;
    case 2:
        expect("wait", stepgraph_session_wait(session), want);
        break;
    default:
        expect("flush", stepgraph_session_flush(session), want);
        if (want == STEPGRAPH_OK)
            sent();
    }
}

static void call_close_too_early(void)
{
    expect("close", stepgraph_session_close(session), STEPGRAPH_ERR_STATE);
}

/* A pin that a live graph uses, or any pin while a step records, stays. */
static void call_destroy_pin(void)
{
    int i = (int)draw(PINS), used = m.recording >= 0;

    for (int k = 0; k < STEPS; k++)
        for (int j = 0; m.step[k].state == STEPGRAPH_STEP_READY && j < m.step[k].n; j++)
            used |= m.step[k].work[j].to == i;
    if (used)
        expect("pin_destroy", stepgraph_pin_destroy(m.pin[i]), STEPGRAPH_ERR_STATE);
}

START_TEST(random_calls_agree_with_the_model)
{
    uint64_t seed = first_seed + (uint64_t)_i;

    memset(&m, 0, sizeof m);
    m.seed = seed;
    m.recording = m.running = -1;
    m.stream = stream_make(CU_STREAM_NON_BLOCKING);
    m.aside = stream_make(CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < PINS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        m.pin[i] = pin_make(session, STEPGRAPH_ROLE_STATE, 4, name);
        m.mirror[i] = device_make(4);
    }
    m.fresh = pin_make(session, STEPGRAPH_ROLE_SCRATCH, 8, "fresh");
    m.x = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "x");
    m.rate = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "rate");
    m.mirror_fresh = device_make(8);
    m.mirror_x = device_make(4);
    m.mirror_rate = device_make(4);
    for (int i = 0; i < STEPS; i++)
        new_step(i);

    for (int k = 0; k < calls; k++) {
        int i = (int)draw(STEPS);
        unsigned what = draw(100);
        struct model_step *s = &m.step[i];

        snprintf(place, sizeof place, "seed %llu, call %d (draw %u, step %d)", (unsigned long long)seed, k, what, i);
        if (what < 12)
            call_prepare(s);
        else if (what < 24)
            call_capture(s, i);
        else if (what < 32)
            call_end(m.recording >= 0 && draw(2) ? &m.step[m.recording] : s);
        else if (what < 44)
            call_replay(s);
        else if (what < 49)
            call_reset(s, i);
        else if (what < 51)
            call_destroy(s, i);
        else if (what < 57)
            call_run(s, i);
        else if (what < 77)
            call_work();
        else if (what < 80)
            call_mark(s);
        else if (what < 81)
            call_break();
        else if (what < 89)
            call_feed();
        else if (what < 96)
            call_read_or_write();
        else if (what < 97)
            call_close_too_early();
        else
            call_destroy_pin();
        for (int j = 0; j < STEPS; j++)
            state_agrees(j);
        if (k % 16 == 0)
            device_agrees();
    }
    if (m.recording >= 0)
        call_end(&m.step[m.recording]);
    device_agrees();
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("model");

    tcase_add_loop_test(unit_case(suite, "random calls"), random_calls_agree_with_the_model, 0, SEEDS);
    return suite;
}

int main(void)
{
    if (getenv("STEPGRAPH_TEST_SEED"))
        first_seed = strtoull(getenv("STEPGRAPH_TEST_SEED"), NULL, 0);
    if (getenv("STEPGRAPH_TEST_CALLS"))
        calls = atoi(getenv("STEPGRAPH_TEST_CALLS"));
    printf("seeds %llu to %llu, %d calls each\n", (unsigned long long)first_seed, (unsigned long long)first_seed + SEEDS - 1,
           calls);
    fflush(stdout);
    return unit_main(make);
}
