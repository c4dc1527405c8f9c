/* Moves weights of a model. */
#include "runner/rewire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"

/* NULL when the model has none. */
static real *find_weights(struct model *model, int64_t block, const char *name)
{
    char full[80];
    snprintf(full, sizeof full, "blocks.%" PRId64 ".%s", block, name);
    const struct tensor *tensor = tensor_find(model_tensors(model), full);
    return tensor ? model_parameters(model) + tensor->offset : NULL;
}

static void swap(real *a, real *b, int64_t count)
{
    for (int64_t i = 0; a && i < count; i++) {
        real keep = a[i];
        a[i] = b[i];
        b[i] = keep;
    }
}

void rewire_gate_up(struct model *model)
{
    struct model_shape s = model_shape(model);
    for (int64_t i = 0; i < s.n_layers; i++) {
        swap(find_weights(model, i, "feed_forward.gate.weight"), find_weights(model, i, "feed_forward.up.weight"),
             s.ff_hidden * s.d_model);
        swap(find_weights(model, i, "feed_forward.gate.bias"), find_weights(model, i, "feed_forward.up.bias"),
             s.ff_hidden);
    }
}

/* In each of `groups` runs of n pieces at x: piece i goes to place[i], or back. */
static void move_pieces(real *x, int64_t groups, int64_t n, int64_t piece, const int64_t *place, bool back)
{
    if (!x)
        return;
    real *old = memory_alloc((size_t)(n * piece), sizeof *old);
    for (int64_t g = 0; g < groups; g++, x += n * piece) {
        memcpy(old, x, (size_t)(n * piece) * sizeof *old);
        for (int64_t i = 0; i < n; i++)
            memcpy(x + (back ? i : place[i]) * piece, old + (back ? place[i] : i) * piece, (size_t)piece * sizeof *old);
    }
    memory_free(old);
}

int64_t rewire_tiled_place(const struct model_shape *shape, int64_t head)
{
    return head % shape->kv_heads * (shape->n_heads / shape->kv_heads) + head / shape->kv_heads;
}

void rewire_kv_tile(struct model *model, bool back)
{
    struct model_shape s = model_shape(model);
    int64_t H = s.n_heads, D = s.head_dim, *place = memory_alloc((size_t)H, sizeof *place);
    for (int64_t h = 0; h < H; h++)
        place[h] = rewire_tiled_place(&s, h);
    for (int64_t i = 0; i < s.n_layers; i++) {
        move_pieces(find_weights(model, i, "attention.query.weight"), 1, H, D * s.d_model, place, back);
        move_pieces(find_weights(model, i, "attention.query.bias"), 1, H, D, place, back);
        move_pieces(find_weights(model, i, "attention.output.weight"), s.d_model, H, D, place, back);
    }
    memory_free(place);
}

void rewire_rope_pairs(struct model *model, bool core_splits)
{
    struct model_shape s = model_shape(model);
    int64_t D = s.head_dim, C = s.d_model, *place = memory_alloc((size_t)D, sizeof *place);
    for (int64_t i = 0; i < D; i++) /* where element i of a split head is in an adjacent one */
        place[i] = i < D / 2 ? 2 * i : 2 * (i - D / 2) + 1;
    for (int64_t i = 0; i < s.n_layers; i++) {
        move_pieces(find_weights(model, i, "attention.query.weight"), s.n_heads, D, C, place, core_splits);
        move_pieces(find_weights(model, i, "attention.key.weight"), s.kv_heads, D, C, place, core_splits);
        move_pieces(find_weights(model, i, "attention.query.bias"), s.n_heads, D, 1, place, core_splits);
        move_pieces(find_weights(model, i, "attention.key.bias"), s.kv_heads, D, 1, place, core_splits);
        move_pieces(find_weights(model, i, "attention.query_norm.weight"), 1, D, 1, place, core_splits);
        move_pieces(find_weights(model, i, "attention.key_norm.weight"), 1, D, 1, place, core_splits);
    }
    memory_free(place);
}

static void scale(real *x, int64_t count, double factor)
{
    for (int64_t i = 0; x && i < count; i++)
        x[i] *= (real)factor;
}

void rewire_scale_scores(struct model *model, double factor)
{
    struct model_shape s = model_shape(model);
    int64_t D = s.head_dim, Q = s.n_heads * D;
    for (int64_t i = 0; i < s.n_layers; i++)
        if (s.qk_norm) /* what comes before it has no say in the size */
            scale(find_weights(model, i, "attention.query_norm.weight"), D, factor);
        else {
            scale(find_weights(model, i, "attention.query.weight"), Q * s.d_model, factor);
            scale(find_weights(model, i, "attention.query.bias"), Q, factor);
        }
}
