/*
 * Introduces what the library knows about a step, for a person and as data: launches by stage, the price of pins, the verdict.
 */
#include "quickstart.h"

#include <inttypes.h>
#include <limits.h>

static const char *driver_kind(const struct driver *driver)
{
    return driver->info.software ? "cusim" : "cuda";
}

static const char *answer(int32_t answer)
{
    return answer == STEPGRAPH_WIN ? "WIN" : answer == STEPGRAPH_NULL ? "NULL" : "UNKNOWN";
}

/* A time, or a dash for one that was not measured. */
static const char *microseconds(char buffer[32], double us)
{
    if (us < 0)
        snprintf(buffer, 32, "-");
    else
        snprintf(buffer, 32, us < 100 ? "%.2f" : "%.0f", us);
    return buffer;
}

void report_start(const struct model *model)
{
    const struct driver *driver = model->driver;
    const struct options *o = model->options;
    const stepgraph_session_info *info = &driver->info;
    int64_t count = 0;

    for (int i = 0; i < model->parameter_count; i++)
        count += (int64_t)model->parameters[i].rows * model->parameters[i].columns;

    printf("Driver   %s, version %d.%d: %s\n", driver_kind(driver), info->driver_version / 1000, info->driver_version % 1000 / 10,
           info->driver_path);
    printf("         %s\n", driver->choice);
    printf("Device   %d: %s, compute capability %d.%d, %d multiprocessors\n", info->device, info->device_name,
           info->compute_major, info->compute_minor, info->multiprocessors);
    if (info->software)
        printf("         *** A SIMULATION ON THE CPU. What it computes is real; its times say nothing about a card. ***\n");
    printf("Text     %s: %zu characters, %d different ones\n", model->text->name, model->text->length, model->text->vocabulary);
    printf("Model    %d characters -> %d x %d -> %d layers of %d -> %d; %" PRId64
           " numbers in %d parameters; batch %d, seed %" PRIu64 "\n\n",
           o->context, o->context, o->vector, o->layers, o->width, model->text->vocabulary, count, model->parameter_count,
           o->batch, o->seed);
    fflush(stdout);
}

static void report_comparison(const struct comparison *c)
{
    printf("                                launched one by one   replayed\n");
    printf("    loss of step %-5d           %-19.6f   %.6f\n", c->steps, (double)c->loss[0], (double)c->loss[1]);
    printf("    checksum of the state       %016" PRIx64 "      %016" PRIx64 "\n", c->checksum[0], c->checksum[1]);
    printf("    bytes that differ           %" PRIu64 " of %" PRIu64, c->differing_bytes, c->state_bytes);
    if (c->differing_bytes > 0)
        printf(", the first in %s", c->first);
    printf("; losses that differ: %d of %d\n", c->differing_losses, c->steps);
}

/* The first lines of the library's words: the rest is more of the same. */
static void print_words(const char *words, int lines)
{
    while (*words != 0 && lines-- > 0) {
        int length = 0;
        while (words[length] != 0 && words[length] != '\n')
            length++;
        printf("    | %.*s\n", length, words);
        words += length + (words[length] == '\n');
    }
    if (*words != 0)
        printf("    | ...\n");
}

void report_unpinned(const struct model *model, const struct findings *findings)
{
    printf("Without pins\n"
           "  The optimizer writes each new parameter to another block: parameters move. The library refuses such a graph:\n");
    print_words(findings->unpinned_refusal, 4);
    printf("  Forced to take it, it is replayed for %d steps. No error is raised, and the result is %s:\n",
           findings->unpinned.steps, findings->unpinned.identical ? "RIGHT, which it should not be" : "wrong");
    report_comparison(&findings->unpinned);
    printf("  %d of %d parameters are not where the graph reads them.\n\n", findings->moved, model->parameter_count);
    fflush(stdout);
}

