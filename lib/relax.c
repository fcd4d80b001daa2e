/*
 * Relaxing a step: from what its nodes touch to the order that they need, to lanes, to executables, and by the clock to the one that is replayed.
 *
 * Whatever runs here runs between saving the memory that the step touches and putting it back.
 */
#include "relax_p.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "feed.h"
#include "graveyard.h"
#include "launchable.h"
#include "memory.h"
#include "sets.h"
#include "structs.h"
#include "wait.h"

#define LANES_MAX 64u
#define TIMEOUT_DEFAULT_NS ((uint64_t)60000000000u)
/* Replays whose bytes are compared. */
#define COMPARED 3u
/* Ways are timed by turns, and after the first turn only those that can still be the fastest. */
#define ROUNDS 3u
#define NEAR 1.1
/* Launches one right behind the other: fewer where they take long together. */
#define BATCH_MOST 10u
#define BATCH_LEAST 3u
#define BATCH_US 8000.0
/* What is not faster by so much is not worth more lanes: launching them costs the host. */
#define WORTH 0.98
/* Nor is a longest way that is not shorter by so much; and one that is so much longer than the shortest will not be the fastest. */
#define SHORTER 0.98
#define TOO_LONG 1.5

#define KNOWN_FLAGS ((uint32_t)(STEPGRAPH_RELAX_INPUTS_WRITTEN | STEPGRAPH_RELAX_COLLECTIVES_PLAIN | STEPGRAPH_RELAX_NO_COMPARE))

/* One way to launch the step. */
typedef struct way {
    uint32_t lanes; /* 0: as recorded. */
    sg__order order;
    CUgraphExec exec;
    int32_t identical;
    double us[ROUNDS], host_us[ROUNDS];
    unsigned int timed; /* How many of these there are. */
} way;

enum { WAYS = 4 };

/* Hashes of all that the step touches: now, before anything ran, and after COMPARED replays as recorded. */
enum { HASH_NOW, HASH_START, HASH_RECORDED, HASHES };

typedef struct relaxing {
    stepgraph_step *step;
    stepgraph_session *session;
    stepgraph_relax_config config;
    stepgraph_relax *report;
    sg__footprint footprint;
    sg__order needed;
    way ways[WAYS];
    size_t n_ways;

    sg__memory memory;
    bool has_memory;
    CUevent start, end; /* Around what is timed. */
    bool hung;
    bool spoiled; /* What the step touches is not put back. */
} relaxing;

static double since(uint64_t start_ns)
{
    return (double)(sg__clock_ns() - start_ns) * 1e-6;
}

/* ---- the order --------------------------------------------------------------------------------------------------- */

static stepgraph_status build(const relaxing *r, const sg__access *accesses, sg__order *out)
{
    stepgraph_status status = sg__order_build(&(sg__order_input){.n = r->footprint.n,
                                                                 .recorded = r->footprint.recorded,
                                                                 .n_recorded = r->footprint.n_recorded,
                                                                 .accesses = accesses,
                                                                 .n_accesses = r->footprint.n_accesses,
                                                                 .kinds = r->footprint.kinds},
                                              out);

    if (status != STEPGRAPH_ERR_UNSUPPORTED)
        return status;
    return sg__fail_prefix(STEPGRAPH_ERR_REFUSED, "step '%s' is not relaxed: ", r->step->name);
}

/* How short the way would be if no block were ever given out again. */
static stepgraph_status estimate(relaxing *r)
{
    sg__access *unused = sg__footprint_unused(&r->footprint);
    stepgraph_status status;
    sg__order order = {0};

    if (unused == NULL)
        return sg__fail_memory("host", r->footprint.n_accesses * sizeof *unused);
    status = build(r, unused, &order);
    r->report->summary.path_unused = order.path;
    sg__order_free(&order);
    free(unused);
    return status;
}

/* Perhaps noted when the step was recorded. */
static stepgraph_status find_touches(relaxing *r)
{
    uint64_t start = sg__clock_ns();
    stepgraph_status status = STEPGRAPH_OK;

    if (r->step->noted != NULL) {
        r->footprint = *r->step->noted;
        free(r->step->noted);
        r->step->noted = NULL;
    } else {
        status = sg__footprint_make(r->step, &r->config, &r->footprint);
    }
    r->report->summary.read_ms += since(start);
    return status;
}

