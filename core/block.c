/* One block: two branches (attention, feed-forward), each behind its residual connection with the norm before or after.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/network.h"

/* out [N, outputs] = in [N, inputs] weight^T (+ bias), rows at their distances */
static struct product linear(real *out, int64_t out_ld, const real *in, int64_t in_ld, const real *weight,
                             const real *bias, int64_t N, int64_t outputs, int64_t inputs)
{
    struct product product = product_of(GEMM_NT, N, outputs, inputs, 1, in, in_ld, weight, inputs, 0, out, out_ld);
    product.bias = bias;
    return product;
}

/* dweight += dout^T in; dbias += column sums; din [N, inputs], lying as `in` does, = dout weight, whose rows then go to
 * rows_done */
static void linear_backward(const struct model *model, real *din, real *dweight, real *dbias, const real *dout,
                            int64_t out_ld, const real *in, int64_t in_ld, const real *weight, int64_t N,
                            int64_t outputs, int64_t inputs, product_rows *rows_done, void *context)
{
    if (dbias)
        kernels()->bias_gradient(dbias, dout, (size_t)out_ld, (size_t)N, (size_t)outputs);
    multiply(model->multiplier, GEMM_TN, outputs, inputs, N, 1, dout, out_ld, in, in_ld, 1, dweight, inputs);
    struct product product = product_of(GEMM_NN, N, inputs, outputs, 1, dout, out_ld, weight, inputs, 0, din, in_ld);
    product.rows_done = rows_done;
    product.context = context;
    multiply_product(model->multiplier, &product);
}

/* ---- queries and keys: norm per head, rotation ---- */

/* Row n of qkv holds H query heads, K key heads, then values: the first H + K heads are normed and rotated alike. */
static void qk_norm_forward(const struct pass *pass, struct block *block, const struct block_weights *weights)
{
    const struct model *model = pass->model;
    const struct model_shape *s = &model->shape;
    size_t D = (size_t)s->head_dim, H = (size_t)s->n_heads, K = (size_t)s->kv_heads;
    const struct norm_kernel *norm = &kernels()->norm[NORM_RMSNORM];
    real epsilon = (real)s->qk_norm_epsilon;
    for (int64_t n = 0; n < pass->N; n++) {
        real *qk = block->qkv + n * shape_qkv(s), *raw = block->qk_raw + n * (shape_q(s) + shape_kv(s));
        real *rstd = block->qk_rstd + n * (s->n_heads + s->kv_heads);
        memcpy(raw, qk, (H + K) * D * sizeof(real));
        norm->forward(qk, NULL, rstd, raw, weights->query_norm, NULL, epsilon, H, D);
        norm->forward(qk + H * D, NULL, rstd + H, raw + H * D, weights->key_norm, NULL, epsilon, K, D);
    }
}

static void qk_norm_backward(const struct pass *pass, struct block *block, const struct block_weights *weights,
                             struct block_weights *grads)
{
    const struct model *model = pass->model;
    const struct model_shape *s = &model->shape;
    size_t D = (size_t)s->head_dim, H = (size_t)s->n_heads, K = (size_t)s->kv_heads;
    const struct norm_kernel *norm = &kernels()->norm[NORM_RMSNORM];
    for (int64_t n = 0; n < pass->N; n++) {
        real *d = model->scratch.dqkv + n * shape_qkv(s);
        const real *raw = block->qk_raw + n * (shape_q(s) + shape_kv(s));
        const real *rstd = block->qk_rstd + n * (s->n_heads + s->kv_heads);
        norm->backward(d, false, grads->query_norm, NULL, d, raw, weights->query_norm, NULL, rstd, H, D);
        norm->backward(d + H * D, false, grads->key_norm, NULL, d + H * D, raw + H * D, weights->key_norm, NULL,
                       rstd + H, K, D);
    }
}

static void qk_rotate(const struct pass *pass, real *qkv, real sign)
{
    const struct model *model = pass->model;
    const struct model_shape *s = &model->shape;
    kernels()->rotate(qkv, (size_t)shape_qkv(s), model->cosines, model->sines, sign, model->rope_split, (size_t)pass->N,
                      (size_t)pass->first_position, (size_t)pass->T, (size_t)(s->n_heads + s->kv_heads),
                      (size_t)s->head_dim);
}

/* ---- branches: in [N, C] -> sum [N, C] = x + branch; gradients of the branch the other way ---- */

/* The end of a branch: its last matrix, dropout, and the sum with the residual x, in one go when nobody wants to see or
 * drop what comes before the sum. */
