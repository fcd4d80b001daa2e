/*
 * A relaxed step against the same step as it was recorded, one replay right behind the other: a synthetic training step of many small kernels, with a
 * forward and a backward pass that are mostly a chain and an optimizer that goes parameter by parameter, every result in a block of its own
 * from an arena, as an eager framework does it. By memory: blocks that are given out again at once, that wait in a quarantine, and that never
 * come again. And what relaxing costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Sizes as in a transformer: each layer has four matrices and eight vectors, and works on an activation of tokens x width. */
struct shape {
    const char *name;
    unsigned layers, width, tokens;
};

enum { LAYER = 12 };

static const struct shape shapes[] = {
    { "tiny", 4, 128, 512 },   /* About 1,200 nodes. */
    { "small", 8, 512, 4096 }, /* About 2,400. */
};

static unsigned floats_of(const struct shape *shape, unsigned parameter)
{
    static const unsigned squares[LAYER] = { 0, 0, 3, 0, 1, 0, 0, 0, 4, 0, 4, 0 }, rows[LAYER] = { 1, 1, 0, 3, 0, 1, 1, 1, 0, 4, 0, 1 };

    return squares[parameter % LAYER] * shape->width * shape->width + rows[parameter % LAYER] * shape->width;
}

struct step {
    const struct shape *shape;
    unsigned parameters, activations; /* How many, and floats of each. */
    stepgraph_arena *arena;
    stepgraph_pin **pins; /* Parameter, two moments, a count and a gradient of each, and an activation. */
    size_t n_pins;
    CUdeviceptr *parameter, *first, *second, *count, *gradient, activation, rate;
    stepgraph_step *step;
    CUgraphExec exec; /* As recorded. */
    stepgraph_relax *report;
};

static CUdeviceptr take(struct step *s, unsigned floats)
{
    uint64_t address;

    OK(stepgraph_arena_alloc(s->arena, 4 * (uint64_t)floats, NULL, &address));
    return address;
}

static void give(struct step *s, CUdeviceptr block)
{
    OK(stepgraph_arena_free(s->arena, block));
}

