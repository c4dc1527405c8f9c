/* Which figures an experiment has, and how each becomes files: query, data, script, then gnuplot.
 *
 * To add a figure: (1) plots/<kind>.sql with the columns of plot_data.h; (2) plots/<kind>.gp and a function that writes
 * its settings and data; (3) a row in `kinds`. */
#include "runner/plot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/metric.h"
#include "runner/database.h"
#include "runner/file.h"
#include "runner/gnuplot.h"
#include "runner/plot_figure.h"
#include "runner/plot_text.h"
#include "runner/problem.h"
#include "runner/sql.h"

extern const char plots_embedded[]; /* name, 0, text, 0, ...; an empty name ends it */

static const struct kind {
    const char *name;
    const char *script;            /* plots/<script>.gp */
    const char *prefix, *subtitle; /* before and after the value's name */
    bool training;                 /* also of the training split */
    bool optional;                 /* not made when its query gives no row */
    bool linear;                   /* its values may be below 0: never on a logarithmic axis */
    void (*write)(struct figure *figure, FILE *data, FILE *script);
} kinds[] = {
    {"curves", "curves", "", "", true, false, false, figure_write_curves},
    {"final", "final", "", " at the last step", false, false, false, figure_write_final},
    {"differences", "final", "difference in ", " at the last step, minus the baseline's", false, true, true,
     figure_write_differences},
    {"heat", "heat", "", " at the last step", false, true, true, figure_write_heat},
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

/* What can be drawn: the metrics of evaluations, and what steps log. */
#define METRIC_QUANTITY(name, count, value, better, label, unit)                                                       \
    {#name, METRIC_##name == METRIC_loss, true, label, unit},
static const struct quantity {
    const char *name;
    bool training, evaluation;
    const char *label, *unit;
} quantities[] = {
    /* clang-format off */
    METRICS(METRIC_QUANTITY)
    /* clang-format on */
    {"grad_norm", true, false, "gradient norm", "before clipping"},
    {"learning_rate", true, false, "learning rate", NULL},
};
enum { QUANTITY_COUNT = sizeof quantities / sizeof *quantities };

static const struct format {
    enum plot_format flag;
    const char *extension;
} formats[] = {{PLOT_PNG, "png"}, {PLOT_SVG, "svg"}, {PLOT_PDF, "pdf"}};
enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

enum { SPLITS = 64, STAMP_DIGITS = 14, STALE_SECONDS = 3600 };

/* What one call of plots_draw works with. */
struct drawing {
    sqlite3 *db;
    const struct plot_request *request;
    unsigned formats;
    char *folder;
    char *title;
    struct comparison_rules rules;
    char stamp[STAMP_DIGITS + 1]; /* when the newest run ended, YYYYMMDDHHMMSS */
    char *splits[SPLITS];
    size_t split_count;
    size_t drawn, failed;
    bool stopped; /* gnuplot is missing or hangs: not tried again */
    struct plot_fonts *fonts;
    bool replaced; /* already told that fonts lack characters */
};

static const char *embedded_find(const char *kind, const char *extension)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s.%s", kind, extension);
    for (const char *name = plots_embedded; *name;) {
        const char *text = name + strlen(name) + 1;
        if (strcmp(name, wanted) == 0)
            return text;
        name = text + strlen(text) + 1;
    }
    return NULL;
}

static const struct quantity *quantity_find(const char *name)
{
    for (size_t i = 0; i < QUANTITY_COUNT; i++)
        if (strcmp(quantities[i].name, name) == 0)
            return &quantities[i];
    return NULL;
}

static bool split_trains(const char *split)
{
    return strcmp(split, "train") == 0;
}

/* First column of a query with at most one bound text, up to `most` rows. Returns the count; -1 and err on failure. */
static int texts_query(sqlite3 *db, const char *sql, const char *bound, char **texts, int most, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int count = 0, result = SQLITE_ERROR;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        (!bound || sqlite3_bind_text(statement, 1, bound, -1, SQLITE_STATIC) == SQLITE_OK))
        while (count < most && (result = sqlite3_step(statement)) == SQLITE_ROW) {
            const char *text = (const char *)sqlite3_column_text(statement, 0);
            texts[count++] = memory_copy_text(text ? text : "");
        }
    if (result != SQLITE_DONE && result != SQLITE_ROW) {
        error_set(err, "results.db: %s", sqlite3_errmsg(db));
        while (count > 0)
            memory_free(texts[--count]);
        count = -1;
    }
    sqlite3_finalize(statement);
    return count;
}

