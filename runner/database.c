/* results.db: opened for writing, by one process at a time. Readers: database_reader.c. */
#include "runner/database.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/backup.h"
#include "runner/connection.h"
#include "runner/file.h"
#include "runner/freeze.h"
#include "runner/lockfile.h"
#include "runner/pending.h"
#include "runner/query.h"
#include "runner/schema.h"
#include "runner/sql.h"
#include "runner/summary.h"

#define OTHERS_SECONDS 60.0 /* how long the calls that wait for other processes do so */

struct database {
    sqlite3 *db;
    char *path, *lock_path;
    int lock;
    bool made; /* by us: it was not there when we had the lock */
    struct pending *pending;
    void (*note)(void *context, const char *text);
    void *context;
};

static void database_note(const struct database *database, const char *text)
{
    if (database->note)
        database->note(database->context, text);
}

/* ---- opening ---- */

/* Locks and shared memory of these do not reach other machines: no WAL there. */
static bool folder_is_network(const char *path)
{
    static const unsigned long magics[] = {0x6969 /* NFS */,       0x517b /* SMB */,        0xff534d42 /* CIFS */,
                                           0xfe534d42 /* SMB 2 */, 0x00c36400 /* Ceph */,   0x0bd00bd0 /* Lustre */,
                                           0x47504653 /* GPFS */,  0x5346414f /* AFS */,    0x65735546 /* FUSE */,
                                           0x01021997 /* 9P */,    0x19830326 /* BeeGFS */, 0xaad7aaea /* PanFS */,
                                           0x6b414653 /* kAFS */,  0x7461636f /* OCFS2 */,  0x01161970 /* GFS2 */};
    struct statfs fs;
    if (statfs(path, &fs) < 0)
        return false;
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
        if (((unsigned long)fs.f_type & 0xffffffff) == magics[i])
            return true;
    return false;
}

/* Tries to get there; true when the file has that journal mode now. */
static bool journal_mode_set(sqlite3 *db, const char *mode, double wait_seconds, struct error *err)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    char sql[64];
    snprintf(sql, sizeof sql, "pragma journal_mode = %s", mode);
    for (double waited = 0;; waited += 0.02) {
        bool row = false;
        sqlite3_stmt *s = sql_prepare(db, sql, NULL, err);
        bool ok = s && sql_step(s, &row, err);
        bool set = ok && row && strcmp(sql_text(s, 0), mode) == 0;
        if (ok && !set)
            error_set(err, "SQLite keeps journal mode %s", row ? sql_text(s, 0) : "unknown");
        sqlite3_finalize(s);
        if (set)
            return true;
        if (waited >= wait_seconds || (!ok && !sql_is_busy(db)))
            return false;
        nanosleep(&pause, NULL);
    }
}

static void journal_choose(struct database *database, const char *folder, bool no_wal)
{
    struct error reason;
    bool network = folder_is_network(folder);
    if (network)
        database_note(database, "results.db is on a network file system: a rollback journal is used instead of WAL");
    if (no_wal || network) {
        if (!journal_mode_set(database->db, "delete", 2, &reason))
            database_note(database, reason.text);
    } else if (!journal_mode_set(database->db, "wal", 2, &reason)) {
        char text[1200];
        snprintf(text, sizeof text, "WAL cannot be had (%s): a rollback journal is used", reason.text);
        database_note(database, text);
    } else {
        sql_script(database->db, "pragma synchronous = normal", NULL);
    }
}

/* A run that is said to run now, when nobody else may write: its process was killed. */
static bool run_is_left(sqlite3 *db, size_t version)
{
    int64_t left = 0;
    return version > 0 &&
           (!sql_integer(db, &left, 0, "select count(*) from run where state = 'running'", NULL, NULL) || left > 0);
}

bool database_quick_check(sqlite3 *db, const char *path, struct error *err)
{
    bool row = false;
    sqlite3_stmt *s = sql_prepare(db, "pragma quick_check(1)", NULL, err);
    bool ok = s && sql_step(s, &row, err);
    if (!ok)
        error_wrap(err, "the database '%s' cannot be checked", path);
    else if (row && strcmp(sql_text(s, 0), "ok") != 0)
        ok =
            error_set(err,
                      "the database '%s' is damaged, and is left as it is: SQLite says \"%.300s\". What can be read of "
                      "it: sqlite3 '%s' .recover | sqlite3 rescued.db",
                      path, sql_text(s, 0), path);
    sqlite3_finalize(s);
    return ok;
}

/* An older file is copied aside before it is brought up to date. */
static bool migration_prepare(struct database *database, size_t version, struct error *err)
{
    char *copy;
    if (version == 0 || version == schema_version)
        return true;
    if (!backup_make(database->db, database->path, version, &copy, err))
        return false;
    char *text = sqlite3_mprintf("'%s' is brought from schema version %d to %d; as it was, it is kept in '%s'",
                                 database->path, (int)version, (int)schema_version, copy);
    if (text)
        database_note(database, text);
    sqlite3_free(text);
    memory_free(copy);
    return true;
}

