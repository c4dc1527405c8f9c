/* The residual stream's variance at the start against the sum of independent branches. */
#include "runner/residual.h"

#include <criterion/criterion.h>
#include <math.h>

enum { LAYERS = 8, VOCABULARY = 64 };

static struct model_config config_of(int residual)
{
    struct config config;
    config_init(&config);
    config.model.n_layers = LAYERS;
    config.model.d_model = 64;
    config.model.context_length = 64;
    config.model.residual = residual;
    return config.model;
}

static struct residual_profile profile_of(const struct model_config *config, bool scaled)
{
    struct residual_profile profile;
    struct error err;
    cr_assert(residual_measure_start(config, scaled, VOCABULARY, 1, &profile, &err), "%s", err.text);
    return profile;
}

/* s^2 is measured in the first block alone and the branches are not quite independent: a third is allowed. Without the
 * 2 in 2 L the prediction would be off by half. */
Test(residual, variance_grows_by_the_branches_and_scaled_init_holds_it)
{
    struct model_config config = config_of(RESIDUAL_PRE);
    struct residual_profile plain = profile_of(&config, false), scaled = profile_of(&config, true);
    for (int64_t depth = 0; depth <= LAYERS; depth++) {
        double predicted = residual_predict(&plain, &config, false, depth);
        cr_assert(fabs(plain.variance[depth] / predicted - 1) < 0.34, "%g, predicted %g", plain.variance[depth],
                  predicted);
        predicted = residual_predict(&plain, &config, true, depth);
        cr_assert(fabs(scaled.variance[depth] / predicted - 1) < 0.34, "%g, predicted %g", scaled.variance[depth],
                  predicted);
    }
    double grown = plain.variance[LAYERS] - plain.variance[0], held = scaled.variance[LAYERS] - scaled.variance[0];
    cr_assert(grown > 10 * held, "16 branches: %g against %g", grown, held);
    residual_release(&plain);
    residual_release(&scaled);
}

Test(residual, post_norm_has_nothing_to_predict)
{
    struct model_config config = config_of(RESIDUAL_POST);
    struct residual_profile plain = profile_of(&config, false);
    cr_assert(isnan(residual_predict(&plain, &config, false, 1)));
    cr_assert(fabs(plain.variance[LAYERS] - 1) < 0.01, "LayerNorm leaves variance 1: %g", plain.variance[LAYERS]);
    residual_release(&plain);
}