static stepgraph_status find_order(relaxing *r)
{
    stepgraph_relax_summary *said = &r->report->summary;
    uint64_t start = sg__clock_ns();
    stepgraph_status status;

    sg__order_free(&r->needed);
    status = build(r, r->footprint.accesses, &r->needed);
    if (status == STEPGRAPH_OK)
        status = estimate(r);
    said->order_ms += since(start);
    said->nodes = r->footprint.n;
    said->edges_recorded = r->footprint.n_recorded;
    said->edges_needed = r->needed.n_edges;
    said->path_recorded = r->needed.recorded_path;
    said->path_needed = r->needed.path;
    said->accesses = r->footprint.n_accesses;
    said->left_over = r->footprint.left_over;
    said->unordered = r->needed.n_unordered;
    said->barriers = said->collectives = said->reads = 0;
    for (size_t i = 0; i < r->footprint.n_accesses; i++)
        said->reads += r->footprint.accesses[i].write ? 0 : 1;
    for (uint32_t i = 0; i < r->footprint.n; i++) {
        said->barriers += r->footprint.kinds[i] == SG__ORDER_BARRIER ? 1 : 0;
        said->collectives += r->footprint.kinds[i] == SG__ORDER_COLLECTIVES ? 1 : 0;
    }
    return status;
}

/* ---- executables ------------------------------------------------------------------------------------------------- */

static stepgraph_status instantiate(stepgraph_step *step, CUgraph graph, CUgraphExec *exec_out)
{
    stepgraph_session *session = step->session;
    stepgraph_status status = sg__instantiate(session, graph, exec_out);

    if (status != STEPGRAPH_OK)
        return sg__fail_prefix(status == STEPGRAPH_ERR_MEMORY ? STEPGRAPH_ERR_MEMORY : STEPGRAPH_ERR_DRIVER,
                               "the relaxed graph of step '%s' (%llu nodes) cannot be made launchable: ", step->name,
                               (unsigned long long)step->stats.nodes_total);
    SG__CU(session->driver, GraphUpload, *exec_out, session->stream);
    return STEPGRAPH_OK;

fail:
    sg__bury(session, SG__GRAVE_EXEC, (uintptr_t)*exec_out);
    *exec_out = NULL;
    return status;
}

stepgraph_status sg__relax_executables(stepgraph_step *step, const sg__graph_edge *edges, size_t n_edges, uint32_t n, CUgraphExec *execs)
{
    const sg__footprint *footprint = &step->relaxed->footprint;
    sg__rewrite rewrite = {0};
    stepgraph_status status = sg__sets_rewrite_again(step, &rewrite);

    if (status == STEPGRAPH_OK)
        status = sg__rewrite_edges(&rewrite, footprint->index, footprint->recorded, footprint->n_recorded, edges, n_edges);
    for (uint32_t i = 0; i < n && status == STEPGRAPH_OK; i++)
        status = instantiate(step, rewrite.graph, &execs[i]);
    sg__rewrite_close(&rewrite);
    return status;
}

/* Where devices wait for each other, all of them launch equally often. */
static bool has_collectives(const relaxing *r)
{
    for (uint32_t i = 0; i < r->footprint.n; i++)
        if (r->footprint.reasons[i] == STEPGRAPH_BARRIER_COLLECTIVE || r->footprint.kinds[i] == SG__ORDER_COLLECTIVES)
            return true;
    return false;
}

/* Whether there is something to be gained from a way that is not there yet. Each costs an executable and a dozen replays. */
static bool worth_trying(const sg__order *order, const sg__order *narrower, uint32_t shortest)
{
    return order->path <= TOO_LONG * shortest && (narrower == NULL || order->path < SHORTER * narrower->path);
}

/* On as many lanes as the host says; or on a few, on more, and on many. */
static stepgraph_status lay_out(relaxing *r, way *ways, size_t n)
{
    static const uint32_t widths[] = {4, 8, 16};
    uint64_t start = sg__clock_ns();
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t i = 0; i < n && status == STEPGRAPH_OK; i++) {
        ways[i] = (way){.lanes = r->config.lanes != 0 ? r->config.lanes : widths[i], .identical = -1};
        status = sg__order_lanes(&r->needed, ways[i].lanes, &ways[i].order, NULL);
    }
    r->report->summary.order_ms += since(start);
    return status;
}

