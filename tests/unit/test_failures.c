/*
 * Each driver call of each path fails once.
 *
 * A path is run once to learn which entry points it calls and how often; then every one of these calls fails in turn, with an
 * unknown error and, where memory is asked for, with too little of it. Each time the status fits, the record names the call and
 * the code, nothing leaks on the device (and, in a build with sanitizers, on the host), and afterwards the same call works.
 */
#include "../entry_names.h"
#include "support.h"

/*
 * Where one of these fails, the library may carry on: undoing cannot be undone; names and node counts are for words only; and
 * where the capture mode of the thread cannot be relaxed, the call that needed it says so itself.
 */
static const char *const undoing[] = {
    "cuStreamDestroy", "cuEventDestroy",     "cuMemFree",      "cuMemFreeHost",
    "cuModuleUnload",  "cuGraphExecDestroy", "cuGraphDestroy", "cuDevicePrimaryCtxRelease",
    "cuCtxPopCurrent", "cuFuncGetName",      "cuGetErrorName", "cuThreadExchangeStreamCaptureMode"};

/* These answer "out of memory" when there is none. */
static const char *const asking[] = {"cuMemAlloc",     "cuMemHostAlloc", "cuGraphInstantiateWithParams",
                                     "cuStreamCreate", "cuEventCreate",  "cuModuleLoadData"};

static int among(const char *entry, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(entry, list[i]) == 0)
            return 1;
    return 0;
}
#define AMONG(entry, list) among(entry, list, sizeof list / sizeof *list)

/* ---- paths ---------------------------------------------------------------------------------------------------------------- */

enum path {
    OPEN,
    PIN_CREATE,
    PIN_CREATE_FEED,
    PIN_CREATE_LARGE_FEED,
    PIN_ADOPT,
    PIN_DESTROY,
    PIN_DESTROY_FEED,
    PREPARE,
    CAPTURE,
    CAPTURE_GLOBAL,
    END,
    END_WITH_COMMITS,
    END_BROKEN,
    REPLAY,
    REPLAY_FED,
    REPLAY_FED_ADOPTED,
    REPLAY_TIMED,
    REPLAY_ADOPTED,
    FEED_AHEAD,
    FLUSH,
    COMMIT,
    COMMIT_MANY,
    COMMIT_RECORDED,
    COMMIT_MANY_RECORDED,
    LAUNCH,
    LAUNCH_RECORDED,
    MARK_RECORDED,
    MARK_TIMED,
    FORK,
    FORK_RECORDED,
    JOIN,
    JOIN_RECORDED,
    RUN_BEGIN,
    RUN_END,
    SET_TIMING,
    READ,
    WRITE,
    WAIT,
    DRAIN,
    VERDICT,
    STAGE,
    RESET,
    RESET_CAPTURING,
    DESTROY,
    DESTROY_CAPTURING,
    CLOSE,
    PATHS
};
static const char *const path_name[] = {
    "open",
    "pin_create",
    "pin_create (feed)",
    "pin_create (large feed)",
    "pin_create (adopted)",
    "pin_destroy",
    "pin_destroy (feed)",
    "prepare",
    "capture",
    "capture (global)",
    "end",
    "end (commits)",
    "end (broken)",
    "replay",
    "replay (fed)",
    "replay (fed, adopted)",
    "replay (timed)",
    "replay (adopted)",
    "feed (ahead)",
    "flush",
    "commit",
    "commit_many",
    "commit (recorded)",
    "commit_many (recorded)",
    "launch",
    "launch (recorded)",
    "mark (recorded)",
    "mark (timed)",
    "fork",
    "fork (recorded)",
    "join",
    "join (recorded)",
    "run_begin",
    "run_end",
    "set_timing",
    "read",
    "write",
    "wait",
    "drain",
    "verdict",
    "stage",
    "reset",
    "reset (capturing)",
    "destroy",
    "destroy (capturing)",
    "close",
};

struct world {
    stepgraph_session *session;
    CUstream stream, side;
    stepgraph_pin *w, *v, *fresh, *x, *lr, *out, *adopted, *made;
    stepgraph_step *step;
    CUdeviceptr memory, spare;
    float seen;
};

