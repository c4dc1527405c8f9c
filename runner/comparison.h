/* Variants of an experiment compared by one number a run: samples over seeds, differences paired by seed, verdicts
 * adjusted over all of them. What the summaries keep of the last step and `table --at` computes of any other point. */
#ifndef RUNNER_COMPARISON_H
#define RUNNER_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/statistics.h"

/* What a run gave, in one measure. */
struct outcome {
    size_t variant; /* index */
    int64_t seed;
    double value; /* not a number: it was not finite */
};

struct outcomes {
    struct outcome *items;
    size_t count;
};
void outcome_add(struct outcomes *outcomes, struct outcome outcome);
void outcomes_release(struct outcomes *outcomes);

/* One variant. The second half is of those that have a baseline to be compared with. */
struct compared {
    struct sample sample; /* of the finite values */
    size_t not_finite;
    struct paired paired; /* differences to the baseline of the seeds that both have */
    double p_holm;        /* adjusted over all variants */
    enum verdict verdict;
    size_t seeds; /* as verdict_of() counts them */
};

struct comparison_rules {
    double margin, alpha;
    bool higher; /* is better */
};

/* baseline: index, or any number from variant_count on when there is none. Fills variant_count rows. */
void variants_compare(const struct outcomes *outcomes, size_t variant_count, size_t baseline,
                      struct comparison_rules rules, struct compared *rows);

/* p and verdict of each row's `paired`, adjusted over the rows; rows without two pairs take no part. */
void verdicts_set(struct compared *rows, size_t count, struct comparison_rules rules);

#endif
