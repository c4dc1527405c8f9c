/* Which of two states of a run stays, and what an experiment of two databases becomes. */
#include "runner/merge.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/database.h"
#include "runner/merge_experiment.h"
#include "runner/merge_rows.h"
#include "runner/sql.h"
#include "runner/summary.h"
#include "runner/text_index.h"

struct merge {
    sqlite3 *target;
    enum merge_kind kind;
    bool refused;
    char **names; /* of the target, then of each source */
    size_t name_count;
    struct text_index keys; /* runs that came from a source: number in origins */
    size_t *origins;        /* index in names */
};

/* How a run stands in one database. */
struct standing {
    int64_t id, steps, planned, first_step;
    int rank; /* 3 finished or diverged, 2 failed, 1 begun, 0 queued */
    double process_started, floor;
    char state[16], ended_at[32], started_at[32], host[65];
};

struct merge *merge_begin(sqlite3 *target, const char *target_name, enum merge_kind kind)
{
    struct merge *merge = memory_alloc(1, sizeof *merge);
    merge->target = target;
    merge->kind = kind;
    merge->names = memory_alloc(1, sizeof *merge->names);
    merge->names[merge->name_count++] = memory_copy_text(target_name);
    return merge;
}

void merge_free(struct merge *merge)
{
    if (!merge)
        return;
    for (size_t i = 0; i < merge->name_count; i++)
        memory_free(merge->names[i]);
    memory_free(merge->names);
    memory_free(merge->origins);
    text_index_release(&merge->keys);
    memory_free(merge);
}

/* ---- one run ---- */

static int rank_of(const char *state)
{
    return !strcmp(state, "finished") || !strcmp(state, "diverged") ? 3
           : !strcmp(state, "failed")                               ? 2
           : !strcmp(state, "queued")                               ? 0
                                                                    : 1;
}

/* *found: the database has the run. */
static bool standing_read(sqlite3 *db, const char *key, struct standing *standing, bool *found, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db,
                                  "select id, state, steps, first_step, process_started, ended_at, started_at, host, "
                                  "floor, (select count(*) from step where run = run.id) from run where key = ?",
                                  "t", err, key);
    bool ok = s && sql_step(s, found, err);
    if (ok && *found) {
        *standing = (struct standing){.id = sqlite3_column_int64(s, 0),
                                      .rank = rank_of(sql_text(s, 1)),
                                      .planned = sqlite3_column_int64(s, 2),
                                      .first_step = sqlite3_column_int64(s, 3),
                                      .process_started = sqlite3_column_double(s, 4),
                                      .floor = sqlite3_column_double(s, 8),
                                      .steps = sqlite3_column_int64(s, 9)};
        snprintf(standing->state, sizeof standing->state, "%s", sql_text(s, 1));
        snprintf(standing->ended_at, sizeof standing->ended_at, "%s", sql_text(s, 5));
        snprintf(standing->started_at, sizeof standing->started_at, "%s", sql_text(s, 6));
        snprintf(standing->host, sizeof standing->host, "%s", sql_text(s, 7));
    }
    sqlite3_finalize(s);
    return ok;
}

/* Below 0: a was there first. A total order, so that what stays does not depend on who is merged into whom. */
static int times_compare(const struct standing *a, const struct standing *b)
{
    int order = strcmp(a->ended_at, b->ended_at);
    if (!order)
        order = strcmp(a->started_at, b->started_at);
    if (!order)
        order = (a->process_started > b->process_started) - (a->process_started < b->process_started);
    return order ? order : strcmp(a->host, b->host);
}

enum choice {
    CHOICE_KEEP,
    CHOICE_TAKE,
    CHOICE_APPEND,
    /* Of two that ended, with the same curve: neither is deleted, for each may have measured what the other did not. */
    CHOICE_KEEP_AND_FILL,
    CHOICE_TAKE_AND_FILL,
};

