/* What any decoder must do, whatever its parts: its size, its start, causality, who gets a gradient, learning at all.
 */
#include "core/model.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "core/memory.h"
#include "core/optimizer.h"
#include "core/trainer.h"
#include "tests/core_case.h"

static const char base[] = "model.context_length=16 model.d_model=24 model.n_heads=2 model.n_layers=2";
enum { B = 4, T = 11, V = 37 };

static struct model *model_of(const char *settings, int64_t vocab_size)
{
    struct config config = config_of(base, settings);
    struct error err;
    struct model *model = model_create(&config.model, vocab_size, B * T, &err);
    cr_assert_not_null(model, "%s: %s", settings, err.text);
    model_init(model, 1337);
    return model;
}

/* ---- size ---- */

static const struct {
    const char *settings;
    int64_t vocab_size, parameters;
} counts[] = {
#define DAY1 "model.d_model=128 model.n_layers=2 model.n_heads=4 model.context_length=128 "
#define DAY2 "model.d_model=256 model.n_layers=4 model.n_heads=8 model.context_length=256 "
#define DAY5 "model.d_model=512 model.n_layers=8 model.n_heads=8 model.context_length=512 "
#define MODERN "model.position=rope model.norm=rmsnorm model.feed_forward=swiglu model.kv_heads=2"
    {DAY1, 1024, 541952},
    {DAY2, 2048, 3740160},
    {DAY2 "model.norm=rmsnorm", 2048, 3737856},
    {DAY2 "model.feed_forward=swiglu", 2048, 3731968},
    {DAY2 "model.kv_heads=4", 2048, 3478016},
    {DAY2 "model.kv_heads=2", 2048, 3346944},
    {DAY2 "model.kv_heads=1", 2048, 3281408},
    {DAY2 MODERN, 2048, 3270912},
    {DAY5, 8192, 29639680},
    {DAY5 MODERN, 8192, 26255872},
    {"model.d_model=1024 model.n_layers=28 model.n_heads=16 model.kv_heads=8 model.head_dim=128 model.ff_hidden=3072 "
     "model.position=rope model.norm=rmsnorm model.feed_forward=swiglu model.qk_norm=true",
     151936, 596049920},
};

Test(model, has_the_number_of_parameters_of_its_shape)
{
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct config config = config_of("", counts[i].settings);
        struct tensor_table *table = tensor_table_create(&config.model, counts[i].vocab_size);
        cr_expect_eq((int64_t)table->total, counts[i].parameters, "%s: %zu", counts[i].settings, table->total);
        size_t sum = 0;
        for (size_t k = 0; k < table->count; k++) {
            cr_expect_eq(table->tensors[k].offset, sum, "tensors lie one after the other");
            sum += table->tensors[k].count;
        }
        cr_expect_eq(sum, table->total);
        tensor_table_free(table);
    }
}

Test(model, counts_a_tied_head_once)
{
    struct model *tied = model_of("", V), *untied = model_of("model.tied_embeddings=false", V);
    cr_assert_null(tensor_find(model_tensors(tied), "lm_head.weight"));
    cr_assert_not_null(tensor_find(model_tensors(untied), "lm_head.weight"));
    cr_assert_eq(model_tensors(untied)->total - model_tensors(tied)->total, V * 24);
    model_free(tied);
    model_free(untied);
}

/* ---- the start ---- */

/* Mean nats of random tokens, without training. */
static double start_loss(struct model *model, int64_t vocab_size)
{
    int32_t inputs[B * T], targets[B * T];
    int64_t counted;
    fill_tokens("inputs", inputs, B * T, vocab_size);
    fill_tokens("targets", targets, B * T, vocab_size);
    double nats = model_loss(model, inputs, targets, B, T, &counted);
    cr_assert_eq(counted, B * T);
    return nats / (double)counted;
}

