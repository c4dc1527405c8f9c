/* Reads a figure's query and takes means over seeds. */
#include "runner/plot_data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/plot_text.h"
#include "runner/sql.h"
#include "runner/statistics.h"

enum {
    COLUMN_VARIANT,
    COLUMN_SEED,
    COLUMN_STATE,
    COLUMN_BASELINE,
    COLUMN_STEP,
    COLUMN_X,
    COLUMN_VALUE,
    COLUMN_DOWN_KNOB,
    COLUMN_DOWN_LEVEL,
    COLUMN_ACROSS_KNOB,
    COLUMN_ACROSS_LEVEL,
};

static bool text_bind(sqlite3_stmt *statement, const char *name, const char *text)
{
    int index = sqlite3_bind_parameter_index(statement, name);
    return index == 0 || sqlite3_bind_text(statement, index, text, -1, SQLITE_TRANSIENT) == SQLITE_OK;
}

static const char *column_text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text ? text : "";
}

/* Only a number that is one: NULL, 'nan' and 'inf' are how a value says that it is not finite. */
static double column_number(sqlite3_stmt *statement, int column)
{
    int type = sqlite3_column_type(statement, column);
    return type == SQLITE_FLOAT || type == SQLITE_INTEGER ? sqlite3_column_double(statement, column) : NAN;
}

/* Room for one more, doubling. */
static void *array_push(void *items, size_t count, size_t size)
{
    if (count == 0)
        return memory_alloc(4, size);
    if (count < 4 || (count & (count - 1)))
        return items;
    return memory_grow(items, count * size, 2 * count, size);
}

static void levels_take(struct plot_data *data, struct plot_variant *variant, sqlite3_stmt *row)
{
    if (sqlite3_column_count(row) <= COLUMN_DOWN_KNOB)
        return;
    if (!data->down) {
        data->down = plot_text_clean(column_text(row, COLUMN_DOWN_KNOB));
        data->across = plot_text_clean(column_text(row, COLUMN_ACROSS_KNOB));
    }
    variant->down = plot_text_clean(column_text(row, COLUMN_DOWN_LEVEL));
    variant->across = plot_text_clean(column_text(row, COLUMN_ACROSS_LEVEL));
}

static struct plot_run *run_of_row(struct plot_data *data, sqlite3_stmt *row, char **variant_name)
{
    const char *name = column_text(row, COLUMN_VARIANT);
    if (!*variant_name || strcmp(*variant_name, name) != 0) {
        memory_free(*variant_name);
        *variant_name = memory_copy_text(name);
        data->variants = array_push(data->variants, data->variant_count, sizeof *data->variants);
        data->variants[data->variant_count++] =
            (struct plot_variant){.label = plot_text_clean(name), .baseline = sqlite3_column_int(row, COLUMN_BASELINE)};
        levels_take(data, &data->variants[data->variant_count - 1], row);
    }
    struct plot_variant *variant = &data->variants[data->variant_count - 1];
    int64_t seed = sqlite3_column_int64(row, COLUMN_SEED);
    if (variant->run_count == 0 || variant->runs[variant->run_count - 1].seed != seed) {
        const char *state = column_text(row, COLUMN_STATE);
        variant->runs = array_push(variant->runs, variant->run_count, sizeof *variant->runs);
        variant->runs[variant->run_count++] = (struct plot_run){.seed = seed,
                                                                .diverged = strcmp(state, "diverged") == 0,
                                                                .failed = strcmp(state, "failed") == 0,
                                                                .finished = strcmp(state, "finished") == 0};
    }
    return &variant->runs[variant->run_count - 1];
}

static void row_add(struct plot_data *data, sqlite3_stmt *row, bool logarithmic, char **variant_name)
{
    struct plot_run *run = run_of_row(data, row, variant_name);
    double x = column_number(row, COLUMN_X), value = column_number(row, COLUMN_VALUE);
    if (sqlite3_column_type(row, COLUMN_STEP) == SQLITE_NULL || !isfinite(x))
        return;
    if (logarithmic && isfinite(value) && value <= 0) {
        data->unshown++;
        value = NAN;
    }
    run->points = array_push(run->points, run->count, sizeof *run->points);
    run->points[run->count++] = (struct plot_point){sqlite3_column_int64(row, COLUMN_STEP), x, value};
    run->finite += isfinite(value) ? 1 : 0;
}

/* The query as it was run, with a newline at its end. */
static char *sql_expanded(sqlite3_stmt *statement, const char *sql)
{
    char *expanded = statement ? sqlite3_expanded_sql(statement) : NULL;
    const char *text = expanded ? expanded : sql;
    size_t size = strlen(text) + 2;
    char *copy = memory_alloc(size, 1);
    snprintf(copy, size, "%s\n", text);
    sqlite3_free(expanded);
    return copy;
}

