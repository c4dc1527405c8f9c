/* Which array of a batch system has the runs of a list: a file that is made once, whole, by whoever comes first. */
#ifndef RUNNER_TASK_CLAIM_H
#define RUNNER_TASK_CLAIM_H

#include <stdbool.h>

#include "core/error.h"

/* Fine when it is there already, whoever holds it. */
bool claim_make(const char *claim, const char *array, struct error *err);

/* False when there is none. */
bool claim_holder(const char *claim, char array[24]);

#endif
