/*
 * What the files of the quick start share: a character-level language model, trained with its whole step in a CUDA graph.
 *
 * Read in this order:
 *   model.c      the parameters, and the pins that keep them in place
 *   step.c       one training step, as any framework launches it
 *   train.c      the training, on a loop of the library's that decides which steps are launched, recorded and replayed
 *   story.c      what goes wrong without pins, and the proof that nothing does with them
 *   allocator.c  why parameters move: a caching allocator
 *   relax.c      what makes replays faster than a chain of nodes: order by memory
 * The rest is plumbing: options.c text.c driver.c state.c report.c json.c main.c.
 *
 * Functions answer 0 or the exit status of the program, having said why on the standard error stream.
 */
#ifndef QUICKSTART_H
#define QUICKSTART_H

#include "stepgraph/stepgraph.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses. */
enum {
    EXIT_STORY = 1,  /* The program's own claims did not come true, or the driver failed. */
    EXIT_INPUT = 2,  /* Something the caller can mend: an option, the text, the driver, memory. */
    EXIT_REFUSED = 3 /* The library refused a replay that would have been wrong. */
};

/* Leave the function if a call answers a status. */
#define TRY(call)                                                                                                                \
    do {                                                                                                                         \
        int status_ = (call);                                                                                                    \
        if (status_ != 0)                                                                                                        \
            return status_;                                                                                                      \
    } while (0)

/* ---- main.c: saying what is wrong -------------------------------------------------------------------------------- */

/* One line on the standard error stream; answers `status`. */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* 0, or the library's own words on the standard error stream and the status that goes with them. */
int library(stepgraph_status status);

/* ---- options.c --------------------------------------------------------------------------------------------------- */

struct options {
    int steps, batch, context, vector, width, layers, check, lanes;
    double rate;
    uint64_t seed;
    const char *driver; /* auto, cuda or cusim */
    const char *json;   /* NULL: none */
    const char *draw;   /* NULL: no drawing */
    const char *trace;  /* NULL: no trace */
    const char *text;   /* NULL: this project's documentation */
    bool break_pin, break_scalar, break_feed, break_output;
    bool relax;
    bool help;
};

int options_read(struct options *options, int argc, char **argv);
void options_help(void);

/* ---- text.c ------------------------------------------------------------------------------------------------------ */

struct text {
    char name[256];     /* For people. */
    unsigned char *ids; /* The text, each character replaced by its number. */
    size_t length;
    int vocabulary; /* How many different characters there are. */
};

int text_load(struct text *text, const struct options *options);
void text_free(struct text *text);

/* ---- driver.c ---------------------------------------------------------------------------------------------------- */

/* clang-format off */
/* The kernels, in kernels.cu. */
#define KERNELS(X) \
    X(one_hot) X(embed) X(linear) X(silu) X(inverse_rms) X(normalize) X(add) X(softmax_loss) X(mean) \
    X(linear_dx) X(linear_dw) X(linear_db) X(silu_dz) X(normalize_dgain) X(normalize_row) X(normalize_da) X(embed_dtable) \
    X(count_step) X(adamw) X(adamw_by_value) X(retract) X(average)
/* clang-format on */

enum kernel {
#define X(name) KERNEL_##name,
    KERNELS(X)
#undef X
        KERNEL_COUNT
};

struct driver {
    stepgraph_session *session;
    stepgraph_session_info info;
    char choice[1600]; /* Which driver was taken, and why. */
    struct CUmod_st *module;
    struct CUfunc_st *kernels[KERNEL_COUNT];

    /* The entry points that a trainer needs of its own. Their result is 0, or a code of the driver. */
    int (*set_context)(struct CUctx_st *context);
    int (*memory_left)(size_t *free_out, size_t *total_out);
    int (*allocate)(uint64_t *address_out, size_t bytes);
    int (*release)(uint64_t address);
    int (*to_device)(uint64_t to, const void *from, size_t bytes, struct CUstream_st *stream);
    int (*to_device_at_once)(uint64_t to, const void *from, size_t bytes); /* Not on a stream, so in no recording. */
    int (*wait_for_all)(void);
    int (*to_host)(void *to, uint64_t from, size_t bytes, struct CUstream_st *stream);
    int (*load_module)(struct CUmod_st **module_out, const void *image);
    int (*unload_module)(struct CUmod_st *module);
    int (*find_function)(struct CUfunc_st **function_out, struct CUmod_st *module, const char *name);
};

