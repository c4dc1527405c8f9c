/* One run as a job of a batch system: `runner work --task LIST --index N`.
 *
 * LIST has a line of JSON a run, behind a first line about the whole. A task trains the run of its line into a database
 * of its own, with a rollback journal, so that no file ever has two writers:
 *
 *   <results>/shards/<key>/run.db          its row and curve
 *   <results>/shards/<key>/step-N.ckpt     its checkpoints
 *   <results>/shards/<key>/tries           how many tasks in a row came no further, and the step they stood at
 *
 * Whoever follows the sweep gathers these into results.db (gather.h). */
#ifndef RUNNER_TASK_H
#define RUNNER_TASK_H

#include <stddef.h>

#include "core/error.h"
#include "runner/sweep.h"

enum { TASK_TRIES = 3 }; /* tasks in a row that come no further, before the run is given up */
enum { TASK_TOKEN_SIZE = 40 };

/* What the tasks of a list have in common. */
struct task_round {
    size_t chunk;                /* tasks an array has at most */
    size_t at_once;              /* tasks of all arrays that may run at once; 0: no limit */
    char token[TASK_TOKEN_SIZE]; /* of no other list, not even one that was in the same file; lists of old: "" */
};
void task_token_make(char token[TASK_TOKEN_SIZE]);

struct task_settings {
    const char *shards, *logs; /* folders that exist */
    int64_t checkpoint_every, hang_after;
};

/* Of runs[0 .. count) of the sweep. Whole or not at all. */
bool task_list_write(const char *path, const struct sweep *sweep, const size_t *runs, size_t count,
                     const struct task_round *round, const struct task_settings *settings, struct error *err);

struct task_list {
    char *experiment;
    struct task_round round;
    size_t count;
    char (*keys)[65];
};
bool task_list_read(const char *path, struct task_list *list, struct error *err);
void task_list_release(struct task_list *list);

/* Of its first line alone. */
bool task_list_token(const char *path, char token[TASK_TOKEN_SIZE], struct error *err);

/* "<shards>/<key>/<name>". Owner: caller, memory_free(). */
char *task_path(const char *shards, const char *key, const char *name);

/* The whole life of the process. claim: a file that says which array of the batch system has these runs, made by its
 * first task; a task of another array leaves at once, and so does one whose token is not the list's: it was submitted
 * for an earlier list in the same file. NULL: neither is asked. Exit code: 0 finished or diverged, 1 failed, 75 stopped
 * and resumable, 2 the list is wrong, 3 environment. */
int task_run(const char *list, size_t index, const char *claim, const char *token);

#endif
