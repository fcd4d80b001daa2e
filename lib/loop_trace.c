/*
 * The latest turns, as trace events.
 *
 * A turn is one event on the host's line, with the stages of a launched step inside; what it did on the device is another, on the
 * device's line, once its events have happened. The device's clock is another one than the host's: a piece of work is shown where
 * it can have been, after the host had begun it and after the one before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "loop_p.h"

typedef struct sg__trace_segment {
    char name[64];
    uint64_t start_ns, end_ns;
    double device_us; /* Negative: not known. */
} sg__trace_segment;

typedef struct sg__trace_turn_record {
    uint64_t tag; /* Number of the turn; 0: none yet. */
    uint64_t k, key, start_ns, end_ns;
    uint32_t kind, why;
    sg__trace_segment *segments;
    uint32_t n, room;
} sg__trace_turn_record;

struct sg__trace {
    sg__trace_turn_record *turns;
    uint32_t room;
    uint64_t n; /* Turns so far; the number of the latest. */
    uint64_t origin_ns;
};

stepgraph_status sg__trace_make(stepgraph_loop *loop)
{
    sg__trace *trace = calloc(1, sizeof *trace);

    if (trace == NULL)
        return sg__fail_memory("host", sizeof *trace);
    loop->trace = trace;
    trace->origin_ns = sg__clock_ns();
    trace->room = loop->config.trace_turns;
    trace->turns = calloc(trace->room, sizeof *trace->turns);
    return trace->turns != NULL ? STEPGRAPH_OK : sg__fail_memory("host", trace->room * sizeof *trace->turns);
}

