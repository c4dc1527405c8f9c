/* results.db: the one read-write connection, its schema, and every statement that changes it.
 *
 *   struct database_options options = {.command = "runner run quick.yaml", .wait_seconds = 3600, .note = note};
 *   struct database *db = database_open(path, &options, &err);
 *   database_recover(db, &err); database_freeze(db, sweep, &err);
 *   database_run_start(..); database_step(..); database_evaluation(..); database_run_end(..);
 *   database_flush(db, 60, &err); database_close(db, &err);
 *
 * Views are the public interface (DESIGN: runs, curves, losses, comparisons, run_config, knobs); tables are ours.
 * losses and comparisons are kept up to date in the transaction that ends a run.
 *
 * Training never waits for another process: steps, evaluations, starts and ends of runs join a queue in memory, which
 * is committed in order, in one transaction at least every second; while somebody else holds the database the queue
 * grows and the commit is tried again. Only database_open, _recover, _freeze, _flush and _close wait. */
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

struct database_options {
    const char *command; /* shown to whoever finds the database locked; NULL = "runner" */
    double wait_seconds; /* for another process to let go of the lock file; 0 = refuse at once */
    bool holder_is_over; /* whoever the lock file names has ended: no sign of life of theirs counts, a lock does */
    bool no_wal;         /* rollback journal, as network file systems need; those known as such get it by themselves */
    void (*note)(void *context, const char *text); /* things to tell that are no errors; may be NULL */
    void *context;
};

/* Whether database_open() could make or take the file, as far as can be seen without changing anything or waiting: no
 * folder or foreign file in the way. */
bool database_path_check(const char *path, struct error *err);

/* Whether the file has runner's mark at its beginning, damaged further on or not. */
bool database_is_ours(const char *path);

/* Read and write: makes the file and its folder when absent, migrates an older one, takes the lock file (path +
 * ".lock", held by the kernel; the message names the holder's pid, host and command; a handled signal ends the wait),
 * switches to WAL. An older file is copied aside first (backup.h), and one whose last writer did not end as it should
 * is checked. Refuses newer, foreign and damaged files, and leaves them as they are; one that it could not finish
 * making is removed. All its errors are environment errors (exit 3). options may be NULL. Owner: caller,
 * database_close(). */
struct database *database_open(const char *path, const struct database_options *options, struct error *err);

/* Flushes (up to 60 s), then back to a single plain file: WAL checkpointed, journal mode delete. Takes NULL. False when
 * something was not written; the object is gone all the same. A reader that still holds the file open only delays the
 * tidying to the next command, which is noted. */
bool database_close(struct database *database, struct error *err);

/* The same, but a file that database_open() made goes too: nothing of it is wanted. */
bool database_discard(struct database *database, struct error *err);

/* The connection, to read what is committed. Belongs to the database. */
sqlite3 *database_handle(struct database *database);

/* Read only; works beside a writer and on read-only media. A file that does not exist is an error that names it and
 * says how one is made; an older one is read from a temporary copy brought up to date. Close with sqlite3_close(). */
sqlite3 *database_open_reader(const char *path, struct error *err);

/* Read only, to be merged into another: an older one is brought up to date in a temporary copy, a damaged one (cut, a
 * flipped bit) is refused, nothing is written beside it. still: nobody writes to it now, so that no lock is needed.
 * Close with sqlite3_close(). */
sqlite3 *database_open_source(const char *path, bool still, struct error *err);

/* False and err when the file is damaged: what SQLite says, and how to rescue what can be read. */
bool database_quick_check(sqlite3 *db, const char *path, struct error *err);

/* True when another process has the database open for writing now; holder gets who ("pid 12 on host: runner run
 * quick.yaml"). Takes and changes nothing, and needs no database: this is how a second `run` knows that it will wait.
 */
bool database_lock_holder(const char *path, char *holder, size_t size);

