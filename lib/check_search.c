/*
 * Where a replay goes wrong: the step is recorded a second time, as it should be, and growing prefixes of both recordings run from the
 * same state. The first node after which they differ is the one.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit_p.h"
#include "check_p.h"

/* One recording whose first nodes can be run. */
typedef struct sg__prefix {
    CUgraph graph;      /* Borrowed. */
    CUgraphExec exec;   /* Of the whole graph; NULL: prefixes are clones. */
    uint32_t *nodes;    /* Index, among all that were read, of each node that was recorded. */
    size_t n, enabled;
    const sg__graph *read;
} sg__prefix;

typedef struct sg__search {
    sg__check *check;
    stepgraph_step *second;
    sg__prefix graphs[2]; /* The one that is replayed, and the second. */
    sg__shots wide;       /* Scratch too, where there is room for it and both recordings use it alike. */
    sg__shots *shots;
    unsigned int image;
    unsigned int groups;
    bool scratch_moves;
    uint32_t step; /* From 0. */
    char why_not[256];
} sg__search;

static stepgraph_status unable(sg__search *search, const char *format, ...) __attribute__((format(printf, 2, 3)));

static stepgraph_status unable(sg__search *search, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(search->why_not, sizeof search->why_not, format, arguments);
    va_end(arguments);
    return STEPGRAPH_ERR_UNSUPPORTED;
}

/* The words of the record are why the search cannot go on. */
static stepgraph_status unable_because(sg__search *search, const char *what)
{
    stepgraph_error_info why;

    sg__error_get(&why);
    return unable(search, "%s: %.200s", what, why.message);
}

/* ---- prefixes ---------------------------------------------------------------------------------------------------- */

static bool can_be_disabled(CUgraphNodeType type)
{
    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
}

static stepgraph_status instantiate(sg__search *search, CUgraph graph, CUgraphExec *exec)
{
    if (sg__instantiate(search->check->session, graph, exec) == STEPGRAPH_OK)
        return STEPGRAPH_OK;
    return unable_because(search, "the graph cannot be made launchable a second time");
}

static stepgraph_status open_prefix(sg__search *search, sg__prefix *prefix, const stepgraph_step *step)
{
    bool all = true;

    prefix->graph = step->graph;
    prefix->read = &step->read;
    prefix->nodes = calloc(step->read.n_nodes + 1, sizeof *prefix->nodes);
    if (prefix->nodes == NULL)
        return sg__fail_memory("host", step->read.n_nodes * sizeof *prefix->nodes);
    for (size_t i = 0; i < step->read.n_nodes; i++) {
        const sg__graph_node *node = &step->read.nodes[i];
        if (i > 0 && node->top == step->read.nodes[i - 1].top)
            continue; /* In a child graph. */
        prefix->nodes[prefix->n++] = (uint32_t)i;
        all = all && (can_be_disabled(node->type) || node->type == CU_GRAPH_NODE_TYPE_EMPTY);
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            return unable(search, "node %zu (%s) allocates or frees memory: such a graph can neither run in part nor be cloned", i, sg__node_name(node));
    }
    prefix->enabled = prefix->n;
    return all ? instantiate(search, prefix->graph, &prefix->exec) : STEPGRAPH_OK;
}

