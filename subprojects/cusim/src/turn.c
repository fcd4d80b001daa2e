/*
 * Whose turn it is, when the order is to come from a seed (CUSIM_SEED).
 *
 * Without a seed each stream's thread runs its work as soon as it may, and the order between streams is the machine's. With one,
 * work begins only while a thread of the program waits for it, once it is known which streams could go on, and one of these is
 * drawn; and so is the order of a graph's nodes, among those that its edges allow. A program with one thread thus sees the same order for the same seed. Work that nobody waits for goes on after a while
 * in which no call is made, so that a program which watches memory does not hang.
 */
#include "core.h"

#include <time.h>

#define IDLE_NS 10000000u

static uint64_t state;
static CUstream holder;

static uint64_t draw(void)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

void cs_turn_seed(uint64_t seed)
{
    cs.seed = seed;
    state = seed;
}

/* Its thread is on the way to ask for a turn. */
static bool on_the_way(CUstream s)
{
    if (!s->head || s->asks || s == holder)
        return false;
    for (size_t i = 0; i < s->head->num_waits; i++)
        if (!s->head->waits[i]->done)
            return false;
    return true;
}

static void grant(bool force)
{
    size_t n, asking = 0;
    CUstream *all = cs_streams_running(&n), chosen = NULL;

    if (!cs.seed || holder || (!force && cs.waiting == 0))
        return;
    for (size_t i = 0; i < n; i++) {
        if (!force && on_the_way(all[i]))
            return;
        asking += all[i]->asks;
    }
    if (asking == 0)
        return;
    /* By id, so that the order in which the threads began does not count. */
    uint64_t last = 0;
    for (size_t pick = draw() % asking + 1; pick > 0; pick--) {
        chosen = NULL;
        for (size_t i = 0; i < n; i++)
            if (all[i]->asks && all[i]->id > last && (!chosen || all[i]->id < chosen->id))
                chosen = all[i];
        last = chosen->id;
    }
    chosen->asks = false;
    holder = chosen;
    pthread_cond_signal(&chosen->wake);
}

void cs_turn_take(CUstream s)
{
    uint64_t calls;

    if (!cs.seed)
        return;
    s->asks = true;
    grant(false);
    calls = cs.calls;
    while (holder != s && !cs.exiting) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += IDLE_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&s->wake, &cs.lock, &until) != 0 && holder != s) {
            if (calls == cs.calls)
                grant(true);
            calls = cs.calls;
        }
    }
    s->asks = false;
}

void cs_turn_give(CUstream s)
{
    if (holder != s)
        return;
    holder = NULL;
    grant(false);
}

/* A thread of the program begins or ceases to wait. */
void cs_turn_waiting(bool begins)
{
    if (cs_me.stream)
        return;
    if (begins) {
        cs.waiting++;
        grant(false);
    } else {
        cs.waiting--;
    }
}

void cs_turn_poll(void)
{
    if (!cs.seed)
        return;
    cs_turn_waiting(true);
    cs_turn_waiting(false);
}

/* In the middle of work that waits for others; without the lock. */
void cs_turn_pause(void)
{
    if (!cs.seed || !cs_me.stream)
        return;
    pthread_mutex_lock(&cs.lock);
    cs_turn_give(cs_me.stream);
    pthread_mutex_unlock(&cs.lock);
}

void cs_turn_resume(void)
{
    if (!cs.seed || !cs_me.stream)
        return;
    pthread_mutex_lock(&cs.lock);
    cs_turn_take(cs_me.stream);
    pthread_mutex_unlock(&cs.lock);
}

size_t cs_turn_draw(size_t n)
{
    return draw() % n;
}

/* Between two nodes of a graph. */
void cs_turn_between(void)
{
    pthread_mutex_lock(&cs.lock);
    if (draw() % 4 == 0) {
        cs_turn_give(cs_me.stream);
        cs_turn_take(cs_me.stream);
    }
    pthread_mutex_unlock(&cs.lock);
}
