/* The report of a check: its verdict, its forms for people and programs, and the calls that walk it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_p.h"
#include "kernels/elements.h"
#include "resolve.h"
#include "structs.h"
#include "text.h"

static const char *const type_names[] = {"bytes", "f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"};

static const struct {
    uint32_t bit;
    const char *name;
} facts[] = {
    {STEPGRAPH_CHECK_DIFFERS, "differs"},       {STEPGRAPH_CHECK_UNSTEADY, "unsteady"},     {STEPGRAPH_CHECK_BEYOND, "beyond"},
    {STEPGRAPH_CHECK_UNWRITTEN, "unwritten"},   {STEPGRAPH_CHECK_UNREAD, "unread"},         {STEPGRAPH_CHECK_UNTRIED, "untried"},
    {STEPGRAPH_CHECK_UNCHANGED, "unchanged"},   {STEPGRAPH_CHECK_UNREPEATED, "unrepeated"}, {STEPGRAPH_CHECK_OLD_VALUES, "old values"},
    {STEPGRAPH_CHECK_PADDING, "padding"},       {STEPGRAPH_CHECK_ORDER, "order"},
};

const char *stepgraph_check_verdict_name(uint32_t verdict)
{
    static const char *const names[] = {"unknown verdict", "IDENTICAL", "DIVERGED", "INCONCLUSIVE", "UNPROVEN"};

    return names[verdict <= STEPGRAPH_UNPROVEN ? verdict : 0];
}

/* ---- one pin ----------------------------------------------------------------------------------------------------- */

static void value(char *text, size_t bytes, uint32_t type, uint64_t bits)
{
    double number = sg__element_value(type, bits);

    if (type == STEPGRAPH_TYPE_BYTES)
        snprintf(text, bytes, "%02" PRIx64, bits & 0xff);
    else if (type >= STEPGRAPH_TYPE_U8)
        snprintf(text, bytes, "%" PRIu64, bits);
    else if (type >= STEPGRAPH_TYPE_I8)
        snprintf(text, bytes, "%" PRId64, (int64_t)sg__element_signed_value(type, bits));
    else
        sg__print(text, bytes, type == STEPGRAPH_TYPE_F64 ? "%.17g" : "%.9g", number);
}

/* "step 2: 16 of 400 bytes differ, 4 elements, first [3]: 0.5 fresh, 0.25 replayed, up to 8388608 ulps apart" */
static void difference_text(const stepgraph_check_pin *pin, char *text, size_t bytes)
{
    char fresh[40], replay[40], far[64];

    value(fresh, sizeof fresh, pin->type, pin->fresh_bits);
    value(replay, sizeof replay, pin->type, pin->replay_bits);
    far[0] = '\0';
    if (pin->ulps == UINT64_MAX)
        snprintf(far, sizeof far, ", a NaN against a number");
    else if (pin->type >= STEPGRAPH_TYPE_F32 && pin->type <= STEPGRAPH_TYPE_F8E5M2)
        snprintf(far, sizeof far, ", up to %" PRIu64 " ulps apart", pin->ulps);
    snprintf(text, bytes, "after step %" PRIu64 " %" PRIu64 " of %" PRIu64 " bytes differ, %" PRIu64 " %s element%s, first [%" PRIu64
             "]: %s fresh, %s replayed%s", pin->step, pin->bytes_differ, pin->bytes, pin->elements_differ, type_names[pin->type],
             pin->elements_differ != 1 ? "s" : "", pin->element, fresh, replay, far);
}

