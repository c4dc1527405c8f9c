/* Reads shards without locks, which network file systems may not have: between two transactions, and checked after. */
#include "runner/gather.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/checkpoint.h"
#include "runner/file.h"
#include "runner/lockfile.h"
#include "runner/merge.h"
#include "runner/sql.h"
#include "runner/task.h"

enum { BEGIN_SECONDS = 60, TIDY_SECONDS = 5 };

/* False: there is none, or a transaction is under way. */
static bool still_stat(const char *path, struct stat *status)
{
    char journal[4200];
    snprintf(journal, sizeof journal, "%s-journal", path);
    return stat(path, status) == 0 && status->st_size > 0 && access(journal, F_OK) != 0;
}

static bool stat_equal(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_ino == b->st_ino && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

struct gatherer {
    struct merge *merge;
    sqlite3 *db;
    void (*note)(void *context, const char *text);
    void *context;
};

/* False only when results.db fails. */
static bool shard_take(struct gatherer *g, const char *path, struct gathered *run, const struct stat *before,
                       struct error *err)
{
    struct stat after;
    struct error reason;
    sqlite3 *source = database_open_source(path, true, &reason);
    if (!sql_script(g->db, "savepoint shard", err)) {
        sqlite3_close(source);
        return false;
    }
    bool ok = source && merge_add(g->merge, path, source, &reason);
    sqlite3_close(source);
    bool steady = still_stat(path, &after) && stat_equal(before, &after);
    if (ok && steady) {
        run->modified = before->st_mtim;
        run->size = before->st_size;
        run->changed = true;
        return sql_script(g->db, "release shard", err);
    }
    if (steady) { /* nobody was writing: it will be no better the next time, unless it is written again */
        run->modified = before->st_mtim;
        run->size = before->st_size;
        g->note(g->context, reason.text);
    }
    return sql_script(g->db, "rollback to shard; release shard", err);
}

bool gather_all(struct database *database, const char *shards, struct gathered *runs, size_t count,
                void (*note)(void *context, const char *text), void *context, struct error *err)
{
    struct gatherer g = {.db = database_handle(database), .note = note, .context = context};
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        struct stat status;
        char *path = task_path(shards, runs[i].key, "run.db");
        lockfile_renew_all();
        runs[i].changed = false;
        bool news = still_stat(path, &status) &&
                    (status.st_size != runs[i].size || status.st_mtim.tv_sec != runs[i].modified.tv_sec ||
                     status.st_mtim.tv_nsec != runs[i].modified.tv_nsec);
        if (news && !g.merge) {
            ok = sql_begin(g.db, BEGIN_SECONDS, err);
            g.merge = ok ? merge_begin(g.db, "results.db", MERGE_TASKS) : NULL;
        }
        ok = ok && (!news || shard_take(&g, path, &runs[i], &status, err));
        memory_free(path);
    }
    if (g.merge)
        ok = sql_end(g.db, ok, NULL, err);
    merge_free(g.merge);
    return ok;
}

bool gather_tidy(const char *shards, const char *key, struct error *err)
{
    struct database_options options = {
        .command = "gathering", .wait_seconds = TIDY_SECONDS, .holder_is_over = true, .no_wal = true};
    char *path = task_path(shards, key, "run.db"), *journal = task_path(shards, key, "run.db-journal");
    bool ok = true;
    if (access(path, F_OK) == 0 && access(journal, F_OK) == 0) {
        struct database *shard = database_open(path, &options, err);
        ok = shard && database_close(shard, err);
    }
    memory_free(path);
    memory_free(journal);
    return ok;
}

bool gather_weights(const char *shards, const char *checkpoints, const char *key, struct error *err)
{
    char *from = task_path(shards, key, "final.safetensors"), *to = task_path(checkpoints, key, "final.safetensors");
    char *folder = path_join(checkpoints, key);
    bool ok =
        access(from, F_OK) != 0 ||
        (folder_make(folder, err) &&
         (rename(from, to) == 0 || error_set(err, "cannot move '%.300s' to '%.300s': %s", from, to, strerror(errno))));
    memory_free(from);
    memory_free(to);
    memory_free(folder);
    return ok;
}

bool gather_forget(const char *shards, const char *key, bool anew, struct error *err)
{
    static const char *const names[] = {"run.db", "run.db-journal", "tries"};
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof names / sizeof *names; i++) {
        char *path = task_path(shards, key, names[i]);
        ok = unlink(path) == 0 || errno == ENOENT || error_set(err, "cannot remove '%s': %s", path, strerror(errno));
        memory_free(path);
    }
    return ok && (!anew || checkpoint_remove(shards, key, err));
}
