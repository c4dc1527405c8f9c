/* A lock that the kernel drops when its process dies, whatever kills it; the file's text names the holder.
 *
 * There are network file systems whose locks hold within one machine only. So a holder renews its file's time, and one
 * on another machine counts as holding while the file is younger than LOCKFILE_FRESH_SECONDS, lock or no lock.
 * Whatever may take long while a lock is held gives signs of life meanwhile: loops, pauses, and waiting for a helper
 * program (child.h). A single transaction does not, and is taken to be shorter. */
#ifndef RUNNER_LOCKFILE_H
#define RUNNER_LOCKFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { LOCKFILE_HOLDER_SIZE = 512, LOCKFILE_FRESH_SECONDS = 180, LOCKFILE_RENEW_SECONDS = 10 };

/* Makes the file when absent and locks it; what a dead process left in it does not matter. While another one holds it:
 * note ("waiting for ..."; may be NULL) once, then tries again for wait_seconds; a handled signal ends the wait. over:
 * whoever the file names is known to have ended, so that a lock alone counts.
 * Returns a descriptor that a started program does not inherit, or -1 and err, which names the holder. */
int lockfile_take(const char *path, const char *command, double wait_seconds, bool over,
                  void (*note)(void *context, const char *text), void *context, struct error *err);

/* A sign of life of all locks of this process, to be called often: given every LOCKFILE_RENEW_SECONDS. */
void lockfile_renew_all(void);

/* Sleeps and gives them; a handled signal ends it. */
void lockfile_pause(double seconds);

/* Removes the file and lets go. Takes -1. */
void lockfile_drop(const char *path, int fd);

/* True when a process holds the lock now, with "pid 12 on host: command". */
bool lockfile_holder(const char *path, char *holder, size_t size);

#endif
