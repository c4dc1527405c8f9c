/* Residual-stream variance. */
#include "runner/residual.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/random.h"

static double variance_of(const real *data, int dims, const int64_t *shape)
{
    double sum = 0, squares = 0;
    int64_t count = 1;
    for (int d = 0; d < dims; d++)
        count *= shape[d];
    for (int64_t i = 0; i < count; i++)
        sum += (double)data[i];
    double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++)
        squares += ((double)data[i] - mean) * ((double)data[i] - mean);
    return squares / (double)count;
}

static void see(void *context, const char *name, const real *data, int dims, const int64_t *shape)
{
    struct residual_profile *profile = context;
    int64_t block;
    int end = 0;
    if (strcmp(name, "embed") == 0)
        profile->variance[0] = variance_of(data, dims, shape);
    else if (strcmp(name, "blocks.0.attention") == 0 || strcmp(name, "blocks.0.feed_forward") == 0)
        profile->branch += variance_of(data, dims, shape) / 2;
    else if (sscanf(name, "blocks.%" SCNd64 "%n", &block, &end) == 1 && !name[end] && block < profile->layers)
        profile->variance[block + 1] = variance_of(data, dims, shape);
}

void residual_measure(struct model *model, const struct model_config *config, int64_t vocab_size, int64_t seed,
                      struct residual_profile *profile)
{
    int64_t T = config->context_length;
    struct random_stream stream = random_stream_make(seed, "inspect");
    int32_t *inputs = memory_alloc((size_t)T, sizeof *inputs);
    real *logits = memory_alloc((size_t)(T * vocab_size), sizeof *logits);
    for (int64_t i = 0; i < T; i++)
        inputs[i] = (int32_t)random_below(&stream, (uint64_t)(2 * i), (uint64_t)vocab_size);
    *profile = (struct residual_profile){.layers = config->n_layers,
                                         .variance = memory_alloc((size_t)config->n_layers + 1, sizeof(double))};
    model_observe(model, see, profile);
    model_logits(model, inputs, 1, T, logits);
    model_observe(model, NULL, NULL);
    memory_free(inputs);
    memory_free(logits);
}

bool residual_measure_start(const struct model_config *config, bool scaled, int64_t vocab_size, int64_t seed,
                            struct residual_profile *profile, struct error *err)
{
    struct model_config other = *config;
    other.scaled_init = scaled;
    struct model *model = model_create(&other, vocab_size, config->context_length, err);
    if (!model)
        return false;
    model_init(model, seed);
    residual_measure(model, &other, vocab_size, seed, profile);
    model_free(model);
    return true;
}

void residual_release(struct residual_profile *profile)
{
    memory_free(profile->variance);
    *profile = (struct residual_profile){0};
}

double residual_predict(const struct residual_profile *plain, const struct model_config *config, bool scaled,
                        int64_t depth)
{
    double branches = 2 * (double)plain->layers;
    if (config->residual == RESIDUAL_POST)
        return NAN;
    return plain->variance[0] + 2 * (double)depth * plain->branch / (scaled ? branches : 1);
}
