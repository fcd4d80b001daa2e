/*
 * Introduces several cards: the perceptron of ../cublas trained by one process per card, each with a batch of its own. NCCL
 * averages the gradients inside the recorded step. It is trained by launches, and once more on a loop that replays it; at the end
 * all ranks must have the same bytes, and those of the run without a graph.
 *
 * Three things are special about a collective in a graph:
 *
 * 1. All ranks do a step the same way, or they wait for each other forever. The loop's agree callback sees to it; see agree().
 * 2. NCCL's own memory is in the graph. The audit names it, and it becomes LIBRARY pins; see NcclMemory.
 * 3. Graphs go before communicators: ncclCommDestroy() waits until no graph refers to the communicator. Here the order of
 * declarations in train() sees to it, since what is declared last is destroyed first.
 *
 * Started by torchrun, mpirun or srun; alone without. Exit status: 0 all is as it should be, 1 it is not, or a rank is gone, 2
 * wrong call, 3 the step is not replayed, 77 no card.
 */
#include "../cublas/mlp.hpp"
#include "../cublas/options.hpp"
#include "ranks.hpp"

#include <nccl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>

#include <unistd.h>

namespace
{

constexpr char USAGE[] =
    "usage: allreduce [options], started by torchrun, mpirun or srun with a rank for each card; alone without\n"
    "  --steps N        steps of each run (400; at least 100)\n"
    "  --layers N       layers (8; at least 2)\n"
    "  --width N        width of the inner layers (256)\n"
    "  --batch N        samples in a step of each rank (128)\n"
    "  --fresh-every N  launch one step in so many (50)\n"
    "  --draw FILE      write the graph that is replayed for Graphviz\n"
    "  --timeout N      seconds that a rank waits for the others (60)\n"
    "  --break what     the last rank is in trouble:\n"
    "                   late: it never comes; dead: it dies half-way; stuck: it stops there;\n"
    "                   recording: its recordings break\n"
    "                   order: all ranks destroy the communicator before the graph\n";

struct Options {
    Shape shape;
    int steps = 400, fresh_every = 50, timeout_s = 60;
    std::string broken, draw;
};

Options read_options(int argc, char **argv)
{
    Options o;
    Arguments arguments("allreduce", USAGE);

    arguments.number("--steps", o.steps, 100);
    arguments.number("--layers", o.shape.layers, 2);
    arguments.number("--width", o.shape.width, 1);
    arguments.number("--batch", o.shape.batch, 1);
    arguments.number("--fresh-every", o.fresh_every, 1);
    arguments.number("--timeout", o.timeout_s, 1);
    arguments.text("--draw", o.draw);
    arguments.word("--break", o.broken, {"late", "dead", "stuck", "recording", "order"});
    arguments.read(argc, argv);
    return o;
}

/* ---- NCCL -------------------------------------------------------------------------------------------------------- */

class Communicator
{
  public:
    Communicator(const host::Session &session, Ranks &ranks) : session_(session)
    {
        ncclUniqueId id = {};

        if (ranks.first())
            check(ncclGetUniqueId(&id), "ncclGetUniqueId");
        ranks.broadcast(&id, sizeof id);
        check(ncclCommInitRank(&communicator_, ranks.place().ranks, id, ranks.place().rank), "ncclCommInitRank");
    }
    ~Communicator()
    {
        destroy();
    }
    Communicator(const Communicator &) = delete;
    Communicator &operator=(const Communicator &) = delete;

    /* Waits for every graph that holds one of its collectives to be gone. */
    void destroy()
    {
        if (communicator_ != nullptr)
            ncclCommDestroy(communicator_);
        communicator_ = nullptr;
    }
    /* In place. */
    void average(uint64_t values, size_t count)
    {
        float *at = reinterpret_cast<float *>(values);

        check(ncclAllReduce(at, at, count, ncclFloat, ncclAvg, communicator_, session_.stream()), "ncclAllReduce");
    }
    /* What went wrong in the background, if anything. */
    void look()
    {
        ncclResult_t state = ncclSuccess;

        check(ncclCommGetAsyncError(communicator_, &state), "ncclCommGetAsyncError");
        check(state, "NCCL");
    }

