/* Running work on a worker thread, and catching it when it touches memory that is not there. */
#include "core.h"

#include <sched.h>
#include <signal.h>

/* ---- faults -------------------------------------------------------------------------------------------------------- */

static struct sigaction before[2];

static void on_fault(int signal, siginfo_t *info, void *context)
{
    const struct sigaction *old = &before[signal == SIGBUS];

    if (cs_me.jump) {
        cs_me.fault_address = (uintptr_t)info->si_addr;
        siglongjmp(*cs_me.jump, 1);
    }
    /* Not ours: whoever was here before gets it. */
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(signal, info, context);
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(signal);
    } else {
        struct sigaction fall = {.sa_handler = SIG_DFL};
        sigaction(signal, &fall, NULL);
    }
}

void cs_guard_install(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

    action.sa_sigaction = on_fault;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
}

const char *cs_describe(const struct cs_work *w, char *text, size_t room)
{
    switch (w ? w->type : -1) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        snprintf(text, room, "kernel %s", w->kernel.entry->name);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        snprintf(text, room, "copy of %zu bytes from 0x%llx to 0x%llx",
                 w->copy.p.WidthInBytes * w->copy.p.Height * w->copy.p.Depth, cs_copy_src(&w->copy.p), cs_copy_dst(&w->copy.p));
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        snprintf(text, room, "memset of 0x%llx", w->set.p.dst);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        snprintf(text, room, "memory operation on 0x%llx", w->batch->ops[0].writeValue.address);
        break;
    case CS_WORK_FREE:
        snprintf(text, room, "free of 0x%llx", w->free->base);
        break;
    default:
        snprintf(text, room, "work");
    }
    return text;
}

bool cs_run_guarded(void (*fn)(void *data), void *data)
{
    sigjmp_buf here;
    char what[200], where[300], blame[80];
    CUdeviceptr address;

    if (sigsetjmp(here, 0) == 0) {
        cs_me.jump = &here;
        fn(data);
        cs_me.jump = NULL;
        return true;
    }
    cs_me.jump = NULL;
    address = (CUdeviceptr)cs_me.fault_address;
    pthread_mutex_lock(&cs.lock);
    cs_describe(cs_me.now, what, sizeof what);
    cs_where(address, where, sizeof where);
    cs_blame(cs_me.now, address, blame, sizeof blame);
    if (cs.check != CS_CHECK_OFF)
        cs_finding("%s touched 0x%llx%s, which is %s; the context is in error 700 from now on", what, address, blame, where);
    else
        cs_say("%s touched 0x%llx%s, which is %s; the context is in error 700 from now on", what, address, blame, where);
    pthread_mutex_unlock(&cs.lock);
    return false;
}

/* ---- the kinds of work --------------------------------------------------------------------------------------------- */

/* Few bytes, word by word where they are aligned: whoever watches a word sees it whole, and what was written before it. */
static bool put_words(void *to, const void *from, size_t bytes)
{
    uint32_t words[16];

    if (bytes > sizeof words || bytes % 4 != 0 || (uintptr_t)to % 4 != 0)
        return false;
    memcpy(words, from, bytes);
    for (size_t i = 0; i < bytes / 4; i++)
        __atomic_store_n((uint32_t *)to + i, words[i], __ATOMIC_RELEASE);
    return true;
}

static void run_copy(const CUDA_MEMCPY3D *p)
{
    const char *src = (const char *)(uintptr_t)cs_copy_src(p);
    char *dst = (char *)(uintptr_t)cs_copy_dst(p);
    size_t src_slice = p->srcPitch * p->srcHeight, dst_slice = p->dstPitch * p->dstHeight;

    for (size_t z = 0; z < p->Depth; z++)
        for (size_t y = 0; y < p->Height; y++)
            if (!put_words(dst + z * dst_slice + y * p->dstPitch, src + z * src_slice + y * p->srcPitch, p->WidthInBytes))
                memmove(dst + z * dst_slice + y * p->dstPitch, src + z * src_slice + y * p->srcPitch, p->WidthInBytes);
}

