/* The loop that follows a sweep on a cluster. */
#include "runner/follow.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/checkpoint.h"
#include "runner/clock.h"
#include "runner/command.h"
#include "runner/file.h"
#include "runner/gather.h"
#include "runner/signals.h"
#include "runner/slurm.h"
#include "runner/sql.h"
#include "runner/sweep_progress.h"
#include "runner/verdict.h"

enum { FLUSH_SECONDS = 60, GONE_LOOKS = 2, UNKNOWN_LOOKS = 6, LOG_TAIL = 2000, LOG_LIMIT = 1 << 26 };

struct watched {
    size_t run;  /* index in the sweep */
    bool placed; /* a round has it: */
    size_t round, chunk, index;
    bool wanted_again; /* --retry: what its last task came to does not count */
    bool ended, held;
    enum run_state shown; /* as progress has been told */
    int64_t next_step, last_evaluation;
    int64_t submitted_at; /* next_step then; -1: not by this command */
    int stalls;           /* tasks in a row that were submitted and came no further */
    enum slurm_life life;
    int misses; /* looks in a row that did not show it, or showed an unknown word */
    char word[40];
};

struct follower {
    struct database *database;
    sqlite3 *db;
    const struct sweep *sweep;
    const struct schedule *schedule;
    struct cluster *cluster;
    const struct follow_options *options;
    struct follow_outcome *outcome;
    struct progress *progress;
    struct watched *watched;
    struct gathered *gathered;
    size_t count, first_round;
    bool seen; /* the queue has been looked at */
};

static const char *key_of(const struct follower *f, const struct watched *w)
{
    return f->sweep->runs[w->run].key;
}

static void note_show(void *context, const char *text)
{
    const struct follower *f = context;
    progress_note(f->progress, SIZE_MAX, text);
}

/* ---- progress ---- */

static bool steps_show(struct follower *f, size_t i, struct error *err)
{
    struct watched *w = &f->watched[i];
    sqlite3_stmt *s = sql_prepare(f->db,
                                  "select step, tokens, loss, seconds from step where run = (select id from run where "
                                  "key = ?) and step >= ? order by step",
                                  "ti", err, key_of(f, w), w->next_step);
    bool row, ok = s != NULL;
    double now = seconds_now();
    while (ok && (ok = sql_step(s, &row, err)) && row) {
        struct step_record record = {.step = sqlite3_column_int64(s, 0),
                                     .tokens = sqlite3_column_int64(s, 1),
                                     .loss = sqlite3_column_double(s, 2),
                                     .seconds = sqlite3_column_double(s, 3)};
        progress_step(f->progress, i, &record, now);
        w->next_step = record.step + 1;
    }
    sqlite3_finalize(s);
    return ok;
}

static bool evaluations_show(struct follower *f, size_t i, struct error *err)
{
    struct watched *w = &f->watched[i];
    sqlite3_stmt *s = sql_prepare(f->db,
                                  "select split, step, blocks, loss, bits_per_byte from evaluation where run = "
                                  "(select id from run where key = ?) and step > ? order by step, split",
                                  "ti", err, key_of(f, w), w->last_evaluation);
    bool row, ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row) {
        struct evaluation_row e = {.step = sqlite3_column_int64(s, 1)};
        snprintf(e.split, sizeof e.split, "%s", sql_text(s, 0));
        e.record.blocks = sqlite3_column_int64(s, 2);
        e.record.loss = sqlite3_column_double(s, 3);
        e.record.bits_per_byte = sqlite3_column_double(s, 4);
        progress_evaluation(f->progress, i, &e, seconds_now());
        w->last_evaluation = e.step;
    }
    sqlite3_finalize(s);
    return ok;
}

static bool start_show(struct follower *f, size_t i, struct error *err)
{
    struct watched *w = &f->watched[i];
    int64_t first = 0;
    bool ok = sql_integer(f->db, &first, 0, "select first_step from run where key = ?", "t", err, key_of(f, w));
    if (ok && (w->shown != RUN_RUNNING || first < w->next_step)) {
        progress_run_start(f->progress, i, first, 0, seconds_now());
        w->shown = RUN_RUNNING;
        w->next_step = first;
        w->last_evaluation = first ? first : -1;
    }
    return ok;
}

