/*
 * Proof that a check can fail: a byte of a restored state is flipped and must be seen, and each input is altered and should be.
 *
 * Inputs take the value of another step, which the host itself has found to be fit for use; flipping bits in an index could send a kernel
 * anywhere. Where all steps have the same value, numbers in a float type are altered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_p.h"
#include "kernels/elements.h"

/* Faults that are planted, one after the other, until one is seen. */
#define PLANTS_MAX 8u

#define WRITTEN ((unsigned int)(SG__GROUP_STATE | SG__GROUP_OUTPUT))

typedef struct sg__control {
    sg__check *check;
    bool right;        /* All that replays did is what the images say. */
    unsigned int base; /* What a replay of the first step gives, with its inputs. */
} sg__control;

/* ---- a replay of the first step -------------------------------------------------------------------------------------- */

static stepgraph_status go_back(sg__control *control)
{
    sg__check *check = control->check;
    stepgraph_status status = sg__shot_restore(&check->shots, check->start, SG__GROUP_STATE);

    if (status == STEPGRAPH_OK)
        status = sg__shot_restore(&check->shots, control->base, SG__GROUP_INPUT);
    return status == STEPGRAPH_OK ? sg__check_fill(check, SG__FILL_A) : status;
}

/* Without the step's own bookkeeping: nothing was fed for this one. */
static stepgraph_status launch(sg__control *control)
{
    stepgraph_session *session = control->check->session;
    stepgraph_status status;

    SG__CU(session->driver, GraphLaunch, control->check->step->exec, session->stream);
    return STEPGRAPH_OK;

fail:
    return status;
}

/* Whether anything but noise differs from what the first step gives. */
static stepgraph_status seen(sg__control *control, unsigned int groups, bool *seen_out)
{
    sg__check *check = control->check;
    stepgraph_status status;
    size_t differ;

    *seen_out = false;
    status = sg__check_compare(check, &check->shots, control->base, groups, SG__FILL_A, &differ);
    if (status == STEPGRAPH_OK && differ > 0 && check->unsteady)
        status = sg__check_measure(check, &check->shots, control->base, SG__FILL_A);
    for (size_t j = 0; status == STEPGRAPH_OK && j < check->shots.n_items; j++) {
        const sg__record *record = &check->records[j];
        /* With the same filling such a pin is steady. */
        if (check->shots.items[j].bytes > 0 && (record->filled_alike || sg__check_beyond(record, &check->shots.items[j])))
            *seen_out = true;
    }
    return status;
}

/* The first step as the graph does it: known already if replays are right, else made now. */
static stepgraph_status make_base(sg__control *control)
{
    sg__check *check = control->check;
    uint32_t last = check->steps - 1;
    bool right = check->every_step && !check->unsteady;
    stepgraph_status status;
    size_t differ = 0;

    for (size_t j = 0; j < check->shots.n_items; j++)
        right = right && !check->records[j].fault;
    control->right = right;
    control->base = check->every_step ? check->after[0] : check->after[last];
    status = sg__check_begin_arm(check, SG__FILL_A);
    if (status == STEPGRAPH_OK)
        status = sg__check_feed(check, 0);
    if (status == STEPGRAPH_OK)
        status = stepgraph_session_flush(check->session);
    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "the feeds of the first step");
    /* What the step finds in its inputs, which it may change itself, and what the host keeps elsewhere for it, are those of the first step now. */
    if (status == STEPGRAPH_OK)
        status = sg__check_compare(check, &check->shots, control->base, SG__GROUP_INPUT, SG__FILL_A, &differ);
    if (status == STEPGRAPH_OK && differ > 0)
        status = sg__shot_save_groups(&check->shots, control->base, SG__GROUP_INPUT);
    if (status == STEPGRAPH_OK && (differ > 0 || !right) && control->base == check->after[last])
        check->last_valid = false;
    if (status != STEPGRAPH_OK || right)
        return status;
    status = launch(control);
    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "a replay of the first step");
    if (status == STEPGRAPH_OK)
        status = sg__shot_save_groups(&check->shots, control->base, WRITTEN);
    return status;
}

