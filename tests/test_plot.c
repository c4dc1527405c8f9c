/* Figures from a database: what is drawn, what is kept beside it, and what happens when gnuplot does not do its part.
 *
 * The database holds tables named and shaped as the public views that plots/ reads. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/gnuplot.h"
#include "runner/plot.h"
#include "runner/plot_data.h"
#include "runner/plot_figure.h"
#include "runner/plot_fonts.h"
#include "runner/plot_text.h"

struct fixture {
    sqlite3 *db;
    char root[64], folder[256], figures[128];
    struct plot_request request;
    struct error err;
    size_t drawn;
};

static void statement_run(sqlite3 *db, const char *sql, const char *text1, const char *text2, const char *text3,
                          double number1, double number2, double number3)
{
    sqlite3_stmt *statement;
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    const char *texts[] = {text1, text2, text3};
    const double numbers[] = {number1, number2, number3};
    for (int i = 0; i < 3; i++) {
        if (i + 1 <= sqlite3_bind_parameter_count(statement) && texts[i])
            sqlite3_bind_text(statement, i + 1, texts[i], -1, SQLITE_STATIC);
        if (i + 4 <= sqlite3_bind_parameter_count(statement))
            sqlite3_bind_double(statement, i + 4, numbers[i]);
    }
    cr_assert_eq(sqlite3_step(statement), SQLITE_DONE, "%s", sqlite3_errmsg(db));
    sqlite3_finalize(statement);
}

static void fixture_open(struct fixture *f)
{
    *f = (struct fixture){0};
    snprintf(f->root, sizeof f->root, "/tmp/test_plot.XXXXXX");
    cr_assert(mkdtemp(f->root));
    snprintf(f->folder, sizeof f->folder, "%s/it's \"a\"; `touch PWNED` folder", f->root);
    snprintf(f->figures, sizeof f->figures, "%s/figures", f->root);
    cr_assert_eq(sqlite3_open(":memory:", &f->db), SQLITE_OK);
    static const char schema[] =
        "create table experiments(experiment, description, margin default 0.01, alpha default 0.05);"
        "create table variants(experiment, variant, position, baseline);"
        "create table runs(experiment, variant, seed, state, steps, config, flops_per_token default 6000, "
        "started_at, ended_at);"
        "create table curves(experiment, variant, seed, step, tokens, train_seconds, split, metric, value);";
    cr_assert_eq(sqlite3_exec(f->db, schema, NULL, NULL, NULL), SQLITE_OK);
    f->request = (struct plot_request){.database_path = "unused", .experiment = "norms", .out_folder = f->figures};
}

static void folder_remove(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char *inner = path_join(path, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && unlink(inner) != 0)
            folder_remove(inner);
        memory_free(inner);
    }
    closedir(folder);
    rmdir(path);
}

static void fixture_close(struct fixture *f)
{
    sqlite3_close(f->db);
    folder_remove(f->root);
}

static void experiment_add(struct fixture *f, const char *name, const char *description)
{
    statement_run(f->db, "insert into experiments(experiment, description) values (?1, ?2)", name, description, NULL, 0,
                  0, 0);
}

static void variant_add(struct fixture *f, const char *label, int position)
{
    statement_run(f->db, "insert into variants values (?1, ?2, ?4, ?4 = 0)", "norms", label, NULL, position, 0, 0);
}

static void run_add(struct fixture *f, const char *label, int seed, const char *state, int steps)
{
    statement_run(f->db,
                  "insert into runs(experiment, variant, seed, state, steps) values (?1, ?2, cast(?4 as integer), ?3, "
                  "cast(?5 as integer))",
                  "norms", label, state, seed, steps, 0);
}

/* metric: "train/loss" or "validation/bits_per_byte". */
static void value_add(struct fixture *f, const char *label, int seed, int step, const char *metric, double value)
{
    statement_run(f->db,
                  "insert into curves values ('norms', ?2, cast(?4 as integer), cast(?5 as integer), 64 * ?5, ?5 / 2.0,"
                  " substr(?3, 1, instr(?3, '/') - 1), substr(?3, instr(?3, '/') + 1), ?6)",
                  "norms", label, metric, seed, step, value);
}

