/* Timing and checking of the core's matrix products. */
#include "runner/rate.h"

#include <math.h>
#include <string.h>

#include "core/cpu.h"
#include "core/gemm.h"
#include "core/memory.h"
#include "core/onednn.h"
#include "core/random.h"
#include "core/tensor.h"
#include "runner/clock.h"

enum maker { MAKER_OURS, MAKER_OPENBLAS, MAKER_ONEDNN, MAKERS };

/* A product of a model, three times in a step: forward and two backward. */
struct item {
    int64_t outputs, inputs, count;
    enum maker fastest[3]; /* by form, once they are chosen */
};

struct products {
    bool chosen;
    struct item *items;
    size_t count;
    int64_t rows;
    real *input, *output, *weight, *input_gradient, *weight_gradient;
};

static real *noise_create(const char *name, int64_t count)
{
    struct random_stream stream = random_stream_make(1, name);
    real *values = memory_alloc((size_t)count, sizeof *values);
    random_normal_fill(&stream, 1, values, (size_t)count);
    return values;
}

static void product_add(struct products *products, int64_t outputs, int64_t inputs, int64_t times)
{
    for (size_t i = 0; i < products->count; i++)
        if (products->items[i].outputs == outputs && products->items[i].inputs == inputs) {
            products->items[i].count += times;
            return;
        }
    products->items[products->count++] = (struct item){.outputs = outputs, .inputs = inputs, .count = times};
}

/* Rows of the table that multiply the same input as the row before them. */
static bool shares_input(const struct tensor *tensor)
{
    return strstr(tensor->name, ".attention.key.") || strstr(tensor->name, ".attention.value.") ||
           strstr(tensor->name, ".feed_forward.gate.");
}

static void products_list(struct products *products, const struct tensor_table *table, const struct model_shape *shape)
{
    bool head_listed = false;
    for (size_t i = 0; i < table->count; i++) {
        const struct tensor *tensor = &table->tensors[i];
        if (!tensor->multiplies || shares_input(tensor))
            continue;
        int64_t outputs = tensor->shape[0];
        for (size_t j = i + 1; j < table->count && table->tensors[j].multiplies && shares_input(&table->tensors[j]);
             j++)
            outputs += table->tensors[j].shape[0];
        product_add(products, outputs, tensor->shape[1], 1);
        head_listed |= !strcmp(tensor->name, "lm_head.weight");
    }
    /* Every depth goes through the head; a tied one is no multiplying row of the table. */
    int64_t more = shape->mtp_depth - head_listed;
    if (more)
        product_add(products, shape->vocab_size, shape->d_model, more);
}

struct products *products_create(const struct model_config *model, int64_t vocab_size, int64_t rows)
{
    struct tensor_table *table = tensor_table_create(model, vocab_size);
    struct model_shape shape = model_shape_of(model, vocab_size);
    struct products *products = memory_alloc(1, sizeof *products);
    products->items = memory_alloc(table->count + 1, sizeof *products->items);
    products->rows = rows;
    products_list(products, table, &shape);
    tensor_table_free(table);
    int64_t inputs = 0, outputs = 0, weight = 0;
    for (size_t i = 0; i < products->count; i++) {
        const struct item *item = &products->items[i];
        inputs = item->inputs > inputs ? item->inputs : inputs;
        outputs = item->outputs > outputs ? item->outputs : outputs;
        weight = item->outputs * item->inputs > weight ? item->outputs * item->inputs : weight;
    }
    products->input = noise_create("bench/input", rows * inputs);
    products->output = noise_create("bench/output", rows * outputs);
    products->weight = noise_create("bench/weight", weight);
    products->input_gradient = memory_alloc((size_t)(rows * inputs), sizeof(real));
    products->weight_gradient = memory_alloc((size_t)weight, sizeof(real));
    return products;
}

void products_free(struct products *products)
{
    if (!products)
        return;
    memory_free(products->items);
    memory_free(products->input);
    memory_free(products->output);
    memory_free(products->weight);
    memory_free(products->input_gradient);
    memory_free(products->weight_gradient);
    memory_free(products);
}

double products_flops(const struct products *products)
{
    double flops = 0;
    for (size_t i = 0; i < products->count; i++) {
        const struct item *item = &products->items[i];
        flops += 3 * 2.0 * (double)products->rows * (double)item->outputs * (double)item->inputs * (double)item->count;
    }
    return flops;
}

/* oneDNN takes all that the processor has: no ceiling for lesser kernels (RUNNER_CPU). */
static bool maker_comes(enum maker maker)
{
    return maker != MAKER_ONEDNN ||
           (sizeof(real) == sizeof(float) && strcmp(cpu_level(), cpu_best_level()) == 0 && onednn_load(NULL));
}

