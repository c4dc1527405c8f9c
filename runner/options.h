/* A command line against the rows of a command: what main() does before a command runs. */
#ifndef RUNNER_OPTIONS_H
#define RUNNER_OPTIONS_H

#include "core/error.h"
#include "runner/command.h"

/* argv[0..count-1] without the program's and the command's name. *help: --help or -h was there, nothing else was
 * checked. False and err on an unknown option (with the nearest name), a missing or bad value, an option given twice,
 * too few or too many arguments. Afterwards: arguments_release(), also after a failure. */
bool arguments_parse(const struct command *command, int count, char *const *argv, struct arguments *arguments,
                     bool *help, struct error *err);
void arguments_release(struct arguments *arguments);

#endif