/* Two variants, three seeds, evaluations at 0, 10, 20: values chosen by hand. */
static void norms_add(struct fixture *f)
{
    static const double finals[2][3] = {{2.10, 2.14, 2.12}, {2.50, 2.60, 2.55}};
    static const char *const labels[] = {"pre", "post"};
    experiment_add(f, "norms", "Where the norm goes");
    for (int v = 0; v < 2; v++) {
        variant_add(f, labels[v], v);
        for (int s = 0; s < 3; s++) {
            run_add(f, labels[v], s, "finished", 20);
            for (int step = 0; step <= 20; step += 10) {
                double value = finals[v][s] + (20 - step) * 0.25;
                value_add(f, labels[v], s, step, "validation/bits_per_byte", value);
                value_add(f, labels[v], s, step, "validation/loss", value);
            }
            for (int step = 0; step < 20; step++)
                value_add(f, labels[v], s, step, "train/loss", 8 - 0.2 * step);
        }
    }
}

static enum plot_result draw(struct fixture *f)
{
    return plots_draw_open(f->db, &f->request, &f->drawn, &f->err);
}

static void draw_all(struct fixture *f)
{
    enum plot_result result = draw(f);
    cr_assert_eq(result, PLOT_DRAWN, "%s", f->err.text);
}

static bool figure_exists(const struct fixture *f, const char *name)
{
    char *path = path_join(f->request.out_folder, name);
    struct stat status;
    bool exists = stat(path, &status) == 0 && status.st_size > 0;
    memory_free(path);
    return exists;
}

/* The file's text; caller frees it. */
static char *figure_text(const struct fixture *f, const char *name, size_t *size)
{
    struct error err;
    char *path = path_join(f->request.out_folder, name), *text = NULL;
    size_t bytes;
    cr_assert(file_read(path, 1 << 24, &text, size ? size : &bytes, &err), "%s", err.text);
    memory_free(path);
    return text;
}

static bool figure_has(const struct fixture *f, const char *name, const char *wanted)
{
    char *text = figure_text(f, name, NULL);
    bool has = strstr(text, wanted) != NULL;
    memory_free(text);
    return has;
}

static size_t files_with(const char *folder, const char *part)
{
    size_t count = 0;
    DIR *files = opendir(folder);
    for (struct dirent *entry; files && (entry = readdir(files));)
        count += strstr(entry->d_name, part) ? 1 : 0;
    if (files)
        closedir(files);
    return count;
}

static size_t occurrences(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    return count;
}

Test(plot, every_split_has_its_curves_and_the_evaluated_ones_their_final_values)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    draw_all(&f);
    cr_assert_eq(f.drawn, 5);
    static const char *const figures[] = {"curves-validation", "final-validation", "differences-validation",
                                          "curves-train", "curves-train-grad_norm"};
    static const char *const kinds[] = {"png", "svg", "tsv", "gp", "sql"};
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 5; k++) {
            char name[64];
            snprintf(name, sizeof name, "%s.%s", figures[i], kinds[k]);
            cr_assert(figure_exists(&f, name), "%s", name);
        }
    cr_assert_eq(files_with(f.figures, ".tmp"), 0);
    cr_assert_eq(files_with(f.figures, "curves-") + files_with(f.figures, "final-"), 20);
    fixture_close(&f);
}

Test(plot, drawing_again_gives_the_same_bytes)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    static const char *const names[] = {"curves-validation.png", "curves-validation.svg", "final-validation.png",
                                        "final-validation.svg"};
    char *first[4], *second[4];
    size_t first_size[4], second_size[4];
    draw_all(&f);
    for (size_t i = 0; i < 4; i++)
        first[i] = figure_text(&f, names[i], &first_size[i]);
    draw_all(&f);
    for (size_t i = 0; i < 4; i++) {
        second[i] = figure_text(&f, names[i], &second_size[i]);
        cr_assert(first_size[i] == second_size[i] && memcmp(first[i], second[i], first_size[i]) == 0, "%s", names[i]);
        memory_free(first[i]);
        memory_free(second[i]);
    }
    fixture_close(&f);
}

/* 2.10, 2.14, 2.12: mean 2.12, sd 0.02, 95 % half width 4.303 * 0.02 / sqrt(3) = 0.0497. */
Test(plot, final_values_have_the_mean_and_its_t_interval)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    draw_all(&f);
    cr_assert(figure_has(&f, "final-validation.svg", "2.1200 \xc2\xb1 0.0497, n = 3"));
    cr_assert(figure_has(&f, "final-validation.svg", "mean of the baseline (pre)."));
    char *data = figure_text(&f, "final-validation.tsv", NULL);
    double mean, low, high;
    const char *at = strstr(data, "\tmean\tpre");
    while (at[-1] != '\n')
        at--;
    cr_assert_eq(sscanf(at, "%lf\t%lf\t%lf\t3\t1\tmean", &mean, &low, &high), 3);
    cr_assert_float_eq(mean, 2.12, 1e-12);
    cr_assert_float_eq(low, 2.12 - 0.049682, 1e-6); /* six digits of the tabled quantile 4.302653 */
    cr_assert_float_eq(high, 2.12 + 0.049682, 1e-6);
    memory_free(data);
    fixture_close(&f);
}

