/* The metrics of evaluations (core/metric.h) as parts of SQL: two columns each, a value and its kind, as schema.c says.
 *
 * A database that was made before there was a metric gets its columns when it is next opened for writing; evaluations
 * from before have NULL there. */
#ifndef RUNNER_METRIC_SQL_H
#define RUNNER_METRIC_SQL_H

#include "core/metric.h"

/* Those of version 1 of results.db, and of checkpoints. */
enum { METRICS_AT_FIRST = 3 };

#define METRIC_COLUMN(name, ...) ", " #name ", " #name "_kind"
#define METRIC_MARK(...) ", ?, ?"
#define METRIC_TYPE(...) "di"
#define METRIC_FILL(name, ...)                                                                                         \
    ", " #name " = coalesce(" #name ", excluded." #name "), " #name "_kind = coalesce(" #name "_kind, excluded." #name \
    "_kind)"

#define METRIC_COLUMNS METRICS(METRIC_COLUMN) /* ", loss, loss_kind, ..." */
#define METRIC_MARKS METRICS(METRIC_MARK)     /* ", ?, ?, ..." */
#define METRIC_TYPES METRICS(METRIC_TYPE)     /* "didi..", of sql.h */
#define METRIC_FILLS METRICS(METRIC_FILL)     /* ", loss = coalesce(loss, excluded.loss), ...", of an upsert */

#endif