void sg__trace_free(stepgraph_loop *loop)
{
    sg__trace *trace = loop->trace;

    for (uint32_t i = 0; trace != NULL && trace->turns != NULL && i < trace->room; i++)
        free(trace->turns[i].segments);
    if (trace != NULL)
        free(trace->turns);
    free(trace);
    loop->trace = NULL;
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

static void collected(void *user, uint64_t tag, uint32_t segment, double us)
{
    sg__trace *trace = user;
    sg__trace_turn_record *turn = &trace->turns[tag % trace->room];

    if (tag != 0 && turn->tag == tag && segment < turn->n)
        turn->segments[segment].device_us = us;
}

void sg__trace_watch(stepgraph_loop *loop, sg__lane *lane)
{
    if (loop->trace == NULL)
        return;
    lane->step->stages.collected = collected;
    lane->step->stages.collected_user = loop->trace;
    lane->step->stages.laps_most = loop->config.trace_turns;
}

/* Room for n segments; without host memory there are none. */
static bool make_room(sg__trace_turn_record *turn, uint32_t n)
{
    sg__trace_segment *larger;

    if (n <= turn->room)
        return true;
    larger = realloc(turn->segments, n * sizeof *larger);
    if (larger == NULL)
        return false;
    turn->segments = larger;
    turn->room = n;
    return true;
}

static void copy_segments(sg__trace_turn_record *turn, stepgraph_step *step, sg__lap *lap)
{
    if (lap->n < 2 || !make_room(turn, lap->n - 1))
        return;
    lap->tag = turn->tag;
    turn->n = lap->n - 1;
    for (uint32_t i = 0; i < turn->n; i++) {
        const sg__segment *segment = &lap->segments[i];
        sg__trace_segment *to = &turn->segments[i];
        *to = (sg__trace_segment){.start_ns = segment->start_ns, .end_ns = segment[1].start_ns, .device_us = -1};
        memcpy(to->name, step->stages.stages[segment->stage]->name, sizeof to->name);
    }
}

void sg__trace_turn(stepgraph_loop *loop, const sg__lane *lane, uint32_t kind, uint64_t end_ns)
{
    sg__trace *trace = loop->trace;
    uint64_t tag = ++trace->n;
    sg__trace_turn_record *turn = &trace->turns[tag % trace->room];
    stepgraph_step *step = lane->step;
    sg__stages *stages = &step->stages;

    turn->tag = tag;
    turn->k = loop->k;
    turn->key = lane->key;
    turn->kind = kind;
    turn->why = loop->why;
    turn->start_ns = loop->start_ns;
    turn->end_ns = end_ns;
    turn->n = 0;
    switch (kind) {
    case STEPGRAPH_TURN_REPLAY:
    case STEPGRAPH_TURN_RERECORD:
        if (stages->timing && stages->replay_laps.over != NULL)
            copy_segments(turn, step, stages->replay_laps.over);
        break;
    case STEPGRAPH_TURN_RECORD:
    case STEPGRAPH_TURN_LOOK:
        break;
    default:
        if (stages->run_laps.over != NULL)
            copy_segments(turn, step, stages->run_laps.over);
        break;
    }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* In nanoseconds since the trace began. Viewers want events that lie within each other or apart, to the last digit. */
static void add_event(sg__text *text, const char *name, const char *line, uint64_t start_ns, uint64_t ns,
                      const sg__trace_turn_record *turn)
{
    sg__text_add(text, ",\n{\"name\": ");
    sg__text_quoted(text, name);
    sg__text_add(text,
                 ", \"ph\": \"X\", \"pid\": 1, \"tid\": %s, \"ts\": %llu.%03u, \"dur\": %llu.%03u, \"args\": {\"step\": %llu, "
                 "\"key\": %llu, \"kind\": \"%s\"",
                 line, (unsigned long long)start_ns / 1000, (unsigned)(start_ns % 1000), (unsigned long long)ns / 1000,
                 (unsigned)(ns % 1000), (unsigned long long)turn->k, (unsigned long long)turn->key,
                 stepgraph_turn_kind_name(turn->kind));
    if (turn->why != STEPGRAPH_WHY_NONE)
        sg__text_add(text, ", \"why\": \"%s\"", stepgraph_why_name(turn->why));
    sg__text_add(text, "}}");
}

static uint64_t since(const sg__trace *trace, uint64_t ns)
{
    return ns > trace->origin_ns ? ns - trace->origin_ns : 0;
}

static void write_turn(const sg__trace *trace, const sg__trace_turn_record *turn, uint64_t *device_end, sg__text *text)
{
    char name[96];

    snprintf(name, sizeof name, "step %llu: %s", (unsigned long long)turn->k, stepgraph_turn_kind_name(turn->kind));
    add_event(text, name, "1", since(trace, turn->start_ns), turn->end_ns - turn->start_ns, turn);
    for (uint32_t i = 0; i < turn->n; i++) {
        const sg__trace_segment *segment = &turn->segments[i];
        const char *stage = segment->name[0] != '\0' ? segment->name : stepgraph_turn_kind_name(turn->kind);
        uint64_t start = since(trace, segment->start_ns), ns;
        if (segment->name[0] != '\0')
            add_event(text, stage, "1", start, segment->end_ns - segment->start_ns, turn);
        if (segment->device_us < 0)
            continue;
        ns = (uint64_t)(segment->device_us * 1000.0);
        start = start > *device_end ? start : *device_end;
        add_event(text, stage, "2", start, ns, turn);
        *device_end = start + ns;
    }
}

stepgraph_status sg__trace_write(stepgraph_loop *loop, sg__text *text)
{
    const sg__trace *trace = loop->trace;
    stepgraph_status status = sg__enter(loop->session);
    uint64_t first = trace->n > trace->room ? trace->n - trace->room + 1 : 1, device_end = 0;

    if (status != STEPGRAPH_OK)
        return status;
    for (uint32_t i = 0; i < loop->config.max_graphs && status == STEPGRAPH_OK; i++)
        if (loop->lanes[i].used && loop->lanes[i].step != NULL)
            status = sg__stages_collect(loop->lanes[i].step);
    sg__leave(loop->session);
    if (status != STEPGRAPH_OK)
        return status;

    sg__text_add(text, "{\"displayTimeUnit\": \"ms\", \"otherData\": {\"device\": ");
    sg__text_quoted(text, loop->session->info.device_name);
    sg__text_add(text,
                 ", \"software\": %s}, \"traceEvents\": [\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": 1, "
                 "\"args\": {\"name\": ",
                 loop->session->info.software != 0 ? "true" : "false");
    sg__text_quoted(text, loop->name);
    sg__text_add(text, "}},\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": 1, \"args\": {\"name\": \"host\"}}");
    sg__text_add(text, ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": 2, \"args\": {\"name\": \"device\"}}");
    for (uint64_t tag = first; tag <= trace->n; tag++)
        write_turn(trace, &trace->turns[tag % trace->room], &device_end, text);
    sg__text_add(text, "\n]}\n");
    return STEPGRAPH_OK;
}