/* The whole step: 1 + x * lr is added to w, and committed copies follow. */
static void body(struct world *t)
{
    CUdeviceptr w = stepgraph_pin_address(t->w);

    inc(t->stream, w, 1);
    update(t->stream, w, w, stepgraph_pin_address(t->x), stepgraph_pin_address(t->lr), 1);
}

static void to_capturing(struct world *t)
{
    begin_recording(t->step);
    body(t);
}

static void to_ready(struct world *t)
{
    to_capturing(t);
    OK(stepgraph_step_end(t->step));
}

static void feed_both(struct world *t, float x, float lr)
{
    OK(stepgraph_pin_feed_f32(t->x, x));
    OK(stepgraph_pin_feed_f32(t->lr, lr));
}

static void world_make(struct world *t, enum path path)
{
    stepgraph_session_config config = STEPGRAPH_SESSION_CONFIG_INIT;
    stepgraph_step_config step_config = STEPGRAPH_STEP_CONFIG_INIT;
    uint32_t flags = 0;

    memset(t, 0, sizeof *t);
    t->side = stream_make(CU_STREAM_NON_BLOCKING);
    t->memory = device_make(64);
    t->spare = device_make(64);
    config.feed_slots = 2;
    config.feed_bytes = 4096;
    t->session = session_make(&config);
    t->stream = stepgraph_session_stream(t->session);
    if (path == CLOSE)
        return;
    t->w = pin_make(t->session, STEPGRAPH_ROLE_STATE, 4, "w");
    t->v = pin_make(t->session, STEPGRAPH_ROLE_STATE, 4, "v");
    t->fresh = pin_make(t->session, STEPGRAPH_ROLE_SCRATCH, 64, "fresh");
    t->x = pin_make(t->session, STEPGRAPH_ROLE_FEED, 4, "x");
    t->lr = pin_make(t->session, STEPGRAPH_ROLE_CELL, 4, "lr");
    t->out = pin_make(t->session, STEPGRAPH_ROLE_OUTPUT, 4, "out");
    if (path == REPLAY_ADOPTED)
        t->adopted = pin_adopt(t->session, STEPGRAPH_ROLE_STATE, t->memory, 4, "adopted");
    if (path == REPLAY_FED_ADOPTED)
        t->adopted = pin_adopt(t->session, STEPGRAPH_ROLE_FEED, t->memory, 4, "adopted");
    if (path == REPLAY_TIMED || path == MARK_TIMED || path == RUN_BEGIN || path == RUN_END || path == VERDICT || path == STAGE)
        flags |= STEPGRAPH_STEP_TIMING;
    if (path == CAPTURE_GLOBAL)
        flags |= STEPGRAPH_STEP_GLOBAL;
    step_config.flags = flags;
    step_config.name = "train";
    step_config.liveness_every = 1;
    OK(stepgraph_step_begin(t->session, &step_config, &t->step));
    keep_step(t->step);
    put_float(stepgraph_pin_address(t->fresh), 5);

    switch (path) {
    case PIN_DESTROY:
        t->made = pin_make(t->session, STEPGRAPH_ROLE_STATE, 1000, "made");
        break;
    case PIN_DESTROY_FEED:
        t->made = pin_make(t->session, STEPGRAPH_ROLE_FEED, 100000, "made");
        break;
    case CAPTURE:
    case CAPTURE_GLOBAL:
        OK(stepgraph_step_prepare(t->step));
        break;
    case END:
    case LAUNCH_RECORDED:
    case MARK_RECORDED:
    case FORK_RECORDED:
    case COMMIT_RECORDED:
    case COMMIT_MANY_RECORDED:
    case RESET_CAPTURING:
    case DESTROY_CAPTURING:
        to_capturing(t);
        break;
    case END_WITH_COMMITS:
        to_capturing(t);
        OK(stepgraph_pin_commit(t->v, stepgraph_pin_address(t->fresh)));
        OK(stepgraph_pin_commit_many(t->session, 2, (stepgraph_pin *[]){t->v, t->out},
                                     (uint64_t[]){stepgraph_pin_address(t->fresh), stepgraph_pin_address(t->fresh) + 4}));
        break;
    case END_BROKEN:
        to_capturing(t);
        ck_assert_int_ne(cu.StreamSynchronize(t->stream), CUDA_SUCCESS);
        break;
    case JOIN_RECORDED:
        to_capturing(t);
        OK(stepgraph_step_fork(t->step, t->side, "side"));
        inc(t->side, stepgraph_pin_address(t->v), 1);
        break;
    case REPLAY:
    case REPLAY_TIMED:
    case RESET:
    case DESTROY:
        to_ready(t);
        break;
    case REPLAY_FED:
    case FEED_AHEAD:
    case FLUSH:
        to_ready(t);
        feed_both(t, 2, 3);
        if (path == FEED_AHEAD)
            spin(t->stream, 2);
        break;
    case REPLAY_FED_ADOPTED:
        begin_recording(t->step);
        inc(t->stream, t->memory, 1);
        OK(stepgraph_step_end(t->step));
        OK(stepgraph_pin_feed_f32(t->adopted, 4));
        break;
    case REPLAY_ADOPTED:
        begin_recording(t->step);
        inc(t->stream, t->memory, 1);
        OK(stepgraph_step_end(t->step));
        break;
    case MARK_TIMED:
    case FORK:
    case RUN_END:
        OK(stepgraph_step_run_begin(t->step, STEPGRAPH_RUN_WARMUP));
        body(t);
        break;
    case JOIN:
        OK(stepgraph_step_run_begin(t->step, STEPGRAPH_RUN_WARMUP));
        OK(stepgraph_step_fork(t->step, t->side, "side"));
        inc(t->side, stepgraph_pin_address(t->v), 1);
        break;
    case RUN_BEGIN:
        feed_both(t, 2, 3);
        break;
    case VERDICT:
    case STAGE:
        for (int i = 0; i < 3; i++) {
            OK(stepgraph_step_run_begin(t->step, STEPGRAPH_RUN_WARMUP));
            OK(stepgraph_step_mark(t->step, "all"));
            body(t);
            OK(stepgraph_step_run_end(t->step));
            OK(stepgraph_session_wait(t->session)); /* So that the next run takes its times, and not what comes later. */
        }
        to_ready(t);
        OK(stepgraph_step_replay(t->step));
        break;
    default:
        break;
    }
}

