/* A part of a sweep: --shard I/N. A run belongs to the part that its key names, so that adding a value moves no run. */
#ifndef RUNNER_SHARD_H
#define RUNNER_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

struct shard {
    uint64_t index, count; /* count 0: the whole sweep */
};

/* "2/3": the last of three parts; NULL: the whole. */
bool shard_parse(const char *text, struct shard *shard, struct error *err);

/* The key's first 64 bits, modulo the number of parts, are the part's number. */
bool shard_has(struct shard shard, const char *key);

#endif
