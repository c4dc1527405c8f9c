/* The environment of a program that we start: ours, with some settings in place of those of the same name. */
#ifndef RUNNER_ENVIRONMENT_H
#define RUNNER_ENVIRONMENT_H

/* settings: "NAME=value", ends with NULL. Owner: caller, memory_free(); the texts are not owned. */
char **environment_with(char *const settings[]);

#endif
