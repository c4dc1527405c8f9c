/* Causal attention of the heads, one (sequence, head) at a time, in blocks of rows: scores exist for one block only,
 * and backward makes the probabilities again from the saved maximum and scale of each row (Dao et al.,
 * "FlashAttention", 2022). */
#include <string.h>

#include "core/network.h"

/* The part of a pass that one head of one sequence needs. Rows of q, k, v are shape_qkv() apart. */
struct head {
    int64_t number;        /* of this head among those of all sequences */
    const real *q, *k, *v; /* [T, D] */
    const real *dmix;      /* [T, D] at distance Q */
    real *mix;             /* the same */
    real *most, *scale;    /* [T] */
    uint64_t first_row;    /* of this head in the dropout site's numbering */
};

static struct head head_at(const struct pass *pass, const struct block *block, int64_t number)
{
    const struct model_shape *s = &pass->model->shape;
    int64_t T = pass->T, D = s->head_dim, b = number / s->n_heads, h = number % s->n_heads,
            group = h / (s->n_heads / s->kv_heads), mixed = b * T * shape_q(s) + h * D;
    const real *rows = block->qkv + b * T * shape_qkv(s);
    struct head head = {
        .number = number,
        .q = rows + h * D,
        .k = rows + shape_q(s) + group * D,
        .v = rows + shape_q(s) + shape_kv(s) + group * D,
        .mix = block->mix + mixed,
        .dmix = pass->model->scratch.dmix + mixed,
        .most = block->most + number * T,
        .scale = block->scale + number * T,
        .first_row = (uint64_t)((pass->first_sequence * s->n_heads + number) * T),
    };
    return head;
}

static int64_t heads_count(const struct pass *pass)
{
    return pass->B * pass->model->shape.n_heads;
}

/* What the next head reads of its rows from `first` on. */
static struct soon head_soon(const struct pass *pass, const struct block *block, const struct head *head, int64_t first,
                             bool backward)
{
    if (head->number + 1 == heads_count(pass))
        return (struct soon){.count = 0};
    const struct model_shape *s = &pass->model->shape;
    struct head next = head_at(pass, block, head->number + 1);
    int64_t ld = shape_qkv(s), Q = shape_q(s);
    return (struct soon){.count = backward ? 4 : 3,
                         .width = (size_t)s->head_dim,
                         .of = {{next.q + first * ld, (size_t)ld},
                                {next.k + first * ld, (size_t)ld},
                                {next.v + first * ld, (size_t)ld},
                                {next.dmix + first * Q, (size_t)Q}}};
}

static int64_t rows_of_block(int64_t first, int64_t T)
{
    return T - first < ATTENTION_ROWS ? T - first : ATTENTION_ROWS;
}

static void probabilities_drop(const struct pass *pass, const struct block *block, const struct head *head, real *p,
                               int64_t first, int64_t rows, int64_t width, enum profile_direction direction)
{
    profile_at(pass->model->profile, PROFILE_DROPOUT, direction, 0);
    kernels()->dropout(p, (size_t)scores_ld(pass->T), &block->attention_dropout, (uint64_t)pass->step,
                       head->first_row + (uint64_t)first, pass->model->drop_rate, (size_t)rows, (size_t)pass->T,
                       (size_t)width);
}

/* c [M, N] (+)= a b of a block of rows, of which the first has `first` entries before its own. */
static void block_multiply(const struct model *model, enum gemm_form form, int64_t M, int64_t N, int64_t K,
                           int64_t first, real alpha, const real *a, int64_t lda, const real *b, int64_t ldb, real beta,
                           real *c, int64_t ldc)
{
    struct product product = product_of(form, M, N, K, alpha, a, lda, b, ldb, beta, c, ldc);
    product.causal = true;
    product.first = first;
    multiply_product(model->multiplier, &product);
}

