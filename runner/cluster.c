/* The files that say what has been submitted, and submitting. */
#include "runner/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/command.h"
#include "runner/file.h"
#include "runner/hash.h"
#include "runner/launcher.h"
#include "runner/slurm.h"
#include "runner/task_claim.h"

enum { NAME_SIZE = 200, ROUNDS_MOST = 10000 };

/* "<folder>/<name>.<round>[.<chunk>]<ending>"; chunk SIZE_MAX: none. Owner: caller, memory_free(). */
static char *file_path(const struct cluster *cluster, size_t round, size_t chunk, const char *ending)
{
    char name[NAME_SIZE + 100];
    if (chunk == SIZE_MAX)
        snprintf(name, sizeof name, "%s.%zu%s", cluster->name, round, ending);
    else
        snprintf(name, sizeof name, "%s.%zu.%zu%s", cluster->name, round, chunk, ending);
    return path_join(cluster->folder, name);
}

static char *job_name_make(const struct cluster *cluster, size_t round, size_t chunk, const char *token)
{
    char name[NAME_SIZE + 50 + TASK_TOKEN_SIZE];
    snprintf(name, sizeof name, "%s.%zu.%zu%s%s", cluster->name, round, chunk, *token ? "." : "", token);
    return memory_copy_text(name);
}

char *cluster_job_name(const struct cluster *cluster, size_t round, size_t chunk)
{
    return job_name_make(cluster, round, chunk, cluster->rounds[round].list.round.token);
}

bool cluster_job_parse(const struct cluster *cluster, const char *name, size_t *round, size_t *chunk)
{
    size_t prefix = strlen(cluster->name);
    if (strncmp(name, cluster->name, prefix) != 0 || sscanf(name + prefix, ".%zu.%zu", round, chunk) != 2 ||
        *round >= cluster->round_count || *chunk >= cluster->rounds[*round].chunk_count)
        return false;
    char *whole = cluster_job_name(cluster, *round, *chunk);
    bool same = strcmp(whole, name) == 0;
    memory_free(whole);
    return same;
}

char *cluster_log_path(const struct cluster *cluster, size_t round, size_t chunk, size_t index)
{
    char ending[40];
    snprintf(ending, sizeof ending, "-%zu.log", index);
    return file_path(cluster, round, chunk, ending);
}

static size_t chunks_of(size_t tasks, const struct task_round *round)
{
    return (tasks + round->chunk - 1) / round->chunk;
}

/* Fewer tasks may run at once than there are arrays: one array waits for the one before it. */
static bool is_chained(size_t chunks, const struct task_round *round)
{
    return round->at_once && round->at_once < chunks;
}

/* Of what may run at once, what is for one array. 0: no limit. */
static size_t share_of(size_t chunk, size_t chunks, const struct task_round *round)
{
    if (is_chained(chunks, round))
        return round->at_once;
    return round->at_once / chunks + (chunk < round->at_once % chunks);
}

/* ---- reading ---- */

static void job_read(const struct cluster *cluster, size_t number, struct cluster_round *round)
{
    for (size_t c = 0; c < round->chunk_count; c++) {
        char *path = file_path(cluster, number, c, ".job");
        round->submitted[c] = claim_holder(path, round->jobs[c]);
        memory_free(path);
    }
}

static bool round_read(struct cluster *cluster, const char *path, struct error *err)
{
    struct cluster_round round = {.chunk_count = 0};
    if (!task_list_read(path, &round.list, err))
        return false;
    round.chunk_count = chunks_of(round.list.count, &round.list.round);
    round.submitted = memory_alloc(round.chunk_count, sizeof *round.submitted);
    round.jobs = memory_alloc(round.chunk_count, sizeof *round.jobs);
    job_read(cluster, cluster->round_count, &round);
    cluster->rounds =
        memory_grow(cluster->rounds, cluster->round_count * sizeof round, cluster->round_count + 1, sizeof round);
    cluster->rounds[cluster->round_count++] = round;
    return true;
}