static void branch_end(const struct pass *pass, int64_t index, const char *name, const real *in, int64_t in_ld,
                       int64_t inputs, const real *weight, const real *bias, const struct random_stream *dropout,
                       const real *x, real *sum)
{
    struct model *model = pass->model;
    int64_t N = pass->N, C = model->shape.d_model;
    real *out = model->scratch.branch_out;
    if (!model->observer && !(dropout && pass_drops(pass))) {
        struct product last = linear(sum, C, in, in_ld, weight, bias, N, C, inputs);
        last.addend = x;
        multiply_product(model->multiplier, &last);
        return;
    }
    struct product last = linear(out, C, in, in_ld, weight, bias, N, C, inputs);
    multiply_product(model->multiplier, &last);
    if (dropout)
        pass_drop(pass, dropout, PROFILE_FORWARD, out);
    pass_observe(pass, index, name, out, C);
    profile_at(model->profile, PROFILE_RESIDUAL, PROFILE_FORWARD, 0);
    kernels()->add(sum, x, out, (size_t)(N * C));
}

static void heads_observe(const struct pass *pass, int64_t index, const struct block *block);

static void attention_branch_forward(const struct pass *pass, int64_t index, const real *in, const real *x, real *sum)
{
    struct model *model = pass->model;
    const struct model_shape *s = &model->shape;
    struct block *block = &model->blocks[index];
    const struct block_weights *weights = &model->weights.blocks[index];
    profile_at(model->profile, PROFILE_QKV, PROFILE_FORWARD, product_flops(pass->N, shape_qkv(s), s->d_model));
    struct product qkv = linear(block->qkv, shape_qkv(s), in, s->d_model, weights->qkv, weights->qkv_bias, pass->N,
                                shape_qkv(s), s->d_model);
    multiply_product(model->multiplier, &qkv);
    profile_at(model->profile, PROFILE_ROTATION, PROFILE_FORWARD, 0);
    if (weights->query_norm)
        qk_norm_forward(pass, block, weights);
    if (model->cosines)
        qk_rotate(pass, block->qkv, 1);
    if (model->observer)
        heads_observe(pass, index, block);
    if (pass->cache)
        attention_continue(pass, index);
    else
        attention_forward(pass, block);
    pass_observe(pass, index, "attention.mix", block->mix, shape_q(s));
    profile_at(model->profile, PROFILE_OUTPUT, PROFILE_FORWARD, product_flops(pass->N, s->d_model, shape_q(s)));
    branch_end(pass, index, "attention", block->mix, shape_q(s), shape_q(s), weights->output, weights->output_bias,
               NULL, x, sum);
}

static void attention_branch_backward(const struct pass *pass, int64_t index, const real *in, real *din,
                                      const real *dout)
{
    struct model *model = pass->model;
    const struct model_shape *s = &model->shape;
    struct block *block = &model->blocks[index];
    const struct block_weights *weights = &model->weights.blocks[index];
    struct block_weights *grads = &model->grads.blocks[index];
    struct scratch *scratch = &model->scratch;
    profile_at(model->profile, PROFILE_OUTPUT, PROFILE_BACKWARD, 2 * product_flops(pass->N, s->d_model, shape_q(s)));
    linear_backward(model, scratch->dmix, grads->output, grads->output_bias, dout, s->d_model, block->mix, shape_q(s),
                    weights->output, pass->N, s->d_model, shape_q(s), NULL, NULL);
    attention_backward(pass, block);
    profile_at(model->profile, PROFILE_ROTATION, PROFILE_BACKWARD, 0);
    if (model->cosines)
        qk_rotate(pass, scratch->dqkv, -1);
    if (weights->query_norm)
        qk_norm_backward(pass, block, weights, grads);
    profile_at(model->profile, PROFILE_QKV, PROFILE_BACKWARD, 2 * product_flops(pass->N, shape_qkv(s), s->d_model));
    linear_backward(model, din, grads->qkv, grads->qkv_bias, scratch->dqkv, shape_qkv(s), in, s->d_model, weights->qkv,
                    pass->N, shape_qkv(s), s->d_model, NULL, NULL);
}

/* What rows of a feed-forward branch need once a product has made them. */
struct feed_forward {
    const struct pass *pass;
    struct block *block;
    struct block_weights *grads;
};

static void activation_rows(void *context, int64_t first, int64_t rows)
{
    const struct feed_forward *f = context;
    struct model *model = f->pass->model;
    const struct model_shape *s = &model->shape;
    profile_at(model->profile, PROFILE_ACTIVATION, PROFILE_FORWARD, 0);
    int64_t up_ld = rows_ld(model, s->ff_inputs * s->ff_hidden), act_ld = rows_ld(model, s->ff_hidden);
    model->activation(f->block->act + first * act_ld, (size_t)act_ld, f->block->up + first * up_ld, (size_t)up_ld,
                      (size_t)rows, (size_t)s->ff_hidden);
    profile_at(model->profile, PROFILE_UP, PROFILE_FORWARD, 0);
}

