/* Reads what a report shows, and has its figures drawn. */
#include "runner/report.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/knob.h"
#include "core/memory.h"
#include "runner/database.h"
#include "runner/file.h"
#include "runner/plot.h"
#include "runner/query.h"
#include "runner/sql.h"

/* ---- tables of losses ---- */

static bool loss_add(struct report *report, sqlite3 *db, int64_t id, const char *split, struct error *err)
{
    struct loss_table *table = loss_table_read(db, id, report->metric, split, err);
    if (!table)
        return false;
    report->losses = memory_grow(report->losses, report->loss_count * sizeof *report->losses, report->loss_count + 1,
                                 sizeof *report->losses);
    report->losses[report->loss_count++] = table;
    return true;
}

static bool losses_read(struct report *report, sqlite3 *db, int64_t id, struct error *err)
{
    bool more, ok = loss_table_choose(db, id, NULL, NULL, &report->metric, &report->split, err) &&
                    loss_add(report, db, id, report->split, err);
    sqlite3_stmt *s = ok ? sql_prepare(db, query_text(QUERY_MEASURES), "i", err, id) : NULL;
    ok = s != NULL;
    while (ok && (ok = sql_step(s, &more, err)) && more)
        if (strcmp(sql_text(s, 1), report->metric) == 0 && strcmp(sql_text(s, 0), report->split) != 0 &&
            strcmp(sql_text(s, 0), "train") != 0)
            ok = loss_add(report, db, id, sql_text(s, 0), err);
    sqlite3_finalize(s);
    return ok;
}

/* ---- settings ---- */

struct configs {
    json_t **items; /* one a variant, in order */
    char **labels;
    size_t count;
};

static bool configs_read(struct configs *configs, sqlite3 *db, int64_t id, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db,
                                  "select v.label, (select r.config from member m join run r on r.id = m.run "
                                  "where m.variant = v.id order by m.seed limit 1) "
                                  "from variant v where v.experiment = ? order by v.position, v.id",
                                  "i", err, id);
    bool more, ok = s != NULL;
    while (ok && (ok = sql_step(s, &more, err)) && more) {
        json_t *config = json_loads(sql_text(s, 1), 0, NULL);
        size_t n = configs->count;
        configs->items = memory_grow(configs->items, n * sizeof *configs->items, n + 1, sizeof *configs->items);
        configs->labels = memory_grow(configs->labels, n * sizeof *configs->labels, n + 1, sizeof *configs->labels);
        configs->items[n] = config ? config : json_object();
        configs->labels[n] = memory_copy_text(sql_text(s, 0));
        configs->count++;
    }
    sqlite3_finalize(s);
    return ok;
}

static void configs_release(struct configs *configs)
{
    for (size_t i = 0; i < configs->count; i++) {
        json_decref(configs->items[i]);
        memory_free(configs->labels[i]);
    }
    memory_free(configs->items);
    memory_free(configs->labels);
}

static void value_cell(struct table *table, const json_t *value)
{
    char number[JSON_NUMBER_SIZE];
    if (!value)
        table_text(table, "default");
    else if (json_is_string(value))
        table_text(table, json_string_value(value));
    else if (json_is_real(value))
        table_text(table, json_number_format(json_real_value(value), number));
    else if (json_is_integer(value))
        table_textf(table, "%lld", (long long)json_integer_value(value));
    else
        table_text(table, json_is_true(value) ? "true" : "false");
}

static bool varies(const struct configs *configs, const char *name)
{
    for (size_t i = 1; i < configs->count; i++) {
        const json_t *a = json_object_get(configs->items[0], name), *b = json_object_get(configs->items[i], name);
        if (a != b && !json_equal(a, b))
            return true;
    }
    return false;
}

/* What all variants share, where it is not the default. */
static void common_note(struct table *table, const struct configs *configs)
{
    char text[2048] = "";
    size_t used = 0;
    for (size_t k = 0; k < knob_count && configs->count; k++) {
        char standard[KNOB_TEXT_SIZE], shown[KNOB_TEXT_SIZE];
        const json_t *value = json_object_get(configs->items[0], knobs[k].name);
        if (!value || varies(configs, knobs[k].name))
            continue;
        if (json_is_string(value))
            snprintf(shown, sizeof shown, "%s", json_string_value(value));
        else if (json_is_real(value))
            snprintf(shown, sizeof shown, "%.9g", json_real_value(value));
        else if (json_is_integer(value))
            snprintf(shown, sizeof shown, "%lld", (long long)json_integer_value(value));
        else
            snprintf(shown, sizeof shown, "%s", json_is_true(value) ? "true" : "false");
        if (strcmp(shown, knob_format(&knobs[k], knobs[k].standard, standard)) != 0 && used < sizeof text)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s%s=%s", used ? ", " : "", knobs[k].name, shown);
    }
    table_note(table, *text ? "Common to all, where it is not the default: %s." : "All else is at its default.%s",
               text);
}

