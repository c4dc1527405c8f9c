/* Takes a variant apart. */
#include "runner/inspect.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/decoder.h"
#include "core/memory.h"
#include "core/model.h"
#include "core/random.h"
#include "core/trainer.h"

/* Beyond these a walk would take long or push other work out of memory. */
static const double walk_bytes = 2e9, walk_flops = 5e11;
enum { START_TOKENS = 256 }; /* at least: the mean of fewer is noise */

static void see(void *context, const char *name, const real *data, int dims, const int64_t *shape)
{
    (void)data;
    struct inspection *inspection = context;
    size_t used = inspection->shape_count;
    inspection->shapes =
        memory_grow(inspection->shapes, used * sizeof *inspection->shapes, used + 1, sizeof *inspection->shapes);
    struct inspected_shape *seen = &inspection->shapes[inspection->shape_count++];
    *seen = (struct inspected_shape){.dims = dims};
    snprintf(seen->name, sizeof seen->name, "%s", name);
    memcpy(seen->shape, shape, (size_t)dims * sizeof *shape);
}

/* Random tokens through the untrained model: one sequence seen step by step, then the loss of a few. */
static bool walk(struct inspection *inspection, int64_t seed, struct error *err)
{
    int64_t T = inspection->config.model.context_length, V = inspection->vocab_size, counted;
    int64_t B = (START_TOKENS + T - 1) / T;
    struct model *model = model_create(&inspection->config.model, V, B * T, err);
    if (!model)
        return false;
    int32_t *inputs = memory_alloc((size_t)(B * T), sizeof *inputs),
            *targets = memory_alloc((size_t)(B * T), sizeof *inputs);
    real *logits = memory_alloc((size_t)(T * V), sizeof *logits);
    struct random_stream stream = random_stream_make(seed, "inspect");
    for (int64_t i = 0; i < B * T; i++) {
        inputs[i] = (int32_t)random_below(&stream, (uint64_t)(2 * i), (uint64_t)V);
        targets[i] = (int32_t)random_below(&stream, (uint64_t)(2 * i + 1), (uint64_t)V);
    }
    model_init(model, seed);
    model_set_precision(model, inspection->config.training.precision);
    model_observe(model, see, inspection);
    model_logits(model, inputs, 1, T, logits);
    model_observe(model, NULL, NULL);
    inspection->start_loss = model_loss(model, inputs, targets, B, T, &counted) / (double)(B * T);
    inspection->walked = true;
    memory_free(logits);
    memory_free(inputs);
    memory_free(targets);
    model_free(model);
    return true;
}

bool inspect_run(const struct config *config, int64_t vocab_size, int64_t seed, struct inspection *inspection,
                 struct error *err)
{
    int64_t T = config->model.context_length;
    memset(inspection, 0, sizeof *inspection);
    inspection->config = *config;
    inspection->vocab_size = vocab_size;
    inspection->table = tensor_table_create(&config->model, vocab_size);
    inspection->flops_per_token = model_flops_per_token(&config->model, vocab_size);
    inspection->flops_per_step = inspection->flops_per_token * (double)config->training.batch_size * (double)T;
    inspection->memory = trainer_memory(config, vocab_size);
    inspection->start_loss = NAN;
    bool heavy = (double)model_memory(&config->model, vocab_size, T, config->training.precision) +
                         4.0 * (double)T * (double)vocab_size >
                     walk_bytes ||
                 inspection->flops_per_token / 3 * (double)T > walk_flops;
    return heavy || walk(inspection, seed, err);
}

void inspection_release(struct inspection *inspection)
{
    tensor_table_free(inspection->table);
    memory_free(inspection->shapes);
    memset(inspection, 0, sizeof *inspection);
}

double inspect_cache_bytes(const struct inspection *inspection, int64_t positions)
{
    return (double)decoder_cache_bytes(&inspection->config.model, positions);
}

bool inspect_loss_is_off(double loss, int64_t vocab_size)
{
    return !(fabs(loss - log((double)vocab_size)) <= INSPECT_START_MARGIN);
}

void inspect_loss_describe(const char *what, double loss, int64_t vocab_size, char *text, size_t size)
{
    snprintf(text, size,
             "warning: %s is %.4f, and ln V, that of a uniform guess, is %.4f: more than %g apart. See model.init_std",
             what, loss, log((double)vocab_size), INSPECT_START_MARGIN);
}

bool inspect_start_is_off(const struct inspection *inspection)
{
    return inspection->walked && inspect_loss_is_off(inspection->start_loss, inspection->vocab_size);
}
