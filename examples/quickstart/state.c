/*
 * Introduces stepgraph_pin_read() and stepgraph_pin_write(): saving, loading and comparing all that survives a step. A graph need
 * not be recorded again when a state is loaded, because it goes into the masters.
 */
#include "quickstart.h"

#include <stdlib.h>
#include <string.h>

int state_save(struct model *model, struct state *state)
{
    struct driver *driver = model->driver;
    int status = 0;

    state->bytes = malloc(model->state_bytes);
    if (state->bytes == NULL)
        return fail(EXIT_INPUT, "out of host memory: %llu bytes to save the state", (unsigned long long)model->state_bytes);

    unsigned char *to = state->bytes;
    for (size_t i = 0; i < model->tensor_count && status == 0; i++) {
        struct tensor *tensor = model->tensors[i];
        if (tensor->pin != NULL) {
            status = library(stepgraph_pin_read(tensor->pin, to, tensor->bytes));
        } else {
            status = driver_check(driver->to_host(to, tensor->address, tensor->bytes, stepgraph_session_stream(driver->session)),
                                  "cuMemcpyDtoHAsync");
            stepgraph_session_count(driver->session, STEPGRAPH_KIND_COPY, 1);
        }
        to += tensor->bytes;
    }
    if (status == 0)
        status = library(stepgraph_session_wait(driver->session));
    if (status != 0)
        state_free(state);
    return status;
}

/* A tensor without a pin is put in another block, as a framework does that loads a checkpoint. */
static int load_moving(struct model *model, struct tensor *tensor, const void *value)
{
    struct driver *driver = model->driver;
    struct block *block;

    TRY(cache_allocate(&model->cache, tensor->bytes, &block));
    cache_free(&model->cache, tensor->block);
    tensor->block = block;
    tensor->address = block->address;
    TRY(driver_check(driver->to_device(block->address, value, tensor->bytes, stepgraph_session_stream(driver->session)),
                     "cuMemcpyHtoDAsync"));
    stepgraph_session_count(driver->session, STEPGRAPH_KIND_COPY, 1);
    return 0;
}

int state_load(struct model *model, const struct state *state)
{
    const unsigned char *from = state->bytes;

    for (size_t i = 0; i < model->tensor_count; i++) {
        struct tensor *tensor = model->tensors[i];
        if (tensor->pin != NULL)
            TRY(library(stepgraph_pin_write(tensor->pin, from, tensor->bytes)));
        else
            TRY(load_moving(model, tensor, from));
        from += tensor->bytes;
    }
    return library(stepgraph_session_wait(model->driver->session));
}

void state_free(struct state *state)
{
    free(state->bytes);
    state->bytes = NULL;
}

/* FNV-1a. */
static uint64_t checksum(const unsigned char *bytes, uint64_t length)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < length; i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3u;
    return sum;
}

void state_compare(const struct model *model, const struct state *fresh, const struct state *replay, const float *fresh_losses,
                   const float *replay_losses, int steps, struct comparison *comparison_out)
{
    struct comparison c = {.steps = steps, .state_bytes = model->state_bytes};
    uint64_t at = 0;

    for (size_t i = 0; i < model->tensor_count; i++) {
        const struct tensor *tensor = model->tensors[i];
        for (uint64_t k = 0; k < tensor->bytes; k++, at++)
            if (fresh->bytes[at] != replay->bytes[at] && c.differing_bytes++ == 0)
                snprintf(c.first, sizeof c.first, "%s", tensor->name);
    }
    for (int i = 0; i < steps; i++)
        c.differing_losses += memcmp(&fresh_losses[i], &replay_losses[i], sizeof(float)) != 0;
    c.loss[0] = fresh_losses[steps - 1];
    c.loss[1] = replay_losses[steps - 1];
    c.checksum[0] = checksum(fresh->bytes, model->state_bytes);
    c.checksum[1] = checksum(replay->bytes, model->state_bytes);
    c.identical = c.differing_bytes == 0 && c.differing_losses == 0;
    *comparison_out = c;
}
