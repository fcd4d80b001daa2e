/*
 * Introduces pins: the memory that a graph may be recorded over, by role.
 *
 *   FEED     what the host hands over before every step: the batch
 *   CELL     a number that changes from step to step: the learning rate
 *   OUTPUT   what the host reads: the loss
 *   SCRATCH  what does not outlive a step: activations, gradients, the allocator's private pool
 *   STATE    what does: parameters, moments, averages; see model_pin()
 *
 * The model predicts a character from those before it:
 *   look up a vector for each, side by side -> layers of linear, silu, normalize (each added to its input) -> linear -> softmax
 */
#include "quickstart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* splitmix64 */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Nearly normal: twelve uniform numbers added up. */
static float random_normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)(random_next(state) >> 11) / 9007199254740992.0;
    return (float)sum;
}

/* ---- tensors and parameters -------------------------------------------------------------------------------------- */

static void describe(struct tensor *tensor, const char *name, const char *part, int64_t count)
{
    snprintf(tensor->name, sizeof tensor->name, "%s%s", name, part);
    tensor->bytes = (uint64_t)count * sizeof(float);
}

static void describe_parameter(struct parameter *parameter, const char *name, int rows, int columns, float radius)
{
    static const char *const parts[PARTS] = {"", ".first", ".second", ".average"};

    parameter->rows = rows;
    parameter->columns = columns;
    parameter->radius = radius;
    parameter->weight_decay = rows > 1 && radius == 0 ? 0.01f : 0;
    for (int part = 0; part < PARTS; part++)
        describe(&parameter->part[part], name, parts[part], (int64_t)rows * columns);
}

static void describe_all(struct model *model)
{
    const struct options *o = model->options;
    struct parameter *parameter = model->parameters;
    char name[32];

    describe_parameter(parameter++, "embedding", model->text->vocabulary, o->vector, sqrtf((float)o->vector));
    for (int i = 0; i < o->layers; i++) {
        struct layer *layer = &model->layers[i];
        layer->in = i == 0 ? o->context * o->vector : o->width;

        snprintf(name, sizeof name, "layer%d.weight", i);
        describe_parameter(layer->weight = parameter++, name, o->width, layer->in, 1);
        snprintf(name, sizeof name, "layer%d.bias", i);
        describe_parameter(layer->bias = parameter++, name, 1, o->width, 0);
        snprintf(name, sizeof name, "layer%d.gain", i);
        describe_parameter(layer->gain = parameter++, name, 1, o->width, 0);
    }
    describe_parameter(parameter++, "output.weight", model->text->vocabulary, o->width, 0);
    describe_parameter(parameter++, "output.bias", 1, model->text->vocabulary, 0);
    describe(&model->decay, "adamw.decay", "", 2);
    describe(&model->smooth, "loss.average", "", 1);

    for (int i = 0; i < model->parameter_count; i++)
        for (int part = 0; part < PARTS; part++)
            model->tensors[model->tensor_count++] = &model->parameters[i].part[part];
    model->tensors[model->tensor_count++] = &model->decay;
    model->tensors[model->tensor_count++] = &model->smooth;
    for (size_t i = 0; i < model->tensor_count; i++)
        model->state_bytes += model->tensors[i]->bytes;
}

/* Put a value from the host into a block of the allocator's. */
static int place(struct model *model, struct tensor *tensor, const void *value)
{
    struct driver *driver = model->driver;

    TRY(cache_allocate(&model->cache, tensor->bytes, &tensor->block));
    tensor->address = tensor->block->address;
    TRY(driver_check(driver->to_device(tensor->address, value, tensor->bytes, stepgraph_session_stream(driver->session)),
                     "cuMemcpyHtoDAsync"));
    stepgraph_session_count(driver->session, STEPGRAPH_KIND_COPY, 1);
    return library(stepgraph_session_wait(driver->session));
}

static int place_parameter(struct model *model, struct parameter *parameter, uint64_t *seed, float *values)
{
    size_t count = (size_t)parameter->rows * (size_t)parameter->columns;

    memset(values, 0, count * sizeof *values);
    TRY(place(model, &parameter->part[FIRST], values));
    TRY(place(model, &parameter->part[SECOND], values));

    if (parameter->rows > 1) {
        float scale = parameter->radius / sqrtf((float)parameter->columns);
        if (parameter->radius == 0) /* The output begins near zero: all characters are equally likely. */
            scale = 0.1f / sqrtf((float)parameter->columns);
        for (size_t i = 0; i < count; i++)
            values[i] = scale * random_normal(seed);
    } else if (strstr(parameter->part[VALUE].name, "gain") != NULL) {
        for (size_t i = 0; i < count; i++)
            values[i] = 1;
    }
    TRY(place(model, &parameter->part[VALUE], values));
    return place(model, &parameter->part[AVERAGE], values);
}

