/*
 * Checks by turns: the host launches a step as always, and the loop replays it from the same state and compares every byte of
 * what came out.
 *
 * One such step is what it asks for; several in a row, each with its own inputs, show what a graph has frozen. Afterwards the
 * pins are as the launches left them, so the step is done once, and rightly, whatever the replay did.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena_p.h"
#include "check_p.h"
#include "graveyard.h"
#include "kernels/elements.h"
#include "loop_p.h"
#include "wait.h"

/* Faults that are planted, until one is seen. */
#define PLANTS_MAX 8u
/* Replays of the same step that are compared with each other before a difference counts as the graph's. */
#define REPLAYS_MAX 3u
/* Checks in a row that find a difference which replays do not have among themselves, in a step that does not repeat itself bit by bit: a chance that
 * comes once comes seldom, and three times in a row hardly ever; a value that is frozen differs each time. */
#define UNLIKE_MAX 3u
/* Checks that are put off in a row. */
#define PUT_OFF_MAX 8u
#define TIMEOUT_DEFAULT_NS 60000000000u

/* How a check ended, and what there is to say. */
typedef struct sg__result {
    stepgraph_check_verdict verdict;
    bool unlike; /* Inconclusive, but some pin is one that replays agree on and the launches do not. */
    bool outside; /* A replay writes to memory that no pin covers. */
    char words[512];
} sg__result;

/* ---- begin ------------------------------------------------------------------------------------------------------- */

/* Everything as before the step; what was fed is still there. */
static stepgraph_status go_back(stepgraph_loop *loop)
{
    stepgraph_status status = sg__shot_restore(&loop->shots, loop->before, SG__WRITTEN);

    return status == STEPGRAPH_OK ? sg__guards_copy(loop, SG__BEFORE, true) : status;
}

static stepgraph_status poison_arena(const stepgraph_session *session, const stepgraph_pin *pin)
{
    CUdeviceptr start = 0, from = pin->address;
    stepgraph_status status;
    uint64_t bytes = 0;

    for (; sg__arena_gap(session, pin, from, &start, &bytes); from = start + bytes)
        SG__CU(session->driver, MemsetD8Async, start, SG__FILL_A, bytes, session->stream);
    return STEPGRAPH_OK;

fail:
    return status;
}

/* Scratch of the graph holds nothing that a replay could pass off as its own. Not so before the host's launches, which are the step: what they find there,
 * and in outputs, is what they would find without a check. */
static stepgraph_status poison(const stepgraph_loop *loop, const sg__lane *lane)
{
    const stepgraph_session *session = loop->session;
    bool scratch = (loop->config.flags & STEPGRAPH_LOOP_KEEP_SCRATCH) == 0;
    stepgraph_status status = STEPGRAPH_OK;

    for (size_t i = 0; i < lane->step->n_used && status == STEPGRAPH_OK; i++) {
        const stepgraph_pin *pin = lane->step->used[i];
        if (pin->in_arena && scratch)
            status = poison_arena(session, pin);
        else if (pin->role == STEPGRAPH_ROLE_SCRATCH && scratch && !pin->in_arena)
            SG__CU(session->driver, MemsetD8Async, pin->address, SG__FILL_A, pin->bytes, session->stream);
    }
    return status;

fail:
    return status;
}

/* The step cannot be checked, for the reason in the record or in words. */
static void cannot(stepgraph_loop *loop, sg__lane *lane, const char *words)
{
    stepgraph_error_info info;

    loop->stats.checks_failed++;
    sg__error_get(&info);
    words = words != NULL ? words : info.message;
    sg__log(loop->session, STEPGRAPH_LOG_WARNING, "loop '%s', key %llu, step %llu: not checked: %s", loop->name,
            (unsigned long long)lane->key, (unsigned long long)loop->k, words);
    if (lane->phase != SG__PHASE_CHECK)
        lane->until_check = loop->config.check_every; /* It was proven once; the next time there may be room. */
    else if ((loop->config.flags & STEPGRAPH_LOOP_ALLOW_UNPROVEN) != 0 && !lane->suspected)
        sg__lane_proven(loop, lane);
    else if (sg__lane_unrelax(loop, lane, false, words))
        return;
    else if (lane->suspected)
        sg__lane_move_down(loop, lane, (stepgraph_why)lane->doubt_why, lane->doubt_words);
    else
        sg__lane_move_down(loop, lane, STEPGRAPH_WHY_UNPROVEN, words);
}