static void assert_starts_at_ln_v(const char *settings)
{
    struct model *model = model_of(settings, 1024);
    double loss = start_loss(model, 1024);
    cr_expect(fabs(loss - log(1024)) < 0.3, "'%s': %g, and ln V is %g", settings, loss, log(1024));
    model_free(model);
}

Test(model, starts_near_the_logarithm_of_the_vocabulary_in_every_variant)
{
    each_variant("model", assert_starts_at_ln_v);
}

Test(model, starts_far_from_it_when_its_matrices_are_large)
{
    struct model *model = model_of("model.init_std=1", 1024);
    cr_assert_gt(start_loss(model, 1024), log(1024) + 0.3);
    model_free(model);
}

static void assert_init_std(const struct model *model, const real *values, const char *name, double std)
{
    const struct tensor *tensor = tensor_find(model_tensors(model), name);
    double sum = 0;
    for (size_t i = 0; i < tensor->count; i++)
        sum += (double)values[tensor->offset + i] * (double)values[tensor->offset + i];
    /* The estimate's own deviation is 1 / sqrt(2 n), 0.03 for the smallest tensor here (576): five of them. */
    cr_expect_float_eq(sqrt(sum / (double)tensor->count) / std, 1, 0.15, "%s", name);
}

Test(model, starts_with_the_deviations_asked_for)
{
    struct model *model = model_of("model.scaled_init=true model.init_std=0.05 model.mtp_depth=2", V);
    const real *p = model_parameters(model);
    assert_init_std(model, p, "token_embedding.weight", 0.05);
    assert_init_std(model, p, "blocks.0.attention.query.weight", 0.05);
    assert_init_std(model, p, "mtp_adapters.0.weight", 0.05);
    assert_init_std(model, p, "blocks.1.attention.output.weight", 0.025); /* 0.05 / sqrt(2 * 2) */
    assert_init_std(model, p, "blocks.1.feed_forward.down.weight", 0.025);
    const struct tensor *gain = tensor_find(model_tensors(model), "final_norm.weight");
    const struct tensor *bias = tensor_find(model_tensors(model), "final_norm.bias");
    for (size_t i = 0; i < gain->count; i++)
        cr_assert(p[gain->offset + i] == 1 && p[bias->offset + i] == 0);
    model_free(model);
}

/* ---- causality ---- */

static void assert_causal(const char *settings)
{
    int32_t inputs[B * T];
    struct model *model = model_of(settings, V);
    size_t row = V, count = (size_t)(B * T) * row;
    real *before = memory_alloc(count, sizeof *before), *after = memory_alloc(count, sizeof *after);
    fill_tokens("inputs", inputs, B * T, V);
    model_logits(model, inputs, B, T, before);
    for (int64_t changed = T - 1; changed >= 0; changed -= T / 2) {
        for (int64_t b = 0; b < B; b++)
            inputs[b * T + changed] = (inputs[b * T + changed] + 1) % V;
        model_logits(model, inputs, B, T, after);
        for (int64_t b = 0; b < B; b++) {
            size_t first = (size_t)(b * T) * row, at = first + (size_t)changed * row;
            cr_expect_arr_eq(before + first, after + first, (size_t)changed * row * sizeof *before,
                             "'%s': token %d changed logits before it", settings, (int)changed);
            cr_expect_neq(memcmp(before + at, after + at, row * sizeof *before), 0,
                          "'%s': a token changes its own logits", settings);
        }
        memcpy(before, after, count * sizeof *before);
    }
    memory_free(before);
    memory_free(after);
    model_free(model);
}

Test(model, never_looks_ahead_bit_for_bit)
{
    each_variant("model", assert_causal);
}

