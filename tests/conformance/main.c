/*
 * Facts about the CUDA driver, checked against the driver of one's choice: the real one on a card, or a software driver.
 *
 * Each job runs in a process of its own, forked before anything has touched the driver, with a limit of time per fact; a crash or
 * a hang is an observation like any other. One line per fact:
 *
 *     ok   ID  WHAT -> CODE NAME | capture state | what the graph held | what a replay produced
 *     FAIL ID  the same, with "(expected ...)" behind what differs
 *     skip ID  why
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"
#include "runner.h"

/* The kernels are one long string. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
#include "kernels_ptx.h"
#pragma GCC diagnostic pop

enum { SECONDS_PER_FACT = 15, SECONDS_TO_START = 60, MAX_RUNNING = 64 };

static const struct job *const themes[] = {
    capture_mode_rule_jobs, capture_end_jobs, fork_event_jobs,  argument_jobs, copy_jobs, memory_node_jobs, update_jobs,
    node_param_jobs,        lifetime_jobs,    host_memory_jobs, pointer_jobs,  vmm_jobs,  symbol_jobs,      context_jobs,
    loading_jobs,           graph_jobs,       rewrite_jobs,
};

static struct {
    const char *driver;
    const char *ptx;
    const char *only;
    int jobs;
    int verbose;
    bool quiet;
    bool software;
} opt;

static struct {
    long passed, failed, skipped;
} total;

/* A job on its way: waiting, running or told. */
struct task {
    const struct job *job;
    pid_t pid;
    int records, errors; /* read ends */
    char *inbox, *noise, *report;
    size_t inbox_len, noise_len, report_len;
    int resume;
    double deadline, started;
    bool opened, timed_out, finished, printed;
    struct progress *progress;
};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void grow(char **buffer, size_t *length, const char *data, size_t n)
{
    char *p = realloc(*buffer, *length + n + 1);

    if (!p)
        abort();
    memcpy(p + *length, data, n);
    p[*length + n] = '\0';
    *buffer = p;
    *length += n;
}

static void report(struct task *t, char verdict, const char *id, const char *text)
{
    const char *word = verdict == '+' ? "ok   " : verdict == '-' ? "FAIL " : "skip ";

    if (verdict == '+')
        total.passed++;
    else if (verdict == '-')
        total.failed++;
    else
        total.skipped++;
    if (verdict == '+' && opt.quiet)
        return;
    grow(&t->report, &t->report_len, word, strlen(word));
    grow(&t->report, &t->report_len, id, strlen(id));
    grow(&t->report, &t->report_len, "  ", 2);
    grow(&t->report, &t->report_len, text, strlen(text));
    if (verdict == '+' && t->job->deviation && opt.verbose) {
        grow(&t->report, &t->report_len, " | allowed to differ: ", 22);
        grow(&t->report, &t->report_len, t->job->deviation, strlen(t->job->deviation));
    }
    grow(&t->report, &t->report_len, "\n", 1);
}

/* ---- the child -------------------------------------------------------------------------------------------------- */

static _Noreturn void child(const struct task *t, int records, int errors)
{
    char why[512];
    const struct job *job = t->job;

    signal(SIGPIPE, SIG_DFL);
    dup2(errors, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    telling_start(records, t->progress, job->id, t->resume, opt.only);
    env.ptx = opt.ptx;
    if (!driver_open(opt.driver, why, sizeof why))
        skip("the driver does not load: %s", why);
    if (!(job->flags & JOB_RAW))
        env_open();
    job->run(job->arg);
    telling_finish();
    fflush(NULL);
    _exit(0);
}

static void start(struct task *t)
{
    int records[2], errors[2];

    if (pipe(records) != 0 || pipe(errors) != 0) {
        perror("pipe");
        exit(2);
    }
    memset(t->progress, 0, sizeof *t->progress);
    fflush(NULL);
    t->pid = fork();
    if (t->pid < 0) {
        perror("fork");
        exit(2);
    }
    if (t->pid == 0) {
        close(records[0]);
        close(errors[0]);
        child(t, records[1], errors[1]);
    }
    close(records[1]);
    close(errors[1]);
    fcntl(records[0], F_SETFL, O_NONBLOCK);
    fcntl(errors[0], F_SETFL, O_NONBLOCK);
    t->records = records[0];
    t->errors = errors[0];
    t->opened = false;
    t->timed_out = false;
    t->inbox_len = 0;
    t->started = seconds();
    t->deadline = t->started + SECONDS_TO_START; /* the first fact waits for the context and the kernels */
}

/* ---- the parent ------------------------------------------------------------------------------------------------- */

static void drain(int fd, char **buffer, size_t *length, size_t limit)
{
    char chunk[4096];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && *length < limit)
            grow(buffer, length, chunk, (size_t)n);
}

