/*
 * Introduces the quick start's options. Nothing of the library.
 */
#include "quickstart.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct options defaults = {
    .steps = 400,
    .batch = 32,
    .context = 8,
    .vector = 16,
    .width = 64,
    .layers = 4,
    .check = 20,
    .rate = 0.01,
    .seed = 1,
    .driver = "auto",
};

/* Whole numbers, each with what is sensible. */
static const struct {
    const char *name;
    size_t offset;
    int low, high;
    const char *help;
} numbers[] = {
    {"--steps", offsetof(struct options, steps), 1, 10000000, "training steps"},
    {"--batch", offsetof(struct options, batch), 1, 65536, "contexts per step"},
    {"--context", offsetof(struct options, context), 1, 1024, "characters that the model sees"},
    {"--vector", offsetof(struct options, vector), 1, 1024, "numbers per character"},
    {"--width", offsetof(struct options, width), 1, 16384, "numbers per hidden layer"},
    {"--layers", offsetof(struct options, layers), 1, 256, "hidden layers"},
    {"--lanes", offsetof(struct options, lanes), 0, 64, "with --relax, nodes that may run at once; 0: as many as are fastest"},
    {"--check", offsetof(struct options, check), 3, 10000, "steps in the proof that the graph is right"},
};

enum { NUMBERS = sizeof numbers / sizeof *numbers };

void options_help(void)
{
    const unsigned char *bytes = (const unsigned char *)&defaults;

    printf("quickstart: train a character-level language model with its whole step in a CUDA graph\n\n");
    for (size_t i = 0; i < NUMBERS; i++) {
        int value;
        memcpy(&value, bytes + numbers[i].offset, sizeof value);
        printf("  %-10s N      %s (%d)\n", numbers[i].name, numbers[i].help, value);
    }
    printf(
        "  --rate     X      highest learning rate (%g)\n"
        "  --seed     N      of initial values and batches (%d)\n"
        "  --text     FILE   what to learn (this project's own documentation)\n"
        "  --driver   WHICH  cuda: a card; cusim: the software driver; auto: STEPGRAPH_DRIVER, else a card, else cusim (auto)\n"
        "  --json     FILE   write the findings as data\n"
        "  --draw     FILE   write the graph for Graphviz: dot -Tsvg FILE\n"
        "  --trace    FILE   write the last steps as trace events, for Perfetto or chrome://tracing\n"
        "  --relax           replay the step in the order that its memory needs, where that is faster\n"
        "  --break    WHAT   pin: leave one parameter without a pin; scalar: pass the learning rate by value; feed: copy the "
        "batch\n"
        "                    by a call that no graph records; output: write the loss elsewhere. Refused, by name\n"
        "  --help\n\n"
        "Exit status: 0 fine; 1 a claim of the program did not come true; 2 bad input; 3 refused by the library.\n",
        defaults.rate, (int)defaults.seed);
}

static int read_number(const char *name, const char *value, int low, int high, int *number_out)
{
    char *end;

    errno = 0;
    long number = strtol(value, &end, 10);
    if (end == value || *end != 0 || errno != 0 || number < low || number > high)
        return fail(EXIT_INPUT, "%s takes a whole number from %d to %d, not '%s'", name, low, high, value);
    *number_out = (int)number;
    return 0;
}

static int read_option(struct options *options, const char *name, const char *value)
{
    char *end;

    for (size_t i = 0; i < NUMBERS; i++)
        if (strcmp(name, numbers[i].name) == 0) {
            int number;
            TRY(read_number(name, value, numbers[i].low, numbers[i].high, &number));
            memcpy((unsigned char *)options + numbers[i].offset, &number, sizeof number);
            return 0;
        }

    if (strcmp(name, "--seed") == 0) {
        int seed;
        TRY(read_number(name, value, 0, INT_MAX, &seed));
        options->seed = (uint64_t)seed;
    } else if (strcmp(name, "--rate") == 0) {
        options->rate = strtod(value, &end);
        if (end == value || *end != 0 || !isfinite(options->rate) || options->rate <= 0 || options->rate > 1)
            return fail(EXIT_INPUT, "--rate takes a number above 0 and up to 1, not '%s'", value);
    } else if (strcmp(name, "--driver") == 0) {
        if (strcmp(value, "auto") != 0 && strcmp(value, "cuda") != 0 && strcmp(value, "cusim") != 0)
            return fail(EXIT_INPUT, "--driver takes auto, cuda or cusim, not '%s'", value);
        options->driver = value;
    } else if (strcmp(name, "--break") == 0) {
        options->break_pin = strcmp(value, "pin") == 0;
        options->break_scalar = strcmp(value, "scalar") == 0;
        options->break_feed = strcmp(value, "feed") == 0;
        options->break_output = strcmp(value, "output") == 0;
        if (!options->break_pin && !options->break_scalar && !options->break_feed && !options->break_output)
            return fail(EXIT_INPUT, "--break takes pin, scalar, feed or output, not '%s'", value);
    } else if (strcmp(name, "--json") == 0) {
        options->json = value;
    } else if (strcmp(name, "--draw") == 0) {
        options->draw = value;
    } else if (strcmp(name, "--trace") == 0) {
        options->trace = value;
    } else if (strcmp(name, "--text") == 0) {
        options->text = value;
    } else if (strcmp(name, "--relax") == 0) {
        return fail(EXIT_INPUT, "--relax takes no value, not '%s'", value);
    } else {
        return fail(EXIT_INPUT, "there is no option '%s'; --help lists them", name);
    }
    return 0;
}

int options_read(struct options *options, int argc, char **argv)
{
    *options = defaults;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            options->help = true;
            return 0;
        }

        if (strcmp(argv[i], "--relax") == 0) {
            options->relax = true;
            continue;
        }

        /* Both --name value and --name=value. */
        char name[32];
        const char *value = strchr(argv[i], '=');
        size_t length = value != NULL ? (size_t)(value - argv[i]) : strlen(argv[i]);
        if (strncmp(argv[i], "--", 2) != 0 || length >= sizeof name)
            return fail(EXIT_INPUT, "there is no option '%s'; --help lists them", argv[i]);
        memcpy(name, argv[i], length);
        name[length] = 0;

        if (value != NULL)
            value++;
        else if (i + 1 < argc)
            value = argv[++i];
        else
            value = "";
        TRY(read_option(options, name, value));
    }

    const char *const files[] = {options->json, options->draw, options->trace, options->text};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] != NULL && *files[i] == 0)
            return fail(EXIT_INPUT, "--json, --draw, --trace and --text take the name of a file");
    /* Kernels number their threads with an int. */
    int64_t widest = (int64_t)options->context * options->vector;
    if (widest < options->width)
        widest = options->width;
    int64_t rows = options->batch > options->width ? options->batch : options->width;
    if (widest * rows > INT_MAX / 2 || (int64_t)options->batch * 256 > INT_MAX / 2)
        return fail(EXIT_INPUT,
                    "--batch %d, --context %d, --vector %d and --width %d make a matrix of more than %d numbers; make "
                    "one of them smaller",
                    options->batch, options->context, options->vector, options->width, INT_MAX / 2);
    return 0;
}
