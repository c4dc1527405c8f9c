/* Seeds that would find a difference. */
#include "runner/detect.h"

#include <math.h>

#include "core/memory.h"
#include "runner/json.h"
#include "runner/query.h"
#include "runner/sql.h"
#include "runner/statistics.h"
#include "runner/table.h"

size_t seeds_to_detect(double sd, double difference, double alpha)
{
    size_t n = 2;
    while (n <= SEEDS_LIMIT && !(minimum_detectable_effect(sd, n, alpha) <= difference))
        n++;
    return n <= SEEDS_LIMIT ? n : 0;
}

static void row_add(struct detection *d, const char *variant, size_t pairs, double sd)
{
    d->rows = memory_grow(d->rows, d->row_count * sizeof *d->rows, d->row_count + 1, sizeof *d->rows);
    d->rows[d->row_count++] = (struct detect_row){
        memory_copy_text(variant), pairs, sd, seeds_to_detect(sd, d->difference, d->alpha / (double)d->comparisons)};
}

/* name: NULL for every experiment. */
static bool rows_read(struct detection *d, sqlite3 *db, const char *name, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_DETECTABLE), "tttt", err, d->split, d->metric, name, name);
    bool more, ok = s != NULL;
    while (ok && (ok = sql_step(s, &more, err)) && more) {
        size_t pairs = (size_t)sqlite3_column_int64(s, 2);
        double unit = minimum_detectable_effect(1, pairs, sqlite3_column_double(s, 4));
        char label[600];
        snprintf(label, sizeof label, "%.200s%s%.300s", name ? "" : sql_text(s, 0), name ? "" : "/", sql_text(s, 1));
        row_add(d, label, pairs, sqlite3_column_double(s, 3) / unit);
    }
    sqlite3_finalize(s);
    return ok;
}

/* Each sd by its degrees of freedom. */
static void pooled_add(struct detection *d)
{
    double squares = 0;
    size_t degrees = 0, pairs = 0;
    for (size_t i = 0; i < d->row_count; i++) {
        squares += (double)(d->rows[i].pairs - 1) * d->rows[i].sd * d->rows[i].sd;
        degrees += d->rows[i].pairs - 1;
        pairs += d->rows[i].pairs;
    }
    if (d->row_count > 1)
        row_add(d, "all of them, pooled", pairs, sqrt(squares / (double)degrees));
}

bool detection_read(struct detection *detection, sqlite3 *db, const struct experiment *experiment, double difference,
                    struct error *err)
{
    size_t variants = experiment->variant_count;
    *detection = (struct detection){.difference = difference,
                                    .alpha = experiment->compare.alpha,
                                    .comparisons = variants > 1 ? variants - 1 : 1,
                                    .metric = memory_copy_text(experiment->compare.metric),
                                    .split = memory_copy_text(experiment->compare.split)};
    bool ok = !db || rows_read(detection, db, experiment->name, err);
    if (ok && db && detection->row_count == 0) {
        detection->elsewhere = true;
        ok = rows_read(detection, db, NULL, err);
    }
    pooled_add(detection);
    return ok;
}

void detection_release(struct detection *detection)
{
    for (size_t i = 0; i < detection->row_count; i++)
        memory_free(detection->rows[i].variant);
    memory_free(detection->rows);
    memory_free(detection->metric);
    memory_free(detection->split);
    *detection = (struct detection){0};
}

void detection_write(const struct detection *detection, FILE *out)
{
    const struct detection *d = detection;
    if (d->row_count == 0) {
        fprintf(out,
                "\nSeeds for a difference of %g in %s on %s: unknown, no two pairs of seeds have finished yet: run two "
                "seeds or more first\n",
                d->difference, d->metric, d->split);
        return;
    }
    struct table *table = table_create();
    table_caption(table,
                  "Seeds that find a difference of %g in %s on %s with 80 %% power, alpha %g over %zu comparison%s",
                  d->difference, d->metric, d->split, d->alpha, d->comparisons, d->comparisons == 1 ? "" : "s");
    if (d->elsewhere)
        table_caption(table, "From other experiments: of this one no two pairs of seeds have finished");
    table_column(table, "variant", TABLE_LEFT);
    table_column(table, "pairs so far", TABLE_RIGHT);
    table_column(table, "sd of differences", TABLE_RIGHT);
    table_column(table, "seeds", TABLE_LEFT);
    for (size_t i = 0; i < d->row_count; i++) {
        table_text(table, d->rows[i].variant);
        table_integer(table, (int64_t)d->rows[i].pairs);
        table_number(table, d->rows[i].sd, "%.4f");
        if (d->rows[i].seeds)
            table_textf(table, "%zu", d->rows[i].seeds);
        else
            table_textf(table, "more than %d", SEEDS_LIMIT);
    }
    table_note(
        table,
        "A spread known from few pairs is a rough guess: of 3 pairs, one sample in twenty shows less than a quarter of "
        "the true one.");
    fputc('\n', out);
    table_write(table, TABLE_TEXT, 100, out);
    table_free(table);
}

json_t *detection_json(const struct detection *detection)
{
    json_t *root = json_object(), *rows = json_array();
    json_put(root, "difference", json_from_double(detection->difference));
    json_put(root, "metric", json_from_text(detection->metric));
    json_put(root, "split", json_from_text(detection->split));
    json_put(root, "alpha", json_from_double(detection->alpha));
    json_put(root, "comparisons", json_integer((json_int_t)detection->comparisons));
    json_put(root, "from_other_experiments", json_boolean(detection->elsewhere));
    for (size_t i = 0; i < detection->row_count; i++) {
        const struct detect_row *row = &detection->rows[i];
        json_t *item = json_object();
        json_put(item, "variant", json_from_text(row->variant));
        json_put(item, "pairs", json_integer((json_int_t)row->pairs));
        json_put(item, "sd", json_from_double(row->sd));
        json_put(item, "seeds", row->seeds ? json_integer((json_int_t)row->seeds) : json_null());
        json_push(rows, item);
    }
    json_put(root, "rows", rows);
    return root;
}
