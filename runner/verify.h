/* Whether results are what they were written as: the database, the keys of its runs, and the files beside it. */
#ifndef RUNNER_VERIFY_H
#define RUNNER_VERIFY_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum verify_check {
    VERIFY_DATABASE,    /* SQLite's integrity_check */
    VERIFY_LINKS,       /* foreign keys */
    VERIFY_KEYS,        /* each run's key is the hash of its frozen configuration, seed, text and tokenizer */
    VERIFY_CURVES,      /* a finished run has every step once */
    VERIFY_CHECKPOINTS, /* sizes, headers and SHA-256 */
    VERIFY_WEIGHTS,     /* a finished run's: names, shapes, the run they are of */
    VERIFY_COUNT
};
const char *verify_name(enum verify_check check);

struct verify {
    int64_t looked_at[VERIFY_COUNT], wrong[VERIFY_COUNT];
    /* Called for each thing that is wrong. */
    void (*tell)(void *context, enum verify_check check, const char *text);
    void *context;
};

/* Reads only. Checkpoints of runs that train meanwhile may be gone before they are read: that is not wrong. False and
 * err when it cannot be done at all. */
bool verify_all(sqlite3 *db, const char *database_path, struct verify *verify, struct error *err);

#endif