/* ---- a planted fault ------------------------------------------------------------------------------------------------- */

/* Bits that change a number much and keep it one: the top of the mantissa, or, for zeros, of the exponent. *byte is the one in an element. */
static unsigned int bits_to_flip(stepgraph_type type, bool exponent, unsigned int *byte)
{
    *byte = 0;
    switch (type) {
    case STEPGRAPH_TYPE_F32:
        *byte = exponent ? 3 : 2;
        return exponent ? 0x3f : 0x40;
    case STEPGRAPH_TYPE_F64:
        *byte = exponent ? 7 : 6;
        return exponent ? 0x3f : 0x08;
    case STEPGRAPH_TYPE_F16:
        *byte = 1;
        return exponent ? 0x3c : 0x02;
    case STEPGRAPH_TYPE_BF16:
        *byte = exponent ? 1 : 0;
        return exponent ? 0x3f : 0x40;
    case STEPGRAPH_TYPE_F8E4M3:
        return exponent ? 0x38 : 0x04;
    case STEPGRAPH_TYPE_F8E5M2:
        return exponent ? 0x3c : 0x02;
    default:
        return 0x01;
    }
}

static bool is_float(stepgraph_type type)
{
    return type >= STEPGRAPH_TYPE_F32 && type <= STEPGRAPH_TYPE_F8E5M2;
}

/* Whether altering numbers alters it: a pin may be shorter than one element. */
static bool has_numbers(const stepgraph_pin *pin)
{
    return is_float(pin->type) && pin->bytes >= sg__element_bytes(pin->type);
}

/* How good a state is to plant a fault in; 0: not at all. */
static int fitness(const sg__check *check, size_t j)
{
    const sg__shot_item *item = &check->shots.items[j];
    const sg__record *record = &check->records[j];

    if (item->group != SG__GROUP_STATE)
        return 0;
    if (check->config.plant != NULL)
        return item->pin == check->config.plant ? 1 : 0;
    return 1 + (record->used ? 8 : 0) + ((record->facts & STEPGRAPH_CHECK_UNCHANGED) == 0 ? 4 : 0) +
           (is_float(item->pin->type) ? 2 : item->pin->type == STEPGRAPH_TYPE_BYTES ? 1 : 0);
}

/* The n-th best state; n_items: there is none. */
static size_t choose(const sg__check *check, unsigned int n)
{
    size_t best = check->shots.n_items, candidates = 0;
    int fit = 0;

    for (size_t j = 0; j < check->shots.n_items; j++)
        fit = fitness(check, j) > fit ? fitness(check, j) : fit;
    for (size_t j = 0; j < check->shots.n_items; j++)
        candidates += fitness(check, j) == fit && fit > 0 ? 1 : 0;
    for (size_t j = 0, seen_so_far = 0; candidates > 0 && j < check->shots.n_items; j++)
        if (fitness(check, j) == fit && seen_so_far++ == n % candidates)
            best = j;
    return best;
}

/* One byte, once. That it stands where it was planted, and nothing else differs, is what restoring and comparing are worth. */
static stepgraph_status plant(sg__control *control, unsigned int n, size_t j, bool *seen_out)
{
    sg__check *check = control->check;
    stepgraph_session *session = check->session;
    sg__shot_item *item = &check->shots.items[j];
    uint64_t size = sg__element_bytes(item->pin->type), elements = item->pin->bytes / size, at;
    unsigned int byte, mask = bits_to_flip(item->pin->type, n >= PLANTS_MAX / 2, &byte);
    stepgraph_status status;
    size_t differ;

    /* Bytes without a type may be elements of up to eight: the lowest of them. */
    at = elements > 0 ? (elements * n / PLANTS_MAX) * size + byte : 0;
    if (item->pin->type == STEPGRAPH_TYPE_BYTES)
        at = at / 8 * 8;
    *seen_out = false;
    status = go_back(control);
    if (status == STEPGRAPH_OK) {
        CUresult code = sg__kernels_flip(session->driver, &session->kernels, session->stream, item->pin->address + at, 1, 1, mask);
        if (code != CUDA_SUCCESS)
            return sg__fail_driver(session->driver, "cuLaunchKernel", code);
        status = sg__check_compare(check, &check->shots, check->start, SG__GROUP_STATE, SG__FILL_A, &differ);
    }
    if (status != STEPGRAPH_OK || differ != 1 || item->bytes != 1 || item->first != at)
        return status;
    status = launch(control);
    return status == STEPGRAPH_OK ? seen(control, WRITTEN, seen_out) : status;
}