/* One clone, in which edge after edge gives way to the next order's. */
static stepgraph_status make_executables(relaxing *r)
{
    const sg__graph_edge *now = r->footprint.recorded;
    size_t n_now = r->footprint.n_recorded;
    uint64_t start = sg__clock_ns();
    sg__rewrite rewrite = {0};
    stepgraph_status status = sg__sets_rewrite_again(r->step, &rewrite);

    for (size_t i = 1; i < r->n_ways && status == STEPGRAPH_OK; i++) {
        way *w = &r->ways[i];
        status = sg__rewrite_edges(&rewrite, r->footprint.index, now, n_now, w->order.edges, w->order.n_edges);
        if (status == STEPGRAPH_OK)
            status = instantiate(r->step, rewrite.graph, &w->exec);
        now = w->order.edges;
        n_now = w->order.n_edges;
    }
    sg__rewrite_close(&rewrite);
    r->report->summary.build_ms += since(start);
    return status;
}

static stepgraph_status make_ways(relaxing *r)
{
    const size_t n = r->config.lanes != 0 ? 1 : WAYS - 1;
    way ways[WAYS - 1] = {0};
    const sg__order *narrower = NULL;
    stepgraph_status status = lay_out(r, ways, n);
    const bool all = has_collectives(r);
    uint32_t shortest = UINT32_MAX;

    for (size_t i = 0; i < n; i++)
        shortest = ways[i].order.path < shortest ? ways[i].order.path : shortest;
    for (size_t i = 0; i < n; i++) {
        if (status == STEPGRAPH_OK && (all || worth_trying(&ways[i].order, narrower, shortest))) {
            r->ways[r->n_ways] = ways[i];
            narrower = &r->ways[r->n_ways++].order;
        } else {
            sg__order_free(&ways[i].order);
        }
    }
    return status == STEPGRAPH_OK ? make_executables(r) : status;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static stepgraph_status await(relaxing *r)
{
    stepgraph_session *session = r->session;
    stepgraph_status status;
    bool late;

    SG__CU(session->driver, EventRecord, r->end, session->stream);
    status = sg__wait_event(session, r->end, r->config.timeout_ns, &late);
    if (status != STEPGRAPH_OK || !late)
        return status;
    r->hung = true;
    sg__session_hangs(session, r->end, r->step->name);
    r->end = NULL;
    return sg__fail(STEPGRAPH_ERR_LOST, "replays of it did not come to an end within %.1f seconds", (double)r->config.timeout_ns * 1e-9);

fail:
    return status;
}

static stepgraph_status launch(relaxing *r, const way *w, unsigned int n)
{
    stepgraph_status status;

    for (unsigned int i = 0; i < n; i++)
        SG__CU(r->session->driver, GraphLaunch, w->exec, r->session->stream);
    r->report->summary.launches += n;
    return STEPGRAPH_OK;

fail:
    return status;
}

static stepgraph_status go_back(relaxing *r)
{
    uint64_t start = sg__clock_ns();
    stepgraph_status status = sg__memory_restore(&r->memory, SG__IMAGE_START);

    if (status == STEPGRAPH_OK)
        status = await(r);
    r->report->summary.save_ms += since(start);
    return status;
}

/* Hash what is there now, and hold it against an earlier hash. marks: NULL: all of it counts. */
static stepgraph_status changed(relaxing *r, uint32_t since_when, const unsigned char *marks, uint64_t *chunks_out)
{
    uint64_t start = sg__clock_ns();
    stepgraph_status status = sg__memory_hash(&r->memory, HASH_NOW);
    unsigned char *all = NULL;

    if (status == STEPGRAPH_OK && marks == NULL) {
        all = calloc(r->memory.n + 1, 1);
        if (all == NULL)
            status = sg__fail_memory("host", r->memory.n);
    }
    if (status == STEPGRAPH_OK)
        status = sg__memory_judge(&r->memory, HASH_NOW, since_when, marks != NULL ? marks : all, SG__RANGE_WRITTEN);
    if (status == STEPGRAPH_OK)
        status = await(r);
    *chunks_out = status == STEPGRAPH_OK ? sg__memory_judged(&r->memory).changed : 0;
    free(all);
    r->report->summary.save_ms += since(start);
    return status;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static stepgraph_status make_events(relaxing *r)
{
    stepgraph_status status;

    SG__CU(r->session->driver, EventCreate, &r->start, CU_EVENT_DEFAULT);
    SG__CU(r->session->driver, EventCreate, &r->end, CU_EVENT_DEFAULT);
    return STEPGRAPH_OK;

fail:
    return status;
}

/* What the host writes between steps, and the step does not, as the role says. */
static bool is_input(const stepgraph_pin *pin)
{
    return pin != NULL && (pin->role == STEPGRAPH_ROLE_FEED || pin->role == STEPGRAPH_ROLE_CELL);
}

/* What the step does not write, as the role says. */
static bool is_read_only(const stepgraph_pin *pin)
{
    return is_input(pin) || (pin != NULL && pin->role == STEPGRAPH_ROLE_CONST);
}

/* all: what is declared to be read as well, since a declaration may be false. A copy's source needs none. */
static bool is_saved(const relaxing *r, size_t i, bool all)
{
    return r->footprint.accesses[i].write || (all && r->footprint.touches[i].place == SG__WORD_ARGUMENT) ||
           is_input(sg__pin_at(r->session, r->footprint.accesses[i].start));
}

static stepgraph_status make_memory(relaxing *r, bool all, uint64_t device, uint64_t host)
{
    sg__access *changing = malloc((r->footprint.n_accesses + 1) * sizeof *changing);
    stepgraph_status status;
    size_t n = 0;

    if (changing == NULL)
        return sg__fail_memory("host", r->footprint.n_accesses * sizeof *changing);
    for (size_t i = 0; i < r->footprint.n_accesses; i++)
        if (is_saved(r, i, all))
            changing[n++] = r->footprint.accesses[i];
    r->has_memory = true;
    status = sg__memory_make(&r->memory, r->session, changing, n, false, 1, HASHES, device, host);
    free(changing);
    return status;
}

static stepgraph_status save(relaxing *r)
{
    uint64_t start = sg__clock_ns(), device = r->config.snapshot_bytes, host = 0;
    stepgraph_status status = r->session->fed ? sg__feeds_send(r->session) : STEPGRAPH_OK;

    if (status == STEPGRAPH_OK)
        status = sg__snapshot_limits(r->session, &device, &host);
    if (status == STEPGRAPH_OK)
        status = make_memory(r, true, device, 0);
    if (status == STEPGRAPH_ERR_MEMORY) { /* What nobody writes, as it is declared, may be large, and is then taken at its word. */
        if (r->has_memory)
            sg__memory_free(&r->memory);
        status = make_memory(r, false, device, host);
    }
    if (status == STEPGRAPH_ERR_MEMORY)
        sg__fail_prefix(status, "step '%s' is not relaxed by the clock, since what it touches cannot be saved (stepgraph_relax_config::lanes needs "
                                "no saving): ",
                        r->step->name);
    if (status == STEPGRAPH_OK)
        status = sg__memory_save(&r->memory, SG__IMAGE_START);
    if (status == STEPGRAPH_OK)
        status = sg__memory_hash(&r->memory, HASH_START);
    if (status == STEPGRAPH_OK)
        status = await(r);
    r->report->summary.saved_bytes = r->memory.bytes;
    r->report->summary.save_ms += since(start);
    return status;
}

/* What cannot be put back must not run. */
static stepgraph_status check_runnable(const relaxing *r)
{
    uint32_t node = r->footprint.opaque;

    if (node == UINT32_MAX)
        return STEPGRAPH_OK;
    return sg__fail(STEPGRAPH_ERR_REFUSED,
                    "step '%s' is not relaxed by the clock: nobody knows how to undo what node %u, '%.100s', does, so the step cannot be run and put back; set "
                    "stepgraph_relax_config::lanes",
                    r->step->name, r->footprint.index[node], sg__node_name(&r->step->read.nodes[r->footprint.index[node]]));
}

/* ---- pins that are not written, as their roles say ----------------------------------------------------------------- */

static stepgraph_pin *pin_of(const relaxing *r, size_t range)
{
    return sg__pin_at(r->session, r->memory.ranges[range].a);
}

/* After replays: a pin that was to stay as it is and did not counts as written from now on. */
static stepgraph_status refute(relaxing *r)
{
    unsigned char *marks = malloc(r->memory.n + 1);
    const stepgraph_pin *last = NULL;
    const unsigned char *hits;
    stepgraph_status status;
    uint64_t chunks;

    if (marks == NULL)
        return sg__fail_memory("host", r->memory.n + 1);
    for (size_t i = 0; i < r->memory.n; i++)
        marks[i] = is_read_only(pin_of(r, i)) ? SG__RANGE_READ : SG__RANGE_WRITTEN;
    status = changed(r, HASH_START, marks, &chunks);
    hits = sg__memory_hits(&r->memory);
    for (size_t i = 0; status == STEPGRAPH_OK && chunks > 0 && i < r->memory.n; i++) {
        const stepgraph_pin *pin = marks[i] == SG__RANGE_READ && hits[i] != 0 ? pin_of(r, i) : NULL;
        if (pin == NULL || pin == last)
            continue;
        last = pin; /* Its ranges come one after the other. */
        sg__footprint_written(&r->footprint, pin);
        r->report->summary.refuted++;
        sg__log(r->session, STEPGRAPH_LOG_WARNING, "step '%s' writes pin '%s', whose role says that it does not: relaxed as if it were written",
                r->step->name, pin->name);
    }
    free(marks);
    return status;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

/* From the beginning, so many replays in this way. */
static stepgraph_status run_from_start(relaxing *r, const way *w)
{
    stepgraph_status status = go_back(r);

    if (status == STEPGRAPH_OK)
        status = launch(r, w, COMPARED);
    return status == STEPGRAPH_OK ? await(r) : status;
}

static stepgraph_status run_recorded(relaxing *r)
{
    stepgraph_status status = run_from_start(r, &r->ways[0]);
    uint64_t start = sg__clock_ns();

    if (status == STEPGRAPH_OK)
        status = sg__memory_hash(&r->memory, HASH_RECORDED);
    if (status == STEPGRAPH_OK)
        status = await(r);
    r->report->summary.save_ms += since(start);
    return status;
}

/* Whether each way leaves the bytes that the recorded one does, if that does so twice. */
static stepgraph_status compare(relaxing *r)
{
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t i = 0; i < r->n_ways && status == STEPGRAPH_OK; i++) {
        uint64_t chunks;
        status = run_from_start(r, &r->ways[i]);
        if (status == STEPGRAPH_OK)
            status = changed(r, HASH_RECORDED, NULL, &chunks);
        if (status != STEPGRAPH_OK)
            break;
        r->ways[i].identical = chunks == 0 ? 1 : 0;
        if (i == 0 && chunks != 0) { /* The step does not repeat itself. */
            r->ways[0].identical = -1;
            return STEPGRAPH_OK;
        }
        if (chunks != 0)
            sg__log(r->session, STEPGRAPH_LOG_WARNING,
                    "step '%s' relaxed to %u lanes leaves other bytes behind than as recorded, so it is not replayed like that: some kernel touches "
                    "memory that its arguments do not point to",
                    r->step->name, r->ways[i].lanes);
    }
    return status;
}

/* ---- timing ------------------------------------------------------------------------------------------------------ */

static stepgraph_status time_batch(relaxing *r, const way *w, unsigned int n, double *us_out, double *host_us_out)
{
    stepgraph_session *session = r->session;
    stepgraph_status status;
    uint64_t start;
    float ms;

    SG__CU(session->driver, EventRecord, r->start, session->stream);
    start = sg__clock_ns();
    status = launch(r, w, n);
    *host_us_out = since(start) * 1e3 / n;
    if (status == STEPGRAPH_OK)
        status = await(r);
    if (status != STEPGRAPH_OK)
        return status;
    SG__CU(session->driver, EventElapsedTime, &ms, r->start, r->end);
    *us_out = (double)ms * 1e3 / n;
    return STEPGRAPH_OK;

fail:
    return status;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double middle(const double *values, unsigned int n)
{
    double sorted[ROUNDS];

    memcpy(sorted, values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return sorted[n / 2];
}

static double best(const relaxing *r)
{
    double us = HUGE_VAL;

    for (size_t i = 0; i < r->n_ways; i++)
        if (r->ways[i].timed > 0 && middle(r->ways[i].us, r->ways[i].timed) < us)
            us = middle(r->ways[i].us, r->ways[i].timed);
    return us;
}

static stepgraph_status time_ways(relaxing *r)
{
    uint64_t start = sg__clock_ns();
    stepgraph_status status;
    unsigned int n = BATCH_MOST;
    double us, host_us;

    status = time_batch(r, &r->ways[0], BATCH_LEAST, &us, &host_us); /* Warm, and long enough to know how long. */
    if (status == STEPGRAPH_OK && !has_collectives(r) && us * BATCH_MOST > BATCH_US)
        n = us * BATCH_LEAST > BATCH_US ? BATCH_LEAST : (unsigned int)(BATCH_US / us);
    for (unsigned int round = 0; round < ROUNDS; round++) {
        double limit = has_collectives(r) ? HUGE_VAL : NEAR * best(r);
        for (size_t i = 0; i < r->n_ways && status == STEPGRAPH_OK; i++) {
            way *w = &r->ways[i];
            if (w->timed > 0 && middle(w->us, w->timed) > limit)
                continue;
            status = time_batch(r, w, n, &w->us[w->timed], &w->host_us[w->timed]);
            w->timed++;
        }
    }
    r->report->summary.time_ms += since(start);
    return status;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

/* One way that leaves other bytes behind speaks against the order itself, and so against all of them. */
static bool distrusted(const relaxing *r)
{
    for (size_t i = 1; i < r->n_ways; i++)
        if (r->ways[i].identical == 0)
            return true;
    return false;
}

static size_t choose(const relaxing *r)
{
    size_t chosen = 0;

    if (r->config.lanes != 0)
        return r->n_ways - 1;
    for (size_t i = 1; i < r->n_ways && !distrusted(r); i++)
        if (middle(r->ways[i].us, r->ways[i].timed) < middle(r->ways[chosen].us, r->ways[chosen].timed) * WORTH)
            chosen = i;
    return chosen;
}

/* All ways were run. */
static stepgraph_status run_all(relaxing *r)
{
    stepgraph_status status, back;
    stepgraph_error_info why;

    status = make_events(r);
    if (status == STEPGRAPH_OK)
        status = save(r);
    if (status != STEPGRAPH_OK)
        return status;
    status = run_recorded(r);
    if (status == STEPGRAPH_OK)
        status = refute(r);
    if (status == STEPGRAPH_OK && r->report->summary.refuted > 0)
        status = find_order(r);
    if (status == STEPGRAPH_OK)
        status = make_ways(r);
    if (status == STEPGRAPH_OK && (r->config.flags & STEPGRAPH_RELAX_NO_COMPARE) == 0)
        status = compare(r);
    if (status == STEPGRAPH_OK && r->n_ways > 1 && !distrusted(r))
        status = time_ways(r);
    if (r->hung)
        return status;
    sg__error_get(&why);
    back = go_back(r);
    if (back != STEPGRAPH_OK && back != STEPGRAPH_ERR_LOST) /* What it ran must not stay for a call that fails once. */
        back = go_back(r);
    r->spoiled = back != STEPGRAPH_OK && back != STEPGRAPH_ERR_LOST;
    if (r->spoiled)
        return sg__step_spoiled(r->step, "relaxing", back);
    return status != STEPGRAPH_OK ? sg__error_set(&why) : back;
}

static stepgraph_status tell(relaxing *r, size_t chosen)
{
    stepgraph_relax *report = r->report;
    stepgraph_relax_summary *said = &report->summary;
    stepgraph_status status = sg__relax_tell_barriers(report, r->step, &r->footprint);

    report->choices = calloc(r->n_ways + 1, sizeof *report->choices);
    if (status == STEPGRAPH_OK && report->choices == NULL)
        status = sg__fail_memory("host", r->n_ways * sizeof *report->choices);
    for (size_t i = 0; i < r->n_ways && status == STEPGRAPH_OK; i++) {
        const way *w = &r->ways[i];
        report->choices[report->n_choices++] = (stepgraph_relax_choice){.size = sizeof *report->choices,
                                                                        .lanes = w->lanes,
                                                                        .identical = w->identical,
                                                                        .edges = i == 0 ? said->edges_recorded : w->order.n_edges,
                                                                        .path = i == 0 ? said->path_recorded : w->order.path,
                                                                        .us = w->timed > 0 ? middle(w->us, w->timed) : -1,
                                                                        .host_us = w->timed > 0 ? middle(w->host_us, w->timed) : -1};
    }
    if (status != STEPGRAPH_OK)
        return status;
    said->lanes = report->choices[chosen].lanes;
    said->identical = distrusted(r) ? 0 : report->choices[chosen].identical;
    said->edges = report->choices[chosen].edges;
    said->path = report->choices[chosen].path;
    said->us_recorded = report->choices[0].us;
    said->host_us_recorded = report->choices[0].host_us;
    said->us = report->choices[chosen].us;
    said->host_us = report->choices[chosen].host_us;
    return sg__relax_write(report);
}

/* The step replays this way from now on. */
static stepgraph_status take(relaxing *r, size_t chosen)
{
    sg__relaxed *relaxed;

    if (chosen == 0)
        return STEPGRAPH_OK;
    relaxed = calloc(1, sizeof *relaxed);
    if (relaxed == NULL)
        return sg__fail_memory("host", sizeof *relaxed);
    *relaxed = (sg__relaxed){.footprint = r->footprint, .needed = r->needed, .lanes = r->ways[chosen].order, .recorded = r->ways[0].exec};
    r->footprint = (sg__footprint){0};
    r->needed = r->ways[chosen].order = (sg__order){0};
    r->step->exec = r->ways[chosen].exec;
    r->ways[chosen].exec = NULL;
    r->step->relaxed = relaxed;
    r->step->stats.lanes = r->ways[chosen].lanes;
    return STEPGRAPH_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static stepgraph_status relax(relaxing *r)
{
    stepgraph_status status = sg__step_check_room(r->step, 1, "is not relaxed");
    size_t chosen = 0;

    r->ways[0] = (way){.exec = r->step->exec, .identical = -1};
    r->n_ways = 1;
    if (status == STEPGRAPH_OK)
        status = find_touches(r);
    if (status == STEPGRAPH_OK)
        status = find_order(r);
    /* A chain that is needed is replayed as it is. */
    if (status == STEPGRAPH_OK && r->config.lanes == 0 && r->needed.path < r->needed.recorded_path) {
        status = check_runnable(r);
        if (status == STEPGRAPH_OK)
            status = run_all(r);
    } else if (status == STEPGRAPH_OK && r->config.lanes != 0) {
        status = make_ways(r);
    }
    if (status == STEPGRAPH_OK) {
        chosen = choose(r);
        status = tell(r, chosen);
    }
    return status == STEPGRAPH_OK ? take(r, chosen) : status;
}

static void clean_up(relaxing *r)
{
    if (r->has_memory)
        sg__memory_free(&r->memory);
    for (size_t i = 1; i < r->n_ways; i++)
        sg__bury(r->session, SG__GRAVE_EXEC, (uintptr_t)r->ways[i].exec);
    for (size_t i = 0; i < r->n_ways; i++)
        sg__order_free(&r->ways[i].order);
    sg__bury(r->session, SG__GRAVE_EVENT, (uintptr_t)r->start);
    sg__bury(r->session, SG__GRAVE_EVENT, (uintptr_t)r->end);
    sg__footprint_free(&r->footprint);
    sg__order_free(&r->needed);
}

static stepgraph_status check_kernels(const char *what, const stepgraph_relax_kernel *kernels, uint32_t n)
{
    if (n > 0 && kernels == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "stepgraph_relax_config says that there are %u %s, and the pointer to them is NULL", n, what);
    for (uint32_t i = 0; i < n; i++) {
        if (kernels[i].pattern == NULL || kernels[i].pattern[0] == '\0')
            return sg__fail(STEPGRAPH_ERR_ARGUMENT, "number %u of the %s in stepgraph_relax_config has no pattern", i, what);
        if (kernels[i].reserved != 0)
            return sg__fail(STEPGRAPH_ERR_ARGUMENT, "number %u of the %s in stepgraph_relax_config: its reserved field is not 0", i, what);
    }
    return STEPGRAPH_OK;
}

stepgraph_status sg__relax_read_config(const stepgraph_relax_config *given, stepgraph_relax_config *out)
{
    const stepgraph_relax_config defaults = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_status status = sg__struct_read(out, sizeof *out, offsetof(stepgraph_relax_config, reads), given != NULL ? given : &defaults,
                                              "stepgraph_relax_config");

    if (status != STEPGRAPH_OK)
        return status;
    if ((out->flags & ~KNOWN_FLAGS) != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "unknown flags 0x%x in stepgraph_relax_config", out->flags & ~KNOWN_FLAGS);
    if (out->reserved != 0)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "a reserved field of stepgraph_relax_config is not 0");
    if (out->lanes > LANES_MAX)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "%u lanes in stepgraph_relax_config: at most %u", out->lanes, LANES_MAX);
    status = check_kernels("reads", out->reads, out->n_reads);
    if (status == STEPGRAPH_OK)
        status = check_kernels("barriers", out->barriers, out->n_barriers);
    if (status == STEPGRAPH_OK)
        status = check_kernels("collectives", out->collectives, out->n_collectives);
    if (out->timeout_ns == 0)
        out->timeout_ns = TIMEOUT_DEFAULT_NS;
    return status;
}

static stepgraph_status check_state(stepgraph_step *step)
{
    stepgraph_status status = sg__not_capturing(step->session, "a step cannot be relaxed");

    if (status == STEPGRAPH_OK)
        status = sg__step_idle(step, "be relaxed");
    if (status != STEPGRAPH_OK)
        return status;
    if (step->state != STEPGRAPH_STEP_READY)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' cannot be relaxed: it is not READY; record it first", step->name);
    status = sg__no_run_open(step, "be relaxed");
    if (status == STEPGRAPH_OK)
        status = sg__step_alive(step);
    return status == STEPGRAPH_OK ? sg__step_kernels_alive(step, "be relaxed") : status;
}

stepgraph_status stepgraph_step_relax(stepgraph_step *step, const stepgraph_relax_config *given, stepgraph_relax **relax_out)
{
    relaxing r = {.step = step};
    stepgraph_status status;

    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "stepgraph_step_relax(): the step is NULL");
    r.session = step->session;
    status = sg__relax_read_config(given, &r.config);
    if (status != STEPGRAPH_OK)
        return status;
    status = check_state(step);
    if (status == STEPGRAPH_OK)
        status = sg__enter(r.session);
    if (status != STEPGRAPH_OK)
        return sg__log_failure(r.session, status);
    sg__step_as_recorded(step);
    r.report = sg__relax_report(step);
    status = r.report != NULL ? relax(&r) : STEPGRAPH_ERR_MEMORY;
    clean_up(&r);
    sg__leave(r.session);
    if (status != STEPGRAPH_OK) {
        stepgraph_relax_destroy(r.report);
        if (r.spoiled)
            return sg__step_fail(step);
        if (status == STEPGRAPH_ERR_LOST && step->state == STEPGRAPH_STEP_READY) {
            sg__fail_prefix(status, "step '%s', tried relaxed: ", step->name);
            return sg__step_fail(step);
        }
        return sg__log_failure(r.session, status);
    }
    sg__log(r.session, STEPGRAPH_LOG_INFO, "%.*s", (int)strcspn(r.report->text, "\n"), r.report->text);
    if (relax_out != NULL)
        *relax_out = r.report;
    else
        stepgraph_relax_destroy(r.report);
    return STEPGRAPH_OK;
}

stepgraph_status sg__relax_note(stepgraph_step *step, const stepgraph_relax_config *config)
{
    stepgraph_status status = sg__enter(step->session);

    if (status != STEPGRAPH_OK)
        return status;
    sg__relax_forget(step);
    step->noted = calloc(1, sizeof *step->noted);
    status = step->noted != NULL ? sg__footprint_make(step, config, step->noted) : sg__fail_memory("host", sizeof *step->noted);
    if (status != STEPGRAPH_OK)
        sg__relax_forget(step);
    sg__leave(step->session);
    return status;
}

void sg__relax_forget(stepgraph_step *step)
{
    if (step->noted != NULL)
        sg__footprint_free(step->noted);
    free(step->noted);
    step->noted = NULL;
}

void sg__relax_drop(stepgraph_step *step)
{
    sg__relaxed *relaxed = step->relaxed;

    if (relaxed == NULL)
        return;
    sg__bury(step->session, SG__GRAVE_EXEC, (uintptr_t)step->exec);
    step->exec = relaxed->recorded;
    step->relaxed = NULL;
    step->stats.lanes = 0;
    sg__footprint_free(&relaxed->footprint);
    sg__order_free(&relaxed->needed);
    sg__order_free(&relaxed->lanes);
    free(relaxed);
}

stepgraph_status stepgraph_step_unrelax(stepgraph_step *step)
{
    stepgraph_status status;

    sg__error_clear();
    if (step == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "stepgraph_step_unrelax(): the step is NULL");
    if (step->relaxed == NULL)
        return STEPGRAPH_OK;
    status = sg__step_idle(step, "be unrelaxed");
    if (status == STEPGRAPH_OK)
        status = sg__enter(step->session);
    if (status != STEPGRAPH_OK)
        return sg__log_failure(step->session, status);
    status = sg__session_wait(step->session);
    if (status == STEPGRAPH_OK)
        sg__step_as_recorded(step);
    sg__leave(step->session);
    return sg__log_failure(step->session, status);
}