/* Freezes the sweep: experiment, variants, runs (existing keys are linked, not changed), tokenizer images. One
 * transaction. Nothing of an earlier freeze under the same name is lost: seeds and variants add up; when a (variant,
 * seed) now means another key, the earlier set stays as experiment "NAME@1", which is noted. */
bool database_freeze(struct database *database, const struct sweep *sweep, struct error *err);

/* Only the runs, without an experiment: a task's own database (task.h). */
bool database_freeze_runs(struct database *database, const struct sweep *sweep, struct error *err);

/* True when the database already holds this sweep exactly as database_freeze() would leave it: nothing to write. */
bool database_is_frozen(sqlite3 *db, const struct sweep *sweep);

enum run_state { RUN_NONE, RUN_QUEUED, RUN_RUNNING, RUN_FINISHED, RUN_DIVERGED, RUN_FAILED, RUN_INTERRUPTED };
const char *run_state_name(enum run_state state); /* "queued"; RUN_NONE: "none" */
enum run_state run_state_find(const char *name);  /* RUN_NONE when no state has that name */

/* State of a run by key; RUN_NONE when the database does not have it. steps_done: updates made. Both outputs may
 * be NULL. Only what is committed counts: flush first when it matters. */
enum run_state database_run_state(sqlite3 *db, const char *key, int64_t *steps_done, char *reason, size_t reason_size);

/* All runs left `running` by a process that is gone become `interrupted`. */
bool database_recover(struct database *database, struct error *err);

struct run_environment {
    char host[65], cpu[128], kernels[16], blas[96], precision[16], git_commit[48], version[32];
};

struct evaluation_row {
    int64_t step, tokens;
    double seconds;
    char split[64];
    struct evaluation_record record;
};

/* A worker has started (again) from `step` updates. In one transaction: state running, environment noted, and the whole
 * curve of the run replaced by the given rows (what the checkpoint held; none at step 0). The rows are copied. */
bool database_run_start(struct database *database, const char *key, int64_t step,
                        const struct run_environment *environment, const struct step_record *steps, size_t step_count,
                        const struct evaluation_row *evaluations, size_t evaluation_count, struct error *err);

/* Join the queue. False only when the database cannot take it (disk full, key unknown), never because it is busy; what
 * was queued stays queued and the next call tries again. */
bool database_step(struct database *database, const char *key, const struct step_record *record, struct error *err);
bool database_evaluation(struct database *database, const char *key, const struct evaluation_row *row,
                         struct error *err);

/* Ends a run: state, reason ("loss is nan at step 17", "killed by signal 9"; NULL = none), end of its log (or NULL),
 * and the summaries anew. */
bool database_run_end(struct database *database, const char *key, enum run_state state, const char *reason,
                      const char *log_tail, struct error *err);

/* Commits what is due, without waiting: for an event loop in which no record arrives. */
bool database_pump(struct database *database, struct error *err);

/* Commits all that is queued, waiting up to wait_seconds while the database is busy. False when rows are left. */
bool database_flush(struct database *database, double wait_seconds, struct error *err);

/* Recomputes losses and comparisons of an experiment (name). */
bool database_summarize(struct database *database, const char *experiment, struct error *err);

/* RUN of the command line: a key's first hexadecimal digits, or experiment/variant/seed. False with the candidates when
 * it names more than one, with the nearest when it names none, and when the database cannot be read: sql_has_failed()
 * tells. */
bool database_find_run(sqlite3 *db, const char *text, char key[65], struct error *err);

/* The experiment's id. 0 and err, with the nearest name, when there is none. */
int64_t database_find_experiment(sqlite3 *db, const char *name, struct error *err);

/* The image (tokenizer_save) that the run was trained with. NULL and err. Owner: caller, memory_free(). */
void *database_tokenizer(sqlite3 *db, const char *key, size_t *size, struct error *err);

/* The run's effective configuration as JSON, every knob. NULL and err. Owner: caller, memory_free(). */
char *database_run_config(sqlite3 *db, const char *key, struct error *err);

#endif
