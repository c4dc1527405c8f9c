/* Every metric of evaluations: what holds for all of them, by walking the table. */
#include "core/kernels.h"
#include "core/metric.h"
#include "core/random.h"
#include "runner/comparison.h"
#include "runner/loss_table.h"
#include "runner/merge.h"
#include "runner/moment.h"
#include "runner/schema.h"
#include "runner/summary.h"
#include "tests/database_case.h"

/* ---- counting ---- */

enum { ROWS_COUNTED = 7, V = 53 };

Test(metric, each_counts_row_by_row_leaves_the_logits_and_passes_over_ignored_targets)
{
    static real logits[ROWS_COUNTED * V], before[ROWS_COUNTED * V];
    const int32_t targets[ROWS_COUNTED] = {0, 52, -1, 17, 17, -1, 3};
    struct random_stream stream = random_stream_make(1, "logits");
    random_normal_fill(&stream, 3, logits, ROWS_COUNTED * V);
    memcpy(before, logits, sizeof logits);
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct metric *m = &metrics[i];
        double all = m->count(logits, V, targets, ROWS_COUNTED, V), one_by_one = 0;
        for (int r = 0; r < ROWS_COUNTED; r++)
            one_by_one += m->count(logits + r * V, V, targets + r, 1, V);
        cr_expect_arr_eq(logits, before, sizeof logits, "%s", m->name);
        cr_expect_float_eq(all, one_by_one, 1e-12 * fabs(all), "%s: sums of doubles, rounded in another order",
                           m->name);
        cr_expect_eq(m->count(logits + 2 * V, V, targets + 2, 1, V), 0, "%s: the target is -1", m->name);
    }
}

Test(metric, each_value_is_made_of_the_sum_it_shares)
{
    static real logits[ROWS_COUNTED * V];
    const int32_t targets[ROWS_COUNTED] = {0, 52, 4, 17, 17, 9, 3};
    struct random_stream stream = random_stream_make(2, "logits");
    random_normal_fill(&stream, 3, logits, ROWS_COUNTED * V);
    struct metric_sums sums = {{0}}, total = {{0}};
    struct evaluation_record record = {.tokens = 2 * ROWS_COUNTED, .bytes = 31};
    metric_count(&sums, logits, V, targets, ROWS_COUNTED, V);
    metric_add(&total, &sums);
    metric_add(&total, &sums);
    metric_finish(&total, &record);
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        double value, own = 2 * metrics[i].count(logits, V, targets, ROWS_COUNTED, V);
        memcpy(&value, (const char *)&record + metrics[i].offset, sizeof value);
        cr_expect_eq(value, metrics[i].value(own, &record), "%s", metrics[i].name);
    }
}

/* ---- the way through results.db ---- */

/* A finished run whose metric is 2.5, 1 and `last` at steps 0, 2 and 4. */
static void run_with(struct database *db, const char *key, const struct metric *metric, double last)
{
    const double values[] = {2.5, 1, last};
    struct error err;
    cr_assert(database_run_start(db, key, 0, &environment, NULL, 0, NULL, 0, &err), "%s", err.text);
    for (int64_t i = 0; i < 3; i++) {
        struct evaluation_row row = evaluation_of(2 * i, "validation", 4);
        memcpy((char *)&row.record + metric->offset, &values[i], sizeof values[i]);
        cr_assert(database_evaluation(db, key, &row, &err), "%s", err.text);
    }
    for (int64_t i = 0; i < 4; i++) {
        struct step_record step = step_of(i, 5);
        cr_assert(database_step(db, key, &step, &err), "%s", err.text);
    }
    cr_assert(database_run_end(db, key, RUN_FINISHED, NULL, NULL, &err), "%s", err.text);
    cr_assert(database_flush(db, 1, &err), "%s", err.text);
}

