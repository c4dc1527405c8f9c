/* Numbers on their way into a figure: colours, labels, means, smoothing. */
#include "runner/plot_data.h"

#include <criterion/criterion.h>
#include <math.h>

#include "core/memory.h"
#include "runner/plot_figure.h"
#include "tests/plot_case.h"

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

Test(plot_data, blocks_of_an_evaluation_are_those_of_the_baseline_wherever_it_stands)
{
    static const char rows[] = "insert into variants values ('norms', 'post', 0, 0), ('norms', 'pre', 1, 1);"
                               "insert into runs(experiment, variant, seed, config) values"
                               " ('norms', 'post', 1, '{\"evaluation.blocks\": 1, \"evaluation.final_blocks\": 2}'),"
                               " ('norms', 'pre', 2, '{\"evaluation.blocks\": 5, \"evaluation.final_blocks\": 6}'),"
                               " ('norms', 'pre', 1, '{\"evaluation.blocks\": 3, \"evaluation.final_blocks\": 4}')";
    struct plot_query query = {.sql = "select 1 where false", .experiment = "norms", .split = "validation"};
    struct plot_data data;
    struct fixture f;
    fixture_open(&f);
    cr_assert_eq(sqlite3_exec(f.db, rows, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(f.db));
    cr_assert(plot_data_read(f.db, &query, &data, &f.err), "%s", f.err.text);
    cr_assert_eq(data.blocks, 3);
    cr_assert_eq(data.final_blocks, 4);
    plot_data_release(&data);
    fixture_close(&f);
}
