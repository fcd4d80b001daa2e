/* Between the runner and the words of a fact. */
#ifndef CONFORMANCE_RUNNER_H
#define CONFORMANCE_RUNNER_H

#include <stdbool.h>

/* Shared with the parent: what the child was about to say when it died. */
struct progress {
    int open;     /* a fact is open */
    int about;    /* the call that may kill has been announced */
    int complete; /* the job ran to its end */
    int count;    /* facts closed so far; in a job of cells, the one that comes */
    char id[256];
    char line[3072];
};

/* Records on the pipe, one per closed fact: verdict, id, text, each ended by a 0 byte. Verdicts: '+' held, '-' not, 'o' skipped.
 */
void telling_start(int pipe, struct progress *progress, const char *job_id, int resume_at, const char *only);
void telling_finish(void);

const char *code_name(int code);
/* Whether a job or fact of this id is asked for by --only. */
bool id_asked_for(const char *id, const char *only, bool job);

#endif