static int row_count(void *context, int columns, char **values, char **names)
{
    (void)columns;
    (void)values;
    (void)names;
    ++*(size_t *)context;
    return 0;
}

Test(plot, the_query_beside_a_figure_runs_as_it_is)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    draw_all(&f);
    char *sql = figure_text(&f, "curves-validation.sql", NULL);
    size_t rows = 0;
    cr_assert_eq(sqlite3_exec(f.db, sql, row_count, &rows, NULL), SQLITE_OK);
    cr_assert_eq(rows, 18);
    memory_free(sql);
    fixture_close(&f);
}

Test(plot, the_script_beside_a_figure_draws_it_by_hand)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    draw_all(&f);
    char *script = figure_text(&f, "curves-validation.gp", NULL);
    char *title = strstr(script, "Where the norm goes");
    cr_assert(title);
    memcpy(title, "There", 5); /* a writer's edit */
    char *path = path_join(f.figures, "curves-validation.gp");
    cr_assert(file_write(path, script, strlen(script), &f.err));
    cr_assert_eq(gnuplot_run(f.figures, "unused = 0", "curves-validation.gp", 60, &f.err), GNUPLOT_DONE, "%s",
                 f.err.text);
    cr_assert(figure_has(&f, "curves-validation.svg", "There the norm goes"));
    memory_free(path);
    memory_free(script);
    fixture_close(&f);
}

Test(plot, special_characters_are_drawn_as_written_and_run_nothing)
{
    static const char *const labels[] = {"it's `touch PWNED` \"q\" $(touch PWNED)", "a_b^c {x} @d & ~e %f #g \\n %s",
                                         "# no comment", "\"unbalanced", "na\xc3\xafve \xce\xa9 <b>"};
    static const char *const drawn[] = {"it's `touch PWNED` \"q\"", "a_b^c {x} @d &amp; ~e %f #g \\n", "# no comment",
                                        "\"unbalanced", "na\xc3\xafve \xce\xa9 &lt;b"};
    struct fixture f;
    fixture_open(&f);
    f.request.out_folder = f.folder;
    f.request.formats = PLOT_PNG | PLOT_SVG | PLOT_PDF;
    experiment_add(&f, "norms", "`touch PWNED` it's 100% of {a_b}");
    for (int v = 0; v < 5; v++) {
        variant_add(&f, labels[v], v);
        run_add(&f, labels[v], 1, "finished", 10);
        value_add(&f, labels[v], 1, 0, "validation/bits_per_byte", 8 - v);
        value_add(&f, labels[v], 1, 10, "validation/bits_per_byte", 4 - 0.5 * v);
        value_add(&f, labels[v], 1, 10, "validation/loss", 4);
    }
    draw_all(&f);
    for (size_t i = 0; i < 5; i++) {
        cr_assert(figure_has(&f, "curves-validation.svg", drawn[i]), "curves: %s", drawn[i]);
        cr_assert(figure_has(&f, "final-validation.svg", drawn[i]), "final: %s", drawn[i]);
    }
    cr_assert(figure_has(&f, "curves-validation.svg", "`touch PWNED` it's 100% of {a_b}"));
    cr_assert(figure_exists(&f, "curves-validation.png") && figure_exists(&f, "curves-validation.pdf"));
    cr_assert_eq(files_with(f.folder, "PWNED") + files_with(".", "PWNED"), 0);
    char *data = figure_text(&f, "curves-validation.tsv", NULL);
    cr_assert_eq(occurrences(data, "\tmean\t"), 10, "every label keeps its rows");
    memory_free(data);
    fixture_close(&f);
}

Test(plot, two_hundred_letters_are_drawn_to_the_last)
{
    struct fixture f;
    fixture_open(&f);
    char label[201];
    memset(label, 'w', 200);
    label[200] = 0;
    experiment_add(&f, "norms", "");
    variant_add(&f, label, 0);
    run_add(&f, label, 1, "finished", 1);
    value_add(&f, label, 1, 1, "validation/bits_per_byte", 2);
    value_add(&f, label, 1, 1, "validation/loss", 2);
    draw_all(&f);
    char *svg = figure_text(&f, "curves-validation.svg", NULL);
    size_t letters = 0;
    for (const char *at = svg; (at = strstr(at, ">ww"));) /* each line of the label is a text of its own */
        for (at++; *at == 'w'; at++)
            letters++;
    cr_assert_eq(letters, 200);
    memory_free(svg);
    fixture_close(&f);
}

