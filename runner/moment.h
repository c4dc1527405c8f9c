/* When in a run its value is taken: at its end, at its best, or at a step, a number of tokens or a time.
 *
 *   struct moment moment;
 *   if (!moment_parse("step:200", &moment, &err)) ...
 *   if (!moment_read(db, run_id, "finished", "validation", "loss", &moment, &reading, &err)) ... */
#ifndef RUNNER_MOMENT_H
#define RUNNER_MOMENT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum moment_kind { MOMENT_LAST, MOMENT_BEST, MOMENT_STEP, MOMENT_TOKENS, MOMENT_SECONDS };

struct moment {
    enum moment_kind kind;
    double amount; /* steps, tokens or seconds */
};

/* "last", "best", "step:N", "tokens:N", "seconds:N". False with what is accepted. */
bool moment_parse(const char *text, struct moment *moment, struct error *err);

/* "at last step", "at each run's best", "at step 200", "at 51200 tokens", "at 30 seconds". Returns buf. */
enum { MOMENT_SIZE = 64 };
const char *moment_format(const struct moment *moment, char buf[MOMENT_SIZE]);
/* As it was given: "step:200". Returns buf. */
const char *moment_name(const struct moment *moment, char buf[MOMENT_SIZE]);

/* A run's value: of a finished run at its end or its best; else the last logged value at or before the moment of any
 * run that logged one at or after it. */
struct reading {
    bool there;
    bool measured; /* at any moment; not looked for in a run that did not finish, at its end and its best */
    double value;  /* not a number: it was not finite */
    int64_t step, tokens;
    double furthest; /* in the moment's unit: how far the run got; 0 for last and best */
};

/* metric: of evaluations (core/metric.h); train has loss alone. False and err for a metric that is none of them, and
 * for the database's troubles. */
bool moment_read(sqlite3 *db, int64_t run, const char *state, const char *split, const char *metric,
                 const struct moment *moment, struct reading *reading, struct error *err);

#endif
