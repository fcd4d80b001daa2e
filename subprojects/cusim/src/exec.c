/*
 * Executable graphs. Each holds a copy of its graph, so that nothing done to the graph later reaches it, and makes from the copy
 * a program: a flat list in order, which the launches in flight share. A change of parameters makes a new program if one is in
 * use.
 */
#include "core.h"

/* ---- programs ------------------------------------------------------------------------------------------------------ */

static void program_put(struct cs_program *p)
{
    if (!p || --p->refs > 0)
        return;
    for (size_t i = 0; i < p->count; i++)
        cs_work_release(&p->steps[i].work);
    cs_accesses_put(p->accesses);
    free(p->steps);
    free(p->memory);
    free(p);
}

static void step_fill(struct cs_step *step, const CUgraphNode n)
{
    struct cs_work *w = &step->work;

    step->index = n->index;
    step->run = NULL;
    step->staged = step->summed = false;
    if (n->disabled) {
        *w = (struct cs_work){.type = CU_GRAPH_NODE_TYPE_EMPTY};
        return;
    }
    cs_work_copy(w, &n->work, true);
    if (w->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        step->run = w->kernel.entry->body->run;
        memcpy(step->grid.grid, w->kernel.grid, sizeof step->grid.grid);
        memcpy(step->grid.block, w->kernel.block, sizeof step->grid.block);
        step->grid.params = w->kernel.args ? w->kernel.args->pointers : NULL;
    }
}

static void memory_use(struct cs_program *p, size_t *room, struct cs_alloc *a, bool frees)
{
    for (size_t i = 0; i < p->num_memory; i++)
        if (p->memory[i].memory == a) {
            p->memory[i].frees += frees;
            p->memory[i].allocs += !frees;
            return;
        }
    p->memory = cs_grow(p->memory, room, p->num_memory + 1, sizeof *p->memory);
    p->memory[p->num_memory++] = (struct cs_graph_use){a, !frees, frees};
}

/* The parts of a program that depend on more than one step. */
static void program_survey(struct cs_program *p)
{
    size_t room = 0;

    free(p->memory);
    p->memory = NULL;
    p->num_memory = p->num_events = p->num_staged = 0;
    p->waits_for_host = false;
    p->checked = 0;
    for (size_t i = 0; i < p->count; i++) {
        struct cs_work *w = &p->steps[i].work;

        switch (w->type) {
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            p->steps[i].staged = cs_copy_pageable_src(&w->copy);
            if (p->steps[i].staged) {
                p->steps[i].slot = p->num_staged++;
                p->waits_for_host |= w->copy.p.WidthInBytes * w->copy.p.Height * w->copy.p.Depth >= (16u << 20);
            }
            p->waits_for_host |= cs_copy_pageable_dst(&w->copy);
            break;
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            p->steps[i].slot = p->num_events++;
            break;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            memory_use(p, &room, w->alloc.memory, false);
            break;
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            memory_use(p, &room, w->free, true);
            break;
        default:
            break;
        }
    }
}

static size_t count_steps(CUgraph g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->count; i++) {
        CUgraph *inside;
        size_t count = cs_work_graphs(&g->nodes[i]->work, &inside);

        n += 2; /* The most that a body of a conditional has around it, and the assignment before it. */
        for (size_t k = 0; k < count; k++)
            n += count_steps(inside[k]) + 2;
    }
    return n;
}

static void branch(struct cs_program *p, CUgraphNode n, enum cs_test test, unsigned operand, size_t to)
{
    struct cs_step *step = &p->steps[p->count++];

    step->index = n->index;
    step->work = (struct cs_work){.type = CS_WORK_BRANCH};
    step->work.branch.handle = n->work.conditional.handle;
    step->work.branch.test = test;
    step->work.branch.operand = operand;
    step->work.branch.to = to;
}

/* Conditionals get their initial values when the launch begins, those inside others as well. */
static void assign(struct cs_program *p, CUgraph g)
{
    for (size_t i = 0; i < g->count; i++) {
        CUgraph *inside;
        size_t n = cs_work_graphs(&g->nodes[i]->work, &inside);

        if (g->nodes[i]->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && g->nodes[i]->work.conditional.handle->assign)
            branch(p, g->nodes[i], CS_ASSIGN, 0, 0);
        for (size_t k = 0; k < n; k++)
            assign(p, inside[k]);
    }
}

static void append(struct cs_program *p, CUgraph g);

