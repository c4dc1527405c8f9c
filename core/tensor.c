/* The table of tensors, made by walking one template row a tensor. Order in the template is order in the flat buffers:
 * query, key and value lie side by side so that one product makes all three, and so do up and gate. */
#include "core/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"

enum scope { SCOPE_MODEL, SCOPE_BLOCK, SCOPE_DEPTH };
enum size { ONE, V, T, C, Q, KV, D, F };
enum presence {
    ALWAYS,
    IF_NORM_BIAS,
    IF_LEARNED_POSITIONS,
    IF_QK_NORM,
    IF_LINEAR_BIAS,
    IF_GATED,
    IF_GATED_BIAS,
    IF_UNTIED
};
enum start { ZEROS, ONES, NORMAL, NORMAL_BRANCH_END };

struct template
{
    const char *name; /* printf format of the block or depth */
    enum scope scope;
    enum presence presence;
    enum size rows, columns;
    enum start start;
    bool multiplies;
};

/* To add a tensor: a row here, its pointer in struct model_weights or block_weights (network.h). */
static const struct template templates[] = {
    {"token_embedding.weight", SCOPE_MODEL, ALWAYS, V, C, NORMAL, false},
    {"position_embedding.weight", SCOPE_MODEL, IF_LEARNED_POSITIONS, T, C, NORMAL, false},
    {"blocks.%" PRId64 ".attention_norm.weight", SCOPE_BLOCK, ALWAYS, C, ONE, ONES, false},
    {"blocks.%" PRId64 ".attention_norm.bias", SCOPE_BLOCK, IF_NORM_BIAS, C, ONE, ZEROS, false},
    {"blocks.%" PRId64 ".attention.query.weight", SCOPE_BLOCK, ALWAYS, Q, C, NORMAL, true},
    {"blocks.%" PRId64 ".attention.key.weight", SCOPE_BLOCK, ALWAYS, KV, C, NORMAL, true},
    {"blocks.%" PRId64 ".attention.value.weight", SCOPE_BLOCK, ALWAYS, KV, C, NORMAL, true},
    {"blocks.%" PRId64 ".attention.query.bias", SCOPE_BLOCK, IF_LINEAR_BIAS, Q, ONE, ZEROS, false},
    {"blocks.%" PRId64 ".attention.key.bias", SCOPE_BLOCK, IF_LINEAR_BIAS, KV, ONE, ZEROS, false},
    {"blocks.%" PRId64 ".attention.value.bias", SCOPE_BLOCK, IF_LINEAR_BIAS, KV, ONE, ZEROS, false},
    {"blocks.%" PRId64 ".attention.query_norm.weight", SCOPE_BLOCK, IF_QK_NORM, D, ONE, ONES, false},
    {"blocks.%" PRId64 ".attention.key_norm.weight", SCOPE_BLOCK, IF_QK_NORM, D, ONE, ONES, false},
    {"blocks.%" PRId64 ".attention.output.weight", SCOPE_BLOCK, ALWAYS, C, Q, NORMAL_BRANCH_END, true},
    {"blocks.%" PRId64 ".attention.output.bias", SCOPE_BLOCK, IF_LINEAR_BIAS, C, ONE, ZEROS, false},
    {"blocks.%" PRId64 ".feed_forward_norm.weight", SCOPE_BLOCK, ALWAYS, C, ONE, ONES, false},
    {"blocks.%" PRId64 ".feed_forward_norm.bias", SCOPE_BLOCK, IF_NORM_BIAS, C, ONE, ZEROS, false},
    {"blocks.%" PRId64 ".feed_forward.up.weight", SCOPE_BLOCK, ALWAYS, F, C, NORMAL, true},
    {"blocks.%" PRId64 ".feed_forward.gate.weight", SCOPE_BLOCK, IF_GATED, F, C, NORMAL, true},
    {"blocks.%" PRId64 ".feed_forward.up.bias", SCOPE_BLOCK, IF_LINEAR_BIAS, F, ONE, ZEROS, false},
    {"blocks.%" PRId64 ".feed_forward.gate.bias", SCOPE_BLOCK, IF_GATED_BIAS, F, ONE, ZEROS, false},
    {"blocks.%" PRId64 ".feed_forward.down.weight", SCOPE_BLOCK, ALWAYS, C, F, NORMAL_BRANCH_END, true},
    {"blocks.%" PRId64 ".feed_forward.down.bias", SCOPE_BLOCK, IF_LINEAR_BIAS, C, ONE, ZEROS, false},
    {"final_norm.weight", SCOPE_MODEL, ALWAYS, C, ONE, ONES, false},
    {"final_norm.bias", SCOPE_MODEL, IF_NORM_BIAS, C, ONE, ZEROS, false},
    {"lm_head.weight", SCOPE_MODEL, IF_UNTIED, V, C, NORMAL, true},
    {"mtp_adapters.%" PRId64 ".weight", SCOPE_DEPTH, ALWAYS, C, C, NORMAL, true},
};
enum { TEMPLATES = sizeof templates / sizeof templates[0] };

