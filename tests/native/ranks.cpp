/*
 * Ranks without a card: what examples/nccl uses to find its ranks and to talk to them.   ranks TIMEOUT-SECONDS [WHAT RANK]
 *
 * Agrees on 1,000 numbers, passes a megabyte around, and prints what came out. WHAT happens to RANK after 500 of them: dies,
 * stops, or sleeps longer than the time that ranks wait. With `place` it only prints what the launcher has said.
 */
#include "ranks.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <unistd.h>

static int run(int argc, char **argv)
{
    const Place place = find_place();
    const double timeout_s = atof(argv[1]);
    const bool troubled = argc == 4 && atoi(argv[3]) == place.rank;

    if (argc == 3 && strcmp(argv[2], "place") == 0) {
        printf("%s: rank %d of %d, %d here, %s port %d\n", place.launcher.c_str(), place.rank, place.ranks, place.local,
               place.address.c_str(), place.port);
        return 0;
    }
    Ranks ranks(place, timeout_s);
    for (uint64_t i = 0; i < 1000; i++) {
        ranks.begin("question", i);
        if (troubled && i == 500 && strcmp(argv[2], "dies") == 0)
            _exit(9);
        if (troubled && i == 500 && strcmp(argv[2], "sleeps") == 0)
            sleep(static_cast<unsigned>(3 * timeout_s));
        if (troubled && i == 500 && strcmp(argv[2], "skips") == 0)
            i++;
        /* The largest is another rank's each time. */
        uint64_t mine = i * 1000 + static_cast<uint64_t>((place.rank + static_cast<int>(i)) % place.ranks);
        if (ranks.largest(mine) != i * 1000 + static_cast<uint64_t>(place.ranks - 1)) {
            printf("rank %d: wrong answer to question %d\n", place.rank, static_cast<int>(i));
            return 1;
        }
    }
    std::vector<unsigned char> bytes(1 << 20, static_cast<unsigned char>(place.rank + 7));
    ranks.broadcast(bytes.data(), bytes.size());
    for (unsigned char byte : bytes)
        if (byte != 7) {
            printf("rank %d: wrong bytes\n", place.rank);
            return 1;
        }
    ranks.finish();
    printf("rank %d of %d: all right\n", place.rank, place.ranks);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    try {
        return run(argc, argv);
    } catch (const std::exception &why) {
        fprintf(stderr, "rank: %s\n", why.what());
        return 1;
    }
}
