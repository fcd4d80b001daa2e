/*
 * Ranks that decide together: two threads with a session and a loop each, as two processes with a card each would be. Whatever
 * one of them finds, both must do the same from there on, turn by turn, and run their collectives equally often; here a
 * collective is a host function that counts.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "support.h"

enum { N = 64, BYTES = N * sizeof(float), RANKS = 2, TURNS_MAX = 2000 };

/* What is wrong with the step of one rank. */
enum trouble {
    NONE,
    WAITS,       /* It waits for the stream, which no recording survives. */
    WAITS_AGAIN, /* It does so in the second recording alone. */
    PAGEABLE,    /* A copy from the host's own memory, which the audit refuses. */
    UNPINNED,    /* New values stand where no pin is. */
    MOVES,       /* And each time elsewhere. */
    BY_VALUE,    /* A value is a kernel argument. */
    FORMS,       /* Other kernels in each step. */
    LATE,        /* A value changes once the recordings are made. */
    NO_STATE,    /* Nothing that it does outlives it. */
    HIDDEN,      /* It uses memory that no pin covers and that a check cannot put back. */
    COUNTS,      /* It counts in page-locked memory, by an address in a large struct. */
    UNSTEADY,    /* It keeps in a SCRATCH what outlives it. */
    UPDATES,     /* By value, and from step 20 on in two forms. */
    SLOWER,      /* Its replays take longer than its launches. */
    FULL,        /* Its graph has more nodes than the budget has room for. */
    TROUBLES
};

struct rank {
    int index;
    enum trouble trouble;
    uint64_t steps;
    stepgraph_session *session;
    stepgraph_loop *loop;
    stepgraph_loop_config config;
    stepgraph_turn turn;
    stepgraph_pin *weight, *fresh, *input, *rate, *loss, *apart;
    CUdeviceptr moving[3];

    uint32_t kinds[TURNS_MAX]; /* Of its turns, in order. */
    size_t n_kinds;
    uint64_t recordings;         /* Turns that recorded. */
    atomic_uint collectives;     /* Run so far. */
    atomic_uint kind;            /* Of the turn that runs. */
    uint64_t asked, asked_first; /* And before the first replay. */

    stepgraph_status status; /* How it ended; 0: all steps are done. */
    char words[1200];
    float trained[N];
};

static struct rank ranks[RANKS];
static float *locked[RANKS]; /* For as long as the program. */

/* ---- where ranks meet ---------------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    unsigned arrived, round;
    uint64_t largest, result;
    unsigned collectives[RANKS];
    bool gone, uneven;
} meeting = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static void meeting_reset(void)
{
    meeting.arrived = meeting.round = 0;
    meeting.largest = meeting.result = 0;
    meeting.gone = meeting.uneven = false;
}

static void leave(void)
{
    pthread_mutex_lock(&meeting.lock);
    meeting.gone = true;
    pthread_cond_broadcast(&meeting.change);
    pthread_mutex_unlock(&meeting.lock);
}

/* The largest value of all ranks. Where they meet, they have run equally many collectives. */
static stepgraph_status meet(void *user, uint64_t k, uint64_t mine, uint64_t *largest_out)
{
    struct rank *rank = user;
    struct timespec until;
    unsigned round;
    int late = 0;

    (void)k;
    rank->asked++;
    if (stepgraph_session_wait(rank->session) != STEPGRAPH_OK)
        return STEPGRAPH_ERR_LOST;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&meeting.lock);
    round = meeting.round;
    meeting.collectives[rank->index] = atomic_load(&rank->collectives);
    meeting.largest = mine > meeting.largest ? mine : meeting.largest;
    if (++meeting.arrived == RANKS) {
        for (int i = 1; i < RANKS; i++)
            meeting.uneven = meeting.uneven || meeting.collectives[i] != meeting.collectives[0];
        meeting.result = meeting.largest;
        meeting.largest = 0;
        meeting.arrived = 0;
        meeting.round++;
        pthread_cond_broadcast(&meeting.change);
    }
    while (meeting.round == round && !meeting.gone && late == 0)
        late = pthread_cond_timedwait(&meeting.change, &meeting.lock, &until);
    *largest_out = meeting.result;
    late = meeting.round == round;
    pthread_mutex_unlock(&meeting.lock);
    return late ? STEPGRAPH_ERR_LOST : STEPGRAPH_OK;
}