static void texts_free(char **texts, int count)
{
    for (int i = 0; i < count; i++)
        memory_free(texts[i]);
}

static void texts_list(char *buf, size_t size, char *const *texts, int count)
{
    size_t used = 0;
    buf[0] = 0;
    for (int i = 0; i < count && used < size - 1; i++) {
        int written = snprintf(buf + used, size - used, "%s%s", i ? ", " : "", texts[i]);
        used += written > 0 ? (size_t)written : 0;
    }
}

/* The experiment exists; its title is its description, or its name. */
static enum plot_result experiment_check(struct drawing *drawing, struct error *err)
{
    enum { MOST = 1000 };
    const char *wanted = drawing->request->experiment;
    char *found[1] = {0};
    int count =
        texts_query(drawing->db, "select description from experiments where experiment = ?", wanted, found, 1, err);
    if (count > 0)
        drawing->title = memory_copy_text(*found[0] ? found[0] : wanted);
    texts_free(found, count);
    if (count != 0)
        return count > 0 ? PLOT_DRAWN : PLOT_FAILED;
    char **names = memory_alloc(MOST, sizeof *names);
    count = texts_query(drawing->db, "select experiment from experiments order by 1", NULL, names, MOST, err);
    if (count >= 0) {
        const char *near = suggest_nearest(wanted, (const char *const *)names, (size_t)count);
        char list[512];
        texts_list(list, sizeof list, names, count);
        if (count == 0)
            error_set(err, "no experiment '%s': the database has none", wanted);
        else if (near)
            error_set(err, "no experiment '%s': did you mean '%s'? The database has %s", wanted, near, list);
        else
            error_set(err, "no experiment '%s': the database has %s", wanted, list);
    }
    texts_free(names, count);
    memory_free(names);
    return count < 0 ? PLOT_FAILED : PLOT_REFUSED;
}

/* The margin and alpha of its verdicts, and the time of its newest run. */
static bool experiment_read(struct drawing *drawing, struct error *err)
{
    static const char sql[] = "select margin, alpha, (select max(coalesce(ended_at, started_at)) from runs "
                              "where experiment = ?1) from experiments where experiment = ?1";
    bool row = false;
    sqlite3_stmt *s = sql_prepare(drawing->db, sql, "t", err, drawing->request->experiment);
    bool ok = s && sql_step(s, &row, err);
    if (ok && row) {
        drawing->rules =
            (struct comparison_rules){.margin = sqlite3_column_double(s, 0), .alpha = sqlite3_column_double(s, 1)};
        size_t digits = 0;
        for (const char *c = sql_text(s, 2); *c && digits < STAMP_DIGITS; c++)
            if (*c >= '0' && *c <= '9')
                drawing->stamp[digits++] = *c;
        if (digits < STAMP_DIGITS)
            snprintf(drawing->stamp, sizeof drawing->stamp, "19700101000000");
    }
    sqlite3_finalize(s);
    return ok;
}

static bool splits_read(struct drawing *drawing, struct error *err)
{
    int count =
        texts_query(drawing->db,
                    "select split from (select distinct split from curves where experiment = ?1 and split <> 'train' "
                    "and metric = 'loss' union all select 'train' where exists (select 1 from curves "
                    "where experiment = ?1 and split = 'train')) "
                    "order by split = 'train', split <> 'validation', split",
                    drawing->request->experiment, drawing->splits, SPLITS, err);
    if (count < 0)
        return false;
    drawing->split_count = (size_t)count;
    if (count == 0) { /* nothing logged yet: figures that say so */
        drawing->splits[drawing->split_count++] = memory_copy_text("validation");
        drawing->splits[drawing->split_count++] = memory_copy_text("train");
    }
    return true;
}

