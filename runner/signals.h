/* Signals as readable events, so that one poll() loop waits for workers, users and the clock alike.
 *
 *   int fd = signals_open(&err);          // SIGCHLD, SIGINT, SIGTERM, SIGHUP are noted and do nothing else
 *   int number = signals_next(fd);        // 0: none waiting
 *   signals_close(fd);
 *
 * One at a time in a process. Handlers and a pipe, not a blocked mask: the threads that a BLAS makes while it is loaded
 * have masks of their own, and a signal that one of them does not block would end the process. */
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
