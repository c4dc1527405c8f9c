/* Variance of the residual stream by depth, beside what adding up independent branches predicts.
 *
 * Each of the 2 L branches of a pre-norm decoder adds its output, of variance s^2, to the stream: after l blocks its
 * variance is Var(x_0) + 2 l s^2. scaled_init divides the branches' last matrices by sqrt(2 L), so s^2 by 2 L: after
 * all blocks the variance has grown by s^2 alone. A post-norm decoder normalises after every addition instead. */
#ifndef RUNNER_RESIDUAL_H
#define RUNNER_RESIDUAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/knob.h"
#include "core/model.h"

struct residual_profile {
    int64_t layers;
    double *variance; /* layers + 1: of x_0, then after each block */
    double branch;    /* s^2: mean variance of the first block's two branch outputs */
};

/* Of a model with weights, on one sequence of uniformly random tokens. Owner: caller, residual_release(). */
void residual_measure(struct model *model, const struct model_config *config, int64_t vocab_size, int64_t seed,
                      struct residual_profile *profile);

/* At initialisation, with scaled_init as given whatever the configuration says. */
bool residual_measure_start(const struct model_config *config, bool scaled, int64_t vocab_size, int64_t seed,
                            struct residual_profile *profile, struct error *err);
void residual_release(struct residual_profile *profile); /* takes a zeroed one */

/* Var(x_0) + 2 l s^2, with the s^2 and x_0 of the profile without scaled_init; NaN for post-norm. */
double residual_predict(const struct residual_profile *plain, const struct model_config *config, bool scaled,
                        int64_t depth);

#endif