static void append_conditional(struct cs_program *p, CUgraphNode n)
{
    size_t begin = p->count;

    for (unsigned i = 0; i < n->work.conditional.size; i++) {
        size_t at = p->count;
        enum cs_test test = n->work.conditional.type == CS_COND_SWITCH ? CS_TEST_EQUAL : i ? CS_TEST_FALSE : CS_TEST_TRUE;

        branch(p, n, test, i, 0);
        append(p, n->work.conditional.bodies[i]);
        /* Back to the test, or behind the last body, whose place is not known yet. */
        branch(p, n, CS_TEST_NEVER, 0, n->work.conditional.type == CS_COND_WHILE ? at : SIZE_MAX);
        p->steps[at].work.branch.to = p->count;
    }
    for (size_t i = begin; i < p->count; i++)
        if (p->steps[i].work.type == CS_WORK_BRANCH && p->steps[i].work.branch.to == SIZE_MAX)
            p->steps[i].work.branch.to = p->count;
}

static void append(struct cs_program *p, CUgraph g)
{
    CUgraphNode cycle, *order = cs_graph_order(g, cs.seed != 0, &cycle);

    for (size_t i = 0; i < g->count; i++) {
        if (order[i]->work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
            append(p, order[i]->work.child);
            continue;
        }
        if (order[i]->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
            append_conditional(p, order[i]);
            continue;
        }
        order[i]->mark = p->count;
        step_fill(&p->steps[p->count++], order[i]);
    }
    free(order);
}

static void program_make(CUgraphExec x)
{
    struct cs_program *p = cs_alloc_bytes(sizeof *p);

    if (cs.check != CS_CHECK_OFF)
        cs_check_graph(x->graph);
    p->refs = 1;
    p->steps = cs_alloc_bytes(count_steps(x->graph) * sizeof *p->steps);
    assign(p, x->graph);
    append(p, x->graph);
    program_survey(p);
    x->program = p;
}

/* In place if no launch uses the program; nothing else remembers a step's place. */
void cs_program_refresh(CUgraphExec x, CUgraphNode n)
{
    struct cs_program *p = x->program;

    if (!p)
        return;
    if (n && p->refs == 1 && n->graph == x->graph) {
        struct cs_step *step = &p->steps[n->mark];
        bool simple = step->work.type == CU_GRAPH_NODE_TYPE_KERNEL || step->work.type == CU_GRAPH_NODE_TYPE_EMPTY;

        cs_work_release(&step->work);
        step_fill(step, n);
        cs_accesses_put(p->accesses);
        p->accesses = NULL;
        if (!simple || n->work.type != CU_GRAPH_NODE_TYPE_KERNEL)
            program_survey(p);
        return;
    }
    program_put(p);
    x->program = NULL;
}

/* ---- making and destroying ----------------------------------------------------------------------------------------- */

void cs_exec_put(CUgraphExec x)
{
    if (!x->dead || x->launches > 0)
        return;
    if (cs_is(x->source, CS_GRAPH) && x->source->id == x->source_id)
        x->source->executables--;
    program_put(x->program);
    cs_graph_free(x->graph);
    cs_users_put(x->users);
    cs_fence_put(x->last);
    free(x);
}

/* A memset node with a bad target is refused; so is a copy node, with which a card may crash here. What is only reserved may be
 * mapped later. */
