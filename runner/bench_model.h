/* A model ready to be timed: a trainer on random tokens, and the products of its step by themselves.
 *
 *   struct bench_model model;
 *   bench_model_init(&model, &config, vocab_size);
 *   seconds = bench_model_step(&model);
 *   bench_model_release(&model); */
#ifndef RUNNER_BENCH_MODEL_H
#define RUNNER_BENCH_MODEL_H

#include <stdint.h>

#include "core/trainer.h"
#include "runner/rate.h"

/* A named shape to measure. */
struct bench_case {
    const char *name;
    int64_t context_length, d_model, n_heads, n_layers, vocab_size, batch_size;
    bool modern; /* rope, rmsnorm, swiglu, kv_heads 2 */
};

enum { BENCH_DAY1, BENCH_DAY2, BENCH_DAY2_MODERN, BENCH_CASES, BENCH_DAY5 = BENCH_CASES, BENCH_SHAPES };
/* The first BENCH_CASES are what `runner bench` measures by itself. */
extern const struct bench_case bench_cases[BENCH_SHAPES];

struct config bench_case_config(const struct bench_case *row);

struct bench_model {
    struct config config;
    int64_t vocab_size;
    int32_t *tokens;
    uint32_t *bytes;
    struct trainer *trainer;
    struct products *products;
    double flops_per_step; /* of the model: products and the causal half of attention */
    double tokens_per_step;
};

/* Ends the program when the model cannot be made. */
void bench_model_init(struct bench_model *model, const struct config *config, int64_t vocab_size);
void bench_model_release(struct bench_model *model);

/* One training step; its seconds. Ends the program when the loss is not finite. */
double bench_model_step(struct bench_model *model);

/* Operations a second of the products alone: each by the fastest library there is, and all by OpenBLAS's sgemm. */
double bench_model_sgemm(struct bench_model *model);
double bench_model_openblas(struct bench_model *model);

/* Sorts the values. */
double bench_median(double *values, size_t count);

#endif
