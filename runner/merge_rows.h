/* Rows from one database to another, and curves held against each other. */
#ifndef RUNNER_MERGE_ROWS_H
#define RUNNER_MERGE_ROWS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

/* Every row that `select` gives, bound to the parameters of `insert` in order, then `last` (when it is not negative).
 * Finalizes select; NULL: false. */
bool rows_copy(sqlite3_stmt *select, sqlite3_stmt *insert, int64_t last, struct error *err);

/* The row `id` of a table that both have, every column but its id: in place of the row with the same `unique`, if there
 * is one. A tokenizer is the target's of the same hash. */
bool row_copy(sqlite3 *from, sqlite3 *to, const char *table, const char *unique, int64_t id, struct error *err);

/* Settings, steps and evaluations of a run, without the steps below first_step. Where the same curve is there already,
 * it gets the clock of the one copied, and the metrics that were not measured. */
bool curve_copy(sqlite3 *from, int64_t from_run, sqlite3 *to, int64_t to_run, int64_t first_step, struct error *err);
/* Those metrics alone. */
bool curve_fill(sqlite3 *from, int64_t from_run, sqlite3 *to, int64_t to_run, struct error *err);
bool curve_delete(sqlite3 *db, int64_t run, struct error *err);

/* All that does not depend on the clock is equal, numbers as bits. *ok: both could be read. */
bool curves_equal(sqlite3 *a, int64_t run_a, sqlite3 *b, int64_t run_b, bool *ok, struct error *err);

#endif
