/* Passes over a whole model: embedding, the blocks in turn, the head; forward, and backward again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/network.h"

bool pass_drops(const struct pass *pass)
{
    return pass->training && pass->model->drop_rate > 0;
}

void pass_drop(const struct pass *pass, const struct random_stream *stream, enum profile_direction direction, real *x)
{
    size_t C = (size_t)pass->model->shape.d_model;
    if (!pass_drops(pass))
        return;
    profile_at(pass->model->profile, PROFILE_DROPOUT, direction, 0);
    kernels()->dropout(x, C, stream, (uint64_t)pass->step, (uint64_t)(pass->first_sequence * pass->T),
                       pass->model->drop_rate, (size_t)pass->N, C, C);
}

void pass_observe(const struct pass *pass, int64_t block, const char *name, const real *x, int64_t columns)
{
    const struct model *model = pass->model;
    if (!model->observer)
        return;
    char full[80];
    if (block < 0)
        snprintf(full, sizeof full, "%s", name);
    else
        snprintf(full, sizeof full, "blocks.%" PRId64 "%s%s", block, name ? "." : "", name ? name : "");
    model->observer(model->observer_context, full, x, 3, (const int64_t[]){pass->B, pass->T, columns});
}

/* ---- embedding ---- */

static void embedding_forward(const struct pass *pass, const int32_t *inputs)
{
    struct model *model = pass->model;
    int64_t C = model->shape.d_model;
    profile_at(model->profile, PROFILE_EMBEDDING, PROFILE_FORWARD, 0);
    const real *positions = model->sinusoids ? model->sinusoids : model->weights.position_embedding;
    for (int64_t n = 0; n < pass->N; n++) {
        real *x = model->embedded + n * C;
        const real *token = model->weights.token_embedding + inputs[n] * C;
        if (positions)
            kernels()->add(x, token, positions + (pass->first_position + n % pass->T) * C, (size_t)C);
        else
            memcpy(x, token, (size_t)C * sizeof(real));
    }
    pass_drop(pass, &model->embedding_dropout, PROFILE_FORWARD, model->embedded);
    pass_observe(pass, -1, "embed", model->embedded, C);
}

static void embedding_backward(const struct pass *pass, const int32_t *inputs, real *dx)
{
    struct model *model = pass->model;
    int64_t C = model->shape.d_model;
    pass_drop(pass, &model->embedding_dropout, PROFILE_BACKWARD, dx);
    profile_at(model->profile, PROFILE_EMBEDDING, PROFILE_BACKWARD, 0);
    for (int64_t n = 0; n < pass->N; n++) {
        real *token = model->grads.token_embedding + inputs[n] * C;
        kernels()->add(token, token, dx + n * C, (size_t)C);
        if (model->grads.position_embedding) {
            real *position = model->grads.position_embedding + n % pass->T * C;
            kernels()->add(position, position, dx + n * C, (size_t)C);
        }
    }
}

/* ---- passes ---- */

static const real *block_output(const struct model *model, int64_t index)
{
    if (index < 0)
        return model->embedded;
    const struct branch *branch = &model->blocks[index].feed_forward;
    return model->norm_first ? branch->sum : branch->normed;
}

void pass_forward(const struct pass *pass, const int32_t *inputs)
{
    struct model *model = pass->model;
    const struct norm_weights *norm = &model->weights.final_norm;
    embedding_forward(pass, inputs);
    const real *x = model->embedded;
    for (int64_t i = 0; i < model->shape.n_layers; i++)
        x = block_forward(pass, i, x);
    profile_at(model->profile, PROFILE_NORM, PROFILE_FORWARD, 0);
    model->norm->forward(model->final, model->final_mean, model->final_rstd, x, norm->weight, norm->bias,
                         (real)model->shape.norm_epsilon, (size_t)pass->N, (size_t)model->shape.d_model);
    pass_observe(pass, -1, "final_norm", model->final, model->shape.d_model);
}