void report_audit(const stepgraph_audit *audit)
{
    stepgraph_audit_summary summary = STEPGRAPH_AUDIT_SUMMARY_INIT;

    stepgraph_audit_get_summary(audit, &summary);
    if (summary.faults == 0) {
        printf("Audit    two consecutive steps recorded and compared, %" PRIu64 " nodes, %" PRIu64
               " bytes: nothing found that a graph would freeze\n\n",
               summary.nodes, summary.bytes);
    } else {
        printf("Audit    two consecutive steps recorded and compared; a graph would freeze what changes from one to the next:\n");
        print_words(stepgraph_audit_text(audit), INT_MAX);
        printf("\n");
    }
    fflush(stdout);
}

void report_check(const stepgraph_check *check)
{
    stepgraph_check_summary summary = STEPGRAPH_CHECK_SUMMARY_INIT;

    stepgraph_check_get_summary(check, &summary);
    printf("Check    %u steps launched twice and replayed twice from the same state, compared on the device: %s\n", summary.steps,
           stepgraph_check_verdict_name(summary.verdict));
    print_words(stepgraph_check_text(check), INT_MAX);
    printf("\n");
    fflush(stdout);
}

void report_relax(const stepgraph_relax *relax)
{
    printf("Relax    the step, once proven, was tried in the order that its memory needs:\n");
    print_words(stepgraph_relax_text(relax), INT_MAX);
    printf("\n");
    fflush(stdout);
}

void report_pinned(const struct findings *findings)
{
    printf("With pins\n"
           "  The same steps over masters that stay in place; each step ends by committing its new values. The result is %s:\n",
           findings->pinned.identical ? "the same, bit for bit" : "NOT THE SAME");
    report_comparison(&findings->pinned);
    printf("\n");
    fflush(stdout);
}

static void report_stages(const struct measured *m)
{
    char host[32], device[32];
    uint64_t launches = 0;

    printf("Launched one by one, by stage (medians)\n");
    printf("  stage         launches    host us   device us   nodes in the graph\n");
    for (uint32_t i = 0; i < m->stage_count; i++) {
        const stepgraph_stage *s = &m->stages[i];
        printf("  %-12s  %8" PRIu64 " %10s  %10s   %18" PRIu64 "\n", *s->name == 0 ? "(before)" : s->name, s->launches,
               microseconds(host, s->host_us), microseconds(device, s->device_us), s->nodes);
        launches += s->launches;
    }
    printf("  %-12s  %8" PRIu64 "   and the commit, which is the library's own\n\n", "all", launches);
}

static void report_pins(const struct measured *m)
{
    printf("Pins     %" PRIu64 " pins, %.1f KiB. Keeping the parameters in place costs %" PRIu64
           " launch%s and %.1f KiB per step.\n",
           m->pins.pins, (double)m->pins.pin_bytes / 1024, m->step.pin_nodes, m->step.pin_nodes == 1 ? "" : "es",
           (double)m->step.pin_bytes / 1024);
    printf("         So far %" PRIu64 " values were committed in %" PRIu64 " launches, and %" PRIu64 " fed in %" PRIu64
           " copies.\n\n",
           m->pins.copies, m->pins.copy_launches, m->pins.feeds, m->pins.feed_copies);
}

static void report_missing(uint32_t missing)
{
    static const char *const words[] = {
        "nobody counts launches",
        "too few warm runs",
        "no device time",
        "no replay was timed",
        "the last two runs launched different numbers of kernels",
        "the counter is a lower bound",
    };

    for (unsigned bit = 0; bit < sizeof words / sizeof *words; bit++)
        if (missing & 1u << bit)
            printf("         missing: %s\n", words[bit]);
}

static const char *rule(int32_t holds)
{
    return holds > 0 ? "holds" : holds == 0 ? "does not hold" : "is unknown";
}