static stepgraph_status make_pin(struct world *t, stepgraph_role role, uint64_t bytes, CUdeviceptr address)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_status status;

    config.role = role;
    config.bytes = bytes;
    config.name = "made";
    config.address = address;
    t->made = NULL;
    status = stepgraph_pin_create(t->session, &config, &t->made);
    if (status == STEPGRAPH_OK)
        keep_pin(t->made);
    else
        ck_assert_ptr_null(t->made);
    return status;
}

static stepgraph_status take(struct world *t, enum path path)
{
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    stepgraph_stage stage = STEPGRAPH_STAGE_INIT;
    stepgraph_sample sample = STEPGRAPH_SAMPLE_INIT;
    stepgraph_session *opened = NULL;
    stepgraph_status status;
    uint64_t fresh = t->fresh ? stepgraph_pin_address(t->fresh) : 0;
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;

    switch (path) {
    case OPEN:
        status = stepgraph_session_open(NULL, &opened);
        if (status == STEPGRAPH_OK)
            keep_session(opened);
        else
            ck_assert_ptr_null(opened);
        return status;
    case PIN_CREATE:
        return make_pin(t, STEPGRAPH_ROLE_STATE, 100000, 0);
    case PIN_CREATE_FEED:
        return make_pin(t, STEPGRAPH_ROLE_FEED, 100, 0);
    case PIN_CREATE_LARGE_FEED:
        return make_pin(t, STEPGRAPH_ROLE_FEED, 1 << 20, 0);
    case PIN_ADOPT:
        return make_pin(t, STEPGRAPH_ROLE_STATE, 64, t->memory);
    case PIN_DESTROY:
    case PIN_DESTROY_FEED:
        if (!t->made)
            return STEPGRAPH_OK;
        status = stepgraph_pin_destroy(t->made);
        if (status == STEPGRAPH_OK) {
            forget_pin(t->made);
            t->made = NULL;
        }
        return status;
    case PREPARE:
        return stepgraph_step_prepare(t->step);
    case CAPTURE:
    case CAPTURE_GLOBAL:
        return stepgraph_step_capture(t->step);
    case END:
    case END_WITH_COMMITS:
    case END_BROKEN:
        return stepgraph_step_end(t->step);
    case REPLAY:
    case REPLAY_FED:
    case REPLAY_FED_ADOPTED:
    case REPLAY_TIMED:
    case REPLAY_ADOPTED:
        return stepgraph_step_replay(t->step);
    case FEED_AHEAD: /* More than the ring holds: it has to wait. */
        for (int i = 0; i < 4; i++) {
            status = stepgraph_pin_feed_f32(t->x, 1);
            if (status == STEPGRAPH_OK)
                status = stepgraph_session_flush(t->session);
            if (status != STEPGRAPH_OK)
                return status;
        }
        return STEPGRAPH_OK;
    case FLUSH:
        return stepgraph_session_flush(t->session);
    case COMMIT:
    case COMMIT_RECORDED:
        return stepgraph_pin_commit(t->v, fresh);
    case COMMIT_MANY:
    case COMMIT_MANY_RECORDED:
        return stepgraph_pin_commit_many(t->session, 2, (stepgraph_pin *[]){t->v, t->out}, (uint64_t[]){fresh, fresh + 4});
    case LAUNCH:
    case LAUNCH_RECORDED:
        call.function = kernels.nop;
        return stepgraph_session_launch(t->session, &call);
    case MARK_RECORDED:
    case MARK_TIMED:
        return stepgraph_step_mark(t->step, "stage");
    case FORK:
    case FORK_RECORDED:
        return stepgraph_step_fork(t->step, t->side, "side");
    case JOIN:
    case JOIN_RECORDED:
        return stepgraph_step_join(t->step, t->side);
    case RUN_BEGIN:
        return stepgraph_step_run_begin(t->step, STEPGRAPH_RUN_WARMUP);
    case RUN_END:
        return stepgraph_step_run_end(t->step);
    case SET_TIMING:
        return stepgraph_step_set_timing(t->step, 1);
    case READ:
        return stepgraph_pin_read(t->out, &t->seen, 4);
    case WRITE:
        return stepgraph_pin_write(t->w, &(float){9}, 4);
    case WAIT:
        return stepgraph_session_wait(t->session);
    case DRAIN:
        return stepgraph_session_sample(t->session, STEPGRAPH_SAMPLE_DRAIN, &sample);
    case VERDICT:
        return stepgraph_step_get_verdict(t->step, &verdict);
    case STAGE:
        return stepgraph_step_get_stage(t->step, 0, &stage);
    case RESET:
    case RESET_CAPTURING:
        return stepgraph_step_reset(t->step);
    case DESTROY:
    case DESTROY_CAPTURING:
        drop_step(t->step);
        t->step = NULL;
        return STEPGRAPH_OK;
    case CLOSE:
        status = stepgraph_session_close(t->session);
        if (status == STEPGRAPH_OK) {
            forget_session(t->session);
            t->session = NULL;
        }
        return status;
    default:
        return STEPGRAPH_ERR_UNSUPPORTED;
    }
}

