/* Sweeps on a cluster, looked at without their files. */
#include "runner/cluster_status.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/cluster_refresh.h"
#include "runner/command.h"
#include "runner/database.h"
#include "runner/file.h"
#include "runner/lockfile.h"
#include "runner/shell_word.h"
#include "runner/slurm.h"
#include "runner/sql.h"
#include "runner/text_index.h"
#include "runner/text_stream.h"

/* ---- which ---- */

static bool cluster_add(struct cluster_watch *watch, sqlite3 *db, const char *experiment, struct error *err)
{
    struct cluster cluster;
    char *folder = path_folder(watch->path), *logs = path_join(folder, "logs");
    bool ok = cluster_open(&cluster, folder, logs, watch->path, experiment, err);
    if (ok && cluster_left(db, &cluster)) {
        watch->clusters = memory_grow(watch->clusters, watch->count * sizeof cluster, watch->count + 1, sizeof cluster);
        watch->clusters[watch->count++] = cluster;
    } else {
        cluster_close(&cluster);
    }
    memory_free(logs);
    memory_free(folder);
    return ok;
}

bool cluster_watch_open(struct cluster_watch *watch, sqlite3 *db, const char *path, struct error *err)
{
    *watch = (struct cluster_watch){.path = path};
    sqlite3_stmt *s = sql_prepare(db, "select name from experiment where not archived order by id", NULL, err);
    bool row, ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row)
        ok = cluster_add(watch, db, sql_text(s, 0), err);
    sqlite3_finalize(s);
    return ok;
}

void cluster_watch_close(struct cluster_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        cluster_close(&watch->clusters[i]);
    for (size_t i = 0; i < watch->task_count; i++)
        memory_free(watch->tasks[i].experiment);
    memory_free(watch->clusters);
    memory_free(watch->tasks);
    *watch = (struct cluster_watch){.path = NULL};
}

/* ---- gathering ---- */

bool cluster_watch_may_gather(const struct cluster_watch *watch)
{
    char holder[LOCKFILE_HOLDER_SIZE];
    return watch->count && !database_lock_holder(watch->path, holder, sizeof holder);
}

bool cluster_watch_gather(struct cluster_watch *watch, struct error *err)
{
    struct database_options options = {.command = "runner status", .note = message_note};
    struct error closing;
    struct database *database = database_open(watch->path, &options, err);
    char *folder = path_folder(watch->path), *checkpoints = path_join(folder, "checkpoints");
    bool ok = database != NULL;
    size_t left;
    for (size_t i = 0; ok && i < watch->count; i++)
        ok = cluster_refresh(database, &watch->clusters[i], checkpoints, false, &left, err);
    if (!database_close(database, &closing) && ok)
        ok = error_set(err, "%s", closing.text);
    memory_free(checkpoints);
    memory_free(folder);
    return ok || error_wrap(err, "what the tasks have written meanwhile is not taken over");
}

/* ---- asking ---- */

static const char *experiment_of(const struct cluster *cluster)
{
    return cluster->rounds[0].list.experiment;
}

/* The run whose present task this is; NULL when it is none of the cluster's, or an earlier one. */
static const char *key_of(const struct cluster *cluster, const struct slurm_task *task)
{
    size_t round, chunk, found_round, found_chunk, found_index;
    if (task->index < 0 || !cluster_job_parse(cluster, task->name, &round, &chunk))
        return NULL;
    const struct task_list *list = &cluster->rounds[round].list;
    size_t index = chunk * list->round.chunk + (size_t)task->index;
    bool latest = (size_t)task->index < list->round.chunk && index < list->count &&
                  cluster_find(cluster, list->keys[index], &found_round, &found_chunk, &found_index) &&
                  found_round == round;
    return latest ? list->keys[index] : NULL;
}

