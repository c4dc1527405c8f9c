/* What becomes of a run whose task is over without a last record. */
#ifndef RUNNER_VERDICT_H
#define RUNNER_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

/* True: it is submitted again, from its checkpoint. False: it has failed, for `reason`. word: Slurm's state, "" when it
 * does not know the job any more; begun: a task of the run has written something; said_stopped: the task said itself
 * that it stopped and can go on. */
bool task_goes_on(const char *word, bool begun, bool has_checkpoint, bool said_stopped, char *reason, size_t size);

#endif
