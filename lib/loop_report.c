/* Reports of a loop: text, JSON, and through loop_trace.c a trace. */
#include <stdio.h>

#include "launchable.h"
#include "loop_p.h"

static const char *answer_name(uint32_t answer)
{
    return answer == STEPGRAPH_WIN ? "WIN" : answer == STEPGRAPH_NULL ? "NULL" : "UNKNOWN";
}

/* What stands between UNKNOWN and an answer. */
static const struct {
    uint32_t bit;
    const char *words;
} missing[] = {
    {STEPGRAPH_MISSING_COUNTER, "nobody counts launches"},
    {STEPGRAPH_MISSING_RUNS, "fewer than two warm runs"},
    {STEPGRAPH_MISSING_DEVICE, "no device time"},
    {STEPGRAPH_MISSING_REPLAYS, "no replay was timed"},
    {STEPGRAPH_MISSING_UNSTEADY, "the last two warm runs launched different numbers of kernels"},
    {STEPGRAPH_MISSING_EXACT, "the counter is a lower bound"},
};

static void add_number(sg__text *text, double value)
{
    if (value < 0)
        sg__text_add(text, " %11s", "-");
    else
        sg__text_add(text, " %11.1f", value);
}

static void add_number_short(sg__text *text, double value)
{
    if (value < 0)
        sg__text_add(text, " -");
    else
        sg__text_add(text, " %.1f", value);
}