static void task_count(struct cluster_watch *watch, const struct cluster *cluster, const struct slurm_task *task)
{
    /* Slurm keeps the reason of a task that waited when it runs. */
    bool waits = slurm_life_of(task->state) == SLURM_WAITS && strcmp(task->reason, "None") != 0;
    const char *reason = waits ? task->reason : "";
    for (size_t i = 0; i < watch->task_count; i++) {
        struct status_tasks *t = &watch->tasks[i];
        if (strcmp(t->experiment, experiment_of(cluster)) == 0 && strcmp(t->state, task->state) == 0 &&
            strcmp(t->reason, reason) == 0) {
            t->count++;
            return;
        }
    }
    watch->tasks = memory_grow(watch->tasks, watch->task_count * sizeof *watch->tasks, watch->task_count + 1,
                               sizeof *watch->tasks);
    struct status_tasks *t = &watch->tasks[watch->task_count++];
    *t = (struct status_tasks){.experiment = memory_copy_text(experiment_of(cluster)), .count = 1};
    snprintf(t->state, sizeof t->state, "%s", task->state);
    snprintf(t->reason, sizeof t->reason, "%s", reason);
}

/* A requeued element may be listed with its former end as well: what lives counts, so it comes first. */
static void queue_take(struct cluster_watch *watch, sqlite3 *db, const struct cluster *cluster,
                       const struct slurm_queue *queue, bool live, struct text_index *seen)
{
    for (size_t i = 0; i < queue->count; i++) {
        const struct slurm_task *task = &queue->tasks[i];
        const char *key = (slurm_life_of(task->state) != SLURM_OVER) == live ? key_of(cluster, task) : NULL;
        if (!key || text_index_find(seen, key) != SIZE_MAX || cluster_run_ended(db, key))
            continue;
        text_index_add(seen, key, 0);
        task_count(watch, cluster, task);
    }
}

static void lost_note(const struct cluster_watch *watch, sqlite3 *db, const struct cluster *cluster, size_t active,
                      void (*note)(const char *text))
{
    char holder[LOCKFILE_HOLDER_SIZE];
    size_t left = cluster_left(db, cluster);
    if (left <= active || database_lock_holder(watch->path, holder, sizeof holder))
        return;
    bool row = false;
    sqlite3_stmt *s = sql_prepare(db, "select path from experiment where name = ?", "t", NULL, experiment_of(cluster));
    char *file = shell_word(s && sql_step(s, &row, NULL) && row ? sql_text(s, 0) : "FILE");
    char *path = shell_word(watch->path);
    struct text_stream text;
    text_stream_open(&text);
    fprintf(text.out,
            "%zu run%s of '%s' %s no task that waits or runs and nobody follows them: `runner run %s --launcher slurm "
            "--db %s` goes on with them",
            left - active, left - active == 1 ? "" : "s", experiment_of(cluster), left - active == 1 ? "has" : "have",
            file, path);
    char *line = text_stream_take(&text);
    note(line);
    memory_free(line);
    memory_free(path);
    memory_free(file);
    sqlite3_finalize(s);
}

static void cluster_take(struct cluster_watch *watch, sqlite3 *db, const struct cluster *cluster,
                         const struct slurm_queue *queue, void (*note)(const char *text))
{
    struct text_index seen = {0};
    queue_take(watch, db, cluster, queue, true, &seen);
    size_t active = seen.count;
    queue_take(watch, db, cluster, queue, false, &seen);
    text_index_release(&seen);
    watch->active += active;
    lost_note(watch, db, cluster, active, note);
}

bool cluster_watch_ask(struct cluster_watch *watch, sqlite3 *db, void (*note)(const char *text), struct error *err)
{
    size_t count = 0, expected = 0;
    char **names = NULL;
    struct slurm_queue queue = {0};
    for (size_t i = 0; i < watch->count; i++) {
        size_t more, tasks;
        char **add = cluster_names(&watch->clusters[i], 0, &more, &tasks);
        names = memory_grow(names, count * sizeof *names, count + more + 1, sizeof *names);
        memcpy(names + count, add, more * sizeof *names);
        memory_free(add);
        count += more;
        expected += tasks;
    }
    bool ok = !count || slurm_look((const char *const *)names, count, expected, &queue, err);
    for (size_t i = 0; ok && i < watch->count; i++)
        cluster_take(watch, db, &watch->clusters[i], &queue, note);
    slurm_queue_release(&queue);
    cluster_names_free(names, count);
    return ok;
}