/* Split, metric and x as asked for exist. */
static enum plot_result request_check(const struct drawing *drawing, struct error *err)
{
    const struct plot_request *request = drawing->request;
    char list[512];
    if (request->x && strcmp(request->x, "step") != 0 && strcmp(request->x, "tokens") != 0 &&
        strcmp(request->x, "seconds") != 0 && strcmp(request->x, "flops") != 0) {
        error_set(err, "no axis '%s': step, tokens, seconds or flops", request->x);
        return PLOT_REFUSED;
    }
    if (request->metric && !quantity_find(request->metric)) {
        char *names[QUANTITY_COUNT];
        for (size_t i = 0; i < QUANTITY_COUNT; i++)
            names[i] = (char *)(uintptr_t)quantities[i].name;
        texts_list(list, sizeof list, names, QUANTITY_COUNT);
        error_set(err, "no metric '%s': it is one of %s", request->metric, list);
        return PLOT_REFUSED;
    }
    if (!request->split)
        return PLOT_DRAWN;
    for (size_t i = 0; i < drawing->split_count; i++)
        if (strcmp(drawing->splits[i], request->split) == 0) {
            const struct quantity *quantity = request->metric ? quantity_find(request->metric) : NULL;
            bool training = split_trains(request->split);
            if (!quantity || (training ? quantity->training : quantity->evaluation))
                return PLOT_DRAWN;
            error_set(err, "metric '%s' is not logged for split '%s': %s", quantity->name, request->split,
                      training ? "loss, grad_norm or learning_rate" : metric_list(" or ", list, sizeof list));
            return PLOT_REFUSED;
        }
    texts_list(list, sizeof list, drawing->splits, (int)drawing->split_count);
    error_set(err, "no split '%s' in experiment '%s': it has %s", request->split, request->experiment, list);
    return PLOT_REFUSED;
}

/* "validation loss (bits per byte)", "validation loss on code (bits per byte)", "training loss (nats per token)". */
static char *value_label_make(const struct quantity *quantity, const char *split, const char *prefix)
{
    char text[512];
    char *kind = plot_text_clean(split);
    const char *before = !quantity->evaluation ? "" : split_trains(split) ? "training " : "validation ";
    bool names_kind = quantity->evaluation && !split_trains(split) && strcmp(split, "validation") != 0;
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s%s", prefix, before, quantity->label, names_kind ? " on " : "",
             names_kind ? kind : "", quantity->unit ? " (" : "", quantity->unit ? quantity->unit : "",
             quantity->unit ? ")" : "");
    memory_free(kind);
    return plot_text_clean(text);
}

/* What is not a default is part of the name, so that a second drawing does not replace the first. */
static char *figure_name_make(const struct figure *figure, const struct kind *kind, const char *split)
{
    char text[512], smooth[32] = "";
    bool other_metric = strcmp(figure->metric, split_trains(split) ? "loss" : "bits_per_byte") != 0;
    bool other_x = kind->training && strcmp(figure->x, "step") != 0;
    if (figure->smooth > 1)
        snprintf(smooth, sizeof smooth, "-smooth%lld", (long long)figure->smooth);
    snprintf(text, sizeof text, "%s-%s%s%s%s%s%s%s", kind->name, split, other_metric ? "-" : "",
             other_metric ? figure->metric : "", other_x ? "-by-" : "", other_x ? figure->x : "", smooth,
             figure->logarithmic ? "-log" : "");
    return file_name_make(text, 160);
}

static struct figure figure_make(struct drawing *drawing, const struct kind *kind, const char *split,
                                 const struct quantity *quantity)
{
    const struct plot_request *request = drawing->request;
    struct figure figure = {.metric = quantity->name,
                            .x = request->x ? request->x : "step",
                            .logarithmic = request->logarithmic && !kind->linear,
                            .rules = drawing->rules,
                            .smooth = split_trains(split) ? request->smooth : 0,
                            .fonts = &drawing->fonts,
                            .experiment = plot_text_clean(request->experiment),
                            .title = plot_text_clean(drawing->title),
                            .value_label = value_label_make(quantity, split, kind->prefix)};
    figure.rules.higher = metric_higher_is_better(quantity->name);
    size_t size = strlen(figure.experiment) + strlen(figure.value_label) + 64;
    figure.subtitle = memory_alloc(size, 1);
    bool named = strcmp(figure.title, figure.experiment) == 0;
    snprintf(figure.subtitle, size, "%s%s%s%s", named ? "" : figure.experiment, named ? "" : ": ", figure.value_label,
             kind->subtitle);
    figure.name = figure_name_make(&figure, kind, split);
    return figure;
}

static void figure_release(struct figure *figure)
{
    memory_free(figure->experiment);
    memory_free(figure->title);
    memory_free(figure->value_label);
    memory_free(figure->subtitle);
    memory_free(figure->name);
    plot_data_release(&figure->data);
}

