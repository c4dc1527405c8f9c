/* What the commands about one experiment file share: where its results lie, its sweep, and what is left to do. */
#ifndef RUNNER_SESSION_H
#define RUNNER_SESSION_H

#include <stdbool.h>

#include "runner/command.h"
#include "runner/schedule.h"
#include "runner/sweep.h"

/* Folders lie beside the database. */
struct session {
    const struct arguments *arguments;
    const char *database_path;
    char *folder, *cache, *checkpoints, *logs;
    char *words;      /* the command as it could be typed again */
    char *words_once; /* the same without --retry */
    struct sweep *sweep;
};

/* The command has options db, set, seeds, only, yes and shard, and FILE as its first argument. */
void session_begin(struct session *session, const struct command *command, const struct arguments *arguments);
void session_end(struct session *session);

/* The file, its data and the keys of its runs, into session->sweep. EXIT_DONE, or the exit code when something is wrong
 * with them: all of it has been told on standard error. cache_folder: session->cache, or a shadow of it (shadow.h). */
int session_load(struct session *session, const char *cache_folder);

/* "runner plot NAME --db PATH": another command about its experiment as it could be typed. Owner: caller,
 * memory_free(). */
char *session_command(const struct session *session, const char *command);

/* *reader gets the database, NULL when there is none yet. */
bool session_reader(const struct session *session, sqlite3 **reader, struct error *err);

#endif
