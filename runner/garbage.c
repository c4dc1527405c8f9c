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
#include "runner/task.h"
#include "runner/text_index.h"

/* Workers of a killed supervisor may still be writing their last checkpoint. */
enum { TEMPORARY_SECONDS = 60, KEY_DIGITS = 64 };

struct collector {
    sqlite3 *db;
    bool remove;
    struct garbage_found *found;
    char **kept; /* keys of runs that are not hidden, and those of other databases in the folder */
    size_t kept_count;
    struct text_index submitted; /* keys in the lists of cluster sweeps that have a kept run */
    char **over;                 /* names (cluster.h) of those that have none */
    size_t over_count;
    bool tasks_wait;    /* of a kept run: they will read cached tokens */
    struct error first; /* what could not be removed first */
    bool failed;
};

const char *garbage_name(enum garbage kind)
{
    static const char *const names[GARBAGE_COUNT] = {"hidden runs", "checkpoints and weights", "caches",
                                                     "logs",        "cluster tasks",           "temporary files"};
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

static char *list_path(const char *folder, const char *name, size_t round)
{
    char ending[40];
    snprintf(ending, sizeof ending, ".%zu.tasks", round);
    size_t size = strlen(name) + sizeof ending;
    char *file = memory_alloc(size, 1);
    snprintf(file, size, "%s%s", name, ending);
    char *path = path_join(folder, file);
    memory_free(file);
    return path;
}

static bool lists_read(const char *folder, const char *name, struct task_list **lists, size_t *count, struct error *err)
{
    bool more = true, ok = true;
    *lists = NULL;
    *count = 0;
    while (ok && more) {
        char *path = list_path(folder, name, *count);
        struct task_list list;
        more = access(path, F_OK) == 0;
        ok = !more || task_list_read(path, &list, err);
        if (ok && more) {
            *lists = memory_grow(*lists, *count * sizeof list, *count + 1, sizeof list);
            (*lists)[(*count)++] = list;
        }
        memory_free(path);
    }
    return ok;
}

/* All lists of a sweep stay or none, and what is in one counts as submitted: so all of that stays or none, too. */
static bool sweep_sort(struct collector *collector, const char *folder, const char *name, struct error *err)
{
    struct task_list *lists;
    size_t count;
    bool kept = false, ok = lists_read(folder, name, &lists, &count, err);
    for (size_t r = 0; ok && r < count; r++)
        for (size_t i = 0; i < lists[r].count; i++) {
            const char *key = lists[r].keys[i];
            bool wanted = key_is_kept(collector, key);
            kept = kept || wanted;
            /* As where its experiment was changed since and is kept as NAME@1: nothing else knows of its tasks. */
            collector->tasks_wait =
                collector->tasks_wait || (wanted && database_run_state(collector->db, key, NULL, NULL, 0) != RUN_NONE &&
                                          !cluster_run_ended(collector->db, key));
        }
    for (size_t r = 0; ok && r < count && kept; r++)
        for (size_t i = 0; i < lists[r].count; i++)
            if (text_index_find(&collector->submitted, lists[r].keys[i]) == SIZE_MAX)
                text_index_add(&collector->submitted, lists[r].keys[i], 0);
    if (ok && !kept) {
        collector->over = memory_grow(collector->over, collector->over_count * sizeof *collector->over,
                                      collector->over_count + 1, sizeof *collector->over);
        collector->over[collector->over_count++] = memory_copy_text(name);
    }
    for (size_t r = 0; r < count; r++)
        task_list_release(&lists[r]);
    memory_free(lists);
    return ok;
}

static bool sweeps_sort(struct collector *collector, const char *folder, struct error *err)
{
    static const char ending[] = ".0.tasks";
    DIR *directory = opendir(folder);
    bool ok = true;
    for (struct dirent *entry; directory && ok && (entry = readdir(directory));) {
        size_t length = strlen(entry->d_name), cut = sizeof ending - 1;
        if (length <= cut || strcmp(entry->d_name + length - cut, ending) != 0)
            continue;
        char *name = memory_copy_text(entry->d_name);
        name[length - cut] = 0;
        ok = sweep_sort(collector, folder, name, err) ||
             error_wrap(err, "which runs have tasks on a cluster cannot be told");
        memory_free(name);
    }
    if (directory)
        closedir(directory);
    return ok;
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
    (void)folder;
    return name_is(name, ".tokens") && !collector->tasks_wait ? GARBAGE_CACHES : GARBAGE_COUNT;
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

/* ---- what goes of sweeps on a cluster ---- */

/* Past ".12"; NULL when the text does not begin so. */
static const char *number_skip(const char *text, char before)
{
    size_t digits = text && *text == before ? strspn(text + 1, "0123456789") : 0;
    return digits ? text + 1 + digits : NULL;
}

/* Beside the lists: scripts, claims and logs of arrays. */
static enum garbage array_judge(const struct collector *collector, const char *folder, const char *name)
{
    (void)folder;
    for (size_t i = 0; i < collector->over_count; i++) {
        size_t length = strlen(collector->over[i]);
        if (strncmp(name, collector->over[i], length) != 0)
            continue;
        const char *rest = number_skip(number_skip(name + length, '.'), '.'), *log = number_skip(rest, '-');
        if (rest && (strcmp(rest, ".sh") == 0 || strcmp(rest, ".job") == 0 || (log && strcmp(log, ".log") == 0)))
            return GARBAGE_TASKS;
    }
    return GARBAGE_COUNT;
}

/* Lists last: with them gone nothing tells what the others are of. */
static void sweeps_collect(struct collector *collector, const char *folder)
{
    folder_collect(collector, folder, array_judge);
    for (size_t i = 0; i < collector->over_count; i++) {
        struct task_list *lists;
        struct error unread;
        size_t count;
        /* The last one first: what is left after a crash still begins with round 0. */
        lists_read(folder, collector->over[i], &lists, &count, &unread);
        for (size_t r = count; r-- > 0; task_list_release(&lists[r])) {
            char *path = list_path(folder, collector->over[i], r);
            file_collect(collector, GARBAGE_TASKS, folder, strrchr(path, '/') + 1);
            memory_free(path);
        }
        memory_free(lists);
    }
}

/* In the folder of a task whose run is not there. */
static enum garbage task_judge(const struct collector *collector, const char *folder, const char *name)
{
    static const char *const names[] = {"run.db", "run.db-journal", "run.db.lock", "tries"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return GARBAGE_TASKS;
    return orphan_judge(collector, folder, name) == GARBAGE_COUNT ? GARBAGE_COUNT : GARBAGE_TASKS;
}

/* A task of a hidden run may still be at work: then all of it stays. */
static void shards_collect(struct collector *collector, const char *folder)
{
    char holder[LOCKFILE_HOLDER_SIZE];
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        const char *key = entry->d_name;
        if (!name_is(key, "") || key_is_kept(collector, key) || text_index_find(&collector->submitted, key) != SIZE_MAX)
            continue;
        char *path = path_join(folder, key), *run = path_join(path, "run.db");
        if (!database_lock_holder(run, holder, sizeof holder)) {
            folder_collect(collector, path, task_judge);
            if (collector->remove && rmdir(path) != 0 && errno != ENOTEMPTY && errno != EEXIST)
                failure_note(collector, path);
        }
        memory_free(path);
        memory_free(run);
    }
    if (directory)
        closedir(directory);
}

/* ---- all of it ---- */

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
    char *checkpoints = path_join(folder, "checkpoints"), *tasks = path_join(folder, "logs/slurm");
    char *shards = path_join(folder, "shards");
    checkpoints_collect(collector, checkpoints);
    sweeps_collect(collector, tasks);
    shards_collect(collector, shards);
    memory_free(checkpoints);
    memory_free(tasks);
    memory_free(shards);
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
    char *folder = path_folder(database_path), *tasks = path_join(folder, "logs/slurm");
    *found = (struct garbage_found){0};
    bool ok = tasks_have_ended(db, database_path, err) &&
              keys_add(&collector, db, "select key from run where id in (select run from member)", err) &&
              neighbours_add(&collector, folder, database_path, err) && sweeps_sort(&collector, tasks, err) &&
              rows_collect(&collector, err);
    if (ok)
        files_collect(&collector, folder);
    for (size_t i = 0; i < collector.kept_count; i++)
        memory_free(collector.kept[i]);
    for (size_t i = 0; i < collector.over_count; i++)
        memory_free(collector.over[i]);
    text_index_release(&collector.submitted);
    memory_free(collector.kept);
    memory_free(collector.over);
    memory_free(tasks);
    memory_free(folder);
    return ok && (!collector.failed || error_set(err, "%s", collector.first.text));
}