/* The first n nodes of a graph some of whose nodes cannot be switched off: a clone without the others. */
static stepgraph_status launch_clone(sg__search *search, const sg__prefix *prefix, size_t n)
{
    stepgraph_session *session = search->check->session;
    const sg__driver *driver = session->driver;
    CUgraphExec exec = NULL;
    CUgraph clone = NULL;
    stepgraph_status status;

    SG__CU(driver, GraphClone, &clone, prefix->graph);
    for (size_t i = prefix->n; i-- > n;) {
        CUgraphNode node = NULL;
        SG__CU(driver, GraphNodeFindInClone, &node, prefix->read->nodes[prefix->nodes[i]].handle, clone);
        SG__CU(driver, GraphDestroyNode, node);
    }
    status = instantiate(search, clone, &exec);
    if (status == STEPGRAPH_OK) {
        CUresult code = driver->GraphLaunch(exec, session->stream);
        if (code != CUDA_SUCCESS) {
            sg__fail_driver(driver, "cuGraphLaunch", code);
            status = unable_because(search, "a prefix cannot be launched");
        }
    }
    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(search->check, "a prefix of the graph");
    sg__bury(session, SG__GRAVE_EXEC, (uintptr_t)exec);
    sg__bury(session, SG__GRAVE_GRAPH, (uintptr_t)clone);
    return status;

fail:
    sg__bury(session, SG__GRAVE_GRAPH, (uintptr_t)clone);
    status = unable_because(search, "the graph cannot be cut");
    return status;
}

static stepgraph_status launch(sg__search *search, sg__prefix *prefix, size_t n)
{
    const sg__driver *driver = search->check->session->driver;
    stepgraph_status status;

    if (prefix->exec == NULL)
        return launch_clone(search, prefix, n);
    while (prefix->enabled != n) {
        bool on = prefix->enabled < n;
        size_t i = on ? prefix->enabled : prefix->enabled - 1;
        const sg__graph_node *node = &prefix->read->nodes[prefix->nodes[i]];
        if (can_be_disabled(node->type))
            SG__CU(driver, GraphNodeSetEnabled, prefix->exec, node->handle, on ? 1 : 0);
        prefix->enabled += on ? 1 : (size_t)-1;
    }
    SG__CU(driver, GraphLaunch, prefix->exec, search->check->session->stream);
    return STEPGRAPH_OK;

fail:
    status = unable_because(search, "a prefix of the graph cannot be run");
    return status;
}

static void close_prefix(sg__search *search, sg__prefix *prefix)
{
    sg__bury(search->check->session, SG__GRAVE_EXEC, (uintptr_t)prefix->exec);
    free(prefix->nodes);
}

/* ---- from the same state ----------------------------------------------------------------------------------------- */

/* As it was before the step that goes wrong, with that step's inputs. */
static stepgraph_status go_back(sg__search *search)
{
    sg__check *check = search->check;
    unsigned int before = search->step > 0 ? check->after[search->step - 1] : check->start;
    stepgraph_status status = sg__shot_restore(&check->shots, before, SG__GROUP_STATE);

    if (status == STEPGRAPH_OK)
        status = sg__shot_restore(&check->shots, check->after[search->step], SG__GROUP_INPUT);
    return status == STEPGRAPH_OK ? sg__check_fill(check, SG__FILL_A) : status;
}

static stepgraph_status differs_after(sg__search *search, size_t n, bool *differs)
{
    sg__check *check = search->check;
    stepgraph_status status = go_back(search);
    size_t differ = 0;

    if (status == STEPGRAPH_OK)
        status = launch(search, &search->graphs[1], n);
    if (status == STEPGRAPH_OK)
        status = sg__shot_save(search->shots, search->image);
    if (status == STEPGRAPH_OK)
        status = go_back(search);
    if (status == STEPGRAPH_OK)
        status = launch(search, &search->graphs[0], n);
    if (status == STEPGRAPH_OK)
        status = sg__check_compare(check, search->shots, search->image, search->groups, SG__FILL_A, &differ);
    *differs = differ > 0;
    return status == STEPGRAPH_OK ? sg__check_progress(check, "search") : status;
}

/* ---- the second recording ---------------------------------------------------------------------------------------- */