static stepgraph_status plants(sg__control *control)
{
    sg__check *check = control->check;
    stepgraph_check_summary *summary = &check->report->summary;
    stepgraph_status status = STEPGRAPH_OK;
    bool found = false;

    for (unsigned int n = 0; n < PLANTS_MAX && !found && status == STEPGRAPH_OK; n++) {
        size_t j = choose(check, n);
        if (j == check->shots.n_items)
            break;
        status = plant(control, n, j, &found);
        summary->planted++;
        if (status == STEPGRAPH_OK)
            status = sg__check_progress(check, "controls");
    }
    summary->planted_seen = found ? 1 : 0;
    return status;
}

/* ---- altered inputs -------------------------------------------------------------------------------------------------- */

/* For each input a later step whose bytes are others; 0: there is none. */
static stepgraph_status find_others(sg__control *control, uint32_t *other)
{
    sg__check *check = control->check;
    stepgraph_status status = STEPGRAPH_OK;
    size_t differ;

    for (uint32_t i = 1; check->every_step && i < check->steps && status == STEPGRAPH_OK; i++) {
        status = sg__shot_restore(&check->shots, check->after[i], SG__GROUP_INPUT);
        if (status == STEPGRAPH_OK)
            status = sg__check_compare(check, &check->shots, control->base, SG__GROUP_INPUT, SG__FILL_A, &differ);
        for (size_t j = 0; status == STEPGRAPH_OK && j < check->shots.n_items; j++)
            if (check->shots.items[j].bytes > 0 && other[j] == 0)
                other[j] = i;
    }
    return status;
}

/* All of them: by much, or by a half at most. */
static stepgraph_status alter_numbers(const stepgraph_pin *pin, bool much)
{
    stepgraph_session *session = pin->session;
    unsigned int size = sg__element_bytes(pin->type), byte, mask = bits_to_flip(pin->type, much, &byte);
    CUresult code = sg__kernels_flip(session->driver, &session->kernels, session->stream, pin->address + byte, pin->bytes / size, size, mask);

    return code == CUDA_SUCCESS ? STEPGRAPH_OK : sg__fail_driver(session->driver, "cuLaunchKernel", code);
}

static stepgraph_status alter(sg__control *control, size_t j, uint32_t other)
{
    sg__check *check = control->check;
    const sg__shot_item *item = &check->shots.items[j];
    sg__record *record = &check->records[j];
    stepgraph_check_summary *summary = &check->report->summary;
    stepgraph_status status;
    bool changed = false;

    if (!record->used) { /* Altering it needs no run. */
        summary->inputs++;
        record->facts |= STEPGRAPH_CHECK_UNREAD;
        return STEPGRAPH_OK;
    }
    if (other == 0 && !has_numbers(item->pin)) {
        summary->inputs_untried++;
        record->facts |= STEPGRAPH_CHECK_UNTRIED;
        return STEPGRAPH_OK;
    }
    status = go_back(control);
    if (status == STEPGRAPH_OK)
        status = other != 0 ? sg__shot_restore_one(&check->shots, check->after[other], j) : alter_numbers(item->pin, true);
    if (status == STEPGRAPH_OK)
        status = launch(control);
    if (status == STEPGRAPH_OK)
        status = seen(control, WRITTEN, &changed);
    if (status != STEPGRAPH_OK)
        return status;
    summary->inputs++;
    summary->inputs_seen += changed ? 1 : 0;
    record->facts |= changed ? 0 : STEPGRAPH_CHECK_UNREAD;
    return sg__check_progress(check, "controls");
}

