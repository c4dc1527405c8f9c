/* Signals as readable events, so that one poll() loop waits for workers, users and the clock alike.
 *
 *   int fd = signals_open(&err);          // SIGCHLD, SIGINT, SIGTERM, SIGHUP no longer interrupt
 *   int number = signals_next(fd);        // 0: none waiting
 *   signals_close(fd);
 *
 * Between open and close children must be started with an empty signal mask (the supervisor does). */
#ifndef RUNNER_SIGNALS_H
#define RUNNER_SIGNALS_H

#include "core/error.h"

/* -1 and err on failure. A SIGHUP that is ignored (nohup) stays ignored. Also from here on: writing to a pipe that
 * nobody reads, or past a file limit, is an error of write() and no death. */
int signals_open(struct error *err);
int signals_next(int fd);
/* Puts everything back as it was. */
void signals_close(int fd);

/* "Killed" for 9. */
const char *signal_name(int number);

#endif