Test(plot, a_diverged_run_is_named_ends_in_a_cross_and_is_in_no_mean)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    run_add(&f, "post", 9, "diverged", 20);
    value_add(&f, "post", 9, 0, "validation/bits_per_byte", 8);
    value_add(&f, "post", 9, 10, "validation/bits_per_byte", 1e30);
    value_add(&f, "post", 9, 20, "validation/bits_per_byte", INFINITY);
    draw_all(&f);
    cr_assert(figure_has(&f, "curves-validation.svg", "(1 of 4 diverged)"));
    cr_assert(figure_has(&f, "curves-validation.svg", "in no mean"));
    cr_assert(figure_has(&f, "final-validation.svg", "1 of 4 diverged"));
    char *data = figure_text(&f, "curves-validation.tsv", NULL);
    cr_assert(strstr(data, "10\t1.0000000000000000199e+30") || strstr(data, "\t1e+30"));
    cr_assert_eq(occurrences(data, "\tdiverged\tpost"), 1);
    double mean = 0, least = 0, most = 0; /* 2.50 2.55 2.60: 2.55 -+ 4.3027 * 0.05 / sqrt(3) */
    const char *row = strstr(data, "\n20\t2.5499999999999998");
    cr_assert(row && sscanf(row, "%*d %lf %lf %lf 3 nan mean post", &mean, &least, &most) == 3);
    cr_assert(fabs(least - 2.4258) < 0.00005 && fabs(most - 2.6742) < 0.00005, "%g %g", least, most);
    memory_free(data);
    char *script = figure_text(&f, "curves-validation.gp", NULL);
    double low, high;
    cr_assert_eq(sscanf(strstr(script, "y_low ="), "y_low = %lf; y_high = %lf", &low, &high), 2);
    cr_assert(high < 10, "one diverged run must not flatten the others: %g", high);
    memory_free(script);
    fixture_close(&f);
}

/* pre 2.10 2.14 2.12, post 2.30 2.36 2.36: differences 0.20 0.22 0.24, whose mean is 0.22 and half width 4.303 * 0.02 /
 * sqrt(3) = 0.0497. */
static void pair_add(struct fixture *f)
{
    static const double pre[] = {2.10, 2.14, 2.12}, post[] = {2.30, 2.36, 2.36};
    static const char *const labels[] = {"pre", "post"};
    experiment_add(f, "norms", "");
    for (int v = 0; v < 2; v++) {
        variant_add(f, labels[v], v);
        for (int seed = 0; seed < 3; seed++) {
            run_add(f, labels[v], seed, "finished", 4);
            value_add(f, labels[v], seed, 4, "validation/bits_per_byte", (v ? post : pre)[seed]);
            value_add(f, labels[v], seed, 4, "validation/loss", (v ? post : pre)[seed]);
        }
    }
}

/* gnuplot 5.4 leaves it as it is, and no browser reads the SVG. */
Test(plot, the_end_of_a_cdata_section_in_a_label_does_not_break_an_svg)
{
    char *clean = plot_text_clean("a]]>b ]> ]]]>");
    cr_assert_str_eq(clean, "a]]\xe2\x80\x8b>b ]> ]]]\xe2\x80\x8b>");
    memory_free(clean);
}

Test(plot, differences_to_the_baseline_have_their_interval_and_verdict)
{
    struct fixture f;
    fixture_open(&f);
    pair_add(&f);
    draw_all(&f);
    cr_assert(figure_has(&f, "differences-validation.svg", "+0.2200 \xc2\xb1 0.0497, n = 3"));
    cr_assert(figure_has(&f, "differences-validation.svg", ">worse<"));
    cr_assert(figure_has(&f, "differences-validation.svg", "difference in validation loss (bits per byte)"));
    cr_assert_not(figure_exists(&f, "heat-validation.svg"));
    fixture_close(&f);
}

Test(plot, two_knobs_that_vary_have_a_heat_map)
{
    struct fixture f;
    fixture_open(&f);
    pair_add(&f);
    static const char *const sql[] = {
        "update runs set config = '{\"model.residual\":\"pre\",\"model.dropout\":0.1}' where variant = 'pre'",
        "update runs set config = '{\"model.residual\":\"post\",\"model.dropout\":0.5}' where variant = 'post'"};
    for (size_t i = 0; i < 2; i++)
        cr_assert_eq(sqlite3_exec(f.db, sql[i], NULL, NULL, NULL), SQLITE_OK);
    draw_all(&f);
    cr_assert(figure_has(&f, "heat-validation.svg", "residual=post"));
    cr_assert(figure_has(&f, "heat-validation.svg", "dropout=0.1"));
    cr_assert(figure_has(&f, "heat-validation.svg", ">2.1200<"));
    cr_assert(figure_has(&f, "heat-validation.svg", ">n = 3 of 3<"));
    fixture_close(&f);
}