/* What the last gathering brought for one run. */
static bool run_show(struct follower *f, size_t i, struct error *err)
{
    struct watched *w = &f->watched[i];
    char reason[256];
    enum run_state state = database_run_state(f->db, key_of(f, w), NULL, reason, sizeof reason);
    if (state == RUN_QUEUED || state == RUN_NONE)
        return true;
    bool over = state == RUN_FINISHED || state == RUN_DIVERGED || state == RUN_FAILED;
    if (w->shown != RUN_RUNNING && !start_show(f, i, err))
        return false;
    if (!steps_show(f, i, err) || !evaluations_show(f, i, err))
        return false;
    if (state != RUN_RUNNING && state != w->shown) {
        progress_run_end(f->progress, i, state, *reason ? reason : NULL, seconds_now());
        w->shown = state;
    }
    if (over && !w->wanted_again)
        w->ended = true;
    return true;
}

/* ---- gathering ---- */

static bool run_tidy(struct follower *f, const struct watched *w, struct error *err)
{
    enum run_state state = database_run_state(f->db, key_of(f, w), NULL, NULL, 0);
    return state != RUN_FINISHED || (gather_weights(f->cluster->shards, f->options->checkpoints, key_of(f, w), err) &&
                                     checkpoint_remove(f->cluster->shards, key_of(f, w), err));
}

static bool gather(struct follower *f, struct error *err)
{
    bool any = false, ok = gather_all(f->database, f->cluster->shards, f->gathered, f->count, note_show, f, err);
    for (size_t i = 0; ok && i < f->count; i++) {
        struct watched *w = &f->watched[i];
        if (!f->gathered[i].changed || w->wanted_again)
            continue;
        ok = run_show(f, i, err) && (!w->ended || run_tidy(f, w, err));
        any = any || w->ended;
    }
    return ok && (!any || database_summarize(f->database, f->sweep->experiment->name, err));
}

/* ---- the queue ---- */

static void task_take(struct follower *f, const struct slurm_task *task)
{
    size_t round, chunk;
    if (!cluster_job_parse(f->cluster, task->name, &round, &chunk))
        return;
    for (size_t i = 0; i < f->count; i++) {
        struct watched *w = &f->watched[i];
        if (!w->placed || w->round != round || w->chunk != chunk || (int64_t)w->index != task->index)
            continue;
        /* A job's requeued element may be listed with its former end as well: what lives counts. */
        if (w->misses == 0 && w->life != SLURM_OVER)
            return;
        w->life = slurm_life_of(task->state);
        w->misses = w->life == SLURM_UNKNOWN ? w->misses : 0;
        snprintf(w->word, sizeof w->word, "%s", task->state);
        bool held = w->life == SLURM_WAITS && strcasestr(task->reason, "held");
        if (held && !w->held) {
            char text[200];
            snprintf(text, sizeof text, "its task is held by Slurm (%s): scontrol release %s_%" PRId64, task->reason,
                     task->job, task->index);
            progress_note(f->progress, i, text);
        }
        w->held = held;
        return;
    }
}

static bool look(struct follower *f, struct error *err)
{
    size_t count, tasks;
    struct slurm_queue queue = {0};
    char **names = cluster_names(f->cluster, f->first_round, &count, &tasks);
    bool ok = !count || slurm_look((const char *const *)names, count, tasks, &queue, err);
    if (ok) {
        for (size_t i = 0; i < f->count; i++) {
            f->watched[i].misses++;
            f->watched[i].life = SLURM_OVER;
        }
        for (size_t t = 0; t < queue.count; t++)
            task_take(f, &queue.tasks[t]);
    }
    slurm_queue_release(&queue);
    cluster_names_free(names, count);
    f->seen = f->seen || ok;
    return ok;
}

/* The end of what a task printed. Owner: caller; NULL when there is nothing. */
static char *log_tail(const struct follower *f, const struct watched *w)
{
    char *path = cluster_log_path(f->cluster, w->round, w->chunk, w->index), *text = NULL, *tail = NULL;
    size_t size = 0;
    if (file_read(path, LOG_LIMIT, &text, &size, NULL))
        tail = memory_copy_text(text + (size > LOG_TAIL ? size - LOG_TAIL : 0));
    memory_free(text);
    memory_free(path);
    return tail;
}

static bool run_fail(struct follower *f, size_t i, const char *reason, struct error *err)
{
    struct watched *w = &f->watched[i];
    char *tail = log_tail(f, w);
    bool ok = database_run_end(f->database, key_of(f, w), RUN_FAILED, reason, tail, err) &&
              database_flush(f->database, FLUSH_SECONDS, err);
    memory_free(tail);
    progress_run_end(f->progress, i, RUN_FAILED, reason, seconds_now());
    w->shown = RUN_FAILED;
    w->ended = true;
    return ok;
}

