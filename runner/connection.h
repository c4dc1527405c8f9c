/* Opening SQLite files with our settings: what the writer and readers of results.db share. */
#ifndef RUNNER_CONNECTION_H
#define RUNNER_CONNECTION_H

#include <sqlite3.h>
#include <stdbool.h>

#include "core/error.h"

enum { READER_MILLISECONDS = 10000 }; /* how long a reader waits for others' locks */

/* False when something else than a file is there. *exists: a file is. */
bool connection_path_check(const char *path, bool *exists, struct error *err);

/* NULL and err. Close with sqlite3_close(). Names that SQLite gives a special meaning, as ":memory:", are files. */
sqlite3 *connection_open(const char *path, int flags, int busy_milliseconds, struct error *err);

/* A -wal or -journal file with content: whoever wrote last did not end as they should, or a reader kept them from
 * tidying up. */
bool connection_journal_is_left(const char *path);

#endif
