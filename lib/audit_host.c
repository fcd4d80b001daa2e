/* Memory of the host process: what a kernel cannot use, and what left-over bytes of arguments are often addresses of. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit_p.h"

/* The whole of a file that tells no length. NULL: it cannot be read. */
static char *read_all(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t room = 65536, used = 0;
    char *text = file >= 0 ? malloc(room) : NULL;
    ssize_t n = 0;

    while (text != NULL && (n = read(file, text + used, room - used - 1)) > 0) {
        used += (size_t)n;
        if (room - used < 4096) {
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
    sg__host_range *last = memory->n > 0 ? &memory->ranges[memory->n - 1] : NULL;
    bool writable, executable;

    if (stop <= start || end - behind < 5 || behind[1] != 'r' || of_device(line, end))
        return;
    writable = behind[2] == 'w';
    executable = behind[3] == 'x';
    if (last != NULL && last->end == start && last->writable == writable && last->executable == executable)
        last->end = stop;
    else
        memory->ranges[memory->n++] = (sg__host_range){.start = start, .end = stop, .writable = writable, .executable = executable};
}

static void read_maps(sg__host_memory *memory)
{
    char *text = read_all("/proc/self/maps");
    size_t lines = 0;

    memory->known = true;
    for (const char *at = text; at != NULL && (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    memory->ranges = lines > 0 ? malloc(lines * sizeof *memory->ranges) : NULL;
    if (memory->ranges != NULL)
        for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
            add_line(memory, line, end);
    free(text);
}

bool sg__host_memory_holds(sg__host_memory *memory, uint64_t address, bool likely)
{
    size_t low = 0, high;

    if (!memory->known)
        read_maps(memory);
    high = memory->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memory->ranges[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == memory->n || address < memory->ranges[low].start)
        return false;
    /* So low only a program that is not position-independent has memory, and numbers are as low: only what it writes to counts. */
    if (address >> 32 == 0)
        return memory->ranges[low].writable && address % 8 == 0;
    return !likely || address % 8 == 0 || memory->ranges[low].executable;
}

void sg__host_memory_free(sg__host_memory *memory)
{
    free(memory->ranges);
    *memory = (sg__host_memory){0};
}
