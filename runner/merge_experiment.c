/* An experiment that two databases have becomes one: settings of the one frozen last, variants and members of both. */
#include "runner/merge_experiment.h"

#include <inttypes.h>
#include <string.h>

#include "core/memory.h"
#include "runner/merge_rows.h"
#include "runner/sql.h"

struct pair {
    sqlite3 *target, *source;
    const char *target_name, *source_name;
    int64_t target_id, source_id;
    bool newer; /* the source's was frozen later: its settings hold */
};

/* One text or NULL of the first row. Owner: caller, memory_free(). */
static char *text_read(sqlite3_stmt *s, struct error *err)
{
    bool row = false;
    char *text = s && sql_step(s, &row, err) && row ? memory_copy_text(sql_text(s, 0)) : NULL;
    sqlite3_finalize(s);
    return text;
}

/* The later, and of equals the greater text: the same whichever is merged into the other. */
static bool newer_find(struct pair *pair, struct error *err)
{
    static const char sql[] = "select frozen_at || ' ' || fingerprint || ' ' || path from experiment where id = ?";
    char *target = text_read(sql_prepare(pair->target, sql, "i", err, pair->target_id), err);
    char *source = text_read(sql_prepare(pair->source, sql, "i", err, pair->source_id), err);
    bool ok = target && source;
    pair->newer = ok && strcmp(source, target) > 0;
    memory_free(target);
    memory_free(source);
    return ok;
}

static bool row_merge(const struct pair *pair, struct error *err)
{
    static const char insert[] =
        "insert into experiment (name, archived, path, description, question, file, metric, split, margin, alpha, "
        "fingerprint, frozen_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (name) do update set "
        "path = excluded.path, description = excluded.description, question = excluded.question, "
        "file = excluded.file, metric = excluded.metric, split = excluded.split, margin = excluded.margin, "
        "alpha = excluded.alpha, fingerprint = excluded.fingerprint, frozen_at = excluded.frozen_at";
    sqlite3_stmt *into = sql_prepare(pair->target, insert, NULL, err);
    bool ok = into && rows_copy(sql_prepare(pair->source,
                                            "select name, archived, path, description, question, file, metric, split, "
                                            "margin, alpha, fingerprint, frozen_at from experiment where id = ?",
                                            "i", err, pair->source_id),
                                into, -1, err);
    sqlite3_finalize(into);
    return ok;
}

/* One baseline: that of the settings that hold. */
static bool variants_merge(const struct pair *pair, struct error *err)
{
    int64_t baselines;
    if (!sql_integer(pair->source, &baselines, 0, "select count(*) from variant where experiment = ? and baseline", "i",
                     err, pair->source_id))
        return false;
    if (pair->newer && baselines &&
        !sql_run(pair->target, "update variant set baseline = 0 where experiment = ?", "i", err, pair->target_id))
        return false;
    sqlite3_stmt *into = sql_prepare(
        pair->target,
        pair->newer
            ? "insert into variant (label, position, baseline, changes, experiment) values (?1, ?2, ?3, ?4, ?5) "
              "on conflict (experiment, label) do update set position = excluded.position, "
              "baseline = excluded.baseline, changes = excluded.changes"
            : "insert into variant (label, position, baseline, changes, experiment) select ?1, ?2, ?3 and not exists "
              "(select 1 from variant where experiment = ?5 and baseline), ?4, ?5 where true "
              "on conflict (experiment, label) do nothing",
        NULL, err);
    bool ok = into && rows_copy(sql_prepare(pair->source,
                                            "select label, position, baseline, changes from variant "
                                            "where experiment = ? order by position, label",
                                            "i", err, pair->source_id),
                                into, pair->target_id, err);
    sqlite3_finalize(into);
    return ok;
}

/* The target's run of (label, seed): its key and whether it was begun. *key: NULL when there is none. */
static bool member_find(const struct pair *pair, const char *label, int64_t seed, char **key, bool *begun,
                        struct error *err)
{
    bool row = false;
    sqlite3_stmt *s = sql_prepare(pair->target,
                                  "select r.key, r.state <> 'queued' from variant v join member m on m.variant = v.id "
                                  "join run r on r.id = m.run where v.experiment = ? and v.label = ? and m.seed = ?",
                                  "iti", err, pair->target_id, label, seed);
    bool ok = s && sql_step(s, &row, err);
    *key = ok && row ? memory_copy_text(sql_text(s, 0)) : NULL;
    *begun = ok && row && sqlite3_column_int(s, 1);
    sqlite3_finalize(s);
    return ok;
}

static bool member_merge(const struct pair *pair, const char *label, int64_t seed, const char *key, bool begun,
                         const char *experiment, struct error *err)
{
    char *there;
    bool there_begun;
    if (!member_find(pair, label, seed, &there, &there_begun, err))
        return false;
    bool same = there && strcmp(there, key) == 0, ok = true;
    if (there && !same && begun && there_begun)
        ok = error_set(err,
                       "experiment '%s' means different runs by variant '%.200s', seed %" PRId64
                       ": %.12s in '%s' and %.12s in '%s', because its file was changed in between; nothing was "
                       "merged: give one of the two another name: in its file, or merge into another database",
                       experiment, label, seed, there, pair->target_name, key, pair->source_name);
    else if (!same && (!there || begun || (!there_begun && pair->newer)))
        ok = sql_run(pair->target,
                     "insert or replace into member (variant, seed, run) select v.id, ?3, r.id from variant v, run r "
                     "where v.experiment = ?1 and v.label = ?2 and r.key = ?4",
                     "itit", err, pair->target_id, label, seed, key);
    memory_free(there);
    return ok;
}

static bool members_merge(const struct pair *pair, const char *experiment, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(pair->source,
                                  "select v.label, m.seed, r.key, r.state <> 'queued' from variant v "
                                  "join member m on m.variant = v.id join run r on r.id = m.run "
                                  "where v.experiment = ? order by v.position, v.label, m.seed",
                                  "i", err, pair->source_id);
    bool row, ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row)
        ok = member_merge(pair, sql_text(s, 0), sqlite3_column_int64(s, 1), sql_text(s, 2), sqlite3_column_int(s, 3),
                          experiment, err);
    sqlite3_finalize(s);
    return ok;
}

static bool experiment_merge(struct pair *pair, const char *name, struct error *err)
{
    static const char find[] = "select id from experiment where name = ?";
    if (!sql_integer(pair->target, &pair->target_id, 0, find, "t", err, name))
        return false;
    bool absent = !pair->target_id;
    pair->newer = absent;
    if (!absent && !newer_find(pair, err))
        return false;
    return (!pair->newer || row_merge(pair, err)) &&
           sql_integer(pair->target, &pair->target_id, 0, find, "t", err, name) && variants_merge(pair, err) &&
           members_merge(pair, name, err);
}

bool experiments_merge(sqlite3 *target, const char *target_name, sqlite3 *source, const char *source_name,
                       struct error *err)
{
    struct pair pair = {.target = target, .source = source, .target_name = target_name, .source_name = source_name};
    sqlite3_stmt *s = sql_prepare(source, "select id, name from experiment order by name", NULL, err);
    bool row, ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row) {
        pair.source_id = sqlite3_column_int64(s, 0);
        ok = experiment_merge(&pair, sql_text(s, 1), err);
    }
    sqlite3_finalize(s);
    return ok;
}
