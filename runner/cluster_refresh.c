/* Gathering for those who only look. */
#include "runner/cluster_refresh.h"

#include <string.h>

#include "core/memory.h"
#include "runner/checkpoint.h"
#include "runner/command.h"
#include "runner/gather.h"
#include "runner/slurm.h"
#include "runner/text_index.h"

enum { FLUSH_SECONDS = 60 };

bool cluster_run_ended(sqlite3 *db, const char *key)
{
    enum run_state state = database_run_state(db, key, NULL, NULL, 0);
    return state == RUN_FINISHED || state == RUN_DIVERGED || state == RUN_FAILED || state == RUN_NONE;
}

/* Keys of all rounds that have not ended, each once. Owner: caller, memory_free(). */
static struct gathered *open_runs(sqlite3 *db, const struct cluster *cluster, size_t *count)
{
    struct text_index seen = {0};
    size_t room = 0;
    for (size_t r = 0; r < cluster->round_count; r++)
        room += cluster->rounds[r].list.count;
    struct gathered *runs = memory_alloc(room, sizeof *runs);
    *count = 0;
    for (size_t r = 0; r < cluster->round_count; r++)
        for (size_t i = 0; i < cluster->rounds[r].list.count; i++) {
            const char *key = cluster->rounds[r].list.keys[i];
            if (text_index_find(&seen, key) != SIZE_MAX)
                continue;
            text_index_add(&seen, key, 0);
            if (!cluster_run_ended(db, key))
                runs[(*count)++].key = key;
        }
    text_index_release(&seen);
    return runs;
}

size_t cluster_left(sqlite3 *db, const struct cluster *cluster)
{
    size_t count;
    memory_free(open_runs(db, cluster, &count));
    return count;
}

static bool run_settle(struct database *database, const struct cluster *cluster, const char *checkpoints,
                       const char *key, bool cancelled, size_t *left, struct error *err)
{
    enum run_state state = database_run_state(database_handle(database), key, NULL, NULL, 0);
    if (state == RUN_FINISHED)
        return gather_weights(cluster->shards, checkpoints, key, err) && checkpoint_remove(cluster->shards, key, err);
    if (cluster_run_ended(database_handle(database), key))
        return true;
    if (cancelled)
        return database_run_end(database, key, RUN_FAILED, "cancelled (runner cancel)", NULL, err);
    ++*left;
    return true;
}

bool cluster_refresh(struct database *database, const struct cluster *cluster, const char *checkpoints, bool cancelled,
                     size_t *left, struct error *err)
{
    size_t count;
    struct gathered *runs = open_runs(database_handle(database), cluster, &count);
    bool ok = true;
    *left = 0;
    for (size_t i = 0; ok && cancelled && i < count; i++)
        ok = gather_tidy(cluster->shards, runs[i].key, err);
    ok = ok && gather_all(database, cluster->shards, runs, count, message_note, NULL, err);
    for (size_t i = 0; ok && i < count; i++)
        ok = run_settle(database, cluster, checkpoints, runs[i].key, cancelled, left, err);
    ok = ok && database_flush(database, FLUSH_SECONDS, err);
    if (ok && count)
        ok = database_summarize(database, cluster->rounds[0].list.experiment, err);
    memory_free(runs);
    return ok;
}

bool cluster_active(const struct cluster *cluster, size_t *active, struct error *err)
{
    size_t count, tasks;
    struct slurm_queue queue = {0};
    char **names = cluster_names(cluster, 0, &count, &tasks);
    bool ok = !count || slurm_look((const char *const *)names, count, tasks, &queue, err);
    *active = 0;
    for (size_t i = 0; i < queue.count; i++)
        *active += slurm_life_of(queue.tasks[i].state) != SLURM_OVER;
    slurm_queue_release(&queue);
    cluster_names_free(names, count);
    return ok;
}