static stepgraph_status record(sg__search *search)
{
    sg__check *check = search->check;
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_status status, ended;
    stepgraph_error_info why;

    config.name = "second recording";
    config.flags = check->step->flags | STEPGRAPH_STEP_ALLOW_UNREGISTERED | STEPGRAPH_STEP_ALLOW_EMPTY | STEPGRAPH_STEP_ALLOW_ESCAPED |
                   STEPGRAPH_STEP_ALLOW_FORMER_STATE;
    config.flags &= ~(uint32_t)STEPGRAPH_STEP_TIMING;
    status = stepgraph_step_begin(check->session, &config, &search->second);
    if (status == STEPGRAPH_OK)
        status = sg__shot_restore(&check->shots, search->step > 0 ? check->after[search->step - 1] : check->start,
                                  SG__GROUP_STATE | SG__GROUP_INPUT | SG__GROUP_OUTPUT);
    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "going back to the step that goes wrong");
    if (status == STEPGRAPH_OK)
        status = sg__check_rewind(check, check->config.first + search->step);
    /* What the host itself puts into its launches may come with its feeds. */
    if (status == STEPGRAPH_OK)
        status = sg__check_feed(check, search->step);
    if (status == STEPGRAPH_OK)
        status = stepgraph_session_flush(check->session);
    if (status == STEPGRAPH_OK)
        status = stepgraph_step_prepare(search->second);
    if (status == STEPGRAPH_OK)
        status = stepgraph_step_capture(search->second);
    if (status != STEPGRAPH_OK)
        return unable_because(search, "the step cannot be recorded a second time");
    status = sg__check_enqueue(check, search->second, search->step);
    sg__error_get(&why);
    ended = stepgraph_step_end(search->second);
    if (status != STEPGRAPH_OK)
        (void)sg__error_set(&why);
    if (status != STEPGRAPH_OK || ended != STEPGRAPH_OK)
        return unable_because(search, "the step cannot be recorded a second time");
    return STEPGRAPH_OK;
}

/* One word that the two recordings do not have in common. */
static stepgraph_status note_difference(void *user, const sg__graph_difference *difference)
{
    sg__search *search = user;
    const stepgraph_pin *before = sg__pin_at(search->check->session, difference->values[0]);
    const stepgraph_pin *after = sg__pin_at(search->check->session, difference->values[1]);

    search->scratch_moves |= before != NULL && after != NULL && before->role == STEPGRAPH_ROLE_SCRATCH && after->role == STEPGRAPH_ROLE_SCRATCH;
    return STEPGRAPH_OK;
}

static stepgraph_status compare_recordings(sg__search *search)
{
    sg__graph *const graphs[2] = {&search->check->step->read, &search->second->read};
    sg__graph_mismatch mismatch = {0};
    uint64_t bytes = 0;
    stepgraph_status status = sg__graph_compare(search->check->session->driver, 2, graphs, note_difference, search, &mismatch, &bytes);

    if (status == STEPGRAPH_OK && mismatch.text[0] != '\0')
        return unable(search, "the second recording has other nodes, from node %u on: %.180s", mismatch.node, mismatch.text);
    return status;
}