static char where[160]; /* The failure that is being tried. */

/* What broke is put right by the means the header gives, and then a step can be recorded, fed and replayed, and is right. */
static void works_again(struct world *t)
{
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    float before = 0, after = 0;

    if (!t->session) {
        t->session = session_make(NULL);
        t->stream = stepgraph_session_stream(t->session);
    }
    if (!t->w) {
        t->w = pin_make(t->session, STEPGRAPH_ROLE_STATE, 4, "w");
        t->x = pin_make(t->session, STEPGRAPH_ROLE_FEED, 4, "x");
        t->lr = pin_make(t->session, STEPGRAPH_ROLE_CELL, 4, "lr");
    }
    if (!t->step)
        t->step = step_make(t->session, "again", 0);
    if (stepgraph_step_state(t->step) == STEPGRAPH_STEP_CAPTURING) {
        stepgraph_step_join(t->step, t->side);
        stepgraph_step_end(t->step); /* Whatever it says, it unwinds. */
    }
    stepgraph_step_join(t->step, t->side);
    stepgraph_step_run_end(t->step);
    CU(StreamIsCapturing(t->stream, &capturing));
    ck_assert_msg(capturing == CU_STREAM_CAPTURE_STATUS_NONE, "%s: the stream still records", where);
    CU(StreamIsCapturing(t->side, &capturing));
    ck_assert_msg(capturing == CU_STREAM_CAPTURE_STATUS_NONE, "%s: the side stream still records", where);
    inc(t->stream, t->spare, 1);
    OK(stepgraph_session_wait(t->session));
    OK(stepgraph_step_reset(t->step));
    to_ready(t);
    OK(stepgraph_pin_read(t->w, &before, 4));
    feed_both(t, 10, 2);
    OK(stepgraph_step_replay(t->step));
    feed_both(t, 100, 3);
    OK(stepgraph_step_replay(t->step));
    OK(stepgraph_pin_read(t->w, &after, 4));
    ck_assert_msg(after == before + 1 + 20 + 1 + 300, "%s: two replays take %g to %g", where, (double)before, (double)after);
}

