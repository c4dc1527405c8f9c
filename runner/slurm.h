/* Talking to Slurm through its commands: sbatch, squeue, scancel, scontrol.
 *
 * A controller that is busy says "Socket timed out" and may have done what it was asked all the same. So jobs are known
 * by names that nobody else uses, and are looked for by name before each attempt to submit; every call has a time limit
 * and a bounded number of attempts. RUNNER_SLURM_SECONDS is the unit of patience (10): time between two looks at the
 * queue; a call may take six of them, but no more than two minutes. */
#ifndef RUNNER_SLURM_H
#define RUNNER_SLURM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* One element of an array. */
struct slurm_task {
    char name[200], job[24]; /* number of the array */
    int64_t index;
    char state[40], reason[80]; /* Slurm's words */
};

struct slurm_queue {
    struct slurm_task *tasks;
    size_t count;
};

double slurm_patience(void);

/* One squeue for all names (jobs that ended lately included). expected: about how many tasks there will be. Owner:
 * caller, slurm_queue_release(). */
bool slurm_look(const char *const *names, size_t count, size_t expected, struct slurm_queue *queue, struct error *err);
void slurm_queue_release(struct slurm_queue *queue);

/* Submits the script under the name, once, whatever happens. after: the number of an array that has to end first, in
 * whatever way; NULL: none. job gets the array's number. claim: the file its first task makes (task.h), which proves
 * that it was submitted. note is told of each attempt that failed. */
bool slurm_submit(const char *name, const char *script, const char *after, const char *claim, char job[24],
                  void (*note)(const char *text), struct error *err);

/* Ends all jobs of these names; fine when there are none. */
bool slurm_cancel(const char *const *names, size_t count, struct error *err);

/* MaxArraySize: an array's highest index is one less. */
bool slurm_array_limit(size_t *limit, struct error *err);

enum slurm_life { SLURM_WAITS, SLURM_RUNS, SLURM_OVER, SLURM_UNKNOWN };
enum slurm_life slurm_life_of(const char *state);

#endif
