/* `seeds:` of a file, or --seeds: counted before anything is allocated. */
#ifndef RUNNER_SEEDS_H
#define RUNNER_SEEDS_H

#include <stdint.h>

#include "runner/yaml.h"

struct seed_plan {
    const struct yaml *list; /* NULL: count seeds from start */
    int64_t start;
    uint64_t count;
    struct place place;
};

/* node: list of seeds or {count, start}, NULL for the default; single: value of `seed:` or NULL; option: --seeds,
 * which wins; whole: the count can stand nowhere else. False with problems. */
bool seed_plan_read(const struct yaml *node, const struct yaml *single, const char *option, bool whole,
                    struct seed_plan *plan, struct problems *problems);

/* Each seed once, in order, with a note about repeated ones. Owner: caller, memory_free(). */
int64_t *seed_plan_expand(const struct seed_plan *plan, size_t *count, struct problems *problems);

#endif
