/* Figures of `runner bench --all`: what is measured, what it shall be, and what is said of it.
 *
 * A figure that is a share of a measured ceiling cannot be above 100 %: then something disturbed the measurement, and
 * it is refused, not shown. */
#ifndef RUNNER_BENCH_FIGURE_H
#define RUNNER_BENCH_FIGURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/json.h"
#include "runner/table.h"

struct bench; /* bench_rows.h */

struct bench_figure {
    double value;   /* NaN: not measured */
    bool elsewhere; /* the target is another machine's: the value is shown, without a verdict */
    char note[320]; /* why not; else what one should know beside the value */
};

enum bench_sense { BENCH_AT_LEAST, BENCH_AT_MOST, BENCH_SHOWN /* no target */ };

/* One line of the table. */
struct bench_row {
    const char *name, *unit;
    enum bench_sense sense;
    double target;
    const char *format; /* of target and value, one double */
    bool share;         /* in % of a measured ceiling */
    void (*measure)(struct bench *bench, int64_t argument, struct bench_figure *figure);
    int64_t argument;
};

enum bench_verdict { BENCH_OK, BENCH_SHORT, BENCH_NOT_APPLICABLE, BENCH_REFUSED, BENCH_NO_TARGET };

enum bench_verdict bench_verdict(const struct bench_row *row, const struct bench_figure *figure);
const char *bench_verdict_name(enum bench_verdict verdict);

/* Not measured, and why. */
void bench_absent(struct bench_figure *figure, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bench_value(struct bench_figure *figure, double value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* rows, figures [count]. Owner: caller, table_free(), json_decref(). */
struct table *bench_figures_table(const struct bench_row *rows, const struct bench_figure *figures, size_t count);
json_t *bench_figures_json(const struct bench_row *rows, const struct bench_figure *figures, size_t count);

#endif
