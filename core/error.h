/* How the core reports what went wrong: into a caller's buffer, never to a terminal. */
#ifndef CORE_ERROR_H
#define CORE_ERROR_H

#include <stdbool.h>

struct error {
    char text[1024]; /* one line without a newline: what failed, the offending text, what would do */
};

/* Writes the message (cut to fit) and returns false, so that `return error_set(err, ...)` reads well.
 * err may be NULL. */
bool error_set(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " before the message already there. Returns false. */
bool error_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
