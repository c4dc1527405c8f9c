/* A queue of rows and state changes, committed in order. */
#include "runner/pending.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/memory.h"
#include "runner/clock.h"
#include "runner/metric_sql.h"
#include "runner/sql.h"
#include "runner/summary.h"

#define COMMIT_SECONDS 1.0 /* between commits of steps */
#define RETRY_SECONDS 0.2  /* after a commit that others were in the way of */

enum item_kind { ITEM_START, ITEM_STEP, ITEM_EVALUATION, ITEM_END };

struct start {
    int64_t step;
    struct run_environment environment;
    struct step_record *steps;
    size_t step_count;
    struct evaluation_row *evaluations;
    size_t evaluation_count;
};

struct end {
    enum run_state state;
    char *reason, *log_tail;
};

struct item {
    enum item_kind kind;
    char key[65];
    union {
        struct step_record step;
        struct evaluation_row *evaluation;
        struct start *start;
        struct end *end;
    };
};

struct pending {
    sqlite3 *db;
    struct item *items; /* items[first .. first + count), in order */
    size_t first, count, room;
    double committed_at, retry_at;
    sqlite3_stmt *insert_step, *insert_evaluation;
};

struct pending *pending_create(sqlite3 *db)
{
    struct pending *pending = memory_alloc(1, sizeof *pending);
    pending->db = db;
    pending->committed_at = seconds_now();
    return pending;
}

static void item_release(struct item *item)
{
    switch (item->kind) {
    case ITEM_STEP: break;
    case ITEM_EVALUATION: memory_free(item->evaluation); break;
    case ITEM_START:
        memory_free(item->start->steps);
        memory_free(item->start->evaluations);
        memory_free(item->start);
        break;
    case ITEM_END:
        memory_free(item->end->reason);
        memory_free(item->end->log_tail);
        memory_free(item->end);
        break;
    }
}

void pending_free(struct pending *pending)
{
    if (!pending)
        return;
    for (size_t i = 0; i < pending->count; i++)
        item_release(&pending->items[pending->first + i]);
    sqlite3_finalize(pending->insert_step);
    sqlite3_finalize(pending->insert_evaluation);
    memory_free(pending->items);
    memory_free(pending);
}

/* ---- joining ---- */

static struct item *item_add(struct pending *pending, enum item_kind kind, const char *key)
{
    if (pending->first + pending->count == pending->room) {
        if (pending->count)
            memmove(pending->items, pending->items + pending->first, pending->count * sizeof *pending->items);
        pending->first = 0;
        if (2 * pending->count >= pending->room) {
            pending->room = pending->room ? 2 * pending->room : 256;
            pending->items = memory_grow(pending->items, pending->count * sizeof *pending->items, pending->room,
                                         sizeof *pending->items);
        }
    }
    struct item *item = &pending->items[pending->first + pending->count++];
    memset(item, 0, sizeof *item);
    item->kind = kind;
    snprintf(item->key, sizeof item->key, "%s", key);
    return item;
}

static void *copy_array(const void *array, size_t count, size_t size)
{
    void *copy = memory_alloc(count, size);
    if (count)
        memcpy(copy, array, count * size);
    return copy;
}

void pending_start(struct pending *pending, const char *key, int64_t step, const struct run_environment *environment,
                   const struct step_record *steps, size_t step_count, const struct evaluation_row *evaluations,
                   size_t evaluation_count)
{
    struct start *start = memory_alloc(1, sizeof *start);
    *start = (struct start){
        .step = step,
        .environment = *environment,
        .steps = copy_array(steps, step_count, sizeof *steps),
        .step_count = step_count,
        .evaluations = copy_array(evaluations, evaluation_count, sizeof *evaluations),
        .evaluation_count = evaluation_count,
    };
    item_add(pending, ITEM_START, key)->start = start;
}

void pending_step(struct pending *pending, const char *key, const struct step_record *record)
{
    item_add(pending, ITEM_STEP, key)->step = *record;
}

void pending_evaluation(struct pending *pending, const char *key, const struct evaluation_row *row)
{
    item_add(pending, ITEM_EVALUATION, key)->evaluation = copy_array(row, 1, sizeof *row);
}

