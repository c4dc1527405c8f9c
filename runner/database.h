/* results.db: the one read-write connection, its schema, and every statement that changes it.
 *
 * Views are the public interface (DESIGN: runs, curves, losses, comparisons, run_config, knobs); tables are ours.
 * losses and comparisons are kept up to date by database_summarize() in the transaction that ends a run. */
#ifndef RUNNER_DATABASE_H
#define RUNNER_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/trainer.h"
#include "runner/sweep.h"

struct database;

/* Read and write: makes the file and its folder when absent, migrates an older one, takes the lock file (path +
 * ".lock", held by the kernel; the message names the holder's pid, host and command), switches to WAL. Refuses newer
 * and foreign files. */
struct database *database_open(const char *path, struct error *err);
/* True when another process holds the lock file of this database now; holder gets who ("pid 12 on host: runner run
 * quick.yaml"). Takes and changes nothing: this is how a second `run` knows that database_open() will do after a wait.
 */
bool database_lock_holder(const char *path, char *holder, size_t size);
/* Back to a single plain file: WAL checkpointed, journal mode delete. Takes NULL. False when that failed. */
bool database_close(struct database *database, struct error *err);

/* Read only; works beside a writer and on read-only media. A file that does not exist is an error that names it. */
sqlite3 *database_open_reader(const char *path, struct error *err);

/* Freezes the sweep: experiment, variants, runs (existing keys are linked, not changed), tokenizer images. One
 * transaction. */
bool database_freeze(struct database *database, const struct sweep *sweep, struct error *err);

/* True when the database already holds this sweep exactly as database_freeze() would leave it: nothing to write. */
bool database_is_frozen(sqlite3 *db, const struct sweep *sweep);

enum run_state { RUN_NONE, RUN_QUEUED, RUN_RUNNING, RUN_FINISHED, RUN_DIVERGED, RUN_FAILED, RUN_INTERRUPTED };
const char *run_state_name(enum run_state state);

/* State of a run by key; RUN_NONE when the database does not have it. steps_done: rows of its curve. */
enum run_state database_run_state(sqlite3 *db, const char *key, int64_t *steps_done, char *reason, size_t reason_size);

/* All runs left `running` by a process that is gone become `interrupted`. */
bool database_recover(struct database *database, struct error *err);

struct run_environment {
    char host[65], cpu[128], kernels[16], blas[64], precision[16], git_commit[48], version[32];
};

struct evaluation_row {
    int64_t step, tokens;
    double seconds;
    char split[64];
    struct evaluation_record record;
};

/* A worker has started (again) from `step` updates. In one transaction: state running, environment noted, and the whole
 * curve of the run replaced by the given rows (what the checkpoint held; none at step 0). */
bool database_run_start(struct database *database, const char *key, int64_t step,
                        const struct run_environment *environment, const struct step_record *steps, size_t step_count,
                        const struct evaluation_row *evaluations, size_t evaluation_count, struct error *err);

/* Appends; buffered into one transaction at least every second and before any state change (database_flush()). */
bool database_step(struct database *database, const char *key, const struct step_record *record, struct error *err);
bool database_evaluation(struct database *database, const char *key, const struct evaluation_row *row,
                         struct error *err);
bool database_flush(struct database *database, struct error *err);

/* Ends a run: state, reason ("loss is nan at step 17", "killed by signal 9"), end of its log, and the summaries anew.
 */
bool database_run_end(struct database *database, const char *key, enum run_state state, const char *reason,
                      const char *log_tail, struct error *err);

/* Recomputes losses and comparisons of an experiment (name). */
bool database_summarize(struct database *database, const char *experiment, struct error *err);

/* Text of `runner schema`: every view and column with its doc, or the SQL itself. Static or owned by the module. */
const char *database_schema_sql(void);

#endif
