#include "room.h"

#include <stdlib.h>

#include "error.h"

void *sg__room_more(void *array, size_t *room, size_t n, size_t least, size_t bytes)
{
    size_t larger = *room != 0 ? *room : least;
    void *moved;

    while (larger < n)
        larger *= 2;
    moved = realloc(array, larger * bytes);
    if (moved != NULL)
        *room = larger;
    else
        (void)sg__fail_memory("host", larger * bytes);
    return moved;
}