/* cairo writes the time of drawing into a PDF: ours is the data's. */
Test(plot, a_pdf_is_the_same_bytes_again)
{
    struct fixture f;
    char *first = NULL, *second = NULL, *path;
    size_t sizes[2];
    fixture_open(&f);
    pair_add(&f);
    cr_assert_eq(sqlite3_exec(f.db, "update runs set ended_at = '2026-11-30T16:54:38Z'", NULL, NULL, NULL), SQLITE_OK);
    f.request.formats = PLOT_PDF;
    path = path_join(f.figures, "final-validation.pdf");
    cr_assert_eq(draw(&f), PLOT_DRAWN, "%s", f.err.text);
    cr_assert(file_read(path, 1 << 24, &first, &sizes[0], &f.err), "%s", f.err.text);
    usleep(1100000); /* another second on the clock */
    cr_assert_eq(draw(&f), PLOT_DRAWN, "%s", f.err.text);
    cr_assert(file_read(path, 1 << 24, &second, &sizes[1], &f.err), "%s", f.err.text);
    cr_assert(sizes[0] == sizes[1] && memcmp(first, second, sizes[0]) == 0);
    cr_assert(memmem(first, sizes[0], "/CreationDate (D:20261130165438", 31));
    memory_free(first);
    memory_free(second);
    memory_free(path);
    fixture_close(&f);
}

Test(plot, without_values_a_figure_says_so)
{
    struct fixture f;
    fixture_open(&f);
    experiment_add(&f, "norms", "");
    variant_add(&f, "pre", 0);
    run_add(&f, "pre", 1, "queued", 10);
    draw_all(&f);
    cr_assert_eq(f.drawn, 4);
    cr_assert(figure_has(&f, "curves-validation.svg", "Nothing to draw"));
    cr_assert(figure_has(&f, "curves-train.svg", "(1 of 1 not finished: no values)"));
    cr_assert(figure_has(&f, "final-validation.svg", "Nothing to draw"));
    cr_assert(figure_exists(&f, "curves-train.png"));
    fixture_close(&f);
}

Test(plot, values_that_are_not_finite_or_not_above_zero_on_a_logarithmic_axis_are_told)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    variant_add(&f, "broken", 2);
    run_add(&f, "broken", 1, "finished", 20);
    value_add(&f, "broken", 1, 20, "validation/bits_per_byte", INFINITY);
    variant_add(&f, "zero", 3);
    run_add(&f, "zero", 1, "finished", 20);
    value_add(&f, "zero", 1, 20, "validation/bits_per_byte", 0);
    f.request.logarithmic = true;
    f.request.split = "validation";
    draw_all(&f);
    cr_assert(figure_has(&f, "curves-validation-log.svg", "(no value above 0)"));
    cr_assert(figure_has(&f, "curves-validation-log.svg", "1 values at or below 0"));
    f.request.logarithmic = false;
    draw_all(&f);
    cr_assert(figure_has(&f, "curves-validation.svg", "(no finite value)"));
    fixture_close(&f);
}

Test(plot, one_step_is_drawn_as_points)
{
    struct fixture f;
    fixture_open(&f);
    experiment_add(&f, "norms", "");
    variant_add(&f, "pre", 0);
    run_add(&f, "pre", 1, "finished", 1);
    value_add(&f, "pre", 1, 0, "train/loss", 6.9);
    f.request.split = "train";
    draw_all(&f);
    cr_assert(figure_has(&f, "curves-train.svg", "One step only"));
    fixture_close(&f);
}

Test(plot, forty_seeds_are_all_kept_under_one_colour)
{
    struct fixture f;
    fixture_open(&f);
    experiment_add(&f, "norms", "");
    variant_add(&f, "pre", 0);
    for (int seed = 0; seed < 40; seed++) {
        run_add(&f, "pre", seed, "finished", 10);
        for (int step = 0; step <= 10; step += 5)
            value_add(&f, "pre", seed, step, "validation/bits_per_byte", 4 - 0.1 * step + 0.01 * seed);
        value_add(&f, "pre", seed, 10, "validation/loss", 1);
    }
    draw_all(&f);
    char *data = figure_text(&f, "curves-validation.tsv", NULL);
    cr_assert_eq(occurrences(data, "\tpre\n"), 3 + 120 + 1);
    memory_free(data);
    cr_assert(figure_has(&f, "curves-validation.svg", "mean of 40 seeds"));
    cr_assert(figure_has(&f, "curves-validation.gp", "variants = 1\n"));
    cr_assert(figure_has(&f, "final-validation.svg", "n = 40"));
    fixture_close(&f);
}

