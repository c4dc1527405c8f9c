/* runner bench --profile: the time of a training step by operation. */
#ifndef RUNNER_BENCH_PROFILE_H
#define RUNNER_BENCH_PROFILE_H

#include "core/profile.h"
#include "runner/bench_model.h"
#include "runner/json.h"
#include "runner/table.h"

struct bench_profile {
    struct profile times;    /* of `steps` steps */
    double seconds_per_step; /* by the clock around them */
    double plain_seconds;    /* of a step without the profile */
    size_t steps;
};

void bench_profile_measure(struct bench_model *model, size_t steps, struct bench_profile *profile);

/* One row an operation that took time, products with their rate, and the sum beside the step. Owner: caller. */
struct table *bench_profile_table(const struct bench_profile *profile, const char *name);
json_t *bench_profile_json(const struct bench_profile *profile);

#endif
