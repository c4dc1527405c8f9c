/* The losses and comparisons of an experiment, computed from its runs' final values and kept as tables. */
#ifndef RUNNER_SUMMARY_H
#define RUNNER_SUMMARY_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

/* Within the caller's transaction. */
bool summary_refresh(sqlite3 *db, int64_t experiment, struct error *err);

/* Every experiment that the run belongs to. */
bool summary_refresh_run(sqlite3 *db, const char *key, struct error *err);

#endif
