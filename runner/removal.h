/* Results that nobody wants any more: first out of sight, then, when garbage is collected, gone.
 *
 * Hidden is what no experiment names: its numbers are in no view, table or figure, and its runs are still there under
 * their keys. Running an experiment file that plans them brings them back as they were, until gc. */
#ifndef RUNNER_REMOVAL_H
#define RUNNER_REMOVAL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

/* Each needs a transaction. *runs: how many are out of sight now that were not. */
bool removal_hide_experiment(sqlite3 *db, int64_t experiment, int64_t *runs, struct error *err);
bool removal_hide_run(sqlite3 *db, const char *key, int64_t *runs, struct error *err);

enum garbage {
    GARBAGE_RUNS,        /* hidden ones, in the database */
    GARBAGE_CHECKPOINTS, /* and final weights of runs that are not there; checkpoints of finished ones */
    GARBAGE_CACHES,      /* made anew from the texts when needed */
    GARBAGE_LOGS,        /* of runs that are not there */
    GARBAGE_TASKS,       /* lists of cluster sweeps none of whose runs is there, and what their tasks wrote */
    GARBAGE_TEMPORARY,   /* files that a killed process left half-written */
    GARBAGE_COUNT
};
const char *garbage_name(enum garbage kind); /* "hidden runs", ... */

struct garbage_found {
    int64_t count[GARBAGE_COUNT];
    uint64_t bytes[GARBAGE_COUNT]; /* of files */
};

/* Counts what is garbage beside the database and in it; removes it when `remove`, which needs the database's lock and
 * makes its own transaction. Files whose names are none of ours stay, and so does what another database in the same
 * folder has. False when something could not be removed: the rest is. False too, and nothing is, while a run of any of
 * these databases is on a cluster: its task needs what is there. */
bool garbage_collect(sqlite3 *db, const char *database_path, bool remove, struct garbage_found *found,
                     struct error *err);

#endif