static char *file_path(const char *folder, const char *prefix, const char *name, const char *extension)
{
    char file[256];
    snprintf(file, sizeof file, "%s%s.%s", prefix, name, extension);
    return path_join(folder, file);
}

static bool figure_write_files(const struct drawing *drawing, const struct kind *kind, struct figure *figure,
                               struct error *err)
{
    char *data_path = file_path(drawing->folder, "", figure->name, "tsv");
    char *script_path = file_path(drawing->folder, "", figure->name, "gp");
    char *query_path = file_path(drawing->folder, "", figure->name, "sql");
    struct file_writer data = {0}, script = {0};
    bool ok = file_write(query_path, figure->data.sql, strlen(figure->data.sql), err) &&
              file_writer_open(&data, data_path, err) && file_writer_open(&script, script_path, err);
    if (ok) {
        kind->write(figure, data.stream, script.stream);
        fprintf(script.stream, "%s\n%s", embedded_find("style", "gp"), embedded_find(kind->script, "gp"));
        ok = file_writer_commit(&data, err) && file_writer_commit(&script, err);
    }
    file_writer_abandon(&data);
    file_writer_abandon(&script);
    memory_free(data_path);
    memory_free(script_path);
    memory_free(query_path);
    return ok;
}

/* Moves what gnuplot made to its name when it is whole, else removes it. */
static bool output_take(const struct drawing *drawing, const char *prefix, const char *name, const char *extension,
                        bool wanted, struct error *err)
{
    char *made = file_path(drawing->folder, prefix, name, extension);
    char *final = file_path(drawing->folder, "", name, extension);
    bool ok = wanted && gnuplot_output_whole(made, extension, err) &&
              (strcmp(extension, "pdf") != 0 || gnuplot_pdf_stamp(made, drawing->stamp, err));
    if (ok && rename(made, final) != 0)
        ok = error_set(err, "'%s' cannot be put in place: %s", final, strerror(errno));
    if (ok && drawing->request->file)
        drawing->request->file(drawing->request->context, final);
    if (!ok)
        unlink(made);
    memory_free(made);
    memory_free(final);
    return ok;
}

static bool figure_plot(struct drawing *drawing, const struct figure *figure, struct error *err)
{
    char prefix[32], setup[128], script[256];
    snprintf(prefix, sizeof prefix, ".tmp-%ld-", (long)getpid());
    size_t used = (size_t)snprintf(setup, sizeof setup, "prefix = '%s'; formats = '", prefix);
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (drawing->formats & formats[i].flag)
            used += (size_t)snprintf(setup + used, sizeof setup - used, " %s", formats[i].extension);
    snprintf(setup + used, sizeof setup - used, "'");
    snprintf(script, sizeof script, "%s.gp", figure->name);
    double timeout = drawing->request->timeout > 0 ? drawing->request->timeout : 60;
    enum gnuplot_result result = gnuplot_run(drawing->folder, setup, script, timeout, err);
    drawing->stopped = result == GNUPLOT_MISSING || result == GNUPLOT_HUNG;
    bool ok = result == GNUPLOT_DONE;
    struct error problem = {""};
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (drawing->formats & formats[i].flag)
            ok = output_take(drawing, prefix, figure->name, formats[i].extension, result == GNUPLOT_DONE,
                             ok ? err : &problem) &&
                 ok;
    return ok;
}

static void replaced_note(struct drawing *drawing, const struct figure *figure)
{
    const struct plot_request *request = drawing->request;
    if (figure->replaced && !drawing->replaced && request->note)
        request->note(request->context, "no font of this machine has some characters of these labels: PNG and PDF show "
                                        "\xef\xbf\xbd for them, SVG has them as written");
    drawing->replaced = drawing->replaced || figure->replaced;
}

static bool figure_make_files(struct drawing *drawing, const struct kind *kind, struct figure *figure,
                              struct error *err)
{
    bool ok = figure_write_files(drawing, kind, figure, err);
    replaced_note(drawing, figure);
    if (!ok || drawing->stopped)
        return false;
    if (figure_plot(drawing, figure, err))
        return true;
    struct error reason = err ? *err : (struct error){""};
    return error_set(err,
                     "figure %s was not drawn: %s; its data and script are in '%s': redraw with `runner plot`, or "
                     "`gnuplot %s.gp` in that folder",
                     figure->name, reason.text, drawing->folder, figure->name);
}