/* Of one product of a block of rows. */
static double triangle_flops(int64_t first, int64_t rows, int64_t D)
{
    return (double)D * (double)rows * (double)(2 * first + rows + 1);
}

/* scores [rows, width] = q k^T / sqrt(D) */
static void scores_make(const struct pass *pass, const struct head *head, int64_t first, int64_t rows, int64_t width,
                        enum profile_direction direction)
{
    const struct model *model = pass->model;
    const struct model_shape *s = &model->shape;
    int64_t D = s->head_dim, ld = shape_qkv(s);
    profile_at(model->profile, PROFILE_SCORES, direction, triangle_flops(first, rows, D));
    block_multiply(model, GEMM_NT, rows, width, D, first, model->attention_scale, head->q + first * ld, ld, head->k, ld,
                   0, model->scratch.scores, scores_ld(pass->T));
}

void attention_forward(const struct pass *pass, struct block *block)
{
    struct model *model = pass->model;
    const struct model_shape *s = &model->shape;
    int64_t T = pass->T, D = s->head_dim, ld = shape_qkv(s), row = scores_ld(T);
    real *p = model->scratch.scores;
    for (int64_t number = 0; number < heads_count(pass); number++) {
        struct head head = head_at(pass, block, number);
        for (int64_t first = 0; first < T; first += ATTENTION_ROWS) {
            int64_t rows = rows_of_block(first, T), width = first + rows;
            struct soon soon = head_soon(pass, block, &head, first, false);
            scores_make(pass, &head, first, rows, width, PROFILE_FORWARD);
            profile_at(model->profile, PROFILE_SOFTMAX, PROFILE_FORWARD, 0);
            kernels()->softmax_causal(p, (size_t)row, head.most + first, head.scale + first, (size_t)rows,
                                      (size_t)first + 1, (size_t)width, &soon);
            if (pass_drops(pass))
                probabilities_drop(pass, block, &head, p, first, rows, width, PROFILE_FORWARD);
            profile_at(model->profile, PROFILE_VALUES, PROFILE_FORWARD, triangle_flops(first, rows, D));
            block_multiply(model, GEMM_NN, rows, D, width, first, 1, p, row, head.v, ld, 0,
                           head.mix + first * shape_q(s), shape_q(s));
        }
    }
}

/* One block of rows of one head: its dq, and its part of dk and dv, which begin with it (`begins`) or have others. */
static void head_backward_rows(const struct pass *pass, struct block *block, const struct head *head, int64_t first,
                               bool begins, real *dq, real *dk, real *dv)
{
    struct model *model = pass->model;
    struct scratch *scratch = &model->scratch;
    const struct model_shape *s = &model->shape;
    int64_t T = pass->T, D = s->head_dim, ld = shape_qkv(s), Q = shape_q(s), row = scores_ld(T);
    int64_t rows = rows_of_block(first, T), width = first + rows;
    const real *dmix = head->dmix + first * Q;
    real *p = scratch->scores, *used = p, *dp = scratch->dscores, others = begins ? 0 : 1;
    struct soon soon = head_soon(pass, block, head, first, true);

    scores_make(pass, head, first, rows, width, PROFILE_BACKWARD);
    profile_at(model->profile, PROFILE_SOFTMAX, PROFILE_BACKWARD, 0);
    kernels()->softmax_again(p, (size_t)row, head->most + first, head->scale + first, (size_t)rows, (size_t)first + 1,
                             (size_t)width, &soon);
    if (pass_drops(pass)) {
        used = scratch->dropped;
        memcpy(used, p, (size_t)(rows * row) * sizeof(real));
        probabilities_drop(pass, block, head, used, first, rows, width, PROFILE_BACKWARD);
    }
    profile_at(model->profile, PROFILE_VALUES, PROFILE_BACKWARD, 2 * triangle_flops(first, rows, D));
    block_multiply(model, GEMM_TN, width, D, rows, first, 1, used, row, dmix, Q, others, dv, ld);
    block_multiply(model, GEMM_NT, rows, width, D, first, 1, dmix, Q, head->v, ld, 0, dp, row);
    if (pass_drops(pass))
        probabilities_drop(pass, block, head, dp, first, rows, width, PROFILE_BACKWARD);
    profile_at(model->profile, PROFILE_SOFTMAX, PROFILE_BACKWARD, 0);
    kernels()->softmax_backward(dp, p, (size_t)row, model->attention_scale, (size_t)rows, (size_t)first + 1,
                                (size_t)width);
    profile_at(model->profile, PROFILE_SCORES, PROFILE_BACKWARD, 2 * triangle_flops(first, rows, D));
    block_multiply(model, GEMM_NN, rows, D, width, first, 1, dp, row, head->k, ld, 0, dq + first * ld, ld);
    block_multiply(model, GEMM_TN, width, D, rows, first, 1, dp, row, head->q + first * ld, ld, others, dk, ld);
}

