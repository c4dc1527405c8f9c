/* Losses and comparisons of an experiment from its runs' final values. */
#include "runner/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/metric.h"
#include "runner/comparison.h"
#include "runner/query.h"
#include "runner/sql.h"

struct measure {
    char split[64];
    const char *metric;
    struct outcomes outcomes; /* of the finished runs */
};

struct group {
    int64_t id;
    bool baseline;
    int64_t planned, diverged;
};

struct summary {
    sqlite3 *db;
    struct comparison_rules rules;
    struct group *groups; /* variants */
    size_t group_count;
    struct measure *measures;
    size_t measure_count;
};

static struct measure *measure_get(struct summary *summary, const char *split, const char *metric)
{
    for (size_t i = 0; i < summary->measure_count; i++)
        if (strcmp(summary->measures[i].split, split) == 0 && strcmp(summary->measures[i].metric, metric) == 0)
            return &summary->measures[i];
    summary->measures = memory_grow(summary->measures, summary->measure_count * sizeof *summary->measures,
                                    summary->measure_count + 1, sizeof *summary->measures);
    struct measure *measure = &summary->measures[summary->measure_count++];
    *measure = (struct measure){.metric = metric};
    snprintf(measure->split, sizeof measure->split, "%s", split);
    return measure;
}

static void summary_release(struct summary *summary)
{
    for (size_t i = 0; i < summary->measure_count; i++)
        outcomes_release(&summary->measures[i].outcomes);
    memory_free(summary->measures);
    memory_free(summary->groups);
}

/* ---- reading ---- */

/* A measure exists once a run has it; it counts once the run has finished. NULL: not measured in its time. */
static void final_add(struct summary *summary, const char *split, const char *metric, bool finished, size_t variant,
                      int64_t seed, sqlite3_stmt *s, int column)
{
    if (sqlite3_column_type(s, column) == SQLITE_NULL)
        return;
    struct measure *measure = measure_get(summary, split, metric);
    bool finite = sqlite3_column_int(s, column + 1) == 0;
    if (finished)
        outcome_add(&measure->outcomes,
                    (struct outcome){variant, seed, finite ? sqlite3_column_double(s, column) : (double)NAN});
}

static bool finals_read(struct summary *summary, int64_t run, bool finished, size_t variant, int64_t seed,
                        struct error *err)
{
    bool row = false;
    sqlite3_stmt *s = sql_prepare(summary->db, query_text(QUERY_LAST_STEP), "i", err, run);
    bool ok = s && sql_step(s, &row, err);
    if (ok && row)
        final_add(summary, "train", "loss", finished, variant, seed, s, 0);
    sqlite3_finalize(s);
    s = ok ? sql_prepare(summary->db, query_text(QUERY_LAST_EVALUATIONS), "i", err, run) : NULL;
    ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row) {
        const char *split = sql_text(s, 0);
        for (int i = 0; i < METRIC_COUNT; i++)
            final_add(summary, split, metrics[i].name, finished, variant, seed, s, 1 + 2 * i);
    }
    sqlite3_finalize(s);
    return ok;
}

static struct group *group_get(struct summary *summary, int64_t id, bool baseline)
{
    if (summary->group_count == 0 || summary->groups[summary->group_count - 1].id != id) {
        summary->groups = memory_grow(summary->groups, summary->group_count * sizeof *summary->groups,
                                      summary->group_count + 1, sizeof *summary->groups);
        summary->groups[summary->group_count++] = (struct group){.id = id, .baseline = baseline};
    }
    return &summary->groups[summary->group_count - 1];
}

static bool members_read(struct summary *summary, int64_t experiment, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(summary->db, query_text(QUERY_MEMBERS), "i", err, experiment);
    bool row, ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row) {
        struct group *group = group_get(summary, sqlite3_column_int64(s, 0), sqlite3_column_int(s, 1));
        const char *state = sql_text(s, 4);
        group->planned++;
        group->diverged += strcmp(state, "diverged") == 0;
        ok = finals_read(summary, sqlite3_column_int64(s, 3), strcmp(state, "finished") == 0, summary->group_count - 1,
                         sqlite3_column_int64(s, 2), err);
    }
    sqlite3_finalize(s);
    return ok;
}

/* ---- writing ---- */

static bool loss_write(struct summary *summary, const struct measure *measure, const struct group *group,
                       const struct compared *row, struct error *err)
{
    const struct sample *sample = &row->sample;
    return sql_run(summary->db, "insert into loss_summary values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", "ittiiiddddd", err,
                   group->id, measure->split, measure->metric, (int64_t)sample->n, group->planned,
                   group->diverged + (int64_t)row->not_finite, sample->mean, sample->sd, sample->spread, sample->min,
                   sample->max);
}

static bool comparison_write(struct summary *summary, const struct measure *measure, const struct group *group,
                             const struct compared *row, struct error *err)
{
    char text[VERDICT_SIZE];
    const struct paired *paired = &row->paired;
    verdict_format(row->verdict, row->seeds, text);
    return sql_run(summary->db, "insert into comparison_summary values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   "ittiddddddt", err, group->id, measure->split, measure->metric, (int64_t)paired->n, paired->delta,
                   paired->ci_low, paired->ci_high, paired->p, row->p_holm, paired->mde, text);
}

static bool summary_write(struct summary *summary, struct error *err)
{
    size_t count = summary->group_count, baseline = count;
    for (size_t v = 0; v < count; v++)
        if (summary->groups[v].baseline)
            baseline = v;
    struct compared *rows = memory_alloc(count, sizeof *rows);
    bool ok = true;
    for (size_t m = 0; ok && m < summary->measure_count; m++) {
        const struct measure *measure = &summary->measures[m];
        summary->rules.higher = metric_higher_is_better(measure->metric);
        variants_compare(&measure->outcomes, count, baseline, summary->rules, rows);
        for (size_t v = 0; ok && v < count; v++) {
            const struct group *group = &summary->groups[v];
            ok = loss_write(summary, measure, group, &rows[v], err) &&
                 (baseline == count || v == baseline || comparison_write(summary, measure, group, &rows[v], err));
        }
    }
    memory_free(rows);
    return ok;
}

static bool settings_read(struct summary *summary, int64_t experiment, struct error *err)
{
    bool row = false;
    sqlite3_stmt *s =
        sql_prepare(summary->db, "select margin, alpha from experiment where id = ?", "i", err, experiment);
    bool ok = s && sql_step(s, &row, err);
    if (ok && row) {
        summary->rules.margin = sqlite3_column_double(s, 0);
        summary->rules.alpha = sqlite3_column_double(s, 1);
    }
    sqlite3_finalize(s);
    return ok;
}

bool summary_refresh(sqlite3 *db, int64_t experiment, struct error *err)
{
    struct summary summary = {.db = db};
    measure_get(&summary, "train", "loss");
    bool ok = settings_read(&summary, experiment, err) && members_read(&summary, experiment, err) &&
              sql_run(db, query_text(QUERY_DELETE_LOSSES), "i", err, experiment) &&
              sql_run(db, query_text(QUERY_DELETE_COMPARISONS), "i", err, experiment) && summary_write(&summary, err);
    summary_release(&summary);
    return ok;
}

bool summary_refresh_run(sqlite3 *db, const char *key, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_EXPERIMENTS_OF_RUN), "t", err, key);
    bool row, ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row)
        ok = summary_refresh(db, sqlite3_column_int64(s, 0), err);
    sqlite3_finalize(s);
    return ok;
}