static void expect_best(sqlite3 *db, const struct metric *metric)
{
    const struct moment best = {.kind = MOMENT_BEST};
    struct reading reading;
    struct error err;
    cr_assert(moment_read(db, 1, "finished", "validation", metric->name, &best, &reading, &err), "%s", err.text);
    cr_expect_eq(reading.value, metric->better == HIGHER_IS_BETTER ? 2.5 : 1, "%s: %g", metric->name, reading.value);
}

static void expect_caption(sqlite3 *db, const struct metric *metric)
{
    struct error err;
    char text[8192], want[128];
    int64_t id = database_find_experiment(db, "quick", &err);
    struct loss_table *table = loss_table_read(db, id, metric->name, "validation", &err);
    cr_assert(table, "%s", err.text);
    FILE *out = fmemopen(text, sizeof text, "w");
    loss_table_write(table, TABLE_TEXT, 100, out);
    fclose(out);
    snprintf(want, sizeof want, "%s on validation at last step; %s is better", metric->name,
             metric->better == HIGHER_IS_BETTER ? "higher" : "lower");
    cr_expect(strstr(text, want), "'%s' should be in\n%s", want, text);
    loss_table_free(table);
}

/* Final values as in test_database.c: three times 0.1 below the baseline, plain enough for a verdict. */
Test(metric, each_is_stored_shown_summarised_and_compared)
{
    const double last[] = {2.10, 2.14, 2.12, 2.00, 2.02, 2.04};
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct metric *m = &metrics[i];
        struct fixture f;
        char sql[256], want[64];
        fixture_open(&f);
        struct sweep *sweep = sweep_small("quick", "a");
        freeze(f.db, sweep);
        for (size_t r = 0; r < 6; r++)
            run_with(f.db, sweep->runs[r].key, m, last[r]);
        sqlite3 *db = database_handle(f.db);
        snprintf(
            sql, sizeof sql,
            "select step, value, kind from curves where variant = 'baseline' and seed = 1 and split = 'validation' "
            "and metric = '%s' order by step",
            m->name);
        cr_expect_str_eq(rows_of(db, sql), "0|2.5000|finite\n2|1.0000|finite\n4|2.1000|finite\n", "%s", m->name);
        snprintf(sql, sizeof sql, "select variant, n, mean from losses where split = 'validation' and metric = '%s'",
                 m->name);
        cr_expect_str_eq(rows_of(db, sql), "baseline|3|2.1200\nrmsnorm|3|2.0200\n", "%s", m->name);
        snprintf(sql, sizeof sql, "select delta, verdict from comparisons where split = 'validation' and metric = '%s'",
                 m->name);
        snprintf(want, sizeof want, "-0.1000|%s\n", m->better == HIGHER_IS_BETTER ? "worse" : "better");
        cr_expect_str_eq(rows_of(db, sql), want, "%s", m->name);
        expect_best(db, m);
        expect_caption(db, m);
        sweep_release(sweep);
        fixture_remove(&f);
    }
}

/* A newer runner wrote the database: what this one does not know is not shown as something else. */
Test(metric, one_that_is_not_known_is_refused_at_any_moment)
{
    struct fixture f;
    struct error err;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    run_with(f.db, sweep->runs[0].key, &metrics[METRIC_loss], 2.1);
    sqlite3 *db = database_handle(f.db);
    int64_t id = database_find_experiment(db, "quick", &err);
    const char *const moments[] = {"best", "step:2"};
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        struct moment moment;
        char list[256], want[400];
        cr_assert(moment_parse(moments[i], &moment, &err), "%s", err.text);
        struct loss_table *table = loss_table_read(db, id, "zeal", "validation", &err);
        cr_assert(table, "%s", err.text);
        cr_expect_eq(loss_table_move(table, db, id, &moment, &err), LOSS_TABLE_FAILED, "%s", moments[i]);
        snprintf(want, sizeof want, "this runner does not know the metric 'zeal': it knows %s",
                 metric_list(" and ", list, sizeof list));
        cr_expect_str_eq(err.text, want);
        loss_table_free(table);
    }
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(metric, a_verdict_turns_where_higher_is_better)
{
    const double up[] = {0.10, 0.12, 0.08}, level[] = {0.001, -0.001, 0.002};
    struct compared rows[2] = {{.paired = paired_of(up, 3, 0.05)}, {.paired = paired_of(level, 3, 0.05)}};
    struct comparison_rules rules = {.margin = 0.01, .alpha = 0.05};
    verdicts_set(rows, 2, rules);
    cr_expect(rows[0].verdict == VERDICT_WORSE && rows[1].verdict == VERDICT_SAME);
    rules.higher = true;
    verdicts_set(rows, 2, rules);
    cr_expect(rows[0].verdict == VERDICT_BETTER && rows[1].verdict == VERDICT_SAME);
}