void report_measured(const struct driver *driver, const struct measured *m)
{
    const stepgraph_verdict *v = &m->verdict;
    char fresh[32], replay[32];

    report_stages(m);
    report_pins(m);

    printf("Per step, us (medians)   launched one by one   replayed\n");
    printf("  host                   %-19s   %s\n", microseconds(fresh, v->host_us_fresh),
           microseconds(replay, v->host_us_replay));
    printf("  device                 %-19s   %s\n", microseconds(fresh, v->device_us_fresh),
           microseconds(replay, v->device_us_replay));
    printf("  step (the larger)      %-19s   %s\n\n", microseconds(fresh, v->step_us_fresh),
           microseconds(replay, v->step_us_replay));

    printf("Verdict  %s%s\n", answer((int32_t)v->answer), driver->info.software ? ", on the software driver" : "");
    printf("         P < L - 1 %s: P = %" PRId64 ", the launches that keep the pins; L = %" PRId64 ", the launches of a step\n",
           rule(v->rule_launches), v->pin_launches, v->launches);
    printf("         a replay takes less time than the launches: that %s\n", rule(v->rule_time));
    report_missing(v->missing);
    printf("\n");
    fflush(stdout);
}

/* ---- as data ----------------------------------------------------------------------------------------------------- */

static void json_driver(struct json *json, const struct model *model)
{
    const stepgraph_session_info *info = &model->driver->info;

    json_text(json, "driver", driver_kind(model->driver));
    json_text(json, "driver_path", info->driver_path);
    json_number(json, "driver_version", info->driver_version);
    json_text(json, "driver_choice", model->driver->choice);
    json_text(json, "device", info->device_name);
}

static void json_pair(struct json *json, const char *key, double fresh, double replay)
{
    json_open(json, key, '{');
    json_number(json, "fresh", fresh);
    json_number(json, "replay", replay);
    json_close(json, '}');
}

static void json_comparison(struct json *json, const char *key, const struct comparison *c)
{
    char hex[17];

    json_open(json, key, '{');
    json_truth(json, "identical", c->identical);
    json_number(json, "steps", c->steps);
    json_number(json, "differing_bytes", (double)c->differing_bytes);
    json_number(json, "state_bytes", (double)c->state_bytes);
    json_number(json, "differing_losses", c->differing_losses);
    json_pair(json, "loss", (double)c->loss[0], (double)c->loss[1]);
    json_open(json, "checksum", '{');
    snprintf(hex, sizeof hex, "%016" PRIx64, c->checksum[0]);
    json_text(json, "fresh", hex);
    snprintf(hex, sizeof hex, "%016" PRIx64, c->checksum[1]);
    json_text(json, "replay", hex);
    json_close(json, '}');
    json_close(json, '}');
}