/* ---- a rank ---------------------------------------------------------------------------------------------------------- */

static void collective(void *user)
{
    struct rank *rank = user;
    unsigned kind = atomic_load(&rank->kind);
    bool replayed = kind == STEPGRAPH_TURN_REPLAY;

    atomic_fetch_add(&rank->collectives, 1);
    if ((rank->config.flags & STEPGRAPH_LOOP_SOFTWARE_CLOCK) != 0 && replayed == (rank->trouble == SLOWER))
        nanosleep(&(struct timespec){0, 2000000}, NULL);
}

static void run(struct rank *rank, CUfunction function, unsigned threads, void **arguments)
{
    stepgraph_launch call = STEPGRAPH_LAUNCH_INIT;

    call.function = function;
    call.block[0] = threads;
    call.arguments = arguments;
    /* While a recording is broken it may fail, which the recording's end tells. */
    (void)stepgraph_session_launch(rank->session, &call);
}

static void add(struct rank *rank, CUdeviceptr to, float value)
{
    run(rank, kernels.inc, 1, (void *[]){&to, &value});
}

static bool records(const struct rank *rank)
{
    return rank->loop != NULL && (rank->turn.kind == STEPGRAPH_TURN_RECORD || rank->turn.kind == STEPGRAPH_TURN_RERECORD);
}

/* What all ranks do, and what is wrong with this one's. */
static void train(struct rank *rank, uint64_t k)
{
    CUdeviceptr to = stepgraph_pin_address(rank->fresh), from = stepgraph_pin_address(rank->weight);
    CUdeviceptr x = stepgraph_pin_address(rank->input), by = stepgraph_pin_address(rank->rate),
                out = stepgraph_pin_address(rank->loss);
    CUdeviceptr apart = stepgraph_pin_address(rank->apart);
    CUstream on = stepgraph_session_stream(rank->session);
    static float pageable;
    struct {
        CUdeviceptr p;
        int rest[100];
    } large = {0};
    float one = 1;
    int n = N;

    if (rank->trouble == UNPINNED || rank->trouble == MOVES)
        to = rank->moving[rank->trouble == MOVES ? k % 3 : 0];
    if (rank->trouble == NO_STATE)
        from = x;
    run(rank, kernels.update, N, (void *[]){&to, &from, &x, &by, &n});
    (void)cu.LaunchHostFunc(on, collective, rank);
    if (rank->trouble != NO_STATE)
        (void)stepgraph_pin_commit(rank->weight, to);
    run(rank, kernels.copyf, 1, (void *[]){&out, &to});

    switch (rank->trouble) {
    case WAITS:
        (void)cu.StreamSynchronize(on);
        break;
    case WAITS_AGAIN:
        if (records(rank) && rank->recordings == 2)
            (void)cu.StreamSynchronize(on);
        break;
    case PAGEABLE:
        pageable = (float)k;
        (void)cu.MemcpyHtoDAsync(apart, &pageable, sizeof pageable, on);
        break;
    case BY_VALUE:
        add(rank, from, (float)(k % 7));
        break;
    case FORMS:
        for (uint64_t i = 0; i < k % 3; i++)
            add(rank, from, 1);
        break;
    case LATE:
        add(rank, from, k < 6 ? 1 : 2);
        break;
    case HIDDEN:
        add(rank, rank->moving[0], 1);
        break;
    case COUNTS:
        large.p = (uintptr_t)locked[rank->index];
        run(rank, kernels.spread, 1, (void *[]){&large, &one});
        break;
    case UNSTEADY:
        add(rank, apart, 1);
        run(rank, kernels.copyf, 1, (void *[]){&from, &apart});
        break;
    case UPDATES:
        add(rank, from, (float)(k % 5));
        if (k >= 20 && k % 2 == 0)
            add(rank, from, 1);
        break;
    case FULL:
        for (int i = 0; i < 40; i++)
            add(rank, from, 1);
        break;
    default:
        break;
    }
}