  private:
    void check(ncclResult_t code, const char *call) const
    {
        if (code != ncclSuccess)
            throw host::Failure(std::string(call) + ": " + ncclGetErrorString(code) + ": " + ncclGetLastError(communicator_));
    }

    const host::Session &session_;
    ncclComm_t communicator_ = nullptr;
};

/*
 * The memory of NCCL's that its kernels are given. The audit would have it named, since no pin covers it, and rightly so: nobody
 * but NCCL can say that it stays in place. NCCL does say so, for as long as the communicator lives, so it becomes LIBRARY pins,
 * which no check alters. Where it is, is found by recording a step that is never run.
 */
class NcclMemory
{
  public:
    template <class Enqueue> NcclMemory(const host::Session &session, Enqueue enqueue)
    {
        stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;
        stepgraph_step *begun = nullptr;
        stepgraph_audit *read = nullptr;
        stepgraph_finding finding = STEPGRAPH_FINDING_INIT;
        auto range = session.call<int(uint64_t *, size_t *, uint64_t)>("cuMemGetAddressRange", 3020);

        config.name = "looking for NCCL's memory";
        config.flags = STEPGRAPH_STEP_ALLOW_UNREGISTERED | STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS;
        host::check(stepgraph_step_begin(session, &config, &begun));
        std::unique_ptr<stepgraph_step, void (*)(stepgraph_step *)> step(begun, stepgraph_step_destroy);
        host::check(stepgraph_step_prepare(begun));
        host::check(stepgraph_step_capture(begun));
        enqueue(begun);
        host::check(stepgraph_step_end(begun));
        host::check(stepgraph_audit_step(begun, &read));
        std::unique_ptr<stepgraph_audit, void (*)(stepgraph_audit *)> audit(read, stepgraph_audit_destroy);
        step.reset();

        std::vector<std::pair<uint64_t, size_t>> found;
        for (uint32_t i = 0; stepgraph_audit_get(read, i, &finding) == STEPGRAPH_OK; i++) {
            uint64_t start = 0;
            size_t bytes = 0;
            if (finding.kind != STEPGRAPH_FINDING_UNREGISTERED || strncmp(finding.node_name, "nccl", 4) != 0)
                continue;
            if (range(&start, &bytes, finding.before) == 0)
                found.emplace_back(start, bytes);
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        for (const auto &[start, bytes] : found)
            pins_.emplace_back(session, "nccl." + std::to_string(pins_.size()), STEPGRAPH_ROLE_LIBRARY, bytes, STEPGRAPH_TYPE_BYTES,
                               start);
    }
    size_t count() const
    {
        return pins_.size();
    }

  private:
    std::deque<host::Pin> pins_;
};

/* ---- training ---------------------------------------------------------------------------------------------------- */

//! [agree]
/* The loop decides with what all ranks have found. What stands in the way of that ends the turn, and with it the program. */
stepgraph_status agree(void *user, uint64_t, uint64_t mine, uint64_t *largest_out)
{
    try {
        *largest_out = static_cast<Ranks *>(user)->largest(mine);
        return STEPGRAPH_OK;
    } catch (const std::exception &why) {
        fprintf(stderr, "rank %d: %s\n", static_cast<Ranks *>(user)->place().rank, why.what());
        return STEPGRAPH_ERR_LOST;
    }
}
//! [agree]

/* What the loop decides. That cuBLAS launches more kernels than anybody can count outside of it is no news. */
void log_line(void *, int32_t, const char *line)
{
    if (strncmp(line, "loop", 4) == 0)
        printf("    | %s\n", line);
}

/*
 * The order of the members is the order in which they are made, and the other way round that in which they are destroyed: the
 * graphs of the loop go first, then the pins of NCCL's memory, then the communicator.
 */
//! [order]
class Trainer
{
  public:
    Trainer(const Options &options, Ranks &ranks);
    int run();

