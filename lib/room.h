/* Arrays that grow. */
#ifndef STEPGRAPH_ROOM_H
#define STEPGRAPH_ROOM_H

#include <stddef.h>

/* As below, where there is too little room. */
void *sg__room_more(void *array, size_t *room, size_t n, size_t least, size_t bytes);

/* The array, which may have moved, with room for n items of so many bytes, 1 or more; it doubles, from `least` items on. *room: for how many it has room.
 * NULL: there is no host memory, the array stays as it was, and the thread's record says so. */
static inline void *sg__room(void *array, size_t *room, size_t n, size_t least, size_t bytes)
{
    return n <= *room ? array : sg__room_more(array, room, n, least, bytes);
}

#endif