/* ---- databases from before a metric ---- */

/* As a program wrote it that did not know the metric. */
static void metric_forget(const char *path, const char *name)
{
    struct error err;
    char sql[256];
    sqlite3 *db;
    const struct schema_view *view;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    for (size_t i = 0; (view = schema_view(i)); i++) {
        snprintf(sql, sizeof sql, "drop view if exists %s", view->name);
        cr_assert(sql_script(db, sql, &err), "%s", err.text);
    }
    snprintf(sql, sizeof sql,
             "alter table evaluation drop column %s; alter table evaluation drop column %s_kind; "
             "delete from loss_summary where split <> 'train' and metric = '%s'; "
             "delete from comparison_summary where metric = '%s'",
             name, name, name, name);
    cr_assert(sql_script(db, sql, &err), "%s", err.text);
    sqlite3_close(db);
}

/* Rows of a view that name the metric and a split that is evaluated. */
static int64_t rows_naming(sqlite3 *db, const char *view, const char *metric)
{
    struct error err;
    int64_t count;
    char sql[128];
    snprintf(sql, sizeof sql, "select count(*) from %s where split = 'validation' and metric = ?", view);
    cr_assert(sql_integer(db, &count, 0, sql, "t", &err, metric), "%s", err.text);
    return count;
}

Test(metric, a_database_from_before_it_is_read_and_gets_its_columns_when_it_is_written)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct metric *m = &metrics[i], *other = &metrics[i ? 0 : 1];
        struct fixture f;
        struct error err;
        fixture_open(&f);
        struct sweep *sweep = sweep_small("quick", "a");
        freeze(f.db, sweep);
        run_with(f.db, sweep->runs[0].key, m, 2.1);
        fixture_close(&f);
        metric_forget(f.path, m->name);

        sqlite3 *reader = database_open_reader(f.path, &err);
        cr_assert(reader, "%s", err.text);
        cr_expect_eq(rows_naming(reader, "curves", m->name), 0, "%s", m->name);
        cr_expect_eq(rows_naming(reader, "curves", other->name), 3, "%s", other->name);
        struct reading reading;
        const struct moment last = {.kind = MOMENT_LAST};
        cr_assert(moment_read(reader, 1, "finished", "validation", m->name, &last, &reading, &err), "%s", err.text);
        cr_expect_not(reading.there, "%s", m->name);
        sqlite3_close(reader);

        f.db = database_open(f.path, NULL, &err);
        cr_assert(f.db, "%s", err.text);
        run_with(f.db, sweep->runs[1].key, m, 2.2);
        sqlite3 *db = database_handle(f.db);
        cr_expect_eq(rows_naming(db, "curves", m->name), 3, "%s: of the run that was made since", m->name);
        cr_expect_eq(rows_naming(db, "curves", other->name), 6, "%s", other->name);
        char sql[128];
        snprintf(sql, sizeof sql, "select n, n_planned, mean from losses where metric = '%s' and n", m->name);
        if (i != METRIC_loss) /* which training has too */
            cr_expect_str_eq(rows_of(db, sql), "1|3|2.2000\n", "%s", m->name);
        sweep_release(sweep);
        fixture_remove(&f);
    }
}

