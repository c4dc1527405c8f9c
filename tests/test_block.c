/* The parts of a block, seen through the observer of a model whose weights make each part stand alone. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/model.h"
#include "tests/core_case.h"

enum { SEEN = 4096 };

/* What an observer kept of one activation. */
struct seen {
    const char *name;
    real data[SEEN];
    int64_t shape[4];
    size_t count;
};

static void keep(void *context, const char *name, const real *data, int dims, const int64_t *shape)
{
    struct seen *seen = context;
    if (strcmp(name, seen->name) != 0)
        return;
    seen->count = 1;
    for (int i = 0; i < dims; i++) {
        seen->shape[i] = shape[i];
        seen->count *= (size_t)shape[i];
    }
    cr_assert_leq(seen->count, SEEN);
    memcpy(seen->data, data, seen->count * sizeof *data);
}

static struct model *model_zero(const char *settings, int64_t vocab_size, int64_t rows)
{
    struct config config = config_of("", settings);
    struct error err;
    struct model *model = model_create(&config.model, vocab_size, rows, &err);
    cr_assert_not_null(model, "%s", err.text);
    return model;
}

static real *tensor_data(struct model *model, const char *name)
{
    const struct tensor *tensor = tensor_find(model_tensors(model), name);
    cr_assert_not_null(tensor, "%s", name);
    return model_parameters(model) + tensor->offset;
}

static void tensor_fill(struct model *model, const char *name, real value)
{
    const struct tensor *tensor = tensor_find(model_tensors(model), name);
    cr_assert_not_null(tensor, "%s", name);
    for (size_t i = 0; i < tensor->count; i++)
        model_parameters(model)[tensor->offset + i] = value;
}

static void observe_one(struct model *model, const int32_t *inputs, int64_t T, struct seen *seen)
{
    size_t vocabulary = (size_t)model_shape(model).vocab_size;
    real *logits = memory_alloc((size_t)T * vocabulary, sizeof *logits);
    seen->count = 0;
    model_observe(model, keep, seen);
    model_logits(model, inputs, 1, T, logits);
    cr_assert_gt(seen->count, 0, "'%s' was not seen", seen->name);
    memory_free(logits);
}

/* ---- norms: with all matrices zero, final_norm sees the token embedding ---- */

enum { WIDTH = 8 };

static void norm_of(const char *settings, const real row[WIDTH], real out[WIDTH])
{
    static struct seen seen = {.name = "final_norm"};
    char all[256];
    snprintf(all, sizeof all, "model.d_model=8 model.n_layers=1 model.n_heads=1 model.position=none %s", settings);
    struct model *model = model_zero(all, 2, 4);
    memcpy(tensor_data(model, "token_embedding.weight"), row, WIDTH * sizeof *row);
    tensor_fill(model, "final_norm.weight", 1);
    observe_one(model, (const int32_t[]){0}, 1, &seen);
    memcpy(out, seen.data, WIDTH * sizeof *out);
    model_free(model);
}

static const real example[WIDTH] = {1, -2, 3, 0.5f, -0.25f, 4, -1, 2};

static void moved_example(real factor, real shift, real out[WIDTH])
{
    for (int i = 0; i < WIDTH; i++)
        out[i] = factor * example[i] + shift;
}

Test(block, layernorm_ignores_shift_and_scale)
{
    real plain[WIDTH], moved[WIDTH], in[WIDTH];
    norm_of("", example, plain);
    moved_example(3, 7, in);
    norm_of("", in, moved);
    for (int i = 0; i < WIDTH; i++) /* epsilon 1e-5 against a variance of 3.7 and of 33 */
        cr_assert_float_eq((double)plain[i], (double)moved[i], 5e-6);
    double mean = 0, square = 0;
    for (int i = 0; i < WIDTH; i++) {
        mean += (double)plain[i] / WIDTH;
        square += (double)plain[i] * (double)plain[i] / WIDTH;
    }
    cr_assert_float_eq(mean, 0, 1e-6);
    cr_assert_float_eq(square, 1, 1e-5);
}