static void run(CUfunction function, unsigned floats, void **arguments)
{
    CU(LaunchKernel(function, (floats + 255) / 256, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

/* to = from + rate * by */
static void combine(const struct step *s, CUdeviceptr to, CUdeviceptr from, CUdeviceptr by, unsigned floats)
{
    int n = (int)floats;

    run(kernels.update, floats, (void *[]){ &to, &from, &by, (void *)&s->rate, &n });
}

static void add(CUdeviceptr to, float v, unsigned floats)
{
    int n = (int)floats;

    run(kernels.addn, floats, (void *[]){ &to, &v, &n });
}

/* Through all parameters, each result read by the next kernels and then given back. Backward, each parameter gets its gradient. */
static void pass(struct step *s, int backward)
{
    unsigned n = s->activations;
    CUdeviceptr before = take(s, n), after;

    combine(s, before, s->activation, s->activation, n);
    for (unsigned i = 0; i < s->parameters; i++) {
        unsigned p = backward ? s->parameters - 1 - i : i;
        after = take(s, n);
        combine(s, after, before, s->activation, n);
        combine(s, after, after, s->parameter[p], floats_of(s->shape, p));
        if (backward)
            combine(s, s->gradient[p], after, before, floats_of(s->shape, p));
        give(s, before);
        before = after;
    }
    give(s, before);
}

/* As many kernels as an eager AdamW has, each with its result in memory of its own. */
static void optimizer(struct step *s, unsigned i)
{
    unsigned n = floats_of(s->shape, i);
    CUdeviceptr a, b, c, d;

    add(s->count[i], 1, 1);
    a = take(s, n);
    combine(s, a, s->parameter[i], s->gradient[i], n); /* Decay. */
    combine(s, s->first[i], s->first[i], s->gradient[i], n);
    b = take(s, n);
    combine(s, b, s->gradient[i], s->gradient[i], n);
    combine(s, s->second[i], s->second[i], b, n);
    give(s, b);
    b = take(s, 1);
    combine(s, b, s->count[i], s->count[i], 1); /* Corrections. */
    add(b, 0.5f, 1);
    c = take(s, 1);
    combine(s, c, s->count[i], b, 1);
    add(c, 0.25f, 1);
    d = take(s, 1);
    combine(s, d, b, c, 1);
    give(s, b);
    give(s, c);
    b = take(s, n);
    combine(s, b, s->second[i], s->second[i], n); /* The root. */
    add(b, 1e-8f, n);
    c = take(s, n);
    combine(s, c, s->first[i], b, n);
    give(s, b);
    add(c, 0.125f, n);
    combine(s, a, a, c, n);
    add(d, 1, 1);
    combine(s, s->parameter[i], a, c, n);
    give(s, a);
    give(s, c);
    give(s, d);
}

static void body(struct step *s)
{
    pass(s, 0);
    pass(s, 1);
    for (unsigned i = 0; i < s->parameters; i++)
        optimizer(s, i);
}

static CUdeviceptr pin(struct step *s, stepgraph_role role, unsigned floats, const char *what, unsigned i)
{
    char name[32];

    snprintf(name, sizeof name, "%s %u", what, i);
    s->pins[s->n_pins] = bench_pin(session, role, 0, 4 * (uint64_t)floats, name);
    return stepgraph_pin_address(s->pins[s->n_pins++]);
}

static void make(struct step *s, const struct shape *shape, uint64_t quarantine)
{
    stepgraph_arena_config config = STEPGRAPH_ARENA_CONFIG_INIT;
    unsigned p = LAYER * shape->layers;

    *s = (struct step){ .shape = shape, .parameters = p, .activations = shape->tokens * shape->width };
    s->pins = calloc(5 * p + 2, sizeof *s->pins);
    s->parameter = calloc(5 * p, sizeof *s->parameter);
    s->first = s->parameter + p;
    s->second = s->first + p;
    s->count = s->second + p;
    s->gradient = s->count + p;
    for (unsigned i = 0; i < p; i++) {
        s->parameter[i] = pin(s, STEPGRAPH_ROLE_STATE, floats_of(shape, i), "parameter", i);
        s->first[i] = pin(s, STEPGRAPH_ROLE_STATE, floats_of(shape, i), "first", i);
        s->second[i] = pin(s, STEPGRAPH_ROLE_STATE, floats_of(shape, i), "second", i);
        s->count[i] = pin(s, STEPGRAPH_ROLE_STATE, 1, "count", i);
        s->gradient[i] = pin(s, STEPGRAPH_ROLE_STATE, floats_of(shape, i), "gradient", i);
    }
    s->activation = pin(s, STEPGRAPH_ROLE_STATE, s->activations, "activation", 0);
    s->rate = pin(s, STEPGRAPH_ROLE_CELL, 1, "rate", 0);
    OK(stepgraph_pin_feed_f32(s->pins[s->n_pins - 1], 1e-3f));
    config.quarantine_bytes = quarantine;
    config.bytes = quarantine + 64 * 4 * (uint64_t)s->activations;
    OK(stepgraph_arena_create(session, &config, &s->arena));
    s->step = bench_step(session, shape->name, 0);
    OK(stepgraph_step_prepare(s->step));
    OK(stepgraph_step_capture(s->step));
    body(s);
    OK(stepgraph_step_end(s->step));
    s->exec = bench_instantiate(stepgraph_step_graph(s->step));
    CU(GraphUpload(s->exec, stream));
    bench_sync();
}

static void drop(struct step *s)
{
    bench_sync();
    stepgraph_relax_destroy(s->report);
    CU(GraphExecDestroy(s->exec));
    stepgraph_step_destroy(s->step);
    OK(stepgraph_arena_destroy(s->arena));
    for (size_t i = 0; i < s->n_pins; i++)
        OK(stepgraph_pin_destroy(s->pins[i]));
    free(s->pins);
    free(s->parameter);
}

static stepgraph_relax_summary relaxed(struct step *s)
{
    stepgraph_relax_summary said = STEPGRAPH_RELAX_SUMMARY_INIT;

    stepgraph_relax_destroy(s->report);
    OK(stepgraph_step_relax(s->step, NULL, &s->report));
    OK(stepgraph_relax_get_summary(s->report, &said));
    return said;
}

/* ---- replays ------------------------------------------------------------------------------------------------------- */

enum { BATCH = 10 };

static double ours(void *user)
{
    const struct step *s = user;

    bench_device_start();
    for (int i = 0; i < BATCH; i++)
        OK(stepgraph_step_replay(s->step));
    return bench_device_stop() / BATCH;
}

static double raw(void *user)
{
    const struct step *s = user;

    bench_device_start();
    for (int i = 0; i < BATCH; i++)
        CU(GraphLaunch(s->exec, stream));
    return bench_device_stop() / BATCH;
}

static double host_ours(void *user)
{
    const struct step *s = user;
    double start = bench_now_us(), us;

    for (int i = 0; i < BATCH; i++)
        OK(stepgraph_step_replay(s->step));
    us = (bench_now_us() - start) / BATCH;
    bench_sync();
    return us;
}

static double host_raw(void *user)
{
    const struct step *s = user;
    double start = bench_now_us(), us;

    for (int i = 0; i < BATCH; i++)
        CU(GraphLaunch(s->exec, stream));
    us = (bench_now_us() - start) / BATCH;
    bench_sync();
    return us;
}

/* All states as they were when the step was recorded. */
static void rewind_all(struct step *s)
{
    float *values = malloc(4 * (size_t)s->activations);

    for (size_t i = 0; i + 1 < s->n_pins; i++) {
        size_t n = stepgraph_pin_bytes(s->pins[i]) / 4;
        for (size_t k = 0; k < n; k++)
            values[k] = (float)((i * 31 + k * 7) % 101) / 101.0f - 0.5f;
        OK(stepgraph_pin_write(s->pins[i], values, 4 * n));
    }
    OK(stepgraph_pin_feed_f32(s->pins[s->n_pins - 1], 1e-3f));
    OK(stepgraph_session_flush(session));
    bench_sync();
    free(values);
}

static unsigned char *all_bytes(struct step *s, size_t *bytes_out)
{
    size_t bytes = 0, at = 0;
    unsigned char *all;

    for (size_t i = 0; i < s->n_pins; i++)
        bytes += stepgraph_pin_bytes(s->pins[i]);
    all = malloc(bytes);
    bench_sync();
    for (size_t i = 0; i < s->n_pins; i++) {
        CU(MemcpyDtoH(all + at, stepgraph_pin_address(s->pins[i]), stepgraph_pin_bytes(s->pins[i])));
        at += stepgraph_pin_bytes(s->pins[i]);
    }
    *bytes_out = bytes;
    return all;
}

/* Bytes that differ after so many steps each way. */
static size_t differ_after(struct step *s, unsigned steps)
{
    unsigned char *a, *b;
    size_t bytes, differ = 0;

    rewind_all(s);
    for (unsigned i = 0; i < steps; i++)
        CU(GraphLaunch(s->exec, stream));
    a = all_bytes(s, &bytes);
    rewind_all(s);
    for (unsigned i = 0; i < steps; i++)
        OK(stepgraph_step_replay(s->step));
    b = all_bytes(s, &bytes);
    for (size_t i = 0; i < bytes; i++)
        differ += a[i] != b[i];
    free(a);
    free(b);
    return differ;
}

static bench_pair constant(double value)
{
    return (bench_pair){ .ours = bench_stat_of(&value, 1) };
}

static void replays(const struct shape *shape, uint64_t quarantine, const char *memory)
{
    stepgraph_relax_summary said;
    struct step s;
    bench_pair pair;

    make(&s, shape, quarantine);
    rewind_all(&s);
    said = relaxed(&s);
    printf("%s", stepgraph_relax_text(s.report));
    pair = constant((double)differ_after(&s, 100));
    bench_add("bytes that differ after 100 steps", (double)said.nodes, "B", &pair, BENCH_VALUE, 0, true, "%s, %s: bytes that differ", shape->name, memory);
    rewind_all(&s);
    pair = bench_alternate(ours, raw, &s, 400);
    bench_add("relaxed replays back to back", (double)said.nodes, "us", &pair, BENCH_RATIO, quarantine ? 0.55 : 1.0, true,
              "%s, %s, %u lanes / as recorded", shape->name, memory, said.lanes);
    pair = bench_alternate(host_ours, host_raw, &s, 200);
    bench_add("host time of relaxed replays", (double)said.nodes, "us", &pair, BENCH_NO_TARGET, 0, true, "host: %s, %s / as recorded", shape->name, memory);
    pair = constant((double)said.path_needed);
    bench_add("critical path", (double)said.nodes, "nodes", &pair, BENCH_NO_TARGET, 0, true, "path: %s, %s (of %llu nodes)", shape->name, memory,
              (unsigned long long)said.nodes);
    drop(&s);
}

/* ---- what it costs --------------------------------------------------------------------------------------------------- */

static void cost(const struct shape *shape)
{
    enum { TIMES = 5 };
    double all[TIMES], read[TIMES], order[TIMES], build[TIMES], save[TIMES], timing[TIMES], work[TIMES];
    const struct {
        const char *name;
        double *values;
        double target;
    } rows[] = { { "reading", read, 0 },    { "ordering", order, 0 }, { "making executables", build, 0 }, { "all of these", work, 100 },
                 { "saving, comparing", save, 0 }, { "timing", timing, 0 },  { "the whole call", all, 0 } };
    stepgraph_relax_summary said = STEPGRAPH_RELAX_SUMMARY_INIT;
    struct step s;

    make(&s, shape, 64 << 20);
    for (int i = 0; i < TIMES; i++) {
        double start = bench_now_us();
        said = relaxed(&s);
        all[i] = (bench_now_us() - start) / 1e3;
        read[i] = said.read_ms;
        order[i] = said.order_ms;
        build[i] = said.build_ms;
        save[i] = said.save_ms;
        timing[i] = said.time_ms;
        work[i] = read[i] + order[i] + build[i];
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bench_pair pair = { .ours = bench_stat_of(rows[i].values, TIMES) };
        bench_add("cost of relaxing", (double)said.nodes, "ms", &pair, rows[i].target > 0 ? BENCH_VALUE : BENCH_NO_TARGET, rows[i].target, true,
                  "relaxing %llu nodes: %s", (unsigned long long)said.nodes, rows[i].name);
    }
    drop(&s);
}

static void measure(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (bench_skips(i, 0))
            continue;
        replays(&shapes[i], 0, "blocks reused at once");
        replays(&shapes[i], i == 0 ? 2 << 20 : 64 << 20, "quarantine");
        replays(&shapes[i], i == 0 ? 256ull << 20 : 4096ull << 20, "blocks never reused");
    }
    cost(&shapes[bench_software ? 0 : 1]);
}

/* ---- work done ------------------------------------------------------------------------------------------------------ */

static void check_work(void)
{
    static const struct shape few = { "few", 1, 8, 64 };
    stepgraph_relax_config config = STEPGRAPH_RELAX_CONFIG_INIT;
    stepgraph_relax_summary said = STEPGRAPH_RELAX_SUMMARY_INIT;
    struct step s;

    make(&s, &few, 1 << 20);
    rewind_all(&s);
    config.lanes = 8;
    OK(stepgraph_step_relax(s.step, &config, &s.report));
    OK(stepgraph_relax_get_summary(s.report, &said));
    bench_expect(said.lanes == 8 && said.path_needed < said.path_recorded / 3, "a path of %llu nodes becomes one of %llu",
                 (unsigned long long)said.path_recorded, (unsigned long long)said.path_needed);
    bench_expect(differ_after(&s, 10) == 0, "10 relaxed steps leave the bytes of 10 recorded ones");
    bench_work_begin();
    for (int i = 0; i < 100; i++)
        OK(stepgraph_step_replay(s.step));
    WORK_IS("100 relaxed replays", 0, 0, { "cuCtxGetId", 100 }, { "cuGraphLaunch", 100 });
    said = relaxed(&s);
    bench_expect(said.identical == 1, "relaxed replays are compared");
    drop(&s);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "relax", measure, check_work);
}