/* The table at the moment, or why there is none. */
static void expect_table_at(sqlite3 *db, const char *metric, const char *at, const char *want)
{
    struct error err = {0};
    struct moment moment;
    char text[8192];
    int64_t id = database_find_experiment(db, "quick", &err);
    cr_assert(moment_parse(at, &moment, &err), "%s", err.text);
    struct loss_table *table = loss_table_read(db, id, metric, "validation", &err);
    cr_assert(table, "%s", err.text);
    FILE *out = fmemopen(text, sizeof text, "w");
    if (loss_table_move(table, db, id, &moment, &err) == LOSS_TABLE_MOVED)
        loss_table_write(table, TABLE_TEXT, 120, out);
    else
        fputs(err.text, out);
    fclose(out);
    cr_expect(strstr(text, want), "at %s: '%s' should be in\n%s", at, want, text);
    loss_table_free(table);
}

Test(metric, a_finished_run_that_lacks_it_is_said_to)
{
    static const char *const moments[] = {"last", "best", "step:2"};
    const char *name = metrics[METRIC_COUNT - 1].name;
    char want[128];
    struct fixture f;
    struct error err;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    run_with(f.db, sweep->runs[0].key, &metrics[0], 2.1);
    fixture_close(&f);
    metric_forget(f.path, name);
    f.db = database_open(f.path, NULL, &err);
    cr_assert(f.db, "%s", err.text);
    sqlite3 *db = database_handle(f.db);
    expect_table_at(db, name, "last", "  0 of 3, 1 not measured, 2 queued\n");
    snprintf(want, sizeof want, "the finished runs of 'quick' did not measure %s on validation: nothing is known ",
             name);
    for (size_t i = 1; i < sizeof moments / sizeof moments[0]; i++)
        expect_table_at(db, name, moments[i], want);

    run_with(f.db, sweep->runs[1].key, &metrics[METRIC_COUNT - 1], 2.1);
    cr_assert(database_run_start(f.db, sweep->runs[2].key, 0, &environment, NULL, 0, NULL, 0, &err), "%s", err.text);
    cr_assert(database_run_end(f.db, sweep->runs[2].key, RUN_DIVERGED, NULL, NULL, &err), "%s", err.text);
    cr_assert(database_flush(f.db, 1, &err), "%s", err.text);
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++)
        expect_table_at(db, name, moments[i], "  1 of 3, 1 diverged, 1 not measured\n");
    expect_table_at(db, name, "step:9", "the furthest is at 4");
    sweep_release(sweep);
    fixture_remove(&f);
}

/* What of the metric a database of a merge does not have. */
enum lacking { LACKS_NOTHING, LACKS_LAST, LACKS_LAST_BUT_ONE };

static void lacking_forget(const char *path, enum lacking lacking)
{
    if (lacking != LACKS_NOTHING)
        metric_forget(path, metrics[METRIC_COUNT - (size_t)lacking].name);
}

/* A run that ended in `year`, its clock too; every metric is measured. */
static void run_of_year(struct database *db, const char *key, int year)
{
    struct error err;
    char sql[256];
    run_with(db, key, &metrics[METRIC_COUNT - 1], 2.1);
    snprintf(sql, sizeof sql,
             "update run set ended_at = '%d-01-01T00:00:00Z' where state = 'finished'; update step set seconds = %d; "
             "update evaluation set seconds = %d",
             year, year, year);
    cr_assert(sql_script(database_handle(db), sql, &err), "%s", err.text);
}

