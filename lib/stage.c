/* Marks, runs and their timing. */
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "feed.h"
#include "graph/graph.h"
#include "room.h"
#include "step_p.h"
#include "structs.h"

/* ---- series ------------------------------------------------------------------------------------------------------ */

void sg__series_add(sg__series *series, double value)
{
    series->values[series->n++ % SG__SERIES_ROOM] = value;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double sg__series_median(const sg__series *series)
{
    double sorted[SG__SERIES_ROOM];
    size_t n = series->n < SG__SERIES_ROOM ? (size_t)series->n : SG__SERIES_ROOM;

    if (n == 0)
        return -1;
    memcpy(sorted, series->values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return n % 2 != 0 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* ---- laps -------------------------------------------------------------------------------------------------------- */

/* While the device is behind, each question whether a lap is over costs the host a microsecond or so: so many laps go by before the next one, unless
 * there is no room for another. */
#define PATIENCE 3u

/* Begin a segment, or note the end: read the clock and the counter, record an event. */
static stepgraph_status lap_point(stepgraph_step *step, sg__lap *lap, uint32_t stage)
{
    const sg__driver *driver = step->session->driver;
    stepgraph_status status;
    void *larger;

    if (lap->n == lap->room) {
        uint32_t room = lap->room != 0 ? 2 * lap->room : 4;
        larger = realloc(lap->segments, room * sizeof *lap->segments);
        if (larger == NULL)
            return sg__fail_memory("host", room * sizeof *lap->segments);
        lap->segments = larger;
        larger = realloc(lap->events, room * sizeof *lap->events);
        if (larger == NULL)
            return sg__fail_memory("host", room * sizeof *lap->events);
        lap->events = larger;
        lap->room = room;
    }
    if (lap->timed) {
        if (lap->n == lap->n_events) {
            SG__CU(driver, EventCreate, &lap->events[lap->n], CU_EVENT_DEFAULT);
            lap->n_events++;
        }
        SG__CU(driver, EventRecord, lap->events[lap->n], step->session->stream);
    }
    lap->segments[lap->n++] = (sg__segment){.stage = stage, .start_ns = sg__clock_ns(), .counted = sg__counted_all(step->session),
                                                .library = sg__counted_library(step->session)};
    return STEPGRAPH_OK;

fail:
    return status;
}

static void spare(sg__laps *laps, sg__lap *lap)
{
    lap->next = laps->spare;
    laps->spare = lap;
}

/* Take the device time of the oldest lap; *over false: it is not over on the device. */
static stepgraph_status collect_first(stepgraph_step *step, sg__laps *laps, bool *over)
{
    const sg__driver *driver = step->session->driver;
    sg__stages *stages = &step->stages;
    bool runs = laps == &stages->run_laps, seen[SG__STAGES_MAX] = {false};
    double sums[SG__STAGES_MAX] = {0}, total = 0;
    sg__lap *lap = laps->first;
    float milliseconds = 0;
    /* The last segment is over last. */
    CUresult code = driver->EventElapsedTime(&milliseconds, lap->events[lap->n - 2], lap->events[lap->n - 1]);

    *over = code != CUDA_ERROR_NOT_READY;
    if (!*over)
        return STEPGRAPH_OK;
    laps->first = lap->next;
    laps->n--;
    spare(laps, lap);
    for (uint32_t i = lap->n - 1; i-- > 0 && code == CUDA_SUCCESS;) {
        uint32_t stage = lap->segments[i].stage;
        if (i + 2 < lap->n)
            code = driver->EventElapsedTime(&milliseconds, lap->events[i], lap->events[i + 1]);
        sums[stage] += milliseconds * 1000.0;
        seen[stage] = true;
        total += milliseconds * 1000.0;
        if (stages->collected != NULL && code == CUDA_SUCCESS)
            stages->collected(stages->collected_user, lap->tag, i, milliseconds * 1000.0);
    }
    if (code != CUDA_SUCCESS)
        return sg__fail_driver(driver, "cuEventElapsedTime", code);
    sg__series_add(runs ? &stages->device_us : &stages->replay_device_us, total);
    for (uint32_t i = 0; runs && i < stages->n; i++)
        if (seen[i])
            sg__series_add(&stages->stages[i]->device_us, sums[i]);
    return STEPGRAPH_OK;
}

static stepgraph_status poll(stepgraph_step *step, sg__laps *laps)
{
    stepgraph_status status = STEPGRAPH_OK;
    bool over = true;

    while (laps->first != NULL && over && status == STEPGRAPH_OK)
        status = collect_first(step, laps, &over);
    return status;
}

static stepgraph_status collect(stepgraph_step *step, sg__laps *laps)
{
    const sg__driver *driver = step->session->driver;
    stepgraph_status status = STEPGRAPH_OK;
    bool over;

    while (laps->first != NULL && status == STEPGRAPH_OK) {
        CUstreamCaptureMode before = sg__relax(step->session);
        CUresult code = driver->EventSynchronize(laps->first->events[laps->first->n - 1]);
        sg__unrelax(step->session, before);
        if (code != CUDA_SUCCESS)
            return sg__fail_driver(driver, "cuEventSynchronize", code);
        status = collect_first(step, laps, &over);
        if (status == STEPGRAPH_OK && !over)
            return sg__fail_driver(driver, "cuEventElapsedTime", CUDA_ERROR_NOT_READY);
    }
    return status;
}

stepgraph_status sg__stages_poll(stepgraph_step *step, bool *all)
{
    stepgraph_status status = poll(step, &step->stages.run_laps);

    if (status == STEPGRAPH_OK)
        status = poll(step, &step->stages.replay_laps);
    *all = step->stages.run_laps.n + step->stages.replay_laps.n == 0;
    return status;
}

stepgraph_status sg__stages_collect(stepgraph_step *step)
{
    stepgraph_status status = collect(step, &step->stages.run_laps);

    return status == STEPGRAPH_OK ? collect(step, &step->stages.replay_laps) : status;
}

stepgraph_status sg__stages_ask(stepgraph_step *step, const char *what)
{
    stepgraph_status status = sg__not_capturing(step->session, what);

    if (status == STEPGRAPH_OK)
        status = sg__enter(step->session);
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__stages_collect(step);
    sg__leave(step->session);
    return status;
}

/* Open a lap and begin its first segment. One that was left open is begun anew. */
static stepgraph_status lap_begin(stepgraph_step *step, sg__laps *laps, uint32_t stage)
{
    stepgraph_status status;

    if (laps->patience > 0 && laps->n < step->stages.laps_most) {
        laps->patience--;
    } else {
        status = poll(step, laps);
        if (status != STEPGRAPH_OK)
            return status;
        laps->patience = laps->first != NULL ? PATIENCE : 0;
    }
    if (laps->open == NULL && laps->spare == NULL) {
        laps->spare = calloc(1, sizeof *laps->spare);
        if (laps->spare == NULL)
            return sg__fail_memory("host", sizeof *laps->spare);
    }
    if (laps->open == NULL) {
        laps->open = laps->spare;
        laps->spare = laps->open->next;
    }
    laps->open->next = NULL;
    laps->open->n = 0;
    laps->open->tag = 0;
    laps->open->timed = step->stages.timing && laps->n < step->stages.laps_most;
    return lap_point(step, laps->open, stage);
}

/* It is over for the host. measured: its device time is of interest. */
static void lap_end(sg__laps *laps, bool measured)
{
    sg__lap *lap = laps->open;

    laps->open = NULL;
    laps->over = lap;
    if (!measured || !lap->timed) {
        spare(laps, lap);
        return;
    }
    *(laps->first == NULL ? &laps->first : &laps->last->next) = lap;
    laps->last = lap;
    laps->n++;
}

static void lap_free(stepgraph_session *session, sg__lap *lap)
{
    if (lap == NULL)
        return;
    for (uint32_t i = 0; i < lap->n_events; i++)
        sg__bury(session, SG__GRAVE_EVENT, (uintptr_t)lap->events[i]);
    free(lap->events);
    free(lap->segments);
    free(lap);
}

static void laps_free(stepgraph_session *session, sg__laps *laps)
{
    sg__lap *lists[] = {laps->first, laps->spare};

    for (int i = 0; i < 2; i++)
        for (sg__lap *lap = lists[i], *next; lap != NULL; lap = next) {
            next = lap->next;
            lap_free(session, lap);
        }
    lap_free(session, laps->open);
}

void sg__stages_free(stepgraph_step *step)
{
    sg__stages *stages = &step->stages;

    laps_free(step->session, &stages->run_laps);
    laps_free(step->session, &stages->replay_laps);
    for (uint32_t i = 0; i < stages->n; i++)
        free(stages->stages[i]);
    free(stages->chapters);
    sg__name_drop(stages->name_alive);
}

/* ---- marks ------------------------------------------------------------------------------------------------------- */

/* The stage of that name, made if need be; its index. */
static stepgraph_status stage_named(sg__stages *stages, const char *name, uint32_t *index_out)
{
    sg__stage *stage;

    for (uint32_t i = 0; i < stages->n; i++)
        if (strncmp(stages->stages[i]->name, name, sizeof stages->stages[i]->name - 1) == 0) {
            *index_out = i;
            return STEPGRAPH_OK;
        }
    if (stages->n == SG__STAGES_MAX)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "stage '%s' is one too many: a step has at most %u stages", name, SG__STAGES_MAX - 1);
    stage = calloc(1, sizeof *stage);
    if (stage == NULL)
        return sg__fail_memory("host", sizeof *stage);
    snprintf(stage->name, sizeof stage->name, "%s", name);
    stages->stages[stages->n] = stage;
    *index_out = stages->n++;
    return STEPGRAPH_OK;
}

void sg__stages_place(const stepgraph_step *step, const char *next, char *text, size_t bytes)
{
    const sg__stages *stages = &step->stages;
    const char *stage = sg__stage_now(step);
    int used;

    if (next != NULL)
        used = snprintf(text, bytes, "between %s%s%s and '%s'", stage[0] != '\0' ? "'" : "", stage[0] != '\0' ? stage : "its beginning",
                        stage[0] != '\0' ? "'" : "", next);
    else
        used = snprintf(text, bytes, "between %s%s%s and its end", stage[0] != '\0' ? "'" : "", stage[0] != '\0' ? stage : "its beginning",
                        stage[0] != '\0' ? "'" : "");
    if (stages->nodes_alive > 0 && used > 0 && (size_t)used < bytes)
        snprintf(text + used, bytes - (size_t)used, ", after '%s' (node %zu)",
                 stages->name_alive != NULL ? sg__name_short(stages->name_alive) : stages->kind_alive, stages->nodes_alive - 1);
}

/* What the library itself has recorded so far. */
static uint64_t ours(const stepgraph_step *step, stepgraph_kind kind)
{
    return kind == STEPGRAPH_KIND_KERNEL ? step->pin_kernels : kind == STEPGRAPH_KIND_COPY ? step->pin_copies : 0;
}

/* From here on the recording is in another stage. */
static stepgraph_status begin_chapter(stepgraph_step *step, uint32_t stage)
{
    sg__stages *stages = &step->stages;
    sg__chapter *chapter;

    chapter = sg__room(stages->chapters, &stages->chapters_room, stages->n_chapters + 1, 16, sizeof *chapter);
    if (chapter == NULL)
        return STEPGRAPH_ERR_MEMORY;
    stages->chapters = chapter;
    stages->current = stage;
    chapter = &stages->chapters[stages->n_chapters++];
    chapter->stage = stage;
    chapter->first_node = stages->nodes_alive;
    for (int kind = 0; kind < STEPGRAPH_KINDS; kind++) {
        chapter->counted[kind] = sg__counted(step->session, (stepgraph_kind)kind);
        chapter->ours[kind] = ours(step, (stepgraph_kind)kind);
    }
    return STEPGRAPH_OK;
}

const char *sg__stage_now(const stepgraph_step *step)
{
    const sg__stages *stages = &step->stages;

    return stages->current < stages->n ? stages->stages[stages->current]->name : "";
}

const char *sg__stage_of_node(const stepgraph_step *step, uint32_t node)
{
    const sg__stages *stages = &step->stages;
    size_t i = stages->n_chapters;

    if (node >= step->read.n_nodes)
        return "";
    while (i > 1 && stages->chapters[i - 1].first_node > step->read.nodes[node].top)
        i--;
    return i > 0 ? stages->stages[stages->chapters[i - 1].stage]->name : "";
}

static uint64_t nodes_between(const stepgraph_step *step, CUgraphNodeType type, size_t first, size_t end)
{
    uint64_t n = 0;

    for (size_t i = 0; i < step->read.n_nodes; i++)
        n += step->read.nodes[i].type == type && step->read.nodes[i].top >= first && step->read.nodes[i].top < end ? 1 : 0;
    return n;
}

void sg__stages_escaped(const stepgraph_step *step, stepgraph_kind kind, CUgraphNodeType type, char *text, size_t bytes)
{
    const sg__stages *stages = &step->stages;
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; stages->n_chapters > 1 && i < stages->n_chapters; i++) {
        const sg__chapter *chapter = &stages->chapters[i];
        bool last = i + 1 == stages->n_chapters;
        uint64_t counted = (last ? sg__counted(step->session, kind) : chapter[1].counted[kind]) - chapter->counted[kind];
        uint64_t pins = (last ? ours(step, kind) : chapter[1].ours[kind]) - chapter->ours[kind];
        uint64_t recorded = nodes_between(step, type, chapter->first_node, last ? SIZE_MAX : chapter[1].first_node) - pins;
        const char *name = stages->stages[chapter->stage]->name;
        int n;

        if (counted <= recorded || used + 1 >= bytes)
            continue;
        n = snprintf(text + used, bytes - used, ", %llu of %llu in stage '%s'", (unsigned long long)recorded, (unsigned long long)counted,
                     name[0] != '\0' ? name : "before the first mark");
        used += n > 0 ? (size_t)n : 0;
    }
}

void sg__stages_record(stepgraph_step *step)
{
    sg__stages *stages = &step->stages;

    for (uint32_t i = 0; i < stages->n; i++)
        stages->stages[i]->nodes = 0;
    stages->current = SG__STAGES_MAX;
    stages->nodes_alive = 0;
    stages->n_chapters = 0;
    if (stage_named(stages, "", &stages->current) == STEPGRAPH_OK)
        (void)begin_chapter(step, stages->current);
}

void sg__stages_recorded(stepgraph_step *step, size_t nodes)
{
    sg__stages *stages = &step->stages;

    if (stages->current < stages->n && nodes > stages->nodes_alive)
        stages->stages[stages->current]->nodes += nodes - stages->nodes_alive;
    stages->nodes_alive = nodes;
}

/* Is the recording still alive, and how far has it come? */
static stepgraph_status look(stepgraph_step *step, const char *next)
{
    stepgraph_session *session = step->session;
    const sg__driver *driver = session->driver;
    sg__stages *stages = &step->stages;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphNode *last = NULL;
    cuuint64_t id = 0;
    CUgraph graph = NULL;
    size_t n_last = 0, nodes = 0;
    char place[256];
    CUresult code = driver->StreamGetCaptureInfo(session->stream, &capture, &id, &graph, &last, &n_last);

    if (code == CUDA_ERROR_LOSSY_QUERY)
        return STEPGRAPH_OK; /* Alive, with edges that this form of the question cannot tell. */
    if (code == CUDA_SUCCESS && capture == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        if (driver->GraphGetNodes(graph, NULL, &nodes) == CUDA_SUCCESS) {
            sg__stages_recorded(step, nodes);
            sg__name_drop(stages->name_alive);
            stages->name_alive = NULL;
            stages->kind_alive = n_last > 0 ? sg__graph_handle_kind(driver, last[0], &stages->name_alive) : "node";
        }
        return STEPGRAPH_OK;
    }
    sg__stages_place(step, next, place, sizeof place);
    if (code != CUDA_SUCCESS) {
        sg__fail_driver(driver, "cuStreamGetCaptureInfo", code);
        return sg__fail_prefix(STEPGRAPH_ERR_CAPTURE, "the recording of step '%s' broke %s: ", step->name, place);
    }
    if (capture == CU_STREAM_CAPTURE_STATUS_NONE)
        return sg__fail(STEPGRAPH_ERR_CAPTURE, "the recording of step '%s' was ended %s by somebody else than %s", step->name, place,
                        sg__step_end_call(step));
    return sg__step_invalidated(step, place);
}

stepgraph_status stepgraph_step_mark(stepgraph_step *step, const char *name)
{
    stepgraph_status status;
    uint32_t index;

    sg__error_clear();
    if (step == NULL || name == NULL || name[0] == '\0')
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a mark needs a step and a name");
    status = sg__name_check("stage", name);
    if (status != STEPGRAPH_OK)
        return status;
    if (step->state != STEPGRAPH_STEP_CAPTURING && step->stages.open == 0)
        return STEPGRAPH_OK;

    if (step->state == STEPGRAPH_STEP_CAPTURING) {
        status = sg__step_broken(step);
        if (status != STEPGRAPH_OK)
            return status;
        status = sg__session_alive(step->session);
        if (status == STEPGRAPH_OK)
            status = look(step, name);
        if (status != STEPGRAPH_OK) {
            sg__step_break(step);
            return sg__log_failure(step->session, status);
        }
        status = stage_named(&step->stages, name, &index);
        return status == STEPGRAPH_OK ? begin_chapter(step, index) : status;
    }
    status = stage_named(&step->stages, name, &index);
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__enter(step->session);
    if (status != STEPGRAPH_OK)
        return status;
    status = lap_point(step, step->stages.run_laps.open, index);
    sg__leave(step->session);
    return status;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

stepgraph_status stepgraph_step_run_begin(stepgraph_step *step, stepgraph_run kind)
{
    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no step to run: the pointer is NULL");
    if (kind < STEPGRAPH_RUN_WARMUP || kind > STEPGRAPH_RUN_FALLBACK)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "step '%s': unknown kind of run %d", step->name, (int)kind);
    return sg__run_begin(step, kind);
}

stepgraph_status sg__no_run_open(const stepgraph_step *step, const char *what)
{
    const stepgraph_step *running = step->session->running;

    if (running == NULL)
        return STEPGRAPH_OK;
    return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' cannot %s: a run of step '%s' is open; call %s first", step->name, what, running->name,
                    running->in_loop ? "stepgraph_loop_end()" : "stepgraph_step_run_end()");
}