static char *name_make(const char *folder, const char *database_path, const char *experiment)
{
    char hex[HASH_TEXT_SIZE], name[NAME_SIZE];
    const char *slash = strrchr(database_path, '/');
    char *whole = realpath(folder, NULL), *path = path_join(whole ? whole : folder, slash ? slash + 1 : database_path);
    hash_bytes(path, strlen(path), hex);
    snprintf(name, sizeof name, "runner-%s-%.8s", experiment, hex);
    memory_free(path);
    free(whole);
    return memory_copy_text(name);
}

bool cluster_open(struct cluster *cluster, const char *results_folder, const char *logs, const char *database_path,
                  const char *experiment, struct error *err)
{
    *cluster = (struct cluster){.folder = path_join(logs, "slurm"),
                                .shards = path_join(results_folder, "shards"),
                                .name = name_make(results_folder, database_path, experiment)};
    for (bool more = true; more && cluster->round_count < ROUNDS_MOST;) {
        char *path = file_path(cluster, cluster->round_count, SIZE_MAX, ".tasks");
        more = access(path, F_OK) == 0;
        bool ok = !more || round_read(cluster, path, err);
        memory_free(path);
        if (!ok)
            return false;
    }
    return true;
}

void cluster_close(struct cluster *cluster)
{
    for (size_t r = 0; r < cluster->round_count; r++) {
        task_list_release(&cluster->rounds[r].list);
        memory_free(cluster->rounds[r].submitted);
        memory_free(cluster->rounds[r].jobs);
    }
    memory_free(cluster->rounds);
    memory_free(cluster->folder);
    memory_free(cluster->shards);
    memory_free(cluster->name);
    *cluster = (struct cluster){0};
}

bool cluster_find(const struct cluster *cluster, const char *key, size_t *round, size_t *chunk, size_t *index)
{
    for (size_t r = cluster->round_count; r-- > 0;) {
        const struct task_list *list = &cluster->rounds[r].list;
        for (size_t i = 0; i < list->count; i++)
            if (strcmp(list->keys[i], key) == 0) {
                *round = r;
                *chunk = i / list->round.chunk;
                *index = i % list->round.chunk;
                return true;
            }
    }
    return false;
}

char **cluster_names(const struct cluster *cluster, size_t first, size_t *count, size_t *tasks)
{
    size_t room = 0;
    *count = *tasks = 0;
    for (size_t r = first; r < cluster->round_count; r++) {
        room += cluster->rounds[r].chunk_count;
        *tasks += cluster->rounds[r].list.count;
    }
    char **names = memory_alloc(room, sizeof *names);
    for (size_t r = first; r < cluster->round_count; r++)
        for (size_t c = 0; c < cluster->rounds[r].chunk_count; c++)
            names[(*count)++] = cluster_job_name(cluster, r, c);
    return names;
}

void cluster_names_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memory_free(names[i]);
    memory_free(names);
}

/* ---- submitting ---- */

/* count: tasks of the whole round. */
static bool script_write(const struct cluster *cluster, size_t round, size_t chunk, size_t count,
                         const struct task_round *made, const char *list, const struct cluster_options *options,
                         struct error *err)
{
    size_t chunks = chunks_of(count, made), offset = chunk * made->chunk;
    char *path = file_path(cluster, round, chunk, ".sh"), *claim = file_path(cluster, round, chunk, ".job");
    char *log = file_path(cluster, round, chunk, "-%a.log"), *name = job_name_make(cluster, round, chunk, made->token);
    struct launcher_script script = {.path = path,
                                     .name = name,
                                     .list = list,
                                     .token = made->token,
                                     .claim = claim,
                                     .log = log,
                                     .offset = offset,
                                     .tasks = chunk + 1 < chunks ? made->chunk : count - offset,
                                     .at_once = share_of(chunk, chunks, made)};
    memcpy(script.settings, options->settings, sizeof script.settings);
    memcpy(script.setting_counts, options->setting_counts, sizeof script.setting_counts);
    /* One of an earlier round of this number, whose list is gone, would stand for this array. */
    bool ok = unlink(claim) == 0 || errno == ENOENT || error_set(err, "cannot remove '%s': %s", claim, strerror(errno));
    ok = ok && launcher_script_write(&script, err);
    memory_free(path);
    memory_free(claim);
    memory_free(log);
    memory_free(name);
    return ok;
}

