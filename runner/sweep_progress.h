/* The progress of some runs of a sweep. */
#ifndef RUNNER_SWEEP_PROGRESS_H
#define RUNNER_SWEEP_PROGRESS_H

#include "runner/progress.h"
#include "runner/sweep.h"

/* queue[0 .. count): runs of the sweep that will be trained, by index. *blocks: the caller's, memory_free() after
 * progress_free(). Owner: caller, progress_free(). */
struct progress *sweep_progress_create(const struct sweep *sweep, const size_t *queue, size_t count, size_t workers,
                                       enum progress_mode mode, int64_t **blocks);

#endif
