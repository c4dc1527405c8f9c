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

/* Tasks of one experiment on a cluster that are in one state. */
struct status_tasks {
    char *experiment, state[40], reason[80]; /* the scheduler's words */
    int64_t count;
};

struct status {
    char holder[512];                 /* who trains now; "" = nobody */
    bool elsewhere;                   /* tasks of a cluster train, whoever holds the database */
    const struct status_tasks *tasks; /* whoever reads the status may give them; the caller's */
    size_t task_count;
    struct status_experiment *experiments;
    size_t experiment_count;
    struct status_run *runs; /* those that train */
    size_t run_count;
};

/* Without a holder, runs in state running are those of a process that is gone: counted as interrupted. NULL and err.
 * Owner: caller, status_free(). */
struct status *status_read(sqlite3 *db, const char *path, struct error *err);
/* elsewhere: tasks of a cluster train, also when nobody holds the lock. */
struct status *status_read_elsewhere(sqlite3 *db, const char *path, bool elsewhere, struct error *err);
void status_free(struct status *status); /* takes NULL */

void status_print(const struct status *status, int width, FILE *out);
void status_print_json(const struct status *status, FILE *out);

#endif