Test(model, never_looks_ahead_across_blocks_of_rows)
{
    enum { LENGTH = 131, LAST = LENGTH - 1 }; /* attention works on 64 rows at once, the head on 256 */
    static int32_t inputs[3 * LENGTH];
    static real before[3 * LENGTH * V], after[3 * LENGTH * V];
    struct config config = config_of(base, "model.context_length=131 model.position=rope model.kv_heads=1");
    struct error err;
    struct model *model = model_create(&config.model, V, 3 * LENGTH, &err);
    model_init(model, 1);
    fill_tokens("inputs", inputs, 3 * LENGTH, V);
    model_logits(model, inputs, 3, LENGTH, before);
    for (int b = 0; b < 3; b++)
        inputs[b * LENGTH + LAST] = (inputs[b * LENGTH + LAST] + 1) % V;
    model_logits(model, inputs, 3, LENGTH, after);
    for (int b = 0; b < 3; b++)
        cr_assert_arr_eq(before + b * LENGTH * V, after + b * LENGTH * V, LAST * V * sizeof *before);
    model_free(model);
}

/* ---- gradients ---- */

static void fill_batch(int32_t inputs[B * T], int32_t targets[B * T])
{
    fill_tokens("inputs", inputs, B * T, V);
    for (int i = 0; i < V; i++) /* every token is seen */
        inputs[i] = i;
    fill_tokens("targets", targets, B * T, V);
}

static void assert_gradient_everywhere(const char *settings)
{
    int32_t inputs[B * T], targets[B * T];
    fill_batch(inputs, targets);
    struct model *model = model_of(settings, V);
    model_loss_gradient(model, inputs, targets, B, T, 0);
    const struct tensor_table *table = model_tensors(model);
    for (size_t i = 0; i < table->count; i++) {
        const struct tensor *tensor = &table->tensors[i];
        const real *g = model_gradients(model) + tensor->offset;
        size_t reached = 0, used = tensor->count;
        for (size_t k = 0; k < tensor->count; k++) {
            cr_assert(isfinite(g[k]), "'%s': %s", settings, tensor->name);
            reached += fabs((double)g[k]) > 0;
        }
        if (strcmp(tensor->name, "position_embedding.weight") == 0)
            used = T * (size_t)tensor->shape[1];
        if (!strstr(tensor->name, "key.bias")) /* shifts all scores of a query alike: 0 up to rounding */
            cr_expect(reached == used, "'%s': %zu of %zu elements of %s have a gradient", settings, reached, used,
                      tensor->name);
    }
    model_free(model);
}

Test(model, sends_a_gradient_to_every_parameter)
{
    each_variant("model", assert_gradient_everywhere);
}

static void copy_tensor(struct model *to, const char *to_name, struct model *from, const char *from_name)
{
    const struct tensor *a = tensor_find(model_tensors(to), to_name), *b = tensor_find(model_tensors(from), from_name);
    memcpy(model_parameters(to) + a->offset, model_parameters(from) + b->offset, a->count * sizeof(real));
}

Test(model, gives_a_tied_head_the_sum_of_both_gradients)
{
    int32_t inputs[B * T], targets[B * T];
    fill_batch(inputs, targets);
    struct model *tied = model_of("", V), *untied = model_of("model.tied_embeddings=false", V);
    copy_tensor(untied, "lm_head.weight", tied, "token_embedding.weight");
    double loss = model_loss_gradient(tied, inputs, targets, B, T, 0);
    cr_assert_float_eq(model_loss_gradient(untied, inputs, targets, B, T, 0), loss, 0);
    const struct tensor *embedding = tensor_find(model_tensors(untied), "token_embedding.weight");
    const struct tensor *head = tensor_find(model_tensors(untied), "lm_head.weight");
    for (size_t i = 0; i < embedding->count; i++) {
        double one = (double)model_gradients(untied)[embedding->offset + i];
        double two = (double)model_gradients(untied)[head->offset + i];
        /* Three float roundings of the parts. */
        cr_assert_float_eq((double)model_gradients(tied)[i], one + two, 4e-7 * (fabs(one) + fabs(two)));
    }
    model_free(tied);
    model_free(untied);
}