static void json_measured(struct json *json, const struct measured *m)
{
    const stepgraph_verdict *v = &m->verdict;

    json_number(json, "launches_per_step", (double)v->launches);
    json_open(json, "stages", '[');
    for (uint32_t i = 0; i < m->stage_count; i++) {
        json_open(json, NULL, '{');
        json_text(json, "name", m->stages[i].name);
        json_number(json, "launches", (double)m->stages[i].launches);
        json_number(json, "host_us", m->stages[i].host_us);
        json_number(json, "device_us", m->stages[i].device_us);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_number(json, "graph_nodes", (double)m->step.nodes_total);
    json_number(json, "pins", (double)m->pins.pins);
    json_number(json, "pin_launches_per_step", (double)m->step.pin_nodes);
    json_number(json, "pin_bytes", (double)m->pins.pin_bytes);
    json_number(json, "pin_bytes_per_step", (double)m->step.pin_bytes);
    json_pair(json, "host_us_per_step", v->host_us_fresh, v->host_us_replay);
    json_pair(json, "device_us_per_step", v->device_us_fresh, v->device_us_replay);
    json_pair(json, "step_us", v->step_us_fresh, v->step_us_replay);
    json_text(json, "verdict", answer((int32_t)v->answer));
}

static void json_audit(struct json *json, const stepgraph_audit *audit)
{
    stepgraph_audit_summary summary = STEPGRAPH_AUDIT_SUMMARY_INIT;

    if (audit == NULL)
        return;
    stepgraph_audit_get_summary(audit, &summary);
    json_open(json, "audit", '{');
    json_number(json, "faults", (double)summary.faults);
    json_number(json, "nodes", (double)summary.nodes);
    json_number(json, "bytes", (double)summary.bytes);
    json_close(json, '}');
}

static void json_check(struct json *json, const stepgraph_check *check)
{
    stepgraph_check_summary summary = STEPGRAPH_CHECK_SUMMARY_INIT;

    if (check == NULL)
        return;
    stepgraph_check_get_summary(check, &summary);
    json_open(json, "check", '{');
    json_text(json, "verdict", stepgraph_check_verdict_name(summary.verdict));
    json_number(json, "steps", summary.steps);
    json_number(json, "pins", (double)summary.pins);
    json_number(json, "bytes", (double)summary.bytes);
    json_truth(json, "planted_fault_seen", summary.planted_seen != 0);
    json_number(json, "inputs_altered", summary.inputs);
    json_number(json, "inputs_seen", summary.inputs_seen);
    json_number(json, "seconds", summary.seconds);
    if (summary.search == STEPGRAPH_SEARCH_FOUND)
        json_text(json, "node", summary.node_name);
    if (*summary.cause != 0)
        json_text(json, "cause", summary.cause);
    json_close(json, '}');
}

static void json_relax(struct json *json, const stepgraph_relax *relax)
{
    stepgraph_relax_summary summary = STEPGRAPH_RELAX_SUMMARY_INIT;

    if (relax == NULL)
        return;
    stepgraph_relax_get_summary(relax, &summary);
    json_open(json, "relax", '{');
    json_truth(json, "identical", summary.identical == 1);
    json_number(json, "lanes", summary.lanes);
    json_number(json, "critical_path_before", (double)summary.path_recorded);
    json_number(json, "critical_path_needed", (double)summary.path_needed);
    json_number(json, "critical_path_after", (double)summary.path);
    json_number(json, "barriers", (double)summary.barriers);
    json_number(json, "step_us_before", summary.us_recorded);
    json_number(json, "step_us", summary.us);
    json_close(json, '}');
}

void report_json(FILE *file, const struct model *model, stepgraph_loop *loop, const struct findings *findings)
{
    struct json json = {file, 0, false};
    const char *loop_json = NULL;

    json_open(&json, NULL, '{');
    json_driver(&json, model);
    json_text(&json, "text", model->text->name);
    json_number(&json, "steps", model->options->steps);
    json_number(&json, "steps_replayed", findings->progress.replays);
    json_number(&json, "steps_per_second", model->options->steps / findings->progress.seconds);
    json_measured(&json, &findings->measured);
    json_audit(&json, stepgraph_loop_audit(loop, 0));
    json_check(&json, stepgraph_loop_check(loop, 0));
    json_relax(&json, stepgraph_loop_relax(loop, 0));
    json_comparison(&json, "unpinned", &findings->unpinned);
    json_comparison(&json, "pinned", &findings->pinned);
    json_open(&json, "loss", '{');
    json_number(&json, "first", (double)findings->progress.first_loss);
    json_number(&json, "last", (double)findings->progress.last_loss);
    json_close(&json, '}');
    if (stepgraph_loop_report(loop, STEPGRAPH_REPORT_JSON, &loop_json) == STEPGRAPH_OK)
        json_raw(&json, "loop", loop_json);
    json_close(&json, '}');
}

void report_refusal_json(FILE *file, const struct model *model, const stepgraph_loop *loop, const char *words)
{
    struct json json = {file, 0, false};

    json_open(&json, NULL, '{');
    json_driver(&json, model);
    json_text(&json, "refused", words);
    json_audit(&json, stepgraph_loop_audit(loop, 0));
    json_check(&json, stepgraph_loop_check(loop, 0));
    json_close(&json, '}');
}