/* One of the three products of an item; its seconds. */
static double product_time(const struct products *products, const struct item *item, enum gemm_form form,
                           enum maker maker)
{
    int64_t rows = products->rows, out = item->outputs, in = item->inputs;
    const real *a = form == GEMM_NT ? products->input : products->output;
    const real *b = form == GEMM_TN ? products->input : products->weight;
    real *c = form == GEMM_NT   ? products->output
              : form == GEMM_NN ? products->input_gradient
                                : products->weight_gradient;
    int64_t M = form == GEMM_TN ? out : rows, N = form == GEMM_NT ? out : in;
    int64_t K = form == GEMM_NT ? in : form == GEMM_NN ? out : rows, lda = form == GEMM_NT ? in : out;
    double start = seconds_now();
    if (maker == MAKER_OURS)
        gemm(form, M, N, K, 1, a, lda, b, in, 0, c, N);
    else if (maker == MAKER_OPENBLAS)
        gemm_openblas(form, M, N, K, 1, a, lda, b, in, 0, c, N);
#ifndef CORE_DOUBLE
    else
        onednn_sgemm(form, M, N, K, 1, a, lda, b, in, 0, c, N);
#endif
    return seconds_now() - start;
}

/* All of a step by one maker; by the fastest of each where it is MAKERS. */
static double step_time(struct products *products, enum maker maker)
{
    double total = 0;
    for (size_t i = 0; i < products->count; i++) {
        const struct item *item = &products->items[i];
        for (enum gemm_form form = GEMM_NN; form <= GEMM_TN; form++)
            for (int64_t k = 0; k < item->count; k++)
                total += product_time(products, item, form, maker == MAKERS ? item->fastest[form] : maker);
    }
    return total;
}

double products_time(struct products *products)
{
    return step_time(products, MAKER_OURS);
}

double products_openblas_time(struct products *products)
{
    return step_time(products, MAKER_OPENBLAS);
}

/* The fastest maker of each product, by the best of some turns. Chosen once: the fastest of one turn would be the one
 * that was disturbed least, and the yardstick longer the less steady the machine is. */
static void makers_choose(struct products *products)
{
    enum { TURNS = 4 };
    for (size_t i = 0; i < products->count; i++)
        for (enum gemm_form form = GEMM_NN; form <= GEMM_TN; form++) {
            double best[MAKERS] = {INFINITY, INFINITY, INFINITY};
            enum maker *fastest = &products->items[i].fastest[form];
            for (int turn = 0; turn < TURNS; turn++)
                for (enum maker maker = 0; maker < MAKERS; maker++)
                    if (maker_comes(maker))
                        best[maker] = fmin(best[maker], product_time(products, &products->items[i], form, maker));
            for (enum maker maker = 0; maker < MAKERS; maker++)
                *fastest = best[maker] < best[*fastest] ? maker : *fastest;
        }
    products->chosen = true;
}

double products_best_time(struct products *products)
{
    if (!products->chosen)
        makers_choose(products);
    return step_time(products, MAKERS);
}

/* Element (i, k) of a matrix of `columns` columns, or of its transpose as stored with `rows` columns. */
static double element(const real *values, bool transposed, int64_t i, int64_t k, int64_t rows, int64_t columns)
{
    return (double)(transposed ? values[k * rows + i] : values[i * columns + k]);
}

static double form_error(enum gemm_form form, int64_t M, int64_t N, int64_t K, const real *a, const real *b, real *c)
{
    bool a_transposed = form == GEMM_TN, b_transposed = form == GEMM_NT;
    for (int64_t i = 0; i < M * N; i++)
        c[i] = 1;
    gemm(form, M, N, K, (real)0.5, a, a_transposed ? M : K, b, b_transposed ? K : N, 2, c, N);
    double worst = 0;
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < K; k++) {
                double term = element(a, a_transposed, i, k, M, K) * element(b, b_transposed, k, j, K, N);
                sum += term;
                size += fabs(term);
            }
            /* K + 2 roundings, each at most half a unit in the last place of what has been summed so far. */
            double allowed = (double)(K + 2) * ldexp(1, sizeof(real) == 4 ? -24 : -53) * (0.5 * size + 2);
            double error = fabs((double)c[i * N + j] - (0.5 * sum + 2)) / allowed;
            worst = error <= worst ? worst : error; /* so that NaN is the worst */
        }
    return worst;
}

double product_error(int64_t M, int64_t N, int64_t K)
{
    real *a = noise_create("doctor/a", M * K), *b = noise_create("doctor/b", K * N);
    real *c = memory_alloc((size_t)(M * N), sizeof *c);
    double worst = 0;
    for (enum gemm_form form = GEMM_NN; form <= GEMM_TN; form++) {
        double error = form_error(form, M, N, K, a, b, c);
        worst = error <= worst ? worst : error;
    }
    memory_free(a);
    memory_free(b);
    memory_free(c);
    return worst;
}