void attention_backward(const struct pass *pass, struct block *block)
{
    struct model *model = pass->model;
    const struct model_shape *s = &model->shape;
    int64_t T = pass->T, D = s->head_dim, ld = shape_qkv(s), Q = shape_q(s), KV = shape_kv(s);
    for (int64_t number = 0; number < heads_count(pass); number++) {
        struct head head = head_at(pass, block, number);
        int64_t h = number % s->n_heads, sharing = s->n_heads / s->kv_heads, group = h / sharing;
        real *rows = model->scratch.dqkv + number / s->n_heads * T * ld;
        /* Keys and values are shared by the heads of a group and the blocks of rows: the last block, which reaches
         * all of them, comes first. */
        for (int64_t first = (T - 1) / ATTENTION_ROWS * ATTENTION_ROWS; first >= 0; first -= ATTENTION_ROWS)
            head_backward_rows(pass, block, &head, first, h % sharing == 0 && first + ATTENTION_ROWS >= T, rows + h * D,
                               rows + Q + group * D, rows + Q + KV + group * D);
    }
}

/* Keys and values of the new rows, behind those before them. */
static void cache_append(const struct pass *pass, const struct block *block, real *rows)
{
    const struct model_shape *s = &pass->model->shape;
    int64_t KV = shape_kv(s);
    for (int64_t n = 0; n < pass->N; n++)
        memcpy(rows + (pass->first_position + n) * 2 * KV, block->qkv + n * shape_qkv(s) + shape_q(s),
               (size_t)(2 * KV) * sizeof(real));
}

void attention_continue(const struct pass *pass, int64_t index)
{
    struct model *model = pass->model;
    const struct model_shape *s = &model->shape;
    const struct cache *cache = pass->cache;
    struct block *block = &model->blocks[index];
    int64_t D = s->head_dim, KV = shape_kv(s), Q = shape_q(s), ld = shape_qkv(s), T = cache->capacity,
            row = scores_ld(T);
    real *rows = cache->rows + index * T * 2 * KV, *p = cache->scores;
    cache_append(pass, block, rows);
    for (int64_t h = 0; h < s->n_heads; h++) {
        const real *k = rows + h / (s->n_heads / s->kv_heads) * D, *v = k + KV;
        for (int64_t first = 0; first < pass->N; first += ATTENTION_ROWS) {
            int64_t count = rows_of_block(first, pass->N), before = pass->first_position + first;
            block_multiply(model, GEMM_NT, count, before + count, D, before, model->attention_scale,
                           block->qkv + first * ld + h * D, ld, k, 2 * KV, 0, p, row);
            kernels()->softmax_causal(p, (size_t)row, block->most, block->scale, (size_t)count, (size_t)before + 1,
                                      (size_t)(before + count), &(struct soon){.count = 0});
            block_multiply(model, GEMM_NN, count, D, before + count, before, 1, p, row, v, 2 * KV, 0,
                           block->mix + first * Q + h * D, Q);
        }
    }
}