static void read_records(struct task *t)
{
    size_t at = 0;

    drain(t->records, &t->inbox, &t->inbox_len, SIZE_MAX);
    for (;;) {
        char *id, *id_end, *text_end;
        size_t left = t->inbox_len - at;

        if (left < 3)
            break;
        id = t->inbox + at + 1;
        id_end = memchr(id, 0, left - 1);
        if (!id_end)
            break;
        text_end = memchr(id_end + 1, 0, left - 2 - (size_t)(id_end - id));
        if (!text_end)
            break;
        report(t, t->inbox[at], id, id_end + 1);
        t->deadline = seconds() + SECONDS_PER_FACT;
        at = (size_t)(text_end - t->inbox) + 1;
    }
    if (at) {
        memmove(t->inbox, t->inbox + at, t->inbox_len - at);
        t->inbox_len -= at;
    }
}

static void end_of_child(struct task *t, int status)
{
    struct progress *p = t->progress;
    const struct job *job = t->job;
    char text[sizeof p->line + 256];
    char how[128];
    const char *id = p->open ? p->id : job->id;
    bool may_die = (job->flags & JOB_MAY_DIE) != 0;
    bool ok = false;

    if (t->timed_out) {
        snprintf(how, sizeof how, "no answer within %d s", t->opened ? SECONDS_PER_FACT : SECONDS_TO_START);
    } else if (WIFSIGNALED(status)) {
        int sig = WTERMSIG(status);

        snprintf(how, sizeof how, "the process died of signal %d (%s)", sig, strsignal(sig));
        ok = may_die && p->about && (sig == SIGSEGV || sig == SIGBUS || sig == SIGABRT);
    } else if (WEXITSTATUS(status) != 0) {
        snprintf(how, sizeof how, "the process ended with status %d", WEXITSTATUS(status));
    } else {
        /* It may have stopped at a cell for want of an entry or a working setting up: the others are not concerned. */
        if (!p->complete && job->cells && p->count < job->cells) {
            t->resume = p->count;
            start(t);
            return;
        }
        t->finished = true;
        return;
    }
    snprintf(text, sizeof text, "%s%s%s%s", p->line, p->line[0] ? " | " : "", how, ok ? "" : " (expected an answer)");
    if (id_asked_for(id, opt.only, false))
        report(t, ok ? '+' : '-', id, text);
    /* A job of cells goes on behind the one that it died of. */
    if (job->cells && p->open && p->count + 1 < job->cells) {
        t->resume = p->count + 1;
        start(t);
        return;
    }
    t->finished = true;
}

static void finish_text(struct task *t)
{
    if (t->noise_len && (opt.verbose || (t->report && strstr(t->report, "FAIL ") == t->report))) {
        grow(&t->report, &t->report_len, "     | its own words: ", 22);
        for (size_t i = 0; i < t->noise_len; i++) {
            char c = t->noise[i];

            if (c == '\n' && i + 1 < t->noise_len)
                grow(&t->report, &t->report_len, "\n     | ", 8);
            else if (c != '\n')
                grow(&t->report, &t->report_len, &c, 1);
        }
        grow(&t->report, &t->report_len, "\n", 1);
    }
    if (opt.verbose > 1) {
        char line[320];
        int n = snprintf(line, sizeof line, "     | %s took %.2f s\n", t->job->id, seconds() - t->started);

        grow(&t->report, &t->report_len, line, (size_t)n);
    }
}

