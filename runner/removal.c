/* Hiding is taking away membership; what has no member is garbage. */
#include "runner/removal.h"

#include "runner/sql.h"
#include "runner/summary.h"

static bool hidden_count(sqlite3 *db, int64_t *count, struct error *err)
{
    return sql_integer(db, count, 0, "select count(*) from run where id not in (select run from member)", NULL, err);
}

bool removal_hide_experiment(sqlite3 *db, int64_t experiment, int64_t *runs, struct error *err)
{
    int64_t before = 0;
    static const char *const deletes[] = {
        "delete from member where variant in (select id from variant where experiment = ?)",
        "delete from loss_summary where variant in (select id from variant where experiment = ?)",
        "delete from comparison_summary where variant in (select id from variant where experiment = ?)",
        "delete from variant where experiment = ?", "delete from experiment where id = ?"};
    *runs = 0;
    bool ok = hidden_count(db, &before, err);
    for (size_t i = 0; ok && i < sizeof deletes / sizeof *deletes; i++)
        ok = sql_run(db, deletes[i], "i", err, experiment);
    ok = ok && hidden_count(db, runs, err);
    *runs -= before;
    return ok;
}

/* An experiment without the run is not what was frozen last: the next `run` of its file freezes it again. */
static bool experiments_forget(sqlite3 *db, const char *key, struct error *err)
{
    return sql_run(db,
                   "update experiment set fingerprint = '' where id in (select v.experiment from run r join member m "
                   "on m.run = r.id join variant v on v.id = m.variant where r.key = ?)",
                   "t", err, key);
}

bool removal_hide_run(sqlite3 *db, const char *key, int64_t *runs, struct error *err)
{
    bool row, ok = sql_script(db,
                              "create temp table if not exists touched (experiment integer primary key); "
                              "delete from temp.touched",
                              err) &&
                   experiments_forget(db, key, err) &&
                   sql_run(db,
                           "insert into temp.touched select distinct v.experiment from run r join member m on m.run = "
                           "r.id join variant v on v.id = m.variant where r.key = ?",
                           "t", err, key) &&
                   sql_run(db, "delete from member where run = (select id from run where key = ?)", "t", err, key);
    *runs = ok ? sqlite3_changes(db) > 0 : 0;
    sqlite3_stmt *s = ok ? sql_prepare(db, "select experiment from temp.touched", NULL, err) : NULL;
    ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row)
        ok = summary_refresh(db, sqlite3_column_int64(s, 0), err);
    sqlite3_finalize(s);
    return ok;
}
