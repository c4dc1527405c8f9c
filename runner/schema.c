/* Tables of results.db, one migration a version.
 *
 *   experiment 1--* variant 1--* member *--1 run 1--* step          a member is one (variant, seed); experiments share
 *                      |                      1--* evaluation       runs by key
 *                      |                      1--* setting          knobs that are not at their default
 *                      1--* loss_summary, comparison_summary        kept by summary.c
 *
 * first_step and process_started (Unix time) are of the worker that trains it or did last.
 *
 * The metrics of an evaluation are those of core/metric.h: the first version has three, a later one's columns are added
 * where they are missing, and are NULL in evaluations from before.
 *
 * A number that is not finite is stored as +Infinity with a kind beside it (0 finite, 1 nan, 2 inf, 3 -inf): SQLite has
 * no NaN, and a NULL would make the diverged run the best one. */
#include "runner/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/knob.h"
#include "core/memory.h"
#include "runner/metric_sql.h"
#include "runner/sql.h"
#include "runner/text_stream.h"

const char *const schema_migrations[] = {
    "create table tokenizer (\n"
    "  id integer primary key,\n"
    "  hash text not null unique,\n"
    "  image blob not null\n"
    ") strict;\n"
    "create table experiment (\n"
    "  id integer primary key,\n"
    "  name text not null unique,\n"
    "  archived integer not null default 0,\n"
    "  path text not null, description text not null, question text not null, file text not null,\n"
    "  metric text not null, split text not null, margin real not null, alpha real not null,\n"
    "  fingerprint text not null, frozen_at text not null\n"
    ") strict;\n"
    "create table run (\n"
    "  id integer primary key,\n"
    "  key text not null unique,\n"
    "  seed integer not null,\n"
    "  state text not null check (state in ('queued', 'running', 'finished', 'diverged', 'failed', 'interrupted')),\n"
    "  reason text not null default '', log_tail text not null default '',\n"
    "  steps integer not null, tokens_per_step integer not null,\n"
    "  parameters integer not null, flops_per_token real not null,\n"
    "  tokenizer integer not null references tokenizer(id), corpus_hash text not null,\n"
    "  config text not null,\n"
    "  first_step integer not null default 0, process_started real,\n"
    "  created_at text not null, started_at text, ended_at text,\n"
    "  host text, cpu text, kernels text, blas text, precision text, git_commit text, version text\n"
    ") strict;\n"
    "create table setting (\n"
    "  run integer not null references run(id), knob text not null, value any not null,\n"
    "  primary key (run, knob)\n"
    ") strict, without rowid;\n"
    "create index run_tokenizer on run (tokenizer);\n"
    "create table variant (\n"
    "  id integer primary key,\n"
    "  experiment integer not null references experiment(id),\n"
    "  label text not null, position integer not null, baseline integer not null, changes text not null,\n"
    "  unique (experiment, label)\n"
    ") strict;\n"
    "create table member (\n"
    "  variant integer not null references variant(id), seed integer not null,\n"
    "  run integer not null references run(id),\n"
    "  primary key (variant, seed)\n"
    ") strict, without rowid;\n"
    "create index member_run on member (run);\n"
    "create table step (\n"
    "  run integer not null references run(id), step integer not null,\n"
    "  loss real not null, loss_kind integer not null,\n"
    "  grad_norm real not null, grad_norm_kind integer not null,\n"
    "  learning_rate real not null, tokens integer not null, seconds real not null, batch_checksum integer not null,\n"
    "  primary key (run, step)\n"
    ") strict, without rowid;\n"
    "create table evaluation (\n"
    "  run integer not null references run(id), split text not null, step integer not null,\n"
    "  tokens integer not null, seconds real not null,\n"
    "  blocks integer not null, evaluated_tokens integer not null, evaluated_bytes integer not null,\n"
    "  loss real not null, loss_kind integer not null,\n"
    "  bits_per_byte real not null, bits_per_byte_kind integer not null,\n"
    "  perplexity real not null, perplexity_kind integer not null,\n"
    "  primary key (run, split, step)\n"
    ") strict, without rowid;\n"
    "create table loss_summary (\n"
    "  variant integer not null references variant(id), split text not null, metric text not null,\n"
    "  n integer not null, n_planned integer not null, n_diverged integer not null,\n"
    "  mean real, sd real, spread real, min real, max real,\n"
    "  primary key (variant, split, metric)\n"
    ") strict, without rowid;\n"
    "create table comparison_summary (\n"
    "  variant integer not null references variant(id), split text not null, metric text not null,\n"
    "  n integer not null, delta real, ci_low real, ci_high real, p real, p_holm real, mde real,\n"
    "  verdict text not null,\n"
    "  primary key (variant, split, metric)\n"
    ") strict, without rowid;\n"
    "create table knob (\n"
    "  position integer primary key,\n"
    "  name text not null unique, kind text not null, choices text not null, standard text not null, doc text not "
    "null\n"
    ") strict;\n",
    /* Processors that trained earlier steps of the run: "step: cpu, kernels, blas" a line. */
    "alter table run add column earlier_cpus text not null default '';\n",
    /* Bits per byte that no model gets below on its validation text; 0 = not known. */
    "alter table run add column floor real not null default 0;\n",
    /* What the commands that made its runs chose beside the file, a line each: ["--set", "k=v", "--seeds", "1-3"]. */
    "alter table experiment add column choices text not null default '';\n"
    /* Threads of the library, of which there was always one. */
    "update run set blas = iif(instr(blas, ' + '), replace(blas, ' + ', ', 1 thread + '), blas || ', 1 thread') where "
    "blas <> '' and not instr(blas, ' thread');\n",
};
const size_t schema_version = sizeof schema_migrations / sizeof schema_migrations[0];