/* An image to compare with: of all that both recordings write alike. */
static stepgraph_status make_image(sg__search *search)
{
    sg__check *check = search->check;
    unsigned int narrow = SG__GROUP_STATE | SG__GROUP_OUTPUT;

    if (!search->scratch_moves && (check->config.flags & STEPGRAPH_CHECK_KEEP_SCRATCH) == 0 &&
        sg__shots_make(&search->wide, check->session, narrow | SG__GROUP_SCRATCH, NULL, NULL, 1, check->shots.device_left, check->shots.host_left) ==
            STEPGRAPH_OK &&
        sg__shot_add(&search->wide, &search->image)) {
        search->shots = &search->wide;
        search->groups = narrow | SG__GROUP_SCRATCH;
        return STEPGRAPH_OK;
    }
    sg__shots_free(&search->wide);
    if (sg__shots_make(&search->wide, check->session, narrow, NULL, NULL, 1, check->shots.device_left, check->shots.host_left) == STEPGRAPH_OK &&
        sg__shot_add(&search->wide, &search->image)) {
        search->shots = &search->wide;
        search->groups = narrow;
        return STEPGRAPH_OK;
    }
    return unable(search, "there is no room for another snapshot");
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static void name_cause(sg__search *search, const stepgraph_audit *audit, uint32_t node)
{
    stepgraph_check_summary *summary = &search->check->report->summary;
    const stepgraph_finding *best = NULL;

    for (uint64_t i = 0; audit != NULL && i < audit->summary.kept; i++) {
        const stepgraph_finding *f = sg__audit_at(audit, i);
        bool frozen = f->kind == STEPGRAPH_FINDING_MOVED_POINTER || f->kind == STEPGRAPH_FINDING_CHANGING_SCALAR;
        if (best == NULL && (f->fault != 0 || frozen))
            best = f;
        if (f->node == node && node != UINT32_MAX && (f->fault != 0 || frozen)) {
            best = f;
            break;
        }
    }
    if (best != NULL && summary->cause[0] == '\0')
        snprintf(summary->cause, sizeof summary->cause, "%s", best->text);
}

/* Nothing is known for certain: what the recording holds that was let pass. */
static void name_suspect(sg__check *check)
{
    stepgraph_check_summary *summary = &check->report->summary;
    const stepgraph_audit *audit = check->step->audit;

    for (uint64_t i = 0; audit != NULL && i < audit->summary.kept && summary->cause[0] == '\0'; i++)
        if (sg__audit_at(audit, i)->kind != STEPGRAPH_FINDING_UNREAD)
            snprintf(summary->cause, sizeof summary->cause, "perhaps because of this, which was let pass: %.440s", sg__audit_at(audit, i)->text);
}

static stepgraph_status find(sg__search *search)
{
    stepgraph_check_summary *summary = &search->check->report->summary;
    size_t low = 0, high;
    stepgraph_status status;
    bool differs;

    status = record(search);
    if (status == STEPGRAPH_OK)
        status = compare_recordings(search);
    for (int i = 0; i < 2 && status == STEPGRAPH_OK; i++)
        status = open_prefix(search, &search->graphs[i], i == 0 ? search->check->step : search->second);
    if (status == STEPGRAPH_OK)
        status = make_image(search);
    if (status != STEPGRAPH_OK)
        return status;

    high = search->graphs[0].n;
    search->check->total += 2;
    for (size_t n = high; n > 1; n /= 2)
        search->check->total++;
    status = differs_after(search, high, &differs);
    if (status != STEPGRAPH_OK)
        return status;
    if (!differs) {
        summary->search = STEPGRAPH_SEARCH_CLEAN;
        snprintf(summary->search_text, sizeof summary->search_text,
                 "from the same state, with the same inputs, both recordings of step %llu do the same: it goes wrong between the steps, or recorded it "
                 "is another step than launched",
                 (unsigned long long)(search->check->config.first + search->step));
        return STEPGRAPH_OK;
    }
    /* Nothing differs after no node, something does after all of them. */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        status = differs_after(search, middle, &differs);
        if (status != STEPGRAPH_OK)
            return status;
        if (differs)
            high = middle;
        else
            low = middle;
    }
    summary->search = STEPGRAPH_SEARCH_FOUND;
    summary->node = search->graphs[0].nodes[high - 1];
    snprintf(summary->node_name, sizeof summary->node_name, "%s", sg__node_name(&search->check->step->read.nodes[summary->node]));
    snprintf(summary->stage, sizeof summary->stage, "%s", sg__stage_of_node(search->check->step, summary->node));
    snprintf(summary->search_text, sizeof summary->search_text, "the first node that does something else than in a recording of step %llu%s",
             (unsigned long long)(search->check->config.first + search->step),
             (search->groups & SG__GROUP_SCRATCH) != 0 ? "" : ", as far as states and outputs tell");
    return STEPGRAPH_OK;
}

