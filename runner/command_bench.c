/* runner bench: the speed of a whole training step, as a share of what the machine's sgemm reaches on its shapes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "core/memory.h"
#include "core/random.h"
#include "core/trainer.h"
#include "runner/clock.h"
#include "runner/command.h"
#include "runner/json.h"
#include "runner/rate.h"

enum { ROUNDS_LIMIT = 1000 };

/* A shape to measure. To add one: a row here. */
static const struct bench_case {
    const char *name;
    int64_t context_length, d_model, n_heads, n_layers, vocab_size;
    bool modern; /* rope, rmsnorm, swiglu, kv_heads 2 */
} cases[] = {
    {"day1", 128, 128, 4, 2, 1024, false},
    {"day2", 256, 256, 8, 4, 2048, false},
    {"day2-modern", 256, 256, 8, 4, 2048, true},
};
enum { CASES = sizeof cases / sizeof cases[0] };

struct measurement {
    double flops_per_step; /* of the model: products and the causal half of attention */
    double tokens_per_step;
    double sgemm_rate, step_seconds; /* medians over the rounds */
    double share;                    /* NaN when it came out above 1 and is not to be believed */
};

static struct config case_config(const struct bench_case *row)
{
    struct config config;
    config_init(&config);
    config.model.context_length = row->context_length;
    config.model.d_model = row->d_model;
    config.model.n_heads = row->n_heads;
    config.model.n_layers = row->n_layers;
    config.training.steps = 1000000;
    if (row->modern) {
        config.model.position = POSITION_ROPE;
        config.model.norm = NORM_RMSNORM;
        config.model.feed_forward = FEED_FORWARD_SWIGLU;
        config.model.kv_heads = 2;
    }
    return config;
}

static int number_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, number_compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void step_or_die(struct trainer *trainer, const char *name)
{
    struct step_record record;
    if (!trainer_step(trainer, &record))
        die(EXIT_ENVIRONMENT, "bench: the loss of '%s' is not finite: see 'runner doctor'", name);
}

/* Products and training steps take turns, so that whatever else slows the machine slows both. */
static void rounds_measure(struct trainer *trainer, struct products *products, const char *name, size_t rounds,
                           struct measurement *result)
{
    enum { STEPS = 2 };
    double *rates = memory_alloc(rounds, sizeof *rates), *seconds = memory_alloc(rounds, sizeof *seconds);
    step_or_die(trainer, name);
    products_time(products);
    for (size_t round = 0; round < rounds; round++) {
        rates[round] = products_flops(products) / products_time(products);
        double start = seconds_now();
        for (int i = 0; i < STEPS; i++)
            step_or_die(trainer, name);
        seconds[round] = (seconds_now() - start) / STEPS;
    }
    result->sgemm_rate = median(rates, rounds);
    result->step_seconds = median(seconds, rounds);
    memory_free(rates);
    memory_free(seconds);
}

static void case_measure(const struct bench_case *row, size_t rounds, struct measurement *result)
{
    struct config config = case_config(row);
    struct error err;
    enum { BLOCKS = 64 };
    size_t count = BLOCKS * ((size_t)row->context_length + 1);
    int32_t *tokens = memory_alloc(count, sizeof *tokens);
    uint32_t *bytes = memory_alloc(count, sizeof *bytes);
    struct random_stream stream = random_stream_make(1, "bench/tokens");
    for (size_t i = 0; i < count; i++)
        tokens[i] = (int32_t)random_below(&stream, i, (uint64_t)row->vocab_size);
    struct token_stream train = {tokens, bytes, count};
    struct trainer *trainer = trainer_create(&config, 1, row->vocab_size, &train, &err);
    if (!trainer)
        die(EXIT_ENVIRONMENT, "bench: %s", err.text);
    int64_t rows = config.training.batch_size * row->context_length;
    struct products *products = products_create(&config.model, row->vocab_size, rows);
    result->tokens_per_step = (double)rows;
    result->flops_per_step = model_flops_per_token(&config.model, row->vocab_size) * (double)rows;
    rounds_measure(trainer, products, row->name, rounds, result);
    result->share = result->flops_per_step / result->step_seconds / result->sgemm_rate;
    if (result->share > 1)
        result->share = NAN;
    products_free(products);
    trainer_free(trainer);
    memory_free(tokens);
    memory_free(bytes);
}

static const char *precision_name(void)
{
    return sizeof(real) == 4 ? "fp32" : "fp64";
}