Test(plot, what_is_not_a_default_is_in_the_name)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    f.request = (struct plot_request){.experiment = "norms",
                                      .out_folder = f.figures,
                                      .split = "train",
                                      .x = "tokens",
                                      .smooth = 5,
                                      .formats = PLOT_SVG};
    draw_all(&f);
    cr_assert(figure_exists(&f, "curves-train-by-tokens-smooth5.svg"));
    cr_assert(figure_has(&f, "curves-train-by-tokens-smooth5.svg", "factor 0.8 (5 points)"));
    cr_assert_eq(files_with(f.figures, ".png"), 0);
    fixture_close(&f);
}

Test(plot, what_is_not_there_is_refused_with_what_there_is)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    f.request.experiment = "nroms";
    cr_assert_eq(draw(&f), PLOT_REFUSED);
    cr_assert_str_eq(f.err.text, "no experiment \"nroms\": did you mean \"norms\"? The database has norms");
    f.request.experiment = "norms";
    f.request.split = "code";
    cr_assert_eq(draw(&f), PLOT_REFUSED);
    cr_assert_str_eq(f.err.text, "no split \"code\" in experiment \"norms\": it has validation, train");
    f.request.split = "train";
    f.request.metric = "perplexity";
    cr_assert_eq(draw(&f), PLOT_REFUSED);
    cr_assert_str_eq(f.err.text,
                     "metric \"perplexity\" is not logged for split \"train\": loss, grad_norm or learning_rate");
    f.request.metric = "los";
    cr_assert_eq(draw(&f), PLOT_REFUSED);
    cr_assert_str_eq(f.err.text,
                     "no metric \"los\": it is one of loss, bits_per_byte, perplexity, grad_norm, learning_rate");
    cr_assert_eq(files_with(f.root, "figures"), 0, "nothing is written");
    fixture_close(&f);
}

/* A program named gnuplot, first on PATH, that does as told. */
static void gnuplot_replace(struct fixture *f, const char *body)
{
    char path[128], script[512];
    snprintf(path, sizeof path, "%s/bin", f->root);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/bin/gnuplot", f->root);
    snprintf(script, sizeof script, "#!/bin/sh\n%s\n", body);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(script, file) >= 0 && fclose(file) == 0 && chmod(path, 0755) == 0);
    snprintf(path, sizeof path, "%s/bin:/usr/bin:/bin", f->root);
    setenv("PATH", path, 1);
}

static void kept_without_figure(struct fixture *f, const char *wanted)
{
    cr_assert_eq(draw(f), PLOT_FAILED);
    cr_assert_eq(f->drawn, 0);
    cr_assert(strstr(f->err.text, wanted), "%s", f->err.text);
    cr_assert(strstr(f->err.text, "gnuplot curves-validation.gp"), "how to redraw: %s", f->err.text);
    cr_assert_eq(files_with(f->figures, ".tsv"), 5);
    cr_assert_eq(files_with(f->figures, ".gp"), 5);
    cr_assert_eq(files_with(f->figures, ".svg") + files_with(f->figures, ".png"), 0);
}

Test(plot, without_gnuplot_data_and_scripts_stay)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    setenv("PATH", "/nowhere", 1);
    kept_without_figure(&f, "gnuplot is not on PATH (Debian: apt-get install gnuplot-nox)");
    fixture_close(&f);
}

Test(plot, a_gnuplot_that_fails_is_quoted)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    gnuplot_replace(&f, "echo 'no such terminal' >&2; exit 2");
    kept_without_figure(&f, "gnuplot failed with exit code 2; it said: no such terminal");
    gnuplot_replace(&f, "kill -9 $$");
    kept_without_figure(&f, "killed by signal 9");
    fixture_close(&f);
}

Test(plot, a_gnuplot_that_hangs_is_killed_and_not_tried_again, .timeout = 20)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    gnuplot_replace(&f, "exec sleep 1000");
    f.request.timeout = 0.3;
    kept_without_figure(&f, "did not end within 0.3 s");
    fixture_close(&f);
}