/* All that the step may write to. */
static stepgraph_status save(stepgraph_loop *loop, sg__lane *lane)
{
    const sg__graph *read = &lane->step->read;
    stepgraph_status status;

    if (read->n_unread > 0)
        return sg__fail(STEPGRAPH_ERR_MEMORY,
                        "the graph may use memory that no pin covers, since node %u, '%.100s', could not be read, and a check, which does the step twice, could "
                        "not put it back: if all that the step uses is pinned, check by callbacks, or replay unproven with STEPGRAPH_LOOP_NO_CHECK",
                        read->unread[0], sg__node_name(&read->nodes[read->unread[0]]));
    if (lane->unpinned[0] != '\0')
        return sg__fail(STEPGRAPH_ERR_MEMORY,
                        "the graph uses memory that no pin covers, and a check, which does the step twice, could not put it back: pin it, or replay "
                        "unproven with STEPGRAPH_LOOP_NO_CHECK: %s",
                        lane->unpinned);
    status = sg__loop_save(loop, 2, SG__INPUTS_USED, lane->step);
    if (status == STEPGRAPH_OK)
        status = sg__enter(loop->session);
    if (status != STEPGRAPH_OK)
        return status;
    status = sg__guards_save(loop, lane);
    if (status == STEPGRAPH_OK)
        status = sg__constants_note(&loop->constants, lane->step);
    sg__leave(loop->session);
    return status;
}

stepgraph_status sg__loop_check_begin(stepgraph_loop *loop, sg__lane *lane, bool *possible)
{
    stepgraph_status status = save(loop, lane), agreed;
    const bool against = status != STEPGRAPH_OK && status != STEPGRAPH_ERR_LOST && status != STEPGRAPH_ERR_STATE; /* As when memory of some pin is gone. */
    uint32_t worst;

    *possible = false;
    loop->counted = sg__counted(loop->session, STEPGRAPH_KIND_KERNEL);
    if (status != STEPGRAPH_OK && !against)
        return status;
    agreed = sg__loop_agree(loop, SG__ASK_CHECK, against ? 1 : 0, &worst);
    *possible = agreed == STEPGRAPH_OK && worst == 0;
    if (agreed == STEPGRAPH_OK && worst != 0)
        cannot(loop, lane, against ? NULL : SG__ANOTHER_RANK);
    if (!*possible)
        sg__loop_forget(loop);
    return agreed;
}

/* ---- end --------------------------------------------------------------------------------------------------------- */

/* Wait for a replay, and not inside the driver, which might never come back. One that hangs marks the session. */
static stepgraph_status wait_for(stepgraph_loop *loop, sg__lane *lane)
{
    stepgraph_session *session = loop->session;
    const uint64_t limit = loop->config.timeout_ns != 0 ? loop->config.timeout_ns : TIMEOUT_DEFAULT_NS;
    stepgraph_status status;
    CUevent event = NULL;
    bool late;

    SG__CU(session->driver, EventCreate, &event, CU_EVENT_DISABLE_TIMING);
    SG__CU(session->driver, EventRecord, event, session->stream);
    status = sg__wait_event(session, event, limit, &late);
    if (status == STEPGRAPH_OK && late) {
        sg__session_hangs(session, event, lane->step->name);
        sg__fail(STEPGRAPH_ERR_LOST,
                 "loop '%s': a replay of step %llu did not come to an end within %.1f seconds; launched one by one the same step "
                 "does: something in it waits for a state that only the first run finds%s",
                 loop->name, (unsigned long long)loop->k, (double)limit * 1e-9,
                 loop->config.agree != NULL ? ", or for another rank" : "");
        return sg__step_fail(lane->step);
    }
fail:
    sg__bury(session, SG__GRAVE_EVENT, (uintptr_t)event);
    return status;
}

/* The state of before, and a replay from there; the inputs are still there. */
static stepgraph_status replay(stepgraph_loop *loop, sg__lane *lane)
{
    stepgraph_step *step = lane->step;
    uint32_t flags = step->flags;
    bool timing = step->stages.timing;
    stepgraph_status status = poison(loop, lane);

    if (status != STEPGRAPH_OK)
        return status;
    step->flags &= ~(uint32_t)STEPGRAPH_STEP_STRICT_FEEDS;
    step->stages.timing = false;
    status = stepgraph_step_replay(step);
    step->flags = flags;
    step->stages.timing = timing;
    for (size_t i = 0; status == STEPGRAPH_OK && i < step->n_used; i++)
        step->used_feeds[i] = step->used[i]->feeds;
    return status == STEPGRAPH_OK ? wait_for(loop, lane) : status;
}

