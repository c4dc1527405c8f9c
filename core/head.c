/* The end of a model: logits and cross entropy, HEAD_ROWS rows at a time, so that logits of a whole batch never exist.
 * The gradient is made in the same visit: the rows' softmax turns into it in place. */
#include "core/network.h"

int32_t target_at(const int32_t *targets, int64_t T, int64_t row, int64_t depth)
{
    int64_t ahead = depth - 1;
    return row % T + ahead < T ? targets[row + ahead] : -1;
}

/* What the head of `depth` multiplies: rows of `final`, or those through the depth's adapter. */
static const real *head_input(const struct pass *pass, int64_t depth, int64_t first, int64_t rows)
{
    struct model *model = pass->model;
    int64_t C = model->shape.d_model;
    const real *final = model->final + first * C;
    if (depth == 1)
        return final;
    profile_at(model->profile, PROFILE_HEAD, PROFILE_FORWARD, product_flops(rows, C, C));
    multiply(model->multiplier, GEMM_NT, rows, C, C, 1, final, C, model->weights.adapters[depth - 2], C, 0,
             model->scratch.adapted, C);
    return model->scratch.adapted;
}

static int64_t head_rows(const struct pass *pass, int64_t first)
{
    return pass->N - first < HEAD_ROWS ? pass->N - first : HEAD_ROWS;
}

/* The loss of rows of logits with their gradient in the logits' place, or what all metrics count of them. */
struct rows_loss {
    struct model *model;
    bool gradient;
    real weight;
    double nats;             /* with the gradient */
    struct metric_sums sums; /* without */
};

static void loss_rows(void *context, int64_t first, int64_t rows)
{
    struct rows_loss *loss = context;
    struct model *model = loss->model;
    int64_t V = model->shape.vocab_size;
    int64_t ld = rows_ld(model, V);
    real *logits = model->scratch.logits + first * ld;
    const int32_t *targets = model->scratch.targets + first;
    profile_at(model->profile, PROFILE_LOSS, PROFILE_FORWARD, 0);
    if (loss->gradient)
        loss->nats +=
            kernels()->cross_entropy(logits, (size_t)ld, targets, true, loss->weight, (size_t)rows, (size_t)V);
    else
        metric_count(&loss->sums, logits, (size_t)ld, targets, (size_t)rows, (size_t)V);
    profile_at(model->profile, PROFILE_HEAD, PROFILE_FORWARD, 0);
}

/* Fills scratch.targets and scratch.logits, or their gradient; returns the head's input. */
static const real *head_chunk(const struct pass *pass, int64_t depth, const int32_t *targets, int64_t first,
                              int64_t rows, struct rows_loss *loss)
{
    struct model *model = pass->model;
    int64_t C = model->shape.d_model, V = model->shape.vocab_size;
    for (int64_t i = 0; i < rows; i++)
        model->scratch.targets[i] = target_at(targets, pass->T, first + i, depth);
    const real *in = head_input(pass, depth, first, rows);
    profile_at(model->profile, PROFILE_HEAD, PROFILE_FORWARD, product_flops(rows, V, C));
    struct product product =
        product_of(GEMM_NT, rows, V, C, 1, in, C, model->weights.head, C, 0, model->scratch.logits, rows_ld(model, V));
    product.rows_done = loss_rows;
    product.context = loss;
    multiply_product(model->multiplier, &product);
    return in;
}

double head_loss(const struct pass *pass, const int32_t *targets, int64_t *counted)
{
    struct rows_loss loss = {.model = pass->model};
    for (int64_t first = 0; first < pass->N; first += HEAD_ROWS)
        head_chunk(pass, 1, targets, first, head_rows(pass, first), &loss);
    for (int64_t n = 0; n < pass->N; n++)
        *counted += targets[n] >= 0;
    if (pass->model->sums)
        metric_add(pass->model->sums, &loss.sums);
    return loss.sums.of[METRIC_loss];
}

static double head_depth_gradient(const struct pass *pass, int64_t depth, const int32_t *targets, double weight,
                                  real *dx)
{
    struct model *model = pass->model;
    struct scratch *scratch = &model->scratch;
    int64_t C = model->shape.d_model, V = model->shape.vocab_size, ld = rows_ld(model, V);
    struct rows_loss loss = {.model = model, .gradient = true, .weight = (real)weight};
    for (int64_t first = 0; first < pass->N; first += HEAD_ROWS) {
        int64_t rows = head_rows(pass, first);
        const real *in = head_chunk(pass, depth, targets, first, rows, &loss);
        profile_at(model->profile, PROFILE_HEAD, PROFILE_BACKWARD, 2 * product_flops(rows, V, C));
        multiply(model->multiplier, GEMM_TN, V, C, rows, 1, scratch->logits, ld, in, C, 1, model->grads.head, C);
        if (depth == 1) {
            multiply(model->multiplier, GEMM_NN, rows, C, V, 1, scratch->logits, ld, model->weights.head, C, 0,
                     dx + first * C, C);
        } else {
            multiply(model->multiplier, GEMM_NN, rows, C, V, 1, scratch->logits, ld, model->weights.head, C, 0,
                     scratch->dadapted, C);
            profile_at(model->profile, PROFILE_HEAD, PROFILE_BACKWARD, 2 * product_flops(rows, C, C));
            multiply(model->multiplier, GEMM_TN, C, C, rows, 1, scratch->dadapted, C, model->final + first * C, C, 1,
                     model->grads.adapters[depth - 2], C);
            multiply(model->multiplier, GEMM_NN, rows, C, C, 1, scratch->dadapted, C,
                     model->weights.adapters[depth - 2], C, 1, dx + first * C, C);
        }
    }
    return loss.nats * weight;
}

double head_loss_gradient(const struct pass *pass, const int32_t *targets, const int64_t *counts, real *dx)
{
    double loss = 0;
    int64_t depths = pass->model->shape.mtp_depth;
    for (int64_t depth = 1; depth <= depths; depth++) {
        double weight = counts[depth - 1] ? 1 / ((double)counts[depth - 1] * (double)depths) : 0;
        loss += head_depth_gradient(pass, depth, targets, weight, dx);
    }
    return loss;
}

void head_logits(const struct pass *pass, int64_t depth, real *logits)
{
    struct model *model = pass->model;
    int64_t C = model->shape.d_model, V = model->shape.vocab_size;
    for (int64_t first = 0; first < pass->N; first += HEAD_ROWS) {
        int64_t rows = head_rows(pass, first);
        const real *in = head_input(pass, depth, first, rows);
        multiply(model->multiplier, GEMM_NT, rows, V, C, 1, in, C, model->weights.head, C, 0, logits + first * V, V);
    }
}

void head_last_logits(const struct pass *pass, real *logits)
{
    struct model *model = pass->model;
    int64_t C = model->shape.d_model, V = model->shape.vocab_size;
    multiply(model->multiplier, GEMM_NT, 1, V, C, 1, model->final + (pass->N - 1) * C, C, model->weights.head, C, 0,
             logits, V);
}
