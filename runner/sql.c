/* SQLite with our errors, and with every value bound. */
#include "runner/sql.h"

#include <math.h>
#include <stdarg.h>
#include <time.h>

#include "runner/clock.h"

bool sql_fail(sqlite3 *db, const char *what, struct error *err)
{
    const char *path = sqlite3_db_filename(db, "main");
    return error_set(err, "%s%s%s%s%s%s", what ? what : "", what ? ": " : "", sqlite3_errmsg(db),
                     path && *path ? " ('" : "", path ? path : "", path && *path ? "')" : "");
}

bool sql_is_busy(sqlite3 *db)
{
    int code = sqlite3_errcode(db) & 0xff;
    return code == SQLITE_BUSY || code == SQLITE_LOCKED;
}

bool sql_has_failed(sqlite3 *db)
{
    int code = sqlite3_errcode(db) & 0xff;
    return code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE;
}

static bool bind_all(sqlite3_stmt *statement, const char *types, struct error *err, va_list args)
{
    int code = SQLITE_OK;
    for (int i = 1; types && *types && code == SQLITE_OK; types++, i++) {
        switch (*types) {
        case 'i': code = sqlite3_bind_int64(statement, i, va_arg(args, int64_t)); break;
        case 'd': code = sqlite3_bind_double(statement, i, va_arg(args, double)); break;
        case 't': code = sqlite3_bind_text(statement, i, va_arg(args, const char *), -1, SQLITE_TRANSIENT); break;
        case 'b': {
            const void *bytes = va_arg(args, const void *);
            size_t size = va_arg(args, size_t);
            code = sqlite3_bind_blob64(statement, i, bytes, size, SQLITE_TRANSIENT);
            break;
        }
        default: code = SQLITE_MISUSE; break;
        }
    }
    return code == SQLITE_OK || sql_fail(sqlite3_db_handle(statement), NULL, err);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, const char *types, struct error *err, va_list args)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) {
        sql_fail(db, NULL, err);
        return NULL;
    }
    if (!bind_all(statement, types, err, args)) {
        sqlite3_finalize(statement);
        return NULL;
    }
    return statement;
}

sqlite3_stmt *sql_prepare(sqlite3 *db, const char *sql, const char *types, struct error *err, ...)
{
    va_list args;
    va_start(args, err);
    sqlite3_stmt *statement = prepare(db, sql, types, err, args);
    va_end(args);
    return statement;
}

bool sql_bind(sqlite3_stmt *statement, const char *types, struct error *err, ...)
{
    sqlite3_reset(statement);
    va_list args;
    va_start(args, err);
    bool ok = bind_all(statement, types, err, args);
    va_end(args);
    return ok;
}

bool sql_step(sqlite3_stmt *statement, bool *row, struct error *err)
{
    int code = sqlite3_step(statement);
    *row = code == SQLITE_ROW;
    return code == SQLITE_ROW || code == SQLITE_DONE || sql_fail(sqlite3_db_handle(statement), NULL, err);
}

bool sql_run(sqlite3 *db, const char *sql, const char *types, struct error *err, ...)
{
    va_list args;
    va_start(args, err);
    sqlite3_stmt *statement = prepare(db, sql, types, err, args);
    va_end(args);
    bool row = true, ok = statement != NULL;
    while (ok && row)
        ok = sql_step(statement, &row, err);
    sqlite3_finalize(statement);
    return ok;
}

bool sql_script(sqlite3 *db, const char *script, struct error *err)
{
    return sqlite3_exec(db, script, NULL, NULL, NULL) == SQLITE_OK || sql_fail(db, NULL, err);
}

bool sql_integer(sqlite3 *db, int64_t *value, int64_t otherwise, const char *sql, const char *types, struct error *err,
                 ...)
{
    va_list args;
    va_start(args, err);
    sqlite3_stmt *statement = prepare(db, sql, types, err, args);
    va_end(args);
    bool row = false, ok = statement && sql_step(statement, &row, err);
    *value = ok && row ? sqlite3_column_int64(statement, 0) : otherwise;
    sqlite3_finalize(statement);
    return ok;
}

const char *sql_text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text ? text : "";
}

double sql_number(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL ? NAN : sqlite3_column_double(statement, column);
}

bool sql_begin(sqlite3 *db, double wait_seconds, struct error *err)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    double start = seconds_now();
    for (;;) {
        if (sqlite3_exec(db, "begin immediate", NULL, NULL, NULL) == SQLITE_OK)
            return true;
        sql_fail(db, NULL, err);
        if (!sql_is_busy(db))
            return false;
        if (seconds_now() - start >= wait_seconds || nanosleep(&pause, NULL) < 0)
            return false;
    }
}

bool sql_end(sqlite3 *db, bool ok, bool *busy, struct error *err)
{
    if (busy)
        *busy = false;
    if (ok && sqlite3_exec(db, "commit", NULL, NULL, NULL) == SQLITE_OK)
        return true;
    if (ok)
        sql_fail(db, NULL, err);
    if (ok && busy)
        *busy = sql_is_busy(db);
    if (!sqlite3_get_autocommit(db)) /* a full disk rolls back by itself */
        sqlite3_exec(db, "rollback", NULL, NULL, NULL);
    return false;
}
