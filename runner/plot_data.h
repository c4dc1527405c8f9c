/* The values behind a figure, as its query gives them: runs of variants in the file's order, each with its points. */
#ifndef RUNNER_PLOT_DATA_H
#define RUNNER_PLOT_DATA_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

struct plot_point {
    int64_t step;
    double x, value; /* value is not finite where the database says so */
};

struct plot_run {
    int64_t seed;
    bool diverged, failed, finished; /* none: queued, running or interrupted */
    struct plot_point *points;
    size_t count;
    size_t finite; /* points with a finite value, which on a logarithmic axis is above 0 */
};

struct plot_variant {
    char *label;         /* clean */
    char *down, *across; /* levels of the two knobs of a heat map, clean; else NULL */
    bool baseline;
    struct plot_run *runs;
    size_t run_count;
};

struct plot_data {
    struct plot_variant *variants;
    size_t variant_count;
    int64_t blocks, final_blocks; /* of text that an evaluation reads at most, and the last one, of the baseline; 0 =
                                     all; none of training */
    size_t unshown;               /* finite values at or below 0, which a logarithmic axis does not have */
    char *down, *across;          /* the two knobs of a heat map; else NULL */
    char *sql;                    /* the query with the values that were bound, as SQLite writes them */
};

struct plot_query {
    const char *sql;
    const char *experiment, *split, *metric, *x;
    bool logarithmic;
};

/* Columns: variant, seed, state, baseline, step, x, value; a run without values has one row whose step is NULL. A heat
 * map's have four more: knob and level down, knob and level across. */
bool plot_data_read(sqlite3 *db, const struct plot_query *query, struct plot_data *data, struct error *err);
void plot_data_release(struct plot_data *data);

/* A line over the seeds of a variant. */
struct plot_mean {
    double x, value, low, high; /* low and high: 95 % t interval; smallest and largest of two */
    double smoothed;            /* not a number unless asked for */
    size_t n;
};

/* Mean at each step over the finished runs (none yet: over those that still may); a step without a finite value is left
 * out. smooth above 1: exponential average with factor 1 - 1/smooth, debiased. Owner: caller, memory_free(). */
struct plot_mean *plot_mean_of(const struct plot_variant *variant, int64_t smooth, size_t *count);

/* Runs of k neighbouring points become one (their mean), so that a line has at most `most` points. Returns k. */
size_t plot_run_thin(struct plot_run *run, size_t most);
size_t plot_mean_thin(struct plot_mean *line, size_t *count, size_t most);

/* "1 of 3 diverged, 1 of 3 failed", "" when all is well; and that there is nothing to draw. Returns buf. */
enum { PLOT_STATUS_SIZE = 160 };
const char *plot_variant_status(const struct plot_variant *variant, bool logarithmic, char buf[PLOT_STATUS_SIZE]);

#endif
