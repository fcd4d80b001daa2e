#include "ranks.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace
{

using Failure = std::runtime_error;

double now_s()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string seconds(double s)
{
    char text[32];

    snprintf(text, sizeof text, "%g s", s);
    return text;
}

/* ---- the environment --------------------------------------------------------------------------------------------- */

const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != nullptr && *value != '\0' ? value : nullptr;
}

int number(const char *name, int least, int most)
{
    const char *text = variable(name);
    char *end;

    if (text == nullptr)
        throw Failure(std::string("the launcher has set no ") + name);
    long value = strtol(text, &end, 10);
    if (*end != '\0' || value < least || value > most)
        throw Failure(std::string(name) + " is '" + text + "', and should be a number from " + std::to_string(least) + " to " +
                      std::to_string(most));
    return static_cast<int>(value);
}

/* What launchers call the rank, the number of ranks and the rank on this machine; and what shows that there is one machine only:
 * so many of the ranks are here, or that many machines. torchrun sets MASTER_ADDR itself. And what tells its jobs apart: mpirun
 * under Slurm starts the ranks of other machines as a step, and those of its own machine not. */
struct Launcher {
    const char *name, *rank, *ranks, *local, *here, *machines, *job[2];
};

const Launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", nullptr, nullptr, {"TORCHELASTIC_RUN_ID"}},
    {"mpirun (Open MPI)",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     nullptr,
     {}},
    {"mpiexec (MPICH)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, {}},
    {"srun",
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     "SLURM_LOCALID",
     nullptr,
     "SLURM_STEP_NUM_NODES",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

uint64_t hash(uint64_t state, const char *text)
{
    for (; text != nullptr && *text != '\0'; text++)
        state = (state ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
    return state;
}

} // namespace

Place find_place()
{
    constexpr int MOST = 1 << 20;
    const Launcher *found = nullptr;
    Place place;

    for (const Launcher &launcher : launchers)
        if (found == nullptr && variable(launcher.rank) != nullptr && variable(launcher.ranks) != nullptr &&
            variable(launcher.local) != nullptr)
            found = &launcher;
    if (found == nullptr)
        return place;
    place.launcher = found->name;
    place.ranks = number(found->ranks, 1, MOST);
    place.rank = number(found->rank, 0, place.ranks - 1);
    place.local = number(found->local, 0, MOST);
    if (variable("MASTER_ADDR") != nullptr) {
        place.address = variable("MASTER_ADDR");
    } else {
        bool one_machine = found->here != nullptr       ? number(found->here, 1, MOST) == place.ranks
                           : found->machines != nullptr ? number(found->machines, 1, MOST) == 1
                                                        : false;
        if (!one_machine)
            throw Failure(place.launcher +
                          " runs ranks on several machines and has not said where rank 0 is: set MASTER_ADDR to a name or "
                          "an address of its machine, the same for all ranks");
    }
    if (variable("MASTER_PORT") != nullptr)
        place.port = number("MASTER_PORT", 1, 65534);
    /* That port is torchrun's own then, for as long as it runs. */
    if (variable("TORCHELASTIC_USE_AGENT_STORE") != nullptr && strcmp(variable("TORCHELASTIC_USE_AGENT_STORE"), "True") == 0)
        place.port++;
    place.job = 0xcbf29ce484222325u;
    for (const char *name : found->job)
        if (name != nullptr)
            place.job = hash(place.job, variable(name));
    return place;
}

/* ---- arriving ---------------------------------------------------------------------------------------------------- */

namespace
{

struct Hello {
    char magic[8];
    uint64_t job;
    uint32_t rank, ranks;
};
constexpr char MAGIC[8] = {'s', 't', 'e', 'p', 'r', 'a', 'n', 'k'};

/* A rank that connects says who it is at once; anybody else is not waited for. */
constexpr double HELLO_S = 5;

void set_up(int socket)
{
    int on = 1;

    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* Wait until there is something to do; false: not within the time. */
bool ready(int socket, short events, double until_s)
{
    pollfd one = {socket, events, 0};

    for (;;) {
        double left = until_s - now_s();
        int n = poll(&one, 1, left > 0 ? static_cast<int>(left * 1000) + 1 : 0);
        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

/* 0: all were moved. 1: not in time. 2: the other end is gone. */
int move(bool out, int socket, void *data, size_t bytes, double until_s)
{
    char *at = static_cast<char *>(data);

    while (bytes > 0) {
        ssize_t n = out ? send(socket, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(socket, at, bytes, MSG_DONTWAIT);
        if (n > 0) {
            at += n;
            bytes -= static_cast<size_t>(n);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!ready(socket, out ? POLLOUT : POLLIN, until_s))
                return 1;
        } else {
            return 2;
        }
    }
    return 0;
}

int listen_at(int port)
{
    int on = 1, off = 0, made = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 six = {};
    sockaddr_in four = {};
    bool bound = false;

    if (made >= 0) {
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(static_cast<uint16_t>(port));
        setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        bound = bind(made, reinterpret_cast<sockaddr *>(&six), sizeof six) == 0;
        if (!bound && errno != EADDRINUSE) { /* No such protocol here. */
            close(made);
            made = -1;
        }
    }
    if (made < 0) {
        made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        four.sin_family = AF_INET;
        four.sin_port = htons(static_cast<uint16_t>(port));
        setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        bound = bind(made, reinterpret_cast<sockaddr *>(&four), sizeof four) == 0;
    }
    if (!bound || listen(made, SOMAXCONN) != 0) {
        int why = errno;
        if (made >= 0)
            close(made);
        throw Failure("rank 0 cannot listen on port " + std::to_string(port) + " (" + strerror(why) +
                      "): is another job running there? Set MASTER_PORT to a free one, the same for all ranks");
    }
    return made;
}

/* A connection, or -1 with errno. */
int connect_to(const addrinfo *to, double until_s)
{
    int error = 0, made = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, to->ai_protocol);
    socklen_t size = sizeof error;

    if (made < 0)
        return -1;
    if (connect(made, to->ai_addr, to->ai_addrlen) == 0)
        return made;
    if (errno == EINPROGRESS)
        error = !ready(made, POLLOUT, until_s)                              ? ETIMEDOUT
                : getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno
                                                                            : error;
    else
        error = errno;
    if (error == 0)
        return made;
    close(made);
    errno = error;
    return -1;
}

} // namespace

/* Rank 0: until all have said who they are. */
void Ranks::gather()
{
    double until = now_s() + timeout_s_;
    int missing = place_.ranks - 1, listening = listen_at(place_.port);
    std::string wrong;

    sockets_.assign(static_cast<size_t>(missing), -1);
    while (missing > 0 && wrong.empty() && ready(listening, POLLIN, until)) {
        int made = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
        Hello hello = {};
        double soon = now_s() + HELLO_S;
        if (made < 0)
            continue;
        if (move(false, made, &hello, sizeof hello, soon < until ? soon : until) != 0 ||
            memcmp(hello.magic, MAGIC, sizeof MAGIC) != 0 || hello.job != place_.job) {
            close(made); /* Somebody else. */
            continue;
        }
        if (hello.ranks != static_cast<uint32_t>(place_.ranks) || hello.rank == 0 || hello.rank >= hello.ranks ||
            sockets_[hello.rank - 1] != -1) {
            wrong = "a process has come as rank " + std::to_string(hello.rank) + " of " + std::to_string(hello.ranks) +
                    ", and this is rank 0 of " + std::to_string(place_.ranks) +
                    (hello.rank < hello.ranks ? "; or that rank is there already" : "");
            close(made);
            break;
        }
        set_up(made);
        sockets_[hello.rank - 1] = made;
        missing--;
    }
    close(listening);
    if (!wrong.empty())
        throw Failure(wrong);
    if (missing == 0)
        return;
    std::string who;
    for (size_t i = 0; i < sockets_.size(); i++)
        if (sockets_[i] == -1)
            who += (who.empty() ? "" : ", ") + std::to_string(i + 1);
    throw Failure("rank " + who + " did not come to port " + std::to_string(place_.port) + " within " + seconds(timeout_s_) +
                  ": all ranks need the same MASTER_ADDR and MASTER_PORT, and to reach it");
}

/* The others: until rank 0 listens. */
void Ranks::join()
{
    double until = now_s() + timeout_s_;
    std::string where = place_.address + " port " + std::to_string(place_.port), last = "no answer";
    Hello hello = {{}, place_.job, static_cast<uint32_t>(place_.rank), static_cast<uint32_t>(place_.ranks)};

    memcpy(hello.magic, MAGIC, sizeof MAGIC);
    while (sockets_.empty() && now_s() < until) {
        addrinfo hints = {}, *found = nullptr;
        hints.ai_socktype = SOCK_STREAM;
        int code = getaddrinfo(place_.address.c_str(), std::to_string(place_.port).c_str(), &hints, &found);
        if (code != 0)
            last = gai_strerror(code);
        for (addrinfo *to = found; to != nullptr && sockets_.empty(); to = to->ai_next) {
            int made = connect_to(to, until);
            if (made >= 0)
                sockets_.push_back(made);
            else
                last = strerror(errno);
        }
        if (found != nullptr)
            freeaddrinfo(found);
        if (sockets_.empty())
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (sockets_.empty())
        throw Failure("rank 0 was not reached at " + where + " within " + seconds(timeout_s_) + " (" + last +
                      "): all ranks need the same MASTER_ADDR and MASTER_PORT");
    set_up(sockets_[0]);
    send_all(0, &hello, sizeof hello);
}

Ranks::Ranks(const Place &place, double timeout_s) : place_(place), timeout_s_(timeout_s), since_s_(now_s())
{
    try {
        if (place_.rank == 0 && place_.ranks > 1)
            gather();
        else if (place_.rank > 0)
            join();
        (void)largest(0); /* All are there. */
    } catch (...) {
        for (int socket : sockets_)
            if (socket >= 0)
                close(socket);
        throw;
    }
    begin("the start");
    watcher_ = std::thread(&Ranks::watch, this);
}

Ranks::~Ranks()
{
    watching_ = false;
    watcher_.join();
    for (int socket : sockets_)
        close(socket);
}

/* ---- talking ----------------------------------------------------------------------------------------------------- */

std::string Ranks::name_of(size_t connection) const
{
    return "rank " + std::to_string(place_.rank == 0 ? connection + 1 : 0);
}

void Ranks::send_all(size_t connection, const void *data, size_t bytes)
{
    if (move(true, sockets_[connection], const_cast<void *>(data), bytes, now_s() + timeout_s_) != 0)
        throw Failure("lost " + name_of(connection) + ": see what it says itself");
}

void Ranks::receive_all(size_t connection, void *data, size_t bytes)
{
    int how = move(false, sockets_[connection], data, bytes, now_s() + timeout_s_);

    if (how == 1)
        throw Failure(name_of(connection) + " has not answered within " + seconds(timeout_s_));
    if (how == 2)
        throw Failure("lost " + name_of(connection) + ": see what it says itself");
}

void Ranks::broadcast(void *data, size_t bytes)
{
    for (size_t i = 0; i < sockets_.size(); i++) {
        if (place_.rank == 0)
            send_all(i, data, bytes);
        else
            receive_all(i, data, bytes);
    }
}

uint64_t Ranks::largest(uint64_t mine)
{
    Number number = {++sequence_, mine}, other;

    for (size_t i = 0; i < sockets_.size(); i++) {
        if (place_.rank != 0)
            send_all(i, &number, sizeof number);
        receive_all(i, &other, sizeof other);
        if (other.sequence != number.sequence)
            throw Failure(name_of(i) + " is at its question " + std::to_string(other.sequence) + ", and this one at " +
                          std::to_string(number.sequence) + ": the ranks are out of step");
        number.value = other.value > number.value ? other.value : number.value;
    }
    for (size_t i = 0; i < sockets_.size() && place_.rank == 0; i++)
        send_all(i, &number, sizeof number);
    return number.value;
}

/* ---- watching ------------------------------------------------------------------------------------------------------ */

void Ranks::begin(const char *what, uint64_t number)
{
    doing_ = what;
    number_ = number;
    since_s_ = now_s();
}

void Ranks::finish()
{
    begin("the end");
    watching_ = false;
    (void)largest(0);
}

/* The main thread may be anywhere, in a call that waits for a collective above all. Nothing can be taken down in order any more:
 * the process ends as it is, and the driver clears up behind it. */
void Ranks::fail(const std::string &why)
{
    fprintf(stderr, "rank %d: %s\n", place_.rank, why.c_str());
    fflush(nullptr);
    _exit(1);
}

std::string Ranks::doing() const
{
    uint64_t number = number_;

    return doing_.load() + (number != NO_NUMBER ? " " + std::to_string(number) : "");
}

void Ranks::watch()
{
    std::vector<pollfd> all;

    for (int socket : sockets_)
        all.push_back({socket, POLLRDHUP, 0});
    while (watching_) {
        if (poll(all.data(), all.size(), 100) > 0 && watching_)
            for (size_t i = 0; i < all.size(); i++)
                if ((all[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(200)); /* The main thread may have better words. */
                    fail("lost " + name_of(i) + " during " + doing() + ": see what it says itself");
                }
        if (watching_ && now_s() - since_s_ > timeout_s_)
            fail(doing() + " has not come to an end within " + seconds(timeout_s_) + ": another rank is stuck, or this one");
    }
}