static void describe(const sg__record *record, stepgraph_check_pin *pin)
{
    char what[320], *text = pin->text;
    size_t bytes = sizeof pin->text;
    uint32_t f = pin->facts;
    int used;

    used = snprintf(text, bytes, "%s '%s'", sg__role_name(pin->role), pin->name);
    text += used;
    bytes -= (size_t)used;
    what[0] = '\0';
    if ((f & STEPGRAPH_CHECK_DIFFERS) != 0)
        difference_text(pin, what, sizeof what);

    if ((f & STEPGRAPH_CHECK_UNREPEATED) != 0)
        snprintf(text, bytes, "  is not fed the same bytes when the same step is fed again: the feed callback must repeat itself");
    else if ((f & STEPGRAPH_CHECK_OLD_VALUES) != 0)
        snprintf(text, bytes, "  depends on what outputs or scratch held before the step: what a step reads before it writes it is a STATE%s%s",
                 what[0] != '\0' ? "; " : "", what);
    else if ((f & STEPGRAPH_CHECK_BEYOND) != 0)
        sg__print(text, bytes, "  %s; fresh launches differ by %.3g, replays by %.3g", what, pin->spread, pin->distance);
    else if ((f & STEPGRAPH_CHECK_UNSTEADY) != 0)
        snprintf(text, bytes, "  differs among fresh launches, in up to %" PRIu64 " bytes%s", record->spread_bytes,
                 pin->type == STEPGRAPH_TYPE_BYTES ? "; give the pin an element type, so that the spread can be measured" : "");
    else if ((f & STEPGRAPH_CHECK_ORDER) != 0)
        snprintf(text, bytes, "  %s, only in replays that %s", what,
                 record->arms[SG__ARM_QUEUED].step != SG__NO_STEP ? "run back to back: something does not wait for something"
                                                                  : "are fed late: they do not wait for the feeding stream");
    else if (what[0] != '\0')
        snprintf(text, bytes, "  %s", what);
    else if ((f & STEPGRAPH_CHECK_UNWRITTEN) != 0)
        snprintf(text, bytes, "  is written by nobody, neither launches nor replays");
    else if ((f & STEPGRAPH_CHECK_UNREAD) != 0)
        snprintf(text, bytes, "  %s", record->used ? "changes nothing when it is altered: it is not read" : "is fed, and the graph does not refer to it");
    else if ((f & STEPGRAPH_CHECK_UNTRIED) != 0)
        snprintf(text, bytes, "  was not altered: all steps feed the same bytes, and no other value is known to be safe");
    else if ((f & STEPGRAPH_CHECK_UNCHANGED) != 0)
        snprintf(text, bytes, "  is not changed by any of the steps");
    if ((f & STEPGRAPH_CHECK_UNSTEADY) != 0 && (f & (STEPGRAPH_CHECK_BEYOND | STEPGRAPH_CHECK_UNREPEATED | STEPGRAPH_CHECK_OLD_VALUES)) == 0 &&
        pin->type != STEPGRAPH_TYPE_BYTES) {
        size_t length = strlen(pin->text);
        sg__print(pin->text + length, sizeof pin->text - length, ", by up to %.3g; replays stay within", pin->spread);
    }
    if ((f & STEPGRAPH_CHECK_PADDING) != 0) {
        size_t length = strlen(pin->text);
        snprintf(pin->text + length, sizeof pin->text - length, "  what stands behind the fed bytes changes a state");
    }
}

/* From a record; step numbers become the host's. */
static void fill_pin(const sg__check *check, size_t j, stepgraph_check_pin *pin)
{
    const sg__shot_item *item = &check->shots.items[j];
    const sg__record *record = &check->records[j];
    const sg__outcome *outcome = NULL;
    uint32_t type = item->pin->type;
    uint64_t size = sg__element_bytes(type);

    snprintf(pin->name, sizeof pin->name, "%s", item->pin->name);
    pin->role = (uint32_t)item->pin->role;
    pin->type = type;
    pin->facts = record->facts;
    pin->fault = record->fault ? 1 : 0;
    pin->bytes = item->pin->bytes;
    pin->step = UINT64_MAX;
    pin->spread = record->spread;
    for (int arm = 0; arm <= SG__ARM_LATE && (record->facts & STEPGRAPH_CHECK_DIFFERS) != 0; arm++)
        if (outcome == NULL && record->arms[arm].step != SG__NO_STEP && (record->arms[arm].beyond || (record->facts & STEPGRAPH_CHECK_BEYOND) == 0))
            outcome = &record->arms[arm];
    if (outcome != NULL) {
        pin->step = check->config.first + outcome->step;
        pin->bytes_differ = outcome->bytes;
        pin->elements_differ = outcome->distance.elements;
        pin->element = outcome->first / size;
        pin->fresh_bits = outcome->fresh_bits;
        pin->replay_bits = outcome->replay_bits;
        pin->fresh = sg__element_value(type, outcome->fresh_bits);
        pin->replay = sg__element_value(type, outcome->replay_bits);
        pin->ulps = outcome->distance.ulps;
        pin->distance = sg__double_of_bits(outcome->distance.largest);
    }
    describe(record, pin);
}