static stepgraph_status feed(struct rank *rank, uint64_t k)
{
    float x[N];
    stepgraph_status status;

    for (int i = 0; i < N; i++)
        x[i] = (float)((int)((k * 31 + (uint64_t)i * 7 + (uint64_t)rank->index) % 17) - 8) / 16.0f;
    status = stepgraph_pin_feed(rank->input, x, sizeof x);
    return status == STEPGRAPH_OK ? stepgraph_pin_feed_f32(rank->rate, 1.0f / (float)(k + 2)) : status;
}

static void *go(void *argument)
{
    struct rank *rank = argument;
    stepgraph_status status = STEPGRAPH_OK;

    (void)cu.CtxSetCurrent(stepgraph_session_context(rank->session));
    status = stepgraph_loop_create(rank->session, &rank->config, &rank->loop);
    for (uint64_t k = 0; k < rank->steps && status == STEPGRAPH_OK; k++)
        do {
            status = stepgraph_loop_begin(rank->loop, k, &rank->turn);
            if (status != STEPGRAPH_OK)
                break;
            atomic_store(&rank->kind, rank->turn.kind);
            if (rank->n_kinds < TURNS_MAX)
                rank->kinds[rank->n_kinds++] = rank->turn.kind;
            rank->recordings += records(rank) ? 1 : 0;
            if (rank->asked_first == 0 && rank->turn.kind == STEPGRAPH_TURN_REPLAY)
                rank->asked_first = rank->asked;
            if (rank->turn.feed && (status = feed(rank, k)) != STEPGRAPH_OK)
                break;
            if (rank->turn.run)
                train(rank, k);
            status = stepgraph_loop_end(rank->loop, &rank->turn);
            /* What the host function does depends on the turn that it is in. */
            if (status == STEPGRAPH_OK && rank->turn.kind == STEPGRAPH_TURN_REPLAY)
                status = stepgraph_session_wait(rank->session);
        } while (status == STEPGRAPH_OK && rank->turn.again);
    rank->status = status;
    snprintf(rank->words, sizeof rank->words, "%s", last_words());
    if (status == STEPGRAPH_OK)
        rank->status = stepgraph_pin_read(rank->weight, rank->trained, BYTES);
    else
        leave();
    return NULL;
}

static void setup(void)
{
    meeting_reset();
    for (int i = 0; i < RANKS; i++) {
        struct rank *rank = &ranks[i];
        memset(rank, 0, sizeof *rank);
        rank->index = i;
        rank->steps = 60;
        rank->session = i == 0 ? session : session_make(NULL);
        rank->config = (stepgraph_loop_config)STEPGRAPH_LOOP_CONFIG_INIT;
        rank->config.step_flags = STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS;
        rank->config.agree = meet;
        rank->config.user = rank;
        rank->turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
        rank->weight = pin_make(rank->session, STEPGRAPH_ROLE_STATE, BYTES, "weight");
        rank->fresh = pin_make(rank->session, STEPGRAPH_ROLE_SCRATCH, BYTES, "fresh");
        rank->input = pin_make(rank->session, STEPGRAPH_ROLE_FEED, BYTES, "input");
        rank->rate = pin_make(rank->session, STEPGRAPH_ROLE_CELL, sizeof(float), "rate");
        rank->loss = pin_make(rank->session, STEPGRAPH_ROLE_OUTPUT, sizeof(float), "loss");
        rank->apart = pin_make(rank->session, STEPGRAPH_ROLE_SCRATCH, sizeof(float), "apart");
        for (int j = 0; j < 3; j++)
            rank->moving[j] = device_make(BYTES);
        if (locked[i] == NULL)
            CU(MemAllocHost((void **)&locked[i], BYTES));
        *locked[i] = 0;
    }
}

static void teardown(void)
{
    for (int i = 0; i < RANKS; i++) {
        stepgraph_loop_destroy(ranks[i].loop);
        ranks[i].loop = NULL;
    }
}