Test(model, ignores_targets_of_minus_one)
{
    int32_t inputs[B * T], targets[B * T];
    int64_t counted;
    fill_batch(inputs, targets);
    struct model *model = model_of("", V);
    double all = model_loss(model, inputs, targets, B, T, &counted), one;
    for (int i = 1; i < B * T; i++)
        targets[i] = -1;
    one = model_loss(model, inputs, targets, B, T, &counted);
    cr_assert_eq(counted, 1);
    cr_assert(one > 0 && one < all);
    cr_assert_float_eq(model_loss_gradient(model, inputs, targets, B, T, 0), one, 1e-6, "the mean is over what counts");
    targets[0] = -1;
    cr_assert_float_eq(model_loss(model, inputs, targets, B, T, &counted), 0, 0);
    cr_assert_eq(counted, 0);
    model_free(model);
}

Test(model, computes_the_same_in_passes_of_any_size)
{
    int32_t inputs[B * T], targets[B * T];
    fill_batch(inputs, targets);
    struct config config = config_of(base, "model.dropout=0.25 model.mtp_depth=2");
    struct error err;
    struct model *whole = model_create(&config.model, V, B * T, &err), *parts = model_create(&config.model, V, T, &err);
    model_init(whole, 3);
    model_init(parts, 3);
    double a = model_loss_gradient(whole, inputs, targets, B, T, 5);
    double b = model_loss_gradient(parts, inputs, targets, B, T, 5);
    cr_assert_float_eq(a, b, 1e-6, "dropout is numbered by sequence, not by pass");
    double difference = 0, size = 0;
    for (size_t i = 0; i < model_tensors(whole)->total; i++) {
        double g = (double)model_gradients(whole)[i], d = g - (double)model_gradients(parts)[i];
        difference += d * d;
        size += g * g;
    }
    cr_assert_lt(sqrt(difference / size), 1e-6); /* another order of adding up four sequences */
    model_free(whole);
    model_free(parts);
}

static void look_away(void *context, const char *name, const real *data, int dims, const int64_t *shape)
{
    (void)context, (void)name, (void)data, (void)dims, (void)shape;
}

/* Rows that are whole pages lie further apart, unless an observer looks on; more rows than products make at a time. */
static void assert_same_wherever_rows_lie(const char *settings)
{
    enum { PAGE = 4096 / sizeof(real), LONG = 50, ROWS = 3 * LONG };
    int32_t inputs[ROWS], targets[ROWS];
    int64_t counted;
    fill_tokens("inputs", inputs, ROWS, PAGE);
    fill_tokens("targets", targets, ROWS, PAGE);
    struct config config = config_of("model.context_length=50 model.d_model=24 model.n_heads=2", settings);
    struct error err;
    struct model *models[2];
    double loss[2], training_loss[2];
    for (int i = 0; i < 2; i++) {
        models[i] = model_create(&config.model, PAGE, ROWS, &err);
        model_init(models[i], 1);
        if (i == 1)
            model_observe(models[i], look_away, NULL);
        loss[i] = model_loss(models[i], inputs, targets, 3, LONG, &counted);
        training_loss[i] = model_loss_gradient(models[i], inputs, targets, 3, LONG, 0);
    }
    cr_assert_eq(loss[0], loss[1], "'%s'", settings);
    cr_assert_eq(training_loss[0], training_loss[1], "'%s'", settings);
    cr_assert_arr_eq(model_gradients(models[0]), model_gradients(models[1]),
                     model_tensors(models[0])->total * sizeof(real), "'%s'", settings);
    model_free(models[0]);
    model_free(models[1]);
}

Test(model, computes_the_same_bits_wherever_rows_lie)
{
    assert_same_wherever_rows_lie("model.ff_hidden=1024");
    assert_same_wherever_rows_lie("model.ff_hidden=1024 model.linear_bias=true model.dropout=0.25");
    assert_same_wherever_rows_lie("model.ff_hidden=512 model.feed_forward=swiglu model.mtp_depth=2");
    assert_same_wherever_rows_lie("model.ff_hidden=1024 model.feed_forward=swiglu");
}

