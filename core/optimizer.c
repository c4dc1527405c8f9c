/* AdamW. */
#include "core/optimizer.h"

#include <math.h>

#include "core/kernels.h"
#include "core/memory.h"

struct optimizer {
    const struct tensor_table *table;
    struct training_config training;
    real *first, *second;
};

struct optimizer *optimizer_create(const struct tensor_table *table, const struct training_config *training)
{
    struct optimizer *optimizer = memory_alloc(1, sizeof *optimizer);
    optimizer->table = table;
    optimizer->training = *training;
    optimizer->first = memory_alloc(table->total, sizeof(real));
    optimizer->second = memory_alloc(table->total, sizeof(real));
    return optimizer;
}

void optimizer_free(struct optimizer *optimizer)
{
    if (!optimizer)
        return;
    memory_free(optimizer->first);
    memory_free(optimizer->second);
    memory_free(optimizer);
}

double optimizer_grad_norm(const real *gradients, size_t count)
{
    return sqrt(kernels()->sum_of_squares(gradients, count));
}

void optimizer_step(struct optimizer *optimizer, real *parameters, const real *gradients, double grad_norm,
                    double learning_rate, int64_t step)
{
    const struct training_config *t = &optimizer->training;
    double scale = t->grad_clip > 0 ? t->grad_clip / (grad_norm + 1e-6) : 1;
    struct adamw adamw = {
        .gradient_scale = (real)(scale < 1 ? scale : 1),
        .beta1 = (real)t->beta1,
        .beta2 = (real)t->beta2,
        .one_minus_beta1 = (real)(1 - t->beta1),
        .one_minus_beta2 = (real)(1 - t->beta2),
        .epsilon = (real)t->adam_epsilon,
        .step_size = (real)(learning_rate / (1 - pow(t->beta1, (double)step + 1))),
        .second_correction = (real)(1 / sqrt(1 - pow(t->beta2, (double)step + 1))),
    };
    for (size_t i = 0; i < optimizer->table->count; i++) {
        const struct tensor *tensor = &optimizer->table->tensors[i];
        size_t at = tensor->offset;
        adamw.keep = (real)(tensor->decays ? 1 - learning_rate * t->weight_decay : 1);
        kernels()->adamw(&adamw, parameters + at, optimizer->first + at, optimizer->second + at, gradients + at,
                         tensor->count);
    }
}

real *optimizer_first_moment(struct optimizer *optimizer)
{
    return optimizer->first;
}

real *optimizer_second_moment(struct optimizer *optimizer)
{
    return optimizer->second;
}