static void close_run(stepgraph_step *step)
{
    step->stages.open = 0;
    step->session->running = NULL;
}

stepgraph_status sg__run_begin(stepgraph_step *step, stepgraph_run kind)
{
    stepgraph_session *session = step->session;
    sg__stages *stages = &step->stages;
    stepgraph_status status;
    uint32_t first;

    status = sg__not_capturing(session, "a run cannot begin");
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__no_run_open(step, "run");
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__session_drain(session);
    if (status != STEPGRAPH_OK)
        return status;

    status = sg__enter(session);
    if (status != STEPGRAPH_OK)
        return status;
    status = stage_named(stages, "", &first);
    if (status == STEPGRAPH_OK && session->fed)
        status = sg__feeds_send(session);
    if (status == STEPGRAPH_OK)
        status = lap_begin(step, &stages->run_laps, first);
    if (status == STEPGRAPH_OK) {
        stages->open = kind;
        session->running = step;
        if (kind != SG__RUN_CHECK && (step->flags & STEPGRAPH_STEP_STRICT_FEEDS) != 0)
            sg__step_use_feeds(step);
    }
    sg__leave(session);
    return sg__log_failure(session, status);
}

/* Host times and launches of a warm run, by stage. */
static void add_run(stepgraph_step *step, const sg__lap *lap)
{
    sg__stages *stages = &step->stages;
    double host_us[SG__STAGES_MAX] = {0};
    bool seen[SG__STAGES_MAX] = {false};
    const sg__segment *last = &lap->segments[lap->n - 1];

    for (uint32_t i = 0; i < stages->n; i++)
        stages->stages[i]->launches = stages->stages[i]->library_launches = 0;
    for (uint32_t i = 0; i + 1 < lap->n; i++) {
        const sg__segment *segment = &lap->segments[i];
        host_us[segment->stage] += (double)(segment[1].start_ns - segment->start_ns) / 1000.0;
        seen[segment->stage] = true;
        stages->stages[segment->stage]->launches += segment[1].counted - segment->counted;
        stages->stages[segment->stage]->library_launches += segment[1].library - segment->library;
    }
    for (uint32_t i = 0; stages->timing && i < stages->n; i++)
        if (seen[i])
            sg__series_add(&stages->stages[i]->host_us, host_us[i]);
    if (stages->timing)
        sg__series_add(&stages->host_us, (double)(last->start_ns - lap->segments[0].start_ns) / 1000.0);
    stages->launches_before = stages->launches;
    stages->launches = last->counted - lap->segments[0].counted;
    stages->warm_runs++;
    if (step->session->drain == NULL && sg__exactness(step->session) == STEPGRAPH_LOWER_BOUND)
        stages->deferred = true;
}

