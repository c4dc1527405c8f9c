/* One run in a process of its own: `runner work`, started by the supervisor.
 *
 * Standard input: the job as one JSON document. Standard output: records (record.h). Standard error: the run's log.
 * SIGTERM, SIGINT, SIGHUP, a supervisor that is gone: checkpoint at the next step and exit 75.
 *
 * A resumed run repeats nothing and misses nothing: a checkpoint holds the whole curve, and an evaluation is due when
 * it is planned at this step and its split is not in the curve. */
#ifndef RUNNER_WORKER_H
#define RUNNER_WORKER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/knob.h"

struct job {
    char key[65];
    struct config config;
    int64_t seed;
    char dataset_path[4096];
    char checkpoint_folder[4096];
    int64_t checkpoint_every; /* steps; 0 = by time */
};
enum { CHECKPOINT_SECONDS = 20 }; /* between checkpoints by time */

char *job_json(const struct job *job); /* owner: caller, memory_free() */
bool job_from_json(const char *json, struct job *job, struct error *err);

/* The whole life of the process. Exit code. */
int worker_main(void);

/* Trains one job, records to `out`. *stop turns true at any time: checkpoint and return. Exit code: 0 finished or
 * diverged (the last record says which), 75 stopped, 3 environment, 2 the job cannot be begun. */
int worker_run(const struct job *job, int out, const volatile sig_atomic_t *stop);

#endif
