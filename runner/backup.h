/* A database file copied aside before it is changed for good. */
#ifndef RUNNER_BACKUP_H
#define RUNNER_BACKUP_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* All that is committed, as one plain durable file "<path>.version-<N>", or with "-2", "-3" after it when that name is
 * taken: nothing is ever overwritten. *copy: its path; owner: caller, memory_free(). False and err: there is no copy,
 * nor a part of one. Not within a transaction. */
bool backup_make(sqlite3 *db, const char *path, size_t version, char **copy, struct error *err);

#endif
