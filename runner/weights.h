/* The final weights of finished runs, which lie beside a database: checkpoints/<key>/final.safetensors. */
#ifndef RUNNER_WEIGHTS_H
#define RUNNER_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* Where the run's weights are; where a task of a cluster left them (task.h), when they are only there. *there: whether
 * there is such a file. Owner: caller, memory_free(). */
char *weights_path(const char *database, const char *key, bool *there);

/* The run's weights, from beside whichever of the other databases has them, to beside `into`: a second name of the file
 * where the file system allows it, else a copy. What is there already stays. *found: false when none has them. */
bool weights_bring(const char *into, const char *const *from, size_t from_count, const char *key, bool *found,
                   struct error *err);

#endif