Test(plot, a_gnuplot_that_draws_nothing_or_half_is_found_out)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    gnuplot_replace(&f, "exit 0");
    kept_without_figure(&f, "wrote no png");
    /* $3 is "prefix = '.tmp1-'; formats = ' png svg'" and $4 the script. */
    gnuplot_replace(&f, "p=${3#*\\'}; p=${p%%\\'*}; : > \"$p${4%.gp}.png\"; : > \"$p${4%.gp}.svg\"");
    kept_without_figure(&f, "wrote an empty png");
    cr_assert_eq(files_with(f.figures, ".tmp"), 0, "what is half is removed");
    fixture_close(&f);
}

Test(plot, the_terminals_of_gnuplot_are_told)
{
    char text[128];
    struct error err;
    cr_assert_eq(gnuplot_describe(text, sizeof text, &err), GNUPLOT_DONE, "%s", err.text);
    cr_assert(strstr(text, " patchlevel ") && strstr(text, ": pngcairo svg pdfcairo"), "%s", text);
    setenv("PATH", "/nowhere", 1);
    cr_assert_eq(gnuplot_describe(text, sizeof text, &err), GNUPLOT_MISSING);
    cr_assert(strstr(err.text, "gnuplot-nox"), "%s", err.text);
}

Test(plot, an_output_that_is_cut_short_is_not_whole)
{
    struct fixture f;
    fixture_open(&f);
    norms_add(&f);
    draw_all(&f);
    size_t size;
    char *bytes = figure_text(&f, "curves-train.png", &size);
    char *path = path_join(f.figures, "curves-train.png");
    cr_assert(gnuplot_output_whole(path, "png", &f.err));
    cr_assert_eq(truncate(path, (off_t)size - 1), 0);
    cr_assert_not(gnuplot_output_whole(path, "png", &f.err));
    cr_assert(strstr(f.err.text, "cut short"), "%s", f.err.text);
    memory_free(path);
    memory_free(bytes);
    fixture_close(&f);
}

Test(plot, figures_go_beside_the_database_under_a_safe_name)
{
    struct fixture f;
    fixture_open(&f);
    experiment_add(&f, "../a b", "");
    char database[128], folder[256];
    snprintf(database, sizeof database, "%s/results.db", f.root);
    snprintf(folder, sizeof folder, "%s/plots", f.root);
    f.request = (struct plot_request){.database_path = database, .experiment = "../a b"};
    statement_run(f.db, "insert into variants values ('../a b', 'pre', 0, 1)", NULL, NULL, NULL, 0, 0, 0);
    statement_run(f.db,
                  "insert into runs(experiment, variant, seed, state, steps) values ('../a b', 'pre', 1, 'queued', 5)",
                  NULL, NULL, NULL, 0, 0, 0);
    draw_all(&f);
    cr_assert_eq(files_with(folder, "a-b"), 1);
    fixture_close(&f);
}

Test(plot_text, quotes_are_doubled_and_lines_joined_by_an_escape)
{
    char text[64] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    plot_text_quote(out, "it's\n`x`");
    fclose(out);
    cr_assert_str_eq(text, "'it''s'.\"\\n\".'`x`'");
}

Test(plot_text, a_quote_that_opens_a_line_does_not_close_it)
{
    char text[96] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    plot_text_quote(out, "''; load 'x'\n'y");
    fclose(out);
    cr_assert_str_eq(text, "\"\\047\".\"\\047\".'; load ''x'''.\"\\n\".\"\\047\".'y'");
}

Test(plot_text, bad_bytes_and_control_characters_are_replaced)
{
    char *clean = plot_text_clean("a\tb\x1b[0m\xff\xc3\xa9");
    cr_assert_str_eq(clean, "a b [0m\xef\xbf\xbd\xc3\xa9");
    memory_free(clean);
}