  private:
    void step(stepgraph_step *marks);
    void launch();
    uint32_t turn(uint64_t k);
    bool same_everywhere(const std::vector<unsigned char> &mine);
    void report(const std::vector<unsigned char> &state, bool same, bool same_all);

    const Options &o_;
    Ranks &ranks_;
    host::Session session_;
    Mlp mlp_;
    Communicator communicator_;
    std::optional<NcclMemory> nccl_;
    std::optional<host::Loop> loop_;
    //! [order]
    const bool first_, last_;
    uint64_t k_ = 0;
};

/* The card of this rank. Some launchers show each rank its own only. */
int card_of(const Place &place)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    return visible != nullptr && *visible != '\0' && strchr(visible, ',') == nullptr ? 0 : place.local;
}

Trainer::Trainer(const Options &options, Ranks &ranks)
    : o_(options), ranks_(ranks), session_(card_of(ranks.place()), ranks.first() ? log_line : nullptr),
      mlp_(session_, options.shape, 1, Workspace::Pin, ranks.place().rank, ranks.place().ranks), communicator_(session_, ranks),
      first_(ranks.first()), last_(ranks.place().rank == ranks.place().ranks - 1)
{
}

void Trainer::step(stepgraph_step *marks)
{
    mlp_.forward_backward(marks);
    if (marks != nullptr)
        (void)stepgraph_step_mark(marks, "all-reduce");
    communicator_.average(mlp_.gradients(),
                          mlp_.parameter_count()); /* What NCCL launches for it is not counted: fewer is no fault. */
    mlp_.update(marks);
}

/* A step without any loop. */
void Trainer::launch()
{
    ranks_.begin("launched step", k_);
    mlp_.feed(k_++);
    host::check(stepgraph_session_flush(session_));
    step(nullptr);
}

/* Step k on the loop. */
uint32_t Trainer::turn(uint64_t k)
{
    const bool half_way = k == static_cast<uint64_t>(o_.steps) / 2 && last_;

    ranks_.begin("step", k);
    if (half_way && o_.broken == "dead")
        _exit(9);
    if (half_way && o_.broken == "stuck")
        sleep(1000000);
    if (k % 64 == 0)
        communicator_.look();
    return loop_->step(
        k, [&](uint64_t number) { mlp_.feed(number); },
        [&](uint64_t, stepgraph_step *marks) {
            step(marks);
            if (o_.broken == "recording" && last_ && stepgraph_step_state(marks) == STEPGRAPH_STEP_CAPTURING)
                (void)session_.call<int(CUstream_st *)>("cuStreamSynchronize", 2000)(session_.stream());
        });
}

/* The same bytes on all ranks? */
bool Trainer::same_everywhere(const std::vector<unsigned char> &mine)
{
    std::vector<unsigned char> theirs = mine;

    ranks_.broadcast(theirs.data(), theirs.size());
    return ranks_.largest(theirs == mine ? 0 : 1) == 0;
}

void Trainer::report(const std::vector<unsigned char> &state, bool same, bool same_all)
{
    stepgraph_loop_stats stats = loop_->stats();

    printf("\n%s\n", loop_->report());
    if (const stepgraph_audit *audit = stepgraph_loop_audit(*loop_, 0))
        printf("%s\n", stepgraph_audit_text(audit));
    printf("checks: %llu, of which %llu found every byte the same, a planted fault included\n",
           static_cast<unsigned long long>(stats.checks), static_cast<unsigned long long>(stats.checks_identical));
    printf("after %d steps: loss %.6f on rank 0; %zu bytes %s on all ranks, and %s of the run without a graph\n", o_.steps,
           static_cast<double>(mlp_.loss()), state.size(), same_all ? "the same" : "DIFFERENT", same ? "those" : "NOT THOSE");
}

int Trainer::run()
{
    const uint64_t steps = static_cast<uint64_t>(o_.steps);
    const Place &place = ranks_.place();

    if (first_)
        printf("%d rank%s, started by %s; %s, driver %d.%d, NCCL %d.%d.%d\n"
               "A perceptron of %d layers, width %d, batch %d on each rank: %zu parameters\n\n",
               place.ranks, place.ranks > 1 ? "s" : "", place.launcher.c_str(), session_.info().device_name,
               session_.info().driver_version / 1000, session_.info().driver_version % 1000 / 10, NCCL_MAJOR, NCCL_MINOR,
               NCCL_PATCH, o_.shape.layers, o_.shape.width, o_.shape.batch, mlp_.parameter_count());

    /* What is right is computed, by the same steps without any graph. */
    while (k_ < steps)
        launch();
    std::vector<unsigned char> launched = mlp_.state();
    host::Times fresh = host::measure(session_, 120, [&] { launch(); });

    ranks_.begin("the recording of a step to look at");
    nccl_.emplace(session_, [&](stepgraph_step *marks) { step(marks); });
    if (first_)
        printf("NCCL's kernels use %zu piece%s of its own memory\n", nccl_->count(), nccl_->count() == 1 ? "" : "s");

    mlp_.reset();
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    config.fresh_every = static_cast<uint32_t>(o_.fresh_every);
    /* NCCL's, where its network threads have to work. Their arguments are made for each recording, and the graph keeps them
     * alive. */
    config.step_flags = STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS | STEPGRAPH_STEP_ALLOW_HOST_ARGUMENTS;
    config.timeout_ns = static_cast<uint64_t>(o_.timeout_s) * 1000000000u;
    config.agree = agree;
    config.user = &ranks_;
    config.name = "train";
    loop_.emplace(session_, config);
    for (k_ = 0; k_ < steps; k_++)
        turn(k_);
    std::vector<unsigned char> looped = mlp_.state();

    ranks_.begin("the comparison");
    bool same = ranks_.largest(looped == launched ? 0 : 1) == 0, same_all = same_everywhere(looped);
    stepgraph_loop_stats stats = loop_->stats();
    if (first_)
        report(looped, same, same_all);
    if (!same || !same_all)
        return 1;
    if (o_.broken == "order") {
        ranks_.begin("the destruction of the communicator before the graph");
        communicator_.destroy();
    }
    if (stats.rung != STEPGRAPH_RUNG_REPLAY) {
        printf("rank %d: not replayed, but '%s': %s\n", place.rank, stepgraph_rung_name(stats.rung), stats.words);
        return 3;
    }
    if (first_ && !o_.draw.empty())
        loop_->draw(o_.draw);
    host::Times replayed = host::measure(session_, 120, [&] {
        while (turn(k_++) != STEPGRAPH_TURN_REPLAY) /* One of those that are launched. */
            session_.wait();
    });
    if (first_)
        host::print_times(fresh, replayed);
    ranks_.begin("the end of all");
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    Options options = read_options(argc, argv);
    int rank = 0, status = 0;

    /* NCCL can let the cards reach into each other's buffers directly where a collective is recorded, by another algorithm than
     * where it is launched. Without that a replay gives the bytes of a launch, and no other process holds on to our memory. */
    setenv("NCCL_GRAPH_REGISTER", "0", 0);
    try {
        Place place = find_place();
        rank = place.rank;
        if (options.broken == "late" && place.ranks > 1 && place.rank == place.ranks - 1) {
            sleep(static_cast<unsigned>(options.timeout_s) + 5);
            return 9;
        }
        Ranks ranks(place, options.timeout_s);
        {
            Trainer trainer(options, ranks);
            try {
                status = trainer.run();
            } catch (const std::exception &why) {
                ranks.fail(
                    why.what()); /* Before anything of it is destroyed: other ranks may be in the middle of a collective. */
            }
        }
        ranks.finish();
    } catch (const host::NoCard &why) {
        fprintf(stderr, "rank %d: not run: %s\n", rank, why.what());
        return 77;
    } catch (const std::exception &why) {
        fprintf(stderr, "rank %d: %s\n", rank, why.what());
        return 1;
    }
    return status;
}
