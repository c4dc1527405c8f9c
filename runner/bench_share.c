/* Training steps against sgemm. */
#include "runner/bench_share.h"

#include <math.h>

#include "core/cpu.h"
#include "core/memory.h"
#include "core/onednn.h"
#include "runner/precision.h"

double bench_share_believe(double value)
{
    return value > 1 ? NAN : value;
}

void bench_share_measure(const struct bench_case *row, size_t rounds, struct bench_share *share)
{
    enum { STEPS = 2 };
    struct config config = bench_case_config(row);
    struct bench_model model;
    double *rates = memory_alloc(rounds * STEPS, sizeof *rates),
           *seconds = memory_alloc(rounds * STEPS, sizeof *seconds);
    double *ratios = memory_alloc(rounds * STEPS, sizeof *ratios);
    bench_model_init(&model, &config, row->vocab_size);
    bench_model_step(&model);
    bench_model_sgemm(&model);
    /* Each step beside the products just before and after it: machines change their pace. */
    double before = bench_model_sgemm(&model);
    for (size_t round = 0; round < rounds * STEPS; round++) {
        seconds[round] = bench_model_step(&model);
        double after = bench_model_sgemm(&model);
        rates[round] = (before + after) / 2;
        ratios[round] = model.flops_per_step / seconds[round] / rates[round];
        before = after;
    }
    *share = (struct bench_share){.measured = true,
                                  .flops_per_step = model.flops_per_step,
                                  .tokens_per_step = model.tokens_per_step,
                                  .ratio = bench_median(ratios, rounds * STEPS),
                                  .sgemm_rate = bench_median(rates, rounds * STEPS),
                                  .step_seconds = bench_median(seconds, rounds * STEPS)};
    share->share = bench_share_believe(share->ratio);
    bench_model_release(&model);
    memory_free(rates);
    memory_free(seconds);
    memory_free(ratios);
}

json_t *bench_shares_json(const struct bench_share *shares)
{
    json_t *list = json_array();
    for (size_t i = 0; i < BENCH_CASES; i++) {
        const struct bench_share *m = &shares[i];
        bool good = isfinite(m->share);
        if (!m->measured)
            continue;
        json_t *row = json_object();
        json_put(row, "name", json_from_text(bench_cases[i].name));
        json_put(row, "precision", json_from_text(precision_name(PRECISION_FP32)));
        json_put(row, "seconds_per_step", json_from_double(good ? m->step_seconds : NAN));
        json_put(row, "tokens_per_second", json_from_double(good ? m->tokens_per_step / m->step_seconds : NAN));
        json_put(row, "gflops", json_from_double(good ? m->flops_per_step / m->step_seconds * 1e-9 : NAN));
        json_put(row, "share_of_sgemm", json_from_double(m->share));
        json_put(row, "gflop_per_step", json_from_double(m->flops_per_step * 1e-9));
        json_put(row, "sgemm_gflops", json_from_double(m->sgemm_rate * 1e-9));
        json_push(list, row);
    }
    return list;
}

void bench_machine_print(FILE *out)
{
    fprintf(out, "%s, kernels %s, OpenBLAS %s", cpu_model_name(), cpu_level(), blas_core_name());
    if (onednn_load(NULL))
        fprintf(out, " and oneDNN %s", onednn_version());
}

void bench_shares_print(const struct bench_share *shares, FILE *out)
{
    bench_machine_print(out);
    fputs(", one thread\n\n", out);
    fprintf(out, "%-12s %9s %11s %10s %9s %9s %15s %9s\n", "case", "precision", "GFLOP/step", "ms/step", "tokens/s",
            "GFLOP/s", "sgemm GFLOP/s", "of sgemm");
    for (size_t i = 0; i < BENCH_CASES; i++) {
        const struct bench_share *m = &shares[i];
        if (!m->measured)
            continue;
        fprintf(out, "%-12s %9s %11.2f ", bench_cases[i].name, precision_name(PRECISION_FP32),
                m->flops_per_step * 1e-9);
        if (isfinite(m->share))
            fprintf(out, "%10.2f %9.0f %9.1f ", m->step_seconds * 1e3, m->tokens_per_step / m->step_seconds,
                    m->flops_per_step / m->step_seconds * 1e-9);
        else
            fprintf(out, "%10s %9s %9s ", "-", "-", "-");
        fprintf(out, "%15.1f ", m->sgemm_rate * 1e-9);
        if (isfinite(m->share))
            fprintf(out, "%8.1f%%\n", m->share * 100);
        else
            fprintf(out, "%9s\n", "-");
    }
}
