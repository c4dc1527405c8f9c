/* An experiment that two databases have becomes one: settings of the one frozen last, variants and members of both. */
#include "runner/merge_experiment.h"

#include <inttypes.h>
#include <string.h>

#include "core/memory.h"
#include "runner/merge_rows.h"
#include "runner/query.h"
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

/* The lines of both, in one order whichever is merged into which; what has none, from before there were any, counts as
 * the file as it is, but not one whose set was deleted. Owner: caller; NULL and err. */
static char *choices_join(const struct pair *pair, struct error *err)
{
    char *source = text_read(
        sql_prepare(pair->source, "select iif(choices = '', '[]' || char(10), choices) from experiment where id = ?",
                    "i", err, pair->source_id),
        err);
    char *both =
        source ? text_read(sql_prepare(
                               pair->target,
                               "with recursive lines (line, rest) as (select '', coalesce((select iif(choices = '' "
                               "and exists (select 1 from variant where experiment = ?1), '[]' || char(10), choices) "
                               "from experiment where id = ?1), '') || ?2 union all select "
                               "substr(rest, 1, "
                               "instr(rest, char(10))), substr(rest, 1 + instr(rest, char(10))) from lines "
                               "where instr(rest, char(10))) select group_concat(line, '') from (select distinct line "
                               "from lines order by line)",
                               "it", err, pair->target_id, source),
                           err)
               : NULL;
    memory_free(source);
    return both;
}

/* The experiment's own row. */
static bool settings_merge(const struct pair *pair, const char *name, struct error *err)
{
    char *choices = choices_join(pair, err);
    bool ok = choices &&
              (!pair->newer || row_copy(pair->source, pair->target, "experiment", "name", pair->source_id, err)) &&
              sql_run(pair->target, "update experiment set choices = ? where name = ?", "tt", err, choices, name);
    memory_free(choices);
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
                         struct error *err)
{
    char *there;
    bool there_begun;
    if (!member_find(pair, label, seed, &there, &there_begun, err))
        return false;
    bool same = there && strcmp(there, key) == 0, ok = true;
    if (!same && (!there || begun || (!there_begun && pair->newer)))
        ok = sql_run(pair->target,
                     "insert or replace into member (variant, seed, run) select v.id, ?3, r.id from variant v, run r "
                     "where v.experiment = ?1 and v.label = ?2 and r.key = ?4",
                     "itit", err, pair->target_id, label, seed, key);
    memory_free(there);
    return ok;
}

/* label, seed, key, begun */
static sqlite3_stmt *members_of(sqlite3 *db, int64_t experiment, struct error *err)
{
    return sql_prepare(db,
                       "select v.label, m.seed, r.key, r.state <> 'queued' from variant v "
                       "join member m on m.variant = v.id join run r on r.id = m.run "
                       "where v.experiment = ? order by v.position, v.label, m.seed",
                       "i", err, experiment);
}

static bool members_merge(const struct pair *pair, struct error *err)
{
    sqlite3_stmt *s = members_of(pair->source, pair->source_id, err);
    bool row, ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row)
        ok = member_merge(pair, sql_text(s, 0), sqlite3_column_int64(s, 1), sql_text(s, 2), sqlite3_column_int(s, 3),
                          err);
    sqlite3_finalize(s);
    return ok;
}

/* ---- different runs of one name ---- */

/* *conflict: a variant and seed by which the two mean different runs, both begun; refusal then says which. */
static bool conflict_find(const struct pair *pair, const char *name, bool *conflict, struct error *refusal,
                          struct error *err)
{
    sqlite3_stmt *s = members_of(pair->source, pair->source_id, err);
    bool row, ok = s != NULL;
    *conflict = false;
    while (ok && !*conflict && (ok = sql_step(s, &row, err)) && row) {
        const char *label = sql_text(s, 0), *key = sql_text(s, 2);
        int64_t seed = sqlite3_column_int64(s, 1);
        bool begun = sqlite3_column_int(s, 3), there_begun;
        char *there;
        ok = member_find(pair, label, seed, &there, &there_begun, err);
        *conflict = there && strcmp(there, key) != 0 && begun && there_begun;
        if (*conflict)
            error_set(refusal,
                      "experiment '%s' means different runs by variant '%.200s', seed %" PRId64
                      ": %.12s in '%s' and %.12s in '%s', because its file was changed in between; nothing was "
                      "merged: give one of the two another name: in its file, or merge into another database",
                      name, label, seed, there, pair->target_name, key, pair->source_name);
        memory_free(there);
    }
    sqlite3_finalize(s);
    return ok;
}

