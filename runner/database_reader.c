/* results.db opened by those who only read: beside a writer, on read-only media, of an older version. */
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/connection.h"
#include "runner/database.h"
#include "runner/schema.h"
#include "runner/sql.h"

/* "file:<path>?immutable=1" with what a URI reserves as %xx. Owner: caller, memory_free(). */
static char *immutable_uri(const char *path)
{
    size_t room = 3 * strlen(path) + 64;
    char *uri = memory_alloc(room, 1);
    size_t used = (size_t)snprintf(uri, room, *path == '/' ? "file://" : "file:"); /* no path begins with a host */
    for (const char *c = path; *c; c++)
        used += (size_t)snprintf(uri + used, room - used, strchr("?#%", *c) ? "%%%02x" : "%c", (unsigned char)*c);
    memcpy(uri + used, "?immutable=1", sizeof "?immutable=1");
    return uri;
}

static bool reader_check(sqlite3 *db, const char *path, struct error *err)
{
    size_t version;
    if (!schema_check(db, schema_version, &version, err))
        return false;
    if (version == 0)
        return error_set(err, "the database '%s' is empty: `runner run FILE` fills it", path);
    return sql_script(db, "pragma query_only = on", err);
}

/* A whole database, this version's or older. */
static bool source_check(sqlite3 *db, const char *path, struct error *err)
{
    size_t version;
    bool row = false;
    if (!schema_check(db, schema_version, &version, err))
        return false;
    if (version == 0)
        return error_set(err, "the database '%s' is empty", path);
    sqlite3_stmt *s = sql_prepare(db, "pragma integrity_check(1)", NULL, err);
    bool ok = s && sql_step(s, &row, err);
    if (ok && (!row || strcmp(sql_text(s, 0), "ok") != 0))
        ok = error_set(err, "the database '%s' is damaged: %.300s", path, row ? sql_text(s, 0) : "no answer");
    sqlite3_finalize(s);
    return ok && sql_script(db, "pragma query_only = on", err);
}

typedef bool reader_checks(sqlite3 *db, const char *path, struct error *err);

static sqlite3 *immutable_open(const char *path, reader_checks *check, struct error *err)
{
    char *uri = immutable_uri(path);
    sqlite3 *db = connection_open(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, READER_MILLISECONDS, err);
    memory_free(uri);
    if (db && !check(db, path, err)) {
        sqlite3_close(db);
        db = NULL;
    }
    return db;
}

/* What a writer that was killed amid a transaction has left is taken back by the first who may write. */
static bool journal_roll_back(const char *path)
{
    int64_t tables;
    sqlite3 *db = connection_open(path, SQLITE_OPEN_READWRITE, READER_MILLISECONDS, NULL);
    bool ok = db && sql_integer(db, &tables, 0, "select count(*) from sqlite_master", NULL, NULL);
    sqlite3_close(db);
    return ok;
}

/* A connection that passes the check; NULL, err and SQLite's extended code. */
static sqlite3 *reader_try(const char *path, reader_checks *check, int *code, struct error *err)
{
    sqlite3 *db = connection_open(path, SQLITE_OPEN_READONLY, READER_MILLISECONDS, err);
    *code = SQLITE_ERROR;
    if (!db || check(db, path, err))
        return db;
    *code = sqlite3_extended_errcode(db);
    sqlite3_close(db);
    return NULL;
}

static sqlite3 *reader_open(const char *path, reader_checks *check, struct error *err)
{
    bool exists = false;
    int code;
    if (!connection_path_check(path, &exists, err) ||
        (!exists && !error_set(err, "there is no database '%s': `runner run FILE` makes one", path)))
        return NULL;
    sqlite3 *db = reader_try(path, check, &code, err);
    if (!db && code == SQLITE_READONLY_ROLLBACK && journal_roll_back(path))
        db = reader_try(path, check, &code, err);
    /* in WAL mode, on a medium where the shared memory file cannot be made */
    if (db || ((code & 0xff) != SQLITE_CANTOPEN && (code & 0xff) != SQLITE_READONLY))
        return db;
    if (connection_journal_is_left(path)) {
        error_set(err,
                  "the database '%s' was not closed and its folder cannot be written: copy it together with '%s-wal' "
                  "or '%s-journal' to a folder that can",
                  path, path, path);
        return NULL;
    }
    return immutable_open(path, check, err);
}

/* A copy in a temporary file, brought up to date. Closes db. */
static sqlite3 *source_migrate(sqlite3 *db, const char *path, struct error *err)
{
    sqlite3 *copy = NULL;
    bool ok = sqlite3_open("", &copy) == SQLITE_OK;
    sqlite3_backup *backup = ok ? sqlite3_backup_init(copy, "main", db, "main") : NULL;
    ok = backup && sqlite3_backup_step(backup, -1) == SQLITE_DONE;
    if (backup)
        ok = sqlite3_backup_finish(backup) == SQLITE_OK && ok;
    if (!ok)
        error_set(err, "cannot copy the database '%s' to bring it up to date: %s", path,
                  copy ? sqlite3_errmsg(copy) : "out of memory");
    ok = ok && sql_begin(copy, 0, err) &&
         (sql_end(copy, schema_update(copy, schema_migrations, schema_version, err), NULL, err) ||
          error_wrap(err, "'%s'", path));
    sqlite3_close(db);
    if (ok)
        return copy;
    sqlite3_close(copy);
    return NULL;
}

/* Takes db, which may be NULL. */
static sqlite3 *up_to_date(sqlite3 *db, const char *path, struct error *err)
{
    size_t version = 0;
    bool has_metrics = true;
    if (db && (!schema_check(db, schema_version, &version, err) || !schema_has_metrics(db, &has_metrics, err))) {
        sqlite3_close(db);
        return NULL;
    }
    return db && (version < schema_version || !has_metrics) ? source_migrate(db, path, err) : db;
}

sqlite3 *database_open_reader(const char *path, struct error *err)
{
    return up_to_date(reader_open(path, reader_check, err), path, err);
}

sqlite3 *database_open_source(const char *path, bool still, struct error *err)
{
    return up_to_date(still ? immutable_open(path, source_check, err) : reader_open(path, source_check, err), path,
                      err);
}
