/* Takes what tasks have written to their own databases (task.h) over into results.db. Only whoever holds the database
 * gathers. */
#ifndef RUNNER_GATHER_H
#define RUNNER_GATHER_H

#include <stdint.h>
#include <time.h>

#include "runner/database.h"

/* A run whose task is waited for. */
struct gathered {
    const char *key;
    bool changed; /* by the last gather_all() */
    /* private: the file as it was last taken over */
    struct timespec modified;
    int64_t size;
};

/* One transaction over all that changed. A file that is being written at this moment, damaged, or in conflict is left
 * for the next time; note is told of the latter two. */
bool gather_all(struct database *database, const char *shards, struct gathered *runs, size_t count,
                void (*note)(void *context, const char *text), void *context, struct error *err);
/* Before it, where no task writes any more: what a killed one left unfinished is taken back. */
bool gather_tidy(const char *shards, const char *key, struct error *err);

/* The final weights of a finished run go where others look for them. */
bool gather_weights(const char *shards, const char *checkpoints, const char *key, struct error *err);

/* A run that shall be trained again: its task's record goes; anew: its checkpoints too. */
bool gather_forget(const char *shards, const char *key, bool anew, struct error *err);

#endif