stepgraph_status stepgraph_step_run_end(stepgraph_step *step)
{
    stepgraph_session *session;
    const sg__side *side;
    stepgraph_status status;
    sg__stages *stages;
    sg__lap *lap;

    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no run to end: the step is NULL");
    session = step->session;
    stages = &step->stages;
    if (stages->open == 0)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s': no run is open; call stepgraph_step_run_begin() first", step->name);
    side = sg__step_unjoined(step);
    if (side != NULL)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s': stream '%s' was forked and not joined: call stepgraph_step_join() first", step->name,
                        side->name);
    status = sg__session_drain(session);
    if (status != STEPGRAPH_OK)
        return status;

    status = sg__enter(session);
    if (status != STEPGRAPH_OK)
        return status;
    lap = stages->run_laps.open;
    status = lap_point(step, lap, 0);
    sg__leave(session);
    if (status != STEPGRAPH_OK)
        return sg__log_failure(session, status);

    lap_end(&stages->run_laps, stages->open != SG__RUN_CHECK && stages->runs > 0);
    if (stages->open == SG__RUN_CHECK) {
        close_run(step);
        return STEPGRAPH_OK;
    }
    /* The very first run loads kernels and fills caches: it is no measurement. */
    if (stages->runs > 0)
        add_run(step, lap);
    stages->runs++;
    step->stats.warmup_runs += stages->open == STEPGRAPH_RUN_WARMUP ? 1 : 0;
    step->stats.fresh_runs += stages->open == STEPGRAPH_RUN_FRESH ? 1 : 0;
    step->stats.fallback_runs += stages->open == STEPGRAPH_RUN_FALLBACK ? 1 : 0;
    step->ran_at = session->recordings;
    step->outputs_stale = false;
    close_run(step);
    return STEPGRAPH_OK;
}