/* Bytes that differ from an image, by pin, in the items of the images. */
static stepgraph_status compare(stepgraph_loop *loop, unsigned int image, size_t *differ)
{
    stepgraph_status status = sg__shot_compare(&loop->shots, image, SG__ALL, SG__FILL_A, SG__FILL_A);

    if (status == STEPGRAPH_OK)
        status = sg__session_wait(loop->session);
    if (status != STEPGRAPH_OK)
        return status;
    *differ = sg__shots_found(&loop->shots, SG__ALL);
    for (size_t i = 0; i < loop->shots.n_items; i++)
        loop->inputs_changed |= loop->shots.items[i].group == SG__GROUP_INPUT && loop->shots.items[i].bytes > 0;
    return STEPGRAPH_OK;
}

/* What to say of a pin that deviates; and of how many others. */
static void describe(const stepgraph_loop *loop, size_t index, char *words, size_t bytes)
{
    const stepgraph_pin *pin = loop->shots.items[index].pin;
    const sg__deviation *deviation = &loop->deviations[index];
    size_t others = 0;
    int n;

    for (size_t i = 0; i < loop->shots.n_items; i++)
        others += i != index && loop->deviations[i].bytes > 0 ? 1 : 0;
    if (loop->shots.items[index].group == SG__GROUP_INPUT) {
        snprintf(words, bytes,
                 "step %llu writes pin '%.80s', whose role, %s, says that only the host does, so that a replay of the same step finds other inputs: "
                 "make it a STATE, or let the step write elsewhere",
                 (unsigned long long)loop->k, pin->name, sg__role_name(pin->role));
        return;
    }
    n = snprintf(words, bytes,
                 "a replay of step %llu leaves other bytes than the host's launches: pin '%.80s', %llu of %llu bytes, from byte %llu on",
                 (unsigned long long)loop->k, pin->name, (unsigned long long)deviation->bytes, (unsigned long long)pin->bytes,
                 (unsigned long long)deviation->first);
    if (others > 0 && n > 0 && (size_t)n < bytes)
        snprintf(words + n, bytes - (size_t)n, ", and %zu other pin%s", others, others > 1 ? "s" : "");
}

static size_t first_deviation(const stepgraph_loop *loop)
{
    size_t i = 0;

    while (loop->deviations[i].bytes == 0)
        i++;
    return i;
}

/* A replay differs from the launches, here or on another rank. Do replays differ from each other? */
static stepgraph_status compare_replays(stepgraph_loop *loop, sg__lane *lane, bool *unsteady, bool *compared)
{
    unsigned int image;
    bool room = sg__shot_add(&loop->shots, &image);
    size_t differ = 0;
    stepgraph_status status;
    uint32_t worst;

    *unsteady = false;
    sg__error_clear();
    status = sg__loop_agree(loop, SG__ASK_NO_ROOM, room ? 0 : 1, &worst);
    *compared = status == STEPGRAPH_OK && worst == 0;
    if (!*compared)
        return status;
    status = sg__shot_save(&loop->shots, image);
    for (unsigned int i = 0; i < REPLAYS_MAX && status == STEPGRAPH_OK; i++) {
        status = go_back(loop);
        if (status == STEPGRAPH_OK)
            status = replay(loop, lane);
        if (status == STEPGRAPH_OK)
            status = compare(loop, image, &differ);
        if (status == STEPGRAPH_OK && differ > 0)
            status = sg__noise_add(loop, image);
        if (status == STEPGRAPH_OK)
            status = sg__loop_agree(loop, SG__ASK_UNSTEADY, differ > 0 ? 1 : 0, &worst);
        *unsteady = *unsteady || (status == STEPGRAPH_OK && worst != 0);
    }
    return status;
}

/* A SCRATCH of the graph's that poison() has overwritten, whatever it held; NULL: there is none. */
static const stepgraph_pin *filled(const stepgraph_loop *loop, const sg__lane *lane)
{
    const stepgraph_step *step = lane->step;

    for (size_t i = 0; i < step->n_used && (loop->config.flags & STEPGRAPH_LOOP_KEEP_SCRATCH) == 0; i++)
        if (step->used[i]->role == STEPGRAPH_ROLE_SCRATCH && !step->used[i]->in_arena)
            return step->used[i];
    return NULL;
}