/* Variants may differ in them: the baseline's are told. */
static bool blocks_read(sqlite3 *db, const struct plot_query *query, struct plot_data *data, struct error *err)
{
    bool row = false;
    sqlite3_stmt *s = sql_prepare(db,
                                  "select json_extract(config, '$.\"evaluation.blocks\"'), "
                                  "json_extract(config, '$.\"evaluation.final_blocks\"') "
                                  "from runs join variants using (experiment, variant) where experiment = ? "
                                  "order by baseline desc, position, seed limit 1",
                                  "t", err, query->experiment);
    bool ok = s && sql_step(s, &row, err);
    if (ok && row) {
        data->blocks = sqlite3_column_int64(s, 0);
        data->final_blocks = sqlite3_column_int64(s, 1);
    }
    sqlite3_finalize(s);
    return ok;
}

bool plot_data_read(sqlite3 *db, const struct plot_query *query, struct plot_data *data, struct error *err)
{
    *data = (struct plot_data){0};
    sqlite3_stmt *statement = NULL;
    char *variant_name = NULL;
    bool ok = sqlite3_prepare_v2(db, query->sql, -1, &statement, NULL) == SQLITE_OK &&
              text_bind(statement, ":experiment", query->experiment) && text_bind(statement, ":split", query->split) &&
              text_bind(statement, ":metric", query->metric) && text_bind(statement, ":x", query->x);
    int result = SQLITE_ERROR;
    while (ok && (result = sqlite3_step(statement)) == SQLITE_ROW)
        row_add(data, statement, query->logarithmic, &variant_name);
    ok = ok && result == SQLITE_DONE;
    if (!ok)
        error_set(err, "the query of a figure failed: %s", sqlite3_errmsg(db));
    ok = ok && (strcmp(query->split, "train") == 0 || blocks_read(db, query, data, err));
    data->sql = sql_expanded(statement, query->sql);
    sqlite3_finalize(statement);
    memory_free(variant_name);
    if (!ok)
        plot_data_release(data);
    return ok;
}

void plot_data_release(struct plot_data *data)
{
    for (size_t v = 0; v < data->variant_count; v++) {
        for (size_t r = 0; r < data->variants[v].run_count; r++)
            memory_free(data->variants[v].runs[r].points);
        memory_free(data->variants[v].runs);
        memory_free(data->variants[v].label);
        memory_free(data->variants[v].down);
        memory_free(data->variants[v].across);
    }
    memory_free(data->variants);
    memory_free(data->down);
    memory_free(data->across);
    memory_free(data->sql);
    *data = (struct plot_data){0};
}

/* Runs that ended early would make the mean jump where they end, so it is taken over the finished ones; while none is
 * finished, over those still on their way. */
static bool run_counts(const struct plot_variant *variant, const struct plot_run *run)
{
    for (size_t r = 0; r < variant->run_count; r++)
        if (variant->runs[r].finished)
            return run->finished;
    return !run->diverged && !run->failed;
}

/* The smallest step at which a run that counts has a point not yet taken; INT64_MAX when there is none. */
static int64_t step_next(const struct plot_variant *variant, const size_t *taken)
{
    int64_t step = INT64_MAX;
    for (size_t r = 0; r < variant->run_count; r++) {
        const struct plot_run *run = &variant->runs[r];
        if (run_counts(variant, run) && taken[r] < run->count && run->points[taken[r]].step < step)
            step = run->points[taken[r]].step;
    }
    return step;
}

/* Around the mean of n values with this sum of squared deviations: the 95 % t interval; of two values, whose interval
 * is nine times as wide as they are apart, from the one to the other. */
static void band_set(struct plot_mean *mean, double squares)
{
    static _Thread_local double quantiles[64]; /* by n: a curve asks for the same ones over and over */
    if (mean->n < 3)
        return;
    double n = (double)mean->n, quantile = 0;
    if (mean->n < sizeof quantiles / sizeof *quantiles)
        quantile = quantiles[mean->n];
    if (quantile <= 0)
        quantile = t_quantile(0.975, n - 1);
    if (mean->n < sizeof quantiles / sizeof *quantiles)
        quantiles[mean->n] = quantile;
    double half = quantile * sqrt(squares / (n - 1) / n);
    mean->low = mean->value - half;
    mean->high = mean->value + half;
}

