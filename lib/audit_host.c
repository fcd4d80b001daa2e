/* Memory of the host process: what a kernel cannot use, and what left-over bytes of arguments are often addresses of. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit_p.h"

/* Whether the last whole line of what was read of the list is about addresses from here on. */
static bool has_reached(const char *text, size_t bytes, uint64_t address)
{
    const char *end = memrchr(text, '\n', bytes), *start = end != NULL ? memrchr(text, '\n', (size_t)(end - text)) : NULL;

    return end != NULL && strtoull(start != NULL ? start + 1 : text, NULL, 16) >= address;
}

/* The list of the process's mappings, at least of those that begin below an address. They are listed by address, and each costs the system a
 * microsecond or so. NULL: it cannot be read. */
static char *read_list(uint64_t below)
{
    enum { PIECE = 4096 }; /* As much as the system gives at once. */
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t room = 65536, used = 0;
    char *text = file >= 0 ? malloc(room) : NULL;
    ssize_t n = 0;

    while (text != NULL && !has_reached(text, used, below) && (n = read(file, text + used, PIECE)) > 0) {
        used += (size_t)n;
        if (room - used <= PIECE) {
            char *larger = realloc(text, room *= 2);
            if (larger == NULL)
                free(text);
            text = larger;
        }
    }
    if (file >= 0)
        close(file);
    if (text != NULL)
        text[used] = '\0';
    return text;
}

/* A device's mapping is not the host's memory: "/dev/nvidia0", but not "/dev/shm/x". */
static bool of_device(const char *line, const char *end)
{
    const char *path = memchr(line, '/', (size_t)(end - line));

    return path != NULL && strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0 && strncmp(path, "/dev/zero", 9) != 0;
}

/* "7f93e98d2000-7f93e98d4000 rw-p 00000000 00:00 0   [heap]". What nobody may read is address space that is only set aside, as drivers do for
 * devices. */
static void add_line(sg__host_memory *memory, const char *line, const char *end)
{
    char *behind;
    uint64_t start = strtoull(line, &behind, 16), stop = *behind == '-' ? strtoull(behind + 1, &behind, 16) : 0;
    sg__mapping *last = memory->n > 0 ? &memory->ranges[memory->n - 1] : NULL;
    bool writable, executable;

    if (stop <= start || end - behind < 5 || behind[1] != 'r' || of_device(line, end))
        return;
    writable = behind[2] == 'w';
    executable = behind[3] == 'x';
    if (last != NULL && last->end == start && last->writable == writable && last->executable == executable)
        last->end = stop;
    else
        memory->ranges[memory->n++] = (sg__mapping){.start = start, .end = stop, .writable = writable, .executable = executable};
}

static void read_maps(sg__host_memory *memory, uint64_t below)
{
    char *text = read_list(below);
    size_t lines = 0;

    memory->known = below;
    memory->n = 0;
    free(memory->ranges);
    for (const char *at = text; at != NULL && (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    memory->ranges = lines > 0 ? malloc(lines * sizeof *memory->ranges) : NULL;
    if (memory->ranges != NULL)
        for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
            add_line(memory, line, end);
    free(text);
}

/* The range that holds an address, by the list; NULL: none does. */
static const sg__mapping *find(sg__host_memory *memory, uint64_t address)
{
    if (address >= memory->known)
        read_maps(memory, address >> 32 == 0 ? (uint64_t)1 << 32 : UINT64_MAX);
    return sg__mapping_at(memory->ranges, memory->n, address);
}

/* Where a system gives a process no memory: above 4 GiB, but in the lower quarter of what it may address. Pairs of small numbers look like that. */
static bool is_far_from_all(uint64_t address)
{
    const uint32_t half = (uint32_t)(address >> 32);

    return half < sg__process_upper_stack() / 4 && half - sg__process_upper_heap() + 1 > 2;
}

/* The process as it is in this comparison. */
static const sg__process *process_of(sg__host_memory *memory)
{
    if (!memory->renewed)
        sg__process_renew(memory->process);
    memory->renewed = true;
    return memory->process;
}

bool sg__host_memory_holds(sg__host_memory *memory, uint64_t address, bool likely)
{
    const bool low = address >> 32 == 0, stands = address % 8 == 0;
    const sg__mapping *found;
    int told;

    /* So low only a program that is not position-independent has memory, and numbers are as low: only what it writes to counts. */
    if (low ? !stands : is_far_from_all(address))
        return false;
    if (sg__process_heap(address) || (!low && sg__process_stack(address)))
        return !likely || stands;
    found = sg__process_segment(process_of(memory), address);
    if (found == NULL) {
        /* The list costs a thousand times as much as a question. */
        told = address < memory->known ? -1 : sg__process_ask(memory->process, address);
        if (told == 0 || (told == 1 && !low && (!likely || stands)))
            return told == 1;
        found = find(memory, address);
    }
    return found != NULL && (low ? found->writable : !likely || stands || found->executable);
}

bool sg__host_memory_upper(uint32_t half)
{
    enum { AROUND = 0x500 }; /* 5 TiB: how far mappings and stacks are spread. */
    const uint32_t heap = sg__process_upper_heap();

    return half != 0 && half < 0x10000 && (half - sg__process_upper_stack() + AROUND <= 2 * AROUND || (heap != 0 && half - heap + 1 <= 1));
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

static bool is_code(const sg__process *process, uint64_t address)
{
    const sg__mapping *segment = sg__process_segment(process, address);

    return segment != NULL && segment->executable;
}

/* Whether the instruction in front of address calls, so that address is where that call returns to. */
static bool follows_call(const sg__process *process, uint64_t address)
{
#if defined __x86_64__
    unsigned char code[8];
    int32_t distance;

    if (!sg__process_read(process, address - sizeof code, code, sizeof code))
        return false;
    memcpy(&distance, &code[4], sizeof distance);
    if (code[3] == 0xe8 && is_code(process, address + (uint64_t)(int64_t)distance)) /* call distance */
        return true;
    for (size_t bytes = 2; bytes <= 7; bytes++) { /* call *operand: a second byte that says what the operand is, and how long. */
        const unsigned char *call = &code[sizeof code - bytes];
        size_t mode = call[1] >> 6, base = call[1] & 7, length = 2;
        if (call[0] != 0xff || (call[1] >> 3 & 7) != 2)
            continue;
        if (mode != 3 && base == 4)
            length += mode == 0 && bytes > 2 && (call[2] & 7) == 5 ? 5 : 1;
        if (mode == 1)
            length += 1;
        if (mode == 2 || (mode == 0 && base == 5))
            length += 4;
        if (length == bytes)
            return true;
    }
    return false;
#elif defined __aarch64__
    uint32_t code;

    return address % 4 == 0 && sg__process_read(process, address - sizeof code, &code, sizeof code) &&
           ((code & 0xfc000000) == 0x94000000 || (code & 0xfefff000) == 0xd63f0000); /* bl, and blr with or without a signature. */
#else
    (void)process;
    (void)address;
    return false;
#endif
}

bool sg__host_memory_returns(sg__host_memory *memory, uint32_t low)
{
    const sg__process *process = process_of(memory);

    for (size_t i = sg__process_code(process, low); i-- > 0 && process->code[i].furthest >= low;) {
        const sg__code *code = &process->code[i];
        const uint64_t address = (code->start & ~(uint64_t)UINT32_MAX) | low;
        if (address >= code->start + 8 && address < code->end && follows_call(process, address))
            return true;
    }
    return false;
}

void sg__host_memory_free(sg__host_memory *memory)
{
    free(memory->ranges);
    *memory = (sg__host_memory){0};
}