static int place_all(struct model *model)
{
    uint64_t seed = model->options->seed;
    float *values = malloc(model->state_bytes);
    int status = 0;

    if (values == NULL)
        return fail(EXIT_INPUT, "out of host memory: %llu bytes for initial values", (unsigned long long)model->state_bytes);
    for (int i = 0; i < model->parameter_count && status == 0; i++)
        status = place_parameter(model, &model->parameters[i], &seed, values);
    values[0] = values[1] = 1;
    if (status == 0)
        status = place(model, &model->decay, values);
    values[0] = 0;
    if (status == 0)
        status = place(model, &model->smooth, values);
    free(values);
    return status;
}

/* ---- pins -------------------------------------------------------------------------------------------------------- */

static int pin(struct model *model, stepgraph_role role, const char *name, uint64_t bytes, stepgraph_type type,
               stepgraph_pin **pin_out)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;

    config.role = role;
    config.name = name;
    config.bytes = bytes;
    config.type = type; /* So that a report can give values and distances. */
    return library(stepgraph_pin_create(model->driver->session, &config, pin_out));
}

/* Buffers one behind the other. */
struct layout {
    stepgraph_session *session; /* Told where each of them lies. NULL: this only adds up their bytes. */
    uint64_t next;
    int status;
};

static uint64_t take(struct layout *layout, uint64_t count)
{
    uint64_t address = layout->next, bytes = cache_rounded(count * sizeof(float));

    if (layout->session != NULL && layout->status == 0)
        layout->status = library(stepgraph_arena_note_alloc(layout->session, address, bytes, NULL));
    layout->next += bytes;
    return address;
}

static void lay_out(struct model *model, struct layout *layout)
{
    const struct options *o = model->options;
    uint64_t batch = (uint64_t)o->batch, vocabulary = (uint64_t)model->text->vocabulary;
    uint64_t hidden = batch * (uint64_t)o->width, embedded = batch * (uint64_t)o->context * (uint64_t)o->vector;

    model->target = take(layout, batch * vocabulary);
    model->embedded = take(layout, embedded);
    for (int i = 0; i < o->layers; i++) {
        struct layer *layer = &model->layers[i];
        layer->x = i == 0 ? model->embedded : model->layers[i - 1].y;
        layer->z = take(layout, hidden);
        layer->a = take(layout, hidden);
        layer->inverse = take(layout, batch);
        layer->y = take(layout, hidden);
    }
    model->logits = take(layout, batch * vocabulary);
    model->d_logits = take(layout, batch * vocabulary);
    model->row_loss = take(layout, batch);
    model->stray_loss = take(layout, 1);
    model->row_shared = take(layout, batch);
    model->d_y = take(layout, hidden);
    model->d_a = take(layout, hidden);
    model->d_z = take(layout, hidden);
    model->d_embedded = take(layout, embedded);
    for (int i = 0; i < model->parameter_count; i++)
        model->parameters[i].gradient = take(layout, model->parameters[i].part[VALUE].bytes / sizeof(float));
}

static uint64_t activation_bytes(const struct model *model)
{
    struct layout layout = {0};

    lay_out((struct model *)model, &layout);
    return layout.next;
}

static int pin_activations(struct model *model)
{
    struct layout layout = {.session = model->driver->session};

    TRY(pin(model, STEPGRAPH_ROLE_SCRATCH, "activations", activation_bytes(model), STEPGRAPH_TYPE_F32, &model->activations));
    layout.next = stepgraph_pin_address(model->activations);
    lay_out(model, &layout);
    return layout.status;
}

/* What one step takes from the allocator at most: new value and moments of all parameters, and once more the value. */
static uint64_t pool_bytes(const struct model *model)
{
    uint64_t bytes = 0;
    for (int i = 0; i < model->parameter_count; i++)
        bytes += 4 * cache_rounded(model->parameters[i].part[VALUE].bytes);
    return bytes;
}

