/*
 * Introduces cuBLAS in a recorded step: a perceptron trained by launches, and once more on a loop, which records the step, checks
 * it and replays it; every byte of both runs is compared. What matters is in mlp.cpp: pins for all that outlives a step, and a
 * pin for cuBLAS's workspace. --break shows what becomes of it without.
 *
 * Exit status: 0 all is as it should be, 1 it is not, 2 wrong call, 3 the step is not replayed (with --break), 77 no card.
 */
#include "mlp.hpp"
#include "options.hpp"

#include <cstdio>
#include <cstring>

namespace
{

constexpr char USAGE[] = "usage: mlp [options]\n"
                         "  --steps N        steps of each run (400; at least 100)\n"
                         "  --layers N       layers (8; at least 2)\n"
                         "  --width N        width of the inner layers (256)\n"
                         "  --batch N        samples in a step (128)\n"
                         "  --fresh-every N  launch one step in so many (50)\n"
                         "  --draw FILE      write the graph that is replayed for Graphviz\n"
                         "  --break what     workspace: cuBLAS works in memory that no pin covers and that the host replaces\n"
                         "                   unset: cuBLAS is given no workspace at all\n";

struct Options {
    Shape shape;
    int steps = 400;
    int fresh_every = 50; /* Every so many steps are launched, as if to look inside. */
    std::string broken, draw;
};

Options read_options(int argc, char **argv)
{
    Options o;
    Arguments arguments("mlp", USAGE);

    arguments.number("--steps", o.steps, 100);
    arguments.number("--layers", o.shape.layers, 2);
    arguments.number("--width", o.shape.width, 1);
    arguments.number("--batch", o.shape.batch, 1);
    arguments.number("--fresh-every", o.fresh_every, 1);
    arguments.text("--draw", o.draw);
    arguments.word("--break", o.broken, {"workspace", "unset"});
    arguments.read(argc, argv);
    return o;
}

/* What the loop decides. That cuBLAS launches more kernels than anybody can count outside of it is no news. */
void log_line(void *, int32_t, const char *line)
{
    if (strncmp(line, "loop", 4) == 0)
        printf("    | %s\n", line);
}

int run(const Options &o)
{
    host::Session session(0, log_line);
    Mlp mlp(session, o.shape, 1,
            o.broken == "workspace" ? Workspace::Own
            : o.broken == "unset"   ? Workspace::Unset
                                    : Workspace::Pin);
    uint64_t k = 0, steps = static_cast<uint64_t>(o.steps);

    printf("%s, driver %d.%d, %s\n", session.info().device_name, session.info().driver_version / 1000,
           session.info().driver_version % 1000 / 10, session.info().driver_path);
    printf("A perceptron of %d layers, width %d, batch %d: %zu parameters\n\n", o.shape.layers, o.shape.width, o.shape.batch,
           mlp.parameter_count());

    /* What is right is computed, by the same steps without any graph. */
    auto launch = [&] {
        mlp.feed(k++);
        host::check(stepgraph_session_flush(session));
        mlp.forward_backward(nullptr);
        mlp.update(nullptr);
    };
    for (; k < steps;)
        launch();
    std::vector<unsigned char> launched = mlp.state();
    float loss_launched = mlp.loss();
    host::Times fresh = host::measure(session, 120, launch);

    /* And once more, on a loop. */
    mlp.reset();
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    config.fresh_every = static_cast<uint32_t>(o.fresh_every);
    config.name = "mlp";
    host::Loop loop(session, config);
    auto feed = [&](uint64_t number) { mlp.feed(number); };
    auto enqueue = [&](uint64_t, stepgraph_step *step) {
        mlp.forward_backward(step);
        mlp.update(step);
        if (o.broken == "workspace")
            mlp.blas().regrow();
    };
    printf("On a loop, one step in %d launched on purpose:\n", o.fresh_every);
    for (k = 0; k < steps; k++)
        loop.step(k, feed, enqueue);
    std::vector<unsigned char> looped = mlp.state();
    float loss_looped = mlp.loss();
    size_t differ = 0;
    for (size_t i = 0; i < launched.size(); i++)
        differ += launched[i] != looped[i] ? 1 : 0;
    bool same = differ == 0 && loss_launched == loss_looped;

    stepgraph_loop_stats stats = loop.stats();
    printf("\n%s\n", loop.report());
    if (const stepgraph_audit *audit = stepgraph_loop_audit(loop, 0))
        printf("%s\n", stepgraph_audit_text(audit));
    printf("checks: %llu, of which %llu found every byte the same, a planted fault included\n",
           static_cast<unsigned long long>(stats.checks), static_cast<unsigned long long>(stats.checks_identical));
    printf("after %d steps: loss %.6f launched, %.6f on the loop; %zu of %zu bytes differ: %s\n", o.steps,
           static_cast<double>(loss_launched), static_cast<double>(loss_looped), differ, launched.size(),
           same ? "identical" : "WRONG");

    if (!same)
        return 1;
    if (stats.rung != STEPGRAPH_RUNG_REPLAY) {
        printf("not replayed, but '%s': %s\n", stepgraph_rung_name(stats.rung), stats.words);
        return 3;
    }
    if (!o.draw.empty())
        loop.draw(o.draw);
    host::Times replayed = host::measure(session, 120, [&] {
        while (loop.step(k++, feed, enqueue) != STEPGRAPH_TURN_REPLAY) /* One of those that are launched. */
            session.wait();
    });
    host::print_times(fresh, replayed);
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    Options options = read_options(argc, argv);

    try {
        return run(options);
    } catch (const host::NoCard &why) {
        fprintf(stderr, "mlp: not run: %s\n", why.what());
        return 77;
    } catch (const std::exception &why) {
        fprintf(stderr, "mlp: %s\n", why.what());
        return 1;
    }
}