void pending_end(struct pending *pending, const char *key, enum run_state state, const char *reason,
                 const char *log_tail)
{
    struct end *end = memory_alloc(1, sizeof *end);
    end->state = state;
    end->reason = memory_copy_text(reason ? reason : "");
    end->log_tail = memory_copy_text(log_tail ? log_tail : "");
    item_add(pending, ITEM_END, key)->end = end;
}

/* ---- writing ---- */

/* As schema.c has it: +Infinity with a kind for what is not finite. */
static double stored(double value)
{
    return isfinite(value) ? value : (double)INFINITY;
}

static int64_t stored_kind(double value)
{
    return isfinite(value) ? 0 : isnan(value) ? 1 : value > 0 ? 2 : 3;
}

static bool run_missing(struct pending *pending, const char *key, struct error *err)
{
    return error_set(err, "the database '%s' has no run %s: it was not frozen",
                     sqlite3_db_filename(pending->db, "main"), key);
}

static bool run_statement(struct pending *pending, sqlite3_stmt *statement, const char *key, struct error *err)
{
    bool row;
    if (!sql_step(statement, &row, err))
        return false;
    sqlite3_reset(statement);
    if (sqlite3_changes(pending->db) == 0)
        return run_missing(pending, key, err);
    return true;
}

/* A step or evaluation told twice is stored once: the latest. */
static bool write_step(struct pending *pending, const char *key, const struct step_record *r, struct error *err)
{
    if (!isfinite(r->learning_rate) || !isfinite(r->seconds))
        return error_set(err, "step %" PRId64 " of run %s has a learning rate or time that is not finite", r->step,
                         key);
    if (!pending->insert_step)
        pending->insert_step = sql_prepare(pending->db,
                                           "insert or replace into step (run, step, loss, loss_kind, grad_norm, "
                                           "grad_norm_kind, learning_rate, tokens, seconds, batch_checksum) "
                                           "select id, ?, ?, ?, ?, ?, ?, ?, ?, ? from run where key = ?",
                                           NULL, err);
    return pending->insert_step &&
           sql_bind(pending->insert_step, "ididididit", err, r->step, stored(r->loss), stored_kind(r->loss),
                    stored(r->grad_norm), stored_kind(r->grad_norm), r->learning_rate, r->tokens, r->seconds,
                    (int64_t)r->batch_checksum, key) &&
           run_statement(pending, pending->insert_step, key, err);
}

#define STORED(name, ...) stored(r->name), stored_kind(r->name),

static bool write_evaluation(struct pending *pending, const char *key, const struct evaluation_row *e,
                             struct error *err)
{
    const struct evaluation_record *r = &e->record;
    if (!pending->insert_evaluation)
        pending->insert_evaluation =
            sql_prepare(pending->db,
                        "insert or replace into evaluation (run, split, step, tokens, seconds, blocks, "
                        "evaluated_tokens, evaluated_bytes" METRIC_COLUMNS ") "
                        "select id, ?, ?, ?, ?, ?, ?, ?" METRIC_MARKS " from run where key = ?",
                        NULL, err);
    return pending->insert_evaluation &&
           sql_bind(pending->insert_evaluation, "tiidiii" METRIC_TYPES "t", err, e->split, e->step, e->tokens,
                    e->seconds, r->blocks, r->tokens, r->bytes, METRICS(STORED) key) &&
           run_statement(pending, pending->insert_evaluation, key, err);
}

