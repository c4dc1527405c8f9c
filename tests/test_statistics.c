/* Statistics over seeds against published tables and sums done by hand. */
#include "runner/statistics.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "core/random.h"

static void near(double got, double want, double tolerance)
{
    cr_assert(fabs(got - want) <= tolerance, "got %.6f, expected %.6f", got, want);
}

/* Published to three decimals (two-sided 95 % and one-sided 80 %), so half a unit of the third. */
Test(statistics, quantiles_of_t_are_the_published_ones)
{
    static const struct {
        double probability, degrees, value;
    } rows[] = {{0.975, 1, 12.706}, {0.975, 2, 4.303}, {0.975, 4, 2.776}, {0.975, 7, 2.365}, {0.975, 30, 2.042},
                {0.995, 2, 9.925},  {0.80, 2, 1.061},  {0.80, 4, 0.941},  {0.95, 9, 1.833},  {0.975, 1000, 1.962}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        near(t_quantile(rows[i].probability, rows[i].degrees), rows[i].value, 0.0005);
}

/* t = 4.303 at two degrees is the 5 % point to four digits; symmetric; t = 0 has p 1. */
Test(statistics, p_values_are_two_sided)
{
    near(t_two_sided(4.3027, 2), 0.05, 1e-5);
    near(t_two_sided(-4.3027, 2), 0.05, 1e-5);
    near(t_two_sided(0, 5), 1, 0);
}

/* 2.10, 2.14, 2.12: mean 6.36 / 3 = 2.12; deviations -0.02, 0.02, 0; sd = sqrt(0.0008 / 2) = 0.0200;
 * half width = 4.303 * 0.02 / sqrt(3) = 0.04968. */
Test(statistics, three_seeds_have_the_mean_spread_and_interval_done_by_hand)
{
    const double values[] = {2.10, 2.14, 2.12};
    struct sample sample = sample_of(values, 3);
    near(sample.mean, 2.12, 1e-12);
    near(sample.sd, 0.0200, 1e-9);
    near(sample.spread, 0.04, 1e-12);
    near(sample.min, 2.10, 0);
    near(sample.max, 2.14, 0);
    near(t_half_width(sample.sd, 3, 0.05), 0.0497, 0.00005);
}

Test(statistics, one_value_has_a_mean_and_nothing_else)
{
    const double value = 2.5;
    struct sample sample = sample_of(&value, 1);
    near(sample.mean, 2.5, 0);
    cr_assert(isnan(sample.sd) && isnan(sample.spread));
    cr_assert(isnan(sample_of(&value, 0).mean));
    struct paired paired = paired_of(&value, 1, 0.05);
    near(paired.delta, 2.5, 0);
    cr_assert(isnan(paired.ci_low) && isnan(paired.p) && isnan(paired.mde));
}

/* Differences -0.10, -0.12, -0.08: delta -0.10, sd 0.02, standard error 0.011547, t = -8.6603, p = 0.01307 (for two
 * degrees p = 1 - t / sqrt(2 + t^2) = 1 - 8.6603 / 8.7750), interval -0.10 -+ 0.0497, mde = (4.303 + 1.061) * 0.011547
 * = 0.0619. */
Test(statistics, a_paired_comparison_is_the_one_done_by_hand)
{
    const double differences[] = {-0.10, -0.12, -0.08};
    struct paired paired = paired_of(differences, 3, 0.05);
    near(paired.delta, -0.10, 1e-12);
    near(paired.sd, 0.02, 1e-9);
    near(paired.ci_low, -0.1497, 0.00005);
    near(paired.ci_high, -0.0503, 0.00005);
    near(paired.p, 0.01307, 0.00001);
    near(paired.mde, 0.0619, 0.00005);
}

Test(statistics, equal_differences_are_certain)
{
    const double shifted[] = {0.1, 0.1, 0.1}, none[] = {0, 0, 0};
    struct paired paired = paired_of(shifted, 3, 0.05);
    near(paired.p, 0, 0);
    near(paired.ci_low, 0.1, 0);
    near(paired_of(none, 3, 0.05).p, 1, 0);
}

/* Holm 1979 as in the usual example: p 0.01, 0.04, 0.03, 0.005 give 0.03, 0.06, 0.06, 0.02. */
Test(statistics, holm_is_the_textbook_example)
{
    const double p[] = {0.01, 0.04, 0.03, 0.005, NAN};
    const double want[] = {0.03, 0.06, 0.06, 0.02};
    double adjusted[5], factor[5];
    holm_adjust(p, 5, adjusted, factor);
    for (int i = 0; i < 4; i++)
        near(adjusted[i], want[i], 1e-12);
    cr_assert(isnan(adjusted[4]));
    near(factor[3], 4, 0);
    near(factor[1], 1, 0);
    const double large[] = {0.9, 0.8};
    holm_adjust(large, 2, adjusted, NULL);
    near(adjusted[0], 1, 0);
    near(adjusted[1], 1, 0);
}

static const char *verdict_text(double a, double b, double c, double factor, char buf[VERDICT_SIZE])
{
    const double differences[] = {a, b, c};
    struct paired paired = paired_of(differences, 3, 0.05);
    size_t seeds;
    enum verdict verdict = verdict_of(&paired, fmin(1, paired.p * factor), factor, 0.01, 0.05, &seeds);
    return verdict_format(verdict, seeds, buf);
}

/* -0.10, -0.12, -0.08 has p 0.013: better alone and among three (0.039), not among four (0.052), where
 * mde(n, 0.05 / 4) <= 0.10 first holds at n = 4: (t(0.99375, 3) + t(0.8, 3)) * 0.02 / 2 = (5.392 + 0.978) * 0.01 =
 * 0.064. */
Test(statistics, verdicts_follow_holm_margin_and_interval)
{
    char buf[VERDICT_SIZE];
    cr_assert_str_eq(verdict_text(-0.10, -0.12, -0.08, 3, buf), "better");
    cr_assert_str_eq(verdict_text(0.10, 0.12, 0.08, 3, buf), "worse");
    cr_assert_str_eq(verdict_text(-0.10, -0.12, -0.08, 4, buf), "not separated (4 seeds would)");
    cr_assert_str_eq(verdict_text(0.001, 0.002, 0.0015, 1, buf), "same"); /* p < 0.05, but within the margin */
    cr_assert_str_eq(verdict_format(VERDICT_NONE, 0, buf), "n/a");
}

/* Mean 0, sd 0.02, margin 0.01: t(0.975, n-1) * 0.02 / sqrt(n) <= 0.01 means sqrt(n) >= 2 t. n = 17: 2 * 2.120 = 4.239
 * > 4.123; n = 18: 2 * 2.110 = 4.220 <= 4.243. */
Test(statistics, seeds_that_would_show_sameness_are_counted)
{
    char buf[VERDICT_SIZE];
    cr_assert_str_eq(verdict_text(-0.02, 0.02, 0, 1, buf), "not separated (18 seeds would)");
    cr_assert_str_eq(verdict_text(-0.99, 1.01, 0.0099, 1, buf), "not separated (over 1000 seeds would)");
}

/* Share of the samples of n normal values around 0.3 whose interval holds 0.3. */
static double coverage(size_t n, uint64_t samples)
{
    struct random_stream stream = random_stream_make((int64_t)n, "statistics");
    int covered = 0;
    for (uint64_t s = 0; s < samples; s++) {
        double values[8];
        for (uint64_t i = 0; i < n; i++) {
            double u = random_uniform(&stream, 2 * (8 * s + i)), v = random_uniform(&stream, 2 * (8 * s + i) + 1);
            values[i] = 0.3 + sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
        }
        struct paired paired = paired_of(values, n, 0.05);
        covered += paired.ci_low <= 0.3 && 0.3 <= paired.ci_high;
    }
    return covered / (double)samples;
}

/* The interval promises 95 %. 2,000 samples: the share's standard error is 0.0049, two of them the percent allowed.
 * 20,000 samples: 0.0015, four of them 0.0062. */
Test(statistics, the_interval_covers_as_promised)
{
    static const size_t sizes[] = {3, 5, 8};
    for (size_t k = 0; k < 3; k++) {
        near(coverage(sizes[k], 2000), 0.95, 0.01);
        near(coverage(sizes[k], 20000), 0.95, 0.0062);
    }
}

/* The same stream of samples with a true difference of one mde: found in about 80 % of them. The formula is the common
 * approximation of the noncentral t: power within 5 points at n = 3 and closer beyond. */
Test(statistics, the_minimum_detectable_effect_is_found_in_four_of_five)
{
    enum { SAMPLES = 20000 };
    static const size_t sizes[] = {3, 5, 8};
    for (size_t k = 0; k < 3; k++) {
        struct random_stream stream = random_stream_make((int64_t)k, "power");
        double effect = minimum_detectable_effect(1, sizes[k], 0.05);
        int found = 0;
        for (uint64_t s = 0; s < SAMPLES; s++) {
            double values[8];
            for (uint64_t i = 0; i < sizes[k]; i++) {
                double u = random_uniform(&stream, 2 * (8 * s + i)), v = random_uniform(&stream, 2 * (8 * s + i) + 1);
                values[i] = effect + sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
            }
            found += paired_of(values, sizes[k], 0.05).p < 0.05;
        }
        near((double)found / SAMPLES, 0.80, 0.05);
    }
}
