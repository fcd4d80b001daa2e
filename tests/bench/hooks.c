/*
 * Preloaded into the benchmarks' short runs: counts allocations and locks that the library makes in a thread that asked for it.
 *
 * What the driver does for itself is not counted: its calls come from its own text, which is told by one address in it.
 */
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "hooks.h"

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void __libc_free(void *memory);

static uintptr_t driver_start, driver_end;
static _Thread_local bool on;
static _Thread_local struct bench_hook_counts counts;

static int find(struct dl_phdr_info *info, size_t size, void *wanted)
{
    uintptr_t address = *(const uintptr_t *)wanted;
    uintptr_t low = UINTPTR_MAX, high = 0;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, end = start + info->dlpi_phdr[i].p_memsz;
            low = start < low ? start : low;
            high = end > high ? end : high;
        }
    if (address < low || address >= high)
        return 0;
    driver_start = low;
    driver_end = high;
    return 1;
}

static bool counted(const void *caller)
{
    return on && ((uintptr_t)caller < driver_start || (uintptr_t)caller >= driver_end);
}

/* Looking it up allocates. */
static int (*real_lock(void))(pthread_mutex_t *)
{
    static int (*real)(pthread_mutex_t *);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    return real;
}

void bench_hooks_begin(void (*in_driver)(void))
{
    uintptr_t address = (uintptr_t)in_driver;

    (void)real_lock();
    dl_iterate_phdr(find, &address);
    counts = (struct bench_hook_counts){ 0, 0, 0 };
    on = true;
}

struct bench_hook_counts bench_hooks_end(void)
{
    on = false;
    return counts;
}

static void *gained(void *memory, const void *caller)
{
    if (counted(caller) && memory) {
        counts.allocations++;
        counts.bytes += (long)malloc_usable_size(memory);
    }
    return memory;
}

void *malloc(size_t bytes)
{
    return gained(__libc_malloc(bytes), __builtin_return_address(0));
}

void *calloc(size_t n, size_t bytes)
{
    return gained(__libc_calloc(n, bytes), __builtin_return_address(0));
}

void *realloc(void *memory, size_t bytes)
{
    if (memory && counted(__builtin_return_address(0)))
        counts.bytes -= (long)malloc_usable_size(memory);
    return gained(__libc_realloc(memory, bytes), __builtin_return_address(0));
}

void free(void *memory)
{
    if (memory && counted(__builtin_return_address(0)))
        counts.bytes -= (long)malloc_usable_size(memory);
    __libc_free(memory);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (counted(__builtin_return_address(0)))
        counts.locks++;
    return real_lock()(mutex);
}
