/* What `run` would do with each run of a sweep, from what the database and the checkpoint folder already have. */
#ifndef RUNNER_SCHEDULE_H
#define RUNNER_SCHEDULE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/database.h"
#include "runner/sweep.h"

enum run_action {
    ACTION_NEW,
    ACTION_RESUME,    /* has a checkpoint */
    ACTION_RETRY,     /* diverged or failed before, and asked for: failed ones go on from their checkpoint */
    ACTION_FINISHED,  /* nothing to do */
    ACTION_DIVERGED,  /* left as it is: --retry diverged */
    ACTION_FAILED,    /* left as it is: --retry failed, or its cause */
    ACTION_DUPLICATE, /* the same key as an earlier run of the sweep */
    ACTION_ELSEWHERE, /* of another part of the sweep: --shard */
    ACTION_COUNT
};
const char *run_action_name(enum run_action action); /* "new", "resume", "retry", "finished", ... */
bool run_action_trains(enum run_action action);

struct planned_run {
    enum run_action action;
    enum run_state state;
    int64_t step;     /* of the checkpoint it would go on from; 0: from the start */
    char reason[256]; /* why it diverged or failed */
};

struct schedule {
    struct planned_run *runs; /* one for each of the sweep */
    size_t counts[ACTION_COUNT];
    size_t total; /* runs without duplicates and those of other parts */
    size_t to_train;
};

struct retry {
    bool diverged, failed;
    unsigned causes; /* bit CAUSE: failed runs of that cause */
};

/* Words with commas between them: failed, diverged, and causes of failing (cause.h); NULL: none. */
bool retry_parse(const char *text, struct retry *retry, struct error *err);

/* db NULL: there is no database yet. Changes nothing. Owner: caller, schedule_release(). */
void schedule_make(struct schedule *schedule, sqlite3 *db, const struct sweep *sweep, const char *checkpoint_folder,
                   struct retry retry);
void schedule_release(struct schedule *schedule);

/* "12 runs: 10 finished, 1 diverged (lr=1e6, seed 1337: loss is nan at step 3)": counts, then up to five of those that
 * did not end well by name. Owner: caller, memory_free(). */
char *schedule_summary(const struct schedule *schedule, const struct sweep *sweep);

#endif