/* Both ranks at once. */
static void go_all(void)
{
    pthread_t threads[RANKS];

    for (int i = 0; i < RANKS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, go, &ranks[i]), 0);
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
}

/* What a rank's steps leave in its weights without any loop; all is as before afterwards. */
static void without_loop(struct rank *rank, float *to)
{
    float zeros[N] = {0};

    for (uint64_t k = 0; k < rank->steps; k++) {
        OK(feed(rank, k));
        OK(stepgraph_session_flush(rank->session));
        train(rank, k);
    }
    OK(stepgraph_pin_read(rank->weight, to, BYTES));
    OK(stepgraph_pin_write(rank->weight, zeros, BYTES));
    OK(stepgraph_pin_write(rank->apart, zeros, sizeof(float)));
    put_float(rank->moving[0], 0);
    *locked[rank->index] = 0;
    atomic_store(&rank->collectives, 0);
}

static stepgraph_loop_stats stats_of(const struct rank *rank)
{
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;

    OK(stepgraph_loop_get_stats(rank->loop, &stats));
    return stats;
}

/* Turn by turn the same, and equally many collectives. */
static void in_step(void)
{
    const struct rank *a = &ranks[0], *b = &ranks[1];

    for (size_t i = 0; i < a->n_kinds && i < b->n_kinds; i++)
        ck_assert_msg(a->kinds[i] == b->kinds[i], "turn %zu is a %s for rank 0 and a %s for rank 1", i,
                      stepgraph_turn_kind_name(a->kinds[i]), stepgraph_turn_kind_name(b->kinds[i]));
    ck_assert_uint_eq(a->n_kinds, b->n_kinds);
    ck_assert_uint_eq(a->asked, b->asked);
    ck_assert_uint_eq(atomic_load(&a->collectives), atomic_load(&b->collectives));
    ck_assert(!meeting.uneven);
}

/* ---- together ---------------------------------------------------------------------------------------------------------- */

static const struct {
    enum trouble trouble;
    stepgraph_rung rung;
    stepgraph_why why;
    uint32_t flags, step_flags; /* Of both ranks. */
    uint64_t graph_bytes;
} cases[] = {
    {NONE, STEPGRAPH_RUNG_REPLAY, STEPGRAPH_WHY_NONE, 0, 0, 0},
    {NONE, STEPGRAPH_RUNG_REPLAY, STEPGRAPH_WHY_NONE, STEPGRAPH_LOOP_RESTORE, 0, 0},
    {WAITS, STEPGRAPH_RUNG_FRESH, STEPGRAPH_WHY_BROKEN, 0, 0, 0},
    {WAITS_AGAIN, STEPGRAPH_RUNG_REPLAY, STEPGRAPH_WHY_NONE, 0, 0, 0},
    {PAGEABLE, STEPGRAPH_RUNG_FRESH, STEPGRAPH_WHY_REFUSED, 0, 0, 0},
    {UNPINNED, STEPGRAPH_RUNG_RERECORD, STEPGRAPH_WHY_UNREGISTERED, 0, 0, 0},
    {UNPINNED, STEPGRAPH_RUNG_FRESH, STEPGRAPH_WHY_UNREGISTERED, STEPGRAPH_LOOP_NO_RERECORD, 0, 0},
    {MOVES, STEPGRAPH_RUNG_RERECORD, STEPGRAPH_WHY_MOVED, 0, 0, 0},
    {BY_VALUE, STEPGRAPH_RUNG_RERECORD, STEPGRAPH_WHY_SCALAR, 0, 0, 0},
    {FORMS, STEPGRAPH_RUNG_FRESH, STEPGRAPH_WHY_TOPOLOGY, 0, 0, 0},
    {LATE, STEPGRAPH_RUNG_FRESH, STEPGRAPH_WHY_DIVERGED, 0, 0, 0},
    {NO_STATE, STEPGRAPH_RUNG_RERECORD, STEPGRAPH_WHY_UNPROVEN, 0, 0, 0},
    {HIDDEN, STEPGRAPH_RUNG_RERECORD, STEPGRAPH_WHY_UNPROVEN, 0, STEPGRAPH_STEP_ALLOW_UNREGISTERED, 0},
    {COUNTS, STEPGRAPH_RUNG_RERECORD, STEPGRAPH_WHY_UNREGISTERED, 0, 0, 0},
    {UNSTEADY, STEPGRAPH_RUNG_REPLAY, STEPGRAPH_WHY_NONE, STEPGRAPH_LOOP_KEEP_SCRATCH, 0, 0},
    {UPDATES, STEPGRAPH_RUNG_FRESH, STEPGRAPH_WHY_UPDATE, 0, 0, 0}, /* For 30 steps: later it is recorded anew. */
    {FULL, STEPGRAPH_RUNG_FRESH, STEPGRAPH_WHY_MEMORY, 0, 0, 50000},
    /* A card runs the host functions of all streams one after the other, which makes all ranks as slow as the slowest. */
    {NONE, STEPGRAPH_RUNG_REPLAY, STEPGRAPH_WHY_NONE, STEPGRAPH_LOOP_SOFTWARE_CLOCK, 0, 0},
    {SLOWER, STEPGRAPH_RUNG_FRESH, STEPGRAPH_WHY_CLOCK, STEPGRAPH_LOOP_SOFTWARE_CLOCK, 0, 0},
};
enum { CASES = sizeof cases / sizeof *cases, TIMED = 2 };