static void run_set(const CUDA_MEMSET_NODE_PARAMS *p)
{
    for (size_t y = 0; y < p->height; y++) {
        char *row = (char *)(uintptr_t)p->dst + y * p->pitch;

        if (p->elementSize == 1) {
            memset(row, (int)(p->value & 0xff), p->width);
        } else if (p->elementSize == 2) {
            uint16_t v = (uint16_t)p->value;
            for (size_t i = 0; i < p->width; i++)
                memcpy(row + 2 * i, &v, 2);
        } else {
            for (size_t i = 0; i < p->width; i++)
                if (p->width > 16 || !put_words(row + 4 * i, &p->value, 4))
                    memcpy(row + 4 * i, &p->value, 4);
        }
    }
}

static bool satisfied(cuuint64_t now, cuuint64_t value, unsigned flags, bool wide)
{
    switch (flags & 3) {
    case 0: /* GEQ, cyclic */
        return wide ? (int64_t)(now - value) >= 0 : (int32_t)(uint32_t)(now - value) >= 0;
    case 1:
        return now == value;
    case 2:
        return (now & value) != 0;
    default:
        return wide ? ~(now | value) != 0 : (uint32_t) ~(now | value) != 0;
    }
}

static void run_batch(const struct cs_batch *b)
{
    for (unsigned i = 0; i < b->count; i++) {
        CUdeviceptr at = b->ops[i].writeValue.address;
        cuuint64_t value = b->ops[i].writeValue.value64;
        unsigned flags = b->ops[i].writeValue.flags;

        switch (b->ops[i].operation) {
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            __atomic_store_n((uint32_t *)(uintptr_t)at, (uint32_t)value, __ATOMIC_RELEASE);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            __atomic_store_n((uint64_t *)(uintptr_t)at, value, __ATOMIC_RELEASE);
            break;
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            cs_turn_pause();
            while (!satisfied(__atomic_load_n((uint32_t *)(uintptr_t)at, __ATOMIC_ACQUIRE), (uint32_t)value, flags, false) &&
                   !__atomic_load_n(&cs.exiting, __ATOMIC_RELAXED))
                sched_yield();
            cs_turn_resume();
            break;
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            cs_turn_pause();
            while (!satisfied(__atomic_load_n((uint64_t *)(uintptr_t)at, __ATOMIC_ACQUIRE), value, flags, true) &&
                   !__atomic_load_n(&cs.exiting, __ATOMIC_RELAXED))
                sched_yield();
            cs_turn_resume();
            break;
        default:
            break;
        }
    }
}

/* The program's own code: a fault in it is the program's. */
static void run_callback(const struct cs_work *w)
{
    sigjmp_buf *jump = cs_me.jump;

    cs_me.jump = NULL;
    cs_turn_pause();
    cs_me.in_callback = true;
    if (w->type == CU_GRAPH_NODE_TYPE_HOST)
        w->host.fn(w->host.userData);
    else
        w->callback.fn(w->callback.stream, 0, w->callback.data);
    cs_me.in_callback = false;
    cs_turn_resume();
    cs_me.jump = jump;
}

void cs_run(const struct cs_work *w)
{
    cs_me.now = w;
    switch (w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        const struct cs_kernel *k = &w->kernel;
        struct cusim_grid grid = {
            {k->grid[0], k->grid[1], k->grid[2]}, {k->block[0], k->block[1], k->block[2]}, k->args ? k->args->pointers : NULL};
        if (cs.check != CS_CHECK_OFF)
            cs_check_arguments(w);
        k->entry->body->run(&grid);
        if (cs.check != CS_CHECK_OFF)
            cs_check_kernel(w);
        break;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        run_copy(&w->copy.p);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        run_set(&w->set.p);
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
    case CS_WORK_CALLBACK:
        run_callback(w);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        run_batch(w->batch);
        break;
    default:
        break;
    }
}
