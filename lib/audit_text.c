/* The report in words: for people, and as JSON for programs. Made when somebody reads it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit_p.h"
#include "text.h"

static const char *const kind_names[] = {
    [STEPGRAPH_FINDING_MOVED_POINTER] = "moved pointer",
    [STEPGRAPH_FINDING_CHANGING_SCALAR] = "changing scalar",
    [STEPGRAPH_FINDING_UNCLASSIFIED] = "unclassified",
    [STEPGRAPH_FINDING_TOPOLOGY] = "topology",
    [STEPGRAPH_FINDING_UNREGISTERED] = "unregistered",
    [STEPGRAPH_FINDING_FREED] = "freed",
    [STEPGRAPH_FINDING_REPLACED] = "replaced",
    [STEPGRAPH_FINDING_FOREIGN] = "foreign",
    [STEPGRAPH_FINDING_PAGEABLE] = "pageable",
    [STEPGRAPH_FINDING_PAGE_LOCKED] = "page-locked",
    [STEPGRAPH_FINDING_POOL] = "pool",
    [STEPGRAPH_FINDING_FORMER_STATE] = "former state",
    [STEPGRAPH_FINDING_ALLOCATION] = "allocation",
    [STEPGRAPH_FINDING_HOST_FUNCTION] = "host function",
    [STEPGRAPH_FINDING_EMPTY] = "empty",
    [STEPGRAPH_FINDING_ESCAPED] = "escaped",
    [STEPGRAPH_FINDING_UNREAD] = "unread",
};

/* ---- findings ---------------------------------------------------------------------------------------------------- */

/* Where a word stands in its node. */
static void write_place(const sg__finding *finding, char *text, size_t bytes)
{
    static const char *const shapes[] = {"grid x", "grid y", "grid z", "block x", "block y", "block z", "shared memory"};

    switch (finding->place) {
    case SG__WORD_ARGUMENT:
        snprintf(text, bytes, "arg %u +%u", finding->part, finding->offset);
        break;
    case SG__WORD_SOURCE:
        snprintf(text, bytes, "source");
        break;
    case SG__WORD_DESTINATION:
        snprintf(text, bytes, "destination");
        break;
    case SG__WORD_EXTENT:
        snprintf(text, bytes, "extent");
        break;
    case SG__WORD_VALUE:
        snprintf(text, bytes, "value");
        break;
    case SG__WORD_OPERATION:
        snprintf(text, bytes, "operation");
        break;
    case SG__WORD_SHAPE:
        snprintf(text, bytes, "%s", shapes[finding->part]);
        break;
    case SG__WORD_HOST:
        snprintf(text, bytes, "%s", finding->part == 0 ? "itself" : "its argument");
        break;
    case SG__WORD_EVENT:
        snprintf(text, bytes, "event");
        break;
    case SG__WORD_FUNCTION:
        snprintf(text, bytes, "kernel");
        break;
    }
}

/* A value's text: its bytes, and what they are as a number where that makes sense. */
static int describe_scalars(const sg__finding *x, char *text, size_t bytes)
{
    float f[2];
    double g[2];
    uint32_t low[2] = {(uint32_t)x->before, (uint32_t)x->after};

    if (x->bytes == 4) {
        memcpy(&f[0], &low[0], 4);
        memcpy(&f[1], &low[1], 4);
        return sg__print(text, bytes, "4 bytes %08x -> %08x (as float %.9g -> %.9g, as integer %d -> %d)", low[0], low[1], (double)f[0], (double)f[1],
                 (int32_t)low[0], (int32_t)low[1]);
    }
    if (x->bytes == 8) {
        memcpy(&g[0], &x->before, 8);
        memcpy(&g[1], &x->after, 8);
        return sg__print(text, bytes, "8 bytes %016llx -> %016llx (as double %.17g -> %.17g, as integer %lld -> %lld)", (unsigned long long)x->before,
                 (unsigned long long)x->after, g[0], g[1], (long long)x->before, (long long)x->after);
    }
    return snprintf(text, bytes, "%u bytes %llx -> %llx (as integer %llu -> %llu)", x->bytes, (unsigned long long)x->before,
             (unsigned long long)x->after, (unsigned long long)x->before, (unsigned long long)x->after);
}