static void world_drop(struct world *t)
{
    if (t->step)
        drop_step(t->step);
    stepgraph_pin **pin[] = {&t->w, &t->v, &t->fresh, &t->x, &t->lr, &t->out, &t->adopted, &t->made};
    for (size_t i = 0; i < sizeof pin / sizeof *pin; i++)
        if (*pin[i])
            drop_pin(*pin[i]);
    if (t->session)
        drop_session(t->session);
    device_drop(t->memory);
    device_drop(t->spare);
}

static size_t free_bytes(void)
{
    CUresult (*mem_info)(size_t *, size_t *);
    size_t left = 0, total = 0;

    *(void **)&mem_info = stepgraph_session_symbol(session, "cuMemGetInfo", 3020);
    if (mem_info)
        mem_info(&left, &total);
    return left;
}

/* What a refused call may answer when an entry fails with an error that it has no idea about. */
static int fits(enum path path, stepgraph_status status, int code)
{
    if (code == CUDA_ERROR_OUT_OF_MEMORY)
        return status == STEPGRAPH_ERR_MEMORY;
    switch (status) {
    case STEPGRAPH_ERR_DRIVER:
    case STEPGRAPH_ERR_LOST:
        return 1;
    case STEPGRAPH_ERR_NO_DRIVER:
        return path == OPEN;
    case STEPGRAPH_ERR_CAPTURE:
        return path == CAPTURE || path == CAPTURE_GLOBAL || path == END || path == END_WITH_COMMITS || path == END_BROKEN ||
               path == MARK_RECORDED;
    default:
        return 0;
    }
}

static int undoes(enum path path)
{
    return path == PIN_DESTROY || path == PIN_DESTROY_FEED || path == RESET || path == RESET_CAPTURING || path == DESTROY ||
           path == DESTROY_CAPTURING || path == CLOSE;
}

/*
 * A failure that cusim pretends leaves things where they were: the recording goes on, which the library could not end, or not in
 * a context that it had to take for dead; and the context stays on the stack of the thread.
 */
static void really_do(struct world *t, const char *entry)
{
    CUresult (*end)(CUstream, CUgraph *), (*destroy)(CUgraph), (*pop)(CUcontext *);
    CUgraph graph = NULL;
    CUcontext popped;

    if (strcmp(entry, "cuCtxPopCurrent") == 0) {
        *(void **)&pop = stepgraph_session_symbol(session, "cuCtxPopCurrent", 4000);
        pop(&popped);
    }
    if (strcmp(entry, "cuStreamEndCapture") != 0 && strcmp(entry, "cuCtxGetId") != 0)
        return;

    *(void **)&end = stepgraph_session_symbol(session, "cuStreamEndCapture", 10000);
    *(void **)&destroy = stepgraph_session_symbol(session, "cuGraphDestroy", 10000);
    end(t->stream, &graph);
    if (graph)
        destroy(graph);
}