/* Its task waits or runs, as far as is known. */
static bool is_active(const struct watched *w)
{
    if (!w->placed)
        return false;
    if (w->life == SLURM_WAITS || w->life == SLURM_RUNS)
        return w->misses == 0;
    return w->life == SLURM_UNKNOWN && w->misses < UNKNOWN_LOOKS;
}

/* Neither listed as alive nor only left out of an answer. */
static bool is_gone(const struct watched *w)
{
    bool missed = w->misses > 0 && w->misses < GONE_LOOKS && w->life != SLURM_UNKNOWN;
    return w->placed && !is_active(w) && !missed;
}

/* *again: it shall be submitted. */
static bool run_judge(struct follower *f, size_t i, bool *again, struct error *err)
{
    struct watched *w = &f->watched[i];
    *again = false;
    if (is_active(w))
        w->wanted_again = false;
    if (w->ended || is_active(w))
        return true;
    if (!w->placed || w->wanted_again) {
        *again = true;
        return true;
    }
    if (!is_gone(w))
        return true;
    char reason[256];
    enum run_state state = database_run_state(f->db, key_of(f, w), NULL, NULL, 0);
    bool checkpoint = checkpoint_newest(f->cluster->shards, key_of(f, w)) >= 0;
    *again =
        task_goes_on(w->misses && w->life != SLURM_UNKNOWN ? "" : w->word, state != RUN_QUEUED && state != RUN_NONE,
                     checkpoint, state == RUN_INTERRUPTED, reason, sizeof reason);
    /* A task counts those before it that came no further (task.c), but one that never began cannot. */
    if (*again && w->submitted_at == w->next_step && w->stalls + 1 >= TASK_TRIES) {
        *again = false;
        snprintf(reason, sizeof reason, "%d tasks in a row made no progress (%.40s)", TASK_TRIES, w->word);
    }
    return *again || run_fail(f, i, reason, err);
}

/* ---- submitting ---- */

static bool run_prepare(struct follower *f, struct watched *w, struct error *err)
{
    const struct planned_run *planned = &f->schedule->runs[w->run];
    const char *key = key_of(f, w);
    if (w->wanted_again && !gather_forget(f->cluster->shards, key, planned->state == RUN_DIVERGED, err))
        return false;
    bool anew = w->wanted_again && planned->state == RUN_DIVERGED;
    if (anew && !checkpoint_remove(f->options->checkpoints, key, err))
        return false;
    return checkpoint_move(f->options->checkpoints, f->cluster->shards, key, err) &&
           sql_run(f->db, "update run set state = 'queued', reason = '', log_tail = '' where key = ?", "t", err, key);
}

static bool runs_submit(struct follower *f, const bool *again, size_t count, struct error *err)
{
    size_t *runs = memory_alloc(count, sizeof *runs), n = 0;
    bool ok = sql_begin(f->db, FLUSH_SECONDS, err);
    if (ok) {
        for (size_t i = 0; ok && i < f->count; i++)
            if (again[i]) {
                ok = run_prepare(f, &f->watched[i], err);
                runs[n++] = f->watched[i].run;
            }
        ok = sql_end(f->db, ok, NULL, err);
    }
    ok = ok && cluster_round_add(f->cluster, f->sweep, runs, n, &f->options->cluster, err) &&
         cluster_submit(f->cluster, err);
    size_t round = f->cluster->round_count - 1;
    n = 0;
    for (size_t i = 0; ok && i < f->count; i++)
        if (again[i]) {
            struct watched *w = &f->watched[i];
            size_t chunk = f->cluster->rounds[round].list.round.chunk;
            *w = (struct watched){.run = w->run,
                                  .placed = true,
                                  .round = round,
                                  .chunk = n / chunk,
                                  .index = n % chunk,
                                  .stalls = w->submitted_at == w->next_step ? w->stalls + 1 : 0,
                                  .submitted_at = w->next_step,
                                  .shown = w->shown,
                                  .next_step = w->next_step,
                                  .last_evaluation = w->last_evaluation,
                                  .life = SLURM_WAITS};
            n++;
        }
    memory_free(runs);
    if (!ok)
        return false;
    f->outcome->submitted += n;
    char text[200];
    snprintf(text, sizeof text, "submitted %zu task%s as job %s%s", n, n == 1 ? "" : "s",
             f->cluster->rounds[round].jobs[0], f->cluster->rounds[round].chunk_count > 1 ? " and others" : "");
    note_show(f, text);
    return true;
}

