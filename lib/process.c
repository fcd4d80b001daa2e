#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- loaded objects ---------------------------------------------------------------------------------------------- */

/* The counts are the same in each object's information. */
static int is_current(struct dl_phdr_info *info, size_t bytes, void *user)
{
    sg__process *process = user;
    const bool counted = bytes >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs;

    process->made = process->made && counted && process->loaded == info->dlpi_adds && process->unloaded == info->dlpi_subs;
    process->loaded = counted ? info->dlpi_adds : 0;
    process->unloaded = counted ? info->dlpi_subs : 0;
    return 1;
}

static int add_object(struct dl_phdr_info *info, size_t bytes, void *user)
{
    sg__process *process = user;

    (void)bytes;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uint64_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type != PT_LOAD)
            continue;
        if (process->n == process->room) {
            const size_t room = process->room != 0 ? 2 * process->room : 256;
            sg__mapping *segments = realloc(process->segments, room * sizeof *segments);
            if (segments == NULL)
                return 1; /* Fewer are known then. */
            process->segments = segments;
            process->room = room;
        }
        process->segments[process->n++] = (sg__mapping){
            .start = start, .end = start + header->p_memsz, .writable = (header->p_flags & PF_W) != 0, .executable = (header->p_flags & PF_X) != 0};
    }
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const sg__mapping *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static int by_lower_half(const void *a, const void *b)
{
    const uint32_t x = (uint32_t)((const sg__code *)a)->start, y = (uint32_t)((const sg__code *)b)->start;

    return x < y ? -1 : x > y;
}

static void add_code(sg__process *process, uint64_t start, uint64_t end)
{
    if (start < end)
        process->code[process->n_code++] = (sg__code){.start = start, .end = end};
}

/* A hundred libraries have a hundred pieces of code, and which of them have a lower half is asked about each that differs. */
void sg__process_list_code(sg__process *process)
{
    uint32_t furthest = 0;

    free(process->code);
    process->n_code = 0;
    process->code = malloc((2 * process->n + 1) * sizeof *process->code); /* Where one goes over a border of 4 GiB it is two. */
    for (size_t i = 0; process->code != NULL && i < process->n; i++) {
        const sg__mapping *segment = &process->segments[i];
        const uint64_t border = ((segment->start >> 32) + 1) << 32;
        if (!segment->executable)
            continue;
        add_code(process, segment->start, segment->end < border ? segment->end : border);
        add_code(process, border, segment->end);
    }
    if (process->n_code > 0)
        qsort(process->code, process->n_code, sizeof *process->code, by_lower_half);
    for (size_t i = 0; i < process->n_code; i++) {
        const uint32_t last = (uint32_t)(process->code[i].end - 1);
        furthest = last > furthest ? last : furthest;
        process->code[i].furthest = furthest;
    }
}

void sg__process_renew(sg__process *process)
{
    process->id = getpid();
    dl_iterate_phdr(is_current, process);
    if (process->made)
        return;
    process->n = 0;
    dl_iterate_phdr(add_object, process);
    if (process->n > 0)
        qsort(process->segments, process->n, sizeof *process->segments, by_start);
    sg__process_list_code(process);
    process->made = true;
}

void sg__process_free(sg__process *process)
{
    free(process->segments);
    free(process->code);
    *process = (sg__process){0};
}

const sg__mapping *sg__mapping_at(const sg__mapping *mappings, size_t n, uint64_t address)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mappings[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && mappings[low].start <= address ? &mappings[low] : NULL;
}

const sg__mapping *sg__process_segment(const sg__process *process, uint64_t address)
{
    return sg__mapping_at(process->segments, process->n, address);
}

size_t sg__process_code(const sg__process *process, uint32_t low)
{
    size_t first = 0, last = process->n_code;

    while (first < last) {
        size_t middle = first + (last - first) / 2;
        if ((uint32_t)process->code[middle].start <= low)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

/* ---- heap and stack ---------------------------------------------------------------------------------------------- */

/* "563d9a7f2000-563d9a8f4000 rw-p 00000000 00:00 0   [heap]", in a list by address. 0: there is none. */
static uint64_t read_heap_start(void)
{
    FILE *list = fopen("/proc/self/maps", "re");
    uint64_t found = 0, start = 0;
    char *line = NULL;
    size_t room = 0;

    while (list != NULL && found == 0 && start < (uintptr_t)sbrk(0) && getline(&line, &room, list) > 0) {
        start = strtoull(line, NULL, 16);
        found = strstr(line, "[heap]") != NULL ? start : 0;
    }
    free(line);
    if (list != NULL)
        fclose(list);
    return found;
}

bool sg__process_heap(uint64_t address)
{
    static _Atomic uint64_t start; /* It never moves. */
    uint64_t known;

    if (address >= (uintptr_t)sbrk(0))
        return false;
    known = atomic_load_explicit(&start, memory_order_relaxed);
    if (known == 0) {
        known = read_heap_start();
        known = known != 0 ? known : UINT64_MAX;
        atomic_store_explicit(&start, known, memory_order_relaxed);
    }
    return address >= known;
}

bool sg__process_stack(uint64_t address)
{
    const uint64_t top = getauxval(AT_EXECFN), room = (uint64_t)8 << 20; /* As much as Linux gives it. */

    return address < top && top - address < room;
}

uint32_t sg__process_upper_heap(void)
{
    return (uint32_t)((uintptr_t)sbrk(0) >> 32);
}

uint32_t sg__process_upper_stack(void)
{
    char here;

    return (uint32_t)((uintptr_t)&here >> 32);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* 1; 0: nobody can read all of it; -1: the system does not say. */
static int copy(const sg__process *process, uint64_t address, void *to, size_t bytes)
{
    struct iovec ours = {.iov_base = to, .iov_len = bytes}, from = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
    const ssize_t n = process_vm_readv(process->id, &ours, 1, &from, 1, 0);

    if (n == (ssize_t)bytes)
        return 1;
    return n >= 0 || errno == EFAULT ? 0 : -1;
}

int sg__process_ask(const sg__process *process, uint64_t address)
{
    char byte;

    return copy(process, address, &byte, 1);
}

bool sg__process_read(const sg__process *process, uint64_t address, void *to, size_t bytes)
{
    int told = copy(process, address, to, bytes), file;
    bool done;

    if (told >= 0) /* Otherwise it is not allowed, or not there. */
        return told == 1;
    file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    done = file >= 0 && pread(file, to, bytes, (off_t)address) == (ssize_t)bytes;
    if (file >= 0)
        close(file);
    return done;
}
