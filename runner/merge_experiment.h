/* Experiments of one database joining those of another: names, variants, members. */
#ifndef RUNNER_MERGE_EXPERIMENT_H
#define RUNNER_MERGE_EXPERIMENT_H

#include <sqlite3.h>
#include <stdbool.h>

#include "core/error.h"

/* The runs are in the target already. Rules as in merge.h. *refused is set when they do not let the two join. */
bool experiments_merge(sqlite3 *target, const char *target_name, sqlite3 *source, const char *source_name,
                       bool *refused, struct error *err);

#endif
