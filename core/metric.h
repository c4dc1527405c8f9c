/* What an evaluation measures of held-out text. From a row come the column of results.db and its part of the views,
 * what is summarised and compared, `--metric`, `compare.metric`, and the figures.
 *
 *   struct metric_sums sums = {{0}};
 *   metric_count(&sums, logits, ld, targets, rows, V); a part of the text after the other
 *   metric_finish(&sums, &record);                     record.tokens and .bytes are there
 *
 * To add a metric: (1) a row, the last one: results.db and checkpoints count those of their first version from the
 * front; (2) in metric.c the function that counts rows of logits, or the one that makes a value of a sum, whichever is
 * not there yet. */
#ifndef CORE_METRIC_H
#define CORE_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/real.h"

/* ROW(name, what each target token adds up to, what becomes of the sum, better, name on an axis, unit) */
/* clang-format off */
#define METRICS(ROW)                                                                                                   \
    ROW(loss,          nats_count, mean_make,          LOWER_IS_BETTER, "loss",       "nats per token")                \
    ROW(bits_per_byte, nats_count, bits_per_byte_make, LOWER_IS_BETTER, "loss",       "bits per byte")                 \
    ROW(perplexity,    nats_count, perplexity_make,    LOWER_IS_BETTER, "perplexity", "exp of nats per token")
/* clang-format on */

#define METRIC_NUMBER(name, ...) METRIC_##name,
enum { METRICS(METRIC_NUMBER) METRIC_COUNT };
#undef METRIC_NUMBER

#define METRIC_FIELD(name, ...) double name;
struct evaluation_record {
    int64_t blocks, tokens, bytes; /* bytes of text that the target tokens stand for */
    METRICS(METRIC_FIELD)
};
#undef METRIC_FIELD

enum metric_better { LOWER_IS_BETTER, HIGHER_IS_BETTER };

struct metric {
    const char *name;
    /* Sum over the rows of logits [rows, V] at distance ld whose target is not -1; the logits stay as they are. */
    double (*count)(real *logits, size_t ld, const int32_t *targets, size_t rows, size_t V);
    double (*value)(double sum, const struct evaluation_record *record);
    enum metric_better better;
    const char *label, *unit; /* "loss", "bits per byte" */
    size_t offset;            /* in struct evaluation_record */
};
extern const struct metric metrics[METRIC_COUNT];

/* NULL when there is none. */
const struct metric *metric_find(const char *name);
/* False for a name that is no metric's. */
bool metric_higher_is_better(const char *name);
/* The names, `last` before the last one: "loss, bits_per_byte and perplexity". Returns buf. */
const char *metric_list(const char *last, char *buf, size_t size);

struct metric_sums {
    double of[METRIC_COUNT];
};
void metric_count(struct metric_sums *sums, real *logits, size_t ld, const int32_t *targets, size_t rows, size_t V);
void metric_add(struct metric_sums *sums, const struct metric_sums *more);
/* Fills the metrics of a record whose tokens and bytes are counted; not a number where nothing is to divide by. */
void metric_finish(const struct metric_sums *sums, struct evaluation_record *record);

#endif
