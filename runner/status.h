/* What runs now and how far it is, read from results.db and its lock: from any terminal.
 *
 * Speed is what the present worker of a run has done since it started, evaluations included; finished runs and steps
 * before a resume do not count. What is left of an experiment is its work over the speed of all that runs. */
#ifndef RUNNER_STATUS_H
#define RUNNER_STATUS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/error.h"
#include "runner/database.h"

struct status_run {
    char *experiment, *variant, key[65];
    int64_t seed, step, steps;
    double loss, steps_per_second, seconds_left; /* not a number: not known */
};

struct status_experiment {
    int64_t id;
    char *name;
    int64_t counts[RUN_INTERRUPTED + 1]; /* by enum run_state */
    double seconds_left;
};

struct status {
    char holder[512]; /* who trains now; "" = nobody */
    struct status_experiment *experiments;
    size_t experiment_count;
    struct status_run *runs; /* those that train */
    size_t run_count;
};

/* Without a holder, runs in state running are those of a process that is gone: counted as interrupted. NULL and err.
 * Owner: caller, status_free(). */
struct status *status_read(sqlite3 *db, const char *path, struct error *err);
/* The same, where `holder` trains when nobody holds the lock. */
struct status *status_read_held(sqlite3 *db, const char *path, const char *holder, struct error *err);
void status_free(struct status *status); /* takes NULL */

void status_print(const struct status *status, int width, FILE *out);
void status_print_json(const struct status *status, FILE *out);

#endif