static const char *path_of(sqlite3 *db)
{
    const char *path = sqlite3_db_filename(db, "main");
    return path ? path : "";
}

bool schema_check(sqlite3 *db, size_t known, size_t *version, struct error *err)
{
    int64_t id, user_version, objects;
    if (!sql_integer(db, &objects, 0, "select count(*) from sqlite_schema", NULL, err)) {
        if (sqlite3_errcode(db) == SQLITE_NOTADB)
            return error_set(err, "'%s' is not a results database: SQLite says \"%s\"", path_of(db),
                             sqlite3_errmsg(db));
        if (sqlite3_errcode(db) == SQLITE_CORRUPT)
            return error_set(err,
                             "the database '%s' is damaged, and is left as it is: SQLite says \"%s\". What can be read "
                             "of it: sqlite3 '%s' .recover | sqlite3 rescued.db",
                             path_of(db), sqlite3_errmsg(db), path_of(db));
        return error_wrap(err, "cannot read the database");
    }
    if (!sql_integer(db, &id, 0, "pragma application_id", NULL, err) ||
        !sql_integer(db, &user_version, 0, "pragma user_version", NULL, err))
        return false;
    *version = 0;
    if (objects == 0 && id == 0)
        return true;
    if (id != SCHEMA_APPLICATION_ID)
        return error_set(err,
                         "'%s' is a SQLite database of another program (application id %" PRId64
                         "): expected one that runner made, or a new path",
                         path_of(db), id);
    if (user_version < 1 || (uint64_t)user_version > known)
        return error_set(err,
                         "'%s' has schema version %" PRId64
                         " and this runner knows versions 1 to %zu: use the newer runner that wrote it",
                         path_of(db), user_version, known);
    *version = (size_t)user_version;
    return true;
}

/* ---- knobs ---- */

static bool knobs_update(sqlite3 *db, struct error *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < knob_count; i++) {
        char standard[KNOB_TEXT_SIZE], accepted[256];
        const struct knob *knob = &knobs[i];
        knob_format(knob, knob->standard, standard);
        knob_describe(knob, accepted, sizeof accepted);
        const char *choices = knob->kind == KNOB_CHOICE ? knob->choices : accepted;
        const char *kind = knob_kind_name(knob->kind);
        int64_t same;
        ok = sql_integer(db, &same, 0,
                         "select 1 from knob where position = ? and name = ? and kind = ? and choices = ? and "
                         "standard = ? and doc = ?",
                         "ittttt", err, (int64_t)i, knob->name, kind, choices, standard, knob->doc);
        if (ok && !same)
            ok = sql_run(db, "delete from knob where name = ?", "t", err, knob->name) &&
                 sql_run(db, "insert or replace into knob values (?, ?, ?, ?, ?, ?)", "ittttt", err, (int64_t)i,
                         knob->name, kind, choices, standard, knob->doc);
    }
    return ok && sql_run(db, "delete from knob where position >= ?", "i", err, (int64_t)knob_count);
}

/* ---- metrics ---- */

/* What makes room for a metric that joined after the first version of the tables. Owner: caller, sqlite3_free(). */
static char *metric_columns_sql(const struct metric *metric)
{
    return sqlite3_mprintf("alter table evaluation add column %s real;\n"
                           "alter table evaluation add column %s_kind integer;\n",
                           metric->name, metric->name);
}

