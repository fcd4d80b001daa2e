/* A recorded graph as a picture (Graphviz) and as data. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit_p.h"
#include "relax_p.h"
#include "text.h"

typedef struct drawing {
    const stepgraph_step *step;
    FILE *file;
    sg__graph graph; /* Read again: a step forgets its words. */
    size_t *first_word; /* By node, and one for the end. */
    sg__graph_edges edges, needed; /* As recorded, and as a relaxed step needs them. */
} drawing;

/* Quoted for both forms; without control characters and what is no UTF-8. */
static void put_quoted(FILE *file, const char *text)
{
    fputc('"', file);
    while (*text != '\0') {
        size_t n = sg__text_character(text);
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        if ((unsigned char)*text >= 0x20)
            fwrite(text, 1, n, file);
        text += n != 0 ? n : 1;
    }
    fputc('"', file);
}

/* Whether a node refers to a pin, or reaches it as far as that is known. */
static bool touches(const drawing *d, size_t node, const stepgraph_pin *pin)
{
    for (size_t i = d->first_word[node]; i < d->first_word[node + 1]; i++)
        if (sg__graph_word_touches(&d->graph.words[i], pin->address, pin->bytes))
            return true;
    return false;
}

/* Pins that both ends of an edge refer to: what passes along it. Scratch is left out, since nearly all nodes share it. */
static void shared_pins(const drawing *d, size_t from, size_t to, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < d->step->n_used && used + 1 < bytes; i++) {
        const stepgraph_pin *pin = d->step->used[i];
        int n;
        if (pin->role == STEPGRAPH_ROLE_SCRATCH || !touches(d, from, pin) || !touches(d, to, pin))
            continue;
        n = snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "", pin->name);
        used += n > 0 ? (size_t)n : 0;
    }
}

static void draw_dot(drawing *d, const sg__graph_edges *edges)
{
    const char *stage = "";
    char pins[256];

    fprintf(d->file, "digraph ");
    put_quoted(d->file, d->step->name);
    fprintf(d->file, " {\n  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=10];\n"
                     "  edge [fontname=\"sans-serif\", fontsize=8, color=gray40];\n");
    for (uint32_t i = 0; i < d->graph.n_nodes; i++) {
        const char *mine = sg__stage_of_node(d->step, i);
        if (strcmp(mine, stage) != 0) {
            if (stage[0] != '\0')
                fprintf(d->file, "  }\n");
            if (mine[0] != '\0') {
                fprintf(d->file, "  subgraph cluster_%u {\n    style=filled; color=gray93; label=", i);
                put_quoted(d->file, mine);
                fprintf(d->file, ";\n");
            }
            stage = mine;
        }
        fprintf(d->file, "    n%u [label=", i);
        put_quoted(d->file, sg__node_name(&d->graph.nodes[i]));
        fprintf(d->file, "];\n");
    }
    if (stage[0] != '\0')
        fprintf(d->file, "  }\n");
    for (size_t i = 0; i < edges->n; i++) {
        const sg__graph_edge *edge = &edges->items[i];
        shared_pins(d, edge->from, edge->to, pins, sizeof pins);
        fprintf(d->file, "  n%u -> n%u", edge->from, edge->to);
        if (pins[0] != '\0') {
            fprintf(d->file, " [label=");
            put_quoted(d->file, pins);
            fprintf(d->file, "]");
        }
        fprintf(d->file, ";\n");
    }
    fprintf(d->file, "}\n");
}

/* For programs, so as it is. */
static const char *whole_name(const sg__graph_node *node)
{
    return node->layout != NULL && node->layout->name != NULL ? sg__name_whole(node->layout->name) : sg__node_kind_name(node->type);
}

static void put_edges(drawing *d, const char *name, const sg__graph_edges *edges)
{
    fprintf(d->file, ",\n \"%s\": [", name);
    for (size_t i = 0; i < edges->n; i++)
        fprintf(d->file, "%s[%u, %u]", i > 0 ? ", " : "", edges->items[i].from, edges->items[i].to);
    fprintf(d->file, "]");
}