/* The first step in which a replay that is waited for goes wrong, and whether an input alone explains it. */
static bool what_to_look_for(sg__check *check, uint32_t *step_out, const char **why_not)
{
    uint64_t first = SG__NO_STEP;
    bool waited = false, any = false;

    *why_not = NULL;
    for (size_t j = 0; j < check->shots.n_items; j++) {
        const sg__record *record = &check->records[j];
        if (!record->fault)
            continue;
        any = true;
        if (check->shots.items[j].group == SG__GROUP_INPUT) {
            snprintf(check->report->summary.cause, sizeof check->report->summary.cause,
                     "%s '%s' does not hold the same bytes in the replay as in the launches of the same step: it was not refreshed, or not the same way",
                     check->shots.items[j].pin->role == STEPGRAPH_ROLE_CELL ? "cell" : "feed", check->shots.items[j].pin->name);
            return false;
        }
        waited |= record->arms[SG__ARM_WAITED].step != SG__NO_STEP;
        if (record->arms[SG__ARM_WAITED].step < first)
            first = record->arms[SG__ARM_WAITED].step;
    }
    if (!any)
        return false;
    *step_out = (uint32_t)first;
    if (check->step->relaxed != NULL) /* The search goes through the graph in its recorded order. */
        *why_not = "the step is relaxed: if it is right after stepgraph_step_unrelax(), some node touches memory that its arguments do not point to, which "
                   "stepgraph_step_verify() looks for";
    else if (!waited)
        *why_not = "replays that are waited for are right: it is not a node but an order that is missing";
    else if (check->unsteady)
        *why_not = "the step is not deterministic, so parts of it differ everywhere";
    else if (!check->every_step)
        *why_not = "there was no memory for a snapshot after each step";
    return *why_not == NULL;
}

/* What is known without running parts of the graph. */
static void name_known(sg__check *check)
{
    sg__search search = {.check = check};

    name_cause(&search, check->config.audit, UINT32_MAX);
    name_suspect(check);
}

static stepgraph_status search_step(sg__check *check, uint32_t step)
{
    stepgraph_check_summary *summary = &check->report->summary;
    sg__search search = {.check = check, .step = step};
    stepgraph_status status = find(&search);
    stepgraph_audit *audit = NULL;
    stepgraph_error_info why;

    if (status == STEPGRAPH_ERR_UNSUPPORTED && search.why_not[0] != '\0') {
        summary->search = STEPGRAPH_SEARCH_UNABLE;
        snprintf(summary->search_text, sizeof summary->search_text, "%s", search.why_not);
        status = STEPGRAPH_OK;
    }
    if (check->stuck) { /* What goes wrong was found before, and is still to be told. */
        summary->search = STEPGRAPH_SEARCH_UNABLE;
        snprintf(summary->search_text, sizeof summary->search_text, "a part of the graph, run alone, does not come to an end");
        status = STEPGRAPH_OK;
    }
    if (status == STEPGRAPH_OK) {
        name_cause(&search, check->config.audit, summary->node);
        if (search.second != NULL && search.second->state == STEPGRAPH_STEP_READY &&
            stepgraph_audit_compare(check->step, search.second, NULL, &audit) == STEPGRAPH_OK)
            name_cause(&search, audit, summary->node);
        name_suspect(check);
        stepgraph_audit_destroy(audit);
    }
    sg__error_get(&why);
    for (int i = 0; i < 2; i++)
        close_prefix(&search, &search.graphs[i]);
    sg__shots_free(&search.wide);
    stepgraph_step_destroy(search.second);
    (void)sg__error_set(&why);
    return status;
}

stepgraph_status sg__check_search(sg__check *check)
{
    const bool wanted = (check->config.flags & STEPGRAPH_CHECK_NO_SEARCH) == 0;
    stepgraph_check_summary *summary = &check->report->summary;
    const char *why_not;
    uint32_t step;

    summary->node = UINT32_MAX;
    if (check->failed)
        return STEPGRAPH_OK;
    if (what_to_look_for(check, &step, &why_not)) {
        if (wanted)
            return search_step(check, step);
        name_known(check);
    } else if (wanted && why_not != NULL) {
        summary->search = STEPGRAPH_SEARCH_UNABLE;
        snprintf(summary->search_text, sizeof summary->search_text, "%s", why_not);
        name_known(check);
    }
    return STEPGRAPH_OK;
}