static CUresult targets(CUgraph g, CUgraphNode *bad)
{
    for (size_t i = 0; i < g->count; i++) {
        struct cs_work *w = &g->nodes[i]->work;
        CUresult r = CUDA_SUCCESS;
        CUgraph *inside;
        size_t n = cs_work_graphs(w, &inside);

        for (size_t k = 0; k < n && !r; k++)
            r = targets(inside[k], bad);
        if (w->type == CU_GRAPH_NODE_TYPE_MEMSET)
            r = cs_set_check(&w->set.p, true);
        else if (w->type == CU_GRAPH_NODE_TYPE_MEMCPY && !cs_find_reservation(cs_copy_src(&w->copy.p)) &&
                 !cs_find_reservation(cs_copy_dst(&w->copy.p)) && (r = cs_copy_check(&w->copy.p, true)) != CUDA_SUCCESS) {
            char what[200];
            cs_say("instantiate: node %zu, %s, names memory that is gone; a card may crash here", i,
                   cs_describe(w, what, sizeof what));
        }
        if (r) {
            if (!*bad)
                *bad = g->nodes[i];
            return r;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult ordered(CUgraph g, CUgraphNode *bad)
{
    CUgraphNode *order = cs_graph_order(g, false, bad);

    free(order);
    if (!order)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < g->count; i++) {
        CUgraph *inside;
        size_t n = cs_work_graphs(&g->nodes[i]->work, &inside);
        for (size_t k = 0; k < n; k++)
            if (ordered(inside[k], bad))
                return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult exec_make(CUgraph g, unsigned long long flags, CUgraphExec *out, CUgraphNode *error, CUgraphInstantiateResult *result)
{
    CUresult r;

    *error = NULL;
    *result = CUDA_GRAPH_INSTANTIATE_ERROR;
    if (!out || !cs_is(g, CS_GRAPH) || (flags & ~15ull) ||
        ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) && (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)))
        return CUDA_ERROR_INVALID_VALUE;
    if (cs_graph_has_memory(g) && g->executables > 0) {
        *result = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if ((r = ordered(g, error)) != CUDA_SUCCESS) {
        *result = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
        return r;
    }
    if ((r = targets(g, error)) != CUDA_SUCCESS)
        return r;
    CUgraphExec x = cs_alloc_bytes(sizeof *x);
    x->graph = cs_graph_copy(g, true);
    x->ctx = cs_current();
    x->flags = flags;
    x->source = g;
    x->source_id = g->id;
    x->users = x->graph->users;
    x->graph->users = NULL;
    if (cs.exec_delays > 0) {
        x->delay_ns = cs.exec_delays_ns[0];
        memmove(cs.exec_delays_ns, cs.exec_delays_ns + 1, --cs.exec_delays * sizeof *cs.exec_delays_ns);
    }
    g->executables++;
    cs_handle_add(x, CS_EXEC);
    *out = x;
    *result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return CUDA_SUCCESS;
}

static CUresult old_form(CUgraphExec *out, CUgraph g, CUgraphNode *error, char *log, size_t room)
{
    CUgraphInstantiateResult result;
    CUgraphNode bad;
    CUresult r = exec_make(g, 0, out, &bad, &result);

    if (error)
        *error = bad;
    if (log && room)
        snprintf(log, room, "%s", r ? "not instantiated" : "");
    return r;
}

CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph g, CUgraphNode *error, char *log, size_t room)
{
    ENTER(cuGraphInstantiate);
    return old_form(out, g, error, log, room);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph g, CUgraphNode *error, char *log, size_t room)
{
    ENTER(cuGraphInstantiate_v2);
    return old_form(out, g, error, log, room);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
    CUgraphInstantiateResult result;
    CUgraphNode bad;

    ENTER(cuGraphInstantiateWithFlags);
    /* Uploading needs a stream, which only the other form has. */
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
        return CUDA_ERROR_INVALID_VALUE;
    return exec_make(g, flags, out, &bad, &result);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    CUresult r;

    ENTER(cuGraphInstantiateWithParams);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) {
        CUstream s;
        if ((r = cs_stream(p->hUploadStream, &s)) != CUDA_SUCCESS)
            return r;
        if (s->capture)
            return cs_never(s);
    }
    return exec_make(g, p->flags, out, &p->hErrNode_out, &p->result_out);
}

CUresult cuGraphExecGetFlags(CUgraphExec x, cuuint64_t *flags)
{
    ENTER(cuGraphExecGetFlags);
    if (!cs_is(x, CS_EXEC) || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = x->flags;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec x)
{
    ENTER(cuGraphExecDestroy);
    if (!cs_is(x, CS_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    cs_handle_remove(x);
    x->dead = true;
    cs_exec_put(x);
    return CUDA_SUCCESS;
}

/* ---- launching ----------------------------------------------------------------------------------------------------- */

/* Other backing under the same addresses is not another owner. */
static bool gone(uint64_t noted, CUdeviceptr address)
{
    struct cs_alloc *a = cs_find(address, 1);

    return noted != 0 && (!a || (a->id != noted && a->kind != CS_MEM_VMM));
}

/* A copy with a host side crashes a card when either operand was freed; here it fails, with words. CS strict: every copy and set.
 */
static CUresult check_operands(struct cs_program *p)
{
    if (p->checked == cs_free_epoch)
        return CUDA_SUCCESS;
    for (size_t i = 0; i < p->count; i++) {
        struct cs_work *w = &p->steps[i].work;
        CUdeviceptr bad = 0;
        unsigned argument = 0;
        char what[200], where[300];

        if (w->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
            const CUDA_MEMCPY3D *c = &w->copy.p;
            bool host = c->srcMemoryType == CU_MEMORYTYPE_HOST || c->dstMemoryType == CU_MEMORYTYPE_HOST || w->copy.src_id == 0 ||
                        w->copy.dst_id == 0;
            if (!host && !cs.strict)
                continue;
            if (gone(w->copy.src_id, cs_copy_src(c)))
                bad = cs_copy_src(c);
            else if (gone(w->copy.dst_id, cs_copy_dst(c)))
                bad = cs_copy_dst(c);
        } else if (w->type == CU_GRAPH_NODE_TYPE_MEMSET && cs.strict && gone(w->set.dst_id, w->set.p.dst)) {
            bad = w->set.p.dst;
        } else if (w->type == CU_GRAPH_NODE_TYPE_KERNEL && cs.strict) {
            bad = cs_check_stale(w, &argument);
        }
        if (bad) {
            void (*say)(const char *, ...) = cs.check == CS_CHECK_OFF ? cs_say : cs_finding;
            cs_describe(w, what, sizeof what);
            if (w->type == CU_GRAPH_NODE_TYPE_KERNEL)
                snprintf(what + strlen(what), sizeof what - strlen(what), ", argument %u", argument);
            say("cuGraphLaunch: node %zu, %s: 0x%llx was freed since (%s); a card would crash or use its new owner's bytes; the "
                "context is in error 700 from now on",
                p->steps[i].index, what, bad, cs_where(bad, where, sizeof where));
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
    }
    p->checked = cs_free_epoch;
    return CUDA_SUCCESS;
}

static CUresult memory_check(CUgraphExec x, const struct cs_program *p)
{
    for (size_t i = 0; i < p->num_memory; i++) {
        const struct cs_graph_use *u = &p->memory[i];
        bool lives = u->memory->visible;

        if (u->allocs > u->frees && lives && !(x->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
            return CUDA_ERROR_INVALID_VALUE;
        if (u->allocs < u->frees && !lives)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static void memory_begin(const struct cs_program *p)
{
    for (size_t i = 0; i < p->num_memory; i++) {
        const struct cs_graph_use *u = &p->memory[i];

        u->memory->launches++;
        if (u->allocs) {
            u->memory->freed_in = NULL;
            cs_graph_alloc_live(u->memory, true);
            if (u->allocs > u->frees)
                cs_alloc_show(u->memory);
        } else {
            cs_alloc_hide(u->memory);
        }
    }
}

static void memory_end(const struct cs_program *p)
{
    for (size_t i = 0; i < p->num_memory; i++) {
        const struct cs_graph_use *u = &p->memory[i];

        u->memory->launches--;
        if (u->frees && u->memory->launches == 0 && !u->memory->visible)
            cs_graph_alloc_live(u->memory, false);
    }
}

/* What has to be fixed at the call: which record an event wait means, and the bytes of pageable sources. */
static void launch_prepare(struct cs_launch *l)
{
    struct cs_program *p = l->program;
    size_t events = 0, staged = 0;

    l->fences = p->num_events ? cs_alloc_bytes(p->num_events * sizeof *l->fences) : NULL;
    l->staged = p->num_staged ? cs_alloc_bytes(p->num_staged * sizeof *l->staged) : NULL;
    for (size_t i = 0; (p->num_events || p->num_staged) && i < p->count; i++) {
        struct cs_work *w = &p->steps[i].work;

        if (w->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
            l->fences[events] = cs_fence_new();
            cs_fence_put(w->event->fence);
            w->event->fence = cs_fence_get(l->fences[events++]);
            w->event->capture = 0;
        } else if (w->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
            l->fences[events++] = cs_fence_get(w->event->fence);
        } else if (p->steps[i].staged) {
            l->staged[staged] = w->copy;
            cs_copy_stage(&l->staged[staged++]);
        }
    }
}

static void run_staged(const struct cs_copy *copy)
{
    struct cs_work w = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};

    w.copy = *copy;
    cs_run(&w);
}

/* Where the program goes on after a step of a conditional node. */
static size_t branch_from(size_t at, const struct cs_work *w)
{
    struct cs_conditional *c = w->branch.handle;
    unsigned value = __atomic_load_n(&c->value, __ATOMIC_RELAXED);

    switch (w->branch.test) {
    case CS_ASSIGN:
        __atomic_store_n(&c->value, c->initial, __ATOMIC_RELAXED);
        return at + 1;
    case CS_TEST_TRUE:
        return value ? at + 1 : w->branch.to;
    case CS_TEST_FALSE:
        return value ? w->branch.to : at + 1;
    case CS_TEST_EQUAL:
        return value == w->branch.operand ? at + 1 : w->branch.to;
    case CS_TEST_NEVER:
        break;
    }
    return w->branch.to;
}

/* Checks: a graph's memory is out of bounds before its node and after its free. */
static void step_memory(struct cs_alloc *a, bool opens)
{
    if (cs.check == CS_CHECK_OFF)
        return;
    pthread_mutex_lock(&cs.lock);
    if (opens) {
        cs_alloc_open(a);
    } else {
        cs_check_bytes(a, NULL);
        cs_alloc_close(a);
    }
    pthread_mutex_unlock(&cs.lock);
}

static void walk(void *data)
{
    struct cs_launch *l = data;
    struct cs_program *p = l->program;
    bool plain = cs.check == CS_CHECK_OFF && !cs.seed;

    for (size_t i = 0; i < p->count;) {
        struct cs_step *step = &p->steps[i];

        cs_me.now = &step->work;
        if (step->run && plain) {
            step->run(&step->grid);
            i++;
            continue;
        }
        if (!plain && cs.seed)
            cs_turn_between();
        switch (step->work.type) {
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            pthread_mutex_lock(&cs.lock);
            cs_fence_signal(l->fences[step->slot]);
            pthread_mutex_unlock(&cs.lock);
            break;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            cs_turn_pause();
            pthread_mutex_lock(&cs.lock);
            cs_fence_wait(l->fences[step->slot]);
            pthread_mutex_unlock(&cs.lock);
            cs_turn_resume();
            break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            if (step->summed && l->sums)
                cs_check_source(&step->work.copy, l->sums[step->slot]);
            if (step->staged)
                run_staged(&l->staged[step->slot]);
            else
                cs_run(&step->work);
            break;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            step_memory(step->work.alloc.memory, true);
            break;
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            step_memory(step->work.free, false);
            break;
        case CS_WORK_BRANCH:
            i = __atomic_load_n(&cs.exiting, __ATOMIC_RELAXED) ? p->count : branch_from(i, &step->work);
            continue;
        default:
            cs_run(&step->work);
            break;
        }
        i++;
    }
}

void cs_launch_run(struct cs_launch *l)
{
    if (l->exec->delay_ns)
        cs_delay(l->exec->delay_ns);
    if (cs_run_guarded(walk, l))
        return;
    pthread_mutex_lock(&cs.lock);
    cs_context_fault(l->exec->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
    pthread_mutex_unlock(&cs.lock);
}

void cs_launch_finish(struct cs_launch *l)
{
    struct cs_program *p = l->program;

    for (size_t i = 0; i < p->num_events; i++) {
        /* Records that a fault left out. */
        if (l->fences[i] && !l->fences[i]->done)
            cs_fence_signal(l->fences[i]);
        cs_fence_put(l->fences[i]);
    }
    for (size_t i = 0; i < p->num_staged; i++)
        free(l->staged[i].staged);
    memory_end(p);
    program_put(p);
    l->exec->launches--;
    cs_exec_put(l->exec);
    free(l->fences);
    free(l->staged);
    free(l->sums);
    free(l);
}

static CUresult target_stream(CUgraphExec x, CUstream handle, CUstream *out)
{
    CUresult r;

    if (!cs_is(x, CS_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    if ((r = cs_stream(handle, out)) != CUDA_SUCCESS)
        return r;
    return (*out)->capture ? cs_never(*out) : CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec x, CUstream handle)
{
    struct cs_work w = {.type = CS_WORK_GRAPH};
    struct cs_fence *done;
    CUstream s;
    CUresult r;

    ENTER(cuGraphLaunch);
    if ((r = target_stream(x, handle, &s)) != CUDA_SUCCESS)
        return r;
    if (s->legacy && (r = cs_legacy(s->ctx)) != CUDA_SUCCESS)
        return r;
    if (!x->program)
        program_make(x);
    if ((r = memory_check(x, x->program)) != CUDA_SUCCESS)
        return r;
    if ((r = check_operands(x->program)) != CUDA_SUCCESS) {
        cs_context_fault(s->ctx, r);
        return r;
    }
    struct cs_launch *l = cs_alloc_bytes(sizeof *l);
    l->exec = x;
    l->program = x->program;
    l->program->refs++;
    x->launches++;
    memory_begin(l->program);
    launch_prepare(l);
    w.launch = l;
    bool blocks = l->program->waits_for_host;
    CUcontext ctx = s->ctx;
    cs_enqueue(s, &w, x->last, &done);
    cs_fence_put(x->last);
    x->last = cs_fence_get(done);
    if (blocks) {
        cs_fence_wait(done);
        r = cs_is(ctx, CS_CONTEXT) ? ctx->fault : CUDA_SUCCESS;
    }
    cs_fence_put(done);
    return r;
}

CUresult cuGraphUpload(CUgraphExec x, CUstream handle)
{
    CUstream s;
    CUresult r;

    ENTER(cuGraphUpload);
    if ((r = target_stream(x, handle, &s)) != CUDA_SUCCESS)
        return r;
    if (!x->program)
        program_make(x);
    return CUDA_SUCCESS;
}
