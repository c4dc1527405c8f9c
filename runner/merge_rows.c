/* Copies what belongs to a run, and compares it. */
#include "runner/merge_rows.h"

#include <string.h>

#include "runner/metric_sql.h"
#include "runner/sql.h"

bool rows_copy(sqlite3_stmt *select, sqlite3_stmt *insert, int64_t last, struct error *err)
{
    bool row, done, ok = select && insert;
    while (ok && (ok = sql_step(select, &row, err)) && row) {
        int columns = sqlite3_column_count(select);
        sqlite3_reset(insert);
        for (int c = 0; c < columns; c++)
            sqlite3_bind_value(insert, c + 1, sqlite3_column_value(select, c));
        if (last >= 0)
            sqlite3_bind_int64(insert, columns + 1, last);
        ok = sql_step(insert, &done, err);
    }
    sqlite3_finalize(select);
    return ok;
}

/* The same columns in each list, in the same order: names, what is selected, marks, updates. */
static sqlite3_stmt *columns_of(sqlite3 *db, const char *table, struct error *err)
{
    return sql_prepare(
        db,
        "select group_concat('\"' || name || '\"', ', '), "
        "group_concat(iif(name = 'tokenizer', '(select hash from tokenizer where id = tokenizer)', '\"' || name || "
        "'\"'), ', '), "
        "group_concat(iif(name = 'tokenizer', '(select id from tokenizer where hash = ?)', '?'), ', '), "
        "group_concat('\"' || name || '\" = excluded.\"' || name || '\"', ', ') "
        "from pragma_table_info(?) where name <> 'id'",
        "t", err, table);
}

bool row_copy(sqlite3 *from, sqlite3 *to, const char *table, const char *unique, int64_t id, struct error *err)
{
    sqlite3_stmt *columns = columns_of(to, table, err), *into = NULL;
    bool row = false, ok = columns && sql_step(columns, &row, err) && row;
    char *select = NULL, *insert = NULL;
    if (ok) {
        select = sqlite3_mprintf("select %s from \"%w\" where id = ?", sql_text(columns, 1), table);
        insert = sqlite3_mprintf("insert into \"%w\" (%s) values (%s) on conflict (\"%w\") do update set %s", table,
                                 sql_text(columns, 0), sql_text(columns, 2), unique, sql_text(columns, 3));
        into = sql_prepare(to, insert, NULL, err);
        ok = into && rows_copy(sql_prepare(from, select, "i", err, id), into, -1, err);
    }
    sqlite3_free(select);
    sqlite3_free(insert);
    sqlite3_finalize(into);
    sqlite3_finalize(columns);
    return ok;
}

static bool copy(sqlite3 *from, int64_t from_run, int64_t first_step, const char *select, sqlite3 *to, int64_t to_run,
                 const char *insert, struct error *err)
{
    sqlite3_stmt *into = sql_prepare(to, insert, NULL, err);
    bool ok = into && rows_copy(sql_prepare(from, select, "ii", err, from_run, first_step), into, to_run, err);
    sqlite3_finalize(into);
    return ok;
}

#define EVALUATION_SELECT                                                                                              \
    "select split, step, tokens, seconds, blocks, evaluated_tokens, evaluated_bytes" METRIC_COLUMNS                    \
    " from evaluation where run = ?1 and step >= ?2"
/* seconds: of an evaluation that is there already. It keeps what it has measured, and gets what it has not. */
#define EVALUATION_INSERT(seconds)                                                                                     \
    "insert into evaluation (split, step, tokens, seconds, blocks, evaluated_tokens, evaluated_bytes" METRIC_COLUMNS   \
    ", run) values (?, ?, ?, ?, ?, ?, ?" METRIC_MARKS ", ?) "                                                          \
    "on conflict (run, split, step) do update set seconds = " seconds METRIC_FILLS

bool curve_copy(sqlite3 *from, int64_t from_run, sqlite3 *to, int64_t to_run, int64_t first_step, struct error *err)
{
    return copy(from, from_run, first_step, "select knob, value from setting where run = ?1 and ?2 >= 0", to, to_run,
                "insert or ignore into setting (knob, value, run) values (?, ?, ?)", err) &&
           copy(from, from_run, first_step,
                "select step, loss, loss_kind, grad_norm, grad_norm_kind, learning_rate, tokens, seconds, "
                "batch_checksum from step where run = ?1 and step >= ?2",
                to, to_run,
                "insert into step (step, loss, loss_kind, grad_norm, grad_norm_kind, learning_rate, tokens, "
                "seconds, batch_checksum, run) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "on conflict (run, step) do update set seconds = excluded.seconds",
                err) &&
           copy(from, from_run, first_step, EVALUATION_SELECT, to, to_run, EVALUATION_INSERT("excluded.seconds"), err);
}

bool curve_fill(sqlite3 *from, int64_t from_run, sqlite3 *to, int64_t to_run, struct error *err)
{
    return copy(from, from_run, 0, EVALUATION_SELECT, to, to_run, EVALUATION_INSERT("seconds"), err);
}

bool curve_delete(sqlite3 *db, int64_t run, struct error *err)
{
    return sql_run(db, "delete from step where run = ?", "i", err, run) &&
           sql_run(db, "delete from evaluation where run = ?", "i", err, run) &&
           sql_run(db, "delete from setting where run = ?", "i", err, run);
}

/* NULL: a metric that was not measured yet contradicts nothing. */
static bool value_equal(sqlite3_stmt *a, sqlite3_stmt *b, int column)
{
    if (sqlite3_column_type(a, column) == SQLITE_NULL || sqlite3_column_type(b, column) == SQLITE_NULL)
        return true;
    if (sqlite3_column_type(a, column) != sqlite3_column_type(b, column))
        return false;
    if (sqlite3_column_type(a, column) == SQLITE_FLOAT)
        return sqlite3_column_double(a, column) == sqlite3_column_double(b, column);
    return strcmp(sql_text(a, column), sql_text(b, column)) == 0;
}

static bool rows_equal(sqlite3 *a, int64_t run_a, sqlite3 *b, int64_t run_b, const char *sql, bool *ok,
                       struct error *err)
{
    sqlite3_stmt *x = sql_prepare(a, sql, "i", err, run_a), *y = sql_prepare(b, sql, "i", err, run_b);
    bool more_x = true, more_y = true, equal = true;
    *ok = x && y;
    while (*ok && equal && more_x && more_y) {
        *ok = sql_step(x, &more_x, err) && sql_step(y, &more_y, err);
        equal = more_x == more_y;
        for (int c = 0; *ok && equal && more_x && c < sqlite3_column_count(x); c++)
            equal = value_equal(x, y, c);
    }
    sqlite3_finalize(x);
    sqlite3_finalize(y);
    return equal;
}

bool curves_equal(sqlite3 *a, int64_t run_a, sqlite3 *b, int64_t run_b, bool *ok, struct error *err)
{
    return rows_equal(a, run_a, b, run_b,
                      "select step, loss, loss_kind, grad_norm, grad_norm_kind, learning_rate, tokens, batch_checksum "
                      "from step where run = ? order by step",
                      ok, err) &&
           *ok &&
           rows_equal(a, run_a, b, run_b,
                      "select split, step, tokens, blocks, evaluated_tokens, evaluated_bytes" METRIC_COLUMNS
                      " from evaluation where run = ? order by split, step",
                      ok, err);
}