/* Judges every run and submits what shall be. */
static bool judge(struct follower *f, struct error *err)
{
    bool *again = memory_alloc(f->count, sizeof *again), ok = true, failed = false;
    size_t count = 0;
    for (size_t i = 0; ok && i < f->count; i++) {
        bool before = f->watched[i].ended;
        ok = run_judge(f, i, &again[i], err);
        failed = failed || (!before && f->watched[i].ended);
        count += again[i];
    }
    if (ok && failed)
        ok = database_summarize(f->database, f->sweep->experiment->name, err);
    if (ok && count && !f->options->only_look)
        ok = runs_submit(f, again, count, err);
    memory_free(again);
    return ok;
}

/* ---- the loop ---- */

static size_t waiting(const struct follower *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++)
        count += !f->watched[i].ended;
    return count;
}

/* Final records first: a task may have ended between the last gathering and the look. */
static bool look_and_judge(struct follower *f, struct error *err)
{
    if (!look(f, err))
        return false;
    for (size_t i = 0; i < f->count; i++)
        if (!f->watched[i].ended && is_gone(&f->watched[i]) &&
            !gather_tidy(f->cluster->shards, key_of(f, &f->watched[i]), err))
            return false;
    return gather(f, err) && judge(f, err);
}

static bool stop_seen(struct follower *f, double seconds)
{
    struct pollfd event = {.fd = f->options->signals, .events = POLLIN};
    poll(&event, 1, (int)(1000 * seconds));
    for (int number; f->options->signals >= 0 && (number = signals_next(f->options->signals));)
        if (number != SIGCHLD)
            f->outcome->stop_signal = number;
    return f->outcome->stop_signal;
}

static bool loop(struct follower *f, struct error *err)
{
    double patience = slurm_patience(), looked = seconds_now();
    while (waiting(f) && !stop_seen(f, fmin(1, patience / 5))) {
        if (!database_pump(f->database, err) || !gather(f, err))
            return false;
        progress_tick(f->progress, seconds_now());
        if (!waiting(f) || seconds_now() - looked < patience)
            continue;
        if (!look_and_judge(f, err))
            return false;
        looked = seconds_now();
    }
    return true;
}

static void watch(struct follower *f)
{
    f->watched = memory_alloc(f->sweep->run_count, sizeof *f->watched);
    f->gathered = memory_alloc(f->sweep->run_count, sizeof *f->gathered);
    f->first_round = f->cluster->round_count;
    for (size_t i = 0; i < f->sweep->run_count; i++) {
        if (!run_action_trains(f->schedule->runs[i].action))
            continue;
        struct watched *w = &f->watched[f->count];
        *w = (struct watched){.run = i, .last_evaluation = -1, .submitted_at = -1, .life = SLURM_OVER};
        w->wanted_again = f->schedule->runs[i].action == ACTION_RETRY;
        f->gathered[f->count].key = f->sweep->runs[i].key;
        w->placed = cluster_find(f->cluster, f->sweep->runs[i].key, &w->round, &w->chunk, &w->index);
        if (w->placed && w->round < f->first_round)
            f->first_round = w->round;
        f->count++;
    }
}

static struct progress *progress_begin(struct follower *f, int64_t **blocks)
{
    size_t *queue = memory_alloc(f->count, sizeof *queue), workers = f->options->cluster.at_once;
    for (size_t i = 0; i < f->count; i++)
        queue[i] = f->watched[i].run;
    struct progress *progress = sweep_progress_create(
        f->sweep, queue, f->count, workers && workers < f->count ? workers : f->count, f->options->progress, blocks);
    memory_free(queue);
    return progress;
}

bool follow(struct database *database, const struct sweep *sweep, const struct schedule *schedule,
            struct cluster *cluster, const struct follow_options *options, struct follow_outcome *outcome,
            struct error *err)
{
    struct follower f = {.database = database,
                         .db = database_handle(database),
                         .sweep = sweep,
                         .schedule = schedule,
                         .cluster = cluster,
                         .options = options,
                         .outcome = outcome};
    int64_t *blocks;
    *outcome = (struct follow_outcome){0};
    watch(&f);
    f.progress = progress_begin(&f, &blocks);
    bool ok = gather(&f, err) && (options->only_look || cluster_submit(cluster, err)) &&
              (!waiting(&f) || look_and_judge(&f, err));
    if (ok && !options->detach && !options->only_look)
        ok = loop(&f, err);
    for (size_t i = 0; i < f.count; i++)
        outcome->active += !f.watched[i].ended && f.watched[i].placed;
    progress_free(f.progress);
    memory_free(blocks);
    memory_free(f.watched);
    memory_free(f.gathered);
    return ok;
}