static void describe_change(const sg__finding *f, char *text, size_t bytes)
{
    int n = describe_scalars(f, text, bytes);
    double g[2];

    if (!f->half || n < 0 || (size_t)n >= bytes)
        return;
    memcpy(g, f->whole, sizeof g);
    sg__print(text + n, bytes - (size_t)n, ", or of the double at +%u: %.9g -> %.9g", f->whole_offset, g[0], g[1]);
}

static void put_into_words(const sg__finding *finding, stepgraph_finding *said)
{
    char place[32], where[sizeof said->node_name + sizeof place + 32] = "", values[256];

    *said = (stepgraph_finding){.size = sizeof *said,
                                .kind = finding->kind,
                                .fault = finding->weight == SG__FAULT,
                                .doubtful = finding->weight == SG__DOUBTFUL,
                                .node = finding->node,
                                .argument = sg__finding_argument(finding),
                                .offset = finding->offset,
                                .bytes = finding->bytes,
                                .before = finding->before,
                                .after = finding->after};
    snprintf(said->node_name, sizeof said->node_name, "%s", finding->name != NULL ? sg__name_short(finding->name) : finding->node_kind);
    snprintf(said->stage, sizeof said->stage, "%s", finding->stage);
    snprintf(said->advice, sizeof said->advice, "%s", finding->advice);
    if (finding->placed) {
        write_place(finding, place, sizeof place);
        snprintf(where, sizeof where, "node %u  %s  %s   ", finding->node, said->node_name, place);
    }
    if (finding->extent != 0)
        snprintf(said->text, sizeof said->text, "%sunclassified   %llx -> %llx: goes on by %d in every recording and stands in a struct of %u bytes, %s",
                 where, (unsigned long long)finding->before, (unsigned long long)finding->after, finding->goes_on_by, finding->extent, finding->why);
    else if (finding->why != NULL)
        snprintf(said->text, sizeof said->text, "%sunclassified   %llx -> %llx: %s", where, (unsigned long long)finding->before,
                 (unsigned long long)finding->after, finding->why);
    else if (finding->text == NULL) {
        describe_change(finding, values, sizeof values);
        snprintf(said->text, sizeof said->text, "%schanging scalar   %s", where, values);
    } else
        snprintf(said->text, sizeof said->text, "%s%s", where, finding->text);
}

/* The report, locked, with its findings in words if there is memory for them. It never changes to those who read it; that some of it is made late is
 * nobody's affair but ours. */
static stepgraph_audit *locked(const stepgraph_audit *audit)
{
    stepgraph_audit *ours = (stepgraph_audit *)audit;
    size_t kept = (size_t)audit->summary.kept;

    pthread_mutex_lock(&ours->lock);
    if (ours->said == NULL && kept > 0 && (ours->said = malloc(kept * sizeof *ours->said)) != NULL)
        for (size_t i = 0; i < kept; i++)
            put_into_words(audit->order[i], &ours->said[i]);
    return ours;
}

