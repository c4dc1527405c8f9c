/* The comparison table of an experiment, read from its summaries. */
#include "runner/loss_table.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "runner/problem.h"
#include "runner/query.h"
#include "runner/sql.h"
#include "runner/text_stream.h"
#include "runner/untrained.h"

#define PARAMETERS_APART 0.02

/* ---- which metric, which split ---- */

struct measures {
    char **splits, **metrics;
    size_t count;
};

static void texts_free(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memory_free(texts[i]);
    memory_free(texts);
}

static char **texts_add(char **texts, size_t count, char *text)
{
    texts = memory_grow(texts, count * sizeof *texts, count + 1, sizeof *texts);
    texts[count] = text;
    return texts;
}

static bool measures_read(sqlite3 *db, int64_t experiment, struct measures *measures, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_MEASURES), "i", err, experiment);
    bool row, ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row) {
        measures->splits = texts_add(measures->splits, measures->count, memory_copy_text(sql_text(s, 0)));
        measures->metrics = texts_add(measures->metrics, measures->count, memory_copy_text(sql_text(s, 1)));
        measures->count++;
    }
    sqlite3_finalize(s);
    return ok;
}

static bool measures_have(const struct measures *m, const char *split, const char *metric)
{
    for (size_t i = 0; i < m->count; i++)
        if ((!split || strcmp(m->splits[i], split) == 0) && (!metric || strcmp(m->metrics[i], metric) == 0))
            return true;
    return false;
}

/* "loss (train), bits_per_byte (validation), ..." */
static void measures_list(const struct measures *m, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < m->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s (%s)", i ? ", " : "", m->metrics[i], m->splits[i]);
}

static bool measures_refuse(const struct measures *m, const char *what, const char *word, char **names,
                            struct error *err)
{
    char list[600];
    measures_list(m, list, sizeof list);
    const char *nearest = suggest_nearest(word, (const char *const *)names, m->count);
    return error_set(err, "there is no %s '%.100s' here%s%s%s: this experiment has %s", what, word,
                     nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'" : "", list);
}

bool loss_table_choose(sqlite3 *db, int64_t experiment, const char *metric, const char *split, char **chosen_metric,
                       char **chosen_split, struct error *err)
{
    struct measures m = {0};
    bool row = false;
    *chosen_metric = *chosen_split = NULL;
    sqlite3_stmt *s = sql_prepare(db, "select metric, split from experiment where id = ?", "i", err, experiment);
    bool ok = s && sql_step(s, &row, err) && measures_read(db, experiment, &m, err);
    if (ok) {
        const char *file_split = split ? split : sql_text(s, 1);
        const char *file_metric = metric ? metric : strcmp(file_split, "train") == 0 ? "loss" : sql_text(s, 0);
        *chosen_metric = memory_copy_text(file_metric);
        *chosen_split = memory_copy_text(file_split);
        bool evaluated = measures_have(&m, NULL, "bits_per_byte"); /* before that, what the file names may yet come */
        if (split && !measures_have(&m, split, NULL))
            ok = measures_refuse(&m, "split", split, m.splits, err);
        else if (metric && !measures_have(&m, NULL, metric))
            ok = measures_refuse(&m, "metric", metric, m.metrics, err);
        else if ((evaluated || metric || split) && !measures_have(&m, file_split, file_metric)) {
            char list[600];
            measures_list(&m, list, sizeof list);
            ok = error_set(err, "there is no metric '%.100s' in split '%.100s': this experiment has %s", file_metric,
                           file_split, list);
        }
    }
    sqlite3_finalize(s);
    texts_free(m.splits, m.count);
    texts_free(m.metrics, m.count);
    return ok;
}

/* ---- reading ---- */

/* A run as marks compare it: with the baseline's run of the same seed. */
struct member {
    int64_t seed, parameters, tokens;
    bool finished;
    char *tokenizer, *host, *kernels, *precision;
};

struct members {
    struct member *items;
    size_t count;
    int64_t finished, diverged;
};

static void members_release(struct members *members)
{
    for (size_t i = 0; i < members->count; i++) {
        struct member *m = &members->items[i];
        memory_free(m->tokenizer);
        memory_free(m->host);
        memory_free(m->kernels);
        memory_free(m->precision);
    }
    memory_free(members->items);
}

static void trouble_add(struct loss_table *table, const struct loss_row *row, int64_t seed, const char *state,
                        const char *reason)
{
    char text[1600];
    snprintf(text, sizeof text, "%.200s, seed %" PRId64 ": %s%s%.1200s", row->variant, seed, state, *reason ? ": " : "",
             reason);
    table->troubles = texts_add(table->troubles, table->trouble_count++, memory_copy_text(text));
}

static void state_count(struct loss_table *table, struct loss_row *row, int64_t seed, const char *state,
                        const char *reason)
{
    row->n_failed += strcmp(state, "failed") == 0;
    row->n_interrupted += strcmp(state, "interrupted") == 0;
    row->n_running += strcmp(state, "running") == 0;
    row->n_queued += strcmp(state, "queued") == 0;
    if (strcmp(state, "failed") == 0 || strcmp(state, "diverged") == 0)
        trouble_add(table, row, seed, state, reason);
}

static bool members_read(sqlite3 *db, int64_t variant, struct loss_table *table, struct loss_row *row,
                         struct members *members, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_TABLE_RUNS), "i", err, variant);
    bool more, ok = s != NULL;
    while (ok && (ok = sql_step(s, &more, err)) && more) {
        members->items = memory_grow(members->items, members->count * sizeof *members->items, members->count + 1,
                                     sizeof *members->items);
        struct member *m = &members->items[members->count++];
        *m = (struct member){
            .seed = sqlite3_column_int64(s, 0),
            .finished = strcmp(sql_text(s, 1), "finished") == 0,
            .parameters = sqlite3_column_int64(s, 3),
            .tokenizer = memory_copy_text(sql_text(s, 4)),
            .host = memory_copy_text(sql_text(s, 5)),
            .kernels = memory_copy_text(sql_text(s, 6)),
            .precision = memory_copy_text(sql_text(s, 7)),
            .tokens = sqlite3_column_int64(s, 8),
        };
        row->n_planned++;
        row->parameters = m->parameters;
        if (m->finished)
            row->tokens = m->tokens;
        members->finished += m->finished;
        members->diverged += strcmp(sql_text(s, 1), "diverged") == 0;
        row->marks |= (unsigned)sqlite3_column_int(s, 9) << MARK_CPU_CHANGED;
        state_count(table, row, m->seed, sql_text(s, 1), sql_text(s, 2));
    }
    sqlite3_finalize(s);
    return ok;
}