static enum choice choose(enum merge_kind kind, const struct standing *target, const struct standing *source)
{
    if (target->rank == 3 && source->rank == 3)
        return times_compare(source, target) < 0 ? CHOICE_TAKE_AND_FILL : CHOICE_KEEP_AND_FILL;
    if (target->rank == 3 || source->rank == 3)
        return target->rank == 3 ? CHOICE_KEEP : CHOICE_TAKE;
    bool same_process = target->process_started == source->process_started && target->first_step == source->first_step;
    if (kind == MERGE_TASKS) {
        /* What was judged of a task that ended without a word stays until another process has begun. */
        if (target->rank == 2 && same_process && target->steps == source->steps)
            return CHOICE_KEEP;
        return same_process && target->steps > 0 && target->steps <= source->steps ? CHOICE_APPEND : CHOICE_TAKE;
    }
    if (target->steps != source->steps)
        return source->steps > target->steps ? CHOICE_TAKE : CHOICE_KEEP;
    if (target->rank != source->rank)
        return source->rank > target->rank ? CHOICE_TAKE : CHOICE_KEEP;
    return times_compare(source, target) < 0 ? CHOICE_TAKE : CHOICE_KEEP;
}

static const char *origin_of(const struct merge *merge, const char *key)
{
    size_t at = text_index_find(&merge->keys, key);
    return merge->names[at == SIZE_MAX ? 0 : merge->origins[at]];
}

static void origin_set(struct merge *merge, const char *key)
{
    size_t at = text_index_find(&merge->keys, key);
    if (at == SIZE_MAX) {
        at = merge->keys.count;
        merge->origins = memory_grow(merge->origins, at * sizeof *merge->origins, at + 1, sizeof *merge->origins);
        text_index_add(&merge->keys, key, at);
    }
    merge->origins[at] = merge->name_count - 1;
}

static bool ended_agree(struct merge *merge, sqlite3 *source, const char *key, const struct standing *target,
                        const struct standing *other, struct error *err)
{
    bool ok = true;
    if (target->rank != 3 || other->rank != 3)
        return true;
    bool equal = strcmp(target->state, other->state) == 0 &&
                 curves_equal(merge->target, target->id, source, other->id, &ok, err);
    if (!ok || equal)
        return ok;
    merge->refused = true;
    return error_set(err,
                     "run %.12s has two different curves: '%s' (%s, %s) and '%s' (%s, %s) do not agree; nothing was "
                     "merged: leave out the file whose run is not to be trusted",
                     key, origin_of(merge, key), target->state, target->host, merge->names[merge->name_count - 1],
                     other->state, other->host);
}

static bool run_take(struct merge *merge, sqlite3 *source, const char *key, const struct standing *other,
                     enum choice choice, struct error *err)
{
    int64_t id = 0, first = 0;
    bool ok = row_copy(source, merge->target, "run", "key", other->id, err) &&
              sql_integer(merge->target, &id, 0, "select id from run where key = ?", "t", err, key);
    if (ok && choice == CHOICE_APPEND)
        ok = sql_integer(merge->target, &first, 0, "select max(step) from step where run = ?", "i", err, id);
    else if (choice == CHOICE_TAKE)
        ok = ok && curve_delete(merge->target, id, err);
    ok = ok && curve_copy(source, other->id, merge->target, id, first, err);
    if (ok && merge->kind == MERGE_DATABASES)
        ok = sql_run(merge->target,
                     "update run set state = 'interrupted', reason = 'it was being trained when it was merged' "
                     "where id = ? and state = 'running'",
                     "i", err, id);
    origin_set(merge, key);
    return ok;
}

/* It follows from the text and not from who trained: known to one of the two (older versions did not look for it), it
 * is known of the run whichever stays. */
static bool floor_keep(const struct merge *merge, const char *key, double floor, struct error *err)
{
    return sql_run(merge->target, "update run set floor = ? where key = ? and floor < ?", "dtd", err, floor, key,
                   floor);
}

