/* Samples over seeds and what can be said of them. */
#include "runner/statistics.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>

struct sample sample_of(const double *values, size_t n)
{
    struct sample sample = {n, NAN, NAN, NAN, NAN, NAN};
    if (n == 0)
        return sample;
    double sum = 0, squares = 0;
    sample.min = sample.max = values[0];
    for (size_t i = 0; i < n; i++) {
        sum += values[i];
        sample.min = fmin(sample.min, values[i]);
        sample.max = fmax(sample.max, values[i]);
    }
    sample.mean = sum / (double)n;
    if (n == 1)
        return sample;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - sample.mean) * (values[i] - sample.mean);
    sample.sd = sqrt(squares / (double)(n - 1));
    sample.spread = sample.max - sample.min;
    if (!(sample.spread > 0)) { /* equal values, whatever rounding made of their mean */
        sample.mean = values[0];
        sample.sd = 0;
    }
    return sample;
}

double t_quantile(double probability, double degrees)
{
    return gsl_cdf_tdist_Pinv(probability, degrees);
}

double t_two_sided(double t, double degrees)
{
    return fmin(1, 2 * gsl_cdf_tdist_Q(fabs(t), degrees));
}

double t_half_width(double sd, size_t n, double alpha)
{
    return n < 2 ? NAN : t_quantile(1 - alpha / 2, (double)(n - 1)) * sd / sqrt((double)n);
}

double minimum_detectable_effect(double sd, size_t n, double alpha)
{
    if (n < 2)
        return NAN;
    double degrees = (double)(n - 1);
    return (t_quantile(1 - alpha / 2, degrees) + t_quantile(0.8, degrees)) * sd / sqrt((double)n);
}

struct paired paired_of(const double *differences, size_t n, double alpha)
{
    struct sample sample = sample_of(differences, n);
    double half = t_half_width(sample.sd, n, alpha);
    struct paired paired = {
        .n = n,
        .delta = sample.mean,
        .sd = sample.sd,
        .ci_low = sample.mean - half,
        .ci_high = sample.mean + half,
        .p = NAN,
        .mde = minimum_detectable_effect(sample.sd, n, alpha),
    };
    if (n < 2)
        return paired;
    if (sample.sd > 0)
        paired.p = t_two_sided(sample.mean / (sample.sd / sqrt((double)n)), (double)(n - 1));
    else
        paired.p = fabs(sample.mean) > 0 ? 0 : 1;
    return paired;
}

/* Those before p[i] in ascending order, equal ones by position. */
static size_t rank_of(const double *p, size_t n, size_t i)
{
    size_t rank = 0;
    for (size_t j = 0; j < n; j++)
        rank += p[j] < p[i] || (!(p[j] > p[i]) && !(p[j] < p[i]) && !isnan(p[j]) && j < i);
    return rank;
}

void holm_adjust(const double *p, size_t n, double *adjusted, double *factor)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += isnan(p[i]) ? 0 : 1;
    for (size_t i = 0; i < n; i++) {
        adjusted[i] = NAN;
        if (factor)
            factor[i] = NAN;
        if (isnan(p[i]))
            continue;
        if (factor)
            factor[i] = (double)(count - rank_of(p, n, i));
        for (size_t j = 0; j < n; j++) /* the largest product up to and including this rank */
            if (!isnan(p[j]) && rank_of(p, n, j) <= rank_of(p, n, i))
                adjusted[i] = fmax(adjusted[i], fmin(1, (double)(count - rank_of(p, n, j)) * p[j]));
    }
}

/* Would n seeds with this delta and sd lead to a verdict? */
static int seeds_decide(const struct paired *paired, size_t n, double factor, double margin, double alpha)
{
    double distance = fabs(paired->delta);
    if (distance >= margin)
        return minimum_detectable_effect(paired->sd, n, alpha / factor) <= distance;
    return t_half_width(paired->sd, n, alpha) <= margin - distance;
}

enum verdict verdict_of(const struct paired *paired, double p_adjusted, double factor, double margin, double alpha,
                        size_t *seeds)
{
    *seeds = 0;
    if (paired->n < 2 || isnan(p_adjusted))
        return VERDICT_NONE;
    if (p_adjusted < alpha && fabs(paired->delta) >= margin)
        return paired->delta < 0 ? VERDICT_BETTER : VERDICT_WORSE;
    if (paired->ci_low >= -margin && paired->ci_high <= margin)
        return VERDICT_SAME;
    size_t n = paired->n + 1;
    while (n <= SEEDS_LIMIT && !seeds_decide(paired, n, factor, margin, alpha))
        n++;
    *seeds = n <= SEEDS_LIMIT ? n : 0;
    return VERDICT_NOT_SEPARATED;
}

const char *verdict_format(enum verdict verdict, size_t seeds, char buf[VERDICT_SIZE])
{
    switch (verdict) {
    case VERDICT_NONE: snprintf(buf, VERDICT_SIZE, "n/a"); break;
    case VERDICT_BETTER: snprintf(buf, VERDICT_SIZE, "better"); break;
    case VERDICT_WORSE: snprintf(buf, VERDICT_SIZE, "worse"); break;
    case VERDICT_SAME: snprintf(buf, VERDICT_SIZE, "same"); break;
    case VERDICT_NOT_SEPARATED:
        if (seeds)
            snprintf(buf, VERDICT_SIZE, "not separated (%zu seeds would)", seeds);
        else
            snprintf(buf, VERDICT_SIZE, "not separated (over %d seeds would)", SEEDS_LIMIT);
        break;
    }
    return buf;
}