static void expect_merged_whole(enum lacking target, enum lacking source, int target_year, int source_year)
{
    struct fixture f;
    struct error err;
    char path[128], want[128];
    struct sweep *sweep = sweep_small("quick", "a");
    fixture_open(&f);
    fixture_close(&f);
    lacking_forget(f.path, LACKS_LAST); /* so that it has the columns of those that joined */
    lacking_forget(f.path, LACKS_LAST_BUT_ONE);
    f.db = database_open(f.path, NULL, &err);
    cr_assert(f.db, "%s", err.text);
    snprintf(path, sizeof path, "%s/other.db", f.folder);
    struct database *other = database_open(path, &(struct database_options){.no_wal = true}, &err);
    cr_assert(other, "%s", err.text);
    freeze(f.db, sweep);
    freeze(other, sweep);
    run_of_year(f.db, sweep->runs[0].key, target_year);
    run_of_year(other, sweep->runs[0].key, source_year);
    fixture_close(&f);
    cr_assert(database_close(other, &err), "%s", err.text);
    lacking_forget(f.path, target);
    lacking_forget(path, source);

    f.db = database_open(f.path, NULL, &err);
    cr_assert(f.db, "%s", err.text);
    sqlite3 *from = database_open_source(path, false, &err), *db = database_handle(f.db);
    cr_assert(from, "%s", err.text);
    struct merge *merge = merge_begin(db, f.path, MERGE_DATABASES);
    cr_expect(sql_begin(db, 1, &err) &&
                  sql_end(db, merge_add(merge, path, from, &err) && merge_finish(merge, &err), NULL, &err),
              "%s", err.text);
    merge_free(merge);
    sqlite3_close(from);
    int year = target_year < source_year ? target_year : source_year;
    for (size_t i = 0; i < METRIC_COUNT; i++)
        cr_expect_eq(rows_naming(db, "curves", metrics[i].name), 3, "%s: %d (%d) and %d (%d)", metrics[i].name, target,
                     target_year, source, source_year);
    snprintf(want, sizeof want, "%d-01-01T00:00:00Z|%d.0000|%d.0000\n", year, year, year);
    cr_expect_str_eq(
        rows_of(db, "select ended_at, (select avg(seconds) from step where run = run.id), "
                    "(select avg(seconds) from evaluation where run = run.id) from run where state = 'finished'"),
        want, "the run that ended first stays");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(metric, of_two_runs_that_agree_what_one_of_them_measured_is_kept_whichever_ended_first)
{
    static const enum lacking pairs[][2] = {
        {LACKS_NOTHING, LACKS_LAST}, {LACKS_LAST, LACKS_NOTHING}, {LACKS_LAST, LACKS_LAST_BUT_ONE}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        expect_merged_whole(pairs[i][0], pairs[i][1], 2024, 2025);
        expect_merged_whole(pairs[i][0], pairs[i][1], 2025, 2024);
    }
}

Test(metric, a_merge_leaves_none_behind_that_it_does_not_know)
{
    struct fixture f;
    struct error err;
    char path[128], want[256];
    struct sweep *sweep = sweep_small("quick", "a");
    fixture_open(&f);
    snprintf(path, sizeof path, "%s/other.db", f.folder);
    struct database *newer = database_open(path, &(struct database_options){.no_wal = true}, &err);
    cr_assert(newer, "%s", err.text);
    freeze(newer, sweep);
    run_with(newer, sweep->runs[0].key, &metrics[METRIC_loss], 2.1);
    cr_assert(sql_script(database_handle(newer), "alter table evaluation add column zeal_of_text real", &err), "%s",
              err.text);
    cr_assert(database_close(newer, &err), "%s", err.text);
    sqlite3 *from = database_open_source(path, false, &err), *db = database_handle(f.db);
    cr_assert(from, "%s", err.text);
    struct merge *merge = merge_begin(db, f.path, MERGE_DATABASES);
    cr_expect_not(merge_add(merge, path, from, &err));
    snprintf(want, sizeof want,
             "%s holds the metric 'zeal_of_text', which this runner does not know: merge with the newer runner", path);
    cr_expect_str_eq(err.text, want);
    merge_free(merge);
    sqlite3_close(from);
    sweep_release(sweep);
    fixture_remove(&f);
}