/* _i: the case, and which rank has the trouble. */
START_TEST(what_one_rank_finds_decides_for_all)
{
    int bad = _i % RANKS, which = _i / RANKS;
    float want[RANKS][N];

    ranks[bad].trouble = cases[which].trouble;
    for (int i = 0; i < RANKS; i++) {
        ranks[i].config.flags |= cases[which].flags;
        if ((cases[which].flags & STEPGRAPH_LOOP_SOFTWARE_CLOCK) == 0)
            ranks[i].config.flags |= STEPGRAPH_LOOP_IGNORE_CLOCK;
        ranks[i].config.step_flags |= cases[which].step_flags;
        ranks[i].config.graph_bytes = cases[which].graph_bytes;
        ranks[i].steps = cases[which].trouble == UPDATES ? 30 : ranks[i].steps;
        without_loop(&ranks[i], want[i]);
    }
    go_all();
    for (int i = 0; i < RANKS; i++)
        ck_assert_msg(ranks[i].status == STEPGRAPH_OK, "rank %d: %s: %s", i, stepgraph_status_name(ranks[i].status),
                      ranks[i].words);
    in_step();
    for (int i = 0; i < RANKS; i++) {
        stepgraph_loop_stats stats = stats_of(&ranks[i]);
        ck_assert_msg(stats.rung == (uint32_t)cases[which].rung && stats.why == (uint32_t)cases[which].why,
                      "rank %d, trouble on %d: rung %s, %s: %s", i, bad, stepgraph_rung_name(stats.rung),
                      stepgraph_why_name(stats.why), stats.words);
        ck_assert_uint_eq(stats.steps, ranks[i].steps);
        if (i == bad || stats.rung == STEPGRAPH_RUNG_REPLAY)
            ck_assert_msg(strstr(stats.words, "another rank") == NULL, "rank %d says: %s", i, stats.words);
        else
            ck_assert_msg(strstr(stats.words, "another rank") != NULL, "rank %d says: %s", i, stats.words);
        if (cases[which].trouble != UNSTEADY || i != bad)
            ck_assert_msg(memcmp(ranks[i].trained, want[i], BYTES) == 0, "rank %d has trained something else", i);
    }
    if (cases[which].trouble == BY_VALUE)
        ck_assert_uint_eq(stats_of(&ranks[1 - bad]).turns[STEPGRAPH_TURN_LOOK], 1);
    if (cases[which].trouble == COUNTS)
        ck_assert_float_eq(*locked[bad], (float)ranks[bad].steps);
    if (cases[which].trouble == UNSTEADY)
        ck_assert_uint_gt(stats_of(&ranks[1 - bad]).checks_inconclusive, 0);
}
END_TEST

