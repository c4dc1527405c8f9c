/* Tables and views of results.db: how they are made, brought up to date, and what each column means.
 *
 * Tables are ours and change by migrations, counted by user_version. Views are the public interface: they are compared
 * with what this program would make whenever the database is opened for writing, and made anew when they differ, so an
 * old database gets new views and new knobs.
 *
 * To add a table or change one: append a migration in schema.c; a metric of evaluations brings its columns itself
 * (core/metric.h). merge takes new columns of run and experiment along by itself, those of other tables where it copies
 * their rows (merge_rows.c, merge_experiment.c). To add a view: its row in schema_views.c. */
#ifndef RUNNER_SCHEMA_H
#define RUNNER_SCHEMA_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { SCHEMA_APPLICATION_ID = 0x72756e72 }; /* "runr" */

/* SQL of each version, the first makes an empty database a version 1. */
extern const char *const schema_migrations[];
extern const size_t schema_version;

/* What a file is: ours and of which version (0: empty, to be made). False and err for files of other programs, for
 * versions above `known`, and for what is no database at all. Reads only. */
bool schema_check(sqlite3 *db, size_t known, size_t *version, struct error *err);

/* Runs the migrations that are missing, adds columns of metrics that are, remakes views that differ, refreshes the list
 * of knobs. Needs a transaction. */
bool schema_update(sqlite3 *db, const char *const *migrations, size_t count, struct error *err);

/* *all: the database has a column for every metric. */
bool schema_has_metrics(sqlite3 *db, bool *all, struct error *err);

struct schema_column {
    const char *name, *doc;
};

struct schema_view {
    const char *name, *doc;
    const struct schema_column *columns;
    size_t column_count;
};

/* NULL past the last. Static. */
const struct schema_view *schema_view(size_t index);

/* "create view ..." of a view. Owner: caller, memory_free(). */
char *schema_view_sql(const struct schema_view *view);

/* Everything: tables and views as SQL. Owner: caller, memory_free(). */
char *schema_sql(void);

#endif
