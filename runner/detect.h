/* How many seeds would find a difference of a given size, from the spread that results.db already holds. */
#ifndef RUNNER_DETECT_H
#define RUNNER_DETECT_H

#include <jansson.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "runner/experiment.h"

struct detect_row {
    char *variant;
    size_t pairs;
    double sd;    /* of the paired differences to the baseline */
    size_t seeds; /* 0: more than SEEDS_LIMIT */
};

struct detection {
    double difference, alpha;
    size_t comparisons; /* alpha is shared among so many, as Holm's first step does */
    char *metric, *split;
    bool elsewhere;          /* nothing of this experiment is known: rows are those of all others */
    struct detect_row *rows; /* variants with two pairs or more, then, when there are several, all pooled */
    size_t row_count;
};

/* db: NULL when there is none yet. Owner: caller, detection_release(). */
bool detection_read(struct detection *detection, sqlite3 *db, const struct experiment *experiment, double difference,
                    struct error *err);
void detection_release(struct detection *detection);

/* The fewest pairs whose minimum detectable effect is at most the difference; 0 above SEEDS_LIMIT. */
size_t seeds_to_detect(double sd, double difference, double alpha);

void detection_write(const struct detection *detection, FILE *out);
json_t *detection_json(const struct detection *detection);

#endif
