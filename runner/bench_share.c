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

/* A rate beside every step: the mean of just before and after it. */
struct yardstick {
    double (*rate_of)(struct bench_model *model);
    double before, *rates, *ratios;
};

static void yardstick_begin(struct yardstick *yardstick, struct bench_model *model, size_t count)
{
    yardstick->rates = memory_alloc(count, sizeof *yardstick->rates);
    yardstick->ratios = memory_alloc(count, sizeof *yardstick->ratios);
    yardstick->rate_of(model);
    yardstick->before = yardstick->rate_of(model);
}

static void yardstick_add(struct yardstick *yardstick, struct bench_model *model, size_t i, double step_rate)
{
    double after = yardstick->rate_of(model);
    yardstick->rates[i] = (yardstick->before + after) / 2;
    yardstick->ratios[i] = step_rate / yardstick->rates[i];
    yardstick->before = after;
}

static void yardstick_end(struct yardstick *yardstick, size_t count, double *rate, double *ratio)
{
    *rate = bench_median(yardstick->rates, count);
    *ratio = bench_median(yardstick->ratios, count);
    memory_free(yardstick->rates);
    memory_free(yardstick->ratios);
}

void bench_share_measure(const struct bench_case *row, size_t rounds, struct bench_share *share)
{
    enum { STEPS = 2 };
    struct config config = bench_case_config(row);
    struct bench_model model;
    struct yardstick sgemm = {.rate_of = bench_model_sgemm}, openblas = {.rate_of = bench_model_openblas};
    size_t count = rounds * STEPS;
    double *seconds = memory_alloc(count, sizeof *seconds);
    bench_model_init(&model, &config, row->vocab_size);
    bench_model_step(&model);
    yardstick_begin(&openblas, &model, count);
    yardstick_begin(&sgemm, &model, count);
    /* Machines change their pace: yardsticks are measured between any two steps. */
    for (size_t i = 0; i < count; i++) {
        seconds[i] = bench_model_step(&model);
        yardstick_add(&sgemm, &model, i, model.flops_per_step / seconds[i]);
        yardstick_add(&openblas, &model, i, model.flops_per_step / seconds[i]);
    }
    *share = (struct bench_share){.measured = true,
                                  .flops_per_step = model.flops_per_step,
                                  .tokens_per_step = model.tokens_per_step,
                                  .step_seconds = bench_median(seconds, count)};
    yardstick_end(&sgemm, count, &share->sgemm_rate, &share->ratio);
    yardstick_end(&openblas, count, &share->openblas_rate, &share->openblas_ratio);
    share->share = bench_share_believe(share->ratio);
    bench_model_release(&model);
    memory_free(seconds);
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
        json_put(row, "times_openblas", json_from_double(good ? m->openblas_ratio : NAN));
        json_put(row, "openblas_gflops", json_from_double(m->openblas_rate * 1e-9));
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
    fprintf(out, "%-12s %9s %11s %10s %9s %9s %15s %9s %17s %7s\n", "case", "precision", "GFLOP/step", "ms/step",
            "tokens/s", "GFLOP/s", "sgemm GFLOP/s", "of sgemm", "OpenBLAS GFLOP/s", "of it");
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
            fprintf(out, "%8.1f%% ", m->share * 100);
        else
            fprintf(out, "%9s ", "-");
        fprintf(out, "%17.1f ", m->openblas_rate * 1e-9);
        if (isfinite(m->share))
            fprintf(out, "%6.2fx\n", m->openblas_ratio);
        else
            fprintf(out, "%7s\n", "-");
    }
}
