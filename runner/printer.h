/* The bytes of a text as they come, token by token: to a pipe or file as they are, to a terminal so that they cannot
 * drive it. */
#ifndef RUNNER_PRINTER_H
#define RUNNER_PRINTER_H

#include <stdbool.h>
#include <stdio.h>

#include "core/unicode.h"

struct printer {
    FILE *out;
    bool terminal; /* controls but tab and newline, what does not show, and bytes that are no UTF-8 are escaped */
    char held[4];  /* the beginning of a character */
    size_t held_size;
};

/* Flushes. */
void printer_add(struct printer *printer, struct text text);
/* What is left of a character that did not end. */
void printer_end(struct printer *printer);

#endif