/* Whether what a comparison was in doubt about is the likely cause of all that differs. */
static bool in_question(const sg__lane *lane)
{
    return lane->suspected && !lane->refuted;
}

/* In the checks that passed before, scratch was filled, too. */
static bool has_passed(const sg__lane *lane)
{
    return lane->planted || lane->phase == SG__PHASE_REPLAY;
}

/* What the check may have done to the steps to come. */
static void blame_scratch(const stepgraph_loop *loop, const sg__lane *lane, char *words, size_t bytes)
{
    const stepgraph_pin *scratch = filled(loop, lane);

    if (scratch != NULL)
        snprintf(words, bytes,
                 "; if a SCRATCH such as '%.60s' holds what outlives a step, the check has overwritten it: make it a STATE, and go back to a checkpoint",
                 scratch->name);
}

/* What may be the cause that a replay differs, where the host can do something about it. */
static void suppose(const stepgraph_loop *loop, const sg__lane *lane, char *words, size_t bytes)
{
    const uint64_t launched = sg__counted(loop->session, STEPGRAPH_KIND_KERNEL) - loop->counted, recorded = lane->step->stats.counted_kernels;

    if (launched != recorded)
        snprintf(words, bytes, "; the host has launched %llu kernels, and the graph was recorded with %llu: a step of other launches has a key of its own",
                 (unsigned long long)launched, (unsigned long long)recorded);
    else if (has_passed(lane) && lane->step->relaxed == NULL) /* What the recordings held was right. */
        snprintf(words, bytes,
                 "; a value or an address that a kernel is given may be another one than in the recording: feed the one as a CELL, commit to a pin what moves, "
                 "or call stepgraph_loop_drop() where they change");
    else if (!has_passed(lane))
        blame_scratch(loop, lane, words, bytes);
}

/* A replay differs: find out why, and what that says. touched: bytes that no pin covers. */
static stepgraph_status weigh(stepgraph_loop *loop, sg__lane *lane, size_t differ, uint64_t touched, sg__result *result)
{
    stepgraph_status status = sg__noise_begin(loop);
    bool unsteady = false, compared = false;
    size_t told, used;

    if (status == STEPGRAPH_OK)
        status = compare_replays(loop, lane, &unsteady, &compared);
    if (status != STEPGRAPH_OK)
        return status;
    result->verdict = touched > 0 || differ > 0 ? STEPGRAPH_DIVERGED : unsteady ? STEPGRAPH_INCONCLUSIVE : STEPGRAPH_IDENTICAL;
    if (touched > 0) {
        result->outside = true;
        snprintf(result->words, sizeof result->words, "a replay of step %llu writes to memory that no pin covers", (unsigned long long)loop->k);
        return STEPGRAPH_OK;
    }
    if (differ == 0)
        return STEPGRAPH_OK;
    told = sg__noise_written_input(loop);
    if (told == SIZE_MAX && unsteady) {
        told = sg__noise_of_graph(loop);
        result->unlike = told != SIZE_MAX;
        if (!result->unlike || lane->unlike + 1 < UNLIKE_MAX)
            result->verdict = STEPGRAPH_INCONCLUSIVE;
    }
    told = told != SIZE_MAX ? told : first_deviation(loop);
    describe(loop, told, result->words, sizeof result->words);
    used = strlen(result->words);
    if (result->verdict == STEPGRAPH_DIVERGED && loop->shots.items[told].group != SG__GROUP_INPUT && !in_question(lane))
        suppose(loop, lane, result->words + used, sizeof result->words - used);
    used = strlen(result->words);
    if (!compared)
        snprintf(result->words + used, sizeof result->words - used,
                 "; whether replays differ among themselves is not known: there is no room for a third copy of the pins");
    return STEPGRAPH_OK;
}

/* How good a state is to plant a fault in; 0: not at all. */
static int fitness(const sg__lane *lane, const stepgraph_pin *pin)
{
    if (pin->role != STEPGRAPH_ROLE_STATE || !sg__step_uses(lane->step, pin))
        return 0;
    return pin->type >= STEPGRAPH_TYPE_F32 && pin->type <= STEPGRAPH_TYPE_F8E5M2 ? 3 : pin->type == STEPGRAPH_TYPE_BYTES ? 2 : 1;
}