Test(block, rmsnorm_ignores_scale_and_does_not_re_centre)
{
    real plain[WIDTH], scaled[WIDTH], shifted[WIDTH], in[WIDTH];
    norm_of("model.norm=rmsnorm", example, plain);
    moved_example(3, 0, in);
    norm_of("model.norm=rmsnorm", in, scaled);
    moved_example(1, 7, in);
    norm_of("model.norm=rmsnorm", in, shifted);
    double root = 0, mean = 0;
    for (int i = 0; i < WIDTH; i++)
        root += (double)in[i] * (double)in[i] / WIDTH;
    for (int i = 0; i < WIDTH; i++) {
        cr_assert_float_eq((double)plain[i], (double)scaled[i], 2e-6);
        cr_assert_float_eq((double)shifted[i], (double)in[i] / sqrt(root), 2e-6);
        mean += (double)shifted[i] / WIDTH;
    }
    cr_assert_gt(mean, 0.9, "the mean stays in");
}

Test(block, rmsnorm_adds_its_epsilon_to_the_mean_square)
{
    real small[WIDTH], out[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        small[i] = 1e-4f;
    norm_of("model.norm=rmsnorm model.norm_epsilon=1e-5", small, out);
    cr_assert_float_eq((double)out[0], 0.031607, 5e-7);
    norm_of("model.norm=rmsnorm model.norm_epsilon=1e-6", small, out);
    cr_assert_float_eq((double)out[0], 0.099504, 5e-7);
    norm_of("model.norm=rmsnorm", small, out);
    cr_assert_float_eq((double)out[0], 0.099504, 5e-7, "1e-6 is the default of rmsnorm");
}

/* ---- activations: the norm's bias feeds 1 into every column, `up` averages them ---- */

static double activation_of_one(const char *kind)
{
    static struct seen seen = {.name = "blocks.0.feed_forward"};
    char all[256];
    snprintf(all, sizeof all,
             "model.d_model=8 model.n_layers=1 model.n_heads=1 model.position=none model.feed_forward=%s", kind);
    struct model *model = model_zero(all, 2, 4);
    tensor_fill(model, "blocks.0.feed_forward_norm.bias", 1);
    tensor_fill(model, "blocks.0.feed_forward.up.weight", 1.0f / 8);
    if (strcmp(kind, "swiglu") == 0)
        tensor_fill(model, "blocks.0.feed_forward.gate.weight", 1.0f / 8);
    tensor_fill(model, "blocks.0.feed_forward.down.weight", 1 / (real)model_shape(model).ff_hidden);
    observe_one(model, (const int32_t[]){0}, 1, &seen);
    model_free(model);
    return (double)seen.data[0];
}

Test(block, activations_have_their_known_values_at_one)
{
    cr_assert_float_eq(activation_of_one("gelu"), 0.841345, 1e-6);
    cr_assert_float_eq(activation_of_one("gelu_tanh"), 0.841192, 1e-6);
    cr_assert_float_eq(activation_of_one("swiglu"), 0.731059, 1e-6); /* 1 / (1 + exp(-1)) */
}

/* ---- rotation: the norm's bias is the query (and key) at every position ---- */

enum { POSITIONS = 40, HEAD = 4 };

static void rotated(const char *settings, const char *which, const real head[HEAD], struct seen *seen)
{
    char all[256], name[64];
    int32_t inputs[POSITIONS] = {0};
    snprintf(all, sizeof all,
             "model.d_model=4 model.n_layers=1 model.n_heads=1 model.position=rope model.context_length=40 %s",
             settings);
    struct model *model = model_zero(all, 2, POSITIONS);
    memcpy(tensor_data(model, "blocks.0.attention_norm.bias"), head, HEAD * sizeof *head);
    snprintf(name, sizeof name, "blocks.0.attention.%s.weight", which);
    for (int i = 0; i < HEAD; i++)
        tensor_data(model, name)[i * HEAD + i] = 1;
    seen->name = strcmp(which, "query") == 0 ? "blocks.0.attention.query" : "blocks.0.attention.key";
    observe_one(model, inputs, POSITIONS, seen);
    model_free(model);
}

static void assert_row(const struct seen *seen, int position, double a, double b, double c, double d)
{
    const real *row = seen->data + position * HEAD;
    const double expected[HEAD] = {a, b, c, d};
    for (int i = 0; i < HEAD; i++)
        cr_expect_float_eq((double)row[i], expected[i], 2e-6, "position %d, element %d: %g", position, i,
                           (double)row[i]);
}

Test(block, rotation_turns_pairs_by_layout)
{
    static struct seen seen;
    const real unit[HEAD] = {1, 0, 0, 0}, second[HEAD] = {0, 0, 1, 0};
    const int positions[] = {0, 1, 7, 31};
    for (int i = 0; i < 4; i++) {
        int p = positions[i];
        rotated("model.rope_layout=split", "query", unit, &seen);
        assert_row(&seen, p, cos(p), 0, sin(p), 0);
        rotated("model.rope_layout=adjacent", "key", unit, &seen);
        assert_row(&seen, p, cos(p), sin(p), 0, 0);
        rotated("model.rope_layout=adjacent", "query", second,
                &seen); /* the second pair: 10000^(-2/4) radians a step */
        assert_row(&seen, p, 0, 0, cos(p * 0.01), sin(p * 0.01));
        rotated("model.rope_scale=4", "query", unit, &seen);
        assert_row(&seen, p, cos(p / 4.0), sin(p / 4.0), 0, 0);
    }
    rotated("model.rope_layout=split", "query", unit, &seen);
    cr_assert_float_eq((double)seen.data[HEAD], 0.5403, 5e-5);
    cr_assert_float_eq((double)seen.data[HEAD + 2], 0.8415, 5e-5);
}

static double dot(const real *a, const real *b)
{
    double sum = 0;
    for (int i = 0; i < HEAD; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

Test(block, rotation_keeps_length_and_depends_on_distance_only)
{
    static struct seen query, key;
    const real q[HEAD] = {1, -2, 0.5f, 3}, k[HEAD] = {0.3f, 1, -1, 2};
    const char *const layouts[] = {"model.rope_layout=adjacent", "model.rope_layout=split"};
    for (int l = 0; l < 2; l++) {
        rotated(layouts[l], "query", q, &query);
        rotated(layouts[l], "key", k, &key);
        for (int p = 0; p < POSITIONS; p++) {
            /* A float rotation of length 4 is off by a few 1e-7 of the square 14.25. */
            cr_assert_float_eq(dot(query.data + p * HEAD, query.data + p * HEAD), dot(q, q), 5e-6);
            for (int distance = 0; distance <= p; distance++)
                cr_assert_float_eq(dot(query.data + p * HEAD, key.data + (p - distance) * HEAD),
                                   dot(query.data + distance * HEAD, key.data), 1e-5, "%s: %d behind %d", layouts[l],
                                   distance, p);
        }
        cr_assert(fabs(dot(query.data, key.data) - dot(query.data + 9 * HEAD, key.data)) > 0.1, "distance matters");
    }
}

/* ---- residual stream ---- */

static double top_variance(int layers, bool scaled)
{
    enum { LENGTH = 32, COLUMNS = 64 };
    static struct seen seen;
    char settings[256], name[32];
    int32_t inputs[LENGTH];
    fill_tokens("inputs", inputs, LENGTH, 50);
    snprintf(settings, sizeof settings,
             "model.d_model=64 model.context_length=32 model.n_layers=%d model.scaled_init=%s model.init_std=0.05",
             layers, scaled ? "true" : "false");
    struct model *model = model_zero(settings, 50, LENGTH);
    model_init(model, 1);
    snprintf(name, sizeof name, "blocks.%d", layers - 1);
    seen.name = name;
    observe_one(model, inputs, LENGTH, &seen);
    model_free(model);
    double sum = 0;
    for (size_t i = 0; i < seen.count; i++)
        sum += (double)seen.data[i] * (double)seen.data[i];
    return sum / (double)seen.count;
}

Test(block, scaled_init_keeps_the_residual_variance_flat_over_depth)
{
    /* Each block adds about the same; 1 / (2 L) of it under scaled_init. A factor 1.3 leaves room for one draw. */
    double shallow = top_variance(2, true), deep = top_variance(16, true);
    cr_assert(deep / shallow < 1.3 && shallow / deep < 1.3, "%g at 2 blocks, %g at 16", shallow, deep);
    cr_assert_gt(top_variance(16, false) / top_variance(2, false), 3, "without it the variance grows with depth");
}