static bool metric_stored(sqlite3 *db, const struct metric *metric, bool *stored, struct error *err)
{
    int64_t columns;
    bool ok = sql_integer(db, &columns, 0, "select count(*) from pragma_table_info('evaluation') where name = ?", "t",
                          err, metric->name);
    *stored = ok && columns > 0;
    return ok;
}

bool schema_has_metrics(sqlite3 *db, bool *all, struct error *err)
{
    bool stored, ok = true;
    *all = true;
    for (size_t i = 0; ok && i < METRIC_COUNT; i++) {
        ok = metric_stored(db, &metrics[i], &stored, err);
        *all = *all && stored;
    }
    return ok;
}

static bool metrics_update(sqlite3 *db, struct error *err)
{
    bool stored, ok = true;
    for (size_t i = 0; ok && i < METRIC_COUNT; i++) {
        ok = metric_stored(db, &metrics[i], &stored, err);
        char *sql = metric_columns_sql(&metrics[i]);
        ok = ok && (stored || sql_script(db, sql, err) ||
                    error_wrap(err, "cannot make room for the metric %s", metrics[i].name));
        sqlite3_free(sql);
    }
    return ok;
}

/* ---- views ---- */

/* One dropped view at a time: the list changes under the statement that reads it. */
static bool view_drop_next(sqlite3 *db, bool *more, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db, "select name from sqlite_schema where type = 'view' limit 1", NULL, err);
    bool ok = s && sql_step(s, more, err);
    char *drop = ok && *more ? sqlite3_mprintf("drop view \"%w\"", sql_text(s, 0)) : NULL;
    sqlite3_finalize(s);
    ok = ok && (!drop || sql_script(db, drop, err));
    sqlite3_free(drop);
    return ok;
}

static bool views_current(sqlite3 *db, bool *current, struct error *err)
{
    int64_t views, same;
    const struct schema_view *view;
    size_t count = 0;
    *current = true;
    for (; (view = schema_view(count)); count++) {
        char *sql = schema_view_sql(view);
        /* SQLite keeps the text as it was given but for its first words, which it writes in capitals. */
        bool ok = sql_integer(db, &same, 0,
                              "select 1 from sqlite_schema where type = 'view' and name = ?1 and "
                              "substr(sql, 1 + length('create view')) = substr(?2, 1 + length('create view'))",
                              "tt", err, view->name, sql);
        memory_free(sql);
        if (!ok)
            return false;
        *current = *current && same;
    }
    bool ok = sql_integer(db, &views, 0, "select count(*) from sqlite_schema where type = 'view'", NULL, err);
    *current = *current && views == (int64_t)count;
    return ok;
}

static bool views_update(sqlite3 *db, struct error *err)
{
    bool current, more = true;
    if (!views_current(db, &current, err))
        return false;
    if (current)
        return true;
    while (more)
        if (!view_drop_next(db, &more, err))
            return false;
    const struct schema_view *view;
    for (size_t i = 0; (view = schema_view(i)); i++) {
        char *sql = schema_view_sql(view);
        bool ok = sql_script(db, sql, err);
        memory_free(sql);
        if (!ok)
            return error_wrap(err, "cannot make the view %s", view->name);
    }
    return true;
}

bool schema_update(sqlite3 *db, const char *const *migrations, size_t count, struct error *err)
{
    size_t version;
    if (!schema_check(db, count, &version, err))
        return false;
    for (size_t i = version; i < count; i++) {
        char header[96];
        snprintf(header, sizeof header, "pragma application_id = %d; pragma user_version = %zu;", SCHEMA_APPLICATION_ID,
                 i + 1);
        if (!sql_script(db, migrations[i], err) || !sql_script(db, header, err))
            return error_wrap(err, "cannot bring the database to schema version %zu", i + 1);
    }
    return metrics_update(db, err) && views_update(db, err) && knobs_update(db, err);
}

char *schema_sql(void)
{
    struct text_stream text;
    text_stream_open(&text);
    for (size_t i = 0; i < schema_version; i++)
        fputs(schema_migrations[i], text.out);
    for (size_t i = METRICS_AT_FIRST; i < METRIC_COUNT; i++) {
        char *sql = metric_columns_sql(&metrics[i]);
        fputs(sql, text.out);
        sqlite3_free(sql);
    }
    const struct schema_view *view;
    for (size_t i = 0; (view = schema_view(i)); i++) {
        char *sql = schema_view_sql(view);
        fprintf(text.out, "%s;\n", sql);
        memory_free(sql);
    }
    return text_stream_take(&text);
}