static void draw_json(drawing *d)
{
    bool first;

    fprintf(d->file, "{\"step\": ");
    put_quoted(d->file, d->step->name);
    fprintf(d->file, ", \"nodes\": [");
    for (uint32_t i = 0; i < d->graph.n_nodes; i++) {
        fprintf(d->file, "%s\n  {\"index\": %u, \"kind\": ", i > 0 ? "," : "", i);
        put_quoted(d->file, sg__node_kind_name(d->graph.nodes[i].type)[0] == 'k' ? "kernel" : sg__node_kind_name(d->graph.nodes[i].type));
        fprintf(d->file, ", \"name\": ");
        put_quoted(d->file, whole_name(&d->graph.nodes[i]));
        fprintf(d->file, ", \"stage\": ");
        put_quoted(d->file, sg__stage_of_node(d->step, i));
        fprintf(d->file, ", \"pins\": [");
        first = true;
        for (size_t k = 0; k < d->step->n_used; k++)
            if (touches(d, i, d->step->used[k])) {
                fprintf(d->file, "%s", first ? "" : ", ");
                put_quoted(d->file, d->step->used[k]->name);
                first = false;
            }
        fprintf(d->file, "]}");
    }
    fprintf(d->file, "]");
    put_edges(d, "edges", &d->edges);
    if (d->step->relaxed != NULL)
        put_edges(d, "needed", &d->needed);
    fprintf(d->file, "}\n");
}

/* By the numbers of all nodes, those of child graphs among them. */
static stepgraph_status find_needed(drawing *d)
{
    const sg__relaxed *relaxed = d->step->relaxed;

    if (relaxed == NULL)
        return STEPGRAPH_OK;
    d->needed.items = malloc((relaxed->needed.n_edges + 1) * sizeof *d->needed.items);
    if (d->needed.items == NULL)
        return sg__fail_memory("host", relaxed->needed.n_edges * sizeof *d->needed.items);
    for (; d->needed.n < relaxed->needed.n_edges; d->needed.n++) {
        sg__graph_edge edge = relaxed->needed.edges[d->needed.n];
        d->needed.items[d->needed.n] = (sg__graph_edge){.from = relaxed->footprint.index[edge.from], .to = relaxed->footprint.index[edge.to]};
    }
    sg__graph_edges_sort(&d->needed);
    return STEPGRAPH_OK;
}

static stepgraph_status read_all(drawing *d)
{
    const sg__driver *driver = d->step->session->driver;
    stepgraph_status status = sg__step_kernels_alive(d->step, "be drawn");

    if (status == STEPGRAPH_OK)
        status = sg__graph_read(driver, d->step->graph, &d->step->session->known_kernels, NULL, NULL, &d->graph);
    if (status != STEPGRAPH_OK)
        return status;
    d->first_word = malloc((d->graph.n_nodes + 1) * sizeof *d->first_word);
    if (d->first_word == NULL)
        return sg__fail_memory("host", (d->graph.n_nodes + 1) * sizeof *d->first_word);
    for (size_t i = 0, word = 0; i <= d->graph.n_nodes; i++) {
        while (word < d->graph.n_words && d->graph.words[word].node < i)
            word++;
        d->first_word[i] = word;
    }
    status = sg__graph_edges_read(driver, &d->graph, &d->edges);
    sg__graph_edges_sort(&d->edges);
    return status == STEPGRAPH_OK ? find_needed(d) : status;
}

stepgraph_status stepgraph_step_draw(const stepgraph_step *step, stepgraph_drawing form, const char *path)
{
    drawing d = {.step = step};
    stepgraph_status status;
    bool failed;

    sg__error_clear();
    if (step == NULL || path == NULL)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "nothing to draw: %s is NULL", step == NULL ? "the step" : "the path");
    if (form != STEPGRAPH_DRAW_DOT && form != STEPGRAPH_DRAW_JSON && form != STEPGRAPH_DRAW_NEEDED)
        return sg__fail(STEPGRAPH_ERR_ARGUMENT, "unknown form of drawing %d", (int)form);
    if (step->state != STEPGRAPH_STEP_READY)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' has no live graph to draw: record it first", step->name);
    if (form == STEPGRAPH_DRAW_NEEDED && step->relaxed == NULL)
        return sg__fail(STEPGRAPH_ERR_STATE, "step '%s' is not relaxed, so nobody knows what order it needs: call stepgraph_step_relax() first", step->name);
    status = read_all(&d);
    if (status == STEPGRAPH_OK) {
        d.file = fopen(path, "w");
        if (d.file == NULL) {
            status = sg__fail(STEPGRAPH_ERR_ARGUMENT, "cannot write '%s': %s", path, strerror(errno));
        } else {
            if (form == STEPGRAPH_DRAW_JSON)
                draw_json(&d);
            else
                draw_dot(&d, form == STEPGRAPH_DRAW_NEEDED ? &d.needed : &d.edges);
            failed = ferror(d.file) != 0;
            if (fclose(d.file) != 0 || failed)
                status = sg__fail(STEPGRAPH_ERR_ARGUMENT, "cannot write '%s': %s", path, strerror(errno));
        }
    }
    free(d.first_word);
    sg__graph_edges_free(&d.edges);
    sg__graph_edges_free(&d.needed);
    sg__graph_free(&d.graph);
    return status;
}