static void add_json_number(sg__text *text, const char *name, double value)
{
    if (value < 0)
        sg__text_add(text, ", \"%s\": null", name);
    else
        sg__text_add(text, ", \"%s\": %.3f", name, value);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static stepgraph_status text_stages(const sg__lane *lane, sg__text *text)
{
    stepgraph_stage stage = STEPGRAPH_STAGE_INIT;
    stepgraph_status status = STEPGRAPH_OK;

    sg__text_add(text, "  %-24s %11s %11s %9s %7s\n", "stage", "host us", "device us", "launches", "nodes");
    for (uint32_t i = 0; (status = stepgraph_step_get_stage(lane->step, i, &stage)) == STEPGRAPH_OK; i++) {
        sg__text_add(text, "  %-24.24s", stage.name[0] != '\0' ? stage.name : "(before the first mark)");
        add_number(text, stage.host_us);
        add_number(text, stage.device_us);
        sg__text_add(text, " %9llu %7llu\n", (unsigned long long)stage.launches, (unsigned long long)stage.nodes);
    }
    return status == STEPGRAPH_ERR_ARGUMENT ? STEPGRAPH_OK : status;
}

static void text_tuning(const sg__lane *lane, sg__text *text)
{
    stepgraph_tuning t = STEPGRAPH_TUNING_INIT;

    if (stepgraph_step_get_tuning(lane->step, &t) != STEPGRAPH_OK || t.executables == 0)
        return;
    if (t.done)
        sg__text_add(text, "  the fastest of %u executables takes %.1f us a replay, the first one", t.executables, t.us[t.chosen]);
    else
        sg__text_add(text, "  %u executables are tried, of which the fastest will be kept; so far the first one", t.executables);
    for (uint32_t i = 0; i < t.executables; i++) {
        sg__text_add(text, "%s", i == 0 ? "" : i == 1 ? "; the others" : ",");
        add_number_short(text, t.us[i]);
    }
    sg__text_add(text, "\n");
}

static stepgraph_status text_lane(const sg__lane *lane, sg__text *text)
{
    stepgraph_verdict v = STEPGRAPH_VERDICT_INIT;
    stepgraph_status status;

    sg__text_add(text, "\nkey %llu: %s", (unsigned long long)lane->key, stepgraph_rung_name(sg__lane_rung(lane)));
    if (lane->why != STEPGRAPH_WHY_NONE)
        sg__text_add(text, " (%s%s%s)", stepgraph_why_name(lane->why), lane->words[0] != '\0' ? ": " : "", lane->words);
    sg__text_add(text, ", %llu steps, %llu of them replayed, %llu recorded anew\n", (unsigned long long)lane->steps,
                 (unsigned long long)lane->replays, (unsigned long long)lane->rerecords);
    if (lane->step == NULL)
        return STEPGRAPH_OK;
    if (sg__lane_has_graph(lane))
        sg__text_add(text, "  graph of %llu nodes, about %llu bytes of device memory, %llu of host memory\n",
                     (unsigned long long)lane->step->stats.nodes_total, (unsigned long long)sg__step_device_bytes(lane->step),
                     (unsigned long long)sg__step_host_bytes(lane->step));
    if (lane->step->stats.lanes > 0)
        sg__text_add(text, "  relaxed to %llu lanes\n", (unsigned long long)lane->step->stats.lanes);
    text_tuning(lane, text);
    status = stepgraph_step_get_verdict(lane->step, &v);
    if (status == STEPGRAPH_OK)
        status = text_stages(lane, text);
    if (status != STEPGRAPH_OK)
        return status;
    sg__text_add(text, "  %-24s", "launched, warm");
    add_number(text, v.host_us_fresh);
    add_number(text, v.device_us_fresh);
    sg__text_add(text, " %9lld\n  %-24s", (long long)v.launches, "replayed");
    add_number(text, v.host_us_replay);
    add_number(text, v.device_us_replay);
    sg__text_add(text, "\n");
    if (lane->first_us >= 0)
        sg__text_add(text, "  the very first run, in no figure above: %.1f us\n", lane->first_us);
    sg__text_add(text, "  verdict: %s (P < L - 1: %s; time: %s)", answer_name(v.answer),
                 v.rule_launches < 0 ? "unknown"
                 : v.rule_launches   ? "yes"
                                     : "no",
                 v.rule_time < 0 ? "unknown"
                 : v.rule_time   ? "yes"
                                 : "no");
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if ((v.missing & missing[i].bit) != 0)
            sg__text_add(text, "; %s", missing[i].words);
    sg__text_add(text, "\n");
    return STEPGRAPH_OK;
}

static stepgraph_status write_text(stepgraph_loop *loop, const stepgraph_loop_stats *stats, sg__text *text)
{
    const stepgraph_session_info *info = &loop->session->info;
    stepgraph_status status = STEPGRAPH_OK;

    sg__text_add(text, "loop '%s' on %s%s, driver %d.%d: %llu steps, %.3f s saved\n", loop->name, info->device_name,
                 info->software != 0 ? " (a simulation, whose times mean nothing)" : "", info->driver_version / 1000,
                 info->driver_version % 1000 / 10, (unsigned long long)stats->steps, stats->seconds_saved);
    for (uint32_t i = 1; i < STEPGRAPH_TURN_KINDS; i++)
        if (stats->turns[i] > 0)
            sg__text_add(text, "  %-12s %llu\n", stepgraph_turn_kind_name(i), (unsigned long long)stats->turns[i]);
    for (uint32_t i = 1; i < STEPGRAPH_WHYS; i++)
        if (stats->causes[i] > 0)
            sg__text_add(text, "  not replayed, %s: %llu\n", stepgraph_why_name(i), (unsigned long long)stats->causes[i]);
    sg__text_add(text, "  %llu recordings, %llu failed; %llu executables made, %llu updated in place, %llu updates refused\n",
                 (unsigned long long)stats->recordings, (unsigned long long)stats->recordings_failed,
                 (unsigned long long)stats->instantiations, (unsigned long long)stats->updates,
                 (unsigned long long)stats->updates_refused);
    sg__text_add(text, "  %llu graphs, %llu nodes, about %llu bytes of device memory; %llu given up for others\n",
                 (unsigned long long)stats->graphs, (unsigned long long)stats->nodes, (unsigned long long)stats->device_bytes,
                 (unsigned long long)stats->graphs_dropped);
    if (stats->doubts > 0)
        sg__text_add(text, "  %llu times checks decided what a comparison could not\n", (unsigned long long)stats->doubts);
    sg__text_add(text, "  %llu checks: %llu identical, %llu diverged, %llu inconclusive, %llu unproven; %llu could not be done\n",
                 (unsigned long long)stats->checks, (unsigned long long)stats->checks_identical,
                 (unsigned long long)stats->checks_diverged, (unsigned long long)stats->checks_inconclusive,
                 (unsigned long long)stats->checks_unproven, (unsigned long long)stats->checks_failed);
    for (uint32_t i = 0; i < loop->config.max_graphs && status == STEPGRAPH_OK; i++)
        if (loop->lanes[i].used)
            status = text_lane(&loop->lanes[i], text);
    return status;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static stepgraph_status json_stages(const sg__lane *lane, sg__text *text)
{
    stepgraph_stage stage = STEPGRAPH_STAGE_INIT;
    stepgraph_status status = STEPGRAPH_OK;

    sg__text_add(text, ", \"stages\": [");
    for (uint32_t i = 0; (status = stepgraph_step_get_stage(lane->step, i, &stage)) == STEPGRAPH_OK; i++) {
        sg__text_add(text, "%s{\"name\": ", i > 0 ? ", " : "");
        sg__text_quoted(text, stage.name);
        add_json_number(text, "host_us", stage.host_us);
        add_json_number(text, "device_us", stage.device_us);
        sg__text_add(text, ", \"launches\": %llu, \"library_launches\": %llu, \"nodes\": %llu}",
                     (unsigned long long)stage.launches, (unsigned long long)stage.library_launches,
                     (unsigned long long)stage.nodes);
    }
    sg__text_add(text, "]");
    return status == STEPGRAPH_ERR_ARGUMENT ? STEPGRAPH_OK : status;
}

static void json_tuning(const sg__lane *lane, sg__text *text)
{
    stepgraph_tuning t = STEPGRAPH_TUNING_INIT;

    if (lane->step == NULL || stepgraph_step_get_tuning(lane->step, &t) != STEPGRAPH_OK || t.executables == 0) {
        sg__text_add(text, ", \"tuning\": null");
        return;
    }
    sg__text_add(text, ", \"tuning\": {\"executables\": %u, \"done\": %s, \"chosen\": %u, \"us\": [", t.executables, t.done ? "true" : "false", t.chosen);
    for (uint32_t i = 0; i < t.executables; i++)
        if (t.us[i] < 0)
            sg__text_add(text, "%snull", i > 0 ? ", " : "");
        else
            sg__text_add(text, "%s%.3f", i > 0 ? ", " : "", t.us[i]);
    sg__text_add(text, "]}");
}

static stepgraph_status json_lane(const sg__lane *lane, sg__text *text)
{
    stepgraph_verdict v = STEPGRAPH_VERDICT_INIT;
    stepgraph_status status;
    bool graph = sg__lane_has_graph(lane);
    const char *comma = "";

    sg__text_add(text, "{\"key\": %llu, \"rung\": \"%s\", \"why\": \"%s\", \"words\": ", (unsigned long long)lane->key,
                 stepgraph_rung_name(sg__lane_rung(lane)), stepgraph_why_name(lane->why));
    sg__text_quoted(text, lane->words);
    sg__text_add(text, ", \"steps\": %llu, \"replays\": %llu, \"rerecords\": %llu", (unsigned long long)lane->steps,
                 (unsigned long long)lane->replays, (unsigned long long)lane->rerecords);
    sg__text_add(text, ", \"nodes\": %llu, \"device_bytes\": %llu, \"host_bytes\": %llu",
                 graph ? (unsigned long long)lane->step->stats.nodes_total : 0,
                 graph ? (unsigned long long)sg__step_device_bytes(lane->step) : 0,
                 graph ? (unsigned long long)sg__step_host_bytes(lane->step) : 0);
    add_json_number(text, "first_us", lane->first_us);
    sg__text_add(text, ", \"lanes\": %llu, \"relax\": %s", graph ? (unsigned long long)lane->step->stats.lanes : 0,
                 lane->relax != NULL ? stepgraph_relax_json(lane->relax) : "null");
    json_tuning(lane, text);
    if (lane->step != NULL) {
        status = stepgraph_step_get_verdict(lane->step, &v);
        if (status == STEPGRAPH_OK)
            status = json_stages(lane, text);
        if (status != STEPGRAPH_OK)
            return status;
        sg__text_add(text, ", \"verdict\": {\"answer\": \"%s\", \"launches\": %lld, \"pin_launches\": %lld, \"pin_bytes\": %llu",
                     answer_name(v.answer), (long long)v.launches, (long long)v.pin_launches, (unsigned long long)v.pin_bytes);
        add_json_number(text, "host_us_fresh", v.host_us_fresh);
        add_json_number(text, "device_us_fresh", v.device_us_fresh);
        add_json_number(text, "host_us_replay", v.host_us_replay);
        add_json_number(text, "device_us_replay", v.device_us_replay);
        sg__text_add(text, ", \"rule_launches\": %d, \"rule_time\": %d, \"missing\": [", v.rule_launches, v.rule_time);
        for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
            if ((v.missing & missing[i].bit) != 0) {
                sg__text_add(text, "%s\"%s\"", comma, missing[i].words);
                comma = ", ";
            }
        sg__text_add(text, "]}");
    }
    sg__text_add(text, "}");
    return STEPGRAPH_OK;
}

static stepgraph_status write_json(stepgraph_loop *loop, const stepgraph_loop_stats *stats, sg__text *text)
{
    const stepgraph_session_info *info = &loop->session->info;
    stepgraph_status status = STEPGRAPH_OK;
    const char *comma = "";

    sg__text_add(text, "{\"loop\": ");
    sg__text_quoted(text, loop->name);
    sg__text_add(text, ", \"device\": ");
    sg__text_quoted(text, info->device_name);
    sg__text_add(text, ", \"software\": %s, \"driver\": %d, \"steps\": %llu, \"seconds_saved\": %.6f, \"turns\": {",
                 info->software != 0 ? "true" : "false", info->driver_version, (unsigned long long)stats->steps,
                 stats->seconds_saved);
    for (uint32_t i = 1; i < STEPGRAPH_TURN_KINDS; i++)
        sg__text_add(text, "%s\"%s\": %llu", i > 1 ? ", " : "", stepgraph_turn_kind_name(i), (unsigned long long)stats->turns[i]);
    sg__text_add(text, "}, \"not_replayed\": {");
    for (uint32_t i = 1; i < STEPGRAPH_WHYS; i++)
        sg__text_add(text, "%s\"%s\": %llu", i > 1 ? ", " : "", stepgraph_why_name(i), (unsigned long long)stats->causes[i]);
    sg__text_add(
        text,
        "}, \"retries\": %llu, \"cancelled\": %llu, \"recordings\": %llu, \"recordings_failed\": %llu, \"instantiations\": %llu",
        (unsigned long long)stats->retries, (unsigned long long)stats->cancelled, (unsigned long long)stats->recordings,
        (unsigned long long)stats->recordings_failed, (unsigned long long)stats->instantiations);
    sg__text_add(text,
                 ", \"updates\": %llu, \"updates_refused\": %llu, \"graphs\": %llu, \"nodes\": %llu, \"device_bytes\": %llu, "
                 "\"host_bytes\": %llu",
                 (unsigned long long)stats->updates, (unsigned long long)stats->updates_refused,
                 (unsigned long long)stats->graphs, (unsigned long long)stats->nodes, (unsigned long long)stats->device_bytes,
                 (unsigned long long)stats->host_bytes);
    sg__text_add(text,
                 ", \"relaxed\": %llu, \"relax_refused\": %llu, \"relax_diverged\": %llu, \"graphs_dropped\": %llu, \"doubts\": %llu, \"checks\": {\"done\": %llu, \"identical\": %llu, \"diverged\": %llu, "
                 "\"inconclusive\": %llu, \"unproven\": "
                 "%llu, \"failed\": %llu}, \"keys\": [",
                 (unsigned long long)stats->relaxed, (unsigned long long)stats->relax_refused, (unsigned long long)stats->relax_diverged,
                 (unsigned long long)stats->graphs_dropped, (unsigned long long)stats->doubts, (unsigned long long)stats->checks,
                 (unsigned long long)stats->checks_identical, (unsigned long long)stats->checks_diverged,
                 (unsigned long long)stats->checks_inconclusive, (unsigned long long)stats->checks_unproven,
                 (unsigned long long)stats->checks_failed);
    for (uint32_t i = 0; i < loop->config.max_graphs && status == STEPGRAPH_OK; i++)
        if (loop->lanes[i].used) {
            sg__text_add(text, "%s", comma);
            comma = ", ";
            status = json_lane(&loop->lanes[i], text);
        }
    sg__text_add(text, "]}\n");
    return status;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

stepgraph_status stepgraph_loop_report(stepgraph_loop *loop, uint32_t form, const char **text_out)
{
    stepgraph_loop_stats stats = STEPGRAPH_LOOP_STATS_INIT;
    stepgraph_status status;
    sg__text *text;

    sg__error_clear();
    if (loop == NULL || text_out == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no report can be written: %s is NULL", loop == NULL ? "the loop" : "text_out");
    if (form < STEPGRAPH_REPORT_TEXT || form > STEPGRAPH_REPORT_TRACE)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "loop '%s': unknown form of report %u", loop->name, form);
    if (form == STEPGRAPH_REPORT_TRACE && loop->trace == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "loop '%s' keeps no trace: create it with STEPGRAPH_LOOP_TRACE", loop->name);
    if (loop->open != 0)
        return sg__fail(STEPGRAPH_ERR_STATE,
                        "loop '%s': the turn of step %llu is open, and its times are not known: end it first", loop->name,
                        (unsigned long long)loop->k);
    text = &loop->report;
    text->used = 0;
    text->failed = false;
    status = stepgraph_loop_get_stats(loop, &stats);
    if (status == STEPGRAPH_OK)
        status = form == STEPGRAPH_REPORT_TEXT   ? write_text(loop, &stats, text)
                 : form == STEPGRAPH_REPORT_JSON ? write_json(loop, &stats, text)
                                                 : sg__trace_write(loop, text);
    if (status != STEPGRAPH_OK)
        return status;
    if (text->failed || text->text == NULL)
        return sg__fail_memory("host", text->used);
    *text_out = text->text;
    sg__error_clear();
    return STEPGRAPH_OK;
}