/* One does not repeat itself, and what is frozen in the other's graph differs from that: all check until it has been seen often enough. */
START_TEST(noise_of_one_rank_hides_nothing_in_another)
{
    const int steady = _i;
    float want[N];

    ranks[1 - steady].trouble = UNSTEADY;
    ranks[steady].trouble = LATE;
    for (int i = 0; i < RANKS; i++) {
        ranks[i].config.flags |= STEPGRAPH_LOOP_KEEP_SCRATCH | STEPGRAPH_LOOP_IGNORE_CLOCK;
        ranks[i].config.check_steps = 2; /* Fewer than it takes. */
    }
    without_loop(&ranks[steady], want);
    go_all();
    for (int i = 0; i < RANKS; i++)
        ck_assert_msg(ranks[i].status == STEPGRAPH_OK, "rank %d: %s: %s", i, stepgraph_status_name(ranks[i].status), ranks[i].words);
    in_step();
    for (int i = 0; i < RANKS; i++) {
        ck_assert_uint_eq(stats_of(&ranks[i]).rung, STEPGRAPH_RUNG_FRESH);
        ck_assert_uint_eq(stats_of(&ranks[i]).why, STEPGRAPH_WHY_DIVERGED);
        ck_assert_uint_eq(stats_of(&ranks[i]).checks_inconclusive, 1 + 2); /* The first is of a step before the change. */
        ck_assert_uint_eq(stats_of(&ranks[i]).checks_diverged, 1);
    }
    ck_assert(memcmp(ranks[steady].trained, want, BYTES) == 0);
}
END_TEST

START_TEST(replays_do_not_ask)
{
    ranks[0].steps = ranks[1].steps = 300;
    go_all();
    in_step();
    ck_assert_uint_gt(ranks[0].asked_first, 10);
    /* But once for the verdict, and on the software driver the clock decides nothing. */
    ck_assert_uint_eq(ranks[0].asked, ranks[0].asked_first + (unit_has_controls() ? 0 : 1));
}
END_TEST

/* ---- a rank that cannot go on ------------------------------------------------------------------------------------------ */

static const char *const entries[] = {
    "cuGraphInstantiateWithParams",
    "cuGraphExecUpdate",
    "cuGraphUpload",
    "cuGraphLaunch",
    "cuStreamBeginCapture",
    "cuMemAlloc",
    "cuMemHostAlloc",
    "cuMemcpyHtoDAsync",
    "cuMemGetInfo",
    "cuGraphGetNodes",
    "cuGraphKernelNodeGetParams",
    "cuMemsetD8Async",
    "cuStreamGetCaptureInfo",
};

/* The nth call fails, for the rank that happens to make it. Either both live with it, or both end with words. In every other
 * round a step is not the same twice, and copies of pins are in host memory. */
START_TEST(driver_call_that_fails_for_one_rank_ends_both_or_none)
{
    for (unsigned nth = 1; nth <= 56; nth++) {
        for (int i = 0; i < RANKS; i++) {
            ranks[i].trouble = nth % 2 == 0 && i == 0 ? UNSTEADY : NONE;
            ranks[i].config.flags = nth % 2 == 0 ? STEPGRAPH_LOOP_KEEP_SCRATCH : 0;
            ranks[i].config.snapshot_bytes = nth % 2 == 0 ? 1 : 0;
        }
        unit_leaves_objects(1);
        driver_fails(entries[_i], (nth + 1) / 2, CUDA_ERROR_OUT_OF_MEMORY);
        go_all();
        no_driver_fails();
        for (int i = 0; i < RANKS; i++)
            ck_assert(ranks[i].status == STEPGRAPH_OK || ranks[i].words[0] != '\0');
        /* No copy of the pins, here or there, is no reason to end. */
        if (strcmp(entries[_i], "cuMemHostAlloc") == 0)
            for (int i = 0; i < RANKS; i++)
                ck_assert_msg(ranks[i].status == STEPGRAPH_OK, "%u, rank %d: %s", nth, i, ranks[i].words);
        if (ranks[0].status == STEPGRAPH_OK && ranks[1].status == STEPGRAPH_OK) {
            in_step();
            ck_assert_uint_eq(stats_of(&ranks[0]).rung, stats_of(&ranks[1]).rung);
        } else {
            /* One that has come to its end had nothing more to ask. */
            for (int i = 0; i < RANKS; i++)
                ck_assert_msg(ranks[i].status != STEPGRAPH_OK || stats_of(&ranks[i]).rung == STEPGRAPH_RUNG_REPLAY,
                              "%s %u: rank %d goes on without the other", entries[_i], nth, i);
        }
        teardown();
        for (int i = 0; i < RANKS; i++) {
            struct rank *rank = &ranks[i];
            float zeros[N] = {0};
            OK(stepgraph_pin_write(rank->weight, zeros, BYTES));
            rank->n_kinds = rank->asked = rank->recordings = 0;
            atomic_store(&rank->collectives, 0);
            rank->turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
        }
        meeting_reset();
    }
}
END_TEST

