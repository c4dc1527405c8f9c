/* A sweep on a cluster, from submitting to its last record: looks at the queue, gathers, judges, submits again.
 *
 * What counts is our own last record of a run; Slurm's word serves where there is none. A task that was preempted, ran
 * into its time limit or lost its node goes on from its checkpoint in a new round; one that was cancelled, ran out of
 * memory, or ended without a word does not. One squeue at most every slurm_patience() seconds. */
#ifndef RUNNER_FOLLOW_H
#define RUNNER_FOLLOW_H

#include "runner/cluster.h"
#include "runner/database.h"
#include "runner/progress.h"
#include "runner/schedule.h"

struct follow_options {
    struct cluster_options cluster;
    const char *checkpoints; /* where final weights go, and from where local checkpoints are taken over */
    const char *again;       /* the command as it could be typed again */
    bool detach;             /* submit and return */
    bool only_look;          /* submit nothing: status, cancel */
    int signals;             /* of signals_open(); -1: none are taken */
    enum progress_mode progress;
};

struct follow_outcome {
    size_t submitted, active; /* tasks: in this command; waiting or running at its end */
    int stop_signal;          /* that ended following; 0: none */
};

/* The schedule says which runs are wanted. False and err when Slurm, the machine or the database fails. */
bool follow(struct database *database, const struct sweep *sweep, const struct schedule *schedule,
            struct cluster *cluster, const struct follow_options *options, struct follow_outcome *outcome,
            struct error *err);

#endif
