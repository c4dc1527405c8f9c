/* Finding what nothing refers to any more, in the database and in the folders beside it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/cluster_refresh.h"
#include "runner/cluster_status.h"
#include "runner/database.h"
#include "runner/file.h"
#include "runner/lockfile.h"
#include "runner/removal.h"
#include "runner/shell_word.h"
#include "runner/sql.h"

/* Workers of a killed supervisor may still be writing their last checkpoint. */
enum { TEMPORARY_SECONDS = 60, KEY_DIGITS = 64 };

struct collector {
    sqlite3 *db;
    bool remove;
    struct garbage_found *found;
    char **kept; /* keys of runs that are not hidden, and those of other databases in the folder */
    size_t kept_count;
    struct error first; /* what could not be removed first */
    bool failed;
};

const char *garbage_name(enum garbage kind)
{
    static const char *const names[GARBAGE_COUNT] = {"hidden runs", "checkpoints and weights", "caches", "logs",
                                                     "temporary files"};
    return names[kind];
}

/* ---- what is kept ---- */

/* False when they could not be read to the end: then nothing may go. */
static bool keys_add(struct collector *collector, sqlite3 *db, const char *sql, struct error *err)
{
    bool row = false;
    sqlite3_stmt *s = sql_prepare(db, sql, NULL, err);
    bool ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row) {
        collector->kept = memory_grow(collector->kept, collector->kept_count * sizeof *collector->kept,
                                      collector->kept_count + 1, sizeof *collector->kept);
        collector->kept[collector->kept_count++] = memory_copy_text(sql_text(s, 0));
    }
    sqlite3_finalize(s);
    return ok;
}

static bool key_is_kept(const struct collector *collector, const char *key)
{
    for (size_t i = 0; i < collector->kept_count; i++)
        if (strncmp(collector->kept[i], key, KEY_DIGITS) == 0)
            return true;
    return false;
}

static bool same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static bool is_sqlite(const char *path)
{
    static const char magic[16] = "SQLite format 3";
    char begin[sizeof magic] = "";
    struct stat status;
    int fd = stat(path, &status) == 0 && S_ISREG(status.st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    bool is = fd >= 0 && read(fd, begin, sizeof begin) == sizeof begin && memcmp(begin, magic, sizeof magic) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}

/* A task that waits in a cluster's queue reads cached tokens, and holds no lock of ours. */
static bool tasks_have_ended(sqlite3 *db, const char *path, struct error *err)
{
    struct cluster_watch watch;
    bool ok = cluster_watch_open(&watch, db, path, err);
    if (ok && watch.count) {
        const char *name = watch.clusters[0].rounds[0].list.experiment;
        size_t left = cluster_left(db, &watch.clusters[0]);
        char *word = shell_word(name), *where = shell_word(path);
        ok = error_set(err,
                       "%zu run%s of '%s' in '%s' %s on a cluster and %s not ended: `runner status --db %s` takes over "
                       "what they have written, `runner cancel %s --db %s` ends them",
                       left, left == 1 ? "" : "s", name, path, left == 1 ? "is" : "are", left == 1 ? "has" : "have",
                       where, word, where);
        memory_free(word);
        memory_free(where);
    }
    cluster_watch_close(&watch);
    return ok;
}

/* Another database in the folder has the same folders of checkpoints, logs and caches. One of another program has not;
 * one of ours that cannot be read might have anything. */
static bool neighbour_add(struct collector *collector, const char *path, struct error *err)
{
    char holder[LOCKFILE_HOLDER_SIZE];
    struct error reason;
    if (database_lock_holder(path, holder, sizeof holder))
        return error_set(err, "'%s' in the same folder is held by %s: wait for it to end", path, holder);
    sqlite3 *db = database_open_reader(path, &reason);
    bool ok = db && keys_add(collector, db, "select key from run", &reason);
    if (!ok && (db || database_is_ours(path))) {
        sqlite3_close(db);
        return error_set(err, "which files '%s' in the same folder needs cannot be told: %s", path, reason.text);
    }
    ok = !db || tasks_have_ended(db, path, err);
    sqlite3_close(db);
    return ok;
}

static bool neighbours_add(struct collector *collector, const char *folder, const char *own, struct error *err)
{
    DIR *directory = opendir(folder);
    bool ok = true;
    for (struct dirent *entry; directory && ok && (entry = readdir(directory));) {
        char *path = path_join(folder, entry->d_name);
        if (is_sqlite(path) && !same_file(path, own))
            ok = neighbour_add(collector, path, err);
        memory_free(path);
    }
    if (directory)
        closedir(directory);
    return ok;
}

/* ---- what goes ---- */

static void failure_note(struct collector *collector, const char *path)
{
    if (!collector->failed)
        error_set(&collector->first, "cannot remove '%s': %s", path, strerror(errno));
    collector->failed = true;
}

static void file_collect(struct collector *collector, enum garbage kind, const char *folder, const char *name)
{
    struct stat status;
    char *path = path_join(folder, name);
    if (lstat(path, &status) == 0 && S_ISREG(status.st_mode)) {
        collector->found->count[kind]++;
        collector->found->bytes[kind] += (uint64_t)status.st_size;
        if (collector->remove && unlink(path) != 0)
            failure_note(collector, path);
    }
    memory_free(path);
}

static bool name_is_temporary(const char *folder, const char *name)
{
    struct stat status;
    char *path = path_join(folder, name);
    bool old = strncmp(name, ".tmp-", 5) == 0 && lstat(path, &status) == 0 &&
               time(NULL) - status.st_mtime >= TEMPORARY_SECONDS;
    memory_free(path);
    return old;
}

/* The kind of a file of ours that has to go; GARBAGE_COUNT: it stays. */
typedef enum garbage (*file_judge)(const struct collector *collector, const char *folder, const char *name);

static void folder_collect(struct collector *collector, const char *folder, file_judge judge)
{
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        enum garbage kind =
            name_is_temporary(folder, entry->d_name) ? GARBAGE_TEMPORARY : judge(collector, folder, entry->d_name);
        if (kind != GARBAGE_COUNT)
            file_collect(collector, kind, folder, entry->d_name);
    }
    if (directory)
        closedir(directory);
}