void sg__run_cancel(stepgraph_step *step)
{
    if (step->stages.open == 0)
        return;
    sg__sides_close(step);
    close_run(step);
}

/* ---- replays ----------------------------------------------------------------------------------------------------- */

stepgraph_status sg__replay_begin(stepgraph_step *step)
{
    return lap_begin(step, &step->stages.replay_laps, 0);
}

stepgraph_status sg__replay_end(stepgraph_step *step)
{
    sg__stages *stages = &step->stages;
    sg__lap *lap = stages->replay_laps.open;
    uint64_t end_ns = sg__clock_ns();
    stepgraph_status status = lap_point(step, lap, 0);

    if (status != STEPGRAPH_OK)
        return status;
    lap_end(&stages->replay_laps, true);
    sg__series_add(&stages->replay_host_us, (double)(end_ns - lap->segments[0].start_ns) / 1000.0);
    stages->timed_replays++;
    return STEPGRAPH_OK;
}

/* ---- the calls that read ----------------------------------------------------------------------------------------- */

stepgraph_status stepgraph_step_set_timing(stepgraph_step *step, int32_t on)
{
    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no step to time: the pointer is NULL");
    if (step->state == STEPGRAPH_STEP_CAPTURING || step->stages.open != 0)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' is recording or running: switch timing before or after", step->name);
    step->stages.timing = on != 0;
    return STEPGRAPH_OK;
}

