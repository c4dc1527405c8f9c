/* The stopwatch of a step's operations. */
#include "core/profile.h"

#include <assert.h>
#include <string.h>

static const char *const names[PROFILE_OPERATIONS] = {
    [PROFILE_BATCH] = "batch",
    [PROFILE_EMBEDDING] = "embedding",
    [PROFILE_NORM] = "norm",
    [PROFILE_QKV] = "query, key, value product",
    [PROFILE_ROTATION] = "rotation, q/k norm",
    [PROFILE_SCORES] = "scores product",
    [PROFILE_SOFTMAX] = "softmax",
    [PROFILE_VALUES] = "values product",
    [PROFILE_OUTPUT] = "attention output product",
    [PROFILE_UP] = "feed-forward up product",
    [PROFILE_ACTIVATION] = "activation",
    [PROFILE_DOWN] = "feed-forward down product",
    [PROFILE_DROPOUT] = "dropout",
    [PROFILE_RESIDUAL] = "residual",
    [PROFILE_HEAD] = "head product",
    [PROFILE_LOSS] = "loss",
    [PROFILE_GRADIENT_ZERO] = "gradients to zero",
    [PROFILE_GRADIENT_NORM] = "gradient norm",
    [PROFILE_ADAMW] = "clip and AdamW",
    [PROFILE_OTHER] = "other",
};

const char *profile_name(enum profile_operation operation)
{
    assert((size_t)operation < PROFILE_OPERATIONS && names[operation]);
    return names[operation];
}

static void profile_count(struct profile *profile)
{
    double now = profile->clock();
    if (profile->now)
        profile->now->seconds += now - profile->since;
    profile->since = now;
}

void profile_start(struct profile *profile, double (*clock)(void))
{
    memset(profile, 0, sizeof *profile);
    profile->clock = clock;
    profile_resume(profile);
}

void profile_stop(struct profile *profile)
{
    profile_count(profile);
    profile->now = NULL;
}

void profile_resume(struct profile *profile)
{
    profile_switch(profile, PROFILE_OTHER, PROFILE_FORWARD, 0);
}

void profile_switch(struct profile *profile, enum profile_operation operation, enum profile_direction direction,
                    double flops)
{
    profile_count(profile);
    profile->now = &profile->times[operation][direction];
    profile->now->flops += flops;
    profile->now->calls++;
}

double profile_seconds(const struct profile *profile)
{
    double seconds = 0;
    for (size_t i = 0; i < PROFILE_OPERATIONS; i++)
        for (size_t j = 0; j < PROFILE_DIRECTIONS; j++)
            seconds += profile->times[i][j].seconds;
    return seconds;
}
