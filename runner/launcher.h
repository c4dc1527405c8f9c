/* What an array job asks Slurm for, and the batch script that says so. */
#ifndef RUNNER_LAUNCHER_H
#define RUNNER_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* "key=value" as sbatch has them without the dashes; "key" alone is a flag. Names that `runner` itself gives (job-name,
 * array, output, ...) are refused, and whatever would end its line in the script. */
bool launcher_setting_check(const char *setting, struct error *err);

struct launcher_script {
    const char *path, *name; /* of the script and of the job */
    const char *list, *token, *claim, *log;
    size_t offset, tasks;           /* list lines [offset, offset + tasks) */
    size_t at_once;                 /* 0: as many as there is room for */
    const char *const *settings[2]; /* the file's, then the command line's: these win */
    size_t setting_counts[2];
};

/* Owner of nothing; the script is readable and can be submitted by hand. */
bool launcher_script_write(const struct launcher_script *script, struct error *err);

#endif
