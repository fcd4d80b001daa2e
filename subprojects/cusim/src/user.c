/* User objects: destructors that run once the graphs, executable graphs and launches that hold them are gone. */
#include "core.h"

struct CUuserObject_st {
    void *data;
    CUhostFn destroy;
    unsigned long refs;
    CUuserObject next; /* Due. */
};

static CUuserObject due;

static void object_put(CUuserObject o, unsigned count)
{
    o->refs -= count;
    if (o->refs > 0)
        return;
    cs_handle_remove(o);
    o->next = due;
    __atomic_store_n(&due, o, __ATOMIC_RELEASE);
}

/* Without the lock, and like a host function: no CUDA inside. */
void cs_users_run_due(void)
{
    CUuserObject list;

    if (!__atomic_load_n(&due, __ATOMIC_ACQUIRE))
        return;
    pthread_mutex_lock(&cs.lock);
    list = due;
    __atomic_store_n(&due, NULL, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&cs.lock);
    while (list) {
        CUuserObject o = list;
        list = o->next;
        cs_me.in_callback = true;
        o->destroy(o->data);
        cs_me.in_callback = false;
        free(o);
    }
}

struct cs_user_ref *cs_users_copy(const struct cs_user_ref *users)
{
    struct cs_user_ref *copy = NULL;

    for (; users; users = users->next) {
        struct cs_user_ref *r = cs_alloc_bytes(sizeof *r);
        *r = *users;
        r->object->refs += r->count;
        r->next = copy;
        copy = r;
    }
    return copy;
}

void cs_users_put(struct cs_user_ref *users)
{
    while (users) {
        struct cs_user_ref *next = users->next;
        object_put(users->object, users->count);
        free(users);
        users = next;
    }
}

CUresult cuUserObjectCreate(CUuserObject *out, void *data, CUhostFn destroy, unsigned refs, unsigned flags)
{
    ENTER(cuUserObjectCreate);
    if (!out || !destroy || refs == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    CUuserObject o = cs_alloc_bytes(sizeof *o);
    o->data = data;
    o->destroy = destroy;
    o->refs = refs;
    cs_handle_add(o, CS_USER);
    *out = o;
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject o, unsigned count)
{
    ENTER(cuUserObjectRetain);
    if (!cs_is(o, CS_USER) || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    o->refs += count;
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject o, unsigned count)
{
    ENTER(cuUserObjectRelease);
    if (!cs_is(o, CS_USER) || count == 0 || count > o->refs)
        return CUDA_ERROR_INVALID_VALUE;
    object_put(o, count);
    return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph g, CUuserObject o, unsigned count, unsigned flags)
{
    struct cs_user_ref *r;

    ENTER(cuGraphRetainUserObject);
    if (!cs_is(g, CS_GRAPH) || !cs_is(o, CS_USER) || count == 0 || (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE))
        return CUDA_ERROR_INVALID_VALUE;
    for (r = g->users; r && r->object != o; r = r->next)
        ;
    if (!r) {
        r = cs_alloc_bytes(sizeof *r);
        r->object = o;
        r->next = g->users;
        g->users = r;
    }
    r->count += count;
    if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
        o->refs += count;
    return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph g, CUuserObject o, unsigned count)
{
    ENTER(cuGraphReleaseUserObject);
    if (!cs_is(g, CS_GRAPH) || !cs_is(o, CS_USER) || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct cs_user_ref **p = &g->users; *p; p = &(*p)->next) {
        struct cs_user_ref *r = *p;

        if (r->object != o || r->count < count)
            continue;
        r->count -= count;
        if (r->count == 0) {
            *p = r->next;
            free(r);
        }
        object_put(o, count);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}
