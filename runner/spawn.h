/* A child process with a text or a pipe on its standard input, a pipe from its standard output and a log for its
 * errors. */
#ifndef RUNNER_SPAWN_H
#define RUNNER_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"

struct process {
    pid_t pid;
    int out; /* non-blocking read end of its standard output */
    int in;  /* write end of its standard input, where it was started without a text; else -1 */
};

/* command: path and arguments, ends with NULL. input: at most 60 kB; NULL: process->in. Standard error is appended to
 * the file log_path; *log_begin gets its size before. The child has its own process group, so that a Ctrl-C of the
 * terminal does not reach it, no signal blocked or ignored, one BLAS thread, and oneDNN told to be quiet. */
bool process_start(struct process *process, const char *const *command, const char *input, const char *log_path,
                   int64_t *log_begin, struct error *err);

#endif
