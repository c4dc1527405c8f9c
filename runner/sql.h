/* SQLite with our errors: every failure says what was tried, what SQLite says, and which file. Texts are bound, never
 * pasted.
 *
 *   sqlite3_stmt *s = sql_prepare(db, "select state from run where key = ?", "t", &err, key);
 *   while (sql_step(s, &row, &err) && row) ... sqlite3_column_text(s, 0) ...
 *   sqlite3_finalize(s);
 *
 * types, a letter a parameter: i int64_t, d double, t text (NULL = null), b const void * and size_t. */
#ifndef RUNNER_SQL_H
#define RUNNER_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* "what: SQLite's message (path)"; returns false. what may be NULL. */
bool sql_fail(sqlite3 *db, const char *what, struct error *err);

/* True when the last failure was only somebody else's lock. */
bool sql_is_busy(sqlite3 *db);

/* True when the last thing done failed in SQLite: the database is damaged, its disk cannot be read, memory ran out.
 * False when what was asked for is only not there. */
bool sql_has_failed(sqlite3 *db);

/* NULL and err. Bound texts are copied. Owner: caller, sqlite3_finalize(). */
sqlite3_stmt *sql_prepare(sqlite3 *db, const char *sql, const char *types, struct error *err, ...);

/* Rebinds a statement that has been used before. */
bool sql_bind(sqlite3_stmt *statement, const char *types, struct error *err, ...);

/* *row: there is a row to read; else the end. */
bool sql_step(sqlite3_stmt *statement, bool *row, struct error *err);

/* One statement to its end. */
bool sql_run(sqlite3 *db, const char *sql, const char *types, struct error *err, ...);

/* Several statements without parameters. */
bool sql_script(sqlite3 *db, const char *script, struct error *err);

/* First column of the first row; otherwise when there is no row. */
bool sql_integer(sqlite3 *db, int64_t *value, int64_t otherwise, const char *sql, const char *types, struct error *err,
                 ...);

/* Column of text, never NULL: "" for null. Belongs to the statement. */
const char *sql_text(sqlite3_stmt *statement, int column);
/* NaN for null. */
double sql_number(sqlite3_stmt *statement, int column);

/* BEGIN IMMEDIATE, waiting up to wait_seconds for others; a handled signal ends the wait. */
bool sql_begin(sqlite3 *db, double wait_seconds, struct error *err);
/* COMMIT when ok, else ROLLBACK; true when committed. A commit that fails is rolled back; *busy (may be NULL): only
 * because of others. */
bool sql_end(sqlite3 *db, bool ok, bool *busy, struct error *err);

#endif
