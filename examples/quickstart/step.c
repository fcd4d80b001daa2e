/*
 * Introduces the training step: launches through stepgraph_session_launch(), stages by stepgraph_step_mark(), new values put in
 * their masters by stepgraph_pin_commit_many().
 *
 * But for the allocator nothing here knows whether the launches run or are being recorded, and nothing waits, allocates from the
 * driver or reads a result: that is all that recording asks of a step.
 */
#include "quickstart.h"

#include <math.h>

#define BETA1 0.9f
#define BETA2 0.99f
#define AVERAGE_KEEP 0.98f

/* One launch: kernel, number of results, addresses of the arguments. */
#define LAUNCH(kernel, threads, ...) TRY(driver_launch(model->driver, KERNEL_##kernel, threads, (void *[]){__VA_ARGS__}))

/* ---- what the host does before a step ---------------------------------------------------------------------------- */

/* Warm up, then half a cosine. */
static float rate_of_step(const struct options *options, int number)
{
    double warm = options->steps / 20.0 + 1, done = number / (double)options->steps;

    if (number < warm)
        return (float)(options->rate * (number + 1) / warm);
    return (float)(options->rate * (0.05 + 0.95 * 0.5 * (1 + cos(3.14159265358979 * (done < 1 ? done : 1)))));
}

int step_feed(struct model *model, int number)
{
    const struct options *o = model->options;
    const struct text *text = model->text;
    size_t places = text->length - (size_t)o->context;
    /* A step's batch depends on its number alone, so that the same step can be done again in another way. */
    uint64_t state = o->seed * 0x9e3779b97f4a7c15u + (uint64_t)number * 0xd1342543de82ef95u;

    for (int i = 0; i < o->batch; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const unsigned char *from = text->ids + (size_t)((state >> 24) % places);
        for (int k = 0; k < o->context; k++)
            model->host_ids[i * o->context + k] = from[k];
        model->host_labels[i] = from[o->context];
    }

    if (!o->break_feed)
        TRY(library(stepgraph_pin_feed(model->ids, model->host_ids, stepgraph_pin_bytes(model->ids))));
    TRY(library(stepgraph_pin_feed(model->labels, model->host_labels, stepgraph_pin_bytes(model->labels))));
    model->host_rate = rate_of_step(o, number);
    return library(stepgraph_pin_feed_f32(model->rate, model->host_rate));
}

/* ---- data, forward, backward ------------------------------------------------------------------------------------- */

/* The batch by a copy that runs at once: right when the step is launched, and missing from a recording, without any error. */
static int copy_past_the_graph(struct model *model, stepgraph_step *step)
{
    struct driver *driver = model->driver;

    bool launched = stepgraph_step_state(step) != STEPGRAPH_STEP_CAPTURING;

    if (launched) /* The step before has read the last batch, */
        TRY(driver_check(driver->wait_for_all(), "cuCtxSynchronize"));
    TRY(driver_check(
        driver->to_device_at_once(stepgraph_pin_address(model->ids), model->host_ids, stepgraph_pin_bytes(model->ids)),
        "cuMemcpyHtoD"));
    return launched ? driver_check(driver->wait_for_all(), "cuCtxSynchronize") : 0; /* and this one has the next. */
}

static int data(struct model *model, stepgraph_step *step)
{
    int batch = model->options->batch, vocabulary = model->text->vocabulary;
    uint64_t labels = stepgraph_pin_address(model->labels);

    if (model->options->break_feed)
        TRY(copy_past_the_graph(model, step));
    LAUNCH(one_hot, batch * vocabulary, &labels, &model->target, &batch, &vocabulary);
    return 0;
}

static uint64_t where_the_loss_goes(const struct model *model)
{
    return model->options->break_output ? model->stray_loss : stepgraph_pin_address(model->loss);
}

static int linear(struct model *model, uint64_t x, struct parameter *weight, struct parameter *bias, uint64_t y)
{
    int batch = model->options->batch;

    LAUNCH(linear, batch * weight->rows, &x, &weight->part[VALUE].address, &bias->part[VALUE].address, &y, &batch,
           &weight->columns, &weight->rows);
    return 0;
}