const stepgraph_finding *sg__audit_at(const stepgraph_audit *audit, size_t index)
{
    static const stepgraph_finding lost = {.size = sizeof lost, .node = UINT32_MAX, .argument = UINT32_MAX, .text = "no host memory for the text of findings"};
    stepgraph_audit *ours = locked(audit);
    const stepgraph_finding *found = ours->said != NULL ? &ours->said[index] : &lost;

    pthread_mutex_unlock(&ours->lock);
    return found;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* Findings that say the same about several nodes: each has the next in its group, the first of them how many there are. */
typedef struct groups {
    uint32_t next[SG__FINDINGS_KEPT], size[SG__FINDINGS_KEPT];
    uint32_t last[SG__FINDINGS_KEPT]; /* Of a first one: the last of its group. */
    uint32_t slots[2048];             /* First ones by what they say, plus 1. */
} groups;

static bool say_the_same(const sg__finding *a, const sg__finding *b)
{
    return a->placed && b->placed && a->kind == b->kind && a->weight == b->weight && a->place == b->place && a->part == b->part &&
           a->offset == b->offset && a->before == b->before && a->after == b->after && a->name == b->name && a->node_kind == b->node_kind &&
           a->why == b->why && a->goes_on_by == b->goes_on_by && a->extent == b->extent && a->bytes == b->bytes && a->half == b->half &&
           a->whole[0] == b->whole[0] && a->whole[1] == b->whole[1] && (a->text == b->text || (a->text != NULL && b->text != NULL && strcmp(a->text, b->text) == 0));
}

static void group(const stepgraph_audit *audit, groups *g)
{
    memset(g, 0, sizeof *g);
    for (uint32_t i = 0; i < audit->summary.kept; i++) {
        const sg__finding *f = audit->order[i];
        uint64_t hash = (f->before * 31 + f->after) * 31 + f->offset;
        size_t at = (hash * 0x9e3779b97f4a7c15ull >> 40) % 2048;
        while (g->slots[at] != 0 && !say_the_same(audit->order[g->slots[at] - 1], f))
            at = (at + 1) % 2048;
        if (g->slots[at] == 0) {
            g->slots[at] = i + 1;
            g->size[i] = 1;
            g->last[i] = i;
        } else {
            uint32_t first = g->slots[at] - 1;
            g->next[g->last[first]] = i;
            g->last[first] = i;
            g->size[first]++;
        }
    }
}

/* The other nodes of a group. */
static void append_nodes(const stepgraph_audit *audit, const groups *g, uint32_t first, sg__text *b)
{
    uint32_t shown = 0;

    sg__text_add(b, "\n      the same in %u more node%s: ", g->size[first] - 1, g->size[first] > 2 ? "s" : "");
    for (uint32_t i = g->next[first]; i != 0 && shown < 12; i = g->next[i])
        sg__text_add(b, "%s%u", shown++ > 0 ? ", " : "", audit->order[i]->node);
    if (g->size[first] - 1 > shown)
        sg__text_add(b, ", ...");
}

static void write_text(const stepgraph_audit *audit, sg__text *b)
{
    const stepgraph_audit_summary *s = &audit->summary;
    const stepgraph_finding *before = NULL;
    groups g;

    if (s->faults > 0)
        sg__text_add(b, "%s%s cannot be replayed: %llu fault%s", audit->title, audit->recordings > 0 ? "," : "", (unsigned long long)s->faults,
                     s->faults != 1 ? "s" : "");
    else
        sg__text_add(b, "%s: no %sfault found", audit->title, s->doubtful > 0 ? "clear " : "");
    if (s->doubtful > 0)
        sg__text_add(b, ", and %llu finding%s in doubt", (unsigned long long)s->doubtful, s->doubtful != 1 ? "s" : "");
    sg__text_add(b, " (%llu nodes, %llu kernels, ", (unsigned long long)s->nodes, (unsigned long long)s->kernels);
    if (audit->recordings > 0)
        sg__text_add(b, "%llu bytes compared in %u recordings)", (unsigned long long)s->bytes, audit->recordings);
    else
        sg__text_add(b, "%llu addresses)", (unsigned long long)s->addresses);
    if (s->unread > 0)
        sg__text_add(b, "; %llu nodes could not be looked at", (unsigned long long)s->unread);
    group(audit, &g);
    for (uint32_t i = 0; i < s->kept; i++) {
        const stepgraph_finding *f = &audit->said[i];
        if (g.size[i] == 0)
            continue;
        /* The same advice once for a run of findings. */
        if (before != NULL && before->advice[0] != '\0' && strcmp(f->advice, before->advice) != 0)
            sg__text_add(b, "\n      %s", before->advice);
        sg__text_add(b, "\n  %s%s", f->fault != 0 ? "" : f->doubtful != 0 ? "(in doubt) " : "(no fault) ", f->text);
        if (g.size[i] > 1)
            append_nodes(audit, &g, i, b);
        before = f;
    }
    if (before != NULL && before->advice[0] != '\0')
        sg__text_add(b, "\n      %s", before->advice);
    if (s->findings > s->kept)
        sg__text_add(b, "\n  and %llu more", (unsigned long long)(s->findings - s->kept));
    sg__text_add(b, "\n");
}

static void write_json(const stepgraph_audit *audit, sg__text *b)
{
    const stepgraph_audit_summary *s = &audit->summary;

    sg__text_add(b, "{\"title\": ");
    sg__text_quoted(b, audit->title);
    sg__text_add(b,
           ", \"faults\": %llu, \"doubtful\": %llu, \"findings\": %llu, \"nodes\": %llu, \"kernels\": %llu, \"unread\": %llu, \"addresses\": %llu, "
           "\"in_pins\": %llu, "
           "\"in_graph\": %llu, \"bytes\": %llu, \"read_ns\": %llu, \"compare_ns\": %llu, \"list\": [",
           (unsigned long long)s->faults, (unsigned long long)s->doubtful, (unsigned long long)s->findings, (unsigned long long)s->nodes,
           (unsigned long long)s->kernels, (unsigned long long)s->unread, (unsigned long long)s->addresses,
           (unsigned long long)s->in_pins, (unsigned long long)s->in_graph, (unsigned long long)s->bytes,
           (unsigned long long)s->read_ns, (unsigned long long)s->compare_ns);
    for (uint64_t i = 0; i < s->kept; i++) {
        const stepgraph_finding *f = &audit->said[i];
        sg__text_add(b, "%s\n  {\"kind\": ", i > 0 ? "," : "");
        sg__text_quoted(b, kind_names[f->kind]);
        sg__text_add(b, ", \"fault\": %s, \"doubtful\": %s, \"node\": %lld, \"argument\": %lld, \"offset\": %u, \"bytes\": %u", f->fault != 0 ? "true" : "false", f->doubtful != 0 ? "true" : "false",
               f->node != UINT32_MAX ? (long long)f->node : -1, f->argument != UINT32_MAX ? (long long)f->argument : -1, f->offset, f->bytes);
        sg__text_add(b, ", \"before\": \"0x%llx\", \"after\": \"0x%llx\", \"name\": ", (unsigned long long)f->before, (unsigned long long)f->after);
        sg__text_quoted(b, f->node_name);
        sg__text_add(b, ", \"stage\": ");
        sg__text_quoted(b, f->stage);
        sg__text_add(b, ", \"text\": ");
        sg__text_quoted(b, f->text);
        sg__text_add(b, ", \"advice\": ");
        sg__text_quoted(b, f->advice);
        sg__text_add(b, "}");
    }
    sg__text_add(b, "]}\n");
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

/* One of the two forms, made when it is first asked for. */
static const char *form(const stepgraph_audit *audit, char **made, void (*write)(const stepgraph_audit *audit, sg__text *b))
{
    stepgraph_audit *ours = locked(audit);
    sg__text b = {0};

    if (*made == NULL && (ours->said != NULL || ours->summary.kept == 0)) {
        write(audit, &b);
        if (b.failed)
            free(b.text);
        else
            *made = b.text;
    }
    pthread_mutex_unlock(&ours->lock);
    return *made;
}

const char *stepgraph_audit_text(const stepgraph_audit *audit)
{
    const char *text = audit != NULL ? form(audit, (char **)&audit->text, write_text) : "";

    return text != NULL ? text : "no host memory for the report's text\n";
}

const char *stepgraph_audit_json(const stepgraph_audit *audit)
{
    const char *json = audit != NULL ? form(audit, (char **)&audit->json, write_json) : "{}";

    return json != NULL ? json : "{}";
}