static bool settings_read(struct report *report, sqlite3 *db, int64_t id, struct error *err)
{
    struct configs configs = {0};
    bool ok = configs_read(&configs, db, id, err);
    struct table *table = report->settings = table_create();
    table_caption(table, "Settings that differ");
    table_column(table, "variant", TABLE_LEFT);
    for (size_t k = 0; ok && k < knob_count; k++)
        if (varies(&configs, knobs[k].name))
            table_column(table, knobs[k].name, TABLE_LEFT);
    for (size_t i = 0; ok && i < configs.count; i++) {
        table_text(table, configs.labels[i]);
        for (size_t k = 0; k < knob_count; k++)
            if (varies(&configs, knobs[k].name))
                value_cell(table, json_object_get(configs.items[i], knobs[k].name));
    }
    common_note(table, &configs);
    configs_release(&configs);
    return ok;
}

/* ---- provenance ---- */

enum { FACT_HOST, FACT_CPU, FACT_BLAS, FACT_PRECISION, FACT_VERSION, FACT_COMMIT, FACT_CORPUS, FACT_TOKENIZER, FACTS };
static const char *const fact_names[FACTS] = {"host",    "processor", "BLAS kernels", "number format",
                                              "version", "commit",    "corpus hash",  "tokenizer hash"};
enum { FACT_COLUMN = 9 }; /* of QUERY_REPORT_RUNS */

struct provenance {
    char *facts[FACTS]; /* each different value, comma between */
    char *first, *last;
    double seconds, tokens, flops;
};

static void fact_add(char **list, const char *value)
{
    size_t size = strlen(value);
    if (size == 0)
        return;
    if (!*list) {
        *list = memory_copy_text(value);
        return;
    }
    for (const char *at = *list; (at = strstr(at, value)); at += size)
        if ((at == *list || at[-1] == ' ') && (!at[size] || at[size] == ';'))
            return;
    size_t old = strlen(*list), room = old + size + 3;
    char *longer = memory_alloc(room, 1);
    snprintf(longer, room, "%s; %s", *list, value);
    memory_free(*list);
    *list = longer;
}

static void run_row(struct table *runs, sqlite3_stmt *s)
{
    table_text(runs, sql_text(s, 0));
    table_textf(runs, "%" PRId64, (int64_t)sqlite3_column_int64(s, 1));
    table_text(runs, sql_text(s, 2));
    table_textf(runs, "%" PRId64 " of %" PRId64, (int64_t)sqlite3_column_int64(s, 5),
                (int64_t)sqlite3_column_int64(s, 4));
    table_number(runs, sql_number(s, 6), "%.1f");
    table_textf(runs, "%.12s", sql_text(s, 3));
}

static void run_take(struct provenance *p, sqlite3_stmt *s)
{
    for (int f = 0; f < FACTS; f++)
        fact_add(&p->facts[f], sql_text(s, FACT_COLUMN + f));
    const char *first = sql_text(s, 17), *last = sql_text(s, 18);
    if (*first && (!p->first || strcmp(first, p->first) < 0)) {
        memory_free(p->first);
        p->first = memory_copy_text(first);
    }
    if (*last && (!p->last || strcmp(last, p->last) > 0)) {
        memory_free(p->last);
        p->last = memory_copy_text(last);
    }
    if (sqlite3_column_type(s, 6) == SQLITE_NULL)
        return;
    p->seconds += sqlite3_column_double(s, 6);
    p->tokens += sqlite3_column_double(s, 7);
    p->flops += sqlite3_column_double(s, 7) * sqlite3_column_double(s, 8);
}

static struct table *provenance_table(const struct provenance *p, int64_t runs)
{
    struct table *table = table_create();
    table_caption(table, "Where the numbers come from");
    table_column(table, "what", TABLE_LEFT);
    table_column(table, "value", TABLE_LEFT);
    for (int f = 0; f < FACTS; f++) {
        table_text(table, fact_names[f]);
        table_text(table, p->facts[f] ? p->facts[f] : "-");
    }
    table_text(table, "first run started");
    table_text(table, p->first ? p->first : "-");
    table_text(table, "last run ended");
    table_text(table, p->last ? p->last : "-");
    table_text(table, "training in all");
    char tokens[32];
    table_textf(table, "%" PRId64 " runs, %s tokens, %.3g FLOPs, %.1f process-minutes", runs,
                format_count((int64_t)p->tokens, tokens), p->flops, p->seconds / 60);
    return table;
}