/* What stands behind the bytes that were fed must not reach a state. It is altered to more of the same bytes. */
static stepgraph_status alter_padding(sg__control *control, size_t j)
{
    sg__check *check = control->check;
    stepgraph_session *session = check->session;
    const stepgraph_pin *pin = check->shots.items[j].pin;
    uint64_t live = check->records[j].fed_bytes;
    uint32_t i = check->records[j].fed_step;
    unsigned int first = control->base;
    stepgraph_status status;
    bool changed = false;

    if (i == 0) {
        status = go_back(control);
    } else {
        status = sg__shot_restore(&check->shots, check->after[i - 1], SG__GROUP_STATE | SG__GROUP_INPUT);
        if (status == STEPGRAPH_OK)
            status = sg__check_fill(check, SG__FILL_A);
        if (status == STEPGRAPH_OK)
            status = sg__check_wait_for(check, "going back to a later step");
        if (status == STEPGRAPH_OK)
            status = sg__check_rewind(check, check->config.first + i);
        if (status == STEPGRAPH_OK)
            status = sg__check_feed(check, i);
        if (status == STEPGRAPH_OK)
            status = stepgraph_session_flush(session);
        control->base = check->after[i];
    }

    if (status == STEPGRAPH_OK) {
        CUresult code = sg__kernels_repeat(session->driver, &session->kernels, session->stream, pin->address + live, pin->bytes - live, pin->address, live);
        status = code == CUDA_SUCCESS ? launch(control) : sg__fail_driver(session->driver, "cuLaunchKernel", code);
    }
    if (status == STEPGRAPH_OK)
        status = seen(control, SG__GROUP_STATE, &changed);
    control->base = first;
    if (status != STEPGRAPH_OK)
        return status;
    check->records[j].facts |= changed ? STEPGRAPH_CHECK_PADDING : 0;
    return sg__check_progress(check, "controls");
}

static stepgraph_status inputs(sg__control *control)
{
    sg__check *check = control->check;
    uint32_t *other = calloc(check->shots.n_items + 1, sizeof *other);
    stepgraph_status status;

    if (other == NULL)
        return sg__fail_memory("host", check->shots.n_items * sizeof *other);
    status = find_others(control, other);
    for (size_t j = 0; j < check->shots.n_items && status == STEPGRAPH_OK; j++) {
        const sg__record *record = &check->records[j];
        if (check->shots.items[j].group != SG__GROUP_INPUT || (!record->used && !record->fed))
            continue;
        status = alter(control, j, other[j]);
    }
    /* These feed. */
    for (size_t j = 0; j < check->shots.n_items && status == STEPGRAPH_OK; j++) {
        const sg__record *record = &check->records[j];
        if (check->shots.items[j].group == SG__GROUP_INPUT && record->used && record->fed && record->fed_bytes > 0 && (record->fed_step == 0 || control->right))
            status = alter_padding(control, j);
    }
    free(other);
    return status;
}

/* ---- another beginning ----------------------------------------------------------------------------------------------- */

/* The first step's beginning, with numbers in float types altered, all of them, by a half at most: whatever a graph reads elsewhere now shows. Or only
 * the cells, by much: a rate may still be 0. */
