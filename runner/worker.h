/* One run in a process of its own: `runner work`, started by the supervisor.
 *
 * Standard input: the job as one JSON document. Standard output: records (below), native byte order, one machine.
 * Standard error: the run's log. SIGTERM, SIGINT, SIGHUP: checkpoint at the next step and exit 75. */
#ifndef RUNNER_WORKER_H
#define RUNNER_WORKER_H

#include "runner/database.h"

struct job {
    char key[65];
    struct config config;
    int64_t seed;
    char dataset_path[4096];
    char checkpoint_folder[4096];
    int64_t checkpoint_every; /* steps; 0 = by time */
};

char *job_json(const struct job *job); /* owner: caller, memory_free() */
bool job_from_json(const char *json, struct job *job, struct error *err);

enum record_kind {
    RECORD_START = 1,  /* struct run_environment, int64 step, counts, then the curve so far */
    RECORD_STEP,       /* struct step_record */
    RECORD_EVALUATION, /* struct evaluation_row */
    RECORD_CHECKPOINT, /* int64 steps_done: durable on disk */
    RECORD_FINISHED,   /* int64 steps: the last record of a run that is complete */
    RECORD_DIVERGED,   /* int64 step, char reason[128] */
    RECORD_NOTE,       /* text for the user */
};

struct record_header {
    uint32_t kind, size; /* size of the payload */
};

int worker_main(void); /* exit code */

#endif