static unsigned marks_of(const struct members *a, const struct members *b)
{
    unsigned marks = 0;
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++) {
            const struct member *x = &a->items[i], *y = &b->items[j];
            if (fabs((double)(x->parameters - y->parameters)) > PARAMETERS_APART * (double)y->parameters)
                marks |= 1u << MARK_PARAMETERS;
            if (strcmp(x->tokenizer, y->tokenizer) != 0)
                marks |= 1u << MARK_TOKENIZER;
            if (x->seed != y->seed || !x->finished || !y->finished)
                continue;
            marks |= (unsigned)(x->tokens != y->tokens) << MARK_TOKENS;
            marks |= (unsigned)(strcmp(x->host, y->host) != 0) << MARK_HOST;
            marks |= (unsigned)(strcmp(x->kernels, y->kernels) != 0) << MARK_KERNELS;
            marks |= (unsigned)(strcmp(x->precision, y->precision) != 0) << MARK_PRECISION;
        }
    return marks;
}

/* [["model.norm","rmsnorm"],..] as "norm=rmsnorm, .."; the groups model and training go without saying. */
static char *changes_text(const char *json)
{
    size_t i;
    json_t *changes = json_loads(json, 0, NULL), *change;
    struct text_stream text;
    text_stream_open(&text);
    json_array_foreach(changes, i, change)
    {
        const char *name = json_string_value(json_array_get(change, 0));
        const char *value = json_string_value(json_array_get(change, 1));
        if (!name || !value)
            continue;
        if (strncmp(name, "model.", 6) == 0)
            name += 6;
        else if (strncmp(name, "training.", 9) == 0)
            name += 9;
        fprintf(text.out, "%s%s=%s", i ? ", " : "", name, value);
    }
    json_decref(changes);
    return text_stream_take(&text);
}