static void poll_tasks(struct task **running, int *count)
{
    struct pollfd fds[2 * MAX_RUNNING];
    int n = 0;

    for (int i = 0; i < *count; i++) {
        fds[n++] = (struct pollfd){running[i]->records, POLLIN, 0};
        fds[n++] = (struct pollfd){running[i]->errors, POLLIN, 0};
    }
    poll(fds, (nfds_t)n, 100);
    for (int i = 0; i < *count; i++) {
        struct task *t = running[i];
        int status;
        pid_t pid;

        read_records(t);
        drain(t->errors, &t->noise, &t->noise_len, 8192);
        if (!t->opened && t->progress->open) {
            t->opened = true;
            t->deadline = seconds() + SECONDS_PER_FACT;
        }
        pid = waitpid(t->pid, &status, WNOHANG);
        if (pid == 0 && seconds() > t->deadline) {
            t->timed_out = true;
            kill(t->pid, SIGKILL);
            pid = waitpid(t->pid, &status, 0);
        }
        if (pid != t->pid)
            continue;
        read_records(t);
        drain(t->errors, &t->noise, &t->noise_len, 8192);
        close(t->records);
        close(t->errors);
        end_of_child(t, status);
        if (t->finished) {
            finish_text(t);
            running[i--] = running[--*count];
        }
    }
}

static void print(struct task *t)
{
    if (!t->finished || t->printed)
        return;
    if (t->report)
        fputs(t->report, stdout);
    free(t->report);
    t->report = NULL;
    t->printed = true;
}

static void run_all(struct task *tasks, size_t n)
{
    struct task *running[MAX_RUNNING];
    size_t next, printed = 0;
    int count = 0;

    for (int pass = 0; pass < 2; pass++) {
        int limit = pass ? 1 : opt.jobs;

        next = 0;
        while (next < n || count) {
            while (next < n && count < limit) {
                struct task *t = &tasks[next++];

                if (!!(t->job->flags & JOB_ALONE) != pass || t->finished)
                    continue;
                start(t);
                running[count++] = t;
            }
            if (count)
                poll_tasks(running, &count);
            while (printed < n && tasks[printed].printed)
                printed++;
            for (size_t i = printed; i < n && (tasks[i].finished || (!pass && tasks[i].job->flags & JOB_ALONE)); i++)
                print(&tasks[i]);
            fflush(stdout);
        }
    }
}

/* A software driver says so by exporting a name that begins with its own. dlopen alone does not initialise a driver; it happens
 * in a child. */
static bool is_software(const char *path)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

        _exit(library && dlsym(library, "cusim_version") ? 10 : 0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 10;
}

static size_t collect(struct task *tasks, bool count_only)
{
    size_t n = 0;

    for (size_t i = 0; i <= sizeof themes / sizeof *themes; i++) {
        const struct job *job = i ? themes[i - 1] : capture_mode_jobs();

        for (; job->id; job++) {
            if (!id_asked_for(job->id, opt.only, true))
                continue;
            if (!count_only)
                tasks[n].job = job;
            n++;
        }
    }
    return n;
}

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    long size;

    if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0) {
        rewind(f);
        text = calloc((size_t)size + 1, 1);
        if (text && fread(text, 1, (size_t)size, f) != (size_t)size) {
            free(text);
            text = NULL;
        }
    }
    if (f)
        fclose(f);
    return text;
}

