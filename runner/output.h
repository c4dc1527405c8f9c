/* Files that are whole or absent: written under a temporary name, every write and close checked, made durable, renamed.
 *
 *   struct output out;
 *   bool ok = output_open(&out, path, &err) && output_write(&out, bytes, size, &err) && output_commit(&out, &err);
 *   output_discard(&out);                                  // after a commit: nothing; else removes what was begun */
#ifndef RUNNER_OUTPUT_H
#define RUNNER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct output {
    int fd; /* -1: not open */
    char path[4096];
    char temporary[4096]; /* ".<name>.tmp" beside path */
};

bool output_open(struct output *output, const char *path, struct error *err);
bool output_write(struct output *output, const void *bytes, size_t size, struct error *err);
bool output_commit(struct output *output, struct error *err);
void output_discard(struct output *output);

/* The folder and its missing parents. */
bool folder_make(const char *path, struct error *err);

/* True for names that output_open() makes: a file of that name with no writer is left over from a crash. */
bool output_is_temporary(const char *name);

#endif