static void row_fill(struct loss_row *row, sqlite3_stmt *s)
{
    *row = (struct loss_row){
        .id = sqlite3_column_int64(s, 0),
        .variant = memory_copy_text(sql_text(s, 1)),
        .baseline = sqlite3_column_int(s, 2),
        .changes = changes_text(sql_text(s, 3)),
        .n = sqlite3_column_int64(s, 4),
        .n_diverged = sqlite3_column_int64(s, 6),
        .mean = sql_number(s, 7),
        .sd = sql_number(s, 8),
        .spread = sql_number(s, 9),
        .delta = sql_number(s, 10),
        .ci_low = sql_number(s, 11),
        .ci_high = sql_number(s, 12),
        .p = sql_number(s, 13),
        .p_holm = sql_number(s, 14),
        .mde = sql_number(s, 15),
    };
    if (!row->baseline)
        row->verdict = memory_copy_text(*sql_text(s, 16) ? sql_text(s, 16) : "n/a");
}

/* Finished runs that are neither among those of the mean nor ended on a value that is not finite. summarised: row has
 * them counted; a metric that no run has is not summarised. */
static int64_t unmeasured(const struct members *members, const struct loss_row *row, bool summarised)
{
    int64_t measured = summarised ? row->n + row->n_diverged - members->diverged : 0;
    return measured < members->finished ? members->finished - measured : 0;
}

static bool rows_read(sqlite3 *db, int64_t experiment, struct loss_table *table, struct error *err)
{
    struct members baseline = {0};
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_TABLE), "tttti", err, table->split, table->metric, table->split,
                                  table->metric, experiment);
    bool more, ok = s != NULL;
    while (ok && (ok = sql_step(s, &more, err)) && more) {
        struct members members = {0};
        table->rows =
            memory_grow(table->rows, table->row_count * sizeof *table->rows, table->row_count + 1, sizeof *table->rows);
        struct loss_row *row = &table->rows[table->row_count++];
        row_fill(row, s);
        ok = members_read(db, sqlite3_column_int64(s, 0), table, row, &members, err);
        row->n_unmeasured = unmeasured(&members, row, sqlite3_column_type(s, 4) != SQLITE_NULL);
        row->marks |= marks_of(&members, &baseline);
        if (row->baseline) {
            table->baseline_parameters = row->parameters;
            members_release(&baseline);
            baseline = members;
        } else {
            members_release(&members);
        }
    }
    sqlite3_finalize(s);
    members_release(&baseline);
    return ok;
}

static bool leaks_mark(sqlite3 *db, int64_t experiment, struct loss_table *table, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_LEAKS), "i", err, experiment);
    bool more, ok = s != NULL;
    while (ok && (ok = sql_step(s, &more, err)) && more)
        for (size_t r = 0; r < table->row_count; r++)
            if (table->rows[r].id == sqlite3_column_int64(s, 0))
                table->rows[r].marks |= 1u << MARK_LEAK;
    sqlite3_finalize(s);
    return ok;
}

struct loss_table *loss_table_read(sqlite3 *db, int64_t experiment, const char *metric, const char *split,
                                   struct error *err)
{
    struct loss_table *table = memory_alloc(1, sizeof *table);
    table->metric = memory_copy_text(metric);
    table->split = memory_copy_text(split);
    bool row = false;
    sqlite3_stmt *s = sql_prepare(db, "select name, margin, alpha from experiment where id = ?", "i", err, experiment);
    bool ok = s && sql_step(s, &row, err);
    if (ok) {
        table->experiment = memory_copy_text(sql_text(s, 0));
        table->margin = sqlite3_column_double(s, 1);
        table->alpha = sqlite3_column_double(s, 2);
    }
    sqlite3_finalize(s);
    ok = ok && rows_read(db, experiment, table, err) && untrained_mark(db, experiment, table, err) &&
         leaks_mark(db, experiment, table, err);
    if (!ok) {
        loss_table_free(table);
        return NULL;
    }
    return table;
}

void loss_table_free(struct loss_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->row_count; i++) {
        memory_free(table->rows[i].variant);
        memory_free(table->rows[i].changes);
        memory_free(table->rows[i].verdict);
    }
    memory_free(table->rows);
    texts_free(table->troubles, table->trouble_count);
    memory_free(table->experiment);
    memory_free(table->metric);
    memory_free(table->split);
    memory_free(table);
}
