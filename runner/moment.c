/* Values of a run at a moment, from its logged rows. */
#include "runner/moment.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/metric.h"
#include "runner/query.h"
#include "runner/sql.h"

static const struct kind {
    const char *name, *before, *after;
} kinds[] = {[MOMENT_LAST] = {"last", "at last step", ""},
             [MOMENT_BEST] = {"best", "at each run's best", ""},
             [MOMENT_STEP] = {"step", "at step ", ""},
             [MOMENT_TOKENS] = {"tokens", "at ", " tokens"},
             [MOMENT_SECONDS] = {"seconds", "at ", " seconds"}};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static bool amount_parse(const char *text, enum moment_kind kind, double *amount)
{
    char *end;
    errno = 0;
    bool decimal = *text && text[strspn(text, kind == MOMENT_SECONDS ? ".0123456789eE+" : "0123456789")] == 0;
    *amount = strtod(text, &end);
    return decimal && !*end && errno == 0 && isfinite(*amount) && *amount >= 0;
}

bool moment_parse(const char *text, struct moment *moment, struct error *err)
{
    size_t length = strcspn(text, ":");
    for (int k = 0; k < KIND_COUNT; k++) {
        enum moment_kind kind = (enum moment_kind)k;
        bool wants_amount = kind >= MOMENT_STEP;
        *moment = (struct moment){kind, 0};
        if (strlen(kinds[k].name) != length || strncmp(kinds[k].name, text, length) != 0)
            continue;
        if (wants_amount ? text[length] && amount_parse(text + length + 1, kind, &moment->amount) : !text[length])
            return true;
    }
    return error_set(err, "--at is '%.100s', expected last, best, step:N, tokens:N or seconds:N", text);
}

const char *moment_format(const struct moment *moment, char buf[MOMENT_SIZE])
{
    const struct kind *kind = &kinds[moment->kind];
    if (moment->kind < MOMENT_STEP)
        snprintf(buf, MOMENT_SIZE, "%s", kind->before);
    else
        snprintf(buf, MOMENT_SIZE, "%s%.15g%s", kind->before, moment->amount, kind->after);
    return buf;
}

const char *moment_name(const struct moment *moment, char buf[MOMENT_SIZE])
{
    if (moment->kind < MOMENT_STEP)
        snprintf(buf, MOMENT_SIZE, "%s", kinds[moment->kind].name);
    else
        snprintf(buf, MOMENT_SIZE, "%s:%.15g", kinds[moment->kind].name, moment->amount);
    return buf;
}

/* Takes a row's value over when the moment wants it rather than those before it. */
static void row_consider(sqlite3_stmt *row, int value_column, bool higher, const struct moment *moment,
                         struct reading *reading)
{
    if (sqlite3_column_type(row, value_column) == SQLITE_NULL) /* not measured in its time */
        return;
    double value = sqlite3_column_int(row, value_column + 1) ? (double)NAN : sqlite3_column_double(row, value_column);
    double at = moment->kind >= MOMENT_STEP ? sqlite3_column_double(row, (int)moment->kind - MOMENT_STEP) : 0;
    bool better = higher ? !(value <= reading->value) : !(value >= reading->value);
    bool wanted = moment->kind == MOMENT_BEST ? !reading->there || better : at <= moment->amount;
    reading->measured = true;
    reading->furthest = fmax(reading->furthest, at);
    if (!wanted || (moment->kind == MOMENT_BEST && isnan(value) && reading->there))
        return;
    reading->there = true;
    reading->value = value;
    reading->step = sqlite3_column_int64(row, 0);
    reading->tokens = sqlite3_column_int64(row, 1);
}

/* A newer runner measured it. */
static bool metric_unknown(const char *metric, struct error *err)
{
    char list[256];
    return error_set(err, "this runner does not know the metric '%.100s': it knows %s", metric,
                     metric_list(" and ", list, sizeof list));
}

bool moment_read(sqlite3 *db, int64_t run, const char *state, const char *split, const char *metric,
                 const struct moment *moment, struct reading *reading, struct error *err)
{
    bool train = strcmp(split, "train") == 0, more;
    const struct metric *found = metric_find(metric);
    *reading = (struct reading){.value = NAN};
    if (!found)
        return metric_unknown(metric, err);
    int column = 3 + 2 * (int)(found - metrics); /* as query.c lists them */
    if (moment->kind < MOMENT_STEP && strcmp(state, "finished") != 0)
        return true;
    sqlite3_stmt *s = train ? sql_prepare(db, query_text(QUERY_CURVE_TRAIN), "i", err, run)
                            : sql_prepare(db, query_text(QUERY_CURVE_EVALUATION), "it", err, run, split);
    bool ok = s != NULL;
    while (ok && (ok = sql_step(s, &more, err)) && more)
        row_consider(s, column, found->better == HIGHER_IS_BETTER, moment, reading);
    sqlite3_finalize(s);
    if (moment->kind >= MOMENT_STEP && reading->furthest < moment->amount)
        reading->there = false;
    return ok;
}