static void list(const struct task *tasks, size_t n, bool deviations)
{
    for (size_t i = 0; i < n; i++) {
        const struct job *job = tasks[i].job;

        if (deviations) {
            if (job->deviation)
                printf("%s%s: %s\n", job->id, job->flags & JOB_CARD_ONLY ? " (card only)" : "", job->deviation);
        } else if (job->cells) {
            for (int c = 0; c < job->cells; c++)
                printf("%s\n", job->cell(job->arg, c));
        } else {
            printf("%s\n", job->id);
        }
    }
}

static int usage(const char *program, int status)
{
    fprintf(status ? stderr : stdout,
            "usage: %s --driver PATH [--kernels PTX] [--only PREFIX] [-j N] [-q] [-v] [--list] [--deviations]\n"
            "  --driver PATH    the driver to check, for example libcuda.so.1\n"
            "  --kernels PTX    the test kernels; left out: those built in\n"
            "  --only PREFIX    facts whose id begins with PREFIX\n"
            "  -j N             N processes at a time; facts that measure time run alone at the end\n"
            "  -q               only what failed or was skipped\n"
            "  -v               what the processes printed, and why a fact may differ; -vv: times too\n"
            "  --list           the ids of the jobs; one job may tell several facts\n"
            "  --deviations     facts where the drivers may differ, and why\n",
            program);
    return status;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"driver", required_argument, NULL, 'd'}, {"kernels", required_argument, NULL, 'k'},
        {"only", required_argument, NULL, 'o'},   {"list", no_argument, NULL, 'l'},
        {"deviations", no_argument, NULL, 'D'},   {"jobs", required_argument, NULL, 'j'},
        {"verbose", no_argument, NULL, 'v'},      {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    bool listing = false, deviations = false;
    struct task *tasks;
    struct progress *progress;
    size_t n;
    int c;

    opt.jobs = (int)sysconf(_SC_NPROCESSORS_ONLN);
    opt.ptx = kernels_ptx;
    while ((c = getopt_long(argc, argv, "d:k:o:lj:vqh", options, NULL)) != -1) {
        switch (c) {
        case 'd':
            opt.driver = optarg;
            break;
        case 'k':
            opt.ptx = slurp(optarg);
            if (!opt.ptx) {
                fprintf(stderr, "%s: cannot read %s\n", argv[0], optarg);
                return 2;
            }
            break;
        case 'o':
            opt.only = optarg;
            break;
        case 'l':
            listing = true;
            break;
        case 'D':
            deviations = true;
            break;
        case 'j':
            opt.jobs = atoi(optarg);
            break;
        case 'v':
            opt.verbose++;
            break;
        case 'q':
            opt.quiet = true;
            break;
        case 'h':
            return usage(argv[0], 0);
        default:
            return usage(argv[0], 2);
        }
    }
    if (optind < argc || (!opt.driver && !listing && !deviations))
        return usage(argv[0], 2);
    if (opt.jobs < 1)
        opt.jobs = 1;
    if (opt.jobs > MAX_RUNNING)
        opt.jobs = MAX_RUNNING;

    n = collect(NULL, true);
    tasks = calloc(n + 1, sizeof *tasks);
    progress = mmap(NULL, (n + 1) * sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!tasks || progress == MAP_FAILED) {
        perror("memory");
        return 2;
    }
    collect(tasks, false);
    if (listing || deviations) {
        list(tasks, n, deviations);
        return 0;
    }
    if (n == 0) {
        fprintf(stderr, "%s: no fact begins with '%s'\n", argv[0], opt.only);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    opt.software = is_software(opt.driver);
    for (size_t i = 0; i < n; i++) {
        tasks[i].progress = &progress[i];
        if ((tasks[i].job->flags & JOB_CARD_ONLY) && opt.software) {
            report(&tasks[i], 'o', tasks[i].job->id, tasks[i].job->deviation);
            tasks[i].finished = true;
        }
    }
    run_all(tasks, n);
    printf("%ld passed, %ld failed, %ld skipped\n", total.passed, total.failed, total.skipped);
    return total.failed || !total.passed ? 1 : 0;
}
