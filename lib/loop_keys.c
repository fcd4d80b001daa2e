/* Lanes: one for each key, as many as graphs may live, the least recently used given up for a new one. */
#include "loop_p.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launchable.h"

/* What the loop's own steps may hold beyond the host's flags: it looks at these findings itself, since a step that is recorded
 * every time may hold them. */
#define LET_PASS ((uint32_t)(STEPGRAPH_STEP_ALLOW_UNREGISTERED | STEPGRAPH_STEP_ALLOW_FORMER_STATE))

/* A lane is given up for another key only when it has not been used for so many turns for each lane: with one key more than
 * lanes, each in its turn, every step would be a recording otherwise. */
#define IDLE_TURNS 4u

/* ---- finding ----------------------------------------------------------------------------------------------------- */

sg__lane *sg__lane_of(const stepgraph_loop *loop, uint64_t key)
{
    for (uint32_t i = 0; i < loop->config.max_graphs; i++)
        if (loop->lanes[i].used && loop->lanes[i].key == key)
            return &loop->lanes[i];
    return NULL;
}

static bool idle(const stepgraph_loop *loop, const sg__lane *lane)
{
    return loop->turn - lane->last_turn >= (uint64_t)IDLE_TURNS * loop->config.max_graphs;
}

/* The least recently used one that may go; NULL: none. With a graph: of those that have one, but for this one. */
static sg__lane *oldest_idle(const stepgraph_loop *loop, bool with_graph, const sg__lane *but)
{
    sg__lane *oldest = NULL;

    for (uint32_t i = 0; i < loop->config.max_graphs; i++) {
        sg__lane *lane = &loop->lanes[i];
        if (lane->used && lane != but && (!with_graph || sg__lane_has_graph(lane)) && idle(loop, lane) && (oldest == NULL || lane->last_turn < oldest->last_turn))
            oldest = lane;
    }
    return oldest;
}

static void begin_lane(sg__lane *lane, uint64_t key)
{
    memset(lane, 0, sizeof *lane);
    lane->key = key;
    lane->used = true;
    lane->why = STEPGRAPH_WHY_STARTING;
    lane->until_check = UINT64_MAX;
    lane->right_at = UINT64_MAX;
    lane->first_us = -1;
}

