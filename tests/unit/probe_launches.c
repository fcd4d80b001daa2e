/*
 * 40,000 small launches one by one against 20 replays of one graph of 2,000 launches: the results must be equal and the counts
 * exact. The times, host and device apart, are printed and judge nothing.
 *
 *     probe_launches [--json FILE] [--launches N] [--replays N]
 *
 * --launches is the number of nodes of the graph. With cusim the times are those of a simulation.
 */
#include <time.h>

#include "support.h"

static int nodes = 2000, replays = 20;
static const char *json;

struct figures {
    double host_us, total_us; /* Of all launches: until the last call returned, and until the device was done. */
};

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* One step: every node adds to one of eight sums, so that the order of additions is the same either way and shows. */
enum { SUMS = 8 };

static void one_step(CUdeviceptr sums)
{
    for (int i = 0; i < nodes; i++) {
        CUdeviceptr p = sums + 4 * (CUdeviceptr)(i % SUMS);
        float v = 1.0f + (float)(i % 7) / 8;
        OK(counted(session, NULL, kernels.inc, (void *[]){&p, &v}));
    }
}

static void print(const struct figures *fresh, const struct figures *replay, const stepgraph_verdict *verdict)
{
    stepgraph_session_info info = STEPGRAPH_SESSION_INFO_INIT;
    double launches = (double)nodes * replays;

    OK(stepgraph_session_get_info(session, &info));
    printf("%s: %s\n", info.software ? "cusim (a simulation on the CPU)" : "cuda", info.device_name);
    printf("%-28s %14s %14s\n", "", "one by one", "replayed");
    printf("%-28s %14.0f %14d\n", "driver calls", launches, replays);
    printf("%-28s %14.1f %14.1f\n", "host time, us", fresh->host_us, replay->host_us);
    printf("%-28s %14.1f %14.1f\n", "until done, us", fresh->total_us, replay->total_us);
    printf("%-28s %14.3f %14.3f\n", "host time per launch, us", fresh->host_us / launches, replay->host_us / replays);
    printf("%-28s %14.1f %14.1f\n", "device time per step, us", verdict->device_us_fresh, verdict->device_us_replay);
    printf("%-28s %14s %13.1fx\n", "end to end", "", fresh->total_us / replay->total_us);
    if (json) {
        FILE *f = fopen(json, "w");
        ck_assert_msg(f != NULL, "cannot write %s", json);
        fprintf(f,
                "{\n  \"driver\": \"%s\",\n  \"device\": \"%s\",\n  \"nodes\": %d,\n  \"replays\": %d,\n"
                "  \"host_us\": { \"fresh\": %.3f, \"replay\": %.3f },\n  \"total_us\": { \"fresh\": %.3f, \"replay\": %.3f },\n"
                "  \"host_us_per_launch\": { \"fresh\": %.4f, \"replay\": %.4f },\n"
                "  \"device_us_per_step\": { \"fresh\": %.3f, \"replay\": %.3f },\n  \"identical\": true\n}\n",
                info.software ? "cusim" : "cuda", info.device_name, nodes, replays, fresh->host_us, replay->host_us,
                fresh->total_us, replay->total_us, fresh->host_us / launches, replay->host_us / replays, verdict->device_us_fresh,
                verdict->device_us_replay);
        ck_assert_int_eq(fclose(f), 0);
    }
}

START_TEST(small_launches_and_replays_of_their_graph_give_the_same)
{
    stepgraph_step *step = step_make(session, "launches", 0);
    stepgraph_pin *pin = pin_make(session, STEPGRAPH_ROLE_STATE, SUMS * 4, "sums");
    CUdeviceptr sums = stepgraph_pin_address(pin), own = device_make(SUMS * 4);
    float launched[SUMS], replayed[SUMS];
    stepgraph_sample before, after;
    stepgraph_verdict verdict = STEPGRAPH_VERDICT_INIT;
    struct figures fresh, replay;
    double start;

    one_step(own); /* Loads the kernel. */
    OK(stepgraph_session_wait(session));
    put_bytes(own, (float[SUMS]){0}, sizeof launched);

    before = sample_now(session);
    start = now_us();
    for (int k = 0; k < replays; k++)
        one_step(own);
    fresh.host_us = now_us() - start;
    OK(stepgraph_session_wait(session));
    fresh.total_us = now_us() - start;
    after = sample_now(session);
    ck_assert_uint_eq(after.wrapper[STEPGRAPH_KIND_KERNEL] - before.wrapper[STEPGRAPH_KIND_KERNEL],
                      (uint64_t)nodes * (unsigned)replays);

    begin_recording(step);
    one_step(sums);
    OK(stepgraph_step_end(step));
    ck_assert_uint_eq(step_stats(step).nodes_total, nodes);
    OK(stepgraph_session_wait(session));

    before = sample_now(session);
    start = now_us();
    for (int k = 0; k < replays; k++)
        OK(stepgraph_step_replay(step));
    replay.host_us = now_us() - start;
    OK(stepgraph_session_wait(session));
    replay.total_us = now_us() - start;
    after = sample_now(session);
    ck_assert_uint_eq(after.wrapper[STEPGRAPH_KIND_KERNEL], before.wrapper[STEPGRAPH_KIND_KERNEL]);
    ck_assert_uint_eq(after.library[STEPGRAPH_KIND_GRAPH] - before.library[STEPGRAPH_KIND_GRAPH], (uint64_t)replays);
    ck_assert_uint_eq(step_stats(step).replays, replays);

    bytes_at(own, launched, sizeof launched);
    OK(stepgraph_pin_read(pin, replayed, sizeof replayed));
    ck_assert_mem_eq(launched, replayed, sizeof launched);

    /* Device times, apart from the figures above, which no event disturbed. */
    OK(stepgraph_step_set_timing(step, 1));
    for (int k = 0; k < 4; k++) {
        OK(stepgraph_step_run_begin(step, STEPGRAPH_RUN_FRESH));
        one_step(sums);
        OK(stepgraph_step_run_end(step));
    }
    for (int k = 0; k < 3; k++)
        OK(stepgraph_step_replay(step));
    OK(stepgraph_step_get_verdict(step, &verdict));
    ck_assert_int_eq(verdict.launches, nodes);
    ck_assert_int_eq(verdict.pin_launches, 0);
    print(&fresh, &replay, &verdict);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("launches");

    tcase_add_test(unit_case(suite, "e: launches"), small_launches_and_replays_of_their_graph_give_the_same);
    return suite;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int has_value = i + 1 < argc;
        if (has_value && strcmp(argv[i], "--json") == 0)
            json = argv[++i];
        else if (has_value && strcmp(argv[i], "--launches") == 0)
            nodes = atoi(argv[++i]);
        else if (has_value && strcmp(argv[i], "--replays") == 0)
            replays = atoi(argv[++i]);
        else
            nodes = 0;
    }
    if (nodes < 1 || replays < 1) {
        fprintf(stderr, "usage: %s [--json FILE] [--launches N] [--replays N]\n", argv[0]);
        return 2;
    }
    return unit_main(make);
}