static bool run_merge(struct merge *merge, sqlite3 *source, const char *key, struct error *err)
{
    struct standing target = {0}, other = {0};
    bool there = false, found = false;
    if (!standing_read(source, key, &other, &found, err) || !standing_read(merge->target, key, &target, &there, err))
        return false;
    if (strcmp(other.state, "finished") == 0 && other.steps != other.planned) {
        merge->refused = true;
        return error_set(err,
                         "'%s' is damaged: it calls run %.12s finished and has %" PRId64 " of its %" PRId64 " steps",
                         merge->names[merge->name_count - 1], key, other.steps, other.planned);
    }
    if (!there)
        return run_take(merge, source, key, &other, CHOICE_TAKE, err);
    enum choice choice = choose(merge->kind, &target, &other);
    if (!ended_agree(merge, source, key, &target, &other, err))
        return false;
    bool keep = choice == CHOICE_KEEP || choice == CHOICE_KEEP_AND_FILL;
    return (choice != CHOICE_KEEP_AND_FILL || curve_fill(source, other.id, merge->target, target.id, err)) &&
           (keep || run_take(merge, source, key, &other, choice, err)) &&
           floor_keep(merge, key, fmax(target.floor, other.floor), err);
}

/* ---- one database ---- */

static bool tokenizers_merge(struct merge *merge, sqlite3 *source, struct error *err)
{
    sqlite3_stmt *into = sql_prepare(
        merge->target, "insert into tokenizer (hash, image) values (?, ?) on conflict (hash) do nothing", NULL, err);
    bool ok = into && rows_copy(sql_prepare(source, "select hash, image from tokenizer order by hash", NULL, err), into,
                                -1, err);
    sqlite3_finalize(into);
    return ok;
}

/* A newer runner adds metrics without a new version of the schema: what this one cannot copy is not left behind. */
static bool metrics_known(struct merge *merge, sqlite3 *source, const char *source_name, struct error *err)
{
    bool row, ok;
    int64_t known = 1;
    sqlite3_stmt *s = sql_prepare(source, "select name from pragma_table_info('evaluation')", NULL, err);
    ok = s != NULL;
    while (ok && known && (ok = sql_step(s, &row, err)) && row) {
        ok = sql_integer(merge->target, &known, 0, "select 1 from pragma_table_info('evaluation') where name = ?", "t",
                         err, sql_text(s, 0));
        merge->refused = ok && !known;
        if (merge->refused)
            error_set(err, "%s holds the metric '%s', which this runner does not know: merge with the newer runner",
                      source_name, sql_text(s, 0));
    }
    sqlite3_finalize(s);
    return ok && known;
}

bool merge_add(struct merge *merge, const char *source_name, sqlite3 *source, struct error *err)
{
    merge->names = memory_grow(merge->names, merge->name_count * sizeof *merge->names, merge->name_count + 1,
                               sizeof *merge->names);
    merge->names[merge->name_count++] = memory_copy_text(source_name);
    bool row, ok = metrics_known(merge, source, source_name, err) && tokenizers_merge(merge, source, err);
    sqlite3_stmt *s = ok ? sql_prepare(source, "select key from run order by key", NULL, err) : NULL;
    ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row)
        ok = run_merge(merge, source, sql_text(s, 0), err);
    sqlite3_finalize(s);
    return ok && experiments_merge(merge->target, merge->names[0], source, source_name, &merge->refused, err);
}

bool merge_was_refused(const struct merge *merge)
{
    return merge->refused;
}

bool merge_finish(struct merge *merge, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(merge->target, "select id from experiment order by id", NULL, err);
    bool row, ok = s != NULL;
    while (ok && merge->kind == MERGE_DATABASES && (ok = sql_step(s, &row, err)) && row)
        ok = summary_refresh(merge->target, sqlite3_column_int64(s, 0), err);
    sqlite3_finalize(s);
    return ok;
}
