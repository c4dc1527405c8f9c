/* A sweep becomes rows: what will be trained is fixed before it starts, whatever happens to its file afterwards. */
#ifndef RUNNER_FREEZE_H
#define RUNNER_FREEZE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "core/error.h"
#include "runner/sweep.h"

/* Within the caller's transaction. note as in database.h. */
bool freeze_write(sqlite3 *db, const struct sweep *sweep, void (*note)(void *context, const char *text), void *context,
                  struct error *err);

/* Only the runs and their tokenizers, no experiment. Within the caller's transaction. */
bool freeze_runs_write(sqlite3 *db, const struct sweep *sweep, struct error *err);

/* True when this very sweep was the last one frozen under its name. */
bool freeze_is_current(sqlite3 *db, const struct sweep *sweep);

#endif