static void results_print_json(const struct measurement *results, const bool *wanted)
{
    json_t *root = json_object(), *list = json_array();
    for (size_t i = 0; i < CASES; i++) {
        const struct measurement *m = &results[i];
        bool good = wanted[i] && isfinite(m->share);
        if (!wanted[i])
            continue;
        json_t *row = json_object();
        json_put(row, "name", json_from_text(cases[i].name));
        json_put(row, "precision", json_from_text(precision_name()));
        json_put(row, "seconds_per_step", json_from_double(good ? m->step_seconds : NAN));
        json_put(row, "tokens_per_second", json_from_double(good ? m->tokens_per_step / m->step_seconds : NAN));
        json_put(row, "gflops", json_from_double(good ? m->flops_per_step / m->step_seconds * 1e-9 : NAN));
        json_put(row, "share_of_sgemm", json_from_double(m->share));
        json_put(row, "gflop_per_step", json_from_double(m->flops_per_step * 1e-9));
        json_put(row, "sgemm_gflops", json_from_double(m->sgemm_rate * 1e-9));
        json_push(list, row);
    }
    /* The figure for the machine is that of the Day 2 shapes; each case also has that of its own. */
    json_put(root, "sgemm_gflops", json_from_double(wanted[1] ? results[1].sgemm_rate * 1e-9 : NAN));
    json_put(root, "cpu", json_from_text(cpu_model_name()));
    json_put(root, "kernels", json_from_text(cpu_level()));
    json_put(root, "blas", json_from_text(blas_core_name()));
    json_put(root, "cases", list);
    json_print(root, stdout);
    json_decref(root);
}

static void results_print(const struct measurement *results, const bool *wanted)
{
    printf("%s, kernels %s, OpenBLAS %s, one thread\n\n", cpu_model_name(), cpu_level(), blas_core_name());
    printf("%-12s %9s %11s %10s %9s %9s %15s %9s\n", "case", "precision", "GFLOP/step", "ms/step", "tokens/s",
           "GFLOP/s", "sgemm GFLOP/s", "of sgemm");
    for (size_t i = 0; i < CASES; i++) {
        const struct measurement *m = &results[i];
        if (!wanted[i])
            continue;
        printf("%-12s %9s %11.2f ", cases[i].name, precision_name(), m->flops_per_step * 1e-9);
        if (isfinite(m->share))
            printf("%10.2f %9.0f %9.1f ", m->step_seconds * 1e3, m->tokens_per_step / m->step_seconds,
                   m->flops_per_step / m->step_seconds * 1e-9);
        else
            printf("%10s %9s %9s ", "-", "-", "-");
        printf("%15.1f ", m->sgemm_rate * 1e-9);
        if (isfinite(m->share))
            printf("%8.1f%%\n", m->share * 100);
        else
            printf("%9s\n", "-");
    }
}

static int bench_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct measurement results[CASES] = {{0}};
    bool wanted[CASES];
    const char *only = option_text(arguments, "case", NULL);
    size_t rounds = (size_t)option_integer(arguments, "rounds", 9);
    int code = EXIT_DONE;
    cpu_flush_denormals(); /* as every worker does */
    for (size_t i = 0; i < CASES; i++) {
        wanted[i] = !only || !strcmp(only, cases[i].name);
        if (!wanted[i])
            continue;
        message("measuring %s", cases[i].name);
        case_measure(&cases[i], rounds, &results[i]);
        if (isnan(results[i].share)) {
            message("runner: bench: %s came out above 100 %% of sgemm, so something disturbed the measurement; its "
                    "figures are left out, run it again on a quiet machine",
                    cases[i].name);
            code = EXIT_ENVIRONMENT;
        }
    }
    if (arguments->json)
        results_print_json(results, wanted);
    else
        results_print(results, wanted);
    return code;
}

static const struct option bench_options[] = {
    {.name = "case",
     .kind = OPTION_TEXT,
     .argument = "NAME",
     .doc = "Only this one.",
     .choices = "day1|day2|day2-modern"},
    {.name = "rounds",
     .kind = OPTION_INTEGER,
     .argument = "N",
     .doc = "Medians over N rounds of two steps. Default 9.",
     .minimum = 1,
     .maximum = ROUNDS_LIMIT},
    {.name = NULL},
};

extern const struct command command_bench;
const struct command command_bench = {
    .name = "bench",
    .summary = "Measure training steps against what this machine's sgemm reaches.",
    .help = "A step is forward, backward, clip and AdamW on one thread. FLOPs are those of\n"
            "the model: 6 for each weight of a product and each token, and the causal half\n"
            "of attention. The limit is single-thread sgemm on the same shapes, measured in\n"
            "turns with the steps; a share above 100 % is a disturbed measurement and is\n"
            "not printed (exit code 3).\n\n"
            "Example:\n  runner bench --case day2",
    .options = bench_options,
    .json = true,
    .run = bench_run,
};