static bool write_start(struct pending *pending, const char *key, const struct start *start, struct error *err)
{
    const struct run_environment *v = &start->environment;
    int64_t counted;
    bool ok = sql_integer(pending->db, &counted, 0, "select state in ('finished', 'diverged') from run where key = ?",
                          "t", err, key) &&
              sql_run(pending->db,
                      "update run set earlier_cpus = case when ?1 = 0 then '' when cpu is not null and "
                      "(cpu <> ?3 or kernels <> ?4 or blas <> ?5) then earlier_cpus || 'before step ' || ?1 || ': ' || "
                      "cpu || ', ' || kernels || ', ' || blas || char(10) else earlier_cpus end, "
                      "state = 'running', reason = '', log_tail = '', first_step = ?1, ended_at = null, "
                      "process_started = (julianday('now') - 2440587.5) * 86400, "
                      "started_at = coalesce(started_at, strftime('%Y-%m-%dT%H:%M:%SZ', 'now')), host = ?2, cpu = ?3, "
                      "kernels = ?4, blas = ?5, precision = ?6, git_commit = ?7, version = ?8 where key = ?9",
                      "itttttttt", err, start->step, v->host, v->cpu, v->kernels, v->blas, v->precision, v->git_commit,
                      v->version, key);
    if (ok && sqlite3_changes(pending->db) == 0)
        return run_missing(pending, key, err);
    ok = ok && sql_run(pending->db, "delete from step where run = (select id from run where key = ?)", "t", err, key) &&
         sql_run(pending->db, "delete from evaluation where run = (select id from run where key = ?)", "t", err, key);
    for (size_t i = 0; ok && i < start->step_count; i++)
        ok = write_step(pending, key, &start->steps[i], err);
    for (size_t i = 0; ok && i < start->evaluation_count; i++)
        ok = write_evaluation(pending, key, &start->evaluations[i], err);
    return ok && (!counted || summary_refresh_run(pending->db, key, err));
}

static bool write_end(struct pending *pending, const char *key, const struct end *end, struct error *err)
{
    bool ok = sql_run(pending->db,
                      "update run set state = ?, reason = ?, log_tail = ?, "
                      "ended_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now') where key = ?",
                      "tttt", err, run_state_name(end->state), end->reason, end->log_tail, key);
    if (ok && sqlite3_changes(pending->db) == 0)
        return run_missing(pending, key, err);
    return ok && summary_refresh_run(pending->db, key, err);
}

static bool write_item(struct pending *pending, const struct item *item, struct error *err)
{
    switch (item->kind) {
    case ITEM_START: return write_start(pending, item->key, item->start, err);
    case ITEM_STEP: return write_step(pending, item->key, &item->step, err);
    case ITEM_EVALUATION: return write_evaluation(pending, item->key, item->evaluation, err);
    case ITEM_END: return write_end(pending, item->key, item->end, err);
    }
    return false;
}

/* Commits the first items. *busy: nothing was written, others are in the way. */
static bool commit_chunk(struct pending *pending, bool *busy, struct error *err)
{
    *busy = false;
    if (!sql_begin(pending->db, 0, err)) {
        *busy = sql_is_busy(pending->db);
        return false;
    }
    size_t count = pending->count < PENDING_CHUNK ? pending->count : PENDING_CHUNK;
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++)
        ok = write_item(pending, &pending->items[pending->first + i], err);
    if (!ok) { /* an open statement would keep the rollback from happening */
        sqlite3_reset(pending->insert_step);
        sqlite3_reset(pending->insert_evaluation);
    }
    if (!sql_end(pending->db, ok, busy, err))
        return false;
    for (size_t i = 0; i < count; i++)
        item_release(&pending->items[pending->first + i]);
    pending->first += count;
    pending->count -= count;
    return true;
}

bool pending_pump(struct pending *pending, bool urgent, struct error *err)
{
    double now = seconds_now();
    bool due = urgent || now - pending->committed_at >= COMMIT_SECONDS, busy;
    if (pending->count == 0 || !due || now < pending->retry_at)
        return true;
    bool ok = commit_chunk(pending, &busy, err);
    if (ok)
        pending->committed_at = now;
    pending->retry_at = busy ? seconds_now() + RETRY_SECONDS : 0;
    if (busy && pending->count > PENDING_MOST)
        return pending_flush(pending, 60, err);
    return ok || busy;
}

bool pending_flush(struct pending *pending, double wait_seconds, struct error *err)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    double end = seconds_now() + wait_seconds;
    while (pending->count) {
        bool busy;
        if (commit_chunk(pending, &busy, err))
            continue;
        if (!busy)
            return false;
        if (seconds_now() >= end)
            return error_wrap(err, "%zu rows are not stored, another process has held the database for %.0f s",
                              pending->count, wait_seconds);
        nanosleep(&pause, NULL);
    }
    return true;
}