int driver_open(struct driver *driver, const char *choice);
int driver_close(struct driver *driver);
/* 0, or a line that names the call. */
int driver_check(int code, const char *call);
/* Launch a kernel with one thread per result, and count it. */
int driver_launch(struct driver *driver, enum kernel kernel, int threads, void **arguments);

/* ---- allocator.c ------------------------------------------------------------------------------------------------- */

struct block {
    uint64_t address;
    uint64_t bytes;
    bool pooled; /* Part of the private pool. */
    struct block *next_free;
    struct block *next;
};

struct cache {
    struct driver *driver;
    struct block *blocks;  /* All of them. */
    struct block *free[2]; /* Free blocks, latest first: those of the driver, those of the pool. */
    uint64_t pool, pool_bytes, pool_used;
    bool private; /* Serve from the pool; see cache_record(). */
};

int cache_allocate(struct cache *cache, uint64_t bytes, struct block **block_out);
int cache_free(struct cache *cache, struct block *block);
/* A recording begins, or is over: from here on blocks come from the private pool, or no longer do. */
void cache_record(struct cache *cache, bool on);
/* What an allocation of `bytes` really takes. */
uint64_t cache_rounded(uint64_t bytes);
int cache_destroy(struct cache *cache);

/* How much of its old value the average of the loss keeps in each step. It begins at 0; train.c corrects for that. */
#define LOSS_KEEP 0.95f

/* ---- model.c ----------------------------------------------------------------------------------------------------- */

/* Memory that survives from step to step, wherever it is. */
struct tensor {
    char name[48];
    uint64_t bytes;
    uint64_t address;    /* Where the value is now: the pin's master, or the block. */
    stepgraph_pin *pin;  /* NULL: the value moves. */
    struct block *block; /* NULL: the pin holds it. */
    struct block *fresh; /* New value of a pinned tensor, still to be committed. */
};

/* The parts of a parameter. */
enum { VALUE, FIRST, SECOND, AVERAGE, PARTS };

struct parameter {
    int rows, columns;
    float radius; /* Rows are put back on a sphere of this radius. 0: they are not. */
    float weight_decay;
    uint64_t gradient;
    struct tensor part[PARTS];
};

struct layer {
    int in;
    struct parameter *weight, *bias, *gain;
    uint64_t x, z, a, inverse, y; /* Input, before and after the nonlinearity, scale of each row, output. */
};

struct model {
    const struct options *options;
    const struct text *text;
    struct driver *driver;
    struct cache cache;

    int parameter_count;
    struct parameter *parameters; /* Embedding; weight, bias and gain of each layer; weight and bias of the output. */
    struct layer *layers;
    struct tensor decay;     /* { beta1^t, beta2^t } */
    struct tensor smooth;    /* Average of the loss; see LOSS_KEEP. */
    struct tensor **tensors; /* All that survives a step. */
    size_t tensor_count;
    uint64_t state_bytes;

    stepgraph_pin *ids, *labels; /* FEED */
    stepgraph_pin *rate;         /* CELL */
    stepgraph_pin *loss;         /* OUTPUT */
    stepgraph_pin *activations;  /* SCRATCH: all that a step computes on its way. */
    stepgraph_pin *pool;         /* SCRATCH: where the allocator takes blocks from while a step records. */

    uint64_t target, embedded, logits, d_logits, row_loss, stray_loss, row_shared; /* In the activations. */
    uint64_t d_y, d_a, d_z, d_embedded;

    stepgraph_pin **commit_pins; /* Lists for stepgraph_pin_commit_many(). */
    uint64_t *commit_addresses;
    int *host_ids, *host_labels; /* The batch. */
    float host_rate;             /* The learning rate, where --break scalar passes it by value. */
    int callback_status;         /* Of a callback that failed; see train.c. */
};

int model_create(struct model *model, const struct options *options, const struct text *text, struct driver *driver);
/* Give every tensor that survives a step a pin, and move its value there. `without`: leave this one out; NULL: none. */
int model_pin(struct model *model, const char *without);
int model_destroy(struct model *model);

