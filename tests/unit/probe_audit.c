/*
 * What reading and auditing a recording costs beside making it launchable, and what comparing two costs, by number of nodes. The
 * times are printed and judge nothing.
 *
 *     probe_audit [--json FILE] [--nodes LARGEST] [--repeat N]
 *
 * "audit" is the time of stepgraph_step_end() less that of the same driver calls made raw on the same work: end of the capture,
 * instantiate, upload. Medians. With cusim the times are those of a simulation.
 */
#include <time.h>

#include "findings.h"

enum { SIZES = 7, REPEATS_MAX = 101, PINS = 64, OUTSIDE = 16 };
static const int sizes[SIZES] = {100, 300, 1000, 2000, 3000, 5000, 10000};
static int largest = 10000, repeat = 7;
static const char *json;

struct figures {
    int nodes;
    double end_us, raw_us, instantiate_us, audit_us, compare_us, compare_three_us;
};

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

static CUdeviceptr pins[PINS], outside[OUTSIDE];

/* Kernels of several shapes over pins, some over memory that no pin covers, and a set among every ten nodes. */
static void one_step(int nodes, float value)
{
    for (int i = 0; i < nodes; i++) {
        CUdeviceptr p = pins[i % PINS], q = i % 7 ? pins[(i + 1) % PINS] : outside[i % OUTSIDE];
        if (i % 10 == 9)
            CU(MemsetD8Async(p, 0, 4, stream));
        else if (i % 3 == 0)
            adam(p, q, value, 1, 1);
        else
            axpb(stream, p, q, value);
    }
}

static void raw(int nodes, double *all_us, double *instantiate_us)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params;
    double start, captured, instantiated;
    CUgraphExec exec;
    CUgraph graph;

    memset(&params, 0, sizeof params);
    MORE(StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    one_step(nodes, 1);
    start = now_us();
    MORE(StreamEndCapture(stream, &graph));
    captured = now_us();
    MORE(GraphInstantiateWithParams(&exec, graph, &params));
    instantiated = now_us();
    MORE(GraphUpload(exec, stream));
    *all_us = now_us() - start;
    *instantiate_us = instantiated - captured;
    CU(StreamSynchronize(stream));
    MORE(GraphExecDestroy(exec));
    MORE(GraphDestroy(graph));
}

static stepgraph_step *recorded(int nodes, float value, double *end_us)
{
    stepgraph_step *step = recording("probe", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
    double start;

    one_step(nodes, value);
    start = now_us();
    OK(stepgraph_step_end(step));
    *end_us = now_us() - start;
    OK(stepgraph_session_wait(session));
    return step;
}

static double time_of_comparing(const stepgraph_step *a, const stepgraph_step *b, const stepgraph_step *b_again)
{
    stepgraph_audit *report = NULL;
    double start = now_us(), took;

    OK(stepgraph_audit_compare(a, b, b_again, &report));
    took = now_us() - start;
    CLEAN(report);
    stepgraph_audit_destroy(report);
    return took;
}

static struct figures measure(int nodes)
{
    double end[REPEATS_MAX], all[REPEATS_MAX], instantiate[REPEATS_MAX], two[REPEATS_MAX], three[REPEATS_MAX];
    struct figures f = {.nodes = nodes};

    for (int i = 0; i < repeat; i++) {
        stepgraph_step *steps[3];
        double again;
        raw(nodes, &all[i], &instantiate[i]);
        steps[0] = recorded(nodes, 1, &end[i]);
        steps[1] = recorded(nodes, 1, &again);
        steps[2] = recorded(nodes, 1, &again);
        two[i] = time_of_comparing(steps[0], steps[1], NULL);
        three[i] = time_of_comparing(steps[0], steps[1], steps[2]);
        for (int k = 0; k < 3; k++)
            drop_step(steps[k]);
    }
    f.end_us = median(end, repeat);
    f.raw_us = median(all, repeat);
    f.instantiate_us = median(instantiate, repeat);
    f.audit_us = f.end_us - f.raw_us;
    f.compare_us = median(two, repeat);
    f.compare_three_us = median(three, repeat);
    return f;
}

static void print(const struct figures *f, int n)
{
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;
    FILE *file;

    OK(stepgraph_session_get_info(session, &info));
    printf("%s: %s\n", info.software ? "cusim (a simulation on the CPU)" : "cuda", info.device_name);
    printf("%8s %14s %14s %14s %14s %14s %16s\n", "nodes", "end, us", "instantiate", "audit, us", "us a node", "of instantiate",
           "compare, us/node");
    for (int i = 0; i < n; i++)
        printf("%8d %14.1f %14.1f %14.1f %14.4f %14.3f %16.4f\n", f[i].nodes, f[i].end_us, f[i].instantiate_us, f[i].audit_us,
               f[i].audit_us / f[i].nodes, f[i].audit_us / f[i].instantiate_us, f[i].compare_us / f[i].nodes);
    if (!json)
        return;
    file = fopen(json, "w");
    ck_assert_msg(file != NULL, "cannot write %s", json);
    fprintf(file, "{\n  \"driver\": \"%s\",\n  \"device\": \"%s\",\n  \"repeat\": %d,\n  \"sizes\": [",
            info.software ? "cusim" : "cuda", info.device_name, repeat);
    for (int i = 0; i < n; i++)
        fprintf(file,
                "%s\n    { \"nodes\": %d, \"end_us\": %.2f, \"raw_us\": %.2f, \"instantiate_us\": %.2f, \"audit_us\": %.2f, "
                "\"audit_us_per_node\": %.5f, \"audit_of_instantiate\": %.4f, \"compare_us_per_node\": %.5f, "
                "\"compare_three_us_per_node\": %.5f }",
                i ? "," : "", f[i].nodes, f[i].end_us, f[i].raw_us, f[i].instantiate_us, f[i].audit_us,
                f[i].audit_us / f[i].nodes, f[i].audit_us / f[i].instantiate_us, f[i].compare_us / f[i].nodes,
                f[i].compare_three_us / f[i].nodes);
    fprintf(file, "\n  ]\n}\n");
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(cost_of_auditing_and_comparing)
{
    struct figures figures[SIZES];
    double unused[2];
    int n = 0;

    for (int i = 0; i < PINS; i++) {
        char name[16];
        snprintf(name, sizeof name, "pin%d", i);
        pins[i] = stepgraph_pin_address(pin_make(session, STEPGRAPH_ROLE_STATE, 4, name));
    }
    for (int i = 0; i < OUTSIDE; i++)
        outside[i] = device_make(4096);
    one_step(100, 0); /* Loads the kernels. */
    OK(stepgraph_session_wait(session));
    raw(100, &unused[0], &unused[1]);
    for (int i = 0; i < SIZES && sizes[i] <= largest; i++)
        figures[n++] = measure(sizes[i]);
    print(figures, n);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("audit costs");
    TCase *tc = audit_case(suite, "a: costs");

    tcase_add_test(tc, cost_of_auditing_and_comparing);
    return suite;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int has_value = i + 1 < argc;
        if (has_value && strcmp(argv[i], "--json") == 0)
            json = argv[++i];
        else if (has_value && strcmp(argv[i], "--nodes") == 0)
            largest = atoi(argv[++i]);
        else if (has_value && strcmp(argv[i], "--repeat") == 0)
            repeat = atoi(argv[++i]);
        else
            largest = 0;
    }
    if (largest < sizes[0] || repeat < 1 || repeat > REPEATS_MAX) {
        fprintf(stderr, "usage: %s [--json FILE] [--nodes LARGEST] [--repeat N]\n", argv[0]);
        return 2;
    }
    return unit_main(make);
}
