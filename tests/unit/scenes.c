#include "scenes.h"

struct scene scene;
stepgraph_pin *w, *x, *one, *out, *scratch, *constant;
stepgraph_loop *loop;
stepgraph_turn turn;

static void setup(void)
{
    reopen_listening(STEPGRAPH_LOG_INFO);
    memset(&scene, 0, sizeof scene);
    loop = NULL;
    turn = (stepgraph_turn)STEPGRAPH_TURN_INIT;
    w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    x = pin_make(session, STEPGRAPH_ROLE_FEED, 4, "x");
    one = pin_make(session, STEPGRAPH_ROLE_CELL, 4, "one");
    out = pin_make(session, STEPGRAPH_ROLE_OUTPUT, 8, "out");
    scratch = pin_make(session, STEPGRAPH_ROLE_SCRATCH, 4, "scratch");
}

static void teardown(void)
{
    stepgraph_loop_destroy(loop);
    loop = NULL;
}

void act(void (*feed)(uint64_t), void (*run)(uint64_t), stepgraph_pin *a, stepgraph_pin *b)
{
    scene.feed = feed;
    scene.run = run;
    scene.held[0] = a;
    scene.held[1] = b;
    scene.n = b != NULL ? 2 : 1;
}

void add(stepgraph_pin *p, float v)
{
    inc(stream, stepgraph_pin_address(p), v);
}

void zero(void)
{
    stepgraph_pin *all[] = {w, out, scratch};

    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        const float none[2] = {0};
        OK(stepgraph_pin_write(all[i], none, stepgraph_pin_bytes(all[i])));
    }
}

void by_hand(unsigned steps, float right[MOST][2])
{
    zero();
    for (uint64_t k = 0; k < steps; k++) {
        if (scene.feed != NULL)
            scene.feed(k);
        OK(stepgraph_session_flush(session));
        scene.run(k);
    }
    for (unsigned i = 0; i < scene.n; i++)
        bytes_at(stepgraph_pin_address(scene.held[i]), right[i], stepgraph_pin_bytes(scene.held[i]));
    zero();
}

void check_right(float right[MOST][2])
{
    for (unsigned i = 0; i < scene.n; i++) {
        float now[2];
        bytes_at(stepgraph_pin_address(scene.held[i]), now, stepgraph_pin_bytes(scene.held[i]));
        ck_assert_msg(memcmp(now, right[i], stepgraph_pin_bytes(scene.held[i])) == 0, "'%s' holds %g, %g", stepgraph_pin_name(scene.held[i]), now[0], now[1]);
    }
}

void run_beside(uint64_t k)
{
    (void)k;
    add(w, 1);
    add(out, 1);
}

void loop_make(uint32_t flags, uint64_t check_every)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;

    config.flags = flags | STEPGRAPH_LOOP_IGNORE_CLOCK;
    config.check_every = check_every;
    config.executables = 1;
    OK(stepgraph_loop_create(session, &config, &loop));
}

stepgraph_status round_of(uint64_t k)
{
    stepgraph_status status = stepgraph_loop_begin(loop, k, &turn);

    if (status != STEPGRAPH_OK)
        return status;
    if (turn.feed && scene.feed != NULL)
        scene.feed(k);
    if (turn.run)
        scene.run(k);
    return stepgraph_loop_end(loop, &turn);
}

void go(uint64_t from, uint64_t to)
{
    for (uint64_t k = from; k < to; k++)
        do {
            OK(round_of(k));
            ck_assert_str_eq(last_words(), "");
        } while (turn.again);
}

stepgraph_loop_stats stats_now(void)
{
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;

    OK(stepgraph_loop_get_stats(loop, &stats));
    return stats;
}

uint64_t until_check(void)
{
    uint64_t k = 0;

    while (turn.kind != STEPGRAPH_TURN_CHECK)
        go(k, k + 1), k++;
    return k;
}

float frozen_from, by;

void run_noisy(uint64_t k)
{
    add(scratch, 1);
    axpb(stream, stepgraph_pin_address(out), stepgraph_pin_address(scratch), 0);
    add(w, (float)k < frozen_from ? 1 : by);
}

void feed_one(uint64_t k)
{
    (void)k;
    OK(stepgraph_pin_feed_f32(one, 1));
}

void run_on_input(uint64_t k)
{
    (void)k;
    add(x, 100);
    update(stream, stepgraph_pin_address(w), stepgraph_pin_address(w), stepgraph_pin_address(x), stepgraph_pin_address(one), 1);
}

void feed_both(uint64_t k)
{
    OK(stepgraph_pin_feed_f32(x, (float)k));
    feed_one(k);
}

TCase *scene_case(Suite *suite, const char *name)
{
    TCase *made = unit_case(suite, name);

    tcase_add_checked_fixture(made, setup, teardown);
    return made;
}