/* The n-th of the states that are best to plant a fault in; NULL: there is none. */
static const stepgraph_pin *choose(const sg__lane *lane, unsigned int n)
{
    const stepgraph_step *step = lane->step;
    size_t candidates = 0;
    int best = 0;

    for (size_t i = 0; i < step->n_used; i++)
        best = fitness(lane, step->used[i]) > best ? fitness(lane, step->used[i]) : best;
    for (size_t i = 0; i < step->n_used; i++)
        candidates += best > 0 && fitness(lane, step->used[i]) == best ? 1 : 0;
    if (candidates == 0)
        return NULL;
    n %= (unsigned int)candidates;
    for (size_t i = 0; i < step->n_used; i++)
        if (fitness(lane, step->used[i]) == best && n-- == 0)
            return step->used[i];
    return NULL;
}

/* Whether the step changes any state or output. They are as it left them. */
static stepgraph_status look_for_changes(stepgraph_loop *loop, bool *changes)
{
    stepgraph_status status = sg__shot_compare(&loop->shots, loop->before, SG__WRITTEN, SG__FILL_A, SG__FILL_A);

    if (status == STEPGRAPH_OK)
        status = sg__session_wait(loop->session);
    *changes = status == STEPGRAPH_OK && sg__shots_found(&loop->shots, SG__WRITTEN) > 0;
    return status;
}

/* Pins that differ, this one left out. */
static size_t differ_besides(const stepgraph_loop *loop, const stepgraph_pin *pin)
{
    size_t n = 0;

    for (size_t i = 0; i < loop->shots.n_items; i++)
        n += loop->shots.items[i].pin != pin && loop->shots.items[i].bytes > 0 ? 1 : 0;
    return n;
}

/* One flipped byte in a state that was put back must show, on all ranks, or the comparison is worth nothing: where the step changes nothing, in another
 * pin than that, since there it would show whatever a replay does. *innocent: where it does not, it is not for this one. */
static stepgraph_status plant(stepgraph_loop *loop, sg__lane *lane, bool changes, bool *innocent, bool *seen)
{
    stepgraph_session *session = loop->session;
    size_t differ = 0;
    uint32_t worst, unseen;
    bool possible = choose(lane, 0) != NULL;
    stepgraph_status status = sg__loop_agree(loop, SG__ASK_NO_STATE, possible ? 0 : 1, &worst);

    *seen = false;
    *innocent = possible && worst != 0;
    for (unsigned int n = 0; n < PLANTS_MAX && !*seen && status == STEPGRAPH_OK && worst == 0; n++) {
        const stepgraph_pin *pin = choose(lane, n);
        uint64_t size, elements, at;
        CUresult code;

        /* The top byte but one of an element, or the top one: a zero needs its exponent changed. */
        size = sg__element_bytes(pin->type);
        elements = pin->bytes / size;
        at = elements > 0 ? elements * n / PLANTS_MAX * size + (size > 1 ? size - (n % 2 == 0 ? 2 : 1) : 0) : 0;
        status = go_back(loop);
        if (status != STEPGRAPH_OK)
            return status;
        code = sg__kernels_flip(session->driver, &session->kernels, session->stream, pin->address + at, 1, 1,
                                size > 1 ? 0x3c : 0x01);
        if (code != CUDA_SUCCESS)
            return sg__fail_driver(session->driver, "cuLaunchKernel", code);
        status = replay(loop, lane);
        if (status == STEPGRAPH_OK)
            status = compare(loop, loop->after, &differ);
        *innocent = *innocent || (changes ? differ : differ_besides(loop, pin)) > 0;
        if (status == STEPGRAPH_OK)
            status = sg__loop_agree(loop, SG__ASK_UNSEEN, *innocent ? 0 : 1, &unseen);
        *seen = status == STEPGRAPH_OK && unseen == 0;
    }
    return status;
}

/* Replay, compare, and find out what the result is worth. *away: the pins are not as the launches left them, and what they left is in an image. The
 * context is current. */
