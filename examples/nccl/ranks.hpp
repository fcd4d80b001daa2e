/*
 * The processes that train together: which one this is, and a line to the others that has nothing to do with the card.
 *
 * Rank 0 holds a connection to each of the others. Over these go the few bytes that start NCCL and the decisions that all ranks
 * take together. They also tell when a rank is gone: a collective would wait for it forever, so a process that loses the others
 * says so and ends. The same goes for one that gets stuck.
 */
#ifndef EXAMPLES_RANKS_HPP
#define EXAMPLES_RANKS_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

/* What a launcher has told this process. */
struct Place {
    int rank = 0, ranks = 1;
    int local = 0; /* Among those of this machine: the card to use. */
    std::string address = "127.0.0.1";
    int port = 29500;
    uint64_t job = 0; /* Tells processes of one job from those of another. */
    std::string launcher = "none";
};

/* From the environment of torchrun, mpirun (Open MPI, or MPICH and its kin) or srun; alone without any. */
Place find_place();

class Ranks
{
  public:
    static constexpr uint64_t NO_NUMBER = UINT64_MAX;

    /* Returns once all have arrived. Throws if they do not within the time, or later if a rank does not answer in so long. */
    Ranks(const Place &place, double timeout_s);
    ~Ranks();
    Ranks(const Ranks &) = delete;
    Ranks &operator=(const Ranks &) = delete;

    const Place &place() const
    {
        return place_;
    }
    bool first() const
    {
        return place_.rank == 0;
    }
    /* Rank 0's bytes, for all. */
    void broadcast(void *data, size_t bytes);
    /* The largest of all ranks' numbers. */
    uint64_t largest(uint64_t mine);
    /* What is begun now ends within the time, or the process does. The words must outlive it. */
    void begin(const char *what, uint64_t number = NO_NUMBER);
    /* All ranks have come to the end: none is missed from here on. */
    void finish();
    /* End the process with a message, and nothing else. */
    [[noreturn]] void fail(const std::string &why);

  private:
    struct Number {
        uint64_t sequence, value;
    };

    void gather();
    void join();
    void watch();
    std::string doing() const;
    std::string name_of(size_t connection) const;
    void send_all(size_t connection, const void *data, size_t bytes);
    void receive_all(size_t connection, void *data, size_t bytes);

    Place place_;
    double timeout_s_;
    std::vector<int> sockets_; /* Of rank 0: to rank 1, 2, ...; of the others: to rank 0. */
    uint64_t sequence_ = 0;
    std::atomic<bool> watching_{true};
    std::atomic<const char *> doing_{"the start"};
    std::atomic<uint64_t> number_{NO_NUMBER};
    std::atomic<double> since_s_;
    std::thread watcher_;
};

#endif
