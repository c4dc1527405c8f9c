/* Trains the runs of a sweep: one worker process each, as many at once as asked, every record into the database.
 *
 * One poll() loop and no threads. A worker that crashes, is killed, hangs or sends nonsense costs its own run; when
 * three runs in a row fail of one cause (cause.h), the rest would too, and the sweep stops. The first stop signal asks
 * every worker to write a checkpoint and leave; the second kills them. */
#ifndef RUNNER_SUPERVISOR_H
#define RUNNER_SUPERVISOR_H

#include "runner/progress.h"
#include "runner/sweep.h"

struct supervisor_options {
    size_t workers;
    int64_t checkpoint_every; /* 0 = by time */
    double hang_after;        /* seconds without a record from a worker, then it is killed; 0 = never */
    const char *checkpoint_folder, *log_folder;
    const char *const *command; /* a worker's argv; NULL: this program's `work` */
    int signals;                /* of signals_open() */
    enum progress_mode progress;
};

struct supervisor_outcome {
    size_t finished, diverged, failed, interrupted; /* in this command */
    int stop_signal;                                /* the first one received; 0: none */
    bool killed;                                    /* a second one came */
};

/* Cores this process may use. */
size_t supervisor_cores(void);

/* wanted[i]: run i of the sweep shall be trained. False and err when the machine or the database fails: what could be
 * saved has been, and the runs concerned are resumable. */
bool supervise(struct database *database, const struct sweep *sweep, const bool *wanted,
               const struct supervisor_options *options, struct supervisor_outcome *outcome, struct error *err);

#endif
