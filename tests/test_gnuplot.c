/* What happens when gnuplot is missing, fails, hangs, draws nothing or half. */
#include "tests/plot_case.h"

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
