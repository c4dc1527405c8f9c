/* The share of a training step in what sgemm reaches on its shapes: the fastest one that there is, a ceiling, and
 * OpenBLAS's, which may be slower than the core's own products. */
#ifndef RUNNER_BENCH_SHARE_H
#define RUNNER_BENCH_SHARE_H

#include <stdbool.h>
#include <stdio.h>

#include "runner/bench_model.h"
#include "runner/json.h"

struct bench_share {
    bool measured;
    double flops_per_step, tokens_per_step;
    double sgemm_rate, openblas_rate, step_seconds; /* medians over the rounds */
    double share;                 /* of sgemm, the fastest; NaN when it came out above 1 and is not to be believed */
    double ratio, openblas_ratio; /* as they were measured, also above 1 */
};

/* Products and training steps take turns, so that whatever else slows the machine slows both. */
void bench_share_measure(const struct bench_case *row, size_t rounds, struct bench_share *share);

/* value when it is a share that can be, NaN above 1. */
double bench_share_believe(double value);

/* Processor, kernels and libraries of what is measured; no end of line. */
void bench_machine_print(FILE *out);

/* shares [BENCH_CASES]; those not measured are left out. */
void bench_shares_print(const struct bench_share *shares, FILE *out);
json_t *bench_shares_json(const struct bench_share *shares);

#endif
