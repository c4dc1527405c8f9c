/* The manual page and what shells complete, made from the rows of commands and options. */
#ifndef RUNNER_COMPLETION_H
#define RUNNER_COMPLETION_H

#include <stdio.h>

void manual_write(FILE *out); /* roff, section 1 */
void completion_write_bash(FILE *out);
void completion_write_zsh(FILE *out);
void completion_write_fish(FILE *out);

#endif
