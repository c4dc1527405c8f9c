/* The command line as it could be typed again. */
#ifndef RUNNER_RUN_WORDS_H
#define RUNNER_RUN_WORDS_H

#include "runner/command.h"

/* "runner run 'my file.yaml' --db x.db": arguments and options given but `without` (NULL: all), quoted where a shell
 * needs it. Owner: caller, memory_free(). */
char *run_words(const struct command *command, const struct arguments *arguments, const char *without);

/* Of `run`, only the options that say which runs, as a line of JSON: ["--set", "training.steps=4", "--seeds", "1-3"].
 * Owner: caller, memory_free(). */
char *run_words_choice(const struct arguments *arguments);

#endif