stepgraph_status sg__lane_find(stepgraph_loop *loop, uint64_t key, sg__lane **lane_out)
{
    sg__lane *lane = sg__lane_of(loop, key);

    for (uint32_t i = 0; lane == NULL && i < loop->config.max_graphs; i++)
        if (!loop->lanes[i].used) {
            lane = &loop->lanes[i];
            begin_lane(lane, key);
        }
    if (lane == NULL && (lane = oldest_idle(loop, false, NULL)) != NULL) {
        sg__log(loop->session, STEPGRAPH_LOG_INFO, "loop '%s': key %llu, not used for %llu turns, makes room for key %llu",
                loop->name, (unsigned long long)lane->key, (unsigned long long)(loop->turn - lane->last_turn),
                (unsigned long long)key);
        loop->stats.graphs_dropped += sg__lane_has_graph(lane) ? 1 : 0;
        sg__lane_free(loop, lane);
        begin_lane(lane, key);
    }
    if (lane == NULL) {
        lane = &loop->outside;
        if (!lane->used) {
            begin_lane(lane, key);
            sg__lane_move(loop, lane, SG__PHASE_FRESH, STEPGRAPH_WHY_BOUND,
                          "more keys come in turn than graphs may live (max_graphs): steps of the others are launched");
        }
        lane->key = key;
    }
    *lane_out = lane;
    return STEPGRAPH_OK;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

void sg__lane_time(const stepgraph_loop *loop, sg__lane *lane)
{
    bool on = (loop->config.flags & (STEPGRAPH_LOOP_TIMING | STEPGRAPH_LOOP_TRACE)) != 0 || lane->phase < SG__PHASE_REPLAY ||
              (lane->phase == SG__PHASE_REPLAY && lane->timed_left > 1);

    if (lane->step != NULL)
        lane->step->stages.timing = on;
}

stepgraph_status sg__lane_step(stepgraph_loop *loop, sg__lane *lane, sg__which which, stepgraph_step **step_out)
{
    static const char *const names[] = {"", " (first recording)", " (third recording)"};
    stepgraph_step **const places[] = {&lane->step, &lane->first, &loop->look}, **place = places[which];
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_status status = STEPGRAPH_OK;
    char name[160];

    if (*place == NULL) {
        if (lane == &loop->outside)
            snprintf(name, sizeof name, "%.100s, other keys", loop->name);
        else if (lane->key == 0)
            snprintf(name, sizeof name, "%.100s%s", loop->name, names[which]);
        else
            snprintf(name, sizeof name, "%.100s, key %llu%s", loop->name, (unsigned long long)lane->key, names[which]);
        config.name = name;
        config.flags = loop->config.step_flags | LET_PASS;
        config.liveness_every = loop->config.liveness_every;
        status = stepgraph_step_begin(loop->session, &config, place);
        if (status != STEPGRAPH_OK)
            return status;
        (*place)->in_loop = true;
        if (place == &lane->step) {
            sg__lane_time(loop, lane);
            sg__trace_watch(loop, lane);
        }
    }
    *step_out = *place;
    return status;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

bool sg__lane_has_graph(const sg__lane *lane)
{
    return lane->used && lane->step != NULL && lane->step->exec != NULL;
}

void sg__lane_drop_graph(stepgraph_loop *loop, sg__lane *lane)
{
    sg__loop_collect(loop, lane->first);
    stepgraph_step_destroy(lane->first);
    lane->first = NULL;
    if (lane->step != NULL && stepgraph_step_state(lane->step) != STEPGRAPH_STEP_BEGUN)
        (void)stepgraph_step_reset(lane->step);
    lane->planted = lane->relax_tried = false;
    lane->unlike = 0;
}

void sg__lane_free(stepgraph_loop *loop, sg__lane *lane)
{
    if (!lane->used)
        return;
    loop->saved_us += sg__lane_saved_us(lane);
    sg__loop_collect(loop, lane->first);
    sg__loop_collect(loop, lane->step);
    stepgraph_step_destroy(lane->first);
    stepgraph_step_destroy(lane->step);
    stepgraph_audit_destroy(lane->audit);
    stepgraph_check_destroy(lane->check);
    stepgraph_relax_destroy(lane->relax);
    if (loop->last == lane)
        loop->last = NULL;
    memset(lane, 0, sizeof *lane);
}

uint64_t sg__lane_room(stepgraph_loop *loop, sg__lane *lane)
{
    uint64_t limit = loop->config.graph_bytes, taken = 0;

    if (limit == 0)
        return 0;
    for (uint32_t i = 0; i < loop->config.max_graphs; i++)
        if (&loop->lanes[i] != lane && sg__lane_has_graph(&loop->lanes[i]))
            taken += sg__step_device_bytes(loop->lanes[i].step);
    return taken < limit ? limit - taken : 1;
}

void sg__lane_make_room(stepgraph_loop *loop, sg__lane *lane)
{
    sg__lane *oldest = oldest_idle(loop, true, lane);

    if (oldest == NULL)
        return;
    sg__log(loop->session, STEPGRAPH_LOG_INFO,
            "loop '%s': the graph of key %llu, not used for %llu turns, makes room for that of key %llu", loop->name,
            (unsigned long long)oldest->key, (unsigned long long)(loop->turn - oldest->last_turn), (unsigned long long)lane->key);
    loop->stats.graphs_dropped++;
    sg__lane_drop_graph(loop, oldest);
    oldest->phase = SG__PHASE_FIRST;
    oldest->why = STEPGRAPH_WHY_STARTING;
}