/* ---- learning ---- */

Test(model, memorises_one_batch)
{
    enum { ROWS = 2, LENGTH = 128, VOCABULARY = 1024, STEPS = 200 };
    static int32_t inputs[ROWS * LENGTH], targets[ROWS * LENGTH];
    fill_tokens("inputs", inputs, ROWS * LENGTH, VOCABULARY);
    fill_tokens("targets", targets, ROWS * LENGTH, VOCABULARY);
    struct config config = config_of(DAY1, "training.learning_rate=1e-3 training.min_learning_rate=1e-3");
    struct error err;
    blas_use_one_thread();
    struct model *model = model_create(&config.model, VOCABULARY, ROWS * LENGTH, &err);
    model_init(model, 1337);
    struct optimizer *optimizer = optimizer_create(model_tensors(model), &config.training);
    double loss = INFINITY;
    int64_t step = 0;
    for (; step < STEPS && loss >= 0.1; step++) {
        loss = model_loss_gradient(model, inputs, targets, ROWS, LENGTH, step);
        double norm = optimizer_grad_norm(model_gradients(model), model_tensors(model)->total);
        optimizer_step(optimizer, model_parameters(model), model_gradients(model), norm,
                       learning_rate_at(&config.training, step), step);
    }
    cr_assert_lt(loss, 0.1, "after %d steps", (int)step);
    optimizer_free(optimizer);
    model_free(model);
}

/* ---- processors ---- */

static void collect_logits(const char *level, const char *settings, real *logits)
{
    int32_t inputs[B * T];
    struct error err;
    cr_assert(cpu_select(level, &err), "%s", err.text);
    fill_tokens("inputs", inputs, B * T, V);
    struct model *model = model_of(settings, V);
    model_logits(model, inputs, B, T, logits);
    model_free(model);
}

Test(model, gives_the_same_logits_on_every_level_of_kernels)
{
    static real best[B * T * V], other[B * T * V];
    static const char *const levels[] = {"v2", "v3", "v4", "generic"};
    struct error err;
    size_t compared = 0;
    for (size_t c = 0; c < COMBINATION_COUNT; c++) {
        collect_logits(NULL, combinations[c], best);
        for (size_t l = 0; l < 4; l++) {
            if (!cpu_select(levels[l], &err))
                continue;
            collect_logits(levels[l], combinations[c], other);
            for (size_t i = 0; i < B * T * V; i++) /* logits are about 0.1 here; sums of 24 floats */
                cr_assert_float_eq((double)other[i], (double)best[i], 1e-6, "%s, '%s'", levels[l], combinations[c]);
            compared++;
        }
    }
    cr_assert_geq(compared, COMBINATION_COUNT, "at least one level runs here");
}

/* ---- size in memory ---- */

Test(model, refuses_what_no_product_can_index)
{
    struct config config = config_of(base, "");
    struct error err;
    cr_assert_null(model_create(&config.model, V, 0, &err));
    cr_assert_null(model_create(&config.model, V, (int64_t)1 << 40, &err));
    cr_assert_not_null(strstr(err.text, "1099511627776"), "%s", err.text);
}

Test(model, memory_counts_the_tables_of_positions)
{
    struct config none = config_of(base, "model.position=none"), rope = config_of(base, "model.position=rope"),
                  sinusoidal = config_of(base, "model.position=sinusoidal");
    struct model_shape s = model_shape_of(&none.model, V);
    size_t positions = (size_t)s.context_length, without = model_memory(&none.model, V, 64, PRECISION_FP32);
    cr_assert_eq(model_memory(&rope.model, V, 64, PRECISION_FP32) - without,
                 positions * (size_t)(s.head_dim / 2) * 2 * sizeof(real));
    cr_assert_eq(model_memory(&sinusoidal.model, V, 64, PRECISION_FP32) - without,
                 positions * (size_t)s.d_model * sizeof(real));
}