static bool connection_prepare(struct database *database, const char *folder, bool no_wal, bool unclean,
                               struct error *err)
{
    size_t version;
    if (!schema_check(database->db, schema_version, &version, err) ||
        ((unclean || run_is_left(database->db, version)) && !database_quick_check(database->db, database->path, err)))
        return false;
    if (sqlite3_db_readonly(database->db, "main") == 1)
        return error_set(err, "the database '%s' cannot be written: no permission", database->path);
    /* without spilling only BEGIN and COMMIT can meet another process's lock */
    if (!sql_script(database->db, "pragma foreign_keys = on; pragma cache_spill = off; pragma temp_store = memory",
                    err))
        return false;
    if (!migration_prepare(database, version, err))
        return false;
    journal_choose(database, folder, no_wal);
    return sql_begin(database->db, OTHERS_SECONDS, err) &&
           sql_end(database->db, schema_update(database->db, schema_migrations, schema_version, err), NULL, err);
}

/* What is left to do after a failure or a close. */
static void database_release(struct database *database)
{
    pending_free(database->pending);
    sqlite3_close(database->db);
    lockfile_drop(database->lock_path, database->lock);
    memory_free(database->path);
    memory_free(database->lock_path);
    memory_free(database);
}

/* The same, and the file too when it is ours alone: while we have the lock. */
static void database_remove(struct database *database)
{
    sqlite3_close(database->db);
    database->db = NULL;
    if (database->made)
        unlink(database->path);
    database_release(database);
}

static char *lock_path_of(const char *path)
{
    size_t size = strlen(path) + sizeof ".lock";
    char *lock_path = memory_alloc(size, 1);
    snprintf(lock_path, size, "%s.lock", path);
    return lock_path;
}

struct database *database_open(const char *path, const struct database_options *options, struct error *err)
{
    static const struct database_options standard = {0};
    if (!options)
        options = &standard;
    bool exists;
    if (!connection_path_check(path, &exists, err))
        return NULL;
    struct database *database = memory_alloc(1, sizeof *database);
    *database = (struct database){.path = memory_copy_text(path),
                                  .lock_path = lock_path_of(path),
                                  .lock = -1,
                                  .note = options->note,
                                  .context = options->context};
    char *folder = path_folder(path);
    bool ok = folder_make(folder, err);
    if (ok)
        database->lock =
            lockfile_take(database->lock_path, options->command ? options->command : "runner", options->wait_seconds,
                          options->holder_is_over, options->note, options->context, err);
    ok = ok && database->lock >= 0;
    database->made = ok && access(path, F_OK) != 0;
    bool unclean = connection_journal_is_left(path);
    if (ok)
        database->db = connection_open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, PENDING_PATIENCE, err);
    ok = ok && database->db && connection_prepare(database, folder, options->no_wal, unclean, err);
    memory_free(folder);
    if (!ok) {
        database_remove(database);
        return NULL;
    }
    database->pending = pending_create(database->db);
    return database;
}

/* The number that a program marks its databases with: in SQLite's header, of which this much was read. */
enum { MARK_AT = 68, HEADER = 72 };

static ssize_t mark_read(const char *path, uint32_t *mark)
{
    unsigned char header[HEADER] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, header, sizeof header);
    if (fd >= 0)
        close(fd);
    *mark = 0;
    for (int i = 0; i < 4; i++)
        *mark = *mark << 8 | header[MARK_AT + i];
    return size;
}

bool database_is_ours(const char *path)
{
    uint32_t mark;
    return mark_read(path, &mark) == HEADER && mark == SCHEMA_APPLICATION_ID;
}

/* True for an empty file too, and for one that a journal beside it has yet to complete. */
static bool may_be_ours(const char *path)
{
    uint32_t mark;
    return connection_journal_is_left(path) || mark_read(path, &mark) == 0 || database_is_ours(path);
}

bool database_path_check(const char *path, struct error *err)
{
    bool exists = false;
    if (!connection_path_check(path, &exists, err))
        return false;
    if (!exists || may_be_ours(path))
        return true;
    /* One that a command could not finish making has no tables yet, which is no reason to refuse it. */
    size_t version;
    sqlite3 *db = connection_open(path, SQLITE_OPEN_READONLY, READER_MILLISECONDS, err);
    bool good = db && schema_check(db, schema_version, &version, err);
    sqlite3_close(db);
    return good;
}

bool database_discard(struct database *database, struct error *err)
{
    if (!database->made)
        return database_close(database, err);
    pending_free(database->pending);
    database->pending = NULL;
    database_remove(database);
    return true;
}

bool database_close(struct database *database, struct error *err)
{
    if (!database)
        return true;
    struct error reason;
    bool ok = pending_flush(database->pending, OTHERS_SECONDS, err);
    pending_free(database->pending);
    database->pending = NULL;
    if (!journal_mode_set(database->db, "delete", 3, &reason)) {
        char text[1400];
        bool busy = sql_is_busy(database->db);
        snprintf(text, sizeof text, "%s: its -wal file stays beside '%s' until the next command that writes",
                 busy ? "the database is complete, but another process is reading it" : reason.text, database->path);
        if (busy)
            database_note(database, text);
        else if (ok)
            ok = error_set(err, "%s", text);
    }
    database_release(database);
    return ok;
}

