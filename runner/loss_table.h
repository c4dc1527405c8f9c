/* The comparison table of an experiment: what `runner table` shows, read from the summaries of results.db.
 *
 *   struct loss_table *t = loss_table_read(db, experiment_id, metric, split, &err);
 *   loss_table_write(t, TABLE_TEXT, 100, stdout);
 *   loss_table_free(t); */
#ifndef RUNNER_LOSS_TABLE_H
#define RUNNER_LOSS_TABLE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/error.h"
#include "runner/moment.h"
#include "runner/table.h"

/* Why two variants do not compare as they stand. Each is a bit of loss_row.marks. */
enum loss_mark {
    MARK_PARAMETERS, /* more than 2 % apart */
    MARK_TOKENS,
    MARK_TOKENIZER,
    MARK_HOST,
    MARK_KERNELS,
    MARK_PRECISION,
    MARK_CPU_CHANGED, /* a run went on with another processor or other kernels than it began with */
    MARK_UNTRAINED,   /* a run of it did not train: untrained.h */
    MARK_LEAK,        /* a run of it lost less than its text permits: corpus_split_floor() */
    MARK_COUNT,
};

struct loss_row {
    int64_t id;              /* of the variant in the database */
    char *variant, *changes; /* "norm=rmsnorm, residual=post" */
    bool baseline;
    int64_t parameters, tokens; /* of a finished run; 0 = none yet */
    int64_t n, n_planned, n_diverged, n_failed, n_interrupted, n_running, n_queued;
    int64_t n_short;      /* finished before the moment that the table is of */
    int64_t n_unmeasured; /* finished without measuring the metric: before there was one */
    double mean, sd, spread, delta, ci_low, ci_high, p, p_holm, mde; /* not a number: cannot be said */
    char *verdict;                                                   /* NULL for the baseline */
    unsigned marks;
};

struct loss_table {
    char *experiment, *metric, *split;
    struct moment moment;
    double margin, alpha;
    struct loss_row *rows; /* the baseline first, then file order */
    size_t row_count;
    int64_t baseline_parameters; /* 0: no baseline in the database */
    char **troubles;             /* "rmsnorm, seed 3: diverged: loss is nan at step 17" */
    size_t trouble_count;
};

/* The metric and split to show: as asked (NULL: as the experiment says; loss for the training split). False with what
 * there is, and the nearest. Owner of both texts: caller, memory_free(). */
bool loss_table_choose(sqlite3 *db, int64_t experiment, const char *metric, const char *split, char **chosen_metric,
                       char **chosen_split, struct error *err);

/* At the last step. NULL and err. Owner: caller, loss_table_free(). */
struct loss_table *loss_table_read(sqlite3 *db, int64_t experiment, const char *metric, const char *split,
                                   struct error *err);

/* The same table at another moment. err for anything but MOVED; NOT_THERE: no run got so far. */
enum loss_table_result { LOSS_TABLE_MOVED, LOSS_TABLE_NOT_THERE, LOSS_TABLE_FAILED };
enum loss_table_result loss_table_move(struct loss_table *table, sqlite3 *db, int64_t experiment,
                                       const struct moment *moment, struct error *err);

void loss_table_free(struct loss_table *table); /* takes NULL */

/* For people text, Markdown and LaTeX; for programs CSV and JSON. width as in table_write(). */
void loss_table_write(const struct loss_table *table, enum table_format format, int width, FILE *out);

/* Parts of it to put elsewhere: values with the notes, comparisons (no rows without a baseline). Owner: caller,
 * table_free(). */
struct table *loss_table_values(const struct loss_table *table);
struct table *loss_table_comparisons(const struct loss_table *table);

#endif
