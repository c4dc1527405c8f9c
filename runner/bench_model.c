/* The models that bench times. */
#include "runner/bench_model.h"

#include <stdlib.h>

#include "core/memory.h"
#include "core/random.h"
#include "runner/clock.h"
#include "runner/command.h"

/* To add a shape: a row here, its place in the header. */
const struct bench_case bench_cases[BENCH_SHAPES] = {
    [BENCH_DAY1] = {"day1", 128, 128, 4, 2, 1024, 8, false},
    [BENCH_DAY2] = {"day2", 256, 256, 8, 4, 2048, 8, false},
    [BENCH_DAY2_MODERN] = {"day2-modern", 256, 256, 8, 4, 2048, 8, true},
    [BENCH_DAY5] = {"day5-modern", 512, 512, 8, 8, 8192, 32, true},
};

struct config bench_case_config(const struct bench_case *row)
{
    struct config config;
    config_init(&config);
    config.model.context_length = row->context_length;
    config.model.d_model = row->d_model;
    config.model.n_heads = row->n_heads;
    config.model.n_layers = row->n_layers;
    config.training.batch_size = row->batch_size;
    config.training.steps = 1000000;
    if (row->modern) {
        config.model.position = POSITION_ROPE;
        config.model.norm = NORM_RMSNORM;
        config.model.feed_forward = FEED_FORWARD_SWIGLU;
        config.model.kv_heads = 2;
    }
    return config;
}

void bench_model_init(struct bench_model *model, const struct config *config, int64_t vocab_size)
{
    enum { BLOCKS = 64 };
    struct error err;
    int64_t T = config->model.context_length;
    size_t count = BLOCKS * ((size_t)T + 1);
    *model = (struct bench_model){.config = *config, .vocab_size = vocab_size};
    model->tokens = memory_alloc(count, sizeof *model->tokens);
    model->bytes = memory_alloc(count, sizeof *model->bytes);
    struct random_stream stream = random_stream_make(1, "bench/tokens");
    for (size_t i = 0; i < count; i++)
        model->tokens[i] = (int32_t)random_below(&stream, i, (uint64_t)vocab_size);
    struct token_stream train = {model->tokens, model->bytes, count};
    model->trainer = trainer_create(config, 1, vocab_size, &train, &err);
    if (!model->trainer)
        die(EXIT_ENVIRONMENT, "bench: %s", err.text);
    int64_t rows = config->training.batch_size * T;
    model->products = products_create(&config->model, vocab_size, rows);
    model->tokens_per_step = (double)rows;
    model->flops_per_step = model_flops_per_token(&config->model, vocab_size) * (double)rows;
}

void bench_model_release(struct bench_model *model)
{
    products_free(model->products);
    trainer_free(model->trainer);
    memory_free(model->tokens);
    memory_free(model->bytes);
    *model = (struct bench_model){.tokens = NULL};
}

double bench_model_step(struct bench_model *model)
{
    struct step_record record;
    double start = seconds_now();
    if (!trainer_step(model->trainer, &record))
        die(EXIT_ENVIRONMENT, "bench: the loss of a model is not finite: see 'runner doctor'");
    return seconds_now() - start;
}

double bench_model_sgemm(struct bench_model *model)
{
    return products_flops(model->products) / products_best_time(model->products);
}

double bench_model_openblas(struct bench_model *model)
{
    return products_flops(model->products) / products_openblas_time(model->products);
}

static int number_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, number_compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