static stepgraph_status begin_altered(sg__check *check, bool cells)
{
    stepgraph_session *session = check->session;
    stepgraph_status status = sg__check_begin_arm(check, SG__FILL_A);

    if (status == STEPGRAPH_OK)
        status = sg__check_feed(check, 0);
    if (status == STEPGRAPH_OK)
        status = stepgraph_session_flush(session);
    if (status == STEPGRAPH_OK)
        status = sg__check_wait_for(check, "the feeds of the first step");
    for (size_t j = 0; j < check->shots.n_items && status == STEPGRAPH_OK; j++) {
        const sg__shot_item *item = &check->shots.items[j];
        if (item->group == SG__GROUP_OUTPUT || (cells && item->pin->role != STEPGRAPH_ROLE_CELL) || !has_numbers(item->pin) ||
            (item->group == SG__GROUP_STATE && check->config.plant != NULL && item->pin != check->config.plant))
            continue;
        status = alter_numbers(item->pin, cells);
    }
    return status;
}

static stepgraph_status launches_altered(sg__check *check, bool cells)
{
    stepgraph_status status = begin_altered(check, cells);

    return status == STEPGRAPH_OK ? sg__check_launches(check, 0) : status;
}

/* A state that the step only reads, and an input that is the same in all steps, may be read as a copy: from other values a replay must still do what
 * the launches do. */
static stepgraph_status other_beginning(sg__control *control, bool cells)
{
    sg__check *check = control->check;
    stepgraph_check_summary *summary = &check->report->summary;
    size_t differ = 0;
    stepgraph_status status;

    for (size_t j = 0; j < check->shots.n_items; j++)
        if (check->unsteady || check->records[j].fault)
            return STEPGRAPH_OK;
    status = launches_altered(check, cells);
    if (status == STEPGRAPH_OK)
        status = sg__shot_save(&check->shots, control->base);
    if (control->base == check->after[check->steps - 1])
        check->last_valid = false;
    if (status == STEPGRAPH_OK)
        status = begin_altered(check, cells);
    if (status == STEPGRAPH_OK)
        status = launch(control);
    if (status == STEPGRAPH_OK)
        status = sg__check_compare(check, &check->shots, control->base, WRITTEN, SG__FILL_A, &differ);
    if (status == STEPGRAPH_OK && differ > 0)
        status = sg__check_measure(check, &check->shots, control->base, SG__FILL_A);
    if (status != STEPGRAPH_OK || differ == 0)
        return status;
    for (size_t j = 0; j < check->shots.n_items; j++) {
        const sg__shot_item *item = &check->shots.items[j];
        if (item->bytes > 0)
            check->records[j].arms[SG__ARM_WAITED] = (sg__outcome){.step = 0, .beyond = true, .bytes = item->bytes, .first = item->first,
                .distance = item->distance, .fresh_bits = item->saved_bits, .replay_bits = item->live_bits};
    }
    /* Unless launches, too, do something else there each time. */
    status = launches_altered(check, cells);
    if (status == STEPGRAPH_OK)
        status = sg__check_compare(check, &check->shots, control->base, WRITTEN, SG__FILL_A, &differ);
    for (size_t j = 0; j < check->shots.n_items; j++) {
        sg__record *record = &check->records[j];
        if (differ == 0 && record->arms[SG__ARM_WAITED].step != SG__NO_STEP) {
            record->fault = true;
            record->facts |= STEPGRAPH_CHECK_DIFFERS;
        } else {
            record->arms[SG__ARM_WAITED].step = SG__NO_STEP;
        }
    }
    if (differ == 0)
        snprintf(summary->cause, sizeof summary->cause, "from a state and inputs that were altered a replay gives something else than launches: it reads "
                 "a copy of one of them, or what stood there when it was recorded");
    return status;
}

stepgraph_status sg__check_controls(sg__check *check)
{
    sg__control control = {.check = check};
    stepgraph_status status = make_base(&control);

    if (status == STEPGRAPH_OK)
        status = plants(&control);
    if (status == STEPGRAPH_OK)
        status = inputs(&control);
    if (status == STEPGRAPH_OK)
        status = other_beginning(&control, false);
    return status == STEPGRAPH_OK ? other_beginning(&control, true) : status;
}
