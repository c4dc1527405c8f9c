/* Losses and comparisons of an experiment from its runs' final values. */
#include "runner/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/query.h"
#include "runner/sql.h"
#include "runner/statistics.h"

/* What a finished run ended on, in one measure. */
struct point {
    size_t variant; /* index */
    int64_t seed;
    double value; /* not a number: it was not finite */
};

struct measure {
    char split[64];
    const char *metric;
    struct point *points;
    size_t count, room;
};

struct group {
    int64_t id;
    bool baseline;
    int64_t planned, diverged;
};

struct summary {
    sqlite3 *db;
    double margin, alpha;
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

static void point_add(struct measure *measure, struct point point)
{
    if (measure->count == measure->room) {
        measure->room = measure->room ? 2 * measure->room : 16;
        measure->points =
            memory_grow(measure->points, measure->count * sizeof point, measure->room, sizeof *measure->points);
    }
    measure->points[measure->count++] = point;
}

static void summary_release(struct summary *summary)
{
    for (size_t i = 0; i < summary->measure_count; i++)
        memory_free(summary->measures[i].points);
    memory_free(summary->measures);
    memory_free(summary->groups);
}

/* ---- reading ---- */

/* A measure exists once a run has it; it counts once the run has finished. */
static void final_add(struct summary *summary, const char *split, const char *metric, bool finished, size_t variant,
                      int64_t seed, sqlite3_stmt *s, int column)
{
    struct measure *measure = measure_get(summary, split, metric);
    bool finite = sqlite3_column_int(s, column + 1) == 0;
    if (finished)
        point_add(measure, (struct point){variant, seed, finite ? sqlite3_column_double(s, column) : (double)NAN});
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
        final_add(summary, split, "loss", finished, variant, seed, s, 1);
        final_add(summary, split, "bits_per_byte", finished, variant, seed, s, 3);
        final_add(summary, split, "perplexity", finished, variant, seed, s, 5);
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

static bool loss_write(struct summary *summary, const struct measure *measure, size_t variant, struct error *err)
{
    const struct group *group = &summary->groups[variant];
    double *values = memory_alloc(measure->count, sizeof *values);
    size_t n = 0;
    int64_t diverged = group->diverged;
    for (size_t i = 0; i < measure->count; i++) {
        const struct point *point = &measure->points[i];
        if (point->variant != variant)
            continue;
        if (isnan(point->value))
            diverged++;
        else
            values[n++] = point->value;
    }
    struct sample sample = sample_of(values, n);
    memory_free(values);
    return sql_run(summary->db, "insert into loss_summary values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", "ittiiiddddd", err,
                   group->id, measure->split, measure->metric, (int64_t)n, group->planned, diverged, sample.mean,
                   sample.sd, sample.spread, sample.min, sample.max);
}

/* Differences variant - baseline of the seeds that both have. */
static size_t pair(const struct measure *measure, size_t variant, size_t baseline, double *differences)
{
    size_t n = 0;
    for (size_t i = 0; i < measure->count; i++) {
        const struct point *a = &measure->points[i];
        if (a->variant != variant || isnan(a->value))
            continue;
        for (size_t j = 0; j < measure->count; j++) {
            const struct point *b = &measure->points[j];
            if (b->variant == baseline && b->seed == a->seed && !isnan(b->value))
                differences[n++] = a->value - b->value;
        }
    }
    return n;
}

static bool comparison_write(struct summary *summary, const struct measure *measure, size_t variant,
                             const struct paired *paired, double p_holm, double factor, struct error *err)
{
    char text[VERDICT_SIZE];
    size_t seeds;
    enum verdict verdict = verdict_of(paired, p_holm, factor, summary->margin, summary->alpha, &seeds);
    verdict_format(verdict, seeds, text);
    return sql_run(summary->db, "insert into comparison_summary values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   "ittiddddddt", err, summary->groups[variant].id, measure->split, measure->metric, (int64_t)paired->n,
                   paired->delta, paired->ci_low, paired->ci_high, paired->p, p_holm, paired->mde, text);
}

static bool comparisons_write(struct summary *summary, const struct measure *measure, size_t baseline,
                              struct error *err)
{
    size_t count = summary->group_count;
    struct paired *paired = memory_alloc(count, sizeof *paired);
    double *p = memory_alloc(3 * count, sizeof *p), *p_holm = p + count, *factor = p + 2 * count;
    double *differences = memory_alloc(measure->count, sizeof *differences);
    for (size_t v = 0; v < count; v++) {
        size_t n = v == baseline ? 0 : pair(measure, v, baseline, differences);
        paired[v] = paired_of(differences, n, summary->alpha);
        p[v] = paired[v].p;
    }
    holm_adjust(p, count, p_holm, factor);
    bool ok = true;
    for (size_t v = 0; ok && v < count; v++)
        ok = v == baseline || comparison_write(summary, measure, v, &paired[v], p_holm[v], factor[v], err);
    memory_free(differences);
    memory_free(p);
    memory_free(paired);
    return ok;
}

static bool summary_write(struct summary *summary, struct error *err)
{
    size_t baseline = summary->group_count;
    for (size_t v = 0; v < summary->group_count; v++)
        if (summary->groups[v].baseline)
            baseline = v;
    bool ok = true;
    for (size_t m = 0; ok && m < summary->measure_count; m++) {
        for (size_t v = 0; ok && v < summary->group_count; v++)
            ok = loss_write(summary, &summary->measures[m], v, err);
        if (ok && baseline < summary->group_count)
            ok = comparisons_write(summary, &summary->measures[m], baseline, err);
    }
    return ok;
}

static bool settings_read(struct summary *summary, int64_t experiment, struct error *err)
{
    bool row = false;
    sqlite3_stmt *s =
        sql_prepare(summary->db, "select margin, alpha from experiment where id = ?", "i", err, experiment);
    bool ok = s && sql_step(s, &row, err);
    if (ok && row) {
        summary->margin = sqlite3_column_double(s, 0);
        summary->alpha = sqlite3_column_double(s, 1);
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
