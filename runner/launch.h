/* `runner run --launcher slurm`: from the command's options to following, and what is said at the end. */
#ifndef RUNNER_LAUNCH_H
#define RUNNER_LAUNCH_H

#include "runner/follow.h"
#include "runner/session.h"

/* True with --launcher. */
bool launch_wanted(const struct arguments *arguments);

/* Options that only go together, and settings of the job. False and err: exit code 2. */
bool launch_check(const struct arguments *arguments, struct error *err);

bool launch(const struct session *session, struct database *database, const struct schedule *schedule, int signals,
            struct follow_outcome *outcome, struct error *err);

/* True when the sweep goes on without us: said, with how to follow and how to cancel. *code: exit code. */
bool launch_left(const struct session *session, const struct follow_outcome *outcome, int *code);

/* False and err when tasks of the sweep's runs are on a cluster, so that they must not be trained here. */
bool launch_is_clear(const struct session *session, const struct schedule *schedule, struct error *err);

#endif
