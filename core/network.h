/* Inside of a model, shared by the files that compute it: model.c (weights, memory), pass.c (embedding, whole pass),
 * block.c (the two branches and their residual), attention.c (heads), head.c (logits and loss).
 *
 * One block, pre-norm on the left, post-norm on the right; both use the same four buffers of struct branch:
 *
 *        x ────────────┐                    x ────────────┐
 *        normed = norm(x)                   branch(x)     │
 *        branch(normed)                     sum = x + branch
 *        sum = x + branch                   normed = norm(sum)
 *        next x = sum                       next x = normed                                              */
#ifndef CORE_NETWORK_H
#define CORE_NETWORK_H

#include "core/kernels.h"
#include "core/model.h"
#include "core/multiplier.h"
#include "core/profile.h"
#include "core/workspace.h"

enum { ATTENTION_ROWS = 128, HEAD_ROWS = 512 }; /* rows of one block of scores, of logits */

struct norm_weights {
    real *weight, *bias; /* [C]; bias NULL of a norm without */
};

struct block_weights {
    struct norm_weights attention_norm, feed_forward_norm;
    real *qkv, *qkv_bias;        /* [Q + 2 KV, C]: query, key, value side by side */
    real *query_norm, *key_norm; /* [D], NULL without qk_norm */
    real *output, *output_bias;  /* [C, Q] */
    real *up, *up_bias;          /* [F, C], or [2F, C] with the gate behind */
    real *down, *down_bias;      /* [C, F] */
};

struct model_weights {
    real *token_embedding, *position_embedding; /* [V, C], [T, C] or NULL */
    struct block_weights *blocks;               /* [L] */
    struct norm_weights final_norm;
    real *head;      /* [V, C]: lm_head, or the token embedding again */
    real **adapters; /* [mtp_depth - 1] of [C, C] */
};

struct branch {
    real *normed, *sum; /* [N, C] */
    real *mean, *rstd;  /* [N] */
};

struct block {
    struct branch attention, feed_forward;
    real *qkv;              /* [N, Q + 2 KV], after q/k norm and rotation */
    real *qk_raw, *qk_rstd; /* [N, Q + KV], [N, H + K]: before q/k norm; NULL without it */
    real *mix;              /* [N, Q] what the heads give */
    real *most, *scale;     /* [B, H, T] of each row of scores: largest, 1 / sum of exponentials */
    real *up, *act; /* [N, F or 2F]: before the activation, then its slopes, then gradients; [N, F]; at rows_ld() */
    struct random_stream attention_dropout, feed_forward_dropout;
};

struct scratch {                               /* one set, used by every block in turn */
    real *branch_out, *dnormed, *dbranch, *dx; /* [N, C] */
    real *dqkv, *dmix, *dact;                  /* like their values */
    real *scores, *dropped, *dscores;          /* [ATTENTION_ROWS, scores_ld(T)] */
    real *logits, *adapted, *dadapted;         /* [HEAD_ROWS, V] at rows_ld(), [HEAD_ROWS, C] twice */
    int32_t *targets;                          /* [HEAD_ROWS] */
};

struct model {
    struct model_config config;
    struct model_shape shape;
    struct tensor_table *table;
    int64_t max_tokens;
    real *parameters, *gradients;
    struct model_weights weights, grads;
    struct workspace workspace;
    struct block *blocks;
    struct multiplier *multiplier;  /* makes every product */
    const struct norm_kernel *norm; /* rows of functions picked once */
    activation_kernel *activation;
    bool norm_first, rope_split;           /* residual: pre; rope_layout: split */
    real attention_scale;                  /* 1 / sqrt(D) */
    double drop_rate;                      /* of dropout, at its three places */
    real *embedded;                        /* [N, C] */
    real *final, *final_mean, *final_rstd; /* [N, C], [N], [N] */
    real *sinusoids;                       /* [T, C] or NULL */
    double *frequencies;                   /* [D/2] or NULL */
    real *cosines, *sines;                 /* [positions, D/2] or NULL */
    struct random_stream embedding_dropout;
    struct scratch scratch;
    model_observer *observer;
    void *observer_context;
    struct metric_sums *sums; /* NULL: nobody wants to know */
    struct profile *profile;  /* NULL: nobody wants to know */
};