/* ---- step.c ------------------------------------------------------------------------------------------------------ */

/* Hand over batch and learning rate of training step `number`. */
int step_feed(struct model *model, int number);
/* Launch the whole training step, to run or to be recorded. */
int step_enqueue(struct model *model, stepgraph_step *step);

/* ---- state.c ----------------------------------------------------------------------------------------------------- */

/* A copy of all that survives a step, in host memory. */
struct state {
    unsigned char *bytes;
};

int state_save(struct model *model, struct state *state);
int state_load(struct model *model, const struct state *state);
void state_free(struct state *state);

/* The same steps done two ways. */
struct comparison {
    int steps;
    bool identical; /* State and losses, every bit. */
    uint64_t differing_bytes;
    uint64_t state_bytes;
    char first[48];       /* First tensor that differs. */
    uint64_t checksum[2]; /* Fresh, replay. */
    float loss[2];        /* Of the last step. */
    int differing_losses;
};

void state_compare(const struct model *model, const struct state *fresh, const struct state *replay, const float *fresh_losses,
                   const float *replay_losses, int steps, struct comparison *comparison_out);

/* ---- train.c ----------------------------------------------------------------------------------------------------- */

struct progress {
    float first_loss, last_loss; /* Averaged. */
    double seconds;
    int replays;
};

int loop_create(struct model *model, stepgraph_loop **loop_out);
/* Train step `number`, in whichever way the loop decides. */
int loop_step(struct model *model, stepgraph_loop *loop, stepgraph_turn *turn, int number);
/* 0 if the loop replays; else says why it does not, also in `words`, and answers what the program ends with. */
int loop_judge(const stepgraph_loop *loop, char *words, size_t bytes);
/* Train for options->steps steps. */
int train(struct model *model, stepgraph_loop *loop, struct progress *progress_out);

/* ---- story.c ----------------------------------------------------------------------------------------------------- */

/* What the library measured of the step, launched one by one and replayed. */
struct measured {
    stepgraph_verdict verdict;
    stepgraph_step_stats step;
    stepgraph_pin_stats pins;
    uint32_t stage_count;
    stepgraph_stage stages[16];
};

/* All that the program found out; report.c prints it, with what the loop knows. */
struct findings {
    struct comparison unpinned, pinned;
    int moved;                   /* Parameters that lie elsewhere than where the unpinned graph looks for them. */
    char unpinned_refusal[1024]; /* The library's words about the unpinned graph, */
    char refusal[1024];          /* and about the pinned one; "". */
    struct measured measured;
    struct progress progress;
};

/* Record over parameters that move, be refused, insist, and see what comes out. Leaves the state as it was. */
int story_unpinned(struct model *model, struct findings *findings);
/* The same over pinned parameters on the loop, until it replays; and prove that. Leaves the state as it was. */
int story_pinned(struct model *model, stepgraph_loop *loop, struct findings *findings);

/* ---- relax.c ----------------------------------------------------------------------------------------------------- */

/* What this program tells the library of its kernels. */
stepgraph_relax_config relax_config(const struct options *options);

/* ---- report.c ---------------------------------------------------------------------------------------------------- */

void report_start(const struct model *model);
void report_unpinned(const struct model *model, const struct findings *findings);
void report_audit(const stepgraph_audit *audit);
void report_check(const stepgraph_check *check);
void report_relax(const stepgraph_relax *relax);
void report_pinned(const struct findings *findings);
void report_measured(const struct driver *driver, const struct measured *measured);
/* Everything as data. */
void report_json(FILE *file, const struct model *model, stepgraph_loop *loop, const struct findings *findings);
void report_refusal_json(FILE *file, const struct model *model, const stepgraph_loop *loop, const char *words);

/* ---- json.c ------------------------------------------------------------------------------------------------------ */

struct json {
    FILE *file;
    int depth;
    bool comma; /* Something stands before the next value. */
};

/* `key` is NULL inside an array and for the outermost object. */
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_text(struct json *json, const char *key, const char *value);
void json_number(struct json *json, const char *key, double value);
void json_truth(struct json *json, const char *key, bool value);
/* What is JSON already. */
void json_raw(struct json *json, const char *key, const char *value);

#endif