static void slope_rows(void *context, int64_t first, int64_t rows)
{
    const struct feed_forward *f = context;
    struct model *model = f->pass->model;
    const struct model_shape *s = &model->shape;
    profile_at(model->profile, PROFILE_ACTIVATION, PROFILE_BACKWARD, 0);
    int64_t up_ld = rows_ld(model, s->ff_inputs * s->ff_hidden), act_ld = rows_ld(model, s->ff_hidden);
    kernels()->slopes_multiply(f->block->up + first * up_ld, (size_t)up_ld, f->grads->up_bias,
                               model->scratch.dact + first * act_ld, (size_t)act_ld, (size_t)rows, (size_t)s->ff_inputs,
                               (size_t)s->ff_hidden);
    profile_at(model->profile, PROFILE_DOWN, PROFILE_BACKWARD, 0);
}

static void feed_forward_branch_forward(const struct pass *pass, int64_t index, const real *in, const real *x,
                                        real *sum)
{
    struct model *model = pass->model;
    const struct model_shape *s = &model->shape;
    struct block *block = &model->blocks[index];
    const struct block_weights *weights = &model->weights.blocks[index];
    int64_t inner = s->ff_inputs * s->ff_hidden;
    profile_at(model->profile, PROFILE_UP, PROFILE_FORWARD, product_flops(pass->N, inner, s->d_model));
    struct product up = linear(block->up, rows_ld(model, inner), in, s->d_model, weights->up, weights->up_bias, pass->N,
                               inner, s->d_model);
    struct feed_forward rows = {pass, block, NULL};
    if (!model->observer) {
        up.rows_done = activation_rows;
        up.context = &rows;
    }
    multiply_product(model->multiplier, &up);
    if (model->observer) {
        pass_observe(pass, index, s->ff_inputs == 2 ? "feed_forward.up_gate" : "feed_forward.up", block->up, inner);
        activation_rows(&rows, 0, pass->N);
    }
    pass_observe(pass, index, "feed_forward.activation", block->act, s->ff_hidden);
    profile_at(model->profile, PROFILE_DOWN, PROFILE_FORWARD, product_flops(pass->N, s->d_model, s->ff_hidden));
    branch_end(pass, index, "feed_forward", block->act, rows_ld(model, s->ff_hidden), s->ff_hidden, weights->down,
               weights->down_bias, &block->feed_forward_dropout, x, sum);
}

static void feed_forward_branch_backward(const struct pass *pass, int64_t index, const real *in, real *din,
                                         const real *dout)
{
    struct model *model = pass->model;
    const struct model_shape *s = &model->shape;
    struct block *block = &model->blocks[index];
    const struct block_weights *weights = &model->weights.blocks[index];
    struct block_weights *grads = &model->grads.blocks[index];
    struct scratch *scratch = &model->scratch;
    int64_t inner = s->ff_inputs * s->ff_hidden;
    if (pass_drops(pass)) {
        memcpy(scratch->dbranch, dout, (size_t)(pass->N * s->d_model) * sizeof(real));
        pass_drop(pass, &block->feed_forward_dropout, PROFILE_BACKWARD, scratch->dbranch);
        dout = scratch->dbranch;
    }
    profile_at(model->profile, PROFILE_DOWN, PROFILE_BACKWARD, 2 * product_flops(pass->N, s->d_model, s->ff_hidden));
    struct feed_forward rows = {pass, block, grads};
    linear_backward(model, scratch->dact, grads->down, grads->down_bias, dout, s->d_model, block->act,
                    rows_ld(model, s->ff_hidden), weights->down, pass->N, s->d_model, s->ff_hidden, slope_rows, &rows);
    profile_at(model->profile, PROFILE_UP, PROFILE_BACKWARD, 2 * product_flops(pass->N, inner, s->d_model));
    linear_backward(model, din, grads->up, NULL, block->up, rows_ld(model, inner), in, s->d_model, weights->up, pass->N,
                    inner, s->d_model, NULL, NULL);
}

/* ---- residual connections (picture in network.h) ---- */

struct branch_kind {
    const char *norm_name;
    void (*forward)(const struct pass *pass, int64_t index, const real *in, const real *x, real *sum);
    void (*backward)(const struct pass *pass, int64_t index, const real *in, real *din, const real *dout);
};

static const struct branch_kind attention_kind = {"attention_norm", attention_branch_forward,
                                                  attention_branch_backward};
static const struct branch_kind feed_forward_kind = {"feed_forward_norm", feed_forward_branch_forward,
                                                     feed_forward_branch_backward};

