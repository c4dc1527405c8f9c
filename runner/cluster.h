/* What of a sweep has been submitted: rounds of arrays, as files beside the logs.
 *
 *   <results>/logs/slurm/NAME.R.tasks      round R: a list of runs (task.h)
 *   <results>/logs/slurm/NAME.R.C.sh       its array C as a batch script
 *   <results>/logs/slurm/NAME.R.C.job      the array's number: it was submitted
 *   <results>/logs/slurm/NAME.R.C-I.log    what task I printed
 *
 * NAME is "runner-<experiment>-<8 digits of the database's path>", so that whoever comes later, from any login node,
 * finds what is there. An array's job is called NAME.R.C.TOKEN: Slurm remembers jobs of results that are gone, and only
 * the list has the token (NAME.R.C where a list has none). A list without its .job file was perhaps submitted and
 * perhaps not: its job's name decides. */
#ifndef RUNNER_CLUSTER_H
#define RUNNER_CLUSTER_H

#include "runner/task.h"

struct cluster {
    char *folder, *shards, *name;
    struct cluster_round {
        struct task_list list;
        size_t chunk_count;
        bool *submitted; /* by chunk */
        char (*jobs)[24];
    } * rounds;
    size_t round_count;
};

struct cluster_options {
    size_t at_once; /* 0: no limit */
    const char *const *settings[2];
    size_t setting_counts[2];
    struct task_settings tasks;
};

/* Reads the rounds; makes no folder. Owner: caller, cluster_close(), also after a failure. */
bool cluster_open(struct cluster *cluster, const char *results_folder, const char *logs, const char *database_path,
                  const char *experiment, struct error *err);
void cluster_close(struct cluster *cluster);

/* Owner of the texts: caller, memory_free(). */
char *cluster_job_name(const struct cluster *cluster, size_t round, size_t chunk);
/* False when it is none of the cluster's jobs. */
bool cluster_job_parse(const struct cluster *cluster, const char *name, size_t *round, size_t *chunk);
char *cluster_log_path(const struct cluster *cluster, size_t round, size_t chunk, size_t index);

/* Writes the next round's list and scripts; cluster_submit() submits what is not. */
bool cluster_round_add(struct cluster *cluster, const struct sweep *sweep, const size_t *runs, size_t count,
                       const struct cluster_options *options, struct error *err);
/* An array that is refused ends it; err then lists what had been submitted. */
bool cluster_submit(struct cluster *cluster, struct error *err);

/* The last round that has the run; false when there is none. */
bool cluster_find(const struct cluster *cluster, const char *key, size_t *round, size_t *chunk, size_t *index);

/* Names of all jobs since round `first`, for slurm_look(). Owner: caller, cluster_names_free(). */
char **cluster_names(const struct cluster *cluster, size_t first, size_t *count, size_t *tasks);
void cluster_names_free(char **names, size_t count);

#endif
