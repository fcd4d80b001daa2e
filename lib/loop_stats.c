/* What a loop counts, and its getters. */
#include "loop_p.h"

#include <stdio.h>

#include "launchable.h"
#include "structs.h"

/* ---- names ------------------------------------------------------------------------------------------------------- */

const char *stepgraph_rung_name(uint32_t rung)
{
    static const char *const names[] = {"not decided", "replay", "rerecord", "fresh"};

    return rung < sizeof names / sizeof *names ? names[rung] : "unknown rung";
}

const char *stepgraph_turn_kind_name(uint32_t kind)
{
    static const char *const names[STEPGRAPH_TURN_KINDS] = {
        "none", "warm-up", "rehearsal", "record", "look", "check", "replay", "rerecord", "fresh", "fallback",
    };

    return kind < STEPGRAPH_TURN_KINDS ? names[kind] : "unknown kind";
}

const char *stepgraph_why_name(uint32_t why)
{
    static const char *const names[STEPGRAPH_WHYS] = {
        [STEPGRAPH_WHY_NONE] = "nothing",
        [STEPGRAPH_WHY_STARTING] = "starting",
        [STEPGRAPH_WHY_DECLARED] = "declared",
        [STEPGRAPH_WHY_BROKEN] = "broken recording",
        [STEPGRAPH_WHY_REFUSED] = "refused by the audit",
        [STEPGRAPH_WHY_UNREGISTERED] = "unregistered memory",
        [STEPGRAPH_WHY_MOVED] = "moved pointer",
        [STEPGRAPH_WHY_SCALAR] = "changing scalar",
        [STEPGRAPH_WHY_TOPOLOGY] = "other nodes",
        [STEPGRAPH_WHY_UPDATE] = "updates refused",
        [STEPGRAPH_WHY_DIVERGED] = "diverged",
        [STEPGRAPH_WHY_UNPROVEN] = "unproven",
        [STEPGRAPH_WHY_MEMORY] = "memory",
        [STEPGRAPH_WHY_BOUND] = "too many keys",
        [STEPGRAPH_WHY_REPLAY] = "replay failed",
        [STEPGRAPH_WHY_CLOCK] = "slower",
        [STEPGRAPH_WHY_DROPPED] = "dropped by the host",
    };

    return why < STEPGRAPH_WHYS ? names[why] : "unknown reason";
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

void sg__loop_count(stepgraph_loop *loop, sg__lane *lane, uint32_t kind, uint32_t why)
{
    loop->stats.turns[kind]++;
    if (kind == STEPGRAPH_TURN_REHEARSAL || kind == STEPGRAPH_TURN_LOOK)
        return;
    loop->stats.steps++;
    lane->steps++;
    lane->fed_before = loop->session->pin_stats.feeds;
    if (lane->step != NULL && (lane->step->flags & STEPGRAPH_STEP_STRICT_FEEDS) != 0)
        sg__step_use_feeds(lane->step);
    lane->replays += kind == STEPGRAPH_TURN_REPLAY ? 1 : 0;
    lane->rerecords += kind == STEPGRAPH_TURN_RERECORD ? 1 : 0;
    if (why != STEPGRAPH_WHY_NONE)
        loop->stats.causes[why]++;
}

void sg__loop_collect(stepgraph_loop *loop, const stepgraph_step *step)
{
    if (step == NULL)
        return;
    loop->stats.instantiations += step->instantiations;
    loop->stats.updates += step->updates;
    loop->stats.updates_refused += step->updates_refused;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double sg__lane_saved_us(const sg__lane *lane)
{
    const sg__stages *stages = lane->step != NULL ? &lane->step->stages : NULL;
    double fresh, replay, record, saved = 0;

    if (stages == NULL || stages->host_us.n == 0)
        return 0;
    fresh = larger(sg__series_median(&stages->host_us), sg__series_median(&stages->device_us));
    replay = larger(sg__series_median(&stages->replay_host_us), sg__series_median(&stages->replay_device_us));
    record = sg__series_median(&lane->rerecord_us);
    if (replay >= 0)
        saved += (double)lane->replays * (fresh - replay);
    if (record >= 0)
        saved += (double)lane->rerecords * (fresh - record);
    return saved;
}

/* ---- getters ----------------------------------------------------------------------------------------------------- */

stepgraph_status stepgraph_loop_get_stats(const stepgraph_loop *loop, stepgraph_loop_stats *stats_out)
{
    stepgraph_loop_stats stats;
    double saved_us;

    sg__error_clear();
    if (loop == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no loop to ask: the pointer is NULL");
    stats = loop->stats;
    saved_us = loop->saved_us;
    for (uint32_t i = 0; i < loop->config.max_graphs; i++) {
        const sg__lane *lane = &loop->lanes[i];
        const stepgraph_step *steps[] = {lane->step, lane->first};
        if (!lane->used)
            continue;
        saved_us += sg__lane_saved_us(lane);
        for (int j = 0; j < 2; j++) {
            if (steps[j] == NULL)
                continue;
            stats.instantiations += steps[j]->instantiations;
            stats.updates += steps[j]->updates;
            stats.updates_refused += steps[j]->updates_refused;
        }
        if (!sg__lane_has_graph(lane))
            continue;
        stats.graphs++;
        stats.nodes += lane->step->stats.nodes_total;
        stats.device_bytes += sg__step_device_bytes(lane->step);
        stats.host_bytes += sg__step_host_bytes(lane->step);
        stats.relaxed += lane->step->relaxed != NULL ? 1 : 0;
    }
    stats.seconds_saved = saved_us / 1e6;
    if (loop->last != NULL) {
        stats.rung = sg__lane_rung(loop->last);
        stats.why = loop->last->why;
        snprintf(stats.words, sizeof stats.words, "%s", loop->last->words);
    }
    return sg__struct_write(stats_out, &stats, sizeof stats, offsetof(stepgraph_loop_stats, retries), "stepgraph_loop_stats");
}

stepgraph_status stepgraph_loop_get_graph(const stepgraph_loop *loop, uint32_t index, stepgraph_loop_graph *graph_out)
{
    stepgraph_loop_graph graph = STEPGRAPH_LOOP_GRAPH_INIT;
    const sg__lane *lane = NULL;

    sg__error_clear();
    if (loop == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no loop to ask: the pointer is NULL");
    for (uint32_t i = 0, n = 0; lane == NULL && i < loop->config.max_graphs; i++)
        if (loop->lanes[i].used && n++ == index)
            lane = &loop->lanes[i];
    if (lane == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "loop '%s' has no key of index %u", loop->name, index);
    graph.key = lane->key;
    graph.rung = sg__lane_rung(lane);
    graph.why = lane->why;
    graph.steps = lane->steps;
    graph.replays = lane->replays;
    graph.turns_ago = loop->turn - lane->last_turn;
    snprintf(graph.words, sizeof graph.words, "%s", lane->words);
    if (sg__lane_has_graph(lane)) {
        graph.nodes = lane->step->stats.nodes_total;
        graph.device_bytes = sg__step_device_bytes(lane->step);
        graph.host_bytes = sg__step_host_bytes(lane->step);
    }
    return sg__struct_write(graph_out, &graph, sizeof graph, offsetof(stepgraph_loop_graph, steps), "stepgraph_loop_graph");
}

stepgraph_status stepgraph_loop_get_verdict(stepgraph_loop *loop, uint64_t key, stepgraph_verdict *verdict_out)
{
    const sg__lane *lane;

    sg__error_clear();
    if (loop == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no loop to judge: the pointer is NULL");
    lane = sg__lane_of(loop, key);
    if (lane == NULL || lane->step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "loop '%s' has done no step of key %llu", loop->name, (unsigned long long)key);
    return stepgraph_step_get_verdict(lane->step, verdict_out);
}

const stepgraph_audit *stepgraph_loop_audit(const stepgraph_loop *loop, uint64_t key)
{
    const sg__lane *lane = loop != NULL ? sg__lane_of(loop, key) : NULL;

    return lane != NULL ? lane->audit : NULL;
}

const stepgraph_check *stepgraph_loop_check(const stepgraph_loop *loop, uint64_t key)
{
    const sg__lane *lane = loop != NULL ? sg__lane_of(loop, key) : NULL;

    return lane != NULL ? lane->check : NULL;
}

stepgraph_step *stepgraph_loop_step(const stepgraph_loop *loop, uint64_t key)
{
    const sg__lane *lane = loop != NULL ? sg__lane_of(loop, key) : NULL;

    return lane != NULL ? lane->step : NULL;
}

const stepgraph_relax *stepgraph_loop_relax(const stepgraph_loop *loop, uint64_t key)
{
    const sg__lane *lane = loop != NULL ? sg__lane_of(loop, key) : NULL;

    return lane != NULL ? lane->relax : NULL;
}