Test(plot_text, lines_break_at_spaces_then_joints_then_anywhere)
{
    static const struct {
        const char *text, *wrapped;
    } cases[] = {
        {"aaaa bbbb cccc", "aaaa bbbb\ncccc"},
        {"aaaa-bbbb-cccc", "aaaa-bbbb-\ncccc"},
        {"aaaaaaaaaaaaaa", "aaaaaaaaaa\naaaa"},
        {"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9",
         "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\n\xc3\xa9\xc3\xa9"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *wrapped = plot_text_wrap(cases[i].text, 6.35);
        cr_assert_str_eq(wrapped, cases[i].wrapped);
        cr_assert(plot_text_widest(wrapped) <= 6.35);
        memory_free(wrapped);
    }
}

Test(plot_fonts, a_character_that_no_font_has_is_replaced)
{
    struct plot_fonts *fonts = plot_fonts_parse(":charset=20-7e a0-17f 3a9\n:charset=fffd 400-4ff\n");
    cr_assert(plot_fonts_have(fonts, 0x3a9) && plot_fonts_have(fonts, 0x44f) && plot_fonts_have(fonts, 'c'));
    cr_assert_not(plot_fonts_have(fonts, 0x6f22));
    cr_assert_null(plot_text_drawable(fonts, "\xce\xa9 and \xd1\x8f"));
    char *drawable = plot_text_drawable(fonts, "\xce\xa9\xe6\xbc\xa2!");
    cr_assert_str_eq(drawable, "\xce\xa9\xef\xbf\xbd!");
    memory_free(drawable);
    plot_fonts_free(fonts);
    cr_assert(plot_text_common("na\xc3\xafve") && !plot_text_common("\xce\xa9"));
}

Test(plot_figure, labels_are_moved_apart_and_stay_within_their_limits)
{
    double centres[] = {95, 96, 94, 10};
    const double heights[] = {20, 20, 20, 20};
    labels_spread(centres, heights, 4, 0, 100);
    cr_assert_float_eq(centres[3], 10, 1e-9);
    cr_assert_float_eq(centres[2], 50, 1e-9);
    cr_assert_float_eq(centres[0], 70, 1e-9);
    cr_assert_float_eq(centres[1], 90, 1e-9);
}

Test(plot_figure, eight_variants_have_eight_colours_and_more_have_other_dashes)
{
    struct plot_variant variants[16] = {{0}};
    struct plot_data data = {.variants = variants, .variant_count = 16};
    struct look looks[16];
    variants[3].baseline = true;
    looks_assign(&data, looks);
    cr_assert_eq(looks[3].color, 0);
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < i; j++)
            cr_assert(looks[i].color != looks[j].color || looks[i].dash != looks[j].dash, "%zu and %zu", j, i);
    for (size_t i = 0; i < 8; i++)
        cr_assert_eq(looks[i].dash, 1);
}

/* 10, 0, 0 with factor 1/2: 10; (1/2 * 5 + 0) / (3/4) = 10/3; (1/4 * 5) / (7/8) = 10/7. */
Test(plot_data, smoothing_is_debiased)
{
    struct plot_point points[] = {{0, 0, 10}, {1, 1, 0}, {2, 2, 0}};
    struct plot_run run = {.finished = true, .points = points, .count = 3, .finite = 3};
    struct plot_variant variant = {.runs = &run, .run_count = 1};
    size_t count;
    struct plot_mean *line = plot_mean_of(&variant, 2, &count);
    cr_assert_eq(count, 3);
    cr_assert_float_eq(line[0].smoothed, 10, 1e-12);
    cr_assert_float_eq(line[1].smoothed, 10.0 / 3, 1e-12);
    cr_assert_float_eq(line[2].smoothed, 10.0 / 7, 1e-12);
    memory_free(line);
}

Test(plot_data, a_mean_over_finished_seeds_leaves_the_others_out)
{
    struct plot_point one[] = {{0, 0, 1}, {5, 5, 3}}, two[] = {{0, 0, 2}, {5, 5, 4}}, other[] = {{0, 0, 100}};
    struct plot_run runs[] = {{.finished = true, .points = one, .count = 2, .finite = 2},
                              {.finished = true, .points = two, .count = 2, .finite = 2},
                              {.diverged = true, .points = other, .count = 1, .finite = 1}};
    struct plot_variant variant = {.runs = runs, .run_count = 3};
    size_t count;
    struct plot_mean *line = plot_mean_of(&variant, 0, &count);
    cr_assert_eq(count, 2);
    cr_assert(line[0].n == 2 && line[0].value == 1.5 && line[0].low == 1 && line[0].high == 2);
    cr_assert(line[1].value == 3.5 && line[1].x == 5 && isnan(line[1].smoothed));
    memory_free(line);
}

Test(plot_data, long_lines_become_means_of_neighbours)
{
    struct plot_point points[10];
    for (int i = 0; i < 10; i++)
        points[i] = (struct plot_point){i, i, 2 * i};
    struct plot_run run = {.points = points, .count = 10, .finite = 10};
    cr_assert_eq(plot_run_thin(&run, 5), 2);
    cr_assert_eq(run.count, 5);
    cr_assert(points[0].x == 0.5 && points[0].value == 1 && points[4].value == 17);
    cr_assert_eq(plot_run_thin(&run, 5), 1);
}
