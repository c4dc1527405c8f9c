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

#include <sys/types.h>

#include "core/error.h"

/* -1 and err on failure. A SIGHUP that is ignored (nohup) stays ignored. Also from here on: writing to a pipe that
 * nobody reads, or past a file limit, is an error of write() and no death. */
int signals_open(struct error *err);
int signals_next(int fd);
/* Puts everything back as it was. */
void signals_close(int fd);

/* For the time before and after: SIGINT, SIGTERM and SIGHUP (unless it is ignored) write the text to standard error and
 * end the process at once with the code, 0: 128 + the signal's number. The text must stay; NULL: as the system has it.
 * Not while signals are open. */
void signals_leave(const char *text, int code);

/* A helper that is killed when signals_leave() ends this process; 0: none. */
void signals_helper(pid_t pid);

/* The first of those three that nobody has taken yet; 0 when there is none. */
int signals_late(int fd);

/* "Killed" for 9. */
const char *signal_name(int number);

#endif
