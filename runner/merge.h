/* Uniting results databases: rows of others join one, in a transaction of the caller.
 *
 *   struct merge *merge = merge_begin(target, "all.db", MERGE_DATABASES);
 *   ok = merge_add(merge, "part-0.db", source, &err) && ... && merge_finish(merge, &err);
 *   merge_free(merge);
 *
 * The outcome depends neither on the order nor on how often a file is merged. Of one run, what has ended (finished,
 * diverged) beats what has not, then more steps win; two that ended must have the same curve, as bits, else the merge
 * is refused and both files are named. Times and hosts are those of the one that ended first. A run that was training
 * counts as interrupted. Experiments of one name add up; where they mean different runs by one variant and seed
 * and both were begun, the merge is refused, unless one database keeps the other's set as NAME@1: then that one was
 * changed later, and its settings hold. */
#ifndef RUNNER_MERGE_H
#define RUNNER_MERGE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "core/error.h"

enum merge_kind {
    MERGE_DATABASES,
    MERGE_TASKS, /* from a task's own database (task.h), again and again: it knows best how its run stands */
};

struct merge;

struct merge *merge_begin(sqlite3 *target, const char *target_name, enum merge_kind kind);
/* source: of database_open_source(). False and err names the files; the caller rolls back. */
bool merge_add(struct merge *merge, const char *source_name, sqlite3 *source, struct error *err);
/* Why merge_add() failed: what the two hold cannot be united. Else a database could not be read or written. */
bool merge_was_refused(const struct merge *merge);
/* Losses and comparisons anew, of the experiments concerned. */
bool merge_finish(struct merge *merge, struct error *err);
void merge_free(struct merge *merge); /* takes NULL */

#endif