/* Slurm runs elsewhere: every path in a script is absolute. */
static bool folder_resolve(struct cluster *cluster, struct error *err)
{
    if (!folder_make(cluster->folder, err) || !folder_make(cluster->shards, err))
        return false;
    char *whole = realpath(cluster->folder, NULL);
    if (!whole)
        return error_set(err, "'%s': %s", cluster->folder, strerror(errno));
    memory_free(cluster->folder);
    cluster->folder = memory_copy_text(whole);
    free(whole);
    return true;
}

bool cluster_round_add(struct cluster *cluster, const struct sweep *sweep, const size_t *runs, size_t count,
                       const struct cluster_options *options, struct error *err)
{
    struct task_round made = {.at_once = options->at_once};
    size_t round = cluster->round_count;
    if (round >= ROUNDS_MOST)
        return error_set(err, "'%s' has %zu lists of tasks: expected fewer", cluster->folder, round);
    if (!slurm_array_limit(&made.chunk, err) || !folder_resolve(cluster, err))
        return false;
    task_token_make(made.token);
    char *list = file_path(cluster, round, SIZE_MAX, ".tasks");
    bool ok = true;
    for (size_t c = 0; ok && c < chunks_of(count, &made); c++)
        ok = script_write(cluster, round, c, count, &made, list, options, err);
    for (size_t i = 0; ok && i < count; i++) {
        char *folder = path_join(cluster->shards, sweep->runs[runs[i]].key);
        ok = folder_make(folder, err);
        memory_free(folder);
    }
    /* The list comes last: without it there is no round. */
    ok = ok && task_list_write(list, sweep, runs, count, &made, &options->tasks, err) && round_read(cluster, list, err);
    memory_free(list);
    return ok;
}

static void note_print(const char *text)
{
    message("%s; trying again", text);
}

static bool chunk_submit(struct cluster *cluster, size_t round, size_t chunk, struct error *err)
{
    char *name = cluster_job_name(cluster, round, chunk);
    char *script = file_path(cluster, round, chunk, ".sh"), *claim = file_path(cluster, round, chunk, ".job");
    const struct cluster_round *r = &cluster->rounds[round];
    const char *after = chunk && is_chained(r->chunk_count, &r->list.round) ? r->jobs[chunk - 1] : NULL;
    char *job = r->jobs[chunk];
    bool ok = slurm_submit(name, script, after, claim, job, note_print, err) && claim_make(claim, job, err);
    cluster->rounds[round].submitted[chunk] = ok;
    memory_free(name);
    memory_free(script);
    memory_free(claim);
    return ok;
}

/* "...; submitted before that: 123 (name), 124 (name)". */
static void submitted_add(const struct cluster *cluster, struct error *err)
{
    size_t used = strlen(err->text), found = 0;
    for (size_t r = 0; r < cluster->round_count; r++)
        for (size_t c = 0; c < cluster->rounds[r].chunk_count && used < sizeof err->text; c++) {
            if (!cluster->rounds[r].submitted[c])
                continue;
            char *name = cluster_job_name(cluster, r, c);
            used += (size_t)snprintf(err->text + used, sizeof err->text - used, "%s%s (%s)",
                                     found++ ? ", " : "; submitted: ", cluster->rounds[r].jobs[c], name);
            memory_free(name);
        }
    if (!found && used < sizeof err->text)
        snprintf(err->text + used, sizeof err->text - used, "; nothing was submitted");
}

bool cluster_submit(struct cluster *cluster, struct error *err)
{
    for (size_t r = 0; r < cluster->round_count; r++)
        for (size_t c = 0; c < cluster->rounds[r].chunk_count; c++)
            if (!cluster->rounds[r].submitted[c] && !chunk_submit(cluster, r, c, err)) {
                submitted_add(cluster, err);
                return false;
            }
    return true;
}