static stepgraph_status hold_against(stepgraph_loop *loop, sg__lane *lane, sg__result *result, bool *away)
{
    stepgraph_status status = sg__shot_save(&loop->shots, loop->after);
    bool seen = lane->planted, innocent = seen, changes = false;
    const stepgraph_pin *constant = NULL;
    uint64_t touched = 0;
    size_t differ = 0, used;
    uint32_t worst = 0;

    if (status == STEPGRAPH_OK)
        status = sg__guards_copy(loop, SG__AFTER, false);
    if (status == STEPGRAPH_OK)
        status = sg__constants_written(&loop->constants, &constant);
    if (status == STEPGRAPH_OK)
        status = sg__loop_agree(loop, SG__ASK_CONSTANT, constant != NULL ? 1 : 0, &worst);
    if (status != STEPGRAPH_OK || worst != 0) {
        result->verdict = STEPGRAPH_DIVERGED;
        if (constant != NULL)
            snprintf(result->words, sizeof result->words,
                     "step %llu writes pin '%.80s', whose role, const, says that nobody does: make it a STATE, or a LIBRARY if one keeps it for itself",
                     (unsigned long long)loop->k, constant->name);
        return status;
    }
    *away = true;
    status = go_back(loop);
    if (status == STEPGRAPH_OK)
        status = replay(loop, lane);
    if (status == STEPGRAPH_OK)
        status = sg__guards_touched(loop, &touched);
    if (status == STEPGRAPH_OK)
        status = compare(loop, loop->after, &differ);
    if (status == STEPGRAPH_OK)
        status = sg__loop_agree(loop, SG__ASK_DIFFERS, differ > 0 || touched > 0 ? 1 : 0, &worst);
    if (status != STEPGRAPH_OK)
        return status;
    if (worst != 0)
        return weigh(loop, lane, differ, touched, result);
    if (!seen)
        status = look_for_changes(loop, &changes);
    if (!seen && status == STEPGRAPH_OK)
        status = plant(loop, lane, changes, &innocent, &seen);
    lane->planted = seen;
    result->verdict = seen ? STEPGRAPH_IDENTICAL : STEPGRAPH_UNPROVEN;
    if (innocent)
        return status;
    snprintf(result->words, sizeof result->words, "no difference was seen, nor was a planted fault: %s",
             choose(lane, 0) == NULL ? "the graph uses no STATE pin"
             : changes               ? "nothing that is compared depends on the states"
                                     : "no STATE and no OUTPUT changes, so there was nothing to compare: pin what the step computes, and commit what it writes elsewhere");
    used = strlen(result->words);
    if (!has_passed(lane))
        blame_scratch(loop, lane, result->words + used, sizeof result->words - used);
    return status;
}

/* A checked step went well enough. */
static void passed(stepgraph_loop *loop, sg__lane *lane)
{
    if (lane->phase != SG__PHASE_CHECK)
        lane->until_check = loop->config.check_every;
    else if (--lane->checks_left == 0)
        sg__lane_proven(loop, lane);
}

/* The worst result of all ranks. */
static stepgraph_status agree_result(stepgraph_loop *loop, sg__result *result)
{
    static const struct {
        stepgraph_check_verdict verdict;
        bool unlike;
    } by_severity[] = {{STEPGRAPH_IDENTICAL, false}, {STEPGRAPH_INCONCLUSIVE, false}, {STEPGRAPH_INCONCLUSIVE, true}, {STEPGRAPH_UNPROVEN, false},
                       {STEPGRAPH_DIVERGED, false}};
    uint32_t mine = 0, worst;
    stepgraph_status status;

    result->unlike = result->unlike && result->verdict == STEPGRAPH_INCONCLUSIVE;
    while (by_severity[mine].verdict != result->verdict || by_severity[mine].unlike != result->unlike)
        mine++;
    status = sg__loop_agree(loop, SG__ASK_VERDICT, mine, &worst);
    if (status == STEPGRAPH_OK) {
        result->verdict = by_severity[worst].verdict;
        result->unlike = by_severity[worst].unlike;
    }
    return status;
}

/* Replays diverge. Those since the last check may have done so, too: the host must know how far to go back. */
static void diverged(stepgraph_loop *loop, sg__lane *lane, const sg__result *result)
{
    const char *words = result->words;
    uint64_t since = lane->replays - lane->right_replays;
    char told[512], right[64] = "no check before found every byte the same";

    if (lane->right_at != UINT64_MAX)
        snprintf(right, sizeof right, "all was right at step %llu", (unsigned long long)lane->right_at);
    if ((lane->phase == SG__PHASE_REPLAY || lane->relax_tried) && since > 0) /* A relaxed graph has gone back to its recording before. */
        snprintf(told, sizeof told,
                 "%.330s; %s, and %llu replay%s since then may have been wrong: go back to a checkpoint from before", words,
                 right, (unsigned long long)since, since > 1 ? "s" : "");
    else
        snprintf(told, sizeof told, "%s", words);
    if (sg__lane_unrelax(loop, lane, true, told))
        return;
    if (in_question(lane) || (lane->suspected && result->outside)) { /* So it is used, and the cause is known. */
        char cause[512];
        snprintf(cause, sizeof cause, "%.230s; this was in doubt, and it is used: %.230s", told, lane->doubt_words);
        sg__lane_move_down(loop, lane, (stepgraph_why)lane->doubt_why, cause);
        return;
    }
    sg__lane_stays_fresh(loop, lane, STEPGRAPH_WHY_DIVERGED, told);
}