static void figure_draw(struct drawing *drawing, const struct kind *kind, const char *split,
                        const struct quantity *quantity, struct error *err)
{
    struct error problem = {""};
    struct figure figure = figure_make(drawing, kind, split, quantity);
    struct plot_query query = {.sql = embedded_find(kind->name, "sql"),
                               .experiment = drawing->request->experiment,
                               .split = split,
                               .metric = quantity->name,
                               .x = figure.x,
                               .logarithmic = figure.logarithmic};
    err = drawing->failed ? &problem : err;
    if (!plot_data_read(drawing->db, &query, &figure.data, err))
        drawing->failed++;
    else if (kind->optional && figure.data.variant_count == 0)
        ; /* this experiment has no such figure */
    else if (figure_make_files(drawing, kind, &figure, err))
        drawing->drawn++;
    else
        drawing->failed++;
    figure_release(&figure);
}

/* Every figure that was asked for; one that fails does not keep the others from being drawn. */
static enum plot_result figures_draw(struct drawing *drawing, struct error *err)
{
    static const char *const of_training[] = {"loss", "grad_norm"}, *const of_evaluation[] = {"bits_per_byte"};
    const struct plot_request *request = drawing->request;
    for (size_t s = 0; s < drawing->split_count; s++) {
        const char *split = drawing->splits[s];
        bool training = split_trains(split);
        const char *const *names = request->metric ? &request->metric : training ? of_training : of_evaluation;
        size_t count = !request->metric && training ? 2 : 1;
        for (size_t m = 0; m < count; m++) {
            const struct quantity *quantity = quantity_find(names[m]);
            if ((request->split && strcmp(request->split, split) != 0) ||
                !(training ? quantity->training : quantity->evaluation))
                continue;
            for (size_t k = 0; k < KIND_COUNT; k++)
                if ((!training || kinds[k].training) &&
                    (!request->figure || strcmp(request->figure, kinds[k].name) == 0))
                    figure_draw(drawing, &kinds[k], split, quantity, err);
        }
    }
    if (drawing->failed > 1 && err) {
        struct error first = *err;
        error_set(err, "%s (and %zu more figures)", first.text, drawing->failed - 1);
    }
    return drawing->failed ? PLOT_FAILED : PLOT_DRAWN;
}

static char *folder_default(const char *database_path, const char *experiment)
{
    char *beside = path_folder(database_path);
    char *plots = path_join(beside, "plots");
    char *name = file_name_make(experiment, 100);
    char *folder = path_join(plots, name);
    memory_free(beside);
    memory_free(plots);
    memory_free(name);
    return folder;
}

enum plot_result plots_draw_open(sqlite3 *db, const struct plot_request *request, size_t *drawn, struct error *err)
{
    struct drawing drawing = {
        .db = db, .request = request, .formats = request->formats ? request->formats : PLOT_PNG | PLOT_SVG};
    drawing.folder = request->out_folder ? memory_copy_text(request->out_folder)
                                         : folder_default(request->database_path, request->experiment);
    enum plot_result result = experiment_check(&drawing, err);
    if (result == PLOT_DRAWN)
        result =
            experiment_read(&drawing, err) && splits_read(&drawing, err) ? request_check(&drawing, err) : PLOT_FAILED;
    folder_remove_stale(drawing.folder, STALE_SECONDS);
    if (result == PLOT_DRAWN && !folder_make(drawing.folder, err))
        result = PLOT_FAILED;
    if (result == PLOT_DRAWN)
        result = figures_draw(&drawing, err);
    texts_free(drawing.splits, (int)drawing.split_count);
    memory_free(drawing.title);
    memory_free(drawing.folder);
    plot_fonts_free(drawing.fonts);
    if (drawn)
        *drawn = drawing.drawn;
    return result;
}

enum plot_result plots_draw(const struct plot_request *request, size_t *drawn, struct error *err)
{
    if (drawn)
        *drawn = 0;
    sqlite3 *db = database_open_reader(request->database_path, err);
    if (!db)
        return PLOT_FAILED;
    enum plot_result result = plots_draw_open(db, request, drawn, err);
    sqlite3_close(db);
    return result;
}

bool plots_draw_default(const char *database_path, const char *experiment, const char *out_folder, size_t *drawn,
                        struct error *err)
{
    struct plot_request request = {.database_path = database_path, .experiment = experiment, .out_folder = out_folder};
    return plots_draw(&request, drawn, err) == PLOT_DRAWN;
}