static bool runs_read(struct report *report, sqlite3 *db, int64_t id, struct error *err)
{
    static const char *const columns[] = {"variant", "seed", "state", "steps", "seconds", "key"};
    struct provenance p = {0};
    struct table *runs = report->runs = table_create();
    table_caption(runs, "Runs");
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
        table_column(runs, columns[c], c == 1 || c == 3 || c == 4 ? TABLE_RIGHT : TABLE_LEFT);
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_REPORT_RUNS), "i", err, id);
    bool more, ok = s != NULL;
    while (ok && (ok = sql_step(s, &more, err)) && more) {
        run_row(runs, s);
        run_take(&p, s);
    }
    sqlite3_finalize(s);
    report->provenance = provenance_table(&p, (int64_t)table_row_count(runs));
    for (int f = 0; f < FACTS; f++)
        memory_free(p.facts[f]);
    memory_free(p.first);
    memory_free(p.last);
    return ok;
}

/* ---- the whole ---- */

struct report *report_read(sqlite3 *db, const char *experiment, struct error *err)
{
    int64_t id = database_find_experiment(db, experiment, err);
    if (!id)
        return NULL;
    struct report *report = memory_alloc(1, sizeof *report);
    bool row = false;
    sqlite3_stmt *s = sql_prepare(db,
                                  "select name, description, question, path, choices, archived and file <> (select "
                                  "max(file) from experiment n where n.name = substr(e.name, 1, instr(e.name, '@') - 1)"
                                  ") from experiment e where id = ?",
                                  "i", err, id);
    bool ok = s && sql_step(s, &row, err);
    if (ok) {
        report->experiment = memory_copy_text(sql_text(s, 0));
        report->description = memory_copy_text(sql_text(s, 1));
        report->question = memory_copy_text(sql_text(s, 2));
        report->path = memory_copy_text(sql_text(s, 3));
        report->choices = memory_copy_text(sql_text(s, 4));
        report->changed = sqlite3_column_int(s, 5);
    }
    sqlite3_finalize(s);
    ok = ok && losses_read(report, db, id, err) && settings_read(report, db, id, err) && runs_read(report, db, id, err);
    if (!ok) {
        report_free(report);
        return NULL;
    }
    report->answer = report_answer(report->losses[0]);
    return report;
}

void report_free(struct report *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < report->loss_count; i++)
        loss_table_free(report->losses[i]);
    for (size_t i = 0; i < report->figure_count; i++)
        memory_free(report->figures[i].file);
    table_free(report->settings);
    table_free(report->provenance);
    table_free(report->runs);
    char *const texts[] = {report->experiment, report->description, report->question, report->path,
                           report->metric,     report->split,       report->answer,   report->choices};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        memory_free(texts[i]);
    memory_free(report->losses);
    memory_free(report->figures);
    memory_free(report);
}

/* ---- figures ---- */

struct gathering {
    struct report *report;
    const char *caption;
};

static void figure_take(void *context, const char *path)
{
    struct gathering *gathering = context;
    struct report *report = gathering->report;
    const char *slash = strrchr(path, '/');
    report->figures = memory_grow(report->figures, report->figure_count * sizeof *report->figures,
                                  report->figure_count + 1, sizeof *report->figures);
    report->figures[report->figure_count++] =
        (struct report_figure){path_join("figures", slash ? slash + 1 : path), gathering->caption};
}

bool report_draw(struct report *report, sqlite3 *db, const char *folder, struct error *err)
{
    const struct {
        const char *figure, *split, *metric, *x, *caption;
    } wanted[] = {
        {"differences", report->split, report->metric, NULL,
         "Difference to the baseline at the last step: each seed, mean and interval"},
        {"final", report->split, report->metric, NULL, "Value at the last step: each seed, mean and interval"},
        {"heat", report->split, report->metric, NULL, "Mean at the last step over the two knobs that vary"},
        {"curves", report->split, report->metric, "step", "Evaluations over training steps: mean, band and seeds"},
        {"curves", "train", "loss", "step", "Training loss over training steps: mean, band and seeds"},
        {"curves", report->split, report->metric, "seconds",
         "Evaluations over training time, as it was measured: what else the machine did is in it"},
        {"curves", report->split, report->metric, "flops", "Evaluations over the operations of training"},
        {"curves", "train", "grad_norm", "step", "Gradient norm before clipping, over training steps"},
    };
    char *figures = path_join(folder, "figures");
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof wanted / sizeof wanted[0]; i++) {
        struct gathering gathering = {report, wanted[i].caption};
        struct plot_request request = {.experiment = report->experiment,
                                       .out_folder = figures,
                                       .figure = wanted[i].figure,
                                       .formats = PLOT_SVG,
                                       .metric = wanted[i].metric,
                                       .split = wanted[i].split,
                                       .x = wanted[i].x,
                                       .file = figure_take,
                                       .context = &gathering};
        ok = plots_draw_open(db, &request, NULL, err) == PLOT_DRAWN;
    }
    memory_free(figures);
    return ok;
}
