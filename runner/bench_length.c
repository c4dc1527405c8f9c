/* Cost of a token by context length: training steps of equally many tokens, cut into longer and longer sequences. */
#include <math.h>

#include "core/memory.h"
#include "runner/bench_rows.h"

enum { STEP_TOKENS = 2048, LONG_ROUNDS = 9 };

static const int64_t lengths[BENCH_LENGTHS] = {128, 256, 512, 1024, 2048};

static struct config length_config(int64_t length)
{
    struct config config = bench_case_config(&bench_cases[BENCH_DAY2]);
    config.model.context_length = length;
    config.training.batch_size = STEP_TOKENS / length;
    return config;
}

/* All lengths take turns; medians. */
static void lengths_measure(struct bench *bench)
{
    struct bench_model models[BENCH_LENGTHS];
    double seconds[BENCH_LENGTHS][LONG_ROUNDS];
    for (size_t i = 0; i < BENCH_LENGTHS; i++) {
        struct config config = length_config(lengths[i]);
        bench_model_init(&models[i], &config, bench_cases[BENCH_DAY2].vocab_size);
        bench_model_step(&models[i]);
    }
    for (size_t round = 0; round < LONG_ROUNDS; round++)
        for (size_t i = 0; i < BENCH_LENGTHS; i++)
            seconds[i][round] = bench_model_step(&models[i]);
    for (size_t i = 0; i < BENCH_LENGTHS; i++) {
        bench->token_seconds[i] = bench_median(seconds[i], LONG_ROUNDS) / models[i].tokens_per_step;
        bench->token_flops[i] = models[i].flops_per_step / models[i].tokens_per_step;
        bench_model_release(&models[i]);
    }
}

static size_t length_index(int64_t length)
{
    size_t at = 0;
    while (at + 1 < BENCH_LENGTHS && lengths[at] != length)
        at++;
    return at;
}

/* Attention alone grows with T, in proportion: on a straight line through the shortest and the longest, whatever the
 * rate of its products. */
void bench_measure_line(struct bench *bench, int64_t length, struct bench_figure *figure)
{
    if (bench->token_seconds[0] == 0)
        lengths_measure(bench);
    double first = bench->token_seconds[0], last = bench->token_seconds[BENCH_LENGTHS - 1];
    double part = (double)(length - lengths[0]) / (double)(lengths[BENCH_LENGTHS - 1] - lengths[0]);
    double line = first + part * (last - first), cost = bench->token_seconds[length_index(length)];
    bench_value(figure, 100 * fabs(cost / line - 1), "%.1f us a token; between T = 128 and 2048 it would be %.1f",
                cost * 1e6, line * 1e6);
}

/* How much dearer than a token at the shortest length, over how much more there is to compute. */
void bench_measure_length(struct bench *bench, int64_t length, struct bench_figure *figure)
{
    size_t at = length_index(length);
    if (bench->token_seconds[0] == 0)
        lengths_measure(bench);
    double cost = bench->token_seconds[at] / bench->token_seconds[0];
    double work = bench->token_flops[at] / bench->token_flops[0];
    bench_value(figure, cost / work, "%.2f times the cost of a token at T = 128; the formula says %.2f", cost, work);
}
