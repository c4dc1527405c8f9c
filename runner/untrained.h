/* Runs that did not train, told by their validation curves beside those of the best variant.
 *
 * A run did not train when it ends no lower than an untrained model of its tokenizer is (the lowest first evaluation),
 * or when it got stuck: it ends above where the best variant stood after a quarter of its training, lacks more than a
 * tenth of what training gave that variant, and has fallen since its own quarter by less than a quarter of what the
 * best variant has. That is what a decoder does that learns how frequent each token is and nothing else. Bits per byte,
 * so that tokenizers compare. */
#ifndef RUNNER_UNTRAINED_H
#define RUNNER_UNTRAINED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/loss_table.h"

/* A finished run's curve, as far as it matters here. */
struct progress_points {
    size_t variant; /* index */
    int64_t tokenizer;
    double first, quarter, last; /* not a number: not logged, or not finite */
    bool untrained;              /* the answer */
};

void untrained_find(struct progress_points *runs, size_t count, size_t variant_count);

/* Sets MARK_UNTRAINED on the rows that have such a run. */
bool untrained_mark(sqlite3 *db, int64_t experiment, struct loss_table *table, struct error *err);

#endif
