/* A helper program run to its end: found on PATH, no shell, no standard input, a time limit, its output kept. While
 * it runs our locks are renewed (lockfile.h). */
#ifndef RUNNER_CHILD_H
#define RUNNER_CHILD_H

#include <stddef.h>

#include "core/error.h"

enum child_result {
    CHILD_ENDED,       /* *status as of waitpid() */
    CHILD_NOT_STARTED, /* not on PATH, no permission, ... */
    CHILD_HUNG,        /* killed after the time limit */
};

/* Standard output and standard error together, cut to fit, with a final 0. */
struct child_output {
    char *text;
    size_t size, used;
};

/* argv[0] with these arguments, in folder (NULL: ours), with LC_ALL=C and no signal blocked or ignored. A result other
 * than CHILD_ENDED sets err. */
enum child_result child_run(const char *folder, char *const argv[], double timeout, struct child_output *out,
                            int *status, struct error *err);

#endif