static void judge(stepgraph_loop *loop, sg__lane *lane, const sg__result *result)
{
    const char *words = result->words;

    loop->stats.checks++;
    lane->put_off = 0;
    lane->unlike = result->unlike ? lane->unlike + 1 : 0;
    switch (result->verdict) {
    case STEPGRAPH_IDENTICAL:
        loop->stats.checks_identical++;
        lane->right_at = loop->k;
        lane->right_replays = lane->replays;
        passed(loop, lane);
        return;
    case STEPGRAPH_INCONCLUSIVE:
        loop->stats.checks_inconclusive++;
        sg__log(loop->session, STEPGRAPH_LOG_WARNING, "loop '%s', key %llu: %s; %s", loop->name, (unsigned long long)lane->key, words,
                result->unlike ? "replays do not differ like that among themselves, though elsewhere they do: the next step is checked too"
                               : "but so do replays among themselves");
        if (!result->unlike)
            passed(loop, lane);
        else if (lane->phase != SG__PHASE_CHECK)
            lane->until_check = 0;
        return;
    case STEPGRAPH_UNPROVEN:
        loop->stats.checks_unproven++;
        if (lane->suspected)
            sg__lane_move_down(loop, lane, (stepgraph_why)lane->doubt_why, lane->doubt_words);
        else if ((loop->config.flags & STEPGRAPH_LOOP_ALLOW_UNPROVEN) != 0)
            passed(loop, lane);
        else
            sg__lane_move_down(loop, lane, STEPGRAPH_WHY_UNPROVEN, words);
        return;
    case STEPGRAPH_DIVERGED:
        loop->stats.checks_diverged++;
        diverged(loop, lane, result);
        return;
    }
}

/* Page-locked memory that the graph may use has changed while the host launched the step: by the step, and then a replay would change it once more,
 * or by another thread of the host's, which does not do so each time. */
static void put_off(stepgraph_loop *loop, sg__lane *lane, uint64_t changed)
{
    char why[128] = SG__ANOTHER_RANK, words[512] = SG__ANOTHER_RANK;

    if (changed != 0)
        snprintf(why, sizeof why, "page-locked memory at 0x%llx has changed meanwhile", (unsigned long long)changed);
    loop->stats.checks_failed++;
    sg__log(loop->session, STEPGRAPH_LOG_INFO, "loop '%s', key %llu, step %llu: the check is put off: %s", loop->name, (unsigned long long)lane->key,
            (unsigned long long)loop->k, why);
    if (lane->phase != SG__PHASE_CHECK) {
        lane->until_check = loop->config.check_every;
        return;
    }
    if (++lane->put_off < PUT_OFF_MAX)
        return;
    if (changed != 0)
        snprintf(words, sizeof words, "%.250s; and page-locked memory at 0x%llx changes in each step, so it is used, and a check, which does the step "
                 "twice, could not put it back", lane->doubt_words, (unsigned long long)changed);
    sg__lane_move_down(loop, lane, (stepgraph_why)lane->doubt_why, words);
}

/* Everything as the launches left it. */
static stepgraph_status go_on(stepgraph_loop *loop, bool away)
{
    stepgraph_status status = STEPGRAPH_OK;

    if (away)
        status = sg__shot_restore(&loop->shots, loop->after, loop->inputs_changed ? SG__ALL : SG__WRITTEN);
    if (away && status == STEPGRAPH_OK)
        status = sg__guards_copy(loop, SG__AFTER, true);
    return status == STEPGRAPH_OK ? sg__session_wait(loop->session) : status;
}

/* Into the session's context, when the step is over: what the host has launched elsewhere is part of it, and would be missed where it comes late. */
static stepgraph_status enter_after_step(stepgraph_session *session)
{
    stepgraph_status status = sg__enter(session);

    if (status != STEPGRAPH_OK)
        return status;
    status = sg__session_wait_all(session);
    if (status != STEPGRAPH_OK)
        sg__leave(session);
    return status;
}

