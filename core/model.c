/* What a model is made of: weights, activations, position tables, initial values; and what it costs. */
#include "core/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/network.h"

/* ---- weights: pointers into a flat buffer ---- */

static real *bind(const struct tensor_table *table, real *buffer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* NULL when the model has no such tensor. */
static real *bind(const struct tensor_table *table, real *buffer, const char *format, ...)
{
    char name[80];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    const struct tensor *tensor = tensor_find(table, name);
    return tensor ? buffer + tensor->offset : NULL;
}

static void block_weights_bind(struct block_weights *b, const struct tensor_table *table, real *buffer, int64_t i)
{
    b->attention_norm.weight = bind(table, buffer, "blocks.%" PRId64 ".attention_norm.weight", i);
    b->attention_norm.bias = bind(table, buffer, "blocks.%" PRId64 ".attention_norm.bias", i);
    b->qkv = bind(table, buffer, "blocks.%" PRId64 ".attention.query.weight", i);
    b->qkv_bias = bind(table, buffer, "blocks.%" PRId64 ".attention.query.bias", i);
    b->query_norm = bind(table, buffer, "blocks.%" PRId64 ".attention.query_norm.weight", i);
    b->key_norm = bind(table, buffer, "blocks.%" PRId64 ".attention.key_norm.weight", i);
    b->output = bind(table, buffer, "blocks.%" PRId64 ".attention.output.weight", i);
    b->output_bias = bind(table, buffer, "blocks.%" PRId64 ".attention.output.bias", i);
    b->feed_forward_norm.weight = bind(table, buffer, "blocks.%" PRId64 ".feed_forward_norm.weight", i);
    b->feed_forward_norm.bias = bind(table, buffer, "blocks.%" PRId64 ".feed_forward_norm.bias", i);
    b->up = bind(table, buffer, "blocks.%" PRId64 ".feed_forward.up.weight", i);
    b->up_bias = bind(table, buffer, "blocks.%" PRId64 ".feed_forward.up.bias", i);
    b->down = bind(table, buffer, "blocks.%" PRId64 ".feed_forward.down.weight", i);
    b->down_bias = bind(table, buffer, "blocks.%" PRId64 ".feed_forward.down.bias", i);
}

static void weights_bind(struct model_weights *w, const struct model *model, real *buffer)
{
    const struct tensor_table *table = model->table;
    w->blocks = memory_alloc((size_t)model->shape.n_layers, sizeof *w->blocks);
    w->adapters = memory_alloc((size_t)model->shape.mtp_depth, sizeof *w->adapters);
    w->token_embedding = bind(table, buffer, "token_embedding.weight");
    w->position_embedding = bind(table, buffer, "position_embedding.weight");
    w->final_norm.weight = bind(table, buffer, "final_norm.weight");
    w->final_norm.bias = bind(table, buffer, "final_norm.bias");
    w->head = bind(table, buffer, "lm_head.weight");
    if (!w->head)
        w->head = w->token_embedding;
    for (int64_t i = 0; i < model->shape.n_layers; i++)
        block_weights_bind(&w->blocks[i], table, buffer, i);
    for (int64_t i = 0; i + 1 < model->shape.mtp_depth; i++)
        w->adapters[i] = bind(table, buffer, "mtp_adapters.%" PRId64 ".weight", i);
}

/* ---- activations ---- */

static real *take(struct workspace *workspace, int64_t rows, int64_t columns)
{
    return workspace_take(workspace, rows * columns, sizeof(real));
}

static void branch_lay_out(struct branch *branch, struct workspace *w, int64_t N, int64_t C, bool mean)
{
    branch->normed = take(w, N, C);
    branch->sum = take(w, N, C);
    branch->mean = mean ? take(w, N, 1) : NULL;
    branch->rstd = take(w, N, 1);
}

static void block_lay_out(struct block *block, struct workspace *w, const struct model_shape *s, int64_t N)
{
    branch_lay_out(&block->attention, w, N, s->d_model, s->norm_bias);
    branch_lay_out(&block->feed_forward, w, N, s->d_model, s->norm_bias);
    block->qkv = take(w, N, shape_qkv(s));
    block->qk_raw = s->qk_norm ? take(w, N, shape_q(s) + shape_kv(s)) : NULL;
    block->qk_rstd = s->qk_norm ? take(w, N, s->n_heads + s->kv_heads) : NULL;
    block->mix = take(w, N, shape_q(s));
    block->most = take(w, N, s->n_heads);
    block->scale = take(w, N, s->n_heads);
    block->up = take(w, N, row_room(s->ff_inputs * s->ff_hidden));
    block->act = take(w, N, row_room(s->ff_hidden));
}

static void scratch_lay_out(struct scratch *scratch, struct workspace *w, const struct model_shape *s, int64_t N)
{
    int64_t C = s->d_model, T = s->context_length, head_rows = N < HEAD_ROWS ? N : HEAD_ROWS;
    scratch->branch_out = take(w, N, C);
    scratch->dnormed = take(w, N, C);
    scratch->dbranch = take(w, N, C);
    scratch->dx = take(w, N, C);
    scratch->dqkv = take(w, N, shape_qkv(s));
    scratch->dmix = take(w, N, shape_q(s));
    scratch->dact = take(w, N, row_room(s->ff_hidden));
    scratch->scores = take(w, ATTENTION_ROWS, scores_ld(T));
    scratch->dropped = take(w, ATTENTION_ROWS, scores_ld(T));
    scratch->dscores = take(w, ATTENTION_ROWS, scores_ld(T));
    scratch->logits = take(w, head_rows, row_room(s->vocab_size));
    scratch->adapted = take(w, head_rows, C);
    scratch->dadapted = take(w, head_rows, C);
    scratch->targets = workspace_take(w, head_rows, sizeof *scratch->targets);
}

static void activations_lay_out(struct model *model, struct workspace *w)
{
    const struct model_shape *s = &model->shape;
    int64_t N = model->max_tokens;
    model->embedded = take(w, N, s->d_model);
    for (int64_t i = 0; i < s->n_layers; i++)
        block_lay_out(&model->blocks[i], w, s, N);
    model->final = take(w, N, s->d_model);
    model->final_mean = s->norm_bias ? take(w, N, 1) : NULL;
    model->final_rstd = take(w, N, 1);
    scratch_lay_out(&model->scratch, w, s, N);
}

/* ---- positions ---- */

/* sin and cos of position / 10000^(2i/C) in columns 2i and 2i + 1 (Vaswani et al., "Attention is all you need", 2017).
 */
static real *sinusoids_create(int64_t T, int64_t C)
{
    real *table = memory_alloc((size_t)(T * C), sizeof *table);
    for (int64_t t = 0; t < T; t++)
        for (int64_t i = 0; i < C / 2; i++) {
            double angle = (double)t / pow(10000, (double)(2 * i) / (double)C);
            table[t * C + 2 * i] = (real)sin(angle);
            table[t * C + 2 * i + 1] = (real)cos(angle);
        }
    return table;
}

static double *frequencies_create(const struct model_config *config, int64_t D)
{
    double *frequencies = memory_alloc((size_t)(D / 2), sizeof *frequencies);
    for (int64_t i = 0; i < D / 2; i++)
        frequencies[i] = rotation_speed(config, i, D);
    return frequencies;
}

/* Tables for positions below T, in place of those there. */
static void positions_make(struct model *model, int64_t T)
{
    int64_t half = model->shape.head_dim / 2;
    if (model->sinusoids) {
        memory_free(model->sinusoids);
        model->sinusoids = sinusoids_create(T, model->shape.d_model);
    }
    if (model->frequencies) {
        memory_free(model->cosines);
        memory_free(model->sines);
        model->cosines = memory_alloc((size_t)(T * half), sizeof *model->cosines);
        model->sines = memory_alloc((size_t)(T * half), sizeof *model->sines);
        for (int64_t t = 0; t < T; t++)
            for (int64_t i = 0; i < half; i++) {
                double angle = (double)t * model->frequencies[i];
                model->cosines[t * half + i] = (real)cos(angle);
                model->sines[t * half + i] = (real)sin(angle);
            }
    }
}

/* Bytes of those tables. */
static size_t positions_memory(const struct model_config *config, const struct model_shape *s)
{
    size_t T = (size_t)s->context_length;
    size_t sinusoids = config->position == POSITION_SINUSOIDAL ? T * (size_t)s->d_model : 0;
    size_t rotations = config->position == POSITION_ROPE ? 2 * T * (size_t)(s->head_dim / 2) : 0;
    return (sinusoids + rotations) * sizeof(real);
}

bool model_extend_positions(struct model *model, int64_t positions)
{
    if (positions > model->shape.context_length && !model->weights.position_embedding)
        positions_make(model, positions);
    return positions <= model->shape.context_length || !model->weights.position_embedding;
}

void model_set_frequencies(struct model *model, const double *frequencies)
{
    memcpy(model->frequencies, frequencies, (size_t)(model->shape.head_dim / 2) * sizeof *frequencies);
    positions_make(model, model->shape.context_length);
}

/* ---- life ---- */

/* Elements of the largest matrix that is multiplied in a pass over N tokens. */
static int64_t largest_operand(const struct model_shape *s, int64_t N)
{
    int64_t inner = s->ff_inputs * s->ff_hidden, C = s->d_model, head_rows = N < HEAD_ROWS ? N : HEAD_ROWS;
    int64_t widest = inner > C ? inner : C, longest = N > C ? N : C;
    widest = shape_qkv(s) > widest ? shape_qkv(s) : widest;
    int64_t linear = longest * widest, head_longest = head_rows > C ? head_rows : C,
            head = s->vocab_size * head_longest;
    int64_t T = s->context_length, scores = (T < ATTENTION_ROWS ? T : ATTENTION_ROWS) * T;
    linear = linear > scores ? linear : scores;
    return linear > head ? linear : head;
}

void model_set_precision(struct model *model, int precision)
{
    multiplier_free(model->multiplier);
    model->multiplier = multiplier_create(precision, largest_operand(&model->shape, model->max_tokens));
}

static void functions_pick(struct model *model)
{
    const struct model_config *config = &model->config;
    model->norm = &kernels()->norm[config->norm];
    model->activation = kernels()->activation[config->feed_forward];
    model->norm_first = config->residual == RESIDUAL_PRE;
    model->rope_split = config->rope_layout == ROPE_SPLIT;
    model->drop_rate = config->dropout;
    model->attention_scale = (real)(1 / sqrt((double)model->shape.head_dim));
    if (config->position == POSITION_SINUSOIDAL)
        model->sinusoids = sinusoids_create(0, model->shape.d_model);
    if (config->position == POSITION_ROPE)
        model->frequencies = frequencies_create(config, model->shape.head_dim);
    positions_make(model, model->shape.context_length);
}

/* The structs alone, without the large buffers. */
static struct model *model_outline(const struct model_config *config, int64_t vocab_size, int64_t max_tokens)
{
    struct model *model = memory_alloc(1, sizeof *model);
    model->config = *config;
    model->shape = model_shape_of(config, vocab_size);
    model->table = tensor_table_create(config, vocab_size);
    model->max_tokens = max_tokens;
    model->blocks = memory_alloc((size_t)model->shape.n_layers, sizeof *model->blocks);
    return model;
}

struct model *model_create(const struct model_config *config, int64_t vocab_size, int64_t max_tokens, struct error *err)
{
    int64_t positions = model_shape_of(config, vocab_size).context_length;
    int64_t widest = positions > vocab_size ? positions : vocab_size;
    if (max_tokens < 1 || max_tokens > INT32_MAX || widest > INT32_MAX) {
        error_set(err, "a pass over %" PRId64 " tokens with rows of %" PRId64 " is past what a product can index (%d)",
                  max_tokens, widest, INT32_MAX);
        return NULL;
    }
    struct model *model = model_outline(config, vocab_size, max_tokens);
    struct workspace counter = {NULL, 0};
    activations_lay_out(model, &counter);
    model->workspace.base = memory_alloc(counter.used, 1);
    activations_lay_out(model, &model->workspace);
    model->parameters = memory_alloc(model->table->total, sizeof(real));
    model->gradients = memory_alloc(model->table->total, sizeof(real));
    weights_bind(&model->weights, model, model->parameters);
    weights_bind(&model->grads, model, model->gradients);
    functions_pick(model);
    model_set_precision(model, PRECISION_FP32);
    return model;
}

static void weights_release(struct model_weights *weights)
{
    memory_free(weights->blocks);
    memory_free(weights->adapters);
}

void model_free(struct model *model)
{
    if (!model)
        return;
    weights_release(&model->weights);
    weights_release(&model->grads);
    multiplier_free(model->multiplier);
    memory_free(model->workspace.base);
    memory_free(model->parameters);
    memory_free(model->gradients);
    memory_free(model->sinusoids);
    memory_free(model->frequencies);
    memory_free(model->cosines);
    memory_free(model->sines);
    memory_free(model->blocks);
    tensor_table_free(model->table);
    memory_free(model);
}

static struct random_stream stream_of_block(int64_t seed, int64_t index, const char *site)
{
    char name[96];
    snprintf(name, sizeof name, "dropout/blocks.%" PRId64 ".%s", index, site);
    return random_stream_make(seed, name);
}

void model_init(struct model *model, int64_t seed)
{
    for (size_t i = 0; i < model->table->count; i++) {
        const struct tensor *tensor = &model->table->tensors[i];
        real *values = model->parameters + tensor->offset;
        if (tensor->init == TENSOR_NORMAL) {
            char name[sizeof tensor->name + 8];
            snprintf(name, sizeof name, "init/%s", tensor->name);
            struct random_stream stream = random_stream_make(seed, name);
            random_normal_fill(&stream, tensor->init_std, values, tensor->count);
        } else {
            for (size_t k = 0; k < tensor->count; k++)
                values[k] = tensor->init == TENSOR_ONES ? 1 : 0;
        }
    }
    model->embedding_dropout = random_stream_make(seed, "dropout/embedding");
    for (int64_t i = 0; i < model->shape.n_layers; i++) {
        model->blocks[i].attention_dropout = stream_of_block(seed, i, "attention");
        model->blocks[i].feed_forward_dropout = stream_of_block(seed, i, "feed_forward");
    }
}

const struct tensor_table *model_tensors(const struct model *model)
{
    return model->table;
}

real *model_parameters(struct model *model)
{
    return model->parameters;
}

real *model_gradients(struct model *model)
{
    return model->gradients;
}

struct model_shape model_shape(const struct model *model)
{
    return model->shape;
}

void model_observe(struct model *model, model_observer *observer, void *context)
{
    model->observer = observer;
    model->observer_context = context;
}

void model_measure(struct model *model, struct metric_sums *sums)
{
    model->sums = sums;
}

void model_profile(struct model *model, struct profile *profile)
{
    model->profile = profile;
}

/* ---- costs ---- */

double model_flops_per_token(const struct model_config *config, int64_t vocab_size)
{
    struct model_shape s = model_shape_of(config, vocab_size);
    struct tensor_table *table = tensor_table_create(config, vocab_size);
    double multiplied = 0;
    for (size_t i = 0; i < table->count; i++)
        if (table->tensors[i].multiplies)
            multiplied += (double)table->tensors[i].count;
    tensor_table_free(table);
    double head = (double)(s.vocab_size * s.d_model);
    multiplied += head * (double)(s.mtp_depth - (s.tied_embeddings ? 0 : 1));
    /* q k^T and p v, 2 operations each, over T / 2 positions, forward and twice that backward */
    double attention = 6.0 * (double)s.n_layers * (double)shape_q(&s) * (double)s.context_length;
    return 6 * multiplied + attention;
}

size_t model_memory(const struct model_config *config, int64_t vocab_size, int64_t max_tokens, int precision)
{
    struct model *model = model_outline(config, vocab_size, max_tokens);
    struct workspace counter = {NULL, 0};
    activations_lay_out(model, &counter);
    size_t bytes = counter.used + 2 * model->table->total * sizeof(real) + positions_memory(config, &model->shape);
    bytes += multiplier_memory(precision, largest_operand(&model->shape, max_tokens));
    model_free(model);
    return bytes;
}
