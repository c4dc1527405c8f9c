/* The gradient of the whole model against finite differences of its loss, with the core built in double: in float a
 * wrong backward pass hides in the noise. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "core/model.h"
#include "core/random.h"
#include "tests/core_case.h"

static const char base[] =
    "model.context_length=7 model.d_model=12 model.n_heads=2 model.n_layers=2 model.ff_hidden=17 "
    "training.steps=20";
enum { V = 13, STEP = 3, DIRECTIONS = 3, ELEMENTS = 5, TOKENS = 512 };

/* Correct code was measured at 4e-8 or better. The stencil's own error is h^4 times a fifth derivative, which small
 * norms make large; rounding of the loss is 4e-16 over h. h = 3e-4 balances the two. */
static const double tolerance = 1e-6, h = 3e-4;

struct check {
    struct model *model;
    int64_t B, T;
    int32_t inputs[TOKENS], targets[TOKENS];
    real *gradients; /* [parameters], as computed (or as a test has spoilt them) */
    double worst;    /* largest relative error seen */
    const struct tensor *where;
};

/* Far from the small start, so that every tensor has a gradient worth comparing. */
static void fill_parameters(struct model *model)
{
    const struct tensor_table *table = model_tensors(model);
    for (size_t i = 0; i < table->count; i++) {
        const struct tensor *tensor = &table->tensors[i];
        real *p = model_parameters(model) + tensor->offset;
        struct random_stream stream = random_stream_make(5, tensor->name);
        random_normal_fill(&stream, 0.35, p, tensor->count);
        for (size_t k = 0; tensor->init == TENSOR_ONES && k < tensor->count; k++)
            p[k] += 1;
    }
}

static double loss_of(struct check *check)
{
    return model_loss_gradient(check->model, check->inputs, check->targets, check->B, check->T, STEP);
}

static void check_init(struct check *check, const char *settings, int64_t B, int64_t T)
{
    struct config config = config_of(base, settings);
    struct error err;
    memset(check, 0, sizeof *check);
    check->B = B;
    check->T = T;
    check->model = model_create(&config.model, V, B * T, &err);
    cr_assert_not_null(check->model, "%s: %s", settings, err.text);
    model_init(check->model, 7);
    fill_parameters(check->model);
    fill_tokens("inputs", check->inputs, (size_t)(B * T), V);
    fill_tokens("targets", check->targets, (size_t)(B * T), V);
    check->targets[2] = check->targets[B * T - 1] = -1;
    loss_of(check);
    size_t total = model_tensors(check->model)->total;
    check->gradients = memory_alloc(total, sizeof(real));
    memcpy(check->gradients, model_gradients(check->model), total * sizeof(real));
}

static void check_release(struct check *check)
{
    memory_free(check->gradients);
    model_free(check->model);
}

static double root_mean_square(const real *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i] * values[i];
    return sqrt(sum / (double)count);
}

/* Loss with the tensor moved by `distance` along the direction. */
static double loss_at(struct check *check, const struct tensor *tensor, const real *start, const real *direction,
                      double distance)
{
    real *p = model_parameters(check->model) + tensor->offset;
    for (size_t i = 0; i < tensor->count; i++)
        p[i] = start[i] + distance * direction[i];
    double loss = loss_of(check);
    memcpy(p, start, tensor->count * sizeof *p);
    return loss;
}

/* Error of the slope along a direction of length 1, in units of a typical element's gradient. A tensor whose gradient
 * is zero by symmetry (a key bias shifts all scores of a query alike) is measured against the whole model's. */
static void check_direction(struct check *check, const struct tensor *tensor, const real *start, const real *direction)
{
    const real *g = check->gradients + tensor->offset;
    double near = loss_at(check, tensor, start, direction, h) - loss_at(check, tensor, start, direction, -h);
    double far = loss_at(check, tensor, start, direction, 2 * h) - loss_at(check, tensor, start, direction, -2 * h);
    double measured = (8 * near - far) / (12 * h), claimed = 0;
    for (size_t i = 0; i < tensor->count; i++)
        claimed += g[i] * direction[i];
    double floor = 1e-3 * root_mean_square(check->gradients, model_tensors(check->model)->total);
    double error = fabs(measured - claimed) / fmax(root_mean_square(g, tensor->count), floor);
    if (!(error <= check->worst)) { /* also NaN */
        check->worst = error;
        check->where = tensor;
    }
}