/* "<64 digits><suffix>" */
static bool name_is(const char *name, const char *suffix)
{
    return strspn(name, "0123456789abcdef") == KEY_DIGITS && strcmp(name + KEY_DIGITS, suffix) == 0;
}

static enum garbage log_judge(const struct collector *collector, const char *folder, const char *name)
{
    (void)folder;
    return name_is(name, ".log") && !key_is_kept(collector, name) ? GARBAGE_LOGS : GARBAGE_COUNT;
}

static enum garbage cache_judge(const struct collector *collector, const char *folder, const char *name)
{
    (void)collector, (void)folder;
    return name_is(name, ".tokens") ? GARBAGE_CACHES : GARBAGE_COUNT;
}

static enum garbage nothing_judge(const struct collector *collector, const char *folder, const char *name)
{
    (void)collector, (void)folder, (void)name;
    return GARBAGE_COUNT;
}

/* In the folder of a run that is not there. */
static enum garbage orphan_judge(const struct collector *collector, const char *folder, const char *name)
{
    (void)collector, (void)folder;
    size_t length = strlen(name);
    bool ours = strcmp(name, "final.safetensors") == 0 ||
                (strncmp(name, "step-", 5) == 0 && length > 5 + 5 && strcmp(name + length - 5, ".ckpt") == 0);
    return ours ? GARBAGE_CHECKPOINTS : GARBAGE_COUNT;
}

/* In the folder of a finished run: its final weights stay. */
static enum garbage finished_judge(const struct collector *collector, const char *folder, const char *name)
{
    return strcmp(name, "final.safetensors") == 0 ? GARBAGE_COUNT : orphan_judge(collector, folder, name);
}

static void checkpoints_collect(struct collector *collector, const char *folder)
{
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (!name_is(entry->d_name, ""))
            continue;
        char *path = path_join(folder, entry->d_name);
        bool kept = key_is_kept(collector, entry->d_name);
        bool finished = kept && database_run_state(collector->db, entry->d_name, NULL, NULL, 0) == RUN_FINISHED;
        folder_collect(collector, path, !kept ? orphan_judge : finished ? finished_judge : nothing_judge);
        if (collector->remove && !kept && rmdir(path) != 0 && errno != ENOTEMPTY && errno != EEXIST)
            failure_note(collector, path);
        memory_free(path);
    }
    if (directory)
        closedir(directory);
}

static void files_collect(struct collector *collector, const char *folder)
{
    static const struct {
        const char *name;
        file_judge judge;
    } folders[] = {{"", nothing_judge}, {"cache", cache_judge}, {"logs", log_judge}, {"plots", nothing_judge}};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char *path = path_join(folder, folders[i].name);
        folder_collect(collector, path, folders[i].judge);
        memory_free(path);
    }
    char *checkpoints = path_join(folder, "checkpoints");
    checkpoints_collect(collector, checkpoints);
    memory_free(checkpoints);
}

static bool rows_collect(struct collector *collector, struct error *err)
{
    int64_t *runs = &collector->found->count[GARBAGE_RUNS];
    if (!sql_integer(collector->db, runs, 0, "select count(*) from run where id not in (select run from member)", NULL,
                     err))
        return false;
    if (!collector->remove || !*runs)
        return true;
    return sql_begin(collector->db, 60, err) &&
           sql_end(collector->db,
                   sql_script(collector->db,
                              "create temp table if not exists hidden (id integer primary key); "
                              "delete from temp.hidden; "
                              "insert into temp.hidden select id from run where id not in (select run from member); "
                              "delete from step where run in (select id from temp.hidden); "
                              "delete from evaluation where run in (select id from temp.hidden); "
                              "delete from setting where run in (select id from temp.hidden); "
                              "delete from run where id in (select id from temp.hidden); "
                              "delete from tokenizer where id not in (select tokenizer from run)",
                              err),
                   NULL, err) &&
           sql_script(collector->db, "vacuum", err);
}

bool garbage_collect(sqlite3 *db, const char *database_path, bool remove, struct garbage_found *found,
                     struct error *err)
{
    struct collector collector = {.db = db, .remove = remove, .found = found};
    char *folder = path_folder(database_path);
    *found = (struct garbage_found){0};
    bool ok = tasks_have_ended(db, database_path, err) &&
              keys_add(&collector, db, "select key from run where id in (select run from member)", err) &&
              neighbours_add(&collector, folder, database_path, err) && rows_collect(&collector, err);
    if (ok)
        files_collect(&collector, folder);
    for (size_t i = 0; i < collector.kept_count; i++)
        memory_free(collector.kept[i]);
    memory_free(collector.kept);
    memory_free(folder);
    return ok && (!collector.failed || error_set(err, "%s", collector.first.text));
}