static int forward(struct model *model)
{
    const struct options *o = model->options;
    int batch = o->batch, vector = o->vector, width = o->width, vocabulary = model->text->vocabulary;
    int places = batch * o->context, hidden = batch * width;
    uint64_t ids = stepgraph_pin_address(model->ids), loss = where_the_loss_goes(model);
    struct parameter *last = &model->parameters[model->parameter_count - 2];

    LAUNCH(embed, places * vector, &ids, &model->parameters[0].part[VALUE].address, &model->embedded, &places, &vector);
    for (int i = 0; i < o->layers; i++) {
        struct layer *layer = &model->layers[i];
        TRY(linear(model, layer->x, layer->weight, layer->bias, layer->z));
        LAUNCH(silu, hidden, &layer->z, &layer->a, &hidden);
        LAUNCH(inverse_rms, batch, &layer->a, &layer->inverse, &batch, &width);
        LAUNCH(normalize, hidden, &layer->a, &layer->inverse, &layer->gain->part[VALUE].address, &layer->y, &batch, &width);
        if (i > 0)
            LAUNCH(add, hidden, &layer->y, &layer->x, &hidden);
    }
    TRY(linear(model, model->layers[o->layers - 1].y, last, last + 1, model->logits));
    LAUNCH(softmax_loss, batch, &model->logits, &model->target, &model->d_logits, &model->row_loss, &batch, &vocabulary);
    LAUNCH(mean, 1, &model->row_loss, &loss, &batch);
    return 0;
}

static int linear_backward(struct model *model, uint64_t x, struct parameter *weight, struct parameter *bias, uint64_t d_y,
                           uint64_t d_x)
{
    int batch = model->options->batch;

    LAUNCH(linear_db, weight->rows, &d_y, &bias->gradient, &batch, &weight->rows);
    LAUNCH(linear_dw, weight->rows * weight->columns, &d_y, &x, &weight->gradient, &batch, &weight->columns, &weight->rows);
    LAUNCH(linear_dx, batch * weight->columns, &d_y, &weight->part[VALUE].address, &d_x, &batch, &weight->columns, &weight->rows);
    return 0;
}

static int backward(struct model *model)
{
    const struct options *o = model->options;
    int batch = o->batch, vector = o->vector, width = o->width, vocabulary = model->text->vocabulary;
    int places = batch * o->context, hidden = batch * width;
    uint64_t ids = stepgraph_pin_address(model->ids);
    struct parameter *embedding = &model->parameters[0], *last = &model->parameters[model->parameter_count - 2];

    TRY(linear_backward(model, model->layers[o->layers - 1].y, last, last + 1, model->d_logits, model->d_y));
    for (int i = o->layers - 1; i >= 0; i--) {
        struct layer *layer = &model->layers[i];
        uint64_t *gain = &layer->gain->part[VALUE].address;

        LAUNCH(normalize_dgain, width, &model->d_y, &layer->a, &layer->inverse, &layer->gain->gradient, &batch, &width);
        LAUNCH(normalize_row, batch, &model->d_y, &layer->a, gain, &model->row_shared, &batch, &width);
        LAUNCH(normalize_da, hidden, &model->d_y, &layer->a, &layer->inverse, gain, &model->row_shared, &model->d_a, &batch,
               &width);
        LAUNCH(silu_dz, hidden, &layer->z, &model->d_a, &model->d_z, &hidden);
        if (i == 0) {
            TRY(linear_backward(model, layer->x, layer->weight, layer->bias, model->d_z, model->d_embedded));
        } else { /* Through the layer, and around it. d_a is free again. */
            TRY(linear_backward(model, layer->x, layer->weight, layer->bias, model->d_z, model->d_a));
            LAUNCH(add, hidden, &model->d_y, &model->d_a, &hidden);
        }
    }
    LAUNCH(embed_dtable, vocabulary * vector, &ids, &model->d_embedded, &embedding->gradient, &places, &vector, &vocabulary);
    return 0;
}

/* ---- optimizer, retraction, average ------------------------------------------------------------------------------ */

/* Where the newest value of a tensor is. */
static uint64_t *newest(struct tensor *tensor)
{
    return tensor->fresh != NULL ? &tensor->fresh->address : &tensor->address;
}

/* A tensor has a new value, in a block of its own. Without a pin it *moves* there, and its old block goes back to the allocator,
 * as in any framework. With a pin the new value waits for the commit. */
static int replace(struct model *model, struct tensor *tensor, struct block *block)
{
    if (tensor->pin != NULL) {
        TRY(cache_free(&model->cache, tensor->fresh));
        tensor->fresh = block;
    } else {
        TRY(cache_free(&model->cache, tensor->block));
        tensor->block = block;
        tensor->address = block->address;
    }
    return 0;
}

