/* A sweep on a cluster looked at from outside, without its file: for `status` and `cancel`. */
#ifndef RUNNER_CLUSTER_REFRESH_H
#define RUNNER_CLUSTER_REFRESH_H

#include "runner/cluster.h"
#include "runner/database.h"

/* Takes over what the tasks have written. checkpoints: where final weights go. *left: runs of its rounds that have not
 * ended. cancelled: the tasks are over, and what has not ended has failed for that reason. */
bool cluster_refresh(struct database *database, const struct cluster *cluster, const char *checkpoints, bool cancelled,
                     size_t *left, struct error *err);

/* *active: tasks of all rounds that wait or run. One squeue. */
bool cluster_active(const struct cluster *cluster, size_t *active, struct error *err);

/* Whether a run needs no task any more, and how many still do, by the database alone. */
bool cluster_run_ended(sqlite3 *db, const char *key);
size_t cluster_left(sqlite3 *db, const struct cluster *cluster);

#endif
