/* Which runs of a sweep a part of it has: read off the run's key, nothing else. */
#include "runner/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARDS_MOST = 1000000, KEY_DIGITS = 16 /* 64 bits */ };

/* Digits alone, at most SHARDS_MOST; *end gets what follows them. */
static bool number_read(const char *text, uint64_t *number, const char **end)
{
    size_t length = strspn(text, "0123456789");
    *end = text + length;
    *number = length && length <= 7 ? strtoull(text, NULL, 10) : UINT64_MAX;
    return *number <= SHARDS_MOST;
}

bool shard_parse(const char *text, struct shard *shard, struct error *err)
{
    *shard = (struct shard){0, 0};
    const char *rest;
    if (!text)
        return true;
    bool good = number_read(text, &shard->index, &rest) && *rest == '/' &&
                number_read(rest + 1, &shard->count, &rest) && !*rest && shard->index < shard->count;
    return good || error_set(err,
                             "--shard is '%.100s', expected I/N with I from 0 to N - 1 and N at most %d: 0/3, 1/3 and "
                             "2/3 are the parts of a sweep in three",
                             text, SHARDS_MOST);
}

bool shard_has(struct shard shard, const char *key)
{
    char digits[KEY_DIGITS + 1];
    if (!shard.count)
        return true;
    snprintf(digits, sizeof digits, "%s", key);
    return strtoull(digits, NULL, 16) % shard.count == shard.index;
}