/* ---- one rank by itself -------------------------------------------------------------------------------------------------- */

static uint64_t alone_asked, alone_fails, alone_raises;

/* As if the other ranks had found nothing; from the one that fails on, as if they were gone. */
static stepgraph_status alone(void *user, uint64_t k, uint64_t mine, uint64_t *largest_out)
{
    (void)user;
    (void)k;
    *largest_out = mine;
    alone_asked++;
    if (alone_raises != 0)
        *largest_out += alone_raises;
    return alone_fails != 0 && alone_asked >= alone_fails ? STEPGRAPH_ERR_UNSUPPORTED : STEPGRAPH_OK;
}

static void alone_setup(void)
{
    float zeros[N] = {0};

    alone_asked = alone_fails = alone_raises = 0;
    OK(stepgraph_pin_write(ranks[0].weight, zeros, BYTES));
    OK(stepgraph_pin_write(ranks[0].apart, zeros, sizeof(float)));
    ranks[0].config.agree = alone;
    ranks[0].n_kinds = 0;
    ranks[0].recordings = 0;
    ranks[0].turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
}

START_TEST(ranks_that_cannot_agree_end_the_turn_whatever_it_is)
{
    uint64_t questions;

    ranks[0].trouble = (enum trouble)_i;
    ranks[0].config.flags |= _i == SLOWER ? STEPGRAPH_LOOP_SOFTWARE_CLOCK : STEPGRAPH_LOOP_IGNORE_CLOCK;
    ranks[0].config.flags |= _i == UNSTEADY ? STEPGRAPH_LOOP_KEEP_SCRATCH : 0;
    ranks[0].config.step_flags |= _i == HIDDEN ? STEPGRAPH_STEP_ALLOW_UNREGISTERED : 0;
    ranks[0].config.graph_bytes = _i == FULL ? 50000 : 0;
    ranks[0].steps = 30;
    alone_setup();
    go(&ranks[0]);
    ck_assert_msg(ranks[0].status == STEPGRAPH_OK, "%s", ranks[0].words);
    questions = alone_asked;
    ck_assert_uint_ge(questions, 2);
    stepgraph_loop_destroy(ranks[0].loop);
    for (uint64_t nth = 1; nth <= questions; nth++) {
        alone_setup();
        alone_fails = nth;
        go(&ranks[0]);
        ck_assert_msg(ranks[0].status == STEPGRAPH_ERR_UNSUPPORTED, "question %llu: %s: %s", (unsigned long long)nth,
                      stepgraph_status_name(ranks[0].status), ranks[0].words);
        ck_assert_msg(strstr(ranks[0].words, "agree") != NULL, "question %llu: %s", (unsigned long long)nth, ranks[0].words);
        ck_assert_uint_eq(alone_asked, nth);
        /* The stream is as usable as ever, and another turn may begin. */
        OK(stepgraph_session_wait(session));
        add(&ranks[0], stepgraph_pin_address(ranks[0].weight), 1);
        OK(stepgraph_loop_cancel(ranks[0].loop));
        alone_fails = 0;
        OK(stepgraph_loop_begin(ranks[0].loop, 0, &ranks[0].turn));
        stepgraph_loop_destroy(ranks[0].loop);
    }
    ranks[0].loop = NULL;
}
END_TEST

