/* Samples over seeds: means and spreads, Student's t, paired comparison, Holm's adjustment. GSL supplies the quantiles.
 *
 * Not a number stands for "cannot be said" (the spread of one value); whoever shows it writes n/a. */
#ifndef RUNNER_STATISTICS_H
#define RUNNER_STATISTICS_H

#include <stddef.h>

struct sample {
    size_t n;
    double mean, sd, spread, min, max; /* sd (n - 1 below) and spread (max - min) from two values on */
};
struct sample sample_of(const double *values, size_t n);

/* x with P(T <= x) = probability, for T of Student's distribution. */
double t_quantile(double probability, double degrees);

/* P(|T| >= |t|). */
double t_two_sided(double t, double degrees);

/* Half width of the interval that holds the mean with probability 1 - alpha: t(1 - alpha/2, n - 1) * sd / sqrt(n). */
double t_half_width(double sd, size_t n, double alpha);

/* The smallest true difference that a two-sided test at alpha over n pairs finds with 80 % power, when the differences
 * have this sd: (t(1 - alpha/2, n - 1) + t(0.8, n - 1)) * sd / sqrt(n). The usual approximation of the noncentral t:
 * its true power lies between 75 and 85 % from 3 pairs on. */
double minimum_detectable_effect(double sd, size_t n, double alpha);

/* differences = variant - control, a pair each. Differences that are all equal have p 1 when they are 0, else 0. */
struct paired {
    size_t n;
    double delta, sd, ci_low, ci_high, p, mde; /* all but delta need two pairs */
};
struct paired paired_of(const double *differences, size_t n, double alpha);

/* adjusted[i] = Holm's step-down value of p[i]; not-a-number entries take no part and stay. factor[i] (may be NULL) =
 * what p[i] alone was multiplied by: count - rank. */
void holm_adjust(const double *p, size_t n, double *adjusted, double *factor);

enum verdict { VERDICT_NONE, VERDICT_BETTER, VERDICT_WORSE, VERDICT_SAME, VERDICT_NOT_SEPARATED };

/* Lower is better. better / worse: adjusted p < alpha and |delta| >= margin. same: the interval lies within +-margin.
 * NONE for fewer than two pairs. Otherwise not separated, and *seeds = the fewest seeds that would decide it were delta
 * and sd to stay: with |delta| >= margin those that find |delta| with 80 % power at alpha / factor, else those whose
 * interval fits within the margin; 0 when more than SEEDS_LIMIT would be needed. */
enum { SEEDS_LIMIT = 1000 };
enum verdict verdict_of(const struct paired *paired, double p_adjusted, double factor, double margin, double alpha,
                        size_t *seeds);

/* "better", "not separated (7 seeds would)", "n/a". Returns buf. */
enum { VERDICT_SIZE = 64 };
const char *verdict_format(enum verdict verdict, size_t seeds, char buf[VERDICT_SIZE]);

#endif