static bool template_is_present(const struct template *row, const struct model_shape *shape)
{
    switch (row->presence) {
    case ALWAYS: return true;
    case IF_NORM_BIAS: return shape->norm_bias;
    case IF_LEARNED_POSITIONS: return shape->learned_positions;
    case IF_QK_NORM: return shape->qk_norm;
    case IF_LINEAR_BIAS: return shape->linear_bias;
    case IF_GATED: return shape->ff_inputs == 2;
    case IF_GATED_BIAS: return shape->ff_inputs == 2 && shape->linear_bias;
    case IF_UNTIED: return !shape->tied_embeddings;
    }
    return false;
}

static int64_t size_of(enum size size, const struct model_shape *shape)
{
    switch (size) {
    case ONE: return 1;
    case V: return shape->vocab_size;
    case T: return shape->context_length;
    case C: return shape->d_model;
    case Q: return shape->n_heads * shape->head_dim;
    case KV: return shape->kv_heads * shape->head_dim;
    case D: return shape->head_dim;
    case F: return shape->ff_hidden;
    }
    return 0;
}

static int64_t scope_length(enum scope scope, const struct model_shape *shape)
{
    switch (scope) {
    case SCOPE_MODEL: return 1;
    case SCOPE_BLOCK: return shape->n_layers;
    case SCOPE_DEPTH: return shape->mtp_depth - 1;
    }
    return 0;
}

static void table_append(struct tensor_table *table, const struct template *row, int64_t index,
                         const struct model_shape *shape, const struct model_config *config)
{
    struct tensor *tensor = &table->tensors[table->count++];
    /* the format is a constant of the table above with one int64_t or none */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(tensor->name, sizeof tensor->name, row->name, index);
#pragma GCC diagnostic pop
    tensor->shape[0] = size_of(row->rows, shape);
    tensor->shape[1] = size_of(row->columns, shape);
    tensor->dims = row->columns == ONE ? 1 : 2;
    tensor->count = (size_t)tensor->shape[0] * (size_t)tensor->shape[1];
    tensor->offset = table->total;
    tensor->init = row->start == ZEROS ? TENSOR_ZEROS : row->start == ONES ? TENSOR_ONES : TENSOR_NORMAL;
    tensor->init_std = tensor->init == TENSOR_NORMAL ? config->init_std : 0;
    if (row->start == NORMAL_BRANCH_END && config->scaled_init)
        tensor->init_std /= sqrt(2 * (double)shape->n_layers);
    tensor->decays = tensor->dims > 1;
    tensor->multiplies = row->multiplies;
    table->total += tensor->count;
}

struct tensor_table *tensor_table_create(const struct model_config *config, int64_t vocab_size)
{
    struct model_shape shape = model_shape_of(config, vocab_size);
    struct tensor_table *table = memory_alloc(1, sizeof *table);
    size_t most = TEMPLATES * (size_t)(1 + shape.n_layers + shape.mtp_depth);
    table->tensors = memory_alloc(most, sizeof *table->tensors);
    /* Rows of one scope that follow each other are a group repeated for each block or depth. */
    for (size_t first = 0, end; first < TEMPLATES; first = end) {
        for (end = first; end < TEMPLATES && templates[end].scope == templates[first].scope; end++)
            continue;
        for (int64_t index = 0; index < scope_length(templates[first].scope, &shape); index++)
            for (size_t i = first; i < end; i++)
                if (template_is_present(&templates[i], &shape))
                    table_append(table, &templates[i], index, &shape, config);
    }
    return table;
}

void tensor_table_free(struct tensor_table *table)
{
    if (!table)
        return;
    memory_free(table->tensors);
    memory_free(table);
}

const struct tensor *tensor_find(const struct tensor_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->tensors[i].name, name) == 0)
            return &table->tensors[i];
    return NULL;
}