static void check_tensor(struct check *check, const struct tensor *tensor)
{
    real *start = memory_alloc(tensor->count, sizeof *start), *direction = memory_alloc(tensor->count, sizeof *start);
    struct random_stream stream = random_stream_make(11, tensor->name);
    memcpy(start, model_parameters(check->model) + tensor->offset, tensor->count * sizeof *start);
    for (int k = 0; k < DIRECTIONS; k++) {
        struct random_stream directions = random_stream_make(100 + k, tensor->name);
        random_normal_fill(&directions, 1, direction, tensor->count);
        double length = root_mean_square(direction, tensor->count) * sqrt((double)tensor->count);
        for (size_t i = 0; i < tensor->count; i++)
            direction[i] /= length;
        check_direction(check, tensor, start, direction);
    }
    for (uint64_t k = 0; k < ELEMENTS; k++) {
        memset(direction, 0, tensor->count * sizeof *direction);
        direction[random_below(&stream, k, tensor->count)] = 1;
        check_direction(check, tensor, start, direction);
    }
    memory_free(start);
    memory_free(direction);
}

static void check_all(struct check *check)
{
    const struct tensor_table *table = model_tensors(check->model);
    check->worst = 0;
    check->where = NULL;
    for (size_t i = 0; i < table->count; i++)
        check_tensor(check, &table->tensors[i]);
}

static void assert_gradients_of(const char *settings, int64_t B, int64_t T)
{
    struct check check;
    check_init(&check, settings, B, T);
    check_all(&check);
    cr_expect(check.worst < tolerance, "'%s', B %d, T %d: the gradient of %s is off by %.2g", settings, (int)B, (int)T,
              check.where ? check.where->name : "", check.worst);
    cr_expect_gt(check.worst, 0, "'%s': nothing was measured", settings);
    check_release(&check);
}

static void assert_gradients(const char *settings)
{
    assert_gradients_of(settings, 2, 7);
}

Test(double_gradients, equal_finite_differences_for_every_choice_of_every_knob)
{
    each_variant("model", assert_gradients);
}

Test(double_gradients, equal_finite_differences_at_other_sizes)
{
    assert_gradients("model.d_model=14 model.n_heads=7 model.position=none");
    assert_gradients("model.d_model=14 model.n_heads=7 model.position=rope model.rope_layout=split");
    assert_gradients("model.n_heads=6 model.kv_heads=3 model.position=rope");
    assert_gradients("model.n_heads=6 model.kv_heads=2 model.qk_norm=true");
    assert_gradients("model.d_model=3 model.n_heads=3 model.position=none model.norm=rmsnorm");
    assert_gradients("model.ff_hidden=1 model.mtp_depth=7");
    assert_gradients("model.context_length=64 model.position=sinusoidal");
}

/* Longer than one block of attention rows (64), more tokens than one block of logits (256), and several passes. */
Test(double_gradients, equal_finite_differences_where_work_is_cut_into_blocks)
{
    const char *long_rope =
        "model.context_length=131 model.d_model=6 model.n_heads=3 model.kv_heads=1 model.position=rope "
        "model.dropout=0.25 model.mtp_depth=3 model.n_layers=1 model.ff_hidden=5";
    assert_gradients_of(long_rope, 3, 131);
    assert_gradients_of("model.context_length=67 model.n_layers=1 model.ff_hidden=5", 4, 65);
}

/* The harness must see mistakes: each of these is a kind that a wrong backward pass makes. Put into the core by hand,
 * one at a time, these were seen too: a slope of gelu off by 0.1 %, a wrong inner derivative of gelu_tanh, silu's
 * second term left out, rotation not turned back, keys of a group overwritten instead of added, depth 2 overwriting
 * depth 1, dropout left out of backward, the residual path left out. */
Test(double_gradients, a_wrong_gradient_is_found)
{
    struct check check;
    check_init(&check, "model.position=rope model.kv_heads=1 model.feed_forward=swiglu", 2, 7);
    const struct tensor_table *table = model_tensors(check.model);
    for (size_t i = 0; i < table->count; i++) {
        const struct tensor *tensor = &table->tensors[i];
        real *g = check.gradients + tensor->offset;
        for (size_t k = 0; k < tensor->count; k++) /* a factor */
            g[k] *= 1.0001;
        check_all(&check);
        cr_expect(check.worst > tolerance && check.where == tensor, "%s times 1.0001 was not seen", tensor->name);
        for (size_t k = 0; k < tensor->count; k++)
            g[k] /= 1.0001;

        real first = g[0]; /* one element */
        g[0] += 0.01 * root_mean_square(g, tensor->count);
        check_all(&check);
        cr_expect(check.worst > tolerance && check.where == tensor, "one element of %s was not seen", tensor->name);
        g[0] = first;
    }
    check_all(&check);
    cr_assert_lt(check.worst, tolerance);
    check_release(&check);
}