static const real *residual_forward(const struct pass *pass, int64_t index, const struct branch_kind *kind,
                                    struct branch *branch, const struct norm_weights *norm, const real *x)
{
    struct model *model = pass->model;
    size_t N = (size_t)pass->N, C = (size_t)model->shape.d_model;
    bool pre = model->norm_first;
    if (pre) {
        profile_at(model->profile, PROFILE_NORM, PROFILE_FORWARD, 0);
        model->norm->forward(branch->normed, branch->mean, branch->rstd, x, norm->weight, norm->bias,
                             (real)model->shape.norm_epsilon, N, C);
        pass_observe(pass, index, kind->norm_name, branch->normed, (int64_t)C);
    }
    kind->forward(pass, index, pre ? branch->normed : x, x, branch->sum);
    if (!pre) {
        profile_at(model->profile, PROFILE_NORM, PROFILE_FORWARD, 0);
        model->norm->forward(branch->normed, branch->mean, branch->rstd, branch->sum, norm->weight, norm->bias,
                             (real)model->shape.norm_epsilon, N, C);
        pass_observe(pass, index, kind->norm_name, branch->normed, (int64_t)C);
    }
    return pre ? branch->sum : branch->normed;
}

static void residual_backward(const struct pass *pass, int64_t index, const struct branch_kind *kind,
                              struct branch *branch, const struct norm_weights *norm, struct norm_weights *dnorm,
                              const real *x, real *dx)
{
    struct model *model = pass->model;
    size_t N = (size_t)pass->N, C = (size_t)model->shape.d_model;
    real *din = model->scratch.dnormed;
    bool pre = model->norm_first;
    profile_at(model->profile, PROFILE_NORM, PROFILE_BACKWARD, 0);
    if (!pre)
        model->norm->backward(dx, false, dnorm->weight, dnorm->bias, dx, branch->sum, norm->weight, branch->mean,
                              branch->rstd, N, C);
    kind->backward(pass, index, pre ? branch->normed : x, din, dx);
    profile_at(model->profile, pre ? PROFILE_NORM : PROFILE_RESIDUAL, PROFILE_BACKWARD, 0);
    if (pre)
        model->norm->backward(dx, true, dnorm->weight, dnorm->bias, din, x, norm->weight, branch->mean, branch->rstd, N,
                              C);
    else
        kernels()->add(dx, dx, din, N * C);
}

static const real *middle_of(const struct model *model, int64_t index)
{
    const struct branch *branch = &model->blocks[index].attention;
    return model->norm_first ? branch->sum : branch->normed;
}

const real *block_forward(const struct pass *pass, int64_t index, const real *x)
{
    struct model *model = pass->model;
    struct block *block = &model->blocks[index];
    struct block_weights *weights = &model->weights.blocks[index];
    x = residual_forward(pass, index, &attention_kind, &block->attention, &weights->attention_norm, x);
    x = residual_forward(pass, index, &feed_forward_kind, &block->feed_forward, &weights->feed_forward_norm, x);
    pass_observe(pass, index, NULL, x, model->shape.d_model);
    return x;
}

void block_backward(const struct pass *pass, int64_t index, const real *x, real *dx)
{
    struct model *model = pass->model;
    struct block *block = &model->blocks[index];
    struct block_weights *weights = &model->weights.blocks[index], *grads = &model->grads.blocks[index];
    residual_backward(pass, index, &feed_forward_kind, &block->feed_forward, &weights->feed_forward_norm,
                      &grads->feed_forward_norm, middle_of(model, index), dx);
    residual_backward(pass, index, &attention_kind, &block->attention, &weights->attention_norm, &grads->attention_norm,
                      x, dx);
}

/* ---- what an observer sees of the heads: [B, heads, T, D] ---- */

static void heads_observe_part(const struct pass *pass, int64_t index, const char *name, const real *part,
                               int64_t heads)
{
    struct model *model = pass->model;
    int64_t B = pass->B, T = pass->T, D = model->shape.head_dim, ld = shape_qkv(&model->shape);
    real *copy = model->scratch.dqkv; /* free during a forward pass */
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t t = 0; t < T; t++)
                memcpy(copy + ((b * heads + h) * T + t) * D, part + (b * T + t) * ld + h * D, (size_t)D * sizeof(real));
    char full[80];
    snprintf(full, sizeof full, "blocks.%" PRId64 ".attention.%s", index, name);
    model->observer(model->observer_context, full, copy, 4, (const int64_t[]){B, heads, T, D});
}

static void heads_observe(const struct pass *pass, int64_t index, const struct block *block)
{
    const struct model_shape *s = &pass->model->shape;
    heads_observe_part(pass, index, "query", block->qkv, s->n_heads);
    heads_observe_part(pass, index, "key", block->qkv + shape_q(s), s->kv_heads);
    heads_observe_part(pass, index, "value", block->qkv + shape_q(s) + shape_kv(s), s->kv_heads);
}
