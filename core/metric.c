/* The metrics of evaluations: what they count of logits, and what they make of it. */
#include "core/metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/kernels.h"

/* ---- counts ---- */

static double nats_count(real *logits, size_t ld, const int32_t *targets, size_t rows, size_t V)
{
    return kernels()->cross_entropy(logits, ld, targets, false, 1, rows, V);
}

/* ---- values ---- */

static double mean_make(double sum, const struct evaluation_record *record)
{
    return sum / (double)record->tokens;
}

static double bits_per_byte_make(double sum, const struct evaluation_record *record)
{
    return record->bytes ? sum / (0.69314718055994531 * (double)record->bytes) : NAN;
}

static double perplexity_make(double sum, const struct evaluation_record *record)
{
    return exp(mean_make(sum, record));
}

/* ---- all of them ---- */

#define METRIC_ROW(name, count, value, better, label, unit)                                                            \
    {#name, count, value, better, label, unit, offsetof(struct evaluation_record, name)},
const struct metric metrics[METRIC_COUNT] = {METRICS(METRIC_ROW)};

const struct metric *metric_find(const char *name)
{
    for (size_t i = 0; i < METRIC_COUNT; i++)
        if (strcmp(metrics[i].name, name) == 0)
            return &metrics[i];
    return NULL;
}

bool metric_higher_is_better(const char *name)
{
    const struct metric *metric = metric_find(name);
    return metric && metric->better == HIGHER_IS_BETTER;
}

const char *metric_list(const char *last, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = 0;
    for (size_t i = 0; i < METRIC_COUNT && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s",
                                 i == 0                  ? ""
                                 : i + 1 == METRIC_COUNT ? last
                                                         : ", ",
                                 metrics[i].name);
    return buf;
}

/* The first metric that counts the same. */
static size_t counted_by(size_t metric)
{
    size_t first = 0;
    while (metrics[first].count != metrics[metric].count)
        first++;
    return first;
}

void metric_count(struct metric_sums *sums, real *logits, size_t ld, const int32_t *targets, size_t rows, size_t V)
{
    for (size_t i = 0; i < METRIC_COUNT; i++)
        if (counted_by(i) == i)
            sums->of[i] += metrics[i].count(logits, ld, targets, rows, V);
}

void metric_add(struct metric_sums *sums, const struct metric_sums *more)
{
    for (size_t i = 0; i < METRIC_COUNT; i++)
        sums->of[i] += more->of[i];
}

void metric_finish(const struct metric_sums *sums, struct evaluation_record *record)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        double value = metrics[i].value(sums->of[counted_by(i)], record);
        memcpy((char *)record + metrics[i].offset, &value, sizeof value);
    }
}