static int optimizer(struct model *model)
{
    float beta1 = BETA1, beta2 = BETA2;
    uint64_t cell = stepgraph_pin_address(model->rate), decay = model->decay.address;
    /* By its address in the cell, or by value, which a graph would freeze. */
    bool by_value = model->options->break_scalar;
    enum kernel adamw = by_value ? KERNEL_adamw_by_value : KERNEL_adamw;
    void *rate = by_value ? (void *)&model->host_rate : (void *)&cell;

    LAUNCH(count_step, 1, &decay, &beta1, &beta2);
    for (int i = 0; i < model->parameter_count; i++) {
        struct parameter *p = &model->parameters[i];
        struct tensor *value = &p->part[VALUE], *first = &p->part[FIRST], *second = &p->part[SECOND];
        struct block *fresh[3];
        int count = p->rows * p->columns;

        for (int part = VALUE; part <= SECOND; part++)
            TRY(cache_allocate(&model->cache, value->bytes, &fresh[part]));
        TRY(driver_launch(model->driver, adamw, count,
                          (void *[]){&fresh[VALUE]->address, &fresh[FIRST]->address, &fresh[SECOND]->address, &value->address,
                                     &first->address, &second->address, &p->gradient, rate, &decay, &beta1, &beta2,
                                     &p->weight_decay, &count}));
        for (int part = VALUE; part <= SECOND; part++)
            TRY(replace(model, &p->part[part], fresh[part]));
    }
    return 0;
}

static int retraction(struct model *model)
{
    for (int i = 0; i < model->parameter_count; i++) {
        struct parameter *p = &model->parameters[i];
        struct tensor *value = &p->part[VALUE];
        struct block *fresh;

        if (p->radius == 0)
            continue;
        TRY(cache_allocate(&model->cache, value->bytes, &fresh));
        LAUNCH(retract, p->rows, newest(value), &fresh->address, &p->rows, &p->columns, &p->radius);
        TRY(replace(model, value, fresh));
    }
    return 0;
}

static int average(struct model *model)
{
    float keep = AVERAGE_KEEP, loss_keep = LOSS_KEEP;
    uint64_t loss = where_the_loss_goes(model);
    int one = 1;

    for (int i = 0; i < model->parameter_count; i++) {
        struct parameter *p = &model->parameters[i];
        int count = p->rows * p->columns;
        LAUNCH(average, count, &p->part[AVERAGE].address, newest(&p->part[VALUE]), &keep, &count);
    }
    LAUNCH(average, 1, &model->smooth.address, &loss, &loss_keep, &one);
    return 0;
}

/* ---- commit ------------------------------------------------------------------------------------------------------ */

/* All new values into their masters, in one launch. Then their blocks are free again: what reuses them is enqueued later. */
static int commit(struct model *model)
{
    size_t n = 0;

    for (size_t i = 0; i < model->tensor_count; i++) {
        struct tensor *tensor = model->tensors[i];
        if (tensor->fresh == NULL)
            continue;
        model->commit_pins[n] = tensor->pin;
        model->commit_addresses[n++] = tensor->fresh->address;
    }
    TRY(library(stepgraph_pin_commit_many(model->driver->session, n, model->commit_pins, model->commit_addresses)));
    for (size_t i = 0; i < model->tensor_count; i++) {
        TRY(cache_free(&model->cache, model->tensors[i]->fresh));
        model->tensors[i]->fresh = NULL;
    }
    return 0;
}

static int enqueue(struct model *model, stepgraph_step *step)
{
    TRY(library(stepgraph_step_mark(step, "data")));
    TRY(data(model, step));
    TRY(library(stepgraph_step_mark(step, "forward")));
    TRY(forward(model));
    TRY(library(stepgraph_step_mark(step, "backward")));
    TRY(backward(model));
    TRY(library(stepgraph_step_mark(step, "optimizer")));
    TRY(optimizer(model));
    TRY(library(stepgraph_step_mark(step, "retraction")));
    TRY(retraction(model));
    TRY(library(stepgraph_step_mark(step, "EMA")));
    TRY(average(model));
    TRY(library(stepgraph_step_mark(step, "commit")));
    return commit(model);
}

int step_enqueue(struct model *model, stepgraph_step *step)
{
    /* A graph goes on using the blocks that it is recorded with, so they come from a pool of its own. */
    bool recorded = stepgraph_step_state(step) == STEPGRAPH_STEP_CAPTURING;

    if (recorded)
        cache_record(&model->cache, true);
    int status = enqueue(model, step);
    if (recorded)
        cache_record(&model->cache, false);
    return status;
}