static int pin_all_but_state(struct model *model)
{
    const struct options *o = model->options;
    uint64_t ids = (uint64_t)o->batch * (uint64_t)o->context;

    TRY(pin(model, STEPGRAPH_ROLE_FEED, "ids", ids * sizeof(int), STEPGRAPH_TYPE_I32, &model->ids));
    TRY(pin(model, STEPGRAPH_ROLE_FEED, "labels", (uint64_t)o->batch * sizeof(int), STEPGRAPH_TYPE_I32, &model->labels));
    TRY(pin(model, STEPGRAPH_ROLE_CELL, "rate", sizeof(float), STEPGRAPH_TYPE_F32, &model->rate));
    TRY(pin(model, STEPGRAPH_ROLE_OUTPUT, "loss", sizeof(float), STEPGRAPH_TYPE_F32, &model->loss));
    TRY(pin_activations(model));

    TRY(pin(model, STEPGRAPH_ROLE_SCRATCH, "private pool", pool_bytes(model), STEPGRAPH_TYPE_F32, &model->pool));
    model->cache.pool = stepgraph_pin_address(model->pool);
    model->cache.pool_bytes = stepgraph_pin_bytes(model->pool);
    return 0;
}

int model_pin(struct model *model, const char *without)
{
    struct state state;
    int status;

    TRY(state_save(model, &state));
    for (size_t i = 0; i < model->tensor_count; i++) {
        struct tensor *tensor = model->tensors[i];
        if (without != NULL && strcmp(tensor->name, without) == 0)
            continue;

        status = pin(model, STEPGRAPH_ROLE_STATE, tensor->name, tensor->bytes, STEPGRAPH_TYPE_F32, &tensor->pin);
        if (status != 0)
            goto done;
        status = cache_free(&model->cache, tensor->block);
        if (status != 0)
            goto done;
        tensor->block = NULL;
        tensor->address = stepgraph_pin_address(tensor->pin);
    }
    status = state_load(model, &state);

done:
    state_free(&state);
    return status;
}

/* ---- birth and death --------------------------------------------------------------------------------------------- */

/* Say at once that it will not fit, rather than somewhere on the way. */
static int check_memory(const struct model *model)
{
    size_t left, total;
    /* State twice, since it moves; activations; the pool. */
    uint64_t need = 2 * model->state_bytes + activation_bytes(model) + pool_bytes(model);

    TRY(driver_check(model->driver->memory_left(&left, &total), "cuMemGetInfo"));
    if (need > left)
        return fail(EXIT_INPUT,
                    "out of device memory: these sizes need %.1f MiB and %.1f MiB are left; make --batch, --width or "
                    "--layers smaller",
                    (double)need / 1048576, (double)left / 1048576);
    return 0;
}

int model_create(struct model *model, const struct options *options, const struct text *text, struct driver *driver)
{
    model->options = options;
    model->text = text;
    model->driver = driver;
    model->cache.driver = driver;

    model->parameter_count = 3 * options->layers + 3;
    size_t tensors = (size_t)model->parameter_count * PARTS + 2, batch = (size_t)options->batch;
    model->parameters = calloc((size_t)model->parameter_count, sizeof *model->parameters);
    model->layers = calloc((size_t)options->layers, sizeof *model->layers);
    model->tensors = calloc(tensors, sizeof *model->tensors);
    model->commit_pins = calloc(tensors, sizeof *model->commit_pins);
    model->commit_addresses = calloc(tensors, sizeof *model->commit_addresses);
    model->host_ids = calloc(batch * (size_t)options->context, sizeof *model->host_ids);
    model->host_labels = calloc(batch, sizeof *model->host_labels);
    if (model->parameters == NULL || model->layers == NULL || model->tensors == NULL || model->commit_pins == NULL ||
        model->commit_addresses == NULL || model->host_ids == NULL || model->host_labels == NULL)
        return fail(EXIT_INPUT, "out of host memory: the model's description; make --batch or --layers smaller");

    describe_all(model);
    TRY(check_memory(model));
    TRY(pin_all_but_state(model));
    return place_all(model);
}

static int unpin_all(struct model *model)
{
    stepgraph_pin *const others[] = {model->pool, model->activations, model->loss, model->rate, model->labels, model->ids};

    for (size_t i = 0; i < model->tensor_count; i++)
        TRY(library(stepgraph_pin_destroy(model->tensors[i]->pin)));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        TRY(library(stepgraph_pin_destroy(others[i])));
    return 0;
}

int model_destroy(struct model *model)
{
    if (model->driver == NULL)
        return 0;

    /* The stream first: what is in flight still uses the memory. */
    int status = library(stepgraph_session_wait(model->driver->session));
    if (status == 0)
        status = unpin_all(model);
    int freed = cache_destroy(&model->cache);

    free(model->host_labels);
    free(model->host_ids);
    free(model->commit_addresses);
    free(model->commit_pins);
    free(model->tensors);
    free(model->layers);
    free(model->parameters);
    memset(model, 0, sizeof *model);
    return status != 0 ? status : freed;
}