stepgraph_status stepgraph_step_get_stage(stepgraph_step *step, uint32_t index, stepgraph_stage *stage_out)
{
    stepgraph_stage filled = STEPGRAPH_STAGE_INIT;
    const sg__stage *stage = NULL;
    stepgraph_status status;

    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no step to ask: the pointer is NULL");
    /* The unnamed stage is shown only if something happened before the first mark. */
    for (uint32_t i = 0, shown = 0; i < step->stages.n; i++) {
        const sg__stage *candidate = step->stages.stages[i];
        if (candidate->name[0] == '\0' && candidate->launches == 0 && candidate->library_launches == 0 && candidate->nodes == 0)
            continue;
        if (shown++ == index) {
            stage = candidate;
            break;
        }
    }
    if (stage == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "step '%s' has no stage %u", step->name, index);
    status = sg__stages_ask(step, "device times cannot be collected");
    if (status != STEPGRAPH_OK)
        return status;

    memcpy(filled.name, stage->name, sizeof filled.name);
    filled.launches = stage->launches;
    filled.library_launches = stage->library_launches;
    filled.nodes = stage->nodes;
    filled.host_us = sg__series_median(&stage->host_us);
    filled.device_us = sg__series_median(&stage->device_us);
    return sg__struct_write(stage_out, &filled, sizeof filled, offsetof(stepgraph_stage, launches), "stepgraph_stage");
}