START_TEST(answers_that_no_rank_can_have_given_are_refused)
{
    alone_setup();
    alone_raises = UINT64_MAX; /* One less. */
    go(&ranks[0]);
    ck_assert_int_eq(ranks[0].status, STEPGRAPH_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(ranks[0].words, "largest"));
    stepgraph_loop_destroy(ranks[0].loop);
    alone_setup();
    alone_raises = (uint64_t)1 << 32; /* The next question. */
    go(&ranks[0]);
    ck_assert_int_eq(ranks[0].status, STEPGRAPH_ERR_STATE);
    ck_assert_ptr_nonnull(strstr(ranks[0].words, "out of step"));
}
END_TEST

START_TEST(refused_replay_is_an_error_where_others_have_replayed)
{
    struct rank *rank = &ranks[0];
    CUdeviceptr memory = device_make(BYTES);

    drop_pin(rank->weight);
    rank->weight = pin_adopt(rank->session, STEPGRAPH_ROLE_STATE, memory, BYTES, "weight");
    rank->config.liveness_every = 1;
    rank->steps = 20;
    alone_setup();
    go(rank);
    ck_assert_int_eq(rank->status, STEPGRAPH_OK);
    ck_assert_uint_eq(stats_of(rank).rung, STEPGRAPH_RUNG_REPLAY);
    device_drop(memory);
    OK(stepgraph_loop_begin(rank->loop, 20, &rank->turn));
    OK(feed(rank, 20));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_loop_end(rank->loop, &rank->turn), "'weight'", "the others", "step 20");
    ck_assert_int_eq(rank->turn.again, 0);
    stepgraph_loop_destroy(rank->loop);
    rank->loop = NULL;
    drop_pin(rank->weight);
}
END_TEST

static stepgraph_status enqueue_nothing(void *user, stepgraph_step *step, uint64_t k)
{
    (void)user;
    (void)step;
    (void)k;
    return STEPGRAPH_OK;
}

START_TEST(what_replays_as_often_as_it_likes_is_refused_where_ranks_agree)
{
    stepgraph_check_config check = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_relax_config relax = STEPGRAPH_RELAX_CONFIG_INIT;

    check.enqueue = enqueue_nothing;
    ranks[0].config.check = &check;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, &ranks[0].config, &ranks[0].loop), "agree", "check by callbacks");
    ranks[0].config.check = NULL;
    ranks[0].config.relax = &relax;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_loop_create(session, &ranks[0].config, &ranks[0].loop), "agree", "relax");
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("loop_ranks");
    TCase *together = unit_case(suite, "together"), *failures = unit_case(suite, "failures"), *apart = unit_case(suite, "alone");
    TCase *all[] = {together, failures, apart};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tcase_add_checked_fixture(all[i], setup, teardown);
        tcase_set_timeout(all[i], 120);
    }
    tcase_add_loop_test(together, what_one_rank_finds_decides_for_all, 0, (CASES - TIMED) * RANKS);
    add_controlled_loop_test(together, what_one_rank_finds_decides_for_all, (CASES - TIMED) * RANKS, CASES * RANKS);
    tcase_add_test(together, replays_do_not_ask);
    tcase_add_loop_test(together, noise_of_one_rank_hides_nothing_in_another, 0, RANKS);

    add_controlled_loop_test(failures, driver_call_that_fails_for_one_rank_ends_both_or_none, 0,
                             (int)(sizeof entries / sizeof *entries));

    tcase_add_loop_test(apart, ranks_that_cannot_agree_end_the_turn_whatever_it_is, NONE, TROUBLES);
    tcase_add_test(apart, answers_that_no_rank_can_have_given_are_refused);
    tcase_add_test(apart, refused_replay_is_an_error_where_others_have_replayed);
    tcase_add_test(apart, what_replays_as_often_as_it_likes_is_refused_where_ranks_agree);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