/* Pins that a person is shown; programs can walk them all. */
#define SHOWN 12u

/* Faults first, then what has something to say, then the rest. */
static int weight(const stepgraph_check_pin *pin)
{
    uint32_t quiet = STEPGRAPH_CHECK_UNCHANGED;

    return pin->fault != 0 ? 0 : (pin->facts & ~quiet) != 0 ? 1 : pin->facts != 0 ? 2 : 3;
}

/* Then what went wrong first; then by the registry, which is by address and so by the index that they have now. */
static int by_weight(const void *a, const void *b)
{
    const stepgraph_check_pin *x = *(const stepgraph_check_pin *const *)a, *y = *(const stepgraph_check_pin *const *)b;

    if (weight(x) != weight(y))
        return weight(x) < weight(y) ? -1 : 1;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void sum_up(const sg__check *check, stepgraph_check *report)
{
    stepgraph_check_summary *s = &report->summary;
    uint64_t first = UINT64_MAX;

    s->size = sizeof *s;
    s->steps = check->steps;
    s->first = check->config.first;
    s->hung = check->hung ? 1 : 0;
    s->failed = check->failed ? 1 : 0;
    s->every_step = check->every_step ? 1 : 0;
    s->software = check->session->info.software != 0 ? 1 : 0;
    s->pins = report->n_pins;
    s->bytes = check->shots.pin_bytes;
    s->device_bytes = check->shots.device_bytes;
    s->host_bytes = check->shots.host_bytes;
    for (size_t i = 0; i < report->n_pins; i++) {
        const stepgraph_check_pin *pin = &report->pins[i];
        s->pins_diverged += pin->fault;
        s->pins_unsteady += (pin->facts & STEPGRAPH_CHECK_UNSTEADY) != 0 ? 1 : 0;
        s->outputs_unwritten += (pin->facts & STEPGRAPH_CHECK_UNWRITTEN) != 0 ? 1 : 0;
        if (pin->fault != 0 && pin->step < first)
            first = pin->step;
    }
    for (size_t i = 0; i < report->n_pins; i++)
        s->bytes_differ += report->pins[i].fault != 0 && report->pins[i].step == first ? report->pins[i].bytes_differ : 0;
    s->bad_step = check->bad_step != SG__NO_STEP ? check->config.first + check->bad_step : first;
}

/* Why a check without any difference proves nothing; NULL: it proves something. */
static const char *unproven(const stepgraph_check *report)
{
    const stepgraph_check_summary *s = &report->summary;
    bool states = false, changes = false, feeds = false, feeds_read = false;

    for (size_t i = 0; i < report->n_pins; i++) {
        const stepgraph_check_pin *pin = &report->pins[i];
        states |= pin->role == STEPGRAPH_ROLE_STATE;
        changes |= pin->role == STEPGRAPH_ROLE_STATE && (pin->facts & STEPGRAPH_CHECK_UNCHANGED) == 0;
        changes |= pin->role == STEPGRAPH_ROLE_OUTPUT && (pin->facts & STEPGRAPH_CHECK_UNWRITTEN) == 0;
        feeds |= pin->role == STEPGRAPH_ROLE_FEED && (pin->facts & STEPGRAPH_CHECK_UNTRIED) == 0;
        feeds_read |= pin->role == STEPGRAPH_ROLE_FEED && (pin->facts & (STEPGRAPH_CHECK_UNTRIED | STEPGRAPH_CHECK_UNREAD)) == 0;
    }
    if (!changes)
        return "no STATE changes and no OUTPUT is written, so there was nothing to compare: pin what the step computes";
    if (states && s->planted_seen == 0)
        return "a planted fault was not seen: no result depends on the states it was planted in, or their element types are not given";
    if (feeds && !feeds_read)
        return "altered feeds were not seen: the step reads none of its feeds";
    if (s->outputs_unwritten > 0)
        return "an OUTPUT is declared and written by nobody, so nothing is known about it";
    return NULL;
}

/* Why fresh launches differ from fresh launches. */
static const char *unsteady(const stepgraph_check *report)
{
    uint32_t all = UINT32_MAX, some = 0;

    for (size_t i = 0; i < report->n_pins; i++)
        if ((report->pins[i].facts & STEPGRAPH_CHECK_UNSTEADY) != 0) {
            all &= report->pins[i].facts;
            some |= report->pins[i].facts;
        }
    if ((some & STEPGRAPH_CHECK_UNREPEATED) != 0)
        return "the host does not feed the same bytes when the same step is fed again";
    if ((all & STEPGRAPH_CHECK_OLD_VALUES) != 0)
        return report->summary.outputs_unwritten > 0 ? "an OUTPUT is declared and written by nobody, and the step reads what it held before"
                                                     : "the step depends on what OUTPUT or SCRATCH pins held before it";
    return "the step is not deterministic by itself: fresh launches differ from fresh launches";
}

static void decide(stepgraph_check *report)
{
    stepgraph_check_summary *s = &report->summary;
    const char *why;

    if (s->hung != 0 || s->failed != 0 || s->pins_diverged > 0) {
        s->verdict = STEPGRAPH_DIVERGED;
        return;
    }
    why = unproven(report);
    /* Noise may well have hidden the planted fault. */
    s->verdict = s->pins_unsteady > 0 ? STEPGRAPH_INCONCLUSIVE : why != NULL ? STEPGRAPH_UNPROVEN : STEPGRAPH_IDENTICAL;
    if (s->pins_unsteady > 0)
        why = unsteady(report);
    if (why != NULL)
        snprintf(s->cause, sizeof s->cause, "%s", why);
}

static void write_text(const stepgraph_check *report, sg__text *t)
{
    const stepgraph_check_summary *s = &report->summary;
    uint64_t more = 0;

    sg__text_add(t, "%s: %s", report->title, stepgraph_check_verdict_name(s->verdict));
    sg__text_add(t, " (steps %" PRIu64 " to %" PRIu64 ", %" PRIu64 " pins, %" PRIu64 " bytes, compared %s; %s%s, driver %d.%d; %.2f s)", s->first,
                 s->first + s->steps - 1, s->pins, s->bytes, s->every_step != 0 ? "after every step" : "after the last step, for lack of memory",
                 report->device, s->software != 0 ? ", simulated on the CPU" : "", report->driver_version / 1000,
                 report->driver_version % 1000 / 10, s->seconds);
    if (s->cause[0] != '\0')
        sg__text_add(t, "\n  %s", s->cause);
    if (s->search == STEPGRAPH_SEARCH_FOUND)
        sg__text_add(t, "\n  node %u  %s%s%s%s  %s", s->node, s->node_name, s->stage[0] != '\0' ? "  in stage '" : "", s->stage,
                     s->stage[0] != '\0' ? "'" : "", s->search_text);
    else if (s->search != STEPGRAPH_SEARCH_NONE)
        sg__text_add(t, "\n  %s%s", s->search == STEPGRAPH_SEARCH_UNABLE ? "the node was not looked for: " : "", s->search_text);
    for (size_t i = 0; i < report->n_pins; i++) {
        const stepgraph_check_pin *pin = &report->pins[i];
        if (weight(pin) > 1)
            continue;
        if (i < SHOWN)
            sg__text_add(t, "\n  %s%s", pin->fault != 0 ? "" : "(no fault) ", pin->text);
        else
            more++;
    }
    if (more > 0)
        sg__text_add(t, "\n  and %" PRIu64 " more", more);
    if (s->hung == 0 && s->failed == 0)
        sg__text_add(t, "\n  proof: %u fault%s planted, the last one %sseen; %u of %u altered inputs seen%s", s->planted, s->planted != 1 ? "s" : "",
                     s->planted_seen != 0 ? "" : "not ", s->inputs_seen, s->inputs, s->inputs_untried > 0 ? ", others could not be altered" : "");
    sg__text_add(t, "\n");
}

/* JSON knows neither NaN nor infinity. */
static void add_number(sg__text *t, const char *key, double number)
{
    if (isfinite(number))
        sg__text_add(t, ", \"%s\": %.17g", key, number);
    else
        sg__text_add(t, ", \"%s\": \"%s\"", key, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
}

static void write_json_pin(const stepgraph_check_pin *pin, sg__text *t)
{
    const char *comma = "";

    sg__text_add(t, "{\"name\": ");
    sg__text_quoted(t, pin->name);
    sg__text_add(t, ", \"role\": \"%s\", \"type\": \"%s\", \"fault\": %s, \"facts\": [", sg__role_name(pin->role), type_names[pin->type],
                 pin->fault != 0 ? "true" : "false");
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if ((pin->facts & facts[i].bit) != 0) {
            sg__text_add(t, "%s\"%s\"", comma, facts[i].name);
            comma = ", ";
        }
    sg__text_add(t, "], \"bytes\": %" PRIu64, pin->bytes);
    if (pin->step != UINT64_MAX) {
        sg__text_add(t, ", \"step\": %" PRIu64 ", \"bytes_differ\": %" PRIu64 ", \"elements_differ\": %" PRIu64 ", \"element\": %" PRIu64
                     ", \"fresh_bits\": \"0x%" PRIx64 "\", \"replay_bits\": \"0x%" PRIx64 "\", \"ulps\": %" PRIu64, pin->step, pin->bytes_differ,
                     pin->elements_differ, pin->element, pin->fresh_bits, pin->replay_bits, pin->ulps);
        add_number(t, "fresh", pin->fresh);
        add_number(t, "replay", pin->replay);
        add_number(t, "distance", pin->distance);
    }
    add_number(t, "spread", pin->spread);
    sg__text_add(t, ", \"text\": ");
    sg__text_quoted(t, pin->text);
    sg__text_add(t, "}");
}

static void write_json(const stepgraph_check *report, sg__text *t)
{
    static const char *const searches[] = {"none", "found", "clean", "unable"};
    const stepgraph_check_summary *s = &report->summary;

    sg__text_add(t, "{\"title\": ");
    sg__text_quoted(t, report->title);
    sg__text_add(t, ", \"verdict\": \"%s\", \"device\": ", stepgraph_check_verdict_name(s->verdict));
    sg__text_quoted(t, report->device);
    sg__text_add(t, ", \"driver_version\": %d, \"software\": %s, \"steps\": %u, \"first\": %" PRIu64, report->driver_version,
                 s->software != 0 ? "true" : "false", s->steps, s->first);
    if (s->bad_step != UINT64_MAX)
        sg__text_add(t, ", \"bad_step\": %" PRIu64, s->bad_step);
    sg__text_add(t, ", \"hung\": %s, \"failed\": %s, \"every_step\": %s, \"pins\": %" PRIu64 ", \"pins_diverged\": %" PRIu64
                 ", \"pins_unsteady\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"bytes_differ\": %" PRIu64, s->hung != 0 ? "true" : "false",
                 s->failed != 0 ? "true" : "false", s->every_step != 0 ? "true" : "false", s->pins, s->pins_diverged, s->pins_unsteady, s->bytes,
                 s->bytes_differ);
    sg__text_add(t, ", \"planted\": %u, \"planted_seen\": %s, \"inputs\": %u, \"inputs_seen\": %u, \"inputs_untried\": %u, \"outputs_unwritten\": %u",
                 s->planted, s->planted_seen != 0 ? "true" : "false", s->inputs, s->inputs_seen, s->inputs_untried, s->outputs_unwritten);
    sg__text_add(t, ", \"device_bytes\": %" PRIu64 ", \"host_bytes\": %" PRIu64 ", \"seconds\": %.6f, \"cause\": ", s->device_bytes, s->host_bytes,
                 s->seconds);
    sg__text_quoted(t, s->cause);
    sg__text_add(t, ", \"search\": {\"result\": \"%s\", \"node\": %lld, \"name\": ", searches[s->search],
                 s->node != UINT32_MAX ? (long long)s->node : -1);
    sg__text_quoted(t, s->node_name);
    sg__text_add(t, ", \"stage\": ");
    sg__text_quoted(t, s->stage);
    sg__text_add(t, ", \"text\": ");
    sg__text_quoted(t, s->search_text);
    sg__text_add(t, "}, \"list\": [");
    for (size_t i = 0; i < report->n_pins; i++) {
        sg__text_add(t, "%s\n  ", i > 0 ? "," : "");
        write_json_pin(&report->pins[i], t);
    }
    sg__text_add(t, "]}\n");
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

stepgraph_check *sg__check_report_new(sg__check *check)
{
    stepgraph_check *report = calloc(1, sizeof *report);
    size_t bytes = strlen(check->step->name) + 16;

    if (report == NULL || (report->title = malloc(bytes)) == NULL ||
        (report->pins = calloc(check->shots.n_items + 1, sizeof *report->pins)) == NULL) {
        stepgraph_check_destroy(report);
        sg__fail_memory("host", check->shots.n_items * sizeof *report->pins);
        return NULL;
    }
    snprintf(report->title, bytes, "check of '%s'", check->step->name);
    snprintf(report->device, sizeof report->device, "%s", check->session->info.device_name);
    report->driver_version = check->session->info.driver_version;
    report->summary.node = UINT32_MAX;
    report->summary.bad_step = UINT64_MAX;
    return report;
}

stepgraph_status sg__check_report(sg__check *check)
{
    stepgraph_check *report = check->report;
    size_t n = check->shots.n_items;
    stepgraph_check_pin *pins = calloc(n + 1, sizeof *pins), **order = calloc(n + 1, sizeof(stepgraph_check_pin *));
    sg__text text = {0}, json = {0};
    stepgraph_status status;

    if (pins == NULL || order == NULL) {
        free(pins);
        free(order);
        return sg__fail_memory("host", n * (sizeof *pins + sizeof *order));
    }
    for (size_t j = 0; j < n; j++) {
        pins[j] = (stepgraph_check_pin)STEPGRAPH_CHECK_PIN_INIT;
        fill_pin(check, j, &pins[j]);
        order[j] = &pins[j];
    }
    qsort(order, n, sizeof *order, by_weight);
    for (size_t j = 0; j < n; j++)
        report->pins[report->n_pins++] = *order[j];
    free(order);
    free(pins);
    sum_up(check, report);
    decide(report);
    write_text(report, &text);
    write_json(report, &json);
    status = sg__texts_keep(&text, &json, &report->text, &report->json);
    if (status != STEPGRAPH_OK)
        return status;
    sg__log(check->session, report->summary.verdict == STEPGRAPH_IDENTICAL ? STEPGRAPH_LOG_INFO : STEPGRAPH_LOG_WARNING, "%s", report->text);
    return STEPGRAPH_OK;
}

void stepgraph_check_destroy(stepgraph_check *check)
{
    if (check == NULL)
        return;
    free(check->title);
    free(check->pins);
    free(check->text);
    free(check->json);
    free(check);
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

stepgraph_status stepgraph_check_get_summary(const stepgraph_check *check, stepgraph_check_summary *summary_out)
{
    sg__error_clear();
    if (check == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no report to sum up: the pointer is NULL");
    return sg__struct_write(summary_out, &check->summary, sizeof check->summary, offsetof(stepgraph_check_summary, first),
                            "stepgraph_check_summary");
}

stepgraph_status stepgraph_check_get_pin(const stepgraph_check *check, uint32_t index, stepgraph_check_pin *pin_out)
{
    sg__error_clear();
    if (check == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "no report to read: the pointer is NULL");
    if (index >= check->n_pins)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "the report has no pin %u", index);
    return sg__struct_write(pin_out, &check->pins[index], sizeof *check->pins, offsetof(stepgraph_check_pin, bytes), "stepgraph_check_pin");
}

const char *stepgraph_check_text(const stepgraph_check *check)
{
    return check != NULL ? check->text : "";
}

const char *stepgraph_check_json(const stepgraph_check *check)
{
    return check != NULL ? check->json : "{}";
}
