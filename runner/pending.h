/* What training has told and the database does not have yet: a queue committed in order, never waited for.
 *
 * While another process holds the database, commits fail at once or after PENDING_PATIENCE and are tried again later;
 * the queue grows meanwhile. Nothing leaves it before its commit succeeded. */
#ifndef RUNNER_PENDING_H
#define RUNNER_PENDING_H

#include <sqlite3.h>

#include "runner/database.h"

enum {
    PENDING_PATIENCE = 40,  /* milliseconds that a commit may wait for others */
    PENDING_CHUNK = 20000,  /* rows a transaction: some 40 ms */
    PENDING_MOST = 1000000, /* rows in memory before a caller has to wait after all */
};

struct pending;

struct pending *pending_create(sqlite3 *db);
void pending_free(struct pending *pending); /* takes NULL; what is queued is lost */

/* Join the queue. Everything is copied. */
void pending_start(struct pending *pending, const char *key, int64_t step, const struct run_environment *environment,
                   const struct step_record *steps, size_t step_count, const struct evaluation_row *evaluations,
                   size_t evaluation_count);
void pending_step(struct pending *pending, const char *key, const struct step_record *record);
void pending_evaluation(struct pending *pending, const char *key, const struct evaluation_row *row);
void pending_end(struct pending *pending, const char *key, enum run_state state, const char *reason,
                 const char *log_tail);

/* Commits when a second has passed since the last time, or at once when urgent. False on errors other than busy. */
bool pending_pump(struct pending *pending, bool urgent, struct error *err);

/* Until the queue is empty or wait_seconds have passed. */
bool pending_flush(struct pending *pending, double wait_seconds, struct error *err);

#endif