sqlite3 *database_handle(struct database *database)
{
    return database->db;
}

bool database_lock_holder(const char *path, char *holder, size_t size)
{
    char *lock_path = lock_path_of(path);
    bool held = lockfile_holder(lock_path, holder, size);
    memory_free(lock_path);
    return held;
}

/* ---- states ---- */

static const char *const state_names[] = {
    [RUN_NONE] = "none",         [RUN_QUEUED] = "queued", [RUN_RUNNING] = "running",        [RUN_FINISHED] = "finished",
    [RUN_DIVERGED] = "diverged", [RUN_FAILED] = "failed", [RUN_INTERRUPTED] = "interrupted"};

const char *run_state_name(enum run_state state)
{
    return state_names[state];
}

enum run_state run_state_find(const char *name)
{
    for (int i = RUN_QUEUED; i <= RUN_INTERRUPTED; i++)
        if (strcmp(name, state_names[i]) == 0)
            return (enum run_state)i;
    return RUN_NONE;
}

enum run_state database_run_state(sqlite3 *db, const char *key, int64_t *steps_done, char *reason, size_t reason_size)
{
    enum run_state state = RUN_NONE;
    bool row = false;
    if (steps_done)
        *steps_done = 0;
    if (reason)
        *reason = 0;
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_RUN_STATE), "t", NULL, key);
    if (s && sql_step(s, &row, NULL) && row) {
        state = run_state_find(sql_text(s, 0));
        if (reason)
            snprintf(reason, reason_size, "%s", sql_text(s, 1));
        if (steps_done)
            *steps_done = sqlite3_column_int64(s, 2);
    }
    sqlite3_finalize(s);
    return state;
}

/* ---- writing ---- */

bool database_recover(struct database *database, struct error *err)
{
    int64_t left;
    if (!pending_flush(database->pending, OTHERS_SECONDS, err) ||
        !sql_integer(database->db, &left, 0, "select count(*) from run where state = 'running'", NULL, err))
        return false;
    return left == 0 || (sql_begin(database->db, OTHERS_SECONDS, err) &&
                         sql_end(database->db,
                                 sql_run(database->db,
                                         "update run set state = 'interrupted', reason = 'its process is gone', "
                                         "ended_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now') where state = 'running'",
                                         NULL, err),
                                 NULL, err));
}

bool database_freeze(struct database *database, const struct sweep *sweep, struct error *err)
{
    return pending_flush(database->pending, OTHERS_SECONDS, err) && sql_begin(database->db, OTHERS_SECONDS, err) &&
           sql_end(database->db, freeze_write(database->db, sweep, database->note, database->context, err), NULL, err);
}

bool database_freeze_runs(struct database *database, const struct sweep *sweep, struct error *err)
{
    return pending_flush(database->pending, OTHERS_SECONDS, err) && sql_begin(database->db, OTHERS_SECONDS, err) &&
           sql_end(database->db, freeze_runs_write(database->db, sweep, err), NULL, err);
}

bool database_is_frozen(sqlite3 *db, const struct sweep *sweep)
{
    return freeze_is_current(db, sweep);
}

bool database_run_start(struct database *database, const char *key, int64_t step,
                        const struct run_environment *environment, const struct step_record *steps, size_t step_count,
                        const struct evaluation_row *evaluations, size_t evaluation_count, struct error *err)
{
    pending_start(database->pending, key, step, environment, steps, step_count, evaluations, evaluation_count);
    return pending_pump(database->pending, true, err);
}

bool database_step(struct database *database, const char *key, const struct step_record *record, struct error *err)
{
    pending_step(database->pending, key, record);
    return pending_pump(database->pending, false, err);
}

bool database_evaluation(struct database *database, const char *key, const struct evaluation_row *row,
                         struct error *err)
{
    pending_evaluation(database->pending, key, row);
    return pending_pump(database->pending, false, err);
}

bool database_run_end(struct database *database, const char *key, enum run_state state, const char *reason,
                      const char *log_tail, struct error *err)
{
    pending_end(database->pending, key, state, reason, log_tail);
    return pending_pump(database->pending, true, err);
}

bool database_pump(struct database *database, struct error *err)
{
    lockfile_renew_all();
    return pending_pump(database->pending, false, err);
}

bool database_flush(struct database *database, double wait_seconds, struct error *err)
{
    return pending_flush(database->pending, wait_seconds, err);
}

bool database_summarize(struct database *database, const char *experiment, struct error *err)
{
    if (!pending_flush(database->pending, OTHERS_SECONDS, err))
        return false;
    int64_t id = database_find_experiment(database->db, experiment, err);
    return id && sql_begin(database->db, OTHERS_SECONDS, err) &&
           sql_end(database->db, summary_refresh(database->db, id, err), NULL, err);
}
