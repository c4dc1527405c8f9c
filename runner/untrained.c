/* Runs that did not train. */
#include "runner/untrained.h"

#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "runner/query.h"
#include "runner/sql.h"

/* Of the best variant's fall: since a quarter of training, and in all. */
static const double least_share = 0.25, most_lacking = 0.15;

struct progress_mean {
    double first, quarter, last;
};

/* Of the variant's runs; not a number when one lacks a point. */
static struct progress_mean mean_of(const struct progress_points *runs, size_t count, size_t variant)
{
    struct progress_mean mean = {0, 0, 0};
    double n = 0;
    for (size_t i = 0; i < count; i++)
        if (runs[i].variant == variant) {
            mean.first += runs[i].first;
            mean.quarter += runs[i].quarter;
            mean.last += runs[i].last;
            n++;
        }
    return n > 0 ? (struct progress_mean){mean.first / n, mean.quarter / n, mean.last / n}
                 : (struct progress_mean){NAN, NAN, NAN};
}

static double first_lowest(const struct progress_points *runs, size_t count, int64_t tokenizer)
{
    double lowest = INFINITY;
    for (size_t i = 0; i < count; i++)
        if (runs[i].tokenizer == tokenizer && runs[i].first < lowest)
            lowest = runs[i].first;
    return lowest;
}

void untrained_find(struct progress_points *runs, size_t count, size_t variant_count)
{
    struct progress_mean best = {NAN, NAN, NAN};
    for (size_t v = 0; v < variant_count; v++) {
        struct progress_mean mean = mean_of(runs, count, v);
        if (!isnan(mean.quarter + mean.last) && !(best.last <= mean.last))
            best = mean;
    }
    for (size_t i = 0; i < count; i++) {
        struct progress_points *run = &runs[i];
        bool stuck = run->last > best.quarter && run->last - best.last > most_lacking * (best.first - best.last) &&
                     run->quarter - run->last < least_share * (best.quarter - best.last);
        run->untrained = run->last >= first_lowest(runs, count, run->tokenizer) || stuck;
    }
}

static double value_of(sqlite3_stmt *s)
{
    return sqlite3_column_int(s, 6) ? (double)NAN : sqlite3_column_double(s, 5);
}

/* The first evaluation at or after a quarter of the steps stands for the quarter, unless it is the last one. */
static bool points_read(sqlite3 *db, int64_t run, int64_t steps, struct progress_points *points, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_CURVE_EVALUATION), "it", err, run, "validation");
    bool more, ok = s != NULL;
    int64_t quarter_step = -1, step = -1;
    points->first = points->quarter = points->last = NAN;
    while (ok && (ok = sql_step(s, &more, err)) && more) {
        step = sqlite3_column_int64(s, 0);
        points->last = value_of(s);
        if (step == 0)
            points->first = points->last;
        if (quarter_step < 0 && step > 0 && 4 * step >= steps) {
            quarter_step = step;
            points->quarter = points->last;
        }
    }
    if (quarter_step == step)
        points->quarter = NAN;
    sqlite3_finalize(s);
    return ok;
}

bool untrained_mark(sqlite3 *db, int64_t experiment, struct loss_table *table, struct error *err)
{
    struct progress_points *runs = NULL;
    size_t count = 0;
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_FINISHED_RUNS), "i", err, experiment);
    bool more, ok = s != NULL;
    while (ok && (ok = sql_step(s, &more, err)) && more) {
        size_t row = 0;
        while (row < table->row_count && table->rows[row].id != sqlite3_column_int64(s, 0))
            row++;
        runs = memory_grow(runs, count * sizeof *runs, count + 1, sizeof *runs);
        runs[count] = (struct progress_points){.variant = row, .tokenizer = sqlite3_column_int64(s, 2)};
        ok = points_read(db, sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 3), &runs[count++], err);
    }
    sqlite3_finalize(s);
    if (ok)
        untrained_find(runs, count, table->row_count);
    for (size_t i = 0; ok && i < count; i++)
        if (runs[i].untrained && runs[i].variant < table->row_count)
            table->rows[runs[i].variant].marks |= 1u << MARK_UNTRAINED;
    memory_free(runs);
    return ok;
}
