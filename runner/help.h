/* Help made from the rows of commands and options. */
#ifndef RUNNER_HELP_H
#define RUNNER_HELP_H

#include <stdio.h>

#include "runner/command.h"

void help_overview(FILE *out);
void help_command(const struct command *command, FILE *out);

/* NULL when there is none of that name. */
const struct command *command_find(const char *name);

/* Name of the visible command nearest to word, NULL when none is near. */
const char *command_nearest(const char *word);

#endif