/* Keys and values of the positions so far, for a pass that continues a sequence (decoder.h). */
struct cache {
    real *rows; /* [L, capacity, 2 KV]: keys, then values */
    int64_t capacity;
    real *scores; /* [ATTENTION_ROWS, scores_ld(capacity)] */
};

/* One forward (and backward) pass over some sequences of a batch. */
struct pass {
    struct model *model;
    int64_t B, T, N;        /* N = B * T */
    int64_t first_sequence; /* of these in the whole batch: numbers dropout */
    bool training;          /* dropout on */
    int64_t step;
    const struct cache *cache; /* NULL: a pass over whole sequences */
    int64_t first_position;    /* with a cache: positions before these */
};

/* Embedding to final norm. */
void pass_forward(const struct pass *pass, const int32_t *inputs);

/* Shows x [N, columns] to the observer, if there is one, as "blocks.<block>.<name>"; without a name as
 * "blocks.<block>", with a block below 0 as the name alone. */
void pass_observe(const struct pass *pass, int64_t block, const char *name, const real *x, int64_t columns);

/* Dropout is on. */
bool pass_drops(const struct pass *pass);
/* Dropout of x [N, C], or of its gradient, at the site of the stream; nothing when it is off. */
void pass_drop(const struct pass *pass, const struct random_stream *stream, enum profile_direction direction, real *x);

/* x [N, C] -> what the next block reads. */
const real *block_forward(const struct pass *pass, int64_t index, const real *x);
/* dx [N, C]: gradient of the block's output on entry, of its input x on return. */
void block_backward(const struct pass *pass, int64_t index, const real *x, real *dx);

/* mix [N, Q] from qkv; fills most and scale. */
void attention_forward(const struct pass *pass, struct block *block);
/* The same from the cache and the rows of this pass, which are added to it. */
void attention_continue(const struct pass *pass, int64_t index);
/* dqkv from dmix, both in scratch. */
void attention_backward(const struct pass *pass, struct block *block);

/* Nats of depth 1 over targets; no gradient. */
double head_loss(const struct pass *pass, const int32_t *targets, int64_t *counted);
/* Nats of every depth, each divided by its count; gradients of head and adapters added, dx = gradient of `final`. */
double head_loss_gradient(const struct pass *pass, const int32_t *targets, const int64_t *counts, real *dx);
/* logits [N, V] of `depth` (1-based). */
void head_logits(const struct pass *pass, int64_t depth, real *logits);
/* logits [V] of the last row. */
void head_last_logits(const struct pass *pass, real *logits);
/* Targets of depth k: targets [B, T] moved k - 1 to the left, -1 where they run out. */
int32_t target_at(const int32_t *targets, int64_t T, int64_t row, int64_t depth);

/* Room for a row of what products make or read: rows that are whole pages long would meet in one set of the first
 * cache, so a line lies between them. */
static inline int64_t row_room(int64_t columns)
{
    enum { PAGE = 4096 / sizeof(real), LINE = 64 / sizeof(real) };
    return columns % PAGE == 0 ? columns + LINE : columns;
}

/* Distance of such rows. An observer sees them without gaps. */
static inline int64_t rows_ld(const struct model *model, int64_t columns)
{
    return model->observer ? columns : row_room(columns);
}

/* Distance of rows of up to T scores: whole lanes (kernels.h). */
static inline int64_t scores_ld(int64_t T)
{
    return row_room((T + KERNEL_LANES - 1) / KERNEL_LANES * KERNEL_LANES);
}

static inline int64_t shape_q(const struct model_shape *shape)
{
    return shape->n_heads * shape->head_dim;
}

static inline int64_t shape_kv(const struct model_shape *shape)
{
    return shape->kv_heads * shape->head_dim;
}

static inline int64_t shape_qkv(const struct model_shape *shape)
{
    return shape_q(shape) + 2 * shape_kv(shape);
}

#endif