static void fail_once(enum path path, const char *entry, unsigned nth, int code)
{
    struct world t;
    stepgraph_status status, again;
    stepgraph_error_info info;
    int forgiven = AMONG(entry, undoing) || undoes(path) || (path == MARK_RECORDED && strncmp(entry, "cuGraph", 7) == 0) ||
                   /* A replay that was launched is done, whether it can be measured or not. */
                   (path == REPLAY_TIMED && nth == 2 && strncmp(entry, "cuEvent", 7) == 0);
    int leaves;
    size_t before, after;
    unsigned long calls;

    leaves = forgiven || strcmp(entry, "cuCtxGetId") == 0; /* A context that seems dead keeps what is in it. */
    unit_leaves_objects(leaves);
    snprintf(where, sizeof where, "%s, call %u of %s answering %d", path_name[path], nth, entry, code);
    before = free_bytes();
    world_make(&t, path);
    calls = driver_calls(entry);
    driver_fails(entry, nth, code);
    status = take(&t, path);
    no_driver_fails();
    info = last_error();
    really_do(&t, entry);
    ck_assert_msg(driver_calls(entry) >= calls + nth, "%s: did not come", where);

    if (path == END_BROKEN) {
        ck_assert_msg(status != STEPGRAPH_OK, "%s: no failure", where);
    } else if (status == STEPGRAPH_OK) {
        ck_assert_msg(forgiven, "%s: went unnoticed", where);
    } else {
        ck_assert_msg(fits(path, status, code), "%s: %s: %s", where, stepgraph_status_name(status), info.message);
        ck_assert_msg(info.status == status, "%s: the record says %s", where,
                      stepgraph_status_name((stepgraph_status)info.status));
        ck_assert_msg(strcmp(info.call, entry) == 0, "%s: the record blames '%s': %s", where, info.call, info.message);
        ck_assert_msg(info.driver_code == code, "%s: the record has code %d", where, info.driver_code);
        ck_assert_msg(strstr(info.message, entry) != NULL, "%s: the message does not name it: %s", where, info.message);
    }

    /* The same once more: refused by the state, or done. Where all was lost, only a new session helps. */
    if (status == STEPGRAPH_ERR_LOST && path != OPEN) {
        stepgraph_session *fresh = session_make(NULL);
        drop_session(fresh);
    } else {
        if (status != STEPGRAPH_OK && path != END && path != END_WITH_COMMITS && path != END_BROKEN) {
            again = take(&t, path);
            ck_assert_msg(again == STEPGRAPH_OK || (t.step && stepgraph_step_state(t.step) >= STEPGRAPH_STEP_CAPTURING),
                          "%s: does not work a second time: %s: %s", where, stepgraph_status_name(again), last_words());
        }
        works_again(&t);
    }
    world_drop(&t);
    unit_leaves_objects(0);
    after = free_bytes();
    if (!leaves && status != STEPGRAPH_ERR_LOST)
        ck_assert_msg(before == after, "%s: %zd bytes of the device are lost", where, (ssize_t)(before - after));
}

START_TEST(each_driver_call_of_this_path_fails_once)
{
    enum path path = (enum path)_i;
    unsigned long before[ENTRIES], after[ENTRIES];
    struct world t;
    stepgraph_status status;
    unsigned failures = 0;

    snprintf(where, sizeof where, "%s", path_name[path]);
    world_make(&t, path);
    for (int i = 0; i < ENTRIES; i++)
        before[i] = driver_calls(entries[i]);
    status = take(&t, path);
    for (int i = 0; i < ENTRIES; i++)
        after[i] = driver_calls(entries[i]);
    ck_assert_msg((status == STEPGRAPH_OK) == (path != END_BROKEN), "%s: %s: %s", path_name[path], stepgraph_status_name(status),
                  last_words());
    works_again(&t);
    world_drop(&t);

    for (int i = 0; i < ENTRIES; i++)
        for (unsigned nth = 1; nth <= after[i] - before[i]; nth++) {
            if (nth > 4 && nth < after[i] - before[i])
                continue; /* The first few and the last of many alike. */
            fail_once(path, entries[i], nth, CUDA_ERROR_UNKNOWN);
            failures++;
            if (AMONG(entries[i], asking)) {
                fail_once(path, entries[i], nth, CUDA_ERROR_OUT_OF_MEMORY);
                failures++;
            }
        }
    printf("%s: %u failures\n", path_name[path], failures);
}
END_TEST

START_TEST(every_entry_of_the_table_is_known_to_the_controls)
{
    /* Else a path would seem to call nothing, and this program would prove nothing. */
    struct world t;
    unsigned long calls = 0;

    world_make(&t, REPLAY);
    OK(stepgraph_step_replay(t.step));
    for (int i = 0; i < ENTRIES; i++)
        calls += driver_calls(entries[i]);
    ck_assert_uint_gt(calls, 10);
    ck_assert_uint_gt(driver_calls("cuGraphLaunch"), 0);
    ck_assert_uint_gt(driver_calls("cuStreamBeginCapture"), 0);
    ck_assert_uint_gt(driver_calls("cuStreamEndCapture"), 0);
    ck_assert_uint_gt(driver_calls("cuMemAlloc"), 0);
    ck_assert_uint_gt(driver_calls("cuGraphKernelNodeGetParams"), 0);
    world_drop(&t);
}
END_TEST