static double pass_backward(const struct pass *pass, const int32_t *inputs, const int32_t *targets,
                            const int64_t *counts)
{
    struct model *model = pass->model;
    const struct norm_weights *norm = &model->weights.final_norm, *dnorm = &model->grads.final_norm;
    int64_t L = model->shape.n_layers;
    real *dx = model->scratch.dx;
    double loss = head_loss_gradient(pass, targets, counts, dx);
    profile_at(model->profile, PROFILE_NORM, PROFILE_BACKWARD, 0);
    model->norm->backward(dx, false, dnorm->weight, dnorm->bias, dx, block_output(model, L - 1), norm->weight,
                          model->final_mean, model->final_rstd, (size_t)pass->N, (size_t)model->shape.d_model);
    for (int64_t i = L - 1; i >= 0; i--)
        block_backward(pass, i, block_output(model, i - 1), dx);
    embedding_backward(pass, inputs, dx);
    return loss;
}

/* Sequences that fit into the workspace at once, from `first` on. */
static struct pass pass_at(struct model *model, int64_t first, int64_t B, int64_t T)
{
    int64_t fit = model->max_tokens / T, left = B - first;
    struct pass pass = {.model = model, .B = left < fit ? left : fit, .T = T, .first_sequence = first};
    pass.N = pass.B * T;
    return pass;
}

double model_loss_gradient(struct model *model, const int32_t *inputs, const int32_t *targets, int64_t B, int64_t T,
                           int64_t step)
{
    int64_t counts[MODEL_DEPTHS] = {0};
    for (int64_t depth = 1; depth <= model->shape.mtp_depth; depth++)
        for (int64_t n = 0; n < B * T; n++)
            counts[depth - 1] += target_at(targets, T, n, depth) >= 0;
    profile_at(model->profile, PROFILE_GRADIENT_ZERO, PROFILE_FORWARD, 0);
    memset(model->gradients, 0, model->table->total * sizeof(real));
    double loss = 0;
    for (int64_t first = 0; first < B;) {
        struct pass pass = pass_at(model, first, B, T);
        pass.training = true;
        pass.step = step;
        pass_forward(&pass, inputs + first * T);
        loss += pass_backward(&pass, inputs + first * T, targets + first * T, counts);
        first += pass.B;
    }
    return loss;
}

double model_loss(struct model *model, const int32_t *inputs, const int32_t *targets, int64_t B, int64_t T,
                  int64_t *counted)
{
    double nats = 0;
    *counted = 0;
    for (int64_t first = 0; first < B;) {
        struct pass pass = pass_at(model, first, B, T);
        pass_forward(&pass, inputs + first * T);
        nats += head_loss(&pass, targets + first * T, counted);
        first += pass.B;
    }
    return nats;
}

/* "logits", and with an observer those of every further depth: made in turn where the caller's go last. */
static void logits_observe(const struct pass *pass, real *logits)
{
    struct model *model = pass->model;
    int64_t V = model->shape.vocab_size;
    pass_observe(pass, -1, "logits", logits, V);
    for (int64_t depth = 2; depth <= model->shape.mtp_depth && model->observer; depth++) {
        char name[32];
        snprintf(name, sizeof name, "logits.depth%" PRId64, depth);
        head_logits(pass, depth, logits);
        pass_observe(pass, -1, name, logits, V);
    }
    if (model->observer && model->shape.mtp_depth > 1)
        head_logits(pass, 1, logits);
}

void model_logits(struct model *model, const int32_t *inputs, int64_t B, int64_t T, real *logits)
{
    for (int64_t first = 0; first < B;) {
        struct pass pass = pass_at(model, first, B, T);
        real *part = logits + first * T * model->shape.vocab_size;
        pass_forward(&pass, inputs + first * T);
        head_logits(&pass, 1, part);
        logits_observe(&pass, part);
        first += pass.B;
    }
}
