/* Figures from a database: what is drawn, and what is kept beside it. */
#include "tests/plot_case.h"

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
    static const char *const labels[] = {"it's `touch PWNED` \"q\" $(touch PWNED)",
                                         "a_b^c {x} @d & ~e %f #g \\n %s",
                                         "# no comment",
                                         "\"unbalanced",
                                         "na\xc3\xafve \xce\xa9 <b>",
                                         "f''",
                                         "''`touch PWNED`''"};
    static const char *const drawn[] = {"it's `touch PWNED` \"q\"",
                                        "a_b^c {x} @d &amp; ~e %f #g \\n",
                                        "# no comment",
                                        "\"unbalanced",
                                        "na\xc3\xafve \xce\xa9 &lt;b",
                                        "f''",
                                        "''`touch PWNED`''"};
    enum { LABELS = sizeof labels / sizeof labels[0] };
    struct fixture f;
    fixture_open(&f);
    f.request.out_folder = f.folder;
    f.request.formats = PLOT_PNG | PLOT_SVG | PLOT_PDF;
    experiment_add(&f, "norms", "`touch PWNED` it's 100% of {a_b}");
    for (int v = 0; v < LABELS; v++) {
        variant_add(&f, labels[v], v);
        run_add(&f, labels[v], 1, "finished", 10);
        value_add(&f, labels[v], 1, 0, "validation/bits_per_byte", 8 - v);
        value_add(&f, labels[v], 1, 10, "validation/bits_per_byte", 4 - 0.5 * v);
        value_add(&f, labels[v], 1, 10, "validation/loss", 4);
    }
    draw_all(&f);
    for (size_t i = 0; i < LABELS; i++) {
        cr_assert(figure_has(&f, "curves-validation.svg", drawn[i]), "curves: %s", drawn[i]);
        cr_assert(figure_has(&f, "final-validation.svg", drawn[i]), "final: %s", drawn[i]);
    }
    cr_assert(figure_has(&f, "curves-validation.svg", "`touch PWNED` it's 100% of {a_b}"));
    cr_assert(figure_exists(&f, "curves-validation.png") && figure_exists(&f, "curves-validation.pdf"));
    cr_assert_eq(files_with(f.folder, "PWNED") + files_with(".", "PWNED"), 0);
    char *data = figure_text(&f, "curves-validation.tsv", NULL);
    cr_assert_eq(occurrences(data, "\tmean\t"), 2 * LABELS, "every label keeps its rows");
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
    cr_assert_str_eq(f.err.text, "no experiment 'nroms': did you mean 'norms'? The database has norms");
    f.request.experiment = "norms";
    f.request.split = "code";
    cr_assert_eq(draw(&f), PLOT_REFUSED);
    cr_assert_str_eq(f.err.text, "no split 'code' in experiment 'norms': it has validation, train");
    f.request.split = "train";
    f.request.metric = "perplexity";
    cr_assert_eq(draw(&f), PLOT_REFUSED);
    cr_assert_str_eq(f.err.text,
                     "metric 'perplexity' is not logged for split 'train': loss, grad_norm or learning_rate");
    f.request.metric = "los";
    cr_assert_eq(draw(&f), PLOT_REFUSED);
    static const char begin[] = "no metric 'los': it is one of loss, bits_per_byte, perplexity, ",
                      end[] = ", grad_norm, learning_rate";
    size_t length = strlen(f.err.text);
    cr_assert(strncmp(f.err.text, begin, strlen(begin)) == 0, "%s", f.err.text);
    cr_assert(length > strlen(end) && strcmp(f.err.text + length - strlen(end), end) == 0, "%s", f.err.text);
    cr_assert_eq(files_with(f.root, "figures"), 0, "nothing is written");
    fixture_close(&f);
}

Test(plot, figures_go_beside_the_database_under_a_safe_name)
{
    struct fixture f;
    fixture_open(&f);
    experiment_add(&f, "../a b", "");
    char database[128], plots[256];
    snprintf(database, sizeof database, "%s/results.db", f.root);
    snprintf(plots, sizeof plots, "%s/plots", f.root);
    f.request = (struct plot_request){.database_path = database, .experiment = "../a b"};
    statement_run(f.db, "insert into variants values ('../a b', 'pre', 0, 1)", NULL, NULL, NULL, 0, 0, 0);
    statement_run(f.db,
                  "insert into runs(experiment, variant, seed, state, steps) values ('../a b', 'pre', 1, 'queued', 5)",
                  NULL, NULL, NULL, 0, 0, 0);
    draw_all(&f);
    cr_assert_eq(files_with(plots, "a-b"), 1);
    fixture_close(&f);
}