static struct plot_mean mean_at(const struct plot_variant *variant, size_t *taken, int64_t step)
{
    struct plot_mean mean = {.low = INFINITY, .high = -INFINITY, .smoothed = NAN};
    double squares = 0;
    for (size_t r = 0; r < variant->run_count; r++) {
        const struct plot_run *run = &variant->runs[r];
        if (!run_counts(variant, run) || taken[r] >= run->count || run->points[taken[r]].step != step)
            continue;
        struct plot_point point = run->points[taken[r]++];
        if (!isfinite(point.value))
            continue;
        mean.n++;
        mean.x += (point.x - mean.x) / (double)mean.n;
        double before = point.value - mean.value;
        mean.value += before / (double)mean.n;
        squares += before * (point.value - mean.value);
        mean.low = fmin(mean.low, point.value);
        mean.high = fmax(mean.high, point.value);
    }
    band_set(&mean, squares);
    return mean;
}

static void mean_smooth(struct plot_mean *line, size_t count, int64_t smooth)
{
    double factor = 1 - 1 / (double)smooth, average = 0, weight = 0;
    for (size_t i = 0; i < count; i++) {
        average = factor * average + (1 - factor) * line[i].value;
        weight = factor * weight + (1 - factor);
        line[i].smoothed = average / weight;
    }
}

struct plot_mean *plot_mean_of(const struct plot_variant *variant, int64_t smooth, size_t *count)
{
    size_t most = 0;
    for (size_t r = 0; r < variant->run_count; r++)
        most += variant->runs[r].count;
    struct plot_mean *line = memory_alloc(most, sizeof *line);
    size_t *taken = memory_alloc(variant->run_count, sizeof *taken);
    *count = 0;
    for (int64_t step; (step = step_next(variant, taken)) != INT64_MAX;) {
        struct plot_mean mean = mean_at(variant, taken, step);
        if (mean.n)
            line[(*count)++] = mean;
    }
    memory_free(taken);
    if (smooth > 1)
        mean_smooth(line, *count, smooth);
    return line;
}

static size_t thinning_of(size_t count, size_t most)
{
    return count <= most ? 1 : (count + most - 1) / most;
}

size_t plot_run_thin(struct plot_run *run, size_t most)
{
    size_t k = thinning_of(run->count, most), used = 0;
    for (size_t i = 0; k > 1 && i < run->count; i += k) {
        struct plot_point mean = {0};
        size_t n = 0;
        for (size_t j = i; j < i + k && j < run->count; j++) {
            if (!isfinite(run->points[j].value))
                continue;
            n++;
            mean.step = run->points[j].step;
            mean.x += (run->points[j].x - mean.x) / (double)n;
            mean.value += (run->points[j].value - mean.value) / (double)n;
        }
        if (n)
            run->points[used++] = mean;
    }
    if (k > 1)
        run->count = run->finite = used;
    return k;
}

size_t plot_mean_thin(struct plot_mean *line, size_t *count, size_t most)
{
    size_t k = thinning_of(*count, most), used = 0;
    for (size_t i = 0; k > 1 && i < *count; i += k) {
        size_t n = i + k <= *count ? k : *count - i;
        struct plot_mean mean = {.n = line[i].n, .smoothed = line[i + n - 1].smoothed};
        for (size_t j = i; j < i + n; j++) {
            mean.x += line[j].x / (double)n;
            mean.value += line[j].value / (double)n;
            mean.low += line[j].low / (double)n;
            mean.high += line[j].high / (double)n;
        }
        line[used++] = mean;
    }
    if (k > 1)
        *count = used;
    return k;
}

const char *plot_variant_status(const struct plot_variant *variant, bool logarithmic, char buf[PLOT_STATUS_SIZE])
{
    size_t diverged = 0, failed = 0, unfinished = 0, empty = 0, points = 0, n = variant->run_count;
    for (size_t r = 0; r < n; r++) {
        const struct plot_run *run = &variant->runs[r];
        diverged += run->diverged;
        failed += run->failed;
        unfinished += !run->diverged && !run->failed && !run->finished;
        empty += run->finite == 0;
        points += run->count;
    }
    const char *none = points == 0 ? "no values" : logarithmic ? "no value above 0" : "no finite value";
    const struct {
        size_t count;
        const char *word;
    } parts[] = {{diverged, "diverged"}, {failed, "failed"}, {unfinished, "not finished"}};
    size_t used = 0;
    buf[0] = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].count)
            used += (size_t)snprintf(buf + used, PLOT_STATUS_SIZE - used, "%s%zu of %zu %s", used ? ", " : "",
                                     parts[i].count, n, parts[i].word);
    if (empty == n)
        snprintf(buf + used, PLOT_STATUS_SIZE - used, "%s%s", used ? ": " : "", none);
    return buf;
}
