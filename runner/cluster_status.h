/* What `status` can tell of sweeps on a cluster: their news are gathered, and Slurm is asked where their tasks are. */
#ifndef RUNNER_CLUSTER_STATUS_H
#define RUNNER_CLUSTER_STATUS_H

#include <stddef.h>

#include "runner/cluster.h"
#include "runner/status.h"

/* The sweeps of one database that have runs on a cluster which have not ended. */
struct cluster_watch {
    const char *path; /* of the database; the caller's */
    struct cluster *clusters;
    size_t count;
    struct status_tasks *tasks; /* by state, of runs that have not ended */
    size_t task_count;
    size_t active; /* tasks that wait or run */
};

/* db: a reader of the database. Owner: caller, cluster_watch_close(), also after a failure. */
bool cluster_watch_open(struct cluster_watch *watch, sqlite3 *db, const char *path, struct error *err);
void cluster_watch_close(struct cluster_watch *watch);

/* Whether there is something to gather, and nobody follows the tasks, who then does. */
bool cluster_watch_may_gather(const struct cluster_watch *watch);

/* Takes over what the tasks have written. */
bool cluster_watch_gather(struct cluster_watch *watch, struct error *err);

/* One squeue for all. note is told of runs that no task has any more, which nobody follows either. */
bool cluster_watch_ask(struct cluster_watch *watch, sqlite3 *db, void (*note)(const char *text), struct error *err);

#endif
