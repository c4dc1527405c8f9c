/* What the user sees while a sweep trains, on standard error: on a terminal one line redrawn in place, elsewhere plain
 * lines (start, each evaluation, end of each run).
 *
 *   struct progress *p = progress_create(runs, count, total, workers, mode, stderr, now);
 *   progress_run_start(p, run, step, now); progress_step(p, ...); ...; progress_tick(p, now);
 *   progress_free(p);
 *
 * Time left counts work in forward passes of a block times the run's operations a token, evaluations included, and
 * spreads what remains over the workers in the order it will be started. Only work done since this command started
 * counts as speed: finished runs and steps before a resume do not. */
#ifndef RUNNER_PROGRESS_H
#define RUNNER_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/knob.h"
#include "core/trainer.h"
#include "runner/database.h"

struct progress;

/* A run that will be trained. Texts belong to the caller and outlive the progress. */
struct progress_run {
    const char *label;
    int64_t seed;
    const struct config *config;
    double flops_per_token;
    const int64_t *split_blocks; /* blocks each evaluation split has */
    size_t split_count;
};

enum progress_mode { PROGRESS_PLAIN, PROGRESS_BAR };
/* Bar when the stream is a terminal that can redraw a line (TERM is not "dumb"). */
enum progress_mode progress_mode_of(FILE *out);

/* total: runs of the sweep with those already finished. Owner: caller, progress_free(). Seconds are of any steady
 * clock; `now` is its value. */
struct progress *progress_create(const struct progress_run *runs, size_t count, size_t total, size_t workers,
                                 enum progress_mode mode, FILE *out, double now);
void progress_free(struct progress *progress); /* takes NULL; ends the bar */

/* run: index in runs. evaluated: splits whose evaluation at `step` is in the curve already. */
void progress_run_start(struct progress *progress, size_t run, int64_t step, size_t evaluated, double now);
void progress_step(struct progress *progress, size_t run, const struct step_record *record, double now);
void progress_evaluation(struct progress *progress, size_t run, const struct evaluation_row *row, double now);
/* state and reason as the database has them; reason may be NULL. */
void progress_run_end(struct progress *progress, size_t run, enum run_state state, const char *reason, double now);

/* A line of its own, above the bar; "label, seed N: " before it when run is not SIZE_MAX. */
void progress_note(struct progress *progress, size_t run, const char *text);

/* Redraws the bar when it is time to (at most 10 times a second). */
void progress_tick(struct progress *progress, double now);

/* Seconds left, NaN while nothing is known yet. */
double progress_left(const struct progress *progress, double now);

/* "0:07", "1:02:03", "3 days 4 h"; "?" for NaN. Returns buf. */
enum { PROGRESS_TIME_SIZE = 32 };
const char *progress_time(double seconds, char buf[PROGRESS_TIME_SIZE]);

#endif