/* All that a kernel can do to its context. */
static const struct {
    int code;
    const char *name, *number;
} device_faults[] = {
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "700"},
    {CUDA_ERROR_ASSERT, "CUDA_ERROR_ASSERT", "710"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, "CUDA_ERROR_HARDWARE_STACK_ERROR", "714"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "715"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "716"},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "717"},
    {CUDA_ERROR_INVALID_PC, "CUDA_ERROR_INVALID_PC", "718"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "719"},
};
enum { DEVICE_FAULTS = sizeof device_faults / sizeof *device_faults };

START_TEST(device_fault_during_a_wait_is_a_loss_with_its_code)
{
    driver_fails("cuStreamSynchronize", 1, device_faults[_i].code);
    FAILS(STEPGRAPH_ERR_LOST, stepgraph_session_wait(session), "cuStreamSynchronize", device_faults[_i].number, device_faults[_i].name,
          "has faulted, now or earlier", "open a new session");
    ck_assert_int_eq(last_error().driver_code, device_faults[_i].code);
    no_driver_fails();
}
END_TEST

START_TEST(failed_launch_names_the_driver_call_and_fails_the_step)
{
    /* The first can be put right by recording again; the second has taken the context with it. */
    static const struct {
        int code;
        stepgraph_status status;
        const char *words[3];
    } kinds[] = {{CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, STEPGRAPH_ERR_DRIVER, {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "701", NULL}},
                 {CUDA_ERROR_LAUNCH_FAILED, STEPGRAPH_ERR_LOST, {"CUDA_ERROR_LAUNCH_FAILED", "719", NULL}}};
    stepgraph_step *step = step_make(session, "train", 0);
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_error_info kept = STEPGRAPH_ERROR_INFO_INIT;

    begin_recording(step);
    inc(stream, stepgraph_pin_address(pin), 1);
    OK(stepgraph_step_end(step));
    driver_fails("cuGraphLaunch", 1, kinds[_i].code);
    FAILS(kinds[_i].status, stepgraph_step_replay(step), "train", "cuGraphLaunch", kinds[_i].words[0], kinds[_i].words[1]);
    no_driver_fails();
    ck_assert_str_eq(last_error().call, "cuGraphLaunch");
    STATE_IS(step, STEPGRAPH_STEP_FAILED);
    OK(stepgraph_step_error(step, &kept));
    ck_assert_int_eq(kept.driver_code, kinds[_i].code);
    ck_assert_uint_eq(step_stats(step).replays, 0);
    FAILS(kinds[_i].status, stepgraph_step_replay(step), "cuGraphLaunch", kinds[_i].words[1]);
    ck_assert_float_eq(pin_float(pin), 0);
}
END_TEST

START_TEST(feed_survives_a_replay_that_failed)
{
    struct world t;
    float before, after;

    world_make(&t, REPLAY_FED);
    OK(stepgraph_pin_read(t.w, &before, 4));
    driver_fails("cuMemcpyHtoDAsync", 1, CUDA_ERROR_UNKNOWN);
    FAILS(STEPGRAPH_ERR_DRIVER, stepgraph_step_replay(t.step), "cuMemcpyHtoDAsync");
    no_driver_fails();
    if (stepgraph_step_state(t.step) == STEPGRAPH_STEP_FAILED) {
        OK(stepgraph_step_reset(t.step));
        to_ready(&t);
    }
    OK(stepgraph_step_replay(t.step)); /* What was fed has not been lost with the copy that failed. */
    OK(stepgraph_pin_read(t.w, &after, 4));
    ck_assert_float_eq(after, before + 1 + 6);
    world_drop(&t);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("failures");
    TCase *paths = unit_case(suite, "paths"), *words = unit_case(suite, "words");

    add_controlled_test(paths, every_entry_of_the_table_is_known_to_the_controls);
    add_controlled_loop_test(paths, each_driver_call_of_this_path_fails_once, 0, PATHS);
    add_controlled_loop_test(words, device_fault_during_a_wait_is_a_loss_with_its_code, 0, DEVICE_FAULTS);
    add_controlled_loop_test(words, failed_launch_names_the_driver_call_and_fails_the_step, 0, 2);
    add_controlled_test(words, feed_survives_a_replay_that_failed);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