stepgraph_status sg__loop_check_end(stepgraph_loop *loop, sg__lane *lane)
{
    sg__result result = {.verdict = STEPGRAPH_IDENTICAL, .words = SG__ANOTHER_RANK};
    stepgraph_status status = enter_after_step(loop->session), back;
    stepgraph_error_info why;
    uint32_t against = 0;
    uint64_t changed = 0;
    bool checked, away = false;

    if (status != STEPGRAPH_OK && (status == STEPGRAPH_ERR_LOST || loop->config.agree != NULL))
        return status;
    if (status != STEPGRAPH_OK) { /* The step is done, and the next one will be checked. */
        loop->stats.checks_failed++;
        sg__loop_forget(loop);
        (void)sg__log_failure(loop->session, status);
        return STEPGRAPH_OK;
    }
    status = sg__guards_settle(loop, lane, &changed);
    if (status == STEPGRAPH_OK && lane->suspected)
        status = sg__loop_agree(loop, SG__ASK_CHANGED, changed != 0 ? 1 : 0, &against);
    checked = status == STEPGRAPH_OK && against == 0;
    if (checked)
        status = hold_against(loop, lane, &result, &away);
    if (checked && status == STEPGRAPH_OK)
        status = agree_result(loop, &result);
    sg__error_get(&why);
    back = sg__session_alive(loop->session);
    if (back == STEPGRAPH_OK)
        back = go_on(loop, away);
    if (back != STEPGRAPH_OK && back != STEPGRAPH_ERR_LOST) /* The step is done, and what it left must not stay away for a call that fails once. */
        back = go_on(loop, away);
    sg__loop_forget(loop);
    sg__leave(loop->session);
    if (back == STEPGRAPH_ERR_LOST && status == STEPGRAPH_ERR_LOST) {
        loop->stats.checks++;
        loop->stats.checks_diverged++;
        sg__lane_stays_fresh(loop, lane, STEPGRAPH_WHY_DIVERGED, why.message);
        return sg__error_set(&why);
    }
    if (back != STEPGRAPH_OK)
        return away ? sg__loop_not_undone(loop, back) : back;
    /* Other ranks have replayed; this one can no longer follow. */
    if (status == STEPGRAPH_ERR_LOST || status == STEPGRAPH_ERR_STATE || (status != STEPGRAPH_OK && loop->config.agree != NULL))
        return sg__error_set(&why);
    if (status == STEPGRAPH_OK) {
        if (checked)
            judge(loop, lane, &result);
        else
            put_off(loop, lane, changed);
        return STEPGRAPH_OK;
    }
    /* The replay was refused or failed; the host's launches have done the step. */
    loop->stats.checks_failed++;
    sg__lane_failed(loop, lane, STEPGRAPH_WHY_REPLAY, why.message);
    return STEPGRAPH_OK;
}

/* ---- by callbacks ------------------------------------------------------------------------------------------------ */

stepgraph_status sg__loop_check_run(stepgraph_loop *loop, sg__lane *lane, uint64_t k)
{
    stepgraph_check_summary summary = STEPGRAPH_CHECK_SUMMARY_INIT;
    stepgraph_check_config config = loop->check;
    stepgraph_check_pin first = STEPGRAPH_CHECK_PIN_INIT;
    stepgraph_check *check = NULL;
    stepgraph_status status;
    sg__result result = {0};

    config.size = sizeof config;
    config.first = k;
    config.audit = lane->audit;
    config.flags &= ~(uint32_t)STEPGRAPH_CHECK_ADVANCE;
    loop->calling = true;
    status = stepgraph_check_run(lane->step, &config, &check);
    loop->calling = false;
    if (status == STEPGRAPH_ERR_MEMORY || status == STEPGRAPH_ERR_REFUSED) {
        cannot(loop, lane, NULL);
        return STEPGRAPH_OK;
    }
    if (status != STEPGRAPH_OK)
        return status;
    stepgraph_check_destroy(lane->check);
    lane->check = check;
    (void)stepgraph_check_get_summary(check, &summary);
    result.verdict = (stepgraph_check_verdict)summary.verdict;
    snprintf(result.words, sizeof result.words, "%s",
             summary.cause[0] != '\0'                                    ? summary.cause
             : stepgraph_check_get_pin(check, 0, &first) == STEPGRAPH_OK ? first.text
                                                                         : stepgraph_check_verdict_name(summary.verdict));
    lane->checks_left = 1;
    judge(loop, lane, &result);
    return sg__session_alive(loop->session);
}