/* All that was begun of another database's experiment is in this one. */
static bool set_contains(sqlite3 *db, int64_t id, sqlite3 *other, int64_t other_id, bool *contains, struct error *err)
{
    sqlite3_stmt *s = members_of(other, other_id, err);
    bool row, ok = s != NULL;
    *contains = true;
    while (ok && *contains && (ok = sql_step(s, &row, err)) && row) {
        int64_t found = 1;
        if (sqlite3_column_int(s, 3))
            ok = sql_integer(db, &found, 0,
                             "select 1 from variant v join member m on m.variant = v.id join run r on r.id = m.run "
                             "where v.experiment = ? and v.label = ? and m.seed = ? and r.key = ?",
                             "itit", err, id, sql_text(s, 0), sqlite3_column_int64(s, 1), sql_text(s, 2));
        *contains = found;
    }
    sqlite3_finalize(s);
    return ok;
}

/* db keeps another database's set of an experiment as the earlier set of one that was changed since: "NAME@1". */
static bool set_is_kept(sqlite3 *db, const char *name, sqlite3 *other, int64_t other_id, bool *kept, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(
        db, "select id from experiment where archived and name glob substr(?1, 1, instr(?1 || '@', '@') - 1) || '@*'",
        "t", err, name);
    bool row, ok = s != NULL;
    *kept = false;
    while (ok && !*kept && (ok = sql_step(s, &row, err)) && row)
        ok = set_contains(db, sqlite3_column_int64(s, 0), other, other_id, kept, err);
    sqlite3_finalize(s);
    return ok;
}

/* Before the source's set takes its name. */
static bool set_delete(const struct pair *pair, struct error *err)
{
    return sql_run(pair->target, "delete from member where variant in (select id from variant where experiment = ?)",
                   "i", err, pair->target_id) &&
           sql_run(pair->target, query_text(QUERY_DELETE_LOSSES), "i", err, pair->target_id) &&
           sql_run(pair->target, query_text(QUERY_DELETE_COMPARISONS), "i", err, pair->target_id) &&
           sql_run(pair->target, "delete from variant where experiment = ?", "i", err, pair->target_id) &&
           sql_run(pair->target, "update experiment set choices = '' where id = ?", "i", err, pair->target_id);
}

/* Whoever kept the other's set beside its own was changed later: its settings hold. *take: the source is merged. The
 * source's earlier sets are merged after its current one ("t" sorts before "t@1"), so that none is lost. */
static bool conflict_solve(struct pair *pair, const char *name, bool *take, bool *refused, struct error *err)
{
    struct error refusal;
    bool conflict, kept = false, earlier = false;
    *take = true;
    if (!conflict_find(pair, name, &conflict, &refusal, err))
        return false;
    if (!conflict)
        return true;
    if (!set_is_kept(pair->target, name, pair->source, pair->source_id, &kept, err))
        return false;
    *take = !kept;
    if (kept)
        return true;
    if (!strchr(name, '@') && !set_is_kept(pair->source, name, pair->target, pair->target_id, &earlier, err))
        return false;
    if (earlier) {
        pair->newer = true;
        return set_delete(pair, err);
    }
    *refused = true;
    return error_set(err, "%s", refusal.text);
}

/* ---- the whole ---- */

static bool experiment_merge(struct pair *pair, const char *name, bool *refused, struct error *err)
{
    static const char find[] = "select id from experiment where name = ?";
    if (!sql_integer(pair->target, &pair->target_id, 0, find, "t", err, name))
        return false;
    bool absent = !pair->target_id, take = true;
    pair->newer = absent;
    if (!absent && (!newer_find(pair, err) || !conflict_solve(pair, name, &take, refused, err)))
        return false;
    return !take ||
           (settings_merge(pair, name, err) && sql_integer(pair->target, &pair->target_id, 0, find, "t", err, name) &&
            variants_merge(pair, err) && members_merge(pair, err));
}

bool experiments_merge(sqlite3 *target, const char *target_name, sqlite3 *source, const char *source_name,
                       bool *refused, struct error *err)
{
    struct pair pair = {.target = target, .source = source, .target_name = target_name, .source_name = source_name};
    sqlite3_stmt *s = sql_prepare(source, "select id, name from experiment order by name", NULL, err);
    bool row, ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row) {
        pair.source_id = sqlite3_column_int64(s, 0);
        ok = experiment_merge(&pair, sql_text(s, 1), refused, err);
    }
    sqlite3_finalize(s);
    return ok;
}
